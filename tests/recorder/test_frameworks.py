"""Real frameworks with scripted models: what their own spans come to in a recorder.

Each agent does the same: looks an order up, asks which card, is answered, refunds, gives a payload.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip(
    "opentelemetry.sdk",
    reason="THE OPENTELEMETRY SDK IS MISSING, SO RECORDING SPANS IS NOT TESTED: install the extra "
    "`otel`",
)

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from benchmark_assets.recorder import TraceRecorder
from benchmark_assets.recorder.opentelemetry import RecordingSpanProcessor

FINAL = {"status": "ok", "refund_id": "r-1"}
EXPECTED = {
    "tools": [
        {"name": "get_order", "arguments": {"order_id": 1842}, "result": {"id": 1842}},
        {
            "name": "refund_payment",
            "arguments": {"order_id": 1842, "method": "card"},
            "error": "LookupError: no such card",
        },
        {
            "name": "refund_payment",
            "arguments": {"order_id": 1842, "method": "blue"},
            "result": "r-1",
        },
    ],
    "asked_clarification": True,
    "final": FINAL,
    "questions": [{"text": "Which card?", "before_tool": 1}],
}


def get_order(order_id: int) -> dict[str, int]:
    """Look an order up."""
    return {"id": order_id}


def refund_payment(order_id: int, method: str) -> str:
    """Refund an order."""
    if method == "card":
        raise LookupError("no such card")
    return "r-1"


@pytest.fixture(scope="module")
def processor() -> Iterator[RecordingSpanProcessor]:
    """OpenTelemetry has one provider a process; each run has a recorder of its own."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    processor = RecordingSpanProcessor()
    provider.add_span_processor(processor)
    yield processor
    processor.shutdown()


def steps(recorder: TraceRecorder) -> dict[str, Any]:
    found = recorder.dump()
    return {key: found[key] for key in EXPECTED}


def test_microsoft_agent_framework(processor: RecordingSpanProcessor) -> None:
    pytest.importorskip(
        "agent_framework",
        reason="THE FRAMEWORK IS MISSING, SO ITS SPANS ARE NOT TESTED: install the extra "
        "`agent-framework`",
    )
    from agent_framework import Agent, tool
    from agent_framework.observability import enable_instrumentation

    from tests.adapters.scripted_chat import Reply, scripted

    def call(name: str, **arguments: Any) -> Reply:
        return Reply(tool=name, arguments=json.dumps(arguments))

    enable_instrumentation(enable_sensitive_data=True)
    client = scripted(
        "refunds",
        call("get_order", order_id=1842),
        Reply(text="Which card?"),
        call("refund_payment", order_id=1842, method="card"),
        call("refund_payment", order_id=1842, method="blue"),
        Reply(text=json.dumps(FINAL)),
    )
    agent = Agent(client=client, name="refunds", tools=[tool(get_order), tool(refund_payment)])

    async def main() -> None:
        session = agent.create_session()
        await agent.run("Refund order 1842.", session=session)
        await agent.run("The blue one.", session=session)

    with processor.into(TraceRecorder()) as recorder:
        asyncio.run(main())
    assert steps(recorder) == EXPECTED
    found = recorder.dump()
    assert found["model"] == "scripted-1"
    # Five calls of the model at 30 and 5.
    assert found["tokens"] == {"input": 150, "output": 25}


def test_pydantic_ai(processor: RecordingSpanProcessor) -> None:
    pytest.importorskip(
        "pydantic_ai",
        reason="PYDANTIC-AI IS MISSING, SO ITS SPANS ARE NOT TESTED: install pydantic-ai-slim",
    )
    from pydantic import BaseModel
    from pydantic_ai import Agent, ModelRetry
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    class Refund(BaseModel):
        status: str
        refund_id: str

    script: Iterator[Any] = iter(
        [
            ToolCallPart("get_order", {"order_id": 1842}),
            TextPart("Which card?"),
            ToolCallPart("refund_payment", {"order_id": 1842, "method": "card"}),
            ToolCallPart("refund_payment", {"order_id": 1842, "method": "blue"}),
            ToolCallPart("final_result", FINAL),
        ]
    )

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=[next(script)])

    agent: Agent[None, Any] = Agent(FunctionModel(model), output_type=[str, Refund])
    agent.instrument = True
    agent.tool_plain(get_order)

    @agent.tool_plain(name="refund_payment", retries=2)
    def refund(order_id: int, method: str) -> str:
        try:
            return refund_payment(order_id, method)
        except LookupError as error:
            raise ModelRetry(str(error)) from error

    async def main() -> None:
        first = await agent.run("Refund order 1842.")
        await agent.run("The blue one.", message_history=first.all_messages())

    with processor.into(TraceRecorder()) as recorder:
        asyncio.run(main())
    expected = json.loads(json.dumps(EXPECTED))
    found = steps(recorder)
    # By its own word it is a request to try again.
    error = found["tools"][1].pop("error")
    assert "no such card" in error
    del expected["tools"][1]["error"]
    assert found == expected
    assert recorder.dump()["model"].startswith("function:")
    assert recorder.dump()["tokens"].keys() == {"input", "output"}
