"""Month files: round trip, merging by date, bytes that depend on nothing else, reading."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from itertools import pairwise
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.parquet import read_table, to_parquet
from benchmark_assets.adapters.run_files import (
    SCHEMA,
    Evaluated,
    MonthKeys,
    list_run_files,
    read_month,
    read_month_keys,
    to_table,
    update_month,
)
from benchmark_assets.adapters.run_reader import LEADERBOARD_COLUMNS, read_runs
from benchmark_assets.adapters.store import Store, run_path
from benchmark_assets.model.verdict import Check, PluginResult, RunRow, Where

CONTRACT, MODEL, MONTH = "refund/basic", "openai/gpt-4o", "2026-03"
PATH = run_path(CONTRACT, MODEL, MONTH)

HOSTILE = [
    "openai/gpt-4o",
    "a|b",
    "..",
    ".",
    "...",
    "model=x",
    "contract=a/model=b",
    "*",
    "[ab]?",
    "100%",
    "%2F",
    "a b",
    " ",
    "Ünïcødé 模型 🤖",
    "'; DROP TABLE runs; --",
    '"quoted"',
    "back\\slash",
    "new\nline",
    "x" * 400,
    "~",
    "con",
    ".hidden",
    "-rf",
]


def row(date: str = "2026-03-01", trace_id: str = "t", **fields: Any) -> RunRow:
    values: dict[str, Any] = {
        "date": date,
        "trace_id": trace_id,
        "model": MODEL,
        "contract": CONTRACT,
        "contract_version": "1.10",
        "contract_name": "Refund",
        "workflow": "refund",
        "group": "refund",
        "task": "task",
        "trial": 0,
        "outcome": "resolved",
        "score": None,
        "reason": None,
        "input_tokens": None,
        "output_tokens": None,
        "cache_read_tokens": None,
        "cache_write_tokens": None,
        "reasoning_tokens": None,
        "cost_usd": None,
        "cost_estimated": False,
        "duration_ms": None,
        "started_at": None,
        "user_id": None,
        "session_id": None,
        "agents": (),
        "tool_calls": 0,
        "file": "f.json",
        "sha256": "0" * 64,
        "record": None,
        "contract_sha256": "1" * 64,
        "engine": "1",
        "plugins": (),
    }
    return RunRow(**{**values, **fields})


FULL = row(
    task="airline/7",
    trial=3,
    outcome="unresolved",
    score=0.5,
    reason="trajectory: no refund",
    input_tokens=0,
    output_tokens=2**40,
    cache_read_tokens=1,
    cache_write_tokens=2,
    reasoning_tokens=3,
    cost_usd=0.1,
    cost_estimated=True,
    duration_ms=12_345,
    started_at=datetime(2026, 3, 1, 23, 59, 59, 999_999, tzinfo=UTC),
    user_id="u",
    session_id="s",
    agents=("planner", "worker"),
    tool_calls=4,
    file="a/ö.json",
    record="simulations[3]",
    plugins=(
        PluginResult(
            plugin="trajectory",
            checks=(
                Check(name="path", outcome="passed", where=Where(span_id="x", call=0)),
                Check(
                    name="calls[0]",
                    outcome="failed",
                    expected="refund_payment",
                    observed="none",
                    reason="no refund",
                    where=Where(span_id="y"),
                ),
            ),
        ),
        PluginResult(plugin="final_output", error="KeyError: 'x'"),
        PluginResult(plugin="info", checks=(Check(name="note", outcome="info"),)),
    ),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def commit(store: Store, dates: Mapping[str, Evaluated | None], **cell: str) -> bool:
    """Update a month with dates that are all current."""
    return update_month(
        store,
        cell.get("contract", CONTRACT),
        cell.get("model", MODEL),
        cell.get("month", MONTH),
        dates,
        lambda date: None if (item := dates[date]) is None else item.key,
    )


def evaluated(key: str, *rows: RunRow) -> Evaluated:
    return Evaluated(key, rows)


def stored(store: Store, path: str = PATH) -> list[dict[str, Any]]:
    data = store.read(path)
    assert data is not None
    rows: list[dict[str, Any]] = read_table(data, SCHEMA).to_pylist()
    return rows


def keys(store: Store, path: str = PATH) -> dict[str, str]:
    month = read_month_keys(store, path)
    assert month is not None
    return month.keys


def in_order(dates: Iterable[str]) -> dict[str, str]:
    return {date: f"key of {date}" for date in dates}


def test_the_columns_are_those_of_a_row_with_its_checks() -> None:
    assert SCHEMA.names == [*RunRow.__struct_fields__, "checks"]


def test_a_full_row_comes_back_as_it_was(store: Store) -> None:
    assert commit(store, {"2026-03-01": evaluated("k", FULL)})
    (found,) = stored(store)
    for name in RunRow.__struct_fields__:
        if name not in ("plugins", "agents"):
            assert found[name] == getattr(FULL, name), name
    assert found["agents"] == ["planner", "worker"]
    assert found["plugins"] == [
        {"plugin": "trajectory", "passed": False, "score": 0.5, "error": None},
        {"plugin": "final_output", "passed": None, "score": None, "error": "KeyError: 'x'"},
        {"plugin": "info", "passed": None, "score": None, "error": None},
    ]
    nothing = dict.fromkeys(("expected", "observed", "reason", "span_id", "call"))
    assert found["checks"] == [
        {
            **nothing,
            "plugin": "trajectory",
            "name": "path",
            "outcome": "passed",
            "span_id": "x",
            "call": 0,
        },
        {
            **nothing,
            "plugin": "trajectory",
            "name": "calls[0]",
            "outcome": "failed",
            "expected": "refund_payment",
            "observed": "none",
            "reason": "no refund",
            "span_id": "y",
        },
        {**nothing, "plugin": "info", "name": "note", "outcome": "info"},
    ]


def test_unknown_comes_back_as_unknown(store: Store) -> None:
    commit(store, {"2026-03-01": evaluated("k", row(task=None))})
    (found,) = stored(store)
    unknown = {name for name, value in found.items() if value is None}
    assert unknown == {field.name for field in SCHEMA if field.nullable}


def test_rows_are_sorted_by_date_task_trial_and_trace(store: Store) -> None:
    wanted = [
        ("2026-03-01", None, 0, "a", None),
        ("2026-03-01", None, 0, "b", None),
        ("2026-03-01", "10", 0, "a", None),
        ("2026-03-01", "9", 0, "b", None),
        ("2026-03-01", "9", 1, "a", "line 1"),
        ("2026-03-01", "9", 1, "a", "line 2"),
        ("2026-03-01", "9", 10, "a", None),
        ("2026-03-02", None, 0, "a", None),
    ]
    rows = [
        row(date, trace_id, task=task, trial=trial, record=record)
        for date, task, trial, trace_id, record in wanted
    ]
    by_date = {
        date: evaluated("k", *(r for r in reversed(rows) if r.date == date))
        for date in ("2026-03-02", "2026-03-01")
    }
    commit(store, by_date)
    names = ("date", "task", "trial", "trace_id", "record")
    assert [tuple(found[name] for name in names) for found in stored(store)] == wanted


def test_the_footer_says_what_was_looked_at(store: Store) -> None:
    commit(store, {"2026-03-02": evaluated("k2"), "2026-03-01": evaluated("k1", row())})
    expected = {"2026-03-01": "k1", "2026-03-02": "k2"}
    assert read_month_keys(store, PATH) == MonthKeys(CONTRACT, MODEL, MONTH, expected, 1)
    assert [found["date"] for found in stored(store)] == ["2026-03-01"]


def test_a_month_in_which_nothing_matched_is_a_file_without_rows(store: Store) -> None:
    commit(store, {"2026-03-01": evaluated("k")})
    assert (keys(store), stored(store)) == ({"2026-03-01": "k"}, [])
    assert len(read_runs(store, [PATH])) == 0


def test_no_file_has_no_keys(store: Store) -> None:
    assert read_month_keys(store, PATH) is None
    assert list_run_files(store) == []


def test_dates_are_merged(store: Store) -> None:
    commit(store, {d: evaluated("old", row(d)) for d in ("2026-03-01", "2026-03-02")})
    changed = commit(
        store,
        {
            "2026-03-02": evaluated("new", row("2026-03-02", "x"), row("2026-03-02", "y")),
            "2026-03-03": evaluated("new", row("2026-03-03")),
        },
    )
    assert changed
    assert keys(store) == {"2026-03-01": "old", "2026-03-02": "new", "2026-03-03": "new"}
    assert [(r["date"], r["trace_id"]) for r in stored(store)] == [
        ("2026-03-01", "t"),
        ("2026-03-02", "x"),
        ("2026-03-02", "y"),
        ("2026-03-03", "t"),
    ]


def test_a_date_on_which_nothing_matches_any_more_loses_its_rows(store: Store) -> None:
    commit(store, {d: evaluated("old", row(d)) for d in ("2026-03-01", "2026-03-02")})
    commit(store, {"2026-03-01": evaluated("new")})
    assert keys(store) == {"2026-03-01": "new", "2026-03-02": "old"}
    assert [r["date"] for r in stored(store)] == ["2026-03-02"]


def test_a_dropped_date_loses_key_and_rows(store: Store) -> None:
    commit(store, {d: evaluated("k", row(d)) for d in ("2026-03-01", "2026-03-02")})
    assert commit(store, {"2026-03-01": None})
    assert keys(store) == {"2026-03-02": "k"}
    assert [r["date"] for r in stored(store)] == ["2026-03-02"]


def test_a_file_without_any_date_is_removed(store: Store, tmp_path: Path) -> None:
    commit(store, {d: evaluated("k", row(d)) for d in ("2026-03-01", "2026-03-02")})
    assert commit(store, {"2026-03-01": None, "2026-03-02": None})
    assert not (tmp_path / "store" / PATH).exists()
    assert list_run_files(store) == []


def test_dropping_what_is_not_there_makes_no_file(store: Store) -> None:
    assert not commit(store, {"2026-03-01": None})
    assert list_run_files(store) == []


@pytest.mark.parametrize("current", ["newer", None])
@pytest.mark.parametrize("before", [True, False])
def test_a_loser_drops_its_rows(store: Store, current: str | None, before: bool) -> None:
    """What was evaluated from inputs that are no longer the current ones is not committed."""
    if before:
        commit(store, {"2026-03-01": evaluated("winner", row(trace_id="winner"))})
    late = {"2026-03-01": evaluated("older", row(trace_id="loser"))}
    assert not update_month(store, CONTRACT, MODEL, MONTH, late, lambda _: current)
    if before:
        assert keys(store) == {"2026-03-01": "winner"}
        assert [r["trace_id"] for r in stored(store)] == ["winner"]
    else:
        assert list_run_files(store) == []


def test_a_loser_of_one_date_keeps_the_others(store: Store) -> None:
    dates = {d: evaluated(f"key of {d}", row(d)) for d in ("2026-03-01", "2026-03-02")}
    current = {"2026-03-01": "another", "2026-03-02": "key of 2026-03-02"}
    assert update_month(store, CONTRACT, MODEL, MONTH, dates, current.get)
    assert keys(store) == {"2026-03-02": "key of 2026-03-02"}
    assert [r["date"] for r in stored(store)] == ["2026-03-02"]


def test_a_date_that_is_back_is_not_dropped(store: Store) -> None:
    """One process saw the date go; meanwhile another has it again."""
    commit(store, {"2026-03-01": evaluated("k", row())})
    drop: dict[str, Evaluated | None] = {"2026-03-01": None}
    assert not update_month(store, CONTRACT, MODEL, MONTH, drop, lambda _: "k")
    assert keys(store) == {"2026-03-01": "k"}


def test_what_is_there_is_not_written_again(store: Store, tmp_path: Path) -> None:
    dates: dict[str, Evaluated | None] = {
        "2026-03-01": evaluated("k", row()),
        "2026-03-02": evaluated("k"),
    }
    assert commit(store, dates)
    before = (tmp_path / "store" / PATH).stat()
    first = {"2026-03-01": dates["2026-03-01"]}
    assert not commit(store, dates)
    assert not commit(store, first)
    assert not commit(store, {"2026-03-09": None})
    assert not commit(store, {})
    after = (tmp_path / "store" / PATH).stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


DATES = [f"2026-03-{day:02d}" for day in range(1, 8)]


def rows_of(date: str) -> Evaluated:
    """A few rows, more or fewer or none by date; some with all columns, some with few."""
    day = int(date[-2:])
    rows = [
        row(date, f"{date}.{n}", task=None if n % 3 == 0 else str(n), cost_usd=n / 10)
        for n in range(day % 4)
    ]
    if day % 2:
        full = {name: getattr(FULL, name) for name in RunRow.__struct_fields__}
        rows.append(RunRow(**{**full, "date": date, "trace_id": f"{date}.full"}))
    return evaluated(f"key of {date}", *rows)


@settings(max_examples=40, deadline=None)
@given(st.permutations(DATES), st.sets(st.integers(1, len(DATES) - 1)))
def test_bytes_do_not_depend_on_who_committed_what_when(
    tmp_path_factory: pytest.TempPathFactory, order: list[str], cuts: set[int]
) -> None:
    """Commits of any dates in any order give the bytes of one commit of all."""
    base = tmp_path_factory.mktemp("orders")
    at_once, in_parts = Store(str(base / "once")), Store(str(base / "parts"))
    commit(at_once, {date: rows_of(date) for date in DATES})
    edges = [0, *sorted(cuts), len(order)]
    for first, last in pairwise(edges):
        commit(in_parts, {date: rows_of(date) for date in order[first:last]})
    assert in_parts.read(PATH) == at_once.read(PATH)


@pytest.mark.parametrize("detour", ["replaced", "dropped", "empty"])
def test_bytes_keep_no_history(store: Store, detour: str) -> None:
    commit(store, {date: rows_of(date) for date in DATES})
    wanted = store.read(PATH)
    others: dict[str, Evaluated | None] = {
        "replaced": evaluated("other", row(DATES[2], "other", user_id="x")),
        "dropped": None,
        "empty": evaluated("nothing matched"),
    }
    commit(store, {DATES[2]: others[detour]})
    assert store.read(PATH) != wanted
    commit(store, {DATES[2]: rows_of(DATES[2])})
    assert store.read(PATH) == wanted


def test_there_is_no_clock_in_the_bytes() -> None:
    table = to_table([FULL])
    assert to_parquet(table, {"a": b"1", "b": b"2"}) == to_parquet(table, {"b": b"2", "a": b"1"})


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names(store: Store, tmp_path: Path, name: str) -> None:
    """Any name is a file below `runs/`, and columns say what the rows say, not the path."""
    cell = {"contract": f"c {name}", "model": name}
    commit(store, {"2026-03-01": evaluated("k", row(**cell))}, **cell)
    (path,) = list_run_files(store)
    file = (tmp_path / "store" / path).resolve()
    assert file.is_relative_to((tmp_path / "store" / "runs").resolve())
    assert len(Path(path).parts) == 4
    month = read_month_keys(store, path)
    assert month is not None
    assert (month.contract, month.model) == (f"c {name}", name)
    frame = read_runs(store, [path])
    assert frame[["contract", "model"]].to_numpy().tolist() == [[f"c {name}", name]]


def test_hostile_names_do_not_collide(store: Store) -> None:
    for name in HOSTILE:
        commit(store, {"2026-03-01": evaluated("k", row(model=name))}, model=name)
    paths = list_run_files(store)
    assert len(paths) == len(HOSTILE)
    frame = read_runs(store, paths)
    assert sorted(frame["model"]) == sorted(HOSTILE)


@pytest.mark.parametrize("folder", ["[ab]", "*", "?", "a b", "100%", "model=x", "ü", "{a,b}", "'"])
def test_the_store_may_lie_anywhere(tmp_path: Path, folder: str) -> None:
    """DuckDB takes names for patterns: `[ab]` must not read the store in `a` beside it."""
    for name in (folder, "a", "b"):
        store = Store(str(tmp_path / name))
        commit(store, {"2026-03-01": evaluated("k", row(trace_id=name))})
    assert read_runs(Store(str(tmp_path / folder)), [PATH])["trace_id"].tolist() == [folder]


def test_reading_is_sorted_by_cell_and_date(store: Store) -> None:
    places = [
        (contract, model, date)
        for contract in ("b", "a", "a/c")
        for model in ("y", "x")
        for date in ("2026-04-01", "2026-03-02")
    ]
    for contract, model, date in places:
        commit(
            store,
            {date: evaluated("k", row(date, contract=contract, model=model))},
            contract=contract,
            model=model,
            month=date[:7],
        )
    paths = list_run_files(store)
    assert len(paths) == 12
    for asked in (paths, paths[::-1]):
        frame = read_runs(store, asked, ("contract", "model", "date"))
        assert [tuple(r) for r in frame.itertuples(index=False)] == sorted(places)


def test_reading_gives_types(store: Store) -> None:
    """Unknown is missing, 0 is 0, and a count of 2**40 is exact."""
    commit(store, {"2026-03-01": evaluated("k", FULL, row(trace_id="bare", task=None))})
    frame = read_runs(store, [PATH])
    assert list(frame.columns) == list(LEADERBOARD_COLUMNS)
    bare, full = frame.iloc[0], frame.iloc[1]
    assert (bare["trace_id"], full["trace_id"]) == ("bare", "t")
    unknown = {name for name in LEADERBOARD_COLUMNS if frame[name].isna().iloc[0]}
    assert unknown == {name for name in LEADERBOARD_COLUMNS if SCHEMA.field(name).nullable}
    assert (full["input_tokens"], full["output_tokens"]) == (0, 2**40)
    assert full["cost_usd"] == 0.1
    assert frame["cost_estimated"].dtype == np.dtype(bool)
    assert frame["trial"].dtype.kind == "i"
    assert frame["cost_usd"].dtype.kind == "f"


def test_reading_nothing_gives_the_columns(store: Store) -> None:
    frame = read_runs(store, [])
    assert (len(frame), list(frame.columns)) == (0, list(LEADERBOARD_COLUMNS))
    few = read_runs(store, [], ("model", "trial"))
    assert (len(few), list(few.columns)) == (0, ["model", "trial"])


def test_other_tools_read_the_file_without_help(store: Store, tmp_path: Path) -> None:
    commit(store, {"2026-03-01": evaluated("k", FULL)})
    table = pq.ParquetFile(tmp_path / "store" / PATH).read()
    assert table.schema.names == SCHEMA.names
    assert table.schema.equals(SCHEMA)


ROUNDS = 20


def months() -> list[str]:
    return [f"{2020 + n // 12}-{n % 12 + 1:02d}" for n in range(ROUNDS)]


def work(url: str, days: list[int], barrier: Barrier) -> None:
    """Commit some days of every month, one at a time; all workers start a month together."""
    store = Store(url)
    for month in months():
        barrier.wait(timeout=60)
        for day in days:
            date = f"{month}-{day:02d}"
            commit(store, {date: evaluated(f"key of {date}", row(date, date))}, month=month)


def in_two_processes(target: Any, *args: tuple[Any, ...]) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(len(args))
    workers = [context.Process(target=target, args=(*own, barrier)) for own in args]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
    assert [worker.exitcode for worker in workers] == [0, 0]


def test_two_processes_lose_nothing(tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    in_two_processes(work, (url, [1, 3, 5, 7]), (url, [2, 4, 6, 8]))
    store, alone = Store(url), Store(str(tmp_path / "alone"))
    for month in months():
        dates = [f"{month}-{day:02d}" for day in range(1, 9)]
        path = run_path(CONTRACT, MODEL, month)
        assert keys(store, path) == in_order(dates)
        assert [r["trace_id"] for r in stored(store, path)] == dates
        commit(alone, {d: evaluated(f"key of {d}", row(d, d)) for d in dates}, month=month)
        assert store.read(path) == alone.read(path)
    left = [path for path in (tmp_path / "store").rglob("*.tmp") if path.is_file()]
    assert left == []


def come_and_go(url: str, day: int, rounds: int, barrier: Barrier) -> None:
    """Add and drop one date over and over: the file comes and goes under the other's hands."""
    store = Store(url)
    date = f"{MONTH}-{day:02d}"
    barrier.wait(timeout=60)
    for _ in range(rounds):
        assert commit(store, {date: evaluated("k", row(date, date))})
        assert keys(store)[date] == "k", "what was committed is gone"
        assert commit(store, {date: None})
    commit(store, {date: evaluated("k", row(date, date))})


def test_removing_an_emptied_file_takes_nobodys_rows(tmp_path: Path) -> None:
    url = str(tmp_path / "store")
    in_two_processes(come_and_go, (url, 1, 100), (url, 2, 100))
    assert keys(Store(url)) == {"2026-03-01": "k", "2026-03-02": "k"}


def test_what_was_written_is_read_back_whole(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    checks = (
        Check(name="a", outcome="failed", reason="no", where=Where(span_id="s", call=3)),
        Check(name="b", outcome="passed", expected="x", observed="x"),
    )
    plugins = (
        PluginResult(plugin="p", checks=checks),
        PluginResult(plugin="q", error="raised"),
    )
    rows = [row(date, plugins=plugins, agents=("x", "y")) for date in ("2026-01-01", "2026-01-02")]
    dates = {item.date: Evaluated(item.date, (item,)) for item in rows}
    update_month(store, "c", "m", "2026-01", dates, lambda date: date)
    path = run_path("c", "m", "2026-01")
    assert read_month(store, path, ["2026-01-01", "2026-01-02"]) == rows
    assert read_month(store, path, ["2026-01-02"]) == rows[1:]
    assert read_month(store, path, []) == []
    assert read_month(store, "runs/none.parquet", ["2026-01-01"]) == []
