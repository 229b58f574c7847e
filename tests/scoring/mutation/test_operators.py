"""Each operator on a small trace: what comes out, made by hand."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.scoring.matching import any_glob
from benchmark_assets.scoring.mutation.operators import (
    _NONE,
    FAILURE,
    OPERATORS,
    another_type,
    another_value,
    example_of,
    mutants,
)
from tests.scoring.build import call, contract, trace
from tests.scoring.mutation.scenes import made, names, scene
from tests.scoring.values import json_values, texts

LOOK = call("get_order", {"id": "1842"})
ASK = call("ask_user", {"question": "Shall I?"})
PAY = call("refund_payment", {"id": "1842", "amount": {"value": 5}})
ASKED = {"text": "Shall I?", "before_call": 2, "question": True}
DONE = {"text": "Done.", "before_call": 3}


def _refund(**fields: Any) -> Any:
    given = {
        "tool_calls": [LOOK, ASK, PAY],
        "messages": [ASKED, DONE],
        "final_answer": "Done.",
        "ended": "stop",
        "ended_normally": True,
    }
    return trace(**{**given, **fields})


def test_every_operator_says_what_it_does_and_has_a_name_of_its_own() -> None:
    assert len({operator.name for operator in OPERATORS}) == len(OPERATORS)
    assert all(operator.does.endswith(".") for operator in OPERATORS)


def test_the_question_is_dropped_with_the_call_that_puts_it() -> None:
    (mutant,) = made("drop the question", scene(_refund()))
    assert names(mutant.trace) == ["get_order", "refund_payment"]
    assert [m.text for m in mutant.trace.messages] == ["Done."]
    assert mutant.dropped == (1,)


def test_a_question_that_is_just_said_is_dropped() -> None:
    said = {"text": "Really?", "before_call": 1, "question": True}
    (mutant,) = made("drop the question", scene(_refund(tool_calls=[LOOK, PAY], messages=[said])))
    assert names(mutant.trace) == ["get_order", "refund_payment"]
    assert mutant.trace.messages == ()


def test_of_several_questions_all_are_dropped() -> None:
    said = {"text": "Really?", "before_call": 1, "question": True}
    (mutant,) = made("drop the question", scene(_refund(messages=[said, ASKED, DONE])))
    assert [m.text for m in mutant.trace.messages] == ["Done."]


def test_a_question_that_is_only_known_to_have_been_asked_is_dropped() -> None:
    of = _refund(tool_calls=[LOOK, PAY], messages=[], asked_clarification=True)
    (mutant,) = made("drop the question", scene(of))
    assert mutant.trace.asked_clarification is False


def test_where_nothing_is_written_what_is_just_said_is_no_question_of_a_contract() -> None:
    said = {"text": "Really?", "before_call": 1, "question": True}
    assert made("drop the question", scene(_refund(tool_calls=[LOOK], messages=[said]))) == []
    assert made("drop the question", scene(_refund(tool_calls=[LOOK, PAY], messages=[]))) == []
    assert len(made("drop the question", scene(_refund(tool_calls=[LOOK, ASK])))) == 1


def test_the_question_comes_after_the_write() -> None:
    (mutant,) = made("ask after the write", scene(_refund()))
    assert names(mutant.trace) == ["get_order", "refund_payment", "ask_user"]
    assert [(m.text, m.before_call) for m in mutant.trace.messages] == [
        ("Shall I?", 3),
        ("Done.", 3),
    ]
    said = {"text": "Really?", "before_call": 1, "question": True}
    (mutant,) = made("ask after the write", scene(_refund(tool_calls=[LOOK, PAY], messages=[said])))
    assert [m.before_call for m in mutant.trace.questions] == [2]


def test_without_a_write_nothing_can_come_after_it() -> None:
    assert made("ask after the write", scene(_refund(tool_calls=[LOOK, ASK]))) == []


def test_calls_are_dropped_swapped_and_repeated() -> None:
    of = scene(_refund(messages=[]))
    assert [names(m.trace) for m in made("drop a call", of)] == [
        ["ask_user", "refund_payment"],
        ["get_order", "refund_payment"],
        ["get_order", "ask_user"],
    ]
    assert [names(m.trace) for m in made("swap neighbours", of)] == [
        ["ask_user", "get_order", "refund_payment"],
        ["get_order", "refund_payment", "ask_user"],
    ]
    assert [names(m.trace) for m in made("repeat a call", of)] == [
        ["get_order", "get_order", "ask_user", "refund_payment"],
        ["get_order", "ask_user", "ask_user", "refund_payment"],
        ["get_order", "ask_user", "refund_payment", "refund_payment"],
    ]


def test_calls_of_one_tool_are_swapped_only_if_they_changed_one_file() -> None:
    write = [call("write_file", {"path": "f", "n": n}) for n in (1, 2)]
    files = [{"path": "f", "operation": "write", "call": n} for n in (0, 1)]
    assert made("swap neighbours", scene(trace(tool_calls=write))) == []
    (mutant,) = made("swap neighbours", scene(trace(tool_calls=write, files=files)))
    assert [c.arguments["n"] for c in mutant.trace.tool_calls] == [2, 1]


def test_the_run_ends_early_and_abnormally() -> None:
    early = made("end early", scene(_refund()))
    assert [names(m.trace) for m in early] == [[], ["get_order"], ["get_order", "ask_user"]]
    assert {m.trace.final_answer for m in early} == {"Done."}
    stopped, crashed = made("end abnormally", scene(_refund()))
    assert (stopped.trace.ended, stopped.trace.ended_normally) == ("max_steps", False)
    assert stopped.trace.error is None
    assert crashed.trace.error == FAILURE
    any_end = contract(ends_with=["max_*"])
    assert made("end abnormally", scene(_refund(), any_end))[0].trace.ended == "aborted"


def test_each_forbidden_tool_is_called() -> None:
    under = contract(tools={"forbidden": ["charge_card", "delete_*"]})
    found = made("insert a forbidden call", scene(_refund(), under))
    added = [m.trace.tool_calls[m.added or 0].name for m in found]
    assert added == ["charge_card", "delete_something"]
    assert all(len(m.trace.tool_calls) == 4 for m in found)
    assert made("insert a forbidden call", scene(_refund())) == []


def test_what_wrote_writes_again_what_could_does_and_so_does_an_unknown() -> None:
    under = contract(trajectory={"extra": "reads_only", "writes": ["refund_*", "charge_?ard"]})
    found = made("insert a write", scene(_refund(), under))
    added = [m.trace.tool_calls[m.added or 0] for m in found]
    assert [c.name for c in added] == ["refund_payment", "charge_xard", "delete_everything"]
    assert added[0].arguments != PAY["arguments"]
    assert set(added[0].arguments) == set(PAY["arguments"])


def test_something_unknown_is_read() -> None:
    (mutant,) = made("insert a read", scene(_refund()))
    assert sorted(names(mutant.trace)) == sorted(
        ["get_order", "ask_user", "refund_payment", "read_something_else"]
    )


def test_each_call_fails() -> None:
    found = made("fail a call", scene(_refund()))
    assert [[c.status for c in m.trace.tool_calls] for m in found] == [
        ["error", None, None],
        [None, "error", None],
        [None, None, "error"],
    ]


def test_arguments_are_changed_retyped_removed_and_added() -> None:
    of = scene(trace(tool_calls=[PAY]))

    def arguments(operator: str) -> list[Any]:
        return [m.trace.tool_calls[0].arguments for m in made(operator, of)]

    changed = arguments("change a value")
    assert [a["amount"] for a in changed] == [{"value": 5}, {"value": 6}]
    assert changed[0]["id"] != "1842"
    assert len(changed[0]["id"]) == 4
    assert changed[0]["id"].isdigit()
    assert arguments("change a type") == [
        {"id": 1842, "amount": {"value": 5}},
        {"id": "1842", "amount": [{"value": 5}]},
    ]
    assert arguments("drop an argument") == [{"amount": {"value": 5}}, {"id": "1842"}]
    assert arguments("add an argument") == [{**PAY["arguments"], "something_else": "x"}]


def test_a_skill_is_not_loaded_or_another_is() -> None:
    load = call("load_skill", {"name": "binding"}, status="ok")
    of = scene(trace(tool_calls=[load], skills=[{"name": "binding", "call": 0}]))
    (skipped,) = made("skip a skill", of)
    assert (skipped.trace.tool_calls, skipped.trace.skills) == ((), ())
    instead, besides = made("load another skill", of)
    assert [s.name for s in instead.trace.skills] == ["something_else"]
    assert instead.trace.tool_calls[0].arguments == {"name": "something_else"}
    assert [s.name for s in besides.trace.skills] == ["binding", "something_else"]


def test_a_skill_that_no_call_loaded_is_one_too() -> None:
    of = scene(trace(skills=[{"name": "binding"}]))
    assert [m.trace.skills for m in made("skip a skill", of)] == [()]
    found = [[s.name for s in m.trace.skills] for m in made("load another skill", of)]
    assert found == [["something_else"], ["binding", "something_else"]]


def test_a_file_is_not_written_or_is_empty() -> None:
    of = scene(
        trace(
            tool_calls=[call("write_file", {"path": "p", "content": "body"}), call("note")],
            files=[
                {"path": "p", "operation": "write", "content": "body", "call": 0},
                {"path": "q", "operation": "read", "content": "seen", "call": 1},
            ],
        )
    )
    (dropped,) = made("skip a file change", of)
    assert names(dropped.trace) == ["note"]
    assert [e.path for e in dropped.trace.files] == ["q"]
    (emptied,) = made("empty a file", of)
    assert [e.content for e in emptied.trace.files] == ["", "seen"]
    assert emptied.trace.tool_calls[0].arguments == {"path": "p", "content": ""}


FINAL = {"contains": ["refund 1628"], "not_contains": ["sorry"]}


def test_what_is_said_in_the_end() -> None:
    under = contract(final=FINAL)
    of = scene(_refund(final_answer="Your refund $1,628 is on its way.", messages=[]), under)
    assert [m.trace.final_answer for m in made("say nothing", of)] == [None]
    assert [m.trace.final_answer for m in made("say something else", of)] == ["Something else."]
    assert [m.trace.final_answer for m in made("say what must not be", of)] == [
        "Your refund $1,628 is on its way. sorry"
    ]


def test_a_text_that_is_wanted_is_withheld_wherever_it_is_said() -> None:
    under = contract(final={"contains": ["1628"], "scope": "conversation"})
    messages = [
        {"text": "It is $1,628.", "before_call": 0},
        {"text": "1628 done", "before_call": 3},
    ]
    of = scene(_refund(final_answer="1628 done", messages=messages), under)
    (mutant,) = made("withhold a text", of)
    assert [m.text for m in mutant.trace.messages] == ["It is", "done"]
    assert mutant.trace.final_answer == "done"


def test_the_final_payload_is_corrupted() -> None:
    of = scene(_refund(final_answer='{"status": "ok", "lines": [{"n": 1}]}', messages=[]))

    def payloads(operator: str) -> list[str | None]:
        return [m.trace.final_answer for m in made(operator, of)]

    assert payloads("drop a payload field") == [
        '{"lines": [{"n": 1}]}',
        '{"status": "ok"}',
        '{"status": "ok", "lines": [{}]}',
    ]
    assert payloads("retype a payload field") == [
        '{"status": ["ok"], "lines": [{"n": 1}]}',
        '{"status": "ok", "lines": {"items": [{"n": 1}]}}',
        '{"status": "ok", "lines": [{"n": "1"}]}',
    ]
    assert payloads("change a payload value")[1] == '{"status": "ok", "lines": [{"n": 2}]}'
    assert payloads("change a payload value")[0] in (
        '{"status": "pk", "lines": [{"n": 1}]}',
        '{"status": "ol", "lines": [{"n": 1}]}',
    )


def test_a_text_is_no_payload() -> None:
    for operator in ("drop a payload field", "retype a payload field", "change a payload value"):
        assert made(operator, scene(_refund())) == []
        assert made(operator, scene(_refund(final_answer='"ok"'))) == []


def test_each_limit_is_passed() -> None:
    under = contract(
        budget={
            "max_steps": 2,
            "max_tool_calls": 4,
            "max_tokens": 100,
            "max_cost_usd": 1.0,
            "max_duration_s": 2.0,
            "max_retries": 1,
        }
    )
    found = [m.trace for m in made("exceed the budget", scene(_refund(), under))]
    steps, calls, retries, tokens, cost, duration = found
    assert len(steps.generations) == 3
    assert len(calls.tool_calls) == 5
    assert len({str(c.arguments) for c in calls.tool_calls[3:]}) == 2
    again = [c.arguments for c in retries.tool_calls[3:]]
    assert len(again) == 3
    assert again.count(again[0]) == 3
    assert tokens.tokens.total == 101
    assert cost.cost_usd is not None
    assert cost.cost_usd > 1.0
    assert duration.duration_ms is not None
    assert duration.duration_ms > 2000
    assert made("exceed the budget", scene(_refund())) == []


def test_a_mutant_that_two_operators_make_is_the_first_ones() -> None:
    found = list(mutants(scene(_refund())))
    asked = [
        operator.name for operator, m in found if names(m.trace) == ["get_order", "refund_payment"]
    ]
    assert asked == ["drop the question"]


def test_the_seed_decides_what_is_drawn_and_nothing_else_does() -> None:
    first = list(mutants(scene(_refund())))
    assert list(mutants(scene(_refund()))) == first
    seeds = [list(mutants(scene(_refund(), seed=seed))) for seed in range(5)]
    assert any(other != first for other in seeds)
    assert {len(other) for other in seeds} <= {len(first), len(first) - 1, len(first) + 1}


@given(json_values(), st.integers(0, 9))
def test_another_value_is_another_of_the_same_type(value: Any, seed: int) -> None:
    other = another_value(value, random.Random(seed))
    if value is None:
        assert other is _NONE
    elif isinstance(value, int | float) and not isinstance(value, bool):
        assert other != value
    else:
        assert type(other) is type(value)
        assert other != value


@given(json_values())
def test_another_type_is_another(value: Any) -> None:
    assert type(another_type(value)) is not type(value)


@given(texts)
def test_an_example_of_a_name_is_the_name(name: str) -> None:
    if not set(name) & set("*?[]"):
        assert example_of(name) == name


@pytest.mark.parametrize("glob", ["*", "delete_*", "a?b*", "[xy]_file", "mcp__*__write_*"])
def test_an_example_fits_its_glob(glob: str) -> None:
    name = example_of(glob)
    assert name is not None
    assert any_glob([glob])(name)


def test_a_glob_that_nothing_obvious_fits_has_no_example() -> None:
    assert example_of("[!!]") is None
