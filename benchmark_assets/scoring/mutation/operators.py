"""Mutation operators: one thing made wrong in a trace, in every place where it can be made wrong.

Belongs here: the operators and the mutants that they yield. Does not belong here: editing traces
(`edits`), judging mutants (`testing`), or which of them a contract allows
(`freedoms`).

An operator is a function of a `Scene`, which is a trace with what is known of it, and yields
mutants in the order of the trace. It draws what there is to choose from the scene's dice, so equal
seeds give equal mutants. Whatever is in a trace, no operator raises, and none yields the trace
as it is: what would change nothing is left out. `mutants` leaves out what an operator before made.

What is made wrong is what contracts can speak of. Values are changed as little as can be: a text
keeps its shape and has one letter or digit exchanged for the next, as near misses are what a
careless contract lets through.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeGuard

import msgspec
from msgspec.structs import replace

from benchmark_assets.model.contract import Contract, Trajectory
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.identity import content_hash
from benchmark_assets.model.trace import (
    FileEvent,
    Generation,
    SkillLoad,
    Tokens,
    ToolCall,
    TraceSnapshot,
)
from benchmark_assets.scoring.activity import Activity
from benchmark_assets.scoring.asking import writing
from benchmark_assets.scoring.calls import name_call
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.matching import any_glob, contains_text, plain_text, show
from benchmark_assets.scoring.mutation.edits import (
    DEEPEST,
    Place,
    asking_call,
    cut,
    drop_calls,
    failed,
    insert,
    insert_copy,
    leaves,
    put,
    rearrange,
    with_answer,
    with_arguments,
    without,
)

INVENTED_WRITE = "delete_everything"
INVENTED_READ = "read_something_else"
INVENTED_ARGUMENT = "something_else"
INVENTED_SKILL = "something_else"
ANOTHER_ANSWER = "Something else."
FAILURE = "503: no such luck"
"""What is put into traces where nothing in them serves."""

_SHOWN = 40


@dataclass(frozen=True)
class Mutant:
    """A trace with one thing made wrong. Indices of calls are those of the trace before.

    Attributes:
        what: What is wrong, in words.
        trace: The trace with it.
        dropped: Calls that are gone.
        moved: Calls whose order was changed.
        changed: The call whose arguments were changed.
        added: Index, in the mutant, of the call that there was not.
        place: What was changed inside the call's arguments, or inside the final payload.
        how: Whether what is at `place` was given another value, removed, or added.
        failed: The call that was made to fail.
        asks: Whether it is about questions to the user.
        skill: The skill that is not loaded, or that is loaded and should not be.
        ends: Whether it is about how the run ended.
    """

    what: str
    trace: TraceSnapshot
    dropped: tuple[int, ...] = ()
    moved: tuple[int, ...] = ()
    changed: int | None = None
    added: int | None = None
    place: Place = ()
    how: str | None = None
    failed: int | None = None
    asks: bool = False
    skill: str | None = None
    ends: bool = False


@dataclass(frozen=True)
class Scene:
    """A trace that passes, and what is known of it under its contract.

    Attributes:
        activity: What its calls did.
        writes: Which of its calls write.
        asks: Which of its calls put a question to the user.
        seed: What the dice of every operator start from.
    """

    contract: Contract
    trace: TraceSnapshot
    activity: Activity
    writes: frozenset[int]
    asks: frozenset[int]
    seed: int = 0

    def dice(self, operator: str) -> random.Random:
        """Dice of an operator's own: another operator does not change what it draws."""
        return random.Random(f"{self.seed}/{operator}")  # noqa: S311 - for choosing, not for secrets

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls of the trace."""
        return self.trace.tool_calls


_ANY = Trajectory(ask_before_write=True)
"""Says nothing of what writes, so that names and profiles do."""


def set_scene(
    contract: Contract,
    trace: TraceSnapshot,
    profiles: Sequence[HarnessProfile] = (),
    seed: int = 0,
) -> Scene:
    """Look at a trace as its contract does.

    Raises:
        ValueError: If the contract names a harness profile that there is not.
    """
    evidence = Evidence(trace, profiles)
    activity = evidence.activity(contract.harness)
    writes = writing(contract.trajectory or _ANY, contract.harness)(evidence)
    asks = set(activity.questions)
    asks |= {i for m in trace.messages if (i := asking_call(trace, m)) is not None}
    return Scene(
        contract=contract,
        trace=trace,
        activity=activity,
        writes=frozenset(i for i in range(len(trace.tool_calls)) if i not in asks and writes(i)),
        asks=frozenset(asks),
        seed=seed,
    )


# Questions.


def drop_question(scene: Scene) -> Iterator[Mutant]:
    """Nobody is asked anything.

    Of several questions none is dropped alone: what is demanded is that there was one before the
    first write. A question that a call puts is missing alone where that call is.
    """
    trace = scene.trace
    if not scene.asks and not (scene.writes and (trace.questions or trace.asked_clarification)):
        return
    silent = replace(
        trace,
        messages=tuple(message for message in trace.messages if not message.question),
        asked_clarification=None if trace.asked_clarification is None else False,
    )
    silent = drop_calls(silent, sorted(scene.asks))
    yield Mutant("nobody was asked", silent, dropped=tuple(sorted(scene.asks)), asks=True)


def ask_late(scene: Scene) -> Iterator[Mutant]:
    """All questions that come before the first write come after it."""
    first = min(scene.writes, default=None)
    if first is None:
        return
    early = sorted(index for index in scene.asks if index < first)
    trace = scene.trace
    messages = tuple(
        replace(m, before_call=first + 1)
        if m.question and m.before_call <= first and asking_call(trace, m) is None
        else m
        for m in trace.messages
    )
    messages = tuple(sorted(messages, key=lambda message: message.before_call))
    order = [i for i in range(len(scene.calls)) if i not in early]
    order[order.index(first) + 1 : order.index(first) + 1] = early
    late = rearrange(replace(trace, messages=messages), order)
    yield Mutant(f"asked after {_named(scene, first)}", late, moved=tuple(early), asks=True)


# Skills and files.


def skip_skill(scene: Scene) -> Iterator[Mutant]:
    """Each skill is not loaded."""
    trace = scene.trace
    for load in scene.activity.skills:
        what = f"skill {load.name} not loaded"
        if _is_call(load.call, scene):
            less = drop_calls(trace, [load.call])
            yield Mutant(what, less, dropped=(load.call,), skill=load.name)
        else:
            rest = tuple(s for s in trace.skills if s != load)
            yield Mutant(what, replace(trace, skills=rest), skill=load.name)


def other_skill(scene: Scene) -> Iterator[Mutant]:
    """Another skill is loaded instead of each, and besides."""
    trace = scene.trace
    other = INVENTED_SKILL
    for load in scene.activity.skills:
        instead, besides = f"skill {other} instead of {load.name}", f"skill {other} besides"
        if not _is_call(load.call, scene):
            renamed = (replace(s, name=other) if s == load else s for s in trace.skills)
            yield Mutant(instead, replace(trace, skills=tuple(renamed)), skill=other)
            more = (*trace.skills, SkillLoad(name=other, status="ok"))
            yield Mutant(besides, replace(trace, skills=more), skill=other)
            continue
        index = load.call
        place = _place_of(scene.calls[index].arguments, load.name)
        if place is not None:
            arguments = put(scene.calls[index].arguments, place, other)
            changed = with_arguments(trace, index, arguments)
            yield Mutant(instead, changed, changed=index, place=place, how="value", skill=other)
            again = insert_copy(trace, index, index + 1, {load.name: other})
            yield Mutant(besides, again, added=index + 1, skill=other)


def skip_file_change(scene: Scene) -> Iterator[Mutant]:
    """Each change of a file is not made."""
    for event in _changes(scene):
        what = f"{event.operation} of {event.path} dropped"
        index = event.call
        if not _is_call(index, scene):
            rest = tuple(other for other in scene.trace.files if other != event)
            yield Mutant(what, replace(scene.trace, files=rest))
        else:
            yield Mutant(what, drop_calls(scene.trace, [index]), dropped=(index,))


def empty_file(scene: Scene) -> Iterator[Mutant]:
    """Each file that is written with some content is written without."""
    trace = scene.trace
    for event in _changes(scene):
        if not event.content:
            continue
        what = f"content of {event.path} emptied"
        place, index = None, event.call
        if _is_call(index, scene):
            place = _place_of(scene.calls[index].arguments, event.content)
        if place is not None and _is_call(index, scene):
            emptied = with_arguments(trace, index, put(scene.calls[index].arguments, place, ""))
            yield Mutant(what, emptied, changed=index, place=place, how="value")
        else:
            files = (replace(e, content="") if e == event else e for e in trace.files)
            yield Mutant(what, replace(trace, files=tuple(files)))


def _changes(scene: Scene) -> Iterator[FileEvent]:
    for event in scene.activity.files:
        if event.operation != "read" and event.status != "error":
            yield event


# Calls.


def drop_call(scene: Scene) -> Iterator[Mutant]:
    """Each call is missing."""
    for index in range(len(scene.calls)):
        what = f"{_named(scene, index)} dropped"
        yield Mutant(what, drop_calls(scene.trace, [index]), dropped=(index,))


def swap_calls(scene: Scene) -> Iterator[Mutant]:
    """Each two neighbours come the other way round.

    Two calls of one tool do not, unless both changed one file: nothing else depends on it.
    """
    calls = scene.calls
    changed: dict[int | None, set[str]] = {}
    for event in _changes(scene):
        changed.setdefault(event.call, set()).add(event.path)
    for index in range(len(calls) - 1):
        pair = (index, index + 1)
        both = changed.get(index, set()) & changed.get(index + 1, set())
        if calls[index].name == calls[index + 1].name and not both:
            continue
        order = [*range(index), index + 1, index, *range(index + 2, len(calls))]
        what = f"{calls[index + 1].name} before {_named(scene, index)}"
        yield Mutant(what, rearrange(scene.trace, order), moved=pair)


def repeat_call(scene: Scene) -> Iterator[Mutant]:
    """Each call is made twice."""
    for index in range(len(scene.calls)):
        what = f"{_named(scene, index)} repeated"
        yield Mutant(what, insert_copy(scene.trace, index, index + 1), added=index + 1)


def forbidden_call(scene: Scene) -> Iterator[Mutant]:
    """A call of each tool that the contract forbids is made."""
    tools = scene.contract.tools
    dice = scene.dice("forbidden_call")
    for glob in () if tools is None else tools.forbidden:
        name = example_of(glob)
        if name is not None:
            yield _inserted(scene, name, dice)


def write_call(scene: Scene) -> Iterator[Mutant]:
    """Something more is written: by each tool that wrote, by those that could, by an unknown."""
    dice = scene.dice("write_call")
    last = {scene.calls[index].name: index for index in sorted(scene.writes)}
    for name, index in last.items():
        again = _with_another_value(scene, index, dice)
        if again is not None:
            what = f"{name} made again with other arguments"
            yield Mutant(what, again, added=index + 1)
    globs = scene.contract.trajectory.writes if scene.contract.trajectory else ()
    for glob in globs:
        example = example_of(glob)
        if example is not None and not any(map(any_glob([glob]), last)):
            yield _inserted(scene, example, dice)
    yield _inserted(scene, INVENTED_WRITE, dice)


def read_call(scene: Scene) -> Iterator[Mutant]:
    """Something is read by a tool that nobody knows."""
    yield _inserted(scene, INVENTED_READ, scene.dice("read_call"))


def _with_another_value(scene: Scene, index: int, dice: random.Random) -> TraceSnapshot | None:
    """The trace with a call made again with one of its arguments changed."""
    call = scene.calls[index]
    for place, value in leaves(call.arguments):
        other = another_value(value, dice)
        if not place or other is _NONE:
            continue
        copied = insert_copy(scene.trace, index, index + 1)
        return with_arguments(copied, index + 1, put(call.arguments, place, other))
    return None


def _inserted(scene: Scene, name: str, dice: random.Random) -> Mutant:
    position = dice.randint(0, len(scene.calls))
    # A source that says how calls went says it of every call.
    known = any(call.status is not None for call in scene.calls)
    call = ToolCall(
        name=name,
        arguments={INVENTED_ARGUMENT: "x"},
        result="ok",
        status="ok" if known else None,
    )
    where = f"before call {position + 1}" if position < len(scene.calls) else "at the end"
    what = f"{name} inserted {where}"
    return Mutant(what, insert(scene.trace, position, call), added=position)


def fail_call(scene: Scene) -> Iterator[Mutant]:
    """Each call fails."""
    for index in range(len(scene.calls)):
        what = f"{_named(scene, index)} failed"
        yield Mutant(what, failed(scene.trace, index, FAILURE), failed=index)


# Arguments.


def change_argument(scene: Scene) -> Iterator[Mutant]:
    """Each value in the arguments of each call is another one of its type."""
    dice = scene.dice("change_argument")
    for index, call in enumerate(scene.calls):
        for place, value in leaves(call.arguments):
            other = another_value(value, dice)
            if place and other is not _NONE:
                what = f"{_argument(scene, index, place)}: {_contrast(value, other)}"
                arguments = put(call.arguments, place, other)
                yield _with(scene, what, index, arguments, place, "value")


def retype_argument(scene: Scene) -> Iterator[Mutant]:
    """Each argument of each call is of another type."""
    for index, call in enumerate(scene.calls):
        for key, value in _named_arguments(call):
            other = another_type(value)
            what = f"{_argument(scene, index, (key,))}: {_contrast(value, other)}"
            yield _with(scene, what, index, {**call.arguments, key: other}, (key,), "value")


def drop_argument(scene: Scene) -> Iterator[Mutant]:
    """Each argument of each call is missing."""
    for index, call in enumerate(scene.calls):
        for key, _ in _named_arguments(call):
            what = f"{_argument(scene, index, (key,))} removed"
            arguments = without(call.arguments, (key,))
            yield _with(scene, what, index, arguments, (key,), "removed")


def add_argument(scene: Scene) -> Iterator[Mutant]:
    """Each call has one argument more."""
    for index, call in enumerate(scene.calls):
        if isinstance(call.arguments, dict | None) and INVENTED_ARGUMENT not in (
            call.arguments or {}
        ):
            what = f"{_argument(scene, index, (INVENTED_ARGUMENT,))} added"
            arguments = {**(call.arguments or {}), INVENTED_ARGUMENT: "x"}
            yield _with(scene, what, index, arguments, (INVENTED_ARGUMENT,), "added")


def _with(scene: Scene, what: str, index: int, arguments: Any, place: Place, how: str) -> Mutant:
    changed = with_arguments(scene.trace, index, arguments)
    return Mutant(what, changed, changed=index, place=place, how=how)


def _named_arguments(call: ToolCall) -> list[tuple[str, Any]]:
    return list(call.arguments.items()) if isinstance(call.arguments, dict) else []


# The end.


def end_early(scene: Scene) -> Iterator[Mutant]:
    """The run stops after each number of calls, and says what it said when all was done."""
    for kept in range(len(scene.calls)):
        what = f"ended after {kept} of {len(scene.calls)} calls"
        dropped = tuple(range(kept, len(scene.calls)))
        yield Mutant(what, cut(scene.trace, kept), dropped=dropped)


def abnormal_end(scene: Scene) -> Iterator[Mutant]:
    """The run is stopped at a limit; it crashes."""
    trace, wanted = scene.trace, any_glob(scene.contract.ends_with or ())
    word = "max_steps" if not wanted("max_steps") else "aborted"
    stopped = replace(trace, ended=word, ended_normally=False)
    yield Mutant(f"ended by {word}", stopped, ends=True)
    yield Mutant("crashed", replace(stopped, ended="crash", error=FAILURE), ends=True)


def no_answer(scene: Scene) -> Iterator[Mutant]:
    """There are no last words."""
    if scene.trace.final_answer is not None:
        yield Mutant("no final answer", with_answer(scene.trace, None))


def other_answer(scene: Scene) -> Iterator[Mutant]:
    """The last words are about something else."""
    if scene.trace.final_answer is not None:
        what = f"final answer is '{ANOTHER_ANSWER}'"
        yield Mutant(what, with_answer(scene.trace, ANOTHER_ANSWER))


def withhold_text(scene: Scene) -> Iterator[Mutant]:
    """Each text that the contract wants said is not said."""
    final = scene.contract.final
    if final is None:
        return
    for text in final.contains:
        plain = plain_text(text)
        trace = scene.trace
        if trace.final_answer is not None:
            trace = with_answer(trace, _lacking(trace.final_answer, plain))
        if final.scope == "conversation":
            said = (replace(m, text=_lacking(m.text, plain)) for m in trace.messages)
            trace = replace(trace, messages=tuple(said))
        yield Mutant(f"{_shown(text)} not said", trace)


def _lacking(text: str, plain: str) -> str:
    """A text without the words that hold a part, as plain texts are compared."""
    words = text.split()
    while contains_text(plain_text(" ".join(words)), plain):
        spans = (
            (start, end)
            for size in range(1, len(words) + 1)
            for start in range(len(words) - size + 1)
            for end in [start + size]
            if contains_text(plain_text(" ".join(words[start:end])), plain)
        )
        # The whole text holds the part, so some words of it do.
        start, end = next(spans)
        del words[start:end]
    return " ".join(words)


def say_forbidden(scene: Scene) -> Iterator[Mutant]:
    """Each text that must not be said is said."""
    final, answer = scene.contract.final, scene.trace.final_answer
    for text in () if final is None else final.not_contains:
        said = f"{answer} {text}" if answer else text
        yield Mutant(f"{_shown(text)} said", with_answer(scene.trace, said))


def drop_field(scene: Scene) -> Iterator[Mutant]:
    """Each member of the final payload is missing."""
    payload = _payload(scene.trace)
    for place in _members(payload):
        what = f"final payload: {_dotted(place)} removed"
        yield _paid(scene, what, without(payload, place), place, "removed")


def retype_field(scene: Scene) -> Iterator[Mutant]:
    """Each member of the final payload is of another type."""
    payload = _payload(scene.trace)
    for place, value in _members(payload).items():
        other = another_type(value)
        what = f"final payload: {_dotted(place)}: {_contrast(value, other)}"
        yield _paid(scene, what, put(payload, place, other), place, "value")


def change_field(scene: Scene) -> Iterator[Mutant]:
    """Each value in the final payload is another one of its type."""
    payload = _payload(scene.trace)
    dice = scene.dice("change_field")
    for place, value in leaves(payload):
        other = another_value(value, dice)
        if place and other is not _NONE:
            what = f"final payload: {_dotted(place)}: {_contrast(value, other)}"
            yield _paid(scene, what, put(payload, place, other), place, "value")


def _paid(scene: Scene, what: str, payload: Any, place: Place, how: str) -> Mutant:
    answer = json.dumps(payload, ensure_ascii=False)
    return Mutant(what, with_answer(scene.trace, answer), place=place, how=how)


def _payload(trace: TraceSnapshot) -> Any:
    """The final answer as JSON, if it is an object or a list; else None."""
    try:
        payload = msgspec.json.decode(trace.final_answer or "")
    except (msgspec.DecodeError, RecursionError):
        return None
    return payload if isinstance(payload, dict | list) else None


def _members(payload: Any, place: Place = ()) -> dict[Place, Any]:
    """Every member of every object in a payload, outer ones first."""
    found: dict[Place, Any] = {}
    if isinstance(payload, dict):
        found = {(*place, key): value for key, value in payload.items()}
    items = payload.items() if isinstance(payload, dict) else enumerate(payload or ())
    for key, value in items:
        if isinstance(value, dict | list) and len(place) < DEEPEST:
            found.update(_members(value, (*place, key)))
    return found


# What is used.


def over_budget(scene: Scene) -> Iterator[Mutant]:
    """Each limit of the contract's budget is passed by a little."""
    budget, trace = scene.contract.budget, scene.trace
    if budget is None:
        return
    if budget.max_steps is not None:
        more = budget.max_steps + 1 - len(trace.generations)
        steps = (*trace.generations, *(Generation() for _ in range(more)))
        yield Mutant(f"{len(steps)} steps", replace(trace, generations=steps))
    if budget.max_tool_calls is not None:
        yield _many_calls(scene, budget.max_tool_calls + 1 - len(scene.calls), distinct=True)
    if budget.max_retries is not None:
        yield _many_calls(scene, budget.max_retries + 2, distinct=False)
    if budget.max_tokens is not None:
        tokens = Tokens(input=budget.max_tokens + 1, output=0)
        yield Mutant(f"{budget.max_tokens + 1} tokens", replace(trace, tokens=tokens))
    if budget.max_cost_usd is not None:
        cost = budget.max_cost_usd * 1.01 + 0.01
        yield Mutant(f"${cost:,.2f} spent", replace(trace, cost_usd=cost))
    if budget.max_duration_s is not None:
        ms = int(budget.max_duration_s * 1000) + 1000
        yield Mutant(f"{ms / 1000:,.0f} s taken", replace(trace, duration_ms=ms))


