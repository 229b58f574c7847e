"""Both sides of a workflow in Langfuse traces: each rule on the smallest trace, then real files.

The small ones are rows as the server writes them: an agent's usage among the attributes in its
metadata, texts throughout; a generation's in the disjoint buckets of `usageDetails`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from benchmark_assets.adapters.formats.langfuse_usage import read_tokens
from benchmark_assets.model.fidelity import Usage, WorkflowFidelity, WorkflowRecord
from benchmark_assets.model.trace import Tokens, TraceSnapshot
from benchmark_assets.scoring.trace_fidelity.strict import reconcile
from tests.adapters import test_langfuse_real as real
from tests.adapters.odd_ledgers import records_through_the_store
from tests.adapters.test_format_langfuse import gen, made, root, row, tool
from tests.counting import growth
from tests.real_data import needs_real_data

FINISH = "gen_ai.response.finish_reasons"


def agent(row_id: str, parent: str | None = "root", **fields: Any) -> dict[str, Any]:
    """An agent's row; `used` are input and output tokens as it reports them, `ended` why."""
    used, ended = fields.pop("used", None), fields.pop("ended", None)
    attrs = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": row_id}
    if used:
        attrs["gen_ai.usage.input_tokens"], attrs["gen_ai.usage.output_tokens"] = map(str, used)
    if ended:
        attrs[FINISH] = json.dumps([ended])
    attrs |= fields.pop("attrs", {})
    return row(row_id, parent, **{"type": "AGENT", "attrs": attrs, "e": 9, **fields})


def call(row_id: str, parent: str, used: tuple[int, int], **fields: Any) -> dict[str, Any]:
    """A generation's row; `ended` is why it did."""
    ended = fields.pop("ended", None)
    if ended:
        fields["attrs"] = {FINISH: json.dumps([ended])} | fields.get("attrs", {})
    usage = {"input": used[0], "output": used[1], "total": sum(used)}
    return gen(row_id, parent, **{"usageDetails": usage, "model": "gpt-4o", **fields}) | (
        {} if "attrs" in fields or "metadata" in fields else {"metadata": {}}
    )


def record(*rows: Any) -> WorkflowRecord:
    found = made(root(), *rows).workflow_record
    assert found is not None
    return found


def verdicts(*rows: Any) -> dict[str, str]:
    return {item.executor_id: item.verdict for item in judged(*rows).executors}


def judged(*rows: Any) -> WorkflowFidelity:
    return reconcile(record(*rows))


STOP = {"ended": "stop"}


def measured(row_id: str, parent: str, used: tuple[int, int], **fields: Any) -> dict[str, Any]:
    """A generation whose attributes kept its usage, as servers of 2025 and 2026 write it."""
    attrs = {
        "gen_ai.operation.name": "chat",
        "gen_ai.usage.input_tokens": str(used[0]),
        "gen_ai.usage.output_tokens": str(used[1]),
    }
    return call(row_id, parent, used, **{**fields, "attrs": attrs | fields.pop("attrs", {})})


# What agrees and what does not.


def test_a_ledger_that_agrees() -> None:
    rows = (
        agent("writer", used=(30, 7), **STOP),
        measured("g1", "writer", (10, 5), s=2, ended="tool_calls"),
        measured("g2", "writer", (20, 2), s=3, ended="stop"),
    )
    found = record(*rows)
    assert found.name == "planner"
    assert found.executors == ("writer",)
    (entry,) = found.ledger
    assert (entry.executor, entry.invocation) == ("writer", "writer")
    assert (entry.usage, entry.finish_reason) == (Usage(input=30, output=7), "stop")
    assert [turn.usage for turn in found.turns] == [
        Usage(input=10, output=5),
        Usage(input=20, output=2),
    ]
    assert verdicts(*rows) == {"writer": "Agree"}
    assert judged(*rows).outcome == "PASS"


