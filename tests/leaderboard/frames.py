"""Small frames of runs, made the way the store makes them: rows, Arrow, pandas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from benchmark_assets.adapters.run_files import to_table
from benchmark_assets.adapters.run_reader import LEADERBOARD_COLUMNS
from benchmark_assets.leaderboard.runs import prepare
from benchmark_assets.model.standings import ContractEntry
from benchmark_assets.model.verdict import Outcome, RunRow

_WORDS: dict[str, Outcome] = {
    "+": "resolved",
    "-": "unresolved",
    "?": "unchecked",
    "!": "error",
}


def run(outcome: str = "+", **fields: Any) -> RunRow:
    """One run. `outcome` is `+` resolved, `-` unresolved, `?` unchecked, `!` error."""
    contract = fields.get("contract", "c")
    values: dict[str, Any] = {
        "date": "2026-03-01",
        "trace_id": "t",
        "model": "m",
        "contract": contract,
        "contract_version": "1",
        "contract_name": contract,
        "workflow": contract,
        "group": contract,
        "task": "task",
        "trial": 0,
        "outcome": _WORDS[outcome],
        "score": None,
        "reason": None,
        "input_tokens": None,
        "output_tokens": None,
        "cache_read_tokens": None,
        "cache_write_tokens": None,
        "reasoning_tokens": None,
        "cost_usd": None,
        "cost_estimated": False,
        "duration_ms": None,
        "started_at": None,
        "user_id": None,
        "session_id": None,
        "agents": (),
        "tool_calls": 0,
        "file": "f.json",
        "sha256": "0" * 64,
        "record": None,
        "contract_sha256": "1" * 64,
        "engine": "1",
        "plugins": (),
    }
    unknown = set(fields) - set(values)
    assert not unknown, f"no column {unknown}"
    return RunRow(**{**values, **fields})


def runs(outcomes: str, **fields: Any) -> Iterator[RunRow]:
    """One run per sign of `outcomes`: tasks `0`, `1`, …; a space separates tasks with trials.

    `runs("+-?")` has three tasks of one trial, `runs("+- ++")` two tasks of two trials.
    """
    tasks = outcomes.split() if " " in outcomes else list(outcomes)
    for task, trials in enumerate(tasks):
        for trial, sign in enumerate(trials):
            identity = {"task": str(task), "trial": trial, "trace_id": f"{task}.{trial}"}
            yield run(sign, **{**identity, **fields})


def raw(rows: Iterable[RunRow]) -> pd.DataFrame:
    """Rows as `compute_standings` takes them."""
    frame: pd.DataFrame = to_table(rows).select(list(LEADERBOARD_COLUMNS)).to_pandas()
    return frame


def prepared(rows: Iterable[RunRow]) -> pd.DataFrame:
    """Rows as the statistics take them."""
    return prepare(raw(rows))


def entry(contract: str, judged: int = 0) -> ContractEntry:
    return ContractEntry(
        contract=contract,
        name=contract,
        label=f"{contract}@1",
        group=contract,
        sha256="1" * 64,
        runs=judged,
    )
