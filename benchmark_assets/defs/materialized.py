"""Assets whose steps cover many partitions, and telling Dagster about each of them.

Belongs here: declaring such an asset, and the one event. Does not belong here: what is in its
metadata.

A step that returns one result for many partitions gives all of them one data version, and
adding metadata partition by partition costs Dagster a pass over all of them each time (measured
for 180 partitions: 7.4 s that way, 3.6 s this way, and growing with the square). So the assets
declare their output optional and log one materialization a partition, each with the version of
its own content: what did not change keeps its version, whatever else its run did.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import dagster as dg

DATA_VERSION = "dagster/data_version"
DIMENSION = "dagster/partition/"


GROUP = "benchmark"
OWNERS = ["team:evaluation"]

Events = Iterator[dg.MaterializeResult[Any] | dg.AssetCheckResult]
"""What a step yields. Steps over partitions log their events instead and end with `NONE`, since
Dagster takes a step for one that yields only if it is a generator."""

NONE: tuple[dg.AssetCheckResult, ...] = ()


def partitioned(
    name: str,
    partitions_def: dg.PartitionsDefinition[str],
    description: str,
    *,
    kinds: set[str],
    check_specs: list[dg.AssetCheckSpec],
    deps: list[dg.AssetDep] | None = None,
) -> Callable[[Callable[..., Events]], dg.AssetsDefinition]:
    """An asset whose step logs its own materializations and check results, a partition each.

    `can_subset` is what lets a step end without results of its own for asset and checks.
    """
    return dg.multi_asset(
        name=name,
        specs=[
            dg.AssetSpec(
                name,
                deps=deps or [],
                skippable=True,
                group_name=GROUP,
                kinds=kinds,
                owners=OWNERS,
                description=description,
            )
        ],
        can_subset=True,
        partitions_def=partitions_def,
        backfill_policy=dg.BackfillPolicy.single_run(),
        check_specs=check_specs,
    )


def log_partition(
    context: dg.AssetExecutionContext,
    asset: str,
    key: str,
    metadata: Mapping[str, Any],
    version: str,
) -> None:
    """Log that one partition is materialized.

    Args:
        context: The step's.
        asset: The asset.
        key: The partition's key as Dagster gave it.
        metadata: Facts about this partition.
        version: Its data version: the hash of its content.
    """
    tags = {DATA_VERSION: version}
    if isinstance(key, dg.MultiPartitionKey):
        tags |= {f"{DIMENSION}{name}": part for name, part in key.keys_by_dimension.items()}
    context.log_event(
        dg.AssetMaterialization(
            asset_key=dg.AssetKey(asset), partition=key, metadata=metadata, tags=tags
        )
    )
