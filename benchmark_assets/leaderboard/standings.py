"""From run rows to standings: figures by model, group and cell, ranks over what is shared.

Belongs here: grouping, the shared block of tasks, ranks, holes. Does not belong here: formulas
(`statistics`), what is stale (`pipeline`), layout (`report`).

Models are ranked by the macro pass rate over the tasks that all of them share, so that no
model gains by skipping the hard ones. A model without any scored run is not ranked and does
not shrink the block; when the models share nothing, none is ranked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

import pandas as pd

from benchmark_assets.leaderboard.fidelity import gate
from benchmark_assets.leaderboard.runs import prepare
from benchmark_assets.leaderboard.statistics import figures
from benchmark_assets.leaderboard.statistics.pass_rate import counts, macro_rate
from benchmark_assets.model.standings import (
    Cell,
    ContractEntry,
    GroupStanding,
    Hole,
    ModelFidelity,
    ModelStanding,
    SourceNote,
    Standings,
    Withheld,
)


def compute_standings(
    rows: pd.DataFrame,
    contracts: Sequence[ContractEntry],
    *,
    withheld: Sequence[Withheld] = (),
    fidelity: Sequence[ModelFidelity] = (),
    notes: Sequence[SourceNote] = (),
    snapshots: int = 0,
    unmatched: int | None = 0,
    engine: str = "",
) -> Standings:
    """Compute the leaderboard of a set of runs.

    Args:
        rows: One row a run, as `adapters.run_reader.LEADERBOARD_COLUMNS`; withheld cells left out.
        contracts: The contracts in force, whether or not they judged anything.
        withheld: Cells kept out of `rows`, with reasons.
        fidelity: What comparing the ledgers of models came to; decides about their figures of
            tokens and cost.
        notes: What a reader must know about the inputs.
        snapshots: Number of traces ingested.
        unmatched: How many of them no contract judged; None if that is not known.
        engine: Version of the rules that judged.
    """
    runs = prepare(rows)
    shared = shared_units(runs)
    block = runs[runs["unit"].isin(shared)]
    trusted = {item.model: item for item in fidelity}
    models = _models(runs, block, trusted)
    groups = [
        GroupStanding(
            model=str(model), group=str(group), figures=gate(figures(part), trusted.get(str(model)))
        )
        for (group, model), part in runs.groupby(["group", "model"], observed=True, sort=True)
    ]
    cells = [
        Cell(
            model=str(model),
            contract=str(contract),
            figures=gate(figures(part), trusted.get(str(model))),
            top_failure=top_failure(part),
            first_date=str(part["date"].min()),
            last_date=str(part["date"].max()),
        )
        for (contract, model), part in runs.groupby(["contract", "model"], observed=True, sort=True)
    ]
    return Standings(
        models=tuple(models),
        groups=tuple(groups),
        cells=tuple(cells),
        contracts=tuple(sorted(contracts, key=lambda entry: entry.contract)),
        holes=tuple(holes(runs)),
        withheld=tuple(withheld),
        fidelity=tuple(sorted(fidelity, key=lambda item: item.model)),
        notes=tuple(notes),
        counts=counts(runs),
        shared_tasks=len(shared),
        shared_contracts=int(block["contract"].nunique()),
        snapshots=snapshots,
        unmatched=unmatched,
        first_date=None if runs.empty else str(runs["date"].min()),
        last_date=None if runs.empty else str(runs["date"].max()),
        engine=engine,
    )


def shared_units(runs: pd.DataFrame) -> set[str]:
    """The (contract, task) units on which every model that has scored runs has one."""
    scored = runs[runs["scored"]]
    units: set[str] | None = None
    for _, part in scored.groupby("model", observed=True):
        own = set(part["unit"])
        units = own if units is None else units & own
    return units or set()


def _models(
    runs: pd.DataFrame, block: pd.DataFrame, trusted: Mapping[str, ModelFidelity]
) -> list[ModelStanding]:
    rates: dict[str, Fraction] = {}
    for model, part in block.groupby("model", observed=True):
        rate = macro_rate(part)
        if rate is not None:
            rates[str(model)] = rate
    standings = []
    for name, part in runs.groupby("model", observed=True, sort=True):
        model = str(name)
        rate = rates.get(model)
        if rate is not None:
            unranked = None
        elif not part["scored"].any():
            unranked = "no run of it was scored"
        else:
            unranked = "the models share no task"
        standings.append(
            ModelStanding(
                model=model,
                # Ties share the better rank: 1, 1, 3.
                rank=None if rate is None else 1 + sum(other > rate for other in rates.values()),
                shared=None if rate is None else figures(block[block["model"].eq(model)]).pass_rate,
                figures=gate(figures(part), trusted.get(model)),
                unranked=unranked,
            )
        )
    standings.sort(key=lambda s: (s.rank is None, s.rank or 0, s.model))
    return standings


def holes(runs: pd.DataFrame) -> list[Hole]:
    """What some models have scored runs for and others have not, by model and contract."""
    scored = runs[runs["scored"]]
    everyone = sorted(str(model) for model in runs["model"].unique())
    found = []
    for contract, part in scored.groupby("contract", observed=True, sort=True):
        # A run without a task of its own identity cannot be missed by another model.
        named = part[part["task"].notna()]
        units = set(named["unit"])
        for model in everyone:
            own = part[part["model"].eq(model)]
            missing = len(units - set(own["unit"]))
            if missing or own.empty:
                found.append(
                    Hole(
                        model=model,
                        contract=str(contract),
                        tasks=missing,
                        whole_contract=own.empty,
                    )
                )
    return found


def top_failure(runs: pd.DataFrame) -> str | None:
    """The plugin that fails most runs, with how many; None if nothing failed."""
    failed = runs[runs["outcome"].eq("unresolved") & runs["reason"].notna()]
    tally = Counter(str(reason).split(":", 1)[0] for reason in failed["reason"])
    if not tally:
        return None
    plugin, count = min(tally.items(), key=lambda item: (-item[1], item[0]))
    return f"{plugin} ({count} of {len(failed)})"
