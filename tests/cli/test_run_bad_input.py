"""Bad input to `bench run`: each a clear message, and nothing else lost."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bench import bench, run_rows, tree

CONTRACT = """\
workflow: orders
contract_version: "1"
tools: {required: [get_order]}
"""


def trace(number: int, **changes: Any) -> dict[str, Any]:
    fields = {
        "trace_id": f"t{number}",
        "name": "orders",
        "model": "m1",
        "task": f"orders/{number}",
        "started_at": "2026-03-01T10:00:00Z",
        "prompt": "Where is my order?",
        "tool_calls": [{"name": "get_order", "arguments": {"id": number}, "status": "ok"}],
        "final_answer": "On its way.",
        "ended": "agent_stop",
        "ended_normally": True,
        **changes,
    }
    return {key: value for key, value in fields.items() if value is not ...}


def write_traces(path: Path, *traces: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(item) + "\n" for item in traces), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "orders.yaml").write_text(CONTRACT)
    (tmp_path / "benchmark.yaml").write_text("sources: [{kind: files, path: traces}]\n")
    write_traces(tmp_path / "traces" / "good.jsonl", trace(1), trace(2))
    return tmp_path


def outcomes(project: Path) -> dict[str, str]:
    rows = run_rows(project / "data" / "store")
    return {str(row["trace_id"]): str(row["outcome"]) for row in rows}


GOOD = {"t1": "resolved", "t2": "resolved"}

UNREADABLE = {
    "empty": (b"", "is empty"),
    "truncated": (b'{"trace_id": "t9", "prompt": "x', "is cut off in the middle of its JSON"),
    "not_json": (b"Dear diary, today the agent failed.", "is not JSON"),
    "latin1": ('{"trace_id": "t9", "prompt": "café"}'.encode("latin-1"), "is not UTF-8: byte 0xe9"),
    "other": (b'{"hello": "world"}', "is no trace in a known format (tried snapshot, tau2,"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_is_no_trace_is_reported_and_is_no_row(project: Path, case: str) -> None:
    data, message = UNREADABLE[case]
    (project / "traces" / "bad.json").write_bytes(data)
    result = bench("run", cwd=project)
    assert result.code == 10
    assert outcomes(project) == GOOD
    assert "bad.json" in result.out
    assert message in " ".join(result.out.split())


def test_one_bad_trace_becomes_an_error_row_and_the_rest_load(project: Path) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3, tool_calls="none"), trace(4))
    result = bench("run", cwd=project)
    assert result.code == 10
    assert outcomes(project) == {**GOOD, "t3": "error", "t4": "resolved"}
    (row,) = [row for row in run_rows(project / "data" / "store") if row["trace_id"] == "t3"]
    assert "more.jsonl: line 1" in str(row["reason"])
    assert "tool_calls" in str(row["reason"])


@pytest.mark.parametrize(
    ("missing", "message"),
    [("model", "has no model"), ("started_at", "has no time")],
)
def test_a_trace_without_model_or_time_is_reported(
    project: Path, missing: str, message: str
) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3, **{missing: ...}), trace(4))
    result = bench("run", cwd=project)
    assert result.code == 10
    assert outcomes(project) == {**GOOD, "t4": "resolved"}
    assert "t3" in result.out
    assert message in " ".join(result.out.split())


def test_default_date_gives_a_day_to_traces_without_time(project: Path) -> None:
    write_traces(project / "traces" / "good.jsonl", trace(1, started_at=...), trace(2))
    result = bench("run", "--traces", "traces", "--default-date", "2026-01-01", cwd=project)
    assert result.code == 0, result.err
    assert outcomes(project) == GOOD


def test_a_trace_found_twice_is_kept_once_and_named(project: Path) -> None:
    write_traces(project / "traces" / "copy.jsonl", trace(2))
    result = bench("run", cwd=project)
    assert result.code == 0
    assert outcomes(project) == GOOD
    assert "duplicate t2: traces/good.jsonl: line 2 repeats traces/copy.jsonl" in " ".join(
        result.out.split()
    )


def test_two_traces_with_one_id_are_both_kept_and_one_is_an_error(project: Path) -> None:
    write_traces(project / "traces" / "other.jsonl", trace(2, prompt="Something else"))
    result = bench("run", cwd=project)
    assert result.code == 10
    rows = run_rows(project / "data" / "store")
    assert len(rows) == 3
    (error,) = [row for row in rows if row["outcome"] == "error"]
    assert error["reason"] == (
        "trace id t2 in traces/other.jsonl is already used in traces/good.jsonl: line 2"
    )


def test_two_contracts_with_one_id(project: Path) -> None:
    (project / "contracts" / "zz.yaml").write_text(CONTRACT + "id: orders\n")
    result = bench("run", cwd=project)
    assert result.code == 1
    assert "zz.yaml" in result.err
    assert "orders.yaml" in result.err
    assert outcomes(project) == GOOD


def test_a_contract_that_matches_nothing_is_named(project: Path) -> None:
    (project / "contracts" / "zz.yaml").write_text(CONTRACT.replace("orders", "returns"))
    result = bench("run", "--json", cwd=project)
    assert result.code == 0
    entries = {entry["contract"]: entry["runs"] for entry in json.loads(result.out)["contracts"]}
    assert entries == {"orders": 2, "zz": 0}


def test_nothing_matches_any_contract(project: Path) -> None:
    (project / "contracts" / "orders.yaml").write_text(CONTRACT.replace("orders", "returns"))
    result = bench("run", cwd=project)
    assert result.code == 11


def test_a_broken_contract_does_not_retire_what_it_judged(project: Path) -> None:
    assert bench("run", cwd=project).code == 0
    (project / "contracts" / "orders.yaml").write_text(CONTRACT + "toolz: {}\n")
    (project / "contracts" / "good.yaml").write_text(CONTRACT)
    result = bench("run", cwd=project)
    assert result.code == 1
    assert "orders.yaml:4: toolz" in result.err
    assert "did you mean 'tools'?" in result.err
    contracts = {str(row["contract"]) for row in run_rows(project / "data" / "store")}
    assert contracts == {"orders", "good"}


def test_no_contracts_at_all(project: Path) -> None:
    (project / "contracts" / "orders.yaml").unlink()
    """The beginning: what is there, and how to go on."""
    result = bench("run", cwd=project)
    assert result.code == 11
    assert "2 traces in 1 file (2 snapshot)" in result.out
    assert "bench generate-contract --from-file " in result.out
    assert " --trace-id t1 --out contracts/first.yaml" in result.out
    assert "Every trace of it used get_order." in result.out
    assert "  bench run --contracts contracts" in result.out
    assert not (project / "data").exists()


def test_no_contracts_where_they_were_named(project: Path) -> None:
    (project / "contracts" / "orders.yaml").unlink()
    result = bench("run", "--contracts", "contracts", cwd=project)
    assert result.code == 1
    assert "no contracts" in result.err


def test_no_traces_at_the_path(project: Path) -> None:
    result = bench("run", "--traces", "nowhere", cwd=project)
    assert result.code == 1
    assert "nowhere: there is no such file or folder" in result.err


@pytest.mark.parametrize(
    "args",
    [
        ["run", "--from", "yesterday"],
        ["run", "--from", "2026-02-02", "--to", "2026-02-01"],
        ["run", "--format", "tau2"],
        ["run", "--nonsense"],
    ],
)
def test_usage_errors(project: Path, args: list[str]) -> None:
    assert bench(*args, cwd=project).code == 2


def test_an_unknown_contract_id(project: Path) -> None:
    result = bench("run", "--contract", "nope", cwd=project)
    assert result.code == 1
    assert "there is no contract nope" in result.err


def test_a_future_trace_is_named_and_waits(project: Path) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3, started_at="2999-01-01T00:00:00Z"))
    result = bench("run", cwd=project)
    assert result.code == 10
    assert outcomes(project) == GOOD
    assert "2999-01-01" in result.err
    assert "1 traces of m1 on 2999-01-01 are not ingested" in " ".join(result.out.split())


def test_a_trace_of_tomorrow_counts(project: Path) -> None:
    """Clocks differ: a day ahead is a day like any other."""
    tomorrow = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    write_traces(project / "traces" / "more.jsonl", trace(3, started_at=tomorrow))
    assert bench("run", cwd=project).code == 0
    assert outcomes(project) == {**GOOD, "t3": "resolved"}


def test_from_and_to_take_only_those_days(project: Path) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3, started_at="2026-03-05T00:00:00Z"))
    assert bench("run", "--from", "2026-03-02", cwd=project).code == 0
    assert outcomes(project) == {"t3": "resolved"}
    assert bench("run", cwd=project).code == 0
    assert outcomes(project) == {**GOOD, "t3": "resolved"}


def test_a_vanished_file_is_named_and_its_traces_stay_until_pruned(project: Path) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3))
    assert bench("run", cwd=project).code == 0
    (project / "traces" / "more.jsonl").unlink()
    kept = bench("run", cwd=project)
    assert "more.jsonl is gone" in " ".join(kept.out.split())
    assert "t3" in outcomes(project)
    assert bench("run", "--prune", cwd=project).code == 0
    assert outcomes(project) == GOOD


@pytest.mark.parametrize("model", ["a/b:c", "a|b", "..", "model=x", "ä ö", "x" * 300, "%2F", "..."])
def test_awkward_model_names(project: Path, model: str) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3, model=model))
    result = bench("run", cwd=project)
    assert result.code == 0, result.err
    rows = run_rows(project / "data" / "store")
    assert {str(row["model"]) for row in rows} == {"m1", model}
    assert {path.name for path in project.iterdir()} == {
        "benchmark.yaml",
        "contracts",
        "data",
        "traces",
    }


def test_an_unknown_model_is_no_empty_answer(project: Path) -> None:
    result = bench("run", "--model", "m2", cwd=project)
    assert result.code == 1
    assert "there are no traces of a model m2; there are: m1" in result.err


def test_an_error_row_says_why_where_people_look(project: Path) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3, tool_calls="none"))
    result = bench("run", cwd=project)
    assert "trace t3" in " ".join(result.out.split())
    report = next((project / "data" / "store").rglob("report.html")).read_text()
    assert "no valid snapshot" in report


def test_folders_of_one_name_are_two_sources(project: Path) -> None:
    for place, trace_id in (("p1", "a"), ("p2", "b")):
        write_traces(project / place / "traces" / "x.jsonl", {**trace(1), "trace_id": trace_id})
    for place in ("p1", "p2"):
        result = bench("run", "--traces", f"{place}/traces", "--store", "S", cwd=project)
        assert result.code == 0, result.err
    assert {str(row["trace_id"]) for row in run_rows(project / "S")} == {"a", "b"}
    assert "traces is no source any more; its 1 traces still count" in " ".join(result.out.split())


def test_a_store_among_the_traces_is_no_trace(project: Path) -> None:
    for _ in range(2):
        result = bench("run", "--traces", "traces", "--store", "traces/store", cwd=project)
        assert result.code == 0, result.err
    assert "no Dagster run" in result.err


def test_a_contract_that_is_gone_is_archived_and_named(project: Path) -> None:
    (project / "contracts" / "more.yaml").write_text(CONTRACT)
    assert bench("run", cwd=project).code == 0
    (project / "contracts" / "more.yaml").rename(project / "contracts" / "other.yaml")
    result = bench("run", cwd=project)
    assert "contract more is gone: its runs are archived" in result.err
    assert "contract more (orders@1) is gone: 2 runs of 1 models are archived" in " ".join(
        result.out.split()
    )
    rows = run_rows(project / "data" / "store")
    assert {str(row["contract"]) for row in rows} == {"orders", "other"}
    assert (project / "data/store/archive/contract=more.json").is_file()
    (project / "contracts" / "other.yaml").rename(project / "contracts" / "more.yaml")
    assert bench("run", cwd=project).code == 0
    assert [p.name for p in (project / "data/store/archive").glob("*.json")] == [
        "contract=other.json"
    ]


def test_an_alias_merges_cells_and_the_run_says_so(project: Path) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3, model="vendor/m1"))
    assert bench("run", cwd=project).code == 0
    assert {str(row["model"]) for row in run_rows(project / "data/store")} == {"m1", "vendor/m1"}
    config = project / "benchmark.yaml"
    config.write_text(config.read_text() + "models: {m1: {aliases: [vendor/m1]}}\n")
    result = bench("run", cwd=project)
    assert result.code == 0
    assert "vendor/m1 counts as m1 now: 1 day of traces merge" in result.err
    assert {str(row["model"]) for row in run_rows(project / "data/store")} == {"m1"}
    assert outcomes(project) == {**GOOD, "t3": "resolved"}


def test_a_trace_that_arrives_three_days_late(project: Path) -> None:
    for day in range(1, 6):
        write_traces(
            project / "traces" / f"{day}.jsonl",
            {**trace(day, started_at=f"2026-04-0{day}T10:00:00Z"), "trace_id": f"d{day}"},
        )
    assert bench("run", cwd=project).code == 0
    store = project / "data" / "store"
    before = tree(store / "snapshots")
    late = {**trace(9, started_at="2026-04-02T12:00:00Z"), "trace_id": "late"}
    write_traces(project / "traces" / "late.jsonl", late)
    assert bench("run", cwd=project).code == 0
    after = tree(store / "snapshots")
    assert {path for path in after if after[path] != before.get(path)} == {
        "date=2026-04-02/model=m1.parquet"
    }
    assert outcomes(project)["late"] == "resolved"


def test_many_contracts_that_match_nothing(project: Path) -> None:
    for number in range(290):
        path = project / "contracts" / "none" / f"{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(CONTRACT.replace("orders", f"w{number}"))
    for number in range(9):
        path = project / "contracts" / f"more{number}.yaml"
        path.write_text(CONTRACT)
    result = bench("run", "--json", cwd=project)
    assert result.code == 0, result.err
    runs = {item["contract"]: item["runs"] for item in json.loads(result.out)["contracts"]}
    assert len(runs) == 300
    assert sum(count == 2 for count in runs.values()) == 10
    assert sum(count == 0 for count in runs.values()) == 290


@pytest.mark.parametrize(
    "started",
    [
        "2026-03-29T02:30:00+01:00",  # an hour that Berlin skips
        "2026-10-25T02:30:00+02:00",  # and one that it has twice
        "2026-10-25T02:30:00+01:00",
        "2026-03-01T00:30:00+14:00",  # the day before in UTC
        "2024-02-29T23:59:59-00:01",  # the day after
    ],
)
def test_days_are_utc_whatever_the_zone(project: Path, started: str) -> None:
    write_traces(project / "traces" / "more.jsonl", trace(3, started_at=started))
    assert bench("run", cwd=project).code == 0
    (row,) = [row for row in run_rows(project / "data/store") if row["trace_id"] == "t3"]
    assert row["date"] == datetime.fromisoformat(started).astimezone(UTC).date().isoformat()


@pytest.mark.parametrize("damage", ["snapshots", "runs", "sources", "contracts", "leaderboard"])
def test_a_damaged_file_of_the_store_is_named_with_a_cure(project: Path, damage: str) -> None:
    assert bench("run", cwd=project).code == 0
    folder = project / "data" / "store" / damage
    path = next(p for p in sorted(folder.rglob("*")) if p.suffix in (".parquet", ".json"))
    path.write_bytes(b"junk")
    (project / "traces" / "more.jsonl").write_text(json.dumps(trace(3)))
    result = bench("run", cwd=project)
    assert result.code == 1
    assert path.name in result.err
    assert "is damaged" in result.err
    path.unlink()
    assert bench("run", cwd=project).code == 0
    assert outcomes(project) == {**GOOD, "t3": "resolved"}
