"""A harness profile: what the tools of one agent harness do to the world, as people write it.

Belongs here: the sections of a profile, their validation, and the small language for places in
a tool call. Does not belong here: the profiles themselves (`harnesses/*.yaml`), reading them
(`adapters/harness_files`), or applying one to a trace (`scoring/activity`).

A *place* says where in a call's arguments or result something stands:

    file_path             the key `file_path`
    input.target.path     keys inside one another
    files[].path          the key `path` of every item of the list `files`
    files[]               every item of the list `files`
    .                     the arguments or the result themselves
    [].path               the key `path` of every item, where the arguments are themselves a list

Where a list of places is given, the first that leads to something is taken. A text that holds
JSON is stepped into like what it holds, since models often pass a list as its JSON text.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.section import NonEmpty, Regex, Scalar, Section, SomeNames

EffectKind = Literal[
    "load_skill",
    "read",
    "create",
    "update",
    "write",
    "delete",
    "move",
    "build",
    "validate",
    "ask_user",
    "shell",
    "opaque",
    "none",
]
"""What a tool does. `write` creates or updates; `shell` runs a command line that is read as far
as it plainly can be; `opaque` may change files that the call does not name; `none` is known to
change and read nothing that counts."""

ITEMS = None
"""The step of a place that stands for every item of a list."""

_STEP = re.compile(r"(?P<key>[^.\[\]]*)(?P<items>(\[\])*)")


def place_steps(place: str) -> tuple[str | None, ...]:
    """The steps of a place: keys, and `ITEMS` where `[]` stands.

    Raises:
        ValueError: If it is not a place, saying what is.
    """
    if place == ".":
        return ()
    steps: list[str | None] = []
    for index, part in enumerate(place.split(".")):
        found = _STEP.fullmatch(part)
        if found is None or not (found["key"] or (found["items"] and index == 0)):
            raise ValueError(f"'{place}' is no place; write key, key.inner, list[].key or list[]")
        if found["key"]:
            steps.append(found["key"])
        steps += [ITEMS] * (len(found["items"]) // 2)
    return tuple(steps)


def _place(text: str) -> str:
    place_steps(text)
    return text


def _many(value: Any) -> Any:
    """Let a person write `x` for `[x]`; lists become tuples."""
    if isinstance(value, list):
        return tuple(value)
    return value if value is None or isinstance(value, tuple) else (value,)


Place = Annotated[NonEmpty, AfterValidator(_place)]
Places = Annotated[
    tuple[Place, ...],
    BeforeValidator(_many, json_schema_input_type=NonEmpty | tuple[NonEmpty, ...]),
]
"""One place or several, the first that leads to something being taken."""

Regexes = Annotated[
    tuple[Regex, ...],
    BeforeValidator(_many, json_schema_input_type=NonEmpty | tuple[NonEmpty, ...]),
]
_Equals = Annotated[
    tuple[Scalar, ...],
    BeforeValidator(
        _many, json_schema_input_type=Scalar | Annotated[tuple[Scalar, ...], Field(min_length=1)]
    ),
    Field(min_length=1),
]


class Sign(Section):
    """Something in a result that shows what happened.

    Attributes:
        at: Where to look; default: the result's text (see `scoring.places.text_of`).
        regex: Searched in what is there.
        equals: What is there is one of these.

    With `at` alone the sign is that something is there: not null, false, 0 or empty.
    """

    at: Place | None = None
    regex: Regex | None = None
    equals: _Equals | None = None

    @model_validator(mode="after")
    def _one_condition(self) -> Sign:
        if self.regex is not None and self.equals is not None:
            raise ValueError("give regex or equals, not both")
        if self.at is None and self.regex is None:
            raise ValueError("give a regex, or say with `at` where to look")
        return self


def _sign(value: Any) -> Any:
    """A plain text is a regular expression searched in the result's text."""
    return {"regex": value} if isinstance(value, str) else value


def _signs(value: Any) -> Any:
    many = _many(value)
    return tuple(_sign(item) for item in many) if isinstance(many, tuple) else many


_OneSign = NonEmpty | Sign
Signs = Annotated[
    tuple[Sign, ...],
    BeforeValidator(_signs, json_schema_input_type=_OneSign | tuple[_OneSign, ...]),
]
"""One sign or several; any of them shows it. A plain text is a regular expression."""

_NEEDS: dict[str, tuple[str, ...]] = {
    "load_skill": ("name",),
    "read": ("path",),
    "create": ("path",),
    "update": ("path",),
    "write": ("path",),
    "delete": ("path",),
    "move": ("path", "to"),
    "shell": ("command",),
}
_MAY_HAVE: dict[str, tuple[str, ...]] = {
    "load_skill": ("failed", "succeeded"),
    "read": ("content", "part", "failed", "succeeded", "missing"),
    "create": ("content", "failed", "succeeded", "missing"),
    "update": ("content", "old", "everywhere", "failed", "succeeded", "missing"),
    "write": ("content", "failed", "succeeded", "missing", "created", "updated"),
    "delete": ("failed", "succeeded", "missing"),
    "move": ("failed", "succeeded", "missing"),
    "build": ("failed", "succeeded"),
    "validate": ("failed", "succeeded"),
    "shell": ("failed", "succeeded", "unfinished", "keeps_directory", "directory_reset"),
}


