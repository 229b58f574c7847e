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

from benchmark_assets.adapters.formats.base import id_or_none, text_or_none
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.langfuse import errors
from benchmark_assets.adapters.langfuse.errors import Kind, LangfuseError
from benchmark_assets.adapters.langfuse.http import Client, Params
from benchmark_assets.adapters.langfuse.readers import Api

HEALTH = "/api/public/health"
PROJECTS = "/api/public/projects"
OBSERVATIONS_V2 = "/api/public/v2/observations"
TRACES = "/api/public/traces"
OBSERVATIONS = "/api/public/observations"

_ONE: Params = {"limit": 1}

_PATHS: dict[Api, str] = {"v2": OBSERVATIONS_V2, "v1": TRACES}


class Server(NamedTuple):
    """A server.

    Attributes:
        version: Its version, such as `4.61.0`; None if it does not say.
        project: Name of the project that the keys are of; None if it does not say.
        project_id: That project's id.
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
        ok: Whether it works.
        detail: What the answer said.
        cure: What to do if it does not work.
        seconds: How long it took.
        kind: The error's kind; None if it works.
        optional: Whether traces can be read although it does not work.
    """

    name: str
    path: str
    ok: bool
    detail: str
    cure: str | None
    seconds: float
    kind: Kind | None = None
    optional: bool = False


def probe(client: Client, api: str = "auto") -> Server:
    """Find out what a server is.

    Args:
        client: Asks it.
        api: `v1` or `v2` if that is settled; `auto` finds out, and takes v2 if there are both.

    Raises:
        LangfuseError: If it cannot be reached, is no Langfuse, refuses the keys or has neither
            API.
    """
    version = text_or_none(as_dict(_ask_health(client)).get("version"))
    project = _project(client.get_json(PROJECTS))
    name, project_id = text_or_none(project.get("name")), id_or_none(project.get("id"))
    missing: list[LangfuseError] = []
    choices: tuple[Api, ...] = ("v1",) if api == "v1" else ("v2",) if api == "v2" else ("v2", "v1")
    for choice in choices:
        try:
            client.get_json(_PATHS[choice], _ONE)
        except LangfuseError as error:
            if error.kind != "gone":
                raise
            missing.append(error)
        else:
            return Server(version, name, project_id, choice)
    raise LangfuseError(
        "gone",
        "; ".join(error.message for error in missing),
        _no_api(version, choices),
        404,
    )


def _no_api(version: str | None, choices: tuple[Api, ...]) -> str:
    if len(choices) == 1:
        return "leave out `api`, or set it to `auto`, so that what the server has is used"
    return f"this server ({version or 'of an unknown version'}) can only be read by blob exports"


def _ask_health(client: Client) -> Any:
    """The health answer. It needs no keys: what fails here is the address or the server."""
    try:
        return client.get_json(HEALTH)
    except LangfuseError as error:
        if error.kind != "gone":
            raise
        status = error.status
    raise errors.wrong_host(client.credentials.base_url, "no Langfuse answers here", status)


def _project(answer: Any) -> dict[str, Any]:
    return as_dict(next(iter(as_list(as_dict(answer).get("data"))), None))


# For people who debug.


def steps(client: Client) -> Iterator[Step]:
    """Ask a server everything that reading needs, one step after the other.

    Never raises: every step says how it went, whatever the steps before it said. The last one
    asks nothing and says whether traces can be read, and how.
    """
    works: set[str] = set()
    for name, path, params in (
        ("Server", HEALTH, None),
        ("Keys and project", PROJECTS, None),
        ("Observations (API v2)", OBSERVATIONS_V2, _ONE),
        ("Traces (API v1)", TRACES, _ONE),
        ("Observations (API v1)", OBSERVATIONS, _ONE),
    ):
        step = _step(client, name, path, params)
        if step.ok:
            works.add(path)
        elif step.kind == "gone" and path not in (HEALTH, PROJECTS):
            cure = "not every server has it: see the last step"
            step = step._replace(optional=True, cure=cure)
        yield step
    yield _conclusion(works)


def _conclusion(works: set[str]) -> Step:
    if OBSERVATIONS_V2 in works:
        return Step("Reading", OBSERVATIONS_V2, True, "traces are read with API v2", None, 0.0)
    if {TRACES, OBSERVATIONS} <= works:
        return Step("Reading", TRACES, True, "traces are read with API v1", None, 0.0)
    cure = "put right what failed above, from the top"
    return Step("Reading", TRACES, False, "traces cannot be read", cure, 0.0)


def _step(client: Client, name: str, path: str, params: Params | None) -> Step:
    started = time.perf_counter()
    try:
        answer = as_dict(client.get_json(path, params))
    except LangfuseError as error:
        seconds = time.perf_counter() - started
        return Step(name, path, False, error.message, error.cure, seconds, error.kind)
    detail = _detail(path, answer)
    return Step(name, path, True, detail, None, time.perf_counter() - started)


def _detail(path: str, answer: dict[str, Any]) -> str:
    if path == HEALTH:
        return f"version {text_or_none(answer.get('version')) or 'unknown'}"
    if path == PROJECTS:
        project = _project(answer)
        return f"project '{project.get('name')}' ({project.get('id')})"
    total = as_dict(answer.get("meta")).get("totalItems")
    count = len(as_list(answer.get("data")))
    return f"{total} in all" if isinstance(total, int) else f"answers ({count} asked for and given)"
