"""The folders of a golden suite: fixtures, candidate traces, golden traces, the lock file.

Belongs here: which files there are and what they are called, and reading and writing them. Does
not belong here: what a fixture file says (`fixture_files`), or what any of it means for the suite
(`pipeline/golden`).

A candidate trace is `<id>.json` in the folder of traces, in any trace format; several trials are
`<id>/1.json`, `<id>/2.json` and so on. An id that is no file name stands in it percent-encoded.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmark_assets.adapters.fixture_files import (
    SUFFIX,
    golden_path_of,
    is_fixture_file,
)
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.formats.recorder import read_quickly
from benchmark_assets.adapters.traces import read_traces, settle
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot

LOCK_NAME = "fixtures.lock.json"
TRACE_SUFFIXES = (".json", ".jsonl", ".ndjson")

_LOCK_VERSION = 1
_TRIAL = re.compile(r"0|[1-9][0-9]{0,8}")
_SAFE_NAME = re.compile(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]*")


# Fixtures.


class FolderFiles(NamedTuple):
    """The JSON files of a folder of fixtures, in order: fixtures, and what is none by its name."""

    fixtures: list[Path]
    others: list[Path]


def find_files(folder: Path, besides: Path | None = None) -> FolderFiles:
    """The files of a folder and the folders in it, through links; hidden ones are skipped.

    Args:
        folder: Where fixtures are.
        besides: A folder of traces, which may lie in it and holds no fixtures.

    Raises:
        InputError: If a folder is missing or cannot be looked into.
    """
    if not folder.is_dir():
        is_what = "is no folder" if folder.exists() else "does not exist"
        cure = "name the folder of fixtures with --fixtures"
        raise InputError(Problem(is_what, file=shown_path(folder), cure=cure))
    # A fixture behind a link is a path that is covered as well; each folder counts once.
    entered = set() if besides is None else {os.path.realpath(besides)}
    found = FolderFiles([], [])
    for place, folders, files in os.walk(folder, onerror=_refuse, followlinks=True):
        real = os.path.realpath(place)
        if real in entered and Path(place) != folder:
            folders.clear()
            continue
        entered.add(real)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            path = Path(place) / name
            if is_fixture_file(path):
                found.fixtures.append(path)
            elif name.lower().endswith(SUFFIX) and not name.startswith("."):
                found.others.append(path)
    return FolderFiles(sorted(found.fixtures), sorted(found.others))


def find_fixtures(folder: Path, besides: Path | None = None) -> list[Path]:
    """The fixture files that `find_files` finds.

    Raises:
        InputError: If a folder is missing or cannot be looked into.
    """
    return find_files(folder, besides).fixtures


def is_fixture_by_content(path: Path) -> bool:
    """Whether a file says what a fixture says, whatever it is called; False if it has no JSON."""
    try:
        value = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(value, dict) and {"input", "expect"} <= value.keys()


def _refuse(error: OSError) -> None:
    name = shown_path(Path(str(error.filename)))
    raise InputError(Problem(f"cannot be looked into: {error.strerror}", file=name)) from error


# Traces.


@dataclass(frozen=True)
class Candidate:
    """A file with a candidate trace, or several; `trial` is the number that its name says."""

    path: str
    trial: int | None


@dataclass
class TraceFolder:
    """What there is in a folder of traces, looked at once.

    Attributes:
        path: The folder; it need not exist.
        files: Names of trace files in it.
        folders: Names of folders in it.
        claimed: Names of those that belong to a fixture.
    """

    path: Path
    files: set[str] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    claimed: set[str] = field(default_factory=set)
    _named: dict[str, list[str]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for entry in _entries(self.path):
            name = entry.name
            if _is_folder(entry):
                self.folders.add(name)
            elif _is_trace(name):
                self.files.add(name)
                self._named.setdefault(_stem(name), []).append(name)

    def candidates(self, fixture: str) -> list[Candidate]:
        """The files with traces of a fixture, by trial; none if there are none.

        Raises:
            InputError: If it is not clear which of several is meant.
        """
        names = _names(fixture)
        if len(names) == 1 and names[0] not in self.folders:
            one = self._named.get(names[0], ())
            if len(one) == 1:
                self.claimed.add(one[0])
                return [Candidate(f"{self.path}/{one[0]}", None)]
        files = [file for name in names for file in self._named.get(name, ())]
        folders = [name for name in names if name in self.folders]
        trials = [item for name in folders for item in self._trials(name)]
        self.claimed.update(files, folders)
        if len(files) == 1 and not folders:
            return [Candidate(f"{self.path}/{files[0]}", None)]
        if len(files) > 1 or (files and trials) or len({t.trial for t in trials}) < len(trials):
            both = ", ".join(files + [f"{name}/" for name in folders])
            message = f"several files may be its trace: {both}"
            cure = "remove those that are not"
            raise InputError(Problem(message, file=shown_path(self.path), cure=cure))
        if files:
            return [Candidate(f"{self.path}/{files[0]}", None)]
        return sorted(trials, key=lambda item: (item.trial, item.path))

    def _trials(self, name: str) -> Iterator[Candidate]:
        folder = self.path / name
        for entry in _entries(folder):
            stem, _, suffix = entry.name.partition(".")
            if _TRIAL.fullmatch(stem) and f".{suffix}" in TRACE_SUFFIXES:
                yield Candidate(f"{folder}/{entry.name}", int(stem))

    def unclaimed(self) -> list[str]:
        """Trace files, and folders of them, that belong to no fixture, as people see them."""
        names = sorted(self.files - self.claimed)
        for folder in sorted(self.folders):
            inside = sorted(e.name for e in _entries(self.path / folder) if _is_trace(e.name))
            if folder in self.claimed:
                strays = (n for n in inside if not _TRIAL.fullmatch(n.partition(".")[0]))
                names += [f"{folder}/{name}" for name in strays]
            elif inside and not folder.startswith("."):
                names.append(f"{folder}/")
        shown = shown_path(self.path)
        return [f"{shown}/{name}" for name in names]


def _stem(name: str) -> str:
    return name.rpartition(".")[0]


def _is_trace(name: str) -> bool:
    return name.endswith(TRACE_SUFFIXES) and not name.startswith(".")


@lru_cache(maxsize=4096)
def _names(fixture: str) -> list[str]:
    """What traces of a fixture may be called: its id encoded, and as it is if that is a name."""
    names = [path_key(fixture)]
    if _SAFE_NAME.fullmatch(fixture) and fixture not in names:
        names.append(fixture)
    return names


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        _refuse(error)
        raise AssertionError from error


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # A link to itself; reading it says so.
        return False


def read_candidate(
    path: str, config: ProjectConfig, *, settled: bool = True
) -> list[TraceSnapshot]:
    """Read the traces of a candidate's or golden trace's file, whatever its format.

    What the recorder writes is read the quick way, without its hash.

    Args:
        path: The file.
        config: What settles who a trace is of.
        settled: Whether that is needed: of a recording it takes longer to tell than to read it.

    Raises:
        InputError: If the file cannot be read, or holds no trace.
    """
    try:
        data = _read(path)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(Problem(f"cannot be read: {reason}", file=path)) from error
    return read_bytes(data, path, config, settled=settled)


def read_bytes(
    data: bytes, name: str, config: ProjectConfig, *, settled: bool = True
) -> list[TraceSnapshot]:
    """Read the traces in the bytes of a file, as `read_candidate` does.

    Raises:
        InputError: If they hold no trace.
    """
    quick = read_quickly(data, name)
    if quick is not None:
        return [settle(quick, config) if settled else quick]
    file = TraceFile(name, name, data)
    traces = list(read_traces(file, config))
    if not traces:
        raise InputError(file.problem("holds no trace"))
    return traces


_MOST_AT_ONCE = 1 << 16


def _read(path: str) -> bytes:
    """The bytes of a file: with the system's calls alone, in under half the time."""
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    try:
        parts = []
        while part := os.read(descriptor, _MOST_AT_ONCE):
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)
    finally:
        os.close(descriptor)


