"""A store on S3: the same results, and compare-and-swap between processes."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmark_assets.adapters.store import GONE, Store
from tests.adapters.object_store import s3_server
from tests.bench import bench, contents

pytestmark = [
    pytest.mark.services,
    # botocore and moto warn of themselves.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

COUNTER = """
import sys
from benchmark_assets.adapters.store import Store
store = Store(sys.argv[1])
for _ in range(40):
    store.replace("count.txt", lambda before: b"%d" % (int(before or 0) + 1))
"""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with s3_server() as address:
        yield address


def test_write_read_list_remove(server: str) -> None:
    store = Store("s3://bucket/basic")
    assert store.read("runs/a.parquet") is None
    assert store.write("runs/a.parquet", b"1")
    assert not store.write("runs/a.parquet", b"1")
    assert store.write("runs/a.parquet", b"2")
    assert store.read("runs/a.parquet") == b"2"
    assert store.list("runs", ".parquet") == ["runs/a.parquet"]
    assert store.replace("runs/a.parquet", lambda _: GONE)
    assert store.list("runs", ".parquet") == []


def test_a_put_over_what_was_not_read_is_done_again(server: str) -> None:
    store, other = Store("s3://bucket/race"), Store("s3://bucket/race")
    store.write("x", b"1")
    seen = []

    def late(before: bytes | None) -> bytes:
        seen.append(before)
        if len(seen) == 1:
            other.write("x", b"other")  # between the reading and the putting
        return (before or b"") + b"!"

    assert store.replace("x", late)
    assert seen == [b"1", b"other"]
    assert store.read("x") == b"other!"


def test_the_first_put_of_two_wins_and_the_second_sees_it(server: str) -> None:
    store, other = Store("s3://bucket/first"), Store("s3://bucket/first")

    def late(before: bytes | None) -> bytes:
        if before is None:
            other.write("x", b"other")
        return (before or b"") + b"!"

    assert store.replace("x", late)
    assert store.read("x") == b"other!"


def test_two_processes_lose_no_update(server: str) -> None:
    counters = [
        subprocess.Popen([sys.executable, "-c", COUNTER, "s3://bucket/count"]) for _ in range(2)
    ]
    assert [counter.wait(120) for counter in counters] == [0, 0]
    assert Store("s3://bucket/count").read("count.txt") == b"80"


def test_bench_run_gives_the_same_store_as_on_disk(server: str, tmp_path: Path) -> None:
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "c.yaml").write_text(
        'workflow: w\ncontract_version: "1"\nfinal: {contains: ["42"]}\n'
    )
    (tmp_path / "traces").mkdir()
    for number, model in enumerate(("m1", "vendor/m2")):
        trace = {
            "trace_id": str(number),
            "name": "w",
            "model": model,
            "task": "t",
            "started_at": "2026-01-01T00:00:00Z",
            "final_answer": "42",
        }
        (tmp_path / "traces" / f"{number}.json").write_text(json.dumps(trace))
    options = ["run", "--traces", "traces", "--contracts", "contracts", "--store"]
    assert bench(*options, "local", cwd=tmp_path).code == 0
    remote = bench(*options, "s3://bucket/store", cwd=tmp_path)
    assert remote.code == 0, remote.err
    again = bench(*options, "s3://bucket/store", cwd=tmp_path)
    assert "no Dagster run" in again.err
    store = Store("s3://bucket/store")
    expected = contents(tmp_path / "local")
    assert {stat.path: store.read(stat.path) for stat in store.scan("", "")} == expected
