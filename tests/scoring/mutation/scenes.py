"""Scenes and reports for tests of mutation, from contracts and traces as JSON data.

Belongs here: making them, and picking the mutants of one operator. Does not belong here: what is
expected of them.
"""

from __future__ import annotations

from typing import Any

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.mutation import MutantResult, MutationReport
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.scoring.mutation.operators import OPERATORS, Mutant, Scene, set_scene
from benchmark_assets.scoring.mutation.testing import mutation_test
from tests.scoring.build import contract, trace

ANY = contract(tools={"optional": ["*"]})
"""A contract that says nothing of a trace."""


def scene(of: TraceSnapshot, under: Contract = ANY, seed: int = 0) -> Scene:
    return set_scene(under, of, seed=seed)


def made(operator: str, in_scene: Scene) -> list[Mutant]:
    """The mutants of one operator."""
    (found,) = [item for item in OPERATORS if item.name == operator]
    return list(found.make(in_scene))


def names(of: TraceSnapshot) -> list[str]:
    return [call.name for call in of.tool_calls]


def report(
    calls: list[dict[str, Any]], fields: dict[str, Any] | None = None, **sections: Any
) -> MutationReport:
    """What mutating a trace of these calls says of a contract of these sections."""
    of = trace(**{"tool_calls": calls, "ended_normally": True, **(fields or {})})
    return mutation_test(contract(**sections), of)


def fates(of: MutationReport, operator: str) -> dict[str, MutantResult]:
    """The results of one operator, by what is wrong."""
    return {mutant.what: mutant for mutant in of.mutants if mutant.operator == operator}
