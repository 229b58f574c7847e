"""The strict rules: every executor on either side, both directions, every component.

Belongs here: these rules, a function a question. Does not belong here: the words of finish
reasons (`finish_reasons`).

What the specified rules do not see, and these do: an executor that occurs only in the model
calls; reporting too much; input taken for output under the same total; cached and reasoning
tokens; the number of calls; an ending in other words for the same, or hidden behind a later one;
one divergence among so many executors that the mean passes.

**Tokens.** Total, input, output, cached and reasoning are each compared where both sides know
them. A count diverges if it is off by strictly more than 2 % of the truth *and* by more than
2 tokens, either way: the percentage is that of the specified rules, the floor keeps rounding in
very short calls from being a divergence. A turn that failed, or whose usage is unknown or known
in part, makes the truth a lower bound: falling short of it is certain, exceeding it is not. It is
then not held against the ledger, and is no agreement either. Likewise a part that some entries of
the ledger do not report is not known to fall short. Zeros throughout are no measurement, since any call takes tokens in: clients that stream
without asking for usage report them. Nor is a turn that counts all its tokens as input split
into input and output; only its total is compared.

**Calls**, where the ledger counts them, are compared exactly; failed ones may be counted or not.

**Finish reasons** are compared by meaning, per invocation in order where both sides say which
invocation it is, else in order of the whole executor. *Intervention hidden*: a turn that was cut
by length or by a content filter and that no entry shows, wherever in an invocation it was. Where
the source's ledger has no endings at all, as those of some tracing tools, only cuts count.

| verdict | when | score | severity |
|---|---|---|---|
| Agree | nothing diverges | 1 | none |
| TokenMismatch | fewer tokens reported than used, or a component off | 0.5 | critical |
| OverReport | more tokens or calls reported than there were; 0 if there was no call | 0.5 | critical |
| InterventionHidden | a turn was cut, and no entry shows it | 0.5 | critical |
| FinishMismatch | other finish reasons, none of them a hidden cut | 0.5 | warning |
| HiddenRetry | tokens agree, and fewer calls reported than made | 0.5 | warning |
| Both | tokens and finish reasons diverge | 0 | critical |
| NoLedger | model calls that used tokens or were cut, and nothing reported of them | 0 | critical |
| NoTruth | no model call recorded, and not known that there was none | – | unchecked |
| Unmeasured | the model calls have no usage to compare with, or not all of it | – | unchecked |
| DerivedLedger | agrees, and is computed from what it is compared with | – | unchecked |
| Error | the executor failed, and what is missing may be missing for that | – | unchecked |
| NoModelCall | called no model, as far as all calls are recorded | – | inapplicable |

**Why so.** Tokens are what costs are made of: a ledger that is wrong in them is what this gate is
for, so each such verdict is critical. So is a hidden cut, which makes a truncated or filtered
answer read as a complete one: the single-agent rules call it critical too. Another wrong
finish reason changes no figure, and one hidden retry is a warning in the single-agent rules.
What a framework adds up from the very calls it is compared with can only show that none is
missing. And what an executor used before it raised is reported by no framework known: that is a
gap, not a lie; the same holds where no call of it is recorded, for those that break off are the
first that a recorder loses. Where usage is on neither side nothing is known to be missing.

**Outcome.** Any critical verdict FAILs, however many others agree. Otherwise a warning, or an
executor that was not checked, is a WARN. PASS: every executor that called a model agrees.
PENDING: nothing was compared, or the framework reported nothing at all. The score is the mean of
those that have one; it informs and decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from benchmark_assets.model.fidelity import (
    Coverage,
    ExecutorFidelity,
    FidelityOutcome,
    LedgerEntry,
    ModelTurn,
    Severity,
    Usage,
    WorkflowFidelity,
    WorkflowRecord,
)
from benchmark_assets.model.verdict import Check, Where
from benchmark_assets.scoring.trace_fidelity.finish_reasons import (
    differs,
    discarded,
    hidden_interventions,
)
from benchmark_assets.scoring.trace_fidelity.grouping import (
    REPORTED_PERCENT,
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

NAME = "strict"

FLOOR_TOKENS = 2
"""A difference of so many tokens is none, however large a share it is."""

VERDICTS: dict[str, tuple[float | None, Severity]] = {
    "Agree": (1.0, "none"),
    "TokenMismatch": (0.5, "critical"),
    "OverReport": (0.5, "critical"),
    "InterventionHidden": (0.5, "critical"),
    "FinishMismatch": (0.5, "warning"),
    "HiddenRetry": (0.5, "warning"),
    "Both": (0.0, "critical"),
    "NoLedger": (0.0, "critical"),
    "NoTruth": (None, "unchecked"),
    "Unmeasured": (None, "unchecked"),
    "DerivedLedger": (None, "unchecked"),
    "Error": (None, "unchecked"),
    "NoModelCall": (None, "inapplicable"),
}
"""Verdict → score and severity."""

Direction = Literal["short", "over"]


class _Count(NamedTuple):
    """One component on both sides; None is unknown.

    `least`: the truth is only a lower bound; `in_part`: the ledger is.
    """

    name: str
    reported: int | None
    used: int | None
    least: bool
    in_part: bool = False

    @property
    def direction(self) -> Direction | None:
        """Which way the ledger is off; None if it is not, or that cannot be told."""
        apart = self._apart
        return (
            None if apart == ("short" if self.in_part else "over" if self.least else "") else apart
        )

    @property
    def beyond(self) -> bool:
        """Whether more is reported than is known to be used, while not all of that is known."""
        return self.least and self._apart == "over"

    @property
    def _apart(self) -> Direction | None:
        if self.reported is None or self.used is None:
            return None
        off = abs(self.reported - self.used)
        if off <= FLOOR_TOKENS or not exceeds(off, self.used):
            return None
        return "short" if self.reported < self.used else "over"


class _Calls(NamedTuple):
    """Model calls that were reported, and made; failed ones may be counted or not."""

    reported: int
    succeeded: int
    made: int

    @property
    def direction(self) -> Direction | None:
        """Which way the ledger is off; None if it is not."""
        if self.reported < self.succeeded:
            return "short"
        return "over" if self.reported > self.made else None


class _Pair(NamedTuple):
    """What belongs together: one invocation, or (None) a whole executor."""

    invocation: str | None
    entries: list[LedgerEntry]
    turns: list[ModelTurn]


class _Comparison(NamedTuple):
    """All that is found of one executor, before it has a name.

    Attributes:
        counts: Token counts, the total first.
        measured: Whether every turn that did not fail has usage, and none that failed may be what
            is reported beyond that.
        endings: Whether the ledger says how executors ended.
        failed: Whether the executor failed in an invocation, and whether what it left in that
            one is set apart.
    """

    counts: tuple[_Count, ...]
    measured: bool
    calls: _Calls | None
    pairs: list[_Pair]
    endings: bool
    finish: list[str]
    hidden: list[ModelTurn]
    failed: bool
    set_apart: bool

    @property
    def tokens(self) -> Direction | None:
        """Which way the tokens are off; a component that falls short outweighs one that is over."""
        directions = {count.direction for count in self.counts}
        return "short" if "short" in directions else "over" if "over" in directions else None


def has_ledger(record: WorkflowRecord) -> bool:
    """Whether a framework reported anything of any executor: without, there is nothing to judge."""
    return any(map(_reports, record.ledger))


def reconcile(record: WorkflowRecord) -> WorkflowFidelity:
    """Compare both sides of a workflow by the strict rules."""
    record = plausible(record)
    traced = None if record.traced is None else {same_name(name) for name in record.traced}
    # Whatever the source says of itself: what does occur is compared.
    endings = record.endings or any(entry.finish_reason is not None for entry in record.ledger)
    judged = [
        _judge(sides, all_recorded=traced is None or name in traced, endings=endings)
        for name, sides in by_executor(record).items()
    ]
    pending = record.problem
    if pending is None and not record.ledger:
        pending = "the framework reported nothing, so there is nothing to compare"
    scores = [] if pending else [item.score for item in judged if item.score is not None]
    outcome = _outcome(judged) if scores else "PENDING"
    return WorkflowFidelity(
        rules=NAME,
        outcome=outcome,
        score=sum(scores) / len(scores) if scores else None,
        coverage=_coverage(record, judged),
        executors=tuple(judged),
        reason=pending or _reason(outcome, judged),
    )


def _outcome(judged: Sequence[ExecutorFidelity]) -> FidelityOutcome:
    severities = {item.severity for item in judged}
    if "critical" in severities:
        return "FAIL"
    return "WARN" if severities & {"warning", "unchecked"} else "PASS"


def _coverage(record: WorkflowRecord, judged: Sequence[ExecutorFidelity]) -> Coverage:
    able = [item for item in judged if item.severity != "inapplicable"]
    # An executor of which nothing was reported is a divergence, and not one that was compared.
    checked = [item for item in able if item.score is not None and item.verdict != "NoLedger"]
    used = add(_total(turn.usage) for turn in record.turns)
    return Coverage(
        executors=len(able),
        checked=len(checked),
        truth_tokens=used,
        checked_tokens=None if used is None else add(item.truth_tokens for item in checked) or 0,
    )


def _reason(outcome: FidelityOutcome, judged: Sequence[ExecutorFidelity]) -> str | None:
    if outcome == "PASS":
        return None
    wrong = [item for item in judged if item.severity not in ("none", "inapplicable")]
    rank = ("critical", "warning", "unchecked")
    listed = [item.verdict for word in rank for item in wrong if item.severity == word]
    counted = count_verdicts(listed) or "no executor called a model"
    return f"nothing was compared: {counted}" if outcome == "PENDING" else counted


# One executor.


def _judge(sides: Sides, *, all_recorded: bool, endings: bool) -> ExecutorFidelity:
    """Compare the two sides of one executor.

    Args:
        sides: What was recorded of it.
        all_recorded: Whether all its model calls were: then none recorded is none made.
        endings: Whether the ledger says how executors ended.
    """
    none_made = not sides.turns and all_recorded
    found = _compare(sides, none_made=none_made, endings=endings)
    verdict = _verdict(sides, found, none_made=none_made)
    score, severity = VERDICTS[verdict]
    if none_made and score is not None:
        score = 0.0  # all of what is reported is too much: nothing of it is right
    return ExecutorFidelity(
        executor_id=sides.executor_id,
        verdict=verdict,
        severity=severity,
        score=score,
        ledger_tokens=add(total_tokens(entry.usage) for entry in sides.entries),
        truth_tokens=0 if none_made else add(_total(turn.usage) for turn in sides.turns),
        ledger_finish=last(entry.finish_reason for entry in sides.entries),
        truth_finish=last(turn.finish_reason for turn in sides.turns),
        checks=tuple(_checks(verdict, sides, found)),
    )


def _verdict(sides: Sides, found: _Comparison, *, none_made: bool) -> str:
    off, calls = found.tokens, found.calls and found.calls.direction
    if not sides.turns:
        if not none_made:
            return "NoTruth"
        if "over" in (off, calls):
            return "OverReport"
        return "Error" if found.failed else "NoModelCall"
    if not any(map(_reports, sides.entries)):
        # What failed excuses itself alone: other invocations are as silent as they were.
        turns = [turn for pair in found.pairs for turn in pair.turns]
        silent = [turn for turn in turns if turn.error is None]
        if not silent or (found.failed and not found.set_apart):
            return "Error"
        known = found.hidden or any(_used(turn.usage) for turn in silent)
        return "NoLedger" if known else "Unmeasured"
    if found.failed and not found.set_apart and off == "short":
        # Which invocation failed is not known, and what it used is reported nowhere.
        return "Error"
    if off is not None:
        if found.finish or found.hidden:
            return "Both"
        return "OverReport" if off == "over" else "TokenMismatch"
    if found.failed and not (found.set_apart and (found.finish or found.hidden)):
        return "Error"
    if found.hidden:
        return "InterventionHidden"
    return "FinishMismatch" if found.finish else _agreeing(sides, found)


def _agreeing(sides: Sides, found: _Comparison) -> str:
    """The verdict where neither tokens nor finish reasons diverge, and nothing failed."""
    if found.calls is not None and found.calls.direction is not None:
        return "OverReport" if found.calls.direction == "over" else "HiddenRetry"
    if not found.measured:
        return "Unmeasured"
    return "DerivedLedger" if any(entry.derived for entry in sides.entries) else "Agree"


# Finding out.


def _compare(sides: Sides, *, none_made: bool, endings: bool) -> _Comparison:
    failed = any(entry.error is not None for entry in sides.entries)
    rest = _without_failed(sides) if failed else None
    compared = sides if rest is None else rest
    pairs = _pairs(compared)
    differing = [differs(_reporting(pair.entries), pair.turns) for pair in pairs if endings]
    counts = tuple(_counts(compared, none_made=none_made))
    measured = all(_used(turn.usage) or turn.error is not None for turn in compared.turns)
    return _Comparison(
        counts=counts,
        measured=measured and not counts[0].beyond,
        calls=_calls(compared) if compared.turns or none_made else None,
        pairs=pairs,
        endings=endings,
        finish=[reason for reason in differing if reason is not None],
        hidden=[
            turn
            for pair in pairs
            for turn in hidden_interventions(_reporting(pair.entries), pair.turns)
        ],
        failed=failed,
        set_apart=rest is not None,
    )


def _without_failed(sides: Sides) -> Sides | None:
    """What was left by invocations that did not fail; None if it is not known which did."""
    if not _invocations_known(sides):
        return None
    failed = {entry.invocation for entry in sides.entries if entry.error is not None}
    return Sides(
        sides.executor_id,
        [entry for entry in sides.entries if entry.invocation not in failed],
        [turn for turn in sides.turns if turn.invocation not in failed],
    )


def _invocations_known(sides: Sides) -> bool:
    items: tuple[LedgerEntry | ModelTurn, ...] = (*sides.entries, *sides.turns)
    return all(item.invocation is not None for item in items)


def _pairs(sides: Sides) -> list[_Pair]:
    """Each invocation, in order, where both sides say which it is; else all of the executor."""
    if not _invocations_known(sides):
        return [_Pair(None, sides.entries, sides.turns)]
    found: dict[str, _Pair] = {}
    for entry in sides.entries:
        name = entry.invocation or ""
        found.setdefault(name, _Pair(name, [], [])).entries.append(entry)
    for turn in sides.turns:
        name = turn.invocation or ""
        found.setdefault(name, _Pair(name, [], [])).turns.append(turn)
    return list(found.values())


def _reports(entry: LedgerEntry) -> bool:
    """Whether an entry says anything of model calls; one that routes or aggregates does not."""
    said = total_tokens(entry.usage) is not None
    return said or entry.finish_reason is not None or entry.calls is not None


def _reporting(entries: Iterable[LedgerEntry]) -> list[LedgerEntry]:
    return [entry for entry in entries if _reports(entry)]


def _used(usage: Usage | None) -> bool:
    """Whether a turn's usage was measured: zeros throughout are what clients write who do not."""
    if usage is None:
        return False
    return bool(usage.total or usage.input or usage.output or usage.cached or usage.reasoning)


