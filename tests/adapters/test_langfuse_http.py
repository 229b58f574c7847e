"""Requests against a server that says byte for byte what it is told to."""

from __future__ import annotations

import base64
import gc
import logging
import pickle
import socket
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from benchmark_assets.adapters.langfuse.answers import asked_to_wait
from benchmark_assets.adapters.langfuse.credentials import Credentials
from benchmark_assets.adapters.langfuse.http import Client, LangfuseError, Limits
from tests.adapters.raw_server import Reply, answer, cut, endless, raw_server, reset, silent

PUBLIC, SECRET = "pk-lf-MARKERpublic", "sk-lf-MARKERsecret"
PAIR = base64.b64encode(f"{PUBLIC}:{SECRET}".encode()).decode()
PATH = "/api/public/health"
GOOD = answer('{"ok": true}')
HTML = "<!doctype html><title>Sign in</title>"


class Clock:
    """Time that passes by sleeping only."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def client_of(url: str, clock: Clock | None = None, **limits: Any) -> Client:
    clock = clock or Clock()
    return Client(
        Credentials(PUBLIC, SECRET, url),
        limits=Limits(**limits),
        sleep=clock.sleep,
        clock=clock,
        jitter=lambda: 1.0,
    )


@contextmanager
def asking(*replies: Reply, **limits: Any) -> Iterator[tuple[Client, Any, Clock]]:
    clock = Clock()
    with raw_server(*replies) as raw, client_of(raw.url, clock, **limits) as client:
        yield client, raw, clock


def error_of(*replies: Reply, **limits: Any) -> tuple[LangfuseError, int]:
    """The error that replies end in, and how many requests there were."""
    with asking(*replies, **limits) as (client, _, __):
        with pytest.raises(LangfuseError) as caught:
            client.get_json(PATH)
        return caught.value, client.counts.requests


def test_a_request_carries_the_keys_and_what_it_asks_for() -> None:
    with asking(GOOD) as (client, raw, _):
        params = {"limit": 5, "environment": ["a", "b c"], "none": None, "root": True}
        assert client.get_json(PATH, params) == {"ok": True}
        line, *headers = raw.heads[0].split("\r\n")
        assert line == f"GET {PATH}?limit=5&environment=a&environment=b+c&root=true HTTP/1.1"
        assert f"Authorization: Basic {PAIR}" in headers
        counts = client.counts
        assert (counts.requests, counts.retries, counts.bytes) == (1, 0, 12)


@pytest.mark.parametrize(
    "fault",
    [
        answer("oops", "500 Internal Server Error", "text/plain"),
        answer("{}", "503 Service Unavailable"),
        answer("{}", "408 Request Timeout"),
        answer(HTML, "502 Bad Gateway", "text/html"),
        answer(HTML, "200 OK", "text/html"),
        answer(HTML, "524 A Timeout Occurred", "text/html"),
        answer('{"message": "Timeout error"}', "500 Internal Server Error"),
        answer('{"a": 1'),
        answer('{"a": 1}}'),
        answer(""),
        cut(b'{"ok": true, "more": 1}', 9),
        endless(b'{"ok": tr'),
        reset(),
        reset(cut(b'{"ok": true, "more": 1}', 9)),
        b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"ok"\r\n',
        b"nonsense\r\n\r\n",
    ],
)
def test_what_heals_is_asked_for_again(fault: Reply) -> None:
    with asking(fault, GOOD) as (client, raw, clock):
        assert client.get_json(PATH) == {"ok": True}
        assert len(raw.heads) == 2
        assert client.counts.retries == 1
        assert clock.slept == [pytest.approx(client.counts.waited_s)]


@pytest.mark.parametrize(
    ("fault", "kind", "requests", "words"),
    [
        (answer("{}", "401 Unauthorized"), "unauthorized", 1, "does not accept the keys"),
        (answer("{}", "403 Forbidden"), "organisation_key", 1, "use a project's keys"),
        (answer("{}", "404 Not Found"), "gone", 1, "the server has no /api"),
        (answer(HTML, "404 Not Found", "text/html"), "gone", 1, "the server has no /api"),
        (answer("{}", "405 Method Not Allowed"), "gone", 1, "the server has no /api"),
        (answer('{"message": "no column"}', "400 Bad Request"), "refused", 1, "no column"),
        (answer("{}", "422 Unprocessable Entity"), "too_large", 1, "ask for a shorter time"),
        (answer("{}", "413 Content Too Large"), "too_large", 1, "too much for the server"),
        (answer(HTML, "524 Timeout", "text/html"), "too_large", 2, "took the server too long"),
        (answer("{}", "504 Gateway Timeout"), "too_large", 2, "took the server too long"),
        (answer("{}", "500 Internal Server Error"), "server", 6, "look at its logs"),
        (answer(HTML, "200 OK", "text/html"), "not_langfuse", 3, "login page"),
        (cut(b'{"ok": true}', 4), "connection", 6, "the connection broke"),
        (answer("[1, 2"), "connection", 6, "half a body"),
        (answer("{oops}"), "connection", 6, "broken JSON"),
        (answer("[" * 5000 + "]" * 5000), "connection", 1, "nested too deeply"),
        (reset(), "connection", 6, "the connection broke"),
        (
            answer("", "302 Found", Location="https://other.example/login?next=x"),
            "wrong_host",
            1,
            "it sends on to https://other.example/login;",
        ),
    ],
)
def test_what_does_not_heal_says_what_to_do(
    fault: Reply, kind: str, requests: int, words: str
) -> None:
    error, asked = error_of(fault)
    assert (error.kind, asked) == (kind, requests)
    assert words in str(error)


def test_a_redirect_is_not_followed() -> None:
    with raw_server(GOOD) as elsewhere:
        error, _ = error_of(answer("", "307 Temporary Redirect", Location=elsewhere.url))
        assert error.kind == "wrong_host"
        assert elsewhere.heads == []


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with client_of(f"http://127.0.0.1:{port}") as client, pytest.raises(LangfuseError) as caught:
        client.get(PATH)
    assert caught.value.kind == "wrong_host"
    assert "cannot be reached" in str(caught.value)
    assert client.counts.requests == 3


def test_a_host_that_does_not_exist() -> None:
    with client_of("http://langfuse.invalid") as client, pytest.raises(LangfuseError) as caught:
        client.get(PATH)
    assert caught.value.kind == "wrong_host"


def test_a_silent_server_is_asked_twice() -> None:
    error, asked = error_of(silent(0.6), timeout_s=0.2)
    assert (error.kind, asked) == ("too_large", 2)
    assert "not answered" in str(error)


def test_a_server_that_drips_does_not_outlast_the_deadline() -> None:
    def drip(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
        for _ in range(60):
            connection.sendall(b" ")
            time.sleep(0.05)

    with raw_server(drip) as raw:
        limits = Limits(deadline_s=0.4)
        with Client(Credentials(PUBLIC, SECRET, raw.url), limits=limits) as client:
            started = time.monotonic()
            with pytest.raises(LangfuseError) as caught:
                client.get(PATH)
    assert caught.value.kind == "deadline"
    assert time.monotonic() - started < 2


def test_too_many_bytes_are_not_read() -> None:
    error, asked = error_of(answer("[" + "1," * 5000 + "1]"), max_bytes=4096)
    assert (error.kind, asked) == ("too_large", 1)
    assert "more than 4,096 bytes" in str(error)


# Waiting.


def test_waits_grow_with_full_jitter() -> None:
    fault = answer("{}", "500 Internal Server Error")
    with asking(fault) as (client, _, clock), pytest.raises(LangfuseError):
        client.get(PATH)
    assert clock.slept == [1, 2, 4, 8, 16]


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "Tue, 01 Dec 2026 03:00:09 GMT"}, 9),
        ({"retry-after": "Tue, 01 Dec 2026 02:00:00 GMT"}, 0),
        (
            {"x-ratelimit-reset": "Tue Dec 01 2026 03:00:30 GMT+0000 (Coordinated Universal Time)"},
            30,
        ),
        ({"x-ratelimit-reset": "Tue Dec 01 2026 04:01:00 GMT+0100 (CET)"}, 60),
        ({"x-ratelimit-reset": "2026-12-01T03:00:10.000Z"}, 10),
        (
            {"x-ratelimit-reset": str(int(datetime(2026, 12, 1, 3, 0, 5, tzinfo=UTC).timestamp()))},
            5,
        ),
        (
            {
                "x-ratelimit-reset": f"{datetime(2026, 12, 1, 3, 0, 5, tzinfo=UTC).timestamp():.0f}000"
            },
            5,
        ),
        ({"retry-after": "soon", "x-ratelimit-reset": "2026-12-01T03:00:10Z"}, 10),
        ({"retry-after": "soon"}, None),
        ({"x-ratelimit-reset": "nan"}, None),
        ({"x-ratelimit-reset": "1e300"}, None),
        ({}, None),
    ],
)
def test_how_long_an_answer_asks_to_wait(headers: dict[str, str], seconds: float | None) -> None:
    assert asked_to_wait(headers, datetime(2026, 12, 1, 3, tzinfo=UTC)) == seconds


def test_the_asked_for_wait_is_kept() -> None:
    limited = answer("{}", "429 Too Many Requests", Retry_After="7")
    with asking(limited, limited, GOOD) as (client, raw, clock):
        client.get(PATH)
        assert len(raw.heads) == 3
        assert client.counts.limited == 2
        assert [wait >= 7 for wait in clock.slept] == [True, True]
        assert clock.now - 1000 < 2 * 8.1


def test_a_date_is_read_by_the_servers_clock_and_not_by_ours() -> None:
    there = datetime.now(UTC) + timedelta(hours=5)
    limited = answer(
        "{}",
        "429 Too Many Requests",
        Date=format_datetime(there, usegmt=True),
        Retry_After=format_datetime(there + timedelta(seconds=20), usegmt=True),
    )
    with asking(limited, GOOD) as (client, _, clock):
        client.get(PATH)
        assert 18 <= clock.slept[0] <= 22
        assert abs((client.now() - there).total_seconds()) < 5


def test_429_for_minutes_uses_no_attempts_up_and_ends() -> None:
    limited = answer("{}", "429 Too Many Requests", Retry_After="20")
    with asking(*[limited] * 15, GOOD, attempts=2) as (client, _, clock):
        assert client.get_json(PATH) == {"ok": True}
        assert clock.now - 1000 >= 300
    with asking(limited, patience_s=120) as (client, _, clock):
        with pytest.raises(LangfuseError) as caught:
            client.get(PATH)
        assert caught.value.kind == "rate_limited"
        assert "asks to wait 20 seconds" in str(caught.value)
        assert clock.now - 1000 <= 120


def test_a_wait_of_a_day_is_not_begun() -> None:
    error, asked = error_of(answer("{}", "429 Too Many Requests", Retry_After="86400"))
    assert (error.kind, asked) == ("rate_limited", 1)
    assert "86,400 seconds" in str(error)


def test_after_a_429_other_threads_wait_too() -> None:
    limited = answer("{}", "429 Too Many Requests", Retry_After="9")
    with asking(limited, GOOD) as (client, _, clock):
        client.get(PATH)
        before = clock.now
        client.get(PATH)
        assert clock.now == before  # the wait is over for both
        client._next_start = clock.now + 4  # what another thread was just told
        client.get(PATH)
        assert clock.now == before + 4


def test_the_deadline_bounds_waiting_and_says_what_was_answered_last() -> None:
    fault = answer('{"message": "no disk"}', "500 Internal Server Error")
    with asking(fault, deadline_s=4) as (client, _, clock):
        with pytest.raises(LangfuseError) as caught:
            client.get(PATH)
        assert caught.value.kind == "deadline"
        assert "no disk" in str(caught.value)
        assert clock.now - 1000 <= 4
        clock.now += 4
        with pytest.raises(LangfuseError) as again:
            client.get(PATH)
        assert again.value.kind == "deadline"


def test_the_budget_counts_retries() -> None:
    error, asked = error_of(answer("{}", "500 Internal Server Error"), requests=3)
    assert (error.kind, asked) == ("budget", 3)


def test_the_pace_is_kept() -> None:
    with asking(GOOD, per_minute=30) as (client, _, clock):
        for _ in range(4):
            client.get(PATH)
        assert clock.now - 1000 == pytest.approx(6)


def test_no_more_than_n_requests_at_one_time() -> None:
    now = most = 0
    lock = threading.Lock()

    def slowly(connection: socket.socket) -> None:
        connection.sendall(GOOD)

    with raw_server(slowly) as raw, client_of(raw.url, in_flight=2) as client:
        send = client._sent

        @contextmanager
        def counted(*args: Any) -> Iterator[Any]:
            nonlocal now, most
            with lock:
                now += 1
                most = max(most, now)
            with send(*args) as response:
                time.sleep(0.02)
                yield response
            with lock:
                now -= 1

        client._sent = counted  # type: ignore[method-assign]
        threads = [threading.Thread(target=client.get, args=(PATH,)) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == 2


# Keys.

FAULTS: list[Reply] = [
    answer(f'{{"message": "bad keys {SECRET} {PUBLIC} {PAIR}"}}', "401 Unauthorized"),
    answer(f'{{"message": "{SECRET}"}}', "400 Bad Request"),
    answer(f'{{"error": "{PUBLIC}"}}', "500 Internal Server Error"),
    answer(f"{SECRET}", "422 Unprocessable Entity", "text/plain"),
    answer("", "302 Found", Location=f"https://x.example/{PUBLIC}?key={SECRET}"),
    answer(f"<html>{SECRET}", "200 OK", "text/html"),
    cut(b'{"ok": true}', 4),
    reset(),
    silent(0.4),
    answer("{oops}"),
]


@pytest.mark.parametrize("fault", FAULTS)
def test_no_key_is_in_anything_that_an_error_shows_or_refers_to(
    fault: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    error, _ = error_of(fault, timeout_s=0.2, attempts=2)
    shown = [str(error), repr(error), *traceback.format_exception(error), caplog.text]
    shown += [repr(vars(error)), repr(pickle.loads(pickle.dumps(error)).problems)]
    # With the values of variables, as some programs print tracebacks; the test's own hold what
    # the server was told to say.
    ours = error.__traceback__
    while ours is not None and "benchmark_assets" not in ours.tb_frame.f_code.co_filename:
        ours = ours.tb_next
    full = traceback.TracebackException(type(error), error, ours, capture_locals=True)
    frames = list(full.format())
    assert len(frames) > 3
    shown += frames
    assert not [text for text in shown if "MARKER" in text or PAIR in text]
    # httpx's errors hold the request, and that holds the header.
    assert error.__cause__ is None
    assert error.__context__ is None
    assert not [text for text in frames if "/httpx/" in text]


def test_the_client_shows_no_key() -> None:
    with asking(GOOD) as (client, _, _):
        client.get(PATH)
        texts = [repr(client), repr(client.__dict__), repr(client._http.__dict__)]
        assert not [text for text in texts if "MARKER" in text or PAIR in text]
    gc.collect()


def test_errors_travel_between_processes() -> None:
    error, _ = error_of(answer("{}", "403 Forbidden"))
    again = pickle.loads(pickle.dumps(error))
    assert (again.kind, again.status, str(again)) == (error.kind, 403, str(error))


def test_post_sends_json_and_is_repeated() -> None:
    with asking(answer("{}", "500 Internal Server Error"), answer('{"id": "s"}')) as (
        client,
        raw,
        _,
    ):
        assert client.post("/api/public/scores", {"name": "passed"}) == b'{"id": "s"}'
        assert [head.split()[0] for head in raw.heads] == ["POST", "POST"]
        assert "Content-Type: application/json" in raw.heads[1]
