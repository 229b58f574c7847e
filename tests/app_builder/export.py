"""A run as the files that traces are kept in: a snapshot, and a download from Langfuse's UI.

Belongs here: two spellings of one run. Does not belong here: what happened in it (`harness`).

The download is shaped as LangGraph's callback leaves it: a CHAIN `tools` around each TOOL, which
fails with it; usage in disjoint buckets; rows by start time, the latest first; input, output and
metadata as JSON text, the trace's own input and output as JSON text in JSON text.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any

from tests.app_builder.harness import MODEL, CallRecord, Run, Turn
from tests.app_builder.project import WORKSPACE

AGENT = "app-builder"
_BUCKETS = {"input": "input", "input_cache_read": "cache_read", "output": "output"}


def snapshot(run: Run) -> dict[str, Any]:
    """The run as snapshot JSON."""
    generations: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    for index, turn in enumerate(run.turns):
        generations.append(
            _known(
                model=MODEL,
                agent=AGENT,
                tokens={_BUCKETS[bucket]: count for bucket, count in turn.usage.items()},
                cost_usd=_dollars(turn) if turn.usage else None,
                started_at=_time(turn.started_at),
                ended_at=_time(turn.ended_at),
                span_id=_span(run, "generation", index),
                finish_reason=_finish_reason(turn),
                before_call=len(calls),
            )
        )
        for record in turn.calls:
            calls.append(_snapshot_call(run, record, len(calls)))
    return _known(
        trace_id=run.trace_id,
        name=AGENT,
        workflow=run.task.workflow,
        model=MODEL,
        agents=[AGENT],
        task=f"{AGENT}/{run.task.name}",
        started_at=_time(run.started_at),
        ended_at=_time(run.ended_at),
        duration_ms=_milliseconds(run.started_at, run.ended_at),
        environment="default",
        metadata=_metadata(run),
        prompt=run.task.prompt,
        final_answer=run.answer,
        ended="completed" if run.error is None else "error",
        ended_normally=run.error is None,
        error=run.error,
        tokens={
            name: sum(turn.usage.get(bucket, 0) for turn in run.turns)
            for bucket, name in _BUCKETS.items()
        },
        cost_usd=total_cost(run),
        generations=generations,
        tool_calls=calls,
        messages=_messages(run),
        error_spans=[
            {
                "name": MODEL,
                "kind": "GENERATION",
                "message": turn.error,
                "agent": AGENT,
                "started_at": _time(turn.started_at),
                "span_id": _span(run, "generation", index),
            }
            for index, turn in enumerate(run.turns)
            if turn.error is not None
        ],
    )


def _finish_reason(turn: Turn) -> str | None:
    if turn.error is not None:
        return None
    return "stop" if turn.text is not None else "tool_calls"


def _snapshot_call(run: Run, record: CallRecord, index: int) -> dict[str, Any]:
    return _known(
        name=record.call.tool,
        arguments=record.call.arguments,
        result=record.result,
        status="ok" if record.error is None else "error",
        error=record.error,
        started_at=_time(record.started_at),
        ended_at=_time(record.ended_at),
        agent=AGENT,
        span_id=_span(run, "tool", index),
    )


def _messages(run: Run) -> list[dict[str, Any]]:
    """The questions and the last words; a question has been put when its call is made."""
    asked = [
        {
            "text": record.call.arguments["question"],
            "before_call": index + 1,
            "question": True,
            "agent": AGENT,
            "at": _time(record.started_at),
        }
        for index, record in enumerate(run.calls)
        if record.call.tool == "ask_user"
    ]
    said = [
        {
            "text": turn.text,
            "before_call": len(run.calls),
            "agent": AGENT,
            "at": _time(turn.ended_at),
        }
        for turn in run.turns
        if turn.text is not None
    ]
    return asked + said


def langfuse(run: Run) -> dict[str, Any]:
    """The run as Langfuse's UI downloads a trace: `{trace, observations}`."""
    root = _span(run, "root", 0)
    asked = json.dumps({"messages": [{"role": "user", "content": run.task.prompt}]})
    said = None if run.answer is None else json.dumps({"messages": [_assistant(run.answer)]})
    rows = [
        _row(
            run,
            root,
            None,
            "CHAIN",
            AGENT,
            (run.started_at, run.ended_at),
            run.error,
            input=asked,
            output=said,
        )
    ]
    calls = 0
    for index, turn in enumerate(run.turns):
        rows.append(_generation_row(run, turn, index, root, calls))
        for record in turn.calls:
            rows += _tool_rows(run, record, calls, root)
            calls += 1
    rows.sort(key=lambda row: row["startTime"], reverse=True)
    trace = {
        "id": run.trace_id,
        "projectId": "clappbuilder0001",
        "name": AGENT,
        "timestamp": _time(run.started_at),
        "environment": "default",
        "tags": [run.task.workflow],
        "bookmarked": False,
        "release": None,
        "version": None,
        "userId": "alice",
        "sessionId": None,
        "public": False,
        "input": json.dumps(asked),
        "output": json.dumps(said),
        "createdAt": _time(run.started_at),
        "updatedAt": _time(run.ended_at),
        "metadata": json.dumps(_metadata(run)),
        "scores": [],
        "latency": _milliseconds(run.started_at, run.ended_at) / 1000,
    }
    return {"trace": trace, "observations": rows}


