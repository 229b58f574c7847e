"""What a changed file or call holds: elements inside a shared file, and evidence of values.

Belongs here: finding a named element in JSON, markup or code, and a contract's `match` in it.
Does not belong here: which calls changed what (`changes`) or whether that was demanded (the
plugins).

A name *occurs* in a text where no letter, digit or `_` adjoins it: `svcA` is not in `svcAll`.

A `match` is looked for in *documents*: a call's arguments and a file's content, as JSON where
they are JSON, as text elsewhere. Of an element that shares its file only its own part counts:
in JSON the value under its name, or the object whose `name` (or `id`) it is; in markup the tag
that carries it. In text a key's value is what stands after the key and `=` or `:`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import msgspec

from benchmark_assets.model.identity import canonical_json
from benchmark_assets.scoring.matching import is_matcher, mismatch, show

NAME_KEYS = ("name", "id")
"""Keys whose value is an element's name, where elements stand in a list."""

Finding = Literal["fits", "differs", "silent"]


def occurs(name: str, text: str) -> bool:
    """Whether a name occurs in a text as a word of its own."""
    # A plain search: an expression with a look-behind is tried at every character.
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        cut = _joins(text[start - 1 : start], name[:1]) or _joins(name[-1:], text[end : end + 1])
        if not cut:
            return True
        start = text.find(name, start + 1)
    return False


def _joins(left: str, right: str) -> bool:
    """Whether two characters, or the end of a text, belong to one word."""
    return _is_word(left) and _is_word(right)


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


@lru_cache(maxsize=4)
def parsed(text: str) -> Any:
    """The JSON value that a text holds: whole, or as members cut out of an object.

    An edit often shows `"svcA": {…},` alone, which is read as `{"svcA": {…}}`. None if the text
    holds no JSON object or list. One content is looked at for many things in a row, so the last
    few are kept: what is returned must not be changed.
    """
    for candidate in (text, "{" + text.strip().strip(",") + "}"):
        try:
            value = msgspec.json.decode(candidate)
        except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            continue
        if isinstance(value, dict | list):
            return value
    return None


def elements(data: Any) -> dict[str, Any] | None:
    """The named elements of a JSON document; None if it has none of the known forms.

    These are an object's members, or a list's objects by their `name` or `id`.
    """
    if isinstance(data, dict):
        return data
    if isinstance(data, list):
        named = {name: item for item in data if (name := _name_of(item)) is not None}
        return named if len(named) == len(data) else None
    return None


def _name_of(value: Any) -> str | None:
    if not isinstance(value, dict):
        return None
    return next((value[key] for key in NAME_KEYS if isinstance(value.get(key), str)), None)


def find_element(data: Any, name: str) -> list[Any]:
    """What a JSON document holds under a name, outermost first."""
    level, found = [data], []
    while level:
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                if any(value.get(key) == name for key in NAME_KEYS):
                    found.append(value)
                if name in value:
                    found.append(value[name])
                below += value.values()
            elif isinstance(value, list):
                below += value
        level = below
    return found


def is_named(data: Any, name: str) -> bool:
    """Whether a name is a key or a whole text in a JSON document: more than a mention of it.

    `svcA` is in `{"svcA": {}}` and `[{"name": "svcA"}]`, not in `{"b": {"of": "Variables.svcA"}}`.
    """
    level = [data]
    while level:
        if any(value == name or (isinstance(value, dict) and name in value) for value in level):
            return True
        level = [
            below
            for value in level
            if isinstance(value, dict | list)
            for below in (value.values() if isinstance(value, dict) else value)
        ]
    return False


# Evidence.


@dataclass(frozen=True)
class Evidenced:
    """What one document says about a `match`.

    Attributes:
        finding: It fits, it says something else, or it says nothing (or not all) of it.
        detail: What differs or is missing; empty where it fits.
    """

    finding: Finding
    detail: str = ""


def evidence_for(
    match: dict[str, Any] | Sequence[Any], documents: Iterable[Any], name: str | None
) -> Evidenced:
    """What documents say about a contract's `match`: the best that any of them says.

    Args:
        match: Values by dotted key, or values to be found anywhere.
        documents: JSON values; a text that is not JSON stays a text.
        name: Of an element that shares its file, so that only its own part counts.
    """
    best = Evidenced("silent", "nothing of it is there")
    for document in documents:
        for part in _parts(document, name):
            found = _by_key(match, part) if isinstance(match, dict) else _by_value(match, part)
            if found.finding == "fits":
                return found
            if (found.finding == "differs") >= (best.finding == "differs"):
                best = found
    return best


