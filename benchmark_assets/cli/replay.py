"""`bench replay`: the user's agent on the user turn of every fixture, one candidate trace a trial."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from benchmark_assets.adapters.project_file import FILE_NAME, load_project
from benchmark_assets.cli.options import config_option, fixtures_option, json_option
from benchmark_assets.cli.output import (
    EXIT_CLEAN,
    EXIT_SETUP,
    print_problems,
    progress,
    stderr,
    stdout,
)
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.model.project import AGENT, ReplaySettings
from benchmark_assets.pipeline.replay import (
    Case,
    Outcome,
    Replay,
    clear,
    find_agent,
    read_cases,
    run_cases,
)
from benchmark_assets.recorder.case import Hiding
from benchmark_assets.report.text import plural, printable

_SHOWN_LINES = 10


@click.command("replay")
@fixtures_option
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("traces"),
    show_default=True,
    help="Folder for the traces.",
)
@click.option("--agent", help="module:function; default: replay.agent in benchmark.yaml.")
@click.option(
    "--trials",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Attempts at each fixture.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="Cases that run at the same time.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=300.0,
    show_default=True,
    metavar="SECONDS",
    help="A case that takes longer is killed.",
)
@click.option("--fixture", "chosen", multiple=True, metavar="ID", help="Only this fixture.")
@config_option
@json_option
def command(
    fixtures: Path,
    out: Path,
    agent: str | None,
    trials: int,
    jobs: int,
    timeout: float,
    chosen: tuple[str, ...],
    config: Path | None,
    as_json: bool,
) -> None:
    """Run your agent on what the user says in each fixture, and write down what it does.

    The agent is a function, agent(user_text, recorder), sync or async. Each case runs in a process
    of its own, in the current folder and with the current environment, and leaves a trace:
    OUT/ID.json, or OUT/ID/1.json and so on for several trials. Nothing is graded.

    Exit codes: 0 every agent came to its end; 1 one raised, hung or exited (its trace says so),
    or a fixture or the set-up is wrong; 2 wrong usage.

    Example: bench replay --agent my_agent:run --trials 3 --jobs 2
    """
    project = load_project(config)
    settings = project.config.replay
    folders = [str(Path.cwd())]
    if agent is None and project.file is not None:
        folders.append(str(project.root))
    if out.resolve() == fixtures.resolve():
        raise click.UsageError("--out is the folder of fixtures, which traces would overwrite")
    found = read_cases(fixtures, out)
    cases = _chosen(found.cases, chosen)
    replay = Replay(
        agent=_agent(agent, settings),
        folders=tuple(dict.fromkeys(folders)),
        out=out,
        timeout_s=timeout,
        trials=trials,
        jobs=jobs,
        hiding=_hiding(settings),
    )
    if cases:
        # Before the agent is looked for: one that cannot be loaded must not leave old traces.
        clear(cases, out)
        find_agent(replay)
    outcomes = _run(cases, replay)
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    # Whoever reads our output may have seen enough of it; the traces stand.
    with contextlib.suppress(BrokenPipeError):
        if as_json:
            click.echo(json.dumps([_row(outcome) for outcome in outcomes], indent=2))
        else:
            _print(outcomes, len(cases))
    print_problems(found.problems)
    raise SystemExit(EXIT_SETUP if failed or found.problems else EXIT_CLEAN)


def _chosen(cases: Sequence[Case], chosen: Sequence[str]) -> list[Case]:
    """The fixtures that are asked for.

    Raises:
        click.UsageError: If there is none of such a name.
    """
    known = [case.fixture for case in cases]
    for name in chosen:
        if name not in known:
            hint = did_you_mean(name, known)
            raise click.UsageError(f"no fixture has the id {name}" + (f"; {hint}" if hint else ""))
    return [case for case in cases if not chosen or case.fixture in chosen]


def _agent(given: str | None, settings: ReplaySettings) -> str:
    agent = given or settings.agent
    if agent is None:
        raise InputError(
            Problem(
                "it is not known which agent to run",
                cure="name it: --agent module:function, or replay: {agent: module:function} in "
                + FILE_NAME,
            )
        )
    if not AGENT.fullmatch(agent):
        raise click.UsageError(f"--agent {agent!r} is not of the form module:function")
    return agent


def _hiding(settings: ReplaySettings) -> Hiding:
    return Hiding(
        comparable=settings.comparable,
        comparable_final=settings.comparable_final,
        others=settings.others,
        texts=settings.texts,
    )


def _run(cases: Sequence[Case], replay: Replay) -> list[Outcome]:
    """Run all cases; outcomes in the order of fixtures and trials."""
    outcomes = []
    total = len(cases) * replay.trials
    with progress() as report:
        report("replaying", 0, total)
        for outcome in run_cases(cases, replay):
            outcomes.append(outcome)
            report("replaying", len(outcomes), total)
    place = {case.fixture: index for index, case in enumerate(cases)}
    return sorted(outcomes, key=lambda outcome: (place[outcome.fixture], outcome.trial))


def _row(outcome: Outcome) -> dict[str, Any]:
    return {
        "id": outcome.fixture,
        "trial": outcome.trial,
        "result": "RAN" if outcome.error is None else "FAILED",
        "error": outcome.error,
        "tools": outcome.tools,
        "seconds": outcome.seconds,
        "trace": outcome.trace.as_posix(),
    }


def _print(outcomes: Sequence[Outcome], cases: int) -> None:
    out, err = stdout(), stderr()

    def say(console: Any, text: str) -> None:
        console.print(text, soft_wrap=True, markup=False)

    for outcome in outcomes:
        mark = "RAN   " if outcome.error is None else "FAILED"
        calls = plural(outcome.tools, "tool call")
        say(out, f"{mark} {printable(outcome.trace.as_posix())}  {calls}")
        if outcome.error is not None:
            say(out, f"       {printable(outcome.error)}")
            for line in outcome.output.splitlines()[-_SHOWN_LINES:]:
                say(err, f"       | {printable(line)}")
    failed = sum(outcome.error is not None for outcome in outcomes)
    runs = f"{plural(cases, 'fixture')}, {plural(len(outcomes), 'run')}"
    say(out, f"{runs}: {len(outcomes) - failed} ran, {failed} failed.")
