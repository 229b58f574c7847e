"""Running a user's agent on the user turns of fixtures: one process a case, one trace a trial.

Belongs here: the cases, their processes, and a trace for each whatever became of it. Does not
belong here: what runs in such a process (`recorder/case`), what a fixture expects, and grading: a
replay calls models and a grader compares files, and mixing the two makes suites flaky.

*Nothing is lost.* A case's events are in a journal, a file that outlives its process: an agent
that is killed leaves the calls it made until then, and why it ended.

*Nothing stays.* A case has a process group of its own, which is killed as a whole when the case is
over or out of time; if the replay itself is killed, its cases notice and end.

*Nothing passes by being old*, or by being all there is. Earlier candidates of a fixture are
removed before it is run, and of several trials the last one fails until it has run.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import msgspec

from benchmark_assets.adapters.benchmarks.adk import is_eval_set
from benchmark_assets.adapters.benchmarks.adk import read_cases as read_cases_of_set
from benchmark_assets.adapters.fixture_files import ADK_SETTINGS
from benchmark_assets.adapters.golden_files import find_fixtures
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.recorder.case import Hiding, Job
from benchmark_assets.recorder.events import Begun, Event, Failed, Over, read_journal, trace_of
from benchmark_assets.recorder.record import write_trace

_NOTHING_HIDDEN = Hiding()
_TAIL_BYTES = 8_192
_POLL_S = 0.05
_NUMBERED = re.compile(r"[1-9][0-9]*\.json")


@dataclass(frozen=True)
class Case:
    """A fixture, as far as a replay is concerned: its id, and what the user says, turn by turn."""

    fixture: str
    user: str
    file: str
    turns: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cases:
    """The cases of a folder, by id, and what is wrong with files that are none."""

    cases: tuple[Case, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True)
class Replay:
    """How cases are run.

    Attributes:
        agent: `module:function`.
        folders: Absolute folders that are put on the agent's module path.
        out: Folder of the traces.
        timeout_s: Seconds after which a case is killed.
        trials: Attempts at each case.
        jobs: Cases that run at the same time.
        hiding: What may be written down of what the agent does.
    """

    agent: str
    folders: tuple[str, ...]
    out: Path
    timeout_s: float = 300.0
    trials: int = 1
    jobs: int = 1
    hiding: Hiding = _NOTHING_HIDDEN


@dataclass(frozen=True)
class Outcome:
    """What became of one trial.

    Attributes:
        error: Why the agent failed; None if it came to its end.
        tools: Number of tool calls on record.
        seconds: Wall time.
        output: The last of what the agent printed.
    """

    fixture: str
    trial: int
    trace: Path
    error: str | None
    tools: int
    seconds: float
    output: str


def read_cases(folder: Path, traces: Path | None = None) -> Cases:
    """Read the ids and user turns of the fixtures that `golden` grades, in order of their paths.

    Args:
        folder: Where fixtures are.
        traces: The folder of traces, which may lie in it and holds no fixtures.

    Raises:
        InputError: If there is no such folder, or no fixture in it.
    """
    files = find_fixtures(folder, traces)
    if not files:
        raise InputError(
            Problem("no fixtures are in it: files *.json", file=str(folder), cure="add one")
        )
    cases: dict[str, Case] = {}
    problems = []
    for file in files:
        try:
            found, flaws = _read_cases(file)
        except ValueError as error:
            problems.append(Problem(str(error), file=str(file)))
            continue
        problems += flaws
        for case in found:
            if case.fixture in cases:
                problem = f"the id {case.fixture} is that of {cases[case.fixture].file}, too"
                problems.append(Problem(problem, file=str(file), cure="give it one of its own"))
            else:
                cases[case.fixture] = case
    return Cases(tuple(cases.values()), tuple(problems))


def _read_cases(file: Path) -> tuple[list[Case], list[Problem]]:
    """The case of a fixture, or those of an ADK eval set and what is wrong with its others."""
    try:
        fixture: Any = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"is not JSON: {error}") from error
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from error
    if is_eval_set(fixture):
        read, problems = read_cases_of_set(fixture, file.name, str(file))
        said = [(case.fixture_id, [turn.user for turn in case.turns]) for case in read]
        return [Case(key, first, str(file), tuple(more)) for key, (first, *more) in said], problems
    if file.name == ADK_SETTINGS and isinstance(fixture, dict) and "criteria" in fixture:
        return [], []
    if not isinstance(fixture, dict):
        raise ValueError("is not a fixture: a fixture is a JSON object")
    given = fixture.get("input")
    user = given.get("user") if isinstance(given, dict) else None
    for key, value in (("id", fixture.get("id")), ("input.user", user)):
        if not isinstance(value, str) or not value.strip():
            raise ValueError(f"is not a fixture: {key} is missing, empty, or no text")
    turns = given.get("turns") if isinstance(given, dict) else None
    if turns is not None and not _are_texts(turns):
        raise ValueError("is not a fixture: input.turns is no list of texts")
    return [Case(fixture["id"], str(user), str(file), tuple(turns or ()))], []


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item for item in value)


def trace_path(out: Path, fixture: str, trial: int, trials: int) -> Path:
    """Where a candidate trace lies: `<id>.json`, or `<id>/<n>.json` if there are several."""
    key = path_key(fixture)
    return out / f"{key}.json" if trials == 1 else out / key / f"{trial}.json"


def find_agent(replay: Replay) -> None:
    """Look for the agent, in a process like those it will run in.

    Raises:
        InputError: If it cannot be imported, or called as an agent.
    """
    with tempfile.TemporaryDirectory() as folder:
        ended = _run(replay, Job(**_job(replay, folder)), Path(folder), threading.Event())
    error = _failure(ended.events) or _fate(ended, replay.timeout_s)
    if error is not None:
        shown = f"\n{ended.output.strip()}" if ended.output.strip() else ""
        raise InputError(
            Problem(
                f"the agent cannot be loaded: {error}{shown}",
                key=replay.agent,
                cure="name it as module:function, importable from the current folder",
            )
        )


def run_cases(cases: Iterable[Case], replay: Replay) -> Iterator[Outcome]:
    """Run cases and write their traces; yields outcomes as they come, in no order.

    Whoever stops iterating stops the cases that run.

    Raises:
        OSError: If a trace cannot be written.
    """
    listed = list(cases)
    clear(listed, replay.out)
    for case in listed:
        if replay.trials > 1:
            _begin(replay, case)
    stop = threading.Event()
    with ThreadPoolExecutor(max_workers=replay.jobs) as pool:
        try:
            running = [
                pool.submit(_run_case, case, trial, replay, stop)
                for case in listed
                for trial in range(1, replay.trials + 1)
            ]
            for future in as_completed(running):
                outcome = future.result()
                if outcome is not None:
                    yield outcome
        finally:
            stop.set()
            pool.shutdown(cancel_futures=True)


def clear(cases: Iterable[Case], out: Path) -> None:
    """Remove earlier candidates, so that none is taken for one of this replay.

    Raises:
        OSError: If one cannot be removed.
    """
    for case in cases:
        _clear(out, case)


def _clear(out: Path, case: Case) -> None:
    single = trace_path(out, case.fixture, 1, 1)
    folder = trace_path(out, case.fixture, 1, 2).parent
    old = [single, *(folder.glob("*.json") if folder.is_dir() else ())]
    for file in old:
        if file.is_file() and (file == single or _NUMBERED.fullmatch(file.name)):
            file.unlink()
    with contextlib.suppress(OSError):  # Not there, or something else is in it.
        folder.rmdir()


def _begin(replay: Replay, case: Case) -> None:
    """Leave a trace of the last trial that fails, until the trial has run.

    Of a replay that is ended, some trials are there. Fewer than there should be must not pass, and
    with the last one there, a grader sees which are missing before it.
    """
    now = _now()
    begun = Begun(time=now, fixture=case.fixture, trial=replay.trials)
    failed = Failed(time=now, error="the replay was ended before this trial was over")
    path = trace_path(replay.out, case.fixture, replay.trials, replay.trials)
    write_trace(path, trace_of([begun, failed]))


def _run_case(case: Case, trial: int, replay: Replay, stop: threading.Event) -> Outcome | None:
    """Run one trial and write its trace; None if the replay was stopped."""
    if stop.is_set():
        return None
    path = trace_path(replay.out, case.fixture, trial, replay.trials)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        job = Job(
            **_job(replay, folder),
            user=case.user,
            turns=case.turns,
            fixture=case.fixture,
            trial=trial,
        )
        ended = _run(replay, job, Path(folder), stop)
    if ended.stopped:
        return None
    events = ended.events
    fate = _fate(ended, replay.timeout_s)
    now = _now()
    if not any(isinstance(event, Begun) for event in events):
        events = [Begun(time=now, fixture=case.fixture, trial=trial), *events]
    if fate is not None:
        events = [*events, Failed(time=now, error=fate)]
    trace = trace_of(events)
    write_trace(path, trace)
    return Outcome(
        fixture=case.fixture,
        trial=trial,
        trace=path,
        error=trace.get("error"),
        tools=len(trace["tools"]),
        seconds=round(time.monotonic() - begun, 3),
        output=ended.output,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _job(replay: Replay, folder: str) -> dict[str, Any]:
    return {
        "agent": replay.agent,
        "folders": replay.folders,
        "journal": f"{folder}/journal.jsonl",
        "hiding": replay.hiding,
    }


# Processes.


@dataclass(frozen=True)
class _Ended:
    """How a process ended, and what it left."""

    code: int
    events: list[Event]
    output: str
    timed_out: bool
    stopped: bool


def _run(replay: Replay, job: Job, folder: Path, stop: threading.Event) -> _Ended:
    """Run a job in a process of its own, and end all that it started."""
    read_end, write_end = os.pipe()
    with open(write_end, "wb"), open(read_end, "rb") as lifeline:  # noqa: PTH123 - descriptors
        file = folder / "job.json"
        file.write_bytes(
            msgspec.json.encode(msgspec.structs.replace(job, lifeline=lifeline.fileno()))
        )
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "benchmark_assets.recorder.case", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(lifeline.fileno(),),
            start_new_session=True,
        )
        assert process.stdout is not None
        tail = _Tail(process.stdout)
        try:
            in_time = _wait(process, replay.timeout_s, stop)
        finally:
            _kill_group(process)
    journal = Path(job.journal)
    return _Ended(
        code=process.returncode,
        events=list(read_journal(journal.read_bytes())) if journal.exists() else [],
        output=tail.text(),
        timed_out=not in_time,
        stopped=not in_time and stop.is_set(),
    )


def _wait(process: subprocess.Popen[bytes], timeout_s: float, stop: threading.Event) -> bool:
    """Whether a process ended by itself, in time and before the replay was stopped."""
    deadline = time.monotonic() + timeout_s
    while not stop.is_set():
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(_POLL_S, left))
            return True
    return False


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and what it started, if it has not ended: servers of tools outlive agents."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


class _Tail:
    """The end of what a process prints, however much that is, and whoever keeps the pipe open."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._kept = bytearray()
        self._thread = threading.Thread(target=self._read, args=(stream,), daemon=True)
        self._thread.start()

    def _read(self, stream: IO[bytes]) -> None:
        with stream:
            while chunk := os.read(stream.fileno(), 65_536):
                self._kept += chunk
                del self._kept[:-_TAIL_BYTES]

    def text(self) -> str:
        # What left the process group may hold the pipe for ever; nobody waits for that.
        self._thread.join(timeout=1)
        return bytes(self._kept).decode(errors="replace")


def _failure(events: Iterable[Event]) -> str | None:
    """What the agent's own process says of its failure."""
    return next((event.error for event in events if isinstance(event, Failed)), None)


def _fate(ended: _Ended, timeout_s: float) -> str | None:
    """Why a process did not get to say how its agent ended; None if it did."""
    if any(isinstance(event, Over | Failed) for event in ended.events):
        return None
    if ended.timed_out:
        return f"the agent did not come to its end within {timeout_s:g} s, and was killed"
    if ended.code < 0:
        return f"the agent's process was ended by {_signal_name(-ended.code)}"
    return f"the agent's process ended with exit code {ended.code} before the agent did"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
