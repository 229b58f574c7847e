"""pass^k: how likely all of k trials of a task resolve.

Estimator: mean over tasks of C(c, k) / C(n, k), with c resolved among n scored trials of a
task; unbiased for each task, unlike the k-th power of a pass rate. Source: S. Yao et al.,
"τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains",
arXiv:2406.12045, section 3. Every task weighs the same, whatever its number of trials.
"""

from __future__ import annotations

from math import fsum

import numpy as np
import pandas as pd

from benchmark_assets.leaderboard.estimators import pass_hat_k
from benchmark_assets.leaderboard.statistics.base import Statistic
from benchmark_assets.model.standings import PassHatK

EXACT_K = 50
"""Up to here k is computed in exact fractions; a task that is run every day has a thousand trials
in a year, and the fractions of a thousand k take minutes. Beyond it floats differ by less than
1e-12."""


def _compute(runs: pd.DataFrame) -> tuple[PassHatK, ...]:
    scored = runs[runs["scored"]]
    if scored.empty:
        return ()
    by_unit = scored.groupby("unit", observed=True)["resolved"].agg(["sum", "count"])
    tasks = [(int(c), int(n)) for c, n in by_unit.itertuples(index=False, name=None)]
    most = min(trials for _, trials in tasks)
    values = [pass_hat_k(tasks, k) for k in range(1, min(most, EXACT_K) + 1)]
    if most > EXACT_K:
        # C(c, k) / C(n, k) is the product of (c - i) / (n - i) for i below k.
        steps = np.arange(most)
        ratios = [np.cumprod(np.maximum(c - steps, 0) / (n - steps)) for c, n in tasks]
        # fsum: the same to the last bit whatever the order of tasks.
        values += [fsum(column) / len(tasks) for column in zip(*ratios, strict=True)][EXACT_K:]
    return tuple(
        PassHatK(k=k, value=value, tasks=len(tasks)) for k, value in enumerate(values, start=1)
    )


STATISTIC = Statistic("pass_hat_k", _compute)
