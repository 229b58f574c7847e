"""`bench run` killed at any moment, and two at once: one more run gives the undisturbed store."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.defs.instance import open_instance
from tests.bench import bench, contents

DAYS = [f"2026-{month:02}-{day:02}" for month in (1, 2) for day in (1, 2, 3)]
MODELS = ("m1", "m2")
CONTRACT = """\
workflow: w{number}
contract_version: "1"
tools: {{required: [look]}}
final: {{contains: ["{number}"]}}
"""


def write_project(folder: Path) -> None:
    (folder / "contracts").mkdir(parents=True)
    for number in range(3):
        (folder / "contracts" / f"c{number}.yaml").write_text(CONTRACT.format(number=number))
    for day in DAYS:
        for model in MODELS:
            path = folder / "traces" / day / f"{model}.jsonl"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(
                "".join(
                    json.dumps(
                        {
                            "trace_id": f"{day}-{model}-{number}-{trial}",
                            "name": f"w{number}",
                            "model": model,
                            "task": f"t{number}",
                            "trial": trial,
                            "started_at": f"{day}T10:00:00Z",
                            "final_answer": str((number + trial) % 4),
                            "tool_calls": [{"name": "look", "status": "ok"}],
                            "cost_usd": 0.25,
                        }
                    )
                    + "\n"
                    for number in range(3)
                    for trial in range(2)
                )
            )
    (folder / "benchmark.yaml").write_text("sources: [{kind: files, path: traces}]\n")


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("undisturbed")
    write_project(folder)
    assert bench("run", cwd=folder).code == 0
    return store_of(folder)


def store_of(folder: Path) -> dict[str, bytes]:
    """The store's content; a source's index holds the files' own times, which differ by copy."""
    return {
        path: data
        for path, data in contents(folder / "data" / "store").items()
        if not path.startswith("sources/")
    }


def start(folder: Path, *args: str, code: str | None = None) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "benchmark_assets.cli.main"]
    if code is not None:
        command = [sys.executable, "-c", code]
    return subprocess.Popen(
        [*command, *args],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={key: value for key, value in os.environ.items() if not key.startswith("DAGSTER_")},
    )


# Kills itself inside the n-th write: after the bytes, before the rename.
SUICIDE = """
import os, signal, sys
from benchmark_assets.adapters import store
n = int(sys.argv.pop(1))
count = 0
move = store._move_into
def hit(temporary, target):
    global count
    count += 1
    if count == n:
        os.kill(os.getpid(), signal.SIGKILL)
    move(temporary, target)
store._move_into = hit
from benchmark_assets.cli.main import main
main()
"""


def test_killed_at_twenty_moments(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    write_project(tmp_path)
    dice = random.Random(7)
    killed = 0

    def was_killed(process: subprocess.Popen[bytes]) -> bool:
        if process.wait() == -signal.SIGKILL:
            return True
        # It was faster than the kill: the next one begins anew, so that there is work to disturb.
        shutil.rmtree(tmp_path / "data")
        return False

    for moment in range(15):
        process = start(tmp_path, "run")
        time.sleep(dice.uniform(0.3, 1.5) + moment * 0.15)
        process.send_signal(signal.SIGKILL)
        killed += was_killed(process)
    for write in (1, 4, 9, 20, 33):
        killed += was_killed(start(tmp_path, str(write), "run", code=SUICIDE))
    assert killed >= 10
    assert bench("run", cwd=tmp_path).code == 0
    assert store_of(tmp_path) == undisturbed


@pytest.mark.parametrize("write", [1, 2, 5, 12, 25])
def test_killed_inside_a_write(undisturbed: dict[str, bytes], tmp_path: Path, write: int) -> None:
    write_project(tmp_path)
    assert start(tmp_path, str(write), "run", code=SUICIDE).wait() == -signal.SIGKILL
    assert list((tmp_path / "data" / "store" / ".tmp").iterdir())
    assert bench("run", cwd=tmp_path).code == 0
    assert store_of(tmp_path) == undisturbed


def test_a_killed_run_does_not_look_alive_for_good(tmp_path: Path) -> None:
    write_project(tmp_path)
    # The tenth write is the first that Dagster executes: the index and contracts come before.
    assert start(tmp_path, "10", "run", code=SUICIDE).wait() == -signal.SIGKILL
    project = load_project(tmp_path / "benchmark.yaml", env={})
    with open_instance(project, own_store=True) as instance:
        (run,) = [run for run in instance.get_runs() if not run.is_finished]
        assert run.status == dg.DagsterRunStatus.STARTED
    assert bench("run", cwd=tmp_path).code == 0
    with open_instance(project, own_store=True) as instance:
        assert [run for run in instance.get_runs() if not run.is_finished] == []


OVERLAP = """
import sys
from pathlib import Path
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.pipeline.cells import CellId, evaluate_cells
from benchmark_assets.pipeline.workspace import Workspace
folder, first = Path(sys.argv[1]), int(sys.argv[2])
workspace = Workspace(load_project(folder / "benchmark.yaml", env={}))
print("ready", flush=True)
sys.stdin.readline()
cells = [CellId(f"c{n}", model) for n in range(first, first + 2) for model in ("m1", "m2")]
evaluate_cells(workspace, cells)
"""

pytestmark = pytest.mark.slow


def test_two_processes_on_overlapping_cells_twenty_times(
    undisturbed: dict[str, bytes], tmp_path: Path
) -> None:
    write_project(tmp_path)
    assert bench("run", cwd=tmp_path).code == 0
    runs = {path: data for path, data in undisturbed.items() if path.startswith("runs/")}
    store = tmp_path / "data" / "store"
    for _ in range(20):
        for path in runs:
            (store / path).unlink()
        together = [
            subprocess.Popen(
                [sys.executable, "-c", OVERLAP, str(tmp_path), first],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for first in ("0", "1")
        ]
        for process in together:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in together:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in together:
            process.communicate(timeout=60)
        assert [process.returncode for process in together] == [0, 0]
        assert store_of(tmp_path) == undisturbed


def test_two_runs_at_once(undisturbed: dict[str, bytes], tmp_path: Path) -> None:
    write_project(tmp_path)
    together = [start(tmp_path, "run") for _ in range(2)]
    codes = [process.wait(120) for process in together]
    assert 0 in codes
    assert bench("run", cwd=tmp_path).code == 0
    assert store_of(tmp_path) == undisturbed
