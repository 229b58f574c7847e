"""The reference of mutation operators has every operator, with what it does, and no other."""

from benchmark_assets.scoring.mutation.operators import OPERATORS
from tests.docs.consoles import ROOT
from tests.docs.tables import code, rows


def test_every_operator_is_described_as_it_describes_itself() -> None:
    text = (ROOT / "docs" / "mutate.md").read_text(encoding="utf-8")
    described = [(code(name), what) for name, what in rows(text, "operator")]
    assert described == [(item.name, item.does.removesuffix(".")) for item in OPERATORS]
