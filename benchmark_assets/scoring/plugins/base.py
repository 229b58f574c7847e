"""What a plugin is: a contract in, a judge of traces out.

Belongs here: the plugin's type and what several plugins say the same way. Does not belong
here: any rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.trace import ToolCall, TraceSnapshot
from benchmark_assets.model.verdict import Check, Where

Judge = Callable[[TraceSnapshot], Iterable[Check]]


@dataclass(frozen=True)
class Plugin:
    """One family of checks.

    Attributes:
        name: What verdicts and reports call it.
        description: What it checks, in one line, for people who choose plugins.
        prepare: Compiles what a contract demands, once, into a judge for any number of
            traces; None if the contract has nothing for this plugin, which then is skipped.
    """

    name: str
    description: str
    prepare: Callable[[Contract], Judge | None]


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
