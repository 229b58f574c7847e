"""Answers and refusals, as the server words them; and the parameters of a request."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from .contents import milliseconds

JSON = "application/json; charset=utf-8"
HTML = "text/html; charset=utf-8"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)")
NO_SUCH_PAGE = (
    "<!DOCTYPE html><html><head><title>404: This page could not be found</title></head>"
    "<body><h1>404</h1><h2>This page could not be found.</h2></body></html>"
)


@dataclass
class Answer:
    """What goes over the wire.

    Attributes:
        rows: How many rows are in it, for those who count requests.
        broken: How the connection ends in the middle of it, if it does.
    """

    status: int
    body: bytes
    content_type: str = JSON
    headers: dict[str, str] = field(default_factory=dict)
    rows: int = 0
    broken: Literal["reset", "ended"] | None = None


def json_answer(value: Any, status: int = 200, rows: int = 0, **headers: str) -> Answer:
    """A JSON answer."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Answer(status, msgspec.json.encode(value), JSON, named, rows)


def html_answer(text: str, status: int) -> Answer:
    """A page for people: what proxies and unknown addresses answer."""
    return Answer(status, text.encode(), HTML)


class Refused(Exception):  # noqa: N818 - an answer, not a fault of the server
    """The request is answered with an error."""

    def __init__(self, status: int, body: Any) -> None:
        super().__init__(status)
        self.answer = json_answer(body, status)


def invalid(message: str) -> Refused:
    """A request that the server understands and does not take."""
    return Refused(400, {"message": message, "error": "InvalidRequestError"})


def malformed(path: str, code: str, message: str) -> Refused:
    """A parameter or body of the wrong shape."""
    issue = {"code": code, "path": path.split("."), "message": message}
    return Refused(400, {"message": "Invalid request data", "error": [issue]})


def not_found(what: str) -> Refused:
    """A thing that the project does not have."""
    return Refused(404, {"message": what, "error": "LangfuseNotFoundError"})


@dataclass(frozen=True)
class Params:
    """The query of a request: every parameter with all its values."""

    values: dict[str, list[str]]

    def text(self, name: str) -> str | None:
        """A parameter's (first) value; empty counts as not given."""
        return next((value for value in self.values.get(name, ()) if value), None)

    def has(self, name: str) -> bool:
        """Whether it is given at all, even if empty."""
        return name in self.values

    def many(self, name: str) -> list[str]:
        """All values of a parameter that may be repeated."""
        return [value for value in self.values.get(name, ()) if value]

    def time(self, name: str) -> int | None:
        """A time in milliseconds since 1970; it must say its offset."""
        text = self.text(name)
        if text is None:
            return None
        if not TIME.fullmatch(text):
            raise malformed(name, "invalid_format", "Invalid ISO datetime")
        return milliseconds(text)

    def flag(self, name: str) -> bool | None:
        """`true` or `false`."""
        text = self.text(name)
        if text not in {None, "true", "false"}:
            raise malformed(name, "invalid_value", 'Invalid option: expected one of "true"|"false"')
        return None if text is None else text == "true"

    def whole(self, name: str, default: int, most: int | None = None) -> int:
        """A whole number of at least 1."""
        text = self.text(name)
        if text is None:
            return default
        try:
            number = int(text)
        except ValueError:
            raise malformed(
                name, "invalid_type", "Invalid input: expected number, received NaN"
            ) from None
        if number < 1:
            raise malformed(name, "too_small", "Too small: expected number to be >=1")
        if most is not None and number > most:
            raise malformed(name, "too_big", f"Too big: expected number to be <={most}")
        return number
