"""Reading servers that have `traces` and `observations`: pages by number, trace objects.

Belongs here: the requests of this API and putting rows to their traces. Does not belong here:
rows themselves (`rows`), how much to ask for at a time (`paging`), waiting (`arrivals`).

Pages by number shift while traces arrive. Here a page's number is 1 all the time: every page is
asked for up to the time of the last row of the page before, which comes again and is known by its
id. Only where more rows than a page holds have one time, numbers are counted up.

A list says how many observations a trace has, so that a trace put together from pages of rows is
known to be whole. One that is not (its rows reach far beyond the window) is fetched by itself.
That is also done where it takes fewer requests: few traces wanted of many.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import product
from typing import Any
from urllib.parse import quote

import msgspec

from benchmark_assets.adapters.formats.base import id_or_none, parse_time
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.langfuse.arrivals import Waiting
from benchmark_assets.adapters.langfuse.conditions import metadata_is
from benchmark_assets.adapters.langfuse.http import Client, LangfuseError
from benchmark_assets.adapters.langfuse.paging import Sizes, in_threads, iso
from benchmark_assets.adapters.langfuse.readers import (
    AFTER,
    BEFORE,
    Api,
    Arrival,
    Filters,
    Listed,
    RawTrace,
    Window,
)
from benchmark_assets.adapters.langfuse.rows import (
    Row,
    Rows,
    age,
    data_of,
    fingerprint,
    start_of,
    trace_id_of,
)
from benchmark_assets.adapters.langfuse.servers import OBSERVATIONS, TRACES

LARGEST_PAGE = 100

LIST = "core,observations,metrics"
"""Groups of fields that tell which trace, when, and whether anything changed."""

CONTENTS = "core,io"
"""Groups of fields of a trace itself; its rows come otherwise."""

_DERIVED = frozenset({"observations", "scores", "latency", "totalCost", "_deprecation"})
"""Fields of a trace that lists and single traces give differently, or that are not its own."""

_TICK = timedelta(milliseconds=1)
"""What the server's times are exact to."""

_ROWS_A_STRETCH = 3000
"""About how many rows one stretch of time should have."""

_MOST_SKIPPED = 5
"""Rows one after the other that the server may fail to give before it is the server's fault."""

_NO_FILTERS = Filters()

_LOST_ONE = frozenset({"too_large", "server", "connection", "refused"})
"""Kinds of errors that can be one trace's own fault; the other traces are read all the same."""


