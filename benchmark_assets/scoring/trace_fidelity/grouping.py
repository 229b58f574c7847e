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
