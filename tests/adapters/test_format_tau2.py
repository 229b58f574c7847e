"""τ²-bench result files: one small handwritten file for each trap of the real ones."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from benchmark_assets.adapters.formats.tau2 import NORMAL_ENDINGS, NOT_THE_AGENT
from benchmark_assets.model.trace import Tokens, ToolCall
from tests.adapters.samples import (
    CONVERSATION,
    DATA,
    GREETING,
    NAME,
    agent,
    call,
    one,
    parse,
    result,
    simulation,
    tau2,
    trace_file,
    user,
)


def only_call(*messages: Any) -> ToolCall:
    (found,) = one(user(), *messages, user("###STOP###")).tool_calls
    return found


def test_a_whole_simulation_field_by_field() -> None:
    found = one()
    assert found.trace_id == "sim-1"
    assert (found.name, found.model, found.task, found.trial) == (
        "airline",
        "gpt-4o",
        "airline/7",
        0,
    )
    assert str(found.started_at) == "2026-03-01 12:00:00.500000+00:00"
    assert str(found.ended_at) == "2026-03-01 12:00:12.750000+00:00"
    assert found.duration_ms == 12250
    assert (found.ended, found.ended_normally, found.error) == ("user_stop", True, None)
    assert found.problem is None
    assert found.prompt == "Cancel ABC, please."
    assert found.final_answer == "It is cancelled."
    assert found.agents == ("llm_agent",)
    assert found.metadata == {
        "domain": "airline",
        "agent_implementation": "llm_agent",
        "user_model": "gpt-4.1",
        "git_commit": "abc123",
        "seed": 300,
    }
    assert found.origin.record == "simulations[0]"
    assert found.tool_calls == (
        ToolCall(
            name="get_reservation",
            arguments={"id": "ABC"},
            result='{"id": "ABC"}',
            status="ok",
            agent="llm_agent",
            span_id="c1",
        ),
        ToolCall(
            name="cancel_reservation",
            arguments={"id": "ABC"},
            result="cancelled",
            status="ok",
            agent="llm_agent",
            span_id="c2",
        ),
    )


def test_the_users_model_is_not_the_agents_cost() -> None:
    found = one()
    # Four agent messages of 100 + 10 tokens; the greeting is scripted, the user's do not count.
    assert found.tokens == Tokens(input=400, output=40)
    assert len(found.generations) == 4
    assert found.cost_usd == 0.02


def test_texts_to_the_user_are_placed_between_the_calls() -> None:
    found = [(m.text, m.before_call, m.question) for m in one().messages]
    assert found == [
        # A greeting is answered by what the user wants, and clarifies none of it.
        ("Hi! How can I help?", 0, False),
        ("Shall I cancel it?", 1, True),
        ("It is cancelled.", 2, True),
    ]


def test_a_text_beside_a_call_is_no_question() -> None:
    found = one(user(), agent("Let me look.", call("get_x")), result(), user("Well?"))
    assert [(m.text, m.question) for m in found.messages] == [("Let me look.", False)]


def test_calls_of_the_simulated_user_do_not_count() -> None:
    request = call("toggle_data", {}, "u1", requestor="user")
    found = one(
        GREETING,
        user(None, tool_calls=[request]),
        result("on", "u1", requestor="user"),
        user("It is on now."),
        agent(None, call("get_line")),
        result("late", "c1", requestor="user"),
        result("active", "c1"),
        agent("Good."),
    )
    assert [(c.name, c.result) for c in found.tool_calls] == [("get_line", "active")]
    assert found.prompt == "It is on now."


def test_a_call_without_a_result_did_not_succeed() -> None:
    found = only_call(agent(None, call("book")))
    assert (found.status, found.error) == ("error", "the run ended without a result")
    assert found.result is None


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [(True, "error", "no such id"), (False, "ok", None), (None, "ok", None)],
)
def test_the_result_says_whether_a_call_failed(
    error: bool | None, status: str, message: str | None
) -> None:
    found = only_call(agent(None, call("book")), result("no such id", error=error))
    assert (found.status, found.error, found.result) == (status, message, "no such id")


def test_a_result_of_another_call_changes_nothing() -> None:
    found = only_call(agent(None, call("book")), result("x", "c9"))
    assert found.status == "error"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"id": 1}, {"id": 1}),
        ('{"id": 1}', {"id": 1}),
        ("{}", {}),
        ("[1, 2]", [1, 2]),
        ('{"id": 1', '{"id": 1'),
        ("not json", "not json"),
        ("", ""),
        ("[" * 5000, "[" * 5000),
        (r'{"t": "\ud83d"}', {"t": "\ufffd"}),
    ],
)
def test_arguments_given_as_text_are_json_where_they_can_be(given: Any, expected: Any) -> None:
    found = only_call(agent(None, call("book", given)), result())
    assert found.arguments == expected


def test_results_may_come_in_one_message_and_in_any_order() -> None:
    requests = call("a", {}, "c1"), call("b", {}, "c2"), call("c", {}, "c3")
    answers = [result("B", "c2", error=True), result("A", "c1")]
    found = one(user(), agent(None, *requests), {"role": "tool", "tool_messages": answers})
    assert [(c.name, c.status, c.result) for c in found.tool_calls] == [
        ("a", "ok", "A"),
        ("b", "error", "B"),
        ("c", "error", None),
    ]


@pytest.mark.parametrize("call_id", ["same", "", None, 0], ids=repr)
def test_ids_that_repeat_or_are_missing_pair_calls_and_results_in_order(call_id: Any) -> None:
    """Some models number the calls of every message anew, and some number none."""
    found = one(
        user(),
        agent(None, call("a", {}, call_id), call("b", {}, call_id)),
        result("A", call_id),
        result("B", call_id, error=True),
        agent(None, call("c", {}, call_id)),
        result("C", call_id),
    )
    assert [(c.name, c.status, c.result) for c in found.tool_calls] == [
        ("a", "ok", "A"),
        ("b", "error", "B"),
        ("c", "ok", "C"),
    ]


def test_a_call_that_was_never_answered_takes_no_later_answer_of_its_id() -> None:
    found = one(user(), agent(None, call("a")), agent(None, call("b")), result("B"), agent("Done."))
    assert [(c.name, c.status) for c in found.tool_calls] == [("a", "error"), ("b", "ok")]


def test_an_unfinished_simulation_is_no_verdict() -> None:
    found = one(termination_reason=None)
    assert found.problem == (
        "sub/results.json: simulations[0].termination_reason: is missing, so the simulation is "
        "not complete"
    )
    assert (found.ended, found.ended_normally, found.error) == (None, None, None)


@pytest.mark.parametrize("ended", sorted(NOT_THE_AGENT))
def test_a_failure_of_the_benchmark_is_no_verdict(ended: str) -> None:
    found = one(termination_reason=ended)
    assert found.problem == (
        f"sub/results.json: simulations[0]: ended by {ended}, which is not the agent's doing"
    )


@pytest.mark.parametrize("ended", ["max_steps", "too_many_errors", "agent_error", "timeout"])
def test_the_agents_own_failures_are_judged(ended: str) -> None:
    found = one(termination_reason=ended)
    assert found.problem is None
    assert (found.ended, found.ended_normally, found.error) == (ended, False, f"ended by {ended}")


@pytest.mark.parametrize("ended", sorted(NORMAL_ENDINGS))
def test_normal_endings(ended: str) -> None:
    found = one(termination_reason=ended)
    assert (found.ended_normally, found.error) == (True, None)


@pytest.mark.parametrize(
    ("cost", "expected"), [(None, None), (0.0, 0.0), (0, 0.0), (0.5, 0.5), (-1, None), ("1", None)]
)
def test_an_unknown_cost_is_not_a_cost_of_nothing(cost: Any, expected: float | None) -> None:
    assert one(agent_cost=cost).cost_usd == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(12.25, 12250), (0, 0), (0.0004, 0), (None, None), (-1, None), ("9", None)],
)
def test_duration(seconds: Any, expected: int | None) -> None:
    assert one(duration=seconds).duration_ms == expected


@pytest.mark.parametrize(
    ("usage", "raw", "expected"),
    [
        (None, None, Tokens()),
        ({}, None, Tokens()),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None, Tokens(input=0, output=0)),
        ({"prompt_tokens": 100}, None, Tokens(input=100)),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 20},
            },
            None,
            Tokens(input=36, cache_read=64, output=10, reasoning=20),
        ),
        (
            {"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": 64}},
            None,
            Tokens(input=0, cache_read=64),
        ),
        (
            {
                "prompt_tokens": 100,
                "completion_tokens": 30,
                "prompt_tokens_details": None,
                "completion_tokens_details": {"reasoning_tokens": None},
            },
            {},
            Tokens(input=100, output=30),
        ),
        (
            {"prompt_tokens": 175, "completion_tokens": 30},
            {
                "usage": {
                    "input_tokens": 5,
                    "cache_read_input_tokens": 120,
                    "cache_creation_input_tokens": 50,
                }
            },
            Tokens(input=5, cache_read=120, cache_write=50, output=30),
        ),
        ({"prompt_tokens": "many", "completion_tokens": -3}, None, Tokens()),
    ],
)
def test_tokens_are_in_disjoint_buckets(usage: Any, raw: Any, expected: Tokens) -> None:
    found = one(user(), agent("Hello.", usage=usage, raw_data=raw))
    assert found.tokens == expected


def test_tokens_known_in_some_messages_only_are_their_sum() -> None:
    found = one(user(), agent("One moment.", usage=None), agent("Done."))
    assert found.tokens == Tokens(input=100, output=10)


@pytest.mark.parametrize(
    ("domain", "task_id", "expected"),
    [
        ("airline", "7", "airline/7"),
        ("airline", 7, "airline/7"),
        ("airline", 0, "airline/0"),
        (None, 7, "7"),
        (None, "7", "7"),
        ("airline", None, None),
        ("airline", "", None),
        ("airline", ["7"], None),
    ],
)
def test_the_task_is_the_id_with_its_suite(domain: str | None, task_id: Any, expected: Any) -> None:
    (found,) = parse(tau2(simulation(CONVERSATION, task_id=task_id), domain=domain))
    assert (found.task, found.name) == (expected, domain)


@pytest.mark.parametrize(
    ("given", "expected"), [("sim-9", "sim-9"), (9, "9"), (None, None), ("", None)]
)
def test_the_sources_id_is_kept(given: Any, expected: str | None) -> None:
    content = tau2(simulation(CONVERSATION, id=given))
    (found,) = parse(content)
    assert found.trace_id == (expected or trace_file(content).made_id("simulations[0]"))


def test_simulations_that_share_an_id_are_all_there() -> None:
    """Telling them apart is `assemble`'s to do, when all of a partition is together."""
    found = parse(tau2(simulation(CONVERSATION), simulation(CONVERSATION, trial=1)))
    assert [(item.trace_id, item.trial, item.origin.record) for item in found] == [
        ("sim-1", 0, "simulations[0]"),
        ("sim-1", 1, "simulations[1]"),
    ]


