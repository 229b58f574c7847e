"""Traces from servers into the store, for all sources of a project that are on one.

Belongs here: going through sources and days, what is reported of each. Does not belong here: how
a day is pulled (`adapters.langfuse.pull`), turning what was pulled into snapshots (`ingest`).

A server that cannot be reached is a reported problem: other sources are pulled all the same, and
what was pulled before is judged as ever. Nothing here is imported by who has no such source: the
client's library takes a while to load.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from benchmark_assets.adapters.sources import Progress, quiet
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.project import (
    LangfuseExportSource,
    LangfuseSource,
    ProjectConfig,
    PulledSource,
)
from benchmark_assets.pipeline.workspace import Workspace

if TYPE_CHECKING:
    from benchmark_assets.adapters.langfuse.credentials import Credentials
    from benchmark_assets.adapters.langfuse.http import Client
    from benchmark_assets.adapters.langfuse.pull import DayPull, Origin
    from benchmark_assets.adapters.langfuse.readers import Reader

OF_ONE_DAY = frozenset({"too_large", "server", "refused"})
"""Kinds of errors after which the next day is tried: they may be one day's own."""

NO_FAILURE = frozenset({"deadline", "budget"})
"""Kinds of errors that only say that our own bounds were reached."""


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """What bounds a pull, besides what a source says of its own.

    Attributes:
        deadline_s: Seconds for all sources together.
        requests: Most requests to each server.
        wait_s: Seconds to wait for traces of a day that are still arriving.
        leave_arriving: Leave traces that are still arriving, and not in the store yet, to the
            next time, instead of storing them as incomplete.
        wait_for_others: Wait while another process pulls the same day.
    """

    deadline_s: float | None = None
    requests: int | None = None
    wait_s: float = 60.0
    leave_arriving: bool = False
    wait_for_others: bool = True


@dataclass
class SourcePull:
    """What pulling one source came to.

    Attributes:
        source: Its name.
        where: The server in words: address, version, project, API.
        environments: The environments asked for; empty is every one.
        environment_from: Who said so: a file's name, `environment`, `benchmark.yaml`, `default`.
        days: The days that were looked at.
        requests: Requests sent, `retries` of them repeated.
        stopped: Why it ended early, if our own bounds are the reason.
        problems: What went wrong.
    """

    source: str
    where: str = ""
    environments: tuple[str, ...] = ()
    environment_from: str = ""
    days: list[DayPull] = field(default_factory=list)
    requests: int = 0
    retries: int = 0
    stopped: str | None = None
    problems: list[Problem] = field(default_factory=list)

    def total(self, what: str) -> int:
        """The sum of one count over its days."""
        return sum(getattr(day, what) for day in self.days)


Days = Callable[["Connected"], Sequence[date]]
"""Chooses the days of a source that is connected, in the order in which they are pulled."""


def langfuse_sources(config: ProjectConfig) -> list[PulledSource]:
    """The sources of a project that are on a server, or exported by one."""
    return [source for source in config.sources if isinstance(source, PulledSource)]


def days_between(first: date, last: date) -> Days:
    """The days from one to another, both included; the newest first."""
    days = [last - timedelta(days=n) for n in range((last - first).days + 1)]
    return lambda connected: days


def usual_days(connected: Connected) -> Sequence[date]:
    """The days to look at if nobody names any; see `adapters.langfuse.pull.days_to_pull`."""
    from benchmark_assets.adapters.langfuse.pull import days_to_pull

    workspace = connected.workspace
    return days_to_pull(
        workspace.store,
        connected.origin,
        connected.source,
        connected.now().date(),
        workspace.project.config.schedule.lookback_days,
    )


@dataclass(frozen=True)
class Connected:
    """A source whose server answers.

    Attributes:
        workspace: The project.
        source: The source.
        now: The server's time.
        reader: Reads its traces.
        origin: What is asked for, of whom.
    """

    workspace: Workspace
    source: PulledSource
    now: Callable[[], datetime]
    reader: Reader
    origin: Origin


def pull_sources(
    workspace: Workspace,
    days: Days = usual_days,
    *,
    bounds: Bounds | None = None,
    sources: Sequence[PulledSource] | None = None,
    env: Mapping[str, str] | None = None,
    prune: bool = False,
    progress: Progress = quiet,
) -> list[SourcePull]:
    """Bring the store up to date with the servers.

    Args:
        workspace: The project.
        days: Chooses the days of each source.
        bounds: What bounds it.
        sources: The sources; default: all that are on a server.
        env: The process's environment, in which keys are looked for before `.env.local` and
            `.env` in the project's folder.
        prune: Forget traces that the server no longer has, of the days that are looked at.
        progress: Told of each trace.

    Returns:
        What it came to, a source each. Never raises for what a server or the way to it does.
    """
    bounds = bounds or Bounds()
    env = os.environ if env is None else env
    if sources is None:
        sources = langfuse_sources(workspace.project.config)
    results = []
    left = bounds.deadline_s
    for source in sources:
        if isinstance(source, LangfuseExportSource):
            results.append(_read_export(workspace, source, days, bounds, env, prune, progress))
            continue
        result, took = _pull_source(
            workspace, source, days, replace(bounds, deadline_s=left), env, prune, progress
        )
        results.append(result)
        left = None if left is None else max(left - took, 0.01)
    return results


