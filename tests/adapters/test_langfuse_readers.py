"""Both readers against a server: exactly its traces, whole, in few requests, whatever happens."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from benchmark_assets.adapters.langfuse.credentials import Credentials
from benchmark_assets.adapters.langfuse.http import Client, LangfuseError
from benchmark_assets.adapters.langfuse.readers import (
    Api,
    Arrival,
    Filters,
    Listed,
    RawTrace,
    Reader,
    Window,
)
from benchmark_assets.adapters.langfuse.selection import normalised
from benchmark_assets.adapters.langfuse.v1 import V1Reader
from benchmark_assets.adapters.langfuse.v2 import V2Reader
from tests.adapters.langfuse_readers import reader_of
from tests.langfuse_server import (
    PUBLIC_KEY,
    SECRET_KEY,
    START,
    Pair,
    Row,
    Server,
    generate,
    langfuse_server,
)

DAY = Window(START, START + timedelta(days=1))
APIS: tuple[Api, ...] = ("v1", "v2")
both = pytest.mark.parametrize("api", APIS)


@contextmanager
def reading(
    api: Api,
    data: Sequence[Pair],
    *,
    arrival: Arrival | None = None,
    sleep: Callable[[float], None] = lambda _: None,
    **limits: Any,
) -> Iterator[tuple[Reader, Server, Client]]:
    """A reader of a server with some traces. Sleeping takes no time, as its clock tells."""
    with langfuse_server(data, mode=api) as server:
        reader, client = reader_of(api, server.url, arrival=arrival, sleep=sleep, **limits)
        with client:
            yield reader, server, client


def ids_of(data: Sequence[Pair]) -> dict[str, set[str]]:
    """What a reader must find: the traces and the ids of their rows."""
    return {trace["id"]: {row["id"] for row in rows} for trace, rows in data}


def rows_of(found: Sequence[RawTrace]) -> dict[str, set[str]]:
    return {raw.trace_id: {row["id"] for row in raw.observations} for raw in found}


def at(seconds: float, base: datetime = START) -> str:
    return (base + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")


def span(trace_id: str, row_id: str, start: float, end: float | None, parent: str | None) -> Row:
    return {
        "id": row_id,
        "traceId": trace_id,
        "parentObservationId": parent,
        "startTime": at(start),
        "endTime": None if end is None else at(end),
        "name": row_id,
    }


def pair(trace_id: str, start: float, rows: list[Row]) -> Pair:
    return {"id": trace_id, "timestamp": at(start), "name": trace_id}, rows


# Exactly the server's traces.


@both
@pytest.mark.parametrize("wanted", ["listed", "all"])
def test_a_day_is_read_whole(api: Api, wanted: str) -> None:
    data = generate(700, seed=3)
    with reading(api, data) as (reader, _, __):
        listed = {item.trace_id: item for item in reader.list(DAY)}
        assert {key: item.observations for key, item in listed.items()} == {
            key: len(rows) for key, rows in ids_of(data).items()
        }
        found = list(reader.fetch_window(DAY, listed if wanted == "listed" else None))
        assert rows_of(found) == ids_of(data)
        assert len(found) == len(data)
        assert all(raw.complete and raw.why is None for raw in found)
        for raw in found:
            item = listed[raw.trace_id]
            assert (raw.fingerprint, raw.timestamp) == (item.fingerprint, item.timestamp)


@both
def test_lists_are_newest_first_and_times_are_the_traces(api: Api) -> None:
    data = generate(150, seed=4)
    with reading(api, data) as (reader, _, __):
        listed = list(reader.list(DAY))
    assert [item.timestamp for item in listed] == sorted(
        (datetime.fromisoformat(trace["timestamp"]) for trace, _ in data), reverse=True
    )


@both
@pytest.mark.parametrize("minutes", [7, 60, 720])
def test_every_trace_is_in_exactly_one_window(api: Api, minutes: int) -> None:
    # Traces of some seconds, some of which reach over the edges, and some long ones.
    data = generate(120, seed=5, span=timedelta(hours=12))
    rng = random.Random(5)
    for number in range(12):
        start = rng.uniform(0, 11 * 3600)
        long = f"long{number}"
        data.append(
            pair(
                long,
                start,
                [
                    span(long, f"{long}-root", start, start + 3000, None),
                    *(
                        span(long, f"{long}-{step}", start + 300 * step, start + 310 * step, None)
                        | {"parentObservationId": f"{long}-root"}
                        for step in range(1, 10)
                    ),
                ],
            )
        )
    step = timedelta(minutes=minutes)
    with reading(api, data) as (reader, _, __):
        found: list[RawTrace] = []
        listed: list[Listed] = []
        begin = START
        while begin < START + timedelta(hours=12):
            window = Window(begin, begin + step)
            items = list(reader.list(window))
            listed += items
            found += reader.fetch_window(window, {item.trace_id: item for item in items})
            begin += step
        everything = list(reader.fetch_window(Window(START, START + timedelta(hours=12))))
    assert Counter(item.trace_id for item in listed) == Counter(ids_of(data).keys())
    assert rows_of(found) == ids_of(data)
    assert len(found) == len(data)
    assert rows_of(everything) == ids_of(data)
    assert {item.trace_id: item.fingerprint for item in listed} == {
        raw.trace_id: raw.fingerprint for raw in everything
    }


@both
def test_one_trace_by_id_is_the_same_as_in_bulk(api: Api) -> None:
    data = generate(60, seed=6)
    with reading(api, data) as (reader, _, __):
        bulk = {raw.trace_id: raw for raw in reader.fetch_window(DAY)}
        for trace, _ in data[:5]:
            alone = reader.fetch(trace["id"])
            assert alone is not None
            assert alone.trace == bulk[trace["id"]].trace
            assert alone.observations == bulk[trace["id"]].observations
        many = list(reader.fetch_many([trace["id"] for trace, _ in data] + ["none"]))
        assert rows_of(many) == ids_of(data)


@both
def test_an_id_that_nobody_has(api: Api) -> None:
    with reading(api, generate(3)) as (reader, _, __):
        assert reader.fetch("nobody/has?it") is None
        assert list(reader.fetch_many([])) == []
        assert list(reader.list(Window(START - timedelta(days=9), START))) == []
        assert list(reader.fetch_window(DAY, {})) == []


# Few requests.


def test_v2_asks_for_as_few_pages_as_there_are() -> None:
    data = generate(1000, seed=7)
    rows = sum(len(held) for _, held in data)
    with reading("v2", data) as (reader, _, client):
        assert len(list(reader.fetch_window(DAY))) == 1000
        # And one lean page of the minutes before the day.
        assert client.counts.requests == -(-rows // 1000) + 1
        before = client.counts.requests
        listed = {item.trace_id: item for item in reader.list(DAY)}
        assert client.counts.requests - before == -(-rows // 1000) + 1
        before = client.counts.requests
        assert len(list(reader.fetch_window(DAY, listed))) == 1000
        assert client.counts.requests - before <= -(-rows // 1000) + 2


def test_v1_asks_for_as_few_pages_as_there_are() -> None:
    data = generate(1000, seed=7)
    rows = sum(len(held) for _, held in data)
    with reading("v1", data) as (reader, _, client):
        listed = {item.trace_id: item for item in reader.list(DAY)}
        # Every page but the last has one row of the page before.
        assert client.counts.requests <= 1000 / 99 + 1
        before = client.counts.requests
        assert len(list(reader.fetch_window(DAY, listed))) == 1000
        least = rows / 99 + 1000 / 99
        assert client.counts.requests - before <= least + 3


@both
def test_few_of_many_are_not_read_with_all(api: Api) -> None:
    data = generate(600, seed=8)
    with reading(api, data) as (reader, _, client):
        listed = list(reader.list(DAY))
        some = {item.trace_id: item for item in listed[::100]}
        before = client.counts.requests
        assert {raw.trace_id for raw in reader.fetch_window(DAY, some)} == set(some)
        assert client.counts.requests - before <= {"v1": 7, "v2": 1}[api]


# What happens while one reads.


def test_v1_pages_that_shift_lose_and_repeat_nothing() -> None:
    data = generate(450, seed=9)
    late = generate(300, seed=10)
    with reading("v1", data) as (reader, server, _):
        seen: list[str] = []
        for number, item in enumerate(reader.list(DAY)):
            seen.append(item.trace_id)
            if number % 2 == 0 and late:
                server.add(*late.pop())
    assert max(Counter(seen).values()) == 1
    assert set(ids_of(data)) <= set(seen)


@both
def test_what_arrives_while_a_window_is_fetched_changes_nothing_of_the_rest(api: Api) -> None:
    data = generate(450, seed=11)
    late = generate(200, seed=12)
    names = set(ids_of(late))
    with reading(api, data) as (reader, server, _):
        found: dict[str, RawTrace] = {}
        for raw in reader.fetch_window(DAY):
            found[raw.trace_id] = raw
            if late:
                server.add(*late.pop())
    assert rows_of([raw for key, raw in found.items() if key not in names]) == ids_of(data)


@both
def test_many_traces_of_one_moment(api: Api) -> None:
    data = [
        pair(f"t{number}", 60, [span(f"t{number}", f"r{number}", 60, 61, None)])
        for number in range(2300)
    ]
    with reading(api, data) as (reader, _, __):
        assert len(list(reader.list(DAY))) == 2300
        assert rows_of(list(reader.fetch_window(DAY))) == ids_of(data)


@pytest.mark.parametrize("crowded_at", [0.0, 40_000.0, 86_000.0])
def test_v1_many_rows_are_read_in_stretches_that_leave_nothing_out(crowded_at: float) -> None:
    # Nearly all in a minute: an even spread over the day would be guessed wrong.
    rng = random.Random(1)
    starts = [crowded_at + rng.uniform(0, 60) for _ in range(6300)]
    starts += [rng.uniform(0, 86_000) for _ in range(200)]
    data = [
        pair(f"t{number}", start, [span(f"t{number}", f"r{number}", start, start + 1, None)])
        for number, start in enumerate(starts)
    ]
    with reading("v1", data) as (reader, _, client):
        listed = {item.trace_id: item for item in reader.list(DAY)}
        assert len(listed) == 6500
        assert client.counts.requests < 6500 / 99 * 1.4
        assert rows_of(list(reader.fetch_window(DAY, listed))) == ids_of(data)


@both
def test_a_trace_of_more_rows_than_a_page_holds(api: Api) -> None:
    rows = [span("big", "root", 60, 90, None)]
    rows += [span("big", f"r{number}", 60 + number % 7, 89, "root") for number in range(2500)]
    data = [pair("big", 60, rows), *generate(20, seed=13)]
    with reading(api, data) as (reader, _, __):
        listed = {item.trace_id: item for item in reader.list(DAY)}
        assert listed["big"].observations == 2501
        assert rows_of(list(reader.fetch_window(DAY, listed))) == ids_of(data)
        alone = reader.fetch("big")
        assert alone is not None
        assert len(alone.observations) == 2501


# Fingerprints.


@both
def test_a_fingerprint_changes_with_the_trace_and_only_then(api: Api) -> None:
    data = generate(40, seed=14)
    with reading(api, data) as (reader, server, _):
        before = {item.trace_id: item.fingerprint for item in reader.list(DAY)}
        assert {item.trace_id: item.fingerprint for item in reader.list(DAY)} == before
        grown, ended, renamed = (trace["id"] for trace, _ in data[:3])
        first = data[0][1][0]
        server.add(None, [{**first, "id": "new", "parentObservationId": first["id"]}])
        server.add(None, [{**data[1][1][-1], "endTime": at(90_000)}])
        server.add({**data[2][0], "name": "other"}, [{**data[2][1][0], "name": "other"}])
        after = {item.trace_id: item.fingerprint for item in reader.list(DAY)}
    changed = {key for key in before if after[key] != before[key]}
    assert changed == {grown, ended, renamed}


# Traces of odd build.


def test_v2_tells_which_window_traces_of_odd_build_are_of() -> None:
    hour = 3600.0
    data = [
        # No root at all, and its parent is another service's.
        pair("orphans", hour, [span("orphans", "o1", hour, hour + 1, "elsewhere")]),
        # Its root began in the hour before.
        pair(
            "before",
            hour - 1800,
            [
                span("before", "b1", hour - 1800, hour + 90, None),
                span("before", "b2", hour + 60, hour + 80, "b1"),
            ],
        ),
        # A child whose clock is ten minutes slow.
        pair(
            "skewed",
            hour + 300,
            [
                span("skewed", "s1", hour + 300, hour + 320, None),
                span("skewed", "s2", hour - 300, hour - 280, "s1"),
            ],
        ),
        # Used twice, an hour apart.
        pair(
            "twice",
            hour + 60,
            [
                span("twice", "t1", hour + 60, hour + 61, None),
                span("twice", "t2", hour + 3500, hour + 3501, None),
            ],
        ),
        # Its root lasts into the next hours.
        pair(
            "after",
            hour + 3590,
            [
                span("after", "a1", hour + 3590, hour + 9000, None),
                span("after", "a2", hour + 8000, hour + 8001, "a1"),
            ],
        ),
        # A root marked by its SDK that has a parent.
        pair(
            "marked",
            hour + 5,
            [span("marked", "m1", hour + 5, hour + 6, "elsewhere") | {"isRootObservation": True}],
        ),
    ]
    second = Window(START + timedelta(hours=1), START + timedelta(hours=2))
    with reading("v2", data) as (reader, _, __):
        for number in range(4):
            window = Window(START + timedelta(hours=number), START + timedelta(hours=number + 1))
            listed = {item.trace_id: item for item in reader.list(window)}
            everything = {raw.trace_id: raw for raw in reader.fetch_window(window)}
            found = {raw.trace_id: raw for raw in reader.fetch_window(window, listed)}
            expected = {
                key: rows
                for key, rows in ids_of(data).items()
                if (key == "before" and number == 0) or (key != "before" and window == second)
            }
            assert rows_of(list(found.values())) == expected
            assert rows_of(list(everything.values())) == expected
            for key, item in listed.items():
                assert item.fingerprint == found[key].fingerprint == everything[key].fingerprint


def test_v2_looks_up_in_few_requests_what_has_no_root() -> None:
    data = [
        pair(f"t{n}", 60.0 + n, [span(f"t{n}", f"r{n}", 60.0 + n, 61.0 + n, "elsewhere")])
        for n in range(400)
    ]
    with reading("v2", data) as (reader, _, client):
        assert rows_of(list(reader.fetch_window(DAY))) == ids_of(data)
        assert client.counts.requests <= 1 + 400 / 40


@both
def test_of_rows_with_one_id_the_newest_counts(api: Api) -> None:
    data = [pair("t", 60, [span("t", "r", 60, None, None), span("t", "c", 61, 62, "r")])]
    with reading(api, data) as (reader, server, _):
        old = [row for _, rows in data for row in rows]
        server.add(None, [{**old[0], "endTime": at(65), "output": "done"}])
        raw = next(reader.fetch_window(DAY))
        assert [row["id"] for row in raw.observations] == ["r", "c"]
        assert raw.observations[0]["endTime"] is not None


# Traces still arriving.


def recent(name: str, ended: bool = True, root: bool = True, ago: float = 30) -> Pair:
    """A trace that the server heard of some seconds ago."""
    now = datetime.now(UTC)
    begin = (now - START).total_seconds() - ago
    rows = [span(name, f"{name}-root", begin, begin + 5 if ended else None, None)] if root else []
    rows.append(span(name, f"{name}-child", begin + 1, begin + 2, f"{name}-root"))
    heard = at(begin + 6)
    rows = [{**row, "createdAt": heard, "updatedAt": heard} for row in rows]
    trace, _ = pair(name, begin, rows)
    return {**trace, "createdAt": heard, "updatedAt": heard}, rows


@both
def test_a_recent_trace_is_read_twice(api: Api) -> None:
    slept: list[float] = []
    with reading(api, [recent("t")], sleep=slept.append) as (reader, _, __):
        raw = reader.fetch("t")
    assert raw is not None
    assert raw.complete
    assert slept == [5.0]


@both
@pytest.mark.parametrize("kind", ["open root", "no root"])
def test_a_trace_that_arrives_while_it_is_waited_for_is_whole(api: Api, kind: str) -> None:
    first = recent("t", ended=False, root=kind == "open root")
    root = recent("t")[1][0]
    more = {**root, "id": "more", "parentObservationId": "t-root"}
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            server.add(None, [root, more])

    with reading(api, [first], sleep=sleep) as (reader, server, _):
        raw = reader.fetch("t")
    assert raw is not None
    assert (raw.complete, raw.why) == (True, None)
    assert {row["id"] for row in raw.observations} == {"t-root", "t-child", "more"}
    assert slept == [5.0, 10.0, 20.0]


@both
@pytest.mark.parametrize(
    ("ended", "root", "words"),
    [(False, True, "root has not ended"), (True, False, "root is missing")],
)
def test_a_trace_that_does_not_arrive_in_time_is_given_as_incomplete(
    api: Api, ended: bool, root: bool, words: str
) -> None:
    slept: list[float] = []
    data = [recent("t", ended=ended, root=root), recent("whole", ago=3600)]
    now = datetime.now(UTC)
    window = Window(now - timedelta(hours=3), now)
    with reading(api, data, sleep=slept.append) as (reader, _, __):
        found = list(reader.fetch_window(window))
    assert [(raw.trace_id, raw.complete) for raw in found] == [("whole", True), ("t", False)]
    assert words in str(found[1].why)
    assert 60 <= sum(slept) <= 61
    problem = normalised(found[1]).problem
    assert problem is not None
    assert words in problem
    assert normalised(found[0]).problem is None


@both
def test_not_waiting_gives_it_as_incomplete_at_once(api: Api) -> None:
    slept: list[float] = []
    arrival = Arrival(wait_s=0)
    with reading(api, [recent("t")], arrival=arrival, sleep=slept.append) as (reader, _, __):
        raw = reader.fetch("t")
    assert raw is not None
    assert not raw.complete
    assert "may still arrive" in str(raw.why)
    assert slept == []


@both
def test_a_trace_that_died_long_ago_is_not_waited_for(api: Api) -> None:
    data = [pair("t", 60, [span("t", "r", 60, None, None)])]
    slept: list[float] = []
    with reading(api, data, sleep=slept.append) as (reader, _, __):
        raw = reader.fetch("t")
    assert raw is not None
    assert raw.complete
    assert slept == []
    # That it did not end is a matter of the trace and not of reading.
    assert "not finished" in str(normalised(raw).problem)


@both
def test_clocks_of_agents_do_not_count_but_the_servers(api: Api) -> None:
    ahead = 5 * 86400.0 + (datetime.now(UTC) - START).total_seconds()
    heard = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    row = span("t", "r", ahead, ahead + 5, None) | {"updatedAt": heard, "createdAt": heard}
    slept: list[float] = []
    trace = {"id": "t", "timestamp": at(ahead), "createdAt": heard, "updatedAt": heard}
    with reading(api, [(trace, [row])], sleep=slept.append) as (reader, _, __):
        raw = reader.fetch("t")
    assert raw is not None
    assert raw.complete
    assert slept == []


@both
def test_a_trace_that_was_sent_a_moment_ago_is_asked_for_again(api: Api) -> None:
    with reading(api, [], sleep=lambda _: server.add(*recent("t", ago=3600))) as (
        reader,
        server,
        _,
    ):
        raw = reader.fetch("t")
    assert raw is not None
    assert len(raw.observations) == 2


# Conditions.


def expected(data: Sequence[Pair], test: Callable[[Row], bool]) -> set[str]:
    return {trace["id"] for trace, _ in data if test(trace)}


CONDITIONS: list[tuple[Filters, Callable[[Row], bool]]] = [
    (Filters(environments=("prod",)), lambda t: t["environment"] == "prod"),
    (Filters(environments=("prod", "dev")), lambda t: t["environment"] in ("prod", "dev")),
    (Filters(names=("planner",)), lambda t: t["name"] == "planner"),
    (Filters(names=("planner", "support")), lambda t: t["name"] in ("planner", "support")),
    (Filters(user_ids=("user-3", "user-4")), lambda t: t["userId"] in ("user-3", "user-4")),
    (Filters(session_ids=("session-7",)), lambda t: t["sessionId"] == "session-7"),
    (Filters(tags=("bench", "nightly")), lambda t: "nightly" in t["tags"]),
    (
        Filters(metadata=(("projectid", ("P1", "P2")),)),
        lambda t: t["metadata"]["projectid"] in ("P1", "P2"),
    ),
    (
        Filters(metadata=(("projectid", ("P1", "P2")), ("run_id", ("run-8", "run-9", "run-10")))),
        lambda t: t["metadata"]["run_id"] in ("run-8", "run-9"),
    ),
    (
        Filters(environments=("prod",), names=("planner",), metadata=(("projectid", ("P1",)),)),
        lambda t: (
            t["environment"] == "prod"
            and t["name"] == "planner"
            and t["metadata"]["projectid"] == "P1"
        ),
    ),
    (Filters(user_ids=("nobody",)), lambda _: False),
]


@both
@pytest.mark.parametrize(("filters", "test"), CONDITIONS)
def test_the_server_applies_conditions(
    api: Api, filters: Filters, test: Callable[[Row], bool]
) -> None:
    data = generate(300, seed=15, environments=("prod", "dev", "default"))
    with reading(api, data) as (reader, _, __):
        listed = list(reader.list(DAY, filters))
        assert {item.trace_id for item in listed} == expected(data, test)
        assert len(listed) == len(expected(data, test))
        wanted = {item.trace_id: item for item in listed}
        named = rows_of(list(reader.fetch_window(DAY, wanted, filters)))
        everything = rows_of(list(reader.fetch_window(DAY, None, filters)))
    assert everything == named == {key: ids_of(data)[key] for key in wanted}


def test_v2_conditions_need_not_hold_on_one_row() -> None:
    # A user on the root and a key of metadata on a child.
    rows = [span("t", "r", 60, 70, None), span("t", "c", 61, 62, "r")]
    rows[0]["userId"] = "ada"
    rows[1].update(userId=None, metadata={"step": {"kind": "last"}})
    filters = Filters(user_ids=("ada",), metadata=(("step.kind", ("last",)),))
    with reading("v2", [pair("t", 60, rows), *generate(5)]) as (reader, _, __):
        assert [item.trace_id for item in reader.list(DAY, filters)] == ["t"]


def test_v2_looks_for_words_in_inputs() -> None:
    data = generate(50, seed=16)
    wanted = data[7][0]["id"]
    with reading("v2", data) as (reader, _, __):
        listed = list(reader.list(DAY, Filters(input_contains=" 7.")))
    assert wanted in {item.trace_id for item in listed}
    assert len(listed) < 20


# Bounds.


@both
def test_memory_is_bounded_by_what_is_in_flight(api: Api) -> None:
    text = "x" * 20_000
    data = [
        (trace, [{**row, "input": text} for row in rows]) for trace, rows in generate(1500, seed=17)
    ]
    total = sum(len(rows) for _, rows in data) * len(text)
    with reading(api, data, in_flight=1) as (reader, _, __):
        for _ in reader.fetch_window(DAY):
            break  # what is loaded once
        tracemalloc.start()
        try:
            count = sum(1 for _ in reader.fetch_window(DAY))
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert count == 1500
    # The server runs in this process too: its pages are held once more.
    assert peak < total * 0.75


@both
def test_a_budget_ends_reading_with_an_error(api: Api) -> None:
    with reading(api, generate(900, seed=18), requests=2) as (reader, _, client):
        with pytest.raises(LangfuseError) as caught:
            list(reader.fetch_window(DAY))
        assert caught.value.kind == "budget"
        assert client.counts.requests == 2


@both
def test_wrong_keys_end_reading_with_an_error(api: Api) -> None:
    asks: tuple[Callable[[Reader], Any], ...] = (
        lambda reader: list(reader.list(DAY)),
        lambda reader: reader.fetch("t"),
        lambda reader: list(reader.fetch_many(["t", "u"])),
        lambda reader: list(reader.fetch_window(DAY)),
    )
    with (
        langfuse_server(generate(5), mode=api) as server,
        Client(Credentials("pk-lf-wrong", "sk-lf-wrong", server.url)) as client,
    ):
        for ask in asks:
            with pytest.raises(LangfuseError) as caught:
                ask(V1Reader(client) if api == "v1" else V2Reader(client))
            assert caught.value.kind == "unauthorized"


def test_v1_reading_of_a_server_without_it_says_so() -> None:
    with (
        langfuse_server(generate(5), mode="v2") as server,
        Client(Credentials(PUBLIC_KEY, SECRET_KEY, server.url)) as client,
        pytest.raises(LangfuseError) as caught,
    ):
        V1Reader(client).fetch("t")
    assert caught.value.kind == "gone"
