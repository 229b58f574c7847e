"""Fixtures of golden traces: what one user turn demands of the path, as people write it in JSON.

Belongs here: the fixture as it is written, and the contract that it stands for. Does not belong
here: reading the file (`adapters/fixture_files`) or grading (`scoring/golden_path`).

`expect` takes the keys of a contract's sections `trajectory`, `final` and `budget`, and the sections
`ends_with` and `trace_health`, under their own names and with their own meaning: the fields are
those of the sections. Beside them stand the names of the published fixture format, each short for
keys of these sections.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, create_model, model_validator

from benchmark_assets.model.contract import (
    Budget,
    Contract,
    Final,
    LegalPath,
    TraceHealth,
    Trajectory,
)
from benchmark_assets.model.section import JsonSchema, Names, NonEmpty, Section, SomeNames

SECTIONS: tuple[tuple[str, type[Section]], ...] = (
    ("trajectory", Trajectory),
    ("final", Final),
    ("budget", Budget),
)
"""The contract's sections whose keys `expect` takes, by name."""

WHOLE_SECTIONS = ("ends_with", "trace_health")
"""Sections that `expect` takes under their own name, as they stand in a contract."""

DEMANDS = frozenset({"trajectory", "final", "budget", "ends_with", "tools"})
"""Sections of the contract of a fixture that demand something. Health is judged anyway."""

WORKFLOW = "golden"
"""What fixtures belong to that name no workflow."""


