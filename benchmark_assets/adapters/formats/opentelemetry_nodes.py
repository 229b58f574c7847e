"""The spans of one trace as what they are: agents, calls of models, calls of tools.

Belongs here: a span with all that is known of what it records, and which spans record the same
call. Does not belong here: reading attributes (`opentelemetry_attributes`) and messages
(`opentelemetry_messages`), and the snapshot (`opentelemetry`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from benchmark_assets.adapters.formats.base import id_or_none, text_or_none
from benchmark_assets.adapters.formats.langfuse_values import unwrap
from benchmark_assets.adapters.formats.messages import as_dict
from benchmark_assets.adapters.formats.opentelemetry_attributes import (
    MAF,
    MODEL_NAMES,
    Kind,
    agent_name,
    attribute_finish_reason,
    failure_of,
    kind_of,
    message_finish_reason,
    reported_usage,
    response_id,
    text_at,
)
from benchmark_assets.adapters.formats.opentelemetry_messages import Said, said_in, said_in_tool
from benchmark_assets.adapters.formats.opentelemetry_spans import Span
from benchmark_assets.adapters.span_record import NodeKind, SpanNode, model_calls

START = datetime.min.replace(tzinfo=UTC)
"""Stands for a start that is not known."""

_NODE_KINDS: dict[Kind, NodeKind] = {
    "agent": "agent",
    "workflow": "agent",  # of the conventions' one kind of span for both
    "executor": "executor",
    "model": "model",
    "tool": "tool",
}


class Node:
    """A span with what it is and holds.

    Attributes:
        counted: The attributes that hold its usage: its own, or those of another span that
            records the same call.
        repeats: Whether another span stands for it.
    """

    def __init__(self, span: Span) -> None:
        self.span = span
        self.attributes = dict(span.attributes)
        self.kind = kind_of(span)
        self.said = said_in_tool(span) if self.kind == "tool" else said_in(span)
        self.failed, self.message = failure_of(span)
        self.counted = span.attributes
        self.repeats = False

    def take(self, other: Node) -> None:
        """Take what only another span knows of the same call; that one is then none itself."""
        self.attributes = {**other.attributes, **self.attributes}
        self.said = Said(
            other.said.input if self.said.input is None else self.said.input,
            other.said.output if self.said.output is None else self.said.output,
        )
        other.repeats = True

    @property
    def finish_reason(self) -> str | None:
        """Why it ended, by its attributes, else by its last output message."""
        known = attribute_finish_reason(self.attributes)
        if known is None and self.kind in ("model", "agent", "workflow"):
            said = self.span.attributes.get("pydantic_ai.all_messages")
            known = message_finish_reason(self.said.output) or message_finish_reason(said)
        return known


# Both sides of the workflow.


def name_subagents(nodes: Sequence[Node]) -> None:
    """Name agents that a tool starts by the kind of agent that it was asked for.

    Claude's sub-agents are all called `Agent` in their spans, and `research-specialist` in the
    arguments of the tool that starts them.
    """
    tools = {node.span.id: node for node in nodes if node.kind == "tool"}
    for node in nodes:
        starter = tools.get(node.span.parent_id or "")
        if node.kind == "agent" and starter is not None:
            arguments = as_dict(unwrap(starter.said.input))
            asked = text_or_none(arguments.get("subagent_type"))
            if asked is not None:
                node.attributes["gen_ai.agent.name"] = asked


def span_node(node: Node, *, is_maf: bool) -> SpanNode:
    """A span for `span_record`.

    *Derived*: the Microsoft Agent Framework, known by its scope, adds up an agent's usage from the
    very spans of its calls, while its `AgentResponse` may say something else, so that the two
    agree whatever the framework reports. Of no other framework is that known. pydantic-ai's
    `aggregated_usage` is a sum as well, but that of the run's own account: what its user reads as
    the run's usage and what its limits are held against, added up from responses as the agent
    sees them. Calls that a model wrapper makes and drops are not in it, so it can be wrong, and
    agreeing says something.

    Args:
        node: The span.
        is_maf: Whether it is the Microsoft framework's if its scope is not written down, as the
            SDK's console exporter leaves it out: no other framework has spans of executors.
    """
    span, attributes = node.span, node.attributes
    kind = _NODE_KINDS.get(node.kind, "other")
    speaks = kind in ("agent", "model")
    return SpanNode(
        id=span.id,
        parent_id=span.parent_id,
        name=span.name,
        kind=kind,
        executor=name_of(node) if kind in ("agent", "executor") else None,
        usage=reported_usage(attributes) if speaks else None,
        finish_reason=node.finish_reason if speaks else None,
        derived=kind == "agent" and (is_maf if span.scope is None else span.scope == MAF),
        response_id=response_id(attributes) if kind == "model" else None,
        model=text_at(attributes, *MODEL_NAMES),
        error=(node.message or "failed") if node.failed else None,
        started_at=span.start,
    )


def name_of(node: Node) -> str:
    """An executor's id, an agent's name."""
    named = text_or_none(node.attributes.get("gen_ai.agent.name"))
    if node.kind == "executor":
        return id_or_none(node.attributes.get("executor.id")) or node.span.name
    return named or agent_name(node.span)


# One call recorded twice.


def unify_model_calls(nodes: Sequence[Node], tree: Sequence[SpanNode]) -> None:
    """Make one of the spans that record one call of a model, with the usage that counts."""
    by_id = {node.span.id: node for node in nodes}
    for call in model_calls(tree):
        kept = by_id[call.node.id]
        others = [by_id[other] for other in call.duplicates]
        for node in (kept, *others):
            if call.node.usage is not None and reported_usage(node.counted) == call.node.usage:
                kept.counted = node.counted
                break
        for other in others:
            kept.take(other)
        if call.node.finish_reason is not None:
            kept.attributes["gen_ai.response.finish_reasons"] = [call.node.finish_reason]
        if call.node.response_id is not None:
            kept.attributes["gen_ai.response.id"] = call.node.response_id


def unify_tool_calls(nodes: Sequence[Node]) -> None:
    """Make one of the spans of a tool under one call id that overlap in time."""
    first: dict[tuple[str, str], Node] = {}
    for node in nodes:
        attributes = node.span.attributes
        call_id = text_at(attributes, "gen_ai.tool.call.id", "tool.id", "tool_call.id")
        name = text_at(attributes, "gen_ai.tool.name", "tool.name")
        if node.kind != "tool" or call_id is None or name is None:
            continue
        known = first.setdefault((name, call_id), node)
        if known is node:
            continue
        if known.span.end is None or (node.span.start or START) < known.span.end:
            known.take(node)
            known.failed = known.failed or node.failed
            known.message = known.message or node.message
        else:
            first[name, call_id] = node