def _many_calls(scene: Scene, number: int, *, distinct: bool) -> Mutant:
    calls = [
        ToolCall(name=INVENTED_READ, arguments={INVENTED_ARGUMENT: i if distinct else 0}, result=1)
        for i in range(number)
    ]
    trace = scene.trace
    for call in calls:
        trace = insert(trace, len(scene.calls), call)
    kind = "different" if distinct else "equal"
    return Mutant(f"{number} {kind} calls of {INVENTED_READ} more", trace, added=len(scene.calls))


# All of them.


class Operator(NamedTuple):
    """A way of making a trace wrong: its name, what it does, and the function that does it."""

    name: str
    does: str
    make: Callable[[Scene], Iterator[Mutant]]


def _operator(name: str, make: Callable[[Scene], Iterator[Mutant]]) -> Operator:
    return Operator(name, (make.__doc__ or "").splitlines()[0], make)


OPERATORS: tuple[Operator, ...] = (
    # What has a meaning of its own comes first: a question or a skill that is not there is counted
    # as that, and not as one call less.
    _operator("drop the question", drop_question),
    _operator("ask after the write", ask_late),
    _operator("skip a skill", skip_skill),
    _operator("load another skill", other_skill),
    _operator("skip a file change", skip_file_change),
    _operator("empty a file", empty_file),
    _operator("drop a call", drop_call),
    _operator("swap neighbours", swap_calls),
    _operator("repeat a call", repeat_call),
    _operator("insert a forbidden call", forbidden_call),
    _operator("insert a write", write_call),
    _operator("insert a read", read_call),
    _operator("fail a call", fail_call),
    _operator("change a value", change_argument),
    _operator("change a type", retype_argument),
    _operator("drop an argument", drop_argument),
    _operator("add an argument", add_argument),
    _operator("end early", end_early),
    _operator("end abnormally", abnormal_end),
    _operator("say nothing", no_answer),
    _operator("say something else", other_answer),
    _operator("withhold a text", withhold_text),
    _operator("say what must not be", say_forbidden),
    _operator("drop a payload field", drop_field),
    _operator("retype a payload field", retype_field),
    _operator("change a payload value", change_field),
    _operator("exceed the budget", over_budget),
)
"""Every operator, in the order in which they are applied and reported."""


