"""Verdicts, case by case: every YAML file under `tests/data/verdicts` is a test of its own.

A case holds `why` (what it shows), `contract` and `trace` (header and identity are filled in)
and `expected`. What calls do is told by the harness profiles that come with the package, unless
the trace states its `skills` and `files` itself. Under `expected`:

- `outcome`, and where they matter `score`, `reason` (null: none; else a part of it) and
  `plugins` (the names, in order);
- `checks`: for each plugin named, *all* of its checks in order. `name` and `outcome` must be
  equal, `where` is compared whole, and `expected`, `observed` and `reason` are parts of what
  the check says.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import yaml

from benchmark_assets.adapters.harness_files import load_harnesses
from benchmark_assets.model.contract import (
    EMPTY_SECTIONS,
    Budget,
    CallRule,
    Contract,
    Final,
    InputDemand,
    LegalPath,
    Order,
    OutputDemand,
    PathStep,
    SkillPolicy,
    ToolPolicy,
    TraceHealth,
    Trajectory,
)
from benchmark_assets.model.matchers import MATCHERS
from benchmark_assets.model.resources import (
    CONVENTIONS,
    PAGE_PARTS,
    TYPES,
    Page,
    Resource,
    Resources,
    Target,
)
from benchmark_assets.model.section import Section
from benchmark_assets.model.verdict import OUTCOMES, Check, Verdict
from benchmark_assets.scoring.evaluate import evaluate
from benchmark_assets.scoring.plugins import PLUGINS
from tests.scoring.build import contract, trace
from tests.scoring.test_plugins import HEADER

FOLDER = Path(__file__).parents[1] / "data" / "verdicts"
PATHS = sorted(FOLDER.rglob("*.yaml"))


def read(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert case.keys() == {"why", "contract", "trace", "expected"}, path
    assert case["expected"].keys() <= {"outcome", "score", "reason", "plugins", "checks"}, path
    return case


CASES = {path.relative_to(FOLDER).with_suffix("").as_posix(): read(path) for path in PATHS}


HARNESSES = load_harnesses().profiles


def judge(case: dict[str, Any]) -> Verdict:
    return evaluate(trace(**case["trace"]), contract(**case["contract"]), HARNESSES)


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
        # What is unknown is left out, never written as a null of ours.
        texts = (check.expected, check.observed, check.reason)
        assert not any(re.search(r"\bNone\b", text) for text in texts if text), check
    if verdict.outcome in ("unresolved", "error"):
        assert verdict.reason
    else:
        assert verdict.reason is None


def test_a_change_says_that_the_trace_cannot_tell_only_where_it_cannot() -> None:
    done = [
        (check.observed or "").split(" by ")
        for case in CASES.values()
        for result in judge(case).plugins
        for check in result.checks
        if result.plugin == "output" and check.name.split(":")[0] in EFFECTS
        if check.outcome == "passed"
    ]
    unsure = [" or " in what for what, _ in done]
    assert [how.endswith("the trace cannot tell which, either is accepted") for _, how in done] == (
        unsure
    )
    assert {True, False} == set(unsure)


@pytest.mark.parametrize("name", CASES)
def test_a_verdict_survives_being_stored(name: str) -> None:
    verdict = judge(CASES[name])
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict


# Every rule has a case that passes and one that does not, so that no rule is untested.

RULES = [
    ("skills_loaded", "required:"),
    ("skills_loaded", "no extra skills", "extra:"),
    ("input_context", "read:"),
    ("input_context", "name:"),
    ("input_context", "qualifier:"),
    ("input_context", "term:"),
    ("input_context", "no unrelated reads", "unrelated read:"),
    ("tool_calls", "required:"),
    ("tool_calls", "forbidden:"),
    ("tool_calls", "no calls"),
    ("trajectory", "path"),
    ("trajectory", "call:"),
    ("trajectory", "every call:"),
    ("trajectory", "before:"),
    ("trajectory", "value hashes:"),
    ("trajectory", "question before the first write"),
    ("trajectory", "extra calls"),
    ("trajectory", "no other writes"),
    ("trajectory", "no other calls"),
    ("output", "CREATE:"),
    ("output", "UPDATE:"),
    ("output", "DELETE:"),
    ("output", "match:"),
    ("output", "qualifier:"),
    ("output", "no unrelated changes", "unrelated change:"),
    ("final_output", "contains:"),
    ("final_output", "not contains:"),
    ("final_output", "schema"),
    ("budget", "steps"),
    ("budget", "tool calls"),
    ("budget", "tokens"),
    ("budget", "cost"),
    ("budget", "duration"),
    ("budget", "retries"),
    ("trace_health", "ended"),
    ("trace_health", "no error state"),
    ("trace_health", "no failed calls"),
    ("trace_health", "no error spans"),
    ("trace_health", "build:"),
]
"""Plugin and how the names of a rule's checks begin; some are called otherwise when they fail."""

