"""What Dagster loads: the graph of the project whose `benchmark.yaml` is nearest."""

import dagster as dg

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.defs.build import build_definitions
from benchmark_assets.defs.resources import Bench
from benchmark_assets.pipeline.workspace import Workspace


@dg.definitions
def defs() -> dg.Definitions:
    """The graph, for `dagster dev`, `dg dev` and every deployment."""
    return build_definitions(Bench(Workspace(load_project())))
