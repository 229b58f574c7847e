"""`bench normalize`: what a trace format yields."""

from __future__ import annotations

from collections import Counter
from datetime import date
from pathlib import Path

import click
import msgspec

from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.sources import locate
from benchmark_assets.adapters.traces import read_traces, why_unplaced
from benchmark_assets.cli.options import (
    config_option,
    default_date_option,
    format_option,
    json_option,
)
from benchmark_assets.cli.output import EXIT_CLEAN, EXIT_SETUP, print_problems, progress, stderr
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.report.text import plural


@click.command("normalize")
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="JSON Lines file of snapshots; default: standard output.",
)
@format_option
@default_date_option
@config_option
@json_option
def command(
    paths: tuple[str, ...],
    out: Path | None,
    format_name: str,
    default_date: date | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Read trace files, folders or globs and write them as snapshots, one a line.

    Says what was read, what was skipped, and why. Exit codes: 0 if at least one snapshot came
    out; else 1.

    Example: bench normalize results/ --out snapshots.jsonl
    """
    settings = load_project(config).config
    problems: list[Problem] = []
    read: Counter[str] = Counter()
    error_rows: list[str] = []
    encoder = msgspec.json.Encoder(order="deterministic")
    lines: list[bytes] = []
    with progress() as report:
        for path in paths:
            try:
                base, files = locate(path)
            except InputError as error:
                problems += error.problems
                continue
            for number, file in enumerate(files):
                report("reading trace files", number, len(files))
                try:
                    key = file.relative_to(base).as_posix()
                    trace_file = TraceFile(str(file), key, file.read_bytes())
                    for snapshot in read_traces(
                        trace_file, settings, format_name=format_name, default_date=default_date
                    ):
                        lines.append(encoder.encode(snapshot))
                        read[snapshot.origin.format] += 1
                        problem = why_unplaced(snapshot, settings) or snapshot.problem
                        if problem is not None:
                            error_rows.append(f"trace {snapshot.trace_id}: {problem}")
                except OSError as error:
                    problems.append(Problem(f"cannot be opened: {error.strerror}", file=str(file)))
                except InputError as error:
                    problems += error.problems
    text = b"".join(line + b"\n" for line in lines)
    if out is not None:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(text)
    elif not as_json:
        click.echo(text, nl=False)
    if as_json:
        summary = {
            "snapshots": len(lines),
            "by_format": dict(sorted(read.items())),
            "error_rows": error_rows,
            "skipped": problems,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(summary), indent=1).decode())
    else:
        print_problems(error_rows, "warning")
        print_problems(problems)
        formats = ", ".join(f"{count} {name}" for name, count in sorted(read.items())) or "none"
        stderr().print(
            f"{plural(len(lines), 'snapshot')} ({formats}), {len(error_rows)} of them error rows; "
            f"{plural(len(problems), 'file')} skipped.",
            soft_wrap=True,
        )
    raise SystemExit(EXIT_CLEAN if lines else EXIT_SETUP)
