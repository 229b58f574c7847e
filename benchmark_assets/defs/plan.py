"""Runs of the graph that would bring it up to date, the fewest there can be.

Belongs here: turning what is stale (`pipeline.plan`) into ranges of partitions. Does not belong
here: starting runs (`runs`, `automation`).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from benchmark_assets.defs import partitions
from benchmark_assets.model.identity import partition_key
from benchmark_assets.pipeline.cells import CellId
from benchmark_assets.pipeline.freshness import leaderboard_is_current, report_is_current
from benchmark_assets.pipeline.ingest import PartitionId
from benchmark_assets.pipeline.workspace import Workspace


@dataclass(frozen=True)
class PlannedRun:
    """One run: which assets, over which range of partitions (None: not partitioned)."""

    assets: tuple[str, ...]
    range: partitions.KeyRange | None = None

    @property
    def size(self) -> int:
        """How many partitions it covers."""
        return self.range.size if self.range else 1

    def tags(self) -> dict[str, str]:
        """The run's tags."""
        return self.range.tags() if self.range else {}


@dataclass(frozen=True)
class Keys:
    """The dynamic partitions there are, in the order in which Dagster ranges over them."""

    models: Sequence[str]
    contracts: Sequence[str]

    def with_new(self, models: Iterable[str], contracts: Iterable[str]) -> "Keys":
        """These and new ones behind them, in the order in which they would be registered."""
        return Keys(_extended(self.models, models), _extended(self.contracts, contracts))


def _extended(known: Sequence[str], names: Iterable[str]) -> list[str]:
    new = sorted({partition_key(name) for name in names} - set(known))
    return [*known, *new]


def contract_runs(changed: Iterable[str], keys: Keys) -> list[PlannedRun]:
    """Runs that store changed contracts."""
    wanted = [partition_key(contract_id) for contract_id in changed]
    return [PlannedRun(("contracts",), r) for r in partitions.ranges(wanted, keys.contracts)]


def snapshot_runs(
    build: Collection[PartitionId], keys: Keys, days: partitions.Span
) -> tuple[list[PlannedRun], list[PartitionId]]:
    """Runs that build snapshots, and those of `build` that are no partitions by their day."""
    found, outside = _dated(build, keys, days)
    return [PlannedRun(("trace_snapshots",), r) for r in found], outside


def fidelity_runs(
    stale: Collection[PartitionId], keys: Keys, days: partitions.Span
) -> list[PlannedRun]:
    """Runs that compare ledgers; what is no partition by its day has no snapshots either."""
    found, _ = _dated(stale, keys, days)
    return [PlannedRun(("workflow_fidelity",), r) for r in found]


def _dated(
    wanted: Collection[PartitionId], keys: Keys, days: partitions.Span
) -> tuple[list[partitions.KeyRange], list[PartitionId]]:
    """Ranges over dates × models, and what lies outside the days."""
    first, last = days.first.isoformat(), days.last.isoformat()
    outside = {key for key in wanted if not first <= key.date <= last}
    order = [
        (days.first + timedelta(days=n)).isoformat()
        for n in range((days.last - days.first).days + 1)
    ]
    inside = {(key.date, partition_key(key.model)) for key in wanted if key not in outside}
    return partitions.rectangles(inside, order, keys.models), sorted(outside)


def cell_runs(cells: Collection[CellId], keys: Keys) -> list[PlannedRun]:
    """Runs that evaluate cells."""
    wanted = {(partition_key(c.contract), partition_key(c.model)) for c in cells}
    found = partitions.rectangles(wanted, keys.contracts, keys.models)
    return [PlannedRun(("contract_evaluations",), r) for r in found]


def publication_runs(workspace: Workspace) -> list[PlannedRun]:
    """The run that publishes, unless the current edition and its report are what it would give."""
    if not leaderboard_is_current(workspace):
        return [PlannedRun(("leaderboard", "benchmark_report"))]
    if not report_is_current(workspace):
        return [PlannedRun(("benchmark_report",))]
    return []
