"""The results of a golden suite: for a terminal, a program, a CI server, a pull request.

Belongs here: the console, JSON, JUnit and Markdown layouts of one `SuiteResult`. Does not belong
here: making it (`pipeline/golden`).
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from benchmark_assets.model.golden_suite import (
    CASE_OUTCOMES,
    MARKS,
    CaseOutcome,
    CaseResult,
    SuiteResult,
    Trials,
)
from benchmark_assets.model.verdict import Check
from benchmark_assets.report.machine import indented
from benchmark_assets.report.markdown import escape
from benchmark_assets.report.text import format_percent, named, plural, printable, shorten

SHOWN_CHARACTERS = 300
"""How much of a value is shown unless everything is asked for."""

SHOWN_FAILURES = 50
"""Most failed cases that a job summary gives the details of: GitHub cuts summaries at 1 MiB."""

SHOWN_K = 5

_STYLES: dict[CaseOutcome, str] = {"PASS": "green", "FAIL": "bold red", "MISSING": "bold yellow"}
_WORDS: dict[CaseOutcome, str] = {"PASS": "passed", "FAIL": "failed", "MISSING": "missing"}


def title(case: CaseResult) -> str:
    """A case as it is called everywhere: `refund`, `refund trial 2`, `refund golden trace`."""
    which = {"golden": " golden trace"}.get(case.subject, "")
    trial = "" if case.trial is None else f" trial {case.trial}"
    return f"{named(case.id)}{which}{trial}"


def verdict_line(suite: SuiteResult) -> str:
    """How many cases there are of each result: `FAIL: 5 cases, 3 passed, 1 failed, 1 missing`."""
    counts = Counter(case.result for case in suite.cases)
    parts = [f"{counts[word]} {_WORDS[word]}" for word in CASE_OUTCOMES if counts[word]]
    listed = ", ".join([plural(len(suite.cases), "case"), *parts])
    return f"{'PASS' if suite.passed else 'FAIL'}: {listed}"


def show_trials(trials: Trials) -> str:
    """How reliable trials are: `2 of 3 trials passed: pass^1 66.7%, pass^2 33.3%, pass^3 0.0%`."""
    values = list(enumerate(trials.pass_hat, 1))
    shown = values if len(values) <= SHOWN_K else [*values[: SHOWN_K - 1], values[-1]]
    listed = ", ".join(f"pass^{k} {format_percent(value)}" for k, value in shown)
    return f"{trials.passed} of {plural(trials.trials, 'trial')} passed: {listed}"


# For programs.


def suite_json(suite: SuiteResult) -> bytes:
    """Serialise the cases as an indented JSON list in UTF-8, ending in a newline.

    Each is `{"id", "trial", "result", "failures", "path_hash"}`; null is unknown or does not apply.
    A case that has marks has `marks`, too, a list of texts.
    """
    return indented([_plain(case) for case in suite.cases])


def _plain(case: CaseResult) -> dict[str, object]:
    return {
        "id": case.id,
        "trial": case.trial,
        "result": case.result,
        "failures": case.failures,
        "path_hash": case.path_hash,
        **({"marks": case.marks} if case.marks else {}),
    }


# For a terminal.


def print_suite(suite: SuiteResult, console: Console, *, full: bool = False) -> None:
    """Print a line a case, with what is wrong below it, then how reliable trials are.

    Args:
        suite: What to print.
        console: Where to; it decides about colour.
        full: Print every check, and values whole.
    """
    of_fixture = {trials.id: trials for trials in suite.trials}
    for index, case in enumerate(suite.cases):
        _print_case(case, console, full=full)
        following = suite.cases[index + 1].id if index + 1 < len(suite.cases) else None
        if case.id in of_fixture and case.id != following:
            text = f"{named(case.id)}: {show_trials(of_fixture[case.id])}"
            print_whole(console, Text(f"  {text}", "dim"))
    console.print()
    if None in of_fixture:
        print_whole(console, Text(f"Suite: {show_trials(of_fixture[None])}"))
    print_whole(console, Text(verdict_line(suite), "green" if suite.passed else "bold red"))


def print_whole(console: Console, line: Text) -> None:
    """Print a line as long as it is: it is grepped, and terminals and logs wrap it."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _print_case(case: CaseResult, console: Console, *, full: bool) -> None:
    for line in case_lines(case, full=full):
        print_whole(console, line)


def case_lines(case: CaseResult, *, full: bool = False) -> Iterator[Text]:
    """A case as lines; the first is `PASS id hash`, `FAIL id hash` or `MISSING trace for id`.

    Marks follow the hash: `PASS id hash (order unknown)`.
    """
    head = f" {_head(case)}"
    yield Text.assemble((case.result, _STYLES[case.result]), head)
    if full:
        yield from (Text(f"  {line}") for check in case.checks for line in _check_lines(check))
    for line in detail_lines(case, full=full):
        yield Text(f"  {line}")


def _head(case: CaseResult) -> str:
    if case.result == "MISSING" and case.subject == "candidate":
        return f"trace for {title(case)}"
    marks = f" {_marks(case)}" if case.marks else ""
    return (f"{title(case)} {case.path_hash}" if case.path_hash else title(case)) + marks


def _marks(case: CaseResult) -> str:
    return f"({', '.join(case.marks)})"


