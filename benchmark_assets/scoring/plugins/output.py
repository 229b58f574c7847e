"""`output`: each resource was created, updated or deleted as said, and nothing else was changed.

What was done to a resource is the net effect of the whole trace (`scoring/changes`). `match` is
verified on the call that changed the resource: on the last such call that says anything about
it, so that a right value overwritten by a wrong one fails, and all of it on that one call. Its
arguments and the content it left count, as far as the trace shows them.

A change is *unrelated* if no entry of the section is about it. Calls that may have changed files
unseen, such as shell scripts, are listed: nothing can be said for or against them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmark_assets.model.contract import Contract, Operation, OutputDemand
from benchmark_assets.model.resources import Target
from benchmark_assets.model.trace import FileEvent
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.activity import Activity
from benchmark_assets.scoring.changes import Change, NetEffect, concerns, follow, net_effect
from benchmark_assets.scoring.content import Evidenced, evidence_for, parsed, with_json_read
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.matching import show
from benchmark_assets.scoring.paths import PathMap
from benchmark_assets.scoring.plugins.base import (
    Judge,
    Plugin,
    at_index,
    declared_paths,
    mentioned,
    name_calls,
    path_map,
    unknown_harness,
)

_DONE = {"CREATE": "created", "UPDATE": "updated", "DELETE": "deleted"}


def _prepare(contract: Contract) -> Judge | None:
    if contract.output is None:
        return None
    demands = [(demand, contract.target(demand)) for demand in contract.output]
    declared = declared_paths(contract)

    def judge(evidence: Evidence) -> Iterator[Check]:
        activity = evidence.activity(contract.harness)
        unknown = unknown_harness(evidence, activity, bool(activity.files))
        if unknown is not None:
            yield unknown
            return
        paths = path_map(activity, declared)
        changes = follow(activity.files, paths)
        for demand, target in demands:
            effect = net_effect(target, changes)
            check = _done(evidence, activity, paths, demand, target, effect)
            yield check
            if demand.match:
                yield _matched(evidence, demand, target, effect, check)
            for text in target.qualifiers:
                yield mentioned(evidence, f"qualifier: {target.label}: {text}", text)
        yield from _unrelated(evidence, [target for _, target in demands], changes)
        yield from _unseen(evidence, activity)

    return judge


def _done(
    evidence: Evidence,
    activity: Activity,
    paths: PathMap,
    demand: OutputDemand,
    target: Target,
    effect: NetEffect,
) -> Check:
    name = f"{demand.operation}: {target.label}"
    expected = f"{target.label} is {_DONE[demand.operation]} in {' or '.join(target.paths)}"
    if not effect.changes:
        attempts = _failed_attempts(activity, paths, target)
        return Check(
            name=name,
            outcome="failed",
            expected=expected,
            observed=_attempted(evidence, activity, paths, target, attempts),
            reason=f"{target.label} was not {_DONE[demand.operation]}",
            where=at_index(evidence, attempts[-1].call) if attempts else None,
        )
    last = effect.changes[-1]
    observed = f"{_in_words(effect.possible)} by {_calls(evidence, effect.changes)}"
    if demand.operation not in effect.possible:
        return Check(
            name=name,
            outcome="failed",
            expected=expected,
            observed=observed,
            reason=f"{target.label} was {_in_words(effect.possible)}, "
            f"not {_DONE[demand.operation]}",
            where=at_index(evidence, last.call),
        )
    if len(effect.possible) > 1:
        observed += "; the trace cannot tell which, either is accepted"
    return Check(
        name=name, outcome="passed", observed=observed, where=at_index(evidence, last.call)
    )


def _in_words(possible: frozenset[Operation]) -> str:
    words = [_DONE[operation] for operation in _DONE if operation in possible]
    return " or ".join(words) or "left as it was"


def _calls(evidence: Evidence, changes: Sequence[Change]) -> str:
    calls = dict.fromkeys(change.call for change in changes if change.call is not None)
    return name_calls(evidence, calls) or "the trace's own record of files"


def _failed_attempts(activity: Activity, paths: PathMap, target: Target) -> list[FileEvent]:
    return [
        event
        for event in activity.files
        if event.status == "error"
        and event.operation != "read"
        and paths.declared_of(event.path) in target.paths
    ]


def _attempted(
    evidence: Evidence,
    activity: Activity,
    paths: PathMap,
    target: Target,
    attempts: Sequence[FileEvent],
) -> str:
    if attempts:
        calls = dict.fromkeys(event.call for event in attempts if event.call is not None)
        return f"only attempts that failed: {name_calls(evidence, calls)}"
    near = [path for wanted in target.paths for path in paths.nearly(wanted)]
    if near:
        return f"another file that ends like it was seen: {', '.join(near)}"
    changed = [e for e in activity.files if e.operation != "read" and e.status != "error"]
    text = "no such change" if changed else "no file was changed"
    return f"{text} was seen" if activity.opaque or activity.unknown else text


# Evidence.


def _matched(
    evidence: Evidence, demand: OutputDemand, target: Target, effect: NetEffect, done: Check
) -> Check:
    name = f"match: {target.label}"
    wanted = show(demand.match if isinstance(demand.match, dict) else list(demand.match))
    if done.outcome != "passed":
        return Check(
            name=name, outcome="skipped", expected=wanted, observed="no such change to look at"
        )
    element = target.name if target.shares_file else None
    found = Evidenced("silent", "nothing of it is there")
    for change in reversed(effect.changes):
        said = evidence_for(demand.match, _documents(evidence, demand, change), element)
        if said.finding == "fits":
            return Check(name=name, outcome="passed", where=at_index(evidence, change.call))
        if said.finding == "differs" or found.finding == "silent":
            found, last = said, change
        if said.finding == "differs":
            break
    return Check(
        name=name,
        outcome="failed",
        expected=f"{wanted} in one call's arguments or content",
        observed=found.detail,
        reason=f"{target.label}: {found.detail}",
        where=at_index(evidence, last.call),
    )


def _documents(evidence: Evidence, demand: OutputDemand, change: Change) -> list[object]:
    """What one call shows: its arguments, what it wrote, the content it left (or removed)."""
    documents: list[object] = []
    calls = evidence.trace.tool_calls
    gone = demand.operation == "DELETE"
    if change.call is not None and change.call < len(calls):
        without = frozenset() if gone else frozenset(change.replaced)
        documents.append(with_json_read(calls[change.call].arguments, without))
    texts = [*change.replaced, change.before] if gone else [*change.written, change.after]
    for text in texts:
        if text is not None:
            value = parsed(text)
            documents.append(text if value is None else value)
    return documents


# What else happened.


def _unrelated(
    evidence: Evidence, targets: Sequence[Target], changes: Sequence[Change]
) -> Iterator[Check]:
    unrelated: dict[str, list[Change]] = {}
    for change in changes:
        if not any(_about(target, change) for target in targets):
            unrelated.setdefault(change.declared or change.path, []).append(change)
    for path, found in unrelated.items():
        shared = any(found[0].declared in target.paths for target in targets)
        what = "something else in it" if shared else "it"
        yield Check(
            name=f"unrelated change: {path}",
            outcome="failed",
            expected="no change beyond the declared output",
            observed=_calls(evidence, found),
            reason=f"{path}: {what} was changed and is not among the declared output",
            where=at_index(evidence, found[0].call),
        )
    if not unrelated:
        yield Check(name="no unrelated changes", outcome="passed")


def _about(target: Target, change: Change) -> bool:
    if change.declared not in target.paths:
        return False
    return not target.shares_file or target.name is None or concerns(change, target.name)


def _unseen(evidence: Evidence, activity: Activity) -> Iterator[Check]:
    calls = sorted({*activity.opaque, *activity.unknown})
    if calls:
        observed = f"may have changed files unseen: {name_calls(evidence, calls)}"
        yield Check(name="unseen changes", outcome="info", observed=observed)


PLUGIN = Plugin(
    "output",
    "declared resources were created, updated or deleted, and nothing else was",
    _prepare,
)
