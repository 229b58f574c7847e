"""`bench init`: the files of a new project."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.cli.output import stdout, write_text
from benchmark_assets.cli.schema import schema_text

FILES = ("benchmark.yaml", "dagster.yaml", "workspace.yaml")
SCHEMAS = {"contract.schema.json": "contract", "fixture.schema.json": "fixture"}
"""What editors check contracts with; generated, so it is replaced where it is out of date."""


def write_project(folder: Path) -> list[Path]:
    """Write what is missing of a project's files; returns what was written.

    Nothing is replaced but the schemas beside the contracts, once they are out of date.

    Raises:
        InputError: If a `benchmark.yaml` is there and wrong.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in FILES:
        target = folder / name
        if not target.exists():
            source = resources.files("benchmark_assets.cli") / "project" / name
            write_text(target, source.read_text(encoding="utf-8"))
            written.append(target)
    return [*written, *_write_schemas(folder)]


def _write_schemas(folder: Path) -> list[Path]:
    """Write the schemas of contracts and fixtures into the project's folders of contracts."""
    written = []
    for path in load_project(folder, env={}).contract_paths():
        if path.is_file() or path.suffix:
            continue
        for name, kind in SCHEMAS.items():
            target, text = path / name, schema_text(kind)
            if not (target.is_file() and target.read_text(encoding="utf-8") == text):
                write_text(target, text)
                written.append(target)
    return written


@click.command("init")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=Path())
def command(folder: Path) -> None:
    """Set up a project in FOLDER: its benchmark.yaml, and what Dagster needs to show it.

    Files that are there already stay as they are. Only contract.schema.json and
    fixture.schema.json, with which editors check contracts, are written again after an upgrade.

    Example: bench init my-benchmark
    """
    console = stdout()
    written = write_project(folder)
    for path in written:
        console.print(f"Wrote {shown_path(path)}", soft_wrap=True)
    if not written:
        console.print("All files are there already.")
    console.print("Next: put trace files into traces/, then: bench run", soft_wrap=True)
