"""`bench mutate`: what it prints, and what its exit codes mean."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench import bench

CONTRACT = """
workflow: refunds
contract_version: "1"
trajectory:
  allowed_paths: [[get_order, refund_payment]]
  calls:
    - {tool: get_order, args: {order_id: "1842"}, args_mode: exact}
    - {tool: refund_payment, args: {order_id: "1842"}, args_mode: exact}
final:
  contains: [refunded]
"""

TRACE: dict[str, Any] = {
    "trace_id": "t1",
    "tool_calls": [
        {"name": "get_order", "arguments": {"order_id": "1842"}, "status": "ok"},
        {"name": "refund_payment", "arguments": {"order_id": "1842"}, "status": "ok"},
    ],
    "final_answer": "It is refunded.",
    "ended_normally": True,
}

FIXTURE = {
    "id": "refund-1",
    "input": {"user": "Refund 1842."},
    "expect": {"tool_names": ["get_order", "refund_payment"], "forbidden_tools": ["charge_card"]},
}

GOLDEN = {
    "tools": [
        {"name": "get_order", "arguments": {"order_id": "1842"}, "result": "ok"},
        {"name": "refund_payment", "arguments": {"order_id": "1842"}, "result": "ok"},
    ],
    "asked_clarification": False,
    "final": {"status": "ok"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text(CONTRACT)
    (tmp_path / "t.json").write_text(json.dumps(TRACE))
    (tmp_path / "refund-1.json").write_text(json.dumps(FIXTURE))
    (tmp_path / "refund-1.golden.json").write_text(json.dumps(GOLDEN))
    return tmp_path


def test_a_contract_that_notices_everything(folder: Path) -> None:
    result = bench("mutate", "c.yaml", "t.json", cwd=folder)
    assert result.code == 0, result.out + result.err
    assert "Golden    passes\n" in result.out
    assert "Empty     fails" in result.out
    assert "Kill rate 100.0%" in result.out
    assert "survived  " not in result.out.split("killed by")[1]


def test_a_contract_that_does_not(folder: Path) -> None:
    (folder / "c.yaml").write_text(
        CONTRACT.replace(', args: {order_id: "1842"}, args_mode: exact', "")
    )
    result = bench("mutate", "c.yaml", "t.json", cwd=folder)
    assert result.code == 1
    assert "survived  change a value: get_order (call 1) order_id: '1842' →" in result.out
    assert 'trajectory.calls[]: {tool: get_order, args: {order_id: "1842"}}' in " ".join(
        result.out.split()
    )
    rate = json.loads(bench("mutate", "c.yaml", "t.json", "--json", cwd=folder).out)["kill_rate"]
    assert 0 < rate < 1
    assert bench("mutate", "c.yaml", "t.json", "--min-kill", rate, cwd=folder).code == 0
    assert bench("mutate", "c.yaml", "t.json", "--min-kill", rate + 0.01, cwd=folder).code == 1


def test_for_programs_it_says_all(folder: Path) -> None:
    data = json.loads(bench("mutate", "c.yaml", "t.json", "--json", cwd=folder).out)
    assert data["passed"] is True
    assert data["golden"] == {"passed": True, "outcome": "resolved", "reasons": []}
    assert data["empty"]["passed"] is False
    assert data["mutants"] == len(data["results"])
    assert data["killed"] == sum(r["fate"] == "killed" for r in data["results"])
    by_operator = {operator["name"]: operator for operator in data["operators"]}
    assert by_operator["drop a call"]["mutants"] == 2
    assert by_operator["drop a call"]["killed_by"]["trajectory: path"] == 2
    assert sum(operator["mutants"] for operator in data["operators"]) == data["mutants"]
    killed_by_path = [r for r in data["results"] if "trajectory: path" in r["killed_by"]]
    (path,) = [rule for rule in data["rules"] if rule["rule"] == "trajectory: path"]
    assert path["killed"] == len(killed_by_path)


def test_a_fixture_is_tried_on_its_golden_trace(folder: Path) -> None:
    result = bench("mutate", "refund-1.json", cwd=folder)
    assert result.code == 1
    said = " ".join(result.out.split())
    assert 'expect.calls[]: {"tool": "get_order", "args": {"order_id": "1842"}}' in said
    assert bench("mutate", "refund-1.json", "refund-1.golden.json", cwd=folder).out == result.out


def test_what_is_offered_can_be_pasted(folder: Path) -> None:
    """Every check that was missing, put where it is said to go: nothing survives any more."""
    fixture = json.loads(json.dumps(FIXTURE))
    for _ in range(20):
        (folder / "refund-1.json").write_text(json.dumps(fixture))
        data = json.loads(bench("mutate", "refund-1.json", "--json", cwd=folder).out)
        lost = [r for r in data["results"] if r["fate"] == "survived"]
        if not lost:
            break
        cure = lost[0]["cure"]
        node = fixture
        *outer, last = cure["place"].split(".")
        for key in outer:
            node = node.setdefault(key, {})
        if last.endswith("[]"):
            node.setdefault(last[:-2], []).append(cure["value"])
        else:
            node[last] = cure["value"]
    assert lost == []
    assert bench("mutate", "refund-1.json", cwd=folder).code == 0


def test_the_seed_is_what_decides(folder: Path) -> None:
    first, again, other = (
        bench("mutate", "c.yaml", "t.json", "--json", "--seed", seed, cwd=folder).out
        for seed in (3, 3, 4)
    )
    assert first == again
    assert first != other


def test_all_that_is_allowed_is_listed_when_asked(folder: Path) -> None:
    (folder / "c.yaml").write_text(
        CONTRACT.replace('"1842"}, args_mode', "{any: true}}, args_mode")
    )
    brief = bench("mutate", "c.yaml", "t.json", cwd=folder)
    assert "Allowed by trajectory.calls[0].args.order_id" in brief.out
    full = bench("mutate", "c.yaml", "t.json", "-v", cwd=folder).out
    assert "allowed   change a value: get_order (call 1) order_id: '1842' →" in full
    assert (
        full.count("allowed   ")
        == json.loads(bench("mutate", "c.yaml", "t.json", "--json", cwd=folder).out)["allowed"]
    )


def test_a_trace_that_does_not_pass_is_no_golden_one(folder: Path) -> None:
    short = {**TRACE, "tool_calls": TRACE["tool_calls"][:1]}
    (folder / "t.json").write_text(json.dumps(short))
    result = bench("mutate", "c.yaml", "t.json", cwd=folder)
    assert result.code == 1
    assert "Golden    fails: trajectory: path:" in result.out
    assert "No mutant was made" in result.out
    assert bench("mutate", "c.yaml", "t.json", "--min-kill", 0, cwd=folder).code == 1


def test_a_contract_that_an_empty_trace_passes_is_not_good(folder: Path) -> None:
    (folder / "c.yaml").write_text(
        'workflow: w\ncontract_version: "1"\ntools: {forbidden: [charge_card]}\n'
    )
    result = bench("mutate", "c.yaml", "t.json", "--min-kill", 0, cwd=folder)
    assert result.code == 1
    assert "Empty     passes" in result.out


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["missing.yaml", "t.json"], "missing.yaml"),
        (["c.yaml", "missing.json"], "cannot be opened"),
        (["c.yaml"], "name the file with a trace that passes"),
        (["c.yaml", "t.json", "--trace-id", "other"], "holds no trace 'other'"),
        (["c.yaml", "t.json", "--min-kill", "2"], "--min-kill"),
        (["c.yaml", "t.json", "--seed", "x"], "--seed"),
        ([], "CONTRACT_OR_FIXTURE"),
    ],
)
def test_what_cannot_be_evaluated_exits_with_2(folder: Path, args: list[str], said: str) -> None:
    result = bench("mutate", *args, cwd=folder)
    assert result.code == 2
    assert said in result.err


def test_a_limit_on_what_is_not_recorded_cannot_be_evaluated(folder: Path) -> None:
    (folder / "c.yaml").write_text(CONTRACT + "budget: {max_tokens: 5}\n")
    assert bench("mutate", "c.yaml", "t.json", cwd=folder).code == 2


def test_a_fixture_without_its_golden_trace_says_which_file_is_missing(folder: Path) -> None:
    (folder / "refund-1.golden.json").unlink()
    result = bench("mutate", "refund-1.json", cwd=folder)
    assert result.code == 2
    assert "refund-1.golden.json" in result.err
    assert "--bless" in result.err
