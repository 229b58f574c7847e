"""ADK eval sets as fixtures: every published file, each form, and what is wrong with a broken one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmark_assets.adapters.benchmarks.adk import (
    cases_of,
    fixtures_of,
    golden_trace_of,
    is_eval_set,
)
from benchmark_assets.cli.import_tasks import command
from benchmark_assets.model.problem import InputError
from tests.adapters.test_formats import ODD, changed, places
from tests.golden.conformance import ADK_GOLDEN, HELM, HELM_SET, Expected, mutated
from tests.golden.oracle import failing
from tests.real_data import REAL, needs_real_data

FILES = {f"adk-golden/{name}": cases for name, cases in ADK_GOLDEN.items()} | {HELM_SET: [HELM]}


def turn(*calls: Any, user: str = "Do it.", answer: str | None = "Done.") -> dict[str, Any]:
    return {
        "user_content": {"role": "user", "parts": [{"text": user}]},
        "final_response": {"role": "model", "parts": [{"text": answer}]},
        "intermediate_data": {"tool_uses": [{"name": n, "args": a} for n, a in calls]},
    }


def eval_set(*turns: Any, eval_id: str = "a", **case: Any) -> dict[str, Any]:
    return {
        "eval_set_id": "s",
        "eval_cases": [{"eval_id": eval_id, "conversation": [*turns], **case}],
    }


@needs_real_data
def test_every_published_file_is_known() -> None:
    assert {path.name for path in (REAL / "adk-golden").iterdir()} == set(ADK_GOLDEN)


@needs_real_data
@pytest.mark.parametrize("name", FILES)
def test_a_published_file_is_read_as_it_is_written(name: str) -> None:
    data = json.loads((REAL / name).read_bytes())
    assert is_eval_set(data)
    found = [
        Expected(
            case.fixture_id,
            [said.user for said in case.turns],
            [(call.name, call.arguments) for call in case.calls],
            case.turns[-1].answer,
            case.state or None,
        )
        for case in cases_of(data, Path(name).name)
    ]
    assert found == FILES[name]


@needs_real_data
@pytest.mark.parametrize("name", FILES)
def test_a_published_case_passes_on_its_own_path(name: str) -> None:
    data = json.loads((REAL / name).read_bytes())
    cases, fixtures = cases_of(data, "x"), fixtures_of(data, "x")
    for case, fixture in zip(cases, fixtures, strict=True):
        assert failing(fixture, golden_trace_of(case)) == set()


@needs_real_data
@pytest.mark.parametrize("name", FILES)
def test_a_published_case_fails_on_every_mutation_of_its_path(name: str) -> None:
    data = json.loads((REAL / name).read_bytes())
    for case, fixture in zip(cases_of(data, "x"), fixtures_of(data, "x"), strict=True):
        found = dict(mutated(fixture, golden_trace_of(case)))
        assert len(found) >= (12 if any(call.arguments for call in case.calls) else 3), found.keys()
        assert [kind for kind, trace in found.items() if not failing(fixture, trace)] == []


def test_a_conversation_is_one_fixture() -> None:
    data = eval_set(
        turn(("look", {"id": 1}), user="First."),
        turn(("look", {"id": 1}), ("act", {}), user="Second.", answer="All\n\n  is done. \n"),
        session_input={"app_name": "x", "user_id": "u", "state": {"k": 1}},
    )
    assert fixtures_of(data) == [
        {
            "id": "a",
            "version": "1",
            "comment": 'ADK eval case a; its session starts with {"k":1}',
            "input": {"user": "First.", "turns": ["Second."]},
            "expect": {
                "allowed_paths": [
                    [
                        {"tool": "look", "args": {"id": 1}, "args_mode": "exact"},
                        {"tool": "look", "args": {"id": 1}, "args_mode": "exact"},
                        {"tool": "act", "args": {}, "args_mode": "exact"},
                    ]
                ],
                "contains": ["All", "is done."],
            },
        }
    ]


def test_words_can_be_left_out() -> None:
    (fixture,) = fixtures_of(eval_set(turn()), answers=False)
    assert fixture["expect"] == {"allowed_paths": [[]]}


def test_its_golden_trace_has_its_calls_and_its_answer() -> None:
    (case,) = cases_of(eval_set(turn(("look", {"id": 1}))))
    assert golden_trace_of(case) == {
        "fixture": "a",
        "input": {"user": "Do it."},
        "tools": [{"name": "look", "arguments": {"id": 1}}],
        "asked_clarification": False,
        "questions": [],
        "final": {"answer": "Done."},
    }


def test_without_a_reference_answer_nothing_must_be_said() -> None:
    (case,) = cases_of(eval_set(turn(answer=None)))
    assert golden_trace_of(case)["final"] is None
    assert "contains" not in fixtures_of(eval_set(turn(answer=None)))[0]["expect"]


def test_an_argument_that_looks_like_a_matcher_is_meant_as_it_stands() -> None:
    (fixture,) = fixtures_of(eval_set(turn(("find", {"q": {"regex": "a"}, "n": [1]}))))
    ((step,),) = fixture["expect"]["allowed_paths"]
    assert step["args"] == {"q": {"literal": {"regex": "a"}}, "n": [1]}


@pytest.mark.parametrize(
    "data",
    [
        {
            "evalSetId": "s",
            "evalCases": [
                {
                    "evalId": "a",
                    "conversation": [
                        {
                            "userContent": {"parts": [{"text": "Do it."}]},
                            "finalResponse": {"parts": [{"text": "Done."}]},
                            "intermediateData": {"toolUses": [{"name": "look", "args": {"id": 1}}]},
                        }
                    ],
                }
            ],
        },
        eval_set(
            {
                "user_content": {"parts": [{"text": "Do it."}]},
                "final_response": {
                    "parts": [{"text": "hm", "thought": True}, {"text": "Done."}, {"text": None}]
                },
                "intermediate_data": {
                    "invocation_events": [
                        {"author": "x", "content": {"parts": [{"text": "let me see"}]}},
                        {
                            "author": "x",
                            "content": {
                                "parts": [{"function_call": {"name": "look", "args": {"id": 1}}}]
                            },
                        },
                        {"author": "x"},
                    ]
                },
            }
        ),
        [
            {
                "name": "a",
                "data": [
                    {
                        "query": "Do it.",
                        "expected_tool_use": [{"tool_name": "look", "tool_input": {"id": 1}}],
                        "reference": "Done.",
                    }
                ],
                "initial_session": {"state": {}, "app_name": "x", "user_id": "u"},
            }
        ],
        [
            {
                "query": "Do it.",
                "expected_tool_use": [{"tool_name": "look", "tool_input": {"id": 1}}],
                "reference": "Done.",
            }
        ],
    ],
    ids=["camel case", "events", "list of conversations", "list of turns"],
)
def test_all_forms_of_a_case_come_to_the_same(data: Any) -> None:
    assert fixtures_of(data, "a") == fixtures_of(eval_set(turn(("look", {"id": 1}))))


@pytest.mark.parametrize(
    ("name", "fixture_id"),
    [
        ("x/y/order query.test.json", "x-y-order-query"),
        ("a.evalset.json", "a"),
        ("../../etc/passwd", "etc-passwd"),
        ("C:\\runs\\a.json", "C-runs-a"),
        ("…", "case"),
        (".hidden", "hidden"),
    ],
)
def test_a_fixtures_id_is_a_file_name(name: str, fixture_id: str) -> None:
    (fixture,) = fixtures_of(eval_set(turn(), eval_id=name))
    assert fixture["id"] == fixture_id
    assert fixture["comment"] == f"ADK eval case {name}"


def test_cases_without_a_name_are_numbered() -> None:
    data = {"eval_cases": [{"conversation": [turn()]}, {"conversation": [turn()]}]}
    assert [fixture["id"] for fixture in fixtures_of(data, "set.test.json")] == [
        "set.test.json-1",
        "set.test.json-2",
    ]


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        ({}, ["is no ADK eval set"]),
        ([], ["is no ADK eval set"]),
        ([1], ["is no ADK eval set"]),
        ("x", ["is no ADK eval set"]),
        ({"eval_cases": [5]}, ["eval_cases[0].conversation: expected a list of turns"]),
        (
            {"eval_cases": [{"eval_id": "a", "conversation_scenario": {"plan": "x"}}]},
            ["eval_cases[0].conversation_scenario: a simulated user leads to no fixed path"],
        ),
        (
            eval_set({"final_response": None}),
            ["eval_cases[0].conversation[0].user_content: expected what the user said"],
        ),
        (
            eval_set(turn(("", {}), ("x", [1]))),
            [
                "conversation[0].intermediate_data.tool_uses[0].name: expected the name of a tool",
                "conversation[0].intermediate_data.tool_uses[1].args: expected an object",
            ],
        ),
        ([{"query": ""}], ["[0].query: expected what the user said"]),
        (
            [{"query": "x", "expected_tool_use": {"tool_name": "y"}}],
            ["[0].expected_tool_use: expected a list of tool calls"],
        ),
        (
            {"eval_cases": [{"eval_id": "a/b", "conversation": [turn()]}] * 2},
            ["2 cases would be called a-b; rename all but one"],
        ),
    ],
)
def test_all_that_is_wrong_is_said_with_its_place(data: Any, problems: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        cases_of(data, "x", "set.json")
    said = [str(problem) for problem in caught.value.problems]
    assert len(said) == len(problems)
    for text, part in zip(said, problems, strict=True):
        assert text.startswith("set.json: ")
        assert part in text


def test_what_is_odd_anywhere_is_read_or_refused_and_never_crashes() -> None:
    """Each value of a whole eval set in turn replaced by each kind of JSON value."""
    whole = eval_set(turn(("look", {"id": 1})), session_input={"state": {}})
    for place in places(whole):
        for how, odd in [("drop", None), ("double", None), *(("replace", odd) for odd in ODD)]:
            data = changed(whole, place, how, odd)
            try:
                fixtures = fixtures_of(data)
            except InputError:
                continue
            assert all(isinstance(fixture["id"], str) for fixture in fixtures)


def test_the_command_writes_each_fixture_with_its_golden_trace(tmp_path: Path) -> None:
    source = tmp_path / "set.json"
    source.write_text(json.dumps(eval_set(turn(("look", {"id": 1}), answer="Schön."))))
    out = tmp_path / "fixtures"
    done = CliRunner().invoke(command, ["adk", str(source), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in out.iterdir()) == ["a.golden.json", "a.json"]
    data = json.loads(source.read_text())
    (fixture,), (case,) = fixtures_of(data), cases_of(data)
    assert json.loads((out / "a.json").read_text(encoding="utf-8")) == fixture
    assert json.loads((out / "a.golden.json").read_text(encoding="utf-8")) == golden_trace_of(case)


def test_the_command_names_the_file_that_is_none(tmp_path: Path) -> None:
    source = tmp_path / "set.json"
    source.write_text("{}")
    with pytest.raises(InputError, match=r"set\.json: is no ADK eval set"):
        CliRunner().invoke(
            command, ["adk", str(source), "--out", str(tmp_path)], catch_exceptions=False
        )
