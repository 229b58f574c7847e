"""The statistics of a set of runs, in the order of the fields they fill in `Figures`.

A new statistic is one file here with a `STATISTIC`, one field in `Figures`, and one line in
`STATISTICS`. Tools that compare two sets of labels (`agreement`) are no statistic of one set
of runs and are not listed.
"""

from __future__ import annotations

import pandas as pd

from benchmark_assets.leaderboard.statistics import duration, pass_hat_k, pass_rate, usage
from benchmark_assets.leaderboard.statistics.base import Statistic
from benchmark_assets.model.standings import Figures

STATISTICS: tuple[Statistic, ...] = (
    pass_rate.STATISTIC,
    pass_hat_k.STATISTIC,
    usage.TOKENS,
    usage.COST,
    duration.STATISTIC,
)


def figures(runs: pd.DataFrame) -> Figures:
    """Every statistic over one set of runs (prepared by `leaderboard.runs.prepare`)."""
    return Figures(**{statistic.field: statistic.compute(runs) for statistic in STATISTICS})
