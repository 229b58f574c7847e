"""Commands that ask a Langfuse server meet what can be wrong with one: said, bounded, no keys."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.adapters.langfuse.selection import LangfuseTraces
from tests.bench import Result, bench, bench_process
from tests.cli.langfuse import CONTRACT, ask, environment, lines_of
from tests.langfuse_server import (
    ORGANISATION_KEYS,
    PUBLIC_KEY,
    SECRET_KEY,
    Faults,
    Mode,
    generate,
    langfuse_server,
)

TRACES = generate(12, seed=5)
TRACE_ID = TRACES[4][0]["id"]
COMMANDS = ("fetch", "debug", "verify", "generate-contract")

PUBLIC, SECRET = "pk-lf-MARKERpublic0123456789", "sk-lf-MARKERsecret0123456789"
PAIR = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "c.yaml").write_text(CONTRACT)
    return tmp_path


@contextmanager
def page_of_html() -> Iterator[str]:
    """A server that answers everything with a page for people, as a sign-in does."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = b"<!DOCTYPE html><html><body>Please sign in</body></html>"
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def nobody() -> Iterator[str]:
    """An address where nothing answers."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@contextmanager
def serving(mode: Mode = "dual", faults: Faults | None = None, **options: Any) -> Iterator[str]:
    with langfuse_server(TRACES, mode=mode, faults=faults, **options) as server:
        yield server.url


ALL = r".*"
Case = tuple[Callable[[], Any], tuple[str, str], tuple[str, ...], list[object]]
KEYS = (PUBLIC_KEY, SECRET_KEY)
CASES: dict[str, Case] = {
    "wrong keys": (
        serving,
        ("pk-lf-other", "sk-lf-other"),
        ("does not accept the keys", "LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY are of one"),
        [],
    ),
    "keys of an organisation": (
        serving,
        ORGANISATION_KEYS,
        ("the keys may not read", "use a project's keys"),
        [],
    ),
    "wrong host": (nobody, KEYS, ("check LANGFUSE_BASE_URL",), ["--deadline", 20]),
    "no such name": (
        lambda: nullcontext("http://no-such-host.invalid"),
        KEYS,
        ("check LANGFUSE_BASE_URL",),
        ["--deadline", 20],
    ),
    "HTML": (
        page_of_html,
        KEYS,
        ("with a page of HTML", "check LANGFUSE_BASE_URL"),
        ["--deadline", 20],
    ),
    "401": (
        lambda: serving(faults=Faults(always=401, paths=ALL)),
        KEYS,
        ("does not accept the keys",),
        [],
    ),
    "403": (lambda: serving(faults=Faults(always=403, paths=ALL)), KEYS, ("may not read",), []),
    "404": (
        lambda: serving(faults=Faults(always=404, paths=ALL)),
        KEYS,
        ("check LANGFUSE_BASE_URL",),
        [],
    ),
    "429 for minutes": (
        lambda: serving(faults=Faults(always=429, retry_after=60, paths=ALL)),
        KEYS,
        ("429: more requests than the server allows", "asks to wait 60 seconds"),
        ["--deadline", 2],
    ),
    "429 of data for minutes": (
        lambda: serving(faults=Faults(always=429, retry_after=1)),
        KEYS,
        ("429: more requests than the server allows",),
        ["--deadline", 2],
    ),
    "500": (
        lambda: serving(faults=Faults(always=500, paths=ALL)),
        KEYS,
        ("is answered with 500",),
        ["--deadline", 1],
    ),
    "524": (
        lambda: serving(faults=Faults(always=524)),
        KEYS,
        ("took the server too long (answered with 524)",),
        ["--deadline", 20],
    ),
    "slow": (
        lambda: serving(faults=Faults(slow=1.0, slow_s=30)),
        KEYS,
        (),
        ["--deadline", 1],
    ),
    "half a body": (
        lambda: serving(faults=Faults(truncated=1.0, in_a_row=10**6)),
        KEYS,
        (),
        ["--deadline", 1],
    ),
    "a reset": (
        lambda: serving(faults=Faults(resets=1.0, in_a_row=10**6)),
        KEYS,
        (),
        ["--deadline", 1],
    ),
    "v1 of a server that has v2 only": (
        lambda: serving("v2"),
        KEYS,
        ("the server has no /api/public/traces",),
        ["--api", "v1"],
    ),
    "v2 of a server that has v1 only": (
        lambda: serving("v1"),
        KEYS,
        ("the server has no /api/public/v2/observations",),
        ["--api", "v2"],
    ),
    "too few requests": (
        serving,
        KEYS,
        ("2 requests were sent, as many as are allowed",),
        ["--max-requests", 2],
    ),
}  # fmt: skip


def said(result: Result) -> str:
    """What was said, whatever its lines; JSON without its escapes."""
    out = result.out
    with suppress(ValueError):
        out = json.dumps(json.loads(out), ensure_ascii=False).replace('\\"', '"')
    return " ".join((out + result.err).split())


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("case", CASES)
def test_what_is_wrong_is_said_with_a_cure_in_bounded_time(
    here: Path, case: str, command: str
) -> None:
    place, keys, words, options = CASES[case]
    began = time.monotonic()
    with place() as url:
        args = lines_of(TRACE_ID)[command]
        result = bench(*args, *options, cwd=here, env=environment(url, *keys))
    assert result.code == (2 if command == "verify" else 1), said(result)
    assert time.monotonic() - began < 25
    for part in words:
        assert part in said(result)
    assert "Traceback" not in result.err
    for secret in keys:
        if secret not in (PUBLIC_KEY, SECRET_KEY):
            assert secret not in result.out + result.err
    assert not (here / "out.jsonl").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_missing_is_named_with_where_to_put_it(here: Path, command: str) -> None:
    result = bench(*lines_of(TRACE_ID)[command], cwd=here)
    assert result.code == (2 if command == "verify" else 1)
    for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_BASE_URL"):
        assert f"{name} is not set" in said(result)
        assert f"--{name.lower().replace('_', '-')}" in said(result)


@pytest.mark.parametrize(
    "url", ["langfuse.example.com", "https://user:MARKERpassword@host", "ftp://host", "https://"]
)
def test_an_address_that_is_none(here: Path, url: str) -> None:
    result = bench(*lines_of(TRACE_ID)["fetch"], cwd=here, env=environment(url))
    assert result.code == 1
    assert "LANGFUSE_BASE_URL" in result.err
    assert "MARKER" not in result.err


# Keys are nowhere.


FAULTS: dict[str, tuple[Mode, Faults]] = {
    "none": ("v2", Faults()),
    "none, v1": ("v1", Faults()),
    "html": ("v1", Faults(html=1.0, in_a_row=10**6)),
    "401": ("v1", Faults(always=401)),
    "403": ("v2", Faults(always=403)),
    "resets": ("v2", Faults(resets=1.0, in_a_row=10**6)),
    "429": ("v1", Faults(always=429, retry_after=60)),
    "500": ("v2", Faults(always=500)),
}


def with_the_key_inside() -> list[Any]:
    """Traces whose metadata hold the public key, as the SDK writes it, and a prompt the secret."""
    pairs = generate(6, seed=5)
    for trace, rows in pairs:
        for row in rows:
            scope = {"name": "langfuse-sdk", "attributes": {"public_key": PUBLIC}}
            row["metadata"] = {**row["metadata"], "scope": scope}
        rows[0]["input"] = {"messages": [{"role": "user", "content": f"prepare: use {SECRET}"}]}
        trace["input"] = rows[0]["input"]
    return pairs


def hold_no_key(*texts: str) -> None:
    for text in texts:
        assert "MARKER" not in text
        assert PAIR not in text
        assert PAIR[:20] not in text


EVERY = [("none", name, True) for name in lines_of("")] + [
    (fault, name, False)
    for fault in FAULTS
    for name in (lines_of("") if fault.startswith("none") else ("fetch raw", "debug", "verify"))
]


@pytest.mark.parametrize(("fault", "name", "as_flags"), EVERY)
def test_keys_are_in_nothing_that_is_printed_or_written(
    here: Path, fault: str, name: str, as_flags: bool
) -> None:
    mode, faults = FAULTS[fault]
    pairs = with_the_key_inside()
    with langfuse_server(pairs, mode=mode, faults=faults, keys=(PUBLIC, SECRET)) as server:
        args = [*lines_of(pairs[0][0]["id"])[name], "--deadline", 1]
        if as_flags:
            args += ["--langfuse-public-key", PUBLIC, f"--langfuse-secret-key={SECRET}"]
            result = bench(*args, cwd=here, env={"LANGFUSE_BASE_URL": server.url})
        else:
            result = ask(server, here, *args)
        assert server.requests
        assert any(request.status == 200 for request in server.requests)
    hold_no_key(result.out, result.err)
    for path in here.iterdir():
        hold_no_key(path.read_text())
    assert (result.code in (0, 10)) == fault.startswith("none")


@pytest.mark.parametrize(
    "args",
    [
        ["fetch", SECRET],
        ["fetch", "--langfuse-secret-key", "--trace-id", "x", SECRET],
        ["fetch", "--limit", SECRET],
        ["fetch", "--api", SECRET],
        ["fetch", "--from", SECRET],
        ["fetch", "--filter", SECRET],
        ["fetch", f"--langfuse-secret-ky={SECRET}"],
        ["fetch", f"--{SECRET}"],
        ["debug", SECRET],
        ["verify", SECRET],
        ["verify", "--langfuse-public-key", PUBLIC, PUBLIC],
        ["generate-contract", "--workflow", "w", SECRET],
        ["fetch", "--langfuse-secret-key", "own-MARKER-format", "own-MARKER-format"],
        ["fetch", "--langfuse-secret-key=own-MARKER-format", "--limit", "own-MARKER-format"],
    ],
)
def test_keys_in_a_wrong_place_of_the_command_line_are_not_repeated(
    here: Path, args: list[object]
) -> None:
    result = bench(*args, cwd=here)
    assert result.code == 2
    assert "Usage: bench" in result.err
    hold_no_key(result.out, result.err)


@pytest.mark.parametrize("command", ["fetch", "debug", "verify", "generate-contract"])
def test_a_fault_of_ours_shows_no_key(
    here: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: LangfuseTraces, *_: object) -> Iterator[object]:
        raise RuntimeError("nobody thought of this")

    with langfuse_server(TRACES, mode="v2", keys=(PUBLIC, SECRET)) as server:
        monkeypatch.setattr(LangfuseTraces, "select", broken)
        text = ""
        try:
            result = ask(server, here, *lines_of(TRACE_ID)[command])
        except RuntimeError:
            text = traceback.format_exc()
        else:
            text = result.out + result.err
    assert "nobody thought of this" in text
    hold_no_key(text)


def test_a_process_of_its_own_shows_no_key_either(here: Path) -> None:
    with langfuse_server(TRACES, mode="v2", keys=(PUBLIC, SECRET)) as server:
        env = environment(server.url, PUBLIC, SECRET)
        for name in ("fetch raw", "debug", "verify"):
            result = bench_process(*lines_of(TRACE_ID)[name], cwd=here, env=env)
            assert result.code == 0, result.err
            hold_no_key(result.out, result.err)


def test_the_test_can_fail(here: Path) -> None:
    with langfuse_server(with_the_key_inside(), mode="v1", keys=(PUBLIC, SECRET)) as server:
        held = json.dumps([stored.row for stored in server.contents.traces.values()])
    with pytest.raises(AssertionError):
        hold_no_key(held)


# Nothing is asked when nothing needs asking.


@pytest.mark.parametrize(
    "args",
    [
        ["verify", "--contract", "none.yaml", "--trace-id", TRACE_ID],
        ["verify", "--trace-id", TRACE_ID],
        ["verify", "--contract", "c.yaml", "--plugins", "none", "--trace-id", TRACE_ID],
        ["verify", "--contract", "c.yaml", "--snapshot", "x.json", "--filter", "a=b"],
        ["generate-contract", "--trace-id", TRACE_ID, "--out", "c.yaml"],
        ["generate-contract", "--trace-id", TRACE_ID, "--harness", "none"],
        ["generate-contract", "--from-file", "x.json", "--thread-id", "t"],
        ["generate-contract"],
        ["verify", "--contract", "c.yaml"],
    ],
)
def test_mistakes_are_said_before_a_server_is_asked(here: Path, args: list[object]) -> None:
    with langfuse_server(TRACES, mode="v2") as server:
        result = ask(server, here, *args)
        assert result.code in (1, 2)
        assert server.requests == []


def test_a_trace_of_a_file_asks_no_server(here: Path) -> None:
    (here / "run.json").write_text('{"trace_id": "t", "tool_calls": [{"name": "read_file"}]}')
    with langfuse_server(TRACES, mode="v2") as server:
        for args in (
            ["verify", "--contract", "c.yaml", "--snapshot", "run.json"],
            ["generate-contract", "--from-file", "run.json", "--workflow", "w"],
        ):
            assert ask(server, here, *args, TRACE_ID="t").code == 0
        assert server.requests == []
