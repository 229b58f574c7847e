"""Whether what is published is what publishing now would give.

Belongs here: the hash of an edition's inputs, and the notes that are among them. Does not
belong here: computing or rendering an edition (`publish`): asking whether anything is to be
done must not wait for pandas.
"""

from __future__ import annotations

from collections import Counter

from benchmark_assets.adapters.editions import read_current, read_standings, report_path
from benchmark_assets.adapters.snapshot_files import list_partitions
from benchmark_assets.adapters.source_index import list_sources, read_index
from benchmark_assets.adapters.store import Store
from benchmark_assets.leaderboard import LEADERBOARD_VERSION
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.standings import SourceNote
from benchmark_assets.pipeline.cells import RunState, archived_contracts, read_state, stale_cells
from benchmark_assets.pipeline.fidelity import (
    FidelityState,
    fidelity_keys_hash,
    read_fidelity_state,
)
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report import REPORT_VERSION
from benchmark_assets.scoring.evaluate import ENGINE_VERSION


def input_notes(store: Store, config: ProjectConfig) -> list[SourceNote]:
    """What readers of a leaderboard must know about its inputs."""
    notes = []
    configured = {source.name for source in config.sources}
    stored = set(list_partitions(store))
    waiting: Counter[tuple[str, str]] = Counter()
    for name in list_sources(store):
        index = read_index(store, name)
        if name not in configured:
            traces = sum(entry.traces for entry in index.values())
            text = f"{name} is no source any more; its {traces} traces still count (see --prune)"
            notes.append(SourceNote(kind="warning", text=text))
        for entry in index.values():
            where = f"{name}/{entry.path}"
            for part in entry.partitions:
                if (part.date, part.model) not in stored:
                    waiting[part.date, part.model] += part.traces
            if entry.status == "unreadable":
                notes.append(SourceNote(kind="error", text=f"{name}: {entry.error}"))
            elif entry.status == "vanished":
                text = f"{where} is gone; its {entry.traces} traces still count"
                notes.append(SourceNote(kind="warning", text=text))
            notes += [
                SourceNote(kind="error", text=f"trace {lost.trace_id}: {lost.reason}")
                for lost in entry.unplaced
            ]
    notes += [
        SourceNote(kind="warning", text=f"{count} traces of {model} on {date} are not ingested")
        for (date, model), count in sorted(waiting.items())
    ]
    for footer in list_partitions(store).values():
        notes += [
            SourceNote(kind="warning", text=f"duplicate {text}") for text in footer.duplicates
        ]
    notes += [
        SourceNote(
            kind="warning",
            text=f"contract {gone.contract} ({gone.label}) is gone: {gone.runs} runs of "
            f"{gone.models} models are archived and count no more",
        )
        for gone in archived_contracts(store)
    ]
    return notes


def inputs_hash(state: RunState, ledgers: FidelityState, notes: list[SourceNote]) -> str:
    """Hash of all that an edition is computed from; equal means there is nothing to publish."""
    stored = {
        f"{cell.contract}\x00{cell.model}": keys for cell, keys in sorted(state.stored().items())
    }
    stale = [[*cell, *dates] for cell, dates in stale_cells(state).dates.items()]
    return content_hash(
        canonical_json(stored),
        # Withheld cells: new prices or a new engine make them without touching any file.
        canonical_json(stale),
        canonical_json({key: c.content_hash for key, c in state.contracts.items()}),
        canonical_json(
            [f"{date}\x00{model}\x00{sha}" for (date, model), sha in state.contents.items()]
        ),
        canonical_json([note.text for note in notes]),
        fidelity_keys_hash(ledgers),
        ENGINE_VERSION,
        LEADERBOARD_VERSION,
    )


def leaderboard_is_current(workspace: Workspace) -> bool:
    """Whether the published edition is what publishing now would give."""
    store = workspace.store
    current = read_current(store)
    if current is None or read_standings(store, current.edition) is None:
        return False
    return current.inputs == wanted_inputs(workspace)


def wanted_inputs(workspace: Workspace) -> str:
    """The hash of the inputs that publishing now would have."""
    store = workspace.store
    notes = input_notes(store, workspace.project.config)
    return inputs_hash(read_state(workspace), read_fidelity_state(workspace), notes)


def report_is_current(workspace: Workspace) -> bool:
    """Whether the current edition has its report, made by this version."""
    current = read_current(workspace.store)
    if current is None:
        return False
    data = workspace.store.read(report_path(current.edition))
    return data is not None and report_mark().encode() in data[:4096]


def report_mark() -> str:
    """The tag by which a report says which version of the page it is."""
    return f'<meta name="generator" content="benchmark-assets report {REPORT_VERSION}">'
