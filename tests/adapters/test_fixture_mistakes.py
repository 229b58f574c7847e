"""Fixtures with a mistake at every level: each is said with file, line, key and cure."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.adapters.contract_files import load_contracts
from benchmark_assets.adapters.fixture_files import parse_json, read_fixture
from benchmark_assets.adapters.yaml_files import KeyPath, key_text
from benchmark_assets.model.golden import Expect, FixtureSource
from benchmark_assets.model.problem import InputError
from tests.adapters.test_fixture_files import fixture_data, problems, text_of

WHOLE: dict[str, Any] = {
    "$schema": "fixture.schema.json",
    "id": "f",
    "version": "2",
    "comment": "Why.",
    "workflow": "w",
    "group": "g",
    "input": {"user": "Do it.", "turns": ["And that."]},
    "expect": {
        "allowed_paths": [
            ["a", {"tool": "b", "args": {"x": 1}, "args_mode": "subset", "optional": True}],
            {"path": ["b", {"tool": "a", "repeat": True}], "order": "in_order"},
        ],
        "order": "exact",
        "calls": [
            {"tool": "a", "args": {"y": {"regex": "^x"}}, "args_mode": "subset"},
            {"tool": "b", "min": 1, "max": 3, "occurrences": "each"},
        ],
        "before": [["a", "b"]],
        "value_hashes": {"a": {"y": "0123456789abcdef"}},
        "writes": ["b"],
        "ask_before_write": True,
        "extra": "forbid",
        "max_extra_calls": 2,
        "required_arg_keys": {"a": ["x"]},
        "forbidden_tools": ["c"],
        "contains": ["done"],
        "not_contains": ["sorry"],
        "scope": "answer",
        "schema": {"required": ["k"], "properties": {"k": {"enum": [1]}}},
        "max_steps": 9,
        "max_tool_calls": 9,
        "max_tokens": 9,
        "max_cost_usd": 0.5,
        "max_duration_s": 1.5,
        "max_retries": 1,
        "ends_with": ["stop"],
        "trace_health": {"recovered_errors": "allow"},
    },
}
"""A fixture with every key that there is, but for other names of the same."""

SHORT = {"tool_names", "must_ask_before_write", "write_tools", "final_schema"}
"""Other names, of which only one may be given."""

ODD_VALUES: tuple[Any, ...] = (None, 5.5, -1, True, "x", "", " ", [1], [], [None], {"q": 1}, {})


def all_places(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    below = [
        place
        for key, item in items
        for place in (
            all_places(item, (*path, key)) if isinstance(item, dict | list) else [(*path, key)]
        )
    ]
    return [path, *below]


def with_value(path: KeyPath, value: Any) -> dict[str, Any]:
    data = copy.deepcopy(WHOLE)
    inner: Any = data
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return data


def value_at(path: KeyPath) -> Any:
    value: Any = WHOLE
    for key in path:
        value = value[key]
    return value


def test_the_fixture_with_everything_has_every_key() -> None:
    read_fixture(text_of(WHOLE).encode(), "f.json")
    known = {field.alias or key for key, field in Expect.model_fields.items()}
    assert known == WHOLE["expect"].keys() | SHORT
    given = {"$schema" if key == "schema_" else key for key in FixtureSource.model_fields}
    assert given == WHOLE.keys()


FREE = {
    "expect.allowed_paths[0][1].args.x",
    "expect.calls[0].args.y",
    "expect.schema.properties.k.enum[0]",
}
"""Where any value will do."""

PLACES = [path for path in all_places(WHOLE) if path]


@pytest.mark.parametrize("path", PLACES, ids=key_text)
def test_a_wrong_value_is_said_with_file_line_key_and_cure(path: KeyPath) -> None:
    """Whatever stands where something else should: it is taken, or said to be wrong just there."""
    refused = 0
    for odd in ODD_VALUES:
        text = text_of(with_value(path, odd))
        try:
            read_fixture(text.encode(), "f.json")
        except InputError as error:
            refused += 1
            lines = dict(_line_by_path(text))
            for problem in error.problems:
                assert problem.file == "f.json"
                assert problem.key
                assert problem.cure, problem
                assert "`key: value`" not in str(problem)
                # At the place itself, below it, or where it is missed.
                assert problem.line in {
                    line
                    for at, line in lines.items()
                    if path[: len(at)] == at or at[: len(path)] == path
                }
                assert problem.key.startswith(key_text(path[:1]))
    assert (refused == 0) is (key_text(path) in FREE)


def _line_by_path(text: str) -> list[tuple[KeyPath, int]]:
    document = parse_json(text.encode(), "f.json")
    return [(path, place.line) for path, place in document.places.items()]


OBJECTS = [path for path in all_places(WHOLE) if isinstance(value_at(path), dict)]
OPEN = ("args", "schema", "value_hashes", "required_arg_keys")
"""Objects whose keys are the user's."""


@pytest.mark.parametrize("path", OBJECTS, ids=key_text)
def test_an_unknown_key_is_said_at_every_level(path: KeyPath) -> None:
    if any(name in path for name in OPEN):
        return
    data = with_value(path, {**value_at(path), "zzz": 1}) if path else {**WHOLE, "zzz": 1}
    text = text_of(data)
    (said,) = problems(text)
    (line,) = [n for n, line in enumerate(text.splitlines(), 1) if '"zzz"' in line]
    key = key_text((*path, "zzz"))
    # The whole list of keys is the cure where nothing is like it.
    assert said.startswith(f"f.json:{line}: {key}: is not a known key; known keys here: ")


@pytest.mark.parametrize(
    ("others", "key", "cure"),
    [
        ({"tools": [], "messages": []}, "tools", "it is of a trace, which has a file of its own"),
        ({"messages": []}, "messages", "it is of a trace"),
        ({"questions": []}, "questions", "it is of a trace"),
        ({"trajectory": {}}, "trajectory", "write its keys in `expect`"),
        ({"final": {}}, "final", "write its keys in `expect`"),
        ({"ends_with": "x"}, "ends_with", "it belongs under `expect`"),
        ({"trace_health": {}}, "trace_health", "it belongs under `expect`"),
        ({"prompt": "x"}, "prompt", 'write `"input": {"user": "…"}`'),
        ({"skills": {}}, "skills", "only a contract in YAML has it"),
        ({"expect": {"budget": {}}}, "expect.budget", "write its keys in `expect` itself"),
        ({"expect": {"tools": {"forbidden": []}}}, "expect.tools", "write `forbidden_tools`"),
        (
            {"expect": {"recovered_errors": "allow"}},
            "expect.recovered_errors",
            'write `"trace_health": {"recovered_errors": …}`',
        ),
    ],
)
def test_a_key_that_is_known_from_elsewhere_is_told_where_it_goes(
    others: dict[str, Any], key: str, cure: str
) -> None:
    found = problems(text_of({**fixture_data(), **others}))
    assert any(f": {key}: is not a known key; {cure}" in said for said in found), found


def test_null_in_expect_is_warned_of(tmp_path: Path) -> None:
    expect = {"tool_names": ["a"], "max_tokens": None}
    (tmp_path / "f.json").write_text(text_of(fixture_data(expect)), encoding="utf-8")
    (warning,) = load_contracts([tmp_path]).warnings
    assert (warning.line, warning.key) == (10, "expect.max_tokens")
    assert warning.message == "is null and has no effect"
