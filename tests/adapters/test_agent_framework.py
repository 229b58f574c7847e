"""Listening to real workflows of the framework; the models behind them follow scripts.

All expected numbers are added up by hand from the scripts.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

WITHOUT = (
    "THE FRAMEWORK IS MISSING, SO LIVE CAPTURE IS NOT TESTED: install the extra "
    "`agent-framework` and agent-framework-orchestrations"
)
pytest.importorskip("agent_framework", reason=WITHOUT)
pytest.importorskip("agent_framework_orchestrations", reason=WITHOUT)

from agent_framework import (  # noqa: E402 - only where it is installed
    Agent,
    AgentContext,
    AgentExecutor,
    AgentExecutorResponse,
    AgentMiddleware,
    AgentResponse,
    AgentResponseUpdate,
    BaseAgent,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Executor,
    Message,
    MiddlewareTermination,
    RawAgent,
    ResponseStream,
    UsageDetails,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    tool,
)
from agent_framework.orchestrations import (  # noqa: E402
    ConcurrentBuilder,
    GroupChatBuilder,
    HandoffBuilder,
    MagenticBuilder,
    SequentialBuilder,
)

from benchmark_assets.adapters.agent_framework import (  # noqa: E402
    NOT_FOLLOWED,
    NOT_READ,
    NOT_RUN,
    Watched,
    watch,
)
from benchmark_assets.adapters.agent_framework_reach import reach_of  # noqa: E402
from benchmark_assets.adapters.agent_framework_usage import Reported  # noqa: E402
from benchmark_assets.model.fidelity import Usage, WorkflowRecord  # noqa: E402
from tests.adapters.scripted_chat import (  # noqa: E402
    SILENT,
    BareClient,
    Reply,
    ScriptedClient,
    scripted,
)

type_ = tuple[int | None, str | None]
Sides = dict[str, list[type_]]


@tool
def lookup() -> str:
    """Look something up."""
    return "found"


def agent(name: str, *replies: Reply, **kwargs: Any) -> Agent[Any]:
    return Agent(client=scripted(name, *replies), name=name, **kwargs)


async def follow(watched: Watched, message: Any = "hi", **options: Any) -> list[Any]:
    return [event async for event in watched.run(message, **options)]


def recorded(workflow: Workflow, message: Any = "hi", **options: Any) -> WorkflowRecord:
    with watch(workflow) as watched:
        asyncio.run(follow(watched, message, **options))
    return watched.record


def _sides(rows: Any) -> Sides:
    found: Sides = {}
    for row in rows:
        total = None if row.usage is None else row.usage.total
        found.setdefault(row.executor, []).append((total, row.finish_reason))
    return found


def ledger(record: WorkflowRecord) -> Sides:
    """Tokens and finish reason of each entry that reports something, by executor."""
    return _sides(e for e in record.ledger if e.usage is not None or e.finish_reason is not None)


def truth(record: WorkflowRecord) -> Sides:
    return _sides(record.turns)


TOOL_CALL = Reply(input=100, output=10, cached=64, reasoning=4, tool="lookup", finish="tool_calls")
AFTER_TOOL = Reply(input=150, output=20, cached=96, reasoning=7)


class TestShapesOfWorkflows:
    def test_a_tool_loop_is_one_entry_and_a_turn_for_each_call(self) -> None:
        a = agent("a", TOOL_CALL, AFTER_TOOL, tools=[lookup])
        record = recorded(SequentialBuilder(participants=[a, agent("b", Reply())]).build())

        assert ledger(record) == {"a": [(280, "stop")], "b": [(35, "stop")]}
        assert truth(record) == {"a": [(110, "tool_calls"), (170, "stop")], "b": [(35, "stop")]}
        assert record.ledger[1].usage == Usage(
            input=250, output=30, total=280, cached=160, reasoning=11
        )
        assert record.turns[1].usage == Usage(
            input=150, output=20, total=170, cached=96, reasoning=7
        )
        assert [turn.response_id for turn in record.turns] == ["a-1", "a-2", "b-1"]
        assert {turn.model for turn in record.turns} == {"scripted-1"}
        assert record.executors == ("input-conversation", "a", "b") == record.traced
        assert record.problem is None

    def test_turns_pair_with_their_invocation(self) -> None:
        record = recorded(_writer_and_reviewer())
        assert [(e.executor, e.invocation) for e in record.ledger if e.executor == "writer"] == [
            ("writer", f"writer#{n}") for n in (1, 2, 3)
        ]
        assert [t.invocation for t in record.turns if t.executor == "writer"] == [
            "writer#1",
            "writer#2",
            "writer#3",
        ]

    def test_a_loop_has_an_entry_for_each_round(self) -> None:
        record = recorded(_writer_and_reviewer())
        rounds: list[type_] = [(35, "stop"), (40, "content_filter"), (59, "stop")]
        assert ledger(record)["writer"] == rounds == truth(record)["writer"]
        assert ledger(record)["reviewer"] == [(35, "stop")] * 3 == truth(record)["reviewer"]

    def test_concurrent_agents_are_told_apart_and_the_aggregator_called_no_model(self) -> None:
        a = agent("a", TOOL_CALL, AFTER_TOOL, tools=[lookup])
        b, c = agent("b", Reply(output=6)), agent("c", Reply(output=7))
        record = recorded(ConcurrentBuilder(participants=[a, b, c]).build())

        assert ledger(record) == {"a": [(280, "stop")], "b": [(36, "stop")], "c": [(37, "stop")]}
        assert truth(record) == {
            "a": [(110, "tool_calls"), (170, "stop")],
            "b": [(36, "stop")],
            "c": [(37, "stop")],
        }
        assert "aggregator" in cast("tuple[str, ...]", record.traced)
        assert [e.usage for e in record.ledger if e.executor == "aggregator"] == [None]

    def test_a_group_chats_orchestrator_reports_nothing_of_its_calls(self) -> None:
        boss = agent("boss", _choose("b", 7), _choose("a", 8), _choose(None, 9))
        workflow = GroupChatBuilder(
            participants=[agent("a", Reply()), agent("b", Reply())], orchestrator_agent=boss
        ).build()
        record = recorded(workflow)

        # 70 + 7, 80 + 8 and 90 + 9 tokens.
        assert truth(record)["boss"] == [(77, "stop"), (88, "stop"), (99, "stop")]
        assert ledger(record) == {"a": [(35, "stop")], "b": [(35, "stop")]}
        entries = [entry for entry in record.ledger if entry.executor == "boss"]
        assert entries
        assert all(entry.usage is None for entry in entries)

    def test_a_magentic_managers_calls_are_in_no_event(self) -> None:
        record = recorded(_magentic())
        assert truth(record) == {"magentic_orchestrator": [(66, "stop")] * 5, "w": [(35, "stop")]}
        assert ledger(record) == {"w": [(35, "stop")]}

    def test_handoffs_give_out_updates_alone(self) -> None:
        record = recorded(_handoff(autonomous=False))
        assert ledger(record) == {"triage": [(36, "tool_calls")], "expert": [(35, "stop")]}
        assert truth(record) == {"triage": [(36, "tool_calls")], "expert": [(35, "stop")]}

    def test_an_agent_run_again_in_one_invocation_reports_all_its_runs(self) -> None:
        record = recorded(_handoff(autonomous=True))
        # A tool loop of 110 + 170, then, on its own, another of 110 + 170, then a handoff.
        assert truth(record)["triage"] == [
            (110, "tool_calls"),
            (170, "stop"),
            (110, "tool_calls"),
            (170, "stop"),
            (36, "tool_calls"),
        ]
        assert ledger(record)["triage"] == [(596, "tool_calls")]

    def test_a_nested_workflow_reports_its_last_output_only(self) -> None:
        inner = SequentialBuilder(
            participants=[agent("s1", Reply()), agent("s2", Reply(input=60, output=6))]
        ).build()
        record = recorded(_alone(WorkflowExecutor(inner, id="sub")))
        assert ledger(record) == {"sub": [(66, "stop")]}
        assert truth(record) == {"sub": [(35, "stop"), (66, "stop")]}
        assert record.executors == ("sub",) == record.traced

    def test_a_nested_workflows_answer_is_its_own_whoever_made_it_inside(self) -> None:
        @executor(id="tail")
        async def tail(
            message: AgentExecutorResponse, ctx: WorkflowContext[Any, AgentExecutorResponse]
        ) -> None:
            await ctx.yield_output(message)

        s1 = AgentExecutor(agent("s1", Reply()))
        inner = WorkflowBuilder(start_executor=s1, output_from=[tail]).add_edge(s1, tail).build()
        record = recorded(_alone(WorkflowExecutor(inner, id="sub")))
        assert ledger(record) == {"sub": [(35, "stop")]} == truth(record)

    def test_an_agent_that_two_executors_share_is_told_apart_by_the_running_one(self) -> None:
        shared = agent("shared", Reply(), Reply(input=31, output=6, finish="length"))
        x1, x2 = AgentExecutor(shared, id="x1"), AgentExecutor(shared, id="x2")
        record = recorded(WorkflowBuilder(start_executor=x1).add_edge(x1, x2).build())
        assert ledger(record) == {"x1": [(35, "stop")], "x2": [(37, "length")]} == truth(record)

    def test_a_client_that_two_agents_share_is_told_apart_by_the_running_one(self) -> None:
        client = scripted("shared", Reply(), Reply(input=31, output=6, finish="length"))
        a, b = Agent(client=client, name="a"), Agent(client=client, name="b")
        record = recorded(SequentialBuilder(participants=[a, b]).build())
        assert ledger(record) == {"a": [(35, "stop")], "b": [(37, "length")]} == truth(record)

    def test_calls_of_an_agent_used_as_a_tool_belong_to_its_user(self) -> None:
        record = recorded(_with_inner_agent())
        assert ledger(record) == {"outer": [(33, "stop")]}
        assert truth(record) == {"outer": [(11, "tool_calls"), (440, "length"), (22, "stop")]}

    def test_a_workflow_can_be_the_agent_of_an_executor(self) -> None:
        inner = SequentialBuilder(participants=[agent("s1", Reply()), agent("s2", Reply())]).build()
        outer = AgentExecutor(inner.as_agent("crew"), id="crew")
        record = recorded(_alone(outer))
        assert truth(record) == {"crew": [(35, "stop"), (35, "stop")]}
        assert record.traced == ("crew",)


def _choose(speaker: str | None, tokens: int) -> Reply:
    return Reply(text=_choice(speaker), input=tokens * 10, output=tokens)


def _choice(speaker: str | None) -> str:
    name = "null" if speaker is None else f'"{speaker}"'
    done = "true" if speaker is None else "false"
    return (
        f'{{"terminate": {done}, "reason": "r", "next_speaker": {name}, "final_message": "done"}}'
    )


def _writer_and_reviewer() -> Workflow:
    writer = AgentExecutor(
        agent(
            "writer",
            Reply(),
            Reply(output=10, finish="content_filter"),
            Reply(input=50, output=9),
        )
    )
    reviewer = AgentExecutor(
        agent("reviewer", Reply(text="again"), Reply(text="again"), Reply(text="good"))
    )

    def wants_more(response: AgentExecutorResponse) -> bool:
        return response.agent_response.text == "again"

    return (
        WorkflowBuilder(start_executor=writer)
        .add_edge(writer, reviewer)
        .add_edge(reviewer, writer, condition=wants_more)
        .build()
    )


def _magentic() -> Workflow:
    def progress(*, done: bool) -> str:
        flags = f'"is_request_satisfied": {{"reason": "r", "answer": {str(done).lower()}}}'
        return (
            f"{{{flags}, "
            '"is_in_loop": {"reason": "r", "answer": false}, '
            '"is_progress_being_made": {"reason": "r", "answer": true}, '
            '"next_speaker": {"reason": "r", "answer": "w"}, '
            '"instruction_or_question": {"reason": "r", "answer": "go"}}'
        )

    # Facts, plan, progress, (the worker,) progress, final answer.
    texts = ["facts", "plan", progress(done=False), progress(done=True), "final"]
    manager = agent("manager", *(Reply(text=text, input=60, output=6) for text in texts))
    return MagenticBuilder(participants=[agent("w", Reply())], manager_agent=manager).build()


def _handoff(*, autonomous: bool) -> Workflow:
    calls = [Reply(input=33, output=3, tool="handoff_to_expert", finish="tool_calls")]
    if autonomous:
        calls = [TOOL_CALL, AFTER_TOOL, TOOL_CALL, AFTER_TOOL, *calls]
    both = {"require_per_service_call_history_persistence": True}
    triage = agent("triage", *calls, tools=[lookup], **both)
    expert = agent("expert", Reply(), **both)
    builder = HandoffBuilder(participants=[triage, expert]).with_start_agent(triage)
    if autonomous:
        builder = builder.with_autonomous_mode(agents=[triage])
    return builder.build()


def _with_inner_agent(*, client: Any = None) -> Workflow:
    inner = Agent(
        client=client or scripted("inner", Reply(input=400, output=40, finish="length")),
        name="inner",
    )
    outer = agent(
        "outer",
        Reply(input=10, output=1, tool="inner", arguments='{"task": "t"}', finish="tool_calls"),
        Reply(input=20, output=2),
        tools=[inner.as_tool()],
    )
    return _alone(AgentExecutor(outer))


def _alone(node: Executor) -> Workflow:
    return WorkflowBuilder(start_executor=node).build()


def _in_one_piece(*participants: Any) -> Workflow:
    """The participants in a nested workflow, which the framework never streams."""
    inner = SequentialBuilder(participants=list(participants)).build()
    return _alone(WorkflowExecutor(inner, id="sub"))


class Retry(ChatMiddleware):
    """Asks again if the first answer was filtered, and says nothing of it."""

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        first = context.result
        answer = await first.get_final_response() if isinstance(first, ResponseStream) else first
        if answer is not None and answer.finish_reason == "content_filter":
            await call_next()


class Rewrite(ChatMiddleware):
    """Takes usage and finish reason out of each answer, in place."""

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        def emptied(update: ChatResponseUpdate) -> ChatResponseUpdate:
            update.contents[:] = [part for part in update.contents if part.type != "usage"]
            update.finish_reason = None
            return update

        context.stream_transform_hooks.append(emptied)
        await call_next()
        if isinstance(context.result, ChatResponse):
            context.result.usage_details = None
            context.result.finish_reason = None


class Halve(AgentMiddleware):
    """Reports half of what was used, and that all went well."""

    async def process(
        self, context: AgentContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        def halved(response: AgentResponse[Any]) -> AgentResponse[Any]:
            used = cast("dict[str, int]", response.usage_details)
            halves = {name: count // 2 for name, count in used.items()}
            response.usage_details = cast("UsageDetails", halves)
            response.finish_reason = "stop"
            return response

        await call_next()
        if isinstance(context.result, AgentResponse):
            halved(context.result)
        else:
            context.stream_result_hooks.append(halved)


class Nameless(AgentMiddleware):
    """Takes away the id by which a response and its copies are known."""

    async def process(
        self, context: AgentContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        await call_next()
        cast("AgentResponse[Any]", context.result).response_id = None


CUT = Reply(input=100, output=10, finish="length")


@pytest.mark.parametrize("streams", [True, False], ids=["streamed", "in one piece"])
class TestWhatTheLedgerHides:
    def record(self, streams: bool, one: Agent[Any]) -> tuple[list[type_], list[type_]]:
        record = recorded(_alone(AgentExecutor(one)) if streams else _in_one_piece(one))
        script = cast("ScriptedClient", one.client).script
        assert script.streamed
        assert set(script.streamed) == {streams}
        (name,) = record.executors
        return ledger(record).get(name, []), truth(record)[name]

    def test_a_retry_inside_middleware(self, streams: bool) -> None:
        replies = [Reply(input=80, output=10, finish="content_filter"), Reply(input=90, output=9)]
        reported, used = self.record(streams, agent("a", *replies, middleware=[Retry()]))
        assert used == [(90, "content_filter"), (99, "stop")]
        assert reported == [(99, "stop")]

    def test_middleware_that_empties_the_answer(self, streams: bool) -> None:
        reported, used = self.record(streams, agent("a", CUT, middleware=[Rewrite()]))
        assert used == [(110, "length")]
        assert reported == []

    def test_middleware_that_falsifies_the_ledger(self, streams: bool) -> None:
        reported, used = self.record(streams, agent("a", CUT, middleware=[Halve()]))
        assert used == [(110, "length")]
        assert reported == [(55, "stop")]

    def test_a_filter_in_the_middle_of_a_tool_loop(self, streams: bool) -> None:
        replies = [
            Reply(input=10, output=1, tool="lookup", finish="content_filter"),
            Reply(input=20, output=2),
        ]
        reported, used = self.record(streams, agent("a", *replies, tools=[lookup]))
        assert used == [(11, "content_filter"), (22, "stop")]
        assert reported == [(33, "stop")]

    def test_totals_that_the_tool_loop_writes_into_the_last_answer(self, streams: bool) -> None:
        reported, used = self.record(streams, agent("a", TOOL_CALL, AFTER_TOOL, tools=[lookup]))
        assert used == [(110, "tool_calls"), (170, "stop")]
        assert reported == [(280, "stop")]


class TestUnknownIsNotZero:
    def test_a_client_that_reports_no_usage(self) -> None:
        record = recorded(_alone(AgentExecutor(agent("a", Reply(**SILENT)))))
        assert ledger(record) == {"a": [(None, "stop")]} == truth(record)
        assert record.traced == ("a",)

    def test_a_client_that_reports_no_finish_reason(self) -> None:
        record = recorded(_alone(AgentExecutor(agent("a", Reply(finish=None)))))
        assert ledger(record) == {"a": [(35, None)]} == truth(record)

    def test_a_total_that_is_not_reported_is_the_sum_of_what_is(self) -> None:
        reply = Reply(total=False, cached=7, finish="end_turn")
        record = recorded(_alone(AgentExecutor(agent("a", reply))))
        assert record.turns[0].usage == Usage(input=30, output=5, total=35, cached=7)
        assert record.ledger[0].usage == Usage(input=30, output=5, total=35, cached=7)
        assert record.turns[0].finish_reason == "end_turn" == record.ledger[0].finish_reason

    def test_zero_tokens_are_zero(self) -> None:
        record = recorded(_alone(AgentExecutor(agent("a", Reply(input=0, output=0)))))
        assert ledger(record) == {"a": [(0, "stop")]} == truth(record)

    def test_counts_that_are_no_whole_numbers_are_unknown(self) -> None:
        reported = Reported()
        details: Any = {"input_token_count": True, "output_token_count": 2.5, "x": 3}
        reported.take(ChatResponse(messages=[], usage_details=details))
        assert reported.usage is None

    def test_a_client_without_middleware_is_untraced(self) -> None:
        bare = Agent(client=scripted("a", Reply(), kind=BareClient), name="a")
        with watch(SequentialBuilder(participants=[bare, agent("b", Reply())]).build()) as watched:
            asyncio.run(follow(watched))
        record = watched.record
        assert ledger(record) == {"a": [(35, "stop")], "b": [(35, "stop")]}
        assert truth(record) == {"b": [(35, "stop")]}
        assert record.traced == ("input-conversation", "b")
        assert watched.untraced == {"a": ("its client BareClient runs no chat middleware",)}

    def test_one_unseen_client_below_makes_the_executor_untraced(self) -> None:
        bare = scripted("inner", Reply(input=400, output=40), kind=BareClient)
        record = recorded(_with_inner_agent(client=bare))
        assert truth(record) == {"outer": [(11, "tool_calls"), (22, "stop")]}
        assert record.traced == ()

    def test_an_agent_without_a_chat_client_is_untraced(self) -> None:
        record = recorded(_alone(AgentExecutor(Remote(name="remote"), id="remote")))
        assert ledger(record) == {"remote": [(7, "stop")]}
        assert record.turns == ()
        assert record.traced == ()

    def test_an_agent_that_wraps_a_seen_one_is_traced(self) -> None:
        wrapper = Remote(name="w")
        wrapper.inner = agent("inner", Reply())  # type: ignore[attr-defined]
        assert watch(_alone(AgentExecutor(wrapper, id="w"))).record.traced == ("w",)

    def test_usage_of_unknown_origin_makes_an_executor_untraced(self) -> None:
        made = []

        @executor(id="maker")
        async def maker(message: str, ctx: WorkflowContext[Any, AgentResponse[Any]]) -> None:
            # Made while it runs, by a name that nothing refers to before.
            made.append(Agent(client=scripted("late", Reply()), name="late"))
            await ctx.yield_output(await made[0].run(message))

        record = recorded(_alone(maker))
        assert ledger(record) == {"maker": [(35, "stop")]}
        assert record.turns == ()
        assert record.traced == ()


class Remote(BaseAgent):
    """An agent that is no chat client's: a service behind a wire, say."""

    def run(self, messages: Any = None, *, stream: bool = False, **kwargs: Any) -> Any:
        assert stream

        async def updates() -> Any:
            yield AgentResponseUpdate(
                contents=[
                    Content.from_text("ok"),
                    Content.from_usage(UsageDetails(total_token_count=7)),
                ],
                role="assistant",
                finish_reason="stop",
            )

        return ResponseStream(updates(), finalizer=AgentResponse.from_updates)