@pytest.mark.parametrize(
    ("used", "verdict"), [((20, 2), "TokenMismatch"), ((60, 14), "OverReport")]
)
def test_a_ledger_of_the_last_call_alone_and_one_of_the_session(used: Any, verdict: str) -> None:
    rows = (
        agent("writer", used=used, **STOP),
        measured("g1", "writer", (10, 5), s=2, ended="tool_calls"),
        measured("g2", "writer", (20, 2), s=3, ended="stop"),
    )
    assert verdicts(*rows) == {"writer": verdict}
    assert judged(*rows).outcome == "FAIL"


def test_a_content_filter_that_the_agent_does_not_show() -> None:
    rows = (
        agent("writer", used=(30, 7), **STOP),
        measured("g1", "writer", (10, 5), s=2, ended="content_filter"),
        measured("g2", "writer", (20, 2), s=3, ended="stop"),
    )
    assert verdicts(*rows) == {"writer": "InterventionHidden"}


def test_an_agent_that_reports_nothing_beside_one_that_does() -> None:
    rows = (
        agent("writer", used=(10, 5)),
        call("g1", "writer", (10, 5)),
        agent("manager", s=3),
        call("g2", "manager", (200, 64), s=4),
    )
    found = judged(*rows)
    assert verdicts(*rows) == {"writer": "Agree", "manager": "NoLedger"}
    assert (found.outcome, found.coverage.token_share) == ("FAIL", 15 / 279)


def test_no_agent_reports_anything() -> None:
    rows = (agent("writer"), call("g1", "writer", (10, 5), **STOP))
    assert made(root(), *rows).workflow_record is None
    assert b"workflow_record" not in msgspec.json.encode(made(root(), *rows))


def test_a_call_is_its_nearest_agents() -> None:
    """An agent as a tool of another: what it used is not the outer one's."""
    rows = (
        agent("outer", used=(20, 4)),
        call("g1", "outer", (20, 4), s=2),
        tool("ask_inner", "outer", s=3, e=8),
        agent("inner", "ask_inner", s=3, used=(400, 40)),
        call("g2", "inner", (400, 40), s=4),
    )
    assert verdicts(*rows) == {"outer": "Agree", "inner": "Agree"}


def test_two_instrumentations_report_a_call() -> None:
    """The framework's row around the client's is one call, and so are two of one response."""
    rows = (
        agent("writer", used=(30, 7)),
        call("g1", "writer", (10, 5), s=2),
        call("g1-again", "g1", (10, 5), s=2),
        measured("g2", "writer", (20, 2), s=3, attrs={"gen_ai.response.id": "r2"}),
        measured("g2-again", "root", (20, 2), s=3, attrs={"gen_ai.response.id": "r2"}),
    )
    assert len(record(*rows).turns) == 2
    assert verdicts(*rows) == {"writer": "Agree"}


# Spellings.


@pytest.mark.parametrize(
    "reasons",
    [["stop"], '["stop"]', "['stop']", "stop", ["tool_calls", "stop"], json.dumps('["stop"]')],
    ids=repr,
)
def test_finish_reasons_as_array_or_as_text(reasons: Any) -> None:
    (entry,) = record(agent("writer", attrs={FINISH: reasons})).ledger
    assert (entry.finish_reason, entry.usage) == ("stop", None)


