"""`bench golden`: exit codes that fail closed, and what it prints and writes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from benchmark_assets.cli.main import ALIASES
from tests.bench import Result, bench, bench_process
from tests.pipeline.golden_folders import ASKED, GET, PATH_HASH, Folders, recording, write

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path)
    made.fixture("refund")
    made.trace("refund", questions=ASKED)
    return made


def golden(folders: Folders, *args: object, env: dict[str, str] | None = None) -> Result:
    return bench("golden", *args, cwd=folders.root, env=env)


def test_the_folders_have_defaults(folders: Folders) -> None:
    result = golden(folders)
    assert result.code == 0
    assert result.out == f"PASS refund {PATH_HASH}\n\nPASS: 1 case, 1 passed\n"
    assert "no lock file" in result.err


def test_a_trace_that_does_not_say_when_it_asked_is_marked(folders: Folders) -> None:
    folders.trace("refund")
    junit = folders.root / "golden.xml"
    result = golden(folders, "--junit", junit)
    assert result.code == 0
    assert result.out.startswith(f"PASS refund {PATH_HASH} (order unknown)\n")
    assert "order unknown: the trace says that a question was asked" in junit.read_text()
    (case,) = json.loads(golden(folders, "--json").out)
    assert case["marks"] == ["order unknown"]


def test_a_failure_exits_1(folders: Folders) -> None:
    folders.trace("refund", tools=[GET])
    result = golden(folders)
    assert result.code == 1
    assert result.out.startswith("FAIL refund ")


@pytest.mark.parametrize("what", ["trace", "fixtures", "folder", "broken"])
def test_whatever_is_missing_exits_1(folders: Folders, what: str) -> None:
    if what == "trace":
        (folders.traces / "refund.json").unlink()
    elif what == "broken":
        write(folders.fixtures / "b.json", "{")
    else:
        (folders.fixtures / "refund.json").unlink()
    if what == "folder":
        folders.fixtures.rmdir()
    result = golden(folders)
    assert result.code == 1
    assert ("FAIL" if what == "broken" else "MISSING") in result.out.split()
    machine = golden(folders, "--json")
    assert machine.code == 1
    assert any(case["result"] != "PASS" for case in json.loads(machine.out))


@pytest.mark.parametrize(
    "args",
    [
        ("--nonsense",),
        ("extra",),
        ("--fixture", "nobody"),
        ("--yes",),
        ("--bless", "--json", "--yes"),
        ("--bless", "--yes", "--accept"),
        ("--summary",),
        ("--bless",),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_2(folders: Folders, args: tuple[str, ...]) -> None:
    result = golden(folders, *args, env={"GITHUB_STEP_SUMMARY": ""})
    assert result.code == 2
    assert not (folders.fixtures / "refund.golden.json").exists()
    assert not (folders.fixtures / "fixtures.lock.json").exists()


def test_a_name_that_is_nearly_right_is_suggested(folders: Folders) -> None:
    assert "did you mean 'refund'?" in golden(folders, "--fixture", "refnd").err


def test_a_fixture_that_vanished_is_no_wrong_usage(folders: Folders) -> None:
    assert golden(folders, "--accept").code == 0
    (folders.fixtures / "refund.json").unlink()
    folders.fixture("other")
    folders.trace("other")
    result = golden(folders, "--fixture", "refund")
    assert result.code == 1
    assert "MISSING refund" in result.out


def test_accepting_says_what_changed_and_grades(folders: Folders) -> None:
    result = golden(folders, "--accept")
    assert result.code == 0
    assert "fixtures.lock.json: lists 1 fixture" in result.err
    assert "refund: new" in result.err
    assert f"PASS refund {PATH_HASH}" in result.out
    assert "no lock file" not in result.err


def test_nothing_is_accepted_while_a_fixture_is_broken(folders: Folders) -> None:
    write(folders.fixtures / "b.json", "{")
    assert golden(folders, "--accept").code == 1
    assert not (folders.fixtures / "fixtures.lock.json").exists()


def test_json_alone_goes_to_standard_output(folders: Folders) -> None:
    folders.trace("stray")
    result = golden(folders, "--json")
    assert json.loads(result.out) == [
        {"id": "refund", "trial": None, "result": "PASS", "failures": [], "path_hash": PATH_HASH}
    ]
    assert "traces/stray.json" in result.err


def test_junit_is_written_whatever_the_result(folders: Folders) -> None:
    folders.trace("refund", tools=[])
    assert golden(folders, "--junit", "out/golden.xml").code == 1
    root = ET.fromstring((folders.root / "out" / "golden.xml").read_bytes())
    assert (root.get("tests"), root.get("failures")) == ("1", "1")


def test_an_old_report_is_not_taken_for_a_new_one(folders: Folders) -> None:
    assert golden(folders, "--junit", "golden.xml").code == 0
    write(folders.root / "benchmark.yaml", "stor: x\n")
    assert golden(folders, "--junit", "golden.xml").code == 1
    assert not (folders.root / "golden.xml").exists()


def test_the_job_summary_is_added_to(folders: Folders) -> None:
    target = folders.root / "summary.md"
    target.write_text("before\n")
    assert golden(folders, "--summary", env={"GITHUB_STEP_SUMMARY": str(target)}).code == 0
    assert golden(folders, "--summary", "other.md").code == 0
    text = target.read_text()
    assert text.startswith("before\n## Golden traces\n")
    assert f"| PASS | refund |  | {PATH_HASH} |" in text
    assert (folders.root / "other.md").read_text() == text.removeprefix("before\n")


def test_a_golden_trace_that_vanished_exits_1_until_accepted(folders: Folders) -> None:
    golden(folders, "--bless", "--yes")
    assert "note refund: its golden trace is new" in golden(folders, "--accept").err
    (folders.fixtures / "refund.golden.json").unlink()
    junit = folders.root / "golden.xml"
    result = golden(folders, "--junit", junit)
    assert result.code == 1
    assert "MISSING refund golden trace\n  - the golden trace vanished: " in result.out
    assert 'name="refund golden trace"' in junit.read_text()
    listed = json.loads(golden(folders, "--json").out)
    assert sorted(case["result"] for case in listed) == ["MISSING", "PASS"]
    assert golden(folders, "--accept").code == 0
    assert golden(folders).code == 0


def test_a_report_that_cannot_be_written_exits_1(folders: Folders) -> None:
    write(folders.root / "file", "")
    assert golden(folders, "--junit", "file/golden.xml").code == 1


def test_blessing_shows_and_freezes(folders: Folders) -> None:
    result = golden(folders, "--bless", "--yes")
    assert result.code == 0
    assert "path: get_order → refund_payment" in result.out
    assert "BLESSED refund: fixtures/refund.golden.json" in result.out
    assert json.loads((folders.fixtures / "refund.golden.json").read_text()) == recording(
        questions=ASKED
    )
    again = golden(folders, "--bless", "--yes")
    assert again.code == 0
    assert again.out.startswith("UNCHANGED refund")


def test_blessing_refuses_what_fails_and_freezes_the_rest(folders: Folders) -> None:
    folders.fixture("bad")
    folders.trace("bad", tools=[GET])
    result = golden(folders, "--bless", "--yes")
    assert result.code == 1
    assert "REFUSED bad" in result.out
    assert not (folders.fixtures / "bad.golden.json").exists()
    assert (folders.fixtures / "refund.golden.json").exists()


def test_blessing_only_what_is_chosen(folders: Folders) -> None:
    folders.fixture("other")
    folders.trace("other")
    assert golden(folders, "--bless", "--yes", "--fixture", "other").code == 0
    assert not (folders.fixtures / "refund.golden.json").exists()
    assert (folders.fixtures / "other.golden.json").exists()


@pytest.mark.parametrize(("answer", "written"), [("y", True), ("n", False)])
def test_a_terminal_is_asked(folders: Folders, answer: str, written: bool) -> None:
    ours, theirs = pty.openpty()
    os.write(ours, f"{answer}\n".encode())
    done = subprocess.run(
        [sys.executable, "-m", "benchmark_assets.cli.main", "golden", "--bless"],
        cwd=folders.root,
        stdin=theirs,
        capture_output=True,
        text=True,
        check=False,
    )
    os.close(ours)
    os.close(theirs)
    assert "Freeze it as fixtures/refund.golden.json?" in done.stdout
    assert (folders.fixtures / "refund.golden.json").exists() is written
    assert done.returncode == (0 if written else 1)


def test_a_reader_that_has_seen_enough_changes_no_verdict(folders: Folders) -> None:
    for number in range(1, 400):
        folders.trace(f"many/{number}", tools=[GET])
    folders.fixture("many")
    command = f"{sys.executable} -m benchmark_assets.cli.main golden; echo $? >code"
    subprocess.run(["bash", "-c", f"({command}) | head -1"], cwd=folders.root, check=True)
    assert (folders.root / "code").read_text() == "1\n"


def test_the_script_has_its_own_name(folders: Folders) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["trace-eval"] == scripts["bench"]
    assert ALIASES["trace-eval"] == "golden"
    code = "from benchmark_assets.cli.main import main; main('trace-eval')"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folders.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert f"PASS refund {PATH_HASH}\n" in done.stdout


def test_a_process_of_its_own_exits_the_same(folders: Folders) -> None:
    assert bench_process("golden", cwd=folders.root).code == 0
    (folders.traces / "refund.json").unlink()
    assert bench_process("golden", cwd=folders.root).code == 1


def test_the_projects_profiles_and_plugins_hold(folders: Folders) -> None:
    write(
        folders.root / "no_cash.py",
        "from benchmark_assets.model.verdict import Check\n"
        "from benchmark_assets.scoring.plugins.base import Plugin\n"
        "def prepare(contract):\n"
        "    def judge(evidence):\n"
        "        yield Check(name='no cash', outcome='failed', reason='cash it was')\n"
        "    return judge\n"
        "PLUGIN = Plugin('no_cash', 'no cash', prepare)\n",
    )
    write(folders.root / "benchmark.yaml", "plugins: [no_cash.py]\n")
    result = golden(folders)
    assert result.code == 1
    assert "no cash: cash it was" in result.out
