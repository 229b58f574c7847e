"""A month of rows in one Parquet file, of which single dates are replaced.

Belongs here: merging dates under compare-and-swap, and the footer that says which dates a file
holds. Does not belong here: what a row is (`run_files`, `fidelity_months`), or what is stale
(`pipeline`).

The footer maps every date that was looked at to its key, also those that gave no row: what has
no key was never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from benchmark_assets.adapters.parquet import read_footer, read_table, to_parquet
from benchmark_assets.adapters.store import GONE, Gone, Store
from benchmark_assets.model.identity import canonical_json

Row = TypeVar("Row")

COUNT = "runs"
"""Footer key of the number of rows."""


@dataclass(frozen=True)
class Dated(Generic[Row]):
    """What looking at one date gave: its key, and its rows (maybe none)."""

    key: str
    rows: tuple[Row, ...]


def keys_of(footer: Mapping[str, bytes]) -> dict[str, str]:
    """The dates that a file's footer names: date → key."""
    return msgspec.json.decode(footer["keys"], type=dict[str, str])


def update_dates(
    store: Store,
    path: str,
    identity: Mapping[str, str],
    dates: Mapping[str, Dated[Row] | None],
    current_key: Callable[[str], str | None],
    to_table: Callable[[Iterable[Row]], pa.Table],
    schema: pa.Schema,
) -> bool:
    """Replace some dates of a month file; True if the file changed.

    The file is read again under its lock and merged by date. A date that was made from inputs
    that are no longer the current ones is dropped: another process has, or will have, the newer.
    A file that is left without any date is removed.

    Args:
        store: Where the file lies.
        path: The file.
        identity: What its footer says of it besides.
        dates: Date → what was found, or None to drop the date.
        current_key: Date → the key that is right now, None if there should be none. Asked while
            the file is locked.
        to_table: Makes a table of `schema`, in stored order.
        schema: The file's columns; `date` is one of them, and its rows are sorted by it first.
    """

    def merge(before: bytes | None) -> bytes | Gone | None:
        with store.decoding(path):
            keys = {} if before is None else keys_of(read_footer(before))
        fresh = {
            date: item
            for date, item in dates.items()
            if current_key(date) == (None if item is None else item.key)
        }
        kept_dates = [date for date in keys if date not in fresh]
        merged = {date: keys[date] for date in kept_dates}
        merged |= {date: item.key for date, item in fresh.items() if item is not None}
        if not merged:
            return GONE
        if merged == keys:
            return None
        new = to_table(row for item in fresh.values() if item is not None for row in item.rows)
        if before is not None and kept_dates:
            with store.decoding(path):
                old = read_table(before, schema)
            keep = pc.is_in(old.column("date"), value_set=pa.array(kept_dates))
            new = pa.concat_tables([old.filter(keep), new])
            # Stable within a date: each date's rows come whole from one of the two, in order.
            new = new.take(pc.sort_indices(new, sort_keys=[("date", "ascending")]))
        footer = {name: value.encode() for name, value in identity.items()}
        footer |= {"keys": canonical_json(merged), COUNT: str(new.num_rows).encode()}
        return to_parquet(new, footer)

    return store.replace(path, merge)
