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
# Section → the plugin that judges it, what to write in it, and a trace that it fails.
SECTIONS: dict[str, tuple[str, Any, dict[str, Any]]] = {
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
    sections = set(Contract.model_fields) - HEADER
    assert sections == set(SECTIONS), (
        "Contract has a section that no plugin is known to judge: write the plugin, list the "
        "section in SECTIONS, and add cases to tests/data/verdicts"
    )
    assert {plugin for plugin, _, _ in SECTIONS.values()} == {plugin.name for plugin in PLUGINS}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_plugin_reads_its_section(section: str) -> None:
    plugin, value, fields = SECTIONS[section]
    verdict = evaluate(trace(**fields), contract(**{section: value}))
    failing = {result.plugin for result in verdict.plugins if result.passed is False}
    assert failing == {plugin}
    # Without the section, or with it saying the opposite, the same trace fails nothing.
    without = {"trace_health": {"recovered_errors": "allow"}} if section == "trace_health" else {}
    assert evaluate(trace(**fields), contract(**without)).outcome == "unchecked"


@pytest.mark.parametrize("plugin", [plugin for plugin in PLUGINS if plugin.name != HEALTH])
def test_a_plugin_without_its_section_has_nothing_to_judge(plugin: Plugin) -> None:
    others = {
        section: value for section, (name, value, _) in SECTIONS.items() if name != plugin.name
    }
    assert plugin.prepare(contract(**others)) is None
