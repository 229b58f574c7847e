"""Both sides of a workflow from the rows of one Langfuse trace.

Belongs here: which rows report for an agent, what they report, and which of Langfuse's counts of
a generation can be held against it. Does not belong here: what a generation is and what it used
(`langfuse_rows`, `langfuse_calls`: the truth is made of theirs), whose a call is (`span_record`),
how attributes are spelt (`opentelemetry_attributes`).

*Ledger.* Rows of type AGENT, and spans that their instrumentation marks as agents. Langfuse drops
the usage of agents' spans from `usageDetails`, lest costs count twice; what the framework wrote
survives among the attributes in the row's metadata. `usageDetails` of such a row are a report
only where they cannot be Langfuse's own count: it counted the text of a row with a known model
that brought no usage, and what it counts is the conversation once, not what each call was sent.

*Truth.* The generations of the snapshot. What one used is read from its attributes where they
have it, since the same instrumentation means the same by them in an agent's row; else from the
buckets of `usageDetails`. The two differ where Langfuse took cached tokens out of an input that
did not count them in, which leaves 0 and too small a sum: such buckets are no measurement. Nor is
Langfuse's own count of a generation's text.

Executors are the agents by name; where Microsoft's Agent Framework ran them, its executors. What
its agents' spans report is summed up from the spans of their model calls, so it is derived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmark_assets.adapters.formats.base import id_or_none, text_or_none, whole_number
from benchmark_assets.adapters.formats.langfuse_rows import ModelCall, Row, error_text
from benchmark_assets.adapters.formats.langfuse_usage import (
    counts_only_whole,
    row_model,
    row_tokens,
)
from benchmark_assets.adapters.formats.langfuse_values import (
    first,
    look,
    look_raw,
    look_text,
    unwrap,
)
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.formats.opentelemetry_attributes import MAF, usage_details
from benchmark_assets.adapters.span_record import SpanNode, workflow_record
from benchmark_assets.model.fidelity import Usage, WorkflowRecord
from benchmark_assets.model.trace import Generation, Tokens

_AGENT_OPERATIONS = frozenset({"invoke_agent", "invoke_workflow", "agent_step"})

_FINISH = ("gen_ai.response.finish_reasons", "ai.response.finishReason", "llm.finish_reason")

_OWN_SCOPES = ("langfuse",)
"""Scopes of Langfuse's SDKs, of whose attributes its server keeps none."""

_USAGE = ("gen_ai.aggregated_usage", "gen_ai.usage", "llm.token_count", "llm.usage", "ai.usage")
"""What the names of all attributes with token counts begin with."""

_VERCEL = {
    "input": ("ai.usage.inputTokens", "ai.usage.promptTokens"),
    "output": ("ai.usage.outputTokens", "ai.usage.completionTokens"),
    "total": ("ai.usage.totalTokens",),
    "cache_read": ("ai.usage.cachedInputTokens",),
    "reasoning": ("ai.usage.reasoningTokens",),
}
"""The names that only Vercel's AI SDK has."""


class _Stated(NamedTuple):
    """What a row's attributes say was used; `written` counts tokens written to a cache."""

    usage: Usage
    written: int | None

    @property
    def with_cache(self) -> Usage:
        """The usage with cached tokens in the input, where they plainly are not in it."""
        usage = self.usage
        apart = (usage.cached or 0) + (self.written or 0)
        if usage.input is None or usage.total is not None or apart <= usage.input:
            return usage
        return Usage(
            input=usage.input + apart,
            output=usage.output,
            cached=usage.cached,
            reasoning=usage.reasoning,
        )


