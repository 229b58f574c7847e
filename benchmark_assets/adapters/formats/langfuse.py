"""Langfuse exports: a trace and its observations, in every shape that Langfuse gives them in.

Understood are, alone, in a list, or one on each line:

* the UI's download: `{trace, observations}`; with a trace of null where there is no trace object,
  and `pulled` where a puller noted something of it (`adapters/pulled_files`);
* the API's trace (v1): a trace with its `observations` inside;
* pages of the observations API (v2): `{data: [observation, …], meta}`;
* observations themselves, in camelCase (v2) or snake_case (the blob export).

The last two have no trace object: observations are grouped by their trace id over the whole
file, and what they carry (`traceName`, `userId`, `sessionId`, `tags`, `environment`) and their
root's input, output and metadata stand for it. A trace whose observations are spread over
several files is not put together.

Belongs here: the shapes, and what a trace is made of. Does not belong here: what an observation
is (`langfuse_rows`), what rows come to (`langfuse_calls`), fetching (a puller calls
`read_trace` with what it fetched).

*Failures.* A failed tool is a failed call and nothing else, whatever rows around it report the
same. Failures elsewhere are `error_spans`. The trace's `error` is set where its root failed: a
run whose root is fine recovered from whatever failed inside.

*Completeness.* Langfuse takes observations in as they happen, so a trace can be read too early.
A root that has neither ended nor given an output, and no observation at all, are a `problem`.
A missing root is not: an application's root may have a parent in another service.

*Latency* is computed from times: exports have it in seconds or in milliseconds.

How a run ended is not recorded, so `ended` is unknown. Skills and files are left to the harness
profiles. Embeddings are no generations, and their tokens are not the agent's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import (
    SAMPLE_RECORDS,
    TraceFile,
    id_or_none,
    parse_time,
    text_or_none,
    whole_number,
)
from benchmark_assets.adapters.formats.langfuse_calls import Conversation, read_conversation
from benchmark_assets.adapters.formats.langfuse_ledger import read_ledger
from benchmark_assets.adapters.formats.langfuse_rows import (
    TYPES,
    ModelCall,
    Row,
    canonical,
    error_text,
    failures,
    model_calls,
    read_rows,
    roots,
)
from benchmark_assets.adapters.formats.langfuse_values import (
    answered,
    as_text,
    as_tree,
    asked,
    look,
    look_raw,
    turns,
    unwrap,
)
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import (
    ErrorSpan,
    Generation,
    Message,
    Origin,
    TraceSnapshot,
    sum_tokens,
)

_PLUMBING = frozenset({"resourceAttributes", "scope"})
"""Metadata about the process and the SDK that sent a trace, the project's public key included."""

_REPEATED = frozenset({"langfuse", "input", "output"})
"""Attributes from which Langfuse has made fields of its own."""

_LONGEST_ATTRIBUTE = 200


