"""What comparing a ledger with its model calls gave, for a terminal and for programs.

Belongs here: the text of `bench workflow-trace-fidelity` and `bench trace-fidelity`, and their
JSON. Does not belong here: comparing (`scoring/trace_fidelity`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmark_assets.model.fidelity import (
    AgentFidelity,
    Coverage,
    ExecutorFidelity,
    FidelityOutcome,
    Severity,
    WorkflowFidelity,
)
from benchmark_assets.model.verdict import Check
from benchmark_assets.report.breakdown import check_data, print_check
from benchmark_assets.report.lines import print_prose
from benchmark_assets.report.machine import indented
from benchmark_assets.report.text import (
    UNKNOWN,
    format_count,
    format_percent,
    join_words,
    named,
    plural,
    printable,
    shorten,
)

SHOWN_EXECUTORS = 20
"""Executors of one verdict that are listed unless all are asked for."""

SHOWN_NAMES = 5
"""Executors that are named where one reason holds for all of them."""

_STYLES: dict[FidelityOutcome, str] = {
    "PASS": "bold green",
    "WARN": "bold yellow",
    "FAIL": "bold red",
    "PENDING": "bold yellow",
}
_SEVERITIES: dict[Severity, str] = {
    "critical": "bold red",
    "warning": "yellow",
    "unchecked": "yellow",
    "inapplicable": "dim",
    "none": "green",
}
"""In the order in which verdicts are listed: what decides comes first."""

_HEAD = 10
_NAME_CHARACTERS = 40


# For programs.


def workflow_json(result: WorkflowFidelity, subject: str, *, full: bool = False) -> bytes:
    """Serialise a comparison as indented JSON in UTF-8, ending in a newline; null is unknown.

    Args:
        result: What to serialise.
        subject: What was compared, as the user calls it.
        full: Add the reason, notes, and each executor's severity and checks.
    """
    data: dict[str, Any] = {
        "subject": subject,
        "rules": result.rules,
        "outcome": result.outcome,
        "score": result.score,
        "coverage": _coverage_data(result.coverage),
        "executors": [_executor_data(item, full=full) for item in result.executors],
    }
    if full:
        data |= {"reason": result.reason, "notes": result.notes}
    return indented(data)


def _coverage_data(coverage: Coverage) -> dict[str, Any]:
    return {
        "executors": coverage.executors,
        "checked": coverage.checked,
        "share": coverage.share,
        "truth_tokens": coverage.truth_tokens,
        "checked_tokens": coverage.checked_tokens,
        "token_share": coverage.token_share,
    }


def _executor_data(item: ExecutorFidelity, *, full: bool) -> dict[str, Any]:
    data: dict[str, Any] = {
        "executor_id": item.executor_id,
        "verdict": item.verdict,
        "score": item.score,
        "ledger_tokens": item.ledger_tokens,
        "truth_tokens": item.truth_tokens,
        "ledger_finish": item.ledger_finish,
        "truth_finish": item.truth_finish,
    }
    if full:
        data |= {"severity": item.severity, "checks": [check_data(c) for c in item.checks]}
    return data


def agent_json(result: AgentFidelity, subject: str, *, full: bool = False) -> bytes:
    """Serialise a comparison of a single agent, as `workflow_json` does that of a workflow."""
    data: dict[str, Any] = {
        "subject": subject,
        "rules": result.rules,
        "outcome": result.outcome,
        "score": result.score,
        "agent_tokens": result.agent_tokens,
        "chat_tokens": result.chat_tokens,
        "chat_turns": result.chat_turns,
        "classes": [
            {
                "class": item.name,
                "severity": item.severity,
                "count": item.count,
                "score": item.score,
                "weight": item.weight,
                **({"check": check_data(item.check)} if full else {}),
            }
            for item in result.classes
        ],
    }
    return indented({**data, "reason": result.reason} if full else data)


# For a terminal.


def print_workflow(
    result: WorkflowFidelity,
    subject: str,
    file: str,
    console: Console,
    *,
    full: bool = False,
) -> None:
    """Print a comparison: the outcome, a table grouped by verdict, what is wrong in words.

    Args:
        result: What to print.
        subject: What was compared, as the user calls it.
        file: The file and its hash, in words.
        console: Where to; its width is kept to, and it decides about colour.
        full: List all executors, and every check of each.
    """
    _print_head(subject, file, result.rules, result.outcome, result.score, console)
    _print_field("Coverage", _coverage(result.coverage), console)
    groups = _grouped(result.executors)
    if groups:
        console.print()
        console.print(_table(groups, full=full))
    hidden = 0 if full else sum(max(0, len(group) - SHOWN_EXECUTORS) for group in groups)
    if hidden:
        print_prose(console, f"{plural(hidden, 'more executor')}: -v lists all.", style="dim")
    for group in groups:
        _print_wrong(group, console, full=full)
    console.print()
    for note in result.notes:
        print_prose(console, printable(note), indent=6, label=Text("Note: ", "yellow"))
    print_prose(console, _conclusion(result.outcome, result.reason))


def print_agent(
    result: AgentFidelity,
    subject: str,
    file: str,
    console: Console,
    *,
    full: bool = False,
) -> None:
    """Print a comparison of a single agent: the outcome, a table of classes, what is wrong."""
    _print_head(subject, file, result.rules, result.outcome, result.score, console)
    _print_field("Calls", f"{plural(result.chat_turns, 'model call')} in the chat trace", console)
    if result.classes:
        table = _plain_table("Class", "Severity", Count="right", Score="right", Weight="right")
        for item in result.classes:
            style = "red" if item.count else "green"
            table.add_row(
                Text(item.name, style),
                item.severity,
                format_count(item.count),
                format_percent(item.score),
                format_percent(item.weight),
            )
        console.print()
        console.print(table)
    for item in result.classes:
        if item.count or full:
            console.print()
            print_check(item.check, console, full=full)
    console.print()
    print_prose(console, _conclusion(result.outcome, result.reason))


def _print_head(
    subject: str,
    file: str,
    rules: str,
    outcome: FidelityOutcome,
    score: float | None,
    console: Console,
) -> None:
    _print_field("Subject", named(subject), console)
    _print_field("File", printable(file), console)
    _print_field("Rules", rules, console)
    scored = "" if score is None else f", score {format_percent(score)}"
    _print_field("Outcome", Text.assemble((outcome, _STYLES[outcome]), scored), console)


def _print_field(name: str, text: str | Text, console: Console) -> None:
    print_prose(console, text, indent=_HEAD, label=Text(name, "dim"))


def _coverage(coverage: Coverage) -> str:
    if not coverage.executors:
        return "nothing to compare"
    executors = f"{format_count(coverage.checked)} of {plural(coverage.executors, 'executor')}"
    if coverage.truth_tokens is None:
        return f"{executors}; no tokens of model calls are known"
    return (
        f"{executors}, {format_count(coverage.checked_tokens or 0)} of "
        f"{plural(coverage.truth_tokens, 'token')} that model calls used "
        f"({format_percent(coverage.token_share)})"
    )


def _grouped(executors: Iterable[ExecutorFidelity]) -> list[list[ExecutorFidelity]]:
    """Executors by verdict: first what decides; within a verdict in their order."""
    groups: dict[tuple[Severity, str], list[ExecutorFidelity]] = {}
    for item in executors:
        groups.setdefault((item.severity, item.verdict), []).append(item)
    rank = list(_SEVERITIES)
    return [groups[key] for key in sorted(groups, key=lambda key: (rank.index(key[0]), key[1]))]


def _table(groups: Sequence[Sequence[ExecutorFidelity]], *, full: bool) -> Table:
    table = _plain_table(
        "Verdict", "Executor", Score="right", Ledger="right", Truth="right", Finish="left"
    )
    for group in groups:
        for index, item in enumerate(group if full else group[:SHOWN_EXECUTORS]):
            many = f" × {format_count(len(group))}" if len(group) > 1 else ""
            verdict = "" if index else f"{item.verdict}{many}"
            name = named(item.executor_id)
            table.add_row(
                Text(verdict, _SEVERITIES[item.severity]),
                Text(name if full else shorten(name, _NAME_CHARACTERS)),
                format_percent(item.score),
                _tokens(item.ledger_tokens),
                _tokens(item.truth_tokens),
                Text(_finish(item)),
            )
    return table


def _plain_table(*names: str, **columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in names:
        table.add_column(name, overflow="fold")
    for name, side in columns.items():
        table.add_column(name, justify="right" if side == "right" else "left", overflow="fold")
    return table


def _tokens(count: int | None) -> str:
    return UNKNOWN if count is None else format_count(count)


def _finish(item: ExecutorFidelity) -> str:
    """What was reported, and what the truth is where it is another."""
    reported, true = (
        UNKNOWN if word is None else shorten(named(word), _NAME_CHARACTERS)
        for word in (item.ledger_finish, item.truth_finish)
    )
    return reported if item.ledger_finish == item.truth_finish else f"{reported} / {true}"


def _print_wrong(group: Sequence[ExecutorFidelity], console: Console, *, full: bool) -> None:
    """Print what decided the verdict of each executor of a group, or all checks."""
    if full:
        for item in group:
            _print_checks([item], item.checks, console, full=True)
    elif group[0].severity in ("critical", "warning"):
        for item in group[:SHOWN_EXECUTORS]:
            failed = [check for check in item.checks if check.outcome in ("failed", "error")]
            _print_checks([item], failed, console)
    elif group[0].severity == "unchecked":
        # They were not checked for one and the same reason.
        skipped = [check for check in group[0].checks if check.outcome == "skipped"]
        _print_checks(group, skipped[:1], console)


def _print_checks(
    items: Sequence[ExecutorFidelity],
    checks: Iterable[Check],
    console: Console,
    *,
    full: bool = False,
) -> None:
    names = join_words([named(item.executor_id) for item in items], most=SHOWN_NAMES)
    verdict = (items[0].verdict, _SEVERITIES[items[0].severity])
    console.print()
    print_prose(console, Text.assemble((names, "bold"), "  ", verdict))
    for check in checks:
        print_check(check, console, full=full)


def _conclusion(outcome: FidelityOutcome, reason: str | None) -> Text:
    words = {
        "PASS": "what is reported agrees with what the model calls used",
        "WARN": "",
        "FAIL": "",
        "PENDING": "no verdict",
    }
    parts = [part for part in (words[outcome], printable(reason or "")) if part]
    return Text.assemble((outcome, _STYLES[outcome]), f": {'; '.join(parts)}." if parts else ".")
