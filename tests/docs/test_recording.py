"""The page on recording: its agents run, and its tables are of what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.cli.replay import command
from benchmark_assets.recorder import TraceRecorder
from tests.bench import bench
from tests.docs.consoles import ROOT, steps
from tests.docs.tables import rows

TEXT = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")


def lay_out(folder: Path) -> None:
    """Write the files of the page."""
    for step in steps(TEXT):
        if step.file is not None:
            path = folder / step.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(step.content, encoding="utf-8")


def replayed(folder: Path, agent: str) -> dict[str, object]:
    lay_out(folder)
    result = bench("replay", "--agent", agent, cwd=folder)
    assert result.code == 0, result.out + result.err
    (path,) = folder.glob("traces/*.json")
    found: dict[str, object] = json.loads(path.read_bytes())
    return found


def test_the_agent_with_a_server_of_tools(tmp_path: Path) -> None:
    pytest.importorskip(
        "mcp.server.mcpserver",
        reason="THE MCP SDK IS MISSING, SO ITS PART OF THE PAGE IS NOT TESTED: install the extra `mcp`",
    )
    found = replayed(tmp_path, "mcp_agent:agent")
    assert found["tools"] == [
        {"name": "get_order", "arguments": {"order_id": 1842}, "result": {"id": 1842}}
    ]
    assert found["final"] == {"status": "needs_human", "order": {"id": 1842}}


def test_the_agent_with_spans(tmp_path: Path) -> None:
    for name in ("pydantic_ai", "opentelemetry.sdk"):
        pytest.importorskip(
            name, reason=f"{name.upper()} IS MISSING, SO ITS PART OF THE PAGE IS NOT TESTED"
        )
    found = replayed(tmp_path, "otel_agent:agent")
    # The model that tests with makes its arguments up from their types.
    assert found["tools"] == [
        {
            "name": "get_order",
            "arguments": {"order_id": 0},
            "result": {"id": 0, "cards": ["blue", "red"]},
        }
    ]
    assert found["final"] == "Done."


def test_the_settings_load(tmp_path: Path) -> None:
    (block,) = [b for b in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL) if "replay:" in b]
    (tmp_path / "benchmark.yaml").write_text(block, encoding="utf-8")
    replay = load_project(cwd=tmp_path, env={}).config.replay
    assert replay.agent == "my_agent:agent"
    assert replay.comparable is not None
    assert replay.comparable.keys() == {"get_order", "refund_payment"}


def test_what_the_table_says_a_recorder_has_it_has() -> None:
    named = re.findall(r"`(\w+)[(`]", " ".join(row[0] for row in rows(TEXT, "of `TraceRecorder`")))
    assert len(named) == 12
    assert [name for name in named if not hasattr(TraceRecorder(), name)] == []
    told = {name for name in vars(TraceRecorder) if name.startswith("on_")}
    assert told == {name for name in named if name.startswith("on_")}


def test_every_option_is_in_the_table() -> None:
    text = TEXT.split("\n## Replay\n")[1]
    options = {option for parameter in command.params for option in parameter.opts}
    documented = set(re.findall(r"`(--[a-z]+)", text))
    assert documented == options - {"--config"}
