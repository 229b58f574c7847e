"""The test server itself: a real HTTP server on this machine's loopback.

Belongs here: connections, keys, which address exists on which kind of server, and the record of
requests. Does not belong here: what an address answers (`v1`, `v2`, `scores`).

`v1` is a server before the fourth version, `v2` one of the fourth that keeps events only, `dual`
one in between, which answers both.
"""

from __future__ import annotations

import base64
import contextlib
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from . import otel, scores, v1, v2
from .answers import NO_SUCH_PAGE, Answer, Params, Refused, html_answer, json_answer, not_found
from .contents import PROJECT, Contents, Pair, Row
from .faults import DAMAGED, TOO_MUCH, Faults, Troubles, damaged
from .view import Memory, View

Mode = Literal["v1", "v2", "dual"]

PUBLIC_KEY = "pk-lf-test"
SECRET_KEY = "sk-lf-test"
ORGANISATION_KEYS = ("pk-lf-org", "sk-lf-org")
VERSIONS: dict[Mode, str] = {"v1": "3.179.0", "dual": "4.16.0", "v2": "4.60.0"}
API = "/api/public/"
LEGACY = re.compile(r"(traces|observations|sessions)(/[^/]+)?|v2/scores(/[^/]+)?")
EVENTS_ONLY = (
    "This endpoint is not available on deployments running in Langfuse v4 events_only mode. "
    "Learn more about Langfuse v4 at: https://langfuse.com/docs/v4"
)
NO_V2 = (
    "The observations v2 API is only available in a Langfuse v4 write mode. "
    "Learn more at: https://langfuse.com/docs/v4"
)


@dataclass(frozen=True)
class Request:
    """A request that was answered.

    Attributes:
        status: Of the answer, even if the answer did not arrive.
        rows: How many rows were in it.
        at: When the request came, in seconds of a clock of its own.
        fault: What went wrong by intention, if anything did.
    """

    method: str
    path: str
    params: dict[str, list[str]]
    status: int
    rows: int
    at: float
    fault: str | None = None


@dataclass
class Server:
    """A running server, and the project that it serves.

    Attributes:
        mode: Which of the APIs there are.
        contents: The project's rows.
        faults: What goes wrong; to be set anew while the server runs by `break_by`.
        model_field: What v2 calls the model's name: `providedModelName`, or `model` on the newest.
        v2_page_missing: Whether a v1 server answers v2's address with a page for people.
        trace_limit: The most bytes that v1 gives of a single trace's observations.
        keys: The project's, public and secret.
        now: The clock (s since 1970) that scores are dated by.
        requests: Everything that was asked, in the order of the answers.
        most_at_once: The most requests that were in work at the same time.
    """

    mode: Mode
    contents: Contents
    faults: Faults = field(default_factory=Faults)
    model_field: str = "providedModelName"
    v2_page_missing: bool = False
    trace_limit: int = 80_000_000
    keys: tuple[str, str] = (PUBLIC_KEY, SECRET_KEY)
    now: Callable[[], float] = time.time
    requests: list[Request] = field(default_factory=list)
    most_at_once: int = 0
    url: str = ""
    _at_once: int = 0
    memory: Memory = field(default_factory=Memory)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.troubles = Troubles(self.faults)

    def break_by(self, faults: Faults) -> None:
        """Have other faults from now on."""
        self.faults = faults
        self.troubles = Troubles(faults, self.troubles.stopping)

    def add(self, trace: Row | None, observations: Iterable[Row] = ()) -> None:
        """Write a trace or more of one, while readers read."""
        self.contents.add(trace, list(observations))

    def remove(self, trace_id: str) -> None:
        """Take a trace away, while readers read."""
        self.contents.remove(trace_id)

    def count(self, path: str = API) -> int:
        """How many requests for paths that begin so were answered, whatever with."""
        return sum(request.path.startswith(path) for request in self.requests)

    def answer(self, method: str, target: str, headers: Any, body: bytes) -> Answer:
        """The answer to a request, which is recorded."""
        split = urlsplit(target)
        params = parse_qs(split.query, keep_blank_values=True)
        path, began = unquote(split.path), time.monotonic()
        with self._lock:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        fault = self.troubles.meets(method, path.removeprefix(API), split.query)
        try:
            answer = self._tried(fault, method, path, Params(params), headers, body)
        except Refused as refused:
            answer = refused.answer
        with self._lock:
            self._at_once -= 1
            self.requests.append(
                Request(method, split.path, params, answer.status, answer.rows, began, fault)
            )
        return answer

    def _tried(
        self,
        fault: str | None,
        method: str,
        path: str,
        params: Params,
        headers: Any,
        body: bytes,
    ) -> Answer:
        """The answer that comes of a request and the fault that it meets."""
        instead = self.troubles.answer_for(fault) if fault else None
        if instead is not None:
            return instead
        answer = self._answer(method, path, params, headers, body)
        self.troubles.arrive(self.contents)
        if method == "GET" and self.troubles.too_large(answer, params):
            raise Refused(422, {"message": TOO_MUCH, "error": "Request timed out"})
        return damaged(answer, fault) if fault in DAMAGED else answer

    def _answer(self, method: str, path: str, params: Params, headers: Any, body: bytes) -> Answer:
        if not path.startswith(API):
            return html_answer(NO_SUCH_PAGE, 404)
        name = path.removeprefix(API)
        if name == "health":
            return json_answer({"status": "OK", "version": VERSIONS[self.mode]})
        if self.mode == "v2" and LEGACY.fullmatch(name):
            # Before anybody looks at the keys.
            raise Refused(404, {"message": EVENTS_ONLY})
        check_keys(headers.get("Authorization"), self.keys)
        with self.contents.lock:
            if method == "POST":
                return self._write(name, headers, body)
            return self._read(name, params)

    def _write(self, name: str, headers: Any, body: bytes) -> Answer:
        now = int(self.now() * 1000)
        if name == "otel/v1/traces":
            return otel.ingest(self.contents, body, headers)
        if name == "scores":
            return scores.post(self.contents, body, now, newest=self.mode == "v2")
        if name == "ingestion":
            return scores.ingest(self.contents, body, now)
        raise Refused(405, {"message": "Method not allowed", "error": "MethodNotAllowedError"})

    def _read(self, name: str, params: Params) -> Answer:
        view = View(self.contents, self.memory, self.troubles)
        first, _, rest = name.partition("/")
        if name == "projects":
            return projects()
        if name == "v2/observations":
            return self._v2(view, params)
        if name == "v2/scores":
            return scores.v2_scores(self.contents, params)
        if name == "v3/scores":
            return scores.v3_scores(self.contents, params)
        if first == "traces":
            return self._trace(view, params, rest) if rest else v1.traces(view, params)
        if first == "observations":
            return v1.observation(view, rest) if rest else v1.observations(view, params)
        if first == "sessions":
            return v1.session(view, rest) if rest else v1.sessions(view, params)
        return html_answer(NO_SUCH_PAGE, 404)

    def _trace(self, view: View, params: Params, trace_id: str) -> Answer:
        answer = v1.trace(view, params, trace_id)
        if len(answer.body) < self.trace_limit:
            return answer
        size, limit = len(answer.body) / 1e6, self.trace_limit / 1e6
        why = f"Observations in trace are too large: {size:.2f}MB exceeds limit of {limit:.2f}MB"
        if self.mode == "v1":
            raise Refused(500, {"message": "Internal Server Error", "error": why})
        raise Refused(422, {"message": why, "error": "UnprocessableContentError"})

    def _v2(self, view: View, params: Params) -> Answer:
        if self.mode != "v1":
            return v2.observations(view, params, self.model_field)
        if self.v2_page_missing:
            return html_answer(NO_SUCH_PAGE, 404)
        raise not_found(NO_V2)


