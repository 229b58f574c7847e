"""A span processor that records whatever framework is instrumented with OpenTelemetry.

Belongs here: which spans are the agent's steps, and their order. Does not belong here: the names
of attributes (`span_attributes`).

*Order* is that of the spans' starts; a tool whose span says at its start what it is, is on record
from then on, even if it never ends.

*Once*: a call that is instrumented twice, a span inside another one of the same tool under the
same call id, is one call.

*The final payload* is what the outermost agent gave out, the last one if several ran one after
another.

*A question* is a call of a tool that is named as one that asks; or what an outermost agent gave
out, once a later run of an agent is given it as the assistant's turn and a user's text as the next:
then the user has answered it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import StatusCode
from opentelemetry.trace.propagation import get_current_span

from benchmark_assets.recorder import span_attributes
from benchmark_assets.recorder.record import NOT_GIVEN, Call, TraceRecorder

_log = logging.getLogger(__name__)


@dataclass
class _Answer:
    """What an outermost agent gave out, and its place."""

    text: str
    at: int


@dataclass
class _Run:
    """What is known of one recorder's run so far."""

    recorder: TraceRecorder
    answers: list[_Answer] = field(default_factory=list)


@dataclass
class _Live:
    """A span that has not ended.

    Attributes:
        at: Its place in the run.
        scope: Name of the instrumentation that made it.
        tool: Name and id of the call of a tool that it is, as far as is known yet.
        owner: The span that stands for the call, of several spans of one call.
        call: The call on record.
        known: What is known of the call's arguments, result and error.
        has_ended: Whether the call has ended.
        inside: Calls of tools inside it.
        has_model: Whether a model's call inside it has been counted.
    """

    run: _Run
    at: int
    parent: _Live | None
    scope: str
    tool: tuple[str, str | None] | None = None
    owner: _Live | None = None
    call: Call | None = None
    known: dict[str, Any] = field(default_factory=dict)
    has_ended: bool = False
    inside: list[_Live] = field(default_factory=list)
    has_model: bool = False

    def around(self) -> Iterator[_Live]:
        """The spans around it, from the inside out."""
        outer = self.parent
        while outer is not None:
            yield outer
            outer = outer.parent

    @property
    def is_outermost(self) -> bool:
        """Whether no span of its own instrumentation is around it; those of others are no agents."""
        return not any(outer.scope == self.scope for outer in self.around())

    def related(self) -> Iterator[_Live]:
        """What may stand for the same call: what is around it, and what is inside it."""
        for other in (*self.around(), *self.inside):
            if other.owner is other:
                yield other

    def is_same_call(self, other: _Live) -> bool:
        """Whether two spans, one inside the other, are one call: a tool that calls itself is two."""
        if self.tool is None or other.tool is None or self.tool[0] != other.tool[0]:
            return False
        one, two = self.tool[1], other.tool[1]
        return one == two or one is None or two is None


