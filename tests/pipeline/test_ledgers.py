"""Comparing ledgers partition by partition: what is stale, what is stored, what is published."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from benchmark_assets.adapters.fidelity_months import COLUMNS, list_fidelity, read_fidelity
from benchmark_assets.adapters.parquet import to_parquet
from benchmark_assets.adapters.snapshot_files import SourcedSnapshot, read_snapshots
from benchmark_assets.adapters.store import Store, fidelity_path, snapshot_path
from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord
from benchmark_assets.model.standings import ModelFidelity, Quantity, Standings
from benchmark_assets.pipeline import fidelity
from benchmark_assets.pipeline.cells import evaluate_cells, write_contracts
from benchmark_assets.pipeline.fidelity import check_ledgers, drop_gone, read_fidelity_state
from benchmark_assets.pipeline.freshness import leaderboard_is_current
from benchmark_assets.pipeline.ingest import PartitionId, remove_partition
from benchmark_assets.pipeline.plan import Selection, ledgers_to_compare
from benchmark_assets.pipeline.publish import publish
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.scoring.trace_fidelity import RULES_VERSION
from tests.pipeline.small_store import (
    A,
    B,
    contract,
    every_cell,
    put,
    stamps,
    trace,
    tree,
    workspace,
)

DAY, NEXT, MARCH = "2026-02-27", "2026-02-28", "2026-03-01"


def usage(total: int) -> Usage:
    return Usage(input=total - 10, output=10, total=total)


def record(*, reported: int | None = 100, used: int | None = 100) -> WorkflowRecord:
    """A planner whose ledger is right, and a writer that reports and uses what is said.

    `reported` None is an executor that is not in the ledger, `used` None one whose calls were
    not recorded.
    """
    ledger = [LedgerEntry(executor="planner", usage=usage(50), finish_reason="stop")]
    turns = [ModelTurn(executor="planner", usage=usage(50), finish_reason="stop")]
    if reported is not None:
        ledger.append(LedgerEntry(executor="writer", usage=usage(reported), finish_reason="stop"))
    if used is not None:
        turns.append(ModelTurn(executor="writer", usage=usage(used), finish_reason="stop"))
    traced = ("planner", "writer") if used is not None else ("planner",)
    return WorkflowRecord(ledger=tuple(ledger), turns=tuple(turns), traced=traced)


RIGHT, WRONG, PARTLY = record(), record(reported=100, used=1000), record(used=None)
UNSEEN = WorkflowRecord(ledger=RIGHT.ledger, turns=(), traced=())
SILENT = record(reported=None, used=1000)


def ingest(opened: Workspace, day: str, model: str, *records: WorkflowRecord | None) -> None:
    traces = [
        trace(f"{number}.{day}.{model}", model, day, workflow_record=item)
        for number, item in enumerate(records)
    ]
    put(opened, day, model, *traces)


def compare_all(opened: Workspace) -> None:
    check_ledgers(opened, read_fidelity_state(opened).expected)


def published(opened: Workspace) -> Standings:
    write_contracts(opened, [contract("refund")])
    evaluate_cells(opened, every_cell(opened))
    return publish(opened).standings


def of_model(standings: Standings, model: str) -> tuple[ModelFidelity | None, Quantity]:
    found = {item.model: item for item in standings.fidelity}
    (standing,) = [item for item in standings.models if item.model == model]
    return found.get(model), standing.figures.tokens


def test_only_days_with_a_ledger_are_to_be_compared(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT, None)
    ingest(opened, NEXT, A, None)
    ingest(opened, DAY, B, None, None)
    assert ledgers_to_compare(opened, Selection()) == [PartitionId(DAY, A)]
    assert read_fidelity_state(opened).ledgers == {PartitionId(DAY, A): 1}


def test_a_project_without_ledgers_decodes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, None)

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(fidelity, "read_snapshots", refuse)
    found = check_ledgers(opened, [PartitionId(DAY, A)])
    assert found.partitions == {PartitionId(DAY, A): (None, None)}
    assert not (Path(opened.store.url) / "fidelity").exists()


def test_a_row_is_an_executor_and_says_where_it_is_from(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, WRONG)
    compare_all(opened)
    planner, writer = read_fidelity(opened.store, [fidelity_path(A, "2026-02")])
    assert (planner.executor, planner.verdict, planner.score) == ("planner", "Agree", 1.0)
    assert (writer.executor, writer.verdict, writer.score) == ("writer", "TokenMismatch", 0.5)
    assert (writer.ledger_tokens, writer.truth_tokens) == (100, 1000)
    assert (writer.trace_outcome, writer.trace_score) == ("FAIL", 0.75)
    assert (writer.date, writer.model, writer.trace_id) == (DAY, A, f"0.{DAY}.{A}")
    assert (writer.file, len(writer.sha256)) == (f"0.{DAY}.{A}.json", 64)
    assert (writer.rules, writer.rules_version) == ("strict", RULES_VERSION)
    assert writer.reason is not None
    assert "900 of 1,000 tokens not reported" in writer.reason


def test_checks_are_stored_beside_each_executor(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, WRONG)
    compare_all(opened)
    table = pq.read_table(opened.store.root / fidelity_path(A, "2026-02"))
    assert set(table.column_names) == {*COLUMNS, "checks"}
    checks = table.column("checks").to_pylist()[1]
    assert {check["name"]: check["outcome"] for check in checks}["tokens"] == "failed"


def test_nothing_stale_writes_nothing(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT)
    ingest(opened, MARCH, A, WRONG)
    compare_all(opened)
    before = stamps(opened)
    compare_all(opened)
    assert stamps(opened) == before
    assert ledgers_to_compare(opened, Selection()) == []


def test_a_changed_day_leaves_the_other_days_rows_as_they_were(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT)
    ingest(opened, NEXT, A, RIGHT)
    ingest(opened, MARCH, A, RIGHT)
    compare_all(opened)
    march = tree(opened, "fidelity")[fidelity_path(A, "2026-03")]
    ingest(opened, NEXT, A, WRONG)
    assert ledgers_to_compare(opened, Selection()) == [PartitionId(NEXT, A)]
    compare_all(opened)
    rows = read_fidelity(opened.store, [fidelity_path(A, "2026-02")])
    assert [(row.date, row.trace_outcome) for row in rows if row.executor == "writer"] == [
        (DAY, "PASS"),
        (NEXT, "FAIL"),
    ]
    assert tree(opened, "fidelity")[fidelity_path(A, "2026-03")] == march


def test_other_rules_make_everything_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT)
    compare_all(opened)
    monkeypatch.setattr(fidelity, "RULES_VERSION", "another")
    assert ledgers_to_compare(opened, Selection()) == [PartitionId(DAY, A)]


def test_the_order_of_work_does_not_show(tmp_path: Path) -> None:
    stores = []
    for name, days in (("one", (DAY, NEXT, MARCH)), ("other", (MARCH, NEXT, DAY))):
        opened = workspace(tmp_path / name)
        for day in (DAY, NEXT, MARCH):
            ingest(opened, day, A, RIGHT, WRONG)
        for day in days:
            check_ledgers(opened, [PartitionId(day, A)])
        stores.append(tree(opened, "fidelity"))
    assert stores[0] == stores[1]


def test_what_is_gone_is_dropped(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, WRONG)
    ingest(opened, NEXT, A, RIGHT)
    ingest(opened, MARCH, B, WRONG)
    compare_all(opened)
    remove_partition(opened, PartitionId(DAY, A))
    ingest(opened, MARCH, B, None)  # the traces are there, their ledger is not
    assert drop_gone(opened) == 2
    assert [(m.model, sorted(m.keys)) for m in list_fidelity(opened.store).values()] == [
        (A, [NEXT])
    ]
    assert drop_gone(opened) == 0


def test_a_day_that_cannot_be_compared_holds_up_no_other(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT)
    ingest(opened, NEXT, A, WRONG)
    ingest(opened, DAY, B, RIGHT)
    path = opened.store.root / snapshot_path(NEXT, A)
    table = pq.read_table(path)
    footer = pq.read_metadata(path).metadata
    broken = table.set_column(
        table.column_names.index("snapshot"), "snapshot", [["{"] * table.num_rows]
    )
    path.write_bytes(to_parquet(broken, {key.decode(): value for key, value in footer.items()}))
    found = check_ledgers(opened, read_fidelity_state(opened).expected)
    assert list(found.problems) == [PartitionId(NEXT, A)]
    assert str(path) in str(found.problems[PartitionId(NEXT, A)])
    outcomes = {
        key: None if item.fidelity is None else item.fidelity.outcome
        for key, item in found.partitions.items()
    }
    assert outcomes == {
        PartitionId(DAY, A): "PASS",
        PartitionId(DAY, B): "PASS",
        PartitionId(NEXT, A): None,
    }
    assert ledgers_to_compare(opened, Selection()) == [PartitionId(NEXT, A)]


def test_rows_of_a_day_that_changed_meanwhile_are_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT)

    def read_then_replace(store: Store, date: str, model: str) -> list[SourcedSnapshot]:
        found = read_snapshots(store, date, model)
        ingest(opened, DAY, A, WRONG)
        return found

    monkeypatch.setattr(fidelity, "read_snapshots", read_then_replace)
    found = check_ledgers(opened, [PartitionId(DAY, A)])
    assert found.partitions[PartitionId(DAY, A)] == (None, None)
    monkeypatch.undo()
    assert ledgers_to_compare(opened, Selection()) == [PartitionId(DAY, A)]


def test_a_failing_ledger_withholds_tokens_and_costs_of_its_model_only(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT, WRONG)
    ingest(opened, NEXT, A, RIGHT)
    ingest(opened, DAY, B, RIGHT)
    compare_all(opened)
    standings = published(opened)
    fidelity_a, tokens_a = of_model(standings, A)
    assert fidelity_a is not None
    assert (fidelity_a.outcome, fidelity_a.failed, fidelity_a.passed) == ("FAIL", 1, 2)
    assert fidelity_a.score == pytest.approx(5.5 / 6)
    assert (tokens_a.known, tokens_a.total, tokens_a.per_run) == (3, None, None)
    assert tokens_a.withheld == "fidelity 0.92"
    withheld = {
        (item.model, item.figures.tokens.withheld)
        for items in (standings.cells, standings.groups)
        for item in items
    }
    assert withheld == {(A, "fidelity 0.92"), (B, None)}
    fidelity_b, tokens_b = of_model(standings, B)
    assert fidelity_b is not None
    assert fidelity_b.outcome == "PASS"
    assert (tokens_b.withheld, tokens_b.doubt, tokens_b.per_run) == (None, None, 1100)


@pytest.mark.parametrize(
    ("found", "outcome", "doubt"),
    [
        (PARTLY, "WARN", "fidelity 1.00: 1 NoTruth"),
        (UNSEEN, "PENDING", "fidelity not checked: 1 trace not compared (2 NoTruth)"),
        (SILENT, "FAIL", None),
        (None, None, None),
    ],
)
def test_what_each_outcome_does(
    tmp_path: Path, found: WorkflowRecord | None, outcome: str | None, doubt: str | None
) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, found)
    compare_all(opened)
    judged, tokens = of_model(published(opened), A)
    assert (None if judged is None else judged.outcome) == outcome
    assert tokens.doubt == doubt
    assert (tokens.per_run is None) == (outcome == "FAIL")


def test_ledgers_not_compared_yet_never_read_as_a_pass(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT)
    compare_all(opened)
    ingest(opened, NEXT, A, RIGHT, WRONG)
    judged, tokens = of_model(published(opened), A)
    assert judged is not None
    assert (judged.outcome, judged.passed, judged.waiting) == ("WARN", 1, 2)
    assert tokens.doubt == "fidelity 1.00: 2 not compared yet"
    assert leaderboard_is_current(opened)
    compare_all(opened)
    assert not leaderboard_is_current(opened)
    judged, tokens = of_model(published(opened), A)
    assert judged is not None
    assert judged.outcome == "FAIL"


def test_a_trace_that_cannot_be_judged_is_pending(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    put(opened, DAY, A, trace("x.1", A, DAY, workflow_record=WRONG, problem="is not finished"))
    compare_all(opened)
    judged, _ = of_model(published(opened), A)
    assert judged is not None
    assert (judged.outcome, judged.score) == ("PENDING", None)
    assert {(item.compared, item.reason) for item in judged.divergences} == {
        (False, "is not finished")
    }
    assert judged.reason == "1 trace not compared (is not finished)"


def test_the_edition_names_what_was_compared(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT)
    compare_all(opened)
    first = published(opened).edition
    ingest(opened, NEXT, A, None)
    ingest(opened, DAY, A, PARTLY)
    compare_all(opened)
    assert published(opened).edition != first


@pytest.mark.parametrize("lost", [WorkflowRecord(problem="half of it is lost"), WorkflowRecord()])
def test_a_record_that_names_no_executor_is_not_lost_among_those_that_pass(
    tmp_path: Path, lost: WorkflowRecord
) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT, lost)
    ingest(opened, DAY, B, lost)
    compare_all(opened)
    standings = published(opened)
    partly, tokens = of_model(standings, A)
    assert partly is not None
    assert (partly.outcome, partly.passed, partly.pending) == ("WARN", 1, 1)
    assert (partly.executors, partly.checked) == (2, 2)
    assert tokens.doubt is not None
    none, _ = of_model(standings, B)
    assert none is not None
    assert (none.outcome, none.pending, none.executors) == ("PENDING", 1, 0)
    assert lost.problem is None or lost.problem in (none.reason or "")


@pytest.mark.parametrize("start", [40, 400])
def test_damaged_pages_of_a_day_hold_up_no_other(tmp_path: Path, start: int) -> None:
    opened = workspace(tmp_path)
    ingest(opened, DAY, A, RIGHT)
    ingest(opened, NEXT, A, RIGHT)
    path = opened.store.root / snapshot_path(NEXT, A)
    data = path.read_bytes()
    # Bytes in the middle: the footer, which says that there is a ledger, is whole.
    path.write_bytes(data[:start] + bytes(byte ^ 0x5A for byte in data[start:900]) + data[900:])
    found = check_ledgers(opened, read_fidelity_state(opened).expected)
    assert list(found.problems) == [PartitionId(NEXT, A)]
    assert str(path) in str(found.problems[PartitionId(NEXT, A)])
    assert found.partitions[PartitionId(DAY, A)].fidelity is not None


def test_counts_that_can_be_stored_and_no_sum_of_them(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    most = WorkflowRecord(
        ledger=tuple(LedgerEntry(executor="a", usage=Usage(total=2**53)) for _ in range(2000)),
        turns=(ModelTurn(executor="a", usage=Usage(total=2**53)),),
    )
    ingest(opened, DAY, A, RIGHT, most)
    compare_all(opened)
    judged, _ = of_model(published(opened), A)
    assert judged is not None
    assert (judged.outcome, judged.passed, judged.pending) == ("WARN", 1, 1)
    assert "add up to more than" in (judged.reason or "")
