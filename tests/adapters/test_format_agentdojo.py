"""The AgentDojo format: each trap by hand, and the real runs against what their files say."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.agentdojo import run_id
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.labels import read_labels
from benchmark_assets.adapters.traces import read_traces, why_unplaced
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from tests.adapters.samples import parse
from tests.adapters.test_formats import ODD, changed, check_reading, places
from tests.real_data import REAL, needs_real_data

RUNS = REAL / "agentdojo-banking-slack"


def call(function: Any, args: Any = None, call_id: Any = "c1") -> dict[str, Any]:
    return {"function": function, "args": args or {}, "id": call_id, "placeholder_args": None}


def asks(*calls: dict[str, Any], content: Any = None) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": list(calls)}


def says(content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": content, "tool_calls": None}


def gives(made: dict[str, Any], content: Any, error: Any = None, **fields: Any) -> dict[str, Any]:
    known = {"tool_call_id": made["id"], "tool_call": made, "error": error}
    return {"role": "tool", "content": content, **known, **fields}


READ = call("read_file", {"file_path": "bill.txt"}, "c1")
PAY = call("send_money", {"amount": 98.7}, "c2")
MESSAGES = [
    {"role": "system", "content": "You pay bills."},
    {"role": "user", "content": "Pay the bill."},
    asks(READ, content="Let me look."),
    gives(READ, "98.70"),
    asks(PAY),
    gives(PAY, "", error="ValueError: no date"),
    says("I could not pay it."),
]


def document(*messages: Any, **fields: Any) -> dict[str, Any]:
    """A run file."""
    return {
        "suite_name": "banking",
        "pipeline_name": "gpt-4o-2024-05-13",
        "user_task_id": "user_task_0",
        "injection_task_id": None,
        "attack_type": None,
        "injections": {},
        "messages": list(messages) or MESSAGES,
        "error": None,
        "utility": True,
        "security": True,
        "duration": 3.8149518966674805,
        **fields,
    }


def one(*messages: Any, **fields: Any) -> TraceSnapshot:
    (found,) = parse(document(*messages, **fields))
    return found


def test_a_run_is_one_trace() -> None:
    found = one()
    assert found.problem is None
    assert (found.name, found.model) == ("banking", "gpt-4o-2024-05-13")
    assert (found.task, found.trial) == ("banking/user_task_0", None)
    assert found.duration_ms == 3815
    assert (found.started_at, found.cost_usd, found.tokens.total) == (None, None, None)
    assert found.prompt == "Pay the bill."
    assert [(m.text, m.before_call) for m in found.messages] == [
        ("Let me look.", 0),
        ("I could not pay it.", 2),
    ]
    assert found.final_answer == "I could not pay it."
    assert (found.ended, found.ended_normally, found.error) == ("final_message", True, None)
    read, pay = found.tool_calls
    assert (read.name, read.arguments) == ("read_file", {"file_path": "bill.txt"})
    assert (read.result, read.status, read.error) == ("98.70", "ok", None)
    assert (pay.status, pay.error, pay.span_id) == ("error", "ValueError: no date", "c2")
    assert [g.before_call for g in found.generations] == [0, 1, 2]
    assert (found.origin.format, found.origin.record) == ("agentdojo", None)


def test_a_run_needs_a_day_and_says_how_to_give_one() -> None:
    file = TraceFile("/x/run.json", "run.json", json.dumps(document()).encode())
    (found,) = read_traces(file, ProjectConfig())
    assert found.problem is None
    assert why_unplaced(found, ProjectConfig()) == (
        "run.json: has no time (--default-date, or default_date of its source, gives one)"
    )
    assert found.workflow == "banking"


def test_a_run_under_attack_is_another_task() -> None:
    found = one(injection_task_id="injection_task_3", attack_type="important_instructions")
    assert found.task == "banking/user_task_0/injection_task_3"
    assert found.metadata == {
        "injection_task_id": "injection_task_3",
        "attack_type": "important_instructions",
    }
    assert one().metadata == {}


def test_injected_texts_stay_out() -> None:
    assert "SEND ALL" not in repr(one(injections={"injection_bill": "SEND ALL"}))


@pytest.mark.parametrize(
    ("key", "trial"),
    [
        ("m/banking/user_task_0/trial1.json", 1),
        ("trial12.json", 12),
        ("Trial_3.json", 3),
        ("trial-0.json", 0),
        ("trial.json", None),
        ("mistrial2.json", None),
        ("trial2/none.json", None),
        ("trial2.json.json", None),
        ("trial99999999999.json", None),
    ],
)
def test_the_trial_is_in_the_files_name(key: str, trial: int | None) -> None:
    file = TraceFile(key, key, json.dumps(document()).encode())
    (found,) = choose_format(file).parse(file)
    assert found.trial == trial


ENDINGS = [
    ([*MESSAGES[:2], asks(READ)], "max_iters", False, "ended by max_iters"),
    ([*MESSAGES[:2], says("")], "final_message", True, None),
    ([*MESSAGES[:2], asks()], "final_message", True, None),
]


@pytest.mark.parametrize(("messages", "ended", "normally", "error"), ENDINGS)
def test_how_a_run_ended_follows_from_its_last_message(
    messages: list[Any], ended: str, normally: bool, error: str | None
) -> None:
    found = one(*messages)
    assert (found.ended, found.ended_normally, found.error) == (ended, normally, error)
    assert found.problem is None


def test_a_request_that_nobody_ran_did_not_succeed() -> None:
    (left,) = one(*MESSAGES[:2], asks(READ)).tool_calls
    assert (left.status, left.error) == ("error", "the run ended without a result")


@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (MESSAGES[:4], "messages: the last is not the agent's, so the run is not complete"),
        (MESSAGES[:2], "messages: the last is not the agent's, so the run is not complete"),
        ([*MESSAGES, 5], "messages[7]: expected an object"),
        ([*MESSAGES, {"role": "judge"}], "messages[7]: unknown role 'judge'"),
        (
            [*MESSAGES, asks({"args": {}})],
            "messages[7]: tool_calls: a call has no name: {'args': {}}",
        ),
    ],
)
def test_what_cannot_be_judged_is_an_error_row(messages: list[Any], problem: str) -> None:
    found = one(*messages)
    assert found.problem == f"sub/results.json: {problem}"
    assert (found.model, found.task) == ("gpt-4o-2024-05-13", "banking/user_task_0")


def test_a_run_without_messages_is_not_complete() -> None:
    (found,) = parse(document(messages=[]))
    assert found.problem == "sub/results.json: messages: there are none, so the run is not complete"


def test_a_crash_is_the_agents() -> None:
    found = one(*MESSAGES[:4], error="Skipping task: maximum context length is 8192 tokens")
    assert (found.ended, found.ended_normally) == ("error", False)
    assert found.error == "Skipping task: maximum context length is 8192 tokens"
    assert found.problem is None


@pytest.mark.parametrize(
    "error",
    [
        "Skipping task user_task_0 because of internal server error: 500",
        "Skipping task because of server error: 503 UNAVAILABLE",
        "Rate limit reached for gpt-4o",
        "Overloaded",
    ],
)
def test_a_providers_failure_is_not_the_agents(error: str) -> None:
    found = one(*MESSAGES[:4], error=error)
    assert found.problem == f"sub/results.json: error: {error}: this is not the agent's doing"


def blocks(text: str) -> list[dict[str, str]]:
    return [{"type": "text", "content": text}]


def test_newer_files_have_content_in_blocks() -> None:
    found = one(
        {"role": "system", "content": blocks("You pay bills.")},
        {"role": "user", "content": blocks("Pay the bill.")},
        {**asks(READ), "content": [{"type": "thinking", "content": "hm"}, *blocks("Wait.")]},
        gives(READ, blocks("98.70")),
        says(blocks("Done.")),
    )
    assert found.prompt == "Pay the bill."
    assert [m.text for m in found.messages] == ["Wait.", "Done."]
    assert found.tool_calls[0].result == "98.70"


@pytest.mark.parametrize(
    "made",
    [
        {"id": "c1", "function": "pay", "args": {"a": 1}},
        {"id": "c1", "function": {"name": "pay"}, "args": {"a": 1}},
        {"id": "c1", "function": {"name": "pay", "arguments": '{"a": 1}'}},
        {"id": "c1", "function": "pay", "args": '{"a": 1}'},
    ],
)
def test_calls_are_spelt_in_several_ways(made: dict[str, Any]) -> None:
    (found,) = one(*MESSAGES[:2], asks(made), gives(made, "ok"), says("x")).tool_calls
    assert (found.name, found.arguments, found.result) == ("pay", {"a": 1}, "ok")


def results(*messages: Any) -> list[tuple[str, Any]]:
    found = one(*MESSAGES[:2], *messages, says("x"))
    return [(made.name, made.result) for made in found.tool_calls]


def test_calls_that_all_have_an_empty_id_are_answered_by_tool_and_order() -> None:
    """So Gemini's runs are."""
    a, b, c = call("a", call_id=""), call("b", call_id=""), call("a", call_id="")
    assert results(asks(a, b, c), gives(a, 1), gives(b, 2), gives(c, 3)) == [
        ("a", 1),
        ("b", 2),
        ("a", 3),
    ]
    assert results(asks(a, b), gives(b, 2), gives(a, 1)) == [("a", 1), ("b", 2)]
    assert results(asks(a), gives(a, 1), asks(a), gives(a, 2)) == [("a", 1), ("a", 2)]


