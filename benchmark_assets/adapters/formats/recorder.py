"""What the recorder of golden traces writes: tools called, questions asked, the final payload.

Only `tools` is always there. What else there is may be written by hand or by another recorder, so it
is read for what it is meant: an `error` of any shape is one, and a mark on a call that it failed. A
trace that says whether a question was asked and not when keeps
just that (`asked_clarification`); with `questions` the order is known. A recording whose agent
raised, hung or exited has an `error`, and is in error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Annotated, Any

import msgspec

from benchmark_assets.adapters.formats.base import (
    TraceFile,
    decode_json,
    id_or_none,
    parse_time,
    text_or_none,
    whole_number,
)
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import Message, Origin, Tokens, ToolCall, TraceSnapshot

# What other formats of objects with `tools` have: there they are definitions of tools.
_OTHERS = frozenset({"trace_id", "observations", "spans", "entries", "steps"})
_DEFINES = frozenset({"input_schema", "inputSchema", "parameters", "function"})

UNHASHED = ""
"""The hash of a file that was read the quick way: nobody asked for it."""


_ABSENT = msgspec.Raw()


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: Any = None
    result: Any = None
    error: Any = None


class _Recording(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A recording as it is written; whatever is not needed to tell it from other formats is any."""

    tools: list[_Tool]
    id: Any = None
    fixture: Any = None
    trial: Any = None
    workflow: Any = None
    model: Any = None
    input: Any = None
    started_at: Any = None
    ended_at: Any = None
    asked_clarification: Any = None
    questions: Any = None
    final: Any = None
    error: Any = None
    tokens: Any = None
    # Never read, and so not decoded either: a conversation is most of a file.
    messages: msgspec.Raw = _ABSENT
    redacted: msgspec.Raw = _ABSENT
    as_text: msgspec.Raw = _ABSENT


_FIELDS = frozenset(_Recording.__struct_fields__) - {"tools", "messages", "redacted", "as_text"}
_DECODER = msgspec.json.Decoder(_Recording)


class RecorderFormat:
    """Reads recorded candidate and golden traces."""

    name = "recorder"
    description = "recorded golden and candidate traces: tools, questions, final payload"

    def matches(self, file: TraceFile) -> bool:
        """Objects with `tools`, each with a name, and nothing of the other formats.

        A conversation beside them is one of theirs, unless it says whether a question was asked.
        """
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
                tools = [
                    _Tool(t["name"], t.get("arguments"), t.get("result"), _error_of(t))
                    for t in value["tools"]
                ]
                known = {key: value[key] for key in _FIELDS & value.keys()}
                known["error"] = _error_of(value)
                recording = _Recording(tools=tools, **known)
                yield _snapshot(
                    recording, file.made_id(record or ""), file.origin("recorder", record)
                )


def read_quickly(data: bytes, name: str) -> TraceSnapshot | None:
    """Read what can only be one recording, decoding no more of it than is needed.

    The snapshot is the one that `parse` yields, but for what takes the file's hash: the origin's,
    which is `UNHASHED`, and the id of a recording without one, which is `name`.

    Args:
        data: The bytes of a file.
        name: The file.

    Returns:
        None if there is anything in it that has to be looked at more closely.
    """
    try:
        recording = _DECODER.decode(data)
        if not (recording.messages is recording.redacted is recording.as_text is _ABSENT):
            data.decode()  # What is not decoded is not looked at, either.
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if recording.messages is not _ABSENT and recording.asked_clarification is None:
        return None
    return _snapshot(recording, name, Origin(file=name, sha256=UNHASHED, format="recorder"))


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
    if "messages" in value and value.get("asked_clarification") is None:
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


def _snapshot(recording: _Recording, made_id: str, origin: Origin) -> TraceSnapshot:
    known: dict[str, Any] = {}
    calls = tuple(map(_call, recording.tools))
    if recording.questions is not None:
        known["messages"], problem = _questions(recording.questions, len(calls))
        if problem is not None:
            known["problem"] = problem
    if isinstance(recording.asked_clarification, bool) and not known.get("messages"):
        known["asked_clarification"] = recording.asked_clarification
    if recording.fixture is not None:
        known |= _fixture(recording.fixture)
    if recording.input is not None:
        user = recording.input
        known["prompt"] = text_or_none(user.get("user") if isinstance(user, dict) else user)
    error = _failure(recording.error)
    if error is not None:
        known |= {"ended": "error", "ended_normally": False, "error": error}
    if recording.started_at is not None or recording.ended_at is not None:
        started, ended = parse_time(recording.started_at), parse_time(recording.ended_at)
        known |= {"started_at": started, "ended_at": ended}
        known["duration_ms"] = _duration(started, ended)
    if recording.trial is not None:
        known["trial"] = whole_number(recording.trial, 2**31 - 1)
    if recording.workflow is not None:
        known["workflow"] = text_or_none(recording.workflow)
    if recording.model is not None:
        known["model"] = text_or_none(recording.model)
    if recording.tokens is not None:
        known["tokens"] = _tokens(recording.tokens)
    return TraceSnapshot(
        trace_id=made_id if recording.id is None else id_or_none(recording.id) or made_id,
        origin=origin,
        final_answer=_answer(recording.final),
        tool_calls=calls,
        # Only what is known: of twenty values that are none, each would cost its time.
        **known,
    )


