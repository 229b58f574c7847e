"""Runs of one contract × model in one month as a Parquet file: verdicts with their checks.

Belongs here: the file's schema and order. Does not belong here: judging (`scoring`), replacing
dates of a file (`month_files`) or deciding what is stale (`pipeline`).

One row is one run, its checks nested in it, so that a run and its checks commit in one rename.
Rows are sorted by (date, task, trial, trace id).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from benchmark_assets.adapters.check_columns import FIELDS, check_cell, check_of
from benchmark_assets.adapters.month_files import COUNT, Dated, keys_of, update_dates
from benchmark_assets.adapters.parquet import read_table
from benchmark_assets.adapters.store import RUNS, Store, run_path
from benchmark_assets.model.verdict import Check, PluginResult, RunRow

_CHECK = pa.struct([pa.field("plugin", pa.string(), nullable=False), *FIELDS])
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
        {"plugin": result.plugin, **check_cell(check)}
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


Evaluated = Dated[RunRow]
"""What evaluating one date of one cell gave."""


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
        keys_of(footer),
        int(footer[COUNT]),
    )


def update_month(
    store: Store,
    contract: str,
    model: str,
    month: str,
    dates: Mapping[str, Evaluated | None],
    current_key: Callable[[str], str | None],
) -> bool:
    """Replace some dates of a month file; True if the file changed.

    Dates that were evaluated from inputs that are no longer the current ones are left out
    (`month_files.update_dates`).

    Args:
        store: Where the file lies.
        contract: The cell's contract.
        model: The cell's model.
        month: `YYYY-MM`.
        dates: Date → what was evaluated, or None to drop the date.
        current_key: Date → the key that is right now, None if the date has no snapshots. Asked
            while the file is locked.
    """
    identity = {"contract": contract, "model": model, "month": month}
    path = run_path(contract, model, month)
    return update_dates(store, path, identity, dates, current_key, to_table, SCHEMA)


def read_month(store: Store, path: str, dates: Collection[str]) -> list[RunRow]:
    """The runs of some dates of a month file, in stored order; none if there is no file."""
    data = store.read(path)
    if data is None:
        return []
    with store.decoding(path):
        table = read_table(data, SCHEMA)
        wanted = pc.is_in(table.column("date"), value_set=pa.array(sorted(dates), pa.string()))
        return [_run_row(cells) for cells in table.filter(wanted).to_pylist()]


def _run_row(cells: dict[str, Any]) -> RunRow:
    """What `_cells` laid out."""
    checks: dict[str, list[Check]] = defaultdict(list)
    for cell in cells.pop("checks"):
        checks[cell["plugin"]].append(check_of(cell))
    plugins = tuple(
        PluginResult(
            plugin=cell["plugin"], checks=tuple(checks[cell["plugin"]]), error=cell["error"]
        )
        for cell in cells["plugins"]
    )
    return RunRow(**{**cells, "plugins": plugins, "agents": tuple(cells["agents"])})


def list_run_files(store: Store) -> list[str]:
    """Relative paths of all month files, sorted."""
    return store.list(RUNS, ".parquet")
