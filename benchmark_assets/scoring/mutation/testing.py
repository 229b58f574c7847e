"""Mutating a passing trace and judging every mutant: is a contract any good?

Belongs here: judging the golden trace, the empty one and every mutant, and finding what a survivor
would have been killed by. Does not belong here: making mutants (`operators`), what a contract
allows (`freedoms`), which checks there could be (`cures`), printing (`report`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.mutation import Cure, Judged, MutantResult, MutationReport
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Verdict
from benchmark_assets.scoring.evaluate import ContractJudge
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.mutation.cures import cured, cures_for
from benchmark_assets.scoring.mutation.edits import drop_calls, nothing_done
from benchmark_assets.scoring.mutation.freedoms import freedom
from benchmark_assets.scoring.mutation.operators import (
    OPERATORS,
    Mutant,
    Operator,
    Scene,
    mutants,
    set_scene,
)
from benchmark_assets.scoring.plugins import PLUGINS
from benchmark_assets.scoring.plugins.base import Plugin


def mutation_test(
    contract: Contract,
    trace: TraceSnapshot,
    profiles: Sequence[HarnessProfile] = (),
    plugins: Sequence[Plugin] = PLUGINS,
    *,
    seed: int = 0,
    fixture: bool = False,
) -> MutationReport:
    """Make a trace wrong in every way there is, and say which of them a contract notices.

    Args:
        contract: The contract, or what a fixture stands for.
        trace: A trace that should pass it. If it does not, no mutant is made.
        profiles: The harness profiles there are.
        plugins: The plugins that judge.
        seed: What is drawn depends on it: which letter of a text is changed, where a call is
            inserted. Equal seeds give equal reports.
        fixture: Whether the contract is a fixture: only checks that one can say are proposed.
    """
    test = _Test(contract, profiles, plugins, fixture=fixture)
    golden = test.judge(trace)
    results: list[MutantResult] = []
    if golden.outcome == "resolved":
        scene = set_scene(contract, trace, profiles, seed)
        results = [test.result(scene, *made) for made in mutants(scene)]
    return MutationReport(
        contract=contract.id,
        contract_version=contract.contract_version,
        trace_id=trace.trace_id,
        seed=seed,
        fixture=fixture,
        operators=tuple((operator.name, operator.does) for operator in OPERATORS),
        golden=_judged(golden),
        empty=_judged(test.judge(nothing_done(trace))),
        rules=tuple(_rules(golden, "passed")),
        mutants=tuple(results),
    )


class _Test:
    """One contract, compiled; what it said of changed contracts is kept."""

    def __init__(
        self,
        contract: Contract,
        profiles: Sequence[HarnessProfile],
        plugins: Sequence[Plugin],
        *,
        fixture: bool,
    ) -> None:
        self.contract = contract
        self.profiles = profiles
        self.plugins = plugins
        self.fixture = fixture
        self._judge = ContractJudge(contract, plugins)
        self._dispensable: dict[int, bool] = {}
        self._cured: dict[str, ContractJudge | None] = {}

    def judge(self, trace: TraceSnapshot) -> Verdict:
        """The contract's verdict."""
        return self._judge.evaluate(Evidence(trace, self.profiles))

    def result(self, scene: Scene, operator: Operator, mutant: Mutant) -> MutantResult:
        """What becomes of a mutant, and what would have killed it if it lives."""
        verdict = self.judge(mutant.trace)
        made = MutantResult(operator=operator.name, what=mutant.what, fate="survived")
        if verdict.outcome != "resolved":
            return replace(made, fate="killed", killed_by=_killers(verdict))
        stated = freedom(scene, operator, mutant, partial(self._without, scene))
        if stated is not None:
            return replace(made, fate="allowed", freedom=stated)
        return replace(made, cure=self._cure(scene, mutant))

    def _without(self, scene: Scene, index: int) -> bool:
        """Whether the golden trace passes without a call."""
        if index not in self._dispensable:
            verdict = self.judge(drop_calls(scene.trace, [index]))
            self._dispensable[index] = verdict.outcome == "resolved"
        return self._dispensable[index]

    def _cure(self, scene: Scene, mutant: Mutant) -> Cure | None:
        """The first check that kills a mutant and lets the golden trace pass."""
        for cure in cures_for(scene, mutant, fixture=self.fixture):
            judge = self._with(scene, cure)
            if judge is not None:
                verdict = judge.evaluate(Evidence(mutant.trace, self.profiles))
                if verdict.outcome != "resolved":
                    return cure
        return None

    def _with(self, scene: Scene, cure: Cure) -> ContractJudge | None:
        """The contract with a check more; None if the golden trace does not pass it."""
        key = f"{cure.place}: {cure.value!r}"
        if key not in self._cured:
            contract = cured(self.contract, cure)
            judge = None if contract is None else ContractJudge(contract, self.plugins)
            if judge is not None:
                verdict = judge.evaluate(Evidence(scene.trace, self.profiles))
                judge = judge if verdict.outcome == "resolved" else None
            self._cured[key] = judge
        return self._cured[key]


def _rules(verdict: Verdict, *outcomes: str) -> list[str]:
    return [
        f"{result.plugin}: {check.name}"
        for result in verdict.plugins
        for check in result.checks
        if check.outcome in outcomes
    ]


def _killers(verdict: Verdict) -> tuple[str, ...]:
    """The checks that keep a trace from passing."""
    raised = [f"{r.plugin}: raised {r.error}" for r in verdict.plugins if r.error is not None]
    found = [*raised, *_rules(verdict, "failed", "error")]
    # Of a mutant that nothing checked any more nothing is demanded, and so it does not pass.
    return tuple(dict.fromkeys(found)) or (verdict.reason or "nothing was checked",)


def _judged(verdict: Verdict) -> Judged:
    reasons = [
        f"{result.plugin}: {check.name}: {check.reason or check.outcome}"
        for result in verdict.plugins
        for check in result.checks
        if check.outcome in ("failed", "error")
    ]
    if verdict.outcome != "resolved" and not reasons:
        reasons = [verdict.reason or "nothing was checked: the contract demands nothing of it"]
    return Judged(
        outcome=verdict.outcome,
        reasons=() if verdict.outcome == "resolved" else tuple(reasons),
    )
