"""Asset checks: what must hold of a materialization, in words people can act on.

Belongs here: the checks' names, what they mean, and their evaluations. Does not belong here:
what is done about a failure (cells are withheld in the data, see `pipeline.publish`).

A run covers many partitions, and Dagster knows one result a check and run; what each partition
gave is in the partition's own metadata.
"""

from collections.abc import Sequence

import dagster as dg

SHOWN = 20
"""How many findings a check lists; the number of all is always given."""

ACCOUNTED = "every_trace_accounted_for"
NO_ERROR_SNAPSHOTS = "no_unreadable_traces"
NO_ERROR_RUNS = "no_error_rows"
MATCHED = "every_contract_matched_a_trace"
NOTHING_STALE = "no_stale_cells"
CONTRACTS_VALID = "contract_files_are_valid"


def spec(asset: str, name: str, description: str, *, blocking: bool = False) -> dg.AssetCheckSpec:
    """A check on an asset; blocking ones stop what depends on the asset in the same run."""
    return dg.AssetCheckSpec(name, asset=asset, description=description, blocking=blocking)


def result(
    name: str,
    findings: Sequence[str],
    *,
    looked_at: int,
    severity: dg.AssetCheckSeverity = dg.AssetCheckSeverity.WARN,
) -> dg.AssetCheckResult:
    """A check that passes when it found nothing, and lists what it found.

    Args:
        name: The check's name.
        findings: What is wrong, one text each.
        looked_at: How many things were looked at, so that a pass over nothing shows as that.
        severity: Of a failure.
    """
    listed = "\n".join(f"- {text}" for text in findings[:SHOWN])
    more = f"\n- … and {len(findings) - SHOWN} more" if len(findings) > SHOWN else ""
    metadata: dict[str, dg.MetadataValue] = {
        "looked_at": dg.MetadataValue.int(looked_at),
        "found": dg.MetadataValue.int(len(findings)),
    }
    if findings:
        metadata["findings"] = dg.MetadataValue.md(listed + more)
    return dg.AssetCheckResult(
        check_name=name,
        passed=not findings,
        severity=severity,
        description=f"{len(findings)} of {looked_at}" if findings else f"all {looked_at} in order",
        metadata=metadata,
    )
