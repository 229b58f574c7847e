"""Traces out of Langfuse's scheduled export to blob storage, as a server would give them.

Belongs here: putting an export's rows together to traces, within bounded memory. Does not belong
here: the files and their formats (`export_files`), what a row means (`formats/langfuse_rows`).

An export has rows by their time, and a trace's rows lie in as many files as its time touches. A
day is laid out once: its rows are strewn over temporary files by their trace's id, each of those
is put together in memory, and what is whole goes to a temporary file of its hour. A trace that
may reach out of the files that were read (no root, a root that did not end, missing parents, an
end beyond them) is looked for a day to either side. Memory holds one part of the strewn rows and
a line a trace; the disk holds the day.

Rows get the API's spelling and its way of writing times, and an empty text, the export's null,
is None: the same traces come from an export as from the server, with the same fingerprints.
*A trace is whole* when its root has ended before the last complete run did: the exporter waits
twenty minutes, for longer than rows take to arrive.
"""

from __future__ import annotations

import io
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Self
from zlib import crc32

import msgspec
import pyarrow as pa

from benchmark_assets.adapters.formats.base import id_or_none, parse_time
from benchmark_assets.adapters.formats.langfuse_values import as_tree, unwrap
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.langfuse.export_files import TRACES, Export, ExportFile, Run
from benchmark_assets.adapters.langfuse.readers import (
    Api,
    Arrival,
    Filters,
    Listed,
    RawTrace,
    Window,
)
from benchmark_assets.adapters.langfuse.rows import Row, Rows, age, fingerprint, is_root
from benchmark_assets.adapters.trace_source import as_words
from benchmark_assets.model.problem import Problem

NEAR = timedelta(hours=1)
"""How far around a window rows are read of all traces."""

FAR = timedelta(days=1)
"""How far around a window rows are looked for of traces that may reach out of what was read."""

_DAY = timedelta(days=1)
_HOUR = timedelta(hours=1)
_PART_BYTES = 64 * 2**20
_MOST_PARTS = 128
_TIMES = ("startTime", "endTime", "completionStartTime", "createdAt", "updatedAt", "timestamp")
_EXPORT_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}")
_NO_FILTERS = Filters()
_ALWAYS = Window(datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC))
_IS_TRACE, _IS_ROW = b"t", b"o"


class _Ids(msgspec.Struct):
    """What tells which trace a row belongs to: its own id, if it is a trace."""

    id: str | int | None = None
    trace_id: str | int | None = None


_IDS = msgspec.json.Decoder(_Ids)
_RAW = msgspec.json.Decoder(RawTrace)


@dataclass
class ExportCounts:
    """What was read of an export so far.

    Attributes:
        files: Files read, each as often as it was.
        rows: Rows in them.
        problems: Rows that could not be read, and why.
    """

    files: int = 0
    rows: int = 0
    problems: list[Problem] = field(default_factory=list)


