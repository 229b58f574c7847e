"""The page on live capture: its code runs, and its table is what the tests of capture expect."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from types import ModuleType

import pytest

WITHOUT = "THE FRAMEWORK IS MISSING, SO THE PAGE ON LIVE CAPTURE IS NOT TESTED"
pytest.importorskip("agent_framework", reason=WITHOUT)
pytest.importorskip("agent_framework_orchestrations", reason=WITHOUT)

from tests.adapters.test_live_capture import SCENARIOS, _group_chat  # noqa: E402
from tests.bench import bench  # noqa: E402
from tests.docs.consoles import ROOT, fits, steps  # noqa: E402
from tests.docs.tables import rows  # noqa: E402

TEXT = (ROOT / "docs" / "live-capture.md").read_text(encoding="utf-8")


def test_the_code_records_a_run_that_the_command_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (capture,) = [step for step in steps(TEXT) if step.file is not None]
    (tmp_path / "capture.py").write_text(capture.content, encoding="utf-8")
    team = ModuleType("team")
    team.workflow = _group_chat()  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "team", team)
    monkeypatch.chdir(tmp_path)
    runpy.run_path("capture.py")
    printed = capsys.readouterr().out.splitlines()
    assert "executor_completed boss" in printed
    assert printed[-1] == "All that was found is listened to."
    session = TEXT.split("```text\n$ bench ")[1].split("```")[0]
    command, expected = session.split("\n", 1)
    result = bench(*command.split(), cwd=tmp_path)
    assert result.code == 9
    # The file has another time in it, and so another hash, whenever it is made.
    assert fits(expected, re.sub(r"SHA-256 \w+…", "SHA-256 …", result.out))


def _tokens(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def test_the_table_is_what_is_tested() -> None:
    assert rows(TEXT, "workflow") == [
        [
            name,
            ", ".join(
                f"`{executor}` {verdict} ({_tokens(ledger)} / {_tokens(truth)})"
                for executor, (verdict, ledger, truth) in scenario.said.items()
            ),
            str(scenario.code),
        ]
        for name, scenario in SCENARIOS.items()
    ]
