"""Spans as files hold them: OTLP JSON, Jaeger JSON, and flat lists of spans.

Belongs here: the containers, and one span in every spelling as one `Span`. Does not belong here:
what its attributes mean (`opentelemetry_attributes`, `opentelemetry_messages`). Another container
is one more function and a line in `CONTAINERS`.

Understood are, alone, in a list, or one on each line or after the other:

* OTLP JSON: `{resourceSpans: [{scopeSpans: [{spans}]}]}`, as the collector's file exporter and
  OTLP over HTTP write it; also inside `{result: …}`, as Jaeger's newer API answers;
* Jaeger JSON: `{data: [{spans, processes}]}` or one of those traces;
* spans themselves, or `{spans: [span, …]}`: with ids under `trace_id` and `span_id` or in a
  `context`, as the Python SDK's `to_json` has them.

*Times* are nanoseconds since 1970 in OTLP, microseconds in Jaeger. A flat span may have ISO 8601
or a number, whose size tells its unit. *Ids* are kept as they are, without `0x`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, NamedTuple

import msgspec

from benchmark_assets.adapters.formats.base import (
    TraceFile,
    decode_json,
    id_or_none,
    parse_time,
    text_or_none,
    whole_number,
)
from benchmark_assets.adapters.formats.langfuse_values import first, unwrap
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.model.problem import InputError

Direction = Literal["internal", "server", "client", "producer", "consumer"]


class Event(NamedTuple):
    """Something that happened during a span."""

    name: str
    attributes: dict[str, Any]


class Span(msgspec.Struct, kw_only=True, eq=False):
    """One span, whatever held it.

    Attributes:
        place: Where in the file it stands.
        id: Its id; made of its place where the file has none.
        parent_id: None for a root.
        direction: What OpenTelemetry calls the kind; None where it is not said.
        scope: Name of the instrumentation that made it.
        failed: Whether its status is an error.
        message: What the status says about it.
        attributes: By their dotted names.
        resource: Attributes of the process that it is from.
    """

    place: str
    trace_id: str
    id: str
    parent_id: str | None
    name: str
    direction: Direction | None
    scope: str | None
    start: datetime | None
    end: datetime | None
    failed: bool
    message: str | None
    attributes: dict[str, Any]
    events: list[Event]
    resource: dict[str, Any]


class Broken(NamedTuple):
    """Something that should have been a span, and why it is none."""

    place: str
    reason: str


class Container(NamedTuple):
    """One way of holding spans."""

    fits: Callable[[Any], bool]
    spans: Callable[[dict[str, Any], str], Iterator[Span | Broken]]


def holds_spans(value: Any) -> bool:
    """Whether a value is one of the containers."""
    return any(container.fits(value) for container in CONTAINERS)


def read_spans(file: TraceFile) -> Iterator[Span | Broken]:
    """Everything in a file that is a span, or should be one, in its order.

    Raises:
        InputError: If the file holds no objects at all.
    """
    for place, value in values(file):
        if isinstance(value, InputError):
            yield Broken(place, str(value).replace(file.name, file.key))
            continue
        container = next((item for item in CONTAINERS if item.fits(value)), None)
        if container is None:
            yield Broken(place, "is neither a span nor holds spans")
        else:
            yield from container.spans(value, place)


def values(file: TraceFile) -> Iterator[tuple[str, Any | InputError]]:
    """The values of a file with their places: its JSON, a list's items, lines, or a sequence.

    Raises:
        InputError: If it is JSON and neither an object nor a list.
    """
    if not file.is_json:
        sequence = _sequence(file)
        if sequence is not None:
            yield from sequence
            return
        for number, value in file.lines():
            yield f"line {number}", value
    elif isinstance(file.json, list):
        for index, value in enumerate(file.json):
            yield f"[{index}]", value
    elif isinstance(file.json, dict):
        yield "", file.json
    else:
        raise InputError(file.problem("holds no spans", cure="expected objects with spans"))


def _sequence(file: TraceFile) -> list[tuple[str, Any]] | None:
    """Objects after one another over several lines, as the SDK's console exporter writes them.

    None if the file is not that, so that its lines are looked at.
    """
    text = file.text.decode().lstrip()
    if not text.startswith("{\n") and not text.startswith("{\r\n"):
        return None
    decoder, at = json.JSONDecoder(), 0
    found: list[tuple[str, Any]] = []
    while at < len(text):
        try:
            # Only to find where it ends: what it is, is decoded as everywhere else.
            _, end = decoder.raw_decode(text, at)
            value = decode_json(text[at:end].encode())
        except (ValueError, RecursionError):
            return None
        found.append((f"object {len(found) + 1}", value))
        at = end
        while at < len(text) and text[at].isspace():
            at += 1
    return found


def _inside(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


# OTLP.


def _is_otlp(value: Any) -> bool:
    return isinstance(_resource_spans(value), list)


def _resource_spans(value: Any) -> Any:
    fields = as_dict(value)
    inner = as_dict(fields.get("result")) or fields
    return first(inner, "resourceSpans", "resource_spans")


def _otlp(value: dict[str, Any], place: str) -> Iterator[Span | Broken]:
    if "result" in value:
        place = _inside(place, "result")
    for i, group in enumerate(_resource_spans(value)):
        where = _inside(place, f"resourceSpans[{i}]")
        scopes = first(as_dict(group), "scopeSpans", "scope_spans", "instrumentationLibrarySpans")
        if not isinstance(scopes, list):
            yield Broken(where, "has no list scopeSpans")
            continue
        resource = (
            attributes_of(as_dict(group["resource"]).get("attributes"))
            if ("resource" in group)
            else {}
        )
        for j, scope in enumerate(scopes):
            yield from _scope(scope, f"{where}.scopeSpans[{j}]", resource)


def _scope(scope: Any, place: str, resource: dict[str, Any]) -> Iterator[Span | Broken]:
    spans = as_dict(scope).get("spans")
    if not isinstance(spans, list):
        yield Broken(place, "has no list spans")
        return
    named = as_dict(first(scope, "scope", "instrumentationLibrary"))
    for index, raw in enumerate(spans):
        yield _flat_span(raw, f"{place}.spans[{index}]", resource, text_or_none(named.get("name")))


def attributes_of(given: Any) -> dict[str, Any]:
    """Attributes as an object, from one, or from OTLP's list of keys and typed values."""
    if isinstance(given, list):
        pairs = [as_dict(item) for item in given]
        named = [(text_or_none(pair.get("key")), pair.get("value")) for pair in pairs]
        found = {key: _any_value(value) for key, value in named if key is not None}
    else:
        found = as_dict(unwrap(given))
    return {key: value for key, value in found.items() if value is not None}


