"""Synthetic standings for the reporters: made by hand, every number chosen, none computed."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from benchmark_assets.model.standings import (
    Cell,
    ContractEntry,
    Counts,
    Divergence,
    Duration,
    Figures,
    GroupStanding,
    Hole,
    Interval,
    ModelFidelity,
    ModelStanding,
    PassHatK,
    PassRate,
    Quantity,
    SourceNote,
    Standings,
    Withheld,
)

HOSTILE = (
    "<script>alert('x')</script>",
    '</script><img src=x onerror="alert(1)">',
    "a|b `c` *d* _e_ [f](http://evil.example) & \\",
    "line\nbreak\u2028sep\x1b[31mred\x07",
    "[bold red]markup[/bold red]",
    "\u202eright-to-left\ud800",
    "very-long-" + "model-name-" * 30 + "end",
    "模型" * 40,
    "",
)
"""Names that break something in a careless reporter."""


def make_rate(
    rate: float | None = 0.875, *, resolved: int = 14, unresolved: int = 2, trials: int = 1
) -> PassRate:
    """Give a pass rate whose interval exists as the model demands: at one trial a task."""
    counts = Counts(resolved=resolved, unresolved=unresolved, unchecked=3, error=1)
    return PassRate(
        macro=rate,
        micro=None if rate is None else resolved / (resolved + unresolved),
        counts=counts if rate is not None else Counts(unchecked=3, error=1),
        tasks=0 if rate is None else (resolved + unresolved) // trials,
        trials=0 if rate is None else trials,
        interval=(
            Interval(low=0.64, high=0.9651, method="Wilson")
            if rate is not None and trials == 1
            else None
        ),
        no_interval=(
            "nothing was scored"
            if rate is None
            else None
            if trials == 1
            else f"tasks have up to {trials} trials, which are not independent"
        ),
    )


def make_figures(
    rate: float | None = 0.875,
    *,
    trials: int = 1,
    cost: float | None = 0.0412,
    known: int = 20,
    estimated: int = 0,
    duration: int | None = 12_340,
) -> Figures:
    """Give figures over 20 runs; `cost` None is not recorded, `known` under 20 is partial."""
    pass_rate = make_rate(rate, trials=trials)
    known = 0 if cost is None else known
    return Figures(
        pass_rate=pass_rate,
        pass_hat_k=(
            ()
            if rate is None
            else tuple(
                PassHatK(k=k, value=round(rate**k, 4), tasks=pass_rate.tasks)
                for k in range(1, trials + 1)
            )
        ),
        tokens=Quantity(
            runs=20, known=20, total=246_800.0, per_run=12_340.0, per_resolved=17_629.0
        ),
        cost_usd=Quantity(
            runs=20,
            known=known,
            total=None if cost is None else cost * known,
            per_run=cost,
            per_resolved=None if cost is None or rate is None else cost * 1.5,
            estimated=estimated,
        ),
        duration=Duration(
            runs=20,
            known=0 if duration is None else 20,
            median_ms=duration,
            p95_ms=None if duration is None else duration * 10,
        ),
    )


def make_contract(index: int, name: str | None = None) -> ContractEntry:
    """Give a contract in one of two groups."""
    group = ("refunds", "booking")[index % 2]
    return ContractEntry(
        contract=f"{group}/task_{index}",
        name=name if name is not None else f"{group} {index}",
        label=f"{group}@1.{index}",
        group=group,
        sha256=f"{index:064x}",
        runs=20 + index,
    )


def make_standings(
    models: list[ModelStanding],
    *,
    contracts: tuple[ContractEntry, ...] | None = None,
    holes: tuple[Hole, ...] = (),
    withheld: tuple[Withheld, ...] = (),
    notes: tuple[SourceNote, ...] = (),
) -> Standings:
    """Give standings in which every model has a cell under every contract not withheld."""
    entries = tuple(make_contract(index) for index in range(4)) if contracts is None else contracts
    hidden = {(item.model, item.contract) for item in withheld}
    hidden |= {(item.model, item.contract) for item in holes}
    return Standings(
        models=tuple(models),
        groups=tuple(
            GroupStanding(model=item.model, group=group, figures=item.figures)
            for item in models
            for group in dict.fromkeys(entry.group for entry in entries)
        ),
        cells=tuple(
            Cell(
                model=item.model,
                contract=entry.contract,
                figures=item.figures,
                top_failure="call refund_payment: amount 12 instead of 21",
                first_date="2026-11-16",
                last_date="2026-11-29",
            )
            for item in models
            for entry in entries
            if (item.model, entry.contract) not in hidden
        ),
        contracts=entries,
        holes=holes,
        withheld=withheld,
        notes=notes,
        counts=Counts(resolved=1_234, unresolved=56, unchecked=7, error=8),
        shared_tasks=16,
        shared_contracts=4,
        snapshots=1_300,
        unmatched=9,
        first_date="2026-11-16",
        last_date="2026-11-29",
        engine="2026.1",
        edition="0123456789abcdef" * 4,
    )


def standing(
    model: str, rank: int | None, rate: float | None = 0.875, *, figures: Figures | None = None
) -> ModelStanding:
    """Give one model; without a rank it has no shared rate."""
    return ModelStanding(
        model=model,
        rank=rank,
        shared=None if rank is None else make_rate(rate),
        figures=make_figures(rate) if figures is None else figures,
        unranked="shares no task with the others" if rank is None else None,
    )


def plain() -> Standings:
    """Four models as one meets them: a tie, unknown and partial cost, an unranked one."""
    return make_standings(
        [
            standing("openai/gpt-4o-2024-11-20", 1, 0.875),
            standing(
                "claude-sonnet-4.5", 1, 0.875, figures=make_figures(0.85, cost=None, trials=1)
            ),
            standing("qwen3-235b", 3, 0.5, figures=make_figures(0.5, known=7, estimated=5)),
            standing("mystery", None, figures=make_figures(None, duration=None)),
        ],
        holes=(
            Hole(model="mystery", contract="refunds/task_0", tasks=4, whole_contract=True),
            Hole(model="qwen3-235b", contract="booking/task_1", tasks=2, whole_contract=False),
        ),
        withheld=(
            Withheld(
                model="qwen3-235b", contract="booking/task_3", reason="stale: contract changed"
            ),
        ),
        notes=(
            SourceNote(kind="warning", text="traces/a.json: 3 traces carry no time"),
            SourceNote(kind="error", text="traces/b.json: truncated at byte 812"),
        ),
    )


def empty() -> Standings:
    """Nothing was judged."""
    return Standings(
        models=(),
        groups=(),
        cells=(),
        contracts=(),
        snapshots=5,
        unmatched=5,
        notes=(SourceNote(kind="warning", text="no contract applied"),),
    )


def hostile() -> Standings:
    """Every name is an attack."""
    contracts = tuple(make_contract(index, name) for index, name in enumerate(HOSTILE[:8]))
    return make_standings(
        [standing(name, index + 1) for index, name in enumerate(HOSTILE)],
        contracts=contracts,
        holes=tuple(
            Hole(model=name, contract=contracts[0].contract, tasks=1, whole_contract=False)
            for name in HOSTILE[:3]
        ),
        withheld=tuple(
            Withheld(model=name, contract=contracts[1].contract, reason=name) for name in HOSTILE
        ),
        notes=tuple(SourceNote(kind="error", text=name) for name in HOSTILE),
    )


def crowd() -> Standings:
    """Fifty models, forty contracts, hundreds of holes, repeated trials."""
    models = [
        standing(
            f"vendor/model-{index:02d}",
            index // 5 * 5 + 1,
            round(1 - (index // 5) / 20, 3),
            figures=make_figures(
                round(1 - index / 60, 3), trials=4, known=1 + index % 20, cost=0.001 * 1.3**index
            ),
        )
        for index in range(50)
    ]
    contracts = tuple(make_contract(index) for index in range(40))
    return make_standings(
        models,
        contracts=contracts,
        holes=tuple(
            Hole(model=item.model, contract=entry.contract, tasks=3, whole_contract=whole)
            for item in models[:20]
            for entry, whole in zip(contracts[:10], [True, False] * 5, strict=True)
        ),
        notes=tuple(SourceNote(kind="warning", text=f"file {index}: odd") for index in range(30)),
    )


def unranked() -> Standings:
    """Models, none of which can be ranked."""
    return make_standings([standing("a", None), standing("b", None, None)])


def alone() -> Standings:
    """One model, one contract."""
    return make_standings([standing("only", 1)], contracts=(make_contract(0),))


def reported() -> Standings:
    """Ledgers that agree, fail, cannot be confirmed and were not compared; names attack."""
    figures = make_figures(0.875)

    def gated(**why: str) -> Figures:
        none = {"total": None, "per_run": None, "per_resolved": None} if "withheld" in why else {}
        return msgspec.structs.replace(
            figures,
            tokens=msgspec.structs.replace(figures.tokens, **none, **why),
            cost_usd=msgspec.structs.replace(figures.cost_usd, **none, **why),
        )

    standings = make_standings(
        [
            standing("honest", 1),
            standing("liar", 1, figures=gated(withheld="fidelity 0.62")),
            standing("partly", 1, figures=gated(doubt="fidelity 1.00: 4 NoTruth")),
            standing(HOSTILE[0], 1, figures=gated(doubt=f"fidelity not checked: {HOSTILE[4]}")),
            standing("plain", 1),
        ]
    )
    return msgspec.structs.replace(
        standings,
        fidelity=(
            ModelFidelity(
                model=HOSTILE[0],
                outcome="PENDING",
                score=None,
                pending=2,
                executors=3,
                reason=HOSTILE[4],
            ),
            ModelFidelity(
                model="honest",
                outcome="PASS",
                score=1.0,
                passed=42,
                executors=84,
                checked=84,
                truth_tokens=1000,
                checked_tokens=1000,
            ),
            ModelFidelity(
                model="liar",
                outcome="FAIL",
                score=0.62,
                passed=1_200,
                failed=30,
                executors=2_500,
                checked=2_400,
                truth_tokens=1000,
                checked_tokens=875,
                reason="30 TokenMismatch",
                unreported=270,
                divergent=30,
                divergences=tuple(
                    Divergence(
                        date="2026-11-20",
                        trace_id=name,
                        executor=name,
                        verdict="TokenMismatch",
                        reason=f"495 of 550 tokens not reported; {name}",
                        source="s",
                        source_file=name,
                        file=name,
                        record="line 7",
                    )
                    for name in HOSTILE[:3]
                ),
            ),
            ModelFidelity(
                model="partly",
                outcome="WARN",
                score=1.0,
                warned=4,
                waiting=2,
                executors=8,
                checked=4,
                reason="4 NoTruth, 2 not compared yet",
            ),
        ),
    )


SCENARIOS: dict[str, Callable[[], Standings]] = {
    maker.__name__: maker for maker in (plain, empty, hostile, crowd, unranked, alone, reported)
}


@pytest.fixture(params=sorted(SCENARIOS))
def any_standings(request: pytest.FixtureRequest) -> Standings:
    """Each scenario in turn."""
    return SCENARIOS[request.param]()


@pytest.fixture
def scenario() -> Callable[[str], Standings]:
    """Make one scenario by name."""
    return lambda name: SCENARIOS[name]()
