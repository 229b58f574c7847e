"""OpenTelemetry spans of agents: the GenAI conventions, and OpenInference.

Spans are grouped by their trace over the whole file: one snapshot a trace. A trace whose spans are
spread over several files is not put together.

A span is read as the observation that it would be (`langfuse_rows`), so that whatever holds for a
trace there, what is one call and what is a failure, holds here too. What is different is how it is
known: by attributes (`opentelemetry_attributes`), from containers (`opentelemetry_spans`), with
messages in attributes and events (`opentelemetry_messages`).

Belongs here: what the spans of one trace come to.

*Instrumented twice*, by the framework and by the provider's client, a call of a model or a tool
is one all the same: `span_record` finds which spans record the same call of a model; spans of one
tool under one call id that overlap in time are one call of it. What only one of them knows is the
call's.

*Failures of transport* (HTTP, databases, queues) are those of what called them, if it did not
recover, and are listed nowhere else.

*Tokens* are those of the calls of models. A trace that records none has the sum that its outermost
agents report, since they know it from their models; what that is worth, its fidelity says.

*Metadata* is that of the process (`service.name` and the like, except what only tells where it
ran) and the short attributes of the trace's root, by their dotted names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import TraceFile, id_or_none, text_or_none
from benchmark_assets.adapters.formats.langfuse import read_trace
from benchmark_assets.adapters.formats.langfuse_values import unwrap
from benchmark_assets.adapters.formats.messages import as_list
from benchmark_assets.adapters.formats.opentelemetry_attributes import (
    MODEL_NAMES,
    Kind,
    cost_of,
    reported_tokens,
    text_at,
    usage_details,
)
from benchmark_assets.adapters.formats.opentelemetry_messages import CONTENT
from benchmark_assets.adapters.formats.opentelemetry_nodes import (
    START,
    Node,
    name_of,
    name_subagents,
    span_node,
    unify_model_calls,
    unify_tool_calls,
)
from benchmark_assets.adapters.formats.opentelemetry_spans import (
    Broken,
    Span,
    holds_spans,
    read_spans,
)
from benchmark_assets.adapters.span_record import workflow_record
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import Origin, Tokens, TraceSnapshot, sum_tokens

_GENAI: frozenset[Kind] = frozenset({"agent", "workflow", "executor", "model", "tool"})

_TYPES: dict[Kind, str] = {
    "agent": "AGENT",
    "workflow": "CHAIN",
    "model": "GENERATION",
    "tool": "TOOL",
    "chain": "CHAIN",
    "retriever": "RETRIEVER",
    "embedding": "EMBEDDING",
    "guardrail": "GUARDRAIL",
    "evaluator": "EVALUATOR",
}

_SESSIONS = (
    "session.id",
    "gen_ai.conversation.id",
    "gcp.vertex.agent.session_id",
    "traceloop.association.properties.session_id",
)
_USERS = ("user.id", "enduser.id", "traceloop.association.properties.user_id")
_ENVIRONMENTS = ("deployment.environment.name", "deployment.environment")

_WHERE_IT_RAN = ("telemetry.", "process.", "host.", "os.", "container.")
_NOT_FILTERED_BY = ("otel.", "gen_ai.usage.", "llm.token_count.", "gen_ai.aggregated_usage.")
_LONGEST = 200


class OpenTelemetryFormat:
    """Reads files of spans."""

    name = "opentelemetry"
    description = (
        "OpenTelemetry spans (GenAI, OpenInference): OTLP JSON, Jaeger JSON, lists of spans"
    )

    def matches(self, file: TraceFile) -> bool:
        """One record in one of the containers is enough: the others may be broken."""
        return any(map(holds_spans, file.records())) or _is_sequence(file)

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield a snapshot for what is no span, then one per trace, in order of first spans."""
        traces: dict[str, list[Span]] = {}
        for item in read_spans(file):
            if isinstance(item, Span):
                traces.setdefault(item.trace_id, []).append(item)
            else:
                yield _broken(file, item)
        for spans in traces.values():
            yield read_spans_of_trace(spans, file.origin(self.name, spans[0].place or None))


def _is_sequence(file: TraceFile) -> bool:
    """Whether spans stand after one another, each over several lines."""
    # Looking at the start is cheap; only what begins like a span is read as a whole.
    if file.is_json or b'"context"' not in file.data[:2000]:
        return False
    try:
        return any(isinstance(item, Span) for item in read_spans(file))
    except InputError:
        return False


