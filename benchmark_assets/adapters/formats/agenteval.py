"""AgentEval's trace files: a run of a workflow, or of a single agent, in one JSON object.

Belongs here: such a file as a trace. Does not belong here: its two sides of the ledger, which
`adapters/fidelity_files` reads, here as for the commands that compare them.

A *workflow trace* has `steps`, one for each time an executor ran, and optionally the agent trace
of each executor in `executorTraces`. An *agent trace* has `entries`. In both, a response of scope
`ChatTurn` is one call of a model, and only such a one is a generation: a step, and a response
without that scope, may be several calls.

*Tool calls* are written down up to four times: by the model's response that asks for them, by the
entry of their execution, by the agent's response, and by the step. Each counts once. The first of
these that has any for an executor says which there were, the others what came of them.

*Tokens* are those of an executor's model calls; where no usage of them is recorded, what its
steps report. An agent trace without either may have them in `performance`.

*The model* is in no step: it is what responses, or the agent traces as a whole, name as `modelId`,
else what the metadata key that names models says.

How a run ended has no member either. A run with an error ended by `error`; one without that gave
its final output by `final_output`, the normal ending.

A file in which something that is used is wrong is one trace that cannot be judged; its problem
names every place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, NamedTuple

import msgspec

# The module and not its names: it reads `TraceFile`s of this package, so that each may be the
# first that is imported.
from benchmark_assets.adapters import fidelity_files as files
from benchmark_assets.adapters.formats.base import (
    TraceFile,
    amount,
    decode_json,
    id_or_none,
    parse_time,
    text_or_none,
    whole_number,
)
from benchmark_assets.adapters.formats.messages import LARGEST_TRIAL, as_dict, as_list
from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.trace import (
    CallStatus,
    ErrorSpan,
    Generation,
    Message,
    Tokens,
    ToolCall,
    TraceSnapshot,
    sum_tokens,
)

NORMAL_ENDING = "final_output"

SHOWN_PROBLEMS = 20
"""Most problems of one file that its error row names."""

_CURE = "name an AgentEval trace: a workflow's has `steps`, an agent's `entries`"

Row = tuple[dict[str, Any], str, str | None, str]
"""An entry of an agent trace with its path, type and scope."""


class AgentEvalFormat:
    """Reads AgentEval's workflow traces and agent traces."""

    name = "agenteval"
    description = "AgentEval workflow traces and agent traces, one run each"

    def matches(self, file: TraceFile) -> bool:
        """An object with steps of executors, or with entries of the four types."""
        if not file.is_json or not isinstance(file.json, dict):
            return False
        return is_workflow_trace(file.json) or _is_agent_trace(file.json)

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield the snapshot of the run."""
        reader = files.Reader(file)
        data = reader.root(_CURE)
        if "steps" in data:
            fields = _workflow(reader, data)
        elif "entries" in data:
            fields = _agent(reader, data)
        else:
            raise InputError(file.problem("has neither `steps` nor `entries`", cure=_CURE))
        known = _identity(file, data)
        if reader.problems:
            # What was half read must not be judged.
            yield TraceSnapshot(**known, problem=_problem(reader.problems, file))
        else:
            yield TraceSnapshot(**known, **fields)


def is_workflow_trace(value: Any) -> bool:
    """Whether a JSON value is a workflow trace: it has steps, and executors by their ids."""
    if not isinstance(value, dict) or not isinstance(value.get("steps"), list):
        return False
    if not {"executorIds", "executorTraces"}.isdisjoint(value):
        return True
    return any("executorId" in as_dict(step) for step in value["steps"])


def _is_agent_trace(value: dict[str, Any]) -> bool:
    types = {name.casefold() for name in files.ENTRY_TYPES}
    return any(
        isinstance(kind := as_dict(entry).get("type"), str) and kind.casefold() in types
        for entry in as_list(value.get("entries"))
    )


def _identity(file: TraceFile, data: dict[str, Any]) -> dict[str, Any]:
    """What a trace is known by, read with all tolerance: an error row has it too."""
    metadata = as_dict(data.get("metadata"))
    elapsed = amount(as_dict(data.get("performance")).get("totalDurationMs"))
    named = id_or_none(metadata.get("trace_id")) or id_or_none(metadata.get("traceId"))
    return {
        "trace_id": named or file.made_id(""),
        "origin": file.origin("agenteval"),
        "name": text_or_none(data.get("traceName")),
        "trial": whole_number(metadata.get("trial"), most=LARGEST_TRIAL),
        "started_at": parse_time(data.get("capturedAt")),
        "duration_ms": None if elapsed is None else round(elapsed),
        "session_id": id_or_none(metadata.get("session_id")),
        "user_id": id_or_none(metadata.get("user_id")),
        "metadata": metadata,
    }


def _problem(problems: Sequence[Problem], file: TraceFile) -> str:
    # A stored trace names its file by the source's root, not by where somebody keeps it.
    texts = [str(problem).replace(file.name, file.key, 1) for problem in problems[:SHOWN_PROBLEMS]]
    more = len(problems) - len(texts)
    return "; ".join([*texts, *([f"and {more:,} more"] if more else [])])


# A workflow.


def _workflow(reader: files.Reader, data: dict[str, Any]) -> dict[str, Any]:
    record = files.workflow_of(reader)
    traces = {
        executor: (trace, list(files.entries_of(reader, trace, path)))
        for executor, trace, path in files.executor_traces(reader, data)
    }
    calls = _workflow_calls(
        reader, data, record, {name: rows for name, (_, rows) in traces.items()}
    )
    models = [text_or_none(trace.get("modelId")) for trace, _ in traces.values()]
    failures = _failures(reader, data, record)
    answer = text_or_none(data.get("finalOutput"))
    problem = record.problem and f"{reader.file.key}: problem: {record.problem}"
    return {
        **_told(calls, record.turns, models),
        **_ending(answer, [f"{name}: {text}" if name else text for name, text in failures], calls),
        "agents": tuple(_executors(record)),
        "prompt": text_or_none(data.get("originalPrompt")),
        "tokens": _spent(record),
        "error_spans": tuple(_error_spans(record.turns, failures)),
        "workflow_record": record if _says_anything(record) else None,
        "problem": problem,
    }


def _says_anything(record: WorkflowRecord) -> bool:
    """Whether there is anything to compare: a report of an executor, or a call of a model."""
    return bool(record.turns) or any(
        entry.finish_reason is not None
        or entry.calls is not None
        or (entry.usage is not None and entry.usage != Usage())
        for entry in record.ledger
    )


def _executors(record: WorkflowRecord) -> list[str]:
    """All executors, each once whatever the case of its id."""
    sides: tuple[LedgerEntry | ModelTurn, ...] = (*record.ledger, *record.turns)
    named = [*record.executors, *(item.executor for item in sides)]
    first: dict[str, str] = {}
    for name in named:
        first.setdefault(name.casefold(), name)
    return [name for name in first.values() if name]


def _failures(
    reader: files.Reader, data: dict[str, Any], record: WorkflowRecord
) -> list[tuple[str, str]]:
    """Executor, if it is known, and message of each failure; the run's repeat those of steps."""
    found = [
        (entry.executor, entry.error or "failed")
        for entry in record.ledger
        if entry.error is not None
    ]
    failed = {executor.casefold() for executor, _ in found}
    for error, path in reader.objects(data, "errors", ""):
        said = reader.text(error, "message", path) or reader.text(error, "exceptionType", path)
        executor = reader.text(error, "executorId", path) or ""
        if executor.casefold() not in failed:
            found.append((executor, said or "failed"))
    return found


