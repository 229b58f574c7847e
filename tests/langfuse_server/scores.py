"""Scores: written to traces, observations or sessions, and read again.

Belongs here: what makes a score the same one, what is refused, and how the three addresses that
read them show them. Does not belong here: what scores are for.

A score is known by its id, its name and the UTC date of its timestamp: the same id on another day
is another score. Servers before 4.59 take one score at a time and give it the time at which it
came, whatever it says; only an event of the ingestion address can say another. Later ones take
lists as well, and take the score's own timestamp.
"""

from __future__ import annotations

import base64
import json
import math
import re
import uuid
from collections.abc import Callable
from typing import Any

from .answers import TIME, Answer, Params, Refused, invalid, json_answer, malformed
from .contents import PROJECT, Contents, Row, iso, milliseconds
from .rows import full_trace

MOST = 100
PAGE = 50
TYPES = ("NUMERIC", "BOOLEAN", "CATEGORICAL", "TEXT", "CORRECTION")
LONGEST_TEXT = 500
ENVIRONMENT = re.compile(r"(?!langfuse)[a-z0-9_-]{1,40}")
TARGETS = ("traceId", "sessionId", "datasetRunId")
FIELDS = {"details": ("comment", "configId", "metadata"), "annotation": ("authorUserId", "queueId")}
LISTED = ("id", "name", "source", "dataType", "environment", "configId", "queueId", "authorUserId")
SUBJECTS = ("traceId", "sessionId", "observationId", "datasetRunId")


def post(contents: Contents, body: bytes, now: int, *, newest: bool) -> Answer:
    """POST /scores.

    Args:
        contents: Where scores are kept.
        body: The request's.
        now: The time, in milliseconds since 1970.
        newest: Whether lists and the scores' own timestamps are taken.
    """
    given = read_json(body)
    if isinstance(given, list) and newest:
        return _post_list(contents, given, now)
    if not isinstance(given, dict):
        kind = "array" if isinstance(given, list) else type(given).__name__
        raise malformed("", "invalid_type", f"Invalid input: expected object, received {kind}")
    at = milliseconds(given["timestamp"]) if newest and named_time(given) else now
    return json_answer({"id": keep_score(contents, given, at, now)}, rows=1)


def _post_list(contents: Contents, given: list[Any], now: int) -> Answer:
    errors = []
    for score in given:
        try:
            at = milliseconds(score["timestamp"]) if named_time(score) else now
            keep_score(contents, score, at, now)
        except Refused as refused:
            errors.append({"message": json.loads(refused.answer.body)["message"]})
    if not errors:
        return json_answer({"message": "Accepted"}, 202, rows=len(given))
    counts = {"accepted": len(given) - len(errors), "rejected": len(errors)}
    return json_answer({**counts, "errors": errors}, 207, rows=len(given))


def ingest(contents: Contents, body: bytes, now: int) -> Answer:
    """POST /ingestion: events, of which this server takes scores alone."""
    given = read_json(body)
    batch = given.get("batch") if isinstance(given, dict) else None
    if not isinstance(batch, list):
        raise malformed("batch", "invalid_type", "Invalid input: expected array")
    done, errors = [], []
    for event in batch:
        try:
            if event.get("type") != "score-create":
                raise invalid(f"Events of type {event.get('type')} are not taken here")
            if not named_time(event):
                raise malformed("timestamp", "invalid_type", "Invalid input: expected string")
            keep_score(contents, event["body"], milliseconds(event["timestamp"]), now)
            done.append({"id": event["id"], "status": 201})
        except Refused as refused:
            why = json.loads(refused.answer.body)["message"]
            errors.append({"id": event["id"], "status": refused.answer.status, "message": why})
    return json_answer({"successes": done, "errors": errors}, 207, rows=len(batch))


def read_json(body: bytes) -> Any:
    """A request's body."""
    try:
        return json.loads(body)
    except ValueError:
        raise Refused(400, {"message": "Invalid JSON"}) from None


