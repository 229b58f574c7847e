"""The reports of a golden suite: the same results for terminals, programs, CI and pull requests."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

from benchmark_assets.model.golden_suite import (
    CaseResult,
    Explained,
    Explanation,
    SuiteResult,
    Trials,
)
from benchmark_assets.model.verdict import Check
from benchmark_assets.report.golden import (
    SHOWN_FAILURES,
    SHOWN_ROWS,
    print_suite,
    suite_json,
    suite_junit,
    suite_markdown,
)

HOSTILE = 'x"<b>&]]>|`\x1b[31m\u202e\n\x00\ud800*_[a](http://evil.example)'


def case_of(
    *,
    failures: tuple[str, ...] = (),
    checks: tuple[Check, ...] = (),
    similarity: float | None = None,
    against_golden: str | None = None,
    **known: Any,
) -> CaseResult:
    """A case whose explanation is given as it is."""
    found = Explanation(
        failures=failures, checks=checks, similarity=similarity, against_golden=against_golden
    )
    return CaseResult(explained=Explained(lambda: found), **known)


def with_checks(case: CaseResult, *checks: Check) -> CaseResult:
    """The case with other checks."""
    found = replace(case.explained(), checks=checks)
    return replace(case, explained=Explained(lambda: found))


PASS = case_of(
    id="refund",
    result="PASS",
    trial=1,
    path_hash="c91c66e30e2715cd",
    checks=(Check(name="path", outcome="passed", observed="a → b"),),
    fixture_file="fixtures/refund.json",
)
FAIL = case_of(
    id="refund",
    result="FAIL",
    trial=2,
    path_hash="7528f683a11927c8",
    failures=("path: step 2 is c, expected b (expected a → b; observed a ✓, c +, b ✗ missing)",),
    checks=(
        Check(
            name="path",
            outcome="failed",
            expected="a → b",
            observed="a ✓, c +, b ✗ missing",
            reason="step 2 is c, expected b",
        ),
    ),
    similarity=0.5,
    against_golden="a ✓, c +, b ✗ missing",
    fixture_file="fixtures/refund.json",
)
MISSING = case_of(id="gone", result="MISSING", failures=("there is no trace",))
SUITE = SuiteResult(
    cases=(PASS, FAIL, MISSING),
    trials=(
        Trials(id="refund", passed=1, trials=2, pass_hat=(0.5, 0.0)),
        Trials(id=None, passed=1, trials=3, pass_hat=(0.25, 0.0)),
    ),
    warnings=("traces/stray.json: no fixture has this id",),
)


def printed(suite: SuiteResult, *, full: bool = False, color: bool = False) -> str:
    out = io.StringIO()
    console = Console(file=out, width=40, highlight=False, force_terminal=color)
    print_suite(suite, console, full=full)
    return out.getvalue()


def test_the_console_says_a_line_a_case_and_what_is_wrong_below() -> None:
    assert printed(SUITE) == (
        "PASS refund trial 1 c91c66e30e2715cd\n"
        "FAIL refund trial 2 7528f683a11927c8\n"
        "  - path: step 2 is c, expected b\n"
        "      expected  a → b\n"
        "      observed  a ✓, c +, b ✗ missing\n"
        "    similarity to the nearest legal path: 0.50 (informs only)\n"
        "    against the golden trace: a ✓, c +, b ✗ missing\n"
        "  refund: 1 of 2 trials passed: pass^1 50.0%, pass^2 0.0%\n"
        "MISSING trace for gone\n"
        "  - there is no trace\n"
        "\n"
        "Suite: 1 of 3 trials passed: pass^1 25.0%, pass^2 0.0%\n"
        "FAIL: 3 cases, 1 passed, 1 failed, 1 missing\n"
    )


UNSURE = Check(
    name="question before the first write",
    outcome="passed",
    observed="a question was asked; order unknown",
)
QUOTED = Check(
    name="question before the first write",
    outcome="failed",
    observed="a question after call 2: 'Ship; order unknown'",
)


@pytest.mark.parametrize("case", [PASS, FAIL], ids=["PASS", "FAIL"])
def test_that_the_order_is_unknown_is_said_everywhere(case: CaseResult) -> None:
    marked = with_checks(case, *case.checks, UNSURE)
    suite = SuiteResult(cases=(marked, MISSING))
    assert printed(suite).startswith(
        f"{case.result} refund trial {case.trial} {case.path_hash} (order unknown)\n"
    )
    listed = json.loads(suite_json(suite))
    assert [item.get("marks") for item in listed] == [["order unknown"], None]
    first, second = check_junit(suite_junit(suite)).iter("testcase")
    assert (first.findtext("system-out") or "").startswith("order unknown: ")
    assert second.find("system-out") is None
    assert f"| {case.result} (order unknown) | refund |" in suite_markdown(suite)


def test_other_cases_are_not_marked() -> None:
    for case in (PASS, FAIL, MISSING, with_checks(FAIL, QUOTED)):
        suite = SuiteResult(cases=(case,))
        assert set(json.loads(suite_json(suite))[0]) == {
            *("id", "trial", "result", "failures", "path_hash")
        }
        for text in (printed(suite).splitlines()[0], suite_markdown(suite)):
            assert "(order unknown)" not in text
        assert b"system-out" not in suite_junit(suite)


def test_verbose_lists_every_check() -> None:
    assert "  passed   path  a → b\n" in printed(SUITE, full=True)
    assert "  failed   path\n" in printed(SUITE, full=True)


def test_long_values_are_cut_unless_everything_is_asked_for() -> None:
    suite = SuiteResult(cases=(case_of(id="a", result="FAIL", failures=("x" * 5000,)),))
    assert len(printed(suite)) < 1000
    assert "x" * 5000 in printed(suite, full=True)


def test_failures_that_are_no_checks_are_listed_before_those_that_are() -> None:
    case = case_of(
        id="a",
        result="FAIL",
        failures=("recorded for another fixture", *FAIL.failures),
        checks=FAIL.checks,
    )
    text = printed(SuiteResult(cases=(case,)))
    assert text.index("another fixture") < text.index("step 2 is c")
    assert text.count("step 2 is c") == 1


def test_json_is_the_list_that_is_documented() -> None:
    data = json.loads(suite_json(SUITE))
    assert data == [
        {
            "id": "refund",
            "trial": 1,
            "result": "PASS",
            "failures": [],
            "path_hash": "c91c66e30e2715cd",
        },
        {
            "id": "refund",
            "trial": 2,
            "result": "FAIL",
            "failures": list(FAIL.failures),
            "path_hash": "7528f683a11927c8",
        },
        {
            "id": "gone",
            "trial": None,
            "result": "MISSING",
            "failures": ["there is no trace"],
            "path_hash": None,
        },
    ]
    assert [list(case) for case in data] == [["id", "trial", "result", "failures", "path_hash"]] * 3


# JUnit: what the common schema demands, as CI servers read it.

_ALLOWED = {
    "testsuites": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testsuite": {"name", "tests", "failures", "errors", "skipped", "time"},
    "testcase": {"classname", "name", "time"},
    "failure": {"type", "message"},
    "system-out": set(),
    "system-err": set(),
}
_CHILDREN = {
    "testsuites": ["testsuite"],
    "testsuite": ["testcase", "system-out", "system-err"],
    "testcase": ["failure", "system-out"],
}


def check_junit(data: bytes) -> ET.Element:
    root = ET.fromstring(data)
    assert root.tag == "testsuites"
    for element in root.iter():
        assert set(element.attrib) <= _ALLOWED[element.tag]
        order = _CHILDREN.get(element.tag, [])
        places = [order.index(child.tag) for child in element]
        assert places == sorted(places)
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        assert int(element.attrib["tests"]) == len(cases)
        assert int(element.attrib["failures"]) == len(list(element.iter("failure")))
        assert element.attrib["errors"] == element.attrib["skipped"] == "0"
    assert all(case.get("name") and case.get("classname") for case in root.iter("testcase"))
    return root


def test_junit_has_a_test_case_a_case() -> None:
    root = check_junit(suite_junit(SUITE))
    cases = list(root.iter("testcase"))
    assert [case.get("name") for case in cases] == ["refund trial 1", "refund trial 2", "gone"]
    failures = [case.find("failure") for case in cases]
    assert failures[0] is None
    assert failures[1] is not None
    assert failures[1].get("type") == "FAIL"
    assert "observed  a ✓, c +, b ✗ missing" in (failures[1].text or "")
    assert failures[2] is not None
    assert failures[2].get("type") == "MISSING"
    assert "pass^2" in (root.findtext(".//system-out") or "")
    assert "stray.json" in (root.findtext(".//system-err") or "")


def test_a_golden_trace_is_told_from_the_candidate() -> None:
    golden = case_of(id="refund", result="FAIL", subject="golden", failures=("x",))
    root = check_junit(suite_junit(SuiteResult(cases=(golden,))))
    assert root.find(".//testcase").get("name") == "refund golden trace"  # type: ignore[union-attr]


# Whatever is in a name.

BAD = case_of(
    id=HOSTILE,
    result="FAIL",
    failures=(HOSTILE, f"{HOSTILE}: {HOSTILE}"),
    checks=(Check(name=HOSTILE, outcome="failed", expected=HOSTILE, observed=HOSTILE),),
    against_golden=HOSTILE,
    fixture_file=HOSTILE,
)
HOSTILE_SUITE = SuiteResult(
    cases=(BAD,),
    trials=(Trials(id=HOSTILE, passed=0, trials=2, pass_hat=(0.0, 0.0)),),
    warnings=(HOSTILE,),
    notes=(HOSTILE,),
)


def test_junit_stays_valid_xml() -> None:
    root = check_junit(suite_junit(HOSTILE_SUITE))
    assert "<b>" in (root.find(".//testcase").get("name") or "")  # type: ignore[union-attr]
    assert "\\x1b" in (root.find(".//testcase").get("name") or "")  # type: ignore[union-attr]


@pytest.mark.parametrize("char", [chr(code) for code in (*range(32), 0x7F, 0xD800, 0xFFFE, 0xFFFF)])
def test_no_character_breaks_the_xml(char: str) -> None:
    case = case_of(id=f"a{char}b", result="FAIL", failures=(f"c{char}d",))
    check_junit(suite_junit(SuiteResult(cases=(case,))))


def test_the_console_shows_no_control_characters() -> None:
    text = printed(HOSTILE_SUITE, full=True)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ud800]", text)
    assert "\\u202e" in text
    # Colour codes are ours alone, and nothing of a name is taken for rich's markup.
    named = SuiteResult(cases=(case_of(id="[red]a[/red]", result="PASS"),))
    assert "[red]a[/red]" in printed(named)


def test_markdown_cannot_be_broken_out_of() -> None:
    text = suite_markdown(HOSTILE_SUITE)
    assert "<b>" not in text
    assert not re.search(r"(?<!\\)\]\(http", text)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) == 5
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\u202e\ud800]", text)


def test_markdown_lists_cases_and_what_is_wrong() -> None:
    text = suite_markdown(SUITE)
    assert "**FAIL: 3 cases, 1 passed, 1 failed, 1 missing**" in text
    assert "| PASS | refund | 1 | c91c66e30e2715cd |" in text
    assert "**FAIL refund trial 2**" in text
    assert "  * observed  a ✓, c +, b ✗ missing" in text
    assert "* Warning: traces/stray.json" in text


def test_markdown_stays_below_the_size_of_a_job_summary() -> None:
    cases = tuple(
        case_of(id=f"case-{n}", result="FAIL", failures=("x" * 400,) * 3) for n in range(3000)
    )
    text = suite_markdown(SuiteResult(cases=cases))
    assert len(text.encode()) < 2**20
    assert f"… and {3000 - SHOWN_ROWS} more." in text
    assert f"… and {3000 - SHOWN_FAILURES} more." in text
