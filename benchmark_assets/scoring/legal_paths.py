"""How calls fit a legal path, and where they leave it.

Belongs here: fitting calls to a path by its order, aligning both, how alike they are. Does not
belong here: what else a contract demands of calls (`plugins/trajectory`).

A call is a *step* only if it succeeded. Under the orders that allow no other calls (`exact`,
`unordered`) a failed call is one that should not be there.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from benchmark_assets.model.contract import LegalPath, Order, PathStep
from benchmark_assets.model.trace import ToolCall
from benchmark_assets.scoring.calls import succeeded
from benchmark_assets.scoring.matching import HASH_DIGITS, args_mismatches, pair_up, show

Steps = Sequence[PathStep]

ALIGNED_CELLS = 1_000_000
"""Largest product of steps and calls that is aligned; beyond it only counts are compared."""


def path_hash(names: Sequence[str]) -> str:
    """First hex digits of SHA-256 over the tool names as a JSON list: equal paths, equal hashes."""
    return _path_hash(tuple(names))


@lru_cache(maxsize=1024)
def _path_hash(names: tuple[str, ...]) -> str:
    blob = json.dumps(names, separators=(",", ":")).encode()
    return hashlib.sha256(blob).hexdigest()[:HASH_DIGITS]


def show_path(steps: Steps) -> str:
    """A path in words: `search+ → get_order → [note] → refund`; `+` may be repeated."""
    return " → ".join(map(_show_step, steps)) or "no call"


def _show_step(step: PathStep) -> str:
    given = "" if step.any_arguments else f"({show(step.args)})"
    text = step.tool + given + ("+" if step.repeat else "")
    return f"[{text}]" if step.optional else text


def is_step(step: PathStep, call: ToolCall) -> bool:
    """Whether a call is a step's: of its tool, with its arguments; it may have failed."""
    return step.tool == call.name and (
        step.any_arguments or not args_mismatches(step.args, step.args_mode, call.arguments)
    )


# Fitting.


class _Needs(NamedTuple):
    """How often a tool may occur on a path; `most` None is without limit."""

    least: int
    most: int | None


def _needs(steps: Steps) -> dict[str, _Needs]:
    found: dict[str, _Needs] = {}
    for step in steps:
        least, most = found.get(step.tool, _Needs(0, 0))
        found[step.tool] = _Needs(
            least + (not step.optional),
            None if step.repeat or most is None else most + 1,
        )
    return found


def follow(steps: Steps, calls: Sequence[ToolCall], order: Order) -> set[int] | None:
    """Return the indices of the calls that make up a path, or None if the calls do not fit it."""
    if order == "exact":
        whole = all(map(succeeded, calls)) and _matches(steps, calls)
        return set(range(len(calls))) if whole else None
    if order == "in_order":
        return _subsequence(steps, calls)
    if not all(step.any_arguments for step in steps):
        return _assigned(steps, calls, order)
    needs = _needs(steps)
    closed = order in ("unordered", "subset")
    if closed and not all(call.name in needs for call in calls):
        return None
    if order == "unordered" and not all(map(succeeded, calls)):
        return None
    by_name: dict[str, list[int]] = {name: [] for name in needs}
    for index, call in enumerate(calls):
        if call.name in needs and succeeded(call):
            by_name[call.name].append(index)
    used: set[int] = set()
    for name, (least, most) in needs.items():
        found = by_name[name]
        if order != "subset" and len(found) < least:
            return None
        if most is not None and len(found) > most and closed:
            return None
        used.update(found if most is None else found[:most])
    return used


def _assigned(steps: Steps, calls: Sequence[ToolCall], order: Order) -> set[int] | None:
    """As `follow`, in an order that leaves the order free, where steps differ in arguments.

    A call may be one of several steps, so each gets one of its own by augmenting paths. That all
    steps can be made, and that all calls can be steps, is enough for both at once: a matching
    that covers either can be extended to one that covers both (Mendelsohn and Dulmage, 1958).
    """
    good = [i for i, call in enumerate(calls) if succeeded(call)]
    closed = order in ("unordered", "subset")
    if closed and not all(any(is_step(step, call) for step in steps) for call in calls):
        return None
    if order == "unordered" and len(good) < len(calls):
        return None
    pairs = _Pairs(steps, calls, good)
    if order != "subset" and pairs.lacking():
        return None
    used = pairs.used()
    return None if closed and len(used) < len(good) else used


