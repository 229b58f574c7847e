"""Tokens and money: unknown is not 0, and sums do not depend on the order of rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.leaderboard.runs import prepare
from benchmark_assets.leaderboard.statistics.usage import COST, TOKENS
from benchmark_assets.model.standings import Quantity
from tests.leaderboard.frames import prepared, raw, run


def cost(*rows: tuple[str, float | None]) -> Quantity:
    found: Quantity = COST.compute(prepared(run(sign, cost_usd=usd) for sign, usd in rows))
    return found


def test_failures_cost_money_too() -> None:
    # 0.10 + 0.20 + 0.30 over 3 runs, one of them resolved.
    found = cost(("+", 0.10), ("-", 0.20), ("!", 0.30))
    assert found == Quantity(runs=3, known=3, total=0.6, per_run=0.2, per_resolved=0.6)


def test_unknown_is_left_out_and_counted() -> None:
    found = cost(("+", 0.5), ("+", None), ("-", None), ("-", 1.5))
    assert found == Quantity(runs=4, known=2, total=2.0, per_run=1.0, per_resolved=2.0)


def test_zero_is_a_measurement() -> None:
    assert cost(("+", 0.0), ("-", 0.0)) == Quantity(
        runs=2, known=2, total=0.0, per_run=0.0, per_resolved=0.0
    )


def test_nothing_known() -> None:
    nothing = Quantity(runs=2, known=0, total=None, per_run=None, per_resolved=None)
    assert cost(("+", None), ("-", None)) == nothing


@pytest.mark.parametrize("statistic", [TOKENS, COST])
def test_no_runs(statistic: Any) -> None:
    nothing = Quantity(runs=0, known=0, total=None, per_run=None, per_resolved=None)
    assert statistic.compute(prepared([])) == nothing


@pytest.mark.parametrize("rows", [[("-", 1.0)], [("-", 1.0), ("+", None)], [("?", 1.0)]])
def test_no_known_run_resolved(rows: list[tuple[str, float | None]]) -> None:
    """One success has no price yet; that is neither 0 nor infinite."""
    assert cost(*rows).per_resolved is None


def test_estimates_are_counted_among_the_known() -> None:
    rows = [
        run(cost_usd=1.0, cost_estimated=True),
        run(cost_usd=1.0),
        run(cost_usd=1.0, cost_estimated=True),
        run(cost_usd=None),
    ]
    found = COST.compute(prepared(rows))
    assert (found.runs, found.known, found.estimated) == (4, 3, 2)
    assert TOKENS.compute(prepared(rows)).estimated == 0


def test_floats_that_do_not_add_up_do() -> None:
    """0.1 ten times is 0.9999999999999999 in floats."""
    assert sum([0.1] * 10) != 1.0
    assert cost(*[("+", 0.1)] * 10).total == 1.0


@pytest.mark.parametrize(
    ("usd", "micro"),
    [
        (0.0, 0),
        (4e-7, 0),
        (6e-7, 1),
        (0.0854321, 85_432),
        (1.0000004, 1_000_000),
        (123.456789, 123_456_789),
    ],
)
def test_money_is_in_whole_micro_dollars(usd: float, micro: int) -> None:
    assert prepared([run(cost_usd=usd)])["cost_micro"].tolist() == [micro]


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.tuples(
            st.sampled_from("+-?!"),
            st.none() | st.floats(0, 1000, allow_subnormal=False),
            st.none() | st.integers(0, 10**7),
        ),
        max_size=12,
    ).flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(rows)))
)
def test_order_of_rows_never_matters(pair: tuple[list[Any], list[Any]]) -> None:
    def frame(rows: list[Any]) -> Any:
        return prepared(
            run(sign, cost_usd=usd, output_tokens=n, trace_id=str(index))
            for index, (sign, usd, n) in enumerate(rows)
        )

    one, other = (frame(rows) for rows in pair)
    assert COST.compute(one) == COST.compute(other)
    assert TOKENS.compute(one) == TOKENS.compute(other)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.none() | st.integers(0, 10**12), min_size=1, max_size=8))
def test_tokens_against_python_integers(counts: list[int | None]) -> None:
    found = TOKENS.compute(prepared(run("+", input_tokens=n) for n in counts))
    known = [n for n in counts if n is not None]
    assert (found.runs, found.known) == (len(counts), len(known))
    assert found.total == (sum(known) if known else None)
    assert found.per_run == (sum(known) / len(known) if known else None)


@pytest.mark.parametrize(
    ("buckets", "total"),
    [
        ({}, None),
        ({"input_tokens": 0}, 0),
        ({"input_tokens": 7}, 7),
        ({"reasoning_tokens": 5}, 5),
        ({"input_tokens": 1, "output_tokens": 20}, 21),
        (
            {
                "input_tokens": 1,
                "output_tokens": 20,
                "cache_read_tokens": 300,
                "cache_write_tokens": 4000,
                "reasoning_tokens": 50000,
            },
            54321,
        ),
    ],
)
def test_a_runs_tokens_are_the_sum_of_its_known_buckets(
    buckets: dict[str, Any], total: int | None
) -> None:
    assert TOKENS.compute(prepared([run(**buckets)])).total == total


def test_an_unknown_bucket_beside_a_known_run_stays_unknown() -> None:
    rows = [run(trace_id="a", input_tokens=3), run(trace_id="b")]
    found = TOKENS.compute(prepared(rows))
    assert (found.runs, found.known, found.total) == (2, 1, 3)


def test_preparing_leaves_the_callers_frame_alone() -> None:
    frame = raw([run(cost_usd=1.0)])
    before = frame.copy()
    prepare(frame)
    assert frame.equals(before)
    assert list(frame.columns) == list(before.columns)
