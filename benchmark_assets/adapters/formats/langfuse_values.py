"""What stands in the fields of a Langfuse observation: encoded values, metadata, messages.

Belongs here: undoing the encodings that inputs and outputs arrive in (JSON in a text, once or
twice; the `repr` of a Python dict), metadata as one nested tree whether the source flattened it
or not, and the dialects in which integrations write messages, tool requests and tool results.
Does not belong here: what an observation is (`langfuse_rows`) and what it cost
(`langfuse_usage`).
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from benchmark_assets.adapters.formats.base import decode_json, id_or_none, text_or_none
from benchmark_assets.adapters.formats.messages import as_dict, as_list, text_of

_NOTHING = frozenset({"", "null", "None", "undefined"})
_LONGEST_REPR = 200_000
_DEEPEST_KEY = 12
_DEEPEST_CONTAINER = 6

_ROLES = {
    "user": "user",
    "human": "user",
    "HumanMessage": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "model": "assistant",
    "tool": "tool",
    "function": "tool",
    "ToolMessage": "tool",
    "system": "system",
    "developer": "system",
    "SystemMessage": "system",
}

_ASKING_KEYS = (
    "new_message",
    "prompt",
    "user_prompt",
    "input",
    "query",
    "question",
    "user_input",
    "user_message",
    "message",
    "task",
    "text",
    "content",
    "kwargs",
)
_ANSWERING_KEYS = ("final_result", "final_output", "raw", "text")
"""Where a payload keeps its text; what they stand beside describes it."""

_ONLY_KEYS = (*_ANSWERING_KEYS, "output", "response", "answer", "result", "content", "message")
"""What a payload's text is called where it stands alone."""


class Request(NamedTuple):
    """A model's request to run a tool."""

    name: str
    arguments: Any
    call_id: str | None


class Result(NamedTuple):
    """What a tool gave back, as a message says it. `failed` is None where it does not say."""

    call_id: str | None
    content: Any
    failed: bool | None


class Turn(NamedTuple):
    """One message: `user`, `assistant`, `tool`, `system`, or None where nobody is named."""

    role: str | None
    text: str | None
    requests: tuple[Request, ...] = ()
    results: tuple[Result, ...] = ()


def unwrap(value: Any) -> Any:
    """The value that a text holds: JSON, encoded once or several times, or a Python literal.

    Only objects, lists and texts are looked for: a text `5` is a text. A text for nothing at
    all (`null`, `None`, an empty one) is None; any other text is itself.
    """
    return _opened(value)[0]


def _opened(value: Any) -> tuple[Any, str | None]:
    """The value that a text holds, and the innermost text that holds it."""
    held: str | None = None
    for _ in range(3):
        if not isinstance(value, str):
            break
        text = value.strip()
        if text in _NOTHING:
            return None, None
        inner = _decoded(text)
        if inner is None:
            break
        value, held = inner, value
    return value, held


def _decoded(text: str) -> Any:
    if text[0] == '"' or text[0] in "[{":
        with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeEncodeError):
            return decode_json(text.encode())
    if text[0] in "[{(" and len(text) <= _LONGEST_REPR:
        try:
            return _plain(ast.literal_eval(text))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            return None
    return None


def _plain(value: Any) -> Any:
    """A Python literal as JSON would hold it.

    Raises:
        ValueError: If JSON could not: bytes, sets, halves of surrogate pairs, huge integers.
    """
    if isinstance(value, dict):
        return {_plain_key(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, str):
        value.encode()  # a UnicodeEncodeError is a ValueError
        return value
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float) and abs(value) < 2**63:
        return value
    raise ValueError("no JSON value")


def _plain_key(key: Any) -> str:
    text = key if isinstance(key, str) else str(_plain(key))
    text.encode()
    return text


# Metadata.


