"""The `filter` parameter: conditions as JSON, all of which must hold.

Belongs here: reading conditions, and whether a value meets one. Does not belong here: which
columns an endpoint has (`v1`, `v2`).

Parameters that filter are conditions too. A condition of the `filter` parameter replaces the
parameters on the same column and leaves those on others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .answers import TIME, Params, invalid, malformed
from .contents import milliseconds

TEXT = ("=", "contains", "does not contain", "starts with", "ends with")
ORDER = ("=", ">", "<", ">=", "<=")
OPERATORS: dict[str, tuple[str, ...]] = {
    "datetime": (">", "<", ">=", "<="),
    "string": TEXT,
    "stringOptions": ("any of", "none of"),
    "categoryOptions": ("any of", "none of"),
    "arrayOptions": ("any of", "none of", "all of"),
    "number": ORDER,
    "stringObject": TEXT,
    "numberObject": ORDER,
    "boolean": ("=", "<>"),
    "null": ("is null", "is not null"),
}
KEYED = ("stringObject", "numberObject", "categoryOptions")
LITERAL = "matches"

Columns = Mapping[str, Callable[[Any], Any]]


@dataclass(frozen=True)
class Condition:
    """One condition. `value` is hashable: lists are tuples, times milliseconds."""

    type: str
    column: str
    operator: str
    value: Any = None
    key: str | None = None


def conditions(params: Params, given: Sequence[Condition], *, literal: bool) -> list[Condition]:
    """What a request asks for: its `filter`, and its parameters on other columns.

    Args:
        params: The request's.
        given: The conditions that the parameters stand for.
        literal: Whether texts can be searched with `matches`.
    """
    named = read_filter(params.text("filter"), literal=literal)
    taken = {condition.column for condition in named}
    return [*named, *(condition for condition in given if condition.column not in taken)]


def read_filter(text: str | None, *, literal: bool) -> list[Condition]:
    """The conditions of a `filter` parameter."""
    if not text:
        return []
    try:
        given = json.loads(text)
    except ValueError:
        raise invalid("Invalid JSON in filter parameter") from None
    if not isinstance(given, list):
        raise malformed("filter", "invalid_type", "Invalid input: expected array")
    return [_condition(row, f"filter.{i}", literal=literal) for i, row in enumerate(given)]


def _condition(row: Any, path: str, *, literal: bool) -> Condition:
    kind = row.get("type") if isinstance(row, dict) else None
    if kind not in OPERATORS or not isinstance(row.get("column"), str):
        raise malformed(f"{path}.type", "invalid_union", "Invalid discriminator value")
    known = OPERATORS[kind]
    if literal and kind in {"string", "stringObject"}:
        known = (*known, LITERAL)
    if row.get("operator") not in known:
        listed = "|".join(f'"{operator}"' for operator in known)
        raise malformed(f"{path}.operator", "invalid_value", f"Invalid option: one of {listed}")
    if kind in KEYED and not isinstance(row.get("key"), str):
        raise malformed(f"{path}.key", "invalid_type", "Invalid input: expected string")
    value = _value(kind, row.get("value"), f"{path}.value")
    return Condition(kind, row["column"], row["operator"], value, row.get("key"))


def _value(kind: str, value: Any, path: str) -> Any:
    if kind == "datetime":
        if not isinstance(value, str) or not TIME.fullmatch(value):
            raise malformed(path, "invalid_type", "Invalid input: expected date")
        return milliseconds(value)
    if kind.endswith("Options"):
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise malformed(path, "invalid_type", "Invalid input: expected array")
        return tuple(value)
    wanted = {"string": str, "stringObject": str, "boolean": bool}.get(kind, (int, float))
    if kind != "null" and not isinstance(value, wanted):
        raise malformed(path, "invalid_type", "Invalid input")
    return value


def keep(found: Sequence[Condition], columns: Columns) -> Callable[[Any], bool]:
    """Whether a thing meets all conditions."""
    for condition in found:
        if condition.column not in columns:
            raise invalid(f"Column {condition.column} does not match a UI / CH table mapping.")
    tests = [(condition, columns[condition.column]) for condition in found]
    return lambda thing: all(meets(condition, read(thing)) for condition, read in tests)


def meets(condition: Condition, value: Any) -> bool:
    """Whether a column's value meets a condition; a missing value meets none but `is null`."""
    operator, wanted = condition.operator, condition.value
    if condition.type == "null":
        return (value is None) == (operator == "is null")
    if condition.type.endswith("Object"):
        value = _keyed(condition, value)
    if condition.type == "categoryOptions" or value is None:
        # On metadata the server compares `key:value` with whole entries, which never match.
        return False
    if condition.type == "arrayOptions":
        shared = set(wanted) & set(value)
        return {"any of": bool(shared), "none of": not shared}.get(operator, shared == set(wanted))
    if condition.type == "stringOptions":
        return (value in wanted) == (operator == "any of")
    if condition.type == "boolean":
        return (value == wanted) == (operator == "=")
    if isinstance(wanted, str):
        return _text(operator, str(value), wanted, folded=condition.type == "string")
    return _number(operator, value, wanted)


def _keyed(condition: Condition, metadata: Any) -> Any:
    """An entry of metadata: as text, where "" stands for a missing one, or as a number."""
    entry = metadata.get(condition.key) if isinstance(metadata, dict) else None
    if condition.type == "numberObject":
        return entry if isinstance(entry, int | float) else None
    if entry is None:
        return ""
    return entry if isinstance(entry, str) else json.dumps(entry, separators=(",", ":"))


def _text(operator: str, value: str, wanted: str, *, folded: bool) -> bool:
    if operator == LITERAL:
        return wanted.lower() in value.lower() if folded else wanted in value
    return {
        "=": value == wanted,
        "contains": wanted in value,
        "does not contain": wanted not in value,
        "starts with": value.startswith(wanted),
        "ends with": value.endswith(wanted),
    }[operator]


def _number(operator: str, value: Any, wanted: float) -> bool:
    if not isinstance(value, int | float):
        return False
    return {
        "=": value == wanted,
        ">": value > wanted,
        "<": value < wanted,
        ">=": value >= wanted,
        "<=": value <= wanted,
    }[operator]
