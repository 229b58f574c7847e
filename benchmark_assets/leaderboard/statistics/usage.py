"""What runs used: tokens and money, per run and per resolved run.

All runs count, whatever their outcome: failures cost money too. A run that does not record a
quantity is left out of it and counted as unknown; 0 is a measurement. "Per resolved run" is
what one success cost: everything known runs used, divided by how many of them resolved.
"""

from __future__ import annotations

import pandas as pd

from benchmark_assets.leaderboard.statistics.base import Statistic
from benchmark_assets.model.standings import Quantity


def _quantity(runs: pd.DataFrame, column: str, unit: int, estimated: str | None) -> Quantity:
    known = runs[runs[column].notna()]
    if known.empty:
        return Quantity(runs=len(runs), known=0, total=None, per_run=None, per_resolved=None)
    total = sum(int(value) for value in known[column])
    resolved = int(known["resolved"].sum())
    return Quantity(
        runs=len(runs),
        known=len(known),
        total=total / unit,
        per_run=total / (unit * len(known)),
        per_resolved=total / (unit * resolved) if resolved else None,
        estimated=int(known[estimated].sum()) if estimated else 0,
    )


def _tokens(runs: pd.DataFrame) -> Quantity:
    return _quantity(runs, "tokens", 1, None)


def _cost(runs: pd.DataFrame) -> Quantity:
    return _quantity(runs, "cost_micro", 1_000_000, "cost_estimated")


TOKENS = Statistic("tokens", _tokens)
COST = Statistic("cost_usd", _cost)
