"""Reading servers that break, shift, refuse and repeat: exactly their traces all the same."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from benchmark_assets.adapters.langfuse.http import LangfuseError
from benchmark_assets.adapters.langfuse.readers import Api, Arrival, Reader, Window
from benchmark_assets.adapters.langfuse.selection import normalised
from tests.adapters.langfuse_readers import reader_of
from tests.langfuse_server import (
    ODDITIES,
    START,
    Faults,
    Pair,
    generate,
    langfuse_server,
    langfuse_server_apart,
    make_odd,
    with_oddities,
)

DAY = Window(START, START + timedelta(days=1))
APIS: tuple[Api, ...] = ("v1", "v2")
both = pytest.mark.parametrize("api", APIS)


def ids_of(data: Sequence[Pair]) -> dict[str, list[str]]:
    return {trace["id"]: sorted(row["id"] for row in rows) for trace, rows in data}


def read(reader: Reader, listed: bool) -> dict[str, list[str]]:
    """The traces of the day and the ids of their rows; of one that comes twice, the later."""
    wanted = {item.trace_id: item for item in reader.list(DAY)} if listed else None
    found = list(reader.fetch_window(DAY, wanted))
    assert all(raw.complete for raw in found), [raw.why for raw in found if not raw.complete]
    if listed:
        assert max(Counter(raw.trace_id for raw in found).values()) == 1
    return {raw.trace_id: sorted(row["id"] for row in raw.observations) for raw in found}


FAULTS = {
    "server errors": Faults(server_errors=0.2),
    "gateway time-outs": Faults(gateway_timeouts=0.1, in_a_row=1),
    "resets": Faults(resets=0.2),
    "truncated": Faults(truncated=0.2),
    "cut": Faults(cut=0.2),
    "html": Faults(html=0.1, in_a_row=2),
    "bursts": Faults(burst_every=4, burst=3, retry_after=1),
    "bursts with dates": Faults(burst_every=4, burst=3, retry_after=1, retry_after_as="date"),
    "bursts with resets": Faults(burst_every=4, burst=3, retry_after=1, retry_after_as="reset"),
    "bursts without a word": Faults(burst_every=4, burst=3, retry_after_as="nothing"),
    "too many rows": Faults(too_many_rows=40),
    "too many bytes": Faults(too_many_bytes=60_000),
    "too long a window": Faults(too_long_window=timedelta(hours=5)),
    "duplicates": Faults(duplicates=0.3),
    "bare children": Faults(bare_children=True),
    "unseen at first": Faults(unseen=0.3, unseen_requests=0),
    "all of it": Faults(
        server_errors=0.05,
        resets=0.05,
        truncated=0.03,
        cut=0.03,
        burst_every=20,
        duplicates=0.1,
        too_many_rows=300,
    ),
}


@both
@pytest.mark.parametrize("listed", [True, False], ids=["listed", "all"])
@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS.keys())
def test_exactly_the_servers_traces(api: Api, listed: bool, faults: Faults) -> None:
    data = generate(320, seed=31)
    # v1 servers have no rule about the length of a time by itself: traces by id have none.
    with langfuse_server(data, mode=api, faults=faults) as server:
        reader, client = reader_of(api, server.url)
        with client:
            assert read(reader, listed) == ids_of(data)


@both
def test_pages_that_shift_lose_and_repeat_nothing(api: Api) -> None:
    data = generate(400, seed=32)
    late = tuple(generate(200, seed=33))
    faults = Faults(arrivals=late, server_errors=0.05)
    with langfuse_server(data, mode=api, faults=faults) as server:
        reader, client = reader_of(api, server.url)
        with client:
            found = read(reader, listed=True)
    names = {trace["id"] for trace, _ in late}
    assert {key: rows for key, rows in found.items() if key not in names} == ids_of(data)


@both
def test_traces_that_arrive_bit_by_bit_are_given_whole(api: Api) -> None:
    now = START + timedelta(days=1)
    data = generate(30, seed=34)
    faults = Faults(settling=0.5, settling_reads=2)
    arrival = Arrival(settle_s=1e9, silence_s=1e9, wait_s=600)
    with langfuse_server(data, mode=api, faults=faults) as server:
        reader, client = reader_of(api, server.url, arrival=arrival)
        with client:
            found = list(reader.fetch_window(Window(START, now)))
    assert all(raw.complete for raw in found)
    assert {raw.trace_id: sorted(row["id"] for row in raw.observations) for raw in found} == ids_of(
        data
    )


@both
def test_shrinking_is_learned_and_not_paid_for_on_every_page(api: Api) -> None:
    data = generate(1000, seed=35)
    rows = sum(len(held) for _, held in data)
    faults = Faults(too_many_rows=50)
    with langfuse_server(data, mode=api, faults=faults) as server:
        reader, client = reader_of(api, server.url)
        with client:
            assert read(reader, listed=False) == ids_of(data)
            refused = sum(request.status == 422 for request in server.requests)
            answered = sum(request.status == 200 for request in server.requests)
    pages = {"v1": (rows + 2 * len(data)) / 25, "v2": rows / 25}[api]
    assert answered < pages * 2
    assert refused < answered * 0.2


@both
def test_one_huge_trace_does_not_slow_down_the_others(api: Api) -> None:
    data = generate(900, seed=36)
    trace, rows = copy.deepcopy(data[450])
    for row in rows:
        row["input"] = "x" * 400_000
    data[450] = (trace, rows)
    total = sum(len(held) for _, held in data)
    faults = Faults(too_many_bytes=1_500_000)
    with langfuse_server(data, mode=api, faults=faults) as server:
        reader, client = reader_of(api, server.url)
        with client:
            assert read(reader, listed=False) == ids_of(data)
            least = {"v1": (total + 2 * len(data)) / 99, "v2": total / 700}[api]
            assert client.counts.requests < least * 2 + 30


@both
def test_a_trace_that_the_server_cannot_give_is_told_and_the_others_given(api: Api) -> None:
    data = generate(60, seed=37)
    trace, rows = copy.deepcopy(data[20])
    rows[2]["input"] = "x" * 200_000
    data[20] = (trace, rows)
    faults = Faults(too_many_bytes=100_000)
    with langfuse_server(data, mode=api, faults=faults) as server:
        reader, client = reader_of(api, server.url)
        with client:
            found = {raw.trace_id: raw for raw in reader.fetch_window(DAY)}
            alone = reader.fetch(trace["id"])
    assert set(found) == set(ids_of(data))
    assert [key for key, raw in found.items() if not raw.complete] == [trace["id"]]
    for lossy in (found[trace["id"]], alone):
        assert lossy is not None
        assert "too large" in str(lossy.why)
        # What the server can give of it is there: v2 gives the row without its contents.
        ids = sorted(row["id"] for row in lossy.observations)
        assert ids == sorted(r["id"] for r in rows if api == "v2" or r["id"] != rows[2]["id"])
    assert "too large" in str(normalised(found[trace["id"]]).problem)


@both
def test_odd_rows_lose_nothing(api: Api) -> None:
    data, known = with_oddities(generate(400, seed=38), share=0.3, seed=1)
    assert len(set(known.values())) == len(ODDITIES) - 1
    wanted = ids_of(data)
    for trace, rows in data:
        kind = known.get(trace["id"])
        if kind == "untraced":
            wanted[trace["id"]].remove(rows[-1]["id"])  # of no trace, as far as anybody knows
        elif kind == "no_rows" and api == "v2":
            del wanted[trace["id"]]  # there is nothing that could name it
    with langfuse_server(data, mode=api) as server:
        reader, client = reader_of(api, server.url)
        with client:
            assert read(reader, listed=True) == wanted
            assert read(reader, listed=False) == wanted
            for raw in reader.fetch_window(DAY):
                snapshot = normalised(raw)
                assert snapshot.trace_id == raw.trace_id
                kind = known.get(raw.trace_id)
                if kind is None:
                    assert snapshot.problem is None


@both
@pytest.mark.parametrize("kind", list(ODDITIES))
def test_each_odd_trace_by_id(api: Api, kind: str) -> None:
    pair = make_odd(generate(1, seed=39)[0], kind)
    with langfuse_server([pair], mode=api) as server:
        reader, client = reader_of(api, server.url)
        with client:
            raw = reader.fetch(pair[0]["id"])
            if kind == "no_rows" and api == "v2":
                assert raw is None
                return
            assert raw is not None
            listed = next(iter(reader.list(Window(START - timedelta(days=1), DAY.end))))
            windowed = next(iter(reader.fetch_window(DAY)))
    assert raw.complete
    assert windowed.observations == raw.observations
    assert listed.trace_id == raw.trace_id
    snapshot = normalised(raw)
    assert snapshot.trace_id == pair[0]["id"]
    if kind in ("nulls", "no_end", "no_rows"):
        # Not finished, or nothing there: a matter of the trace and not of reading.
        assert "could not be read" not in str(snapshot.problem)
    else:
        assert snapshot.problem is None


@both
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, "unauthorized"),
        (403, "organisation_key"),
        (404, "gone"),
        (429, "rate_limited"),
        (500, "server"),
        (503, "server"),
        (524, "too_large"),
    ],
)
def test_a_server_that_answers_nothing_else_ends_with_its_reason(
    api: Api, status: int, kind: str
) -> None:
    faults = Faults(always=status, retry_after=30)
    with langfuse_server(generate(3), mode=api, faults=faults) as server:
        reader, client = reader_of(api, server.url)
        with client:
            for ask in (lambda: list(reader.list(DAY)), lambda: list(reader.fetch_window(DAY))):
                with pytest.raises(LangfuseError) as caught:
                    ask()
                assert caught.value.kind == kind


def resident_mb() -> float:
    """What this process holds in memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads /proc")
