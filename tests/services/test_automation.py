"""The graph left running: a backfill from the UI, what follows it, the schedule, the sensors."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.defs.instance import open_instance
from tests.bench import bench, contents
from tests.services.serving import query, serving, wait_for

pytestmark = pytest.mark.services

DAYS = ("2026-03-01", "2026-03-02", "2026-03-03")
MODELS = ("m1", "vendor/m2")
BROKEN = ("2026-03-02", "vendor/m2")
LIAR = ("2026-03-03", "m1")
REPORTING = [("2026-03-01", "m1"), LIAR]
"""Partitions in which a framework reports on its executors; it is wrong in one of them."""

REPOSITORY = {"repositoryLocationName": "benchmark_assets", "repositoryName": "__repository__"}


def trace(day: str, model: str, number: int) -> dict[str, Any]:
    return {
        "trace_id": f"{day}-{model}-{number}",
        "name": f"w{number}",
        "model": model,
        "task": f"t{number}",
        "started_at": f"{day}T10:00:00Z",
        "final_answer": "42",
        "tool_calls": [{"name": "look", "status": "ok"}],
    }


def put(folder: Path, day: str, model: str, **changes: Any) -> None:
    path = folder / "traces" / day / f"{model.replace('/', '_')}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    traces = [trace(day, model, number) for number in range(3)]
    traces[0] |= changes
    path.write_text("".join(json.dumps(item) + "\n" for item in traces))


def report(tokens: int) -> dict[str, Any]:
    """A ledger of so many tokens, where 1,000 were used."""
    side = {"executor": "writer", "finish_reason": "stop"}
    return {
        "ledger": [{**side, "usage": {"total": tokens}}],
        "turns": [{**side, "usage": {"total": 1000}}],
    }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("left-running")
    assert bench("init", folder).code == 0
    config = folder / "benchmark.yaml"
    # A schedule that fires while the test waits.
    config.write_text(config.read_text() + 'schedule: {cron: "* * * * *"}\n')
    (folder / "contracts").mkdir(exist_ok=True)
    for number in range(3):
        (folder / "contracts" / f"c{number}.yaml").write_text(
            f'workflow: w{number}\ncontract_version: "1"\nfinal: {{contains: ["4{number}"]}}\n'
        )
    for day in DAYS:
        for model in MODELS:
            changes: dict[str, Any] = {"tool_calls": "none"} if (day, model) == BROKEN else {}
            if (day, model) in REPORTING:
                changes["workflow_record"] = report(10 if (day, model) == LIAR else 1000)
            put(folder, day, model, **changes)
    return folder


@pytest.fixture(scope="module")
def server(project: Path) -> Iterator[str]:
    with serving(["dagster", "dev"], project) as address:
        yield address


@pytest.fixture(scope="module")
def instance(project: Path, server: str) -> Iterator[dg.DagsterInstance]:
    with open_instance(load_project(project / "benchmark.yaml", env={}), own_store=True) as opened:
        yield opened


def switch(server: str, name: str, *, on: bool) -> None:
    if on:
        answer = query(
            server,
            """mutation($s: SensorSelector!) { startSensor(sensorSelector: $s) {
                 ... on Sensor { sensorState { status } } ... on PythonError { message } } }""",
            s={**REPOSITORY, "sensorName": name},
        )["startSensor"]
    else:
        state = query(
            server,
            """query($s: SensorSelector!) { sensorOrError(sensorSelector: $s) {
                 ... on Sensor { sensorState { id } } ... on PythonError { message } } }""",
            s={**REPOSITORY, "sensorName": name},
        )["sensorOrError"]["sensorState"]["id"]
        answer = query(
            server,
            """mutation($id: String!) { stopSensor(id: $id) {
                 ... on StopSensorMutationResult { instigationState { status } }
                 ... on PythonError { message } } }""",
            id=state,
        )["stopSensor"]
    assert "message" not in answer, answer


def log_of(project: Path) -> str:
    return (project / "dev.log").read_text()[-5000:]


def store_of(folder: Path) -> dict[str, bytes]:
    """All of a store but superseded editions, of which two ways may leave different ones."""
    found = contents(folder)
    current = json.loads(found.get("leaderboard/current.json", b'{"edition": ""}'))["edition"]
    return {
        path: data
        for path, data in found.items()
        if not path.startswith("leaderboard/edition=") or f"edition={current}/" in path
    }


def test_a_backfill_from_the_ui_leads_to_standings_by_itself(
    project: Path, server: str, instance: dg.DagsterInstance
) -> None:
    switch(server, "watch", on=False)  # here the backfill is to fill the snapshots
    for model in MODELS:
        answer = query(
            server,
            """mutation($r: RepositorySelector!, $k: String!) {
                 addDynamicPartition(repositorySelector: $r, partitionsDefName: "model",
                                     partitionKey: $k) {
                   __typename ... on PythonError { message } } }""",
            r=REPOSITORY,
            k=model,
        )["addDynamicPartition"]
        assert answer["__typename"] in (
            "AddDynamicPartitionSuccess",
            "DuplicateDynamicPartitionError",
        )
    answer = query(
        server,
        """mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) {
             __typename ... on LaunchBackfillSuccess { backfillId }
             ... on PythonError { message } } }""",
        p={
            "assetSelection": [{"path": ["trace_snapshots"]}],
            "partitionNames": [f"{day}|{model}" for day in DAYS for model in MODELS],
        },
    )["launchPartitionBackfill"]
    assert answer["__typename"] == "LaunchBackfillSuccess", answer

    expected = project.parent / "expected"
    result = bench("run", "--traces", "traces", "--store", expected, cwd=project)
    assert result.code == 9  # a ledger is falsified on purpose, and one trace is broken
    store = project / "data" / "store"
    wait_for(lambda: store_of(store) == store_of(expected), lambda: log_of(project), 240)

    filled = instance.get_materialized_partitions(dg.AssetKey("trace_snapshots"))
    assert {f"{day}|{model}" for day in DAYS for model in MODELS} <= set(filled)
    cells = instance.get_materialized_partitions(dg.AssetKey("contract_evaluations"))
    assert set(cells) == {f"c{number}|{model}" for number in range(3) for model in MODELS}
    compared = instance.get_materialized_partitions(dg.AssetKey("workflow_fidelity"))
    assert set(compared) == {"|".join(partition) for partition in REPORTING}


@pytest.mark.parametrize(
    ("asset", "check", "failing"),
    [
        ("trace_snapshots", "no_unreadable_traces", BROKEN),
        ("workflow_fidelity", "ledgers_agree_with_model_calls", LIAR),
    ],
)
def test_a_failing_check_shows_on_its_partition_only(
    instance: dg.DagsterInstance, asset: str, check: str, failing: tuple[str, str]
) -> None:
    key = dg.AssetCheckKey(dg.AssetKey(asset), check)
    history = instance.event_log_storage.get_asset_check_execution_history(key, limit=200)
    latest: dict[str | None, str] = {}
    for record in history:  # newest first
        latest.setdefault(record.partition, record.status.value)
    assert {partition for partition, status in latest.items() if status == "FAILED"} == {
        "|".join(failing)
    }
    assert None not in latest


def test_an_edited_contract_evaluates_its_own_cells(
    project: Path, instance: dg.DagsterInstance
) -> None:
    before = instance.get_runs_count()
    contract = project / "contracts" / "c1.yaml"
    contract.write_text(contract.read_text().replace('["41"]', '["42"]'))
    store = project / "data" / "store"
    runs = store / "runs"
    untouched = {p: d for p, d in contents(runs).items() if "contract=c1/" not in p}
    standings = (store / "leaderboard" / "current.json").read_bytes()
    wait_for(
        lambda: (store / "leaderboard" / "current.json").read_bytes() != standings,
        lambda: log_of(project),
        180,
    )
    assert untouched.items() <= contents(runs).items()
    jobs = [
        run.job_name
        for run in instance.get_runs(limit=instance.get_runs_count() - before)
        if run.job_name != "ingest"  # the schedule's
    ]
    assert sorted(set(jobs)) == ["evaluate", "publish", "store_contracts"]
    (evaluated,) = [
        run.tags["dagster/asset_partition_range_start"].split("|")[0]
        for run in instance.get_runs(dg.RunsFilter(job_name="evaluate"), limit=1)
    ]
    assert evaluated == "c1"


def test_the_schedule_fires(project: Path, instance: dg.DagsterInstance) -> None:
    def fired() -> bool:
        runs = instance.get_runs(dg.RunsFilter(tags={"dagster/schedule_name": "nightly"}))
        return any(run.status == dg.DagsterRunStatus.SUCCESS for run in runs)

    wait_for(fired, lambda: log_of(project), 180)


def test_a_sensor_adds_a_model_and_its_traces(
    project: Path, server: str, instance: dg.DagsterInstance
) -> None:
    switch(server, "watch", on=True)
    put(project, DAYS[2], "brand-new")
    wait_for(
        lambda: instance.has_dynamic_partition("model", "brand-new"), lambda: log_of(project), 120
    )

    def standing() -> bool:
        result = bench("leaderboard", "--json", cwd=project)
        return "brand-new" in result.out

    wait_for(standing, lambda: log_of(project), 240)
