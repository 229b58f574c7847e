"""What a use case of the demo is.

Belongs here: the type that each use case fills in. Does not belong here: any one use case.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.faults import FaultKind
from benchmark_assets.demo.script import Script

Play = Callable[[int, FaultKind | None, Dice], Script]


@dataclass(frozen=True, kw_only=True)
class UseCase:
    """One use case: its place in the traces, the faults it knows, and how a run of it goes.

    Attributes:
        contract: Id of the contract that judges it.
        trace_name: Name of its traces.
        decisive: The tool without which the job is not done; runs that stop early stop before.
        faults: The kinds of fault that `play` can commit and that the contract must catch.
        system_tokens: Length of the agent's instructions and tool descriptions in tokens.
        play: Makes the run of the case of a day (from 0), with a fault or none. The abnormal
            endings `early_stop` and `agent_error` are added by the caller.
    """

    contract: str
    workflow: str
    trace_name: str
    agents: tuple[str, ...]
    tags: tuple[str, ...]
    decisive: str
    faults: tuple[FaultKind, ...]
    system_tokens: int
    play: Play
    metadata: dict[str, str] = field(default_factory=dict)
