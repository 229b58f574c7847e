"""One trace as plugins look at it: made once, and searched as people would search it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from benchmark_assets.adapters.harness_files import load_harnesses
from benchmark_assets.scoring.evidence import Evidence, call_text
from tests.scoring.build import call, trace
from tests.scoring.values import json_values, texts

HARNESSES = load_harnesses().profiles


@pytest.mark.parametrize(
    "text",
    [
        "getVacation",
        "Vacation",
        '"id": 7',
        "7",
        'say "hi"',
        "line one\nline two",
        "key",
        "Größe",
        "boom",
        "in a list",
    ],
)
def test_a_text_is_found_wherever_a_call_says_it(text: str) -> None:
    said = trace(
        tool_calls=[
            call("a", {"q": "x"}),
            call(
                "b",
                {"key": 'we say "hi" there', "deep": [{"operation": "getVacation"}], "id": 7},
                result=["Größe", {"text": "line one\nline two", "more": ["in a list"]}],
                error="boom",
            ),
        ]
    )
    assert Evidence(said).mention(text) == 1


@pytest.mark.parametrize("text", ["GETVACATION", "tool_b", "the prompt", "the answer", "model"])
def test_what_no_call_says_is_not_found(text: str) -> None:
    said = trace(
        prompt="the prompt",
        final_answer="the answer",
        model="model",
        tool_calls=[call("tool_b", {"q": "getVacation"})],
    )
    assert Evidence(said).mention(text) is None


def test_the_first_call_that_says_it_is_given() -> None:
    said = trace(tool_calls=[call("a"), call("b", result="x"), call("c", {"q": "x"})])
    assert Evidence(said).mention("x") == 1


@given(json_values(), json_values(), texts)
def test_every_text_in_a_call_is_found_as_it_is(arguments: Any, result: Any, error: str) -> None:
    (made,) = trace(tool_calls=[call("a", arguments, result=result, error=error)]).tool_calls
    said = call_text(made)

    def leaves(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [*value, *(leaf for item in value.values() for leaf in leaves(item))]
        if isinstance(value, list):
            return [leaf for item in value for leaf in leaves(item)]
        return [value] if isinstance(value, str) else []

    assert all(leaf in said for leaf in (*leaves(arguments), *leaves(result), error))


def test_what_calls_did_is_read_once_a_harness() -> None:
    evidence = Evidence(trace(tool_calls=[call("load_skill", {"skill": "x"})]), HARNESSES)
    assert evidence.activity() is evidence.activity()
    assert [skill.name for skill in evidence.activity().skills] == ["x"]
    assert evidence.activity("claude-code").skills == ()
    assert evidence.activity("claude-code") is evidence.activity("claude-code")
    with pytest.raises(ValueError, match="no harness profile is called 'nope'"):
        evidence.activity("nope")
