"""How much to ask for at a time, learned from what the server could answer.

Belongs here: page size and length of time, shrinking when an answer is too large or too slow and
growing back. Does not belong here: the requests (`v1`, `v2`).

A server that gives up does not say which of the two was too much. Both are halved; then, after
good answers, one of them is doubled on trial, and if that fails it alone is taken back and
tried less often. One huge trace so costs a few requests and does not slow down the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TypeVar

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_SHORTEST = timedelta(seconds=1)
_FIRST_TRIAL = 1
_LAST_TRIAL = 256

GOOD_BYTES = 16 * 2**20
"""Pages above this are asked for smaller: decoded, they take several times as much memory."""


class Sizes:
    """The page size and the length of time to ask for.

    Args:
        most: The largest page that the API allows.

    Attributes:
        limit: Rows a page.
        span: Longest time a request may cover; None is no limit.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.limit = most
        self.span: timedelta | None = None
        self._good = 0
        self._trial: str | None = None
        self._patience = {"limit": _FIRST_TRIAL, "span": _FIRST_TRIAL}

    def can_shrink(self, covered: timedelta | None) -> bool:
        """Whether there is less to ask for."""
        return self.limit > 1 or (covered is not None and covered > _SHORTEST)

    def shrink(self, covered: timedelta | None) -> None:
        """An answer was too much. `covered` is the time that it was asked for, if any."""
        trial, self._trial, self._good = self._trial, None, 0
        if trial is not None:
            self._patience[trial] = min(_LAST_TRIAL, self._patience[trial] * 2)
        if trial != "span":
            self.limit = max(1, self.limit // 2)
        if trial != "limit" and covered is not None:
            self.span = max(_SHORTEST, covered / 2)

    def good(self, size: int) -> None:
        """An answer of so many bytes came."""
        self._good += 1
        if self._trial == "limit":
            self._trial = None
        if size > GOOD_BYTES:
            self.limit = max(1, min(self.limit - 1, self.limit * GOOD_BYTES // size))
            self._good = 0
        elif self.limit < self.most and self._good >= self._patience["limit"]:
            if size * 2 <= GOOD_BYTES:
                self.limit = min(self.most, self.limit * 2)
                self._trial = "limit"
            self._good = 0

    def next_span(self, longest: timedelta) -> timedelta:
        """The time that the next stretch may cover."""
        if self._trial == "span":
            self._trial = None
        if self.span is None or self.span >= longest:
            return longest
        if self.limit >= self.most and self._good >= self._patience["span"]:
            self.span *= 2
            self._trial, self._good = "span", 0
        return min(self.span, longest)


def iso(time: datetime) -> str:
    """A time as the API takes it: UTC, to the millisecond."""
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def in_threads(
    work: Callable[[_Item], _Result], items: Iterator[_Item], threads: int
) -> Iterator[_Result]:
    """Yield `work(item)` in order, some of them ahead at one time.

    At most twice as many results as threads wait to be taken. What `work` raises is raised.
    """
    with ThreadPoolExecutor(max_workers=threads, thread_name_prefix="langfuse") as pool:
        waiting: list[Future[_Result]] = []
        try:
            waiting += [pool.submit(work, item) for item in islice(items, 2 * threads)]
            while waiting:
                result = waiting.pop(0).result()
                with suppress(StopIteration):
                    waiting.append(pool.submit(work, next(items)))
                yield result
        finally:
            for future in waiting:
                future.cancel()
