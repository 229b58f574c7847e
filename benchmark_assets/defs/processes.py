"""Runs that are not finished, and those whose process is.

Belongs here: telling the living from the dead. Does not belong here: starting runs.

A run in this process that is killed cannot say so, and Dagster, which did not launch it, would
show it as running for good. So such runs carry the process that executes them.
"""

import os
import socket

import dagster as dg

PROCESS = "bench/process"
"""Tag of runs executed in process: `host~pid`."""

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def this_process() -> dict[str, str]:
    """The tag for a run that this process executes."""
    return {PROCESS: f"{socket.gethostname()}~{os.getpid()}"}


def unfinished(instance: dg.DagsterInstance) -> int:
    """How many runs are not finished, after burying those whose process is gone."""
    runs = instance.get_runs(dg.RunsFilter(statuses=_UNFINISHED))
    return sum(not _bury(instance, run) for run in runs)


def _bury(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    host, _, process = run.tags.get(PROCESS, "").rpartition("~")
    if host != socket.gethostname() or _is_running(process):
        return False
    instance.report_run_failed(run, "The process that executed this run is gone.")
    return True


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError):
        pass
    return True
