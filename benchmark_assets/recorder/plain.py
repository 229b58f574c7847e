"""Any Python value as JSON data, copied, so that nothing the agent does later changes it.

Belongs here: what becomes of values that JSON does not have. Does not belong here: hiding values
(`redaction`).

Objects with a form of their own in JSON take it: dataclasses, pydantic models, enumerations,
tuples, sets (sorted, since their order is no one's). What has none becomes its text, and is
*marked*: the place is listed, so that a text that was one is told from a text that was made.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from numbers import Integral
from typing import Any, NamedTuple

from benchmark_assets.model.identity import canonical_json

DEEPEST = 100
"""Levels of nesting that are kept; what lies deeper, a cycle above all, becomes its text."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1


class Plain(NamedTuple):
    """A value as JSON data.

    Attributes:
        value: None, a bool, number or text, or lists and objects of them.
        as_text: JSON Pointers below the value of what became a text; `""` is the value itself.
    """

    value: Any
    as_text: tuple[str, ...] = ()


def plain(value: Any) -> Plain:
    """Copy a value as JSON data. Never raises an `Exception`, whatever the value does when read."""
    marks: list[str] = []
    return Plain(_copy(value, "", 0, marks), tuple(marks))


def pointer(parent: str, key: str | int) -> str:
    """The JSON Pointer (RFC 6901) of a part of what `parent` points to."""
    return f"{parent}/{str(key).replace('~', '~0').replace('/', '~1')}"


def clean(text: str) -> str:
    """A text that UTF-8 can hold: halves of surrogate pairs become U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    # A subclass may say something else whenever it is asked.
    return str.__str__(text)


def _copy(value: Any, path: str, depth: int, marks: list[str]) -> Any:
    if value is None or value is True or value is False:
        return value
    try:
        known, copied = _known(value, path, depth, marks)
    except Exception:  # noqa: BLE001 - the agent's own code runs here, and recording must not break it
        known, copied = False, None
    if known:
        return copied
    # What was marked inside of it is inside of its text now.
    marks[:] = [mark for mark in marks if not mark.startswith(f"{path}/")]
    marks.append(path)
    return _text(value)


def _known(value: Any, path: str, depth: int, marks: list[str]) -> tuple[bool, Any]:
    """Whether JSON has such a value, and the copy."""
    if isinstance(value, Enum):
        return True, _copy(value.value, path, depth + 1, marks)
    if isinstance(value, str):
        text = clean(value)
        if text != value:
            marks.append(path)
        return True, text
    if isinstance(value, Integral):
        number = int(value)
        return _SMALLEST <= number <= _LARGEST, number
    if isinstance(value, float):
        return math.isfinite(value), float(value)
    if depth >= DEEPEST:
        return False, None
    if isinstance(value, Mapping):
        return True, _object(value.items(), path, depth, marks)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return True, [
            _copy(item, pointer(path, at), depth + 1, marks) for at, item in enumerate(value)
        ]
    if isinstance(value, AbstractSet):
        return True, _sorted(value, path, depth, marks)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
        return True, _object(fields, path, depth, marks)
    dump = getattr(type(value), "model_dump", None)
    if callable(dump):
        return True, _copy(dump(value, mode="json", by_alias=True), path, depth + 1, marks)
    return False, None


def _object(items: Iterable[tuple[Any, Any]], path: str, depth: int, marks: list[str]) -> Any:
    copied: dict[str, Any] = {}
    for key, item in items:
        name = clean(key) if isinstance(key, str) else _text(key)
        if name in copied:  # 1 and "1" are two keys here, and one in JSON.
            name = f"{name} ({type(key).__name__})"
        at = pointer(path, name)
        if name != key:
            marks.append(at)
        copied[name] = _copy(item, at, depth + 1, marks)
    return copied


def _sorted(items: Iterable[Any], path: str, depth: int, marks: list[str]) -> list[Any]:
    found: list[tuple[bytes, Any, list[str]]] = []
    for item in items:
        inner: list[str] = []
        copied = _copy(item, "", depth + 1, inner)
        found.append((canonical_json(copied), copied, inner))
    found.sort(key=lambda each: each[0])
    for at, (_, _, inner) in enumerate(found):
        marks.extend(pointer(path, at) + mark for mark in inner)
    return [copied for _, copied, _ in found]


def _text(value: Any) -> str:
    """What a value says of itself, without the address that differs from run to run."""
    try:
        return clean(_ADDRESS.sub("", str(value)))
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__name__}>"
