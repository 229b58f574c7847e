"""Verdicts as Langfuse scores: what is written, and writing it so that it can be written again.

Belongs here: the scores of a run, and the requests that write them. Does not belong here: which
runs are written and what was written before (`pipeline.write_back`).

Langfuse knows a score by its id, its name and the UTC date of its timestamp. All three are fixed
here: the id names contract, trace and measure, the timestamp is the trace's own. Writing a verdict
again, on whatever day, so replaces it. What servers take differs:

* from 4.59 on, `scores` takes a score's own timestamp, and lists of scores;
* before, `scores` takes single scores and dates them by their arrival; the ingestion address,
  which the same servers have, dates them as it is told;
* where neither is known, single scores are sent with a timestamp: on an old server without the
  ingestion address a verdict that changes on another day then stands beside the former one.

The SDK is not used for this: it sends lists to servers that take none, and only logs what fails.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec

from benchmark_assets.adapters.formats.messages import as_dict, as_list
from benchmark_assets.adapters.langfuse.http import Client, LangfuseError
from benchmark_assets.adapters.langfuse.paging import in_threads, iso
from benchmark_assets.adapters.measures import measures, provenance
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.verdict import RunRow

SCORES = "/api/public/scores"
INGESTION = "/api/public/ingestion"

FIRST_WITH_LISTS = (4, 59)
"""The first version of the server that takes lists and timestamps."""

_MOST = 50
"""Scores a request: with long comments they stay far below what servers take."""

_ENVIRONMENT = re.compile(r"(?!langfuse)[a-z0-9_-]{1,40}")

Way = Literal["lists", "events", "single"]


class Score(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A score as the API takes it."""

    id: str
    name: str
    trace_id: str
    data_type: Literal["BOOLEAN", "NUMERIC"]
    value: float
    timestamp: str
    comment: str | None = None
    environment: str | None = None
    metadata: dict[str, Any] = {}

    @property
    def digest(self) -> str:
        """Changes when anything of it does."""
        return content_hash(canonical_json(msgspec.to_builtins(self)))[:32]


class Written(NamedTuple):
    """What became of a score: `refused` says why the server did not take it; None if it did."""

    score: Score
    refused: str | None = None


def scores_of(run: RunRow, environment: str | None) -> list[Score]:
    """The scores of a run.

    Args:
        run: The run.
        environment: The trace's environment, in which its scores are seen; None if unknown.
    """
    known = environment if environment and _ENVIRONMENT.fullmatch(environment) else None
    time = run.started_at or datetime.fromisoformat(run.date).replace(tzinfo=UTC)
    return [
        Score(
            id=f"{run.contract}:{run.trace_id}:{measure.name}",
            name=measure.name,
            trace_id=run.trace_id,
            data_type="NUMERIC" if measure.passed is None else "BOOLEAN",
            value=measure.value,
            timestamp=iso(time),
            comment=measure.comment,
            environment=known,
            metadata=provenance(run),
        )
        for measure in measures(run)
    ]


def link(base_url: str, project_id: str | None, trace_id: str) -> str:
    """Where a trace and its scores are looked at."""
    project = f"project/{project_id}/" if project_id else ""
    return f"{base_url}/{project}traces/{trace_id}"


class ScoreWriter:
    """Writes scores to a server.

    Args:
        client: Asks the server.
        version: The server's version, such as `4.61.0`; None if it is not known.
    """

    def __init__(self, client: Client, version: str | None) -> None:
        self._client = client
        self.way: Way = _way(version)

    def write(self, scores: Sequence[Score]) -> Iterator[Written]:
        """Write scores; yield what became of each as soon as that is known.

        Raises:
            LangfuseError: If the server cannot be written to any further. What was yielded is
                written.
        """
        size = 1 if self.way == "single" else _MOST
        batches = (scores[begin : begin + size] for begin in range(0, len(scores), size))
        for written in in_threads(self._batch, batches, self._client.limits.in_flight):
            yield from written

    def _batch(self, scores: Sequence[Score]) -> list[Written]:
        ways: dict[Way, Callable[[Sequence[Score]], list[Written]]] = {
            "lists": self._list,
            "events": self._events,
            "single": self._singles,
        }
        return ways[self.way](scores)

    def _list(self, scores: Sequence[Score]) -> list[Written]:
        try:
            answer = as_dict(_decoded(self._client.post(SCORES, scores)))
        except LangfuseError as error:
            # Not a list after all, or one of them spoils it for the others.
            if error.kind not in ("refused", "too_large"):
                raise
            return self._singles(scores)
        # Which ones were not taken is found out by sending each again: that changes nothing.
        spoilt = answer.get("rejected") or answer.get("errors")
        return self._singles(scores) if spoilt else [Written(score) for score in scores]

    def _events(self, scores: Sequence[Score]) -> list[Written]:
        batch = [
            {
                # One that is sent again is the same event.
                "id": score.digest,
                "type": "score-create",
                "timestamp": score.timestamp,
                "body": score,
            }
            for score in scores
        ]
        try:
            answer = as_dict(_decoded(self._client.post(INGESTION, {"batch": batch})))
        except LangfuseError as error:
            if error.kind != "gone":
                raise
            self.way = "single"
            return self._singles(scores)
        refused = {
            item.get("id"): str(item.get("message") or item.get("error") or "refused")
            for item in map(as_dict, as_list(answer.get("errors")))
        }
        return [Written(score, refused.get(score.digest)) for score in scores]

    def _singles(self, scores: Sequence[Score]) -> list[Written]:
        return [self._single(score) for score in scores]

    def _single(self, score: Score) -> Written:
        try:
            self._client.post(SCORES, score)
        except LangfuseError as error:
            if error.kind != "refused":
                raise
            return Written(score, error.message)
        return Written(score)


def _way(version: str | None) -> Way:
    numbers = re.match(r"v?(\d+)\.(\d+)", version or "")
    if numbers is None:
        return "single"
    return "lists" if (int(numbers[1]), int(numbers[2])) >= FIRST_WITH_LISTS else "events"


def _decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError:
        return None