def _any_value(value: Any, depth: int = 0) -> Any:
    """OTLP's typed value as the value: 64-bit integers are texts there."""
    if not isinstance(value, dict) or depth > _DEEPEST:
        return None if isinstance(value, dict) else value
    for kind, given in value.items():
        plain = kind.replace("_", "").lower()
        if plain == "intvalue":
            return whole_number(given) if whole_number(given) is not None else given
        if plain == "arrayvalue":
            return [_any_value(item, depth + 1) for item in as_list(as_dict(given).get("values"))]
        if plain == "kvlistvalue":
            pairs = [as_dict(item) for item in as_list(as_dict(given).get("values"))]
            return {
                str(pair.get("key")): _any_value(pair.get("value"), depth + 1) for pair in pairs
            }
        return given
    return None


_DEEPEST = 12


# Spans themselves.


def _is_flat(value: Any) -> bool:
    fields = as_dict(value)
    trace_id, span_id = _ids(fields)
    return trace_id is not None and span_id is not None and isinstance(fields.get("name"), str)


def _ids(fields: dict[str, Any]) -> tuple[str | None, str | None]:
    context = as_dict(first(fields, "context", "span_context", "spanContext"))
    return (
        _id(first(fields, "trace_id", "traceId") or first(context, "trace_id", "traceId")),
        _id(first(fields, "span_id", "spanId") or first(context, "span_id", "spanId")),
    )


def _id(value: Any) -> str | None:
    """An id; none if it is empty or, as some write for none, of zeros."""
    text = id_or_none(value)
    if text is None:
        return None
    text = text.removeprefix("0x")
    return text if text.strip("0") else None


