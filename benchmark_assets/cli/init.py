"""`bench init`: the files of a new project."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from benchmark_assets.cli.output import stdout

FILES = ("benchmark.yaml", "dagster.yaml", "workspace.yaml")


def write_project(folder: Path) -> list[Path]:
    """Write what is missing of a project's files; returns what was written. Nothing is replaced."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in FILES:
        target = folder / name
        if not target.exists():
            source = resources.files("benchmark_assets.cli") / "project" / name
            target.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
            written.append(target)
    return written


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
def command(folder: Path) -> None:
    """Set up a project in FOLDER: its benchmark.yaml, and what Dagster needs to show it.

    Files that are there already stay as they are.

    Example: bench init my-benchmark
    """
    console = stdout()
    written = write_project(folder)
    for path in written:
        console.print(f"Wrote {path}", soft_wrap=True)
    if not written:
        console.print("All files are there already.")
    console.print("Next: put trace files into traces/, then: bench run", soft_wrap=True)
