"""What every answer about a row needs: the fields that it did not name, and what follows of them.

Belongs here: defaults and derived figures that both APIs show. Does not belong here: the shape of
an answer (`v1`, `v2`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .contents import PROJECT, Row, milliseconds

TRACE_DEFAULTS: Row = {
    "name": None,
    "input": None,
    "output": None,
    "sessionId": None,
    "release": None,
    "version": None,
    "userId": None,
    "metadata": {},
    "tags": [],
    "public": False,
    "environment": "default",
    "bookmarked": False,
    "externalId": None,
    "projectId": PROJECT,
}
ROW_DEFAULTS: Row = {
    "projectId": PROJECT,
    "parentObservationId": None,
    "type": "SPAN",
    "name": None,
    "endTime": None,
    "completionStartTime": None,
    "level": "DEFAULT",
    "statusMessage": None,
    "version": None,
    "environment": "default",
    "model": None,
    "modelParameters": None,
    "usageDetails": {},
    "costDetails": {},
    "promptId": None,
    "promptName": None,
    "promptVersion": None,
    "input": None,
    "output": None,
    "metadata": {},
}


SHARED_COLUMNS = (
    "id",
    "type",
    "name",
    "traceId",
    "environment",
    "level",
    "statusMessage",
    "version",
    "model",
    "promptName",
    "promptVersion",
    "parentObservationId",
)
"""Fields of a row that both APIs filter by, under the same names."""


def read(value: Any) -> Any:
    """A text that may be JSON, as what it stands for."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def full_trace(row: Row) -> Row:
    """A trace with all its own fields."""
    return {**TRACE_DEFAULTS, **row}


def full_row(row: Row) -> Row:
    """An observation with all its own fields, as they are shown.

    What a row has under `shown` goes before what the database has: a null where filters find a
    value.
    """
    held = {**ROW_DEFAULTS, **row}
    held.update(held.pop("shown", {}))
    return held


def is_untraced(row: Row) -> bool:
    """Whether a row says of no trace that it is its own: then only lists of all rows have it."""
    return row.get("shown", {}).get("traceId", row["traceId"]) is None


def seconds(row: Row, until: str) -> float | None:
    """From a row's start to another of its times."""
    end = row.get(until)
    return None if end is None else (milliseconds(end) - milliseconds(row["startTime"])) / 1000


def units(row: Row, part: str) -> int:
    """The deprecated counts: of all kinds of usage whose name has `input` or `output` in it."""
    details = row.get("usageDetails") or {}
    return sum(int(number(count)) for kind, count in details.items() if part in kind)


def cost(row: Row, kind: str) -> Any:
    """A row's cost in USD of a kind, or of all kinds, as it was written; null if unknown."""
    details = row.get("costDetails") or {}
    if kind in details:
        return details[kind]
    return sum(map(number, details.values())) if kind == "total" and details else None


def number(value: Any) -> float:
    """A count as a number, whatever it was written as; 0 if it is none."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return 0.0


def trace_latency(rows: Sequence[Row]) -> float | None:
    """From the first start to the last end of a trace's rows, in seconds."""
    ends = [milliseconds(row["endTime"]) for row in rows if row.get("endTime")]
    if not ends:
        return None
    return (max(ends) - min(milliseconds(row["startTime"]) for row in rows)) / 1000


def trace_cost(rows: Sequence[Row]) -> float:
    """What a trace's rows cost together in USD; 0 where nothing is known, as the server has it."""
    return sum(number(cost(row, "total")) for row in rows)
