"""`bench verify`, also `run-verify`: one trace under one contract, check by check."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import click
from rich.text import Text

from benchmark_assets.adapters.contract_files import ContractFile, find_contract
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.trace_source import Selection
from benchmark_assets.adapters.traces import why_unplaced
from benchmark_assets.cli.live_options import Access, LiveCommand, access_options, one_trace_options
from benchmark_assets.cli.one_trace import (
    Find,
    file_or_server_option,
    find_one,
    snapshot_option,
)
from benchmark_assets.cli.options import config_option, format_option, json_option
from benchmark_assets.cli.output import (
    EXIT_CLEAN,
    EXIT_FAILED,
    EXIT_NO_VERDICT,
    print_problems,
    stderr,
    stdout,
)
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.breakdown import (
    Verification,
    no_verdict_json,
    print_breakdown,
    verification_json,
)
from benchmark_assets.report.lines import print_prose
from benchmark_assets.report.machine import indented
from benchmark_assets.report.text import printable
from benchmark_assets.scoring.evaluate import ENGINE_VERSION, ContractJudge
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.plugins.base import Plugin
from benchmark_assets.scoring.routing import applies, describe

_EXIT = {True: EXIT_CLEAN, False: EXIT_FAILED, None: EXIT_NO_VERDICT}


@click.command("verify", cls=LiveCommand)
@click.option("--contract", "contract_name", help="Contract file, or the id of a contract.")
@snapshot_option
@file_or_server_option
@one_trace_options
@click.option(
    "--plugins",
    "plugin_names",
    multiple=True,
    help="Only these plugins, separated by commas.",
)
@click.option("--list-plugins", is_flag=True, help="List the plugins, and do nothing else.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the breakdown to this file, as JSON.",
)
@click.option(
    "-v", "--verbose", is_flag=True, help="Print values whole, and those of passed checks too."
)
@access_options
@format_option
@config_option
@json_option
def command(
    contract_name: str | None,
    snapshot: Path | None,
    trace_id: str | None,
    selection: Selection | None,
    access: Access,
    plugin_names: tuple[str, ...],
    list_plugins: bool,
    out: Path | None,
    verbose: bool,
    format_name: str,
    config: Path | None,
    as_json: bool,
) -> None:
    """Judge one trace by one contract, and list every check.

    The trace is in a file (--snapshot), or fetched from Langfuse: by --trace-id, or the newest one
    for which conditions such as --filter hold. The contract is used whether or not its `applies_to` selects the trace. A trace may lack a
    model or a time.

    Exit codes: 0 passed; 1 failed; 2 nothing was checked, the trace could not be evaluated, or
    wrong usage or set-up.

    Example: bench verify --contract contracts/refund.yaml --snapshot run.json
    """
    with _no_verdict(out, as_json=as_json):
        workspace = Workspace(load_project(config))
        if list_plugins:
            _list_plugins(workspace.rules.plugins, as_json=as_json)
            return
        chosen = _choose(plugin_names, workspace.rules.plugins)
        if contract_name is None:
            raise click.UsageError("name the contract: --contract FILE")
        find = find_one(
            "--snapshot", snapshot, trace_id, selection, access, format_name=format_name
        )
        verification = _verify(contract_name, find, chosen, workspace=workspace)
        report = verification_json(verification)
        # Whoever reads our output may have seen enough of it; the verdict stands.
        with contextlib.suppress(BrokenPipeError):
            if as_json:
                click.echo(report.decode(), nl=False)
            else:
                print_breakdown(verification, stdout(), full=verbose)
    _write(out, report)
    raise SystemExit(_EXIT[verification.passed])


def _verify(
    contract_name: str,
    find: Find,
    chosen: Sequence[Plugin] | None,
    *,
    workspace: Workspace,
) -> Verification:
    project = workspace.project
    found = find_contract(contract_name, project.contract_paths(), workspace.rules.known)
    # The contract first: what is wrong with it needs no server.
    file, trace = find(workspace)
    plugins = workspace.rules.plugins if chosen is None else chosen
    evidence = Evidence(trace, workspace.rules.profiles)
    verdict = ContractJudge(found.contract, plugins).evaluate(evidence)
    judged = {result.plugin for result in verdict.plugins}
    return Verification(
        verdict=verdict,
        trace=trace,
        snapshot_file=file.name,
        snapshot_sha256=file.sha256,
        contract=found.contract,
        contract_file=found.name,
        engine=ENGINE_VERSION,
        selected=None if chosen is None else tuple(plugin.name for plugin in chosen),
        # Of a trace that cannot be judged no plugin was asked.
        absent=()
        if trace.problem
        else tuple(plugin.name for plugin in plugins if plugin.name not in judged),
        notes=tuple(_notes(found, trace, project.config)),
    )


def _choose(names: Sequence[str], plugins: Sequence[Plugin]) -> tuple[Plugin, ...] | None:
    """The plugins that were asked for, in the order there is; None for all."""
    if not names:
        return None
    wanted = {name.strip() for text in names for name in text.split(",")} - {""}
    known = [plugin.name for plugin in plugins]
    unknown = sorted(wanted - set(known))
    if unknown or not wanted:
        near = [did_you_mean(name, known) or f"there are: {', '.join(known)}" for name in unknown]
        lines = [f"there is no plugin '{n}'; {cure}" for n, cure in zip(unknown, near, strict=True)]
        raise click.UsageError(
            "\n".join(lines) or f"--plugins names none; there are: {', '.join(known)}"
        )
    return tuple(plugin for plugin in plugins if plugin.name in wanted)


def _notes(found: ContractFile, trace: TraceSnapshot, config: ProjectConfig) -> Iterator[str]:
    if trace.problem is not None:
        return
    if not applies(found.contract, trace):
        conditions = describe(found.contract.applies_to)
        yield (
            f"the contract applies to {conditions}: `bench run` would not judge this trace by it"
        )
    unplaced = why_unplaced(trace, config)
    if unplaced is not None:
        yield f"`bench run` could not place this trace: {unplaced}"


@contextlib.contextmanager
def _no_verdict(out: Path | None, *, as_json: bool) -> Iterator[None]:
    """Whatever keeps us from a verdict is said and exits 2: 1 says that the trace failed.

    The report says so too; one of an earlier verdict must not be taken for this one's.
    """
    usage: click.UsageError | None = None
    try:
        yield
    except click.UsageError as error:
        usage = error
        problems: Sequence[Problem] = [Problem(error.message)]
    except InputError as error:
        problems = error.problems
    except OSError as error:
        name = None if error.filename is None else printable(str(error.filename))
        problems = [Problem(error.strerror or str(error), file=name)]
    except KeyboardInterrupt:
        problems = [Problem("interrupted")]
    except Exception as error:  # noqa: BLE001 - a fault of ours is no failure of the trace
        stderr().print_exception()
        problems = [Problem(f"{type(error).__name__}: {error}")]
    else:
        return
    if usage is None:
        print_problems(problems)
    report = no_verdict_json(problems)
    if as_json:
        click.echo(report.decode(), nl=False)
    _write(out, report)
    if usage is not None:
        raise usage  # click prints it, with how the command is used
    raise SystemExit(EXIT_NO_VERDICT)


def _write(out: Path | None, report: bytes) -> None:
    if out is None:
        return
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_bytes(report)
    except OSError as error:
        file = printable(str(error.filename or out))
        print_problems([Problem(f"cannot be written: {error.strerror}", file=file)])
        raise SystemExit(EXIT_NO_VERDICT) from error


def _list_plugins(plugins: Sequence[Plugin], *, as_json: bool) -> None:
    if as_json:
        listed = [{"name": item.name, "description": item.description} for item in plugins]
        click.echo(indented(listed).decode(), nl=False)
        return
    console = stdout()
    indent = max(len(plugin.name) for plugin in plugins) + 2
    for plugin in plugins:
        print_prose(console, plugin.description, indent=indent, label=Text(plugin.name, "bold"))
