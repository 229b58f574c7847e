"""Requests to one Langfuse server: authorised, counted, paced, retried, bounded.

Belongs here: sending a request until it is answered or fails for good. Does not belong here:
what an answer means (`answers`), which requests make a trace (`v1`, `v2`).

*Retried*, with exponential back-off and full jitter: 429 (`Retry-After` in seconds or as a date,
`X-RateLimit-Reset` as a date in any spelling, are honoured, by all threads), 408, 5xx,
Cloudflare's 52x, broken connections, truncated bodies, time-outs, and pages of HTML that a
gateway puts in between. A 429 uses up no attempt, since waiting is its cure; it has a limit of
time. *Not retried*: other answers of 4xx. What takes the server too long is asked for twice;
asking for less is its cure (`too_large`).

The few lines of retrying are written out: what is waited for depends on the answer, on the
deadline, on the pace and on the kind of failure together, which no library in the lock file
offers.

*Keys*: no message holds one, and no error that leaves here refers to one of httpx, whose request
holds the header: errors are raised where none of those is being handled. What servers say is
cleaned before it is repeated. Redirects are not followed: the keys would go where they lead.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import httpx
import msgspec

from benchmark_assets.adapters.langfuse import errors
from benchmark_assets.adapters.langfuse.answers import (
    Answer,
    Failure,
    broken,
    decoded,
    http_date,
    judge,
)
from benchmark_assets.adapters.langfuse.credentials import Credentials
from benchmark_assets.adapters.langfuse.errors import Kind, LangfuseError

__all__ = ["Client", "Counts", "Kind", "LangfuseError", "Limits", "Params"]

Params = Mapping[str, str | int | bool | Sequence[str] | None]

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What bounds a client.

    Attributes:
        deadline_s: Seconds from the client's making after which nothing more is asked.
        requests: Most requests, retries among them.
        in_flight: Most requests at one time, over all threads.
        timeout_s: Seconds that the server may be silent during one request.
        attempts: Most times that a request is sent before its failure counts; 429s not counted.
        patience_s: Seconds for which a request is repeated as long as the answer is 429.
        per_minute: Most requests a minute, evenly spaced; None is as fast as answers come.
        max_bytes: Largest answer that is read, decompressed.
    """

    deadline_s: float | None = None
    requests: int | None = None
    in_flight: int = 4
    timeout_s: float = 60.0
    attempts: int = 6
    patience_s: float = 600.0
    per_minute: float | None = None
    max_bytes: int = 256 * 2**20


@dataclass
class Counts:
    """What a client has done so far.

    Attributes:
        requests: Requests sent, retries among them.
        retries: Requests sent again.
        limited: Answers of 429.
        bytes: Bytes of answers, decompressed.
        waited_s: Seconds slept before retries.
        by_path: Requests by path, traces' ids in it replaced by `*`.
    """

    requests: int = 0
    retries: int = 0
    limited: int = 0
    bytes: int = 0
    waited_s: float = 0.0
    by_path: dict[str, int] = field(default_factory=dict)


