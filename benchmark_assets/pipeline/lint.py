"""Contract files checked before anything depends on them: what loads, and what it is worth.

Belongs here: warnings that only judging can give. Does not belong here: errors and warnings that
a file tells by itself (`adapters/contract_files`), or how good a contract is at a trace that
passes it (`scoring/mutation`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmark_assets.adapters.contract_files import ContractSet, load_contracts
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.problem import Problem
from benchmark_assets.model.trace import Origin, Tokens, TraceSnapshot
from benchmark_assets.pipeline.rules import Rules
from benchmark_assets.scoring.evidence import Evidence


def lint(paths: Sequence[Path], rules: Rules) -> ContractSet:
    """Load contracts; beside their own warnings there are those of contracts that ask too little."""
    loaded = load_contracts(paths, rules.known)
    return replace(loaded, warnings=(*loaded.warnings, *_passed_by_nothing(loaded, rules)))


def _passed_by_nothing(loaded: ContractSet, rules: Rules) -> Iterator[Problem]:
    for file in loaded.contracts:
        if passed_by_nothing(file.contract, rules):
            yield Problem(
                "a run that does nothing and says nothing passes",
                file=file.name,
                line=file.line,
                cure="demand something that must happen: a path, a call, a tool, words in the end",
            )


def passed_by_nothing(contract: Contract, rules: Rules) -> bool:
    """Whether a run passes that made no call, said nothing and ended as it should."""
    evidence = Evidence(_nothing_done(contract), rules.profiles)
    return rules.judge(contract).evaluate(evidence).outcome == "resolved"


def _nothing_done(contract: Contract) -> TraceSnapshot:
    return TraceSnapshot(
        trace_id="nothing done",
        origin=Origin(file="", sha256="", format="snapshot"),
        # A pattern of `*` and `?` fits itself.
        ended=contract.ends_with[0] if contract.ends_with else "stop",
        ended_normally=True,
        failures_recorded=True,
        duration_ms=0,
        cost_usd=0.0,
        tokens=Tokens(input=0, output=0),
    )
