"""Contracts and fixtures from public benchmarks' published ground truth, one importer a benchmark.

Belongs here: turning what a benchmark publishes about its *tasks* into contracts, or into fixtures
where it publishes whole paths. Does not
belong here: its published grades of *runs*, which no contract may know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from benchmark_assets.adapters.benchmarks import adk, agentdojo, tau2
from benchmark_assets.adapters.formats.base import TraceFile

Importer = Callable[[TraceFile], Mapping[str, Mapping[str, Any]]]
"""File of a benchmark → contract data by contract id. Raises `InputError`."""

IMPORTERS: dict[str, Importer] = {
    "agentdojo": agentdojo.import_tasks,
    "tau2": tau2.import_tasks,
}

FixtureImporter = Callable[[TraceFile], Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]]
"""File of a benchmark → fixtures, each with the trace that is golden. Raises `InputError`."""

FIXTURE_IMPORTERS: dict[str, FixtureImporter] = {"adk": adk.import_fixtures}
