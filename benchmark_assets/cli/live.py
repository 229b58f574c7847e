"""Asking a Langfuse server on behalf of a command.

Belongs here: finding the credentials, connecting, saying what is asked where, choosing the one
trace of commands that want one. Does not belong here: options (`live_options`), requests and
choosing (`adapters.langfuse`), which are imported when a server is asked and not before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.project_file import Project
from benchmark_assets.adapters.trace_source import Progress, Selected, Selection
from benchmark_assets.cli.live_options import Access
from benchmark_assets.cli.output import stderr
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.model.project import LangfuseSource, ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.report.text import plural, printable
from benchmark_assets.scoring.evidence import Evidence

if TYPE_CHECKING:
    from benchmark_assets.adapters.langfuse.credentials import Credentials
    from benchmark_assets.adapters.langfuse.http import Client, Limits
    from benchmark_assets.adapters.langfuse.readers import Arrival, Reader
    from benchmark_assets.adapters.langfuse.servers import Server

SHORTEST_HIDDEN = 8
"""Keys shorter than that are not looked for in traces: they would be found in other words."""


@dataclass(frozen=True)
class Live:
    """A server that is being asked.

    Attributes:
        credentials: What it is asked with.
        client: Asks it.
        server: What it is.
        reader: Reads its traces.
        project: Settles what traces are of.
        profiles: Tell which skills a trace loaded.
        source: The source of `benchmark.yaml` that is asked; None for none.
    """

    credentials: Credentials
    client: Client
    server: Server
    reader: Reader
    project: Project
    profiles: Sequence[HarnessProfile]
    source: LangfuseSource | None = None

    def select(self, selection: Selection, progress: Progress | None = None) -> Iterator[Selected]:
        """Yield the traces asked for, newest first.

        Raises:
            InputError: If the server cannot be read any further.
        """
        from benchmark_assets.adapters.langfuse.selection import LangfuseTraces

        if self.source is not None and not selection.ids:
            selection = of_source(selection, self.source)
        traces = LangfuseTraces(
            self.reader,
            self.project.config,
            environments=self.credentials.environments,
            skills=self._skills,
        )
        # A generator that is asked for one more would look for it.
        yield from islice(traces.select(selection, progress), selection.limit)

    def file(self, selected: Selected) -> TraceFile:
        """A trace as the server gave it: the very bytes that `fetch --raw` writes."""
        data = msgspec.json.encode(selected.document, order="deterministic") + b"\n"
        link = self.link(selected.snapshot.trace_id)
        return TraceFile(link, f"{selected.snapshot.trace_id}.json", self.without_keys(data))

    def snapshot(self, selected: Selected) -> TraceSnapshot:
        """A trace as it is judged; its origin is where people find it, and the raw bytes' hash."""
        file, snapshot = self.file(selected), selected.snapshot
        origin = msgspec.structs.replace(snapshot.origin, file=file.name, sha256=file.sha256)
        return msgspec.structs.replace(snapshot, origin=origin)

    def link(self, trace_id: str) -> str:
        """Where people look at a trace."""
        from urllib.parse import quote

        name = quote(trace_id, safe="")
        base, project = self.credentials.base_url, self.server.project_id
        if project is None:
            return f"{base}/trace/{name}"
        return f"{base}/project/{quote(project, safe='')}/traces/{name}"

    def without_keys(self, data: bytes) -> bytes:
        """Hide the keys in a trace: Langfuse's SDK writes them into metadata of what it sends."""
        for key in (self.credentials.secret_key, self.credentials.public_key):
            if len(key) >= SHORTEST_HIDDEN:
                data = data.replace(key.encode(), b"[hidden]")
        return data

    def say(self, text: str) -> None:
        """Say something on standard error, without keys."""
        from benchmark_assets.adapters.langfuse.credentials import scrub

        stderr().print(scrub(printable(text), self.credentials), soft_wrap=True, markup=False)

    def _skills(self, snapshot: TraceSnapshot) -> Iterator[str]:
        """Names of the skills that a trace loaded, as the harness profiles know."""
        return (skill.name for skill in Evidence(snapshot, self.profiles).activity().skills)


