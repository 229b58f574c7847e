"""Where traces come from when people ask for some of them: one protocol, and what is asked.

Belongs here: what can be asked of any source, what it answers, and the source of trace files.
Does not belong here: how a vendor's server is asked (`langfuse`), the ingest of whole sources
(`sources`).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Protocol

import msgspec

from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.traces import read_traces
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot

Skills = Callable[[TraceSnapshot], Iterable[str]]
"""Names of the skills that a trace loaded. Harness profiles know them, which are not read here."""

_NEVER = datetime.min.replace(tzinfo=UTC)


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which traces are asked for. Everything given must hold.

    Attributes:
        ids: Traces by id, in the order in which they are wanted.
        thread_id: The session's id or, if there is none of it, metadata `thread_id`.
        run_id: Metadata `run_id`.
        since, until: The trace's time, from `since` on and before `until`.
        filters: Metadata key → values: any of a key's values, of every key.
        user, name: The trace's user id and its name.
        tags: All of these.
        environments: Any of these; empty is every environment; None is the source's own choice.
        model: A model of the trace, by its own or its canonical name.
        prompt_contains, skill_contains: Part of the first prompt, and of the name of a skill
            that was loaded; upper and lower case are the same.
        limit: Give at most this many.
        scan_cap: Look at no more than this many traces for a condition that only looking at
            traces can tell.
    """

    ids: tuple[str, ...] = ()
    thread_id: str | None = None
    run_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    filters: dict[str, tuple[str, ...]] = {}
    user: str | None = None
    name: str | None = None
    tags: tuple[str, ...] = ()
    environments: tuple[str, ...] | None = None
    model: str | None = None
    prompt_contains: str | None = None
    skill_contains: str | None = None
    limit: int = 50
    scan_cap: int = 2000


