"""Workflow fidelity at scale: what reading, comparing and printing N executors costs.

`python perf/fidelity.py [EXECUTORS]` makes workflow trace files of a tenth of that, and of all
(default 10,000), once with one step and one model call each and once with three, one executor in
a hundred hiding half of its tokens. It prints what each step takes in this process: in seconds, as
a multiple of what `json.loads` takes for the same file in the same run (which says more than
seconds of an unknown machine), and per executor as a ratio of the small file's (1 is linear). Then
time and peak memory of the command in a process of its own. Times are of the processor: what else
the machine does is no matter.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from benchmark_assets.adapters.fidelity_files import read_workflow_trace, workflow_trace_json
from benchmark_assets.adapters.formats import agenteval
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord
from benchmark_assets.scoring.trace_fidelity import RULE_SETS

T = TypeVar("T")

BASELINE = "json.loads"
ROUNDS = (1, 3)
LYING = 100


def make(executors: int, rounds: int) -> WorkflowRecord:
    usage = Usage(input=100, output=20, total=120, cached=40)
    half = Usage(input=50, output=10, total=60, cached=20)
    names = [f"executor-{number:05}" for number in range(executors)]
    return WorkflowRecord(
        ledger=tuple(
            LedgerEntry(
                executor=name,
                invocation=f"{name}-{turn}",
                usage=half if number % LYING == 0 else usage,
                finish_reason="stop",
            )
            for turn in range(rounds)
            for number, name in enumerate(names)
        ),
        turns=tuple(
            ModelTurn(
                executor=name, invocation=f"{name}-{turn}", usage=usage, finish_reason="end_turn"
            )
            for turn in range(rounds)
            for name in names
        ),
    )


def best(work: Callable[[], T]) -> tuple[float, T]:
    """The least of three times, in seconds, and what came of it."""
    found = []
    for _ in range(3):
        start = time.process_time()
        result = work()
        found.append(time.process_time() - start)
    return min(found), result


def in_process(file: TraceFile, executors: int) -> dict[str, float]:
    times = {}
    times[BASELINE], _ = best(partial(json.loads, file.data))
    times["as a trace"], (trace,) = best(
        lambda: list(agenteval.FORMAT.parse(TraceFile("f", "f", file.data)))
    )
    assert trace.problem is None
    times["read"], record = best(lambda: read_workflow_trace(TraceFile("f", "f", file.data)))
    assert trace.workflow_record == record
    for rules in RULE_SETS:
        times[rules.name], result = best(partial(rules.reconcile, record))
        lying = -(-executors // LYING)
        wrong = sum(item.score != 1 for item in result.executors)
        assert len(result.executors) == executors
        # By the specified rules `end_turn` is another ending than `stop`.
        assert wrong == (executors if rules.name == "specified" else lying), wrong
    return times


def command(path: Path, *options: str) -> None:
    start = time.perf_counter()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "benchmark_assets.cli.main", "workflow-trace-fidelity"),
            *("--workflow-trace", str(path), "--subject", "perf", *options),
        ],
        stdout=subprocess.PIPE,
        check=False,
        env=os.environ,
    )
    elapsed = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert done.returncode == 9, done.returncode
    print(
        f"  {' '.join(options):24} {used:6.2f} s ({elapsed:.2f} s on the clock)"
        f"  {len(done.stdout):>9,} bytes printed, peak {after.ru_maxrss / 1024:.0f} MB"
    )


def measure(executors: int, rounds: int) -> None:
    data = {
        count: workflow_trace_json(make(count, rounds)) for count in (executors // 10, executors)
    }
    print(
        f"{executors:,} executors, steps and model calls of each: {rounds}; "
        f"{len(data[executors]):,} bytes"
    )
    small, large = (in_process(TraceFile("f", "f", text), count) for count, text in data.items())
    for name, seconds in large.items():
        ratio = seconds / small[name] / 10
        print(
            f"  {name:24} {seconds:6.2f} s  {seconds / large[BASELINE]:5.1f} × {BASELINE}"
            f"  {ratio:.2f} × the tenth, per executor"
        )
    for rules in RULE_SETS:
        total = large["read"] + large[rules.name]
        print(
            f"  read and {rules.name:15} {total:6.2f} s  {total / large[BASELINE]:5.1f} × {BASELINE}"
        )
    print("the command, from start to end:")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.json"
        path.write_bytes(data[executors])
        for options in (["--rules", "specified"], ["--rules", "strict"]):
            command(path, *options)
            command(path, *options, "--json")


def main(executors: int) -> None:
    for rounds in ROUNDS:
        measure(executors, rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)
