"""What a Langfuse server is and can, found out by asking it step by step.

Belongs here: the probe, and the same as a list for people who debug. Does not belong here:
reading traces (`v1`, `v2`), requests (`http`).

A server may have the first API (`traces`, `observations`), the second (`v2/observations`) or
both; the second is used where there is a choice, since the first is going away. A missing v2
answers 404, before the keys are looked at, as a page of HTML on servers that never heard of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmark_assets.adapters.formats.base import text_or_none
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.langfuse.http import Client, LangfuseError, Params
from benchmark_assets.adapters.langfuse.readers import Api

HEALTH = "/api/public/health"
PROJECTS = "/api/public/projects"
OBSERVATIONS_V2 = "/api/public/v2/observations"
TRACES = "/api/public/traces"


class Server(NamedTuple):
    """A server.

    Attributes:
        version: Its version, such as `4.61.0`; None if it does not say.
        project: Name of the project that the keys are of; None if it does not say.
        project_id: Its id.
        api: The API to read it with.
    """

    version: str | None
    project: str | None
    project_id: str | None
    api: Api


class Step(NamedTuple):
    """One question to a server and how it went.

    Attributes:
        name: What was asked, in words.
        path: The URL's path.
        ok: Whether it works. An API that a server need not have does not make the server bad:
            see `optional`.
        detail: What the answer said.
        cure: What to do if it does not work.
        seconds: How long it took.
        kind: The error's kind; None if it works.
        optional: Whether reading traces can do without it.
    """

    name: str
    path: str
    ok: bool
    detail: str
    cure: str | None
    seconds: float
    kind: str | None = None
    optional: bool = False


def probe(client: Client, api: str = "auto") -> Server:
    """Find out what a server is.

    Args:
        client: Asks it.
        api: `v1` or `v2` if that is known already; `auto` finds out.

    Raises:
        LangfuseError: If it cannot be reached, is no Langfuse, refuses the keys or has neither
            API.
    """
    ...
