"""What identifies a trace: workflow, model, task, day and duration, whatever the format."""

from __future__ import annotations

import hashlib
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest

from benchmark_assets.adapters.traces import day_of, read_traces, settle, why_unplaced
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import Generation, TraceSnapshot
from tests.adapters.samples import NAME, lines, record, snapshot, trace_file


def config(**fields: Any) -> ProjectConfig:
    return ProjectConfig.model_validate(fields)


ALIASED = config(
    models={
        "gpt-4o": {"aliases": ["openai/gpt-4o", "gpt-4o-2024-11-20"]},
        "team": {"aliases": ["gpt-4o+haiku"]},
    }
)


def settled(settings: ProjectConfig | None = None, **fields: Any) -> TraceSnapshot:
    return settle(snapshot(**fields), settings or ProjectConfig())


def used(*models: str | None) -> tuple[Generation, ...]:
    return tuple(Generation(model=model) for model in models)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"workflow": "own", "name": "n", "metadata": {"workflow_name": "m"}}, "own"),
        ({"workflow": None, "name": "n", "metadata": {"workflow_name": "m"}}, "m"),
        ({"workflow": None, "name": "n", "metadata": {"workflow_name": ""}}, "n"),
        ({"workflow": None, "name": "n", "metadata": {"workflow_name": 5}}, "n"),
        ({"workflow": "", "name": "n"}, "n"),
        ({"workflow": None, "name": ""}, None),
        ({"workflow": None}, None),
    ],
)
def test_workflow(fields: dict[str, Any], expected: str | None) -> None:
    assert settled(**fields).workflow == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model": "m"}, "m"),
        ({"model": "m", "metadata": {"model_name": "named"}}, "named"),
        ({"model": "m", "metadata": {"model_name": ""}}, "m"),
        ({"model": "m", "metadata": {"model_name": 4}}, "m"),
        ({"model": "m", "generations": used("a", "b")}, "m"),
        ({"model": None, "generations": used("a")}, "a"),
        ({"model": None, "generations": used("a", "a", None)}, "a"),
        ({"model": None, "generations": used("b", "a", "b")}, "a+b"),
        ({"model": "", "generations": used("a")}, "a"),
        ({"model": None, "generations": used("", None)}, None),
        ({"model": None}, None),
        ({"model": ""}, None),
    ],
)
def test_model(fields: dict[str, Any], expected: str | None) -> None:
    assert settled(**fields).model == expected


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model": "openai/gpt-4o"}, "gpt-4o"),
        ({"model": "gpt-4o"}, "gpt-4o"),
        ({"model": "gpt-4o-mini"}, "gpt-4o-mini"),
        ({"model": "x", "metadata": {"model_name": "gpt-4o-2024-11-20"}}, "gpt-4o"),
        ({"model": None, "generations": used("openai/gpt-4o", "gpt-4o-2024-11-20")}, "gpt-4o"),
        ({"model": None, "generations": used("openai/gpt-4o", "b")}, "b+gpt-4o"),
        ({"model": None, "generations": used("openai/gpt-4o", "haiku")}, "team"),
    ],
)
def test_aliases_of_a_model_are_the_model(fields: dict[str, Any], expected: str) -> None:
    assert settled(ALIASED, **fields).model == expected


def test_the_metadata_key_of_the_model_is_configurable() -> None:
    metadata = {"llm": "named", "model_name": "other"}
    assert settled(config(model_key="llm"), metadata=metadata).model == "named"


def prompt_task(folded: str) -> str:
    return "prompt:" + hashlib.sha256(folded.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("source", "fields", "expected"),
    [
        ("metadata.task_id", {"task": "own", "metadata": {"task_id": "m"}}, "own"),
        ("metadata.task_id", {"task": None, "metadata": {"task_id": "m"}}, "m"),
        ("metadata.task_id", {"task": None, "metadata": {"task_id": 12}}, "12"),
        ("metadata.task_id", {"task": None, "metadata": {"task_id": 0}}, "0"),
        ("metadata.case", {"task": None, "metadata": {"case": "c", "task_id": "m"}}, "c"),
        ("metadata.a.b", {"task": None, "metadata": {"a.b": "c"}}, "c"),
        ("session", {"task": None, "session_id": "s"}, "s"),
        ("session", {"task": None, "prompt": "p"}, prompt_task("p")),
        ("prompt", {"task": None, "prompt": "p", "session_id": "s"}, prompt_task("p")),
        ("metadata.task_id", {"task": None, "prompt": "p"}, prompt_task("p")),
        ("metadata.task_id", {"task": "", "prompt": "p"}, prompt_task("p")),
        (
            "metadata.task_id",
            {"task": None, "prompt": "p", "metadata": {"task_id": ""}},
            prompt_task("p"),
        ),
        (
            "metadata.task_id",
            {"task": None, "prompt": "p", "metadata": {"task_id": ["x"]}},
            prompt_task("p"),
        ),
        ("metadata.task_id", {"task": None}, None),
        ("session", {"task": None}, None),
    ],
)
def test_task(source: str, fields: dict[str, Any], expected: str | None) -> None:
    assert settled(config(task={"from": source}), **fields).task == expected


