"""A run as the files that traces are kept in: a snapshot, and a download from Langfuse's UI.

Belongs here: two spellings of one run. Does not belong here: what happened in it (`harness`).

The download is shaped as LangGraph's callback leaves it: a CHAIN `tools` around each TOOL, which
fails with it; usage in disjoint buckets; rows by start time, the latest first; input, output and
metadata as JSON text, the trace's own input and output as JSON text in JSON text.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from tests.app_builder.harness import MODEL, CallRecord, Run, Turn
from tests.app_builder.project import WORKSPACE

AGENT = "app-builder"
Row = dict[str, Any]

_BUCKETS = {"input": "input", "input_cache_read": "cache_read", "output": "output"}
_PROJECT = {"projectId": "clappbuilder0001", "environment": "default", "version": None}
_EMPTY_ROW: Row = {
    "model": None,
    "modelParameters": None,
    "completionStartTime": None,
    "timeToFirstToken": None,
    "usageDetails": {},
    "costDetails": {},
    "totalCost": 0,
    "toolDefinitions": {},
    "toolCalls": [],
    "toolCallNames": [],
}


def snapshot(run: Run) -> dict[str, Any]:
    """The run as snapshot JSON."""
    generations: list[Row] = []
    calls: list[Row] = []
    for turn in run.turns:
        generations.append(_snapshot_generation(run, turn, len(generations), len(calls)))
        for record in turn.calls:
            calls.append(_snapshot_call(run, record, len(calls)))
    return _known(
        trace_id=run.trace_id,
        name=AGENT,
        workflow=run.task.workflow,
        model=MODEL,
        agents=[AGENT],
        task=f"{AGENT}/{run.task.name}",
        **_times(run),
        duration_ms=_milliseconds(run),
        environment="default",
        user_id="alice",
        metadata=_metadata(run),
        prompt=run.task.prompt,
        final_answer=run.answer,
        ended="completed" if run.error is None else "error",
        ended_normally=run.error is None,
        error=run.error,
        tokens=_tokens(*run.turns),
        cost_usd=_dollars(*run.turns),
        generations=generations,
        tool_calls=calls,
        messages=_messages(run),
        error_spans=_error_spans(run),
    )


def _snapshot_generation(run: Run, turn: Turn, index: int, before_call: int) -> Row:
    reason = None if turn.error else "tool_calls" if turn.calls else "stop"
    return _known(
        model=MODEL,
        agent=AGENT,
        tokens=_tokens(turn) if turn.usage else None,
        cost_usd=_dollars(turn) if turn.usage else None,
        finish_reason=reason,
        **_times(turn),
        span_id=_span(run, "generation", index),
        before_call=before_call,
    )


def _snapshot_call(run: Run, record: CallRecord, index: int) -> Row:
    return _known(
        name=record.call.tool,
        arguments=record.call.arguments,
        result=record.result,
        status="ok" if record.error is None else "error",
        error=record.error,
        **_times(record),
        agent=AGENT,
        span_id=_span(run, "tool", index),
    )


def _messages(run: Run) -> list[Row]:
    """The questions and the last words; a question has been put when its call is made."""
    messages: list[Row] = [
        {"text": record.call.arguments["question"], "before_call": index, "question": True}
        for index, record in enumerate(run.calls, 1)
        if record.call.tool == "ask_user"
    ]
    if run.answer is not None:
        messages.append({"text": run.answer, "before_call": len(run.calls)})
    return messages


def _error_spans(run: Run) -> list[Row]:
    return [
        {
            "name": "ChatOpenAI",
            "kind": "GENERATION",
            "message": turn.error,
            "started_at": _times(turn)["started_at"],
            "span_id": _span(run, "generation", index),
        }
        for index, turn in enumerate(run.turns)
        if turn.error is not None
    ]


def langfuse(run: Run) -> dict[str, Any]:
    """The run as Langfuse's UI downloads a trace: `{trace, observations}`."""
    root = _span(run, "root", 0)
    asked = json.dumps({"messages": [{"role": "user", "content": run.task.prompt}]})
    said = None if run.answer is None else json.dumps({"messages": [_assistant(run.answer)]})
    rows = [
        {
            **_row(run, run, (root, None), "CHAIN", AGENT, error=run.error),
            "input": asked,
            "output": said,
        }
    ]
    calls = 0
    for index, turn in enumerate(run.turns):
        rows.append(_generation_row(run, turn, index, root, calls))
        for record in turn.calls:
            rows += _tool_rows(run, record, calls, root)
            calls += 1
    rows.sort(key=lambda row: row["startTime"], reverse=True)
    trace = {
        **_PROJECT,
        "id": run.trace_id,
        "name": AGENT,
        "timestamp": _times(run)["started_at"],
        "tags": [run.task.workflow],
        "bookmarked": False,
        "release": None,
        "userId": "alice",
        "sessionId": None,
        "public": False,
        "input": json.dumps(asked),
        "output": None if said is None else json.dumps(said),
        "createdAt": _times(run)["started_at"],
        "updatedAt": _times(run)["ended_at"],
        "metadata": json.dumps(_metadata(run)),
        "scores": [],
    }
    return {"trace": trace, "observations": rows}


