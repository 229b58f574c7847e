"""What Claude Code's sessions report of their agents: small sessions, then the real ones."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from benchmark_assets.model.fidelity import Usage, WorkflowFidelity, WorkflowRecord
from benchmark_assets.scoring.trace_fidelity.strict import reconcile
from tests.adapters import test_claude_code_real as real
from tests.adapters.odd_ledgers import records_through_the_store
from tests.adapters.test_format_claude_code import gives, row, says, session, told, use, user
from tests.real_data import needs_real_data

SIDE: dict[str, Any] = {"isSidechain": True}


def task(call_id: str = "t1", prompt: str = "Review it.", kind: str = "reviewer") -> dict[str, Any]:
    given = {"subagent_type": kind, "prompt": prompt}
    return says(use("Task", given, call_id), answer=f"main of {call_id}")


def usage(fresh: int, written: int, read: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": fresh,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": output,
    }


def answer(answer_id: str, used: dict[str, int], *blocks: Any, **fields: Any) -> dict[str, Any]:
    """A row of a sub-agent's answer in a side chain."""
    known = {"answer": answer_id, "usage": used, "uuid": answer_id, **SIDE}
    return says(*(blocks or ("Fine.",)), **{**known, **fields})


def shown(answer_id: str, used: dict[str, int], *blocks: Any, **fields: Any) -> dict[str, Any]:
    """The same in a progress row; without blocks it asks for a tool."""
    content = list(blocks) or [use("Read", None, f"call of {answer_id}")]
    message = {"id": answer_id, "model": "claude-haiku", "content": content, "usage": used}
    return told("assistant", message | fields.pop("message", {}), **fields)


def ran(total: Any, last: Any = None, call_id: str = "t1", **details: Any) -> dict[str, Any]:
    """The result of the call that ran the sub-agent."""
    known = {"status": "completed", "agentId": "a77", "totalToolUseCount": 1, "totalTokens": total}
    if last is not None:
        known["usage"] = last
    return user([gives("Fine.", call_id)], toolUseResult={**known, **details})


def chain(*answers: dict[str, Any], prompt: str = "Review it.", at: str = "s") -> list[Any]:
    """A side chain that begins with what the sub-agent was asked; each row after another."""
    rows = [user(prompt, uuid=f"{at}0", **SIDE)]
    for index, given in enumerate(answers):
        rows.append({**given, "parentUuid": f"{at}{index}", "uuid": f"{at}{index + 1}"})
    return rows


def record(*rows: Any) -> WorkflowRecord:
    found = session(user(), *rows).workflow_record
    assert found is not None
    return found


def judged(*rows: Any) -> WorkflowFidelity:
    return reconcile(record(*rows))


def verdicts(*rows: Any) -> dict[str, str]:
    return {item.executor_id: item.verdict for item in judged(*rows).executors}


FIRST, SECOND = usage(3, 500, 0, 40), usage(2, 60, 500, 80)
DONE = {"stop_reason": "end_turn"}
ASKS = {"stop_reason": "tool_use"}
BOTH = (answer("a1", FIRST, use(call_id="s1"), **ASKS), answer("a2", SECOND, **DONE))


# Where the answers say why they stopped, all of their tokens count.


def test_a_total_of_one_answer_agrees() -> None:
    rows = (task(), *chain(answer("a1", FIRST, **DONE)), ran(543, FIRST))
    found = record(*rows)
    assert found.name == "claude-code"
    assert (found.executors, found.traced) == (("reviewer",), ("reviewer",))
    (entry,) = found.ledger
    assert (entry.executor, entry.invocation, entry.span_id) == ("reviewer", "t1", "t1")
    assert entry.usage == Usage(input=503, output=40, cached=0)
    (turn,) = found.turns
    assert (turn.executor, turn.invocation, turn.usage) == ("reviewer", "t1", entry.usage)
    assert (turn.finish_reason, turn.response_id, turn.span_id) == ("end_turn", "a1", "req_1")
    # Nothing in a session says how a sub-agent ended, so that is not held against it.
    assert verdicts(*rows) == {"reviewer": "Agree"}


def test_a_total_of_the_last_answer_falls_short() -> None:
    found = judged(task(), *chain(*BOTH), ran(642, SECOND))
    (executor,) = found.executors
    assert (executor.ledger_tokens, executor.truth_tokens) == (642, 543 + 642)
    assert (found.outcome, executor.verdict) == ("FAIL", "TokenMismatch")


