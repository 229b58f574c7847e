"""The JSON Schemas for editors say what the models say, as far as a schema can."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from benchmark_assets.adapters.contract_files import parse_contract
from benchmark_assets.adapters.harness_files import parse_profile
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.yaml_files import parse_yaml
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.golden import FixtureSource
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.schema import (
    contract_schema,
    described,
    fixture_schema,
    harness_schema,
    models_of,
    project_schema,
)
from tests.bench import bench
from tests.docs.consoles import DOCUMENTS, ROOT

CASES = ROOT / "tests" / "data" / "contracts"
COMMITTED = ROOT / "contracts" / "contract.schema.json"
OF_FIXTURES = COMMITTED.with_name("fixture.schema.json")
CONTRACTS = sorted(
    [
        *(ROOT / "contracts").rglob("*.yaml"),
        *(CASES / "good").glob("*.yaml"),
        *(ROOT / "tests" / "data" / "app_builder" / "contracts").glob("*.yaml"),
    ]
)
PROFILES = sorted((ROOT / "benchmark_assets" / "harnesses").glob("*.yaml"))
PROJECTS = (
    ROOT / "benchmark.yaml",
    ROOT / "benchmark_assets" / "cli" / "project" / "benchmark.yaml",
)

SCHEMAS: list[tuple[Callable[[], dict[str, Any]], type[BaseModel]]] = [
    (contract_schema, Contract),
    (fixture_schema, FixtureSource),
    (harness_schema, HarnessProfile),
    (project_schema, ProjectConfig),
]

# Mistakes that a schema cannot see, and what it would have to know.
UNSEEN = {
    "bad_json_schema": "whether a JSON Schema is one",
    "bad_matchers": "matchers, which may stand at any depth among any data",
    "bad_regex": "regular expressions of Python",
    "both_required_and_forbidden": "one list against another",
    "calls_demand_nothing": "what several keys demand together",
    "matcher_with_other_keys": "matchers, likewise",
    "metadata_as_number": "how a number is written",
    "nearly_a_matcher": "matchers, likewise",
    "order_without_paths": "one key against another",
    "paths_and_pairs": "what several keys demand together, and how many tools a pair names",
    "ref_elsewhere": "whether a $ref leads somewhere",
    "ref_leads_nowhere": "whether a $ref leads somewhere",
    "budgets": "what several keys demand together",
    "demands_nothing": "what several keys demand together",
    "duplicate_names": "one entry against another",
    "match_matchers": "matchers, likewise",
    "references": "what a reference leads to",
    "two_conditions": "one key against another",
    "unrelated_reads_alone": "one key against another",
}


def errors(schema: dict[str, Any], data: Any) -> list[str]:
    return [error.message for error in Draft202012Validator(schema).iter_errors(data)]


def data_of(path: Path) -> dict[str, Any]:
    return parse_yaml(path.read_bytes(), path.name).data


def parts(schema: dict[str, Any], model: type[BaseModel]) -> Iterator[tuple[Any, type[BaseModel]]]:
    """Every section's part of a schema with its model."""
    defined = {found.__name__: found for found in models_of(model)}
    named = {model.__name__: schema, **schema["$defs"]}
    assert named.keys() == defined.keys()
    yield from ((named[name], defined[name]) for name in named)


@pytest.mark.parametrize(("kind", "path"), [("contract", COMMITTED), ("fixture", OF_FIXTURES)])
def test_the_committed_schema_is_the_generated_one(kind: str, path: Path, tmp_path: Path) -> None:
    assert bench("schema", kind, "--out", tmp_path / "s.json").code == 0
    assert path.read_bytes() == (tmp_path / "s.json").read_bytes()


@pytest.mark.parametrize("kind", ["contract", "fixture", "harness", "project"])
def test_the_command_prints_a_schema(kind: str) -> None:
    result = bench("schema", kind)
    assert result.code == 0
    assert result.err == ""
    Draft202012Validator.check_schema(json.loads(result.out))
    assert bench("schema", "contracts").code == 2