class V1Reader:
    """Reads a server with API v1.

    Args:
        client: Asks the server.
        arrival: When a trace counts as whole.
    """

    api: Api = "v1"

    def __init__(self, client: Client, *, arrival: Arrival | None = None) -> None:
        self._client = client
        self._arrival = arrival or Arrival()
        self._waiting = Waiting(client, self._arrival, self._again)
        self._traces = _Pages(client, TRACES, "fromTimestamp", "toTimestamp", "timestamp")
        self._rows = _Pages(client, OBSERVATIONS, "fromStartTime", "toStartTime", "startTime")

    # What the protocol promises.

    def list(self, window: Window, filters: Filters = _NO_FILTERS) -> Iterator[Listed]:
        """See `Reader.list`. Several values of one condition take a list each."""
        alternatives = _alternatives(filters)
        if len(alternatives) == 1:
            yield from self._listed(window, alternatives[0])
            return
        found = {
            item.trace_id: item for params in alternatives for item in self._listed(window, params)
        }
        yield from sorted(
            found.values(), key=lambda item: (item.timestamp, item.trace_id), reverse=True
        )

    def fetch(self, trace_id: str) -> RawTrace | None:
        """See `Reader.fetch`."""
        until = self._client.clock() + self._arrival.missing_s
        while True:
            raw = self._fetch(trace_id)
            if raw is not None:
                return next(self._waiting.settled([raw]))
            left = until - self._client.clock()
            if left <= 0:
                return None
            self._client.pause(min(self._arrival.poll_s, left))

    def fetch_many(self, trace_ids: Sequence[str]) -> Iterator[RawTrace]:
        """See `Reader.fetch_many`. This API gives one trace a request, some at one time."""
        yield from self._waiting.settled(self._again(trace_ids))

    def fetch_window(
        self,
        window: Window,
        wanted: Mapping[str, Listed] | None = None,
        filters: Filters = _NO_FILTERS,
    ) -> Iterator[RawTrace]:
        """See `Reader.fetch_window`. Lists the window if `wanted` is None."""
        if wanted is None:
            wanted = {item.trace_id: item for item in self.list(window, filters)}
        if not wanted:
            return
        times = [item.timestamp for item in wanted.values()]
        needed = Window(max(window.start, min(times)), min(window.end, max(times) + _TICK))
        environments = {"environment": filters.environments}
        if self._is_dense(needed, wanted, environments):
            traces = self._bulk(needed, wanted, environments)
        else:
            newest = sorted(wanted.values(), key=lambda item: item.timestamp, reverse=True)
            traces = self._singles(newest)
        yield from self._waiting.settled(traces)

    # Lists.

    def _listed(self, window: Window, params: Mapping[str, Any]) -> Iterator[Listed]:
        seen: set[str] = set()
        query = {**params, "fields": LIST, "orderBy": "timestamp.desc"}
        for page in self._traces.newest_first(window, query):
            for row in _newest(page):
                item = _listed(row, window)
                if item is not None and item.trace_id not in seen:
                    seen.add(item.trace_id)
                    yield item

    # Traces one by one.

    def _again(self, trace_ids: Sequence[str]) -> Iterator[RawTrace]:
        found = in_threads(self._one, iter(trace_ids), self._client.limits.in_flight)
        yield from (raw for raw in found if raw is not None)

    def _singles(self, wanted: Iterable[Listed]) -> Iterator[RawTrace]:
        known = {item.trace_id: item for item in wanted}
        for raw in self._again(list(known)):
            yield _with_list(raw, known[raw.trace_id])

    def _one(self, trace_id: str) -> RawTrace | None:
        """One trace; if it cannot be read, it says so, and the others are read all the same."""
        try:
            return self._fetch(trace_id)
        except LangfuseError as error:
            if error.kind not in _LOST_ONE:
                raise
            why = f"it could not be read: {error}"
        return RawTrace(trace_id=trace_id, complete=False, why=why)

    def _fetch(self, trace_id: str) -> RawTrace | None:
        path = f"{TRACES}/{quote(trace_id, safe='')}"
        try:
            trace = as_dict(self._client.get_json(path))
        except LangfuseError as error:
            if error.kind == "gone" and "not available" not in error.message:
                return None
            if error.kind not in ("too_large", "server"):
                raise
        else:
            rows = [row for row in as_list(trace.get("observations")) if isinstance(row, dict)]
            return _raw(trace_id, trace, Rows(rows))
        return self._in_parts(trace_id, path)

    def _in_parts(self, trace_id: str, path: str) -> RawTrace:
        """A trace that is too large to come in one answer."""
        trace = self._without_contents(path)
        rows = Rows()
        lost = 0
        for page in self._rows.by_number({"traceId": trace_id}):
            lost += page is None
            for row in page or ():
                rows.add(row)
        raw = _raw(trace_id, trace, rows)
        if lost:
            raw.complete = False
            raw.why = f"{lost} of its observations are too large for the server to give"
        return raw

    def _without_contents(self, path: str) -> dict[str, Any]:
        try:
            return as_dict(self._client.get_json(path, {"fields": CONTENTS}))
        except LangfuseError as error:
            if error.kind not in ("too_large", "server"):
                raise
        return as_dict(self._client.get_json(path, {"fields": "core"}))

    # Traces in bulk.

    def _is_dense(
        self, needed: Window, wanted: Mapping[str, Listed], params: Mapping[str, Any]
    ) -> bool:
        """Whether reading everything takes fewer requests than one for each wanted trace."""
        known = [item.observations for item in wanted.values()]
        rows = sum(count or 0 for count in known)
        if len(wanted) < 2 or _pages(rows) + _pages(len(wanted)) >= len(wanted):
            return False
        total = self._rows.total(Window(needed.start - BEFORE, needed.end + AFTER), params)
        return total is None or _pages(total) + _pages(len(wanted)) < len(wanted)

    def _bulk(
        self, needed: Window, wanted: Mapping[str, Listed], params: Mapping[str, Any]
    ) -> Iterator[RawTrace]:
        """Pages of traces, each with the rows that it needs; what is then missing, one by one."""
        reach = Window(needed.start - BEFORE, needed.end + AFTER)
        stream = _RowStream(self._rows.newest_first(reach, params), wanted)
        left = dict(wanted)
        query = {**params, "fields": CONTENTS, "orderBy": "timestamp.desc"}
        for page in self._traces.newest_first(needed, query):
            traces = {}
            for row in _newest(page):
                trace_id = id_or_none(row.get("id"))
                if trace_id is not None and left.pop(trace_id, None) is not None:
                    traces[trace_id] = row
            stream.read_for([wanted[trace_id] for trace_id in traces])
            yield from self._finished(traces, wanted, stream)
        # Listed before and not found again: moved in time, or the page was read too early.
        yield from self._singles(left.values())

    def _finished(
        self, traces: Mapping[str, Row], wanted: Mapping[str, Listed], stream: _RowStream
    ) -> Iterator[RawTrace]:
        torn: list[Listed] = []
        for trace_id, trace in traces.items():
            item = wanted[trace_id]
            rows = stream.take(trace_id)
            if item.observations is None or len(rows) < item.observations:
                torn.append(item)
            else:
                yield _with_list(_raw(trace_id, trace, rows), item)
        yield from self._singles(torn)