class ExportReader:
    """Reads an export as `Reader` promises. Close it: it keeps a day on disk.

    A window longer than a day is read day by day. Traces come newest first by the hour.

    Args:
        export: The export.
        arrival: How long a trace without an end is waited for (`silence_s`).
        folder: Where temporary files go; default: where the system puts them.

    Attributes:
        counts: What was read so far.
    """

    api: Api = "v2"

    def __init__(
        self, export: Export, *, arrival: Arrival | None = None, folder: Path | None = None
    ) -> None:
        self.counts = ExportCounts()
        self._export = export
        self._arrival = arrival or Arrival()
        self._folder = folder
        self._laid_out: _Layout | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove what is kept on disk."""
        if self._laid_out is not None:
            self._laid_out.folder.cleanup()
        self._laid_out = None

    # What the protocol promises.

    def list(self, window: Window, filters: Filters = _NO_FILTERS) -> Iterator[Listed]:
        """See `Reader.list`. Whatever is asked for is looked for in the rows."""
        for day in _days(window):
            layout = self._layout(day, filters)
            inside = [item for item in layout.listed if day.start <= item.timestamp < day.end]
            yield from sorted(
                inside, key=lambda item: (item.timestamp, item.trace_id), reverse=True
            )

    def fetch(self, trace_id: str) -> RawTrace | None:
        """See `Reader.fetch`. Reads the whole export."""
        return next(self.fetch_many([trace_id]), None)

    def fetch_many(self, trace_ids: Sequence[str]) -> Iterator[RawTrace]:
        """See `Reader.fetch_many`. Reads the whole export once."""
        wanted = set(trace_ids)
        found: dict[str, list[bytes]] = {}
        for file in _files(self._export.runs(_ALWAYS)):
            for trace_id, line in self._lines(file):
                if trace_id in wanted:
                    found.setdefault(trace_id, []).append(line)
        until = self._export.covered_until()
        for trace_id, lines in found.items():
            yield self._whole(_put_together(trace_id, lines), until, ())

    def fetch_window(
        self,
        window: Window,
        wanted: Mapping[str, Listed] | None = None,
        filters: Filters = _NO_FILTERS,
    ) -> Iterator[RawTrace]:
        """See `Reader.fetch_window`."""
        for day in _days(window):
            for raw in self._layout(day, filters).traces(day):
                if wanted is None or raw.trace_id in wanted:
                    yield raw

    # Laying out a day.

    def _layout(self, day: Window, filters: Filters) -> _Layout:
        runs = tuple(self._export.runs(_around(day, FAR)))
        known = self._laid_out
        if known is not None and known.is_for(day, filters, runs):
            return known
        self.close()
        folder = tempfile.TemporaryDirectory(prefix="langfuse-export-", dir=self._folder)
        layout = _Layout(day, filters, runs, folder)
        try:
            self._lay_out(layout)
        except BaseException:
            folder.cleanup()
            raise
        self._laid_out = layout
        return layout

    def _lay_out(self, layout: _Layout) -> None:
        window, path = layout.window, Path(layout.folder.name)
        reach = _around(window, NEAR)
        near = [run for run in layout.runs if _overlap(run, reach)]
        far = [file for file in _files(layout.runs) if file not in set(_files(near))]
        covered = Window(
            min((run.window.start for run in near), default=reach.start),
            max((run.window.end for run in near), default=reach.end),
        )
        until = self._export.covered_until()
        parts = _how_many_parts(_files(near))
        with layout.writing() as keep:
            unclear: set[str] = set()
            first, second = _Strewn(path / "first", parts), _Strewn(path / "second", parts)
            with first.writing() as strew:
                for file in _files(near):
                    for trace_id, line in self._lines(file):
                        strew(trace_id, line)
            with second.writing() as strew_again:
                for trace_id, lines in first.traces():
                    raw = _put_together(trace_id, lines)
                    if not _is_near(raw, window):
                        continue
                    if far and _reaches_out(raw, covered):
                        unclear.add(trace_id)
                        for line in lines:
                            strew_again(trace_id, line)
                    else:
                        keep(self._whole(raw, until, layout.filters.environments))
                for file in far if unclear else ():
                    for trace_id, line in self._lines(file):
                        if trace_id in unclear:
                            strew_again(trace_id, line)
            for trace_id, lines in second.traces():
                raw = _put_together(trace_id, lines)
                keep(self._whole(raw, until, layout.filters.environments))

    def _lines(self, file: ExportFile) -> Iterator[tuple[str, bytes]]:
        """The rows of a file that can be read: the trace's id, and the row with what it is."""
        self.counts.files += 1
        mark = _IS_TRACE if file.table == TRACES else _IS_ROW
        for number, row in enumerate(self._export.rows(file), 1):
            self.counts.rows += 1
            found = row if isinstance(row, Problem) else _trace_id(row, mark)
            if isinstance(found, str) and isinstance(row, bytes):
                yield found, mark + row
            elif isinstance(found, Problem):
                where = msgspec.structs.replace(found, file=file.path, line=found.line or number)
                self.counts.problems.append(where)

    def _whole(
        self, raw: RawTrace, until: datetime | None, environments: tuple[str, ...]
    ) -> RawTrace:
        """The trace with its fingerprint, and marked if it is not whole."""
        rows = Rows(raw.observations)
        raw.fingerprint = rows.fingerprint(environments)
        if raw.trace is not None:
            raw.fingerprint = fingerprint([raw.fingerprint, str(raw.trace.get("updatedAt"))])
        raw.why = _why_not_whole(rows, until, self._arrival)
        raw.complete = raw.why is None
        return raw


def _why_not_whole(rows: Rows, until: datetime | None, arrival: Arrival) -> str | None:
    last = rows.last_activity
    if last is None or until is None or (rows.ended and last <= until):
        return None
    if until - last >= timedelta(seconds=arrival.silence_s):
        return None
    what = "it ended after" if rows.ended else "its root is missing or had not ended before"
    return f"{what} the last complete run of the export did ({until:%Y-%m-%d %H:%M:%S} UTC)"


# One day on disk.


