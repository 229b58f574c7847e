"""`bench scores`: verdicts to where their traces are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click
import msgspec
from rich.console import Console

from benchmark_assets.adapters.evaluation_events import events_of, send_events, write_events
from benchmark_assets.adapters.langfuse.http import Limits
from benchmark_assets.adapters.langfuse.scores import Score, link
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.cli.options import Day, config_option, json_option, store_option
from benchmark_assets.cli.output import (
    EXIT_CLEAN,
    EXIT_NOTHING,
    EXIT_SETUP,
    EXIT_WARN,
    print_problems,
    progress,
    stderr,
    stdout,
)
from benchmark_assets.model.problem import InputError
from benchmark_assets.pipeline.plan import Selection
from benchmark_assets.pipeline.score_targets import Outcome, score_sources, write_source
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.pipeline.write_back import judged_runs
from benchmark_assets.report.text import plural, printable


@click.command("scores")
@click.option(
    "--source",
    "sources",
    multiple=True,
    metavar="NAME",
    help="Only this source's traces; repeatable. Default: all that are pulled from Langfuse.",
)
@click.option("--from", "first", type=Day(), help="First day; default: all there are.")
@click.option("--to", "last", type=Day(), help="Last day.")
@click.option("--model", "models", multiple=True, help="Only this model; repeatable.")
@click.option("--contract", "contracts", multiple=True, help="Only this contract; repeatable.")
@click.option(
    "--events",
    metavar="FILE|URL",
    help="Write OpenTelemetry events there in place of scores; of all sources by default.",
)
@click.option("--dry-run", is_flag=True, help="Say what would be written, and write nothing.")
@click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Stop after that long; the next time goes on from there.",
)
@click.option(
    "--max-requests",
    type=click.IntRange(min=1),
    metavar="N",
    help="Stop after so many requests to a server, repetitions among them.",
)
@store_option
@config_option
@json_option
def command(
    sources: tuple[str, ...],
    first: date | None,
    last: date | None,
    models: tuple[str, ...],
    contracts: tuple[str, ...],
    events: str | None,
    dry_run: bool,
    deadline: float | None,
    max_requests: int | None,
    store: str | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Write verdicts of the last `bench run` as scores to Langfuse, on the traces they are of.

    A run gets `passed`, `score`, and one score for each plugin, with what was wrong as comment.
    Only what is new or changed is sent; sending again replaces. Keys are read from the variables
    that the source names, else LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY.

    Exit codes: 0 all that is known is written; 1 set-up or I/O error; 2 usage; 10 some scores were
    refused, or are on the server without being true any more; 11 there is no verdict.

    Example: bench scores --from 2026-01-01 --dry-run
    """
    if first is not None and last is not None and first > last:
        raise click.UsageError(f"--from {first} is after --to {last}")
    project = load_project(config, store=store)
    workspace = Workspace(project)
    selection = Selection(
        first.isoformat() if first else None,
        last.isoformat() if last else None,
        frozenset(map(project.config.canonical_model, models)),
        frozenset(contracts),
    )
    if events is not None:
        raise SystemExit(_write_events(workspace, selection, sources, events, dry_run))
    limits = Limits(deadline_s=deadline, requests=max_requests)
    outcomes = []
    for source in score_sources(project.config, sources):
        with progress() as report:
            outcome = write_source(
                workspace, source, selection, dry_run=dry_run, limits=limits, progress=report
            )
        outcomes.append(outcome)
        if not as_json:
            print_outcome(outcome, stdout(), dry_run=dry_run)
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(_shown(outcomes)), indent=2).decode())
    raise SystemExit(_exit_code(outcomes))