def _broken(file: TraceFile, item: Broken) -> TraceSnapshot:
    where = f"{file.key}: {item.place}" if item.place else file.key
    located = item.reason.startswith(file.key)
    return TraceSnapshot(
        trace_id=file.made_id(item.place),
        origin=file.origin(OpenTelemetryFormat.name, item.place or None),
        problem=item.reason if located else f"{where}: {item.reason}",
    )


def read_spans_of_trace(spans: Sequence[Span], origin: Origin) -> TraceSnapshot:
    """Make the snapshot of one trace.

    Args:
        spans: Its spans, in any order.
        origin: Where they are from.
    """
    nodes = [Node(span) for span in _distinct(spans)]
    problem = _nothing_there(nodes, origin)
    if problem is not None:
        starts = [node.span.start for node in nodes if node.span.start is not None]
        return TraceSnapshot(
            trace_id=spans[0].trace_id,
            origin=origin,
            started_at=min(starts, default=None),
            metadata=_metadata(nodes),
            problem=problem,
        )
    name_subagents(nodes)
    is_maf = any(node.kind == "executor" for node in nodes)
    tree = [span_node(node, is_maf=is_maf) for node in nodes]
    unify_model_calls(nodes, tree)
    unify_tool_calls(nodes)
    found = read_trace(_fields(nodes), [_observation(node) for node in nodes], origin)
    changes: dict[str, Any] = {
        "metadata": _metadata(nodes),
        "workflow_record": workflow_record(tree, found.name),
    }
    if found.tokens.total is None:
        changes["tokens"] = _told_tokens(nodes)
    if not found.generations:
        changes["model"] = _told_model(nodes)
    return msgspec.structs.replace(found, **changes)


def _distinct(spans: Iterable[Span]) -> list[Span]:
    """Spans in order of start, each once: one that is exported again has ended by then."""
    found: dict[str, Span] = {}
    for span in spans:
        known = found.get(span.id)
        if known is None or (known.end is None and span.end is not None):
            found[span.id] = span
    return sorted(found.values(), key=lambda span: (span.start or START, span.id))


def _nothing_there(nodes: Sequence[Node], origin: Origin) -> str | None:
    if any(node.kind in _GENAI for node in nodes):
        return None
    where = f"{origin.file}: {origin.record}" if origin.record else origin.file
    scopes = sorted({node.span.scope for node in nodes if node.span.scope})
    by = f" (by {', '.join(scopes[:3])})" if scopes else ""
    return (
        f"{where}: trace {nodes[0].span.trace_id}: none of its {len(nodes):,} spans{by} is of an "
        "agent, a model or a tool; instrument them by the GenAI conventions or OpenInference"
    )


# The trace as one of observations.


def _observation(node: Node) -> dict[str, Any]:
    span = node.span
    known: dict[str, Any] = {
        "id": span.id,
        "parentObservationId": span.parent_id,
        "name": span.name,
        "startTime": span.start.isoformat() if span.start else None,
        "endTime": span.end.isoformat() if span.end else None,
        "level": "ERROR" if node.failed and not _is_passing_on(node) else "DEFAULT",
        "statusMessage": node.message,
    }
    if node.repeats:
        # It stays where it is, for what is inside it, and says nothing itself.
        named = text_or_none(node.attributes.get("gen_ai.agent.name"))
        attributes = {"gen_ai.agent.name": named} if named else {}
        return {**known, "level": "DEFAULT", "type": "SPAN", "metadata": attributes}
    known["type"] = _TYPES.get(node.kind, "SPAN")
    known["metadata"] = {"attributes": dict(_telling(node))}
    if node.kind == "model":
        cost = cost_of(node.attributes)
        known["usageDetails"] = usage_details(node.counted)
        known["costDetails"] = None if cost is None else {"total": cost}
    return {**known, "input": node.said.input, "output": node.said.output}


def _is_passing_on(node: Node) -> bool:
    """Whether a span's failure, if it is one, is that of what called it."""
    return node.span.parent_id is not None and _is_transport(node)


def _is_transport(node: Node) -> bool:
    return node.kind == "other" and node.span.direction not in (None, "internal")


def _telling(node: Node) -> Iterator[tuple[str, Any]]:
    """Attributes that say something, without what `said` holds."""
    given = "input.value" in node.attributes
    for key, value in node.attributes.items():
        if not _is_content(key) and not (key == "tool.parameters" and given):
            # OpenInference has the schema of a tool's parameters there, or a call's arguments.
            yield key, value
    if node.kind == "agent" and text_at(node.attributes, "graph.node.id") is None:
        yield "gen_ai.agent.name", name_of(node)
    if node.kind == "tool" and text_at(node.attributes, "gen_ai.tool.name", "tool.name") is None:
        named = text_at(node.attributes, "traceloop.entity.name")
        if named is not None:
            yield "gen_ai.tool.name", named


