"""Runs in, an edition of the leaderboard and its report out.

Belongs here: which runs may be published, what readers must be told, and whether anything
changed. Does not belong here: the figures (`leaderboard`) and the pages (`report`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd

from benchmark_assets.adapters.editions import (
    CellProvenance,
    Provenance,
    read_current,
    read_standings,
    report_path,
    write_edition,
)
from benchmark_assets.adapters.run_reader import count_traces, read_runs
from benchmark_assets.adapters.snapshot_files import list_partitions
from benchmark_assets.leaderboard import LEADERBOARD_VERSION
from benchmark_assets.leaderboard.standings import compute_standings
from benchmark_assets.model.standings import ContractEntry, SourceNote, Standings, Withheld
from benchmark_assets.pipeline.cells import (
    CellId,
    RunState,
    keys_hash,
    read_state,
    stale_cells,
)
from benchmark_assets.pipeline.fidelity import (
    fidelity_keys_hash,
    fidelity_of_models,
    read_fidelity_state,
)
from benchmark_assets.pipeline.freshness import input_notes, inputs_hash, report_mark
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.html import render_html
from benchmark_assets.scoring.evaluate import ENGINE_VERSION
from benchmark_assets.scoring.routing import describe

TITLE = "Agent benchmark"

ERROR_NOTES = 50
"""How many traces that could not be evaluated an edition names; the rest is counted."""


class Published(NamedTuple):
    """An edition, whether it is new, and the stale cells it withholds."""

    standings: Standings
    is_new: bool


def publish(workspace: Workspace) -> Published:
    """Compute standings from all cells that are current, and publish them as an edition.

    A cell whose stored keys are not those of the present snapshots and contracts is withheld
    as stale: half-updated figures are worse than none.
    """
    store = workspace.store
    state = read_state(workspace)
    stale = stale_cells(state).dates
    withheld = _withheld(state, stale)
    kept_out = {CellId(item.contract, item.model) for item in withheld}
    paths = [
        path
        for path, month in state.months.items()
        if month.contract in state.contracts and CellId(month.contract, month.model) not in kept_out
    ]
    runs = read_runs(store, paths)
    sizes: dict[CellId, int] = {
        CellId(str(contract), str(model)): len(part)
        for (contract, model), part in runs.groupby(["contract", "model"], observed=True)
    }
    traces = sum(footer.traces for footer in list_partitions(store).values())
    notes = input_notes(store, workspace.project.config)
    ledgers = read_fidelity_state(workspace)
    entries = _entries(state, sizes)
    standings = compute_standings(
        runs,
        entries,
        withheld=withheld,
        fidelity=fidelity_of_models(workspace, ledgers),
        notes=[*notes, *_error_notes(runs), *_unmatched_notes(state, entries, kept_out)],
        snapshots=traces,
        unmatched=None if withheld else traces - count_traces(store, paths),
        engine=ENGINE_VERSION,
    )
    provenance = Provenance(
        engine=ENGINE_VERSION,
        leaderboard=LEADERBOARD_VERSION,
        contracts={key: contract.content_hash for key, contract in state.contracts.items()},
        harnesses=state.rules.harness_hashes,
        plugins=state.rules.plugin_versions,
        cells=_cell_provenance(state, sizes),
        fidelity=fidelity_keys_hash(ledgers),
    )
    published, is_new = write_edition(
        store, standings, provenance, inputs_hash(state, ledgers, notes)
    )
    return Published(published, is_new)


def _withheld(state: RunState, stale: Mapping[CellId, list[str]]) -> list[Withheld]:
    """Cells that must not be published, and why; a blocked day blocks its model's cells."""
    reasons: dict[CellId, str] = {}
    for cell, dates in stale.items():
        if cell.contract in state.contracts:
            count = f"{len(dates)} {'date' if len(dates) == 1 else 'dates'}"
            reasons[cell] = f"stale: {count} to evaluate"
    for date, model in state.blocked:
        for contract in state.contracts:
            reasons[CellId(contract, model)] = (
                f"blocked: the traces of {date} do not add up (every_trace_accounted_for)"
            )
    return [
        Withheld(model=cell.model, contract=cell.contract, reason=reason)
        for cell, reason in sorted(reasons.items())
    ]


def _error_notes(runs: pd.DataFrame) -> list[SourceNote]:
    """Why runs could not be evaluated; a trace is named once whatever the number of contracts."""
    errors = runs[runs["outcome"].eq("error")].drop_duplicates(["trace_id", "reason"])
    notes = [
        SourceNote(kind="error", text=f"trace {trace_id} ({model}, {date}): {reason}")
        for trace_id, model, date, reason in errors[
            ["trace_id", "model", "date", "reason"]
        ].itertuples(index=False, name=None)
    ]
    more = len(notes) - ERROR_NOTES
    if more > 0:
        rest = SourceNote(kind="error", text=f"{more} more traces could not be evaluated")
        notes = [*notes[:ERROR_NOTES], rest]
    return notes


def _unmatched_notes(
    state: RunState, entries: Sequence[ContractEntry], withheld: set[CellId]
) -> list[SourceNote]:
    waiting = {cell.contract for cell in withheld}
    return [
        SourceNote(
            kind="warning",
            text=f"contract {entry.contract} ({entry.label}) applied to no trace; it wants "
            + describe(state.contracts[entry.contract].applies_to),
        )
        for entry in entries
        if not entry.runs and entry.contract not in waiting
    ]


def _entries(state: RunState, sizes: Mapping[CellId, int]) -> list[ContractEntry]:
    judged: Counter[str] = Counter()
    for cell, size in sizes.items():
        judged[cell.contract] += size
    return [
        ContractEntry(
            contract=contract.id,
            name=contract.name,
            label=contract.label,
            group=contract.group,
            sha256=contract.content_hash,
            runs=judged[contract.id],
        )
        for contract in state.contracts.values()
    ]


def _cell_provenance(state: RunState, sizes: Mapping[CellId, int]) -> tuple[CellProvenance, ...]:
    keys: dict[CellId, dict[str, str]] = defaultdict(dict, state.stored())
    return tuple(
        CellProvenance(
            contract=cell.contract,
            model=cell.model,
            keys_sha256=keys_hash(keys[cell]),
            runs=sizes.get(cell, 0),
        )
        for cell in sorted(keys)
        if cell.contract in state.contracts
    )


def write_report(workspace: Workspace) -> str | None:
    """Render the current edition; returns the report's path in the store, None without edition."""
    store = workspace.store
    current = read_current(store)
    standings = None if current is None else read_standings(store, current.edition)
    if current is None or standings is None:
        return None
    path = report_path(current.edition)
    html = render_html(standings, title=TITLE)
    store.write(path, html.replace("<head>", f"<head>\n{report_mark()}", 1).encode())
    return path
