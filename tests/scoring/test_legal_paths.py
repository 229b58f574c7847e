"""Fitting calls to paths, against a matcher that enumerates all that a path allows.

The other matcher shares nothing with the one that is tested: regular expressions over the names
of tools, one letter each, and all sequences that a short path stands for, written out.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmark_assets.model.contract import LegalPath, Order, PathStep
from benchmark_assets.model.trace import ToolCall
from benchmark_assets.scoring import legal_paths
from benchmark_assets.scoring.legal_paths import (
    Aligned,
    divergence,
    follow,
    path_hash,
    show_path,
    similarity,
)

ORDERS: tuple[Order, ...] = get_args(Order)
MOST_CALLS = 5

steps_of = st.lists(
    st.builds(PathStep, tool=st.sampled_from("abc"), optional=st.booleans(), repeat=st.booleans()),
    max_size=4,
).map(tuple)
plain_steps = st.lists(
    st.sampled_from("abc").map(lambda tool: PathStep(tool=tool)), max_size=6
).map(tuple)
calls_of = st.lists(
    st.tuples(st.sampled_from("abcx"), st.sampled_from([True, True, True, False])),
    max_size=MOST_CALLS,
).map(lambda made: [call(name, good) for name, good in made])


def call(name: str, good: bool = True) -> ToolCall:
    return ToolCall(name=name, status="ok" if good else "error")


def calls(text: str) -> list[ToolCall]:
    """`ab!c`: a, then b that failed, then c."""
    return [call(name, not bad) for name, bad in re.findall(r"(\w)(!?)", text)]


def steps(text: str) -> tuple[PathStep, ...]:
    """`ab?c+d*`: as in regular expressions."""
    return tuple(
        PathStep(tool=tool, optional=mark in ("?", "*"), repeat=mark in ("+", "*"))
        for tool, mark in re.findall(r"(\w)([?+*]?)", text)
        for mark in [mark or " "]
    )


# The other matcher.


def pattern(path: Sequence[PathStep]) -> str:
    marks = {(False, False): "", (True, False): "?", (False, True): "+", (True, True): "*"}
    return "".join(step.tool + marks[step.optional, step.repeat] for step in path)


def sequences(path: Sequence[PathStep], longest: int) -> Iterator[str]:
    """All sequences of calls that a path stands for, up to `longest` calls a step."""
    counts = [
        range(0 if step.optional else 1, (longest if step.repeat else 1) + 1) for step in path
    ]
    for many in itertools.product(*counts):
        yield "".join(step.tool * number for step, number in zip(path, many, strict=True))


def parts(found: Sequence[ToolCall]) -> Iterator[tuple[int, ...]]:
    """All choices among the calls that succeeded, in their order."""
    good = [index for index, made in enumerate(found) if made.status == "ok"]
    for size in range(len(good) + 1):
        yield from itertools.combinations(good, size)


def fits(path: Sequence[PathStep], found: Sequence[ToolCall], order: Order) -> int | None:
    """How many calls are on the path at most; None if the calls do not fit it."""
    names = "".join(made.name for made in found)
    all_good = all(made.status == "ok" for made in found)
    good = Counter(made.name for made in found if made.status == "ok")
    allowed = [Counter(text) for text in sequences(path, MOST_CALLS)]
    if order == "exact":
        return len(found) if all_good and re.fullmatch(pattern(path), names) else None
    if order == "in_order":
        taken = [
            len(part)
            for part in parts(found)
            if re.fullmatch(pattern(path), "".join(names[index] for index in part))
        ]
        return max(taken, default=None)
    if order == "unordered":
        return len(found) if all_good and good in allowed else None
    if order == "subset":
        on_path = set(names) <= {step.tool for step in path}
        within = any(good <= one for one in allowed)
        return good.total() if on_path and within else None
    return max((one.total() for one in allowed if one <= good), default=None)


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=400, deadline=None)
@given(path=steps_of, found=calls_of)
def test_it_agrees_with_the_other_matcher(
    order: Order, path: tuple[PathStep, ...], found: list[ToolCall]
) -> None:
    used = follow(path, found, order)
    most = fits(path, found, order)
    assert (None if used is None else len(used)) == most
    if used is not None:
        assert used <= set(range(len(found)))
        assert all(found[index].status == "ok" for index in used)
    if used is not None and order in ("exact", "in_order"):
        # What is said to be on the path is the path.
        assert re.fullmatch(pattern(path), "".join(found[index].name for index in sorted(used)))


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=300, deadline=None)
@given(path=steps_of, found=calls_of)
def test_calls_that_do_not_fit_are_told_where_and_why(
    order: Order, path: tuple[PathStep, ...], found: list[ToolCall]
) -> None:
    said = divergence(LegalPath(path=path), found, order)
    assert 0 <= said.call <= len(found)
    assert 0 <= said.similarity <= 1
    assert said.diff
    if follow(path, found, order) is None:
        assert said.reason != "the calls do not fit"
    if order == "exact" and follow(path, found, order) is None:
        # Up to there the calls begin the path, all of them successfully.
        begun = "".join(made.name for made in found[: said.call])
        assert any(text.startswith(begun) for text in sequences(path, MOST_CALLS))
        assert all(made.status == "ok" for made in found[: said.call])


def check_aligned(aligned: Sequence[Aligned], found: Sequence[ToolCall]) -> None:
    """Every call is there once, in its order, and said to be what it is."""
    assert [item.call for item in aligned if item.call is not None] == list(range(len(found)))
    for item in aligned:
        assert (item.call is None) == (item.kind == "missing")
        if item.call is not None:
            assert item.name == found[item.call].name
            assert item.kind != "same" or found[item.call].status == "ok"
            assert item.kind != "failed" or found[item.call].status == "error"


@settings(max_examples=400, deadline=None)
@given(path=steps_of, found=calls_of)
def test_an_alignment_has_every_call_and_the_whole_path(
    path: tuple[PathStep, ...], found: list[ToolCall]
) -> None:
    aligned = legal_paths._align(path, found)
    check_aligned(aligned, found)
    walked = "".join(item.name for item in aligned if item.kind != "extra")
    assert re.fullmatch(pattern(path), walked)


@settings(max_examples=400, deadline=None)
@given(path=steps_of, found=calls_of)
def test_pairs_have_every_call_and_no_more_steps_than_there_are(
    path: tuple[PathStep, ...], found: list[ToolCall]
) -> None:
    paired = legal_paths._pair(path, found)
    check_aligned(paired, found)
    same = Counter(item.name for item in paired if item.kind == "same")
    allowed = [Counter(text) for text in sequences(path, MOST_CALLS)]
    assert any(same <= one for one in allowed)
    made = same + Counter(item.name for item in paired if item.kind in ("missing", "failed"))
    # What was made, was tried and is missing is the path at least.
    assert any(one <= made for one in allowed)


def longest_common(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence, by trying all of the shorter."""
    short, long = sorted((one, other), key=len)
    for size in range(len(short), 0, -1):
        for part in itertools.combinations(short, size):
            rest = iter(long)
            if all(name in rest for name in part):
                return size
    return 0


