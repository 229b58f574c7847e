"""The agent harness: tools that act on a real project tree, and a record of every call.

Belongs here: the tools, the clock, and what a run costs. Does not belong here: which calls the
agent makes (`scripts`) or how a run is written to a file (`export`).

The agent is a script; everything else is real: a file that is read was on the disk, an edit
fails if its text is not there, a build looks at what was written. Times come from a seeded
clock and paths from a fixed workspace, so a run has the same bytes everywhere.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.app_builder.project import build_problems, page_problems, relative_path, tree

DATA = Path(__file__).parents[1] / "data" / "app_builder"
MODEL = "glm-5"
SYSTEM_TOKENS = 1800
MICRO_USD = {"input": 1.0, "input_cache_read": 0.2, "output": 3.2}
"""Prices of one token in millionths of a US dollar."""

_START = datetime(2026, 11, 2, 9, tzinfo=UTC)


class ToolError(Exception):
    """A call that failed; the text is what the agent is told."""


@dataclass(frozen=True)
class Call:
    """A call the agent makes.

    Attributes:
        outage: What the environment breaks this call with; None if it works.
        crash: Whether the outage is an error of the call, or a result that says so.
        seconds: How long the call takes; None leaves it to the clock.
    """

    tool: str
    arguments: dict[str, Any]
    outage: str | None = None
    crash: bool = False
    seconds: float | None = None


@dataclass(frozen=True)
class ModelOutage:
    """A request to the model that fails, as its provider words it; the harness asks again."""

    message: str


Step = Call | tuple[Call, ...] | ModelOutage
"""What one generation asks for: a call, or several at once."""


@dataclass(frozen=True)
class Script:
    """What the agent does in one run.

    Attributes:
        answer: Its last words; None if it never came to them.
        error: What stopped the run, after the last words if there are any.
        before: Files of the project that differ from the usual ones when the run begins.
    """

    steps: tuple[Step, ...]
    answer: str | None
    error: str | None = None
    before: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """What the user wants, and what they say when they are asked."""

    name: str
    workflow: str
    prompt: str
    answers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class CallRecord:
    """A call that was made; `result` is None exactly if `error` is not."""

    call: Call
    result: str | None
    error: str | None
    started_at: datetime
    ended_at: datetime


@dataclass(frozen=True)
class Turn:
    """One generation, and the calls it asked for. `usage` has disjoint buckets."""

    usage: dict[str, int]
    started_at: datetime
    ended_at: datetime
    text: str | None = None
    error: str | None = None
    calls: tuple[CallRecord, ...] = ()

    @property
    def cost(self) -> dict[str, float]:
        """US dollars by bucket, in whole millionths."""
        return {
            bucket: round(count * MICRO_USD[bucket]) / 1e6 for bucket, count in self.usage.items()
        }


@dataclass(frozen=True)
class Run:
    """A finished run: what was recorded, and the project as it was left."""

    trace_id: str
    task: Task
    variant: str
    started_at: datetime
    ended_at: datetime
    turns: tuple[Turn, ...]
    answer: str | None
    error: str | None
    files: dict[str, str]

    @property
    def calls(self) -> tuple[CallRecord, ...]:
        """All calls in the order in which they were asked for."""
        return tuple(record for turn in self.turns for record in turn.calls)


class Tools:
    """The harness's tools on one project; each returns the text that the agent gets."""

    def __init__(self, root: Path, answers: Mapping[str, str]) -> None:
        self._root = root
        self._answers = answers

    def call(self, call: Call) -> str:
        """Run one call.

        Raises:
            ToolError: If the call fails.
        """
        if call.outage is not None:
            if call.crash:
                raise ToolError(call.outage)
            return _text(status="error", message=call.outage)
        tools: dict[str, Callable[..., str]] = {
            "load_skill": self._load_skill,
            "read_files": self._read_files,
            "search_files": self._search_files,
            "write_file": self._write_file,
            "edit_file": self._edit_file,
            "delete_file": self._delete_file,
            "move_file": self._move_file,
            "build_project": self._build_project,
            "validate_project": self._validate_project,
            "ask_user": self._ask_user,
        }
        try:
            return tools[call.tool](**call.arguments)
        except (ValueError, OSError) as error:
            raise ToolError(str(error).replace(str(self._root), "")) from error

    def _file(self, path: str, *, there: bool) -> Path:
        file = self._root / relative_path(path)
        if there and not file.is_file():
            raise ToolError(f"File not found: {path}")
        return file

    def _load_skill(self, skill_name: str) -> str:
        file = DATA / "skills" / f"{skill_name}.md"
        if not file.is_file():
            return _text(status="error", message=f"There is no skill '{skill_name}'")
        return _text(status="success", skill_name=skill_name, content=_read(file))

    def _read_files(self, paths: list[str]) -> str:
        files = [{"path": path, "content": _read(self._file(path, there=True))} for path in paths]
        return _text(files=files)

    def _search_files(self, pattern: str) -> str:
        try:
            regex = re.compile(pattern)
        except re.error as error:
            raise ToolError(f"Invalid pattern: {error}") from error
        return _text(
            matches=[
                {"path": path, "line": number, "text": line.strip()}
                for path, content in tree(self._root).items()
                for number, line in enumerate(content.splitlines(), 1)
                if regex.search(line)
            ]
        )

    def _write_file(self, path: str, content: str) -> str:
        file = self._file(path, there=False)
        operation = "updated" if file.exists() else "created"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
        return _text(status="success", operation=operation, path=path)

    def _edit_file(self, path: str, old_string: str, new_string: str) -> str:
        file = self._file(path, there=True)
        content = _read(file)
        found = content.count(old_string)
        if found != 1:
            raise ToolError(f"old_string must occur once in {path}, and occurs {found} times")
        file.write_text(content.replace(old_string, new_string), encoding="utf-8")
        return _text(status="success", operation="updated", path=path)

    def _delete_file(self, path: str) -> str:
        self._file(path, there=True).unlink()
        return _text(status="success", operation="deleted", path=path)

    def _move_file(self, source: str, destination: str) -> str:
        target = self._file(destination, there=False)
        if target.exists():
            raise ToolError(f"File exists: {destination}")
        target.parent.mkdir(parents=True, exist_ok=True)
        self._file(source, there=True).rename(target)
        return _text(status="success", operation="moved", source=source, destination=destination)

    def _build_project(self, target: str) -> str:
        problems = build_problems(self._root, target)
        lines = [f"Building {target}", *(f"[ERROR] {problem}" for problem in problems)]
        return "\n".join([*lines, "BUILD FAILURE" if problems else "BUILD SUCCESS"])

    def _validate_project(self) -> str:
        issues = page_problems(self._root)
        return _text(status="invalid" if issues else "valid", issues=issues)

    def _ask_user(self, question: str) -> str:
        return _text(answer=self._answers.get(question, "I do not know, please decide yourself."))


