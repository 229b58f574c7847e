"""Trace files of a source: what is there, what changed, and the snapshots in it.

Belongs here: walking a source, its index, reading files once. Does not belong here: what a
file's bytes mean (`traces`, `formats`), the partitions' files (`snapshot_files`), or getting
traces from a server (`langfuse/pull`): what was pulled is files as well.
"""

from __future__ import annotations

import fnmatch
import glob
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

import msgspec

from benchmark_assets.adapters.formats.base import TraceFile, printable
from benchmark_assets.adapters.pulled_files import list_pulled, pulled_days, read_pulled
from benchmark_assets.adapters.source_index import (
    FileEntry,
    PartitionCount,
    Unplaced,
    read_index,
    read_root,
    write_index,
)
from benchmark_assets.adapters.store import Store, pulled_folder
from benchmark_assets.adapters.traces import (
    READER_VERSION,
    day_of,
    read_traces,
    why_unplaced,
)
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.project import FileSource, ProjectConfig, PulledSource, Source
from benchmark_assets.model.trace import TraceSnapshot

CACHE_BYTES = 64 * 1024 * 1024
"""Snapshots just parsed are kept for writing their partitions while the files they came from
are no larger than this together; beyond it a file is parsed a second time instead."""

Progress = Callable[[str, int, int], None]
"""Called with what is done, how far, and how far it goes."""


def quiet(what: str, done: int, total: int) -> None:
    """The progress that shows nothing."""


class Found(NamedTuple):
    """A file of a source as it is now.

    Attributes:
        key: Its path below the source's root, `/`-separated.
        shown: Its path as people should see it.
        stamp: Its size in bytes, and a number that changes when its content does.
        wrong: Why it cannot be read, if that is known already.
    """

    key: str
    shown: str
    stamp: tuple[int, int] = (-1, -1)
    wrong: str | None = None


class Files(Protocol):
    """The files of a source, wherever they lie.

    Attributes:
        root: What tells this source from another of the same name.
    """

    root: str

    def find(self) -> list[Found]:
        """All files, sorted by path."""
        ...

    def read(self, key: str) -> bytes:
        """The bytes of a file.

        Raises:
            OSError: If it cannot be read.
        """
        ...

    def shown(self, key: str) -> str:
        """A file's path as people should see it."""
        ...


class FolderFiles:
    """The files that a path leads to: a file, a folder or a glob.

    Args:
        path: The path, absolute.
        store: Whose own files are left out.

    Raises:
        InputError: If nothing is at the path.
    """

    def __init__(self, path: str, store: Store) -> None:
        self._base, files = locate(path)
        self._files = [file for file in files if not _is_ours(file, store)]
        self.root = root_hash(self._base)

    def find(self) -> list[Found]:
        """See `Files.find`."""
        return [self._found(file) for file in self._files]

    def _found(self, file: Path) -> Found:
        key = file.relative_to(self._base).as_posix()
        if key != printable(key):
            key = printable(key)
            return Found(key, key, wrong="its name is not UTF-8; rename it")
        try:
            stat = file.stat()
        except OSError as error:
            return Found(key, str(file), wrong=f"cannot be opened: {error.strerror or error}")
        return Found(key, str(file), (stat.st_size, stat.st_mtime_ns))

    def read(self, key: str) -> bytes:
        """See `Files.read`."""
        return (self._base / key).read_bytes()

    def shown(self, key: str) -> str:
        """See `Files.shown`."""
        return str(self._base / key)


class PulledFiles:
    """The files of traces that were pulled from a source's server.

    Their bytes are what was compressed: how, does not change what is in them.

    Args:
        store: Where they lie.
        source: The source's name.
    """

    def __init__(self, store: Store, source: str) -> None:
        self._store = store
        self._source = source
        days = pulled_days(store, source)
        self.root = next(iter(days.values())).root if days else ""

    def find(self) -> list[Found]:
        """See `Files.find`."""
        return [
            Found(key, self.shown(key), (stat.size, _number(stat.version)))
            for key, stat in sorted(list_pulled(self._store, self._source).items())
        ]

    def read(self, key: str) -> bytes:
        """See `Files.read`."""
        data = read_pulled(self._store, self._source, key)
        if data is None:
            raise FileNotFoundError(f"there is no {self.shown(key)}")
        return data

    def shown(self, key: str) -> str:
        """See `Files.shown`."""
        return str(self._store.path(f"{pulled_folder(self._source)}/{key}"))


def _number(version: str) -> int:
    """A file's version as a number: a time is one, a tag of an object store is made one."""
    if version.isdecimal() and len(version) < len(str(2**63)):
        return int(version)
    return int.from_bytes(hashlib.sha256(version.encode()).digest()[:7])


