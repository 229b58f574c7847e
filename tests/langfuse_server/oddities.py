"""Rows that are odd or broken in themselves, each kind as it was met in real projects.

Belongs here: what a healthy trace is turned into. Does not belong here: faults on the way to it
(`faults`).

`ODDITIES` has the kinds by name. None of them changes a trace's id or when it began, so a test
knows what a reader must come back with.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Iterable, Sequence

from .contents import Pair, Row, iso, milliseconds

HOUR_MS = 3_600_000
NULLABLE_OF_TRACE = (
    "name",
    "input",
    "output",
    "sessionId",
    "release",
    "version",
    "userId",
    "metadata",
)
NULLABLE_OF_ROW = (
    "parentObservationId",
    "name",
    "endTime",
    "completionStartTime",
    "level",
    "statusMessage",
    "version",
    "model",
    "modelParameters",
    "input",
    "output",
    "metadata",
    "usageDetails",
    "costDetails",
    "promptId",
    "promptName",
    "promptVersion",
    "userId",
    "sessionId",
    "tags",
    "release",
    "traceName",
)
BIG_TEXT = 4_000_000


def root_of(rows: Sequence[Row]) -> Row:
    """The row without a parent."""
    return next(row for row in rows if row.get("parentObservationId") is None)


def nulls(trace: Row, rows: list[Row]) -> None:
    """A null in every field that may be null, in one or other version or in databases."""
    trace.update(dict.fromkeys(NULLABLE_OF_TRACE))
    for row in rows:
        row.update(dict.fromkeys(NULLABLE_OF_ROW), shown={"environment": None})


def unknown_kinds(_: Row, rows: list[Row]) -> None:
    """Types and levels that no version has had yet."""
    for row in rows:
        row.update(type="TELEPATHY", level="FATAL")


def odd_counts(_: Row, rows: list[Row]) -> None:
    """Counts that are fractions, texts or null; costs likewise."""
    for row in rows:
        row["usageDetails"] = {"input": 10.5, "output": "20", "total": None, "cached": "many"}
        row["costDetails"] = {"input": "0.001", "output": None, "total": None}


def odd_metadata(trace: Row, rows: list[Row]) -> None:
    """Metadata that is a text, a list or a number."""
    trace["metadata"] = "only a text"
    for number, row in enumerate(rows):
        row["metadata"] = ("only a text", ["a", "list"], 7)[number % 3]


def orphans(_: Row, rows: list[Row]) -> None:
    """Parents that the trace does not have, its root's among them."""
    for row in rows[1:]:
        row["parentObservationId"] = f"{int(row['id'], 16) ^ 1:016x}"


def no_root(_: Row, rows: list[Row]) -> None:
    """The root never arrived."""
    rows.remove(root_of(rows))


def no_end(_: Row, rows: list[Row]) -> None:
    """The root never ended."""
    root_of(rows).update(endTime=None, output=None)


def no_rows(_: Row, rows: list[Row]) -> None:
    """A trace without observations."""
    rows.clear()


def skew(trace: Row, rows: list[Row]) -> None:
    """Clocks that differ: children that begin an hour before their trace, and end before that."""
    begin = milliseconds(trace["timestamp"])
    for number, row in enumerate(row for row in rows if row.get("parentObservationId")):
        row["startTime"] = iso(begin - HOUR_MS + number)
        row["endTime"] = iso(begin - HOUR_MS - 1000)


def double_text(trace: Row, rows: list[Row]) -> None:
    """Input and output that are JSON in a text in a text."""
    for held in (trace, *rows):
        for name in ("input", "output"):
            held[name] = json.dumps(json.dumps(held.get(name)))


def odd_texts(trace: Row, rows: list[Row]) -> None:
    """Characters that break lines, terminals or parsers."""
    text = "NUL \0, a line\u2028separator, \u202ereversed, \U0001f9ea, \x1b[31m, </script>"
    trace["name"] = text
    for row in rows:
        row.update(name=text, statusMessage=text, input={text: text})


def untraced(trace: Row, rows: list[Row]) -> None:
    """One more row, which says of no trace that it is its own: only lists of all rows have it."""
    extra = copy.deepcopy(rows[-1])
    extra.update(id=f"{int(rows[-1]['id'], 16) ^ 2:016x}", shown={"traceId": None})
    rows.append(extra)


def big(_: Row, rows: list[Row]) -> None:
    """One input of four million characters."""
    rows[-1]["input"] = "x" * BIG_TEXT


ODDITIES: dict[str, Callable[[Row, list[Row]], None]] = {
    change.__name__: change
    for change in (
        nulls,
        unknown_kinds,
        odd_counts,
        odd_metadata,
        orphans,
        no_root,
        no_end,
        no_rows,
        skew,
        double_text,
        odd_texts,
        untraced,
        big,
    )
}


SMALL = tuple(name for name in ODDITIES if name != "big")


def make_odd(pair: Pair, kind: str) -> Pair:
    """A trace with an oddity, the one that was given unchanged."""
    trace, rows = copy.deepcopy(pair)
    ODDITIES[kind](trace, rows)
    return trace, rows


def with_oddities(
    pairs: Iterable[Pair],
    share: float = 0.1,
    seed: int = 0,
    kinds: Sequence[str] = SMALL,
) -> tuple[list[Pair], dict[str, str]]:
    """Traces of which a share are odd, and which of them are what: kinds by trace id."""
    rng = random.Random(f"oddities:{seed}")
    found, known = [], {}
    for pair in pairs:
        if rng.random() < share:
            kind = rng.choice(kinds)
            known[pair[0]["id"]] = kind
            found.append(make_odd(pair, kind))
        else:
            found.append(pair)
    return found, known