class _Layout:
    """The traces of a window in files of an hour each.

    Attributes:
        window, filters, runs: What it was made for.
        folder: Where it lies.
        listed: A line a trace.
    """

    def __init__(
        self,
        window: Window,
        filters: Filters,
        runs: tuple[Run, ...],
        folder: tempfile.TemporaryDirectory[str],
    ) -> None:
        self.window = window
        self.filters = filters
        self.runs = runs
        self.folder = folder
        self.listed: list[Listed] = []

    def is_for(self, window: Window, filters: Filters, runs: tuple[Run, ...]) -> bool:
        inside = self.window.start <= window.start and window.end <= self.window.end
        same = set(runs) <= set(self.runs) if window != self.window else runs == self.runs
        return inside and same and filters == self.filters

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """What takes in traces: those of the window that are asked for are kept."""
        with ExitStack() as stack:
            hours: dict[datetime, Any] = {}

            def keep(raw: RawTrace) -> None:
                time = raw.timestamp
                if time is None or not self.window.start <= time < self.window.end:
                    return
                if not matches(raw, self.filters):
                    return
                hour = _hour(time)
                if hour not in hours:
                    hours[hour] = stack.enter_context(_writer(self._path(hour)))
                hours[hour].write(msgspec.json.encode(raw) + b"\n")
                self.listed.append(
                    Listed(
                        trace_id=raw.trace_id,
                        timestamp=time,
                        fingerprint=raw.fingerprint or "",
                        observations=len(raw.observations),
                    )
                )

            yield keep

    def traces(self, window: Window) -> Iterator[RawTrace]:
        """The traces of a window, latest hour first."""
        hours = sorted({_hour(item.timestamp) for item in self.listed}, reverse=True)
        for hour in hours:
            if hour + _HOUR <= window.start or hour >= window.end:
                continue
            for line in _reader(self._path(hour)):
                raw = _RAW.decode(line)
                if raw.timestamp is not None and window.start <= raw.timestamp < window.end:
                    yield raw

    def _path(self, hour: datetime) -> Path:
        return Path(self.folder.name) / f"{hour:%Y-%m-%dT%H}"


class _Strewn(NamedTuple):
    """Rows in a number of files, all of a trace in one."""

    path: Path
    parts: int

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """What takes in a row of a trace."""
        with ExitStack() as stack:
            files = [stack.enter_context(_writer(self._part(i))) for i in range(self.parts)]

            def strew(trace_id: str, line: bytes) -> None:
                part = crc32(trace_id.encode("utf-8", "replace")) % self.parts
                files[part].write(line + b"\n")

            yield strew

    def traces(self) -> Iterator[tuple[str, list[bytes]]]:
        """Each trace with its rows; a part at a time is in memory, and then gone from disk."""
        for index in range(self.parts):
            found: dict[str, list[bytes]] = {}
            for line in _reader(self._part(index)):
                trace_id = _trace_id(line[1:], line[:1])
                if isinstance(trace_id, str):
                    found.setdefault(trace_id, []).append(line.rstrip(b"\n"))
            self._part(index).unlink()
            while found:
                yield found.popitem()

    def _part(self, index: int) -> Path:
        return self.path.with_name(f"{self.path.name}-{index}")


def _writer(path: Path) -> Any:
    return pa.output_stream(str(path), compression="lz4")


def _reader(path: Path) -> Iterator[bytes]:
    with pa.input_stream(str(path), compression="lz4") as stream:
        yield from io.BufferedReader(stream, 2**20)


