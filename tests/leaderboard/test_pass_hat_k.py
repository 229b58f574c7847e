"""pass^k against hand values, against enumeration, and against published numbers."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.leaderboard.estimators import pass_hat_k
from benchmark_assets.leaderboard.standings import compute_standings
from benchmark_assets.leaderboard.statistics.pass_hat_k import STATISTIC
from benchmark_assets.model.standings import PassHatK
from benchmark_assets.model.verdict import RunRow
from tests.leaderboard.frames import entry, prepared, raw, run, runs
from tests.real_data import REAL, needs_real_data

AGENTDOJO = "agentdojo-banking-slack"


@pytest.mark.parametrize(
    ("tasks", "k", "value"),
    [
        ([(1, 1)], 1, 1.0),
        ([(0, 1)], 1, 0.0),
        ([(1, 1), (0, 1), (0, 1)], 1, 1 / 3),
        ([(3, 4)], 1, 0.75),
        ([(3, 4)], 2, 0.5),  # C(3,2) / C(4,2) = 3 / 6
        ([(3, 4)], 3, 0.25),  # C(3,3) / C(4,3) = 1 / 4
        ([(3, 4)], 4, 0.0),
        ([(4, 4)], 4, 1.0),
        ([(2, 4), (4, 4)], 2, 7 / 12),  # (1/6 + 1) / 2
        # Tasks weigh the same whatever their trials: (1/3 + 6/28) / 2.
        ([(2, 3), (4, 8)], 2, 23 / 84),
    ],
)
def test_hand_values(tasks: list[tuple[int, int]], k: int, value: float) -> None:
    assert pass_hat_k(tasks, k) == value


TASKS = st.lists(
    st.integers(2, 6).flatmap(lambda n: st.lists(st.booleans(), min_size=n, max_size=n)),
    min_size=1,
    max_size=5,
)


@given(TASKS, st.integers(1, 2))
def test_it_is_the_share_of_draws_that_all_resolve(tasks: list[list[bool]], k: int) -> None:
    shares = []
    for trials in tasks:
        draws = list(combinations(trials, k))
        shares.append(sum(all(draw) for draw in draws) / len(draws))
    found = pass_hat_k([(sum(trials), len(trials)) for trials in tasks], k)
    assert found == pytest.approx(sum(shares) / len(shares))


@given(TASKS)
def test_it_never_grows_with_k(tasks: list[list[bool]]) -> None:
    pairs = [(sum(trials), len(trials)) for trials in tasks]
    assert pass_hat_k(pairs, 2) <= pass_hat_k(pairs, 1)


@pytest.mark.parametrize(
    ("tasks", "k"),
    [([], 1), ([(1, 1)], 2), ([(3, 3), (1, 2)], 3), ([(3, 2)], 1), ([(-1, 2)], 1)],
)
def test_undefined_is_an_error(tasks: list[tuple[int, int]], k: int) -> None:
    with pytest.raises(ValueError, match=rf"pass\^{k} needs tasks with at least {k} trials"):
        pass_hat_k(tasks, k)


def test_every_k_that_all_tasks_allow() -> None:
    # Trials 3 and 2: k up to 2. pass^1 = (2/3 + 1) / 2; pass^2 = (1/3 + 1) / 2.
    found = STATISTIC.compute(prepared(runs("++- ++")))
    assert found == (PassHatK(k=1, value=5 / 6, tasks=2), PassHatK(k=2, value=2 / 3, tasks=2))


def test_only_scored_trials_are_trials() -> None:
    found = STATISTIC.compute(prepared(runs("++? +-!")))
    assert [(item.k, item.value) for item in found] == [(1, 0.75), (2, 0.5)]


@pytest.mark.parametrize("outcomes", ["", "?", "!"])
def test_nothing_scored_gives_no_figure(outcomes: str) -> None:
    assert STATISTIC.compute(prepared(runs(outcomes))) == ()


def published_runs(model: str) -> list[RunRow]:
    """A model's AgentDojo runs as rows; `utility` is the benchmark's own grade."""
    rows = []
    for path in sorted((REAL / AGENTDOJO / model).glob("*/*/trial*.json")):
        record: dict[str, Any] = json.loads(path.read_bytes())
        assert isinstance(record["utility"], bool)
        rows.append(
            run(
                "+" if record["utility"] else "-",
                model=model,
                contract=record["suite_name"],
                task=record["user_task_id"],
                trial=int(path.stem.removeprefix("trial")),
                trace_id=str(path.relative_to(REAL)),
            )
        )
    return rows


def published_figures() -> dict[str, dict[str, float]]:
    expected = json.loads((REAL / "expected.json").read_bytes())
    figures: dict[str, dict[str, float]] = expected[f"{AGENTDOJO} (field utility)"]
    return figures


def by_task(rows: Sequence[RunRow]) -> list[tuple[int, int]]:
    tasks: dict[tuple[str, str | None], list[bool]] = defaultdict(list)
    for row in rows:
        tasks[row.contract, row.task].append(row.outcome == "resolved")
    return [(sum(trials), len(trials)) for trials in tasks.values()]


@needs_real_data
def test_published_utilities_give_the_published_figures() -> None:
    for model, figures in published_figures().items():
        tasks = by_task(published_runs(model))
        assert len(tasks) == figures["n_tasks"]
        assert sum(n for _, n in tasks) == figures["n_traces"]
        for k in range(1, min(n for _, n in tasks) + 1):
            assert round(pass_hat_k(tasks, k), 6) == figures[f"pass^{k}"], (model, k)


@needs_real_data
def test_published_utilities_through_the_standings() -> None:
    published = published_figures()
    rows = [row for model in published for row in published_runs(model)]
    standings = compute_standings(raw(rows), [entry("banking"), entry("slack")])
    assert {standing.model for standing in standings.models} == set(published)
    for standing in standings.models:
        figures, ours = published[standing.model], standing.figures
        theirs = {key: value for key, value in figures.items() if key.startswith("pass^")}
        assert {f"pass^{p.k}": round(p.value, 6) for p in ours.pass_hat_k} == theirs
        assert ours.pass_rate.micro is not None
        assert round(ours.pass_rate.micro, 6) == figures["pass_rate"]
        assert ours.pass_rate.counts.resolved == figures["n_pass"]
        assert ours.pass_rate.counts.total == figures["n_traces"]
        assert ours.pass_rate.tasks == figures["n_tasks"]
    # All seven ran the same 37 tasks: 16 of banking, 21 of slack.
    assert (standings.shared_tasks, standings.shared_contracts, standings.holes) == (37, 2, ())
    assert sum("pass^2" in figures for figures in published.values()) == 3


def test_every_k_is_there_however_many_trials() -> None:
    """Beyond the exact ones too, and no less right: against exact fractions."""
    rows = prepared([*runs("+" * 119 + "-", task="t"), *runs("+" * 60 + "-" * 60, task="u")])
    found = STATISTIC.compute(rows)
    assert [item.k for item in found] == list(range(1, 121))
    for item in found:
        assert item.value == pytest.approx(
            pass_hat_k([(119, 120), (60, 120)], item.k), rel=1e-12, abs=1e-300
        )
