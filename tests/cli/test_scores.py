"""`bench scores`: verdicts on the server, on the traces that they are of, however often."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.bench import Result, bench
from tests.langfuse_server import (
    PUBLIC_KEY,
    SECRET_KEY,
    Faults,
    Pair,
    Server,
    generate,
    langfuse_server,
)

MODES = ("v1", "dual", "v2")

CONTRACT = """\
workflow: {workflow}
contract_version: "{version}"
tools: {{required: [{tool}]}}
"""

DAY_S = 86_400.0


@pytest.fixture(scope="module")
def data() -> list[Pair]:
    return generate(30, 5, environments=("default", "staging"))


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory: pytest.TempPathFactory, data: list[Pair]) -> Path:
    """A project with verdicts of the traces that the server has."""
    folder = tmp_path_factory.mktemp("judged")
    (folder / "traces").mkdir()
    lines = [json.dumps({"trace": trace, "observations": rows}) for trace, rows in data]
    (folder / "traces" / "all.jsonl").write_text("\n".join(lines))
    (folder / "benchmark.yaml").write_text("sources: [{path: traces, name: traces}]\n")
    judge(folder)
    return folder


@pytest.fixture
def project(judged_once: Path, tmp_path: Path) -> Path:
    """The same for a test to change."""
    return shutil.copytree(judged_once, tmp_path / "project")


def judge(project: Path, tool: str = "search", version: str = "1") -> None:
    (project / "contracts").mkdir(exist_ok=True)
    for workflow in ("planner", "support"):
        (project / "contracts" / f"{workflow}.yaml").write_text(
            CONTRACT.format(workflow=workflow, version=version, tool=tool)
        )
    result = bench("run", cwd=project)
    assert result.code in (0, 10), result.err


@pytest.fixture(params=MODES)
def server(request: pytest.FixtureRequest, data: list[Pair]) -> Iterator[Server]:
    with langfuse_server(data, mode=request.param) as server:
        yield server


def scores(project: Path, server: Server, *options: object, secret: str = SECRET_KEY) -> Result:
    env = {
        "LANGFUSE_PUBLIC_KEY": PUBLIC_KEY,
        "LANGFUSE_SECRET_KEY": secret,
        "LANGFUSE_BASE_URL": server.url,
    }
    return bench("scores", "--source", "traces", *options, cwd=project, env=env)


def on_server(server: Server) -> dict[tuple[str, str], dict[str, Any]]:
    """The scores that the server shows, by trace and name; more than one of them is an error."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    cursor = None
    while True:
        answer = httpx.get(
            f"{server.url}/api/public/v3/scores",
            params={"limit": "100", "fields": "details,subject"}
            | ({"cursor": cursor} if cursor else {}),
            auth=(PUBLIC_KEY, SECRET_KEY),
        ).json()
        for score in answer["data"]:
            key = (score["subject"]["id"], score["name"])
            assert key not in found
            found[key] = score
        cursor = answer["meta"].get("cursor")
        if cursor is None:
            return found


def of_name(found: dict[tuple[str, str], dict[str, Any]], name: str) -> dict[str, Any]:
    return {key[0]: score["value"] for key, score in found.items() if key[1] == name}


def writes(server: Server) -> int:
    return sum(request.method == "POST" for request in server.requests)


def used(rows: list[dict[str, Any]], tool: str) -> bool:
    """Whether a tool did its work: a call that failed did not."""
    return any(
        row["type"] == "TOOL" and row["name"] == tool and row["level"] != "ERROR" for row in rows
    )


