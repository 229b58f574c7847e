"""Telling quickly whether a payload fits a JSON Schema.

Belongs here: the keywords that most schemas of final payloads are made of, compiled once. Does not
belong here: saying what is wrong, and any other schema: both are left to the validator
(`plugins/final_output`). It only ever saves work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Fits = Callable[[Any], bool]
"""Whether a value, as JSON is decoded, fits."""

Compile = Callable[[Any, Mapping[str, Any]], Fits | None]
"""Compiles a keyword's value, given the schema that it stands in."""

_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "$comment", "deprecated"})

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}


def quick_schema(schema: Any) -> Fits | None:
    """Compile a schema; None if it has a keyword or a value that is not known here."""
    if not isinstance(schema, Mapping):
        return None
    tests: list[Fits] = []
    for keyword, value in schema.items():
        if keyword in _ANNOTATIONS:
            continue
        compile_ = _KEYWORDS.get(keyword)
        test = None if compile_ is None else compile_(value, schema)
        if test is None:
            return None
        tests.append(test)
    if len(tests) == 1:
        return tests[0]

    def fits(value: Any) -> bool:
        for test in tests:  # noqa: SIM110 - `all` over a generator takes twice as long
            if not test(value):
                return False
        return True

    return fits


def _type(value: Any, schema: Mapping[str, Any]) -> Fits | None:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(n, str) and n in _TYPES for n in names):
        return None
    # By the type itself, so that true is no integer.
    allowed = frozenset(kind for name in names for kind in _TYPES[name])
    if int in allowed and float not in allowed:
        # A whole number is an integer however it is written.
        return lambda item: type(item) in allowed or (type(item) is float and item.is_integer())
    return lambda item: type(item) in allowed


def _enum(value: Any, schema: Mapping[str, Any]) -> Fits | None:
    # Texts alone: 1, 1.0 and true are equal in Python, and not all of them in JSON.
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return None
    allowed = frozenset(value)
    return lambda item: isinstance(item, str) and item in allowed


def _const(value: Any, schema: Mapping[str, Any]) -> Fits | None:
    return _enum([value], schema)


def _required(value: Any, schema: Mapping[str, Any]) -> Fits | None:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        return None
    names = frozenset(value)
    return lambda item: not isinstance(item, dict) or names <= item.keys()


def _properties(value: Any, schema: Mapping[str, Any]) -> Fits | None:
    if not isinstance(value, Mapping):
        return None
    tests = [(name, quick_schema(inner)) for name, inner in value.items()]
    known = [(name, test) for name, test in tests if test is not None]
    if len(known) < len(tests):
        return None

    def fits(item: Any) -> bool:
        if isinstance(item, dict):
            for name, test in known:
                if name in item and not test(item[name]):
                    return False
        return True

    return fits


def _additional(value: Any, schema: Mapping[str, Any]) -> Fits | None:
    if value is True:
        return lambda item: True
    if value is not False or "patternProperties" in schema:
        return None
    names = frozenset(schema.get("properties", ()))
    return lambda item: not isinstance(item, dict) or item.keys() <= names


def _items(value: Any, schema: Mapping[str, Any]) -> Fits | None:
    test = None if "prefixItems" in schema else quick_schema(value)
    if test is None:
        return None
    return lambda item: not isinstance(item, list) or all(map(test, item))


def _pattern(value: Any, schema: Mapping[str, Any]) -> Fits | None:
    try:
        search = re.compile(value).search
    except (re.error, TypeError):
        return None
    return lambda item: not isinstance(item, str) or search(item) is not None


def _bound(kinds: tuple[type, ...], within: Callable[[Any, Any], bool]) -> Compile:
    """A keyword that compares numbers, or lengths, with a number."""

    def compile_(value: Any, schema: Mapping[str, Any]) -> Fits | None:
        if type(value) not in (int, float):
            return None
        return lambda item: type(item) not in kinds or within(item, value)

    return compile_


_KEYWORDS: dict[str, Compile] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "required": _required,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "pattern": _pattern,
    "minimum": _bound((int, float), lambda item, limit: item >= limit),
    "maximum": _bound((int, float), lambda item, limit: item <= limit),
    "minLength": _bound((str,), lambda item, limit: len(item) >= limit),
    "maxLength": _bound((str,), lambda item, limit: len(item) <= limit),
    "minItems": _bound((list,), lambda item, limit: len(item) >= limit),
    "maxItems": _bound((list,), lambda item, limit: len(item) <= limit),
}
