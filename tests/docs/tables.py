"""Reading the tables of documents, to compare them with what they describe."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, get_args

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo


def under_headings(text: str) -> dict[str, str]:
    """Heading → the text below it, up to the next heading of any level."""
    outside = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    parts = re.split(r"^#+ (.*)\n", outside, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def rows(text: str, first: str) -> list[list[str]]:
    """The rows of the table whose first column is called so; empty if there is none."""
    found = re.search(rf"^\| {re.escape(first)} \|.*\n\|[-|]+\n((?:\|.*\n)+)", text, re.MULTILINE)
    lines = found[1].splitlines() if found else []
    # A bar inside a code span is no border.
    return [
        [cell.strip() for cell in re.findall(r"((?:`[^`]*`|[^|])*)\|", line[1:])] for line in lines
    ]


def codes(cell: str) -> list[str]:
    """All that is marked as code in a cell."""
    return re.findall(r"`([^`]+)`", cell)


def code(cell: str) -> str:
    """The first that is."""
    return codes(cell)[0]


def compare_keys(
    text: str, models: dict[str, type[BaseModel]], filled_in: Collection[tuple[type, str]] = ()
) -> None:
    """Every table of keys has its section's keys, with their defaults and words, and no other.

    Args:
        text: The document.
        models: Heading → the section whose keys stand under it; there are no other tables of keys.
        filled_in: Keys whose default is described in words, since it is made from others.
    """
    found = {heading: rows(below, "key") for heading, below in under_headings(text).items()}
    assert {heading for heading, table in found.items() if table} == set(models)
    for heading, model in models.items():
        fields = {info.alias or name: info for name, info in model.model_fields.items()}
        assert sorted(code(row[0]) for row in found[heading]) == sorted(fields), heading
        for key_cell, value, default, meaning in found[heading]:
            key = code(key_cell)
            assert meaning, key
            _compare(key, fields[key], value, default, described=(model, key) in filled_in)


def _compare(key: str, info: FieldInfo, value: str, default: str, *, described: bool) -> None:
    if described:
        assert default not in ("required", "none", ""), key
    elif info.is_required():
        assert default == "required", key
    else:
        said = None if default == "none" else yaml.safe_load(code(default))
        assert said == _default(info), key
    for word in get_args(info.annotation):
        if isinstance(word, str) and value != "see below":
            assert f"`{word}`" in value, key


def _default(info: FieldInfo) -> Any:
    value = info.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        value = value.model_dump(mode="json", by_alias=True)
    return list(value) if isinstance(value, tuple) else value
