"""`bench run`: bring the graph up to date, then print the leaderboard."""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import click

from benchmark_assets.adapters.contract_files import ContractSet
from benchmark_assets.adapters.editions import read_current, read_standings, report_path
from benchmark_assets.adapters.project_file import Project, load_project
from benchmark_assets.adapters.snapshot_files import list_partitions
from benchmark_assets.adapters.source_index import read_root
from benchmark_assets.adapters.sources import Progress, locate, root_hash
from benchmark_assets.adapters.store import Store
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.cli.options import (
    Day,
    config_option,
    default_date_option,
    format_option,
    json_option,
    store_option,
)
from benchmark_assets.cli.output import (
    EXIT_CLEAN,
    EXIT_FAIL,
    EXIT_NOTHING,
    EXIT_SETUP,
    EXIT_WARN,
    print_problems,
    progress,
    stderr,
    stdout,
)
from benchmark_assets.cli.overview import print_next_step, print_overview
from benchmark_assets.cli.pulls import pull
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.model.project import FileSource
from benchmark_assets.model.standings import Standings
from benchmark_assets.pipeline.cells import retire_contracts
from benchmark_assets.pipeline.fidelity import drop_gone
from benchmark_assets.pipeline.freshness import leaderboard_is_current, report_is_current
from benchmark_assets.pipeline.ingest import Inventory, remove_partition, take_inventory
from benchmark_assets.pipeline.overview import look_around
from benchmark_assets.pipeline.plan import (
    Selection,
    StaleInputs,
    all_models,
    cells_to_evaluate,
    ledgers_to_compare,
    stale_inputs,
)
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.report.console import print_standings
from benchmark_assets.report.machine import standings_json
from benchmark_assets.report.text import plural, printable


@click.command("run")
@click.option(
    "--traces",
    multiple=True,
    help="Trace file, folder or glob, in place of the configured sources; repeatable.",
)
@click.option(
    "--contracts",
    multiple=True,
    help="Contract file or folder, in place of the configured ones; repeatable.",
)
@click.option("--from", "first", type=Day(), help="First day to ingest; default: all there are.")
@click.option("--to", "last", type=Day(), help="Last day to ingest.")
@click.option("--model", "models", multiple=True, help="Only this model; repeatable.")
@click.option(
    "--contract", "contract_ids", multiple=True, help="Only this contract's id; repeatable."
)
@click.option("--prune", is_flag=True, help="Forget traces whose files are gone.")
@click.option(
    "--no-pull", is_flag=True, help="Ask no server: judge what was pulled from it before."
)
@store_option
@config_option
@format_option
@default_date_option
@json_option
def command(
    traces: tuple[str, ...],
    contracts: tuple[str, ...],
    first: date | None,
    last: date | None,
    models: tuple[str, ...],
    contract_ids: tuple[str, ...],
    prune: bool,
    no_pull: bool,
    store: str | None,
    config: Path | None,
    format_name: str,
    default_date: date | None,
    as_json: bool,
) -> None:
    """Ingest traces, evaluate contracts, publish the leaderboard: whatever is stale of it.

    Where there is no contract yet, prints what the trace files hold and how to go on.

    Exit codes: 0 clean; 1 set-up or I/O error; 2 usage; 9 what a framework reports of a model's
    traces is not what its model calls used; 10 something could not be read, evaluated or
    compared; 11 no trace matched any contract.

    Example: bench run --traces results/ --contracts contracts/ --store /tmp/try
    """
    if first is not None and last is not None and first > last:
        raise click.UsageError(f"--from {first} is after --to {last}")
    own = load_project(config)
    project = load_project(config, store=store)
    project = override(project, traces, contracts, format_name, default_date)
    selection = Selection(
        first.isoformat() if first else None,
        last.isoformat() if last else None,
        frozenset(map(project.config.canonical_model, models)),
        frozenset(contract_ids),
    )
    own_store = project.store == own.store
    code = run(
        project,
        selection,
        own_store=own_store,
        traces=traces,
        need_contracts=bool(contracts),
        prune=prune,
        pulls=not no_pull,
        as_json=as_json,
    )
    raise SystemExit(code)


def override(
    project: Project,
    traces: Sequence[str],
    contracts: Sequence[str],
    format_name: str = "auto",
    default_date: date | None = None,
) -> Project:
    """The project with sources and contracts from the command line in place of its own."""
    changes: dict[str, Any] = {}
    if traces:
        changes["sources"] = tuple(
            FileSource(
                name=name,
                path=str(Path(path).absolute()),
                format=format_name,
                default_date=default_date,
            )
            for name, path in zip(_source_names(traces, Store(project.store)), traces, strict=True)
        )
    elif format_name != "auto" or default_date is not None:
        raise click.UsageError("--format and --default-date go with --traces")
    if contracts:
        changes["contracts"] = tuple(str(Path(path).absolute()) for path in contracts)
    if not changes:
        return project
    return dataclasses.replace(project, config=project.config.model_copy(update=changes))


