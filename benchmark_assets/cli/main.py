"""`bench`: the commands and how they are found.

A command is a module here with a `command`; it is imported only when it is called, so that
`bench lint` starts without Dagster and pandas.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from pathlib import Path
from typing import Any

import click

from benchmark_assets import __version__
from benchmark_assets.cli.output import EXIT_SETUP, print_problems
from benchmark_assets.model.problem import InputError, Problem

COMMANDS: dict[str, tuple[str, str]] = {
    "agree": ("agree", "Compare verdicts with labels of the same traces."),
    "debug": ("debug", "Ask a Langfuse server step by step what works."),
    "demo": ("demo", "Run the whole graph on embedded traces."),
    "families": ("families", "List the kinds of fidelity comparisons."),
    "fetch": ("fetch", "Fetch traces from Langfuse into a file."),
    "generate-contract": ("generate_contract", "Write a starter contract from one trace."),
    "golden": ("golden", "Grade candidate traces by fixtures."),
    "import-tasks": ("import_tasks", "Write contracts from a benchmark's ground truth."),
    "init": ("init", "Set up the files of a new project."),
    "leaderboard": ("leaderboard", "Print the standings last published."),
    "lint": ("lint", "Check contract files: every error at once."),
    "mutate": ("mutate", "Try a contract on traces that were made wrong."),
    "normalize": ("normalize", "Show what trace files yield, as snapshots."),
    "replay": ("replay", "Run your agent on fixtures, a trace each."),
    "schema": ("schema", "Print JSON Schemas for editors."),
    "run": ("run", "Bring everything up to date, print the leaderboard."),
    "scores": ("scores", "Write verdicts to Langfuse, or as OpenTelemetry events."),
    "trace-fidelity": ("trace_fidelity", "Compare an agent's report with its model calls."),
    "verify": ("verify", "Judge one trace by one contract, check by check."),
    "workflow-trace-fidelity": (
        "workflow_trace_fidelity",
        "Compare a workflow's ledger with its model calls.",
    ),
}
"""Command → module in this package, and what it does in one line."""

ALIASES: dict[str, str] = {
    "debug-trace": "debug",
    "fetch-trace": "fetch",
    "generate-contract": "generate-contract",
    "replay-suite": "replay",
    "run-verify": "verify",
    "trace-eval": "golden",
}
"""Console script → the command that it is."""


HELP: dict[str, Any] = {"help_option_names": ["-h", "--help"]}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        return _load(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _load(name: str) -> click.Command:
    module, _ = COMMANDS[name]
    command = importlib.import_module(f"benchmark_assets.cli.{module}").command
    assert isinstance(command, click.Command)
    return command


@click.group(cls=LazyGroup, context_settings=HELP)
@click.version_option(__version__, prog_name="bench")
def cli() -> None:
    """Benchmark LLM agents from their traces: contracts in, a leaderboard out.

    Start with `bench demo`; then `bench run --traces YOUR_TRACES`.
    """


def main(script: str = "bench") -> None:
    """Run `bench`. Exit codes: 0 clean, 1 set-up or I/O error, 2 usage; see each command.

    Args:
        script: Name of the console script: `bench`, or one of `ALIASES`.

    Raises:
        SystemExit: Always, with the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets a substitute, not a traceback.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        if script in ALIASES:
            _load(ALIASES[script])(prog_name=script, **HELP)
        else:
            cli(prog_name="bench")
    except InputError as error:
        print_problems(error.problems)
        sys.exit(EXIT_SETUP)
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        sys.exit(0)
    except OSError as error:
        name = None if error.filename is None else str(error.filename)
        print_problems([Problem(error.strerror or str(error), file=name)])
        sys.exit(EXIT_SETUP)


def entry() -> None:
    """The console scripts: `main`, then out, without taking the interpreter down piece by piece.

    Native threads of the libraries in use have been seen to abort the process during that, after
    all work was done, and an exit code that lies is worse than an unclean exit.
    """
    code: object = 0
    try:
        main(Path(sys.argv[0]).stem)
    except SystemExit as end:
        code = end.code
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    entry()
