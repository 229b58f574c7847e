"""Options of commands that ask a Langfuse server: with what, and for which traces.

Belongs here: their names, help and parsing. Does not belong here: asking (`live`).

Keys are looked for when a server is asked (`adapters.langfuse.credentials`), not by click: what
click knows of an environment variable it may quote. Whatever a wrong command line makes click say
is cleaned of keys first (`LiveCommand`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import wraps
from typing import Any, TypeVar

import click

from benchmark_assets.adapters.trace_source import Selection

F = TypeVar("F", bound=Callable[..., Any])

ENDED_BY_S = 600.0
"""Seconds after which a command that asks a server gives up, unless told otherwise."""

_KEY_FLAGS = ("--langfuse-public-key", "--langfuse-secret-key")
_KEY_VARIABLES = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
_KEY = re.compile(r"\b[sp]k-lf-[^\s'\"]+")


@dataclass(frozen=True)
class Access:
    """How a server is to be asked.

    Attributes:
        flags: Credentials given as flags, by the names of their variables. Secret.
        source: The source of `benchmark.yaml` that is meant; None for none.
        api: `auto`, `v1` or `v2`.
        deadline_s: Seconds for everything.
        requests: Most requests; None for any number.
        wait_s: Seconds to wait for traces that are still arriving; None for the default.
    """

    flags: Mapping[str, str | None] = field(repr=False)
    source: str | None
    api: str
    deadline_s: float
    requests: int | None
    wait_s: float | None


# What click says.


class LiveCommand(click.Command):
    """A command to which keys may be given: no complaint about its command line shows one."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the command line."""
        given = list(args)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            error_context = error.ctx
            said = error.format_message()
            cleaned = without_keys(said, given)
            if cleaned == said:
                raise
        raise click.UsageError(cleaned, ctx=error_context)


def without_keys(text: str, args: Sequence[str]) -> str:
    """Take out of a text the keys of a command line and of the environment, and what looks so."""
    secrets = {os.environ.get(name, "") for name in _KEY_VARIABLES}
    for place, arg in enumerate(args):
        flag, equals, value = arg.partition("=")
        if flag in _KEY_FLAGS:
            secrets.update([value] if equals else args[place + 1 : place + 2])
    for secret in sorted(secrets - {""}, key=len, reverse=True):
        text = text.replace(secret, "[hidden]")
    return _KEY.sub("[hidden]", text)


# Values.


