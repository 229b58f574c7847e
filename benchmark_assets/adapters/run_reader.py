"""Columns of many month files as one frame.

Belongs here: the scan that the leaderboard is computed from. Does not belong here: writing the
files (`run_files`), which must not wait for pandas to be imported.
"""

from __future__ import annotations

import glob
from collections.abc import Sequence

import duckdb
import pandas as pd

from benchmark_assets.adapters.run_files import SCHEMA
from benchmark_assets.adapters.store import Store

LEADERBOARD_COLUMNS = (
    "date",
    "trace_id",
    "model",
    "contract",
    "group",
    "task",
    "trial",
    "outcome",
    "reason",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_usd",
    "cost_estimated",
    "duration_ms",
)
"""What standings are computed from; reading no more keeps a year of history small."""


# A path value `model=…` would replace the column of that name.
_RUNS = "read_parquet($files, hive_partitioning = false)"

# A trace id alone is no identity: two files may use one for different traces.
_TRACE = ("date", "model", "trace_id", "file", "record", "sha256")


def read_runs(
    store: Store, paths: Sequence[str], columns: Sequence[str] = LEADERBOARD_COLUMNS
) -> pd.DataFrame:
    """Read some columns of month files into one frame, sorted by (contract, model, date, …)."""
    if not paths:
        empty = SCHEMA.empty_table().select(list(columns))
        frame: pd.DataFrame = empty.to_pandas()
        return frame
    wanted = ", ".join(f'"{name}"' for name in columns)
    return _query(
        store,
        paths,
        f"SELECT {wanted} FROM {_RUNS} "  # noqa: S608
        'ORDER BY "contract", "model", "date", "task" NULLS FIRST, "trial", "trace_id", '
        '"file", "record" NULLS FIRST',
    )


def count_traces(store: Store, paths: Sequence[str]) -> int:
    """How many different traces the runs of some month files judge."""
    if not paths:
        return 0
    identity = ", ".join(f'"{name}"' for name in _TRACE)
    found = _query(
        store,
        paths,
        f"SELECT count(*) AS traces FROM (SELECT DISTINCT {identity} FROM {_RUNS})",  # noqa: S608
    )
    return int(found["traces"].iloc[0])


def _query(store: Store, paths: Sequence[str], sql: str) -> pd.DataFrame:
    """Run a query over some month files, which `_RUNS` stands for."""
    connection = duckdb.connect()
    try:
        connection.execute("SET enable_progress_bar = false")
        if store.local is None:
            connection.register_filesystem(store.root.fs)
            files = [f"{store.root.protocol}://{store.path(path).path}" for path in paths]
        else:
            files = [str(store.local / path) for path in paths]
        # DuckDB takes every name for a pattern, and a store may lie under `[2026]`.
        files = [glob.escape(file) for file in files]
        result: pd.DataFrame = connection.execute(sql, {"files": files}).df()
        return result
    finally:
        connection.close()