# The lock file.


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What must be there.

    Attributes:
        fixtures: Fixture ids, with the hash of what each says.
        golden: Ids of the fixtures that have a golden trace; a lock file that was written before
            they were listed knows of none.
        version: Of the file's format.
    """

    version: int
    fixtures: dict[str, str]
    golden: tuple[str, ...] = ()


def read_lock(folder: Path) -> Lock | None:
    """What must be there; None without a lock file.

    Raises:
        InputError: If it cannot be read.
    """
    path = folder / LOCK_NAME
    name = shown_path(path)
    cure = "restore it, or remove it and run with --accept"
    try:
        lock = msgspec.json.decode(path.read_bytes(), type=Lock)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(Problem(f"cannot be read: {error.strerror}", file=name)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(Problem(f"is no lock file: {error}", file=name, cure=cure)) from error
    if lock.version != _LOCK_VERSION:
        message = f"is of version {lock.version}, which this version does not know"
        raise InputError(Problem(message, file=name, cure=cure))
    return lock


def write_lock(folder: Path, fixtures: Mapping[str, str], golden: Iterable[str] = ()) -> None:
    """Write the lock file: the same fixtures give the same bytes.

    Args:
        folder: The folder of fixtures.
        fixtures: As `Lock.fixtures`.
        golden: As `Lock.golden`.

    Raises:
        OSError: If it cannot be written.
    """
    lock = Lock(_LOCK_VERSION, dict(sorted(fixtures.items())), tuple(sorted(golden)))
    write_whole(folder / LOCK_NAME, msgspec.json.format(msgspec.json.encode(lock), indent=2))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file as a whole or not at all, ending in a newline.

    Raises:
        OSError: If it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    temporary.write_bytes(data + b"\n")
    temporary.replace(path)


def existing_golden(fixture_file: Path, fixture: str) -> Path | None:
    """The file of a fixture's golden trace; None if it has none."""
    path = golden_path_of(fixture_file, fixture)
    return path if path.is_file() else None
