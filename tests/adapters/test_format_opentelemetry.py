"""OpenTelemetry spans, written by hand: every container, every spelling.

Expected values are worked out from the spans beside them.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import choose_format, opentelemetry
from benchmark_assets.adapters.formats.langfuse_usage import read_tokens
from benchmark_assets.adapters.formats.opentelemetry_attributes import (
    reported_tokens,
    reported_usage,
    usage_details,
)
from benchmark_assets.model.fidelity import Usage
from benchmark_assets.model.trace import Tokens, TraceSnapshot
from benchmark_assets.scoring.trace_fidelity import strict
from tests.adapters.samples import lines, parse, trace_file
from tests.adapters.test_formats import ODD, changed, check_reading, places

TRACE = "0af7651916cd43dd8448eb211c80319c"
START = 1_772_366_400_000_000_000
"""2026-03-01T12:00:00Z in nanoseconds."""

ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Where is order 7?"}]}]
REQUESTED = [
    {
        "role": "assistant",
        "parts": [
            {"type": "text", "content": "Let me look."},
            {"type": "tool_call", "id": "call-1", "name": "find", "arguments": {"id": 7}},
        ],
        "finish_reason": "tool_call",
    }
]
ANSWERED = [
    {
        "role": "assistant",
        "parts": [{"type": "text", "content": "It ships today."}],
        "finish_reason": "stop",
    }
]


def span(
    id_: str, parent: str | None, name: str, at: int, until: int, /, **rest: Any
) -> dict[str, Any]:
    """A span in the flat form; times in seconds after noon. `_` in attributes stands for `.`."""
    return {
        "trace_id": TRACE,
        "span_id": id_,
        "parent_span_id": parent,
        "name": name,
        "start_time": START + at * 10**9,
        "end_time": START + until * 10**9,
        "status": {"code": "UNSET"},
        "scope": {"name": "app"},
        "attributes": {},
        **rest,
    }


def agent(id_: str, parent: str | None, at: int, until: int, **attributes: Any) -> dict[str, Any]:
    return span(
        id_,
        parent,
        "invoke_agent clerk",
        at,
        until,
        attributes={
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": "clerk",
            **attributes,
        },
    )


def chat(
    id_: str, parent: str | None, at: int, used: tuple[int, int] | None, **attributes: Any
) -> dict[str, Any]:
    usage = (
        {}
        if used is None
        else {"gen_ai.usage.input_tokens": used[0], "gen_ai.usage.output_tokens": used[1]}
    )
    return span(
        id_,
        parent,
        "chat m-1",
        at,
        at + 1,
        attributes={
            "gen_ai.operation.name": "chat",
            "gen_ai.request.model": "m-1",
            **usage,
            **attributes,
        },
    )


def tool(id_: str, parent: str | None, at: int, **attributes: Any) -> dict[str, Any]:
    return span(
        id_,
        parent,
        "execute_tool find",
        at,
        at + 1,
        attributes={
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "find",
            "gen_ai.tool.call.id": "call-1",
            "gen_ai.tool.call.arguments": '{"id": 7}',
            "gen_ai.tool.call.result": '{"state": "packed"}',
            **attributes,
        },
    )


RESOURCE = {
    "service.name": "shop",
    "service.version": "1.2",
    "deployment.environment.name": "prod",
    "telemetry.sdk.name": "opentelemetry",
    "process.pid": 77,
}

SPANS = [
    agent(
        "a1",
        None,
        0,
        6,
        **{
            "gen_ai.usage.input_tokens": 300,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.conversation.id": "s-1",
            "user.id": "u-1",
            "app.tier": "gold",
            "gen_ai.input.messages": json.dumps(ASKED),
            "gen_ai.output.messages": json.dumps(ANSWERED),
        },
    ),
    chat(
        "c1",
        "a1",
        1,
        (100, 10),
        **{
            "gen_ai.response.id": "r1",
            "gen_ai.response.model": "m-1-0301",
            "gen_ai.response.finish_reasons": ["tool_call"],
            "gen_ai.input.messages": json.dumps(ASKED),
            "gen_ai.output.messages": json.dumps(REQUESTED),
        },
    ),
    tool("t1", "a1", 2),
    chat(
        "c2",
        "a1",
        4,
        (200, 20),
        **{
            "gen_ai.response.id": "r2",
            "gen_ai.response.model": "m-1-0301",
            "gen_ai.response.finish_reasons": '["stop"]',
            "gen_ai.usage.cache_read.input_tokens": 80,
            "gen_ai.usage.reasoning.output_tokens": 5,
            "gen_ai.output.messages": json.dumps(ANSWERED),
        },
    ),
]
for _item in SPANS:
    _item["resource"] = {"attributes": RESOURCE}


# The same four spans in every container.


def _typed(value: Any) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_typed(item) for item in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": _pairs(value)}}
    return {"stringValue": value}


def _pairs(attributes: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": key, "value": _typed(value)} for key, value in attributes.items()]


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _pairs(RESOURCE)},
                "scopeSpans": [
                    {
                        "scope": {"name": item["scope"]["name"], "version": "1"},
                        "spans": [
                            {
                                "traceId": item["trace_id"],
                                "spanId": item["span_id"],
                                "parentSpanId": item["parent_span_id"] or "",
                                "name": item["name"],
                                "kind": 1,
                                "startTimeUnixNano": str(item["start_time"]),
                                "endTimeUnixNano": str(item["end_time"]),
                                "attributes": _pairs(item["attributes"]),
                                "status": {"code": 2} if item["status"]["code"] == "ERROR" else {},
                            }
                        ],
                    }
                    for item in spans
                ],
            }
        ]
    }


def sdk(item: dict[str, Any]) -> dict[str, Any]:
    """As the Python SDK's `to_json` has a span: without its scope."""

    def iso(nanos: int) -> str:
        return datetime.fromtimestamp(nanos // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%S.000000Z")

    parent = item["parent_span_id"]
    return {
        "name": item["name"],
        "context": {
            "trace_id": f"0x{item['trace_id']}",
            "span_id": f"0x{item['span_id']}",
            "trace_state": "[]",
        },
        "kind": "SpanKind.INTERNAL",
        "parent_id": f"0x{parent}" if parent else None,
        "start_time": iso(item["start_time"]),
        "end_time": iso(item["end_time"]),
        "status": {"status_code": item["status"]["code"]},
        "attributes": item["attributes"],
        "events": [],
        "links": [],
        "resource": item["resource"],
    }


def jaeger(*spans: dict[str, Any]) -> dict[str, Any]:
    def tags(attributes: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {
                "key": key,
                "type": "string",
                "value": json.dumps(value) if isinstance(value, list) else value,
            }
            for key, value in attributes.items()
        ]

    return {
        "data": [
            {
                "traceID": TRACE,
                "spans": [
                    {
                        "traceID": TRACE,
                        "spanID": item["span_id"],
                        "operationName": item["name"],
                        "references": [
                            {
                                "refType": "CHILD_OF",
                                "traceID": TRACE,
                                "spanID": item["parent_span_id"],
                            }
                        ]
                        if item["parent_span_id"]
                        else [],
                        "startTime": item["start_time"] // 1000,
                        "duration": (item["end_time"] - item["start_time"]) // 1000,
                        "tags": tags(
                            {
                                **item["attributes"],
                                "otel.scope.name": item["scope"]["name"],
                                "span.kind": "internal",
                            }
                        ),
                        "logs": [],
                        "processID": "p1",
                    }
                    for item in spans
                ],
                "processes": {
                    "p1": {
                        "serviceName": RESOURCE["service.name"],
                        "tags": tags({k: v for k, v in RESOURCE.items() if k != "service.name"}),
                    }
                },
            }
        ]
    }


def _pretty(*spans: dict[str, Any]) -> str:
    return "\n".join(json.dumps(sdk(item), indent=4) for item in spans)


CONTAINERS: dict[str, Any] = {
    "flat list": SPANS,
    "flat object": {"spans": SPANS},
    "flat lines": lines(*SPANS),
    "otlp": otlp(*SPANS),
    "otlp lines": lines(otlp(*SPANS[:2]), otlp(*SPANS[2:])),
    "otlp list": [otlp(*SPANS[:3]), otlp(SPANS[3])],
    "otlp in a result": {"result": otlp(*SPANS)},
    "sdk list": [sdk(item) for item in SPANS],
    "sdk lines": lines(*map(sdk, SPANS)),
    "sdk objects after one another": _pretty(*SPANS),
    "jaeger": jaeger(*SPANS),
    "jaeger trace": jaeger(*SPANS)["data"][0],
    "jaeger lines": lines(jaeger(*SPANS)["data"][0]),
}


@pytest.mark.parametrize("container", CONTAINERS)
def test_a_trace_is_the_same_in_every_container(container: str) -> None:
    file = trace_file(CONTAINERS[container])
    assert choose_format(file).name == "opentelemetry"
    (found,) = parse(CONTAINERS[container])
    assert found.trace_id == TRACE
    assert found.problem is None
    assert found.name == "invoke_agent clerk"
    assert found.started_at == datetime(2026, 3, 1, 12, tzinfo=UTC)
    assert found.duration_ms == 6000
    assert found.agents == ("clerk",)
    assert found.prompt == "Where is order 7?"
    assert found.final_answer == "It ships today."
    assert [(m.text, m.before_call, m.agent) for m in found.messages] == [
        ("Let me look.", 0, "clerk"),
        ("It ships today.", 1, "clerk"),
    ]
    (call,) = found.tool_calls
    assert (call.name, call.arguments, call.status, call.agent) == (
        "find",
        {"id": 7},
        "ok",
        "clerk",
    )
    assert call.result == {"state": "packed"}
    assert (call.span_id, call.error) == ("t1", None)
    assert [g.tokens for g in found.generations] == [
        Tokens(input=100, output=10),
        Tokens(input=120, output=15, cache_read=80, reasoning=5),
    ]
    assert [
        (g.model, g.finish_reason, g.response_id, g.before_call) for g in found.generations
    ] == [
        ("m-1-0301", "tool_call", "r1", 0),
        ("m-1-0301", "stop", "r2", 1),
    ]
    assert found.tokens == Tokens(input=220, output=25, cache_read=80, reasoning=5)
    assert (found.session_id, found.user_id, found.environment) == ("s-1", "u-1", "prod")
    assert found.metadata["service.name"] == "shop"
    assert found.metadata["app.tier"] == "gold"
    assert not {"telemetry.sdk.name", "process.pid", "gen_ai.input.messages"} & set(found.metadata)
    assert found.failures_recorded
    assert found.error_spans == ()
    record = found.workflow_record
    assert record is not None
    assert [(e.executor, e.usage, e.finish_reason, e.derived) for e in record.ledger] == [
        ("clerk", Usage(input=300, output=30, total=330), "stop", False)
    ]
    assert [(t.executor, t.usage, t.finish_reason) for t in record.turns] == [
        ("clerk", Usage(input=100, output=10, total=110), "tool_call"),
        ("clerk", Usage(input=200, output=20, total=220, cached=80, reasoning=5), "stop"),
    ]
    assert strict.reconcile(record).outcome == "PASS"


@given(st.permutations(SPANS))
def test_the_order_of_spans_means_nothing(spans: list[dict[str, Any]]) -> None:
    def same(found: TraceSnapshot) -> tuple[Any, ...]:
        return (found.tool_calls, found.generations, found.messages, found.workflow_record)

    assert [same(item) for item in parse(spans)] == [same(item) for item in parse(SPANS)]


def test_a_span_that_is_exported_twice_is_one() -> None:
    running = {**SPANS[0], "end_time": None}
    (found,) = parse([running, *SPANS, SPANS[1], SPANS[2]])
    assert len(found.tool_calls) == 1
    assert found.tokens.input == 220
    assert found.duration_ms == 6000


def test_spans_of_several_traces_are_told_apart() -> None:
    other = [{**item, "trace_id": "b" * 32} for item in SPANS]
    mixed = [item for pair in zip(SPANS, other, strict=True) for item in pair]
    found = parse(mixed)
    assert [item.trace_id for item in found] == [TRACE, "b" * 32]
    assert [item.tokens.total for item in found] == [330, 330]


@pytest.mark.parametrize(
    ("given_time", "expected"),
    [
        (START, datetime(2026, 3, 1, 12, tzinfo=UTC)),
        (str(START + 1_500), datetime(2026, 3, 1, 12, 0, 0, 1, tzinfo=UTC)),
        (START // 1000, datetime(2026, 3, 1, 12, tzinfo=UTC)),
        (START // 10**6, datetime(2026, 3, 1, 12, tzinfo=UTC)),
        (START // 10**9, datetime(2026, 3, 1, 12, tzinfo=UTC)),
        ("2026-03-01T12:00:00.000000Z", datetime(2026, 3, 1, 12, tzinfo=UTC)),
        (0, None),
        ("soon", None),
        (10**30, None),
    ],
)
def test_times_of_flat_spans_are_in_any_unit(given_time: Any, expected: datetime | None) -> None:
    (found,) = parse([{**SPANS[1], "start_time": given_time, "end_time": None}])
    assert found.generations[0].started_at == expected


# What is none, and what is broken.


@pytest.mark.parametrize(
    "content",
    [
        {"spans": []},
        {"data": []},
        {"data": [{"spans": []}]},
        [{"trace_id": TRACE, "name": "x"}],
        [{"id": "o1", "traceId": "t", "type": "SPAN", "name": "x", "startTime": "2026-03-01"}],
        {"resourceLogs": []},
    ],
)
def test_what_holds_no_spans_is_not_taken_for_it(content: Any) -> None:
    assert not opentelemetry.FORMAT.matches(trace_file(content))


def test_langfuse_observations_are_not_spans() -> None:
    row = {
        "id": "o1",
        "traceId": "t",
        "parentObservationId": None,
        "type": "SPAN",
        "name": "x",
        "startTime": "2026-03-01T12:00:00Z",
    }
    assert choose_format(trace_file([row])).name == "langfuse"


def test_a_trace_without_any_agent_is_an_error_row_that_says_so() -> None:
    web = span("w", None, "GET /", 0, 1, trace_id="c" * 32, scope={"name": "http"})
    good, empty = parse([*SPANS, web])
    assert good.problem is None
    assert empty.problem == (
        f"sub/results.json: [4]: trace {'c' * 32}: none of its 1 spans (by http) is of an agent, "
        "a model or a tool; instrument them by the GenAI conventions or OpenInference"
    )
    assert empty.trace_id == "c" * 32


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ([*SPANS, 5], "sub/results.json: [4]: is neither a span nor holds spans"),
        (
            {"spans": [*SPANS, None]},
            "sub/results.json: spans[4]: expected a span, an object",
        ),
        (
            {"spans": [*SPANS, {"span_id": "x", "name": "x"}]},
            "sub/results.json: spans[4].traceId: a span of no trace",
        ),
        (
            {"resourceSpans": [*otlp(*SPANS)["resourceSpans"], {"resource": {}}]},
            "sub/results.json: resourceSpans[1]: has no list scopeSpans",
        ),
        (
            {"resourceSpans": [*otlp(*SPANS)["resourceSpans"], {"scopeSpans": [{"spans": 1}]}]},
            "sub/results.json: resourceSpans[1].scopeSpans[0]: has no list spans",
        ),
        (
            {"data": [*jaeger(*SPANS)["data"], {}]},
            "sub/results.json: data[1]: has no list spans",
        ),
        (
            lines(*SPANS, "{oops"),
            "sub/results.json:5: is not JSON: JSON is malformed: object keys must be strings "
            "at column 2",
        ),
    ],
)
def test_one_broken_thing_is_located_and_costs_nothing_else(content: Any, problem: str) -> None:
    broken, good = parse(content)
    assert broken.problem == problem
    assert good.problem is None
    assert good.tokens.total == 330


# Spellings.

SPELLINGS: list[tuple[dict[str, Any], Tokens, Usage | None]] = [
    (
        {"gen_ai.usage.prompt_tokens": 100, "gen_ai.usage.completion_tokens": 10},
        Tokens(input=100, output=10),
        Usage(input=100, output=10, total=110),
    ),
    *(
        (
            {
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 10,
                f"gen_ai.usage.{name}": 40,
            },
            Tokens(input=60, output=10, cache_read=40),
            Usage(input=100, output=10, total=110, cached=40),
        )
        for name in (
            "cache_read.input_tokens",
            "cache_read_input_tokens",
            "cache_read_tokens",
            "input_tokens.cached",
            "details.cache_read_tokens",
        )
    ),
    *(
        (
            {
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 10,
                f"gen_ai.usage.{name}": 40,
            },
            Tokens(input=60, output=10, cache_write=40),
            Usage(input=100, output=10, total=110),
        )
        for name in (
            "cache_write.input_tokens",
            "cache_creation.input_tokens",
            "cache_creation_input_tokens",
            "cache_write_input_tokens",
        )
    ),
    *(
        (
            {
                "gen_ai.usage.input_tokens": 100,
                "gen_ai.usage.output_tokens": 10,
                f"gen_ai.usage.{name}": 4,
            },
            Tokens(input=100, output=6, reasoning=4),
            Usage(input=100, output=10, total=110, reasoning=4),
        )
        for name in ("reasoning.output_tokens", "reasoning_tokens", "output_tokens.reasoning")
    ),
    (
        {
            "llm.token_count.prompt": 100,
            "llm.token_count.completion": 10,
            "llm.token_count.total": 110,
            "llm.token_count.prompt_details.cache_read": 40,
            "llm.token_count.prompt_details.cache_write": 20,
            "llm.token_count.completion_details.reasoning": 4,
        },
        Tokens(input=40, output=6, cache_read=40, cache_write=20, reasoning=4),
        Usage(input=100, output=10, total=110, cached=40, reasoning=4),
    ),
    (
        # Anthropic's own count leaves cached tokens out of the input; the total tells.
        {
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 10,
            "gen_ai.usage.cache_read.input_tokens": 40,
            "gen_ai.usage.total_tokens": 150,
        },
        Tokens(input=100, output=10, cache_read=40),
        Usage(input=140, output=10, total=150, cached=40),
    ),
    (
        # More is cached than the input has, so it is beside it.
        {
            "gen_ai.usage.input_tokens": 10,
            "gen_ai.usage.output_tokens": 5,
            "gen_ai.usage.cache_read_input_tokens": 400,
        },
        Tokens(input=10, output=5, cache_read=400),
        Usage(input=410, output=5, total=415, cached=400),
    ),
    (
        {"gen_ai.aggregated_usage.input_tokens": 7, "gen_ai.aggregated_usage.output_tokens": 3},
        Tokens(input=7, output=3),
        Usage(input=7, output=3, total=10),
    ),
    (
        {"gen_ai.usage.prompt_tokens": "100", "llm.usage.total_tokens": 110},
        Tokens(input=100),
        Usage(input=100, total=110),
    ),
    ({"gen_ai.usage.total_tokens": 9}, Tokens(), Usage(total=9)),
    ({"gen_ai.usage.input_tokens": "many", "gen_ai.usage.output_tokens": -1}, Tokens(), None),
    ({}, Tokens(), None),
]


@pytest.mark.parametrize(("attributes", "tokens", "usage"), SPELLINGS)
def test_tokens_in_every_spelling(
    attributes: dict[str, Any], tokens: Tokens, usage: Usage | None
) -> None:
    assert reported_tokens(attributes) == tokens
    assert reported_usage(attributes) == usage
    # And so they arrive in a snapshot.
    call = chat("c", None, 0, None, **attributes)
    (found,) = parse([call])
    assert found.generations[0].tokens == tokens


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "gen_ai.usage.input_tokens",
                "gen_ai.usage.output_tokens",
                "gen_ai.usage.total_tokens",
                "gen_ai.usage.cache_read.input_tokens",
                "gen_ai.usage.cache_creation.input_tokens",
                "gen_ai.usage.reasoning_tokens",
                "llm.token_count.prompt",
            ]
        ),
        st.integers(-2, 300) | st.text(max_size=2) | st.floats(),
    )
)
def test_buckets_are_disjoint_and_their_sum_is_the_usage(attributes: dict[str, Any]) -> None:
    tokens, usage = reported_tokens(attributes), reported_usage(attributes)
    assert tokens == read_tokens(usage_details(attributes))
    assert all(bucket is None or bucket >= 0 for bucket in tokens.buckets())
    if usage is not None and usage.input is not None and usage.output is not None:
        assert usage.total == usage.input + usage.output == tokens.total


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.response.finish_reasons": ["length"]},
        {"gen_ai.response.finish_reasons": '["length"]'},
        {"gen_ai.response.finish_reasons": "length"},
        {"gen_ai.response.finish_reasons": ["length", "stop"]},
        {"llm.finish_reason": "length"},
        {"gen_ai.completion.0.finish_reason": "length"},
        {"gen_ai.output.messages": json.dumps([{**ANSWERED[0], "finish_reason": "length"}])},
    ],
)
def test_finish_reasons_in_every_shape(attributes: dict[str, Any]) -> None:
    nodes = [agent("a", None, 0, 9, **attributes), chat("c", "a", 1, (1, 1), **attributes)]
    (found,) = parse(nodes)
    assert [g.finish_reason for g in found.generations] == ["length"]
    record = found.workflow_record
    assert record is not None
    assert [e.finish_reason for e in record.ledger] == ["length"]
    assert [t.finish_reason for t in record.turns] == ["length"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "chat"},
        {"gen_ai.operation.name": "generate_content"},
        {"gen_ai.operation.name": "text_completion"},
        {"openinference.span.kind": "LLM"},
        {"llm.request.type": "chat"},
        {"gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 1},
        {"gen_ai.request.model": "m", "gen_ai.response.id": "r"},
    ],
)
def test_calls_of_models_are_known_by(attributes: dict[str, Any]) -> None:
    (found,) = parse([span("c", None, "call", 0, 1, attributes=attributes)])
    assert len(found.generations) == 1


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": 5},
        {"openinference.span.kind": "EMBEDDING", "llm.token_count.prompt": 5},
        {"llm.request.type": "rerank", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": 5},
        {"gen_ai.request.model": "m"},
    ],
)
def test_what_is_no_call_of_a_model(attributes: dict[str, Any]) -> None:
    (found,) = parse([agent("a", None, 0, 2), span("c", "a", "call", 0, 1, attributes=attributes)])
    assert found.generations == ()
    assert found.tokens == Tokens()


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        (
            "invoke_agent X",
            {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "N"},
            "N",
        ),
        ("invoke_agent X", {"gen_ai.operation.name": "invoke_agent"}, "X"),
        ("X", {"openinference.span.kind": "AGENT"}, "X"),
        ("run", {"openinference.span.kind": "AGENT", "agent.name": "N"}, "N"),
        ("node", {"openinference.span.kind": "AGENT", "graph.node.id": "N"}, "N"),
        ("X.agent", {"traceloop.span.kind": "agent"}, "X"),
        ("agent run", {"agent_name": "N"}, "N"),
    ],
)
def test_agents_are_known_by(name: str, attributes: dict[str, Any], expected: str) -> None:
    (found,) = parse([span("a", None, name, 0, 1, attributes=attributes)])
    assert found.agents == (expected,)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        (
            "execute_tool find",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "find",
                "gen_ai.tool.call.arguments": '{"id": 7}',
                "gen_ai.tool.call.result": "packed",
            },
        ),
        (
            "find",
            {
                "openinference.span.kind": "TOOL",
                "tool.name": "find",
                "tool.parameters": '{"type": "object"}',
                "input.value": '{"id": 7}',
                "output.value": "packed",
            },
        ),
        (
            "find.tool",
            {
                "traceloop.span.kind": "tool",
                "traceloop.entity.name": "find",
                "traceloop.entity.input": '{"id": 7}',
                "traceloop.entity.output": "packed",
            },
        ),
        (
            "running tool",
            {"gen_ai.tool.name": "find", "tool_arguments": '{"id": 7}', "tool_response": "packed"},
        ),
        (
            "execute_tool find",
            {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "find",
                "gcp.vertex.agent.tool_call_args": '{"id": 7}',
                "gcp.vertex.agent.tool_response": "packed",
            },
        ),
    ],
)
def test_tools_are_known_by(name: str, attributes: dict[str, Any]) -> None:
    (found,) = parse([span("t", None, name, 0, 1, attributes=attributes)])
    (call,) = found.tool_calls
    assert (call.name, call.arguments, call.result, call.status) == (
        "find",
        {"id": 7},
        "packed",
        "ok",
    )


