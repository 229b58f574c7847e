"""A tool call as checks speak of it: whether it succeeded, where it is, what it is called.

Belongs here: what plugins and the modules that plugins are made of say of one call the same way.
Does not belong here: any rule.
"""

from __future__ import annotations

from benchmark_assets.model.trace import ToolCall
from benchmark_assets.model.verdict import Where


def at(call: ToolCall, index: int) -> Where:
    """The place of a tool call."""
    return Where(span_id=call.span_id, call=index)


def succeeded(call: ToolCall) -> bool:
    """Whether a call counts as successful: nothing in the trace says that it failed.

    A call that a format gives neither a status nor an error message for is taken for what it
    looks like; a message of failure beside a status of success is a failure.
    """
    return call.status != "error" and call.error is None


def name_call(call: ToolCall, index: int) -> str:
    """A call as people find it in a trace: name and 1-based position."""
    return f"{call.name} (call {index + 1})"
