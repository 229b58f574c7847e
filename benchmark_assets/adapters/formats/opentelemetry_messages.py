"""What was said to a model, an agent or a tool, and what it gave back, as a span holds it.

Belongs here: finding it among attributes and events, and undoing what instrumentations do to
messages: attributes numbered through (`llm.input_messages.0.message.role`), an event a message,
Bedrock's and Gemini's own parts. Does not belong here: the dialects of messages themselves, which
are the same wherever they come from (`langfuse_values`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmark_assets.adapters.formats.base import text_or_none
from benchmark_assets.adapters.formats.langfuse_values import first, unwrap
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.formats.opentelemetry_spans import Event, Span

CONTENT = (
    "all_messages_events",
    "events",
    "final_result",
    "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.llm_response",
    "gen_ai.completion",
    "gen_ai.input.messages",
    "gen_ai.output.messages",
    "gen_ai.prompt",
    "gen_ai.system_instructions",
    "gen_ai.tool.definitions",
    "input.value",
    "llm.input_messages",
    "llm.invocation_parameters",
    "llm.output_messages",
    "llm.request.functions",
    "llm.tools",
    "logfire",
    "output.value",
    "pydantic_ai.all_messages",
    "traceloop.entity.input",
    "traceloop.entity.output",
)
"""Attributes that hold what was said or offered, or have such below them."""

_DEEPEST_KEY = 16

_EVENT_ROLES = {
    "gen_ai.system.message": "system",
    "gen_ai.user.message": "user",
    "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool",
    "gen_ai.choice": "assistant",
}


class Said(NamedTuple):
    """A span's input and output, in a form that `langfuse_values` reads; None where not known."""

    input: Any
    output: Any


def said_in(span: Span) -> Said:
    """What a model or an agent was given and gave back, or any other span."""
    attributes = span.attributes
    given, answered = _of_events(span)
    return Said(
        _first(
            _messages(attributes.get("gen_ai.input.messages")),
            _messages(_in_events(span, "gen_ai.input.messages")),
            _numbered(attributes, "llm.input_messages"),
            _numbered(attributes, "gen_ai.prompt"),
            given,
            _gemini(attributes.get("gcp.vertex.agent.llm_request")),
            _messages(attributes.get("pydantic_ai.all_messages")),
            _value(first(attributes, "input.value", "traceloop.entity.input")),
        ),
        _first(
            _messages(attributes.get("gen_ai.output.messages")),
            _messages(_in_events(span, "gen_ai.output.messages")),
            _numbered(attributes, "llm.output_messages"),
            _numbered(attributes, "gen_ai.completion"),
            answered,
            _gemini(attributes.get("gcp.vertex.agent.llm_response")),
            attributes.get("final_result"),
            _messages(attributes.get("pydantic_ai.all_messages")),
            _value(first(attributes, "output.value", "traceloop.entity.output")),
        ),
    )


def said_in_tool(span: Span) -> Said:
    """What a tool was called with and gave back, where its own attributes do not say."""
    arguments, result = None, None
    for event in span.events:
        body = _body(event)
        if event.name == "gen_ai.tool.message":
            arguments = first(body, "content", "arguments")
        elif event.name == "gen_ai.choice":
            result = _part_text(unwrap(first(body, "message", "content")))
    attributes = span.attributes
    return Said(
        _first(first(attributes, "input.value", "traceloop.entity.input"), arguments),
        _first(_tool_output(first(attributes, "output.value", "traceloop.entity.output")), result),
    )


def _tool_output(given: Any) -> Any:
    """A tool's output; LangChain's message of a tool is marked as such."""
    fields = as_dict(unwrap(given))
    if "tool_call_id" in fields and "content" in fields and "type" not in fields:
        return {**fields, "type": "tool"}
    return given


def _part_text(value: Any) -> Any:
    """Bedrock's list of texts as the text."""
    items = as_list(value)
    texts = [text for item in items if (text := text_or_none(as_dict(item).get("text")))]
    return "\n".join(texts) if texts and len(texts) == len(items) else value


def _first(*values: Any) -> Any:
    return next((value for value in values if value not in (None, "", [], {})), None)


def _value(given: Any) -> Any:
    """A payload; LangChain's messages in it are freed of their constructor's keywords."""
    value = unwrap(given)
    messages = as_dict(value).get("messages")
    if isinstance(messages, list):
        return {**value, "messages": [_plain(item) for item in messages]}
    # What is not taken apart stays as it was written.
    return given


def _plain(message: Any) -> Any:
    fields = as_dict(message)
    inner = as_dict(fields.get("kwargs"))
    return inner if "type" in inner and "lc" not in fields else message


# Lists of messages.


def _messages(given: Any) -> Any:
    """Messages in the conventions' form, or a vendor's, with a result of a tool in each one."""
    value = unwrap(given)
    if not isinstance(value, list):
        return value
    return [each for message in value for each in _split(_mapped(message))]


def _mapped(message: Any) -> Any:
    """A message with its parts in a form that is read everywhere."""
    fields = as_dict(message)
    content = unwrap(fields.get("content"))
    if isinstance(content, list):
        return {**fields, "content": [_part(item) for item in content]}
    return message