@contextmanager
def connected(
    access: Access, project: Project, profiles: Sequence[HarnessProfile] = ()
) -> Iterator[Live]:
    """Find out what the server is, and ask it until the block ends.

    Raises:
        InputError: If credentials are missing, or the server cannot be read with them.
    """
    from benchmark_assets.adapters.langfuse.http import Client
    from benchmark_assets.adapters.langfuse.servers import probe

    source = source_of(access, project.config)
    credentials = find_credentials(access, source)
    with Client(credentials, limits=limits_of(access, source)) as client:
        server = probe(client, api_of(access, source))
        reader = reader_of(access, client, server)
        yield Live(credentials, client, server, reader, project, profiles, source)


def find_credentials(access: Access, source: LangfuseSource | None) -> Credentials:
    """What the server is asked with.

    Raises:
        InputError: With everything that is missing or cannot be right.
    """
    from benchmark_assets.adapters.langfuse.credentials import resolve

    return resolve(flags=access.flags, env=os.environ, folder=Path.cwd(), source=source)


def limits_of(access: Access, source: LangfuseSource | None) -> Limits:
    """What bounds the requests."""
    from benchmark_assets.adapters.langfuse.http import Limits

    limits = Limits(deadline_s=access.deadline_s, requests=access.requests)
    if source is None:
        return limits
    return replace(limits, per_minute=source.requests_per_minute, in_flight=source.in_flight)


def api_of(access: Access, source: LangfuseSource | None) -> str:
    """The API to read with: as it was asked for, else as the source says."""
    return access.api if access.api != "auto" or source is None else source.api


def reader_of(access: Access, client: Client, server: Server) -> Reader:
    """The reader of a server."""
    from benchmark_assets.adapters.langfuse.v1 import V1Reader
    from benchmark_assets.adapters.langfuse.v2 import V2Reader

    arrival = arrival_of(access)
    return (V2Reader if server.api == "v2" else V1Reader)(client, arrival=arrival)


def arrival_of(access: Access) -> Arrival:
    """How long traces are waited for."""
    from benchmark_assets.adapters.langfuse.readers import Arrival

    if access.wait_s is None:
        return Arrival()
    return replace(Arrival(), wait_s=access.wait_s, missing_s=access.wait_s)


# A source of benchmark.yaml.


def source_of(access: Access, config: ProjectConfig) -> LangfuseSource | None:
    """The source that was named; None if none was.

    Raises:
        click.UsageError: If there is none of that name, or it is of another kind.
    """
    if access.source is None:
        return None
    sources = [source for source in config.sources if isinstance(source, LangfuseSource)]
    for source in sources:
        if source.name == access.source:
            return source
    name, known = printable(access.source), [source.name for source in sources]
    if any(source.name == access.source for source in config.sources):
        raise click.UsageError(f"the source '{name}' is no Langfuse server: its files are there")
    cure = did_you_mean(access.source, known) or (
        f"there are: {', '.join(known)}"
        if known
        else "add it to `sources` of benchmark.yaml, with `kind: langfuse`"
    )
    raise click.UsageError(f"there is no Langfuse source '{name}'; {cure}")


def of_source(selection: Selection, source: LangfuseSource) -> Selection:
    """A selection among the traces of a source: what the source asks for must hold, too.

    Raises:
        click.UsageError: If nothing can be both.
    """
    filters = dict(selection.filters)
    for key, values in source.filter.items():
        both = tuple(value for value in filters.get(key, values) if value in values)
        if not both:
            raise click.UsageError(
                f"the source '{source.name}' has only traces whose {key} is {' or '.join(values)}"
            )
        filters[key] = both
    name = selection.name
    if source.names and name is None:
        if len(source.names) > 1:
            names = ", ".join(source.names)
            raise click.UsageError(
                f"the source '{source.name}' has traces of several names: choose one of {names}"
            )
        name = source.names[0]
    if source.names and name not in source.names:
        names = ", ".join(source.names)
        raise click.UsageError(f"the source '{source.name}' has only traces named {names}")
    tags = tuple(dict.fromkeys((*source.tags, *selection.tags)))
    return msgspec.structs.replace(selection, filters=filters, name=name, tags=tags)


# What is said.


