"""The demo's traces: which there are, what they hold, and that they never differ."""

from __future__ import annotations

import hashlib
from collections import Counter
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.demo import (
    DAYS,
    FIRST_DAY,
    MODELS,
    TRIALS,
    USE_CASES,
    DemoTrace,
    generate,
    write_traces,
)
from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.faults import FAULT_KINDS
from benchmark_assets.demo.generate import PROMPT_UPDATE, STEP_LIMIT
from benchmark_assets.demo.models import BINDING, REBOOKING, REFUND, SCREENSHOT
from benchmark_assets.model.trace import Generation, ToolCall

Traces = tuple[DemoTrace, ...]

BYTES = "101caee6dbb9198d5d7f4b42fd3536a0c702046ef8c3cb87ebbe026d15f4cf9f"
"""SHA-256 over names and bytes of all files of seed 7, for catching a platform or a Python version
that draws differently. A change of the demo changes it: put in what the failure prints."""


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0")
            digest.update(path.read_bytes())
    return digest.hexdigest()


def test_same_bytes_every_time(tmp_path: Path) -> None:
    assert write_traces(tmp_path / "a") == write_traces(tmp_path / "b") == 1008
    assert _digest(tmp_path / "a") == _digest(tmp_path / "b") == BYTES


def test_another_seed_gives_other_traces(tmp_path: Path, traces: Traces) -> None:
    write_traces(tmp_path, seed=8)
    assert _digest(tmp_path) != BYTES
    ids = {trace.snapshot.trace_id for trace in traces}
    assert ids.isdisjoint(trace.snapshot.trace_id for trace in generate(8))


def test_a_right_file_is_left_alone_and_a_wrong_one_replaced(tmp_path: Path) -> None:
    write_traces(tmp_path)
    right = tmp_path / "2026-11-15" / "gpt-5.4.jsonl"
    wrong = tmp_path / "2026-11-28" / "ornith-1.0-35b.jsonl"
    before = right.stat()
    wrong.write_bytes(wrong.read_bytes()[:1000])
    (tmp_path / "notes.txt").write_text("mine")
    assert write_traces(tmp_path) == 1008
    after = right.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    (tmp_path / "notes.txt").unlink()
    assert _digest(tmp_path) == BYTES


def test_a_failed_write_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_traces(tmp_path)
    path = tmp_path / "2026-11-15" / "claude-sonnet-4-6.jsonl"
    path.write_text("old")

    def no_space(self: Path, target: Path) -> Path:
        raise OSError("no space left on device")

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(OSError, match="no space"):
        write_traces(tmp_path)
    assert path.read_text() == "old"
    assert len(list(path.parent.iterdir())) == len(MODELS)


def test_one_file_per_day_and_model(tmp_path: Path) -> None:
    write_traces(tmp_path)
    names = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.jsonl")}
    days = [(FIRST_DAY + timedelta(days=day)).isoformat() for day in range(DAYS)]
    assert days[0] == "2026-11-15"
    assert days[-1] == "2026-11-28"
    assert names == {f"{day}/{model.name}.jsonl" for day in days for model in MODELS}


def test_files_hold_what_the_generator_yields(tmp_path: Path, traces: Traces) -> None:
    write_traces(tmp_path)
    read = []
    for path in sorted(tmp_path.rglob("*.jsonl")):
        key = path.relative_to(tmp_path).as_posix()
        file = TraceFile(str(path), key, path.read_bytes())
        read += list(choose_format(file).parse(file))
    expected = sorted(
        (trace.snapshot for trace in traces), key=lambda s: (s.origin.file, s.started_at)
    )
    assert read == expected


def test_files_do_not_give_the_faults_away(tmp_path: Path) -> None:
    write_traces(tmp_path)
    words = [b'"fault"', b'"origin"', *(b'"%s"' % kind.encode() for kind in FAULT_KINDS)]
    words.remove(b'"agent_error"')  # also a harness's word for how a run ended
    for path in tmp_path.rglob("*.jsonl"):
        data = path.read_bytes()
        assert [word for word in words if word in data] == []


