"""Freezing candidates: only those that pass, only as what will be read back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.adapters.golden_files import TraceFolder, read_candidate
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.pipeline.bless import Blessing, consider
from benchmark_assets.pipeline.golden import plain_surroundings, read_fixtures, run_suite
from tests.pipeline.golden_folders import CHARGE, GET, REFUND, USER, Folders, recording, write


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def look(folders: Folders) -> Blessing:
    (file,) = read_fixtures(folders.fixtures).fixtures.values()
    return consider(file, TraceFolder(folders.traces), plain_surroundings())


def test_a_first_golden_trace_shows_what_it_holds(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a", messages=[{"role": "user", "content": "long"}], fixture="a")
    blessing = look(folders)
    assert blessing.refused == ()
    assert blessing.changes == (
        "there is no golden trace yet",
        "path: get_order → refund_payment",
        'get_order (call 1) with {"order_id": "1842"}',
        'refund_payment (call 2) with {"method": "card", "order_id": "1842"}',
        "questions: at some time",
        'final: {"refund_id": "r1", "status": "ok"}',
    )
    assert not (folders.fixtures / "a.golden.json").exists()
    blessing.write()
    frozen = json.loads((folders.fixtures / "a.golden.json").read_text())
    assert frozen == recording(fixture="a")
    assert look(folders).changes == ()


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"final": {"status": "needs_human", "refund_id": None}}, [
            "final.status: 'ok' → 'needs_human'",
            "final.refund_id: 'r1' → null",
        ]),
        ({"final": {"status": "ok", "refund_id": "r1", "note": "x"}}, ["final.note: 'x' is new"]),
        ({"questions": [{"text": "?", "before_tool": 1}]}, [
            "questions: at some time → before call 2",
        ]),
        ({"tools": [{**GET, "arguments": {"order_id": "1842", "full": True}}, REFUND]}, [
            "get_order (call 1).full: true is new",
        ]),
        ({"tools": [GET, {**REFUND, "arguments": {"order_id": "1842", "method": "cash"}}]}, [
            "refund_payment (call 2).method: 'card' → 'cash'",
        ]),
    ],
)  # fmt: skip
def test_every_difference_is_shown(
    folders: Folders, changes: dict[str, Any], shown: list[str]
) -> None:
    folders.fixture("a")
    write(folders.fixtures / "a.golden.json", recording())
    folders.trace("a", **changes)
    assert list(look(folders).changes) == shown


def test_another_legal_path_is_shown_as_a_path(folders: Folders) -> None:
    path = folders.fixture("a")
    data = json.loads(path.read_text())
    del data["expect"]["tool_names"]
    data["expect"]["allowed_paths"] = [
        ["get_order", "refund_payment"],
        ["get_order", "get_order", "refund_payment"],
    ]
    write(path, data)
    write(folders.fixtures / "a.golden.json", recording())
    folders.trace("a", tools=[GET, GET, REFUND])
    first, *_ = look(folders).changes
    # 2 × 2 common ÷ (2 + 3)
    assert first.startswith("path: get_order ✓, ")
    assert first.endswith("(similarity 0.80)")


def test_on_another_path_all_arguments_that_are_new_are_shown(folders: Folders) -> None:
    folders.fixture("a", tool_names=None, forbidden_tools=["charge_card"])
    write(folders.fixtures / "a.golden.json", recording())
    look_up = {"name": "look_up", "arguments": {"who": "Ada"}}
    paid = {**REFUND, "arguments": {"order_id": "1842", "method": "cash"}}
    folders.trace("a", tools=[look_up, GET, paid])
    _, *others = look(folders).changes
    assert others == [
        'look_up (call 1) with {"who": "Ada"} is new',
        "refund_payment (call 3).method: 'card' → 'cash'",
    ]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"tools": [GET, CHARGE]}, "forbidden tool"),
        ({"asked_clarification": False}, "no question"),
        ({"fixture": "b"}, "recorded for the fixture 'b'"),
    ],
)
def test_a_candidate_that_fails_is_refused(
    folders: Folders, changes: dict[str, Any], why: str
) -> None:
    folders.fixture("a")
    folders.trace("a", **changes)
    blessing = look(folders)
    assert why in "\n".join(blessing.refused)
    assert blessing.data == b""


def test_a_missing_or_broken_candidate_is_refused(folders: Folders) -> None:
    folders.fixture("a")
    assert look(folders).refused == ("there is no trace",)
    write(folders.traces / "a.json", "{")
    assert "a.json" in look(folders).refused[0]


def test_of_several_trials_the_first_is_frozen(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a/2", tools=[GET])
    folders.trace("a/1")
    blessing = look(folders)
    assert blessing.refused == ()
    assert blessing.source.endswith("a/1.json")


def test_a_broken_golden_trace_is_replaced(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a")
    write(folders.fixtures / "a.golden.json", "{")
    blessing = look(folders)
    assert "a.golden.json" in blessing.changes[0]
    blessing.write()
    assert run_suite(read_fixtures(folders.fixtures), folders.traces).passed


def snapshot(**changes: Any) -> dict[str, Any]:
    """The trace that `recording()` is, as a snapshot."""
    return {
        "trace_id": "t1",
        "model": "m-1",
        "prompt": USER,
        "started_at": "2026-11-20T09:00:00Z",
        "ended_at": "2026-11-20T09:00:05Z",
        "tool_calls": [
            {**GET, "status": "ok", "result": {"total": 5}},
            {**REFUND, "status": "ok"},
        ],
        "messages": [{"text": "Sure?", "before_call": 1, "question": True}],
        "final_answer": '{"status": "ok", "refund_id": "r1"}',
        **changes,
    }


def test_other_formats_are_frozen_as_recordings(folders: Folders) -> None:
    folders.fixture("a")
    write(folders.traces / "a.json", snapshot())
    look(folders).write()
    path = folders.fixtures / "a.golden.json"
    assert json.loads(path.read_text()) == {
        "tools": [{**GET, "result": {"total": 5}}, REFUND],
        "asked_clarification": True,
        "questions": [{"text": "Sure?", "before_tool": 1}],
        "final": {"status": "ok", "refund_id": "r1"},
        "input": {"user": USER},
        "model": "m-1",
        "started_at": "2026-11-20T09:00:00+00:00",
        "ended_at": "2026-11-20T09:00:05+00:00",
    }
    (golden,) = read_candidate(str(path), ProjectConfig())
    assert golden.origin.format == "recorder"
    assert golden.duration_ms == 5000
    assert look(folders).changes == ()


@pytest.mark.parametrize(
    "answer", ["Done.", "17", '"quoted"', "[1, 2]", '{"a": 1}', "", None, '{"cut', "null"]
)
def test_a_final_answer_stays_what_it_was(folders: Folders, answer: str | None) -> None:
    folders.fixture("a", final_schema={})
    expect = {"tool_names": ["get_order", "refund_payment"]}
    write(folders.fixtures / "a.json", {"id": "a", "input": {"user": USER}, "expect": expect})
    write(folders.traces / "a.json", snapshot(final_answer=answer))
    blessing = look(folders)
    blessing.write()
    (golden,) = read_candidate(str(folders.fixtures / "a.golden.json"), ProjectConfig())
    said = golden.final_answer
    if answer in ("[1, 2]", '{"a": 1}'):
        assert json.loads(said or "") == json.loads(answer)
    else:
        assert said == answer


def test_what_a_recording_cannot_hold_is_not_frozen(folders: Folders) -> None:
    folders.fixture("a", ends_with="agent_stop")
    write(folders.traces / "a.json", snapshot(ended="agent_stop", ended_normally=True))
    assert run_suite(read_fixtures(folders.fixtures), folders.traces).passed
    blessing = look(folders)
    assert "the recorder's format cannot hold" in blessing.refused[0]
    assert "how the run ended" in blessing.refused[1]