@pytest.mark.parametrize(("api", "most"), [("v1", 100), ("v2", 8)])
def test_twenty_thousand_traces_under_faults(api: Api, most: int) -> None:
    """Exactly the server's traces, few requests, little memory; prints what it took."""
    faults = Faults(
        server_errors=0.05,
        resets=0.02,
        truncated=0.01,
        burst_every=100,
        arrivals=tuple(generate(500, seed=41)),
        arrive_every=3,
    )
    wanted = {trace["id"]: len(rows) for trace, rows in generate(20_000, seed=40)}
    late = {trace["id"] for trace, _ in faults.arrivals}
    with langfuse_server_apart(20_000, seed=40, mode=api, faults=faults) as server:
        reader, client = reader_of(api, server.url)
        before = peak = resident_mb()
        found: dict[str, int] = {}
        fingerprints: dict[str, str | None] = {}
        with client:
            for raw in reader.fetch_window(DAY):
                found[raw.trace_id] = len(raw.observations)
                fingerprints[raw.trace_id] = raw.fingerprint
                peak = max(peak, resident_mb())
            first = replace(client.counts)
            again = {item.trace_id: item.fingerprint for item in reader.list(DAY)}
    assert {key: count for key, count in found.items() if key not in late} == wanted
    # A second run has nothing to fetch of what it has.
    assert {key: again[key] for key in wanted} == {key: fingerprints[key] for key in wanted}
    thousand = (first.requests - first.retries) / 20
    print(
        f"API {api}: 20,000 traces in {first.requests:,} requests, {first.retries} of them retries; "
        f"{thousand:.1f} per 1,000 traces; memory {before:.0f} to {peak:.0f} MB"
    )
    assert first.retries > 0
    assert thousand < most
    assert peak - before < 60


def test_faults_are_met_at_all() -> None:
    """The faults of the tests above do happen."""
    data = generate(320, seed=31)
    for name, faults in FAULTS.items():
        if name in ("duplicates", "bare children", "unseen at first"):
            continue
        with langfuse_server(data, mode="v1", faults=replace(faults)) as server:
            reader, client = reader_of("v1", server.url)
            with client:
                read(reader, listed=False)
                retried = client.counts.retries
                refused = sum(request.status == 422 for request in server.requests)
        assert retried + refused > 0, name
