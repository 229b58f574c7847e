"""`bench workflow-trace-fidelity`: each executor's ledger against its model calls."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click
import msgspec

from benchmark_assets.adapters.fidelity_files import read_workflow_trace
from benchmark_assets.adapters.formats import FORMATS, agenteval
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.cli.fidelity import (
    EXIT,
    described,
    keep,
    keep_option,
    preset_option,
    subject_option,
    verbose_option,
)
from benchmark_assets.cli.one_trace import choose_one, open_file, trace_id_option
from benchmark_assets.cli.options import config_option, format_option, json_option
from benchmark_assets.cli.output import stdout
from benchmark_assets.model.fidelity import WorkflowFidelity, WorkflowRecord
from benchmark_assets.model.problem import InputError
from benchmark_assets.report.fidelity import print_workflow, workflow_json
from benchmark_assets.report.text import printable
from benchmark_assets.scoring.trace_fidelity import RULE_SETS, rule_set

FAMILY = "workflow-trace-fidelity"
STRICT = "strict"

NOTED_EXECUTORS = 1_000
"""Most executors that are compared a second time for the sake of a note: it takes longer than all
else."""

NOT_APPLICABLE = (
    "not applicable: the framework of this trace reported nothing of its executors, so there is "
    "nothing to compare"
)


@click.command(FAMILY)
@click.option(
    "--workflow-trace",
    type=click.Path(path_type=Path),
    required=True,
    help="Workflow trace file: the steps, and the chat traces of executors; or any trace file "
    "whose framework reports on its executors.",
)
@trace_id_option
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
@format_option
@config_option
@json_option
def command(
    workflow_trace: Path,
    trace_id: str | None,
    subject: str,
    preset: str,
    rules: str,
    store: str | None,
    verbose: bool,
    format_name: str,
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
    record, trace = _read(file, trace_id, format_name, config)
    result = rule_set(rules).reconcile(record)
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
            said = described(file) if trace is None else f"{described(file)}; trace {trace}"
            print_workflow(_with_strict(result, record), subject, said, stdout(), full=verbose)
    raise SystemExit(EXIT[result.outcome])


def _with_strict(result: WorkflowFidelity, record: WorkflowRecord) -> WorkflowFidelity:
    """The result, with a note if the rules that the leaderboard uses see it otherwise."""
    if result.rules == STRICT or len(result.executors) > NOTED_EXECUTORS:
        return result
    strict = rule_set(STRICT).reconcile(record)
    if strict.outcome == result.outcome:
        return result
    why = f" ({strict.reason})" if strict.reason else ""
    note = f"by --rules strict, which the leaderboard uses, this is a {strict.outcome}{why}"
    return msgspec.structs.replace(result, notes=(*result.notes, note))


def _read(
    file: TraceFile, trace_id: str | None, format_name: str, config: Path | None
) -> tuple[WorkflowRecord, str | None]:
    """Both sides, and the id of the trace if the file is not a workflow trace file.

    Raises:
        InputError: If the file or the trace cannot be read.
        click.UsageError: If it is not clear which trace of the file is meant.
    """
    if _is_workflow_trace(file, format_name):
        return read_workflow_trace(file), None
    settings = load_project(config).config
    trace = choose_one(file, trace_id, settings, format_name=format_name)
    if trace.workflow_record is not None:
        return trace.workflow_record, printable(trace.trace_id)
    if trace.problem is not None:
        # What was reported is not known.
        raise InputError(file.problem(trace.problem.removeprefix(f"{file.key}: ")))
    return WorkflowRecord(problem=NOT_APPLICABLE), printable(trace.trace_id)


def _is_workflow_trace(file: TraceFile, format_name: str) -> bool:
    """Whether to read it as a workflow trace file; also what no format knows is refused as one."""
    if format_name != "auto":
        return format_name == agenteval.FORMAT.name
    return all(known is agenteval.FORMAT for known in FORMATS if known.matches(file))
