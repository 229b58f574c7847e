"""Eval sets of the Agent Development Kit (ADK) as fixtures, and as the golden traces they hold.

An eval case is a conversation: what the user said in each turn, the tool calls that are expected
in answer, and a reference answer. It becomes one fixture of one path, which is what ADK's own
default demands (`EXACT`: the same calls with the same arguments in the same order). Belongs here:
reading the three forms that such files have had. Does not belong here: ADK's metrics, or its
records of runs.

* A list of turns, each with `query`, `expected_tool_use` and `reference`: one conversation.
* A list of conversations of such turns: objects with `name` and `data`.
* An eval set: an object with `eval_cases`, each a `conversation` of invocations. The tool calls
  are in `intermediate_data`, as `tool_uses` or inside `invocation_events`. Keys in camel case are
  read, too.

What becomes of it:

* `input.user` is the first turn, `input.turns` are the others. What the session starts with is in
  `comment`: it is the agent's matter, and no demand on it.
* The calls of all turns are one path. Arguments are compared as they stand, and an argument that
  is not expected is wrong.
* Of the last turn's reference answer each line must be said, if it has one. Answers of turns before
  that are not demanded: a recorded trace ends with one payload. What a model says in its own words
  will differ; `answers=False` leaves words out.

A case that simulates its user (`conversation_scenario`) has no path that could be frozen: an error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from benchmark_assets.adapters.formats.base import TraceFile, text_or_none
from benchmark_assets.model.identity import canonical_json
from benchmark_assets.model.matchers import reads_as_matcher
from benchmark_assets.model.problem import InputError, Problem

VERSION = "1"
RENAME = "rename all but one"

_SUFFIXES = re.compile(r"(\.evalset|\.test)?(\.json)?$")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")


class Call(NamedTuple):
    """A tool call that is expected."""

    name: str
    arguments: dict[str, Any]


class Turn(NamedTuple):
    """What the user said, what the agent is to do, and what it is to answer; None if not said."""

    user: str
    calls: tuple[Call, ...]
    answer: str | None


class EvalCase(NamedTuple):
    """One conversation.

    Attributes:
        fixture_id: Made of the case's own name; usable as a file name.
        name: What the file calls it.
        state: What the session starts with.
        key: Where it stands in the file; empty if the whole file is this conversation.
    """

    fixture_id: str
    name: str
    turns: tuple[Turn, ...]
    state: dict[str, Any]
    key: str = ""

    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls of all turns."""
        return tuple(call for turn in self.turns for call in turn.calls)


def is_eval_set(data: Any) -> bool:
    """Whether JSON data looks like an eval set, in any of its forms."""
    if isinstance(data, dict):
        return isinstance(_get(data, "eval_cases"), list)
    return (
        isinstance(data, list)
        and bool(data)
        and all(isinstance(item, dict) for item in data)
        and (all("query" in item for item in data) or all("data" in item for item in data))
    )


def cases_of(data: Any, name: str = "eval set", file: str | None = None) -> list[EvalCase]:
    """The conversations of an eval set.

    Args:
        data: The file's JSON value.
        name: What a conversation without a name of its own is called: the file's name.
        file: What problems call the file.

    Raises:
        InputError: If it is no eval set; or, all at once, for what is wrong with its cases.
    """
    cases, problems = read_cases(data, name, file)
    if problems:
        raise InputError(problems)
    return cases


LineOf = Callable[[str], int | None]
"""Key of a value → its line; keys are in snake case, whatever the file has."""


def read_cases(
    data: Any, name: str = "eval set", file: str | None = None, line_of: LineOf | None = None
) -> tuple[list[EvalCase], list[Problem]]:
    """The good conversations of an eval set, and what is wrong with the others.

    Args:
        data: The file's JSON value.
        name: What a conversation without a name of its own is called: the file's name.
        file: What problems call the file.
        line_of: Where in the file a key stands.

    Raises:
        InputError: If it is no eval set.
    """
    if not is_eval_set(data):
        raise InputError(
            Problem(
                "is no ADK eval set",
                file=file,
                line=None if line_of is None else line_of(""),
                cure="expected an object with eval_cases, or a list of turns with query",
            )
        )
    reader = _Reader(file, line_of)
    read = [reader.case(*found) for found in _raw_cases(data, name)]
    if not read:
        reader.complain("eval_cases", "is empty", "add a case, or remove the file")
    cases = [case for case in read if case is not None]
    counts = Counter(case.fixture_id for case in cases)
    for fixture_id, count in counts.items():
        if count > 1:
            last = [case.key for case in cases if case.fixture_id == fixture_id][-1]
            reader.complain(last, f"{count} cases would be called {fixture_id}", RENAME)
    return [case for case in cases if counts[case.fixture_id] == 1], reader.problems


