"""The specification's cases follow from what fixtures say, and quote what it says."""

from __future__ import annotations

import pytest

from tests.golden.faults import RULES
from tests.golden.oracle import failing
from tests.golden.specification import CASES, SUITES, Case
from tests.real_data import REAL

TEXT = REAL.parent / "spec" / "golden-trace-harness.txt"


def test_cases_are_many_and_named_once() -> None:
    assert len(CASES) >= 60
    assert len({case.name for case in CASES}) == len(CASES)
    assert len({suite.name for suite in SUITES}) == len(SUITES)
    assert {case.rule for case in CASES} - {None} <= set(RULES)
    assert all(case.passes == (case.rule is None) for case in CASES)
    # Each that fails names something, but where there is nothing to name.
    assert [c.name for c in CASES if not c.passes and not c.names] == ["no payload"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_case_is_true_by_definition(case: Case) -> None:
    broken = failing(case.fixture, case.trace)
    assert (broken == set()) is case.passes, broken
    assert case.rule is None or case.rule in broken


@pytest.mark.skipif(not TEXT.is_file(), reason="THE SPECIFICATION IS MISSING beside the repository")
def test_sentences_are_the_specifications() -> None:
    text = " ".join(TEXT.read_text(encoding="utf-8").split())
    said = [(case.name, case.says) for case in CASES] + [(s.name, s.says) for s in SUITES]
    # What the sample grader gets wrong is shown by its code, and not said.
    quoted = [(name, says) for name, says in said if not says.startswith("the sample")]
    assert [(name, says) for name, says in quoted if says not in text] == []
    assert len(said) - len(quoted) == 5
