"""Duration, tokens and cost, of the run and of each model call: reported, never scored.

What was not recorded is not listed. Limits on the same figures are `budget`'s.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.trace import Generation, Tokens, TraceSnapshot
from benchmark_assets.model.verdict import Check, Where
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.plugins.base import Judge, Plugin

_BUCKETS = ("input", "output", "cache read", "cache write", "reasoning")


def _prepare(contract: Contract) -> Judge | None:
    def judge(evidence: Evidence) -> Iterator[Check]:
        trace = evidence.trace
        for name, text in _of_run(trace):
            if text is not None:
                yield Check(name=name, outcome="info", observed=text)
        for number, generation in enumerate(trace.generations, 1):
            yield _of_generation(number, generation)

    return judge


def _of_run(trace: TraceSnapshot) -> Iterator[tuple[str, str | None]]:
    seconds = None if trace.duration_ms is None else f"{trace.duration_ms / 1000:,.3f} s"
    yield "duration", seconds
    yield "tokens", _tokens(trace.tokens)
    yield "cost", _cost(trace.cost_usd)
    yield "model calls", f"{len(trace.generations)}" if trace.generations else None


def _of_generation(number: int, generation: Generation) -> Check:
    parts = [generation.model, _tokens(generation.tokens), _cost(generation.cost_usd)]
    if generation.started_at is not None and generation.ended_at is not None:
        seconds = (generation.ended_at - generation.started_at).total_seconds()
        parts.append(f"{seconds:,.3f} s")
    return Check(
        name=f"model call {number}",
        outcome="info",
        observed="; ".join(part for part in parts if part) or "nothing recorded",
        where=None if generation.span_id is None else Where(span_id=generation.span_id),
    )


def _tokens(tokens: Tokens) -> str | None:
    total = tokens.total
    if total is None:
        return None
    parts = zip(_BUCKETS, tokens.buckets(), strict=True)
    listed = ", ".join(f"{name} {count:,}" for name, count in parts if count is not None)
    return f"{total:,} ({listed})"


def _cost(cost: float | None) -> str | None:
    return None if cost is None else f"${cost:,.6f}"


PLUGIN = Plugin(
    "resource_usage",
    "duration, tokens and cost of the run and of each model call; never fails",
    _prepare,
    lambda contract: lambda evidence: True,
)
