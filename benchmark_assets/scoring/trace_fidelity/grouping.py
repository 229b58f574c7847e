"""The two sides of each executor, put side by side.

Belongs here: which entries and turns are one executor's, and adding up what they say. Does not
belong here: what a difference means (the rule sets).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

import msgspec

from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord

SCORE_PASS = 0.99
SCORE_WARN = 0.80
"""Least scores of a pass and of a warning."""

REPORTED_PERCENT = 2
"""Tokens may fall short of the truth by so much, in percent of the truth."""


MOST_TOKENS = 2**53
"""More than that no run can have used: counts that add up to more count nothing."""


class Sides(msgspec.Struct):
    """All that was recorded of one executor, in the order of the record.

    `executor_id` is the spelling that occurs first.
    """

    executor_id: str
    entries: list[LedgerEntry] = []
    turns: list[ModelTurn] = []


@lru_cache(maxsize=65_536)
def same_name(executor: str) -> str:
    """What the spellings of an executor's id that differ in nothing but case have in common.

    Character by character, as frameworks compare ids: letters whose other case is several
    letters are left as they are.
    """
    if executor.isascii():
        return executor.upper()
    return "".join(char.upper() if len(char.upper()) == 1 else char for char in executor)


def plausible(record: WorkflowRecord) -> WorkflowRecord:
    """The record; without its token counts, and with a problem, if they cannot be true.

    Each may be possible and their sum beyond what can be stored or added up exactly.
    """
    for side, items in (("ledger", record.ledger), ("model calls", record.turns)):
        if sum(_largest(item.usage) for item in items) > MOST_TOKENS:
            text = f"the token counts of the {side} add up to more than {MOST_TOKENS:,}"
            return msgspec.structs.replace(
                record,
                ledger=tuple(msgspec.structs.replace(item, usage=None) for item in record.ledger),
                turns=tuple(msgspec.structs.replace(item, usage=None) for item in record.turns),
                problem=record.problem or text,
            )
    return record


def _largest(usage: Usage | None) -> int:
    if usage is None:
        return 0
    parts = (usage.input, usage.output, usage.total, usage.cached, usage.reasoning)
    return sum(count for count in parts if count is not None)


def by_executor(record: WorkflowRecord) -> dict[str, Sides]:
    """Common name → both sides; those with a ledger come first, in its order."""
    found: dict[str, Sides] = {}
    for entry in record.ledger:
        _sides(found, entry.executor).entries.append(entry)
    for turn in record.turns:
        _sides(found, turn.executor).turns.append(turn)
    return found


def _sides(found: dict[str, Sides], executor: str) -> Sides:
    name = same_name(executor)
    if name not in found:
        found[name] = Sides(executor)
    return found[name]


def total_tokens(usage: Usage | None) -> int | None:
    """The reported total, else what is known of input and output; None if nothing is."""
    if usage is None:
        return None
    return usage.total if usage.total is not None else add((usage.input, usage.output))


def add(counts: Iterable[int | None]) -> int | None:
    """Sum of the counts that are known; None if none is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def last(reasons: Iterable[str | None]) -> str | None:
    """The last finish reason that is there."""
    found = None
    for reason in reasons:
        found = found if reason is None else reason
    return found


def exceeds(difference: int, base: int) -> bool:
    """Whether a difference is strictly more than the tolerated share of what it is measured by.

    In whole numbers, so that exactly 2 % is never taken for more.
    """
    return difference * 100 > REPORTED_PERCENT * max(base, 1)


def percent(part: int, whole: int) -> str:
    """A share in words: `42.9 %`."""
    return f"{100 * part / max(whole, 1):.1f} %"


def tokens(count: int | None) -> str:
    """A token count in words."""
    return "no tokens" if count is None else f"{count:,} token{'' if count == 1 else 's'}"


def finish(reason: str | None) -> str:
    """A finish reason in words."""
    return "no finish reason" if reason is None else f"'{reason}'"


def count_verdicts(verdicts: Iterable[str]) -> str:
    """Count verdicts in words: `2 TokenMismatch, 1 NoLedger`."""
    return ", ".join(f"{number:,} {name}" for name, number in Counter(verdicts).items())
