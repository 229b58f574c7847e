"""Standings: what the leaderboard publishes, as one value that every reporter renders.

Belongs here: the figures of models, groups and cells with their denominators, and what they
were made from. Does not belong here: computing them (`leaderboard`) or laying them out
(`report`). Reporters never recompute: a number missing here is missing everywhere.

Units: rates are fractions in [0, 1]; money is US dollars; durations are milliseconds; tokens
are counts. None is unknown, and every figure that averages over known values carries how many
there were.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from benchmark_assets.model.fidelity import FidelityOutcome


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Runs by outcome."""

    resolved: int = 0
    unresolved: int = 0
    unchecked: int = 0
    error: int = 0

    @property
    def scored(self) -> int:
        """Runs that count: resolved and unresolved."""
        return self.resolved + self.unresolved

    @property
    def total(self) -> int:
        """All runs."""
        return self.resolved + self.unresolved + self.unchecked + self.error


class Interval(msgspec.Struct, frozen=True, kw_only=True):
    """A confidence interval for a rate, with the method's name and the confidence level."""

    low: float
    high: float
    method: str
    level: float = 0.95


class PassRate(msgspec.Struct, frozen=True, kw_only=True):
    """How often runs resolved.

    Attributes:
        macro: Mean over contracts of each contract's rate; the headline. For one cell it is
            that cell's rate. None if nothing was scored.
        micro: Resolved over scored runs, all contracts pooled.
        tasks: Distinct (contract, task) pairs among the scored runs.
        trials: Most scored runs any one task has.
        interval: For `micro`, only where every task has one trial: repeated trials of a task
            are not independent and would make it too narrow. `no_interval` then says why.
    """

    macro: float | None
    micro: float | None
    counts: Counts
    tasks: int
    trials: int
    interval: Interval | None = None
    no_interval: str | None = None