def projects() -> Answer:
    """GET /projects: the one that the keys belong to."""
    organisation = {"id": "organisation-of-the-tests", "name": "Organisation"}
    row = {"id": PROJECT, "name": "Tests", "organization": organisation, "metadata": {}}
    return json_answer({"data": [row]}, rows=1)


def check_keys(header: str | None, keys: tuple[str, str]) -> None:
    """Refuse whoever does not bring the project's keys."""
    if not header:
        raise Refused(401, {"message": "No authorization header"})
    kind, _, encoded = header.partition(" ")
    try:
        public, _, secret = base64.b64decode(encoded).decode().partition(":")
    except ValueError:
        kind = ""
    if kind != "Basic" or not public or not secret:
        raise Refused(401, {"message": "Invalid authorization header"})
    if (public, secret) == ORGANISATION_KEYS:
        why = "Project ID not found for API token. Are you using an organization key?"
        raise Refused(403, {"message": why})
    if (public, secret) != keys:
        why = "Invalid credentials. Confirm that you've configured the correct host."
        raise Refused(401, {"message": why})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Listener

    def setup(self) -> None:
        super().setup()
        self.server.connections.add(self.connection)

    def finish(self) -> None:
        self.server.connections.discard(self.connection)
        with contextlib.suppress(OSError, ValueError):
            super().finish()

    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            super().handle()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answer = self.server.project.answer(self.command, self.path, self.headers, body)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.content_type)
        self.send_header("Content-Length", str(len(answer.body)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if answer.broken is None:
            self.wfile.write(answer.body)
            self.wfile.flush()
            return
        self.wfile.write(answer.body[: len(answer.body) // 2])
        self.wfile.flush()
        self.close_connection = True
        if answer.broken == "reset":
            # Closing at once, with what is under way dropped, is what sends a reset.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.connection.close()

    def log_message(self, *_: Any) -> None:
        """The record of requests is kept elsewhere."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, project: Server) -> None:
        self.project = project
        self.connections: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def close_all(self) -> None:
        """End the connections that clients keep open, so that their threads end."""
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.server_close()


@contextmanager
def langfuse_server(
    data: Iterable[Pair] = (),
    mode: Mode = "v1",
    faults: Faults | None = None,
    **options: Any,
) -> Iterator[Server]:
    """Run a server of a kind over some traces; it is gone when the block ends.

    Args:
        data: Traces with their observations, as `generate` makes them.
        mode: Which of the APIs there are.
        faults: What goes wrong.
        options: Of `Server`.
    """
    project = Server(mode, Contents(data), faults or Faults(), **options)
    listener = _Listener(project)
    project.url = f"http://127.0.0.1:{listener.server_port}"
    thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield project
    finally:
        project.troubles.stopping.set()
        listener.shutdown()
        thread.join()
        listener.close_all()