def _flat(value: dict[str, Any], place: str) -> Iterator[Span | Broken]:
    yield _flat_span(value, place, {}, None)


def _is_list_of_flat(value: Any) -> bool:
    spans = as_dict(value).get("spans")
    return isinstance(spans, list) and any(map(_is_flat, spans))


def _list_of_flat(value: dict[str, Any], place: str) -> Iterator[Span | Broken]:
    for index, raw in enumerate(value["spans"]):
        yield _flat_span(raw, _inside(place, f"spans[{index}]"), {}, None)


def _flat_span(raw: Any, place: str, resource: dict[str, Any], scope: str | None) -> Span | Broken:
    """A span in OTLP's form, or in that of an SDK."""
    if not isinstance(raw, dict):
        return Broken(place, "expected a span, an object")
    trace_id, span_id = _ids(raw)
    if trace_id is None:
        return Broken(_inside(place, "traceId"), "a span of no trace")
    attributes = attributes_of(raw.get("attributes"))
    own = first(raw, "scope", "instrumentation_scope", "instrumentationScope")
    failed, message = _status(raw.get("status"))
    return Span(
        place=place,
        trace_id=trace_id,
        id=span_id or place,
        parent_id=_id(first(raw, "parent_span_id", "parentSpanId", "parent_id", "parentId")),
        name=text_or_none(raw.get("name")) or "span",
        direction=_direction(raw.get("kind")),
        scope=scope or text_or_none(as_dict(own).get("name")) or text_or_none(own),
        start=_time(raw, "start"),
        end=_time(raw, "end"),
        failed=failed,
        message=message,
        attributes=attributes,
        events=list(_events(first(raw, "events", "span_events", "spanEvents"))),
        resource=resource or attributes_of(as_dict(raw.get("resource")).get("attributes")),
    )


