"""Random draws that are the same on every machine and in every Python version.

Belongs here: the few kinds of draw the demo needs. Does not belong here: what is drawn for.

Everything is made from `random.Random.random()`, the one method whose sequence Python promises
to keep for a given seed; the others (`choice`, `gauss`) may change between versions.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """One independent stream of draws, named by its seed text."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random.random() < probability

    def whole(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One of the items, each equally likely."""
        return items[self.whole(0, len(items) - 1)]

    def weighted(self, weights: Sequence[tuple[T, float]]) -> T:
        """One of the items, as likely as its weight; at least one weight is positive."""
        point = self._random.random() * sum(weight for _, weight in weights)
        for item, weight in weights:
            point -= weight
            if point < 0:
                return item
        return next(item for item, weight in reversed(weights) if weight > 0)

    def log_normal(self, median: float, sigma: float) -> float:
        """A positive number around `median`; `sigma` is the spread of its logarithm.

        The normal draw is the sum of twelve uniform ones less six (Irwin-Hall): its tails end
        at six sigma, which keeps outliers of a duration believable.
        """
        normal = sum(self._random.random() for _ in range(12)) - 6
        return median * math.exp(sigma * normal)

    def hex(self, digits: int) -> str:
        """A hexadecimal text of the given length."""
        return "".join(self.pick("0123456789abcdef") for _ in range(digits))