def write_back(workspace: Workspace, selection: Selection) -> bool:
    """Do what `write_back` in the project's settings says; whether all of it could be done."""
    settings = workspace.project.config.write_back
    fine = True
    if settings.events is not None:
        target = settings.events
        if "://" not in target:
            target = str(workspace.project.root / target)
        try:
            count = _hand_on(workspace, Selection(), settings.sources, target)
            print_count(count, stderr())
        except InputError as error:
            print_problems(error.problems)
            fine = False
    for source in score_sources(workspace.project.config) if settings.scores else ():
        try:
            outcome = write_source(workspace, source, selection)
        except InputError as error:
            print_problems(error.problems)
            fine = False
        else:
            print_outcome(outcome, stderr())
            fine = fine and outcome.error is None and not outcome.written.refused
    return fine


def print_outcome(outcome: Outcome, console: Console, *, dry_run: bool = False) -> None:
    """Say what was written where, and where to look at it."""
    written = outcome.written
    verb = "would be written" if dry_run else "written"
    where = printable(outcome.project or "a project")
    lines = [
        f"{printable(outcome.source)} → {where} at {outcome.base_url}: "
        f"{plural(written.new + written.changed, 'score')} {verb} ({written.new} new, "
        f"{written.changed} changed), {written.unchanged} there already; "
        f"{plural(written.runs, 'run')}, {written.nothing} of them not judged.",
    ]
    if dry_run:
        lines += [f"  {_line(score)}" for score in written.shown]
    lines += [
        f"  {link(outcome.base_url, outcome.project_id, trace_id)}" for trace_id in written.traces
    ]
    for line in lines:
        console.print(printable(line), markup=False, soft_wrap=True)
    print_problems(_problems(outcome))
    if written.left:
        left = plural(written.left, "score")
        print_problems([f"{left} on the server: of verdicts that are no longer given"], "warning")


def _problems(outcome: Outcome) -> Iterator[str]:
    for score_id, why in outcome.written.refused.items():
        yield printable(f"score {score_id} is refused: {why}")
    if outcome.error is not None:
        yield from map(str, outcome.error.problems)


def _line(score: Score) -> str:
    value = f"{score.value:g}" if score.data_type == "NUMERIC" else str(score.value == 1)
    comment = (score.comment or "").partition("\n")[0]
    return f"{score.trace_id}  {score.name} = {value}" + (f"  {comment}" if comment else "")


def _shown(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    return [
        {
            "source": outcome.source,
            "base_url": outcome.base_url,
            "project": outcome.project,
            "requests": outcome.requests,
            "error": None if outcome.error is None else str(outcome.error),
            "links": [
                link(outcome.base_url, outcome.project_id, trace_id)
                for trace_id in outcome.written.traces
            ],
            **msgspec.to_builtins(outcome.written),
        }
        for outcome in outcomes
    ]


def _exit_code(outcomes: Sequence[Outcome]) -> int:
    if any(outcome.error is not None for outcome in outcomes):
        return EXIT_SETUP
    if any(outcome.written.refused or outcome.written.left for outcome in outcomes):
        return EXIT_WARN
    return EXIT_CLEAN if any(outcome.written.runs for outcome in outcomes) else EXIT_NOTHING


def _write_events(
    workspace: Workspace, selection: Selection, sources: Sequence[str], to: str, dry_run: bool
) -> int:
    count = _hand_on(workspace, selection, sources, None if dry_run else to)
    print_count(count, stdout(), dry_run=dry_run)
    return EXIT_CLEAN if count else EXIT_NOTHING


def _hand_on(
    workspace: Workspace, selection: Selection, sources: Sequence[str], to: str | None
) -> int:
    """Write events to a file or an address, or nowhere; how many."""
    named = set(score_sources(workspace.project.config, sources)) if sources else None
    with progress() as report:
        months = judged_runs(workspace, selection, named, report)
        records = (
            record for _, judged in months for item in judged for record in events_of(item.run)
        )
        if to is None:
            return sum(1 for _ in records)
        return send_events(to, records) if "://" in to else write_events(Path(to), records)


def print_count(count: int, console: Console, *, dry_run: bool = False) -> None:
    """Say how many events were written."""
    verb = "would be written" if dry_run else "written"
    console.print(f"{plural(count, 'event')} {verb}.", markup=False, soft_wrap=True)
