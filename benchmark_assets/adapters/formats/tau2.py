"""τ²-bench result files: one JSON file with many simulations of one agent model.

A simulation is one trace. The simulated user is a model too: its tokens, cost and tool calls
are not the agent's and are left out. The greeting that opens every conversation is scripted,
not generated. Times without a zone are UTC.

Left out on purpose: `reward_info` (a published grade), the tasks' ground truth, and the
models' `llm_args` (people's result files carry API keys there).
"""

from __future__ import annotations

import contextlib
from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import (
    TraceFile,
    amount,
    decode_json,
    id_or_none,
    parse_time,
    text_or_none,
    whole_number,
)
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import (
    Generation,
    Message,
    Tokens,
    ToolCall,
    TraceSnapshot,
    sum_tokens,
)

NORMAL_ENDINGS = frozenset({"user_stop", "agent_stop"})
"""The conversation was closed by one of its two sides."""

NOT_THE_AGENT = frozenset({"user_error", "infrastructure_error", "unexpected_error"})
"""The benchmark failed, not the agent: such a run says nothing about the model."""

_LARGEST_TRIAL = 2**31 - 1


class Tau2Format:
    """Reads τ²-bench result files."""

    name = "tau2"
    description = "τ²-bench result files, many simulations in one"

    def matches(self, file: TraceFile) -> bool:
        """An object with a list of `simulations` and the benchmark's `info`."""
        sample = file.sample
        return (
            isinstance(sample, dict)
            and isinstance(sample.get("simulations"), list)
            and isinstance(sample.get("info"), dict)
        )

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield a snapshot per simulation."""
        document = file.json
        if not isinstance(document, dict) or not isinstance(document.get("simulations"), list):
            raise InputError(
                file.problem(
                    "has no list of simulations",
                    key="simulations",
                    cure="is this a τ²-bench result file?",
                )
            )
        run = _Run(document.get("info"))
        for index, simulation in enumerate(document["simulations"]):
            yield _snapshot(file, run, simulation, f"simulations[{index}]")


class _Run:
    """What all simulations of a file share."""

    def __init__(self, info: Any) -> None:
        info = _dict(info)
        agent, user = _dict(info.get("agent_info")), _dict(info.get("user_info"))
        self.domain = text_or_none(_dict(info.get("environment_info")).get("domain_name"))
        self.model = text_or_none(agent.get("llm"))
        self.agent = text_or_none(agent.get("implementation"))
        known = {
            "domain": self.domain,
            "agent_implementation": self.agent,
            "user_model": text_or_none(user.get("llm")),
            "git_commit": text_or_none(info.get("git_commit")),
        }
        self.metadata = {key: value for key, value in known.items() if value is not None}


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _snapshot(file: TraceFile, run: _Run, simulation: Any, record: str) -> TraceSnapshot:
    fields = _dict(simulation)
    task_id = id_or_none(fields.get("task_id"))
    task = None if task_id is None else f"{run.domain}/{task_id}" if run.domain else task_id
    common: dict[str, Any] = {
        "trace_id": id_or_none(fields.get("id")) or file.made_id(record),
        "origin": file.origin("tau2", record),
        "name": run.domain,
        "model": run.model,
        "task": task,
        "trial": whole_number(fields.get("trial"), most=_LARGEST_TRIAL),
        "started_at": parse_time(fields.get("start_time")),
    }
    where = f"{file.key}: {record}"
    if not isinstance(simulation, dict):
        return TraceSnapshot(**common, problem=f"{where}: expected an object")
    messages = fields.get("messages")
    if not isinstance(messages, list):
        return TraceSnapshot(**common, problem=f"{where}.messages: expected a list of messages")
    conversation = _Conversation(run.agent)
    for position, message in enumerate(messages):
        problem = conversation.add(message)
        if problem:
            return TraceSnapshot(**common, problem=f"{where}.messages[{position}]: {problem}")
    ended = text_or_none(fields.get("termination_reason"))
    seconds = amount(fields.get("duration"))
    metadata = dict(run.metadata)
    if isinstance(fields.get("seed"), int):
        metadata["seed"] = fields["seed"]
    problem = None
    if ended is None:
        problem = f"{where}.termination_reason: is missing, so the simulation is not complete"
    elif ended in NOT_THE_AGENT:
        problem = f"{where}: ended by {ended}, which is not the agent's doing"
    return TraceSnapshot(
        **common,
        ended_at=parse_time(fields.get("end_time")),
        duration_ms=None if seconds is None else round(seconds * 1000),
        metadata=metadata,
        agents=() if run.agent is None else (run.agent,),
        prompt=conversation.prompt,
        final_answer=conversation.messages[-1].text if conversation.messages else None,
        ended=ended,
        ended_normally=None if ended is None else ended in NORMAL_ENDINGS,
        error=None if ended is None or ended in NORMAL_ENDINGS else f"ended by {ended}",
        tokens=sum_tokens(tuple(g.tokens for g in conversation.generations)),
        cost_usd=amount(fields.get("agent_cost")),
        generations=tuple(conversation.generations),
        tool_calls=conversation.calls(),
        messages=tuple(conversation.messages),
        problem=problem,
    )


class _Conversation:
    """Collects what the agent did from the messages, in order."""

    def __init__(self, agent: str | None) -> None:
        self.agent = agent
        self.prompt: str | None = None
        self.generations: list[Generation] = []
        self.messages: list[Message] = []
        self._calls: list[ToolCall] = []
        # Ids are not unique in practice: some models number their calls anew in every message,
        # some give none at all. A result answers the oldest call of its id in the last message
        # that used the id.
        self._waiting: dict[str | None, deque[int]] = defaultdict(deque)
        self._answered: set[int] = set()

    def add(self, message: Any) -> str | None:
        """Take in one message; return what is wrong with it, if anything."""
        if not isinstance(message, dict):
            return "expected an object"
        role = message.get("role")
        if role == "assistant":
            return self._assistant(message)
        if role == "tool":
            for result in _list(message.get("tool_messages")) or [message]:
                self._result(_dict(result))
            return None
        if role == "user":
            self._user(message)
            return None
        return None if role == "system" else f"unknown role {role!r}"

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls; one that never got a result did not succeed."""
        return tuple(
            call
            if index in self._answered
            else msgspec.structs.replace(
                call, status="error", error="the run ended without a result"
            )
            for index, call in enumerate(self._calls)
        )

    def _user(self, message: dict[str, Any]) -> None:
        text = text_or_none(message.get("content"))
        if text is None:
            return
        if self.prompt is None:
            self.prompt = text  # What was said before is a greeting, and asks nothing.
        elif self.messages and self.messages[-1].before_call == len(self._calls):
            self.messages[-1] = msgspec.structs.replace(self.messages[-1], question=True)

    def _assistant(self, message: dict[str, Any]) -> str | None:
        at = parse_time(message.get("timestamp"))
        if self.prompt is not None or message.get("usage") is not None:
            self.generations.append(self._generation(message))
        text = text_or_none(message.get("content"))
        if text is not None:
            self.messages.append(
                Message(text=text, before_call=len(self._calls), agent=self.agent, at=at)
            )
        requests = _list(message.get("tool_calls"))
        for request in requests:
            # What an earlier message asked for under this id is not answered any more.
            self._waiting.pop(id_or_none(_dict(request).get("id")), None)
        for request in requests:
            name = _dict(request).get("name")
            if not isinstance(name, str) or not name:
                return f"tool_calls: a call has no name: {str(request)[:80]}"
            arguments = request.get("arguments")
            if isinstance(arguments, str):
                # What is not JSON stays the text it is: rules on arguments will say so.
                with contextlib.suppress(msgspec.DecodeError, RecursionError):
                    arguments = decode_json(arguments.encode())
            call_id = id_or_none(request.get("id"))
            self._waiting[call_id].append(len(self._calls))
            self._calls.append(
                ToolCall(
                    name=name,
                    arguments=arguments,
                    started_at=at,
                    agent=self.agent,
                    span_id=call_id,
                )
            )
        return None

    def _generation(self, message: dict[str, Any]) -> Generation:
        raw = _dict(message.get("raw_data"))
        return Generation(
            model=text_or_none(raw.get("model")),
            agent=self.agent,
            tokens=_tokens(_dict(message.get("usage")), _dict(raw.get("usage"))),
            cost_usd=amount(message.get("cost")),
            finish_reason=text_or_none(raw.get("finish_reason") or raw.get("stop_reason")),
            ended_at=parse_time(message.get("timestamp")),
            response_id=text_or_none(raw.get("id")),
            before_call=len(self._calls),
        )

    def _result(self, message: dict[str, Any]) -> None:
        if message.get("requestor") == "user":
            return  # the simulated user's own tool
        waiting = self._waiting[id_or_none(message.get("id"))]
        if not waiting:
            return
        index = waiting.popleft()
        failed = message.get("error") is True
        content = message.get("content")
        self._answered.add(index)
        self._calls[index] = msgspec.structs.replace(
            self._calls[index],
            result=content,
            status="error" if failed else "ok",
            error=str(content) if failed and content else None,
            ended_at=parse_time(message.get("timestamp")),
        )


def _tokens(usage: dict[str, Any], raw: dict[str, Any]) -> Tokens:
    """Disjoint buckets from the benchmark's usage, refined by the provider's where it is kept.

    `prompt_tokens` counts cached tokens in (OpenAI's convention); Anthropic's raw `input_tokens`
    does not.
    """
    prompt = whole_number(usage.get("prompt_tokens"))
    output = whole_number(usage.get("completion_tokens"))
    read = whole_number(raw.get("cache_read_input_tokens"))
    write = whole_number(raw.get("cache_creation_input_tokens"))
    uncached = whole_number(raw.get("input_tokens"))
    if uncached is not None and (read is not None or write is not None):
        return Tokens(input=uncached, output=output, cache_read=read, cache_write=write)
    cached = whole_number(_dict(usage.get("prompt_tokens_details")).get("cached_tokens"))
    thought = whole_number(_dict(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    return Tokens(
        input=prompt if prompt is None or cached is None else max(prompt - cached, 0),
        output=output if output is None or thought is None else max(output - thought, 0),
        cache_read=cached,
        reasoning=thought,
    )


FORMAT = Tau2Format()
