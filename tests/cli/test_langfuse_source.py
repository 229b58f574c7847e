"""`--source`: a Langfuse source of benchmark.yaml, asked as it says."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bench import Result, bench
from tests.cli.langfuse import environment
from tests.langfuse_server import PUBLIC_KEY, SECRET_KEY, Server, generate, langfuse_server

TRACES = generate(40, seed=3, environments=("default", "prod"))

PROJECT = """\
sources:
  - {{path: traces}}
  - kind: langfuse
    name: production
    base_url: {url}
    public_key_env: PROD_PUBLIC
    secret_key_env: PROD_SECRET
    environment: prod
    filter: {{projectid: [P1, P2, P3]}}
    tags: [bench]
  - kind: langfuse
    name: planners
    base_url: {url}
    names: [planner]
    environment: "*"
    api: v1
  - kind: langfuse
    name: several
    base_url: {url}
    names: [planner, support]
"""
OWN = {"PROD_PUBLIC": PUBLIC_KEY, "PROD_SECRET": SECRET_KEY}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with langfuse_server(TRACES, mode="dual") as running:
        (tmp_path / "benchmark.yaml").write_text(PROJECT.format(url=running.url))
        yield running


def fetch(folder: Path, *args: object, **env: str) -> Result:
    return bench("fetch", *args, "--out", "out.jsonl", cwd=folder, env=env)


def ids(folder: Path) -> set[str]:
    lines = (folder / "out.jsonl").read_text().splitlines()
    return {json.loads(line)["trace_id"] for line in lines}


def test_its_keys_server_environment_and_conditions_hold(server: Server, tmp_path: Path) -> None:
    others = environment("http://127.0.0.1:1", "pk-lf-other", "sk-lf-other")
    result = fetch(tmp_path, "--source", "production", "--tag", "nightly", **others, **OWN)
    assert result.code == 0, result.err
    assert "environment 'prod' (from: benchmark.yaml)" in result.err
    expected = {
        trace["id"]
        for trace, _ in TRACES
        if trace["environment"] == "prod"
        and trace["metadata"]["projectid"] in ("P1", "P2", "P3")
        and "nightly" in trace["tags"]
    }
    assert expected
    assert ids(tmp_path) == expected


def test_what_is_asked_for_narrows_it(server: Server, tmp_path: Path) -> None:
    key = ("--filter", "projectid=P1", "--filter", "projectid=P6")
    assert fetch(tmp_path, "--source", "production", *key, **OWN).code == 0
    expected = {
        trace["id"]
        for trace, _ in TRACES
        if trace["environment"] == "prod" and trace["metadata"]["projectid"] == "P1"
    }
    assert ids(tmp_path) == expected
    none = ("--filter", "projectid=P6")
    result = fetch(tmp_path, "--source", "production", *none, **OWN)
    assert result.code == 2
    assert "has only traces whose projectid is P1 or P2 or P3" in " ".join(result.err.split())


def test_its_names_and_its_api(server: Server, tmp_path: Path) -> None:
    keys = environment("http://127.0.0.1:1")
    result = fetch(tmp_path, "--source", "planners", "--tag", "bench", **keys)
    assert "API v1; every environment" in result.err
    assert ids(tmp_path) == {trace["id"] for trace, _ in TRACES if trace["name"] == "planner"}
    result = fetch(tmp_path, "--source", "planners", "--name", "support", **keys)
    assert (result.code, "only traces named planner" in result.err) == (2, True)
    result = fetch(tmp_path, "--source", "several", "--tag", "bench", **keys)
    assert (result.code, "choose one of planner, support" in result.err) == (2, True)
    assert fetch(tmp_path, "--source", "several", "--name", "support", **keys).code == 0


def test_by_id_any_trace_of_its_project_is_given(server: Server, tmp_path: Path) -> None:
    other = next(trace for trace, _ in TRACES if trace["environment"] == "default")
    assert fetch(tmp_path, "--source", "production", "--trace-id", other["id"], **OWN).code == 0
    assert ids(tmp_path) == {other["id"]}


def test_its_own_variables_are_named_when_they_are_missing(server: Server, tmp_path: Path) -> None:
    result = fetch(tmp_path, "--source", "production", "--tag", "bench", PROD_PUBLIC=PUBLIC_KEY)
    assert result.code == 1
    assert "PROD_SECRET is not set" in result.err
    assert "PROD_PUBLIC" not in result.err
    (tmp_path / ".env").write_text(f"PROD_SECRET={SECRET_KEY}\n")
    args = ("--source", "production", "--tag", "bench")
    assert fetch(tmp_path, *args, PROD_PUBLIC=PUBLIC_KEY).code == 0


@pytest.mark.parametrize("command", ["fetch", "debug", "verify", "generate-contract"])
def test_every_command_takes_it(server: Server, tmp_path: Path, command: str) -> None:
    trace_id = next(trace["id"] for trace, _ in TRACES if trace["environment"] == "prod")
    (tmp_path / "c.yaml").write_text(
        'workflow: w\ncontract_version: "1"\ntools: {forbidden: [x]}\n'
    )
    more = {"verify": ["--contract", "c.yaml"], "generate-contract": ["--workflow", "w"]}
    args = [command, "--source", "production", "--trace-id", trace_id, *more.get(command, [])]
    result = bench(*args, cwd=tmp_path, env=OWN)
    assert result.code == 0, result.out + result.err
    assert server.requests


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("prodution", "did you mean 'production'?"),
        ("zzz", "there are: production, planners, several"),
        ("traces", "the source 'traces' is no Langfuse server: its files are there"),
        ("", "give a text"),
    ],
)
def test_a_source_that_is_none(server: Server, tmp_path: Path, name: str, said: str) -> None:
    result = fetch(tmp_path, "--source", name, "--tag", "bench", **OWN)
    assert result.code == 2
    assert said in " ".join(result.err.split())
    assert server.requests == []


def test_without_any_the_cure_is_how_to_add_one(tmp_path: Path) -> None:
    assert "PROD_PUBLIC" not in os.environ
    result = fetch(tmp_path, "--source", "a", "--tag", "b")
    assert (result.code, "`kind: langfuse`" in result.err) == (2, True)
