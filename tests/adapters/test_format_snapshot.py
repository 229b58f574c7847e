"""The snapshot format: what anyone can write to be benchmarked, and what a bad record costs."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.model.trace import (
    Generation,
    Message,
    Origin,
    Tokens,
    ToolCall,
    TraceSnapshot,
)
from tests.adapters.samples import DATA, NAME, lines, one, parse, record, snapshot, trace_file

ENCODER = msgspec.json.Encoder(order="deterministic")


@pytest.mark.parametrize(
    ("content", "records"),
    [
        (record("a"), [None]),
        (lines(record("a")), [None]),
        ([record("a")], ["[0]"]),
        ([record("a"), record("b")], ["[0]", "[1]"]),
        (lines(record("a"), record("b")), ["line 1", "line 2"]),
        (lines(record("a"), "", record("b"), end="\r\n"), ["line 1", "line 3"]),
    ],
)
def test_one_a_list_and_lines(content: Any, records: list[str | None]) -> None:
    found = parse(content)
    assert [item.trace_id for item in found] == ["a", "b"][: len(records)]
    assert [item.origin.record for item in found] == records
    assert all(item.problem is None for item in found)
    assert {item.origin.format for item in found} == {"snapshot"}


def test_a_file_as_people_write_it_is_read_field_by_field() -> None:
    path = DATA / "snapshot" / "refund.json"
    (found,) = parse(path.read_bytes())
    assert found == TraceSnapshot(
        trace_id="run-17",
        origin=found.origin,
        model="gpt-4o",
        task="refund/1",
        trial=2,
        started_at=found.started_at,
        metadata={"workflow_name": "refund", "build": 81},
        tags=("nightly",),
        prompt="I want my money back for order 4711.",
        final_answer="You get $98.70 back.",
        ended="done",
        tokens=Tokens(input=900, output=75, cache_read=300, reasoning=0),
        cost_usd=0.0,
        tool_calls=(
            ToolCall(name="get_order", arguments={"order_id": "4711"}, result={"total": 98.7}),
            ToolCall(name="refund", arguments={"order_id": "4711"}, status="error", error="busy"),
        ),
        messages=(Message(text="You get $98.70 back.", before_call=2),),
        generations=(Generation(model="gpt-4o-2024-11-20", cost_usd=0.0),),
    )
    assert str(found.started_at) == "2026-03-01 12:00:00+01:00"
    assert found.origin.sha256 == trace_file(path.read_bytes()).sha256


def test_only_the_id_is_needed() -> None:
    (found,) = parse({"trace_id": "t", "prompt": "p"})
    assert found == TraceSnapshot(trace_id="t", origin=found.origin, prompt="p")
    # What nobody measured is unknown, not 0.
    assert found.tokens.buckets() == (None,) * 5
    assert (found.cost_usd, found.duration_ms, found.trial) == (None, None, None)


def test_unknown_keys_are_ignored_at_every_depth() -> None:
    plain = record(tool_calls=[{"name": "get"}], tokens={"input": 1})
    more = record(
        tool_calls=[{"name": "get", "vendor": {"x": 1}}], tokens={"input": 1, "audio": 5}, foo=[1]
    )
    (one_,), (other,) = parse(plain), parse(more)
    assert msgspec.structs.replace(other, origin=one_.origin) == one_


def test_published_grades_have_no_place_in_a_snapshot() -> None:
    (found,) = parse(record(reward=1.0, reward_info={"reward": 1.0}, utility=True, score=0.25))
    assert b"reward" not in ENCODER.encode(found)
    assert b"utility" not in ENCODER.encode(found)


def test_origin_is_filled_in_or_kept() -> None:
    (filled,) = parse(record())
    assert filled.origin == Origin(
        file="sub/results.json", sha256=trace_file(record()).sha256, format="snapshot"
    )
    (kept,) = parse(msgspec.to_builtins(snapshot()))
    assert kept.origin == snapshot().origin


BAD = [
    (record("bad", tags="nightly"), "Expected `array`, got `str` - at `$.tags`"),
    (record("bad", tool_calls=[{"arguments": {}}]), "missing required field `name`"),
    (record("bad", tool_calls=[{"name": "x", "status": "done"}]), "$.tool_calls[0].status"),
    (record("bad", cost_usd="0.5"), "Expected `float | null`, got `str` - at `$.cost_usd`"),
    (record("bad", started_at="yesterday"), "$.started_at"),
    (record("bad", duration_ms=-1), "from 0 to 9007199254740992 - at `$.duration_ms`"),
    (record("bad", duration_ms=2**60), "at `$.duration_ms`"),
    (record("bad", cost_usd=-0.01), "at `$.cost_usd`"),
    (record("bad", cost_usd=1e300), "at `$.cost_usd`"),
    (record("bad", trial=-1), "from 0 to 2147483647 - at `$.trial`"),
    (record("bad", trial=2**31), "at `$.trial`"),
    (record("bad", tokens={"input": -5}), "at `$.tokens.input`"),
    (record("bad", tokens={"cache_write": 2**54}), "at `$.tokens.cache_write`"),
    (record("bad", generations=[{}, {"cost_usd": -1}]), "at `$.generations[1].cost_usd`"),
    (
        record("bad", generations=[{"tokens": {"reasoning": -1}}]),
        "at `$.generations[0].tokens.reasoning`",
    ),
    (record("", model="m"), "not empty - at `$.trace_id`"),
    ({"model": "m"}, "missing required field `trace_id`"),
    (5, "Expected `object`, got `int`"),
    (None, "Expected `object`, got `NoneType`"),
    ([record()], "Expected `object`, got `list`"),
]


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("as_lines", [True, False], ids=["lines", "list"])
@pytest.mark.parametrize(("bad", "message"), BAD)
def test_one_bad_record_becomes_an_error_row(
    bad: Any, message: str, as_lines: bool, position: int
) -> None:
    values: list[Any] = [record("a"), record("b")]
    values.insert(position, bad)
    found = parse(lines(*values) if as_lines else values)
    row = found.pop(position)
    assert [(item.trace_id, item.problem) for item in found] == [("a", None), ("b", None)]
    where = f"line {position + 1}" if as_lines else f"[{position}]"
    assert row.problem is not None
    assert row.problem.startswith(f"sub/results.json: {where}: is no valid snapshot: ")
    assert message in row.problem
    assert row.origin.record == where


@pytest.mark.parametrize(("broken", "message"), [("oops", "is not JSON"), ('{"a": ', "cut off")])
@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_line_that_is_not_json_becomes_an_error_row(
    broken: str, message: str, position: int
) -> None:
    values: list[Any] = [record("a"), record("b")]
    values.insert(position, broken)
    found = parse(lines(*values))
    row = found.pop(position)
    assert [(item.trace_id, item.problem) for item in found] == [("a", None), ("b", None)]
    assert row.problem is not None
    assert row.problem.startswith(f"sub/results.json:{position + 1}: ")
    assert message in row.problem
    assert NAME not in row.problem
    assert len(row.trace_id) == 32


def test_what_can_still_be_read_places_an_error_row() -> None:
    row, _ = parse([record("bad", name="n", tool_calls=5), record()])
    assert (row.trace_id, row.name, row.workflow, row.model, row.task) == (
        "bad",
        "n",
        "support",
        "gpt-4o",
        "task-1",
    )
    assert str(row.started_at) == "2026-03-01 12:00:00+00:00"


def test_error_rows_of_one_file_have_ids_of_their_own() -> None:
    found = parse([5, 5, record()])
    assert len({item.trace_id for item in found}) == 3


@pytest.mark.parametrize(
    "item",
    [
        snapshot(),
        TraceSnapshot(trace_id="t", origin=snapshot().origin),
        TraceSnapshot(trace_id="t", origin=snapshot().origin, problem="could not be read"),
        one(),
        one("not a message"),
    ],
    ids=["placed", "bare", "error row", "tau2", "tau2 error row"],
)
def test_what_was_normalised_is_read_back_equal(item: TraceSnapshot) -> None:
    assert parse(ENCODER.encode(item)) == [item]
    assert parse(lines(*[ENCODER.encode(item).decode()] * 2)) == [item, item]


@given(
    st.builds(
        TraceSnapshot,
        trace_id=st.text(st.characters(codec="utf-8"), min_size=1),
        origin=st.just(snapshot().origin),
        prompt=st.none() | st.text(st.characters(codec="utf-8")),
        trial=st.none() | st.integers(0, 2**31 - 1),
        cost_usd=st.none() | st.floats(0, 1e6),
        tokens=st.builds(Tokens, input=st.none() | st.integers(0, 2**53)),
        metadata=st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers()),
    )
)
def test_any_snapshot_is_read_back_equal(item: TraceSnapshot) -> None:
    assert parse(ENCODER.encode(item)) == [item]


def test_no_problem_names_an_absolute_path() -> None:
    content = lines("oops", 5, record(tags=5), '{"x"', record())
    for item in parse(content):
        assert NAME not in json.dumps(msgspec.to_builtins(item))


# Keys that are nearly a known one: dropped in silence they would count against the model.


@pytest.mark.parametrize(
    ("odd", "said"),
    [
        ({"final_anwser": "x"}, "final_anwser is not a known key; did you mean 'final_answer'?"),
        ({"tool_cals": []}, "tool_cals is not a known key; did you mean 'tool_calls'?"),
        (
            {"tool_calls": [{"name": "a"}, {"name": "b", "args": {}}]},
            "tool_calls[1].args is not a known key; did you mean 'arguments'?",
        ),
        ({"tool_calls": [{"tool": "a"}]}, "tool_calls[0].tool is not a known key; did you mean"),
        (
            {"tool_calls": [{"name": "a", "input": 1, "output": 2}]},
            "did you mean 'arguments'?; tool_calls[0].output is not a known key",
        ),
        ({"tokens": {"inputs": 3}}, "tokens.inputs is not a known key; did you mean 'input'?"),
        ({"messages": [{"text": "a", "before_calls": 0}]}, "did you mean 'before_call'?"),
    ],
)
def test_a_misspelt_key_is_an_error_row_that_says_which(odd: dict[str, Any], said: str) -> None:
    (found,) = parse({"trace_id": "t", "prompt": "p", **odd})
    assert said in (found.problem or "")
    assert found.trace_id == "t"


@pytest.mark.parametrize(
    "own",
    [
        {"span_kind": "x", "build": 7},
        {"tool_calls": [{"name": "a", "arguments": {}, "args": 1, "retries": 2}]},
        {"tool_calls": [{"name": "a", "arguments": {"argumets": 1}}]},
        {"metadata": {"final_anwser": 1}},
        {"final_answer": "a", "final_answers": ["a"]},
    ],
)
def test_a_writers_own_keys_are_ignored(own: dict[str, Any]) -> None:
    (found,) = parse({"trace_id": "t", "prompt": "p", **own})
    assert found.problem is None


# Both sides of a workflow.

SIDES: dict[str, Any] = {
    "ledger": [{"executor": "a", "usage": {"input": 90, "output": 10, "total": 100}, "calls": 1}],
    "turns": [{"executor": "a", "usage": {"input": 90, "output": 10, "total": 100}}],
}


def with_sides(*place: str | int, value: Any) -> dict[str, Any]:
    """A record whose workflow has another value at a place."""
    sides = json.loads(json.dumps(SIDES))
    inner = sides
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    return record("a", workflow_record=sides)


@pytest.mark.parametrize("side", ["ledger", "turns"])
@pytest.mark.parametrize("name", ["input", "output", "total", "cached", "reasoning"])
@pytest.mark.parametrize("count", [-1, 2**53 + 1, 2**63, 2**64, 10**30, "90", True, [], {}])
def test_counts_of_a_workflow_that_measure_nothing_are_an_error_row(
    side: str, name: str, count: Any
) -> None:
    bad, good = parse([with_sides(side, 0, "usage", name, value=count), record("b")])
    assert good.problem is None
    assert bad.workflow_record is None
    assert f"workflow_record.{side}[0].usage.{name}" in (bad.problem or "")


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("ledger", 0, "calls"), -1),
        (("ledger", 0, "calls"), 2**63),
        (("ledger", 0, "executor"), ""),
        (("turns", 0, "executor"), ""),
    ],
)
def test_entries_of_nobody_and_impossible_calls_are_an_error_row(
    place: tuple[str | int, ...], value: Any
) -> None:
    (found,) = parse(with_sides(*place, value=value))
    assert found.workflow_record is None
    assert f"workflow_record.{place[0]}[0].{place[2]}" in (found.problem or "")


@pytest.mark.parametrize("side", ["ledger", "turns"])
@pytest.mark.parametrize("name", ["input", "output", "total", "cached", "reasoning"])
def test_a_count_of_a_workflow_may_be_written_as_a_float(side: str, name: str) -> None:
    (found,) = parse(with_sides(side, 0, "usage", name, value=7.0))
    assert found.problem is None
    assert found.workflow_record is not None
    assert getattr(getattr(found.workflow_record, side)[0].usage, name) == 7


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"ledgr": []}, "workflow_record.ledgr is not a known key; did you mean 'ledger'?"),
        ({"ledger": [{"executor": "a", "usgae": {}}]}, "ledger[0].usgae"),
        ({"ledger": [{"executor": "a", "stop_reason": "stop"}]}, "'finish_reason'"),
        ({"turns": [{"executor": "a", "finishReason": "stop"}]}, "'finish_reason'"),
        ({"turns": [{"executor": "a", "usage": {"total_tokens": 5}}]}, "usage.total_tokens"),
        ({"turns": [{"executor": "a", "usage": {"prompt_tokens": 5}}]}, "'input'"),
        ({"turns": [{"executor": "a", "usage": {"completionTokens": 5}}]}, "'output'"),
    ],
)
def test_a_misspelt_key_of_a_workflow_is_not_taken_for_silence(
    value: dict[str, Any], said: str
) -> None:
    (found,) = parse(record("a", workflow_record=value))
    assert found.workflow_record is None
    assert said in (found.problem or "")
