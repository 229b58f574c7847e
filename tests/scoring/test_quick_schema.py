"""What is quickly said of a value and a schema is what the validator says, which is the truth."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from benchmark_assets.scoring.quick_schema import quick_schema

NAMES = st.sampled_from(["a", "b", "c", "1"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 1.5, -0.0])
    | NAMES
    | st.sampled_from(["", "ab", "\U0001f600", "line\n"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
TYPES = st.sampled_from(["string", "boolean", "null", "integer", "number", "object", "array"])
LIMITS = st.integers(0, 3) | st.sampled_from([1.0, 1.5])


def keywords(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
            "enum": st.lists(VALUES, min_size=1, max_size=3),
            "const": VALUES,
            "required": st.lists(NAMES, max_size=2, unique=True),
            "properties": st.dictionaries(NAMES, inner, max_size=2),
            "patternProperties": st.dictionaries(st.just("a"), inner, max_size=1),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "pattern": st.sampled_from(["^a", "b$", "", "[0-9]"]),
            "minimum": LIMITS,
            "maximum": LIMITS,
            "exclusiveMinimum": LIMITS,
            "minLength": st.integers(0, 3),
            "maxLength": st.integers(0, 3),
            "minItems": st.integers(0, 3),
            "maxItems": st.integers(0, 3),
            "anyOf": st.lists(inner, min_size=1, max_size=2),
            "not": inner,
            "title": st.just("t"),
            "default": VALUES,
        },
    )


SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.booleans() | st.just({}), keywords, max_leaves=6)


@settings(max_examples=1500)
@given(SCHEMAS, VALUES)
def test_what_is_known_is_said_as_the_validator_says_it(schema: Any, value: Any) -> None:
    fits = quick_schema(schema)
    if fits is not None:
        assert fits(value) == Draft202012Validator(schema).is_valid(value)


PAYLOAD = {
    "type": "object",
    "title": "What a refund ends with",
    "required": ["status", "refund_id"],
    "additionalProperties": False,
    "properties": {
        "status": {"enum": ["ok", "needs_human"]},
        "refund_id": {"type": ["string", "null"], "pattern": "^r", "minLength": 2},
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "amount": {"type": "number"},
        "lines": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
        "kind": {"const": "refund"},
    },
}
GOOD: dict[str, Any] = {"status": "ok", "refund_id": "r1", "count": 9, "lines": ["x"]}


@pytest.mark.parametrize(
    "value",
    [
        GOOD,
        {**GOOD, "refund_id": None, "kind": "refund"},
        {**GOOD, "lines": ["x", "y"], "amount": 0.5},
    ],
)
def test_it_does_save_work(value: Any) -> None:
    fits = quick_schema(PAYLOAD)
    assert fits is not None
    assert fits(value)
    assert Draft202012Validator(PAYLOAD).is_valid(value)


@pytest.mark.parametrize(
    "value",
    [
        [],
        None,
        {},
        {**GOOD, "status": "HACKED"},
        {**GOOD, "refund_id": 7},
        {**GOOD, "refund_id": "x1"},
        {**GOOD, "refund_id": "r"},
        {**GOOD, "count": True},
        {**GOOD, "count": -1},
        {**GOOD, "count": 10},
        {**GOOD, "lines": []},
        {**GOOD, "lines": [1]},
        {**GOOD, "lines": ["x"] * 3},
        {**GOOD, "kind": "charge"},
        {**GOOD, "more": 1},
    ],
)
def test_what_does_not_fit_is_never_said_to(value: Any) -> None:
    fits = quick_schema(PAYLOAD)
    assert fits is not None
    assert not fits(value)


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [1]},
        {"const": True},
        {"$ref": "#/$defs/a"},
        {"anyOf": [{}]},
        {"properties": {"a": {"not": {}}}},
        {"items": {"format": "date"}},
        {"pattern": "("},
        {"type": "objekt"},
        True,
        None,
    ],
)
def test_what_is_not_known_is_left_to_the_validator(schema: Any) -> None:
    assert quick_schema(schema) is None