def _spent(record: WorkflowRecord) -> Tokens:
    """What the run used, by the model calls of each executor, else by its steps."""
    measured = {
        turn.executor.casefold() for turn in record.turns if _tokens(turn.usage).total is not None
    }
    return sum_tokens(
        (
            *(_tokens(turn.usage) for turn in record.turns),
            *(
                _tokens(entry.usage)
                for entry in record.ledger
                if entry.executor.casefold() not in measured
            ),
        )
    )


# A single agent.


def _agent(reader: files.Reader, data: dict[str, Any]) -> dict[str, Any]:
    rows = list(files.entries_of(reader, data, ""))
    model = reader.text(data, "modelId", "")
    name = text_or_none(reader.text(data, "agentName", ""))
    responses = [row for row in rows if row[2] == "Response"]
    turns = [
        files.turn_of(reader, name or "", entry, path, model)
        for entry, path, _, scope in responses
        if scope == "ChatTurn"
    ]
    calls = _in_order(_placed(_by_kind(reader, rows, name)))
    # The agent's own answers say more of how it ended than the calls of models that it made.
    own = [row for row in responses if row[3] == "AgentInvocation"] or responses
    answer = next(
        (text for row in reversed(own) if (text := text_or_none(row[0].get("text")))), None
    )
    failed = files.error_of(reader, own[-1][0], own[-1][1]) if own else None
    return {
        **_told(calls, turns, [model]),
        **_ending(answer, [] if failed is None else [failed or "failed"], calls),
        "agents": () if name is None else (name,),
        "prompt": _asked(rows),
        "tokens": _agent_tokens(reader, data, turns, own),
        "error_spans": tuple(_error_spans(turns, _failed_answers(reader, own, name))),
    }


