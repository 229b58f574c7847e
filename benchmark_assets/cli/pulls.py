"""Pulling traces from servers for `bench run`, and saying what came of it.

Belongs here: the words. Does not belong here: pulling (`pipeline.pull`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from benchmark_assets.adapters.sources import Progress
from benchmark_assets.cli.output import print_problems, stderr
from benchmark_assets.model.problem import Problem
from benchmark_assets.pipeline.pull import (
    Bounds,
    Connected,
    Days,
    SourcePull,
    days_between,
    langfuse_sources,
    pull_sources,
    usual_days,
)
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.text import plural, printable


def pull(
    workspace: Workspace,
    first: date | None,
    last: date | None,
    progress: Progress,
    *,
    prune: bool,
) -> tuple[Problem, ...]:
    """Pull all sources that are on a server and say what came of it; returns what went wrong."""
    if not langfuse_sources(workspace.project.config):
        return ()
    results = pull_sources(
        workspace, asked_days(first, last), bounds=Bounds(), prune=prune, progress=progress
    )
    for result in results:
        for line in described(result):
            stderr().print(printable(line), soft_wrap=True, markup=False)
        print_problems(result.problems)
    return tuple(problem for result in results for problem in result.problems)


def asked_days(first: date | None, last: date | None) -> Days:
    """The days that `--from` and `--to` ask for; without both, the usual ones."""
    if first is None and last is None:
        return usual_days

    def choose(connected: Connected) -> Sequence[date]:
        today = connected.now().date()
        if first is not None:
            return days_between(first, last or max(today, first))(connected)
        return [day for day in usual_days(connected) if last is None or day < last] + (
            [last] if last is not None else []
        )

    return choose


def described(result: SourcePull) -> list[str]:
    """What was asked, where, and what came of it, in lines."""
    if not result.where:
        return []
    lines = [f"Source {result.source}: {result.where}; {_environment(result)}."]
    if result.days:
        lines.append(f"  {_counts(result)}.")
    if result.stopped is not None:
        lines.append(f"  Stopped early: {result.stopped}. The next run goes on from there.")
    gone = result.total("gone")
    if gone:
        lines.append(
            f"  {plural(gone, 'trace')} in the store are no longer listed by the server; "
            "--prune forgets them."
        )
    return lines


def _environment(result: SourcePull) -> str:
    if not result.environments:
        return "every environment"
    names = ", ".join(f"'{name}'" for name in result.environments)
    if result.environment_from == "default":
        return f"environment {names}, since LANGFUSE_ENVIRONMENT is not set ('*' is every one)"
    return f"environment {names} (from: {result.environment_from})"


def _counts(result: SourcePull) -> str:
    days = sorted(day.day for day in result.days)
    over = f"{days[0]}" if len(days) == 1 else f"{plural(len(days), 'day')}, to {days[-1]}"
    counts = [f"{plural(result.total('new'), 'new trace')}"]
    counts += [
        f"{result.total(name):,} {word}"
        for name, word in (
            ("changed", "changed"),
            ("unchanged", "as they were"),
            ("incomplete", "incomplete, not judged"),
        )
        if result.total(name)
    ]
    again = f", {result.retries:,} of them repeated" if result.retries else ""
    return f"{over}: {', '.join(counts)}; {plural(result.requests, 'request')}{again}"
