"""`bench fetch`: which traces it gives, what it writes, what it says, how it ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.bench import Result, bench
from tests.cli.langfuse import ask, environment
from tests.langfuse_server import Faults, Mode, Pair, Server, generate, langfuse_server

TRACES = generate(40, seed=3, environments=("default", "prod"))
BY_ID = {trace["id"]: (trace, rows) for trace, rows in TRACES}
HOME = [pair for pair in TRACES if pair[0]["environment"] == "default"]


@pytest.fixture(params=["v1", "v2", "dual"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with langfuse_server(TRACES, mode=request.param) as running:
        yield running


@pytest.fixture
def v2() -> Iterator[Server]:
    with langfuse_server(TRACES, mode="v2") as running:
        yield running


def written(folder: Path, name: str = "out.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


def ids(folder: Path) -> list[str]:
    return [snapshot["trace_id"] for snapshot in written(folder)]


def newest_first(pairs: list[Pair]) -> list[str]:
    return [t["id"] for t, _ in sorted(pairs, key=lambda pair: pair[0]["timestamp"], reverse=True)]


def fetch(server: Server, folder: Path, *args: object, **env: str) -> Result:
    return ask(server, folder, "fetch", *args, "--out", "out.jsonl", **env)


# By id.


def test_one_trace(server: Server, tmp_path: Path) -> None:
    trace, rows = TRACES[0]
    result = fetch(server, tmp_path, "--trace-id", trace["id"])
    assert (result.code, result.out) == (0, "")
    (snapshot,) = written(tmp_path)
    assert snapshot["trace_id"] == trace["id"]
    assert snapshot["prompt"] == rows[0]["input"]["messages"][0]["content"]
    tools = [row["name"] for row in rows if row["type"] == "TOOL"]
    assert [call["name"] for call in snapshot["tool_calls"]] == tools
    assert f"Langfuse {'3' if server.mode == 'v1' else '4'}." in result.err
    assert "project 'Tests'" in result.err
    assert "any environment, since traces are asked for by id" in result.err
    assert "1 trace to out.jsonl; " in result.err


def test_what_the_server_gave_is_a_file_of_its_own(server: Server, tmp_path: Path) -> None:
    trace, rows = TRACES[1]
    assert fetch(server, tmp_path, "--trace-id", trace["id"], "--raw").code == 0
    (document,) = written(tmp_path)
    assert (document["trace"] is None) == (server.mode != "v1")
    found = {row["id"]: row["startTime"] for row in document["observations"]}
    assert found == {row["id"]: row["startTime"] for row in rows}
    (tmp_path / "out.jsonl").rename(tmp_path / "raw.json")
    result = ask(server, tmp_path, "fetch", "--trace-id", trace["id"])
    origin = json.loads(result.out)["origin"]
    assert origin["sha256"] == hashlib.sha256((tmp_path / "raw.json").read_bytes()).hexdigest()
    assert origin["file"].startswith(server.url)


@pytest.mark.parametrize("raw", [True, False])
def test_files_are_read_by_other_commands(server: Server, tmp_path: Path, raw: bool) -> None:
    some = newest_first(TRACES)[:3]
    fetch(server, tmp_path, "--trace-id", ",".join(some), *(["--raw"] if raw else []))
    result = ask(server, tmp_path, "normalize", "out.jsonl", "--out", "n.jsonl")
    # Of snapshots, the format that first read them is told.
    assert "3 snapshots (3 langfuse), 0 of them error rows; 0 files skipped." in result.err
    assert [line["trace_id"] for line in written(tmp_path, "n.jsonl")] == some


def test_ids_come_in_the_order_asked_for_once(server: Server, tmp_path: Path) -> None:
    a, b, c = (trace["id"] for trace, _ in TRACES[:3])
    result = fetch(server, tmp_path, "--trace-id", f"{c},{a}", "--trace-id", b, "--trace-id", c)
    assert result.code == 0
    assert ids(tmp_path) == [c, a, b]


def test_more_ids_than_the_limit_that_holds_elsewhere(v2: Server, tmp_path: Path) -> None:
    with langfuse_server(generate(70), mode="v2") as server:
        wanted = list(server.contents.traces)
        assert fetch(server, tmp_path, "--trace-id", ",".join(wanted)).code == 0
        assert ids(tmp_path) == wanted
        assert fetch(server, tmp_path, "--trace-id", ",".join(wanted), "--limit", 2).code == 0
        assert ids(tmp_path) == wanted[:2]


def test_an_id_that_is_not_there(server: Server, tmp_path: Path) -> None:
    known = TRACES[0][0]["id"]
    result = fetch(server, tmp_path, "--trace-id", f"{known},nowhere/../x")
    assert result.code == 10
    assert ids(tmp_path) == [known]
    assert "the project 'Tests' has no trace 'nowhere/../x'" in result.err
    result = ask(server, tmp_path, "fetch", "--trace-id", "f00", "--out", "no.json", "--wait", 0)
    assert result.code == 11
    assert "check the id" in result.err
    assert not (tmp_path / "no.json").exists()


def test_the_variable_counts_where_nothing_else_is_asked_for(v2: Server, tmp_path: Path) -> None:
    first = TRACES[0][0]["id"]
    assert fetch(v2, tmp_path, TRACE_ID=first).code == 0
    assert ids(tmp_path) == [first]
    assert fetch(v2, tmp_path, "--filter", "run_id=run-2", TRACE_ID=first).code in (0, 11)
    other = TRACES[1][0]["id"]
    assert fetch(v2, tmp_path, "--trace-id", other, TRACE_ID=first).code == 0
    assert ids(tmp_path) == [other]


# By conditions.


def wants(**metadata: str) -> Any:
    return lambda pair: all(pair[0]["metadata"][key] == value for key, value in metadata.items())


CONDITIONS: dict[str, tuple[list[object], Any]] = {
    "filter": (["--filter", "projectid=P1"], wants(projectid="P1")),
    "other keys": (
        ["--filter", "projectid=P1", "--filter", "run_id=run-8"],
        wants(projectid="P1", run_id="run-8"),
    ),
    "the same key": (
        ["--filter", "projectid=P1", "--filter", "projectid=P2"],
        lambda pair: pair[0]["metadata"]["projectid"] in ("P1", "P2"),
    ),
    "thread": (["--thread-id", "session-2"], lambda pair: pair[0]["sessionId"] == "session-2"),
    "run": (["--run-id", "run-12"], wants(run_id="run-12")),
    "thread and run": (
        ["--thread-id", "session-2", "--run-id", "run-12"],
        wants(thread_id="session-2", run_id="run-12"),
    ),
    "user": (["--user", "user-3"], lambda pair: pair[0]["userId"] == "user-3"),
    "name": (["--name", "planner"], lambda pair: pair[0]["name"] == "planner"),
    "tags": (
        ["--tag", "bench", "--tag", "nightly"],
        lambda pair: {"bench", "nightly"} <= set(pair[0]["tags"]),
    ),
    "model": (["--model", "gpt-5-mini"], lambda pair: pair[1][1]["model"] == "gpt-5-mini"),
    "from and to": (
        ["--from", "2026-11-02T06:00:00Z", "--to", "2026-11-02T20:00:00+02:00"],
        lambda pair: (
            "2026-11-02T06:00:00.000Z" <= pair[0]["timestamp"] < "2026-11-02T18:00:00.000Z"
        ),
    ),
    "a day": (["--from", "2026-11-02", "--to", "2026-11-03"], lambda pair: True),
    "prompt": (
        ["--user-prompt-contains", "The INVOICE of"],
        lambda pair: (
            "the invoice of" in pair[0]["input"]["messages"][0]["content"]
        ),
    ),
    "prompt and time": (
        ["--user-prompt-contains", "report", "--to", "2026-11-02T12:00:00Z"],
        lambda pair: (
            "report" in pair[0]["input"]["messages"][0]["content"]
            and pair[0]["timestamp"] < "2026-11-02T12:00:00.000Z"
        ),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONDITIONS)
def test_conditions_give_what_the_data_hold(server: Server, tmp_path: Path, name: str) -> None:
    args, holds = CONDITIONS[name]
    expected = newest_first([pair for pair in HOME if holds(pair)])
    everywhere = newest_first([pair for pair in TRACES if holds(pair)])
    result = fetch(server, tmp_path, *args)
    assert (result.code, ids(tmp_path) if expected else []) == (0 if expected else 11, expected)
    result = fetch(server, tmp_path, *args, "--langfuse-environment", "*")
    assert everywhere, "a condition that nothing fulfils shows nothing"
    assert ids(tmp_path) == everywhere
    assert "every environment" in result.err


def test_a_key_within_another_is_found_where_the_server_can(server: Server, tmp_path: Path) -> None:
    result = fetch(server, tmp_path, "--filter", "app.version=1.4")
    if server.mode == "v1":
        assert result.code == 11
        assert "API v1 finds keys at the top of metadata only, so 'app.version'" in result.err
    else:
        assert ids(tmp_path) == newest_first(HOME)


def test_conditions_beside_ids_must_hold_too(server: Server, tmp_path: Path) -> None:
    a, b = TRACES[0][0], TRACES[1][0]
    condition = f"run_id={b['metadata']['run_id']}"
    fetch(server, tmp_path, "--trace-id", f"{a['id']},{b['id']}", "--filter", condition)
    assert ids(tmp_path) == [b["id"]]


def test_a_skill_that_the_harness_profile_knows(tmp_path: Path) -> None:
    loaded = [
        {**row, "name": "load_skill", "input": {"skill_name": "api_binding"}}
        for row in TRACES[5][1]
        if row["type"] == "TOOL"
    ]
    trace, rows = TRACES[5]
    odd = (trace, [row for row in rows if row["type"] != "TOOL"] + loaded)
    with langfuse_server([odd, *TRACES[6:12]], mode="v1") as server:
        every = ("--langfuse-environment", "*")
        result = fetch(server, tmp_path, "--skill-name-contains", "API_bind", *every)
        assert result.code == 0, result.err
        assert ids(tmp_path) == [trace["id"]]


def test_the_environment_that_is_asked_is_said(server: Server, tmp_path: Path) -> None:
    result = fetch(server, tmp_path, "--tag", "bench")
    assert "environment 'default', since LANGFUSE_ENVIRONMENT is not set ('*' is" in result.err
    result = fetch(server, tmp_path, "--tag", "bench", LANGFUSE_ENVIRONMENT="prod")
    assert "environment 'prod' (from: environment)" in result.err
    prod = [pair for pair in TRACES if pair[0]["environment"] == "prod"]
    assert ids(tmp_path) == newest_first(prod)
    result = fetch(server, tmp_path, "--user", "user-3", "--langfuse-environment", "staging")
    assert result.code == 11
    assert "no trace is what was asked for in environment 'staging' (from: flag)" in result.err
    assert "--langfuse-environment '*'" in result.err


def test_the_newest_up_to_a_limit(server: Server, tmp_path: Path) -> None:
    result = fetch(server, tmp_path, "--tag", "bench", "--limit", 4)
    assert result.code == 0
    assert ids(tmp_path) == newest_first(HOME)[:4]
    assert "Newest first; there may be more." in result.err
    few = server.count()
    fetch(server, tmp_path, "--tag", "bench", "--limit", 1)
    assert server.count() - few <= few


def test_a_search_ends_at_its_cap_and_says_so(server: Server, tmp_path: Path) -> None:
    args = ["--skill-name-contains", "none such", "--scan-cap", 7]
    result = fetch(server, tmp_path, *args)
    assert result.code == 11
    assert "7 traces were looked at, the most allowed" in result.err
    assert "--scan-cap" in result.err
    first = next(t for t in newest_first(HOME))
    word = BY_ID[first][0]["input"]["messages"][0]["content"]
    result = fetch(server, tmp_path, "--user-prompt-contains", f"{word}", "--scan-cap", 7)
    assert ids(tmp_path)[0] == first


# What it writes.


def test_standard_output_gets_traces_and_nothing_else(server: Server, tmp_path: Path) -> None:
    result = ask(server, tmp_path, "fetch", "--thread-id", "session-2")
    found = [json.loads(line)["trace_id"] for line in result.out.splitlines()]
    assert found == newest_first([p for p in HOME if p[0]["sessionId"] == "session-2"])


def test_the_same_traces_are_the_same_bytes(server: Server, tmp_path: Path) -> None:
    fetch(server, tmp_path, "--tag", "bench")
    first = (tmp_path / "out.jsonl").read_bytes()
    fetch(server, tmp_path, "--tag", "bench")
    assert (tmp_path / "out.jsonl").read_bytes() == first


def test_nothing_found_leaves_the_file_of_before(server: Server, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("before")
    assert fetch(server, tmp_path, "--user", "nobody").code == 11
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]
    assert (tmp_path / "out.jsonl").read_text() == "before"


def test_a_summary_for_programs(server: Server, tmp_path: Path) -> None:
    result = fetch(server, tmp_path, "--tag", "bench", "--limit", 2, "--json")
    summary = json.loads(result.out)
    assert summary["traces"] == len(written(tmp_path)) == 2
    assert summary["environments"] == ["default"]
    assert summary["requests"] == server.count()
    assert summary["server"] == server.url
    assert summary["finished"] is True


def test_what_was_fetched_before_a_failure_is_kept_under_another_name(tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("before")
    with langfuse_server(generate(300), mode="v1") as server:
        full = fetch(server, tmp_path, "--tag", "bench", "--limit", 300, "--json")
        needed = json.loads(full.out)["requests"]
        (tmp_path / "out.jsonl").write_text("before")
        budget = ("--max-requests", needed - 1)
        result = fetch(server, tmp_path, "--tag", "bench", "--limit", 300, *budget)
    assert result.code == 1
    assert (tmp_path / "out.jsonl").read_text() == "before"
    kept = written(tmp_path, "out.jsonl.part")
    assert 0 < len(kept) < 300
    assert f"{len(kept)} traces to out.jsonl.part" in result.err
    assert f"{needed - 1} requests were sent, as many as are allowed" in result.err


def test_a_folder_that_cannot_be_written(v2: Server, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    trace_id = TRACES[0][0]["id"]
    result = ask(v2, tmp_path, "fetch", "--trace-id", trace_id, "--out", "file/out.json")
    assert result.code == 1
    assert "file" in result.err


# What is not whole.


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_a_trace_that_is_still_arriving_is_not_given_as_whole(mode: Mode, tmp_path: Path) -> None:
    begun = datetime.now(UTC) - timedelta(minutes=1)
    ((trace, rows),) = generate(1, start=begun, span=timedelta(seconds=1))
    rows[0]["endTime"] = None
    with langfuse_server([(trace, rows)], mode=mode) as server:
        result = fetch(server, tmp_path, "--trace-id", trace["id"], "--wait", 0)
        assert result.code == 10
        assert "still running or arriving" in result.err
        assert "still running or arriving" in written(tmp_path)[0]["problem"]


@pytest.mark.parametrize("mode", ["v1", "v2"])
def test_faults_that_pass_change_nothing(mode: Mode, tmp_path: Path) -> None:
    with langfuse_server(TRACES, mode=mode) as server:
        fetch(server, tmp_path, "--tag", "bench")
        clean = (tmp_path / "out.jsonl").read_text().replace(server.url, "URL")
    faults = Faults(seed=1, server_errors=0.1, resets=0.1, truncated=0.1, html=0.1, in_a_row=1)
    with langfuse_server(TRACES, mode=mode, faults=faults) as server:
        result = fetch(server, tmp_path, "--tag", "bench")
        assert result.code == 0
        assert any(request.fault for request in server.requests)
        assert "repeated" in result.err
        assert (tmp_path / "out.jsonl").read_text().replace(server.url, "URL") == clean


# Wrong usage.


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "say which traces"),
        (["--filter", "projectid"], "is not key=value, such as projectid=P1"),
        (["--filter", "=x"], "is not key=value"),
        (["--filter", "x="], "is not key=value"),
        (["--from", "yesterday"], "is not a time such as 2026-01-31T09:30:00Z"),
        (["--from", "0001-01-01T00:00:00+05:00"], "is not a time"),
        (["--to", "9999-12-31"], "is not a time at which an agent ran"),
        (["--from", "2026-11-03", "--to", "2026-11-03"], "--from is not before --to"),
        (["--trace-id", ""], "give a text"),
        (["--thread-id", " "], "give a text"),
        (["--run-id", ""], "give a text"),
        (["--tag", ""], "give a text"),
        (["--limit", "0"], "limit"),
        (["--deadline", "0"], "deadline"),
        (["--trace-id", "x", "--json"], "name the traces' file with --out"),
        (["--api", "v3"], "v3"),
    ],
)
def test_wrong_usage_asks_no_server(
    v2: Server, tmp_path: Path, args: list[object], said: str
) -> None:
    result = ask(v2, tmp_path, "fetch", *args)
    assert (result.code, result.out) == (2, "")
    assert said in " ".join(result.err.split())
    assert v2.requests == []


# Credentials.


def test_flags_win_over_variables_and_these_over_files(v2: Server, tmp_path: Path) -> None:
    good = environment(v2.url)
    trace_id = TRACES[0][0]["id"]
    (tmp_path / ".env").write_text("".join(f"{k}={v}\n" for k, v in good.items()))
    (tmp_path / ".env.local").write_text("LANGFUSE_SECRET_KEY=sk-lf-wrong\n")

    def code(*args: object, **env: str) -> int:
        return bench("fetch", "--trace-id", trace_id, *args, cwd=tmp_path, env=env).code

    assert code() == 1
    assert code(LANGFUSE_SECRET_KEY=good["LANGFUSE_SECRET_KEY"]) == 0
    assert code("--langfuse-secret-key", good["LANGFUSE_SECRET_KEY"]) == 0
    wrong = ("--langfuse-secret-key", "sk-lf-wrong")
    assert code(*wrong, LANGFUSE_SECRET_KEY=good["LANGFUSE_SECRET_KEY"]) == 1
    (tmp_path / ".env.local").unlink()
    assert code() == 0
    assert code("--langfuse-base-url", "http://127.0.0.1:1", "--deadline", 1) == 1
