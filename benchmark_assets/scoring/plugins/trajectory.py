"""`trajectory`: the path taken was a legal one, the calls that had to occur did, nothing else.

Belongs here: what a contract demands of calls, and saying what is wrong. Does not belong here:
fitting calls to a path (`legal_paths`), telling writes and questions (`asking`).

With the orders `exact` and `unordered` a path is compared with all calls, failed ones and retries
too; the others need successful ones. A `calls` rule counts successful calls whose arguments fit;
one call may satisfy several rules. A call is *listed* if the path that was taken uses it or a
rule fits it; a rule without `max` lists no more successful calls than it demands (where only
writes are restricted: no more successful writes). What is not listed is extra.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from benchmark_assets.model.contract import CallRule, Contract, LegalPath, Order, Trajectory
from benchmark_assets.model.trace import ToolCall
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.asking import Writes, asked_first, question_check, writing
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.legal_paths import divergence, follow, show_path
from benchmark_assets.scoring.matching import Match, any_glob, args_mismatches, mismatch, show
from benchmark_assets.scoring.plugins.base import Judge, Plugin, Quick, at, name_call, succeeded


def _prepare(contract: Contract) -> Judge | None:
    trajectory = contract.trajectory
    if trajectory is None:
        return None
    rules = [(rule, any_glob([rule.tool])) for rule in trajectory.calls]
    names = _rule_names(trajectory.calls)
    paths = _legal_paths(trajectory)
    pairs = [(any_glob([first]), any_glob([second])) for first, second in trajectory.before]
    writes_of = writing(trajectory, contract.harness)

    def judge(evidence: Evidence) -> Iterator[Check]:
        calls = evidence.trace.tool_calls
        used: set[int] = set()
        if paths:
            checks, used = _path_checks(paths, calls)
            yield from checks
        made: dict[str, list[int]] = {}
        for index, call in enumerate(calls):
            made.setdefault(call.name, []).append(index)
        fitting: list[tuple[CallRule, list[int]]] = []
        for (rule, fits), name in zip(rules, names, strict=True):
            meant = [made[tool] for tool in made if fits(tool)]
            named = meant[0] if len(meant) == 1 else sorted(i for found in meant for i in found)
            matched = [
                i
                for i in named
                if not args_mismatches(rule.args, rule.args_mode, calls[i].arguments)
            ]
            fitting.append((rule, matched))
            good = [i for i in matched if succeeded(calls[i])]
            yield _call_check(rule, name, fits, calls, good)
            if rule.occurrences == "each":
                yield _each_check(rule, name, named, calls, matched)
        if trajectory.extra == "forbid":
            yield _forbid_check(calls, _listed(used, fitting, calls, _any_call))
        elif trajectory.extra == "reads_only":
            writes = writes_of(evidence)
            yield _reads_only_check(calls, _listed(used, fitting, calls, writes), writes)
        if trajectory.max_extra_calls is not None:
            listed = _listed(used, fitting, calls, _any_call)
            yield _extra_calls_check(trajectory.max_extra_calls, calls, listed)
        for pair, before in zip(trajectory.before, pairs, strict=True):
            yield _before_check(pair, *before, calls)
        for tool, hashes in trajectory.value_hashes.items():
            yield _hash_check(tool, hashes, calls)
        if trajectory.ask_before_write:
            yield question_check(evidence, contract.harness, writes_of(evidence))

    return judge


def _quick(contract: Contract) -> Quick | None:
    trajectory = contract.trajectory
    if trajectory is None or trajectory.extra != "allow" or trajectory.max_extra_calls is not None:
        return None
    if not (
        trajectory.allowed_paths
        or trajectory.calls
        or trajectory.before
        or trajectory.ask_before_write
    ):
        return None
    on_path = _quick_path(_legal_paths(trajectory))
    rules = [_quick_rule(rule) for rule in trajectory.calls]
    rules += [_quick_hashes(tool, hashes) for tool, hashes in trajectory.value_hashes.items()]
    pairs = [(any_glob([first]), any_glob([second])) for first, second in trajectory.before]
    asked = asked_first(trajectory, contract.harness) if trajectory.ask_before_write else None

    def settle(evidence: Evidence) -> bool | None:
        calls = evidence.trace.tool_calls
        legal = on_path(evidence)
        if legal is False:
            return False
        for kept in rules:
            if not kept(calls):
                return False
        for first, second in pairs:
            if _before_check(("", ""), first, second, calls).outcome == "failed":
                return False
        return False if asked is not None and not asked(evidence) else legal

    return settle


def _quick_path(paths: Sequence[_Legal]) -> Quick:
    """Whether calls fit a legal path; None where nothing was measured."""
    plain = {
        tuple(step.tool for step in legal.path.path)
        for legal in paths
        if legal.order == "exact"
        and all(
            step.any_arguments and not step.optional and not step.repeat for step in legal.path.path
        )
    }
    others = paths if len(plain) < len(paths) else ()

    def fits(evidence: Evidence) -> bool | None:
        if not paths:
            return True
        if evidence.names in plain and evidence.all_succeeded:
            return True
        calls = evidence.trace.tool_calls
        if any(follow(legal.path.path, calls, legal.order) is not None for legal in others):
            return None if not calls else True
        return False

    return fits


def _quick_rule(rule: CallRule) -> Callable[[Sequence[ToolCall]], bool]:
    """Whether calls are as often as a rule says, and as it says, if it says so of each."""
    named = any_glob([rule.tool])
    args, mode = rule.args, rule.args_mode
    keys = args.keys() if mode == "keys" else None
    least, most, each = rule.min, rule.max, rule.occurrences == "each"

    def kept(calls: Sequence[ToolCall]) -> bool:
        good = 0
        for call in calls:
            if named(call.name):
                arguments = call.arguments
                if (
                    keys <= arguments.keys()
                    if keys is not None and isinstance(arguments, dict)
                    else not args_mismatches(args, mode, arguments)
                ):
                    good += succeeded(call)
                elif each:
                    return False
        return good >= least and (most is None or good <= most)

    return kept


def _quick_hashes(tool: str, hashes: Mapping[str, str]) -> Callable[[Sequence[ToolCall]], bool]:
    """Whether every call of a tool has the values with these hashes."""
    expected = [(key, {"sha256": prefix}) for key, prefix in hashes.items()]

    def kept(calls: Sequence[ToolCall]) -> bool:
        for call in calls:
            if call.name == tool:
                arguments = call.arguments if isinstance(call.arguments, dict) else {}
                for key, wanted in expected:
                    if key not in arguments or mismatch(wanted, arguments[key], key) is not None:
                        return False
        return True

    return kept


def _any_call(index: int) -> bool:
    return True


def _listed(
    used: set[int],
    fitting: Sequence[tuple[CallRule, list[int]]],
    calls: Sequence[ToolCall],
    restricted: Writes,
) -> set[int]:
    """The calls that a path or a rule accounts for.

    Args:
        used: The calls on the path.
        fitting: Each rule with the calls that fit it, failed ones included.
        calls: All calls.
        restricted: Whether a further call like that of an index needs to be accounted for.
    """
    listed = set(used)
    repeated: list[tuple[list[int], int]] = []
    for rule, matched in fitting:
        if rule.occurrences == "each" and not rule.min and rule.max is None:
            continue  # it says how each call must be, and not that one may be made
        demanded = max(rule.min, 1)
        bound = [i for i in matched if succeeded(calls[i]) and restricted(i)]
        if rule.max is None and len(bound) > demanded:
            repeated.append((bound, demanded))
            listed.update(set(matched).difference(bound))
        else:
            listed.update(matched)
    # Without `max` a rule lists as many calls as it demands: where what else may happen is
    # restricted, doing the same thing again is something else. Calls that are listed anyway
    # come first, so that the order of calls does not decide whether one is extra.
    for bound, demanded in repeated:
        listed.update(sorted(bound, key=lambda i: i not in listed)[:demanded])
    return listed


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


class _Legal(NamedTuple):
    """A legal path, and how it fits."""

    path: LegalPath
    order: Order

    @property
    def text(self) -> str:
        """The path as it is shown."""
        return show_path(self.path.path)


def _legal_paths(trajectory: Trajectory) -> list[_Legal]:
    return [_Legal(path, path.order or trajectory.order) for path in trajectory.allowed_paths]


def _path_checks(
    paths: Sequence[_Legal], calls: Sequence[ToolCall]
) -> tuple[list[Check], set[int]]:
    """Whether a legal path was taken, and the indices of the calls that are on it."""
    fitting = [
        (legal, used)
        for legal in paths
        if (used := follow(legal.path.path, calls, legal.order)) is not None
    ]
    if fitting:
        # Of several that fit, the one that accounts for most calls: the others are no extras.
        # Without a call, a path of no calls was taken, and nothing is known of one of some.
        legal, used = max(fitting, key=lambda fit: (len(fit[1]), not fit[0].path.path))
        if legal.order == "subset" and not calls and legal.path.path:
            # Nothing was done that is not allowed, and nothing was measured either.
            reason = "no call was made that could be off the path"
            return [Check(name="path", outcome="skipped", reason=reason)], used
        return [Check(name="path", outcome="passed", observed=legal.text)], used
    found = [(divergence(legal.path, calls, legal.order), legal.order) for legal in paths]
    nearest, order = max(found, key=lambda item: item[0].similarity)
    shared = len({legal.order for legal in paths}) == 1
    expected = " or ".join(
        legal.text + ("" if shared else f" ({legal.order.replace('_', ' ')})") for legal in paths
    ) + (f" ({order.replace('_', ' ')})" if shared else "")
    check = Check(
        name="path",
        outcome="failed",
        expected=expected,
        observed=nearest.diff,
        reason=nearest.reason,
        where=at(calls[nearest.call], nearest.call) if nearest.call < len(calls) else None,
    )
    alike = Check(
        name="path similarity",
        outcome="info",
        observed=f"{nearest.similarity:.2f}",
        reason="F1 of the longest common subsequence with the nearest legal path",
    )
    named = {step.tool for legal in paths for step in legal.path.path}
    return [check, alike], {i for i, call in enumerate(calls) if call.name in named}


def _call_check(
    rule: CallRule, name: str, fits: Match, calls: Sequence[ToolCall], matched: list[int]
) -> Check:
    count = len(matched)
    if rule.min <= count and (rule.max is None or count <= rule.max):
        where = at(calls[matched[0]], matched[0]) if matched else None
        return Check(name=name, outcome="passed", where=where)
    expected = _how_often(rule) + (f" with {_show_args(rule)}" if rule.args else "")
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


def _show_args(rule: CallRule) -> str:
    """The arguments that a rule demands, in words."""
    if rule.args_mode == "keys":
        return f"the arguments {', '.join(rule.args)}"
    return show(rule.args)


def _how_often(rule: CallRule) -> str:
    if rule.max is None:
        return "at least once" if rule.min == 1 else f"at least {rule.min} times"
    if rule.min == rule.max:
        return "once" if rule.min == 1 else f"{rule.min} times"
    return f"{rule.min} to {rule.max} times"


def _forbid_check(calls: Sequence[ToolCall], listed: set[int]) -> Check:
    extra = [(i, call) for i, call in enumerate(calls) if i not in listed]
    return _extra_check("no other calls", "nothing besides the listed calls", extra)


def _reads_only_check(calls: Sequence[ToolCall], listed: set[int], writes: Writes) -> Check:
    extra = [
        (i, call)
        for i, call in enumerate(calls)
        if i not in listed and writes(i) and succeeded(call)
    ]
    expected = "no successful write besides the listed calls"
    return _extra_check("no other writes", expected, extra)


def _extra_check(name: str, expected: str, extra: Sequence[tuple[int, ToolCall]]) -> Check:
    if not extra:
        return Check(name=name, outcome="passed")
    index, call = extra[0]
    more = f" (and {len(extra) - 1} more)" if len(extra) > 1 else ""
    return Check(
        name=name,
        outcome="failed",
        expected=expected,
        observed=", ".join(name_call(other, i) for i, other in extra),
        reason=f"{name_call(call, index)} with {show(call.arguments)} is not listed{more}",
        where=at(call, index),
    )


def _each_check(
    rule: CallRule, name: str, named: list[int], calls: Sequence[ToolCall], matched: list[int]
) -> Check:
    """Whether every call of a rule's tool has the arguments, wherever it is and however it went."""
    fine = set(matched)
    off = [(i, calls[i]) for i in named if i not in fine]
    name = f"every {name}"
    if not off:
        made = bool(matched)
        return Check(
            name=name,
            outcome="passed" if made else "skipped",
            reason=None if made else f"{rule.tool} was not called",
        )
    index, call = off[0]
    more = f" (and {len(off) - 1} more)" if len(off) > 1 else ""
    difference = args_mismatches(rule.args, rule.args_mode, call.arguments)[0]
    return Check(
        name=name,
        outcome="failed",
        expected=f"every call with {_show_args(rule)}",
        observed=f"{name_call(call, index)} with {show(call.arguments)}",
        reason=f"{name_call(call, index)}: {difference}{more}",
        where=at(call, index),
    )