def test_a_total_of_all_answers_has_no_parts_to_hold_against_it() -> None:
    found = record(task(), *chain(*BOTH), ran(1185, SECOND))
    assert found.ledger[0].usage == Usage(total=1185)
    counts = [check for check in reconcile(found).executors[0].checks if "tokens" in check.name]
    assert {check.name: check.outcome for check in counts}["tokens"] == "passed"


def test_more_is_reported_than_was_used() -> None:
    found = judged(task(), *chain(answer("a1", FIRST)), ran(5000, usage(0, 0, 4990, 10)))
    assert found.executors[0].verdict == "OverReport"


# Where they do not, outputs were counted too early.


def test_only_what_was_taken_in_is_compared_where_outputs_were_counted_early() -> None:
    early = usage(3, 500, 0, 1)
    rows = (task(), *chain(answer("a1", early)), ran(3503, usage(3, 500, 0, 3000)))
    found = record(*rows)
    assert found.ledger[0].usage == found.turns[0].usage == Usage(input=503, cached=0)
    assert judged(*rows).outcome == "PASS"


def test_a_total_without_parts_cannot_be_compared_with_what_was_taken_in() -> None:
    assert verdicts(task(), *chain(answer("a1", FIRST)), ran(3503)) == {"reviewer": "Unmeasured"}


# Progress rows leave out the last answer.


def test_the_last_answer_is_not_shown_in_progress_rows() -> None:
    rows = (task(), shown("a1", FIRST), ran(642, SECOND))
    found = record(*rows)
    assert [(t.usage, t.model) for t in found.turns] == [
        (Usage(input=503, cached=0), "claude-haiku"),
        (None, "claude-haiku"),
    ]
    # 562 taken in, 503 known of and one answer unknown: not too much, as far as can be told.
    assert verdicts(*rows) == {"reviewer": "Unmeasured"}


def test_a_sub_agent_that_went_on_used_more_than_its_last_answer() -> None:
    third = usage(1, 30, 560, 4)
    found = judged(task(), shown("a1", FIRST), shown("a2", SECOND), ran(595, third))
    (executor,) = found.executors
    assert executor.verdict == "TokenMismatch"
    assert (executor.ledger_tokens, executor.truth_tokens) == (591, 503 + 562)


def test_an_answer_in_several_rows_counts_once_with_its_last_usage() -> None:
    early = {**FIRST, "cache_creation_input_tokens": 1}
    rows = (task(), shown("a1", early), shown("a1", FIRST), shown("a1", FIRST), ran(642, SECOND))
    assert [turn.usage for turn in record(*rows).turns] == [Usage(input=503, cached=0), None]


def test_where_the_last_answer_is_shown_there_was_no_other() -> None:
    says_so = {"type": "text", "text": "Fine."}
    assert len(record(task(), shown("a1", FIRST, says_so), ran(543, FIRST)).turns) == 1
    # Side chains show all answers: this one was not allowed to go on.
    asking = chain(answer("a1", FIRST, use(call_id="s1")))
    assert len(record(task(), *asking, ran(543, FIRST)).turns) == 1


@pytest.mark.parametrize("finished", [{"status": "completed"}, {"is_error": True}])
def test_a_sub_agent_that_failed_may_have_stopped_at_any_answer(finished: Any) -> None:
    done = gives("Boom.", "t1", is_error=finished.get("is_error", False))
    end = user([done], toolUseResult={"agentId": "a77", "totalTokens": 543, "usage": FIRST})
    found = record(task(), shown("a1", FIRST), end)
    assert (found.ledger[0].error, len(found.turns)) == (
        ("Boom.", 1) if "is_error" in finished else (None, 2)
    )


def test_answers_in_a_file_of_their_own_are_no_truth_here() -> None:
    found = judged(task(), ran(642, SECOND))
    assert (found.outcome, found.executors[0].verdict) == ("PENDING", "NoTruth")
    alone = session(user("Review it.", **SIDE), answer("a1", FIRST), ran(642, SECOND) | SIDE)
    assert alone.workflow_record is None


# Whose an answer is.


def test_two_runs_of_a_kind_and_one_of_another() -> None:
    rows = (
        task("t1"),
        task("t2", "Again."),
        task("t3", "Test it.", "tester"),
        *chain(answer("b1", FIRST, **DONE), prompt="Again.", at="b"),
        *chain(answer("a1", SECOND, **DONE), at="s"),
        *chain(answer("c1", FIRST, **DONE), prompt="Test it.", at="c"),
        ran(642, SECOND, "t1", agentId="a1"),
        ran(543, FIRST, "t2", agentId="a2"),
        ran(543, FIRST, "t3", agentId="a3"),
    )
    found = record(*rows)
    assert [(t.response_id, t.executor, t.invocation) for t in found.turns] == [
        ("a1", "reviewer", "t1"),
        ("b1", "reviewer", "t2"),
        ("c1", "tester", "t3"),
    ]
    assert [e.usage for e in found.ledger] == [t.usage for t in found.turns]


