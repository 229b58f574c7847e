"""Runs as the statistics see them: a frame with codes and exact integers.

Belongs here: the columns every statistic may rely on. Does not belong here: any statistic.

Published sums must be the same on every machine, and adding floats is not: money is turned
into whole micro-dollars first, times are whole milliseconds, tokens are counts.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

_BUCKETS = (
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
)


def prepare(rows: pd.DataFrame) -> pd.DataFrame:
    """Derive what the statistics use from stored run rows.

    Args:
        rows: Columns as `adapters.run_reader.LEADERBOARD_COLUMNS`, one row a run.

    Returns:
        The same rows with `scored` and `resolved` (bool), `unit` (a text that tells tasks
        apart across contracts; a run without a task is a unit of its own), `tokens` (nullable
        integer, all buckets) and `cost_micro` (nullable integer, micro-dollars).
    """
    runs = rows.copy()
    runs["scored"] = runs["outcome"].isin(["resolved", "unresolved"])
    runs["resolved"] = runs["outcome"].eq("resolved")
    # Ids are the source's: two models, or two days of one, may use the same.
    own = pd.Series("", index=runs.index, dtype="object")
    for part in ("model", "date", "trace_id"):
        own = own + "\x00" + runs[part].astype("object").astype(str)
    task = runs["task"].astype("object")
    task = task.where(task.notna(), own)
    runs["unit"] = runs["contract"].astype("object").astype(str) + "\x00" + task.astype(str)
    buckets = runs[list(_BUCKETS)].astype("Int64")
    runs["tokens"] = buckets.sum(axis=1, min_count=1).astype("Int64")
    cost = runs["cost_usd"].astype("Float64") * 1_000_000
    runs["cost_micro"] = pd.Series(
        [pd.NA if pd.isna(value) else int(np.rint(value)) for value in cost],
        index=runs.index,
        dtype="Int64",
    )
    return runs
