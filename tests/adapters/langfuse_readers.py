"""Readers of a test server, for tests of whatever reads.

Belongs here: a client and the reader of its API, for which waiting takes no time. Does not belong
here: what a server holds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmark_assets.adapters.langfuse.credentials import Credentials
from benchmark_assets.adapters.langfuse.http import Client, Limits
from benchmark_assets.adapters.langfuse.readers import Api, Arrival, Reader
from benchmark_assets.adapters.langfuse.v1 import V1Reader
from benchmark_assets.adapters.langfuse.v2 import V2Reader
from tests.langfuse_server import PUBLIC_KEY, SECRET_KEY


def reader_of(
    api: Api,
    url: str,
    *,
    arrival: Arrival | None = None,
    sleep: Callable[[float], None] = lambda _: None,
    **limits: Any,
) -> tuple[Reader, Client]:
    """A reader and its client. Sleeping takes no time, as the client's clock tells.

    Args:
        api: What the server has.
        url: The server.
        arrival: When a trace counts as whole.
        sleep: What else happens while the client sleeps.
        limits: Of the client.
    """
    now = [0.0]

    def slept(seconds: float) -> None:
        now[0] += seconds
        sleep(seconds)

    client = Client(
        Credentials(PUBLIC_KEY, SECRET_KEY, url),
        limits=Limits(**limits),
        sleep=slept,
        clock=lambda: now[0],
    )
    return (V1Reader if api == "v1" else V2Reader)(client, arrival=arrival), client