@pytest.mark.parametrize("trial", [None, -1, 2**31, 1.5, "x", True])
def test_a_trial_that_is_no_count_is_unknown(trial: Any) -> None:
    assert one(trial=trial).trial is None


BAD = [
    (5, "simulations[1]: expected an object"),
    (None, "simulations[1]: expected an object"),
    ({"id": "x"}, "simulations[1].messages: expected a list of messages"),
    (simulation({}), "simulations[1].messages: expected a list of messages"),
    (simulation([user(), 5]), "simulations[1].messages[1]: expected an object"),
    (simulation([{"role": "critic"}]), "simulations[1].messages[0]: unknown role 'critic'"),
    (simulation([{}]), "simulations[1].messages[0]: unknown role None"),
    (
        simulation([user(), agent(None, {"id": "c1", "arguments": {}})]),
        "simulations[1].messages[1]: tool_calls: a call has no name: {'id': 'c1', 'arguments': {}}",
    ),
]


@pytest.mark.parametrize(("bad", "message"), BAD)
def test_one_bad_simulation_becomes_an_error_row(bad: Any, message: str) -> None:
    good = simulation(CONVERSATION)
    before, row, after = parse(tau2(good, bad, good))
    assert before.problem is after.problem is None
    assert before.tool_calls == after.tool_calls != ()
    assert row.problem == f"sub/results.json: {message}"
    # The model is the file's, so that the row counts against it and not against nobody.
    assert row.model == "gpt-4o"