class RecordingSpanProcessor(SpanProcessor):
    """Feeds a recorder from spans: `provider.add_span_processor(RecordingSpanProcessor(recorder))`.

    Args:
        recorder: Records all spans that no `into` claims; None: those are not recorded.
        question_tools: Names of tools, globs too, whose calls are questions to the user. The
            question is the argument `question`, `text`, `message` or `prompt`, else the first.
    """

    def __init__(
        self, recorder: TraceRecorder | None = None, *, question_tools: Iterable[str] = ()
    ) -> None:
        self._run = None if recorder is None else _Run(recorder)
        self._question_tools = tuple(question_tools)
        self._current: ContextVar[_Run | None] = ContextVar("recording_run", default=None)
        self._live: dict[tuple[int, int], _Live] = {}
        self._lock = threading.Lock()
        self._is_open = True

    @contextmanager
    def into(self, recorder: TraceRecorder) -> Iterator[TraceRecorder]:
        """Record what is started inside, tasks and all, with a recorder of its own."""
        token = self._current.set(_Run(recorder))
        try:
            yield recorder
        finally:
            self._current.reset(token)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Take a span's place, and its call if it is known to be a tool's."""
        try:
            self._started(span, parent_context)
        except Exception:  # noqa: BLE001 - whatever a span holds must not break the agent
            _log.exception("the start of a span was not recorded")

    def on_end(self, span: ReadableSpan) -> None:
        """Record what a span turned out to be."""
        try:
            self._ended(span)
        except Exception:  # noqa: BLE001 - as above
            _log.exception("the end of a span was not recorded")

    def shutdown(self) -> None:
        """Record nothing more."""
        self._is_open = False

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Nothing is held back."""
        return True

    def _started(self, span: Span, parent_context: Context | None) -> None:
        outer = get_current_span(parent_context).get_span_context()
        with self._lock:
            parent = self._live.get((outer.trace_id, outer.span_id))
        run = self._current.get() or (parent.run if parent else self._run)
        if run is None or not self._is_open:
            return
        scope = span.instrumentation_scope
        live = _Live(run, run.recorder.place(), parent, scope.name if scope else "")
        context = span.get_span_context()
        with self._lock:
            self._live[context.trace_id, context.span_id] = live
        attributes = span.attributes or {}
        # Its name alone does not tell which call it is, if it is inside of another one.
        if span_attributes.kind_of(attributes) == "tool":
            self._begin_tool(live, span.name, attributes)

    def _ended(self, span: ReadableSpan) -> None:
        context = span.get_span_context()
        if context is None:
            return
        with self._lock:
            live = self._live.pop((context.trace_id, context.span_id), None)
        if live is None or not self._is_open:
            return
        attributes = span.attributes or {}
        match span_attributes.kind_of(attributes, span.name):
            case "tool":
                self._end_tool(live, span, attributes)
            case "model":
                self._end_model(live, attributes)
            case "agent":
                self._end_agent(live, span, attributes)
            case "chain" if live.is_outermost:
                self._end_agent(live, span, attributes)
            case _:
                pass

    # Tools.

    def _begin_tool(self, live: _Live, span_name: str, attributes: Mapping[str, Any]) -> None:
        live.tool = (
            span_attributes.tool_name(attributes, span_name),
            span_attributes.call_id_of(attributes),
        )
        live.owner = next((other for other in live.related() if other.is_same_call(live)), live)
        for outer in live.around():
            outer.inside.append(live)
        if live.owner is not live:
            return
        arguments = span_attributes.arguments_of(attributes)
        if self._asks(live):
            if arguments is not None:
                self._ask(live, arguments)
        else:
            live.known["arguments"] = arguments
            live.call = live.run.recorder.start_tool_at(live.at, live.tool[0], arguments)

    def _end_tool(self, live: _Live, span: ReadableSpan, attributes: Mapping[str, Any]) -> None:
        if live.tool is None:
            self._begin_tool(live, span.name, attributes)
        owner = live.owner
        assert owner is not None
        found = {
            "arguments": span_attributes.arguments_of(attributes),
            "result": span_attributes.result_of(attributes),
        }
        if live is owner:
            owner.known["error"] = _error_of(span, attributes)
            owner.has_ended = True
        for key, value in found.items():
            # What only the other one of two spans of a call knows is the call's, too.
            if value is not None and (live is owner or owner.known.get(key) is None):
                owner.known[key] = value
        if owner.has_ended:
            self._tell(owner)

    def _tell(self, owner: _Live) -> None:
        """Record what is known of a call that has ended."""
        known = owner.known
        if owner.call is None:
            self._ask(owner, known.get("arguments"))
        elif known["error"] is not None:
            owner.call.fail(known["error"], arguments=known["arguments"])
        else:
            result = known.get("result")
            owner.call.succeed(
                NOT_GIVEN if result is None else result, arguments=known["arguments"]
            )

    def _asks(self, live: _Live) -> bool:
        assert live.tool is not None
        name = live.tool[0]
        return any(name == known or fnmatchcase(name, known) for known in self._question_tools)

    def _ask(self, live: _Live, arguments: Any) -> None:
        if not live.known.get("asked"):
            live.known["asked"] = True
            live.run.recorder.question_at(live.at, _question(arguments))

    # Models and agents.

    def _end_model(self, live: _Live, attributes: Mapping[str, Any]) -> None:
        self._find_answered(live, attributes)
        tokens = span_attributes.tokens_of(attributes)
        if live.has_model:
            return
        if tokens:
            for outer in live.around():
                outer.has_model = True
        live.run.recorder.on_model(span_attributes.model_of(attributes), **tokens)

    def _end_agent(self, live: _Live, span: ReadableSpan, attributes: Mapping[str, Any]) -> None:
        self._find_answered(live, attributes)
        failed = span.status.status_code is StatusCode.ERROR
        final = None if failed else span_attributes.final_of(attributes)
        recorder = live.run.recorder
        # Inner agents end first, so what the outermost one says is what stays.
        recorder.on_final(final)
        if live.is_outermost and isinstance(final, str):
            live.run.answers.append(_Answer(final.strip(), recorder.place()))

    def _find_answered(self, live: _Live, attributes: Mapping[str, Any]) -> None:
        """Turn what an agent had given out into a question where the user is seen to answer it."""
        if not live.run.answers:
            return
        messages = [
            message
            for message in span_attributes.asked_of_model(attributes)
            if message.role not in ("system", "developer")
        ]
        answered = {
            said.text
            for said, reply in pairwise(messages)
            if said.role == "assistant" and not said.calls and reply.role == "user" and reply.text
        }
        for answer in list(live.run.answers):
            if answer.at < live.at and answer.text in answered:
                live.run.answers.remove(answer)
                live.run.recorder.question_at(answer.at, answer.text)


def _question(arguments: Any) -> str:
    if isinstance(arguments, Mapping) and arguments:
        for name in ("question", "text", "message", "prompt"):
            if isinstance(arguments.get(name), str):
                return str(arguments[name])
        return str(next(iter(arguments.values())))
    return "" if arguments is None else str(arguments)


def _error_of(span: ReadableSpan, attributes: Mapping[str, Any]) -> str | None:
    """Why a span failed; None if it did not."""
    kind = attributes.get("error.type")
    if span.status.status_code is not StatusCode.ERROR and kind is None:
        return None
    said = span.status.description
    for event in span.events:
        if event.name == "exception" and event.attributes:
            kind = kind or event.attributes.get("exception.type")
            said = str(event.attributes.get("exception.message") or said or "")
    parts = [str(kind)] if kind else []
    if said:
        parts.append(said.removeprefix(f"{kind}: "))
    return ": ".join(parts) or "failed"
