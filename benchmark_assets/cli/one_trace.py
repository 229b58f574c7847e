"""Finding the one trace that a command was asked about: in a file, or on a Langfuse server.

Belongs here: what `bench verify`, `bench generate-contract` and `bench workflow-trace-fidelity`
share. Does not belong here: what they do with the trace.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click
import msgspec

from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.trace_source import Selection
from benchmark_assets.adapters.traces import read_traces
from benchmark_assets.cli.live import asked_for, fetch_one, refuse_conditions
from benchmark_assets.cli.live_options import Access, given_text, trace_id_given
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.text import printable

snapshot_option = click.option(
    "--snapshot",
    "--from-file",
    "snapshot",
    type=click.Path(path_type=Path),
    help="File that the trace is saved in, in any trace format.",
)
trace_id_option = click.option(
    "--trace-id",
    envvar="TRACE_ID",
    help="Which trace, where the file holds several; default: TRACE_ID.",
)

file_or_server_option = click.option(
    "--trace-id",
    envvar="TRACE_ID",
    callback=given_text,
    metavar="ID",
    help="Which trace of the file; without a file, the one to fetch. Default: TRACE_ID.",
)

Find = Callable[[Workspace], tuple[TraceFile, TraceSnapshot]]
"""Finds the trace: the file it is in, or as a server gave it; and the snapshot."""

LISTED = 20
"""Most ids of traces that an error lists."""


def find_one(
    option: str,
    path: Path | None,
    trace_id: str | None,
    selection: Selection | None,
    access: Access,
    *,
    format_name: str,
) -> Find:
    """How to find the trace that was asked for; nothing is read yet.

    Args:
        option: The option that names a file.
        path: The file; None to ask a server.
        trace_id: The trace's id, if it was given.
        selection: Other conditions; None for none.
        access: How a server is asked.
        format_name: The file's format.

    Raises:
        click.UsageError: If nothing was asked for, or both a file and a server.
    """
    if path is not None:
        refuse_conditions(selection, option)
        return lambda workspace: read_one(
            path, trace_id, workspace.project.config, format_name=format_name
        )
    wanted = asked_for(trace_id_given(trace_id, selection), selection)
    if wanted is None:
        raise click.UsageError(
            f"name the file that the trace is saved in, {option} FILE, or the trace to fetch from "
            "Langfuse: --trace-id ID, or conditions such as --filter KEY=VALUE"
        )
    return lambda workspace: fetch_one(access, wanted, workspace.project, workspace.rules.profiles)


def read_one(
    path: Path, trace_id: str | None, config: ProjectConfig, *, format_name: str = "auto"
) -> tuple[TraceFile, TraceSnapshot]:
    """Read the trace that was asked for, and the file it is in.

    Raises:
        InputError: If the file cannot be read or holds no trace.
        click.UsageError: If it is not clear which one is meant, listing those that there are.
    """
    file = open_file(path)
    return file, choose_one(file, trace_id, config, format_name=format_name)


def choose_one(
    file: TraceFile, trace_id: str | None, config: ProjectConfig, *, format_name: str = "auto"
) -> TraceSnapshot:
    """Read the trace that was asked for from a file.

    Raises:
        InputError: If the file holds no trace.
        click.UsageError: If it is not clear which one is meant, listing those that there are.
    """
    return _pick(list(read_traces(file, config, format_name=format_name)), file, trace_id)


def open_file(path: Path) -> TraceFile:
    """Read the file that an option names.

    Raises:
        InputError: If it cannot be opened.
    """
    try:
        return TraceFile(str(path), path.name, path.read_bytes())
    except OSError as error:
        problem = Problem(f"cannot be opened: {error.strerror}", file=printable(str(path)))
        raise InputError(problem) from error


def _pick(traces: Sequence[TraceSnapshot], file: TraceFile, trace_id: str | None) -> TraceSnapshot:
    """The trace that was asked for.

    Raises:
        InputError: If the file holds none.
        click.UsageError: If it is not clear which one is meant, listing those that there are.
    """
    if not traces:
        raise InputError(file.problem("holds no trace"))
    ids = list(dict.fromkeys(trace.trace_id for trace in traces))
    if trace_id is None:
        if len(traces) == 1:
            return traces[0]
        raise click.UsageError(
            f"{file.name} holds {len(traces)} traces; choose one with --trace-id:\n{_listed(ids)}"
        )
    meant = [trace for trace in traces if trace.trace_id == trace_id]
    if not meant:
        near = did_you_mean(trace_id, ids)
        raise click.UsageError(
            f"{file.name} holds no trace '{trace_id}'"
            + (f"; {near}" if near else f"; it holds:\n{_listed(ids)}")
        )
    if any(_without_place(trace) != _without_place(meant[0]) for trace in meant):
        records = ", ".join(trace.origin.record or "?" for trace in meant)
        raise click.UsageError(
            f"{file.name} holds {len(meant)} different traces '{trace_id}' ({records}); "
            "save the one that is meant in a file of its own"
        )
    return meant[0]


def _without_place(trace: TraceSnapshot) -> TraceSnapshot:
    """The trace without where in the file it stands: the same one twice is one."""
    return msgspec.structs.replace(trace, origin=msgspec.structs.replace(trace.origin, record=None))


def _listed(ids: Sequence[str]) -> str:
    more = len(ids) - LISTED
    lines = [f"  {printable(name)}" for name in ids[:LISTED]]
    return "\n".join([*lines, *([f"  and {more} more"] if more > 0 else [])])