def _asked(rows: Iterable[Row]) -> str | None:
    """What the agent was asked first; what it asked a model, where nothing else is known."""
    asked = [row for row in rows if row[2] == "Request" and text_or_none(row[0].get("prompt"))]
    own = [row for row in asked if row[3] == "AgentInvocation"] or asked
    return text_or_none(own[0][0]["prompt"]) if own else None


def _failed_answers(
    reader: files.Reader, own: Iterable[Row], name: str | None
) -> Iterator[tuple[str, str]]:
    for entry, path, _, scope in own:
        error = files.error_of(reader, entry, path)
        if error is not None and scope == "AgentInvocation":
            yield name or "", error or "failed"


def _agent_tokens(
    reader: files.Reader, data: dict[str, Any], turns: Sequence[ModelTurn], own: Iterable[Row]
) -> Tokens:
    """Those of the model calls, else of the agent's answers, else the totals beside them."""
    performance = reader.object(data, "performance", "") or {}
    totals = Usage(
        input=reader.count(performance, "totalPromptTokens", "performance"),
        output=reader.count(performance, "totalCompletionTokens", "performance"),
    )
    answered = [files.usage_of(reader, entry, path) for entry, path, _, _ in own]
    for usages in ([turn.usage for turn in turns], answered):
        found = sum_tokens(tuple(_tokens(usage) for usage in usages))
        if found.total is not None:
            return found
    return _tokens(totals)


# What both kinds have.


def _told(
    calls: Sequence[ToolCall], turns: Sequence[ModelTurn], models: Iterable[str | None]
) -> dict[str, Any]:
    """The fields of model and tool calls, and the model where no call of one names it."""
    named = sorted({model for model in models if model})
    return {
        "model": None if any(turn.model for turn in turns) else "+".join(named) or None,
        "generations": tuple(map(_generation, turns)),
        "tool_calls": tuple(calls),
        # Errors have a place wherever one can occur; what came of a tool call may be missing.
        "failures_recorded": all(call.status is not None for call in calls),
    }


def _ending(answer: str | None, errors: Sequence[str], calls: Sequence[ToolCall]) -> dict[str, Any]:
    """The fields of the answer and of how the run ended."""
    ended = "error" if errors else NORMAL_ENDING if answer is not None else None
    return {
        "final_answer": answer,
        "messages": () if answer is None else (Message(text=answer, before_call=len(calls)),),
        "ended": ended,
        "ended_normally": None if ended is None else ended == NORMAL_ENDING,
        # The same failure is reported by the step and by the run.
        "error": "; ".join(dict.fromkeys(errors)) or None,
    }


def _generation(turn: ModelTurn) -> Generation:
    return Generation(
        model=text_or_none(turn.model),
        agent=text_or_none(turn.executor),
        tokens=_tokens(turn.usage),
        finish_reason=turn.finish_reason,
        started_at=turn.started_at,
        span_id=turn.span_id,
        response_id=turn.response_id,
    )


def _tokens(usage: Usage | None) -> Tokens:
    """Disjoint buckets; a total that is not split into input and output has none."""
    if usage is None:
        return Tokens()
    return Tokens(
        input=_without(usage.input, usage.cached),
        output=_without(usage.output, usage.reasoning),
        cache_read=usage.cached,
        reasoning=usage.reasoning,
    )


def _without(count: int | None, part: int | None) -> int | None:
    """A count less a part of it; a part that is larger was not counted in."""
    return count if count is None or part is None or part > count else count - part


def _error_spans(
    turns: Iterable[ModelTurn], failures: Iterable[tuple[str, str]]
) -> Iterator[ErrorSpan]:
    """Each failure once: where a call of a model failed, its executor only passed that on."""
    named = set()
    for turn in turns:
        if turn.error is not None:
            named.add(turn.executor.casefold())
            yield ErrorSpan(
                name=turn.executor or "model call",
                kind="ChatTurn",
                message=turn.error or None,
                agent=text_or_none(turn.executor),
                started_at=turn.started_at,
                span_id=turn.span_id,
            )
    for executor, message in failures:
        if executor.casefold() not in named:
            yield ErrorSpan(name=executor or "run", message=message, agent=text_or_none(executor))


# Tool calls.


class _Placed(NamedTuple):
    """A tool call and where it stands: a number or a time, comparable with those of its kind."""

    call: ToolCall
    kind: str = "unknown"
    at: Any = 0


