"""What may be written as an expected argument, and what a wrong matcher is told."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmark_assets.adapters.contract_files import parse_contract
from benchmark_assets.model.contract import CallRule
from benchmark_assets.model.matchers import MATCHERS, reads_as_matcher
from benchmark_assets.model.problem import InputError
from tests.scoring.build import act_rule
from tests.scoring.values import json_values

GOOD: dict[str, list[Any]] = {
    "any": [{"any": True}],
    "regex": [{"regex": "^a+$"}, {"regex": ""}],
    "one_of": [{"one_of": [1]}, {"one_of": ["a", None, [1]]}, {"one_of": [{"any": True}]}],
    "unordered": [{"unordered": []}, {"unordered": [1, {"regex": "a"}]}],
    "approx": [{"approx": 1}, {"approx": -1.5, "tol": 0}, {"approx": 0, "tol": 0.1}],
    "contains": [{"contains": "a"}, {"contains": [{"any": True}]}, {"contains": {"a": 1}}],
    "sha256": [{"sha256": "0" * 16}, {"sha256": "abcdef0123456789" * 4}],
    "ignore_case": [{"ignore_case": "A"}, {"ignore_case": ""}],
    "literal": [{"literal": {"any": False}}, {"literal": None}, {"literal": {"regex": "("}}],
}
# What is wrong → (value, part of what is said about it, after the path).
BAD: dict[str, list[tuple[Any, str]]] = {
    "any": [
        ({"any": False}, ".any: only `true` makes sense here"),
        ({"any": 1}, ".any: only `true`"),
        ({"any": None}, ".any: only `true`"),
    ],
    "regex": [
        ({"regex": "("}, ".regex: is not a regular expression: "),
        ({"regex": 5}, ".regex: expected a text"),
        ({"regex": ["a"]}, ".regex: expected a text"),
    ],
    "one_of": [
        ({"one_of": []}, ".one_of: expected a list of at least one"),
        ({"one_of": "ab"}, ".one_of: expected a list of at least one"),
        ({"one_of": [1, {"regex": "["}]}, ".one_of[1].regex: is not a regular expression"),
    ],
    "unordered": [
        ({"unordered": "ab"}, ".unordered: expected a list"),
        ({"unordered": {"a": 1}}, ".unordered: expected a list"),
        ({"unordered": [{"any": 0}]}, ".unordered[0].any: only `true`"),
    ],
    "approx": [
        ({"approx": "1"}, ": approx and tol are numbers, tol not negative"),
        ({"approx": True}, ": approx and tol are numbers"),
        ({"approx": 1, "tol": -0.1}, ": approx and tol are numbers, tol not negative"),
        ({"approx": 1, "tol": "0.1"}, ": approx and tol are numbers"),
        ({"approx": 1, "tol": True}, ": approx and tol are numbers"),
        ({"approx": 1, "tol": None}, ": approx and tol are numbers"),
    ],
    "contains": [
        ({"contains": {"regex": "("}}, ".contains.regex: is not a regular expression"),
        ({"contains": [0, {"any": 1}]}, ".contains[1].any: only `true`"),
    ],
    "sha256": [
        ({"sha256": "0" * 15}, ".sha256: expected 16 to 64 lower-case hex digits"),
        ({"sha256": "0" * 65}, ".sha256: expected 16 to 64"),
        ({"sha256": "ABCDEF0123456789"}, ".sha256: expected 16 to 64 lower-case"),
        ({"sha256": "0" * 16 + "\n"}, ".sha256: expected 16 to 64"),
        ({"sha256": 1234567890123456}, ".sha256: expected 16 to 64"),
    ],
    "ignore_case": [({"ignore_case": 5}, ".ignore_case: expected a text")],
    "literal": [({"literal": 1, "any": True}, ": one matcher at a time, got any, literal")],
    "two": [
        ({"regex": "a", "one_of": ["a"]}, ": one matcher at a time, got one_of, regex"),
        ({"contains": "a", "tol": 1}, ": one matcher at a time, got contains, tol"),
        ({"literal": 5, "tol": 1}, ": one matcher at a time, got literal, tol"),
        ({"approx": 5, "tol": 1, "any": True}, ": one matcher at a time, got any, approx, tol"),
    ],
    "beside": [
        ({"regex": "a", "flags": "i"}, ": flags beside regex: no matcher has that key; for an"),
        ({"regex": "(", "flags": "i"}, ": flags beside regex: "),
        ({"id": 1, "any": True}, ": id beside any: no matcher has that key"),
        ({"contains": "a", "z": 1, "b": {}}, ": b, z beside contains: no matcher has that key"),
        ({"approx": 5, "tolerance": 1}, ": tolerance beside approx: no matcher has that key"),
        ({"one_of": [1], "regex": "a", "k": 1}, ": k beside one_of, regex: no matcher has that"),
    ],
    "nearly": [
        ({"regexp": "^a"}, ": did you mean the matcher 'regex'? For an object with the key"),
        ({"regx": "^a"}, ": did you mean the matcher 'regex'?"),
        ({"oneof": [1]}, ": did you mean the matcher 'one_of'?"),
        ({"one-of": [1]}, ": did you mean the matcher 'one_of'?"),
        ({"unorderd": [1]}, ": did you mean the matcher 'unordered'?"),
        ({"aprox": 1}, ": did you mean the matcher 'approx'?"),
        ({"contain": "a"}, ": did you mean the matcher 'contains'?"),
        ({"sha_256": "0" * 16}, ": did you mean the matcher 'sha256'?"),
        ({"ignorecase": "A"}, ": did you mean the matcher 'ignore_case'?"),
        (
            {"litteral": 1},
            ": did you mean the matcher 'literal'? For an object with the key 'litteral'",
        ),
    ],
}
# Where it may stand, and how its path is spelled.
PLACES: dict[str, Any] = {
    "args.x": lambda value: {"x": value},
    "args.x[1]": lambda value: {"x": [0, value]},
    "args.x.k.l": lambda value: {"x": {"k": {"l": value}}},
    "args.x[0].k[0]": lambda value: {"x": [{"k": [value]}]},
}


def complaint(args: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        act_rule(args=args)
    (error,) = caught.value.errors()
    # The message names the place from here on, so that a loader can find the line.
    assert error["loc"] == ("trajectory", "calls", 0)
    return error["msg"]


def test_every_matcher_has_good_and_bad_examples() -> None:
    assert set(GOOD) == set(MATCHERS)
    assert set(BAD) == {*MATCHERS, "two", "beside", "nearly"}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", [value for values in GOOD.values() for value in values], ids=repr)
def test_a_good_matcher_is_accepted_as_written(value: Any, place: str) -> None:
    args = PLACES[place](value)
    rule = act_rule(args=args).trajectory
    assert rule is not None
    assert rule.calls[0].args == args


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("value", "said"), [pair for pairs in BAD.values() for pair in pairs], ids=repr
)
def test_a_wrong_matcher_is_told_where_and_what(value: Any, said: str, place: str) -> None:
    assert f"{place}{said}" in complaint(PLACES[place](value))


# YAML files with such numbers are refused before: these are contracts made by a program.
@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")], ids=repr)
def test_approx_takes_finite_numbers_only(number: float) -> None:
    for value in ({"approx": number}, {"approx": number, "tol": 1}, {"approx": 1, "tol": number}):
        assert "args.x: approx and tol are numbers, tol not negative" in complaint({"x": value})


def test_all_wrong_matchers_are_told_at_once() -> None:
    message = complaint({"a": {"any": 0}, "b": 1, "c": [{"regex": "("}, {"sha256": "x"}]})
    assert "args.a.any: " in message
    assert "args.c[0].regex: " in message
    assert "args.c[1].sha256: " in message


def test_counts_and_matchers_are_told_at_once() -> None:
    with pytest.raises(ValidationError) as caught:
        act_rule(args={"a": {"any": 0}}, min=2, max=1)
    (error,) = caught.value.errors()
    assert "max 1 is below min 2; args.a.any: " in error["msg"]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "value", [value for values in BAD.values() for value, _ in values], ids=repr
)
def test_the_line_of_a_wrong_matcher_is_found(value: Any, place: str) -> None:
    rule = {"tool": "act", "args": PLACES[place](value)}
    text = yaml.safe_dump(
        {"workflow": "w", "contract_version": "1", "trajectory": {"calls": [rule]}},
        sort_keys=False,
    )
    with pytest.raises(InputError) as caught:
        parse_contract(text.encode(), "c.yaml", "c")
    (problem,) = caught.value.problems
    assert (problem.key or "").startswith(f"trajectory.calls[0].{place}")
    assert problem.line is not None
    # Header, `trajectory:`, `calls:` and the tool take five lines.
    assert problem.line > 5


# Objects that are neither matchers nor nearly so: no key of a matcher, no misspelling of one.
LITERALS: list[Any] = [
    {},
    {"tol": "wide"},
    {"id": 1},
    {"x": {"y": 1}},
    {"anything": True},
    {"text": "a"},
    {"regexp": 1, "id": 2},
    {"flags": "i", "pattern": "^a"},
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("value", LITERALS, ids=repr)
def test_an_object_without_a_key_of_a_matcher_is_a_literal(value: Any, place: str) -> None:
    act_rule(args=PLACES[place](value))
    assert not reads_as_matcher(PLACES[place](value)["x"])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("values", BAD)
def test_what_is_refused_may_be_meant_literally(values: str, place: str) -> None:
    for value, _ in BAD[values]:
        assert reads_as_matcher(PLACES[place](value)["x"])
        act_rule(args=PLACES[place]({"literal": value}))


@pytest.mark.parametrize("name", [*MATCHERS, "tol", "regexp", "contain"])
def test_an_argument_may_be_named_as_a_matcher_is(name: str) -> None:
    act_rule(args={name: 1})
    act_rule(args={name: 1, "id": 2})
    act_rule(args=[name])


@given(json_values())
def test_only_what_reads_as_a_matcher_is_ever_refused(value: Any) -> None:
    if not reads_as_matcher(value):
        act_rule(args={"x": value})


@given(json_values())
def test_anything_may_be_meant_literally(value: Any) -> None:
    act_rule(args={"x": {"literal": value}})


@given(st.dictionaries(st.text(), json_values(), max_size=3))
def test_validation_ends_in_a_rule_or_in_a_located_complaint(args: dict[str, Any]) -> None:
    said = []
    try:
        CallRule(tool="act", args=args)
    except ValidationError as error:
        said = [problem["msg"] for problem in error.errors()]
    assert all("args." in message for message in said)


# The rest of a call rule.


def test_a_list_of_names_asks_for_their_presence() -> None:
    trajectory = act_rule(args=["a", "b"]).trajectory
    assert trajectory is not None
    assert trajectory.calls[0].args == {"a": {"any": True}, "b": {"any": True}}


@pytest.mark.parametrize("args", [[1], ["a", None], "a", 5, [["a"]]])
def test_arguments_are_an_object_or_a_list_of_names(args: Any) -> None:
    with pytest.raises(ValidationError):
        act_rule(args=args)


@pytest.mark.parametrize(
    "rule",
    [
        {"min": 2, "max": 1},
        {"min": -1},
        {"max": -1},
        {"min": 1.5},
        {"min": True},
        {"max": 0},
        {"args_mode": "superset"},
        {"argz": {}},
        {"tool": ""},
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused(rule: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        act_rule(**rule)


@pytest.mark.parametrize(
    "rule",
    [{"min": 0, "max": 0}, {"min": 0, "max": 2}, {"min": 1, "max": 1}, {"max": 3}, {"min": 2}],
)
def test_counts_that_can_be_kept_are_accepted(rule: dict[str, Any]) -> None:
    act_rule(**rule)