@pytest.mark.parametrize(
    ("attrs", "usage"),
    [
        (
            {"gen_ai.aggregated_usage.input_tokens": 9, "gen_ai.aggregated_usage.output_tokens": 2},
            Usage(input=9, output=2),
        ),
        (
            {
                "gen_ai.usage.prompt_tokens": "9",
                "gen_ai.usage.completion_tokens": "2",
                "gen_ai.usage.total_tokens": "11",
            },
            Usage(input=9, output=2, total=11),
        ),
        (
            {
                "gen_ai.usage.input_tokens": 9,
                "gen_ai.usage.input_tokens.cached": 4,
                "gen_ai.usage.output_tokens": 2,
                "gen_ai.usage.output_tokens.reasoning": 1,
            },
            Usage(input=9, output=2, cached=4, reasoning=1),
        ),
        (
            {
                "gen_ai.usage.input_tokens": 9,
                "gen_ai.usage.cache_read.input_tokens": 4,
                "gen_ai.usage.cache_write.input_tokens": 3,
                "gen_ai.usage.reasoning.output_tokens": 0,
            },
            Usage(input=9, cached=4, reasoning=0),
        ),
        (
            {
                "llm.token_count.prompt": 9,
                "llm.token_count.completion": 2,
                "llm.token_count.total": 11,
                "llm.token_count.prompt_details.cache_read": 4,
                "llm.token_count.completion_details.reasoning": 1,
            },
            Usage(input=9, output=2, total=11, cached=4, reasoning=1),
        ),
        (
            {
                "ai.usage.inputTokens": 9,
                "ai.usage.outputTokens": 2,
                "ai.usage.totalTokens": 11,
                "ai.usage.cachedInputTokens": 4,
                "ai.usage.reasoningTokens": 1,
            },
            Usage(input=9, output=2, total=11, cached=4, reasoning=1),
        ),
        # A sum over the whole run counts, not what is there of the last call.
        (
            {
                "gen_ai.usage.input_tokens": 3,
                "gen_ai.aggregated_usage.input_tokens": 9,
                "gen_ai.aggregated_usage.output_tokens": 2,
            },
            Usage(input=9, output=2),
        ),
    ],
    ids=str,
)
def test_names_of_counts(attrs: dict[str, Any], usage: Usage) -> None:
    (entry,) = record(agent("writer", attrs=attrs), call("g", "writer", (9, 2))).ledger
    assert entry.usage == usage


@pytest.mark.parametrize(
    "metadata",
    [
        {"attributes": {"gen_ai.usage.input_tokens": "9", "gen_ai.usage.output_tokens": "2"}},
        {"attributes": {"gen_ai": {"usage": {"input_tokens": 9, "output_tokens": 2}}}},
        {"attributes.gen_ai.usage.input_tokens": "9", "attributes.gen_ai.usage.output_tokens": 2},
        json.dumps(
            {"attributes": '{"gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 2}'}
        ),
    ],
    ids=str,
)
def test_metadata_in_each_encoding(metadata: Any) -> None:
    found = record({**agent("writer"), "metadata": metadata}, call("g", "writer", (9, 2)))
    assert found.ledger[0].usage == Usage(input=9, output=2)


def test_a_span_is_an_agent_by_what_it_reports() -> None:
    """Before Langfuse had the type, agents were spans; and a span that names one may be no agent."""
    old = {"gen_ai.agent.name": "writer", "gen_ai.usage.input_tokens": "9"}
    rows = (
        row("writer run", attrs=old, e=9),
        call("g", "writer run", (9, 2)),
        tool("t", "writer run", attrs=old),
        row("plan", "writer run", attrs={"gen_ai.agent.name": "writer"}),
    )
    assert [entry.invocation for entry in record(*rows).ledger] == ["writer run"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"ended": "length"}, "length"),
        ({"modelParameters": {"finishReason": "length"}}, "length"),
        ({"modelParameters": '{"finishReason": "length"}'}, "length"),
        ({"output": {"role": "assistant", "content": "x", "finish_reason": "length"}}, "length"),
        (
            {"output": {"content": "x", "response_metadata": {"finish_reason": "length"}}},
            "length",
        ),
        ({"modelParameters": {"finishReason": None}}, None),
        ({}, None),
    ],
    ids=str,
)
def test_how_a_generation_ended(fields: dict[str, Any], reason: str | None) -> None:
    found = record(agent("writer", used=(9, 2)), call("g", "writer", (9, 2), **fields))
    assert found.turns[0].finish_reason == reason