def detail_lines(case: CaseResult, *, full: bool = False) -> Iterator[str]:
    """What is wrong with a case, failure by failure: what, expected, observed."""
    wrong = [check for check in case.checks if check.outcome in ("failed", "error")]
    # What is no check (a trace of another fixture, a plugin that raised) has a text alone.
    for text in case.failures[: len(case.failures) - len(wrong)]:
        yield f"- {_cut(text, full=full)}"
    if len(case.failures) >= len(wrong):
        for check in wrong:
            yield f"- {_cut(f'{check.name}: {check.reason or check.outcome}', full=full)}"
            for word, value in (("expected", check.expected), ("observed", check.observed)):
                if value:
                    yield f"    {word}  {_cut(value, full=full)}"
    if case.similarity is not None:
        yield f"  similarity to the nearest legal path: {case.similarity:.2f} (informs only)"
    if case.against_golden is not None:
        yield f"  against the golden trace: {_cut(case.against_golden, full=full)}"


def _check_lines(check: Check) -> Iterator[str]:
    yield f"{check.outcome:<7}  {printable(check.name)}" + (
        f"  {printable(check.observed)}" if check.observed and check.outcome != "failed" else ""
    )


def _cut(text: str, *, full: bool) -> str:
    # Line by line: several problems of one file are lines of one text.
    shown = printable(text)
    return shown if full else shorten(shown, SHOWN_CHARACTERS)


# For CI servers.


def suite_junit(suite: SuiteResult) -> bytes:
    """Serialise as JUnit XML in UTF-8: a test case a case, a missing trace being a failure.

    Characters that XML does not allow are written as visible escapes.
    """
    counts = {
        "tests": str(len(suite.cases)),
        "failures": str(sum(case.result != "PASS" for case in suite.cases)),
        "errors": "0",
        "skipped": "0",
    }
    root = ET.Element("testsuites", {"name": "bench golden", **counts})
    tests = ET.SubElement(root, "testsuite", {"name": "golden traces", **counts})
    for case in suite.cases:
        _junit_case(tests, case)
    for name, lines in (("system-out", _facts(suite)), ("system-err", suite.warnings)):
        if lines:
            ET.SubElement(tests, name).text = "\n".join(map(printable, lines))
    ET.indent(root)
    xml: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _facts(suite: SuiteResult) -> list[str]:
    listed = [f"{named(t.id) if t.id else 'Suite'}: {show_trials(t)}" for t in suite.trials]
    return [*listed, *suite.notes]


def _junit_case(tests: ET.Element, case: CaseResult) -> None:
    names = {"classname": printable(case.fixture_file or "golden"), "name": title(case)}
    element = ET.SubElement(tests, "testcase", {**names, "time": "0"})
    if case.result != "PASS":
        first = printable(case.failures[0]) if case.failures else case.result
        failure = ET.SubElement(element, "failure", {"type": case.result, "message": first})
        failure.text = "\n".join(detail_lines(case, full=True))
    if case.marks:
        ET.SubElement(element, "system-out").text = "\n".join(
            f"{mark}: {MARKS[mark]}" for mark in case.marks
        )


# For pull requests.


def suite_markdown(suite: SuiteResult) -> str:
    """Render as GitHub-flavoured Markdown for a job summary; ends in a newline.

    Names and values are escaped: they can neither break the table nor bring in HTML or links.
    """
    parts = ["## Golden traces", f"**{escape(verdict_line(suite))}**"]
    if suite.cases:
        parts.append(_table(suite))
    bad = [case for case in suite.cases if case.result != "PASS"]
    parts += ["\n".join(_markdown_details(case)) for case in bad[:SHOWN_FAILURES]]
    if len(bad) > SHOWN_FAILURES:
        parts.append(f"… and {len(bad) - SHOWN_FAILURES} more.")
    facts = [*_facts(suite), *(f"Warning: {text}" for text in suite.warnings)]
    if facts:
        parts.append("\n".join(f"* {escape(text)}" for text in facts))
    return "\n\n".join(parts) + "\n"


def _table(suite: SuiteResult) -> str:
    rows: list[Sequence[str]] = [
        ("Result", "Fixture", "Trial", "Path hash"),
        ("---", "---", "---:", "---"),
    ]
    for case in suite.cases:
        which = " (golden trace)" if case.subject == "golden" else ""
        trial = "" if case.trial is None else str(case.trial)
        result = f"{case.result} {_marks(case)}" if case.marks else case.result
        cells = (result, named(case.id) + which, trial, case.path_hash or "")
        rows.append([escape(cell) for cell in cells])
    shown, rest = rows[: SHOWN_ROWS + 2], len(rows) - SHOWN_ROWS - 2
    more = f"\n\n… and {rest} more." if rest > 0 else ""
    return "\n".join(f"| {' | '.join(row)} |" for row in shown) + more


SHOWN_ROWS = 500
"""Most cases that a job summary lists."""


def _markdown_details(case: CaseResult) -> Iterator[str]:
    yield f"**{case.result} {escape(title(case))}**"
    yield ""
    for line in detail_lines(case):
        text = line.strip()
        if text.startswith("- "):
            yield f"* {escape(text.removeprefix('- '))}"
        else:
            yield f"  * {escape(text)}"
