"""Snapshots and contracts in, runs out: what is stale, and evaluating it.

Belongs here: the key of a cell's date, the plan, the unit of work. Does not belong here: rules
(`scoring`) or the month files' bytes (`adapters.run_files`).

The unit of work is *evaluate(snapshots of one date × model, contracts)*: each snapshot is
decoded once however many contracts there are, then the month's files are written one at a
time. A date's key is the hash of all that its rows depend on; a date whose stored key is the
one it should have is never looked at again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from benchmark_assets.adapters.run_files import (
    Evaluated,
    MonthKeys,
    list_months,
    update_month,
)
from benchmark_assets.adapters.snapshot_files import (
    list_partitions,
    read_partition_footer,
    read_snapshots,
)
from benchmark_assets.adapters.sources import Progress, quiet
from benchmark_assets.adapters.store import ARCHIVE, Store, archive_path, snapshot_path
from benchmark_assets.adapters.stored_contracts import (
    archive_contract,
    archived_files,
    read_archived,
    read_contract,
    read_contracts,
    store_contract,
)
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.project import ModelSettings
from benchmark_assets.model.verdict import RunRow
from benchmark_assets.pipeline.rules import Rules
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.scoring.evaluate import ENGINE_VERSION, ContractJudge
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.routing import Router
from benchmark_assets.scoring.runs import run_row


class CellId(NamedTuple):
    """One cell: a contract and a model."""

    contract: str
    model: str


def price_hash(settings: ModelSettings | None) -> str:
    """What a model's settings contribute to its runs' keys: its prices."""
    if settings is None or settings.input_usd_per_mtok is None:
        return ""
    prices = (
        settings.input_usd_per_mtok,
        settings.output_usd_per_mtok,
        settings.cached_usd_per_mtok,
    )
    return repr(prices)


def date_key(snapshots: str, rules: str, prices: str) -> str:
    """The key of one date of one cell: hash of all that its rows depend on.

    `rules` is `Rules.key` of the contract.
    """
    return content_hash(snapshots, rules, prices, ENGINE_VERSION)


def stale_contracts(
    workspace: Workspace, contracts: Iterable[Contract]
) -> tuple[list[Contract], list[str]]:
    """Contracts that the store has otherwise or not at all, and ids that are only in the store."""
    stored = read_contracts(workspace.store)
    current = {contract.id: contract for contract in contracts}
    changed = [
        contract
        for contract in current.values()
        if contract.id not in stored or stored[contract.id].content_hash != contract.content_hash
    ]
    return changed, [contract_id for contract_id in stored if contract_id not in current]


def write_contracts(workspace: Workspace, contracts: Iterable[Contract]) -> int:
    """Put contracts into the store; returns how many it did not have like that.

    One that comes back is evaluated anew; what was archived of it goes.
    """
    store, written = workspace.store, 0
    for contract in contracts:
        written += store_contract(store, contract)
        for path in archived_files(store, contract.id):
            store.remove(path)
    return written


def retire_contracts(workspace: Workspace, ids: Iterable[str]) -> int:
    """Archive contracts that no longer exist, with their runs; returns how many runs moved.

    What was once published can still be looked up; nothing of it counts any more.
    """
    store, gone = workspace.store, set(ids)
    moved = 0
    if gone:
        for path, month in list_months(store).items():
            if month.contract in gone and store.move(path, archive_path(path)):
                moved += month.runs
    for contract_id in sorted(gone):
        archive_contract(store, contract_id)
    return moved


class Archived(NamedTuple):
    """A contract that is gone: its id and label, how many runs of how many models it had."""

    contract: str
    label: str
    runs: int
    models: int


def archived_contracts(store: Store) -> list[Archived]:
    """The contracts that are gone, sorted by id."""
    months = list_months(store, ARCHIVE).values()
    return [
        Archived(
            contract.id,
            contract.label,
            sum(month.runs for month in months if month.contract == contract.id),
            len({month.model for month in months if month.contract == contract.id}),
        )
        for contract in read_archived(store).values()
    ]


@dataclass(frozen=True)
class StaleCells:
    """What must be evaluated: cell → dates, and how many dates were looked at in all."""

    dates: dict[CellId, list[str]]
    considered: int

    def __bool__(self) -> bool:
        return bool(self.dates)


@dataclass(frozen=True)
class RunState:
    """What the store holds and should hold.

    Attributes:
        contracts: The contracts in force, by id.
        contents: (date, model) → content hash of the snapshots there.
        months: The month files there are.
        expected: cell → date → key, as it should be.
        rules: What verdicts depend on beside contracts and traces, as it was then.
        blocked: (date, model) whose traces do not add up: not evaluated until they do.
    """

    contracts: dict[str, Contract]
    contents: dict[tuple[str, str], str]
    months: dict[str, MonthKeys]
    expected: dict[CellId, dict[str, str]]
    rules: Rules
    blocked: tuple[tuple[str, str], ...] = ()

    def stored(self) -> dict[CellId, dict[str, str]]:
        """Cell → date → key, as it is."""
        keys: dict[CellId, dict[str, str]] = defaultdict(dict)
        for month in self.months.values():
            keys[CellId(month.contract, month.model)].update(month.keys)
        return dict(keys)


def read_state(workspace: Workspace) -> RunState:
    """Read every footer: what there is, and by that what there should be."""
    store, config, rules = workspace.store, workspace.project.config, workspace.rules
    contracts = read_contracts(store)
    keys = {contract.id: rules.key(contract) for contract in contracts.values()}
    partitions = list_partitions(store)
    contents = {key: footer.content for key, footer in partitions.items() if footer.accounted}
    blocked = tuple(key for key, footer in partitions.items() if not footer.accounted)
    expected: dict[CellId, dict[str, str]] = defaultdict(dict)
    for (date, model), content in contents.items():
        prices = price_hash(config.models.get(model))
        for contract in contracts.values():
            cell = CellId(contract.id, model)
            expected[cell][date] = date_key(content, keys[contract.id], prices)
    return RunState(contracts, contents, list_months(store), dict(expected), rules, blocked)


def stale_cells(state: RunState) -> StaleCells:
    """Dates of cells whose stored key is not the one it should be, those to drop included."""
    stored = state.stored()
    stale: dict[CellId, list[str]] = {}
    considered = 0
    for cell in sorted({*state.expected, *stored}):
        expected, there = state.expected.get(cell, {}), stored.get(cell, {})
        considered += len(expected)
        if expected != there:
            dates = sorted({*expected, *there})
            stale[cell] = [date for date in dates if expected.get(date) != there.get(date)]
    return StaleCells(stale, considered)


class CellResult(NamedTuple):
    """What evaluating one cell did.

    `version` is the hash of the cell's date → key map afterwards: of all its runs depend on.
    """

    dates: int
    outcomes: dict[str, int]
    files_changed: int
    version: str = ""


def evaluate_cells(
    workspace: Workspace, wanted: Collection[CellId], progress: Progress = quiet
) -> dict[CellId, CellResult]:
    """Evaluate what is stale of some cells; a cell with nothing stale costs nothing.

    Works model by model and month by month, so that memory holds one month of one model.
    """
    state = read_state(workspace)
    stale = stale_cells(state).dates
    todo = {cell: stale.get(cell, []) for cell in wanted}
    judges = {
        contract_id: state.rules.judge(state.contracts[contract_id])
        for contract_id in sorted({cell.contract for cell, dates in todo.items() if dates})
        if contract_id in state.contracts
    }
    results = {cell: CellResult(0, {}, 0) for cell in wanted}
    total = len({(cell.model, date) for cell, dates in todo.items() for date in dates})
    done = 0
    for model in sorted({cell.model for cell in todo}):
        by_month: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for cell, dates in todo.items():
            if cell.model == model:
                for date in dates:
                    by_month[date[:7]][date].append(cell.contract)
        for month, contracts_by_date in sorted(by_month.items()):
            evaluated: dict[str, dict[str, Evaluated | None]] = defaultdict(dict)
            for date, contract_ids in sorted(contracts_by_date.items()):
                progress("evaluating", done, total)
                done += 1
                rows = _evaluate_date(workspace, state, judges, date, model, contract_ids)
                for contract_id, item in rows.items():
                    evaluated[contract_id][date] = item
            for contract_id, items in sorted(evaluated.items()):
                cell = CellId(contract_id, model)
                changed = _commit(workspace, cell, month, items)
                results[cell] = _add(results[cell], items, changed)
    return {
        cell: result._replace(version=keys_hash(state.expected.get(cell, {})))
        for cell, result in results.items()
    }


def keys_hash(keys: Mapping[str, str]) -> str:
    """One hash for a cell's date → key map."""
    return content_hash(canonical_json(dict(keys)))


