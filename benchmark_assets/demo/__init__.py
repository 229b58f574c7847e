"""The embedded demo: synthetic agent traces whose faults are known, and the contracts for them.

Belongs here: a seeded generator of traces (four models, six use cases, fourteen days, three
trials), the faults it plants, and writing the traces to files. Does not belong here: judging
the traces (`scoring`) or running the graph over them (`pipeline`, `cli`).

Model names, prices, latencies and reliabilities are invented for the demo; they say nothing
about any real model. The same seed gives the same bytes on every machine: there is no clock
and no global random state.
"""

from __future__ import annotations

from benchmark_assets.demo.faults import Fault, FaultKind
from benchmark_assets.demo.files import contracts_folder, write_traces
from benchmark_assets.demo.generate import DAYS, FIRST_DAY, TRIALS, DemoTrace, generate
from benchmark_assets.demo.models import MODELS
from benchmark_assets.demo.use_cases import USE_CASES

__all__ = [
    "DAYS",
    "FIRST_DAY",
    "MODELS",
    "TRIALS",
    "USE_CASES",
    "DemoTrace",
    "Fault",
    "FaultKind",
    "contracts_folder",
    "generate",
    "write_traces",
]
