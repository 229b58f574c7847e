"""Spans that real frameworks recorded, against what was read off them by hand.

Each table is from the raw spans: names of tool spans in order of start, sums of the usage of the
innermost spans of model calls, the first words of the first user message and of the last answer.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.model.trace import Tokens, TraceSnapshot
from benchmark_assets.scoring.trace_fidelity import strict
from tests.adapters.samples import parse, trace_file
from tests.adapters.test_formats import ODD, changed, check_reading, places
from tests.real_data import REAL, needs_real_data

pytestmark = [needs_real_data, pytest.mark.data]

SPANS = REAL / "otel-spans" / "mappers"
HELM = REAL / "jaeger-otel-agentevals" / "helm.json"


class Known(NamedTuple):
    """What one file's only trace is known to hold."""

    tools: tuple[str, ...]
    agents: tuple[str, ...]
    models: tuple[str, ...]
    tokens: Tokens
    prompt: str
    answer: str
    session: str | None
    verdicts: dict[str, str] | None


KNOWN: dict[str, Known] = {
    # 157 + 222 in; out 51 + 33, of which 32 + 20 reasoning; each once, in call_llm and below it.
    "adk_live_spans.json": Known(
        ("calculator",),
        ("math_agent",),
        ("gemini-3.5-flash", "gemini-3.5-flash"),
        Tokens(input=379, output=32, reasoning=52),
        "What is 15 multiplied by 37?",
        "15 multiplied by 37 is 555.",
        "b4866a2a-a3d4-4d2f-8f40-6bb0d03d135c",
        None,
    ),
    # No call of a model is recorded; the query's span reports 132 and 850, and nobody can say
    # whether that is so.
    "claude_live_spans.json": Known(
        ("Agent", "Agent", "Bash", "Bash", "Agent", "Bash"),
        ("ClaudeAgentSDK.query", "research-specialist", "math-specialist"),
        (),
        Tokens(input=132, output=850),
        "Look up the weather in New York and Seattle",
        "New York is 89°F and Seattle is 72°F.",
        "mock-session-001",
        {"ClaudeAgentSDK.query": "NoTruth"},
    ),
    # In 225 + 141 + 174 + 275 + 187 + 217 + 246 + 405; out 23 + 17 + 18 + 24 + 20 + 20 + 98 + 33.
    "openai_agents_genai_live_spans.json": Known(
        (
            "ask_research_specialist",
            "lookup_stock_price",
            "ask_math_specialist",
            "multiply_numbers",
            "multiply_numbers",
        ),
        ("coordinator", "research_specialist", "math_specialist"),
        ("gpt-4o-mini-2024-07-18",) * 8,
        Tokens(input=1870, output=253, cache_read=0, reasoning=0),
        "Look up the stock price for AMZN",
        "The current stock price of Amazon (AMZN) is $240.98. Therefore, 1,000 shares",
        None,
        None,
    ),
    # In 212 + 190 + 242 + 272 + 312; out 27 + 53 + 19 + 65 + 30.
    "openai_agents_openinference_live_spans.json": Known(
        ("ask_math_specialist", "multiply_numbers", "divide_numbers", "divide_numbers"),
        ("coordinator", "math_specialist"),
        ("gpt-4o-mini-2024-07-18",) * 5,
        Tokens(input=1228, output=194, cache_read=0, reasoning=0),
        "What is 42 multiplied by 17, then divided by 3?",
        "The result of \\( 42 \\) multiplied by \\( 17 \\)",
        None,
        None,
    ),
    # `get_weather` was asked for and has no span; no span names a model or tokens.
    "openinference_live_spans.json": Known(
        ("get_weather", "finish"),
        ("route_to_agent",),
        (),
        Tokens(),
        "What is the weather difference between Taipei and Seattle?",
        "Taipei is warmer than Seattle overall.",
        None,
        None,
    ),
    # The agent says 150 and 42, the two calls 80 + 120 and 25 + 35.
    "otel_genai_convention_spans.json": Known(
        ("get_weather", "get_weather"),
        ("WeatherAssistant",),
        ("gpt-4o", "gpt-4o"),
        Tokens(input=200, output=60),
        "What's the weather in Paris and London?",
        "The weather in Paris is rainy at 57°F.",
        "conv_otel_test_001",
        {"WeatherAssistant": "TokenMismatch"},
    ),
    # The agent says 1251 and 78, the two calls 588 + 663 and 53 + 25.
    "pydantic_ai_live_spans.json": Known(
        ("get_weather",),
        ("agent",),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0",) * 2,
        Tokens(input=1251, output=78),
        "What's the weather like in Seattle right now?",
        "The current weather in Seattle is 62°F and cloudy with light rain.",
        "019f8b0c-5147-74b5-b1e4-f9b086da98e0",
        {"agent": "Agree"},
    ),
    # 1820 + 1956 in, 1792 of them cached; 13 + 117 out; each in ADK's span and in OpenAI's client.
    "helm.json": Known(
        ("helm_list_releases",),
        ("helm_agent",),
        ("gpt-4.1-mini-2025-04-14",) * 2,
        Tokens(input=1984, output=130, cache_read=1792, reasoning=0),
        "list all Helm releases",
        "There are two Helm releases installed in the cluster:",
        "ctx-7ed9780f-3688-4fc0-b10b-2e4df2f83cf0",
        None,
    ),
}