def named_time(given: Any) -> bool:
    """Whether a time is given; one without an offset is refused."""
    time = given.get("timestamp") if isinstance(given, dict) else None
    if time is None:
        return False
    if not isinstance(time, str) or not TIME.fullmatch(time):
        raise malformed("timestamp", "invalid_format", "Invalid ISO datetime")
    return True


def keep_score(contents: Contents, given: Row, at: int, now: int) -> str:
    """Write a score, over the one with its id and name on its day; returns its id."""
    check(given)
    score_id = given.get("id") or str(uuid.uuid4())
    kind = given.get("dataType") or type_of(given["value"])
    value, text = value_of(kind, given["value"])
    key = (score_id, given["name"], iso(at)[:10])
    with contents.lock:
        known = contents.scores.get(key)
        contents.scores[key] = {
            "id": score_id,
            "projectId": PROJECT,
            **{name: given.get(name) for name in SUBJECTS},
            "name": given["name"],
            "value": value,
            "stringValue": text,
            "dataType": kind,
            "source": given.get("source") or "API",
            "environment": given.get("environment") or "default",
            "comment": given.get("comment"),
            "metadata": given.get("metadata") or {},
            "configId": given.get("configId"),
            "queueId": given.get("queueId"),
            "authorUserId": None,
            "timestamp": iso(at),
            "createdAt": known["createdAt"] if known else iso(now),
            "updatedAt": iso(now),
        }
    return str(score_id)


def check(given: Any) -> None:
    """Refuse a score that is none."""
    if not isinstance(given, dict):
        raise malformed("", "invalid_type", "Invalid input: expected object")
    if not isinstance(given.get("name"), str) or not given["name"]:
        raise malformed("name", "invalid_type", "Invalid input: expected string")
    if not isinstance(given.get("value"), int | float | str):
        raise malformed("value", "invalid_union", "Invalid input")
    targets = [name for name in TARGETS if given.get(name)]
    if len(targets) != 1 or (given.get("observationId") and targets != ["traceId"]):
        raise invalid(
            "Provide exactly one of traceId (with observationId), sessionId, datasetRunId"
        )
    if given.get("dataType") not in {None, *TYPES}:
        raise malformed("dataType", "invalid_value", "Invalid option")
    if given.get("environment") and not ENVIRONMENT.fullmatch(given["environment"]):
        raise malformed("environment", "invalid_format", "Invalid string")


def type_of(value: Any) -> str:
    """What a score is that does not say it."""
    return "CATEGORICAL" if isinstance(value, str) else "NUMERIC"


def value_of(kind: str, value: Any) -> tuple[float | None, str | None]:
    """A score's number and text."""
    is_text = isinstance(value, str)
    if is_text != (kind in {"CATEGORICAL", "TEXT", "CORRECTION"}):
        raise malformed("value", "invalid_type", f"Invalid value for {kind}")
    if kind == "BOOLEAN":
        if value not in {0, 1}:
            raise malformed("value", "invalid_value", "Invalid value: expected 0 or 1")
        return int(value), "True" if value else "False"
    if kind == "NUMERIC":
        return value, None
    if kind == "TEXT" and not 1 <= len(value) <= LONGEST_TEXT:
        raise malformed("value", "too_big", f"Texts have between 1 and {LONGEST_TEXT} characters")
    return (None if kind == "TEXT" else 0), value


def scores_of(contents: Contents, trace_id: str) -> list[Row]:
    """A trace's scores, as v1 shows them."""
    return [legacy(row) for row in by_time(contents) if row["traceId"] == trace_id]


def by_time(contents: Contents) -> list[Row]:
    """All scores, newest first."""
    return sorted(
        contents.scores.values(), key=lambda row: (row["timestamp"], row["id"]), reverse=True
    )


def legacy(row: Row) -> Row:
    """A score as the older addresses show it: numbers have no text, and texts no number."""
    return {k: v for k, v in row.items() if v is not None or k not in {"value", "stringValue"}}


