"""Plans: what a selection takes, and that a broken contract file retires nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from benchmark_assets.adapters.contract_files import ContractFile, ContractSet
from benchmark_assets.adapters.source_index import FileEntry, PartitionCount
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.problem import Problem
from benchmark_assets.pipeline.cells import CellId, evaluate_cells
from benchmark_assets.pipeline.ingest import Inventory, PartitionId
from benchmark_assets.pipeline.plan import Selection, all_models, cells_to_evaluate, stale_inputs
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
    workspace,
)


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    opened = workspace(tmp_path)
    fill(opened, CONTRACTS)
    return opened


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(), DAYS),
        (Selection(first=DAYS[0]), DAYS),
        (Selection(first=DAYS[1]), DAYS[1:]),
        (Selection(last=DAYS[1]), DAYS[:2]),
        (Selection(first=DAYS[1], last=DAYS[1]), DAYS[1:2]),
        (Selection(first="2026-03-02"), ()),
        (Selection(last="2026-02-26"), ()),
        (Selection(first=DAYS[2], last=DAYS[0]), ()),
        (Selection(contracts=frozenset({"refund"})), DAYS),
        (Selection(models=frozenset({A})), DAYS),
        (Selection(models=frozenset({B, "x"})), ()),
    ],
)
def test_partitions_that_are_asked_for(selection: Selection, taken: tuple[str, ...]) -> None:
    found = [day for day in DAYS if selection.takes_partition(PartitionId(day, A))]
    assert found == list(taken)


ALL = {(item.id, model) for item in CONTRACTS for model in MODELS}


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(), ALL),
        (Selection(models=frozenset({A})), {cell for cell in ALL if cell[1] == A}),
        (Selection(contracts=frozenset({"refund"})), {("refund", A), ("refund", B)}),
        (
            Selection(models=frozenset({A, "x"}), contracts=frozenset({"refund", "y"})),
            {("refund", A)},
        ),
        (Selection(models=frozenset({"x"})), set()),
        (Selection(contracts=frozenset({"ref*"})), set()),
    ],
)
def test_cells_that_are_asked_for(
    opened: Workspace, selection: Selection, taken: set[tuple[str, str]]
) -> None:
    found = cells_to_evaluate(opened, selection)
    assert found == {CellId(*cell): list(DAYS) for cell in taken}


def test_dates_do_not_split_a_cell(opened: Workspace) -> None:
    """A cell is whole or withheld: dates choose what is ingested, not what is evaluated."""
    found = cells_to_evaluate(opened, Selection(first=DAYS[1], last=DAYS[1]))
    assert found == stale(opened)


def test_planning_writes_nothing_and_nothing_stale_plans_nothing(opened: Workspace) -> None:
    evaluate_cells(opened, every_cell(opened))
    before = stamps(opened)
    assert cells_to_evaluate(opened, Selection()) == {}
    assert stamps(opened) == before


def contract_set(*contracts: Contract, problems: tuple[Problem, ...] = ()) -> ContractSet:
    files = tuple(ContractFile(item, Path(f"{item.id}.yaml"), item.id) for item in contracts)
    return ContractSet(files, problems)


def inventory(*partitions: tuple[str, str], sha256: str = "hash") -> Inventory:
    """Files of a source that is no longer configured, one a partition."""
    entries = {
        f"{day}{model}": FileEntry(
            path=f"{day}{model}",
            size=1,
            mtime_ns=1,
            sha256=sha256,
            settings="x",
            status="read",
            traces=3,
            partitions=(PartitionCount(day, model, 3),),
        )
        for day, model in partitions
    }
    return Inventory(states={}, kept={"s": entries})


EVERYTHING = [(day, model) for day in DAYS for model in MODELS]


def test_contracts_that_are_new_changed_or_gone(opened: Workspace) -> None:
    changed = contract("refund", final={"contains": ["328"]})
    loaded = contract_set(changed, contract("new"), CONTRACTS[1])
    found = stale_inputs(opened, loaded, inventory(), Selection())
    assert found.contracts == ("refund", "new")
    assert found.retired == ("nothing",)


def test_nothing_is_retired_while_a_contract_file_is_broken(opened: Workspace) -> None:
    """The file that cannot be read may be the one that holds it."""
    loaded = contract_set(CONTRACTS[0], problems=(Problem("is broken", file="x.yaml"),))
    found = stale_inputs(opened, loaded, inventory(), Selection())
    assert (found.contracts, found.retired) == ((), ())


def test_partitions_to_build_and_to_remove(opened: Workspace) -> None:
    """The store's were built from other files, one is new, and one no file holds any more."""
    held = [*EVERYTHING[1:], ("2026-03-09", "new")]
    found = stale_inputs(opened, contract_set(*CONTRACTS), inventory(*held), Selection())
    assert found.build == tuple(sorted(PartitionId(*key) for key in held))
    assert found.remove == (PartitionId(*EVERYTHING[0]),)


@pytest.mark.parametrize(
    "selection",
    [
        Selection(models=frozenset({B})),
        Selection(first=DAYS[1]),
        Selection(first=DAYS[0], last=DAYS[1], models=frozenset({A})),
    ],
)
def test_only_partitions_that_are_asked_for(opened: Workspace, selection: Selection) -> None:
    half = EVERYTHING[::2]
    found = stale_inputs(opened, contract_set(*CONTRACTS), inventory(*half), selection)
    everything = stale_inputs(opened, contract_set(*CONTRACTS), inventory(*half), Selection())
    assert len(everything.build) + len(everything.remove) == len(EVERYTHING)
    assert found.build == tuple(k for k in everything.build if selection.takes_partition(k))
    assert found.remove == tuple(k for k in everything.remove if selection.takes_partition(k))


def test_partitions_built_from_what_there_is_are_left_alone(opened: Workspace) -> None:
    held = inventory(*EVERYTHING)
    for key, inputs in held.expected().items():
        put(opened, key.date, key.model, *day_of_traces(key.model, key.date), inputs=inputs)
    found = stale_inputs(opened, contract_set(*CONTRACTS), held, Selection())
    assert (found.contracts, found.retired, found.build, found.remove) == ((), (), (), ())
    other = inventory(*EVERYTHING, sha256="other")
    assert len(stale_inputs(opened, contract_set(*CONTRACTS), other, Selection()).build) == 6


def test_models_of_the_sources() -> None:
    held = inventory((DAYS[0], "z"), (DAYS[1], "z"), (DAYS[0], A))
    assert list(all_models(held)) == sorted({"z", A})
    gone = msgspec.structs.replace(held.kept["s"][f"{DAYS[0]}{A}"], status="vanished")
    held.kept["s"][gone.path] = gone
    assert list(all_models(held)) == sorted({"z", A}), "what vanished still counts"
    assert list(all_models(Inventory(states={}))) == []
