"""Verdicts out of the store, to where their traces are.

Belongs here: which runs are written, what was written before, and remembering it. Does not belong
here: what a system takes (`adapters.langfuse.scores`, `adapters.evaluation_events`).

Written are runs of cells that are current: a verdict by yesterday's contract is withheld, as the
leaderboard withholds it. What was written is remembered in the store, per server and project and
month, by a hash of what was sent, as soon as it was sent: a run that is interrupted goes on where
it stopped, and one that finds nothing new sends nothing. Where that memory is lost, the same
scores are written again, over the same.

A verdict that can no longer be given (a run that became an error) leaves its scores on the server:
they are counted as `left`, for people to remove.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

import msgspec
import pyarrow as pa

from benchmark_assets.adapters.langfuse.scores import Score, ScoreWriter, scores_of
from benchmark_assets.adapters.parquet import read_table, to_parquet
from benchmark_assets.adapters.run_files import read_month
from benchmark_assets.adapters.snapshot_files import SCHEMA as SNAPSHOT_SCHEMA
from benchmark_assets.adapters.sources import Progress, quiet
from benchmark_assets.adapters.store import Store, run_path, snapshot_path
from benchmark_assets.model.identity import content_hash
from benchmark_assets.model.verdict import RunRow
from benchmark_assets.pipeline.cells import CellId, read_state, stale_cells
from benchmark_assets.pipeline.plan import Selection
from benchmark_assets.pipeline.workspace import Workspace

WRITTEN = "written"
"""Folder of the store that remembers what was written elsewhere."""

_SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("digest", pa.string(), nullable=False),
    ]
)
_AT_ONCE = 2000
"""Scores after which what was written is remembered."""


class Judged(NamedTuple):
    """A run, the source of its trace, and the trace's environment (None if it has none)."""

    run: RunRow
    source: str
    environment: str | None


class _Environment(msgspec.Struct):
    environment: str | None = None


_ENVIRONMENT = msgspec.json.Decoder(_Environment)

_Place = tuple[str, str, str, str | None]


def judged_runs(
    workspace: Workspace,
    selection: Selection,
    sources: Collection[str] | None = None,
    progress: Progress = quiet,
) -> Iterator[tuple[str, list[Judged]]]:
    """Yield month by month, and in it file by file, the runs that are current.

    Args:
        workspace: The project.
        selection: Which of them.
        sources: Names of the sources that traces must be of; None for any.
        progress: Told how far it is.
    """
    todo = _current(workspace, selection)
    for number, ((month, cell), dates) in enumerate(sorted(todo.items())):
        progress("reading verdicts", number, len(todo))
        rows = read_month(workspace.store, run_path(cell.contract, cell.model, month), dates)
        places: dict[str, Mapping[_Place, tuple[str, str | None]]] = {}
        found = []
        for row in rows:
            if row.date not in places:
                places[row.date] = _places(workspace.store, row.date, cell.model)
            known = places[row.date].get((row.trace_id, row.file, row.sha256, row.record))
            if known is not None and (sources is None or known[0] in sources):
                found.append(Judged(row, *known))
        if found:
            yield month, found


def _current(workspace: Workspace, selection: Selection) -> dict[tuple[str, CellId], set[str]]:
    """Month and cell → the dates whose verdicts are the ones they should be."""
    state = read_state(workspace)
    stale = stale_cells(state).dates
    found: dict[tuple[str, CellId], set[str]] = defaultdict(set)
    for cell, keys in state.stored().items():
        if not selection.takes_cell(cell) or cell.contract not in state.contracts:
            continue
        for date in keys:
            wanted = (selection.first or date) <= date <= (selection.last or date)
            if wanted and date not in stale.get(cell, ()):
                found[date[:7], cell].add(date)
    return dict(found)


def _places(store: Store, date: str, model: str) -> dict[_Place, tuple[str, str | None]]:
    """A partition's traces: which, from where, in which environment."""
    path = snapshot_path(date, model)
    data = store.read(path)
    if data is None:
        return {}
    names = ["trace_id", "file", "sha256", "record", "source", "snapshot"]
    with store.decoding(path):
        table = read_table(data, SNAPSHOT_SCHEMA, names)
        columns = (table.column(name).to_pylist() for name in names)
        return {
            (trace_id, file, sha256, record): (source, _ENVIRONMENT.decode(text).environment)
            for trace_id, file, sha256, record, source, text in zip(*columns, strict=True)
        }


