"""Chat clients of the Microsoft Agent Framework that say what a script says, without a network.

They are built from the framework's own layers, so that tool loop, middleware and telemetry are the
real ones. Import only where the framework is installed.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from agent_framework import (
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    UsageDetails,
)
from agent_framework.observability import ChatTelemetryLayer


@dataclass(frozen=True, kw_only=True)
class Reply:
    """What the model answers to one call."""

    text: str = "ok"
    input: int | None = 30
    output: int | None = 5
    cached: int | None = None
    reasoning: int | None = None
    total: bool = True
    """Whether the client adds input and output up."""
    finish: Any = "stop"
    tool: str | None = None
    """A tool that the model calls instead of answering."""
    arguments: str = "{}"
    error: str | None = None
    """The call fails; a stream does so after it has said everything but its finish reason."""

    @property
    def usage(self) -> UsageDetails | None:
        counts = {
            "input_token_count": self.input,
            "output_token_count": self.output,
            "cache_read_input_token_count": self.cached,
            "reasoning_output_token_count": self.reasoning,
        }
        known: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
        if not known:
            return None
        if self.total:
            known["total_token_count"] = (self.input or 0) + (self.output or 0)
        return cast("UsageDetails", known)


SILENT: Mapping[str, Any] = {"input": None, "output": None}
"""Keywords of a reply whose provider reports no usage."""


@dataclass
class Script:
    name: str
    replies: list[Reply]
    calls: int = 0
    streamed: list[bool] = field(default_factory=list)

    def next(self, *, stream: bool) -> tuple[str, Reply]:
        assert self.calls < len(self.replies), f"{self.name}: more calls than the script has"
        self.calls += 1
        self.streamed.append(stream)
        return f"{self.name}-{self.calls}", self.replies[self.calls - 1]


class BareClient(BaseChatClient[Any]):
    """The model alone: no tool loop, no middleware, no telemetry."""

    OTEL_PROVIDER_NAME = "scripted"

    script: "Script"

    def _inner_get_response(
        self,
        *,
        messages: Sequence[Message],
        stream: bool,
        options: Mapping[str, Any],
        **kwargs: Any,
    ) -> Any:
        assert not kwargs.get("middleware"), "middleware must not reach a client that runs none"
        id_, reply = self.script.next(stream=stream)
        if stream:
            return self._build_response_stream(self._updates(id_, reply))
        return self._response(id_, reply)

    async def _response(self, id_: str, reply: Reply) -> ChatResponse[Any]:
        if reply.error is not None:
            raise RuntimeError(reply.error)
        return ChatResponse(
            messages=[Message("assistant", [_content(id_, reply)])],
            response_id=id_,
            model="scripted-1",
            usage_details=reply.usage,
            finish_reason=reply.finish,
        )

    async def _updates(self, id_: str, reply: Reply) -> AsyncIterator[ChatResponseUpdate]:
        def update(*contents: Content, finish: Any = None) -> ChatResponseUpdate:
            return ChatResponseUpdate(
                contents=list(contents),
                role="assistant",
                response_id=id_,
                model="scripted-1",
                finish_reason=finish,
            )

        yield update(_content(id_, reply))
        if reply.usage is not None:
            yield update(Content.from_usage(reply.usage))
        if reply.error is not None:
            raise RuntimeError(reply.error)
        yield update(finish=reply.finish)


class ScriptedClient(
    FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], ChatTelemetryLayer[Any], BareClient
):
    """A client with all the layers that the framework's own clients have."""


def scripted(name: str, *replies: Reply, kind: type[BareClient] = ScriptedClient) -> Any:
    """A client that gives `replies` one after another, with response ids `name`-1, `name`-2, …"""
    client = kind()
    client.script = Script(name, list(replies))
    return client


def _content(id_: str, reply: Reply) -> Content:
    if reply.tool is not None:
        return Content.from_function_call(
            call_id=f"call-{id_}", name=reply.tool, arguments=reply.arguments
        )
    return Content.from_text(reply.text)
