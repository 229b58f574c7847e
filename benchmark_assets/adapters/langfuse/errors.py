"""How a request to Langfuse can fail for good, in words that say what to do.

Belongs here: the error, its kinds and their texts. Does not belong here: when an answer is one
(`answers`), when a request is sent again (`http`).
"""

from __future__ import annotations

from typing import Any, Literal

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
"""What went wrong: the address; a page of HTML; the keys (401); keys that may not (403); no such
endpoint or trace (404); a request the server does not understand (other 4xx); an answer too large
or too slow for the server or for us; 429 for too long; our deadline; our budget of requests; 5xx
for too long; broken connections and bodies for too long."""


class LangfuseError(InputError):
    """A request failed for good. No part of it holds a key, nor does what it refers to.

    Attributes:
        kind: What went wrong, for programs.
        message: The same in words.
        cure: What to do about it.
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


def wrong_host(base_url: str, what: str, status: int | None = None) -> LangfuseError:
    """The address leads nowhere, or elsewhere."""
    return LangfuseError(
        "wrong_host",
        f"{base_url}: {what}",
        "check LANGFUSE_BASE_URL, and that this machine can reach it",
        status,
    )


def not_langfuse(base_url: str, path: str, status: int) -> LangfuseError:
    """A page for people where an answer for programs should be."""
    return LangfuseError(
        "not_langfuse",
        f"{base_url} answers {path} with a page of HTML ({status})",
        "check LANGFUSE_BASE_URL: it is Langfuse's address, and no login page or proxy may stand "
        "before it",
        status,
    )


def unauthorized(base_url: str, quoted: str) -> LangfuseError:
    """The keys are wrong."""
    return LangfuseError(
        "unauthorized",
        f"{base_url} does not accept the keys{quoted}",
        "check that LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are of one project, and of a "
        "project on this server: each region and each server has keys of its own",
        401,
    )


def organisation_key(path: str, quoted: str) -> LangfuseError:
    """The keys are right and may not."""
    return LangfuseError(
        "organisation_key",
        f"the keys may not read {path}{quoted}",
        "use a project's keys; those of an organisation cannot read traces",
        403,
    )


def too_slow(path: str, status: int | None) -> LangfuseError:
    """The server, or what stands before it, gave up on the question."""
    answer = f"answered with {status}" if status else "not answered"
    return LangfuseError(
        "too_large",
        f"{path} took the server too long ({answer})",
        "ask for a shorter time, or allow it more seconds an answer",
        status,
    )


def too_large(path: str, what: str, status: int | None) -> LangfuseError:
    """The answer is too much for the server, or for us."""
    return LangfuseError(
        "too_large", f"{path}: {what}", "ask for a shorter time, or for fewer at a time", status
    )


def rate_limited(path: str, wait_s: float | None) -> LangfuseError:
    """More requests than the server allows."""
    asked = "" if wait_s is None else f", and asks to wait {wait_s:,.0f} seconds"
    return LangfuseError(
        "rate_limited",
        f"{path} is refused with 429: more requests than the server allows{asked}",
        "wait, ask for less, or set requests_per_minute to what your plan allows",
        429,
    )


def failing(path: str, status: int, quoted: str) -> LangfuseError:
    """The server has a fault."""
    return LangfuseError(
        "server",
        f"{path} is answered with {status}{quoted}",
        "the server has a fault: try again later, or look at its logs",
        status,
    )


def broken(path: str, what: str, status: int | None = None) -> LangfuseError:
    """The answer did not arrive whole."""
    return LangfuseError(
        "connection",
        f"{path}: {what}",
        "try again; if it stays so, look at what stands before the server",
        status,
    )


def late(deadline_s: float | None, last: str = "") -> LangfuseError:
    """Our deadline is over."""
    seconds = f"{deadline_s or 0:g} seconds"
    return LangfuseError(
        "deadline",
        f"not done in {seconds}{last and f'; the last answer: {last}'}",
        "allow more time, or ask for less",
    )


def spent(requests: int) -> LangfuseError:
    """Our budget of requests is used up."""
    return LangfuseError(
        "budget",
        f"{requests:,} requests were sent, as many as are allowed",
        "allow more, or ask for less",
    )
