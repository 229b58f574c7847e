"""`bench verify` and `bench generate-contract` of a trace that a Langfuse server has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.cli.langfuse import ask
from tests.langfuse_server import Server, generate, langfuse_server

TRACES = generate(40, seed=3, environments=("default", "prod"))
HOME = sorted(
    (pair for pair in TRACES if pair[0]["environment"] == "default"),
    key=lambda pair: pair[0]["timestamp"],
    reverse=True,
)
TRACE, ROWS = HOME[3]
TOOLS = {row["name"] for row in ROWS if row["type"] == "TOOL"}


@pytest.fixture(params=["v1", "v2"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with langfuse_server(TRACES, mode=request.param) as running:
        yield running


@pytest.fixture
def here(tmp_path: Path) -> Path:
    names = json.dumps(sorted(TOOLS))
    health = "trace_health: {recovered_errors: allow}\n"
    head = 'workflow: w\ncontract_version: "1"\n'
    (tmp_path / "good.yaml").write_text(f"{head}tools: {{required: {names}}}\n{health}")
    (tmp_path / "bad.yaml").write_text(f"{head}tools: {{forbidden: {names}}}\n{health}")
    return tmp_path


def test_a_trace_by_its_id_is_judged(server: Server, here: Path) -> None:
    failed = any(row["level"] == "ERROR" for row in ROWS if row["type"] == "TOOL")
    assert not failed, "the trace of this test has no failed calls"
    good = ask(server, here, "verify", "--contract", "good.yaml", "--trace-id", TRACE["id"])
    bad = ask(server, here, "verify", "--contract", "bad.yaml", "--trace-id", TRACE["id"])
    assert (good.code, bad.code) == (0, 1)
    assert f"Trace {TRACE['id']}: {server.url}/project/" in good.err


def test_the_verdict_is_that_of_the_trace_saved(server: Server, here: Path) -> None:
    live = ("verify", "--contract", "good.yaml", "--trace-id", TRACE["id"], "--json")
    report = json.loads(ask(server, here, *live).out)
    assert (
        ask(server, here, "fetch", "--trace-id", TRACE["id"], "--raw", "--out", "t.json").code == 0
    )
    saved = ("verify", "--contract", "good.yaml", "--snapshot", "t.json", "--json")
    other = json.loads(ask(server, here, *saved).out)
    digest = hashlib.sha256((here / "t.json").read_bytes()).hexdigest()
    assert digest in json.dumps(report)
    text = json.dumps(report).replace(f"{server.url}/project/project-of-the-tests/traces/", "")
    assert text.replace(TRACE["id"] + '"', '"') == json.dumps(other).replace("t.json", "").replace(
        TRACE["id"] + '"', '"'
    )


def test_the_newest_of_those_asked_for_is_judged(server: Server, here: Path) -> None:
    newest = next(t for t, _ in HOME if t["metadata"]["projectid"] == "P2")
    condition = ("--filter", "projectid=P2")
    result = ask(server, here, "verify", "--contract", "good.yaml", *condition, "--json")
    assert json.loads(result.out)["trace_id"] == newest["id"]
    assert f"Trace {newest['id']}, the newest of those asked for (2026-11-0" in result.err
    assert "environment 'default'" in result.err


def test_by_thread_and_run(server: Server, here: Path) -> None:
    args = ("--thread-id", TRACE["sessionId"], "--run-id", TRACE["metadata"]["run_id"], "--json")
    result = ask(server, here, "verify", "--contract", "good.yaml", *args)
    assert json.loads(result.out)["trace_id"] == TRACE["id"]


def test_by_variable_unless_more_is_asked_for(server: Server, here: Path) -> None:
    verify = ("verify", "--contract", "good.yaml", "--json")
    result = ask(server, here, *verify, TRACE_ID=TRACE["id"])
    assert json.loads(result.out)["trace_id"] == TRACE["id"]
    newest = HOME[0][0]
    condition = ("--run-id", newest["metadata"]["run_id"])
    result = ask(server, here, *verify, *condition, TRACE_ID=TRACE["id"])
    assert json.loads(result.out)["trace_id"] == newest["id"]


@pytest.mark.parametrize("args", [["--trace-id", "f00", "--wait", "0"], ["--user", "nobody"]])
def test_nothing_found_is_no_verdict(server: Server, here: Path, args: list[str]) -> None:
    result = ask(server, here, "verify", "--contract", "good.yaml", *args, "--out", "r.json")
    assert result.code == 2
    assert "no trace" in result.err
    assert json.loads((here / "r.json").read_text())["passed"] is None


def test_a_trace_that_is_still_arriving_is_not_judged(here: Path) -> None:
    begun = datetime.now(UTC) - timedelta(minutes=1)
    ((trace, rows),) = generate(1, start=begun, span=timedelta(seconds=1))
    rows[0]["endTime"] = None
    wait = ("--trace-id", trace["id"], "--wait", 0)
    with langfuse_server([(trace, rows)], mode="v2") as server:
        result = ask(server, here, "verify", "--contract", "good.yaml", *wait)
        assert result.code == 2
        assert "still running or arriving" in " ".join(result.out.split())
        result = ask(server, here, "generate-contract", *wait, "--workflow", "w")
        assert result.code == 1
        assert "no contract can be made of this trace" in result.err


# Contracts.


def test_a_contract_of_a_trace_by_its_id(server: Server, here: Path) -> None:
    args = ("--trace-id", TRACE["id"], "--workflow", "w", "--out", "starter.yaml")
    result = ask(server, here, "generate-contract", *args)
    assert result.code == 0
    text = (here / "starter.yaml").read_text()
    assert set(yaml.safe_load(text)["tools"]["required"]) == TOOLS
    assert f"# Trace:   {TRACE['id']}\n# File:    {server.url}/project/" in text
    verify = ("verify", "--contract", "starter.yaml", "--trace-id", TRACE["id"])
    assert ask(server, here, *verify).code == 0


def test_a_contract_of_the_newest_match(server: Server, here: Path) -> None:
    newest = next(t for t, _ in HOME if t["metadata"]["projectid"] == "P4")
    args = ("--filter", "projectid=P4", "--workflow", "w", "--name", "What people see", "--json")
    result = ask(server, here, "generate-contract", *args)
    report = json.loads(result.out)
    assert report["trace_id"] == newest["id"]
    assert report["contract"]["name"] == "What people see"
    named = ("--trace-name", "planner", "--workflow", "w", "--json")
    newest = next(t for t, _ in HOME if t["name"] == "planner")
    result = ask(server, here, "generate-contract", *named)
    assert json.loads(result.out)["trace_id"] == newest["id"]
