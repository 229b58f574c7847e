"""Tool calls, generations and messages of one Langfuse trace, from its ordered rows.

Belongs here: bringing together what several rows say about one call, so that it is one call:
the request in a generation's output, the row of the tool that ran, the result in the next
generation's input. Does not belong here: recognising rows (`langfuse_rows`) and dialects
(`langfuse_values`).

A request that no row of a tool answers is a call too: the OpenAI wrapper records generations
only, and a tool that was asked for but never ran was asked for. It has a status only where a
result says whether it failed. A model's way of giving structured output, which pydantic-ai
declares as an output tool, is no tool call.

A tool row around another row of the same call (an MCP client's around its server's) is that call
once; one whose name says that it only holds others (`tools`) is none.
"""

from __future__ import annotations

import bisect
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from benchmark_assets.adapters.formats.base import id_or_none, text_or_none
from benchmark_assets.adapters.formats.langfuse_rows import ModelCall, Row, error_text
from benchmark_assets.adapters.formats.langfuse_usage import row_cost, row_model, row_tokens
from benchmark_assets.adapters.formats.langfuse_values import (
    Request,
    Result,
    Turn,
    answered,
    as_text,
    first,
    look,
    look_text,
    read_request,
    says_failed,
    tool_message,
    turns,
    unwrap,
)
from benchmark_assets.adapters.formats.messages import as_dict, as_list, text_of
from benchmark_assets.model.trace import CallStatus, Generation, Message, Tokens, ToolCall

_HOLDER = re.compile(
    r"^(?:tools?|tool_?node|tools? ?calls?|(?:running|execute|call)[ _](?:\d+ )?tools?"
    r"|mcp(?:[ _]tools?)?|tools/call)$",
    re.IGNORECASE,
)

_ARGUMENTS = (
    "gen_ai.tool.call.arguments",
    "gcp.vertex.agent.tool_call_args",
    "ai.toolCall.args",
    "ai.toolCall.input",
    "tool_arguments",
    "tool.parameters",
)
_RESULTS = (
    "gen_ai.tool.call.result",
    "gcp.vertex.agent.tool_response",
    "ai.toolCall.result",
    "ai.toolCall.output",
    "tool_response",
)
_NO_RANK = 2**31


@dataclass(eq=False)
class _Asked:
    """A request, where it was made, and the row of the tool that answered it.

    `row` is the generation's, or the agent's that reports a step of its own. `result` and
    `began` are set where that row knows them.
    """

    request: Request
    row: Row
    rank: int
    at: datetime | None
    result: Result | None = None
    answer: Row | None = None


@dataclass(eq=False)
class Conversation:
    """What a trace's rows come to: calls in order, generations, and what was said.

    `tool_rows` are the rows that are calls: failures in them are the calls'.
    """

    calls: tuple[ToolCall, ...]
    generations: tuple[Generation, ...]
    messages: tuple[Message, ...]
    tool_rows: list[Row]


def read_conversation(rows: list[Row], model: list[ModelCall]) -> Conversation:
    """Bring together the calls, generations and messages of ordered rows."""
    tools, inner = _tool_rows(rows)
    spoken = [_speech(call) for call in model]
    asked = _requests(rows, model, spoken)
    _match(tools, asked)
    results = _later_results(model)
    placed: list[tuple[tuple[Any, ...], ToolCall]] = []
    by_answer = {id(ask.answer): ask for ask in asked if ask.answer is not None}
    for row in tools:
        ask = by_answer.get(id(row))
        rank = _NO_RANK if ask is None else ask.rank
        key = (row.begin, row.depth, rank, *row.position[2:])
        placed.append((key, _call_of_row(row, ask, inner.get(id(row), []), results)))
    for ask in asked:
        if ask.answer is None:
            begin = max(ask.row.begin, ask.at or ask.row.begin)
            key = (begin, ask.row.depth + 1, ask.rank, *ask.row.position[2:])
            placed.append((key, _call_of_request(ask, results)))
    placed.sort(key=lambda pair: pair[0])
    before = _Counter([key for key, _ in placed])
    return Conversation(
        calls=tuple(call for _, call in placed),
        generations=_generations(model, before),
        messages=_messages(model, spoken, before),
        tool_rows=tools + [row for rows_inside in inner.values() for row in rows_inside],
    )


class _Counter:
    """How many calls come before a row."""

    def __init__(self, keys: list[tuple[Any, ...]]) -> None:
        self._keys = [key[:2] for key in keys]

    def __call__(self, row: Row) -> int:
        return bisect.bisect_left(self._keys, (row.begin, row.depth))


# Rows of tools.