class _Pairs:
    """Steps and successful calls, each step with a call of its own as far as there is one."""

    def __init__(self, steps: Steps, calls: Sequence[ToolCall], good: Sequence[int]) -> None:
        self._steps = steps
        self._good = good
        self._calls_of = [
            [place for place, i in enumerate(good) if is_step(step, calls[i])] for step in steps
        ]
        self._steps_of: list[list[int]] = [[] for _ in good]
        for number, places in enumerate(self._calls_of):
            for place in places:
                self._steps_of[place].append(number)
        self._call: dict[int, int] = {}
        self._step: dict[int, int] = {}

    def lacking(self) -> list[int]:
        """The steps that must be made and for which no call is left."""
        return [
            number
            for number, step in enumerate(self._steps)
            if not step.optional
            and number not in self._call
            and not pair_up(number, self._calls_of, self._call, self._step)
        ]

    def used(self) -> set[int]:
        """Most calls that can be steps, those that `lacking` paired among them."""
        repeated = {number for number, step in enumerate(self._steps) if step.repeat}
        for place, numbers in enumerate(self._steps_of):
            if place not in self._step and repeated.isdisjoint(numbers):
                pair_up(place, self._steps_of, self._step, self._call)
        return {
            i
            for place, i in enumerate(self._good)
            if place in self._step or not repeated.isdisjoint(self._steps_of[place])
        }


def _matches(steps: Steps, calls: Sequence[ToolCall]) -> bool:
    """Whether calls are exactly the steps."""
    if not any(step.optional or step.repeat for step in steps):
        return len(steps) == len(calls) and all(map(is_step, steps, calls))
    number, places = _longest_start(steps, calls)
    return number == len(calls) and len(steps) in places


def _longest_start(steps: Steps, calls: Sequence[ToolCall]) -> tuple[int, set[int]]:
    """How many calls can begin the path, and the places where one can then be (an NFA)."""
    # A place is the number of steps done; a step that may be repeated can be done again there.
    places = _closure(steps, {0})
    for number, call in enumerate(calls):
        done = {p + 1 for p in places if p < len(steps) and is_step(steps[p], call)}
        # Where an optional step was left out, repeating it is making it once.
        again = {p for p in places if p and steps[p - 1].repeat and is_step(steps[p - 1], call)}
        following = _closure(steps, done | again)
        if not following:
            return number, places
        places = following
    return len(calls), places


def _closure(steps: Steps, places: set[int]) -> set[int]:
    reached = set(places)
    for place, step in enumerate(steps):
        if step.optional and place in reached:
            reached.add(place + 1)
    return reached


class _Taken(NamedTuple):
    """Calls that were matched so far, the last first; `number` of them."""

    number: int
    call: int
    before: _Taken | None


_NONE = _Taken(0, -1, None)


def _subsequence(steps: Steps, calls: Sequence[ToolCall]) -> set[int] | None:
    """Most calls that are the steps in order, with any others between; None if a step lacks."""
    best: list[_Taken | None] = [None] * (len(steps) + 1)
    best[0] = _NONE
    _skip(steps, best)
    at: dict[str, list[int]] = {}
    for place, step in enumerate(steps):
        at.setdefault(step.tool, []).append(place)
    for index, call in enumerate(calls):
        if call.name not in at or not succeeded(call):
            continue
        for place in reversed(at[call.name]):
            if not is_step(steps[place], call):
                continue
            starts = [best[place]]
            if steps[place].repeat:
                starts.append(best[place + 1])
            for start in starts:
                if start is not None:
                    _improve(best, place + 1, _Taken(start.number + 1, index, start))
        _skip(steps, best)
    taken = best[-1]
    if taken is None:
        return None
    used = set()
    while taken is not None and taken.number:
        used.add(taken.call)
        taken = taken.before
    return used


def _skip(steps: Steps, best: list[_Taken | None]) -> None:
    for place, step in enumerate(steps):
        before = best[place]
        if step.optional and before is not None:
            _improve(best, place + 1, before)


def _improve(best: list[_Taken | None], place: int, taken: _Taken) -> None:
    known = best[place]
    if known is None or known.number < taken.number:
        best[place] = taken


# Where calls leave a path.


class Aligned(NamedTuple):
    """One place of two paths side by side: a call, a step, or both if they belong together."""

    kind: Literal["same", "extra", "missing", "failed"]
    name: str
    call: int | None
    step: int | None = None


class Divergence(NamedTuple):
    """Where calls first leave a path.

    Attributes:
        call: Index of the call, or the number of calls if what is wrong comes after all.
        reason: What is wrong there, in words.
        diff: Both paths side by side: `get_order ✓, charge_card +, refund_payment ✗ missing`.
        similarity: 2 × common ÷ (steps + calls), 0 to 1: F1 of the longest common subsequence
            (in orders that leave the order free: of the common calls). A failed call is not
            common; a repetition that is made counts as a step, and an optional step that is not
            made as none.
    """

    call: int
    reason: str
    diff: str
    similarity: float