# Scores.


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A project on a server, for telling one from another.

    Attributes:
        base_url: The server's address.
        project: The project's id, or whatever stands for it.
    """

    base_url: str
    project: str

    def path(self, month: str) -> str:
        """Where it is remembered what was written of a month."""
        return f"{WRITTEN}/{content_hash(self.base_url, self.project)[:16]}/month={month}.parquet"


class ScoresWritten(msgspec.Struct, kw_only=True):
    """What writing scores came to.

    Attributes:
        runs: Runs looked at.
        nothing: Those of them that have no score: they could not be judged.
        new, changed: Scores that were written (or would be), for the first time or again.
        unchanged: Scores that the server has already.
        refused: Scores that the server did not take, with the reason.
        left: Scores on the server of verdicts that are no longer given.
        traces: Ids of the traces whose scores were written, the first ones.
        shown: Scores that were or would be written, the first ones.
    """

    runs: int = 0
    nothing: int = 0
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: dict[str, str] = {}
    left: int = 0
    traces: list[str] = []
    shown: list[Score] = []


SHOWN = 20
"""How many traces and scores are kept for showing."""


def write_scores(
    store: Store,
    target: Target,
    months: Iterable[tuple[str, Iterable[Judged]]],
    writer: ScoreWriter | None,
    result: ScoresWritten | None = None,
) -> ScoresWritten:
    """Write the scores of runs that a server does not have like that.

    Args:
        store: Remembers what was written.
        target: The server and project.
        months: Runs, by month.
        writer: Writes; None only says what would be written.
        result: Kept up to date, also when an error ends it.

    Raises:
        LangfuseError: If the server cannot be written to any further. What was written is
            remembered.
    """
    result = ScoresWritten() if result is None else result
    for month, judged in months:
        path = target.path(month)
        known = _remembered(store, path)
        waiting: list[Score] = []
        for item in judged:
            waiting += _unwritten(item, known, result)
            if len(waiting) >= _AT_ONCE:
                _write(store, path, writer, waiting, known, result)
                waiting = []
        _write(store, path, writer, waiting, known, result)
    return result


def _unwritten(item: Judged, known: Mapping[str, str], result: ScoresWritten) -> list[Score]:
    """The scores of a run that were not written like that."""
    scores = scores_of(item.run, item.environment)
    result.runs += 1
    result.nothing += not scores
    here = {score.id for score in scores}
    run = f"{item.run.contract}:{item.run.trace_id}"
    names = {result.plugin for result in item.run.plugins} | {"passed", "score"}
    result.left += sum(f"{run}:{name}" in known for name in names if f"{run}:{name}" not in here)
    return [score for score in scores if _is_new(score, known, result)]


def _is_new(score: Score, known: Mapping[str, str], result: ScoresWritten) -> bool:
    before = known.get(score.id)
    if before == score.digest:
        result.unchanged += 1
        return False
    return True


def _write(
    store: Store,
    path: str,
    writer: ScoreWriter | None,
    scores: list[Score],
    known: dict[str, str],
    result: ScoresWritten,
) -> None:
    done: dict[str, str] = {}
    try:
        for score, refused in writer.write(scores) if writer else ((s, None) for s in scores):
            if refused is not None:
                result.refused[score.id] = refused
                continue
            _count(score, score.id in known, result)
            done[score.id] = score.digest
    finally:
        if writer is not None and done:
            known |= done
            _remember(store, path, done)


def _count(score: Score, again: bool, result: ScoresWritten) -> None:
    result.changed += again
    result.new += not again
    if len(result.shown) < SHOWN:
        result.shown.append(score)
    if len(result.traces) < SHOWN and score.trace_id not in result.traces:
        result.traces.append(score.trace_id)


def _remembered(store: Store, path: str) -> dict[str, str]:
    data = store.read(path)
    if data is None:
        return {}
    with store.decoding(path):
        return _pairs(data)


def _pairs(data: bytes) -> dict[str, str]:
    table = read_table(data, _SCHEMA)
    ids, digests = (table.column(name).to_pylist() for name in _SCHEMA.names)
    return dict(zip(ids, digests, strict=True))


def _remember(store: Store, path: str, done: Mapping[str, str]) -> None:
    """Add to what is remembered, whoever else does so at the time."""

    def merge(before: bytes | None) -> bytes:
        known: dict[str, str] = {}
        with suppress(pa.ArrowException):  # a damaged memory only costs writing again
            known = _pairs(before) if before is not None else {}
        merged = sorted({**known, **done}.items())
        rows = [{"id": key, "digest": digest} for key, digest in merged]
        return to_parquet(pa.Table.from_pylist(rows, schema=_SCHEMA), {})

    store.replace(path, merge)
