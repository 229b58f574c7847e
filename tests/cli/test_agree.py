"""`bench agree` on runs written by hand: figures by group, which a reader can add up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.bench import bench

# (suite, model) → what each of its runs did (paid or not) and how it was graded.
RUNS: dict[tuple[str, str], list[tuple[bool, bool]]] = {
    ("bank", "a"): [(True, True), (True, True)],
    ("bank", "b"): [(True, True), (False, False)],
    ("bank", "c"): [(False, False), (False, True)],
    ("shop", "a"): [(True, False), (False, False)],
    ("shop", "b"): [(True, True), (True, False)],
    ("shop", "c"): [(True, True), (True, True)],
}


def run_file(suite: str, model: str, task: int, paid: bool, grade: bool) -> dict[str, Any]:
    call = {"function": "send_money", "args": {"to": "X"}, "id": "c"}
    asked: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "content": "sent", "tool_call_id": "c", "tool_call": call, "error": None},
    ]
    said = {"role": "assistant", "content": "Done.", "tool_calls": None}
    return {
        "suite_name": suite,
        "pipeline_name": model,
        "user_task_id": f"user_task_{task}",
        "messages": [{"role": "user", "content": "Pay X."}, *(asked if paid else []), said],
        "error": None,
        "utility": grade,
        "duration": 1.0,
    }


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tasks, runs, and the store they were judged into."""
    base = tmp_path_factory.mktemp("agree")
    truth = [{"function": "send_money", "args": {"to": "X"}}]
    tasks = {
        f"v1|{suite}|user_task_{task}": {"prompt": "Pay X.", "ground_truth": truth}
        for suite in ("bank", "shop")
        for task in (0, 1)
    }
    (base / "runs").mkdir()
    (base / "runs" / "tasks.json").write_text(json.dumps(tasks))
    for (suite, model), runs in RUNS.items():
        for task, (paid, grade) in enumerate(runs):
            name = f"{suite}-{model}-{task}.json"
            (base / "runs" / name).write_text(json.dumps(run_file(suite, model, task, paid, grade)))
    assert bench("import-tasks", "agentdojo", "runs/tasks.json", "--out", "C", cwd=base).code == 0
    arguments = ("--traces", "runs/*-*.json", "--contracts", "C", "--store", "S")
    ran = bench("run", *arguments, "--default-date", "2024-06-01", cwd=base)
    assert ran.code == 0, ran.err
    return base


def test_each_group_has_its_own_figures(store: Path) -> None:
    result = bench("agree", "--truth", "runs", "--store", "S", "--json", cwd=store)
    assert result.code == 0
    report = json.loads(result.out)
    bank, shop = report["groups"]["bank"], report["groups"]["shop"]
    counts = ("both", "only_first", "only_second", "neither")
    assert [bank["agreement"][name] for name in counts] == [3, 0, 1, 2]
    assert [shop["agreement"][name] for name in counts] == [3, 2, 0, 1]
    assert [report["overall"][name] for name in counts] == [6, 2, 1, 3]
    # κ by hand: bank (5·6 - (3·4 + 3·2)) / (36 - 18), shop (4·6 - (5·3 + 1·3)) / (36 - 18).
    assert bank["agreement"]["kappa"] == pytest.approx(12 / 18)
    assert shop["agreement"]["kappa"] == pytest.approx(6 / 18)
    # Rates by contract and label. Bank: 1 .5 0 and 1 .5 .5; shop: .5 1 1 and 0 .5 1.
    assert bank["rank_correlation"] == pytest.approx(3**0.5 / 2)
    assert shop["rank_correlation"] == pytest.approx(3**0.5 / 2)
    # Over both, .75 .75 .5 and .5 .5 .75: what the one ranks up, the other ranks down.
    assert report["rank_correlation"] == pytest.approx(-1)
    assert len(report["disagreements"]) == 3


def test_groups_are_printed_one_after_the_other(store: Path) -> None:
    result = bench("agree", "--truth", "runs", "--store", "S", cwd=store)
    lines = [line.rstrip() for line in result.out.splitlines()]
    titles = [line for line in lines if line.startswith(("Group", "All groups", "Rank"))]
    assert titles == [
        "Group bank",
        "Rank correlation of the 3 models' rates: 0.866",
        "Group shop",
        "Rank correlation of the 3 models' rates: 0.866",
        "All groups",
        "Rank correlation of the 3 models' rates: -1.000",
    ]