def given_text(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Refuse empty texts: a shell variable that is not set must not widen what is asked for."""
    for text in [value] if isinstance(value, str) else value or ():
        if not text.strip():
            raise click.BadParameter("give a text", ctx=ctx, param=param)
    return value


class When(click.ParamType[datetime]):
    """A time, or the beginning of a day; in UTC unless it says otherwise."""

    name = "time"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        """Parse a time."""
        if isinstance(value, datetime):
            return value
        try:
            time = datetime.fromisoformat(value.strip())
            time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
        except (ValueError, OverflowError):
            self.fail(f"{value!r} is not a time such as 2026-01-31T09:30:00Z", param, ctx)
        if not 1970 <= time.year < 3000:
            self.fail(f"{value!r} is not a time at which an agent ran", param, ctx)
        return time


def conditions(
    ctx: click.Context, param: click.Parameter, value: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """`key=value`, repeated: a key's values together."""
    found: dict[str, tuple[str, ...]] = {}
    for text in value:
        key, equals, wanted = text.partition("=")
        if not (equals and key.strip() and wanted):
            message = f"{text!r} is not key=value, such as projectid=P1"
            raise click.BadParameter(message, ctx=ctx, param=param)
        values = (*found.get(key.strip(), ()), wanted)
        found[key.strip()] = tuple(dict.fromkeys(values))
    return found


# Options.


def _all_of(options: Sequence[Callable[[F], F]], function: F) -> F:
    for option in reversed(options):
        function = option(function)
    return function


_ACCESS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--langfuse-public-key",
        metavar="KEY",
        help="The project's public key; default: LANGFUSE_PUBLIC_KEY, from the environment, "
        "else .env.local, else .env.",
    ),
    click.option(
        "--langfuse-secret-key",
        metavar="KEY",
        help="Its secret key; default: LANGFUSE_SECRET_KEY. Other users of this machine can "
        "see flags: prefer the variable.",
    ),
    click.option(
        "--langfuse-base-url",
        metavar="URL",
        help="The server; default: LANGFUSE_BASE_URL, else LANGFUSE_HOST.",
    ),
    click.option(
        "--langfuse-environment",
        metavar="NAMES",
        help="Environments, joined by commas; '*' is every one. Default: LANGFUSE_ENVIRONMENT, "
        "else 'default'.",
    ),
    click.option(
        "--source",
        callback=given_text,
        metavar="NAME",
        help="A Langfuse source of benchmark.yaml: its keys, server, environment and filters.",
    ),
    click.option(
        "--api",
        type=click.Choice(["auto", "v1", "v2"]),
        default="auto",
        show_default=True,
        help="The server's API to read with; auto finds out.",
    ),
    click.option(
        "--deadline",
        type=click.FloatRange(min=0, min_open=True),
        default=ENDED_BY_S,
        show_default=True,
        metavar="SECONDS",
        help="Give up after that long, whatever the server says.",
    ),
    click.option(
        "--max-requests",
        type=click.IntRange(min=1),
        metavar="N",
        help="Give up after so many requests, repetitions among them.",
    ),
    click.option(
        "--wait",
        type=click.FloatRange(min=0),
        metavar="SECONDS",
        help="How long to wait for traces that are still arriving, and for an id that the "
        "server does not have yet; default: 60 and 10.",
    ),
)


def access_options(function: F) -> F:
    """Options for asking a server; the function gets them as `access`."""

    @wraps(function)
    def called(
        *args: Any,
        langfuse_public_key: str | None,
        langfuse_secret_key: str | None,
        langfuse_base_url: str | None,
        langfuse_environment: str | None,
        source: str | None,
        api: str,
        deadline: float,
        max_requests: int | None,
        wait: float | None,
        **rest: Any,
    ) -> Any:
        flags = {
            "LANGFUSE_PUBLIC_KEY": langfuse_public_key,
            "LANGFUSE_SECRET_KEY": langfuse_secret_key,
            "LANGFUSE_BASE_URL": langfuse_base_url,
            "LANGFUSE_ENVIRONMENT": langfuse_environment,
        }
        access = Access(flags, source, api, deadline, max_requests, wait)
        return function(*args, access=access, **rest)

    return _all_of(_ACCESS, called)  # type: ignore[return-value]


def _trace_ids(ctx: click.Context, param: click.Parameter, value: Any) -> tuple[str, ...]:
    """Ids, repeated or joined by commas."""
    given_text(ctx, param, value)
    ids = [name.strip() for text in value for name in text.split(",")]
    return tuple(dict.fromkeys(name for name in ids if name))


_MANY_TRACES: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--trace-id",
        "trace_ids",
        envvar="TRACE_ID",
        multiple=True,
        callback=_trace_ids,
        metavar="ID",
        help="This trace; repeated, or joined by commas: these. Default: TRACE_ID, where nothing "
        "else is asked for.",
    ),
)

