"""What is stale after each kind of change, and that evaluating it depends on nothing else."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmark_assets.adapters import snapshot_files
from benchmark_assets.adapters.contract_files import load_contracts
from benchmark_assets.adapters.run_files import SCHEMA, list_months, list_run_files, read_month_keys
from benchmark_assets.adapters.run_reader import read_runs
from benchmark_assets.adapters.store import archive_path, contract_path, run_path, snapshot_path
from benchmark_assets.adapters.stored_contracts import read_contracts
from benchmark_assets.model.project import ModelSettings
from benchmark_assets.model.trace import Tokens, TraceSnapshot
from benchmark_assets.pipeline import cells
from benchmark_assets.pipeline.cells import (
    Archived,
    CellId,
    CellResult,
    archived_contracts,
    evaluate_cells,
    price_hash,
    read_state,
    retire_contracts,
    stale_cells,
    stale_contracts,
    write_contracts,
)
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.scoring import runs as scoring_runs
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

IDS = tuple(sorted(item.id for item in CONTRACTS))


@pytest.fixture
def opened(tmp_path: Path) -> Workspace:
    """A store in which everything is evaluated."""
    opened = workspace(tmp_path)
    fill(opened, CONTRACTS)
    evaluate_cells(opened, every_cell(opened))
    assert stale(opened) == {}
    return opened


def all_days(*pairs: tuple[str, str]) -> dict[CellId, list[str]]:
    return {CellId(*pair): list(DAYS) for pair in pairs}


def rows(opened: Workspace) -> list[dict[str, Any]]:
    columns = [name for name in SCHEMA.names if name not in ("plugins", "checks", "agents")]
    frame = read_runs(opened.store, list_run_files(opened.store), columns)
    known = frame.astype(object).where(frame.notna(), None)
    return [dict(zip(columns, row, strict=True)) for row in known.to_numpy().tolist()]


def test_at_first_everything_is_stale(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    fill(opened, CONTRACTS)
    assert stale(opened) == all_days(*((c, m) for c in IDS for m in MODELS))
    found = stale_cells(read_state(opened))
    assert found.considered == len(IDS) * len(MODELS) * len(DAYS)
    assert found


def test_nothing_without_contracts_or_snapshots(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    assert not stale_cells(read_state(opened))
    write_contracts(opened, CONTRACTS)
    assert stale(opened) == {}
    assert evaluate_cells(opened, [CellId("refund", A)]) == {
        CellId("refund", A): CellResult(0, {}, 0, cells.keys_hash({}))
    }


def test_every_trace_is_judged_by_what_applies(opened: Workspace) -> None:
    found = rows(opened)
    wanted = {
        (name, model, day, f"{task}.{day}.{model}", outcome)
        for model in MODELS
        for day in DAYS
        for name, task, outcome in (
            ("refund", "one", "resolved"),
            ("refund", "two", "unresolved"),
            ("refund/strict", "one", "unresolved"),
            ("refund/strict", "two", "unresolved"),
        )
    }
    names = ("contract", "model", "date", "trace_id", "outcome")
    assert {tuple(row[name] for name in names) for row in found} == wanted
    assert len(found) == len(wanted)


def test_what_matched_nothing_was_looked_at(opened: Workspace) -> None:
    """Keys also for dates without rows, one file a month."""
    for month, days in (("2026-02", DAYS[:2]), ("2026-03", DAYS[2:])):
        found = read_month_keys(opened.store, run_path("nothing", A, month))
        assert found is not None
        assert sorted(found.keys) == list(days)
    assert len(list_run_files(opened.store)) == len(IDS) * len(MODELS) * 2


# What was changed, and exactly the cells and dates that this makes stale.
Change = tuple[Callable[[Workspace], Workspace | None], dict[CellId, list[str]]]


def new_date(opened: Workspace) -> None:
    put(opened, "2026-03-05", A, *day_of_traces(A, "2026-03-05"))


def new_model(opened: Workspace) -> None:
    put(opened, DAYS[0], "c", trace("x", "c", DAYS[0]))


def empty_partition(opened: Workspace) -> None:
    put(opened, "2026-03-05", B)


def changed_snapshot(opened: Workspace) -> None:
    first, *rest = day_of_traces(B, DAYS[1])
    put(opened, DAYS[1], B, msgspec.structs.replace(first, final_answer="no"), *rest)


def one_trace_less(opened: Workspace) -> None:
    put(opened, DAYS[1], B, *day_of_traces(B, DAYS[1])[1:])


def same_snapshots_of_other_files(opened: Workspace) -> None:
    put(opened, DAYS[1], B, *day_of_traces(B, DAYS[1]), inputs={"s/renamed": "other"})


def removed_partition(opened: Workspace) -> None:
    opened.store.remove(snapshot_path(DAYS[0], A))


def changed_contract(opened: Workspace) -> None:
    write_contracts(opened, [contract("refund", final={"contains": ["328"]})])


def new_version(opened: Workspace) -> None:
    write_contracts(opened, [contract("refund", contract_version="2")])


def same_contract(opened: Workspace) -> None:
    assert write_contracts(opened, CONTRACTS) == 0


def new_contract(opened: Workspace) -> None:
    write_contracts(opened, [contract("new")])


def contract_gone_from_the_store(opened: Workspace) -> None:
    opened.store.remove(contract_path("refund"))


def contract_retired(opened: Workspace) -> None:
    assert retire_contracts(opened, ["refund"]) > 0


def month_file_lost(opened: Workspace) -> None:
    opened.store.remove(run_path("refund", A, "2026-02"))


def prices(**settings: float) -> Callable[[Workspace], Workspace]:
    return lambda opened: with_config(opened, models={A: settings})


def alias(opened: Workspace) -> Workspace:
    return with_config(opened, models={A: {"aliases": ["gpt-4o"]}})


def prices_of_a_model_without_traces(opened: Workspace) -> Workspace:
    both = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 1.0}
    return with_config(opened, models={"nobody": both})


def other_settings(opened: Workspace) -> Workspace:
    return with_config(opened, model_key="m", first_date="2020-01-01", contracts=["elsewhere"])


OF_A = [(contract_id, A) for contract_id in IDS]
CHANGES: list[Change] = [
    (new_date, {CellId(*cell): ["2026-03-05"] for cell in OF_A}),
    (new_model, {CellId(contract_id, "c"): [DAYS[0]] for contract_id in IDS}),
    (empty_partition, {CellId(contract_id, B): ["2026-03-05"] for contract_id in IDS}),
    (changed_snapshot, {CellId(contract_id, B): [DAYS[1]] for contract_id in IDS}),
    (one_trace_less, {CellId(contract_id, B): [DAYS[1]] for contract_id in IDS}),
    (same_snapshots_of_other_files, {}),
    (removed_partition, {CellId(*cell): [DAYS[0]] for cell in OF_A}),
    (changed_contract, all_days(("refund", A), ("refund", B))),
    (new_version, all_days(("refund", A), ("refund", B))),
    (same_contract, {}),
    (new_contract, all_days(("new", A), ("new", B))),
    (contract_gone_from_the_store, all_days(("refund", A), ("refund", B))),
    (contract_retired, {}),
    (month_file_lost, {CellId("refund", A): list(DAYS[:2])}),
    (prices(input_usd_per_mtok=2.5, output_usd_per_mtok=10), all_days(*OF_A)),
    (prices(cached_usd_per_mtok=1), {}),  # a price of nothing but the cache prices no run
    (prices_of_a_model_without_traces, {}),
    (alias, {}),
    (other_settings, {}),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_exactly_what_changed_is_stale(
    opened: Workspace,
    change: Callable[[Workspace], Workspace | None],
    expected: dict[CellId, list[str]],
) -> None:
    opened = change(opened) or opened
    assert stale(opened) == expected
    before = stamps(opened, "runs")
    results = evaluate_cells(opened, [*every_cell(opened), *expected])
    assert {cell: r.dates for cell, r in results.items() if r.dates} == {
        cell: len(days) for cell, days in expected.items()
    }
    assert stale(opened) == {}
    # Nothing but the files of the stale months was touched.
    allowed = {run_path(*cell, day[:7]) for cell, days in expected.items() for day in days}
    after = stamps(opened, "runs")
    touched = {path for path in {*before, *after} if before.get(path) != after.get(path)}
    assert touched == allowed


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_catching_up_gives_what_a_fresh_store_would_have(
    opened: Workspace,
    tmp_path: Path,
    change: Callable[[Workspace], Workspace | None],
    expected: dict[CellId, list[str]],
) -> None:
    opened = change(opened) or opened
    evaluate_cells(opened, [*every_cell(opened), *expected])
    fresh = workspace(tmp_path / "fresh")
    for path in tree(opened):
        if not path.startswith("runs/"):
            data = opened.store.read(path)
            assert data is not None
            fresh.store.write(path, data)
    fresh = with_config(fresh, **opened.project.config.model_dump(exclude_defaults=True))
    evaluate_cells(fresh, every_cell(fresh))
    assert tree(fresh) == tree(opened)


def test_another_engine_makes_everything_stale(
    opened: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cells, "ENGINE_VERSION", "test")
    monkeypatch.setattr(scoring_runs, "ENGINE_VERSION", "test")
    assert stale(opened) == all_days(*((c, m) for c in IDS for m in MODELS))
    evaluate_cells(opened, every_cell(opened))
    assert stale(opened) == {}
    assert {row["engine"] for row in rows(opened)} == {"test"}


CONTRACT_FILE = """\
workflow: refund
contract_version: "1"
final:
  contains: ["327"]