def read_ledger(
    rows: Sequence[Row],
    model: Sequence[ModelCall],
    generations: Sequence[Generation],
    name: str | None = None,
) -> WorkflowRecord | None:
    """Both sides of a trace.

    Args:
        rows: Of one trace, in order.
        model: Its generations' rows, and what came of each, in the same order.
        generations: As the snapshot has them.
        name: The trace's name.

    Returns:
        None if no agent reports anything.
    """
    ids = {id(row): row.id or f"row {index}" for index, row in enumerate(rows)}
    calls = {id(call.row): pair for call, pair in _measured(model, generations)}
    like_ledger = all(stated for stated, _, _ in calls.values())
    nodes: list[SpanNode] = []
    for row in rows:
        parent = None if row.parent is None else ids[id(row.parent)]
        if id(row) in calls:
            _, usage, generation = calls[id(row)]
            nodes.append(_call(row, ids[id(row)], parent, usage, generation))
        else:
            nodes.append(_node(row, ids[id(row)], parent, like_ledger=like_ledger))
    return workflow_record(nodes, name)


def _node(row: Row, row_id: str, parent: str | None, *, like_ledger: bool) -> SpanNode:
    """A row that is no call of a model."""
    executor = id_or_none(look(row.tree, "executor.id"))
    error = (error_text(row) or "failed") if row.failed else None
    if _is_agent(row):
        return SpanNode(
            id=row_id,
            parent_id=parent,
            name=row.name,
            kind="agent",
            executor=row.own_agent,
            usage=_reported(row, like_ledger=like_ledger),
            finish_reason=_reason(look(row.tree, *_FINISH)),
            derived=_scope(row).startswith(MAF),
            error=error,
            started_at=row.start,
        )
    return SpanNode(
        id=row_id,
        parent_id=parent,
        name=row.name,
        kind="executor" if executor is not None else "tool" if row.is_tool else "other",
        executor=executor,
        error=error,
        started_at=row.start,
    )


def _call(
    row: Row, row_id: str, parent: str | None, usage: Usage | None, generation: Generation
) -> SpanNode:
    return SpanNode(
        id=row_id,
        parent_id=parent,
        name=row.name,
        kind="model",
        usage=usage,
        finish_reason=generation.finish_reason or _finish_reason(row),
        response_id=generation.response_id,
        model=generation.model,
        error=(error_text(row) or "failed") if row.failed else None,
        started_at=row.start,
    )


def _scope(row: Row) -> str:
    return text_or_none(as_dict(unwrap(row.tree.get("scope"))).get("name")) or ""


# Agents.


def _is_agent(row: Row) -> bool:
    """Whether a row stands for an agent's work: by its type, its marks, or what it reports."""
    if row.type == "AGENT":
        return True
    if row.is_generation or row.is_tool or row.type == "EMBEDDING":
        return False
    operation = look_text(row.tree, "gen_ai.operation.name")
    if operation in _AGENT_OPERATIONS or row.kind == "agent":
        return True
    return row.own_agent is not None and _stated(row) is not None


def _reported(row: Row, *, like_ledger: bool) -> Usage | None:
    """What an agent's row reports that was used.

    `like_ledger`: the calls it is held against are read from attributes, too; then the numbers
    are left as the instrumentation means them.
    """
    stated = _stated(row)
    if stated is not None:
        return stated.usage if like_ledger else stated.with_cache
    if row_model(row.raw, row.tree) is not None and counts_only_whole(row.raw):
        return None  # Langfuse may have counted it itself
    return _usage(row_tokens(row.raw, row.tree))


# Calls of models.


def _measured(
    model: Sequence[ModelCall], generations: Sequence[Generation]
) -> Iterator[tuple[ModelCall, tuple[bool, Usage | None, Generation]]]:
    """Each call with its generation and what it used, and whether attributes say so."""
    for call, generation in zip(model, generations, strict=True):
        row = call.row
        if call.stands_for is not None and row_tokens(row.raw, row.tree).total is None:
            row = call.stands_for
        stated = _stated(row)
        if stated is not None and None not in (stated.usage.input, stated.usage.output):
            yield call, (True, stated.usage, generation)
        elif _is_estimate(row) or _is_floored(generation.tokens):
            yield call, (False, None, generation)
        else:
            yield call, (False, _usage(generation.tokens), generation)


