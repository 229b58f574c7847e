"""One trace under one contract: every check, for a terminal or a program.

Belongs here: how one verdict is laid out. Does not belong here: judging (`scoring`), or figures
over many runs (`console`, `html`).

Everything that was judged is listed, on a clean run too; what was not scored is told apart by
word, not by colour alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.text import Text

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.problem import Problem
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import (
    Check,
    CheckOutcome,
    Outcome,
    PluginResult,
    Verdict,
    Where,
)
from benchmark_assets.report.lines import print_prose
from benchmark_assets.report.machine import indented
from benchmark_assets.report.text import (
    format_count,
    format_hash,
    format_percent,
    join_words,
    named,
    plural,
    printable,
    shorten,
)

SHOWN_CHARACTERS = 300
"""How much of a value is shown unless everything is asked for: about four lines."""

_WORDS: dict[CheckOutcome, tuple[str, str]] = {
    "passed": ("passed", "green"),
    "failed": ("FAILED", "bold red"),
    "error": ("ERROR", "bold yellow"),
    "skipped": ("skipped", "dim"),
    "info": ("info", "cyan"),
}
"""Outcome of a check → the word that marks it, and its style."""

_PASSED: dict[bool | None, tuple[str, str]] = {
    True: ("passed", "bold green"),
    False: ("FAILED", "bold red"),
    None: ("not scored", "bold"),
}

_OUTCOMES: dict[Outcome, tuple[str, str]] = {
    "resolved": ("passed", "bold green"),
    "unresolved": ("FAILED", "bold red"),
    "unchecked": ("nothing was checked", "bold yellow"),
    "error": ("could not be evaluated", "bold yellow"),
}

_HEAD = 10
_MARK = 11
INFORMATION = 6
"""Most lines of information that a plugin prints; the rest is counted."""
_DETAIL = 21


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict with what it is about.

    Attributes:
        snapshot_file: The trace file as the user named it, and its SHA-256. The bytes that the
            trace was recorded in are the trace's `origin`, which may be another file's.
        contract_file: The contract's file as people should see it.
        engine: Version of the rules.
        selected: The only plugins that were asked for; None if all were.
        absent: Plugins that were asked for and have no section in the contract.
        notes: What the reader should know besides.
    """

    verdict: Verdict
    trace: TraceSnapshot
    snapshot_file: str
    snapshot_sha256: str
    contract: Contract
    contract_file: str
    engine: str
    selected: tuple[str, ...] | None = None
    absent: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def passed(self) -> bool | None:
        """Whether the run passed; None if nothing was checked, or it could not be evaluated."""
        return {"resolved": True, "unresolved": False}.get(self.verdict.outcome)


# For programs.


def verification_json(verification: Verification) -> bytes:
    """Serialise a verification as indented JSON in UTF-8, ending in a newline.

    Every check has all its keys; null is unknown. `where.call` counts tool calls from 0.
    """
    verdict, trace, contract = verification.verdict, verification.trace, verification.contract
    return indented(
        {
            "passed": verification.passed,
            "score": verdict.score,
            "plugins": [_plugin_data(result) for result in verdict.plugins],
            "outcome": verdict.outcome,
            "reason": verdict.reason,
            "trace_id": trace.trace_id,
            "model": trace.model,
            "workflow": trace.workflow,
            "task": trace.task,
            "contract": contract.id,
            "contract_version": contract.contract_version,
            "contract_file": verification.contract_file,
            "contract_sha256": contract.content_hash,
            "engine": verification.engine,
            "selected_plugins": verification.selected,
            "absent_plugins": verification.absent,
            "notes": verification.notes,
            "origin": {
                "file": trace.origin.file,
                "sha256": trace.origin.sha256,
                "record": trace.origin.record,
                "format": trace.origin.format,
            },
            "snapshot": {
                "file": verification.snapshot_file,
                "sha256": verification.snapshot_sha256,
            },
        }
    )


def no_verdict_json(problems: Iterable[Problem]) -> bytes:
    """Serialise why there is nothing to serialise: the same top level, with `passed` null."""
    reasons = [str(problem) for problem in problems]
    return indented(
        {
            "passed": None,
            "score": None,
            "plugins": [],
            "outcome": "error",
            "reason": "\n".join(reasons) or None,
        }
    )


def _plugin_data(result: PluginResult) -> dict[str, Any]:
    data = {
        "name": result.plugin,
        "passed": result.passed,
        "score": result.score,
        "checks": [check_data(check) for check in result.checks],
    }
    return data if result.error is None else {**data, "error": result.error}


def check_data(check: Check) -> dict[str, Any]:
    """A check with all its keys; null is unknown."""
    where = check.where
    return {
        "name": check.name,
        "outcome": check.outcome,
        "expected": check.expected,
        "observed": check.observed,
        "reason": check.reason,
        "where": None if where is None else {"span_id": where.span_id, "call": where.call},
    }


# For a terminal.


