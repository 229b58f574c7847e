"""The legacy reads: traces, observations and sessions, page by page.

Belongs here: their parameters, columns and answers. Does not belong here: who may ask, and on which
servers they exist (`server`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from .answers import Answer, Params, invalid, json_answer, not_found
from .contents import PROJECT, Row, StoredRow, StoredTrace, iso, milliseconds
from .filters import Columns, Condition, conditions
from .rows import (
    SHARED_COLUMNS,
    cost,
    full_row,
    full_trace,
    seconds,
    trace_cost,
    trace_latency,
    units,
)
from .scores import scores_of
from .view import View

MOST = 100
PAGE = 50
GROUPS = ("core", "io", "scores", "observations", "metrics")
ORDERED_BY = (
    "id",
    "timestamp",
    "name",
    "userId",
    "release",
    "version",
    "public",
    "bookmarked",
    "sessionId",
)


def _trace_field(name: str) -> Callable[[StoredTrace], Any]:
    return lambda trace: full_trace(trace.row)[name]


def _levels(level: str) -> Callable[[StoredTrace], int]:
    return lambda trace: sum(
        row.get("level", "DEFAULT") == level for row in trace.observations.values()
    )


TRACE_COLUMNS: Columns = {
    **{
        name: _trace_field(name)
        for name in (
            "id",
            "name",
            "userId",
            "sessionId",
            "environment",
            "version",
            "release",
            "tags",
            "bookmarked",
            "metadata",
        )
    },
    "timestamp": lambda trace: milliseconds(trace.row["timestamp"]),
    "latency": lambda trace: trace_latency(list(trace.observations.values())),
    "totalCost": lambda trace: trace_cost(list(trace.observations.values())),
    "errorCount": _levels("ERROR"),
    "warningCount": _levels("WARNING"),
    "defaultCount": _levels("DEFAULT"),
    "debugCount": _levels("DEBUG"),
}


def _row_field(name: str) -> Callable[[StoredRow], Any]:
    return lambda placed: full_row(placed.row)[name]


def place_of(placed: StoredRow) -> str:
    """A row's environment as the database has it, whatever it is shown as."""
    return str(placed.row.get("environment") or "default")


ROW_COLUMNS: Columns = {
    **{name: _row_field(name) for name in (*SHARED_COLUMNS, "metadata")},
    "environment": place_of,
    "startTime": lambda placed: placed.at,
    "endTime": lambda placed: placed.row.get("endTime") and milliseconds(placed.row["endTime"]),
    "latency": lambda placed: seconds(placed.row, "endTime"),
    "totalCost": lambda placed: cost(placed.row, "total"),
    "inputTokens": lambda placed: units(placed.row, "input"),
    "outputTokens": lambda placed: units(placed.row, "output"),
    "userId": lambda placed: full_trace(placed.trace.row)["userId"],
    "traceName": lambda placed: full_trace(placed.trace.row)["name"],
    "traceEnvironment": lambda placed: full_trace(placed.trace.row)["environment"],
    "traceTags": lambda placed: full_trace(placed.trace.row)["tags"],
}


def texts(params: Params, *names: str) -> list[Condition]:
    """Parameters that a column of their name must equal."""
    return [Condition("string", name, "=", text) for name in names if (text := params.text(name))]


def environments(params: Params) -> list[Condition]:
    """The environments asked for."""
    named = params.many("environment")
    return [Condition("stringOptions", "environment", "any of", tuple(named))] if named else []


def times(params: Params, column: str, since: str, until: str) -> list[Condition]:
    """A range of times: from the first on, and before the second."""
    bounds = ((">=", params.time(since)), ("<", params.time(until)))
    return [
        Condition("datetime", column, operator, at) for operator, at in bounds if at is not None
    ]


def traces(view: View, params: Params) -> Answer:
    """GET /traces."""
    page, limit = params.whole("page", 1), params.whole("limit", PAGE, MOST)
    groups = groups_of(params)
    tags = params.many("tags")
    asked = [
        *texts(params, "userId", "name", "sessionId", "version", "release"),
        *environments(params),
        *times(params, "timestamp", "fromTimestamp", "toTimestamp"),
        *([Condition("arrayOptions", "tags", "all of", tuple(tags))] if tags else []),
    ]
    found = view.traces(conditions(params, asked, literal=False), TRACE_COLUMNS)
    found = ordered(found, params.text("orderBy"))
    shown = found[(page - 1) * limit : page * limit]
    data = [trace_row(view, trace, groups) for trace in shown]
    return paged(data, page, limit, len(found))


def ordered(found: Sequence[StoredTrace], by: str | None) -> Sequence[StoredTrace]:
    """Traces in the order asked for; they come newest first."""
    if by in {None, "timestamp.desc"}:
        return found
    name, _, direction = str(by).partition(".")
    if name not in ORDERED_BY or direction not in {"asc", "desc"}:
        raise invalid(f"Invalid orderBy: {by}")

    def value(trace: StoredTrace) -> tuple[bool, str]:
        held = full_trace(trace.row)[name]
        return (held is not None, str(held))

    return sorted(found, key=value, reverse=direction == "desc")


