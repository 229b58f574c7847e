"""What a request finds in the project: the rows that meet its conditions, in order.

Belongs here: searching, quickly enough for twenty thousand traces, and rows that have not arrived
for readers yet. Does not belong here: parameters and the shape of answers (`v1`, `v2`).
"""

from __future__ import annotations

import bisect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from .contents import PROJECT, Contents, Row, StoredRow, StoredTrace, milliseconds
from .faults import Troubles
from .filters import Columns, Condition, keep
from .rows import is_untraced

REMEMBERED = 32

T = TypeVar("T")


class Memory:
    """The last searches' results, so that the pages of one search search once.

    Attributes:
        searches: How many there were.
    """

    def __init__(self) -> None:
        self.searches = 0
        self._held: OrderedDict[Any, Any] = OrderedDict()

    def get(self, key: Any, find: Callable[[], Any]) -> Any:
        """What was found for a key, or finds it."""
        if key not in self._held:
            self._held[key] = find()
            self.searches += 1
            while len(self._held) > REMEMBERED:
                self._held.popitem(last=False)
        self._held.move_to_end(key)
        return self._held[key]


class View:
    """A project as one reader sees it. To be used with the contents' lock held.

    Args:
        contents: The project's rows.
        memory: Earlier searches.
        troubles: What has not come yet.
    """

    def __init__(self, contents: Contents, memory: Memory, troubles: Troubles) -> None:
        self.contents = contents
        self.troubles = troubles
        self._memory = memory

    def traces(self, found: Sequence[Condition], columns: Columns) -> Sequence[StoredTrace]:
        """The traces that meet all conditions, newest first."""
        meets = keep(found, columns)

        def search() -> list[StoredTrace]:
            every = self.contents.traces_by_time()
            low, high = bounds(every, found, "timestamp", trace_time)
            return [trace for trace in every[low:high] if meets(trace)]

        key = ("traces", self.contents.version, tuple(found))
        result: Sequence[StoredTrace] = self._memory.get(key, search)
        return self._come(result, trace_itself, key)

    def rows(self, found: Sequence[Condition], columns: Columns) -> Sequence[StoredRow]:
        """The observations that meet all conditions, newest first."""
        meets = keep(found, columns)

        def search() -> list[StoredRow]:
            of_trace = next((c.value for c in found if one_trace(c)), None)
            if of_trace is not None:
                return [row for row in self._rows_of_trace(of_trace) if meets(row)]
            every = self.contents.rows_by_time()
            low, high = bounds(every, found, "startTime", row_time)
            return [row for row in every[low:high] if meets(row)]

        if any(one_trace(condition) for condition in found):
            return self._come(search(), trace_of, None)
        key = ("rows", id(columns), self.contents.version, tuple(found))
        return self._come(self._memory.get(key, search), trace_of, key)

    def _come(
        self, things: Sequence[T], owner: Callable[[T], StoredTrace], key: Any
    ) -> Sequence[T]:
        """The things among some that have come.

        Which of them may be late is remembered under the key of their search: looking at all of
        them for each page would take longer than the page.
        """
        if not self.troubles.hides():
            return things

        def search() -> list[int]:
            may = self.troubles.may_be_late
            return [place for place, thing in enumerate(things) if may(owner(thing).id)]

        named = ("late", self.troubles, key)
        late = search() if key is None else self._memory.get(named, search)
        come: list[T] = []
        start = 0
        for place in late:
            thing = things[place]
            row_id = thing.id if isinstance(thing, StoredRow) else None
            if self._is_to_come(owner(thing), row_id):
                come += things[start:place]
                start = place + 1
        return [*come, *things[start:]] if start else things

    def _is_to_come(self, trace: StoredTrace, row_id: str | None) -> bool:
        """Whether a trace, or a row of one, has not come yet."""
        if self.troubles.is_unseen(trace.id) or row_id is None:
            return self.troubles.is_unseen(trace.id)
        settling = self.troubles.is_settling(trace.id) and len(trace.observations) > 1
        return settling and row_id == next(reversed(trace.observations))

    def _rows_of_trace(self, trace_id: str) -> list[StoredRow]:
        trace = self.contents.traces.get(trace_id)
        if trace is None:
            return []
        placed = [
            StoredRow(milliseconds(row["startTime"]), row["id"], trace)
            for row in trace.observations.values()
        ]
        return sorted(placed, key=lambda row: row.order)

    def trace(self, trace_id: str) -> StoredTrace | None:
        """A trace by its id."""
        return None if self.troubles.is_unseen(trace_id) else self.contents.traces.get(trace_id)

    def rows_of(self, trace: StoredTrace) -> list[Row]:
        """A trace's observations."""
        return [
            self._as_come(trace, row)
            for row in trace.observations.values()
            if not is_untraced(row) and not self._is_to_come(trace, row["id"])
        ]

    def shown(self, placed: StoredRow) -> Row:
        """An observation's row."""
        return self._as_come(placed.trace, placed.row)

    def _as_come(self, trace: StoredTrace, row: Row) -> Row:
        """A row as far as it has come: the roots of settling traces have not ended."""
        if row.get("parentObservationId") is None and self.troubles.is_settling(trace.id):
            return {**row, "endTime": None, "output": None}
        return row

    def note(self, trace_ids: Iterable[str]) -> None:
        """Rows of these traces have been read by a request."""
        self.troubles.note(set(trace_ids))

    def sessions(self, environments: tuple[str, ...]) -> list[Row]:
        """The sessions that traces name, newest first."""
        found: dict[str, Row] = {}
        for trace in reversed(self.contents.traces_by_time()):
            named, where = trace.row.get("sessionId"), trace.row.get("environment", "default")
            if named is not None and (not environments or where in environments):
                row = {"id": named, "createdAt": trace.row["timestamp"], "projectId": PROJECT}
                found.setdefault(named, {**row, "environment": where})
        return sorted(found.values(), key=lambda row: row["createdAt"], reverse=True)


def trace_itself(trace: StoredTrace) -> StoredTrace:
    """Whose a trace is."""
    return trace


def trace_of(row: StoredRow) -> StoredTrace:
    """Whose a row is."""
    return row.trace


def one_trace(condition: Condition) -> bool:
    """Whether a condition leaves the rows of one trace."""
    return (condition.type, condition.column, condition.operator) == ("string", "traceId", "=")


def trace_time(trace: StoredTrace) -> int:
    """When a trace began."""
    return milliseconds(trace.row["timestamp"])


def row_time(row: StoredRow) -> int:
    """When an observation began."""
    return row.at


def bounds(
    every: Sequence[Any], found: Sequence[Condition], column: str, time: Callable[[Any], int]
) -> tuple[int, int]:
    """Where in a list, newest first, the things of the time asked for are."""
    low, high = 0, len(every)
    for condition in found:
        if condition.type == "datetime" and condition.column == column:
            if condition.operator == "<":
                low = max(low, bisect.bisect_right(every, -condition.value, key=lambda x: -time(x)))
            elif condition.operator == ">=":
                high = min(
                    high, bisect.bisect_right(every, -condition.value, key=lambda x: -time(x))
                )
    return low, high