def _is_estimate(row: Row) -> bool:
    """Whether Langfuse counted the text itself: attributes came, and none of them is usage."""
    attributes = as_dict(unwrap(row.tree.get("attributes")))
    return (
        bool(attributes)
        and counts_only_whole(row.raw)
        and row_model(row.raw, row.tree) is not None
        and not _scope(row).startswith(_OWN_SCOPES)
        and not any("usage" in name or "token_count" in name for name in _names(attributes))
    )


def _names(tree: dict[str, Any]) -> Iterator[str]:
    for key, value in tree.items():
        yield key.lower()
        if isinstance(value, dict):
            yield from _names(value)


def _is_floored(tokens: Tokens) -> bool:
    """Whether more cached tokens were taken out of the input than it counted in.

    A provider that counts them in never reports that all of an input was cached.
    """
    return tokens.input == 0 and bool(tokens.cache_read or tokens.cache_write)


def _usage(tokens: Tokens) -> Usage | None:
    """Disjoint buckets as sums; None if nothing is known."""
    if tokens.total is None:
        return None
    return Usage(
        input=_sum(tokens.input, tokens.cache_read, tokens.cache_write),
        output=_sum(tokens.output, tokens.reasoning),
        total=tokens.total,
        cached=tokens.cache_read,
        reasoning=tokens.reasoning,
    )


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _finish_reason(row: Row) -> str | None:
    """Where the snapshot's generation has none: what Langfuse made of it, or LangChain's answer."""
    parameters = as_dict(unwrap(row.raw.get("modelParameters")))
    answer = as_dict(row.output)
    inner = as_dict(answer.get("kwargs")) or answer
    about = as_dict(inner.get("response_metadata")) or as_dict(inner.get("additional_kwargs"))
    return (
        _reason(parameters.get("finishReason"))
        or _reason(look(row.tree, "llm.finish_reason"))
        or _reason(first(about, "finish_reason", "stop_reason"))
    )


def _reason(value: Any) -> str | None:
    """A finish reason, or the last of a list in any encoding: what it ended with."""
    value = unwrap(value)
    items = as_list(value) if isinstance(value, list) else [value]
    return next((reason for item in reversed(items) if (reason := text_or_none(item))), None)


# Attributes.


def _stated(row: Row) -> _Stated | None:
    """What a row's attributes say was used, as they say it."""
    counts: dict[str, int] = {}
    for prefix in _USAGE:
        below = look_raw(row.tree, prefix)
        if isinstance(below, dict):
            counts |= _counts(below, prefix)
    details = usage_details(counts) or _vercels(counts)
    inward, outward = as_dict(details.get("input_details")), as_dict(details.get("output_details"))
    usage = Usage(
        input=details.get("input"),
        output=details.get("output"),
        total=details.get("total"),
        cached=inward.get("cache_read"),
        reasoning=outward.get("reasoning"),
    )
    if usage.input is None and usage.output is None and usage.total is None:
        return None
    return _Stated(usage, inward.get("cache_write"))


def _counts(tree: dict[str, Any], at: str) -> Iterator[tuple[str, int]]:
    """All counts below an attribute, each under its whole name."""
    for key, value in tree.items():
        # A name that others go on from has its own value under an empty key.
        name = f"{at}.{key}" if key else at
        if isinstance(value, dict):
            yield from _counts(value, name)
        elif (count := whole_number(unwrap(value))) is not None:
            yield name, count


def _vercels(counts: dict[str, int]) -> dict[str, Any]:
    known = {
        part: next((counts[name] for name in names if name in counts), None)
        for part, names in _VERCEL.items()
    }
    inward, outward = known.pop("cache_read"), known.pop("reasoning")
    return {
        **known,
        "input_details": {"cache_read": inward},
        "output_details": {"reasoning": outward},
    }