class LangfuseFormat:
    """Reads Langfuse exports."""

    name = "langfuse"
    description = "Langfuse exports: UI downloads, API v1 and v2 JSON, blob exports"

    def matches(self, file: TraceFile) -> bool:
        """One record in one of the shapes is enough: the others may be broken."""
        return any(_shape(item) is not None and item.get("data") != [] for item in file.records())

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield a snapshot per trace; those made of loose observations come last."""
        loose: dict[str, list[tuple[str | None, Any]]] = {}
        for record, value in _records(file):
            shape = _shape(value)
            origin = file.origin(self.name, record)
            trace_id = _trace_id(value)
            if shape == "document":
                trace, rows = _document(value)
                yield _as_pulled(read_trace(trace, rows, origin), as_dict(value.get("pulled")))
            elif shape == "row" and trace_id is not None:
                loose.setdefault(trace_id, []).append((record, value))
            else:
                problem = _what_is_wrong(file, origin, value)
                made = file.made_id(record or "")
                yield TraceSnapshot(trace_id=made, origin=origin, problem=problem)
        for found in loose.values():
            origin = file.origin(self.name, found[0][0])
            yield read_trace(None, [row for _, row in found], origin)


def _what_is_wrong(file: TraceFile, origin: Origin, value: Any) -> str:
    if isinstance(value, InputError):
        return str(value).replace(file.name, file.key)
    if _shape(value) == "row":
        return f"{_where(origin)}: traceId: an observation of no trace"
    return f"{_where(origin)}: is neither a trace with its observations nor an observation"


def _records(file: TraceFile) -> Iterator[tuple[str | None, Any]]:
    """Everything in a file that should be a trace or an observation, and where it stands."""
    for record, value in _values(file):
        if _shape(value) != "page":
            yield record, value
            continue
        for index, item in enumerate(value["data"]):
            yield f"{record}.data[{index}]" if record else f"data[{index}]", item


def _values(file: TraceFile) -> Iterator[tuple[str | None, Any]]:
    if not file.is_json:
        for number, value in file.lines():
            yield f"line {number}", value
    elif isinstance(file.json, list):
        for index, value in enumerate(file.json):
            yield f"[{index}]", value
    elif isinstance(file.json, dict):
        yield None, file.json
    else:
        raise InputError(
            file.problem("holds no trace", cure="expected objects with traces or observations")
        )


def _shape(value: Any) -> str | None:
    """Which of the shapes a record has: `document`, `page`, `row`, or none."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("observations"), list) and (
        isinstance(value.get("trace", ""), dict | None) or _looks_like_a_trace(value)
    ):
        return "document"
    if isinstance(value.get("data"), list):
        items = value["data"][:SAMPLE_RECORDS]
        found = any(_shape(item) in ("row", "document") for item in items)
        return "page" if found or (not items and isinstance(value.get("meta"), dict)) else None
    kind = value.get("type")
    if isinstance(kind, str) and kind.upper() in TYPES and kind == kind.upper():
        starts = "startTime" in value or "start_time" in value
        traced = "traceId" in value or "trace_id" in value
        return "row" if starts and (traced or "parentObservationId" in value) else None
    return None


def _looks_like_a_trace(value: dict[str, Any]) -> bool:
    return id_or_none(value.get("id")) is not None and (
        "timestamp" in value or any(_shape(item) == "row" for item in value["observations"][:5])
    )


def _document(value: dict[str, Any]) -> tuple[dict[str, Any] | None, list[Any]]:
    trace = value.get("trace", "")
    if not isinstance(trace, dict | None):
        trace = {key: item for key, item in value.items() if key != "observations"}
    return trace, value["observations"]


def _as_pulled(snapshot: TraceSnapshot, note: dict[str, Any]) -> TraceSnapshot:
    """A trace with what its puller noted of it: its id, and why it cannot be judged."""
    trace_id = text_or_none(note.get("id")) or snapshot.trace_id
    why = text_or_none(note.get("incomplete"))
    if why is None:
        return msgspec.structs.replace(snapshot, trace_id=trace_id)
    said = f"{_where(snapshot.origin)}: {why}"
    problem = "; ".join(filter(None, (said, snapshot.problem)))
    started = snapshot.started_at or parse_time(note.get("timestamp"))
    return msgspec.structs.replace(snapshot, trace_id=trace_id, problem=problem, started_at=started)


def _trace_id(value: Any) -> str | None:
    fields = as_dict(value)
    return id_or_none(fields.get("traceId")) or id_or_none(fields.get("trace_id"))


def _where(origin: Origin) -> str:
    return f"{origin.file}: {origin.record}" if origin.record else origin.file


