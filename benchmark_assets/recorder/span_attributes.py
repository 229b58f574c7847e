"""What a span's attributes say it is: an agent, a model's call, a tool's, and what was said in it.

Belongs here: reading attributes by the names of OpenTelemetry's GenAI conventions and of
OpenInference, as live spans have them. Does not belong here: what the spans come to
(`opentelemetry`), nor files of spans, which are older, and written by more instrumentations
(`adapters/formats/opentelemetry`).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import MsgspecError, json

Kind = Literal["agent", "model", "tool", "chain", "other"]
Attributes = Mapping[str, Any]

_OPERATIONS: dict[str, Kind] = {
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "invoke_agent": "agent",
    "execute_tool": "tool",
}
_OPENINFERENCE: dict[str, Kind] = {
    "AGENT": "agent",
    "LLM": "model",
    "TOOL": "tool",
    "CHAIN": "chain",
}
_TOOL_NAMES = ("gen_ai.tool.name", "tool.name")
_ARGUMENTS = ("gen_ai.tool.call.arguments", "tool_arguments", "input.value")
_RESULTS = ("gen_ai.tool.call.result", "tool_response", "output.value")
_CALL_IDS = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")
_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
_INPUTS = ("gen_ai.input.messages", "pydantic_ai.all_messages", "input.value")
_OUTPUTS = ("gen_ai.output.messages", "pydantic_ai.all_messages", "output.value")

# Bucket → the attribute that has it, and the count that has it inside.
_WHOLE = {
    "input": ("gen_ai.usage.input_tokens", "llm.token_count.prompt"),
    "output": ("gen_ai.usage.output_tokens", "llm.token_count.completion"),
}
_PARTS = {
    "cache_read": (
        "input",
        (
            "gen_ai.usage.cache_read.input_tokens",
            "gen_ai.usage.details.cache_read_tokens",
            "llm.token_count.prompt_details.cache_read",
        ),
    ),
    "cache_write": (
        "input",
        (
            "gen_ai.usage.cache_creation.input_tokens",
            "gen_ai.usage.details.cache_write_tokens",
            "llm.token_count.prompt_details.cache_write",
        ),
    ),
    "reasoning": (
        "output",
        (
            "gen_ai.usage.reasoning.output_tokens",
            "gen_ai.usage.details.reasoning_tokens",
            "llm.token_count.completion_details.reasoning",
        ),
    ),
}


class Message(NamedTuple):
    """One message: who said it, its text (empty if it has none), whether it calls tools."""

    role: str
    text: str
    calls: bool


def kind_of(attributes: Attributes, name: str = "") -> Kind:
    """What a span is by what it says so far, else by its name; `other` if neither says."""
    operation = _OPERATIONS.get(str(attributes.get("gen_ai.operation.name", "")).lower())
    kind = operation or _OPENINFERENCE.get(
        str(attributes.get("openinference.span.kind", "")).upper()
    )
    if kind is not None:
        return kind
    if isinstance(attributes.get("gen_ai.tool.name"), str):
        return "tool"
    # A span that failed early may have nothing but its name, which the conventions prescribe.
    return _OPERATIONS.get(name.partition(" ")[0], "other") if " " in name else "other"


def tool_name(attributes: Attributes, span_name: str) -> str:
    """A tool's name, else its span's without the operation before it."""
    named = first(attributes, _TOOL_NAMES)
    return named if isinstance(named, str) else span_name.removeprefix("execute_tool ")


def arguments_of(attributes: Attributes) -> Any:
    """A tool's arguments as data; None where the span has none, or not yet."""
    return data(first(attributes, _ARGUMENTS))


def result_of(attributes: Attributes) -> Any:
    """What a tool gave back; None where the span does not say."""
    result = data(first(attributes, _RESULTS))
    if isinstance(result, Mapping) and result.get("type") == "tool":
        inner = _inner(result)
        # LangChain wraps results in the message that carries them to the model.
        return data(inner["content"]) if "tool_call_id" in inner else result
    return result


def call_id_of(attributes: Attributes) -> str | None:
    """The id that the model gave a call of a tool."""
    found = first(attributes, _CALL_IDS)
    return found if isinstance(found, str) else None


def model_of(attributes: Attributes) -> str | None:
    """The model's name."""
    found = first(attributes, _MODELS)
    return found if isinstance(found, str) else None


