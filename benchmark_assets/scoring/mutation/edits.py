"""Editing a trace so that it stays one: calls dropped, moved, inserted, changed, cut off.

Belongs here: edits that keep whatever points at a call pointing at the same one. Does not belong
here: which edits are made, and why (`operators`).

`call` of skills and files is the index of a call, `before_call` of messages and generations the
number of calls made so far. A question that a call puts to the user (its text stands in the call's
arguments) belongs to that call and goes where it goes. An index that no call has is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from benchmark_assets.model.trace import FileEvent, Message, SkillLoad, ToolCall, TraceSnapshot

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value inside JSON data."""

DEEPEST = 50
"""Lists and objects inside one another that are looked into."""


# Values inside JSON data.


def leaves(value: Any, place: Place = ()) -> Iterator[tuple[Place, Any]]:
    """Every value that holds no others, with its place; empty lists and objects are such."""
    children: list[tuple[str | int, Any]] = []
    if len(place) == DEEPEST:
        pass
    elif isinstance(value, dict):
        children = list(value.items())
    elif isinstance(value, list | tuple):
        children = list(enumerate(value))
    if not children:
        yield place, value
    for key, item in children:
        yield from leaves(item, (*place, key))


def put(value: Any, place: Place, new: Any) -> Any:
    """The data with another value at a place that there is."""
    if not place:
        return new
    first, rest = place[0], place[1:]
    if isinstance(value, dict):
        return {key: put(item, rest, new) if key == first else item for key, item in value.items()}
    return [put(item, rest, new) if index == first else item for index, item in enumerate(value)]


def without(value: Any, place: Place) -> Any:
    """The data without what is at a place that there is."""
    first, rest = place[0], place[1:]
    if rest:
        inner = value[first]
        return put(value, (first,), without(inner, rest))
    if isinstance(value, dict):
        return {key: item for key, item in value.items() if key != first}
    return [item for index, item in enumerate(value) if index != first]


def texts_in(value: Any) -> set[str]:
    """Every text in JSON data that is a value, and not a key."""
    return {leaf for _, leaf in leaves(value) if isinstance(leaf, str)}


def _each_text(value: Any, new: Mapping[str, str]) -> Any:
    for place, leaf in list(leaves(value)):
        if isinstance(leaf, str) and leaf in new:
            value = put(value, place, new[leaf])
    return value


# Which call what belongs to.


def asking_call(trace: TraceSnapshot, message: Message) -> int | None:
    """Index of the call that put a question to the user; None for what was just said."""
    index = message.before_call - 1
    if not message.question or not 0 <= index < len(trace.tool_calls):
        return None
    return index if message.text in texts_in(trace.tool_calls[index].arguments) else None


# Order and number of calls.


def rearrange(trace: TraceSnapshot, order: Sequence[int]) -> TraceSnapshot:
    """The trace with these of its calls in this order; what belongs to the others is gone.

    Args:
        trace: The trace.
        order: Indices of its calls, each at most once.
    """
    calls = trace.tool_calls
    new = {old: index for index, old in enumerate(order)}
    # What was said after two of the calls is still said after two, whatever these now are.
    made = [0]
    for old in range(len(calls)):
        made.append(made[-1] + (old in new))

    def count(before: int) -> int:
        return made[min(before, len(calls))] if before >= 0 else before

    def index(call: int | None) -> int | None:
        return new.get(call, call) if call is not None else None

    def stays(call: int | None) -> bool:
        return call is None or call in new or not 0 <= call < len(calls)

    messages = []
    for message in trace.messages:
        owner = asking_call(trace, message)
        if owner is None:
            messages.append(replace(message, before_call=count(message.before_call)))
        elif owner in new:
            messages.append(replace(message, before_call=new[owner] + 1))
    return replace(
        trace,
        tool_calls=tuple(calls[old] for old in order),
        files=_in_order([replace(e, call=index(e.call)) for e in trace.files if stays(e.call)]),
        skills=_in_order([replace(s, call=index(s.call)) for s in trace.skills if stays(s.call)]),
        messages=tuple(sorted(messages, key=lambda message: message.before_call)),
        generations=tuple(
            g if g.before_call is None else replace(g, before_call=count(g.before_call))
            for g in trace.generations
        ),
    )


def _in_order(events: Sequence[Any]) -> tuple[Any, ...]:
    """Events in the order of their calls; those of no call keep their places."""
    placed = sorted((e for e in events if e.call is not None), key=lambda event: event.call)
    rest = iter(placed)
    return tuple(event if event.call is None else next(rest) for event in events)


def drop_calls(trace: TraceSnapshot, dropped: Sequence[int]) -> TraceSnapshot:
    """The trace without some of its calls."""
    return rearrange(trace, [i for i in range(len(trace.tool_calls)) if i not in dropped])


def cut(trace: TraceSnapshot, kept: int) -> TraceSnapshot:
    """The trace that stops after so many calls, with its last words as if all had been done."""
    last = tuple(m for m in trace.messages[-1:] if m.text == trace.final_answer)
    said = tuple(m for m in trace.messages if m.before_call <= kept and m not in last)
    whole = replace(trace, messages=(*said, *last))
    return rearrange(whole, range(kept))