def _pull_source(
    workspace: Workspace,
    source: LangfuseSource,
    days: Days,
    bounds: Bounds,
    env: Mapping[str, str],
    prune: bool,
    progress: Progress,
) -> tuple[SourcePull, float]:
    """Pull one source; also the seconds that it took."""
    from benchmark_assets.adapters.langfuse.credentials import resolve
    from benchmark_assets.adapters.langfuse.errors import LangfuseError
    from benchmark_assets.adapters.langfuse.http import Client, Limits

    result = SourcePull(source.name)
    try:
        credentials = resolve(flags={}, env=env, folder=workspace.project.root, source=source)
    except InputError as error:
        result.problems += _of_source(source, error)
        return result, 0.0
    _say_environment(result, credentials)
    limits = Limits(
        deadline_s=bounds.deadline_s,
        requests=bounds.requests,
        in_flight=source.in_flight,
        per_minute=source.requests_per_minute,
    )
    with Client(credentials, limits=limits) as client:
        began = client.clock()
        try:
            connected = _connect(workspace, source, client, result, bounds)
            for day in _pulled(connected, days, bounds, prune, progress):
                result.days.append(day)
                if day.error is not None:
                    _note(result, source, day.error)
        except LangfuseError as error:
            _note(result, source, error)
        except InputError as error:
            result.problems += error.problems
        result.requests, result.retries = client.counts.requests, client.counts.retries
        return result, client.clock() - began


def _read_export(
    workspace: Workspace,
    source: LangfuseExportSource,
    days: Days,
    bounds: Bounds,
    env: Mapping[str, str],
    prune: bool,
    progress: Progress,
) -> SourcePull:
    """The same for a source that a server exports. No server is asked, and no key is needed."""
    from benchmark_assets.adapters.langfuse.blob import ExportReader
    from benchmark_assets.adapters.langfuse.credentials import ENVIRONMENT, Credentials
    from benchmark_assets.adapters.langfuse.export_files import Export
    from benchmark_assets.adapters.langfuse.pull import Origin, asked_of, filters_of, root_of

    said = source.environment or env.get(ENVIRONMENT)
    place = "benchmark.yaml" if source.environment else "environment" if said else "default"
    nobody = Credentials("", "", source.path, said or "default", {ENVIRONMENT: place})
    result = SourcePull(source.name, where=f"Langfuse's export to {source.path}")
    _say_environment(result, nobody)
    filters = filters_of(source, nobody.environments)
    origin = Origin(
        source=source.name,
        root=root_of(source.path, source.project),
        filters=filters,
        asked=asked_of(filters),
        credentials=nobody,
    )
    try:
        path = workspace.project.source_path(source)
        export = Export(path, project=source.project, manifests=source.manifests)
        with ExportReader(export) as reader:
            connected = Connected(workspace, source, lambda: datetime.now(UTC), reader, origin)
            for day in days(connected):
                # A file that is not whole spoils the days that it touches, and no other.
                try:
                    one = days_between(day, day)
                    result.days += _pulled(connected, one, bounds, prune, progress)
                except InputError as error:
                    result.problems += _of_source(source, error)
            result.problems += _of_source(source, InputError(reader.counts.problems))
    except InputError as error:
        result.problems += _of_source(source, error)
    result.problems = list(dict.fromkeys(result.problems))
    return result


def _connect(
    workspace: Workspace,
    source: LangfuseSource,
    client: Client,
    result: SourcePull,
    bounds: Bounds,
) -> Connected:
    """Find out what the server is.

    Raises:
        InputError: If it cannot be read, or is not the one that the source was pulled from.
    """
    from benchmark_assets.adapters.langfuse.pull import (
        Origin,
        asked_of,
        check_root,
        filters_of,
        root_of,
    )
    from benchmark_assets.adapters.langfuse.readers import Arrival
    from benchmark_assets.adapters.langfuse.servers import probe
    from benchmark_assets.adapters.langfuse.v1 import V1Reader
    from benchmark_assets.adapters.langfuse.v2 import V2Reader

    credentials = client.credentials
    server = probe(client, source.api)
    named = "" if server.project is None else f", project '{server.project}'"
    version = "" if server.version is None else f" {server.version}"
    result.where = f"Langfuse{version} at {credentials.base_url}{named}, API {server.api}"
    filters = filters_of(source, credentials.environments)
    origin = Origin(
        source=source.name,
        root=root_of(credentials.base_url, server.project_id),
        filters=filters,
        asked=asked_of(filters),
        credentials=credentials,
    )
    check_root(workspace.store, origin)
    arrival = replace(Arrival(), wait_s=bounds.wait_s)
    reader = (V2Reader if server.api == "v2" else V1Reader)(client, arrival=arrival)
    return Connected(workspace, source, client.now, reader, origin)


def _pulled(
    connected: Connected, days: Days, bounds: Bounds, prune: bool, progress: Progress
) -> Iterator[DayPull]:
    """Pull the days of a source, until one fails for a reason that the next would fail for."""
    from benchmark_assets.adapters.langfuse.pull import pull_day

    for day in days(connected):
        what = f"pulling {connected.source.name} {day}"

        def step(count: int, what: str = what) -> None:
            progress(what, count, 0)

        result = pull_day(
            connected.workspace.store,
            connected.origin,
            connected.reader,
            day,
            connected.now(),
            leave_arriving=bounds.leave_arriving,
            prune=prune,
            wait=bounds.wait_for_others,
            progress=step,
        )
        yield result
        if result.error is not None and result.error.kind not in OF_ONE_DAY:
            return


def _say_environment(result: SourcePull, credentials: Credentials) -> None:
    result.environments = credentials.environments
    result.environment_from = credentials.origins.get("LANGFUSE_ENVIRONMENT", "default")


def _note(result: SourcePull, source: PulledSource, error: InputError) -> None:
    kind = getattr(error, "kind", None)
    if kind in NO_FAILURE:
        result.stopped = str(error.problems[0].message)
    else:
        result.problems += _of_source(source, error)


def _of_source(source: PulledSource, error: InputError) -> list[Problem]:
    return [
        msgspec.structs.replace(problem, message=f"source {source.name}: {problem.message}")
        for problem in error.problems
    ]
