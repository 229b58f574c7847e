"""What runs by itself: the nightly schedule, and the sensors that let everything else follow.

Belongs here: jobs, the schedule, the sensors. Does not belong here: deciding what is stale
(`pipeline`) or packing it into runs (`plan`).

The schedule ingests yesterday for every model, and the days before it that late data may
reach. What must follow is not guessed from events: the sensor plans from the store, as
`bench run` does, so that a backfill started in the UI, a late file or an edited contract lead
to exactly the cells they made stale, in a handful of runs.
"""

import time
from collections.abc import Sequence
from datetime import UTC, date, timedelta

import dagster as dg
import msgspec
from dagster._core.definitions.unresolved_asset_job_definition import (
    UnresolvedAssetJobDefinition,
)
from dagster._utils.schedules import is_valid_cron_schedule

from benchmark_assets.defs import partitions
from benchmark_assets.defs.plan import (
    Keys,
    PlannedRun,
    cell_runs,
    contract_runs,
    fidelity_runs,
    publication_runs,
    snapshot_runs,
)
from benchmark_assets.defs.processes import unfinished
from benchmark_assets.defs.resources import Bench
from benchmark_assets.model.identity import content_hash, partition_key
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.pipeline.cells import retire_contracts, stale_contracts
from benchmark_assets.pipeline.fidelity import drop_gone
from benchmark_assets.pipeline.freshness import wanted_inputs
from benchmark_assets.pipeline.ingest import (
    remove_partition,
    stale_partitions,
    take_inventory,
)
from benchmark_assets.pipeline.plan import (
    Selection,
    all_models,
    cells_to_evaluate,
    ledgers_to_compare,
)

JOBS: dict[tuple[str, ...], str] = {
    ("contracts",): "store_contracts",
    ("trace_snapshots",): "ingest",
    ("contract_evaluations",): "evaluate",
    ("workflow_fidelity",): "compare_ledgers",
    ("leaderboard", "benchmark_report"): "publish",
    ("benchmark_report",): "report",
}
"""Which job runs which assets."""

RETRY_SECONDS = 600
"""How long a sensor waits before it asks again for runs that failed; doubled each time."""


def build_jobs() -> list[UnresolvedAssetJobDefinition]:
    """One job for each kind of run that a plan may hold."""
    return [dg.define_asset_job(name, selection=list(assets)) for assets, name in JOBS.items()]


