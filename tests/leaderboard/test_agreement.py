"""Cohen's kappa against published tables, and where it is undefined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.leaderboard.statistics.agreement import Agreement, cohen_kappa

_CELLS = ((True, True), (True, False), (False, True), (False, False))


def table(*counts: int) -> list[tuple[bool, bool]]:
    """Pairs with the given counts: both, only the first, only the second, neither."""
    return [cell for cell, n in zip(_CELLS, counts, strict=True) for _ in range(n)]


@pytest.mark.parametrize(
    ("counts", "kappa"),
    [
        # https://en.wikipedia.org/wiki/Cohen%27s_kappa: "Simple example" and "Same percentages
        # but different numbers"; the fourth value is scikit-learn 1.9.1's cohen_kappa_score.
        ((20, 5, 10, 15), 0.40),
        ((45, 15, 25, 15), 0.1304),
        ((25, 35, 5, 35), 0.2593),
        ((10, 7, 0, 68), 0.6957),
        ((1, 0, 0, 1), 1.0),
        ((0, 1, 1, 0), -1.0),
        ((1, 1, 1, 1), 0.0),
        ((3, 2, 0, 0), 0.0),  # the second rater tells nothing apart
    ],
)
def test_published_tables(counts: tuple[int, int, int, int], kappa: float) -> None:
    found = cohen_kappa(table(*counts))
    assert found.kappa is not None
    assert round(found.kappa, 4) == kappa
    assert (found.both, found.only_first, found.only_second, found.neither) == counts
    assert found.items == sum(counts)
    assert found.agreed == counts[0] + counts[3]


@pytest.mark.parametrize("counts", [(0, 0, 0, 0), (5, 0, 0, 0), (0, 0, 0, 5)])
def test_undefined(counts: tuple[int, int, int, int]) -> None:
    """No items, or one label only: chance alone explains everything."""
    found = cohen_kappa(table(*counts))
    assert found == Agreement(
        both=counts[0], only_first=0, only_second=0, neither=counts[3], kappa=None
    )


PAIRS = st.lists(st.tuples(st.booleans(), st.booleans()), max_size=30)


@given(PAIRS.flatmap(lambda pairs: st.tuples(st.just(pairs), st.permutations(pairs))))
def test_neither_order_nor_sides_nor_names_matter(
    case: tuple[list[tuple[bool, bool]], list[tuple[bool, bool]]],
) -> None:
    pairs, shuffled = case
    kappa = cohen_kappa(pairs).kappa
    assert cohen_kappa(shuffled).kappa == kappa
    assert cohen_kappa((b, a) for a, b in pairs).kappa == kappa
    assert cohen_kappa((not a, not b) for a, b in pairs).kappa == kappa


@given(PAIRS)
def test_it_is_at_most_1_and_1_only_for_full_agreement(pairs: list[tuple[bool, bool]]) -> None:
    found = cohen_kappa(pairs)
    if found.kappa is not None:
        assert -1 <= found.kappa <= 1
        assert (found.kappa == 1) == (found.agreed == found.items)
