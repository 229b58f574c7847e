"""Workflow trace files and agent trace files, the two kinds that AgentEval writes.

Belongs here: reading both into the two sides that are compared, and writing a record as a
workflow trace file. Does not belong here: comparing (`scoring/trace_fidelity`).

A workflow trace file holds the ledger in `steps` and, optionally, the model calls of each
executor as an agent trace in `executorTraces`; there, responses of scope `ChatTurn` are model
calls. Members that are not used are ignored whatever they hold; one that is used and is not what
it should be is an error that names its path, and all of them are reported at once.

The trace format `agenteval` reads the same files as traces, with what else is in them
(`adapters/formats/agenteval`); `Reader` and the readers of parts are public for it.

The format has no place for some of what a record knows. These members are ours, and readers that
do not know them lose nothing else: `invocation`, `modelCalls`, `derived`, `spanId` of a step;
`cachedTokens`, `reasoningTokens` of a `tokenUsage`; `responseId`, `modelId`, `spanId`, `order`
of an entry; `tracedExecutors` (ids, or `"all"`) and `problem` of the whole. An executor whose trace holds
no chat turn is only known to have called no model if `tracedExecutors` has it: recorders that
cannot see model calls write such traces too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from benchmark_assets.adapters.formats.base import LARGEST, TraceFile, parse_time
from benchmark_assets.model.fidelity import (
    AgentRecord,
    LedgerEntry,
    ModelTurn,
    Reply,
    ToolUse,
    Usage,
    WorkflowRecord,
)
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.model.trace import ToolCall

T = TypeVar("T")

ENTRY_TYPES = ("Request", "Response", "ToolCall", "StreamChunk")
SCOPES = ("AgentInvocation", "ChatTurn", "ToolExecution")
ALL = "all"

_WORKFLOW_CURE = (
    "name a workflow trace file: an object with `steps`, and `executorTraces`; or a trace in any "
    "other format"
)
_AGENT_CURE = "name an agent trace file: an object with `entries`"


def read_workflow_trace(file: TraceFile) -> WorkflowRecord:
    """Read a workflow trace file.

    Raises:
        InputError: If it is not JSON or no workflow trace, or with all that is wrong in it.
    """
    return _read(file, workflow_of)


def read_agent_trace(file: TraceFile) -> AgentRecord:
    """Read an agent trace file as what the agent reported: all its responses.

    Raises:
        InputError: If it is not JSON or no agent trace, or with all that is wrong in it.
    """
    return _read(file, lambda reader: _agent(reader, chat=False))


def read_chat_trace(file: TraceFile) -> AgentRecord:
    """Read an agent trace file as what the model calls were: its responses of scope `ChatTurn`.

    Raises:
        InputError: If it is not JSON or no agent trace, or with all that is wrong in it.
    """
    return _read(file, lambda reader: _agent(reader, chat=True))


def _read(file: TraceFile, build: Callable[[Reader], T]) -> T:
    reader = Reader(file)
    built = build(reader)
    if reader.problems:
        raise InputError(reader.problems)
    return built


class Reader:
    """Takes values out of JSON data and notes what is not as it should be, and where.

    Whatever is wrong reads as missing, so that the rest is looked at too.
    """

    def __init__(self, file: TraceFile) -> None:
        self.file = file
        self._problems: dict[Problem, None] = {}

    @property
    def problems(self) -> list[Problem]:
        """All that is wrong, in the order in which it was met; each once, however often read."""
        return list(self._problems)

    def wrong(self, path: str, value: Any, expected: str, cure: str | None = None) -> None:
        """Note that a value is not what it should be."""
        message = f"expected {expected}, is {_shown(value)}"
        self._problems[self.file.problem(message, key=path or None, cure=cure)] = None

    def note(self, path: str, message: str, cure: str) -> None:
        """Note anything else that is wrong."""
        self._problems[self.file.problem(message, key=path, cure=cure)] = None

    def root(self, cure: str) -> dict[str, Any]:
        """The whole content."""
        value = self.file.json
        if not isinstance(value, dict):
            raise InputError(
                self.file.problem(f"expected an object, is {_shown(value)}", cure=cure)
            )
        return value

    def object(self, parent: dict[str, Any], key: str, path: str) -> dict[str, Any] | None:
        """A member that is an object; None if it is missing or null."""
        value = parent.get(key)
        if value is None or isinstance(value, dict):
            return value
        self.wrong(_join(path, key), value, "an object")
        return None

    def objects(
        self, parent: dict[str, Any], key: str, path: str
    ) -> Iterator[tuple[dict[str, Any], str]]:
        """The objects of a member that is a list, each with its path."""
        value = parent.get(key)
        if value is None:
            return
        if not isinstance(value, list):
            self.wrong(_join(path, key), value, "a list")
            return
        for index, item in enumerate(value):
            place = f"{_join(path, key)}[{index}]"
            if isinstance(item, dict):
                yield item, place
            else:
                self.wrong(place, item, "an object")

    def text(
        self, parent: dict[str, Any], key: str, path: str, *, required: bool = False
    ) -> str | None:
        """A member that is a text; an empty one is one."""
        value = parent.get(key)
        if isinstance(value, str):
            return value
        if value is not None or required:
            self.wrong(_join(path, key), value, "a text")
        return None

    def count(self, parent: dict[str, Any], key: str, path: str) -> int | None:
        """A member that is a whole number from 0."""
        value = parent.get(key)
        if value is None or (type(value) is int and 0 <= value <= LARGEST):
            return value
        whole = isinstance(value, int | float) and not isinstance(value, bool)
        if not whole or not 0 <= value <= LARGEST or int(value) != value:
            self.wrong(_join(path, key), value, "a whole number from 0")
            return None
        return int(value)

    def word(
        self, parent: dict[str, Any], key: str, path: str, words: tuple[str, ...]
    ) -> str | None:
        """A member that is one of a few words, whatever its case."""
        value = self.text(parent, key, path)
        if value is None or value in words:
            return value
        meant = {word.casefold(): word for word in words}.get(value.casefold())
        if meant is None:
            cure = did_you_mean(value, words)
            self.wrong(_join(path, key), value, f"one of {', '.join(words)}", cure)
        return meant

    def flag(self, parent: dict[str, Any], key: str, path: str) -> bool | None:
        """A member that is true or false; None if it is missing."""
        value = parent.get(key)
        if value is None or isinstance(value, bool):
            return value
        self.wrong(_join(path, key), value, "true or false")
        return None


# A workflow.


def workflow_of(reader: Reader) -> WorkflowRecord:
    """Both sides of a workflow trace; what is wrong is noted in `reader` and reads as missing.

    Raises:
        InputError: If the whole is no workflow trace.
    """
    data = reader.root(_WORKFLOW_CURE)
    if "steps" not in data:
        cure = (
            "this is an agent trace: `bench trace-fidelity` reads it"
            if "entries" in data
            else _WORKFLOW_CURE
        )
        raise InputError(reader.file.problem("has no `steps`: it is no workflow trace", cure=cure))
    turns, with_turns = _turns(reader, data)
    return WorkflowRecord(
        name=reader.text(data, "traceName", ""),
        executors=tuple(_texts(reader, data, "executorIds")),
        ledger=tuple(_step(reader, step, path) for step, path in reader.objects(data, "steps", "")),
        turns=turns,
        traced=_traced(reader, data, with_turns),
        endings=reader.flag(data, "endings", "") is not False,
        problem=reader.text(data, "problem", ""),
    )


def _step(reader: Reader, step: dict[str, Any], path: str) -> LedgerEntry:
    return LedgerEntry(
        executor=reader.text(step, "executorId", path, required=True) or "",
        invocation=reader.text(step, "invocation", path),
        usage=usage_of(reader, step, path),
        finish_reason=reader.text(step, "finishReason", path),
        calls=reader.count(step, "modelCalls", path),
        derived=reader.flag(step, "derived", path) or False,
        error=error_of(reader, step, path),
        span_id=reader.text(step, "spanId", path),
    )


def error_of(reader: Reader, parent: dict[str, Any], path: str) -> str | None:
    """The member `error` as text: it is one, or an object with `message` and `type`."""
    value = parent.get("error")
    if value is None or isinstance(value, str):
        return value
    found = reader.object(parent, "error", path) or {}
    place = _join(path, "error")
    message, kind = reader.text(found, "message", place), reader.text(found, "type", place)
    return message if message is not None else kind if kind is not None else "failed"


def usage_of(reader: Reader, parent: dict[str, Any], path: str) -> Usage | None:
    """The member `tokenUsage`; None if there is none."""
    data = reader.object(parent, "tokenUsage", path)
    if data is None:
        return None
    place = _join(path, "tokenUsage")
    sent = reader.count(data, "promptTokens", place)
    received = reader.count(data, "completionTokens", place)
    total = reader.count(data, "totalTokens", place)
    if total is None and sent is not None and received is not None:
        # Of one alone no total is made: what the call used is then known in part.
        total = sent + received
    return Usage(
        input=sent,
        output=received,
        total=total,
        cached=reader.count(data, "cachedTokens", place),
        reasoning=reader.count(data, "reasoningTokens", place),
    )


def _turns(reader: Reader, data: dict[str, Any]) -> tuple[tuple[ModelTurn, ...], tuple[str, ...]]:
    """All model calls, and the executors that have any, in the file's order."""
    found: list[tuple[int | None, ModelTurn]] = []
    with_turns = []
    for executor, trace, path in executor_traces(reader, data):
        model = reader.text(trace, "modelId", path)
        entries = list(entries_of(reader, trace, path))
        # A request without a response is a call of which nothing is known, not that none was made.
        if any((kind, scope) == ("Response", "ChatTurn") for _, _, kind, scope in entries):
            with_turns.append(executor)
        found += [
            (reader.count(entry, "order", place), turn_of(reader, executor, entry, place, model))
            for entry, place, kind, scope in entries
            if (kind, scope) == ("Response", "ChatTurn")
        ]
    numbers = [number for number, _ in found if number is not None]
    if len(numbers) == len(found):
        found.sort(key=lambda item: item[0] or 0)
    return tuple(turn for _, turn in found), tuple(with_turns)