def _total(usage: Usage | None) -> int | None:
    return total_tokens(usage) if _used(usage) else None


_COMPONENTS = ("input", "output", "cached", "reasoning")


def _counts(sides: Sides, *, none_made: bool) -> Iterator[_Count]:
    """The token counts of both sides, the total first."""
    measured = [turn.usage if _used(turn.usage) else None for turn in sides.turns]
    reported = add(total_tokens(entry.usage) for entry in sides.entries)
    used = [total_tokens(usage) for usage in measured]
    if any(usage is not None for usage in measured):
        # What is not reported of calls that were measured is reported as nothing.
        reported = reported or 0
    broken_off = any(turn.error is not None for turn in sides.turns)
    least = broken_off or not all(map(_is_whole, measured))
    yield _Count("total", reported, 0 if none_made else add(used), least)
    said = [entry.usage for entry in sides.entries if total_tokens(entry.usage) is not None]
    for name in _COMPONENTS:
        told = [getattr(usage, name) for usage in said]
        parts = [None if usage is None else _part(usage, name) for usage in measured]
        yield _Count(name, add(told), add(parts), broken_off or None in parts, None in told)


def _is_whole(usage: Usage | None) -> bool:
    """Whether a turn's usage says all that it used, and not only one of input and output."""
    if usage is None:
        return False
    return usage.total is not None or None not in (usage.input, usage.output)