def described(live: Live, selection: Selection) -> str:
    """What is asked, where: nobody should have to guess why a trace is not found."""
    server, credentials = live.server, live.credentials
    project = "" if server.project is None else f"project '{server.project}', "
    version = "" if server.version is None else f" {server.version}"
    where = f"Langfuse{version} at {credentials.base_url}, {project}API {server.api}"
    return f"{where}; {environment_described(credentials, selection)}"


def environment_described(credentials: Credentials, selection: Selection) -> str:
    """Which environments are looked at, and who said so."""
    if selection.ids:
        return "any environment, since traces are asked for by id"
    if not credentials.environments:
        return "every environment"
    names = ", ".join(f"'{name}'" for name in credentials.environments)
    origin = credentials.origins.get("LANGFUSE_ENVIRONMENT", "default")
    if origin == "default":
        return f"environment {names}, since LANGFUSE_ENVIRONMENT is not set ('*' is every one)"
    return f"environment {names} (from: {origin})"


def counted(live: Live) -> str:
    """What it took."""
    counts = live.client.counts
    again = f", {counts.retries} of them repeated" if counts.retries else ""
    return f"{plural(counts.requests, 'request')}{again}"


# One trace.


def fetch_one(
    access: Access,
    selection: Selection,
    project: Project,
    profiles: Sequence[HarnessProfile],
) -> tuple[TraceFile, TraceSnapshot]:
    """The trace asked for, or the newest of those: as the server gave it, and as it is judged.

    Raises:
        InputError: If there is none, or the server cannot be read.
    """
    with connected(access, project, profiles) as live:
        live.say(described(live, selection))
        progress = Progress()
        for selected in live.select(selection, progress):
            snapshot = live.snapshot(selected)
            which = "" if selection.ids else f", the newest of those asked for ({_when(snapshot)})"
            live.say(f"Trace {snapshot.trace_id}{which}: {snapshot.origin.file}")
            return live.file(selected), snapshot
        raise InputError(none_found(live, selection, progress))


def _when(snapshot: TraceSnapshot) -> str:
    time = snapshot.started_at
    return "of an unknown time" if time is None else f"{time:%Y-%m-%d %H:%M:%S} UTC"


def none_found(live: Live, selection: Selection, progress: Progress) -> Problem:
    """That nothing was found, and what may be the reason."""
    if selection.ids:
        ids = ", ".join(f"'{printable(name)}'" for name in progress.missing or selection.ids)
        project = "" if live.server.project is None else f" '{live.server.project}'"
        return Problem(
            f"the project{project} has no trace {ids}",
            cure="check the id, that the keys are of the trace's project, and if it was sent a "
            "moment ago try again with --wait 60",
        )
    looked = f"; {plural(progress.looked_at, 'trace')} looked at" if progress.looked_at else ""
    stopped = "" if progress.stopped is None else f" ({progress.stopped})"
    cure = "ask for less"
    dotted = [key for key in selection.filters if "." in key]
    if dotted and live.server.api == "v1":
        cure = (
            f"ask for less: API v1 finds keys at the top of metadata only, so '{dotted[0]}' cannot "
            "be one within another"
        )
    elif progress.stopped is not None:
        cure = "narrow the time with --from and --to, or raise --scan-cap"
    elif live.credentials.environments:
        cure = "ask for less, or in every environment: --langfuse-environment '*'"
    where = environment_described(live.credentials, selection)
    return Problem(f"no trace is what was asked for in {where}{looked}{stopped}", cure=cure)


def asked_for(trace_id: str | None, selection: Selection | None) -> Selection | None:
    """What a command that wants one trace was asked for; None if for nothing."""
    if trace_id is None:
        return selection
    trace_id = trace_id.strip()
    if not trace_id:
        raise click.UsageError("--trace-id is empty: give the trace's id")
    return msgspec.structs.replace(selection or Selection(limit=1), ids=(trace_id,))


def refuse_conditions(selection: Selection | None, option: str) -> None:
    """Refuse conditions beside a file, of which one trace is read.

    Raises:
        click.UsageError: If there are any.
    """
    if selection is not None:
        raise click.UsageError(
            f"conditions such as --filter choose among a server's traces: leave out {option}, or "
            "choose by --trace-id"
        )
