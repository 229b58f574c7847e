"""The specified rules: a verdict an executor, and the mean of their scores against two limits.

Belongs here: these rules exactly, with what they do not see. Does not belong here: improving on
them (`strict`).

* An executor's steps are added up, whatever the case of its id. A step without usage adds 0.
* The truth is its model calls; without any it is `NoTruth`. Where several spellings of an id
  have model calls, those of the last spelling count. Calls of an executor that has no step
  are not looked at; a note says how many executors that concerns.
* Tokens mismatch if the total falls short of the truth by strictly more than 2 % of it.
  Reporting too much is agreement.
* Finish reasons mismatch if the last one of a model call is there and is not, letter by letter,
  the last one of a step.
* The score is the mean over executors with truth. PASS from 0.99 if all were checked, WARN from
  0.80 or if a pass is withheld because some were not, else FAIL; PENDING if none was.

| verdict | score | severity |
|---|---|---|
| Agree | 1 | none |
| TokenMismatch | 0.5 | warning |
| FinishMismatch | 0.5 | warning |
| Both | 0 | critical |
| NoTruth | not scored | unchecked |

The severities rank lists; the score alone decides.
"""

from __future__ import annotations

from collections.abc import Iterable

from benchmark_assets.model.fidelity import (
    Coverage,
    ExecutorFidelity,
    FidelityOutcome,
    ModelTurn,
    Severity,
    WorkflowFidelity,
    WorkflowRecord,
)
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.trace_fidelity.grouping import (
    REPORTED_PERCENT,
    SCORE_PASS,
    SCORE_WARN,
    Sides,
    add,
    by_executor,
    count_verdicts,
    exceeds,
    finish,
    last,
    percent,
    plausible,
    same_name,
    tokens,
    total_tokens,
)

NAME = "specified"

VERDICTS: dict[str, tuple[float | None, Severity]] = {
    "Agree": (1.0, "none"),
    "TokenMismatch": (0.5, "warning"),
    "FinishMismatch": (0.5, "warning"),
    "Both": (0.0, "critical"),
    "NoTruth": (None, "unchecked"),
}
"""Verdict → score and severity."""

_VERDICT = {
    (False, False): "Agree",
    (True, False): "TokenMismatch",
    (False, True): "FinishMismatch",
    (True, True): "Both",
}
"""Whether tokens and finish reason diverge → verdict."""


def reconcile(record: WorkflowRecord) -> WorkflowFidelity:
    """Compare both sides of a workflow by the specified rules."""
    record = plausible(record)
    spelling = _last_spellings(record)
    found = by_executor(record)
    judged = [_judge(sides, spelling) for sides in found.values() if sides.entries]
    if record.problem is not None:
        judged = []
    scores = [item.score for item in judged if item.score is not None]
    score = sum(scores) / len(scores) if scores else None
    outcome = _outcome(score, all_checked=len(scores) == len(judged))
    return WorkflowFidelity(
        rules=NAME,
        outcome=outcome,
        score=score,
        coverage=Coverage(
            executors=len(judged),
            checked=len(scores),
            truth_tokens=add(total_tokens(turn.usage) for turn in record.turns),
            checked_tokens=add(item.truth_tokens for item in judged if item.score is not None),
        ),
        executors=tuple(judged),
        reason=record.problem or _reason(outcome, judged),
        notes=tuple(_notes(found.values())),
    )


def _last_spellings(record: WorkflowRecord) -> dict[str, str]:
    """Common name → the spelling that is looked up: of several, the last."""
    spelled = [turn.executor for turn in record.turns] + list(record.traced or ())
    return {same_name(executor): executor for executor in spelled}


