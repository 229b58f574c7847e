"""`trace_health`: the run ended as it should, is in no error state, and nothing in it failed.

Judged for every contract. Alone it leaves a run unchecked: a healthy run that nothing was
demanded of is not a success. What a format does not record is skipped, never passed; a
demanded `ends_with` on such a trace cannot be evaluated.

Recovered: a failed call or span in a run that is in no error state. Each failure counts once,
where it happened, and not again for what wraps it.

Where a java service is among the outputs, the project must have been built after the last
change to the service, and the last build must have passed. The service's files are those of its
resource and all under `services/{name}/`. A command line that changes them and builds is taken
for having built last.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.resources import Target
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Check, CheckOutcome, Where
from benchmark_assets.scoring.activity import Activity
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.matching import Match, any_glob, glob_escape, show
from benchmark_assets.scoring.plugins.base import (
    Judge,
    Plugin,
    Quick,
    at,
    at_index,
    name_call,
    name_calls,
    path_map,
    succeeded,
    unknown_harness,
)


def _prepare(contract: Contract) -> Judge | None:
    endings = contract.ends_with
    allowed = None if endings is None else any_glob(endings)
    fail_on_recovered = contract.trace_health.recovered_errors == "fail"
    targets = [contract.target(demand) for demand in contract.output or ()]
    services = {t.label: t for t in targets if t.kind == "javaservice"}

    def judge(evidence: Evidence) -> Iterator[Check]:
        trace = evidence.trace
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
        elif trace.ended_normally is None and not _recorded(trace):
            yield Check(name="no error state", outcome="skipped", observed="status is not recorded")
        else:
            yield Check(name="no error state", outcome="passed")
        yield from _failed_calls(trace, in_error, fail_on_recovered)
        yield from _failed_spans(trace, in_error, fail_on_recovered)
        for service in services.values():
            yield _built(contract, evidence, service)

    return judge


def _quick(contract: Contract) -> Quick | None:
    endings = contract.ends_with
    allowed = None if endings is None else any_glob(endings)
    fail_on_recovered = contract.trace_health.recovered_errors == "fail"
    if contract.output:
        return None

    def settle(evidence: Evidence) -> bool:
        trace = evidence.trace
        if allowed is None:
            if trace.ended_normally is False or trace.error is not None:
                return False
        elif trace.ended is None or not allowed(trace.ended):
            return False
        return not fail_on_recovered or (evidence.all_succeeded and not trace.error_spans)

    return settle


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
        if trace.tool_calls or trace.failures_recorded:
            yield _unless_unrecorded(trace, "no failed calls")
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


def _recorded(trace: TraceSnapshot) -> bool:
    """Whether the trace would show it if something had failed."""
    return trace.failures_recorded or any(call.status is not None for call in trace.tool_calls)


def _unless_unrecorded(trace: TraceSnapshot, name: str) -> Check:
    """A pass, if the trace records whether calls failed at all."""
    if _recorded(trace):
        return Check(name=name, outcome="passed")
    return Check(name=name, outcome="skipped", observed="status is not recorded")


def _failed_spans(trace: TraceSnapshot, in_error: bool, fail_on_recovered: bool) -> Iterator[Check]:
    spans = trace.error_spans
    if not spans:
        if trace.tool_calls or trace.failures_recorded:
            yield _unless_unrecorded(trace, "no error spans")
        return
    message = f": {show(spans[0].message)}" if spans[0].message else ""
    recovered = "" if in_error else " and was recovered from"
    yield Check(
        name="no error spans",
        outcome="failed" if fail_on_recovered or in_error else "info",
        expected="no failed span",
        observed=", ".join(f"{span.kind or 'span'} {span.name}" for span in spans),
        reason=f"{spans[0].kind or 'span'} {spans[0].name} failed{recovered}{message}",
        where=Where(span_id=spans[0].span_id),
    )


def _built(contract: Contract, evidence: Evidence, service: Target) -> Check:
    """Whether the last build came after the last change to a service, and passed."""
    name = f"build: {service.label}"
    expected = "a build that passed after the last change to it"
    activity = evidence.activity(contract.harness)
    unknown = unknown_harness(evidence, activity, False)
    if unknown is not None:
        return msgspec.structs.replace(unknown, name=name)
    changed = _last_change(activity, service)
    builds = [build for build in activity.builds if build.kind == "build"]
    after = [build for build in builds if changed is None or build.call >= changed]
    last = after[-1] if after else builds[-1] if builds else None
    if after and after[-1].status == "ok":
        in_one = "changed and built by one call, which is taken for having built last"
        return Check(
            name=name,
            outcome="passed",
            observed=in_one if after[-1].call == changed else None,
            where=at_index(evidence, after[-1].call),
        )
    if after and after[-1].status is None:
        reason = "the trace does not show whether the last build passed"
        outcome: CheckOutcome = "error"
    else:
        reason = (
            "the last build failed"
            if after
            else f"{service.label} was changed after the last build"
            if builds
            else "there was no build"
        )
        outcome = "failed"
    return Check(
        name=name,
        outcome=outcome,
        expected=expected,
        observed=name_calls(evidence, [build.call for build in builds]) or "no build",
        reason=reason,
        where=None if last is None else at_index(evidence, last.call),
    )


def _last_change(activity: Activity, service: Target) -> int | None:
    """Index of the last call that changed a file of the service; None if none did."""
    paths = path_map(activity, service.paths)
    own = [f"services/{glob_escape(service.name or '')}/**"]
    calls = [
        event.call
        for event in activity.files
        if event.operation != "read" and event.status != "error" and event.call is not None
        for path in (event.path, event.moved_to)
        if path is not None and (paths.declared_of(path) is not None or paths.fits(path, own))
    ]
    return max(calls, default=None)


PLUGIN = Plugin(
    "trace_health",
    "the run ended as it should, is in no error state, and nothing in it failed",
    _prepare,
    _quick,
)
