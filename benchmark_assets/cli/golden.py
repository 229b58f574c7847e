"""`bench golden`, also `trace-eval`: a folder of fixtures against a folder of candidate traces."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console
from rich.text import Text

from benchmark_assets.adapters.golden_files import LOCK_NAME, TraceFolder
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.cli.options import config_option, fixtures_option, json_option
from benchmark_assets.cli.output import (
    EXIT_CLEAN,
    EXIT_FAILED,
    print_problems,
    stderr,
    stdout,
    write_text,
)
from benchmark_assets.model.golden_suite import SuiteResult
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.pipeline.bless import Blessing, consider
from benchmark_assets.pipeline.golden import (
    FixtureFolder,
    Surroundings,
    accept,
    read_fixtures,
    run_suite,
)
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.golden import (
    print_suite,
    print_whole,
    suite_json,
    suite_junit,
    suite_markdown,
)
from benchmark_assets.report.text import plural, printable

SUMMARY_VARIABLE = "GITHUB_STEP_SUMMARY"


@click.command("golden")
@fixtures_option
@click.option(
    "--traces",
    type=click.Path(path_type=Path),
    default=Path("traces"),
    show_default=True,
    help="Folder of candidate traces: ID.json, or ID/1.json and so on.",
)
@click.option("--fixture", "chosen", multiple=True, metavar="ID", help="Only this fixture.")
@click.option(
    "--accept", "accepting", is_flag=True, help=f"Write {LOCK_NAME} for the fixtures there are."
)
@click.option("--bless", is_flag=True, help="Freeze candidates as golden traces; grade nothing.")
@click.option("--yes", is_flag=True, help="With --bless: do not ask.")
@click.option(
    "--junit", type=click.Path(path_type=Path, dir_okay=False), help="Write JUnit XML to this file."
)
@click.option(
    "--summary",
    type=click.Path(path_type=Path, dir_okay=False),
    is_flag=False,
    flag_value=Path("-"),
    help=f"Add a Markdown summary to this file; without one, to {SUMMARY_VARIABLE}.",
)
@click.option("-v", "--verbose", is_flag=True, help="Print every check, and values whole.")
@config_option
@json_option
def command(
    fixtures: Path,
    traces: Path,
    chosen: tuple[str, ...],
    accepting: bool,
    bless: bool,
    yes: bool,
    junit: Path | None,
    summary: Path | None,
    verbose: bool,
    config: Path | None,
    as_json: bool,
) -> None:
    """Grade candidate traces by fixtures: PASS, FAIL or MISSING, a line each.

    With --fixture only some fixtures are graded; one that vanished or cannot be read fails the
    suite all the same. --accept records which fixtures must be there from now on. --bless shows
    how a candidate differs from the golden trace and, if it passes, freezes it.

    Exit codes: 0 every case passed; 1 one failed, or a trace or a fixture is missing or cannot be
    read, or nothing was graded; 2 wrong usage.

    Example: bench golden --fixtures fixtures --traces traces --junit golden.xml
    """
    _refuse_nonsense(bless=bless, yes=yes, others=(accepting, junit, summary, as_json))
    reports = _reports(junit, summary)
    workspace = Workspace(load_project(config))
    around = Surroundings(workspace.rules, workspace.project.config)
    folder = read_fixtures(fixtures, traces)
    _refuse_unknown(chosen, folder)
    if bless:
        raise SystemExit(_bless(folder, traces, around, chosen, yes=yes))
    if accepting:
        folder = _accept(folder, traces)
    suite = run_suite(folder, traces, around, chosen, details=verbose)
    for write in reports:
        write(suite)
    # Whoever reads our output may have seen enough of it; the verdict stands.
    with contextlib.suppress(BrokenPipeError):
        if as_json:
            click.echo(suite_json(suite).decode(), nl=False)
        else:
            print_suite(suite, stdout(), full=verbose)
        print_problems(map(printable, suite.warnings), "warning")
        print_problems(map(printable, suite.notes), "note")
    raise SystemExit(EXIT_CLEAN if suite.passed else EXIT_FAILED)


def _refuse_nonsense(*, bless: bool, yes: bool, others: Sequence[object]) -> None:
    if yes and not bless:
        raise click.UsageError("--yes goes with --bless")
    if bless and any(others):
        raise click.UsageError("--bless grades nothing: give --accept, reports and --json apart")


def _refuse_unknown(chosen: Sequence[str], folder: FixtureFolder) -> None:
    """Refuse names that no fixture has, unless a file that cannot be read may be the one."""
    known = [*folder.fixtures, *folder.vanished]
    if folder.flaws:
        return
    for name in chosen:
        if name not in known:
            hint = did_you_mean(name, known)
            raise click.UsageError(
                f"no fixture has the id '{printable(name)}'" + (f"; {hint}" if hint else "")
            )


def _accept(folder: FixtureFolder, traces: Path) -> FixtureFolder:
    changes = accept(folder)
    stderr().print(
        f"{printable(shown_path(folder.path / LOCK_NAME))}: "
        f"lists {plural(len(folder.fixtures), 'fixture')}",
        markup=False,
        soft_wrap=True,
    )
    print_problems(map(printable, changes), "note")
    return read_fixtures(folder.path, traces)


# Reports.


def _reports(junit: Path | None, summary: Path | None) -> list[Callable[[SuiteResult], None]]:
    """What writes the reports asked for; one of an earlier run must not be taken for this one's.

    Raises:
        click.UsageError: If it is not clear where to.
    """
    found: list[Callable[[SuiteResult], None]] = []
    if junit is not None:
        junit.unlink(missing_ok=True)
        found.append(lambda suite: write_text(junit, suite_junit(suite).decode()))
    if summary is not None:
        target = summary
        if str(summary) == "-":
            named = os.environ.get(SUMMARY_VARIABLE)
            if not named:
                raise click.UsageError(f"--summary without a file needs {SUMMARY_VARIABLE}")
            target = Path(named)
        found.append(lambda suite: _append(target, suite_markdown(suite)))
    return found


def _append(path: Path, text: str) -> None:
    """Add to a job summary, which other steps write to as well."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(text)