def _generation_row(run: Run, turn: Turn, index: int, root: str, calls: int) -> dict[str, Any]:
    wanted = [
        {
            "id": _span(run, "call", calls + offset),
            "type": "tool_call",
            "name": record.call.tool,
            "args": record.call.arguments,
        }
        for offset, record in enumerate(turn.calls)
    ]
    asked = [{"role": "user", "content": run.task.prompt}]
    row = _row(
        run,
        _span(run, "generation", index),
        root,
        "GENERATION",
        "ChatOpenAI",
        (turn.started_at, turn.ended_at),
        turn.error,
        input=json.dumps(asked),
        output=json.dumps({**_assistant(turn.text or ""), "tool_calls": wanted}),
    )
    if turn.usage:
        row["usageDetails"] = {**turn.usage, "total": sum(turn.usage.values())}
        row["costDetails"] = {**turn.cost, "total": _dollars(turn)}
        row["totalCost"] = _dollars(turn)
    row["model"] = MODEL
    row["toolCallNames"] = [call["name"] for call in wanted]
    return row


def _tool_rows(run: Run, record: CallRecord, index: int, root: str) -> list[dict[str, Any]]:
    """The node of the graph and the tool in it; a failure is written on both."""
    node, call_id = _span(run, "node", index), _span(run, "call", index)
    request = {"name": record.call.tool, "args": record.call.arguments, "id": call_id}
    message = {
        "content": record.result,
        "type": "tool",
        "name": record.call.tool,
        "tool_call_id": call_id,
        "status": "success",
    }
    times = (record.started_at, record.ended_at)
    return [
        _row(
            run,
            node,
            root,
            "CHAIN",
            "tools",
            times,
            record.error,
            input=json.dumps([{**request, "type": "tool_call"}]),
            output=json.dumps({"messages": [message]}),
        ),
        _row(
            run,
            _span(run, "tool", index),
            node,
            "TOOL",
            record.call.tool,
            times,
            record.error,
            input=json.dumps(record.call.arguments),
            output=json.dumps(message),
        ),
    ]


def _row(
    run: Run,
    row_id: str,
    parent: str | None,
    kind: str,
    name: str,
    times: tuple[datetime, datetime],
    error: str | None,
    **io: str | None,
) -> dict[str, Any]:
    """One observation; what failed has no output, unless it is the trace's root."""
    started, ended = times
    if error is not None and parent is not None:
        io["output"] = None
    metadata = {"thread_id": run.trace_id[:8], "lc_agent_name": AGENT}
    if kind == "TOOL" or name == "tools":
        metadata["langgraph_node"] = "tools"
    return {
        "id": row_id,
        "traceId": run.trace_id,
        "startTime": _time(started),
        "endTime": _time(ended),
        "projectId": "clappbuilder0001",
        "parentObservationId": parent,
        "type": kind,
        "environment": "default",
        "name": name,
        "level": "DEFAULT" if error is None else "ERROR",
        "statusMessage": error,
        "version": None,
        "createdAt": _time(started),
        "updatedAt": _time(ended),
        **io,
        "model": None,
        "modelParameters": None,
        "completionStartTime": None,
        "latency": _milliseconds(started, ended) / 1000,
        "timeToFirstToken": None,
        "usageDetails": {},
        "costDetails": {},
        "totalCost": 0,
        "toolDefinitions": {},
        "toolCalls": [],
        "toolCallNames": [],
        "metadata": json.dumps(metadata),
    }


def total_cost(run: Run) -> float:
    """US dollars of the whole run, in whole millionths."""
    return round(sum(_dollars(turn) for turn in run.turns), 6)


def _dollars(turn: Turn) -> float:
    return round(sum(turn.cost.values()), 6)


def _metadata(run: Run) -> dict[str, Any]:
    return {
        "workflow_name": run.task.workflow,
        "model_name": MODEL,
        "task_id": f"{AGENT}/{run.task.name}",
        "variant": run.variant,
        "workspace": WORKSPACE,
        "user_id": "alice",
    }


def _assistant(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def _span(run: Run, kind: str, index: int) -> str:
    return hashlib.sha256(f"{run.trace_id}/{kind}/{index}".encode()).hexdigest()[:16]


def _time(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _milliseconds(started: datetime, ended: datetime) -> int:
    return round((ended - started).total_seconds() * 1000)


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