# Executors.


def maf(row_id: str, parent: str, used: Any, **attrs: Any) -> dict[str, Any]:
    made_agent = agent(row_id, parent, used=used, attrs=attrs)
    made_agent["metadata"]["scope"] = {"name": "agent_framework", "version": "1.23.0"}
    return made_agent


def test_microsofts_executors_and_their_derived_ledger() -> None:
    rows = (
        row("executor.process", attrs={"executor.id": "draft"}, e=9),
        maf("invoke_agent a", "executor.process", (10, 5), **{"gen_ai.agent.name": "Writer"}),
        measured("g1", "invoke_agent a", (10, 5), s=2),
        row("executor.process 2", attrs={"executor.id": "join"}, s=3),
    )
    found = record(*rows)
    assert found.executors == ("draft", "join")
    assert [(entry.executor, entry.derived) for entry in found.ledger] == [("draft", True)]
    assert found.turns[0].executor == "draft"
    assert verdicts(*rows) == {"draft": "DerivedLedger"}


def test_an_agent_that_failed_says_why() -> None:
    rows = (
        agent("writer", used=(10, 5), level="ERROR", statusMessage="boom"),
        call("g1", "writer", (10, 5)),
    )
    assert record(*rows).ledger[0].error == "boom"
    assert verdicts(*rows) == {"writer": "Error"}


def test_a_call_that_failed_and_was_made_again() -> None:
    rows = (
        agent("writer", used=(10, 5)),
        call("g1", "writer", (0, 0), level="ERROR", statusMessage="429", usageDetails={}),
        call("g2", "writer", (10, 5), s=3),
    )
    assert [turn.error for turn in record(*rows).turns] == ["429", None]
    assert verdicts(*rows) == {"writer": "Agree"}


# What Langfuse makes of counts.


@pytest.mark.parametrize(
    ("buckets", "total"),
    [
        # 100 in, of them 60 read from a cache and 15 written to one; 20 out, of them 8 thought.
        (
            {
                "input": 25,
                "input_cached_tokens": 60,
                "input_cache_creation": 15,
                "output": 12,
                "output_reasoning_tokens": 8,
            },
            120,
        ),
        # The same under names that Langfuse does not know: it leaves them inside, and adds up all.
        (
            {
                "input": 40,
                "input_cached_tokens": 60,
                "cache_write.input_tokens": 15,
                "output": 20,
                "reasoning.output_tokens": 8,
                "total": 143,
            },
            120,
        ),
        ({"input": 100, "cache_read.input_tokens": 60, "output": 20}, 120),
        ({"input": 97, "output": 17, "output_audio_tokens": 3, "input_audio_tokens": 3}, 120),
    ],
    ids=str,
)
def test_buckets_are_disjoint(buckets: dict[str, int], total: int) -> None:
    rows = (agent("writer", used=(100, 20)), gen("g", "writer", usageDetails=buckets))
    usage = record(*rows).turns[0].usage
    assert usage is not None
    assert (usage.input, usage.output, usage.total) == (100, 20, total)
    assert made(root(), *rows).tokens.total == total
    assert verdicts(*rows) == {"writer": "Agree"}


def test_a_part_that_is_more_than_the_whole_is_beside_it() -> None:
    assert read_tokens({"input": 3, "cache_write.input_tokens": 500, "output": 1}) == Tokens(
        input=3, cache_write=500, output=1
    )


# A provider whose input does not count cached tokens in: of 3 + 60, Langfuse makes 0 + 60.
ANTHROPIC = {"gen_ai.usage.cache_read.input_tokens": "60"}
FLOORED = {"input": 0, "input_cached_tokens": 60, "output": 20}


def test_an_input_without_cached_tokens_is_compared_as_it_was_sent() -> None:
    rows = (
        agent("writer", used=(3, 20), attrs=ANTHROPIC),
        measured("g", "writer", (3, 20), attrs=ANTHROPIC, usageDetails=FLOORED),
    )
    assert verdicts(*rows) == {"writer": "Agree"}


