"""Rules do not change unnoticed: stored verdicts are kept as long as `ENGINE_VERSION` stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from benchmark_assets.model.contract import Contract
from benchmark_assets.scoring.plugins import PLUGINS
from tests.scoring import record_engine_digest as record

SOURCE = '''
"""Module."""
LIMIT = 5
"""Attribute."""


def judge(calls, limit=None):
    """Function."""
    # Comment.
    if len(calls) > LIMIT:
        return f"{len(calls):>3} calls"
    return None
'''


def test_rules_are_as_recorded() -> None:
    difference = record.difference(record.recorded(), record.current())
    assert difference is None, difference


def test_every_file_of_scoring_is_covered() -> None:
    covered = {path.relative_to(record.PACKAGE).as_posix() for path in record.covered_files()}
    scoring = {
        path.relative_to(record.PACKAGE).as_posix()
        for path in (record.PACKAGE / "scoring").rglob("*.py")
        # Fidelity judges no contract and has a version of its own; mutation makes no rule.
        if not {"trace_fidelity", "mutation"}.intersection(path.parts)
    }
    assert scoring <= covered
    assert {f"scoring/plugins/{plugin.name}.py" for plugin in PLUGINS} <= covered
    assert (
        f"{Contract.__module__.removeprefix('benchmark_assets.').replace('.', '/')}.py" in covered
    )
    assert "model/verdict.py" in covered


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"""Module."""', ""),
        ('"""Module."""', '"""Another."""'),
        ('"""Attribute."""', ""),
        ('    """Function."""\n', ""),
        ("    # Comment.\n", "\n\n"),
        ("LIMIT = 5", "LIMIT = (  # why\n    5\n)"),
        ("limit=None", "limit = None"),
    ],
)
def test_comments_docstrings_and_layout_do_not_count(old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    edited = SOURCE.replace(old, new)
    assert record.syntax_digest(edited) == record.syntax_digest(SOURCE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 5", "LIMIT = 6"),
        ("LIMIT = 5", 'LIMIT = "5"'),
        ("LIMIT = 5", "LIMIT = None"),
        ("LIMIT = 5", "LIMIT = 5.0"),
        ("LIMIT = 5", "LIMIT: int = 5"),
        ("limit=None", "limit=0"),
        ("limit=None", "limit"),
        ("calls) > LIMIT", "calls) >= LIMIT"),
        ("calls, limit=None", "calls, *, limit=None"),
        (' calls"', ' call"'),
        (":>3}", ":>4}"),
        ("return None", "return"),
    ],
)
def test_code_counts(old: str, new: str) -> None:
    assert SOURCE.count(old) == 1
    edited = SOURCE.replace(old, new)
    assert record.syntax_digest(edited) != record.syntax_digest(SOURCE)


def test_the_digest_is_the_same_under_every_python() -> None:
    # Recorded once; a Python that gives another one needs an exception in `_spell`.
    expected = "31d7a6b82b303c1f8bc88656573ba3072b6b719e7b3ceeac4101498b0376748e"
    assert record.syntax_digest(SOURCE) == expected


NOW: dict[str, object] = {"engine": "2", "files": {"a.py": "1", "b.py": "2"}}


def test_nothing_to_do_where_nothing_changed() -> None:
    assert record.difference(dict(NOW), NOW) is None


@pytest.mark.parametrize(
    ("files", "named"),
    [
        ({"a.py": "0", "b.py": "2"}, "recorded: a.py."),
        ({"a.py": "1"}, "recorded: b.py."),
        ({"a.py": "1", "b.py": "2", "c.py": "3"}, "recorded: c.py."),
        ({}, "recorded: a.py, b.py."),
    ],
)
def test_changed_rules_are_named_with_what_to_do(files: dict[str, str], named: str) -> None:
    difference = record.difference({"engine": "2", "files": files}, NOW) or ""
    assert named in difference
    assert "raise ENGINE_VERSION in benchmark_assets/scoring/evaluate.py" in difference
    assert difference.endswith(record.COMMAND)


@pytest.mark.parametrize("files", [NOW["files"], {"a.py": "0", "b.py": "2"}])
def test_a_raised_version_is_to_be_recorded(files: object) -> None:
    difference = record.difference({"engine": "1", "files": files}, NOW) or ""
    assert "ENGINE_VERSION is 2, recorded for 1" in difference
    assert difference.endswith(record.COMMAND)
    assert "raise ENGINE_VERSION" not in difference


def test_the_command_writes_what_the_test_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(record, "RECORD", tmp_path / "engine_digest.json")
    assert record.recorded() == {}
    record.main()
    assert record.recorded() == record.current()
    written = record.RECORD.read_bytes()
    record.main()
    assert record.RECORD.read_bytes() == written
    assert capsys.readouterr().out.endswith("nothing changed\n")


def test_the_command_is_spelled_as_it_is_started() -> None:
    program, flag, module = record.COMMAND.split()
    assert (program, flag) == ("python", "-m")
    code = f"import importlib; importlib.import_module({module!r}).current()"
    subprocess.run([sys.executable, "-c", code], cwd=record.ROOT, check=True)
