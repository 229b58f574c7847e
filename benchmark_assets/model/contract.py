"""A contract: what one use case demands of a trace, as people write it in YAML.

Belongs here: the sections of a contract, their validation, and the contract's identity and
hash. Does not belong here: the resource registry (`resources`), reading YAML and turning errors
into file:line (`adapters/contract_files`) or judging a trace (`scoring`).

Every section is optional and an absent section is not judged; one that is there and empty allows
nothing. Unknown keys are errors: a misspelt `forbiden:` that is silently ignored is a check that
never runs.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator
from pydantic_core import PydanticKnownError

from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.matchers import matcher_problems
from benchmark_assets.model.resources import Resources, Target, resolve
from benchmark_assets.model.section import (
    JsonSchema,
    Names,
    NonEmpty,
    Regex,
    Section,
    SomeNames,
)

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class TextRule(Section):
    """A condition on one text. Exactly one key: `equals`, `contains`, `regex` or `glob`.

    Attributes:
        equals: The text is one of these.
        contains: This occurs in the text; case does not matter.
        regex: This regular expression is found anywhere in the text.
        glob: The whole text fits this pattern of `*`, `?` and `[…]`.
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


_Texts = NonEmpty | Annotated[tuple[NonEmpty, ...], Field(min_length=1)]

Rule = Annotated[TextRule, BeforeValidator(_text_rule, json_schema_input_type=_Texts | TextRule)]


def _metadata_rule(value: Any) -> Any:
    """Metadata is compared as text, as tracing servers do; `5` and `"5"` are the same."""
    if isinstance(value, bool):
        return {"equals": "true" if value else "false"}
    if isinstance(value, int | float):
        return {"equals": str(value)}
    return _text_rule(value)


MetadataRule = Annotated[
    TextRule,
    BeforeValidator(_metadata_rule, json_schema_input_type=_Texts | int | float | bool | TextRule),
]


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class AppliesTo(Section):
    """Which traces a contract judges: all given conditions must hold.

    A plain value or a list means "equals one of"; `{contains: …}`, `{regex: …}` and
    `{glob: …}` are the alternatives.

    Attributes:
        any_of: Alternatives: all conditions of one of them must hold, besides those beside it.
        trace_name: The trace's name.
        workflow: The trace's workflow.
        task: The trace's task.
        environment: The environment that the trace was recorded in.
        tags: Any tag of the trace.
        agent: Any agent that took part.
        prompt: What the user asked, with runs of white space folded.
        metadata: The trace's metadata by key; all that are named must fit. Compared as text.
    """

    any_of: Annotated[tuple[AppliesTo, ...], BeforeValidator(_tuple)] = ()
    trace_name: Rule | None = None
    workflow: Rule | None = None
    task: Rule | None = None
    environment: Rule | None = None
    tags: Rule | None = None
    agent: Rule | None = None
    prompt: Rule | None = None
    metadata: dict[str, MetadataRule] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _some_condition(self) -> AppliesTo:
        if not any(value for _, value in self):
            raise ValueError("names no condition; leave the section out to select by workflow")
        return self


class SkillPolicy(Section):
    """Which skills a run must and may load; names are globs. Any other skill fails.

    Attributes:
        required: Each must be loaded, successfully at least once.
        optional: May be loaded.
    """

    required: Names = ()
    optional: Names = ()


class InputDemand(Section):
    """One resource that must be read, and texts that must occur in the trace.

    Attributes:
        resource: A reference into `resources`; what it has beyond a name must occur, too.
        terms: Texts of which each must occur in some tool call's arguments or result.
    """

    resource: NonEmpty
    terms: Names = ()


Operation = Literal["CREATE", "UPDATE", "DELETE"]


class OutputDemand(Section):
    """One resource that must be created, updated or deleted.

    Attributes:
        resource: A reference into `resources`; `page.Main.variable` means any variable there.
        operation: What must have been done to it.
        match: Evidence on the call that did it: values by dotted key, or values to be found.
    """

    resource: NonEmpty
    operation: Operation
    match: dict[str, Any] | tuple[Any, ...] = Field(default_factory=dict)

    @field_validator("match", mode="before")
    @classmethod
    def _match_list(cls, value: Any) -> Any:
        return tuple(value) if isinstance(value, list) else value

    @model_validator(mode="after")
    def _matchers(self) -> OutputDemand:
        items = (
            [(f"match.{key}", value) for key, value in self.match.items()]
            if isinstance(self.match, dict)
            else [(f"match[{index}]", value) for index, value in enumerate(self.match)]
        )
        problems = [problem for key, value in items for problem in matcher_problems(value, key)]
        if problems:
            raise ValueError("; ".join(problems))
        return self


