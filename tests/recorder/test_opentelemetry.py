"""The span processor, fed by the OpenTelemetry SDK with spans of the two conventions."""

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip(
    "opentelemetry.sdk",
    reason="THE OPENTELEMETRY SDK IS MISSING, SO RECORDING SPANS IS NOT TESTED: install the extra "
    "`otel`",
)

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import Status, StatusCode, Tracer, set_span_in_context

from benchmark_assets.recorder import TraceRecorder
from benchmark_assets.recorder.opentelemetry import RecordingSpanProcessor


class Spans:
    """Makes spans as frameworks do: what they are is known at their start, or only at their end."""

    def __init__(self, recorder: TraceRecorder | None, *, late: bool, **settings: Any) -> None:
        self.processor = RecordingSpanProcessor(recorder, **settings)
        provider = TracerProvider()
        provider.add_span_processor(self.processor)
        self._provider = provider
        self._late = late

    def tracer(self, scope: str = "framework") -> Tracer:
        return self._provider.get_tracer(scope)

    @contextmanager
    def span(self, name: str, scope: str = "framework", **attributes: Any) -> Iterator[Any]:
        named = {key.replace("__", "."): value for key, value in attributes.items()}
        early = {} if self._late else named
        with self.tracer(scope).start_as_current_span(name, attributes=early) as span:
            try:
                yield span
            finally:
                span.set_attributes(named)

    def tool(self, name: str, arguments: Any = None, result: Any = None, **more: Any) -> Any:
        given = {"gen_ai__tool__call__arguments": arguments, "gen_ai__tool__call__result": result}
        return self.span(
            f"execute_tool {name}",
            gen_ai__operation__name="execute_tool",
            gen_ai__tool__name=name,
            **{key: json.dumps(value) for key, value in given.items() if value is not None},
            **more,
        )

    def agent(self, answer: str | None = None, asked: Any = None, **more: Any) -> Any:
        said = {"gen_ai__output__messages": None if answer is None else [turn("assistant", answer)]}
        given = {"gen_ai__input__messages": asked}
        return self.span(
            "invoke_agent a",
            gen_ai__operation__name="invoke_agent",
            **{k: json.dumps(v) for k, v in (said | given).items() if v is not None},
            **more,
        )

    def chat(self, messages: list[Any] | None = None, **more: Any) -> Any:
        given = {} if messages is None else {"gen_ai__input__messages": json.dumps(messages)}
        return self.span("chat m", gen_ai__operation__name="chat", **given, **more)


def turn(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "parts": [{"type": "text", "content": text}]}


@pytest.fixture
def rec() -> TraceRecorder:
    return TraceRecorder()


@pytest.fixture(params=[False, True], ids=["known at the start", "known at the end"])
def spans(rec: TraceRecorder, request: pytest.FixtureRequest) -> Spans:
    return Spans(rec, late=request.param, question_tools=["ask_*"])


def names(rec: TraceRecorder) -> list[str]:
    return [tool["name"] for tool in rec.dump()["tools"]]


def test_an_agents_run(rec: TraceRecorder, spans: Spans) -> None:
    with spans.agent('{"status": "ok"}'):
        with spans.chat():
            pass
        with spans.tool("get_order", {"order_id": 1}, {"id": 1}):
            pass
        with spans.tool("ask_user", {"choices": [1], "question": "Which card?"}, "blue"):
            pass
        with spans.tool("refund", {"order_id": 1, "method": "card"}, "done"):
            pass
    trace = rec.dump()
    assert trace["tools"] == [
        {"name": "get_order", "arguments": {"order_id": 1}, "result": {"id": 1}},
        {
            "name": "refund",
            "arguments": {"order_id": 1, "method": "card"},
            # A text is a text, though it was written as JSON.
            "result": '"done"',
        },
    ]
    assert trace["questions"] == [{"text": "Which card?", "before_tool": 1}]
    assert trace["final"] == {"status": "ok"}


