"""The store: atomic replacement, compare-and-swap, and what survives a killed process."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from upath import UPath

from benchmark_assets.adapters.store import (
    Store,
    contract_path,
    run_path,
    snapshot_path,
    source_path,
)
from benchmark_assets.model.problem import InputError


@pytest.fixture(params=["folder", "file url", "memory url"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    if request.param == "folder":
        yield Store(str(tmp_path / "store"))
    elif request.param == "file url":
        yield Store(f"file://{tmp_path}/store")
    else:
        store = Store(f"memory://{tmp_path.name}/store")
        yield store
        if store.root.exists():
            store.root.fs.rm(store.root.path, recursive=True)


def test_a_file_is_written_read_listed_and_removed(store: Store) -> None:
    assert store.read("runs/a.parquet") is None
    assert not store.exists("runs/a.parquet")
    assert store.list("runs", ".parquet") == []
    assert store.write("runs/a.parquet", b"one")
    assert store.read("runs/a.parquet") == b"one"
    assert store.exists("runs/a.parquet")
    assert store.list("runs", ".parquet") == ["runs/a.parquet"]
    assert store.path("runs/a.parquet").read_bytes() == b"one"
    assert store.remove("runs/a.parquet")
    assert store.read("runs/a.parquet") is None
    assert store.list("runs", ".parquet") == []
    assert not store.remove("runs/a.parquet")


def test_only_what_differs_is_written(store: Store) -> None:
    assert store.write("a.json", b"one")
    assert not store.write("a.json", b"one")
    assert store.write("a.json", b"two")
    assert store.read("a.json") == b"two"


def test_an_update_sees_the_present_bytes_and_may_leave_them(store: Store) -> None:
    seen: list[bytes | None] = []

    def update(before: bytes | None) -> bytes | None:
        seen.append(before)
        return b"first" if before is None else None

    assert store.replace("a.json", update)
    assert not store.replace("a.json", update)
    assert (seen, store.read("a.json")) == ([None, b"first"], b"first")


def test_an_update_that_raises_changes_nothing(store: Store) -> None:
    store.write("a.json", b"one")

    def update(before: bytes | None) -> bytes | None:
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        store.replace("a.json", update)
    assert store.read("a.json") == b"one"
    assert store.write("a.json", b"two")  # the lock was given back


def test_lists_are_recursive_sorted_and_by_suffix(store: Store) -> None:
    names = ["runs/b/x.parquet", "runs/a/y.parquet", "runs/z.parquet", "runs/a/note.json"]
    for name in [*names, "other/x.parquet"]:
        store.write(name, b"x")
    assert store.list("runs", ".parquet") == [
        "runs/a/y.parquet",
        "runs/b/x.parquet",
        "runs/z.parquet",
    ]
    assert store.list("runs/a", ".json") == ["runs/a/note.json"]


@pytest.mark.parametrize("model", ["..", "a/b", "a|b", ".x", "模型", "x" * 500, "a=b", "%2E."])
def test_awkward_names_are_files_of_their_own(store: Store, model: str) -> None:
    paths = [
        snapshot_path("2026-03-01", model),
        run_path(model, model, "2026-03"),
        contract_path(model),
        source_path(model),
    ]
    for path in paths:
        assert store.write(path, path.encode())
    assert [store.read(path) for path in paths] == [path.encode() for path in paths]
    assert store.list("snapshots", ".parquet") == paths[:1]
    assert store.list("runs", ".parquet") == paths[1:2]


def test_unchanged_bytes_leave_the_file_untouched(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.write("a.json", b"one")
    os.utime(tmp_path / "a.json", ns=(1, 1))
    before = (tmp_path / "a.json").stat()
    assert not store.write("a.json", b"one")
    after = (tmp_path / "a.json").stat()
    assert (after.st_mtime_ns, after.st_ino) == (1, before.st_ino)


def test_a_changed_file_is_a_new_one_that_others_can_read(tmp_path: Path) -> None:
    """By rename: whoever has the old file open keeps reading the old bytes."""
    store = Store(str(tmp_path))
    store.write("a.json", b"old")
    with (tmp_path / "a.json").open("rb") as reader:
        store.write("a.json", b"new")
        assert reader.read() == b"old"
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o644


def test_removing_the_last_file_removes_its_folder(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    store.write("runs/contract=a/x.parquet", b"x")
    store.write("runs/contract=a/y.parquet", b"y")
    store.remove("runs/contract=a/x.parquet")
    assert (tmp_path / "runs" / "contract=a").is_dir()
    store.remove("runs/contract=a/y.parquet")
    assert not (tmp_path / "runs" / "contract=a").exists()


@pytest.mark.parametrize("prefix", ["", "file://"])
def test_a_file_cannot_be_a_store(tmp_path: Path, prefix: str) -> None:
    (tmp_path / "store").write_text("x")
    url = f"{prefix}{tmp_path}/store"
    with pytest.raises(InputError) as caught:
        Store(url)
    assert str(caught.value) == f"store {url} is a file; name a folder"


def test_a_protocol_nobody_knows_is_refused() -> None:
    with pytest.raises(InputError, match=r"store nope://bucket: .*; install the fsspec package"):
        Store("nope://bucket")


def test_local_urls_are_folders(tmp_path: Path) -> None:
    Store(f"file://{tmp_path}/store").write("a.json", b"x")
    assert (tmp_path / "store" / "a.json").read_bytes() == b"x"
    assert Store(f"file://{tmp_path}/store").local == tmp_path / "store"
    assert isinstance(Store(str(tmp_path)).root, UPath)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.binary(max_size=4)), max_size=20))
@settings(
    max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_the_store_is_a_dictionary(tmp_path: Path, steps: list[tuple[str, bytes | None]]) -> None:
    """Any writes and removals leave what a dictionary would have, and no more files."""
    store = Store(str(tmp_path / os.urandom(8).hex()))
    model: dict[str, bytes] = {}
    for name, data in steps:
        path = f"runs/{name}/x.parquet"
        if data is None:
            assert store.remove(path) == (model.pop(path, None) is not None)
        else:
            assert store.write(path, data) == (model.get(path) != data)
            model[path] = data
    assert store.list("runs", ".parquet") == sorted(model)
    assert {path: store.read(path) for path in model} == model


# Other processes.

WRITER = """
import sys
from benchmark_assets.adapters.store import Store
store = Store(sys.argv[1])
number = int(sys.argv[2])
print("ready", flush=True)
while True:
    number += 1
    store.write("runs/a.parquet", b"%08d" % number * 50_000)
