"""`tools`: every required tool was used, no forbidden one was.

A required tool must have succeeded at least once: a call that only ever failed did not do the
job. With `require_success: false` appearing is enough. A forbidden tool fails the run by being
called, whether or not the call succeeded. A section that is there and empty allows no call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.trace import ToolCall
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.matching import any_glob
from benchmark_assets.scoring.plugins.base import (
    Judge,
    Plugin,
    Quick,
    at,
    name_call,
    name_calls,
    succeeded,
)


def _prepare(contract: Contract) -> Judge | None:
    policy = contract.tools
    if policy is None:
        return None
    required = [(name, any_glob([name])) for name in policy.required]
    forbidden = [
        (name, any_glob([name]), Check(name=f"forbidden: {name}", outcome="passed"))
        for name in policy.forbidden
    ]
    declared = any_glob([*policy.required, *policy.optional, *policy.forbidden])

    def judge(evidence: Evidence) -> Iterator[Check]:
        trace = evidence.trace
        for name, fits in required:
            used = [c for c in enumerate(trace.tool_calls) if fits(c[1].name)]
            yield _required(name, used, policy.require_success)
        if policy.allows_nothing:
            yield _no_calls(evidence)
            return
        called = {call.name for call in trace.tool_calls}
        for name, fits, fine in forbidden:
            if not any(map(fits, called)):
                yield fine
                continue
            used = [(i, call) for i, call in enumerate(trace.tool_calls) if fits(call.name)]
            calls = ", ".join(name_call(call, i) for i, call in used)
            yield Check(
                name=f"forbidden: {name}",
                outcome="failed",
                expected="never called",
                observed=calls,
                reason=f"forbidden tool was called: {calls}",
                where=at(used[0][1], used[0][0]),
            )
        others = Counter(call.name for call in trace.tool_calls if not declared(call.name))
        if others:
            observed = ", ".join(f"{name} × {count}" for name, count in sorted(others.items()))
            yield Check(name="undeclared tools", outcome="info", observed=observed)

    return judge


def _quick(contract: Contract) -> Quick | None:
    policy = contract.tools
    if policy is None or not policy.forbidden or policy.required:
        return None
    unwanted = any_glob(policy.forbidden)
    return lambda evidence: not any(map(unwanted, evidence.names))


def _required(name: str, used: list[tuple[int, ToolCall]], success: bool) -> Check:
    expected = "called successfully" if success else "called"
    good = [(i, call) for i, call in used if not success or succeeded(call)]
    if good:
        return Check(
            name=f"required: {name}",
            outcome="passed",
            expected=expected,
            where=at(good[0][1], good[0][0]),
        )
    if not used:
        return Check(
            name=f"required: {name}",
            outcome="failed",
            expected=expected,
            observed="never called",
            reason=f"required tool {name} was never called",
        )
    index, call = used[-1]
    return Check(
        name=f"required: {name}",
        outcome="failed",
        expected=expected,
        observed=f"{len(used)} calls, all failed: {call.error or 'no message'}",
        reason=f"required tool {name} never succeeded",
        where=at(call, index),
    )


def _no_calls(evidence: Evidence) -> Check:
    calls = evidence.trace.tool_calls
    if not calls:
        return Check(name="no calls", outcome="passed")
    return Check(
        name="no calls",
        outcome="failed",
        expected="no tool call: the section allows none",
        observed=name_calls(evidence, range(len(calls))),
        reason=f"{name_call(calls[0], 0)} was called where no tool is allowed",
        where=at(calls[0], 0),
    )


PLUGIN = Plugin(
    "tool_calls",
    "required tools were called and succeeded, forbidden ones never were",
    _prepare,
    _quick,
)