def test_every_day_has_every_model_contract_and_trial(traces: Traces) -> None:
    cells = Counter(
        (trace.snapshot.started_at.date(), trace.snapshot.model, trace.contract)
        for trace in traces
        if trace.snapshot.started_at
    )
    assert len(cells) == DAYS * len(MODELS) * len(USE_CASES)
    assert set(cells.values()) == {TRIALS}
    assert len(traces) == 1008


def test_ids_and_attempts_are_unique(traces: Traces) -> None:
    assert len({trace.snapshot.trace_id for trace in traces}) == len(traces)
    attempts = {(t.snapshot.model, t.snapshot.task, t.snapshot.trial) for t in traces}
    assert len(attempts) == len(traces)
    tasks = Counter((trace.contract, trace.snapshot.task) for trace in traces)
    assert len(tasks) == len(USE_CASES) * DAYS
    assert set(tasks.values()) == {len(MODELS) * TRIALS}


def test_spans_are_unique_and_in_time_order(traces: Traces) -> None:
    spans = []
    for trace in traces:
        snapshot = trace.snapshot
        parts: list[Generation | ToolCall] = [*snapshot.generations, *snapshot.tool_calls]
        spans += [part.span_id for part in parts]
        assert snapshot.started_at is not None
        assert snapshot.ended_at is not None
        milliseconds = (snapshot.ended_at - snapshot.started_at) / timedelta(milliseconds=1)
        assert snapshot.duration_ms == milliseconds > 0
        assert snapshot.ended_at.date() == snapshot.started_at.date()
        moments = sorted(
            (part.started_at, part.ended_at) for part in parts if part.started_at and part.ended_at
        )
        assert len(moments) == len(parts)
        clock = snapshot.started_at
        for started, ended in moments:
            assert clock <= started < ended
            clock = ended
        assert clock == snapshot.ended_at
    assert None not in spans
    assert len(set(spans)) == len(spans)


def test_tokens_are_sums_of_disjoint_buckets(traces: Traces) -> None:
    for trace in traces:
        snapshot = trace.snapshot
        for position, total in enumerate(snapshot.tokens.buckets()):
            parts = [generation.tokens.buckets()[position] for generation in snapshot.generations]
            known = [part for part in parts if part is not None]
            # A model reports a bucket always or never.
            assert len(known) in (0, len(parts))
            assert total == (sum(known) if known else None)
            assert all(part >= 0 for part in known)
        contexts = [
            (g.tokens.input or 0) + (g.tokens.cache_read or 0) + (g.tokens.cache_write or 0)
            for g in snapshot.generations
        ]
        assert contexts == sorted(contexts), "the context only grows"


def test_cost_is_measured_or_unknown_never_zero(traces: Traces) -> None:
    for trace in traces:
        snapshot = trace.snapshot
        costs = [generation.cost_usd for generation in snapshot.generations]
        if snapshot.model == "ornith-1.0-35b":
            assert snapshot.cost_usd is None
            assert set(costs) == {None}
            assert snapshot.tokens.cache_read is None
        else:
            micro = sum(round((cost or 0) * 1_000_000) for cost in costs)
            assert snapshot.cost_usd is not None
            assert round(snapshot.cost_usd * 1_000_000) == micro > 0
            assert snapshot.tokens.cache_read is not None


def test_every_kind_of_fault_occurs(traces: Traces) -> None:
    kinds = Counter(trace.fault.kind for trace in traces if trace.fault)
    assert set(kinds) == set(FAULT_KINDS)
    assert min(kinds.values()) >= 5


