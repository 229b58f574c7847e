"""What can go wrong in a demo trace, and which plugin is meant to see it.

Belongs here: the kinds of fault. Does not belong here: how a use case commits one
(`use_cases/`) or how often a model does (`models`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FaultKind = Literal[
    "wrong_argument",
    "extra_write",
    "skipped_confirmation",
    "skipped_step",
    "forbidden_tool",
    "missing_fact",
    "tool_error",
    "recovered_error",
    "early_stop",
    "agent_error",
]

PLUGIN: dict[FaultKind, str] = {
    "wrong_argument": "trajectory",
    "extra_write": "trajectory",
    "skipped_confirmation": "trajectory",
    "skipped_step": "trajectory",
    "forbidden_tool": "tool_calls",
    "missing_fact": "final_output",
    "tool_error": "trajectory",
    "recovered_error": "trace_health",
    "early_stop": "trace_health",
    "agent_error": "trace_health",
}
"""The plugin in which each kind must fail a check. Others may fail beside it: a run that stops
early also lacks the calls that it did not get to."""

FAULT_KINDS: tuple[FaultKind, ...] = tuple(PLUGIN)


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault planted in one trace. `plugin` names the plugin that must fail for it."""

    kind: FaultKind
    plugin: str
