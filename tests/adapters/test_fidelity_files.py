"""Workflow and agent trace files: read, written, and anything else that is in them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, get_args

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from benchmark_assets.adapters.fidelity_files import (
    read_agent_trace,
    read_chat_trace,
    read_workflow_trace,
    workflow_trace_json,
)
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.model.fidelity import (
    FidelityOutcome,
    LedgerEntry,
    ModelTurn,
    Reply,
    ToolUse,
    Usage,
    WorkflowRecord,
)
from benchmark_assets.model.problem import InputError
from benchmark_assets.scoring.trace_fidelity import RULE_SETS, agent_trace
from tests.real_data import REAL, needs_real_data

WORKFLOW: dict[str, Any] = {
    "version": "1.0",
    "traceName": "trip",
    "capturedAt": "2026-07-05T12:00:00+00:00",
    "steps": [
        {
            "executorId": "a",
            "stepIndex": 0,
            "tokenUsage": {"promptTokens": 10, "completionTokens": 5, "totalTokens": 15},
            "finishReason": "stop",
        },
        {"executorId": "b", "stepIndex": 1, "error": {"type": "IOError", "message": "gone"}},
    ],
    "executorIds": ["a", "b"],
    "executorTraces": {
        "a": {
            "entries": [
                {"type": "Request", "index": 0, "scope": "ChatTurn", "prompt": "go"},
                {
                    "type": "Response",
                    "index": 0,
                    "scope": "ChatTurn",
                    "correlationId": "x",
                    "timestamp": "2026-07-05T12:00:00Z",
                    "tokenUsage": {"promptTokens": 10, "completionTokens": 5},
                    "finishReason": "stop",
                },
                {"type": "Response", "index": 1, "tokenUsage": {"totalTokens": 99}},
                {"type": "response", "index": 2, "scope": "chatTurn", "error": "503"},
            ]
        },
        "b": {"entries": [{"type": "Response", "index": 0}]},
    },
}
AGENT: dict[str, Any] = {
    "version": "1.1",
    "traceName": "agent",
    "entries": [
        {"type": "Request", "index": 0, "prompt": "go"},
        {
            "type": "Response",
            "index": 0,
            "toolCalls": [{"name": "look", "arguments": "{}"}, {"name": "pay"}],
            "tokenUsage": {"promptTokens": 1, "completionTokens": 2},
        },
        {"type": "Response", "index": 1, "scope": "ChatTurn", "finishReason": "length"},
        {"type": "ToolCall", "index": 2, "toolCalls": [{"name": "look"}]},
    ],
    "performance": {"totalPromptTokens": 7, "totalCompletionTokens": 8},
}


def file(data: Any) -> TraceFile:
    return TraceFile("run.json", "run.json", json.dumps(data).encode())


def problems(data: Any, read: Any = read_workflow_trace) -> list[str]:
    with pytest.raises(InputError) as caught:
        read(file(data))
    return [str(problem) for problem in caught.value.problems]


def test_a_workflow_trace_is_read() -> None:
    assert read_workflow_trace(file(WORKFLOW)) == WorkflowRecord(
        name="trip",
        executors=("a", "b"),
        ledger=(
            LedgerEntry(
                executor="a", usage=Usage(input=10, output=5, total=15), finish_reason="stop"
            ),
            LedgerEntry(executor="b", error="gone"),
        ),
        turns=(
            ModelTurn(
                executor="a",
                invocation="x",
                usage=Usage(input=10, output=5, total=15),
                finish_reason="stop",
                started_at=datetime(2026, 7, 5, 12, tzinfo=UTC),
            ),
            ModelTurn(executor="a", error="503"),
        ),
        # The trace of `b` has no chat turn: its recorder may not have seen any.
        traced=("a",),
    )


def test_a_request_without_a_response_is_no_sign_that_no_call_was_made() -> None:
    asked = {"type": "Request", "index": 0, "scope": "ChatTurn", "prompt": "go"}
    data = {**WORKFLOW, "executorTraces": {"a": {"entries": [asked]}}}
    record = read_workflow_trace(file(data))
    assert (record.turns, record.traced) == ((), ())
    for rules in RULE_SETS:
        assert rules.reconcile(record).outcome == "PENDING"


def test_agent_and_chat_traces_are_read() -> None:
    said, cut = (
        Reply(
            usage=Usage(input=1, output=2, total=3),
            tools=(ToolUse("look", "{}"), ToolUse("pay")),
        ),
        Reply(finish_reason="length"),
    )
    agent = read_agent_trace(file(AGENT))
    assert (agent.replies, agent.tokens) == ((said, cut), 15)
    assert read_chat_trace(file(AGENT)).replies == (cut,)


@pytest.mark.parametrize(
    ("performance", "tokens"),
    [
        ({"totalTokens": 9, "totalPromptTokens": 1}, 9),
        ({"totalPromptTokens": 1}, 1),
        ({"callCount": 1}, None),
        (None, None),
    ],
)
def test_the_total_that_a_recorder_wrote(performance: Any, tokens: int | None) -> None:
    assert read_agent_trace(file({**AGENT, "performance": performance})).tokens == tokens


@needs_real_data
@pytest.mark.data
def test_an_older_version_loads_unchanged() -> None:
    path = REAL / "agenteval-workflow" / "doc_example_agenttrace_1_0.json"
    agent = read_agent_trace(TraceFile(path.name, path.name, path.read_bytes()))
    assert agent.tokens == 35
    (reply,) = agent.replies
    assert reply.usage == Usage(input=15, output=20, total=35)
    assert reply.tools == (ToolUse("GetWeather"),)


# What is not as it should be.


def test_all_that_is_wrong_is_said_at_once_and_where() -> None:
    data = copy.deepcopy(WORKFLOW)
    data["steps"][0]["tokenUsage"]["totalTokens"] = "15"
    data["steps"][0]["finishReason"] = 3
    del data["steps"][1]["executorId"]
    data["steps"].append("a")
    data["executorIds"] = ["a", None]
    entries = data["executorTraces"]["a"]["entries"]
    entries[1]["tokenUsage"]["promptTokens"] = -1
    entries[2]["type"] = "Respones"
    entries[3]["scope"] = []
    del entries[0]["type"]
    data["executorTraces"]["odd name"] = [1]
    assert problems(data) == [
        "run.json: executorTraces.a.entries[0].type: is missing; "
        "write one of Request, Response, ToolCall, StreamChunk",
        "run.json: executorTraces.a.entries[2].type: expected one of Request, Response, ToolCall, "
        "StreamChunk, is \"Respones\"; did you mean 'Response'?",
        "run.json: executorTraces.a.entries[3].scope: expected a text, is a list",
        "run.json: executorTraces.a.entries[1].tokenUsage.promptTokens: "
        "expected a whole number from 0, is -1",
        'run.json: executorTraces["odd name"]: expected an object, is a list',
        "run.json: executorIds[1]: expected a text, is missing",
        'run.json: steps[0].tokenUsage.totalTokens: expected a whole number from 0, is "15"',
        "run.json: steps[0].finishReason: expected a text, is 3",
        "run.json: steps[1].executorId: expected a text, is missing",
        'run.json: steps[2]: expected an object, is "a"',
    ]


@pytest.mark.parametrize("value", [1.5, True, 2**53 + 1, -1, "1", [], {}, 1e300])
def test_what_is_no_count(value: Any) -> None:
    data = {"steps": [{"executorId": "a", "tokenUsage": {"totalTokens": value}}]}
    (problem,) = problems(data)
    assert problem.startswith("run.json: steps[0].tokenUsage.totalTokens: expected a whole number")


def test_a_whole_number_may_be_written_with_a_point() -> None:
    data = {"steps": [{"executorId": "a", "tokenUsage": {"totalTokens": 15.0}}]}
    (entry,) = read_workflow_trace(file(data)).ledger
    assert entry.usage == Usage(total=15)


@pytest.mark.parametrize(
    ("data", "read", "message"),
    [
        ([], read_workflow_trace, "expected an object, is a list; name a workflow trace file"),
        (3, read_agent_trace, "expected an object, is 3; name an agent trace file"),
        ({}, read_workflow_trace, "has no `steps`: it is no workflow trace; name a workflow"),
        (AGENT, read_workflow_trace, "this is an agent trace: `bench trace-fidelity` reads it"),
        ({}, read_chat_trace, "has no `entries`: it is no agent trace; name an agent"),
        (WORKFLOW, read_chat_trace, "`bench workflow-trace-fidelity` reads it"),
        ({"steps": {}}, read_workflow_trace, "steps: expected a list, is an object"),
        ({"steps": [], "executorTraces": []}, read_workflow_trace, "executorTraces: expected an"),
        ({"steps": [], "tracedExecutors": "some"}, read_workflow_trace, "tracedExecutors: expect"),
        ({"entries": [{"type": "Response", "toolCalls": [{}]}]}, read_agent_trace, "toolCalls[0]"),
    ],
)
def test_what_is_no_trace_says_what_would_be(data: Any, read: Any, message: str) -> None:
    (problem,) = problems(data, read)
    assert problem.startswith("run.json: ")
    assert message in problem


def test_members_that_are_not_used_may_be_anything() -> None:
    data = copy.deepcopy(WORKFLOW)
    data |= {"version": 7, "graph": "none", "performance": [], "metadata": 1, "new": {}}
    data["steps"][0] |= {"stepIndex": "x", "toolCalls": 3, "durationMs": None}
    assert read_workflow_trace(file(data)) == read_workflow_trace(file(WORKFLOW))


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5)
    | st.sampled_from(["ChatTurn", "Response", "all", "\ud800", "stop"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) in JSON data."""
    keys = value.keys() if isinstance(value, dict) else range(len(value))
    for key in list(keys):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from places(value[key])