def tokens_of(attributes: Attributes) -> dict[str, int]:
    """Tokens of a call of a model in disjoint buckets; a part larger than its whole is beside it."""
    counts = {
        bucket: count
        for bucket, names in _WHOLE.items()
        if (count := _count(attributes, names)) is not None
    }
    for bucket, (whole, names) in _PARTS.items():
        part = _count(attributes, names)
        if part is not None:
            counts[bucket] = part
            if part <= counts.get(whole, -1):
                counts[whole] -= part
    return counts


def asked_of_model(attributes: Attributes) -> list[Message]:
    """The messages that a model or an agent was given."""
    given = first(attributes, _INPUTS[:1])
    numbered = [] if given is not None else _numbered(attributes, "llm.input_messages")
    return numbered or _messages(first(attributes, _INPUTS))


def final_of(attributes: Attributes) -> Any:
    """What an agent gave out in the end: an object if it is one, else a text; None if unknown."""
    if "final_result" in attributes:
        return data(attributes["final_result"])
    found = first(attributes, _OUTPUTS)
    messages = _messages(found)
    if messages:
        last = messages[-1]
        return data(last.text) if last.role == "assistant" and last.text else None
    value = data(found)
    return None if found is attributes.get("pydantic_ai.all_messages") else value


def first(attributes: Attributes, names: Sequence[str]) -> Any:
    """The value of the first of the attributes that there is."""
    return next((attributes[name] for name in names if attributes.get(name) is not None), None)


def data(value: Any) -> Any:
    """A value that was put into an attribute as text: an object or a list is one again."""
    if not isinstance(value, str) or value.lstrip()[:1] not in ("{", "["):
        return value
    try:
        return json.decode(value)
    except (MsgspecError, ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(value)  # OpenInference has objects as Python shows them.
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return value


def _count(attributes: Attributes, names: Sequence[str]) -> int | None:
    found = first(attributes, names)
    return found if isinstance(found, int) and found >= 0 else None


def _messages(value: Any) -> list[Message]:
    found = data(value)
    if isinstance(found, Mapping):  # A graph's state, which holds messages.
        found = found.get("messages")
    if not isinstance(found, list):
        return []
    if len(found) == 1 and isinstance(found[0], list):  # The only one of a batch.
        found = found[0]
    return [_message(item) for item in found if isinstance(item, Mapping)]


def _message(item: Mapping[str, Any]) -> Message:
    fields = _inner(item)
    said = str(fields.get("role") or fields.get("type") or "")
    role = {"ai": "assistant", "human": "user"}.get(said, said)
    calls = bool(fields.get("tool_calls"))
    parts = fields.get("parts", fields.get("content"))
    if isinstance(parts, str):
        return Message(role, parts.strip(), calls)
    listed = [part for part in parts or () if isinstance(part, Mapping)]
    texts = [str(part.get("content", part.get("text"))) for part in listed if _is_text(part)]
    calls = calls or any(part.get("type") in ("tool_call", "tool_use") for part in listed)
    return Message(role, "".join(texts).strip(), calls)


def _inner(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A message, where LangChain has it inside of what tells its class."""
    for key in ("kwargs", "data"):
        inner = item.get(key)
        if isinstance(inner, Mapping) and "content" in inner:
            return inner
    return item


def _is_text(part: Mapping[str, Any]) -> bool:
    return part.get("type") == "text" and isinstance(part.get("content", part.get("text")), str)


def _numbered(attributes: Attributes, prefix: str) -> list[Message]:
    """Messages of which each part is an attribute of its own, as OpenInference has them."""
    found: dict[int, dict[str, Any]] = {}
    for key, value in attributes.items():
        number, _, name = key.removeprefix(f"{prefix}.").partition(".message.")
        if key.startswith(f"{prefix}.") and number.isdecimal():
            message = found.setdefault(int(number), {"texts": {}})
            if name.startswith("tool_calls."):
                message["tool_calls"] = True
            elif name.startswith("contents.") and name.endswith(".message_content.text"):
                message["texts"][int(name.split(".")[1])] = str(value)
            elif name in ("role", "content"):
                message[name] = value
    return [
        _message({"content": "".join(text for _, text in sorted(item["texts"].items())), **item})
        for _, item in sorted(found.items())
    ]
