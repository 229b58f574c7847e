"""What the calls of a trace did to the world: skills, files, builds, questions.

Belongs here: choosing a harness profile and applying it to a trace. Does not belong here: what
any tool does (the profiles say so), reading command lines (`shell`), or whether it was right
(the plugins).

What is counted: every effect of every call once, in the order of the calls. A call that failed
has its effects listed with status `error`. A call that reads or writes five files is five
events. What a trace states itself about its skills or its files is taken as it is, and nothing
is derived for that kind.

Created or updated: a tool that says which it does is believed. Else the result may show it; else
it follows from what this trace did with the same file before: whoever has read or written it,
or failed to find it or deleted it. Else the event stays `write`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from benchmark_assets.model.harness import Effect, HarnessProfile, Sign
from benchmark_assets.model.identity import canonical_json
from benchmark_assets.model.problem import did_you_mean
from benchmark_assets.model.trace import (
    CallStatus,
    FileEvent,
    FileOperation,
    Replacement,
    SkillLoad,
    ToolCall,
    TraceSnapshot,
)
from benchmark_assets.scoring.matching import any_glob
from benchmark_assets.scoring.paths import normal_path, under
from benchmark_assets.scoring.places import (
    Found,
    Position,
    belongs,
    first_at,
    found_at,
    list_length,
    shown,
    text_of,
)
from benchmark_assets.scoring.shell import ShellEvent, ShellRun, read_command_line

BuildKind = Literal["build", "validate"]


@dataclass(frozen=True, slots=True)
class Build:
    """One run of a build or a check. `call` is the index of the tool call.

    `status` None: it ran, and the trace does not show whether it passed.
    """

    call: int
    status: CallStatus | None
    kind: BuildKind


@dataclass(frozen=True, slots=True)
class Activity:
    """What a trace did. Indices are those of the trace's tool calls.

    Attributes:
        harness: Name of the profile that was applied; None if none knows any of the tools.
        skills: Every attempt to load a skill.
        files: Every file read, changed or moved, or attempted to. `write`: created or updated,
            and nothing tells which. A folder removed as a whole is one `delete`.
        builds: Every build and check.
        questions: Calls that ask the user.
        opaque: Calls that may have changed files that no event names.
        unseen_reads: Calls that read files that no event names.
        unknown: Calls of tools that the profile does not know, which may have done anything, and
            of those that load a skill and name none.
        roots: Absolute or relative paths of the workspace, from the trace's metadata.
    """

    harness: str | None = None
    skills: tuple[SkillLoad, ...] = ()
    files: tuple[FileEvent, ...] = ()
    builds: tuple[Build, ...] = ()
    questions: tuple[int, ...] = ()
    opaque: tuple[int, ...] = ()
    unseen_reads: tuple[int, ...] = ()
    unknown: tuple[int, ...] = ()
    roots: tuple[str, ...] = ()


def interpret(
    trace: TraceSnapshot, profiles: Sequence[HarnessProfile], named: str | None = None
) -> Activity:
    """Say what a trace did, by the profile of its harness.

    Args:
        trace: The trace.
        profiles: Those to choose from; of equally good ones the first is taken.
        named: The profile to apply, whatever tools the trace uses.

    Raises:
        ValueError: If no profile is called `named`.
    """
    return interpret_by(trace, choose_profile(trace, profiles, named))


def interpret_by(trace: TraceSnapshot, profile: HarnessProfile | None) -> Activity:
    """Say what a trace did, as one profile reads it; without one, as far as it states it itself."""
    if profile is None:
        return Activity(skills=trace.skills, files=trace.files)
    found = _Interpreter(trace, profile).run()
    return replace(found, skills=trace.skills or found.skills, files=trace.files or found.files)


def choose_profile(
    trace: TraceSnapshot, profiles: Sequence[HarnessProfile], named: str | None = None
) -> HarnessProfile | None:
    """The profile called `named`, else the one that recognises most of the trace's tools.

    Tools count once however often they are called. None if no profile recognises any.

    Raises:
        ValueError: If no profile is called `named`.
    """
    if named is not None:
        for profile in profiles:
            if profile.name == named:
                return profile
        names = [profile.name for profile in profiles]
        cure = did_you_mean(named, names) or f"known are {', '.join(names) or 'none'}"
        raise ValueError(f"no harness profile is called '{named}'; {cure}")
    tools = {call.name for call in trace.tool_calls}
    best, most = None, 0
    for profile in profiles:
        recognised = sum(map(any_glob(profile.recognised_by), tools))
        if recognised > most:
            best, most = profile, recognised
    return best


def effects_of(profile: HarnessProfile, tool: str) -> tuple[Effect, ...] | None:
    """What a profile says a tool does; None if it does not know the tool."""
    if tool in profile.tools:
        return profile.tools[tool]
    for glob, effects in profile.tools.items():
        if any_glob((glob,))(tool):
            return effects
    return None


def workspace_roots(profile: HarnessProfile, metadata: dict[str, Any]) -> tuple[str, ...]:
    """The workspace roots that a trace's metadata state, in the order of the profile's keys."""
    values: list[Any] = []
    for place in profile.workspace:
        # Some sources flatten nested metadata into keys with dots in them.
        flat = [Found(metadata[place])] if place in metadata else []
        for value in (found.value for found in flat or found_at(metadata, place)):
            values += value if isinstance(value, list) else [value]
    texts = [value for value in values if isinstance(value, str) and value.strip()]
    return tuple(dict.fromkeys(texts))


class _Interpreter:
    """Goes through the calls of one trace in order."""

    def __init__(self, trace: TraceSnapshot, profile: HarnessProfile) -> None:
        self.trace = trace
        self.profile = profile
        self.roots = workspace_roots(profile, trace.metadata)
        self.files = _Files(self.roots)
        self.skills: list[SkillLoad] = []
        self.builds: list[Build] = []
        self.noted: dict[str, list[int]] = {
            kind: [] for kind in ("questions", "opaque", "unseen_reads", "unknown")
        }
        self._directory: dict[str | None, str | None] = {}

    def run(self) -> Activity:
        """What all calls did."""
        known: dict[str, tuple[Effect, ...] | None] = {}
        for index, call in enumerate(self.trace.tool_calls):
            if call.name not in known:
                known[call.name] = effects_of(self.profile, call.name)
            effects = known[call.name]
            if effects is None:
                self._note("unknown", index)
            for effect in effects or ():
                if _applies(effect, call.arguments):
                    self._apply(effect, call, index)
            if index in self.noted["opaque"][-1:] + self.noted["unknown"][-1:]:
                self.files.forget()
        return Activity(
            harness=self.profile.name,
            skills=tuple(self.skills),
            files=tuple(self.files.events),
            builds=tuple(self.builds),
            roots=self.roots,
            **{kind: tuple(indices) for kind, indices in self.noted.items()},
        )

    def _note(self, kind: str, index: int) -> None:
        if self.noted[kind][-1:] != [index]:
            self.noted[kind].append(index)

    def _apply(self, effect: Effect, call: ToolCall, index: int) -> None:
        kind = effect.effect
        if kind == "load_skill":
            self._load_skills(effect, call, index)
        elif kind == "shell":
            self._shell(effect, call, index)
        elif kind == "build" or kind == "validate":
            self.builds.append(Build(index, _status(call, effect), kind))
        elif kind == "ask_user":
            self._note("questions", index)
        elif kind == "opaque":
            self._note("opaque", index)
        elif kind != "none":
            self._files(kind, effect, call, index)

    def _load_skills(self, effect: Effect, call: ToolCall, index: int) -> None:
        names = first_at(call.arguments, effect.name, str)
        statuses = _statuses(call, effect, names)
        for found, status in zip(names, statuses, strict=True):
            self.skills.append(SkillLoad(name=found.value, status=status, call=index))
        if not names:
            self._note("unknown", index)

    def _files(self, kind: FileOperation, effect: Effect, call: ToolCall, index: int) -> None:
        paths = first_at(call.arguments, effect.path, str)
        if not paths:
            self._note("unseen_reads" if kind == "read" else "opaque", index)
        written = _written(kind, effect, call, single=len(paths) == 1)
        targets = first_at(call.arguments, effect.to, str)
        created = _per_file(call.result, effect.created, paths)
        updated = _per_file(call.result, effect.updated, paths)
        statuses = _statuses(call, effect, paths)
        signs = effect.missing if "error" in statuses else ()
        missing = _per_file(_evidence(call), signs, paths)
        for i, status in enumerate(statuses):
            at = paths[i].position
            operation: FileOperation = "create" if created[i] else "update" if updated[i] else kind
            event = FileEvent(
                path=paths[i].value,
                operation=operation,
                status=status,
                moved_to=next((t.value for t in targets if belongs(t.position, at)), None),
                call=index,
                **({} if kind == "read" and status == "error" else written(at)),
            )
            happened = status == "ok" or (status is None and call.status is None)
            self.files.add(event, happened=happened, missing=bool(missing[i]))

    def _shell(self, effect: Effect, call: ToolCall, index: int) -> None:
        commands = first_at(call.arguments, effect.command, str)
        if not commands:
            self._note("opaque", index)
            return
        started_in = self._directory.get(call.agent, "")
        reading = read_command_line(commands[0].value, started_in, self.profile.commands)
        status = _status(call, effect)
        if status == "ok" and shown(call.result, effect.unfinished):
            status = None
        not_there = _not_there(call.result) if reading.events else ()
        for event in reading.events:
            self._shell_event(event, status, call, index, not_there)
        for run in reading.runs:
            self.builds.append(Build(index, _run_status(run, status, call), run.kind))
        if reading.opaque:
            self._note("opaque", index)
        if reading.unseen_read:
            self._note("unseen_reads", index)
        if effect.keeps_directory and reading.moved:
            self._directory[call.agent] = None if status == "error" else reading.directory
        if shown(call.result, effect.directory_reset):
            self._directory[call.agent] = ""

    def _shell_event(
        self,
        event: ShellEvent,
        line: CallStatus | None,
        call: ToolCall,
        index: int,
        not_there: Sequence[str],
    ) -> None:
        status = _part_status(line, sure=event.sure, last=event.last)
        path = f"/{normal_path(event.path)}"
        missing = status != "ok" and any(path.endswith(f"/{name}") for name in not_there)
        status = "error" if missing else status
        self.files.add(
            FileEvent(
                path=event.path,
                operation=event.operation,
                status=status,
                content=event.content,
                text=event.text,
                moved_to=event.moved_to,
                call=index,
            ),
            happened=status == "ok" or (line is None and event.sure and not missing),
            missing=missing,
        )


class _Files:
    """The files of one trace: what happened to them, and which are known to exist."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.events: list[FileEvent] = []
        self._roots = tuple(map(normal_path, roots))
        self._exists: dict[str, bool] = {}

    def add(self, event: FileEvent, *, happened: bool, missing: bool = False) -> None:
        """Add an event, told apart as created or updated if what is known of the file does.

        Args:
            event: What was done or attempted.
            happened: Whether it was done for all that is known.
            missing: Whether it failed because there is no such file.
        """
        key = self._key(event.path)
        if event.operation == "write" and key in self._exists:
            operation: FileOperation = "update" if self._exists[key] else "create"
            event = msgspec.structs.replace(event, operation=operation)
        self.events.append(event)
        if happened:
            self._exists[key] = event.operation not in ("delete", "move")
            if event.moved_to is not None:
                self._exists[self._key(event.moved_to)] = True
        elif missing and event.status == "error":
            self._exists[key] = False
        elif event.status is None and event.operation != "read":
            self._exists.pop(key, None)
            self._exists.pop(self._key(event.moved_to or ""), None)

    def forget(self) -> None:
        """Something unseen may have happened to any file."""
        self._exists.clear()

    def _key(self, path: str) -> str:
        normal = normal_path(path)
        inside = (under(normal, root) for root in self._roots)
        return next((part for part in inside if part is not None), normal)