def test_abnormal_ends_are_recorded_and_only_there(traces: Traces) -> None:
    for trace in traces:
        snapshot, kind = trace.snapshot, trace.fault.kind if trace.fault else None
        stopped = kind in ("early_stop", "agent_error")
        assert snapshot.ended_normally is not stopped
        assert (snapshot.error is not None) is stopped
        assert (snapshot.final_answer is None) is stopped
        if kind == "early_stop":
            assert snapshot.ended == "max_steps"
            assert len(snapshot.tool_calls) == STEP_LIMIT
        if kind == "agent_error":
            assert snapshot.ended == "agent_error"


def test_messages_skills_and_files_point_into_the_calls(traces: Traces) -> None:
    for trace in traces:
        snapshot = trace.snapshot
        calls = snapshot.tool_calls
        for skill in snapshot.skills:
            assert skill.call is not None
            assert calls[skill.call].name == "load_skill"
        for event in snapshot.files:
            assert event.call is not None
            assert event.status == calls[event.call].status
        for question in snapshot.questions:
            assert calls[question.before_call - 1].name in ("ask_user", "confirm_with_user")
        if snapshot.final_answer is not None:
            assert snapshot.messages[-1].text == snapshot.final_answer
            assert snapshot.messages[-1].before_call == len(calls)


def test_board_tells_a_story(traces: Traces) -> None:
    clean: Counter[tuple[str, str]] = Counter()
    for trace in traces:
        clean[trace.snapshot.model or "", trace.contract] += trace.fault is None
    total = {
        model.name: sum(clean[model.name, use_case.contract] for use_case in USE_CASES)
        for model in MODELS
    }
    assert sorted(total, key=lambda name: -total[name]) == [model.name for model in MODELS]

    best = {u.contract: max(MODELS, key=lambda m: clean[m.name, u.contract]) for u in USE_CASES}
    assert best[BINDING].name == "claude-sonnet-4-6"
    assert best[REBOOKING].name != "claude-sonnet-4-6"
    assert clean["claude-sonnet-4-6", REBOOKING] < 30
    assert clean["glm-5-40b", SCREENSHOT] < 10

    service = {
        model.name: sum(
            clean[model.name, use_case.contract]
            for use_case in USE_CASES
            if use_case.contract.startswith("support/")
        )
        for model in MODELS
    }
    assert max(service, key=lambda name: service[name]) == "glm-5-40b"


def test_one_model_drifts_after_the_prompt_update(traces: Traces) -> None:
    rates = {}
    for model in MODELS:
        for late in (False, True):
            faults = [
                trace.fault is not None
                for trace in traces
                if (trace.snapshot.model, trace.contract) == (model.name, REFUND)
                and (trace.snapshot.metadata["prompt_version"] == "2026-11-25") is late
            ]
            assert len(faults) == TRIALS * (DAYS - PROMPT_UPDATE if late else PROMPT_UPDATE)
            rates[model.name, late] = sum(faults) / len(faults)
    assert rates["gpt-5.4", False] < 0.15
    assert rates["gpt-5.4", True] > 0.5
    for model in MODELS[:1] + MODELS[2:]:
        assert rates[model.name, True] - rates[model.name, False] < 0.2


def test_snapshots_survive_their_own_format(traces: Traces) -> None:
    for trace in traces[::50]:
        data = msgspec.json.encode(trace.snapshot)
        assert msgspec.json.decode(data, type=type(trace.snapshot)) == trace.snapshot


def test_dice_keep_to_their_limits() -> None:
    dice = Dice("limits")
    assert {dice.whole(2, 4) for _ in range(200)} == {2, 3, 4}
    assert {dice.weighted((("never", 0.0), ("always", 1.0))) for _ in range(200)} == {"always"}
    assert not any(dice.chance(0.0) for _ in range(200))
    assert all(dice.chance(1.0) for _ in range(200))
    draws = sorted(dice.log_normal(10.0, 0.5) for _ in range(2001))
    assert draws[0] > 0
    assert draws[1000] == pytest.approx(10.0, rel=0.1)
