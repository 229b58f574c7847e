"""What a pile of trace files holds, before there is any contract.

Belongs here: counting what is there. Does not belong here: keeping it (`ingest`) or judging it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.sources import Files, FolderFiles, Progress, PulledFiles, quiet
from benchmark_assets.adapters.traces import day_of, read_traces, why_unplaced
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.project import ProjectConfig, PulledSource, Source
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.pipeline.workspace import Workspace


class ToolUse(msgspec.Struct, frozen=True):
    """A tool, how often it was called, and how many of the calls failed."""

    name: str
    calls: int
    failed: int


class ModelOverview(msgspec.Struct, frozen=True, kw_only=True):
    """What there is of one model (None: traces that name none).

    `tokens` and `cost_usd` are sums over the traces that record them, of which there are
    `tokens_known` and `cost_known`. `failed` are runs in an error state, `unreadable` records
    that cannot be judged.
    """

    model: str | None
    traces: int
    tasks: int
    first_date: str | None
    last_date: str | None
    tokens: int | None
    tokens_known: int
    cost_usd: float | None
    cost_known: int
    failed: int
    unreadable: int


class Example(msgspec.Struct, frozen=True):
    """One trace to begin with: the file it is in, its id, and whether it is alone in there.

    `source` is the source on a server that it was pulled from; None if it is from a file.
    """

    file: str
    trace_id: str
    alone: bool
    source: str | None = None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What the files of all sources hold.

    `always_used` are the tools that succeeded in every trace of a workflow, `examples` a trace
    of each: one that ended well and without failed calls, if there is one.
    """

    files: int
    traces: int
    formats: dict[str, int]
    workflows: dict[str, int]
    models: tuple[ModelOverview, ...]
    tools: tuple[ToolUse, ...]
    always_used: dict[str, tuple[str, ...]]
    examples: dict[str, Example]
    problems: tuple[Problem, ...]
    error_rows: tuple[str, ...]


def look_around(workspace: Workspace, progress: Progress = quiet) -> Overview:
    """Read all files of all sources and count what is in them; nothing is written."""
    problems: list[Problem] = []
    project = workspace.project
    counted = _Counts(project.config)
    for source in project.config.sources:
        try:
            files = _files_of(workspace, source)
            listing = files.find()
        except InputError as error:
            problems += error.problems
            continue
        for number, found in enumerate(listing):
            progress("reading trace files", number, len(listing))
            counted.files += 1
            if found.wrong is not None:
                problems.append(Problem(found.wrong, file=found.shown))
                continue
            try:
                file = TraceFile(found.shown, found.key, files.read(found.key))
                snapshots = read_traces(
                    file,
                    project.config,
                    format_name=source.format,
                    default_date=source.default_date,
                )
                shown = shown_path(Path(found.shown))
                if isinstance(source, PulledSource):
                    counted.pulled_from[shown] = source.name
                counted.add(snapshots, shown)
            except OSError as error:
                reason = f"cannot be opened: {error.strerror or error}"
                problems.append(Problem(reason, file=found.shown))
            except InputError as error:
                problems += error.problems
    return counted.overview(problems)


def _files_of(workspace: Workspace, source: Source) -> Files:
    """A source's files: what was pulled before, if it is on a server.

    Raises:
        InputError: If there are none to look for.
    """
    if isinstance(source, PulledSource):
        return PulledFiles(workspace.store, source.name)
    return FolderFiles(workspace.project.source_path(source), workspace.store)


class _Counts:
    def __init__(self, config: ProjectConfig) -> None:
        self.files = 0
        self._config = config
        self.formats: Counter[str] = Counter()
        self.workflows: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self.failed_calls: Counter[str] = Counter()
        self.always: dict[str, set[str]] = {}
        self.examples: dict[str, tuple[tuple[bool, bool], str, str]] = {}
        self.in_file: dict[str, int] = {}
        self.pulled_from: dict[str, str] = {}
        self.models: dict[str | None, list[_Brief]] = defaultdict(list)
        self.error_rows: list[str] = []

    def add(self, snapshots: Iterable[TraceSnapshot], file: str) -> None:
        """Count the traces of a file; what was counted before the file broke off stays."""
        in_file = 0
        for snapshot in snapshots:
            in_file += 1
            self.in_file[file] = in_file
            self.formats[snapshot.origin.format] += 1
            problem = why_unplaced(snapshot, self._config) or snapshot.problem
            self.models[snapshot.model].append(_brief(snapshot, problem))
            if problem is not None:
                self.error_rows.append(f"trace {snapshot.trace_id}: {problem}")
                continue
            workflow = snapshot.workflow or ""
            self.workflows[workflow] += 1
            self._offer(workflow, file, snapshot)
            used = {call.name for call in snapshot.tool_calls if call.status != "error"}
            self.always[workflow] = self.always.get(workflow, used) & used
            for call in snapshot.tool_calls:
                self.calls[call.name] += 1
                self.failed_calls[call.name] += call.status == "error"

    def _offer(self, workflow: str, file: str, snapshot: TraceSnapshot) -> None:
        """Keep a trace as its workflow's example, if there is none with as few faults."""
        ended_well = snapshot.error is None and snapshot.ended_normally is not False
        faults = (not ended_well, any(call.status == "error" for call in snapshot.tool_calls))
        if workflow not in self.examples or faults < self.examples[workflow][0]:
            self.examples[workflow] = (faults, file, snapshot.trace_id)

    def overview(self, problems: list[Problem]) -> Overview:
        names = sorted(self.models, key=lambda name: (name is None, name or ""))
        return Overview(
            files=self.files,
            traces=self.formats.total(),
            formats=dict(sorted(self.formats.items())),
            workflows=dict(self.workflows.most_common()),
            models=tuple(_model(name, self.models[name]) for name in names),
            tools=tuple(
                ToolUse(name, count, self.failed_calls[name])
                for name, count in sorted(self.calls.items(), key=lambda item: (-item[1], item[0]))
            ),
            always_used={key: tuple(sorted(tools)) for key, tools in self.always.items()},
            examples={
                key: Example(file, trace_id, self.in_file[file] == 1, self.pulled_from.get(file))
                for key, (_, file, trace_id) in self.examples.items()
            },
            problems=tuple(problems),
            error_rows=tuple(self.error_rows),
        )


class _Brief(msgspec.Struct, frozen=True):
    task: str | None
    date: str | None
    tokens: int | None
    cost: float | None
    failed: bool
    unreadable: bool


def _brief(snapshot: TraceSnapshot, problem: str | None) -> _Brief:
    return _Brief(
        snapshot.task,
        day_of(snapshot),
        snapshot.tokens.total,
        snapshot.cost_usd,
        snapshot.error is not None or snapshot.ended_normally is False,
        problem is not None,
    )


def _model(name: str | None, traces: list[_Brief]) -> ModelOverview:
    dates = [trace.date for trace in traces if trace.date is not None]
    tokens = list(_known(trace.tokens for trace in traces))
    costs = list(_known(trace.cost for trace in traces))
    return ModelOverview(
        model=name,
        traces=len(traces),
        tasks=len({trace.task for trace in traces if trace.task is not None}),
        first_date=min(dates, default=None),
        last_date=max(dates, default=None),
        tokens=round(sum(tokens)) if tokens else None,
        tokens_known=len(tokens),
        cost_usd=sum(costs) if costs else None,
        cost_known=len(costs),
        failed=sum(trace.failed for trace in traces),
        unreadable=sum(trace.unreadable for trace in traces),
    )


def _known(values: Iterable[float | None]) -> Iterator[float]:
    return (value for value in values if value is not None)