def _source_names(paths: Sequence[str], store: Store) -> list[str]:
    """Name sources by the last part of their path, the same wherever the folder lies.

    Where the store knows another folder of that name, the name gets a mark of its own: the
    traces of one must not stand in for those of the other.
    """
    names: list[str] = []
    for path in paths:
        stem = next((p for p in reversed(Path(path).absolute().parts) if "*" not in p), "traces")
        name, number = stem, 2
        with contextlib.suppress(InputError):  # what is not there is reported when it is read
            root = root_hash(locate(path)[0])
            if read_root(store, name) not in (None, root):
                name = stem = f"{stem}-{root[:6]}"
        while name in names:
            name, number = f"{stem}-{number}", number + 1
        names.append(name)
    return names


def run(
    project: Project,
    selection: Selection,
    *,
    own_store: bool,
    traces: tuple[str, ...] = (),
    need_contracts: bool = True,
    prune: bool = False,
    pulls: bool = True,
    as_json: bool = False,
    show_report: bool = True,
) -> int:
    """Bring the graph up to date, print what came out, return the exit code.

    Args:
        project: The project.
        selection: What was asked for.
        own_store: Whether the store is the project's own.
        traces: The traces as they were named on the command line.
        need_contracts: Whether having no contract is an error rather than the beginning.
        prune: Forget traces whose files are gone.
        pulls: Pull traces of sources that are on a server first.
        as_json: Print JSON.
        show_report: Say where the report is.
    """
    workspace = Workspace(project)
    loaded = workspace.load_contracts()
    unpulled = _pull(workspace, selection, prune=prune) if pulls else ()
    if not loaded.contracts and not need_contracts and not _broken(loaded):
        return _only_look(workspace, traces, as_json=as_json)
    print_problems(loaded.problems)
    if not loaded.contracts:
        return EXIT_SETUP
    unknown = selection.contracts - {file.contract.id for file in loaded.contracts}
    if unknown:
        raise InputError([Problem(f"there is no contract {name}") for name in sorted(unknown)])
    with progress() as report:
        inventory = take_inventory(workspace, prune=prune, progress=report)
        print_problems(inventory.problems)
        failed = bool(loaded.problems or unpulled or inventory.problems)
        if (unpulled or inventory.problems) and not any(True for _ in inventory.entries()):
            return EXIT_SETUP
        _check_models(workspace, inventory, selection)
        done = _update(workspace, loaded, inventory, selection, report, own_store=own_store)
    current = read_current(workspace.store)
    standings = None if current is None else read_standings(workspace.store, current.edition)
    assert standings is not None  # _update publishes
    _print(workspace, standings, done, as_json=as_json, show_report=show_report)
    code = _exit_code(standings, failed=failed)
    if code == EXIT_CLEAN and done.left_out:
        code = EXIT_WARN
    if own_store and pulls and not traces and not _write_back(workspace, selection):
        code = EXIT_SETUP
    if not standings.counts.total and not as_json:
        overview = look_around(workspace)
        stdout().print("\nNo contract applied to any trace. What is there:\n")
        print_overview(overview)
        print_next_step(overview, traces)
    return code


def _pull(workspace: Workspace, selection: Selection, *, prune: bool) -> tuple[Problem, ...]:
    """Pull traces of the days asked for from servers; returns what went wrong."""
    first, last = (day and date.fromisoformat(day) for day in (selection.first, selection.last))
    with progress() as report:
        return pull(workspace, first or None, last or None, report, prune=prune)


def _write_back(workspace: Workspace, selection: Selection) -> bool:
    """Write verdicts to where the settings say, if they do; whether that could be done."""
    settings = workspace.project.config.write_back
    if not settings.scores and settings.events is None:
        return True
    from benchmark_assets.cli.scores import write_back

    return write_back(workspace, selection)


def _check_models(workspace: Workspace, inventory: Inventory, selection: Selection) -> None:
    known = {*all_models(inventory), *(model for _, model in list_partitions(workspace.store))}
    problems = [
        Problem(
            f"there are no traces of a model {model}",
            cure=did_you_mean(model, sorted(known)) or f"there are: {', '.join(sorted(known))}",
        )
        for model in sorted(selection.models - known)
    ]
    if problems:
        raise InputError(problems)


def _broken(loaded: ContractSet) -> bool:
    """Whether there are contract files that cannot be read, rather than none."""
    return any(problem.line is not None or problem.key is not None for problem in loaded.problems)


def _only_look(workspace: Workspace, traces: tuple[str, ...], *, as_json: bool) -> int:
    with progress() as report:
        overview = look_around(workspace, report)
    print_overview(overview, as_json=as_json)
    if not as_json:
        print_next_step(overview, traces)
    if not overview.traces:
        return EXIT_SETUP
    return EXIT_NOTHING


@dataclasses.dataclass
class Done:
    """What it took: Dagster runs and the partitions they covered; whether traces were left."""

    runs: int = 0
    partitions: int = 0
    left_out: bool = False


