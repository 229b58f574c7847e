"""`trace_health`: the run ended as it should, is in no error state, and its calls did not fail.

Judged for every contract. Alone it leaves a run unchecked: a healthy run that nothing was
demanded of is not a success. What a format does not record is skipped, never passed; a
demanded `ends_with` on such a trace cannot be evaluated.

Recovered: a failed call in a run that is in no error state. Each failed call counts once.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.matching import Match, any_glob, show
from benchmark_assets.scoring.plugins.base import Judge, Plugin, at, name_call, succeeded


def _prepare(contract: Contract) -> Judge | None:
    endings = contract.ends_with
    allowed = None if endings is None else any_glob(endings)
    fail_on_recovered = contract.trace_health.recovered_errors == "fail"

    def judge(trace: TraceSnapshot) -> Iterator[Check]:
        if allowed is not None and endings is not None:
            yield _declared_ending(trace, allowed, " or ".join(endings))
        else:
            yield _normal_ending(trace)
        # An ending that the contract asks for is no error, whatever the harness calls it.
        as_asked = allowed is not None and trace.ended is not None and allowed(trace.ended)
        in_error = trace.error is not None and not as_asked
        if in_error:
            yield Check(
                name="no error state",
                outcome="failed",
                expected="no error",
                observed=trace.error,
                reason=f"the run failed: {trace.error}",
            )
        elif trace.ended_normally is None and all(call.status is None for call in trace.tool_calls):
            yield Check(name="no error state", outcome="skipped", observed="status is not recorded")
        else:
            yield Check(name="no error state", outcome="passed")
        yield from _failed_calls(trace, in_error, fail_on_recovered)

    return judge


def _declared_ending(trace: TraceSnapshot, allowed: Match, expected: str) -> Check:
    if trace.ended is None:
        return Check(
            name="ended",
            outcome="error",
            expected=expected,
            observed="not recorded",
            reason="the trace does not record how the run ended",
        )
    if allowed(trace.ended):
        return Check(name="ended", outcome="passed", observed=trace.ended)
    return Check(
        name="ended",
        outcome="failed",
        expected=expected,
        observed=trace.ended,
        reason=f"the run ended by {trace.ended}",
    )


def _normal_ending(trace: TraceSnapshot) -> Check:
    if trace.ended_normally is None:
        return Check(name="ended", outcome="skipped", observed="not recorded")
    if trace.ended_normally:
        return Check(name="ended", outcome="passed", observed=trace.ended)
    return Check(
        name="ended",
        outcome="failed",
        expected="an end of the agent's own",
        observed=trace.ended or "abnormal end",
        reason=f"the run ended by {trace.ended or 'an abnormal end'}",
    )


def _failed_calls(trace: TraceSnapshot, in_error: bool, fail_on_recovered: bool) -> Iterator[Check]:
    failed = [(i, call) for i, call in enumerate(trace.tool_calls) if not succeeded(call)]
    if not failed:
        if any(call.status is not None for call in trace.tool_calls):
            yield Check(name="no failed calls", outcome="passed")
        return
    index, call = failed[0]
    observed = ", ".join(name_call(other, i) for i, other in failed)
    message = f": {show(call.error)}" if call.error else ""
    if in_error:
        reason = f"{name_call(call, index)} failed{message}"
    else:
        reason = f"{name_call(call, index)} failed and was recovered from{message}"
    yield Check(
        name="no failed calls",
        outcome="failed" if fail_on_recovered or in_error else "info",
        expected="no failed call",
        observed=observed,
        reason=reason,
        where=at(call, index),
    )


PLUGIN = Plugin(
    "trace_health",
    "the run ended as it should, is in no error state, and its calls did not fail",
    _prepare,
)
