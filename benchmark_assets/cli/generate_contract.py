"""`bench generate-contract`, also `generate-contract`: a starter contract from one trace.

Belongs here: reading the trace, the contract as a file with its comments, and saying what is to
be reviewed. Does not belong here: what is inferred (`scoring/infer_contract`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from benchmark_assets import __version__
from benchmark_assets.adapters.contract_files import dump_contract, parse_contract
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.trace_source import Selection
from benchmark_assets.cli.live_options import Access, LiveCommand, access_options, one_trace_options
from benchmark_assets.cli.one_trace import file_or_server_option, find_one, snapshot_option
from benchmark_assets.cli.options import config_option, format_option, json_option
from benchmark_assets.cli.output import print_problems, stderr
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Verdict
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.machine import indented
from benchmark_assets.report.text import plural, printable
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.infer_contract import Inferred, forecast, infer_contract
from benchmark_assets.scoring.routing import applies, describe

SCHEMA = "contract.schema.json"

_ID = re.compile(r"(?i)[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}")

_HEAD = ("workflow", "contract_version", "id", "name", "harness")

_COMMENTS = {
    "skills": "Those that loaded. Any other fails; move to `optional` what may load and need not.",
    "resources": "What was read and changed, by the names that paths and contents tell.",
    "input_context": "Each must be read. Remove what is no need, add `terms` that must turn up.",
    "output": "Each must be done, and nothing else may be changed. A reference without a last\n"
    "name (page.Main.variable) leaves the name open. Check each `match`.",
    "tools": "Every tool that was called. Move to `optional` those that a run can do without.",
}
"""Section → what a person should decide there."""


def _text(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is not None and not value.strip():
        raise click.BadParameter("give a text", ctx=ctx, param=param)
    return value


@click.command("generate-contract", cls=LiveCommand)
@snapshot_option
@file_or_server_option
@one_trace_options
@click.option(
    "--workflow", callback=_text, help="The contract's workflow; default: the trace's own."
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the contract to this file; default: print it.",
)
@click.option(
    "--files",
    is_flag=True,
    help="Demand changed files that no path convention maps, too, by their paths.",
)
@click.option("--force", is_flag=True, help="Overwrite the file, if there is one.")
@click.option("--id", "contract_id", callback=_text, help="The contract's id; default: its path.")
@click.option(
    "--contract-version",
    callback=_text,
    default="1",
    show_default=True,
    help="The contract's version.",
)
@click.option("--name", callback=_text, help="What people are shown; default: the id.")
@click.option(
    "--harness",
    callback=_text,
    help="The harness profile that says what tools do; default: the one that knows most of them.",
)
@access_options
@format_option
@config_option
@json_option
def command(
    snapshot: Path | None,
    trace_id: str | None,
    selection: Selection | None,
    access: Access,
    workflow: str | None,
    out: Path | None,
    force: bool,
    contract_id: str | None,
    contract_version: str,
    name: str | None,
    harness: str | None,
    files: bool,
    format_name: str,
    config: Path | None,
    as_json: bool,
) -> None:
    """Write a starter contract from what one trace did.

    The trace is in a file (--from-file), or fetched from Langfuse: by --trace-id, or the newest
    one for which conditions such as --filter hold. The contract demands the skills, reads, changes and tools of that one run. What could not be mapped is
    a warning, and so is every check that the trace itself would fail: review them, decide what
    any run must do, and loosen the rest.

    Exit codes: 0 written, also with warnings; 1 set-up or I/O error; 2 wrong usage.

    Example: bench generate-contract --from-file run.json --out contracts/refund.yaml
    """
    find = find_one("--from-file", snapshot, trace_id, selection, access, format_name=format_name)
    if out is not None and out.exists() and not force:
        cure = "name another file, or overwrite it with --force"
        raise InputError(Problem("exists already", file=printable(str(out)), cure=cure))
    workspace = Workspace(load_project(config))
    known = [profile.name for profile in workspace.rules.profiles]
    if harness is not None and harness not in known:
        raise click.UsageError(
            f"there is no harness profile '{harness}'; there are: {', '.join(known)}"
        )
    file, trace = find(workspace)
    if trace.problem is not None:
        raise InputError(file.problem(f"no contract can be made of this trace: {trace.problem}"))
    evidence = Evidence(trace, workspace.rules.profiles)
    inferred = infer_contract(
        evidence,
        workflow=_workflow(workflow, trace),
        contract_version=contract_version,
        contract_id=contract_id,
        name=name,
        harness=harness,
        files=files,
    )
    text = _written(inferred.contract, _header(trace, file, out), trace.task)
    contract = parse_contract(text.encode(), str(out or "the contract"), _default_id(out))
    verdict, failing = forecast(workspace.rules.judge(contract), evidence)
    warnings = [*inferred.warnings, *failing, *_scope(contract, trace)]
    if out is not None:
        _write(out, text, force=force)
    if as_json:
        click.echo(_report(inferred, warnings, verdict, trace, file, out).decode(), nl=False)
    elif out is None:
        click.echo(text, nl=False)
    _say(out, warnings, verdict)


def _workflow(named: str | None, trace: TraceSnapshot) -> str:
    workflow = named or trace.workflow
    if workflow is None or not workflow.strip():
        raise click.UsageError("the trace names no workflow: name the use case with --workflow")
    return workflow


def _default_id(out: Path | None) -> str:
    return "starter" if out is None else out.stem


def _scope(contract: Contract, trace: TraceSnapshot) -> Iterator[str]:
    """What is odd about the traces that the contract would judge."""
    if contract.workflow == trace.origin.format:
        yield (
            f"every trace of this format has the workflow '{contract.workflow}': choose this "
            "job's traces by `applies_to`, such as the task, or their prompt"
        )
    elif _ID.search(contract.workflow):
        yield (
            f"the workflow '{contract.workflow}' holds an id that no other trace may have: "
            "choose traces by `applies_to`"
        )
    if not applies(contract, trace):
        yield (
            f"the contract applies to {describe(contract.applies_to)}: `bench run` would not "
            "judge this trace by it"
        )


# The file.


def _header(trace: TraceSnapshot, file: TraceFile, out: Path | None) -> Iterator[str]:
    """The comment lines that the file starts with: what it is, and where it is from."""
    if out is not None and (out.parent / SCHEMA).is_file():
        yield f"yaml-language-server: $schema={SCHEMA}"
    yield f"A starter contract, generated by benchmark-assets {__version__} from one observed trace."
    yield "It demands what that run happened to do. Decide what any run must do, loosen the rest."
    yield f"Trace:   {printable(trace.trace_id)}"
    where = file.name if "://" in file.name else Path(file.name).name
    yield f"File:    {printable(where)}"
    yield f"SHA-256: {file.sha256}"


def _written(contract: Mapping[str, Any], header: Iterable[str], task: str | None) -> str:
    """The contract as YAML, with a comment above each section that needs a decision."""
    head = {key: value for key, value in contract.items() if key in _HEAD}
    blocks = ["".join(f"# {line}\n" for line in header), dump_contract(head)]
    if task is not None:
        selection = json.dumps(task, ensure_ascii=False)
        blocks.append(
            "# It judges every trace of this workflow. To judge this task alone:\n"
            f"# applies_to: {{task: {printable(selection)}}}\n"
        )
    for key, value in contract.items():
        if key in _HEAD:
            continue
        comment = _COMMENTS[key]
        blocks.append("".join(["\n", *(f"# {line}\n" for line in comment.splitlines())]))
        blocks.append(dump_contract({key: value}))
    return "".join(blocks)


def _write(out: Path, text: str, *, force: bool) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    # Between the check at the start and now somebody may have written it: `x` refuses.
    with out.open("w" if force else "x", encoding="utf-8", newline="\n") as stream:
        stream.write(text)


# What is said.


def _report(
    inferred: Inferred,
    warnings: list[str],
    verdict: Verdict,
    trace: TraceSnapshot,
    file: TraceFile,
    out: Path | None,
) -> bytes:
    return indented(
        {
            "contract": inferred.contract,
            "warnings": warnings,
            "outcome": verdict.outcome,
            "trace_id": trace.trace_id,
            "file": file.name,
            "sha256": file.sha256,
            "out": None if out is None else str(out),
        }
    )


def _say(out: Path | None, warnings: list[str], verdict: Verdict) -> None:
    for warning in warnings:  # One by one: none of them may be cut off.
        print_problems([printable(warning)], "warning")
    where = "" if out is None else f"Wrote {printable(str(out))}. "
    said = {
        "resolved": "The trace passes it.",
        "unresolved": "The trace itself does not pass it.",
        "unchecked": "It checks nothing.",
        "error": "The trace cannot be judged by it.",
    }[verdict.outcome]
    noted = f" {plural(len(warnings), 'warning')} to review." if warnings else ""
    stderr().print(f"{where}{said}{noted}", soft_wrap=True, markup=False)
