"""What is read from a Langfuse server, whichever of its two APIs it has.

Belongs here: windows of time, server-side conditions, what a listed and a fetched trace are,
when a trace has arrived, and the protocol of the two readers. Does not belong here: their
requests (`v1`, `v2`), what people ask for (`selection`).

*A trace's time* is its `timestamp` where the server has trace objects (v1); otherwise the start
of its earliest root observation, or of its earliest observation if it has no root (v2). A trace
belongs to the one window that its time lies in, wherever its observations reach.

*A trace has arrived* when the server has heard nothing of it for a while (`Arrival`), or when its
root has ended and two reads, some seconds apart, found the same. Until then it is waited for, at
the end, after everything else was given; when the time for that is over it is given incomplete,
with the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

Api = Literal["v1", "v2"]


AFTER = timedelta(minutes=5)
"""How far beyond a window its traces are followed in bulk; those that reach further are looked up
by id."""

BEFORE = timedelta(minutes=1)
"""How long before its root a row of a trace may start, clocks being what they are, without the
trace being looked up by id."""


FURTHER_BEFORE = timedelta(hours=2)
"""How long before its root, and before the window, a row may start and still be noticed."""


class Window(NamedTuple):
    """A range of time, in UTC: from `start` on, before `end`."""

    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class Filters:
    """Conditions that the server applies. All that are given must hold.

    Attributes:
        environments: Any of these; empty is every environment.
        names: The trace's name is any of these.
        user_ids, session_ids: Any of these.
        tags: The trace has all of these.
        metadata: A key and its values: any of a key's values, of every key. A key may be dotted.
        input_contains: Words of an observation's input (v2 only; elsewhere it is not applied).
    """

    environments: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    user_ids: tuple[str, ...] = ()
    session_ids: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: tuple[tuple[str, tuple[str, ...]], ...] = ()
    input_contains: str | None = None

    @property
    def narrow(self) -> bool:
        """Whether more than the environment is asked for."""
        return bool(
            self.names
            or self.user_ids
            or self.session_ids
            or self.tags
            or self.metadata
            or self.input_contains
        )


class Listed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A trace as a list shows it.

    Attributes:
        trace_id: Its id.
        timestamp: Its time, in UTC.
        fingerprint: Changes when anything of the trace that a list shows has changed: number and
            ids of observations, times of their last updates (v2), latency and cost (v1).
        observations: How many it has; None if the server does not say.
    """

    trace_id: str
    timestamp: datetime
    fingerprint: str
    observations: int | None = None


class RawTrace(msgspec.Struct, kw_only=True):
    """A trace as the server gave it.

    Attributes:
        trace_id: Its id.
        timestamp: Its time, in UTC; None if nothing in it has one.
        trace: The trace object without its observations; None where the API has none (v2).
        observations: Rows as the server gave them, one an id (the one updated last), ordered by
            start and id.
        fingerprint: What `Listed.fingerprint` will be as long as nothing changes; None if it
            was fetched by id from an API whose lists cannot be told from that (v1).
        complete: False if it was still arriving when the time for waiting was over, or if the
            server could not give all of it.
        why: The reason, if it is not complete.
    """

    trace_id: str
    timestamp: datetime | None = None
    trace: dict[str, Any] | None = None
    observations: list[dict[str, Any]] = []
    fingerprint: str | None = None
    complete: bool = True
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class Arrival:
    """When a trace counts as whole. All times in seconds.

    Attributes:
        settle_s: A trace whose root has ended is whole when the server has heard nothing of it
            for this long. Servers take up to 15 minutes to show what old SDKs send.
        silence_s: The same for a trace whose root is missing or has not ended: its agent may be
            at work for long, or have died.
        wait_s: How long to wait for traces that are still arriving, once everything else was
            given; 0 gives them as incomplete at once.
        poll_s: Time between the first two reads of a trace that is waited for; then it doubles.
        missing_s: How long to ask again for a single trace that the server does not have: it may
            have been sent a moment ago.
    """

    settle_s: float = 900.0
    silence_s: float = 6 * 3600.0
    wait_s: float = 60.0
    poll_s: float = 5.0
    missing_s: float = 10.0


class Reader(Protocol):
    """Reads traces from a server. Errors are `http.LangfuseError`.

    Attributes:
        api: Which API it uses.
    """

    api: Api

    def list(self, window: Window, filters: Filters = ...) -> Iterator[Listed]:
        """Yield every trace of a window once, newest first, as far as the server can filter.

        Traces that arrive meanwhile shift nothing: those newer than what was read already are
        left to the next time. Keeps a line a trace, not their contents.
        """
        ...

    def fetch(self, trace_id: str) -> RawTrace | None:
        """One trace, waited for if it is still arriving; None if the server has none of that id."""
        ...

    def fetch_many(self, trace_ids: Sequence[str]) -> Iterator[RawTrace]:
        """Several traces by id in as few requests as the API allows, in any order.

        Ids that the server does not have are left out.
        """
        ...

    def fetch_window(
        self,
        window: Window,
        wanted: Mapping[str, Listed] | None = None,
        filters: Filters = ...,
    ) -> Iterator[RawTrace]:
        """Yield the traces of a window, about newest first; those still arriving come last.

        Each comes once; only if `wanted` is None, one can come a second time, when more of it
        turned up far from where it was read: the later one counts. Memory is bounded by what is
        in flight, not by the window.

        Args:
            window: What `wanted` was listed from.
            wanted: The traces to give, as they were listed. None gives all that `filters` let
                through, in fewer requests than a list and what it names.
            filters: Used if `wanted` is None, and to narrow what is read for it: the conditions
                of the list that it is from.
        """
        ...
