"""The engine says of every run what the table says, whichever way the run was exported."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.adapters.contract_files import load_contracts
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.harness_files import load_harnesses
from benchmark_assets.adapters.traces import read_traces
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Verdict
from benchmark_assets.scoring.evaluate import evaluate
from benchmark_assets.scoring.plugins import PLUGINS
from tests.app_builder import export
from tests.app_builder.harness import DATA, Run
from tests.app_builder.test_harness import EVERY, EXPECTED, run_of

EXPORTS: dict[str, Callable[[Run], Any]] = {
    "snapshot": export.snapshot,
    "langfuse": export.langfuse,
}
PROFILES = load_harnesses().profiles


@cache
def contracts() -> dict[str, Contract]:
    loaded = load_contracts([DATA / "contracts"])
    loaded.raise_if_problems()
    return {file.contract.id: file.contract for file in loaded.contracts}


def read(exported: Any) -> TraceSnapshot:
    file = TraceFile("run.json", "run.json", json.dumps(exported).encode())
    (trace,) = read_traces(file, ProjectConfig())
    return trace


def judge(name: str, variant: str, way: str, folder: Path) -> Verdict:
    return evaluate(read(EXPORTS[way](run_of(name, variant, folder))), contracts()[name], PROFILES)


@pytest.mark.parametrize("way", EXPORTS)
@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_a_run_is_judged_as_the_table_says(
    name: str, variant: str, way: str, tmp_path: Path
) -> None:
    verdict = judge(name, variant, way, tmp_path)
    expected = EXPECTED[name][variant]
    failed = {
        result.plugin: result.checks
        for result in verdict.plugins
        if result.passed is False or result.error is not None
    }
    assert failed.keys() == (set() if expected == "passes" else set(expected)), verdict.reason
    assert verdict.outcome == ("resolved" if expected == "passes" else "unresolved")
    for plugin, words in {} if expected == "passes" else expected.items():
        said = [
            f"{check.name} {check.observed} {check.reason}"
            for check in failed[plugin]
            if check.outcome == "failed"
        ]
        assert all(any(word in text for text in said) for word in words), said


@pytest.mark.parametrize("name", EXPECTED)
def test_a_clean_run_is_looked_at_by_every_plugin(name: str, tmp_path: Path) -> None:
    verdict = judge(name, "clean", "snapshot", tmp_path)
    assert [result.plugin for result in verdict.plugins] == [plugin.name for plugin in PLUGINS]
    assert all(result.passed for result in verdict.plugins if result.plugin != "resource_usage")
    assert all(result.checks for result in verdict.plugins)


@pytest.mark.parametrize("name", EXPECTED)
def test_both_exports_give_the_same_checks(name: str, tmp_path: Path) -> None:
    one = judge(name, "clean", "snapshot", tmp_path / "a")
    other = judge(name, "clean", "langfuse", tmp_path / "b")
    for mine, theirs in zip(one.plugins, other.plugins, strict=True):
        names = [(check.name, check.outcome) for check in mine.checks]
        assert names == [(check.name, check.outcome) for check in theirs.checks]
