"""What is stale, planned before anything runs.

Belongs here: comparing files, sources and store. Does not belong here: Dagster's partitions and
runs (`defs.plan`): a command that finds nothing stale never loads Dagster.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from benchmark_assets.adapters.contract_files import ContractSet
from benchmark_assets.pipeline.cells import CellId, read_state, stale_cells, stale_contracts
from benchmark_assets.pipeline.fidelity import read_fidelity_state
from benchmark_assets.pipeline.ingest import Inventory, PartitionId, stale_partitions
from benchmark_assets.pipeline.workspace import Workspace


@dataclass(frozen=True)
class Selection:
    """What a user asked for; empty means everything. Dates are `YYYY-MM-DD`, inclusive."""

    first: str | None = None
    last: str | None = None
    models: frozenset[str] = frozenset()
    contracts: frozenset[str] = frozenset()

    def takes_partition(self, key: PartitionId) -> bool:
        """Whether a partition of snapshots is asked for."""
        return (
            (self.first is None or key.date >= self.first)
            and (self.last is None or key.date <= self.last)
            and (not self.models or key.model in self.models)
        )

    def takes_cell(self, cell: CellId) -> bool:
        """Whether a cell is asked for."""
        return (not self.models or cell.model in self.models) and (
            not self.contracts or cell.contract in self.contracts
        )


@dataclass(frozen=True)
class StaleInputs:
    """What the contract files and sources have that the store has not.

    Attributes:
        contracts: Ids to store, because they are new or changed.
        retired: Ids in the store that no file has any more.
        build: Partitions to build.
        remove: Partitions that no file holds traces for any more.
    """

    contracts: tuple[str, ...]
    retired: tuple[str, ...]
    build: tuple[PartitionId, ...]
    remove: tuple[PartitionId, ...]


def stale_inputs(
    workspace: Workspace, loaded: ContractSet, inventory: Inventory, selection: Selection
) -> StaleInputs:
    """Compare contract files and sources with the store.

    A contract whose file cannot be read is not gone: as long as any file is broken, none is
    retired.
    """
    changed, gone = stale_contracts(workspace, [file.contract for file in loaded.contracts])
    build, remove = stale_partitions(workspace, inventory)
    return StaleInputs(
        contracts=tuple(contract.id for contract in changed),
        retired=() if loaded.problems else tuple(gone),
        build=tuple(key for key in build if selection.takes_partition(key)),
        remove=tuple(key for key in remove if selection.takes_partition(key)),
    )


def cells_to_evaluate(workspace: Workspace, selection: Selection) -> dict[CellId, list[str]]:
    """Stale cells that were asked for, with their stale dates."""
    state = read_state(workspace)
    stale = stale_cells(state).dates
    return {cell: dates for cell, dates in stale.items() if selection.takes_cell(cell)}


def ledgers_to_compare(workspace: Workspace, selection: Selection) -> list[PartitionId]:
    """Partitions whose ledgers are to be compared and were asked for, sorted."""
    return [key for key in read_fidelity_state(workspace).stale if selection.takes_partition(key)]


def all_models(inventory: Inventory) -> Collection[str]:
    """The models that the sources hold traces of, sorted."""
    return sorted({key.model for key in inventory.expected()})
