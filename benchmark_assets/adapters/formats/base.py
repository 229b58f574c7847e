"""What a trace format is, and what it is given: the file's bytes and ways to look at them.

Belongs here: the protocol, the view of a file, and helpers that several formats need for
tolerant reading. Does not belong here: any one vendor's spelling.

A vendor's unknown key is kept or ignored, never fatal. A record that cannot be read becomes a
snapshot with `problem` set, so that it is counted; a file that is no trace at all raises
`InputError`.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Protocol

import msgspec

from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.trace import Origin, TraceSnapshot

_BOMS = (
    (b"\xef\xbb\xbf", "utf-8-sig"),
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)


SAMPLE_RECORDS = 100
"""How many records of a file are looked at to recognise its format."""

_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\."  # any other escape, an escaped backslash above all
)

UNFORESEEN = (
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
    RecursionError,
)
"""What a format that trips over a shape it did not expect may raise."""

LARGEST = 2**53
"""No count, duration or amount above this is believed: beyond it JSON numbers are not exact, and
the columns they are stored in end."""


def decode_json(text: bytes) -> Any:
    """Decode one JSON value; half of a surrogate pair reads as U+FFFD.

    Tools that cut texts by UTF-16 units leave such halves, and they are no reason to lose a file.

    Raises:
        msgspec.DecodeError: If it is not JSON.
        RecursionError: If it is nested too deeply.
    """
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        if b"\\u" not in text:
            raise
        mended = _ESCAPES.sub(lambda match: rb"\ufffd" if match[1] else match[0], text)
        if mended == text:
            raise
        try:
            return msgspec.json.decode(mended)
        except msgspec.DecodeError:
            # The offsets of the first error are those of the file.
            raise error from None


def printable(path: str) -> str:
    """A path as text that can be stored: Python keeps what is no text in it as surrogates."""
    return path.encode("utf-8", "backslashreplace").decode()


class TraceFile:
    """One file that may hold traces.

    Attributes:
        name: Path as people should see it in messages.
        key: Path relative to the source's root, `/`-separated; part of every `Origin`.
        data: The bytes.
    """

    def __init__(self, name: str, key: str, data: bytes) -> None:
        self.name = printable(name)
        self.key = printable(key)
        self.data = data

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of the bytes, in hex."""
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def text(self) -> bytes:
        """The content as UTF-8 without a byte order mark; UTF-16 and UTF-32 need their mark.

        Raises:
            InputError: If the bytes are in no Unicode encoding; names the first wrong byte.
        """
        for mark, encoding in _BOMS:
            if self.data.startswith(mark):
                try:
                    return self.data.decode(encoding).encode()
                except UnicodeDecodeError as error:
                    raise InputError(self._encoding_problem(error)) from error
        try:
            self.data.decode()
        except UnicodeDecodeError as error:
            raise InputError(self._encoding_problem(error)) from error
        return self.data

    @cached_property
    def json(self) -> Any:
        """The whole content as one JSON value.

        Raises:
            InputError: If it is empty, wrongly encoded or not JSON; names line and column.
        """
        if not self.text.strip():
            raise InputError(self.problem("is empty", cure="remove it or export the trace again"))
        try:
            return decode_json(self.text)
        except msgspec.DecodeError as error:
            raise InputError(self._json_problem(str(error), self.text, 0)) from error
        except RecursionError as error:
            raise InputError(self.problem("is nested too deeply to be read")) from error

    @cached_property
    def is_json(self) -> bool:
        """Whether the whole content is one JSON value."""
        try:
            _ = self.json
        except InputError:
            return False
        return True

    def lines(self) -> Iterator[tuple[int, Any | InputError]]:
        """Yield (1-based line number, JSON value) of each line that is not blank.

        A line that is not JSON yields an `InputError` in place of its value: the other lines
        of the file are still good.
        """
        start = 0
        number = 0
        text = self.text
        while start < len(text):
            end = text.find(b"\n", start)
            end = len(text) if end < 0 else end
            number += 1
            line = text[start:end]
            start = end + 1
            if not line.strip():
                continue
            try:
                yield number, decode_json(line)
            except (msgspec.DecodeError, RecursionError) as error:
                problem = self._json_problem(str(error), line, number - 1)
                yield number, InputError(problem)

    @cached_property
    def first_line(self) -> Any:
        """The JSON value on the first line that is not blank; None if there is none."""
        try:
            for _, value in self.lines():
                return None if isinstance(value, InputError) else value
        except InputError:
            return None
        return None

    @cached_property
    def sample(self) -> Any:
        """What formats look at to recognise their own.

        The JSON value of the whole file if it is one, else the first line that is a JSON object
        (a broken line must not hide the good ones after it), else None.
        """
        return self.json if self.is_json else self._first_object

    @cached_property
    def _first_object(self) -> dict[str, Any] | None:
        return next((value for value in self.records() if isinstance(value, dict)), None)

    def records(self) -> Iterator[Any]:
        """Yield the first records of the file, if it is a list or lines of them.

        For formats of one trace a record: one that is broken must not hide what the others are.
        At most `SAMPLE_RECORDS` are looked at.
        """
        if self.is_json:
            value = self.json
            yield from value[:SAMPLE_RECORDS] if isinstance(value, list) else (value,)
            return
        try:
            for _, value in itertools.islice(self.lines(), SAMPLE_RECORDS):
                if not isinstance(value, InputError):
                    yield value
        except InputError:
            return

    def origin(self, format_name: str, record: str | None = None) -> Origin:
        """Where a snapshot of this file came from."""
        return Origin(file=self.key, sha256=self.sha256, record=record, format=format_name)

    def made_id(self, record: str) -> str:
        """An id for a trace whose source gave none: the same on every machine."""
        return hashlib.sha256(f"{self.sha256}:{record}".encode()).hexdigest()[:32]

    def problem(
        self,
        message: str,
        *,
        line: int | None = None,
        key: str | None = None,
        cure: str | None = None,
    ) -> Problem:
        """A problem located in this file."""
        return Problem(message, file=self.name, line=line, key=key, cure=cure)

    def _encoding_problem(self, error: UnicodeDecodeError) -> Problem:
        line = self.data.count(b"\n", 0, error.start) + 1
        byte = self.data[error.start : error.start + 1].hex()
        return self.problem(
            f"is not UTF-8: byte 0x{byte} at offset {error.start}",
            line=line,
            cure="save it as UTF-8",
        )

    def _json_problem(self, message: str, text: bytes, lines_before: int) -> Problem:
        if "truncated" in message.lower():
            return self.problem(
                "is cut off in the middle of its JSON",
                line=lines_before + text.rstrip().count(b"\n") + 1,
                cure="export or copy it again",
            )
        head, _, tail = message.rpartition("(byte ")
        offset = tail.rstrip(")")
        if not head or not offset.isdigit():
            return self.problem(f"is not JSON: {message}", line=lines_before + 1)
        before = text[: int(offset)]
        line = lines_before + before.count(b"\n") + 1
        column = len(before) - (before.rfind(b"\n") + 1) + 1
        return self.problem(f"is not JSON: {head.strip()} at column {column}", line=line)