def _tool_rows(rows: list[Row]) -> tuple[list[Row], dict[int, list[Row]]]:
    """The rows that are a call each, and by their identity the rows inside that repeat them."""
    tools = [row for row in rows if row.is_tool]
    inner: dict[int, list[Row]] = defaultdict(list)
    gone: set[int] = set()
    for row in tools:
        outer = _tool_around(row)
        while outer is not None and id(outer) in gone:
            outer = _tool_around(outer)
        if outer is None:
            continue
        if _same_call(outer, row):
            inner[id(outer)].append(row)
            gone.add(id(row))
        elif _HOLDER.match(outer.tool_name):
            gone.add(id(outer))
    return [row for row in tools if id(row) not in gone], inner


def _tool_around(row: Row) -> Row | None:
    """The tool row around a row, with no model or agent in between."""
    for outer in row.ancestors():
        if outer.is_tool:
            return outer
        if outer.is_generation or outer.type == "AGENT":
            return None
    return None


def _same_call(outer: Row, row: Row) -> bool:
    mine, other = _call_id(row), _call_id(outer)
    if mine is not None and other is not None:
        return mine == other
    return _bare(row.tool_name) == _bare(outer.tool_name)


def _bare(name: str) -> str:
    """A tool's name without the server that offers it: `mcp__server__tool` is `tool`."""
    return name.rpartition("__")[2] or name


def _call_id(row: Row) -> str | None:
    known = look(row.tree, "gen_ai.tool.call.id", "ai.toolCall.id", "tool_call.id", "tool_call_id")
    message = tool_message(row.output) or {}
    given = as_dict(row.input)
    return (
        id_or_none(known)
        or id_or_none(message.get("tool_call_id"))
        or (id_or_none(given.get("id")) if given.get("type") == "tool_call" else None)
    )


def _arguments(row: Row) -> Any:
    """What a tool was called with, from wherever its integration puts it."""
    given = look(row.tree, *_ARGUMENTS)
    if given is None:
        given = row.input
    if given is None:
        given = look(row.tree, "input.value", "traceloop.entity.input", "inputs")
    fields = as_dict(given)
    if fields.keys() == {"args", "kwargs"} and fields["args"] in ([], None):
        return fields["kwargs"]  # a Python function observed, called by keywords
    if fields.get("type") == "tool_call" and "args" in fields:
        return fields["args"]
    if fields.keys() == {"input"} and isinstance(unwrap(fields["input"]), dict):
        return unwrap(fields["input"])
    if {"name", "arguments"} <= fields.keys() and fields["name"] == row.tool_name:
        return unwrap(fields["arguments"])
    return given


def _result(row: Row) -> Any:
    """What a tool gave back."""
    given = look(row.tree, *_RESULTS)
    if given is None:
        given = row.output
    if given is None:
        given = look(row.tree, "output.value", "traceloop.entity.output")
    message = tool_message(given)
    if message is not None:
        return text_of(message.get("content")) or message.get("content")
    fields = as_dict(given)
    if isinstance(fields.get("content"), list):
        return text_of(fields["content"]) or given
    return given


def _call_of_row(
    row: Row, ask: _Asked | None, inner: list[Row], results: dict[str, Result]
) -> ToolCall:
    arguments, result = _arguments(row), _result(row)
    call_id = _call_id(row) or (ask.request.call_id if ask else None)
    told = results.get(call_id or "")
    for other in inner:
        arguments = _arguments(other) if arguments is None else arguments
        result = _result(other) if result is None else result
    if arguments is None and ask is not None:
        arguments = ask.request.arguments
    if result is None and told is not None:
        result = told.content
    failed = row.failed or any(other.failed for other in inner)
    status: CallStatus | None = None
    if failed or (told is not None and told.failed):
        status = "error"
    elif row.end is not None or result is not None:
        status = "ok"
    return ToolCall(
        name=_name(row, ask),
        arguments=arguments,
        result=result,
        status=status,
        error=_error([row, *inner], result) if status == "error" else None,
        started_at=row.start,
        ended_at=row.end,
        agent=row.agent,
        span_id=row.id,
    )


def _name(row: Row, ask: _Asked | None) -> str:
    """The name by which the agent knows the tool.

    What contains a merged event's class of tools (`tool.search.wikipedia`) is not that.
    """
    if ask is not None and ask.answer is row and row.raw.get("merged"):
        return ask.request.name
    if row.raw.get("merged"):
        return row.name.split(".")[-2] if row.name.count(".") > 1 else row.tool_name
    return row.tool_name


