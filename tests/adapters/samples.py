"""Trace files written by hand for the tests of the adapters.

Belongs here: builders that give the smallest file showing one thing. Does not belong here: what
is expected of it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.model.trace import Origin, TraceSnapshot

DATA = Path(__file__).parents[1] / "data" / "traces"

NAME = "/home/somebody/secret folder/results.json"
"""How people call the file; no such path may get into a snapshot."""


def trace_file(content: Any, key: str = "sub/results.json") -> TraceFile:
    """A file of the given bytes, text, or JSON value."""
    if isinstance(content, str):
        content = content.encode()
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return TraceFile(NAME, key, data)


def parse(content: Any, format_name: str = "auto") -> list[TraceSnapshot]:
    """The snapshots of a file before identity is settled."""
    file = trace_file(content)
    return list(choose_format(file, format_name).parse(file))


def snapshot(trace_id: str = "t1", **fields: Any) -> TraceSnapshot:
    """A snapshot that can be placed, with some fields changed."""
    known: dict[str, Any] = {
        "origin": Origin(file="a.json", sha256="0" * 64, record="[0]", format="snapshot"),
        "model": "gpt-4o",
        "workflow": "support",
        "task": "task-1",
        "started_at": datetime(2026, 3, 1, 12, tzinfo=UTC),
    }
    return TraceSnapshot(trace_id=trace_id, **{**known, **fields})


def record(trace_id: str = "t1", **fields: Any) -> dict[str, Any]:
    """A snapshot as JSON data, as a person would write it to a file."""
    known = {
        "trace_id": trace_id,
        "model": "gpt-4o",
        "workflow": "support",
        "task": "task-1",
        "started_at": "2026-03-01T12:00:00Z",
        "prompt": "Where is my order?",
    }
    return {key: value for key, value in {**known, **fields}.items() if value is not None}


def recording(**fields: Any) -> dict[str, Any]:
    """What the recorder of golden traces dumps."""
    called = [{"name": "get_order", "arguments": {"order_id": "1842"}}]
    return {"tools": called, "asked_clarification": False, "final": None, **fields}


def lines(*values: Any, end: str = "\n") -> bytes:
    """JSON Lines; a text is put in as it is."""
    texts = (value if isinstance(value, str) else json.dumps(value) for value in values)
    return "".join(text + end for text in texts).encode()


GREETING = {"role": "assistant", "content": "Hi! How can I help?", "cost": 0.0, "usage": None}


def user(text: str | None = "Cancel ABC, please.", **fields: Any) -> dict[str, Any]:
    """A message of the simulated user."""
    return {
        "role": "user",
        "content": text,
        "cost": 0.5,
        "usage": {"prompt_tokens": 900, "completion_tokens": 90},
        **fields,
    }


def agent(text: str | None = None, *calls: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """A message of the agent."""
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": list(calls) or None,
        "cost": 0.01,
        "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        **fields,
    }


def call(name: str, arguments: Any = None, call_id: Any = "c1", **fields: Any) -> dict[str, Any]:
    """A request to run a tool."""
    return {
        "id": call_id,
        "name": name,
        "arguments": {} if arguments is None else arguments,
        "requestor": "assistant",
        **fields,
    }


def result(content: Any = "done", call_id: Any = "c1", **fields: Any) -> dict[str, Any]:
    """What a tool gave back."""
    return {
        "role": "tool",
        "id": call_id,
        "content": content,
        "requestor": "assistant",
        "error": False,
        **fields,
    }


def simulation(messages: Any, **fields: Any) -> dict[str, Any]:
    """One simulation; a field given as None is left out."""
    known = {
        "id": "sim-1",
        "task_id": "7",
        "trial": 0,
        "seed": 300,
        "start_time": "2026-03-01T12:00:00.500000",
        "end_time": "2026-03-01T12:00:12.750000",
        "duration": 12.25,
        "termination_reason": "user_stop",
        "agent_cost": 0.02,
        "user_cost": 1.0,
        "reward_info": {"reward": 1.0},
        "messages": messages,
    }
    return {key: value for key, value in {**known, **fields}.items() if value is not None}


def tau2(
    *simulations: Any,
    tasks: Sequence[Any] = (),
    domain: str | None = "airline",
    **agent_info: Any,
) -> dict[str, Any]:
    """A τ²-bench result file."""
    return {
        "timestamp": "2026-03-01T11:00:00",
        "info": {
            "git_commit": "abc123",
            "agent_info": {"implementation": "llm_agent", "llm": "gpt-4o", **agent_info},
            "user_info": {"implementation": "user_simulator", "llm": "gpt-4.1"},
            "environment_info": {} if domain is None else {"domain_name": domain},
        },
        "tasks": list(tasks),
        "simulations": list(simulations),
    }


CONVERSATION = (
    GREETING,
    user(),
    agent(None, call("get_reservation", {"id": "ABC"}, "c1")),
    result('{"id": "ABC"}', "c1"),
    agent("Shall I cancel it?"),
    user("Yes."),
    agent(None, call("cancel_reservation", {"id": "ABC"}, "c2")),
    result("cancelled", "c2"),
    agent("It is cancelled."),
    user("###STOP###"),
)


def one(*messages: Any, **fields: Any) -> TraceSnapshot:
    """The only snapshot of a τ²-bench file with one simulation."""
    (found,) = parse(tau2(simulation(list(messages or CONVERSATION), **fields)))
    return found
