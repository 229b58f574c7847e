"""The six assets, from contracts and traces to the report.

Belongs here: bodies that read, call the pipeline and say in metadata what happened. Does not
belong here: how any of it is done.

Every asset covers all partitions of a run in one step (a Dagster run costs seconds, a
partition in it milliseconds) and does only what is stale, so running one again is safe and
cheap.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

from benchmark_assets.adapters.editions import edition_folder, report_path
from benchmark_assets.adapters.run_reader import read_runs
from benchmark_assets.adapters.snapshot_files import SnapshotFooter, read_snapshots
from benchmark_assets.adapters.store import (
    cell_folder,
    contract_path,
    snapshot_path,
)
from benchmark_assets.adapters.stored_contracts import read_contracts
from benchmark_assets.defs import checks, partitions
from benchmark_assets.defs.fidelity import build_fidelity
from benchmark_assets.defs.materialized import (
    GROUP,
    NONE,
    OWNERS,
    Events,
    log_partition,
    partitioned,
)
from benchmark_assets.defs.resources import Bench
from benchmark_assets.leaderboard.runs import prepare
from benchmark_assets.leaderboard.standings import top_failure
from benchmark_assets.leaderboard.statistics.pass_rate import STATISTIC as PASS_RATE
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.identity import unpartition_key
from benchmark_assets.model.standings import PassRate, Standings
from benchmark_assets.pipeline.cells import (
    CellId,
    CellResult,
    evaluate_cells,
    read_state,
    write_contracts,
)
from benchmark_assets.pipeline.ingest import PartitionId, build_partitions
from benchmark_assets.pipeline.publish import publish, write_report
from benchmark_assets.report.markdown import standings_markdown
from benchmark_assets.report.text import format_percent


def build_assets(days: partitions.Span) -> list[dg.AssetsDefinition]:
    """The graph's assets; `days` are those that can be partitions."""
    snapshot_partitions = partitions.snapshots(days)

    @partitioned(
        "contracts",
        partitions.contracts,
        "What each use case demands of a trace, as it was last read from its file.",
        kinds={"yaml"},
        check_specs=[
            checks.spec(
                "contracts",
                checks.CONTRACTS_VALID,
                "The contract's file is there and can be read as a contract.",
                partitions.contracts,
            )
        ],
    )
    def contracts(context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]) -> Events:
        loaded = bench.workspace.load_contracts()
        files = {file.contract.id: file for file in loaded.contracts}
        wanted = [unpartition_key(key) for key in context.partition_keys]
        write_contracts(bench.workspace, [files[i].contract for i in wanted if i in files])
        for key, contract_id in zip(context.partition_keys, wanted, strict=True):
            file = files.get(contract_id)
            if file is None:
                facts: dict[str, Any] = {"status": "no file can be read as this contract"}
                findings = ["no file can be read as this contract", *map(str, loaded.problems)]
            else:
                facts, findings = _contract_metadata(file.contract, str(file.path)), []
            version = "gone" if file is None else file.contract.content_hash
            log_partition(context, "contracts", key, facts, version)
            checks.log_partition_check(
                context, "contracts", checks.CONTRACTS_VALID, key, findings, looked_at=1
            )
        yield from NONE

    @partitioned(
        "trace_snapshots",
        snapshot_partitions,
        "The traces of one day and model, normalised, with the hash of their bytes.",
        kinds={"parquet"},
        check_specs=[
            checks.spec(
                "trace_snapshots",
                checks.ACCOUNTED,
                "Traces in the files = traces stored + duplicates reported. Until it holds, "
                "nothing of this day is evaluated and the model's cells are withheld.",
                snapshot_partitions,
                blocking=True,
            ),
            checks.spec(
                "trace_snapshots",
                checks.NO_ERROR_SNAPSHOTS,
                "Every trace of this day and model can be read and judged.",
                snapshot_partitions,
            ),
        ],
    )
    def trace_snapshots(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Events:
        keys = [PartitionId(*partitions.parts_of(key)) for key in context.partition_keys]
        built = build_partitions(bench.workspace, bench.sources(), keys, bench.progress)
        for problem in built.problems:
            bench.problems(str(problem))
        for key, partition in zip(keys, context.partition_keys, strict=True):
            footer = built.footers.get(key)
            version = "empty" if footer is None else footer.content
            facts = _snapshot_metadata(bench, key, footer)
            log_partition(context, "trace_snapshots", partition, facts, version)
            for name, findings, blocking in (
                (checks.ACCOUNTED, _unaccounted(footer), True),
                (checks.NO_ERROR_SNAPSHOTS, _unreadable(bench, footer), False),
            ):
                checks.log_partition_check(
                    context,
                    "trace_snapshots",
                    name,
                    partition,
                    findings,
                    looked_at=0 if footer is None else footer.found,
                    blocking=blocking,
                )
        yield from NONE

    @partitioned(
        "contract_evaluations",
        partitions.cells,
        "Every trace of one model judged by one contract, check by check.",
        kinds={"parquet", "python"},
        deps=[
            dg.AssetDep(
                "contracts",
                partition_mapping=dg.MultiToSingleDimensionPartitionMapping("contract"),
            ),
            dg.AssetDep(
                "trace_snapshots",
                partition_mapping=dg.MultiPartitionMapping(
                    {"model": dg.DimensionPartitionMapping("model", dg.IdentityPartitionMapping())}
                ),
            ),
        ],
        check_specs=[
            checks.spec(
                "contract_evaluations",
                checks.NO_ERROR_RUNS,
                "Every run could be evaluated: no grader raised, no trace was incomplete.",
                partitions.cells,
            )
        ],
    )
    def contract_evaluations(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Events:
        wanted = [CellId(*partitions.parts_of(key)) for key in context.partition_keys]
        results = evaluate_cells(bench.workspace, wanted, bench.progress)
        rates = _cell_rates(bench, wanted)
        stored = read_contracts(bench.workspace.store)
        labels = {contract_id: contract.label for contract_id, contract in stored.items()}
        for cell, key in zip(wanted, context.partition_keys, strict=True):
            rate = rates.get(cell)
            facts = {**_cell_origin(bench, cell, labels), **_cell_metadata(results[cell], rate)}
            log_partition(context, "contract_evaluations", key, facts, results[cell].version)
            errors = 0 if rate is None else rate[0].counts.error
            checks.log_partition_check(
                context,
                "contract_evaluations",
                checks.NO_ERROR_RUNS,
                key,
                [f"{errors} error rows"] if errors else [],
                looked_at=0 if rate is None else rate[0].counts.total,
            )
        yield from NONE

    workflow_fidelity = build_fidelity(snapshot_partitions)

    @dg.asset(
        deps=[contract_evaluations, workflow_fidelity],
        group_name=GROUP,
        kinds={"json", "pandas"},
        owners=OWNERS,
        description="Which model does which job: one edition of the standings, kept for good.",
        check_specs=[
            checks.spec(
                "leaderboard",
                checks.NOTHING_STALE,
                "No cell is withheld: every cell was evaluated on the present snapshots.",
            ),
            checks.spec("leaderboard", checks.MATCHED, "Every contract judged at least one trace."),
            checks.spec(
                "leaderboard",
                checks.FILES_READ,
                "Every trace file can be read, and every trace in it placed.",
            ),
        ],
    )
    def leaderboard(context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]) -> Events:
        published = publish(bench.workspace)
        standings = published.standings
        yield dg.MaterializeResult(
            metadata=_leaderboard_metadata(bench, standings, published.is_new),
            data_version=dg.DataVersion(standings.edition),
        )
        yield checks.result(
            checks.NOTHING_STALE,
            [f"{w.model} under {w.contract}: {w.reason}" for w in standings.withheld],
            looked_at=len(standings.cells) + len(standings.withheld),
        )
        yield checks.result(
            checks.MATCHED,
            [
                f"{entry.contract} ({entry.label}) applied to no trace"
                for entry in standings.contracts
                if not entry.runs
            ],
            looked_at=len(standings.contracts),
        )
        yield checks.result(
            checks.FILES_READ,
            [note.text for note in standings.notes if note.kind == "error"],
            looked_at=standings.snapshots,
        )

    @dg.asset(
        deps=[leaderboard],
        group_name=GROUP,
        kinds={"html"},
        owners=OWNERS,
        description="The standings as one self-contained HTML file.",
    )
    def benchmark_report(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> dg.MaterializeResult[Any]:
        path = write_report(bench.workspace)
        if path is None:
            raise dg.Failure("There is no leaderboard to report on; materialize it first.")
        full = bench.workspace.store.path(path)
        return dg.MaterializeResult(
            metadata={
                "report": dg.MetadataValue.path(str(full)),
                "open": dg.MetadataValue.url(full.as_uri()),
                "size_bytes": int(full.stat().st_size),
            }
        )

    return [
        contracts,
        trace_snapshots,
        contract_evaluations,
        workflow_fidelity,
        leaderboard,
        benchmark_report,
    ]


def _contract_metadata(contract: Contract, path: str) -> dict[str, Any]:
    sections = [
        name
        for name in ("tools", "trajectory", "final", "ends_with")
        if getattr(contract, name) is not None
    ]
    return {
        "label": contract.label,
        "name": contract.name,
        "group": contract.group,
        "judges": ", ".join(sections) or "nothing: every run will be unchecked",
        "file": dg.MetadataValue.path(path),
        "stored": contract_path(contract.id),
        "sha256": contract.content_hash,
    }


def _unaccounted(footer: SnapshotFooter | None) -> list[str]:
    return [] if footer is None or footer.shortfall is None else [footer.shortfall]


def _unreadable(bench: Bench, footer: SnapshotFooter | None) -> list[str]:
    if footer is None or not footer.problems:
        return []
    return [
        f"trace {item.snapshot.trace_id}: {item.snapshot.problem}"
        for item in read_snapshots(bench.workspace.store, footer.date, footer.model)
        if item.snapshot.problem is not None
    ]


def _snapshot_metadata(
    bench: Bench, key: PartitionId, footer: SnapshotFooter | None
) -> dict[str, Any]:
    if footer is None:
        return {"dagster/row_count": 0, "status": "no traces of this model on this day"}
    path = bench.workspace.store.path(snapshot_path(key.date, key.model))
    return {
        "dagster/row_count": footer.traces,
        "error_rows": footer.problems,
        "duplicates": len(footer.duplicates),
        "files": len(footer.inputs),
        "path": dg.MetadataValue.path(str(path)),
        "content_sha256": footer.content,
    }


def _cell_rates(bench: Bench, wanted: list[CellId]) -> dict[CellId, tuple[PassRate, str | None]]:
    """Pass rate and top failure of each wanted cell over all its dates."""
    store = bench.workspace.store
    months = read_state(bench.workspace).months
    cells = set(wanted)
    paths = [path for path, m in months.items() if CellId(m.contract, m.model) in cells]
    runs = prepare(read_runs(store, paths))
    return {
        CellId(str(contract), str(model)): (PASS_RATE.compute(part), top_failure(part))
        for (contract, model), part in runs.groupby(["contract", "model"], observed=True)
    }


def _cell_origin(bench: Bench, cell: CellId, labels: Mapping[str, str]) -> dict[str, Any]:
    path = bench.workspace.store.path(cell_folder(cell.contract, cell.model))
    return {
        "contract": labels.get(cell.contract, "gone"),
        "path": dg.MetadataValue.path(str(path)),
    }


def _cell_metadata(
    result: CellResult, rate: tuple[PassRate, str | None] | None
) -> Mapping[str, Any]:
    facts: dict[str, Any] = {"dates_evaluated": result.dates, "files_changed": result.files_changed}
    if rate is None:
        return {"dagster/row_count": 0, "status": "the contract applied to no trace", **facts}
    passed, failure = rate
    tally = passed.counts
    facts |= {
        "dagster/row_count": tally.total,
        "resolved": tally.resolved,
        "unresolved": tally.unresolved,
        "unchecked": tally.unchecked,
        "error": tally.error,
        "tasks": passed.tasks,
    }
    if passed.micro is not None:
        facts["pass_rate"] = passed.micro
    if failure is not None:
        facts["fails_most"] = failure
    return facts


def _leaderboard_metadata(bench: Bench, standings: Standings, is_new: bool) -> dict[str, Any]:
    folder = bench.workspace.store.path(edition_folder(standings.edition))
    facts: dict[str, Any] = {
        "standings": dg.MetadataValue.md(standings_markdown(standings)),
        "cells": dg.MetadataValue.table(
            records=[
                dg.TableRecord(
                    {
                        "model": cell.model,
                        "contract": cell.contract,
                        "pass_rate": format_percent(cell.figures.pass_rate.micro),
                        "resolved": cell.figures.pass_rate.counts.resolved,
                        "scored": cell.figures.pass_rate.counts.scored,
                        "fails_most": cell.top_failure or "",
                    }
                )
                for cell in standings.cells
            ],
            schema=dg.TableSchema(
                columns=[
                    dg.TableColumn("model", "string"),
                    dg.TableColumn("contract", "string"),
                    dg.TableColumn("pass_rate", "string"),
                    dg.TableColumn("resolved", "int"),
                    dg.TableColumn("scored", "int"),
                    dg.TableColumn("fails_most", "string"),
                ]
            ),
        ),
        "edition": standings.edition,
        "new_edition": is_new,
        "runs": standings.counts.total,
        "error_rows": standings.counts.error,
        "withheld_cells": len(standings.withheld),
        "shared_tasks": standings.shared_tasks,
        "path": dg.MetadataValue.path(str(folder)),
        "report": report_path(standings.edition),
    }
    best = next((model for model in standings.models if model.rank == 1), None)
    if best is not None and best.shared is not None and best.shared.macro is not None:
        facts["best_model"] = best.model
        facts["best_pass_rate"] = best.shared.macro
    return facts