class _Authorization(httpx.Auth):
    """Sets the header. Its value is nowhere else: no repr, no header of the client."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        """Put the keys into a request that is about to be sent."""
        request.headers["Authorization"] = self._credentials.basic_auth()
        yield request


class Client:
    """Sends requests to one server. Safe to use from several threads.

    Args:
        credentials: What it asks with.
        limits: What bounds it.
        sleep: Waits a number of seconds.
        clock: Seconds that only grow.
        jitter: A random number from 0 to 1.

    Attributes:
        credentials: What it asks with.
        limits: What bounds it.
        counts: What it has done so far.
    """

    def __init__(
        self,
        credentials: Credentials,
        *,
        limits: Limits | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self.credentials = credentials
        self.limits = limits or Limits()
        self.counts = Counts()
        self._sleep, self._clock, self._jitter = sleep, clock, jitter
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(self.limits.in_flight)
        self._next_start = clock()
        self._until = self._next_start + (self.limits.deadline_s or 0)
        self._skew_s = 0.0
        self._reached = False
        self._http = httpx.Client(
            base_url=credentials.base_url,
            auth=_Authorization(credentials),
            limits=httpx.Limits(max_connections=self.limits.in_flight),
            headers={"Accept": "application/json"},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    @property
    def remaining_s(self) -> float | None:
        """Seconds to the deadline; None if there is none."""
        return None if self.limits.deadline_s is None else self._until - self._clock()

    def now(self) -> datetime:
        """The server's time in UTC, as its last answer's `Date` tells; ours before the first."""
        return datetime.fromtimestamp(time.time() + self._skew_s, UTC)

    def clock(self) -> float:
        """Seconds that only grow, as its deadline counts them."""
        return self._clock()

    def pause(self, seconds: float) -> None:
        """Wait, as retries do.

        Raises:
            LangfuseError: Of kind `deadline`, if that comes first.
        """
        if not self._has(seconds):
            raise errors.late(self.limits.deadline_s)
        if seconds > 0:
            self._sleep(seconds)

    def get(self, path: str, params: Params | None = None) -> bytes:
        """The body of an answer: JSON, whole as far as its first and last bytes tell.

        Args:
            path: From the server's address on, such as `/api/public/health`.
            params: Query parameters; those that are None are left out, lists are repeated.

        Raises:
            LangfuseError: If it fails for good.
        """
        return self._request("GET", path, params, None, decode=False)[0]

    def get_json(self, path: str, params: Params | None = None) -> Any:
        """The same, decoded. A body that does not decode is asked for again."""
        return self.get_sized(path, params)[1]

    def get_sized(self, path: str, params: Params | None = None) -> tuple[int, Any]:
        """The same, with the number of bytes before it."""
        body, value = self._request("GET", path, params, None, decode=True)
        return len(body), value

    def post(self, path: str, body: Any) -> bytes:
        """Send an object as JSON; the body of the answer.

        A request whose answer was lost is sent again: what it asks for must be idempotent.

        Raises:
            LangfuseError: If it fails for good.
        """
        return self._request("POST", path, None, msgspec.json.encode(body), decode=False)[0]

    # One request, with its repetitions.

    def _request(
        self, method: str, path: str, params: Params | None, content: bytes | None, *, decode: bool
    ) -> tuple[bytes, Any]:
        started = self._clock()
        failures = 0
        while True:
            self._begin(path)
            body = self._attempt(method, path, params, content)
            value = decoded(body, path) if decode and isinstance(body, bytes) else None
            failure = value if isinstance(value, Failure) else body
            if isinstance(failure, bytes):
                return failure, value
            failures += failure.error.kind != "rate_limited"
            # Raised here, where no exception of httpx is being handled.
            self._prepare_again(failure, failures, started)

    def _begin(self, path: str) -> None:
        """Count a request that is about to be sent, at its time.

        Raises:
            LangfuseError: If there is no time or no budget left for it.
        """
        with self._lock:
            most = self.limits.requests
            if most is not None and self.counts.requests >= most:
                raise errors.spent(most)
            self.counts.requests += 1
            head, mark, _ = path.partition("/traces/")
            name = f"{head}{mark}*" if mark else path
            self.counts.by_path[name] = self.counts.by_path.get(name, 0) + 1
            now = self._clock()
            start = max(self._next_start, now)
            if self.limits.per_minute:
                self._next_start = start + 60 / self.limits.per_minute
        self.pause(start - now)

    def _prepare_again(self, failure: Failure, failures: int, started: float) -> None:
        """Wait before a request is sent again.

        Raises:
            LangfuseError: If it is not to be sent again.
        """
        error = failure.error
        limited = error.kind == "rate_limited"
        if not limited and failures >= min(failure.attempts, self.limits.attempts):
            raise error
        wait = self._wait(failures, failure.wait_s)
        if limited and self._clock() + wait - started > self.limits.patience_s:
            raise error
        if not self._has(wait):
            raise error if limited else errors.late(self.limits.deadline_s, error.message)
        with self._lock:
            self.counts.retries += 1
            self.counts.waited_s += wait
            if limited:
                # The limit is the project's: other threads would only run into it as well.
                self._next_start = max(self._next_start, self._clock() + wait)
        self.pause(wait)

    def _wait(self, failures: int, asked: float | None) -> float:
        """Seconds to wait before the next attempt: at least what the server asks for."""
        most: float = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(failures, 10))
        drawn = most * self._jitter()
        return drawn if asked is None else asked + min(drawn, 1.0)

    def _has(self, seconds: float) -> bool:
        remaining = self.remaining_s
        return remaining is None or max(seconds, 0) < remaining

    # One attempt.

    def _attempt(
        self, method: str, path: str, params: Params | None, content: bytes | None
    ) -> bytes | Failure:
        try:
            with self._free, self._sent(method, path, params, content) as response:
                body = self._body(response, path)
        except httpx.HTTPError as error:
            return broken(error, path, self.credentials, reached=self._reached)
        except (httpx.InvalidURL, ValueError):
            what = "the address cannot be used"
            return Failure(errors.wrong_host(self.credentials.base_url, what))
        if isinstance(body, Failure):
            return body
        answer = Answer(response.status_code, _lower(response.headers), body)
        self._note(answer)
        return judge(answer, path, self.credentials, self.now()) or body

    @contextmanager
    def _sent(
        self, method: str, path: str, params: Params | None, content: bytes | None
    ) -> Iterator[httpx.Response]:
        remaining = self.remaining_s
        timeout = self.limits.timeout_s
        headers = {} if content is None else {"Content-Type": "application/json"}
        with self._http.stream(
            method,
            path,
            params=_query(params),
            content=content,
            headers=headers,
            timeout=timeout if remaining is None else max(0.05, min(timeout, remaining)),
        ) as response:
            yield response

    def _body(self, response: httpx.Response, path: str) -> bytes | Failure:
        """The whole body, unless it is larger than allowed or the deadline is over."""
        parts, size = [], 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > self.limits.max_bytes:
                what = f"more than {self.limits.max_bytes:,} bytes came"
                return Failure(errors.too_large(path, what, response.status_code))
            if not self._has(0):
                return Failure(errors.late(self.limits.deadline_s))
        return b"".join(parts)

    def _note(self, answer: Answer) -> None:
        with self._lock:
            self._reached = True
            self.counts.bytes += len(answer.body)
            self.counts.limited += answer.status == 429
            server = http_date(answer.headers.get("date", ""))
            if server is not None:
                self._skew_s = server.timestamp() - time.time()


def _lower(headers: httpx.Headers) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _query(params: Params | None) -> httpx.QueryParams:
    pairs: list[tuple[str, str | int | float | bool | None]] = []
    for name, value in (params or {}).items():
        if isinstance(value, str | int | bool):
            pairs.append((name, value))
        elif value is not None:
            pairs += [(name, item) for item in value]
    return httpx.QueryParams(pairs)
