"""What a file source has seen: one row a file, as a Parquet file in the store.

Belongs here: the index's rows, reading and writing them. Does not belong here: looking at the
files themselves (`sources`).

The index is what makes an unchanged folder cheap: size and mtime decide whether a file is read
again, its SHA-256 whether it changed. It also holds what is reported and not stored: files
that are no traces, and traces that no partition can take.
"""

from __future__ import annotations

from typing import Literal

import msgspec
import pyarrow as pa

from benchmark_assets.adapters.parquet import read_table, to_parquet
from benchmark_assets.adapters.store import SOURCES, Store, source_path


class PartitionCount(msgspec.Struct, frozen=True):
    """How many traces of a file belong to one partition."""

    date: str
    model: str
    traces: int


class Unplaced(msgspec.Struct, frozen=True):
    """A trace that no partition can take: it names no model or no time."""

    trace_id: str
    reason: str


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a source.

    Attributes:
        path: Relative to the source's root, `/`-separated.
        size: In bytes; `mtime_ns` is its modification time in nanoseconds.
        settings: Hash of everything besides the bytes that decides how they are read.
        status: `read`; `unreadable` (`error` says why: nothing in it is a trace); `vanished`:
            it was read once and is gone, or cannot be opened any more (`error` says why); its
            traces stay until `--prune`.
        format: The format that read it.
        traces: Records found; always the sum over `partitions` and `unplaced`.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str
    settings: str
    status: Literal["read", "unreadable", "vanished"]
    format: str | None = None
    error: str | None = None
    traces: int = 0
    partitions: tuple[PartitionCount, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()

    @property
    def input_hash(self) -> str:
        """What a partition built from this file depends on."""
        return f"{self.sha256}:{self.settings}"


_SCHEMA = pa.schema(
    [
        pa.field("path", pa.string(), nullable=False),
        pa.field("size", pa.int64(), nullable=False),
        pa.field("mtime_ns", pa.int64(), nullable=False),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("settings", pa.string(), nullable=False),
        pa.field("status", pa.string(), nullable=False),
        pa.field("format", pa.string()),
        pa.field("error", pa.string()),
        pa.field("traces", pa.int64(), nullable=False),
        pa.field(
            "partitions",
            pa.list_(
                pa.struct([("date", pa.string()), ("model", pa.string()), ("traces", pa.int64())])
            ),
            nullable=False,
        ),
        pa.field(
            "unplaced",
            pa.list_(pa.struct([("trace_id", pa.string()), ("reason", pa.string())])),
            nullable=False,
        ),
    ]
)


def read_index(store: Store, source: str) -> dict[str, FileEntry]:
    """The index of a source by path; empty if it was never scanned."""
    data = store.read(source_path(source))
    if data is None:
        return {}
    with store.decoding(source_path(source)):
        rows = read_table(data, _SCHEMA).to_pylist()
        return {row["path"]: msgspec.convert(row, FileEntry) for row in rows}


def write_index(store: Store, source: str, entries: dict[str, FileEntry], root: str = "") -> bool:
    """Replace the index of a source; False if it already said the same.

    Args:
        store: Where to.
        source: The source's name.
        entries: Its files.
        root: What tells this source from another of the same name: hash of where it lies.
    """
    rows = [msgspec.to_builtins(entries[path]) for path in sorted(entries)]
    table = pa.Table.from_pylist(rows, _SCHEMA)
    return store.write(
        source_path(source), to_parquet(table, {"source": source.encode(), "root": root.encode()})
    )


def list_sources(store: Store) -> list[str]:
    """Names of all sources that have an index in the store, sorted."""
    names = [footer["source"].decode() for footer in store.footers.below(SOURCES).values()]
    return sorted(names)


def read_root(store: Store, source: str) -> str | None:
    """What the stored index says of where its source lies; None if there is no index."""
    footer = store.footers.of(source_path(source))
    return None if footer is None else footer["root"].decode()


def remove_index(store: Store, source: str) -> bool:
    """Forget a source; False if it was not known."""
    return store.remove(source_path(source))
