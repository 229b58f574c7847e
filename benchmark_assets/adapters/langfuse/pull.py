"""Pulling days of traces from a server into the store, only what is not there yet.

Belongs here: comparing a day's list with its manifest, fetching what is new or changed, when a
day is settled, which days are to be looked at. Does not belong here: requests (`v1`, `v2`), the
files' layout (`pulled_files`), which sources there are (`pipeline/pull`).

A day is listed and its list compared with what the manifest says: what is new, what changed and
what was incomplete is fetched. What the server no longer has stays, until it is pruned. A day of
which nothing is known is read without listing it first where that saves requests.

What was fetched is stored before an error is passed on, and from time to time, so that the next
try goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any

from benchmark_assets.adapters.langfuse.credentials import HIDDEN, Credentials
from benchmark_assets.adapters.langfuse.errors import LangfuseError
from benchmark_assets.adapters.langfuse.readers import Filters, Listed, RawTrace, Reader, Window
from benchmark_assets.adapters.langfuse.selection import document
from benchmark_assets.adapters.pulled_files import (
    Known,
    Manifest,
    Spool,
    day_folder,
    line_of,
    merge,
    pulled_days,
    read_manifest,
)
from benchmark_assets.adapters.store import Store
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.project import PulledSource

SETTLES = timedelta(days=1)
"""How long after its end a day is listed for the last time, if all of its traces are whole."""

GIVES_UP = timedelta(days=7)
"""The same if some are not: what is incomplete then stays so."""

STORED_AFTER = 5_000
"""Traces fetched before they are put into the store."""

_SHORTEST_HIDDEN = 8
"""Keys shorter than that are not looked for in traces: they would be found in other words."""


@dataclass
class DayPull:
    """What pulling one day came to.

    Attributes:
        day: The day.
        new, changed: Traces stored for the first time, and again.
        unchanged: Traces that the server has as the store does.
        incomplete: Traces of the day that are in the store and not whole.
        left: Traces still arriving that were left to the next time.
        gone: Traces in the store that the server no longer lists.
        busy: Whether another process is at it, so that nothing was done.
        error: What ended it early. What was fetched before is stored.
    """

    day: date
    new: int = 0
    changed: int = 0
    unchanged: int = 0
    incomplete: int = 0
    left: int = 0
    gone: int = 0
    busy: bool = False
    error: LangfuseError | None = None


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Whose traces are pulled, and which of them.

    Attributes:
        source: The source's name in the store.
        root: What tells the server's project from others: see `root_of`.
        filters: What the server is asked for.
        asked: Hash of that: see `asked_of`.
        credentials: Whose keys are hidden in what is stored.
    """

    source: str
    root: str
    filters: Filters
    asked: str
    credentials: Credentials = field(repr=False)


def root_of(base_url: str, project_id: str | None) -> str:
    """What tells one project from others: its id, which servers make up at random."""
    return content_hash(project_id or base_url)[:16]


def filters_of(source: PulledSource, environments: tuple[str, ...]) -> Filters:
    """What the server is asked for, by what a source says."""
    return Filters(
        environments=environments,
        names=source.names,
        tags=source.tags,
        metadata=tuple(sorted(source.filter.items())),
    )


def asked_of(filters: Filters) -> str:
    """Changes when other traces are asked for."""
    said = {
        "environments": sorted(filters.environments),
        "names": sorted(filters.names),
        "tags": sorted(filters.tags),
        "metadata": [[key, sorted(values)] for key, values in sorted(filters.metadata)],
    }
    return content_hash(canonical_json(said))[:16]


# Which days.


def look_back(today: date, lookback_days: int) -> list[date]:
    """Today, yesterday, and the days before it that late data may reach; the newest first."""
    return [today - timedelta(days=n) for n in range(lookback_days + 2)]


def days_to_pull(
    store: Store, origin: Origin, source: PulledSource, today: date, lookback_days: int
) -> list[date]:
    """The days to look at if nobody names any, the newest first.

    Those are the days that late data may reach, days since the source's `from` of which nothing
    is known, and days that were pulled and are not settled, or were asked for otherwise.
    """
    days = set(look_back(today, lookback_days))
    known = pulled_days(store, origin.source)
    days |= {
        day for day, found in known.items() if not found.settled or found.asked != origin.asked
    }
    if source.from_ is not None:
        since = range((today - source.from_).days + 1)
        days |= {day for n in since if (day := today - timedelta(days=n)) not in known}
        days = {day for day in days if day >= source.from_}
    return sorted((day for day in days if day <= today), reverse=True)


