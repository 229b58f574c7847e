"""Reading servers that have `v2/observations`: rows by cursor, no trace objects.

Belongs here: the requests of this API and putting rows together to traces. Does not belong here:
rows themselves (`rows`), how much to ask for at a time (`paging`), waiting (`arrivals`).

Rows come by start, latest first, up to 1,000 a page, and a cursor says where the next page
begins: what arrives meanwhile shifts nothing. There is no list of traces, so a list reads all
rows of the window without their contents.

*Which traces are a window's* is known from its rows, if a trace has its root among them. A trace
is looked up by its id, many in one request, where its rows do not tell: no root among them
(perhaps before the window, perhaps none), still at work at the window's end, parents missing, or
rows turning up long before its root.

Filters of this API match rows, and name, user and metadata often stand on a trace's root only:
rows that match name the traces, which are then read whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from benchmark_assets.adapters.formats.base import text_or_none
from benchmark_assets.adapters.formats.messages import as_dict
from benchmark_assets.adapters.langfuse.arrivals import Waiting
from benchmark_assets.adapters.langfuse.conditions import Conditions, all_tags, any_of, metadata_is
from benchmark_assets.adapters.langfuse.http import Client, LangfuseError
from benchmark_assets.adapters.langfuse.paging import Sizes, iso
from benchmark_assets.adapters.langfuse.readers import (
    AFTER,
    BEFORE,
    FURTHER_BEFORE,
    Api,
    Arrival,
    Filters,
    Listed,
    RawTrace,
    Window,
)
from benchmark_assets.adapters.langfuse.rows import Row, Rows, data_of, start_of, trace_id_of
from benchmark_assets.adapters.langfuse.servers import OBSERVATIONS_V2

LEAN = "core,basic,time"
"""Groups of fields that tell which trace, when, and whether anything changed."""

FULL = "core,basic,time,io,metadata,model,usage,metrics,trace_context"
"""Groups of fields that a trace is normalised from."""

LARGEST_PAGE = 1000

_LONGEST_IDS = 6_000
"""Most characters of ids in one request's address: servers and proxies take some 8,000 of all."""

_FEWEST_OF_MANY = 250
"""Rows a page, from which on a query of many ids and all times is not tried with fewer."""

