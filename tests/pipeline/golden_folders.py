"""Folders of fixtures and traces as tests need them, after the published refund fixture."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

USER = "Refund order 1842 to the original card."
GET = {"name": "get_order", "arguments": {"order_id": "1842"}}
REFUND = {"name": "refund_payment", "arguments": {"order_id": "1842", "method": "card"}}
CHARGE = {"name": "charge_card", "arguments": {"order_id": "1842"}}
ASKED = [{"text": "To the card ending in 4242?", "before_tool": 1}]
PATH_HASH = "c91c66e30e2715cd"
"""printf '["get_order","refund_payment"]' | sha256sum | cut -c1-16"""

EXPECT: dict[str, Any] = {
    "tool_names": ["get_order", "refund_payment"],
    "required_arg_keys": {"get_order": ["order_id"], "refund_payment": ["order_id", "method"]},
    "forbidden_tools": ["create_order", "charge_card"],
    "must_ask_before_write": True,
    "final_schema": {
        "type": "object",
        "required": ["status", "refund_id"],
        "properties": {
            "status": {"enum": ["ok", "needs_human"]},
            "refund_id": {"type": ["string", "null"]},
        },
    },
}


class Folders:
    """A folder of fixtures and one of traces, both below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fixtures = root / "fixtures"
        self.traces = root / "traces"
        self.fixtures.mkdir()
        self.traces.mkdir()

    def fixture(self, key: str, *, file: str | None = None, **expect: Any) -> Path:
        """Write a fixture: the refund's, with what of it is to be different."""
        data = {"id": key, "input": {"user": USER}, "expect": {**EXPECT, **expect}}
        return write(self.fixtures / f"{file or key}.json", data)

    def trace(self, name: str, **changes: Any) -> Path:
        """Write a trace that passes the refund's fixture, but for what is to be different."""
        return write(self.traces / f"{name}.json", recording(**changes))


def recording(**changes: Any) -> dict[str, Any]:
    """A trace that passes the refund's fixture, but for what is to be different.

    Like the published recorder's it does not say when it asked: `questions=ASKED` does.
    """
    return {
        "tools": [GET, REFUND],
        "asked_clarification": True,
        "final": {"status": "ok", "refund_id": "r1"},
        **changes,
    }


def write(path: Path, data: Any) -> Path:
    """Write JSON, or a text as it is."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path
