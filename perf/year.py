"""A year of traces: what a first run, an unchanged one, one changed day and one contract cost.

8 models × 30 contracts × 365 days, three runs a cell and day: 262,800 traces in 2,920 files.
`python perf/year.py [DAYS]` makes them in a temporary folder, then calls `bench run` in a process
of its own for each phase, and prints for each its time, its peak memory, and the work it did:
files opened, traces decoded, Dagster runs started. What grows with history although only what
changed should count is an assertion, not a figure to look at.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

MODELS = [f"vendor/model-{number}" for number in range(8)]
CONTRACTS = 30
TRIALS = 3
FIRST = date(2025, 1, 1)


def write_contract(folder: Path, number: int, version: int = 1) -> None:
    path = folder / "contracts" / f"c{number:02}.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(
        f'workflow: w{number}\ncontract_version: "{version}"\n'
        "tools: {required: [look], forbidden: [rm]}\n"
        f"trajectory: {{calls: [{{tool: book, args: {{id: {number}}}, max: 1}}], "
        "writes: [book], extra: reads_only}\n"
        'final: {contains: ["done"]}\n'
    )


def write_day(folder: Path, day: date, model: str, salt: int = 0) -> None:
    path = folder / "traces" / day.isoformat() / f"{model.replace('/', '_')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = []
    for number in range(CONTRACTS):
        for trial in range(TRIALS):
            wrong = (number * 7 + trial * 3 + day.toordinal() + salt) % 11 == 0
            trace = {
                "trace_id": f"{day}-{model}-{number}-{trial}",
                "name": f"w{number}",
                "model": model,
                "task": f"t{number}",
                "trial": trial,
                "started_at": f"{day}T10:00:00Z",
                "duration_ms": 1000 + number,
                "cost_usd": 0.001,
                "tokens": {"input": 900, "output": 100},
                "tool_calls": [
                    {"name": "look", "arguments": {"q": "x"}, "status": "ok"},
                    {"name": "book", "arguments": {"id": -1 if wrong else number}, "status": "ok"},
                ],
                "final_answer": "done",
                "ended": "agent_stop",
                "ended_normally": True,
            }
            lines.append(json.dumps(trace, separators=(",", ":")))
    path.write_text("\n".join(lines) + "\n")


def measured_run(folder: Path) -> None:
    """In a process of its own: one `bench run`, and what it did, as JSON on standard output."""
    import contextlib
    import io

    from benchmark_assets.adapters import snapshot_files
    from benchmark_assets.adapters.project_file import load_project
    from benchmark_assets.cli import run as cli
    from benchmark_assets.pipeline.plan import Selection
    from benchmark_assets.pipeline.workspace import Workspace

    opened: list[Workspace] = []
    decoded = 0
    decoder = snapshot_files._DECODER

    class Counting:
        def decode(self, text: str) -> object:
            nonlocal decoded
            decoded += 1
            return decoder.decode(text)

    def open_workspace(project: object) -> Workspace:
        opened.append(Workspace(project))  # type: ignore[arg-type]
        return opened[-1]

    done = {}
    update = cli._update

    def watched(*args: object, **options: object) -> object:
        done["it"] = update(*args, **options)  # type: ignore[arg-type]
        return done["it"]

    snapshot_files._DECODER = Counting()  # type: ignore[assignment]
    cli.Workspace = open_workspace  # type: ignore[assignment,misc]
    cli._update = watched  # type: ignore[assignment]
    project = load_project(folder / "benchmark.yaml", env={})
    begun = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        code = cli.run(project, Selection(), own_store=True)
    elapsed = time.perf_counter() - begun
    store = opened[0].store
    print(
        json.dumps(
            {
                "code": code,
                "seconds": round(elapsed, 1),
                "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
                "footers": store.footers.opened,
                "files_read": store.reads,
                "files_written": store.writes,
                "decoded": decoded,
                "runs": done["it"].runs,
            }
        )
    )


def phase(name: str, folder: Path) -> dict[str, int]:
    result = subprocess.run(
        [sys.executable, __file__, "--run", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    found: dict[str, int] = json.loads(result.stdout)
    assert found["code"] == 0, found
    print(
        f"{name:<22}{found['seconds']:>7} s{found['peak_mb']:>7} MB"
        f"{found['footers']:>9}{found['files_read']:>9}{found['files_written']:>9}"
        f"{found['decoded']:>9}{found['runs']:>6}",
        flush=True,
    )
    return found


def aggregate(folder: Path) -> None:
    """The full aggregate alone: every month file of every cell to standings."""
    from benchmark_assets.adapters.run_files import list_run_files
    from benchmark_assets.adapters.run_reader import read_runs
    from benchmark_assets.adapters.store import Store
    from benchmark_assets.leaderboard.standings import compute_standings

    store = Store(str(folder / "data" / "store"))
    paths = list_run_files(store)
    begun = time.perf_counter()
    runs = read_runs(store, paths)
    read = time.perf_counter() - begun
    compute_standings(runs, [])
    total = time.perf_counter() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"full aggregate: {len(paths)} files, {len(runs)} runs: read {read:.1f} s, "
        f"with standings {total:.1f} s, peak {peak} MB"
    )


def main(days: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dates = [FIRST + timedelta(days=number) for number in range(days)]
        for number in range(CONTRACTS):
            write_contract(folder, number)
        for day in dates:
            for model in MODELS:
                write_day(folder, day, model)
        (folder / "benchmark.yaml").write_text("sources: [{kind: files, path: traces}]\n")
        traces = days * len(MODELS) * CONTRACTS * TRIALS
        per_day = len(MODELS) * CONTRACTS * TRIALS
        months = len({(day.year, day.month) for day in dates})
        print(f"{days} days, {len(MODELS)} models, {CONTRACTS} contracts: {traces} traces")
        print(
            f"{'':<22}{'time':>9}{'peak':>10}{'footers':>9}{'read':>9}{'written':>9}"
            f"{'decoded':>9}{'runs':>6}"
        )
        first = phase("first run", folder)
        assert first["decoded"] == traces
        same = phase("unchanged", folder)
        assert (same["decoded"], same["runs"], same["files_written"]) == (0, 0, 0)
        assert same["footers"] == 0
        write_day(folder, dates[-1], MODELS[0], salt=1)
        one = phase("one changed day", folder)
        assert one["decoded"] == per_day // len(MODELS)
        assert one["footers"] <= 2 + 2 * CONTRACTS
        assert one["runs"] <= 4
        write_contract(folder, 3, version=2)
        contract = phase("one changed contract", folder)
        assert contract["decoded"] == traces  # its own history, judged anew
        assert contract["footers"] <= 2 * len(MODELS) * months
        assert contract["runs"] <= 4
        files = [path for path in (folder / "data" / "store").rglob("*") if path.is_file()]
        kinds = {
            kind: sum(f"/{kind}/" in str(path) for path in files) for kind in ("snapshots", "runs")
        }
        print(f"files in the store: {kinds['snapshots']} snapshots, {kinds['runs']} runs")
        subprocess.run([sys.executable, __file__, "--aggregate", str(folder)], check=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--run"]:
        measured_run(Path(sys.argv[2]))
    elif sys.argv[1:2] == ["--aggregate"]:
        aggregate(Path(sys.argv[2]))
    else:
        main(int(sys.argv[1]) if sys.argv[1:] else 365)
