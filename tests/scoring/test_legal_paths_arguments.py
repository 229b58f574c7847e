"""Steps that are told apart by their arguments, against a matcher that tries everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.model.contract import LegalPath, Order, PathStep
from benchmark_assets.model.trace import ToolCall
from benchmark_assets.scoring.calls import succeeded
from benchmark_assets.scoring.legal_paths import divergence, follow

steps = st.builds(
    PathStep,
    tool=st.sampled_from("ab"),
    args=st.sampled_from([{}, {"n": 1}, {"n": 2}, {"n": {"one_of": [1, 2]}}]),
    optional=st.booleans(),
    repeat=st.booleans(),
)
calls = st.builds(
    ToolCall,
    name=st.sampled_from("abc"),
    arguments=st.sampled_from([{"n": 1}, {"n": 2}, {"n": 3}]),
    error=st.sampled_from([None, None, None, "x"]),
)


def meets(step: PathStep, call: ToolCall) -> bool:
    if step.tool != call.name:
        return False
    wanted = step.args.get("n")
    n = call.arguments["n"]
    return wanted is None or n == wanted or (isinstance(wanted, dict) and n in wanted["one_of"])


def in_turn(path: Sequence[PathStep], made: Sequence[ToolCall], *, gaps: bool) -> bool:
    """Whether calls are the steps in order, with others between if `gaps`."""
    if not path:
        return gaps or not made
    step, rest = path[0], path[1:]
    if step.optional and in_turn(rest, made, gaps=gaps):
        return True
    if not made:
        return False
    if meets(step, made[0]):
        if in_turn(rest, made[1:], gaps=gaps):
            return True
        once_more = PathStep(tool=step.tool, args=step.args, optional=False, repeat=True)
        if step.repeat and in_turn([once_more, *rest], made[1:], gaps=gaps):
            return True
    return gaps and in_turn(path, made[1:], gaps=gaps)


def at_will(
    path: Sequence[PathStep], made: Sequence[ToolCall], *, all_steps: bool, all_calls: bool
) -> bool:
    """Whether calls can be given to steps, each step to one call (or more, if it repeats)."""

    def give(index: int, counts: tuple[int, ...]) -> bool:
        if index == len(made):
            return not all_steps or all(
                count or step.optional for count, step in zip(counts, path, strict=True)
            )
        for number, step in enumerate(path):
            if meets(step, made[index]) and (step.repeat or not counts[number]):
                more = (*counts[:number], counts[number] + 1, *counts[number + 1 :])
                if give(index + 1, more):
                    return True
        return not all_calls and give(index + 1, counts)

    return give(0, (0,) * len(path))


def fits(path: Sequence[PathStep], made: Sequence[ToolCall], order: Order) -> bool:
    good = [call for call in made if succeeded(call)]
    if order == "exact":
        return len(good) == len(made) and in_turn(path, made, gaps=False)
    if order == "in_order":
        return in_turn(path, good, gaps=True)
    if order == "unordered":
        whole = at_will(path, made, all_steps=True, all_calls=True)
        return len(good) == len(made) and whole
    if order == "subset":
        known = all(any(meets(step, call) for step in path) for call in made)
        return known and at_will(path, good, all_steps=False, all_calls=True)
    return at_will(path, good, all_steps=True, all_calls=False)


@given(st.lists(steps, max_size=4), st.lists(calls, max_size=5), st.sampled_from(get_args(Order)))
def test_calls_fit_a_path_just_if_some_way_of_taking_them_does(
    path: list[PathStep], made: list[ToolCall], order: Order
) -> None:
    used = follow(path, made, order)
    assert (used is not None) == fits(path, made, order)
    if used is not None:
        assert all(any(meets(step, made[i]) for step in path) for i in used)
        if order in ("exact", "unordered"):
            assert used == set(range(len(made)))
        return
    found = divergence(LegalPath(path=tuple(path)), made, order)
    assert found.reason
    assert 0 <= found.call <= len(made)
    assert 0 <= found.similarity <= 1


def two(*numbers: int) -> list[ToolCall]:
    return [ToolCall(name="book", arguments={"seat": number}) for number in numbers]


FIRST_THEN_SECOND = [PathStep(tool="book", args={"seat": n}) for n in (1, 2)]


@pytest.mark.parametrize("order", ["exact", "in_order"])
def test_two_calls_of_one_tool_the_wrong_way_round(order: Order) -> None:
    assert follow(FIRST_THEN_SECOND, two(1, 2), order) is not None
    assert follow(FIRST_THEN_SECOND, two(2, 1), order) is None


@pytest.mark.parametrize("order", ["any_order", "unordered", "subset", "superset"])
def test_where_the_order_is_free_each_step_has_a_call_of_its_own(order: Order) -> None:
    assert follow(FIRST_THEN_SECOND, two(2, 1), order) == {0, 1}
    assert follow(FIRST_THEN_SECOND, two(1, 1), order) is None


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ("exact", "step 1, book: args.seat is 2, expected 1"),
        ("in_order", 'book({"seat": 2}) came before book({"seat": 1}), expected after'),
    ],
)
def test_the_arguments_that_are_off_are_named(order: Order, reason: str) -> None:
    path = LegalPath(path=tuple(FIRST_THEN_SECOND))
    assert divergence(path, two(2, 1), order).reason == reason


def test_a_step_that_no_call_is_says_what_came_nearest() -> None:
    path = LegalPath(path=tuple(FIRST_THEN_SECOND))
    found = divergence(path, two(1, 3), "any_order")
    assert found.reason == 'book({"seat": 2}) is missing: in call 1 args.seat is 1, expected 2'
    found = divergence(path, two(1, 2, 3), "unordered")
    assert found.reason == "book (call 3) is no step that is left: args.seat is 3, expected 1"
