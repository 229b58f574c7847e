"""`bench leaderboard`: print an edition without touching anything."""

from __future__ import annotations

from pathlib import Path

import click

from benchmark_assets.adapters.editions import read_current, read_standings
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.store import Store
from benchmark_assets.cli.options import config_option, json_option, store_option
from benchmark_assets.cli.output import stdout
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.report.console import print_standings
from benchmark_assets.report.machine import standings_json


@click.command("leaderboard")
@click.option("--edition", help="Which edition; default: the current one.")
@store_option
@config_option
@json_option
def command(edition: str | None, store: str | None, config: Path | None, as_json: bool) -> None:
    """Print the standings last published.

    Example: bench leaderboard --json
    """
    opened = Store(load_project(config, store=store).store)
    if edition is None:
        current = read_current(opened)
        if current is None:
            cure = "publish one: bench run"
            raise InputError(Problem("no leaderboard yet", file=opened.url, cure=cure))
        edition = current.edition
    standings = read_standings(opened, edition)
    if standings is None:
        raise InputError(Problem(f"there is no edition {edition}", file=opened.url))
    if as_json:
        click.echo(standings_json(standings).decode(), nl=False)
    else:
        print_standings(standings, stdout())