# Golden traces.


def _bless(
    folder: FixtureFolder,
    traces: Path,
    around: Surroundings,
    chosen: Iterable[str],
    *,
    yes: bool,
) -> int:
    """Show what would change and freeze what may be; returns the exit code."""
    if folder.flaws:
        raise InputError(Problem(text) for flaw in folder.flaws for text in flaw.failures)
    if not yes and not sys.stdin.isatty():
        raise click.UsageError("--bless asks before it writes: run it in a terminal, or give --yes")
    console = stdout()
    found = TraceFolder(traces)
    wanted = set(chosen) or set(folder.fixtures)
    clean = True
    for key in sorted(wanted & folder.fixtures.keys()):
        clean &= _bless_one(consider(folder.fixtures[key], found, around), console, yes=yes)
    return EXIT_CLEAN if clean else EXIT_FAILED


def _bless_one(blessing: Blessing, console: Console, *, yes: bool) -> bool:
    """Show one candidate and freeze it if it may be and is wanted; whether nothing is amiss."""
    name = printable(blessing.id)
    golden = printable(shown_path(blessing.path))
    if blessing.refused:
        print_whole(console, Text.assemble(("REFUSED", "bold red"), f" {name}"))
        _print_list(blessing.refused, console)
        return False
    if not blessing.changes:
        print_whole(console, Text(f"UNCHANGED {name}: as in {golden}"))
        return True
    print_whole(console, Text(f"{name}: {printable(blessing.source)} against {golden}"))
    _print_list(blessing.changes, console)
    if not yes and not click.confirm(f"Freeze it as {golden}?"):
        print_whole(console, Text(f"LEFT {name}"))
        return False
    blessing.write()
    print_whole(console, Text.assemble(("BLESSED", "green"), f" {name}: {golden}"))
    return True


def _print_list(texts: Iterable[str], console: Console) -> None:
    for text in texts:
        print_whole(console, Text(f"  - {printable(text)}"))