def _part(usage: Usage, name: str) -> int | None:
    """One component of a turn's usage; input and output only where the turn tells them apart."""
    splits = usage.output or usage.input is None or total_tokens(usage) != usage.input
    if not splits and name in ("input", "output"):
        return None
    count: int | None = getattr(usage, name)
    return count


def _calls(sides: Sides) -> _Calls | None:
    """The calls of both sides; None if the ledger does not count them."""
    reported = add(entry.calls for entry in sides.entries)
    if reported is None:
        return None
    succeeded = sum(turn.error is None for turn in sides.turns)
    return _Calls(reported, succeeded, len(sides.turns))


# Saying it.


def _checks(verdict: str, sides: Sides, found: _Comparison) -> Iterator[Check]:
    yield from _explain(verdict, sides, found)
    if verdict == "NoLedger" or (not sides.turns and verdict != "OverReport"):
        return
    yield from (_token_check(count) for count in found.counts if _is_shown(count))
    if found.calls is not None:
        yield _calls_check(found.calls)
    if sides.turns:
        yield _finish_check(found)
        yield _intervention_check(found)
        yield from _retry_checks(found)


def _is_shown(count: _Count) -> bool:
    """Whether there is anything to say: a part that neither side knows is not worth a line."""
    return count.name == "total" or count.reported is not None or count.used is not None


