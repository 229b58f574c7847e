"""AgentDojo run files: one JSON object a run of one pipeline at one task.

The suite is the workflow, and the task is named with it: `banking/user_task_0`. A run under
attack is another task (`banking/user_task_0/injection_task_3`): what a model does to a prompt
injection is no trial of what it does without.

The file gives no time, no tokens and no cost, and no id: the id is made of the file's content.
It gives no trial either; a file called `trial2.json` is the second one.

How a run ended is not recorded, but follows from how AgentDojo works. Its loop asks the model,
runs the tools the model asked for, and asks again, until an answer asks for none:
`final_message`, the normal ending. The loop gives up after a number of rounds and then leaves
requests that nobody ran: `max_iters`. An exception is in `error`: `error`; a provider's
failure, of which the agent is not the cause, says nothing about the model. A run whose last
message is anything else is not complete.

Left out on purpose: `utility` and `security` (published grades), and the text of `injections`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from benchmark_assets.adapters.formats.base import (
    TraceFile,
    amount,
    id_or_none,
    text_or_none,
    whole_number,
)
from benchmark_assets.adapters.formats.messages import (
    LARGEST_TRIAL,
    CallLog,
    as_dict,
    as_list,
    text_of,
)
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import Generation, Message, TraceSnapshot

NORMAL_ENDING = "final_message"
"""The agent answered without asking for another tool."""

_TRIAL = re.compile(r"(?:^|/)trial[_-]?([0-9]{1,9})\.json$", re.IGNORECASE)

_INFRASTRUCTURE = re.compile(
    r"\b(?:internal server error|server error|service unavailable|overloaded"
    r"|rate limit|connection error|connection reset)\b",
    re.IGNORECASE,
)


class AgentDojoFormat:
    """Reads AgentDojo run files."""

    name = "agentdojo"
    description = "AgentDojo run files, one run of one pipeline each"

    def matches(self, file: TraceFile) -> bool:
        """An object with a suite, a user task and a list of messages."""
        return file.is_json and is_run(file.json)

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield the snapshot of the run."""
        value = file.json
        if not isinstance(value, dict) or "messages" not in value:
            raise InputError(
                file.problem("has no messages", key="messages", cure="is this an AgentDojo run?")
            )
        yield _snapshot(file, value)


def is_run(value: Any) -> bool:
    """Whether a JSON value is an AgentDojo run."""
    return (
        isinstance(value, dict)
        and {"suite_name", "user_task_id"} <= value.keys()
        and isinstance(value.get("messages"), list)
    )


def run_id(file: TraceFile) -> str:
    """The id of a run file's trace: the file has none of its own."""
    return file.made_id("")


def _snapshot(file: TraceFile, fields: dict[str, Any]) -> TraceSnapshot:
    suite = text_or_none(fields.get("suite_name"))
    user_task = id_or_none(fields.get("user_task_id"))
    injection = id_or_none(fields.get("injection_task_id"))
    task = None
    if user_task is not None:
        task = "/".join(part for part in (suite, user_task, injection) if part is not None)
    trial = _TRIAL.search(file.key)
    known = {"injection_task_id": injection, "attack_type": text_or_none(fields.get("attack_type"))}
    common: dict[str, Any] = {
        "trace_id": run_id(file),
        "origin": file.origin("agentdojo"),
        "name": suite,
        "model": text_or_none(fields.get("pipeline_name")),
        "task": task,
        "trial": None if trial is None else whole_number(trial[1], most=LARGEST_TRIAL),
        "metadata": {key: value for key, value in known.items() if value is not None},
    }
    messages = fields.get("messages")
    if not isinstance(messages, list):
        return TraceSnapshot(**common, problem=f"{file.key}: messages: expected a list")
    run = _Run()
    for position, message in enumerate(messages):
        problem = run.add(message)
        if problem:
            return TraceSnapshot(**common, problem=f"{file.key}: messages[{position}]: {problem}")
    failure = fields.get("error")
    crash = None if failure in (None, "") else str(failure)
    ended = run.ended if crash is None else "error"
    problem = None
    if crash is not None and _INFRASTRUCTURE.search(crash):
        problem = f"{file.key}: error: {crash}: this is not the agent's doing"
    elif ended is None:
        problem = (
            f"{file.key}: messages: the last is not the agent's, so the run is not complete"
            if messages
            else f"{file.key}: messages: there are none, so the run is not complete"
        )
    error = crash
    if error is None and ended is not None and ended != NORMAL_ENDING:
        error = f"ended by {ended}"
    seconds = amount(fields.get("duration"))
    return TraceSnapshot(
        **common,
        duration_ms=None if seconds is None else whole_number(round(seconds * 1000)),
        prompt=run.prompt,
        final_answer=run.messages[-1].text if run.messages else None,
        ended=ended,
        ended_normally=None if ended is None else ended == NORMAL_ENDING,
        error=error,
        generations=tuple(run.generations),
        tool_calls=run.log.closed(results_recorded=True),
        messages=tuple(run.messages),
        problem=problem,
    )


class _Run:
    """Collects what the agent did from the messages, in order.

    Attributes:
        ended: How the run ended if the last message is the last there is, else None.
    """

    def __init__(self) -> None:
        self.prompt: str | None = None
        self.ended: str | None = None
        self.generations: list[Generation] = []
        self.messages: list[Message] = []
        self.log = CallLog()

    def add(self, message: Any) -> str | None:
        """Take in one message; return what is wrong with it, if anything."""
        if not isinstance(message, dict):
            return "expected an object"
        role = message.get("role")
        self.ended = None
        if role == "assistant":
            return self._assistant(message)
        if role == "tool":
            self._result(message)
            return None
        if role == "user":
            text = text_of(message.get("content"))
            self.prompt = text if self.prompt is None else self.prompt
            return None
        return None if role == "system" else f"unknown role {role!r}"

    def _assistant(self, message: dict[str, Any]) -> str | None:
        before = len(self.log)
        self.generations.append(Generation(before_call=before))
        text = text_of(message.get("content"))
        if text is not None:
            self.messages.append(Message(text=text, before_call=before))
        requests = as_list(message.get("tool_calls"))
        self.ended = "max_iters" if requests else NORMAL_ENDING
        return self.log.ask(requests, "args")

    def _result(self, message: dict[str, Any]) -> None:
        call = as_dict(message.get("tool_call"))
        function = call.get("function")
        content = message.get("content")
        if isinstance(content, list):
            content = text_of(content) or content
        error = message.get("error")
        self.log.answer(
            content,
            call_id=id_or_none(message.get("tool_call_id")) or id_or_none(call.get("id")),
            tool=text_or_none(function) or text_or_none(as_dict(function).get("name")),
            failed=error is not None,
            error=str(error) or None,
        )


FORMAT = AgentDojoFormat()