def _judge(sides: Sides, spelling: dict[str, str]) -> ExecutorFidelity:
    meant = spelling.get(same_name(sides.executor_id))
    turns = [turn for turn in sides.turns if turn.executor == meant]
    ledger_tokens = add(total_tokens(entry.usage) for entry in sides.entries)
    ledger_finish = last(entry.finish_reason for entry in sides.entries)
    truth_tokens = add(total_tokens(turn.usage) for turn in turns)
    truth_finish = last(turn.finish_reason for turn in turns)
    checks: tuple[Check, ...]
    if not turns:
        verdict, checks = "NoTruth", (_no_truth(ledger_tokens, ledger_finish),)
    else:
        used, ended = _compare(ledger_tokens, ledger_finish, truth_tokens, truth_finish, turns)
        verdict = _VERDICT[used.outcome == "failed", ended.outcome == "failed"]
        checks = (used, ended)
    score, severity = VERDICTS[verdict]
    return ExecutorFidelity(
        executor_id=sides.executor_id,
        verdict=verdict,
        severity=severity,
        score=score,
        ledger_tokens=ledger_tokens,
        truth_tokens=truth_tokens,
        ledger_finish=ledger_finish,
        truth_finish=truth_finish,
        checks=checks,
    )


def _no_truth(ledger_tokens: int | None, ledger_finish: str | None) -> Check:
    return Check(
        name="chat truth",
        outcome="skipped",
        expected="model calls of this executor, to compare with",
        observed=f"only what was reported: {tokens(ledger_tokens)}, {finish(ledger_finish)}",
        reason="no model call of it was recorded",
    )


def _compare(
    ledger_tokens: int | None,
    ledger_finish: str | None,
    truth_tokens: int | None,
    truth_finish: str | None,
    turns: list[ModelTurn],
) -> tuple[Check, Check]:
    """The check of the tokens and that of the finish reason."""
    reported, used = ledger_tokens or 0, truth_tokens or 0
    short = exceeds(used - reported, used)
    differs = truth_finish is not None and truth_finish != ledger_finish
    calls = f"{len(turns):,} model call{'' if len(turns) == 1 else 's'}"
    return (
        Check(
            name="tokens",
            outcome="failed" if short else "passed",
            expected=f"{tokens(truth_tokens)}, used by {calls}; at most {REPORTED_PERCENT} % less",
            observed=f"{tokens(ledger_tokens)} reported",
            reason=f"{tokens(used - reported)} of {used:,} not reported "
            f"({percent(used - reported, used)})"
            if short
            else None,
        ),
        Check(
            name="finish reason",
            outcome="failed" if differs else "passed",
            expected=f"{finish(truth_finish)}, the last of {calls}"
            if truth_finish is not None
            else "any: no model call gave one",
            observed=f"{finish(ledger_finish)} reported",
            reason=f"ended with {finish(truth_finish)}, reported is {finish(ledger_finish)}"
            if differs
            else None,
        ),
    )


def _outcome(score: float | None, *, all_checked: bool) -> FidelityOutcome:
    return score_outcome(score, withheld=not all_checked)


def score_outcome(score: float | None, *, withheld: bool = False) -> FidelityOutcome:
    """The outcome that a score gives; a pass may be withheld."""
    if score is None:
        return "PENDING"
    if score >= SCORE_PASS:
        return "WARN" if withheld else "PASS"
    return "WARN" if score >= SCORE_WARN else "FAIL"


def _reason(outcome: FidelityOutcome, judged: list[ExecutorFidelity]) -> str | None:
    """Why it is no pass: what diverges, and how much was not checked."""
    if outcome == "PASS":
        return None
    if not judged:
        return "the framework reported no step, so there is nothing to compare"
    unchecked = sum(item.score is None for item in judged)
    if unchecked == len(judged):
        return "no model call of any executor was recorded, so nothing was compared"
    parts = []
    wrong = [item.verdict for item in judged if item.score is not None and item.score < 1]
    if wrong:
        parts.append(count_verdicts(wrong))
    if unchecked:
        parts.append(f"{unchecked:,} of {len(judged):,} executors had no chat truth")
    return "; ".join(parts)


def _notes(found: Iterable[Sides]) -> Iterable[str]:
    without = [sides for sides in found if not sides.entries]
    if without:
        used = add(total_tokens(turn.usage) for sides in without for turn in sides.turns)
        names = ", ".join(f"'{sides.executor_id}'" for sides in without[:3])
        more = f" and {len(without) - 3:,} more" if len(without) > 3 else ""
        yield (
            f"model calls of {names}{more} ({tokens(used)}) belong to no step; these rules do not "
            "look at them, --rules strict does"
        )
