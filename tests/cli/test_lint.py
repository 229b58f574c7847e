"""`bench lint`: warnings of what is allowed and hardly meant that need judging, or several files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.bench import bench

NOTHING = "a run that does nothing and says nothing passes"
SAME = "is what the user says in"


def warnings(folder: Path) -> list[dict[str, Any]]:
    result = bench("lint", folder, "--json", cwd=folder.parent)
    report: dict[str, Any] = json.loads(result.out)
    assert report["errors"] == []
    assert result.code == 0
    found: list[dict[str, Any]] = report["warnings"]
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "rules"
    made.mkdir()
    return made


def fixture(folder: Path, key: str, expect: dict[str, Any], user: str | None = None) -> None:
    data = {"id": key, "input": {"user": user or key}, "expect": expect}
    (folder / f"{key}.json").write_text(json.dumps(data, indent=1), encoding="utf-8")


# What nothing passes.

IDLE: list[dict[str, Any]] = [
    {"before": [["a", "b"]]},
    {"must_ask_before_write": True},
    {"forbidden_tools": ["a"]},
    {"max_tool_calls": 3},
    {"max_tokens": 3, "max_cost_usd": 0.5, "max_duration_s": 1, "max_retries": 0},
    {"max_tokens": 3},
    {"extra": "forbid", "forbidden_tools": ["a"]},
    {"extra": "reads_only", "must_ask_before_write": True},
    {"tool_names": []},
    {"tool_names": [], "required_arg_keys": {"a": []}},
    {"allowed_paths": [[{"tool": "a", "optional": True}]]},
    {"allowed_paths": [["a"], []]},
    {"not_contains": ["sorry"], "forbidden_tools": ["a"]},
    {"ends_with": "stop", "forbidden_tools": ["a"]},
    {"ends_with": "done*", "forbidden_tools": ["a"]},
    {"calls": [{"tool": "a", "max": 2, "min": 0}]},
]


@pytest.mark.parametrize("expect", IDLE, ids=json.dumps)
def test_a_fixture_that_an_empty_trace_passes_is_warned_of(
    folder: Path, expect: dict[str, Any]
) -> None:
    fixture(folder, "f", expect)
    (warning,) = warnings(folder)
    assert (warning["file"], warning["line"]) == ("rules/f.json", 1)
    assert warning["message"] == NOTHING
    assert warning["cure"].startswith("demand something that must happen")
    # It is so: the trace in which nothing was done passes.
    traces = folder.parent / "traces"
    traces.mkdir()
    empty = {"tools": [], "final": {}, "tokens": {"total": 0}}
    (traces / "f.json").write_text(json.dumps(empty), encoding="utf-8")
    if not {"max_tokens", "ends_with", "not_contains"} & expect.keys():
        assert bench("golden", "--fixtures", folder, cwd=folder.parent).code == 0


BUSY: list[dict[str, Any]] = [
    {"tool_names": ["a"]},
    {"tool_names": ["a"], "before": [["b", "a"]]},
    {"calls": [{"tool": "a"}]},
    {"required_arg_keys": {"a": ["x"]}},
    {"contains": ["done"]},
    {"final_schema": {"type": "object"}},
    {"allowed_paths": [["a"]], "order": "superset", "forbidden_tools": ["b"]},
    {"tool_names": [], "contains": ["done"]},
]


@pytest.mark.parametrize("expect", BUSY, ids=json.dumps)
def test_a_fixture_that_demands_an_act_is_not(folder: Path, expect: dict[str, Any]) -> None:
    fixture(folder, "f", expect)
    assert warnings(folder) == []


@pytest.mark.parametrize(
    ("sections", "warned"),
    [
        ({"tools": {"forbidden": ["a"]}}, True),
        ({"budget": {"max_retries": 1}}, True),
        ({"output": [], "skills": {}}, True),
        ({"tools": {"required": ["a"], "forbidden": ["b"]}}, False),
        ({"tools": {"forbidden": ["b"]}, "final": {"contains": ["x"]}}, False),
        ({"output": [{"resource": "api.orders", "operation": "CREATE"}],
          "resources": {"api": [{"name": "orders"}]}}, False),
    ],
)  # fmt: skip
def test_a_contract_is_warned_of_alike(
    folder: Path, sections: dict[str, Any], warned: bool
) -> None:
    data = {"workflow": "w", "contract_version": "1", **sections}
    (folder / "c.yaml").write_text(yaml.safe_dump(data), encoding="utf-8")
    found = [w["message"] for w in warnings(folder) if w["message"] == NOTHING]
    assert found == ([NOTHING] if warned else [])


def test_what_checks_nothing_is_said_to_and_not_that_nothing_passes(folder: Path) -> None:
    text = 'workflow: w\ncontract_version: "1"\ntools: {optional: [a]}\n'
    (folder / "c.yaml").write_text(text, encoding="utf-8")
    (warning,) = warnings(folder)
    assert warning["message"].startswith("checks nothing")


# One text, two fixtures.


def test_two_fixtures_of_one_user_turn_are_warned_of(folder: Path) -> None:
    fixture(folder, "a", {"tool_names": ["x"]}, "Refund it.")
    fixture(folder, "b", {"tool_names": ["x"]}, "Refund  it.\n")
    fixture(folder, "c", {"tool_names": ["x"]}, "refund it.")
    (warning,) = warnings(folder)
    assert (warning["file"], warning["line"], warning["key"]) == ("rules/b.json", 4, "input.user")
    assert warning["message"].startswith(f"{SAME} 'a' of rules/a.json")


def test_cases_of_one_eval_set_are_warned_of_where_they_begin(folder: Path) -> None:
    cases = [
        {"eval_id": key, "conversation": [{"user_content": {"parts": [{"text": "Hi."}]},
         "intermediate_data": {"tool_uses": [{"name": "x", "args": {}}]}}]}
        for key in "ab"
    ]  # fmt: skip
    text = json.dumps({"eval_cases": cases}, indent=1)
    (folder / "s.evalset.json").write_text(text, encoding="utf-8")
    (warning,) = warnings(folder)
    assert warning["message"].startswith(f"{SAME} 'a' of rules/s.evalset.json")
    assert text.splitlines()[warning["line"]].strip() == '"eval_id": "b",'
