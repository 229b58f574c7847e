"""The test server in a process of its own, so that a reader's memory and time are the reader's.

Belongs here: starting it and asking it what was asked of it. Does not belong here: anything that
changes its contents while it runs, which needs the server in this process (`langfuse_server`).
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from .faults import Faults
from .generated import generate
from .server import Mode, Request, langfuse_server

STARTS_WITHIN_S = 120


@dataclass
class Apart:
    """A server in another process.

    Attributes:
        url: Where it is.
    """

    url: str
    _line: Connection = field(repr=False)

    @property
    def requests(self) -> list[Request]:
        """Everything that was asked so far."""
        self._line.send("requests")
        found: list[Request] = self._line.recv()
        return found

    @property
    def most_at_once(self) -> int:
        """The most requests that were in work at the same time."""
        self._line.send("most_at_once")
        return int(self._line.recv())

    def break_by(self, faults: Faults) -> None:
        """Have other faults from now on."""
        self._line.send(faults)
        self._line.recv()


@contextmanager
def langfuse_server_apart(
    n: int,
    seed: int = 0,
    mode: Mode = "v1",
    faults: Faults | None = None,
    **generating: Any,
) -> Iterator[Apart]:
    """Serve `generate(n, seed, **generating)` from a process of its own until the block ends."""
    own, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(other, n, seed, mode, faults, generating), daemon=True
    )
    process.start()
    try:
        if not own.poll(STARTS_WITHIN_S):
            raise TimeoutError("the test server did not start")
        yield Apart(own.recv(), own)
    finally:
        own.send("stop")
        process.join(10)
        process.kill()
        process.join()
        process.close()
        own.close()
        other.close()


def _serve(
    line: Connection, n: int, seed: int, mode: Mode, faults: Faults | None, generating: Any
) -> None:
    with langfuse_server(generate(n, seed, **generating), mode, faults) as server:
        line.send(server.url)
        while (asked := line.recv()) != "stop":
            if isinstance(asked, Faults):
                server.break_by(asked)
                line.send("broken")
            else:
                line.send(getattr(server, asked))
