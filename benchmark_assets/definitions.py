"""What Dagster loads: the graph of the project whose `benchmark.yaml` is nearest."""

import warnings

import dagster as dg

# Backfill policies and multi-partition mappings are beta in the pinned version, and it says so
# many times at every load. They are what this graph is built on, and its tests run them.
warnings.filterwarnings("ignore", category=dg.BetaWarning)

from benchmark_assets.adapters.project_file import load_project  # noqa: E402
from benchmark_assets.defs.build import build_definitions  # noqa: E402
from benchmark_assets.defs.resources import Bench  # noqa: E402
from benchmark_assets.pipeline.workspace import Workspace  # noqa: E402


@dg.definitions
def defs() -> dg.Definitions:
    """The graph, for `dagster dev`, `dg dev` and every deployment."""
    return build_definitions(Bench(Workspace(load_project())))