@settings(max_examples=400, deadline=None)
@given(path=plain_steps, found=calls_of)
@example(path=steps("bcda"), found=calls("ab!c!d!"))
def test_similarity_is_the_f1_of_the_longest_common_subsequence(
    path: tuple[PathStep, ...], found: list[ToolCall]
) -> None:
    # A failed call is like no step.
    names = [made.name if made.status == "ok" else "!" for made in found]
    common = longest_common([step.tool for step in path], names)
    total = len(path) + len(found)
    wanted = 2 * common / total if total else 1.0
    assert similarity(legal_paths._align(path, found)) == pytest.approx(wanted)


@pytest.mark.parametrize("order", ["exact", "in_order"])
@settings(max_examples=200, deadline=None)
@given(path=steps_of, found=calls_of)
def test_paths_that_are_too_long_to_align_are_told_where_and_why(
    order: Order, path: tuple[PathStep, ...], found: list[ToolCall]
) -> None:
    whole, legal_paths.ALIGNED_CELLS = legal_paths.ALIGNED_CELLS, -1
    try:
        said = divergence(LegalPath(path=path), found, order)
    finally:
        legal_paths.ALIGNED_CELLS = whole
    if follow(path, found, order) is None:
        assert said.reason != "the calls do not fit"
        assert 0 <= said.call <= len(found)
    if follow(path, found, "exact") is None and order == "exact":
        # The first call that no sequence of the path goes on with, or the end of the calls.
        begun = "".join(made.name for made in found[: said.call])
        more = "".join(made.name for made in found[: said.call + 1])
        all_ = list(sequences(path, MOST_CALLS + 1))
        assert any(text.startswith(begun) for text in all_)
        goes_on = said.call < len(found) and found[said.call].status == "ok"
        assert not (goes_on and any(text.startswith(more) for text in all_))