EFFECTS = ("CREATE", "UPDATE", "DELETE")
UNSCORED = {"resource_usage"}
"""Plugins that only inform."""


def expected_checks() -> list[tuple[dict[str, Any], str, dict[str, Any]]]:
    """(case, plugin, expected check) over all cases."""
    return [
        (case, plugin, check)
        for case in CASES.values()
        for plugin, checks in case["expected"].get("checks", {}).items()
        for check in checks
    ]


@pytest.mark.parametrize("rule", RULES, ids=": ".join)
def test_every_rule_has_a_case_that_passes_and_one_that_fails(rule: tuple[str, ...]) -> None:
    outcomes = {
        check["outcome"]
        for _, plugin, check in expected_checks()
        if plugin == rule[0] and check["name"].startswith(rule[1:])
    }
    assert {"passed", "failed"} <= outcomes


def test_every_check_there_is_belongs_to_a_rule_with_cases() -> None:
    scored = {
        (result.plugin, check.name)
        for case in CASES.values()
        for result in judge(case).plugins
        for check in result.scored
    }
    for plugin, name in scored:
        assert any(name.startswith(rule[1:]) for rule in RULES if rule[0] == plugin), name
    assert {rule[0] for rule in RULES} | UNSCORED == {plugin.name for plugin in PLUGINS}
    assert not {plugin for plugin, _ in scored} & UNSCORED


def by_convention(section: str, kind: str) -> set[str]:
    """Expected outcomes of what a section says of resources that are where convention puts them."""
    found = set()
    for case, plugin, check in expected_checks():
        if plugin != section or check["name"].split(":")[0] not in {"read", *EFFECTS}:
            continue
        judged = contract(**case["contract"])
        for demand in getattr(judged, section):
            target = judged.target(demand)
            if target.kind == kind and check["name"].endswith(f": {target.label}"):
                found |= {check["outcome"]} if conventional(judged, target) else set()
    return found


def conventional(judged: Contract, target: Target) -> bool:
    """Whether no explicit path of the contract leads to what a reference means."""
    assert judged.resources is not None
    pages = judged.resources.page
    parts = [part for page in pages for key in PAGE_PARTS for part in getattr(page, key)]
    whole = [resource for kind in TYPES for resource in getattr(judged.resources, kind)]
    return not any(resource.path in target.paths for resource in (*whole, *parts))


@pytest.mark.parametrize("section", ["input_context", "output"])
@pytest.mark.parametrize("kind", CONVENTIONS)
def test_every_path_convention_has_a_case_that_passes_and_one_that_fails(
    section: str, kind: str
) -> None:
    assert {"passed", "failed"} <= by_convention(section, kind)


def parts_at(data: Any, section: str) -> list[Any]:
    """What stands at a place of a contract such as `trajectory.calls`; "" is the contract."""
    found = [data]
    for key in filter(None, section.split(".")):
        found = [part[key] for part in found if isinstance(part, dict) and key in part]
        found = [item for part in found for item in (part if isinstance(part, list) else [part])]
    return [part for part in found if isinstance(part, dict)]