def test_a_side_chain_is_found_by_the_id_that_the_result_names() -> None:
    stray = answer("a1", FIRST, agentId="a77", **DONE)
    found = record(task(prompt="Something else."), stray, ran(543, FIRST))
    assert [(t.executor, t.invocation) for t in found.turns] == [("reviewer", "t1")]


def test_answers_of_unknown_origin_are_nobodys_report() -> None:
    rows = (task(), *chain(answer("a1", FIRST, **DONE)), answer("w1", FIRST), ran(543, FIRST))
    assert verdicts(*rows)["sidechain"] == "NoLedger"


def test_a_sub_agent_without_a_kind_goes_by_its_id() -> None:
    start = says(use("Agent", {"prompt": "Review it."}, "t1"), answer="m1")
    found = record(start, *chain(answer("a1", FIRST)), ran(543, FIRST))
    assert {e.executor for e in found.ledger} == {t.executor for t in found.turns} == {"a77"}


def test_a_sub_agent_that_is_still_at_work() -> None:
    rows = (
        task("t1"),
        *chain(answer("a1", FIRST)),
        ran(543, FIRST),
        task("t2", "Test it.", "tester"),
        shown("c1", FIRST, call_id="t2"),
    )
    assert verdicts(*rows) == {"reviewer": "Agree", "tester": "Error"}


def test_rows_that_a_resumed_session_copied_count_once() -> None:
    rows = [task(), *chain(*BOTH), ran(642, SECOND)]
    copied = [{**item, "uuid": f"copy {i}"} for i, item in enumerate(rows)]
    assert record(*rows, *copied) == record(*rows)


def test_rows_that_stand_in_the_file_twice_count_once() -> None:
    rows = [task(), *chain(answer("a1", FIRST)), ran(543, FIRST)]
    for item in rows:
        item["message"].pop("id", None)
    placed = [{**item, "uuid": item.get("uuid", f"x{i}")} for i, item in enumerate(rows)]
    assert record(*placed, *placed) == record(*placed)


def test_a_second_result_of_a_call_changes_nothing() -> None:
    rows = (task(), *chain(answer("a1", FIRST)), ran(543, FIRST))
    assert record(*rows, ran(642, SECOND, agentId="other")) == record(*rows)


def test_a_call_of_another_tool_is_no_agent() -> None:
    found = record(
        says(use("Bash", {"command": "ls"}, "c1"), answer="m1"),
        user([gives("a.md", "c1")], toolUseResult={"stdout": "a.md"}),
        task(),
        *chain(answer("a1", FIRST)),
        ran(543, FIRST),
    )
    assert found.executors == ("reviewer",)


NOTHING_REPORTED = [
    [says("Hi.")],
    [task(), shown("a1", FIRST)],
    [task(), shown("a1", FIRST), user([gives("Fine.", "t1")])],
    [task(), user([gives("Started.", "t1")], toolUseResult={"status": "async_launched"})],
    [task(), shown("a1", FIRST), ran("many"), ran(-1), ran(None)],
    [row("result", usage={}), row("result", usage=None), row("result")],
]


@pytest.mark.parametrize("rows", NOTHING_REPORTED)
def test_sessions_in_which_nothing_is_reported(rows: list[Any]) -> None:
    found = session(user(), *rows)
    assert found.workflow_record is None
    assert b"workflow_record" not in msgspec.json.encode(found)


# The session's own agent.


def test_a_result_row_reports_the_answers_since_the_one_before() -> None:
    rows = (
        says("One.", answer="m1", usage=FIRST, **DONE),
        row("result", uuid="r1", usage=FIRST, stop_reason="end_turn", subtype="success"),
        user("More."),
        says(use(), answer="m2", usage=SECOND, **ASKS),
        user([gives()]),
        says("Two.", answer="m3", usage=SECOND, **DONE),
        row("result", uuid="r2", usage=SECOND, stop_reason="end_turn"),
    )
    found = record(*rows)
    assert [(e.executor, e.invocation, e.finish_reason) for e in found.ledger] == [
        ("main", "r1", "end_turn"),
        ("main", "r2", "end_turn"),
    ]
    assert [(t.response_id, t.invocation) for t in found.turns] == [
        ("m1", "r1"),
        ("m2", "r2"),
        ("m3", "r2"),
    ]
    assert judged(*rows[:2]).outcome == "PASS"
    assert verdicts(*rows) == {"main": "TokenMismatch"}


