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

Steps = Sequence[PathStep]

ALIGNED_CELLS = 1_000_000
"""Largest product of steps and calls that is aligned; beyond it only counts are compared."""

HASH_DIGITS = 16


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
    text = step.tool + ("+" if step.repeat else "")
    return f"[{text}]" if step.optional else text


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
        whole = all(map(succeeded, calls)) and _matches(steps, [call.name for call in calls])
        return set(range(len(calls))) if whole else None
    if order == "in_order":
        return _subsequence(steps, calls)
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


def _matches(steps: Steps, names: list[str]) -> bool:
    """Whether names are exactly the steps."""
    if not any(step.optional or step.repeat for step in steps):
        return [step.tool for step in steps] == names
    number, places = _longest_start(steps, names)
    return number == len(names) and len(steps) in places


def _longest_start(steps: Steps, names: Sequence[str]) -> tuple[int, set[int]]:
    """How many names can begin the path, and the places where one can then be (an NFA)."""
    # A place is the number of steps done; a step that may be repeated can be done again there.
    places = _closure(steps, {0})
    for number, name in enumerate(names):
        done = {p + 1 for p in places if p < len(steps) and steps[p].tool == name}
        # Where an optional step was left out, repeating it is making it once.
        again = {p for p in places if p and steps[p - 1].repeat and steps[p - 1].tool == name}
        following = _closure(steps, done | again)
        if not following:
            return number, places
        places = following
    return len(names), places


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
    cost = _costs(steps, calls, good)
    found: list[Aligned] = []
    i = j = 0
    while i < len(steps) or j < len(calls):
        moves = _moves(steps, calls, good, cost, i, j)
        _, move = min(moves, key=lambda item: item[0])
        if move in ("step", "again"):
            kind: Literal["same", "failed"] = "same" if good[j] else "failed"
            found.append(Aligned(kind, calls[j].name, j))
        elif move == "extra":
            found.append(Aligned("extra", calls[j].name, j))
        elif move == "missing":
            found.append(Aligned("missing", steps[i].tool, None))
        i += move in ("step", "missing", "skip")
        j += move in ("step", "again", "extra")
    return found


def _each(calls: Sequence[ToolCall]) -> int:
    """What a call too many or a missing step costs: more than all failed calls can save."""
    return len(calls) + 1


def _costs(steps: Steps, calls: Sequence[ToolCall], good: Sequence[bool]) -> list[list[int]]:
    """The least that the rest costs with `i` steps and `j` calls behind, as `_moves` prices it.

    Written out, as it is run for each pair of a step and a call.
    """
    rows, columns = len(steps), len(calls)
    each = _each(calls)
    names = [call.name for call in calls]
    cost = [[each * (columns - j) for j in range(columns + 1)] for _ in range(rows + 1)]
    for i in range(rows, -1, -1):
        row = cost[i]
        below = cost[i + 1] if i < rows else None
        tool = steps[i].tool if i < rows else None
        left_out = each if i < rows and not steps[i].optional else 0
        again = steps[i - 1].tool if i and steps[i - 1].repeat else None
        for j in range(columns, -1, -1):
            best = row[j] if below is None else below[j] + left_out
            if j < columns:
                best = min(best, row[j + 1] + each)
                if below is not None and names[j] == tool:
                    best = min(best, below[j + 1] + (0 if good[j] else left_out + each - 1))
                if names[j] == again:
                    best = min(best, row[j + 1] + (0 if good[j] else each - 1))
            row[j] = best
    return cost


def _too_long(steps: Steps, calls: Sequence[ToolCall]) -> bool:
    return len(steps) * len(calls) > ALIGNED_CELLS


def _moves(
    steps: Steps,
    calls: Sequence[ToolCall],
    good: Sequence[bool],
    cost: list[list[int]],
    i: int,
    j: int,
) -> list[tuple[int, str]]:
    """What can come next with `i` steps and `j` calls behind: cost from here on, and the move.

    A failed call in the right place costs a little less than not to count it there, so that it
    is shown there, and never stands for a call that succeeded.
    """
    each = _each(calls)
    moves = []
    if j < len(calls):
        name = calls[j].name
        if i < len(steps) and steps[i].tool == name:
            failed = each - 1 if steps[i].optional else 2 * each - 1
            moves.append((cost[i + 1][j + 1] + (0 if good[j] else failed), "step"))
        if i and steps[i - 1].repeat and steps[i - 1].tool == name:
            moves.append((cost[i][j + 1] + (0 if good[j] else each - 1), "again"))
    if i < len(steps):
        skip = steps[i].optional
        moves.append((cost[i + 1][j] + (0 if skip else each), "skip" if skip else "missing"))
    if j < len(calls):
        moves.append((cost[i][j + 1] + each, "extra"))
    return moves


def _pair(steps: Steps, calls: Sequence[ToolCall]) -> list[Aligned]:
    """Pair calls with steps by name, whatever their order; what is missing comes last."""
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
        return _first_of_exact(aligned, calls)
    if order != "subset" and (lost := _lost(steps, calls)) is not None:
        return lost
    if order == "in_order":
        return _first_out_of_order(steps, calls)
    for item in aligned:
        if item.kind == "extra" and item.call is not None:
            needs = _needs(steps).get(item.name)
            why = "is not on the path" if needs is None else f"is one more than {needs.most}"
            return item.call, f"{item.name} (call {item.call + 1}) {why}"
        if item.kind == "failed" and item.call is not None and order != "subset":
            return item.call, f"{item.name} (call {item.call + 1}) failed: {_said(calls, item)}"
    return len(calls), "the calls do not fit"


def _first_of_exact(aligned: Sequence[Aligned], calls: Sequence[ToolCall]) -> tuple[int, str]:
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
        rest = (other.name for other in aligned[place:] if other.kind != "extra")
        wanted = item.name if item.kind == "missing" else next(rest, "no more calls")
        if calls[done].name == wanted:
            return done, f"{step}, {wanted}, failed: {calls[done].error or 'no message'}"
        return done, f"{step} is {calls[done].name}, expected {wanted}"
    return len(calls), "the calls do not fit"


def _first_off(steps: Steps, calls: Sequence[ToolCall]) -> tuple[int, str]:
    """The first call that cannot go on with the path, whatever comes after."""
    failed = next((i for i, call in enumerate(calls) if not succeeded(call)), len(calls))
    number, places = _longest_start(steps, [call.name for call in calls[:failed]])
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
    made = Counter(call.name for call in calls if succeeded(call))
    names = [name for name, needs in _needs(steps).items() if made[name] < needs.least]
    if not names:
        return None
    failed = [i for i, call in enumerate(calls) if call.name in names and not succeeded(call)]
    why = "never succeeded" if failed else "is missing"
    return failed[0] if failed else len(calls), f"{', '.join(names)} {why}"


def _first_out_of_order(steps: Steps, calls: Sequence[ToolCall]) -> tuple[int, str]:
    good = [(i, call.name) for i, call in enumerate(calls) if succeeded(call)]
    path = [step.tool for step in steps if not step.optional]
    position = 0
    used: set[int] = set()
    for place, name in enumerate(path):
        made = [p for p, (_, other) in enumerate(good) if other == name and p not in used]
        later = next((p for p in made if p >= position), None)
        if later is None:
            # There is one, since enough calls of it succeeded; it is before the step it is for.
            return good[made[0]][0], f"{name} came before {path[place - 1]}, expected after"
        used.add(later)
        position = later + 1
    return len(calls), "the calls do not fit"
