"""Verdicts as OpenTelemetry events, `gen_ai.evaluation.result`: to a file or to an endpoint.

Belongs here: the events of a run as log records of OTLP in JSON, and handing them on. Does not
belong here: which runs (`pipeline.write_back`), what is measured (`measures`).

The event is that of OpenTelemetry's conventions for generative AI: `gen_ai.evaluation.name`,
`gen_ai.evaluation.score.value`, `gen_ai.evaluation.score.label` (`pass` or `fail`),
`gen_ai.evaluation.explanation`, and `error.type` for a run that could not be evaluated
(`evaluation_error`). It is a log record with an event name. Where a trace's id is one of W3C's, it
is the record's, so that the event stands in its trace, at the span that decided it if there is
one; else the trace is named by an attribute alone. What conventions have no name for stands under
`benchmark.`.

Times are the trace's own: the same runs give the same bytes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec

from benchmark_assets import __version__
from benchmark_assets.adapters.measures import PASSED, measures, provenance
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.verdict import RunRow

EVENT = "gen_ai.evaluation.result"
HEADERS = "OTEL_EXPORTER_OTLP_HEADERS"

_INFO = 9
_MOST = 500
_ATTEMPTS = 4
_TIMEOUT_S = 30.0
_W3C_TRACE = re.compile(r"(?!0{32})[0-9a-f]{32}")
_W3C_SPAN = re.compile(r"(?!0{16})[0-9a-f]{16}")
_LOGS = "/v1/logs"

Record = dict[str, Any]


def events_of(run: RunRow) -> Iterator[Record]:
    """The log records of a run."""
    for measure in measures(run):
        label = None if measure.passed is None else "pass" if measure.passed else "fail"
        attributes = {
            "gen_ai.evaluation.name": measure.name,
            "gen_ai.evaluation.score.value": measure.value,
            "gen_ai.evaluation.score.label": label,
            "gen_ai.evaluation.explanation": measure.comment,
        }
        yield _record(run, attributes, measure.span_id)
    if run.outcome == "error":
        attributes = {
            "gen_ai.evaluation.name": PASSED,
            "error.type": "evaluation_error",
            "gen_ai.evaluation.explanation": run.reason,
        }
        yield _record(run, attributes, None)


def _record(run: RunRow, attributes: Mapping[str, Any], span_id: str | None) -> Record:
    time = run.started_at or datetime.fromisoformat(run.date).replace(tzinfo=UTC)
    nanoseconds = str(int(time.timestamp()) * 10**9 + time.microsecond * 1000)
    own = {f"benchmark.{name}": value for name, value in provenance(run).items()}
    everything = {
        **attributes,
        **own,
        "benchmark.trace_id": run.trace_id,
        "benchmark.model": run.model,
        "benchmark.task": run.task,
        "gen_ai.conversation.id": run.session_id,
    }
    record: Record = {
        "timeUnixNano": nanoseconds,
        "observedTimeUnixNano": nanoseconds,
        "severityNumber": _INFO,
        "eventName": EVENT,
        "attributes": _attributes(everything),
    }
    if _W3C_TRACE.fullmatch(run.trace_id):
        record["traceId"] = run.trace_id
        if span_id is not None and _W3C_SPAN.fullmatch(span_id):
            record["spanId"] = span_id
    return record


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": _value(value)} for key, value in values.items() if value is not None
    ]


def _value(value: str | float) -> dict[str, Any]:
    return {"stringValue": value} if isinstance(value, str) else {"doubleValue": value}


def payloads(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Requests of OTLP, some hundred records each."""
    waiting: list[Record] = []
    for record in records:
        waiting.append(record)
        if len(waiting) == _MOST:
            yield _payload(waiting)
            waiting = []
    if waiting:
        yield _payload(waiting)


def _payload(records: Sequence[Record]) -> dict[str, Any]:
    scope = {"name": "benchmark_assets", "version": __version__}
    service = _attributes({"service.name": "benchmark_assets"})
    logs = {"scope": scope, "logRecords": list(records)}
    return {"resourceLogs": [{"resource": {"attributes": service}, "scopeLogs": [logs]}]}


def write_events(path: Path, records: Iterable[Record]) -> int:
    """Write records to a file, a request a line, as collectors' files have it; how many."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with path.open("wb") as file:
        for payload in payloads(records):
            file.write(msgspec.json.encode(payload) + b"\n")
            count += _count(payload)
    return count


def send_events(
    endpoint: str, records: Iterable[Record], env: Mapping[str, str] | None = None
) -> int:
    """Send records to an endpoint of OTLP over HTTP; how many.

    Args:
        endpoint: Its address, with or without `/v1/logs`.
        records: The records.
        env: Where `OTEL_EXPORTER_OTLP_HEADERS` is read from; default: the process's environment.

    Raises:
        InputError: If it does not take them; nothing of a header is repeated.
    """
    import httpx

    address = _address(endpoint)
    headers = _headers((os.environ if env is None else env).get(HEADERS, ""))
    transport = httpx.HTTPTransport(retries=_ATTEMPTS - 1)
    count = 0
    with httpx.Client(transport=transport, timeout=_TIMEOUT_S, headers=headers) as client:
        for payload in payloads(records):
            _send(client, address, msgspec.json.encode(payload))
            count += _count(payload)
    return count


def _send(client: Any, address: str, body: bytes) -> None:
    import httpx

    said = ""
    for _ in range(_ATTEMPTS):
        try:
            answer = client.post(
                address, content=body, headers={"Content-Type": "application/json"}
            )
        except httpx.HTTPError as error:
            said = f"does not answer ({type(error).__name__})"
            continue
        if answer.is_success:
            return
        said = f"answers with {answer.status_code}"
        if answer.status_code not in (429, 502, 503, 504):
            break
    cure = f"check the address, and {HEADERS} if it needs a key"
    raise InputError(Problem(f"{address} {said}", cure=cure))


def _address(endpoint: str) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        cure = "write it with http:// or https:// in front, without user and password"
        raise InputError(Problem("the endpoint of events is not an address", cure=cure))
    path = parts.path.rstrip("/")
    return f"{parts.scheme}://{parts.netloc}{path.removesuffix(_LOGS)}{_LOGS}"


def _headers(text: str) -> dict[str, str]:
    """`key=value,key=value`, values percent-encoded."""
    pairs = (part.partition("=") for part in text.split(",") if "=" in part)
    return {key.strip(): unquote(value.strip()) for key, _, value in pairs}


def _count(payload: Mapping[str, Any]) -> int:
    return len(payload["resourceLogs"][0]["scopeLogs"][0]["logRecords"])
