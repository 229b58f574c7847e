"""The messages format: each shape, and each trap that chat logs set."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import FORMATS, choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.formats.messages import text_of, tokens_of
from benchmark_assets.adapters.traces import read_traces, why_unplaced
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import Tokens, TraceSnapshot
from tests.adapters.samples import lines, parse, trace_file
from tests.adapters.test_formats import ODD, changed, check_reading, places
from tests.real_data import REAL, needs_real_data


def call(name: str, arguments: Any = "{}", call_id: Any = "c1") -> dict[str, Any]:
    """A request to run a tool, as OpenAI's API has it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def asks(*calls: dict[str, Any], content: Any = None, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls), **fields}


def says(content: Any, **fields: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, **fields}


def user(content: Any = "Cancel ABC, please.") -> dict[str, Any]:
    return {"role": "user", "content": content}


def gives(content: Any, call_id: Any = "c1", **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **fields}


CHAT = [
    {"role": "system", "content": "Be kind."},
    user(),
    says("Shall I?"),
    user("Yes."),
    asks(call("cancel", '{"id": "ABC"}')),
    gives("Error: it is late"),
    says("It is cancelled."),
]

EPISODE = {
    "task_id": 3,
    "reward": 1.0,
    "info": {"reward_info": {"r_actions": True}, "task": {"instruction": "secret"}},
    "traj": [*CHAT, user("Thanks. ###STOP###")],
    "trial": 2,
}


def chat(*messages: Any, **fields: Any) -> TraceSnapshot:
    """The only snapshot of an object with these messages."""
    (found,) = parse({"messages": list(messages) or CHAT, **fields}, "messages")
    return found


def episode(*messages: Any, **fields: Any) -> TraceSnapshot:
    """The only snapshot of a file with one τ-bench episode."""
    (found,) = parse([{**EPISODE, "traj": list(messages) or EPISODE["traj"], **fields}])
    return found


SHAPES = {
    "list": (CHAT, [None]),
    "object": ({"messages": CHAT}, [None]),
    "objects": ([{"messages": CHAT}, {"messages": CHAT}], ["[0]", "[1]"]),
    "lines": (lines({"messages": CHAT}, {"messages": CHAT}), ["line 1", "line 2"]),
    "lines of lists": (lines(CHAT, CHAT), ["line 1", "line 2"]),
    "list of lists": ([CHAT, CHAT], ["[0]", "[1]"]),
    "episodes": ([EPISODE, EPISODE], ["[0]", "[1]"]),
    "episode": (EPISODE, [None]),
}


@pytest.mark.parametrize(("content", "records"), SHAPES.values(), ids=list(SHAPES))
def test_every_shape_gives_the_same_conversation(content: Any, records: list[str | None]) -> None:
    found = parse(content)
    assert [item.origin.record for item in found] == records
    assert len({item.trace_id for item in found}) == len(found)
    for item in found:
        assert item.problem is None
        assert item.prompt == "Cancel ABC, please."
        assert item.final_answer == "It is cancelled."
        assert [(m.text, m.before_call, m.question) for m in item.messages] == [
            ("Shall I?", 0, True),
            ("It is cancelled.", 1, False),
        ]
        (cancelled,) = item.tool_calls
        assert (cancelled.name, cancelled.arguments) == ("cancel", {"id": "ABC"})
        assert (cancelled.result, cancelled.span_id) == ("Error: it is late", "c1")
        assert [g.before_call for g in item.generations] == [0, 0, 1]


def test_a_greeting_is_no_question() -> None:
    """It was there before the user wanted anything, and asks nothing about it."""
    greeting = {"role": "assistant", "content": "Hello, how can I help?"}
    found = chat(greeting, user(), asks(call("cancel")), gives("ok"))
    assert [(m.before_call, m.question) for m in found.messages] == [(0, False)]


def test_an_object_says_what_it_knows() -> None:
    found = chat(
        id="t1",
        model="gpt-4o",
        name="support",
        task="cancel",
        trial=2,
        created=1772366400,
        duration_ms=1500,
        cost_usd=0.25,
        session_id="s",
        user="u",
        tags=["a", 5, "b"],
        metadata={"k": "v"},
        usage={"prompt_tokens": 10, "completion_tokens": 3},
    )
    assert (found.trace_id, found.model, found.name) == ("t1", "gpt-4o", "support")
    assert (found.task, found.trial, found.duration_ms) == ("cancel", 2, 1500)
    assert found.started_at is not None
    assert found.started_at.isoformat() == "2026-03-01T12:00:00+00:00"
    assert (found.cost_usd, found.session_id, found.user_id) == (0.25, "s", "u")
    assert (found.tags, found.metadata) == (("a", "b"), {"k": "v"})
    assert found.tokens == Tokens(input=10, output=3)
    assert (found.ended, found.ended_normally, found.error) == (None, None, None)