class TestFailures:
    def test_a_stream_that_dies_midway_keeps_what_it_reported(self) -> None:
        dies = Reply(input=80, output=4, error="connection lost")
        record, error = _raised(SequentialBuilder(participants=[agent("a", dies)]).build())
        assert "connection lost" in str(error)
        (turn,) = record.turns
        assert turn.error == "RuntimeError: connection lost"
        assert turn.usage == Usage(input=80, output=4, total=84)
        assert (turn.finish_reason, turn.response_id) == (None, "a-1")

    def test_a_stream_that_dies_before_it_reported_has_no_usage(self) -> None:
        dies = Reply(**SILENT, error="connection lost")
        record, _ = _raised(_alone(AgentExecutor(agent("a", dies))))
        assert [(t.usage, t.error) for t in record.turns] == [
            (None, "RuntimeError: connection lost")
        ]

    def test_what_was_recorded_before_a_run_raised_stays(self) -> None:
        a, b = agent("a", Reply()), agent("b", Reply(error="boom"))
        record, _ = _raised(SequentialBuilder(participants=[a, b]).build())
        assert ledger(record) == {"a": [(35, "stop")]}
        (failed,) = (entry for entry in record.ledger if entry.executor == "b")
        assert failed.error is not None
        assert failed.error.startswith("RuntimeError")
        assert (failed.invocation, failed.usage) == ("b#1", None)
        assert [(turn.executor, turn.error is None) for turn in record.turns] == [
            ("a", True),
            ("b", False),
        ]
        assert record.problem is None

    def test_a_call_that_fails_in_one_piece_is_a_turn(self) -> None:
        record, _ = _raised(_in_one_piece(agent("a", Reply(error="boom"))))
        assert [(t.executor, t.usage, t.error) for t in record.turns] == [
            ("sub", None, "RuntimeError: boom")
        ]

    def test_calls_that_are_cancelled_with_a_failed_neighbour_are_turns(self) -> None:
        begun = asyncio.Event()

        class Waits(ChatMiddleware):
            async def process(
                self, context: ChatContext, call_next: Callable[[], Awaitable[None]]
            ) -> None:
                await begun.wait()
                await call_next()

        class Hangs(BareClient):
            async def _response(self, id_: str, reply: Reply) -> ChatResponse[Any]:
                begun.set()
                await asyncio.sleep(60)
                return await super()._response(id_, reply)

        class HangingClient(ChatMiddlewareLayer[Any], Hangs):
            pass

        @executor(id="start")
        async def start(message: str, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message(message)

        hanging = Agent(client=scripted("slow", Reply(), kind=HangingClient), name="slow")
        inner = SequentialBuilder(participants=[hanging]).build()
        slow = WorkflowExecutor(inner, id="slow")
        dies = AgentExecutor(agent("dies", Reply(error="boom"), middleware=[Waits()]))
        workflow = WorkflowBuilder(start_executor=start).add_fan_out_edges(start, [slow, dies])
        record, _ = _raised(workflow.build())
        errors = {turn.executor: turn.error for turn in record.turns}
        assert errors == {"slow": "CancelledError", "dies": "RuntimeError: boom"}

    def test_a_stream_that_nobody_reads_to_its_end_is_no_answer(self) -> None:
        class Impatient(AgentMiddleware):
            async def process(
                self, context: AgentContext, call_next: Callable[[], Awaitable[None]]
            ) -> None:
                await call_next()
                stream = cast("ResponseStream[Any, Any]", context.result)
                async for _ in stream:
                    break
                await stream.close()
                context.result = ResponseStream(
                    _nothing(), finalizer=lambda _: AgentResponse(messages=[])
                )

        async def _nothing() -> Any:
            return
            yield

        record = recorded(_alone(AgentExecutor(agent("a", Reply(), middleware=[Impatient()]))))
        assert [(turn.usage, turn.error) for turn in record.turns] == [(None, NOT_READ)]

    def test_a_run_that_is_not_followed_to_its_end_cannot_be_compared(self) -> None:
        async def first_event(watched: Watched) -> None:
            run = watched.run("hi")
            async for _ in run:
                break
            await run.aclose()

        with watch(_alone(AgentExecutor(agent("a", Reply())))) as watched:
            asyncio.run(first_event(watched))
        assert watched.record.problem == NOT_FOLLOWED

    def test_a_workflow_that_was_not_run_cannot_be_compared(self) -> None:
        record = watch(_alone(AgentExecutor(agent("a", Reply())))).record
        assert (record.problem, record.ledger, record.turns) == (NOT_RUN, (), ())

    def test_what_is_not_built_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"not a SequentialBuilder; call \.build\(\)"):
            watch(cast("Workflow", SequentialBuilder(participants=[agent("a")])))


