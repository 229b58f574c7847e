"""No plugin is forgotten, and no section of a contract is there that nobody judges."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import pytest

from benchmark_assets.model.contract import Contract
from benchmark_assets.scoring import plugins
from benchmark_assets.scoring.evaluate import HEALTH, evaluate
from benchmark_assets.scoring.plugins import PLUGINS
from benchmark_assets.scoring.plugins.base import Plugin
from tests.scoring.build import contract, trace

MODULES = sorted({module.name for module in pkgutil.iter_modules(plugins.__path__)} - {"base"})

HEADER = {
    "id",
    "workflow",
    "contract_version",
    "name",
    "group",
    "description",
    "applies_to",  # routing's
}
OF_OTHERS = {
    "harness": "says how every plugin reads tool calls",
    "resources": "is what input_context and output refer to",
    "knowledge": "is part of input_context",
    "unrelated_reads": "is part of input_context",
    "plugins": "is of those that are not part of the package",
}
"""Sections that are no demand of their own."""

# Section → the plugin that judges it, what to write in it, and a trace that it fails.
SECTIONS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "skills": ("skills_loaded", {"required": ["a"]}, {}),
    "input_context": ("input_context", [{"resource": "page.Main"}], {}),
    "output": ("output", [{"resource": "page.Main", "operation": "CREATE"}], {}),
    "budget": (
        "budget",
        {"max_tool_calls": 0},
        {"tool_calls": [{"name": "a"}]},
    ),
    "tools": ("tool_calls", {"required": ["a"]}, {}),
    "trajectory": ("trajectory", {"calls": [{"tool": "a"}]}, {}),
    "final": ("final_output", {"contains": ["a"]}, {}),
    "ends_with": ("trace_health", ["stop"], {"ended": "other", "ended_normally": True}),
    "trace_health": (
        "trace_health",
        {"recovered_errors": "fail"},
        {"tool_calls": [{"name": "a", "status": "error"}, {"name": "a", "status": "ok"}]},
    ),
}
RESOURCES = {"page": [{"name": "Main"}]}
EVERY_CONTRACT = {HEALTH, "resource_usage"}
"""Plugins that judge without a section of their own."""


@pytest.mark.parametrize("name", MODULES)
def test_every_plugin_file_is_listed_once(name: str) -> None:
    module = importlib.import_module(f"{plugins.__name__}.{name}")
    assert isinstance(module.PLUGIN, Plugin)
    assert module.PLUGIN.name == name
    assert 0 < len(module.PLUGIN.description) <= 80, "one line, in words"
    assert "\n" not in module.PLUGIN.description
    assert PLUGINS.count(module.PLUGIN) == 1, f"add {name}.PLUGIN to PLUGINS in scoring/plugins"


def test_nothing_else_is_listed() -> None:
    assert sorted(plugin.name for plugin in PLUGINS) == MODULES


def test_health_is_the_plugin_that_demands_nothing() -> None:
    assert [plugin.name for plugin in PLUGINS].count(HEALTH) == 1


def test_every_section_of_a_contract_has_a_plugin() -> None:
    sections = set(Contract.model_fields) - HEADER - set(OF_OTHERS)
    assert sections == set(SECTIONS), (
        "Contract has a section that no plugin is known to judge: write the plugin, list the "
        "section in SECTIONS, and add cases to tests/data/verdicts"
    )
    judging = {plugin for plugin, _, _ in SECTIONS.values()}
    assert judging | EVERY_CONTRACT == {plugin.name for plugin in PLUGINS}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_plugin_reads_its_section(section: str) -> None:
    plugin, value, fields = SECTIONS[section]
    verdict = evaluate(trace(**fields), contract(resources=RESOURCES, **{section: value}))
    failing = {result.plugin for result in verdict.plugins if result.passed is False}
    assert failing == {plugin}
    # Without the section, or with it saying the opposite, the same trace fails nothing.
    without = {"trace_health": {"recovered_errors": "allow"}} if section == "trace_health" else {}
    assert evaluate(trace(**fields), contract(**without)).outcome == "unchecked"


@pytest.mark.parametrize(
    "plugin", [plugin for plugin in PLUGINS if plugin.name not in EVERY_CONTRACT]
)
def test_a_plugin_without_its_section_has_nothing_to_judge(plugin: Plugin) -> None:
    others = {
        section: value for section, (name, value, _) in SECTIONS.items() if name != plugin.name
    }
    assert plugin.prepare(contract(resources=RESOURCES, **others)) is None


def test_a_plugin_that_only_informs_never_scores() -> None:
    everything = {section: value for section, (_, value, _) in SECTIONS.items()}
    used = trace(
        duration_ms=10**9, cost_usd=1e6, tokens={"input": 10**12}, generations=[{"cost_usd": 1e6}]
    )
    verdict = evaluate(used, contract(resources=RESOURCES, **everything))
    usage = next(result for result in verdict.plugins if result.plugin == "resource_usage")
    assert {check.outcome for check in usage.checks} == {"info"}
    assert usage.score is None
