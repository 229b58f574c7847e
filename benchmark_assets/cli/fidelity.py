"""What the commands that compare a report with its model calls have in common.

Belongs here: their options, exit codes, and keeping a comparison in the store. Does not belong
here: what each reads and prints.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from benchmark_assets.adapters.fidelity_runs import store_fidelity_run
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.store import Store
from benchmark_assets.cli.output import (
    EXIT_CLEAN,
    EXIT_FAIL,
    EXIT_NOTHING,
    EXIT_WARN,
    stderr,
)
from benchmark_assets.model.fidelity import PRESETS, FidelityOutcome, FidelityRun
from benchmark_assets.report.lines import print_prose
from benchmark_assets.report.text import format_hash, printable
from benchmark_assets.scoring.trace_fidelity import RULES_VERSION, family

EXIT: dict[FidelityOutcome, int] = {
    "PASS": EXIT_CLEAN,
    "WARN": EXIT_WARN,
    "FAIL": EXIT_FAIL,
    "PENDING": EXIT_NOTHING,
}
"""Outcome → exit code."""


def _not_empty(_: click.Context, param: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("is empty; say what is compared", param=param)
    return value


subject_option = click.option(
    "--subject",
    required=True,
    callback=_not_empty,
    help="What is compared, as you call it.",
)
preset_option = click.option(
    "--preset",
    type=click.Choice(PRESETS),
    default="standard",
    show_default=True,
    help="What the run is for; changes no verdict.",
)
keep_option = click.option(
    "--store",
    "store",
    is_flag=False,
    flag_value="",
    default=None,
    metavar="[STORE]",
    help="Keep the result: in this folder or URL, else the project's store.",
)
verbose_option = click.option(
    "-v", "--verbose", is_flag=True, help="List everything, with every check."
)


def described(file: TraceFile) -> str:
    """A file and its hash, in words."""
    return f"{file.name}, SHA-256 {format_hash(file.sha256)}…"


def keep(
    store: str | None,
    config: Path | None,
    family_name: str,
    file: TraceFile,
    **fields: Any,
) -> None:
    """Put a comparison into the store, if that was asked for.

    Args:
        store: The folder or URL; empty for the project's; None to keep nothing.
        config: The project's `benchmark.yaml`, if one was named.
        family_name: Which kind of comparison.
        file: The file with the ledger.
        fields: The rest of the row.
    """
    if store is None:
        return
    kind = family(family_name)
    run = FidelityRun(
        family=kind.name,
        cost_tier=kind.cost_tier,
        version=RULES_VERSION,
        sha256=file.sha256,
        **fields,
    )
    opened = Store(load_project(config, store=store or None).store)
    path, is_new = store_fidelity_run(opened, run)
    # Standard output is the result's alone.
    said = "stored as" if is_new else "stored already as"
    print_prose(stderr(), printable(f"{said} {opened.path(path)}"), style="dim")