def read_trace(
    trace: dict[str, Any] | None, observations: Sequence[Any], origin: Origin
) -> TraceSnapshot:
    """Make the snapshot of one trace.

    Args:
        trace: The trace object without its observations; None where the source has none.
        observations: Its observations, in any order and either spelling, as decoded from JSON.
            Of several with one id the one updated last counts. What is no object is reported
            in `problem`, and the rest is read.
        origin: Where they are from.
    """
    fields = canonical(trace or {})
    rows, broken = read_rows(observations)
    if not fields:
        fields = _fields_of_rows(rows)
    model = model_calls(rows)
    conversation = read_conversation(rows, model)
    top = roots(rows)
    answer = _final_answer(fields, top, conversation)
    starts = [row.start for row in rows if row.start is not None]
    ends = [row.end for row in rows if row.end is not None]
    started = min(starts, default=parse_time(fields.get("timestamp")))
    ended = max(ends, default=None)
    problems = _problems(fields, rows, top, broken, _where(origin))
    name = text_or_none(fields.get("name")) or next((row.name for row in top), None)
    return TraceSnapshot(
        failures_recorded=any("level" in row.raw for row in rows),
        trace_id=id_or_none(fields.get("id")) or _made_id(origin),
        origin=origin,
        name=name,
        started_at=started,
        ended_at=ended,
        duration_ms=whole_number(round((ended - started).total_seconds() * 1000))
        if started is not None and ended is not None
        else None,
        environment=text_or_none(fields.get("environment")),
        session_id=id_or_none(fields.get("sessionId")),
        user_id=id_or_none(fields.get("userId")),
        tags=tuple(tag for tag in as_list(unwrap(fields.get("tags"))) if text_or_none(tag)),
        metadata=_metadata(fields, top),
        agents=_agents(rows),
        prompt=_prompt(fields, top, model),
        final_answer=answer,
        error=_trace_error(top),
        tokens=sum_tokens(tuple(item.tokens for item in conversation.generations)),
        cost_usd=_cost(conversation.generations, {row.id for row in rows if row.failed}),
        generations=conversation.generations,
        tool_calls=conversation.calls,
        messages=_with_answer(conversation, answer),
        error_spans=tuple(
            ErrorSpan(
                name=row.name,
                kind=row.type,
                message=error_text(row),
                agent=row.agent,
                started_at=row.start,
                span_id=row.id,
            )
            for row in failures(rows, conversation.tool_rows)
        ),
        workflow_record=read_ledger(rows, model, conversation.generations, name),
        problem="; ".join(problems) or None,
    )


def _made_id(origin: Origin) -> str:
    return hashlib.sha256(f"{origin.sha256}:{origin.record or ''}".encode()).hexdigest()[:32]


def _fields_of_rows(rows: list[Row]) -> dict[str, Any]:
    """A trace's own fields from what its observations carry; the root's come first."""
    known: dict[str, Any] = {}
    for row in [*roots(rows), *rows]:
        for name, key in (
            ("id", "traceId"),
            ("name", "traceName"),
            ("userId", "userId"),
            ("sessionId", "sessionId"),
            ("tags", "tags"),
            ("environment", "environment"),
            ("release", "release"),
            ("version", "traceVersion"),
        ):
            value = row.raw.get(key)
            if known.get(name) in (None, [], "[]") and value is not None:
                known[name] = value
    return known


def _problems(
    fields: dict[str, Any], rows: list[Row], top: list[Row], broken: list[int], where: str
) -> Iterator[str]:
    """Why the trace cannot be judged."""
    if broken and not rows and fields.get("id") is not None:
        yield f"{where}: observations: holds no observation itself; fetch the whole trace"
    elif broken:
        places = ", ".join(f"observations[{index}]" for index in broken[:5])
        more = f" and {len(broken) - 5} more" if len(broken) > 5 else ""
        yield f"{where}: {places}{more}: expected an object"
    if not rows and not broken:
        yield f"{where}: has no observations"
    open_roots = [row for row in top if row.end is None and row.type != "EVENT"]
    if open_roots and len(open_roots) == len(top) and unwrap(fields.get("output")) is None:
        silent = all(row.output is None and not row.failed for row in open_roots)
        if silent:
            yield (
                f"{where}: is not finished: '{open_roots[0].name}' at its top has neither an "
                "endTime nor an output; export it again when it has"
            )


def _trace_error(top: list[Row]) -> str | None:
    """The error state of the trace: that of its root, or of the last of several."""
    if not top or not top[-1].failed:
        return None
    root = top[-1]
    said = error_text(root)
    for row in root.descendants() if said is None else ():
        said = said or (error_text(row) if row.failed else None)
    return said or f"'{root.name}' failed"


def _cost(generations: tuple[Generation, ...], failed: set[str | None]) -> float | None:
    """The sum of the generations' costs; unknown if one that succeeded has none."""
    known = [item.cost_usd for item in generations if item.cost_usd is not None]
    unknown = [item for item in generations if item.cost_usd is None and item.span_id not in failed]
    return sum(known) if known and not unknown else None


