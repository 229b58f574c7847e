"""What a recorder notes, one event at a time, and the trace that the events come to.

Belongs here: the events, writing and reading them as lines (a journal, which outlives the process
that wrote it), and the one function that makes a trace of them. Does not belong here: taking
events down (`record`).

*Order.* Each event that has a place in the run carries it as `at`, a number that is taken when the
thing begins. Calls that overlap therefore stand in the order in which they were made, whenever
they ended, and nothing depends on the order in which events were written.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from benchmark_assets.recorder.plain import pointer


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    """One thing that happened.

    Attributes:
        time: When it was noted, ISO 8601, UTC.
        as_text: JSON Pointers, inside the event, of texts that were no texts.
        redacted: JSON Pointers, inside the event, of what is hidden.
        process: Id of the process, if it was forked from the one that the recorder is of.
    """

    time: str
    process: int = 0
    as_text: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()


class Begun(_Event, frozen=True, tag="begun"):
    """The recording began."""

    fixture: str | None = None
    trial: int | None = None


class Called(_Event, frozen=True, tag="called"):
    """A tool was called; without `ended`, how that went comes in an event of its own, if at all."""

    at: int
    name: str
    arguments: Any


class Returned(_Event, frozen=True, tag="returned"):
    """The call that was made at `of` ended; `arguments` replace those known when it began."""

    of: int
    arguments: Any = UNSET
    result: Any = UNSET
    error: str | UnsetType = UNSET


class Asked(_Event, frozen=True, tag="asked"):
    """The user was asked."""

    at: int
    text: str | None


class Final(_Event, frozen=True, tag="final"):
    """The agent gave its final payload; the last one counts. None takes it back."""

    at: int
    payload: Any


class Said(_Event, frozen=True, tag="said"):
    """What the user said first."""

    text: str | None


class Used(_Event, frozen=True, tag="used"):
    """A model was called: its name, and the tokens of the call in disjoint buckets."""

    model: str | None = None
    tokens: dict[str, int] = {}


class Failed(_Event, frozen=True, tag="failed"):
    """The agent failed; the first failure counts."""

    error: str


class Over(_Event, frozen=True, tag="over"):
    """The agent came to its end, with or without a failure."""


Placed = Called | Asked | Final
Event = Begun | Called | Returned | Asked | Final | Said | Used | Failed | Over

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def line(event: Event) -> bytes:
    """An event as a line of a journal."""
    return _encoder.encode(event) + b"\n"


def read_journal(data: bytes) -> Iterator[Event]:
    """The events of a journal; a last line that was cut off when its process died is left out."""
    for text in data.splitlines():
        try:
            yield _decoder.decode(text)
        except msgspec.DecodeError:
            continue


def trace_of(events: Iterable[Event]) -> dict[str, Any]:
    """The trace that events come to, as JSON data of the recorder's format.

    `tools`, `asked_clarification` and `final` are always there; everything else where it is known.
    """
    events = list(events)
    marks = _Marks()
    ends = {(e.process, e.of): e for e in events if isinstance(e, Returned)}
    tools: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    over = any(isinstance(event, Over) for event in events)
    final = None
    for event in _in_order(e for e in events if isinstance(e, Called | Asked | Final)):
        if isinstance(event, Called):
            end = ends.get((event.process, event.at))
            tools.append(_tool(event, end, pointer("/tools", len(tools)), marks, over=over))
        elif isinstance(event, Final):
            final = event
        else:
            marks.of(event, pointer("/questions", len(questions)))
            questions.append({"text": event.text, "before_tool": len(tools)})
    if final is not None:
        marks.of(final, "/final", under="/payload")
    trace: dict[str, Any] = {
        "tools": tools,
        "asked_clarification": bool(questions),
        "final": None if final is None else final.payload,
        "questions": questions,
        **_around(events, marks),
    }
    places = {"redacted": marks.redacted, "as_text": marks.as_text}
    return trace | {key: listed for key, listed in places.items() if listed}


def _in_order(events: Iterable[Placed]) -> list[Placed]:
    """Events by their places; those of processes that forked count alike, and go by the clock."""
    placed = sorted(events, key=lambda event: event.at)
    if len({event.process for event in placed}) > 1:
        # Within a process places count, and a later one is not earlier by the clock.
        latest: dict[int, str] = {}
        timed: list[tuple[str, Placed]] = []
        for event in placed:
            latest[event.process] = max(latest.get(event.process, ""), event.time)
            timed.append((latest[event.process], event))
        timed.sort(key=lambda each: each[0])
        placed = [event for _, event in timed]
    return placed


class _Marks:
    """Where in the trace something is hidden, or became a text."""

    def __init__(self) -> None:
        self.redacted: list[str] = []
        self.as_text: list[str] = []

    def of(self, event: Event, place: str, under: str = "", *, but: str | None = None) -> None:
        """Take over the marks of an event that stands at `place`; `under` is left out of them.

        Args:
            event: Whose marks.
            place: Pointer of what the event became.
            under: The event's field that became it, if it is one field alone.
            but: A field of the event that did not get into the trace.
        """
        for source, target in ((event.redacted, self.redacted), (event.as_text, self.as_text)):
            for mark in source:
                if but is None or (mark != but and not mark.startswith(f"{but}/")):
                    target.append(place + mark.removeprefix(under))


def _tool(
    call: Called, end: Returned | None, place: str, marks: _Marks, *, over: bool
) -> dict[str, Any]:
    replaced = end is not None and end.arguments is not UNSET
    marks.of(call, place, but="/arguments" if replaced else None)
    tool = {"name": call.name, "arguments": call.arguments}
    if end is None and over:
        tool["error"] = "it had not ended when the agent had"
    if end is not None:
        marks.of(end, place)
        given = {"arguments": end.arguments, "result": end.result, "error": end.error}
        tool |= {key: value for key, value in given.items() if value is not UNSET}
    return tool


def _around(events: list[Event], marks: _Marks) -> dict[str, Any]:
    """What is known of the run beside its steps."""
    known: dict[str, Any] = {}
    for event in events:
        match event:
            case Begun():
                given = {"fixture": event.fixture, "trial": event.trial, "started_at": event.time}
                known |= {key: value for key, value in given.items() if value is not None}
            case Said():
                marks.of(event, "/input/user", under="/text")
                known["input"] = {"user": event.text}
            case Used():
                if event.model is not None:
                    known.setdefault("model", event.model)
                tokens = known.setdefault("tokens", {})
                for bucket, count in event.tokens.items():
                    tokens[bucket] = tokens.get(bucket, 0) + count
            case Failed():
                if "error" not in known:
                    marks.of(event, "")
                    known["error"] = event.error
            case _:
                pass
    if known.get("tokens") == {}:
        del known["tokens"]
    if events:
        known["ended_at"] = max(event.time for event in events)
    order = ("fixture", "trial", "input", "model", "started_at", "ended_at", "error", "tokens")
    return {key: known[key] for key in order if key in known}


def to_file(trace: dict[str, Any]) -> bytes:
    """A trace as the bytes of its file: indented, so that differences of two are readable."""
    return (json.dumps(trace, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