_CONDITIONS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--filter",
        "filters",
        multiple=True,
        callback=conditions,
        metavar="KEY=VALUE",
        help="Metadata. Other keys: all must hold; the same key again: one of them must.",
    ),
    click.option(
        "--thread-id",
        callback=given_text,
        metavar="ID",
        help="The session's id, else metadata thread_id.",
    ),
    click.option("--run-id", callback=given_text, metavar="ID", help="Metadata run_id."),
    click.option(
        "--from",
        "since",
        type=When(),
        help="Traces from then on: a day, or a time such as 2026-01-31T09:30:00Z (UTC).",
    ),
    click.option("--to", "until", type=When(), help="Traces before then."),
    click.option("--user", callback=given_text, metavar="ID", help="The user's id."),
    click.option(
        "--tag", "tags", multiple=True, callback=given_text, help="A tag; repeated: all of them."
    ),
    click.option("--model", callback=given_text, metavar="NAME", help="A model that was used."),
    click.option(
        "--user-prompt-contains",
        callback=given_text,
        metavar="TEXT",
        help="Part of the prompt, in upper or lower case.",
    ),
    click.option(
        "--skill-name-contains",
        callback=given_text,
        metavar="TEXT",
        help="Part of the name of a skill that was loaded, in upper or lower case.",
    ),
    click.option(
        "--scan-cap",
        type=click.IntRange(min=1),
        default=2000,
        show_default=True,
        metavar="N",
        help="Look at no more traces than that, where each must be looked at.",
    ),
)

_NAME = click.option(
    "--name", "trace_name", callback=given_text, metavar="NAME", help="The trace's name."
)
_TRACE_NAME = click.option(
    "--trace-name", "trace_name", callback=given_text, metavar="NAME", help="The trace's name."
)
_LIMIT = click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Give no more than that, newest first; default: 50, or all ids asked for.",
)


def many_traces_options(function: F) -> F:
    """Options for choosing traces; the function gets them as `selection`, None if none is given."""

    @wraps(function)
    def called(
        *args: Any, trace_ids: tuple[str, ...], limit: int | None, scan_cap: int, **rest: Any
    ) -> Any:
        asked, rest = _conditions(rest)
        if trace_ids and asked and _from_environment("trace_ids"):
            # A variable that happens to be set must not narrow what a command line asks for.
            trace_ids = ()
        selection = Selection(
            ids=trace_ids,
            limit=limit or max(50, len(trace_ids)),
            scan_cap=max(scan_cap, len(trace_ids)),
            **asked,
        )
        return function(*args, selection=selection if trace_ids or asked else None, **rest)

    return _all_of((*_MANY_TRACES, *_CONDITIONS, _NAME, _LIMIT), called)  # type: ignore[return-value]


def one_trace_options(function: F) -> F:
    """The same for commands that want the newest one; their own `--trace-id` stands beside it."""

    @wraps(function)
    def called(*args: Any, scan_cap: int, **rest: Any) -> Any:
        asked, rest = _conditions(rest)
        selection = Selection(limit=1, scan_cap=scan_cap, **asked) if asked else None
        return function(*args, selection=selection, **rest)

    return _all_of((*_CONDITIONS, _TRACE_NAME), called)  # type: ignore[return-value]


_FIELDS = {
    "filters": "filters",
    "thread_id": "thread_id",
    "run_id": "run_id",
    "since": "since",
    "until": "until",
    "user": "user",
    "trace_name": "name",
    "tags": "tags",
    "model": "model",
    "user_prompt_contains": "prompt_contains",
    "skill_name_contains": "skill_contains",
}
"""Parameter → the selection's attribute."""


def _conditions(given: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was asked for, as attributes of a selection; and the other parameters.

    Raises:
        click.UsageError: If no time can be between `--from` and `--to`.
    """
    asked = {name: given[option] for option, name in _FIELDS.items() if given.get(option)}
    since, until = asked.get("since"), asked.get("until")
    if since is not None and until is not None and since >= until:
        raise click.UsageError("--from is not before --to: no trace can be between them")
    return asked, {name: value for name, value in given.items() if name not in _FIELDS}


def _from_environment(parameter: str) -> bool:
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.ENVIRONMENT


def trace_id_given(trace_id: str | None, selection: Selection | None) -> str | None:
    """The one id that a command was given; None if `TRACE_ID` gave it and more was asked for."""
    if trace_id is not None and selection is not None and _from_environment("trace_id"):
        return None
    return trace_id