def executor_traces(
    reader: Reader, data: dict[str, Any]
) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Executor, agent trace and path of each agent trace in a workflow trace."""
    for executor, trace in (reader.object(data, "executorTraces", "") or {}).items():
        path = f"executorTraces{_key(executor)}"
        if isinstance(trace, dict):
            yield executor, trace, path
        elif trace is not None:
            reader.wrong(path, trace, "an object")


def entries_of(
    reader: Reader, trace: dict[str, Any], path: str
) -> Iterator[tuple[dict[str, Any], str, str | None, str]]:
    """The entries of an agent trace: each with its path, type and scope."""
    for entry, place in reader.objects(trace, "entries", path):
        if entry.get("type") is None:
            reader.note(
                _join(place, "type"), "is missing", f"write one of {', '.join(ENTRY_TYPES)}"
            )
        kind = reader.word(entry, "type", place, ENTRY_TYPES)
        yield entry, place, kind, reader.word(entry, "scope", place, SCOPES) or SCOPES[0]


def turn_of(
    reader: Reader, executor: str, entry: dict[str, Any], path: str, model: str | None
) -> ModelTurn:
    """A response of scope `ChatTurn`.

    Args:
        reader: Takes note of what is wrong.
        executor: Whose trace it is in.
        entry: The response.
        path: Where it is.
        model: What the trace says of all its calls; the response itself may name another.
    """
    named = reader.text(entry, "modelId", path)
    return ModelTurn(
        executor=executor,
        invocation=reader.text(entry, "correlationId", path),
        usage=usage_of(reader, entry, path),
        finish_reason=reader.text(entry, "finishReason", path),
        error=error_of(reader, entry, path),
        model=model if named is None else named,
        response_id=reader.text(entry, "responseId", path),
        started_at=parse_time(entry.get("timestamp")),
        span_id=reader.text(entry, "spanId", path),
    )


def _traced(
    reader: Reader, data: dict[str, Any], with_turns: tuple[str, ...]
) -> tuple[str, ...] | None:
    named = data.get("tracedExecutors")
    if named is None:
        return with_turns
    return None if named == ALL else tuple(_texts(reader, data, "tracedExecutors"))


def _texts(reader: Reader, data: dict[str, Any], key: str) -> Iterator[str]:
    value = data.get(key)
    if value is None:
        return
    if not isinstance(value, list):
        reader.wrong(key, value, "a list of texts")
        return
    for index, item in enumerate(value):
        if isinstance(item, str):
            yield item
        else:
            reader.wrong(f"{key}[{index}]", item, "a text")


# A single agent.


def _agent(reader: Reader, *, chat: bool) -> AgentRecord:
    data = reader.root(_AGENT_CURE)
    if "entries" not in data:
        cure = (
            "this is a workflow trace: `bench workflow-trace-fidelity` reads it"
            if "steps" in data
            else _AGENT_CURE
        )
        raise InputError(reader.file.problem("has no `entries`: it is no agent trace", cure=cure))
    return AgentRecord(
        name=reader.text(data, "traceName", ""),
        replies=tuple(
            _reply(reader, entry, path)
            for entry, path, kind, scope in entries_of(reader, data, "")
            if kind == "Response" and (scope == "ChatTurn" or not chat)
        ),
        tokens=_performance(reader, data),
    )


def _reply(reader: Reader, entry: dict[str, Any], path: str) -> Reply:
    return Reply(
        usage=usage_of(reader, entry, path),
        finish_reason=reader.text(entry, "finishReason", path),
        tools=tuple(
            ToolUse(
                reader.text(tool, "name", place, required=True) or "",
                reader.text(tool, "arguments", place),
            )
            for tool, place in reader.objects(entry, "toolCalls", path)
        ),
        error=error_of(reader, entry, path),
    )


def _performance(reader: Reader, data: dict[str, Any]) -> int | None:
    """The total that a recorder wrote, else its parts added up."""
    found = reader.object(data, "performance", "") or {}
    total = reader.count(found, "totalTokens", "performance")
    sent = reader.count(found, "totalPromptTokens", "performance")
    received = reader.count(found, "totalCompletionTokens", "performance")
    if total is not None or (sent is None and received is None):
        return total
    return (sent or 0) + (received or 0)


# Writing.


def workflow_trace_json(
    record: WorkflowRecord,
    *,
    captured_at: datetime | None = None,
    prompt: str | None = None,
    final_output: str | None = None,
    duration_ms: int | None = None,
    error: str | None = None,
    tools: Sequence[Sequence[ToolCall]] = (),
) -> bytes:
    """Serialise a record as a workflow trace file: indented JSON in UTF-8.

    `read_workflow_trace` gives the record back. What is unknown is left out, never written as 0.

    Args:
        record: Both sides of one run.
        captured_at: When the run began; else its first model call, where that is known.
        prompt: What the workflow was asked.
        final_output: What it answered at last.
        duration_ms: How long it ran, in milliseconds.
        error: What it failed of, if it did; failures of executors are in the record.
        tools: The tools that each of the record's turns called; none for those beyond its end.
    """
    traced = (
        sorted({turn.executor for turn in record.turns})
        if record.traced is None
        else (list(dict.fromkeys([*record.traced, *(turn.executor for turn in record.turns)])))
    )
    time = _written(captured_at or _begun(record))
    performance = None if duration_ms is None else {"totalDurationMs": duration_ms}
    data = {
        "version": "1.0",
        "traceName": record.name,
        "capturedAt": time,
        "originalPrompt": prompt,
        "finalOutput": final_output,
        "steps": [_step_data(index, entry) for index, entry in enumerate(record.ledger)],
        "executorIds": list(record.executors),
        "errors": _errors_data(record, error) or None,
        "performance": performance,
        "executorTraces": _trace_data(record, traced, time, tools),
        "tracedExecutors": ALL if record.traced is None else list(record.traced),
        "endings": None if record.endings else False,
        "problem": record.problem,
    }
    return msgspec.json.format(msgspec.json.encode(_without_none(data)), indent=2) + b"\n"


def _begun(record: WorkflowRecord) -> datetime | None:
    """When the first model call began; a time without a zone is none to compare with."""
    times = [turn.started_at for turn in record.turns if turn.started_at is not None]
    return min((time for time in times if time.tzinfo is not None), default=None)


def _written(time: datetime | None) -> str | None:
    return None if time is None else time.isoformat()


def _errors_data(record: WorkflowRecord, error: str | None) -> list[dict[str, str]]:
    """The run's errors: those of executors, of which the run's own is a repetition."""
    failed = [
        {"executorId": entry.executor, "message": entry.error}
        for entry in record.ledger
        if entry.error is not None
    ]
    return failed or ([] if error is None else [{"message": error}])


def _step_data(index: int, entry: LedgerEntry) -> dict[str, Any]:
    return {
        "executorId": entry.executor,
        "stepIndex": index,
        "tokenUsage": _usage_data(entry.usage),
        "finishReason": entry.finish_reason,
        "error": None if entry.error is None else {"message": entry.error},
        "invocation": entry.invocation,
        "modelCalls": entry.calls,
        "derived": entry.derived or None,
        "spanId": entry.span_id,
    }


def _trace_data(
    record: WorkflowRecord,
    traced: list[str],
    time: str | None,
    tools: Sequence[Sequence[ToolCall]],
) -> dict[str, Any]:
    turns: dict[str, list[tuple[int, ModelTurn]]] = {executor: [] for executor in traced}
    for order, turn in enumerate(record.turns):
        turns[turn.executor].append((order, turn))
    called = dict(enumerate(tools))
    return {
        executor: {
            "version": "1.1",
            "traceName": executor,
            "capturedAt": time,
            "modelId": _only_model(turn for _, turn in own),
            "entries": [
                _entry_data(index, order, turn, called.get(order, ()))
                for index, (order, turn) in enumerate(own)
            ],
        }
        for executor, own in turns.items()
    }


def _only_model(turns: Iterable[ModelTurn]) -> str | None:
    """The model of all turns, if it is one and the same."""
    models = {turn.model for turn in turns}
    return models.pop() if len(models) == 1 else None


def _entry_data(
    index: int, order: int, turn: ModelTurn, tools: Sequence[ToolCall]
) -> dict[str, Any]:
    return {
        "type": "Response",
        "index": index,
        "timestamp": _written(turn.started_at),
        "scope": "ChatTurn",
        "correlationId": turn.invocation,
        "tokenUsage": _usage_data(turn.usage),
        "finishReason": turn.finish_reason,
        "toolCalls": [_tool_data(call) for call in tools] or None,
        "error": turn.error,
        "modelId": turn.model,
        "responseId": turn.response_id,
        "spanId": turn.span_id,
        "order": order,
    }


def _tool_data(call: ToolCall) -> dict[str, Any]:
    return {
        "name": call.name,
        "arguments": _json_text(call.arguments),
        "result": _json_text(call.result),
        "succeeded": None if call.status is None else call.status == "ok",
        "error": call.error,
    }


def _json_text(value: Any) -> str | None:
    """A text as it is; the format has everything else as JSON in a text."""
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _usage_data(usage: Usage | None) -> dict[str, Any] | None:
    if usage is None:
        return None
    return {
        "promptTokens": usage.input,
        "completionTokens": usage.output,
        "totalTokens": usage.total,
        "cachedTokens": usage.cached,
        "reasoningTokens": usage.reasoning,
    }


def _without_none(value: Any) -> Any:
    """The same data without members that are null, at any depth."""
    if isinstance(value, list):
        return [_without_none(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_none(item) for key, item in value.items() if item is not None}
    return value


# Paths and values in words.


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _key(name: str) -> str:
    """A member of any name as a step of a path."""
    return f".{name}" if name.isidentifier() else f"[{msgspec.json.encode(name).decode()}]"


def _shown(value: Any, most: int = 40) -> str:
    if value is None:
        return "missing"
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= most else f"{text[: most - 1]}…"