def test_an_input_from_which_too_much_was_taken_is_no_measurement() -> None:
    rows = (
        agent("writer", used=(3, 20), attrs=ANTHROPIC),
        gen("g", "writer", usageDetails=FLOORED),
    )
    found = record(*rows)
    assert found.ledger[0].usage == Usage(input=63, output=20, cached=60)
    assert found.turns[0].usage is None
    assert verdicts(*rows) == {"writer": "Unmeasured"}


COUNTED = {"input": 44, "output": 180, "total": 224}


def test_langfuses_own_count_of_an_agents_text_is_no_report() -> None:
    bare = {"gen_ai.operation.name": "invoke_agent"}
    rows = (
        row("writer", type="AGENT", model="gpt-5-mini", usageDetails=COUNTED, attrs=bare, e=9),
        measured("g1", "writer", (77, 86)),
        measured("g2", "writer", (216, 20), s=3),
    )
    assert made(root(), *rows).workflow_record is None


@pytest.mark.parametrize(
    "fields", [{}, {"model": "gpt-5", "usageDetails": {**COUNTED, "input_cached_tokens": 4}}]
)
def test_usage_that_an_agents_row_was_sent_is_a_report(fields: dict[str, Any]) -> None:
    """Langfuse counts only where it knows a model, and counts no parts."""
    told = row("writer", type="AGENT", **{"usageDetails": COUNTED, "e": 9, **fields})
    (entry,) = record(told, call("g", "writer", (44, 180))).ledger
    assert entry.usage is not None
    assert (entry.executor, entry.usage.total) == ("writer", 224)


def test_langfuses_own_count_of_a_generations_text_is_no_measurement() -> None:
    attrs = {"openinference.span.kind": "LLM", "llm.model_name": "gpt-4o"}
    rows = (agent("writer", used=(163, 20)), call("g", "writer", (542, 235), attrs=attrs))
    assert record(*rows).turns[0].usage is None
    assert verdicts(*rows) == {"writer": "Unmeasured"}
    sdk = call("g", "writer", (163, 20))
    sdk["metadata"] = {"attributes": {"user.id": "alice"}, "scope": {"name": "langfuse-sdk"}}
    assert verdicts(rows[0], sdk) == {"writer": "Agree"}


def test_a_row_around_the_last_call_that_alone_was_counted() -> None:
    """Vercel's outer row has the usage of the call inside it, where that one has none."""
    rows = (
        agent("writer", used=(62, 85)),
        call("ai.generateText", "writer", (62, 85), s=2),
        call("ai.generateText.doGenerate", "ai.generateText", (0, 0), usageDetails={}, s=2),
    )
    assert verdicts(*rows) == {"writer": "Agree"}


def test_what_langfuse_counted_of_the_row_around_a_call_is_no_measurement_either() -> None:
    attrs = {"ai.operationId": "ai.generateText"}
    rows = (
        agent("writer", used=(62, 85)),
        call("ai.generateText", "writer", (14, 43), attrs=attrs, s=2),
        call("ai.generateText.doGenerate", "ai.generateText", (0, 0), usageDetails={}, s=2),
    )
    assert verdicts(*rows) == {"writer": "Unmeasured"}


def test_a_call_that_a_tool_inside_a_generation_made_is_another() -> None:
    """Google's ADK puts the tools that a generation asked for inside it."""
    rows = (
        agent("writer", used=(30, 7)),
        call("call_llm", "writer", (10, 5), s=2),
        tool("execute_tool", "call_llm", s=2),
        call("asked by the tool", "execute_tool", (20, 2), s=3),
    )
    assert len(record(*rows).turns) == 2
    assert verdicts(*rows) == {"writer": "Agree"}