def _workflow_calls(
    reader: files.Reader,
    data: dict[str, Any],
    record: WorkflowRecord,
    traces: dict[str, list[Row]],
) -> list[ToolCall]:
    """The tool calls of all executors, each once."""
    stepped: dict[str, list[_Placed]] = {}
    for number, (step, path) in enumerate(reader.objects(data, "steps", "")):
        executor = text_or_none(step.get("executorId")) or ""
        made = [_Placed(call, "step", number) for call in _calls(reader, step, path, executor)]
        stepped.setdefault(executor.casefold(), []).extend(made)
    entered: dict[str, list[list[_Placed]]] = {}
    for executor, rows in traces.items():
        entered[executor.casefold()] = _by_kind(reader, rows, executor)
    order = dict.fromkeys([*map(str.casefold, _executors(record)), *stepped, *entered])
    placed = [
        item for name in order for item in _placed([*entered.get(name, []), stepped.get(name, [])])
    ]
    return _in_order(placed)


def _by_kind(
    reader: files.Reader, rows: Iterable[Row], executor: str | None
) -> list[list[_Placed]]:
    """The calls that models asked for, those that were executed, those that the agent reports."""
    asked: list[_Placed] = []
    executed: list[_Placed] = []
    reported: list[_Placed] = []
    for entry, path, kind, scope in rows:
        if kind == "ToolCall" or scope == "ToolExecution":
            chosen = executed
        elif kind == "Response":
            chosen = asked if scope == "ChatTurn" else reported
        else:
            continue
        order = reader.count(entry, "order", path)
        entered = parse_time(entry.get("timestamp"))
        for call in _calls(reader, entry, path, executor):
            at = call.started_at or entered
            where = ("order", order) if order is not None else ("time", at)
            chosen.append(_Placed(call, *where) if where[1] is not None else _Placed(call))
    return [asked, executed, reported]


def _calls(
    reader: files.Reader, holder: dict[str, Any], path: str, executor: str | None
) -> Iterator[ToolCall]:
    for tool, place in reader.objects(holder, "toolCalls", path):
        error = files.error_of(reader, tool, place)
        succeeded = reader.flag(tool, "succeeded", place)
        started = parse_time(tool.get("startedAt"))
        yield ToolCall(
            name=reader.text(tool, "name", place, required=True) or "",
            arguments=_arguments(tool.get("arguments")),
            result=tool.get("result"),
            status=_status(error, succeeded, tool.get("result")),
            error=error or None,
            started_at=started,
            ended_at=_later(started, amount(tool.get("durationMs"))),
            agent=executor or None,
        )


def _arguments(value: Any) -> Any:
    """Arguments are JSON in a text; what is not stays the text it is."""
    if not isinstance(value, str):
        return value
    try:
        return decode_json(value.encode("utf-8", "surrogatepass"))
    except (msgspec.DecodeError, RecursionError):
        return value


def _status(error: str | None, succeeded: bool | None, result: Any) -> CallStatus | None:
    if error is not None or succeeded is False:
        return "error"
    return "ok" if succeeded or result is not None else None


def _later(start: datetime | None, milliseconds: float | None) -> datetime | None:
    if start is None or milliseconds is None:
        return None
    try:
        return start + timedelta(milliseconds=milliseconds)
    except OverflowError:
        return None


def _placed(sources: Iterable[list[_Placed]]) -> list[_Placed]:
    """One executor's calls: the first source that has any, with what the others add to them."""
    first, *others = [source for source in sources if source] or [[]]
    waiting = [_by_name(source) for source in others]
    return [
        item._replace(
            call=_joined(
                [item.call, *(told for calls in waiting if (told := calls(item.call.name)))]
            )
        )
        for item in first
    ]


def _by_name(source: Iterable[_Placed]) -> Callable[[str], ToolCall | None]:
    """Gives the calls of a tool one after another."""
    calls: dict[str, Iterator[ToolCall]] = {}
    listed: dict[str, list[ToolCall]] = {}
    for item in source:
        listed.setdefault(item.call.name, []).append(item.call)
    for name, found in listed.items():
        calls[name] = iter(found)
    return lambda name: next(calls.get(name, iter(())), None)


def _joined(told: Sequence[ToolCall]) -> ToolCall:
    """What several records of one call say together; a failure that one of them has is one."""
    if len(told) == 1:
        return told[0]
    statuses = {call.status for call in told}
    return msgspec.structs.replace(
        told[0],
        status="error" if "error" in statuses else "ok" if "ok" in statuses else None,
        **{
            name: next((value for call in told if (value := getattr(call, name)) is not None), None)
            for name in ("arguments", "result", "error", "started_at", "ended_at")
        },
    )


def _in_order(placed: Sequence[_Placed]) -> list[ToolCall]:
    """The calls in the order in which they were made, where all say it in the same way."""
    kinds = {item.kind for item in placed}
    ordered = sorted(placed, key=lambda item: item.at) if len(kinds) == 1 else placed
    return [item.call for item in ordered]


FORMAT = AgentEvalFormat()
