"""Partitions of snapshots: what is kept, numbered and sorted, and what the footer says."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.snapshot_files import (
    Partition,
    SnapshotFooter,
    SourcedSnapshot,
    assemble,
    duplicates_in,
    list_partitions,
    read_partition_footer,
    read_snapshots,
    write_partition,
)
from benchmark_assets.adapters.store import Store, snapshot_path
from benchmark_assets.model.trace import Origin, ToolCall
from tests.adapters.samples import snapshot

DAY = "2026-03-01"
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def store(tmp_path: Any) -> Store:
    return Store(str(tmp_path / "store"))


def item(
    trace_id: str = "t1",
    file: str = "a.json",
    record: str | None = "[0]",
    source: str = "s",
    **fields: Any,
) -> SourcedSnapshot:
    origin = Origin(file=file, sha256="0" * 64, record=record, format="snapshot")
    return SourcedSnapshot(source, snapshot(trace_id, origin=origin, **fields))


def rows(partition: Partition) -> list[tuple[str, str | None, int | None]]:
    return [(i.snapshot.trace_id, i.snapshot.task, i.snapshot.trial) for i in partition.snapshots]


def write(store: Store, *items: SourcedSnapshot, **inputs: str) -> SnapshotFooter:
    return write_partition(store, DAY, "gpt-4o", assemble(items), inputs)


# The same id twice.


def test_the_same_trace_twice_is_kept_once_and_reported() -> None:
    found = assemble([item(file="b.json"), item(file="a.json"), item(file="a.json", record="[4]")])
    assert [i.snapshot.origin.file for i in found.snapshots] == ["a.json"]
    assert found.snapshots[0].snapshot.problem is None
    assert found.duplicates == (
        "t1: s/a.json: [4] repeats s/a.json: [0]",
        "t1: s/b.json: [0] repeats s/a.json: [0]",
    )


@pytest.mark.parametrize(
    "change",
    [
        {"final_answer": "other"},
        {"cost_usd": 0.0},
        {"trial": 1},
        {"tool_calls": (ToolCall(name="x"),)},
        {"started_at": NOON + timedelta(microseconds=1)},
        {"problem": "is bad"},
    ],
)
def test_one_id_with_different_content_is_an_error_row_that_names_both_places(
    change: dict[str, Any],
) -> None:
    found = assemble([item(file="b.json", record="[3]", **change), item(file="a.json")])
    assert found.duplicates == ()
    first, second = sorted(found.snapshots, key=lambda i: i.snapshot.origin.file)
    assert first.snapshot.problem is None
    assert second.snapshot.problem == (
        "trace id t1 in s/b.json: [3] is already used in s/a.json: [0]"
    )


def test_of_three_with_one_id_each_is_accounted_for() -> None:
    found = assemble([item(), item(file="b.json", prompt="x"), item(file="c.json", prompt="x")])
    assert len(found.snapshots) + len(found.duplicates) == 3
    assert [i.snapshot.problem is None for i in found.snapshots].count(True) == 1


def test_two_sources_may_have_files_of_one_name() -> None:
    found = assemble([item(source="old"), item(source="new")])
    assert found.duplicates == ("t1: old/a.json: [0] repeats new/a.json: [0]",)


def test_a_file_of_normalised_snapshots_is_named_beside_what_they_came_from() -> None:
    held = SourcedSnapshot("s", item(file="raw.json").snapshot, "snapshots.jsonl")
    found = assemble([held, item(file="raw.json")])
    assert found.duplicates == (
        "t1: s/snapshots.jsonl (from raw.json): [0] repeats s/raw.json: [0]",
    )


@pytest.mark.parametrize(
    ("source", "file", "count"),
    [
        ("s", "b.json", 1),
        ("s", "c.jsonl", 1),
        ("s", "d.json", 1),
        ("s", "a.json", 0),
        ("t", "b.json", 0),
        ("s", "json", 0),
        ("s", "b", 0),
        ("s", "b.jso.", 0),
    ],
)
def test_duplicates_of_a_file_can_be_told(store: Store, source: str, file: str, count: int) -> None:
    held = SourcedSnapshot("s", item(file="raw.json").snapshot, "c.jsonl")
    footer = write(store, item(), item(file="b.json"), held, item(file="d.json", record=None))
    assert len(footer.duplicates) == 3
    assert len(duplicates_in(footer, source, file)) == count


# Trials.


@pytest.mark.parametrize(
    ("given_trials", "expected"),
    [
        ([0, 1, 2], [0, 1, 2]),
        ([5, 3, 9], [5, 3, 9]),
        ([0, 0, 0], [0, 1, 2]),
        ([None, None, None], [0, 1, 2]),
        ([7, 7, 0], [0, 1, 2]),
        ([7, None, 0], [0, 1, 2]),
        ([4], [4]),
        ([None], [0]),
    ],
)
def test_trials_are_the_sources_or_all_numbered_by_time(
    given_trials: list[int | None], expected: list[int]
) -> None:
    """Expected in order of start; what is given in reverse must come out the same."""
    found = [
        item(f"t{n}", record=f"[{n}]", trial=trial, started_at=NOON + timedelta(seconds=n))
        for n, trial in enumerate(given_trials)
    ]
    numbers = {i.snapshot.trace_id: i.snapshot.trial for i in assemble(found[::-1]).snapshots}
    assert [numbers[f"t{n}"] for n in range(len(expected))] == expected


def test_trials_at_one_time_are_numbered_by_id() -> None:
    found = assemble([item(name, record=f"[{n}]") for n, name in enumerate(["c", "a", "b"])])
    assert rows(found) == [("a", "task-1", 0), ("b", "task-1", 1), ("c", "task-1", 2)]


def test_tasks_are_numbered_apart() -> None:
    found = assemble(
        [item("a", task="x", trial=0), item("b", task="y", trial=0), item("c", task="y", trial=0)]
    )
    assert rows(found) == [("a", "x", 0), ("b", "y", 0), ("c", "y", 1)]


def test_traces_without_a_task_are_no_attempts_at_the_same_thing() -> None:
    found = assemble([item("a", task=None), item("b", task=None, trial=3)])
    assert rows(found) == [("a", None, 0), ("b", None, 3)]


def test_error_rows_count_as_attempts() -> None:
    found = assemble([item("a"), item("b", problem="is bad", record="[1]")])
    assert rows(found) == [("a", "task-1", 0), ("b", "task-1", 1)]


# Order.


def test_rows_are_sorted_by_task_trial_and_id() -> None:
    found = assemble(
        [
            item("d", task="y", trial=0),
            item("c", task="x", trial=2),
            item("b", task="x", trial=10),
            item("a", task=None),
        ]
    )
    assert rows(found) == [("a", None, 0), ("c", "x", 2), ("b", "x", 10), ("d", "y", 0)]


@pytest.mark.parametrize(
    "records",
    [["[2]", "[10]"], ["line 2", "line 10"], ["simulations[9]", "simulations[11]"], [None, "[1]"]],
)
def test_records_of_a_file_are_in_the_order_of_their_numbers(records: list[str | None]) -> None:
    """The first of two is the one that keeps its id."""
    found = assemble([item(record=r, prompt=str(r)) for r in reversed(records)])
    good = [i.snapshot for i in found.snapshots if i.snapshot.problem is None]
    assert [s.origin.record for s in good] == records[:1]


@pytest.mark.parametrize("record", ["²", "[²]", "٣", "9" * 5000, "", "no number", "1.5.7"])
def test_a_record_may_be_called_anything(store: Store, record: str) -> None:
    footer = write(store, item(record=record), item("t2"))
    assert footer.traces == 2


ITEMS = st.lists(
    st.builds(
        item,
        trace_id=st.sampled_from(["a", "b", "c"]),
        file=st.sampled_from(["x.json", "y.json"]),
        record=st.integers(0, 30).map("[{}]".format),
        source=st.sampled_from(["s", "t"]),
        task=st.sampled_from([None, "p", "q"]),
        trial=st.sampled_from([None, 0, 1]),
        prompt=st.sampled_from(["one", "two"]),
        started_at=st.sampled_from([NOON, NOON + timedelta(hours=1)]),
    ),
    max_size=12,
    unique_by=lambda i: (i.source, i.snapshot.origin.file, i.snapshot.origin.record),
)


@given(st.data(), ITEMS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_the_same_traces_give_the_same_bytes_and_none_is_lost(
    tmp_path: Any, data: st.DataObject, items: list[SourcedSnapshot]
) -> None:
    shuffled = data.draw(st.permutations(items))
    one, other = Store(str(tmp_path / "one")), Store(str(tmp_path / "other"))
    footer = write(one, *items, a="1", b="2")
    write_partition(other, DAY, "gpt-4o", assemble(shuffled), {"b": "2", "a": "1"})
    path = snapshot_path(DAY, "gpt-4o")
    assert one.read(path) == other.read(path)
    assert footer.traces + len(footer.duplicates) == len(items)
    # Within a task no two rows share a number.
    numbers = [
        (i.snapshot.task, i.snapshot.trial)
        for i in read_snapshots(one, DAY, "gpt-4o")
        if i.snapshot.task is not None
    ]
    assert len(set(numbers)) == len(numbers)


# Files.


def test_a_partition_is_read_back_as_it_was_written(store: Store) -> None:
    items = (
        item("a", trial=0, tool_calls=(ToolCall(name="x", arguments={"n": 10**30}),)),
        item("b", trial=1, source="t", metadata={"é": ["🤖", None, 0.1]}, problem="is bad"),
        SourcedSnapshot("s", item("c", trial=2).snapshot, "held.jsonl"),
    )
    write(store, *items)
    assert read_snapshots(store, DAY, "gpt-4o") == list(items)


def test_the_footer_is_read_back_and_says_what_is_inside(store: Store) -> None:
    written = write(
        store, item("a"), item("a", file="b.json"), item("b", problem="x"), z="2", a="1"
    )
    assert written == SnapshotFooter(
        date=DAY,
        model="gpt-4o",
        inputs={"a": "1", "z": "2"},
        content=written.content,
        duplicates=["a: s/b.json: [0] repeats s/a.json: [0]"],
        traces=2,
        problems=1,
        found=3,
    )
    assert read_partition_footer(store, snapshot_path(DAY, "gpt-4o")) == written
    assert list_partitions(store) == {(DAY, "gpt-4o"): written}


def test_partitions_are_listed_by_date_and_model(store: Store) -> None:
    for date, model in [("2026-03-02", "a"), ("2026-03-01", "b/c"), ("2026-03-01", "..")]:
        write_partition(store, date, model, assemble([item(model=model)]), {})
    assert list(list_partitions(store)) == [
        ("2026-03-01", ".."),
        ("2026-03-01", "b/c"),
        ("2026-03-02", "a"),
    ]


def test_what_is_not_there_is_empty(store: Store) -> None:
    assert read_snapshots(store, DAY, "gpt-4o") == []
    assert read_partition_footer(store, snapshot_path(DAY, "gpt-4o")) is None
    assert list_partitions(store) == {}


def test_an_empty_partition_has_a_footer(store: Store) -> None:
    footer = write(store, a="1")
    assert (footer.traces, footer.problems) == (0, 0)
    assert read_partition_footer(store, snapshot_path(DAY, "gpt-4o")) == footer


def test_the_content_hash_does_not_know_what_the_file_was_built_from(store: Store) -> None:
    one = write(store, item(), a="1")
    assert write(store, item(), b="2").content == one.content
    assert write(store, item(), item(file="b.json"), a="1").content == one.content


CHANGES: list[dict[str, Any]] = [
    {"trace_id": "t2"},
    {"file": "b.json"},
    {"record": "[1]"},
    {"task": "task-2"},
    {"task": None},
    {"trial": 1},
    {"prompt": ""},
    {"cost_usd": 0.0},
    {"duration_ms": 0},
    {"problem": "is bad"},
    {"metadata": {"a": 1}},
    {"tags": ("x",)},
    {"started_at": NOON + timedelta(microseconds=1)},
    {"tool_calls": (ToolCall(name="x"),)},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_the_content_hash_changes_with_any_field(store: Store, change: dict[str, Any]) -> None:
    before = write(store, item(trial=0))
    after = write(store, item(**{"trial": 0, **change}))
    assert after.content != before.content


def test_the_content_hash_changes_when_a_trace_comes_or_goes(store: Store) -> None:
    hashes = {
        write(store, *(item(f"t{n}", record=f"[{n}]", trial=n) for n in range(count))).content
        for count in range(4)
    }
    assert len(hashes) == 4


def test_key_order_of_metadata_is_not_content(store: Store) -> None:
    one = write(store, item(metadata={"a": 1, "b": {"c": 1, "d": 2}}))
    other = write(store, item(metadata={"b": {"d": 2, "c": 1}, "a": 1}))
    assert one == other


def test_writing_the_same_again_writes_nothing(store: Store, tmp_path: Any) -> None:
    write(store, item(), a="1")
    path = tmp_path / "store" / snapshot_path(DAY, "gpt-4o")
    before = path.stat()
    write(store, item(), a="1")
    assert path.stat() == before


def test_stored_rows_hold_columns_to_search_by(store: Store) -> None:
    import io

    import pyarrow.parquet as pq

    write(store, item("a", trial=4, problem="is bad"), item("b", task="z", record=None))
    data = store.read(snapshot_path(DAY, "gpt-4o"))
    assert data is not None
    table = pq.read_table(io.BytesIO(data)).drop(["snapshot"]).to_pylist()
    common = {"model": "gpt-4o", "workflow": "support", "started_at": NOON, "source": "s"}
    common |= {"source_file": "a.json", "file": "a.json", "sha256": "0" * 64}
    assert table == [
        {"trace_id": "a", "task": "task-1", "trial": 4, "problem": "is bad", "record": "[0]"}
        | {"given_trial": 4, "given_problem": "is bad"}
        | common,
        {"trace_id": "b", "task": "z", "trial": 0, "problem": None, "record": None}
        | {"given_trial": None, "given_problem": None}
        | common,
    ]


def test_what_was_assembled_can_be_assembled_again(store: Store) -> None:
    """Stored rows of files that are gone meet fresh ones: the numbering must not stick."""
    items = [
        item("a", trial=None),
        item("b", trial=3, record="[1]"),
        item("b", trial=3, record="[2]", prompt="other", problem="is bad"),
        item("c", trial=None, task=None, record="[3]"),
    ]
    write(store, *items)
    stored = read_snapshots(store, DAY, "gpt-4o")
    assert {i.snapshot.trial for i in stored} == {0, 1, 2}
    given = [i.as_given() for i in stored]
    assert sorted(given, key=lambda i: i.snapshot.origin.record or "") == items
    assert assemble(given) == assemble(items)


def test_snapshots_know_their_file() -> None:
    assert item(file="x.json").file == "x.json"
    assert msgspec.json.decode(msgspec.json.encode(item()), type=SourcedSnapshot) == item()