def insert(
    trace: TraceSnapshot,
    position: int,
    call: ToolCall,
    files: Sequence[FileEvent] = (),
    skills: Sequence[SkillLoad] = (),
) -> TraceSnapshot:
    """The trace with one call more, made right after the one before that position.

    Args:
        trace: The trace.
        position: Index of the new call, from 0 to the number of calls.
        call: The new call.
        files: What it did to files, where the trace states its files.
        skills: What it loaded, where the trace states its skills.
    """

    def later(number: int) -> int:
        return number + 1 if number >= position else number

    def moved(call: int | None) -> int | None:
        return None if call is None else later(call)

    calls = trace.tool_calls
    messages = [
        # A question goes on following the call that puts it.
        replace(m, before_call=m.before_call + (m.before_call > position))
        if asking_call(trace, m) is not None
        else replace(m, before_call=later(m.before_call))
        for m in trace.messages
    ]
    return replace(
        trace,
        tool_calls=(*calls[:position], call, *calls[position:]),
        files=_in_order(
            [
                *(replace(event, call=moved(event.call)) for event in trace.files),
                *(replace(event, call=position) for event in files),
            ]
        ),
        skills=_in_order(
            [
                *(replace(load, call=moved(load.call)) for load in trace.skills),
                *(replace(load, call=position) for load in skills),
            ]
        ),
        messages=tuple(messages),
        generations=tuple(
            g if g.before_call is None else replace(g, before_call=later(g.before_call))
            for g in trace.generations
        ),
    )


def insert_copy(
    trace: TraceSnapshot, index: int, position: int, new: Mapping[str, str] | None = None
) -> TraceSnapshot:
    """The trace with one of its calls made again at a position, and what it did done again.

    Args:
        trace: The trace.
        index: The call that is made again.
        position: Index of the new call.
        new: Texts in its arguments → what stands there instead.
    """
    call = trace.tool_calls[index]
    texts = new or {}
    again = replace(call, arguments=_each_text(call.arguments, texts)) if texts else call
    change = _renamed(texts)
    return insert(
        trace,
        position,
        # No two calls have one span.
        replace(again, span_id=None),
        [event for e in trace.files if e.call == index and (event := change.file(e))],
        [load for s in trace.skills if s.call == index and (load := change.skill(s))],
    )


# What a call says.


class _Changed:
    """What becomes of what a call did when texts of its arguments become others or go."""

    def __init__(self, of: Callable[[str], str | None]) -> None:
        self._of = of

    def file(self, event: FileEvent) -> FileEvent | None:
        path = self._of(event.path)
        content = None if event.content is None else self._of(event.content)
        return None if path is None else replace(event, path=path, content=content)

    def skill(self, load: SkillLoad) -> SkillLoad | None:
        name = self._of(load.name)
        return None if name is None else replace(load, name=name)

    def message(self, message: Message) -> Message | None:
        text = self._of(message.text)
        return None if text is None else replace(message, text=text)


def _renamed(new: Mapping[str, str]) -> _Changed:
    return _Changed(lambda text: new.get(text, text))


def with_arguments(trace: TraceSnapshot, index: int, arguments: Any) -> TraceSnapshot:
    """The trace in which a call was made with other arguments, and did what these say.

    A file, a skill or a question that an argument named is the one that is named there now, and
    gone if none is.
    """
    old = trace.tool_calls[index].arguments
    after = {place: value for place, value in leaves(arguments) if isinstance(value, str)}
    new: dict[str, str | None] = {
        text: after.get(place) for place, text in leaves(old) if isinstance(text, str)
    }
    # A text that stands in two places is gone only when it is gone from both.
    new.update({text: text for text in new if text in after.values()})
    change = _Changed(lambda text: new.get(text, text))
    calls = list(trace.tool_calls)
    calls[index] = replace(calls[index], arguments=arguments)
    return replace(
        trace,
        tool_calls=tuple(calls),
        files=_of_call(trace.files, index, change.file),
        skills=_of_call(trace.skills, index, change.skill),
        messages=tuple(
            changed
            for message in trace.messages
            if (
                changed := change.message(message)
                if asking_call(trace, message) == index
                else message
            )
        ),
    )


def _of_call(events: Sequence[Any], index: int, change: Callable[[Any], Any]) -> tuple[Any, ...]:
    changed = (change(event) if event.call == index else event for event in events)
    return tuple(event for event in changed if event is not None)


def failed(trace: TraceSnapshot, index: int, message: str) -> TraceSnapshot:
    """The trace in which a call failed, and so did all that it was to do."""
    calls = list(trace.tool_calls)
    calls[index] = replace(calls[index], status="error", error=message, result=None)

    def status(event: Any) -> Any:
        return replace(event, status="error", **_no_content(event))

    return replace(
        trace,
        tool_calls=tuple(calls),
        files=_of_call(trace.files, index, status),
        skills=_of_call(trace.skills, index, status),
    )


def _no_content(event: Any) -> dict[str, None]:
    return {"content": None} if isinstance(event, FileEvent) and event.operation == "read" else {}


# What was said.


def with_answer(trace: TraceSnapshot, answer: str | None) -> TraceSnapshot:
    """The trace with other last words, or none."""
    old, messages = trace.final_answer, trace.messages
    if messages and messages[-1].text == old:
        last = () if answer is None else (replace(messages[-1], text=answer),)
        messages = (*messages[:-1], *last)
    return replace(trace, final_answer=answer, messages=messages)


def nothing_done(trace: TraceSnapshot) -> TraceSnapshot:
    """The trace of a run that did nothing, said nothing and ended as the trace did."""
    return replace(
        trace,
        tool_calls=(),
        skills=(),
        files=(),
        messages=(),
        error_spans=(),
        asked_clarification=None if trace.asked_clarification is None else False,
        final_answer=None,
    )