def test_answers_after_the_last_result_are_not_reported() -> None:
    first = (says("One.", answer="m1", usage=FIRST, **DONE), row("result", usage=FIRST))
    found = record(*first, says("Two.", answer="m2", usage=SECOND, **DONE))
    assert [turn.response_id for turn in found.turns] == ["m1", "m2"]
    assert reconcile(found).outcome == "FAIL"


def test_a_result_that_failed() -> None:
    rows = (says("One.", usage=FIRST), row("result", usage=FIRST, is_error=True, subtype="error_x"))
    assert record(*rows).ledger[0].error == "error_x"
    assert verdicts(*rows) == {"main": "Error"}


def test_no_value_keeps_a_session_with_a_ledger_from_being_read_and_written() -> None:
    shapes = [
        user(),
        task(),
        shown("b1", FIRST),
        *chain(answer("a1", FIRST, agentId="a77", **DONE)),
        ran(642, SECOND),
        row("result", uuid="r1", usage=FIRST, stop_reason="end_turn", is_error=False),
    ]
    assert records_through_the_store(shapes, "claude-code") > 100


# Real sessions.

REPORTING = {
    # Ten answers were shown; of what they took in (2 + 75,002 written + 555,931 read), the result
    # of the call states that of the eleventh: 0 + 1,061 + 75,002, and 1 token put out.
    "skill-review": ("general-purpose", 10, 630_935, 76_063, "TokenMismatch"),
}


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize("name", real.SESSIONS)
def test_real_sessions(name: str) -> None:
    found = real.trace(name).workflow_record
    if name not in REPORTING:
        # In `skill-no-edits` the sub-agent is at work when the session ends.
        assert found is None
        return
    kind, answers, used, reported, verdict = REPORTING[name]
    assert found is not None
    assert [turn.usage is None for turn in found.turns] == [False] * answers + [True]
    (executor,) = reconcile(found).executors
    assert (executor.executor_id, executor.verdict) == (kind, verdict)
    assert (executor.ledger_tokens, executor.truth_tokens) == (reported, used)


@needs_real_data
@pytest.mark.data
def test_the_total_of_a_real_sub_agent_is_its_last_answers() -> None:
    """Why it falls short: from the raw rows alone.

    The usage in the result reads from the cache exactly what the last shown answer read and
    wrote, so it is the usage of the answer after that one; and the total is its sum. The number
    of tool uses beside it is that of the whole run.
    """
    rows = real.raw("skill-review")
    stated = [r["toolUseResult"] for r in rows if "totalTokens" in str(r.get("toolUseResult"))]
    (result,) = [item for item in stated if isinstance(item, dict)]
    shown_answers = {}
    for item in rows:
        message = ((item.get("data") or {}).get("message") or {}).get("message") or {}
        if "usage" in message:
            shown_answers[message["id"]] = message["usage"]
    *_, last = shown_answers.values()
    usage_stated = result["usage"]
    assert usage_stated["cache_read_input_tokens"] == (
        last["cache_read_input_tokens"] + last["cache_creation_input_tokens"]
    )
    parts = ("input_tokens", "output_tokens")
    cache = ("cache_read_input_tokens", "cache_creation_input_tokens")
    assert result["totalTokens"] == sum(usage_stated[key] for key in (*parts, *cache)) == 76_064
    assert sum(item[key] for item in shown_answers.values() for key in (*parts, *cache)) == 630_980
    assert len(real.raw_calls("skill-review", sub_agent=True)) == result["totalToolUseCount"] == 18


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize("name", real.SESSIONS)
def test_the_answers_are_those_whose_tokens_the_reader_counts(name: str) -> None:
    found = real.trace(name)
    seen = found.metadata.get("subagent_usage", {})
    if found.workflow_record is None:
        return
    for kind, counts in seen.items():
        turns = [t for t in found.workflow_record.turns if t.executor == kind and t.usage]
        taken = sum(counts[key] for key in ("input", "cache_read", "cache_write"))
        assert len(turns) == counts["api_calls"]
        assert sum((t.usage.input or 0) for t in turns if t.usage) == taken
