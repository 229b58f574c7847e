"""`bench debug`: every step, what works, what does not, and what to do about it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bench import Result, bench
from tests.cli.langfuse import ask, environment
from tests.langfuse_server import (
    ODDITIES,
    Faults,
    Mode,
    Server,
    generate,
    langfuse_server,
    make_odd,
)

TRACES = generate(10, seed=7)
TRACE, ROWS = TRACES[2]


def debug(server: Server, folder: Path, *args: object, **env: str) -> Result:
    return ask(server, folder, "debug", *args, **env)


def states(result: Result) -> dict[str, str]:
    """Step → its state, in the order of the steps."""
    return {step["step"]: step["state"] for step in json.loads(result.out)["steps"]}


def step(result: Result, name: str) -> dict[str, Any]:
    (found,) = [step for step in json.loads(result.out)["steps"] if step["step"] == name]
    assert isinstance(found, dict)
    return found


V1 = {"Traces (API v1)", "Observations (API v1)"}
V2 = {"Observations (API v2)"}


@pytest.mark.parametrize(("mode", "absent"), [("v1", V2), ("v2", V1), ("dual", set())])
def test_what_a_kind_of_server_has_and_has_not(
    mode: Mode, absent: set[str], tmp_path: Path
) -> None:
    with langfuse_server(TRACES, mode=mode) as server:
        result = debug(server, tmp_path, "--json")
    assert result.code == 0
    assert json.loads(result.out)["works"] is True
    found = states(result)
    assert {name for name, state in found.items() if state == "absent"} == absent
    assert {state for name, state in found.items() if name not in absent} == {"ok"}
    used = "v1" if mode == "v1" else "v2"
    assert step(result, "Reading")["detail"] == f"traces are read with API {used}"


@pytest.mark.parametrize("mode", ["v1", "v2", "dual"])
def test_a_trace_is_looked_for_by_each_api(mode: Mode, tmp_path: Path) -> None:
    with langfuse_server(TRACES, mode=mode) as server:
        result = debug(server, tmp_path, "--trace-id", TRACE["id"], "--run-fetch", "--json")
    assert result.code == 0, result.out
    found = states(result)
    assert ("The trace (API v1)" in found) == (mode != "v2")
    assert ("Its observations (API v2)" in found) == (mode != "v1")
    for name in found:
        if name.startswith("Its observations"):
            told = f"{len(ROWS)}, its root has ended, in environment 'default'"
            assert step(result, name)["detail"] == told
    assert f"trace {TRACE['id']}, " in step(result, "Fetch")["detail"]
    tools = sum(row["type"] == "TOOL" for row in ROWS)
    generations = sum(row["type"] == "GENERATION" for row in ROWS)
    read = step(result, "Read")["detail"]
    assert f"model {ROWS[1]['model']}, workflow {TRACE['name']}, " in read
    assert re.search(rf"{tools} tool calls?, {generations} generations, ", read)


def test_people_see_a_line_a_step_and_a_cure_once(tmp_path: Path) -> None:
    with langfuse_server(TRACES, mode="v2") as server:
        result = debug(server, tmp_path)
        lines = result.out.splitlines()
        assert [line.split(maxsplit=1)[0] for line in lines] == [
            *["ok"] * 4, "absent", "→", "absent", "ok", "ok",
        ]  # fmt: skip
        verbose = debug(server, tmp_path, "--verbose")
        assert len(verbose.out.splitlines()) > len(lines)
        assert re.search(r"1 request, 0 repeated, [0-9,]+ bytes, [0-9.]+ s", verbose.out)


def test_where_credentials_are_from_is_said(tmp_path: Path) -> None:
    with langfuse_server(TRACES, mode="v2") as server:
        keys = environment(server.url)
        (tmp_path / ".env.local").write_text(
            f"LANGFUSE_SECRET_KEY={keys.pop('LANGFUSE_SECRET_KEY')}\n"
        )
        flags = ("--langfuse-public-key", keys.pop("LANGFUSE_PUBLIC_KEY"))
        result = bench("debug", *flags, cwd=tmp_path, env=keys)
    assert result.code == 0
    assert "LANGFUSE_PUBLIC_KEY from: flag" in result.out
    assert "LANGFUSE_SECRET_KEY from: .env.local" in result.out
    assert "LANGFUSE_BASE_URL from: environment" in result.out


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_an_environment_without_traces_is_noted_with_those_that_have(
    mode: Mode, tmp_path: Path
) -> None:
    traces = generate(5, environments=("prod", "staging"))
    with langfuse_server(traces, mode=mode) as server:
        result = debug(server, tmp_path, "--json")
        assert result.code == 10
        told = step(result, "Environment")
        assert told["state"] == "note"
        assert told["detail"] == "'default' has no traces; the newest are in 'prod', 'staging'"
        assert "LANGFUSE_ENVIRONMENT" in told["cure"]
        assert debug(server, tmp_path, LANGFUSE_ENVIRONMENT="prod").code == 0
        assert debug(server, tmp_path, LANGFUSE_ENVIRONMENT="*").code == 0
        trace_id = traces[0][0]["id"]
        result = debug(server, tmp_path, "--trace-id", trace_id, "--run-fetch", "--json")
        assert result.code == 10
        assert states(result)["Fetch"] == "ok"
        notes = [line for line in json.loads(result.out)["steps"] if line["state"] == "note"]
        assert any("it is given by --trace-id only" in line["cure"] for line in notes)


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_a_trace_that_is_not_there(mode: Mode, tmp_path: Path) -> None:
    with langfuse_server(TRACES, mode=mode) as server:
        args = ("--trace-id", "f00", "--run-fetch", "--wait", 0)
        result = debug(server, tmp_path, *args)
        assert result.code == 1
        assert "failed Fetch: the project 'Tests' has no trace 'f00'" in result.out
        assert "check the id, and that the keys are of the trace's project" in result.out
        result = debug(server, tmp_path, *args, "--json")
        assert json.loads(result.out)["works"] is False


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_a_trace_that_is_still_arriving(mode: Mode, tmp_path: Path) -> None:
    begun = datetime.now(UTC) - timedelta(minutes=1)
    ((trace, rows),) = generate(1, start=begun, span=timedelta(seconds=1))
    rows[0]["endTime"] = None
    with langfuse_server([(trace, rows)], mode=mode) as server:
        args = ("--trace-id", trace["id"], "--run-fetch", "--wait", 0)
        result = debug(server, tmp_path, *args)
    assert result.code == 10
    assert "its root has no end" in result.out
    assert "it is still running or arriving" in result.out
    assert "--wait" in result.out


def test_without_an_id_the_newest_is_fetched(tmp_path: Path) -> None:
    newest = max((trace for trace, _ in TRACES), key=lambda trace: trace["timestamp"])
    with langfuse_server(TRACES, mode="v2") as server:
        result = debug(server, tmp_path, "--run-fetch", "--json")
        assert f"trace {newest['id']}" in step(result, "Fetch")["detail"]
    with langfuse_server([], mode="v2") as server:
        result = debug(server, tmp_path, "--run-fetch", "--json", "--wait", 0)
        assert (result.code, states(result)["Fetch"]) == (1, "failed")
        assert step(result, "Environment")["detail"] == "the project has no traces yet"


@pytest.mark.parametrize("mode", ["v1", "v2"])
@pytest.mark.parametrize("kind", [kind for kind in ODDITIES if kind != "big"])
def test_odd_rows_are_shown_not_stumbled_over(mode: Mode, kind: str, tmp_path: Path) -> None:
    odd = make_odd(TRACES[2], kind)
    with langfuse_server([*TRACES[:2], odd, *TRACES[3:]], mode=mode) as server:
        args = ("--trace-id", odd[0]["id"], "--run-fetch", "--wait", 0, "--json")
        result = debug(server, tmp_path, *args)
    if (kind, mode) == ("no_rows", "v2"):
        # There are no traces in this API but those that rows tell of.
        assert (result.code, states(result)["Fetch"]) == (1, "failed")
        return
    assert result.code in (0, 10), result.out
    assert states(result)["Fetch"] == "ok"


def test_steps_after_one_that_fails_are_taken_unless_they_cannot_work(tmp_path: Path) -> None:
    faults = Faults(always=500, paths="traces")
    with langfuse_server(TRACES, mode="dual", faults=faults) as server:
        result = debug(server, tmp_path, "--json")
        found = states(result)
        assert found["Traces (API v1)"] == "failed"
        assert found["Observations (API v2)"] == found["Observations (API v1)"] == "ok"
        # It is read with v2; that something else is broken is still worth an exit code.
        assert result.code == 1
    result = bench("debug", "--json", cwd=tmp_path, env=environment("http://127.0.0.1:1"))
    assert list(states(result)) == ["Credentials", "Server"]
