"""What stands at a place, and what shows there."""

from __future__ import annotations

from typing import Any

import pytest

from benchmark_assets.model.harness import Sign
from benchmark_assets.scoring.places import (
    belongs,
    first_at,
    found_at,
    list_length,
    shown,
    text_of,
)


def values(data: Any, place: str) -> list[tuple[Any, tuple[int, ...]]]:
    return [(found.value, found.position) for found in found_at(data, place)]


@pytest.mark.parametrize(
    ("data", "place", "expected"),
    [
        ({"a": 1}, "a", [(1, ())]),
        ({"a": 1}, "b", []),
        ({"a": None}, "a", []),
        ({"a": {"b": 2}}, "a.b", [(2, ())]),
        ({"a": 1}, "a.b", []),
        ({"a": [1, None, 3]}, "a[]", [(1, (0,)), (3, (2,))]),
        ({"a": [{"b": 1}, {}, {"b": 3}]}, "a[].b", [(1, (0,)), (3, (2,))]),
        ({"a": [[1], [2, 3]]}, "a[][]", [(1, (0, 0)), (2, (1, 0)), (3, (1, 1))]),
        ({"a": 1}, "a[]", []),
        ({"a": '["x"]'}, "a[]", [("x", (0,))]),
        ('{"a": 1}', "a", [(1, ())]),
        ('{"a": ', "a", []),
        ("[" * 100_000, "[]", []),
        ("x", ".", [("x", ())]),
        (None, ".", []),
        ([1], "[]", [(1, (0,))]),
    ],
)
def test_what_stands_at_a_place(
    data: Any, place: str, expected: list[tuple[Any, tuple[int, ...]]]
) -> None:
    assert values(data, place) == expected


def test_the_first_place_that_leads_to_something_of_the_kind() -> None:
    data = {"files": [{"path": "a"}, "b"], "path": "c"}
    assert [f.value for f in first_at(data, ("files[]", "path"), str)] == ["b"]
    assert [f.value for f in first_at(data, ("files[].name", "path"), str)] == ["c"]
    assert first_at(data, ("no", "none"), str) == []


def test_what_goes_with_what() -> None:
    assert belongs((), (2,))
    assert belongs((2,), ())
    assert belongs((2, 1), (2,))
    assert not belongs((1,), (2,))
    assert not belongs((2, 1), (2, 0))


@pytest.mark.parametrize(
    ("result", "text"),
    [
        (None, ""),
        ("x", "x"),
        (5, "5"),
        (
            [
                {"type": "text", "text": "a"},
                {"type": "image", "data": "…"},
                {"type": "text", "text": "b"},
            ],
            "a\nb",
        ),
        ({"content": [{"type": "text", "text": "a"}], "details": {"x": 1}}, "a"),
        ({"content": "a", "details": {}}, "a"),
        ({"text": "a"}, "a"),
        ({"content": {"b": 1}}, '{"content": {"b": 1}}'),
        ([{"b": "ü"}], '[{"b": "ü"}]'),
        ([], "[]"),
    ],
)
def test_the_text_of_a_result(result: Any, text: str) -> None:
    assert text_of(result) == text


@pytest.mark.parametrize(
    ("sign", "result", "shows"),
    [
        ({"regex": "^no"}, "no such", True),
        ({"regex": "^no"}, "and no", False),
        ({"regex": "^no"}, None, False),
        ({"regex": "^no"}, {"content": "no"}, True),
        ({"at": "ok", "equals": True}, {"ok": True}, True),
        ({"at": "ok", "equals": True}, {"ok": 1}, False),
        ({"at": "ok", "equals": [0, "x"]}, {"ok": "x"}, True),
        ({"at": "code", "equals": 0}, {"code": 0.0}, True),
        ({"at": "code", "equals": 0}, {"code": False}, False),
        ({"at": "code", "regex": "^[1-9]"}, {"code": 2}, True),
        ({"at": "error"}, {"error": "x"}, True),
        ({"at": "error"}, {"error": ""}, False),
        ({"at": "error"}, {"error": None}, False),
        ({"at": "error"}, {"error": {}}, False),
        ({"at": "error"}, "error", False),
    ],
)
def test_what_a_sign_shows(sign: dict[str, Any], result: Any, shows: bool) -> None:
    assert bool(shown(result, (Sign.model_validate(sign),))) is shows


def test_the_length_of_the_list_a_place_steps_through() -> None:
    assert list_length({"a": [1, None]}, "a[].b") == 2
    assert list_length({"a": 1}, "a[].b") == 0
    assert list_length({"a": 1}, "a") is None
    assert list_length("x", None) is None
