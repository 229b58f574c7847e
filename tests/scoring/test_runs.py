"""A verdict as the row that is stored: nothing measured is lost, nothing unknown becomes 0."""

from __future__ import annotations

from typing import Any

import pytest

from benchmark_assets.model.project import ModelSettings
from benchmark_assets.model.trace import Tokens
from benchmark_assets.model.verdict import RunRow
from benchmark_assets.scoring.evaluate import ENGINE_VERSION, evaluate
from benchmark_assets.scoring.runs import estimate_cost, run_row
from tests.scoring.build import contract, trace

PRICES = ModelSettings(input_usd_per_mtok=2.0, output_usd_per_mtok=10.0)
CACHED = ModelSettings(input_usd_per_mtok=2.0, output_usd_per_mtok=10.0, cached_usd_per_mtok=0.5)
DEMANDING = contract(id="orders/refund", name="Refund", group="service", tools={"required": ["a"]})


def row(settings: ModelSettings | None = None, **fields: Any) -> RunRow:
    snapshot = trace(**fields)
    verdict = evaluate(snapshot, DEMANDING)
    return run_row("2026-11-29", "gpt", snapshot, DEMANDING, verdict, settings)


@pytest.mark.parametrize(
    ("tokens", "settings", "dollars"),
    [
        # A million of each bucket: in 2 + out 10 + reasoning as output 10 + cache write as
        # input 2 + cache read at its own price or as input.
        ({"input": 10**6, "output": 10**6}, PRICES, 12.0),
        ({"input": 10**6, "output": 0}, PRICES, 2.0),
        ({"input": 0, "output": 0}, PRICES, 0.0),
        ({"input": 0, "output": 0, "reasoning": 10**6}, PRICES, 10.0),
        ({"input": 0, "output": 0, "cache_write": 10**6}, CACHED, 2.0),
        ({"input": 0, "output": 0, "cache_read": 10**6}, PRICES, 2.0),
        ({"input": 0, "output": 0, "cache_read": 10**6}, CACHED, 0.5),
        ({"input": 1500, "output": 250, "cache_read": 4000}, CACHED, 0.0075),
        ({"input": 10**6}, PRICES, None),
        ({"output": 10**6}, PRICES, None),
        ({}, PRICES, None),
        ({"input": 10**6, "output": 10**6}, None, None),
        ({"input": 10**6, "output": 10**6}, ModelSettings(), None),
    ],
)
def test_costs_are_estimated_from_known_counts_and_prices_only(
    tokens: dict[str, int], settings: ModelSettings | None, dollars: float | None
) -> None:
    assert estimate_cost(Tokens(**tokens), settings) == pytest.approx(dollars)


@pytest.mark.parametrize("measured", [0.0, 0.25])
def test_a_measured_cost_stays(measured: float) -> None:
    found = row(PRICES, cost_usd=measured, tokens={"input": 10**6, "output": 10**6})
    assert (found.cost_usd, found.cost_estimated) == (measured, False)


def test_a_missing_cost_is_filled_and_marked() -> None:
    found = row(PRICES, tokens={"input": 10**6, "output": 10**6})
    assert found.cost_usd == pytest.approx(12.0)
    assert found.cost_estimated


@pytest.mark.parametrize("settings", [None, PRICES])
def test_an_unknown_cost_is_unknown(settings: ModelSettings | None) -> None:
    found = row(settings, tokens={"input": 10**6})
    assert (found.cost_usd, found.cost_estimated) == (None, False)


def test_what_nobody_measured_is_none() -> None:
    found = row()
    for name in ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens"):
        assert getattr(found, name) is None
    for name in ("reasoning_tokens", "cost_usd", "duration_ms", "started_at", "task", "user_id"):
        assert getattr(found, name) is None
    assert found.trial == 0


def test_a_row_says_who_what_and_how_it_went() -> None:
    fields = {
        "trace_id": "t9",
        "origin": {"file": "f.json", "sha256": "ab", "record": "[3]", "format": "snapshot"},
        "task": "s/7",
        "trial": 2,
        "model": "another name",
        "workflow": "the trace's",
        "user_id": "u",
        "session_id": "s",
        "agents": ["main", "sub"],
        "duration_ms": 1500,
        "started_at": "2026-11-29T10:00:00Z",
        "tokens": {"input": 1, "output": 2, "cache_read": 3, "cache_write": 4, "reasoning": 5},
        "tool_calls": [{"name": "b"}, {"name": "c"}],
    }
    found = row(None, **fields)
    snapshot = trace(**fields)
    assert found == RunRow(
        date="2026-11-29",
        trace_id="t9",
        model="gpt",
        contract="orders/refund",
        contract_version="1",
        contract_name="Refund",
        workflow="orders",
        group="service",
        task="s/7",
        trial=2,
        outcome="unresolved",
        score=0.0,
        reason="tool_calls: required tool a was never called",
        input_tokens=1,
        output_tokens=2,
        cache_read_tokens=3,
        cache_write_tokens=4,
        reasoning_tokens=5,
        cost_usd=None,
        cost_estimated=False,
        duration_ms=1500,
        started_at=snapshot.started_at,
        user_id="u",
        session_id="s",
        agents=("main", "sub"),
        tool_calls=2,
        file="f.json",
        sha256="ab",
        record="[3]",
        contract_sha256=DEMANDING.content_hash,
        engine=ENGINE_VERSION,
        plugins=evaluate(snapshot, DEMANDING).plugins,
    )


def test_a_trace_with_a_problem_is_a_row_too() -> None:
    found = row(problem="line 3: is cut off")
    assert (found.outcome, found.score, found.reason) == ("error", None, "line 3: is cut off")
    assert found.plugins == ()
