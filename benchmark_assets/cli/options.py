"""Options that several commands take.

Belongs here: their names, help and parsing. Does not belong here: what is done with them.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

import click

from benchmark_assets.adapters.formats import FORMATS

F = TypeVar("F", bound=Callable[..., Any])


class Day(click.ParamType[date]):
    """A day, `YYYY-MM-DD`."""

    name = "date"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> date:
        """Parse a day."""
        if isinstance(value, date):
            return value
        try:
            return date.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not a date such as 2026-01-31", param, ctx)


config_option = click.option(
    "--config",
    type=click.Path(path_type=Path),
    help="The project's benchmark.yaml; default: BENCH_CONFIG, else the nearest one.",
)
store_option = click.option(
    "--store", help="Folder or URL of the store; default: BENCH_STORE, else benchmark.yaml's."
)
format_option = click.option(
    "--format",
    "format_name",
    type=click.Choice(["auto", *(trace_format.name for trace_format in FORMATS)]),
    default="auto",
    show_default=True,
    help="Trace format; auto lets the content decide.",
)
default_date_option = click.option(
    "--default-date", type=Day(), help="Day of traces that carry no time."
)
fixtures_option = click.option(
    "--fixtures",
    type=click.Path(path_type=Path),
    default=Path("fixtures"),
    show_default=True,
    help="Folder of fixtures.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
