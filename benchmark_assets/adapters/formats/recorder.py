"""What the recorder of golden traces writes: tools called, questions asked, the final payload.

Only `tools` is always there. A trace that says whether a question was asked and not when keeps
just that (`asked_clarification`); with `questions` the order is known. A recording whose agent
raised, hung or exited has an `error`, and is in error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import (
    TraceFile,
    id_or_none,
    parse_time,
    text_or_none,
    whole_number,
)
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import Message, Tokens, ToolCall, TraceSnapshot

# What other formats of objects with `tools` have: there they are definitions of tools.
_OTHERS = frozenset({"messages", "trace_id", "observations", "spans", "entries", "steps"})
_DEFINES = frozenset({"input_schema", "inputSchema", "parameters", "function"})


class RecorderFormat:
    """Reads recorded candidate and golden traces."""

    name = "recorder"
    description = "recorded golden and candidate traces: tools, questions, final payload"

    def matches(self, file: TraceFile) -> bool:
        """Objects with `tools`, each with a name, and nothing of the other formats."""
        return any(_is_recording(value) for value in file.records())

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield a snapshot for each recording."""
        for record, value in _records(file):
            if isinstance(value, InputError):
                yield _error_row(file, record, str(value).replace(file.name, file.key))
            elif not _is_recording(value):
                place = f"{file.key}: {record}" if record else file.key
                problem = f"{place}: is no recording: expected an object with a list of `tools`"
                yield _error_row(file, record, problem)
            else:
                yield _snapshot(file, record, value)


def _records(file: TraceFile) -> Iterator[tuple[str | None, Any]]:
    if not file.is_json:
        for number, value in file.lines():
            yield f"line {number}", value
    elif isinstance(file.json, list):
        for index, value in enumerate(file.json):
            yield f"[{index}]", value
    else:
        yield None, file.json


def _is_recording(value: Any) -> bool:
    if not isinstance(value, dict) or not _OTHERS.isdisjoint(value):
        return False
    tools = value.get("tools")
    return isinstance(tools, list) and all(
        isinstance(tool, dict)
        and isinstance(tool.get("name"), str)
        and tool["name"]
        and _DEFINES.isdisjoint(tool)
        for tool in tools
    )


def _error_row(file: TraceFile, record: str | None, problem: str) -> TraceSnapshot:
    return TraceSnapshot(
        trace_id=file.made_id(record or ""),
        origin=file.origin("recorder", record),
        problem=problem,
    )


def _snapshot(file: TraceFile, record: str | None, value: dict[str, Any]) -> TraceSnapshot:
    calls = tuple(map(_call, value["tools"]))
    questions, problem = _questions(value.get("questions"), len(calls))
    asked = value.get("asked_clarification")
    error = text_or_none(value.get("error"))
    user = value.get("input")
    final = value.get("final")
    fixture = id_or_none(value.get("fixture"))
    started, ended = parse_time(value.get("started_at")), parse_time(value.get("ended_at"))
    return TraceSnapshot(
        trace_id=id_or_none(value.get("id")) or file.made_id(record or ""),
        origin=file.origin("recorder", record),
        name=fixture,
        workflow=text_or_none(value.get("workflow")),
        model=text_or_none(value.get("model")),
        task=fixture,
        trial=whole_number(value.get("trial"), 2**31 - 1),
        started_at=started,
        ended_at=ended,
        duration_ms=_duration(started, ended),
        prompt=text_or_none(user.get("user")) if isinstance(user, dict) else None,
        final_answer=_answer(final),
        ended=None if error is None else "error",
        ended_normally=None if error is None else False,
        error=error,
        tokens=_tokens(value.get("tokens")),
        tool_calls=calls,
        messages=questions,
        asked_clarification=asked if isinstance(asked, bool) and not questions else None,
        problem=problem,
    )


def _duration(started: datetime | None, ended: datetime | None) -> int | None:
    """Milliseconds between two times; None if one is unknown, or they are the wrong way round."""
    if started is None or ended is None or ended < started:
        return None
    return whole_number(round((ended - started).total_seconds() * 1000))


def _call(tool: dict[str, Any]) -> ToolCall:
    error = tool.get("error")
    return ToolCall(
        name=tool["name"],
        arguments=tool.get("arguments"),
        result=tool.get("result"),
        status="error" if error is not None else None,
        error=None if error is None else error if isinstance(error, str) else json.dumps(error),
    )


def _questions(value: Any, calls: int) -> tuple[tuple[Message, ...], str | None]:
    """The questions in order, and what is wrong with them.

    One whose place is lost must neither pass nor fail a run: there is no verdict on it then.
    """
    found: list[Message] = []
    if value is not None and not isinstance(value, list):
        return (), "questions are no list"
    for index, item in enumerate(value or ()):
        place = f"questions[{index}]"
        if not isinstance(item, dict):
            return (), f"{place} is no object with `text` and `before_tool`"
        before = whole_number(item.get("before_tool"), calls)
        if before is None:
            given = json.dumps(item.get("before_tool"))
            return (), f"{place}.before_tool is {given}, expected 0 to {calls}, the calls before it"
        found.append(Message(text=str(item.get("text") or ""), before_call=before, question=True))
    return tuple(sorted(found, key=lambda message: message.before_call)), None


def _answer(final: Any) -> str | None:
    if final is None or isinstance(final, str):
        return final
    return msgspec.json.encode(final).decode()


def _tokens(value: Any) -> Tokens:
    counts = value if isinstance(value, dict) else {}
    known = {name: whole_number(counts.get(name)) for name in Tokens.__struct_fields__}
    return Tokens(**known)


FORMAT = RecorderFormat()
