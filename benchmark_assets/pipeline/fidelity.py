"""Snapshots in, comparisons of their ledgers out: what is stale, and comparing it.

Belongs here: the key of a model's date, the plan, the unit of work. Does not belong here: rules
(`scoring.trace_fidelity`) or the month files' bytes (`adapters.fidelity_months`).

Only days with a trace in which a framework reports on its executors have anything to compare; a
snapshot file's footer says how many those are, so that projects without any never open one. A
day that cannot be compared is reported and stays stale; it holds up no other.
"""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmark_assets.adapters.fidelity_months import (
    Compared,
    list_fidelity,
    read_fidelity,
    update_fidelity,
)
from benchmark_assets.adapters.snapshot_files import (
    SnapshotFooter,
    list_partitions,
    read_partition_footer,
    read_snapshots,
)
from benchmark_assets.adapters.sources import Progress, quiet
from benchmark_assets.adapters.store import fidelity_path, snapshot_path
from benchmark_assets.leaderboard.fidelity import model_fidelity
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.standings import ModelFidelity
from benchmark_assets.pipeline.ingest import PartitionId
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.scoring.trace_fidelity import RULES_VERSION, rule_set
from benchmark_assets.scoring.trace_fidelity.rows import fidelity_rows

RULES = rule_set("strict")
"""How ledgers are compared in the graph."""


def fidelity_key(footer: SnapshotFooter | None) -> str | None:
    """The key of one date of one model: hash of all that its rows depend on.

    None if there is nothing to compare: no snapshots, none that may be evaluated, or none in
    which a framework reports on its executors.
    """
    if footer is None or not footer.accounted or not footer.ledgers:
        return None
    return content_hash(footer.content, RULES.name, RULES_VERSION)


@dataclass(frozen=True)
class FidelityState:
    """What the store holds and should hold.

    Attributes:
        expected: (date, model) → key, as it should be.
        stored: (date, model) → key, as it is.
        ledgers: (date, model) → traces in which a framework reports on its executors.
        without: Model → traces in which none does.
    """

    expected: dict[PartitionId, str]
    stored: dict[PartitionId, str]
    ledgers: dict[PartitionId, int]
    without: Mapping[str, int] = field(default_factory=dict)

    @property
    def stale(self) -> list[PartitionId]:
        """What is to be compared, sorted."""
        return [key for key, wanted in self.expected.items() if self.stored.get(key) != wanted]

    @property
    def gone(self) -> list[PartitionId]:
        """What was compared and has nothing to compare any more, sorted."""
        return [key for key in self.stored if key not in self.expected]


def read_fidelity_state(workspace: Workspace) -> FidelityState:
    """Read every footer: what there is, and by that what there should be."""
    expected: dict[PartitionId, str] = {}
    ledgers: dict[PartitionId, int] = {}
    without: Counter[str] = Counter()
    for (date, model), footer in list_partitions(workspace.store).items():
        without[model] += footer.traces - footer.ledgers
        key = fidelity_key(footer)
        if key is not None:
            expected[PartitionId(date, model)] = key
            ledgers[PartitionId(date, model)] = footer.ledgers
    stored = {
        PartitionId(date, month.model): key
        for month in list_fidelity(workspace.store).values()
        for date, key in month.keys.items()
    }
    return FidelityState(expected, dict(sorted(stored.items())), ledgers, without)


def drop_gone(workspace: Workspace) -> int:
    """Drop comparisons of traces that are there no more; returns how many dates of models."""
    gone = read_fidelity_state(workspace).gone
    dropped: dict[tuple[str, str], dict[str, Compared | None]] = defaultdict(dict)
    for key in gone:
        dropped[key.model, key.date[:7]][key.date] = None
    for (model, month), dates in sorted(dropped.items()):
        _commit(workspace, model, month, dates)
    return len(gone)


class CheckedPartition(NamedTuple):
    """One date × model after its ledgers were compared: its key and what it came to.

    Both are None if there was nothing to compare, or if that failed.
    """

    version: str | None
    fidelity: ModelFidelity | None