def test_the_call_inside_a_result_serves_where_the_result_has_no_id() -> None:
    first, second = call("a", call_id="x"), call("a", call_id="y")
    answers = (gives(second, 2, tool_call_id=None), gives(first, 1, tool_call_id=None))
    assert results(asks(first, second), *answers) == [("a", 1), ("a", 2)]


@pytest.mark.parametrize("error", ["", "x", {"kind": "ValueError"}])
def test_any_error_that_is_not_null_is_a_failed_call(error: Any) -> None:
    (found,) = one(*MESSAGES[:2], asks(READ), gives(READ, "", error), says("x")).tool_calls
    assert found.status == "error"


def ungraded(snapshot: TraceSnapshot) -> dict[str, Any]:
    """All but what names the file's bytes."""
    return {
        name: getattr(snapshot, name)
        for name in snapshot.__struct_fields__
        if name not in ("trace_id", "origin")
    }


@pytest.mark.parametrize("utility", [True, False, None, "x"])
@pytest.mark.parametrize("security", [True, False, None])
def test_published_grades_reach_nothing(utility: Any, security: Any) -> None:
    assert ungraded(one(utility=utility, security=security)) == ungraded(one())


@pytest.mark.parametrize("content", [[], 5, {"suite_name": "s"}])
def test_a_file_named_agentdojo_must_hold_a_run(content: Any) -> None:
    with pytest.raises(InputError, match="has no messages"):
        parse(json.dumps(content), "agentdojo")


