"""A verdict as named measures, which is how other systems take results of evaluations.

Belongs here: which measures a run has, their names and their words. Does not belong here: how a
system wants them (`langfuse.scores`, `evaluation_events`).

A run that was resolved or not has `passed`; its score is `score`; every plugin that scored
anything has a measure of its name. What was not measured has none: it is not zero.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from benchmark_assets.model.identity import content_hash
from benchmark_assets.model.verdict import PluginResult, RunRow

PASSED = "passed"
SCORE = "score"

_SHOWN = 5
_LONGEST = 2000


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """One result of a run.

    Attributes:
        name: What was measured.
        passed: Whether it passed; None if it is a number.
        value: 1 or 0, or the number, from 0 to 1.
        comment: What was wrong; None if nothing was.
        span_id: The place in the trace that decided it, if all that was wrong is one place.
    """

    name: str
    passed: bool | None
    value: float
    comment: str | None = None
    span_id: str | None = None


def measures(run: RunRow) -> Iterator[Measure]:
    """What was measured of a run; nothing if it could not be evaluated."""
    if run.outcome in ("resolved", "unresolved"):
        yield _boolean(PASSED, run.outcome == "resolved", run.reason)
    if run.score is not None:
        yield Measure(name=SCORE, passed=None, value=run.score)
    for result in run.plugins:
        if result.passed is not None:
            yield _boolean(_name(result.plugin), result.passed, *_violations(result))


def _boolean(
    name: str, passed: bool, comment: str | None = None, span_id: str | None = None
) -> Measure:
    said = None if passed or comment is None else _cut(comment)
    return Measure(name=name, passed=passed, value=float(passed), comment=said, span_id=span_id)


def _name(plugin: str) -> str:
    """A plugin's name, kept apart from the names of the run's own measures."""
    return f"plugin {plugin}" if plugin in (PASSED, SCORE) else plugin


def _violations(result: PluginResult) -> tuple[str | None, str | None]:
    """What failed of a plugin's checks, in words, and the one place where it did."""
    failed = [check for check in result.checks if check.outcome == "failed"]
    lines = [f"{check.name}: {check.reason or 'failed'}" for check in failed[:_SHOWN]]
    if len(failed) > _SHOWN:
        lines.append(f"and {len(failed) - _SHOWN} more")
    places = {check.where.span_id if check.where else None for check in failed}
    return "\n".join(lines) or None, places.pop() if len(places) == 1 else None


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def provenance(run: RunRow) -> dict[str, Any]:
    """What a measure is of: which contract judged which run, and how."""
    return {
        "contract": run.contract,
        "contract_version": run.contract_version,
        "contract_sha256": run.contract_sha256,
        "engine": run.engine,
        "run_id": run_id(run),
        "outcome": run.outcome,
    }


def run_id(run: RunRow) -> str:
    """Names a run: a trace, read from one file, under one contract. The same in every store."""
    place = (run.contract, run.date, run.model, run.trace_id, run.file, run.record or "")
    return content_hash(*place)[:32]
