"""Telling Dagster about one partition of a run that covers many.

Belongs here: the one event. Does not belong here: what is in its metadata.

A step that returns one result for many partitions gives all of them one data version, and
adding metadata partition by partition costs Dagster a pass over all of them each time (measured
for 180 partitions: 7.4 s that way, 3.6 s this way, and growing with the square). So the assets
declare their output optional and log one materialization a partition, each with the version of
its own content: what did not change keeps its version, whatever else its run did.
"""

from collections.abc import Mapping
from typing import Any

import dagster as dg

DATA_VERSION = "dagster/data_version"
DIMENSION = "dagster/partition/"


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
