"""What everything that a person writes is made of: the base of a section, texts, names, patterns.

Belongs here: types that contracts, profiles and `benchmark.yaml` share, validated alike. Does not
belong here: any section (`contract`, `resources`, `harness`, `project`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

Scalar = str | int | float | bool


class Section(BaseModel):
    """Base of everything a person writes: frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _one_or_many(value: Any) -> Any:
    """Let a person write `x` for `[x]`; lists become tuples, the only frozen sequence."""
    if isinstance(value, list):
        return tuple(value)
    return value if value is None or isinstance(value, tuple) else (value,)


def _regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return pattern


def _json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError) as error:
        raise ValueError(f"is not a JSON Schema: {error}") from error
    flaw = _schema_flaw(text)
    if flaw is not None:
        raise ValueError(flaw)
    return schema


@lru_cache(maxsize=1024)
def _schema_flaw(text: str) -> str | None:
    """Why something is no JSON Schema; None if it is one.

    Remembered: many fixtures have the same, and checking one takes longer than all else of them.
    """
    schema = json.loads(text)
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        at = "/".join(str(part) for part in error.absolute_path)
        return f"is not a JSON Schema: {error.message}" + (f" at {at}" if at else "")
    resource = DRAFT202012.create_resource(schema)
    try:
        _check_references(schema, EMPTY_REGISTRY.resolver_with_root(resource).lookup)
    except ValueError as error:
        return str(error)
    return None


LookUp = Callable[[str], Any]
"""Resolves a reference inside one schema; nothing is fetched from elsewhere."""

_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
"""Keywords under which keys are names, so that `default` is a schema there and not a value."""


def _check_references(part: Any, look_up: LookUp, path: tuple[str, ...] = ()) -> None:
    """Refuse references that lead nowhere: found when the contract loads, not at night."""
    if isinstance(part, list):
        for index, item in enumerate(part):
            _check_references(item, look_up, (*path, str(index)))
    if not isinstance(part, dict):
        return
    for keyword in ("$ref", "$dynamicRef"):
        reference = part.get(keyword)
        if isinstance(reference, str) and not _leads_somewhere(reference, look_up):
            raise ValueError(
                f"is not a JSON Schema: {keyword} leads nowhere in this schema: {reference} "
                f"at {'/'.join((*path, keyword))}"
            )
    for key, item in part.items():
        if key in _NAMED and isinstance(item, dict):
            for name, named in item.items():
                _check_references(named, look_up, (*path, key, name))
        elif key not in ("const", "enum", "default", "examples"):
            _check_references(item, look_up, (*path, key))


def _leads_somewhere(reference: str, look_up: LookUp) -> bool:
    try:
        found = look_up(reference).contents
    except (Unresolvable, ValueError, TypeError):  # The latter two: a step into what has none.
        return False
    return isinstance(found, dict | bool)


def _visible(text: str) -> str:
    if not text.strip():
        raise ValueError("holds only white space; write a text, or remove it")
    return text


NonEmpty = Annotated[str, Field(min_length=1), AfterValidator(_visible)]
Names = Annotated[
    tuple[NonEmpty, ...],
    BeforeValidator(_one_or_many, json_schema_input_type=NonEmpty | tuple[NonEmpty, ...]),
]
"""One name or a list of names; `*`, `?` and `[…]` are globs where tools are named."""

SomeNames = Annotated[
    tuple[NonEmpty, ...],
    BeforeValidator(
        _one_or_many,
        json_schema_input_type=NonEmpty | Annotated[tuple[NonEmpty, ...], Field(min_length=1)],
    ),
    # Last, so that a list whose only item is wrong is not said to be empty, too.
    Field(min_length=1),
]
"""At least one name: a list of none would be a condition that nothing meets."""

Regex = Annotated[str, Field(min_length=1), AfterValidator(_regex)]
JsonSchema = Annotated[dict[str, Any], AfterValidator(_json_schema)]
