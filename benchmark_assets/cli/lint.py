"""`bench lint`: check contracts before anything depends on them."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.cli.options import config_option, json_option
from benchmark_assets.cli.output import EXIT_CLEAN, EXIT_SETUP, print_problems, stdout
from benchmark_assets.pipeline.lint import lint
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.text import plural


@click.command("lint")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@config_option
@json_option
def command(paths: tuple[Path, ...], config: Path | None, as_json: bool) -> None:
    """Check contract files and folders: every error at once, with file, line, key and cure.

    Without PATHS the project's own contracts are checked. Exit codes: 0 no error (warnings do
    not count); 1 errors.

    Example: bench lint contracts/
    """
    workspace = Workspace(load_project(config))
    loaded = lint(paths or workspace.project.contract_paths(), workspace.rules)
    if as_json:
        report = {
            "contracts": len(loaded.contracts),
            "errors": loaded.problems,
            "warnings": loaded.warnings,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=1).decode())
    else:
        print_problems(loaded.problems)
        print_problems(loaded.warnings, "warning")
        stdout().print(
            f"{plural(len(loaded.contracts), 'contract')}, "
            f"{plural(len(loaded.problems), 'error')}, "
            f"{plural(len(loaded.warnings), 'warning')}.",
            soft_wrap=True,
        )
    raise SystemExit(EXIT_SETUP if loaded.problems else EXIT_CLEAN)
