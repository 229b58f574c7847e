"""What is relied on of a Langfuse server, asked of the test server and, if you want, of yours.

The same tests run against the test server always, and against your own instance with

    BENCH_LANGFUSE_CONTRACT=1 pytest -m services tests/services/test_langfuse_live.py -rs

where LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL and perhaps
LANGFUSE_ENVIRONMENT are set. They read a few of its newest traces and write nothing, unless
BENCH_LANGFUSE_CONTRACT_WRITE=1 allows it: then one small trace is sent with the Langfuse SDK, into
the environment `bench-contract-test`, and read back.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.bench import Result, bench
from tests.langfuse_server import generate, langfuse_server

pytestmark = pytest.mark.services

ASKED = "BENCH_LANGFUSE_CONTRACT"
WRITING = "BENCH_LANGFUSE_CONTRACT_WRITE"
NEEDED = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_BASE_URL")
WRITTEN_TO = "bench-contract-test"


def why_not_live(env: dict[str, str]) -> str | None:
    """Why the user's own instance is not asked; None if it is."""
    if env.get(ASKED) != "1":
        return f"YOUR LANGFUSE INSTANCE IS NOT TESTED: set {ASKED}=1 and the keys to do so"
    missing = [name for name in NEEDED if not env.get(name)]
    if missing:
        return f"YOUR LANGFUSE INSTANCE IS NOT TESTED: {', '.join(missing)} not set"
    return None


@dataclass
class Instance:
    """A server to ask, and the folder to do it in."""

    env: dict[str, str]
    folder: Path
    writable: bool

    def ask(self, *args: object) -> Result:
        return bench(*args, cwd=self.folder, env=self.env)

    def fetch(self, *args: object, code: int = 0) -> list[dict[str, Any]]:
        """The lines that a fetch writes."""
        result = self.ask("fetch", *args)
        # 10 says that a trace was incomplete, which an instance at work may well have.
        assert result.code in (code, 10), result.err
        return [json.loads(line) for line in result.out.splitlines()]


@pytest.fixture(params=["v1", "v2", "dual", "yours"])
def instance(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Instance]:
    if request.param == "yours":
        env = dict(os.environ)
        why = why_not_live(env)
        if why is not None:
            pytest.skip(why)
        own = {name: value for name, value in env.items() if name.startswith("LANGFUSE_")}
        yield Instance(own, tmp_path, env.get(WRITING) == "1")
        return
    # The SDK keeps one client for each public key in a process.
    keys = (f"pk-lf-{uuid4()}", f"sk-lf-{uuid4()}")
    with langfuse_server(generate(30, seed=11), mode=request.param, keys=keys) as server:
        values = (*keys, server.url)
        yield Instance(dict(zip(NEEDED, values, strict=True)), tmp_path, True)


@pytest.fixture
def newest(instance: Instance) -> list[dict[str, Any]]:
    """Some of its newest traces, as snapshots."""
    result = instance.ask("debug", "--json")
    assert result.code in (0, 10), result.out
    found = instance.fetch("--from", "2023-01-01", "--limit", 10)
    if not found:
        pytest.skip("THE INSTANCE HAS NO TRACES IN THIS ENVIRONMENT: set LANGFUSE_ENVIRONMENT")
    return found


def test_every_step_works_on_the_newest(newest: list[dict[str, Any]], instance: Instance) -> None:
    result = instance.ask("debug", "--trace-id", newest[0]["trace_id"], "--run-fetch", "--json")
    failed = [step for step in json.loads(result.out)["steps"] if step["state"] == "failed"]
    assert failed == []


def test_the_newest_come_first_and_once(newest: list[dict[str, Any]]) -> None:
    times = [snapshot["started_at"] for snapshot in newest]
    assert times == sorted(times, reverse=True)
    ids = [snapshot["trace_id"] for snapshot in newest]
    assert len(set(ids)) == len(ids)


def test_by_id_it_is_the_same_trace(newest: list[dict[str, Any]], instance: Instance) -> None:
    listed = newest[-1]
    (alone,) = instance.fetch("--trace-id", listed["trace_id"])
    assert alone == listed


def test_several_ids_in_one_call(newest: list[dict[str, Any]], instance: Instance) -> None:
    ids = [snapshot["trace_id"] for snapshot in newest[:4]]
    assert [found["trace_id"] for found in instance.fetch("--trace-id", ",".join(ids))] == ids


def test_a_time_range_is_half_open(newest: list[dict[str, Any]], instance: Instance) -> None:
    first, last = newest[0], newest[-1]
    if first["started_at"] == last["started_at"]:
        pytest.skip("THE NEWEST TRACES ARE OF ONE TIME")
    args = ("--from", last["started_at"], "--to", first["started_at"], "--limit", 100)
    ids = [snapshot["trace_id"] for snapshot in instance.fetch(*args)]
    assert last["trace_id"] in ids
    assert first["trace_id"] not in ids


