"""How the graph is partitioned, and which ranges of partitions a run covers.

Belongs here: partition definitions and keys, and packing keys into the fewest ranges. Does not
belong here: what lies in a partition.

The date lives where new data arrives; evaluations are the matrix people read, contract × model
(Dagster allows two dimensions and advises at most 100,000 partitions).
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import dagster as dg

from benchmark_assets.model.identity import partition_key, unpartition_key

models = dg.DynamicPartitionsDefinition(name="model")
contracts = dg.DynamicPartitionsDefinition(name="contract")
cells = dg.MultiPartitionsDefinition({"contract": contracts, "model": models})


AHEAD_DAYS = 366
"""How far ahead of the clock a trace's day may be: clocks are wrong by hours, or by a whole
year; anything beyond is no date, and would make partitions without end."""


class Span(NamedTuple):
    """The days that are partitions, both included."""

    first: date
    last: date


def span(first: date, days: Iterable[str]) -> Span:
    """From the first day to today, or to the last day that there is data of, if that is later."""
    now = date.fromisoformat(today())
    limit = now + timedelta(days=AHEAD_DAYS)
    known = [day for day in map(date.fromisoformat, days) if day <= limit]
    return Span(first, max([now, *known]))


def dates(days: Span) -> dg.DailyPartitionsDefinition:
    """UTC days; a trace of today has its partition already."""
    ahead = (days.last - date.fromisoformat(today())).days
    return dg.DailyPartitionsDefinition(
        start_date=days.first.isoformat(), end_offset=1 + max(ahead, 0)
    )


def snapshots(days: Span) -> dg.MultiPartitionsDefinition:
    """Dates × models."""
    return dg.MultiPartitionsDefinition({"date": dates(days), "model": models})


def key_of(first: str, second: str) -> str:
    """A two-dimensional key as Dagster spells it: dimensions in alphabetical order."""
    return f"{partition_key(first)}|{partition_key(second)}"


def parts_of(key: str) -> tuple[str, str]:
    """Undo `key_of`."""
    first, second = key.split("|")
    return unpartition_key(first), unpartition_key(second)


class KeyRange(NamedTuple):
    """A rectangle of partitions from one corner to the other, inclusive; `size` is how many."""

    start: str
    end: str
    size: int

    def tags(self) -> dict[str, str]:
        """The run tags that make a run cover it."""
        return {
            "dagster/asset_partition_range_start": self.start,
            "dagster/asset_partition_range_end": self.end,
        }


def ranges(wanted: Iterable[str], order: Sequence[str]) -> list[KeyRange]:
    """Pack keys of one dimension into the fewest ranges of `order`, the order Dagster has."""
    position = {key: index for index, key in enumerate(order)}
    return [
        KeyRange(order[first], order[last], last - first + 1)
        for first, last in _intervals(position[key] for key in wanted)
    ]


def rectangles(
    wanted: Collection[tuple[str, str]], first: Sequence[str], second: Sequence[str]
) -> list[KeyRange]:
    """Pack keys of two dimensions into few rectangles that cover them and nothing else.

    A run covers a rectangle of partitions that are neighbours in Dagster's order. Rows that
    need the same intervals are joined; then the same the other way round, and the better of
    the two is taken.

    Args:
        wanted: Pairs of keys as Dagster spells them.
        first: All keys of the first dimension in Dagster's order.
        second: All keys of the second dimension in Dagster's order.
    """
    row = {key: index for index, key in enumerate(first)}
    column = {key: index for index, key in enumerate(second)}
    by_row = _boxes([(row[a], column[b]) for a, b in wanted])
    by_column = [
        (top, bottom, left, right)
        for left, right, top, bottom in _boxes([(column[b], row[a]) for a, b in wanted])
    ]
    best = by_row if len(by_row) <= len(by_column) else by_column
    return [
        KeyRange(
            f"{first[top]}|{second[left]}",
            f"{first[bottom]}|{second[right]}",
            (bottom - top + 1) * (right - left + 1),
        )
        for top, bottom, left, right in sorted(best)
    ]


def _intervals(indices: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for index in sorted(set(indices)):
        if found and index == found[-1][1] + 1:
            found[-1] = (found[-1][0], index)
        else:
            found.append((index, index))
    return found


def _boxes(points: Iterable[tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Rows' intervals, joined over neighbouring rows: (first row, last row, left, right)."""
    by_row: dict[int, list[int]] = defaultdict(list)
    for a, b in points:
        by_row[a].append(b)
    open_boxes: dict[tuple[int, int], int] = {}
    boxes: list[tuple[int, int, int, int]] = []
    previous = None
    for index in sorted(by_row):
        intervals = set(_intervals(by_row[index]))
        adjacent = previous is not None and index == previous + 1
        for interval, top in list(open_boxes.items()):
            if previous is not None and (not adjacent or interval not in intervals):
                boxes.append((top, previous, *interval))
                del open_boxes[interval]
        for interval in intervals:
            open_boxes.setdefault(interval, index)
        previous = index
    if previous is not None:
        boxes += [(top, previous, *interval) for interval, top in open_boxes.items()]
    return boxes


def today() -> str:
    """The last day that has a partition: today in UTC."""
    return datetime.now(UTC).date().isoformat()