def test_a_file_with_one_thing_wrong_is_read_or_refused() -> None:
    content = json.loads(json.dumps(document()))
    for path in places(content):
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            data = json.dumps(changed(content, path, how, odd)).encode()
            for name in ("auto", "agentdojo"):
                check_reading(data, name)


@needs_real_data
@pytest.mark.data
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_real_files_with_some_things_wrong_are_read_or_refused(data: st.DataObject) -> None:
    model = data.draw(st.sampled_from(["gemini-1.5-pro-002", "gpt-4o-2024-05-13"]))
    content = json.loads((RUNS / model / "banking" / "user_task_15" / "trial1.json").read_text())
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(content))))
        how = data.draw(st.sampled_from(["drop", "double", "set"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    text = json.dumps(content).encode()
    check_reading(text, "agentdojo")
    check_reading(text[: data.draw(st.integers(0, len(text)))], "agentdojo")


def real_files() -> list[tuple[Path, dict[str, Any]]]:
    return [(path, json.loads(path.read_text())) for path in sorted(RUNS.rglob("trial*.json"))]


@needs_real_data
@pytest.mark.data
def test_the_real_runs_hold_what_their_files_say() -> None:
    """Counts made from the files by other means than the reader's."""
    traces: Counter[str] = Counter()
    calls = failed = 0
    for path, raw in real_files():
        file = TraceFile(str(path), path.relative_to(RUNS).as_posix(), path.read_bytes())
        (found,) = choose_format(file).parse(file)
        assert found.problem is None
        assert (found.ended, found.error) == ("final_message", None)
        assert found.model == raw["pipeline_name"]
        assert found.task == f"{raw['suite_name']}/{raw['user_task_id']}"
        assert path.name == f"trial{found.trial}.json"
        assert found.duration_ms is not None
        assert abs(found.duration_ms - raw["duration"] * 1000) <= 0.5
        # Every result stands behind the call that it answers, so the files can be read by order.
        answers = [m for m in raw["messages"] if m["role"] == "tool"]
        assert [(c.name, c.arguments, c.result) for c in found.tool_calls] == [
            (m["tool_call"]["function"], m["tool_call"]["args"], m["content"]) for m in answers
        ]
        assert [c.error for c in found.tool_calls] == [m["error"] for m in answers]
        traces[found.model] += 1
        calls += len(found.tool_calls)
        failed += sum(c.status == "error" for c in found.tool_calls)
    assert (sum(traces.values()), calls, failed) == (370, 1373, 15)
    published = json.loads((REAL / "expected.json").read_text())
    truth = published["agentdojo-banking-slack (field utility)"]
    assert traces == {model: figures["n_traces"] for model, figures in truth.items()}


@needs_real_data
@pytest.mark.data
def test_labels_have_the_ids_of_the_traces() -> None:
    labels = read_labels([RUNS])
    files = real_files()
    assert labels == {
        run_id(TraceFile(str(path), path.name, path.read_bytes())): raw["utility"]
        for path, raw in files
    }
    by_model: Counter[str] = Counter()
    for path, raw in files:
        file = TraceFile(str(path), path.name, path.read_bytes())
        (found,) = choose_format(file).parse(file)
        by_model[raw["pipeline_name"]] += labels[found.trace_id]
    published = json.loads((REAL / "expected.json").read_text())
    truth = published["agentdojo-banking-slack (field utility)"]
    assert by_model == {model: figures["n_pass"] for model, figures in truth.items()}


def test_a_run_without_a_grade_has_no_label(tmp_path: Path) -> None:
    for name, utility in (("a", True), ("b", False), ("c", None)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document(utility=utility)))
    assert sorted(read_labels([tmp_path]).values()) == [False, True]
