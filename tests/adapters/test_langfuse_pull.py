"""Days pulled into a store: exactly the server's traces, only what is new, the same bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmark_assets.adapters import pulled_files
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.langfuse import pull as pulling
from benchmark_assets.adapters.langfuse.credentials import Credentials
from benchmark_assets.adapters.langfuse.http import Client, Limits
from benchmark_assets.adapters.langfuse.pull import (
    DayPull,
    Origin,
    asked_of,
    check_root,
    days_to_pull,
    pull_day,
    root_of,
)
from benchmark_assets.adapters.langfuse.readers import Api, Arrival, Filters, Reader
from benchmark_assets.adapters.langfuse.v1 import V1Reader
from benchmark_assets.adapters.langfuse.v2 import V2Reader
from benchmark_assets.adapters.pulled_files import (
    list_pulled,
    pulled_days,
    read_manifest,
    read_pulled,
)
from benchmark_assets.adapters.store import Store
from benchmark_assets.adapters.traces import read_traces
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import LangfuseSource, ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from tests.bench import contents
from tests.langfuse_server import (
    PUBLIC_KEY,
    SECRET_KEY,
    START,
    Faults,
    Pair,
    Server,
    generate,
    langfuse_server,
)

DAY = START.date()
LATER = datetime(2026, 11, 20, tzinfo=UTC)
both = pytest.mark.parametrize("api", ["v1", "v2"])


@dataclass
class Puller:
    """A server and a store that its traces are pulled into."""

    server: Server
    store: Store
    reader: Reader
    origin: Origin
    client: Client

    def pull(self, day: date = DAY, now: datetime = LATER, **options: Any) -> DayPull:
        return pull_day(self.store, self.origin, self.reader, day, now, **options)

    def requests(self) -> int:
        return len(self.server.requests)

    def stored(self) -> dict[str, list[str]]:
        """Trace → the ids of its rows, by the lines of the files alone."""
        found: dict[str, list[str]] = {}
        for document in self.documents():
            trace_id = document["pulled"]["id"]
            assert trace_id not in found, "stored twice"
            found[trace_id] = sorted(row["id"] for row in document["observations"])
        return found

    def documents(self) -> Iterator[dict[str, Any]]:
        for key in list_pulled(self.store, self.origin.source):
            data = read_pulled(self.store, self.origin.source, key)
            assert data is not None
            yield from map(json.loads, data.splitlines())

    def snapshots(self) -> dict[str, TraceSnapshot]:
        """What the ingest makes of the files."""
        found = {}
        for key in list_pulled(self.store, self.origin.source):
            data = read_pulled(self.store, self.origin.source, key) or b""
            for snapshot in read_traces(TraceFile(key, key, data), ProjectConfig()):
                found[snapshot.trace_id] = snapshot
        return found


@contextmanager
def pulling_from(
    root: Path,
    data: Sequence[Pair],
    api: Api = "v1",
    *,
    filters: Filters | None = None,
    faults: Faults | None = None,
    source: str = "lf",
    **limits: Any,
) -> Iterator[Puller]:
    with langfuse_server(data, mode=api, faults=faults) as server:
        credentials = Credentials(PUBLIC_KEY, SECRET_KEY, server.url)
        with Client(credentials, limits=Limits(**limits), jitter=lambda: 0.0) as client:
            reader = (V1Reader if api == "v1" else V2Reader)(client, arrival=Arrival(wait_s=0))
            asked = filters or Filters()
            origin = Origin(
                source=source,
                root=root_of(server.url, "project"),
                filters=asked,
                asked=asked_of(asked),
                credentials=credentials,
            )
            yield Puller(server, Store(str(root)), reader, origin, client)


def expected(data: Sequence[Pair]) -> dict[str, list[str]]:
    return {trace["id"]: sorted(row["id"] for row in rows) for trace, rows in data}


def hour_files(root: Path) -> dict[str, bytes]:
    return {name: data for name, data in contents(root).items() if name.endswith(".zst")}


# Exactly the server's traces, once.


@both
def test_a_day_is_stored_by_hours_and_read_back_whole(tmp_path: Path, api: Api) -> None:
    data = generate(300, seed=1)
    with pulling_from(tmp_path, data, api) as puller:
        result = puller.pull()
        assert (result.new, result.changed, result.incomplete) == (300, 0, 0)
        assert result.error is None
        assert puller.stored() == expected(data)
        hours = {datetime.fromisoformat(trace["timestamp"]).hour for trace, _ in data}
        assert set(list_pulled(puller.store, "lf")) == {
            f"date=2026-11-02/{hour:02d}.jsonl.zst" for hour in hours
        }
        snapshots = puller.snapshots()
    assert snapshots.keys() == expected(data).keys()
    for trace, rows in data:
        found = snapshots[trace["id"]]
        assert found.problem is None
        assert found.session_id == trace["sessionId"]
        assert len(found.tool_calls) == sum(row["type"] == "TOOL" for row in rows)


@both
def test_lines_are_sorted_and_say_whose_they_are(tmp_path: Path, api: Api) -> None:
    with pulling_from(tmp_path, generate(200, seed=2), api) as puller:
        puller.pull()
        for key in list_pulled(puller.store, "lf"):
            data = read_pulled(puller.store, "lf", key) or b""
            notes = [json.loads(line)["pulled"] for line in data.splitlines()]
            assert notes == sorted(notes, key=lambda note: (note["timestamp"], note["id"]))
            hour = int(key[-12:-10])
            assert {datetime.fromisoformat(n["timestamp"]).hour for n in notes} == {hour}
            for line in data.splitlines():
                assert msgspec.json.encode(json.loads(line), order="deterministic") == line


@both
def test_the_same_content_gives_the_same_bytes_in_any_order(tmp_path: Path, api: Api) -> None:
    data = generate(120, seed=3)
    with pulling_from(tmp_path / "a", data, api) as puller:
        puller.pull()
    half = data[::2]
    with pulling_from(tmp_path / "b", half, api) as puller:
        puller.pull()
        for trace, rows in data[1::2]:
            puller.server.add(trace, rows)
        puller.pull()
    with pulling_from(tmp_path / "c", data[::-1], api, in_flight=1) as puller:
        puller.pull()
    files = hour_files(tmp_path / "a")
    assert files
    # Only that it says which server it is tells the stores apart, which are different ports.
    assert files == hour_files(tmp_path / "b") == hour_files(tmp_path / "c")
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == contents(tmp_path / "c")


# Only what is new.


@both
def test_a_second_pull_fetches_nothing(tmp_path: Path, api: Api) -> None:
    with pulling_from(tmp_path, generate(250, seed=4), api) as puller:
        puller.pull()
        before, asked = contents(tmp_path), puller.requests()
        again = puller.pull()
        assert (again.new, again.changed, again.unchanged) == (0, 0, 250)
        lists = [request.path for request in puller.server.requests[asked:]]
        assert len(lists) <= 4
        assert set(lists) == {"/api/public/traces" if api == "v1" else "/api/public/v2/observations"}
        if api == "v2":
            fields = [request.params["fields"] for request in puller.server.requests[asked:]]
            assert all("io" not in value[0].split(",") for value in fields)
    assert contents(tmp_path) == before


@both
def test_only_what_is_new_or_changed_is_fetched_and_written(tmp_path: Path, api: Api) -> None:
    data = generate(240, seed=5)
    new, changed = data[0], data[1]
    with pulling_from(tmp_path, data[1:], api) as puller:
        puller.pull()
        before = hour_files(tmp_path)
        puller.server.add(*new)
        # API v1 shows no change of an observation but in its trace's latency and cost.
        last = changed[1][-1]
        ended = datetime.fromisoformat(last["endTime"]) + timedelta(minutes=1)
        row = {**last, "output": {"content": "Another answer."}, "endTime": ended.isoformat()}
        puller.server.add(None, [row])
        result = puller.pull()
        assert (result.new, result.changed, result.unchanged) == (1, 1, 238)
        after = hour_files(tmp_path)
        written = {name for name in after if after[name] != before.get(name)}
        assert written == {
            f"pulled/lf/date=2026-11-02/{trace['timestamp'][11:13]}.jsonl.zst"
            for trace, _ in (new, changed)
        }
        assert puller.stored() == expected(data)
        document = next(
            found for found in puller.documents() if found["pulled"]["id"] == changed[0]["id"]
        )
        assert "Another answer." in json.dumps(document)


@both
def test_what_the_server_no_longer_has_stays_until_it_is_pruned(tmp_path: Path, api: Api) -> None:
    data = generate(60, seed=6)
    with pulling_from(tmp_path, data, api) as puller:
        puller.pull()
        for trace, _ in data[:7]:
            puller.server.remove(trace["id"])
        result = puller.pull()
        assert (result.gone, result.unchanged) == (7, 53)
        assert puller.stored() == expected(data)
        result = puller.pull(prune=True)
        assert result.gone == 0
        assert puller.stored() == expected(data[7:])
        manifest = read_manifest(puller.store, "lf", DAY)
        assert manifest is not None
        assert manifest.traces.keys() == expected(data[7:]).keys()


def test_a_day_without_traces_is_known_to_be_empty(tmp_path: Path) -> None:
    with pulling_from(tmp_path, []) as puller:
        assert puller.pull().new == 0
        assert pulled_days(puller.store, "lf")[DAY].settled


# Traces still arriving.


def arriving(trace_id: str, at: datetime, **root: Any) -> Pair:
    """A trace whose server heard of it at a time."""
    stamp = at.isoformat(timespec="milliseconds")
    row = {
        "id": f"{trace_id}-root",
        "traceId": trace_id,
        "parentObservationId": None,
        "type": "AGENT",
        "name": "agent",
        "startTime": stamp,
        "endTime": None,
        "createdAt": stamp,
        "updatedAt": stamp,
        "input": "Do it.",
        "output": None,
        **root,
    }
    call = {
        **row,
        "id": f"{trace_id}-call",
        "parentObservationId": f"{trace_id}-root",
        "type": "GENERATION",
        "model": "m",
        "endTime": stamp,
        "output": "done",
    }
    trace = {"id": trace_id, "timestamp": stamp, "createdAt": stamp, "updatedAt": stamp}
    return {**trace, "name": "agent"}, [row, call]


@both
def test_a_trace_still_arriving_is_stored_as_that_and_fetched_again(
    tmp_path: Path, api: Api
) -> None:
    # By the server's clock, which is this machine's.
    now = datetime.now(UTC)
    pair = arriving("open", now - timedelta(minutes=2))
    day = (now - timedelta(minutes=2)).date()
    with pulling_from(tmp_path, [pair], api) as puller:
        result = puller.pull(day, now)
        assert (result.new, result.incomplete) == (1, 1)
        problem = puller.snapshots()["open"].problem
        assert problem is not None
        assert "its root has not ended, its last sign is of" in problem
        before = contents(tmp_path)
        # Nothing changed on the server: it is asked for, and the bytes stay.
        asked = puller.requests()
        result = puller.pull(day, now)
        assert (result.new, result.changed, result.unchanged) == (0, 0, 1)
        assert puller.requests() > asked + 1
        assert contents(tmp_path) == before
        # It ends, and long ago at that.
        past = (now - timedelta(hours=1)).isoformat(timespec="milliseconds")
        puller.server.remove("open")
        trace, rows = arriving("open", now - timedelta(minutes=2))
        for row in (trace, *rows):
            row["updatedAt"] = row["createdAt"] = past
        rows[0]["endTime"] = rows[1]["endTime"]
        rows[0]["output"] = "Done."
        puller.server.add(trace, rows)
        result = puller.pull(day, now)
        assert (result.changed, result.incomplete) == (1, 0)
        assert puller.snapshots()["open"].problem is None


@both
def test_traces_still_arriving_can_be_left_to_the_next_time(tmp_path: Path, api: Api) -> None:
    now = datetime.now(UTC)
    pair = arriving("open", now - timedelta(minutes=2))
    day = (now - timedelta(minutes=2)).date()
    with pulling_from(tmp_path, [pair], api) as puller:
        result = puller.pull(day, now, leave_arriving=True)
        assert (result.new, result.left, puller.stored()) == (0, 1, {})
        assert puller.pull(day, now).new == 1


def test_a_day_is_settled_when_nothing_is_expected_any_more(tmp_path: Path) -> None:
    data = generate(5, seed=7)
    over = datetime(2026, 11, 3, tzinfo=UTC)
    with pulling_from(tmp_path, data) as puller:
        settled = []
        for now in (over - timedelta(hours=1), over + timedelta(hours=23), over + pulling.SETTLES):
            puller.pull(now=now)
            settled.append(pulled_days(puller.store, "lf")[DAY].settled)
        assert settled == [False, False, True]


# Which days.


def source(**fields: Any) -> LangfuseSource:
    return LangfuseSource.model_validate({"kind": "langfuse", "name": "lf", **fields})


def test_days_are_those_that_late_data_may_reach_and_those_never_pulled(tmp_path: Path) -> None:
    today = date(2026, 11, 6)
    now = datetime(2026, 11, 6, 12, tzinfo=UTC)
    with pulling_from(tmp_path, generate(5, seed=8)) as puller:

        def chosen(back: int = 1, **fields: Any) -> list[str]:
            days = days_to_pull(puller.store, puller.origin, source(**fields), today, back)
            return [day.isoformat()[5:] for day in days]

        assert chosen() == ["11-06", "11-05", "11-04"]
        assert chosen(0) == ["11-06", "11-05"]
        since = {"from": "2026-11-01"}
        assert chosen(**since) == ["11-06", "11-05", "11-04", "11-03", "11-02", "11-01"]
        assert chosen(**{"from": "2026-11-05"}) == ["11-06", "11-05"]
        puller.pull(date(2026, 11, 2), now)
        puller.pull(date(2026, 11, 3), now)
        assert chosen(**since) == ["11-06", "11-05", "11-04", "11-01"]
        # Not settled when it was pulled: looked at again.
        puller.pull(date(2026, 11, 1), datetime(2026, 11, 1, 12, tzinfo=UTC))
        assert chosen(**since) == ["11-06", "11-05", "11-04", "11-01"]
        # Other conditions: none of it is known to be what is asked for now.
        puller.origin = replace(puller.origin, asked=asked_of(Filters(names=("other",))))
        assert chosen() == ["11-06", "11-05", "11-04", "11-03", "11-02", "11-01"]


# Faults.


@both
def test_what_was_fetched_before_an_error_is_kept_and_the_next_run_goes_on(
    tmp_path: Path, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "STORED_AFTER", 100)
    data = generate(1500, seed=9)
    with pulling_from(tmp_path, data, api, requests=9 if api == "v2" else 40) as puller:
        result = puller.pull()
        assert result.error is not None
        assert result.error.kind == "budget"
        assert 0 < result.new < 1500
        some = puller.stored()
        assert len(some) == result.new
        assert not pulled_days(puller.store, "lf")[DAY].settled
    with pulling_from(tmp_path, data, api) as puller:
        result = puller.pull()
        assert (result.error, result.new, result.unchanged) == (
            None,
            1500 - len(some),
            len(some),
        )
        assert puller.stored() == expected(data)


@both
def test_a_server_that_fails_for_good_changes_nothing_that_is_stored(
    tmp_path: Path, api: Api
) -> None:
    with pulling_from(tmp_path, generate(50, seed=10), api) as puller:
        puller.pull()
        before = contents(tmp_path)
        puller.server.break_by(Faults(always=401))
        result = puller.pull(prune=True)
        assert result.error is not None
        assert result.error.kind == "unauthorized"
    assert contents(tmp_path) == before


def test_a_trace_that_cannot_be_read_any_more_does_not_cost_what_is_stored(tmp_path: Path) -> None:
    data = generate(3, seed=11)
    with pulling_from(tmp_path, data, attempts=1) as puller:
        puller.pull()
        trace, rows = data[0]
        ended = datetime.fromisoformat(rows[-1]["endTime"]) + timedelta(minutes=1)
        puller.server.add(None, [{**rows[-1], "endTime": ended.isoformat()}])
        # Its list still comes; itself, only as errors.
        puller.server.break_by(Faults(server_errors=1.0, paths=r"traces/|observations"))
        result = puller.pull()
        assert result.error is None
        assert puller.stored() == expected(data)
        assert puller.snapshots()[trace["id"]].problem is None
        puller.server.break_by(Faults())
        assert puller.pull().changed == 1


def test_a_trace_whose_root_came_late_moves_to_the_day_before(tmp_path: Path) -> None:
    day = datetime(2026, 11, 3, tzinfo=UTC)
    trace, rows = arriving("late", day + timedelta(minutes=1))
    root, call = rows
    with pulling_from(tmp_path, [(trace, [call])], "v2") as puller:
        assert puller.pull(date(2026, 11, 3)).new == 1
        start = (day - timedelta(minutes=1)).isoformat(timespec="milliseconds")
        puller.server.add(None, [{**root, "startTime": start, "endTime": call["endTime"]}])
        assert puller.pull(date(2026, 11, 2)).new == 1
        assert puller.stored() == {"late": ["late-call", "late-root"]}
        assert list(list_pulled(puller.store, "lf")) == ["date=2026-11-02/23.jsonl.zst"]
        puller.pull(date(2026, 11, 3))
        assert puller.stored() == {"late": ["late-call", "late-root"]}


def test_an_hour_with_too_much_for_one_file_goes_on_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulled_files, "LARGEST_PART", 40_000)
    data = generate(40, seed=12, span=timedelta(hours=1))
    with pulling_from(tmp_path, data[:30]) as puller:
        puller.pull()
        names = set(list_pulled(puller.store, "lf"))
        assert "date=2026-11-02/00-2.jsonl.zst" in names
        for trace, rows in data[30:]:
            puller.server.add(trace, rows)
        puller.pull()
        assert puller.stored() == expected(data)
        sizes = [len(read_pulled(puller.store, "lf", key) or b"") for key in names]
        assert max(sizes) <= 40_000
        for trace, _ in data[2:]:
            puller.server.remove(trace["id"])
        puller.pull(prune=True)
        assert puller.stored() == expected(data[:2])
        assert set(list_pulled(puller.store, "lf")) == {"date=2026-11-02/00.jsonl.zst"}


def test_two_processes_do_not_pull_one_day_at_once(tmp_path: Path) -> None:
    with pulling_from(tmp_path, generate(5, seed=13)) as puller:
        name = pulled_files.day_folder("lf", DAY)
        with Store(str(tmp_path)).exclusive(name):
            result = puller.pull(wait=False)
            assert result.busy
            assert puller.requests() == 0
        assert puller.pull(wait=False).new == 5


# Whose traces, and with which keys.


def test_another_projects_keys_are_refused(tmp_path: Path) -> None:
    with pulling_from(tmp_path, generate(5, seed=14)) as puller:
        check_root(puller.store, puller.origin)
        puller.pull()
        check_root(puller.store, puller.origin)
        other = replace(puller.origin, root=root_of(puller.server.url, "another"))
        with pytest.raises(InputError, match="source lf: the keys are of another project"):
            check_root(puller.store, other)
        check_root(puller.store, replace(other, source="second"))


@both
def test_keys_in_traces_are_hidden(tmp_path: Path, api: Api) -> None:
    trace, rows = generate(1, seed=15)[0]
    rows[0]["metadata"] = {"scope": {"attributes": {"public_key": PUBLIC_KEY}}, "x": SECRET_KEY}
    with pulling_from(tmp_path, [(trace, rows)], api) as puller:
        puller.pull()
        assert "[hidden]" in json.dumps(list(puller.documents()))
    for data in [*contents(tmp_path).values(), *_lines(tmp_path)]:
        assert PUBLIC_KEY.encode() not in data
        assert SECRET_KEY.encode() not in data


def _lines(root: Path) -> Iterator[bytes]:
    store = Store(str(root))
    for key in list_pulled(store, "lf"):
        yield read_pulled(store, "lf", key) or b""


@both
def test_filters_are_the_servers(tmp_path: Path, api: Api) -> None:
    data = generate(90, seed=16, environments=("default", "staging"))
    filters = Filters(environments=("staging",), metadata=(("projectid", ("P1", "P3")),))
    with pulling_from(tmp_path, data, api, filters=filters) as puller:
        puller.pull()
        wanted = [
            (trace, rows)
            for trace, rows in data
            if trace["environment"] == "staging" and trace["metadata"]["projectid"] in ("P1", "P3")
        ]
        assert wanted
        assert puller.stored() == expected(wanted)
        again = puller.pull()
        assert (again.new, again.changed, again.unchanged) == (0, 0, len(wanted))


def test_what_is_asked_for_does_not_depend_on_its_order() -> None:
    one = Filters(names=("a", "b"), metadata=(("k", ("1", "2")), ("l", ("3",))))
    same = Filters(names=("b", "a"), metadata=(("l", ("3",)), ("k", ("2", "1"))))
    other = replace(one, environments=("staging",))
    assert asked_of(one) == asked_of(same) != asked_of(other)
    assert len({hashlib.sha256(asked_of(f).encode()).digest() for f in (one, other)}) == 2