_GUESSED_ROWS = 20
"""Rows of a trace that nobody has counted."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)

_NO_FILTERS = Filters()

_PATIENCE = timedelta(hours=1)
"""For how long of the rows' time a trace's root is waited for before it is looked up by id."""


class _Trace(Rows):
    """The rows of one trace. `lossy` if the server could not give the contents of some."""

    lossy = False

    def add_all(self, page: _Page) -> None:
        """Take in rows of an answer."""
        self.lossy = self.lossy or page.lossy
        for row in page.rows:
            self.add(row)


class _Page(NamedTuple):
    """Rows of one answer. `lossy` if the server could not give their contents."""

    rows: list[Row]
    cursor: str | None
    lossy: bool = False


@dataclass
class _Bounds:
    """The time that a query covers, and how far down in it the rows were read."""

    start: datetime
    end: datetime
    reached: datetime

    @property
    def covered(self) -> timedelta:
        return self.reached - self.start

    def shorten(self, span: timedelta) -> None:
        """Cover less of what was not read yet; the rest is for the next query."""
        self.start = max(self.start, self.reached - span)


class V2Reader:
    """Reads a server with API v2.

    Args:
        client: Asks the server.
        arrival: When a trace counts as whole.
    """

    api: Api = "v2"

    def __init__(self, client: Client, *, arrival: Arrival | None = None) -> None:
        self._client = client
        self._waiting = Waiting(client, arrival or Arrival(), self._again)
        self._sizes = {LEAN: Sizes(LARGEST_PAGE), FULL: Sizes(LARGEST_PAGE)}
        self._takes_many_ids = True
        self._missing_s = (arrival or Arrival()).missing_s
        self._poll_s = (arrival or Arrival()).poll_s

    # What the protocol promises.

    def list(self, window: Window, filters: Filters = _NO_FILTERS) -> Iterator[Listed]:
        """See `Reader.list`. Reads the whole window before it yields; keeps a line a trace."""
        found: dict[str, Listed] = {}
        for trace_id, rows in self._traces(window, filters, LEAN):
            timestamp = rows.timestamp
            if timestamp is not None:
                found[trace_id] = Listed(
                    trace_id=trace_id,
                    timestamp=timestamp,
                    fingerprint=rows.fingerprint(filters.environments),
                    observations=len(rows),
                )
        yield from sorted(
            found.values(), key=lambda item: (item.timestamp, item.trace_id), reverse=True
        )

    def fetch(self, trace_id: str) -> RawTrace | None:
        """See `Reader.fetch`."""
        until = self._client.clock() + self._missing_s
        while True:
            raw = next(self._waiting.settled(self._again([trace_id])), None)
            left = until - self._client.clock()
            if raw is not None or left <= 0:
                return raw
            self._client.pause(min(self._poll_s, left))

    def fetch_many(self, trace_ids: Sequence[str]) -> Iterator[RawTrace]:
        """See `Reader.fetch_many`."""
        yield from self._waiting.settled(self._again(trace_ids))

    def fetch_window(
        self,
        window: Window,
        wanted: Mapping[str, Listed] | None = None,
        filters: Filters = _NO_FILTERS,
    ) -> Iterator[RawTrace]:
        """See `Reader.fetch_window`.

        If `wanted` is None, a trace of which a row turns up long before its root is given a
        second time, whole; the later one counts.
        """
        environments = filters.environments
        if wanted is None:
            traces = self._traces(window, filters, FULL)
        else:
            newest = sorted(wanted.values(), key=lambda item: item.timestamp, reverse=True)
            traces = self._by_ids(newest, FULL)
        yield from self._waiting.settled(
            self._raw(trace_id, rows, environments) for trace_id, rows in traces
        )

    # Traces of a window.

    def _traces(
        self, window: Window, filters: Filters, fields: str
    ) -> Iterator[tuple[str, _Trace]]:
        """The traces of a window with all their rows, about newest first.

        One may be given again, when more of it turned up; the later one counts.
        """
        if filters.narrow:
            unclear: Iterable[str] = self._matching(window, filters)
        else:
            stretch = _Stretch(window, partly=bool(filters.environments))
            reach = Window(window.start - BEFORE, window.end + AFTER)
            environments = {"environment": filters.environments}
            yield from stretch.traces(self._rows(environments, [], fields, reach))
            if stretch.began_early:
                earlier = Window(window.start - FURTHER_BEFORE, reach.start)
                for page in self._rows(environments, [], LEAN, earlier):
                    stretch.note(page.rows)
            unclear = stretch.unclear
        for trace_id, rows in self._by_ids([_unknown(trace_id) for trace_id in unclear], fields):
            if _is_in(rows, window) and rows.is_of(filters.environments):
                yield trace_id, rows

    def _matching(self, window: Window, filters: Filters) -> Sequence[str]:
        """Ids of traces of which rows match everything; perhaps traces of another window.

        One row need not match it all: a user may stand on the root, a key of metadata elsewhere.
        """
        found: dict[str, None] | None = None
        for alternatives in _groups(filters):
            ids = dict.fromkeys(self._with_a_row(window, filters.environments, alternatives))
            found = ids if found is None else {key: None for key in found if key in ids}
            if not found:
                break
        return list(found or ())

    def _with_a_row(
        self, window: Window, environments: tuple[str, ...], alternatives: Sequence[Conditions]
    ) -> Iterator[str]:
        # A row that matches may be one that came long after its trace began.
        reach = Window(window.start - BEFORE, window.end + _PATIENCE)
        for conditions in alternatives:
            for page in self._rows({"environment": environments}, conditions, "core", reach):
                for row in page.rows:
                    if trace_id := trace_id_of(row):
                        yield trace_id

    # Traces by id.

    def _again(self, trace_ids: Sequence[str]) -> Iterator[RawTrace]:
        for trace_id, rows in self._by_ids([_unknown(trace_id) for trace_id in trace_ids], FULL):
            yield self._raw(trace_id, rows, ())

    def _by_ids(self, wanted: Sequence[Listed], fields: str) -> Iterator[tuple[str, _Trace]]:
        """Traces with all their rows, as many in a request as a page holds."""
        begin = 0
        while begin < len(wanted):
            count = self._how_many(wanted[begin : begin + 500]) if self._takes_many_ids else 1
            batch = wanted[begin : begin + count]
            begin += count
            if count == 1:
                yield from self._single(batch[0].trace_id, fields)
                continue
            found = self._batch(batch, fields)
            for item in batch:
                trace = found.get(item.trace_id)
                if trace is not None and len(trace) >= (item.observations or 0):
                    yield item.trace_id, trace
                else:
                    yield from self._single(item.trace_id, fields)

    def _how_many(self, waiting: Sequence[Listed]) -> int:
        """How many traces come in one page, as far as is known, and fit into one address."""
        rows = characters = count = 0
        most = self._sizes[FULL].limit
        for item in waiting:
            rows += item.observations or _GUESSED_ROWS
            characters += len(quote(f'"{item.trace_id}",'))
            if count and (rows > most or characters > _LONGEST_IDS):
                break
            count += 1
        return count

    def _single(self, trace_id: str, fields: str) -> Iterator[tuple[str, _Trace]]:
        trace = _Trace()
        for page in self._rows({"traceId": trace_id}, [], fields, None):
            trace.add_all(page)
        if len(trace):
            yield trace_id, trace

    def _batch(self, batch: Sequence[Listed], fields: str) -> Mapping[str, _Trace]:
        """Some traces in one query, as far as the server understands and can answer it.

        Where the traces' times are known, the query is of that time: servers find rows by time.
        """
        known = all(item.fingerprint for item in batch)
        window = None
        if known:
            times = [item.timestamp for item in batch]
            window = Window(min(times) - BEFORE, max(times) + AFTER)
        found = {item.trace_id: _Trace() for item in batch}
        try:
            for page in self._rows({}, [any_of("traceId", list(found))], fields, window):
                for row in page.rows:
                    # A server that does not know the condition gives all there is.
                    found[trace_id_of(row) or ""].add_all(_Page([row], None, page.lossy))
        except KeyError:
            self._takes_many_ids = False
            return {}
        except LangfuseError as error:
            if error.kind not in ("refused", "too_large"):
                raise
            self._takes_many_ids = self._takes_many_ids and error.kind == "too_large"
            return {}
        # Of a trace that nobody has counted, no row is as good as all of them.
        return {key: trace for key, trace in found.items() if known or len(trace)}

    def _raw(self, trace_id: str, rows: _Trace, environments: tuple[str, ...]) -> RawTrace:
        return RawTrace(
            trace_id=trace_id,
            timestamp=rows.timestamp,
            observations=rows.ordered(),
            fingerprint=rows.fingerprint(environments),
            complete=not rows.lossy,
            why="the server could not give all inputs and outputs: they are too large for it"
            if rows.lossy
            else None,
        )

    # Rows.

    def _rows(
        self,
        params: Mapping[str, Any],
        conditions: Conditions,
        fields: str,
        window: Window | None,
    ) -> Iterator[_Page]:
        """Pages of rows, latest first; of a window, stretch by stretch, if one is too much."""
        query = {**params, "fields": fields}
        if conditions:
            query["filter"] = msgspec.json.encode(conditions).decode()
        if window is None:
            yield from self._pages(query, None)
            return
        end = window.end
        while end > window.start:
            span = self._sizes_of(fields).next_span(end - window.start)
            bounds = _Bounds(end - span, end, end)
            yield from self._pages(query, bounds)
            end = bounds.start

    def _pages(self, query: dict[str, Any], bounds: _Bounds | None) -> Iterator[_Page]:
        """The pages of one query. If it is too much, `bounds.start` says how far they got."""
        cursor: str | None = None
        while True:
            page = self._page(query, cursor, bounds)
            yield page
            if page.cursor is None or page.cursor == cursor:
                return
            cursor = page.cursor
            if bounds is not None and page.rows:
                bounds.reached = start_of(page.rows[-1]) or bounds.reached

    def _page(self, query: dict[str, Any], cursor: str | None, bounds: _Bounds | None) -> _Page:
        """One answer, for as much as the server can give."""
        sizes = self._sizes_of(query["fields"])
        while True:
            asked = {**query, **_between(bounds), "cursor": cursor, "limit": sizes.limit}
            try:
                size, answer = self._client.get_sized(OBSERVATIONS_V2, asked)
            except LangfuseError as error:
                if error.kind != "too_large":
                    raise
                covered = None if bounds is None else bounds.covered
                smaller = sizes.can_shrink(covered)
                if bounds is None and "filter" in query and sizes.limit <= _FEWEST_OF_MANY:
                    raise  # one by one is what is less
                if not smaller and query["fields"] != FULL:
                    raise
            else:
                sizes.good(size)
                return _Page(data_of(answer), _cursor(answer))
            if not smaller:
                return self._page_without_contents(asked)
            sizes.shrink(covered)
            if bounds is not None and sizes.span is not None:
                bounds.shorten(sizes.span)

    def _page_without_contents(self, asked: dict[str, Any]) -> _Page:
        """One row that is too large for the server, as far as it can give it."""
        answer = self._client.get_json(OBSERVATIONS_V2, {**asked, "fields": LEAN, "limit": 1})
        return _Page(data_of(answer), _cursor(answer), lossy=True)

    def _sizes_of(self, fields: str) -> Sizes:
        return self._sizes[FULL if fields == FULL else LEAN]


class _Stretch:
    """Puts the rows of a window together to traces, as they come: latest first.

    Args:
        window: Whose traces are wanted. Rows come from a little around it as well.
        partly: Whether rows were left out (those of other environments).

    Attributes:
        unclear: Traces that have to be looked up by id.
        began_early: Whether a trace began so early in the window that rows of it may lie before.
    """

    def __init__(self, window: Window, *, partly: bool) -> None:
        self.began_early = False
        self._window = window
        self._partly = partly
        self._open: dict[str, _Trace] = {}
        self._closed: set[str] = set()
        self.unclear: dict[str, None] = {}

    def traces(self, pages: Iterable[_Page]) -> Iterator[tuple[str, _Trace]]:
        """Yield the traces that are whole."""
        for page in pages:
            for row in page.rows:
                self._take(row, lossy=page.lossy)
            times = [time for row in page.rows[-1:] if (time := start_of(row))]
            for reached in times:
                yield from self._close(reached)
        yield from self._close(None)

    def note(self, rows: Iterable[Row]) -> None:
        """Look at rows from before the window: traces that are known have to be looked up."""
        for row in rows:
            trace_id = trace_id_of(row)
            if trace_id is not None and trace_id in self._closed:
                self.unclear[trace_id] = None

    def _take(self, row: Row, *, lossy: bool) -> None:
        trace_id = trace_id_of(row)
        if trace_id is None or trace_id in self.unclear:
            return
        if trace_id in self._closed:
            self.unclear[trace_id] = None
            return
        self._open.setdefault(trace_id, _Trace()).add_all(_Page([row], None, lossy))

    def _close(self, reached: datetime | None) -> Iterator[tuple[str, _Trace]]:
        """Yield the traces of which nothing more is expected; at the end, all."""
        done = [key for key, trace in self._open.items() if _is_done(trace, reached)]
        for trace_id in done:
            trace = self._open.pop(trace_id)
            if not trace.rooted:
                self.unclear[trace_id] = None
                continue
            self._closed.add(trace_id)
            if not _is_in(trace, self._window):
                continue
            edge = self._window.start + FURTHER_BEFORE
            self.began_early = self.began_early or _is_in(trace, Window(self._window.start, edge))
            if self._reaches_out(trace):
                self.unclear[trace_id] = None
            else:
                yield trace_id, trace

    def _reaches_out(self, trace: _Trace) -> bool:
        """Whether there may be rows of it that were not read."""
        last = trace.last_activity
        beyond = last is not None and last >= self._window.end + AFTER
        return beyond or not trace.ended or (self._partly and trace.orphaned)


def _is_in(trace: _Trace, window: Window) -> bool:
    timestamp = trace.timestamp
    return timestamp is not None and window.start <= timestamp < window.end


def _is_done(trace: _Trace, reached: datetime | None) -> bool:
    first = trace.timestamp
    if reached is None or first is None:
        return reached is None
    return reached < first - (BEFORE if trace.rooted else _PATIENCE)


def _between(bounds: _Bounds | None) -> dict[str, str]:
    if bounds is None:
        return {}
    return {"fromStartTime": iso(bounds.start), "toStartTime": iso(bounds.end)}


def _cursor(answer: Any) -> str | None:
    return text_or_none(as_dict(as_dict(answer).get("meta")).get("cursor"))


def _unknown(trace_id: str) -> Listed:
    """A trace of which nothing but the id is known."""
    return Listed(trace_id=trace_id, timestamp=_LONG_AGO, fingerprint="")


# Conditions.


def _groups(filters: Filters) -> list[list[Conditions]]:
    """What must hold, each as alternatives of which one must."""
    groups: list[list[Conditions]] = []
    if filters.names:
        # A trace's name is its root's unless it was given one of its own.
        root = {"type": "boolean", "column": "isRootObservation", "operator": "=", "value": True}
        groups.append([[any_of("traceName", filters.names)], [any_of("name", filters.names), root]])
    if filters.user_ids:
        groups.append([[any_of("userId", filters.user_ids)]])
    if filters.session_ids:
        groups.append([[any_of("sessionId", filters.session_ids)]])
    if filters.tags:
        groups.append([[all_tags(filters.tags)]])
    groups += [[[metadata_is(key, value)] for value in values] for key, values in filters.metadata]
    if filters.input_contains:
        match = {"type": "string", "column": "input", "operator": "matches"}
        groups.append([[{**match, "value": filters.input_contains}]])
    return groups
