"""Requests to one Langfuse server: authorised, counted, retried, bounded; errors in words.

Belongs here: everything about one request and its answer's bytes. Does not belong here: which
requests make a trace (`v1`, `v2`), what a server can (`servers`).

*Retried*, with exponential back-off and full jitter: 429 (`Retry-After` in seconds or as a date,
`X-RateLimit-Reset` as a date in any spelling, are honoured), 408, 5xx, Cloudflare's 52x, broken
connections, truncated bodies, time-outs, and pages of HTML that a gateway puts in between.
A 429 does not use up attempts, since waiting is its cure; it has a limit of time of its own.
*Not retried*: other answers of 4xx. An answer that is too large, or takes the server too long,
is asked for twice at most: asking for less is its cure (`too_large`).

The few lines of retrying are written out here: what is waited for depends on the answer, on the
deadline and on the kind of failure together, which no library in the lock file offers.

*Keys*: no message holds one, and no error that leaves here refers to httpx's own, whose request
holds the header; what servers say is cleaned before it is repeated. Redirects are not followed:
the keys would go wherever they lead.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import httpx
import msgspec

from benchmark_assets.adapters.formats.base import decode_json
from benchmark_assets.adapters.langfuse.credentials import Credentials, scrub
from benchmark_assets.model.problem import InputError, Problem

Kind = Literal[
    "wrong_host",
    "not_langfuse",
    "unauthorized",
    "organisation_key",
    "gone",
    "refused",
    "too_large",
    "rate_limited",
    "deadline",
    "budget",
    "server",
    "connection",
]

Params = Mapping[str, str | int | bool | Sequence[str] | None]

_FIRST_WAIT_S = 0.5
_LONGEST_WAIT_S = 30.0
_HTML_ATTEMPTS = 3
_SLOW_ATTEMPTS = 2

_SLOW = frozenset({504, 522, 524})
"""Answers that say that the server, or what stands before it, gave up waiting for a query."""

_QUOTED = 300


class LangfuseError(InputError):
    """A request failed for good.

    Attributes:
        kind: What went wrong, for programs.
        status: The answer's status; None if there was no answer.
    """

    def __init__(
        self, kind: Kind, message: str, cure: str | None = None, status: int | None = None
    ) -> None:
        super().__init__(Problem(message, cure=cure))
        self.kind: Kind = kind
        self.message = message
        self.cure = cure
        self.status = status

    def __reduce__(self) -> tuple[Any, ...]:
        return (type(self), (self.kind, self.message, self.cure, self.status))


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
        max_bytes: Largest answer that is read.
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
        by_path: Requests by path, ids in it replaced by `*`.
    """

    requests: int = 0
    retries: int = 0
    limited: int = 0
    bytes: int = 0
    waited_s: float = 0.0
    by_path: dict[str, int] = field(default_factory=dict)


class _Failed(Exception):
    """An attempt failed. `wait_s` is what the server asks to wait; `attempts` how many it gets."""

    def __init__(self, error: LangfuseError, *, attempts: int, wait_s: float | None = None) -> None:
        super().__init__(error.kind)
        self.error = error
        self.attempts = attempts
        self.wait_s = wait_s


class _Authorization(httpx.Auth):
    """Sets the header. Its value is nowhere else: no repr, no header of the client."""

    def __init__(self, credentials: Credentials) -> None:
        self._credentials = credentials

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Response]:  # type: ignore[override]
        """Put the keys into a request that is about to be sent."""
        request.headers["Authorization"] = self._credentials.basic_auth()
        yield request  # type: ignore[misc]


