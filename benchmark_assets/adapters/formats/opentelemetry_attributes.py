"""What a span's attributes say it is, and what it used: GenAI conventions and OpenInference.

Belongs here: kinds, names, usage, finish reasons, in the spellings of every version. Does not
belong here: messages (`opentelemetry_messages`), and what the spans of a trace come to
(`opentelemetry`).

The names are those of OpenTelemetry's GenAI conventions, old and new; of OpenInference
(`llm.…`, `openinference.span.kind`); of OpenLLMetry (`traceloop.…`, `llm.usage.…`); of pydantic-ai
and of Sentry (`…input_tokens.cached`).

*Usage.* By the conventions, cached tokens are part of the input and reasoning of the output. Not
all instrumentations follow: where a total says otherwise, or a part is larger than its whole,
they are taken to be beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Literal

from benchmark_assets.adapters.formats.base import amount, text_or_none, whole_number
from benchmark_assets.adapters.formats.langfuse_usage import read_tokens
from benchmark_assets.adapters.formats.langfuse_values import unwrap
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.formats.opentelemetry_spans import Span
from benchmark_assets.model.fidelity import Usage
from benchmark_assets.model.trace import Tokens

Kind = Literal[
    "agent",
    "workflow",
    "executor",
    "model",
    "tool",
    "chain",
    "retriever",
    "embedding",
    "guardrail",
    "evaluator",
    "other",
]

_OPERATIONS: dict[str, Kind] = {
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "completion": "model",
    "generate": "model",
    "invoke_agent": "agent",
    "invoke_workflow": "workflow",
    "execute_tool": "tool",
    "embeddings": "embedding",
    "create_agent": "other",
}
_OPENINFERENCE: dict[str, Kind] = {
    "AGENT": "agent",
    "LLM": "model",
    "TOOL": "tool",
    "CHAIN": "chain",
    "RETRIEVER": "retriever",
    "EMBEDDING": "embedding",
    "GUARDRAIL": "guardrail",
    "EVALUATOR": "evaluator",
}
_TRACELOOP: dict[str, Kind] = {
    "agent": "agent",
    "tool": "tool",
    "workflow": "chain",
    "task": "chain",
}
MODEL_NAMES = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")

_AGENT_NAMES = (
    "gen_ai.agent.name",
    "agent_name",
    "agent.name",
    "graph.node.id",
    "gen_ai.workflow.name",
    "traceloop.entity.name",
)
_AROUND_AGENT = re.compile(r"^(?:invoke_agent|invoke_workflow)\s+(?=\S)|(?<=\S)(?:\.agent| run)$")

_USAGE: dict[str, tuple[str, ...]] = {
    "input": ("input_tokens", "prompt_tokens"),
    "output": ("output_tokens", "completion_tokens"),
    "total": ("total_tokens",),
    "cache_read": (
        "cache_read.input_tokens",
        "cache_read_input_tokens",
        "cache_read_tokens",
        "input_tokens.cached",
        "details.cache_read_tokens",
        "details.cache_read_input_tokens",
    ),
    "cache_write": (
        "cache_write.input_tokens",
        "cache_creation.input_tokens",
        "cache_creation_input_tokens",
        "cache_write_input_tokens",
        "cache_write_tokens",
        "input_tokens.cache_write",
        "details.cache_write_tokens",
        "details.cache_creation_input_tokens",
    ),
    "reasoning": (
        "reasoning.output_tokens",
        "reasoning_tokens",
        "output_tokens.reasoning",
        "details.reasoning_tokens",
    ),
}
_OPENINFERENCE_USAGE: dict[str, tuple[str, ...]] = {
    "input": ("prompt",),
    "output": ("completion",),
    "total": ("total",),
    "cache_read": ("prompt_details.cache_read",),
    "cache_write": ("prompt_details.cache_write",),
    "reasoning": ("completion_details.reasoning",),
}
_PREFIXES: tuple[tuple[str, dict[str, tuple[str, ...]]], ...] = (
    # What an agent's responses come to is written apart, so that nobody adds it to theirs.
    ("gen_ai.aggregated_usage.", _USAGE),
    ("gen_ai.usage.", _USAGE),
    ("llm.token_count.", _OPENINFERENCE_USAGE),
    ("llm.usage.", _USAGE),
)

_COSTS = ("operation.cost", "llm.cost.total", "gen_ai.usage.cost")

MAF = "agent_framework"
"""Scope of the Microsoft Agent Framework's spans."""


def text_at(attributes: dict[str, Any], *names: str) -> str | None:
    """The first of the named attributes that is a text, and not an empty one."""
    return next((text for name in names if (text := text_or_none(attributes.get(name)))), None)


def kind_of(span: Span) -> Kind:
    """What a span is: by its operation or kind if it names one, else by what it carries."""
    attributes = span.attributes
    for table, name in (
        (_OPERATIONS, "gen_ai.operation.name"),
        (_OPENINFERENCE, "openinference.span.kind"),
        (_TRACELOOP, "traceloop.span.kind"),
    ):
        said = text_at(attributes, name)
        if said is not None:
            said = said.upper() if table is _OPENINFERENCE else said.lower()
            if said in table:
                return table[said]
    if "executor.id" in attributes:
        return "executor"
    if text_at(attributes, "gen_ai.tool.name") is not None:
        return "tool"
    if text_at(attributes, "agent_name") is not None:
        return "agent"  # pydantic-ai, before it named its operations
    return "model" if _calls_a_model(attributes) else "other"


