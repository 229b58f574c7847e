"""Running the graph in this process, on the instance that `dagster dev` shows.

Belongs here: registering partitions and executing planned runs. Does not belong here: planning
them (`plan`), printing (`cli`).

In process a run starts in a fraction of the time a subprocess takes, and it is the same graph
on the same instance: everything shows up in the UI.
"""

import logging
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import dagster as dg

from benchmark_assets.defs.automation import JOBS
from benchmark_assets.defs.build import build_definitions, partition_days
from benchmark_assets.defs.instance import open_instance
from benchmark_assets.defs.plan import Keys, PlannedRun
from benchmark_assets.defs.processes import this_process, unfinished
from benchmark_assets.defs.resources import Bench
from benchmark_assets.model.identity import partition_key

_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class RunFailedError(Exception):
    """A run of the graph failed; the message is the first failure's."""


class Graph:
    """The project's graph on an open instance."""

    def __init__(self, bench: Bench, instance: dg.DagsterInstance, dates: list[str]) -> None:
        self.instance = instance
        self.days = partition_days(bench, dates)
        self._definitions = build_definitions(bench, dates)
        self.runs = 0
        self.partitions = 0

    def register(self, models: Iterable[str], contracts: Iterable[str]) -> Keys:
        """Make sure that models and contracts are partitions; return all there are, in order."""
        before = Keys(
            self.instance.get_dynamic_partitions("model"),
            self.instance.get_dynamic_partitions("contract"),
        )
        after = before.with_new(models, contracts)
        for name, old, new in (
            ("model", before.models, after.models),
            ("contract", before.contracts, after.contracts),
        ):
            added = list(new[len(old) :])
            if added:
                self.instance.add_dynamic_partitions(name, added)
        return after

    def forget(self, models: Iterable[str], contracts: Iterable[str]) -> None:
        """Drop partitions that stand for nothing any more; their history stays in Dagster."""
        for name, gone in (("model", models), ("contract", contracts)):
            for key in map(partition_key, gone):
                if self.instance.has_dynamic_partition(name, key):
                    self.instance.delete_dynamic_partition(name, key)

    def execute(self, run: PlannedRun) -> None:
        """Execute one run.

        Raises:
            RunFailedError: If it did not succeed.
        """
        job = self._definitions.resolve_job_def(JOBS[run.assets])
        result = job.execute_in_process(
            instance=self.instance,
            tags={**run.tags(), **this_process()},
            run_config=_QUIET,
            raise_on_error=False,
        )
        self.runs += 1
        self.partitions += run.size
        if not result.success:
            raise RunFailedError(_first_failure(result))


def _first_failure(result: dg.ExecuteInProcessResult) -> str:
    for event in result.all_events:
        if event.event_type == dg.DagsterEventType.STEP_FAILURE:
            error = event.step_failure_data.error
            while error is not None and error.cause is not None:
                error = error.cause
            return f"{event.step_key}: {error.message.strip() if error else event.message}"
    return "the run failed before its first step"


@contextmanager
def open_graph(bench: Bench, dates: list[str], *, own_store: bool) -> Iterator[Graph]:
    """The project's graph, on the project's instance or, for another store, one of its own."""
    # Dagster warns of its preview features at each use; they are pinned and tested here.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.getLogger("dagster").setLevel(logging.CRITICAL)
        instance = open_instance(bench.workspace.project, own_store=own_store)
        with instance:
            unfinished(instance)  # buries runs of killed processes
            yield Graph(bench, instance, dates)
