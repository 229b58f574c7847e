"""`bench fetch`, also `fetch-trace`: traces of a Langfuse server into a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import click
import msgspec

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.trace_source import Progress, Selected, Selection
from benchmark_assets.adapters.traces import why_unplaced
from benchmark_assets.cli.live import Live, connected, counted, described, none_found
from benchmark_assets.cli.live_options import (
    Access,
    LiveCommand,
    access_options,
    many_traces_options,
)
from benchmark_assets.cli.options import config_option, json_option
from benchmark_assets.cli.output import (
    EXIT_CLEAN,
    EXIT_NOTHING,
    EXIT_WARN,
    print_problems,
    progress,
)
from benchmark_assets.model.problem import Problem
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.machine import indented
from benchmark_assets.report.text import plural, printable

PART = ".part"
"""Ends the name of a file that is being written."""

_ENCODER = msgspec.json.Encoder(order="deterministic")


@click.command("fetch", cls=LiveCommand)
@many_traces_options
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file to write, a trace a line; default: standard output.",
)
@click.option(
    "--raw",
    is_flag=True,
    help="Write traces as the server gave them, instead of as snapshots.",
)
@access_options
@config_option
@json_option
def command(
    selection: Selection | None,
    out: Path | None,
    raw: bool,
    access: Access,
    config: Path | None,
    as_json: bool,
) -> None:
    """Fetch traces from Langfuse: one, or those that were asked for, newest first.

    Writes snapshots, or with --raw what the server said; both are files that every command here
    reads. Says which server, project and environment was asked.

    Exit codes: 0 all were fetched whole; 1 set-up, server or I/O error; 2 wrong usage; 10 a trace
    is missing or not whole, or not all could be looked at; 11 nothing was found.

    Example: bench fetch --trace-id c4739a2868e2b7aca6430aeae2f7ea0a --out trace.json
    """
    if selection is None:
        raise click.UsageError("say which traces: --trace-id ID, or conditions such as --filter")
    if as_json and out is None:
        raise click.UsageError("--json prints a summary: name the traces' file with --out")
    workspace = Workspace(load_project(config))
    done = _Done(selection)
    with connected(access, workspace.project, workspace.rules.profiles) as live:
        live.say(described(live, selection))
        try:
            with _target(out) as write:
                _write(live, selection, write, done, raw=raw)
        finally:
            done.say(live, out, as_json=as_json)
    raise SystemExit(done.exit_code)


class _Done:
    """What a fetch came to, to be said whatever ends it."""

    def __init__(self, selection: Selection) -> None:
        self.selection = selection
        self.progress = Progress()
        self.written = 0
        self.problems: list[str] = []
        self.finished = False

    @property
    def exit_code(self) -> int:
        if self.written == 0:
            return EXIT_NOTHING
        short = self.problems or self.progress.missing or self.progress.stopped
        return EXIT_WARN if short else EXIT_CLEAN

    def note(self, live: Live, selected: Selected) -> None:
        """Count a trace that was written."""
        self.written += 1
        snapshot = selected.snapshot
        problem = snapshot.problem or why_unplaced(snapshot, live.project.config)
        if problem is not None:
            self.problems.append(f"trace {printable(snapshot.trace_id)}: {problem}")

    def say(self, live: Live, out: Path | None, *, as_json: bool) -> None:
        """Say it: on standard error, and as JSON if that is wanted."""
        print_problems(self.problems, "warning")
        if self.finished:
            self._say_what_is_missing(live)
        where = "" if out is None or not self.written else f" to {printable(str(self._file(out)))}"
        all_there = " Newest first; there may be more." if self._is_full else ""
        live.say(f"{plural(self.written, 'trace')}{where}; {counted(live)}.{all_there}")
        if as_json:
            click.echo(indented(self._summary(live, out)).decode(), nl=False)

    @property
    def _is_full(self) -> bool:
        return not self.selection.ids and self.written == self.selection.limit

    def _file(self, out: Path) -> Path:
        return out if self.finished else out.with_name(out.name + PART)

    def _say_what_is_missing(self, live: Live) -> None:
        if self.progress.missing or not self.written:
            print_problems([none_found(live, self.selection, self.progress)])
        elif self.progress.stopped is not None:
            print_problems([Problem(self.progress.stopped, cure="raise --scan-cap")], "warning")

    def _summary(self, live: Live, out: Path | None) -> dict[str, object]:
        counts = live.client.counts
        return {
            "traces": self.written,
            "out": None if out is None or not self.written else str(self._file(out)),
            "finished": self.finished,
            "problems": self.problems,
            "missing": self.progress.missing,
            "looked_at": self.progress.looked_at,
            "stopped": self.progress.stopped,
            "server": live.credentials.base_url,
            "server_version": live.server.version,
            "project": live.server.project,
            "api": live.server.api,
            "environments": list(live.credentials.environments),
            "requests": counts.requests,
            "retries": counts.retries,
            "bytes": counts.bytes,
        }


def _write(
    live: Live, selection: Selection, write: Callable[[bytes], None], done: _Done, *, raw: bool
) -> None:
    total = len(selection.ids) or selection.limit
    with progress() as report:
        report("fetching traces", 0, total)
        for selected in live.select(selection, done.progress):
            if raw:
                data = live.file(selected).data
            else:
                data = live.without_keys(_ENCODER.encode(live.snapshot(selected)) + b"\n")
            write(data)
            done.note(live, selected)
            report("fetching traces", done.written, total)
    done.finished = True


@contextmanager
def _target(out: Path | None) -> Iterator[Callable[[bytes], None]]:
    """Where traces go. A file has its name when it holds all of them; none is written of nothing.

    If something ends it before, what was fetched stays in a file beside it: it is paid for.
    """
    if out is None:
        yield lambda data: click.echo(data.decode(), nl=False)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    part = out.with_name(out.name + PART)
    with part.open("wb") as stream:
        try:
            yield lambda data: _append(stream, data)
        finally:
            empty = not stream.tell()
            if empty:
                part.unlink()
    if not empty:
        part.replace(out)


def _append(stream: BinaryIO, data: bytes) -> None:
    stream.write(data)
    # Whoever kills us finds whole lines.
    stream.flush()
