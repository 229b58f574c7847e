"""The plugins, in the order in which verdicts list them.

A new plugin is one file here with a `PLUGIN`, and one line in `PLUGINS`.
"""

from benchmark_assets.scoring.plugins import (
    budget,
    final_output,
    input_context,
    output,
    resource_usage,
    skills_loaded,
    tool_calls,
    trace_health,
    trajectory,
)
from benchmark_assets.scoring.plugins.base import Plugin

PLUGINS: tuple[Plugin, ...] = (
    skills_loaded.PLUGIN,
    input_context.PLUGIN,
    tool_calls.PLUGIN,
    trajectory.PLUGIN,
    output.PLUGIN,
    final_output.PLUGIN,
    budget.PLUGIN,
    trace_health.PLUGIN,
    resource_usage.PLUGIN,
)