def test_what_is_not_said_is_unknown() -> None:
    found = chat()
    assert (found.model, found.task, found.trial, found.started_at) == (None, None, None, None)
    assert (found.cost_usd, found.duration_ms, found.tokens) == (None, None, Tokens())
    assert found.trace_id


def test_a_trace_without_a_model_is_reported_and_none_is_made_up() -> None:
    file = trace_file([EPISODE])
    (found,) = read_traces(file, ProjectConfig())
    assert found.model is None
    assert found.problem is None
    assert why_unplaced(found, ProjectConfig()) == (
        "sub/results.json: [0]: has no model (metadata model_name names one) and no time "
        "(--default-date, or default_date of its source, gives one)"
    )


@pytest.mark.parametrize(
    "fields",
    [
        {"model": "m"},
        {"model_name": "m"},
        {"metadata": {"model": "m"}},
        {"metadata": {"model_name": "m"}},
        {"messages": [user(), says("x", model="m")]},
    ],
)
def test_a_model_is_found_where_it_is_named(fields: dict[str, Any]) -> None:
    file = trace_file({"messages": CHAT, "created": 0, **fields})
    (found,) = read_traces(file, ProjectConfig())
    assert (found.model, found.problem) == ("m", None)


def test_times_of_messages_serve_where_the_trace_has_none() -> None:
    found = chat(
        {**user(), "timestamp": "2026-03-01T12:00:00Z"},
        says("a", created_at="2026-03-01T12:00:05Z"),
    )
    assert found.started_at is not None
    assert found.ended_at is not None
    assert (found.ended_at - found.started_at).total_seconds() == 5


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({}, Tokens()),
        (None, Tokens()),
        ("many", Tokens()),
        ({"prompt_tokens": 10, "completion_tokens": 3}, Tokens(input=10, output=3)),
        ({"input_tokens": 10, "output_tokens": 3}, Tokens(input=10, output=3)),
        ({"prompt_tokens": 0}, Tokens(input=0)),
        (
            {
                "prompt_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 7},
            },
            Tokens(input=6, output=2, cache_read=4, reasoning=7),
        ),
        (
            {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 10}},
            Tokens(input=0, cache_read=10),
        ),
        ({"prompt_tokens": -1, "completion_tokens": "x"}, Tokens()),
    ],
)
def test_usage_is_split_into_disjoint_buckets(usage: Any, tokens: Tokens) -> None:
    assert tokens_of(usage) == tokens


def test_usage_of_messages_comes_before_that_of_the_object() -> None:
    """A response's usage is of the last call only."""
    spent = {"prompt_tokens": 5, "completion_tokens": 1}
    found = chat(user(), says("a", usage=spent), says("b", usage=spent), usage=spent)
    assert found.tokens == Tokens(input=10, output=2)
    assert [g.tokens for g in found.generations] == [Tokens(input=5, output=1)] * 2


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, None),
        ("", None),
        ([], None),
        ("a", "a"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ([{"type": "text", "content": "a"}], "a"),
        ([{"type": "output_text", "text": "a"}, "b"], "a\nb"),
        ([{"text": "a"}], "a"),
        ([{"type": "refusal", "refusal": "No."}], "No."),
        ([{"type": "thinking", "thinking": "hm", "text": "hm"}], None),
        ([{"type": "image_url", "image_url": {"url": "x"}}, {"type": "text", "text": "a"}], "a"),
        ([None, 5, {"type": ["text"], "text": "a"}, {"type": "text", "text": 5}], None),
        ({"type": "text", "text": "a"}, None),
    ],
)
def test_the_text_of_contents(content: Any, text: str | None) -> None:
    assert text_of(content) == text