# What a call says about the content of files.


def _written(
    kind: FileOperation, effect: Effect, call: ToolCall, *, single: bool
) -> Callable[[Position], dict[str, Any]]:
    """What a call says about the content of each file, by the file's position.

    An `update` whose old text is unknown shows what was put in and not the whole file.
    """
    source = call.result if kind == "read" else call.arguments
    contents = first_at(source, effect.content, str if kind == "read" else object)
    if kind == "read" and not single:
        # One text for several files belongs to none of them alone.
        contents = [found for found in contents if found.position]
    parts = [found for place in effect.part for found in found_at(call.arguments, place)]
    olds = first_at(call.arguments, effect.old, str)
    everywhere = first_at(call.arguments, effect.everywhere)

    def of_file(at: Position) -> dict[str, Any]:
        own = [found for found in contents if belongs(found.position, at)]
        if kind == "read" and any(belongs(found.position, at) for found in parts):
            return {"text": _joined(found.value for found in own)}
        if kind != "update":
            return {"content": _joined(found.value for found in own)}
        edits = tuple(
            Replacement(
                old=old.value,
                new=_joined(found.value for found in own if found.position == old.position) or "",
                everywhere=any(
                    e.value is True and belongs(e.position, old.position) for e in everywhere
                ),
            )
            for old in olds
            if belongs(old.position, at)
        )
        return {"edits": edits} if edits else {"text": _joined(found.value for found in own)}

    return of_file


