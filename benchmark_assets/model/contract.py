"""A contract: what one use case demands of a trace, as people write it in YAML.

Belongs here: the sections of a contract, their validation, and the contract's identity and
hash. Does not belong here: reading YAML and turning errors into file:line
(`adapters/contract_files`) or judging a trace (`scoring`).

Every section is optional and an absent section is not judged. Unknown keys are errors: a
misspelt `forbiden:` that is silently ignored is a check that never runs.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from functools import cached_property
from math import isfinite
from typing import Annotated, Any, Literal

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    field_validator,
    model_validator,
)
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012, EMPTY_REGISTRY

from benchmark_assets.model.identity import canonical_json, content_hash

Scalar = str | int | float | bool


class Section(BaseModel):
    """Base of everything a person writes: frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _one_or_many(value: Any) -> Any:
    """Let a person write `x` for `[x]`; lists become tuples, the only frozen sequence."""
    if isinstance(value, list):
        return tuple(value)
    return value if value is None or isinstance(value, tuple) else (value,)


def _regex(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error
    return pattern


def _json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        at = "/".join(str(part) for part in error.absolute_path)
        raise ValueError(
            f"is not a JSON Schema: {error.message}" + (f" at {at}" if at else "")
        ) from error
    resource = DRAFT202012.create_resource(schema)
    _check_references(schema, EMPTY_REGISTRY.resolver_with_root(resource).lookup)
    return schema


LookUp = Callable[[str], Any]
"""Resolves a reference inside one schema; nothing is fetched from elsewhere."""

_NAMED = ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions")
"""Keywords under which keys are names, so that `default` is a schema there and not a value."""


def _check_references(part: Any, look_up: LookUp, path: tuple[str, ...] = ()) -> None:
    """Refuse references that lead nowhere: found when the contract loads, not at night."""
    if isinstance(part, list):
        for index, item in enumerate(part):
            _check_references(item, look_up, (*path, str(index)))
    if not isinstance(part, dict):
        return
    for keyword in ("$ref", "$dynamicRef"):
        reference = part.get(keyword)
        if isinstance(reference, str) and not _leads_somewhere(reference, look_up):
            raise ValueError(
                f"is not a JSON Schema: {keyword} leads nowhere in this schema: {reference} "
                f"at {'/'.join((*path, keyword))}"
            )
    for key, item in part.items():
        if key in _NAMED and isinstance(item, dict):
            for name, named in item.items():
                _check_references(named, look_up, (*path, key, name))
        elif key not in ("const", "enum", "default", "examples"):
            _check_references(item, look_up, (*path, key))


def _leads_somewhere(reference: str, look_up: LookUp) -> bool:
    try:
        found = look_up(reference).contents
    except (Unresolvable, ValueError, TypeError):  # The latter two: a step into what has none.
        return False
    return isinstance(found, dict | bool)


def _visible(text: str) -> str:
    if not text.strip():
        raise ValueError("holds only white space; write a text, or remove it")
    return text


NonEmpty = Annotated[str, Field(min_length=1), AfterValidator(_visible)]
Names = Annotated[tuple[NonEmpty, ...], BeforeValidator(_one_or_many)]
"""One name or a list of names; `*`, `?` and `[…]` are globs where tools are named."""

SomeNames = Annotated[Names, Field(min_length=1)]
"""At least one name: a list of none would be a condition that nothing meets."""

Regex = Annotated[str, Field(min_length=1), AfterValidator(_regex)]
JsonSchema = Annotated[dict[str, Any], AfterValidator(_json_schema)]


class TextRule(Section):
    """A condition on one text. Exactly one key: `equals`, `contains`, `regex` or `glob`.

    `contains` ignores case; `regex` is searched anywhere in the text.
    """

    equals: SomeNames | None = None
    contains: NonEmpty | None = None
    regex: Regex | None = None
    glob: NonEmpty | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> TextRule:
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of equals, contains, regex, glob")
        return self


def _text_rule(value: Any) -> Any:
    """A plain text or a list of texts means `equals`: it must be one of them."""
    if isinstance(value, str | list | tuple):
        return {"equals": value}
    return value


Rule = Annotated[TextRule, BeforeValidator(_text_rule)]


def _metadata_rule(value: Any) -> Any:
    """Metadata is compared as text, as tracing servers do; `5` and `"5"` are the same."""
    if isinstance(value, bool):
        return {"equals": "true" if value else "false"}
    if isinstance(value, int | float):
        return {"equals": str(value)}
    return _text_rule(value)


class AppliesTo(Section):
    """Which traces a contract judges: all given conditions must hold.

    A plain value or a list means "equals one of"; `{contains: …}`, `{regex: …}` and
    `{glob: …}` are the alternatives. `tags` and `agent` hold if any tag or agent of the trace
    fits. `prompt` is compared with runs of white space folded.
    """

    trace_name: Rule | None = None
    workflow: Rule | None = None
    task: Rule | None = None
    environment: Rule | None = None
    tags: Rule | None = None
    agent: Rule | None = None
    prompt: Rule | None = None
    metadata: dict[str, Annotated[TextRule, BeforeValidator(_metadata_rule)]] = {}

    @model_validator(mode="after")
    def _some_condition(self) -> AppliesTo:
        if not self.model_fields_set or (
            self.model_fields_set == {"metadata"} and not self.metadata
        ):
            raise ValueError("names no condition; leave the section out to select by workflow")
        return self


class ToolPolicy(Section):
    """Which tools a run must, may and must not use; names are globs."""

    required: Names = ()
    optional: Names = ()
    forbidden: Names = ()

    @model_validator(mode="after")
    def _not_both(self) -> ToolPolicy:
        both = sorted(set(self.required) & set(self.forbidden))
        if both:
            raise ValueError(f"requires and forbids the same tool: {', '.join(both)}")
        return self


MATCHERS: tuple[str, ...] = (
    "any",
    "regex",
    "one_of",
    "unordered",
    "approx",
    "contains",
    "sha256",
    "ignore_case",
    "literal",
)
"""Keys that make an object in `args` a matcher instead of a literal object."""


def reads_as_matcher(value: Any) -> bool:
    """Whether some object in an argument's value is read as a matcher, or refused as nearly one.

    Such a value, meant as it stands, is written `{literal: value}`.
    """
    if isinstance(value, list):
        return any(map(reads_as_matcher, value))
    if not isinstance(value, dict):
        return False
    return (
        not value.keys().isdisjoint(MATCHERS)
        or _nearly(value) is not None
        or any(map(reads_as_matcher, value.values()))
    )


def _nearly(value: dict[str, Any]) -> str | None:
    """The matcher that an object's only key is a misspelling of; None if it is none."""
    if len(value) != 1:
        return None
    (key,) = value
    near = difflib.get_close_matches(key, MATCHERS, n=1, cutoff=0.8)
    return near[0] if near and key not in MATCHERS else None


def _check_matchers(value: Any, path: str) -> list[str]:
    """Return what is wrong with the matchers inside an expected argument value."""
    if isinstance(value, list):
        return [
            problem
            for index, item in enumerate(value)
            for problem in _check_matchers(item, f"{path}[{index}]")
        ]
    if not isinstance(value, dict):
        return []
    names = [key for key in value if key in MATCHERS]
    unknown = sorted(key for key in value if key not in (*MATCHERS, "tol"))
    if names and unknown:
        return [
            f"{path}: {', '.join(unknown)} beside {', '.join(names)}: no matcher has that key; "
            "for an object that only looks like one write {literal: …}"
        ]
    near = _nearly(value)
    if near:
        return [
            f"{path}: did you mean the matcher '{near}'? For an object with the key "
            f"'{unknown[0]}' write {{literal: …}}"
        ]
    if not names:
        return [
            problem
            for key, item in value.items()
            for problem in _check_matchers(item, f"{path}.{key}")
        ]
    if len(names) > 1 or ("tol" in value and names != ["approx"]):
        return [f"{path}: one matcher at a time, got {', '.join(sorted(value))}"]
    return _check_operand(names[0], value, path)


def _check_operand(name: str, value: dict[str, Any], path: str) -> list[str]:
    """Return what is wrong with one matcher's operand."""
    operand = value[name]
    if name == "any":
        return [] if operand is True else [f"{path}.any: only `true` makes sense here"]
    if name == "regex":
        if not isinstance(operand, str):
            return [f"{path}.regex: expected a text"]
        try:
            re.compile(operand)
        except re.error as error:
            return [f"{path}.regex: is not a regular expression: {error}"]
        return []
    if name in ("one_of", "unordered"):
        if not isinstance(operand, list) or (name == "one_of" and not operand):
            return [
                f"{path}.{name}: expected a list" + (" of at least one" if name == "one_of" else "")
            ]
        return _check_matchers(operand, f"{path}.{name}")
    if name == "approx":
        tol = value.get("tol", 0)
        numbers = all(
            isinstance(n, int | float) and not isinstance(n, bool) for n in (operand, tol)
        )
        return (
            []
            if numbers and tol >= 0 and all(map(isfinite, (operand, tol)))
            else [f"{path}: approx and tol are numbers, tol not negative"]
        )
    if name == "sha256":
        ok = isinstance(operand, str) and re.fullmatch(r"[0-9a-f]{16,64}", operand) is not None
        return [] if ok else [f"{path}.sha256: expected 16 to 64 lower-case hex digits"]
    if name == "ignore_case":
        return [] if isinstance(operand, str) else [f"{path}.ignore_case: expected a text"]
    if name == "contains":
        return _check_matchers(operand, f"{path}.contains")
    return []  # literal: anything


class CallRule(Section):
    """One call that must occur, successfully, between `min` and `max` times.

    `args_mode`: `subset` (the default: the listed arguments, others are free), `exact` (these
    and no others), `keys` (the listed names must be present, values are free), `ignore`.
    """

    tool: NonEmpty
    args: dict[str, Any] = {}
    args_mode: Literal["exact", "subset", "keys", "ignore"] = "subset"
    min: Annotated[int, Field(ge=0)] = 1
    max: Annotated[int, Field(ge=0)] | None = None

    @field_validator("args", mode="before")
    @classmethod
    def _key_list(cls, value: Any) -> Any:
        """`args: [order_id]` is short for required keys with free values."""
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return {key: {"any": True} for key in value}
        return value

    @model_validator(mode="after")
    def _consistent(self) -> CallRule:
        problems = []
        if self.max is not None and self.max < self.min:
            problems.append(f"max {self.max} is below min {self.min}")
        # A validator of `args` alone would put `args` twice into the place that is reported.
        problems += [
            p for key, value in self.args.items() for p in _check_matchers(value, f"args.{key}")
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self


class Trajectory(Section):
    """The path a run may take: legal sequences of tools, calls that must occur, what else may.

    Attributes:
        allowed_paths: Legal tool paths; one of them must fit.
        order: How a path fits: `exact` (these calls in this order and no others), `in_order`
            (these in this order, others between), `any_order` (these, in any order).
        calls: Calls that must occur, successfully.
        writes: Globs of the tools that change the world.
        extra: What may happen besides: `allow` anything; `reads_only` anything but a further
            successful write; `forbid` nothing.
    """

    allowed_paths: tuple[tuple[NonEmpty, ...], ...] = ()
    order: Literal["exact", "in_order", "any_order"] = "exact"
    calls: tuple[CallRule, ...] = ()
    writes: Names = ()
    extra: Literal["allow", "reads_only", "forbid"] = "allow"

    @field_validator("allowed_paths", mode="before")
    @classmethod
    def _paths(cls, value: Any) -> Any:
        if isinstance(value, list):
            return tuple(tuple(path) if isinstance(path, list) else path for path in value)
        return value

    @field_validator("calls", mode="before")
    @classmethod
    def _calls(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _consistent(self) -> Trajectory:
        if self.extra == "reads_only" and not self.writes:
            raise ValueError("extra: reads_only needs `writes`, the tools that change the world")
        if "order" in self.model_fields_set and not self.allowed_paths:
            raise ValueError("order says how allowed_paths fit, and there are none")
        idle = [
            f"calls[{index}]: demands nothing: min is 0 and there is no max, while extra allows "
            "anything"
            for index, rule in enumerate(self.calls)
            if self.extra == "allow" and rule.min == 0 and rule.max is None
        ]
        if idle:
            raise ValueError("; ".join(idle))
        if not self.allowed_paths and not self.calls and self.extra == "allow":
            raise ValueError("demands nothing: give allowed_paths, calls or extra")
        return self


class Final(Section):
    """What the run must say in the end.

    Texts are compared without regard to case, runs of white space, or thousands separators
    inside numbers (`$1,628` contains `1628`).

    Attributes:
        contains: Each must occur.
        not_contains: None may occur.
        schema_: JSON Schema (key `schema`) for the final answer parsed as JSON.
        scope: Where `contains` and `not_contains` look: the final `answer`, or every text
            to the user (`conversation`).
    """

    contains: Names = ()
    not_contains: Names = ()
    schema_: JsonSchema | None = Field(default=None, alias="schema")
    scope: Literal["answer", "conversation"] = "answer"

    @model_validator(mode="after")
    def _some_demand(self) -> Final:
        if not self.contains and not self.not_contains and self.schema_ is None:
            raise ValueError("demands nothing: give contains, not_contains or schema")
        return self


class TraceHealth(Section):
    """Whether tool errors that the agent got over fail the run (`fail`, the default) or not."""

    recovered_errors: Literal["allow", "fail"] = "fail"


def _version(value: Any) -> Any:
    """`1.10` without quotes is the number 1.1: refuse before it is taken for another version."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        raise ValueError(
            f'is read by YAML as the number {value!r}; quote it as it is written: "{value}"'
            if isinstance(value, int)
            else "is read by YAML as a number, so 1.10 becomes 1.1; put it in quotes"
        )
    return value


class Contract(Section):
    """What one use case demands of a trace.

    Attributes:
        id: Unique key: partition key in Dagster and column `contract` in every table. Default:
            the path under its contracts folder without suffix, filled in by the loader.
        workflow: The use case. Traces of this workflow are judged unless `applies_to` says
            otherwise.
        name: What people are shown; default: `id`.
        group: What the leaderboard groups by; default: `workflow`.
    """

    id: NonEmpty
    workflow: NonEmpty
    contract_version: Annotated[str, Field(min_length=1), BeforeValidator(_version)]
    name: NonEmpty
    group: NonEmpty
    description: str | None = None
    applies_to: AppliesTo
    tools: ToolPolicy | None = None
    trajectory: Trajectory | None = None
    final: Final | None = None
    ends_with: SomeNames | None = None
    trace_health: TraceHealth = TraceHealth()

    @model_validator(mode="before")
    @classmethod
    def _defaults(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        data = dict(data)
        workflow = data.get("workflow")
        if isinstance(data.get("id"), str):
            data.setdefault("name", data["id"])
        if isinstance(workflow, str) and workflow:
            data.setdefault("group", workflow)
            data.setdefault("applies_to", {"workflow": workflow})
        return data

    @property
    def label(self) -> str:
        """`workflow@contract_version`, as people are shown which rules applied."""
        return f"{self.workflow}@{self.contract_version}"

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of what the contract says; comments, key order and layout do not matter."""
        return content_hash(
            canonical_json(self.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        )
