"""The contracts and fixtures we ship are good ones: they notice what is made wrong in a trace."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmark_assets.adapters.contract_files import ContractSet
from benchmark_assets.adapters.fixture_files import (
    golden_path_of,
    is_fixture_file,
    read_fixture_file,
)
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.harness_files import load_harnesses
from benchmark_assets.adapters.traces import read_traces
from benchmark_assets.demo import USE_CASES, DemoTrace
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.mutation import MutationReport
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.scoring.mutation.testing import mutation_test

ROOT = Path(__file__).parents[2]

KILL_RATE = 0.95

SHAPES = 6
"""Traces of a contract that are mutated: as many as take different paths, up to so many."""

EXPLAINED = {
    # The page may be read in a call of its own; any of several reads is the one that came first.
    ("binding/binding_with_widget", "swap neighbours: create_variable before read_files"),
    # A build that passed after the first of two writes is as good as one after both.
    ("services/javaservice_orchestration", "swap neighbours: build_project before write_file"),
}
"""Survivors that stay: orders of one tool's calls among others, which the paths leave open."""


@pytest.fixture(scope="module")
def profiles() -> Sequence[HarnessProfile]:
    return load_harnesses([ROOT / "benchmark_assets" / "harnesses"]).profiles


def _survivors(report: MutationReport) -> list[str]:
    return [
        f"{m.operator}: {m.what}; would be killed by {m.cure and f'{m.cure.place}: {m.cure.value}'}"
        for m in report.mutants
        if m.fate == "survived"
    ]


def _hold(report: MutationReport) -> None:
    assert report.golden.passed, report.golden.reasons
    assert not report.empty.passed
    listed = "\n".join(_survivors(report))
    assert report.good(KILL_RATE), f"{report.contract}: {report.counts.rate:.1%}\n{listed}"


def _clean(traces: Sequence[DemoTrace], contract: str) -> list[TraceSnapshot]:
    """Traces without a fault, each of another path."""
    paths: dict[tuple[str, ...], TraceSnapshot] = {}
    for trace in traces:
        if trace.contract == contract and trace.fault is None:
            names = tuple(call.name for call in trace.snapshot.tool_calls)
            paths.setdefault(names, trace.snapshot)
    return list(paths.values())[:SHAPES]


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("contract_id", [use_case.contract for use_case in USE_CASES])
def test_shipped_contracts_kill_their_mutants(
    contract_id: str,
    seed: int,
    traces: tuple[DemoTrace, ...],
    contract_set: ContractSet,
    profiles: Sequence[HarnessProfile],
) -> None:
    (contract,) = [f.contract for f in contract_set.contracts if f.contract.id == contract_id]
    golden = _clean(traces, contract_id)
    assert golden
    for trace in golden:
        report = mutation_test(contract, trace, profiles, seed=seed)
        _hold(report)
        known = [text for contract_name, text in EXPLAINED if contract_name == contract_id]
        unexplained = [s for s in _survivors(report) if not s.startswith(tuple(known) or "\0")]
        assert unexplained == []


def test_what_is_explained_still_survives(
    traces: tuple[DemoTrace, ...], contract_set: ContractSet, profiles: Sequence[HarnessProfile]
) -> None:
    contracts = {file.contract.id: file.contract for file in contract_set.contracts}
    for contract_id, text in EXPLAINED:
        survivors = [
            survivor
            for trace in _clean(traces, contract_id)
            for survivor in _survivors(mutation_test(contracts[contract_id], trace, profiles))
        ]
        assert any(survivor.startswith(text) for survivor in survivors), text


def _fixtures() -> list[Path]:
    """Every fixture in the folders of examples and contracts."""
    folders = [*(ROOT / "examples").rglob("fixtures"), ROOT / "contracts"]
    files = sorted(path for folder in folders for path in folder.rglob("*.json"))
    return [path for path in files if is_fixture_file(path)]


def _run_of(path: Path, fixture_id: str) -> Path:
    """A fixture's golden trace; of one that keeps none, as it would tell its values, a candidate."""
    golden = golden_path_of(path, fixture_id)
    return golden if golden.exists() else path.parents[1] / "traces" / f"{path.stem}.json"


def test_examples_are_among_them() -> None:
    if (ROOT / "examples").is_dir():
        assert _fixtures()


@pytest.mark.parametrize("path", _fixtures(), ids=lambda path: path.stem)
def test_example_fixtures_kill_their_mutants(
    path: Path, profiles: Sequence[HarnessProfile]
) -> None:
    ((_, fixture),) = read_fixture_file(path).fixtures
    golden = _run_of(path, fixture.id)
    file = TraceFile(str(golden), golden.name, golden.read_bytes())
    (trace,) = read_traces(file, ProjectConfig())
    _hold(mutation_test(fixture.contract, trace, profiles, fixture=True))