# By hand.


@pytest.mark.parametrize(
    ("path", "made", "order", "call_", "reason", "diff"),
    [
        ("ab", "", "exact", 0, "ended after 0 calls, a is missing", "a ✗ missing, b ✗ missing"),
        ("ab", "ba", "exact", 0, "step 1 is b, expected a", "a ✗ missing, b ✓, a +"),
        ("ab", "aa!b", "exact", 1, "step 2 is a, expected b", "a ✓, a + failed, b ✓"),
        ("ab", "axb", "exact", 1, "step 2 is x, expected b", "a ✓, x +, b ✓"),
        ("ab", "a!b", "exact", 0, "step 1, a, failed: no message", "a ✗ failed, b ✓"),
        ("aba", "aab", "in_order", 1, "a came before b, expected after", None),
        ("abc", "cab", "in_order", 0, "c came before b, expected after", None),
        ("abc", "acx", "in_order", 3, "b is missing", "a ✓, b ✗ missing, c ✓, (x)"),
        ("abc", "ab!c", "in_order", 1, "b never succeeded", "a ✓, b ✗ failed, c ✓"),
        ("abcd", "a", "superset", 1, "b, c, d is missing", None),
        ("ab", "bxa", "unordered", 1, "x (call 2) is not on the path", "b ✓, x +, a ✓"),
        ("a+b?", "bba", "unordered", 1, "b (call 2) is one more than 1", "b ✓, b +, a ✓"),
        ("ab", "a!ax", "subset", 2, "x (call 3) is not on the path", "(a failed), a ✓, x +"),
    ],
)
def test_divergence(
    path: str, made: str, order: Order, call_: int, reason: str, diff: str | None
) -> None:
    said = divergence(LegalPath(path=steps(path)), calls(made), order)
    assert (said.call, said.reason) == (call_, reason)
    if diff is not None:
        assert said.diff == diff


def test_paths_in_words() -> None:
    assert show_path(steps("ab?c+d*")) == "a → [b] → c+ → [d+]"
    assert show_path(()) == "no call"


def test_long_paths() -> None:
    """2,000 calls and 200 steps: aligning is a matter of 400,000 cells, fitting of fewer."""
    names = [f"tool_{number % 10}" for number in range(200)]
    path = tuple(PathStep(tool=name) for name in names)
    every_tenth = [
        call(names[index // 10] if index % 10 == 0 else "other") for index in range(2000)
    ]
    assert follow(path, every_tenth, "in_order") == set(range(0, 2000, 10))
    assert follow(path, every_tenth, "exact") is None
    said = divergence(LegalPath(path=path), every_tenth, "exact")
    assert (said.call, said.reason) == (1, "step 2 is other, expected tool_1")
    assert said.similarity == pytest.approx(2 * 200 / 2200)
    # All steps may be left out or repeated: what makes backtracking matchers explode.
    loose = tuple(PathStep(tool="a", optional=True, repeat=True) for _ in range(200))
    assert follow(loose, [call("a")] * 2000, "exact") == set(range(2000))
    assert follow(loose, [call("a")] * 1999 + [call("b")], "exact") is None
    many = [call("other")] * 20_000
    assert divergence(LegalPath(path=path), many, "exact").reason.startswith("step 1 is other")


def test_the_hash_of_a_path_is_that_of_the_published_format() -> None:
    names = ["get_order", "refund_payment", "überweisen"]
    blob = json.dumps(names, sort_keys=True, separators=(",", ":")).encode()
    assert path_hash(names) == hashlib.sha256(blob).hexdigest()[:16]
    # sha256sum of the two characters `[]`.
    assert path_hash([]) == "4f53cda18c2baa0c"


@pytest.mark.parametrize("module", ["legal_paths", "asking", "golden_path", "calls"])
def test_each_module_may_be_the_first_that_is_imported(module: str) -> None:
    code = f"import benchmark_assets.scoring.{module}"
    subprocess.run([sys.executable, "-c", code], check=True)
