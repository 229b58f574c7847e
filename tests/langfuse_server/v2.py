"""The observations API of newer servers: rows by cursor, with the fields asked for.

Belongs here: its parameters, columns and answers. Does not belong here: who may ask, and on which
servers it exists (`server`).

There are no traces here: what a trace knows stands on its rows. Its user, session, tags and
release stand on all of them, its name, input, output and metadata on its root's.
"""

from __future__ import annotations

import base64
import bisect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .answers import Answer, Params, invalid, json_answer, malformed
from .contents import Row, StoredRow, StoredTrace, hashed, iso, milliseconds
from .filters import Columns, Condition, conditions
from .rows import SHARED_COLUMNS, cost, full_row, full_trace, read, seconds, units
from .v1 import environments, place_of, texts, times
from .view import View

MOST = 1000
PAGE = 50
CUT = 200
GROUPS: dict[str, tuple[str, ...]] = {
    "core": (
        "id",
        "traceId",
        "startTime",
        "endTime",
        "projectId",
        "parentObservationId",
        "type",
    ),
    "basic": (
        "name",
        "level",
        "statusMessage",
        "version",
        "environment",
        "bookmarked",
        "public",
        "userId",
        "sessionId",
        "isRootObservation",
    ),
    "time": ("completionStartTime", "createdAt", "updatedAt"),
    "io": ("input", "output"),
    "metadata": ("metadata",),
    "model": ("providedModelName", "internalModelId", "modelParameters"),
    "usage": ("usageDetails", "costDetails", "totalCost", "usagePricingTierName"),
    "prompt": ("promptId", "promptName", "promptVersion"),
    "metrics": ("latency", "timeToFirstToken"),
    "trace_context": ("tags", "release", "traceName"),
}
ALWAYS = ("modelId", "inputPrice", "outputPrice", "totalPrice")
SEARCHED = ("input", "output")


def is_root(row: Row) -> bool:
    """Whether a row is a logical root: without a parent, or said to be one."""
    return bool(row.get("isRootObservation", row.get("parentObservationId") is None))


def context(placed: StoredRow | Shown, row: Row) -> Row:
    """What stands on a row of its trace; what the row says itself goes before it."""
    knows = isinstance(placed, StoredRow) or placed.knows
    trace = full_trace(placed.trace.row if knows else {})
    root = is_root(row)
    return {
        "userId": trace["userId"],
        "sessionId": trace["sessionId"],
        "tags": trace["tags"],
        "release": trace["release"],
        "traceName": trace["name"] if root else None,
        "isRootObservation": root,
        "bookmarked": trace["bookmarked"] if root else False,
        "public": trace["public"],
        **{name: row[name] for name in ("userId", "sessionId", "tags", "release") if name in row},
        **({"traceName": row["traceName"]} if "traceName" in row else {}),
    }


def metadata(placed: StoredRow | Shown, row: Row) -> Any:
    """A row's metadata: one entry for every leaf, under its dotted path."""
    held = full_row(row)["metadata"]
    if held is not None and not isinstance(held, dict):
        return held
    above = full_trace(placed.trace.row)["metadata"] if is_root(row) else None
    return flat({**(above if isinstance(above, dict) else {}), **(held or {})})


def flat(value: Row, before: str = "") -> Row:
    """Nested objects as one, with dotted keys; texts that are JSON are read as such."""
    found: Row = {}
    for key, held in value.items():
        if isinstance(held, dict) and held:
            found.update(flat(held, f"{before}{key}."))
        else:
            found[before + key] = read(held)
    return found


