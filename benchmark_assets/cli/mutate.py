"""`bench mutate`: whether a contract notices what is made wrong in a trace that passes it.

Belongs here: finding the contract and the trace, and exit codes. Does not belong here: mutating and
judging (`scoring/mutation`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import click

from benchmark_assets.adapters.contract_files import ContractFile, find_contract
from benchmark_assets.adapters.fixture_files import SUFFIX, golden_path_of
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.cli.one_trace import read_one, trace_id_option
from benchmark_assets.cli.options import config_option, format_option, json_option
from benchmark_assets.cli.output import (
    EXIT_CLEAN,
    EXIT_FAILED,
    EXIT_NO_VERDICT,
    print_problems,
    stdout,
)
from benchmark_assets.model.mutation import MutationReport
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.mutations import mutation_json, print_mutations
from benchmark_assets.report.text import printable
from benchmark_assets.scoring.mutation.testing import mutation_test


@click.command("mutate")
@click.argument("contract_name", metavar="CONTRACT_OR_FIXTURE")
@click.argument("trace_file", metavar="[TRACE]", type=click.Path(path_type=Path), required=False)
@trace_id_option
@click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="What is drawn: which letter is changed, where a call is inserted.",
)
@click.option(
    "--min-kill",
    type=click.FloatRange(0, 1),
    help="Let mutants survive as long as this share of those not allowed is killed; default: none may.",
)
@click.option("-v", "--verbose", is_flag=True, help="List every allowed mutant and every rule.")
@format_option
@config_option
@json_option
def command(
    contract_name: str,
    trace_file: Path | None,
    trace_id: str | None,
    seed: int,
    min_kill: float | None,
    verbose: bool,
    format_name: str,
    config: Path | None,
    as_json: bool,
) -> None:
    """Make a passing trace wrong in every way there is, and see what a contract notices.

    TRACE must pass the contract; default: the golden trace beside a fixture. What survives is
    listed with the check that would have caught it, unless the contract itself allows it.

    Exit codes: 0 the trace passes, an empty one fails, and nothing survives (or --min-kill is
    reached); 1 not so; 2 it could not be evaluated, or wrong usage or set-up.

    Example: bench mutate contracts/refund.yaml run.json
    """
    with _not_evaluated():
        report = _report(contract_name, trace_file, trace_id, seed, format_name, config)
    passed = report.good(min_kill)
    with contextlib.suppress(BrokenPipeError):
        if as_json:
            click.echo(mutation_json(report, passed=passed).decode(), nl=False)
        else:
            print_mutations(report, stdout(), full=verbose)
    if report.golden.outcome == "error":
        raise SystemExit(EXIT_NO_VERDICT)
    raise SystemExit(EXIT_CLEAN if passed else EXIT_FAILED)


def _report(
    contract_name: str,
    trace_file: Path | None,
    trace_id: str | None,
    seed: int,
    format_name: str,
    config: Path | None,
) -> MutationReport:
    workspace = Workspace(load_project(config))
    rules, project = workspace.rules, workspace.project
    found = find_contract(contract_name, project.contract_paths(), rules.known)
    path = _golden_of(found) if trace_file is None else trace_file
    _, trace = read_one(path, trace_id, project.config, format_name=format_name)
    return mutation_test(
        found.contract,
        trace,
        rules.profiles,
        rules.plugins,
        seed=seed,
        fixture=_is_fixture(found),
    )


def _is_fixture(found: ContractFile) -> bool:
    return found.path.suffix.lower() == SUFFIX


def _golden_of(found: ContractFile) -> Path:
    if not _is_fixture(found):
        raise click.UsageError(
            "name the file with a trace that passes: bench mutate CONTRACT TRACE"
        )
    path = golden_path_of(found.path, found.contract.id)
    if not path.exists():
        cure = "name a trace that passes: bench mutate FIXTURE TRACE, or freeze one with --bless"
        problem = Problem("there is no golden trace", file=printable(shown_path(path)), cure=cure)
        raise InputError(problem)
    return path


@contextlib.contextmanager
def _not_evaluated() -> Iterator[None]:
    """Whatever keeps us from judging exits 2: 1 says that the contract is not good enough."""
    try:
        yield
    except InputError as error:
        problems = list(error.problems)
    except OSError as error:
        name = None if error.filename is None else printable(str(error.filename))
        problems = [Problem(error.strerror or str(error), file=name)]
    else:
        return
    print_problems(problems)
    raise SystemExit(EXIT_NO_VERDICT)
