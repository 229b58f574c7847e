"""The reference of contracts has every key, and each of its examples does what it says.

A YAML block whose first line is `# refused: MESSAGE` is refused with that message. One with
lines such as `# passes` or `# fails: REASON` holds runs for the contract in the block before:
lists of `TOOL: ARGUMENTS`, with `result` or `error` beside; `says` is the final answer, `asks` a
question that the user answers, `ended` how the run ended, `trace` fields of the trace. All other blocks load, alone or with a header.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

import pytest
import yaml
from pydantic import BaseModel

from benchmark_assets.adapters.contract_files import parse_contract
from benchmark_assets.adapters.fixture_files import read_fixture
from benchmark_assets.adapters.harness_files import packaged_profiles
from benchmark_assets.model import contract as sections
from benchmark_assets.model import resources as registry
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.golden import (
    WHOLE_SECTIONS,
    FixtureInput,
    FixtureSource,
    PublishedExpect,
)
from benchmark_assets.model.matchers import MATCHERS
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.resources import CONVENTIONS, PAGE_PARTS
from benchmark_assets.model.schema import models_of
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import CheckOutcome, Outcome
from benchmark_assets.scoring.evaluate import evaluate
from benchmark_assets.scoring.routing import applies
from tests.docs.consoles import ROOT
from tests.docs.tables import code, codes, compare_keys, rows, under_headings
from tests.scoring.build import trace

TEXT = (ROOT / "contracts" / "README.md").read_text(encoding="utf-8")
HEADER = 'workflow: orders\ncontract_version: "1"\n'

# Which heading a section's keys stand under.
SECTIONS: dict[str, type[BaseModel]] = {
    "Every key": Contract,
    "`applies_to`": sections.AppliesTo,
    "A condition": sections.TextRule,
    "`skills`": sections.SkillPolicy,
    "`resources`": registry.Resources,
    "An entry": registry.Resource,
    "A file": registry.File,
    "A page": registry.Page,
    "`input_context`": sections.InputDemand,
    "`output`": sections.OutputDemand,
    "`tools`": sections.ToolPolicy,
    "`trajectory`": sections.Trajectory,
    "A path": sections.LegalPath,
    "A step": sections.PathStep,
    "A call": sections.CallRule,
    "`final`": sections.Final,
    "`budget`": sections.Budget,
    "`ends_with` and `trace_health`": sections.TraceHealth,
}
FILLED_IN = ("id", "name", "group", "applies_to")


# Tables.


def test_every_section_has_a_heading() -> None:
    assert set(SECTIONS.values()) == set(models_of(Contract))


def test_every_key_is_documented_as_it_is_and_no_other() -> None:
    compare_keys(TEXT, SECTIONS, [(Contract, key) for key in FILLED_IN])


def test_matchers_are_documented() -> None:
    documented = [yaml.safe_load(code(row[0])) for row in rows(TEXT, "matcher")]
    assert sorted(next(iter(matcher)) for matcher in documented) == sorted(MATCHERS)
    for matcher in documented:
        args = {"trajectory": {"calls": [{"tool": "a", "args": {"x": matcher}}]}}
        parse_contract((HEADER + yaml.safe_dump(args)).encode(), "m.yaml", "m")


def test_conventions_are_documented() -> None:
    documented = {
        code(row[0]): code(row[1])
        for row in rows(under_headings(TEXT)["Where resources live"], "type")
    }
    inside = {f"page.*.{part}": CONVENTIONS[part] for part in PAGE_PARTS}
    whole = {kind: path for kind, path in CONVENTIONS.items() if kind not in PAGE_PARTS}
    assert documented == whole | inside


def test_orders_are_documented() -> None:
    documented = [name for row in rows(TEXT, "order") for name in codes(row[0])]
    assert sorted(documented) == sorted(get_args(sections.Order))


def test_fixtures_are_documented() -> None:
    """Every key that only fixtures have is in the text, and the fixture shown loads."""
    below = under_headings(TEXT)["Fixtures"]
    published = {code(row[0]) for row in rows(below, "in `expect`")}
    assert published | set(WHOLE_SECTIONS) == set(PublishedExpect.model_fields)
    section = TEXT.partition("## Fixtures\n")[2].partition("\n## ")[0]
    [shown] = re.findall(r"^```json\n(.*?)^```$", section, re.DOTALL | re.MULTILINE)
    fixture = read_fixture(shown.encode(), "example.json")
    assert fixture.contract.trajectory is not None
    header = {field.alias or key for key, field in FixtureSource.model_fields.items()}
    assert all(f"`{key}`" in below or f'"{key}"' in below for key in header)
    for key in FixtureInput.model_fields:
        assert f"`input.{key}`" in below


def test_outcomes_are_documented() -> None:
    verdicts = under_headings(TEXT)["Verdicts"]
    assert {row[0].strip("*") for row in rows(verdicts, "outcome")} == set(get_args(Outcome))
    assert all(f"`{word}`" in verdicts for word in get_args(CheckOutcome))


def test_references_mean_what_is_said() -> None:
    """Every reference of the table resolves, with these things declared."""
    declared = {
        "api": [{"name": "hrdb"}, {"name": "hr.db"}],
        "page": [{"name": "Main", "variable": [{"name": "svcVacations"}]}],
    }
    resources = registry.Resources.model_validate(declared)
    meant = {
        code(row[0]): registry.resolve(code(row[0]), resources)
        for row in rows(under_headings(TEXT)["References"], "reference")
    }
    assert {reference: (found.name, found.qualifiers) for reference, found in meant.items()} == {
        "api.hrdb": ("hrdb", ()),
        "api.hrdb.getVacation": ("hrdb", ("getVacation",)),
        "page.Main.variable.svcVacations": ("svcVacations", ()),
        "page.Main.variable": (None, ()),
        "page.Main.variable.category": (None, ("category",)),
        'api."hr.db".getVacation': ("hr.db", ("getVacation",)),
        "api.hr.db.getVacation": ("hr.db", ("getVacation",)),
    }


# Examples.


@dataclass(frozen=True)
class Run:
    """A run of an example: the contract, what is said to come of it, and the run's steps."""

    contract: str
    said: str
    steps: list[dict[str, Any]]


