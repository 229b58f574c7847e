"""Footers of the store's Parquet files, each read once for as long as the file stays as it is.

Belongs here: remembering footers by path, size and version of the file. Does not belong here:
what a footer means (`snapshot_files`, `run_files`).

Everything that is planned is planned from footers, and a year of history has thousands of
them. So they are remembered, in this process and on this machine's disk: an unchanged store is
planned from one listing. What is remembered is only ever a copy: a file whose size or version
(modification time, or the object store's tag) differs is opened again, and without the copy
everything is just slower.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow as pa

from benchmark_assets.adapters.parquet import read_footer

if TYPE_CHECKING:
    from benchmark_assets.adapters.store import Store

CACHE_VARIABLE = "BENCH_CACHE"
_FORMAT = 1


class _Entry(msgspec.Struct, frozen=True, array_like=True):
    size: int
    version: str
    footer: dict[str, bytes]


class _File(msgspec.Struct, frozen=True, array_like=True):
    format: int
    entries: dict[str, _Entry]


class Footers:
    """The footers of one store.

    Attributes:
        opened: How many files had to be opened so far.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: dict[str, _Entry] | None = None
        self._saved: dict[str, _Entry] = {}
        self.opened = 0

    def below(self, folder: str) -> dict[str, dict[str, bytes]]:
        """Path → footer of every Parquet file below a folder, sorted by path."""
        known = self._load()
        found = {}
        for stat in self._store.scan(folder, ".parquet"):
            footer = self._current(stat.path, stat.size, stat.version)
            if footer is not None:
                found[stat.path] = footer
        gone = [path for path in known if path.startswith(f"{folder}/") and path not in found]
        for path in gone:
            del known[path]
        self._save()
        return found

    def of(self, path: str) -> dict[str, bytes] | None:
        """The footer of one file, or None if there is none."""
        stat = self._store.stat(path)
        return None if stat is None else self._current(path, stat.size, stat.version)

    def _current(self, path: str, size: int, version: str) -> dict[str, bytes] | None:
        known = self._load()
        entry = known.get(path)
        if entry is not None and (entry.size, entry.version) == (size, version):
            return entry.footer
        try:
            with self._store.path(path).open("rb") as file:
                footer = read_footer(file)
        except FileNotFoundError:
            return None
        except pa.ArrowException as error:
            with self._store.decoding(path):
                raise ValueError(f"no readable Parquet file ({error})") from error
        self.opened += 1
        known[path] = _Entry(size, version, footer)
        return footer

    def _load(self) -> dict[str, _Entry]:
        if self._entries is None:
            self._entries = {}
            path = _cache_path(self._store)
            # A copy that cannot be read, for whatever reason, is no copy.
            with contextlib.suppress(OSError, msgspec.DecodeError):
                if path is not None:
                    file = msgspec.msgpack.decode(path.read_bytes(), type=_File)
                    if file.format == _FORMAT:
                        self._entries = file.entries
            self._saved = dict(self._entries)
        return self._entries

    def _save(self) -> None:
        path = _cache_path(self._store)
        if path is None or self._entries == self._saved:
            return
        data = msgspec.msgpack.encode(_File(_FORMAT, self._load()))
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            Path(temporary).replace(path)
            self._saved = dict(self._load())


def _cache_path(store: Store) -> Path | None:
    """Where a store's copy lies on this machine; None if this process has no place for it."""
    named = os.environ.get(CACHE_VARIABLE)
    if named is None:
        named = os.environ.get("XDG_CACHE_HOME") or os.environ.get("HOME")
        if named is None:
            return None
        folder = Path(named) / (
            "benchmark-assets" if os.environ.get("XDG_CACHE_HOME") else ".cache/benchmark-assets"
        )
    elif not named:
        return None
    else:
        folder = Path(named)
    where = str(store.local.absolute()) if store.local is not None else store.url
    return folder / f"footers-{hashlib.sha256(where.encode()).hexdigest()[:16]}.msgpack"
