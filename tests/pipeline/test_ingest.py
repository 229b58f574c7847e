"""From trace files to partitions of snapshots: what is stale, what is built, what is lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmark_assets.adapters import sources, traces
from benchmark_assets.adapters.project_file import Project
from benchmark_assets.adapters.snapshot_files import (
    SnapshotFooter,
    list_partitions,
    read_snapshots,
)
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.pipeline.ingest import (
    Inventory,
    PartitionId,
    build_partitions,
    remove_partition,
    stale_partitions,
    take_inventory,
)
from benchmark_assets.pipeline.workspace import Workspace
from tests.adapters.samples import CONVERSATION, lines, record, simulation, tau2


def shortfalls(footers: Mapping[PartitionId, SnapshotFooter]) -> list[str]:
    return [f"{k.date} {k.model}: {f.shortfall}" for k, f in footers.items() if f.shortfall]


class Bench:
    """A project in a folder: put files, ingest, look."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.sources: dict[str, str] = {"s": "traces"}
        self.settings: dict[str, Any] = {}
        (root / "traces").mkdir()

    @property
    def workspace(self) -> Workspace:
        config = ProjectConfig.model_validate(
            {
                "sources": [{"name": name, "path": path} for name, path in self.sources.items()],
                **self.settings,
            }
        )
        return Workspace(Project(config, self.root, str(self.root / "store"), None))

    def put(self, name: str, *values: Any) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(lines(*values))
        return path

    def stale(self, prune: bool = False) -> tuple[list[PartitionId], list[PartitionId]]:
        return stale_partitions(self.workspace, take_inventory(self.workspace, prune=prune))

    def ingest(self, prune: bool = False) -> tuple[list[PartitionId], list[PartitionId]]:
        """Bring the store up to date; nothing is stale afterwards and nothing is lost."""
        workspace = self.workspace
        inventory = take_inventory(workspace, prune=prune)
        assert inventory.problems == ()
        build, remove = stale_partitions(workspace, inventory)
        footers, problems, written = build_partitions(workspace, inventory, build)
        assert problems == []
        assert set(footers) == set(build)
        assert written == len(build)
        for key in remove:
            assert remove_partition(workspace, key)
        assert stale_partitions(workspace, inventory) == ([], [])
        assert self.stale() == ([], [])
        assert shortfalls(self.footers()) == []
        return build, remove

    def footers(self) -> dict[PartitionId, SnapshotFooter]:
        return {
            PartitionId(*key): footer
            for key, footer in list_partitions(self.workspace.store).items()
        }

    def ids(self) -> dict[PartitionId, list[str]]:
        store = self.workspace.store
        return {
            key: sorted(item.snapshot.trace_id for item in read_snapshots(store, *key))
            for key in self.footers()
        }


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def key(day: int, model: str = "gpt-4o") -> PartitionId:
    return PartitionId(f"2026-03-{day:02}", model)


def on(day: int, trace_id: str, model: str | None = "gpt-4o", **fields: Any) -> dict[str, Any]:
    return record(trace_id, model=model, started_at=f"2026-03-{day:02}T12:00:00Z", **fields)


def test_partitions_are_the_days_and_models_of_the_traces(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), on(2, "b"), on(2, "c", "haiku"))
    bench.put("traces/b.json", on(2, "d"))
    assert bench.ingest() == ([key(1), key(2), key(2, "haiku")], [])
    assert bench.ids() == {key(1): ["a"], key(2): ["b", "d"], key(2, "haiku"): ["c"]}


def test_nothing_is_stale_when_nothing_changed(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"))
    bench.ingest()
    before = {path: path.stat() for path in (bench.root / "store").rglob("*.parquet")}
    assert bench.ingest() == ([], [])
    assert {path: path.stat() for path in before} == before


def test_a_changed_file_makes_exactly_its_partitions_stale(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), on(2, "b"))
    bench.put("traces/b.json", on(2, "c"), on(3, "d"))
    bench.put("traces/c.json", on(4, "e"))
    bench.ingest()
    bench.put("traces/a.json", on(1, "a", prompt="other"), on(2, "b"))
    assert bench.ingest() == ([key(1), key(2)], [])


