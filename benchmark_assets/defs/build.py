"""Putting the graph together for one project.

Belongs here: collecting assets, jobs, schedules and sensors into definitions. Does not belong
here: any of those.
"""

from datetime import date

import dagster as dg

from benchmark_assets.adapters.store import SNAPSHOTS, Store
from benchmark_assets.defs import partitions
from benchmark_assets.defs.assets import build_assets
from benchmark_assets.defs.automation import build_jobs, build_schedule, build_sensors
from benchmark_assets.defs.resources import Bench


def first_partition(bench: Bench, dates: list[str]) -> date:
    """The first day that can be a partition: as configured, or the earliest there is data for.

    Without either it is the first of the year: few enough days for Dagster to be quick with,
    and the same all year.
    """
    configured = bench.workspace.project.config.first_date
    days = [date.fromisoformat(day) for day in dates]
    if configured is not None:
        days.append(configured)
    return min(days, default=date.fromisoformat(partitions.today()).replace(month=1, day=1))


def partition_days(bench: Bench, dates: list[str]) -> partitions.Span:
    """The days that are partitions, by the settings and the days that there is data of."""
    return partitions.span(first_partition(bench, dates), dates)


def stored_dates(store: Store) -> list[str]:
    """Days that the store has snapshots of, by the names of their folders."""
    prefix = f"{SNAPSHOTS}/date="
    return sorted({path.removeprefix(prefix)[:10] for path in store.list(SNAPSHOTS, ".parquet")})


def build_definitions(bench: Bench, dates: list[str] | None = None) -> dg.Definitions:
    """The graph of one project.

    Args:
        bench: The project, opened.
        dates: Days with data, which may be before the configured first one; default: those in
            the store.
    """
    known = stored_dates(bench.workspace.store) if dates is None else dates
    days = partition_days(bench, known)
    jobs = build_jobs()
    return dg.Definitions(
        assets=build_assets(days),
        jobs=jobs,
        schedules=[build_schedule(bench, days.first)],
        sensors=build_sensors(bench, jobs, days),
        resources={"bench": bench},
    )
