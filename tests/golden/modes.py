"""Tables of how trajectories are matched elsewhere, restated, and what ours makes of each cell.

Belongs here: small pairs of a reference and an actual trajectory, the outcome that each mode of
langchain's `agentevals` and of ADK's `tool_trajectory_avg_score` gives, the outcome here, and for
each difference why. Does not belong here: running either.

Their outcomes follow from their documentation and sources: agentevals compares names, and arguments
as Python values, call by call, the first that fits being taken; `strict` compares messages one by
one, and inside a message calls in any order. ADK compares names and arguments as Python values.
Both look at what was called and not at what came of it.

How their modes are said here: `strict` and `EXACT` are `order: exact`; `unordered`, `subset` and
`superset` have the same names; `IN_ORDER` is `in_order`, `ANY_ORDER` is `any_order`. An argument
mode `exact` is `args_mode: exact`; `superset` (at least the reference's) is `args_mode: subset`
(the listed ones, others are free); `ignore` is `ignore`. Their `subset` (no more than the
reference's) has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
Called = tuple[str, Json]

ORDERS = {
    "strict": "exact",
    "unordered": "unordered",
    "subset": "subset",
    "superset": "superset",
    "EXACT": "exact",
    "IN_ORDER": "in_order",
    "ANY_ORDER": "any_order",
}
"""Their mode → our order; the last three are ADK's."""

ARGS_MODES = {"exact": "exact", "superset": "subset", "ignore": "ignore"}
"""Their argument mode → ours."""


@dataclass(frozen=True)
class Cell:
    """One pair under one mode.

    Attributes:
        name: What the pair shows.
        theirs: Whether it passes there.
        ours: Whether it passes here; None if that mode has no counterpart.
        why: Why ours differs; empty if it does not.
        failed: Indices of calls that failed.
    """

    name: str
    mode: str
    args_mode: str
    reference: tuple[Called, ...]
    actual: tuple[Called, ...]
    theirs: bool
    ours: bool | None
    why: str = ""
    failed: frozenset[int] = frozenset()

    @property
    def cell_id(self) -> str:
        return f"{self.mode}-{self.args_mode}-{self.name}".replace(" ", "-")

    @property
    def fixture(self) -> Json:
        """The fixture that says the reference under this mode."""
        path = [self._step(name, args) for name, args in self.reference]
        expect: Json = {"allowed_paths": [{"path": path, "order": ORDERS[self.mode]}]}
        return {"id": "mode", "input": {"user": "Do it."}, "expect": expect}

    def _step(self, name: str, args: Json) -> Json | str:
        if self.args_mode == "ignore":
            return name
        return {"tool": name, "args": args, "args_mode": ARGS_MODES[self.args_mode]}

    @property
    def trace(self) -> Json:
        """The actual trajectory in the recorder's format."""
        return {
            "tools": [
                {"name": name, "arguments": args}
                | ({"error": "failed"} if i in self.failed else {"result": "ok"})
                for i, (name, args) in enumerate(self.actual)
            ],
            "asked_clarification": False,
            "questions": [],
            "final": {"answer": "done"},
        }


A: Called = ("search", {"q": "x"})
B: Called = ("book", {"id": 1})
C: Called = ("pay", {"id": 1})

MODES = ("strict", "unordered", "subset", "superset", "EXACT", "IN_ORDER", "ANY_ORDER")

