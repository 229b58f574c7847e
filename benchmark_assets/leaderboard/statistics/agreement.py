"""How far two sets of yes/no labels of the same items agree, and two scores rank alike.

Used to ask whether contracts say what a benchmark's own grader, or a team's labels, say.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import msgspec


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """Two raters' labels, cross-tabulated. `kappa` is None where it is undefined."""

    both: int
    only_first: int
    only_second: int
    neither: int
    kappa: float | None

    @property
    def items(self) -> int:
        """Items that both labelled."""
        return self.both + self.only_first + self.only_second + self.neither

    @property
    def agreed(self) -> int:
        """Items labelled the same by both."""
        return self.both + self.neither


def cohen_kappa(pairs: Iterable[tuple[bool, bool]]) -> Agreement:
    """Cross-tabulate pairs of labels and compute Cohen's κ = (p_o − p_e) / (1 − p_e).

    Source: J. Cohen, "A Coefficient of Agreement for Nominal Scales", Educational and
    Psychological Measurement 20 (1960), 37-46. Undefined when chance alone would give full
    agreement (both raters use one label only), and for no items.
    """
    table = [0, 0, 0, 0]
    for first, second in pairs:
        table[(0 if first else 2) + (0 if second else 1)] += 1
    both, only_first, only_second, neither = table
    n = sum(table)
    kappa = None
    if n:
        chance = (both + only_first) * (both + only_second)
        chance += (only_second + neither) * (only_first + neither)
        if chance != n * n:
            kappa = ((both + neither) * n - chance) / (n * n - chance)
    return Agreement(
        both=both, only_first=only_first, only_second=only_second, neither=neither, kappa=kappa
    )


FEWEST_RANKED = 3
"""Two items can only be ranked alike or the other way round: that tells nothing."""


def rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Spearman's ρ: how alike two scores of the same items rank them, from -1 to 1.

    Pearson's correlation of the ranks, where ties share the mean of the ranks they take up.
    Source: C. Spearman, "The Proof and Measurement of Association between Two Things", The
    American Journal of Psychology 15 (1904), 72-101; ties after M. G. Kendall, "The Treatment
    of Ties in Ranking Problems", Biometrika 33 (1945), 239-251. None if there are fewer than
    `FEWEST_RANKED` items, or if one score tells none of them apart.
    """
    if len(pairs) < FEWEST_RANKED:
        return None
    # Twice the ranks, less their mean, are whole numbers: the sums below are exact.
    first, second = (_centred_ranks(scores) for scores in zip(*pairs, strict=True))
    spread = sum(a * a for a in first) * sum(b * b for b in second)
    if spread == 0:
        return None
    return sum(a * b for a, b in zip(first, second, strict=True)) / math.sqrt(spread)


def _centred_ranks(scores: Sequence[float]) -> list[int]:
    """Twice the rank of each score, ties sharing their mean, less twice the mean rank."""
    ordered = sorted(scores)
    return [
        bisect_left(ordered, score) + bisect_right(ordered, score) - len(ordered)
        for score in scores
    ]