def _calls_a_model(attributes: dict[str, Any]) -> bool:
    """Whether a span without an operation is a model's call: ADK's `call_llm`, OpenLLMetry."""
    if text_at(attributes, "llm.request.type") is not None:
        return attributes["llm.request.type"] in ("chat", "completion")
    named = text_at(attributes, *MODEL_NAMES)
    return named is not None and (
        reported_usage(attributes) is not None
        or text_at(attributes, "gen_ai.response.id") is not None
        or attribute_finish_reason(attributes) is not None
    )


def agent_name(span: Span) -> str:
    """An agent's name, else its span's without what instrumentations put around it."""
    named = text_at(span.attributes, *_AGENT_NAMES)
    return named or _AROUND_AGENT.sub("", span.name) or span.name


# Usage.


def usage_details(attributes: dict[str, Any]) -> dict[str, Any]:
    """The token counts of a span as they are reported, with parts under their whole.

    Empty if there is none. The first naming scheme that has any counts: two that are both there
    say the same.
    """
    for prefix, names in _PREFIXES:
        counts = {
            part: count
            for part, spellings in names.items()
            if (count := _count(attributes, prefix, spellings)) is not None
        }
        if counts:
            break
    else:
        return {}
    if "total" not in counts:
        total = _count(attributes, "llm.usage.", ("total_tokens",))
        counts |= {} if total is None else {"total": total}
    details: dict[str, Any] = {
        part: counts[part] for part in ("input", "output", "total") if part in counts
    }
    inward = {part: counts[part] for part in ("cache_read", "cache_write") if part in counts}
    if inward:
        details["input_details"] = inward
    if "reasoning" in counts:
        details["output_details"] = {"reasoning": counts["reasoning"]}
    return details


def _count(attributes: dict[str, Any], prefix: str, names: Iterable[str]) -> int | None:
    for name in names:
        count = whole_number(attributes.get(prefix + name))
        if count is not None:
            return count
    return None


def reported_usage(attributes: dict[str, Any]) -> Usage | None:
    """A span's usage with cached tokens in the input and reasoning in the output."""
    details = usage_details(attributes)
    if not details:
        return None
    tokens = read_tokens(details)
    total = details.get("total")
    spent = (
        _add(tokens.input, tokens.cache_read, tokens.cache_write) if ("input" in details) else None
    )
    made = _add(tokens.output, tokens.reasoning) if "output" in details else None
    if spent is not None and made is not None:
        total = spent + made
    return Usage(
        input=spent,
        output=made,
        total=total if total is not None else _add(spent, made),
        cached=tokens.cache_read,
        reasoning=tokens.reasoning,
    )


def reported_tokens(attributes: dict[str, Any]) -> Tokens:
    """A span's usage in disjoint buckets."""
    return read_tokens(usage_details(attributes))


def _add(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def cost_of(attributes: dict[str, Any]) -> float | None:
    """What a call cost in US dollars, where its instrumentation knows the price."""
    return next((cost for name in _COSTS if (cost := amount(attributes.get(name)))), None)


# Endings.


def attribute_finish_reason(attributes: dict[str, Any]) -> str | None:
    """Why a response ended: of several choices the first, as a list, as JSON, or as a text."""
    for name in ("gen_ai.response.finish_reasons", "llm.finish_reason"):
        reason = _one(unwrap(attributes.get(name)))
        if reason is not None:
            return reason
    return text_at(attributes, "gen_ai.completion.0.finish_reason", "gen_ai.response.finish_reason")


def _one(given: Any) -> str | None:
    items = given if isinstance(given, list) else [given]
    return next((item for item in items if isinstance(item, str) and item), None)


def message_finish_reason(given: Any) -> str | None:
    """Why the last of a span's output messages ended, where they say so."""
    value = unwrap(given)
    messages = value if isinstance(value, list) else [value]
    for message in reversed(messages):
        fields = as_dict(message)
        reason = text_or_none(fields.get("finish_reason"))
        if reason is not None:
            return reason
        choices = as_list(fields.get("choices"))
        if choices:
            return text_or_none(as_dict(choices[0]).get("finish_reason"))
    return None


def response_id(attributes: dict[str, Any]) -> str | None:
    """The provider's id of a response, which OpenInference keeps only inside the output."""
    known = text_at(attributes, "gen_ai.response.id")
    return known or text_or_none(as_dict(unwrap(attributes.get("output.value"))).get("id"))


def failure_of(span: Span) -> tuple[bool, str | None]:
    """Whether a span failed, and what it says about that."""
    attributes = span.attributes
    kind = text_at(attributes, "error.type")
    failed = span.failed or kind is not None
    said = span.message or text_at(attributes, "error.message", "exception.message")
    for event in span.events:
        if event.name == "exception":
            failed_with = text_at(event.attributes, "exception.message")
            kind = kind or text_at(event.attributes, "exception.type")
            said = said or failed_with
    return failed, (said or kind) if failed else None
