"""`benchmark.yaml`: where traces and contracts are, and what is known about the models.

Belongs here: the file's sections and their defaults. Does not belong here: finding and reading
the file, or the environment variables that override it (`adapters/project_file`).
"""

from __future__ import annotations

import re
from datetime import date
from typing import Annotated, Any, ClassVar, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from benchmark_assets.model.section import Names, NonEmpty, Section, SomeNames


def _date(value: Any) -> Any:
    """YAML reads 2026-01-01 as a date already; accept the quoted form too."""
    if isinstance(value, str):
        try:
            return date.fromisoformat(value)
        except ValueError as error:
            raise ValueError("expected a date such as 2026-01-31") from error
    return value


def _possible(day: date) -> date:
    if day.year < 1970:
        raise ValueError("no agent ran before 1970")
    return day


AGENT = re.compile(r"^[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*$")
"""An agent: `module:function`, both possibly dotted."""

_VARIABLE = r"^[A-Za-z_][A-Za-z0-9_]*$"
_ADDRESS = r"^https?://[^\s@]+$"


def _variable(text: str) -> str:
    # Never repeats the text: who misunderstands the key writes a secret there.
    if not re.fullmatch(_VARIABLE, text):
        raise ValueError(
            "is not the name of a variable; name the variable that holds the value, and write "
            "the value into .env.local"
        )
    return text


def _address(text: str) -> str:
    # Never repeats the text either: it may hold a password.
    if "@" in text:
        raise ValueError("holds a user or a password; leave them out, variables hold the keys")
    if not re.fullmatch(_ADDRESS, text):
        raise ValueError("is not an address; write it with https:// in front")
    return text


Variable = Annotated[
    str, AfterValidator(_variable), Field(json_schema_extra={"pattern": _VARIABLE})
]
"""Name of an environment variable."""

Address = Annotated[str, AfterValidator(_address), Field(json_schema_extra={"pattern": _ADDRESS})]
"""Address of a server, without user and password."""

Day = Annotated[date, BeforeValidator(_date), AfterValidator(_possible)]


def _named_by_path(data: Any) -> Any:
    """Give a source without a name one that is made from its path."""
    if isinstance(data, dict) and isinstance(data.get("path"), str) and "name" not in data:
        stem = re.sub(r"[^A-Za-z0-9]+", "-", data["path"]).strip("-").lower() or "files"
        return {**data, "name": stem}
    return data


class FileSource(Section):
    """Trace files in folders.

    Attributes:
        kind: What it is: `files`.
        name: Names the source's index in the store; default: made from `path`.
        path: A file, a folder (searched recursively) or a glob, relative to `benchmark.yaml`.
        format: Name of a trace format, or `auto`: the content decides.
        default_date: Day (UTC) of traces that carry no time; without it they are reported.
    """

    kind: Literal["files"] = "files"
    name: NonEmpty
    path: NonEmpty
    format: NonEmpty = "auto"
    default_date: Day | None = None

    _name = model_validator(mode="before")(_named_by_path)


class LangfuseSource(Section):
    """Traces on a Langfuse server, pulled over its API into the store.

    Keys are never written here: `public_key_env` and `secret_key_env` name the variables that
    hold them, in the environment, `.env.local` or `.env`.

    Attributes:
        kind: What it is: `langfuse`.
        name: Names what was pulled in the store; each project on a server needs its own.
        base_url: The server's address, such as https://cloud.langfuse.com; default: what
            LANGFUSE_BASE_URL says.
        base_url_env: Variable that holds the address, in place of `base_url`.
        public_key_env: Variable that holds the public key; default: LANGFUSE_PUBLIC_KEY.
        secret_key_env: Variable that holds the secret key; default: LANGFUSE_SECRET_KEY.
        environment: Langfuse's environment, several joined by commas, or `*` for every one;
            default: what LANGFUSE_ENVIRONMENT says, else `default`.
        api: Which API to read, `v1` or `v2`; `auto` asks the server.
        filter: Only traces whose metadata have one of these values, for each of these keys.
        names: Only traces of one of these names.
        tags: Only traces that have all of these tags.
        from_: First day (UTC) to pull; default: as far as `schedule.lookback_days` reach.
        requests_per_minute: Most requests a minute; default: as fast as the server answers.
        in_flight: Most requests at one time.
    """

    # What its pulled files are read as; see `FileSource`.
    format: ClassVar[str] = "langfuse"
    default_date: ClassVar[None] = None

    kind: Literal["langfuse"]
    name: NonEmpty = "langfuse"
    base_url: Address | None = None
    base_url_env: Variable | None = None
    public_key_env: Variable | None = None
    secret_key_env: Variable | None = None
    environment: NonEmpty | None = None
    api: Literal["auto", "v1", "v2"] = "auto"
    filter: dict[NonEmpty, SomeNames] = Field(default={})
    names: Names = ()
    tags: Names = ()
    from_: Day | None = Field(default=None, alias="from")
    requests_per_minute: Annotated[float, Field(gt=0, strict=False)] | None = None
    in_flight: Annotated[int, Field(ge=1, le=32)] = 4

    @model_validator(mode="after")
    def _one_address(self) -> LangfuseSource:
        if self.base_url is not None and self.base_url_env is not None:
            raise ValueError("give base_url or base_url_env, not both")
        return self


