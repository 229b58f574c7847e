"""Verdicts, case by case: every YAML file under `tests/data/verdicts` is a test of its own.

A case holds `why` (what it shows), `contract` and `trace` (header and identity are filled in)
and `expected`:

- `outcome`, and where they matter `score`, `reason` (null: none; else a part of it) and
  `plugins` (the names, in order);
- `checks`: for each plugin named, *all* of its checks in order. `name` and `outcome` must be
  equal, `where` is compared whole, and `expected`, `observed` and `reason` are parts of what
  the check says.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from benchmark_assets.model.contract import (
    CallRule,
    Final,
    ToolPolicy,
    TraceHealth,
    Trajectory,
)
from benchmark_assets.model.matchers import MATCHERS
from benchmark_assets.model.section import Section
from benchmark_assets.model.verdict import OUTCOMES, Check, Verdict
from benchmark_assets.scoring.evaluate import evaluate
from benchmark_assets.scoring.plugins import PLUGINS
from tests.scoring.build import contract, trace

FOLDER = Path(__file__).parents[1] / "data" / "verdicts"
PATHS = sorted(FOLDER.rglob("*.yaml"))


def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert case.keys() == {"why", "contract", "trace", "expected"}, path
    assert case["expected"].keys() <= {"outcome", "score", "reason", "plugins", "checks"}, path
    return case


CASES = {path.relative_to(FOLDER).with_suffix("").as_posix(): read(path) for path in PATHS}


def judge(case: dict[str, Any]) -> Verdict:
    return evaluate(trace(**case["trace"]), contract(**case["contract"]))


def compare(wanted: dict[str, Any], check: Check) -> None:
    assert wanted.keys() <= {"name", "outcome", "expected", "observed", "reason", "where"}
    assert check.outcome == wanted["outcome"]
    for key in ("expected", "observed", "reason"):
        if key in wanted:
            assert wanted[key] in (getattr(check, key) or ""), key
    if "where" in wanted:
        where = None if check.where is None else msgspec.to_builtins(check.where)
        assert where == wanted["where"]


@pytest.mark.parametrize("name", CASES)
def test_the_case_is_judged_as_expected(name: str) -> None:
    expected = CASES[name]["expected"]
    verdict = judge(CASES[name])
    assert verdict.outcome == expected["outcome"], verdict
    if "score" in expected:
        assert verdict.score == pytest.approx(expected["score"])
    if "reason" in expected:
        if expected["reason"] is None:
            assert verdict.reason is None
        else:
            assert expected["reason"] in (verdict.reason or "")
    if "plugins" in expected:
        assert [result.plugin for result in verdict.plugins] == expected["plugins"]
    found = {result.plugin: result.checks for result in verdict.plugins}
    for plugin, wanted in expected.get("checks", {}).items():
        checks = found[plugin]
        assert len(checks) == len(wanted), checks
        for item, check in zip(wanted, checks, strict=True):
            assert check.name == item["name"]
            compare(item, check)


@pytest.mark.parametrize("name", CASES)
def test_what_did_not_pass_says_expected_observed_and_why(name: str) -> None:
    verdict = judge(CASES[name])
    for check in (check for result in verdict.plugins for check in result.checks):
        if check.outcome in ("failed", "error"):
            assert check.expected
            assert check.observed
            assert check.reason
        elif check.outcome == "passed":
            assert check.reason is None
    if verdict.outcome in ("unresolved", "error"):
        assert verdict.reason
    else:
        assert verdict.reason is None


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_survives_being_stored(name: str) -> None:
    verdict = judge(CASES[name])
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict


# Every rule has a case that passes and one that does not, so that no rule is untested.

RULES = [
    ("tool_calls", "required:"),
    ("tool_calls", "forbidden:"),
    ("trajectory", "path"),
    ("trajectory", "call:"),
    ("trajectory", "no other writes"),
    ("trajectory", "no other calls"),
    ("final_output", "contains:"),
    ("final_output", "not contains:"),
    ("final_output", "schema"),
    ("trace_health", "ended"),
    ("trace_health", "no error state"),
    ("trace_health", "no failed calls"),
]


def outcomes_of(plugin: str, rule: str) -> set[str]:
    """Outcomes that the cases expect of a rule."""
    return {
        check["outcome"]
        for case in CASES.values()
        for check in case["expected"].get("checks", {}).get(plugin, ())
        if check["name"].startswith(rule)
    }


@pytest.mark.parametrize(("plugin", "rule"), RULES)
def test_every_rule_has_a_case_that_passes_and_one_that_fails(plugin: str, rule: str) -> None:
    assert {"passed", "failed"} <= outcomes_of(plugin, rule)


def test_every_check_there_is_belongs_to_a_rule_with_cases() -> None:
    scored = {
        (result.plugin, check.name)
        for case in CASES.values()
        for result in judge(case).plugins
        for check in result.scored
    }
    for plugin, name in scored:
        assert any(name.startswith(rule) for other, rule in RULES if other == plugin), name
    assert {plugin for plugin, _ in RULES} == {plugin.name for plugin in PLUGINS}


def by_setting(section: str, key: str, default: str) -> set[tuple[str, str]]:
    """(setting of `trajectory` or of its calls, expected outcome) over all cases."""
    found = set()
    for case in CASES.values():
        trajectory = case["contract"].get("trajectory")
        parts = [] if trajectory is None else [trajectory]
        if section == "calls":
            parts = [rule for part in parts for rule in part.get("calls", ())]
        found |= {(part.get(key, default), case["expected"]["outcome"]) for part in parts}
    return found


@pytest.mark.parametrize(
    ("section", "key", "default", "values"),
    [
        ("trajectory", "order", "none", ["exact", "in_order", "any_order"]),
        ("trajectory", "extra", "allow", ["allow", "reads_only", "forbid"]),
        ("calls", "args_mode", "subset", ["exact", "subset", "keys"]),
    ],
)
def test_every_setting_has_a_case_that_passes_and_one_that_fails(
    section: str, key: str, default: str, values: list[str]
) -> None:
    found = by_setting(section, key, default)
    for value in values:
        assert {(value, "resolved"), (value, "unresolved")} <= found


@pytest.mark.parametrize("model", [ToolPolicy, Trajectory, CallRule, Final, TraceHealth])
def test_every_key_of_a_section_has_a_case(model: type[Section]) -> None:
    def keys(value: Any) -> set[str]:
        if isinstance(value, list):
            return {key for item in value for key in keys(item)}
        if not isinstance(value, dict):
            return set()
        return {*value, *(key for item in value.values() for key in keys(item))}

    used = keys([case["contract"] for case in CASES.values()])
    assert {field.alias or name for name, field in model.model_fields.items()} <= used


@pytest.mark.parametrize("matcher", MATCHERS)
def test_every_matcher_has_a_case_that_passes_and_one_that_fails(matcher: str) -> None:
    outcomes = {
        case["expected"]["outcome"]
        for case in CASES.values()
        for rule in case["contract"].get("trajectory", {}).get("calls", ())
        if isinstance(rule.get("args"), dict)
        for value in rule["args"].values()
        if isinstance(value, dict) and matcher in value and value.keys() <= {*MATCHERS, "tol"}
    }
    assert {"resolved", "unresolved"} <= outcomes


def test_every_outcome_has_cases() -> None:
    assert {case["expected"]["outcome"] for case in CASES.values()} == set(OUTCOMES)
    assert all(case["why"].strip() for case in CASES.values())
