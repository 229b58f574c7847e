"""Choosing traces, on servers and in files: the same traces for the same selection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.langfuse.http import Client
from benchmark_assets.adapters.langfuse.readers import Api
from benchmark_assets.adapters.langfuse.selection import LangfuseTraces, stretches
from benchmark_assets.adapters.trace_source import FileTraces, Progress, Selection, TraceSource
from benchmark_assets.model.project import ModelSettings, ProjectConfig
from benchmark_assets.model.trace import SkillLoad
from tests.adapters.langfuse_readers import reader_of
from tests.langfuse_server import (
    START,
    Pair,
    Row,
    Server,
    generate,
    langfuse_server,
)

CONFIG = ProjectConfig(models={"gpt": ModelSettings(aliases=("gpt-5-mini",))})
NOW = START + timedelta(days=1)
DATA = generate(240, seed=21, environments=("prod", "dev"))
by_each = pytest.mark.parametrize("kind", ["v1", "v2", "files"])
by_api = pytest.mark.parametrize("kind", ["v1", "v2"])


@contextmanager
def serving(
    kind: Api, data: Sequence[Pair] = DATA, **options: Any
) -> Iterator[tuple[LangfuseTraces, Server, Client]]:
    with langfuse_server(data, mode=kind) as server:
        reader, client = reader_of(kind, server.url)
        with client:
            yield LangfuseTraces(reader, CONFIG, **options), server, client


@contextmanager
def source_of(kind: str) -> Iterator[TraceSource]:
    if kind == "files":
        lines = [
            msgspec.json.encode({"trace": trace, "observations": rows}) for trace, rows in DATA
        ]
        files = [
            TraceFile(f"{number}.jsonl", f"{number}.jsonl", b"\n".join(lines[number::2]))
            for number in range(2)
        ]
        yield FileTraces(files, CONFIG)
    else:
        with serving("v1" if kind == "v1" else "v2") as (source, _, __):
            yield source


def expected(test: Callable[[Row, list[Row]], bool]) -> list[str]:
    """The traces that pass, newest first."""
    found = [trace for trace, rows in DATA if test(trace, rows)]
    return [trace["id"] for trace in sorted(found, key=lambda t: t["timestamp"], reverse=True)]


def uses(model: str) -> Callable[[Row, list[Row]], bool]:
    return lambda _, rows: any(row.get("model") == model for row in rows)


def asks(word: str) -> Callable[[Row, list[Row]], bool]:
    return lambda trace, _: word in trace["input"]["messages"][0]["content"].lower()


NOON = START + timedelta(hours=12)
CASES: list[tuple[str, Selection, Callable[[Row, list[Row]], bool]]] = [
    ("everything", Selection(until=NOW), lambda *_: True),
    ("user", Selection(until=NOW, user="user-3"), lambda t, _: t["userId"] == "user-3"),
    ("name", Selection(until=NOW, name="planner"), lambda t, _: t["name"] == "planner"),
    (
        "tags",
        Selection(until=NOW, tags=("bench", "manual")),
        lambda t, _: "manual" in t["tags"],
    ),
    (
        "environment",
        Selection(until=NOW, environments=("dev",)),
        lambda t, _: t["environment"] == "dev",
    ),
    (
        "time",
        Selection(since=NOON, until=NOON + timedelta(hours=3)),
        lambda t, _: NOON <= datetime.fromisoformat(t["timestamp"]) < NOON + timedelta(hours=3),
    ),
    (
        "or within a key, and over keys",
        Selection(
            until=NOW,
            filters={"projectid": ("P1", "P2"), "run_id": tuple(f"run-{n}" for n in range(30))},
        ),
        lambda t, _: (
            t["metadata"]["projectid"] in ("P1", "P2") and int(t["metadata"]["run_id"][4:]) < 30
        ),
    ),
    (
        "session",
        Selection(until=NOW, thread_id="session-7"),
        lambda t, _: t["sessionId"] == "session-7",
    ),
    (
        "session and run",
        Selection(until=NOW, thread_id="session-7", run_id="run-36"),
        lambda t, _: t["metadata"]["run_id"] == "run-36",
    ),
    ("model", Selection(until=NOW, model="claude-sonnet-4-5"), uses("claude-sonnet-4-5")),
    ("canonical model", Selection(until=NOW, model="gpt"), uses("gpt-5-mini")),
    ("prompt", Selection(until=NOW, prompt_contains="REFUND of"), asks("refund of")),
    ("odd prompt", Selection(until=NOW, prompt_contains="of Order 1"), asks("of order 1")),
    ("part of a word", Selection(until=NOW, prompt_contains="udget 1."), asks("udget 1.")),
    ("none", Selection(until=NOW, user="nobody"), lambda *_: False),
]


@by_each
@pytest.mark.parametrize(
    ("selection", "test"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
def test_exactly_what_is_asked_for_newest_first(
    kind: str, selection: Selection, test: Callable[[Row, list[Row]], bool]
) -> None:
    wanted = expected(test)
    every = msgspec.structs.replace(selection, limit=1000)
    progress = Progress()
    with source_of(kind) as source:
        found = [item.snapshot.trace_id for item in source.select(every, progress)]
        assert found == wanted
        assert (progress.given, progress.stopped) == (len(wanted), None)
        some = msgspec.structs.replace(selection, limit=3)
        assert [item.snapshot.trace_id for item in source.select(some)] == wanted[:3]


@by_each
def test_by_id_in_the_order_asked_for(kind: str) -> None:
    ids = [DATA[number][0]["id"] for number in (9, 2, 30)]
    progress = Progress()
    with source_of(kind) as source:
        asked = Selection(ids=(ids[0], "missing", ids[1], ids[2]))
        found = [item.snapshot.trace_id for item in source.select(asked, progress)]
        assert found == ids
        assert progress.missing == ["missing"]
        one = list(source.select(Selection(ids=(ids[1],))))
        assert [item.snapshot.trace_id for item in one] == [ids[1]]


@by_api
def test_the_sources_environment_is_the_selections_unless_it_says_another(kind: Api) -> None:
    with serving(kind, environments=("prod",)) as (source, _, __):
        prod = {item.snapshot.environment for item in source.select(Selection(until=NOW))}
        assert prod == {"prod"}
        every = Selection(until=NOW, environments=(), limit=1000)
        assert len(list(source.select(every))) == 240
        other = next(trace for trace, _ in DATA if trace["environment"] == "dev")
        assert len(list(source.select(Selection(ids=(other["id"],))))) == 1


@by_api
def test_a_thread_is_a_session_or_else_metadata(kind: Api) -> None:
    data = generate(4, seed=22)
    for trace, _ in data[:2]:
        trace["sessionId"] = None
        trace["metadata"]["thread_id"] = "proj:session"
    with serving(kind, data) as (source, _, __):
        found = source.select(Selection(thread_id="proj:session", until=NOW))
        assert {item.snapshot.trace_id for item in found} == {trace["id"] for trace, _ in data[:2]}
        # A session of that name goes before metadata of that name.
    data[3][0]["sessionId"] = "proj:session"
    with serving(kind, data) as (source, _, __):
        found = source.select(Selection(thread_id="proj:session", until=NOW))
        assert [item.snapshot.trace_id for item in found] == [data[3][0]["id"]]


@by_api
@pytest.mark.parametrize(
    ("value", "text"), [(7, "7"), (True, "true"), (1.5, "1.5"), ("7", "7"), (None, None)]
)
def test_metadata_is_compared_as_text(kind: Api, value: Any, text: str | None) -> None:
    data = generate(3, seed=23)
    data[1][0]["metadata"]["app"] = {"build": value}
    with serving(kind, data) as (source, _, __):
        key = "app.build" if kind == "v2" else "build"
        if kind == "v1":
            data[1][0]["metadata"]["build"] = value
        asked = Selection(filters={key: (text or "null",)}, until=NOW)
        found = [item.snapshot.trace_id for item in source.select(asked)]
    assert found == ([] if text is None else [data[1][0]["id"]])


@by_api
def test_content_search_looks_until_enough_match(kind: Api) -> None:
    wanted = expected(uses("gpt-5-mini"))
    progress = Progress()
    with serving(kind) as (source, _, client):
        asked = Selection(model="gpt-5-mini", until=NOW, limit=4)
        found = [item.snapshot.trace_id for item in source.select(asked, progress)]
        assert found == wanted[:4]
        assert progress.looked_at < 40
        assert client.counts.requests < {"v1": 60, "v2": 20}[kind]


@by_api
def test_content_search_stops_at_its_cap_and_says_so(kind: Api) -> None:
    progress = Progress()
    with serving(kind) as (source, _, __):
        asked = Selection(prompt_contains="no such: thing", until=NOW, scan_cap=30)
        assert list(source.select(asked, progress)) == []
    assert progress.looked_at == 30
    assert progress.stopped == "30 traces were looked at, the most allowed"


@by_api
def test_a_short_selection_takes_few_requests(kind: Api) -> None:
    with serving(kind) as (source, _, client):
        assert len(list(source.select(Selection(until=NOW, limit=1)))) == 1
        assert client.counts.requests <= 8


@by_api
def test_skills_are_known_by_whoever_asks(kind: Api) -> None:
    wanted = expected(lambda _, rows: any(row["name"] == "send_mail" for row in rows))

    def skills(snapshot: Any) -> Iterator[str]:
        return (f"Use {call.name}" for call in snapshot.tool_calls)

    with serving(kind, skills=skills) as (source, _, __):
        asked = Selection(skill_contains="USE send", until=NOW, limit=1000)
        assert [item.snapshot.trace_id for item in source.select(asked)] == wanted


def test_skills_that_a_source_records() -> None:
    line = b'{"trace_id": "a", "tool_calls": [], "skills": [{"name": "Deep-Search"}]}'
    assert msgspec.json.decode(b'{"name": "x"}', type=SkillLoad).name == "x"
    source = FileTraces([TraceFile("a.json", "a.json", line)], CONFIG)
    found = [item.snapshot.trace_id for item in source.select(Selection(skill_contains="deep"))]
    assert found == ["a"]
    assert list(source.select(Selection(skill_contains="shallow"))) == []


@by_api
def test_what_is_given_can_be_read_again_from_a_file(kind: Api) -> None:
    with serving(kind) as (source, _, __):
        for item in source.select(Selection(until=NOW, limit=3)):
            content = msgspec.json.encode(item.document)
            again = FileTraces([TraceFile("t.json", "t.json", content)], CONFIG)
            read = next(again.select(Selection())).snapshot
            assert msgspec.structs.replace(read, origin=item.snapshot.origin) == item.snapshot


def test_a_server_that_ignores_filters_is_not_believed() -> None:
    data = generate(12, seed=24)
    with serving("v1", data) as (source, server, _):
        answer = server.answer

        def ignoring(method: str, target: str, headers: Any, body: bytes) -> Any:
            head, mark, query = target.partition("?")
            kept = [part for part in query.split("&") if not part.startswith("filter=")]
            return answer(method, head + mark + "&".join(kept), headers, body)

        server.answer = ignoring  # type: ignore[method-assign]
        asked = Selection(filters={"projectid": ("P3",)}, until=NOW)
        found = {item.snapshot.trace_id for item in source.select(asked)}
    assert found == {t["id"] for t, _ in data if t["metadata"]["projectid"] == "P3"}


def test_time_is_gone_back_in_growing_stretches_without_gaps() -> None:
    now = datetime(2026, 12, 1, tzinfo=UTC)
    windows = list(stretches(Selection(), now))
    assert windows[0].end > now
    assert windows[-1].start <= datetime(2023, 1, 1, tzinfo=UTC)
    assert len(windows) < 12
    assert all(later.start == earlier.end for later, earlier in pairwise(windows))
    bounded = list(stretches(Selection(since=START, until=NOON), now))
    assert (bounded[0].end, bounded[-1].start) == (NOON, START)
    assert list(stretches(Selection(since=NOON, until=START), now)) == []
