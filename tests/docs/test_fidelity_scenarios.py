"""The page of scenarios has all of them, and says what the rules say today."""

from __future__ import annotations

import pytest

from tests.docs.scenarios import NOTES, PAGE, RULES, render, results, scenarios
from tests.docs.tables import code, rows
from tests.real_data import needs_real_data

pytestmark = [pytest.mark.data, needs_real_data]


def test_the_page_is_what_is_computed() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), "Refresh: python -m tests.docs.scenarios"


def test_every_file_and_every_run_has_a_row() -> None:
    assert len(scenarios()) == 6 + 47
    listed = [
        code(row[0])
        for part in PAGE.read_text(encoding="utf-8").split("\n## ")
        for row in rows(part, "scenario")
    ]
    assert listed == [name.rpartition("/")[2] for name in scenarios()]


def test_where_the_rules_differ_in_the_outcome_it_is_said_why() -> None:
    noted = {name for names in NOTES for name in names}
    assert noted <= scenarios().keys()
    differing = {
        name
        for name, record in scenarios().items()
        if len({result.outcome for result in results(record)}) == len(RULES)
    }
    assert differing
    assert differing <= noted