@pytest.mark.parametrize(("make", "model"), SCHEMAS)
def test_keys_are_the_models_and_each_is_described(
    make: Callable[[], dict[str, Any]], model: type[BaseModel]
) -> None:
    for part, section in parts(make(), model):
        keys = {info.alias or name for name, info in section.model_fields.items()}
        assert part["properties"].keys() == keys, section.__name__
        assert part["additionalProperties"] is False
        assert part["description"]
        for key, value in part["properties"].items():
            assert len(value.get("description", "")) > 5, f"{section.__name__}.{key}"
            assert "  " not in value["description"]


@pytest.mark.parametrize(("make", "model"), SCHEMAS)
def test_docstrings_describe_no_key_that_is_not_there(
    make: Callable[[], dict[str, Any]], model: type[BaseModel]
) -> None:
    for _, section in parts(make(), model):
        assert described(section).keys() <= section.model_fields.keys(), section.__name__


@pytest.mark.parametrize("path", CONTRACTS, ids=lambda path: path.stem)
def test_good_contracts_fit(path: Path) -> None:
    assert errors(contract_schema(), data_of(path)) == []


def test_every_contract_of_the_demo_leads_editors_to_the_schema() -> None:
    for path in (ROOT / "contracts").rglob("*.yaml"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
        assert found, path
        assert (path.parent / found[1]).resolve() == COMMITTED


def test_the_line_for_editors_is_no_part_of_a_contract() -> None:
    text = 'workflow: orders\ncontract_version: "1"\ntools: {required: a}\n'
    line = "# yaml-language-server: $schema=contract.schema.json\n"
    one = parse_contract(text.encode(), "a.yaml", "a")
    assert parse_contract((line + text).encode(), "a.yaml", "a").content_hash == one.content_hash


BAD = sorted((CASES / "bad").glob("*.yaml"))


def readable(path: Path) -> dict[str, Any] | None:
    """What a file holds; None where it cannot be read, or not without guessing."""
    try:
        document = parse_yaml(path.read_bytes(), path.name)
    except InputError:
        return None
    return None if document.problems else document.data


@pytest.mark.parametrize("path", BAD, ids=lambda path: path.stem)
def test_bad_contracts_are_refused_where_a_schema_can_see_it(path: Path) -> None:
    data = readable(path)
    if data is not None:
        seen = errors(contract_schema(), data) != []
        assert seen == (path.stem not in UNSEEN), UNSEEN.get(path.stem, "the schema accepts it")


def test_the_exceptions_are_cases() -> None:
    assert UNSEEN.keys() <= {path.stem for path in BAD}
    assert sum(readable(path) is not None and path.stem not in UNSEEN for path in BAD) >= 10


BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
IN_DOCS = [
    pytest.param(block, id=f"{path.name}-{index}")
    for path in DOCUMENTS
    for index, block in enumerate(BLOCK.findall(path.read_text(encoding="utf-8")))
    if re.search(r"^workflow:", block, re.MULTILINE)
]


@pytest.mark.parametrize("block", IN_DOCS)
def test_contracts_in_documents(block: str) -> None:
    """What loads fits, and the mistakes that documents show are marked in an editor."""
    try:
        parse_contract(block.encode(), "block.yaml", "block")
    except InputError:
        assert errors(contract_schema(), parse_yaml(block.encode(), "block.yaml").data)
    else:
        assert errors(contract_schema(), parse_yaml(block.encode(), "block.yaml").data) == []


def test_documents_have_contracts() -> None:
    assert len(IN_DOCS) >= 4


# What a person may write shorter, and null for an empty section.
SHORT = [
    "skills: {required: a}",
    "skills:",
    "tools:",
    "tools: {required: a, optional: [b], forbidden: c}",
    "input_context:",
    "input_context: []",
    "input_context: [{resource: api.a, terms: b}]\nresources: {api: [{name: a}]}",
    "output:",
    "output: [{resource: api.a, operation: CREATE, match: [b, 1]}]\nresources: {api: [{name: a}]}",
    "output: [{resource: api.a, operation: CREATE, match: {b: 1}}]\nresources: {api: [{name: a}]}",
    "resources:",
    "trajectory:",
    "final:",
    "budget:",
    "harness:",
    "description:",
    "knowledge: docs/**",
    "ends_with: user_stop",
    "ends_with: [a, b]",
    "applies_to: {workflow: a, task: [a, b], prompt: {regex: a}, tags: {equals: a}}",
    "applies_to: {metadata: {a: 1, b: 1.5, c: true, d: x, e: [x, y], f: {glob: x}}}",
    "trajectory: {calls: [{tool: a, args: [b, c]}]}",
    "trajectory: {calls: [{tool: a, args: {b: {any: true}}}], writes: x}",
    "trajectory: {allowed_paths: [[], [a, {tool: b, optional: true}]]}",
    "trajectory: {allowed_paths: [{path: [a, {tool: b, repeat: true}], order: subset}]}",
    "trajectory: {before: [[a, b], [c, d]], value_hashes: {a: {b: 0123456789abcdef}}}",
    "trajectory: {ask_before_write: true}",
    "applies_to: {any_of: [{task: a}, {prompt: {regex: a}, any_of: [{tags: b}]}]}",
    "final: {contains: a}",
    "plugins: {x: , y: [1], z: {a: 1}}",
]
LONG = [
    "ends_with: []",
    "applies_to: {workflow: []}",
    "applies_to: {workflow: {equals: []}}",
    "skills: a",
    "tools: [a]",
    "trace_health:",
    "knowledge:",
    "output: {resource: api.a}",
    "output: [{resource: api.a, operation: create}]",
    "resources: {api: [a]}",
    "resources: {soap: [{name: a}]}",
    "resources: {page: [{name: a, widgets: []}]}",
    "budget: {max_steps: -1}",
    "budget: {max_steps: 1.5}",
    "budget: {max_cost: 1}",
    "unrelated_reads: ignore",
    "trajectory: {calls: [{tool: a, args: [1]}]}",
    "trajectory: {allowed_paths: [a]}",
    "trajectory: {allowed_paths: [[[a]]]}",
    "trajectory: {allowed_paths: [{path: [a], order: any}]}",
    "trajectory: {allowed_paths: [[{tool: a, optional: 1}]]}",
    "trajectory: {before: [a, b]}",
    "trajectory: {value_hashes: {a: {b: 0123456789ABCDEF}}}",
    "trajectory: {value_hashes: {a: {}}}",
    "trajectory: {calls: [{tool: a, occurrences: all}]}",
    "applies_to: {any_of: {task: a}}",
    "plugins: [a]",
]
HEADER = 'workflow: orders\ncontract_version: "1"\n'


@pytest.mark.parametrize("text", SHORT)
def test_short_forms_fit(text: str) -> None:
    parse_contract((HEADER + text).encode(), "a.yaml", "a")
    assert errors(contract_schema(), parse_yaml((HEADER + text).encode(), "a.yaml").data) == []


@pytest.mark.parametrize("text", LONG)
def test_what_the_loader_refuses_by_its_shape_does_not_fit(text: str) -> None:
    with pytest.raises(InputError):
        parse_contract((HEADER + text).encode(), "a.yaml", "a")
    assert errors(contract_schema(), parse_yaml((HEADER + text).encode(), "a.yaml").data)


@pytest.mark.parametrize("key", ["workflow", "contract_version"])
def test_what_is_required(key: str) -> None:
    data = {"workflow": "orders", "contract_version": "1"}
    assert errors(contract_schema(), data) == []
    del data[key]
    assert errors(contract_schema(), data) == [f"'{key}' is a required property"]


# Harness profiles.


@pytest.mark.parametrize("path", PROFILES, ids=lambda path: path.stem)
def test_packaged_profiles_fit(path: Path) -> None:
    assert errors(harness_schema(), data_of(path)) == []


TOOLS = [
    ("grep: none", True),
    ("grep: [none]", True),
    ("read: {effect: read, path: file_path}", True),
    ('read: {effect: read, path: ["files[]", path], failed: "^Error"}', True),
    ("read: [{effect: read, path: a, failed: {at: b}}, {effect: none, when: [{at: c}]}]", True),
    ("read: {effect: read, path: a, failed: {at: b, equals: 1}}", True),
    ("read: {effect: read, path: a, failed: {at: b, equals: ''}}", True),
    ("grep: nothing", False),
    ("grep: []", False),
    ("read: {effect: read, path: a, failed: {at: b, equals: []}}", False),
    ("read: {effect: read, paths: a}", False),
]


@pytest.mark.parametrize(("tool", "good"), TOOLS)
def test_short_forms_of_profiles(tool: str, good: bool) -> None:
    text = f"name: x\nrecognised_by: read\ntools:\n  {tool}\n".encode()
    try:
        parse_profile(text, "x.yaml")
    except InputError:
        assert not good
    else:
        assert good
    assert (errors(harness_schema(), parse_yaml(text, "x.yaml").data) == []) == good


def test_commands_of_profiles() -> None:
    commands = "{build: ^mvn, validate: [^a, {regex: ^b, failed: c}], none: [^ls]}"
    text = f"name: x\nrecognised_by: r\ntools: {{r: none}}\ncommands: {commands}\n".encode()
    parse_profile(text, "x.yaml")
    assert errors(harness_schema(), parse_yaml(text, "x.yaml").data) == []


# The project file.


@pytest.mark.parametrize("path", PROJECTS, ids=["repository", "template"])
def test_project_files_fit(path: Path) -> None:
    assert errors(project_schema(), data_of(path)) == []


PROJECT_FILE = """\
store: s3://bucket/store
contracts: contracts/
harnesses: harnesses/
plugins: [checks/no_secrets.py]
sources:
  - {name: runs, path: traces, default_date: 2026-01-31}
models:
  gpt-4o: {aliases: openai/gpt-4o, input_usd_per_mtok: 2.5, output_usd_per_mtok: 10}
model_key: model
task: {from: session}
first_date: 2026-01-01
schedule: {cron: "0 3 * * *", timezone: Europe/Berlin, lookback_days: 1}
replay:
  agent: my_agent:run
  comparable: {refund_payment: [order_id], get_order: "*"}
  comparable_final: status
  others: drop
  texts: keep
write_back: {scores: true, sources: [runs], events: verdicts.jsonl}
"""


def test_every_key_of_a_project_file(tmp_path: Path) -> None:
    file = tmp_path / "benchmark.yaml"
    file.write_text(PROJECT_FILE, encoding="utf-8")
    assert load_project(file, env={}).config.task.from_ == "session"
    data = data_of(file)
    assert errors(project_schema(), data) == []
    assert data.keys() == project_schema()["properties"].keys()
    assert errors(project_schema(), {**data, "source": []})


# `bench init`.


def test_a_new_project_has_the_schema_beside_its_contracts(tmp_path: Path) -> None:
    written = tmp_path / "new" / "contracts" / "contract.schema.json"
    assert bench("init", tmp_path / "new").code == 0
    assert written.read_bytes() == COMMITTED.read_bytes()
    of_fixtures = written.with_name("fixture.schema.json")
    assert of_fixtures.read_bytes() == OF_FIXTURES.read_bytes()
    assert "All files are there already." in bench("init", "new", cwd=tmp_path).out
    # After an upgrade it is brought up to date; what people wrote stays.
    written.write_text("{}", encoding="utf-8")
    config = tmp_path / "new" / "benchmark.yaml"
    config.write_text("contracts: [rules, one.yaml]\n", encoding="utf-8")
    assert bench("init", "new", cwd=tmp_path).out.startswith("Wrote new/rules/contract.schema.json")
    assert config.read_text(encoding="utf-8") == "contracts: [rules, one.yaml]\n"
    config.unlink()
    assert bench("init", "new", cwd=tmp_path).code == 0
    assert written.read_bytes() == COMMITTED.read_bytes()
