"""`output`: each resource was created, updated or deleted as said, and nothing else was changed.

What was done to a resource is the net effect of the whole trace (`scoring/changes`). `match` is
verified on the call that changed the resource: on the last such call that says anything about
it, so that a right value overwritten by a wrong one fails, and all of it on that one call. Its
arguments and the content it left count, as far as the trace shows them; a content that a later
call wrote over does not, nor what the call wrote to other files. Where any element of a kind is
meant and the trace shows which ones were changed as demanded, those alone are looked at.

A change is *unrelated* if no entry of the section is about it, or if it also created, altered or
removed another element of a JSON file than those of the entries. A file that the trace created
and took away again, such as a scratch file, is no change. It is listed, and so are calls that may
have changed files unseen, such as shell scripts: nothing can be said for or against them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmark_assets.model.contract import Contract, Operation, OutputDemand
from benchmark_assets.model.resources import Target
from benchmark_assets.model.trace import FileEvent
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.activity import Activity
from benchmark_assets.scoring.changes import (
    Change,
    NetEffect,
    changed_elements,
    concerns,
    element_texts,
    file_key,
    follow,
    net_effect,
)
from benchmark_assets.scoring.content import (
    Evidenced,
    document_of,
    evidence_for,
    occurs,
    with_json_read,
)
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

_OWN_RECORD = "the trace's own record of files"
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
                yield _matched(evidence, demand, target, effect, changes, check)
            for text in target.qualifiers:
                yield mentioned(evidence, f"qualifier: {target.label}: {text}", text)
        yield from _unrelated(evidence, paths, [target for _, target in demands], changes)
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
    return name_calls(evidence, calls) or _OWN_RECORD


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
        return f"only attempts that failed: {name_calls(evidence, calls) or _OWN_RECORD}"
    near = [path for wanted in target.paths for path in paths.nearly(wanted)]
    if near:
        return f"another file that ends like it was seen: {', '.join(near)}"
    changed = [e for e in activity.files if e.operation != "read" and e.status != "error"]
    if activity.opaque or activity.unknown:
        return "no such change was seen" if changed else "no change of a file was seen"
    return "no such change" if changed else "no file was changed"


# Evidence.


def _matched(
    evidence: Evidence,
    demand: OutputDemand,
    target: Target,
    effect: NetEffect,
    changes: Sequence[Change],
    done: Check,
) -> Check:
    name = f"match: {target.label}"
    wanted = show(demand.match if isinstance(demand.match, dict) else list(demand.match))
    if done.outcome != "passed":
        return Check(
            name=name, outcome="skipped", expected=wanted, observed="no such change to look at"
        )
    found, last, overwritten = Evidenced("silent", "nothing of it is there"), None, False
    by_call: dict[int | None, list[Change]] = {}
    for change in changes:
        by_call.setdefault(change.call, []).append(change)
    for change in reversed(effect.changes):
        documents = _documents(evidence, demand, change, by_call[change.call], overwritten)
        said = _said(demand, target, effect, documents)
        if said.finding == "fits":
            return Check(name=name, outcome="passed", where=at_index(evidence, change.call))
        if said.finding == "differs" or last is None:
            found, last = said, change
        if said.finding == "differs":
            break
        overwritten = overwritten or change.after is not None
    return Check(
        name=name,
        outcome="failed",
        expected=f"{wanted} in one call's arguments or content",
        observed=found.detail,
        reason=f"{target.label}: {found.detail}",
        where=None if last is None else at_index(evidence, last.call),
    )


_BEST = ("silent", "differs", "fits")


def _said(
    demand: OutputDemand, target: Target, effect: NetEffect, documents: _Documents
) -> Evidenced:
    """What one call says: of an element, or of any of those that were changed as demanded."""
    everything = [*documents.arguments, *documents.contents]
    if target.name is not None or effect.names is None:
        name = target.name if target.shares_file else None
        return evidence_for(demand.match, everything, name)
    said = [
        evidence_for(demand.match, everything, name)
        for name in sorted(effect.names.get(demand.operation, ()))
    ]
    said.append(evidence_for(demand.match, documents.beside, None))
    return max(said, key=lambda one: _BEST.index(one.finding))


@dataclass(frozen=True)
class _Documents:
    """What one call shows of one change.

    Attributes:
        arguments: The call's arguments, without what belongs to other files.
        beside: The arguments without what belongs to any file.
        contents: What it wrote and the content it left; of a deletion, what it removed.
    """

    arguments: tuple[object, ...]
    beside: tuple[object, ...]
    contents: tuple[object, ...]


def _documents(
    evidence: Evidence,
    demand: OutputDemand,
    change: Change,
    of_call: Sequence[Change],
    overwritten: bool,
) -> _Documents:
    """What one call shows; of contents that a later call wrote over, nothing."""
    gone = demand.operation == "DELETE"
    own = {*change.written, *change.replaced}
    # Of a call that changes several files, each content is evidence for its own file alone.
    foreign = {
        text
        for other in of_call
        if other.path != change.path
        for text in (*other.written, *other.replaced)
    } - own
    if overwritten and not gone:
        without, contents = foreign | own, ()
    else:
        without = foreign if gone else foreign | set(change.replaced)
        texts = [*change.replaced, change.before] if gone else [*change.written, change.after]
        contents = tuple(document_of(text) for text in texts if text is not None)
    calls = evidence.trace.tool_calls
    if change.call is None or not 0 <= change.call < len(calls):
        return _Documents((), (), contents)
    arguments = calls[change.call].arguments
    return _Documents(
        (with_json_read(arguments, frozenset(without)),),
        (with_json_read(arguments, frozenset(foreign | own)),),
        contents,
    )


# What else happened.


def _unrelated(
    evidence: Evidence, paths: PathMap, targets: Sequence[Target], changes: Sequence[Change]
) -> Iterator[Check]:
    by_file: dict[str, list[Change]] = {}
    for change in changes:
        if not _related(targets, change):
            by_file.setdefault(file_key(change.path, paths), []).append(change)
    unrelated: dict[str, list[Change]] = {}
    undone: list[str] = []
    for found in by_file.values():
        shared = any(found[0].declared in target.paths for target in targets)
        path = found[0].declared or paths.relative(found[0].path) or found[0].path
        if not shared and found[0].existed is False and not found[-1].exists:
            undone.append(f"{path} by {_calls(evidence, found)}")
        else:
            unrelated[path] = found
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
    if undone:
        observed = f"created and gone again: {'; '.join(undone)}"
        yield Check(name="undone changes", outcome="info", observed=observed)


def _related(targets: Sequence[Target], change: Change) -> bool:
    """Whether all that a change did is what some targets are about."""
    own = [target for target in targets if change.declared in target.paths]
    names = [target.name for target in own if target.shares_file and target.name is not None]
    if len(names) < len(own):
        return True  # The whole file, or any element of it.
    changed = changed_elements(change)
    if names and changed is not None and not changed:
        return True  # The file was written with what was in it.
    if not any(concerns(change, name) for name in names):
        return False
    # One call may have changed other elements beside those that were to be changed. An element
    # that holds or names one of them may have been changed for its sake.
    others = (changed or frozenset()) - set(names)
    return not any(_is_apart(change, other, names) for other in others)


def _is_apart(change: Change, element: str, names: Sequence[str]) -> bool:
    """Whether an element is one of its own beside the named ones: an object without their names."""
    texts = element_texts(change, element)
    return bool(texts) and not any(occurs(name, text) for name in names for text in texts)


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
