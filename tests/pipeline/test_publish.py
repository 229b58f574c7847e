"""Publishing: what is withheld and told, when an edition is new, and whether it is current."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from benchmark_assets.adapters.contract_files import load_contracts
from benchmark_assets.adapters.editions import (
    CURRENT,
    Provenance,
    edition_folder,
    read_current,
    read_standings,
    report_path,
)
from benchmark_assets.adapters.snapshot_files import list_partitions
from benchmark_assets.adapters.source_index import FileEntry, PartitionCount, Unplaced, write_index
from benchmark_assets.adapters.store import contract_path, snapshot_path
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.standings import ContractEntry, Counts, SourceNote, Standings, Withheld
from benchmark_assets.model.trace import Origin
from benchmark_assets.pipeline import cells, freshness
from benchmark_assets.pipeline import publish as publishing
from benchmark_assets.pipeline.cells import (
    CellId,
    evaluate_cells,
    read_state,
    retire_contracts,
    write_contracts,
)
from benchmark_assets.pipeline.freshness import leaderboard_is_current, report_is_current
from benchmark_assets.pipeline.publish import publish, write_report
from benchmark_assets.pipeline.workspace import Workspace
from tests.pipeline.small_store import (
    CONTRACTS,
    DAYS,
    MODELS,
    A,
    B,
    contract,
    day_of_traces,
    every_cell,
    fill,
    put,
    stale,
    stamps,
    trace,
    tree,
    with_config,
    workspace,
)

PRICES = {A: {"input_usd_per_mtok": 2.5, "output_usd_per_mtok": 10}}


def catch_up(opened: Workspace) -> None:
    evaluate_cells(opened, {*every_cell(opened), *stale(opened)})


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    """A store in which everything is evaluated and nothing published."""
    opened = workspace(tmp_path)
    fill(opened, CONTRACTS)
    catch_up(opened)
    return opened


def provenance(opened: Workspace, standings: Standings) -> Provenance:
    data = opened.store.read(f"{edition_folder(standings.edition)}/provenance.json")
    assert data is not None
    return msgspec.json.decode(data, type=Provenance)


def test_figures_counted_by_hand(opened: Workspace) -> None:
    """A day of a model has three traces: `refund` judges two (+ and -), `refund/strict` the
    same two (- and -), and one is nobody's."""
    found = publish(opened).standings
    assert [(m.model, m.rank) for m in found.models] == [(B, 1), (A, 1)]
    for model in found.models:
        rate = model.figures.pass_rate
        assert rate.counts == Counts(resolved=3, unresolved=9)
        assert (rate.macro, rate.micro) == (0.25, 0.25)  # (1/2 + 0) / 2 and 3/12
        assert model.figures.duration.median_ms == 1_000
        assert model.figures.tokens.total == 12 * 1_100
        assert model.figures.cost_usd.known == 0
    assert {(c.contract, c.model): c.figures.pass_rate.macro for c in found.cells} == {
        (name, model): rate
        for model in MODELS
        for name, rate in (("refund", 0.5), ("refund/strict", 0.0))
    }
    assert (found.first_date, found.last_date) == (DAYS[0], DAYS[-1])
    assert found.withheld == ()
    assert found.notes == (
        SourceNote(
            kind="warning",
            text="contract nothing (nobody runs this@1) applied to no trace; "
            "it wants workflow nobody runs this",
        ),
    )


def test_a_trace_judged_by_two_contracts_is_one_trace(opened: Workspace) -> None:
    found = publish(opened).standings
    assert found.counts.total == 24
    # 2 models × 3 days × 3 traces, a third of them judged by nothing.
    assert (found.snapshots, found.unmatched) == (18, 6)


@pytest.mark.parametrize("differs", ["file", "record", "sha256"])
def test_traces_that_share_an_id_are_counted_each(tmp_path: Path, differs: str) -> None:
    """Two sources may even use one name for two files."""
    opened = workspace(tmp_path)
    origin = Origin(file="f.json", record="[0]", sha256="0" * 64, format="snapshot")
    other = msgspec.structs.replace(origin, **{differs: "z" * 64})
    put(
        opened,
        DAYS[0],
        A,
        trace("1", A, DAYS[0], origin=origin),
        trace("1", A, DAYS[0], origin=other, final_answer="It is 0."),
    )
    write_contracts(opened, CONTRACTS)
    catch_up(opened)
    found = publish(opened).standings
    assert (found.snapshots, found.unmatched) == (2, 0)
    assert found.counts == Counts(resolved=1, unresolved=1, error=2)