def test_openinference(rec: TraceRecorder, spans: Spans) -> None:
    def span(kind: str, **more: Any) -> Any:
        return spans.span(kind, openinference__span__kind=kind, **more)

    final = {"messages": [{"type": "human", "content": "hi"}, {"type": "ai", "content": "Done."}]}
    with (
        span("CHAIN", output__value=json.dumps(final)),
        span("LLM", llm__model_name="m", llm__token_count__prompt=7),
        span("TOOL", tool__name="look_up", input__value="{'order_id': 1}", output__value="found"),
    ):
        pass
    trace = rec.dump()
    assert trace["tools"] == [{"name": "look_up", "arguments": {"order_id": 1}, "result": "found"}]
    assert trace["final"] == "Done."
    assert (trace["model"], trace["tokens"]) == ("m", {"input": 7})


def langchain(kind: str, content: str) -> dict[str, Any]:
    """A message as LangChain writes it down."""
    return {"type": kind, "data": {"content": content, "type": kind, "tool_calls": []}}


def test_langgraph(rec: TraceRecorder, spans: Spans) -> None:
    """Spans with the attributes that LangChain's instrumentation has been seen to give them."""

    def span(name: str, kind: str, **more: Any) -> Any:
        return spans.span(name, openinference__span__kind=kind, **more)

    def state(*messages: Any) -> str:
        return json.dumps({"messages": messages})

    refund, which = langchain("human", "Refund."), langchain("ai", "Which card?")
    result = {"type": "tool", "data": {"content": '{"id": 1}', "type": "tool", "tool_call_id": "c"}}
    look_up = {"input__value": '{"order_id": 1}', "output__value": json.dumps(result)}
    with (
        spans.span("POST /chat", scope="web"),
        span("LangGraph", "CHAIN", output__value=state(refund, which)),
        span("agent", "AGENT", output__value=state(which)),
        span("get_order", "TOOL", tool__name="get_order", **look_up),
    ):
        pass
    numbered = {
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Refund.",
        "llm.input_messages.1.message.role": "assistant",
        "llm.input_messages.1.message.contents.0.message_content.type": "text",
        "llm.input_messages.1.message.contents.0.message_content.text": "Which ",
        "llm.input_messages.1.message.contents.1.message_content.text": "card?",
        "llm.input_messages.2.message.role": "user",
        "llm.input_messages.2.message.content": "The blue one.",
    }
    done = langchain("ai", "Done.")
    with (
        span("LangGraph", "CHAIN", output__value=state(refund, which, done)),
        span("M", "LLM", **numbered),
    ):
        pass
    trace = rec.dump()
    assert trace["tools"] == [
        {"name": "get_order", "arguments": {"order_id": 1}, "result": {"id": 1}}
    ]
    assert trace["questions"] == [{"text": "Which card?", "before_tool": 1}]
    assert trace["final"] == "Done."


def test_order_is_that_of_the_starts(rec: TraceRecorder, spans: Spans) -> None:
    first = spans.tool("first")
    second = spans.tool("second")
    first.__enter__()
    second.__enter__()
    second.__exit__(None, None, None)
    first.__exit__(None, None, None)
    assert names(rec) == ["first", "second"]


def test_tools_side_by_side(rec: TraceRecorder, spans: Spans) -> None:
    async def call(number: int) -> None:
        with spans.tool(f"t{number}", {"n": number}):
            await asyncio.sleep((5 - number) / 200)

    async def main() -> None:
        with spans.agent("ok"):
            await asyncio.gather(*(call(number) for number in range(5)))

    asyncio.run(main())
    assert names(rec) == ["t0", "t1", "t2", "t3", "t4"]
    assert [tool["arguments"]["n"] for tool in rec.dump()["tools"]] == [0, 1, 2, 3, 4]


def test_failures(rec: TraceRecorder, spans: Spans) -> None:
    with pytest.raises(ValueError, match="boom"), spans.tool("raises"):
        raise ValueError("boom")
    with spans.tool("says so", error__type="timeout"):
        pass
    with spans.tool("status") as span:
        span.set_status(Status(StatusCode.ERROR, "declined"))
    with spans.tool("bare") as span:
        span.set_status(Status(StatusCode.ERROR))
    assert [tool["error"] for tool in rec.dump()["tools"]] == [
        "ValueError: boom",
        "timeout",
        "declined",
        "failed",
    ]