class LangfuseExportSource(Section):
    """Traces that a Langfuse project exports to blob storage, on a schedule of its own.

    Attributes:
        kind: What it is: `langfuse-export`.
        name: Names what was read in the store; default: made from `path`.
        path: A folder, relative to `benchmark.yaml`, or an fsspec URL such as
            `s3://bucket/prefix`: the project's folder, or one at most two levels above.
        project: Id of the project, where the folder holds several.
        manifests: False for exports of servers that write no manifests.
        environment: Langfuse's environment, several joined by commas, or `*` for every one;
            default: what LANGFUSE_ENVIRONMENT says, else `default`.
        filter: Only traces whose metadata have one of these values, for each of these keys.
        names: Only traces of one of these names.
        tags: Only traces that have all of these tags.
        from_: First day (UTC) to read; default: as far as `schedule.lookback_days` reach.
    """

    # What its traces are read as; see `FileSource`.
    format: ClassVar[str] = "langfuse"
    default_date: ClassVar[None] = None

    kind: Literal["langfuse-export"]
    name: NonEmpty
    path: NonEmpty
    project: NonEmpty | None = None
    manifests: bool = True
    environment: NonEmpty | None = None
    filter: dict[NonEmpty, SomeNames] = Field(default={})
    names: Names = ()
    tags: Names = ()
    from_: Day | None = Field(default=None, alias="from")

    _name = model_validator(mode="before")(_named_by_path)


PulledSource = LangfuseSource | LangfuseExportSource
"""A source whose traces are copied into the store before they are read."""

Source = Annotated[FileSource | LangfuseSource | LangfuseExportSource, Field(discriminator="kind")]
"""Where traces are; `kind` says which it is, and may be left out for files."""


class ModelSettings(Section):
    """What is known about a model: its other names, and prices in US dollars per million tokens.

    Prices fill a cost that a trace does not carry, marked as estimated; a measured cost stays.

    Attributes:
        aliases: Other names that traces give the model.
        input_usd_per_mtok: Price of a million input tokens.
        output_usd_per_mtok: Price of a million output tokens, and of reasoning tokens.
        cached_usd_per_mtok: Price of a million cached input tokens; default: the input price.
    """

    aliases: Names = ()
    input_usd_per_mtok: Annotated[float, Field(ge=0, strict=False)] | None = None
    output_usd_per_mtok: Annotated[float, Field(ge=0, strict=False)] | None = None
    cached_usd_per_mtok: Annotated[float, Field(ge=0, strict=False)] | None = None

    @model_validator(mode="after")
    def _both_prices(self) -> ModelSettings:
        if (self.input_usd_per_mtok is None) != (self.output_usd_per_mtok is None):
            raise ValueError("give input_usd_per_mtok and output_usd_per_mtok, or neither")
        return self


class TaskIdentity(Section):
    """Where a trace's task comes from when its format names none.

    Attributes:
        from_: `metadata.KEY`, `session`, or `prompt` (a hash of the prompt with white space
            folded).
    """

    from_: Annotated[str, Field(pattern=r"^(metadata\..+|session|prompt)$")] = Field(
        default="metadata.task_id", alias="from"
    )


