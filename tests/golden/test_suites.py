"""The specification's suites, each as files in folders, through the command itself."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from benchmark_assets.adapters.golden_files import LOCK_NAME
from benchmark_assets.cli.golden import command
from tests.golden.specification import RECEIPT, REFUND, SUITES, Json, Suite

EVERY_FIXTURE = {data["id"]: data for data in (REFUND, RECEIPT)}


def write(folder: Path, files: dict[str, Json]) -> None:
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")


def golden(*args: str) -> Result:
    return CliRunner().invoke(command, args, catch_exceptions=False)


def accept(suite: Suite) -> None:
    """Leave behind what an earlier run left: the lock file of the fixtures that there were."""
    fixtures = Path("fixtures")
    write(fixtures, {f"{number}.json": EVERY_FIXTURE[i] for number, i in enumerate(suite.known)})
    golden("--accept")  # Fails as there are no traces yet, and writes the lock file all the same.
    for path in fixtures.iterdir():
        if path.name != LOCK_NAME:
            path.unlink()


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: suite.name)
def test_a_suite_comes_out_as_specified(
    suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if suite.known:
        accept(suite)
    if suite.fixtures is not None:
        write(tmp_path / "fixtures", suite.fixtures)
    write(tmp_path / "traces", suite.traces)
    # A folder that holds none is a case of its own: no fixture can be named.
    expected = suite.results if suite.fixtures else {"fixtures": "MISSING"}

    done = golden("--json")
    cases = json.loads(done.stdout)
    assert {case["id"]: case["result"] for case in cases} == expected
    assert len(cases) == len(expected)
    assert all((case["failures"] == []) is (case["result"] == "PASS") for case in cases)
    assert done.exit_code == suite.exit_code

    done = golden()
    for key, result in expected.items():
        # MISSING names what is missing: the fixture, or the trace for it.
        starts = (f"{result} {key}", f"{result} trace for {key}")
        assert sum(line.startswith(starts) for line in done.stdout.splitlines()) == 1
    assert done.exit_code == suite.exit_code
