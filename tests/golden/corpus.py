"""A seeded corpus of recorded traces, each with its fixture, clean or with one known fault.

Belongs here: drawing fixtures, traces and faults. Does not belong here: judging. Nothing here
imports the package or the oracle: what a trace is worth is known from how it was made.

A fixture is a plain object as people write it; a trace is one in the recorder's format. Rules are
named by one stable word each, `faults.RULES`.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from tests.golden.domains import DOMAINS
from tests.golden.faults import Fault, mutations
from tests.golden.plans import FAMILIES, Json, Plan, Run


@dataclass(frozen=True)
class Case:
    """One trace with its fixture, and what is true of it.

    Attributes:
        case_id: Unique in the corpus, and usable as a file name.
        family: Which kind of fixture it is.
        fault: The kind of fault; None if the trace is clean.
        rule: The rule that must fail, a word of `RULES`; None if the trace is clean.
        consequences: Rules that may fail besides.
        truth: What was done, in a sentence.
    """

    case_id: str
    family: str
    fixture: Json
    trace: Json
    fault: str | None
    rule: str | None
    consequences: frozenset[str]
    truth: str


TRIALS = 6
"""Traces of each fixture."""

FAULTY = 2
"""Traces of each fixture, on average, with a fault."""


def corpus(seed: int = 20260301, traces: int = 2100) -> list[Case]:
    """The corpus of a seed: the same on every machine.

    Args:
        seed: Decides everything.
        traces: How many traces; `TRIALS` for each fixture.
    """
    rng = Random(seed)
    used: Counter[str] = Counter()
    return [case for number in range(-(-traces // TRIALS)) for case in _cases(number, rng, used)][
        :traces
    ]


def _cases(number: int, rng: Random, used: Counter[str]) -> Iterator[Case]:
    """The traces of one fixture: some clean, some with the faults that were used least."""
    family = [*FAMILIES][number % len(FAMILIES)]
    domain = DOMAINS[(number // len(FAMILIES)) % len(DOMAINS)]
    plan = FAMILIES[family](domain, rng)
    fixture = {
        "id": f"{family.replace('_', '-')}-{domain.name}-{number:03}",
        "version": "1",
        "comment": (FAMILIES[family].__doc__ or "").strip(),
        "input": {"user": domain.wish.format(1000 + number)},
        "expect": plan.expect,
    }
    faulty = set(rng.sample(range(TRIALS), FAULTY))
    for trial in range(TRIALS):
        run = plan.clean(rng)
        kind, found = _broken(plan, run, rng, used) if trial in faulty else (None, None)
        trace = {
            "fixture": fixture["id"],
            "trial": trial,
            "input": fixture["input"],
            **run.trace,
        }
        yield Case(
            case_id=f"{fixture['id']}-{trial}",
            family=family,
            fixture=fixture,
            # What is not shared between traces cannot be changed through another.
            trace=copy.deepcopy(trace),
            fault=kind,
            rule=None if found is None else found.rule,
            consequences=frozenset() if found is None else found.besides,
            truth="nothing is wrong" if found is None else found.truth,
        )


def _broken(plan: Plan, run: Run, rng: Random, used: Counter[str]) -> tuple[str, Fault]:
    """Put in, of the faults that have a place in a run, the one that was used least.

    What is counted is the kind and the rule that it breaks, so that a rule that few fixtures have
    gets its share.
    """
    found = [*mutations(plan, run, rng.randrange(2**32))]
    kind, chosen, trace = min(found, key=lambda it: (used[f"{it[0]}/{it[1].rule}"], it[0]))
    used[f"{kind}/{chosen.rule}"] += 1
    run.trace = trace
    return kind, chosen


def digest(cases: Sequence[Case]) -> str:
    """SHA-256 over the whole corpus, in hex."""
    rows = [
        [c.case_id, c.family, c.fixture, c.trace, c.fault, c.rule, sorted(c.consequences), c.truth]
        for c in cases
    ]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()
