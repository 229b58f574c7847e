"""Commands that need neither Dagster nor pandas do not load them."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmark_assets.cli.main import COMMANDS
from tests.bench import bench

HEAVY = ("dagster", "pandas", "scipy", "plotly", "duckdb", "langfuse", "httpx")

SCRIPT = """
import sys
from benchmark_assets.cli.main import main
sys.argv = ["bench", *sys.argv[1:]]
try:
    main()
except SystemExit:
    pass
print("LOADED", *[name for name in {heavy!r} if name in sys.modules])
"""


def loaded(*args: object, cwd: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(heavy=HEAVY), *map(str, args)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cold")
    assert bench("demo", "--dir", folder, cwd=folder).code == 0
    (folder / "run.json").write_text('{"trace_id": "t", "tool_calls": [{"name": "x"}]}')
    (folder / "w.json").write_text('{"steps": []}')
    (folder / "my_agent.py").write_text("def run(user, recorder): ...")
    (folder / "fixtures").mkdir()
    (folder / "fixtures" / "f.json").write_text('{"id": "f", "input": {"user": "hi"}}')
    (folder / "a.json").write_text('{"entries": []}')
    (folder / "refund.yaml").write_text(
        'workflow: w\ncontract_version: "1"\ntools: {required: [x]}\n'
    )
    return folder


@pytest.mark.parametrize(
    "args",
    [
        ["--help"],
        ["lint", "contracts"],
        ["normalize", "data/demo/traces", "--out", "out.jsonl"],
        ["leaderboard"],
        ["run"],
        ["verify", "--contract", "refund.yaml", "--snapshot", "run.json"],
        ["verify", "--list-plugins"],
        ["mutate", "refund.yaml", "run.json"],
        ["golden", "--junit", "golden.xml"],
        ["generate-contract", "--from-file", "run.json", "--workflow", "w"],
        ["families"],
        ["fetch"],
        ["debug", "--help"],
        ["replay", "--agent", "my_agent:run"],
        ["workflow-trace-fidelity", "--workflow-trace", "w.json", "--subject", "s", "--store"],
        ["trace-fidelity", "--agent-trace", "a.json", "--chat-trace", "a.json", "--subject", "s"],
    ],
    ids=lambda args: args[0],
)
def test_light_commands_stay_light(project: Path, args: list[str]) -> None:
    # `run` among them: when nothing is stale, neither is needed.
    assert loaded(*args, cwd=project) == []


@pytest.mark.parametrize("name", ["fetch", "debug"])
def test_asking_a_server_takes_what_asks_it_and_no_more(project: Path, name: str) -> None:
    nowhere = ("--langfuse-base-url", "http://127.0.0.1:1", "--deadline", 1)
    keys = ("--langfuse-public-key", "pk-lf-x", "--langfuse-secret-key", "sk-lf-x")
    assert loaded(name, "--trace-id", "t", *nowhere, *keys, cwd=project) == ["httpx"]


def test_the_test_can_fail(project: Path) -> None:
    (project / "contracts" / "more.yaml").write_text(
        'workflow: none\ncontract_version: "1"\ntools: {required: [x]}\n'
    )
    assert {"dagster", "pandas"} <= set(loaded("run", cwd=project))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_with_an_example(name: str) -> None:
    result = bench(name, "--help")
    assert result.code == 0
    assert f"Example: bench {name}" in result.out