SECRET = "a word to be looked for"


def test_an_api_key_in_the_files_settings_gets_into_no_snapshot() -> None:
    args = {"api_key": SECRET, "temperature": 0.0, "extra_headers": {"Authorization": SECRET}}
    content = tau2(
        simulation(CONVERSATION),
        simulation([5]),
        simulation(None),
        7,
        llm_args=args,
        api_key=SECRET,
    )
    content["info"]["user_info"]["llm_args"] = args
    content["info"]["environment_info"]["key"] = SECRET
    for item in parse(content):
        assert SECRET not in json.dumps(msgspec.to_builtins(item), default=str)


def test_no_problem_names_an_absolute_path() -> None:
    for item in parse(tau2(*(bad for bad, _ in BAD), simulation(CONVERSATION))):
        assert NAME not in (item.problem or "")


def test_grades_make_no_difference() -> None:
    for grade in (None, {"reward": 0.0}, {"reward": 1.0, "db_check": {"db_match": True}}, "A+"):
        found = one(reward_info=grade)
        assert msgspec.structs.replace(found, origin=one().origin) == one()
        assert "reward" not in json.dumps(msgspec.to_builtins(found), default=str)


def test_without_info_about_the_agent_the_model_is_unknown() -> None:
    (found,) = parse({"info": {}, "simulations": [simulation(CONVERSATION)]})
    assert (found.model, found.name, found.agents, found.metadata) == (
        None,
        None,
        (),
        {"seed": 300},
    )


def test_a_file_as_the_benchmark_writes_it() -> None:
    """The whole shape in a file, for reading beside the format."""
    found = parse((DATA / "tau2" / "two_simulations.json").read_bytes())
    assert [
        (s.trace_id, s.task, s.trial, s.ended, s.cost_usd, s.tokens.total, len(s.tool_calls))
        for s in found
    ] == [
        ("b0c1", "mock/create_task_1", 0, "user_stop", 0.0021, 642, 1),
        ("b0c2", "mock/update_task_1", 0, "max_steps", None, None, 2),
    ]
