"""Bad input to `bench run`: each a clear message, and nothing else lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench import bench, run_rows

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
    result = bench("run", cwd=project)
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
    assert outcomes(project) == GOOD
    assert "2999-01-01" in result.err


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