@st.composite
def malformed(draw: st.DrawFn, valid: dict[str, Any]) -> bytes:
    """A valid file of which up to four places are something else, or that is cut off."""
    data = copy.deepcopy(valid)
    for _ in range(draw(st.integers(0, 4))):
        container, key = draw(st.sampled_from(list(places(data))))
        if draw(st.booleans()):
            container[key] = draw(json_values)
        else:
            del container[key]
        if not data:
            break
    text = json.dumps(data).encode()
    if draw(st.integers(0, 9)) == 0:
        return text[: draw(st.integers(0, len(text)))]
    return text if draw(st.integers(0, 9)) else draw(st.binary(max_size=40))


def read_or_refuse(data: bytes, read: Any) -> Any:
    """What is read; None if it is refused by errors that say where."""
    try:
        return read(TraceFile("run.json", "run.json", data))
    except InputError as error:
        refused = error.problems
    assert refused
    assert all(problem.file == "run.json" and problem.message for problem in refused)
    return None


@given(malformed(WORKFLOW), st.sampled_from(RULE_SETS))
def test_any_workflow_file_is_a_located_error_or_a_verdict(data: bytes, rules: Any) -> None:
    record = read_or_refuse(data, read_workflow_trace)
    if record is not None:
        assert rules.reconcile(record).outcome in get_args(FidelityOutcome)
        assert read_or_refuse(workflow_trace_json(record), read_workflow_trace) == record


