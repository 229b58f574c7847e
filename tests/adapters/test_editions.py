"""Editions: named by content, never rewritten, all kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmark_assets.adapters.editions import (
    CURRENT,
    CellProvenance,
    Current,
    Provenance,
    edition_folder,
    read_current,
    read_standings,
    report_path,
    write_edition,
)
from benchmark_assets.adapters.store import Store
from benchmark_assets.model.standings import (
    Cell,
    ContractEntry,
    Counts,
    Duration,
    Figures,
    GroupStanding,
    Hole,
    Interval,
    ModelStanding,
    PassHatK,
    PassRate,
    Quantity,
    SourceNote,
    Standings,
    Withheld,
)

RATE = PassRate(
    macro=1 / 3,
    micro=0.1 + 0.2,
    counts=Counts(resolved=1, unresolved=2, unchecked=3, error=4),
    tasks=3,
    trials=1,
    interval=Interval(low=0.05, high=0.7, method="Wilson"),
)
NOTHING = PassRate(
    macro=None, micro=None, counts=Counts(), tasks=0, trials=0, no_interval="nothing was scored"
)
FIGURES = Figures(
    pass_rate=RATE,
    pass_hat_k=(PassHatK(k=1, value=1 / 3, tasks=3), PassHatK(k=2, value=0.0, tasks=3)),
    tokens=Quantity(runs=10, known=0, total=None, per_run=None, per_resolved=None),
    cost_usd=Quantity(runs=10, known=4, total=0.4, per_run=0.1, per_resolved=0.2, estimated=2),
    duration=Duration(runs=10, known=1, median_ms=2**53 + 1, p95_ms=2**53 + 1),
)
STANDINGS = Standings(
    models=(
        ModelStanding(model="openai/gpt-4o", rank=1, shared=RATE, figures=FIGURES),
        ModelStanding(model="模型", rank=None, shared=None, figures=FIGURES, unranked="why"),
    ),
    groups=(GroupStanding(model="a|b", group="..", figures=FIGURES),),
    cells=(
        Cell(model="a", contract="c", figures=msgspec.structs.replace(FIGURES, pass_rate=NOTHING)),
    ),
    contracts=(
        ContractEntry(contract="c", name="C", label="c@1.10", group="g", sha256="f" * 64, runs=0),
    ),
    holes=(Hole(model="a", contract="c", tasks=2, whole_contract=True),),
    withheld=(Withheld(model="a", contract="c", reason="stale: 1 date to evaluate"),),
    notes=(SourceNote(kind="error", text="line\nbreak"),),
    counts=Counts(resolved=1),
    shared_tasks=3,
    shared_contracts=1,
    snapshots=5,
    unmatched=1,
    first_date="2026-03-01",
    last_date="2026-03-02",
    engine="1",
)
PROVENANCE = Provenance(
    engine="1",
    leaderboard="1",
    contracts={"c": "f" * 64},
    cells=(CellProvenance("c", "a", "e" * 64, 3),),
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


def files(store: Store) -> dict[str, tuple[int, int, bytes]]:
    """Every published file: inode, modification time, bytes."""
    root = Path(store.url)
    return {
        str(path.relative_to(root)): (
            path.stat().st_ino,
            path.stat().st_mtime_ns,
            path.read_bytes(),
        )
        for path in sorted((root / "leaderboard").rglob("*"))
        if path.is_file()
    }


def test_before_the_first_there_is_none(store: Store) -> None:
    assert read_current(store) is None
    assert read_standings(store, "0123456789abcdef") is None


def test_what_was_published_is_read_back(store: Store) -> None:
    published, is_new = write_edition(store, STANDINGS, PROVENANCE, "inputs")
    assert is_new
    assert len(published.edition) == 16
    assert int(published.edition, 16) >= 0
    assert msgspec.structs.replace(published, edition="") == STANDINGS
    assert read_current(store) == Current(published.edition, "inputs")
    assert read_standings(store, published.edition) == published
    data = store.read(f"{edition_folder(published.edition)}/provenance.json")
    assert data is not None
    assert msgspec.json.decode(data, type=Provenance) == PROVENANCE


def test_an_edition_is_a_folder_of_named_files(store: Store) -> None:
    published, _ = write_edition(store, STANDINGS, PROVENANCE, "inputs")
    folder = f"leaderboard/edition={published.edition}"
    assert set(files(store)) == {
        CURRENT,
        f"{folder}/standings.json",
        f"{folder}/provenance.json",
    }
    assert report_path(published.edition) == f"{folder}/report.html"


def test_the_same_again_is_the_same_edition_and_touches_nothing(store: Store) -> None:
    first, _ = write_edition(store, STANDINGS, PROVENANCE, "inputs")
    before = files(store)
    # Already carrying a name, as standings that were read back do, changes nothing.
    for again in (STANDINGS, first, msgspec.structs.replace(STANDINGS, edition="other")):
        assert write_edition(store, again, PROVENANCE, "inputs") == (first, False)
    assert files(store) == before


def test_other_inputs_with_the_same_result_move_only_the_pointer(store: Store) -> None:
    first, _ = write_edition(store, STANDINGS, PROVENANCE, "inputs")
    before = files(store)
    assert write_edition(store, STANDINGS, PROVENANCE, "other inputs") == (first, False)
    after = files(store)
    assert read_current(store) == Current(first.edition, "other inputs")
    assert {path for path in after if after[path] != before.get(path)} == {CURRENT}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("snapshots", 6),
        ("engine", "2"),
        ("withheld", ()),
        ("notes", ()),
        ("counts", Counts(resolved=2)),
        ("last_date", None),
    ],
)
def test_other_standings_are_another_edition(store: Store, field: str, value: Any) -> None:
    first, _ = write_edition(store, STANDINGS, PROVENANCE, "inputs")
    changed = msgspec.structs.replace(STANDINGS, **{field: value})
    second, is_new = write_edition(store, changed, PROVENANCE, "inputs")
    assert is_new
    assert second.edition != first.edition


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("engine", "2"),
        ("leaderboard", "2"),
        ("contracts", {"c": "0" * 64}),
        ("cells", (CellProvenance("c", "a", "0" * 64, 3),)),
    ],
)
def test_other_provenance_is_another_edition(store: Store, field: str, value: Any) -> None:
    """The same figures from other inputs are not the same publication."""
    first, _ = write_edition(store, STANDINGS, PROVENANCE, "inputs")
    changed = msgspec.structs.replace(PROVENANCE, **{field: value})
    second, is_new = write_edition(store, STANDINGS, changed, "inputs")
    assert is_new
    assert second.edition != first.edition


def test_every_edition_is_kept(store: Store) -> None:
    first, _ = write_edition(store, STANDINGS, PROVENANCE, "1")
    before = files(store)
    changed = msgspec.structs.replace(STANDINGS, snapshots=6)
    second, _ = write_edition(store, changed, PROVENANCE, "2")
    assert read_standings(store, first.edition) == first
    assert read_standings(store, second.edition) == second
    kept = files(store)
    assert all(kept[path] == content for path, content in before.items() if path != CURRENT)
    # Going back needs no new edition.
    assert write_edition(store, STANDINGS, PROVENANCE, "1") == (first, False)
    assert read_current(store) == Current(first.edition, "1")
    assert files(store).keys() == kept.keys()


def test_the_name_depends_on_nothing_but_the_content(tmp_path: Path) -> None:
    names = {
        write_edition(Store(str(tmp_path / folder)), STANDINGS, PROVENANCE, folder)[0].edition
        for folder in ("one", "another")
    }
    assert len(names) == 1


def test_a_missing_file_of_an_edition_is_written_again(store: Store) -> None:
    """A run that was killed between two files left half an edition."""
    first, _ = write_edition(store, STANDINGS, PROVENANCE, "inputs")
    store.remove(f"{edition_folder(first.edition)}/standings.json")
    assert read_standings(store, first.edition) is None
    write_edition(store, STANDINGS, PROVENANCE, "inputs")
    assert read_standings(store, first.edition) == first
