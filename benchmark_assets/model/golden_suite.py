"""What grading a folder of candidate traces by a folder of fixtures gave.

Belongs here: the results as every reporter gets them. Does not belong here: making them
(`pipeline/golden`) or laying them out (`report/golden`).

Whatever keeps a suite from being green is a case of its own: a fixture that vanished, one that
cannot be read, a golden trace that fails. So no reporter can show a suite as green that is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from benchmark_assets.model.verdict import ORDER_UNKNOWN, Check

MARKS = {ORDER_UNKNOWN: "the trace says that a question was asked, and not when"}
"""What the marks of a case mean."""

CaseOutcome = Literal["PASS", "FAIL", "MISSING"]
CASE_OUTCOMES: tuple[CaseOutcome, ...] = ("PASS", "FAIL", "MISSING")

Subject = Literal["candidate", "golden", "suite"]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why a case has its result.

    Attributes:
        failures: What is wrong, a text each; empty if it passed.
        checks: All that was looked at. Of a trace that passed: only if details were asked for, or
            there was a doubt.
        similarity: How alike the path is to the nearest legal one, 0 to 1; None if it is legal,
            or none was demanded.
        against_golden: How the path differs from that of the golden trace; None if it passed,
            or there is no golden trace.
    """

    failures: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()
    similarity: float | None = None
    against_golden: str | None = None


class Explained:
    """An explanation, worked out when it is first asked for: a verdict alone is much quicker."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], Explanation]) -> None:
        self._make = make
        self._made: Explanation | None = None

    def __call__(self) -> Explanation:
        """The explanation."""
        if self._made is None:
            self._made = self._make()
            self._make = Explanation  # A trace that it was made from need not be kept.
        return self._made


NOTHING_WRONG = Explained(Explanation)


class CaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One trial of one fixture, or something else that must hold for the suite to pass.

    Attributes:
        id: The fixture's id; the name of the file or folder where no fixture could be read.
        trial: Number of the attempt; None where there is one trace and no number.
        result: `MISSING`: there is no trace, or no fixture any more.
        path_hash: Of the tool names called, in order; None if no trace could be read.
        subject: What was graded: a candidate trace, the frozen golden trace, or the suite itself.
        explained: Why; the properties of this class are those of it.
        fixture_file: The fixture's file as people should see it.
        trace_file: The trace's.
    """

    id: str
    result: CaseOutcome
    trial: int | None = None
    path_hash: str | None = None
    subject: Subject = "candidate"
    explained: Explained = NOTHING_WRONG
    fixture_file: str | None = None
    trace_file: str | None = None

    @property
    def failures(self) -> tuple[str, ...]:
        """What is wrong, a text each; empty if it passed."""
        return self.explained().failures

    @property
    def checks(self) -> tuple[Check, ...]:
        """All that was looked at, as `Explanation` says."""
        return self.explained().checks

    @property
    def similarity(self) -> float | None:
        """How alike the path is to the nearest legal one, 0 to 1; None if there is no question."""
        return self.explained().similarity

    @property
    def against_golden(self) -> str | None:
        """How the path differs from that of the golden trace; None if there is no question."""
        return self.explained().against_golden

    @property
    def marks(self) -> tuple[str, ...]:
        """What the reader must know of the result whatever it is: keys of `MARKS`, mostly none."""
        ending = f"; {ORDER_UNKNOWN}"
        unsure = any((check.observed or "").endswith(ending) for check in self.checks)
        return (ORDER_UNKNOWN,) if unsure else ()


def because(*failures: str) -> Explained:
    """The explanation of what went wrong before anything could be checked."""
    return Explained(lambda: Explanation(failures=failures))


class Trials(msgspec.Struct, frozen=True, kw_only=True):
    """How reliable several trials are.

    Attributes:
        id: The fixture's; None: of the whole suite.
        passed: Trials that passed.
        trials: Trials that there are; a missing trace is one that did not pass.
        pass_hat: pass^k for k = 1, 2, …: how likely k trials all pass, 0 to 1.
    """

    id: str | None
    passed: int
    trials: int
    pass_hat: tuple[float, ...]


class SuiteResult(msgspec.Struct, frozen=True, kw_only=True):
    """All cases, in order of fixture ids and trials.

    Attributes:
        cases: The cases.
        trials: Of each fixture with several trials, then of the suite; empty without trials.
        warnings: What does not fail the suite and is hardly meant, a text each.
        notes: What the reader should know besides.
    """

    cases: tuple[CaseResult, ...]
    trials: tuple[Trials, ...] = ()
    warnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether there is a case, and every case passed."""
        return bool(self.cases) and all(case.result == "PASS" for case in self.cases)