class TraceFormat(Protocol):
    """One way of writing traces down.

    Attributes:
        name: What `--format` and `Origin.format` call it.
        description: One line for people.
    """

    name: str
    description: str

    def matches(self, file: TraceFile) -> bool:
        """Whether the content is in this format. Must not raise."""
        ...

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield a snapshot per trace; an unreadable record yields one with `problem` set.

        Raises:
            InputError: If the file as a whole cannot be read.
        """
        ...


def parse_time(value: Any) -> datetime | None:
    """Read a time: ISO 8601 text (naive means UTC) or Unix seconds; None if it is neither."""
    if isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
        try:
            return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
        except OverflowError:
            return None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return datetime.fromtimestamp(value, UTC)
        except (OverflowError, OSError, ValueError):
            return None
    return None


def whole_number(value: Any, most: int = LARGEST) -> int | None:
    """A count as an int: 5, 5.0 and "5" are 5; None for anything else.

    A negative number is no count, and neither is one above `most`.
    """
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, int | float) and 0 <= value <= most:
        return int(value) if int(value) == value else None
    return None


def amount(value: Any) -> float | None:
    """A number from 0 to `LARGEST`, such as a cost; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= LARGEST else None


def text_or_none(value: Any) -> str | None:
    """A non-empty text; None for anything else."""
    return value if isinstance(value, str) and value else None


def id_or_none(value: Any) -> str | None:
    """An id as text: a non-empty text or a whole number; None for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return text_or_none(value)
