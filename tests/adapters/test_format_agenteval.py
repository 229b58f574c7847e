"""The AgentEval format: each trap by hand, and the published files against what they say."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.fidelity_files import read_workflow_trace
from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.traces import read_traces, why_unplaced
from benchmark_assets.model.fidelity import LedgerEntry, Usage
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import ErrorSpan, Generation, Tokens, ToolCall, TraceSnapshot
from tests.adapters.samples import NAME, parse, trace_file
from tests.adapters.test_formats import ODD, changed, check_reading, places
from tests.real_data import REAL, needs_real_data

SOURCE = REAL / "agenteval-workflow"
START = datetime(2026, 7, 5, 12, tzinfo=UTC)


def at(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).isoformat()


def tool(name: str, arguments: Any = "{}", **fields: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, **fields}


def step(executor: str, prompt: int | None = 10, out: int = 5, **fields: Any) -> dict[str, Any]:
    usage = {"promptTokens": prompt, "completionTokens": out}
    return {
        "executorId": executor,
        **({} if prompt is None else {"tokenUsage": usage}),
        **fields,
    }


def turn(prompt: int | None = 10, out: int = 5, **fields: Any) -> dict[str, Any]:
    usage = {"promptTokens": prompt, "completionTokens": out}
    return {
        "type": "Response",
        "scope": "ChatTurn",
        **({} if prompt is None else {"tokenUsage": usage}),
        **fields,
    }


def executed(*tools: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "ToolCall", "scope": "ToolExecution", "toolCalls": list(tools), **fields}


def workflow(*steps: dict[str, Any], traces: Any = None, **fields: Any) -> dict[str, Any]:
    """A workflow trace; `traces`: the entries of each executor."""
    known = {
        "version": "1.0",
        "traceName": "trip",
        "capturedAt": at(0),
        "steps": list(steps) or [step("a")],
        "executorTraces": {
            name: {"version": "1.1", "entries": entries} for name, entries in (traces or {}).items()
        },
        **fields,
    }
    return {key: value for key, value in known.items() if value is not None}


def one(content: Any) -> TraceSnapshot:
    (found,) = parse(content)
    return found


WHOLE = workflow(
    step("a", 100, 20, finishReason="stop"),
    step("b", 30, 5, finishReason="stop"),
    step("router", None),
    traces={
        "a": [
            {"type": "Request", "scope": "ChatTurn", "prompt": "go"},
            turn(
                40,
                8,
                timestamp=at(1),
                finishReason="tool_calls",
                modelId="gpt-4o",
                responseId="r1",
                toolCalls=[tool("look", '{"id": 1}'), tool("pay", "no json")],
            ),
            executed(
                tool("look", '{"id": 1}', result="found", succeeded=True, startedAt=at(2)),
                tool("pay", "no json", succeeded=False, error="no money"),
                timestamp=at(3),
            ),
            turn(60, 12, timestamp=at(4), finishReason="stop", modelId="gpt-4o"),
        ],
        "b": [turn(30, 5, timestamp=at(5), finishReason="stop", modelId="o3")],
    },
    executorIds=["a", "b", "router"],
    originalPrompt="Plan it.",
    finalOutput="Done.",
    performance={"totalDurationMs": 5400.4},
    metadata={"trace_id": "t-1", "task_id": "7", "trial": "2", "session_id": "s"},
)


def test_a_workflow_trace_is_one_trace() -> None:
    found = one(WHOLE)
    assert found.problem is None
    assert (found.trace_id, found.name, found.trial, found.session_id) == ("t-1", "trip", 2, "s")
    assert (found.started_at, found.duration_ms) == (START, 5400)
    assert (found.prompt, found.final_answer) == ("Plan it.", "Done.")
    assert [(m.text, m.before_call) for m in found.messages] == [("Done.", 2)]
    assert (found.ended, found.ended_normally, found.error) == ("final_output", True, None)
    assert found.agents == ("a", "b", "router")
    assert found.tokens == Tokens(input=130, output=25)
    assert found.generations == (
        Generation(
            model="gpt-4o",
            agent="a",
            tokens=Tokens(input=40, output=8),
            finish_reason="tool_calls",
            started_at=START + timedelta(seconds=1),
            response_id="r1",
        ),
        Generation(
            model="gpt-4o",
            agent="a",
            tokens=Tokens(input=60, output=12),
            finish_reason="stop",
            started_at=START + timedelta(seconds=4),
        ),
        Generation(
            model="o3",
            agent="b",
            tokens=Tokens(input=30, output=5),
            finish_reason="stop",
            started_at=START + timedelta(seconds=5),
        ),
    )
    look, pay = found.tool_calls
    assert look == ToolCall(
        name="look",
        arguments={"id": 1},
        result="found",
        status="ok",
        started_at=START + timedelta(seconds=2),
        agent="a",
    )
    assert (pay.arguments, pay.status, pay.error) == ("no json", "error", "no money")
    assert found.failures_recorded
    assert found.workflow_record == read_workflow_trace(trace_file(WHOLE))


def test_identity_is_settled_as_for_every_format() -> None:
    (found,) = read_traces(trace_file(WHOLE), ProjectConfig())
    assert (found.model, found.workflow, found.task) == ("gpt-4o+o3", "trip", "7")
    assert why_unplaced(found, ProjectConfig()) is None
    named = {**WHOLE, "metadata": {"model_name": "house-mix"}}
    (found,) = read_traces(trace_file(named), ProjectConfig())
    assert found.model == "house-mix"


def test_a_run_whose_model_is_nowhere_can_be_judged_and_not_placed() -> None:
    (found,) = read_traces(trace_file(workflow(step("a"))), ProjectConfig())
    assert (found.problem, found.model) == (None, None)
    reason = why_unplaced(found, ProjectConfig())
    assert reason is not None
    assert "has no model (metadata model_name names one)" in reason


def test_the_model_of_a_trace_is_that_of_its_responses() -> None:
    content = workflow(step("a"), traces={"a": [turn(), turn(modelId="own")]})
    content["executorTraces"]["a"]["modelId"] = "whole"
    assert [g.model for g in one(content).generations] == ["whole", "own"]
    assert one(content).model is None
    # Without a recorded call, what the agent traces say of themselves is what is known.
    bare = workflow(step("a"), traces={"a": [], "b": []})
    bare["executorTraces"]["a"]["modelId"] = "m2"
    bare["executorTraces"]["b"]["modelId"] = "m1"
    assert (one(bare).generations, one(bare).model) == ((), "m1+m2")


def test_an_id_is_made_of_the_content_where_there_is_none() -> None:
    first, second = one(workflow(step("a"))), one(workflow(step("b")))
    assert first.trace_id != second.trace_id
    assert first.trace_id == one(workflow(step("a"))).trace_id
    assert one(workflow(metadata={"traceId": "x"})).trace_id == "x"


# Tokens.


def test_tokens_are_the_calls_else_what_the_steps_report() -> None:
    content = workflow(
        step("A", 100, 10),
        step("b", 7, 1),
        step("b", 8, 1),
        step("c", 50, 5),
        traces={"a": [turn(60, 6), turn(70, 7)], "c": [turn(None, tokenUsage={})]},
    )
    # `a` as its calls used, `b` has no truth, and the calls of `c` have no usage.
    assert one(content).tokens == Tokens(input=130 + 15 + 50, output=13 + 2 + 5)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (
            {"promptTokens": 10, "completionTokens": 6, "cachedTokens": 4, "reasoningTokens": 5},
            Tokens(input=6, output=1, cache_read=4, reasoning=5),
        ),
        # Some providers do not count cached tokens in.
        (
            {"promptTokens": 3, "completionTokens": 6, "cachedTokens": 40},
            Tokens(input=3, output=6, cache_read=40),
        ),
        # Nobody knows what a bare total was.
        ({"totalTokens": 9}, Tokens()),
        ({}, Tokens()),
    ],
)
def test_buckets_are_disjoint(usage: Any, tokens: Tokens) -> None:
    content = workflow(step("a", None), traces={"a": [{**turn(None), "tokenUsage": usage}]})
    assert one(content).generations[0].tokens == tokens == one(content).tokens


# Tool calls, each once.


def names(content: Any) -> list[tuple[str, Any, str | None]]:
    return [(call.name, call.result, call.status) for call in one(content).tool_calls]


ASKED = turn(toolCalls=[tool("look"), tool("look", '{"again": true}')])
RAN = executed(tool("look", result=1), tool("look", '{"again": true}', result=2))
TOLD = {"type": "Response", "toolCalls": [tool("look", result=1), tool("look", result=2)]}


@pytest.mark.parametrize(
    "entries",
    [[ASKED, RAN], [ASKED, RAN, TOLD], [ASKED, TOLD], [RAN], [RAN, TOLD], [TOLD], [TOLD, ASKED]],
)
@pytest.mark.parametrize("stepped", [True, False])
def test_a_call_that_is_written_down_several_times_is_one(entries: Any, stepped: bool) -> None:
    listed: Any = {"toolCalls": [tool("look", result=n) for n in (1, 2)]} if stepped else {}
    content = workflow(step("a", **listed), traces={"a": entries})
    assert names(content) == [("look", 1, "ok"), ("look", 2, "ok")]


def test_what_a_step_lists_counts_where_no_trace_lists_any() -> None:
    steps = [
        step("a", toolCalls=[tool("one")]),
        step("b", toolCalls=[tool("two")]),
        step("A", toolCalls=[tool("three")]),
    ]
    assert [call.name for call in one(workflow(*steps)).tool_calls] == ["one", "two", "three"]
    assert [call.agent for call in one(workflow(*steps)).tool_calls] == ["a", "b", "A"]


def test_calls_that_were_only_asked_for_have_no_status() -> None:
    found = one(workflow(step("a"), traces={"a": [ASKED]}))
    assert [call.status for call in found.tool_calls] == [None, None]
    assert not found.failures_recorded


def test_a_failure_that_any_record_of_a_call_has_is_one() -> None:
    asked = turn(toolCalls=[tool("pay", succeeded=True)])
    failed = executed(tool("pay", succeeded=False, error={"type": "IOError"}))
    found = one(workflow(step("a"), traces={"a": [asked, failed]}))
    assert [(c.status, c.error) for c in found.tool_calls] == [("error", "IOError")]


def test_calls_of_several_executors_are_in_the_order_of_time() -> None:
    def ask(name: str, second: int, **fields: Any) -> dict[str, Any]:
        return turn(timestamp=at(second), toolCalls=[tool(name)], **fields)

    traces = {"a": [ask("first", 1), ask("third", 3)], "b": [ask("second", 2)]}
    content = workflow(step("a"), step("b"), traces=traces)
    assert [call.name for call in one(content).tool_calls] == ["first", "second", "third"]
    # The number that live capture writes goes before.
    traces = {"a": [ask("x", 9, order=0), ask("z", 1, order=2)], "b": [ask("y", 5, order=1)]}
    content = workflow(step("a"), step("b"), traces=traces)
    assert [call.name for call in one(content).tool_calls] == ["x", "y", "z"]
    # Where not all say it, each executor's calls are together.
    traces = {"a": [ask("x", 9), turn(toolCalls=[tool("z")])], "b": [ask("y", 1)]}
    content = workflow(step("a"), step("b"), traces=traces)
    assert [call.name for call in one(content).tool_calls] == ["x", "z", "y"]


def test_how_long_a_call_took() -> None:
    timed = executed(tool("x", startedAt=at(1), durationMs=1500))
    (call,) = one(workflow(traces={"a": [timed]})).tool_calls
    assert call.ended_at == START + timedelta(seconds=2.5)
    late = executed(tool("x", startedAt="9999-12-31T23:59:59Z", durationMs=1e12))
    (call,) = one(workflow(traces={"a": [late]})).tool_calls
    assert call.ended_at is None


# Failures and endings.


@pytest.mark.parametrize(
    ("fields", "ended", "normally", "error"),
    [
        ({"finalOutput": "x"}, "final_output", True, None),
        ({}, None, None, None),
        ({"finalOutput": ""}, None, None, None),
        (
            {"finalOutput": "x", "errors": [{"executorId": "b", "message": "boom"}]},
            "error",
            False,
            "b: boom",
        ),
        ({"errors": [{"exceptionType": "IOError"}]}, "error", False, "IOError"),
        ({"errors": []}, None, None, None),
    ],
)
def test_how_a_run_ended(fields: Any, ended: str | None, normally: Any, error: Any) -> None:
    found = one(workflow(**fields))
    assert (found.ended, found.ended_normally, found.error) == (ended, normally, error)


def test_one_failure_is_listed_once() -> None:
    failed = {"executorId": "a", "error": {"type": "IOError", "message": "gone"}}
    errors = [{"executorId": "A", "message": "IOError: gone"}]
    found = one(workflow(failed, errors=errors))
    assert found.error == "a: gone"
    assert found.error_spans == (ErrorSpan(name="a", message="gone", agent="a"),)
    # Where a call of a model failed, that is where it happened.
    found = one(workflow(failed, errors=errors, traces={"a": [turn(None, error="503")]}))
    assert found.error_spans == (ErrorSpan(name="a", kind="ChatTurn", message="503", agent="a"),)
    assert found.ended == "error"


def test_a_failure_of_no_executor_is_the_runs() -> None:
    found = one(workflow(errors=[{"message": "no such file"}]))
    assert found.error_spans == (ErrorSpan(name="run", message="no such file"),)


def test_a_run_that_cannot_be_compared_cannot_be_judged() -> None:
    found = one(workflow(problem="it was not followed to its end"))
    assert found.problem == "sub/results.json: problem: it was not followed to its end"
    assert found.workflow_record is not None
    assert found.workflow_record.problem == "it was not followed to its end"


@pytest.mark.parametrize(
    ("content", "kept"),
    [
        (workflow(step("a", None), step("b", None)), False),
        (workflow(step("a", None, tokenUsage={})), False),
        (workflow(step("a", None, finishReason="stop")), True),
        (workflow(step("a", None, modelCalls=0)), True),
        (workflow(step("a", 0, 0)), True),
        (workflow(step("a", None), traces={"a": [turn()]}), True),
    ],
)
def test_a_framework_that_reports_nothing_has_no_ledger(content: Any, kept: bool) -> None:
    assert (one(content).workflow_record is not None) == kept


# A single agent.

AGENT: dict[str, Any] = {
    "version": "1.1",
    "traceName": "weather",
    "capturedAt": at(0),
    "agentName": "Bot",
    "modelId": "gpt-4o",
    "entries": [
        {"type": "Request", "index": 0, "prompt": "Rain?"},
        {"type": "Request", "index": 0, "scope": "ChatTurn", "prompt": "You are a bot."},
        turn(10, 2, index=0, toolCalls=[tool("sky", '{"at": "Porto"}')]),
        turn(14, 3, index=1, text="thinking"),
        {
            "type": "Response",
            "index": 0,
            "text": "No rain.",
            "tokenUsage": {"promptTokens": 20, "completionTokens": 4},
            "toolCalls": [tool("sky", result="blue", succeeded=True)],
        },
    ],
    "performance": {"totalDurationMs": 900, "totalPromptTokens": 1, "totalCompletionTokens": 1},
}


def agent(*entries: dict[str, Any], **fields: Any) -> TraceSnapshot:
    known = {**AGENT, "entries": list(entries), **fields}
    return one({key: value for key, value in known.items() if value is not None})


def test_an_agent_trace_is_one_trace_without_a_ledger() -> None:
    found = one(AGENT)
    assert found.problem is None
    assert found.workflow_record is None
    assert (found.name, found.agents, found.duration_ms) == ("weather", ("Bot",), 900)
    assert (found.prompt, found.final_answer) == ("Rain?", "No rain.")
    assert (found.ended, found.ended_normally) == ("final_output", True)
    assert [(g.model, g.agent, g.tokens.total) for g in found.generations] == [
        ("gpt-4o", "Bot", 12),
        ("gpt-4o", "Bot", 17),
    ]
    assert found.tokens == Tokens(input=24, output=5)
    (call,) = found.tool_calls
    assert (call.arguments, call.result, call.status) == ({"at": "Porto"}, "blue", "ok")
    (settled,) = read_traces(trace_file(AGENT), ProjectConfig())
    assert settled.model == "gpt-4o"


def test_without_calls_of_models_the_agents_answers_count() -> None:
    answer = AGENT["entries"][-1]
    found = agent(answer)
    assert (found.generations, found.model) == ((), "gpt-4o")
    assert found.tokens == Tokens(input=20, output=4)
    bare = {key: value for key, value in answer.items() if key != "tokenUsage"}
    assert agent(bare).tokens == Tokens(input=1, output=1)
    assert agent(bare, performance=None).tokens == Tokens()


def test_how_an_agents_run_ended() -> None:
    good = {"type": "Response", "text": "x"}
    bad = {"type": "Response", "error": "503"}
    assert (agent(bad, good).ended, agent(bad, good).error) == ("final_output", None)
    assert agent(bad, good).error_spans == (ErrorSpan(name="Bot", message="503", agent="Bot"),)
    assert (agent(good, bad).ended, agent(good, bad).error) == ("error", "503")
    assert agent({"type": "Request", "prompt": "x"}).ended is None
    failed = agent(turn(None, error="503"), agentName=None)
    assert (failed.ended, failed.agents) == ("error", ())
    assert [(span.name, span.kind) for span in failed.error_spans] == [("model call", "ChatTurn")]
    assert agent(turn(text="only the model spoke")).final_answer == "only the model spoke"


# What is not as it should be.


def test_all_that_is_wrong_is_in_the_row_and_nothing_half_read() -> None:
    content = copy.deepcopy(WHOLE)
    content["steps"][0]["tokenUsage"]["totalTokens"] = "120"
    del content["steps"][1]["executorId"]
    content["steps"][2]["toolCalls"] = 3
    content["executorTraces"]["a"]["entries"][1]["toolCalls"][0]["name"] = None
    content["executorTraces"]["a"]["entries"][2]["toolCalls"][0]["succeeded"] = "yes"
    content["errors"] = [{"message": 5}]
    found = one(content)
    wrong = "sub/results.json: "
    assert found.problem is not None
    assert found.problem.split("; ") == [
        wrong + 'steps[0].tokenUsage.totalTokens: expected a whole number from 0, is "120"',
        wrong + "steps[1].executorId: expected a text, is missing",
        wrong + "steps[2].toolCalls: expected a list, is 3",
        wrong + "executorTraces.a.entries[1].toolCalls[0].name: expected a text, is missing",
        wrong
        + 'executorTraces.a.entries[2].toolCalls[0].succeeded: expected true or false, is "yes"',
        wrong + "errors[0].message: expected a text, is 5",
    ]
    assert (found.tool_calls, found.workflow_record) == ((), None)
    # Its row stands where people look for the trace.
    assert (found.trace_id, found.name, found.started_at) == ("t-1", "trip", START)


def test_of_very_many_problems_the_first_are_said_and_the_others_counted() -> None:
    found = one(workflow(*({"executorId": 1} for _ in range(50)), executorIds=[]))
    assert found.problem is not None
    parts = found.problem.split("; ")
    assert len(parts) == 21
    assert parts[-1] == "and 30 more"


@pytest.mark.parametrize("content", [[], 5, {}, {"version": "1.0"}])
def test_a_file_named_agenteval_must_hold_a_run(content: Any) -> None:
    with pytest.raises(InputError) as caught:
        parse(json.dumps(content), "agenteval")
    assert str(caught.value).startswith(NAME)


@pytest.mark.parametrize(
    "content",
    [
        {"steps": []},
        {"steps": [{"name": "x"}]},
        {"steps": {}},
        {"entries": []},
        {"entries": [{"type": "log"}]},
        {"entries": [5]},
        {"steps": 3, "executorIds": ["a"]},
    ],
)
def test_steps_and_entries_of_others_are_left_alone(content: Any) -> None:
    with pytest.raises(InputError, match="is no trace in a known format"):
        parse(content)


@pytest.mark.parametrize("content", [WHOLE, AGENT], ids=["workflow", "agent"])
def test_a_file_with_one_thing_wrong_is_read_or_refused(content: Any) -> None:
    for path in places(json.loads(json.dumps(content))):
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            data = json.dumps(changed(content, path, how, odd)).encode()
            for name in ("auto", "agenteval"):
                check_reading(data, name)


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_files_with_some_things_wrong_are_read_or_refused(data: st.DataObject) -> None:
    content = data.draw(st.sampled_from([WHOLE, AGENT]))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(content))))
        how = data.draw(st.sampled_from(["drop", "double", "set"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    text = json.dumps(content).encode()
    for part in (text, text[: data.draw(st.integers(0, len(text)))]):
        check_reading(part, "agenteval")
        check_reading(part, "auto")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 99), st.integers(0, 99))))
def test_calls_in_are_calls_out(made: list[tuple[str, int, int]]) -> None:
    traces: dict[str, list[Any]] = {}
    for executor, sent, received in made:
        traces.setdefault(executor, []).append(turn(sent, received, toolCalls=[tool("t")]))
    found = one(workflow(step("a", None), traces=traces))
    assert len(found.generations) == len(made) == len(found.tool_calls)
    assert (found.tokens.input or 0) == sum(sent for _, sent, _ in made)
    assert (found.tokens.output or 0) == sum(received for _, _, received in made)


@pytest.mark.parametrize("first", ["fidelity_files", "formats", "formats.agenteval"])
def test_any_module_may_be_imported_first(first: str) -> None:
    module = f"benchmark_assets.adapters.{first}"
    subprocess.run([sys.executable, "-c", f"import {module}"], check=True)


# The published files.


def published(name: str) -> TraceSnapshot:
    path = SOURCE / name
    file = TraceFile(str(path), path.name, path.read_bytes())
    (found,) = choose_format(file).parse(file)
    return found


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize("path", sorted(SOURCE.glob("wf_*.json")), ids=lambda path: path.name)
def test_published_workflows_hold_what_their_files_say(path: Any) -> None:
    """Counts made from the files by other means than the reader's."""
    raw = json.loads(path.read_text())
    found = published(path.name)
    assert found.problem is None
    assert (found.name, found.started_at) == (raw["traceName"], START)
    assert (found.prompt, found.final_answer) == (raw["originalPrompt"], raw["finalOutput"])
    assert found.ended == "final_output"
    assert found.duration_ms == raw["performance"]["totalDurationMs"]
    assert list(found.agents) == raw["executorIds"]
    turns = [
        (executor, entry)
        for executor, trace in raw.get("executorTraces", {}).items()
        for entry in trace["entries"]
        if (entry["type"], entry.get("scope")) == ("Response", "ChatTurn")
    ]
    assert [(g.agent, g.finish_reason) for g in found.generations] == [
        (executor, entry.get("finishReason")) for executor, entry in turns
    ]
    known = {executor for executor, _ in turns}
    unknown = sum(
        step["tokenUsage"]["totalTokens"]
        for step in raw["steps"]
        if step["executorId"] not in known and "tokenUsage" in step
    )
    used = sum(entry["tokenUsage"]["totalTokens"] for _, entry in turns)
    assert found.tokens.total == used + unknown
    assert found.workflow_record is not None
    assert found.workflow_record.ledger[0] == LedgerEntry(
        executor=raw["steps"][0]["executorId"],
        usage=Usage(
            input=raw["steps"][0]["tokenUsage"]["promptTokens"],
            output=raw["steps"][0]["tokenUsage"]["completionTokens"],
            total=raw["steps"][0]["tokenUsage"]["totalTokens"],
        ),
        finish_reason=raw["steps"][0].get("finishReason"),
    )


@needs_real_data
@pytest.mark.data
def test_published_agents_hold_what_their_files_say() -> None:
    weather = published("doc_example_agenttrace_1_0.json")
    assert (weather.agents, weather.prompt) == (
        ("WeatherAgent",),
        "What's the weather in Seattle?",
    )
    assert (weather.final_answer or "").startswith("The weather in Seattle is currently 52F")
    assert weather.tokens == Tokens(input=15, output=20)
    (call,) = weather.tool_calls
    assert (call.name, call.status, call.arguments) == ("GetWeather", "ok", None)
    hidden = {
        side: published(f"{side}_hidden_retry.trace.json").tool_calls for side in ("agent", "chat")
    }
    # The retry is in the trace of the calls alone.
    assert {side: len(calls) for side, calls in hidden.items()} == {"agent": 1, "chat": 2}
