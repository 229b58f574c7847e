"""`bench families`: the kinds of comparisons there are."""

from __future__ import annotations

import click
import msgspec
from rich.text import Text

from benchmark_assets.cli.options import json_option
from benchmark_assets.cli.output import stdout
from benchmark_assets.report.lines import print_prose
from benchmark_assets.report.machine import indented
from benchmark_assets.scoring.trace_fidelity import FAMILIES


@click.command("families")
@json_option
def command(as_json: bool) -> None:
    """List the kinds of fidelity comparisons; each is the command of its name.

    Example: bench families --json
    """
    if as_json:
        click.echo(indented([msgspec.to_builtins(item) for item in FAMILIES]).decode(), nl=False)
        return
    console = stdout()
    indent = max(len(item.name) for item in FAMILIES) + 2
    for item in FAMILIES:
        text = (
            f"{item.description}; {item.cost_tier}; rules {', '.join(item.rules)}; "
            f"presets {', '.join(item.presets)}"
        )
        print_prose(console, text, indent=indent, label=Text(item.name, "bold"))
