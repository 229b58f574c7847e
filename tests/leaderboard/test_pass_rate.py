"""Pass rates and the Wilson interval against published values and hand computation."""

from __future__ import annotations

from decimal import Decimal, getcontext
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.leaderboard.statistics.pass_rate import (
    STATISTIC,
    counts,
    macro_rate,
    wilson_interval,
)
from benchmark_assets.model.standings import Counts, Interval, PassRate
from tests.leaderboard.frames import prepared, run, runs


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        # R. G. Newcombe, "Two-sided confidence intervals for the single proportion: comparison
        # of seven methods", Statistics in Medicine 17 (1998), 857-872, table I, method 3.
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0000, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_newcombes_table(successes: int, trials: int, low: float, high: float) -> None:
    interval = wilson_interval(successes, trials)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@pytest.mark.parametrize(
    ("successes", "trials", "level", "low", "high"),
    [
        # statsmodels 0.15.0: proportion_confint(successes, trials, 1 - level, method="wilson").
        (5, 5, 0.95, 0.5655175352168252, 1.0),
        (0, 5, 0.95, 0.0, 0.43448246478317487),
        (1, 1, 0.95, 0.2065493143772374, 1.0),
        (0, 1, 0.95, 0.0, 0.7934506856227627),
        (1, 2, 0.95, 0.09453120573423068, 0.9054687942657693),
        (7, 30, 0.95, 0.11792388144489496, 0.40928326158122175),
        (29, 29, 0.95, 0.8830302015002592, 1.0),
        (999, 1000, 0.95, 0.9943574414020421, 0.9998234536293739),
        (500_000, 1_000_000, 0.95, 0.4990200198900048, 0.5009799801099952),
        (5, 5, 0.90, 0.6488834992348986, 1.0),
        (7, 30, 0.90, 0.13176024453803759, 0.3790260531286821),
        (50, 100, 0.90, 0.4188477961125295, 0.5811522038874706),
        (81, 263, 0.99, 0.24013690268760773, 0.38528250231822986),
        (0, 1000, 0.99, 0.0, 0.00659116490340683),
    ],
)
def test_independent_values(
    successes: int, trials: int, level: float, low: float, high: float
) -> None:
    interval = wilson_interval(successes, trials, level)
    assert interval.low == pytest.approx(low, abs=1e-12)
    assert interval.high == pytest.approx(high, abs=1e-12)
    assert (interval.method, interval.level) == ("Wilson", level)


TRIALS = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(TRIALS)
def test_bounds_solve_the_score_equation(case: tuple[int, int]) -> None:
    """The bounds are the two proportions from which the observed one is exactly z away."""
    successes, trials = case
    getcontext().prec = 40
    # The 97.5 % point of the normal distribution, from a table.
    z = Decimal("1.959963984540054235524594430520551527955")
    interval = wilson_interval(successes, trials)
    for bound in (interval.low, interval.high):
        p = Decimal(bound)
        left = (Decimal(successes) / trials - p) ** 2 * trials
        assert left == pytest.approx(z * z * p * (1 - p), abs=Decimal("1e-9"))


@given(TRIALS)
def test_interval_is_a_mirror_image_and_holds_the_rate(case: tuple[int, int]) -> None:
    successes, trials = case
    one, other = wilson_interval(successes, trials), wilson_interval(trials - successes, trials)
    assert 0 <= one.low <= successes / trials <= one.high <= 1
    assert (one.low, one.high) == pytest.approx((1 - other.high, 1 - other.low), abs=1e-12)


@pytest.mark.parametrize("trials", [1, 2, 3, 20, 999, 10**6])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.95, 0.99])
def test_edges_are_exact(trials: int, level: float) -> None:
    assert wilson_interval(0, trials, level).low == 0.0
    assert wilson_interval(trials, trials, level).high == 1.0