def test_verdicts_are_read_back_from_the_server(
    project: Path, server: Server, data: list[Pair]
) -> None:
    result = scores(project, server)
    assert result.code == 0, result.err
    found = on_server(server)
    judged = [pair for pair in data if pair[0]["name"] in ("planner", "support")]
    assert len(judged) > 10
    called = {trace["id"]: used(rows, "search") for trace, rows in judged}
    assert {True, False} == set(called.values())
    assert of_name(found, "tool_calls") == called
    passed = {
        trace["id"]: called[trace["id"]] and not any(row.get("level") == "ERROR" for row in rows)
        for trace, rows in judged
    }
    assert of_name(found, "passed") == passed
    for trace, _rows in judged:
        score = found[trace["id"], "passed"]
        assert score["dataType"] == "BOOLEAN"
        assert score["environment"] == trace["environment"]
        assert score["timestamp"] == trace["timestamp"]
        assert score["metadata"]["contract"] == trace["name"]
        assert score["metadata"]["contract_version"] == "1"
        assert len(score["metadata"]["run_id"]) == 32
        assert score["metadata"]["engine"]
        number = found[trace["id"], "score"]
        assert number["dataType"] == "NUMERIC"
        assert (number["value"] == 1) == passed[trace["id"]]
        assert (score["comment"] is None) == passed[trace["id"]]
        if not called[trace["id"]]:
            assert "search" in score["comment"]
            assert "search" in found[trace["id"], "tool_calls"]["comment"]
    assert f"{server.url}/project/" in result.out
    assert judged[0][0]["id"] in result.out or result.out.count("/traces/") == 20


def test_what_is_there_is_not_sent_again(project: Path, server: Server) -> None:
    scores(project, server)
    before, sent = on_server(server), writes(server)
    again = scores(project, server)
    assert again.code == 0, again.err
    assert writes(server) == sent
    assert "0 scores written" in again.out
    assert on_server(server) == before


def test_written_again_on_another_day_it_is_the_same(
    project: Path, server: Server, data: list[Pair]
) -> None:
    scores(project, server)
    before = {key: score["value"] for key, score in on_server(server).items()}
    for path in sorted((project / "data" / "store" / "written").rglob("*.parquet")):
        path.unlink()
    later = server.now() + 3 * DAY_S
    server.now = lambda: later
    result = scores(project, server)
    assert result.code == 0, result.err
    # `on_server` would have met two of one name.
    assert {key: score["value"] for key, score in on_server(server).items()} == before


def test_a_verdict_that_changed_is_written_over_the_former(
    project: Path, server: Server, data: list[Pair]
) -> None:
    scores(project, server)
    judge(project, "read_file", "2")
    later = server.now() + DAY_S
    server.now = lambda: later
    result = scores(project, server)
    assert result.code == 0, result.err
    assert " 0 changed" not in result.out
    found = on_server(server)
    for trace, rows in data:
        if trace["name"] in ("planner", "support"):
            assert found[trace["id"], "tool_calls"]["value"] == used(rows, "read_file")
            assert found[trace["id"], "passed"]["metadata"]["contract_version"] == "2"


def test_a_dry_run_shows_and_sends_nothing(project: Path, server: Server) -> None:
    result = scores(project, server, "--dry-run")
    assert result.code == 0, result.err
    assert "would be written" in result.out
    assert "passed = False" in result.out
    assert writes(server) == 0
    assert on_server(server) == {}
    assert not (project / "data" / "store" / "written").exists()


def test_nothing_is_written_unless_it_is_asked_for(project: Path, server: Server) -> None:
    env = {
        "LANGFUSE_PUBLIC_KEY": PUBLIC_KEY,
        "LANGFUSE_SECRET_KEY": SECRET_KEY,
        "LANGFUSE_BASE_URL": server.url,
    }
    assert bench("run", cwd=project, env=env).code in (0, 10)
    assert server.requests == []


