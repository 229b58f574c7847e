"""A live run of the real framework, from listening to what commands make of the file.

The models follow scripts; all expected numbers are added up by hand from them.
"""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

WITHOUT = (
    "THE FRAMEWORK IS MISSING, SO LIVE CAPTURE IS NOT TESTED: install the extra "
    "`agent-framework` and agent-framework-orchestrations"
)
pytest.importorskip("agent_framework", reason=WITHOUT)
pytest.importorskip("agent_framework_orchestrations", reason=WITHOUT)

from agent_framework import (  # noqa: E402 - only where it is installed
    Agent,
    AgentExecutor,
    Message,
    Workflow,
    WorkflowBuilder,
    WorkflowExecutor,
    tool,
)
from agent_framework.orchestrations import (  # noqa: E402
    ConcurrentBuilder,
    GroupChatBuilder,
    SequentialBuilder,
)

from benchmark_assets.adapters.agent_framework import NOT_FOLLOWED, NOT_RUN, Watched, watch  # noqa: E402
from benchmark_assets.adapters.fidelity_files import read_workflow_trace  # noqa: E402
from benchmark_assets.adapters.formats import choose_format  # noqa: E402
from benchmark_assets.adapters.formats.base import TraceFile  # noqa: E402
from benchmark_assets.model.trace import Tokens, TraceSnapshot  # noqa: E402
from tests.adapters.scripted_chat import SILENT, BareClient, Reply, scripted  # noqa: E402
from tests.adapters.test_agent_framework import (  # noqa: E402
    AFTER_TOOL,
    CUT,
    TOOL_CALL,
    Halve,
    Private,
    Retry,
    Rewrite,
    _alone,
    _choose,
    _handoff,
    _magentic,
    _with_inner_agent,
    _writer_and_reviewer,
    agent,
    follow,
    lookup,
)
from tests.bench import bench, run_rows  # noqa: E402


def written(workflow: Workflow, message: Any = "hi", *, raises: bool = False) -> bytes:
    """Run a workflow and give the file of the run."""
    with watch(workflow) as watched:
        if raises:
            with pytest.raises(Exception, match=r"boom|connection lost"):
                asyncio.run(follow(watched, message))
        else:
            asyncio.run(follow(watched, message))
    return watched.trace_json()


def snapshot(data: bytes) -> TraceSnapshot:
    file = TraceFile("run.json", "run.json", data)
    (found,) = choose_format(file).parse(file)
    return found


# What is hidden comes out, from the run to the exit code.


@dataclass(frozen=True)
class Scenario:
    """A workflow, and what the strict rules say of the file of its run.

    `said`: executor → verdict, tokens of the ledger, tokens of the truth, of each executor that
    called a model or reported of one.
    """

    build: Callable[[], Workflow]
    code: int
    said: dict[str, tuple[str, int | None, int | None]]
    reasons: tuple[str, ...] = ()
    raises: bool = False
    without_model: tuple[str, ...] = field(default=())


def _sequential(*participants: Agent[Any]) -> Workflow:
    return SequentialBuilder(participants=list(participants)).build()


def _group_chat() -> Workflow:
    boss = agent("boss", _choose("b", 7), _choose("a", 8), _choose(None, 9))
    people = [agent("a", Reply()), agent("b", Reply())]
    return GroupChatBuilder(participants=people, orchestrator_agent=boss).build()


def _nested() -> Workflow:
    inner = _sequential(agent("s1", Reply()), agent("s2", Reply(input=60, output=6)))
    return _alone(WorkflowExecutor(inner, id="sub"))


def _private() -> Workflow:
    a, last = AgentExecutor(agent("a", Reply())), AgentExecutor(agent("b", Reply()))
    inner = Private(agent("p", Reply(input=500, output=50, finish="length")))
    return WorkflowBuilder(start_executor=a).add_edge(a, inner).add_edge(inner, last).build()


def _shared() -> Workflow:
    shared = agent("shared", Reply(), CUT)
    x1, x2 = AgentExecutor(shared, id="x1"), AgentExecutor(shared, id="x2")
    return WorkflowBuilder(start_executor=x1).add_edge(x1, x2).build()


FILTERED = Reply(input=80, output=10, finish="content_filter")
OK = ("Agree", 35, 35)
BARE = {"kind": BareClient}

