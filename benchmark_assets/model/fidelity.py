"""Workflow fidelity: what a multi-agent framework reports of its executors, and what was used.

Belongs here: the two sides that are compared, whatever file, server or live run they come from,
and what comparing them gave. Does not belong here: reading them (`adapters`) or comparing them
(`scoring/trace_fidelity`).

An *executor* is a node of a workflow. Its *ledger* is what the framework reported for it: tokens
and finish reason, an entry each time the executor was invoked. Its *chat truth* are the calls of
models that were made on its behalf, a turn each, as they were seen at the boundary to the model.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from benchmark_assets.model.verdict import Check

FidelityOutcome = Literal["PASS", "WARN", "FAIL", "PENDING"]
"""What comparing both sides came to; PENDING: nothing was compared, which is no pass."""

Preset = Literal["smoke", "standard", "audit-grade"]
PRESETS: tuple[Preset, ...] = ("smoke", "standard", "audit-grade")
"""What a run was for. It is stored, and changes no verdict."""

Severity = Literal["critical", "warning", "unchecked", "inapplicable", "none"]
"""What a verdict does to the outcome; `unchecked` withholds a pass, `inapplicable` nothing."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token counts as both sides report them. None is unknown, never 0.

    Unlike the disjoint buckets of `model.trace.Tokens`, `input` counts cached tokens in and
    `output` reasoning: frameworks report sums, and a part that is unknown must not make the sum
    unknown. `total` is the reported total, or the sum of what is known of input and output.
    """

    input: int | None = None
    output: int | None = None
    total: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class LedgerEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the framework reported for one invocation of one executor.

    Attributes:
        executor: The executor's id as the source writes it.
        invocation: Pairs it with the turns made in it, where the source says; else None.
        usage: None if the framework reported no usage for it.
        finish_reason: As reported, raw; None if it reported none.
        calls: How many model calls the framework says were made in it.
        derived: Whether the source computes the entry from the very turns it is compared with,
            so that agreement proves only that no turn is missing.
        error: The executor's failure, if it failed.
    """

    executor: str
    invocation: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    calls: int | None = None
    derived: bool = False
    error: str | None = None
    span_id: str | None = None