# What the arguments, the status and the result of a call show.


def _applies(effect: Effect, arguments: Any) -> bool:
    wanted = all(shown(arguments, (sign,)) for sign in effect.when)
    return wanted and not shown(arguments, effect.unless)


def _evidence(call: ToolCall) -> Any:
    return call.error if call.result is None else call.result


def _status(call: ToolCall, effect: Effect) -> CallStatus | None:
    """Whether a call did what the effect says; None if nothing tells."""
    if call.status == "error" or call.error is not None or shown(call.result, effect.failed):
        return "error"
    return "ok" if call.status == "ok" or shown(call.result, effect.succeeded) else None


def _statuses(call: ToolCall, effect: Effect, items: Sequence[Found]) -> list[CallStatus | None]:
    """The status of each of the things that one call does it to."""
    if call.status == "error" or call.error is not None:
        return ["error" for _ in items]
    failed = _per_file(call.result, effect.failed, items)
    succeeded = _per_file(call.result, effect.succeeded, items)
    statuses: list[CallStatus | None] = []
    for bad, good in zip(failed, succeeded, strict=True):
        if bad:
            statuses.append("error")
        else:
            statuses.append("ok" if bad is False and (good or call.status == "ok") else None)
    return statuses


def _per_file(result: Any, signs: Sequence[Sign], items: Sequence[Found]) -> list[bool | None]:
    """Whether a result shows one of the signs for each thing that a call names.

    A sign that stands in a list of as many results as things belongs to one of them each; in a
    list of another length it belongs to nobody knows which: None for all. A sign for the call as
    a whole belongs to all, unless there are signs for one of them each.
    """
    answers: list[bool | None] = [False for _ in items]
    whole = False
    for sign in signs:
        found = shown(result, (sign,))
        length = list_length(result, sign.at)
        if length is None:
            whole = whole or bool(found)
        elif found and length != len(items):
            return [None for _ in items]
        else:
            for one in found:
                answers[one.position[0]] = True
    return [whole for _ in items] if whole and not any(answers) else answers


