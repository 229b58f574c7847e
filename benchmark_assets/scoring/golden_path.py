"""Grading a recorded path against a fixture: pass or fail, and every failure in words.

Belongs here: a verdict as the golden suite reports it. Does not belong here: the rules (plugins),
which files there are (`adapters`), or printing (`report`).

A fixture stands for a contract, and its grade is that contract's verdict. Only a resolved trace
passes: one that could not be judged, or of which nothing was checked, is a failure here.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from benchmark_assets.model.golden import Fixture
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Check, Verdict
from benchmark_assets.scoring.evaluate import ContractJudge
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.legal_paths import path_hash
from benchmark_assets.scoring.plugins import PLUGINS
from benchmark_assets.scoring.plugins.base import Plugin


class GoldenResult(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What grading one trace gave.

    Attributes:
        id: The fixture's id.
        passed: Whether every check passed, and there was one.
        failures: What is wrong, a text each; empty if it passed.
        checks: All that was looked at.
        path_hash: Of the tool names called, in order.
        verdict: The verdict it comes from.
    """

    id: str
    passed: bool
    failures: tuple[str, ...]
    checks: tuple[Check, ...]
    path_hash: str
    verdict: Verdict


class Grader:
    """A fixture compiled once, to grade any number of traces."""

    def __init__(
        self,
        fixture: Fixture,
        profiles: Sequence[HarnessProfile] = (),
        plugins: Sequence[Plugin] = PLUGINS,
    ) -> None:
        self.fixture = fixture
        self._judge = ContractJudge(fixture.contract, plugins)
        self._profiles = profiles

    def passes(self, trace: TraceSnapshot) -> bool | None:
        """Whether a trace passes, in no words; None if only `grade` can tell."""
        return self._judge.resolves(Evidence(trace, self._profiles))

    def grade(self, trace: TraceSnapshot) -> GoldenResult:
        """Grade one trace. Never raises for what is in it."""
        verdict = self._judge.evaluate(Evidence(trace, self._profiles))
        checks = tuple(check for result in verdict.plugins for check in result.checks)
        return GoldenResult(
            id=self.fixture.id,
            passed=verdict.outcome == "resolved",
            failures=tuple(_failures(verdict, checks)),
            checks=checks,
            path_hash=path_hash([call.name for call in trace.tool_calls]),
            verdict=verdict,
        )


def grade(
    fixture: Fixture, trace: TraceSnapshot, profiles: Sequence[HarnessProfile] = ()
) -> GoldenResult:
    """Grade one trace by one fixture; for many traces keep a `Grader`."""
    return Grader(fixture, profiles).grade(trace)


def _failures(verdict: Verdict, checks: Sequence[Check]) -> list[str]:
    if verdict.outcome == "resolved":
        return []
    wrong = [describe(check) for check in checks if check.outcome in ("failed", "error")]
    if not wrong:
        wrong = [verdict.reason or "nothing was checked: the fixture demands nothing of this trace"]
    return wrong


def describe(check: Check) -> str:
    """A failed check in one line: `path: step 2 is b, expected c (expected a → c; observed …)`."""
    said = f"{check.name}: {check.reason or check.outcome}"
    parts = [
        f"{word} {text}"
        for word, text in (("expected", check.expected), ("observed", check.observed))
        if text
    ]
    return f"{said} ({'; '.join(parts)})" if parts else said
