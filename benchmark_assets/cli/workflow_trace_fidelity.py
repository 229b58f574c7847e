"""`bench workflow-trace-fidelity`: each executor's ledger against its model calls."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from benchmark_assets.adapters.fidelity_files import read_workflow_trace
from benchmark_assets.cli.fidelity import (
    EXIT,
    described,
    keep,
    keep_option,
    preset_option,
    subject_option,
    verbose_option,
)
from benchmark_assets.cli.one_trace import open_file
from benchmark_assets.cli.options import config_option, json_option
from benchmark_assets.cli.output import stdout
from benchmark_assets.report.fidelity import print_workflow, workflow_json
from benchmark_assets.scoring.trace_fidelity import RULE_SETS, rule_set

FAMILY = "workflow-trace-fidelity"


@click.command(FAMILY)
@click.option(
    "--workflow-trace",
    type=click.Path(path_type=Path),
    required=True,
    help="Workflow trace file: the steps, and the chat traces of executors.",
)
@subject_option
@preset_option
@click.option(
    "--rules",
    type=click.Choice([rules.name for rules in RULE_SETS]),
    default=RULE_SETS[0].name,
    show_default=True,
    help="How both sides are compared.",
)
@keep_option
@verbose_option
@config_option
@json_option
def command(
    workflow_trace: Path,
    subject: str,
    preset: str,
    rules: str,
    store: str | None,
    verbose: bool,
    config: Path | None,
    as_json: bool,
) -> None:
    """Compare what a workflow reports of each executor with what its model calls used.

    Exit codes: 0 PASS; 10 WARN: small divergences, or a pass with executors that were not
    checked; 9 FAIL; 11 PENDING: nothing was compared; 1 a file or the set-up is wrong; 2 wrong
    usage.

    Example: bench workflow-trace-fidelity --workflow-trace run.json --subject travel
    """
    file = open_file(workflow_trace)
    result = rule_set(rules).reconcile(read_workflow_trace(file))
    keep(
        store,
        config,
        FAMILY,
        file,
        preset=preset,
        subject=subject,
        rules=rules,
        outcome=result.outcome,
        score=result.score,
        coverage=result.coverage.share,
        token_coverage=result.coverage.token_share,
        reason=result.reason,
    )
    # Whoever reads our output may have seen enough of it; the outcome stands.
    with contextlib.suppress(BrokenPipeError):
        if as_json:
            click.echo(workflow_json(result, subject, full=verbose).decode(), nl=False)
        else:
            print_workflow(result, subject, described(file), stdout(), full=verbose)
    raise SystemExit(EXIT[result.outcome])
