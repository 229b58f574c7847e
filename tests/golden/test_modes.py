"""The restated tables are whole, and ours differs only where it is said why."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.golden.modes import Cell, cells
from tests.golden.oracle import failing

CELLS = cells()


def test_the_tables_are_whole() -> None:
    assert len(CELLS) >= 200
    assert max(Counter(cell.cell_id for cell in CELLS).values()) == 1
    modes = {(cell.mode, cell.args_mode) for cell in CELLS}
    four = ("strict", "unordered", "subset", "superset")
    assert modes >= {(m, a) for m in four for a in ("exact", "subset", "superset", "ignore")}
    assert {mode for mode, _ in modes} - set(four) == {"EXACT", "IN_ORDER", "ANY_ORDER"}


def test_every_difference_says_why_and_nothing_else_does() -> None:
    for cell in CELLS:
        assert (cell.ours != cell.theirs) == bool(cell.why), cell.cell_id


def test_most_cells_are_alike() -> None:
    counts = Counter(
        "none" if cell.ours is None else "same" if cell.ours == cell.theirs else "other"
        for cell in CELLS
    )
    assert counts == {"same": 180, "none": 16, "other": 18}


@pytest.mark.parametrize("cell", [c for c in CELLS if c.ours is not None], ids=lambda c: c.cell_id)
def test_ours_follows_from_what_fixtures_say(cell: Cell) -> None:
    """Not of the grader: of the definitions, as the oracle has them."""
    assert (failing(cell.fixture, cell.trace) == set()) is cell.ours