def test_a_refusal_is_said() -> None:
    assert chat(user(), says(None, refusal="I cannot.")).final_answer == "I cannot."


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": 1}, {"a": 1}),
        ("", ""),
        ("{broken", "{broken"),
        ("[1]", [1]),
        (None, None),
    ],
)
def test_arguments_are_json_text_or_stay_what_they_are(given: Any, arguments: Any) -> None:
    (found,) = chat(user(), asks(call("f", given))).tool_calls
    assert found.arguments == arguments


def test_older_function_calls() -> None:
    found = chat(
        user(),
        says(None, function_call={"name": "f", "arguments": '{"a": 1}'}),
        {"role": "function", "name": "f", "content": "done"},
        says("Done."),
    )
    (made,) = found.tool_calls
    assert (made.name, made.arguments, made.result) == ("f", {"a": 1}, "done")


def results(*messages: Any) -> list[tuple[str, Any, str | None]]:
    found = chat(user(), *messages)
    return [(made.name, made.result, made.status) for made in found.tool_calls]


def test_results_answer_their_calls_in_any_order() -> None:
    assert results(asks(call("a"), call("b", call_id="c2")), gives(2, "c2"), gives(1, "c1")) == [
        ("a", 1, None),
        ("b", 2, None),
    ]


def test_an_id_used_again_answers_the_later_call() -> None:
    """τ-bench's published runs do this: the provider repeated its ids."""
    assert results(
        asks(call("a")), gives(1), asks(call("b")), gives(2), asks(call("c")), gives(3)
    ) == [("a", 1, None), ("b", 2, None), ("c", 3, None)]
    assert results(asks(call("a")), asks(call("b")), gives(2)) == [
        ("a", None, "error"),
        ("b", 2, None),
    ]


def test_without_ids_the_tool_and_the_order_decide() -> None:
    asked = asks(call("a", call_id=""), call("b", call_id=None), call("a", call_id=""))
    assert results(asked, gives(2, "", name="b"), gives(1, ""), gives(3, None)) == [
        ("a", 1, None),
        ("b", 2, None),
        ("a", 3, None),
    ]


def test_a_result_of_no_call_is_no_calls() -> None:
    assert results(gives(0), asks(call("a")), gives(1), gives(2), gives(3, "other")) == [
        ("a", 1, None)
    ]
    # A call with an id of its own waits for the result that names it.
    assert results(asks(call("a")), gives(2, "other"), gives(1)) == [("a", 1, None)]


def test_a_call_without_a_result_did_not_succeed() -> None:
    assert results(asks(call("a")), gives(1), asks(call("b", call_id="c2"))) == [
        ("a", 1, None),
        ("b", None, "error"),
    ]


def test_where_no_result_is_recorded_nothing_is_known_of_calls() -> None:
    assert results(asks(call("a"), call("b", call_id="c2"))) == [
        ("a", None, None),
        ("b", None, None),
    ]


@pytest.mark.parametrize(
    ("content", "status", "error"),
    [
        ("Error: too late", "error", "Error: too late"),
        ("Errors happen", "error", "Errors happen"),
        ("No Error", "ok", None),
        ("error", "ok", None),
        ("", "ok", None),
        (5, "ok", None),
    ],
)
def test_an_episode_marks_failures_by_their_first_word(
    content: Any, status: str, error: str | None
) -> None:
    (made,) = episode(user(), asks(call("a")), gives(content)).tool_calls
    assert (made.status, made.error) == (status, error)


def test_outside_episodes_no_text_is_a_failure() -> None:
    assert results(asks(call("a")), gives("Error: too late")) == [("a", "Error: too late", None)]


def test_an_episode_ends_when_its_user_says_so() -> None:
    found = episode()
    assert (found.ended, found.ended_normally) == ("user_stop", True)
    assert (found.task, found.trial, found.model) == ("3", 2, None)
    # Being done is no answer to a question.
    assert [m.question for m in found.messages] == [True, False]
    for messages in (EPISODE["traj"][:-1], [*EPISODE["traj"], says("Bye.")]):
        found = episode(*messages)
        assert (found.ended, found.ended_normally) == (None, None)


def test_outside_episodes_nobody_says_so() -> None:
    found = chat(*EPISODE["traj"])
    assert (found.ended, found.ended_normally) == (None, None)


def test_an_episode_that_broke_off_cannot_be_judged() -> None:
    broken = {**EPISODE, "traj": [], "info": {"error": "EOF when reading", "traceback": "…"}}
    (found,) = parse([broken])
    assert found.problem == "sub/results.json: [0].traj: holds no message; error: EOF when reading"
    assert found.error == "EOF when reading"


