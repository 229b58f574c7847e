"""Formulas that need nothing but numbers: also for commands that must not load pandas.

Belongs here: estimators over plain numbers, with their sources. Does not belong here: counting
runs (`statistics`).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import comb


def pass_hat_k(tasks: Sequence[tuple[int, int]], k: int) -> float:
    """pass^k over tasks given as (resolved, trials): mean of C(c, k) / C(n, k).

    How likely all of k trials of a task resolve; source and deviations: `statistics/pass_hat_k`.

    Raises:
        ValueError: If there are no tasks, or a task has fewer than k trials.
    """
    if not tasks or any(trials < k or not 0 <= resolved <= trials for resolved, trials in tasks):
        raise ValueError(f"pass^{k} needs tasks with at least {k} trials each")
    total = sum(
        (Fraction(comb(resolved, k), comb(trials, k)) for resolved, trials in tasks), Fraction(0)
    )
    return float(total / len(tasks))