def _extra_calls_check(most: int, calls: Sequence[ToolCall], listed: set[int]) -> Check:
    extra = [(i, call) for i, call in enumerate(calls) if i not in listed]
    if len(extra) <= most:
        return Check(name="extra calls", outcome="passed", observed=f"{len(extra)}")
    index, call = extra[most]
    return Check(
        name="extra calls",
        outcome="failed",
        expected=f"at most {most} besides the listed calls",
        observed=", ".join(name_call(other, i) for i, other in extra),
        reason=f"{len(extra)} calls besides the listed ones, at most {most} allowed",
        where=at(call, index),
    )


def _before_check(
    pair: tuple[str, ...], first: Match, second: Match, calls: Sequence[ToolCall]
) -> Check:
    name = f"before: {pair[0]} → {pair[1]}"
    for index, call in enumerate(calls):
        # A tool that both globs fit may well come first of its own.
        if second(call.name) and not first(call.name):
            return Check(
                name=name,
                outcome="failed",
                expected=f"{pair[0]} to succeed before any {pair[1]}",
                observed=" → ".join(other.name for other in calls[: index + 1]),
                reason=f"{name_call(call, index)} came before {pair[0]} had succeeded",
                where=at(call, index),
            )
        if first(call.name) and succeeded(call):
            return Check(name=name, outcome="passed", where=at(call, index))
    return Check(name=name, outcome="passed", observed=f"no {pair[1]}")


def _hash_check(tool: str, hashes: Mapping[str, str], calls: Sequence[ToolCall]) -> Check:
    name = f"value hashes: {tool}"
    made = [(i, call) for i, call in enumerate(calls) if call.name == tool]
    if not made:
        return Check(name=name, outcome="skipped", reason=f"{tool} was not called")
    expected = {key: {"sha256": prefix} for key, prefix in hashes.items()}
    for index, call in made:
        # Arguments that are no object would be quoted, and are what must not be.
        arguments = call.arguments if isinstance(call.arguments, dict) else {}
        differences = args_mismatches(expected, "subset", arguments)
        if differences:
            return Check(
                name=name,
                outcome="failed",
                expected=f"values with the hashes {show(dict(hashes))}",
                # The value itself is why hashes are compared: it must not be quoted.
                observed=name_call(call, index),
                reason=f"{name_call(call, index)}: {differences[0]}",
                where=at(call, index),
            )
    return Check(name=name, outcome="passed", where=at(made[0][1], made[0][0]))


PLUGIN = Plugin(
    "trajectory",
    "the calls took a path that is allowed, and nothing else was done",
    _prepare,
    _quick,
)