def _part_status(line: CallStatus | None, *, sure: bool, last: bool) -> CallStatus | None:
    """The status of one command of a line, by the whole line's."""
    if line == "error":
        return "error" if last else None
    return line if sure else None


_NOT_THERE = re.compile(
    r"^[^\s:]+: (?:line [0-9]+: |(?:cannot|can't) [a-z]+(?: [a-z]+)? )?(?P<path>\S.*?)"
    r"(?: for [a-z]+)?: No such file or directory$",
    re.MULTILINE,
)


def _not_there(result: Any) -> tuple[str, ...]:
    """Paths that commands printed not to have found, for lines whose status does not tell."""
    text = text_of(result)
    if "No such file" not in text:
        return ()
    named = (found["path"].strip("'\"‘’`") for found in _NOT_THERE.finditer(text))
    return tuple(normal_path(path).lstrip("/") for path in named)


def _run_status(run: ShellRun, line: CallStatus | None, call: ToolCall) -> CallStatus | None:
    """Whether a build or check passed: by what it printed, else by the line's status."""
    if shown(call.result, run.command.failed):
        return "error"
    status = _part_status(line, sure=run.sure, last=run.last)
    if status is None and shown(call.result, run.command.succeeded):
        return "ok"
    return status


def _joined(values: Iterable[Any]) -> str | None:
    """Contents as one text; what is no text, as its JSON."""
    texts = [
        value if isinstance(value, str) else canonical_json(value).decode() for value in values
    ]
    return "\n".join(texts) if texts else None