@pytest.mark.parametrize(
    ("successes", "trials", "level"),
    [(0, 0, 0.95), (-1, 5, 0.95), (6, 5, 0.95), (1, -1, 0.95), (1, 2, 0.0), (1, 2, 1.0)],
)
def test_no_interval_for_nonsense(successes: int, trials: int, level: float) -> None:
    with pytest.raises(ValueError, match=rf"{successes} of {trials}"):
        wilson_interval(successes, trials, level)


def test_counts_by_outcome() -> None:
    found = counts(prepared(runs("+--???!!!!")))
    assert found == Counts(resolved=1, unresolved=2, unchecked=3, error=4)
    assert (found.scored, found.total) == (3, 10)


def test_macro_weighs_contracts_and_micro_weighs_runs() -> None:
    # a: 1 of 1; b: 1 of 4; macro (1 + 1/4) / 2 = 5/8; micro 2 of 5.
    rows = [*runs("+", contract="a"), *runs("+---", contract="b")]
    rate = STATISTIC.compute(prepared(rows))
    assert (rate.macro, rate.micro) == (0.625, 0.4)
    assert (rate.tasks, rate.trials) == (5, 1)


def test_macro_is_exact() -> None:
    """1/3 + 1/3 + 1/3 is 1 in fractions; equal standings must compare equal."""
    rows = [row for contract in "abc" for row in runs("+--", contract=contract)]
    assert macro_rate(prepared(rows)) == Fraction(1, 3)
    assert STATISTIC.compute(prepared(rows)).macro == 1 / 3


@pytest.mark.parametrize("noise", ["?", "!", "??!!", "!?!?!?!?"])
def test_unchecked_and_errors_are_counted_and_rate_nothing(noise: str) -> None:
    plain = STATISTIC.compute(prepared(runs("+-+")))
    extra = runs(noise, contract="other")
    mixed = STATISTIC.compute(prepared([*runs("+-+"), *extra]))
    assert mixed.counts.total == 3 + len(noise)
    for field in ("macro", "micro", "tasks", "trials", "interval", "no_interval"):
        assert getattr(mixed, field) == getattr(plain, field), field


@pytest.mark.parametrize("outcomes", ["", "?", "!", "?!"])
def test_nothing_scored_is_unknown_and_not_zero(outcomes: str) -> None:
    rate = STATISTIC.compute(prepared(runs(outcomes)))
    assert rate == PassRate(
        macro=None,
        micro=None,
        counts=Counts(unchecked=outcomes.count("?"), error=outcomes.count("!")),
        tasks=0,
        trials=0,
        interval=None,
        no_interval="nothing was scored",
    )


def test_all_failed_is_zero_and_not_unknown() -> None:
    rate = STATISTIC.compute(prepared(runs("---")))
    assert (rate.macro, rate.micro) == (0.0, 0.0)


def test_interval_at_one_trial_per_task() -> None:
    rate = STATISTIC.compute(prepared(runs("+++++")))
    assert rate.interval == wilson_interval(5, 5)
    assert rate.no_interval is None


@pytest.mark.parametrize(
    ("outcomes", "most"), [("++ +", 2), ("+- -+", 2), ("+++ + -", 3), ("+ - ----------", 10)]
)
def test_no_interval_for_repeated_trials(outcomes: str, most: int) -> None:
    rate = STATISTIC.compute(prepared(runs(outcomes)))
    assert rate.interval is None
    assert rate.no_interval == (
        f"up to {most} trials per task: repeated trials are not independent"
    )
    assert (rate.tasks, rate.trials) == (len(outcomes.split()), most)


def test_the_same_task_under_two_contracts_is_two_tasks() -> None:
    rate = STATISTIC.compute(prepared([run("+", contract="a"), run("-", contract="b")]))
    assert (rate.tasks, rate.trials) == (2, 1)
    assert isinstance(rate.interval, Interval)


def test_trials_that_were_not_scored_are_no_trials() -> None:
    rate = STATISTIC.compute(prepared(runs("+!? -?")))
    assert (rate.tasks, rate.trials) == (2, 1)
    assert rate.interval == wilson_interval(1, 2)