# What was said, wherever it is.

OI_SAID = {
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be brief.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.type": "text",
    "llm.input_messages.1.message.contents.0.message_content.text": "Where is order 7?",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "Let me look.",
    "llm.output_messages.0.message.tool_calls.0.tool_call.id": "call-1",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "find",
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.arguments": '{"id": 7}',
}
TRACELOOP_SAID = {
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": "Be brief.",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": "Where is order 7?",
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "Let me look.",
    "gen_ai.completion.0.tool_calls.0.id": "call-1",
    "gen_ai.completion.0.tool_calls.0.name": "find",
    "gen_ai.completion.0.tool_calls.0.arguments": '{"id": 7}',
}
ADK_SAID = {
    "gcp.vertex.agent.llm_request": json.dumps(
        {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Where is order 7?"}]}]}
    ),
    "gcp.vertex.agent.llm_response": json.dumps(
        {
            "content": {
                "role": "model",
                "parts": [
                    {"text": "Hm, order 7.", "thought": True},
                    {"text": "Let me look."},
                    {"function_call": {"id": "call-1", "name": "find", "args": {"id": 7}}},
                ],
            },
            "finish_reason": "STOP",
        }
    ),
}
DETAILS = [
    {
        "event_name": "gen_ai.client.inference.operation.details",
        "attributes": {"gen_ai.input.messages": ASKED, "gen_ai.output.messages": REQUESTED},
    }
]
EVENTS = [
    {"name": "gen_ai.system.message", "attributes": {"content": "Be brief."}},
    {"name": "gen_ai.user.message", "attributes": {"content": "Where is order 7?"}},
    {
        "name": "gen_ai.choice",
        "attributes": {
            "finish_reason": "tool_calls",
            "message": json.dumps(
                {
                    "role": "assistant",
                    "content": "Let me look.",
                    "tool_calls": [
                        {
                            "id": "call-1",
                            "type": "function",
                            "function": {"name": "find", "arguments": '{"id": 7}'},
                        }
                    ],
                }
            ),
        },
    },
]
BEDROCK = [
    {
        "name": "gen_ai.user.message",
        "attributes": {"content": json.dumps([{"text": "Where is order 7?"}])},
    },
    {
        "name": "gen_ai.choice",
        "attributes": {
            "finish_reason": "tool_use",
            "message": json.dumps(
                [
                    {"text": "Let me look."},
                    {"toolUse": {"toolUseId": "call-1", "name": "find", "input": {"id": 7}}},
                ]
            ),
        },
    },
]


@pytest.mark.parametrize(
    ("attributes", "events"),
    [
        (
            {
                "gen_ai.input.messages": json.dumps(ASKED),
                "gen_ai.output.messages": json.dumps(REQUESTED),
            },
            [],
        ),
        ({"gen_ai.input.messages": ASKED, "gen_ai.output.messages": REQUESTED}, []),
        (OI_SAID, []),
        (TRACELOOP_SAID, []),
        (ADK_SAID, []),
        ({}, DETAILS),
        ({}, EVENTS),
        ({}, BEDROCK),
    ],
)
def test_what_was_said_is_found_everywhere(
    attributes: dict[str, Any], events: list[dict[str, Any]]
) -> None:
    call = {**chat("c", None, 0, (1, 1), **attributes), "events": events}
    (found,) = parse([call])
    assert found.prompt == "Where is order 7?"
    assert [m.text for m in found.messages] == ["Let me look."]
    assert [(c.name, c.arguments, c.span_id) for c in found.tool_calls] == [
        ("find", {"id": 7}, "call-1")
    ]


def test_results_come_from_what_the_next_call_was_told() -> None:
    told = [
        *ASKED,
        *REQUESTED,
        {
            "role": "tool",
            "parts": [
                {"type": "tool_call_response", "id": "call-0", "response": "other"},
                {"type": "tool_call_response", "id": "call-1", "response": "packed"},
            ],
        },
    ]
    first = chat("c1", None, 0, (1, 1), **{"gen_ai.output.messages": json.dumps(REQUESTED)})
    then = chat("c2", None, 2, (1, 1), **{"gen_ai.input.messages": json.dumps(told)})
    (found,) = parse([first, then])
    assert [(c.name, c.result) for c in found.tool_calls] == [("find", "packed")]


def test_a_strands_tool_says_it_in_events() -> None:
    call = {
        **tool("t", None, 0),
        "attributes": {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "find"},
        "events": [
            {"name": "gen_ai.tool.message", "attributes": {"content": '{"id": 7}', "id": "call-1"}},
            {"name": "gen_ai.choice", "attributes": {"message": '[{"text": "packed"}]'}},
        ],
    }
    (found,) = parse([call])
    assert [(c.arguments, c.result) for c in found.tool_calls] == [({"id": 7}, "packed")]


# Failures.


def test_a_failed_tool_is_a_failed_call_and_nothing_else() -> None:
    failed = {**tool("t1", "a1", 2), "status": {"code": "ERROR", "message": "no such order"}}
    del failed["attributes"]["gen_ai.tool.call.result"]
    (found,) = parse([SPANS[0], failed])
    assert [(c.status, c.error) for c in found.tool_calls] == [("error", "no such order")]
    assert found.error_spans == ()
    assert found.error is None


def test_what_failed_is_said_by_status_event_or_type() -> None:
    raised = [
        {
            "name": "exception",
            "attributes": {"exception.type": "TimeoutError", "exception.message": "too slow"},
        }
    ]
    cases: list[tuple[dict[str, Any], str]] = [
        ({"status": {"status_code": "ERROR", "description": "bad"}}, "bad"),
        ({"status": {"code": 2}, "events": raised}, "too slow"),
        ({"status": "STATUS_CODE_ERROR", "events": raised}, "too slow"),
    ]
    for fields, message in cases:
        (found,) = parse([{**chat("c", None, 0, None), **fields}])
        assert [item.message for item in found.error_spans] == [message]
        assert found.error == message
    (found,) = parse([chat("c", None, 0, None, **{"error.type": "TimeoutError"})])
    assert [item.message for item in found.error_spans] == ["TimeoutError"]


def test_failed_requests_below_are_not_the_agents_failures() -> None:
    request = span(
        "h", "a1", "GET", 1, 2, kind="SpanKind.CLIENT", status={"code": "ERROR", "message": "404"}
    )
    inner = span("i", "a1", "parse", 1, 2, status={"code": "ERROR", "message": "odd"})
    (found,) = parse([SPANS[0], request, inner])
    assert [(e.name, e.message) for e in found.error_spans] == [("parse", "odd")]


def test_a_failed_agent_is_not_held_to_what_it_did_not_report() -> None:
    broken = {
        **agent("a", None, 0, 5, **{"gen_ai.usage.input_tokens": 1}),
        "status": {"code": "ERROR", "message": "boom"},
    }
    (found,) = parse([broken, chat("c", "a", 1, (100, 10))])
    assert found.error == "boom"
    assert found.workflow_record is not None
    judged = strict.reconcile(found.workflow_record)
    assert [item.verdict for item in judged.executors] == ["Error"]


# Recorded twice.


def test_two_instrumentations_of_one_call_are_one_call() -> None:
    """The framework's span has the messages, the provider's client the tokens."""
    outer = chat(
        "c1",
        "a1",
        1,
        None,
        **{"gen_ai.response.id": "r1", "gen_ai.output.messages": json.dumps(ANSWERED)},
    )
    client = chat(
        "p1",
        None,
        1,
        (100, 10),
        **{"gen_ai.response.id": "r1", "gen_ai.response.model": "m-1-0301"},
    )
    for inside in (None, "a1", "c1"):
        (found,) = parse([SPANS[0], outer, {**client, "parent_span_id": inside}])
        (generation,) = found.generations
        assert generation.tokens == Tokens(input=100, output=10)
        assert (generation.model, generation.agent) == ("m-1-0301", "clerk")
        assert [m.text for m in found.messages] == ["It ships today."]
        record = found.workflow_record
        assert record is not None
        assert [(t.executor, t.usage and t.usage.total) for t in record.turns] == [("clerk", 110)]


def test_a_wrapper_that_alone_has_the_usage_counts() -> None:
    outer = span(
        "l1",
        "a1",
        "call_llm",
        1,
        3,
        attributes={
            "gen_ai.request.model": "m-1",
            "gen_ai.usage.input_tokens": 100,
            "gen_ai.usage.output_tokens": 10,
        },
    )
    inner = chat("c1", "l1", 2, None, **{"gen_ai.response.model": "m-1-0301"})
    (found,) = parse([SPANS[0], outer, inner])
    assert [(g.tokens, g.model) for g in found.generations] == [
        (Tokens(input=100, output=10), "m-1-0301")
    ]


def test_zeros_of_one_do_not_hide_the_counts_of_the_other() -> None:
    outer = chat("c1", "a1", 1, (0, 0))
    inner = chat("p1", "c1", 1, (100, 10))
    for one, other in (
        (outer, inner),
        (chat("c1", "a1", 1, (100, 10)), chat("p1", "c1", 1, (0, 0))),
    ):
        (found,) = parse([SPANS[0], one, other])
        assert [g.tokens for g in found.generations] == [Tokens(input=100, output=10)]


def test_one_tool_call_recorded_twice_is_one() -> None:
    bare = tool("t1", "a1", 2)
    del bare["attributes"]["gen_ai.tool.call.result"]
    twin = {**tool("t2", "a1", 2), "status": {"code": "ERROR", "message": "gone"}}
    (found,) = parse([SPANS[0], bare, twin])
    assert [(c.name, c.result, c.status, c.error) for c in found.tool_calls] == [
        ("find", {"state": "packed"}, "error", "gone")
    ]
    # A retry under the same id is another call.
    (found,) = parse([SPANS[0], bare, tool("t2", "a1", 4)])
    assert len(found.tool_calls) == 2


# Workflow fidelity.


def test_session_accumulated_usage_is_too_much() -> None:
    """Three invocations in one session report 100k, 200k and 300k for 100k each."""
    spans = []
    for n in (1, 2, 3):
        used = {
            "gen_ai.usage.input_tokens": 90_000 * n,
            "gen_ai.usage.output_tokens": 10_000 * n,
        }
        spans += [
            agent(f"a{n}", None, n * 10, n * 10 + 5, **used),
            chat(f"c{n}", f"a{n}", n * 10 + 1, (90_000, 10_000)),
        ]
    (found,) = parse(spans)
    assert found.workflow_record is not None
    judged = strict.reconcile(found.workflow_record)
    assert judged.outcome == "FAIL"
    assert [(e.verdict, e.ledger_tokens, e.truth_tokens) for e in judged.executors] == [
        ("OverReport", 600_000, 300_000)
    ]


def maf(*items: dict[str, Any]) -> list[dict[str, Any]]:
    return [{**item, "scope": {"name": "agent_framework"}} for item in items]


def maf_executor(id_: str, parent: str | None, name: str) -> dict[str, Any]:
    return span(id_, parent, f"executor.process {name}", 0, 9, attributes={"executor.id": name})


@pytest.mark.parametrize(
    ("reported", "verdict"), [((2539, 30), "TokenMismatch"), ((4758, 50), "DerivedLedger")]
)
def test_the_microsoft_frameworks_sum_is_derived(reported: tuple[int, int], verdict: str) -> None:
    """Before it was mended, the agent's span had the last call's usage only: 2569 of 4808."""
    usage: dict[str, Any] = {
        "gen_ai.usage.input_tokens": reported[0],
        "gen_ai.usage.output_tokens": reported[1],
    }
    spans = maf(
        maf_executor("e0", None, "sub"),
        maf_executor("e1", "e0", "s1"),
        agent("a1", "e1", 0, 9, **usage),
        chat("c1", "a1", 1, (2219, 20)),
        chat("c2", "a1", 3, (2539, 30)),
    )
    for given_spans in (spans, [sdk({**item, "resource": {}}) for item in spans]):
        (found,) = parse(given_spans)
        record = found.workflow_record
        assert record is not None
        assert [(e.executor, e.derived) for e in record.ledger] == [("sub/s1", True)]
        judged = strict.reconcile(record)
        assert [(e.executor_id, e.verdict, e.truth_tokens) for e in judged.executors] == [
            ("sub/s1", verdict, 4808)
        ]


def test_frameworks_that_report_nothing_of_agents_have_nothing_to_compare() -> None:
    (found,) = parse([agent("a", None, 0, 9), chat("c", "a", 1, (10, 1))])
    assert found.workflow_record is None


def test_without_calls_of_models_tokens_and_model_are_the_agents() -> None:
    used: dict[str, Any] = {"llm.token_count.prompt": 132, "llm.token_count.completion": 850}
    (found,) = parse(
        [
            agent("a", None, 0, 9, **{**used, "llm.model_name": "m-2"}),
            agent("b", "a", 1, 2, **{"llm.token_count.prompt": 32}),
        ]
    )
    assert found.tokens == Tokens(input=132, output=850)
    assert found.model == "m-2"
    assert found.generations == ()


# Whatever is wrong.

WRONG: dict[str, Any] = {
    "flat": {"spans": SPANS},
    "otlp": otlp(*SPANS),
    "jaeger": jaeger(*SPANS),
}


def spots(content: Any) -> Iterator[tuple[Any, ...]]:
    """Places of a file, of the deeper ones only every eleventh."""
    for number, path in enumerate(places(content)):
        if len(path) < 5 or number % 11 == 0:
            yield path


@pytest.mark.parametrize("container", WRONG)
def test_a_file_with_one_thing_wrong_is_read_or_refused(container: str) -> None:
    content = WRONG[container]
    for path in spots(content):
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            data = json.dumps(changed(content, path, how, odd)).encode()
            check_reading(data, "opentelemetry")


@given(st.data())
def test_a_file_with_some_things_wrong_is_read_or_refused(data: st.DataObject) -> None:
    content = copy.deepcopy(data.draw(st.sampled_from(list(WRONG.values()))))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(content))))
        how = data.draw(st.sampled_from(["drop", "double", "set"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    text = json.dumps(content).encode()
    check_reading(text, "auto")
    check_reading(text[: data.draw(st.integers(0, len(text)))], "auto")


@pytest.mark.parametrize("content", [lines(*SPANS), _pretty(*SPANS).encode()])
def test_a_file_cut_off_anywhere_is_read_or_refused(content: bytes) -> None:
    for length in range(0, len(content), 97):
        check_reading(content[:length], "auto")
        check_reading(content[:length], "opentelemetry")


def test_spans_that_are_not_text_throughout_are_read() -> None:
    cut = json.dumps(sdk(SPANS[1]), indent=4).replace("Where is", "Where \\ud83d is")
    (found,) = parse(cut)
    assert found.prompt == "Where \ufffd is order 7?"
