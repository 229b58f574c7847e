"""Traces out of exports to blob storage: the ones that the server gives, whatever the format."""

import gzip
import json
import tracemalloc
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from benchmark_assets.adapters.formats.langfuse import read_trace
from benchmark_assets.adapters.langfuse import blob
from benchmark_assets.adapters.langfuse.blob import ExportReader
from benchmark_assets.adapters.langfuse.credentials import Credentials
from benchmark_assets.adapters.langfuse.export_files import Export
from benchmark_assets.adapters.langfuse.http import Client
from benchmark_assets.adapters.langfuse.readers import Filters, RawTrace, Reader, Window
from benchmark_assets.adapters.langfuse.v1 import V1Reader
from benchmark_assets.adapters.langfuse.v2 import V2Reader
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import Origin, TraceSnapshot
from tests.adapters.langfuse_exports import (
    PROJECT,
    Exporter,
    Row,
    enriched,
    export_time,
    legacy,
    written_as,
)
from tests.langfuse_server import (
    PUBLIC_KEY,
    SECRET_KEY,
    START,
    Server,
    generate,
    langfuse_server,
)

DAY = Window(START, START + timedelta(days=1))
HOUR = timedelta(hours=1)
ENVIRONMENTS = ("default", "staging")
ORIGIN = Origin(format="langfuse", file="x", sha256="0")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    # Two days, so that a day has neighbours on one side.
    data = generate(120, 3, span=timedelta(days=2), environments=ENVIRONMENTS)
    with langfuse_server(data, mode="dual") as server:
        yield server


@pytest.fixture(scope="module")
def tables(server: Server) -> dict[str, list[Row]]:
    return enriched(server)


def client(server: Server) -> Client:
    return Client(Credentials(PUBLIC_KEY, SECRET_KEY, server.url))


def reader(path: object, **options: Any) -> ExportReader:
    return ExportReader(Export(str(path), **options))


def snapshots(traces: Iterable[RawTrace]) -> dict[str, TraceSnapshot]:
    return {
        raw.trace_id: read_trace(raw.trace, raw.observations, ORIGIN)
        for raw in traces
        if raw.complete
    }


def hours(traces: Iterable[RawTrace]) -> dict[str, datetime]:
    return {
        raw.trace_id: raw.timestamp.replace(minute=0, second=0, microsecond=0)
        for raw in traces
        if raw.timestamp is not None
    }


def exported(tmp_path: Path, tables: dict[str, list[Row]], kind: str = "jsonl") -> Exporter:
    exporter = Exporter(UPath(tmp_path / "exports"), kind)
    exporter.runs(tables, START, START + timedelta(days=3), HOUR)
    return exporter


def same_as_live(found: Reader, live: Reader, window: Window = DAY) -> None:
    expected, got = list(live.fetch_window(window)), list(found.fetch_window(window))
    assert len(expected) > 30
    assert hours(got) == hours(expected)
    assert snapshots(got) == snapshots(expected)
    assert len(snapshots(got)) == len(expected)


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "json", "json.gz", "csv", "csv.gz"])
def test_gives_what_the_server_gives(
    server: Server, tables: dict[str, list[Row]], tmp_path: Path, kind: str
) -> None:
    exported(tmp_path, tables, kind)
    with client(server) as http, reader(tmp_path / "exports") as found:
        same_as_live(found, V2Reader(http))
        assert found.counts.problems == []


