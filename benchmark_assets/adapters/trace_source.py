"""Where traces come from when people ask for some of them: one protocol, and what is asked.

Belongs here: what can be asked of any source, what it answers, and the source of trace files.
Does not belong here: how a vendor's server is asked (`langfuse`), the ingest of whole sources
(`sources`).
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Protocol

import msgspec

from benchmark_assets.model.trace import TraceSnapshot


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which traces are asked for. Everything given must hold.

    Attributes:
        ids: Traces by id, in the order in which they are wanted.
        thread_id: The session's id or, if there is none of it, metadata `thread_id`.
        run_id: Metadata `run_id`.
        since, until: The trace's time, from `since` on and before `until`.
        filters: Metadata key → values: any of a key's values, of every key.
        user, name: The trace's user id and its name.
        tags: All of these.
        environments: Any of these; empty is every environment; None is the source's own choice.
        model: A model of the trace, by its own or its canonical name.
        prompt_contains, skill_contains: Part of the first prompt, and of the name of a skill
            that was loaded; upper and lower case are the same.
        limit: Give at most this many.
        scan_cap: Look at no more than this many traces for a condition that only looking at
            traces can tell.
    """

    ids: tuple[str, ...] = ()
    thread_id: str | None = None
    run_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    filters: dict[str, tuple[str, ...]] = {}
    user: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    environments: tuple[str, ...] | None = None
    model: str | None = None
    prompt_contains: str | None = None
    skill_contains: str | None = None
    limit: int = 50
    scan_cap: int = 2000


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was asked for.

    Attributes:
        snapshot: It, normalised and settled. `problem` says why it cannot be judged, such as
            that it was still arriving.
        document: It as the source gave it, `{"trace": …, "observations": […]}`; None if that is
            a file.
    """

    snapshot: TraceSnapshot
    document: dict[str, Any] | None = None


class Progress(msgspec.Struct, kw_only=True):
    """What a selection came to so far.

    Attributes:
        looked_at: How many traces were fetched and looked at.
        given: How many of them were given.
        missing: Ids asked for that the source does not have.
        stopped: Why it ended before the source did, in words; None if it did not.
    """

    looked_at: int = 0
    given: int = 0
    missing: list[str] = []
    stopped: str | None = None


class TraceSource(Protocol):
    """Something that has traces."""

    def select(self, selection: Selection, progress: Progress | None = None) -> Iterator[Selected]:
        """Yield the traces asked for, newest first (by id: in the order asked for).

        Args:
            selection: What is asked for.
            progress: Kept up to date, if given.

        Raises:
            InputError: If the source cannot be read.
        """
        ...
