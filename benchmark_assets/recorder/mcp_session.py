"""Sessions of the Model Context Protocol whose calls are recorded.

Belongs here: what a session is asked and answers, as calls of tools and questions. Does not belong
here: anything that needs the package `mcp` itself: sessions are taken as they come, of its first
or its second version, so that recording costs no import.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast

from benchmark_assets.recorder.record import Call, TraceRecorder

_ORIGINAL = "_benchmark_assets_original"


S = TypeVar("S")
Elicit = TypeVar("Elicit", bound=Callable[..., Awaitable[Any]])


def record_mcp(session: S, recorder: TraceRecorder) -> S:
    """Record the tools that are called through a client session; returns the same session.

    Whatever has the `call_tool` of `ClientSession` can be recorded: `Client`, `ClientSessionGroup`.
    A result with `isError` is an error, and so is whatever the call raises, which goes on its way.
    A session that is recorded already is recorded by `recorder` from now on. A call that the server
    interrupts to ask for input, and that is made again with the answer, is one call.
    """
    # Unwrapped first, so that no call is recorded twice.
    client: Any = session
    original = getattr(client.call_tool, _ORIGINAL, client.call_tool)
    waiting: dict[str, Call] = {}

    @functools.wraps(original)
    async def call_tool(
        name: str, arguments: Mapping[str, Any] | None = None, *args: Any, **kwargs: Any
    ) -> Any:
        resumed = kwargs.get("input_responses") or kwargs.get("request_state")
        call = waiting.pop(name, None) if resumed else None
        if call is None:
            call = recorder.start_tool(name, arguments)
        try:
            result = await original(name, arguments, *args, **kwargs)
        except BaseException as error:
            call.fail(error)
            raise
        if getattr(result, "result_type", None) == "input_required":
            waiting[name] = call
        elif _either(result, "is_error", "isError"):
            call.fail(_said(result) or "the tool reports an error")
        else:
            call.succeed(_value(result))
        return result

    setattr(call_tool, _ORIGINAL, original)
    client.call_tool = call_tool
    return session


def record_elicitation(callback: Elicit, recorder: TraceRecorder) -> Elicit:
    """Record what servers ask the user: wrap the `elicitation_callback` of a session with it."""

    @functools.wraps(callback)
    async def ask(context: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.on_question(str(getattr(params, "message", params)))
        return await callback(context, params, *args, **kwargs)

    return cast("Elicit", ask)


def _either(result: Any, *names: str) -> Any:
    """A field by the first of its names that there is; the package has changed its spelling."""
    values = (getattr(result, name, None) for name in names)
    return next((value for value in values if value is not None), None)


def _value(result: Any) -> Any:
    """What a tool gave back: its structured content, else its text, else all of its parts."""
    structured = _either(result, "structured_content", "structuredContent")
    if structured is not None:
        return structured
    said = _said(result)
    return result if said is None else said


def _said(result: Any) -> str | None:
    """The text of a result that has nothing but text."""
    parts = getattr(result, "content", None) or []
    texts = [text for part in parts if isinstance(text := getattr(part, "text", None), str)]
    return "\n".join(texts) if texts and len(texts) == len(parts) else None
