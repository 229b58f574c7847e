"""What can go wrong on the way to a server, by switch, and always the same for a seed.

Belongs here: faults of the server and of the network between. Does not belong here: rows that are
odd in themselves (`oddities`).

A share is of the requests for data: `health` and `projects` are spared unless `paths` names them.
Whether a request meets a fault depends on the seed, the request and how often it was sent before,
not on when it comes or what others are in flight; no request meets more than `in_a_row` of them
one after the other, so that whoever tries again comes through. Bursts and quotas do depend on the
order of requests, as they do in life.
"""

from __future__ import annotations

import functools
import hashlib
import random
import re
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Literal

from .answers import Answer, Params, html_answer, json_answer
from .contents import Contents, Pair

DATA = r"traces|observations|sessions|scores|ingestion|otel|v2/|v3/"
PROXY_PAGE = "<html><head><title>{0}</title></head><body><h1>{0}</h1><p>nginx</p></body></html>"
SIGN_IN = "<!DOCTYPE html><html><body><form action='/login'>Please sign in</form></body></html>"
TOO_MUCH = (
    "Your query could not be completed because it required too many resources. "
    "Please narrow your request by adding more specific filters (e.g., a shorter date range)."
)
WINDOWS = (("fromTimestamp", "toTimestamp"), ("fromStartTime", "toStartTime"))


@dataclass(frozen=True)
class Faults:
    """Which faults there are; none by default.

    Attributes:
        seed: What the choices follow from.
        server_errors: Share of requests answered with 500.
        gateway_timeouts: Share answered with a proxy's page and 524.
        resets: Share of answers whose connection is reset in the middle.
        truncated: Share of answers of which half comes before the connection ends.
        cut: Share of answers whose JSON ends in the middle, though the connection is in order.
        html: Share answered with a page for people and 200.
        slow: Share of requests answered after `slow_s` seconds only.
        slow_s: See `slow`.
        always: A status that every request is answered with: 401, 403, 404, 429, 500, ….
        burst_every: After every so many requests, some in a row are answered with 429.
        burst: How many.
        quota: So many requests in so many seconds (fixed windows), the others 429.
        retry_after: What a 429 says to wait (s); of a quota, what is left of its window.
        retry_after_as: As a number, as a date, in `X-RateLimit-Reset` alone, or not at all.
        too_many_rows: An answer with more rows is refused with 422.
        too_long_window: A list over a longer time, or over all times, is refused with 422.
        too_many_bytes: A longer answer is refused with 422.
        arrivals: Traces that are written while others read: one after every `arrive_every`
            requests.
        arrive_every: See `arrivals`.
        settling: Share of traces that arrive bit by bit: until they were read
            `settling_reads` times, their last observation is missing and their root has no end.
        settling_reads: See `settling`.
        unseen: Share of traces that are not there at all for the first `unseen_requests`.
        unseen_requests: See `unseen`.
        duplicates: Share of v2's rows that come twice, once as they were before they ended.
        bare_children: Whether v2's rows other than roots know nothing of their trace.
        paths: Which addresses the shares are of: a pattern for what follows `/api/public/`.
        in_a_row: The most faults that one request meets one after the other.
    """

    seed: int = 0
    server_errors: float = 0
    gateway_timeouts: float = 0
    resets: float = 0
    truncated: float = 0
    cut: float = 0
    html: float = 0
    slow: float = 0
    slow_s: float = 0.2
    always: int | None = None
    burst_every: int = 0
    burst: int = 3
    quota: tuple[int, float] | None = None
    retry_after: float = 0
    retry_after_as: Literal["seconds", "date", "reset", "nothing"] = "seconds"
    too_many_rows: int | None = None
    too_long_window: timedelta | None = None
    too_many_bytes: int | None = None
    arrivals: tuple[Pair, ...] = ()
    arrive_every: int = 1
    settling: float = 0
    settling_reads: int = 2
    unseen: float = 0
    unseen_requests: int = 10
    duplicates: float = 0
    bare_children: bool = False
    paths: str = DATA
    in_a_row: int = 3

    def chosen(self, kind: str, name: str, share: float) -> bool:
        """Whether a thing is of the share that a fault meets."""
        return share > 0 and drawn(self.seed, kind, name) < share


