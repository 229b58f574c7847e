"""`bench demo`: the whole graph on the embedded demo."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import click

from benchmark_assets.adapters.editions import read_current, report_path
from benchmark_assets.adapters.project_file import Project, load_project
from benchmark_assets.adapters.source_index import list_sources
from benchmark_assets.adapters.store import Store
from benchmark_assets.cli.init import write_project
from benchmark_assets.cli.output import EXIT_CLEAN, EXIT_FAIL, EXIT_SETUP, EXIT_WARN, stdout
from benchmark_assets.cli.run import run
from benchmark_assets.demo import contracts_folder, write_traces
from benchmark_assets.model.problem import InputError
from benchmark_assets.pipeline.plan import Selection

SOURCE = "demo"
TRACES = Path("data", "demo", "traces")
NEW_PROJECT = "benchmark-demo"

_PROJECT_FILE = """\
store: data/store
contracts: [contracts/]
sources:
  - {kind: files, name: demo, path: data/demo/traces}
"""


@click.command("demo")
@click.option(
    "--dir",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help=f"Where to set the demo up; default: this project if it is the demo's, else ./{NEW_PROJECT}.",
)
def command(folder: Path | None) -> None:
    """Run the whole graph on embedded traces: 4 models, 6 contracts, 14 days of 3 trials each.

    Writes the traces, runs the graph in a fresh store, prints the leaderboard and says how to
    open the report and Dagster. Exits 0 when the graph ran.

    Example: bench demo
    """
    project = _project(folder)
    console = stdout()
    traces = project.root / TRACES
    count = write_traces(traces)
    console.print(f"{count} demo traces in {_shown(traces)}.", soft_wrap=True)
    _clear(Path(project.store))
    code = run(project, Selection(), own_store=True, show_report=False)
    # A gate that fails is one of the things the demo shows.
    if code not in (EXIT_CLEAN, EXIT_WARN, EXIT_FAIL):
        raise SystemExit(EXIT_SETUP)
    _how_to_open(project)


def _project(folder: Path | None) -> Project:
    """The project the demo runs in; a new one is set up where there is none of the demo's."""
    if folder is None:
        try:
            project = load_project()
        except InputError:
            project = None
        if project is not None and _is_demo(project):
            return project
        folder = Path(NEW_PROJECT)
    folder.mkdir(parents=True, exist_ok=True)
    config = folder / "benchmark.yaml"
    if not config.exists():
        config.write_text(_PROJECT_FILE, encoding="utf-8")
    contracts = folder / "contracts"
    if not contracts.exists():
        shutil.copytree(contracts_folder(), contracts)
    write_project(folder)
    project = load_project(config, env={})
    if not _is_demo(project):
        raise click.UsageError(f"{config} is another project's; name another --dir")
    return project


def _is_demo(project: Project) -> bool:
    sources = [source.name for source in project.config.sources]
    return project.file is not None and sources == [SOURCE] and "://" not in project.store


def _clear(store: Path) -> None:
    """Make the store fresh, unless it holds anything that is not the demo's."""
    if store.is_dir() and set(list_sources(Store(str(store)))) <= {SOURCE}:
        shutil.rmtree(store)


def _how_to_open(project: Project) -> None:
    current = read_current(Store(project.store))
    assert current is not None
    report = Path(project.store) / report_path(current.edition)
    console = stdout()
    console.print()
    console.print("[bold]The report[/bold], one file that opens offline:", soft_wrap=True)
    console.print(f"  {report.as_uri()}", soft_wrap=True)
    console.print("[bold]The graph[/bold], with every partition, check and run:", soft_wrap=True)
    place = "" if project.root == Path.cwd() else f"cd {_shown(project.root)} && "
    command = "make dev" if (project.root / "Makefile").exists() else f"{_dagster()} dev"
    console.print(f"  {place}{command}   # then open http://127.0.0.1:3000", soft_wrap=True)


def _dagster() -> str:
    """The `dagster` of this environment, as one would type it here."""
    beside = Path(sys.executable).with_name("dagster")
    return _shown(beside) if beside.exists() else "dagster"


def _shown(path: Path) -> str:
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
