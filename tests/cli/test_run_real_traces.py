"""The main job on real traces: τ²-bench airline, six models, thirty tasks."""

import json
from collections import Counter, defaultdict
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.bench import Result, bench, contents, run_rows, tree
from tests.real_data import REAL, needs_real_data

pytestmark = needs_real_data

TAU2 = REAL / "tau2-airline-train30"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("airline")


@pytest.fixture(scope="module")
def first_run(place: Path) -> Result:
    imported = bench("import-tasks", "tau2", TAU2 / "gpt-5.4.json", "--out", place / "C")
    assert imported.code == 0, imported.err
    return _run(place)


def _run(place: Path, *more: object) -> Result:
    return bench(
        "run",
        "--traces",
        TAU2,
        "--contracts",
        place / "C",
        "--store",
        place / "S",
        *more,
        cwd=place,
    )


def _published_rewards() -> dict[str, float]:
    return {
        simulation["id"]: simulation["reward_info"]["reward"]
        for path in TAU2.glob("*.json")
        for simulation in json.loads(path.read_bytes())["simulations"]
    }


def test_there_is_a_row_per_trace_and_matching_contract(place: Path, first_run: Result) -> None:
    assert first_run.code == 0, first_run.err
    rows = run_rows(place / "S")
    rewards = _published_rewards()
    assert len(rows) == 180
    assert {row["trace_id"] for row in rows} == set(rewards)
    for row in rows:
        assert row["contract"] == row["task"]
        assert row["outcome"] in ("resolved", "unresolved")
        assert row["trial"] == 0
        assert isinstance(row["duration_ms"], int)
        assert row["checks"]


def test_usage_is_the_source_s(place: Path, first_run: Result) -> None:
    expected = json.loads((REAL / "expected.json").read_bytes())
    truths = expected["tau2-airline-train30 (reward_info.reward)"]
    by_file = {f"{name}.json": truth for name, truth in truths.items()}
    rows: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in run_rows(place / "S"):
        rows[str(row["file"])].append(row)
    assert set(rows) == set(by_file)
    for file, truth in by_file.items():
        known = [row for row in rows[file] if row["cost_usd"] is not None]
        assert len(known) == truth["traces_with_cost"]
        assert sum(row["cost_usd"] for row in known) / len(known) == pytest.approx(
            truth["mean_agent_cost"], abs=1e-6
        )
        for column, key in (
            ("input_tokens", "agent_prompt_tokens"),
            ("output_tokens", "agent_completion_tokens"),
        ):
            counts = [row[column] for row in rows[file]]
            if truth[key] == 0:
                # No usage in the file at all: unknown, which is not 0.
                assert counts == [None] * 30
            else:
                assert sum(counts) == truth[key]
        assert sum(row["duration_ms"] for row in rows[file]) / 30_000 == pytest.approx(
            truth["mean_duration_s"], abs=0.01
        )


def test_verdicts_agree_with_published_rewards(place: Path, first_run: Result) -> None:
    rewards = _published_rewards()
    rows = run_rows(place / "S")
    table = Counter(
        (row["outcome"] == "resolved", rewards[str(row["trace_id"])] == 1) for row in rows
    )
    n = sum(table.values())
    agreed = (table[True, True] + table[False, False]) / n
    first = (table[True, True] + table[True, False]) / n
    second = (table[True, True] + table[False, True]) / n
    chance = first * second + (1 - first) * (1 - second)
    assert (agreed - chance) / (1 - chance) >= 0.95

    difference: Counter[str] = Counter()
    for row in rows:
        right = rewards[str(row["trace_id"])] == 1
        difference[str(row["model"])] += (row["outcome"] == "resolved") - right
    assert sum(abs(difference[model]) <= 1 for model in {str(r["model"]) for r in rows}) >= 5


def test_agree_prints_the_same_kappa(place: Path, first_run: Result) -> None:
    result = bench("agree", "--truth", TAU2, "--store", place / "S", "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)
    assert report["overall"]["kappa"] == pytest.approx(0.9777, abs=1e-4)
    assert len(report["models"]) == 6
    assert len(report["disagreements"]) == 2


def test_a_second_run_starts_no_dagster_run_and_writes_no_file(
    place: Path, first_run: Result
) -> None:
    before = tree(place)
    again = _run(place)
    assert again.code == 0, again.err
    assert "no Dagster run" in again.err
    assert again.out == first_run.out
    # Dagster's own instance lies beside the store: not even that is touched.
    assert tree(place) == before


def test_a_touched_contract_evaluates_its_own_cells_only(place: Path, first_run: Result) -> None:
    contract = place / "C" / "airline" / "7.yaml"
    text = contract.read_text()
    before = tree(place / "S")
    try:
        contract.write_text(text.replace('contract_version: "1"', 'contract_version: "2"'))
        assert _run(place).code == 0
        after = tree(place / "S")
        written = {path for path in after if before.get(path) != after[path]}
        assert {path for path in written if path.startswith("runs/")} == {
            path for path in before if path.startswith("runs/contract=airline%2F7/")
        }
        assert not {path for path in written if path.startswith(("snapshots/", "sources/"))}
        assert len([path for path in written if path.startswith("contracts/")]) == 1
    finally:
        contract.write_text(text)
    assert _run(place).code == 0
    assert contents(place / "S" / "runs") == {
        path.removeprefix("runs/"): data
        for path, (data, _) in before.items()
        if path.startswith("runs/")
    }


def test_the_same_inputs_give_the_same_bytes(
    place: Path, first_run: Result, tmp_path: Path
) -> None:
    other = bench(
        "run", "--traces", TAU2, "--contracts", place / "C", "--store", tmp_path / "S", cwd=tmp_path
    )
    assert other.code == 0
    there, here = contents(place / "S"), contents(tmp_path / "S")
    # The other store may keep editions from before; nothing of it may differ.
    assert here.items() <= there.items()
    assert all(path.startswith("leaderboard/edition=") for path in there.keys() - here.keys())


def test_nothing_secret_or_graded_is_stored(place: Path, first_run: Result) -> None:
    rows = [
        text
        for path in (place / "S" / "snapshots").rglob("*.parquet")
        for text in pq.ParquetFile(path).read()["snapshot"].to_pylist()
    ]
    assert len(rows) == 180
    for text in rows:
        assert "api_key" not in text
        assert "reward" not in json.loads(text)
        assert str(place) not in text


def test_verify_says_of_one_trace_what_run_stored_of_it(place: Path, first_run: Result) -> None:
    file = TAU2 / "gpt-5.4.json"
    rows = [row for row in run_rows(place / "S") if row["file"] == file.name][:12]
    assert {row["outcome"] for row in rows} == {"resolved", "unresolved"}
    for row in rows:
        contract = place / "C" / f"{row['contract']}.yaml"
        arguments = ("--contract", contract, "--snapshot", file, "--trace-id", row["trace_id"])
        result = bench("verify", *arguments, "--json", cwd=place)
        report = json.loads(result.out)
        assert result.code == (0 if row["outcome"] == "resolved" else 1)
        for key in ("outcome", "score", "reason", "model", "contract_sha256", "engine"):
            assert report[key] == row[key]
        assert report["origin"]["sha256"] == row["sha256"]
        assert report["origin"]["record"] == row["record"]