def test_published_grades_reach_nothing() -> None:
    graded = {**EPISODE, "reward": 0.0, "info": {"reward_info": {"r_actions": False}}}
    first, second = parse([EPISODE]), parse([graded])
    keep = ("trace_id", "origin")
    for one, other in zip(first, second, strict=True):
        assert {f: getattr(one, f) for f in one.__struct_fields__ if f not in keep} == {
            f: getattr(other, f) for f in other.__struct_fields__ if f not in keep
        }
        assert "secret" not in repr(one)


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        ([*CHAT, 5], "messages[7]: expected an object"),
        ([*CHAT, {"role": "judge", "content": "x"}], "messages[7]: unknown role 'judge'"),
        ([*CHAT, {"content": "x"}], "messages[7]: unknown role None"),
        (
            [*CHAT, asks({"id": "c1", "function": {"arguments": "{}"}})],
            "messages[7]: tool_calls: a call has no name: "
            "{'id': 'c1', 'function': {'arguments': '{}'}}",
        ),
        ("text", "messages: expected a list of messages"),
        ([], "messages: holds no message"),
    ],
)
def test_what_cannot_be_read_is_an_error_row(messages: Any, problem: str) -> None:
    good, bad = parse([{"messages": CHAT}, {"id": "bad", "messages": messages}])
    assert good.problem is None
    assert (bad.trace_id, bad.problem) == ("bad", f"sub/results.json: [1].{problem}")


def test_one_bad_line_costs_no_other() -> None:
    found = parse(lines({"messages": CHAT}, "{broken", 5, {"messages": CHAT}))
    assert [item.problem is None for item in found] == [True, False, False, True]
    assert "line 2" in str(found[1].problem) or "2:" in str(found[1].problem)


@pytest.mark.parametrize(
    "content",
    [
        {"role": "user", "content": "a message alone"},
        [{"role": "user"}],
        [{"role": "human", "content": "x"}],
        {"messages": []},
        {"messages": [{"type": "human", "content": "x"}]},
        {"traj": []},
        {"messages": CHAT, "suite_name": "s", "user_task_id": "u"},
        {"messages": CHAT, "simulations": []},
        lines(*CHAT),
    ],
)
def test_what_is_no_message_list(content: Any) -> None:
    by_name = {fmt.name: fmt for fmt in FORMATS}
    assert by_name["messages"].matches(trace_file(content)) is False


@pytest.mark.parametrize("content", [5, "text", None])
def test_a_file_named_messages_must_hold_some(content: Any) -> None:
    with pytest.raises(InputError, match="holds no messages"):
        parse(json.dumps(content), "messages")


SAMPLES = {
    "objects": [{"id": "a", "model": "m", "created": 0, "messages": CHAT}, {"messages": CHAT}],
    "episodes": [EPISODE, {**EPISODE, "trial": 3}],
    "list": CHAT,
}


@pytest.mark.parametrize("content", SAMPLES.values(), ids=list(SAMPLES))
def test_a_file_with_one_thing_wrong_is_read_or_refused(content: Any) -> None:
    content = json.loads(json.dumps(content))
    for path in places(content):
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            data = json.dumps(changed(content, path, how, odd)).encode()
            for name in ("auto", "messages"):
                check_reading(data, name)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_files_with_some_things_wrong_or_cut_off_are_read_or_refused(data: st.DataObject) -> None:
    content = json.loads(json.dumps(data.draw(st.sampled_from(list(SAMPLES.values())))))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(content))))
        how = data.draw(st.sampled_from(["drop", "double", "set"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    text = json.dumps(content).encode()
    check_reading(text, "messages")
    check_reading(text[: data.draw(st.integers(0, len(text)))], "messages")


@needs_real_data
@pytest.mark.data
def test_no_real_file_fits_two_formats() -> None:
    """Counted by hand: AgentDojo's runs, τ²-bench's results, and no vendor's files we cannot read."""
    fitting: Counter[str] = Counter()
    for path in sorted(REAL.rglob("*.json*")):
        file = TraceFile(path.name, path.name, path.read_bytes())
        names = [fmt.name for fmt in FORMATS if fmt.matches(file)]
        assert len(names) <= 1, path
        fitting.update(names)
        if names:
            assert choose_format(file).name == names[0]
    assert fitting["tau2"] == 6
    assert fitting["agentdojo"] == 370
