"""`dagster dev` and `dg dev` from the project's folder: they load, and show what `bench` did."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.bench import bench

pytestmark = pytest.mark.services

BIN = Path(sys.executable).parent
STARTS_WITHIN = 90


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[str]:
    """Run a server in a folder with nothing exported; yields its GraphQL address."""
    port = free_port()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BENCH_", "DAGSTER_"))}
    log = folder / "dev.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*command, "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}/graphql"
    try:
        deadline = time.monotonic() + STARTS_WITHIN
        while True:
            try:
                query(address, "{ version }")
                break
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.5)
        yield address
    finally:
        # All that it started is in its session: nothing of it may outlive the test.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def query(address: str, text: str) -> Any:
    request = urllib.request.Request(
        address,
        json.dumps({"query": text}).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        body = json.load(answer)
    assert "errors" not in body, body
    return body["data"]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project folder as a user has it: the repository's own files, and a demo that ran."""
    folder = tmp_path_factory.mktemp("project")
    root = Path(__file__).resolve().parents[2]
    for name in ("benchmark.yaml", "dagster.yaml", "workspace.yaml", "pyproject.toml"):
        (folder / name).write_bytes((root / name).read_bytes())
    result = bench("demo", "--dir", folder, cwd=folder)
    assert result.code == 0, result.err
    return folder


@pytest.mark.parametrize("command", [["dagster", "dev"], ["dg", "dev"]], ids=" ".join)
def test_it_answers_with_the_graph_and_what_bench_did(project: Path, command: list[str]) -> None:
    if command[0] == "dg":
        # dg wants the package in the project's folder, as it is in the repository.
        root = Path(__file__).resolve().parents[2]
        link = project / "benchmark_assets"
        if not link.exists():
            link.symlink_to(root / "benchmark_assets")
    with serving([str(BIN / command[0]), *command[1:]], project) as address:
        nodes = query(
            address,
            """{ assetNodes {
                 assetKey { path } groupName dependencyKeys { path }
                 partitionStats { numMaterialized numFailed }
               } }""",
        )["assetNodes"]
        graph = {node["assetKey"]["path"][-1]: node for node in nodes}
        assert set(graph) == {
            "contracts",
            "trace_snapshots",
            "contract_evaluations",
            "leaderboard",
            "benchmark_report",
        }
        materialized = {
            name: node["partitionStats"]["numMaterialized"]
            for name, node in graph.items()
            if node["partitionStats"]
        }
        assert materialized == {"contracts": 6, "trace_snapshots": 56, "contract_evaluations": 24}
        runs = query(address, "{ runsOrError { ... on Runs { results { status } } } }")
        assert [run["status"] for run in runs["runsOrError"]["results"]] == ["SUCCESS"] * 4
        instance = query(address, "{ instance { info hasInfo } shouldShowNux canBulkTerminate }")
        assert instance["shouldShowNux"] is False
        schedules = query(
            address,
            """{ repositoriesOrError { ... on RepositoryConnection { nodes {
                 schedules { name cronSchedule } sensors { name } } } } }""",
        )["repositoriesOrError"]["nodes"][0]
        assert schedules["schedules"] == [{"name": "nightly", "cronSchedule": "0 3 * * *"}]
        assert [sensor["name"] for sensor in schedules["sensors"]] == ["follow_up"]
