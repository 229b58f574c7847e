"""Contracts from public benchmarks' published ground truth, one importer a benchmark.

Belongs here: turning what a benchmark publishes about its *tasks* into contracts. Does not
belong here: its published grades of *runs*, which no contract may know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from benchmark_assets.adapters.benchmarks import agentdojo, tau2
from benchmark_assets.adapters.formats.base import TraceFile

Importer = Callable[[TraceFile], Mapping[str, Mapping[str, Any]]]
"""File of a benchmark → contract data by contract id. Raises `InputError`."""

IMPORTERS: dict[str, Importer] = {
    "agentdojo": agentdojo.import_tasks,
    "tau2": tau2.import_tasks,
}