def divergence(path: LegalPath, calls: Sequence[ToolCall], order: Order) -> Divergence:
    """Say where calls leave a path that they do not fit."""
    steps = path.path
    ordered = order in ("exact", "in_order")
    aligned = _align(steps, calls) if ordered else _pair(steps, calls)
    # Of a subset nothing is missing.
    shown = [item for item in _hunks(aligned) if order != "subset" or item.kind != "missing"]
    return Divergence(
        *_first_difference(aligned, steps, calls, order),
        diff=", ".join(_show_aligned(item, calls, order) for item in shown) or "no call",
        similarity=similarity(aligned),
    )


def _hunks(aligned: Sequence[Aligned]) -> list[Aligned]:
    """Where both differ, what was done instead before what was not done."""
    shown: list[Aligned] = []
    left_out: list[Aligned] = []
    for item in aligned:
        if item.kind == "missing":
            left_out.append(item)
            continue
        if item.kind != "extra":
            shown += left_out
            left_out = []
        shown.append(item)
    return shown + left_out


def similarity(aligned: Sequence[Aligned]) -> float:
    """How alike two aligned paths are, 0 to 1: see `Divergence`."""
    kinds = Counter(item.kind for item in aligned)
    both = 2 * kinds["same"]
    # A step and a call that failed stand in one place, and are two that are not common.
    apart = kinds["extra"] + kinds["missing"] + 2 * kinds["failed"]
    return both / (both + apart) if aligned else 1.0


def _align(steps: Steps, calls: Sequence[ToolCall]) -> list[Aligned]:
    """Align by the fewest insertions and omissions; a step that may be left out costs nothing.

    Time and memory: steps × calls.
    """
    if _too_long(steps, calls):
        return _pair(steps, calls)
    good = [succeeded(call) for call in calls]
    same = [[is_step(step, call) for call in calls] for step in steps]
    cost = _costs(steps, same, good)
    found: list[Aligned] = []
    i = j = 0
    while i < len(steps) or j < len(calls):
        moves = _moves(steps, same, good, cost, i, j)
        _, move = min(moves, key=lambda item: item[0])
        if move in ("step", "again"):
            kind: Literal["same", "failed"] = "same" if good[j] else "failed"
            found.append(Aligned(kind, calls[j].name, j, i if move == "step" else i - 1))
        elif move == "extra":
            found.append(Aligned("extra", calls[j].name, j))
        elif move == "missing":
            found.append(Aligned("missing", steps[i].tool, None, i))
        i += move in ("step", "missing", "skip")
        j += move in ("step", "again", "extra")
    return found


def _each(good: Sequence[bool]) -> int:
    """What a call too many or a missing step costs: more than all failed calls can save."""
    return len(good) + 1


def _costs(steps: Steps, same: Sequence[Sequence[bool]], good: Sequence[bool]) -> list[list[int]]:
    """The least that the rest costs with `i` steps and `j` calls behind, as `_moves` prices it.

    Written out, as it is run for each pair of a step and a call.
    """
    rows, columns = len(steps), len(good)
    each = _each(good)
    never = [False] * columns
    cost = [[each * (columns - j) for j in range(columns + 1)] for _ in range(rows + 1)]
    for i in range(rows, -1, -1):
        row = cost[i]
        below = cost[i + 1] if i < rows else None
        here = same[i] if i < rows else never
        left_out = each if i < rows and not steps[i].optional else 0
        again = same[i - 1] if i and steps[i - 1].repeat else never
        for j in range(columns, -1, -1):
            best = row[j] if below is None else below[j] + left_out
            if j < columns:
                best = min(best, row[j + 1] + each)
                if below is not None and here[j]:
                    best = min(best, below[j + 1] + (0 if good[j] else left_out + each - 1))
                if again[j]:
                    best = min(best, row[j + 1] + (0 if good[j] else each - 1))
            row[j] = best
    return cost


def _too_long(steps: Steps, calls: Sequence[ToolCall]) -> bool:
    return len(steps) * len(calls) > ALIGNED_CELLS