class Schedule(Section):
    """When the nightly run starts, and how far back it looks.

    Attributes:
        cron: When it starts.
        timezone: The IANA time zone that `cron` is read in.
        lookback_days: How many days back it looks for late data.
    """

    cron: NonEmpty = "0 3 * * *"
    timezone: NonEmpty = "UTC"
    lookback_days: Annotated[int, Field(ge=0, le=365)] = 3

    @field_validator("timezone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        try:
            ZoneInfo(value)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise ValueError(
                f"'{value}' is not an IANA time zone, such as Europe/Berlin"
            ) from error
        return value


class ReplaySettings(Section):
    """How `bench replay` runs your agent, and what may be written down of what it does.

    Attributes:
        agent: The function that runs it, as `module:function`.
        comparable: Tool → names of its arguments whose values may be written down, both may be
            globs; all other values are hidden. Default: nothing is hidden.
        comparable_final: Keys of the final payload whose values may be written down, where
            `comparable` is given.
        others: What becomes of values that are hidden: their hash, or nothing.
        texts: What becomes of the user's text and of questions, where `comparable` is given.
    """

    agent: Annotated[str, Field(pattern=AGENT.pattern)] | None = None
    comparable: dict[NonEmpty, Names] | None = None
    comparable_final: Names = ()
    others: Literal["hash", "drop"] = "hash"
    texts: Literal["keep", "hash", "drop"] = "hash"

    @model_validator(mode="after")
    def _hides_something(self) -> ReplaySettings:
        if self.comparable is None and self.comparable_final:
            raise ValueError(
                "comparable_final does nothing without `comparable`; write `comparable: {}` to "
                "hide all arguments"
            )
        return self


class WriteBack(Section):
    """What becomes of verdicts elsewhere. Nothing does unless it is asked for here.

    Attributes:
        scores: Whether `bench run` writes them as scores to the Langfuse projects that their
            traces are from. `bench scores` does so whatever this says.
        sources: Names of the sources whose traces' verdicts are written; default: those of kind
            `langfuse`. For others the server is the one that the environment names.
        events: A file, or the address of an endpoint of OTLP, that verdicts are written to as
            `gen_ai.evaluation.result` events.
    """

    scores: bool = False
    sources: Names = ()
    events: NonEmpty | None = None


class ProjectConfig(Section):
    """The whole of `benchmark.yaml`; everything has a default.

    Attributes:
        store: Folder or fsspec URL of the store.
        contracts: Folders or files of contracts.
        harnesses: Folders or files of harness profiles, beside those of the package.
        plugins: Python files with a plugin each.
        sources: Where traces are.
        models: What is known about models, by name.
        model_key: Metadata key that names a trace's model.
        task: Where a trace's task comes from when its format names none.
        first_date: First day that can be a partition in Dagster; default: the earliest day
            there is data for. Data from before it lowers it.
        schedule: When the nightly run starts, and how far back it looks.
        replay: How `bench replay` runs your agent.
        write_back: Whether verdicts are written to where their traces are.
    """

    store: NonEmpty = "data/store"
    contracts: Names = ("contracts/",)
    harnesses: Names = ()
    plugins: Names = ()
    sources: tuple[Source, ...] = ()
    models: dict[str, ModelSettings] = Field(default={})
    model_key: NonEmpty = "model_name"
    task: TaskIdentity = TaskIdentity()
    first_date: Day | None = None
    schedule: Schedule = Schedule()
    replay: ReplaySettings = ReplaySettings()
    write_back: WriteBack = WriteBack()

    @field_validator("sources", mode="before")
    @classmethod
    def _sources(cls, value: Any) -> Any:
        if not isinstance(value, list | tuple):
            return value
        return tuple(
            {"kind": "files", **item} if isinstance(item, dict) else item for item in value
        )

    @model_validator(mode="after")
    def _unambiguous(self) -> ProjectConfig:
        names = [source.name for source in self.sources]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two sources are named {', '.join(twice)}; give them a `name`")
        unknown = sorted(set(self.write_back.sources) - set(names))
        if unknown:
            raise ValueError(f"write_back.sources: no source is named {', '.join(unknown)}")
        owner: dict[str, str] = {}
        for model, settings in self.models.items():
            for alias in settings.aliases:
                if alias in owner or alias in self.models:
                    other = owner.get(alias, alias)
                    raise ValueError(f"models.{model}.aliases: {alias} already names {other}")
                owner[alias] = model
        return self

    def canonical_model(self, name: str) -> str:
        """The name under which a model is ranked: its entry in `models`, else its own name."""
        for model, settings in self.models.items():
            if name in settings.aliases:
                return model
        return name