def _token_check(count: _Count) -> Check:
    name = "tokens" if count.name == "total" else f"{count.name} tokens"
    least = "at least " if count.least and count.used is not None else ""
    expected = (
        f"{least}{tokens(count.used)} used; up to {REPORTED_PERCENT} % or {FLOOR_TOKENS} tokens off"
    )
    observed = f"{tokens(count.reported)} reported"
    if count.reported is None or count.used is None:
        side = "reported" if count.reported is None else "known of the model calls"
        return Check(
            name=name,
            outcome="skipped",
            expected=expected if count.used is not None else "a count of the model calls",
            observed=observed,
            reason=f"no count of {name} is {side}",
        )
    if count.beyond:
        return Check(
            name=name,
            outcome="skipped",
            expected=expected,
            observed=observed,
            reason=f"what was used is known in part, so more {name} may be right",
        )
    return Check(
        name=name,
        outcome="passed" if count.direction is None else "failed",
        expected=expected,
        observed=observed,
        reason=_token_reason(count, name),
    )


def _token_reason(count: _Count, name: str) -> str | None:
    if count.direction is None or count.reported is None or count.used is None:
        return None
    off = abs(count.reported - count.used)
    if count.direction == "over":
        return f"{off:,} {name} more reported than the {count.used:,} used"
    return f"{off:,} of {count.used:,} {name} not reported ({percent(off, count.used)})"