def _generation_row(run: Run, turn: Turn, index: int, root: str, calls: int) -> Row:
    wanted = [
        {**_request(run, record, calls + offset), "type": "tool_call"}
        for offset, record in enumerate(turn.calls)
    ]
    ids = (_span(run, "generation", index), root)
    row = _row(run, turn, ids, "GENERATION", "ChatOpenAI", error=turn.error)
    row["input"] = json.dumps([{"role": "user", "content": run.task.prompt}])
    if turn.usage:
        row["output"] = json.dumps({**_assistant(turn.text or ""), "tool_calls": wanted})
        row["usageDetails"] = {**turn.usage, "total": sum(turn.usage.values())}
        row["costDetails"] = {**turn.cost, "total": _dollars(turn)}
        row["totalCost"] = _dollars(turn)
    return {**row, "model": MODEL, "toolCallNames": [call["name"] for call in wanted]}


def _tool_rows(run: Run, record: CallRecord, index: int, root: str) -> list[Row]:
    """The node of the graph and the tool in it; a failure is written on both."""
    ids = (_span(run, "node", index), root)
    node = _row(run, record, ids, "CHAIN", "tools", error=record.error)
    ids = (_span(run, "tool", index), node["id"])
    tool = _row(run, record, ids, "TOOL", record.call.tool, error=record.error)
    request = _request(run, record, index)
    node["input"] = json.dumps([{**request, "type": "tool_call"}])
    tool["input"] = json.dumps(record.call.arguments)
    if record.result is not None:
        message = {"content": record.result, "type": "tool", "name": record.call.tool}
        message |= {"tool_call_id": request["id"], "status": "success"}
        node["output"] = json.dumps({"messages": [message]})
        tool["output"] = json.dumps(message)
    return [node, tool]


def _row(
    run: Run,
    timed: Run | Turn | CallRecord,
    ids: tuple[str, str | None],
    kind: str,
    name: str,
    *,
    error: str | None,
) -> Row:
    """One observation without input and output; `ids` are its own and its parent's."""
    times = _times(timed)
    metadata = {"thread_id": run.trace_id[:8], "lc_agent_name": AGENT}
    if kind == "TOOL" or name == "tools":
        metadata["langgraph_node"] = "tools"
    return {
        **_PROJECT,
        **_EMPTY_ROW,
        "id": ids[0],
        "traceId": run.trace_id,
        "parentObservationId": ids[1],
        "type": kind,
        "name": name,
        "startTime": times["started_at"],
        "endTime": times["ended_at"],
        "createdAt": times["started_at"],
        "updatedAt": times["ended_at"],
        "latency": _milliseconds(timed) / 1000,
        "level": "DEFAULT" if error is None else "ERROR",
        "statusMessage": error,
        "input": None,
        "output": None,
        "metadata": json.dumps(metadata),
    }


def _request(run: Run, record: CallRecord, index: int) -> Row:
    call = record.call
    return {"id": _span(run, "call", index), "name": call.tool, "args": call.arguments}


def _tokens(*turns: Turn) -> dict[str, int]:
    return {
        name: sum(turn.usage.get(bucket, 0) for turn in turns) for bucket, name in _BUCKETS.items()
    }


def _dollars(*turns: Turn) -> float:
    """US dollars in whole millionths."""
    return round(sum(sum(turn.cost.values()) for turn in turns), 6)


def _metadata(run: Run) -> dict[str, Any]:
    return {
        "workflow_name": run.task.workflow,
        "model_name": MODEL,
        "task_id": f"{AGENT}/{run.task.name}",
        "variant": run.variant,
        "workspace": WORKSPACE,
    }


def _assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _span(run: Run, kind: str, index: int) -> str:
    return hashlib.sha256(f"{run.trace_id}/{kind}/{index}".encode()).hexdigest()[:16]


def _times(timed: Run | Turn | CallRecord) -> dict[str, str]:
    return {
        key: time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        for key, time in (("started_at", timed.started_at), ("ended_at", timed.ended_at))
    }


def _milliseconds(timed: Run | Turn | CallRecord) -> int:
    return round((timed.ended_at - timed.started_at).total_seconds() * 1000)


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
