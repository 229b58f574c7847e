"""Durations: nearest-rank quantiles against hand values and exact ranks."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.leaderboard.statistics.duration import STATISTIC
from benchmark_assets.model.standings import Duration
from tests.leaderboard.frames import prepared, run


def duration(*values: int | None) -> Duration:
    found: Duration = STATISTIC.compute(prepared(run(duration_ms=value) for value in values))
    return found


@pytest.mark.parametrize(
    ("values", "median", "p95"),
    [
        ([7], 7, 7),
        ([1, 2], 1, 2),
        ([3, 1, 2], 2, 3),
        ([4, 3, 2, 1], 2, 4),
        # The worked example of the nearest-rank method: ranks ceil(0.5 n) and ceil(0.95 n).
        ([15, 20, 35, 40, 50], 35, 50),
        ([3, 6, 7, 8, 8, 10, 13, 15, 16, 20], 8, 20),
        (list(range(1, 20)), 10, 19),
        (list(range(1, 21)), 10, 19),  # 0.95 * 20 = 19 exactly
        (list(range(1, 22)), 11, 20),
        (list(range(1, 101)), 50, 95),
        (list(range(1, 102)), 51, 96),
        ([0, 0, 0, 9], 0, 9),
    ],
)
def test_hand_values(values: list[int], median: int, p95: int) -> None:
    found = duration(*values)
    assert (found.median_ms, found.p95_ms) == (median, p95)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=60))
def test_nearest_rank_in_integers(values: list[int]) -> None:
    ordered = sorted(values)
    n = len(values)
    found = duration(*values)
    assert found.median_ms == ordered[-(-n // 2) - 1]
    assert found.p95_ms == ordered[-(-95 * n // 100) - 1]


def test_p95_at_every_size_up_to_a_thousand() -> None:
    """0.95 n is not exact in floats, and a rank too high would be a wrong duration."""
    frame = prepared(run(duration_ms=value) for value in range(1, 1001))
    for n in range(1, 1001):
        found = STATISTIC.compute(frame.iloc[:n])
        assert (found.median_ms, found.p95_ms) == (-(-n // 2), -(-95 * n // 100))


def test_unknown_is_left_out_and_counted() -> None:
    found = duration(5, None, 9, None, None)
    assert found == Duration(runs=5, known=2, median_ms=5, p95_ms=9)


def test_zero_is_a_measurement() -> None:
    assert duration(0) == Duration(runs=1, known=1, median_ms=0, p95_ms=0)


@pytest.mark.parametrize("values", [[], [None], [None, None]])
def test_nothing_known(values: list[None]) -> None:
    assert duration(*values) == Duration(runs=len(values), known=0, median_ms=None, p95_ms=None)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.none() | st.integers(0, 10**6), max_size=12).flatmap(
        lambda values: st.tuples(st.just(values), st.permutations(values))
    )
)
def test_order_of_rows_never_matters(pair: tuple[list[int | None], list[int | None]]) -> None:
    assert duration(*pair[0]) == duration(*pair[1])