def _how_many_parts(files: Iterable[ExportFile]) -> int:
    size = sum(file.reading_size for file in files)
    return max(1, min(_MOST_PARTS, -(-size // _PART_BYTES)))


# Windows.


def _days(window: Window) -> Iterator[Window]:
    """A window's UTC days, the last first, as much of each as is in it."""
    end = window.end
    while end > window.start:
        day = (end - timedelta(microseconds=1)).replace(hour=0, minute=0, second=0, microsecond=0)
        start = max(window.start, day)
        yield Window(start, end)
        end = start


def _around(window: Window, by: timedelta) -> Window:
    return Window(window.start - by, window.end + by)


def _overlap(run: Run, window: Window) -> bool:
    return run.window.end >= window.start and run.window.start < window.end


def _files(runs: Iterable[Run]) -> list[ExportFile]:
    return list(dict.fromkeys(file for run in runs for file in run.files))


def _hour(time: datetime) -> datetime:
    return time.replace(minute=0, second=0, microsecond=0)


# Traces.


def _trace_id(row: bytes, mark: bytes) -> str | Problem:
    try:
        ids = _IDS.decode(row)
    except msgspec.MsgspecError as error:
        return Problem(f"is no row: {error}")
    found = id_or_none(ids.id if mark == _IS_TRACE else ids.trace_id)
    return found if found is not None else Problem("is a row of no trace")


def _put_together(trace_id: str, lines: Iterable[bytes]) -> RawTrace:
    rows = Rows()
    own: Row | None = None
    for line in lines:
        row = _as_of_the_api(msgspec.json.decode(line[1:]))
        if line[:1] == _IS_ROW:
            rows.add(row)
        elif own is None or age(row) > age(own):
            own = row
    timestamp = parse_time(own.get("timestamp")) if own is not None else None
    return RawTrace(
        trace_id=trace_id,
        timestamp=timestamp or rows.timestamp,
        trace=own,
        observations=rows.ordered(),
    )


def _as_of_the_api(row: Row) -> Row:
    """A row as the API writes it."""
    written: Row = {_camel(key): None if value == "" else value for key, value in row.items()}
    for key in _TIMES:
        if (value := written.get(key)) is not None:
            written[key] = _time(value)
    metadata = written.get("metadata")
    if isinstance(metadata, dict):
        written["metadata"] = {key: _reread(value) for key, value in metadata.items()}
    return written


@cache
def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part.capitalize() for part in others)


def _time(value: Any) -> Any:
    """A time as the API writes it: `2026-01-31 10:00:00.123000` → `2026-01-31T10:00:00.123Z`."""
    if isinstance(value, str) and _EXPORT_TIME.fullmatch(value):
        return f"{value[:10]}T{value[11:].removesuffix('000')}Z"
    time = parse_time(value)
    if time is None:
        return value
    exact = "microseconds" if time.microsecond % 1000 else "milliseconds"
    return time.isoformat(timespec=exact).replace("+00:00", "Z")


def _reread(value: Any) -> Any:
    """A value of metadata, which the database keeps as text, as the API gives it."""
    if not isinstance(value, str):
        return value
    try:
        return msgspec.json.decode(value)
    except msgspec.DecodeError:
        return value


def _is_near(raw: RawTrace, window: Window) -> bool:
    """Whether its time may lie in a window of which all rows were read."""
    times = [raw.timestamp, *(parse_time(row.get("startTime")) for row in raw.observations)]
    return any(time is not None and window.start <= time < window.end for time in times)


def _reaches_out(raw: RawTrace, covered: Window) -> bool:
    """Whether there may be rows of it outside of what was read."""
    rows = Rows(raw.observations)
    last = rows.last_activity
    return not rows.ended or rows.orphaned or (last is not None and last > covered.end)


# Conditions, which nobody but us applies.


def matches(raw: RawTrace, filters: Filters) -> bool:
    """Whether a trace is asked for.

    What stands on a trace may stand on any of its rows, except for its name, which is also its
    root's.
    """
    everything = [raw.trace or {}, *raw.observations]

    def has(key: str, values: tuple[str, ...]) -> bool:
        return not values or any(item.get(key) in values for item in everything)

    return (
        has("environment", filters.environments)
        and (not filters.names or not set(filters.names).isdisjoint(_names(raw)))
        and has("userId", filters.user_ids)
        and has("sessionId", filters.session_ids)
        and (not filters.tags or any(set(filters.tags) <= _tags(item) for item in everything))
        and all(_has_metadata(everything, key, values) for key, values in filters.metadata)
        and (
            filters.input_contains is None
            or any(filters.input_contains in as_words(item.get("input")) for item in everything)
        )
    )


def _names(raw: RawTrace) -> set[Any]:
    rows = raw.observations
    own = [(raw.trace or {}).get("name"), *(row.get("traceName") for row in rows)]
    return {*own, *(row.get("name") for row in rows if is_root(row))}


def _tags(item: Row) -> set[str]:
    return {tag for tag in as_list(unwrap(item.get("tags"))) if isinstance(tag, str)}


def _has_metadata(items: Iterable[Row], key: str, values: tuple[str, ...]) -> bool:
    for item in items:
        metadata = unwrap(item.get("metadata"))
        flat = as_dict(metadata).get(key)
        nested: Any = as_tree(metadata)
        for part in key.split("."):
            nested = nested.get(part) if isinstance(nested, dict) else None
        nested = nested.get("") if isinstance(nested, dict) and "" in nested else nested
        if any(found is not None and as_words(found) in values for found in (flat, nested)):
            return True
    return False