SCENARIOS = {
    "sequential, with a tool loop": Scenario(
        lambda: _sequential(agent("a", TOOL_CALL, AFTER_TOOL, tools=[lookup])),
        0,
        {"a": ("Agree", 280, 280)},
    ),
    "concurrent": Scenario(
        lambda: ConcurrentBuilder(participants=[agent("a", Reply()), agent("b", Reply())]).build(),
        0,
        {"a": OK, "b": OK},
        without_model=("aggregator",),
    ),
    "loop": Scenario(
        _writer_and_reviewer,
        0,
        # 35 + 40 + 59 and three times 35.
        {"writer": ("Agree", 134, 134), "reviewer": ("Agree", 105, 105)},
    ),
    "handoff": Scenario(
        lambda: _handoff(autonomous=False), 0, {"triage": ("Agree", 36, 36), "expert": OK}
    ),
    "shared agent": Scenario(_shared, 0, {"x1": OK, "x2": ("Agree", 110, 110)}),
    "group chat: orchestrator that reports nothing": Scenario(
        _group_chat,
        9,
        {"boss": ("NoLedger", None, 264), "a": OK, "b": OK},
        ("3 model calls used 264 tokens, and the framework reported none of it",),
    ),
    "magentic: manager tokens missing": Scenario(
        _magentic,
        9,
        {"magentic_orchestrator": ("NoLedger", None, 330), "w": OK},
        ("5 model calls used 330 tokens, and the framework reported none of it",),
    ),
    "nested workflow: its last output only": Scenario(
        _nested,
        9,
        {"sub": ("TokenMismatch", 66, 101)},
        ("35 of 101 tokens not reported (34.7 %)",),
    ),
    "agent as a tool": Scenario(
        _with_inner_agent,
        9,
        {"outer": ("Both", 33, 473)},
        ("440 of 473 tokens not reported (93.0 %)",),
    ),
    "executor with an agent of its own": Scenario(
        _private, 9, {"a": OK, "private": ("NoLedger", None, 550), "b": OK}
    ),
    "hidden retry": Scenario(
        lambda: _sequential(agent("a", FILTERED, Reply(input=90, output=9), middleware=[Retry()])),
        9,
        {"a": ("Both", 99, 189)},
        (
            "90 of 189 tokens not reported (47.6 %)",
            "a turn was cut ('content_filter') and no ledger entry shows it",
            "a retry is hidden: the ledger falls short",
        ),
    ),
    "falsified ledger": Scenario(
        lambda: _sequential(agent("a", CUT, middleware=[Halve()])),
        9,
        {"a": ("Both", 55, 110)},
        ("55 of 110 tokens not reported (50.0 %)", "ended with 'length', reported is 'stop'"),
    ),
    "ledger without usage and finish reason": Scenario(
        lambda: _sequential(agent("a", CUT, middleware=[Rewrite()])),
        9,
        {"a": ("NoLedger", None, 110)},
    ),
    "mid-turn content filter": Scenario(
        lambda: _sequential(
            agent(
                "a",
                Reply(input=10, output=1, tool="lookup", finish="content_filter"),
                Reply(input=20, output=2),
                tools=[lookup],
            )
        ),
        9,
        {"a": ("InterventionHidden", 33, 33)},
        ("a turn was cut ('content_filter') and no ledger entry shows it",),
    ),
    "client without usage": Scenario(
        lambda: _sequential(agent("a", Reply(**SILENT))),
        11,
        {"a": ("Unmeasured", None, None)},
        ("model calls have no usage, so nothing says whether the ledger is right",),
    ),
    "one client of two without usage": Scenario(
        lambda: _sequential(agent("a", Reply(**SILENT)), agent("b", Reply())),
        10,
        {"a": ("Unmeasured", None, None), "b": OK},
    ),
    "client that runs no middleware": Scenario(
        lambda: _sequential(
            Agent(client=scripted("a", Reply(), **BARE), name="a"), agent("b", Reply())
        ),
        10,
        # What it reports has no origin that was seen; that is not too much.
        {"a": ("NoTruth", 35, None), "b": OK},
        ("no model call of it was recorded",),
    ),
    "stream that dies midway": Scenario(
        lambda: _sequential(
            agent("a", Reply()), agent("b", Reply(input=80, output=4, error="connection lost"))
        ),
        10,
        # What had been streamed until then is kept, and is no proof against the ledger.
        {"a": OK, "b": ("Error", None, 84)},
        raises=True,
    ),
    "run that raises": Scenario(
        lambda: _sequential(agent("a", Reply()), agent("b", Reply(**SILENT, error="boom"))),
        10,
        {"a": OK, "b": ("Error", None, None)},
        ("the executor failed, and what it used until then is reported nowhere",),
        raises=True,
    ),
    "run that raises at once": Scenario(
        lambda: _sequential(agent("a", Reply(**SILENT, error="boom"))),
        11,
        {"a": ("Error", None, None)},
        raises=True,
    ),
}


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_recorded_run_comes_to_its_strict_verdict(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    data = written(scenario.build(), raises=scenario.raises)
    (tmp_path / "run.json").write_bytes(data)
    arguments = ["--workflow-trace", "run.json", "--subject", "x", "--rules", "strict"]
    result = bench("workflow-trace-fidelity", *arguments, "--json", "-v", cwd=tmp_path)
    found = {item["executor_id"]: item for item in json.loads(result.out)["executors"]}
    said = {
        name: (item["verdict"], item["ledger_tokens"], item["truth_tokens"])
        for name, item in found.items()
    }
    assert {name: row for name, row in said.items() if row[0] != "NoModelCall"} == scenario.said
    assert result.code == scenario.code
    for name in scenario.without_model:
        assert said[name] == ("NoModelCall", None, 0)
    checks = [check["reason"] for item in found.values() for check in item["checks"]]
    assert set(scenario.reasons) <= set(checks)


# The file is a trace of the product.


@tool
def broken() -> str:
    """Break."""
    raise ValueError("no")


def _helper() -> Workflow:
    calls = [
        TOOL_CALL,
        Reply(tool="broken", arguments='{"hard": 1}', finish="tool_calls"),
        Reply(text="All found."),
    ]
    crew = [agent("a", *calls, tools=[lookup, broken]), agent("b", Reply(text="Done."))]
    builder = SequentialBuilder(participants=crew)
    return builder.build()


def test_the_file_is_the_whole_trace() -> None:
    before = datetime.now(UTC)
    with watch(_helper()) as watched:
        asyncio.run(follow(watched, "Find it."))
    after = datetime.now(UTC)
    data = watched.trace_json()
    found = snapshot(data)
    assert found.problem is None
    assert found.workflow_record == watched.record
    assert (found.name, found.agents) == ("Sequential", ("input-conversation", "a", "b"))
    assert found.started_at is not None
    assert before <= found.started_at <= after
    assert found.duration_ms is not None
    assert timedelta(milliseconds=found.duration_ms - 1) <= after - before
    assert (found.prompt, found.final_answer) == ("Find it.", "Done.")
    assert (found.ended, found.error) == ("final_output", None)
    assert [(g.model, g.agent, g.tokens.total) for g in found.generations] == [
        ("scripted-1", "a", 110),
        ("scripted-1", "a", 35),
        ("scripted-1", "a", 35),
        ("scripted-1", "b", 35),
    ]
    # 100 + 30 × 3 in, of which 64 cached; 10 + 5 × 3 out, of which 4 thought.
    assert found.tokens == Tokens(input=126, output=21, cache_read=64, reasoning=4)
    assert [(c.name, c.arguments, c.agent, c.status) for c in found.tool_calls] == [
        ("lookup", {}, "a", "ok"),
        ("broken", {"hard": 1}, "a", "error"),
    ]
    assert found.tool_calls[0].result == "found"
    # The message itself comes only with leave to show sensitive data.
    assert found.tool_calls[1].error in ("no", "FunctionInvocationError")
    assert found.failures_recorded


def test_a_run_in_one_piece_has_its_tool_calls_too() -> None:
    inner = _sequential(agent("a", TOOL_CALL, AFTER_TOOL, tools=[lookup]))
    found = snapshot(written(_alone(WorkflowExecutor(inner, id="sub"))))
    assert [(c.name, c.result, c.agent) for c in found.tool_calls] == [("lookup", "found", "sub")]


def test_a_tool_that_is_given_no_result_has_no_status() -> None:
    found = snapshot(written(_handoff(autonomous=False)))
    (call,) = found.tool_calls
    assert (call.name, call.status) == ("handoff_to_expert", None)
    assert not found.failures_recorded
    assert found.final_answer == "ok"


def test_results_go_to_the_calls_of_their_own_invocation() -> None:
    """Two executors whose models use the same ids for other calls."""
    script = [TOOL_CALL, TOOL_CALL, AFTER_TOOL]
    answers = iter(["one", "two", "three", "four"])

    @tool(name="lookup")
    def numbered() -> str:
        return next(answers)

    def same_ids() -> Agent[Any]:
        return Agent(client=scripted("same", *script), name="x", tools=[numbered])

    first, second = AgentExecutor(same_ids(), id="x1"), AgentExecutor(same_ids(), id="x2")
    found = snapshot(written(WorkflowBuilder(start_executor=first).add_edge(first, second).build()))
    assert [(c.agent, c.result) for c in found.tool_calls] == [
        ("x1", "one"),
        ("x1", "two"),
        ("x2", "three"),
        ("x2", "four"),
    ]


def test_the_answer_is_what_was_given_out_last() -> None:
    conversation = [Message("user", ["Hello."]), Message("user", ["Again."])]
    found = snapshot(written(_writer_and_reviewer(), conversation[0]))
    assert (found.prompt, found.final_answer) == ("Hello.", "good")
    several = ConcurrentBuilder(
        participants=[agent("a", Reply(text="A")), agent("b", Reply(text="B"))]
    ).build()
    found = snapshot(written(several, conversation))
    assert found.prompt == "Hello.\nAgain."
    assert sorted(found.final_answer or "") == ["A", "B"]
    assert snapshot(written(_magentic())).final_answer == "final"


def test_a_run_that_raises_ended_by_its_error() -> None:
    workflow = _sequential(agent("a", Reply()), agent("b", Reply(error="boom")))
    found = snapshot(written(workflow, raises=True))
    assert (found.ended, found.ended_normally) == ("error", False)
    assert (found.error or "").startswith("b: RuntimeError")
    assert [(span.agent, span.kind, span.message) for span in found.error_spans] == [
        ("b", "ChatTurn", "RuntimeError: boom")
    ]
    assert found.duration_ms is not None


def test_an_error_of_the_run_itself_is_its_error() -> None:
    async def asked_for_too_much(watched: Watched) -> None:
        with pytest.raises(ValueError, match=r"."):
            await follow(watched, "hi", responses={"x": 1})

    with watch(_alone(AgentExecutor(agent("a", Reply())))) as watched:
        asyncio.run(asked_for_too_much(watched))
    found = snapshot(watched.trace_json())
    assert found.ended == "error"
    assert (found.error or "").startswith("ValueError")


def test_a_run_that_was_not_followed_cannot_be_judged() -> None:
    async def first_event(watched: Watched) -> None:
        run = watched.run("hi")
        async for _ in run:
            break
        await run.aclose()

    with watch(_alone(AgentExecutor(agent("a", Reply())))) as watched:
        not_run = snapshot(watched.trace_json())
        asyncio.run(first_event(watched))
    found = snapshot(watched.trace_json())
    assert found.problem == f"run.json: problem: {NOT_FOLLOWED}"
    assert found.duration_ms is None
    assert not_run.problem == f"run.json: problem: {NOT_RUN}"


def test_a_workflow_has_the_name_that_it_was_given_and_no_made_up_one() -> None:
    def named(**name: Any) -> str | None:
        start = AgentExecutor(agent("a", Reply()))
        return watch(WorkflowBuilder(start_executor=start, **name).build()).record.name

    assert named(name="trip") == "trip"
    assert named() is None


def test_the_file_gives_the_record_back() -> None:
    with watch(_group_chat()) as watched:
        asyncio.run(follow(watched))
    file = TraceFile("run.json", "run.json", watched.trace_json())
    assert read_workflow_trace(file) == watched.record


def test_a_recorded_run_is_a_run_of_the_benchmark(tmp_path: Path) -> None:
    (tmp_path / "benchmark.yaml").write_text("sources: [{kind: files, path: traces}]\n")
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "find.yaml").write_text(
        'workflow: Sequential\ncontract_version: "1"\ntools: {required: [lookup]}\n'
        "trace_health: {recovered_errors: allow}\n"
    )
    (tmp_path / "traces").mkdir()
    for number, workflow in enumerate([_helper(), _sequential(agent("a", Reply()))]):
        (tmp_path / "traces" / f"{number}.json").write_bytes(written(workflow, "Find it."))
    result = bench("run", cwd=tmp_path)
    rows = run_rows(tmp_path / "data" / "store")
    assert result.code == 0, result.out
    today = datetime.now(UTC).date()
    # One run calls the tool and the other does not.
    assert sorted(str(row["outcome"]) for row in rows) == ["resolved", "unresolved"]
    assert {row["model"] for row in rows} == {"scripted-1"}
    assert {row["workflow"] for row in rows} == {"Sequential"}
    assert all(abs((row["started_at"].date() - today).days) <= 1 for row in rows)  # type: ignore[attr-defined]
    assert len({row["task"] for row in rows}) == 1
