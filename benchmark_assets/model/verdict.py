"""Verdicts: what judging one trace by one contract gave, check by check.

Belongs here: checks, plugin results, the run row as it is stored. Does not belong here: making
them (`scoring`) or counting them (`leaderboard`).

"Check" is the row a plugin emits. Dagster's checks are called asset checks.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

# `gc=False`: verdicts hold texts and numbers and so cannot be part of a cycle; millions of them
# must not be looked at by every garbage collection.

Outcome = Literal["resolved", "unresolved", "unchecked", "error"]
OUTCOMES: tuple[Outcome, ...] = ("resolved", "unresolved", "unchecked", "error")

CheckOutcome = Literal["passed", "failed", "skipped", "error", "info"]

ORDER_UNKNOWN = "order unknown"
"""How `observed` ends of a check that passed since a question was asked, nobody knows when."""


class Where(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A place in a trace: the source's span id, and the index of the tool call (from 0)."""

    span_id: str | None = None
    call: int | None = None


class Check(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One named thing that a plugin looked at.

    Attributes:
        name: What was checked, stable over runs: `required: get_order`.
        outcome: `passed` and `failed` score; `skipped`, `info` and `error` do not.
        expected: What the contract demands, in words.
        observed: What the trace shows, in words.
        reason: Why it did not pass; None on a pass.
        where: The place in the trace that decided it.
    """

    name: str
    outcome: CheckOutcome
    expected: str | None = None
    observed: str | None = None
    reason: str | None = None
    where: Where | None = None


class PluginResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one plugin found. `error` is set, and nothing else, when the plugin itself raised."""

    plugin: str
    checks: tuple[Check, ...] = ()
    error: str | None = None

    @property
    def scored(self) -> tuple[Check, ...]:
        """The checks that passed or failed."""
        return tuple(check for check in self.checks if check.outcome in ("passed", "failed"))

    @property
    def passed(self) -> bool | None:
        """Whether every scored check passed; None if nothing was scored."""
        scored = self.scored
        return all(check.outcome == "passed" for check in scored) if scored else None

    @property
    def score(self) -> float | None:
        """Share of scored checks that passed; diagnostic, ranks nothing."""
        outcomes = [check.outcome for check in self.checks]
        passed = outcomes.count("passed")
        scored = passed + outcomes.count("failed")
        return passed / scored if scored else None


class Verdict(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One trace under one contract.

    Attributes:
        outcome: *Resolved* iff every scored plugin passed and the contract's own demands made
            at least one check; *unchecked* if they made none; *error* if it could not be
            evaluated; else *unresolved*.
        score: Mean of the scored plugins' scores, None if none scored. Diagnostic only.
        reason: The first failure or the error in words; None on a clean run.
    """

    outcome: Outcome
    score: float | None
    plugins: tuple[PluginResult, ...]
    reason: str | None = None


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """One run as stored under `runs/`: identity, verdict and usage of a trace under a contract.

    Tokens are counts, `cost_usd` US dollars, `duration_ms` milliseconds; None is unknown.
    """

    date: str
    trace_id: str
    model: str
    contract: str
    contract_version: str
    contract_name: str
    workflow: str
    group: str
    task: str | None
    trial: int
    outcome: Outcome
    score: float | None
    reason: str | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_tokens: int | None
    cache_write_tokens: int | None
    reasoning_tokens: int | None
    cost_usd: float | None
    cost_estimated: bool
    duration_ms: int | None
    started_at: datetime | None
    user_id: str | None
    session_id: str | None
    agents: tuple[str, ...]
    tool_calls: int
    file: str
    sha256: str
    record: str | None
    contract_sha256: str
    engine: str
    plugins: tuple[PluginResult, ...]
