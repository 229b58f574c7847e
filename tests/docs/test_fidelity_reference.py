"""The tables of verdicts and classes are those that are used."""

from __future__ import annotations

from typing import Any

import pytest

from benchmark_assets.scoring.trace_fidelity import RULE_SETS, agent_trace, specified, strict
from tests.docs.consoles import ROOT
from tests.docs.tables import code, rows, under_headings

HEADINGS = under_headings((ROOT / "docs" / "fidelity.md").read_text(encoding="utf-8"))
SCORES = {"1": 1.0, "0.5": 0.5, "0": 0.0, "–": None}


@pytest.mark.parametrize("module", [specified, strict], ids=lambda module: module.NAME)
def test_verdicts_are_documented_as_they_are(module: Any) -> None:
    table = rows(HEADINGS[f"`--rules {module.NAME}`"], "verdict")
    assert {code(row[0]): SCORES[row[2]] for row in table} == {
        verdict: score for verdict, (score, _) in module.VERDICTS.items()
    }
    for row in table:
        assert row[3:] in ([], [module.VERDICTS[code(row[0])][1]])


def test_every_rule_set_has_a_heading() -> None:
    assert {f"`--rules {rules.name}`" for rules in RULE_SETS} <= set(HEADINGS)


def test_classes_are_documented_as_they_are() -> None:
    assert {
        code(row[0]): (float(row[2]), float(row[3]))
        for row in rows(HEADINGS["A single agent"], "class")
    } == {rule.name: (rule.penalty / 100, rule.weight / 100) for rule in agent_trace.RULES}