def groups_of(params: Params) -> frozenset[str]:
    """The groups of fields asked for: all of them, if none is named."""
    named = params.text("fields")
    if named is None:
        return frozenset(GROUPS)
    return frozenset(name.strip() for name in named.split(",")) & frozenset(GROUPS) | {"core"}


def trace_row(view: View, trace: StoredTrace, groups: frozenset[str]) -> Row:
    """A trace as the list shows it: of its observations and scores, the ids."""
    rows = view.rows_of(trace)
    row = {**full_trace(trace.row), "htmlPath": f"/project/{PROJECT}/traces/{trace.id}"}
    if "io" not in groups:
        for name in ("input", "output", "metadata"):
            del row[name]
    metrics = "metrics" in groups
    row["latency"] = trace_latency(rows) if metrics else -1
    row["totalCost"] = trace_cost(rows) if metrics else -1
    row["observations"] = [held["id"] for held in rows] if "observations" in groups else []
    with_scores = "scores" in groups
    row["scores"] = [s["id"] for s in scores_of(view.contents, trace.id)] if with_scores else []
    return row


def trace(view: View, params: Params, trace_id: str) -> Answer:
    """GET /traces/{traceId}."""
    found = view.trace(trace_id)
    if found is None:
        raise not_found(f"Trace {trace_id} not found within authorized project")
    groups = groups_of(params)
    row = trace_row(view, found, groups)
    rows = view.rows_of(found) if "observations" in groups else []
    row["observations"] = [observation_row(held) for held in rows]
    row["scores"] = scores_of(view.contents, trace_id) if "scores" in groups else []
    view.note([trace_id])
    return json_answer(row, rows=len(rows))


def observations(view: View, params: Params) -> Answer:
    """GET /observations."""
    page, limit = params.whole("page", 1), params.whole("limit", PAGE, MOST)
    asked = [
        *texts(params, "name", "userId", "type", "traceId", "level"),
        *texts(params, "parentObservationId", "version"),
        *environments(params),
        *times(params, "startTime", "fromStartTime", "toStartTime"),
    ]
    found = view.rows(conditions(params, asked, literal=False), ROW_COLUMNS)
    shown = found[(page - 1) * limit : page * limit]
    data = [observation_row(view.shown(placed)) for placed in shown]
    view.note(placed.trace.id for placed in shown)
    return paged(data, page, limit, len(found))


def observation(view: View, observation_id: str) -> Answer:
    """GET /observations/{observationId}."""
    named = [Condition("string", "id", "=", observation_id)]
    found = view.rows(named, ROW_COLUMNS)
    if not found:
        raise not_found("Observation not found within authorized project")
    return json_answer(observation_row(view.shown(found[0])), rows=1)


def observation_row(row: Row) -> Row:
    """An observation as v1 shows it, with all that it works out."""
    held = full_row(row)
    taken, given = units(row, "input"), units(row, "output")
    total = int((row.get("usageDetails") or {}).get("total") or 0) if _plain(row) else 0
    usage = {"unit": "TOKENS", "input": taken, "output": given, "total": total or taken + given}
    derived = {
        "usage": usage,
        "unit": "TOKENS",
        "promptTokens": taken,
        "completionTokens": given,
        "totalTokens": usage["total"],
        "modelId": None,
        "inputPrice": None,
        "outputPrice": None,
        "totalPrice": None,
        "calculatedInputCost": cost(row, "input"),
        "calculatedOutputCost": cost(row, "output"),
        "calculatedTotalCost": cost(row, "total"),
        "latency": seconds(row, "endTime"),
        "timeToFirstToken": seconds(row, "completionStartTime"),
    }
    return {**derived, **held}


def _plain(row: Row) -> bool:
    """Whether the total that a row names is a whole number."""
    return isinstance((row.get("usageDetails") or {}).get("total"), int)


def sessions(view: View, params: Params) -> Answer:
    """GET /sessions: one for every session id that traces have, newest first."""
    page, limit = params.whole("page", 1), params.whole("limit", PAGE, MOST)
    since, until = params.time("fromTimestamp"), params.time("toTimestamp")
    found = [
        row
        for row in view.sessions(tuple(params.many("environment")))
        if (since is None or row["createdAt"] >= iso(since))
        and (until is None or row["createdAt"] < iso(until))
    ]
    return paged(found[(page - 1) * limit : page * limit], page, limit, len(found))


def session(view: View, session_id: str) -> Answer:
    """GET /sessions/{sessionId}: with all its traces."""
    named = [Condition("string", "sessionId", "=", session_id)]
    found = view.traces(named, TRACE_COLUMNS)
    row = next((row for row in view.sessions(()) if row["id"] == session_id), None)
    if row is None:
        raise not_found("Session not found within authorized project")
    rows = [full_trace(trace.row) for trace in found]
    return json_answer({**row, "traces": rows}, rows=len(rows))


def paged(data: list[Row], page: int, limit: int, total: int) -> Answer:
    """A page, and how many there are."""
    pages = math.ceil(total / limit)
    meta = {"page": page, "limit": limit, "totalItems": total, "totalPages": pages}
    return json_answer({"data": data, "meta": meta}, rows=len(data))
