"""How the tests of grading call the product: the only place that knows its names.

Belongs here: reading a plain fixture and a plain trace as the product does, and telling which rule
a check is of. Does not belong here: any expectation.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Check

Json = dict[str, Any]

BY_NAME: dict[str, str] = {
    "path": "path",
    "no other calls": "extra",
    "extra calls": "extra",
    "no other writes": "writes",
    "question": "question",
    "schema": "final",
    "ended": "ended",
    "no error state": "ended",
    "no failed calls": "health",
    "no error spans": "health",
    "steps": "budget",
    "tool calls": "budget",
    "tokens": "budget",
    "cost": "budget",
    "duration": "budget",
    "retries": "budget",
}
"""Name of a check → the rule it is of."""

BY_START: dict[str, str] = {
    "call: ": "arguments",
    "every call: ": "arguments",
    "value hashes: ": "arguments",
    "forbidden: ": "forbidden",
    "before: ": "before",
    "question": "question",
    "contains: ": "final",
    "not contains: ": "final",
}
"""How names of checks begin that name what they are about, too."""


def rule_of(check: Check) -> str:
    """The word for the rule of a check. A name that is not known here is an error of the test."""
    if check.name in BY_NAME:
        return BY_NAME[check.name]
    rule = next((rule for start, rule in BY_START.items() if check.name.startswith(start)), None)
    assert rule is not None, f"tell which rule the check is of: {check.name}"
    return rule


def snapshot(trace: Json) -> TraceSnapshot:
    """A trace in the recorder's format, as the product reads it."""
    file = TraceFile("trace.json", "trace.json", json.dumps(trace).encode())
    (read,) = choose_format(file).parse(file)
    return read


def judged(fixture: Json, trace: TraceSnapshot) -> Any:
    """What the product makes of a plain fixture and a trace that it has read."""
    files = import_module("benchmark_assets.adapters.fixture_files")
    scoring = import_module("benchmark_assets.scoring.golden_path")
    return scoring.grade(files.read_fixture(json.dumps(fixture).encode(), "fixture.json"), trace)


def quickly_graded(fixture: Json, trace: Json) -> bool | None:
    """Whether a trace passes, as the product says without words; None if it does not."""
    files = import_module("benchmark_assets.adapters.fixture_files")
    scoring = import_module("benchmark_assets.scoring.golden_path")
    grader = scoring.Grader(files.read_fixture(json.dumps(fixture).encode(), "fixture.json"))
    passed: bool | None = grader.passes(snapshot(trace))
    return passed


def graded(fixture: Json, trace: Json) -> Any:
    """What the product makes of a plain fixture and a plain trace."""
    return judged(fixture, snapshot(trace))


def broken(result: Any) -> set[str]:
    """The rules whose checks failed or could not be judged."""
    return {rule_of(check) for check in result.checks if check.outcome in ("failed", "error")}


def said(result: Any) -> str:
    """All that is said of failures: words, what was expected, what was observed."""
    failed = [check for check in result.checks if check.outcome in ("failed", "error")]
    parts = [part for c in failed for part in (c.name, c.reason, c.expected, c.observed) if part]
    return "\n".join([*result.failures, *parts])