class _Recorder:
    """Keeps the clock and the length of the context while the steps go by."""

    def __init__(self, tools: Tools, task: Task, seed: str) -> None:
        self._tools = tools
        self._random = random.Random(seed)  # .random() is the same in every Python version.
        self._context = SYSTEM_TOKENS + _tokens(task.prompt)
        self._cached = 0
        self.now = _START + timedelta(seconds=int(self._random.random() * 3600))
        self.started_at = self.now
        self.turns: list[Turn] = []

    def step(self, step: Step) -> None:
        """Let the model ask for a step's calls, and run them; they start at the same time."""
        if isinstance(step, ModelOutage):
            started = self.now
            self._wait(0.5, 1.5)
            self.turns.append(Turn({}, started, self.now, error=step.message))
            return
        calls = step if isinstance(step, tuple) else (step,)
        turn = self._generate(json.dumps([call.arguments for call in calls]))
        asked_at = self.now
        records = tuple(self._call(call, asked_at) for call in calls)
        self.turns.append(Turn(*turn, calls=records))

    def say(self, text: str) -> None:
        """Let the model end its work with a text."""
        self.turns.append(Turn(*self._generate(text), text=text))

    def _call(self, call: Call, started: datetime) -> CallRecord:
        try:
            result, error = self._tools.call(call), None
        except ToolError as failure:
            result, error = None, str(failure)
        self._context += _tokens(result or error or "")
        self._wait(*((0.02, 0.4) if call.seconds is None else (call.seconds, call.seconds)))
        return CallRecord(call, result, error, started, self.now)

    def _generate(self, output: str) -> tuple[dict[str, int], datetime, datetime]:
        usage = {
            "input": self._context - self._cached,
            "input_cache_read": self._cached,
            "output": _tokens(output) + 12,
        }
        self._cached = self._context
        self._context += usage["output"]
        started = self.now
        self._wait(0.8, 3.0)
        return usage, started, self.now

    def _wait(self, low: float, high: float) -> None:
        seconds = low + (high - low) * self._random.random()
        self.now += timedelta(milliseconds=round(seconds * 1000))


def play(task: Task, variant: str, script: Script, root: Path, seed: int = 1) -> Run:
    """Play a script in a fresh copy of the project at `root`, and return what it left."""
    shutil.copytree(DATA / "project", root)
    for path, content in script.before.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content, encoding="utf-8")
    key = f"{task.name}/{variant}/{seed}"
    recorder = _Recorder(Tools(root, task.answers), task, key)
    for step in script.steps:
        recorder.step(step)
    if script.answer is not None:
        recorder.say(script.answer)
    return Run(
        trace_id=hashlib.sha256(key.encode()).hexdigest()[:32],
        task=task,
        variant=variant,
        started_at=recorder.started_at,
        ended_at=recorder.now,
        turns=tuple(recorder.turns),
        answer=script.answer,
        error=script.error,
        files=tree(root),
    )


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _text(**result: Any) -> str:
    return json.dumps(result)


def _tokens(text: str) -> int:
    """Four characters a token, rounded up."""
    return -(-len(text) // 4)
