"""What a plugin is: a contract in, a judge of traces out.

Belongs here: the plugin's type and what several plugins say the same way. Does not belong
here: any rule.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.verdict import Check, Where
from benchmark_assets.scoring.activity import Activity, effects_of
from benchmark_assets.scoring.calls import at, name_call, succeeded
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.matching import show
from benchmark_assets.scoring.paths import PathMap

__all__ = [
    "Judge",
    "Plugin",
    "Quick",
    "at",
    "at_index",
    "declared_paths",
    "mentioned",
    "name_call",
    "name_calls",
    "path_map",
    "succeeded",
    "unknown_harness",
]

Judge = Callable[[Evidence], Iterable[Check]]

Quick = Callable[[Evidence], bool | None]
"""Whether a plugin's checks all pass, in no words: for those who ask for the verdict alone.

True: none of its checks fails or is in error, and, if it demands anything, one passes. False: one
fails or is in error. None: a doubt, which the checks themselves settle.
"""


def no_quick(contract: Contract) -> Quick | None:
    """Of a plugin that settles everything by its checks."""
    return None


@dataclass(frozen=True)
class Plugin:
    """One family of checks.

    Attributes:
        name: What verdicts and reports call it.
        description: What it checks, in one line, for people who choose plugins.
        prepare: Compiles what a contract demands, once, into a judge for any number of
            traces; None if the contract has nothing for this plugin, which then is skipped.
        quick: Compiles the same demands into their verdict alone; None where that saves nothing.
    """

    name: str
    description: str
    prepare: Callable[[Contract], Judge | None]
    quick: Callable[[Contract], Quick | None] = no_quick


def name_calls(evidence: Evidence, indices: Iterable[int]) -> str:
    """Several calls, each as `name_call` gives it; indices that no call has are left out.

    A trace that states its files itself may state any.
    """
    calls = evidence.trace.tool_calls
    return ", ".join(name_call(calls[i], i) for i in indices if 0 <= i < len(calls))


def at_index(evidence: Evidence, index: int | None) -> Where | None:
    """The place of the call with an index; None without one, and where no call has it."""
    calls = evidence.trace.tool_calls
    return at(calls[index], index) if index is not None and 0 <= index < len(calls) else None


def unknown_harness(evidence: Evidence, activity: Activity, recorded: bool) -> Check | None:
    """Why what the calls did cannot be told; None if it can.

    Args:
        evidence: The trace.
        activity: What was made of it.
        recorded: Whether the trace itself states what the plugin looks at.
    """
    calls = evidence.trace.tool_calls
    # A profile that was named and knows none of the tools says as little as none.
    known = [p for p in evidence.profiles if p.name == activity.harness]
    if recorded or not calls or any(effects_of(p, call.name) for p in known for call in calls):
        return None
    tools = ", ".join(sorted({call.name for call in calls}))
    return Check(
        name="harness",
        outcome="error",
        expected="a harness profile that knows the trace's tools",
        observed=f"tools: {tools}",
        reason="no harness profile says what these tools do; name one under `harness`, or add one",
    )


def declared_paths(contract: Contract) -> list[str]:
    """Paths of every resource that a contract declares or refers to, in order."""
    targets = [] if contract.resources is None else list(contract.resources.targets())
    targets += [contract.target(demand) for demand in contract.input_context or ()]
    targets += [contract.target(demand) for demand in contract.output or ()]
    return list(dict.fromkeys(path for target in targets for path in target.paths))


def mentioned(evidence: Evidence, name: str, text: str, *, whole: bool = False) -> Check:
    """Whether a text occurs in some tool call's arguments or result; `whole`: as a word."""
    index = evidence.mention(text, whole=whole)
    if index is not None:
        return Check(name=name, outcome="passed", where=at_index(evidence, index))
    return Check(
        name=name,
        outcome="failed",
        expected=f"{show(text)} in some tool call's arguments or result",
        observed=f"in none of {len(evidence.trace.tool_calls)} calls",
        reason=f"{show(text)} does not occur in any tool call",
    )


def path_map(activity: Activity, declared: Iterable[str]) -> PathMap:
    """Tells which declared path a path of the trace is; its paths show where its root is."""
    changed = [
        path
        for event in activity.files
        if event.operation != "read"
        for path in (event.path, event.moved_to)
        if path is not None
    ]
    read = [event.path for event in activity.files if event.operation == "read"]
    return PathMap(declared, changed, activity.roots, read)
