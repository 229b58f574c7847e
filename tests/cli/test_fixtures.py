"""Fixtures of golden traces are contracts everywhere: judged, ranked, verified and linted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.test_fixture_files import DATA, PUBLISHED
from tests.bench import Result, bench, run_rows

REFUND = DATA["id"]
RECEIPT = {
    "id": "receipt-charges-nothing",
    "input": {"user": "Send me the receipt of order 1842."},
    "expect": {"tool_names": ["get_order", "send_receipt"], "forbidden_tools": ["charge_card"]},
    "workflow": "receipts",
}
GET = {"name": "get_order", "arguments": {"order_id": "1842"}}
PAY = {"name": "refund_payment", "arguments": {"order_id": "1842", "method": "card"}}
SEND = {"name": "send_receipt", "arguments": {}}
CHARGE = {"name": "charge_card", "arguments": {}}
DONE = {"status": "ok", "refund_id": "R1"}
BEFORE_PAYING = {"text": "To which card?", "before_tool": 1}


def recorded(model: str, *tools: Any, **fields: Any) -> dict[str, Any]:
    return {
        "tools": list(tools),
        "questions": [],
        "final": None,
        "model": model,
        "started_at": "2026-03-01T12:00:00Z",
        **fields,
    }


def refund(model: str, *tools: Any, **fields: Any) -> dict[str, Any]:
    """A recording of the refund's fixture, which it names."""
    tools = tools or (GET, PAY)
    known = {"fixture": REFUND, "questions": [BEFORE_PAYING], "final": DONE}
    return recorded(model, *tools, **{**known, **fields})


# Name → the recording and what its fixture says of it: outcome, and a part of the reason.
TRACES: dict[str, tuple[dict[str, Any], str, str]] = {
    "good": (refund("sonnet"), "resolved", ""),
    "by_prompt": (
        refund("sonnet", fixture=None, input={"user": DATA["input"]["user"]}),
        "resolved",
        "",
    ),
    "order_unknown": (
        refund("sonnet", questions=None, asked_clarification=True),
        "resolved",
        "",
    ),
    "no_lookup": (refund("haiku", PAY), "unresolved", "step 1 is refund_payment"),
    "merged": (refund("haiku", GET, GET, PAY), "unresolved", "step 2 is get_order"),
    "charged": (refund("haiku", GET, CHARGE, PAY), "unresolved", "charge_card"),
    "no_key": (
        refund("haiku", {"name": "get_order", "arguments": {}}, PAY),
        "unresolved",
        "args.order_id is missing",
    ),
    "no_question": (refund("haiku", questions=[]), "unresolved", "no question was asked"),
    "late_question": (
        refund("haiku", questions=[{"text": "Sure?", "before_tool": 2}]),
        "unresolved",
        "the question came later",
    ),
    "wrong_type": (
        refund("haiku", final={"status": "ok", "refund_id": 5}),
        "unresolved",
        "5 is not of type",
    ),
    "wrong_word": (
        refund("haiku", final={"status": "fine", "refund_id": None}),
        "unresolved",
        "'fine' is not one of",
    ),
    "no_payload": (refund("haiku", final=None), "unresolved", "final"),
    "nothing_done": (refund("haiku", questions=[], tools=[]), "unresolved", "ended after 0 calls"),
    "raised": (refund("haiku", error="TimeoutError"), "unresolved", "the run ended by error"),
    "receipt": (
        recorded("sonnet", GET, SEND, input=RECEIPT["input"]),
        "resolved",
        "",
    ),
    "helpful": (
        recorded("haiku", GET, SEND, CHARGE, fixture=RECEIPT["id"]),
        "unresolved",
        "charge_card",
    ),
}


def write(path: Path, content: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "benchmark.yaml", "sources: [{kind: files, path: traces}]\n")
    write(tmp_path / "contracts" / "golden" / "refund.json", PUBLISHED)
    write(tmp_path / "contracts" / "golden" / f"{REFUND}.golden.json", TRACES["good"][0])
    write(tmp_path / "contracts" / "golden" / "receipt.json", RECEIPT)
    for name, (recording, _, _) in TRACES.items():
        write(tmp_path / "traces" / f"{name}.json", {**recording, "id": name})
    return tmp_path


def words(result: Result) -> str:
    return " ".join((result.out + result.err).split())