def text(value: Any) -> str | None:
    """Input or output as it is kept: as text."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def side(placed: StoredRow | Shown, row: Row, name: str) -> str | None:
    """A row's input or output; of a root that has none, its trace's."""
    held = row.get(name)
    if held is None and is_root(row) and name not in row:
        held = placed.trace.row.get(name)
    return text(held)


def _field(name: str) -> Callable[[StoredRow], Any]:
    return lambda placed: full_row(placed.row)[name]


def _context(name: str) -> Callable[[StoredRow], Any]:
    return lambda placed: context(placed, placed.row)[name]


COLUMNS: Columns = {
    **{name: _field(name) for name in SHARED_COLUMNS},
    **{
        name: _context(name)
        for name in ("userId", "sessionId", "isRootObservation", "traceName", "tags")
    },
    "traceTags": _context("tags"),
    "providedModelName": _field("model"),
    "environment": place_of,
    "startTime": lambda placed: placed.at,
    "endTime": lambda placed: placed.row.get("endTime") and milliseconds(placed.row["endTime"]),
    "latency": lambda placed: seconds(placed.row, "endTime"),
    "totalCost": lambda placed: cost(placed.row, "total"),
    "inputTokens": lambda placed: units(placed.row, "input"),
    "outputTokens": lambda placed: units(placed.row, "output"),
    "input": lambda placed: side(placed, placed.row, "input"),
    "output": lambda placed: side(placed, placed.row, "output"),
    "metadata": lambda placed: metadata(placed, placed.row),
}


def observations(view: View, params: Params, model_field: str = "providedModelName") -> Answer:
    """GET /v2/observations."""
    if params.flag("parseIoAsJson"):
        raise invalid("parseIoAsJson is no longer supported: input and output are raw strings")
    limit = params.whole("limit", PAGE, MOST)
    after = read_cursor(params.text("cursor"))
    found = view.rows(asked(params), COLUMNS)
    first = 0 if after is None else bisect.bisect_right(found, after, key=lambda row: row.order)
    shown = found[first : first + limit]
    groups = groups_of(params)
    expanded = frozenset((params.text("expandMetadata") or "").split(","))
    data: list[Row] = []
    read = 0
    for placed in shown:
        copies = [reshown(view, placed, row) for row in versions(view, placed)]
        if len(data) + len(copies) > limit:
            # Two copies of a row are not parted: a cursor could not name the place between them.
            break
        data += [row_of(p, p.row, groups, expanded, model_field) for p in copies]
        read += 1
    view.note(placed.trace.id for placed in shown[:read])
    more = first + read < len(found)
    meta = {"cursor": cursor(shown[read - 1])} if more else {}
    return json_answer({"data": data, "meta": meta}, rows=len(data))


@dataclass(frozen=True)
class Shown:
    """A row as it is shown this time, in its trace."""

    row: Row
    trace: StoredTrace
    knows: bool
    """Whether what its trace knows stands on it."""


def reshown(view: View, placed: StoredRow, row: Row) -> Shown:
    """A row to be shown, with the little that rows know where children are bare."""
    return Shown(row, placed.trace, is_root(row) or not view.troubles.faults.bare_children)


def versions(view: View, placed: StoredRow) -> list[Row]:
    """A row as often as it comes: some come twice, once as they were written first."""
    row = view.shown(placed)
    faults = view.troubles.faults
    if not faults.chosen("duplicates", placed.id, faults.duplicates):
        return [row]
    written = milliseconds(row["updatedAt"])
    before = {**row, "updatedAt": iso(written - 1000), "endTime": None, "output": None}
    both = [before, row]
    return both if faults.chosen("older first", placed.id, 0.5) else both[::-1]


def asked(params: Params) -> list[Condition]:
    """What a request asks for."""
    root = params.flag("isRootObservation")
    given = [
        *texts(params, "name", "userId", "sessionId", "type", "traceId", "level"),
        *texts(params, "parentObservationId", "version"),
        *environments(params),
        *times(params, "startTime", "fromStartTime", "toStartTime"),
    ]
    if root is not None:
        given.append(Condition("boolean", "isRootObservation", "=", root))
    if params.has("parentObservationId") and not params.text("parentObservationId"):
        given.append(Condition("null", "parentObservationId", "is null"))
    found = conditions(params, given, literal=True)
    searching = [condition for condition in found if condition.column in SEARCHED]
    if searching and not any(c.operator in {"=", "matches"} for c in searching):
        raise invalid("Filters on input or output need at least one = or matches filter on them")
    return found


def groups_of(params: Params) -> list[str]:
    """The groups of fields asked for; unknown ones are passed over."""
    named = params.text("fields")
    wanted = ["core", "basic"] if named is None else [n.strip() for n in named.split(",")]
    return ["core", *(name for name in wanted if name in GROUPS and name != "core")]


def row_of(
    placed: Shown, row: Row, groups: Sequence[str], expanded: frozenset[str], model_field: str
) -> Row:
    """An observation with the groups of fields asked for, and no other field."""
    held = {**full_row(row), **context(placed, row)}
    shown: Row = {name: held.get(name) for group in groups for name in GROUPS[group]}
    if "io" in groups:
        shown.update({name: side(placed, row, name) for name in SEARCHED})
    if "metadata" in groups:
        whole = metadata(placed, row)
        shown["metadata"] = whole if "io" in groups else cut(whole, expanded)
    if "model" in groups:
        del shown["providedModelName"]
        shown[model_field] = held["model"]
    if "usage" in groups:
        shown["totalCost"] = cost(row, "total")
    if "metrics" in groups:
        shown["latency"] = seconds(row, "endTime")
        shown["timeToFirstToken"] = seconds(row, "completionStartTime")
    return {**shown, **dict.fromkeys(ALWAYS)}


def cut(held: Any, expanded: frozenset[str]) -> Any:
    """Metadata with long texts cut, but for the keys asked for."""
    if not isinstance(held, dict):
        return held
    return {
        key: value[:CUT] if isinstance(value, str) and key not in expanded else value
        for key, value in held.items()
    }


def cursor(last: StoredRow) -> str:
    """Where a page ended."""
    at = {"lastStartTimeTo": iso(last.at), "lastTraceId": last.trace.id, "lastId": last.id}
    return base64.b64encode(json.dumps(at).encode()).decode()


def read_cursor(given: str | None) -> tuple[int, int, str] | None:
    """The place that a cursor names."""
    if given is None:
        return None
    try:
        at = json.loads(base64.b64decode(given))
    except ValueError:
        raise invalid("Invalid cursor format") from None
    if not isinstance(at, dict) or not {"lastStartTimeTo", "lastTraceId", "lastId"} <= at.keys():
        raise malformed("cursor", "invalid_type", "Invalid input")
    return (-milliseconds(at["lastStartTimeTo"]), -hashed(at["lastTraceId"]), at["lastId"])
