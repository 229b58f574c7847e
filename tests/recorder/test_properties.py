"""Whatever happens, nothing is lost or out of order, all is JSON, and what is hidden stays so."""

import json
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.recorder import Call, TraceRecorder
from benchmark_assets.recorder.events import read_journal, to_file, trace_of

NAMES = st.text(min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary(max_size=5)
    | st.decimals()
    | st.datetimes()
    | st.complex_numbers()
    | st.uuids(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text() | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=8,
)
STEP = st.one_of(
    st.tuples(st.just("tool"), NAMES, st.dictionaries(NAMES, ANYTHING, max_size=3)),
    st.tuples(st.just("start"), NAMES, st.dictionaries(NAMES, JSON, max_size=3)),
    st.tuples(st.just("end"), st.integers(0, 5), ANYTHING),
    st.tuples(st.just("fail"), st.integers(0, 5), st.text()),
    st.tuples(st.just("ask"), st.text(), st.none()),
    st.tuples(st.just("final"), ANYTHING, st.none()),
)


def perform(rec: TraceRecorder, steps: list[Any]) -> list[tuple[str, str]]:
    """Do what steps say; returns the calls and questions in the order in which they were made."""
    made: list[tuple[str, str]] = []
    running: list[Call] = []
    for kind, one, other in steps:
        match kind:
            case "tool":
                rec.on_tool(one, other, result=other)
                made.append(("tool", one))
            case "start":
                running.append(rec.start_tool(one, other))
                made.append(("tool", one))
            case "end" if running:
                running[one % len(running)].succeed(other)
            case "fail" if running:
                running[one % len(running)].fail(other)
            case "ask":
                rec.on_question(one)
                made.append(("ask", one))
            case "final":
                rec.on_final(one)
    return made


def in_order(trace: dict[str, Any]) -> list[tuple[str, str]]:
    """The calls and questions of a trace as one sequence."""
    found = [("tool", tool["name"]) for tool in trace["tools"]]
    for asked in reversed(trace["questions"]):
        found.insert(asked["before_tool"], ("ask", asked["text"]))
    return found


@given(st.lists(STEP, max_size=12))
def test_no_event_is_lost_or_moved(steps: list[Any]) -> None:
    rec = TraceRecorder()
    made = perform(rec, steps)
    trace = rec.dump()
    assert in_order(trace) == made
    assert trace["asked_clarification"] == any(kind == "ask" for kind, _ in made)


@given(st.lists(STEP, max_size=12))
def test_what_comes_out_is_json_that_reads_back(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, Path(folder, "j").open("ab", 0) as journal:
        rec = TraceRecorder(journal=journal)
        perform(rec, steps)
        trace = rec.dump()
        data = to_file(trace)
        assert json.loads(data) == trace
        assert trace_of(read_journal(Path(folder, "j").read_bytes())) == trace


@given(st.dictionaries(NAMES, JSON.filter(lambda value: value == value), max_size=4))
def test_json_is_kept_as_it_is(arguments: dict[str, Any]) -> None:
    rec = TraceRecorder()
    rec.on_tool("t", arguments)
    trace = rec.dump()
    if "as_text" not in trace:  # Infinity is not JSON.
        assert trace["tools"][0]["arguments"] == arguments


SECRET = st.text("0123456789abcdefghijklmnopqrstuvwxyz@", min_size=6, max_size=12).map(
    lambda text: f"geheim-{text}"
)

IN_CALLS = ("argument", "nested", "key", "list", "text", "result", "error", "raised")
PLACES = (*IN_CALLS, "question", "input", "final", "failure")


@given(
    secret=SECRET,
    where=st.sampled_from(PLACES),
    others=st.sampled_from(["hash", "drop"]),
    texts=st.sampled_from(["hash", "drop"]),
)
@settings(max_examples=200)
def test_secrets_reach_no_file(secret: str, where: str, others: Any, texts: Any) -> None:
    with tempfile.TemporaryDirectory() as folder, Path(folder, "j").open("ab", 0) as journal:
        rec = TraceRecorder(
            comparable={"t": ["order_id"], "other": ["card"]},
            comparable_final=["status"],
            others=others,
            texts=texts,
            journal=journal,
        )
        match where:
            case "argument":
                rec.on_tool("t", {"order_id": 1, "card": secret})
            case "nested":
                rec.on_tool("t", {"order_id": 1, "body": {"a": [{"b": secret}]}})
            case "key":
                rec.on_tool("t", {"order_id": 1, "by_mail": {secret: 1}})
            case "list":
                rec.on_tool("t", {"cards": [secret, secret]})
            case "text":
                rec.on_tool("t", secret)
            case "result":
                rec.on_tool("t", {"order_id": 1}, result={"card": secret})
            case "error":
                rec.on_tool("t", {}, error=f"card {secret} was declined")
            case "raised":
                rec.on_tool("t", {}, error=ValueError(secret))
            case "question":
                rec.on_question(f"Is it {secret}?")
            case "input":
                rec.on_input(f"My card is {secret}")
            case "final":
                rec.on_final({"status": "ok", "card": {"number": secret}})
            case "failure":
                rec.on_error(RuntimeError(f"no card {secret}"))
        rec.write(Path(folder, "t.json"))
        for file in ("t.json", "j"):
            assert secret.encode() not in Path(folder, file).read_bytes()
        assert rec.dump()["redacted"]


@given(SECRET)
def test_the_search_for_secrets_can_find_one(secret: str) -> None:
    rec = TraceRecorder(comparable={"t": ["card"]})
    rec.on_tool("t", {"card": secret})
    assert secret.encode() in to_file(rec.dump())
