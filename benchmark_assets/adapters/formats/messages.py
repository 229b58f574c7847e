"""Plain message lists, as OpenAI's chat API has them and as most home-grown loggers write them.

Belongs here: conversations made of `role`/`content` messages, and what other formats made of
such messages need to read them. Four shapes are understood:

* a JSON list of messages: one trace;
* an object with `messages` (and, as far as it has them, `id`, `model`, `task`, `trial`,
  `metadata`, `usage`, `created`, …): one trace;
* a JSON list of such lists or objects, or one on each line;
* τ-bench's episodes, where the messages are called `traj`, alone or in a list.

How a run ended is in none of them, so `ended` stays unknown; only τ-bench's simulated user says
`###STOP###` when it is done. A result is not marked as failed either, so the status of a call
that has one is unknown; only τ-bench's tools report a failure, as a text that starts with
`Error`. A call without a result did not succeed, unless the conversation has no result at all:
then results were not recorded. Where nothing was recorded at all (τ-bench keeps no message of an
episode that an exception ended), there is nothing to judge.

Left out on purpose: an episode's `reward` and `info` (published grades and the ground truth).
A model is never guessed: a trace that names none is reported as having none.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import (
    SAMPLE_RECORDS,
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

ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
"""Who speaks. `function` is the older spelling of `tool`."""

USER_STOP = "###STOP###"
"""What τ-bench's simulated user says when it has what it wanted."""

LARGEST_TRIAL = 2**31 - 1

# Files of other formats whose traces are messages too.
_OTHERS = (
    frozenset({"simulations"}),
    frozenset({"suite_name", "user_task_id"}),
    frozenset({"tools", "asked_clarification"}),
)

_TEXT_PARTS = frozenset({"text", "input_text", "output_text"})


class MessagesFormat:
    """Reads message lists."""

    name = "messages"
    description = "OpenAI-style message lists and τ-bench episodes, JSON or JSON Lines"

    def matches(self, file: TraceFile) -> bool:
        """A list of messages, or objects that hold one; one that is good is enough."""
        if file.is_json and isinstance(file.json, list):
            items = file.json[:SAMPLE_RECORDS]
            return any(_is_message(item) or _holds_messages(item) for item in items)
        return any(_holds_messages(item) for item in file.records())

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield a snapshot per conversation."""
        if not file.is_json:
            for number, value in file.lines():
                yield self._one(file, f"line {number}", value)
            return
        value = file.json
        if isinstance(value, dict):
            yield self._one(file, None, value)
        elif not isinstance(value, list):
            raise InputError(
                file.problem("holds no messages", cure="expected a list of messages or objects")
            )
        elif any(_is_message(item) for item in value) and not any(map(_holds_messages, value)):
            yield self._one(file, None, {"messages": value})
        else:
            for index, item in enumerate(value):
                yield self._one(file, f"[{index}]", item)

    def _one(self, file: TraceFile, record: str | None, value: Any) -> TraceSnapshot:
        if isinstance(value, InputError):
            return TraceSnapshot(
                trace_id=file.made_id(record or ""),
                origin=file.origin(self.name, record),
                problem=str(value).replace(file.name, file.key),
            )
        return _snapshot(file, record, value)


def _is_message(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and isinstance(value.get("role"), str)
        and value["role"] in ROLES
        and not {"content", "tool_calls", "function_call"}.isdisjoint(value)
    )


def _holds_messages(value: Any) -> bool:
    """Whether a value is one trace: an object with messages, or a list of them."""
    if isinstance(value, list):
        return any(map(_is_message, value))
    if not isinstance(value, dict) or any(keys <= value.keys() for keys in _OTHERS):
        return False
    if value.get("traj") == [] and {"task_id", "reward", "info"} <= value.keys():
        return True  # an episode that broke off before anything was said
    return any(map(_is_message, as_list(value.get("messages")) or as_list(value.get("traj"))))


def as_dict(value: Any) -> dict[str, Any]:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """The value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(content: Any) -> str | None:
    """The text of a message's content: a text, or parts of which the textual ones count.

    Parts are texts or objects, with the text under `text` or `content`; what a model refused
    with is said to the user too. Images, thoughts and the like are no text. None if there is
    none.
    """
    if not isinstance(content, list):
        return text_or_none(content)
    texts = []
    for part in content:
        fields = as_dict(part)
        kind = fields.get("type", "text")
        text = part if isinstance(part, str) else None
        if isinstance(kind, str) and kind in _TEXT_PARTS:
            text = text or text_or_none(fields.get("text")) or text_or_none(fields.get("content"))
        elif kind == "refusal":
            text = text_or_none(fields.get("refusal"))
        if text:
            texts.append(text)
    return "\n".join(texts) or None