def test_gives_what_the_server_gives_from_parquet(
    server: Server, tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exported(tmp_path, tables, "parquet")
    with client(server) as http, reader(tmp_path / "exports") as found:
        same_as_live(found, V2Reader(http))


def test_gives_what_a_server_with_traces_gives(server: Server, tmp_path: Path) -> None:
    exported(tmp_path, legacy(server))
    with client(server) as http, reader(tmp_path / "exports") as found:
        same_as_live(found, V1Reader(http))


def test_fingerprints_are_those_of_the_server(
    server: Server, tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exported(tmp_path, tables)
    with client(server) as http, reader(tmp_path / "exports") as found:
        assert list(found.list(DAY)) == list(V2Reader(http).list(DAY))


def test_both_layouts_at_once_are_read_as_one(
    server: Server, tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exported(tmp_path, {**legacy(server), **tables})
    with client(server) as http, reader(tmp_path / "exports") as found:
        same_as_live(found, V2Reader(http))


def test_a_switch_of_layouts_within_a_day_loses_nothing(server: Server, tmp_path: Path) -> None:
    exporter = Exporter(UPath(tmp_path / "exports"))
    noon = START + timedelta(hours=12)
    exporter.runs(legacy(server), START, noon, HOUR)
    exporter.runs(enriched(server), noon, START + timedelta(days=2), HOUR)
    with client(server) as http, reader(tmp_path / "exports") as found:
        expected = {item.trace_id for item in V1Reader(http).list(DAY)}
        assert {raw.trace_id for raw in found.fetch_window(DAY)} == expected


@pytest.mark.parametrize("every", [timedelta(minutes=20), timedelta(days=1), timedelta(days=7)])
def test_how_often_it_runs_changes_nothing(
    server: Server, tables: dict[str, list[Row]], tmp_path: Path, every: timedelta
) -> None:
    exporter = Exporter(UPath(tmp_path / "exports"))
    begin = START - timedelta(hours=5)  # days of the export are not those of the calendar
    exporter.runs(tables, begin, begin + timedelta(days=7), every)
    with client(server) as http, reader(tmp_path / "exports") as found:
        same_as_live(found, V2Reader(http))


@pytest.mark.parametrize("below", ["", PROJECT])
def test_is_found_at_its_prefix_and_in_its_folder(
    tables: dict[str, list[Row]], tmp_path: Path, below: str
) -> None:
    exported(tmp_path, tables)
    with reader(tmp_path / "exports" / below) as found:
        assert len(list(found.list(DAY))) > 30


def test_reads_each_file_once_a_day_and_none_again(
    tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exported(tmp_path, tables)
    with reader(tmp_path / "exports") as found:
        listed = {item.trace_id: item for item in found.list(DAY)}
        read = found.counts.files
        assert read == 25  # those of the day's hours, and the one of the hour after
        for hour in range(24):
            window = Window(START + hour * HOUR, START + (hour + 1) * HOUR)
            for raw in found.fetch_window(window, listed):
                del listed[raw.trace_id]
        assert listed == {}
        assert found.counts.files == read


def test_a_window_of_days_is_read_day_by_day(
    server: Server, tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exported(tmp_path, tables)
    window = Window(START, START + timedelta(days=3))
    with reader(tmp_path / "exports") as found:
        listed = [item.trace_id for item in found.list(window)]
        assert len(set(listed)) == len(listed) == 120
        assert {raw.trace_id for raw in found.fetch_window(window)} == set(listed)


# Complete runs only.


def test_a_run_without_manifest_is_not_read(tables: dict[str, list[Row]], tmp_path: Path) -> None:
    exporter = Exporter(UPath(tmp_path / "exports"))
    noon = START + timedelta(hours=12)
    exporter.runs(tables, START, noon, HOUR)
    exporter.run(tables, noon, noon + HOUR, complete=False)
    with reader(tmp_path / "exports") as found:
        before = {raw.trace_id: raw for raw in found.fetch_window(DAY)}
        assert before
        assert all(raw.timestamp and raw.timestamp <= noon for raw in before.values())
        exporter.run(tables, noon, noon + HOUR)
        after = {raw.trace_id: raw for raw in found.fetch_window(DAY)}
    assert before.keys() < after.keys()


def test_a_trace_that_goes_on_after_the_last_run_is_not_whole(tmp_path: Path) -> None:
    noon = START + timedelta(hours=12)
    tables = {"observations_v2": long_trace(noon - timedelta(minutes=1), timedelta(minutes=5))}
    exporter = Exporter(UPath(tmp_path / "exports"))
    exporter.run(tables, noon - HOUR, noon)
    with reader(tmp_path / "exports") as found:
        (raw,) = found.fetch_window(DAY)
        assert not raw.complete
        assert raw.why is not None
        assert "2026-11-02 12:00:00" in raw.why
        listed = next(iter(found.list(DAY)))
        exporter.run(tables, noon, noon + HOUR)
        (again,) = found.list(DAY)
        assert again.fingerprint != listed.fingerprint
        (whole,) = found.fetch_window(DAY)
    assert whole.complete
    assert len(whole.observations) == 6


def long_trace(start: datetime, length: timedelta) -> list[Row]:
    """A root and five rows spread over it."""
    rows = []
    for number in range(6):
        begin = start + (length / 6) * number
        end = start + length if number == 0 else begin + timedelta(seconds=1)
        rows.append(
            {
                "id": f"row-{number}",
                "trace_id": "long",
                "project_id": PROJECT,
                "type": "AGENT" if number == 0 else "SPAN",
                "parent_observation_id": "row-0" if number else "",
                "start_time": export_time(begin),
                "end_time": export_time(end),
                "updated_at": export_time(end),
                "name": f"step {number}",
                "input": "",
                "output": "done",
            }
        )
    return rows


@pytest.mark.parametrize("hours_long", [3, 20])
def test_a_trace_over_many_hours_is_put_together(tmp_path: Path, hours_long: int) -> None:
    """From one day into the next: it belongs to the day in which it began, and only to that."""
    begin = START + timedelta(hours=23)
    tables = {"observations_v2": long_trace(begin, timedelta(hours=hours_long))}
    exported(tmp_path, tables)
    with reader(tmp_path / "exports") as found:
        (raw,) = found.fetch_window(DAY)
        assert [row["id"] for row in raw.observations] == [f"row-{n}" for n in range(6)]
        assert raw.complete
        tomorrow = Window(DAY.end, DAY.end + timedelta(days=1))
        assert list(found.fetch_window(tomorrow)) == []


def test_a_trace_without_a_root_is_given_once_by_its_first_row(tmp_path: Path) -> None:
    rows = long_trace(START + timedelta(hours=23, minutes=30), timedelta(hours=2))[1:]
    exported(tmp_path, {"observations_v2": rows})
    with reader(tmp_path / "exports") as found:
        (raw,) = found.fetch_window(DAY)
        assert len(raw.observations) == 5
        tomorrow = Window(DAY.end, DAY.end + timedelta(days=1))
        assert list(found.fetch_window(tomorrow)) == []


def test_of_two_rows_of_one_id_the_one_updated_last_counts(tmp_path: Path) -> None:
    old = long_trace(START + HOUR, timedelta(minutes=10))
    new = [{**row, "output": "newer", "updated_at": export_time(START + 2 * HOUR)} for row in old]
    exporter = Exporter(UPath(tmp_path / "exports"))
    # The time was exported once more, later, by runs of another length.
    exporter.run({"observations_v2": new}, START, START + timedelta(hours=3))
    exporter.run({"observations_v2": old}, START, START + timedelta(hours=4))
    with reader(tmp_path / "exports") as found:
        (raw,) = found.fetch_window(DAY)
    assert [row["output"] for row in raw.observations] == ["newer"] * 6


def test_says_what_no_run_covers(tables: dict[str, list[Row]], tmp_path: Path) -> None:
    exporter = Exporter(UPath(tmp_path / "exports"))
    exporter.runs(tables, START + HOUR, START + 3 * HOUR, HOUR)
    exporter.runs(tables, START + 4 * HOUR, START + 24 * HOUR, HOUR)
    assert Export(str(tmp_path / "exports")).uncovered(DAY) == [
        Window(START, START + HOUR),
        Window(START + 3 * HOUR, START + 4 * HOUR),
    ]


# Conditions.


@pytest.mark.parametrize(
    "filters",
    [
        Filters(environments=("staging",)),
        Filters(environments=("default", "nowhere")),
        Filters(names=("planner", "support")),
        Filters(user_ids=("user-1", "user-2", "user-3")),
        Filters(session_ids=("session-3",)),
        Filters(tags=("bench", "nightly")),
        Filters(metadata=(("projectid", ("P1", "P2")), ("app.version", ("1.4",)))),
        Filters(metadata=(("projectid", ("P1",)), ("run_id", ("run-1",)))),
    ],
)
def test_conditions_let_through_what_the_server_does(
    server: Server, tables: dict[str, list[Row]], tmp_path: Path, filters: Filters
) -> None:
    exported(tmp_path, tables)
    window = Window(START, START + timedelta(days=2))
    with client(server) as http, reader(tmp_path / "exports") as found:
        expected = [item.trace_id for item in V2Reader(http).list(window, filters)]
        assert [item.trace_id for item in found.list(window, filters)] == expected
        assert {raw.trace_id for raw in found.fetch_window(window, None, filters)} == set(expected)


def test_single_traces(server: Server, tables: dict[str, list[Row]], tmp_path: Path) -> None:
    exported(tmp_path, tables)
    with client(server) as http, reader(tmp_path / "exports") as found:
        listed = [item.trace_id for item in V2Reader(http).list(DAY)][:3]
        expected = snapshots(V2Reader(http).fetch_many(listed))
        assert snapshots(found.fetch_many([*listed, "unknown"])) == expected
        assert found.fetch("unknown") is None
        single = found.fetch(listed[0])
        assert single is not None
        assert single.trace_id == listed[0]


# Without manifests.


def test_older_exports_are_read_by_their_names(
    server: Server, tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exporter = Exporter(UPath(tmp_path / "exports"), manifests=False)
    exporter.runs(tables, START - HOUR, START + timedelta(days=2), HOUR)
    with client(server) as http, reader(tmp_path / "exports", manifests=False) as found:
        same_as_live(found, V2Reader(http))


# Bad input.


def problems(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught, reader(path, **options) as found:
        list(found.fetch_window(DAY))
    return str(caught.value)


def test_nothing_there(tmp_path: Path) -> None:
    said = problems(tmp_path / "nowhere")
    assert "nowhere" in said
    assert "manifests: false" in said


def test_a_protocol_that_is_not_installed() -> None:
    with pytest.raises(InputError, match="fsspec package"):
        Export("nosuchprotocol://bucket/exports")


def test_several_projects_must_be_told_apart(tables: dict[str, list[Row]], tmp_path: Path) -> None:
    exported(tmp_path, tables)
    other = Exporter(UPath(tmp_path / "exports"), project="other")
    other.runs({"observations_v2": []}, START, START + timedelta(days=1), HOUR)
    said = problems(tmp_path / "exports")
    assert f"{PROJECT}, other" in said
    with reader(tmp_path / "exports", project=PROJECT) as found:
        assert len(list(found.list(DAY))) > 30


def test_a_last_row_that_is_cut_off_is_an_error(
    tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exporter = exported(tmp_path, tables)
    path = next(
        Path(name)
        for name in exporter.written
        if "observations_v2" in name and Path(name).stat().st_size
    )
    path.write_bytes(path.read_bytes()[:-9])
    assert path.name in problems(tmp_path / "exports")


def test_a_last_row_without_the_lines_end_is_whole(
    tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exporter = exported(tmp_path, tables)
    for name in exporter.written:
        if "observations_v2" in name:
            Path(name).write_bytes(Path(name).read_bytes().rstrip())
    with reader(tmp_path / "exports") as found:
        assert len(list(found.list(DAY))) > 30


@pytest.mark.parametrize("kind", ["jsonl", "jsonl.gz", "json", "csv", "parquet"])
def test_half_a_file_is_an_error_that_names_it(
    tables: dict[str, list[Row]], tmp_path: Path, kind: str
) -> None:
    exporter = exported(tmp_path, tables, kind)
    path = next(Path(name) for name in exporter.written if "observations_v2" in name)
    data = path.read_bytes()
    lines = data.splitlines(keepends=True)
    # Also cut where a line ends, which no line tells.
    cut = b"".join(lines[: len(lines) // 2]) if kind in ("jsonl", "csv") else data[: len(data) // 2]
    path.write_bytes(cut)
    said = problems(tmp_path / "exports")
    assert path.name in said
    assert "copy or export it again" in said


def test_a_file_that_is_gone_is_an_error_that_names_it(
    tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exporter = exported(tmp_path, tables)
    path = next(Path(name) for name in exporter.written if "observations_v2" in name)
    path.unlink()
    assert path.name in problems(tmp_path / "exports")


@pytest.mark.parametrize("manifest", [b"", b"{", b"[]", b'{"version": 1}'])
def test_a_manifest_that_is_none_is_an_error_that_names_it(
    tables: dict[str, list[Row]], tmp_path: Path, manifest: bytes
) -> None:
    exporter = exported(tmp_path, tables)
    path = next(Path(name) for name in exporter.written if "manifests" in name)
    path.write_bytes(manifest)
    assert path.name in problems(tmp_path / "exports")


def test_a_later_layout_of_manifests_is_not_guessed_at(
    tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exporter = exported(tmp_path, tables)
    path = next(Path(name) for name in exporter.written if "manifests" in name)
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))
    assert "version 2" in problems(tmp_path / "exports")


def test_a_broken_row_is_reported_and_the_others_read(tmp_path: Path) -> None:
    rows = long_trace(START + HOUR * 1.1, timedelta(minutes=10))
    exporter = exported(tmp_path, {"observations_v2": rows})
    path = next(
        Path(name) for name in exporter.written if "observations_v2" in name and "02T02" in name
    )
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 6
    path.write_bytes(b"".join([b"\xff\xfe{]\n", lines[1], b"7\n", b'{"id": "x"}\n', *lines[4:]]))
    with reader(tmp_path / "exports") as found:
        (raw,) = found.fetch_window(DAY)
        assert len(raw.observations) == 3

        assert [problem.line for problem in found.counts.problems] == [1, 3, 4]
        assert found.counts.rows == len(raw.observations) + len(found.counts.problems)


def test_files_of_tools_that_unpack_are_read_too(
    tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exporter = exported(tmp_path, tables, "jsonl.gz")
    for name in exporter.written:
        if "observations_v2" in name:
            Path(name).write_bytes(gzip.decompress(Path(name).read_bytes()))
    with reader(tmp_path / "exports") as found:
        assert len(list(found.list(DAY))) > 30


def test_other_files_in_the_folders_are_no_part_of_it(
    tables: dict[str, list[Row]], tmp_path: Path
) -> None:
    exported(tmp_path, tables)
    base = tmp_path / "exports" / PROJECT
    for folder in ("manifests", "observations_v2", "."):
        (base / folder / "DEPRECATION_NOTICE.txt").write_text("Please read.")
    (base / "observations_v2" / "2026-11-02T05-30-00.jsonl").write_bytes(
        written_as("jsonl", long_trace(START + HOUR, HOUR))
    )
    with reader(tmp_path / "exports") as found:
        assert "long" not in {item.trace_id for item in found.list(DAY)}


def test_temporary_files_go_when_it_is_closed(tables: dict[str, list[Row]], tmp_path: Path) -> None:
    exported(tmp_path, tables)
    place = tmp_path / "temporary"
    place.mkdir()
    with ExportReader(Export(str(tmp_path / "exports")), folder=place) as found:
        list(found.list(DAY))
        assert list(place.iterdir())
    assert list(place.iterdir()) == []


# Memory.


def test_memory_is_bounded_by_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blob, "_PART_BYTES", 2**20)
    tables: dict[str, list[Row]] = {"observations_v2": []}
    for number in range(3000):
        rows = long_trace(START + timedelta(seconds=20 * number), timedelta(seconds=60))
        for row in rows:
            row |= {
                "trace_id": f"trace-{number}",
                "id": f"{number}-{row['id']}",
                "input": "x" * 900,
            }
        tables["observations_v2"] += rows
    exporter = Exporter(UPath(tmp_path / "exports"))
    exporter.run(tables, START, DAY.end)
    size = max(Path(name).stat().st_size for name in exporter.written)
    assert size > 20 * 2**20
    with reader(tmp_path / "exports") as found:
        tracemalloc.start()
        try:
            listed = {item.trace_id for item in found.list(DAY)}
            given = sum(len(raw.observations) for raw in found.fetch_window(DAY))
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert (len(listed), given) == (3000, 18_000)
    assert peak < 10 * 2**20