def _is_content(key: str) -> bool:
    return any(key == name or key.startswith(f"{name}.") for name in CONTENT)


def _fields(nodes: Sequence[Node]) -> dict[str, Any]:
    """What a trace object would say: from its root, its resource, and its outermost agents."""
    top = _roots(nodes)
    agents = _outermost_agents(nodes)
    asked = (
        None
        if any(node.said.input is not None for node in top[:1])
        else next((node.said.input for node in agents if node.said.input is not None), None)
    )
    answered = (
        None
        if any(node.said.output is not None for node in top[-1:])
        else next(
            (node.said.output for node in reversed(agents) if node.said.output is not None), None
        )
    )
    return {
        "id": nodes[0].span.trace_id,
        "name": _trace_name(top, agents),
        "sessionId": _anywhere(nodes, _SESSIONS),
        "userId": _anywhere(nodes, _USERS),
        "environment": _in_resource(nodes, _ENVIRONMENTS),
        "tags": _tags(nodes),
        "input": asked,
        "output": answered,
    }


def _roots(nodes: Sequence[Node]) -> list[Node]:
    ids = {node.span.id for node in nodes}
    true = [node for node in nodes if node.span.parent_id is None]
    return true or [node for node in nodes if node.span.parent_id not in ids] or list(nodes[:1])


def _outermost_agents(nodes: Sequence[Node]) -> list[Node]:
    """Agents in no other agent, in order of start."""
    by_id = {node.span.id: node for node in nodes}
    inside: dict[str, bool] = {}
    for node in nodes:
        path: dict[str, None] = {}
        at: str | None = node.span.id
        while at is not None and at in by_id and at not in inside and at not in path:
            path[at] = None
            at = by_id[at].span.parent_id
        around = by_id.get(at or "")
        under = around is not None and (inside.get(around.span.id, False) or _is_agent(around))
        for step in reversed(path):
            inside[step] = under
            under = under or _is_agent(by_id[step])
    return [node for node in nodes if _is_agent(node) and not inside[node.span.id]]


def _is_agent(node: Node) -> bool:
    return node.kind in ("agent", "workflow")


def _trace_name(top: Sequence[Node], agents: Sequence[Node]) -> str | None:
    """The root's name; that of the outermost agent where the root is a server's request."""
    if top and _is_transport(top[0]):
        return name_of(agents[0]) if agents else top[0].span.name
    return top[0].span.name if top else None


def _anywhere(nodes: Sequence[Node], names: Sequence[str]) -> str | None:
    for name in names:
        for node in nodes:
            found = id_or_none(node.span.attributes.get(name))
            if found is not None:
                return found
    return None


def _in_resource(nodes: Sequence[Node], names: Sequence[str]) -> str | None:
    for name in names:
        for node in nodes:
            found = text_at(node.span.resource, name) or text_at(node.span.attributes, name)
            if found is not None:
                return found
    return None


def _tags(nodes: Sequence[Node]) -> list[str]:
    tags = [tag for node in nodes for tag in as_list(unwrap(node.span.attributes.get("tag.tags")))]
    return list(dict.fromkeys(tag for tag in tags if isinstance(tag, str) and tag))


def _metadata(nodes: Sequence[Node]) -> dict[str, Any]:
    """The process's attributes, then the root's short ones.

    What a model's or agent's instrumentation says about it (`model_name`) is not the trace's:
    under that name a trace says which model it is of.
    """
    known: dict[str, Any] = {}
    for root in _roots(nodes)[:1]:
        own = {} if _is_transport(root) else root.span.attributes
        known |= {key: own[key] for key in own if _is_filtered_by(root, key)}
        process = root.span.resource
        known |= {key: process[key] for key in process if not key.startswith(_WHERE_IT_RAN)}
    return {key: value for key, value in known.items() if _is_short(value)}


def _is_filtered_by(root: Node, key: str) -> bool:
    if root.kind in _GENAI and key in ("model_name", "agent_name"):
        return False
    return not _is_content(key) and not key.startswith(_NOT_FILTERED_BY)


def _is_short(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST
    return isinstance(value, bool | int | float)


def _told_tokens(nodes: Sequence[Node]) -> Tokens:
    return sum_tokens(tuple(reported_tokens(n.attributes) for n in _outermost_agents(nodes)))


def _told_model(nodes: Sequence[Node]) -> str | None:
    """The model that agents name, where no call of one is recorded."""
    named = [text_at(node.attributes, *MODEL_NAMES) for node in _outermost_agents(nodes)]
    return "+".join(sorted({name for name in named if name})) or None


FORMAT = OpenTelemetryFormat()
