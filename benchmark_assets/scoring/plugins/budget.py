"""`budget`: what a run may use at most: steps, calls, tokens, money, time, retries.

A figure that the trace does not record keeps no limit and breaks none: the run cannot be
evaluated. Calls of tools and their retries are always known, since a trace is its calls.

A retry is a further call of one tool with the same arguments, whatever came of it; the tool and
arguments that were repeated most decide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from benchmark_assets.model.contract import Budget, Contract
from benchmark_assets.model.identity import canonical_json
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Check, Where
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.plugins.base import Judge, Plugin, at, name_call


class _Used(NamedTuple):
    """How much was used; None if that was not recorded."""

    amount: float | None
    detail: str | None = None
    where: Where | None = None


def _steps(trace: TraceSnapshot) -> _Used:
    return _Used(len(trace.generations) or None)


def _tool_calls(trace: TraceSnapshot) -> _Used:
    return _Used(len(trace.tool_calls))


def _tokens(trace: TraceSnapshot) -> _Used:
    return _Used(trace.tokens.total)


def _cost(trace: TraceSnapshot) -> _Used:
    return _Used(trace.cost_usd)


def _duration(trace: TraceSnapshot) -> _Used:
    return _Used(None if trace.duration_ms is None else trace.duration_ms / 1000)


def _retries(trace: TraceSnapshot) -> _Used:
    keys = [(call.name, canonical_json(call.arguments)) for call in trace.tool_calls]
    if not keys:
        return _Used(0)
    key, count = Counter(keys).most_common(1)[0]
    if count == 1:
        return _Used(0)
    last = max(index for index, other in enumerate(keys) if other == key)
    call = trace.tool_calls[last]
    return _Used(count - 1, f"the last is {name_call(call, last)}", at(call, last))


_LIMITS: dict[str, tuple[str, str, Callable[[TraceSnapshot], _Used]]] = {
    "max_steps": ("steps", "{:,.0f}", _steps),
    "max_tool_calls": ("tool calls", "{:,.0f}", _tool_calls),
    "max_tokens": ("tokens", "{:,.0f}", _tokens),
    "max_cost_usd": ("cost", "${:,.6f}", _cost),
    "max_duration_s": ("duration", "{:,.3f} s", _duration),
    "max_retries": ("retries", "{:,.0f}", _retries),
}
"""Key of the section → what it limits, how that is written, and how much of it a trace used."""


def _prepare(contract: Contract) -> Judge | None:
    budget = contract.budget
    if budget is None:
        return None
    limits = _limits(budget)

    def judge(evidence: Evidence) -> Iterator[Check]:
        for key, limit in limits:
            name, form, measure = _LIMITS[key]
            yield _check(name, form, limit, measure(evidence.trace))

    return judge


def _limits(budget: Budget) -> list[tuple[str, float]]:
    return [(key, value) for key in _LIMITS if (value := getattr(budget, key)) is not None]


def _check(name: str, form: str, limit: float, used: _Used) -> Check:
    expected = f"at most {form.format(limit)}"
    if used.amount is None:
        return Check(
            name=name,
            outcome="error",
            expected=expected,
            observed="not recorded",
            reason=f"the trace does not record {name}, so the limit cannot be judged",
        )
    observed = form.format(used.amount)
    if used.amount <= limit:
        return Check(name=name, outcome="passed", expected=expected, observed=observed)
    return Check(
        name=name,
        outcome="failed",
        expected=expected,
        observed=observed if used.detail is None else f"{observed}; {used.detail}",
        reason=f"{name}: {observed} where {form.format(limit)} are allowed",
        where=used.where,
    )


PLUGIN = Plugin(
    "budget",
    "steps, calls, tokens, cost, time and retries stayed within their limits",
    _prepare,
)
