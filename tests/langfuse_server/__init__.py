"""A server that answers as Langfuse does, for tests: over real connections, with real paging.

`with langfuse_server(generate(100), mode="dual") as server:` serves a hundred traces at
`server.url`; the keys are `PUBLIC_KEY` and `SECRET_KEY`. `server.requests` has what was asked.

What it answers follows the API description of langfuse/langfuse at 6275144 (MIT licensed), whose
needed parts are kept in `openapi.json`; the server's own tests hold every answer against it.
"""

from .apart import Apart, langfuse_server_apart
from .contents import PROJECT, Pair, Row
from .faults import Faults
from .generated import START, generate
from .oddities import ODDITIES, make_odd, with_oddities
from .sdk import langfuse_sdk
from .server import (
    ORGANISATION_KEYS,
    PUBLIC_KEY,
    SECRET_KEY,
    Mode,
    Request,
    Server,
    langfuse_server,
)

__all__ = [
    "ODDITIES",
    "ORGANISATION_KEYS",
    "PROJECT",
    "PUBLIC_KEY",
    "SECRET_KEY",
    "START",
    "Apart",
    "Faults",
    "Mode",
    "Pair",
    "Request",
    "Row",
    "Server",
    "generate",
    "langfuse_sdk",
    "langfuse_server",
    "langfuse_server_apart",
    "make_odd",
    "with_oddities",
]
