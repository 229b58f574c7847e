"""Cohen's kappa and Spearman's rho against published tables, and where they are undefined."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from benchmark_assets.leaderboard.statistics.agreement import (
    Agreement,
    cohen_kappa,
    rank_correlation,
)

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


# https://en.wikipedia.org/wiki/Spearman%27s_rank_correlation_coefficient: IQ, hours of TV a week.
IQ_AND_HOURS = [
    (106, 7),
    (100, 27),
    (86, 2),
    (101, 50),
    (99, 28),
    (103, 29),
    (97, 20),
    (113, 12),
    (112, 6),
    (110, 17),
]


@pytest.mark.parametrize(
    ("pairs", "rho"),
    [
        (IQ_AND_HOURS, -29 / 165),
        ([(1, 10), (2, 20), (3, 25)], 1.0),
        ([(1, 3), (2, 2), (3, 1)], -1.0),
        # By hand: ranks 1.5 1.5 3 and 1 2 3; covariance 1.5, variances 1.5 and 2.
        ([(0.5, 0.1), (0.5, 0.2), (0.9, 0.3)], 1.5 / 3**0.5),
    ],
)
def test_ranks_of_published_tables(pairs: list[tuple[float, float]], rho: float) -> None:
    assert rank_correlation(pairs) == pytest.approx(rho, abs=1e-12)


@pytest.mark.parametrize("pairs", [[], [(1, 2)], [(1, 2), (2, 3)], [(1, 2), (1, 3), (1, 4)]])
def test_no_ranks_to_compare(pairs: list[tuple[float, float]]) -> None:
    assert rank_correlation(pairs) is None


RATES = st.lists(st.tuples(*[st.integers(0, 6).map(lambda n: n / 6)] * 2), min_size=3, max_size=9)


@given(RATES)
def test_rank_correlation_is_scipys(pairs: list[tuple[float, float]]) -> None:
    found = rank_correlation(pairs)
    first, second = zip(*pairs, strict=True)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(stats.spearmanr(first, second).statistic, abs=1e-12)
        assert rank_correlation([(b, a) for a, b in pairs]) == found