def _duration(started: datetime | None, ended: datetime | None) -> int | None:
    """Milliseconds between two times; None if one is unknown, or they are the wrong way round."""
    if started is None or ended is None or ended < started:
        return None
    return whole_number(round((ended - started).total_seconds() * 1000))


def _call(tool: _Tool) -> ToolCall:
    error = _failure(tool.error)
    if error is None:
        return ToolCall(name=tool.name, arguments=tool.arguments, result=tool.result)
    return ToolCall(
        name=tool.name,
        arguments=tool.arguments,
        result=tool.result,
        status="error",
        error=error,
    )


def _failure(error: Any) -> str | None:
    """What went wrong, in words; None if nothing did. An error that says nothing is one, too."""
    if error is None or error is False:
        return None
    return error if isinstance(error, str) else json.dumps(error)


def _error_of(tool: dict[str, Any]) -> Any:
    """What says that a call, or a run, failed, by the names that other recorders have for it."""
    error = tool.get("error")
    if error is not None and error is not False:
        return error
    for key, fine in _MARKS.items():
        mark = tool.get(key)
        if mark is not None and str(mark).casefold() not in fine:
            return f"{key}: {json.dumps(mark)}"
    status = tool.get("status")
    if isinstance(status, str) and status.casefold() in _FAILED_STATES:
        return f"status: {status}"
    return error


_MARKS = {
    "is_error": ("false", "0", ""),
    "isError": ("false", "0", ""),
    "success": ("true", "1"),
    "ok": ("true", "1"),
}
"""Marks of how a call went → what they are of one that went well."""

_FAILED_STATES = frozenset(
    [
        "error",
        "errored",
        "failed",
        "failure",
        "timeout",
        "timed_out",
        "cancelled",
        "canceled",
        "aborted",
    ]
)


def _fixture(value: Any) -> dict[str, Any]:
    """Which fixture a recording is of; one that cannot be told must not pass for another's."""
    fixture = id_or_none(value.get("id") if isinstance(value, dict) else value)
    if fixture is None:
        return {"problem": f"fixture is {json.dumps(value)}, expected the id of one"}
    return {"name": fixture, "task": fixture}


def _questions(value: Any, calls: int) -> tuple[tuple[Message, ...], str | None]:
    """The questions in order, and what is wrong with them.

    One whose place is lost must neither pass nor fail a run: there is no verdict on it then.
    """
    found: list[Message] = []
    if not isinstance(value, list):
        return (), "questions are no list"
    for index, item in enumerate(value):
        if not isinstance(item, dict):
            return (), f"questions[{index}] is no object with `text` and `before_tool`"
        before = whole_number(item.get("before_tool"), calls)
        if before is None:
            given = f"questions[{index}].before_tool is {json.dumps(item.get('before_tool'))}"
            return (), f"{given}, expected 0 to {calls}, the calls before it"
        found.append(Message(text=str(item.get("text") or ""), before_call=before, question=True))
    if len(found) > 1:
        found.sort(key=lambda message: message.before_call)
    return tuple(found), None


def _answer(final: Any) -> str | None:
    if final is None or isinstance(final, str):
        return final
    return msgspec.json.encode(final).decode()


def _tokens(value: Any) -> Tokens:
    if not isinstance(value, dict):
        return Tokens()
    return Tokens(**{name: whole_number(value.get(name)) for name in Tokens.__struct_fields__})


# Writing.


def recording_of(trace: TraceSnapshot) -> dict[str, Any]:
    """What a recording can hold of a trace of any format, as JSON data.

    Texts to the user that are no questions, spans, costs and how the run ended are lost.
    """
    known = {
        "fixture": trace.task if trace.origin.format == FORMAT.name else None,
        "input": None if trace.prompt is None else {"user": trace.prompt},
        "model": trace.model,
        "started_at": None if trace.started_at is None else trace.started_at.isoformat(),
        "ended_at": None if trace.ended_at is None else trace.ended_at.isoformat(),
        "error": trace.error,
        "tokens": msgspec.to_builtins(trace.tokens) or None,
    }
    questions = [{"text": m.text, "before_tool": m.before_call} for m in trace.questions]
    # Without `questions`, the order is unknown: that is what a flag alone says.
    asked = {"questions": questions} if questions or not trace.asked_clarification else {}
    return {
        "tools": [_tool(call) for call in trace.tool_calls],
        "asked_clarification": bool(questions or trace.asked_clarification),
        "final": _payload(trace.final_answer),
        **asked,
        **{key: value for key, value in known.items() if value is not None},
    }


def _tool(call: ToolCall) -> dict[str, Any]:
    failed = call.status == "error" or call.error is not None
    return {
        "name": call.name,
        "arguments": call.arguments,
        **({} if call.result is None else {"result": call.result}),
        **({"error": call.error or "failed"} if failed else {}),
    }


def _payload(answer: str | None) -> Any:
    """The final payload: JSON objects and lists as such, everything else as the text it is."""
    try:
        payload = None if answer is None else decode_json(answer.encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return answer
    return payload if isinstance(payload, dict | list) else answer


FORMAT = RecorderFormat()