@dataclass
class SourceState:
    """A source as it is now.

    Attributes:
        entries: Path → what is known of the file, vanished ones too.
        reread: Paths that were read in this scan because they are new or changed.
    """

    source: Source
    files: Files
    entries: dict[str, FileEntry]
    reread: tuple[str, ...] = ()
    cache: dict[str, list[TraceSnapshot]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The source's name."""
        return self.source.name


def locate(path: str) -> tuple[Path, list[Path]]:
    """Resolve a file, a folder or a glob to its root and the files under it, sorted.

    Hidden files and folders are left out unless they are named. Links are followed, and what
    several of them lead to is found once. The root of a glob is its longest part without
    wildcards. Folders that cannot be opened are among the files, so that reading says why.

    Raises:
        InputError: If nothing is at `path`.
    """
    target = Path(path)
    if target.is_file():
        return target.parent, [target]
    if target.is_dir():
        return target, _find(target, ("**", "*"))
    if not glob.has_magic(path):
        raise InputError(
            Problem("there is no such file or folder", file=path, cure="check the path")
        )
    parts = target.parts
    fixed = next(index for index, part in enumerate(parts) if glob.has_magic(part))
    root = Path(*parts[:fixed]) if fixed else Path()
    if not root.is_dir():
        problem = Problem("there is no such folder", file=str(root), cure="check the path")
        raise InputError(problem)
    return root, _find(root, parts[fixed:])


def _find(root: Path, pattern: Sequence[str]) -> list[Path]:
    """Files below a folder whose parts fit a glob's, sorted.

    The standard library's globs go round a link to a folder above until the system refuses.
    """
    found: dict[str, str] = {}
    seen: set[tuple[str, int]] = set()

    def walk(folder: str, parts: Sequence[str]) -> None:
        here = os.path.realpath(folder)
        if (here, len(parts)) in seen:
            return
        seen.add((here, len(parts)))
        try:
            with os.scandir(folder) as listing:
                # Links last: a file is called by its own name where it has one.
                entries = sorted(listing, key=lambda entry: (entry.is_symlink(), entry.name))
        except OSError:
            found.setdefault(here, folder)
            return
        head, *rest = parts
        if head == "**":
            walk(folder, rest)
        for entry in entries:
            if head == "**":
                if not entry.name.startswith(".") and os.path.isdir(entry.path):
                    walk(entry.path, parts)
            elif _fits(entry.name, head):
                if rest:
                    if os.path.isdir(entry.path):
                        walk(entry.path, rest)
                elif os.path.isfile(entry.path) or not os.path.exists(entry.path):
                    # What does not exist is a broken link, which reading reports.
                    found.setdefault(os.path.realpath(entry.path), entry.path)

    walk(str(root), [*pattern, "*"] if pattern[-1] == "**" else pattern)
    return sorted(map(Path, found.values()))


def _fits(name: str, pattern: str) -> bool:
    hidden = name.startswith(".") and not pattern.startswith(".")
    return not hidden and fnmatch.fnmatchcase(name, pattern)


def scan(
    store: Store,
    source: FileSource,
    path: str,
    config: ProjectConfig,
    *,
    prune: bool = False,
    progress: Progress = quiet,
) -> SourceState:
    """Bring a source's index up to date with its files, reading only new and changed ones.

    Args:
        store: Where the index lies.
        source: The source as configured.
        path: Its path, resolved.
        config: The project, for what settles a trace's identity.
        prune: Forget vanished files, so that their snapshots go.
        progress: Told of each file read.

    Raises:
        InputError: If nothing is at the path.
    """
    return scan_files(
        store, source, FolderFiles(path, store), config, prune=prune, progress=progress
    )


def scan_pulled(
    store: Store,
    source: PulledSource,
    config: ProjectConfig,
    *,
    prune: bool = False,
    progress: Progress = quiet,
) -> SourceState:
    """The same for what was pulled from a source's server; no server is asked."""
    files = PulledFiles(store, source.name)
    return scan_files(store, source, files, config, prune=prune, progress=progress)


def scan_files(
    store: Store,
    source: Source,
    files: Files,
    config: ProjectConfig,
    *,
    prune: bool = False,
    progress: Progress = quiet,
) -> SourceState:
    """The same for files wherever they lie; see `scan`."""
    before = read_index(store, source.name)
    settings = _settings(source, config)
    state = SourceState(source, files, {})
    reread: list[str] = []
    cached = 0
    listing = files.find()
    for number, found in enumerate(listing):
        key, wrong, data = found.key, found.wrong, b""
        known = before.get(key)
        if (
            wrong is None
            and known is not None
            and known.status != "vanished"
            and known.settings == settings
            and (known.size, known.mtime_ns) == found.stamp
        ):
            state.entries[key] = known
            continue
        if wrong is None:
            progress("reading trace files", number, len(listing))
            try:
                data = files.read(key)
            except OSError as error:
                wrong = f"cannot be opened: {error.strerror or error}"
        if wrong is not None:
            reason = f"{key}: {wrong}"
            if known is not None and known.partitions:
                # Nothing says that its traces changed: as good as gone, and as little forgotten.
                state.entries[key] = msgspec.structs.replace(known, status="vanished", error=reason)
            else:
                state.entries[key] = _unreadable_entry(key, settings, reason)
            continue
        size, mtime_ns = found.stamp
        trace_file = TraceFile(found.shown, key, data)
        same = (
            known is not None and known.settings == settings and known.sha256 == trace_file.sha256
        )
        if known is not None and same:
            back = {"status": "read", "error": None} if known.status == "vanished" else {}
            state.entries[key] = msgspec.structs.replace(
                known, size=size, mtime_ns=mtime_ns, **back
            )
            continue
        reread.append(key)
        entry, snapshots = _read(trace_file, source, config)
        state.entries[key] = msgspec.structs.replace(
            entry, size=size, mtime_ns=mtime_ns, settings=settings
        )
        if cached + len(data) <= CACHE_BYTES:
            cached += len(data)
            state.cache[key] = snapshots
    for key, entry in before.items():
        if key not in state.entries and not prune and entry.partitions:
            state.entries[key] = msgspec.structs.replace(entry, status="vanished")
    state.reread = tuple(reread)
    if state.entries != before or read_root(store, source.name) != files.root:
        write_index(store, source.name, state.entries, files.root)
    return state


def root_hash(base: Path) -> str:
    """What tells sources of one name apart: a hash of where they lie, which names no path."""
    return content_hash(str(base.absolute()))[:16]


def _is_ours(file: Path, store: Store) -> bool:
    """Whether a file is the store's own, or of the Dagster instance beside it: no trace of anyone."""
    if store.local is None:
        return False
    own = store.local.absolute()
    beside = own.with_name(f"{own.name}.dagster")
    path = file.absolute()
    return path.is_relative_to(own) or path.is_relative_to(beside)


def _settings(source: Source, config: ProjectConfig) -> str:
    """Hash of everything besides a file's bytes that decides which snapshots come out of it."""
    aliases = {name: list(settings.aliases) for name, settings in config.models.items()}
    return content_hash(
        canonical_json(
            {
                "reader": READER_VERSION,
                "format": source.format,
                "default_date": source.default_date.isoformat() if source.default_date else None,
                "model_key": config.model_key,
                "task": config.task.from_,
                "aliases": {name: names for name, names in aliases.items() if names},
            }
        )
    )[:16]


def _unreadable_entry(key: str, settings: str, reason: str) -> FileEntry:
    return FileEntry(
        path=key,
        size=-1,
        mtime_ns=-1,
        sha256="",
        settings=settings,
        status="unreadable",
        error=reason,
    )


def _read(
    file: TraceFile, source: Source, config: ProjectConfig
) -> tuple[FileEntry, list[TraceSnapshot]]:
    common = {"path": file.key, "size": len(file.data), "mtime_ns": 0, "sha256": file.sha256}
    try:
        snapshots = list(
            read_traces(file, config, format_name=source.format, default_date=source.default_date)
        )
    except InputError as error:
        entry = FileEntry(**common, settings="", status="unreadable", error=_relative(error, file))  # type: ignore[arg-type]
        return entry, []
    counts: dict[tuple[str, str], int] = {}
    unplaced = []
    for snapshot in snapshots:
        day = day_of(snapshot)
        if day is None or snapshot.model is None:
            reason = why_unplaced(snapshot, config)
            assert reason is not None
            unplaced.append(Unplaced(snapshot.trace_id, reason))
        else:
            counts[day, snapshot.model] = counts.get((day, snapshot.model), 0) + 1
    entry = FileEntry(
        **common,  # type: ignore[arg-type]
        settings="",
        status="read",
        format=snapshots[0].origin.format if snapshots else None,
        traces=len(snapshots),
        partitions=tuple(
            PartitionCount(day, model, count) for (day, model), count in sorted(counts.items())
        ),
        unplaced=tuple(unplaced),
    )
    return entry, snapshots


def _relative(error: InputError, file: TraceFile) -> str:
    """The error with the file's key for its path, so that the index is the same everywhere."""
    return str(error).replace(file.name, file.key)


def read_file(state: SourceState, key: str, config: ProjectConfig) -> Iterator[TraceSnapshot]:
    """The snapshots of one file of a source, parsed again unless the scan just did.

    Raises:
        InputError: If the file changed since the scan; the next scan will see what it is now.
    """
    if key in state.cache:
        yield from state.cache[key]
        return
    path = state.files.shown(key)
    try:
        file = TraceFile(path, key, state.files.read(key))
    except OSError as error:
        raise InputError(Problem(f"vanished while it was read: {error}", file=path)) from error
    if file.sha256 != state.entries[key].sha256:
        raise InputError(Problem("changed while it was read", file=path, cure="run again"))
    source = state.source
    yield from read_traces(
        file, config, format_name=source.format, default_date=source.default_date
    )