def _error(rows: list[Row], result: Any) -> str | None:
    """The failure's message: the row's, else the result, else what was passed on from it."""
    for row in rows:
        if known := row.status_message or look_text(row.tree, "exception.message", "error.message"):
            return known
    if result is not None:
        return as_text(result) or None
    for row in rows:
        if known := error_text(row):
            return known
    for outer in rows[0].ancestors():
        if not outer.failed:
            return None
        if outer.status_message:
            return outer.status_message
    return None


# Requests.


def _speech(call: ModelCall) -> list[Turn]:
    """What a generation gave back, as messages."""
    for row in [call.row, *(call.around if call.stands_for is not None else [])]:
        given = row.output
        if given is None:
            given = look(row.tree, "gen_ai.output.messages", "output.value")
        found = turns(given)
        if found is None and given is not None:
            text = answered(given)
            found = None if text is None else [Turn("assistant", text)]
        found = [turn for turn in found or [] if turn.text or turn.requests]
        if found:
            return found
    return []


def _requests(rows: list[Row], model: list[ModelCall], spoken: list[list[Turn]]) -> list[_Asked]:
    found: list[_Asked] = []
    for call, said in zip(model, spoken, strict=True):
        output_tools = _output_tools(call.row)
        requests = [request for turn in said for request in turn.requests]
        for request in requests or _listed(call.row):
            if request.name not in output_tools:
                at = call.row.end or call.row.start
                found.append(_Asked(request, call.row, len(found), at))
    return found + _steps(rows, len(found))


def _output_tools(row: Row) -> set[str]:
    """Names by which a model gives its final, structured answer."""
    parameters = as_dict(look(row.tree, "model_request_parameters"))
    tools = as_list(unwrap(parameters.get("output_tools")))
    return {name for tool in tools if (name := text_or_none(as_dict(tool).get("name")))}


def _listed(row: Row) -> Iterator[Request]:
    """Requests from the columns that Langfuse itself makes of an output, in exports."""
    names = as_list(unwrap(row.raw.get("toolCallNames")))
    for index, item in enumerate(as_list(unwrap(row.raw.get("toolCalls")))):
        fields = as_dict(unwrap(item))
        name = fields.get("name") or (names[index] if index < len(names) else None)
        request = read_request({**fields, "name": name})
        if request is not None:
            yield request


def _steps(rows: list[Row], rank: int) -> list[_Asked]:
    """Requests as BeeAI's agents report them: each update of a step repeats its tool call."""
    found: dict[tuple[Any, ...], _Asked] = {}
    for row in rows:
        if row.type != "SPAN" or row.kind != "agent" or row.is_tool:
            continue
        name, arguments = look_text(row.tree, "tool.name"), look(row.tree, "tool.parameters")
        if name is None or arguments is None:
            continue
        key = (id(row.parent), name, as_text(arguments))
        request = Request(name, arguments, None)
        ask = found.setdefault(key, _Asked(request, row, rank + len(found), row.start))
        if ask.result is None and row.output is not None:
            ask.result = Result(None, row.output, says_failed(row.output))
    return list(found.values())


def _match(tools: list[Row], asked: list[_Asked]) -> None:
    """Give each request the row of the tool that answered it: by id, else by what they say."""
    by_id: dict[str, list[_Asked]] = defaultdict(list)
    by_step: dict[int, list[_Asked]] = defaultdict(list)
    by_name: dict[str, list[_Asked]] = defaultdict(list)
    for ask in asked:
        by_step[id(ask.row)].append(ask)
        by_name[_bare(ask.request.name)].append(ask)
        if ask.request.call_id is not None:
            by_id[ask.request.call_id].append(ask)
    unanswered = []
    for row in tools:
        call_id = _call_id(row)
        # Ids are not unique in every integration: the request nearest before the row.
        if not _answer(row, by_id.get(call_id or "", []), nearest=True):
            unanswered.append((row, call_id))
    rest = []
    for row, call_id in unanswered:
        steps = [ask for outer in row.ancestors() for ask in by_step.get(id(outer), ())]
        if not _answer(row, [ask for ask in steps if not ask.row.is_generation]):
            rest.append((row, call_id, _arguments(row)))
    for exact in (True, False):
        left = []
        for row, call_id, arguments in rest:
            alike = [
                ask
                for ask in by_name.get(_bare(row.tool_name), ())
                if ask.answer is None
                # Where both have an id, they would agree.
                and (call_id is None or ask.request.call_id is None)
                and (not exact or ask.request.arguments == arguments)
            ]
            if not _answer(row, alike):
                left.append((row, call_id, arguments))
        rest = left