ORDERS = list(get_args(Order))


@pytest.mark.parametrize(
    ("section", "key", "default", "values"),
    [
        ("trajectory", "order", "none", ORDERS),
        ("trajectory", "ask_before_write", False, [True, False]),
        ("trajectory.allowed_paths", "order", None, ["unordered", "exact"]),
        ("trajectory.calls", "occurrences", "any", ["any", "each"]),
        ("trajectory", "extra", "allow", ["allow", "reads_only", "forbid"]),
        ("trajectory.calls", "args_mode", "subset", ["exact", "subset", "keys"]),
        ("final", "scope", "answer", ["answer", "conversation"]),
        ("tools", "require_success", True, [True, False]),
        ("trace_health", "recovered_errors", "fail", ["allow", "fail"]),
        ("output", "operation", None, ["CREATE", "UPDATE", "DELETE"]),
        ("", "unrelated_reads", "report", ["report", "fail"]),
    ],
)
def test_every_setting_has_a_case_that_passes_and_one_that_fails(
    section: str, key: str, default: Any, values: list[Any]
) -> None:
    found = {
        (part.get(key, default), case["expected"]["outcome"])
        for case in CASES.values()
        for part in parts_at(case["contract"], section)
    }
    for value in values:
        assert {(value, "resolved"), (value, "unresolved")} <= found


def paths_of(case: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """(order, steps) of every legal path of a case."""
    trajectory = case["contract"].get("trajectory", {})
    found = []
    for path in trajectory.get("allowed_paths", ()):
        own = path if isinstance(path, dict) else {"path": path}
        found.append((own.get("order", trajectory.get("order", "exact")), own["path"]))
    return found


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("what", ["optional", "repeat", "no step", "failed call"])
def test_every_order_has_a_case_of(order: str, what: str) -> None:
    def shows(case: dict[str, Any], steps: list[Any]) -> bool:
        if what == "no step":
            return not steps
        if what == "failed call":
            return any("error" in call for call in case["trace"].get("tool_calls", ()))
        return any(isinstance(step, dict) and step.get(what) for step in steps)

    assert any(
        shows(case, steps)
        for case in CASES.values()
        for other, steps in paths_of(case)
        if other == order
    )


@pytest.mark.parametrize("section", EMPTY_SECTIONS)
def test_every_section_that_is_there_and_empty_has_a_case_that_passes_and_one_that_fails(
    section: str,
) -> None:
    outcomes = {
        case["expected"]["outcome"]
        for case in CASES.values()
        if section in case["contract"] and not case["contract"][section]
    }
    assert {"resolved", "unresolved"} <= outcomes


SECTIONS: list[type[Section]] = [
    SkillPolicy,
    Resource,
    Resources,
    Page,
    InputDemand,
    OutputDemand,
    ToolPolicy,
    Trajectory,
    LegalPath,
    PathStep,
    CallRule,
    Final,
    Budget,
    TraceHealth,
]


@pytest.mark.parametrize("model", SECTIONS)
def test_every_key_of_a_section_has_a_case(model: type[Section]) -> None:
    used = keys_in([case["contract"] for case in CASES.values()])
    assert {field.alias or name for name, field in model.model_fields.items()} <= used


def test_every_key_of_a_contract_that_is_judged_has_a_case() -> None:
    used = {key for case in CASES.values() for key in case["contract"]}
    assert set(Contract.model_fields) - HEADER <= used


def keys_in(value: Any) -> set[str]:
    """All keys of JSON data, at any depth."""
    if isinstance(value, list):
        return {key for item in value for key in keys_in(item)}
    if not isinstance(value, dict):
        return set()
    return {*value, *(key for item in value.values() for key in keys_in(item))}


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