def _time(raw: dict[str, Any], which: str) -> datetime | None:
    nanos = first(raw, f"{which}TimeUnixNano", f"{which}_time_unix_nano")
    if nanos is not None:
        return _since_1970(nanos, 10**9)
    given = first(raw, f"{which}_time", f"{which}Time")
    number = _integer(given)
    if number is None:
        return parse_time(given)
    # What is a date of our time in one unit is far from it in any other.
    unit = next((unit for unit in (1, 10**3, 10**6) if number < 10**11 * unit), 10**9)
    return _since_1970(number, unit)


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 24:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _since_1970(value: Any, unit: int) -> datetime | None:
    """A time from a count of which `unit` make a second; in whole microseconds, exactly."""
    count = _integer(value)
    if count is None or count <= 0:
        return None  # OTLP's 0 is unknown
    try:
        return datetime.fromtimestamp(0, UTC) + timedelta(microseconds=count * 10**6 // unit)
    except OverflowError:
        return None


_ERRORS = (2, "2", "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR", "Error", "error")


def _status(status: Any) -> tuple[bool, str | None]:
    fields = as_dict(status)
    code = first(fields, "code", "status_code", "statusCode") if fields else status
    message = text_or_none(first(fields, "message", "description"))
    return not isinstance(code, bool | float | list | dict) and code in _ERRORS, message


_DIRECTIONS: dict[Any, Direction] = {
    1: "internal",
    2: "server",
    3: "client",
    4: "producer",
    5: "consumer",
    "internal": "internal",
    "server": "server",
    "client": "client",
    "producer": "producer",
    "consumer": "consumer",
}


def _direction(kind: Any) -> Direction | None:
    if isinstance(kind, str):
        kind = kind.lower().removeprefix("spankind.").removeprefix("span_kind_")
    return _DIRECTIONS.get(kind) if isinstance(kind, str | int) else None


def _events(given: Any) -> Iterator[Event]:
    for item in as_list(given):
        fields = as_dict(item)
        name = text_or_none(first(fields, "name", "event_name"))
        if name is not None:
            yield Event(name, attributes_of(fields.get("attributes")))


# Jaeger.


def _is_jaeger_trace(value: Any) -> bool:
    fields = as_dict(value)
    spans = fields.get("spans")
    return (
        isinstance(spans, list)
        and ("traceID" in fields or "processes" in fields)
        and any("spanID" in as_dict(span) for span in spans)
    )


def _is_jaeger(value: Any) -> bool:
    return any(map(_is_jaeger_trace, as_list(as_dict(value).get("data"))))


def _jaeger(value: dict[str, Any], place: str) -> Iterator[Span | Broken]:
    for index, trace in enumerate(value["data"]):
        where = _inside(place, f"data[{index}]")
        if isinstance(as_dict(trace).get("spans"), list):
            yield from _jaeger_trace(trace, where)
        else:
            yield Broken(where, "has no list spans")


def _jaeger_trace(value: dict[str, Any], place: str) -> Iterator[Span | Broken]:
    processes = as_dict(value.get("processes"))
    for index, raw in enumerate(value["spans"]):
        where = _inside(place, f"spans[{index}]")
        fields = as_dict(raw)
        trace_id = _id(fields.get("traceID")) or _id(value.get("traceID"))
        if not fields:
            yield Broken(where, "expected a span, an object")
        elif trace_id is None:
            yield Broken(f"{where}.traceID", "a span of no trace")
        else:
            yield _jaeger_span(fields, where, trace_id, _process(fields, processes))


def _process(span: dict[str, Any], processes: dict[str, Any]) -> dict[str, Any]:
    process = as_dict(span.get("process")) or as_dict(
        processes.get(text_or_none(span.get("processID")) or "")
    )
    name = text_or_none(process.get("serviceName"))
    return {**({"service.name": name} if name else {}), **_tags(process.get("tags"))}


def _tags(given: Any) -> dict[str, Any]:
    pairs = [as_dict(item) for item in as_list(given)]
    return {
        key: pair["value"]
        for pair in pairs
        if (key := text_or_none(pair.get("key"))) is not None and pair.get("value") is not None
    }


def _jaeger_span(raw: dict[str, Any], place: str, trace_id: str, resource: dict[str, Any]) -> Span:
    tags = _tags(raw.get("tags"))
    code = tags.pop("otel.status_code", None)
    scope = first(tags, "otel.scope.name", "otel.library.name")
    start = _since_1970(raw.get("startTime"), 10**6)
    duration = _integer(raw.get("duration"))
    return Span(
        place=place,
        trace_id=trace_id,
        id=_id(raw.get("spanID")) or place,
        parent_id=_jaeger_parent(raw, trace_id),
        name=text_or_none(raw.get("operationName")) or "span",
        direction=_direction(tags.pop("span.kind", None)),
        scope=text_or_none(scope),
        start=start,
        end=_later(start, duration),
        failed=_status(code)[0] or tags.get("error") in (True, "true"),
        message=text_or_none(tags.pop("otel.status_description", None)),
        attributes=tags,
        events=list(_logs(raw.get("logs"))),
        resource=resource,
    )


def _later(start: datetime | None, micros: int | None) -> datetime | None:
    if start is None or micros is None:
        return None
    try:
        return start + timedelta(microseconds=micros)
    except OverflowError:
        return None


def _jaeger_parent(raw: dict[str, Any], trace_id: str) -> str | None:
    """The parent of a span: CHILD_OF, else FOLLOWS_FROM, of the same trace."""
    references = [as_dict(item) for item in as_list(raw.get("references"))]
    for kind in ("CHILD_OF", "FOLLOWS_FROM"):
        for item in references:
            if item.get("refType") == kind and _id(item.get("traceID")) in (trace_id, None):
                return _id(item.get("spanID"))
    return _id(raw.get("parentSpanID"))


def _logs(given: Any) -> Iterator[Event]:
    for item in as_list(given):
        fields = _tags(as_dict(item).get("fields"))
        name = text_or_none(fields.pop("event", None)) or text_or_none(fields.pop("name", None))
        if name is not None:
            yield Event(name, fields)


CONTAINERS: tuple[Container, ...] = (
    Container(_is_otlp, _otlp),
    Container(_is_jaeger, _jaeger),
    Container(_is_jaeger_trace, _jaeger_trace),
    Container(_is_list_of_flat, _list_of_flat),
    Container(_is_flat, _flat),
)
