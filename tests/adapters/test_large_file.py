"""A trace file of 200 MB: read, stored and accounted for, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adapters.samples import record

MEGABYTE = 1_000_000
SIZE = 200 * MEGABYTE
MEMORY = 2_500 * MEGABYTE

# In a process of its own: the peak is that of the whole process's life.
INGEST = """
import json, resource, sys
from pathlib import Path
from benchmark_assets.adapters.project_file import Project
from benchmark_assets.adapters.snapshot_files import list_partitions
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.pipeline import ingest
from benchmark_assets.pipeline.workspace import Workspace

root = Path(sys.argv[1])
config = ProjectConfig.model_validate({"sources": [{"name": "s", "path": "traces"}]})
workspace = Workspace(Project(config, root, str(root / "store"), None))
inventory = ingest.take_inventory(workspace)
build, _ = ingest.stale_partitions(workspace, inventory)
footers, problems, _ = ingest.build_partitions(workspace, inventory, build)
print(json.dumps({
    "partitions": len(footers),
    "traces": sum(footer.traces for footer in footers.values()),
    "problems": [str(problem) for problem in problems],
    "lost": [footer.shortfall for footer in footers.values() if footer.shortfall],
    "again": len(ingest.stale_partitions(workspace, ingest.take_inventory(workspace))[0]),
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""

pytestmark = pytest.mark.slow


def test_200_megabytes_in_one_file(tmp_path: Path) -> None:
    """JSON Lines of snapshots as agents leave them: ten calls with 2 kB results each."""
    calls = [
        {"name": "search", "arguments": {"query": f"q{n}"}, "result": f"{n} " * 900}
        for n in range(10)
    ]
    path = tmp_path / "traces" / "big.jsonl"
    path.parent.mkdir()
    written = count = 0
    with path.open("wb") as file:
        while written < SIZE:
            day = f"2026-03-{count % 28 + 1:02}T12:00:00Z"
            value = record(f"t{count}", started_at=day, tool_calls=calls, task=f"task-{count}")
            written += file.write(json.dumps(value).encode() + b"\n")
            count += 1
    done = subprocess.run(
        [sys.executable, "-c", INGEST, str(tmp_path)],
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    found = json.loads(done.stdout)
    peak = found.pop("peak")
    assert found == {
        "partitions": 28,
        "traces": count,
        "problems": [],
        "lost": [],
        "again": 0,
    }
    assert peak < MEMORY, f"{peak / MEGABYTE:.0f} MB"
