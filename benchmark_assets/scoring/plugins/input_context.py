"""`input_context`: each resource was read, and each term and qualifier occurs in the trace.

What counts as read: a read of the resource's file that did not fail. Where resources share a
file, the name must occur besides, as a term must: in some call's arguments or result, case
kept. Writing a file is not reading it.

A read is *unrelated* if its file is no declared resource's and not among `knowledge`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.resources import Target
from benchmark_assets.model.trace import FileEvent
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.evidence import Evidence
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


def _prepare(contract: Contract) -> Judge | None:
    demands = contract.input_context
    if demands is None:
        return None
    targets = [(contract.target(demand), demand.terms) for demand in demands]
    declared = declared_paths(contract)

    def judge(evidence: Evidence) -> Iterator[Check]:
        activity = evidence.activity(contract.harness)
        unknown = unknown_harness(evidence, activity, bool(activity.files))
        if unknown is not None:
            yield unknown
            return
        paths = path_map(activity, declared)
        reads = [event for event in activity.files if event.operation == "read"]
        labels: set[str] = set()
        for target, terms in targets:
            if target.label not in labels:
                labels.add(target.label)
                yield _read(evidence, target, paths, reads)
            named = [target.name] if target.shares_file and target.name is not None else []
            for kind, texts in (("name", named), ("qualifier", target.qualifiers), ("term", terms)):
                for text in texts:
                    check = f"{kind}: {target.label}: {text}"
                    yield mentioned(evidence, check, text, whole=kind == "name")
        yield from _unrelated(contract, evidence, paths, reads)

    return judge


def _read(evidence: Evidence, target: Target, paths: PathMap, reads: Sequence[FileEvent]) -> Check:
    name = f"read: {target.label}"
    fitting = [event for event in reads if paths.declared_of(event.path) in target.paths]
    good = [event for event in fitting if event.status != "error"]
    if good:
        return Check(name=name, outcome="passed", where=at_index(evidence, good[0].call))
    expected = f"{' or '.join(target.paths)} is read"
    if fitting:
        calls = [event.call for event in fitting if event.call is not None]
        return Check(
            name=name,
            outcome="failed",
            expected=expected,
            observed=f"every attempt failed: {name_calls(evidence, calls)}",
            reason=f"{target.label} could not be read",
            where=at_index(evidence, fitting[-1].call),
        )
    return Check(
        name=name,
        outcome="failed",
        expected=expected,
        observed=_near_misses(target, paths, reads),
        reason=f"{target.label} was never read",
    )


def _near_misses(target: Target, paths: PathMap, reads: Sequence[FileEvent]) -> str:
    """What was read, with files of the same name first: the usual cause is a wrong path."""
    seen = dict.fromkeys(event.path for event in reads)
    same = [near for path in target.paths for near in paths.nearly(path)]
    if same:
        return f"another file that ends like it was seen: {', '.join(same)}"
    return f"{len(seen)} other files were read" if seen else "no file was read"


def _unrelated(
    contract: Contract, evidence: Evidence, paths: PathMap, reads: Sequence[FileEvent]
) -> Iterator[Check]:
    unrelated: dict[str, list[FileEvent]] = {}
    for event in reads:
        related = paths.declared_of(event.path) is not None
        if event.status != "error" and not (related or paths.fits(event.path, contract.knowledge)):
            unrelated.setdefault(event.path, []).append(event)
    fails = contract.unrelated_reads == "fail"
    if not unrelated:
        if fails:
            yield Check(name="no unrelated reads", outcome="passed")
        return
    for path, events in unrelated.items() if fails else ():
        yield Check(
            name=f"unrelated read: {path}",
            outcome="failed",
            expected="only declared resources and knowledge are read",
            observed=name_calls(evidence, [e.call for e in events if e.call is not None]) or path,
            reason=f"{path} is neither a declared resource nor knowledge",
            where=at_index(evidence, events[0].call),
        )
    if not fails:
        yield Check(name="unrelated reads", outcome="info", observed=", ".join(unrelated))


PLUGIN = Plugin(
    "input_context",
    "declared resources were read, and terms occur in some tool call",
    _prepare,
)