def _part(part: Any) -> Any:
    """Bedrock's parts as those of other vendors."""
    fields = as_dict(part)
    use, result = as_dict(fields.get("toolUse")), as_dict(fields.get("toolResult"))
    if use:
        return {
            "type": "tool_use",
            "id": use.get("toolUseId"),
            "name": use.get("name"),
            "input": use.get("input"),
        }
    if result:
        return {
            "type": "tool_result",
            "tool_use_id": result.get("toolUseId"),
            "content": _part_text(result.get("content")),
            "is_error": result.get("status") == "error",
        }
    return part


def _split(message: Any) -> Iterator[Any]:
    """A message of a tool for each of its results."""
    fields = as_dict(message)
    parts = fields.get("parts")
    if fields.get("role") == "tool" and isinstance(parts, list) and len(parts) > 1:
        for part in parts:
            yield {**fields, "parts": [part]}
    else:
        yield message


def _gemini(given: Any) -> Any:
    """ADK's request or response, without what the model only thought."""
    value = unwrap(given)
    fields = as_dict(value)
    if isinstance(fields.get("contents"), list):
        return [_thoughtless(item) for item in fields["contents"]] or None
    if isinstance(fields.get("content"), dict):
        return {**fields, "content": _thoughtless(fields["content"])}
    return None


def _thoughtless(content: Any) -> Any:
    fields = as_dict(content)
    parts = [part for part in as_list(fields.get("parts")) if not as_dict(part).get("thought")]
    return {**fields, "parts": parts}


# Attributes that are numbered through.


def _numbered(attributes: dict[str, Any], prefix: str) -> list[Any] | None:
    tree = _Branch()
    for key, value in attributes.items():
        if key.startswith(f"{prefix}."):
            tree.graft(key[len(prefix) + 1 :].split(".", _DEEPEST_KEY), value)
    messages = tree.plain()
    return [_unwrapped(item) for item in messages] if isinstance(messages, list) else None


class _Branch(dict[str, Any]):
    """Attributes under one name, by what comes next in theirs."""

    def graft(self, path: list[str], value: Any) -> None:
        branch = self
        for part in path[:-1]:
            below = branch.get(part)
            if not isinstance(below, _Branch):
                below = branch[part] = _Branch()
            branch = below
        if not isinstance(branch.get(path[-1]), _Branch):
            branch[path[-1]] = value

    def plain(self) -> Any:
        """The tree with a list for each branch that only has numbers."""
        inner = {
            key: value.plain() if isinstance(value, _Branch) else value
            for key, value in self.items()
        }
        if inner and all(key.isascii() and key.isdigit() for key in inner):
            return [inner[key] for key in sorted(inner, key=lambda key: (len(key), key))]
        return inner


def _unwrapped(item: Any) -> Any:
    """OpenInference's `{message: …}` with `{tool_call: …}` and `{message_content: …}` as messages."""
    fields = as_dict(as_dict(item).get("message")) or as_dict(item)
    message = {key: value for key, value in fields.items() if key != "contents"}
    calls = [as_dict(call).get("tool_call", call) for call in as_list(fields.get("tool_calls"))]
    if calls:
        message["tool_calls"] = calls
    contents = as_list(fields.get("contents"))
    if contents and "content" not in message:
        message["content"] = [as_dict(part).get("message_content", part) for part in contents]
    return message


# Events.


def _in_events(span: Span, name: str) -> Any:
    return next((e.attributes[name] for e in span.events if e.attributes.get(name)), None)


def _body(event: Event) -> dict[str, Any]:
    return {**event.attributes, **as_dict(unwrap(event.attributes.get("gen_ai.event.content")))}


def _of_events(span: Span) -> tuple[list[Any], list[Any]]:
    """Messages of which each is an event, on the span or in pydantic-ai's list of events."""
    events = list(span.events)
    for item in as_list(unwrap(first(span.attributes, "events", "all_messages_events"))):
        fields = as_dict(item)
        name = text_or_none(fields.get("event.name"))
        if name is not None:
            events.append(Event(name, fields))
    given: list[Any] = []
    answered: list[Any] = []
    for event in events:
        role = _EVENT_ROLES.get(event.name)
        if role is None:
            continue
        message = _event_message(role, _body(event))
        (answered if event.name == "gen_ai.choice" else given).append(message)
    return given, answered


def _event_message(role: str, body: dict[str, Any]) -> dict[str, Any]:
    inner = unwrap(body.get("message"))
    fields = {**body, **inner} if isinstance(inner, dict) else body
    content = (
        first(fields, "content", "message")
        if not isinstance(inner, dict)
        else (fields.get("content"))
    )
    parts = unwrap(content)
    message: dict[str, Any] = {
        "role": role,
        "content": [_part(item) for item in parts] if isinstance(parts, list) else content,
    }
    for key in ("tool_calls", "finish_reason"):
        if fields.get(key) is not None:
            message[key] = unwrap(fields[key])
    if role == "tool" and fields.get("id") is not None:
        message["tool_call_id"] = fields["id"]
    return message