def test_a_trace_that_moves_to_another_day_leaves_its_old_one(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), on(2, "b"))
    bench.ingest()
    bench.put("traces/a.json", on(5, "a"), on(2, "b"))
    assert bench.ingest() == ([key(2), key(5)], [key(1)])
    assert bench.ids() == {key(2): ["b"], key(5): ["a"]}


def test_a_new_file_adds_to_its_partitions(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), on(2, "b"))
    bench.ingest()
    bench.put("traces/b.json", on(2, "c"))
    assert bench.ingest() == ([key(2)], [])
    assert bench.ids()[key(2)] == ["b", "c"]


def test_a_vanished_file_keeps_its_traces_until_pruned(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), on(2, "b"))
    bench.put("traces/b.json", on(2, "c"))
    bench.ingest()
    (bench.root / "traces/a.json").unlink()
    assert bench.ingest() == ([], [])
    # Its traces stay even when their partition has to be built again.
    bench.put("traces/b.json", on(2, "c", prompt="other"), on(2, "d"))
    assert bench.ingest() == ([key(2)], [])
    assert bench.ids() == {key(1): ["a"], key(2): ["b", "c", "d"]}
    assert bench.ingest(prune=True) == ([key(2)], [key(1)])
    assert bench.ids() == {key(2): ["c", "d"]}


@pytest.mark.parametrize("gone", ["a.json", "b.json"])
def test_a_vanished_files_duplicates_stay_reported(bench: Bench, gone: str) -> None:
    """Whichever of two files with the same trace goes, no trace is counted as lost."""
    bench.put("traces/a.json", on(1, "a"))
    bench.put("traces/b.json", on(1, "a"))
    bench.put("traces/c.json", on(1, "c"))
    bench.ingest()
    (bench.root / "traces" / gone).unlink()
    bench.put("traces/c.json", on(1, "c"), on(1, "d"))
    assert bench.ingest() == ([key(1)], [])
    assert bench.ids() == {key(1): ["a", "c", "d"]}
    assert len(bench.footers()[key(1)].duplicates) == 1


def test_normalised_snapshots_of_a_vanished_file_stay(bench: Bench) -> None:
    """Their origin is another file than the one that held them."""
    origin = {"file": "raw.json", "sha256": "0" * 64, "record": "[0]", "format": "tau2"}
    bench.put("traces/snapshots.jsonl", on(1, "a", origin=origin), on(1, "b", origin=origin))
    bench.ingest()
    (bench.root / "traces/snapshots.jsonl").unlink()
    bench.put("traces/c.json", on(1, "c"))
    assert bench.ingest() == ([key(1)], [])
    assert bench.ids() == {key(1): ["a", "b", "c"]}


def test_a_file_that_is_back_changes_nothing(bench: Bench) -> None:
    path = bench.put("traces/a.json", on(1, "a"))
    bench.ingest()
    data = path.read_bytes()
    path.unlink()
    bench.ingest()
    path.write_bytes(data)
    assert bench.ingest() == ([], [])


def test_a_file_moved_within_its_source_is_stored_once(bench: Bench) -> None:
    path = bench.put("traces/a.json", on(1, "a"))
    bench.ingest()
    path.rename(bench.root / "traces/z.json")
    bench.ingest()
    # The old name's trace is kept, and the new one is found to be the same.
    assert bench.ids() == {key(1): ["a"]}
    assert bench.ingest(prune=True) == ([key(1)], [])
    assert bench.footers()[key(1)].inputs.keys() == {"s/z.json"}
    assert bench.footers()[key(1)].duplicates == []


def test_a_file_moved_between_sources(bench: Bench) -> None:
    bench.sources = {"one": "one", "two": "two"}
    bench.put("one/a.json", on(1, "a"))
    bench.put("one/b.json", on(2, "b"))
    bench.put("two/c.json", on(3, "c"))
    bench.ingest()
    (bench.root / "one/a.json").rename(bench.root / "two/a.json")
    assert bench.ingest() == ([key(1)], [])
    assert bench.ids()[key(1)] == ["a"]
    assert bench.ingest(prune=True) == ([key(1)], [])
    assert bench.footers()[key(1)].inputs.keys() == {"two/a.json"}
    assert bench.ids() == {key(1): ["a"], key(2): ["b"], key(3): ["c"]}


