"""Verdicts as OpenTelemetry events: read back by OpenTelemetry's own protocol definitions."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from benchmark_assets.adapters.evaluation_events import events_of, send_events, write_events
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.verdict import Check, PluginResult, RunRow, Where

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


def run(**changes: Any) -> RunRow:
    empty = dict.fromkeys(RunRow.__struct_fields__)
    tools = PluginResult(
        plugin="tools",
        checks=(
            Check(
                name="required: search",
                outcome="failed",
                reason="search was not called",
                where=Where(span_id=SPAN),
            ),
            Check(name="required: send", outcome="passed"),
        ),
    )
    final = PluginResult(plugin="final", checks=(Check(name="contains", outcome="passed"),))
    values = {
        "date": "2026-01-31",
        "trace_id": TRACE,
        "model": "gpt-5",
        "contract": "refund",
        "contract_version": "3",
        "contract_sha256": "c0",
        "engine": "5",
        "outcome": "unresolved",
        "score": 0.75,
        "reason": "search was not called",
        "started_at": datetime(2026, 1, 31, 9, 30, 0, 250_000, tzinfo=UTC),
        "session_id": "thread-1",
        "file": "a.json",
        "plugins": (tools, final, PluginResult(plugin="odd", error="raised")),
    }
    return RunRow(**{**empty, **values, **changes})


def as_protocol(data: str) -> ExportLogsServiceRequest:
    """A request as OpenTelemetry's own definitions read it; ids are hex in OTLP's JSON."""
    request = json.loads(data)
    for record in records_of(request):
        for name in ("traceId", "spanId"):
            if name in record:
                assert len(bytes.fromhex(record[name])) == (16 if name == "traceId" else 8)
                del record[name]  # base64 to everyone but OTLP
    return ParseDict(request, ExportLogsServiceRequest())


def records_of(request: Any) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = request["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    return records


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    return {item["key"]: next(iter(item["value"].values())) for item in record["attributes"]}


def test_one_event_for_each_measure_as_the_conventions_name_them(tmp_path: Path) -> None:
    path = tmp_path / "out" / "events.jsonl"
    assert write_events(path, events_of(run())) == 4
    (line,) = path.read_text().splitlines()
    records = records_of(json.loads(line))
    found = {attributes(r)["gen_ai.evaluation.name"]: attributes(r) for r in records}
    assert {
        name: (
            item["gen_ai.evaluation.score.value"],
            item.get("gen_ai.evaluation.score.label"),
            item.get("gen_ai.evaluation.explanation"),
        )
        for name, item in found.items()
    } == {
        "passed": (0.0, "fail", "search was not called"),
        "score": (0.75, None, None),
        "tools": (0.0, "fail", "required: search: search was not called"),
        "final": (1.0, "pass", None),
    }
    assert {r["eventName"] for r in records} == {"gen_ai.evaluation.result"}
    assert {r["traceId"] for r in records} == {TRACE}
    assert [r.get("spanId") for r in records] == [None, None, SPAN, None]
    assert {r["timeUnixNano"] for r in records} == {"1769851800250000000"}
    assert found["passed"]["benchmark.contract"] == "refund"
    assert found["passed"]["gen_ai.conversation.id"] == "thread-1"


def test_the_protocols_own_definitions_read_it(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    write_events(path, events_of(run()))
    request = as_protocol(path.read_text())
    record = request.resource_logs[0].scope_logs[0].log_records[0]
    assert record.event_name == "gen_ai.evaluation.result"
    assert record.time_unix_nano == 1769851800250000000


def test_a_run_that_could_not_be_evaluated_is_an_error_and_no_zero() -> None:
    failed = run(outcome="error", score=None, reason="trace is cut off", plugins=())
    (event,) = events_of(failed)
    values = attributes(event)
    assert values["error.type"] == "evaluation_error"
    assert values["gen_ai.evaluation.explanation"] == "trace is cut off"
    assert "gen_ai.evaluation.score.value" not in values


def test_a_run_that_nothing_was_measured_of_has_no_event() -> None:
    assert list(events_of(run(outcome="unchecked", score=None, plugins=()))) == []


@pytest.mark.parametrize("trace_id", ["0" * 32, "run-1", TRACE.upper()])
def test_an_id_that_is_not_w3cs_stands_in_an_attribute_alone(trace_id: str) -> None:
    for event in events_of(run(trace_id=trace_id)):
        assert "traceId" not in event
        assert "spanId" not in event
        assert attributes(event)["benchmark.trace_id"] == trace_id


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_events(tmp_path / name, events_of(run()))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


# Endpoints.


@contextmanager
def endpoint(*statuses: int) -> Iterator[tuple[str, list[tuple[str, Any, bytes]]]]:
    """Answers with the statuses, then with 200; yields its address and what came."""
    came: list[tuple[str, Any, bytes]] = []
    left = list(statuses)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            came.append((self.path, self.headers, body))
            self.send_response(left.pop(0) if left else 200)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", came
    server.shutdown()
    thread.join(10)
    server.server_close()


@pytest.mark.parametrize("path", ["", "/", "/v1/logs", "/v1/logs/"])
def test_are_sent_to_an_endpoint(path: str) -> None:
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=planted%20key,other=1"}
    with endpoint() as (address, came):
        assert send_events(address + path, events_of(run()), env) == 4
    ((where, headers, body),) = came
    assert where == "/v1/logs"
    assert headers["x-key"] == "planted key"
    assert headers["Content-Type"] == "application/json"
    assert len(as_protocol(body.decode()).resource_logs[0].scope_logs[0].log_records) == 4


def test_many_are_sent_in_parts() -> None:
    many = (event for _ in range(300) for event in events_of(run()))
    with endpoint() as (address, came):
        assert send_events(address, many, {}) == 1200
    assert [len(records_of(msgspec.json.decode(body))) for _, _, body in came] == [500, 500, 200]


def test_what_passes_is_tried_again() -> None:
    with endpoint(503, 429) as (address, came):
        assert send_events(address, events_of(run()), {}) == 4
    assert len(came) == 3


@pytest.mark.parametrize(("statuses", "times"), [((401,), 1), ((503,) * 9, 4)])
def test_what_is_refused_is_an_error_without_keys(statuses: tuple[int, ...], times: int) -> None:
    env = {"OTEL_EXPORTER_OTLP_HEADERS": "x-key=planted"}
    with endpoint(*statuses) as (address, came), pytest.raises(InputError) as caught:
        send_events(address, events_of(run()), env)
    assert str(statuses[0]) in str(caught.value)
    assert "planted" not in str(caught.value)
    assert len(came) == times


@pytest.mark.parametrize("address", ["localhost:4318", "ftp://x/", "http://user:planted@x/"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(InputError, match="not an address") as caught:
        send_events(address, events_of(run()), {})
    assert "planted" not in str(caught.value)