class CheckedLedgers(NamedTuple):
    """What comparing partitions gave, and what went wrong without stopping anything else."""

    partitions: dict[PartitionId, CheckedPartition]
    problems: dict[PartitionId, Problem]


def check_ledgers(
    workspace: Workspace, wanted: Collection[PartitionId], progress: Progress = quiet
) -> CheckedLedgers:
    """Compare what is stale of some partitions; one with nothing stale costs nothing.

    Works model by model and month by month, so that memory holds one month of one model.
    """
    state = read_fidelity_state(workspace)
    asked = set(wanted)
    todo = [key for key in state.stale if key in asked]
    by_month: dict[tuple[str, str], list[str]] = defaultdict(list)
    for key in todo:
        by_month[key.model, key.date[:7]].append(key.date)
    problems: dict[PartitionId, Problem] = {}
    done = 0
    for (model, month), dates in sorted(by_month.items()):
        compared: dict[str, Compared | None] = {}
        for date in dates:
            progress("comparing ledgers", done, len(todo))
            done += 1
            try:
                compared[date] = _compare(workspace, date, model)
            except InputError as error:
                problems[PartitionId(date, model)] = error.problems[0]
        _commit(workspace, model, month, compared)
    return CheckedLedgers(_partitions(workspace, asked), problems)


def _compare(workspace: Workspace, date: str, model: str) -> Compared | None:
    # The key is that of the file as it is before it is read: if another process replaces it
    # meanwhile, the key is no longer the current one and the rows are not kept.
    key = _current_key(workspace, model, date)
    if key is None:
        return None
    return Compared(
        key,
        tuple(
            row
            for item in read_snapshots(workspace.store, date, model)
            for row in fidelity_rows(
                date, model, item.snapshot, RULES, source=item.source, source_file=item.file
            )
        ),
    )


def _current_key(workspace: Workspace, model: str, date: str) -> str | None:
    return fidelity_key(read_partition_footer(workspace.store, snapshot_path(date, model)))


def _commit(
    workspace: Workspace, model: str, month: str, dates: Mapping[str, Compared | None]
) -> bool:
    def current_key(date: str) -> str | None:
        return _current_key(workspace, model, date)

    return update_fidelity(workspace.store, model, month, dates, current_key)


def _partitions(
    workspace: Workspace, wanted: Collection[PartitionId]
) -> dict[PartitionId, CheckedPartition]:
    """What is stored of some partitions, now; each month file is read once."""
    store = workspace.store
    stored = read_fidelity_state(workspace).stored
    found = dict.fromkeys(sorted(wanted), CheckedPartition(None, None))
    for model, month in sorted({(key.model, key.date[:7]) for key in wanted if key in stored}):
        rows = read_fidelity(store, [fidelity_path(model, month)])
        for date, group in itertools.groupby(rows, key=lambda row: row.date):
            key = PartitionId(date, model)
            if key in found:
                found[key] = CheckedPartition(stored[key], model_fidelity(model, group))
    return found


def fidelity_of_models(workspace: Workspace, state: FidelityState) -> tuple[ModelFidelity, ...]:
    """What every model's ledgers came to over all dates, by name.

    What is stale counts as not compared: figures that nobody checked must not pass.
    """
    stale = set(state.stale)
    waiting: Counter[str] = Counter()
    for key in stale:
        waiting[key.model] += state.ledgers[key]
    found = []
    for model in sorted({key.model for key in state.expected}):
        months = {key.date[:7] for key in state.stored if key.model == model}
        rows = (
            row
            for row in read_fidelity(
                workspace.store, [fidelity_path(model, month) for month in sorted(months)]
            )
            if (key := PartitionId(row.date, model)) in state.expected and key not in stale
        )
        fidelity = model_fidelity(model, rows, waiting[model], state.without.get(model, 0))
        if fidelity is not None:
            found.append(fidelity)
    return tuple(found)


def fidelity_keys_hash(state: FidelityState) -> str:
    """One hash for all that was compared, and all that still is to be."""
    return content_hash(
        canonical_json([[*key, version] for key, version in state.stored.items()]),
        canonical_json([[*key, state.ledgers[key]] for key in state.stale]),
        canonical_json(dict(sorted(state.without.items()))),
    )