def fixtures_of(data: Any, name: str = "eval set", *, answers: bool = True) -> list[dict[str, Any]]:
    """The fixtures of an eval set, in the form in which people write them.

    Args:
        data: The file's JSON value.
        name: What a conversation without a name of its own is called.
        answers: Whether the reference answer of the last turn must be said.

    Raises:
        InputError: As `cases_of`.
    """
    return [fixture_of(case, answers=answers) for case in cases_of(data, name)]


def fixture_of(case: EvalCase, *, answers: bool = True) -> dict[str, Any]:
    """One conversation as a fixture."""
    first, *others = case.turns
    given: dict[str, Any] = {"user": first.user}
    if others:
        given["turns"] = [turn.user for turn in others]
    expect: dict[str, Any] = {"allowed_paths": [[_step(call) for call in case.calls]]}
    said = _lines(case.turns[-1].answer) if answers else []
    if said:
        expect["contains"] = said
    return {
        "id": case.fixture_id,
        "version": VERSION,
        "comment": f"ADK eval case {case.name}" + _starting(case.state),
        "input": given,
        "expect": expect,
    }


def golden_trace_of(case: EvalCase) -> dict[str, Any]:
    """The trace that an eval case describes, in the recorder's format."""
    answer = case.turns[-1].answer
    return {
        "fixture": case.fixture_id,
        "input": {"user": case.turns[0].user},
        "tools": [{"name": call.name, "arguments": call.arguments} for call in case.calls],
        "asked_clarification": False,
        "questions": [],
        "final": None if answer is None else {"answer": answer},
    }


def import_fixtures(file: TraceFile) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Each fixture of a file with its golden trace.

    Raises:
        InputError: As `cases_of`.
    """
    cases = cases_of(file.json, PurePosixPath(file.key).name, file.name)
    return [(fixture_of(case), golden_trace_of(case)) for case in cases]


def _step(call: Call) -> dict[str, Any]:
    """A call as a step of a path: with just these arguments."""
    args = {key: _literal(value) for key, value in call.arguments.items()}
    return {"tool": call.name, "args": args, "args_mode": "exact"}


def _starting(state: dict[str, Any]) -> str:
    return f"; its session starts with {canonical_json(state).decode()}" if state else ""


def _literal(value: Any) -> Any:
    return {"literal": value} if reads_as_matcher(value) else value


def _lines(answer: str | None) -> list[str]:
    """The lines of an answer, each once: a payload that is JSON writes line breaks otherwise."""
    return list(dict.fromkeys(line.strip() for line in (answer or "").splitlines() if line.strip()))


def _raw_cases(data: Any, name: str) -> Iterator[tuple[str, str, str, Any, Any, Any]]:
    """Key, key of turns, name, turns, session and scenario of each case, as the file has them."""
    if isinstance(data, dict):
        for index, item in enumerate(_get(data, "eval_cases")):
            case = item if isinstance(item, dict) else {}
            named = text_or_none(_get(case, "eval_id")) or f"{name}-{index + 1}"
            scenario = _get(case, "conversation_scenario")
            session = _get(case, "session_input")
            key = f"eval_cases[{index}]"
            turns = _get(case, "conversation")
            yield key, f"{key}.conversation", named, turns, session, scenario
    elif "query" in data[0]:
        yield "", "", name, data, None, None
    else:
        for index, item in enumerate(data):
            named = text_or_none(item.get("name")) or f"{name}-{index + 1}"
            session = item.get("initial_session")
            yield f"[{index}]", f"[{index}].data", named, item["data"], session, None


def _get(item: Any, key: str) -> Any:
    """A value by its key in snake or in camel case; None if there is none."""
    if not isinstance(item, dict):
        return None
    head, *rest = key.split("_")
    return item.get(key, item.get(head + "".join(map(str.capitalize, rest))))


def _file_name(name: str) -> str:
    """A case's name as the name of a file: without the endings that name eval files."""
    stem = _SUFFIXES.sub("", name.replace("\\", "/"))
    return _UNSAFE.sub("-", stem).strip("-.") or "case"


