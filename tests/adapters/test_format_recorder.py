"""The recorder's traces: what is kept, what is unknown, and what leaves no verdict."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from benchmark_assets.model.trace import Message, Tokens, ToolCall, TraceSnapshot
from tests.adapters.samples import lines, parse, recording


def one(**fields: Any) -> TraceSnapshot:
    (found,) = parse(recording(**fields), "recorder")
    return found


def test_the_published_format() -> None:
    """Tools, a truth value and a payload are all that it has."""
    found = one(
        tools=[
            {"name": "get_order", "arguments": {"order_id": "1842"}},
            {"name": "refund_payment", "arguments": {"order_id": "1842", "method": "card"}},
        ],
        asked_clarification=True,
        final={"status": "ok", "refund_id": None},
    )
    assert found.tool_calls == (
        ToolCall(name="get_order", arguments={"order_id": "1842"}),
        ToolCall(name="refund_payment", arguments={"order_id": "1842", "method": "card"}),
    )
    assert found.asked_clarification is True
    assert found.messages == ()
    assert json.loads(found.final_answer or "") == {"status": "ok", "refund_id": None}
    # What nobody recorded is unknown.
    known = (found.task, found.model, found.prompt, found.started_at, found.error, found.problem)
    assert known == (None,) * 6
    assert (found.ended_normally, found.tokens) == (None, Tokens())
    assert found.origin.format == "recorder"


def test_all_that_may_be_recorded() -> None:
    found = one(
        tools=[
            {"name": "a", "arguments": {}, "result": {"x": [1]}},
            {"name": "b", "arguments": None, "error": "down"},
            {"name": "c", "error": {"code": 5}},
        ],
        questions=[{"text": "Which?", "before_tool": 1}, {"text": "Sure?", "before_tool": 3}],
        fixture="refund/late",
        trial=3,
        input={"user": "Refund it."},
        model="m",
        started_at="2026-03-01T12:00:00+01:00",
        ended_at="2026-03-01T11:00:05Z",
        tokens={"input": 5, "cache_read": 2, "sum": 7},
        final="done",
    )
    assert [(call.name, call.status, call.error) for call in found.tool_calls] == [
        ("a", None, None),
        ("b", "error", "down"),
        ("c", "error", '{"code": 5}'),
    ]
    assert found.tool_calls[0].result == {"x": [1]}
    assert found.messages == (
        Message(text="Which?", before_call=1, question=True),
        Message(text="Sure?", before_call=3, question=True),
    )
    assert found.questions == found.messages
    # The order is known, so that the truth value says nothing more.
    assert found.asked_clarification is None
    assert (found.task, found.name, found.trial) == ("refund/late", "refund/late", 3)
    assert (found.prompt, found.model, found.final_answer) == ("Refund it.", "m", "done")
    assert found.started_at == datetime(2026, 3, 1, 11, tzinfo=UTC)
    assert found.ended_at == datetime(2026, 3, 1, 11, 0, 5, tzinfo=UTC)
    assert found.tokens == Tokens(input=5, cache_read=2)


@pytest.mark.parametrize("asked", [True, False])
def test_without_questions_the_truth_value_is_all_there_is(asked: bool) -> None:
    assert one(asked_clarification=asked).asked_clarification is asked
    assert one(asked_clarification=asked, questions=[]).asked_clarification is asked


@pytest.mark.parametrize("asked", [None, 1, "true", [], {}])
def test_what_is_no_truth_value_says_nothing(asked: Any) -> None:
    assert one(asked_clarification=asked).asked_clarification is None


def test_questions_stand_in_the_order_of_calls() -> None:
    later, earlier = {"text": "b", "before_tool": 1}, {"text": "a", "before_tool": 0}
    assert [message.text for message in one(questions=[later, earlier]).questions] == ["a", "b"]


@pytest.mark.parametrize(
    ("questions", "problem"),
    [
        ([{"text": "x", "before_tool": 2}], "questions[0].before_tool is 2, expected 0 to 1"),
        ([{"text": "x", "before_tool": -1}], "questions[0].before_tool is -1, expected 0 to 1"),
        ([{"text": "x", "before_tool": 0.5}], "questions[0].before_tool is 0.5, expected 0 to 1"),
        ([{"text": "x"}], "questions[0].before_tool is null, expected 0 to 1"),
        ([{"text": "x", "before_tool": 0}, "y"], "questions[1] is no object"),
        ({"text": "x", "before_tool": 0}, "questions are no list"),
        ("Which?", "questions are no list"),
    ],
)
def test_a_question_whose_place_is_lost_leaves_no_verdict(questions: Any, problem: str) -> None:
    """Neither way: such a trace could pass or fail for what nobody knows."""
    found = one(asked_clarification=True, questions=questions)
    assert (found.problem or "").startswith(problem)


@pytest.mark.parametrize("final", [{}, {"a": 1}, [], 0, False])
def test_a_payload_is_kept_as_json(final: Any) -> None:
    assert json.loads(one(final=final).final_answer or "") == final


def test_no_payload_is_no_answer() -> None:
    assert one(final=None).final_answer is None


def test_an_agent_that_raised_is_in_error() -> None:
    found = one(error="TimeoutError: 30 s")
    assert (found.error, found.problem) == ("TimeoutError: 30 s", None)
    assert (found.ended, found.ended_normally) == ("error", False)


def test_a_list_and_lines_of_recordings() -> None:
    first, second = recording(fixture="a"), recording(fixture="b")
    assert [item.task for item in parse([first, second])] == ["a", "b"]
    assert [item.origin.record for item in parse([first, second])] == ["[0]", "[1]"]
    found = parse(lines(first, "{", second, {"tool": []}))
    assert [item.task for item in found] == ["a", None, "b", None]
    assert [bool(item.problem) for item in found] == [False, True, False, True]
    assert found[3].problem == (
        "sub/results.json: line 4: is no recording: expected an object with a list of `tools`"
    )
    assert len({item.trace_id for item in found}) == 4


def test_equal_recordings_in_two_places_are_two_traces() -> None:
    one_, other = parse([recording(), recording()])
    assert one_.trace_id != other.trace_id
    assert parse(recording(id="t1"))[0].trace_id == "t1"


# Whatever says that something failed.


@pytest.mark.parametrize("error", ["", "down", {"message": "down"}, ["down"], True, 0, {}, []])
def test_an_error_of_any_shape_is_one(error: Any) -> None:
    found = one(tools=[{"name": "a", "error": error}], error=error)
    (call,) = found.tool_calls
    assert call.status == "error"
    assert call.error is not None
    assert found.error is not None
    assert (found.ended, found.ended_normally) == ("error", False)


@pytest.mark.parametrize("error", [None, False])
def test_no_error_is_none(error: Any) -> None:
    found = one(tools=[{"name": "a", "error": error}], error=error)
    assert (found.tool_calls[0].status, found.error, found.ended) == (None, None, None)


@pytest.mark.parametrize(
    "mark",
    [
        {"status": "error"},
        {"status": "Failed"},
        {"status": "timeout"},
        {"status": "cancelled"},
        {"is_error": True},
        {"isError": 1},
        {"is_error": "true"},
        {"success": False},
        {"ok": False},
        {"error": False, "is_error": True},
        {"error": False, "status": "failed"},
    ],
)
def test_what_is_marked_as_failed_failed(mark: dict[str, Any]) -> None:
    found = one(tools=[{"name": "a", "result": "?", **mark}], **mark)
    (call,) = found.tool_calls
    assert call.status == "error"
    assert call.error is not None
    assert found.error is not None


@pytest.mark.parametrize(
    "mark",
    [{"status": "ok"}, {"is_error": False}, {"isError": None}, {"success": True}, {"ok": "true"}],
)
def test_other_marks_say_nothing(mark: dict[str, Any]) -> None:
    (call,) = one(tools=[{"name": "a", **mark}]).tool_calls
    assert (call.status, call.error) == (None, None)


def test_whose_recording_it_is_may_be_said_in_another_shape() -> None:
    found = one(tools=[], fixture={"id": "refund", "version": 2}, input="Refund it.")
    assert (found.task, found.name, found.prompt) == ("refund", "refund", "Refund it.")


@pytest.mark.parametrize("fixture", [{"name": "refund"}, ["refund"], True, 1.5, ""])
def test_a_fixture_that_cannot_be_told_leaves_no_verdict(fixture: Any) -> None:
    found = one(tools=[], fixture=fixture)
    assert "fixture" in (found.problem or "")
    assert (found.task, found.name) == (None, None)
