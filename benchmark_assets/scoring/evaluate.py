"""The verdict over one run: every plugin of a contract, then one binary outcome.

Belongs here: running plugins and combining what they found. Does not belong here: any rule
about traces (a plugin each) and which traces a contract judges (`routing`).

A broken grader is not a failing model: a plugin that raises makes the outcome `error`, naming
it. A failed check decides before a check that could not be made: all must pass, so one failure
settles it whatever the other would have said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import get_args

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Check, CheckOutcome, PluginResult, Verdict, Where
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.plugins import PLUGINS
from benchmark_assets.scoring.plugins.base import Plugin, Quick

ENGINE_VERSION = "5"
"""Raised whenever the same trace and contract could be judged differently. It is part of every
stored key, so raising it re-evaluates everything, and a test notices when it should be."""

HEALTH = "trace_health"
_DEMAND_NOTHING = frozenset({HEALTH, "resource_usage"})

_OUTCOMES = frozenset(get_args(CheckOutcome))
_SURROGATE = re.compile("[\ud800-\udfff]")
_MANY_CALLS = 2**31
"""More than the index of a call can be, as verdicts are stored."""


class ContractJudge:
    """A contract compiled once, to judge any number of traces."""

    def __init__(self, contract: Contract, plugins: Sequence[Plugin] = PLUGINS) -> None:
        self.contract = contract
        self._errors: list[PluginResult] = [
            PluginResult(plugin=name, checks=(_missing(name),))
            for name in contract.plugins
            if name not in {plugin.name for plugin in plugins}
        ]
        self._judges = []
        quick: list[Quick | None] = []
        for plugin in plugins:
            try:
                judge = plugin.prepare(contract)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's fault must not end the batch
                self._errors.append(PluginResult(plugin=plugin.name, error=_describe(error)))
                continue
            if judge is not None:
                self._judges.append((plugin.name, judge))
                quick.append(plugin.quick(contract))
        known = [settle for settle in quick if settle is not None]
        demanding = any(name not in _DEMAND_NOTHING for name, _ in self._judges)
        whole = demanding and not self._errors and len(known) == len(quick)
        self._quick = known if whole else None

    def resolves(self, evidence: Evidence) -> bool | None:
        """Whether `evaluate` would say *resolved*; None if only evaluating can tell.

        It looks at what most contracts demand in most traces, and at no more than decides.
        """
        if evidence.trace.problem is not None:
            return False
        if self._quick is None:
            return None
        doubt = False
        try:
            for settle in self._quick:
                answer = settle(evidence)
                if answer is False:
                    return False
                doubt = doubt or answer is None
        except Exception:  # noqa: BLE001 - `evaluate` names the plugin and what it raised
            return None
        return None if doubt else True

    def evaluate(self, evidence: Evidence) -> Verdict:
        """Judge one trace. Never raises for what is in the trace."""
        problem = evidence.trace.problem
        if problem is not None:
            return Verdict(outcome="error", score=None, plugins=(), reason=problem)
        results = list(self._errors)
        for name, judge in self._judges:
            try:
                results.append(PluginResult(plugin=name, checks=_checked(judge(evidence))))
            except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
                results.append(PluginResult(plugin=name, error=_describe(error)))
        return self._verdict(tuple(results))

    def _verdict(self, results: tuple[PluginResult, ...]) -> Verdict:
        scores = [score for result in results if (score := result.score) is not None]
        score = sum(scores) / len(scores) if scores else None
        for result in results:
            if result.error is not None:
                reason = f"plugin {result.plugin} raised {result.error}"
                return Verdict(outcome="error", score=score, plugins=results, reason=reason)
        outcomes = {check.outcome for result in results for check in result.checks}
        for wanted in ("failed", "error"):
            if wanted in outcomes:
                plugin, check = next(
                    (result.plugin, check)
                    for result in results
                    for check in result.checks
                    if check.outcome == wanted
                )
                return Verdict(
                    outcome="unresolved" if wanted == "failed" else "error",
                    score=score,
                    plugins=results,
                    reason=f"{plugin}: {check.reason or check.name}",
                )
        ends = self.contract.ends_with is not None
        demanded = any(
            check.outcome == "passed"
            and (result.plugin != HEALTH or (ends and check.name == "ended"))
            for result in results
            for check in result.checks
        )
        return Verdict(
            outcome="resolved" if demanded else "unchecked", score=score, plugins=results
        )


def evaluate(
    trace: TraceSnapshot, contract: Contract, profiles: Sequence[HarnessProfile] = ()
) -> Verdict:
    """Judge one trace by one contract; for many, keep a `ContractJudge` and an `Evidence` each."""
    return ContractJudge(contract).evaluate(Evidence(trace, profiles))


def _missing(name: str) -> Check:
    return Check(
        name="installed",
        outcome="error",
        expected="a plugin of this name",
        observed="none",
        reason=f"there is no plugin '{name}'; name its file under plugins in benchmark.yaml",
    )


def _checked(checks: Iterable[Check]) -> tuple[Check, ...]:
    """A plugin's checks, if they can be stored: one bad row must not cost a batch its rows."""
    found = tuple(checks)
    for check in found:
        if not isinstance(check, Check) or check.outcome not in _OUTCOMES:
            raise TypeError(f"gave {check!r} where a Check is expected")
        where = check.where
        span_id = None
        if where is not None:
            if not isinstance(where, Where) or not _is_index(where.call):
                raise TypeError(f"gave a check whose place is none: {check!r}")
            span_id = where.span_id
        if not (
            _is_text(check.name)
            and (check.expected is None or _is_text(check.expected))
            and (check.observed is None or _is_text(check.observed))
            and (check.reason is None or _is_text(check.reason))
            and (span_id is None or _is_text(span_id))
        ):
            raise TypeError(f"gave a check whose texts are no texts: {check!r}")
    return found


def _is_text(value: object) -> bool:
    """Whether something is a text that can be stored: lone surrogates are not Unicode."""
    return isinstance(value, str) and (value.isascii() or not _SURROGATE.search(value))


def _is_index(value: object) -> bool:
    """Whether something can be the index of a call, or says that there is none."""
    return value is None or (type(value) is int and 0 <= value < _MANY_CALLS)


def _describe(error: BaseException) -> str:
    try:
        text = str(error)
    except (Exception, SystemExit):  # noqa: BLE001 - even what it says may be the plugin's code
        return type(error).__name__
    return f"{type(error).__name__}: {text.encode('utf-8', 'backslashreplace').decode()}"
