"""How good a contract is at telling wrong runs from a right one: mutants of a trace, and verdicts.

Belongs here: what mutating a trace under a contract gave. Does not belong here: mutating or judging
(`scoring`), or printing (`report`).

A *mutant* is a passing trace with one thing made wrong. It is *killed* if it no longer passes. One
that passes is *allowed* if the contract itself states the freedom (an optional step left out, an
argument that may be `{any: true}`), else it *survived*. The kill rate counts killed and survived.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from benchmark_assets.model.verdict import Outcome

Fate = Literal["killed", "survived", "allowed"]


class Cure(msgspec.Struct, frozen=True, kw_only=True):
    """A check that a contract lacks: with it the golden trace passes and the mutant does not.

    Attributes:
        place: Where it goes, `[]` at its end being one item more: `trajectory.calls[]`.
        value: What goes there, as JSON data.
    """

    place: str
    value: Any


class MutantResult(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one mutant.

    Attributes:
        operator: How it was made, by the operator's name.
        what: What is wrong with it, in words.
        killed_by: Each check that it failed, as `plugin: check`; in the order of verdicts.
        freedom: What in the contract allows it, if it is allowed.
        cure: What would have killed it, if it survived and some check of a contract could have.
    """

    operator: str
    what: str
    fate: Fate
    killed_by: tuple[str, ...] = ()
    freedom: str | None = None
    cure: Cure | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A trace that was judged beside the mutants; `reasons` say why it did not pass."""

    outcome: Outcome
    reasons: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether it passed."""
        return self.outcome == "resolved"


class Tally(msgspec.Struct, frozen=True, kw_only=True):
    """Mutants by what became of them."""

    killed: int = 0
    survived: int = 0
    allowed: int = 0

    @property
    def total(self) -> int:
        """All mutants."""
        return self.killed + self.survived + self.allowed

    @property
    def rate(self) -> float | None:
        """Killed among those that are not allowed; None if there are none."""
        wrong = self.killed + self.survived
        return self.killed / wrong if wrong else None

    @property
    def rate_of_all(self) -> float | None:
        """Killed among all; None if there are none."""
        return self.killed / self.total if self.total else None


def tally(results: Iterable[MutantResult]) -> Tally:
    """Count mutants by what became of them."""
    fates = [result.fate for result in results]
    return Tally(
        killed=fates.count("killed"),
        survived=fates.count("survived"),
        allowed=fates.count("allowed"),
    )


class MutationReport(msgspec.Struct, frozen=True, kw_only=True):
    """What mutating one passing trace says of one contract.

    Attributes:
        fixture: Whether the contract is a fixture, and is to be written like one.
        operators: Name of each operator, in order, and what it does.
        golden: The trace as it is. If it does not pass there are no mutants.
        empty: The trace of a run that did and said nothing.
        rules: Each check that scored on the golden trace, as `plugin: check`.
    """

    contract: str
    contract_version: str
    trace_id: str
    seed: int
    fixture: bool = False
    operators: tuple[tuple[str, str], ...]
    golden: Judged
    empty: Judged
    rules: tuple[str, ...] = ()
    mutants: tuple[MutantResult, ...] = ()

    @property
    def counts(self) -> Tally:
        """All mutants by what became of them."""
        return tally(self.mutants)

    def good(self, min_kill: float | None = None) -> bool:
        """Whether golden passes, empty fails, and no mutant survives or the rate is reached."""
        if not self.golden.passed or self.empty.passed:
            return False
        counts = self.counts
        if min_kill is None:
            return not counts.survived
        return counts.rate is None or counts.rate >= min_kill
