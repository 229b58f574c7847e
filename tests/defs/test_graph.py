"""The graph on a real Dagster instance: the demo's assets, materialized and read back."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus

from benchmark_assets.adapters.editions import read_current, read_standings
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.defs.automation import JOBS
from benchmark_assets.defs.build import build_definitions
from benchmark_assets.defs.instance import open_instance
from benchmark_assets.defs.resources import Bench
from benchmark_assets.demo import generate
from benchmark_assets.pipeline.workspace import Workspace
from tests.bench import Result, bench, contents

ASSETS = {
    "contracts",
    "trace_snapshots",
    "contract_evaluations",
    "workflow_fidelity",
    "leaderboard",
    "benchmark_report",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(place: Path) -> Result:
    return bench("demo", "--dir", place, cwd=place)


@pytest.fixture(scope="module")
def instance(place: Path, demo: Result) -> Iterator[dg.DagsterInstance]:
    project = load_project(place / "benchmark.yaml", env={})
    with open_instance(project, own_store=True) as opened:
        yield opened


@pytest.fixture(scope="module")
def definitions(place: Path, demo: Result) -> dg.Definitions:
    return build_definitions(Bench(Workspace(load_project(place / "benchmark.yaml", env={}))))


def latest(
    instance: dg.DagsterInstance, asset: str, partition: str | None = None
) -> dg.AssetMaterialization:
    records = instance.fetch_materializations(
        dg.AssetRecordsFilter(
            dg.AssetKey(asset), asset_partitions=None if partition is None else [partition]
        ),
        limit=1,
    ).records
    (record,) = records
    materialization = record.asset_materialization
    assert materialization is not None
    return materialization


def facts(materialization: dg.AssetMaterialization) -> dict[str, object]:
    return {key: value.value for key, value in materialization.metadata.items()}


def test_the_demo_ran(demo: Result) -> None:
    assert demo.code == 0, demo.err
    assert "1008 demo traces" in demo.out
    assert "report.html" in demo.out
    assert "127.0.0.1:3000" in demo.out


def test_the_graph_is_what_the_design_says(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    assert {key.to_user_string() for key in graph.get_all_asset_keys()} == ASSETS
    parents = {
        key.to_user_string(): {parent.to_user_string() for parent in graph.get(key).parent_keys}
        for key in graph.get_all_asset_keys()
    }
    assert parents == {
        "contracts": set(),
        "trace_snapshots": set(),
        "contract_evaluations": {"contracts", "trace_snapshots"},
        "workflow_fidelity": {"trace_snapshots"},
        "leaderboard": {"contract_evaluations", "workflow_fidelity"},
        "benchmark_report": {"leaderboard"},
    }
    dimensions = {}
    for asset in ("trace_snapshots", "contract_evaluations", "workflow_fidelity"):
        definition = graph.get(dg.AssetKey(asset)).partitions_def
        assert isinstance(definition, dg.MultiPartitionsDefinition)
        dimensions[asset] = sorted(part.name for part in definition.partitions_defs)
    assert dimensions == {
        "trace_snapshots": ["date", "model"],
        "contract_evaluations": ["contract", "model"],
        "workflow_fidelity": ["date", "model"],
    }


def test_every_asset_says_what_it_is(definitions: dg.Definitions) -> None:
    graph = definitions.resolve_asset_graph()
    for key in graph.get_all_asset_keys():
        node = graph.get(key)
        assert node.description
        assert node.owners
        assert node.kinds
        assert node.group_name == "benchmark"


def test_all_partitions_with_data_are_materialized(
    instance: dg.DagsterInstance, demo: Result
) -> None:
    count = {
        asset: len(instance.get_materialized_partitions(dg.AssetKey(asset)))
        for asset in ("contracts", "trace_snapshots", "contract_evaluations", "workflow_fidelity")
    }
    assert count == {
        "contracts": 6,
        "trace_snapshots": 14 * 4,
        "contract_evaluations": 6 * 4,
        "workflow_fidelity": 14 * 4,
    }


def test_a_snapshot_partition_says_what_is_in_it(instance: dg.DagsterInstance, place: Path) -> None:
    found = facts(latest(instance, "trace_snapshots", "2026-11-20|gpt-5.4"))
    assert found["dagster/row_count"] == 18
    assert found["error_rows"] == 0
    assert Path(str(found["path"])).is_file()
    assert len(str(found["content_sha256"])) == 64


def test_partitions_have_data_versions_of_their_own(instance: dg.DagsterInstance) -> None:
    versions = {
        latest(instance, "trace_snapshots", f"2026-11-{day}|gpt-5.4").tags["dagster/data_version"]
        for day in range(15, 29)
    }
    assert len(versions) == 14


def test_a_cell_counts_what_the_generator_planned(instance: dg.DagsterInstance) -> None:
    planned: dict[tuple[str, str], list[bool]] = {}
    for item in generate():
        planned.setdefault((item.contract, str(item.snapshot.model)), []).append(item.fault is None)
    assert len(planned) == 24
    for (contract, model), clean in planned.items():
        found = facts(latest(instance, "contract_evaluations", f"{contract}|{model}"))
        assert found["dagster/row_count"] == 42
        assert found["resolved"] == sum(clean)
        assert found["unresolved"] == 42 - sum(clean)
        assert found["pass_rate"] == pytest.approx(sum(clean) / 42)


def test_the_leaderboard_reads_well_in_the_ui(instance: dg.DagsterInstance, place: Path) -> None:
    found = latest(instance, "leaderboard")
    metadata = found.metadata
    assert isinstance(metadata["standings"], dg.MarkdownMetadataValue)
    assert "claude-sonnet-4-6" in str(metadata["standings"].value)
    table = metadata["cells"]
    assert isinstance(table, dg.TableMetadataValue)
    assert len(table.records) == 24
    edition = str(metadata["edition"].value)
    standings = place / "data" / "store" / "leaderboard" / f"edition={edition}" / "standings.json"
    assert json.loads(standings.read_bytes())["edition"] == edition
    assert found.tags["dagster/data_version"] == edition


GATE = dg.AssetCheckKey(dg.AssetKey("workflow_fidelity"), "ledgers_agree_with_model_calls")


def gates(instance: dg.DagsterInstance) -> dict[str, dg.AssetCheckEvaluation]:
    """Partition → the last result of the gate there."""
    history = instance.event_log_storage.get_asset_check_execution_history(GATE, limit=1000)
    found: dict[str, dg.AssetCheckEvaluation] = {}
    for record in history:
        if record.status == AssetCheckExecutionRecordStatus.PLANNED:
            continue  # a run that had nothing to say of it
        assert record.event is not None
        data = record.event.dagster_event
        assert data is not None
        result = data.asset_check_evaluation_data
        found.setdefault(str(result.partition), result)
    return found


def test_every_asset_check_ran_and_passed(
    instance: dg.DagsterInstance, definitions: dg.Definitions
) -> None:
    graph = definitions.resolve_asset_graph()
    assert len(graph.asset_check_keys) == 8
    for key in graph.asset_check_keys - {GATE}:
        history = instance.event_log_storage.get_asset_check_execution_history(key, limit=100)
        results = [record.status.value for record in history]
        assert results
        assert set(results) == {"SUCCEEDED"}, key


def test_the_gate_fails_where_the_generator_falsified_ledgers(
    instance: dg.DagsterInstance,
) -> None:
    found = gates(instance)
    assert len(found) == 14 * 4
    assert {key for key, gate in found.items() if not gate.passed} == {
        f"2026-11-{day}|ornith-1.0-35b" for day in range(15, 29)
    }
    gate = found["2026-11-20|ornith-1.0-35b"]
    assert gate.severity == dg.AssetCheckSeverity.ERROR
    assert gate.description is not None
    assert gate.description.startswith("FAIL, fidelity 0.")
    assert "java_developer" in str(gate.metadata["findings"].value)


def test_few_dagster_runs_did_it(instance: dg.DagsterInstance) -> None:
    assert instance.get_runs_count() == 5
    assert {run.status for run in instance.get_runs()} == {dg.DagsterRunStatus.SUCCESS}


def test_materializing_again_through_dagster_changes_no_byte(
    instance: dg.DagsterInstance, definitions: dg.Definitions, place: Path
) -> None:
    store = place / "data" / "store"
    before = contents(store)
    ranges = {
        "ingest": ("2026-11-15|claude-sonnet-4-6", "2026-11-28|ornith-1.0-35b"),
        "evaluate": (
            "binding/binding_with_widget|claude-sonnet-4-6",
            "support/refund_requires_order_lookup|ornith-1.0-35b",
        ),
        "compare_ledgers": ("2026-11-15|claude-sonnet-4-6", "2026-11-28|ornith-1.0-35b"),
        "publish": None,
    }
    for name, corners in ranges.items():
        tags = {}
        if corners is not None:
            tags = {
                "dagster/asset_partition_range_start": corners[0],
                "dagster/asset_partition_range_end": corners[1],
            }
        job = definitions.resolve_job_def(name)
        assert job.execute_in_process(instance=instance, tags=tags).success
    assert contents(store) == before


def test_a_single_partition_can_be_materialized(
    instance: dg.DagsterInstance, definitions: dg.Definitions
) -> None:
    job = definitions.resolve_job_def("ingest")
    key = dg.MultiPartitionKey({"date": "2026-11-20", "model": "glm-5-40b"})
    assert job.execute_in_process(instance=instance, partition_key=key).success


def test_the_nightly_schedule_covers_yesterday_and_the_days_before(
    instance: dg.DagsterInstance, definitions: dg.Definitions
) -> None:
    schedule = definitions.resolve_schedule_def("nightly")
    context = dg.build_schedule_context(
        instance=instance, scheduled_execution_time=datetime(2026, 11, 25, 3, tzinfo=UTC)
    )
    data = schedule.evaluate_tick(context)
    assert data.run_requests is not None
    (request,) = data.run_requests
    assert request.tags["dagster/asset_partition_range_start"] == "2026-11-21|claude-sonnet-4-6"
    assert request.tags["dagster/asset_partition_range_end"] == "2026-11-24|ornith-1.0-35b"
    job = definitions.resolve_job_def(JOBS["trace_snapshots",])
    tags = {key: value for key, value in request.tags.items() if "partition_range" in key}
    assert job.execute_in_process(instance=instance, tags=tags).success


def test_the_sensor_has_nothing_to_do_when_nothing_is_stale(
    instance: dg.DagsterInstance, definitions: dg.Definitions
) -> None:
    sensor = definitions.resolve_sensor_def("follow_up")
    data = sensor.evaluate_tick(dg.build_sensor_context(instance=instance, definitions=definitions))
    assert not data.run_requests
    assert data.skip_message == "Everything is up to date."


def test_the_sensor_follows_an_edited_contract(
    instance: dg.DagsterInstance, definitions: dg.Definitions, place: Path
) -> None:
    sensor = definitions.resolve_sensor_def("follow_up")
    contract = place / "contracts" / "support" / "receipt_only.yaml"
    text = contract.read_text()
    requested: list[tuple[str | None, str | None]] = []
    contract.write_text(text.replace("description:", "description: Edited.", 1))
    assert contract.read_text() != text
    try:
        for _ in range(4):
            context = dg.build_sensor_context(instance=instance, definitions=definitions)
            data = sensor.evaluate_tick(context)
            for request in data.run_requests or ():
                start = request.tags.get("dagster/asset_partition_range_start")
                requested.append((request.job_name, start))
                tags = {k: v for k, v in request.tags.items() if "partition_range" in k}
                job = definitions.resolve_job_def(str(request.job_name))
                assert job.execute_in_process(instance=instance, tags=tags).success
    finally:
        contract.write_text(text)
    assert requested == [
        ("store_contracts", "support/receipt_only"),
        ("evaluate", "support/receipt_only|claude-sonnet-4-6"),
        ("publish", None),
    ]


def test_an_unreadable_file_fails_its_check_and_holds_back_nothing(tmp_path: Path) -> None:
    (tmp_path / "benchmark.yaml").write_text("sources: [{kind: files, path: traces}]\n")
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "a.yaml").write_text(
        'workflow: w\ncontract_version: "1"\ntools: {required: [x]}\n'
    )
    (tmp_path / "traces").mkdir()
    (tmp_path / "traces" / "bad.json").write_text("{")
    trace = {
        "trace_id": "1",
        "name": "w",
        "model": "m",
        "started_at": "2026-01-01T00:00:00Z",
        "tool_calls": [{"name": "x", "status": "ok"}],
    }
    (tmp_path / "traces" / "good.json").write_text(json.dumps(trace))
    assert bench("run", cwd=tmp_path).code == 10
    project = load_project(tmp_path / "benchmark.yaml", env={})
    with open_instance(project, own_store=True) as opened:
        key = dg.AssetCheckKey(dg.AssetKey("leaderboard"), "every_file_is_readable")
        (record,) = opened.event_log_storage.get_asset_check_execution_history(key, limit=5)
        assert record.status.value == "FAILED"
        assert record.event is not None
        evaluation = record.event.asset_check_evaluation
        assert evaluation is not None
        assert "bad.json" in str(evaluation.metadata["findings"].value)
        assert latest(opened, "leaderboard").metadata["runs"].value == 1


def test_gates_hold_up_nothing_and_show_on_their_partition_only(tmp_path: Path) -> None:
    """One falsified day, one right one, one without any ledger."""

    def reported(tokens: int) -> dict[str, object]:
        side = {"executor": "writer", "finish_reason": "stop"}
        return {
            "ledger": [{**side, "usage": {"total": tokens}}],
            "turns": [{**side, "usage": {"total": 1000}}],
        }

    (tmp_path / "benchmark.yaml").write_text("sources: [{kind: files, path: traces}]\n")
    (tmp_path / "contracts").mkdir()
    (tmp_path / "contracts" / "a.yaml").write_text(
        'workflow: w\ncontract_version: "1"\ntools: {required: [x]}\n'
    )
    (tmp_path / "traces").mkdir()
    records = {"01": reported(10), "02": reported(1000), "03": None}
    traces = [
        {
            "trace_id": day,
            "name": "w",
            "model": "m",
            "started_at": f"2026-01-{day}T00:00:00Z",
            "tool_calls": [{"name": "x", "status": "ok"}],
            "tokens": {"input": 1000},
            "workflow_record": record,
        }
        for day, record in records.items()
    ]
    (tmp_path / "traces" / "t.json").write_text(json.dumps(traces))
    ran = bench("run", cwd=tmp_path)
    assert ran.code == 9, ran.err
    assert "withheld: fidelity 0.75" in ran.out
    project = load_project(tmp_path / "benchmark.yaml", env={})
    with open_instance(project, own_store=True) as opened:
        found = gates(opened)
        assert {key: gate.passed for key, gate in found.items()} == {
            "2026-01-01|m": False,
            "2026-01-02|m": True,
        }
        done = opened.get_materialized_partitions(dg.AssetKey("workflow_fidelity"))
        assert done == {"2026-01-01|m", "2026-01-02|m"}
        # A user may ask for the third in the UI: there is nothing to compare, and no result.
        definitions = build_definitions(Bench(Workspace(project)))
        key = dg.MultiPartitionKey({"date": "2026-01-03", "model": "m"})
        job = definitions.resolve_job_def("compare_ledgers")
        assert job.execute_in_process(instance=opened, partition_key=key).success
        status = facts(latest(opened, "workflow_fidelity", "2026-01-03|m"))["status"]
        assert str(status).startswith("not applicable")
        assert len(gates(opened)) == 2
    again = bench("run", cwd=tmp_path)
    assert (again.code, "Nothing was stale" in again.err) == (9, True)


def test_a_day_that_cannot_be_compared_is_asked_for_once_and_holds_up_no_publication(
    tmp_path: Path,
) -> None:
    run = {"model": "m", "workflow": "trip", "tool_calls": [{"name": "book", "status": "ok"}]}
    side = [{"executor": "a", "usage": {"total": 100}}]
    for day in ("27", "28"):
        trace = {
            **run,
            "trace_id": day,
            "started_at": f"2026-11-{day}T10:00:00Z",
            "workflow_record": {"ledger": side, "turns": side},
        }
        (tmp_path / f"{day}.jsonl").write_text(json.dumps(trace) + "\n")
    (tmp_path / "trip.yaml").write_text(
        'id: trip\nworkflow: trip\ncontract_version: "1"\ntools: {required: [book]}\n'
    )
    (tmp_path / "benchmark.yaml").write_text(
        "sources: [{name: s, path: '*.jsonl'}]\ncontracts: [trip.yaml]\n"
    )
    assert bench("run", cwd=tmp_path).code == 0
    project = load_project(tmp_path / "benchmark.yaml", env={})
    store = Path(project.store)
    (damaged,) = store.glob("snapshots/*27/*.parquet")
    data = damaged.read_bytes()
    # Its pages, not its footer: what is to be compared is known, and cannot be.
    damaged.write_bytes(data[:40] + bytes(byte ^ 0x5A for byte in data[40:900]) + data[900:])
    (month,) = store.glob("fidelity/*/*.parquet")
    month.unlink()
    definitions = build_definitions(Bench(Workspace(project)))
    sensor = definitions.resolve_sensor_def("follow_up")
    requested: list[str] = []
    cursor = None
    with open_instance(project, own_store=True) as opened:
        for _ in range(6):
            context = dg.build_sensor_context(
                instance=opened, definitions=definitions, cursor=cursor
            )
            data_of_tick = sensor.evaluate_tick(context)
            cursor = data_of_tick.cursor or cursor
            for request in data_of_tick.run_requests or ():
                requested.append(str(request.job_name))
                tags = {k: v for k, v in request.tags.items() if "partition_range" in k}
                job = definitions.resolve_job_def(str(request.job_name))
                assert job.execute_in_process(instance=opened, tags=tags).success
    # Both days, then once more the one that is still stale.
    assert requested == ["compare_ledgers", "compare_ledgers", "publish"]
    current = read_current(Workspace(project).store)
    assert current is not None
    standings = read_standings(Workspace(project).store, current.edition)
    assert standings is not None
    (judged,) = standings.fidelity
    assert (judged.outcome, judged.passed, judged.waiting) == ("WARN", 1, 1)
