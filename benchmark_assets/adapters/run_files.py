"""Runs of one contract × model in one month as a Parquet file: verdicts with their checks.

Belongs here: the file's schema, replacing a month under compare-and-swap. Does not belong here:
judging (`scoring`) or deciding what is stale (`pipeline`).

One row is one run, its checks nested in it, so that a run and its checks commit in one rename.
Rows are sorted by (date, task, trial, trace id). The footer maps every date that was evaluated
to its key, also the dates on which nothing matched: what has no key was never looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from benchmark_assets.adapters.parquet import read_footer, read_table, to_parquet
from benchmark_assets.adapters.store import GONE, RUNS, Gone, Store, run_path
from benchmark_assets.model.identity import canonical_json
from benchmark_assets.model.verdict import RunRow

_CHECK = pa.struct(
    [
        pa.field("plugin", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("expected", pa.string()),
        pa.field("observed", pa.string()),
        pa.field("reason", pa.string()),
        pa.field("span_id", pa.string()),
        pa.field("call", pa.int32()),
    ]
)
_PLUGIN = pa.struct(
    [
        pa.field("plugin", pa.string(), nullable=False),
        pa.field("passed", pa.bool_()),
        pa.field("score", pa.float64()),
        pa.field("error", pa.string()),
    ]
)
SCHEMA = pa.schema(
    [
        pa.field("date", pa.string(), nullable=False),
        pa.field("trace_id", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("contract", pa.string(), nullable=False),
        pa.field("contract_version", pa.string(), nullable=False),
        pa.field("contract_name", pa.string(), nullable=False),
        pa.field("workflow", pa.string(), nullable=False),
        pa.field("group", pa.string(), nullable=False),
        pa.field("task", pa.string()),
        pa.field("trial", pa.int32(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("reason", pa.string()),
        pa.field("input_tokens", pa.int64()),
        pa.field("output_tokens", pa.int64()),
        pa.field("cache_read_tokens", pa.int64()),
        pa.field("cache_write_tokens", pa.int64()),
        pa.field("reasoning_tokens", pa.int64()),
        pa.field("cost_usd", pa.float64()),
        pa.field("cost_estimated", pa.bool_(), nullable=False),
        pa.field("duration_ms", pa.int64()),
        pa.field("started_at", pa.timestamp("us", tz="UTC")),
        pa.field("user_id", pa.string()),
        pa.field("session_id", pa.string()),
        pa.field("agents", pa.list_(pa.string()), nullable=False),
        pa.field("tool_calls", pa.int32(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("record", pa.string()),
        pa.field("contract_sha256", pa.string(), nullable=False),
        pa.field("engine", pa.string(), nullable=False),
        pa.field("plugins", pa.list_(_PLUGIN), nullable=False),
        pa.field("checks", pa.list_(_CHECK), nullable=False),
    ]
)


def _cells(row: RunRow) -> dict[str, Any]:
    cells: dict[str, Any] = {
        name: getattr(row, name) for name in SCHEMA.names if name not in ("plugins", "checks")
    }
    cells["plugins"] = [
        {"plugin": r.plugin, "passed": r.passed, "score": r.score, "error": r.error}
        for r in row.plugins
    ]
    cells["checks"] = [
        {
            "plugin": result.plugin,
            "name": check.name,
            "outcome": check.outcome,
            "expected": check.expected,
            "observed": check.observed,
            "reason": check.reason,
            "span_id": check.where.span_id if check.where else None,
            "call": check.where.call if check.where else None,
        }
        for result in row.plugins
        for check in result.checks
    ]
    return cells


def to_table(rows: Iterable[RunRow]) -> pa.Table:
    """Rows as an Arrow table in stored order."""
    cells = [_cells(row) for row in rows]
    cells.sort(
        key=lambda c: (c["date"], c["task"] or "", c["trial"], c["trace_id"], c["record"] or "")
    )
    return pa.Table.from_pylist(cells, schema=SCHEMA)


class Evaluated(msgspec.Struct, frozen=True):
    """What evaluating one date of one cell gave: its key, and its rows (maybe none)."""

    key: str
    rows: tuple[RunRow, ...]


class MonthKeys(msgspec.Struct, frozen=True):
    """What a month file says of itself: its cell, its month, date → key, number of runs."""

    contract: str
    model: str
    month: str
    keys: dict[str, str]
    runs: int


def read_month_keys(store: Store, path: str) -> MonthKeys | None:
    """The keys in one month file's footer, or None if there is no file."""
    raw = store.footers.of(path)
    return None if raw is None else _month_of(store, path, raw)


def list_months(store: Store, folder: str = RUNS) -> dict[str, MonthKeys]:
    """What every month file below a folder says of itself, by path, sorted."""
    footers = store.footers.below(folder)
    return {path: _month_of(store, path, raw) for path, raw in footers.items()}


def _month_of(store: Store, path: str, raw: Mapping[str, bytes]) -> MonthKeys:
    # A file that another version wrote may lack what this one needs.
    with store.decoding(path):
        return _month_keys(raw)


def _month_keys(footer: Mapping[str, bytes]) -> MonthKeys:
    return MonthKeys(
        footer["contract"].decode(),
        footer["model"].decode(),
        footer["month"].decode(),
        _keys(footer),
        int(footer["runs"]),
    )


def _keys(footer: Mapping[str, bytes]) -> dict[str, str]:
    return msgspec.json.decode(footer["keys"], type=dict[str, str])


def update_month(
    store: Store,
    contract: str,
    model: str,
    month: str,
    dates: Mapping[str, Evaluated | None],
    current_key: Callable[[str], str | None],
) -> bool:
    """Replace some dates of a month file; True if the file changed.

    The file is read again under its lock and merged by date. A date evaluated from inputs that
    are no longer the current ones is dropped: another process has, or will have, the newer.
    A file that is left without any date is removed.

    Args:
        store: Where the file lies.
        contract: The cell's contract.
        model: The cell's model.
        month: `YYYY-MM`.
        dates: Date → what was evaluated, or None to drop the date.
        current_key: Date → the key that is right now, None if the date has no snapshots. Asked
            while the file is locked.
    """
    path = run_path(contract, model, month)

    def merge(before: bytes | None) -> bytes | Gone | None:
        with store.decoding(path):
            keys = {} if before is None else _keys(read_footer(before))
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
                old = read_table(before, SCHEMA)
            keep = pc.is_in(old.column("date"), value_set=pa.array(kept_dates))
            new = pa.concat_tables([old.filter(keep), new])
            # Stable within a date: each date's rows come whole from one of the two, in order.
            new = new.take(pc.sort_indices(new, sort_keys=[("date", "ascending")]))
        footer = {
            "contract": contract.encode(),
            "model": model.encode(),
            "month": month.encode(),
            "keys": canonical_json(merged),
            "runs": str(new.num_rows).encode(),
        }
        return to_parquet(new, footer)

    return store.replace(path, merge)


def list_run_files(store: Store) -> list[str]:
    """Relative paths of all month files, sorted."""
    return store.list(RUNS, ".parquet")
