"""From compared ledgers to what they mean for a model's tokens and costs.

Belongs here: counting comparisons, and the gate: which figures are withheld, which are in doubt.
Does not belong here: comparing (`scoring.trace_fidelity`) or showing it (`report`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from benchmark_assets.model.fidelity import FidelityOutcome, FidelityRow, Severity
from benchmark_assets.model.standings import Divergence, Figures, ModelFidelity, Quantity

EXAMPLES = 5
"""How many divergences are named; the rest is counted."""

_WORST_FIRST: tuple[Severity, ...] = ("critical", "warning", "unchecked")


def model_fidelity(
    model: str, rows: Iterable[FidelityRow], waiting: int = 0, unreported: int = 0
) -> ModelFidelity | None:
    """Count the comparisons of one model's traces; None if it has none and none is waiting.

    Args:
        model: The model.
        rows: One row an executor of a trace, those of one trace next to each other.
        waiting: Traces that are still to be compared.
        unreported: Traces of the model in which no framework reports anything.
    """
    tally = _Tally()
    for row in rows:
        tally.add(row)
    traces = Counter(tally.outcomes)
    if not traces and not waiting:
        return None
    return ModelFidelity(
        model=model,
        outcome=_outcome(traces, waiting),
        score=tally.scores / tally.scored if tally.scored else None,
        passed=traces["PASS"],
        warned=traces["WARN"],
        failed=traces["FAIL"],
        pending=traces["PENDING"],
        waiting=waiting,
        executors=tally.executors,
        checked=tally.checked,
        truth_tokens=tally.truth_tokens,
        checked_tokens=None if tally.truth_tokens is None else tally.checked_tokens,
        unreported=unreported,
        reason=tally.reason(waiting),
        divergent=tally.divergent,
        divergences=tally.examples(),
    )


def _outcome(traces: Counter[FidelityOutcome], waiting: int) -> FidelityOutcome:
    if traces["FAIL"]:
        return "FAIL"
    if not traces["PASS"] and not traces["WARN"]:
        return "PENDING"
    return "WARN" if traces["WARN"] or traces["PENDING"] or waiting else "PASS"


class _Tally:
    """Sums over rows; a trace counts once however many executors it has."""

    def __init__(self) -> None:
        self.outcomes: list[FidelityOutcome] = []
        self.scores = 0.0
        self.scored = 0
        self.executors = 0
        self.checked = 0
        self.truth_tokens: int | None = None
        self.checked_tokens = 0
        self._pending: str | None = None
        self._last: tuple[str, str, str, str | None] | None = None
        self._verdicts: Counter[tuple[int, str]] = Counter()
        self.divergent = 0
        self._examples: dict[str, list[FidelityRow]] = {word: [] for word in _WORST_FIRST}

    def add(self, row: FidelityRow) -> None:
        trace = (row.date, row.trace_id, row.file, row.record)
        if trace != self._last:
            self._last = trace
            self.outcomes.append(row.trace_outcome)
        compared = row.trace_outcome != "PENDING"
        if compared and row.score is not None:
            # Scores are 0, 0.5 or 1: their sum is exact whatever the order.
            self.scores += row.score
            self.scored += 1
        self._cover(row, compared=compared)
        if not compared:
            self._pending = self._pending or row.trace_reason
            self._name(row, "unchecked")
        elif row.severity in _WORST_FIRST:
            self._verdicts[_WORST_FIRST.index(row.severity), row.verdict] += 1
            self._name(row, row.severity)

    def _name(self, row: FidelityRow, severity: Severity) -> None:
        self.divergent += 1
        if len(self._examples[severity]) < EXAMPLES:
            self._examples[severity].append(row)

    def _cover(self, row: FidelityRow, *, compared: bool) -> None:
        used = row.truth_tokens
        if used is not None:
            self.truth_tokens = used + (self.truth_tokens or 0)
        if row.severity == "inapplicable" or not row.executor:
            return
        self.executors += 1
        # Of whom nothing was reported, nothing was compared.
        if compared and row.score is not None and row.verdict != "NoLedger":
            self.checked += 1
            self.checked_tokens += used or 0

    def reason(self, waiting: int) -> str | None:
        """Verdicts other than agreement in words, the worst first; why traces are pending."""
        words = [f"{number:,} {name}" for (_, name), number in sorted(self._verdicts.items())]
        pending = self.outcomes.count("PENDING")
        if pending:
            traces = f"{pending:,} trace{'' if pending == 1 else 's'}"
            why = (self._pending or "no reason given").removeprefix("nothing was compared: ")
            words.append(f"{traces} not compared ({why})")
        if waiting:
            words.append(f"{waiting:,} not compared yet")
        return ", ".join(words) or None

    def examples(self) -> tuple[Divergence, ...]:
        """The first few divergences, the worst first."""
        rows = [row for word in _WORST_FIRST for row in self._examples[word]]
        unchecked = {id(row) for row in self._examples["unchecked"]}
        return tuple(
            Divergence(
                date=row.date,
                trace_id=row.trace_id,
                executor=row.executor,
                verdict=row.verdict,
                # A trace that cannot be compared has one reason for all of its executors.
                reason=row.trace_reason if row.trace_outcome == "PENDING" else row.reason,
                source=row.source,
                source_file=row.source_file,
                file=row.file,
                record=row.record,
                compared=id(row) not in unchecked,
            )
            for row in rows[:EXAMPLES]
        )


def gate(figures: Figures, fidelity: ModelFidelity | None) -> Figures:
    """Withhold a model's tokens and costs if its ledgers fail, cast doubt unless they pass.

    A model without ledgers has nothing that could be wrong with them: its figures stay.
    """
    if fidelity is None or fidelity.outcome == "PASS":
        return figures
    return msgspec.structs.replace(
        figures,
        tokens=_gated(figures.tokens, fidelity),
        cost_usd=_gated(figures.cost_usd, fidelity),
    )


def _gated(quantity: Quantity, fidelity: ModelFidelity) -> Quantity:
    if not quantity.known:
        return quantity  # nothing that could be withheld
    if fidelity.outcome == "FAIL":
        return msgspec.structs.replace(
            quantity,
            total=None,
            per_run=None,
            per_resolved=None,
            withheld=fidelity.label,
        )
    doubt = f"{fidelity.label}: {fidelity.reason}" if fidelity.reason else fidelity.label
    return msgspec.structs.replace(quantity, doubt=doubt)