class Selected(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was asked for.

    Attributes:
        snapshot: It, normalised and settled. `problem` says why it cannot be judged, such as
            that it was still arriving.
        document: It as the source gave it, `{"trace": …, "observations": […]}`; None if that is
            a file.
    """

    snapshot: TraceSnapshot
    document: dict[str, Any] | None = None


class Progress(msgspec.Struct, kw_only=True):
    """What a selection came to so far.

    Attributes:
        looked_at: How many traces were fetched and looked at.
        given: How many of them were given.
        missing: Ids asked for that the source does not have.
        stopped: Why it ended before the source did, in words; None if it did not.
    """

    looked_at: int = 0
    given: int = 0
    missing: list[str] = []
    stopped: str | None = None


class TraceSource(Protocol):
    """Something that has traces."""

    def select(self, selection: Selection, progress: Progress | None = None) -> Iterator[Selected]:
        """Yield the traces asked for, newest first (by id: in the order asked for).

        Args:
            selection: What is asked for.
            progress: Kept up to date, if given.

        Raises:
            InputError: If the source cannot be read.
        """
        ...


def skills_recorded(snapshot: TraceSnapshot) -> Iterator[str]:
    """The skills that a trace's source itself says were loaded."""
    return (skill.name for skill in snapshot.skills)


class FileTraces:
    """The traces of some files.

    Args:
        files: The files; read once a selection.
        config: Settles what traces are of; how models are called.
        skills: Names of the skills that a trace loaded.
    """

    def __init__(
        self,
        files: Iterable[TraceFile],
        config: ProjectConfig,
        *,
        skills: Skills = skills_recorded,
    ) -> None:
        self._files = files
        self._config = config
        self._skills = skills

    def select(self, selection: Selection, progress: Progress | None = None) -> Iterator[Selected]:
        """See `TraceSource.select`. Keeps no more traces than are given."""
        progress = progress if progress is not None else Progress()
        found = heapq.nlargest(
            selection.limit, self._matching(selection, progress), key=_by_time_and_id
        )
        if selection.ids:
            order = {trace_id: place for place, trace_id in enumerate(selection.ids)}
            found.sort(key=lambda snapshot: order[snapshot.trace_id])
            known = {snapshot.trace_id for snapshot in found}
            progress.missing += [key for key in selection.ids if key not in known]
        for snapshot in found:
            progress.given += 1
            yield Selected(snapshot=snapshot)

    def _matching(self, selection: Selection, progress: Progress) -> Iterator[TraceSnapshot]:
        for file in self._files:
            for snapshot in read_traces(file, self._config):
                progress.looked_at += 1
                if matches(selection, snapshot, self._config, self._skills):
                    yield snapshot


def _by_time_and_id(snapshot: TraceSnapshot) -> tuple[datetime, str]:
    return (snapshot.started_at or _NEVER, snapshot.trace_id)


# Whether a trace is one that was asked for.


def matches(
    selection: Selection,
    snapshot: TraceSnapshot,
    config: ProjectConfig,
    skills: Skills = skills_recorded,
    metadata: Iterable[dict[str, Any]] = (),
) -> bool:
    """Whether a normalised trace is asked for, by everything but how many are.

    Args:
        selection: What is asked for.
        snapshot: The trace.
        config: How models are called.
        skills: Names of the skills that it loaded.
        metadata: Trees of metadata beside the snapshot's own, which leaves some out.
    """
    trees = [snapshot.metadata, *metadata]
    return (
        (not selection.ids or snapshot.trace_id in selection.ids)
        and _in_time(selection, snapshot)
        and _is_of(selection, snapshot)
        and _is_in_thread(selection, snapshot, trees)
        and all(_has(trees, key, values) for key, values in selection.filters.items())
        and looks_right(selection, snapshot, config, skills)
    )


def looks_right(
    selection: Selection,
    snapshot: TraceSnapshot,
    config: ProjectConfig,
    skills: Skills = skills_recorded,
) -> bool:
    """The part of it that no server can tell: model, prompt and skills."""
    return (
        (selection.model is None or _has_model(selection.model, snapshot, config))
        and _contains(selection.prompt_contains, (snapshot.prompt or "",))
        and (
            selection.skill_contains is None
            or _contains(selection.skill_contains, skills(snapshot))
        )
    )


def _in_time(selection: Selection, snapshot: TraceSnapshot) -> bool:
    started = snapshot.started_at
    if started is None:
        return selection.since is None and selection.until is None
    return (selection.since is None or started >= selection.since) and (
        selection.until is None or started < selection.until
    )


def _is_of(selection: Selection, snapshot: TraceSnapshot) -> bool:
    return (
        (selection.user is None or snapshot.user_id == selection.user)
        and (selection.name is None or snapshot.name == selection.name)
        and set(selection.tags) <= set(snapshot.tags)
        and (not selection.environments or snapshot.environment in selection.environments)
    )


def _is_in_thread(
    selection: Selection, snapshot: TraceSnapshot, trees: list[dict[str, Any]]
) -> bool:
    thread, run = selection.thread_id, selection.run_id
    in_thread = (
        thread is None or snapshot.session_id == thread or _has(trees, "thread_id", (thread,))
    )
    return in_thread and (run is None or _has(trees, "run_id", (run,)))


def _has(trees: Iterable[dict[str, Any]], key: str, values: tuple[str, ...]) -> bool:
    """Whether a key of metadata, dotted or not, has one of some values, compared as texts."""
    return any(as_words(found) in values for tree in trees for found in _look(tree, key))


def _look(tree: dict[str, Any], key: str) -> Iterator[Any]:
    if key in tree:
        yield tree[key]
    value: Any = tree
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is not None:
        yield value[""] if isinstance(value, dict) and "" in value else value


def as_words(value: Any) -> str:
    """A value of metadata as it is compared: as JSON writes it, texts without quotes."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _has_model(name: str, snapshot: TraceSnapshot, config: ProjectConfig) -> bool:
    wanted = {name, config.canonical_model(name)}
    models = {snapshot.model, *(generation.model for generation in snapshot.generations)}
    used = {model for model in models if model}
    return bool(wanted & (used | {config.canonical_model(model) for model in used}))


def _contains(part: str | None, texts: Iterable[str]) -> bool:
    return part is None or any(part.casefold() in text.casefold() for text in texts)