SAYS = re.compile(r"^# (passes|judged|not judged|(?:fails|error): .*)\n", re.MULTILINE)
BLOCKS = re.findall(r"^```yaml\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
CONTRACTS = [block for block in BLOCKS if not SAYS.search(block)]


def runs() -> Iterator[Run]:
    contract = ""
    for block in BLOCKS:
        parts = SAYS.split(block)
        if len(parts) == 1:
            contract = block
            continue
        assert parts[0] == ""
        for said, steps in zip(parts[1::2], parts[2::2], strict=True):
            yield Run(contract, said, yaml.safe_load(steps))


def whole(block: str) -> str:
    """A fragment as a contract; recovered errors are allowed unless it says otherwise."""
    if re.search(r"^workflow:", block, re.MULTILINE):
        return block
    health = "" if "recovered_errors" in block else "trace_health: {recovered_errors: allow}\n"
    return HEADER + health + block


def loaded(block: str) -> Contract:
    return parse_contract(whole(block).encode(), "example.yaml", "example")


def run_of(steps: list[dict[str, Any]]) -> TraceSnapshot:
    fields: dict[str, Any] = {"tool_calls": [], "messages": [], "ended_normally": True}
    for step in steps:
        if "trace" in step:
            fields |= step["trace"]
        elif "says" in step:
            fields["final_answer"] = step["says"]
        elif "asks" in step:
            before = len(fields["tool_calls"])
            question = {"text": step["asks"], "before_call": before, "question": True}
            fields["messages"].append(question)
        elif "ended" in step:
            fields["ended"] = step["ended"]
        else:
            [(tool, arguments), *more] = step.items()
            assert {key for key, _ in more} <= {"result", "error"}
            status = "error" if "error" in step else "ok"
            call = {"name": tool, "arguments": arguments, "status": status, **dict(more)}
            fields["tool_calls"].append(call)
    return trace(**fields)


@pytest.mark.parametrize("block", CONTRACTS)
def test_contracts_load_or_are_refused_as_said(block: str) -> None:
    refused = re.match(r"# refused: (.*)\n", block)
    if refused is None:
        loaded(block)
        return
    with pytest.raises(InputError) as caught:
        loaded(block)
    [problem] = [str(problem) for problem in caught.value.problems]
    assert re.sub(r"^example\.yaml:\d+: ", "", problem) == refused[1]


@pytest.mark.parametrize("run", list(runs()), ids=lambda run: run.said)
def test_runs_come_out_as_said(run: Run) -> None:
    contract = loaded(run.contract)
    if run.said.endswith("judged"):
        assert applies(contract, run_of(run.steps)) == (run.said == "judged")
        return
    verdict = evaluate(run_of(run.steps), contract, packaged_profiles())
    outcome, _, reason = run.said.partition(": ")
    wanted = {"passes": "resolved", "fails": "unresolved", "error": "error"}[outcome]
    assert (verdict.outcome, verdict.reason or "") == (wanted, reason)


def test_every_section_that_judges_shows_what_passes_and_what_fails() -> None:
    shown: dict[str, set[str]] = {}
    for run in runs():
        if not run.said.endswith("judged"):
            for key in loaded(run.contract).model_fields_set:
                shown.setdefault(key, set()).add(run.said.partition(":")[0])
    judging = ("skills", "input_context", "output", "tools", "trajectory", "final", "budget")
    for key in (*judging, "unrelated_reads", "ends_with", "trace_health", "harness"):
        assert shown[key] >= {"passes", "fails"}, key
