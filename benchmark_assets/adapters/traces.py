"""From the bytes of a file to settled snapshots: choose the format, parse, settle identity.

Belongs here: what holds for every format alike: which model, task, workflow and day a trace
belongs to, and what is reported instead of stored. Does not belong here: finding files and
remembering them (`sources`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import UNFORESEEN, TraceFile
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot

READER_VERSION = "6"
"""Raised whenever the same bytes could be read into another snapshot; files are read again."""

EARLIEST_YEAR = 1970

_SPACES = re.compile(r"\s+")


def read_traces(
    file: TraceFile,
    config: ProjectConfig,
    *,
    format_name: str = "auto",
    default_date: date | None = None,
) -> Iterator[TraceSnapshot]:
    """Yield the settled snapshots of a file, in the file's order.

    A record that cannot be read or judged has `problem` set. One that names no model or no
    time can be judged and not be placed: its `model` or `started_at` is None, and
    `why_unplaced` says so.

    Raises:
        InputError: If the file is no trace at all.
    """
    chosen = choose_format(file, format_name)
    try:
        for snapshot in chosen.parse(file):
            yield settle(snapshot, config, default_date)
    except InputError:
        raise
    except UNFORESEEN as error:
        # A format that trips over a shape it did not expect loses its file, not the batch.
        problem = file.problem(
            f"could not be read as {chosen.name}: {type(error).__name__}: {error}",
            cure="if it is in another format, name that with --format",
        )
        raise InputError(problem) from error


def settle(
    snapshot: TraceSnapshot, config: ProjectConfig, default_date: date | None = None
) -> TraceSnapshot:
    """Fill in what identifies a trace: workflow, model, task, time, duration.

    *Workflow* is metadata `workflow_name`, else the trace's name. *Model* is the metadata key
    `model_key`, else the trace's only model, else its models joined by `+`; then its canonical
    name. *Task* is the source's, else what `task.from` says, else a hash of the prompt.
    """
    changes: dict[str, Any] = {}
    if not snapshot.workflow:
        changes["workflow"] = _text(snapshot.metadata.get("workflow_name")) or _text(snapshot.name)
    model = _model(snapshot, config)
    if model != snapshot.model:
        changes["model"] = model
    if not snapshot.task:
        changes["task"] = _task(snapshot, config)
    started, ended = _in_utc(snapshot.started_at), _in_utc(snapshot.ended_at)
    if snapshot.duration_ms is None and started is not None and ended is not None:
        elapsed = round((ended - started).total_seconds() * 1000)
        changes["duration_ms"] = elapsed if elapsed >= 0 else None
    if started is None and default_date is not None:
        started = datetime(default_date.year, default_date.month, default_date.day, tzinfo=UTC)
    changes |= {"started_at": started, "ended_at": ended}
    return msgspec.structs.replace(snapshot, **changes)


def why_unplaced(snapshot: TraceSnapshot, config: ProjectConfig) -> str | None:
    """Why a settled snapshot belongs to no day and model, after what else is wrong with it.

    None if it has a place. Only the store and what is made from it need one: where a single
    trace is looked at, it can be judged all the same.
    """
    missing = [
        text
        for text, value in (
            (f"no model (metadata {config.model_key} names one)", snapshot.model),
            (
                "no time (--default-date, or default_date of its source, gives one)",
                snapshot.started_at,
            ),
        )
        if value is None
    ]
    if not missing:
        return None
    reason = f"{_where(snapshot)}: has {' and '.join(missing)}"
    return f"{snapshot.problem}; {reason}" if snapshot.problem else reason


def _in_utc(time: datetime | None) -> datetime | None:
    """A time in UTC, naive ones being that already; None if it cannot be when an agent ran.

    What lies before 1970 is a default or a unit taken for another.
    """
    if time is None:
        return None
    try:
        time = time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
    except OverflowError:
        return None
    return time if time.year >= EARLIEST_YEAR else None


def day_of(snapshot: TraceSnapshot) -> str | None:
    """The trace's date, `YYYY-MM-DD`: its start in UTC."""
    if snapshot.started_at is None:
        return None
    return snapshot.started_at.astimezone(UTC).date().isoformat()


def _where(snapshot: TraceSnapshot) -> str:
    origin = snapshot.origin
    return f"{origin.file}: {origin.record}" if origin.record else origin.file


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _model(snapshot: TraceSnapshot, config: ProjectConfig) -> str | None:
    name = _text(snapshot.metadata.get(config.model_key)) or _text(snapshot.model)
    if name is None:
        used = sorted({config.canonical_model(g.model) for g in snapshot.generations if g.model})
        name = "+".join(used) or None
    return None if name is None else config.canonical_model(name)


def _task(snapshot: TraceSnapshot, config: ProjectConfig) -> str | None:
    source = config.task.from_
    value: str | None = None
    if source == "session":
        value = snapshot.session_id
    elif source.startswith("metadata."):
        found = snapshot.metadata.get(source.removeprefix("metadata."))
        value = str(found) if isinstance(found, int) else _text(found)
    if value:
        return value
    if snapshot.prompt is None:
        return None
    prompt = _SPACES.sub(" ", snapshot.prompt).strip()
    return "prompt:" + hashlib.sha256(prompt.encode("utf-8", "surrogatepass")).hexdigest()[:16]