def _text(value: Any) -> Any:
    """Numbers are as good as texts for a version: JSON has no `1.10` that reads as 1.1 unseen."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _list(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class FixtureInput(Section):
    """What the user says.

    Attributes:
        user: The user's turn.
        turns: Further turns, in a conversation of several.
    """

    user: NonEmpty
    turns: Names = ()


KeyLists = dict[NonEmpty, Annotated[tuple[NonEmpty, ...], BeforeValidator(_list)]]


class PublishedExpect(Section):
    """The keys of the published fixture format.

    Attributes:
        tool_names: The tools called, in order, and no others: one of `allowed_paths`.
        required_arg_keys: Tool → arguments that every call of it must have: `calls`. The tool must
            be called, too, unless a legal path that others share with it is without it.
        forbidden_tools: Tools that must not be called: a contract's `tools.forbidden`.
        must_ask_before_write: `ask_before_write`.
        write_tools: `writes`.
        final_schema: `schema`.
        ends_with: How the run must end, in its source's words; globs: a contract's `ends_with`.
        trace_health: What the health of the trace must be: a contract's `trace_health`.
    """

    tool_names: Annotated[tuple[NonEmpty, ...], BeforeValidator(_list)] | None = None
    required_arg_keys: KeyLists = Field(default_factory=dict)
    forbidden_tools: Names = ()
    must_ask_before_write: bool = False
    write_tools: Names = ()
    final_schema: JsonSchema | None = None
    ends_with: SomeNames | None = None
    trace_health: TraceHealth | None = None


def _fields() -> dict[str, Any]:
    """The fields of the sections as those of one model."""
    return {
        name: (field.annotation, field)
        for _, section in SECTIONS
        for name, field in section.model_fields.items()
    }


Expect: type[BaseModel] = create_model(
    "Expect",
    __base__=PublishedExpect,
    __doc__="What a run must do: keys of the sections, and those of the published format.",
    **_fields(),
)

_SAME = (
    ("tool_names", "allowed_paths"),
    ("must_ask_before_write", "ask_before_write"),
    ("write_tools", "writes"),
    ("final_schema", "schema"),
)
"""Keys of the published format and the ones they stand for: one of the two is enough."""


class FixtureSource(Section):
    """A fixture as it is written.

    Attributes:
        id: Unique key; tasks, candidate traces and the golden trace are named by it.
        input: What the user says.
        expect: What the run must do.
        version: Which edition of the demands this is.
        comment: What it is about, for people.
        workflow: The use case.
        group: What the leaderboard groups by; default: `workflow`.
        schema_: Where editors find the schema of fixtures (key `$schema`); says nothing else.
    """

    id: NonEmpty
    input: FixtureInput
    expect: Expect  # type: ignore[valid-type]
    version: Annotated[NonEmpty, BeforeValidator(_text, json_schema_input_type=NonEmpty | int)] = (
        "1"
    )
    comment: str | None = None
    workflow: NonEmpty = WORKFLOW
    group: NonEmpty | None = None
    schema_: str | None = Field(default=None, alias="$schema")

    @model_validator(mode="after")
    def _one_name_each(self) -> FixtureSource:
        expect: BaseModel = self.expect
        fields = type(expect).model_fields
        given = {fields[name].alias or name for name in expect.model_fields_set}
        both = [
            f"expect.{one}: says the same as {other}; give one of them"
            for one, other in _SAME
            if one in given and other in given
        ]
        if both:
            raise ValueError("; ".join(both))
        return self


@dataclass(frozen=True)
class Fixture:
    """A fixture, read and understood.

    Attributes:
        id: Its key.
        user: The user's turn.
        turns: Further turns.
        contract: What it demands; what everything downstream judges by.
    """

    id: str
    user: str
    turns: tuple[str, ...]
    contract: Contract


def contract_data(source: FixtureSource, expect: Mapping[str, Any]) -> dict[str, Any]:
    """The contract that a fixture stands for, as data.

    Args:
        source: The fixture, validated.
        expect: Its `expect` as it is written. It demands something if there is one of `DEMANDS`.
    """
    expect = {key: value for key, value in expect.items() if value is not None}
    data: dict[str, Any] = {
        "id": source.id,
        "workflow": source.workflow,
        "contract_version": source.version,
        # A trace is of this fixture if it says so, or if the user said just this.
        "applies_to": {"any_of": [{"task": [source.id]}, {"prompt": [source.input.user]}]},
    }
    if source.comment:
        data["description"] = source.comment
    if source.group:
        data["group"] = source.group
    for name, section in SECTIONS:
        names = {field.alias or key for key, field in section.model_fields.items()}
        given = {key: value for key, value in expect.items() if key in names}
        if given:
            data[name] = given
    for name in WHOLE_SECTIONS:
        if name in expect:
            data[name] = expect[name]
    _add_published(data, expect)
    return data


def _add_published(data: dict[str, Any], expect: Mapping[str, Any]) -> None:
    trajectory: dict[str, Any] = dict(data.get("trajectory", {}))
    if "tool_names" in expect:
        trajectory["allowed_paths"] = [list(expect["tool_names"])]
    if expect.get("write_tools"):
        trajectory["writes"] = expect["write_tools"]
    if expect.get("must_ask_before_write"):
        trajectory["ask_before_write"] = True
    if expect.get("required_arg_keys"):
        trajectory["calls"] = [
            *trajectory.get("calls", ()),
            *_key_rules(expect["required_arg_keys"], trajectory),
        ]
    if trajectory:
        data["trajectory"] = trajectory
    if expect.get("forbidden_tools"):
        data["tools"] = {"forbidden": expect["forbidden_tools"]}
    if expect.get("final_schema") is not None:
        data["final"] = {**data.get("final", {}), "schema": expect["final_schema"]}


def _key_rules(required: Mapping[str, Any], trajectory: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each call of a tool must have its keys, and where it is not called, it lacks them.

    Only paths excuse a tool: one that is on some path need not be called where another path is
    without it, or it is optional there. On no path it is demanded for the keys themselves; for
    no keys it is not.
    """
    legal = [
        LegalPath.model_validate({"path": path} if isinstance(path, list | tuple) else path)
        for path in trajectory.get("allowed_paths", ())
    ]
    orders = [path.order or trajectory.get("order") for path in legal]
    needed = [
        # Of a subset every tool may be left out.
        set() if order == "subset" else {step.tool for step in path.path if not step.optional}
        for path, order in zip(legal, orders, strict=True)
    ]
    named = {step.tool for path in legal for step in path.path}

    def demanded(tool: str, keys: Any) -> bool:
        if legal and tool not in named:
            return bool(keys)
        return all(tool in tools for tools in needed)

    return [
        {
            "tool": _escaped(tool),
            "args": list(keys),
            "args_mode": "keys",
            "occurrences": "each",
            "min": int(demanded(tool, keys)),
        }
        for tool, keys in required.items()
    ]


def _escaped(name: str) -> str:
    """A tool's name as a glob that fits it and nothing else."""
    return re.sub(r"([*?[])", r"[\1]", name)
