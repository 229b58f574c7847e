"""Asset checks: what must hold of a materialization, in words people can act on.

Belongs here: the checks' names, what they mean, and their evaluations. Does not belong here:
what is done about a failure (cells are withheld in the data, see `pipeline.publish`).

A check of a partitioned asset is evaluated partition by partition, so that a failure shows on
its partition only. Blocking checks block in the data: Dagster gates a step of the same run, but
evaluations are other runs, over other partitions. So the condition of a blocking check is in
the partition's own footer, and evaluations of that partition do not happen until it holds.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg

SHOWN = 20
"""How many findings a check lists; the number of all is always given."""

ACCOUNTED = "every_trace_accounted_for"
NO_ERROR_SNAPSHOTS = "no_unreadable_traces"
NO_ERROR_RUNS = "no_error_rows"
MATCHED = "every_contract_matched_a_trace"
NOTHING_STALE = "no_stale_cells"
CONTRACTS_VALID = "contract_file_is_valid"
FILES_READ = "every_file_is_readable"
LEDGERS_AGREE = "ledgers_agree_with_model_calls"


def spec(
    asset: str,
    name: str,
    description: str,
    partitions: dg.PartitionsDefinition[str] | None = None,
    *,
    blocking: bool = False,
) -> dg.AssetCheckSpec:
    """A check on an asset, for each of its partitions or for all of it."""
    return dg.AssetCheckSpec(
        name, asset=asset, description=description, blocking=blocking, partitions_def=partitions
    )


def log_partition_check(
    context: dg.AssetExecutionContext,
    asset: str,
    name: str,
    key: str,
    findings: Sequence[str],
    *,
    looked_at: int,
    blocking: bool = False,
    severity: dg.AssetCheckSeverity | None = None,
    description: str | None = None,
) -> None:
    """Log how one partition fared: it passes when nothing was found.

    Args:
        context: The step's.
        asset: The asset.
        name: The check's name.
        key: The partition's key as Dagster gave it.
        findings: What is wrong, one text each.
        looked_at: How many things were looked at, so that a pass over nothing shows as that.
        blocking: Whether what depends on the partition does not happen when it fails.
        severity: How bad a failure is; default: an error if it blocks, else a warning.
        description: What came out in a few words; default: how many were found.
    """
    if severity is None:
        severity = dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN
    context.log_event(
        dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(asset),
            check_name=name,
            passed=not findings,
            partition=key,
            blocking=blocking,
            severity=severity,
            description=description or _verdict(findings, looked_at),
            metadata=_metadata(findings, looked_at),
        )
    )


def result(
    name: str,
    findings: Sequence[str],
    *,
    looked_at: int,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN,
) -> dg.AssetCheckResult:
    """The result of a check on an asset without partitions; arguments as above."""
    return dg.AssetCheckResult(
        check_name=name,
        passed=not findings,
        severity=severity,
        description=_verdict(findings, looked_at),
        metadata=_metadata(findings, looked_at),
    )


def _verdict(findings: Sequence[str], looked_at: int) -> str:
    return f"{len(findings)} of {looked_at}" if findings else f"all {looked_at} in order"


def _metadata(findings: Sequence[str], looked_at: int) -> dict[str, Any]:
    metadata: dict[str, Any] = {
        "looked_at": dg.MetadataValue.int(looked_at),
        "found": dg.MetadataValue.int(len(findings)),
    }
    if findings:
        listed = "\n".join(f"- {text}" for text in findings[:SHOWN])
        more = f"\n- … and {len(findings) - SHOWN} more" if len(findings) > SHOWN else ""
        metadata["findings"] = dg.MetadataValue.md(listed + more)
    return metadata