def _calls_check(calls: _Calls) -> Check:
    failed = calls.made - calls.succeeded
    made = f"{calls.made:,} made" + (f", {failed:,} of them failed" if failed else "")
    reasons = {
        "short": f"{calls.succeeded - calls.reported:,} of {calls.succeeded:,} model calls that "
        "succeeded are not counted",
        "over": f"{calls.reported - calls.made:,} model calls more reported than made",
    }
    return Check(
        name="calls",
        outcome="passed" if calls.direction is None else "failed",
        expected=f"{made}; failed ones may be left out",
        observed=f"{calls.reported:,} reported",
        reason=None if calls.direction is None else reasons[calls.direction],
    )


def _finish_check(found: _Comparison) -> Check:
    known = any(turn.finish_reason is not None for pair in found.pairs for turn in pair.turns)
    missing = "no model call gave a finish reason"
    if known and not found.endings:
        missing = "the ledger of this source says of no executor how it ended"
    per = "per invocation" if found.pairs and found.pairs[0].invocation is not None else "in order"
    more = f" (and {len(found.finish) - 1:,} more invocations)" if len(found.finish) > 1 else ""
    return Check(
        name="finish reason",
        outcome="failed" if found.finish else "passed" if known and found.endings else "skipped",
        expected=f"what the model calls ended with, {per}: "
        + _listed(turn.finish_reason for pair in found.pairs for turn in pair.turns),
        observed="reported: "
        + _listed(e.finish_reason for pair in found.pairs for e in _reporting(pair.entries)),
        reason=found.finish[0] + more
        if found.finish
        else None
        if known and found.endings
        else missing,
    )


