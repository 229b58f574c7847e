"""What stands at a place of a tool call's arguments or result.

Belongs here: following the places of a harness profile (`model.harness`), reading signs, and
the text of a result. Does not belong here: what is concluded from it (`activity`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from benchmark_assets.model.harness import ITEMS, Sign, place_steps
from benchmark_assets.scoring.matching import same_value

Position = tuple[int, ...]
"""Index in each list that was stepped through, outermost first."""

_steps = lru_cache(maxsize=4096)(place_steps)


@dataclass(frozen=True, slots=True)
class Found:
    """A value, and its position in the lists that were stepped through to it."""

    value: Any
    position: Position = ()


def found_at(data: Any, place: str) -> list[Found]:
    """All that stands at a place, in order; nothing if the place is not there or holds null."""
    steps = _steps(place)
    # Most places of a profile are not in most calls; many calls make that worth a look first.
    if isinstance(data, dict) and steps and steps[0] is not ITEMS and steps[0] not in data:
        return []
    found = [Found(data)]
    for step in steps:
        found = [inner for outer in found for inner in _below(outer, step)]
    return [item for item in found if item.value is not None]


def first_at(data: Any, places: Iterable[str], kind: type = object) -> list[Found]:
    """What stands at the first place that leads to values of a kind (those only); else nothing."""
    for place in places:
        found = [item for item in found_at(data, place) if isinstance(item.value, kind)]
        if found:
            return found
    return []


def belongs(part: Position, whole: Position) -> bool:
    """Whether what stands at one position goes with what stands at another.

    It does if they agree as far as both go: the third content with the third path, one content
    with all paths, all edits with their one file.
    """
    return all(a == b for a, b in zip(part, whole, strict=False))


def text_of(result: Any) -> str:
    """The text of a result, as people would read it.

    A text is itself; content blocks are their texts, one a line, blocks without text such as
    images left out; an object with a `content` or `text` is that one's text; other data are
    their JSON.
    """
    if result is None:
        return ""
    if isinstance(result, str):
        return result
    if isinstance(result, dict):
        for key in ("content", "text"):
            if isinstance(result.get(key), str | list):
                return text_of(result[key])
    if isinstance(result, list) and result and all(map(_is_block, result)):
        return "\n".join(item["text"] for item in result if isinstance(item.get("text"), str))
    return json.dumps(result, ensure_ascii=False, default=str)


def shown(result: Any, signs: Sequence[Sign]) -> list[Found]:
    """Where a result shows one of the signs: the positions found, none if it does not."""
    return [found for sign in signs for found in _shown(result, sign)]


def list_length(result: Any, place: str | None) -> int | None:
    """Length of the first list that a place steps through; None if it steps through none."""
    steps = _steps(place) if place is not None else ()
    if ITEMS not in steps:
        return None
    found = [Found(result)]
    for step in steps[: steps.index(ITEMS) + 1]:
        found = [inner for outer in found for inner in _below(outer, step)]
    return len(found)


def _shown(result: Any, sign: Sign) -> list[Found]:
    if result is None:
        return []
    places = [Found(text_of(result))] if sign.at is None else found_at(result, sign.at)
    return [found for found in places if _fits(found.value, sign)]


def _fits(value: Any, sign: Sign) -> bool:
    if sign.equals is not None:
        return any(same_value(wanted, value) for wanted in sign.equals)
    if sign.regex is not None:
        return re.search(sign.regex, text_of(value)) is not None
    return bool(value)


def _is_block(item: Any) -> bool:
    return isinstance(item, dict) and isinstance(item.get("type"), str)


def _below(found: Found, step: str | None) -> list[Found]:
    value = _opened(found.value)
    if step is ITEMS:
        items = value if isinstance(value, list) else []
        return [Found(item, (*found.position, index)) for index, item in enumerate(items)]
    return [Found(value[step], found.position)] if isinstance(value, dict) and step in value else []


def _opened(value: Any) -> Any:
    """The data of a text that is JSON of a list or an object; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return _parsed(value)
    return value


@lru_cache(maxsize=8)
def _parsed(text: str) -> Any:
    """The data of a JSON text, or the text; one result is looked at for many signs in a row."""
    try:
        # Unlike `json` it refuses `NaN` and lone surrogates, which could not be stored.
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
