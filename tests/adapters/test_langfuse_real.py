"""Langfuse on real files: what each of them states, by hand and by other means than the reader's.

Ten downloads from the UI, each of another agent framework, and eight traces recorded through the
API. The table below was filled in by reading the files; the sums are made once more from the raw
JSON. Then each file is put into the other shapes of Langfuse, and must read the same.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.traces import read_traces, why_unplaced
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from tests.adapters.test_formats import ODD, changed, check_reading, places
from tests.real_data import REAL, needs_real_data

pytestmark = [needs_real_data, pytest.mark.data]


class Stated(NamedTuple):
    """What a file states.

    Attributes:
        tools: Names of the tools called, in order.
        failed: (name, message) of each call that failed.
        around: Names of GENERATION rows that report again what a row inside them reports.
        generations: How many calls of a model there were.
        tokens: Of input, cached ones included, and of output, reasoning included; None where
            no row counts them.
        answer: How the final answer begins; None where there is none.
    """

    tools: list[str]
    generations: int
    tokens: tuple[int | None, int | None]
    models: set[str]
    agents: tuple[str, ...]
    prompt: str | None
    answer: str | None
    failed: tuple[tuple[str, str], ...] = ()
    error: str | None = None
    error_spans: tuple[str, ...] = ()
    around: frozenset[str] = frozenset()
    cached: int | None = None


WEATHER_AGENT = "171105b7-59dd-49c0-9677-0b95395aa46a"
JOKES = ["get_pun_suggestion", "get_dad_joke_suggestion", "get_one_liner_suggestion"]
SONNET = "claude-sonnet-4-5-20250929"
FAKE = "gpt-4o-2024-08-06"

STATED = {
    # Two instrumentations at once: `OpenAIChat.invoke` (OpenInference; Langfuse counted its text
    # itself: 542 + 1568) around `chat gpt-4o-mini` (163 + 663, what the API's answers say).
    "agno-2025-06-11.trace": Stated(
        ["duckduckgo_search"],
        2,
        (826, 245),
        {"gpt-4o-mini"},
        ("Agent",),
        "What is currently trending on Twitter?",
        "To find out what's currently trending",
        around=frozenset({"OpenAIChat.invoke"}),
    ),
    # Wikipedia is the three rows tool.search.wikipedia.{start,success,finish}-12; OpenMeteoTool
    # has no row of its own, only the agent's updates. Nobody counted the output.
    "beeai-2025-08-01.trace": Stated(
        ["Wikipedia", "OpenMeteoTool"],
        3,
        (1195 + 1988 + 2359, None),
        {"gpt-4o-mini"},
        ("ReActAgent",),
        "I'm planning a trip to Barcelona, Spain.",
        "Barcelona is a vibrant city",
    ),
    "claude-agent-2025-12-22.trace": Stated(
        ["mcp__weather__get_weather"] * 2,
        4,
        (19 + 5 + 5 + 5, 29 + 53 + 56 + 94),
        {SONNET},
        (),
        "What's the weather like in Berlin and New York?",
        "Great! Here's the current weather for both cities:",
    ),
    "crewai-2025-07-11.trace": Stated(
        [],
        1,
        (190, 164),
        {"gpt-4o-mini"},
        ("Software developer",),
        "\nCurrent Task: Define the HTML",
        "```html\n<!DOCTYPE html>",
        cached=0,
    ),
    "google-adk-2025-08-28.trace": Stated(
        ["say_hello"],
        2,
        (28 + 39, 3 + 6),
        {"gemini-2.0-flash"},
        ("hello_agent",),
        "hi",
        "Hello Langfuse 👋!\n",
    ),
    "langgraph-python-2025-08-22.trace": Stated(
        ["Web-Search"],
        2,
        (60 + 108, 15 + 51),
        {FAKE},
        (),
        "Search the web for 'example' and summarize.",
        'The search for "example" primarily leads to',
        cached=0,
    ),
    # The AGENT row's usage (44, 180) is neither the sum nor any of its generations'.
    "microsoft-agent-2025-12-17.trace": Stated(
        ["get_weather"],
        2,
        (77 + 216, 86 + 20),
        {"gpt-5-mini-2025-08-07"},
        (WEATHER_AGENT,),
        "What's the weather in Tokyo?",
        "Current conditions in Tokyo, Japan:",
    ),
    # The AGENT at the top, `Agent workflow`, is no agent: the one that acts is its graph's node.
    "openai-agents-2025-09-30.trace": Stated(
        ["get_weather"],
        2,
        (55 + 85, 15 + 29),
        {"gpt-4.1-2025-04-14"},
        ("Hello world",),
        "What's the weather in Tokyo?",
        "The weather in Tokyo is currently sunny.",
        cached=0,
    ),
    # `running 3 tools` holds the three; `final_result`, asked for by the evaluator, is declared
    # as an output tool. Latencies are milliseconds here, in all other files seconds.
    "pydantic-ai-tools-2025-12-04.trace": Stated(
        JOKES,
        4,
        (265 + 417 + 502 + 131, 73 + 53 + 14 + 69),
        {"gpt-4o-mini-2024-07-18"},
        ("joke_agent", "evaluator_agent"),
        "programming",
        "Why do programmers hate nature?",
    ),
    # The run stops at the tool's result: no answer.
    "vercel-aisdk-2025-11-17.trace": Stated(
        ["getWeather"],
        1,
        (62, 85),
        {"gpt-5"},
        (),
        "What is the weather like today in San Francisco?",
        None,
        around=frozenset({"ai.generateText"}),
    ),
    # The model is not in the generations, only in LangChain's first answer.
    "langgraph-3d2fd6": Stated(
        ["read_file", "read_file"],
        3,
        (10, 5),
        {FAKE},
        ("planner",),
        "please read a.py",
        "done",
    ),
    # One failure in three rows: the tool, its node and the root.
    "langgraph-bad-092ae7": Stated(
        ["read_file", "write_file"],
        2,
        (10, 5),
        {FAKE},
        ("planner",),
        "please read a.py",
        None,
        failed=(("write_file", "EACCES b.py"),),
        error="EACCES b.py",
    ),
    "observe-bad-993ec5": Stated(
        ["delete_page"],
        0,
        (None, None),
        set(),
        ("orchestrator",),
        None,
        "done",
        failed=(("delete_page", "not allowed Main"),),
    ),
    # No row of a tool: the request is in the generation's output.
    "openai-wrapper-206f11": Stated(["read_file"], 1, (10, 5), {FAKE}, (), "hi", None, cached=4),
    "openai-wrapper-bad-a74ac4": Stated(
        [],
        1,
        (None, None),
        {"gpt-4o"},
        (),
        "hi",
        None,
        error="Error code: 400 - model overloaded",
        error_spans=("OpenAI-generation",),
    ),
    "pydantic-ai-a79ce6": Stated(
        ["lookup"],
        2,
        (52 + 54, 5 + 10),
        {"test"},
        ("pa_agent",),
        "find it",
        '{"lookup":"found a"}',
    ),
    # The tool's row says nothing about its failure, the agent's around it does.
    "pydantic-ai-bad-e1897b": Stated(
        ["broken"],
        1,
        (51, 5),
        {"test"},
        ("pa_bad",),
        "x",
        None,
        failed=(("broken", "ValueError: boom a"),),
        error="ValueError: boom a",
    ),
    # The first call asks for a retry: it failed, the run recovered.
    "pydantic-ai-retry-0ab9b7": Stated(
        ["flaky", "flaky"],
        3,
        (51 + 56 + 57, 5 + 10 + 14),
        {"test"},
        ("pa_retry",),
        "x",
        '{"flaky":"ok"}',
        failed=(("flaky", "try again"),),
    ),
}
NAMES = list(STATED)


@cache
def path_of(name: str) -> Path:
    folder = "langfuse-exports" if name.endswith(".trace") else "langfuse-recorded"
    return REAL / folder / f"{name}.json"


@cache
def raw(name: str) -> Any:
    return json.loads(path_of(name).read_bytes())


def trace_of(name: str) -> dict[str, Any]:
    content = raw(name)
    found = content.get("trace") or {k: v for k, v in content.items() if k != "observations"}
    assert isinstance(found, dict)
    return found


def read(content: Any) -> TraceSnapshot:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    file = TraceFile("/x/t.json", "t.json", data)
    assert choose_format(file).name == "langfuse"
    (found,) = read_traces(file, ProjectConfig())
    return found


@cache
def snapshot(name: str) -> TraceSnapshot:
    return read(path_of(name).read_bytes())


def test_every_real_file_is_in_the_table() -> None:
    files = [*REAL.glob("langfuse-exports/*.json"), *REAL.glob("langfuse-recorded/*.json")]
    assert sorted(path.stem for path in files) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_tools_and_failures(name: str) -> None:
    found, stated = snapshot(name), STATED[name]
    assert [call.name for call in found.tool_calls] == stated.tools
    failed = [(call.name, call.error) for call in found.tool_calls if call.status == "error"]
    assert tuple(failed) == stated.failed
    assert found.error == stated.error
    assert tuple(span.name for span in found.error_spans) == stated.error_spans


@pytest.mark.parametrize("name", NAMES)
def test_who_spoke_and_what_was_said(name: str) -> None:
    found, stated = snapshot(name), STATED[name]
    assert found.agents == stated.agents
    assert {g.model for g in found.generations if g.model} == stated.models
    assert (found.prompt or "").startswith(stated.prompt or "")
    assert (found.prompt is None) is (stated.prompt is None)
    assert (found.final_answer or "").startswith(stated.answer or "")
    assert (found.final_answer is None) is (stated.answer is None)
    if found.final_answer is not None:
        assert found.final_answer in found.messages[-1].text


def usage(row: dict[str, Any], *names: str) -> int | None:
    known = [row["usageDetails"][key] for key in names if key in (row.get("usageDetails") or {})]
    return known[0] if known else None


@pytest.mark.parametrize("name", NAMES)
def test_tokens_are_those_of_the_generations_once(name: str) -> None:
    found, stated = snapshot(name), STATED[name]
    rows = [
        row
        for row in raw(name)["observations"]
        if row["type"] == "GENERATION" and row["name"] not in stated.around
    ]
    ingoing = [n for row in rows if (n := usage(row, "input", "prompt_tokens")) is not None]
    outgoing = [n for row in rows if (n := usage(row, "output", "completion_tokens")) is not None]
    assert (sum(ingoing) if ingoing else None, sum(outgoing) if outgoing else None) == stated.tokens
    tokens = found.tokens
    if stated.tokens[0] is not None:
        assert (tokens.input or 0) + (tokens.cache_read or 0) == stated.tokens[0]
    else:
        assert tokens.total is None
    assert tokens.cache_read == stated.cached
    given = None if tokens.output is None else tokens.output + (tokens.reasoning or 0)
    assert given == stated.tokens[1]
    assert len(found.generations) == stated.generations
    assert sum(g.tokens.total or 0 for g in found.generations) == (tokens.total or 0)


def test_agnos_tokens_are_what_the_api_answered() -> None:
    """Of the two rows of each call, the one that agrees with the model's own answer counts."""
    rows = raw("agno-2025-06-11.trace")["observations"]
    answers = [json.loads(r["output"]) for r in rows if r["name"] == "OpenAIChat.invoke"]
    assert sum(answer["usage"]["prompt_tokens"] for answer in answers) == 826
    assert sum(answer["usage"]["completion_tokens"] for answer in answers) == 245


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith(".trace")])
def test_costs_are_the_generations(name: str) -> None:
    costs = [
        row["totalCost"]
        for row in raw(name)["observations"]
        if row["type"] == "GENERATION" and row["name"] not in STATED[name].around
    ]
    assert snapshot(name).cost_usd == pytest.approx(sum(costs), abs=1e-12)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith(".trace")])
