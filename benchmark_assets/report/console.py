"""Standings for a terminal: compact tables that fit 80 columns.

Belongs here: which tables there are, their columns and how they break. Does not belong here:
what a figure says (`view`), or deciding whether there is colour (the console that is passed
knows whether it is a terminal).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmark_assets.model.standings import Standings
from benchmark_assets.report.lines import print_line, print_prose
from benchmark_assets.report.text import (
    format_count,
    format_dates,
    format_hash,
    format_money,
    format_ranks,
    format_tokens,
    join_words,
    named,
    plural,
    printable,
    shorten,
)
from benchmark_assets.report.view import (
    DOUBTED,
    PARTIAL,
    HoleSummary,
    Shown,
    contract_names,
    divergence_line,
    footnotes,
    group_names,
    headline,
    interval_method,
    interval_name,
    judged,
    scored_fraction,
    show_cell,
    show_duration,
    show_fidelity,
    show_interval,
    show_pass_hat_k,
    show_quantity,
    show_rate,
    show_shared,
    shown_ks,
    summarize_holes,
)

MATRIX_CONTRACTS = 12
"""Most contracts for which the model x contract matrix is printed unasked."""

LISTED = 8
"""Most holes, withheld cells or notes that are listed one by one."""

PASS_HAT_KS = 3
"""Most values of k in pass^k for which there is room beside the counts."""

_GAP = 2
_MODEL_COLUMNS = 20
_NAME_COLUMNS = (14, 30)
_CELL_COLUMNS = (7, 14)
_HEADER_LINES = 3


class _Column(NamedTuple):
    """A column of figures: `head` may hold line breaks, `name` is for footnotes."""

    head: str
    name: str
    figures: Sequence[Shown]


def print_standings(standings: Standings, console: Console, *, matrix: bool | None = None) -> None:
    """Print a leaderboard.

    Args:
        standings: What to print.
        console: Where to; its width is kept to, and it decides about colour.
        matrix: Whether to print the model x contract matrix; None does for up to
            `MATRIX_CONTRACTS` contracts.
    """
    print_prose(
        console,
        Text.assemble(
            *((part.text, "bold" if part.strong else "") for part in headline(standings))
        ),
    )
    if standings.models:
        print_prose(console, _scope(standings), style="dim")
        _print_reliability(standings, console)
        _print_outcomes(standings, console)
        _print_usage(standings, console)
        _print_fidelity(standings, console)
        _print_groups(standings, console)
        if matrix or (matrix is None and len(standings.contracts) <= MATRIX_CONTRACTS):
            _print_matrix(standings, console)
        else:
            console.print()
            size = (
                f"{plural(len(standings.models), 'model')} × "
                f"{plural(len(standings.contracts), 'contract')}"
            )
            print_prose(
                console,
                f"The matrix of {size} is left out here; the HTML report and the "
                "JSON output have it.",
                style="dim",
            )
    else:
        _print_fidelity(standings, console)
    _print_footer(standings, console)


def _scope(standings: Standings) -> str:
    dates = format_dates(standings.first_date, standings.last_date)
    return (
        f"{plural(len(standings.models), 'model')}, "
        f"{plural(len(standings.contracts), 'contract')}, "
        f"{plural(standings.counts.total, 'run')}, {dates}."
    )


def _print_reliability(standings: Standings, console: Console) -> None:
    rates = [standing.figures.pass_rate for standing in standings.models]
    name = interval_name(standings)
    _print_models(
        standings,
        console,
        "Reliability",
        [
            _Column(
                "Pass rate",
                "pass rate",
                [show_shared(item) for item in standings.models],
            ),
            _Column("Overall", "overall", [show_rate(rate) for rate in rates]),
            _Column("Pooled", "pooled", [show_rate(rate, "micro") for rate in rates]),
            *(
                [
                    _Column(
                        name[0].upper() + name[1:],
                        name,
                        [show_interval(rate) for rate in rates],
                    )
                ]
                if any(rate.interval is not None for rate in rates)
                else []
            ),
        ],
        full_names=True,
    )
    method = interval_method(standings)
    pooled = "Pooled: resolved over scored runs."
    if method:
        pooled = f"Pooled: resolved over scored runs, with its {method} interval."
    elif reasons := sorted({rate.no_interval for rate in rates if rate.no_interval}):
        pooled += f" No interval is given: {join_words(reasons)}."
    print_prose(
        console,
        "Pass rate, which ranks: mean over contracts, on the "
        f"{plural(standings.shared_tasks, 'task')} of "
        f"{plural(standings.shared_contracts, 'contract')} that all ranked models share. "
        f"Overall: the same on all of a model's tasks. {pooled}",
        style="dim",
    )


def _print_outcomes(standings: Standings, console: Console) -> None:
    counts = [standing.figures.pass_rate.counts for standing in standings.models]

    def count(head: str, numbers: Iterable[int]) -> _Column:
        return _Column(head, head.lower(), [Shown(format_count(item), item) for item in numbers])

    _print_models(
        standings,
        console,
        "Outcomes and repeated trials",
        [
            count("Res.", [item.resolved for item in counts]),
            count("Unres.", [item.unresolved for item in counts]),
            count("Unchk.", [item.unchecked for item in counts]),
            count("Error", [item.error for item in counts]),
            *(
                _Column(
                    f"pass^{k}",
                    f"pass^{k}",
                    [show_pass_hat_k(item.figures, k) for item in standings.models],
                )
                for k in shown_ks(standings, PASS_HAT_KS)
            ),
        ],
    )
    print_prose(
        console,
        "Res. resolved, unres. unresolved, unchk. unchecked runs. pass^k: the chance that k "
        "trials of a task all resolve, mean over tasks.",
        style="dim",
    )


def _print_usage(standings: Standings, console: Console) -> None:
    figures = [standing.figures for standing in standings.models]
    costs, tokens = (
        [item.cost_usd for item in figures],
        [item.tokens for item in figures],
    )
    times = [item.duration for item in figures]
    _print_models(
        standings,
        console,
        "Cost and speed",
        [
            _Column(
                "Cost\nper run",
                "cost",
                [show_quantity(item, "per_run", format_money) for item in costs],
            ),
            _Column(
                "Cost per\nresolved",
                "cost per resolved",
                [show_quantity(item, "per_resolved", format_money) for item in costs],
            ),
            _Column(
                "Tokens\nper run",
                "tokens",
                [show_quantity(item, "per_run", format_tokens) for item in tokens],
            ),
            _Column(
                "Median\ntime",
                "time",
                [show_duration(item, "median_ms") for item in times],
            ),
            _Column("95th\npct.", "time", [show_duration(item, "p95_ms") for item in times]),
        ],
    )


def _print_fidelity(standings: Standings, console: Console) -> None:
    """Say of each model that has ledgers whether they agree, and name one that does not."""
    if not standings.fidelity:
        return
    table = _table()
    table.add_column("Model", overflow="fold")
    for head in ("Outcome", "Fidelity", "Ledgers", "Compared"):
        table.add_column(head, justify="left" if head == "Outcome" else "right", no_wrap=True)
    table.add_column("Verdicts", overflow="fold")
    for item in standings.fidelity:
        shown = show_fidelity(item)
        table.add_row(
            Text(shorten(named(item.model), 2 * _NAME_COLUMNS[1])),
            Text(item.outcome),
            *(Text(text) for text in (shown.score.text, shown.ledgers, shown.executors)),
            Text(printable(item.reason or "")),
        )
    _print_table(console, "Can tokens and costs be trusted?", table)
    print_prose(
        console,
        "What a framework reports of its executors (its ledger) against what their model calls "
        "used. Ledgers: traces that have one; compared: executors in them. FAIL withholds a "
        "model's tokens and costs, WARN and PENDING mark them.",
        style="dim",
    )
    for item in standings.fidelity:
        for divergence in item.divergences[:1]:
            example = divergence_line(divergence, brief=True)
            print_prose(console, f"{named(item.model)}, for one: {example}", indent=2)


def _print_models(
    standings: Standings,
    console: Console,
    title: str,
    columns: Sequence[_Column],
    *,
    full_names: bool = False,
) -> None:
    """Print a table with a row for each model, and the footnotes its figures owe.

    Columns that do not fit beside the names go to a further table of the same rows. Names
    fold; only with `full_names` are they printed whole however long they are, so that one
    table of the page tells any two models apart.
    """
    ranks = format_ranks([standing.rank for standing in standings.models])
    printed = [named(standing.model) for standing in standings.models]
    if not full_names:
        printed = [shorten(name, 2 * _NAME_COLUMNS[1]) for name in printed]
    beside = max(map(len, ranks)) + 2 * _GAP
    beside += min(_MODEL_COLUMNS, max(Text(name).cell_len for name in ["Model", *printed]))
    heading = title
    for part in _parts(columns, console.width - beside):
        table = _table()
        table.add_column("#", justify="right", no_wrap=True)
        table.add_column("Model", overflow="fold")
        for column in part:
            # Rich drops blanks at the end of what it aligns right, and with them the place of a
            # mark that other rows have.
            table.add_column(Text(column.head, justify="right"), no_wrap=True)
        for index, standing in enumerate(standings.models):
            table.add_row(
                Text(ranks[index]),
                Text(printed[index]),
                *(Text(_aligned(column, index).rjust(_width(column))) for column in part),
                style="bold" if standing.rank == 1 else "",
            )
        _print_table(console, heading, table)
        heading = f"{title}, continued"
    names = [standing.model for standing in standings.models]
    notes = footnotes(
        (
            (column.name, name, figure)
            for column in columns
            for name, figure in zip(names, column.figures, strict=True)
        ),
        names,
    )
    for note in notes:
        print_prose(console, note, style="dim")


def _print_groups(standings: Standings, console: Console) -> None:
    groups = group_names(standings)
    if not groups:
        return
    rates = {(item.model, item.group): item.figures.pass_rate for item in standings.groups}
    absent = False
    for block in _blocks(groups, groups, [s.model for s in standings.models], console.width):
        table = _matrix_table("Model", block)
        for standing in standings.models:
            figures = [
                show_rate(rates[key]) if (key := (standing.model, group)) in rates else None
                for group in block.keys
            ]
            absent = absent or any(item is None or item.value is None for item in figures)
            table.add_row(
                _name(standing.model, block.first),
                *(Text("n/a" if item is None else item.text) for item in figures),
            )
        _print_table(console, f"Pass rate by group{block.which}", table)
    if absent:
        print_prose(console, "n/a no scored run", style="dim")


def _print_matrix(standings: Standings, console: Console) -> None:
    names = contract_names(standings.contracts)
    cells = {(cell.model, cell.contract): cell for cell in standings.cells}
    withheld = {(item.model, item.contract): item for item in standings.withheld}
    models = [standing.model for standing in standings.models]
    # Withheld cells may be all that is left of a model or a contract.
    contracts = list(dict.fromkeys([*names, *(key[1] for key in [*cells, *withheld])]))
    texts: dict[tuple[str, str], str] = {}
    for key in ((model, contract) for model in models for contract in contracts):
        cell, shown = cells.get(key), show_cell(cells.get(key), withheld.get(key))
        fraction = (
            "" if cell is None or shown.value is None else scored_fraction(cell.figures.pass_rate)
        )
        texts[key] = f"{shown.text} {fraction}".rstrip()
    rows = [names.get(contract, named(contract)) for contract in contracts]
    widest = max((len(text) for text in texts.values()), default=0)
    for block in _blocks(models, models, rows, console.width, widest):
        table = _matrix_table("Contract", block)
        for contract, row in zip(contracts, rows, strict=True):
            table.add_row(
                _name(row, block.first),
                *(Text(texts[model, contract]) for model in block.keys),
            )
        _print_table(console, f"Pass rate by contract, resolved/scored{block.which}", table)
    if "n/a" in texts.values():
        print_prose(console, "n/a no scored run", style="dim")


class _Block(NamedTuple):
    """Columns of a matrix that fit beside its first one; `which` numbers it if there are more."""

    keys: list[str]
    heads: list[str]
    first: int
    width: int
    which: str


def _blocks(
    keys: Sequence[str],
    heads: Sequence[str],
    rows: Sequence[str],
    columns: int,
    cell: int = 0,
) -> list[_Block]:
    """Split the columns of a matrix into blocks that fit `columns` columns of a terminal."""
    low, high = _CELL_COLUMNS
    printed = [named(head) for head in heads]
    if not keys:
        return []
    width = max(low, cell, min(high, max(map(len, printed), default=0)))
    low, high = _NAME_COLUMNS
    longest = max((Text(printable(row)).cell_len for row in rows), default=0)
    first = min(max(low, longest), high, max(low, columns - width - _GAP))
    fits = max(1, (columns - first) // (width + _GAP))
    count = -(-len(keys) // fits)
    # Blocks of about the same size read better than one full and one with what is left over,
    # and leave room for headers that would otherwise break.
    fits = -(-len(keys) // count)
    width = max(width, min(max(map(len, printed), default=0), (columns - first) // fits - _GAP))
    return [
        _Block(
            list(keys[start : start + fits]),
            [shorten(head, _HEADER_LINES * width) for head in printed[start : start + fits]],
            first,
            width,
            f" ({start // fits + 1} of {count})" if count > 1 else "",
        )
        for start in range(0, len(keys), fits)
    ]


def _matrix_table(first: str, block: _Block) -> Table:
    table = _table()
    table.add_column(first, overflow="fold", width=block.first)
    for head in block.heads:
        table.add_column(Text(head), justify="right", overflow="fold", width=block.width)
    return table


def _name(name: str, width: int) -> Text:
    return Text(shorten(named(name), 2 * width))


def _print_footer(standings: Standings, console: Console) -> None:
    names = contract_names(standings.contracts)

    def name(contract: str) -> str:
        return shorten(names.get(contract, named(contract)), 40)

    def model(key: str) -> str:
        return shorten(named(key), 40)

    if len(standings.holes) <= LISTED:
        holes = [
            f"{model(hole.model)}: "
            + ("nothing" if hole.whole_contract else f"{plural(hole.tasks, 'task')} missing")
            + f" under {name(hole.contract)}"
            + (f" ({plural(hole.tasks, 'task')})" if hole.whole_contract else "")
            for hole in standings.holes
        ]
    else:
        holes = [
            f"{model(item.model)}: {_summary(item)}" for item in summarize_holes(standings.holes)
        ]
    _listing(console, "Holes: tasks that others have a scored run for", holes)
    reasons: dict[str, list[str]] = {}
    for item in standings.withheld:
        reasons.setdefault(item.reason, []).append(f"{model(item.model)} × {name(item.contract)}")
    _listing(
        console,
        "Withheld from all figures",
        [f"{printable(why)}: {join_words(cells, most=4)}" for why, cells in reasons.items()],
    )
    # Errors first: they are the ones that may be cut off least.
    notes = sorted(standings.notes, key=lambda note: note.kind != "error")
    _listing(console, "Notes", [f"{note.kind}: {printable(note.text)}" for note in notes])
    console.print()
    print_prose(console, judged(standings))
    engine = printable(standings.engine) or "not recorded"
    print_prose(
        console,
        f"Edition {format_hash(standings.edition)}, engine {engine}.",
        style="dim",
    )


def _summary(holes: HoleSummary) -> str:
    parts = []
    if holes.whole:
        parts.append(f"nothing under {plural(len(holes.whole), 'contract')}")
    if holes.partly:
        tasks = sum(hole.tasks for hole in holes.partly)
        under = plural(len(holes.partly), "contract")
        parts.append(f"{plural(tasks, 'task')} missing under {under}")
    return "; ".join(parts)


def _listing(console: Console, title: str, lines: Sequence[str]) -> None:
    if not lines:
        return
    console.print()
    print_prose(console, title, style="bold")
    for line in lines[:LISTED]:
        print_prose(console, line, indent=2)
    if len(lines) > LISTED:
        print_prose(console, f"and {format_count(len(lines) - LISTED)} more", indent=2)


def _parts(columns: Sequence[_Column], width: int) -> list[list[_Column]]:
    """Split columns, in order, into as few runs as fit `width` columns of a terminal each."""
    parts: list[list[_Column]] = [[]]
    used = -_GAP
    for column in columns:
        needs = _width(column) + _GAP
        if parts[-1] and used + needs > width:
            parts.append([])
            used = -_GAP
        parts[-1].append(column)
        used += needs
    return parts


def _width(column: _Column) -> int:
    """Characters that a column takes."""
    figures = (_aligned(column, index) for index in range(len(column.figures)))
    return max(map(len, (*column.head.split("\n"), *figures)))


def _aligned(column: _Column, index: int) -> str:
    """Give a figure's text so that digits align whether or not a mark follows them."""
    text = column.figures[index].text
    marks = max(len(figure.text) - len(_unmarked(figure)) for figure in column.figures)
    return text + " " * (marks - len(text) + len(_unmarked(column.figures[index])))


def _unmarked(figure: Shown) -> str:
    return figure.text.rstrip(PARTIAL + DOUBTED)


def _table() -> Table:
    return Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, _GAP - 1, 0, 0),
    )


def _print_table(console: Console, title: str, table: Table) -> None:
    console.print()
    print_prose(console, title, style="bold")
    for line in console.render_lines(table, pad=False):
        text = Text.assemble(*((piece.text, piece.style or "") for piece in line))
        print_line(console, text)