def _answer(row: Row, asked: list[_Asked], *, nearest: bool = False) -> bool:
    """Let a row answer the first request that is free, or the nearest before it."""
    free = [ask for ask in asked if ask.answer is None]
    if not free:
        return False
    earlier = [ask for ask in free if ask.row.begin <= row.begin]
    chosen = (earlier[-1:] if nearest else earlier[:1]) or free[:1]
    chosen[0].answer = row
    return True


def _later_results(model: list[ModelCall]) -> dict[str, Result]:
    """Results by call id, from the conversations that generations were given."""
    found: dict[str, Result] = {}
    for call in model:
        for row in (call.row, *call.around):
            given = row.input if row.input is not None else look(row.tree, "input.value")
            for turn in turns(given) or []:
                for result in turn.results:
                    if result.call_id is not None:
                        found.setdefault(result.call_id, result)
    return found


def _call_of_request(ask: _Asked, results: dict[str, Result]) -> ToolCall:
    told = ask.result or results.get(ask.request.call_id or "")
    failed = None if told is None else told.failed
    content = None if told is None else unwrap(told.content)
    return ToolCall(
        name=ask.request.name,
        arguments=ask.request.arguments,
        result=content,
        status=None if failed is None else "error" if failed else "ok",
        error=as_text(content) if failed and content is not None else None,
        started_at=ask.at,
        agent=ask.row.agent,
        span_id=ask.request.call_id or (None if ask.row.is_generation else ask.row.id),
    )


# Generations and messages.


def _generations(model: list[ModelCall], before: _Counter) -> tuple[Generation, ...]:
    spent = [row_tokens(call.row.raw, call.row.tree) for call in model]
    counted_inside = {
        id(row)
        for call, tokens in zip(model, spent, strict=True)
        for row in call.around
        if tokens.total is not None
    }
    found = []
    for call, tokens in zip(model, spent, strict=True):
        outer = call.stands_for
        if outer is None or id(outer) in counted_inside:
            found.append(_generation(call, call.row, tokens, before(call.row)))
        else:
            told = row_tokens(outer.raw, outer.tree)
            found.append(_generation(call, outer, told, before(call.row)))
    return tuple(found)


def _generation(call: ModelCall, counted: Row, tokens: Tokens, before_call: int) -> Generation:
    row = call.row
    names = [row_model(each.raw, each.tree) for each in (row, *call.around)]
    return Generation(
        model=next((name for name in names if name), None) or _told_model(row),
        agent=row.agent,
        tokens=tokens,
        cost_usd=row_cost(counted.raw, tokens),
        finish_reason=_finish_reason(row),
        started_at=row.start,
        ended_at=row.end,
        span_id=row.id,
        response_id=look_text(row.tree, "gen_ai.response.id", "ai.response.id")
        or text_or_none(as_dict(row.output).get("id")),
        before_call=before_call,
    )


def _told_model(row: Row) -> str | None:
    """The model as LangChain's answer names it, which stands in the row around the call."""
    around = as_dict(row.parent.output if row.parent else None)
    listed = as_list(row.parent.output if row.parent else None)
    if listed:
        around = as_dict(as_dict(listed[-1]).get("update"))
    for message in reversed(as_list(around.get("messages"))):
        name = as_dict(as_dict(message).get("response_metadata")).get("model_name")
        if text_or_none(name):
            return str(name)
    return None


def _finish_reason(row: Row) -> str | None:
    known = look(row.tree, "gen_ai.response.finish_reasons", "ai.response.finishReason")
    if isinstance(known, list):
        known = known[0] if known else None
    if text_or_none(known):
        return str(known)
    given = row.output[-1] if isinstance(row.output, list) and row.output else row.output
    fields = as_dict(given)
    choices = as_list(fields.get("choices"))
    if choices:
        fields = as_dict(choices[0])
    return text_or_none(first(fields, "finish_reason", "finishReason", "stop_reason"))


def _messages(
    model: list[ModelCall], spoken: list[list[Turn]], before: _Counter
) -> tuple[Message, ...]:
    return tuple(
        Message(
            text=turn.text,
            before_call=before(call.row),
            question=_was_replied_to(turn.text, model[index + 1 : index + 2]),
            agent=call.row.agent,
            at=call.row.end,
        )
        for index, (call, said) in enumerate(zip(model, spoken, strict=True))
        for turn in said
        if turn.text
    )


def _was_replied_to(text: str, after: Iterable[ModelCall]) -> bool:
    """Whether the next generation was given the text and, right behind it, the user's words."""
    for call in after:
        given = turns(call.row.input) or []
        for said, reply in itertools.pairwise(given):
            if said.role == "assistant" and said.text == text and reply.role == "user":
                return reply.text is not None
    return False