def test_a_source_no_longer_named_keeps_its_traces_until_pruned(bench: Bench) -> None:
    bench.sources = {"one": "one", "two": "two"}
    bench.put("one/a.json", on(1, "a"))
    bench.put("two/b.json", on(1, "b"), on(2, "c"))
    bench.ingest()
    bench.sources = {"one": "one"}
    assert bench.ingest() == ([], [])
    bench.put("one/a.json", on(1, "a"), on(1, "d"))
    assert bench.ingest() == ([key(1)], [])
    assert bench.ids() == {key(1): ["a", "b", "d"], key(2): ["c"]}
    assert bench.ingest(prune=True) == ([key(1)], [key(2)])
    assert bench.ids() == {key(1): ["a", "d"]}


@pytest.mark.parametrize("prune", [False, True])
def test_a_source_whose_folder_is_gone_keeps_its_traces(bench: Bench, prune: bool) -> None:
    """A disk that is not mounted tonight is reported and is not the end of its traces."""
    bench.sources = {"one": "one", "two": "two"}
    bench.put("one/a.json", on(1, "a"))
    bench.put("two/b.json", on(1, "b"))
    bench.ingest()
    shutil.rmtree(bench.root / "two")
    inventory = take_inventory(bench.workspace, prune=prune)
    (problem,) = inventory.problems
    assert str(problem) == f"{bench.root}/two: there is no such file or folder; check the path"
    assert stale_partitions(bench.workspace, inventory) == ([], [])


def test_an_alias_moves_traces_to_the_models_name(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a", "openai/gpt-4o"), on(1, "b"))
    bench.ingest()
    bench.settings = {"models": {"gpt-4o": {"aliases": ["openai/gpt-4o"]}}}
    assert bench.ingest() == ([key(1)], [key(1, "openai/gpt-4o")])
    assert bench.ids() == {key(1): ["a", "b"]}


def test_a_file_of_many_partitions_is_parsed_once(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []
    real = traces.read_traces

    def counted(file: Any, *args: Any, **kwargs: Any) -> Any:
        parsed.append(file.key)
        return real(file, *args, **kwargs)

    monkeypatch.setattr(sources, "read_traces", counted)
    bench.put("traces/a.json", *(on(d, f"{d}{m}", m) for d in range(1, 29) for m in "xyz"))
    bench.put("traces/b.json", *(on(d, f"b{d}", "x") for d in range(1, 29)))
    build, _ = bench.ingest()
    assert len(build) == 28 * 3
    assert sorted(parsed) == ["a.json", "b.json"]
    assert sum(map(len, bench.ids().values())) == 28 * 4


def test_only_the_partitions_that_are_wanted_are_built(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), on(2, "b"))
    inventory = take_inventory(bench.workspace)
    footers, problems, _ = build_partitions(bench.workspace, inventory, [key(2)])
    assert (list(footers), problems) == ([key(2)], [])
    assert bench.stale() == ([key(1)], [])


def test_a_wanted_partition_that_no_file_has_traces_for_is_removed(bench: Bench) -> None:
    path = bench.put("traces/a.json", on(1, "a"))
    bench.ingest()
    path.unlink()
    inventory = take_inventory(bench.workspace, prune=True)
    assert build_partitions(bench.workspace, inventory, [key(1)]) == ({}, [], 0)
    assert bench.footers() == {}
    assert not remove_partition(bench.workspace, key(1))


def test_a_partition_lost_from_the_store_is_built_again(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), on(2, "b"))
    bench.ingest()
    assert remove_partition(bench.workspace, key(1))
    assert bench.ingest() == ([key(1)], [])
    assert bench.ids() == {key(1): ["a"], key(2): ["b"]}