"""


@pytest.mark.parametrize(
    "text",
    [
        "# A comment.\n" + CONTRACT_FILE,
        CONTRACT_FILE.replace('["327"]', "\n    - '327'  # the amount"),
        'final: {contains: "327"}\ncontract_version: "1"\nworkflow: refund\n',
        CONTRACT_FILE + "applies_to: {workflow: refund}\n",
        CONTRACT_FILE.replace("\n", "\r\n"),
    ],
    ids=["comment", "layout", "key order", "the default spelt out", "line ends"],
)
def test_a_contract_that_says_the_same_makes_nothing_stale(tmp_path: Path, text: str) -> None:
    file = tmp_path / "contracts" / "refund.yaml"
    file.parent.mkdir()
    opened = workspace(tmp_path)

    def load(content: str) -> list[Any]:
        file.write_bytes(content.encode())
        loaded = load_contracts([file.parent])
        loaded.raise_if_problems()
        return [item.contract for item in loaded.contracts]

    fill(opened, load(CONTRACT_FILE))
    evaluate_cells(opened, every_cell(opened))
    before = stamps(opened)
    again = load(text)
    assert stale_contracts(opened, again) == ([], [])
    assert write_contracts(opened, again) == 0
    assert stale(opened) == {}
    assert stamps(opened) == before
    # And the comparison can tell: another text does make it stale.
    other = load(text.replace("327", "328"))
    assert [item.id for item in stale_contracts(opened, other)[0]] == ["refund"]


def test_contracts_are_compared_with_the_store(opened: Workspace) -> None:
    changed = contract("refund", final={"contains": ["328"]})
    new = contract("new")
    found, gone = stale_contracts(opened, [changed, new, CONTRACTS[1]])
    assert found == [changed, new]
    assert gone == ["nothing"]


def test_retiring_archives_the_contract_and_its_runs_only(opened: Workspace) -> None:
    before = stamps(opened)
    months = list_months(opened.store)
    runs = sum(month.runs for month in months.values() if month.contract == "refund")
    assert runs
    assert retire_contracts(opened, ["refund", "never was"]) == runs
    assert sorted(read_contracts(opened.store)) == ["nothing", "refund/strict"]
    after = stamps(opened)
    gone = {contract_path("refund")} | {
        run_path("refund", model, month) for model in MODELS for month in ("2026-02", "2026-03")
    }
    assert {path for path in after if path.startswith("archive/")} == set(map(archive_path, gone))
    assert {path: stamp for path, stamp in after.items() if not path.startswith("archive/")} == {
        path: stamp for path, stamp in before.items() if path not in gone
    }
    assert archived_contracts(opened.store) == [Archived("refund", "refund@1", runs, len(MODELS))]


def test_evaluating_again_changes_nothing(opened: Workspace) -> None:
    before = stamps(opened)
    results = evaluate_cells(opened, every_cell(opened))
    assert {(r.dates, r.files_changed) for r in results.values()} == {(0, 0)}
    assert stamps(opened) == before


def test_only_the_wanted_cells_are_evaluated(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    fill(opened, CONTRACTS)
    everything = stale(opened)
    wanted = CellId("refund", B)
    results = evaluate_cells(opened, [wanted])
    assert set(results) == {wanted}
    del everything[wanted]
    assert stale(opened) == everything
    assert {Path(path).parts[1:3] for path in list_run_files(opened.store)} == {
        ("contract=refund", "model=b%7Cmodel")
    }


@pytest.mark.parametrize("seed", range(4))
def test_order_and_grouping_of_cells_never_matter(
    opened: Workspace, tmp_path: Path, seed: int
) -> None:
    """Cell by cell in any order, or in any groups, gives the store of all at once."""
    other = workspace(tmp_path / "other")
    fill(other, CONTRACTS)
    rng = random.Random(seed)
    left = every_cell(other)
    rng.shuffle(left)
    while left:
        size = 1 if seed % 2 == 0 else rng.randint(1, 3)
        group, left = left[:size], left[size:]
        evaluate_cells(other, group)
    assert tree(other) == tree(opened)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_in_which_data_arrives_never_matters(
    opened: Workspace, tmp_path: Path, seed: int
) -> None:
    other = workspace(tmp_path / "other")
    arrivals: list[Callable[[], object]] = [
        *(
            lambda model=model, day=day: put(other, day, model, *day_of_traces(model, day))
            for model in MODELS
            for day in DAYS
        ),
        *(lambda item=item: write_contracts(other, [item]) for item in CONTRACTS),
    ]
    random.Random(seed).shuffle(arrivals)
    for arrive in arrivals:
        arrive()
        evaluate_cells(other, every_cell(other))
    assert tree(other) == tree(opened)


class CountingDecoder:
    """The decoder of snapshots, counting."""

    def __init__(self) -> None:
        self.decoded: Counter[str] = Counter()
        self._decode = msgspec.json.Decoder(TraceSnapshot).decode

    def decode(self, text: str) -> TraceSnapshot:
        snapshot = self._decode(text)
        self.decoded[snapshot.trace_id] += 1
        return snapshot


@pytest.mark.parametrize("number", [1, 3, 30])
def test_each_snapshot_is_decoded_once_however_many_contracts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    opened = workspace(tmp_path)
    fill(opened, [contract(f"c{n:02d}") for n in range(number)])
    decoder = CountingDecoder()
    monkeypatch.setattr(snapshot_files, "_DECODER", decoder)
    results = evaluate_cells(opened, every_cell(opened))
    traces = {t.trace_id for model in MODELS for day in DAYS for t in day_of_traces(model, day)}
    assert len(traces) == 18
    assert decoder.decoded == dict.fromkeys(traces, 1)
    assert sum(sum(r.outcomes.values()) for r in results.values()) == number * 12
    # Planning and a second evaluation decode nothing.
    stale(opened)
    evaluate_cells(opened, every_cell(opened))
    assert decoder.decoded.total() == 18


def test_only_stale_dates_are_decoded(opened: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    new_date(opened)
    decoder = CountingDecoder()
    monkeypatch.setattr(snapshot_files, "_DECODER", decoder)
    evaluate_cells(opened, every_cell(opened))
    assert set(decoder.decoded) == {t.trace_id for t in day_of_traces(A, "2026-03-05")}
    assert set(decoder.decoded.values()) == {1}


def test_results_count_what_was_done(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    fill(opened, CONTRACTS)
    results = evaluate_cells(opened, every_cell(opened))
    keys = read_state(opened).expected
    assert results == {
        CellId(name, model): CellResult(3, outcomes, 2, cells.keys_hash(keys[CellId(name, model)]))
        for model in MODELS
        for name, outcomes in (
            ("refund", {"resolved": 3, "unresolved": 3}),
            ("refund/strict", {"unresolved": 6}),
            ("nothing", {}),
        )
    }


def test_progress_counts_dates_of_models(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    fill(opened, CONTRACTS)
    seen: list[tuple[str, int, int]] = []
    evaluate_cells(opened, every_cell(opened), lambda *step: seen.append(step))
    total = len(MODELS) * len(DAYS)
    assert seen == [("evaluating", done, total) for done in range(total)]


def test_a_trace_with_a_problem_is_an_error_row(tmp_path: Path) -> None:
    opened = workspace(tmp_path)
    put(
        opened,
        DAYS[0],
        A,
        trace("good", A, DAYS[0]),
        trace("bad", A, DAYS[0], problem="line 3: is cut off"),
    )
    write_contracts(opened, [contract("refund")])
    evaluate_cells(opened, every_cell(opened))
    assert {(r["trace_id"], r["outcome"], r["reason"]) for r in rows(opened)} == {
        ("good", "resolved", None),
        ("bad", "error", "line 3: is cut off"),
    }


class TestPrices:
    """They fill a missing cost, and are in the key of exactly the runs they could change."""

    @staticmethod
    def costs(opened: Workspace) -> dict[str, tuple[float | None, bool]]:
        return {r["trace_id"]: (r["cost_usd"], r["cost_estimated"]) for r in rows(opened)}

    def test_they_fill_and_never_replace(self, tmp_path: Path) -> None:
        opened = workspace(tmp_path)
        put(
            opened,
            DAYS[0],
            A,
            trace("measured", A, DAYS[0], cost_usd=9.0),
            trace("free", A, DAYS[0], cost_usd=0.0),
            trace("missing", A, DAYS[0], tokens=Tokens(input=10**6, output=10**5)),
            trace("unknown", A, DAYS[0], tokens=Tokens(output=5)),
        )
        write_contracts(opened, [contract("refund")])
        evaluate_cells(opened, every_cell(opened))
        measured = {"measured": (9.0, False), "free": (0.0, False)}
        nothing = (None, False)
        assert self.costs(opened) == {**measured, "missing": nothing, "unknown": nothing}
        before = tree(opened)

        priced = prices(input_usd_per_mtok=2.5, output_usd_per_mtok=10)(opened)
        evaluate_cells(priced, every_cell(priced))
        # 1 Mtok at 2.50 and 0.1 Mtok at 10.
        assert self.costs(priced) == {**measured, "missing": (3.5, True), "unknown": nothing}

        evaluate_cells(opened, every_cell(opened))
        assert tree(opened) == before

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ((1, 1, None), (2, 1, None)),
            ((1, 1, None), (1, 2, None)),
            ((1, 1, None), (1, 1, 1)),
            ((1, 1, 0), (1, 1, None)),
            ((1, 12, None), (11, 2, None)),
        ],
    )
    def test_any_price_counts(
        self, one: tuple[float | None, ...], other: tuple[float | None, ...]
    ) -> None:
        def hashed(values: tuple[float | None, ...]) -> str:
            names = ("input_usd_per_mtok", "output_usd_per_mtok", "cached_usd_per_mtok")
            return price_hash(ModelSettings.model_validate(dict(zip(names, values, strict=True))))

        assert hashed(one) != hashed(other)

    def test_a_whole_number_is_the_same_price(self) -> None:
        whole, dotted = (
            ModelSettings.model_validate({"input_usd_per_mtok": n, "output_usd_per_mtok": n})
            for n in (2, 2.0)
        )
        assert price_hash(whole) == price_hash(dotted)

    def test_no_prices_are_no_settings(self) -> None:
        assert price_hash(None) == price_hash(ModelSettings(aliases=("x",))) == ""


class TestChangesWhileEvaluating:
    """What was judged from inputs that changed meanwhile is dropped, and stays stale."""

    def test_snapshots(self, tmp_path: Path) -> None:
        opened = workspace(tmp_path)
        fill(opened, [contract("refund")])

        def change(_: str, done: int, __: int) -> None:
            if done == 0:  # the plan is made, the first date is not read yet
                changed_snapshot(opened)

        evaluate_cells(opened, every_cell(opened), change)
        assert stale(opened) == {CellId("refund", B): [DAYS[1]]}
        assert not [r for r in rows(opened) if (r["model"], r["date"]) == (B, DAYS[1])]
        evaluate_cells(opened, every_cell(opened))
        assert stale(opened) == {}
        outcomes = {r["outcome"] for r in rows(opened) if (r["model"], r["date"]) == (B, DAYS[1])}
        assert outcomes == {"unresolved"}

    def test_a_contract(self, tmp_path: Path) -> None:
        opened = workspace(tmp_path)
        fill(opened, CONTRACTS)
        evaluate_cells(
            opened,
            every_cell(opened),
            lambda _, done, __: changed_contract(opened) if done == 5 else None,
        )
        # Model by model and month by month: what was committed before is stale again, what
        # came after was never committed.
        assert stale(opened) == all_days(("refund", A), ("refund", B))
        evaluate_cells(opened, every_cell(opened))
        assert {r["outcome"] for r in rows(opened)} == {"unresolved"}

    def test_a_contract_that_goes(self, tmp_path: Path) -> None:
        opened = workspace(tmp_path)
        fill(opened, [contract("refund")])
        evaluate_cells(opened, every_cell(opened), lambda *_: contract_gone_from_the_store(opened))
        assert list_run_files(opened.store) == []

    def test_a_partition_that_goes(self, tmp_path: Path) -> None:
        opened = workspace(tmp_path)
        fill(opened, [contract("refund")])
        evaluate_cells(
            opened,
            every_cell(opened),
            lambda _, done, __: removed_partition(opened) if done == 0 else None,
        )
        assert stale(opened) == {}
        assert not [r for r in rows(opened) if (r["model"], r["date"]) == (A, DAYS[0])]
