"""`bench run` on an export: the verdicts that the server's own traces get; and back to the server."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from upath import UPath

from benchmark_assets.adapters.run_files import list_months, read_month
from benchmark_assets.adapters.store import Store
from tests.adapters.langfuse_exports import Exporter, enriched
from tests.bench import Result, bench
from tests.cli.test_scores import CONTRACT, on_server
from tests.langfuse_server import PUBLIC_KEY, SECRET_KEY, START, Server, generate, langfuse_server

DAYS = ("--from", f"{START:%Y-%m-%d}", "--to", f"{START + timedelta(days=1):%Y-%m-%d}")
ENV = {"TEAM_PUBLIC": PUBLIC_KEY, "TEAM_SECRET": SECRET_KEY}

LIVE = """\
sources:
  - kind: langfuse
    name: team
    base_url: {url}
    public_key_env: TEAM_PUBLIC
    secret_key_env: TEAM_SECRET
    environment: "*"
"""
EXPORT = """\
sources:
  - kind: langfuse-export
    path: ../exports
    environment: "*"
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    data = generate(40, 7, span=timedelta(days=2), environments=("default", "staging"))
    with langfuse_server(data, mode="v2") as server:
        yield server


def project(folder: Path, settings: str) -> Path:
    (folder / "contracts").mkdir(parents=True)
    (folder / "benchmark.yaml").write_text(settings)
    (folder / "contracts" / "c.yaml").write_text(
        CONTRACT.format(workflow="planner", version="1", tool="search")
    )
    return folder


def verdicts(folder: Path) -> dict[str, Any]:
    """The runs in a store, without where they were read from."""
    store = Store(str(folder / "data" / "store"))
    found = {}
    for path, month in list_months(store).items():
        for run in read_month(store, path, month.keys):
            assert run.trace_id not in found
            row = {name: getattr(run, name) for name in run.__struct_fields__}
            for name in ("file", "sha256", "record"):
                del row[name]
            found[run.trace_id] = row
    return found


def run(folder: Path) -> Result:
    result = bench("run", *DAYS, cwd=folder, env=ENV)
    assert result.code in (0, 10), result.err
    return result


def test_verdicts_are_those_of_the_live_traces(server: Server, tmp_path: Path) -> None:
    Exporter(UPath(tmp_path / "exports")).runs(
        enriched(server), START, START + timedelta(days=3), timedelta(hours=1)
    )
    live = project(tmp_path / "live", LIVE.format(url=server.url))
    exported = project(tmp_path / "exported", EXPORT)
    run(live)
    run(exported)
    assert len(verdicts(live)) > 5
    assert verdicts(exported) == verdicts(live)
    again = run(exported)
    assert "Nothing was stale" in again.err


def test_what_is_exported_later_is_taken_in(server: Server, tmp_path: Path) -> None:
    exporter, tables = Exporter(UPath(tmp_path / "exports")), enriched(server)
    folder = project(tmp_path / "project", EXPORT)
    begin, noon = START, START + timedelta(hours=12)
    exporter.runs(tables, begin, noon, timedelta(hours=1))
    run(folder)
    before = verdicts(folder)
    exporter.runs(tables, noon, START + timedelta(days=3), timedelta(hours=1))
    run(folder)
    assert before.items() <= verdicts(folder).items()
    assert len(before) < len(verdicts(folder))


def test_a_file_that_is_not_whole_is_said_and_other_days_are_read(
    server: Server, tmp_path: Path
) -> None:
    exporter = Exporter(UPath(tmp_path / "exports"))
    exporter.runs(enriched(server), START, START + timedelta(days=3), timedelta(hours=1))
    files = [Path(p) for p in exporter.written if "observations_v2/2026-11-02T1" in p]
    path = next(path for path in files if path.stat().st_size)
    path.write_bytes(path.read_bytes()[:-300])  # within its last row
    folder = project(tmp_path / "project", EXPORT)
    result = bench("run", *DAYS, cwd=folder)
    assert result.code == 1
    assert path.name in result.err
    assert {row["date"] for row in verdicts(folder).values()} == {"2026-11-03"}


def test_scores_go_back_with_the_sources_own_keys(server: Server, tmp_path: Path) -> None:
    folder = project(tmp_path / "live", LIVE.format(url=server.url))
    run(folder)
    result = bench("scores", cwd=folder, env=ENV)
    assert result.code == 0, result.err
    traces = {trace for trace, _ in on_server(server)}
    assert traces == set(verdicts(folder))
    assert PUBLIC_KEY not in result.out + result.err


def test_events_of_all_sources(server: Server, tmp_path: Path) -> None:
    folder = project(tmp_path / "live", LIVE.format(url=server.url))
    run(folder)
    before = len(server.requests)
    result = bench("scores", "--events", "out/events.jsonl", cwd=folder, env=ENV)
    assert result.code == 0, result.err
    assert len(server.requests) == before
    text = (folder / "out" / "events.jsonl").read_text()
    logs = [json.loads(line)["resourceLogs"][0]["scopeLogs"][0] for line in text.splitlines()]
    ids = {record["traceId"] for log in logs for record in log["logRecords"]}
    assert ids == set(verdicts(folder))


def test_writes_back_by_itself_where_the_settings_say_so(server: Server, tmp_path: Path) -> None:
    settings = LIVE.format(url=server.url) + "write_back: {scores: true, events: events.jsonl}\n"
    folder = project(tmp_path / "live", settings)
    result = run(folder)
    assert "/traces/" in result.err
    assert "events written" in result.err
    assert {trace for trace, _ in on_server(server)} == set(verdicts(folder))
    assert (folder / "events.jsonl").exists()
    assert "0 scores written" in run(folder).err
    assert json.loads(bench("run", *DAYS, "--json", cwd=folder, env=ENV).out)
    before = sum(request.method == "POST" for request in server.requests)
    assert bench("run", *DAYS, "--no-pull", cwd=folder).code == 0
    assert sum(request.method == "POST" for request in server.requests) == before


def test_what_cannot_be_written_back_is_said_and_the_rest_is_done(
    server: Server, tmp_path: Path
) -> None:
    settings = LIVE.format(url=server.url) + "write_back: {events: 'http://127.0.0.1:9'}\n"
    folder = project(tmp_path / "live", settings)
    result = bench("run", *DAYS, cwd=folder, env=ENV)
    assert result.code == 1
    assert "127.0.0.1:9/v1/logs does not answer" in result.err
    assert len(verdicts(folder)) > 5
