"""A verdict as the row that is stored: identity, outcome, usage.

Belongs here: laying out a run, and filling a missing cost from prices. Does not belong here:
the file it goes into.
"""

from __future__ import annotations

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.project import ModelSettings
from benchmark_assets.model.trace import Tokens, TraceSnapshot
from benchmark_assets.model.verdict import RunRow, Verdict
from benchmark_assets.scoring.evaluate import ENGINE_VERSION


def run_row(
    date: str,
    model: str,
    trace: TraceSnapshot,
    contract: Contract,
    verdict: Verdict,
    settings: ModelSettings | None,
) -> RunRow:
    """Lay out one run. `date` and `model` are the partition's."""
    cost, estimated = trace.cost_usd, False
    if cost is None:
        cost = estimate_cost(trace.tokens, settings)
        estimated = cost is not None
    return RunRow(
        date=date,
        trace_id=trace.trace_id,
        model=model,
        contract=contract.id,
        contract_version=contract.contract_version,
        contract_name=contract.name,
        workflow=contract.workflow,
        group=contract.group,
        task=trace.task,
        trial=trace.trial or 0,
        outcome=verdict.outcome,
        score=verdict.score,
        reason=verdict.reason,
        input_tokens=trace.tokens.input,
        output_tokens=trace.tokens.output,
        cache_read_tokens=trace.tokens.cache_read,
        cache_write_tokens=trace.tokens.cache_write,
        reasoning_tokens=trace.tokens.reasoning,
        cost_usd=cost,
        cost_estimated=estimated,
        duration_ms=trace.duration_ms,
        started_at=trace.started_at,
        user_id=trace.user_id,
        session_id=trace.session_id,
        agents=trace.agents,
        tool_calls=len(trace.tool_calls),
        file=trace.origin.file,
        sha256=trace.origin.sha256,
        record=trace.origin.record,
        contract_sha256=contract.content_hash,
        engine=ENGINE_VERSION,
        plugins=verdict.plugins,
    )


def estimate_cost(tokens: Tokens, settings: ModelSettings | None) -> float | None:
    """US dollars for token counts at a model's prices; None without prices or without counts.

    Input and output must be known: a price times an unknown is unknown. Cache writes are input.
    """
    if settings is None or settings.input_usd_per_mtok is None:
        return None
    if settings.output_usd_per_mtok is None or tokens.input is None or tokens.output is None:
        return None
    cached_price = settings.cached_usd_per_mtok
    if cached_price is None:
        cached_price = settings.input_usd_per_mtok
    dollars = (
        (tokens.input + (tokens.cache_write or 0)) * settings.input_usd_per_mtok
        + (tokens.output + (tokens.reasoning or 0)) * settings.output_usd_per_mtok
        + (tokens.cache_read or 0) * cached_price
    )
    return dollars / 1_000_000
