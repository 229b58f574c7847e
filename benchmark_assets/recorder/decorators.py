"""Plain Python functions as tools of a recorder.

Belongs here: wrapping a function so that its calls are recorded, and naming its arguments. Does
not belong here: the record itself.

A wrapped function has the name, signature and annotations of its own, so that frameworks which
make a schema of them make the same one.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, cast

if TYPE_CHECKING:
    from benchmark_assets.recorder.record import Call, TraceRecorder

P = ParamSpec("P")
R = TypeVar("R")

Begin = Callable[[tuple[Any, ...], Mapping[str, Any]], "Call | None"]
"""Records that a function is called; returns the call whose end is to be told, if any."""


def recorded_tool(
    recorder: TraceRecorder, function: Callable[P, R], *, name: str | None, defaults: bool
) -> Callable[P, R]:
    """See `TraceRecorder.tool`."""
    _refuse(function, "tool")
    named = name or _name(function)
    signature = _signature(function)

    def begin(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
        given = _by_name(signature, function, args, kwargs, defaults=defaults)
        return recorder.start_tool(named, given)

    return _wrapped(function, begin)


def recorded_question(
    recorder: TraceRecorder, function: Callable[P, R], *, text: str | None
) -> Callable[P, R]:
    """See `TraceRecorder.question`."""
    _refuse(function, "question")
    signature = _signature(function)
    parameters = [] if signature is None else _own(signature, function)
    if signature is not None and (text not in parameters if text else not parameters):
        wanted = f"argument named {text}" if text else "argument"
        raise TypeError(
            f"{_name(function)} takes no {wanted}, so its question is not known; name the argument "
            "that holds it: question(text=…)"
        )

    def begin(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        given = _by_name(signature, function, args, kwargs, defaults=True)
        asked = given.get(text or (parameters[0] if parameters else "args"))
        recorder.on_question(asked if isinstance(asked, str) else str(asked))

    return _wrapped(function, begin)


def _wrapped(function: Callable[P, R], begin: Begin) -> Callable[P, R]:
    """The function, told of to `begin` before each call, and its end to what that returns."""
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def wait(*args: P.args, **kwargs: P.kwargs) -> Any:
            call = begin(args, kwargs)
            return await _end_of(
                cast("Awaitable[Any]", _called(function, call, args, kwargs)), call
            )

        return cast("Callable[P, R]", wait)

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> Any:
        call = begin(args, kwargs)
        result = _called(function, call, args, kwargs)
        if inspect.isawaitable(result):  # Such as a partial or a lambda around a coroutine.
            return _end_of(result, call)
        if call is not None:
            call.succeed(result)
        return result

    return cast("Callable[P, R]", run)


def _called(
    function: Callable[..., Any],
    call: Call | None,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Any:
    try:
        return function(*args, **kwargs)
    except BaseException as error:
        if call is not None:
            call.fail(error)
        raise


async def _end_of(waited: Awaitable[Any], call: Call | None) -> Any:
    try:
        result = await waited
    except BaseException as error:  # A task that is cancelled did not get its result either.
        if call is not None:
            call.fail(error)
        raise
    if call is not None:
        call.succeed(result)
    return result


def _refuse(function: Any, what: str) -> None:
    if not callable(function):
        cure = (
            "record a question that is asked already with on_question"
            if what == "question"
            else "record a call that was made already with on_tool"
        )
        raise TypeError(f"{function!r} is not callable; {cure}")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(
            f"{_name(function)} is a generator, which has no one result; wrap a function that "
            "collects what it yields, or tell start_tool() and its call yourself"
        )


def _name(function: Any) -> str:
    inner = function.func if isinstance(function, functools.partial) else function
    return str(getattr(inner, "__name__", None) or type(inner).__name__)


def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    """None where Python does not know it: some functions written in C."""
    try:
        return inspect.signature(function)
    except (TypeError, ValueError):
        return None


def _own(signature: inspect.Signature, function: Callable[..., Any]) -> list[str]:
    """The parameters' names without `self`, which is no argument of a tool."""
    names = list(signature.parameters)
    is_method = "." in getattr(function, "__qualname__", "").rpartition("<locals>.")[2]
    return names[1:] if names[:1] in (["self"], ["cls"]) and is_method else names


def _by_name(
    signature: inspect.Signature | None,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    *,
    defaults: bool,
) -> dict[str, Any]:
    """Arguments by the names of their parameters; those of `**kwargs` by their own.

    A call that does not fit the signature is about to fail; it is recorded as it was made.
    """
    try:
        if signature is None:
            raise TypeError
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return {**({"args": list(args)} if args else {}), **kwargs}
    if defaults:
        bound.apply_defaults()
    given = dict(bound.arguments)
    for name in signature.parameters.keys() - set(_own(signature, function)):
        given.pop(name, None)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD and name in given:
            more = given.pop(name)
            # What is named like an argument that can only be passed by position stays apart.
            given |= {name: more} if more.keys() & given.keys() else more
    return given
