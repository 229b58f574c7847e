"""How far two sets of yes/no labels of the same items agree.

Used to ask whether contracts say what a benchmark's own grader, or a team's labels, say.
"""

from __future__ import annotations

from collections.abc import Iterable

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
