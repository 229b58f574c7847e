"""`trajectory`: the path taken was a legal one, the calls that had to occur did, nothing else.

What counts as a step: every tool call of the agent, failed ones and retries too. With
`order: exact` a path is compared with all steps; `in_order` and `any_order` need successful
ones. A `calls` rule counts successful calls whose arguments fit; one call may satisfy several
rules. A call is *listed* if the path that was taken uses it or a rule fits it; a rule without
`max` lists no more successful calls than it demands. What is not listed is extra.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from benchmark_assets.model.contract import CallRule, Contract, Trajectory
from benchmark_assets.model.trace import ToolCall, TraceSnapshot
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.matching import Match, any_glob, args_mismatches, show
from benchmark_assets.scoring.plugins.base import Judge, Plugin, at, name_call, succeeded


def _prepare(contract: Contract) -> Judge | None:
    trajectory = contract.trajectory
    if trajectory is None:
        return None
    rules = [(rule, any_glob([rule.tool])) for rule in trajectory.calls]
    names = _rule_names(trajectory.calls)
    writes = any_glob(trajectory.writes)

    def judge(trace: TraceSnapshot) -> Iterator[Check]:
        calls = trace.tool_calls
        listed: set[int] = set()
        if trajectory.allowed_paths:
            check, used = _path_check(trajectory, calls)
            listed |= used
            yield check
        repeated: list[tuple[list[int], int]] = []
        for (rule, fits), name in zip(rules, names, strict=True):
            matched = [
                i
                for i, call in enumerate(calls)
                if fits(call.name)
                and not args_mismatches(rule.args, rule.args_mode, call.arguments)
            ]
            good = [i for i in matched if succeeded(calls[i])]
            demanded = max(rule.min, 1)
            bound = [i for i in good if trajectory.extra == "forbid" or writes(calls[i].name)]
            if rule.max is None and len(bound) > demanded:
                repeated.append((bound, demanded))
                listed.update(set(matched).difference(bound))
            else:
                listed.update(matched)
            yield _call_check(rule, name, fits, calls, good)
        # Without `max` a rule lists as many calls as it demands: where `extra` restricts what
        # else may happen, doing the same thing again is something else. Calls that are listed
        # anyway come first, so that the order of calls does not decide whether one is extra.
        for bound, demanded in repeated:
            listed.update(sorted(bound, key=lambda i: i not in listed)[:demanded])
        if trajectory.extra != "allow":
            yield _extra_check(trajectory, calls, listed, writes)

    return judge


def _rule_names(rules: Sequence[CallRule]) -> list[str]:
    """Name each rule by its tool, numbered where a tool has several rules."""
    counts = Counter(rule.tool for rule in rules)
    seen: Counter[str] = Counter()
    names = []
    for rule in rules:
        seen[rule.tool] += 1
        number = f" #{seen[rule.tool]}" if counts[rule.tool] > 1 else ""
        names.append(f"call: {rule.tool}{number}")
    return names


def _path_check(trajectory: Trajectory, calls: Sequence[ToolCall]) -> tuple[Check, set[int]]:
    fitting = [
        (path, used)
        for path in trajectory.allowed_paths
        if (used := _follow(path, calls, trajectory.order)) is not None
    ]
    if fitting:
        # Of several that fit, the one that accounts for most calls: the others are no extras.
        path, used = max(fitting, key=lambda fit: len(fit[1]))
        return Check(name="path", outcome="passed", observed=" → ".join(path) or "no call"), used
    taken = [call.name for call in calls]
    nearest = max(
        trajectory.allowed_paths,
        key=lambda path: SequenceMatcher(None, path, taken, autojunk=False).ratio(),
    )
    expected = " or ".join(" → ".join(path) or "no call" for path in trajectory.allowed_paths)
    step, reason = _divergence(nearest, calls, trajectory.order)
    named = {name for path in trajectory.allowed_paths for name in path}
    check = Check(
        name="path",
        outcome="failed",
        expected=f"{expected} ({trajectory.order.replace('_', ' ')})",
        observed=" → ".join(taken) or "no call",
        reason=reason,
        where=at(calls[step], step) if step < len(calls) else None,
    )
    return check, {i for i, call in enumerate(calls) if call.name in named}


def _follow(path: Sequence[str], calls: Sequence[ToolCall], order: str) -> set[int] | None:
    """Return the indices of the calls that make up `path`, or None if the calls do not fit it."""
    if order == "exact":
        same = [call.name for call in calls] == list(path)
        return set(range(len(calls))) if same and all(map(succeeded, calls)) else None
    used: set[int] = set()
    if order == "in_order":
        position = 0
        for name in path:
            while position < len(calls) and not (
                calls[position].name == name and succeeded(calls[position])
            ):
                position += 1
            if position == len(calls):
                return None
            used.add(position)
            position += 1
        return used
    for name, count in Counter(path).items():
        found = [i for i, call in enumerate(calls) if call.name == name and succeeded(call)]
        if len(found) < count:
            return None
        used.update(found[:count])
    return used


def _divergence(path: Sequence[str], calls: Sequence[ToolCall], order: str) -> tuple[int, str]:
    """Say where the calls leave the nearest legal path: index of the call, and why."""
    if order == "exact":
        for step, (name, call) in enumerate(zip(path, calls, strict=False)):
            if call.name != name:
                return step, f"step {step + 1} is {call.name}, expected {name}"
            if not succeeded(call):
                return step, f"step {step + 1}, {name}, failed: {call.error or 'no message'}"
        if len(calls) < len(path):
            return len(calls), f"ended after {len(calls)} calls, {path[len(calls)]} is missing"
        return len(path), f"step {len(path) + 1} is {calls[len(path)].name}, expected no more calls"
    good = [(i, call.name) for i, call in enumerate(calls) if succeeded(call)]
    missing = Counter(path) - Counter(name for _, name in good)
    if missing:
        lost = ", ".join(missing)
        failed = [i for i, call in enumerate(calls) if call.name in missing and not succeeded(call)]
        why = f"{lost} never succeeded" if failed else f"{lost} is missing"
        return (failed[0] if failed else len(calls)), why
    position = 0
    for index, name in enumerate(path):
        later = [p for p, (_, used) in enumerate(good) if used == name and p >= position]
        if not later:
            early = next(i for i, used in good if used == name)
            return early, f"{name} came before {path[index - 1]}, expected after"
        position = later[0] + 1
    return len(calls), "the calls do not fit"


def _call_check(
    rule: CallRule, name: str, fits: Match, calls: Sequence[ToolCall], matched: list[int]
) -> Check:
    count = len(matched)
    if rule.min <= count and (rule.max is None or count <= rule.max):
        where = at(calls[matched[0]], matched[0]) if matched else None
        return Check(name=name, outcome="passed", where=where)
    expected = _how_often(rule) + (f" with {show(rule.args)}" if rule.args else "")
    if rule.max is not None and count > rule.max:
        last = matched[rule.max]
        return Check(
            name=name,
            outcome="failed",
            expected=expected,
            observed=f"{count} times",
            reason=f"{rule.tool} succeeded {count} times, at most {rule.max} allowed",
            where=at(calls[last], last),
        )
    candidates = [(i, call) for i, call in enumerate(calls) if fits(call.name) and i not in matched]
    if not candidates:
        seen = f"{count} times" if count else "never called"
        reason = f"{rule.tool} is missing" if not count else f"{rule.tool} occurred {count} times"
        return Check(name=name, outcome="failed", expected=expected, observed=seen, reason=reason)
    index, call, reason = _nearest(rule, candidates)
    return Check(
        name=name,
        outcome="failed",
        expected=expected,
        observed=f"{name_call(call, index)} with {show(call.arguments)}",
        reason=reason,
        where=at(call, index),
    )


def _nearest(rule: CallRule, candidates: list[tuple[int, ToolCall]]) -> tuple[int, ToolCall, str]:
    """Pick the call that came nearest to the rule, and say what kept it from fitting."""
    best: tuple[int, int, ToolCall, str] | None = None
    for index, call in candidates:
        differences = args_mismatches(rule.args, rule.args_mode, call.arguments)
        if not differences:
            reason = f"{call.name} failed: {call.error or 'no message'}"
        else:
            more = f" (and {len(differences) - 1} more)" if len(differences) > 1 else ""
            reason = differences[0] + more
        if best is None or len(differences) < best[0]:
            best = (len(differences), index, call, reason)
    assert best is not None
    return best[1], best[2], best[3]


def _how_often(rule: CallRule) -> str:
    if rule.max is None:
        return "at least once" if rule.min == 1 else f"at least {rule.min} times"
    if rule.min == rule.max:
        return "once" if rule.min == 1 else f"{rule.min} times"
    return f"{rule.min} to {rule.max} times"


def _extra_check(
    trajectory: Trajectory, calls: Sequence[ToolCall], listed: set[int], writes: Match
) -> Check:
    extra = [
        (i, call)
        for i, call in enumerate(calls)
        if i not in listed
        and (trajectory.extra == "forbid" or (writes(call.name) and succeeded(call)))
    ]
    name = "no other calls" if trajectory.extra == "forbid" else "no other writes"
    if not extra:
        return Check(name=name, outcome="passed")
    index, call = extra[0]
    more = f" (and {len(extra) - 1} more)" if len(extra) > 1 else ""
    return Check(
        name=name,
        outcome="failed",
        expected="nothing besides the listed calls"
        if trajectory.extra == "forbid"
        else "no successful write besides the listed calls",
        observed=", ".join(name_call(other, i) for i, other in extra),
        reason=f"{name_call(call, index)} with {show(call.arguments)} is not listed{more}",
        where=at(call, index),
    )


PLUGIN = Plugin(
    "trajectory",
    "the calls took a path that is allowed, and nothing else was done",
    _prepare,
)