def test_costs_without_a_price_are_unknown(name: str) -> None:
    assert snapshot(name).cost_usd is None


@pytest.mark.parametrize("name", NAMES)
def test_durations_are_milliseconds(name: str) -> None:
    """Langfuse's own latency of a trace is in seconds; the API's recorded ones have it per row."""
    latency = trace_of(name).get("latency")
    if latency is None:
        latency = max(row["latency"] for row in raw(name)["observations"])
    duration = snapshot(name).duration_ms
    assert duration is not None
    assert abs(duration - latency * 1000) <= 1


@pytest.mark.parametrize("name", NAMES)
def test_what_identifies_a_trace(name: str) -> None:
    found, trace = snapshot(name), trace_of(name)
    assert (found.trace_id, found.name) == (trace["id"], trace["name"])
    assert (found.user_id, found.session_id) == (trace["userId"], trace["sessionId"])
    assert (found.environment, list(found.tags)) == (trace["environment"], trace["tags"])
    assert found.problem is None
    # It can be judged without a model, and placed under one only with it.
    no_model = "t.json: has no model (metadata model_name names one)"
    assert why_unplaced(found, ProjectConfig()) == (None if STATED[name].models else no_model)


def test_arguments_and_results() -> None:
    """One of each way to hide them."""

    def calls(name: str) -> list[tuple[Any, Any]]:
        return [(call.arguments, call.result) for call in snapshot(name).tool_calls]

    assert calls("google-adk-2025-08-28.trace") == [({}, {"greeting": "Hello Langfuse 👋"})]
    assert calls("claude-agent-2025-12-22.trace") == [
        ({"city": "Berlin"}, "Weather in Berlin: Cloudy, 59°F"),
        ({"city": "New York"}, "Weather in New York: Sunny, 75°F"),
    ]
    page = '[{"url": "https://example.com", "title": "Example Result", "q": "example"}]'
    assert calls("langgraph-python-2025-08-22.trace") == [({"query": "example"}, page)]
    assert calls("microsoft-agent-2025-12-17.trace") == [
        ({"location": "Tokyo, Japan"}, "The weather in Tokyo, Japan is stormy with a high of 23°C.")
    ]
    assert calls("vercel-aisdk-2025-11-17.trace") == [
        ({"location": "San Francisco"}, {"location": "San Francisco", "temperature": 64})
    ]
    assert calls("observe-bad-993ec5") == [({"args": ["Main"], "kwargs": {}}, None)]
    assert calls("openai-wrapper-206f11") == [({"path": "a"}, None)]
    (wiki, meteo) = calls("beeai-2025-08-01.trace")
    assert wiki[0] == {"query": "Tourism in Barcelona", "full_text": False}
    assert meteo[0] == {"location_name": "Barcelona", "country": "Spain"}
    assert meteo[1]["current"]["temperature_2m"] == 29.0