def test_an_unmatched_contract_is_listed_with_no_runs(opened: Workspace) -> None:
    found = publish(opened).standings
    by_id = {item.id: item for item in CONTRACTS}
    assert found.contracts == tuple(
        ContractEntry(
            contract=name,
            name=name,
            label=f"{by_id[name].workflow}@1",
            group=by_id[name].workflow,
            sha256=by_id[name].content_hash,
            runs=runs,
        )
        for name, runs in (("nothing", 0), ("refund", 12), ("refund/strict", 12))
    )


def test_no_contracts_at_all(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    fill(opened, [])
    found = publish(opened).standings
    assert (found.snapshots, found.unmatched) == (18, 18)
    assert (found.models, found.contracts) == ((), ())


def test_an_empty_store(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    published = publish(opened)
    assert published.is_new
    assert (published.standings.snapshots, published.standings.unmatched) == (0, 0)
    assert leaderboard_is_current(opened)
    assert write_report(opened) == report_path(published.standings.edition)


class TestStaleCells:
    """Half-updated figures are worse than none."""

    def test_a_cell_that_was_never_evaluated(self, tmp_path: Path) -> None:
        opened = workspace(tmp_path)
        fill(opened, CONTRACTS)
        evaluate_cells(opened, [cell for cell in every_cell(opened) if cell.model == A])
        found = publish(opened).standings
        assert found.withheld == tuple(
            Withheld(model=B, contract=name, reason="stale: 3 dates to evaluate")
            for name in ("nothing", "refund", "refund/strict")
        )
        assert {cell.model for cell in found.cells} == {A}
        assert [model.model for model in found.models] == [A]

    def test_one_stale_date_withholds_the_whole_cell(self, opened: Workspace) -> None:
        """Also the month that is not stale: a rate over some of the days is another rate."""
        first, *rest = day_of_traces(B, DAYS[0])
        put(opened, DAYS[0], B, msgspec.structs.replace(first, final_answer="no"), *rest)
        found = publish(opened).standings
        assert {(w.contract, w.model, w.reason) for w in found.withheld} == {
            (name, B, "stale: 1 date to evaluate")
            for name in ("nothing", "refund", "refund/strict")
        }
        assert {cell.model for cell in found.cells} == {A}
        assert found.counts.total == 12

    def test_a_changed_contract(self, opened: Workspace) -> None:
        write_contracts(opened, [contract("refund", final={"contains": ["328"]})])
        found = publish(opened).standings
        assert {(w.contract, w.model) for w in found.withheld} == {("refund", m) for m in MODELS}
        assert {cell.contract for cell in found.cells} == {"refund/strict"}
        runs = {entry.contract: entry.runs for entry in found.contracts}
        assert runs == {"nothing": 0, "refund": 0, "refund/strict": 12}

    def test_other_prices(self, opened: Workspace) -> None:
        found = publish(with_config(opened, models=PRICES)).standings
        assert {w.model for w in found.withheld} == {A}
        assert {cell.model for cell in found.cells} == {B}

    def test_a_partition_that_is_gone(self, opened: Workspace) -> None:
        for day in DAYS:
            opened.store.remove(snapshot_path(day, A))
        found = publish(opened).standings
        assert {(w.model, w.reason) for w in found.withheld} == {(A, "stale: 3 dates to evaluate")}
        assert (found.snapshots, {cell.model for cell in found.cells}) == (9, {B})

    def test_a_contract_that_is_gone_is_no_cell(self, opened: Workspace) -> None:
        opened.store.remove(contract_path("refund"))
        found = publish(opened).standings
        assert found.withheld == ()
        assert {entry.contract for entry in found.contracts} == {"nothing", "refund/strict"}
        assert {cell.contract for cell in found.cells} == {"refund/strict"}
        assert {cell.contract for cell in provenance(opened, found).cells} == {
            "nothing",
            "refund/strict",
        }

    def test_traces_are_not_called_unmatched_before_all_were_judged(self, tmp_path: Path) -> None:
        opened = workspace(tmp_path)
        fill(opened, CONTRACTS)
        found = publish(opened).standings
        assert (found.snapshots, found.unmatched) == (18, None)
        assert len(found.withheld) == 6

    def test_after_evaluating_nothing_is_withheld(self, opened: Workspace) -> None:
        first = publish(opened).standings
        write_contracts(opened, [contract("refund", final={"contains": ["0"]})])
        publish(opened)
        catch_up(opened)
        second = publish(opened).standings
        assert second.withheld == ()
        assert second.edition != first.edition
        # "It is 0." is now right and "It is 327." wrong: as many as before, other ones.
        assert second.counts == first.counts


def index(opened: Workspace, source: str, **files: FileEntry) -> None:
    write_index(opened.store, source, {entry.path: entry for entry in files.values()})


def entry(path: str, **fields: object) -> FileEntry:
    values = {"size": 1, "mtime_ns": 1, "sha256": "0" * 64, "settings": "x", "status": "read"}
    return msgspec.convert({**values, "path": path, **fields}, FileEntry)


def test_notes(opened: Workspace) -> None:
    index(
        opened,
        "z",
        good=entry("good.json", traces=3),
        bad=entry("bad.json", status="unreadable", error="bad.json: is empty; remove it"),
    )
    index(
        opened,
        "a",
        gone=entry("gone.json", status="vanished", traces=4),
        lost=entry("lost.json", unplaced=(Unplaced("t9", "lost.json: names no model"),)),
    )
    put(opened, DAYS[0], A, trace("1", A, DAYS[0]), trace("1", A, DAYS[0]))
    (twice,) = list_partitions(opened.store)[DAYS[0], A].duplicates
    notes = publish(opened).standings.notes
    assert [note for note in notes if not note.text.startswith("contract ")] == [
        SourceNote(kind="warning", text="a/gone.json is gone; its 4 traces still count"),
        SourceNote(kind="error", text="trace t9: lost.json: names no model"),
        SourceNote(kind="error", text="z: bad.json: is empty; remove it"),
        SourceNote(kind="warning", text=f"duplicate {twice}"),
    ]


class TestEditions:
    """The same inputs make no new edition, whatever the way to them."""

    def test_the_first_one_is_new_and_readable(self, opened: Workspace) -> None:
        assert not leaderboard_is_current(opened)
        published = publish(opened)
        assert published.is_new
        current = read_current(opened.store)
        assert current is not None
        assert current.edition == published.standings.edition
        assert read_standings(opened.store, current.edition) == published.standings

    def test_publishing_again_touches_nothing(self, opened: Workspace) -> None:
        first = publish(opened).standings
        write_report(opened)
        before = stamps(opened)
        assert publish(opened) == (first, False)
        write_report(opened)
        assert stamps(opened) == before

    @pytest.mark.parametrize("seed", range(3))
    def test_the_order_of_evaluation_never_matters(
        self, opened: Workspace, tmp_path: Path, seed: int
    ) -> None:
        other = workspace(tmp_path / "other")
        fill(other, CONTRACTS)
        order = every_cell(other)
        random.Random(seed).shuffle(order)
        for cell in order:
            evaluate_cells(other, [cell])
        assert publish(other) == publish(opened)
        write_report(opened)
        write_report(other)
        assert tree(other) == tree(opened)

    def test_editions_on_the_way_do_not_matter(self, opened: Workspace, tmp_path: Path) -> None:
        other = workspace(tmp_path / "other")
        fill(other, CONTRACTS)
        for cell in every_cell(other):
            evaluate_cells(other, [cell])
            publish(other)
        assert publish(other).standings == publish(opened).standings
        kept = {path.split("/")[1] for path in tree(other, "leaderboard")}
        # One edition after each of the six cells: every one is kept, beside the pointer.
        assert len(kept) == 6 + 1

    def test_changing_back_is_the_edition_from_before(self, opened: Workspace) -> None:
        first = publish(opened).standings
        priced = with_config(opened, models=PRICES)
        catch_up(priced)
        second = publish(priced)
        assert second.is_new
        catch_up(opened)
        assert publish(opened) == (first, False)
        current = read_current(opened.store)
        assert current is not None
        assert current.edition == first.edition
        assert read_standings(opened.store, second.standings.edition) == second.standings

    def test_provenance_lists_all_that_went_in(self, opened: Workspace) -> None:
        found = provenance(opened, publish(opened).standings)
        state = read_state(opened)
        assert found.contracts == {item.id: item.content_hash for item in CONTRACTS}
        assert [(cell.contract, cell.model, cell.runs) for cell in found.cells] == [
            (name, model, runs)
            for name, runs in (("nothing", 0), ("refund", 6), ("refund/strict", 6))
            for model in sorted(MODELS)
        ]
        for cell in found.cells:
            keys = state.expected[CellId(cell.contract, cell.model)]
            assert sorted(keys) == list(DAYS)
            assert cell.keys_sha256 == content_hash(canonical_json(keys))

    def test_there_is_no_clock_host_or_path_in_an_edition(
        self, opened: Workspace, tmp_path: Path
    ) -> None:
        publish(opened)
        write_report(opened)
        for path in tree(opened, "leaderboard"):
            data = opened.store.read(path)
            assert data is not None
            assert str(tmp_path).encode() not in data, path


Change = Callable[[Workspace], Workspace | None]


def new_date(opened: Workspace) -> None:
    put(opened, "2026-03-05", A, *day_of_traces(A, "2026-03-05"))


def new_traces_of_no_contract(opened: Workspace) -> None:
    put(opened, "2026-03-05", A, trace("x", A, "2026-03-05", workflow="other"))


def changed_snapshot(opened: Workspace) -> None:
    put(opened, DAYS[0], A, trace("x", A, DAYS[0]))


def removed_partition(opened: Workspace) -> None:
    opened.store.remove(snapshot_path(DAYS[0], A))


def changed_contract(opened: Workspace) -> None:
    write_contracts(opened, [contract("refund", description="other")])


def new_contract(opened: Workspace) -> None:
    write_contracts(opened, [contract("new")])


def retired_contract(opened: Workspace) -> None:
    retire_contracts(opened, ["refund"])


def retired_contract_that_judged_nothing(opened: Workspace) -> None:
    retire_contracts(opened, ["nothing"])


def new_prices(opened: Workspace) -> Workspace:
    return with_config(opened, models=PRICES)


def unreadable_file(opened: Workspace) -> None:
    index(opened, "s", bad=entry("bad.json", status="unreadable", error="bad.json: is empty"))


def source_no_longer_named(opened: Workspace) -> None:
    index(opened, "old", good=entry("good.json", traces=9))


def waiting_partition(opened: Workspace) -> None:
    part = PartitionCount("2026-09-09", A, 2)
    index(opened, "s", good=entry("good.json", traces=2, partitions=(part,)))


def vanished_file(opened: Workspace) -> None:
    index(opened, "s", gone=entry("gone.json", status="vanished", traces=1))


def duplicate(opened: Workspace) -> None:
    first, *rest = day_of_traces(A, DAYS[0])
    put(opened, DAYS[0], A, first, first, *rest)


def same_contract(opened: Workspace) -> None:
    assert write_contracts(opened, CONTRACTS) == 0


def commented_contract(opened: Workspace) -> None:
    file = Path(opened.store.url).parent / "refund.yaml"
    text = '# Why.\nworkflow: refund\ncontract_version: "1"\nfinal: {contains: ["327"]}\n'
    file.write_text(text, encoding="utf-8")
    (loaded,) = load_contracts([file]).contracts
    assert write_contracts(opened, [loaded.contract]) == 0


def same_snapshots_of_other_files(opened: Workspace) -> None:
    put(opened, DAYS[0], A, *day_of_traces(A, DAYS[0]), inputs={"s/renamed": "other"})


def good_file(opened: Workspace) -> None:
    index(opened, "s", good=entry("good.json", traces=9))


def alias(opened: Workspace) -> Workspace:
    return with_config(opened, models={A: {"aliases": ["gpt-4o"]}})


CHANGES: list[Change] = [
    new_date,
    new_traces_of_no_contract,
    changed_snapshot,
    removed_partition,
    changed_contract,
    new_contract,
    retired_contract,
    retired_contract_that_judged_nothing,
    new_prices,
    unreadable_file,
    source_no_longer_named,
    waiting_partition,
    vanished_file,
    duplicate,
]
NO_CHANGES: list[Change] = [
    same_contract,
    commented_contract,
    same_snapshots_of_other_files,
    good_file,
    alias,
]


class TestCurrent:
    """`leaderboard_is_current` says what publishing would do, without doing it."""

    @pytest.mark.parametrize("change", CHANGES)
    def test_after_a_change_it_is_not(self, opened: Workspace, change: Change) -> None:
        first = publish(opened).standings
        write_report(opened)
        assert leaderboard_is_current(opened)
        assert report_is_current(opened)
        opened = change(opened) or opened
        assert not leaderboard_is_current(opened)
        # The report is still that of the edition there is.
        assert report_is_current(opened)
        catch_up(opened)
        assert not leaderboard_is_current(opened)
        published = publish(opened)
        assert published.is_new
        assert published.standings.edition != first.edition
        assert leaderboard_is_current(opened)
        assert not report_is_current(opened)
        write_report(opened)
        assert report_is_current(opened)

    @pytest.mark.parametrize("change", CHANGES)
    def test_what_is_published_while_stale_is_current_until_evaluated(
        self, opened: Workspace, change: Change
    ) -> None:
        publish(opened)
        opened = change(opened) or opened
        published = publish(opened)
        assert leaderboard_is_current(opened)
        assert bool(published.standings.withheld) == bool(stale(opened))
        if stale(opened):
            catch_up(opened)
            assert not leaderboard_is_current(opened)

    @pytest.mark.parametrize("change", NO_CHANGES)
    def test_after_no_change_it_is(self, opened: Workspace, change: Change) -> None:
        first = publish(opened).standings
        opened = change(opened) or opened
        assert leaderboard_is_current(opened)
        assert publish(opened) == (first, False)

    @pytest.mark.parametrize("gone", ["pointer", "standings"])
    def test_a_lost_file_is_noticed(self, opened: Workspace, gone: str) -> None:
        edition = publish(opened).standings.edition
        write_report(opened)
        opened.store.remove(
            CURRENT if gone == "pointer" else f"{edition_folder(edition)}/standings.json"
        )
        assert not leaderboard_is_current(opened)
        assert publish(opened).standings.edition == edition
        assert leaderboard_is_current(opened)

    @pytest.mark.parametrize("version", ["ENGINE_VERSION", "LEADERBOARD_VERSION"])
    def test_another_version_of_the_rules(
        self, opened: Workspace, monkeypatch: pytest.MonkeyPatch, version: str
    ) -> None:
        first = publish(opened).standings
        for module in (cells, freshness, publishing):
            if hasattr(module, version):
                monkeypatch.setattr(module, version, "test")
        assert not leaderboard_is_current(opened)
        catch_up(opened)
        assert publish(opened).standings.edition != first.edition
        assert leaderboard_is_current(opened)

    def test_another_version_of_the_report(
        self, opened: Workspace, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        publish(opened)
        assert not report_is_current(opened)
        path = write_report(opened)
        assert path is not None
        assert report_is_current(opened)
        monkeypatch.setattr(freshness, "REPORT_VERSION", "test")
        assert leaderboard_is_current(opened)
        assert not report_is_current(opened)
        write_report(opened)
        assert report_is_current(opened)
        opened.store.remove(path)
        assert not report_is_current(opened)

    def test_before_the_first_edition(self, opened: Workspace) -> None:
        assert not leaderboard_is_current(opened)
        assert not report_is_current(opened)
        assert write_report(opened) is None
        assert tree(opened, "leaderboard") == {}


def test_the_report_shows_the_edition(opened: Workspace) -> None:
    standings = publish(opened).standings
    path = write_report(opened)
    assert path == report_path(standings.edition)
    data = opened.store.read(path)
    assert data is not None
    html = data.decode()
    assert html.count("<head>") == 1
    for text in (A, B, standings.edition, "refund/strict"):
        assert text in html
