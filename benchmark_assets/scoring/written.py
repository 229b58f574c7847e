"""Named things in texts that an agent wrote, and the values in them that are worth demanding.

Belongs here: finding a page's variables, widgets and functions in JSON, markup and code without
knowing their names, which of them a change is about, and which of their values stay the same
from run to run. Does not belong here: whether a known name occurs (`content`), or what is made
of it (`infer_contract`).

Only what a text shows plainly is found: the members of a whole JSON document; tags with a
`name`; functions written `Page.x = function` or, at the start of a line, `function x`. In a
fragment of JSON, which an edit often is, a member counts as an element if it says its own name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmark_assets.model.trace import Replacement
from benchmark_assets.scoring.changes import Change
from benchmark_assets.scoring.content import NAME_KEYS, elements, parsed

Fields = Mapping[str, Any]
"""What is known of an element: a variable's members, a tag's attributes, a function's code."""

PAGE_TAG = "wm-page"
"""The tag that is the page itself and no widget of it."""

MOST_VALUES = 5
"""Values that a `match` is filled with at most: enough to tell a binding, few enough to review."""

LONGEST_VALUE = 100
"""Longest text, in characters, that a `match` is filled with."""

DEEPEST = 3
"""Objects inside one another that values are taken from."""

_FIRST = ("category", "type", "service", "operation", "operationId", "dataSet", "dataset")
"""Keys that say what something is bound to: the first to be kept where there are many."""

_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TAG = re.compile(r"""<(?P<tag>[A-Za-z][\w:.-]*)(?P<attributes>(?:[^<>"']|"[^"]*"|'[^']*')*)>""")
_ATTRIBUTE = re.compile(
    r"""(?P<key>[^\s"'<>/=]+)\s*=\s*"""
    r"""(?:"(?P<value>[^"]*)"|'(?P<single>[^']*)'|(?P<bare>[^\s"'<>]+))"""
)
_FUNCTION = re.compile(
    r"^[ \t]*Page\.(?P<member>[A-Za-z_$][\w$]*)\s*=\s*(?:async\b\s*)?(?:function\b|\([^()\n]*\)\s*=>)"
    r"|^(?:export\s+)?(?:default\s+)?(?:async\s+)?function\s*\*?\s*(?P<name>[A-Za-z_$][\w$]*)\s*\(",
    re.MULTILINE,
)
_TRIES = 1000
"""Objects that a fragment may cut off before no more are looked for: each is read to its end."""

_MEMBER = re.compile(r'("(?:[^"\\\n]|\\.)+")\s*:\s*(?=\{)')


# Elements.


def elements_in(kind: str, text: str) -> dict[str, Fields] | None:
    """The named elements of a page's part; None if the text cannot be read as such a part.

    Args:
        kind: `variable`, `widget` or `javascript`.
        text: A whole file or a fragment of one.
    """
    if kind == "widget":
        return _tags(text)
    if kind == "javascript":
        return _functions(text)
    found = elements(parsed(text)) if text.strip() else {}
    if found is None:
        return None
    return {name: value if isinstance(value, dict) else {} for name, value in found.items()}


@dataclass(frozen=True)
class Element:
    """An element that a change is about, as it was and as it is; None where it is not there."""

    name: str
    before: Fields | None
    after: Fields | None


def changed_elements(kind: str, change: Change) -> list[Element]:
    """The elements of a file that a change is about, as far as its texts name them.

    Two contents are compared where both are known. Else only what an edit itself shows counts:
    that a whole file was written over an unknown one does not tell what changed in it.
    """
    old_text = "" if change.existed is False else change.before
    new_text = change.after if change.exists else ""
    if old_text is not None and new_text is not None:
        old, new = elements_in(kind, old_text), elements_in(kind, new_text)
        if old is not None and new is not None:
            return _different(old, new)
    added = () if change.event.text is None else (Replacement(old="", new=change.event.text),)
    return [
        element
        for edit in (*change.event.edits, *added)
        for element in _different(_fragment(kind, edit.old), _fragment(kind, edit.new))
    ]


