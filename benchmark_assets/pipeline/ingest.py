"""Trace files in, snapshot partitions out.

Belongs here: what partitions should hold by what the sources say, and building those that do
not. Does not belong here: how files are read (`adapters.sources`) or stored
(`adapters.snapshot_files`).

A partition is stale when the files it should be built from, by the sources' indexes, are not
the ones its footer names. Nothing else is asked: not when it was built, or by whom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmark_assets.adapters.pulled_files import remove_pulled
from benchmark_assets.adapters.snapshot_files import (
    SnapshotFooter,
    SourcedSnapshot,
    assemble,
    duplicates_in,
    list_partitions,
    read_partition_footer,
    read_snapshots,
    write_partition,
)
from benchmark_assets.adapters.source_index import FileEntry, list_sources, read_index, remove_index
from benchmark_assets.adapters.sources import (
    Progress,
    SourceState,
    quiet,
    read_file,
    scan,
    scan_pulled,
)
from benchmark_assets.adapters.store import snapshot_path
from benchmark_assets.adapters.traces import day_of
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.project import PulledSource, Source
from benchmark_assets.pipeline.workspace import Workspace


class PartitionId(NamedTuple):
    """One partition of snapshots: a day (`YYYY-MM-DD`, UTC) and a model."""

    date: str
    model: str


@dataclass
class Inventory:
    """All files of all sources, as they are now.

    Attributes:
        states: The configured sources, just scanned.
        kept: Entries of sources that the store knows and the project no longer names; their
            traces stay until pruned.
        problems: Sources that could not be scanned at all.
    """

    states: dict[str, SourceState]
    kept: dict[str, dict[str, FileEntry]] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()

    def entries(self) -> Iterator[tuple[str, FileEntry]]:
        """Every file with its source's name."""
        for name, state in self.states.items():
            for entry in state.entries.values():
                yield name, entry
        for name, entries in self.kept.items():
            for entry in entries.values():
                yield name, entry

    def expected(self) -> dict[PartitionId, dict[str, str]]:
        """What each partition should be built from: partition → `source/file` → input hash."""
        inputs: dict[PartitionId, dict[str, str]] = defaultdict(dict)
        for name, entry in self.entries():
            for part in entry.partitions:
                key = PartitionId(part.date, part.model)
                inputs[key][f"{name}/{entry.path}"] = entry.input_hash
        return dict(sorted(inputs.items()))

    def found(self) -> dict[PartitionId, int]:
        """How many traces the files hold for each partition."""
        counts: dict[PartitionId, int] = defaultdict(int)
        for _, entry in self.entries():
            for part in entry.partitions:
                counts[PartitionId(part.date, part.model)] += part.traces
        return dict(counts)


def take_inventory(
    workspace: Workspace, *, prune: bool = False, progress: Progress = quiet
) -> Inventory:
    """Scan the project's sources; new and changed files are read, once.

    Of a source on a server that is what was pulled before: no server is asked.
    """
    states: dict[str, SourceState] = {}
    problems: list[Problem] = []
    project = workspace.project
    for source in project.config.sources:
        try:
            states[source.name] = _scan(workspace, source, prune=prune, progress=progress)
        except InputError as error:
            problems += error.problems
    kept = {}
    configured = {source.name for source in project.config.sources}
    for name in list_sources(workspace.store):
        if name in configured and name in states:
            continue
        if prune and name not in configured:
            remove_index(workspace.store, name)
            remove_pulled(workspace.store, name)
        else:
            kept[name] = read_index(workspace.store, name)
    return Inventory(states, kept, tuple(problems))


def _scan(workspace: Workspace, source: Source, *, prune: bool, progress: Progress) -> SourceState:
    store, config = workspace.store, workspace.project.config
    if isinstance(source, PulledSource):
        return scan_pulled(store, source, config, prune=prune, progress=progress)
    path = workspace.project.source_path(source)
    return scan(store, source, path, config, prune=prune, progress=progress)


def stale_partitions(
    workspace: Workspace, inventory: Inventory
) -> tuple[list[PartitionId], list[PartitionId]]:
    """Partitions to build, and partitions to remove because no file holds traces for them."""
    expected, counts = inventory.expected(), inventory.found()
    stored = list_partitions(workspace.store)
    build = [
        key
        for key, inputs in expected.items()
        if (footer := stored.get(key)) is None
        or (footer.inputs, footer.found) != (inputs, counts[key])
    ]
    remove = [PartitionId(*key) for key in stored if key not in expected]
    return build, remove


