"""The test server answers as the API description says, and breaks only where it is told to."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import pytest

from tests.langfuse_server import (
    ODDITIES,
    ORGANISATION_KEYS,
    PUBLIC_KEY,
    SECRET_KEY,
    START,
    Faults,
    Mode,
    Pair,
    Row,
    Server,
    generate,
    langfuse_server,
    make_odd,
    with_oddities,
)
from tests.langfuse_server.apart import langfuse_server_apart
from tests.langfuse_server.contents import iso, milliseconds
from tests.langfuse_server.openapi import DESCRIPTION, body_faults, faults_of
from tests.langfuse_server.sdk import langfuse_sdk
from tests.langfuse_server.trim_openapi import trim
from tests.real_data import REAL, needs_real_data

API = "/api/public/"
EVERYTHING = "core,basic,time,io,metadata,model,usage,prompt,metrics,trace_context"
DATA = generate(60, seed=7, environments=("default", "staging"))
ROWS = [row for _, rows in DATA for row in rows]


class Reader:
    """Asks a server, with the right keys unless told otherwise."""

    def __init__(self, server: Server, keys: tuple[str, str] | None = None) -> None:
        self.server = server
        self.client = httpx.Client(
            base_url=server.url + API,
            auth=keys or server.keys,
            timeout=10,
            trust_env=False,
            verify=False,
        )

    def get(self, path: str, **params: Any) -> httpx.Response:
        return self.client.get(path, params=params)

    def json(self, path: str, **params: Any) -> Any:
        answer = self.get(path, **params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def filtered(self, path: str, *conditions: Row, **params: Any) -> list[Row]:
        found: list[Row] = self.json(path, filter=json.dumps(conditions), **params)["data"]
        return found

    def pages(self, path: str, **params: Any) -> list[Row]:
        """All rows of a v1 list."""
        found, number = [], 1
        while True:
            page = self.json(path, page=number, **params)
            found += page["data"]
            if number >= page["meta"]["totalPages"]:
                return found
            number += 1

    def cursor(self, path: str = "v2/observations", **params: Any) -> list[Row]:
        """All rows of a v2 list."""
        found: list[Row] = []
        at: dict[str, str] = {}
        while True:
            page = self.json(path, **params, **at)
            found += page["data"]
            if "cursor" not in page["meta"]:
                return found
            at = {"cursor": page["meta"]["cursor"]}


@pytest.fixture
def readers() -> Iterator[Any]:
    """Makes readers, and closes them."""
    made: list[Reader] = []

    def make(server: Server, keys: tuple[str, str] | None = None) -> Reader:
        made.append(Reader(server, keys))
        return made[-1]

    yield make
    for reader in made:
        reader.client.close()


@pytest.fixture(params=["v1", "dual"])
def v1(request: pytest.FixtureRequest, readers: Any) -> Iterator[Reader]:
    with langfuse_server(DATA, request.param) as server:
        yield readers(server)


@pytest.fixture(params=["v2", "dual"])
def v2(request: pytest.FixtureRequest, readers: Any) -> Iterator[Reader]:
    with langfuse_server(DATA, request.param) as server:
        yield readers(server)


def ids(rows: list[Row]) -> list[str]:
    return [row["id"] for row in rows]


def string(column: str, operator: str, value: str) -> Row:
    return {"type": "string", "column": column, "operator": operator, "value": value}


def of_metadata(key: str, value: str, operator: str = "=") -> Row:
    return {**string("metadata", operator, value), "type": "stringObject", "key": key}


# --- what the description says ---------------------------------------------------------------


@needs_real_data
def test_the_kept_description_is_what_the_whole_one_trims_to() -> None:
    yaml = pytest.importorskip("yaml")
    whole = yaml.safe_load((REAL / "langfuse-openapi.yml").read_text(encoding="utf-8"))
    assert json.loads(DESCRIPTION.read_text(encoding="utf-8")) == trim(whole)


def addresses(mode: Mode) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "health", {}
    yield "projects", {}
    yield "v3/scores", {"fields": "details,subject,annotation"}
    if mode != "v1":
        yield "v2/observations", {}
        yield "v2/observations", {"fields": EVERYTHING, "limit": 1000}
    if mode != "v2":
        trace, rows = DATA[0]
        yield "traces", {"limit": 100}
        yield "traces", {"fields": "core"}
        yield f"traces/{trace['id']}", {}
        yield f"traces/{trace['id']}", {"fields": "core"}
        yield "observations", {"limit": 100}
        yield f"observations/{rows[0]['id']}", {}
        yield "sessions", {}
        yield f"sessions/{trace['sessionId']}", {}
        yield "v2/scores", {}


@pytest.mark.parametrize("mode", ["v1", "v2", "dual"])
def test_every_answer_is_as_described(mode: Mode, readers: Any) -> None:
    with langfuse_server(DATA, mode) as server:
        reader = readers(server)
        for score in (
            {"name": "a", "value": 0.5, "traceId": DATA[0][0]["id"]},
            {"name": "b", "value": 1, "dataType": "BOOLEAN", "traceId": DATA[0][0]["id"]},
            {"name": "c", "value": "good", "sessionId": "s"},
            {"name": "d", "value": "so so", "dataType": "TEXT", "datasetRunId": "r"},
        ):
            assert body_faults(f"{API}scores", score) == []
            answer = reader.client.post("scores", json=score)
            assert faults_of(f"{API}scores", 200, answer.json(), "post") == []
        for path, params in addresses(mode):
            answer = reader.get(path, **params)
            assert answer.status_code == 200, (path, answer.text)
            assert faults_of(API + path, 200, answer.json()) == [], path


def test_the_description_can_fail_an_answer() -> None:
    row: Row = {"id": 7, "timestamp": "yesterday", "metadata": {}}
    found = "\n".join(faults_of(f"{API}traces/x", 200, row))
    assert "$.id: 7 is not of type 'string'" in found
    assert "'yesterday' is not a 'date-time'" in found
    assert "'observations' is a required property" in found
    with pytest.raises(LookupError, match="not described"):
        faults_of(f"{API}nowhere", 200, {})


# --- who may ask, and where ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keys", "status", "message"),
    [
        (("pk-lf-test", "wrong"), 401, "Confirm that you've configured the correct host"),
        (("", ""), 401, "Invalid authorization header"),
        (ORGANISATION_KEYS, 403, "Are you using an organization key?"),
    ],
)
def test_keys(keys: tuple[str, str], status: int, message: str, readers: Any) -> None:
    with langfuse_server(DATA, "dual") as server:
        reader = readers(server, keys)
        for path in ("projects", "traces", "v2/observations"):
            answer = reader.get(path)
            assert (answer.status_code, message in answer.json()["message"]) == (status, True)
        assert reader.get("health").json() == {"status": "OK", "version": "4.16.0"}


def test_no_keys_at_all() -> None:
    with langfuse_server(DATA) as server:
        answer = httpx.get(f"{server.url}{API}traces", trust_env=False)
    assert answer.json() == {"message": "No authorization header"}


def test_a_server_of_events_only_has_no_legacy_reads_whatever_the_keys(readers: Any) -> None:
    with langfuse_server(DATA, "v2") as server:
        for reader in (readers(server), readers(server, ("pk-lf-test", "wrong"))):
            for path in ("traces", "traces/x", "observations", "sessions", "v2/scores"):
                answer = reader.get(path)
                assert answer.status_code == 404
                assert "Langfuse v4 events_only mode" in answer.json()["message"]


def test_an_old_server_has_no_v2(readers: Any) -> None:
    with langfuse_server(DATA, "v1") as server:
        answer = readers(server).get("v2/observations")
        assert answer.status_code == 404
        assert "only available in a Langfuse v4 write mode" in answer.json()["message"]
    with langfuse_server(DATA, "v1", v2_page_missing=True) as server:
        answer = readers(server).get("v2/observations")
        assert answer.status_code == 404
        assert answer.text.startswith("<!DOCTYPE html>")


def test_requests_are_recorded(readers: Any) -> None:
    with langfuse_server(DATA, "v1") as server:
        reader = readers(server)
        reader.get("traces", limit=3, environment=["default", "staging"])
        reader.get("traces/nowhere")
    first, second = server.requests
    assert (first.method, first.path, first.status, first.rows) == ("GET", f"{API}traces", 200, 3)
    assert first.params == {"limit": ["3"], "environment": ["default", "staging"]}
    assert (second.status, server.count(f"{API}traces"), server.most_at_once) == (404, 2, 1)


# --- v1 ----------------------------------------------------------------------------------------


def test_pages_of_traces_have_each_once_newest_first(v1: Reader) -> None:
    found = v1.pages("traces", limit=7)
    expected = sorted((t for t, _ in DATA), key=lambda t: (t["timestamp"], t["id"]), reverse=True)
    assert [row["timestamp"] for row in found] == [t["timestamp"] for t in expected]
    assert Counter(ids(found)) == Counter(t["id"] for t, _ in DATA)
    meta = v1.json("traces", limit=7, page=2)["meta"]
    assert meta == {"page": 2, "limit": 7, "totalItems": 60, "totalPages": 9}
    assert v1.json("traces", limit=7, page=99)["data"] == []


def test_pages_of_observations_have_each_once(v1: Reader) -> None:
    assert Counter(ids(v1.pages("observations", limit=100))) == Counter(ids(ROWS))


def test_a_trace_has_its_rows_and_what_follows_of_them(v1: Reader) -> None:
    trace, rows = DATA[5]
    found = v1.json(f"traces/{trace['id']}")
    assert {**found, **trace} == found
    assert ids(found["observations"]) == ids(rows)
    root = found["observations"][0]
    assert {**root, **rows[0]} == root
    begin, end = milliseconds(rows[0]["startTime"]), milliseconds(rows[0]["endTime"])
    assert found["latency"] == pytest.approx((end - begin) / 1000)
    assert found["totalCost"] == pytest.approx(
        sum(row.get("costDetails", {}).get("total", 0) for row in rows)
    )
    chat = next(row for row in found["observations"] if row["type"] == "GENERATION")
    assert chat["usage"]["input"] == chat["promptTokens"] == chat["usageDetails"]["input"]
    assert chat["usage"]["total"] == chat["usageDetails"]["total"]
    listed = v1.filtered("traces", string("id", "=", trace["id"]))[0]
    assert listed["observations"] == ids(rows)


def test_groups_of_fields_that_are_not_asked_for(v1: Reader) -> None:
    lean = v1.json("traces", fields="core", limit=1)["data"][0]
    assert (lean["observations"], lean["scores"]) == ([], [])
    assert (lean["latency"], lean["totalCost"]) == (-1, -1)
    assert not {"input", "output", "metadata"} & lean.keys()
    some = v1.json("traces", fields="core,metrics", limit=1)["data"][0]
    assert some["latency"] > 0
    assert "input" not in some


@pytest.mark.parametrize("path", ["traces", "observations"])
def test_times_are_from_the_first_on_and_before_the_second(v1: Reader, path: str) -> None:
    names = {"traces": ("fromTimestamp", "toTimestamp", "timestamp")}
    since, until, own = names.get(path, ("fromStartTime", "toStartTime", "startTime"))
    rows = [t for t, _ in DATA] if path == "traces" else ROWS
    times = sorted(row[own] for row in rows)
    low, high = times[10], times[40]
    found = v1.pages(path, limit=100, **{since: low, until: high})
    assert sorted(ids(found)) == sorted(row["id"] for row in rows if low <= row[own] < high)
    shifted = datetime.fromisoformat(low).isoformat()
    assert v1.json(path, **{since: shifted})["meta"] == v1.json(path, **{since: low})["meta"]


@pytest.mark.parametrize(
    ("params", "path", "message"),
    [
        ({"limit": 101}, ["limit"], "<=100"),
        ({"limit": 0}, ["limit"], ">=1"),
        ({"page": "two"}, ["page"], "expected number"),
        ({"fromTimestamp": "2026-11-02"}, ["fromTimestamp"], "Invalid ISO datetime"),
        ({"fromTimestamp": "2026-11-02T00:00:00"}, ["fromTimestamp"], "Invalid ISO datetime"),
    ],
)
def test_parameters_of_the_wrong_shape(
    v1: Reader, params: Row, path: list[str], message: str
) -> None:
    answer = v1.get("traces", **params)
    assert (answer.status_code, answer.json()["message"]) == (400, "Invalid request data")
    assert answer.json()["error"][0]["path"] == path
    assert message in answer.json()["error"][0]["message"]


def test_traces_in_another_order(v1: Reader) -> None:
    found = v1.pages("traces", orderBy="timestamp.asc", limit=50)
    assert [t["timestamp"] for t in found] == sorted(t["timestamp"] for t, _ in DATA)
    assert v1.get("traces", orderBy="input.asc").status_code == 400


def test_parameters_that_choose_traces(v1: Reader) -> None:
    wanted = DATA[3][0]
    chosen = {
        "userId": lambda t: t["userId"] == wanted["userId"],
        "name": lambda t: t["name"] == wanted["name"],
        "sessionId": lambda t: t["sessionId"] == wanted["sessionId"],
        "environment": lambda t: t["environment"] == wanted["environment"],
    }
    for name, meets in chosen.items():
        found = v1.pages("traces", limit=100, **{name: wanted[name]})
        assert sorted(ids(found)) == sorted(t["id"] for t, _ in DATA if meets(t)), name
    both = v1.pages("traces", limit=100, tags=["bench", "nightly"])
    assert sorted(ids(both)) == sorted(t["id"] for t, _ in DATA if "nightly" in t["tags"])
    assert 0 < len(both) < len(DATA)


def test_sessions(v1: Reader) -> None:
    assert sorted(ids(v1.pages("sessions", limit=5))) == sorted({t["sessionId"] for t, _ in DATA})
    found = v1.json("sessions/session-2")
    assert sorted(ids(found["traces"])) == sorted(t["id"] for t, _ in DATA[10:15])
    assert v1.get("sessions/nowhere").status_code == 404


def test_what_is_not_there(v1: Reader) -> None:
    assert v1.get("traces/nowhere").json() == {
        "message": "Trace nowhere not found within authorized project",
        "error": "LangfuseNotFoundError",
    }
    assert v1.get("observations/nowhere").status_code == 404
    assert v1.get("nonsense").text.startswith("<!DOCTYPE html>")


def test_v1_cannot_search_in_input(v1: Reader) -> None:
    answer = v1.get("traces", filter=json.dumps([string("input", "contains", "invoice")]))
    assert answer.status_code == 400
    expected = "Column input does not match a UI / CH table mapping."
    assert answer.json()["message"] == expected


# --- v2 ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [7, 1000])
def test_pages_by_cursor_have_each_row_once_newest_first(v2: Reader, limit: int) -> None:
    found = v2.cursor(limit=limit)
    assert Counter(ids(found)) == Counter(ids(ROWS))
    times = [row["startTime"] for row in found]
    assert times == sorted(times, reverse=True)


def test_rows_of_the_same_time_are_not_lost_between_pages(readers: Any) -> None:
    pairs = generate(8, seed=1, span=timedelta(milliseconds=1))
    for _, rows in pairs:
        for row in rows:
            row["startTime"] = iso(milliseconds(START.isoformat()))
    with langfuse_server(pairs, "v2") as server:
        found = readers(server).cursor(limit=3)
    assert Counter(ids(found)) == Counter(row["id"] for _, rows in pairs for row in rows)


def test_the_cursor_is_base64_of_a_place_and_holds_no_query(v2: Reader) -> None:
    page = v2.json("v2/observations", limit=2, type="TOOL")
    place = json.loads(base64.b64decode(page["meta"]["cursor"]))
    assert place.keys() == {"lastStartTimeTo", "lastTraceId", "lastId"}
    assert place["lastId"] == page["data"][-1]["id"]
    after = v2.json("v2/observations", limit=1000, cursor=page["meta"]["cursor"])["data"]
    assert {row["type"] for row in after} == {"AGENT", "GENERATION", "TOOL"}
    assert v2.get("v2/observations", cursor="nonsense").status_code == 400


def test_fields_that_are_not_asked_for_are_absent(v2: Reader) -> None:
    default = v2.json("v2/observations", limit=1)["data"][0]
    assert {"id", "traceId", "name", "level", "isRootObservation"} <= default.keys()
    unasked = {"input", "metadata", "usageDetails", "updatedAt", "tags", "latency"}
    assert not unasked & default.keys()
    lean = v2.json("v2/observations", limit=1, fields="time,nonsense")["data"][0]
    assert {"id", "createdAt", "updatedAt"} <= lean.keys()
    assert not {"name", "level", "input"} & lean.keys()


def test_input_and_output_are_texts(v2: Reader) -> None:
    held = {row["id"]: row for row in ROWS}
    for row in v2.cursor(fields="io", limit=1000):
        whole = held[row["id"]]
        assert json.loads(row["input"]) == whole["input"]
        assert row["output"] is None or json.loads(row["output"]) == whole["output"]
    answer = v2.get("v2/observations", parseIoAsJson="true")
    assert answer.status_code == 400
    assert v2.get("v2/observations", parseIoAsJson="false").status_code == 200


def test_metadata_is_flat_and_cut_unless_io_is_asked_for(readers: Any) -> None:
    (trace, rows), *_ = generate(1, seed=2)
    rows[0]["metadata"] = {"a": {"b": {"c": "deep"}}, "long": "x" * 300, "number": "123"}
    with langfuse_server([(trace, rows)], "v2") as server:
        reader = readers(server)

        def shown(**params: Any) -> Any:
            return reader.filtered("v2/observations", string("id", "=", rows[0]["id"]), **params)[
                0
            ]["metadata"]

        cut = shown(fields="metadata")
        assert (cut["a.b.c"], len(cut["long"]), cut["number"]) == ("deep", 200, 123)
        assert len(shown(fields="metadata,io")["long"]) == 300
        assert len(shown(fields="metadata", expandMetadata="long")["long"]) == 300
        # What the trace knows stands on its root.
        assert (cut["run_id"], cut["app.version"]) == ("run-0", 1.4)


def test_what_rows_know_of_their_trace(readers: Any) -> None:
    trace, rows = DATA[4]
    fields = "core,basic,trace_context"
    for bare in (False, True):
        with langfuse_server(DATA, "v2", Faults(bare_children=bare)) as server:
            found = readers(server).cursor(traceId=trace["id"], fields=fields)
        assert sorted(ids(found)) == sorted(ids(rows))
        root = next(row for row in found if row["isRootObservation"])
        assert (root["traceName"], root["userId"]) == (trace["name"], trace["userId"])
        for row in found:
            known = row["isRootObservation"] or not bare
            assert row["sessionId"] == (trace["sessionId"] if known else None)
            assert row["tags"] == (trace["tags"] if known else [])
            assert row["traceName"] == (trace["name"] if row["isRootObservation"] else None)


def test_roots_are_found_by_logic_or_by_parent(readers: Any) -> None:
    pairs = generate(3, seed=3)
    app_root = pairs[0][1][0]
    app_root.update(parentObservationId="elsewhere", isRootObservation=True)
    with langfuse_server(pairs, "v2") as server:
        reader = readers(server)
        logical = reader.cursor(isRootObservation="true")
        assert sorted(ids(logical)) == sorted(rows[0]["id"] for _, rows in pairs)
        physical = reader.cursor(parentObservationId="")
        assert sorted(ids(physical)) == sorted(rows[0]["id"] for _, rows in pairs[1:])


def test_the_model_has_the_name_that_the_version_gives_it(readers: Any) -> None:
    for name in ("providedModelName", "model"):
        with langfuse_server(DATA, "v2", model_field=name) as server:
            found = readers(server).cursor(type="GENERATION", fields="model", limit=1000)
        held = {row["id"]: row["model"] for row in ROWS if row["type"] == "GENERATION"}
        assert {row["id"]: row[name] for row in found} == held
        assert not {"providedModelName", "model"} - {name} & found[0].keys()


def test_v2_searches_in_input_where_it_is_told_how(v2: Reader) -> None:
    word = "INVOICE"
    found = v2.filtered("v2/observations", string("input", "matches", word), limit=1000)
    held = [row["id"] for row in ROWS if "invoice" in json.dumps(row["input"])]
    assert sorted(ids(found)) == sorted(held)
    assert 0 < len(held) < len(ROWS)
    alone = json.dumps([string("input", "contains", "invoice")])
    assert v2.get("v2/observations", filter=alone).status_code == 400
    both = (string("input", "matches", "invoice"), string("output", "contains", "ready"))
    assert 0 < len(v2.filtered("v2/observations", *both, limit=1000)) < len(held)


def test_limits_of_v2(v2: Reader) -> None:
    assert v2.get("v2/observations", limit=1001).status_code == 400
    assert len(v2.json("v2/observations")["data"]) == 50


# --- filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "meets"),
    [
        (of_metadata("projectid", "P3"), lambda t: t["metadata"]["projectid"] == "P3"),
        (
            of_metadata("run_id", "run-1", "starts with"),
            lambda t: "run-1" in t["metadata"]["run_id"],
        ),
        (of_metadata("nowhere", "x", "does not contain"), lambda t: True),
        (of_metadata("nowhere", "x"), lambda t: False),
        (string("name", "contains", "lan"), lambda t: "lan" in t["name"]),
        (string("release", "does not contain", "x"), lambda t: False),
        (
            {
                "type": "stringOptions",
                "column": "name",
                "operator": "none of",
                "value": ["planner"],
            },
            lambda t: t["name"] != "planner",
        ),
        (
            {"type": "arrayOptions", "column": "tags", "operator": "any of", "value": ["manual"]},
            lambda t: "manual" in t["tags"],
        ),
        ({"type": "null", "column": "release", "operator": "is null", "value": ""}, lambda t: True),
        (
            {
                "type": "categoryOptions",
                "column": "metadata",
                "key": "projectid",
                "operator": "any of",
                "value": ["P3"],
            },
            lambda t: False,
        ),
    ],
)
def test_one_condition(v1: Reader, condition: Row, meets: Any) -> None:
    found = v1.filtered("traces", condition, limit=100)
    assert sorted(ids(found)) == sorted(t["id"] for t, _ in DATA if meets(t))


def test_conditions_are_all_to_be_met(v1: Reader) -> None:
    one, other = of_metadata("projectid", "P3"), of_metadata("run_id", "run-3")
    assert ids(v1.filtered("traces", one, other)) == [DATA[3][0]["id"]]
    assert v1.filtered("traces", one, of_metadata("projectid", "P4")) == []


def test_a_filter_replaces_the_parameter_of_its_column_and_no_other(v1: Reader) -> None:
    condition = of_metadata("projectid", "P3")
    found = v1.filtered("traces", condition, limit=100, environment="staging")
    assert found
    assert {t["environment"] for t in found} == {"staging"}
    replaced = v1.filtered("traces", string("name", "=", "planner"), limit=100, name="support")
    assert {t["name"] for t in replaced} == {"planner"}


def test_metadata_is_found_nested_in_v2_and_whole_in_v1(readers: Any) -> None:
    nested, whole = of_metadata("app.version", "1.4"), of_metadata("app", '{"version":"1.4"}')
    with langfuse_server(DATA, "dual") as server:
        reader = readers(server)
        assert reader.filtered("traces", nested) == []
        assert len(reader.filtered("traces", whole, limit=100)) == len(DATA)
        roots = reader.filtered("v2/observations", nested, limit=1000)
        assert sorted(ids(roots)) == sorted(rows[0]["id"] for _, rows in DATA)


@pytest.mark.parametrize(
    "text",
    [
        "[",
        "{}",
        '[{"type": "string", "column": "name", "operator": "~", "value": "x"}]',
        '[{"type": "strange", "column": "name", "operator": "=", "value": "x"}]',
        '[{"type": "string", "column": "name", "operator": "=", "value": 1}]',
        '[{"type": "stringObject", "column": "metadata", "operator": "=", "value": "x"}]',
        '[{"type": "string", "column": "name", "operator": "matches", "value": "x"}]',
    ],
)
def test_filters_of_the_wrong_shape(v1: Reader, text: str) -> None:
    assert v1.get("traces", filter=text).status_code == 400


# --- scores ------------------------------------------------------------------------------------

DAY = 86_400
NOON = 1_790_000_000 // DAY * DAY + DAY // 2


def score(**parts: Any) -> Row:
    return {
        "id": "s1",
        "name": "passed",
        "value": 1,
        "dataType": "BOOLEAN",
        "traceId": "t",
        **parts,
    }


@pytest.mark.parametrize("mode", ["v1", "dual"])
def test_a_score_is_the_same_by_id_name_and_day(mode: Mode, readers: Any) -> None:
    clock = [float(NOON)]
    with langfuse_server((), mode, now=lambda: clock[0]) as server:
        reader = readers(server)

        def posted(**parts: Any) -> int:
            answer = reader.client.post("scores", json=score(**parts))
            assert answer.json() == {"id": parts.get("id", "s1")}
            return int(reader.json("v2/scores")["meta"]["totalItems"])

        assert posted() == 1
        assert posted(value=0) == 1
        held = reader.json("v2/scores")["data"][0]
        assert (held["value"], held["stringValue"]) == (0, "False")
        assert posted(name="other") == 2
        assert posted(id="s2") == 3
        clock[0] += DAY
        # The timestamp in a score is not what it is dated by here.
        assert posted(timestamp=iso(NOON * 1000)) == 4


def test_newest_servers_take_a_scores_own_time_and_lists(readers: Any) -> None:
    clock = [float(NOON)]
    with langfuse_server((), "v2", now=lambda: clock[0]) as server:
        reader = readers(server)
        own = iso(NOON * 1000 - 5 * DAY * 1000)
        for _ in range(2):
            assert reader.client.post("scores", json=score(timestamp=own)).status_code == 200
            clock[0] += DAY
        held = reader.json("v3/scores", traceId="t", fields="subject")["data"]
        assert [(row["timestamp"], row["value"]) for row in held] == [(own, True)]
        assert held[0]["subject"] == {"kind": "trace", "id": "t"}
        answer = reader.client.post("scores", json=[score(name="a"), score(name="b")])
        assert (answer.status_code, answer.json()) == (202, {"message": "Accepted"})
        answer = reader.client.post("scores", json=[score(name="c"), score(value=3)])
        assert answer.status_code == 207
        assert (answer.json()["accepted"], answer.json()["rejected"]) == (1, 1)
        late = reader.client.post("scores", json=score(timestamp="2026-01-01T00:00:00"))
        assert late.status_code == 400


@pytest.mark.parametrize("mode", ["v1", "v2", "dual"])
def test_an_event_dates_its_score(mode: Mode, readers: Any) -> None:
    at = iso(NOON * 1000)
    event = {"id": "e1", "type": "score-create", "timestamp": at, "body": score()}
    other = {"id": "e2", "type": "trace-create", "timestamp": at, "body": {}}
    with langfuse_server((), mode) as server:
        reader = readers(server)
        for _ in range(2):
            answer = reader.client.post("ingestion", json={"batch": [event, other]})
            assert answer.status_code == 207
            assert faults_of(f"{API}ingestion", 207, answer.json(), "post") == []
            assert answer.json()["successes"] == [{"id": "e1", "status": 201}]
            assert answer.json()["errors"][0]["id"] == "e2"
        assert [row["timestamp"] for row in reader.json("v3/scores")["data"]] == [at]


@pytest.mark.parametrize(
    "given",
    [
        [score()],
        score(name=""),
        score(value=None),
        score(value=2),
        score(value="yes"),
        score(dataType="NUMERIC", value="1"),
        score(dataType="TEXT", value=""),
        score(dataType="TEXT", value="x" * 501),
        score(sessionId="s"),
        score(traceId=None),
        score(traceId=None, sessionId="s", observationId="o"),
        score(environment="langfuse-own"),
        "text",
    ],
)
def test_scores_that_are_refused(given: Any, readers: Any) -> None:
    with langfuse_server((), "dual") as server:
        reader = readers(server)
        assert reader.client.post("scores", json=given).status_code == 400
        assert reader.json("v3/scores")["data"] == []


def test_scores_are_found_by_what_they_are_about(readers: Any) -> None:
    trace = DATA[0][0]
    with langfuse_server(DATA, "dual") as server:
        reader = readers(server)
        for number in range(5):
            body = score(id=f"s{number}", traceId=trace["id"], value=number % 2)
            reader.client.post("scores", json=body)
        reader.client.post("scores", json=score(id="of-session", traceId=None, sessionId="s"))
        assert len(reader.cursor("v3/scores", limit=2, traceId=trace["id"])) == 5
        assert ids(reader.json("v3/scores", sessionId="s")["data"]) == ["of-session"]
        assert ids(reader.json("v3/scores", id="s1,s3")["data"]) == ["s3", "s1"]
        assert reader.get("v3/scores", sessionId="s", traceId="t").status_code == 400
        assert reader.get("v3/scores", fields="nonsense").status_code == 400
        assert len(reader.json(f"traces/{trace['id']}")["scores"]) == 5
        listed = reader.filtered("traces", string("id", "=", trace["id"]))[0]
        assert sorted(listed["scores"]) == [f"s{number}" for number in range(5)]
        about = reader.json("v2/scores", traceId=trace["id"])["data"][0]["trace"]
        assert about["userId"] == trace["userId"]


# --- the real SDK ------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["v1", "v2", "dual"])
def test_what_the_real_sdk_writes_can_be_read(mode: Mode, readers: Any) -> None:
    from langfuse import propagate_attributes

    with langfuse_server((), mode) as server:
        with (
            langfuse_sdk(server, environment="staging") as langfuse,
            propagate_attributes(user_id="u1", session_id="s1", tags=["bench"], trace_name="t"),
            langfuse.start_as_current_observation(
                name="planner", as_type="agent", input={"q": "hi"}
            ) as root,
        ):
            with root.start_as_current_observation(
                name="chat", as_type="generation", model="gpt-5", input=[{"role": "user"}]
            ) as chat:
                counts = {"input": 3, "output": 4, "total": 7}
                chat.update(output="said", usage_details=counts, cost_details={"total": 0.1})
            with root.start_as_current_observation(
                name="search", as_type="tool", input={"k": 1}, metadata={"a": {"b": 1}}
            ) as tool:
                tool.update(level="ERROR", status_message="away")
            root.update(output="done")
        reader = readers(server)
        if mode == "v2":
            found = reader.cursor(fields=EVERYTHING, traceId=root.trace_id)
        else:
            trace = reader.json(f"traces/{root.trace_id}")
            assert faults_of(f"{API}traces/x", 200, trace) == []
            shown = ("name", "userId", "sessionId", "tags", "environment", "input", "output")
            assert [trace[name] for name in shown] == [
                *("t", "u1", "s1", ["bench"], "staging"),
                *({"q": "hi"}, "done"),
            ]
            found = trace["observations"]
    rows = {row["name"]: row for row in found}
    kinds = {name: row["type"] for name, row in rows.items()}
    assert kinds == {"planner": "AGENT", "chat": "GENERATION", "search": "TOOL"}
    assert {row["environment"] for row in found} == {"staging"}
    assert rows["search"]["parentObservationId"] == rows["planner"]["id"]
    assert (rows["search"]["level"], rows["search"]["statusMessage"]) == ("ERROR", "away")
    assert rows["search"]["metadata"]["a.b" if mode == "v2" else "a"] == (
        1 if mode == "v2" else {"b": 1}
    )
    assert rows["chat"]["usageDetails"] == {"input": 3, "output": 4, "total": 7}
    assert rows["chat"]["providedModelName" if mode == "v2" else "model"] == "gpt-5"
    given = rows["search"]["input"]
    assert (json.loads(given) if mode == "v2" else given) == {"k": 1}


def test_the_real_sdk_reads_and_scores_the_newest_server(readers: Any) -> None:
    with langfuse_server(DATA, "v2", model_field="model") as server:
        with langfuse_sdk(server) as langfuse:
            assert langfuse.auth_check()
            page = langfuse.api.observations.get_many(limit=20, fields=EVERYTHING)
            langfuse.create_score(
                name="passed", value=1, data_type="BOOLEAN", trace_id=DATA[0][0]["id"]
            )
        newest = sorted(ROWS, key=lambda row: row["startTime"], reverse=True)[:20]
        assert {row.id for row in page.data} == set(ids(newest))
        held = readers(server).json("v3/scores", traceId=DATA[0][0]["id"])["data"]
        assert [(row["name"], row["value"]) for row in held] == [("passed", True)]


def test_spans_sent_as_json_and_nonsense(readers: Any) -> None:
    span = {
        "traceId": "a" * 32,
        "spanId": "b" * 16,
        "name": "lookup",
        "startTimeUnixNano": str(NOON * 10**9),
        "endTimeUnixNano": str((NOON + 1) * 10**9),
        "status": {"code": 2, "message": "away"},
        "attributes": [
            {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
            {"key": "gen_ai.tool.call.arguments", "value": {"stringValue": '{"q":"a"}'}},
            {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "3"}},
        ],
    }
    sent = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    with langfuse_server((), "v1") as server:
        reader = readers(server)
        answer = reader.client.post("otel/v1/traces", json=sent)
        assert (answer.status_code, answer.json()) == (200, {})
        row = reader.json(f"traces/{'a' * 32}")["observations"][0]
        assert (row["type"], row["level"], row["statusMessage"]) == ("TOOL", "ERROR", "away")
        assert (row["input"], row["usageDetails"]) == ({"q": "a"}, {"input": 3, "total": 3})
        assert row["latency"] == 1
        for body, kind in ((b"\xff\xff", "application/x-protobuf"), (b"{", "application/json")):
            answer = reader.client.post(
                "otel/v1/traces", content=body, headers={"Content-Type": kind}
            )
            assert answer.status_code == 400


# --- faults ------------------------------------------------------------------------------------


def outcomes(reader: Reader, times: int = 40, **params: Any) -> Counter[str]:
    """What comes of asking for as many different pages."""
    found: Counter[str] = Counter()
    for number in range(1, times + 1):
        try:
            answer = reader.get("traces", page=number, limit=5, **params)
            kind = answer.headers["Content-Type"].split(";")[0]
            found[f"{answer.status_code} {kind}"] += 1
            if answer.status_code == 200 and kind == "application/json":
                answer.json()
        except json.JSONDecodeError:
            found["not JSON"] += 1
        except httpx.HTTPError as error:
            found[type(error).__name__] += 1
    return found


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("server_errors", "500 application/json"),
        ("gateway_timeouts", "524 text/html"),
        ("html", "200 text/html"),
        ("resets", "ReadError"),
        ("truncated", "RemoteProtocolError"),
        ("cut", "not JSON"),
    ],
)
def test_a_share_of_requests_meets_a_fault_and_none_for_ever(
    fault: str, outcome: str, readers: Any
) -> None:
    runs = []
    for _ in range(2):
        with langfuse_server(DATA, "v1", Faults(seed=3, **{fault: 0.4})) as server:
            reader = readers(server)
            runs.append(outcomes(reader))
            assert reader.get("health").status_code == 200
            assert {r.fault for r in server.requests} == {fault, None}
    assert runs[0] == runs[1]
    assert 8 <= runs[0][outcome] <= 24
    with langfuse_server(DATA, "v1", Faults(**{fault: 1.0})) as server:
        reader = readers(server)
        got = [outcomes(reader, times=1) for _ in range(4)]
        assert [outcome in found for found in got] == [True, True, True, False]


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 502, 503])
def test_a_status_for_every_request(status: int, readers: Any) -> None:
    with langfuse_server(DATA, "dual", Faults(always=status, paths="")) as server:
        reader = readers(server)
        for path in ("health", "projects", "traces", "v2/observations"):
            assert reader.get(path).status_code == status
        server.break_by(Faults())
        assert reader.get("traces").status_code == 200


def test_bursts_of_refusals_say_how_long_to_wait(readers: Any) -> None:
    with langfuse_server(DATA, "v1", Faults(burst_every=3, burst=2, retry_after=1.5)) as server:
        reader = readers(server)
        answers = [reader.get("traces", limit=1) for _ in range(10)]
    assert [a.status_code for a in answers] == [200, 200, 200, 429, 429, 200, 200, 200, 429, 429]
    refused = answers[3]
    assert refused.headers["Retry-After"] == "2"
    reset = refused.headers["X-RateLimit-Reset"]
    assert reset.endswith("GMT+0000 (Coordinated Universal Time)")


def test_other_ways_to_say_how_long(readers: Any) -> None:
    told = Faults(always=429, retry_after=10, retry_after_as="date")
    with langfuse_server(DATA, "v1", told) as server:
        reader = readers(server)
        until = parsedate_to_datetime(reader.get("traces").headers["Retry-After"])
        assert 8 < (until - datetime.now(UTC)).total_seconds() < 12
        server.break_by(Faults(always=429, retry_after_as="reset"))
        headers = reader.get("traces").headers
        assert ("Retry-After" in headers, "X-RateLimit-Reset" in headers) == (False, True)
        server.break_by(Faults(always=429, retry_after_as="nothing"))
        headers = reader.get("traces").headers
        assert not {"retry-after", "x-ratelimit-reset"} & {name.lower() for name in headers}


def test_a_quota_for_every_window(readers: Any) -> None:
    with langfuse_server(DATA, "v1", Faults(quota=(5, 0.5))) as server:
        reader = readers(server)
        codes = [reader.get("traces", limit=1).status_code for _ in range(7)]
        refused = reader.get("traces", limit=1)
        assert codes[:5] == [200] * 5
        assert (codes[5:], refused.headers["Retry-After"]) == ([429, 429], "1")
        time.sleep(0.5)
        assert reader.get("traces", limit=1).status_code == 200


def test_too_much_at_once_is_refused(readers: Any) -> None:
    with langfuse_server(DATA, "dual", Faults(too_many_rows=10)) as server:
        reader = readers(server)
        answer = reader.get("v2/observations", limit=11)
        assert (answer.status_code, answer.json()["error"]) == (422, "Request timed out")
        assert reader.get("v2/observations", limit=10).status_code == 200
        server.break_by(Faults(too_long_window=timedelta(hours=1)))
        hour = START + timedelta(hours=1)
        narrow = {"fromTimestamp": START.isoformat(), "toTimestamp": hour.isoformat()}
        wide = {**narrow, "toTimestamp": (hour + timedelta(seconds=1)).isoformat()}
        assert [reader.get("traces", **p).status_code for p in (narrow, wide, {})] == [
            200,
            422,
            422,
        ]
        server.break_by(Faults(too_many_bytes=5000))
        codes = [reader.get("traces", limit=n, fields="core").status_code for n in (1, 50)]
        assert codes == [200, 422]


@pytest.mark.parametrize(("mode", "status"), [("v1", 500), ("dual", 422)])
def test_a_trace_that_is_too_large(mode: Mode, status: int, readers: Any) -> None:
    pair = make_odd(DATA[0], "big")
    with langfuse_server([pair, DATA[1]], mode, trace_limit=1_000_000) as server:
        reader = readers(server)
        answer = reader.get(f"traces/{pair[0]['id']}")
        assert answer.status_code == status
        assert "MB exceeds limit of 1.00MB" in answer.text
        assert reader.get(f"traces/{DATA[1][0]['id']}").status_code == 200
        assert len(reader.pages("observations", traceId=pair[0]["id"])) == len(pair[1])


def test_slow_answers_outlast_a_client_that_does_not_wait(readers: Any) -> None:
    with langfuse_server(DATA, "v1", Faults(slow=1.0, slow_s=30)) as server:
        reader = readers(server)
        reader.client.timeout = 0.1
        with pytest.raises(httpx.ReadTimeout):
            reader.get("traces")
        began = time.monotonic()
    assert time.monotonic() - began < 5


def test_pages_shift_while_traces_arrive(readers: Any) -> None:
    late = generate(5, seed=99, start=START + timedelta(days=1))
    with langfuse_server(DATA, "v1", Faults(arrivals=tuple(late), arrive_every=2)) as server:
        reader = readers(server)
        found = ids(reader.pages("traces", limit=10))
        assert len(found) > len(set(found))
        # A reader that freezes the upper bound sees none of it.
        until = (START + timedelta(days=1)).isoformat()
        server.break_by(
            Faults(arrivals=tuple(generate(5, seed=98, start=START + timedelta(days=2))))
        )
        frozen = ids(reader.pages("traces", limit=10, toTimestamp=until))
        assert Counter(frozen) == Counter(t["id"] for t, _ in DATA)
    assert len(server.contents.traces) > len(DATA) + 5


def test_rows_are_added_updated_and_removed_while_readers_read(readers: Any) -> None:
    trace, rows = generate(1, seed=50)[0]
    with langfuse_server(DATA, "dual") as server:
        reader = readers(server)
        server.add(trace, rows[:1])
        first = reader.json(f"traces/{trace['id']}")
        server.add({"id": trace["id"], "name": "renamed"}, [{**rows[0], "output": "new"}, rows[1]])
        second = reader.json(f"traces/{trace['id']}")
        assert second["name"] == "renamed"
        assert second["updatedAt"] > first["updatedAt"]
        assert ids(second["observations"]) == ids(rows[:2])
        assert second["observations"][0]["output"] == "new"
        assert second["observations"][0]["updatedAt"] > first["observations"][0]["updatedAt"]
        found = ids(reader.cursor(limit=1000))
        assert Counter(found) == Counter([*ids(ROWS), *ids(rows[:2])])
        server.remove(trace["id"])
        assert reader.get(f"traces/{trace['id']}").status_code == 404
        assert Counter(ids(reader.cursor(limit=1000))) == Counter(ids(ROWS))


def test_traces_that_arrive_bit_by_bit(readers: Any) -> None:
    with langfuse_server(DATA, "dual", Faults(settling=1.0, settling_reads=2)) as server:
        reader = readers(server)
        for trace, rows in (DATA[0], DATA[1]):
            for read in range(3):
                if trace is DATA[0][0]:
                    found = reader.json(f"traces/{trace['id']}")["observations"]
                else:
                    found = reader.cursor(traceId=trace["id"])
                whole = read == 2
                assert len(found) == len(rows) - (0 if whole else 1)
                root = next(row for row in found if row["id"] == rows[0]["id"])
                assert (root["endTime"] is not None) == whole


def test_traces_that_are_not_there_yet(readers: Any) -> None:
    with langfuse_server(DATA, "dual", Faults(unseen=0.5, unseen_requests=3)) as server:
        reader = readers(server)
        some = ids(reader.pages("traces", limit=100))
        assert 10 < len(some) < 50
        missing = next(t["id"] for t, _ in DATA if t["id"] not in some)
        assert reader.get(f"traces/{missing}").status_code == 404
        assert reader.cursor(traceId=missing) == []
        assert reader.get(f"traces/{missing}").status_code == 200
        assert len(reader.pages("traces", limit=100)) == len(DATA)


def test_rows_that_come_twice_and_are_told_apart_by_when_they_were_written(readers: Any) -> None:
    with langfuse_server(DATA, "v2", Faults(duplicates=0.3)) as server:
        found = readers(server).cursor(limit=7, fields=EVERYTHING)
    counts = Counter(ids(found))
    assert set(counts) == set(ids(ROWS))
    assert 0.15 * len(ROWS) < sum(count == 2 for count in counts.values()) < 0.45 * len(ROWS)
    newest: dict[str, Row] = {}
    firsts: Counter[str] = Counter()
    for row in found:
        if row["id"] in newest:
            firsts["older" if row["updatedAt"] > newest[row["id"]]["updatedAt"] else "newer"] += 1
        if row["id"] not in newest or row["updatedAt"] > newest[row["id"]]["updatedAt"]:
            newest[row["id"]] = row
    assert min(firsts["older"], firsts["newer"]) > 5
    held = {row["id"]: row["endTime"] for row in ROWS}
    assert {row_id: row["endTime"] for row_id, row in newest.items()} == held


# --- oddities --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ODDITIES)
def test_odd_rows_are_served_as_they_are(kind: str, readers: Any) -> None:
    healthy = DATA[2]
    before = json.dumps(healthy)
    odd = make_odd(healthy, kind)
    assert json.dumps(healthy) == before
    assert json.dumps(odd) != before
    with langfuse_server([odd, DATA[3]], "dual") as server:
        reader = readers(server)
        place = healthy[0]["environment"]
        assert sorted(ids(reader.pages("traces"))) == sorted([healthy[0]["id"], DATA[3][0]["id"]])
        own = odd[1][:-1] if kind == "untraced" else odd[1]
        whole = reader.json(f"traces/{healthy[0]['id']}")["observations"]
        by_page = reader.pages("observations", traceId=healthy[0]["id"], environment=place)
        by_cursor = reader.cursor(traceId=healthy[0]["id"], environment=place, fields=EVERYTHING)
        every = reader.cursor(environment=place, fields=EVERYTHING)
        found = [sorted(ids(rows)) for rows in (whole, by_page, by_cursor)]
        assert found == [sorted(ids(own))] * 3
        assert set(ids(odd[1])) <= set(ids(every))


def test_what_some_oddities_look_like(readers: Any) -> None:
    kinds = ("odd_counts", "unknown_kinds", "nulls", "untraced")
    pairs = [make_odd(pair, kind) for pair, kind in zip(DATA, kinds, strict=False)]
    with langfuse_server(pairs, "dual") as server:
        found = {row["id"]: row for row in readers(server).pages("observations", limit=100)}
    counts, kind, nulls, untraced = (found[rows[-1]["id"]] for _, rows in pairs)
    assert counts["usageDetails"] == {
        "input": 10.5,
        "output": "20",
        "total": None,
        "cached": "many",
    }
    assert (kind["type"], kind["level"]) == ("TELEPATHY", "FATAL")
    unset = ("metadata", "usageDetails", "level", "environment", "endTime")
    assert [nulls[name] for name in unset] == [None] * 5
    assert (untraced["traceId"], "shown" in untraced) == (None, False)


def test_a_share_of_traces_is_odd() -> None:
    found, kinds = with_oddities(DATA, share=0.5, seed=1)
    assert [t["id"] for t, _ in found] == [t["id"] for t, _ in DATA]
    assert 15 < len(kinds) < 45
    assert with_oddities(DATA, share=0.5, seed=1) == (found, kinds)


# --- the whole -------------------------------------------------------------------------------


def test_generated_traces_are_the_same_for_a_seed_and_whole() -> None:
    again = generate(60, seed=7, environments=("default", "staging"))
    assert again == DATA
    assert generate(60, seed=8) != generate(60, seed=7)
    for trace, rows in DATA:
        assert START <= datetime.fromisoformat(trace["timestamp"]) < START + timedelta(days=1)
        assert {row["traceId"] for row in rows} == {trace["id"]}
        assert {row["parentObservationId"] for row in rows} == {None, rows[0]["id"]}
        assert rows[0]["endTime"] == max(row["endTime"] for row in rows)
        assert 4 <= len(rows) <= 8
    assert len(set(ids(ROWS))) == len(ROWS)


def test_the_same_contents_give_the_same_bytes(readers: Any) -> None:
    bodies = []
    for _ in range(2):
        with langfuse_server(DATA, "dual") as server:
            reader = readers(server)
            bodies.append(
                [reader.get(p, limit=100).content for p in ("traces", "observations")]
                + [reader.get("v2/observations", limit=1000, fields=EVERYTHING).content]
            )
    assert bodies[0] == bodies[1]


def test_many_readers_at_once(readers: Any) -> None:
    with langfuse_server(DATA, "dual", Faults(slow=1.0, slow_s=0.2, in_a_row=1)) as server:
        found: list[list[str]] = []

        def read(reader: Reader) -> None:
            found.append(ids(reader.cursor(limit=50)))

        work = [threading.Thread(target=read, args=(readers(server),)) for _ in range(4)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
        assert server.most_at_once == 4
    assert [sorted(rows) for rows in found] == [sorted(ids(ROWS))] * 4


def test_nothing_is_left_when_it_stops(readers: Any) -> None:
    before = set(threading.enumerate())
    with langfuse_server(DATA) as server:
        reader = readers(server)
        reader.get("traces")
    with pytest.raises(httpx.TransportError):
        reader.get("traces")
    deadline = time.monotonic() + 10
    while (left := set(threading.enumerate()) - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert left == set()


def test_a_list_is_searched_once_however_many_pages_it_has(readers: Any) -> None:
    pairs: list[Pair] = generate(2000, seed=1)
    with langfuse_server(pairs, "dual") as server:
        reader = readers(server)
        assert len(reader.pages("traces", limit=100, fields="core")) == 2000
        assert len(reader.cursor(limit=1000, fields=EVERYTHING)) == sum(len(r) for _, r in pairs)
        assert server.memory.searches == 2
    assert server.count(f"{API}traces") == 20


def test_a_server_apart_is_the_same_server(readers: Any) -> None:
    with langfuse_server_apart(20, seed=5, mode="dual") as apart:
        client = httpx.Client(
            base_url=apart.url + API, auth=(PUBLIC_KEY, SECRET_KEY), trust_env=False, verify=False
        )
        with client:
            there = client.get("traces", params={"limit": 20})
            apart.break_by(Faults(always=503))
            assert client.get("traces").status_code == 503
        assert [(r.path, r.status) for r in apart.requests] == [
            (f"{API}traces", 200),
            (f"{API}traces", 503),
        ]
        assert apart.most_at_once == 1
    with langfuse_server(generate(20, seed=5), "dual") as server:
        assert readers(server).get("traces", limit=20).content == there.content


def test_a_reader_that_tries_again_gets_everything_in_spite_of_all_faults(readers: Any) -> None:
    """The worst of both worlds at once: what a reader of the project has to come through."""
    faults = Faults(
        seed=4,
        server_errors=0.05,
        gateway_timeouts=0.02,
        resets=0.05,
        truncated=0.05,
        cut=0.02,
        html=0.02,
        burst_every=20,
        burst=3,
        duplicates=0.1,
        arrivals=tuple(generate(40, seed=21, start=START + timedelta(days=1))),
    )
    pairs = generate(300, seed=20)
    until = (START + timedelta(days=1)).isoformat()

    def again(ask: Any) -> Any:
        for _ in range(20):
            try:
                answer = ask()
                if answer.status_code == 200:
                    return answer.json()
            except (httpx.HTTPError, json.JSONDecodeError):
                pass
        raise AssertionError("no answer in twenty tries")

    with langfuse_server(pairs, "dual", faults) as server:
        reader = readers(server)
        traces: list[str] = []
        for page in range(1, 31):
            params = {"page": page, "limit": 10, "toTimestamp": until}
            traces += ids(again(lambda p=params: reader.get("traces", **p))["data"])
        rows: list[Row] = []
        at: dict[str, str] = {}
        while True:
            page = again(
                lambda p=dict(at): reader.get("v2/observations", limit=50, toStartTime=until, **p)
            )
            rows += page["data"]
            if "cursor" not in page["meta"]:
                break
            at = {"cursor": page["meta"]["cursor"]}
    assert Counter(traces) == Counter(t["id"] for t, _ in pairs)
    held = {row["id"] for _, found in pairs for row in found if row["startTime"] < iso_of(until)}
    assert set(ids(rows)) == held
    assert len(rows) > len(held)
    met = Counter(request.fault for request in server.requests)
    assert len(met) == 8, met


def iso_of(time: str) -> str:
    return iso(milliseconds(time))