def _different(old: Mapping[str, Fields], new: Mapping[str, Fields]) -> list[Element]:
    names = dict.fromkeys([*new, *old])
    return [
        Element(name, old.get(name), new.get(name))
        for name in names
        if name.strip() and old.get(name) != new.get(name)
    ]


def _fragment(kind: str, text: str) -> dict[str, Fields]:
    if kind != "variable":
        return elements_in(kind, text) or {}
    found: dict[str, Fields] = {}
    position, failed = 0, 0
    decoder = json.JSONDecoder()
    while failed < _TRIES and (member := _MEMBER.search(text, position)) is not None:
        position = member.end()
        try:
            name = json.loads(member[1])
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            failed += 1
            continue
        if any(value.get(key) == name for key in NAME_KEYS):
            found[name] = value
    return found


def _tags(text: str) -> dict[str, Fields]:
    """The attributes of tags that have a name, as they are written, by that name."""
    found: dict[str, Fields] = {}
    for tag in _TAG.finditer(_COMMENT.sub("", text)):
        given = {
            attribute["key"]: attribute["value"] or attribute["single"] or attribute["bare"] or ""
            for attribute in _ATTRIBUTE.finditer(tag["attributes"])
        }
        name = given.pop("name", None)
        if name and tag["tag"] != PAGE_TAG:
            found.setdefault(name, given)
    return found


def _functions(text: str) -> dict[str, Fields]:
    heads = list(_FUNCTION.finditer(text))
    ends = [*(head.start() for head in heads[1:]), len(text)]
    return {
        head["member"] or head["name"]: {"code": text[head.start() : end].strip()}
        for head, end in zip(heads, ends, strict=False)
    }


# Values.


_PASSING = re.compile(
    r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"  # UUID
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}:[0-9]{2}:[0-9]{2}"  # date, time
    r"|[0-9]{6,}|^[0-9][0-9.,]*$"  # long numbers; texts that are nothing but a number
    r"|(?=[0-9a-fA-F]*[0-9])[0-9a-fA-F]{12,}"  # hash
    r"|(?=(?:[A-Za-z_-]*[0-9]){5})[A-Za-z0-9_-]{20,}"  # other generated ids
)
_SECRET = re.compile(r"(?i)passw|secret|(?:^|[_-])token$|api[_-]?key|credential|authoriz")


@dataclass(frozen=True)
class Values:
    """The values of a `match`, and the keys whose values were left out as passing or secret."""

    kept: dict[str, str]
    left_out: tuple[str, ...] = ()


def values_to_match(
    new: Fields | None,
    old: Fields | None = None,
    *,
    name: str | None = None,
    most: int = MOST_VALUES,
    depth: int = DEEPEST,
) -> Values:
    """The texts that tell what was written, by dotted key: a handful, and none that passes.

    Args:
        new: What is there now.
        old: What was there before; values that were there already say nothing.
        name: The element's own name, which needs no value to tell it.
        most: How many values to keep.
        depth: How many objects inside one another to look into.
    """
    before = dict(_texts(old or {}, depth))
    texts = {
        key: text
        for key, text in _texts(new or {}, depth)
        if text != before.get(key) and not (key in NAME_KEYS and text == name) and _short(text)
    }
    left_out = [key for key, text in texts.items() if _passes(key, text)]
    kept = sorted(
        (key for key in texts if key not in left_out),
        key=lambda key: key.rpartition(".")[2] not in _FIRST,
    )
    return Values({key: texts[key] for key in kept[:most]}, tuple(left_out))


def _texts(fields: Fields, depth: int, lead: str = "") -> Iterator[tuple[str, str]]:
    for key, value in fields.items():
        if isinstance(value, str) and key.strip():
            yield f"{lead}{key}", value
        elif isinstance(value, dict) and depth > 1:
            yield from _texts(value, depth - 1, f"{lead}{key}.")


def _passes(key: str, text: str) -> bool:
    return _PASSING.search(text) is not None or _SECRET.search(key.rpartition(".")[2]) is not None


def _short(text: str) -> bool:
    return bool(text.strip()) and len(text) <= LONGEST_VALUE and "\n" not in text
