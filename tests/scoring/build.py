"""Contracts and traces for tests, from the little that a test is about.

Belongs here: filling in the header of a contract and the identity of a trace. Does not belong
here: anything that a rule could look at, so no test depends on a default it does not show.
"""

from __future__ import annotations

from typing import Any

import msgspec

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.trace import TraceSnapshot

HEADER = {"id": "case", "workflow": "orders", "contract_version": "1"}
IDENTITY = {
    "trace_id": "t1",
    "origin": {"file": "t.json", "sha256": "0" * 64, "format": "snapshot"},
}


def contract(**sections: Any) -> Contract:
    """A contract with these sections; its workflow is `orders` unless they say otherwise."""
    return Contract.model_validate({**HEADER, **sections})


def trace(**fields: Any) -> TraceSnapshot:
    """A trace with these fields, given as JSON data; what is not given is unknown."""
    return msgspec.convert({**IDENTITY, **fields}, TraceSnapshot)


def call(tool: str, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    """A tool call as JSON data, for `trace`."""
    return {"name": tool, "arguments": arguments, **fields}


def act_rule(**rule: Any) -> Contract:
    """A contract that asks for one call of `act`."""
    return contract(trajectory={"calls": [{"tool": "act", **rule}]})
