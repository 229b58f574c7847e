"""`bench debug`, also `debug-trace`: what a Langfuse server answers, step by step."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec
from rich.text import Text

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.trace_source import Progress, Selection
from benchmark_assets.adapters.traces import why_unplaced
from benchmark_assets.cli.live import (
    Live,
    api_of,
    environment_described,
    find_credentials,
    limits_of,
    none_found,
    reader_of,
    source_of,
)
from benchmark_assets.cli.live_options import Access, LiveCommand, access_options, given_text
from benchmark_assets.cli.options import config_option, json_option
from benchmark_assets.cli.output import EXIT_CLEAN, EXIT_SETUP, EXIT_WARN, stdout
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import LangfuseSource
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.machine import indented
from benchmark_assets.report.text import format_tokens, plural, printable

if TYPE_CHECKING:
    from benchmark_assets.adapters.langfuse.credentials import Credentials
    from benchmark_assets.adapters.langfuse.http import Client
    from benchmark_assets.adapters.langfuse.readers import Api
    from benchmark_assets.adapters.langfuse.servers import Server, Step

ATTEMPTS = 2
PATIENCE_S = 20.0
TIMEOUT_S = 20.0
"""People are waiting: what does not work the second time is said not to work."""

_FATAL = ("gone", "wrong_host", "not_langfuse", "connection", "deadline", "budget")
"""What goes wrong with the first step and must go wrong with all others."""


class Line(msgspec.Struct, kw_only=True):
    """A step as it is shown.

    Attributes:
        step: What was tried.
        state: `ok`; `note`: it works, and there is something to know; `absent`: not there, and
            not needed; `failed`.
        path: The URL's path; None if nothing was asked.
        detail: What came of it.
        cure: What to do about it.
        seconds, requests, retries, bytes: What it took.
    """

    step: str
    state: str
    path: str | None = None
    detail: str = ""
    cure: str | None = None
    seconds: float = 0.0
    requests: int = 0
    retries: int = 0
    bytes: int = 0


@click.command("debug", cls=LiveCommand)
@click.option(
    "--trace-id",
    envvar="TRACE_ID",
    callback=given_text,
    metavar="ID",
    help="Look for this trace too; default: TRACE_ID.",
)
@click.option(
    "--run-fetch",
    is_flag=True,
    help="Fetch it as `bench fetch` does, and read it; without an id, the newest one.",
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Say where each credential is from, and what each step took.",
)
@access_options
@config_option
@json_option
def command(
    trace_id: str | None,
    run_fetch: bool,
    verbose: bool,
    access: Access,
    config: Path | None,
    as_json: bool,
) -> None:
    """Ask a Langfuse server everything that reading needs, step by step.

    Says what works, what does not, and what to do about it. Keys are never shown.

    Exit codes: 0 all that is needed works; 1 something does not; 2 wrong usage; 10 it works, and
    there is something to know, such as a trace of another environment or one still arriving.

    Example: bench debug --trace-id c4739a2868e2b7aca6430aeae2f7ea0a --run-fetch
    """
    lines: list[Line] = []
    shown = _Printer(verbose=verbose)
    workspace = Workspace(load_project(config))
    for line in _lines(access, workspace, trace_id, run_fetch=run_fetch):
        lines.append(line)
        if not as_json:
            shown.show(line)
    states = {line.state for line in lines}
    if as_json:
        click.echo(indented({"works": "failed" not in states, "steps": lines}).decode(), nl=False)
    raise SystemExit(
        EXIT_SETUP if "failed" in states else EXIT_WARN if "note" in states else EXIT_CLEAN
    )


class _Printer:
    """Prints steps as they come. What to do is said once, not below every step it would cure."""

    def __init__(self, *, verbose: bool) -> None:
        self._console = stdout()
        self._verbose = verbose
        self._said: set[str] = set()

    def show(self, line: Line) -> None:
        style = {"ok": "green", "failed": "red", "note": "yellow"}.get(line.state, "dim")
        where = "" if line.path is None else f" {line.path}"
        text = Text.assemble((f"{line.state:<7}", style), f"{line.step}{where}: {line.detail}")
        self._console.print(text, soft_wrap=True)
        if self._verbose and line.requests:
            took = f"{plural(line.requests, 'request')}, {line.retries} repeated"
            self._below(f"{took}, {line.bytes:,} bytes, {line.seconds:.2f} s")
        if line.cure is not None and line.cure not in self._said:
            self._said.add(line.cure)
            self._below(f"→ {line.cure}")

    def _below(self, text: str) -> None:
        self._console.print(f"       {text}", soft_wrap=True, markup=False)


def _lines(
    access: Access, workspace: Workspace, trace_id: str | None, *, run_fetch: bool
) -> Iterator[Line]:
    from benchmark_assets.adapters.langfuse.credentials import scrub
    from benchmark_assets.adapters.langfuse.http import Client

    try:
        source = source_of(access, workspace.project.config)
        credentials = find_credentials(access, source)
    except InputError as error:
        for problem in error.problems:
            cure = problem.cure
            yield Line(step="Credentials", state="failed", detail=problem.message, cure=cure)
        return
    limits = replace(
        limits_of(access, source), attempts=ATTEMPTS, patience_s=PATIENCE_S, timeout_s=TIMEOUT_S
    )
    with Client(credentials, limits=limits) as client:
        session = _Session(access, workspace, credentials, client, source)
        for line in session.lines(trace_id, run_fetch=run_fetch):
            line.detail = scrub(printable(line.detail), credentials)
            line.path = None if line.path is None else scrub(line.path, credentials)
            yield line


class _Session:
    """One server that is being debugged."""

    def __init__(
        self,
        access: Access,
        workspace: Workspace,
        credentials: Credentials,
        client: Client,
        source: LangfuseSource | None,
    ) -> None:
        self._access = access
        self._workspace = workspace
        self._credentials = credentials
        self._client = client
        self._source = source
        self._api = api_of(access, source)
        self._before = (0, 0, 0)

    def lines(self, trace_id: str | None, *, run_fetch: bool) -> Iterator[Line]:
        """Every step, as it is taken."""
        from benchmark_assets.adapters.langfuse.servers import HEALTH, steps
        from benchmark_assets.adapters.langfuse.trace_steps import environment_steps, trace_steps

        yield self._credentials_line()
        works: dict[str, Step] = {}
        for step in steps(self._client):
            line = self._line(step)
            if line.state == "absent":
                line.cure = "not every server has it, see Reading"
            if step.path == HEALTH and step.kind == "gone":
                line.cure = "check LANGFUSE_BASE_URL: no Langfuse answers here"
            yield line
            if step.ok:
                works[step.path] = step
            elif step.path == HEALTH and step.kind in _FATAL:
                return
        apis = self._apis(works)
        if not apis:
            yield from self._not_by_that_api(works)
            return
        for step in environment_steps(self._client, apis[0]):
            yield self._line(step)
        if trace_id is not None:
            for step in trace_steps(self._client, apis, trace_id):
                yield self._line(step)
        if run_fetch:
            yield from self._fetched(apis[0], trace_id)

    def _apis(self, works: dict[str, Step]) -> list[Api]:
        """The APIs that traces can be read with, the one that is used first."""
        from benchmark_assets.adapters.langfuse.servers import OBSERVATIONS, OBSERVATIONS_V2, TRACES

        found: list[Api] = []
        if OBSERVATIONS_V2 in works:
            found.append("v2")
        if {TRACES, OBSERVATIONS} <= works.keys():
            found.append("v1")
        return [api for api in found if self._api in ("auto", api)]

    def _not_by_that_api(self, works: dict[str, Step]) -> Iterator[Line]:
        """That the server can be read, but not as it was asked to be."""
        from benchmark_assets.adapters.langfuse.servers import OBSERVATIONS_V2, TRACES

        if self._api != "auto" and works.keys() & {OBSERVATIONS_V2, TRACES}:
            yield Line(
                step="Reading as asked",
                state="failed",
                detail=f"the server has no API {self._api}",
                cure="leave out --api, or `api` of the source: what the server has is found out",
            )

    def _credentials_line(self) -> Line:
        credentials = self._credentials
        origins = ", ".join(f"{name} from: {where}" for name, where in credentials.origins.items())
        environment = environment_described(credentials, Selection())
        return Line(
            step="Credentials",
            state="ok",
            detail=f"{credentials.base_url}, {environment}; {origins}",
        )

    def _line(self, step: Step) -> Line:
        state = "ok" if step.ok else "absent" if step.optional else "failed"
        if step.ok and step.cure is not None:
            state = "note"
        return self._counted(
            Line(
                step=step.name,
                state=state,
                path=step.path if step.name != "Reading" else None,
                detail=step.detail,
                cure=step.cure,
                seconds=step.seconds,
            )
        )

    def _counted(self, line: Line) -> Line:
        """The line, with what was asked since the one before."""
        counts = self._client.counts
        now = (counts.requests, counts.retries, counts.bytes)
        line.requests, line.retries, line.bytes = (
            after - before for after, before in zip(now, self._before, strict=True)
        )
        self._before = now
        return line

    # As `bench fetch` does.

    def _fetched(self, api: Api, trace_id: str | None) -> Iterator[Line]:
        from benchmark_assets.adapters.langfuse.servers import probe

        started = time.perf_counter()
        progress = Progress()
        selection = Selection(ids=() if trace_id is None else (trace_id,), limit=1)
        try:
            server: Server = probe(self._client, api)
            live = self._live(server)
            selected = next(live.select(selection, progress), None)
            problem = None if selected else none_found(live, selection, progress)
        except InputError as error:
            selected, problem = None, error.problems[0]
        seconds = time.perf_counter() - started
        if selected is None:
            assert problem is not None
            yield self._counted(
                Line(
                    step="Fetch",
                    state="failed",
                    detail=problem.message,
                    cure=problem.cure,
                    seconds=seconds,
                )
            )
            return
        snapshot = live.snapshot(selected)
        size = len(live.file(selected).data)
        detail = f"trace {snapshot.trace_id}, {size:,} bytes: {snapshot.origin.file}"
        yield self._counted(Line(step="Fetch", state="ok", detail=detail, seconds=seconds))
        yield self._read(snapshot)

    def _live(self, server: Server) -> Live:
        return Live(
            self._credentials,
            self._client,
            server,
            reader_of(self._access, self._client, server),
            self._workspace.project,
            self._workspace.rules.profiles,
            self._source,
        )

    def _read(self, snapshot: TraceSnapshot) -> Line:
        """What the trace is to whoever judges it."""
        if snapshot.problem is not None:
            cure = "it is not judged as it is; a trace still arriving is waited for, see --wait"
            return Line(step="Read", state="note", detail=snapshot.problem, cure=cure)
        tokens = [snapshot.tokens.input, snapshot.tokens.output]
        known = [count for count in tokens if count is not None]
        parts = (
            f"model {snapshot.model or 'unknown'}",
            f"workflow {snapshot.workflow or 'unknown'}",
            plural(len(snapshot.tool_calls), "tool call"),
            plural(len(snapshot.generations), "generation"),
            f"{format_tokens(sum(known) if known else None)} tokens",
        )
        unplaced = why_unplaced(snapshot, self._workspace.project.config)
        return Line(
            step="Read",
            state="ok" if unplaced is None else "note",
            detail=", ".join(parts),
            cure=None if unplaced is None else f"`bench run` could not place it: {unplaced}",
        )