def _agents(rows: list[Row]) -> tuple[str, ...]:
    """The agents' names, in the order in which they appear.

    Where agents are named as nodes of a graph (OpenAI's Agents), a row of type AGENT that is
    none of them is the workflow around them.
    """
    nodes = any(look(row.tree, "graph.node.id") for row in rows)
    named: dict[str, None] = {}
    for row in rows:
        name = row.own_agent
        if name is None or (
            nodes and row.type == "AGENT" and look(row.tree, "graph.node.id") is None
        ):
            continue
        named[name] = None
    return tuple(named)


# What was asked and answered.


def _prompt(fields: dict[str, Any], top: list[Row], model: list[ModelCall]) -> str | None:
    """What the user asked for: from the trace's input, the root's, or what a model was told."""
    places = [fields.get("input")]
    for row in top[:1]:
        places += [row.input, look(row.tree, "pydantic_ai.all_messages", "gen_ai.input.messages")]
    for call in model[:1]:
        for row in (call.row, *call.around):
            messages = look(row.tree, "llm.input_messages")
            places += [_indexed(messages), row.input if turns(row.input) else None]
    for place in places:
        if text := asked(place):
            return text
    payload = unwrap(fields.get("input"))
    if payload is None and top:
        payload = top[0].input
    return as_text(payload) if _has_content(payload) else None


def _indexed(messages: Any) -> list[Any] | None:
    """OpenInference's messages: attributes under `0.message`, `1.message` and so on."""
    if not isinstance(messages, dict):
        return None
    numbers = sorted((key for key in messages if key.isdecimal()), key=int)
    return [as_dict(messages[key]).get("message") for key in numbers]


def _has_content(value: Any) -> bool:
    if isinstance(value, dict | list):
        items = value.values() if isinstance(value, dict) else value
        return any(_has_content(item) for item in items)
    return value is not None and value != ""


def _final_answer(fields: dict[str, Any], top: list[Row], conversation: Conversation) -> str | None:
    """What the agent said last: the output of the trace, of its root, or the last message.

    A row that only wraps another one speaks through that. A failed run's root gave no answer,
    so there the agent's last words are not taken for one.
    """
    places = [fields.get("output")]
    row = top[-1] if top else None
    while row is not None:
        places += [row.output, look_raw(row.tree, "final_result")]
        row = row.children[0] if len(row.children) == 1 and not row.failed else None
    for place in places:
        if text := answered(place):
            return text
    if (top and top[-1].failed) or not conversation.messages:
        return None
    last = conversation.messages[-1]
    return last.text if last.before_call == len(conversation.calls) else None


def _with_answer(conversation: Conversation, answer: str | None) -> tuple[Message, ...]:
    """All messages, with the final answer among them."""
    said = conversation.messages
    if answer is None or any(answer in message.text for message in said):
        return said
    return (*said, Message(text=answer, before_call=len(conversation.calls)))


# Metadata.


def _metadata(fields: dict[str, Any], top: list[Row]) -> dict[str, Any]:
    """What people filter by: the trace's metadata, then its root's, nested.

    The process and the SDK that sent it are left out, and of OpenTelemetry's attributes all but
    short ones: the others repeat inputs and outputs.
    """
    known: dict[str, Any] = {}
    for tree in (as_tree(fields.get("metadata")), *(row.tree for row in top[:1])):
        for key, value in tree.items():
            if key not in _PLUMBING and key not in known:
                known[key] = value
    if "attributes" in known:
        given = as_dict(known["attributes"])
        attributes = _short({key: given[key] for key in given if key not in _REPEATED})
        known = {key: value for key, value in known.items() if key != "attributes"}
        if attributes:
            known["attributes"] = attributes
    for key in ("release", "version"):
        if text_or_none(fields.get(key)):
            known.setdefault(key, fields[key])
    return known


def _short(value: Any) -> Any:
    """A tree's short texts, numbers and yes or no; None if there is none."""
    if isinstance(value, dict):
        kept = {key: _short(item) for key, item in value.items()}
        return {key: item for key, item in kept.items() if item is not None} or None
    if isinstance(value, str):
        return value if len(value) <= _LONGEST_ATTRIBUTE else None
    return value if isinstance(value, bool | int | float) else None


FORMAT = LangfuseFormat()