@functools.lru_cache(maxsize=1 << 20)
def drawn(seed: int, kind: str, name: str) -> float:
    """A number in [0, 1) that follows from a name, and for each kind of fault another."""
    digest = hashlib.blake2b(f"{seed}|{kind}|{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64


ANSWERED = ("server_errors", "gateway_timeouts", "html")
"""Faults in whose place nothing else is done."""
DAMAGED = ("resets", "truncated", "cut")
"""Faults that an answer meets on its way: what was asked for has been done."""


@dataclass(eq=False)
class Troubles:
    """The faults of a running server: what they are, and what has happened so far."""

    faults: Faults
    stopping: threading.Event = field(default_factory=threading.Event)
    data_requests: int = 0
    _sent: Counter[str] = field(default_factory=Counter)
    _in_a_row: Counter[str] = field(default_factory=Counter)
    _reads: Counter[str] = field(default_factory=Counter)
    _bursting: int = 0
    _since_burst: int = 0
    _window: tuple[float, int] = (0.0, 0)
    _arrivals: Iterator[Pair] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def meets(self, method: str, name: str, query: str) -> str | None:
        """The fault that a request meets, and has to be answered with (`answer_for`, `damaged`)."""
        faults = self.faults
        if not re.match(faults.paths, name):
            return None
        key = f"{method} {name}?{query}"
        with self._lock:
            self.data_requests += 1
            self._sent[key] += 1
            if faults.always is not None:
                return "always"
            if self._limited():
                return "rate_limit"
            found = self._drawn(key) if self._in_a_row[key] < faults.in_a_row else None
            self._in_a_row[key] = self._in_a_row[key] + 1 if found else 0
            return found

    def _drawn(self, key: str) -> str | None:
        """The fault drawn for this sending of a request."""
        draw = random.Random(f"{self.faults.seed}|{key}|{self._sent[key]}").random()
        for kind in (*ANSWERED, *DAMAGED, "slow"):
            draw -= getattr(self.faults, kind)
            if draw < 0:
                return kind
        return None

    def _limited(self) -> bool:
        """Whether a request comes while none are taken."""
        if self.faults.quota is not None:
            points, length = self.faults.quota
            began, taken = self._window
            now = time.monotonic()
            if now - began >= length:
                began, taken = now, 0
            self._window = (began, taken + 1)
            return taken >= points
        if self._bursting:
            self._bursting -= 1
            return True
        self._since_burst += 1
        if self.faults.burst_every and self._since_burst > self.faults.burst_every:
            self._since_burst, self._bursting = 0, self.faults.burst - 1
            return True
        return False

    def answer_for(self, fault: str) -> Answer | None:
        """What a fault answers itself, if it does."""
        if fault == "slow":
            self.stopping.wait(self.faults.slow_s)
        if fault == "always":
            return self._of_status(self.faults.always or 500)
        if fault == "rate_limit":
            return self._of_status(429)
        if fault == "html":
            return html_answer(SIGN_IN, 200)
        return {
            "server_errors": self._of_status(500),
            "gateway_timeouts": html_answer(PROXY_PAGE.format("524: A timeout occurred"), 524),
        }.get(fault)

    def _of_status(self, status: int) -> Answer:
        messages = {
            401: "Invalid credentials. Confirm that you've configured the correct host.",
            403: "Access denied - insufficient permissions for this endpoint",
            404: "Not found",
            429: "Rate limit exceeded",
        }
        if status >= 502:
            return html_answer(PROXY_PAGE.format(status), status)
        if status == 500:
            body = {"message": "Internal Server Error", "error": "An unknown error occurred"}
            return json_answer(body, 500)
        answer = json_answer({"message": messages.get(status, "Refused")}, status)
        if status == 429:
            answer.headers.update(self._limits())
        return answer

    def _limits(self) -> dict[str, str]:
        """The headers of a 429."""
        wait = self.faults.retry_after
        if self.faults.quota is not None:
            wait = max(0.0, self._window[0] + self.faults.quota[1] - time.monotonic())
        whole = -int(-wait // 1)
        until = datetime.now(UTC) + timedelta(seconds=wait)
        script = f"{until:%a %b %d %Y %H:%M:%S} GMT+0000 (Coordinated Universal Time)"
        said = {
            "seconds": {"Retry-After": str(whole)},
            "date": {"Retry-After": format_datetime(until + timedelta(seconds=1), usegmt=True)},
        }.get(self.faults.retry_after_as, {})
        if self.faults.retry_after_as == "nothing":
            return {}
        points = str(self.faults.quota[0]) if self.faults.quota else "30"
        counts = {"X-RateLimit-Limit": points, "X-RateLimit-Remaining": "0"}
        return {**said, **counts, "X-RateLimit-Reset": script}

    def too_large(self, answer: Answer, params: Params) -> bool:
        """Whether an answer is more than the server can give."""
        faults = self.faults
        if answer.status != 200:
            return False
        if faults.too_many_rows is not None and answer.rows > faults.too_many_rows:
            return True
        if faults.too_many_bytes is not None and len(answer.body) > faults.too_many_bytes:
            return True
        return faults.too_long_window is not None and self._too_long(params)

    def _too_long(self, params: Params) -> bool:
        if params.text("traceId") or params.text("sessionId"):
            return False
        most = (self.faults.too_long_window or timedelta()) / timedelta(milliseconds=1)
        for since, until in WINDOWS:
            start, end = params.time(since), params.time(until)
            if start is not None and end is not None:
                return end - start > most
        return True

    def note(self, trace_ids: Iterable[str]) -> None:
        """These traces were read."""
        with self._lock:
            self._reads.update(trace_ids)

    def is_settling(self, trace_id: str) -> bool:
        """Whether part of a trace is still to come."""
        faults = self.faults
        return (
            faults.chosen("settling", trace_id, faults.settling)
            and self._reads[trace_id] < faults.settling_reads
        )

    def is_unseen(self, trace_id: str) -> bool:
        """Whether nothing of a trace has come yet."""
        faults = self.faults
        waiting = self.data_requests <= faults.unseen_requests
        return waiting and faults.chosen("unseen", trace_id, faults.unseen)

    def may_be_late(self, trace_id: str) -> bool:
        """Whether a trace is one of those of which something comes late."""
        faults = self.faults
        return faults.chosen("settling", trace_id, faults.settling) or faults.chosen(
            "unseen", trace_id, faults.unseen
        )

    def hides(self) -> bool:
        """Whether there can be rows that have not come yet."""
        return bool(self.faults.settling or self.faults.unseen)

    def arrive(self, contents: Contents) -> None:
        """Write the next of the arriving traces, if it is time."""
        if not self.faults.arrivals:
            return
        with self._lock:
            if self._arrivals is None:
                self._arrivals = iter(self.faults.arrivals)
            due = self.data_requests % self.faults.arrive_every == 0
            pair = next(self._arrivals, None) if due else None
        if pair is not None:
            contents.add(*pair)


def damaged(answer: Answer, fault: str) -> Answer:
    """An answer as it comes out of a fault on its way."""
    if fault == "cut":
        return replace(answer, body=answer.body[: len(answer.body) // 2])
    return replace(answer, broken="reset" if fault == "resets" else "ended")
