"""Both sides of a workflow from the rows of one Langfuse trace.

Belongs here: which rows report for an agent, what they report, and which of Langfuse's counts of
a generation can be held against it. Does not belong here: what a generation is and what it used
(`langfuse_rows`, `langfuse_calls`: the truth is made of theirs), whose a call is (`span_record`).

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
from benchmark_assets.adapters.span_record import SpanNode, workflow_record
from benchmark_assets.model.fidelity import Usage, WorkflowRecord
from benchmark_assets.model.trace import Generation, Tokens

_AGENT_OPERATIONS = frozenset({"invoke_agent", "invoke_workflow", "agent_step"})

_FINISH = ("gen_ai.response.finish_reasons", "ai.response.finishReason", "llm.finish_reason")

_SUMS_UP_SPANS = ("agent_framework",)
"""Scopes of instrumentations whose agents' usage is the sum of the spans inside."""

_OWN_SCOPES = ("langfuse",)
"""Scopes of Langfuse's SDKs, of whose attributes its server keeps none."""


class _Names(NamedTuple):
    """The names of one convention for token counts, without `prefix`, with which all begin.

    `input` counts cached tokens in.
    """

    prefix: str
    input: tuple[str, ...]
    output: tuple[str, ...]
    total: tuple[str, ...]
    cached: tuple[str, ...]
    written: tuple[str, ...]
    reasoning: tuple[str, ...]


_OPENTELEMETRY = _Names(
    prefix="gen_ai.usage",
    input=("input_tokens", "prompt_tokens"),
    output=("output_tokens", "completion_tokens"),
    total=("total_tokens",),
    cached=(
        "cache_read.input_tokens",
        "cache_read_input_tokens",
        "input_tokens.cached",
        "details.cache_read_tokens",
        "details.cached_tokens",
    ),
    written=(
        "cache_write.input_tokens",
        "cache_creation.input_tokens",
        "cache_creation_input_tokens",
        "input_tokens.cache_write",
        "details.cache_write_tokens",
    ),
    reasoning=("reasoning.output_tokens", "output_tokens.reasoning", "details.reasoning_tokens"),
)
"""OpenTelemetry's names as they are and as they were, and what vendors add."""

_CONVENTIONS = (
    # What pydantic-ai calls the sum over a run, lest it is taken for a call's.
    _OPENTELEMETRY._replace(prefix="gen_ai.aggregated_usage"),
    _OPENTELEMETRY,
    _Names(
        prefix="llm.token_count",
        input=("prompt",),
        output=("completion",),
        total=("total",),
        cached=("prompt_details.cache_read",),
        written=("prompt_details.cache_write",),
        reasoning=("completion_details.reasoning",),
    ),
    _Names(
        prefix="ai.usage",
        input=("inputTokens", "promptTokens"),
        output=("outputTokens", "completionTokens"),
        total=("totalTokens",),
        cached=("cachedInputTokens",),
        written=(),
        reasoning=("reasoningTokens",),
    ),
)


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
            derived=_scope(row).startswith(_SUMS_UP_SPANS),
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
    """What a row's attributes say was used; of several conventions, the first that says it."""
    for names in _CONVENTIONS:
        below = look_raw(row.tree, names.prefix)
        counts = dict(_counts(below)) if isinstance(below, dict) else {}
        usage = Usage(
            input=_first(counts, names.input),
            output=_first(counts, names.output),
            total=_first(counts, names.total),
            cached=_first(counts, names.cached),
            reasoning=_first(counts, names.reasoning),
        )
        if any(count is not None for count in (usage.input, usage.output, usage.total)):
            return _Stated(usage, _first(counts, names.written))
    return None


def _counts(tree: dict[str, Any], at: str = "") -> Iterator[tuple[str, int]]:
    """All counts below an attribute, by the rest of their names."""
    for key, value in tree.items():
        # A name that others go on from has its own value under an empty key.
        name = f"{at}.{key}" if at and key else at or key
        if isinstance(value, dict):
            yield from _counts(value, name)
        elif (count := whole_number(unwrap(value))) is not None:
            yield name, count


def _first(counts: dict[str, int], names: tuple[str, ...]) -> int | None:
    return next((counts[name] for name in names if name in counts), None)
