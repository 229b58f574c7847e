"""The engine against the generator's own truth: it finds every planted fault and no other."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmark_assets.demo import DemoTrace, generate
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.verdict import Verdict
from benchmark_assets.scoring.evaluate import ContractJudge
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.routing import Router

Contracts = tuple[Contract, ...]

CONFINED = ("wrong_argument", "extra_write", "missing_fact")
"""Kinds of fault that touch nothing else: only the plugin meant to see them may fail."""


def _verdicts(contracts: Contracts, seed: int) -> Iterator[tuple[DemoTrace, Verdict]]:
    judges = {contract.id: ContractJudge(contract) for contract in contracts}
    for trace in generate(seed):
        yield trace, judges[trace.contract].evaluate(Evidence(trace.snapshot))


def _failing(verdict: Verdict) -> set[str]:
    return {result.plugin for result in verdict.plugins if result.passed is False}


def test_each_trace_is_judged_by_its_contract_alone(
    traces: tuple[DemoTrace, ...], contracts: Contracts
) -> None:
    router = Router(contracts)
    for trace in traces:
        assert [contracts[i].id for i in router.route(trace.snapshot)] == [trace.contract]


@pytest.mark.parametrize("seed", [7, 8, 2026])
def test_verdicts_are_the_planted_truth(contracts: Contracts, seed: int) -> None:
    wrong = []
    for trace, verdict in _verdicts(contracts, seed):
        failing = _failing(verdict)
        if trace.fault is None:
            right = verdict.outcome == "resolved" and not failing
        else:
            right = verdict.outcome == "unresolved" and trace.fault.plugin in failing
            if trace.fault.kind in CONFINED:
                right = right and failing == {trace.fault.plugin}
        if not right:
            kind = trace.fault.kind if trace.fault else "clean"
            wrong.append((trace.contract, kind, verdict.outcome, verdict.reason))
    assert wrong == []


def test_failures_say_what_was_seen_and_where(contracts: Contracts) -> None:
    for trace, verdict in _verdicts(contracts, 7):
        if trace.fault is None:
            continue
        failed = [c for r in verdict.plugins for c in r.checks if c.outcome == "failed"]
        assert all(check.reason and check.expected for check in failed)
        if trace.fault.kind in ("wrong_argument", "extra_write", "forbidden_tool"):
            places = [check.where for check in failed if check.where is not None]
            assert places, f"{trace.contract}: {trace.fault.kind} has no place in the trace"
            for place in places:
                assert place.call is not None
                assert place.span_id == trace.snapshot.tool_calls[place.call].span_id
