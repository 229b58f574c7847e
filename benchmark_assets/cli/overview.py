"""What `bench run` prints where there is no contract yet: what is there, and what to do next."""

from __future__ import annotations

import shlex

import click
import msgspec
from rich.markup import escape
from rich.table import Table

from benchmark_assets.cli.output import print_problems, stdout
from benchmark_assets.pipeline.overview import Overview
from benchmark_assets.report.text import (
    UNKNOWN,
    format_count,
    format_dates,
    format_money,
    format_tokens,
    plural,
    printable,
)

TOOLS = 15
"""Tools listed; the rest is counted."""


def print_overview(overview: Overview, *, as_json: bool = False) -> None:
    """Print what trace files hold."""
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(overview), indent=1).decode())
        return
    print_problems(overview.problems)
    print_problems(overview.error_rows, "warning")
    console = stdout()
    formats = ", ".join(f"{count} {name}" for name, count in overview.formats.items())
    console.print(
        f"{plural(overview.traces, 'trace')} in {plural(overview.files, 'file')}"
        + (f" ({formats})" if formats else ""),
        soft_wrap=True,
    )
    if not overview.traces:
        return
    console.print()
    table = Table(box=None, pad_edge=False)
    table.add_column("Model", overflow="fold")
    for name in ("Traces", "Tasks", "Failed", "Unread.", "Tokens", "Cost"):
        table.add_column(name, justify="right")
    table.add_column("Dates", overflow="fold")
    for item in overview.models:
        table.add_row(
            UNKNOWN if item.model is None else escape(printable(item.model)),
            format_count(item.traces),
            format_count(item.tasks),
            format_count(item.failed),
            format_count(item.unreadable),
            format_tokens(item.tokens) + ("*" if 0 < item.tokens_known < item.traces else ""),
            format_money(item.cost_usd) + ("*" if 0 < item.cost_known < item.traces else ""),
            format_dates(item.first_date, item.last_date),
        )
    console.print(table)
    console.print(
        f"Failed: runs in an error state. Unread.: records that cannot be judged. "
        f"{UNKNOWN} not recorded, * not recorded by all.",
        style="dim",
    )
    console.print()
    console.print("Workflows: " + _listing(overview.workflows), soft_wrap=True)
    tools = {tool.name: tool.calls for tool in overview.tools}
    failed = {tool.name: tool.failed for tool in overview.tools if tool.failed}
    console.print("Tools: " + _listing(tools), soft_wrap=True)
    if failed:
        console.print("Failed calls: " + _listing(failed), soft_wrap=True)


def _listing(counts: dict[str, int]) -> str:
    shown = [
        f"{escape(printable(name or '(none)'))} × {count}"
        for name, count in list(counts.items())[:TOOLS]
    ]
    more = len(counts) - TOOLS
    return (", ".join(shown) or "none") + (f" and {more} more" if more > 0 else "")


def print_next_step(overview: Overview, traces: tuple[str, ...]) -> None:
    """Say what to do next: how a contract is made of one trace, and what applies it."""
    console = stdout()
    workflow = next((name for name in overview.workflows if name), None)
    if workflow is None:
        return
    example = overview.examples[workflow]
    command = ["bench", "generate-contract"]
    if example.source is None:
        command += ["--from-file", example.file]
        command += [] if example.alone else ["--trace-id", example.trace_id]
    else:
        command += ["--source", example.source, "--trace-id", example.trace_id]
    command += ["--out", "contracts/first.yaml"]
    run = ["bench", "run", *(part for path in traces for part in ("--traces", path))]
    lines = [
        "Next: say what a run must do. This writes a contract of what one trace of "
        f"'{workflow}' did, for you to loosen and tighten:",
        "",
        f"  {shlex.join(command)}",
        "",
    ]
    always = overview.always_used.get(workflow, ())
    if overview.workflows[workflow] > 1 and always:
        lines += [f"Every trace of it used {', '.join(always)}.", ""]
    lines += ["Then:", "", f"  {shlex.join([*run, '--contracts', 'contracts'])}"]
    console.print()
    for line in lines:
        console.print(printable(line), markup=False, soft_wrap=True)
