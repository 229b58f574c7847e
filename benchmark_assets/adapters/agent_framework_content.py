"""What goes into and comes out of a workflow of the Microsoft Agent Framework, in words.

Belongs here: the prompt, the tools that models call with what came of it, and the answer, read
from the framework's objects. Does not belong here: numbers (`agent_framework_usage`) or listening
(`agent_framework`).

As with numbers, what is read is copied at once: the framework writes on into its objects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_framework import (
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    ChatResponse,
    Content,
    Message,
)

from benchmark_assets.model.trace import CallStatus, ToolCall


def text_of(value: object) -> str | None:
    """A message, response or list of messages as text; None if it is none of these or empty."""
    if isinstance(value, AgentExecutorResponse):
        value = value.agent_response
    if isinstance(value, list):
        return "\n".join(text for item in value if (text := text_of(item)) is not None) or None
    if isinstance(value, Message | AgentResponse | AgentResponseUpdate):
        value = value.text
    return value if isinstance(value, str) and value else None


@dataclass(slots=True, eq=False)
class Answer:
    """What a workflow gave out last: its final output once it has ended."""

    text: str | None = None
    _piece_of: object = None

    def take(self, executor: str | None, data: object) -> None:
        """Take what an output event gives out; an answer that is streamed comes in pieces."""
        piece_of = (executor, data.response_id) if isinstance(data, AgentResponseUpdate) else None
        text = text_of(data)
        if piece_of is not None and piece_of == self._piece_of:
            self.text = "".join(part for part in (self.text, text) if part) or None
        else:
            self.text = text
        self._piece_of = piece_of


@dataclass(slots=True, eq=False)
class Use:
    """A tool that a model called. `call_id` is the provider's; some number them anew each time."""

    name: str
    arguments: str | None
    call_id: str | None
    answered: bool = False
    result: str | None = None
    error: str | None = None

    def take(self, content: Content) -> None:
        """Take the tool's result."""
        self.answered = True
        self.result = _as_text(content.result)
        exception = getattr(content, "exception", None)
        self.error = None if exception is None else str(exception)

    def call(self) -> ToolCall:
        """What is known of it; without a result nobody knows what came of it."""
        status: CallStatus | None = None
        if self.answered:
            status = "ok" if self.error is None else "error"
        return ToolCall(
            name=self.name,
            arguments=self.arguments,
            result=self.result,
            status=status,
            error=self.error,
        )


def uses_of(response: ChatResponse[Any]) -> list[Use]:
    """The tools that a model's answer calls."""
    return [
        Use(str(content.name), _as_text(content.arguments), content.call_id)
        for content in _contents(response.messages, "function_call")
    ]


def answer_uses(uses: Iterable[Use], messages: Iterable[object]) -> None:
    """Give the uses that wait for a result those that a model is handed with its next call.

    Args:
        uses: Those of the same invocation, in order.
        messages: What the model is handed. Older results under the same id come first.
    """
    results = {content.call_id: content for content in _contents(messages, "function_result")}
    if results:
        for use in uses:
            if not use.answered and use.call_id in results:
                use.take(results[use.call_id])


def _contents(messages: Iterable[object], kind: str) -> Iterable[Content]:
    for message in messages:
        for content in message.contents if isinstance(message, Message) else ():
            if content.type == kind:
                yield content


def _as_text(value: object) -> str | None:
    """A text as it is, anything else as JSON."""
    if value is None or isinstance(value, str):
        return value
    data = dict(value) if isinstance(value, Mapping) else value
    return json.dumps(data, default=str, ensure_ascii=False)