def check_root(store: Store, origin: Origin) -> None:
    """Refuse to mix two projects under one name.

    Raises:
        InputError: If what was pulled is another project's.
    """
    known = pulled_days(store, origin.source)
    if any(found.root != origin.root for found in known.values()):
        raise InputError(
            Problem(
                f"source {origin.source}: the keys are of another project than those that its "
                "traces were pulled with",
                key="sources",
                cure="give the source another `name`; both can feed the store",
            )
        )


# One day.


def pull_day(
    store: Store,
    origin: Origin,
    reader: Reader,
    day: date,
    now: datetime,
    *,
    leave_arriving: bool = False,
    prune: bool = False,
    wait: bool = True,
    progress: Callable[[int], None] = lambda count: None,
) -> DayPull:
    """Bring the store up to date with one day (UTC) of the server's.

    Args:
        store: Where traces go.
        origin: Whose they are.
        reader: Reads the server.
        day: The day.
        now: The server's time.
        leave_arriving: Leave traces that are still arriving, and not in the store yet, to the
            next time, instead of storing them as incomplete.
        prune: Remove traces that the server no longer has.
        wait: Wait while another process pulls the day, and then look what is left to do.
        progress: Told how many traces were fetched so far.

    Returns:
        What it came to; its `error` is what the server, or the way to it, did not give.
    """
    name = day_folder(origin.source, day)
    with store.exclusive(name, wait=wait) as free:
        if not free:
            return DayPull(day, busy=True)
        pull = _Pull(store, origin, reader, day, now, leave_arriving)
        return pull.run(prune=prune, progress=progress)