def v2_scores(contents: Contents, params: Params) -> Answer:
    """GET /v2/scores: page by page, each with what it says of its trace."""
    page, limit = params.whole("page", 1), params.whole("limit", PAGE, MOST)
    ids = (params.text("scoreIds") or "").split(",")
    places = params.many("environment")
    named = {
        name: wanted
        for name in ("name", "source", "dataType", "configId", "queueId", *SUBJECTS)
        if (wanted := params.text(name))
    }
    found = [
        row
        for row in by_time(contents)
        if all(row[name] == wanted for name, wanted in named.items())
        and (ids == [""] or row["id"] in ids)
        and (not places or row["environment"] in places)
        and _within(row, params)
    ]
    data = [_with_trace(contents, row) for row in found[(page - 1) * limit : page * limit]]
    total = len(found)
    meta = {"page": page, "limit": limit, "totalItems": total}
    meta["totalPages"] = math.ceil(total / limit)
    return json_answer({"data": data, "meta": meta}, rows=len(data))


def _with_trace(contents: Contents, row: Row) -> Row:
    stored = contents.traces.get(row["traceId"] or "")
    trace = full_trace(stored.row) if stored else {}
    shown = {name: trace.get(name) for name in ("userId", "tags", "environment", "sessionId")}
    return {**legacy(row), "trace": shown if trace else None}


def _within(row: Row, params: Params) -> bool:
    since, until = params.time("fromTimestamp"), params.time("toTimestamp")
    at = milliseconds(row["timestamp"])
    return (since is None or at >= since) and (until is None or at < until)


def v3_scores(contents: Contents, params: Params) -> Answer:
    """GET /v3/scores: by cursor, with a value of the score's own type."""
    limit = params.whole("limit", PAGE, MOST)
    groups = [name for name in (params.text("fields") or "").split(",") if name]
    for name in groups:
        if name not in {*FIELDS, "subject"}:
            raise malformed("fields", "invalid_value", f"Unknown field group {name}")
    found = [row for row in by_time(contents) if _wanted(row, params) and _within(row, params)]
    first = _after(params.text("cursor"))
    shown = found[first : first + limit]
    meta: Row = {"limit": limit}
    if first + limit < len(found):
        meta["cursor"] = base64.urlsafe_b64encode(str(first + limit).encode()).decode()
    return json_answer(
        {"data": [v3_row(row, groups) for row in shown], "meta": meta}, rows=len(shown)
    )


def _after(cursor: str | None) -> int:
    try:
        return int(base64.urlsafe_b64decode(cursor)) if cursor else 0
    except ValueError:
        raise invalid("Invalid cursor format") from None


def _wanted(row: Row, params: Params) -> bool:
    """Whether a score is one of those asked for: lists are comma-separated."""
    subjects = [name for name in SUBJECTS if params.text(name)]
    if "observationId" in subjects and "traceId" not in subjects:
        raise invalid("observationId requires traceId")
    if len([name for name in subjects if name != "observationId"]) > 1:
        raise invalid("traceId, sessionId and experimentId are mutually exclusive")
    tests: dict[str, Callable[[str], str]] = {"source": str.upper, "dataType": str.upper}
    for name in (*LISTED, *SUBJECTS):
        wanted = params.text(name)
        if wanted and row[name] not in map(tests.get(name, str), wanted.split(",")):
            return False
    return True


def v3_row(row: Row, groups: list[str]) -> Row:
    """A score as the newest address shows it."""
    core = ("id", "projectId", "name", "dataType", "source", "timestamp", "environment")
    shown = {name: row[name] for name in (*core, "createdAt", "updatedAt")}
    kind, number = row["dataType"], row["value"]
    typed = {"NUMERIC": number, "BOOLEAN": number == 1}
    shown["value"] = typed.get(kind, row["stringValue"])
    for group in groups:
        shown.update({name: row[name] for name in FIELDS.get(group, ())})
    if "subject" in groups:
        shown["subject"] = subject(row)
    return shown


def subject(row: Row) -> Row:
    """What a score is about."""
    if row["observationId"]:
        return {"kind": "observation", "id": row["observationId"], "traceId": row["traceId"]}
    kinds = {"traceId": "trace", "sessionId": "session", "datasetRunId": "experiment"}
    return next({"kind": kind, "id": row[name]} for name, kind in kinds.items() if row[name])
