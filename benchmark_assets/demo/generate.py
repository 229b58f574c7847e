"""Which runs the demo has, and the fault that each one commits.

Belongs here: the calendar of runs, drawing faults, trace ids. Does not belong here: what a run
of a use case looks like (`use_cases/`) or writing files (`files`).

Every day each model runs each use case three times on that day's case. Each run draws from a
stream of its own, named by seed, model, contract, day and trial: changing one use case leaves
the traces of the others as they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import msgspec

from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.faults import PLUGIN, Fault, FaultKind
from benchmark_assets.demo.models import MODELS, Model
from benchmark_assets.demo.record import Run, record
from benchmark_assets.demo.script import Script
from benchmark_assets.demo.use_cases import USE_CASES
from benchmark_assets.demo.use_cases.base import UseCase
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.trace import Origin, TraceSnapshot

FIRST_DAY = date(2026, 11, 15)
DAYS = 14
TRIALS = 3
PROMPT_UPDATE = 10
"""Day (from 0) on which the agents' prompts were updated; metadata `prompt_version` shows it."""

STEP_LIMIT = 20
FORMAT = "snapshot"

_READS = ("analyze_", "find_", "get_", "list_", "read_", "search_")
_CRASHES = (
    "agent loop: model returned a tool call whose arguments are not JSON, three times in a row",
    "agent loop: KeyError: 'tool_call_id'",
    "agent loop: context window exceeded after compaction",
)


@dataclass(frozen=True, kw_only=True)
class DemoTrace:
    """One trace, and the truth about it, which is in no file.

    Attributes:
        contract: Id of the contract that judges it.
        fault: What was planted in it; None if the run must be resolved.
    """

    snapshot: TraceSnapshot
    contract: str
    fault: Fault | None


@dataclass(frozen=True, kw_only=True)
class DemoFile:
    """The traces of one day and model, and the bytes of the file that holds them.

    `name` is relative to the traces' folder, with `/` between parts.
    """

    name: str
    data: bytes
    traces: tuple[DemoTrace, ...]


def generate(seed: int = 7) -> Iterator[DemoTrace]:
    """Yield the demo's traces by day, model and start time, each with its planted fault."""
    for file in generate_files(seed):
        yield from file.traces


def generate_files(seed: int = 7) -> Iterator[DemoFile]:
    """Yield the demo's files, a day and model each, in the snapshot format (JSONL)."""
    for day in range(DAYS):
        for model in MODELS:
            traces = [
                _trace(seed, model, use_case, day, trial)
                for use_case in USE_CASES
                for trial in range(1, TRIALS + 1)
            ]
            traces.sort(key=lambda trace: (trace.snapshot.started_at, trace.snapshot.trace_id))
            yield _file(FIRST_DAY + timedelta(days=day), model, traces)


def _file(day: date, model: Model, traces: list[DemoTrace]) -> DemoFile:
    name = f"{day.isoformat()}/{path_key(model.name)}.jsonl"
    data = b"".join(_line(trace.snapshot) for trace in traces)
    sha256 = hashlib.sha256(data).hexdigest()
    return DemoFile(
        name=name,
        data=data,
        traces=tuple(
            DemoTrace(
                snapshot=msgspec.structs.replace(
                    trace.snapshot,
                    origin=Origin(file=name, sha256=sha256, record=f"line {line}", format=FORMAT),
                ),
                contract=trace.contract,
                fault=trace.fault,
            )
            for line, trace in enumerate(traces, 1)
        ),
    )


def _line(snapshot: TraceSnapshot) -> bytes:
    """A snapshot as one line; its origin is the file itself, which only the reader knows."""
    record: dict[str, Any] = msgspec.to_builtins(snapshot)
    del record["origin"]
    return msgspec.json.encode(record) + b"\n"


def _trace(seed: int, model: Model, use_case: UseCase, day: int, trial: int) -> DemoTrace:
    stream = f"{seed}/{model.name}/{use_case.contract}/{day}/{trial}"
    dice = Dice(stream)
    trace_id = hashlib.sha256(stream.encode()).hexdigest()[:32]
    kind = _fault(model, use_case, day, dice)
    script = use_case.play(day, kind, dice)
    if kind == "early_stop":
        _run_into_limit(script, use_case)
    elif kind == "agent_error":
        script.stop_before(use_case.decisive, ended="agent_error", error=dice.pick(_CRASHES))
    midnight = datetime.combine(FIRST_DAY + timedelta(days=day), time(), UTC)
    run = Run(
        trace_id=trace_id,
        model=model,
        use_case=use_case,
        trial=trial,
        # The nightly window is long before the next midnight: no trace leaves its date.
        started_at=midnight + timedelta(milliseconds=dice.whole(3_600_000, 21_600_000)),
        user_id=f"user-{dice.whole(1, 24):03d}",
        session_id=f"session-{trace_id[:10]}",
        prompt_version="2026-11-25" if day >= PROMPT_UPDATE else "2026-11-02",
    )
    draft = Origin(file="", sha256="", format=FORMAT)  # `_file` knows the real one
    return DemoTrace(
        snapshot=record(run, script, dice, draft),
        contract=use_case.contract,
        fault=None if kind is None else Fault(kind=kind, plugin=PLUGIN[kind]),
    )


def _fault(model: Model, use_case: UseCase, day: int, dice: Dice) -> FaultKind | None:
    drift = model.drift
    if (
        drift is not None
        and drift.contract == use_case.contract
        and day >= drift.since
        and dice.chance(drift.failure_rate)
    ):
        return drift.kind
    if not dice.chance(model.failure_rates[use_case.contract]):
        return None
    return dice.weighted([(kind, model.habits.get(kind, 1.0)) for kind in use_case.faults])


def _run_into_limit(script: Script, use_case: UseCase) -> None:
    """Let the agent repeat its last look, as agents do that have lost the thread."""
    script.stop_before(
        use_case.decisive,
        ended="max_steps",
        error=f"stopped at the limit of {STEP_LIMIT} steps",
    )
    look = next(call for call in reversed(script.calls) if call.tool.startswith(_READS))
    script.calls += [look] * (STEP_LIMIT - len(script.calls))