class PassHatK(msgspec.Struct, frozen=True, kw_only=True):
    """pass^k: the chance that k trials of a task all resolve, averaged over `tasks` tasks."""

    k: int
    value: float
    tasks: int


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A quantity that some runs carry and others do not.

    Attributes:
        known: Runs that carry it; `runs` is how many there are.
        total: Sum over the known.
        per_run: Mean over the known.
        per_resolved: Total over all known runs, divided by the resolved among them: what one
            success cost, failures included. None if none resolved.
        estimated: How many of the known were filled in from prices.
        withheld: Why the figures are not given although runs carry the quantity; they are None.
        doubt: Why the figures, which are given, may be wrong.
    """

    runs: int
    known: int
    total: float | None
    per_run: float | None
    per_resolved: float | None
    estimated: int = 0
    withheld: str | None = None
    doubt: str | None = None


class Duration(msgspec.Struct, frozen=True, kw_only=True):
    """Wall time of runs in milliseconds over the `known` ones (nearest-rank quantiles)."""

    runs: int
    known: int
    median_ms: int | None
    p95_ms: int | None


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is counted over one set of runs."""

    pass_rate: PassRate
    pass_hat_k: tuple[PassHatK, ...]
    tokens: Quantity
    cost_usd: Quantity
    duration: Duration


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One model under one contract. `first_date` and `last_date` span its runs (UTC days)."""

    model: str
    contract: str
    figures: Figures
    top_failure: str | None = None
    first_date: str | None = None
    last_date: str | None = None


class GroupStanding(msgspec.Struct, frozen=True, kw_only=True):
    """One model in one group of contracts."""

    model: str
    group: str
    figures: Figures


class ModelStanding(msgspec.Struct, frozen=True, kw_only=True):
    """One model over everything.

    Attributes:
        rank: 1 is best, ties share a rank; None if the model cannot be ranked (`unranked`
            says why).
        shared: Pass rate over the tasks that all ranked models share; what ranks.
        figures: Over all of the model's runs.
    """

    model: str
    rank: int | None
    shared: PassRate | None
    figures: Figures
    unranked: str | None = None


class Hole(msgspec.Struct, frozen=True, kw_only=True):
    """A model that has no scored run for tasks of a contract that other models have.

    `tasks` counts the missing tasks; `whole_contract` is True if it has none of them.
    """

    model: str
    contract: str
    tasks: int
    whole_contract: bool


class Divergence(msgspec.Struct, frozen=True, kw_only=True):
    """An executor of a trace whose ledger does not agree, or was not compared.

    Attributes:
        source, source_file: Where the trace is held: the source's name, and its file.
        file, record: Where the trace came from.
        compared: Whether it diverges, rather than that nothing could be compared.
    """

    date: str
    trace_id: str
    executor: str
    verdict: str
    reason: str | None
    source: str
    source_file: str
    file: str
    record: str | None = None
    compared: bool = True


class ModelFidelity(msgspec.Struct, frozen=True, kw_only=True):
    """Whether what frameworks report of one model's traces agrees with its model calls.

    Attributes:
        outcome: FAIL if any trace fails, PASS if every one passes, PENDING if none was compared,
            else WARN.
        score: Mean over the executors that have a score, 0 to 1; None if none has. One of which
            nothing is reported although it called a model scores 0.
        passed, warned, failed, pending: Traces by outcome; `waiting` are still to be compared.
        executors: Executors that could have been compared; `checked` of them were.
        truth_tokens: Tokens of all model calls; None if none is known. `checked_tokens`: of those
            whose executor was compared.
        unreported: Traces of the model in which no framework reports anything.
        reason: Verdicts other than agreement, counted: `3 TokenMismatch, 1 NoLedger`.
        divergences: The first few that do not agree, the worst first; `divergent` is how many
            there are.
    """

    model: str
    outcome: FidelityOutcome
    score: float | None
    passed: int = 0
    warned: int = 0
    failed: int = 0
    pending: int = 0
    waiting: int = 0
    executors: int = 0
    checked: int = 0
    truth_tokens: int | None = None
    checked_tokens: int | None = None
    unreported: int = 0
    reason: str | None = None
    divergent: int = 0
    divergences: tuple[Divergence, ...] = ()

    @property
    def traces(self) -> int:
        """Traces in which a framework reports on its executors."""
        return self.passed + self.warned + self.failed + self.pending + self.waiting

    @property
    def label(self) -> str:
        """The score as it is published: `fidelity 0.62`; less than 1 never reads `1.00`."""
        if self.score is None:
            return "fidelity not checked"
        text = f"{self.score:.2f}"
        return f"fidelity {'>0.99' if text == '1.00' and self.score < 1 else text}"


class Withheld(msgspec.Struct, frozen=True, kw_only=True):
    """A cell kept out of the figures, and why (it is stale, for one)."""

    model: str
    contract: str
    reason: str


class ContractEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A contract as it was applied. `runs` is how many traces it judged."""

    contract: str
    name: str
    label: str
    group: str
    sha256: str
    runs: int


class SourceNote(msgspec.Struct, frozen=True, kw_only=True):
    """Something about the inputs a reader must know: an unreadable file, an unplaced trace."""

    kind: Literal["error", "warning"]
    text: str


class Standings(msgspec.Struct, frozen=True, kw_only=True):
    """One leaderboard.

    Attributes:
        models: Ranked ones by rank, then the unranked, then by name.
        fidelity: Models in whose traces a framework reports on its executors, by name. Where it
            is FAIL, the model's tokens and costs are withheld; where it is not PASS, in doubt.
        shared_tasks: How many (contract, task) pairs all ranked models share.
        engine: Version of the rules that judged.
        snapshots: Number of distinct traces judged or matched by no contract.
        unmatched: Traces that no contract applied to; None while cells are stale, since it is
            not known then.
    """

    models: tuple[ModelStanding, ...]
    groups: tuple[GroupStanding, ...]
    cells: tuple[Cell, ...]
    contracts: tuple[ContractEntry, ...]
    holes: tuple[Hole, ...] = ()
    withheld: tuple[Withheld, ...] = ()
    fidelity: tuple[ModelFidelity, ...] = ()
    notes: tuple[SourceNote, ...] = ()
    counts: Counts = Counts()
    shared_tasks: int = 0
    shared_contracts: int = 0
    snapshots: int = 0
    unmatched: int | None = 0
    first_date: str | None = None
    last_date: str | None = None
    engine: str = ""
    edition: str = ""
