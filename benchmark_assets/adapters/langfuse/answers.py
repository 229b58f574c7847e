"""What an answer of a Langfuse server means: good, to be asked for again, or an error.

Belongs here: reading status, headers and body of one answer, and exceptions of the connection.
Does not belong here: sending and waiting (`http`), the errors' texts (`errors`).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

import httpx
import msgspec

from benchmark_assets.adapters.formats.base import decode_json
from benchmark_assets.adapters.langfuse import errors
from benchmark_assets.adapters.langfuse.credentials import Credentials, scrub
from benchmark_assets.adapters.langfuse.errors import LangfuseError

_SLOW = frozenset({504, 522, 524})
"""Answers that say that the server, or what stands before it, gave up waiting for a query."""

_TOO_MUCH = frozenset({413, 414, 422, 431})

MANY = 1_000
"""Attempts of what may heal by itself: as many as the client's limits allow."""

_AGAIN_IF_HTML = 3
_AGAIN_IF_SLOW = 2
_AGAIN_IF_NEVER_REACHED = 3

_LONGEST_QUOTE = 300
_LONGEST_READ = 65_536


class Failure(NamedTuple):
    """An attempt that failed.

    Attributes:
        error: What it is if it stays so.
        attempts: How often such a request is sent in all.
        wait_s: Seconds that the server asks to wait; None if it does not ask.
    """

    error: LangfuseError
    attempts: int = 1
    wait_s: float | None = None


class Answer(NamedTuple):
    """An answer. `headers` have names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_html(self) -> bool:
        """Whether it is a page for people."""
        return (
            "html" in self.headers.get("content-type", "").lower()
            or self.body[:256].lstrip()[:1] == b"<"
        )

    @property
    def looks_whole(self) -> bool:
        """Whether its body begins and ends as an object or a list does."""
        text = self.body.strip()
        return (text[:1], text[-1:]) in ((b"{", b"}"), (b"[", b"]"))


def judge(answer: Answer, path: str, credentials: Credentials, now: datetime) -> Failure | None:
    """What is wrong with an answer; None if it is good."""
    status = answer.status
    if 200 <= status < 300:
        if answer.is_html:
            html = errors.not_langfuse(credentials.base_url, path, status)
            return Failure(html, _AGAIN_IF_HTML)
        if not answer.looks_whole:
            return Failure(errors.broken(path, "half a body came", status), MANY)
        return None
    said = _said(answer, credentials)
    quoted = said and f": {said}"
    if status == 429:
        wait = asked_to_wait(answer.headers, now)
        return Failure(errors.rate_limited(path, wait), MANY, wait)
    if status >= 500 or status == 408:
        timed_out = "timeout" in said.lower() or "timed out" in said.lower()
        if status in _SLOW or timed_out:
            return Failure(errors.too_slow(path, status), _AGAIN_IF_SLOW)
        wait = asked_to_wait(answer.headers, now)
        return Failure(errors.failing(path, status, quoted), MANY, wait)
    return Failure(_final(answer, path, quoted, credentials))


def _final(answer: Answer, path: str, quoted: str, credentials: Credentials) -> LangfuseError:
    """The error that an answer of 3xx or 4xx is."""
    status = answer.status
    if status < 400:
        target = scrub(answer.headers.get("location", ""), credentials).partition("?")[0]
        where = target[:_LONGEST_QUOTE] or "another address"
        return errors.wrong_host(credentials.base_url, f"it sends on to {where}", status)
    if status == 401:
        return errors.unauthorized(credentials.base_url, quoted)
    if status == 403:
        return errors.organisation_key(path, quoted)
    if status in (404, 405, 410):
        return LangfuseError("gone", f"the server has no {path}{quoted}", None, status)
    if status in _TOO_MUCH:
        return errors.too_large(path, f"too much for the server ({status}{quoted})", status)
    if answer.is_html:
        return errors.not_langfuse(credentials.base_url, path, status)
    return LangfuseError("refused", f"{path} is refused with {status}{quoted}", None, status)


def _said(answer: Answer, credentials: Credentials) -> str:
    """What the server says is wrong, short and without keys; nothing if it is a page."""
    if answer.is_html:
        return ""
    value: Any
    try:
        value = decode_json(answer.body[:_LONGEST_READ])
    except (msgspec.DecodeError, RecursionError):
        value = answer.body[:_LONGEST_READ].decode("utf-8", "replace")
    if isinstance(value, dict):
        value = value.get("message") or value.get("error")
    text = value if isinstance(value, str) else ""
    return scrub(" ".join(text.split()), credentials)[:_LONGEST_QUOTE]


def broken(
    error: httpx.HTTPError, path: str, credentials: Credentials, *, reached: bool
) -> Failure:
    """What a failure without an answer is.

    Args:
        error: As httpx raised it.
        path: What was asked.
        credentials: Of the client.
        reached: Whether the server has answered anything before.
    """
    if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
        return Failure(errors.too_slow(path, None), _AGAIN_IF_SLOW)
    said = scrub(str(error) or type(error).__name__, credentials)[:_LONGEST_QUOTE]
    if isinstance(error, httpx.UnsupportedProtocol | httpx.DecodingError):
        return Failure(errors.wrong_host(credentials.base_url, f"no answer to read ({said})"))
    if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
        attempts = MANY if reached else _AGAIN_IF_NEVER_REACHED
        if "CERTIFICATE" in said.upper():
            attempts = 1
        unreachable = errors.wrong_host(credentials.base_url, f"cannot be reached ({said})")
        return Failure(unreachable, attempts)
    return Failure(errors.broken(path, f"the connection broke ({said})"), MANY)


def decoded(body: bytes, path: str) -> Any:
    """The JSON of a body, or the `Failure` that it is none."""
    try:
        return decode_json(body)
    except RecursionError:
        return Failure(errors.broken(path, "the JSON that came is nested too deeply"))
    except msgspec.DecodeError:
        return Failure(errors.broken(path, "broken JSON came"), MANY)


# Times in headers.


def asked_to_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Seconds that an answer asks to wait, in whichever spelling; None if it does not say."""
    text = headers.get("retry-after", "").strip()
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    when = http_date(text) or reset_time(headers.get("x-ratelimit-reset", ""))
    return None if when is None else max(0.0, (when - now).total_seconds())


def http_date(text: str) -> datetime | None:
    """A time as HTTP writes it; None if it is not one."""
    try:
        return _utc(parsedate_to_datetime(text))
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def reset_time(text: str) -> datetime | None:
    """A time as a number, in ISO 8601, or as JavaScript writes dates; None if it is none.

    The last is `Tue Dec 01 2026 03:04:05 GMT+0000 (Coordinated Universal Time)`. A number is in
    seconds, or in milliseconds if it is too large for that.
    """
    text = text.strip()
    for read in (_number, datetime.fromisoformat, _javascript):
        try:
            return _utc(read(text))
        except (ValueError, OverflowError, OSError):
            continue
    return None


def _number(text: str) -> datetime:
    number = float(text)
    return datetime.fromtimestamp(number / 1000 if number > 1e11 else number, UTC)


def _javascript(text: str) -> datetime:
    plain = text.partition(" (")[0].replace("GMT", "")
    return datetime.strptime(plain, "%a %b %d %Y %H:%M:%S %z")


def _utc(when: datetime) -> datetime:
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