def _moves(
    steps: Steps,
    same: Sequence[Sequence[bool]],
    good: Sequence[bool],
    cost: list[list[int]],
    i: int,
    j: int,
) -> list[tuple[int, str]]:
    """What can come next with `i` steps and `j` calls behind: cost from here on, and the move.

    A failed call in the right place costs a little less than not to count it there, so that it
    is shown there, and never stands for a call that succeeded.
    """
    each = _each(good)
    moves = []
    if j < len(good):
        if i < len(steps) and same[i][j]:
            failed = each - 1 if steps[i].optional else 2 * each - 1
            moves.append((cost[i + 1][j + 1] + (0 if good[j] else failed), "step"))
        if i and steps[i - 1].repeat and same[i - 1][j]:
            moves.append((cost[i][j + 1] + (0 if good[j] else each - 1), "again"))
    if i < len(steps):
        skip = steps[i].optional
        moves.append((cost[i + 1][j] + (0 if skip else each), "skip" if skip else "missing"))
    if j < len(good):
        moves.append((cost[i][j + 1] + each, "extra"))
    return moves


def _pair(steps: Steps, calls: Sequence[ToolCall]) -> list[Aligned]:
    """Pair calls with steps, whatever their order; what is missing comes last."""
    if not all(step.any_arguments for step in steps):
        return _pair_by_arguments(steps, calls)
    needs = _needs(steps)
    seen: Counter[str] = Counter()
    found = []
    for index, call in enumerate(calls):
        most = needs[call.name].most if call.name in needs else 0
        if not succeeded(call) and call.name in needs:
            found.append(Aligned("failed", call.name, index))
        elif most is None or seen[call.name] < most:
            seen[call.name] += 1
            found.append(Aligned("same", call.name, index))
        else:
            found.append(Aligned("extra", call.name, index))
    for name, (least, _) in needs.items():
        # One that was tried and failed shows as that.
        tried = sum(item.kind == "failed" and item.name == name for item in found)
        found += [Aligned("missing", name, None)] * max(0, least - seen[name] - tried)
    return found


def _pair_by_arguments(steps: Steps, calls: Sequence[ToolCall]) -> list[Aligned]:
    good = [i for i, call in enumerate(calls) if succeeded(call)]
    pairs = _Pairs(steps, calls, good)
    lacking = pairs.lacking()
    used = pairs.used()
    found: list[Aligned] = []
    for index, call in enumerate(calls):
        failed = not succeeded(call) and any(is_step(step, call) for step in steps)
        kind: Literal["same", "extra", "failed"] = (
            "failed" if failed else "same" if index in used else "extra"
        )
        found.append(Aligned(kind, call.name, index))
        if failed:
            # One that was tried and failed shows as that.
            made = next((n for n in lacking if is_step(steps[n], call)), None)
            lacking = [number for number in lacking if number != made]
    return [*found, *(Aligned("missing", steps[n].tool, None, n) for n in lacking)]


_MARKS = {"same": "✓", "extra": "+", "missing": "✗ missing", "failed": "✗ failed"}


def _show_aligned(item: Aligned, calls: Sequence[ToolCall], order: Order) -> str:
    # Where other calls may come between, they are shown and not held against the run.
    if item.kind == "extra" and order in ("in_order", "any_order", "superset"):
        return f"({item.name})"
    if item.kind == "failed" and order == "subset":
        return f"({item.name} failed)"
    if item.kind == "extra" and item.call is not None and not succeeded(calls[item.call]):
        return f"{item.name} + failed"
    return f"{item.name} {_MARKS[item.kind]}"


def _first_difference(
    aligned: Sequence[Aligned], steps: Steps, calls: Sequence[ToolCall], order: Order
) -> tuple[int, str]:
    """Index of the call at which the first difference that counts shows, and what it is."""
    if order == "exact" and _too_long(steps, calls):
        return _first_off(steps, calls)
    if order == "exact":
        return _first_of_exact(aligned, steps, calls)
    if order != "subset" and (lost := _lost(steps, calls)) is not None:
        return lost
    if order == "in_order":
        return _first_out_of_order(steps, calls)
    for item in aligned:
        if item.kind == "extra" and item.call is not None:
            needs = _needs(steps).get(item.name)
            why = "is not on the path" if needs is None else f"is one more than {needs.most}"
            if needs is not None and not all(s.any_arguments for s in steps):
                why = "is no step that is left: " + _nearest_step(steps, calls[item.call])
            return item.call, f"{item.name} (call {item.call + 1}) {why}"
        if item.kind == "failed" and item.call is not None and order != "subset":
            return item.call, f"{item.name} (call {item.call + 1}) failed: {_said(calls, item)}"
    return len(calls), "the calls do not fit"


def _off(step: PathStep, call: ToolCall) -> str | None:
    """What keeps a call of a step's tool from being the step; None if nothing does."""
    if step.any_arguments:
        return None
    found = args_mismatches(step.args, step.args_mode, call.arguments)
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return found[0] + more if found else None