def raw(name: str) -> Any:
    return json.loads((HELM if name == HELM.name else SPANS / name).read_text())


def only(name: str) -> TraceSnapshot:
    (found,) = parse(raw(name))
    return found


def test_every_real_file_is_in_the_table() -> None:
    assert {path.name for path in SPANS.glob("*.json")} | {HELM.name} == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_what_a_file_holds(name: str) -> None:
    assert choose_format(trace_file(raw(name))).name == "opentelemetry"
    found, known = only(name), KNOWN[name]
    assert found.problem is None
    assert found.error is None
    assert found.error_spans == ()
    assert tuple(call.name for call in found.tool_calls) == known.tools
    assert found.agents == known.agents
    assert tuple(g.model for g in found.generations if g.model) == known.models
    assert found.tokens == known.tokens
    assert (found.prompt or "").startswith(known.prompt)
    assert (found.final_answer or "").startswith(known.answer)
    assert found.session_id == known.session


@pytest.mark.parametrize("name", KNOWN)
def test_what_its_fidelity_is(name: str) -> None:
    record, expected = only(name).workflow_record, KNOWN[name].verdicts
    if expected is None:
        assert record is None
        return
    assert record is not None
    assert {e.executor_id: e.verdict for e in strict.reconcile(record).executors} == expected


def test_calls_have_arguments_results_and_whose_they_are() -> None:
    paris, london = only("otel_genai_convention_spans.json").tool_calls
    assert (paris.arguments, paris.result, paris.status) == (
        {"location": "Paris"},
        "rainy, 57°F",
        "ok",
    )
    assert (london.arguments, london.status, london.error) == (
        {"location": "London"},
        "error",
        "TimeoutError",
    )
    by = {call.span_id: call.agent for call in only("claude_live_spans.json").tool_calls}
    assert by == {
        "51e6bd914525fee4": "ClaudeAgentSDK.query",
        "1c51a9dac98b8f20": "ClaudeAgentSDK.query",
        "1caa50d4f4973488": "research-specialist",
        "0030c035f039e139": "research-specialist",
        "a6e405461983ccf4": "ClaudeAgentSDK.query",
        "b29670c3fb945a41": "math-specialist",
    }
    (helm,) = only("helm.json").tool_calls
    assert helm.arguments == {}
    assert str(helm.result).startswith("NAME")


def test_the_inner_span_says_how_a_call_ended() -> None:
    """ADK says `stop` of a call that asked for a tool; OpenAI's client, inside, says what it did."""
    helm = only("helm.json")
    assert [g.finish_reason for g in helm.generations] == ["tool_calls", "stop"]
    assert [g.response_id for g in helm.generations] == [
        "chatcmpl-D9q5H84raMm0zTH5wd3lQfBgjuWAD",
        "chatcmpl-D9q5JI0FvSnRICgBDmb8NXdhm7NB8",
    ]
    assert helm.metadata == {"service.name": "helm_agent", "service.namespace": "kagent"}
    assert helm.name == "helm_agent"


def test_pydantic_ais_costs_are_those_of_its_calls() -> None:
    cost = only("pydantic_ai_live_spans.json").cost_usd
    assert cost == pytest.approx(0.0028149 + 0.0026004)


def test_all_files_together_are_one_trace_each() -> None:
    spans = [span for name in KNOWN if name != HELM.name for span in raw(name)]
    found = parse(spans)
    assert [item.tokens for item in found] == [
        known.tokens for name, known in KNOWN.items() if name != HELM.name
    ]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_real_files_with_some_things_wrong_are_read_or_refused(data: st.DataObject) -> None:
    names = [name for name in KNOWN if name != HELM.name]
    content = raw(data.draw(st.sampled_from(names)))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(content))))
        how = data.draw(st.sampled_from(["drop", "double", "set"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    text = json.dumps(content).encode()
    check_reading(text, "auto")
    check_reading(text[: data.draw(st.integers(0, len(text)))], "auto")