def _update(
    workspace: Workspace,
    loaded: ContractSet,
    inventory: Inventory,
    selection: Selection,
    report: Progress,
    *,
    own_store: bool,
) -> Done:
    stale = stale_inputs(workspace, loaded, inventory, selection)
    _announce(workspace, stale)
    for key in stale.remove:
        remove_partition(workspace, key)
    retire_contracts(workspace, stale.retired)
    if not _anything_to_do(workspace, stale, selection):
        return Done()
    # Only now is Dagster needed: an unchanged project never waits for its import.
    from benchmark_assets.defs.plan import (
        cell_runs,
        contract_runs,
        fidelity_runs,
        publication_runs,
        snapshot_runs,
    )
    from benchmark_assets.defs.resources import Bench
    from benchmark_assets.defs.runs import RunFailedError, open_graph

    bench = Bench(workspace, inventory, report, lambda text: print_problems([text]))
    dates = sorted({key.date for key in inventory.expected()})
    with open_graph(bench, dates, own_store=own_store) as graph:
        try:
            keys = graph.register(
                all_models(inventory), [file.contract.id for file in loaded.contracts]
            )
            runs, outside = snapshot_runs(stale.build, keys, graph.days)
            print_problems(
                f"{key.model} has traces of {key.date}, more than a year ahead: not ingested"
                for key in outside
            )
            for planned in (*contract_runs(stale.contracts, keys), *runs):
                graph.execute(planned)
            cells = cells_to_evaluate(workspace, selection)
            keys = graph.register([c.model for c in cells], [c.contract for c in cells])
            drop_gone(workspace)
            ledgers = ledgers_to_compare(workspace, selection)
            keys = graph.register([key.model for key in ledgers], ())
            for planned in (*cell_runs(cells, keys), *fidelity_runs(ledgers, keys, graph.days)):
                graph.execute(planned)
            for planned in publication_runs(workspace):
                graph.execute(planned)
            models = {key.model for key in inventory.expected()}
            graph.forget({key.model for key in stale.remove} - models, stale.retired)
        except RunFailedError as error:
            raise InputError(Problem(f"a run of the graph failed: {error}")) from error
        return Done(graph.runs, graph.partitions, bool(outside))


def _announce(workspace: Workspace, stale: StaleInputs) -> None:
    """Say what will no longer be where it was: merged models, contracts that are gone."""
    config = workspace.project.config
    days = Counter(key.model for key in stale.remove)
    for model, count in sorted(days.items()):
        canonical = config.canonical_model(model)
        if canonical != model:
            print_problems(
                [f"{model} counts as {canonical} now: {plural(count, 'day')} of traces merge"],
                "note",
            )
    for contract_id in stale.retired:
        print_problems([f"contract {contract_id} is gone: its runs are archived"], "note")


def _anything_to_do(workspace: Workspace, stale: StaleInputs, selection: Selection) -> bool:
    return bool(
        stale.contracts
        or stale.build
        or cells_to_evaluate(workspace, selection)
        or ledgers_to_compare(workspace, selection)
        or not leaderboard_is_current(workspace)
        or not report_is_current(workspace)
    )


def _print(
    workspace: Workspace, standings: Standings, done: Done, *, as_json: bool, show_report: bool
) -> None:
    if as_json:
        click.echo(standings_json(standings).decode(), nl=False)
    else:
        print_standings(standings, stdout())
    console = stderr()
    if done.runs:
        console.print(
            f"{plural(done.runs, 'Dagster run')} over {plural(done.partitions, 'partition')}.",
            soft_wrap=True,
        )
    else:
        console.print("Nothing was stale: no Dagster run, no file written.", soft_wrap=True)
    _print_ledger_to_look_at(workspace, standings)
    if show_report:
        page = workspace.store.path(report_path(standings.edition))
        console.print(f"Report: {page}", soft_wrap=True)


def _print_ledger_to_look_at(workspace: Workspace, standings: Standings) -> None:
    """Say with which command the first ledger that is wrong can be looked at."""
    worst = [item for item in standings.fidelity if item.outcome == "FAIL"] or standings.fidelity
    found = next((divergence for item in worst for divergence in item.divergences), None)
    sources = {source.name: source for source in workspace.project.config.sources}
    if found is None or not isinstance(source := sources.get(found.source), FileSource):
        return
    with contextlib.suppress(InputError):  # its source may be gone
        root = locate(workspace.project.source_path(source))[0]
        held = root.absolute() / found.source_file
        command = [
            *("bench", "workflow-trace-fidelity", "--workflow-trace", shown_path(held)),
            *("--trace-id", found.trace_id, "--rules", "strict", "--subject", "this"),
        ]
        stderr().print(f"Look at a ledger: {printable(shlex.join(command))}", soft_wrap=True)


def _exit_code(standings: Standings, *, failed: bool) -> int:
    if failed:
        return EXIT_SETUP
    gates = {item.outcome for item in standings.fidelity}
    if "FAIL" in gates:
        return EXIT_FAIL
    if not standings.counts.total:
        return EXIT_NOTHING
    if gates - {"PASS"}:
        return EXIT_WARN
    if standings.counts.error or any(note.kind == "error" for note in standings.notes):
        return EXIT_WARN
    return EXIT_CLEAN
