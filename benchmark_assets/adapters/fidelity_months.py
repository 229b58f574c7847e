"""What comparing the ledgers of one model's traces gave, a month a Parquet file.

Belongs here: the file's schema and order, reading rows back. Does not belong here: comparing
(`scoring.trace_fidelity`), replacing dates of a file (`month_files`), or comparisons that were
asked for by hand (`fidelity_runs`).

One row is one executor of one trace, with what the whole trace came to repeated in it. Rows are
sorted by (date, task, trial, trace id), those of one trace in the order of its ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from benchmark_assets.adapters.check_columns import FIELDS, check_cell
from benchmark_assets.adapters.month_files import COUNT, Dated, keys_of, update_dates
from benchmark_assets.adapters.parquet import read_table
from benchmark_assets.adapters.store import FIDELITY, Store, fidelity_path
from benchmark_assets.model.fidelity import FidelityRow

SCHEMA = pa.schema(
    [
        pa.field("date", pa.string(), nullable=False),
        pa.field("trace_id", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("workflow", pa.string()),
        pa.field("task", pa.string()),
        pa.field("trial", pa.int32()),
        pa.field("trace_outcome", pa.string(), nullable=False),
        pa.field("trace_score", pa.float64()),
        pa.field("trace_reason", pa.string()),
        pa.field("executor", pa.string(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("severity", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("reason", pa.string()),
        pa.field("ledger_tokens", pa.int64()),
        pa.field("truth_tokens", pa.int64()),
        pa.field("ledger_finish", pa.string()),
        pa.field("truth_finish", pa.string()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_file", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("record", pa.string()),
        pa.field("rules", pa.string(), nullable=False),
        pa.field("rules_version", pa.string(), nullable=False),
        pa.field("checks", pa.list_(pa.struct(FIELDS)), nullable=False),
    ]
)

COLUMNS = tuple(name for name in SCHEMA.names if name != "checks")
"""What is read back; checks are for whoever opens the file."""

Compared = Dated[FidelityRow]
"""What comparing the traces of one date gave."""


class FidelityMonth(msgspec.Struct, frozen=True):
    """What a month file says of itself: its model and month, date → key, number of executors."""

    model: str
    month: str
    keys: dict[str, str]
    executors: int


def list_fidelity(store: Store) -> dict[str, FidelityMonth]:
    """What every month file says of itself, by path, sorted."""
    found = {}
    for path, footer in store.footers.below(FIDELITY).items():
        # A file that another version wrote may lack what this one needs.
        with store.decoding(path):
            found[path] = FidelityMonth(
                footer["model"].decode(),
                footer["month"].decode(),
                keys_of(footer),
                int(footer[COUNT]),
            )
    return found


def update_fidelity(
    store: Store,
    model: str,
    month: str,
    dates: Mapping[str, Compared | None],
    current_key: Callable[[str], str | None],
) -> bool:
    """Replace some dates of a model's month; True if the file changed.

    Args:
        store: Where the file lies.
        model: The model.
        month: `YYYY-MM`.
        dates: Date → what was compared, or None to drop the date.
        current_key: Date → the key that is right now, None if nothing is to be compared.
    """
    identity = {"model": model, "month": month}
    path = fidelity_path(model, month)
    return update_dates(store, path, identity, dates, current_key, _to_table, SCHEMA)


def read_fidelity(store: Store, paths: Iterable[str]) -> Iterator[FidelityRow]:
    """Yield the rows of some month files, in stored order, without their checks."""
    for path in paths:
        data = store.read(path)
        if data is not None:
            with store.decoding(path):
                table = read_table(data, SCHEMA, list(COLUMNS))
                rows = msgspec.convert(table.to_pylist(), list[FidelityRow])
            yield from rows


def _to_table(rows: Iterable[FidelityRow]) -> pa.Table:
    # Stable: executors of one trace keep their order.
    ordered = sorted(
        rows, key=lambda r: (r.date, r.task or "", r.trial or 0, r.trace_id, r.file, r.record or "")
    )
    return pa.Table.from_pylist([_cells(row) for row in ordered], schema=SCHEMA)


def _cells(row: FidelityRow) -> dict[str, Any]:
    cells: dict[str, Any] = {name: getattr(row, name) for name in COLUMNS}
    return {**cells, "checks": [check_cell(check) for check in row.checks]}
