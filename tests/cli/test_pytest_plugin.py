"""Golden traces as pytest cases, in pytest runs of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from benchmark_assets import pytest_plugin
from tests.pipeline.golden_folders import GET, Folders, recording, write

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = "benchmark_assets.pytest_plugin"


@pytest.fixture
def folders(pytester: pytest.Pytester) -> Folders:
    write(pytester.path / "pytest.ini", "[pytest]\ngolden_fixtures = fixtures\n")
    made = Folders(pytester.path)
    made.fixture("refund")
    made.trace("refund")
    return made


def run(pytester: pytest.Pytester, *args: str) -> pytest.RunResult:
    return pytester.runpytest("-p", PLUGIN, "-p", "no:cacheprovider", *args)


def test_one_line_makes_cases_of_a_folder(pytester: pytest.Pytester, folders: Folders) -> None:
    folders.fixture("trials")
    folders.trace("trials/1")
    folders.trace("trials/2", tools=[GET])
    result = run(pytester, "-v")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "fixtures/refund.json::refund PASSED*",
            "fixtures/trials.json::trials trial 1 PASSED*",
            "fixtures/trials.json::trials trial 2 FAILED*",
            "*observed  get_order ✓, refund_payment ✗ missing*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_a_missing_trace_fails(pytester: pytest.Pytester, folders: Folders) -> None:
    (folders.traces / "refund.json").unlink()
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["MISSING trace for refund"])


def test_a_vanished_fixture_fails(pytester: pytest.Pytester, folders: Folders) -> None:
    write(
        folders.fixtures / "fixtures.lock.json",
        {"version": 1, "fixtures": {"refund": "0", "gone": "0"}},
    )
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["FAILED fixtures::gone*"])


def test_an_empty_folder_fails(pytester: pytest.Pytester, folders: Folders) -> None:
    (folders.fixtures / "refund.json").unlink()
    (folders.traces / "refund.json").unlink()
    run(pytester).assert_outcomes(failed=1)


def test_a_broken_fixture_fails(pytester: pytest.Pytester, folders: Folders) -> None:
    write(folders.fixtures / "bad.json", "{")
    result = run(pytester)
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*bad.json:1: is not JSON*"])


def test_a_missing_folder_stops_the_run(pytester: pytest.Pytester, folders: Folders) -> None:
    folders.fixtures.rename(folders.root / "elsewhere")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*golden_fixtures: there is no folder*fixtures*"])


def test_a_golden_trace_that_fails_is_a_case(pytester: pytest.Pytester, folders: Folders) -> None:
    write(folders.fixtures / "refund.golden.json", recording(tools=[]))
    result = run(pytester, "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["fixtures/refund.json::refund golden trace FAILED*"])


@pytest.mark.parametrize("known", [True, False])
def test_that_the_order_is_unknown_is_in_the_report(
    pytester: pytest.Pytester, folders: Folders, known: bool
) -> None:
    folders.trace("refund", **({"questions": [{"text": "?", "before_tool": 1}]} if known else {}))
    run(pytester, "--junitxml=found.xml").assert_outcomes(passed=1)
    found = (folders.root / "found.xml").read_text(encoding="utf-8")
    assert ('<property name="mark" value="order unknown" />' in found) is not known


def test_stray_traces_are_warned_of(pytester: pytest.Pytester, folders: Folders) -> None:
    folders.trace("stray")
    result = run(pytester, "-W", "default")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*traces/stray.json: no fixture has this id*"])


def test_the_folder_counts_where_testpaths_leave_it_out(
    pytester: pytest.Pytester, folders: Folders
) -> None:
    write(
        folders.root / "pytest.ini",
        "[pytest]\ntestpaths = tests\ngolden_fixtures = fixtures\ngolden_traces = runs\n",
    )
    folders.traces.rename(folders.root / "runs")
    write(folders.root / "tests" / "test_a.py", "def test_a():\n    pass\n")
    run(pytester).assert_outcomes(passed=2)
    # Whoever asks for something gets that.
    run(pytester, "tests").assert_outcomes(passed=1)
    run(pytester, "fixtures").assert_outcomes(passed=1)
    run(pytester, "fixtures/refund.json").assert_outcomes(passed=1)
    run(pytester, "fixtures/refund.json::refund").assert_outcomes(passed=1)
    run(pytester, "-k", "test_a").assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize("place", [".gold", ".ci/gold", "build", "tests/dist/gold", "../gold"])
@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_the_folder_counts_wherever_it_lies(
    pytester: pytest.Pytester, folders: Folders, place: str, workers: tuple[str, ...]
) -> None:
    write(folders.root / "pytest.ini", f"[pytest]\ngolden_fixtures = {place}\n")
    write(folders.root / "test_a.py", "def test_a():\n    pass\n")
    target = (folders.root / place).resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    folders.fixtures.rename(target)
    (folders.traces / "refund.json").unlink()
    try:
        result = pytester.runpytest_subprocess("-p", PLUGIN, "-p", "no:cacheprovider", *workers)
        result.assert_outcomes(passed=1, failed=1)
    finally:
        target.rename(folders.fixtures)


def test_a_folder_that_something_ignores_counts(
    pytester: pytest.Pytester, folders: Folders
) -> None:
    write(folders.root / "test_a.py", "def test_a():\n    pass\n")
    write(folders.root / "conftest.py", 'collect_ignore = ["fixtures"]\n')
    run(pytester).assert_outcomes(passed=2)
    # On purpose it may be left out.
    run(pytester, "--ignore", "fixtures").assert_outcomes(passed=1)


def test_nothing_else_is_collected_on_the_way(pytester: pytest.Pytester, folders: Folders) -> None:
    write(folders.root / "pytest.ini", "[pytest]\ngolden_fixtures = build/gold\n")
    write(folders.root / "build" / "test_copy.py", "def test_copy():\n    pass\n")
    write(folders.root / "build" / "lib" / "test_copy2.py", "def test_copy():\n    pass\n")
    folders.fixtures.rename(folders.root / "build" / "gold")
    run(pytester).assert_outcomes(passed=1)


def test_cases_run_in_parallel(pytester: pytest.Pytester, folders: Folders) -> None:
    for number in range(1, 6):
        folders.trace(f"many/{number}")
    folders.fixture("many")
    # In a process: workers must find the plugin as the user's environment has it.
    result = pytester.runpytest_subprocess("-p", PLUGIN, "-n", "2", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=6)


def test_nothing_happens_without_the_line(pytester: pytest.Pytester, folders: Folders) -> None:
    write(folders.root / "pytest.ini", "[pytest]\n")
    write(folders.root / "test_a.py", "def test_a():\n    pass\n")
    run(pytester).assert_outcomes(passed=1)


def test_the_plugin_costs_runs_that_do_not_use_it_nothing(tmp_path: Path) -> None:
    write(tmp_path / "test_a.py", "def test_a():\n    pass\n")
    script = (
        "import sys, json, pytest\n"
        f"pytest.main(['-q', '-p', '{PLUGIN}', '-p', 'no:cacheprovider'])\n"
        "ours = [name for name in sys.modules if name.startswith('benchmark_assets')]\n"
        "others = [n for n in ('pydantic', 'msgspec', 'pandas', 'rich') if n in sys.modules]\n"
        "print('LOADED', json.dumps([sorted(ours), others]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = json.loads(done.stdout.splitlines()[-1].removeprefix("LOADED "))
    assert loaded == [["benchmark_assets", PLUGIN], []]


def test_the_entry_point_is_called_like_the_module() -> None:
    # Otherwise `-p` and the entry point would register one module twice, which pytest refuses.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {PLUGIN: PLUGIN}
    assert pytest_plugin.__name__ == PLUGIN