def _parts(document: Any, name: str | None) -> list[Any]:
    """The parts of a document that count: all of it, or what is an element's."""
    if name is None:
        return [document]
    if not isinstance(document, str):
        return find_element(document, name)
    if not occurs(name, document):
        return []
    quoted = re.escape(name)
    tags = re.findall(rf"<[^<>]*=\s*[\"']{quoted}[\"'][^<>]*>", document)
    return tags or [document]


def _by_key(match: dict[str, Any], part: Any) -> Evidenced:
    missing, differing = [], []
    for key, expected in match.items():
        values = list(_values_in_text(part, key) if isinstance(part, str) else _values(part, key))
        if not values:
            missing.append(key)
        elif not any(mismatch(expected, value, key) is None for value in values):
            differing.append(f"{key} is {show(values[0])}, expected {show(expected)}")
    if differing:
        return Evidenced("differs", "; ".join(differing))
    if missing:
        return Evidenced("silent", f"no {', '.join(missing)} there")
    return Evidenced("fits")


def _values(part: Any, key: str) -> Iterator[Any]:
    """Values at a dotted key, from any object in a JSON value."""
    if isinstance(part, dict):
        yield from _at(part, key)
        for item in part.values():
            yield from _values(item, key)
    elif isinstance(part, list):
        for item in part:
            yield from _values(item, key)
    elif isinstance(part, str):
        # A text inside JSON, such as the code that an argument holds.
        yield from _values_in_text(part, key)


def _at(value: dict[str, Any], key: str) -> Iterator[Any]:
    if key in value:
        yield value[key]
        return
    head, _, rest = key.partition(".")
    while rest:
        below = value.get(head)
        if isinstance(below, dict):
            yield from _at(below, rest)
        # A key may hold dots itself.
        step, _, rest = rest.partition(".")
        head += f".{step}"


def _values_in_text(text: str, key: str) -> Iterator[Any]:
    """What stands after a key and `=` or `:`; of a dotted key the last part is looked for."""
    last = key.rpartition(".")[2]
    found = re.finditer(
        rf"(?<![\w-]){re.escape(last)}[\"']?\s*[:=]\s*"
        r"(?:\"((?:[^\"\\]|\\.)*)\"|'((?:[^'\\]|\\.)*)'|([^\s,;<>()\[\]{}\"']+))",
        text,
    )
    for value in found:
        bare = value[3]
        if bare is None:
            yield value[1] if value[1] is not None else value[2]
            continue
        yield bare
        try:
            yield msgspec.json.decode(bare)
        except msgspec.DecodeError:
            continue


def _by_value(match: Sequence[Any], part: Any) -> Evidenced:
    missing = [value for value in match if not _holds(part, value)]
    if not missing:
        return Evidenced("fits")
    detail = f"no {', '.join(map(show, missing))} there"
    # Other values than the expected ones cannot be told from values of something else.
    return Evidenced("silent", detail)


def _holds(part: Any, value: Any) -> bool:
    if isinstance(part, str):
        if isinstance(value, str):
            return occurs(value, part)
        if is_matcher(value):
            return mismatch(value, part, "text") is None
        return occurs(str(value).lower() if isinstance(value, bool) else str(value), part)
    if isinstance(part, dict):
        return (
            mismatch(value, part, "value") is None
            or any(_holds(key, value) for key in part)
            or any(_holds(item, value) for item in part.values())
        )
    if isinstance(part, list):
        return mismatch(value, part, "value") is None or any(_holds(p, value) for p in part)
    return mismatch(value, part, "value") is None


def document_of(text: str) -> Any:
    """The JSON value that a content is, else the text itself."""
    value = parsed(text)
    return text if value is None else value


def with_json_read(value: Any, without: frozenset[str] = frozenset()) -> Any:
    """JSON data with the texts that hold JSON replaced by what they hold.

    Args:
        value: Such as a call's arguments.
        without: Texts to leave out, and data whose canonical JSON is one of them: what an edit
            replaced is no evidence of what it wrote.
    """
    if isinstance(value, str):
        return None if value in without else _read(value)
    if isinstance(value, dict | list) and without and canonical_json(value).decode() in without:
        return None
    if isinstance(value, dict):
        return {key: with_json_read(item, without) for key, item in value.items()}
    if isinstance(value, list):
        return [with_json_read(item, without) for item in value]
    return value


def _read(text: str) -> Any:
    return document_of(text) if text.lstrip()[:1] in ("{", "[", '"') else text
