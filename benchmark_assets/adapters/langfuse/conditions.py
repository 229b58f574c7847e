"""Conditions of the `filter` parameter, which both APIs take, as far as they mean the same in both.

Belongs here: single conditions. Does not belong here: which of them an API needs (`v1`, `v2`).

A list of conditions is joined by AND, and there is no OR: asking for a key of metadata twice asks
for rows where it has two values at once, and finds none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Conditions = list[dict[str, Any]]


def any_of(column: str, values: Sequence[str]) -> dict[str, Any]:
    """A condition: one of these values. Columns of plain texts take it, ids among them."""
    return {"type": "stringOptions", "column": column, "operator": "any of", "value": list(values)}


def all_tags(tags: Sequence[str]) -> dict[str, Any]:
    """A condition: all of these tags."""
    return {"type": "arrayOptions", "column": "tags", "operator": "all of", "value": list(tags)}


def metadata_is(key: str, value: str) -> dict[str, Any]:
    """A condition on metadata. The API has no other that compares a key with one value."""
    return {
        "type": "stringObject",
        "column": "metadata",
        "key": key,
        "operator": "=",
        "value": value,
    }
