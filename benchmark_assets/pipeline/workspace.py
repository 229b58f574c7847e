"""One project opened for work: its settings, its store, its contracts, its rules.

Belongs here: what every step needs to start. Does not belong here: any step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from benchmark_assets.adapters.contract_files import ContractSet, load_contracts
from benchmark_assets.adapters.harness_files import load_harnesses
from benchmark_assets.adapters.project_file import Project
from benchmark_assets.adapters.store import Store
from benchmark_assets.pipeline.rules import Rules, load_plugins


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
        return load_contracts(self.project.contract_paths(), self.rules.known)

    @cached_property
    def rules(self) -> Rules:
        """The harness profiles and plugins that are in force.

        Raises:
            InputError: With all that is wrong with either.
        """
        harnesses = load_harnesses(self.project.harness_paths())
        harnesses.raise_if_problems()
        return Rules(harnesses.profiles, load_plugins(self.project.plugin_paths()))
