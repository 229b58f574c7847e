"""Edits keep a trace one: whatever points at a call points at the same call afterwards."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.model.trace import Message, ToolCall, TraceSnapshot
from benchmark_assets.scoring.mutation.edits import (
    asking_call,
    cut,
    drop_calls,
    failed,
    insert,
    insert_copy,
    leaves,
    put,
    rearrange,
    texts_in,
    with_answer,
    with_arguments,
    without,
)
from benchmark_assets.scoring.mutation.operators import OPERATORS, mutants
from tests.scoring.build import contract, trace
from tests.scoring.mutation.scenes import names, scene
from tests.scoring.values import harness_calls, json_values, tool_calls

ORDER = [
    {"name": "a", "arguments": {"path": "A"}},
    {"name": "b", "arguments": {"text": "sure?"}},
    {"name": "c", "arguments": {"path": "C"}},
]
FIELDS: dict[str, Any] = {
    "files": [
        {"path": "A", "operation": "read", "call": 0},
        {"path": "C", "operation": "write", "content": "x", "call": 2},
    ],
    "skills": [{"name": "s", "call": 2}],
    "messages": [
        {"text": "hello", "before_call": 0},
        {"text": "sure?", "before_call": 2, "question": True},
        {"text": "done", "before_call": 3},
    ],
    "generations": [{"before_call": 0}, {"before_call": 2}, {}],
    "final_answer": "done",
}


def _trace() -> TraceSnapshot:
    return trace(tool_calls=ORDER, **FIELDS)


def _points(of: TraceSnapshot) -> tuple[Any, ...]:
    return (
        names(of),
        [(event.path, event.call) for event in of.files],
        [(load.name, load.call) for load in of.skills],
        [(message.text, message.before_call) for message in of.messages],
        [generation.before_call for generation in of.generations],
    )


def test_a_dropped_call_takes_what_it_did_along_and_the_rest_moves_up() -> None:
    assert _points(drop_calls(_trace(), [0])) == (
        ["b", "c"],
        [("C", 1)],
        [("s", 1)],
        [("hello", 0), ("sure?", 1), ("done", 2)],
        [0, 1, None],
    )
    # The question is put by `b`: without the call nobody asks.
    assert _points(drop_calls(_trace(), [1])) == (
        ["a", "c"],
        [("A", 0), ("C", 1)],
        [("s", 1)],
        [("hello", 0), ("done", 2)],
        [0, 1, None],
    )


def test_calls_that_change_places_take_what_is_theirs_along() -> None:
    assert _points(rearrange(_trace(), [0, 2, 1])) == (
        ["a", "c", "b"],
        [("A", 0), ("C", 1)],
        [("s", 1)],
        [("hello", 0), ("sure?", 3), ("done", 3)],
        [0, 2, None],
    )
    assert [e.path for e in rearrange(_trace(), [2, 1, 0]).files] == ["C", "A"]


@pytest.mark.parametrize(
    ("position", "files", "messages"),
    [
        (0, [("A", 1), ("C", 3)], [("hello", 1), ("sure?", 3), ("done", 4)]),
        (1, [("A", 0), ("C", 3)], [("hello", 0), ("sure?", 3), ("done", 4)]),
        # What is put by a call directly follows it.
        (2, [("A", 0), ("C", 3)], [("hello", 0), ("sure?", 2), ("done", 4)]),
        # The last words stay the last.
        (3, [("A", 0), ("C", 2)], [("hello", 0), ("sure?", 2), ("done", 4)]),
    ],
)
def test_an_inserted_call_moves_what_comes_later(
    position: int, files: list[Any], messages: list[Any]
) -> None:
    more = insert(_trace(), position, ToolCall(name="x"))
    assert names(more)[position] == "x"
    assert _points(more)[1] == files
    assert _points(more)[3] == messages


def test_a_copy_does_again_what_the_call_did() -> None:
    again = insert_copy(_trace(), 2, 3, {"C": "D"})
    assert _points(again)[:3] == (
        ["a", "b", "c", "c"],
        [("A", 0), ("C", 2), ("D", 3)],
        [("s", 2), ("s", 3)],
    )
    assert again.tool_calls[3].arguments == {"path": "D"}


def test_a_trace_that_is_cut_off_still_says_its_last_words() -> None:
    early = cut(_trace(), 1)
    assert _points(early) == (
        ["a"],
        [("A", 0)],
        [],
        [("hello", 0), ("done", 1)],
        [0, 1, None],
    )
    assert early.final_answer == "done"


def test_what_was_done_is_what_the_arguments_say() -> None:
    other = with_arguments(_trace(), 2, {"path": "Z"})
    assert [(e.path, e.call) for e in other.files] == [("A", 0), ("Z", 2)]
    assert [e.path for e in with_arguments(_trace(), 2, {}).files] == ["A"]
    # The question is another one, and is none if nothing is asked.
    asked = with_arguments(_trace(), 1, {"text": "really?"})
    assert [m.text for m in asked.questions] == ["really?"]
    assert with_arguments(_trace(), 1, {"text": 5}).questions == ()


def test_a_failed_call_did_nothing() -> None:
    off = failed(_trace(), 2, "no")
    assert off.tool_calls[2].status == "error"
    assert off.tool_calls[2].error == "no"
    assert [(e.path, e.status) for e in off.files] == [("A", None), ("C", "error")]
    assert off.skills[0].status == "error"


def test_last_words_are_the_last_message_too() -> None:
    assert with_answer(_trace(), "other").messages[-1].text == "other"
    assert with_answer(_trace(), None).messages[-1].text == "sure?"


def test_values_inside() -> None:
    data = {"a": [1, {"b": 2}], "c": {}}
    assert list(leaves(data)) == [(("a", 0), 1), (("a", 1, "b"), 2), (("c",), {})]
    assert put(data, ("a", 1, "b"), 3) == {"a": [1, {"b": 3}], "c": {}}
    assert without(data, ("a", 1, "b")) == {"a": [1, {}], "c": {}}
    assert without(data, ("a", 0)) == {"a": [{"b": 2}], "c": {}}
    assert data == {"a": [1, {"b": 2}], "c": {}}
    assert texts_in({"k": ["v", {"w": "x"}]}) == {"v", "x"}


@given(json_values())
def test_every_leaf_is_where_it_is_said_to_be(value: Any) -> None:
    for place, leaf in leaves(value):
        node = value
        for part in place:
            node = node[part]
        assert node is leaf
        assert not (isinstance(leaf, dict | list) and leaf)


# Properties: each call, file, skill and question carries a tag of its own.

QUESTION = "question "


@st.composite
def tagged(draw: st.DrawFn) -> TraceSnapshot:
    """A trace in which files, skills and questions say which call they belong to."""
    kinds = draw(st.lists(st.sampled_from(["file", "skill", "ask", "plain"]), max_size=6))
    calls, files, skills, messages = [], [], [], []
    for index, kind in enumerate(kinds):
        tag = f"{QUESTION if kind == 'ask' else ''}{index}"
        status = draw(st.sampled_from(["ok", "error", None]))
        calls.append({"name": f"{kind}_{index}", "arguments": {"it": tag}, "status": status})
        if kind == "file":
            operation = draw(st.sampled_from(["read", "write", "delete"]))
            files.append({"path": tag, "operation": operation, "content": "c", "call": index})
        elif kind == "skill":
            skills.append({"name": tag, "call": index})
        elif kind == "ask":
            messages.append({"text": tag, "before_call": index + 1, "question": True})
        if draw(st.booleans()):
            messages.append({"text": "said", "before_call": index})
    messages.sort(key=lambda message: message["before_call"])
    if draw(st.booleans()):
        messages.append({"text": "answer", "before_call": len(calls)})
    return trace(
        tool_calls=calls,
        files=files,
        skills=skills,
        messages=messages,
        final_answer=draw(st.sampled_from([None, "answer", '{"a": [{"b": "x"}]}'])),
        generations=[{"before_call": draw(st.integers(0, len(calls)))}],
        ended_normally=True,
    )


def _consistent(of: TraceSnapshot) -> None:
    count = len(of.tool_calls)
    for event in of.files:
        assert event.call is not None
        assert event.path in texts_in(of.tool_calls[event.call].arguments)
    for load in of.skills:
        if load.call is not None:
            assert load.name in texts_in(of.tool_calls[load.call].arguments)
    for message in of.messages:
        assert 0 <= message.before_call <= count
    for message in of.questions:
        # Either still the call's own question, or one that was deliberately put elsewhere.
        assert asking_call(of, message) == message.before_call - 1
    assert all(0 <= (g.before_call or 0) <= count for g in of.generations)
    places = [message.before_call for message in of.messages]
    assert places == sorted(places)
    calls = [event.call for event in of.files]
    assert calls == sorted(calls)


UNDER = contract(
    tools={"forbidden": ["delete_*"], "optional": ["*"]},
    skills={"optional": ["*"]},
    final={"contains": ["answer"], "not_contains": ["sorry"], "scope": "conversation"},
    budget={
        "max_steps": 3,
        "max_tool_calls": 4,
        "max_tokens": 10,
        "max_cost_usd": 0.5,
        "max_duration_s": 9,
        "max_retries": 1,
    },
    trajectory={"extra": "reads_only", "writes": ["file_*", "write_[a-z]?"]},
)


@given(tagged(), st.integers(0, 3))
def test_no_mutant_points_at_another_call(of: TraceSnapshot, seed: int) -> None:
    _consistent(of)
    for operator, mutant in mutants(scene(of, UNDER, seed)):
        try:
            _consistent(mutant.trace)
        except AssertionError as error:
            raise AssertionError(f"{operator.name}: {mutant.what}") from error


@given(tagged(), st.data())
def test_what_is_said_is_said_after_the_same_calls(of: TraceSnapshot, data: st.DataObject) -> None:
    count = len(of.tool_calls)
    kept = sorted(
        data.draw(st.sets(st.integers(0, max(count - 1, 0)), max_size=count)) if count else []
    )
    fewer = rearrange(of, kept)
    wanted = [
        (message.text, [of.tool_calls[i].name for i in kept if i < message.before_call])
        for message in of.messages
        if (owner := asking_call(of, message)) is None or owner in kept
    ]
    assert [(m.text, names(fewer)[: m.before_call]) for m in fewer.messages] == wanted


@given(tagged())
def test_every_mutant_is_another_trace_that_says_what_is_wrong(of: TraceSnapshot) -> None:
    made = list(mutants(scene(of, UNDER)))
    assert all(mutant.trace != of for _, mutant in made)
    assert all(mutant.what.strip() for _, mutant in made)
    traces = [mutant.trace for _, mutant in made]
    assert all(first not in traces[:index] for index, first in enumerate(traces))
    assert list(mutants(scene(of, UNDER))) == made


HOSTILE = st.one_of(
    tool_calls(["get_order", "ask_user", "delete_x", ""]),
    harness_calls(["read_file", "write_file", "load_skill"]),
)


@given(
    HOSTILE,
    st.lists(st.tuples(st.text(max_size=4), st.integers(-2, 9), st.booleans()), max_size=4),
    st.lists(st.integers(-2, 9) | st.none(), max_size=3),
    st.sampled_from([None, "", "[", "[[1]]", '{"a": {"b": [null, 1e400]}}', '"text"', "[" * 900]),
)
def test_no_trace_makes_an_operator_raise(
    calls: list[Any],
    said: list[tuple[str, int, bool]],
    indices: list[int | None],
    answer: str | None,
) -> None:
    of = trace(
        tool_calls=calls,
        messages=[{"text": t, "before_call": b, "question": q} for t, b, q in said],
        files=[{"path": "p", "operation": "write", "content": "c", "call": i} for i in indices],
        skills=[{"name": "s", "call": i} for i in indices],
        final_answer=answer,
    )
    setting = scene(of, UNDER)
    for operator in OPERATORS:
        list(operator.make(setting))
    list(mutants(setting))


def test_a_question_that_a_call_puts_is_told_from_one_that_follows_it() -> None:
    of = _trace()
    assert asking_call(of, of.messages[1]) == 1
    assert asking_call(of, Message(text="other?", before_call=2, question=True)) is None
    assert asking_call(of, Message(text="sure?", before_call=0, question=True)) is None