class CallLog:
    """Tool calls in the order in which they were issued, and the results that answer them.

    Ids are not unique in practice: some models give all their calls an empty one, some number
    them anew in every message. A result answers the oldest open call with its id in the last
    message that used the id; without an id that is known, the oldest open call of the tool it
    names, else the oldest open call.
    """

    def __init__(self) -> None:
        self.calls: list[ToolCall] = []
        self._open: dict[int, str | None] = {}
        self._answered: set[int] = set()
        self._results = 0

    def __len__(self) -> int:
        return len(self.calls)

    def ask(self, requests: list[Any], arguments_key: str = "arguments") -> str | None:
        """Take in the calls of one message; return what is wrong with them, if anything.

        Accepted are `{function: {name, arguments}}` as well as `{function | name, arguments}`.
        """
        asked = {id_or_none(as_dict(request).get("id")) for request in requests} - {None}
        # What an earlier message asked for under this id is not answered any more.
        for index in [index for index, call_id in self._open.items() if call_id in asked]:
            del self._open[index]
        for request in requests:
            fields = as_dict(request)
            function = fields.get("function")
            inner = as_dict(function)
            name = text_or_none(function) or text_or_none(inner.get("name") or fields.get("name"))
            if name is None:
                return f"tool_calls: a call has no name: {str(request)[:80]}"
            given = {**fields, **inner}
            arguments = given.get(arguments_key, given.get("arguments"))
            if isinstance(arguments, str):
                # What is not JSON stays the text it is: rules on arguments will say so.
                with contextlib.suppress(msgspec.DecodeError, RecursionError):
                    arguments = decode_json(arguments.encode())
            call_id = id_or_none(fields.get("id"))
            self._open[len(self.calls)] = call_id
            self.calls.append(ToolCall(name=name, arguments=arguments, span_id=call_id))
        return None

    def answer(
        self,
        content: Any,
        *,
        call_id: str | None,
        tool: str | None,
        failed: bool | None,
        error: str | None = None,
    ) -> None:
        """Take in one result. A result that no call is waiting for is no call's.

        Args:
            content: What the tool gave back.
            call_id: Of the call it answers, where the result says.
            tool: Of the tool that gave it, where the result says.
            failed: None where the format does not say.
            error: The failure's message.
        """
        self._results += 1
        index = self._waiting(call_id, tool)
        if index is None:
            return
        del self._open[index]
        self._answered.add(index)
        self.calls[index] = msgspec.structs.replace(
            self.calls[index],
            result=content,
            status=None if failed is None else "error" if failed else "ok",
            error=error if failed else None,
        )

    def _waiting(self, call_id: str | None, tool: str | None) -> int | None:
        if call_id is not None:
            for index, open_id in self._open.items():
                if open_id == call_id:
                    return index
            if any(call.span_id == call_id for call in self.calls):
                return None  # a second result of a call that has one
        # An open call with an id of its own waits for a result that names it.
        free = [i for i, open_id in self._open.items() if open_id is None or call_id is None]
        named = [index for index in free if self.calls[index].name == tool]
        return next(iter(named or free), None)

    def closed(self, *, results_recorded: bool) -> tuple[ToolCall, ...]:
        """The calls; one that never got a result did not succeed.

        Args:
            results_recorded: Whether the format always records results. If not, and there is
                none at all, nothing is known of any call.
        """
        if not results_recorded and not self._results:
            return tuple(self.calls)
        return tuple(
            call
            if index in self._answered
            else msgspec.structs.replace(
                call, status="error", error="the run ended without a result"
            )
            for index, call in enumerate(self.calls)
        )


class Conversation:
    """Collects what the agent did from OpenAI-style messages, in order.

    Attributes:
        prompt: What the user said first.
        episode: Whether these are a τ-bench episode's, with that benchmark's two conventions.
        stopped: Whether the last thing said was τ-bench's user being done.
    """

    def __init__(self, *, episode: bool = False) -> None:
        self.prompt: str | None = None
        self.episode = episode
        self.stopped = False
        self.times: list[datetime] = []
        self.generations: list[Generation] = []
        self.messages: list[Message] = []
        self.log = CallLog()

    def add(self, message: Any) -> str | None:
        """Take in one message; return what is wrong with it, if anything."""
        if not isinstance(message, dict):
            return "expected an object"
        role = message.get("role")
        at = parse_time(message.get("timestamp") or message.get("created_at"))
        if at is not None:
            self.times.append(at)
        self.stopped = False
        if role == "assistant":
            return self._assistant(message, at)
        if role in ("tool", "function"):
            self._result(message)
            return None
        if role == "user":
            self._user(text_of(message.get("content")))
            return None
        return None if role in ("system", "developer") else f"unknown role {role!r}"

    def _user(self, text: str | None) -> None:
        if text is None:
            return
        if self.episode and USER_STOP in text:
            self.stopped = True
            return
        if self.prompt is None:
            self.prompt = text  # What was said before is a greeting, and asks nothing.
        elif self.messages and self.messages[-1].before_call == len(self.log):
            self.messages[-1] = msgspec.structs.replace(self.messages[-1], question=True)

    def _assistant(self, message: dict[str, Any], at: datetime | None) -> str | None:
        self.generations.append(
            Generation(
                model=text_or_none(message.get("model")),
                tokens=tokens_of(message.get("usage")),
                finish_reason=text_or_none(message.get("finish_reason")),
                ended_at=at,
                before_call=len(self.log),
            )
        )
        text = text_of(message.get("content")) or text_or_none(message.get("refusal"))
        if text is not None:
            self.messages.append(Message(text=text, before_call=len(self.log), at=at))
        requests = as_list(message.get("tool_calls"))
        if not requests and isinstance(message.get("function_call"), dict):
            requests = [{"function": message["function_call"]}]
        return self.log.ask(requests)

    def _result(self, message: dict[str, Any]) -> None:
        content = message.get("content")
        if isinstance(content, list):
            content = text_of(content) or content
        failed = None
        if self.episode:
            failed = isinstance(content, str) and content.startswith("Error")
        self.log.answer(
            content,
            call_id=id_or_none(message.get("tool_call_id")),
            tool=text_or_none(message.get("name")),
            failed=failed,
            error=content if isinstance(content, str) else None,
        )