@given(malformed(AGENT), malformed(AGENT))
def test_any_agent_file_is_a_located_error_or_a_verdict(agent: bytes, chat: bytes) -> None:
    sides = read_or_refuse(agent, read_agent_trace), read_or_refuse(chat, read_chat_trace)
    if None not in sides:
        assert agent_trace.reconcile(*sides).outcome in get_args(FidelityOutcome)


@given(json_values, st.sampled_from([read_workflow_trace, read_agent_trace, read_chat_trace]))
def test_any_json_is_a_located_error_or_a_record(value: Any, read: Any) -> None:
    read_or_refuse(json.dumps(value).encode(), read)


def test_malformed_files_are_read_and_are_refused() -> None:
    """Both happen to what the strategy makes, so neither half of its tests is empty."""
    for wanted in (True, False):
        find(
            malformed(WORKFLOW),
            lambda data, wanted=wanted: (  # type: ignore[misc]
                (read_or_refuse(data, read_workflow_trace) is not None) == wanted
            ),
        )


# Written, and read again.

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
maybe = st.none() | texts
counts = st.none() | st.integers(0, 2**53)


@st.composite
def usages(draw: st.DrawFn) -> Usage | None:
    if draw(st.booleans()):
        return None
    sent, received, total = draw(counts), draw(counts), draw(counts)
    known = [count for count in (sent, received) if count is not None]
    return Usage(
        input=sent,
        output=received,
        total=sum(known) if total is None and known and sum(known) <= 2**53 else total or 0,
        cached=draw(counts),
        reasoning=draw(counts),
    )


times = st.none() | st.datetimes(
    min_value=datetime(1970, 1, 1),  # noqa: DTZ001 - `timezones` makes them aware
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC),
)
records = st.builds(
    WorkflowRecord,
    name=maybe,
    executors=st.lists(texts, max_size=3).map(tuple),
    ledger=st.lists(
        st.builds(
            LedgerEntry,
            executor=texts,
            invocation=maybe,
            usage=usages(),
            finish_reason=maybe,
            calls=counts,
            derived=st.booleans(),
            error=maybe,
            span_id=maybe,
        ),
        max_size=4,
    ).map(tuple),
    turns=st.lists(
        st.builds(
            ModelTurn,
            executor=texts,
            invocation=maybe,
            usage=usages(),
            finish_reason=maybe,
            error=maybe,
            model=maybe,
            response_id=maybe,
            started_at=times,
            span_id=maybe,
        ),
        max_size=4,
    ).map(tuple),
    traced=st.none() | st.lists(texts, max_size=3, unique=True).map(tuple),
    endings=st.booleans(),
    problem=maybe,
)


@given(records, times)
def test_what_is_written_is_read_back(record: WorkflowRecord, time: datetime | None) -> None:
    data = workflow_trace_json(record, captured_at=time)
    assert read_workflow_trace(TraceFile("run.json", "run.json", data)) == record
    assert workflow_trace_json(record, captured_at=time) == data


def test_what_is_unknown_is_not_written() -> None:
    record = WorkflowRecord(ledger=(LedgerEntry(executor="a", usage=Usage(total=3)),), traced=())
    assert json.loads(workflow_trace_json(record)) == {
        "version": "1.0",
        "steps": [{"executorId": "a", "stepIndex": 0, "tokenUsage": {"totalTokens": 3}}],
        "executorIds": [],
        "executorTraces": {},
        "tracedExecutors": [],
    }
