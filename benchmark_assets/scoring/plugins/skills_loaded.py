"""`skills`: each required skill was loaded, and no skill beyond the required and optional ones.

What counts as loaded: at least one attempt that did not fail, so a skill that failed first and
loaded on retry has loaded. A skill that nobody asked for and that could not be loaded either is
information: nothing of it reached the agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.trace import SkillLoad
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.activity import Activity, effects_of
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.matching import any_glob
from benchmark_assets.scoring.plugins.base import (
    Judge,
    Plugin,
    at_index,
    name_calls,
    succeeded,
    unknown_harness,
)


def _prepare(contract: Contract) -> Judge | None:
    policy = contract.skills
    if policy is None:
        return None
    required = [(name, any_glob([name])) for name in policy.required]
    optional = any_glob(policy.optional)
    declared = any_glob([*policy.required, *policy.optional])

    def judge(evidence: Evidence) -> Iterator[Check]:
        activity = evidence.activity(contract.harness)
        unknown = unknown_harness(evidence, activity, bool(activity.skills))
        if unknown is not None:
            yield unknown
            return
        for name, fits in required:
            yield _required(evidence, name, [s for s in activity.skills if fits(s.name)])
        for name in dict.fromkeys(s.name for s in activity.skills if optional(s.name)):
            yield Check(
                name=f"optional: {name}",
                outcome="info",
                observed=_observed(evidence, activity.skills, name),
            )
        yield from _extra(evidence, [s for s in activity.skills if not declared(s.name)])
        yield from _unnamed(evidence, activity)

    return judge


def _unnamed(evidence: Evidence, activity: Activity) -> Iterator[Check]:
    """Calls that loaded a skill which the trace does not name: it may be one too many."""
    calls = evidence.trace.tool_calls
    profile = next((p for p in evidence.profiles if p.name == activity.harness), None)
    unnamed = [
        index
        for index in activity.unknown
        if profile is not None and effects_of(profile, calls[index].name) is not None
        # What the trace states itself is complete; what failed loaded nothing.
        if not evidence.trace.skills and succeeded(calls[index])
    ]
    if unnamed:
        yield Check(
            name="skills are named",
            outcome="error",
            expected="every skill that was loaded is named",
            observed=name_calls(evidence, unnamed),
            reason="a skill was loaded and the trace does not show which",
            where=at_index(evidence, unnamed[0]),
        )


def _required(evidence: Evidence, name: str, loads: Sequence[SkillLoad]) -> Check:
    good = [load for load in loads if load.status != "error"]
    if good:
        return Check(
            name=f"required: {name}", outcome="passed", where=at_index(evidence, good[0].call)
        )
    if not loads:
        return Check(
            name=f"required: {name}",
            outcome="failed",
            expected="loaded",
            observed="never loaded",
            reason=f"required skill {name} was never loaded",
        )
    return Check(
        name=f"required: {name}",
        outcome="failed",
        expected="loaded",
        observed=f"{len(loads)} attempts, all failed" if len(loads) > 1 else "the attempt failed",
        reason=f"required skill {name} never loaded",
        where=at_index(evidence, loads[-1].call),
    )


def _extra(evidence: Evidence, others: Sequence[SkillLoad]) -> Iterator[Check]:
    loaded = list(dict.fromkeys(load.name for load in others if load.status != "error"))
    for name in loaded:
        yield Check(
            name=f"extra: {name}",
            outcome="failed",
            expected="no skill beyond the required and optional ones",
            observed=_observed(evidence, others, name),
            reason=f"skill {name} was loaded and is neither required nor optional",
            where=at_index(evidence, next(s.call for s in others if s.name == name)),
        )
    for name in dict.fromkeys(load.name for load in others if load.name not in loaded):
        observed = f"could not be loaded: {_observed(evidence, others, name)}"
        yield Check(name=f"extra: {name}", outcome="info", observed=observed)
    if not loaded:
        yield Check(name="no extra skills", outcome="passed")


def _observed(evidence: Evidence, loads: Sequence[SkillLoad], name: str) -> str:
    calls = [load.call for load in loads if load.name == name and load.call is not None]
    return name_calls(evidence, calls) or "loaded"


PLUGIN = Plugin(
    "skills_loaded",
    "required skills were loaded, and none beyond the optional ones",
    _prepare,
)