@pytest.mark.parametrize(
    ("option", "key"),
    [("--thread-id", "session_id"), ("--user", "user_id"), ("--name", "name"), ("--tag", "tags")],
)
def test_the_server_finds_by(
    newest: list[dict[str, Any]], instance: Instance, option: str, key: str
) -> None:
    having = [snapshot for snapshot in newest if snapshot.get(key)]
    if not having:
        pytest.skip(f"NONE OF THE NEWEST TRACES HAS {key.upper()}")
    value = having[0][key] if option != "--tag" else having[0][key][0]
    args = (option, value, "--from", newest[-1]["started_at"], "--limit", 100)
    found = instance.fetch(*args)
    assert having[0]["trace_id"] in [snapshot["trace_id"] for snapshot in found]
    assert all(value in snapshot[key] for snapshot in found)


def test_the_server_finds_by_metadata(newest: list[dict[str, Any]], instance: Instance) -> None:
    ids = ",".join(snapshot["trace_id"] for snapshot in newest)
    having = [
        (trace_id_of(document), key, value)
        for document in instance.fetch("--trace-id", ids, "--raw")
        for key, value in metadata_of(document).items()
        if isinstance(value, str) and 0 < len(value) < 100 and not set("=.") & set(key)
    ]
    if not having:
        pytest.skip("NONE OF THE NEWEST TRACES HAS METADATA OF TEXTS")
    trace_id, key, value = having[0]
    args = ("--filter", f"{key}={value}", "--from", newest[-1]["started_at"], "--limit", 100)
    assert trace_id in [snapshot["trace_id"] for snapshot in instance.fetch(*args)]


def trace_id_of(document: dict[str, Any]) -> str:
    """The id of a trace as the server gave it."""
    return str((document["trace"] or {}).get("id") or document["observations"][0]["traceId"])


def metadata_of(document: dict[str, Any]) -> dict[str, Any]:
    """The metadata that the server looks at: the trace's own (v1), or those of a row (v2)."""
    places = [document["trace"]] if document["trace"] else document["observations"]
    found = [place.get("metadata") for place in places]
    return next((metadata for metadata in found if isinstance(metadata, dict)), {})


def test_an_id_that_is_not_there(instance: Instance) -> None:
    result = instance.ask("fetch", "--trace-id", uuid4().hex, "--wait", 0)
    assert result.code == 11, result.err


def test_wrong_keys_are_refused(instance: Instance) -> None:
    wrong = Instance({**instance.env, "LANGFUSE_SECRET_KEY": "sk-lf-wrong"}, instance.folder, False)
    result = wrong.ask("debug")
    assert result.code == 1
    assert "does not accept the keys" in result.out


def test_what_the_sdk_sends_is_read_back(instance: Instance) -> None:
    if not instance.writable:
        pytest.skip(f"NOTHING IS WRITTEN TO YOUR INSTANCE: set {WRITING}=1 to allow it")
    trace_id, question = sent_by_the_sdk(instance.env)
    environment = ("--langfuse-environment", WRITTEN_TO)
    (snapshot,) = instance.fetch("--trace-id", trace_id, "--wait", 180, *environment)
    assert snapshot.get("problem") is None
    assert question in snapshot["prompt"]
    assert [call["name"] for call in snapshot["tool_calls"]] == ["look_up"]
    assert snapshot["tool_calls"][0]["arguments"] == {"key": "a"}
    assert snapshot["environment"] == WRITTEN_TO
    assert (snapshot["user_id"], snapshot["session_id"]) == ("contract-user", "contract-session")
    assert snapshot["tokens"]["output"] == 4


def sent_by_the_sdk(env: dict[str, str]) -> tuple[str, str]:
    """Send a trace; its id and its question."""
    from langfuse import Langfuse, propagate_attributes
    from opentelemetry.sdk.trace import TracerProvider

    client = Langfuse(
        public_key=env["LANGFUSE_PUBLIC_KEY"],
        secret_key=env["LANGFUSE_SECRET_KEY"],
        base_url=env["LANGFUSE_BASE_URL"],
        environment=WRITTEN_TO,
        tracer_provider=TracerProvider(),
        timeout=30,
    )
    question = f"What is behind {uuid4().hex}?"
    asked = {"messages": [{"role": "user", "content": question}]}
    with (
        propagate_attributes(user_id="contract-user", session_id="contract-session"),
        client.start_as_current_observation(name="agent", as_type="agent", input=asked) as root,
    ):
        with root.start_as_current_observation(
            name="chat", as_type="generation", model="gpt-5-mini", input=asked["messages"]
        ) as chat:
            chat.update(output="I look it up.", usage_details={"input": 3, "output": 4})
        with root.start_as_current_observation(
            name="look_up", as_type="tool", input={"key": "a"}
        ) as tool:
            tool.update(output="a door")
        root.update(output="A door.")
    client.flush()
    client.shutdown()
    return root.trace_id, question


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({}, f"set {ASKED}=1"),
        ({ASKED: "1"}, "LANGFUSE_PUBLIC_KEY, LANGFUSE_SECRET_KEY, LANGFUSE_BASE_URL not set"),
        ({ASKED: "0", **dict.fromkeys(NEEDED, "x")}, f"set {ASKED}=1"),
    ],
)
def test_the_reason_for_leaving_yours_out_is_loud(env: dict[str, str], said: str) -> None:
    assert said in (why_not_live(env) or "")


def test_with_keys_yours_is_asked() -> None:
    assert why_not_live({ASKED: "1", **dict.fromkeys(NEEDED, "x")}) is None
