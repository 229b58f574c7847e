"""Trace fidelity: does what a framework reports agree with what the model calls used?

Belongs here: the families of comparisons and the rule sets, one file each. Does not belong here:
reading either side (`adapters`) or showing the result (`report`).

A new rule set for workflows is one file here with a `reconcile`, and one line in `RULE_SETS`; a
new family is one line in `FAMILIES` and a command of its name.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from benchmark_assets.model.fidelity import PRESETS, Preset, WorkflowFidelity, WorkflowRecord
from benchmark_assets.scoring.trace_fidelity import agent_trace, specified, strict

RULES_VERSION = "3"
"""Raised whenever the same two sides could get another result."""


class RuleSet(msgspec.Struct, frozen=True):
    """One way of comparing the two sides of a workflow."""

    name: str
    description: str
    reconcile: Callable[[WorkflowRecord], WorkflowFidelity]


class Family(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of comparison, by the name of its command.

    `cost_tier` is what a run costs: `free` calls no model.
    """

    name: str
    description: str
    rules: tuple[str, ...]
    cost_tier: str = "free"
    presets: tuple[Preset, ...] = PRESETS


RULE_SETS: tuple[RuleSet, ...] = (
    RuleSet(
        specified.NAME,
        "executors with steps, totals that fall short, last finish reason, mean of scores",
        specified.reconcile,
    ),
    RuleSet(
        strict.NAME,
        "executors of either side, both directions, every component, finish reasons in order; "
        "one critical divergence fails",
        strict.reconcile,
    ),
)

FAMILIES: tuple[Family, ...] = (
    Family(
        name="workflow-trace-fidelity",
        description="each executor's ledger against its model calls",
        rules=tuple(rules.name for rules in RULE_SETS),
    ),
    Family(
        name="trace-fidelity",
        description="a single agent's report against its model calls, in six classes",
        rules=(agent_trace.NAME,),
    ),
)


def rule_set(name: str) -> RuleSet:
    """The rule set of a name.

    Raises:
        KeyError: If there is none.
    """
    return {rules.name: rules for rules in RULE_SETS}[name]


def family(name: str) -> Family:
    """The family of a name.

    Raises:
        KeyError: If there is none.
    """
    return {item.name: item for item in FAMILIES}[name]