class _RowStream:
    """Rows of wanted traces, read as far as they are needed.

    What belongs to other traces is dropped as it comes.
    """

    def __init__(self, pages: Iterator[list[Row]], wanted: Mapping[str, Listed]) -> None:
        self._pages = pages
        self._wanted = wanted
        self._held: dict[str, Rows] = {}
        self._given: set[str] = set()
        self._reached: datetime | None = None

    def read_for(self, traces: Sequence[Listed]) -> None:
        """Read until all of some traces are whole, or nothing of them is to be expected."""
        down_to = min((item.timestamp for item in traces), default=None)
        while down_to is not None and not all(self._is_whole(item) for item in traces):
            if self._reached is not None and self._reached < down_to - BEFORE:
                return
            page = next(self._pages, None)
            if page is None:
                return
            self._hold(page)

    def take(self, trace_id: str) -> Rows:
        """The rows of a trace, which then are no longer held."""
        self._given.add(trace_id)
        return self._held.pop(trace_id, Rows())

    def _is_wanted(self, trace_id: str) -> bool:
        return trace_id in self._wanted and trace_id not in self._given

    def _is_whole(self, item: Listed) -> bool:
        count = item.observations
        return count is not None and len(self._held.get(item.trace_id, ())) >= count

    def _hold(self, page: list[Row]) -> None:
        for row in page:
            trace_id = trace_id_of(row)
            if trace_id is not None and self._is_wanted(trace_id):
                self._held.setdefault(trace_id, Rows()).add(row)
        times = [time for row in page if (time := start_of(row))]
        if times:
            self._reached = min(times)