def _intervention_check(found: _Comparison) -> Check:
    hidden = found.hidden
    words = _listed(turn.finish_reason for turn in hidden)
    turns = "a turn was" if len(hidden) == 1 else f"{len(hidden):,} turns were"
    return Check(
        name="intervention",
        outcome="failed" if hidden else "passed",
        expected="every turn cut by length or content filter is shown by an entry",
        observed=f"not shown: {words}" if hidden else "all shown, or none cut",
        reason=f"{turns} cut ({words}) and no ledger entry shows it" if hidden else None,
        where=Where(span_id=hidden[0].span_id) if hidden and hidden[0].span_id else None,
    )


def _retry_checks(found: _Comparison) -> Iterator[Check]:
    """Turns that were done again: hidden where the ledger falls short, else only worth knowing."""
    again = [turn for pair in found.pairs if _is_one(pair) for turn in discarded(pair.turns)]
    if not again:
        return
    short = found.tokens == "short" or (
        found.calls is not None and found.calls.direction == "short"
    )
    ended = _listed(turn.finish_reason or ("failed" if turn.error else None) for turn in again)
    count = f"{len(again):,} model call{'' if len(again) == 1 else 's'}"
    yield Check(
        name="retries",
        outcome="failed" if short else "info",
        expected="calls that were done again are in the ledger",
        observed=f"{count} ({ended}) followed by another in the same invocation",
        reason="a retry is hidden: the ledger falls short" if short else None,
    )


def _is_one(pair: _Pair) -> bool:
    """Whether the turns are those of one invocation, as far as can be told."""
    return pair.invocation is not None or len(_reporting(pair.entries)) <= 1


def _explain(verdict: str, sides: Sides, found: _Comparison) -> Iterator[Check]:
    """For a verdict that does not come from a difference: why it is so."""
    entries = f"{len(sides.entries):,} ledger entr{'y' if len(sides.entries) == 1 else 'ies'}"
    calls = f"{len(sides.turns):,} model call{'' if len(sides.turns) == 1 else 's'}"
    used = tokens(add(_total(turn.usage) for turn in sides.turns))
    skipped = {
        "NoTruth": ("model calls of this executor", entries, "no model call of it was recorded"),
        "Unmeasured": (
            "usage of every model call",
            calls,
            "more is reported than is known to be used, and what calls that failed or say only a "
            "part used is not known"
            if found.counts[0].beyond
            else "model calls have no usage, so nothing says whether the ledger is right",
        ),
        "DerivedLedger": (
            "a ledger made apart from the model calls",
            entries,
            "the ledger is computed from the model calls that it agrees with",
        ),
        "Error": ("an executor that did not fail", _error(sides), _what_failed(sides, found)),
        "NoModelCall": ("model calls of this executor", entries, "it called no model"),
    }
    if verdict == "NoLedger":
        yield Check(
            name="ledger",
            outcome="failed",
            expected=f"a report of {calls}, {used}",
            observed=f"{entries}, none of them with usage or a finish reason",
            reason=f"{calls} used {used}, and the framework reported none of it",
        )
    elif verdict in skipped:
        expected, observed, reason = skipped[verdict]
        yield Check(
            name="comparable",
            outcome="skipped",
            expected=expected,
            observed=observed,
            reason=reason,
        )


def _what_failed(sides: Sides, found: _Comparison) -> str:
    if not found.failed:
        return "its model calls failed"
    if found.set_apart and any(pair.turns for pair in found.pairs):
        return "an invocation failed and is left out; the others agree"
    return "the executor failed, and what it used until then is reported nowhere"


def _error(sides: Sides) -> str:
    items: tuple[LedgerEntry | ModelTurn, ...] = (*sides.entries, *sides.turns)
    return next((item.error for item in items if item.error is not None), "failed")


def _listed(reasons: Iterable[str | None], most: int = 6) -> str:
    words = [finish(reason) for reason in reasons]
    more = f" and {len(words) - most:,} more" if len(words) > most else ""
    return (", ".join(words[:most]) + more) or "nothing"
