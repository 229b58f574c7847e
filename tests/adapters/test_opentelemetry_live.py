"""Spans that the Microsoft Agent Framework records itself, against what live capture saw.

The models follow scripts; the spans come from the framework and the OpenTelemetry SDK.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

WITHOUT = (
    "THE FRAMEWORK OR THE OPENTELEMETRY SDK IS MISSING, SO ITS SPANS ARE NOT TESTED: install the "
    "extra `agent-framework`, agent-framework-orchestrations and opentelemetry-sdk"
)
pytest.importorskip("agent_framework", reason=WITHOUT)
pytest.importorskip("agent_framework_orchestrations", reason=WITHOUT)
pytest.importorskip("opentelemetry.sdk", reason=WITHOUT)

from agent_framework import (  # noqa: E402 - only where it is installed
    Agent,
    Workflow,
    WorkflowBuilder,
    WorkflowExecutor,
    tool,
)
from agent_framework.observability import enable_instrumentation  # noqa: E402
from agent_framework.orchestrations import ConcurrentBuilder, SequentialBuilder  # noqa: E402
from opentelemetry import trace  # noqa: E402
from opentelemetry.sdk.trace import TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import (  # noqa: E402
    InMemorySpanExporter,
)

from benchmark_assets.adapters.agent_framework import watch  # noqa: E402
from benchmark_assets.model.fidelity import WorkflowRecord  # noqa: E402
from benchmark_assets.model.trace import TraceSnapshot  # noqa: E402
from benchmark_assets.scoring.trace_fidelity import strict  # noqa: E402
from tests.adapters.samples import lines, parse  # noqa: E402
from tests.adapters.scripted_chat import Reply, scripted  # noqa: E402


@tool
def lookup() -> str:
    """Look something up."""
    return "found"


def agent(name: str, *replies: Reply, **kwargs: Any) -> Agent[Any]:
    return Agent(client=scripted(name, *replies), name=name, **kwargs)


@pytest.fixture(scope="module")
def exporter() -> Iterator[InMemorySpanExporter]:
    """The process's spans; OpenTelemetry has one provider a process."""
    exporter = InMemorySpanExporter()
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
    processor = SimpleSpanProcessor(exporter)
    provider.add_span_processor(processor)
    enable_instrumentation(enable_sensitive_data=True)
    yield exporter
    exporter.shutdown()


def both(
    workflow: Workflow, exporter: InMemorySpanExporter
) -> tuple[WorkflowRecord, TraceSnapshot]:
    """One run, as it was listened to and as its spans are read."""
    exporter.clear()
    with watch(workflow) as watched:

        async def follow() -> None:
            async for _ in watched.run("hi"):
                pass

        asyncio.run(follow())
    spans = exporter.get_finished_spans()
    run = [span for span in spans if span.name.startswith("workflow.run")]
    ids = {span.context.trace_id for span in run if span.context}
    written = [json.loads(span.to_json()) for span in spans if span.context.trace_id in ids]
    (found,) = parse(lines(*written))
    return watched.record, found


def truth(record: WorkflowRecord | None) -> list[tuple[Any, ...]]:
    assert record is not None
    rows = []
    for turn in record.turns:
        usage = turn.usage
        assert usage is not None
        counts = (usage.input, usage.output, usage.total, usage.cached, usage.reasoning)
        rows.append((turn.executor, turn.finish_reason, counts))
    return sorted(rows, key=lambda row: (row[0], row[2][0] or 0))


TOOL_CALL = Reply(input=100, output=10, cached=64, reasoning=4, tool="lookup", finish="tool_calls")
AFTER_TOOL = Reply(input=150, output=20, cached=96, reasoning=7, text="It is there.")


def test_a_tool_loop_has_the_same_truth(exporter: InMemorySpanExporter) -> None:
    a = agent("a", TOOL_CALL, AFTER_TOOL, tools=[lookup])
    b = agent("b", Reply(finish="length", text="Good"))
    live, read = both(SequentialBuilder(participants=[a, b]).build(), exporter)
    assert truth(read.workflow_record) == truth(live)
    assert truth(live) == [
        ("a", "tool_calls", (100, 10, 110, 64, 4)),
        ("a", "stop", (150, 20, 170, 96, 7)),
        ("b", "length", (30, 5, 35, None, None)),
    ]
    record = read.workflow_record
    assert record is not None
    # 110 + 170, which the framework adds up from those very spans.
    assert [(e.executor, e.usage and e.usage.total, e.derived) for e in record.ledger] == [
        ("a", 280, True),
        ("b", 35, True),
    ]
    judged = strict.reconcile(record)
    assert [item.verdict for item in judged.executors] == ["DerivedLedger", "DerivedLedger"]
    assert judged.outcome == "PENDING"
    assert [(c.name, c.result, c.agent, c.status) for c in read.tool_calls] == [
        ("lookup", "found", "a", "ok")
    ]
    assert read.agents == ("a", "b")
    assert read.prompt == "hi"
    assert read.final_answer == "Good"
    # 30 + (100 - 64) + (150 - 96) in, 5 + (10 - 4) + (20 - 7) out.
    assert read.tokens.input == 120
    assert read.tokens.output == 24
    assert (read.tokens.cache_read, read.tokens.reasoning) == (160, 11)


def test_agents_side_by_side_are_told_apart(exporter: InMemorySpanExporter) -> None:
    workflow = ConcurrentBuilder(
        participants=[agent("a", Reply(input=40)), agent("b", Reply(input=50))]
    ).build()
    live, read = both(workflow, exporter)
    assert truth(read.workflow_record) == truth(live)
    assert [row[0] for row in truth(live)] == ["a", "b"]


def test_executors_of_a_nested_workflow_have_a_path(exporter: InMemorySpanExporter) -> None:
    inner = SequentialBuilder(participants=[agent("s1", Reply()), agent("s2", Reply(input=60))])
    sub = WorkflowExecutor(inner.build(), id="sub")
    _, read = both(WorkflowBuilder(start_executor=sub).build(), exporter)
    record = read.workflow_record
    assert record is not None
    assert [(t.executor, t.usage and t.usage.total) for t in record.turns] == [
        ("sub/s1", 35),
        ("sub/s2", 65),
    ]
    assert [e.executor for e in record.ledger] == ["sub/s1", "sub/s2"]