class _Pull:
    """One day being pulled."""

    def __init__(
        self,
        store: Store,
        origin: Origin,
        reader: Reader,
        day: date,
        now: datetime,
        leave_arriving: bool,
    ) -> None:
        self._store = store
        self._origin = origin
        self._reader = reader
        self._now = now
        self._leave_arriving = leave_arriving
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        self._window = Window(start, start + timedelta(days=1))
        self._result = DayPull(day)
        self._listed: dict[str, Listed] | None = None
        self._before = read_manifest(store, origin.source, day) or Manifest({})
        self._first = self._before.traces
        self._stored: dict[str, Known] = {}

    def run(self, *, prune: bool, progress: Callable[[int], None]) -> DayPull:
        whole = False
        try:
            self._fetch_all(progress)
            whole = True
        except LangfuseError as error:
            self._result.error = error
        gone = self._gone() if whole else set()
        self._result.gone = 0 if prune else len(gone)
        self._finish(whole=whole, drop=gone if prune else set())
        return self._result

    def _fetch_all(self, progress: Callable[[int], None]) -> None:
        """Fetch what is new, changed or incomplete, and store it.

        Raises:
            LangfuseError: After storing what was fetched.
        """
        traces = enumerate(self._traces(), start=1)
        done = False
        while not done:
            with Spool() as spool:
                try:
                    done = self._fill(spool, traces, progress)
                finally:
                    self._flush(spool)

    def _fill(
        self, spool: Spool, traces: Iterator[tuple[int, RawTrace]], progress: Callable[[int], None]
    ) -> bool:
        """Take in some traces; whether those were the last."""
        for count, raw in traces:
            self._take(spool, raw)
            progress(count)
            if len(spool) >= STORED_AFTER:
                return False
        return True

    def _traces(self) -> Iterator[RawTrace]:
        filters, window = self._origin.filters, self._window
        if self._reader.api == "v2" and not self._before.traces:
            # Rows with their contents come in no more requests than without.
            yield from self._reader.fetch_window(window, None, filters)
            return
        self._listed = {item.trace_id: item for item in self._reader.list(window, filters)}
        wanted = {key: item for key, item in self._listed.items() if self._is_wanted(item)}
        self._result.unchanged = len(self._listed) - len(wanted)
        if wanted:
            yield from self._reader.fetch_window(window, wanted, filters)

    def _is_wanted(self, item: Listed) -> bool:
        known = self._before.traces.get(item.trace_id)
        return (
            known is None
            or known.why is not None
            or not known.fingerprint
            or known.fingerprint != item.fingerprint
        )

    def _take(self, spool: Spool, raw: RawTrace) -> None:
        known = self._first.get(raw.trace_id)
        why = None if raw.complete else raw.why or "it is incomplete"
        if why is not None and self._is_left(raw, known):
            self._result.left += 1
            return
        listed = None if self._listed is None else self._listed.get(raw.trace_id)
        fingerprint = raw.fingerprint or (listed.fingerprint if listed else "")
        timestamp = self._time(raw, listed)
        try:
            line = line_of(raw.trace_id, timestamp, document(raw), why)
        except RecursionError:
            why = "it is nested too deeply to be stored"
            empty: dict[str, Any] = {"trace": None, "observations": []}
            line = line_of(raw.trace_id, timestamp, empty, why)
        spool.put(
            raw.trace_id,
            _without_keys(line, self._origin.credentials),
            Known(timestamp, fingerprint, why),
        )

    def _is_left(self, raw: RawTrace, known: Known | None) -> bool:
        """Whether an incomplete trace is not stored, for now."""
        if known is None:
            return self._leave_arriving
        # What was whole once is worth more than nothing at all.
        return known.why is None and raw.trace is None and not raw.observations

    def _time(self, raw: RawTrace, listed: Listed | None) -> datetime:
        """Its time, which is one of this day: what moved to another is listed there."""
        start, end = self._window
        for time in (raw.timestamp, None if listed is None else listed.timestamp):
            if time is not None and start <= time < end:
                return time.astimezone(UTC)
        return start

    def _flush(self, spool: Spool) -> None:
        """Put what was fetched into the store."""
        if not len(spool):
            return
        self._stored |= spool.known
        self._merge(self._result.day, spool, self._before.asked, settled=False)
        # The time of a trace whose root came late moves, and with it perhaps its day.
        for day in (self._result.day - timedelta(days=1), self._result.day + timedelta(days=1)):
            self._take_from(day, set(spool.known))

    def _merge(
        self, day: date, spool: Spool, asked: str, *, settled: bool, drop: Iterable[str] = ()
    ) -> None:
        def after(traces: Mapping[str, Known]) -> Manifest:
            return Manifest(traces, self._origin.root, asked, settled)

        self._before = merge(
            self._store, self._origin.source, day, spool, self._before, after, drop
        )

    def _take_from(self, day: date, trace_ids: set[str]) -> None:
        """Remove traces from a day beside this one."""
        source = self._origin.source
        other = read_manifest(self._store, source, day)
        moved = trace_ids & set(other.traces) if other is not None else set()
        if other is None or not moved:
            return
        kept = other

        def after(traces: Mapping[str, Known]) -> Manifest:
            return Manifest(traces, kept.root, kept.asked, kept.settled)

        with Spool() as nothing:
            merge(self._store, source, day, nothing, other, after, moved)

    def _gone(self) -> set[str]:
        """What is in the store and not on the server."""
        return set() if self._listed is None else set(self._first) - set(self._listed)

    def _finish(self, *, whole: bool, drop: set[str]) -> None:
        """Count, and say in the manifest what the day has come to."""
        result = self._result
        kept = [known for key, known in self._before.traces.items() if key not in drop]
        result.incomplete = sum(known.why is not None for known in kept)
        result.new = len(self._stored.keys() - self._first)
        again = [key for key in self._stored if key in self._first]
        result.changed = sum(self._stored[key] != self._first[key] for key in again)
        result.unchanged += len(again) - result.changed
        if whole:
            with Spool() as nothing:
                self._merge(
                    result.day, nothing, self._origin.asked, settled=self._is_settled(), drop=drop
                )

    def _is_settled(self) -> bool:
        over_since = self._now - self._window.end
        unsure = self._result.incomplete + self._result.left
        return over_since >= (GIVES_UP if unsure else SETTLES)


def _without_keys(line: bytes, credentials: Credentials) -> bytes:
    """Hide the keys in a trace: Langfuse's SDK writes them into metadata of what it sends."""
    for key in (credentials.secret_key, credentials.public_key):
        if len(key) >= _SHORTEST_HIDDEN:
            line = line.replace(key.encode(), HIDDEN.encode())
    return line