def _evaluate_date(
    workspace: Workspace,
    state: RunState,
    judges: Mapping[str, ContractJudge],
    date: str,
    model: str,
    contract_ids: Sequence[str],
) -> dict[str, Evaluated | None]:
    """Judge one date × model by some contracts; None for a date there are no snapshots of."""
    content = state.contents.get((date, model))
    if content is None:
        return dict.fromkeys(contract_ids)
    known = [contract_id for contract_id in contract_ids if contract_id in judges]
    router = Router([judges[contract_id].contract for contract_id in known])
    rows: dict[str, list[RunRow]] = {contract_id: [] for contract_id in known}
    settings = workspace.project.config.models.get(model)
    for item in read_snapshots(workspace.store, date, model):
        evidence = Evidence(item.snapshot, state.rules.profiles)
        for index in router.route(item.snapshot):
            judge = judges[known[index]]
            verdict = judge.evaluate(evidence)
            rows[known[index]].append(
                run_row(date, model, item.snapshot, judge.contract, verdict, settings)
            )
    prices = price_hash(settings)
    result: dict[str, Evaluated | None] = dict.fromkeys(contract_ids)
    for contract_id in known:
        key = date_key(content, state.rules.key(judges[contract_id].contract), prices)
        result[contract_id] = Evaluated(key, tuple(rows[contract_id]))
    return result


def _commit(
    workspace: Workspace,
    cell: CellId,
    month: str,
    items: Mapping[str, Evaluated | None],
) -> bool:
    store = workspace.store
    prices = price_hash(workspace.project.config.models.get(cell.model))

    @cache  # asked first under the lock: one look for all dates of the file
    def rules_key() -> str | None:
        contract = read_contract(store, cell.contract)
        return None if contract is None else workspace.rules.key(contract)

    def current_key(date: str) -> str | None:
        footer = read_partition_footer(store, snapshot_path(date, cell.model))
        rules = rules_key()
        if footer is None or not footer.accounted or rules is None:
            return None
        return date_key(footer.content, rules, prices)

    return update_month(store, cell.contract, cell.model, month, items, current_key)


def _add(result: CellResult, items: Mapping[str, Evaluated | None], changed: bool) -> CellResult:
    outcomes = dict(result.outcomes)
    for item in items.values():
        for row in item.rows if item is not None else ():
            outcomes[row.outcome] = outcomes.get(row.outcome, 0) + 1
    return CellResult(result.dates + len(items), outcomes, result.files_changed + changed)
