"""Looking for one trace, or for any, step by step, for people who debug.

Belongs here: the questions that tell why a trace is not found, or not whole. Does not belong
here: what a server can (`servers`), reading traces for real (`v1`, `v2`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from benchmark_assets.adapters.formats.base import text_or_none
from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.langfuse.errors import LangfuseError
from benchmark_assets.adapters.langfuse.http import Client, Params
from benchmark_assets.adapters.langfuse.readers import Api
from benchmark_assets.adapters.langfuse.rows import Row, Rows, data_of, is_root
from benchmark_assets.adapters.langfuse.servers import OBSERVATIONS, OBSERVATIONS_V2, TRACES, Step

_SAMPLE = 100

_LEAN = "core,basic,time"

_LOST = (
    "check the id, and that the keys are of the trace's project; one that was sent a moment ago "
    "takes a while"
)


class _Found(NamedTuple):
    """What an answer said: whether that is well, in words, and what to do if it is not."""

    ok: bool
    detail: str
    cure: str | None = None


def environment_steps(client: Client, api: Api) -> Iterator[Step]:
    """Whether there are traces in the environments that are asked for, and where else."""
    asked = client.credentials.environments
    path = _LISTS[api]
    yield _step("Environment", path, lambda: _environment(client, api, asked))


def trace_steps(client: Client, apis: Sequence[Api], trace_id: str) -> Iterator[Step]:
    """Whether a trace is there, by each API that the server has.

    Args:
        client: Asks the server.
        apis: The APIs that work.
        trace_id: The trace.
    """
    asked = client.credentials.environments
    if "v1" in apis:
        path = f"{TRACES}/{quote(trace_id, safe='')}"
        step = _step("The trace (API v1)", path, lambda: _trace(client, path, asked))
        there = step.ok
        yield step
        params: Params = {"traceId": trace_id, "limit": _SAMPLE}
        yield _step(
            "Its observations (API v1)",
            OBSERVATIONS,
            lambda: _rows(client.get_json(OBSERVATIONS, params), asked, there=there),
        )
    if "v2" in apis:
        lean: Params = {"traceId": trace_id, "limit": 1000, "fields": _LEAN}
        yield _step(
            "Its observations (API v2)",
            OBSERVATIONS_V2,
            lambda: _rows(client.get_json(OBSERVATIONS_V2, lean), asked, there=False),
        )


def _step(name: str, path: str, ask: Callable[[], _Found]) -> Step:
    started = time.perf_counter()
    try:
        found = ask()
    except LangfuseError as error:
        seconds = time.perf_counter() - started
        cure = error.cure
        if error.kind == "gone":
            cure = _LOST
        return Step(name, path, False, error.message, cure, seconds, error.kind)
    return Step(name, path, found.ok, found.detail, found.cure, time.perf_counter() - started)


# What there is.

_LISTS: dict[Api, str] = {"v1": TRACES, "v2": OBSERVATIONS_V2}


def _environment(client: Client, api: Api, asked: Sequence[str]) -> _Found:
    if not asked:
        return _Found(True, "every environment is asked")
    names = ", ".join(f"'{name}'" for name in asked)
    if _sample(client, api, asked, 1):
        return _Found(True, f"{names} has traces")
    found = Counter(
        text_or_none(row.get("environment")) for row in _sample(client, api, (), _SAMPLE)
    )
    others = sorted(name for name in found if name)
    if not others:
        return _Found(True, "the project has no traces yet", "send one, then look again")
    there = ", ".join(f"'{name}'" for name in others)
    return _Found(
        True,
        f"{names} has no traces; the newest are in {there}",
        "choose by --langfuse-environment, or LANGFUSE_ENVIRONMENT; '*' is every one",
    )


def _sample(client: Client, api: Api, environments: Sequence[str], limit: int) -> list[Row]:
    fields = "core,basic" if api == "v2" else "core"
    params: Params = {"environment": environments, "limit": limit, "fields": fields}
    return data_of(client.get_json(_LISTS[api], params))


# One trace.


def _trace(client: Client, path: str, asked: Sequence[str]) -> _Found:
    trace = as_dict(client.get_json(path))
    count = len(as_list(trace.get("observations")))
    name = text_or_none(trace.get("name")) or "no name"
    environment = text_or_none(trace.get("environment"))
    return _placed(f"{count} observations, {name}", {environment}, asked)


def _rows(answer: Any, asked: Sequence[str], *, there: bool) -> _Found:
    """What a trace's rows say; `there` if the trace is known to exist without them."""
    found = data_of(answer)
    if not found:
        return _Found(there, "none", "none have arrived yet, if there are any" if there else _LOST)
    rows = Rows(found)
    more = " or more" if len(found) >= _SAMPLE else ""
    repeated = "" if len(rows) == len(found) else f" ({len(found) - len(rows)} came twice)"
    tops = [row for row in rows if is_root(row)]
    root = "no root" if not tops else "its root has ended" if rows.ended else "its root has no end"
    told = _placed(
        f"{len(rows)}{more}{repeated}, {root}",
        {text_or_none(row.get("environment")) for row in tops or list(rows)},
        asked,
    )
    if told.cure is None and not rows.ended and not more:
        cure = "it is still running or arriving, or its agent died: it is waited for, see --wait"
        return told._replace(cure=cure)
    return told


def _placed(detail: str, environments: set[str | None], asked: Sequence[str]) -> _Found:
    """What was found, and whether it is where one looks."""
    there = sorted(name for name in environments if name)
    if not there:
        return _Found(True, detail)
    detail += f", in environment {', '.join(repr(name) for name in there)}"
    if asked and not set(there) & set(asked):
        return _Found(
            True,
            detail,
            "it is given by --trace-id only: whoever asks for "
            f"{', '.join(repr(name) for name in asked)} does not see it",
        )
    return _Found(True, detail)
