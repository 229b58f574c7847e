"""The list of statistics is complete and fits `Figures`, and each accepts any frame."""

from __future__ import annotations

import importlib
import pkgutil

import msgspec
import pandas as pd
import pytest

from benchmark_assets.adapters.run_files import SCHEMA
from benchmark_assets.adapters.run_reader import LEADERBOARD_COLUMNS
from benchmark_assets.leaderboard import statistics
from benchmark_assets.leaderboard.runs import prepare
from benchmark_assets.leaderboard.statistics import STATISTICS, figures
from benchmark_assets.leaderboard.statistics.base import Statistic
from benchmark_assets.model.standings import Figures
from tests.leaderboard.frames import prepared, run, runs

NOT_OF_ONE_SET_OF_RUNS = {"base", "agreement"}


def modules() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(statistics.__path__))


@pytest.mark.parametrize("name", sorted({*modules()} - NOT_OF_ONE_SET_OF_RUNS))
def test_every_module_is_listed(name: str) -> None:
    module = importlib.import_module(f"{statistics.__name__}.{name}")
    own = [value for value in vars(module).values() if isinstance(value, Statistic)]
    assert own, f"statistics/{name}.py defines no Statistic"
    assert all(any(value is listed for listed in STATISTICS) for value in own), (
        f"a statistic of statistics/{name}.py is missing in STATISTICS"
    )


def test_what_is_left_out_exists() -> None:
    assert set(modules()) >= NOT_OF_ONE_SET_OF_RUNS


def test_fields_are_those_of_figures_in_order() -> None:
    declared = [field.name for field in msgspec.structs.fields(Figures)]
    assert [statistic.field for statistic in STATISTICS] == declared


EMPTY = SCHEMA.empty_table().select(list(LEADERBOARD_COLUMNS)).to_pandas()


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(prepare(EMPTY), id="empty store"),
        pytest.param(prepared(runs("+-?!")).iloc[:0], id="nothing left of a full one"),
        pytest.param(prepare(pd.DataFrame(columns=list(LEADERBOARD_COLUMNS))), id="no types"),
    ],
)
def test_figures_of_nothing(frame: pd.DataFrame) -> None:
    found = figures(frame)
    assert found.pass_rate.counts.total == 0
    assert (found.pass_rate.macro, found.pass_rate.micro) == (None, None)
    assert found.pass_hat_k == ()
    for quantity in (found.tokens, found.cost_usd):
        assert (quantity.runs, quantity.known, quantity.total) == (0, 0, None)
    assert (found.duration.median_ms, found.duration.p95_ms) == (None, None)


def test_figures_do_not_need_what_is_unknown_everywhere() -> None:
    found = figures(prepared([run("+")]))
    assert found.pass_rate.micro == 1.0
    assert (found.tokens.known, found.cost_usd.known, found.duration.known) == (0, 0, 0)


def test_figures_survive_json() -> None:
    found = figures(
        prepared(runs("+-? ++", cost_usd=0.25, duration_ms=9, input_tokens=3, cost_estimated=True))
    )
    assert msgspec.json.decode(msgspec.json.encode(found), type=Figures) == found
