"""How long runs took: median and 95th percentile.

Quantiles are nearest-rank (the smallest value with at least that share of the runs at or below
it; type 1 of Hyndman and Fan, "Sample Quantiles in Statistical Packages", The American
Statistician 50 (1996), 361-365): always a duration that was really measured.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from benchmark_assets.leaderboard.statistics.base import Statistic
from benchmark_assets.model.standings import Duration


def _compute(runs: pd.DataFrame) -> Duration:
    known = runs["duration_ms"].dropna()
    if known.empty:
        return Duration(runs=len(runs), known=0, median_ms=None, p95_ms=None)
    values = known.to_numpy(dtype=np.int64)
    median, p95 = np.quantile(values, [0.5, 0.95], method="inverted_cdf")
    return Duration(runs=len(runs), known=len(values), median_ms=int(median), p95_ms=int(p95))


STATISTIC = Statistic("duration", _compute)
