"""Choosing traces of a Langfuse server: what the server cannot tell is looked for here.

Belongs here: turning a selection into the server's conditions, going back in time, and checking
the rest on normalised traces. Does not belong here: requests (`v1`, `v2`), what can be asked
(`trace_source`).

Time is gone back in stretches that grow, so that the newest traces cost little however long a
project exists. What the server was asked is checked again on every trace: servers that do not
know `filter` ignore it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import UNFORESEEN
from benchmark_assets.adapters.formats.langfuse import read_trace
from benchmark_assets.adapters.formats.langfuse_values import as_tree
from benchmark_assets.adapters.langfuse.http import LangfuseError
from benchmark_assets.adapters.langfuse.readers import Filters, Listed, RawTrace, Reader, Window
from benchmark_assets.adapters.trace_source import (
    Progress,
    Selected,
    Selection,
    Skills,
    matches,
    skills_recorded,
)
from benchmark_assets.adapters.traces import settle
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import Origin, TraceSnapshot

FIRST_STRETCH = timedelta(minutes=15)
_GROWTH = 4

_BEGINNING = datetime(2023, 1, 1, tzinfo=UTC)
"""Langfuse has no traces from before."""

_AHEAD = timedelta(days=1)
"""How far agents' clocks may be ahead, where no end of time is asked for."""

_TICK = timedelta(milliseconds=1)

_FEW, _MANY = 20, 100
"""Traces fetched at a time: at first, and once it is clear that many have to be looked at."""

_SEARCHABLE = re.compile(r"[A-Za-z0-9 ]{3,}")
"""Texts that are the same inside JSON as outside, so that the server can look for them."""


class LangfuseTraces:
    """The traces of one project on a server, as a `TraceSource`.

    Args:
        reader: Reads the server.
        config: Settles what traces are of; how models are called.
        environments: What is asked for where a selection does not say; empty is every one.
            Traces asked for by id are given whatever their environment.
        skills: Names of the skills that a trace loaded.
    """

    def __init__(
        self,
        reader: Reader,
        config: ProjectConfig,
        *,
        environments: tuple[str, ...] = (),
        skills: Skills = skills_recorded,
    ) -> None:
        self._reader = reader
        self._config = config
        self._environments = environments
        self._skills = skills

    def select(self, selection: Selection, progress: Progress | None = None) -> Iterator[Selected]:
        """See `TraceSource.select`."""
        progress = progress if progress is not None else Progress()
        if selection.ids:
            traces = self._by_id(selection.ids, progress)
        else:
            if selection.environments is None:
                selection = msgspec.structs.replace(selection, environments=self._environments)
            traces = self._newest_first(selection, progress)
        for raw in traces:
            if progress.given >= selection.limit:
                return
            if progress.looked_at >= selection.scan_cap:
                progress.stopped = f"{progress.looked_at:,} traces were looked at, the most allowed"
                return
            progress.looked_at += 1
            snapshot = self.snapshot(raw)
            if self._is_asked_for(selection, raw, snapshot):
                progress.given += 1
                yield Selected(snapshot=snapshot, document=document(raw))

    def _is_asked_for(self, selection: Selection, raw: RawTrace, snapshot: TraceSnapshot) -> bool:
        # The server's time of a trace counts, which need not be that of its first observation.
        time = raw.timestamp
        if time is not None and not _covers(selection, time):
            return False
        told = {} if snapshot.environment else {"environments": ()}
        rest = msgspec.structs.replace(selection, since=None, until=None, **told)
        return matches(rest, snapshot, self._config, self._skills, _metadata(raw))

    def snapshot(self, raw: RawTrace) -> TraceSnapshot:
        """A fetched trace, normalised and settled; one that is not complete has a `problem`."""
        return settle(normalised(raw), self._config)

    # By id.

    def _by_id(self, ids: Sequence[str], progress: Progress) -> Iterator[RawTrace]:
        if len(ids) == 1:
            found = self._reader.fetch(ids[0])
            known = {} if found is None else {ids[0]: found}
            yield from self._known(ids, known, progress)
            return
        for begin in range(0, len(ids), _MANY):
            some = list(dict.fromkeys(ids[begin : begin + _MANY]))
            known = {raw.trace_id: raw for raw in self._reader.fetch_many(some)}
            yield from self._known(some, known, progress)

    @staticmethod
    def _known(
        ids: Sequence[str], known: dict[str, RawTrace], progress: Progress
    ) -> Iterator[RawTrace]:
        for trace_id in ids:
            if trace_id in known:
                yield known[trace_id]
            else:
                progress.missing.append(trace_id)

    # By conditions.

    def _newest_first(self, selection: Selection, progress: Progress) -> Iterator[RawTrace]:
        plain = filters_of(selection)
        if selection.thread_id is None:
            yield from self._found(selection, plain, progress)
            return
        thread = (selection.thread_id,)
        in_session = replace(plain, session_ids=thread)
        any_found = False
        for raw in self._found(selection, in_session, progress):
            any_found = True
            yield raw
        if not any_found:
            metadata = (*plain.metadata, ("thread_id", thread))
            yield from self._found(selection, replace(plain, metadata=metadata), progress)

    def _found(
        self, selection: Selection, filters: Filters, progress: Progress
    ) -> Iterator[RawTrace]:
        """Traces that the server finds, newest first."""
        wanted = selection.prompt_contains or ""
        if self._reader.api == "v2" and _SEARCHABLE.fullmatch(wanted):
            searched = replace(filters, input_contains=wanted)
            try:
                yield from self._fetched(selection, searched, progress)
            except LangfuseError as error:
                # A server that cannot search yet; nothing was given before it said so.
                if error.kind != "refused" or progress.looked_at:
                    raise
            else:
                return
        yield from self._fetched(selection, filters, progress)

    def _fetched(
        self, selection: Selection, filters: Filters, progress: Progress
    ) -> Iterator[RawTrace]:
        for window in stretches(selection):
            listed = self._reader.list(window, filters)
            while some := list(islice(listed, self._how_many(selection, progress))):
                yield from self._window(some, filters)

    @staticmethod
    def _how_many(selection: Selection, progress: Progress) -> int:
        """How many traces to fetch next: no more than may be needed, many if many fall through."""
        left = max(1, min(selection.limit - progress.given, _MANY))
        return left if progress.looked_at < _FEW else min(_MANY, max(_FEW, left))

    def _window(self, some: Sequence[Listed], filters: Filters) -> Iterator[RawTrace]:
        times = [item.timestamp for item in some]
        window = Window(min(times), max(times) + _TICK)
        wanted = {item.trace_id: item for item in some}
        # Waited for or not, torn or not: newest first, as they were listed.
        found = {raw.trace_id: raw for raw in self._reader.fetch_window(window, wanted, filters)}
        yield from (found[trace_id] for trace_id in wanted if trace_id in found)


