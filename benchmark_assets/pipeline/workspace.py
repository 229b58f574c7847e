"""One project opened for work: its settings, its store, its contracts, its rules.

Belongs here: what every step needs to start. Does not belong here: any step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from benchmark_assets.adapters.contract_files import ContractSet, load_contracts
from benchmark_assets.adapters.harness_files import load_harnesses
from benchmark_assets.adapters.project_file import Project
from benchmark_assets.adapters.store import Store
from benchmark_assets.pipeline.rules import FileStates, Rules, file_states, load_plugins


@dataclass(frozen=True)
class Workspace:
    """A project and its open store."""

    project: Project
    _rules: tuple[FileStates, Rules] | None = field(default=None, init=False, repr=False)

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

    @property
    def rules(self) -> Rules:
        """The harness profiles and plugins that are in force, read again when a file changed.

        A process that lives long, such as a sensor's, must key cells as a run started now does.
        Whoever needs the same rules twice keeps what this returns.

        Raises:
            InputError: With all that is wrong with either.
        """
        harnesses, plugins = self.project.harness_paths(), self.project.plugin_paths()
        state = file_states([*harnesses, *plugins])
        if self._rules is None or self._rules[0] != state:
            loaded = load_harnesses(harnesses)
            loaded.raise_if_problems()
            rules = Rules(loaded.profiles, load_plugins(plugins))
            object.__setattr__(self, "_rules", (state, rules))
            return rules
        return self._rules[1]