"""

COUNTER = """
import sys
from benchmark_assets.adapters.store import Store
store = Store(sys.argv[1])
for _ in range(200):
    store.replace("count.txt", lambda before: b"%d" % (int(before or 0) + 1))
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True
    )


def test_a_killed_writer_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    dice = random.Random(7)
    kills, interrupted, last = 0, 0, 0
    # Ten kills, and more if none of them hit a half-written file: those are the ones that matter.
    while kills < 10 or not interrupted:
        kills += 1
        assert kills < 60, "no kill hit a half-written file"
        writer = start(WRITER, str(tmp_path), str(last))
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        time.sleep(dice.uniform(0.01, 0.12))
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        data = store.read("runs/a.parquet")
        if data is not None:
            assert len(data) == 8 * 50_000
            assert data == data[:8] * 50_000
            assert int(data[:8]) >= last
            last = int(data[:8])
        # What a killed process leaves lying is nowhere that anything is listed, and is swept.
        assert {path.name for path in (tmp_path / "runs").glob("*")} <= {"a.parquet"}
        assert store.list("runs", "") in ([], ["runs/a.parquet"])
        interrupted += store.sweep()
        assert list((tmp_path / ".tmp").iterdir()) == []
    assert last > 0
    assert store.write("runs/a.parquet", b"x")  # no lock is held by the dead


def test_two_processes_lose_no_update(tmp_path: Path) -> None:
    counters = [start(COUNTER, str(tmp_path)) for _ in range(2)]
    for counter in counters:
        assert counter.wait(60) == 0
        assert counter.stdout is not None
        counter.stdout.close()
    assert Store(str(tmp_path)).read("count.txt") == b"400"


def test_sweeping_leaves_what_a_living_process_is_writing(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    folder = tmp_path / ".tmp"
    folder.mkdir()
    mine = folder / f"{socket.gethostname()}~{os.getpid()}~abc"
    elsewhere = folder / "another-host~1~abc"
    ended = subprocess.Popen(["true"])
    ended.wait()
    dead = folder / f"{socket.gethostname()}~{ended.pid}~abc"
    for path in (mine, elsewhere, dead):
        path.write_bytes(b"half")
    assert store.sweep() == 1
    assert {path.name for path in folder.iterdir()} == {mine.name, elsewhere.name}


SWEEPER = """
import sys
from benchmark_assets.adapters.store import Store
for _ in range(3000):
    Store(sys.argv[1]).sweep()
"""


def test_sweeping_beside_a_writer_disturbs_neither(tmp_path: Path) -> None:
    store = Store(str(tmp_path))
    sweeper = start(SWEEPER, str(tmp_path))
    number = 0
    while sweeper.poll() is None:
        number += 1
        store.write("runs/a.parquet", b"%d" % number)
    assert sweeper.returncode == 0
    assert sweeper.stdout is not None
    sweeper.stdout.close()
    assert number > 10
    assert store.read("runs/a.parquet") == b"%d" % number
