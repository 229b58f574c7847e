"""What commands share when they speak: consoles, problems, progress, exit codes.

Belongs here: where output goes and how it looks. Does not belong here: what a command says.

Results go to standard output, everything else to standard error, so that a pipe gets only
results. No colour codes go into pipes (rich sees to that).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from benchmark_assets.model.problem import Problem

EXIT_CLEAN = 0
EXIT_SETUP = 1
EXIT_USAGE = 2
EXIT_FAIL = 9
EXIT_WARN = 10
EXIT_NOTHING = 11

EXIT_FAILED = 1
EXIT_NO_VERDICT = 2
"""`verify` has codes of its own: 0 passed, 1 failed, 2 whatever kept it from saying either."""

SHOWN_PROBLEMS = 50


class _Console(Console):
    """A console that leaves it to `main` what a closed pipe means."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def stdout() -> Console:
    """Where results go."""
    return _Console(highlight=False)


def stderr() -> Console:
    """Where everything else goes."""
    return _Console(stderr=True, highlight=False)


def print_problems(problems: Iterable[Problem | str], word: str = "error") -> None:
    """Print problems, one a line, on standard error."""
    console = stderr()
    listed = list(problems)
    for problem in listed[:SHOWN_PROBLEMS]:
        style = {"error": "red", "note": "cyan"}.get(word, "yellow")
        console.print(f"[{style}]{word}[/{style}] {escape(str(problem))}", soft_wrap=True)
    if len(listed) > SHOWN_PROBLEMS:
        console.print(f"… and {len(listed) - SHOWN_PROBLEMS} more", soft_wrap=True)


def write_text(path: Path, text: str) -> None:
    """Write a file that an option names, making the folders it lies in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


class Reporter:
    """Shows how far the current step is."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._task = progress.add_task("starting", total=None)
        self._what = ""

    def __call__(self, what: str, done: int, total: int) -> None:
        """Take a step's progress; matches `adapters.sources.Progress`."""
        if what != self._what:
            self._what = what
            self._progress.reset(self._task, description=what, total=total or None)
        self._progress.update(self._task, completed=done, total=total or None)


@contextmanager
def progress() -> Iterator[Reporter]:
    """A progress bar on standard error; it leaves no trace, and in a pipe shows nothing."""
    console = stderr()
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        yield Reporter(bar)