def test_a_call_instrumented_twice_is_one(rec: TraceRecorder, spans: Spans) -> None:
    identity = {"gen_ai__tool__call__id": "c1"}
    with spans.tool("pay", {"n": 1}, **identity), spans.tool("pay", result=[5], **identity):
        pass
    with spans.tool("pay", {"n": 2}), spans.tool("pay", **identity):
        pass
    found = rec.dump()["tools"]
    assert [tool["arguments"] for tool in found] == [{"n": 1}, {"n": 2}]
    assert found[0]["result"] == [5]


def test_a_span_that_failed_early_has_its_name(rec: TraceRecorder, spans: Spans) -> None:
    with spans.span("execute_tool pay") as span:
        span.set_status(Status(StatusCode.ERROR, "no answer"))
    with spans.span("chat"):
        pass
    assert rec.dump()["tools"] == [{"name": "pay", "arguments": {}, "error": "no answer"}]


def test_a_tool_that_calls_itself_is_two_calls(rec: TraceRecorder, spans: Spans) -> None:
    with (
        spans.tool("walk", {"n": 1}, gen_ai__tool__call__id="c1"),
        spans.tool("other", gen_ai__tool__call__id="c1"),
        spans.tool("walk", {"n": 2}, gen_ai__tool__call__id="c2"),
    ):
        pass
    assert names(rec) == ["walk", "other", "walk"]


def test_the_outermost_agent_has_the_last_word(rec: TraceRecorder, spans: Spans) -> None:
    with spans.agent("of the whole"), spans.agent("of a part"):
        pass
    assert rec.dump()["final"] == "of the whole"
    with spans.agent(), spans.agent("of a part"):
        pass
    # The whole gave out nothing, and a part of it is not the whole.
    assert rec.dump()["final"] is None


def test_an_agent_that_fails_has_no_final_payload(rec: TraceRecorder, spans: Spans) -> None:
    with spans.agent("first"):
        pass
    with pytest.raises(ValueError, match="x"), spans.agent("second"):
        raise ValueError("x")
    assert rec.dump()["final"] is None


def test_spans_around_the_agent_do_not_matter(rec: TraceRecorder, spans: Spans) -> None:
    with spans.span("POST /chat", scope="web"):
        with spans.agent("Which card?"):
            pass
        assert rec.dump()["final"] == "Which card?"
        with spans.agent("Done.", [turn("assistant", "Which card?"), turn("user", "blue")]):
            pass
    assert rec.dump()["questions"] == [{"text": "Which card?", "before_tool": 0}]


# Questions that are only seen by being answered.


def ask_and_answer(spans: Spans, history: list[Any]) -> None:
    with spans.agent("Which card?"), spans.tool("get_order"):
        pass
    with spans.agent("Done."):
        with spans.chat(history):
            pass
        with spans.tool("refund"):
            pass


def test_what_the_user_answers_was_a_question(rec: TraceRecorder, spans: Spans) -> None:
    history = [turn("user", "Refund."), turn("assistant", "Which card?"), turn("user", "blue")]
    ask_and_answer(spans, [turn("system", "x"), *history])
    trace = rec.dump()
    assert trace["questions"] == [{"text": "Which card?", "before_tool": 1}]
    assert [tool["name"] for tool in trace["tools"]] == ["get_order", "refund"]
    assert trace["final"] == "Done."


NOT_ANSWERED = {
    "nobody answers": [turn("user", "Refund."), turn("assistant", "Which card?")],
    "another text": [turn("assistant", "Which one?"), turn("user", "blue")],
    "a tool's result answers": [
        turn("assistant", "Which card?"),
        {"role": "user", "parts": [{"type": "tool_call_response", "id": "1", "result": "x"}]},
    ],
    "the turn calls a tool": [
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Which card?"},
                {"type": "tool_call", "id": "1", "name": "x", "arguments": {}},
            ],
        },
        turn("user", "blue"),
    ],
    "the user repeats it": [turn("user", "Which card?"), turn("user", "blue")],
    "not known": [],
}


@pytest.mark.parametrize("history", NOT_ANSWERED.values(), ids=NOT_ANSWERED)
def test_what_nobody_answers_was_none(rec: TraceRecorder, spans: Spans, history: list[Any]) -> None:
    ask_and_answer(spans, history)
    assert rec.dump()["questions"] == []
    assert rec.dump()["asked_clarification"] is False


