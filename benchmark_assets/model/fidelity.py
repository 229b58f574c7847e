"""Workflow fidelity: what a multi-agent framework reports of its executors, and what was used.

Belongs here: the two sides that are compared, whatever file, server or live run they come from.
Does not belong here: reading them (`adapters`) or comparing them (`scoring/trace_fidelity`).

An *executor* is a node of a workflow. Its *ledger* is what the framework reported for it: tokens
and finish reason, an entry each time the executor was invoked. Its *chat truth* are the calls of
models that were made on its behalf, a turn each, as they were seen at the boundary to the model.
"""

from __future__ import annotations

from datetime import datetime

import msgspec


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
        usage: None if the provider reported none, or the call failed.
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
        problem: Why the two sides cannot be compared; None if they can.
    """

    name: str | None = None
    executors: tuple[str, ...] = ()
    ledger: tuple[LedgerEntry, ...] = ()
    turns: tuple[ModelTurn, ...] = ()
    traced: tuple[str, ...] | None = None
    problem: str | None = None
