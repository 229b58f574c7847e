"""Comparisons that were asked to be kept: a Parquet file of one row each.

Belongs here: the file's schema and name, writing and reading. Does not belong here: comparing.

A file is named by the hash of its row, so the same comparison of the same bytes by the same rules
is one file however often it is made, and two processes that write at once cannot harm each other.
"""

from __future__ import annotations

import io
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.json as pj

from benchmark_assets.adapters.parquet import read_table, to_parquet
from benchmark_assets.adapters.store import Store
from benchmark_assets.model.fidelity import FidelityRun
from benchmark_assets.model.identity import canonical_json, content_hash

FIDELITY_RUNS = "fidelity_runs"

SCHEMA = pa.schema(
    [
        pa.field("family", pa.string(), nullable=False),
        pa.field("cost_tier", pa.string(), nullable=False),
        pa.field("preset", pa.string(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("rules", pa.string(), nullable=False),
        pa.field("version", pa.string(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("score", pa.float64()),
        pa.field("coverage", pa.float64()),
        pa.field("token_coverage", pa.float64()),
        pa.field("reason", pa.string()),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("truth_sha256", pa.string()),
    ]
)


def fidelity_run_path(run: FidelityRun) -> str:
    """Where a comparison lies, relative to the store."""
    return f"{FIDELITY_RUNS}/{content_hash(canonical_json(_cells(run)))}.parquet"


def store_fidelity_run(store: Store, run: FidelityRun) -> tuple[str, bool]:
    """Write a comparison.

    Returns:
        Its path, and whether it is a new one.
    """
    path = fidelity_run_path(run)
    # Arrow's own JSON reader, since its conversions from Python values load pandas.
    table = pj.read_json(
        io.BytesIO(canonical_json(_cells(run))),
        parse_options=pj.ParseOptions(explicit_schema=SCHEMA, newlines_in_values=False),
    )
    return path, store.write(path, to_parquet(table.select(SCHEMA.names).cast(SCHEMA), {}))


def read_fidelity_runs(store: Store) -> tuple[FidelityRun, ...]:
    """All stored comparisons, by family and subject.

    Raises:
        InputError: If a file is damaged; names it.
    """
    found = []
    for path in store.list(FIDELITY_RUNS, ".parquet"):
        data = store.read(path)
        if data is not None:
            with store.decoding(path):
                found += msgspec.convert(read_table(data, SCHEMA).to_pylist(), list[FidelityRun])
    return tuple(sorted(found, key=lambda run: canonical_json(_cells(run))))


def _cells(run: FidelityRun) -> dict[str, Any]:
    """A row as it is stored, with escapes for what is no Unicode: command lines may hold such."""
    cells: dict[str, Any] = {}
    for name in SCHEMA.names:
        value = getattr(run, name)
        cells[name] = _storable(value) if isinstance(value, str) else value
    return cells


def _storable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