def stretches(selection: Selection, now: datetime | None = None) -> Iterator[Window]:
    """The time that is asked for, newest first, in stretches that grow."""
    end = selection.until or (now or datetime.now(UTC)) + _AHEAD
    beginning = selection.since or min(_BEGINNING, end - FIRST_STRETCH)
    span = FIRST_STRETCH
    if selection.until is None:
        # What clocks that are ahead say is little and goes with the newest.
        start = max(beginning, end - _AHEAD - span)
        yield Window(start, end)
        end, span = start, span * _GROWTH
    while end > beginning:
        start = max(beginning, end - span)
        yield Window(start, end)
        end, span = start, span * _GROWTH


def _covers(selection: Selection, time: datetime) -> bool:
    return (selection.since is None or time >= selection.since) and (
        selection.until is None or time < selection.until
    )


def filters_of(selection: Selection) -> Filters:
    """What the server is asked for, but for the thread."""
    metadata = tuple(selection.filters.items())
    if selection.run_id is not None:
        metadata += (("run_id", (selection.run_id,)),)
    return Filters(
        environments=selection.environments or (),
        names=() if selection.name is None else (selection.name,),
        user_ids=() if selection.user is None else (selection.user,),
        tags=selection.tags,
        metadata=metadata,
    )


# From what was fetched to a snapshot.


def document(raw: RawTrace) -> dict[str, Any]:
    """A trace as `formats/langfuse` reads it from a file."""
    return {"trace": raw.trace, "observations": raw.observations}


def normalised(raw: RawTrace) -> TraceSnapshot:
    """A fetched trace as a snapshot, not settled. One that is not complete has a `problem`."""
    content = msgspec.json.encode(document(raw), order="deterministic")
    origin = Origin(
        file=f"/api/public/traces/{raw.trace_id}",
        sha256=hashlib.sha256(content).hexdigest(),
        format="langfuse",
    )
    try:
        snapshot = read_trace(raw.trace, raw.observations, origin)
    except UNFORESEEN as error:
        # A shape that nobody thought of loses its trace, not the batch.
        problem = f"{origin.file}: could not be read: {type(error).__name__}: {error}"
        return TraceSnapshot(trace_id=raw.trace_id, origin=origin, problem=problem)
    problems = [None if raw.complete else f"{origin.file}: {raw.why}", snapshot.problem]
    return msgspec.structs.replace(
        snapshot,
        trace_id=raw.trace_id,
        problem="; ".join(problem for problem in problems if problem) or None,
    )


def _metadata(raw: RawTrace) -> list[dict[str, Any]]:
    """All metadata of a trace, as the server compares it: the trace's and every row's."""
    places: Iterable[dict[str, Any]] = ([raw.trace] if raw.trace else []) + raw.observations
    return [as_tree(place.get("metadata")) for place in places if place.get("metadata")]
