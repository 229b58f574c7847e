"""Traces with a ledger in which one value is odd, through the store and back."""

from __future__ import annotations

import itertools
import json
from typing import Any

from benchmark_assets.adapters.snapshot_files import (
    SourcedSnapshot,
    assemble,
    read_snapshots,
    write_partition,
)
from benchmark_assets.adapters.store import Store
from tests.adapters.test_formats import ODD, changed, check_reading, places


def records_through_the_store(content: Any, format_name: str) -> int:
    """Put every odd value in every place; what is read must be stored as it is.

    Returns:
        How many of the traces that were stored still had both sides.
    """
    store = Store(f"memory://odd-ledgers-{format_name}")
    records = 0
    for path, odd in itertools.product(places(content), ODD):
        data = json.dumps(changed(content, path, "set", odd)).encode()
        found = [s for s in check_reading(data, format_name) if s.model and s.started_at]
        partition = assemble(SourcedSnapshot("s", item) for item in found)
        write_partition(store, "2026-03-01", "m", partition, {})
        stored = [item.snapshot for item in read_snapshots(store, "2026-03-01", "m")]
        assert stored == [item.snapshot for item in partition.snapshots]
        records += sum(item.workflow_record is not None for item in stored)
    return records
