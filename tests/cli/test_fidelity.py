"""`bench workflow-trace-fidelity`, `bench trace-fidelity`, `bench families`."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.adapters.fidelity_files import workflow_trace_json
from benchmark_assets.adapters.fidelity_runs import read_fidelity_runs, store_fidelity_run
from benchmark_assets.adapters.store import Store
from benchmark_assets.model.fidelity import (
    FidelityRun,
    LedgerEntry,
    ModelTurn,
    Usage,
    WorkflowRecord,
)
from benchmark_assets.model.problem import InputError
from benchmark_assets.scoring.trace_fidelity import FAMILIES, RULE_SETS
from tests.bench import Result, bench, bench_process, tree
from tests.real_data import REAL, needs_real_data

SOURCE = REAL / "agenteval-workflow"
EXPECTED: dict[str, Any] = (
    json.loads((SOURCE / "expected.json").read_text()) if SOURCE.is_dir() else {}
)
WORKFLOWS = [name for name in EXPECTED if name.startswith("wf_")]
CASES = Path(__file__).parents[1] / "data" / "fidelity" / "workflow"
LABELS = {"pass": "PASS", "fail": "FAIL", "skipped": "PENDING"}
CODES = {"PASS": 0, "WARN": 10, "FAIL": 9, "PENDING": 11}


def run(folder: Path, *arguments: object, file: str = "w.json") -> Result:
    return bench(
        "workflow-trace-fidelity",
        *("--workflow-trace", file, "--subject", "travel", *arguments),
        cwd=folder,
    )


def report(result: Result) -> Any:
    assert result.err == ""
    return json.loads(result.out)


def words(result: Result) -> str:
    return " ".join((result.err + result.out).split())


def case(name: str, folder: Path) -> dict[str, Any]:
    """Write the record of a case as the file that the commands read; returns what is expected."""
    loaded = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    record = msgspec.convert(loaded["record"], WorkflowRecord)
    (folder / "w.json").write_bytes(workflow_trace_json(record))
    expected: dict[str, Any] = loaded["expected"]
    return expected


# What the files of the format's own tests come to.


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize("name", WORKFLOWS)
def test_published_expectations_are_met(name: str) -> None:
    expected = EXPECTED[name]
    result = run(SOURCE, "--json", file=name)
    found = report(result)
    assert result.code == expected["exit"]
    assert {e["executor_id"]: e["verdict"] for e in found["executors"]} == expected["verdicts"]
    assert found["score"] == expected["score"]
    assert found["outcome"] == LABELS.get(expected["label"], "WARN")
    if "verified" in expected:
        assert found["coverage"]["checked"] == expected["verified"]
    if "stored" in expected:
        assert found["outcome"] == expected["stored"]


@needs_real_data
@pytest.mark.data
def test_every_published_file_is_looked_at() -> None:
    assert len(WORKFLOWS) == 6
    assert {path.name for path in SOURCE.glob("wf_*.json")} == set(WORKFLOWS)


@needs_real_data
@pytest.mark.data
def test_the_published_single_agent_is_judged() -> None:
    expected = EXPECTED["agent_hidden_retry.trace.json"]
    result = bench(
        "trace-fidelity",
        *("--agent-trace", "agent_hidden_retry.trace.json"),
        *("--chat-trace", "chat_hidden_retry.trace.json", "--subject", "x", "--json"),
        cwd=SOURCE,
    )
    found = report(result)
    assert result.code == expected["exit"]
    assert found["score"] == expected["single_agent_score"]
    assert found["outcome"] == "WARN"
    counts = {item["class"]: item["count"] for item in found["classes"]}
    assert counts.pop("hidden_retries") == expected["hidden_retries"]
    assert set(counts.values()) == {0}


# The report.


def test_the_json_has_these_keys_and_no_other(tmp_path: Path) -> None:
    case("no_truth", tmp_path)
    assert report(run(tmp_path, "--json")) == {
        "subject": "travel",
        "rules": "specified",
        "outcome": "WARN",
        "score": 1.0,
        "coverage": {
            "executors": 2,
            "checked": 1,
            "share": 0.5,
            "truth_tokens": 15,
            "checked_tokens": 15,
            "token_share": 1.0,
        },
        "executors": [
            {
                "executor_id": "a",
                "verdict": "Agree",
                "score": 1.0,
                "ledger_tokens": 15,
                "truth_tokens": 15,
                "ledger_finish": "stop",
                "truth_finish": "stop",
            },
            {
                "executor_id": "b",
                "verdict": "NoTruth",
                "score": None,
                "ledger_tokens": 15,
                "truth_tokens": None,
                "ledger_finish": "stop",
                "truth_finish": None,
            },
        ],
    }


def test_every_check_is_there_if_it_is_asked_for(tmp_path: Path) -> None:
    case("token_mismatch", tmp_path)
    (executor,) = report(run(tmp_path, "--json", "-v"))["executors"]
    assert executor["severity"] == "warning"
    assert executor["checks"][0] == {
        "name": "tokens",
        "outcome": "failed",
        "expected": "1,000 tokens, used by 1 model call; at most 2 % less",
        "observed": "979 tokens reported",
        "reason": "21 tokens of 1,000 not reported (2.1 %)",
        "where": None,
    }
    assert "passed   finish reason" in run(tmp_path, "-v").out
    assert "passed   finish reason" not in run(tmp_path).out


def test_what_is_wrong_is_said_in_words(tmp_path: Path) -> None:
    case("no_ledger", tmp_path)
    result = run(tmp_path, "--rules", "strict")
    assert result.code == 9
    lines = [line.rstrip() for line in result.out.splitlines()]
    assert "Outcome   FAIL, score 50.0%" in lines
    assert "manager  NoLedger" in lines
    assert "FAIL: 1 NoLedger." in lines
    assert "the framework reported none of it" in words(result)
    by_mean = run(tmp_path)
    assert by_mean.code == 0
    assert "Note: model calls of 'manager' (330 tokens) belong to no step" in words(by_mean)


@pytest.mark.parametrize("rules", [rules.name for rules in RULE_SETS])
@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.yaml")))
def test_every_case_survives_its_file(tmp_path: Path, name: str, rules: str) -> None:
    expected = case(name, tmp_path)[rules]
    result = run(tmp_path, "--json", "--rules", rules)
    found = report(result)
    assert result.code == CODES[expected["outcome"]]
    assert (found["outcome"], found["score"]) == (expected["outcome"], expected["score"])
    assert {e["executor_id"]: e["verdict"] for e in found["executors"]} == expected["executors"]
    printed = run(tmp_path, "--rules", rules)
    assert printed.code == result.code
    assert f"{expected['outcome']}" in printed.out.splitlines()[3]


def test_many_executors_are_counted_not_listed(tmp_path: Path) -> None:
    record = WorkflowRecord(
        ledger=tuple(
            LedgerEntry(executor=f"e{number:03}", usage=Usage(total=100)) for number in range(50)
        ),
        turns=tuple(
            ModelTurn(executor=f"e{number:03}", usage=Usage(total=100 + number % 2 * 100))
            for number in range(50)
        ),
    )
    (tmp_path / "w.json").write_bytes(workflow_trace_json(record))
    result = run(tmp_path)
    assert "TokenMismatch × 25" in result.out
    assert "10 more executors: -v lists all." in words(result)
    assert "e048" not in result.out
    assert "e048" in run(tmp_path, "-v").out
    assert len(report(run(tmp_path, "--json"))["executors"]) == 50


def test_names_can_do_no_harm(tmp_path: Path) -> None:
    record = WorkflowRecord(
        ledger=(
            LedgerEntry(executor="[red]x\x1b[2J", usage=Usage(total=1), finish_reason="\u202ex"),
            LedgerEntry(executor=""),
        ),
        turns=(ModelTurn(executor="[red]x\x1b[2J", usage=Usage(total=90), finish_reason="[b]"),),
        traced=("[red]x\x1b[2J",),
    )
    (tmp_path / "w.json").write_bytes(workflow_trace_json(record))
    result = run(tmp_path)
    assert result.code == 9
    assert "[red]x\\x1b[2J" in result.out
    assert "[b]" in result.out
    assert "(no name)" in result.out
    assert "\x1b" not in result.out
    assert "\u202e" not in result.out


# Traces in other formats.


def snapshot_of(name: str, trace_id: str, **fields: Any) -> dict[str, Any]:
    """A snapshot with the record of a case."""
    loaded = yaml.safe_load((CASES / f"{name}.yaml").read_text(encoding="utf-8"))
    return {"trace_id": trace_id, "prompt": "p", "workflow_record": loaded["record"], **fields}


@pytest.mark.parametrize("rules", [rules.name for rules in RULE_SETS])
@pytest.mark.parametrize("name", sorted(path.stem for path in CASES.glob("*.yaml")))
def test_a_trace_in_another_format_comes_to_the_same(tmp_path: Path, name: str, rules: str) -> None:
    expected = case(name, tmp_path)[rules]
    (tmp_path / "s.jsonl").write_text(json.dumps(snapshot_of(name, "t1")))
    result = run(tmp_path, "--json", "--rules", rules, file="s.jsonl")
    assert result.code == CODES[expected["outcome"]]
    assert result == run(tmp_path, "--json", "--rules", rules)
    printed = run(tmp_path, "--rules", rules, file="s.jsonl")
    assert "; trace t1" in words(printed)


def several(folder: Path) -> None:
    traces = [snapshot_of("agree", "good"), snapshot_of("both", "bad")]
    traces += [{"trace_id": "plain", "prompt": "p"}, {"trace_id": "odd", "tool_calls": 3}]
    (folder / "s.jsonl").write_text("\n".join(map(json.dumps, traces)))


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--trace-id", "good"], 0, "PASS: what is reported agrees"),
        (["--trace-id", "bad"], 9, "FAIL: 1 Both."),
        (["--trace-id", "bad", "--rules", "strict"], 9, "FAIL: 1 Both."),
        (["--trace-id", "bad", "--format", "snapshot"], 9, "FAIL: 1 Both."),
        (["--trace-id", "plain"], 11, "PENDING: no verdict; not applicable: the framework of"),
        (["--trace-id", "plain", "--rules", "strict"], 11, "reported nothing of its executors"),
        (["--trace-id", "odd"], 1, "error s.jsonl: line 4: is no valid snapshot"),
        (["--trace-id", "goof"], 2, "holds no trace 'goof'; did you mean 'good'?"),
        ([], 2, "s.jsonl holds 4 traces; choose one with --trace-id: good bad plain odd"),
        (["--format", "tau2"], 1, "error s.jsonl"),
        (["--format", "agenteval"], 1, "error s.jsonl:2: is not JSON"),
    ],
)
def test_one_trace_of_several_is_chosen(
    tmp_path: Path, options: list[str], code: int, message: str
) -> None:
    several(tmp_path)
    result = run(tmp_path, *options, file="s.jsonl")
    assert message in words(result)
    assert result.code == code


def test_a_trace_without_a_ledger_is_no_pass_in_json_and_in_the_store(tmp_path: Path) -> None:
    several(tmp_path)
    options = ["--trace-id", "plain", "--store", "kept"]
    result = run(tmp_path, *options, "--json", "-v", file="s.jsonl")
    assert result.code == 11
    found = json.loads(result.out)
    assert (found["outcome"], found["score"], found["executors"]) == ("PENDING", None, [])
    assert found["reason"].startswith("not applicable: ")
    (stored,) = read_fidelity_runs(Store(str(tmp_path / "kept")))
    assert (stored.outcome, stored.coverage, stored.reason) == ("PENDING", None, found["reason"])


def test_the_environments_trace_does_not_matter_to_a_workflow_trace_file(tmp_path: Path) -> None:
    case("agree", tmp_path)
    arguments = ["--workflow-trace", "w.json", "--subject", "x"]
    environment = {"TRACE_ID": "elsewhere"}
    done = bench("workflow-trace-fidelity", *arguments, cwd=tmp_path, env=environment)
    assert done.code == 0


def test_an_agents_own_trace_is_still_sent_to_its_own_command(tmp_path: Path) -> None:
    (tmp_path / "w.json").write_text('{"entries": [{"type": "Response"}]}')
    result = run(tmp_path)
    assert result.code == 1
    assert "this is an agent trace: `bench trace-fidelity` reads it" in words(result)


def test_a_projects_file_does_not_matter_to_a_workflow_trace_file(tmp_path: Path) -> None:
    case("agree", tmp_path)
    (tmp_path / "benchmark.yaml").write_text("nonsense: [")
    assert run(tmp_path).code == 0
    several(tmp_path)
    assert run(tmp_path, "--trace-id", "good", file="s.jsonl").code == 1


# Exit codes, each in a real process.


@pytest.mark.parametrize(
    ("name", "code"),
    [("agree", 0), ("no_truth", 10), ("both", 9), ("nothing_reported_at_all", 11)],
)
def test_the_outcome_is_the_exit_code(tmp_path: Path, name: str, code: int) -> None:
    case(name, tmp_path)
    done = bench_process(
        *("workflow-trace-fidelity", "--workflow-trace", "w.json", "--subject", "x"), cwd=tmp_path
    )
    assert (done.code, done.err) == (code, "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--workflow-trace", "none.json", "--subject", "x"], 1, "none.json: cannot be opened"),
        (["--workflow-trace", ".", "--subject", "x"], 1, "Is a directory"),
        (["--workflow-trace", "bad.json", "--subject", "x"], 1, "bad.json: steps[0].executorId"),
        (["--workflow-trace", "cut.json", "--subject", "x"], 1, "cut.json:1: is cut off"),
        (["--workflow-trace", "w.json"], 2, "Missing option '--subject'"),
        (["--workflow-trace", "w.json", "--subject", " "], 2, "is empty; say what is compared"),
        (["--subject", "x"], 2, "Missing option '--workflow-trace'"),
        (["--workflow-trace", "w.json", "--subject", "x", "--preset", "big"], 2, "'big' is not"),
        (["--workflow-trace", "w.json", "--subject", "x", "--rules", "lax"], 2, "'lax' is not"),
        (["--workflow-trace", "w.json", "--subject", "x", "--store", "w.json"], 1, "is a file"),
    ],
)
def test_what_keeps_it_from_an_outcome(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    case("agree", tmp_path)
    (tmp_path / "bad.json").write_text('{"steps": [{}]}')
    (tmp_path / "cut.json").write_text('{"steps": [{"executorId"')
    done = bench_process("workflow-trace-fidelity", *arguments, cwd=tmp_path)
    assert done.code == code
    assert message in words(done)
    assert done.out == ""


def test_a_reader_that_has_seen_enough_changes_no_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case("both", tmp_path)
    from benchmark_assets.cli import workflow_trace_fidelity

    def closed(*_: object, **__: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(workflow_trace_fidelity, "print_workflow", closed)
    assert run(tmp_path).code == 9


# The store.


def test_a_run_is_kept_once(tmp_path: Path) -> None:
    case("no_truth", tmp_path)
    first = run(tmp_path, "--store", "kept", "--preset", "audit-grade", "--json")
    assert first.code == 10
    assert json.loads(first.out)["outcome"] == "WARN"
    assert "stored as" in words(first)
    (path,) = (tmp_path / "kept" / "fidelity_runs").glob("*.parquet")
    assert pq.ParquetFile(path).read().to_pylist() == [
        {
            "family": "workflow-trace-fidelity",
            "cost_tier": "free",
            "preset": "audit-grade",
            "subject": "travel",
            "rules": "specified",
            "version": "3",
            "outcome": "WARN",
            "score": 1.0,
            "coverage": 0.5,
            "token_coverage": 1.0,
            "reason": "1 of 2 executors had no chat truth",
            "sha256": hashlib.sha256((tmp_path / "w.json").read_bytes()).hexdigest(),
            "truth_sha256": None,
        }
    ]
    before = tree(tmp_path / "kept")
    again = run(tmp_path, "--store", "kept", "--preset", "audit-grade")
    assert "stored already as" in words(again)
    assert tree(tmp_path / "kept") == before
    run(tmp_path, "--store", "kept", "--rules", "strict")
    assert len(read_fidelity_runs(Store(str(tmp_path / "kept")))) == 2


def test_nothing_is_kept_unless_it_is_asked_for(tmp_path: Path) -> None:
    case("agree", tmp_path)
    before = tree(tmp_path)
    run(tmp_path)
    assert tree(tmp_path) == before


def test_without_a_name_the_store_is_the_projects(tmp_path: Path) -> None:
    case("nothing_reported_at_all", tmp_path)
    (tmp_path / "benchmark.yaml").write_text("store: here\n")
    assert run(tmp_path, "--store", "--json").code == 11
    (stored,) = read_fidelity_runs(Store(str(tmp_path / "here")))
    assert (stored.outcome, stored.score, stored.coverage) == ("PENDING", None, None)


def test_a_single_agent_is_kept_with_both_files(tmp_path: Path) -> None:
    agent = {"entries": [{"type": "Response", "finishReason": "stop"}]}
    chat = {"entries": [{"type": "Response", "scope": "ChatTurn", "finishReason": "length"}]}
    (tmp_path / "a.json").write_text(json.dumps(agent))
    (tmp_path / "c.json").write_text(json.dumps(chat))
    arguments = ["trace-fidelity", "--agent-trace", "a.json", "--subject", "x", "--store", "s"]
    assert bench(*arguments, "--chat-trace", "c.json", cwd=tmp_path).code == 10
    assert bench(*arguments, "--chat-trace", "a.json", cwd=tmp_path).code == 11
    pending, stored = sorted(
        read_fidelity_runs(Store(str(tmp_path / "s"))), key=lambda run: run.outcome
    )
    assert (stored.family, stored.score, stored.coverage) == ("trace-fidelity", 0.85, 1.0)
    assert stored.truth_sha256 == hashlib.sha256((tmp_path / "c.json").read_bytes()).hexdigest()
    assert (pending.outcome, pending.score, pending.coverage) == ("PENDING", None, 0.0)


def test_a_subject_may_be_no_text(tmp_path: Path) -> None:
    case("agree", tmp_path)
    arguments = ("--workflow-trace", "w.json", "--subject", "a\udcff", "--store", "s", "--json")
    assert bench("workflow-trace-fidelity", *arguments, cwd=tmp_path).code == 0
    (stored,) = read_fidelity_runs(Store(str(tmp_path / "s")))
    assert stored.subject == "a\\udcff"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "fidelity_runs").mkdir()
    (tmp_path / "fidelity_runs" / "x.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"x\.parquet: is damaged"):
        read_fidelity_runs(Store(str(tmp_path)))


# A single agent, and the families.


def test_a_single_agents_breakdown(tmp_path: Path) -> None:
    agent = {"entries": [{"type": "Response", "toolCalls": [{"name": "[b]", "arguments": "1"}]}]}
    chat = {
        "entries": [
            {
                "type": "Response",
                "scope": "ChatTurn",
                "toolCalls": [{"name": "[b]", "arguments": "2"}, {"name": "pay"}],
            }
        ]
    }
    (tmp_path / "a.json").write_text(json.dumps(agent))
    (tmp_path / "c.json").write_text(json.dumps(chat))
    arguments = ["--agent-trace", "a.json", "--chat-trace", "c.json", "--subject", "x"]
    result = bench_process("trace-fidelity", *arguments, cwd=tmp_path)
    # 1 - (.2 × .5 + .15 × .25)
    assert result.code == 10
    assert "Outcome WARN, score 86.2%" in words(result)
    assert "not reported: 'pay'" in words(result)
    assert "'[b]': given 2, reported 1" in words(result)
    assert "passed   phantom_tool_calls" not in result.out
    assert (
        "passed   phantom_tool_calls" in bench("trace-fidelity", *arguments, "-v", cwd=tmp_path).out
    )
    found = report(bench("trace-fidelity", *arguments, "--json", cwd=tmp_path))
    assert found["score"] == 0.8625
    assert found["classes"][0] == {
        "class": "missing_tool_calls",
        "severity": "high",
        "count": 1,
        "score": 0.5,
        "weight": 0.2,
    }


def test_families_are_listed() -> None:
    result = bench_process("families")
    assert result.code == 0
    for family in FAMILIES:
        assert f"{family.name} {family.description}; free" in words(result)
    listed = report(bench("families", "--json"))
    assert [item["name"] for item in listed] == [family.name for family in FAMILIES]
    assert listed[0]["presets"] == ["smoke", "standard", "audit-grade"]
    assert listed[0]["cost_tier"] == "free"


rows = st.builds(
    FidelityRun,
    family=st.text(max_size=5),
    cost_tier=st.just("free"),
    preset=st.just("smoke"),
    subject=st.text(max_size=8),
    rules=st.just("strict"),
    version=st.just("1"),
    outcome=st.sampled_from(["PASS", "PENDING"]),
    score=st.none() | st.floats(0, 1),
    coverage=st.none() | st.floats(0, 1),
    token_coverage=st.none() | st.floats(0, 1),
    reason=st.none() | st.text(max_size=8) | st.just("2026-01-01"),
    sha256=st.just("0" * 64),
    truth_sha256=st.none(),
)


@given(rows)
def test_any_row_is_read_back_as_it_was(row: FidelityRun) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        path, is_new = store_fidelity_run(store, row)
        assert is_new
        (found,) = read_fidelity_runs(store)
        assert store_fidelity_run(store, found) == (path, False)
    assert found.score == row.score
    assert found.coverage == row.coverage
    assert found.reason == storable(row.reason)
    assert found.subject == storable(row.subject)


def storable(text: str | None) -> str | None:
    return None if text is None else text.encode("utf-8", "backslashreplace").decode()
