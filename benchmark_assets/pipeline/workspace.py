"""One project opened for work: its settings, its store, its contracts.

Belongs here: what every step needs to start. Does not belong here: any step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from benchmark_assets.adapters.contract_files import ContractSet, load_contracts
from benchmark_assets.adapters.project_file import Project
from benchmark_assets.adapters.store import Store


@dataclass(frozen=True)
class Workspace:
    """A project and its open store."""

    project: Project

    @cached_property
    def store(self) -> Store:
        """The store.

        Raises:
            InputError: If it cannot be a store.
        """
        store = Store(self.project.store)
        store.sweep()
        return store

    def load_contracts(self) -> ContractSet:
        """Read the project's contract files, as they are now."""
        return load_contracts(self.project.contract_paths())