def _nearest_step(steps: Steps, call: ToolCall) -> str:
    offs = [_off(step, call) for step in steps if step.tool == call.name]
    return next((off for off in offs if off is not None), "it was made already")


def _first_of_exact(
    aligned: Sequence[Aligned], steps: Steps, calls: Sequence[ToolCall]
) -> tuple[int, str]:
    done = 0
    for place, item in enumerate(aligned):
        if item.kind == "same" and item.call is not None:
            done = item.call + 1
            continue
        step = f"step {done + 1}"
        if item.kind == "failed":
            return done, f"{step}, {item.name}, failed: {_said(calls, item)}"
        if done == len(calls):
            return done, f"ended after {done} calls, {item.name} is missing"
        rest = (other for other in aligned[place:] if other.kind != "extra")
        meant = item if item.kind == "missing" else next(rest, None)
        wanted = "no more calls" if meant is None else meant.name
        if meant is not None and meant.step is not None and calls[done].name == wanted:
            off = _off(steps[meant.step], calls[done])
            if off is not None:
                return done, f"{step}, {wanted}: {off}"
        if calls[done].name == wanted:
            return done, f"{step}, {wanted}, failed: {calls[done].error or 'no message'}"
        return done, f"{step} is {calls[done].name}, expected {wanted}"
    return len(calls), "the calls do not fit"


def _first_off(steps: Steps, calls: Sequence[ToolCall]) -> tuple[int, str]:
    """The first call that cannot go on with the path, whatever comes after."""
    failed = next((i for i, call in enumerate(calls) if not succeeded(call)), len(calls))
    number, places = _longest_start(steps, calls[:failed])
    wanted = [steps[place].tool for place in sorted(places) if place < len(steps)]
    expected = " or ".join(dict.fromkeys(wanted)) or "no more calls"
    if number == len(calls):
        return number, f"ended after {number} calls, {expected} is missing"
    call = calls[number]
    if number == failed:
        return number, f"step {number + 1}, {call.name}, failed: {call.error or 'no message'}"
    return number, f"step {number + 1} is {call.name}, expected {expected}"


def _said(calls: Sequence[ToolCall], item: Aligned) -> str:
    return (None if item.call is None else calls[item.call].error) or "no message"


def _lost(steps: Steps, calls: Sequence[ToolCall]) -> tuple[int, str] | None:
    """Steps of which too few calls succeeded; None if there is none."""
    if not all(step.any_arguments for step in steps):
        return _lost_by_arguments(steps, calls)
    made = Counter(call.name for call in calls if succeeded(call))
    names = [name for name, needs in _needs(steps).items() if made[name] < needs.least]
    if not names:
        return None
    failed = [i for i, call in enumerate(calls) if call.name in names and not succeeded(call)]
    why = "never succeeded" if failed else "is missing"
    return failed[0] if failed else len(calls), f"{', '.join(names)} {why}"


def _lost_by_arguments(steps: Steps, calls: Sequence[ToolCall]) -> tuple[int, str] | None:
    pairs = _Pairs(steps, calls, [i for i, call in enumerate(calls) if succeeded(call)])
    lost = pairs.lacking()
    if not lost:
        return None
    step = steps[lost[0]]
    failed = [i for i, c in enumerate(calls) if is_step(step, c) and not succeeded(c)]
    if failed:
        return failed[0], f"{_show_step(step)} never succeeded"
    near = next(
        ((i, off) for i, c in enumerate(calls) if c.name == step.tool and (off := _off(step, c))),
        None,
    )
    if near is not None:
        return near[0], f"{_show_step(step)} is missing: in call {near[0] + 1} {near[1]}"
    return len(calls), f"{_show_step(step)} is missing"


def _first_out_of_order(steps: Steps, calls: Sequence[ToolCall]) -> tuple[int, str]:
    good = [(i, call) for i, call in enumerate(calls) if succeeded(call)]
    path = [step for step in steps if not step.optional]
    position = 0
    used: set[int] = set()
    for place, step in enumerate(path):
        made = [p for p, (_, call) in enumerate(good) if is_step(step, call) and p not in used]
        later = next((p for p in made if p >= position), None)
        if later is None:
            # There is one, since enough calls of it succeeded; it is before the step it is for.
            if not made:
                return len(calls), f"{_show_step(step)} is missing"
            before = _show_step(path[place - 1])
            return good[made[0]][0], f"{_show_step(step)} came before {before}, expected after"
        used.add(later)
        position = later + 1
    return len(calls), "the calls do not fit"