def print_breakdown(verification: Verification, console: Console, *, full: bool = False) -> None:
    """Print what was judged, plugin by plugin and check by check.

    Args:
        verification: What to print.
        console: Where to; its width is kept to, and it decides about colour.
        full: Print values and hashes whole, and what passed checks expected and observed.
    """
    for name, text in _header(verification, full=full):
        print_prose(console, text, indent=_HEAD, label=Text(name, "dim"))
    for result in verification.verdict.plugins:
        console.print()
        print_prose(console, _plugin_line(result))
        shown = result.checks if full else _without_long_lists(result.checks)
        for check in shown:
            print_check(check, console, full=full)
        if len(shown) < len(result.checks):
            more = len(result.checks) - len(shown)
            print_prose(console, f"… and {more} more with --verbose", indent=_MARK, style="dim")
    console.print()
    if verification.absent:
        absent = join_words(list(map(printable, verification.absent)))
        print_prose(console, f"Not in the contract, so not judged: {absent}.", style="dim")
    for note in verification.notes:
        print_prose(console, printable(note), indent=6, label=Text("Note: ", "yellow"))
    print_prose(console, _conclusion(verification))


def _without_long_lists(checks: Sequence[Check]) -> Sequence[Check]:
    """The checks, of a long list of information only its beginning."""
    informing = [check for check in checks if check.outcome == "info"]
    beyond = {id(check) for check in informing[INFORMATION:]}
    return [check for check in checks if id(check) not in beyond]


def _header(verification: Verification, *, full: bool) -> Iterator[tuple[str, str | Text]]:
    trace, contract = verification.trace, verification.contract
    yield "Trace", named(trace.trace_id)
    origin, file = trace.origin, printable(verification.snapshot_file)
    record = f", {origin.record}" if origin.record else ""
    recorded = printable(f"{record} ({origin.format})")
    if verification.snapshot_sha256 == origin.sha256:
        yield "File", f"{file}{recorded}, SHA-256 {_digest(origin.sha256, full=full)}"
    else:
        digest = _digest(verification.snapshot_sha256, full=full)
        yield "File", f"{file}, SHA-256 {digest}"
        digest = _digest(origin.sha256, full=full)
        yield "Origin", f"{printable(origin.file)}{recorded}, SHA-256 {digest}"
    yield "Model", "not recorded" if trace.model is None else named(trace.model)
    if trace.workflow is not None:
        yield "Workflow", named(trace.workflow)
    if trace.task is not None:
        trial = "" if trace.trial is None else f", trial {trace.trial}"
        yield "Task", named(trace.task) + trial
    name = f", {contract.name}" if contract.name != contract.id else ""
    version = f"{contract.id}@{contract.contract_version}"
    yield "Contract", printable(f"{version}{name}, {verification.contract_file}")
    if verification.selected is not None:
        yield "Plugins", f"only {join_words(list(map(printable, verification.selected)))}"
    yield "Engine", printable(verification.engine)
    yield "Outcome", _outcome(verification)


def _digest(digest: str, *, full: bool) -> str:
    return printable(digest) if full else f"{printable(format_hash(digest))}…"


def _outcome(verification: Verification) -> Text:
    verdict = verification.verdict
    score = "" if verdict.score is None else f", score {format_percent(verdict.score)}"
    return Text.assemble(_OUTCOMES[verdict.outcome], score)


def _plugin_line(result: PluginResult) -> Text:
    name = Text(named(result.plugin), "bold")
    if result.error is not None:
        raised = f"  raised {printable(result.error)}"
        return Text.assemble(name, "  ", _WORDS["error"], raised)
    counts = _count(result.checks) or "no check"
    score = "" if result.score is None else f"  {format_percent(result.score)}"
    return Text.assemble(name, "  ", _PASSED[result.passed], f"{score}  {counts}")


def _count(checks: Iterable[Check]) -> str:
    """Count checks by outcome: `2 passed, 1 failed, 1 info`."""
    counts = Counter(check.outcome for check in checks)
    return ", ".join(
        f"{format_count(counts[outcome])} {outcome}" for outcome in _WORDS if counts[outcome]
    )


def print_check(check: Check, console: Console, *, full: bool) -> None:
    """Print one check: a line if it passed and not all is asked for, else with its details."""
    word, style = _WORDS[check.outcome]
    quiet = check.outcome == "passed" and not full
    place = "" if check.where is None or not quiet else _place(check.where)
    print_prose(
        console,
        Text.assemble(named(check.name), (f"  {place}" if place else "", "dim")),
        indent=_MARK,
        label=Text.assemble("  ", (word, style)),
    )
    if quiet:
        return
    details = {
        "expected": check.expected,
        "observed": check.observed,
        "reason": check.reason,
        "where": None if check.where is None else _place(check.where, whole=True),
    }
    for name, text in details.items():
        if text:
            shown = printable(text)
            print_prose(
                console,
                shown if full else shorten(shown, SHOWN_CHARACTERS),
                indent=_DETAIL,
                label=Text(" " * _MARK + name, "dim"),
            )


def _place(where: Where, *, whole: bool = False) -> str:
    """A place as people find it: calls are counted from 1, as in what checks observed."""
    call = "" if where.call is None else f"call {where.call + 1}"
    span = "" if where.span_id is None or (call and not whole) else f"span {where.span_id}"
    return printable(", ".join(filter(None, (call, span))))


def _conclusion(verification: Verification) -> Text:
    verdict = verification.verdict
    checks = [check for result in verdict.plugins for check in result.checks]
    counted = f"{plural(len(checks), 'check')}: {_count(checks)}." if checks else "No check."
    only = "" if verification.selected is None else " Other plugins were not asked for."
    reason = printable(verdict.reason or "")
    word, style = _OUTCOMES[verdict.outcome]
    return Text.assemble(
        (word[0].upper() + word[1:], style), f". {counted}{only}", f" {reason}" if reason else ""
    )