@pytest.mark.parametrize("prompt", ["a b", " a  b\n", "a\tb", "a\u00a0b"])
def test_white_space_does_not_make_another_task(prompt: str) -> None:
    assert settled(task=None, prompt=prompt).task == prompt_task("a b")


@pytest.mark.parametrize(("one", "other"), [("a b", "ab"), ("A", "a"), ("a", "a."), ("", "a")])
def test_other_prompts_are_other_tasks(one: str, other: str) -> None:
    assert settled(task=None, prompt=one).task != settled(task=None, prompt=other).task


EAST = timezone(timedelta(hours=14))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("started", "day"),
    [
        (NOON, "2026-03-01"),
        (datetime(2026, 3, 1, 12), "2026-03-01"),  # noqa: DTZ001 - naive on purpose
        (datetime(2026, 3, 1, 1, tzinfo=EAST), "2026-02-28"),
        (datetime(2026, 2, 28, 23, tzinfo=timezone(timedelta(hours=-5))), "2026-03-01"),
        (datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01"),
    ],
)
def test_the_day_is_the_start_in_utc(started: datetime, day: str) -> None:
    found = settled(started_at=started)
    assert found.started_at is not None
    assert found.started_at.utcoffset() == timedelta(0)
    assert day_of(found) == day


@pytest.mark.parametrize(
    "started",
    [
        datetime(999, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, tzinfo=UTC),
        None,
        datetime(1, 1, 1, tzinfo=EAST),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-5))),
    ],
)
def test_a_default_date_fills_in_for_what_has_no_day(started: datetime | None) -> None:
    ended = NOON
    found = settle(snapshot(started_at=started, ended_at=ended), config(), date(2026, 1, 31))
    assert found.started_at == datetime(2026, 1, 31, tzinfo=UTC)
    assert found.problem is None
    # Nobody measured how long it took.
    assert found.duration_ms is None
    missing = settled(started_at=started)
    assert missing.started_at is None
    assert day_of(missing) is None


def test_a_default_date_replaces_no_time() -> None:
    assert settle(snapshot(started_at=NOON), config(), date(2020, 1, 1)).started_at == NOON


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"ended_at": NOON + timedelta(seconds=1.5)}, 1500),
        ({"ended_at": NOON}, 0),
        ({"ended_at": NOON - timedelta(seconds=1)}, None),
        ({"ended_at": None}, None),
        ({"ended_at": NOON + timedelta(seconds=9), "duration_ms": 5}, 5),
        ({"ended_at": datetime(2026, 3, 1, 12, 0, 2)}, 2000),  # noqa: DTZ001 - naive is UTC
        (
            {
                "started_at": datetime(2026, 3, 1, 12),  # noqa: DTZ001
                "ended_at": datetime(2026, 3, 2, 2, 0, 1, tzinfo=EAST),
            },
            1000,
        ),
    ],
)
def test_duration(fields: dict[str, Any], expected: int | None) -> None:
    assert settled(**{"started_at": NOON, **fields}).duration_ms == expected


NO_MODEL = "no model (metadata model_name names one)"
NO_TIME = "no time (--default-date, or default_date of its source, gives one)"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"model": None}, f"a.json: [0]: has {NO_MODEL}"),
        ({"started_at": None}, f"a.json: [0]: has {NO_TIME}"),
        ({"model": None, "started_at": None}, f"a.json: [0]: has {NO_MODEL} and {NO_TIME}"),
        ({"model": None, "problem": "is bad"}, f"is bad; a.json: [0]: has {NO_MODEL}"),
        ({"problem": "is bad"}, None),
        ({}, None),
    ],
)
def test_what_cannot_be_placed_says_why(fields: dict[str, Any], expected: str | None) -> None:
    found = settled(**fields)
    # It can be judged all the same, unless something else is wrong with it.
    assert found.problem == fields.get("problem")
    assert why_unplaced(found, ProjectConfig()) == expected


def test_the_cure_names_the_key_that_is_configured() -> None:
    settings = config(model_key="llm")
    found = why_unplaced(settled(settings, model=None), settings)
    assert found == "a.json: [0]: has no model (metadata llm names one)"


def test_what_was_settled_stays_as_it_is() -> None:
    once = settled(model="openai/gpt-4o", task=None, prompt="p", workflow=None, name="n")
    assert settle(once, ProjectConfig()) == once


def test_files_are_settled_trace_by_trace() -> None:
    content = lines(
        record("a"), record("b", model=None), record("c", started_at=None), "oops", record("d")
    )
    found = list(read_traces(trace_file(content), ProjectConfig()))
    reasons = [why_unplaced(item, ProjectConfig()) for item in found]
    placed = [item.trace_id for item, why in zip(found, reasons, strict=True) if why is None]
    assert placed == ["a", "d"]
    assert [item.trace_id for item in found if item.problem is None] == ["a", "b", "c", "d"]
    assert len(found) == 5
    for text in (*reasons, *(item.problem for item in found)):
        assert NAME not in (text or "")


def test_a_file_that_is_no_trace_raises() -> None:
    with pytest.raises(InputError, match="is no trace in a known format"):
        list(read_traces(trace_file({"a": 1}), ProjectConfig()))