PATHS: list[tuple[str, tuple[Called, ...], tuple[Called, ...], str]] = [
    # What the pair shows, the reference, what was called, and whether each of MODES passes.
    ("the same", (A, B), (A, B), "yyyy yyy"),
    ("reordered", (A, B), (B, A), "nyyy nny"),
    ("last missing", (A, B), (A,), "nnyn nnn"),
    ("first missing", (A, B), (B,), "nnyn nnn"),
    ("one more at the end", (A, B), (A, B, C), "nnny nyy"),
    ("one more at the start", (A, B), (C, A, B), "nnny nyy"),
    ("one more between", (A, B), (A, C, B), "nnny nyy"),
    ("one more and reordered", (A, B), (B, C, A), "nnny nny"),
    ("done twice", (A, B), (A, B, B), "nnny nyy"),
    ("done once instead of twice", (A, A, B), (A, B), "nnyn nnn"),
    ("another tool", (A, B), (A, C), "nnnn nnn"),
    ("nothing done", (A, B), (), "nnyn nnn"),
    ("nothing expected or done", (), (), "yyyy yyy"),
    ("nothing expected, one done", (), (A,), "nnny nyy"),
    ("repeated and reordered", (A, B, A), (A, A, B), "nyyy nny"),
    ("reversed, one of three missing", (A, B, C), (C, A), "nnyn nnn"),
]
"""Names alone: arguments are the same throughout."""

UNMEASURED = (
    "where nothing was called nothing was measured, and what was not measured does not pass: that "
    "silence is right is said by a path without steps, or of optional ones in any other order"
)


def path_cells() -> Iterator[Cell]:
    for name, reference, actual, outcomes in PATHS:
        for mode, letter in zip(MODES, outcomes.replace(" ", ""), strict=True):
            theirs = letter == "y"
            silent = mode == "subset" and reference and not actual
            why = UNMEASURED if silent else ""
            yield Cell(name, mode, "ignore", reference, actual, theirs, theirs and not silent, why)


WEATHER: Json = {"city": "SF", "unit": "C"}
GIVEN: dict[str, Json] = {
    "the same arguments": {"unit": "C", "city": "SF"},
    "one argument fewer": {"city": "SF"},
    "one argument more": {"city": "SF", "unit": "C", "days": 3},
    "another value": {"city": "LA", "unit": "C"},
}
"""What a call was given where the reference has `WEATHER`."""

ARGUMENTS: dict[tuple[str, str], str] = {
    # Mode and argument mode → whether each of GIVEN passes there.
    ("strict", "exact"): "ynnn",
    ("strict", "subset"): "yynn",
    ("strict", "superset"): "ynyn",
    ("strict", "ignore"): "yyyy",
    ("unordered", "exact"): "ynnn",
    ("unordered", "subset"): "ynnn",
    ("unordered", "superset"): "ynnn",
    ("unordered", "ignore"): "yyyy",
    ("subset", "exact"): "ynnn",
    ("subset", "subset"): "ynyn",
    ("subset", "superset"): "yynn",
    ("subset", "ignore"): "yyyy",
    ("superset", "exact"): "ynnn",
    ("superset", "subset"): "yynn",
    ("superset", "superset"): "ynyn",
    ("superset", "ignore"): "yyyy",
}

OURS: dict[str, str | None] = {
    "exact": "ynnn",
    "subset": None,
    "superset": "ynyn",
    "ignore": "yyyy",
}
"""Argument mode → whether each of GIVEN passes here, whatever the order."""

NO_SUBSET = (
    "not offered: an argument that may be left out is one that is not listed; what must not be "
    "given besides is said by `exact`"
)
SIDES = (
    "the argument mode says the same whatever the order: there it is applied from both sides in "
    "`unordered`, which makes it exact, and from the other side in `subset`, which turns it round"
)


def argument_cells() -> Iterator[Cell]:
    for (mode, args_mode), outcomes in ARGUMENTS.items():
        mine = OURS[args_mode]
        for index, (name, given) in enumerate(GIVEN.items()):
            theirs = outcomes[index] == "y"
            ours = None if mine is None else mine[index] == "y"
            why = NO_SUBSET if ours is None else SIDES if ours != theirs else ""
            reference, actual = (("weather", WEATHER),), (("weather", given),)
            yield Cell(name, mode, args_mode, reference, actual, theirs, ours, why)


PYTHON = "arguments are JSON: true is not 1 there, though Python holds them for equal"

