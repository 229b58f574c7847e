"""Rows of observations as a server gives them: which trace, when, newest, whole.

Belongs here: reading the few fields that putting traces together needs, tolerantly: any may be
null, missing or of another type. Does not belong here: what rows mean (`formats/langfuse_rows`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import id_or_none, parse_time
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.langfuse.readers import Arrival, RawTrace

Row = dict[str, Any]

_NEVER = datetime.min.replace(tzinfo=UTC)


def data_of(answer: Any) -> list[Row]:
    """The rows of an answer. What is no object cannot belong to a trace and is left out."""
    return [row for row in as_list(as_dict(answer).get("data")) if isinstance(row, dict)]


def trace_id_of(row: Row) -> str | None:
    """The trace that a row belongs to; None if it belongs to none."""
    return id_or_none(row.get("traceId"))


def start_of(row: Row) -> datetime | None:
    """When it started."""
    return parse_time(row.get("startTime"))


def is_root(row: Row) -> bool:
    """Whether it stands at the top of its trace."""
    return (
        row.get("isRootObservation") is True or id_or_none(row.get("parentObservationId")) is None
    )


def age(row: Row) -> tuple[datetime, datetime, bytes]:
    """What tells the newer of two rows of one id."""
    return (
        parse_time(row.get("updatedAt")) or _NEVER,
        parse_time(row.get("endTime")) or _NEVER,
        msgspec.json.encode(row, order="deterministic"),
    )


class Rows:
    """The rows of one trace as they come in, one an id: the one updated last."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self._by_id: dict[str, Row] = {}
        for row in rows:
            self.add(row)

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._by_id.values())

    def add(self, row: Row) -> None:
        """Take in a row, which may be there already."""
        key = id_or_none(row.get("id"))
        if key is None:
            # Pages that overlap give it again; nothing but its content tells that.
            key = "content:" + hashlib.sha256(msgspec.json.encode(row)).hexdigest()
        known = self._by_id.get(key)
        if known is None or (known != row and age(row) > age(known)):
            self._by_id[key] = row

    def ordered(self) -> list[Row]:
        """By start and id: the same whatever order they came in."""
        return sorted(
            self,
            key=lambda row: (start_of(row) or _NEVER, str(row.get("id")), str(row.get("name"))),
        )

    @property
    def timestamp(self) -> datetime | None:
        """The start of the earliest root, or of the earliest row if there is no root."""
        roots = [time for row in self if is_root(row) and (time := start_of(row))]
        return min(roots or [time for row in self if (time := start_of(row))], default=None)

    @property
    def rooted(self) -> bool:
        """Whether one of them stands at the top."""
        return any(is_root(row) for row in self)

    def is_of(self, environments: tuple[str, ...]) -> bool:
        """Whether its root, or something of it if there is no root, is of an environment.

        Where a row does not say, the server's own choice counts.
        """
        tops = [row for row in self if is_root(row)] or list(self)
        known = (None, "", *environments)
        return not environments or any(row.get("environment") in known for row in tops)

    @property
    def ended(self) -> bool:
        """Whether it has a root, and all of its roots have ended. Events do not end."""
        roots = [row for row in self if is_root(row)]
        return bool(roots) and all(
            row.get("endTime") or row.get("type") == "EVENT" for row in roots
        )

    @property
    def last_activity(self) -> datetime | None:
        """The latest time at which something in it started or ended."""
        times = (parse_time(row.get(key)) for row in self for key in ("startTime", "endTime"))
        return max((time for time in times if time), default=None)

    @property
    def orphaned(self) -> bool:
        """Whether a row's parent is missing that is not known to be another service's."""
        ids = self._by_id
        return any(
            not is_root(row) and id_or_none(row.get("parentObservationId")) not in ids
            for row in self
        )

    def fingerprint(self, environments: tuple[str, ...] = ()) -> str:
        """Changes when a row comes, goes or is updated. Only of rows of some environments."""
        return fingerprint(
            f"{row.get('id')}|{row.get('updatedAt')}|{row.get('endTime')}"
            for row in self
            if not environments or row.get("environment") in (None, *environments)
        )


def fingerprint(parts: Iterable[str]) -> str:
    """A hash of texts, whatever their order."""
    return hashlib.sha256("\n".join(sorted(parts)).encode("utf-8", "replace")).hexdigest()[:32]


# Whether a trace has arrived.


def still_arriving(raw: RawTrace, now: datetime, arrival: Arrival) -> str | None:
    """Why a trace may not be whole yet; None if it is.

    What counts is when the *server* last heard of it: clocks of agents may be wrong.
    """
    heard = _last_heard(raw)
    ended = Rows(raw.observations).ended
    limit = arrival.settle_s if ended else arrival.silence_s
    if heard is None or now - heard >= timedelta(seconds=limit):
        return None
    # The time and not how long ago: this is stored, and the same trace gives the same bytes.
    when = f"{heard:%Y-%m-%d %H:%M:%S} UTC"
    if ended:
        return f"it may still arrive: the server last heard of it at {when}"
    what = "has not ended" if any(is_root(row) for row in raw.observations) else "is missing"
    return f"it is still running or arriving: its root {what}, its last sign is of {when}"


def _last_heard(raw: RawTrace) -> datetime | None:
    everything: list[Mapping[str, Any]] = [*raw.observations, raw.trace or {}]
    for keys in (("updatedAt", "createdAt"), ("endTime", "startTime", "timestamp")):
        times = [time for item in everything for key in keys if (time := parse_time(item.get(key)))]
        if times:
            return max(times)
    return None
