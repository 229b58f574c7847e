"""How often runs resolve: macro over contracts, micro over runs, and an interval where one holds.

Only scored runs (resolved or unresolved) count: an unchecked run says nothing, and an error is
ours, not the model's. Both are counted beside the rate.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import pandas as pd
from scipy.special import ndtri

from benchmark_assets.leaderboard.statistics.base import Statistic
from benchmark_assets.model.standings import Counts, Interval, PassRate


def wilson_interval(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Wilson score interval for a binomial proportion.

    Source: E. B. Wilson, "Probable inference, the law of succession, and statistical
    inference", JASA 22 (1927), 209-212; without continuity correction.

    Args:
        successes: Number of successes, 0 ≤ successes ≤ trials.
        trials: Number of independent trials, at least 1.
        level: Confidence level in (0, 1).

    Raises:
        ValueError: If the counts or the level are out of range.
    """
    if trials < 1 or not 0 <= successes <= trials or not 0 < level < 1:
        raise ValueError(f"no interval for {successes} of {trials} at level {level}")
    z = float(ndtri(0.5 + level / 2))
    p = successes / trials
    denominator = 1 + z * z / trials
    centre = (p + z * z / (2 * trials)) / denominator
    half = z / denominator * sqrt(p * (1 - p) / trials + z * z / (4 * trials * trials))
    # At the edges the formula gives 0 and 1 but for rounding.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low=low, high=high, method="Wilson", level=level)


def counts(runs: pd.DataFrame) -> Counts:
    """Runs by outcome."""
    found = runs["outcome"].value_counts()
    return Counts(
        resolved=int(found.get("resolved", 0)),
        unresolved=int(found.get("unresolved", 0)),
        unchecked=int(found.get("unchecked", 0)),
        error=int(found.get("error", 0)),
    )


def macro_rate(runs: pd.DataFrame) -> Fraction | None:
    """Mean over contracts of each one's rate, exactly, so that equal standings are equal."""
    scored = runs[runs["scored"]]
    if scored.empty:
        return None
    by_contract = scored.groupby("contract", observed=True)["resolved"].agg(["sum", "count"])
    rates = [
        Fraction(int(resolved), int(total))
        for resolved, total in by_contract.itertuples(index=False, name=None)
    ]
    return sum(rates, Fraction(0)) / len(rates)


def _compute(runs: pd.DataFrame) -> PassRate:
    tally = counts(runs)
    scored = runs[runs["scored"]]
    if scored.empty:
        return PassRate(
            macro=None,
            micro=None,
            counts=tally,
            tasks=0,
            trials=0,
            no_interval="nothing was scored",
        )
    macro = macro_rate(runs)
    per_unit = scored["unit"].value_counts()
    trials = int(per_unit.max())
    interval, why = None, None
    if trials == 1:
        interval = wilson_interval(tally.resolved, tally.scored)
    else:
        why = f"up to {trials} trials per task: repeated trials are not independent"
    return PassRate(
        macro=None if macro is None else float(macro),
        micro=tally.resolved / tally.scored,
        counts=tally,
        tasks=len(per_unit),
        trials=trials,
        interval=interval,
        no_interval=why,
    )


STATISTIC = Statistic("pass_rate", _compute)