def test_a_benchmark_of_recordings(project: Path) -> None:
    result = bench("run", cwd=project)
    assert result.code == 0, result.out + result.err
    rows = {str(row["trace_id"]): row for row in run_rows(project / "data" / "store")}
    assert {name: row["outcome"] for name, row in rows.items()} == {
        name: outcome for name, (_, outcome, _) in TRACES.items()
    }
    for name, (_, _, reason) in TRACES.items():
        assert reason in str(rows[name]["reason"] or ""), name
        of_receipt = name in ("receipt", "helpful")
        assert rows[name]["contract"] == (RECEIPT["id"] if of_receipt else REFUND)
        assert rows[name]["workflow"] == ("receipts" if of_receipt else "golden")
    # Both models are on the leaderboard: all of four, and none of twelve.
    assert {row["model"] for row in rows.values()} == {"sonnet", "haiku"}
    for word in ("sonnet", "haiku", "golden", "receipts"):
        assert word in result.out
    assert bench("run", cwd=project).code == 0


@pytest.mark.parametrize("name", TRACES)
def test_one_recording_against_one_fixture(project: Path, name: str) -> None:
    _, outcome, reason = TRACES[name]
    fixture_id = RECEIPT["id"] if name in ("receipt", "helpful") else REFUND
    result = bench(
        "verify", "--snapshot", f"traces/{name}.json", "--contract", fixture_id, cwd=project
    )
    assert result.code == (0 if outcome == "resolved" else 1), result.out
    assert reason in words(result)
    by_file = bench(
        "verify",
        "--snapshot",
        f"traces/{name}.json",
        "--contract",
        f"contracts/golden/{'receipt' if fixture_id == RECEIPT['id'] else 'refund'}.json",
        cwd=project,
    )
    assert by_file.code == result.code


def test_what_is_not_known_of_the_order_is_said(project: Path) -> None:
    result = bench(
        "verify", "--snapshot", "traces/order_unknown.json", "--contract", REFUND, "-v", cwd=project
    )
    assert "a question was asked; order unknown" in words(result)


def test_why_an_agent_gave_nothing_is_said(project: Path) -> None:
    result = bench("verify", "--snapshot", "traces/raised.json", "--contract", REFUND, cwd=project)
    assert "TimeoutError" in words(result)


def test_a_path_that_is_left_is_shown_beside_the_legal_one(project: Path) -> None:
    result = bench("verify", "--snapshot", "traces/charged.json", "--contract", REFUND, cwd=project)
    assert "get_order ✓, charge_card +, refund_payment ✓" in words(result)
    assert "step 2 is charge_card, expected refund_payment" in words(result)


def test_a_golden_trace_is_no_contract_and_passes_its_fixture(project: Path) -> None:
    golden = f"contracts/golden/{REFUND}.golden.json"
    assert bench("verify", "--snapshot", golden, "--contract", REFUND, cwd=project).code == 0
    assert "2 contracts, 0 errors, 0 warnings." in bench("lint", cwd=project).out


def test_lint_names_file_line_key_and_cure(project: Path) -> None:
    bad = PUBLISHED.replace("tool_names", "tool_name").replace('"method"]', '"method", 5]')
    write(project / "contracts" / "golden" / "bad.json", bad)
    real = {**RECEIPT, "id": "real", "input": {"user": "Write to jane.doe@mail.de."}}
    write(project / "contracts" / "golden" / "real.json", json.dumps(real, indent=1))
    result = bench("lint", cwd=project)
    assert result.code != 0
    said = words(result)
    assert (
        "contracts/golden/bad.json:7: expect.tool_name: is not a known key; "
        "did you mean 'tool_names'?"
    ) in said
    assert (
        "contracts/golden/bad.json:10: expect.required_arg_keys.refund_payment[2]: "
        "expected a text, found the number 5"
    ) in said
    assert (
        "contracts/golden/real.json:4: input.user: holds what looks like an e-mail address; "
        "fixtures are synthetic"
    ) in said


def test_a_question_whose_place_is_lost_is_an_error(project: Path) -> None:
    lost = refund("sonnet", questions=[{"text": "Sure?", "before_tool": 9}])
    write(project / "traces" / "lost.json", lost)
    result = bench("verify", "--snapshot", "traces/lost.json", "--contract", REFUND, cwd=project)
    assert result.code not in (0, 1)
    assert "questions[0].before_tool is 9" in words(result)
