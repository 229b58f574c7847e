"""The recorder: what an agent, or an adapter on its behalf, tells what happens.

Belongs here: taking events down, in order, from any thread or task, and handing out the trace.
Does not belong here: what events come to (`events`), what is hidden (`redaction`), and how plain
functions are wrapped (`decorators`).

Everything is copied, made JSON and redacted before it is kept: what the agent does to an object
afterwards changes nothing, and what must not be written down is never part of the record.
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
import tempfile
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, ParamSpec, TypeVar, overload

from msgspec import MsgspecError, json, structs

from benchmark_assets.recorder import decorators, events
from benchmark_assets.recorder.plain import Plain, clean, plain
from benchmark_assets.recorder.redaction import Kept, Others, Redaction, Texts

P = ParamSpec("P")
R = TypeVar("R")

BUCKETS = ("input", "output", "cache_read", "cache_write", "reasoning")
"""Of tokens; they are disjoint: cached tokens are not in `input`, reasoning not in `output`."""


class _NotGiven:
    """Marks an argument that was left out, where None would be a value."""

    def __repr__(self) -> str:
        return "NOT_GIVEN"


NOT_GIVEN: Final = _NotGiven()


class TraceRecorder:
    """Records one run of an agent. Safe to use from several threads and tasks at once.

    Args:
        comparable: Allow-list of values that may be written down: tool → names of its arguments,
            both may be globs (`{"get_*": ["order_id"]}`). All other values are hidden; `{}` hides
            every one. None: nothing is hidden.
        comparable_final: Keys of the final payload that may be written down, where `comparable`
            is given.
        others: What becomes of values that are hidden: `hash` (`{"sha256": "…"}`, comparable with
            a fixture's `value_hashes`) or `drop` (`null`).
        texts: What becomes of the user's text and of questions, where `comparable` is given:
            `hash`, `drop` or `keep`.
        fixture: Id of the fixture that is replayed.
        trial: Number of the attempt at it, from 1.
        turns: What the user says after the first turn, for agents that hold a conversation.
        journal: An open file to which each event is appended at once, unbuffered, so that what was
            recorded is there whatever becomes of the process.

    Raises:
        ValueError: If a setting is none of its values.
    """

    def __init__(
        self,
        *,
        comparable: Mapping[str, Iterable[str]] | None = None,
        comparable_final: Iterable[str] = (),
        others: Others = "hash",
        texts: Texts = "hash",
        fixture: str | None = None,
        trial: int | None = None,
        turns: Iterable[str] = (),
        journal: BinaryIO | None = None,
    ) -> None:
        self._redaction = Redaction(comparable, comparable_final, others, texts)
        self._events: list[events.Event] = []
        self._journal = journal
        # Signal handlers and finalizers may record in the middle of recording.
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._places = itertools.count()
        self.fixture: Final = fixture
        self.trial: Final = trial
        self.turns: Final = tuple(turns)
        self._note(events.Begun(fixture=fixture, trial=trial, time=_now()))

    # What happens.

    def on_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | str | None = None,
        *,
        result: Any = NOT_GIVEN,
        error: BaseException | str | None = None,
    ) -> None:
        """Record a call of a tool that is over, or whose end nobody will tell.

        Args:
            name: The tool's name.
            arguments: Its arguments by name, or the JSON text of them that a model gave.
            result: What it gave back.
            error: Why it failed, if it did.
        """
        call = self.start_tool(name, arguments)
        if error is not None:
            call.fail(error)
        else:
            call.succeed(result)

    def start_tool(self, name: str, arguments: Mapping[str, Any] | str | None = None) -> Call:
        """Record that a tool is called now; how it ends is told to the call that is returned.

        A call that has not ended when a replayed agent has is in error.

        Calls that run at the same time stand in the order in which they were started.
        """
        return self.start_tool_at(self.place(), name, arguments)

    def on_question(self, text: str) -> None:
        """Record that the user is asked something now."""
        self.question_at(self.place(), text)

    def on_final(self, payload: Any) -> None:
        """Record the final payload; the last one counts, and None takes it back."""
        self._keep_final(self.place(), payload)

    def on_input(self, user_text: str) -> None:
        """Record what the user said first."""
        kept = self._redaction.text(clean(user_text))
        self._note(events.Said(text=kept.value, time=_now(), redacted=_under("/text", kept)))

    def on_model(self, name: str | None = None, **tokens: int | None) -> None:
        """Record a call of a model: the first name is the trace's, tokens add up.

        Args:
            name: The model's name.
            tokens: Counts by bucket (`BUCKETS`); None is unknown.

        Raises:
            TypeError: If there is no such bucket.
        """
        unknown = tokens.keys() - set(BUCKETS)
        if unknown:
            raise TypeError(f"no bucket of tokens is named {min(unknown)}; there are {BUCKETS}")
        known = {bucket: count for bucket, count in tokens.items() if count is not None}
        self._note(events.Used(model=name and clean(name), tokens=known, time=_now()))

    def on_error(self, error: BaseException | str) -> None:
        """Record that the agent itself failed: such a trace fails whatever else is in it."""
        kept = self._redaction.error(*_failure(error))
        self._note(events.Failed(error=kept.value, time=_now(), redacted=_under("/error", kept)))

    # Tools as plain functions.

    @overload
    def tool(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def tool(
        self, /, *, name: str | None = None, defaults: bool = False
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def tool(
        self,
        function: Callable[P, R] | None = None,
        /,
        *,
        name: str | None = None,
        defaults: bool = False,
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Record each call of a function, sync or async: `@recorder.tool`, or `recorder.tool(f)`.

        Arguments are recorded by their names, however they were passed. An exception is recorded
        as the call's error, and goes on its way.

        Args:
            function: The tool.
            name: The tool's name; default: the function's.
            defaults: Whether arguments that were left out are recorded with their defaults. The
                agent did not give them, so they are not, unless asked for.

        Raises:
            TypeError: If the function is a generator, or not callable.
        """

        def wrap(wrapped: Callable[P, R]) -> Callable[P, R]:
            return decorators.recorded_tool(self, wrapped, name=name, defaults=defaults)

        return wrap if function is None else wrap(function)

    @overload
    def question(self, function: Callable[P, R], /) -> Callable[P, R]: ...

    @overload
    def question(
        self, /, *, text: str | None = None
    ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...

    def question(
        self, function: Callable[P, R] | None = None, /, *, text: str | None = None
    ) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
        """Record each call of a function as a question to the user, and not as a tool's.

        Args:
            function: What asks the user.
            text: The name of the argument that is the question; default: the first.

        Raises:
            TypeError: If the function is a generator, not callable, or takes no such argument.
        """

        def wrap(wrapped: Callable[P, R]) -> Callable[P, R]:
            return decorators.recorded_question(self, wrapped, text=text)

        return wrap if function is None else wrap(function)

    # For adapters that learn late what it was that began.

    def place(self) -> int:
        """Take the next place in the order of the run, for what begins now."""
        with self._lock:
            return next(self._places)

    def start_tool_at(
        self, at: int, name: str, arguments: Mapping[str, Any] | str | None = None
    ) -> Call:
        """Record a call that began when `at` was taken."""
        name = clean(name)
        kept = self._arguments(name, arguments)
        self._note(
            events.Called(
                at=at, name=name, arguments=kept.value, time=_now(), **_marks("/arguments", kept)
            )
        )
        return Call(self, at, name)

    def question_at(self, at: int, text: str) -> None:
        """Record a question that was asked when `at` was taken."""
        kept = self._redaction.text(clean(text))
        self._note(
            events.Asked(at=at, text=kept.value, time=_now(), redacted=_under("/text", kept))
        )

    # What comes out.

    def dump(self) -> dict[str, Any]:
        """The trace so far, as JSON data: `tools`, `asked_clarification`, `final` and the rest."""
        with self._lock:
            listed = list(self._events)
        # The caller may do with it what it likes; what is kept stays.
        trace = json.decode(json.encode(events.trace_of(listed)))
        assert isinstance(trace, dict)
        return trace

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file, which is replaced as a whole or not at all.

        Raises:
            OSError: If the file or its folder cannot be written.
        """
        write_trace(Path(path), self.dump())

    # Within.

    def give_up(self, why: str) -> None:
        """Record, in words of this package that hide nothing, that the agent failed."""
        self._note(events.Failed(error=why, time=_now()))

    def over(self) -> None:
        """Record that the agent came to its end."""
        self._note(events.Over(time=_now()))

    def end_call(
        self,
        of: int,
        name: str,
        *,
        arguments: Any = NOT_GIVEN,
        result: Any = NOT_GIVEN,
        error: BaseException | str | None = None,
    ) -> None:
        """Record how the call that began at `of` ended."""
        kept: dict[str, Kept] = {}
        if arguments is not NOT_GIVEN:
            kept["arguments"] = self._arguments(name, arguments)
        if error is not None:
            kept["error"] = self._redaction.error(*_failure(error))
        elif result is not NOT_GIVEN:
            kept["result"] = self._redaction.value(plain(result))
        fields: dict[str, Any] = {"as_text": (), "redacted": ()}
        for field, part in kept.items():
            fields[field] = part.value
            for mark, places in _marks(f"/{field}", part).items():
                fields[mark] += places
        self._note(events.Returned(of=of, time=_now(), **fields))

    def _keep_final(self, at: int, payload: Any) -> None:
        kept = self._redaction.final(plain(payload))
        self._note(events.Final(at=at, payload=kept.value, time=_now(), **_marks("/payload", kept)))

    def _arguments(self, tool: str, given: Any) -> Kept:
        if given is None:
            return Kept({})
        if isinstance(given, str):
            given = _parsed(given)
        return self._redaction.arguments(tool, plain(given))

    def _note(self, event: events.Event) -> None:
        process = os.getpid()
        if process != self._process:  # Places are counted in each process that is forked.
            event = structs.replace(event, process=process)
        with self._lock:
            self._events.append(event)
            if self._journal is not None:
                self._journal.write(events.line(event))
                self._journal.flush()


class Call:
    """A call of a tool that has begun. Told of more than one end, the last one counts."""

    def __init__(self, recorder: TraceRecorder, at: int, name: str) -> None:
        self._recorder = recorder
        self._at = at
        self._name = name

    def succeed(self, result: Any = NOT_GIVEN, *, arguments: Any = NOT_GIVEN) -> None:
        """Record that it ended well; `arguments` replace those known when it began."""
        self._recorder.end_call(self._at, self._name, arguments=arguments, result=result)

    def fail(self, error: BaseException | str, *, arguments: Any = NOT_GIVEN) -> None:
        """Record that it failed, and why."""
        self._recorder.end_call(self._at, self._name, arguments=arguments, error=error)


def replay(
    user_text: str, run_agent: Callable[[str, TraceRecorder], Awaitable[None] | None]
) -> dict[str, Any]:
    """Run an agent, sync or async, on what a user says, and return its trace.

    What the agent raises goes on to the caller.

    Raises:
        TypeError: If the agent is a generator.
    """
    recorder = TraceRecorder()
    recorder.on_input(user_text)
    run_to_end(run_agent(user_text, recorder))
    return recorder.dump()


def run_to_end(outcome: object) -> None:
    """Wait for what an agent returned, if it can be waited for.

    Raises:
        TypeError: If it is a generator, of which nothing has run.
    """
    if inspect.isgenerator(outcome) or inspect.isasyncgen(outcome):
        raise TypeError("the agent gave back a generator, of which nothing has run")
    if isinstance(outcome, Awaitable):
        import asyncio  # Whoever has something to wait for has paid for it already.

        async def wait() -> None:
            await outcome

        asyncio.run(wait())


def write_trace(path: Path, trace: dict[str, Any]) -> None:
    """Write a trace to a file, which is replaced as a whole or not at all; makes its folders.

    Raises:
        OSError: If the file or its folder cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(events.to_file(trace))
        Path(temporary).chmod(0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    # There is no other way to ask than to set it.
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _parsed(text: str) -> Any:
    """What a model wrote as arguments, if it is JSON; else the text."""
    try:
        return json.decode(text)
    except (MsgspecError, ValueError, RecursionError):
        return text


def _failure(error: BaseException | str) -> tuple[str | None, str]:
    """The kind of a failure and what it says."""
    if isinstance(error, BaseException):
        said: Plain = plain(error)
        return type(error).__name__, str(said.value)
    return None, clean(str(error))


def _under(field: str, kept: Kept) -> tuple[str, ...]:
    return tuple(field + place for place in kept.redacted)


def _marks(field: str, kept: Kept) -> dict[str, Any]:
    """The marks of a value as those of the event that has it in a field."""
    return {
        "as_text": tuple(field + place for place in kept.as_text),
        "redacted": _under(field, kept),
    }
