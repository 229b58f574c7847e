"""Standings as a GitHub-flavoured Markdown table, for metadata panels and pull requests.

Belongs here: the Markdown layout and its escaping. Does not belong here: what a figure says
(`view`).
"""

from __future__ import annotations

import re

from benchmark_assets.model.standings import ModelStanding, Standings
from benchmark_assets.report.text import (
    format_dates,
    format_hash,
    format_money,
    format_ranks,
    format_tokens,
    named,
    plural,
    printable,
)
from benchmark_assets.report.view import (
    Shown,
    footnotes,
    headline,
    interval_name,
    judged,
    show_duration,
    show_interval,
    show_quantity,
    show_rate,
    show_shared,
)

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
# Bare addresses would become links without any bracket.
_SPECIAL = re.compile(r"[\\`*_\[\]|~&<>]|:(?=//)|(?<=www)\.", re.IGNORECASE)


def standings_markdown(standings: Standings, *, limit: int | None = None) -> str:
    """Render the models of standings as a Markdown table with its footnotes.

    Args:
        standings: What to render.
        limit: Most models to list, in their order; the rest is counted. None lists all.

    Returns:
        Markdown that ends in a newline. Names are escaped: they can neither break the table
        nor bring in HTML, emphasis or links.
    """
    parts = [
        "".join(
            f"**{escape(piece.text)}**" if piece.strong else escape(piece.text)
            for piece in headline(standings)
        )
    ]
    models = standings.models if limit is None else standings.models[: max(limit, 0)]
    if models:
        parts.append(_table(standings, models))
    if len(models) < len(standings.models):
        parts.append(f"… and {plural(len(standings.models) - len(models), 'model')} more.")
    notes = footnotes(
        (
            (column, standing.model, figure)
            for standing in models
            for column, figure in _figures(standings, standing)
        ),
        [standing.model for standing in models],
    )
    parts.extend(f"{escape(note)}" for note in notes)
    parts.append(escape(f"{judged(standings)} {_provenance(standings)}"))
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Escape text for one cell or line of GitHub-flavoured Markdown."""

    def replace(match: re.Match[str]) -> str:
        char = match.group()
        if char in ":.":
            return f"&#{ord(char)};"
        return _ENTITIES.get(char, f"\\{char}")

    return _SPECIAL.sub(replace, printable(text))


def _figures(standings: Standings, standing: ModelStanding) -> list[tuple[str, Shown]]:
    figures = standing.figures
    return [
        ("pass rate", show_shared(standing)),
        ("pooled", show_rate(figures.pass_rate, "micro")),
        (interval_name(standings), show_interval(figures.pass_rate)),
        (
            "cost per resolved",
            show_quantity(figures.cost_usd, "per_resolved", format_money),
        ),
        ("tokens per run", show_quantity(figures.tokens, "per_run", format_tokens)),
        ("median duration", show_duration(figures.duration, "median_ms")),
    ]


def _table(standings: Standings, models: tuple[ModelStanding, ...]) -> str:
    columns = [name for name, _ in _figures(standings, models[0])]
    header = ["Rank", "Model", *(name[0].upper() + name[1:] for name in columns)]
    # Ties are marked over all models, also those that the limit cuts off.
    ranks = format_ranks([standing.rank for standing in standings.models])
    rows = [header, ["---:", "---", *("---:" for _ in columns)]]
    for rank, standing in zip(ranks, models, strict=False):
        cells = [
            rank,
            named(standing.model),
            *(item.text for _, item in _figures(standings, standing)),
        ]
        rows.append([escape(cell) for cell in cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _provenance(standings: Standings) -> str:
    dates = (
        f"Runs of {format_dates(standings.first_date, standings.last_date)}. "
        if standings.first_date or standings.last_date
        else ""
    )
    return f"{dates}Edition {format_hash(standings.edition)}."