class ToolPolicy(Section):
    """Which tools a run must, may and must not use; names are globs.

    Attributes:
        required: Each must be called.
        optional: May be called. Undeclared tools may be, too, and are listed.
        forbidden: None may be called, whether or not the call succeeds.
        require_success: Whether a required tool must have succeeded at least once, not only
            have been called.
    """

    required: Names = ()
    optional: Names = ()
    forbidden: Names = ()
    require_success: bool = True

    @model_validator(mode="after")
    def _not_both(self) -> ToolPolicy:
        both = sorted(set(self.required) & set(self.forbidden))
        if both:
            raise ValueError(f"requires and forbids the same tool: {', '.join(both)}")
        return self

    @property
    def allows_nothing(self) -> bool:
        """Whether the section is there and empty, so that no tool may be called."""
        return not (self.required or self.optional or self.forbidden)


class _WithArguments(Section):
    """A tool and what its arguments must be.

    Attributes:
        tool: The tool.
        args: Arguments by name, values being literals or matchers; a list of names is short for
            these names with any value.
        args_mode: `subset`: the listed arguments, others are free. `exact`: these and no others.
            `keys`: the listed names, values are free. `ignore`: any arguments.
    """

    tool: NonEmpty
    args: dict[str, Any] = Field(default_factory=dict)
    args_mode: Literal["exact", "subset", "keys", "ignore"] = "subset"

    @field_validator("args", mode="before", json_schema_input_type=dict[str, Any] | tuple[str, ...])
    @classmethod
    def _key_list(cls, value: Any) -> Any:
        """`args: [order_id]` is short for required keys with free values."""
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return {key: {"any": True} for key in value}
        return value

    @model_validator(mode="after")
    def _matchers(self) -> Self:
        # A validator of `args` alone would put `args` twice into the place that is reported.
        problems = [
            *self._contradictions(),
            *(
                p
                for key, value in self.args.items()
                for p in matcher_problems(value, f"args.{key}")
            ),
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def _contradictions(self) -> list[str]:
        return []


class CallRule(_WithArguments):
    """One call that must occur, successfully, between `min` and `max` times.

    Attributes:
        tool: The tool, as a glob.
        min: How often at least.
        max: How often at most.
        occurrences: `any`: so many calls must fit, whatever the others are. `each`: every call of
            the tool must fit, too, failed ones included.
    """

    min: Annotated[int, Field(ge=0)] = 1
    max: Annotated[int, Field(ge=0)] | None = None
    occurrences: Literal["any", "each"] = "any"

    def _contradictions(self) -> list[str]:
        if self.max is not None and self.max < self.min:
            return [f"max {self.max} is below min {self.min}"]
        return []


Order = Literal["exact", "in_order", "any_order", "unordered", "subset", "superset"]
"""How calls fit a path.

`exact`: these calls in this order and no others. `in_order`: these in this order, others between.
`any_order` and `superset`: these in any order, others besides. `unordered`: these in any order and
no others. `subset`: no others than these, and maybe fewer.
"""


def _step(value: Any) -> Any:
    if isinstance(value, str):
        return {"tool": value}
    if not isinstance(value, dict | PathStep):
        raise PydanticKnownError("string_type")
    return value


class PathStep(_WithArguments):
    """One call on a path; a plain text is short for a tool that is called once.

    Attributes:
        tool: The tool's name.
        args: What the arguments must be for the call to be this step, as in `calls`.
        optional: Whether the path is legal without it.
        repeat: Whether it may be called again.
    """

    optional: bool = False
    repeat: bool = False

    @property
    def any_arguments(self) -> bool:
        """Whether every call of the tool is this step."""
        return self.args_mode == "ignore" or (not self.args and self.args_mode != "exact")


Step = Annotated[PathStep, BeforeValidator(_step, json_schema_input_type=NonEmpty | PathStep)]


def _path(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return {"path": value}
    if not isinstance(value, dict | LegalPath):
        raise PydanticKnownError("tuple_type")
    return value


class LegalPath(Section):
    """One legal path; a plain list is short for one without an order of its own.

    Attributes:
        path: Its calls.
        order: How calls fit it; default: the trajectory's `order`.
    """

    path: Annotated[tuple[Step, ...], BeforeValidator(_tuple)]
    order: Order | None = None


Path = Annotated[
    LegalPath, BeforeValidator(_path, json_schema_input_type=tuple[Step, ...] | LegalPath)
]


def _two(value: tuple[str, ...]) -> tuple[str, ...]:
    if len(value) != 2:
        raise ValueError("is no pair of tools; write [FIRST, THEN]")
    return value


Pair = Annotated[tuple[NonEmpty, ...], BeforeValidator(_tuple), AfterValidator(_two)]

HashPrefix = Annotated[str, Field(pattern=r"^[0-9a-f]{16,64}$")]
"""Hex digits that a SHA-256 begins with; 16 are 64 bits, which nobody meets by chance."""


class Trajectory(Section):
    """The path a run may take: legal sequences of tools, calls that must occur, what else may.

    Attributes:
        allowed_paths: Legal tool paths; one of them must fit.
        order: How a path fits that has no order of its own.
        calls: Calls that must occur, successfully.
        before: Pairs of tools (globs): no call of the second before one of the first succeeded.
        value_hashes: Tool → argument → first hex digits of the SHA-256 of its value as canonical
            JSON, in ASCII or in UTF-8; holds for every call of the tool. For values that must not
            stand in the file.
        writes: Globs of the tools that change the world. Default: what the harness profile says;
            of tools it does not know, those whose name does not begin with a word for reading.
        ask_before_write: Whether the user must be asked before the first write.
        extra: What may happen besides: `allow` anything; `reads_only` anything but a further
            successful write; `forbid` nothing.
        max_extra_calls: How many calls may happen besides at most, whatever they do.
    """

    allowed_paths: Annotated[tuple[Path, ...], BeforeValidator(_tuple)] = ()
    order: Order = "exact"
    calls: Annotated[tuple[CallRule, ...], BeforeValidator(_tuple)] = ()
    before: Annotated[tuple[Pair, ...], BeforeValidator(_tuple)] = ()
    value_hashes: dict[NonEmpty, Annotated[dict[NonEmpty, HashPrefix], Field(min_length=1)]] = (
        Field(default_factory=dict)
    )
    writes: Names = ()
    ask_before_write: bool = False
    extra: Literal["allow", "reads_only", "forbid"] = "allow"
    max_extra_calls: Count | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Trajectory:
        problems = []
        if "order" in self.model_fields_set and not self.allowed_paths:
            problems.append("order says how allowed_paths fit, and there are none")
        problems += [
            f"calls[{index}]: demands nothing: min is 0 and there is no max, while extra allows "
            "anything"
            for index, rule in enumerate(self.calls)
            if self.extra == "allow"
            and self.max_extra_calls is None
            and rule.min == 0
            and rule.max is None
            and rule.occurrences == "any"
        ]
        problems += [
            f"before[{index}]: names {first} twice, and a tool never comes before itself"
            for index, (first, second) in enumerate(self.before)
            if first == second
        ]
        if self.max_extra_calls is not None and not self.allowed_paths and not self.calls:
            problems.append(
                "max_extra_calls: counts calls besides allowed_paths and calls, and there are "
                "none; limit all calls with max_tool_calls, a key of a budget"
            )
        if problems:
            raise ValueError("; ".join(problems))
        if self.demands_nothing:
            raise ValueError(
                "demands nothing: give allowed_paths, calls, before, value_hashes, "
                "ask_before_write or extra"
            )
        return self

    @property
    def demands_nothing(self) -> bool:
        """Whether any trace would do."""
        return (
            not self.allowed_paths
            and not self.calls
            and not self.before
            and not self.value_hashes
            and not self.ask_before_write
            and self.extra == "allow"
        )

    @property
    def reads_activity(self) -> bool:
        """Whether it depends on what tool calls did, and so on harness profiles."""
        return self.ask_before_write or (self.extra == "reads_only" and not self.writes)


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


class Budget(Section):
    """What a run may use at most. What a trace does not record cannot be judged: an error.

    Attributes:
        max_steps: Calls of a model.
        max_tool_calls: Calls of tools, failed ones included.
        max_tokens: Tokens of all kinds, in and out.
        max_cost_usd: US dollars.
        max_duration_s: Seconds from start to end.
        max_retries: Further calls of one tool with the same arguments.
    """

    max_steps: Count | None = None
    max_tool_calls: Count | None = None
    max_tokens: Count | None = None
    max_cost_usd: Amount | None = None
    max_duration_s: Amount | None = None
    max_retries: Count | None = None

    @model_validator(mode="after")
    def _some_limit(self) -> Budget:
        if all(value is None for _, value in self):
            *names, last = type(self).model_fields
            raise ValueError(f"limits nothing: give {', '.join(names)} or {last}")
        return self


class TraceHealth(Section):
    """What the health of a trace must be.

    Attributes:
        recovered_errors: Whether failed calls and spans that the agent got over fail the run.
    """

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


EMPTY_SECTIONS: dict[str, Any] = {"skills": {}, "tools": {}, "input_context": (), "output": ()}
"""What `skills:` with nothing after it means: there, and allowing nothing."""


class Contract(Section):
    """What one use case demands of a trace.

    Attributes:
        id: Unique key: partition key in Dagster and column `contract` in every table. Default:
            the path under its contracts folder without suffix, filled in by the loader.
        workflow: The use case. Traces of this workflow are judged unless `applies_to` says
            otherwise.
        contract_version: Which edition of the rules this is, in quotes.
        name: What people are shown; default: `id`.
        group: What the leaderboard groups by; default: `workflow`.
        description: What it is about, for people.
        applies_to: Which traces are judged; default: those of the workflow.
        harness: The harness profile that says what tool calls do; default: the one that knows
            most of a trace's tools.
        skills: Skills that must and may be loaded; any other fails. Empty: none may be.
        knowledge: Paths and globs that are always fine to read and never required.
        resources: What the contract's references mean, and where it lives.
        input_context: Resources that must be read. Empty: none must be.
        unrelated_reads: Whether reading anything else than `resources` and `knowledge` fails.
        output: Resources that must be changed; any other change fails. Empty: nothing may be.
        tools: Tools that must, may and must not be called. Empty: none may be.
        trajectory: The path that the calls may take.
        final: What must be said in the end.
        budget: What may be used at most.
        ends_with: How the run must end, in its source's words; globs. Default: normally.
        trace_health: What the health of the trace must be.
        plugins: Settings of plugins that are not part of the package, by plugin.
    """

    id: NonEmpty
    workflow: NonEmpty
    contract_version: Annotated[str, Field(min_length=1), BeforeValidator(_version)]
    name: NonEmpty
    group: NonEmpty
    description: str | None = None
    applies_to: AppliesTo
    harness: NonEmpty | None = None
    skills: SkillPolicy | None = None
    knowledge: Names = ()
    resources: Resources | None = None
    input_context: Annotated[tuple[InputDemand, ...], BeforeValidator(_tuple)] | None = None
    unrelated_reads: Literal["report", "fail"] = "report"
    output: Annotated[tuple[OutputDemand, ...], BeforeValidator(_tuple)] | None = None
    tools: ToolPolicy | None = None
    trajectory: Trajectory | None = None
    final: Final | None = None
    budget: Budget | None = None
    ends_with: SomeNames | None = None
    trace_health: TraceHealth = TraceHealth()
    plugins: dict[NonEmpty, Any] = Field(default_factory=dict)

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
        for key, empty in EMPTY_SECTIONS.items():
            if key in data and data[key] is None:
                data[key] = empty
        return data

    @model_validator(mode="after")
    def _references_resolve(self) -> Contract:
        problems = []
        for section in ("input_context", "output"):
            for index, demand in enumerate(getattr(self, section) or ()):
                try:
                    resolve(demand.resource, self.resources)
                except ValueError as error:
                    problems.append(f"{section}[{index}].resource: {error}")
        if self.unrelated_reads == "fail" and self.input_context is None:
            problems.append(
                "unrelated_reads: is judged with input_context, and there is none; "
                "add input_context: [] to let nothing else be read"
            )
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def target(self, demand: InputDemand | OutputDemand) -> Target:
        """What the reference of one of this contract's demands means."""
        return resolve(demand.resource, self.resources)

    @property
    def reads_activity(self) -> bool:
        """Whether verdicts depend on what tool calls did, and so on harness profiles."""
        return not (
            self.skills is None
            and self.input_context is None
            and self.output is None
            and (self.trajectory is None or not self.trajectory.reads_activity)
            and not self.plugins
        )

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