class _Reader:
    """Reads cases and keeps what is wrong with them, each at its key."""

    def __init__(self, file: str | None, line_of: LineOf | None = None) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._line_of = line_of or (lambda _: None)

    def complain(self, key: str, message: str, cure: str) -> None:
        line = self._line_of(key)
        self.problems.append(
            Problem(message, file=self._file, line=line, key=key or None, cure=cure)
        )

    def case(
        self, key: str, place: str, name: str, turns: Any, session: Any, scenario: Any
    ) -> EvalCase | None:
        """Read one case; None if something is wrong with it."""
        state = _get(session, "state")
        before = len(self.problems)
        if scenario is not None:
            self.complain(
                f"{key}.conversation_scenario",
                "a simulated user leads to no fixed path",
                "record a run of it and write a fixture",
            )
        elif not isinstance(turns, list) or not turns:
            self.complain(place, "expected a list of turns", "write one turn or more")
        read = tuple(
            self._turn(f"{place}[{i}]", turn)
            for i, turn in enumerate(turns if isinstance(turns, list) else ())
        )
        if len(self.problems) > before:
            return None
        return EvalCase(_file_name(name), name, read, state if isinstance(state, dict) else {}, key)

    def _turn(self, key: str, turn: Any) -> Turn:
        if isinstance(turn, dict) and "query" in turn:
            return self._old_turn(key, turn)
        user = _text(_get(turn, "user_content"))
        if user is None:
            cure = 'write {"parts": [{"text": "…"}]}'
            self.complain(f"{key}.user_content", "expected what the user said", cure)
        data = _get(turn, "intermediate_data")
        found = _get(data, "tool_uses")
        where = f"{key}.intermediate_data.tool_uses"
        if found is None:
            found = [*_calls_in_events(_get(data, "invocation_events"))]
            where = f"{key}.intermediate_data.invocation_events"
        calls = self._calls(where, found, "name", "args")
        return Turn(user or "", calls, _text(_get(turn, "final_response")))

    def _old_turn(self, key: str, turn: dict[str, Any]) -> Turn:
        user = text_or_none(turn["query"])
        if user is None:
            self.complain(f"{key}.query", "expected what the user said", "write a text")
        found = turn.get("expected_tool_use") or []
        calls = self._calls(f"{key}.expected_tool_use", found, "tool_name", "tool_input")
        return Turn(user or "", calls, text_or_none(turn.get("reference")))

    def _calls(self, key: str, found: Any, name_key: str, args_key: str) -> tuple[Call, ...]:
        if not isinstance(found, list):
            cure = f'write [{{"{name_key}": "…", "{args_key}": {{}}}}], or [] for none'
            self.complain(key, "expected a list of tool calls", cure)
            return ()
        calls = []
        for index, item in enumerate(found):
            name, args = text_or_none(_get(item, name_key)), _get(item, args_key)
            if name is None:
                where = f"{key}[{index}].{name_key}"
                self.complain(where, "expected the name of a tool", "write a text")
            if args is not None and not isinstance(args, dict):
                where = f"{key}[{index}].{args_key}"
                self.complain(where, "expected an object", "write arguments by name, or {}")
            calls.append(Call(name or "", args if isinstance(args, dict) else {}))
        return tuple(calls)


def _text(content: Any) -> str | None:
    """All texts of a content's parts, thoughts left out; None if there is none."""
    parts = _get(content, "parts")
    texts = [
        text
        for part in (parts if isinstance(parts, list) else ())
        if (text := text_or_none(_get(part, "text"))) and _get(part, "thought") is not True
    ]
    return "\n".join(texts) or None


def _calls_in_events(events: Any) -> Iterator[Any]:
    for event in events if isinstance(events, list) else ():
        parts = _get(_get(event, "content"), "parts")
        for part in parts if isinstance(parts, list) else ():
            call = _get(part, "function_call")
            if call is not None:
                yield call
