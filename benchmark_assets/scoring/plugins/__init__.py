"""The plugins, in the order in which verdicts list them.

A new plugin is one file here with a `PLUGIN`, and one line in `PLUGINS`.
"""

from benchmark_assets.scoring.plugins import final_output, tool_calls, trace_health, trajectory
from benchmark_assets.scoring.plugins.base import Plugin

PLUGINS: tuple[Plugin, ...] = (
    tool_calls.PLUGIN,
    trajectory.PLUGIN,
    final_output.PLUGIN,
    trace_health.PLUGIN,
)