VALUES: list[tuple[str, Any, Any, bool, bool, str]] = [
    # What is shown, the reference's value, the actual one, whether it passes there and here, why.
    ("a number in another form", 5, 5.0, True, True, ""),
    ("a number as text", 5, "5", False, False, ""),
    ("true for 1", 1, True, True, False, PYTHON),
    ("0 for false", False, 0, True, False, PYTHON),
    ("true for 1 inside a list", [1, 2], [True, 2], True, False, PYTHON),
    ("upper case", "sf", "SF", False, False, ""),
    ("a list in another order", [1, 2], [2, 1], False, False, ""),
    ("keys in another order", {"a": 1, "b": 2}, {"b": 2, "a": 1}, True, True, ""),
    ("one key more inside", {"a": 1}, {"a": 1, "b": 2}, False, False, ""),
    ("null for an empty text", None, "", False, False, ""),
    ("a letter composed otherwise", "\u00e9", "e\u0301", False, False, ""),
    ("a number that no float holds", 2**53 + 1, 2**53, False, False, ""),
]
"""Values of one argument, under `exact`; agentevals and ADK alike."""


def value_cells() -> Iterator[Cell]:
    for name, reference, actual, theirs, ours, why in VALUES:
        for mode in ("strict", "EXACT"):
            pair = (("act", {"x": reference}),), (("act", {"x": actual}),)
            yield Cell(name, mode, "exact", *pair, theirs, ours, why)


FAILED = (
    "a call that failed is no step of a path: what it was to do was not done; there, results are "
    "not looked at"
)
GREEDY = (
    "whether calls fit does not depend on which is tried first: there the loose call takes what "
    "only the strict one could do without"
)


def special_cells() -> Iterator[Cell]:
    for mode in MODES:
        yield Cell(
            *("the last failed", mode, "ignore", (A, B), (A, B)),
            theirs=True,
            ours=False,
            why=FAILED,
            failed=frozenset({1}),
        )
    one, two = ("act", {"n": 1}), ("act", {"n": 2})
    for mode in ("strict", "EXACT", "IN_ORDER"):
        yield Cell(
            *("two calls of one tool, reversed", mode, "exact", (one, two), (two, one)),
            theirs=False,
            ours=False,
        )
    for mode in ("unordered", "superset", "ANY_ORDER"):
        yield Cell(
            *("two calls of one tool, reversed", mode, "exact", (one, two), (two, one)),
            theirs=True,
            ours=True,
        )
    loose: Called = ("act", {})
    pair = (loose, one), (one, loose)
    name = "a loose call before a strict one"
    yield Cell(name, "superset", "superset", *pair, theirs=False, ours=True, why=GREEDY)


def cells() -> list[Cell]:
    """All cells."""
    return [*path_cells(), *argument_cells(), *value_cells(), *special_cells()]


WORDS: list[tuple[str, str, str, str]] = [
    # Differences that no pair of calls can show: what it is, there, here, why.
    (
        "no trace at all",
        "`subset` passes outputs of None; other modes fail or raise",
        "MISSING, and the suite fails",
        "what was not run is not covered",
    ),
    (
        "calls of one message in another order",
        "`strict` passes",
        "`exact` fails",
        "the order of calls is the order in which they were issued, however they are grouped",
    ),
    (
        "the same calls in other messages, or with words between",
        "`strict` fails",
        "`exact` passes",
        "a path is of calls; what is said is demanded under `final`",
    ),
    (
        "several turns",
        "ADK scores each turn and takes the mean",
        "one path over all turns",
        "a mean of 0.9 hides the turn in which the card was charged",
    ),
    (
        "a turn more than expected",
        "ADK compares as many turns as both have",
        "its calls are steps too many",
        "what was done beyond the conversation was done",
    ),
    (
        "fields by name",
        "`tool_args_match_overrides` with a list: a field that both lack is equal",
        "an argument that is listed must be there",
        "what is compared must exist",
    ),
]