def mutants(scene: Scene) -> Iterator[tuple[Operator, Mutant]]:
    """Every mutant of a trace, each once: one that two operators make is the first one's."""
    seen = {_identity(scene.trace)}
    for operator in OPERATORS:
        for mutant in operator.make(scene):
            identity = _identity(mutant.trace)
            if identity not in seen:
                seen.add(identity)
                yield operator, mutant


def _identity(trace: TraceSnapshot) -> str:
    return content_hash(json.dumps(msgspec.to_builtins(trace), sort_keys=True))


# Values.

_NONE = object()
"""That there is no other value."""


def another_value(value: Any, dice: random.Random) -> Any:
    """Another value of the same type and shape; `_NONE` where there is none."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1 if value + 1 != value else 0
    if isinstance(value, str):
        return _another_text(value, dice)
    if isinstance(value, list):
        return [INVENTED_ARGUMENT]
    return {INVENTED_ARGUMENT: "x"} if isinstance(value, dict) else _NONE


def _another_text(text: str, dice: random.Random) -> str:
    places = [index for index, char in enumerate(text) if char.isascii() and char.isalnum()]
    if not places:
        return f"{text}x"
    place = dice.choice(places)
    return text[:place] + _next(text[place]) + text[place + 1 :]


def _next(char: str) -> str:
    for first, last in ("09", "az", "AZ"):
        if char == last:
            return first
    return chr(ord(char) + 1)


def another_type(value: Any) -> Any:
    """A value of another type that says as much the same as can be."""
    if isinstance(value, str):
        return int(value) if re.fullmatch(r"[1-9][0-9]{0,8}", value) else [value]
    if isinstance(value, bool | int | float):
        return json.dumps(value)
    if isinstance(value, dict):
        return [value]
    return {"items": value} if isinstance(value, list) else "null"


def example_of(glob: str) -> str | None:
    """A name that fits a glob; None if none is found."""
    name = re.sub(r"\[(.)[^]]*\]", r"\1", glob)
    name = re.sub(r"\*", "something", name).replace("?", "x")
    return name if any_glob([glob])(name) else None


# Words.


def _is_call(index: int | None, scene: Scene) -> TypeGuard[int]:
    return index is not None and 0 <= index < len(scene.calls)


def _place_of(value: Any, text: str) -> Place | None:
    """Where a text stands in JSON data; None if it does not."""
    return next((place for place, leaf in leaves(value) if leaf == text and place), None)


def _named(scene: Scene, index: int) -> str:
    return name_call(scene.calls[index], index)


def _argument(scene: Scene, index: int, place: Place) -> str:
    return f"{_named(scene, index)} {_dotted(place)}"


def _dotted(place: Place) -> str:
    """A place as people write it: `amount.currency`, `paths[0]`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    return "".join(parts).removeprefix(".")


def _contrast(old: Any, new: Any) -> str:
    """A value and another, of long texts the part where they differ."""
    if isinstance(old, str) and isinstance(new, str) and len(old) > _SHOWN:
        at = next(
            (i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0
        )
        start = max(0, at - _SHOWN // 4)
        old, new = (_around(text, start, start + _SHOWN // 2) for text in (old, new))
    return f"{_shown(old)} → {_shown(new)}"


def _around(text: str, start: int, end: int) -> str:
    return ("…" if start else "") + text[start:end] + ("…" if end < len(text) else "")


def _shown(value: Any) -> str:
    text = show(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
