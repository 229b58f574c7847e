"""Many small traces of an agent at work, made quickly and always the same for a seed.

Belongs here: traces as a healthy integration writes them. Does not belong here: rows that are odd
or broken (`oddities`).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from .contents import Pair, Row, iso

START = datetime(2026, 11, 2, tzinfo=UTC)
MODELS = ("claude-sonnet-4-5", "gpt-5-mini", "gemini-2.5-flash")
AGENTS = ("planner", "researcher", "support")
TOOLS = {
    "search": ("query", "three pages found"),
    "read_file": ("path", "the file's text"),
    "write_file": ("path", "written"),
    "send_mail": ("to", "queued"),
}
WORDS = ("invoice", "refund", "schedule", "report", "order", "contract", "meeting", "budget")
MAX_LOOPS = 3


def generate(
    n: int,
    seed: int = 0,
    *,
    start: datetime = START,
    span: timedelta = timedelta(days=1),
    environments: Sequence[str] = ("default",),
) -> list[Pair]:
    """`n` traces whose times are spread evenly at random over `[start, start + span)`.

    Each has an agent at its root and one to three rounds of a generation and a tool call below,
    then a closing generation: three to seven observations more than the root's one. About one
    tool call in twelve fails. Sessions hold up to five traces; metadata has `thread_id`, `run_id`,
    `projectid` and, nested, `app.version`.
    """
    rng = random.Random(f"langfuse-traces:{seed}")
    begin, width = int(start.timestamp() * 1000), int(span.total_seconds() * 1000)
    return [_trace(rng, number, begin + rng.randrange(width), environments) for number in range(n)]


def _trace(rng: random.Random, number: int, at: int, environments: Sequence[str]) -> Pair:
    trace_id, root_id = f"{rng.getrandbits(128):032x}", f"{rng.getrandbits(64):016x}"
    agent, environment = rng.choice(AGENTS), rng.choice(environments)
    model, session = rng.choice(MODELS), f"session-{number // 5}"
    prompt = f"Please prepare the {rng.choice(WORDS)} of {rng.choice(WORDS)} {number}."
    shared = {"traceId": trace_id, "environment": environment}
    clock, rows = at, []
    for turn in range(rng.randint(1, MAX_LOOPS)):
        made, clock = _turn(rng, shared, root_id, clock + 5, model, f"{prompt} ({turn})")
        rows += made
    answer = f"The {rng.choice(WORDS)} is ready."
    closing = _generation(rng, shared, root_id, clock + 5, model, prompt, {"content": answer})
    clock = closing.pop("ended")
    root = {
        **shared,
        "id": root_id,
        "parentObservationId": None,
        "type": "AGENT",
        "name": agent,
        "startTime": iso(at),
        "endTime": iso(clock + 3),
        "input": {"messages": [{"role": "user", "content": prompt}]},
        "output": {"messages": [{"role": "assistant", "content": answer}]},
        "metadata": {"agent": agent},
    }
    trace = {
        "id": trace_id,
        "timestamp": iso(at),
        "name": agent,
        "input": root["input"],
        "output": root["output"],
        "userId": f"user-{rng.randrange(20)}",
        "sessionId": session,
        "tags": sorted({"bench", rng.choice(("nightly", "manual"))}),
        "environment": environment,
        "metadata": {
            "thread_id": session,
            "run_id": f"run-{number}",
            "projectid": f"P{number % 7}",
            "app": {"version": "1.4"},
        },
    }
    return trace, [root, *rows, closing]


def _turn(
    rng: random.Random, shared: Row, root_id: str, at: int, model: str, prompt: str
) -> tuple[list[Row], int]:
    """A generation that calls a tool, and the tool's own row; and when it was over."""
    tool = rng.choice(tuple(TOOLS))
    key, result = TOOLS[tool]
    arguments = {key: rng.choice(WORDS)}
    call = {"id": f"call_{rng.getrandbits(32):08x}", "name": tool, "args": arguments}
    said = {"role": "assistant", "content": "", "tool_calls": [{**call, "type": "tool_call"}]}
    asked = _generation(rng, shared, root_id, at, model, prompt, said)
    began = asked.pop("ended") + 1
    failed = rng.randrange(12) == 0
    ended = began + rng.randint(2, 900)
    used = {
        **shared,
        "id": f"{rng.getrandbits(64):016x}",
        "parentObservationId": root_id,
        "type": "TOOL",
        "name": tool,
        "startTime": iso(began),
        "endTime": iso(ended),
        "input": arguments,
        "output": None if failed else {"content": result, "tool_call_id": call["id"]},
        "level": "ERROR" if failed else "DEFAULT",
        "statusMessage": "ToolError: the service is away" if failed else None,
        "metadata": {"tool_call_id": call["id"]},
    }
    return [asked, used], ended


def _generation(
    rng: random.Random, shared: Row, root_id: str, at: int, model: str, prompt: str, said: Row
) -> Row:
    taken, given = rng.randint(50, 900), rng.randint(5, 200)
    ended = at + rng.randint(200, 3000)
    cost = {"input": taken * 3e-6, "output": given * 1.5e-5}
    return {
        **shared,
        "id": f"{rng.getrandbits(64):016x}",
        "parentObservationId": root_id,
        "type": "GENERATION",
        "name": "chat",
        "startTime": iso(at),
        "endTime": iso(ended),
        "model": model,
        "input": [{"role": "user", "content": prompt}],
        "output": said,
        "usageDetails": {"input": taken, "output": given, "total": taken + given},
        "costDetails": {**cost, "total": cost["input"] + cost["output"]},
        "metadata": {"temperature": 0.2},
        "ended": ended,
    }