def _raised(workflow: Workflow) -> tuple[WorkflowRecord, BaseException]:
    watched = watch(workflow)
    with pytest.raises(Exception, match=r".") as caught:
        asyncio.run(follow(watched))
    return watched.record, caught.value


GLOBAL = agent("global", Reply(input=9, output=1))


class Private(Executor):
    """An executor that has an agent of its own and hides its usage."""

    def __init__(self, inner: Any) -> None:
        super().__init__(id="private")
        self.parts = {"helpers": [inner]}

    @handler
    async def shorten(
        self, message: AgentExecutorResponse, ctx: WorkflowContext[AgentExecutorResponse]
    ) -> None:
        helper = self.parts["helpers"][0]
        answer = await helper.run(message.agent_response.text)
        await ctx.send_message(message.with_text(answer.text))


class Direct(Executor):
    """An executor that calls a client without an agent."""

    def __init__(self, client: Any) -> None:
        super().__init__(id="direct")
        self.client = client

    @handler
    async def ask(self, message: str, ctx: WorkflowContext[Any, str]) -> None:
        answer = await self.client.get_response([Message("user", [message])])
        await ctx.yield_output(answer.text)


class TestFindingWhatCallsModels:
    @pytest.mark.parametrize("kind", [Agent, RawAgent])
    def test_an_agent_inside_an_executor_of_ones_own(self, kind: type[Any]) -> None:
        inner = kind(client=scripted("p", Reply(input=500, output=50, finish="length")), name="p")
        a, b = AgentExecutor(agent("a", Reply())), AgentExecutor(agent("b", Reply()))
        private = Private(inner)
        workflow = (
            WorkflowBuilder(start_executor=a).add_edge(a, private).add_edge(private, b).build()
        )
        record = recorded(workflow)
        assert truth(record) == {
            "a": [(35, "stop")],
            "private": [(550, "length")],
            "b": [(35, "stop")],
        }
        # What it sends on is the first agent's answer with another text.
        assert ledger(record) == {"a": [(35, "stop")], "b": [(35, "stop")]}
        assert record.traced == ("a", "private", "b")

    def test_agents_in_closures_and_globals(self) -> None:
        enclosed = agent("enclosed", Reply(input=8, output=2))

        @executor(id="first")
        async def first(message: str, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message((await enclosed.run(message)).text)

        @executor(id="second")
        async def second(message: str, ctx: WorkflowContext[Any, str]) -> None:
            answers = [GLOBAL.run(text) for text in [message]]
            await ctx.yield_output((await answers[0]).text)

        record = recorded(WorkflowBuilder(start_executor=first).add_edge(first, second).build())
        assert truth(record) == {"first": [(10, "stop")], "second": [(10, "stop")]}
        assert record.traced == ("first", "second")

    def test_a_client_that_is_called_without_an_agent(self) -> None:
        record = recorded(_alone(Direct(scripted("c", CUT))))
        assert truth(record) == {"direct": [(110, "length")]}
        assert record.traced == ("direct",)

    def test_a_retry_inside_a_clients_own_middleware(self) -> None:
        client = scripted("c", Reply(output=10, finish="content_filter"), CUT)
        client.chat_middleware.append(Retry())
        record = recorded(_alone(Direct(client)))
        assert truth(record) == {"direct": [(40, "content_filter"), (110, "length")]}

    def test_usage_that_only_a_streams_final_response_has(self) -> None:
        class Late(BareClient):
            def _inner_get_response(self, **kwargs: Any) -> Any:
                stream = super()._inner_get_response(**kwargs)

                def with_usage(response: ChatResponse[Any]) -> ChatResponse[Any]:
                    response.usage_details = UsageDetails(total_token_count=8)
                    return response

                return stream.with_result_hook(with_usage)

        class LateClient(ChatMiddlewareLayer[Any], Late):
            pass

        late = Agent(client=scripted("a", Reply(**SILENT), kind=LateClient), name="a")
        record = recorded(_alone(AgentExecutor(late)))
        assert truth(record) == {"a": [(8, "stop")]}

    def test_a_call_that_passes_two_listeners_is_one_turn(self) -> None:
        client = scripted("c", Reply(input=80, output=10, finish="content_filter"), Reply(), CUT)
        first = AgentExecutor(Agent(client=client, name="a", middleware=[Retry()]))

        @executor(id="text")
        async def text(message: AgentExecutorResponse, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message(message.agent_response.text)

        direct = Direct(client)
        workflow = (
            WorkflowBuilder(start_executor=first).add_edge(first, text).add_edge(text, direct)
        ).build()
        record = recorded(workflow)
        assert truth(record) == {
            "a": [(90, "content_filter"), (35, "stop")],
            "direct": [(110, "length")],
        }

    def test_tools_given_to_a_run(self) -> None:
        inner = agent("inner", Reply(input=400, output=40))
        calls = Reply(input=10, output=1, tool="inner", arguments='{"task": "t"}')
        outer = agent("outer", calls, Reply())
        record = recorded(_alone(AgentExecutor(outer)), tools=[inner.as_tool()])
        assert [total for total, _ in truth(record)["outer"]] == [11, 440, 35]

    def test_agents_added_after_watching_began(self) -> None:
        a = agent("a", Reply(tool="inner", arguments='{"task": "t"}'), Reply())
        watched = watch(_alone(AgentExecutor(a)))
        cast("Any", a.default_options).setdefault("tools", []).append(
            agent("inner", Reply(output=7)).as_tool()
        )
        asyncio.run(follow(watched))
        assert [total for total, _ in truth(watched.record)["a"]] == [35, 37, 35]

    def test_what_is_passed_on_is_its_authors(self) -> None:
        @executor(id="router")
        async def router(
            message: AgentExecutorResponse, ctx: WorkflowContext[AgentExecutorResponse]
        ) -> None:
            await ctx.send_message(message)

        @executor(id="unpacker")
        async def unpacker(
            message: AgentExecutorResponse, ctx: WorkflowContext[Any, AgentResponse[Any]]
        ) -> None:
            await ctx.yield_output(message.agent_response)

        a = AgentExecutor(agent("a", Reply()))
        workflow = (
            WorkflowBuilder(start_executor=a).add_edge(a, router).add_edge(router, unpacker)
        ).build()
        record = recorded(workflow)
        assert ledger(record) == {"a": [(35, "stop")]}
        assert record.traced == ("a", "router", "unpacker")
        assert [(e.executor, e.usage) for e in record.ledger[1:]] == [
            ("router", None),
            ("unpacker", None),
        ]

    def test_a_pause_for_approval_reports_the_call_before_it(self) -> None:
        guarded = tool(lambda: "done", name="guarded", approval_mode="always_require")
        a = agent("a", Reply(tool="guarded", finish="tool_calls"), tools=[guarded])
        record = recorded(_alone(AgentExecutor(a)))
        assert ledger(record) == {"a": [(35, "tool_calls")]} == truth(record)

    def test_a_run_that_goes_on_with_an_answer_has_a_record_of_its_own(self) -> None:
        guarded = tool(lambda: "done", name="guarded", approval_mode="always_require")
        calls = [Reply(tool="guarded", finish="tool_calls"), CUT]
        with watch(_alone(AgentExecutor(agent("a", *calls, tools=[guarded])))) as watched:

            async def both() -> None:
                events = await follow(watched)
                (asked,) = (event for event in events if event.type == "request_info")
                answer = asked.data.to_function_approval_response(approved=True)
                await follow(watched, None, responses={asked.request_id: answer})

            asyncio.run(both())
        assert ledger(watched.record) == {"a": [(110, "length")]} == truth(watched.record)

    def test_a_client_without_telemetry_is_seen(self) -> None:
        class Plain(ChatMiddlewareLayer[Any], BareClient):
            pass

        plain = Agent(client=scripted("a", CUT, kind=Plain), name="a")
        record = recorded(_alone(AgentExecutor(plain)))
        assert ledger(record) == {"a": [(110, "length")]} == truth(record)

    def test_a_response_that_is_sent_on_and_given_out_counts_once(self) -> None:
        class Both(Executor):
            def __init__(self, helper: Agent[Any]) -> None:
                super().__init__(id="both")
                self.helper = helper

            @handler
            async def ask(
                self, message: str, ctx: WorkflowContext[AgentResponse[Any], AgentResponse[Any]]
            ) -> None:
                for _ in range(2):
                    answer = await self.helper.run(message)
                    await ctx.send_message(answer)
                    await ctx.yield_output(answer)

        for named in (True, False):
            stripped = [] if named else [Nameless()]
            helper = agent("helper", Reply(), CUT, middleware=stripped)
            record = recorded(_alone(Both(helper)))
            assert ledger(record) == {"both": [(145, "length")]}
            assert truth(record) == {"both": [(35, "stop"), (110, "length")]}

    def test_too_much_to_look_at_is_untraced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from benchmark_assets.adapters import agent_framework_reach

        monkeypatch.setattr(agent_framework_reach, "MOST_OBJECTS", 3)
        record = watch(_alone(AgentExecutor(agent("a", Reply())))).record
        assert record.traced == ()

    def test_slots_partials_methods_and_cycles_are_followed(self) -> None:
        class Slotted:
            __slots__ = ("inner", "unset")

            def __init__(self, inner: object) -> None:
                self.inner = inner

            def go(self) -> None: ...

        one, two, three = agent("one"), agent("two"), agent("three")
        ring: list[Any] = [partial(print, one, key=two), Slotted(three).go]
        ring.append(ring)
        assert {a.name for a in reach_of(ring).agents} == {"one", "two", "three"}


class TestLeavingNoTrace:
    def test_results_are_the_same_as_without_listening(self) -> None:
        def build() -> Workflow:
            a = agent("a", TOOL_CALL, AFTER_TOOL, tools=[lookup], middleware=[Retry()])
            return ConcurrentBuilder(participants=[a, agent("b", CUT)]).build()

        async def unwatched(workflow: Workflow) -> list[Any]:
            return [event async for event in workflow.run("hi", stream=True)]

        def plain(events: list[Any]) -> list[str]:
            # The two run side by side, so only each one's own events have an order.
            return sorted(
                f"{e.type} {e.executor_id} {getattr(e.data, 'to_dict', lambda: '')()}"
                for e in events
                if e.type in ("output", "executor_invoked", "executor_completed")
            )

        async def both() -> tuple[list[Any], list[Any]]:
            with watch(build()) as watched:
                return await follow(watched), await unwatched(build())

        with_, without = asyncio.run(both())
        assert plain(with_) == plain(without)

    def test_everything_is_removed_again(self) -> None:
        inner = agent("inner", Reply())
        middleware = [Retry()]
        a = agent("a", tools=[inner.as_tool()], middleware=middleware)
        direct = Direct(scripted("c", Reply()))
        workflow = SequentialBuilder(participants=[a, inner]).build()
        alone = _alone(direct)
        before = a.middleware
        for each in (workflow, alone):
            with watch(each):
                pass
        assert a.middleware is before == middleware
        assert inner.middleware is None
        assert direct.client.chat_middleware == []
        assert all("execute" not in vars(e) for e in workflow.get_executors_list())
        assert "execute" not in vars(direct)

    def test_middleware_added_meanwhile_stays(self) -> None:
        a, later = agent("a", Reply()), Retry()
        with watch(_alone(AgentExecutor(a))):
            a.middleware = [*(a.middleware or ()), later]
        assert a.middleware == [later]

    def test_runs_that_were_not_started_here_are_not_recorded(self) -> None:
        a = agent("a", Reply(), Reply(), Reply())
        workflow = _alone(AgentExecutor(a))

        async def runs(watched: Watched) -> None:
            await a.run("outside")
            await follow(watched)
            await a.run("outside")

        with watch(workflow) as watched:
            asyncio.run(runs(watched))
        assert truth(watched.record) == {"a": [(35, "stop")]}

    def test_each_run_has_a_record_of_its_own(self) -> None:
        with watch(_alone(AgentExecutor(agent("a", Reply(), CUT)))) as watched:
            asyncio.run(follow(watched))
            first = watched.record
            asyncio.run(follow(watched))
        assert ledger(first) == {"a": [(35, "stop")]} == truth(first)
        assert ledger(watched.record) == {"a": [(110, "length")]} == truth(watched.record)
        assert [turn.invocation for turn in watched.record.turns] == ["a#1"]

    def test_two_watchers_record_the_same_in_whatever_order_they_go(self) -> None:
        workflow = _alone(AgentExecutor(agent("a", Reply(), CUT)))
        first, second = watch(workflow), watch(workflow)
        asyncio.run(follow(second))
        assert truth(second.record) == {"a": [(35, "stop")]}
        assert first.record.problem == NOT_RUN
        first.unwatch()
        asyncio.run(follow(second))
        assert truth(second.record) == {"a": [(110, "length")]}
        second.unwatch()

    def test_a_watched_workflow_inside_a_watched_one_counts_for_the_outer(self) -> None:
        inner = SequentialBuilder(participants=[agent("s1", Reply())]).build()
        with watch(inner), watch(_alone(WorkflowExecutor(inner, id="sub"))) as outer:
            asyncio.run(follow(outer))
        assert truth(outer.record) == {"sub": [(35, "stop")]}

    def test_a_watched_run_inside_a_watched_run_counts_for_both(self) -> None:
        inner = watch(_alone(AgentExecutor(agent("s1", Reply()))))

        @executor(id="starter")
        async def starter(message: str, ctx: WorkflowContext[Any, str]) -> None:
            await follow(inner, message)
            await ctx.yield_output("done")

        outer = recorded(_alone(starter))
        assert truth(outer) == {"starter": [(35, "stop")]}
        assert truth(inner.record) == {"s1": [(35, "stop")]}

    def test_the_record_stays_and_nothing_runs_after_the_end(self) -> None:
        with watch(_alone(AgentExecutor(agent("a", Reply())))) as watched:
            asyncio.run(follow(watched))
        assert ledger(watched.record) == {"a": [(35, "stop")]}
        with pytest.raises(RuntimeError, match="no longer watched"):
            asyncio.run(follow(watched))

    def test_a_run_always_streams_and_says_so(self) -> None:
        async def ask(watched: Watched) -> None:
            async for _ in watched.run("go", stream=False):
                pass

        with watch(_alone(AgentExecutor(agent("a", Reply())))) as watched:
            with pytest.raises(TypeError, match="always streams"):
                asyncio.run(ask(watched))
            asyncio.run(follow(watched))
        assert ledger(watched.record) == {"a": [(35, "stop")]}


def test_middleware_that_ends_a_call_before_the_model_is_no_turn() -> None:
    class Cached(ChatMiddleware):
        async def process(
            self, context: ChatContext, call_next: Callable[[], Awaitable[None]]
        ) -> None:
            context.result = ChatResponse(messages=[Message("assistant", ["from a cache"])])
            raise MiddlewareTermination

    # The client listens for itself, outside of the middleware that ends the call.
    client = scripted("c")
    with watch(_alone(Direct(client))) as watched:
        client.chat_middleware.append(Cached())
        asyncio.run(follow(watched))
    assert watched.record.turns == ()
    assert watched.record.traced == ("direct",)
    assert client.script.calls == 0


counts = st.integers(min_value=0, max_value=10**6)
reasons = st.sampled_from(["stop", "length", "content_filter", "end_turn", None])
replies = st.builds(Reply, input=counts, output=counts, cached=counts | st.none(), finish=reasons)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(replies, min_size=1, max_size=4), min_size=1, max_size=4), st.booleans())
def test_both_sides_add_up_to_what_the_script_used(
    scripts: list[list[Reply]], beside: bool
) -> None:
    agents, wants = [], {}
    for number, script in enumerate(scripts):
        name = f"agent-{number}"
        calls = [*(_as_tool_call(reply) for reply in script[:-1]), script[-1]]
        agents.append(agent(name, *calls, tools=[lookup]))
        wants[name] = (
            sum((r.input or 0) for r in calls),
            sum((r.output or 0) for r in calls),
            [r.finish for r in calls],
        )
    several = beside and len(agents) > 1
    builder = ConcurrentBuilder if several else SequentialBuilder
    record = recorded(builder(participants=agents).build())

    for name, (input_, output, finishes) in wants.items():
        turns = [turn for turn in record.turns if turn.executor == name]
        (entry,) = (entry for entry in record.ledger if entry.executor == name)
        used = [cast("Usage", turn.usage) for turn in turns]
        assert sum(cast("int", u.input) for u in used) == input_ == cast("Usage", entry.usage).input
        assert (
            sum(cast("int", u.output) for u in used) == output == cast("Usage", entry.usage).output
        )
        assert [turn.finish_reason for turn in turns] == finishes


def _as_tool_call(reply: Reply) -> Reply:
    return Reply(
        input=reply.input,
        output=reply.output,
        cached=reply.cached,
        tool="lookup",
        finish="tool_calls",
    )