class Effect(Section):
    """One thing that one tool does, and where its call and its result say so.

    Attributes:
        effect: What it does.
        when: The call does this only if its arguments show all of these signs: for tools whose
            argument says what they do, such as `{at: command, equals: view}`.
        unless: It does not do this if its arguments show one of these.
        path: Where in the arguments the file's path stands, or the files' paths; of a `move`,
            the old one.
        to: Of a `move`: the new path.
        content: Where what is written stands: the whole file, or of an `update` the part that
            was put in. Of a `read`: where in the *result* the whole file stands. Of several
            files, the content at the same position belongs to each; of several contents for
            one file, all, joined by newlines.
        part: Of a `read`: places in the arguments that say which part of the file is read;
            where any of them is there, what was read is not the whole content.
        old: Of an `update`: where the text that `content` replaced stands.
        everywhere: Of an `update`: where it says that all occurrences were replaced.
        name: Of `load_skill`: the skill's name.
        command: Of `shell`: the command line.
        failed, succeeded: How that shows in the result, where the call's own status does not
            say. Failure wins: over a status of success, and over a sign of success.
        missing: How a failure shows that the file does not exist.
        created, updated: Of `write`: how it shows which of the two it was.
        unfinished: Of `shell`: how it shows that the command was still running, so that nothing
            tells what came of it.
        keeps_directory: Of `shell`: `cd` is still in force at the next call.
        directory_reset: Of `shell`: how it shows that the next call begins at the workspace
            root again.
    """

    effect: EffectKind
    when: Signs = ()
    unless: Signs = ()
    path: Places = ()
    to: Places = ()
    content: Places = ()
    part: Places = ()
    old: Places = ()
    everywhere: Places = ()
    name: Places = ()
    command: Places = ()
    failed: Signs = ()
    succeeded: Signs = ()
    missing: Signs = ()
    created: Signs = ()
    updated: Signs = ()
    unfinished: Signs = ()
    keeps_directory: bool = False
    directory_reset: Signs = ()

    @model_validator(mode="after")
    def _keys_fit(self) -> Effect:
        needs, may = _NEEDS.get(self.effect, ()), _MAY_HAVE.get(self.effect, ())
        missing = [key for key in needs if not getattr(self, key)]
        if missing:
            raise ValueError(f"effect {self.effect} needs {' and '.join(missing)}")
        idle = sorted(self.model_fields_set - {"effect", "when", "unless", *needs, *may})
        if idle:
            raise ValueError(f"effect {self.effect} makes no use of {', '.join(idle)}")
        return self


def _effects(value: Any) -> Any:
    """`Grep: none` is short for `Grep: [{effect: none}]`, and one effect for a list of one."""
    many = _many(value)
    if not isinstance(many, tuple):
        return many
    return tuple({"effect": item} if isinstance(item, str) else item for item in many)


_OneEffect = EffectKind | Effect
Effects = Annotated[
    tuple[Effect, ...],
    BeforeValidator(
        _effects,
        json_schema_input_type=_OneEffect | Annotated[tuple[_OneEffect, ...], Field(min_length=1)],
    ),
    # Last, so that a list whose only item is wrong is not said to be empty, too.
    Field(min_length=1),
]


class Command(Section):
    """One kind of command that builds or checks, and how its output shows what came of it.

    Attributes:
        regex: Searched in the command.
        failed, succeeded: How that shows in the output where the exit status is lost, as in
            `mvn package | tail`.
    """

    regex: Regex
    failed: Signs = ()
    succeeded: Signs = ()


_OneCommand = NonEmpty | Command
KnownCommands = Annotated[
    tuple[Command, ...],
    BeforeValidator(_signs, json_schema_input_type=_OneCommand | tuple[_OneCommand, ...]),
]
"""One command or several; a plain text is one of which only the exit status tells."""


class Commands(Section):
    r"""What single commands of a command line do, beyond what a shell itself does.

    Each is recognised by a regular expression that is searched in one simple command as it is
    written, without its redirections and without `VAR=value` before it: `^mvn .*\bpackage\b`.

    Attributes:
        build: It builds the project; what it produces is not counted as changed files.
        validate: It tests or checks the project; likewise.
        none: It changes no file of the workspace.
    """

    build: KnownCommands = ()
    validate_: KnownCommands = Field(default=(), alias="validate")
    none: Regexes = ()


class HarnessProfile(Section):
    """What the tools of one agent harness do.

    Attributes:
        name: Unique; what contracts and reports call it.
        description: What it is, for people.
        recognised_by: Globs of tool names that speak for this harness.
        workspace: Keys of a trace's metadata that hold the workspace root, a path or a list of
            paths. A dotted key leads into nested metadata.
        tools: What each tool does, by a glob of its name. An exact name wins over globs, then
            the first glob that fits.
        commands: What single commands of a command line do, for `shell`.
    """

    name: NonEmpty
    description: str | None = None
    recognised_by: SomeNames
    workspace: Places = ()
    tools: Annotated[dict[NonEmpty, Effects], Field(min_length=1)]
    commands: Commands = Commands()

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of what the profile says; comments, layout and the order of keys do not count.

        The order of `tools` does: among globs the first that fits is taken.
        """
        data = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return content_hash(canonical_json(data), canonical_json(list(self.tools)))
