"""What a test server's project holds: traces, their observations, scores.

Belongs here: keeping rows, in the order and with the times that readers find them by. Does not
belong here: what an answer looks like (`v1`, `v2`, `scores`), or what is wrong with it (`faults`).

Rows are kept as v1 shows them: camelCase, input and output as JSON values, metadata nested. A row
may be as lean as its id and times; whatever else an answer needs is filled in when it is given.
The same rows give the same answers: times that a row does not name are computed, not read off a
clock.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from zlib import crc32

Row = dict[str, Any]
Pair = tuple[Row, list[Row]]
"""A trace and its observations."""

INGESTED_AFTER_MS = 15_000
"""How long after it began a row is taken to have been written, unless it says so itself."""

PROJECT = "project-of-the-tests"


def milliseconds(time: str) -> int:
    """A time as text, in milliseconds since 1970; without an offset it is UTC."""
    parsed = datetime.fromisoformat(time)
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return round(parsed.timestamp() * 1000)


def iso(at: int) -> str:
    """Milliseconds since 1970 as the server writes times."""
    whole, part = divmod(at, 1000)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{part:03d}Z"


@dataclass(eq=False)
class StoredTrace:
    """A trace, its rows by id, and when it was."""

    row: Row
    observations: dict[str, Row] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return str(self.row["id"])


@dataclass(frozen=True, slots=True)
class StoredRow:
    """An observation's place in the order of the lists: newest first."""

    at: int
    id: str
    trace: StoredTrace

    @property
    def row(self) -> Row:
        """The row as it was last written."""
        return self.trace.observations[self.id]

    @property
    def order(self) -> tuple[int, int, str]:
        """What the lists are sorted by; no two rows of a project share it."""
        return (-self.at, -hashed(self.trace.id), self.id)


def hashed(trace_id: str) -> int:
    """What orders the rows of one millisecond; clients cannot know it, as with the real server."""
    return crc32(trace_id.encode())


class Contents:
    """The rows of a project, safe to read and to add to from several threads.

    Attributes:
        version: Changes with every addition.
    """

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self.lock = threading.RLock()
        self.traces: dict[str, StoredTrace] = {}
        self.scores: dict[tuple[str, str, str], Row] = {}
        self.version = 0
        self._traces: list[StoredTrace] = []
        self._rows: list[StoredRow] = []
        for trace, observations in pairs:
            self._put_all(trace, observations, insort=False)
        self._traces.sort(key=trace_order)
        self._rows.sort(key=row_order)

    def add(self, trace: Row | None, observations: Sequence[Row] = ()) -> None:
        """Write a trace, or more of one: rows of known ids are updated, others added.

        Without a trace the observations make one, as when spans arrive without their root.
        """
        with self.lock:
            self._put_all(trace, observations, insort=True)
            self.version += 1

    def remove(self, trace_id: str) -> None:
        """Take a trace and its observations away."""
        with self.lock:
            gone = self.traces.pop(trace_id)
            self._traces.remove(gone)
            self._rows = [row for row in self._rows if row.trace is not gone]
            self.version += 1

    def _put_all(self, trace: Row | None, observations: Sequence[Row], *, insort: bool) -> None:
        ids = dict.fromkeys(
            [*([trace["id"]] if trace else []), *(o["traceId"] for o in observations)]
        )
        for trace_id in ids:
            given = trace if trace and trace["id"] == trace_id else None
            mine = [o for o in observations if o["traceId"] == trace_id]
            stored = self._put_trace(trace_id, given, mine, insort=insort)
            for row in mine:
                self._put_row(stored, row, insort=insort)

    def _put_trace(
        self, trace_id: str, trace: Row | None, observations: Sequence[Row], *, insort: bool
    ) -> StoredTrace:
        stored = self.traces.get(trace_id)
        if stored is not None:
            if trace is not None:
                stored.row = written(stored.row, trace, stored.row["timestamp"])
                self._traces.sort(key=trace_order)  # its time may be another
            return stored
        row = trace or {"id": trace_id, "timestamp": min(o["startTime"] for o in observations)}
        stored = self.traces[trace_id] = StoredTrace(written(None, row, row["timestamp"]))
        place(self._traces, stored, trace_order, insort=insort)
        return stored

    def _put_row(self, trace: StoredTrace, row: Row, *, insort: bool) -> None:
        known = trace.observations.get(row["id"])
        if known is not None:
            self._rows.remove(StoredRow(milliseconds(known["startTime"]), row["id"], trace))
        trace.observations[row["id"]] = written(known, row, row["startTime"])
        placed = StoredRow(milliseconds(row["startTime"]), row["id"], trace)
        place(self._rows, placed, row_order, insort=insort or known is not None)

    def traces_by_time(self) -> list[StoredTrace]:
        """All traces, newest first. To be read with the lock held."""
        return self._traces

    def rows_by_time(self) -> list[StoredRow]:
        """All observations, newest first. To be read with the lock held."""
        return self._rows


def trace_order(trace: StoredTrace) -> tuple[int, str]:
    """What lists of traces are sorted by."""
    return (-milliseconds(trace.row["timestamp"]), trace.id)


def row_order(row: StoredRow) -> tuple[int, int, str]:
    """What lists of observations are sorted by."""
    return row.order


def place(into: list[Any], item: Any, order: Callable[[Any], Any], *, insort: bool) -> None:
    """Put an item where it belongs in a sorted list, or at the end of one yet to be sorted."""
    if insort:
        bisect.insort(into, item, key=order)
    else:
        into.append(item)


def written(known: Row | None, row: Row, began: str) -> Row:
    """A row with the times of its writing: later, each time that it is written again."""
    merged = {**(known or {}), **row}
    if known is None:
        first = iso(milliseconds(began) + INGESTED_AFTER_MS)
        merged.setdefault("createdAt", first)
        merged.setdefault("updatedAt", merged["createdAt"])
    elif "updatedAt" not in row:
        merged["updatedAt"] = iso(milliseconds(known["updatedAt"]) + 1000)
    return merged