def test_rows_without_ids() -> None:
    rows = (agent("writer", used=(10, 5)), {**call("g", "writer", (10, 5)), "id": None})
    assert verdicts(*rows) == {"writer": "Agree"}


REPORTING = {
    "id": "t1",
    "timestamp": "2026-03-01T12:00:00.000Z",
    "observations": [
        agent("writer", None, used=(30, 7), **STOP),
        measured("g1", "writer", (10, 5), s=2, ended="tool_calls"),
        gen("g2", "writer", usageDetails={"input": 0, "input_cached_tokens": 60}, s=3),
        maf("invoke_agent a", "writer", (10, 5)),
    ],
}


def test_no_value_keeps_a_trace_with_a_ledger_from_being_read_and_written() -> None:
    assert records_through_the_store(REPORTING, "langfuse") > 100


def test_many_rows_are_read_in_linear_time() -> None:
    """10,000 calls, each inside an agent inside the one before it."""

    def rows(number: int) -> list[dict[str, Any]]:
        found = [root()]
        for index in range(number):
            outer = f"a{index - 1}" if index % 100 else "root"
            found.append(agent(f"a{index}", outer, used=(9, 2)))
            found.append(measured(f"g{index}", f"a{index}", (9, 2)))
        return found

    found = made(*rows(5_000)).workflow_record
    assert found is not None
    assert len(found.ledger) == len(found.turns) == 5_000
    assert growth(lambda number: made(*rows(number)), 200) < 2.2


# Real files.

MICROSOFT = "microsoft-agent-2025-12-17.trace"
PYDANTIC_TOOLS = "pydantic-ai-tools-2025-12-04.trace"

WITH_LEDGER: dict[str, tuple[str, dict[str, tuple[str, int, int]]]] = {
    # Executor → verdict, tokens reported, tokens used; added up by hand from the rows.
    # joke_agent ran twice: 682 + 126 for calls of 265 + 73 and 417 + 53, then 502 + 14 for one.
    # It reports no finish reason of any agent, which is held against none.
    PYDANTIC_TOOLS: (
        "PASS",
        {
            "joke_agent": ("Agree", 1324, 1324),
            "evaluator_agent": ("Agree", 200, 200),
        },
    ),
    # 106 + 15 for 52 + 5 and 54 + 10.
    "pydantic-ai-a79ce6": ("PASS", {"pa_agent": ("Agree", 121, 121)}),
    # 51 + 5 for one call; then its tool raised, and so did the agent.
    "pydantic-ai-bad-e1897b": ("PENDING", {"pa_bad": ("Error", 56, 56)}),
    # 164 + 29 for 51 + 5, 56 + 10 and 57 + 14.
    "pydantic-ai-retry-0ab9b7": ("PASS", {"pa_retry": ("Agree", 193, 193)}),
}

WITHOUT_LEDGER = {
    "agno-2025-06-11.trace": "a span of an agent with neither usage nor a finish reason",
    "beeai-2025-08-01.trace": "events of agents with neither",
    "claude-agent-2025-12-22.trace": "no agent: a chain with the number of turns",
    "crewai-2025-07-11.trace": "a task marked as an agent with neither",
    "google-adk-2025-08-28.trace": "an AGENT with neither",
    "langgraph-python-2025-08-22.trace": "no agent",
    MICROSOFT: "an AGENT of which Langfuse counted the text itself",
    "openai-agents-2025-09-30.trace": "two AGENTs with neither",
    "vercel-aisdk-2025-11-17.trace": "no agent",
    "langgraph-3d2fd6": "no agent",
    "langgraph-bad-092ae7": "no agent",
    "observe-bad-993ec5": "an AGENT with neither, and no call of a model",
    "openai-wrapper-206f11": "no agent",
    "openai-wrapper-bad-a74ac4": "no agent",
}