class Client:
    """Sends requests to one server. Safe to use from several threads.

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
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.credentials = credentials
        self.limits = limits or Limits()
        self.counts = Counts()
        self._sleep, self._clock, self._jitter = sleep, clock, jitter
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(self.limits.in_flight)
        self._until = None if self.limits.deadline_s is None else clock() + self.limits.deadline_s
        self._next_start = clock()
        self._skew_s = 0.0
        self._http = httpx.Client(
            base_url=credentials.base_url,
            auth=_Authorization(credentials),
            timeout=httpx.Timeout(self.limits.timeout_s),
            limits=httpx.Limits(max_connections=self.limits.in_flight),
            headers={"Accept": "application/json"},
            transport=transport,
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._http.close()

    @property
    def remaining_s(self) -> float | None:
        """Seconds to the deadline; None if there is none."""
        return None if self._until is None else self._until - self._clock()

    def now(self) -> datetime:
        """The server's time in UTC, as its answers' `Date` tells; ours before the first one."""
        return datetime.fromtimestamp(time.time() + self._skew_s, UTC)

    def pause(self, seconds: float) -> None:
        """Wait, as retries do.

        Raises:
            LangfuseError: Of kind `deadline`, if the deadline is over before.
        """
        remaining = self.remaining_s
        if remaining is not None and seconds >= remaining:
            raise self._late()
        if seconds > 0:
            self._sleep(seconds)

    def get(self, path: str, params: Params | None = None) -> bytes:
        """The body of an answer: JSON, whole as far as its bytes tell.

        Args:
            path: From the server's address on, such as `/api/public/health`.
            params: Query parameters; those that are None are left out, lists are repeated.

        Raises:
            LangfuseError: If it fails for good.
        """
        return self._request("GET", path, params, None, decode=False)[0]

    def get_json(self, path: str, params: Params | None = None) -> Any:
        """The same, decoded. A body that does not decode is asked for again."""
        return self._request("GET", path, params, None, decode=True)[1]

    def post(self, path: str, body: Any) -> bytes:
        """Send an object as JSON; the body of the answer.

        A request whose answer was lost is sent again: what it asks for must be idempotent.
        """
        return self._request("POST", path, None, msgspec.json.encode(body), decode=False)[0]

    # One request, with its repetitions.

    def _request(
        self, method: str, path: str, params: Params | None, content: bytes | None, *, decode: bool
    ) -> tuple[bytes, Any]:
        started = self._clock()
        failures = 0
        while True:
            failed = self._try(method, path, params, content, decode=decode)
            if not isinstance(failed, _Failed):
                return failed
            limited = failed.error.kind == "rate_limited"
            failures += not limited
            if failures >= min(failed.attempts, self.limits.attempts):
                break
            wait = self._wait(failures, failed.wait_s)
            if limited and self._clock() + wait - started > self.limits.patience_s:
                break
            remaining = self.remaining_s
            if remaining is not None and wait >= remaining:
                break
            self._rest(wait)
        # Raised here and not where it was caught: it must not refer to what httpx raised.
        raise failed.error

    def _try(
        self, method: str, path: str, params: Params | None, content: bytes | None, *, decode: bool
    ) -> tuple[bytes, Any] | _Failed:
        with self._turn(path):
            try:
                body = self._send(method, path, params, content)
                return body, _decoded(body, path) if decode else None
            except _Failed as failed:
                return _bare(failed)
            except httpx.HTTPError as error:
                failed = self._broken(error, path)
            except (ValueError, UnicodeError):
                # An address or header that cannot be sent.
                failed = _Failed(self._wrong_host("the address cannot be used"), attempts=1)
        return failed

    @contextmanager
    def _turn(self, path: str) -> Iterator[None]:
        """Wait until one more request may be sent, and count it."""
        with self._free:
            with self._lock:
                if (
                    self.limits.requests is not None
                    and self.counts.requests >= self.limits.requests
                ):
                    raise LangfuseError(
                        "budget",
                        f"{self.limits.requests} requests were sent, as many as are allowed",
                        "allow more, or ask for less at a time",
                    )
                self.counts.requests += 1
                name = _path_name(path)
                self.counts.by_path[name] = self.counts.by_path.get(name, 0) + 1
                start = max(self._next_start, self._clock())
                if self.limits.per_minute:
                    self._next_start = start + 60 / self.limits.per_minute
            self.pause(start - self._clock())
            yield

    def _send(self, method: str, path: str, params: Params | None, content: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json"} if content is not None else None
        timeout = self.limits.timeout_s
        if (remaining := self.remaining_s) is not None:
            if remaining <= 0:
                raise self._late()
            timeout = min(timeout, remaining)
        with self._http.stream(
            method,
            path,
            params=_query(params),
            content=content,
            headers=headers,
            timeout=timeout,
        ) as response:
            body = self._body(response)
            self._note(response, len(body))
            self._judge(response, body, path)
            return body

    def _body(self, response: httpx.Response) -> bytes:
        """The whole body, unless it is larger than allowed or the deadline is over."""
        parts, size = [], 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > self.limits.max_bytes:
                raise _Failed(
                    LangfuseError(
                        "too_large",
                        f"an answer has more than {self.limits.max_bytes:,} bytes",
                        "ask for a shorter time, or allow larger answers",
                        response.status_code,
                    ),
                    attempts=1,
                )
            if (remaining := self.remaining_s) is not None and remaining <= 0:
                raise self._late()
        return b"".join(parts)

    def _note(self, response: httpx.Response, size: int) -> None:
        with self._lock:
            self.counts.bytes += size
            self.counts.limited += response.status_code == 429
            server = _http_date(response.headers.get("Date"))
            if server is not None:
                self._skew_s = server.timestamp() - time.time()

    # What an answer means.

    def _judge(self, response: httpx.Response, body: bytes, path: str) -> None:
        """Raise what is wrong with an answer, if anything is."""
        status = response.status_code
        html = _is_html(response, body)
        if 200 <= status < 300:
            if html:
                raise _Failed(self._not_langfuse(path, status), attempts=_HTML_ATTEMPTS)
            if not _looks_whole(body):
                raise _Failed(
                    LangfuseError(
                        "connection",
                        f"{path} was answered with half a body",
                        "try again; if it stays so, look at what stands before the server",
                        status,
                    ),
                    attempts=self.limits.attempts,
                )
            return
        said = "" if html else self._said(body)
        if status == 429:
            raise _Failed(
                LangfuseError("rate_limited", *_limited(path), status),
                attempts=self.limits.attempts,
                wait_s=_asked_to_wait(response, self.now()),
            )
        if status >= 500 or status == 408:
            slow = status in _SLOW or "timeout" in said.lower() or "timed out" in said.lower()
            if slow:
                raise _Failed(_slow(path, status), attempts=_SLOW_ATTEMPTS)
            raise _Failed(
                LangfuseError(
                    "server",
                    f"{path} was answered with {status}{said and f': {said}'}",
                    "the server has a fault; try again later, or look at its logs",
                    status,
                ),
                attempts=self.limits.attempts,
                wait_s=_asked_to_wait(response, self.now()),
            )
        raise _Failed(self._final(status, path, said, response, html=html), attempts=1)

    def _final(
        self, status: int, path: str, said: str, response: httpx.Response, *, html: bool
    ) -> LangfuseError:
        """The error that an answer of 3xx or 4xx is."""
        quoted = said and f": {said}"
        if 300 <= status < 400:
            target = response.headers.get("Location", "")
            origin = scrub(str(httpx.URL(target).copy_with(query=None)), self.credentials)[:_QUOTED]
            return self._wrong_host(f"it sends on to {origin or 'another address'}", status)
        if status == 401:
            return LangfuseError(
                "unauthorized",
                f"{self.credentials.base_url} does not accept the keys{quoted}",
                "check that LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are of one project, and "
                "of a project on this server (EU, US and self-hosted servers have keys of their own)",
                status,
            )
        if status == 403:
            return LangfuseError(
                "organisation_key",
                f"the keys may not read {path}{quoted}",
                "use a project's keys; those of an organisation cannot read traces",
                status,
            )
        if status in (404, 405, 410):
            return LangfuseError("gone", f"the server has no {path}{quoted}", None, status)
        if status in (413, 414, 422, 431):
            return LangfuseError(
                "too_large",
                f"{path} was too much for the server to answer ({status}{quoted})",
                "ask for a shorter time",
                status,
            )
        if html:
            return self._not_langfuse(path, status)
        return LangfuseError("refused", f"{path} was refused with {status}{quoted}", None, status)

    def _said(self, body: bytes) -> str:
        """What the server says is wrong, short and without keys."""
        try:
            value = decode_json(body[:65536]) if body else None
        except (msgspec.DecodeError, RecursionError):
            value = body[:_QUOTED].decode("utf-8", "replace")
        if isinstance(value, dict):
            value = value.get("message") or value.get("error") or ""
        text = value if isinstance(value, str) else ""
        return scrub(" ".join(text.split()), self.credentials)[:_QUOTED]

    def _not_langfuse(self, path: str, status: int) -> LangfuseError:
        return LangfuseError(
            "not_langfuse",
            f"{self.credentials.base_url} answers {path} with a page of HTML ({status})",
            "check LANGFUSE_BASE_URL: it is Langfuse's address without a path, and no login page "
            "or proxy may stand before it",
            status,
        )

    def _wrong_host(self, what: str, status: int | None = None) -> LangfuseError:
        return LangfuseError(
            "wrong_host",
            f"{self.credentials.base_url}: {what}",
            "check LANGFUSE_BASE_URL, and that this machine can reach it",
            status,
        )

    def _broken(self, error: httpx.HTTPError, path: str) -> _Failed:
        """What a failure without an answer is."""
        if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
            return _Failed(_slow(path, None), attempts=_SLOW_ATTEMPTS)
        if isinstance(error, httpx.UnsupportedProtocol | httpx.InvalidURL | httpx.DecodingError):
            return _Failed(self._wrong_host("the answer cannot be read"), attempts=1)
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
            said = scrub(str(error), self.credentials)[:_QUOTED]
            attempts = 2 if "Name or service" in said or "getaddrinfo" in said else 99
            return _Failed(self._wrong_host(f"cannot be reached ({said})"), attempts=attempts)
        said = scrub(str(error), self.credentials)[:_QUOTED]
        return _Failed(
            LangfuseError(
                "connection",
                f"the connection broke while {path} was read ({type(error).__name__}: {said})",
                "try again; if it stays so, look at what stands before the server",
            ),
            attempts=99,
        )

    # Waiting.

    def _wait(self, failures: int, asked: float | None) -> float:
        """Seconds to wait before the next attempt: at least what the server asks for."""
        most = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2 ** min(failures, 10))
        drawn = most * self._jitter()
        return drawn if asked is None else asked + min(drawn, 1.0)

    def _rest(self, seconds: float) -> None:
        with self._lock:
            self.counts.retries += 1
            self.counts.waited_s += seconds
        self.pause(seconds)

    def _late(self) -> LangfuseError:
        return LangfuseError(
            "deadline",
            f"not done in {self.limits.deadline_s:g} seconds",
            "allow more time, or ask for less",
        )


def _bare(failed: _Failed) -> _Failed:
    """The same without the traceback, whose frames hold requests."""
    failed.__traceback__ = failed.__context__ = failed.__cause__ = None
    return failed


def _decoded(body: bytes, path: str) -> Any:
    try:
        return decode_json(body)
    except RecursionError:
        message, attempts = f"{path} was answered with JSON that is nested too deeply", 1
    except msgspec.DecodeError:
        message, attempts = f"{path} was answered with broken JSON", 99
    raise _Failed(
        LangfuseError("connection", message, "try again; if it stays so, report it"),
        attempts=attempts,
    )


def _query(params: Params | None) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in (params or {}).items():
        if isinstance(value, bool):
            pairs.append((name, str(value).lower()))
        elif isinstance(value, str | int):
            pairs.append((name, str(value)))
        elif value is not None:
            pairs += [(name, item) for item in value]
    return pairs


def _path_name(path: str) -> str:
    head, mark, _ = path.partition("/traces/")
    return f"{head}{mark}*" if mark else path


def _is_html(response: httpx.Response, body: bytes) -> bool:
    kind = response.headers.get("Content-Type", "").lower()
    return "html" in kind or body[:256].lstrip()[:1] == b"<"


def _looks_whole(body: bytes) -> bool:
    """Whether a body begins and ends as an object or a list does."""
    text = body.strip()
    return (text[:1], text[-1:]) in ((b"{", b"}"), (b"[", b"]"))


def _slow(path: str, status: int | None) -> LangfuseError:
    answer = f"answered with {status}" if status else "not answered"
    return LangfuseError(
        "too_large",
        f"{path} took the server too long ({answer})",
        "ask for a shorter time, or allow it more seconds an answer",
        status,
    )


def _limited(path: str) -> tuple[str, str]:
    return (
        f"{path} is refused with 429: more requests than the server allows",
        "wait, ask for less, or set requests_per_minute to what your plan allows",
    )


def _asked_to_wait(response: httpx.Response, now: datetime) -> float | None:
    """Seconds that an answer asks to wait, in whichever spelling; None if it does not say."""
    text = (response.headers.get("Retry-After") or "").strip()
    try:
        return min(max(0.0, float(text)), 10 * 86400.0)
    except ValueError:
        pass
    when = _http_date(text) or _reset_time(response.headers.get("X-RateLimit-Reset"))
    return None if when is None else max(0.0, (when - now).total_seconds())


def _http_date(text: str | None) -> datetime | None:
    try:
        when = parsedate_to_datetime(text or "")
    except (TypeError, ValueError, IndexError):
        return None
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def _reset_time(text: str | None) -> datetime | None:
    """A time as a number, in ISO 8601, or as JavaScript writes dates.

    The last is `Tue Dec 01 2026 03:04:05 GMT+0000 (Coordinated Universal Time)`.
    """
    if not text:
        return None
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        # Seconds, or milliseconds.
        try:
            return datetime.fromtimestamp(number / 1000 if number > 1e11 else number, UTC)
        except (ValueError, OverflowError, OSError):
            return None
    for read in (datetime.fromisoformat, _javascript_date):
        try:
            when = read(text)
        except ValueError:
            continue
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return None


def _javascript_date(text: str) -> datetime:
    return datetime.strptime(text.split(" (")[0].replace("GMT", ""), "%a %b %d %Y %H:%M:%S %z")