def as_tree(metadata: Any) -> dict[str, Any]:
    """Metadata as one nested tree: `{"a.b": 1}` and `{"a": {"b": 1}}` are the same.

    Where a key holds both a value and keys below it, the value is kept under `""`. What is no
    object has no keys.
    """
    tree: dict[str, Any] = {}
    for key, value in as_dict(unwrap(metadata)).items():
        _graft(tree, _parts(key), unwrap(value) if key == "attributes" else value)
    return tree


def _parts(key: str) -> list[str]:
    parts = key.split(".", _DEEPEST_KEY)
    return parts if all(parts) else [key]


def _graft(tree: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        below = tree.get(part)
        if not isinstance(below, dict):
            below = {} if below is None else {"": below}
            tree[part] = below
        tree = below
    last = path[-1]
    if isinstance(value, dict):
        below = tree.setdefault(last, {})
        if not isinstance(below, dict):
            below = tree[last] = {"": below}
        for key, item in value.items():
            _graft(below, _parts(key), item)
    elif isinstance(tree.get(last), dict):
        tree[last][""] = value
    else:
        tree[last] = value


def look(tree: dict[str, Any], *names: str) -> Any:
    """The first of the named attributes that is there, decoded; None if none is.

    A name is looked for among the OpenTelemetry attributes first, then in the metadata itself.
    """
    for name in names:
        for found in _found(tree, name):
            decoded = unwrap(found)
            if decoded is not None and decoded != {}:
                return decoded
    return None


def look_raw(tree: dict[str, Any], name: str) -> Any:
    """The named attribute as it stands; None if it is not there."""
    return next((found for found in _found(tree, name) if found is not None), None)


def _found(tree: dict[str, Any], name: str) -> Iterator[Any]:
    for place in (tree.get("attributes"), tree):
        found: Any = place
        for part in name.split("."):
            found = found.get(part) if isinstance(found, dict) else None
        yield found[""] if isinstance(found, dict) and "" in found else found


def look_text(tree: dict[str, Any], *names: str) -> str | None:
    """The first of the named attributes that is a text; None if none is."""
    return next((text for name in names if (text := text_or_none(look(tree, name)))), None)


# Messages.


def turns(value: Any, depth: int = 0) -> list[Turn] | None:
    """The messages that an input or output is made of; None if it is not made of messages."""
    value = unwrap(value)
    if depth > _DEEPEST_CONTAINER:
        return None
    if isinstance(value, dict):
        return _turns_of_object(value, depth)
    if not isinstance(value, list) or not value:
        return None
    if _is_pair(value):
        return [Turn(_ROLES[value[0]], text_or_none(value[1]))]
    if all(_is_part(item) for item in value):
        return [_turn({"content": value})]
    found: list[Turn] = []
    for item in value:
        found += turns(item, depth + 1) or []
    return found or None


def _turns_of_object(value: dict[str, Any], depth: int) -> list[Turn] | None:
    # LangChain.js serialises its messages as constructors.
    kind = as_list(value.get("id"))
    if "lc" in value and kind and isinstance(value.get("kwargs"), dict):
        return [_turn({"type": kind[-1], **value["kwargs"]})]
    if _role(value) is not None and not _MESSAGE_KEYS.isdisjoint(value):
        return [_turn(value)]
    if _is_part(value):
        return [_turn({"content": [value]})]
    choices = as_list(unwrap(value.get("choices")))
    if choices:  # alternatives: the run goes on with the first
        return turns(as_dict(choices[0]).get("message"), depth + 1)
    for key in ("messages", "contents", "update", "message"):
        found = turns(value.get(key), depth + 1)
        if found:
            return found
    for key in ("output", "content"):
        # Responses API and Gemini; a plain text under these names is no message.
        if isinstance(value.get(key), list | dict):
            found = turns(value[key], depth + 1)
            if found:
                return found
    if isinstance(unwrap(value.get("toolCalls")), list) or "tool_calls" in value:
        return [_turn(value)]
    return None


def _role(message: dict[str, Any]) -> str | None:
    for key in ("role", "type"):
        name = message.get(key)
        if isinstance(name, str) and name in _ROLES:
            return _ROLES[name]
    return None


def _is_pair(value: list[Any]) -> bool:
    """A message as LangChain's shorthand has it: `["user", "hello"]`."""
    return len(value) == 2 and all(isinstance(item, str) for item in value) and value[0] in _ROLES


def _is_part(value: Any) -> bool:
    """A piece of a message that stands outside one."""
    if not isinstance(value, dict) or "role" in value:
        return False
    kind = value.get("type")
    if isinstance(kind, str) and kind in _PART_KINDS:
        return True
    return "toolCallId" in value or isinstance(value.get("function_call"), dict)


_MESSAGE_KEYS = frozenset({"content", "parts", "text", "tool_calls", "function_call", "refusal"})
_CALL_KINDS = frozenset({"tool_call", "tool_use", "tool-call", "function_call", "function"})
_RESULT_KINDS = frozenset(
    {"tool_call_response", "tool_result", "tool-result", "function_call_output"}
)
_PART_KINDS = _CALL_KINDS | _RESULT_KINDS | {"text", "input_text", "output_text", "reasoning"}


def _turn(message: dict[str, Any]) -> Turn:
    role = _role(message)
    content = _content(message)
    parts = [part for part in as_list(content) if isinstance(part, dict)]
    requests = _requests(message, parts)
    if role == "tool":
        result = _tool_message(message, content)
        return Turn(role, None, (), (result,) if result else ())
    text = text_of(content) or text_or_none(message.get("refusal"))
    return Turn(role, text, tuple(requests), tuple(_results(parts)))


def _content(message: dict[str, Any]) -> Any:
    """A message's text or list of parts."""
    content = message.get("content")
    if isinstance(content, str):
        # A text that looks like JSON is a text all the same, unless it is parts encoded.
        parts = unwrap(content)
        return parts if isinstance(parts, list) and parts and all(map(_is_part, parts)) else content
    if isinstance(content, dict):
        return content.get("parts", [content])
    return message.get("parts", message.get("text")) if content is None else content


def _requests(message: dict[str, Any], parts: list[dict[str, Any]]) -> list[Request]:
    listed = as_list(unwrap(message.get("tool_calls"))) or as_list(unwrap(message.get("toolCalls")))
    if not listed:
        listed = as_list(as_dict(message.get("additional_kwargs")).get("tool_calls"))
    if not listed and isinstance(message.get("function_call"), dict):
        listed = [message["function_call"]]
    if not listed:
        listed = [part for part in parts if _is_request(part)]
    return [request for item in listed if (request := read_request(unwrap(item)))]


def _is_request(part: dict[str, Any]) -> bool:
    kind = part.get("type")
    if isinstance(kind, str):
        return kind in _CALL_KINDS
    return isinstance(part.get("function_call"), dict) or (
        "toolName" in part and not {"result", "output"} & part.keys()
    )


def read_request(item: Any) -> Request | None:
    """A tool request in any dialect; None if it names no tool."""
    fields = as_dict(item)
    inner = as_dict(fields.get("function")) or as_dict(fields.get("function_call")) or fields
    name = text_or_none(first(inner, "name", "toolName"))
    if name is None:
        return None
    return Request(
        name,
        unwrap(first(inner, "arguments", "args", "input")),
        id_or_none(first(fields, "call_id", "tool_call_id", "toolCallId", "id"))
        or id_or_none(inner.get("id")),
    )


def _results(parts: list[dict[str, Any]]) -> Iterable[Result]:
    for part in parts:
        kind = part.get("type")
        answer = as_dict(part.get("function_response"))
        if answer:
            yield Result(id_or_none(answer.get("id")), answer.get("response"), None)
        elif isinstance(kind, str) and kind in _RESULT_KINDS:
            content = first(part, "result", "response", "output", "content")
            yield Result(
                id_or_none(first(part, "tool_use_id", "call_id", "toolCallId", "id")),
                text_of(content) or content,
                says_failed(part),
            )


def _tool_message(message: dict[str, Any], content: Any) -> Result | None:
    call_id = id_or_none(first(message, "tool_call_id", "toolCallId"))
    if call_id is None:
        # Langfuse's own integration lists the tools on offer as messages of a tool; and
        # pydantic-ai and others put the id into the parts.
        parts = [part for part in as_list(content) if isinstance(part, dict)]
        return next(iter(_results(parts)), None)
    return Result(call_id, text_of(content) or content, says_failed(message))


def says_failed(value: Any) -> bool | None:
    """Whether a tool's answer says that it failed; None where it does not say."""
    fields = as_dict(value)
    for key in ("is_error", "isError"):
        if isinstance(fields.get(key), bool):
            return bool(fields[key])
    status = fields.get("status")
    if isinstance(status, str) and "tool_call_id" in fields:
        return status.lower() == "error"
    return None


def tool_message(value: Any) -> dict[str, Any] | None:
    """LangChain's ToolMessage, in Python's or JavaScript's form; None if it is none."""
    fields = as_dict(unwrap(value))
    if "lc" in fields and isinstance(fields.get("kwargs"), dict):
        fields = fields["kwargs"]
    elif fields.get("type") != "tool":
        update = as_dict(fields.get("update"))
        messages = as_list(update.get("messages"))
        return (
            tool_message(messages[-1])
            if messages and not as_dict(messages[-1]).get("update")
            else None
        )
    return fields if "tool_call_id" in fields else None


def first(fields: dict[str, Any], *names: str) -> Any:
    """The first of the named fields that is not null."""
    return next((fields[name] for name in names if fields.get(name) is not None), None)


# Texts.


def asked(value: Any, depth: int = 0) -> str | None:
    """What the user says in an input: the last thing, where a conversation came before.

    None where the input holds no text that can be told to be the user's.
    """
    value = unwrap(value)
    if isinstance(value, str):
        return text_or_none(value)
    if depth > _DEEPEST_CONTAINER:
        return None
    messages = turns(value)
    if messages is not None:
        texts = [turn.text for turn in messages if turn.role in ("user", None) and turn.text]
        return texts[-1] if texts else None
    if isinstance(value, list):
        return asked(value[0], depth + 1) if len(value) == 1 else None
    fields = as_dict(value)
    for key in _ASKING_KEYS:
        if key in fields and (text := asked(fields[key], depth + 1)):
            return text
    arguments = [item for item in as_list(fields.get("args")) if isinstance(item, str) and item]
    return arguments[0] if arguments else None


def answered(value: Any, depth: int = 0) -> str | None:
    """What an output says to the user: the last text since the user spoke, else the payload.

    An output of messages none of which has a text says nothing; any other object is a payload:
    the text that it came as, else JSON text.
    """
    value, held = _opened(value)
    if value is None or isinstance(value, str):
        return text_or_none(value)
    messages = turns(value)
    if messages is not None:
        return last_text(messages)
    if depth <= _DEEPEST_CONTAINER:
        fields = as_dict(value)
        for key in _ANSWERING_KEYS if len(fields) > 1 else _ONLY_KEYS:
            if fields.get(key) and (text := answered(fields[key], depth + 1)):
                return text
    if value in ({}, []):
        return None
    return held or as_text(value)


def last_text(messages: list[Turn]) -> str | None:
    """The last text of the assistant's after whatever the user said last."""
    for role, text, _, _ in reversed(messages):
        if text and role in ("user", "assistant", None):
            return None if role == "user" else text
    return None


def as_text(value: Any) -> str:
    """A value as text: a text as it is, anything else as JSON."""
    if isinstance(value, str):
        return value
    return msgspec.json.encode(value, order="deterministic").decode()
