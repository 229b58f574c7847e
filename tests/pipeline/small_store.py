"""A small project whose store is filled by hand: snapshots and contracts, no trace files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmark_assets.adapters.project_file import Project
from benchmark_assets.adapters.snapshot_files import SourcedSnapshot, assemble, write_partition
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import Origin, Tokens, TraceSnapshot
from benchmark_assets.pipeline.cells import CellId, read_state, stale_cells, write_contracts
from benchmark_assets.pipeline.workspace import Workspace

A, B = "openai/gpt-4o", "b|model"
MODELS = (A, B)
DAYS = ("2026-02-27", "2026-02-28", "2026-03-01")
"""Two months, so that cells have more than one file."""


SOURCES = [{"name": name, "path": name} for name in ("a", "s", "z")]


def workspace(root: Path, **config: Any) -> Workspace:
    """A project with nothing in its store."""
    settings = ProjectConfig.model_validate({"sources": SOURCES, **config})
    return Workspace(Project(config=settings, root=root, store=str(root / "store"), file=None))


def with_config(opened: Workspace, **config: Any) -> Workspace:
    """The same store under other settings."""
    return Workspace(
        replace(opened.project, config=ProjectConfig.model_validate({"sources": SOURCES, **config}))
    )


def contract(contract_id: str, **fields: Any) -> Contract:
    """A contract of workflow `refund` whose answer must name 327."""
    data = {"id": contract_id, "workflow": "refund", "contract_version": "1"}
    return Contract.model_validate({**data, "final": {"contains": ["327"]}, **fields})


def trace(trace_id: str, model: str, day: str, **fields: Any) -> TraceSnapshot:
    """A trace of workflow `refund` that answers as the contract wants."""
    values: dict[str, Any] = {
        "trace_id": trace_id,
        "origin": Origin(
            file=f"{trace_id}.json",
            sha256=hashlib.sha256(trace_id.encode()).hexdigest(),
            format="snapshot",
        ),
        "model": model,
        "workflow": "refund",
        "task": trace_id.partition(".")[0],
        "trial": 0,
        "started_at": datetime.fromisoformat(f"{day}T10:00:00+00:00"),
        "duration_ms": 1_000,
        "tokens": Tokens(input=1_000, output=100),
        "ended_normally": True,
        "final_answer": "It is 327.",
    }
    return TraceSnapshot(**{**values, **fields})


def put(
    opened: Workspace,
    day: str,
    model: str,
    *snapshots: TraceSnapshot,
    source: str = "s",
    inputs: dict[str, str] | None = None,
) -> None:
    """Write one partition."""
    sourced = [SourcedSnapshot(source, snapshot) for snapshot in snapshots]
    write_partition(opened.store, day, model, assemble(sourced), inputs or {"s/f": "hash"})


def day_of_traces(model: str, day: str) -> list[TraceSnapshot]:
    """Three traces: two that resolve (unless their contract says otherwise), one that does not."""
    return [
        trace(f"one.{day}.{model}", model, day),
        trace(f"two.{day}.{model}", model, day, final_answer="It is 0."),
        trace(f"other.{day}.{model}", model, day, workflow="other"),
    ]


def fill(opened: Workspace, contracts: Iterable[Contract]) -> None:
    """Three days of two models, and contracts; nothing is evaluated."""
    for model in MODELS:
        for day in DAYS:
            put(opened, day, model, *day_of_traces(model, day))
    write_contracts(opened, contracts)


CONTRACTS = (
    contract("refund"),
    contract("refund/strict", tools={"required": ["get_order"]}),
    contract("nothing", workflow="nobody runs this"),
)


def stale(opened: Workspace) -> dict[CellId, list[str]]:
    return stale_cells(read_state(opened)).dates


def every_cell(opened: Workspace) -> list[CellId]:
    return sorted(read_state(opened).expected)


def tree(opened: Workspace, folder: str = "") -> dict[str, str]:
    """Every file of the store with the hash of its bytes; locks are not content."""
    root = Path(opened.store.url)
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted((root / folder).rglob("*"))
        if path.is_file() and ".locks" not in path.relative_to(root).parts
    }


def stamps(opened: Workspace, folder: str = "") -> dict[str, tuple[int, int]]:
    """Every file with inode and modification time: equal means not written again."""
    root = Path(opened.store.url)
    return {
        path: ((root / path).stat().st_ino, (root / path).stat().st_mtime_ns)
        for path in tree(opened, folder)
    }