@dataclass
class _Pages:
    """Pages of one of the API's lists.

    Attributes:
        client: Asks.
        path: Of the list.
        from_key, to_key: Parameters that bound its times.
        time_key: The rows' field that they bound.
    """

    client: Client
    path: str
    from_key: str
    to_key: str
    time_key: str
    sizes: Sizes = field(default_factory=lambda: Sizes(LARGEST_PAGE))
    _skipped: int = 0

    def total(self, window: Window, params: Mapping[str, Any]) -> int | None:
        """How many rows there are, as the server says; None if it does not."""
        query = {**params, **self._between(window.start, window.end), "page": 1, "limit": 1}
        try:
            return _total(self.client.get_json(self.path, query), "totalItems")
        except LangfuseError as error:
            if error.kind != "too_large":
                raise
        return None

    def newest_first(self, window: Window, params: Mapping[str, Any]) -> Iterator[list[Row]]:
        """The rows of a window, latest first; some come twice."""
        end = window.end
        while end > window.start:
            start = end - self.sizes.next_span(end - window.start)
            bounds = [start, end]
            yield from self._stretch(bounds, params)
            end = bounds[0]

    def _stretch(self, bounds: list[datetime], params: Mapping[str, Any]) -> Iterator[list[Row]]:
        """The same for one stretch; `bounds[0]` is raised if it is too much for the server."""
        upper, offset = bounds[1], 0
        while True:
            limit = _divisor(self.sizes.limit, offset)
            answer = self._answer(params, bounds, upper, offset // limit + 1, limit)
            if answer is None:
                # Too much however little: what is there is left out, if it is but one row.
                offset += limit == 1 and not self.sizes.can_shrink(upper - bounds[0])
                continue
            rows = data_of(answer)
            yield rows
            limit = min(limit, _total(answer, "limit") or limit)
            narrowed = self._narrowed(bounds, upper, answer)
            if not narrowed and _is_last(answer, rows, offset // limit + 1, limit):
                return
            times = [time for row in rows if (time := parse_time(row.get(self.time_key)))]
            descending = times == sorted(times, reverse=True) and len(times) == len(rows)
            if descending and bounds[0] < times[-1] + _TICK < upper:
                upper, offset = times[-1] + _TICK, 0
            else:
                offset += limit

    @staticmethod
    def _narrowed(bounds: list[datetime], upper: datetime, answer: Any) -> bool:
        """Raise the lower bound where the server would look at very many rows for every page.

        It counts and sorts all that is between the bounds, for every page anew.
        """
        total = _total(answer, "totalItems") or 0
        if total <= 2 * _ROWS_A_STRETCH:
            return False
        bounds[0] = max(bounds[0], upper - (upper - bounds[0]) * _ROWS_A_STRETCH / total)
        return True

    def _answer(
        self,
        params: Mapping[str, Any],
        bounds: list[datetime],
        upper: datetime,
        number: int,
        limit: int,
    ) -> Any:
        """One page; None if it was too much, after which less is asked for."""
        between = self._between(bounds[0], upper)
        query = {**params, **between, "page": number, "limit": limit}
        try:
            size, answer = self.client.get_sized(self.path, query)
        except LangfuseError as error:
            covered = upper - bounds[0]
            self._skipped += not self.sizes.can_shrink(covered)
            if error.kind != "too_large" or self._skipped > _MOST_SKIPPED:
                raise
        else:
            self._skipped = 0
            self.sizes.good(size)
            return answer
        if self.sizes.can_shrink(covered):
            self.sizes.shrink(covered)
            if self.sizes.span is not None:
                bounds[0] = max(bounds[0], upper - self.sizes.span)
        return None

    def by_number(self, params: Mapping[str, Any]) -> Iterator[list[Row] | None]:
        """All rows of a query, whatever their times; None for a row that is too large to come.

        For one trace: what arrives meanwhile is found when it is read again.
        """
        limit, offset = LARGEST_PAGE, 0
        while True:
            limit = _divisor(limit, offset)
            query = {**params, "page": offset // limit + 1, "limit": limit}
            try:
                answer = self.client.get_json(self.path, query)
            except LangfuseError as error:
                if error.kind not in ("too_large", "server"):
                    raise
                answer = None
            if answer is None and limit > 1:
                limit = max(1, limit // 4)
                continue
            offset += limit
            rows = None if answer is None else data_of(answer)
            yield rows
            total = None if answer is None else _total(answer, "totalItems")
            if rows is not None and (not rows if total is None else offset >= total):
                return

    def _between(self, start: datetime, end: datetime) -> dict[str, str]:
        return {self.from_key: iso(start), self.to_key: iso(end)}


def _divisor(limit: int, offset: int) -> int:
    """The largest page size up to `limit` with which a page begins at `offset`."""
    while offset % limit:
        limit -= 1
    return limit


def _is_last(answer: Any, rows: list[Row], number: int, limit: int) -> bool:
    pages = _total(answer, "totalPages")
    if not rows:
        return True
    return len(rows) < limit if pages is None else number >= pages


def _total(answer: Any, key: str) -> int | None:
    value = as_dict(as_dict(answer).get("meta")).get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _pages(count: int) -> int:
    return -(-count // LARGEST_PAGE)


def _newest(page: Iterable[Row]) -> list[Row]:
    """A page's traces, one an id."""
    latest: dict[str, Row] = {}
    for row in page:
        trace_id = id_or_none(row.get("id"))
        if trace_id is None:
            continue
        known = latest.get(trace_id)
        if known is None or age(row) > age(known):
            latest[trace_id] = row
    return list(latest.values())


def _listed(row: Row, window: Window) -> Listed | None:
    trace_id = id_or_none(row.get("id"))
    if trace_id is None:
        return None
    timestamp = parse_time(row.get("timestamp"))
    if timestamp is not None and not window.start <= timestamp < window.end:
        return None
    ids = {str(item) for item in as_list(row.get("observations"))}
    changing = [f"{key}={row.get(key)}" for key in ("updatedAt", "latency", "totalCost")]
    return Listed(
        trace_id=trace_id,
        timestamp=timestamp or parse_time(row.get("createdAt")) or window.start,
        fingerprint=fingerprint([*ids, *changing]),
        observations=len(ids) if isinstance(row.get("observations"), list) else None,
    )


def _raw(trace_id: str, trace: Mapping[str, Any], rows: Rows) -> RawTrace:
    own = {key: value for key, value in trace.items() if key not in _DERIVED}
    return RawTrace(
        trace_id=trace_id,
        timestamp=parse_time(own.get("timestamp")) or rows.timestamp,
        trace=own,
        observations=rows.ordered(),
    )


def _with_list(raw: RawTrace, item: Listed) -> RawTrace:
    """A trace with what the list said of it, and what that says about it."""
    if raw.complete and len(raw.observations) < (item.observations or 0):
        raw.complete = False
        raw.why = (
            f"the list counts {item.observations} observations and the server gave "
            f"{len(raw.observations)}"
        )
    return msgspec.structs.replace(
        raw, fingerprint=item.fingerprint, timestamp=raw.timestamp or item.timestamp
    )


# Conditions.


def _alternatives(filters: Filters) -> list[dict[str, Any]]:
    """Parameters of the lists that together hold what was asked for."""
    fixed: dict[str, Any] = {"environment": filters.environments, "tags": filters.tags}
    choices: list[list[tuple[str, str]]] = [
        [(key, value) for value in values]
        for key, values in (
            ("name", filters.names),
            ("userId", filters.user_ids),
            ("sessionId", filters.session_ids),
            *((f"metadata.{key}", values) for key, values in filters.metadata),
        )
        if values
    ]
    return [_params(fixed, choice) for choice in product(*choices)]


def _params(fixed: Mapping[str, Any], choice: Sequence[tuple[str, str]]) -> dict[str, Any]:
    params = dict(fixed)
    conditions = []
    for key, value in choice:
        if key.startswith("metadata."):
            conditions.append(metadata_is(key.removeprefix("metadata."), value))
        else:
            params[key] = value
    if conditions:
        params["filter"] = msgspec.json.encode(conditions).decode()
    return params
