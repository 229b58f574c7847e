"""The asset that compares ledgers with model calls, and its check, which is a gate.

Belongs here: its body, its metadata, the check's results. Does not belong here: comparing
(`pipeline.fidelity`) or what a failure does to the leaderboard (`leaderboard.fidelity`): the
gate is in the data, since a failing check of one partition must not stop the others.
"""

from typing import Any

import dagster as dg

from benchmark_assets.adapters.store import fidelity_path
from benchmark_assets.defs import checks, partitions
from benchmark_assets.defs.materialized import NONE, Events, log_partition, partitioned
from benchmark_assets.defs.resources import Bench
from benchmark_assets.model.problem import Problem
from benchmark_assets.model.standings import ModelFidelity
from benchmark_assets.pipeline.fidelity import check_ledgers
from benchmark_assets.pipeline.ingest import PartitionId
from benchmark_assets.report.view import divergence_line


def build_fidelity(dates_by_models: dg.MultiPartitionsDefinition) -> dg.AssetsDefinition:
    """The asset; its partitions are those of the snapshots."""

    @partitioned(
        "workflow_fidelity",
        dates_by_models,
        "What frameworks report of each executor in the traces of one day and model, against what "
        "its model calls used.",
        kinds={"parquet", "python"},
        deps=[dg.AssetDep("trace_snapshots")],
        check_specs=[
            checks.spec(
                "workflow_fidelity",
                checks.LEDGERS_AGREE,
                "Reported tokens and finish reasons are those of the model calls. Where they are "
                "not, the model's tokens and costs are withheld from the leaderboard; where that "
                "cannot be said of all of them, they are marked. Traces without such reports "
                "are not looked at.",
                dates_by_models,
            )
        ],
    )
    def workflow_fidelity(
        context: dg.AssetExecutionContext, bench: dg.ResourceParam[Bench]
    ) -> Events:
        keys = [PartitionId(*partitions.parts_of(key)) for key in context.partition_keys]
        compared = check_ledgers(bench.workspace, keys, bench.progress)
        for key, partition in zip(keys, context.partition_keys, strict=True):
            version, fidelity = compared.partitions[key]
            problem = compared.problems.get(key)
            if problem is not None:
                bench.problems(str(problem))
            else:
                facts = _fidelity_metadata(bench, key, fidelity)
                version = version or "not applicable"
                log_partition(context, "workflow_fidelity", partition, facts, version)
            _log_gate(context, partition, fidelity, problem)
        yield from NONE

    return workflow_fidelity


def _fidelity_metadata(
    bench: Bench, key: PartitionId, fidelity: ModelFidelity | None
) -> dict[str, Any]:
    if fidelity is None:
        return {
            "dagster/row_count": 0,
            "status": "not applicable: in no trace does a framework report on its executors",
        }
    path = bench.workspace.store.path(fidelity_path(key.model, key.date[:7]))
    facts: dict[str, Any] = {
        "outcome": fidelity.outcome,
        "traces": fidelity.traces,
        "executors": fidelity.executors,
        "executors_compared": fidelity.checked,
        "path": dg.MetadataValue.path(str(path)),
    }
    if fidelity.score is not None:
        facts["score"] = fidelity.score
    if fidelity.reason is not None:
        facts["reason"] = fidelity.reason
    if fidelity.truth_tokens is not None:
        facts["tokens_used"] = fidelity.truth_tokens
        facts["tokens_compared"] = fidelity.checked_tokens or 0
    return facts


def _log_gate(
    context: dg.AssetExecutionContext,
    partition: str,
    fidelity: ModelFidelity | None,
    problem: Problem | None,
) -> None:
    """Log the gate of one partition: nothing compared is no pass, nothing to compare no result."""
    if problem is not None:
        outcome, findings = "not compared", [str(problem)]
    elif fidelity is not None:
        outcome, findings = _outcome(fidelity), _findings(fidelity)
    else:
        return
    failed = problem is not None or (fidelity is not None and fidelity.outcome == "FAIL")
    checks.log_partition_check(
        context,
        "workflow_fidelity",
        checks.LEDGERS_AGREE,
        partition,
        findings,
        looked_at=0 if fidelity is None else fidelity.traces,
        description=outcome,
        severity=dg.AssetCheckSeverity.ERROR if failed else dg.AssetCheckSeverity.WARN,
    )


def _outcome(fidelity: ModelFidelity) -> str:
    score = "" if fidelity.score is None else f", {fidelity.label}"
    return f"{fidelity.outcome}{score}: " + (fidelity.reason or "every ledger agrees")


def _findings(fidelity: ModelFidelity) -> list[str]:
    if fidelity.outcome == "PASS":
        return []
    named = [divergence_line(item) for item in fidelity.divergences]
    if fidelity.divergent > len(named):
        named.append(f"{fidelity.divergent - len(named)} more are in the file under `path`")
    return named or [fidelity.reason or "nothing was compared"]