def tokens_of(usage: Any) -> Tokens:
    """OpenAI's usage, of either API, as disjoint buckets.

    Its prompt tokens count cached ones in, its completion tokens reasoning.
    """
    fields = as_dict(usage)
    spent: dict[str, int | None] = {}
    details: dict[str, dict[str, Any]] = {}
    for bucket, names in (
        ("input", ("prompt_tokens", "input_tokens")),
        ("output", ("completion_tokens", "output_tokens")),
    ):
        name = next((name for name in names if fields.get(name) is not None), names[0])
        spent[bucket] = whole_number(fields.get(name))
        details[bucket] = as_dict(fields.get(f"{name}_details"))
    cached = whole_number(details["input"].get("cached_tokens"))
    thought = whole_number(details["output"].get("reasoning_tokens"))
    return Tokens(
        input=_without(spent["input"], cached),
        output=_without(spent["output"], thought),
        cache_read=cached,
        reasoning=thought,
    )


def _without(count: int | None, part: int | None) -> int | None:
    return count if count is None or part is None else max(count - part, 0)


def _first(fields: dict[str, Any], *names: str) -> Any:
    return next((fields[name] for name in names if fields.get(name) is not None), None)


def _snapshot(file: TraceFile, record: str | None, value: Any) -> TraceSnapshot:
    where = f"{file.key}: {record}" if record else file.key
    # A line may be a bare list of messages, too.
    fields = {"messages": value} if isinstance(value, list) else as_dict(value)
    episode = "traj" in fields and "messages" not in fields
    metadata = as_dict(fields.get("metadata"))
    common: dict[str, Any] = {
        "trace_id": id_or_none(_first(fields, "id", "trace_id")) or file.made_id(record or ""),
        "origin": file.origin("messages", record),
        "name": text_or_none(fields.get("name")),
        "workflow": text_or_none(fields.get("workflow")),
        "model": text_or_none(_first(fields, "model", "model_name"))
        or text_or_none(_first(metadata, "model", "model_name")),
        "task": id_or_none(_first(fields, "task", "task_id")),
        "trial": whole_number(fields.get("trial"), most=LARGEST_TRIAL),
        "started_at": parse_time(_first(fields, "started_at", "created_at", "created")),
        "metadata": metadata,
    }
    if not isinstance(value, dict | list):
        return TraceSnapshot(**common, problem=f"{where}: expected an object with messages")
    key = "traj" if episode else "messages"
    messages = fields.get(key)
    if not isinstance(messages, list):
        return TraceSnapshot(**common, problem=f"{where}.{key}: expected a list of messages")
    conversation = Conversation(episode=episode)
    for position, message in enumerate(messages):
        problem = conversation.add(message)
        if problem:
            return TraceSnapshot(**common, problem=f"{where}.{key}[{position}]: {problem}")
    error = text_or_none(fields.get("error"))
    if episode:
        error = error or text_or_none(as_dict(fields.get("info")).get("error"))
    problem = None
    if not messages:
        problem = f"{where}.{key}: holds no message" + (f"; error: {error}" if error else "")
    if common["started_at"] is None and conversation.times:
        common["started_at"] = conversation.times[0]
    ended_at = parse_time(fields.get("ended_at"))
    if ended_at is None and conversation.times:
        ended_at = conversation.times[-1]
    tokens = sum_tokens(tuple(g.tokens for g in conversation.generations))
    cost = amount(fields.get("cost_usd"))
    return TraceSnapshot(
        **common,
        ended_at=ended_at,
        duration_ms=whole_number(fields.get("duration_ms")),
        session_id=id_or_none(fields.get("session_id")),
        user_id=id_or_none(_first(fields, "user_id", "user")),
        tags=tuple(tag for tag in as_list(fields.get("tags")) if text_or_none(tag)),
        prompt=conversation.prompt,
        final_answer=conversation.messages[-1].text if conversation.messages else None,
        ended="user_stop" if conversation.stopped else None,
        ended_normally=True if conversation.stopped else None,
        error=error,
        tokens=tokens_of(fields.get("usage")) if tokens.total is None else tokens,
        cost_usd=cost,
        generations=tuple(conversation.generations),
        tool_calls=conversation.log.closed(results_recorded=episode),
        messages=tuple(conversation.messages),
        problem=problem,
    )


FORMAT = MessagesFormat()
