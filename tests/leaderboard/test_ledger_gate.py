"""Counting comparisons of ledgers, and what they do to figures: expected values by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.leaderboard.fidelity import EXAMPLES, gate, model_fidelity
from benchmark_assets.leaderboard.standings import compute_standings
from benchmark_assets.leaderboard.statistics import figures
from benchmark_assets.model.fidelity import FidelityRow
from benchmark_assets.model.standings import ModelFidelity
from tests.leaderboard.frames import prepared, raw, run

SEVERITY = {
    "Agree": ("none", 1.0),
    "TokenMismatch": ("critical", 0.5),
    "NoLedger": ("critical", 0.0),
    "FinishMismatch": ("warning", 0.5),
    "NoTruth": ("unchecked", None),
    "NoModelCall": ("inapplicable", None),
}


def row(trace: str, verdict: str, outcome: str, **fields: Any) -> FidelityRow:
    severity, score = SEVERITY[verdict]
    values: dict[str, Any] = {
        "date": "2026-11-20",
        "trace_id": trace,
        "model": "m",
        "workflow": None,
        "task": None,
        "trial": 0,
        "trace_outcome": outcome,
        "trace_score": None,
        "trace_reason": None,
        "executor": "e",
        "verdict": verdict,
        "severity": severity,
        "score": score,
        "reason": None,
        "ledger_tokens": None,
        "truth_tokens": 100,
        "ledger_finish": None,
        "truth_finish": None,
        "source": "s",
        "source_file": "f",
        "file": "f",
        "sha256": "0" * 64,
        "record": None,
        "rules": "strict",
        "rules_version": "1",
    }
    return FidelityRow(**{**values, **fields})


def counted(*rows: FidelityRow, waiting: int = 0) -> ModelFidelity:
    found = model_fidelity("m", rows, waiting)
    assert found is not None
    return found


def test_nothing_to_compare_is_no_result() -> None:
    assert model_fidelity("m", []) is None


def test_traces_count_once_and_executors_each() -> None:
    found = counted(
        row("1", "Agree", "PASS"),
        row("1", "Agree", "PASS"),
        row("2", "TokenMismatch", "FAIL", truth_tokens=300),
        row("2", "NoLedger", "FAIL", truth_tokens=50),
        row("3", "FinishMismatch", "WARN"),
        row("3", "NoModelCall", "WARN", truth_tokens=0),
        row("4", "NoTruth", "PENDING", truth_tokens=None, trace_reason="nothing was compared: x"),
    )
    assert found.outcome == "FAIL"
    assert (found.passed, found.failed, found.warned, found.pending) == (1, 1, 1, 1)
    # 1, 1, 0.5, 0 and 0.5 over five executors that have a score.
    assert found.score == 0.6
    # All but the one that called no model; compared: two that agree, the mismatch, the finish.
    assert (found.executors, found.checked) == (6, 4)
    assert (found.truth_tokens, found.checked_tokens) == (650, 600)
    assert found.reason == "1 NoLedger, 1 TokenMismatch, 1 FinishMismatch, 1 trace not compared (x)"
    assert [(item.verdict, item.compared) for item in found.divergences] == [
        ("TokenMismatch", True),
        ("NoLedger", True),
        ("FinishMismatch", True),
        ("NoTruth", False),
    ]
    assert found.divergent == 4


@pytest.mark.parametrize(
    ("outcomes", "waiting", "expected"),
    [
        (["PASS", "PASS"], 0, "PASS"),
        (["PASS"], 1, "WARN"),
        (["PASS", "PENDING"], 0, "WARN"),
        (["PASS", "WARN"], 0, "WARN"),
        (["PENDING", "PENDING"], 0, "PENDING"),
        ([], 3, "PENDING"),
        (["PENDING", "FAIL"], 0, "FAIL"),
        (["PASS"] * 999 + ["FAIL"], 0, "FAIL"),
    ],
)
def test_outcome(outcomes: list[str], waiting: int, expected: str) -> None:
    verdict = {"PASS": "Agree", "WARN": "FinishMismatch", "FAIL": "NoLedger", "PENDING": "NoTruth"}
    rows = [row(str(n), verdict[outcome], outcome) for n, outcome in enumerate(outcomes)]
    assert counted(*rows, waiting=waiting).outcome == expected


def test_one_id_in_two_files_is_two_traces() -> None:
    rows = [row("1", "Agree", "PASS", file=name) for name in ("a", "b")]
    assert counted(*rows).passed == 2


def test_few_divergences_are_named_and_all_are_counted() -> None:
    rows = [row(str(n), "TokenMismatch", "FAIL") for n in range(EXAMPLES + 3)]
    found = counted(*rows)
    assert len(found.divergences) == EXAMPLES
    assert found.reason == f"{EXAMPLES + 3} TokenMismatch"


@pytest.mark.parametrize(
    ("score", "label"),
    [(0.62, "0.62"), (1.0, "1.00"), (0.9995, ">0.99"), (0.0, "0.00"), (None, "not checked")],
)
def test_a_score_reads_as_what_it_is(score: float | None, label: str) -> None:
    assert ModelFidelity(model="m", outcome="FAIL", score=score).label == f"fidelity {label}"


def test_the_gate() -> None:
    found = figures(prepared([run("+", cost_usd=0.5, input_tokens=10)]))
    assert gate(found, None) == found
    assert gate(found, ModelFidelity(model="m", outcome="PASS", score=1.0)) == found
    withheld = gate(found, ModelFidelity(model="m", outcome="FAIL", score=0.62))
    for quantity in (withheld.tokens, withheld.cost_usd):
        assert quantity.withheld == "fidelity 0.62"
        assert (quantity.total, quantity.per_run, quantity.per_resolved) == (None, None, None)
        assert (quantity.runs, quantity.known) == (1, 1)
    assert (withheld.pass_rate, withheld.duration) == (found.pass_rate, found.duration)
    for outcome in ("WARN", "PENDING"):
        doubted = gate(found, ModelFidelity(model="m", outcome=outcome, score=None, reason="why"))  # type: ignore[arg-type]
        assert doubted.tokens.doubt == doubted.cost_usd.doubt == "fidelity not checked: why"
        assert doubted.cost_usd.per_run == 0.5


def test_what_is_not_recorded_is_not_withheld() -> None:
    found = figures(prepared([run("+", cost_usd=None, input_tokens=10)]))
    withheld = gate(found, ModelFidelity(model="m", outcome="FAIL", score=0.5))
    assert withheld.cost_usd == found.cost_usd
    assert withheld.tokens.withheld is not None


@given(st.lists(st.sampled_from(["PASS", "WARN", "FAIL", "PENDING"]), max_size=8))
def test_no_figure_of_a_failing_model_is_published(outcomes: list[str]) -> None:
    verdict = {"PASS": "Agree", "WARN": "FinishMismatch", "FAIL": "NoLedger", "PENDING": "NoTruth"}
    rows = [row(str(n), verdict[outcome], outcome) for n, outcome in enumerate(outcomes)]
    fidelity = model_fidelity("m", rows)
    standings = compute_standings(
        raw([run("+", cost_usd=0.5, model="m")]),
        [],
        fidelity=[] if fidelity is None else [fidelity],
    )
    published = [
        standings.models[0].figures,
        standings.cells[0].figures,
        standings.groups[0].figures,
    ]
    for item in published:
        assert (item.cost_usd.per_run is None) == ("FAIL" in outcomes)
        marked = item.cost_usd.withheld is not None or item.cost_usd.doubt is not None
        assert marked == any(outcome != "PASS" for outcome in outcomes)