def test_what_was_interrupted_goes_on(
    project: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmark_assets.adapters.langfuse.scores._MOST", 8)
    options = ("--max-requests", 9)
    server.break_by(Faults(seed=1, server_errors=0.3))
    counts = []
    for _ in range(60):
        result = scores(project, server, *options)
        counts.append(len(on_server_despite(server)))
        if result.code == 0:
            break
        assert result.code == 1
    assert counts == sorted(counts)
    assert len(set(counts)) > 1
    assert 0 < counts[0] < counts[-1]
    server.break_by(Faults())
    assert scores(project, server).code == 0
    found = on_server(server)
    assert {name for _, name in found} >= {"passed", "score", "tool_calls"}
    assert len({trace for trace, _ in found}) > 10


def on_server_despite(server: Server) -> Any:
    faults = server.faults
    server.break_by(Faults())
    found = on_server(server)
    server.break_by(faults)
    return found


@pytest.mark.parametrize("mode", MODES)
def test_a_refused_score_does_not_lose_the_others(
    project: Path, data: list[Pair], mode: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.langfuse_server import scores as kept
    from tests.langfuse_server.answers import invalid

    check = kept.check

    def picky(given: Any) -> None:
        if isinstance(given, dict) and given.get("name") == "score":
            raise invalid("this name is taken by a configuration")
        check(given)

    monkeypatch.setattr(kept, "check", picky)
    with langfuse_server(data, mode=mode) as server:
        result = scores(project, server)
        assert result.code == 10
        names = {name for _, name in on_server(server)}
    assert "taken by a configuration" in result.err
    assert "passed" in names
    assert "score" not in names


def test_another_project_gets_its_own(project: Path, data: list[Pair]) -> None:
    with langfuse_server(data, mode="v2") as one, langfuse_server(data, mode="v2") as other:
        scores(project, one)
        scores(project, other)
        assert on_server(one).keys() == on_server(other).keys() != set()


def test_only_what_is_selected(project: Path, server: Server, data: list[Pair]) -> None:
    model = data[0][1][-1]["model"]
    result = scores(project, server, "--model", model, "--contract", "planner")
    assert result.code == 0, result.err
    by_id = {trace["id"]: (trace, rows) for trace, rows in data}
    traces = {trace_id for trace_id, _ in on_server(server)}
    assert traces
    for trace_id in traces:
        trace, rows = by_id[trace_id]
        assert trace["name"] == "planner"
        assert rows[-1]["model"] == model
    assert scores(project, server, "--from", "2027-01-01").code == 11


def test_keys_are_nowhere(project: Path, server: Server) -> None:
    planted = "sk-lf-planted-3f9c"
    server.keys = (PUBLIC_KEY, planted)
    good = scores(project, server, secret=planted)
    assert good.code == 0
    bad = scores(project, server, secret="sk-lf-wrong-77")
    assert bad.code == 1
    assert "LANGFUSE_SECRET_KEY" in bad.err
    said = good.out + good.err + bad.out + bad.err
    stored = b"".join(path.read_bytes() for path in project.rglob("*") if path.is_file())
    for key in (planted, "sk-lf-wrong-77", PUBLIC_KEY):
        assert key not in said
        assert key.encode() not in stored


def test_json(project: Path, server: Server) -> None:
    (said,) = json.loads(scores(project, server, "--json").out)
    assert said["new"] == len(on_server(server))
    assert said["error"] is None
    assert said["source"] == "traces"


@pytest.mark.parametrize(
    ("settings", "options", "message"),
    [
        ("sources: [{path: traces, name: a}]", (), "no source has its traces on a Langfuse"),
        ("sources: [{path: traces, name: a}]", ("--source", "b"), "there is no source b"),
        (
            "sources: [{path: traces, name: a}]\nwrite_back: {sources: [b]}",
            (),
            "write_back.sources: no source is named b",
        ),
        ("sources: [{path: traces, name: a}]", ("--source", "a"), "LANGFUSE_SECRET_KEY is not set"),
    ],
)
def test_bad_input(tmp_path: Path, settings: str, options: tuple[str, ...], message: str) -> None:
    (tmp_path / "benchmark.yaml").write_text(settings)
    empty = dict.fromkeys(("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_BASE_URL"), "")
    result = bench("scores", *options, cwd=tmp_path, env=empty)
    assert result.code == 1
    assert message in result.err