def test_a_file_that_changes_meanwhile_leaves_its_partitions(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), on(2, "b"))
    bench.put("traces/b.json", on(3, "c"))
    bench.ingest()
    bench.settings = {"task": {"from": "session"}}  # everything is stale
    take_inventory(bench.workspace)
    inventory = take_inventory(bench.workspace)  # nothing is kept in memory
    build, _ = stale_partitions(bench.workspace, inventory)
    assert build == [key(1), key(2), key(3)]
    bench.put("traces/a.json", on(1, "new"))
    before = bench.footers()
    footers, (problem,), _ = build_partitions(bench.workspace, inventory, build)
    assert "changed while it was read; run again" in str(problem)
    assert list(footers) == [key(3)]
    assert {k: bench.footers()[k] for k in (key(1), key(2))} == {
        k: before[k] for k in (key(1), key(2))
    }
    assert bench.ingest() == ([key(1)], [key(2)])
    assert bench.ids() == {key(1): ["new"], key(3): ["c"]}


def test_bad_files_and_records_cost_nothing_else(bench: Bench) -> None:
    bench.put("traces/a.json", on(1, "a"), "oops", on(1, "b", model=None), on(1, "c", tags=5))
    (bench.root / "traces/README.md").write_text("# Notes\n")
    (bench.root / "traces/b.json").write_text(
        json.dumps(tau2(simulation(CONVERSATION), simulation(5, id="bad")))
    )
    bench.ingest()
    assert bench.ids() == {key(1): ["a", "bad", "c", "sim-1"]}
    assert bench.footers()[key(1)].problems == 2
    entries = take_inventory(bench.workspace).states["s"].entries
    assert len(entries["a.json"].unplaced) == 2
    assert entries["README.md"].status == "unreadable"


# Accounting.


def counted(bench: Bench) -> Inventory:
    bench.put("traces/a.json", on(1, "a"), on(1, "b"), on(2, "c"))
    bench.put("traces/b.json", on(1, "a"), on(1, "d"), on(1, "b", prompt="another"))
    bench.ingest()
    inventory = take_inventory(bench.workspace)
    assert shortfalls(bench.footers()) == []
    return inventory


@pytest.mark.parametrize("change", [-1, 1, 100])
def test_accounting_finds_a_trace_that_the_index_has_and_the_store_has_not(
    bench: Bench, change: int
) -> None:
    inventory = counted(bench)
    entries = inventory.states["s"].entries
    first = entries["a.json"].partitions[0]
    more = msgspec.structs.replace(first, traces=first.traces + change)
    entries["a.json"] = msgspec.structs.replace(
        entries["a.json"], partitions=(more, *entries["a.json"].partitions[1:])
    )
    # The counts differ though the bytes do not: it is built again, and still does not add up.
    footers, problems, written = build_partitions(bench.workspace, inventory, [key(1), key(2)])
    assert (problems, written) == ([], 1)
    assert shortfalls(footers) == [
        f"2026-03-01 gpt-4o: {5 + change} traces in the files, 4 stored and 1 duplicates reported"
    ]


@pytest.mark.parametrize(
    ("lost", "fault"),
    [
        ({"traces": 3}, "5 traces in the files, 3 stored and 1 duplicates reported"),
        ({"duplicates": []}, "5 traces in the files, 4 stored and 0 duplicates reported"),
    ],
)
def test_accounting_finds_a_trace_that_was_not_stored(
    bench: Bench, lost: dict[str, Any], fault: str
) -> None:
    counted(bench)
    footers = bench.footers()
    footers[key(1)] = msgspec.structs.replace(footers[key(1)], **lost)
    assert shortfalls(footers) == [f"2026-03-01 gpt-4o: {fault}"]


def test_accounting_finds_what_a_store_lost_of_a_vanished_file(bench: Bench) -> None:
    """Nobody can bring it back, so somebody must be told."""
    bench.put("traces/a.json", on(1, "a"))
    bench.put("traces/b.json", on(1, "b"))
    bench.ingest()
    (bench.root / "traces/a.json").unlink()
    remove_partition(bench.workspace, key(1))
    workspace = bench.workspace
    inventory = take_inventory(workspace)
    footers, _, _ = build_partitions(workspace, inventory, [key(1)])
    assert shortfalls(footers) == [
        "2026-03-01 gpt-4o: 2 traces in the files, 1 stored and 0 duplicates reported"
    ]


def test_what_is_up_to_date_is_not_built_again(bench: Bench) -> None:
    inventory = counted(bench)
    footers, problems, written = build_partitions(bench.workspace, inventory, [key(1), key(2)])
    assert (sorted(footers), problems, written) == ([key(1), key(2)], [], 0)