class Built(NamedTuple):
    """What building partitions gave.

    Attributes:
        footers: Footer of each partition that is now up to date, built or found so.
        problems: What went wrong without stopping anything else.
        written: Partitions that had to be built.
    """

    footers: dict[PartitionId, SnapshotFooter]
    problems: list[Problem]
    written: int


def build_partitions(
    workspace: Workspace,
    inventory: Inventory,
    wanted: Collection[PartitionId],
    progress: Progress = quiet,
) -> Built:
    """Build those of the wanted partitions that are stale.

    Each file is parsed once whatever the number of its partitions, and a partition is written
    as soon as its last file was, so that memory holds what is open and not all of history.

    A file that changed since the inventory leaves its partitions as they were and is
    reported; the next run sees the new content.
    """
    store = workspace.store
    expected, counts = inventory.expected(), inventory.found()
    footers: dict[PartitionId, SnapshotFooter] = {}
    open_keys: set[PartitionId] = set()
    for key in wanted:
        if key not in expected:
            remove_partition(workspace, key)
            continue
        footer = read_partition_footer(store, snapshot_path(*key))
        if footer is not None and (footer.inputs, footer.found) == (expected[key], counts[key]):
            footers[key] = footer
        else:
            open_keys.add(key)
    retained = _Retained(workspace)
    collected: dict[PartitionId, list[SourcedSnapshot]] = {key: [] for key in open_keys}
    files_left = {key: len(expected[key]) for key in open_keys}
    problems: list[Problem] = []
    total = len(open_keys)
    for source, entry in inventory.entries():
        keys = {PartitionId(part.date, part.model) for part in entry.partitions} & open_keys
        if not keys:
            continue
        try:
            for key, item in _traces_of(workspace, inventory, retained, source, entry, keys):
                collected[key].append(item)
        except InputError as error:
            problems += error.problems
            open_keys -= keys
            continue
        for key in sorted(keys):
            files_left[key] -= 1
            if files_left[key]:
                continue
            progress("writing snapshots", total - len(open_keys), total)
            open_keys.remove(key)
            partition = assemble(collected.pop(key), retained.duplicates.pop(key, ()))
            footers[key] = write_partition(
                store, key.date, key.model, partition, expected[key], counts[key]
            )
    return Built(dict(sorted(footers.items())), problems, total)


def _traces_of(
    workspace: Workspace,
    inventory: Inventory,
    retained: _Retained,
    source: str,
    entry: FileEntry,
    keys: Collection[PartitionId],
) -> Iterator[tuple[PartitionId, SourcedSnapshot]]:
    """The traces of one file that belong to some partitions."""
    state = inventory.states.get(source)
    if state is None or entry.status == "vanished":
        for key in sorted(keys):
            for item in retained.take(key, source, entry.path):
                yield key, item
        return
    for snapshot in read_file(state, entry.path, workspace.project.config):
        day = day_of(snapshot)
        if day is not None and snapshot.model is not None:
            key = PartitionId(day, snapshot.model)
            if key in keys:
                yield key, SourcedSnapshot(source, snapshot, entry.path)
    state.cache.pop(entry.path, None)


def remove_partition(workspace: Workspace, key: PartitionId) -> bool:
    """Remove a partition that no file holds traces for any more; False if it was not there."""
    return workspace.store.remove(snapshot_path(key.date, key.model))


class _Retained:
    """What partitions hold of files that are gone; each partition is read once.

    Attributes:
        duplicates: Partition → what is noted there of such files' traces that other files had.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._store = workspace.store
        self._rows: dict[PartitionId, list[SourcedSnapshot]] = {}
        self.duplicates: dict[PartitionId, list[str]] = defaultdict(list)

    def take(self, key: PartitionId, source: str, file: str) -> list[SourcedSnapshot]:
        """The stored rows of one file."""
        if key not in self._rows:
            self._rows[key] = [item.as_given() for item in read_snapshots(self._store, *key)]
        footer = read_partition_footer(self._store, snapshot_path(*key))
        if footer is not None:
            self.duplicates[key] += duplicates_in(footer, source, file)
        return [item for item in self._rows[key] if (item.source, item.file) == (source, file)]
