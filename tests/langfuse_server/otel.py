"""Spans as OpenTelemetry's exporters send them, made into traces and observations.

Belongs here: what becomes of a span and its attributes. Does not belong here: keeping rows
(`contents`).

A span is an observation. Its `langfuse.*` attributes are what the langfuse SDK says of it; the
`gen_ai.*` ones of other integrations are understood where the SDK's are missing. The whole of its
attributes stays in its metadata, as do its resource's and its scope.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from .answers import Answer, Refused, json_answer
from .contents import Contents, Row, iso
from .rows import read

OBSERVATION = "langfuse.observation."
TRACE = "langfuse.trace."
KINDS = {
    "chat": "GENERATION",
    "text_completion": "GENERATION",
    "generate_content": "GENERATION",
    "embeddings": "EMBEDDING",
    "execute_tool": "TOOL",
    "invoke_agent": "AGENT",
    "create_agent": "AGENT",
}
INPUTS = (
    f"{OBSERVATION}input",
    "gen_ai.input.messages",
    "gen_ai.tool.call.arguments",
    "input.value",
)
OUTPUTS = (
    f"{OBSERVATION}output",
    "gen_ai.output.messages",
    "gen_ai.tool.call.result",
    "output.value",
)
MODELS = (f"{OBSERVATION}model.name", "gen_ai.response.model", "gen_ai.request.model")
PLACES = ("langfuse.environment", "deployment.environment.name", "deployment.environment")


def ingest(contents: Contents, body: bytes, headers: Any) -> Answer:
    """POST /otel/v1/traces."""
    spans = list(read_spans(body, headers))
    for span, resource, scope in spans:
        observation, trace = made_of(span, resource, scope)
        known = contents.traces.get(observation["traceId"])
        if known is not None:
            trace = joined(known.row, trace, is_root=observation["parentObservationId"] is None)
        contents.add(trace, [observation])
    return json_answer({}, rows=len(spans))


def read_spans(body: bytes, headers: Any) -> Iterator[tuple[Row, Row, Row]]:
    """The spans of a request with their resources' attributes and scopes."""
    if headers.get("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    is_json = "json" in (headers.get("Content-Type") or "")
    for resource_spans in read_json(body) if is_json else read_binary(body):
        resource = attributes(resource_spans.get("resource", {}))
        for scope_spans in resource_spans.get("scopeSpans", []):
            for span in scope_spans.get("spans", []):
                yield span, resource, scope_spans.get("scope", {})


def read_json(body: bytes) -> list[Row]:
    """Spans sent as JSON, with ids in hexadecimal."""
    try:
        return list(json.loads(body)["resourceSpans"])
    except (ValueError, KeyError, TypeError):
        raise Refused(400, {"message": "Invalid request body"}) from None


def read_binary(body: bytes) -> list[Row]:
    """Spans sent as Protocol Buffers, brought to the shape of the others."""
    try:
        read = MessageToDict(ExportTraceServiceRequest.FromString(body))
    except DecodeError:
        raise Refused(400, {"message": "Failed to parse OTel Protobuf Trace"}) from None
    found: list[Row] = read.get("resourceSpans", [])
    for resource_spans in found:
        for scope_spans in resource_spans.get("scopeSpans", []):
            for span in scope_spans.get("spans", []):
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return found


def attributes(holder: Row) -> Row:
    """The attributes of a span or resource, by their keys."""
    return {pair["key"]: plain(pair.get("value", {})) for pair in holder.get("attributes", [])}


def plain(value: Row) -> Any:
    """An attribute's value."""
    if "arrayValue" in value:
        return [plain(item) for item in value["arrayValue"].get("values", [])]
    if "kvlistValue" in value:
        return attributes({"attributes": value["kvlistValue"].get("values", [])})
    if "intValue" in value:
        return int(value["intValue"])
    return next(iter(value.values()), None)


def made_of(span: Row, resource: Row, scope: Row) -> tuple[Row, Row]:
    """The observation that a span is, and what it says of its trace."""
    held = attributes(span)
    parent = span.get("parentSpanId") or None
    place = first({**resource, **held}, PLACES) or "default"
    status = span.get("status", {})
    failed = status.get("code") in {2, "STATUS_CODE_ERROR"}
    row = {
        "id": span["spanId"],
        "traceId": span["traceId"],
        "parentObservationId": parent,
        "type": kind_of(held),
        "name": span.get("name"),
        "startTime": at(span["startTimeUnixNano"]),
        "endTime": at(span["endTimeUnixNano"]) if span.get("endTimeUnixNano") else None,
        "level": held.get(f"{OBSERVATION}level") or ("ERROR" if failed else "DEFAULT"),
        "statusMessage": held.get(f"{OBSERVATION}status_message") or status.get("message"),
        "environment": place,
        "version": held.get("langfuse.version"),
        "model": first(held, MODELS),
        "modelParameters": read(held.get(f"{OBSERVATION}model.parameters")),
        "usageDetails": usage(held),
        "costDetails": read(held.get(f"{OBSERVATION}cost_details")) or {},
        "completionStartTime": read(held.get(f"{OBSERVATION}completion_start_time")),
        "promptName": held.get(f"{OBSERVATION}prompt.name"),
        "promptVersion": held.get(f"{OBSERVATION}prompt.version"),
        "input": read(first(held, INPUTS)),
        "output": read(first(held, OUTPUTS)),
        "metadata": {
            **below(held, f"{TRACE}metadata"),
            **below(held, f"{OBSERVATION}metadata"),
            "attributes": held,
            "resourceAttributes": resource,
            "scope": scope,
        },
    }
    if held.get("langfuse.internal.is_app_root"):
        row["isRootObservation"] = True
    return row, trace_of(row, held, place)


def trace_of(row: Row, held: Row, place: str) -> Row:
    """What a span says of its trace; its name, input and output are its root's."""
    root = row["parentObservationId"] is None or row.get("isRootObservation")
    said: Row = {
        "name": held.get(f"{TRACE}name") or (row["name"] if root else None),
        "input": read(held.get(f"{TRACE}input")) or (row["input"] if root else None),
        "output": read(held.get(f"{TRACE}output")) or (row["output"] if root else None),
        "userId": held.get("user.id"),
        "sessionId": held.get("session.id"),
        "release": held.get("langfuse.release"),
        "version": held.get("langfuse.version"),
        "public": held.get(f"{TRACE}public"),
        "tags": held.get(f"{TRACE}tags"),
        "metadata": below(held, f"{TRACE}metadata") or None,
    }
    known = {name: value for name, value in said.items() if value is not None}
    return {"id": row["traceId"], "timestamp": row["startTime"], "environment": place, **known}


def joined(known: Row, said: Row, *, is_root: bool) -> Row:
    """A trace with what another of its spans says: the earliest start, all tags and metadata."""
    merged = {**known, **said, "timestamp": min(known["timestamp"], said["timestamp"])}
    if not is_root and known.get("name"):
        # A root that is known has said what the trace is called.
        merged["name"] = known["name"]
    merged["tags"] = sorted({*known.get("tags", ()), *said.get("tags", ())})
    merged["metadata"] = {**known.get("metadata", {}), **said.get("metadata", {})}
    merged.pop("updatedAt", None)
    return merged


def at(nanoseconds: str | int) -> str:
    """A time of OpenTelemetry."""
    return iso(int(nanoseconds) // 1_000_000)


def kind_of(held: Row) -> str:
    """What an observation is."""
    named = held.get(f"{OBSERVATION}type") or held.get("openinference.span.kind")
    if named:
        return str(named).upper().replace("LLM", "GENERATION")
    known = KINDS.get(str(held.get("gen_ai.operation.name")))
    return known or ("GENERATION" if first(held, MODELS) else "SPAN")


def usage(held: Row) -> Row:
    """Token counts by kind: whole numbers alone, as the server keeps them."""
    named = read(held.get(f"{OBSERVATION}usage_details"))
    if isinstance(named, dict):
        return {kind: count for kind, count in named.items() if isinstance(count, int)}
    parts = {
        kind: held.get(f"gen_ai.usage.{kind}_tokens")
        for kind in ("input", "output")
        if isinstance(held.get(f"gen_ai.usage.{kind}_tokens"), int)
    }
    return {**parts, "total": sum(parts.values())} if parts else {}


def below(held: Row, prefix: str) -> Row:
    """The attributes whose keys go on from a prefix, under what their keys go on with."""
    found = {
        key[len(prefix) + 1 :]: read(value)
        for key, value in held.items()
        if key.startswith(f"{prefix}.")
    }
    whole = read(held.get(prefix))
    return {**(whole if isinstance(whole, dict) else {}), **found}


def first(held: Row, names: tuple[str, ...]) -> Any:
    """The first of some attributes that there is."""
    return next((held[name] for name in names if held.get(name) is not None), None)