# The same traces in the other shapes.


def encoded(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def flattened(value: Any, prefix: str = "") -> dict[str, Any]:
    """Metadata as the v2 API has it: dotted keys of leaves, whose values are JSON once more."""
    while isinstance(value, str):
        value = json.loads(value)
    flat: dict[str, Any] = {}
    for key, item in value.items():
        if isinstance(item, dict):
            flat |= flattened(item, f"{prefix}{key}.")
        else:
            flat[prefix + key] = encoded(item)
    return flat


def v2_rows(name: str) -> list[dict[str, Any]]:
    """Rows of the observations API: no trace object, inputs and outputs raw texts."""
    trace = trace_of(name)
    own = {"traceName": trace["name"], "userId": trace["userId"], "tags": trace["tags"]}
    own |= {"sessionId": trace["sessionId"], "traceId": trace["id"]}
    return [
        {
            **row,
            **own,
            "providedModelName": row["model"],
            "model": None,
            "input": encoded(row["input"]),
            "output": encoded(row["output"]),
            "metadata": flattened(row["metadata"]),
        }
        for row in raw(name)["observations"]
    ]


def snake(key: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in key)


def blob_rows(name: str) -> list[dict[str, Any]]:
    """Rows of the blob export: snake_case, an empty text for null, ClickHouse's times."""
    rows: list[dict[str, Any]] = []
    for row in v2_rows(name):
        known = {snake(key): "" if value is None else value for key, value in row.items()}
        for key in ("start_time", "end_time"):
            known[key] = known[key].replace("T", " ").replace("Z", "000")
        known["model_parameters"] = encoded(known["model_parameters"])
        rows.append({**known, "tool_calls": [], "tool_call_names": []})
    return rows


def lines(rows: list[Any]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def in_pages(name: str) -> bytes:
    pages: list[Any] = [{"data": [row], "meta": {"cursor": "x"}} for row in v2_rows(name)]
    return lines([*pages, {"data": [], "meta": {}}])


def download(name: str) -> dict[str, Any]:
    return {"trace": trace_of(name), "observations": raw(name)["observations"]}


SHAPES: dict[str, Callable[[str], Any]] = {
    "v1": lambda name: {**trace_of(name), "observations": raw(name)["observations"]},
    "ui": download,
    "list": lambda name: [download(name)],
    "page": lambda name: {"data": v2_rows(name), "meta": {}},
    "pages": in_pages,
    "rows": v2_rows,
    "lines": lambda name: lines(v2_rows(name)),
    "blob": lambda name: lines(blob_rows(name)),
}


def comparable(found: TraceSnapshot) -> dict[str, Any]:
    known = {field: getattr(found, field) for field in found.__struct_fields__}
    known["problem"] = found.problem is not None  # its words say where in the file the trace is
    return {key: value for key, value in known.items() if key not in ("origin", "metadata")}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_a_trace_is_the_same_in_every_shape(name: str, shape: str) -> None:
    found, same = comparable(read(SHAPES[shape](name))), comparable(snapshot(name))
    if shape not in ("v1", "ui", "list") and name.startswith("pydantic-ai-tools"):
        # Its trace object has an input and output of its own, which no row carries: there the
        # root's are what was asked and answered.
        for known in (found, same):
            del known["final_answer"], known["messages"]
    assert found == same


@pytest.mark.parametrize("shape", ["ui", "page", "blob"])
def test_metadata_is_nested_in_every_shape(shape: str) -> None:
    found = read(SHAPES[shape]("langgraph-3d2fd6")).metadata
    assert found["projectid"] == "P1"
    assert found["thread_id"] == "proj:sess"
    assert found["attributes"]["user"] == {"id": "alice"}


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_the_order_of_rows_means_nothing(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    rows = data.draw(st.permutations(raw(name)["observations"]))
    found = read({"trace": trace_of(name), "observations": rows})
    assert comparable(found) == comparable(snapshot(name))


@pytest.mark.parametrize("name", NAMES)
def test_rows_seen_twice_count_once(name: str) -> None:
    rows = raw(name)["observations"]
    early = [
        {**row, "updatedAt": "2020-01-01T00:00:00Z", "endTime": None, "level": "ERROR"}
        for row in rows
    ]
    for doubled in (early + rows, rows + early):
        found = read({"trace": trace_of(name), "observations": doubled})
        assert comparable(found) == comparable(snapshot(name))


def test_all_files_together_are_one_trace_each() -> None:
    mixed = [row for name in NAMES for row in v2_rows(name)]
    file = TraceFile("/x/t.jsonl", "t.jsonl", lines(mixed))
    found = list(choose_format(file).parse(file))
    assert Counter(item.trace_id for item in found) == Counter(trace_of(n)["id"] for n in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_snapshots_can_be_written_and_read_back(name: str) -> None:
    data = msgspec.json.encode(snapshot(name))
    assert msgspec.json.decode(data, type=TraceSnapshot) == snapshot(name)


def test_no_snapshot_holds_the_projects_public_key() -> None:
    for name in NAMES:
        assert "public_key" not in json.dumps(msgspec.to_builtins(snapshot(name)), default=str)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_real_files_with_some_things_wrong_are_read_or_refused(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(NAMES))
    content = raw(name)
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(content))))
        how = data.draw(st.sampled_from(["drop", "double", "set"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    text = json.dumps(content).encode()
    check_reading(text, "langfuse")
    check_reading(text[: data.draw(st.integers(0, len(text)))], "langfuse")
