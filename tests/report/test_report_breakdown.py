"""One verdict laid out: everything is there, it fits, and no name can disturb the page."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.problem import Problem
from benchmark_assets.model.trace import Origin, TraceSnapshot
from benchmark_assets.model.verdict import Check, PluginResult, Verdict, Where
from benchmark_assets.report.breakdown import (
    SHOWN_CHARACTERS,
    Verification,
    no_verdict_json,
    print_breakdown,
    verification_json,
)

HOSTILE = "\x1b[2J[bold]\u202eevil\n" + "x" * 120
LONG = "begin " + "middle " * 200 + "end"

CHECKS = (
    Check(name="good", outcome="passed", observed="as seen", where=Where(span_id="s1", call=0)),
    Check(
        name="bad",
        outcome="failed",
        expected="this",
        observed=LONG,
        reason="not this",
        where=Where(span_id="s2", call=41),
    ),
    Check(name="unsure", outcome="error", reason="cannot tell", where=Where(span_id="s3")),
    Check(name="left out", outcome="skipped", observed="not recorded"),
    Check(name="by the way", outcome="info", observed="2 calls", where=Where(call=1)),
)


def verification(*plugins: PluginResult, **fields: Any) -> Verification:
    contract = Contract.model_validate(
        {"id": "shop/refund", "workflow": "refunds", "contract_version": "3", "name": "Refunds"}
    )
    origin = Origin(file="a.json", sha256="0123456789abcdef" * 4, record="[3]", format="tau2")
    known: dict[str, Any] = {
        "verdict": Verdict(
            outcome="unresolved",
            score=0.5,
            plugins=plugins or (PluginResult(plugin="rules", checks=CHECKS),),
            reason="rules: not this",
        ),
        "trace": TraceSnapshot(trace_id="t1", origin=origin, model="m", task="a/1", trial=2),
        "snapshot_file": "in/a.json",
        "snapshot_sha256": "0123456789abcdef" * 4,
        "contract": contract,
        "contract_file": "c.yaml",
        "engine": "7",
    }
    return Verification(**{**known, **fields})


def render(item: Verification, width: int = 80, *, full: bool = False) -> str:
    pipe = io.StringIO()
    print_breakdown(item, Console(file=pipe, width=width), full=full)
    return pipe.getvalue()


def test_a_breakdown() -> None:
    checks = tuple(check for check in CHECKS if check.name != "bad")
    bad = Check(name="bad", outcome="failed", expected="this", reason="not this")
    item = verification(
        PluginResult(plugin="rules", checks=(*checks, bad)),
        PluginResult(plugin="usage", checks=(Check(name="cost", outcome="info"),)),
        PluginResult(plugin="mine", error="KeyError: 'x'"),
        absent=("budget",),
        notes=("something else",),
    )
    assert render(item) == (
        "Trace     t1\n"
        "File      in/a.json, [3] (tau2), SHA-256 0123456789ab…\n"
        "Model     m\n"
        "Task      a/1, trial 2\n"
        "Contract  shop/refund@3, Refunds, c.yaml\n"
        "Engine    7\n"
        "Outcome   FAILED, score 50.0%\n"
        "\n"
        "rules  FAILED  50.0%  1 passed, 1 failed, 1 error, 1 skipped, 1 info\n"
        "  passed   good  call 1\n"
        "  ERROR    unsure\n"
        "           reason    cannot tell\n"
        "           where     span s3\n"
        "  skipped  left out\n"
        "           observed  not recorded\n"
        "  info     by the way\n"
        "           observed  2 calls\n"
        "           where     call 2\n"
        "  FAILED   bad\n"
        "           expected  this\n"
        "           reason    not this\n"
        "\n"
        "usage  not scored  1 info\n"
        "  info     cost\n"
        "\n"
        "mine  ERROR  raised KeyError: 'x'\n"
        "\n"
        "Not in the contract, so not judged: budget.\n"
        "Note: something else\n"
        "FAILED. 6 checks: 1 passed, 1 failed, 1 error, 1 skipped, 2 info. rules: not\n"
        "this\n"
    )


@pytest.mark.parametrize("width", [40, 60, 80, 120])
@pytest.mark.parametrize("full", [False, True])
def test_lines_fit_and_names_stay_names(width: int, full: bool) -> None:
    check = Check(
        name=HOSTILE,
        outcome="failed",
        expected=HOSTILE,
        observed="界" * 100,
        reason=HOSTILE,
        where=Where(span_id=HOSTILE, call=3),
    )
    item = verification(
        PluginResult(plugin=HOSTILE, checks=(check,)),
        PluginResult(plugin="p", error=HOSTILE),
        snapshot_file=HOSTILE,
        contract_file=HOSTILE,
        notes=(HOSTILE,),
        absent=(HOSTILE,),
        selected=(HOSTILE,),
        trace=TraceSnapshot(
            trace_id=HOSTILE,
            model=HOSTILE,
            workflow=HOSTILE,
            task=HOSTILE,
            origin=Origin(file=HOSTILE, sha256="", record=HOSTILE, format=HOSTILE),
        ),
    )
    printed = render(item, width, full=full)
    lines = printed.splitlines()
    assert max(map(cell_len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    # Nothing is taken for markup, nor lost.
    assert "[bold]" in "".join(printed.split())


def test_long_values_are_cut_in_the_middle_unless_asked_for() -> None:
    short, whole = (" ".join(render(verification(), full=full).split()) for full in (False, True))
    assert LONG in whole
    assert LONG not in short
    assert "observed begin middle" in short
    assert "middle end" in short
    assert len(whole) - len(short) > len(LONG) - SHOWN_CHARACTERS


def test_everything_shows_what_passed_observed_and_whole_hashes() -> None:
    whole = render(verification(), full=True)
    assert "observed  as seen\n" in whole
    assert "where     call 1, span s1\n" in whole
    assert "0123456789abcdef" * 4 in whole.replace("\n", "").replace(" ", "")
    assert "as seen" not in render(verification())


@pytest.mark.parametrize(
    ("outcome", "score", "header", "last"),
    [
        ("resolved", 1.0, "passed, score 100.0%", "Passed. "),
        ("unchecked", None, "nothing was checked", "Nothing was checked. No check."),
        ("error", None, "could not be evaluated", "Could not be evaluated. No check. cut off"),
    ],
)
def test_outcomes_in_words(outcome: Any, score: float | None, header: str, last: str) -> None:
    reason = "cut off" if outcome == "error" else None
    verdict = Verdict(outcome=outcome, score=score, plugins=(), reason=reason)
    lines = render(verification(verdict=verdict)).splitlines()
    assert f"Outcome   {header}" in lines
    assert lines[-1].startswith(last)


@pytest.mark.parametrize(
    ("outcome", "passed"),
    [("resolved", True), ("unresolved", False), ("unchecked", None), ("error", None)],
)
def test_passed_is_null_unless_a_verdict_was_given(outcome: Any, passed: bool | None) -> None:
    verdict = Verdict(outcome=outcome, score=None, plugins=())
    found = json.loads(verification_json(verification(verdict=verdict)))
    assert (found["passed"], found["outcome"]) == (passed, outcome)


def test_json_keeps_every_check_and_value_whole() -> None:
    found = json.loads(verification_json(verification()))
    (plugin,) = found["plugins"]
    assert "error" not in plugin
    assert (plugin["passed"], plugin["score"]) == (False, 0.5)
    assert [check["name"] for check in plugin["checks"]] == [check.name for check in CHECKS]
    assert plugin["checks"][1]["observed"] == LONG
    places = [check["where"] for check in plugin["checks"]]
    assert places == [
        {"span_id": "s1", "call": 0},
        {"span_id": "s2", "call": 41},
        {"span_id": "s3", "call": None},
        None,
        {"span_id": None, "call": 1},
    ]


def test_json_of_any_name_can_be_read() -> None:
    check = Check(name="\ud800", outcome="failed", reason=HOSTILE)
    data = verification_json(verification(PluginResult(plugin=HOSTILE, checks=(check,))))
    (plugin,) = json.loads(data)["plugins"]
    assert plugin["name"] == HOSTILE
    assert plugin["checks"][0]["name"] == "\ud800"


def test_no_verdict_says_every_problem() -> None:
    found = json.loads(no_verdict_json([Problem("is bad", file="a.json"), Problem("and more")]))
    assert list(found)[:3] == ["passed", "score", "plugins"]
    assert (found["passed"], found["reason"]) == (None, "a.json: is bad\nand more")


def test_long_lists_of_information_are_for_those_who_ask() -> None:
    calls = [Check(name=f"model call {n}", outcome="info", observed="3 tokens") for n in range(40)]
    failed = Check(name="x", outcome="failed", expected="a", observed="b", reason="c")
    item = verification(PluginResult(plugin="usage", checks=(*calls, failed)))
    short = render(item)
    assert "model call 5\n" in short
    assert "model call 6\n" not in short
    assert "… and 34 more with --verbose" in short
    assert "FAILED   x" in short
    assert "model call 39\n" in render(item, full=True)
