"""What runs by itself: the nightly schedule, and the sensor that lets everything else follow.

Belongs here: jobs, the schedule, the sensor. Does not belong here: deciding what is stale
(`pipeline`) or packing it into runs (`plan`).

The schedule ingests yesterday for every model, and the days before it that late data may
reach. What must follow is not guessed from events: the sensor plans from the store, as
`bench run` does, so that a backfill started in the UI, a late file or an edited contract lead
to exactly the cells they made stale, in a handful of runs.
"""

from collections.abc import Sequence
from datetime import UTC, date, timedelta

import dagster as dg
from dagster._core.definitions.unresolved_asset_job_definition import (
    UnresolvedAssetJobDefinition,
)

from benchmark_assets.defs import partitions
from benchmark_assets.defs.plan import (
    Keys,
    PlannedRun,
    cell_runs,
    contract_runs,
    publication_runs,
)
from benchmark_assets.defs.resources import Bench
from benchmark_assets.model.identity import content_hash
from benchmark_assets.pipeline.cells import stale_contracts
from benchmark_assets.pipeline.plan import Selection, cells_to_evaluate

JOBS: dict[tuple[str, ...], str] = {
    ("contracts",): "store_contracts",
    ("trace_snapshots",): "ingest",
    ("contract_evaluations",): "evaluate",
    ("leaderboard", "benchmark_report"): "publish",
    ("benchmark_report",): "report",
}
"""Which job runs which assets."""

_UNFINISHED = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]


def build_jobs() -> list[UnresolvedAssetJobDefinition]:
    """One job for each kind of run that a plan may hold."""
    return [dg.define_asset_job(name, selection=list(assets)) for assets, name in JOBS.items()]


def build_schedule(bench: Bench, first_date: date) -> dg.ScheduleDefinition:
    """The nightly schedule of a project whose first partition is `first_date`."""
    settings = bench.workspace.project.config.schedule

    @dg.schedule(
        name="nightly",
        job_name=JOBS["trace_snapshots",],
        cron_schedule=settings.cron,
        execution_timezone=settings.timezone,
        description=(
            f"Ingests yesterday (UTC) for every model, and the {settings.lookback_days} days "
            "before it for late data; the follow_up sensor does the rest."
        ),
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        models = context.instance.get_dynamic_partitions("model")
        if not models:
            return dg.SkipReason("No model is known yet; `bench run` registers those it finds.")
        # Yesterday is a UTC day, as partitions are, whatever zone the schedule fires in.
        last = context.scheduled_execution_time.astimezone(UTC).date() - timedelta(days=1)
        first = max(last - timedelta(days=settings.lookback_days), first_date)
        covered = partitions.KeyRange(f"{first}|{models[0]}", f"{last}|{models[-1]}", 0)
        return dg.RunRequest(run_key=last.isoformat(), tags=covered.tags())

    return nightly


def build_sensor(bench: Bench, jobs: Sequence[UnresolvedAssetJobDefinition]) -> dg.SensorDefinition:
    """The sensor that requests what a changed store or contract makes stale."""

    @dg.sensor(
        name="follow_up",
        jobs=list(jobs),
        minimum_interval_seconds=30,
        description=(
            "Stores edited contracts, then evaluates exactly the stale cells, then publishes; "
            "one kind at a time, while nothing else runs."
        ),
    )
    def follow_up(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        running = context.instance.get_runs_count(dg.RunsFilter(statuses=_UNFINISHED))
        if running:
            return dg.SkipReason(f"{running} runs are not finished yet.")
        workspace = bench.workspace
        changed, _ = stale_contracts(
            workspace, [file.contract for file in workspace.load_contracts().contracts]
        )
        cells = {} if changed else cells_to_evaluate(workspace, Selection())
        keys = Keys(
            context.instance.get_dynamic_partitions("model"),
            context.instance.get_dynamic_partitions("contract"),
        )
        known = keys.with_new(
            [cell.model for cell in cells],
            [*(contract.id for contract in changed), *(cell.contract for cell in cells)],
        )
        runs = (
            contract_runs([contract.id for contract in changed], known)
            or cell_runs(cells, known)
            or publication_runs(workspace)
        )
        if not runs:
            return dg.SkipReason("Everything is up to date.")
        state = repr((sorted(c.content_hash for c in changed), sorted(cells.items())))
        return dg.SensorResult(
            run_requests=[_request(run, state) for run in runs],
            dynamic_partitions_requests=[
                request
                for request in (
                    _additions(partitions.models, keys.models, known.models),
                    _additions(partitions.contracts, keys.contracts, known.contracts),
                )
                if request is not None
            ],
        )

    return follow_up


def _additions(
    definition: dg.DynamicPartitionsDefinition, before: Sequence[str], after: Sequence[str]
) -> dg.AddDynamicPartitionsRequest | None:
    new = list(after[len(before) :])
    return definition.build_add_request(new) if new else None


def _request(run: PlannedRun, state: str) -> dg.RunRequest:
    """The same stale state is requested once: a run that failed is not started again and again."""
    key = content_hash(*run.assets, repr(sorted(run.tags().items())), state)[:32]
    return dg.RunRequest(run_key=key, job_name=JOBS[run.assets], tags=run.tags())