def test_agents_that_answer_each_other_ask_no_user(rec: TraceRecorder, spans: Spans) -> None:
    with spans.agent("team"):
        with spans.agent("Which card?"):
            pass
        with spans.agent("x"), spans.chat([turn("assistant", "Which card?"), turn("user", "b")]):
            pass
    assert rec.dump()["questions"] == []


# Tokens.


def test_tokens_are_in_disjoint_buckets(rec: TraceRecorder, spans: Spans) -> None:
    usage: dict[str, Any] = {
        "gen_ai__usage__input_tokens": 100,
        "gen_ai__usage__cache_read__input_tokens": 64,
        "gen_ai__usage__output_tokens": 10,
        "gen_ai__response__model": "m-1",
    }
    with spans.agent("x", gen_ai__usage__input_tokens=999):
        with spans.chat(**usage):
            pass
        # The client's span inside the framework's is the same call.
        with (
            spans.chat(**usage),
            spans.span("c", "client", gen_ai__operation__name="chat", **usage),
        ):
            pass
    trace = rec.dump()
    assert trace["model"] == "m-1"
    assert trace["tokens"] == {"input": 72, "output": 20, "cache_read": 128}


# Several recorders, and none.


def test_each_run_has_its_own_recorder() -> None:
    spans = Spans(None, late=False)
    first, second = TraceRecorder(), TraceRecorder()

    async def run(name: str, recorder: TraceRecorder) -> None:
        with spans.processor.into(recorder), spans.agent(name):
            for step in range(3):
                with spans.tool(f"{name}{step}"):
                    await asyncio.sleep(0)

    async def main() -> None:
        await asyncio.gather(run("a", first), run("b", second))

    asyncio.run(main())
    with spans.tool("nobody's"):
        pass
    assert names(first) == ["a0", "a1", "a2"]
    assert names(second) == ["b0", "b1", "b2"]
    assert (first.dump()["final"], second.dump()["final"]) == ("a", "b")


def test_a_thread_without_context_follows_its_parent() -> None:
    spans = Spans(None, late=False)
    rec = TraceRecorder()

    def work(parent: Any) -> None:
        span = spans.tracer().start_span(
            "execute_tool t",
            context=set_span_in_context(parent),
            attributes={"gen_ai.tool.name": "t"},
        )
        span.end()

    with spans.processor.into(rec), spans.agent("x") as parent, ThreadPoolExecutor(1) as pool:
        pool.submit(work, parent).result()
    assert names(rec) == ["t"]


def test_a_tool_that_never_ends_is_on_record(rec: TraceRecorder) -> None:
    spans = Spans(rec, late=False)
    hanging = spans.tool("hang", {"n": 1})
    hanging.__enter__()
    assert rec.dump()["tools"] == [{"name": "hang", "arguments": {"n": 1}}]
    hanging.__exit__(None, None, None)


def test_nothing_is_recorded_after_shutdown(rec: TraceRecorder, spans: Spans) -> None:
    spans.processor.shutdown()
    assert spans.processor.force_flush()
    with spans.tool("late"):
        pass
    assert names(rec) == []


def test_what_cannot_be_recorded_does_not_break_the_agent(
    rec: TraceRecorder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spans = Spans(rec, late=False)

    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(rec, "place", fail)
    with spans.tool("t"):
        pass
    assert "not recorded" in caplog.text


def test_redaction_reaches_spans(rec: TraceRecorder) -> None:
    hiding = TraceRecorder(comparable={"refund": ["order_id"]})
    spans = Spans(hiding, late=True, question_tools=["ask"])
    with spans.agent('{"status": "geheim"}'):
        with spans.tool("ask", {"question": "geheim?"}, "geheim"):
            pass
        with spans.tool("refund", {"order_id": 1, "card": "geheim"}, {"x": "geheim"}):
            pass
    with pytest.raises(ValueError, match="geheim"), spans.tool("refund", {"order_id": 2}):
        raise ValueError("geheim")
    trace = hiding.dump()
    assert "geheim" not in json.dumps(trace)
    assert [tool["arguments"]["order_id"] for tool in trace["tools"]] == [1, 2]
