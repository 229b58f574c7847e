"""Tables and lists of an HTML page: cells, headers, captions, sort keys.

Belongs here: how a figure, a name or a count becomes a cell that sorts, prints and is read
aloud properly. Does not belong here: which tables a page has (`html`), or escaping (`markup`).

A cell's `data-v` is what it sorts by; a cell without one is unknown and sorts last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmark_assets.model.standings import ModelStanding, PassRate, Standings
from benchmark_assets.report.markup import Markup, element, join
from benchmark_assets.report.text import format_count, format_ranks, named
from benchmark_assets.report.view import Note, Shown, scored_fraction

LISTED = 12
"""Longest list that is shown openly, and most rows of a table that does not scroll."""

HIGH_FIRST = "descending"
LOW_FIRST = "ascending"


def models_table(
    standings: Standings,
    caption: str,
    heads: Sequence[Markup],
    cells: Callable[[ModelStanding], list[Markup]],
    *,
    matrix: bool = False,
) -> Markup:
    """Build a table with a row for each model, in the order of the standings."""
    ranks = format_ranks([standing.rank for standing in standings.models])
    rows = []
    for rank, standing in zip(ranks, standings.models, strict=True):
        value = None if standing.rank is None else str(standing.rank)
        rows.append(
            [
                element("td", rank, class_="rank", data_v=value),
                row_head(standing.model),
                *cells(standing),
            ]
        )
    first = [
        column_head("Rank", LOW_FIRST, class_="rank", current=True),
        column_head("Model", LOW_FIRST, class_="name"),
    ]
    return data_table(caption, [*first, *heads], rows, matrix=matrix)


def data_table(
    caption: str,
    heads: Sequence[Markup],
    rows: Iterable[Sequence[Markup]],
    *,
    matrix: bool = False,
) -> Markup:
    """Build a sortable table in a card that scrolls on its own."""
    body = [element("tr", row) for row in rows]
    table = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", heads)),
        element("tbody", (join(row, Markup("\n")) for row in body)),
        class_="sortable matrix" if matrix else "sortable",
    )
    # A region that scrolls must be reachable by keyboard.
    return element(
        "div",
        table,
        class_="card scroll tall" if len(body) > LISTED else "card scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def column_head(
    name: str,
    first: str,
    *,
    class_: str | None = None,
    under: str | None = None,
    current: bool = False,
) -> Markup:
    """Build a column's header; `first` is the order of its first sorting."""
    return element(
        "th",
        named(name),
        element("span", under, class_="sub") if under else "",
        scope="col",
        class_=class_,
        data_first=first,
        aria_sort=LOW_FIRST if current else None,
    )


def row_head(name: str, *, under: str | None = None) -> Markup:
    """Build the header of a row, named foreign text, with another name under it."""
    return element(
        "th",
        named(name),
        element("span", under, class_="sub") if under and under != name else "",
        scope="row",
        class_="name",
        data_v=name.casefold(),
    )


def figure_cell(shown: Shown, *, under: str | None = None) -> Markup:
    """Build a figure's cell: its marks are spelt out beneath it, its absence in its place."""
    if shown.value is None:
        return element("td", element("span", join_notes(shown.notes)), class_="none")
    subs = [text for text in (under, join_notes(shown.notes)) if text]
    return element(
        "td",
        element("span", shown.text, class_="figure"),
        (element("span", text, class_="sub") for text in subs),
        data_v=repr(shown.value),
    )


def headline_cell(shown: Shown) -> Markup:
    """Build the cell of the figure that ranks: the number, with a bar beneath it."""
    if shown.value is None:
        return figure_cell(shown)
    bar = element("i", style=f"--v:{shown.value:.4f}")
    return element(
        "td",
        element("span", shown.text, class_="figure"),
        element("span", bar, class_="bar", aria_hidden="true"),
        class_="lead",
        data_v=repr(shown.value),
    )


def tinted_cell(shown: Shown, under: str) -> Markup:
    """Build a cell of a matrix: the tint only repeats what the number says."""
    if shown.value is None:
        return figure_cell(shown)
    return element(
        "td",
        element("span", shown.text, class_="figure"),
        element("span", under, class_="sub"),
        class_="heat",
        style=f"--v:{shown.value:.4f}",
        data_v=repr(shown.value),
    )


def count_cell(number: int, *, alarming: bool = False) -> Markup:
    """Build the cell of a count; an alarming one stands out unless it is zero."""
    return element(
        "td",
        format_count(number),
        class_="bad" if alarming and number else None,
        data_v=str(number),
    )


def text_cell(text: str, *, class_: str | None = "text", key: str | None = None) -> Markup:
    """Build a cell of text; `key` is what it sorts by if that is not the text itself."""
    return element("td", text, class_=class_, data_v=(text if key is None else key).casefold())


def bullet_list(items: Sequence[Markup]) -> Markup:
    """Build a list, folded if it is long."""
    listed = element("ul", (element("li", item) for item in items), class_="plain")
    return folded(f"Show all {format_count(len(items))}", listed, len(items))


def folded(summary: str, content: Markup, size: int) -> Markup:
    """Fold a long list away; a short one stays open to view."""
    if size <= LISTED:
        return content
    return element("details", element("summary", summary), content)


def fraction(rate: PassRate) -> str:
    """Give numerator and denominator of a rate, nothing if it has none."""
    return scored_fraction(rate) if rate.counts.scored else ""


def join_notes(notes: Iterable[Note]) -> str:
    """Say in few words what qualifies a figure or why it is absent."""
    return "; ".join(note.short for note in notes)
