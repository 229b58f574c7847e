"""The real langfuse SDK, writing into a test server.

Belongs here: what keeps one test's SDK from another's. Does not belong here: what tests write.

The SDK keeps one client for each public key in a process, and by default instruments all of it. So
each client here has keys of its own, which the server takes from then on, and a tracer provider of
its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .server import SECRET_KEY, Server

_numbers = itertools.count(1)


@contextmanager
def langfuse_sdk(server: Server, **options: Any) -> Iterator[Any]:
    """A `Langfuse` client that writes to a server; what it wrote is there when the block ends.

    Args:
        server: Where to; its keys are changed.
        options: Of `Langfuse`, such as `environment`.
    """
    from langfuse import Langfuse
    from opentelemetry.sdk.trace import TracerProvider

    server.keys = (f"pk-lf-sdk-{next(_numbers)}", SECRET_KEY)
    client = Langfuse(
        public_key=server.keys[0],
        secret_key=server.keys[1],
        base_url=server.url,
        tracer_provider=TracerProvider(),
        timeout=30,
        **options,
    )
    try:
        yield client
        client.flush()
    finally:
        client.shutdown()