def build_schedule(bench: Bench, first_date: date) -> dg.ScheduleDefinition:
    """The nightly schedule of a project whose first partition is `first_date`."""
    settings = bench.workspace.project.config.schedule
    if not is_valid_cron_schedule(settings.cron):
        problem = Problem(
            f"'{settings.cron}' is no cron schedule",
            file=None
            if bench.workspace.project.file is None
            else str(bench.workspace.project.file),
            key="schedule.cron",
            cure='write five fields, such as "0 3 * * *"',
        )
        raise InputError(problem)

    @dg.schedule(
        name="nightly",
        job_name=JOBS["trace_snapshots",],
        cron_schedule=settings.cron,
        execution_timezone=settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=(
            f"Ingests yesterday (UTC) for every model, and the {settings.lookback_days} days "
            "before it for late data; the follow_up sensor does the rest."
        ),
    )
    def nightly(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        # A model that appeared since yesterday is ingested tonight and not tomorrow.
        found = all_models(take_inventory(bench.workspace))
        before = _keys(context.instance)
        models = before.with_new(found, ()).models
        if len(models) > len(before.models):
            new = list(models[len(before.models) :])
            context.instance.add_dynamic_partitions("model", new)
        if not models:
            return dg.SkipReason("The sources hold no traces of any model.")
        # Yesterday is a UTC day, as partitions are, whatever zone the schedule fires in.
        last = context.scheduled_execution_time.astimezone(UTC).date() - timedelta(days=1)
        first = max(last - timedelta(days=settings.lookback_days), first_date)
        covered = partitions.KeyRange(f"{first}|{models[0]}", f"{last}|{models[-1]}", 0)
        return dg.RunRequest(run_key=last.isoformat(), tags=covered.tags())

    return nightly


def build_sensors(
    bench: Bench, jobs: Sequence[UnresolvedAssetJobDefinition], days: partitions.Span
) -> list[dg.SensorDefinition]:
    """The sensors of a project whose partitions are `days`."""
    return [_watch(bench, jobs, days), _follow_up(bench, jobs, days)]


def _watch(
    bench: Bench, jobs: Sequence[UnresolvedAssetJobDefinition], days: partitions.Span
) -> dg.SensorDefinition:
    @dg.sensor(
        name="watch",
        jobs=list(jobs),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Looks at the sources: adds models that are new as partitions, and requests just the "
            "partitions that new or changed trace files belong to."
        ),
    )
    def watch(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        workspace = bench.workspace
        inventory = take_inventory(workspace)
        for problem in inventory.problems:
            context.log.warning(str(problem))
        build, remove = stale_partitions(workspace, inventory)
        for key in remove:
            remove_partition(workspace, key)
        keys = _keys(context.instance)
        known = keys.with_new(all_models(inventory), ())
        last = max(days.last, _today())
        runs, outside = snapshot_runs(build, known, partitions.Span(days.first, last))
        if outside:
            context.log.warning(
                f"{len(outside)} partitions lie outside the graph's days, {days.first} to {last}; "
                "reload the code location to include them."
            )
        reach = sorted(set(build) - set(outside))
        if not runs and known.models == keys.models:
            return dg.SkipReason("No new or changed trace files.")
        wanted = inventory.expected()
        state = repr([(key, sorted(wanted[key].items())) for key in reach])
        return _result(context, [] if unfinished(context.instance) else runs, state, keys, known)

    return watch


def _follow_up(
    bench: Bench, jobs: Sequence[UnresolvedAssetJobDefinition], days: partitions.Span
) -> dg.SensorDefinition:
    @dg.sensor(
        name="follow_up",
        jobs=list(jobs),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            "Stores edited contracts and archives those that are gone, then evaluates exactly the "
            "stale cells and compares the ledgers of new traces, then publishes: one after the "
            "other, while nothing else runs."
        ),
    )
    def follow_up(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        running = unfinished(context.instance)
        if running:
            return dg.SkipReason(f"{running} runs are not finished yet.")
        workspace = bench.workspace
        loaded = workspace.load_contracts()
        changed, gone = stale_contracts(workspace, [file.contract for file in loaded.contracts])
        if gone and not loaded.problems:
            retire_contracts(workspace, gone)
            for contract_id in gone:
                context.instance.delete_dynamic_partition("contract", partition_key(contract_id))
        cells = {} if changed else cells_to_evaluate(workspace, Selection())
        drop_gone(workspace)
        ledgers = ledgers_to_compare(workspace, Selection())
        keys = _keys(context.instance)
        known = keys.with_new(
            [*(cell.model for cell in cells), *(key.model for key in ledgers)],
            [file.contract.id for file in loaded.contracts],
        )
        covered = partitions.Span(days.first, max(days.last, _today()))
        runs = contract_runs([contract.id for contract in changed], known) or [
            *cell_runs(cells, known),
            *fidelity_runs(ledgers, known, covered),
        ]
        state = repr((sorted(c.content_hash for c in changed), sorted(cells.items()), ledgers))
        state += wanted_inputs(workspace)
        if runs and not _asked(context, runs, state):
            return _result(context, runs, state, keys, known)
        # What stays stale for being damaged is published as that, and holds up nothing else.
        publication = publication_runs(workspace)
        if publication:
            # Asking for it must not make the runs before it look new: those wait their turn.
            return _result(context, publication, state, keys, known, behind=runs)
        if not runs:
            return dg.SkipReason("Everything is up to date.")
        return _result(context, runs, state, keys, known)

    return follow_up


def _today() -> date:
    return date.fromisoformat(partitions.today())


def _keys(instance: dg.DagsterInstance) -> Keys:
    return Keys(
        instance.get_dynamic_partitions("model"), instance.get_dynamic_partitions("contract")
    )


class _Requested(msgspec.Struct, frozen=True):
    """A sensor's cursor: the stale state it last asked runs for, when, and how often.

    `behind` is the same of runs that it had asked for before, and that did not mend it.
    """

    state: str
    at: float
    tries: int
    behind: "_Requested | None" = None

    @property
    def wait(self) -> int:
        """Seconds before the same is asked for again."""
        return int(RETRY_SECONDS * 2 ** (self.tries - 1))


def _digest(runs: Sequence[PlannedRun], state: str) -> str:
    return content_hash(state, repr([(run.assets, run.tags()) for run in runs]))


def _before(
    context: dg.SensorEvaluationContext, runs: Sequence[PlannedRun], state: str
) -> _Requested | None:
    """What the cursor says of these runs for this state."""
    last = msgspec.json.decode(context.cursor, type=_Requested) if context.cursor else None
    digest = _digest(runs, state)
    found = (last, None if last is None else last.behind)
    return next((item for item in found if item is not None and item.state == digest), None)


def _asked(context: dg.SensorEvaluationContext, runs: Sequence[PlannedRun], state: str) -> bool:
    """Whether these runs were asked for, to no avail, and it is too early to try again."""
    last = _before(context, runs, state)
    return last is not None and time.time() < last.at + last.wait


def _result(
    context: dg.SensorEvaluationContext,
    runs: Sequence[PlannedRun],
    state: str,
    before: Keys,
    after: Keys,
    behind: Sequence[PlannedRun] = (),
) -> dg.SensorResult | dg.SkipReason:
    """Request runs, but not again and again for a state that they did not mend.

    A run key would remember a state for good, and a contract that is edited back and forth comes
    back to the same state. The cursor remembers the last one only.
    """
    requests = (
        _additions(partitions.models, before.models, after.models),
        _additions(partitions.contracts, before.contracts, after.contracts),
    )
    additions = [request for request in requests if request is not None]
    if not runs:
        return dg.SensorResult(dynamic_partitions_requests=additions)
    now, tries = time.time(), 1
    last = _before(context, runs, state)
    if last is not None:
        if now < last.at + last.wait:
            return dg.SkipReason(
                f"Requested {last.tries} times already and still stale: look at the runs that "
                f"failed. It is tried again after {last.wait // 60} minutes."
            )
        tries = last.tries + 1
    kept = _before(context, behind, state) if behind else None
    requested = _Requested(_digest(runs, state), now, tries, kept)
    return dg.SensorResult(
        run_requests=[dg.RunRequest(job_name=JOBS[run.assets], tags=run.tags()) for run in runs],
        dynamic_partitions_requests=additions,
        cursor=msgspec.json.encode(requested).decode(),
    )


def _additions(
    definition: dg.DynamicPartitionsDefinition, before: Sequence[str], after: Sequence[str]
) -> dg.AddDynamicPartitionsRequest | None:
    new = list(after[len(before) :])
    return definition.build_add_request(new) if new else None
