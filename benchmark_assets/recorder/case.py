"""The process in which an agent is run on one fixture's user turn: `python -m … JOB`.

Belongs here: finding the agent, running it, and taking down how it ended, as long as this process
lives. Does not belong here: what only another process can say: that this one hung, crashed or was
killed (`pipeline/replay`).
"""

from __future__ import annotations

import importlib
import inspect
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import msgspec

from benchmark_assets.recorder.record import TraceRecorder, run_to_end
from benchmark_assets.recorder.redaction import Others, Texts

LINGER_S = 10.0
"""How long threads that an agent left behind may keep its process from ending, in seconds."""


class Hiding(msgspec.Struct, frozen=True, kw_only=True):
    """What the recorder may write down; the names are those of `TraceRecorder`."""

    comparable: dict[str, tuple[str, ...]] | None = None
    comparable_final: tuple[str, ...] = ()
    others: Others = "hash"
    texts: Texts = "hash"


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be done.

    Attributes:
        agent: `module:function`.
        folders: Put before everything else on the module path.
        journal: File for the events.
        lifeline: File descriptor that ends when whoever started this process does.
        user: What the user says; None: the agent is only looked for.
        fixture: Id of the fixture.
        trial: Number of the attempt, from 1.
        turns: What the user says after that.
        hiding: What the recorder may write down.
    """

    agent: str
    folders: tuple[str, ...]
    journal: str
    lifeline: int | None = None
    user: str | None = None
    fixture: str | None = None
    trial: int | None = None
    turns: tuple[str, ...] = ()
    hiding: Hiding = Hiding()


class NoAgentError(Exception):
    """There is no such agent, or it cannot be called as one; the message says why."""


def main() -> None:
    """Do the job in the file that is named by the only argument."""
    job = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Job)
    # An agent that looks at its arguments finds none.
    sys.argv[:] = [job.agent]
    if job.lifeline is not None:
        os.set_inheritable(job.lifeline, False)
        threading.Thread(target=_die_with, args=(job.lifeline,), daemon=True).start()
    sys.path[:0] = job.folders
    process = os.getpid()
    with Path(job.journal).open("ab", buffering=0) as journal:
        recorder = TraceRecorder(
            fixture=job.fixture,
            trial=job.trial,
            turns=job.turns,
            journal=journal,
            comparable=job.hiding.comparable,
            comparable_final=job.hiding.comparable_final,
            others=job.hiding.others,
            texts=job.hiding.texts,
        )
        _run(job, recorder)
        if os.getpid() != process:
            _leave()  # A process that the agent forked ends here; the agent itself does not.
        recorder.over()
        _leave_soon()
        # Threads that go on may go on recording.
        for thread in threading.enumerate():
            if thread is not threading.current_thread() and not thread.daemon:
                thread.join()


def load(agent: str) -> Callable[[str, TraceRecorder], Any]:
    """Import `module:function`.

    Raises:
        NoAgentError: If there is none, or it does not take a text and a recorder.
    """
    module, _, path = agent.partition(":")
    try:
        found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise NoAgentError(
            f"there is no module {module} in the current folder, nor where Python looks"
        ) from error
    for name in path.split("."):
        found = getattr(found, name, None)
        if found is None:
            raise NoAgentError(f"module {module} has no {path}")
    if not callable(found):
        raise NoAgentError(f"{agent} is not a function, but of type {type(found).__name__}")
    if inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(found):
        raise NoAgentError(
            f"{agent} is a generator, of which nothing runs when it is called; name a function "
            "that goes through what it yields"
        )
    try:
        inspect.signature(found).bind("", None)
    except TypeError as error:
        raise NoAgentError(
            f"{agent} does not take what an agent is given, agent(user_text, recorder): {error}"
        ) from error
    except ValueError:
        pass  # Nobody knows what it takes.
    function: Callable[[str, TraceRecorder], Any] = found
    return function


def _run(job: Job, recorder: TraceRecorder) -> None:
    if job.user is not None:
        recorder.on_input(job.user)
    try:
        agent = load(job.agent)
        if job.user is not None:
            run_to_end(agent(job.user, recorder))
    except NoAgentError as error:
        recorder.give_up(str(error))
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            recorder.give_up(f"the agent ended its process: sys.exit({end.code!r})")
        else:
            recorder.on_error(end)  # A text is the agent's, and may have to be hidden.
    except BaseException as error:  # noqa: BLE001 - it is the agent's, and goes on record
        traceback.print_exc()
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]  # The one thing that went wrong in a group of tasks.
        recorder.on_error(error)


def _leave_soon() -> None:
    """The agent is done; what it left running may not keep the replay waiting for long."""
    timer = threading.Timer(LINGER_S, _leave)
    timer.daemon = True
    timer.start()


def _leave() -> NoReturn:
    """End this process now."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(0)


def _die_with(lifeline: int) -> None:
    """End this process and all that it started once the other end of a pipe is closed."""
    while os.read(lifeline, 1):
        pass
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
