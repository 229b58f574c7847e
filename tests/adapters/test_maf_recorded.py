"""What recorded runs of a real framework come to, against sums made by hand."""

from collections.abc import Iterable
from typing import Any

import pytest

from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, WorkflowRecord
from tests.adapters.maf_recorded import record_of, records, scenarios
from tests.real_data import needs_real_data

pytestmark = [pytest.mark.data, needs_real_data]

Row = tuple[int | None, list[str | None]]


def side(rows: Iterable[LedgerEntry | ModelTurn], executor: str) -> Row | None:
    """Tokens (None: none reported) and finish reasons of one executor; None if it has no row."""
    own = [row for row in rows if row.executor == executor]
    used = [row.usage.total for row in own if row.usage is not None]
    total = sum(count or 0 for count in used) if used else None
    return (total, [row.finish_reason for row in own]) if own else None


# Executor by executor: what the ledger reports, and what the calls used.
EXPECTED: list[tuple[str, str, Row | None, Row | None]] = [
    ("exp/sequential_once", "a", (280, ["stop"]), (280, ["tool_calls", "stop"])),
    ("exp/sequential_stream", "a", (280, ["stop"]), (280, ["tool_calls", "stop"])),
    ("exp/concurrent_once", "aggregator", (None, [None]), None),
    (
        "exp/loop_stream",
        "writer",
        (134, ["stop", "content_filter", "stop"]),
        (134, ["stop", "content_filter", "stop"]),
    ),
    ("exp/groupchat_once", "boss", (None, [None]), (264, ["stop"] * 3)),
    ("exp/groupchat_stream", "boss", (None, [None]), (264, ["stop"] * 3)),
    ("exp/magentic_once", "magentic_orchestrator", (None, [None]), (330, ["stop"] * 5)),
    ("exp/magentic_stream", "magentic_orchestrator", (None, [None]), (330, ["stop"] * 5)),
    ("exp/magentic_once", "w", (35, ["stop"]), (35, ["stop"])),
    ("exp/private_executor_once", "private", None, (550, ["length"])),
    ("exp/liar_once", "a", (55, ["stop"]), (110, ["length"])),
    ("exp/liar_stream", "a", (110, ["length"]), (110, ["length"])),
    ("exp/hidden_midturn_filter_once", "a", (33, ["stop"]), (33, ["content_filter", "stop"])),
    ("exp/shared_client_stream", "b", (37, ["length"]), (37, ["length"])),
    ("exp/handoff_once", "triage", (36, ["tool_calls"]), (36, ["tool_calls"])),
    ("exp/handoff_stream", "triage", (36, ["tool_calls"]), (36, ["tool_calls"])),
    ("exp/handoff_stream", "expert", (35, ["stop"]), (35, ["stop"])),
    ("exp/stream_no_usage", "a", (None, ["stop"]), (None, ["tool_calls", "stop"])),
    ("exp/stream_no_finish", "a", (280, [None]), (280, [None, None])),
    ("exp/no_usage_at_all", "a", (None, ["stop"]), (None, ["stop"])),
    (
        "exp2/hidden_retry_chat_middleware_once",
        "a",
        (99, ["stop"]),
        (189, ["content_filter", "stop"]),
    ),
    ("exp2/shared_agent_object_two_executors_once", "x2", (37, ["length"]), (37, ["length"])),
    ("exp2/agent_as_tool_once", "outer", (33, ["stop"]), (473, ["tool_calls", "length", "stop"])),
    ("exp2/sub_workflow_once", "sub", (66, ["length"]), (101, ["stop", "length"])),
    ("exp2/crash_second_once", "b", None, (None, [None])),
    ("exp2/handoff_stream", "triage", (36, ["tool_calls"]), (36, ["tool_calls"])),
    ("exp3/crash_second_real_stream", "a", (35, ["stop"]), (35, ["stop"])),
    ("exp3/crash_second_real_stream", "b", (None, [None]), None),
    ("exp3/stripping_middleware_once", "a", (None, [None]), (110, ["length"])),
    ("exp3/naked_client_no_middleware_layer_once", "a", (10, ["stop"]), None),
]


@pytest.mark.parametrize(("scenario", "executor", "reported", "used"), EXPECTED)
def test_both_sides_of_an_executor(
    scenario: str, executor: str, reported: Row | None, used: Row | None
) -> None:
    record = records()[scenario]
    assert side(record.ledger, executor) == reported
    assert side(record.turns, executor) == used


def test_every_scenario_is_read() -> None:
    by_file: dict[str, int] = {}
    for key in records():
        by_file[key.partition("/")[0]] = by_file.get(key.partition("/")[0], 0) + 1
    assert by_file == {"exp": 26, "exp2": 16, "exp3": 5}


def test_nothing_is_lost_on_the_way() -> None:
    for _, name, scenario in scenarios():
        record = record_of(name, scenario)
        reported = sum(len(entries) for entries in scenario.get("ledger", {}).values())
        added = sum(
            entry.executor not in scenario.get("ledger", {}) or entry.error is not None
            for entry in record.ledger
        )
        assert len(record.ledger) == reported + added
        assert len(record.turns) == len(scenario.get("truth", ()))
        named = {e.executor for e in record.ledger} | {t.executor for t in record.turns}
        assert named <= set(record.executors)


def test_turns_add_up_to_what_the_clients_gave_out() -> None:
    compared = 0
    for file, name, scenario in scenarios():
        wire = scenario.get("wire", ())
        # This client gives usage out and streams none of it; the crash is no answer.
        if not wire or name == "stream_no_usage" or "crash" in name:
            continue
        record = record_of(name, scenario)
        given = sum(_total(call["usage"]) for call in wire)
        assert _used(record) == given, (file, name)
        compared += 1
    # All 47 but five crashes, the one without usage, and two whose client kept no account.
    assert compared == 39


def test_runs_whose_events_are_lost_cannot_be_compared() -> None:
    problems = {key for key, record in records().items() if record.problem is not None}
    assert problems == {
        "exp/crash_second",
        "exp2/crash_second_once",
        "exp3/crash_second_real_once",
    }


def test_a_client_without_middleware_is_untraced() -> None:
    untraced = {
        key: set(record.executors) - set(record.traced or ())
        for key, record in records().items()
        if set(record.executors) != set(record.traced or ())
    }
    assert untraced == {"exp3/naked_client_no_middleware_layer_once": {"a"}}


def _total(usage: dict[str, Any] | None) -> int:
    usage = usage or {}
    parts = (usage.get("input_token_count") or 0) + (usage.get("output_token_count") or 0)
    return int(usage.get("total_token_count", parts))


def _used(record: WorkflowRecord) -> int:
    return sum(turn.usage.total or 0 for turn in record.turns if turn.usage is not None)
