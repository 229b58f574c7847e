"""`bench`: the commands and how they are found.

A command is a module here with a `command`; it is imported only when it is called, so that
`bench lint` starts without Dagster and pandas.
"""

from __future__ import annotations

import importlib
import sys

import click

from benchmark_assets import __version__
from benchmark_assets.cli.output import EXIT_SETUP, print_problems
from benchmark_assets.model.problem import InputError

COMMANDS = {
    "agree": "agree",
    "demo": "demo",
    "import-tasks": "import_tasks",
    "leaderboard": "leaderboard",
    "lint": "lint",
    "normalize": "normalize",
    "run": "run",
}
"""Command → module in this package."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command = importlib.import_module(f"benchmark_assets.cli.{module}").command
        assert isinstance(command, click.Command)
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="bench")
def cli() -> None:
    """Benchmark LLM agents from their traces: contracts in, a leaderboard out.

    Start with `bench demo`; then `bench run --traces YOUR_TRACES`.
    """


def main() -> None:
    """Entry point. Exit codes: 0 clean, 1 set-up or I/O error, 2 usage; see each command."""
    try:
        cli(prog_name="bench")
    except InputError as error:
        print_problems(error.problems)
        sys.exit(EXIT_SETUP)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        sys.stderr.close()
        sys.exit(0)


if __name__ == "__main__":
    main()