class ModelTurn(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a model on behalf of an executor, as seen at the boundary to the model.

    Attributes:
        executor: The executor it was made for.
        invocation: The invocation it was made in, where the source says.
        usage: None if the provider reported none. A call that failed midway keeps what had been
            reported until then, which is a lower bound of what it used.
        finish_reason: As the provider wrote it, raw.
        error: The failure's message, if the call failed.
        response_id: The provider's id; the same call recorded twice has it twice.
    """

    executor: str
    invocation: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    error: str | None = None
    model: str | None = None
    response_id: str | None = None
    started_at: datetime | None = None
    span_id: str | None = None


class WorkflowRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of a workflow, with both sides.

    Attributes:
        name: The workflow's or the trace's name.
        executors: Ids of all executors, in the source's order; more may occur in the entries.
        ledger: In the order in which the framework reported them.
        turns: In the order in which the calls were made.
        traced: Executors for which chat truth was recorded at all. One that is not in it has
            unknown truth; one that is and has no turn made no model call. None: the source
            records every call of a model, so an executor without turns made none.
        endings: Whether the source's ledger says how executors ended. False: nothing in it does,
            so an entry without a finish reason claims nothing.
        problem: Why the two sides cannot be compared; None if they can.
    """

    name: str | None = None
    executors: tuple[str, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()
    turns: tuple[ModelTurn, ...] = ()
    traced: tuple[str, ...] | None = None
    endings: bool = True
    problem: str | None = None


class ToolUse(msgspec.Struct, frozen=True):
    """One call of a tool; `arguments` is JSON text as recorded, None if none was."""

    name: str
    arguments: str | None = None


class Reply(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One response of an agent, or of the model it called."""

    usage: Usage | None = None
    finish_reason: str | None = None
    tools: tuple[ToolUse, ...] = ()
    error: str | None = None


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One side of a single agent's run: what the agent reported, or what its model calls were.

    `tokens` is a total that the recorder wrote beside the replies; None if it wrote none.
    """

    name: str | None = None
    replies: tuple[Reply, ...] = ()
    tokens: int | None = None


class ExecutorFidelity(msgspec.Struct, frozen=True, kw_only=True):
    """What comparing the two sides of one executor gave.

    Attributes:
        executor_id: As the source first writes it.
        verdict: A class of the rule set.
        severity: What the verdict does to the outcome.
        score: From 0 to 1; None if the executor was not compared.
        ledger_tokens: Total that the framework reported; None if it reported none.
        truth_tokens: Total that the model calls used; None if that is not known.
        ledger_finish: The last finish reason reported, raw.
        truth_finish: The last finish reason of a model call, raw.
        checks: Every comparison that was made, for who disputes the verdict.
    """

    executor_id: str
    verdict: str
    severity: Severity
    score: float | None
    ledger_tokens: int | None = None
    truth_tokens: int | None = None
    ledger_finish: str | None = None
    truth_finish: str | None = None
    checks: tuple[Check, ...] = ()

    @property
    def reason(self) -> str | None:
        """What is wrong, in words; None if nothing is."""
        if self.severity == "none":
            return None
        diverges = self.severity in ("critical", "warning")
        wanted = ("failed", "error") if diverges else ("skipped",)
        reasons = [c.reason for c in self.checks if c.outcome in wanted and c.reason]
        if not diverges:
            # The first says why it was not compared, the others what could not be.
            del reasons[1:]
        return "; ".join(reasons) or None


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a run was compared.

    Attributes:
        executors: Executors that could have been compared; those that called no model could not.
        checked: How many of them were.
        truth_tokens: Tokens of all model calls in the source; None if none is known.
        checked_tokens: Tokens of those whose executor was compared.
    """

    executors: int
    checked: int
    truth_tokens: int | None = None
    checked_tokens: int | None = None

    @property
    def share(self) -> float | None:
        """Share of executors that were compared; None if there is none."""
        return self.checked / self.executors if self.executors else None

    @property
    def token_share(self) -> float | None:
        """Share of the truth's tokens that was compared; None if no token is known."""
        if not self.truth_tokens or self.checked_tokens is None:
            return None
        return self.checked_tokens / self.truth_tokens


class WorkflowFidelity(msgspec.Struct, frozen=True, kw_only=True):
    """What comparing the two sides of a workflow gave.

    Attributes:
        rules: Name of the rule set.
        score: Mean of the executors that have one; None if none has.
        reason: Why the outcome is no PASS; None if it is one.
        notes: What the reader should know besides.
    """

    rules: str
    outcome: FidelityOutcome
    score: float | None
    coverage: Coverage
    executors: tuple[ExecutorFidelity, ...]
    reason: str | None = None
    notes: tuple[str, ...] = ()


class DivergenceClass(msgspec.Struct, frozen=True, kw_only=True):
    """One of the ways in which a single agent's report can diverge, and how often it did.

    `score` is 1 where it never did; it enters the whole with `weight`.
    """

    name: str
    severity: str
    count: int
    score: float
    weight: float
    check: Check


class AgentFidelity(msgspec.Struct, frozen=True, kw_only=True):
    """What comparing a single agent's report with its model calls gave.

    `classes` is empty and `score` None if there is no model call to compare with.
    """

    rules: str
    outcome: FidelityOutcome
    score: float | None
    agent_tokens: int | None
    chat_tokens: int | None
    chat_turns: int
    classes: tuple[DivergenceClass, ...] = ()
    reason: str | None = None


class FidelityRow(msgspec.Struct, frozen=True, kw_only=True):
    """One executor of one trace as stored under `fidelity/`.

    Attributes:
        date: The trace's day (`YYYY-MM-DD`, UTC).
        trace_outcome: What the whole trace came to; repeated for each of its executors, as are
            `trace_score` and `trace_reason`.
        executor: As the source first writes it; empty in the one row of a trace whose record names
            no executor.
        score, reason: The executor's own.
        source, source_file: Where the trace is held: the source's name, and its file.
        file, sha256, record: The bytes that the trace came from.
        rules, rules_version: What it was compared by.
        checks: Every comparison that was made; empty where rows are read without them.
    """

    date: str
    trace_id: str
    model: str
    workflow: str | None
    task: str | None
    trial: int | None
    trace_outcome: FidelityOutcome
    trace_score: float | None
    trace_reason: str | None
    executor: str
    verdict: str
    severity: Severity
    score: float | None
    reason: str | None
    ledger_tokens: int | None
    truth_tokens: int | None
    ledger_finish: str | None
    truth_finish: str | None
    source: str
    source_file: str
    file: str
    sha256: str
    record: str | None
    rules: str
    rules_version: str
    checks: tuple[Check, ...] = ()


class FidelityRun(msgspec.Struct, frozen=True, kw_only=True):
    """One comparison as it is stored.

    Attributes:
        family: Which kind of comparison; `cost_tier` is the family's.
        subject: What was compared, as the user calls it.
        version: Of the rules.
        score: None for PENDING.
        coverage: Share of executors that were compared, from 0 to 1; None if there are none.
        token_coverage: Share of the truth's tokens; None if no token is known.
        sha256: Hash of the file with the ledger, or with both sides.
        truth_sha256: Hash of the file with the truth, where that is another one.
    """

    family: str
    cost_tier: str
    preset: str
    subject: str
    rules: str
    version: str
    outcome: FidelityOutcome
    score: float | None
    coverage: float | None
    token_coverage: float | None
    reason: str | None
    sha256: str
    truth_sha256: str | None = None