def attributes(raw_row: dict[str, Any]) -> dict[str, Any]:
    """A row's attributes as they stand in the file, each under its dotted name."""
    metadata = raw_row["metadata"]
    known = json.loads(metadata) if isinstance(metadata, str) else metadata
    return dict(_flat(known.get("attributes", {})))


def _flat(value: dict[str, Any], at: str = "") -> Iterator[tuple[str, Any]]:
    for key, item in value.items():
        if isinstance(item, dict):
            yield from _flat(item, f"{at}{key}.")
        else:
            yield at + key, item


def agents_rows(name: str) -> list[dict[str, Any]]:
    """Rows of agents, recognised by another rule than the reader's: all that can be one."""
    return [
        item
        for item in real.raw(name)["observations"]
        if item["type"] == "AGENT"
        or attributes(item).get("openinference.span.kind") == "AGENT"
        or (item["name"].startswith("invoke_agent") or item["name"].endswith(" run"))
    ]


def snapshot(name: str) -> TraceSnapshot:
    return real.snapshot(name)


@needs_real_data
@pytest.mark.data
def test_every_real_file_has_been_looked_at() -> None:
    assert sorted([*WITH_LEDGER, *WITHOUT_LEDGER]) == sorted(real.NAMES)


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize("name", WITHOUT_LEDGER)
def test_real_files_in_which_no_agent_reports(name: str) -> None:
    assert snapshot(name).workflow_record is None
    assert bool(agents_rows(name)) is not WITHOUT_LEDGER[name].startswith("no agent")
    for item in agents_rows(name):
        names = " ".join(attributes(item))
        assert ".usage." not in names
        assert "token_count" not in names
        assert "finish_reason" not in names


@needs_real_data
@pytest.mark.data
def test_what_langfuse_counted_of_microsofts_agent_is_none_of_its_calls() -> None:
    """Less input than the first call alone was sent, and more output than all calls gave."""
    rows = {item["name"]: item["usageDetails"] for item in agents_rows(MICROSOFT)}
    (counted,) = rows.values()
    calls = [
        item["usageDetails"]
        for item in real.raw(MICROSOFT)["observations"]
        if item["type"] == "GENERATION"
    ]
    assert counted["input"] < min(usage["input"] for usage in calls)
    assert counted["output"] > sum(usage["output"] for usage in calls)


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize("name", WITH_LEDGER)
def test_real_files_in_which_agents_report(name: str) -> None:
    found = snapshot(name).workflow_record
    assert found is not None
    outcome, executors = WITH_LEDGER[name]
    result = reconcile(found)
    assert result.outcome == outcome
    assert {
        item.executor_id: (item.verdict, item.ledger_tokens, item.truth_tokens)
        for item in result.executors
    } == executors


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize("name", WITH_LEDGER)
def test_real_ledgers_and_turns_are_those_of_the_rows(name: str) -> None:
    """Each number once more, from the file: whose parent a row's is, and its attributes."""
    found = snapshot(name).workflow_record
    assert found is not None
    stated = {}
    for item in agents_rows(name):
        known = attributes(item)
        for prefix in ("gen_ai.usage", "gen_ai.aggregated_usage"):
            if f"{prefix}.input_tokens" in known:
                stated[item["id"]] = Usage(
                    input=int(known[f"{prefix}.input_tokens"]),
                    output=int(known[f"{prefix}.output_tokens"]),
                )
    assert {entry.invocation: entry.usage for entry in found.ledger} == stated
    calls = [i for i in real.raw(name)["observations"] if i["type"] == "GENERATION"]
    assert {(turn.span_id, turn.invocation) for turn in found.turns} == {
        (item["id"], item["parentObservationId"]) for item in calls
    }
    used = sum(item["usageDetails"]["input"] + item["usageDetails"]["output"] for item in calls)
    assert used == snapshot(name).tokens.total
    assert used == sum((t.usage.input or 0) + (t.usage.output or 0) for t in found.turns if t.usage)
