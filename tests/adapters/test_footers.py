"""Footers are read once, remembered over processes, and never believed of another file."""

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmark_assets.adapters.parquet import to_parquet
from benchmark_assets.adapters.run_files import list_months
from benchmark_assets.adapters.snapshot_files import list_partitions
from benchmark_assets.adapters.store import Store
from benchmark_assets.model.problem import InputError

TABLE = pa.table({"x": [1, 2, 3]})


def put(store: Store, number: int, text: str) -> str:
    path = f"runs/a/{number}.parquet"
    store.write(path, to_parquet(TABLE, {"text": text.encode()}))
    return path


def texts(store: Store) -> list[str]:
    return [footer["text"].decode() for footer in store.footers.below("runs").values()]


@pytest.fixture
def store(tmp_path: Path, cache: Path) -> Store:
    store = Store(str(tmp_path / "store"))
    for number in range(5):
        put(store, number, f"text {number}")
    return store


def test_each_is_opened_once(store: Store) -> None:
    assert texts(store) == [f"text {number}" for number in range(5)]
    assert texts(store) == [f"text {number}" for number in range(5)]
    assert store.footers.opened == 5


def test_they_are_remembered_by_the_next_process(store: Store) -> None:
    texts(store)
    again = Store(store.url)
    assert texts(again) == [f"text {number}" for number in range(5)]
    assert again.footers.opened == 0


def test_only_what_was_replaced_is_opened_again(store: Store) -> None:
    texts(store)
    again = Store(store.url)
    put(again, 3, "text X")  # the same size
    assert texts(again)[3] == "text X"
    assert again.footers.opened == 1


def test_what_is_gone_is_forgotten(store: Store) -> None:
    texts(store)
    store.remove("runs/a/2.parquet")
    assert texts(store) == ["text 0", "text 1", "text 3", "text 4"]
    assert store.footers.of("runs/a/2.parquet") is None


@pytest.mark.parametrize("data", [b"", b"not msgpack", b"\x92\x01\x80", b"\x92\x63\x80"])
def test_a_spoilt_copy_is_no_copy(store: Store, cache: Path, data: bytes) -> None:
    texts(store)
    (copy,) = cache.iterdir()
    copy.write_bytes(data)
    again = Store(store.url)
    assert len(texts(again)) == 5
    assert again.footers.opened == 5


@pytest.mark.parametrize("place", ["", "/dev/null/nowhere"])
def test_without_a_place_for_the_copy_it_is_only_slower(
    store: Store, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("BENCH_CACHE", place)
    again = Store(store.url)
    assert len(texts(again)) == 5
    assert again.footers.opened == 5


def test_the_copy_is_not_in_the_store(store: Store, cache: Path, tmp_path: Path) -> None:
    texts(store)
    assert len(list(cache.iterdir())) == 1
    assert {path.name for path in (tmp_path / "store").iterdir()} == {".locks", ".tmp", "runs"}


def test_a_file_that_is_no_parquet_is_named_with_a_cure(store: Store) -> None:
    path = Path(store.url) / "runs" / "a" / "3.parquet"
    os.truncate(path, 20)
    with pytest.raises(
        InputError, match=r"3\.parquet: is damaged: no readable Parquet file .*remove it"
    ):
        store.footers.below("runs")


@pytest.mark.parametrize("folder", ["snapshots", "runs"])
def test_a_file_of_another_version_is_named(tmp_path: Path, folder: str) -> None:
    store = Store(str(tmp_path))
    table = pa.table({"a": [1]}).replace_schema_metadata({"other": "1"})
    path = tmp_path / folder / "x.parquet"
    path.parent.mkdir()
    pq.write_table(table, path)
    listing = list_partitions if folder == "snapshots" else list_months
    with pytest.raises(InputError, match=r"x\.parquet: was written by another version: .*remove"):
        listing(store)
