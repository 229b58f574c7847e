"""Standings as one self-contained HTML page.

Belongs here: the sections of the page and their words. Does not belong here: escaping
(`markup`), cells (`tables`), the picture (`scatter`), definitions (`method`), what a figure
says (`view`), looks and behaviour (`templates/`).

The page needs no network, and cannot use one: its content security policy allows nothing but
its own style and, by hash, its own script. Equal standings give equal bytes.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files
from string import Template

from benchmark_assets.model.standings import (
    Figures,
    GroupStanding,
    Hole,
    ModelFidelity,
    ModelStanding,
    PassRate,
    Standings,
)
from benchmark_assets.report.machine import encode
from benchmark_assets.report.markup import Markup, element, join, script_data
from benchmark_assets.report.method import definitions
from benchmark_assets.report.scatter import Point, scatter
from benchmark_assets.report.tables import (
    HIGH_FIRST,
    LOW_FIRST,
    bullet_list,
    column_head,
    count_cell,
    data_table,
    figure_cell,
    folded,
    fraction,
    headline_cell,
    join_notes,
    models_table,
    row_head,
    text_cell,
    tinted_cell,
)
from benchmark_assets.report.text import (
    UNKNOWN,
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
)
from benchmark_assets.report.view import (
    Shown,
    contract_names,
    divergence_line,
    group_names,
    headline,
    inapplicable,
    interval_name,
    judged,
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

PASS_HAT_KS = 4
"""Most values of k in pass^k that get a column."""


def render_html(standings: Standings, *, title: str) -> str:
    """Render a leaderboard as one HTML document.

    Args:
        standings: What to render.
        title: The page's title and heading, as plain text.

    Returns:
        The document, ending in a newline; it can be written as UTF-8 and opened from disk.
    """
    script = _asset("leaderboard.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(_asset("leaderboard.html")).substitute(
        # Inline styles carry the lengths of bars; nothing in them is foreign.
        policy=(
            "default-src 'none'; base-uri 'none'; form-action 'none'; "
            f"style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
        ),
        title=join(title),
        style=_asset("leaderboard.css").rstrip("\n"),
        body=_body(standings, title),
        data=script_data(encode(standings)),
        script=script,
    )


def _asset(name: str) -> str:
    return files("benchmark_assets.report").joinpath("templates", name).read_text("utf-8")


def _body(standings: Standings, title: str) -> Markup:
    sections: list[tuple[str, str, Markup]] = []
    if standings.models:
        sections.append(("reliability", "Reliability", _reliability(standings)))
        sections.append(("cost", "Cost and speed", _usage(standings)))
        if standings.groups:
            sections.append(("groups", "By group", _groups(standings)))
        if standings.contracts:
            sections.append(("contracts", "By contract", _matrix(standings)))
        failures = _failures(standings)
        if failures:
            sections.append(("failures", "What fails", failures))
    if standings.fidelity:
        sections.append(("fidelity", "Can the numbers be trusted?", _fidelity(standings)))
    sections.append(("missing", "What is missing", _missing(standings)))
    sections.append(
        ("method", "How each number was made", _definition_list(definitions(standings)))
    )
    sections.append(("provenance", "Provenance", _provenance(standings)))
    links = (element("li", element("a", name, href=f"#{anchor}")) for anchor, name, _ in sections)
    return element(
        "div",
        _header(standings, title),
        element("nav", element("ul", links), aria_label="Sections"),
        element(
            "main",
            (
                element("section", element("h2", name), content, id=anchor)
                for anchor, name, content in sections
            ),
        ),
        element(
            "footer",
            "Every verdict is code over a recorded trace; no model judged another. "
            "This page holds all its data and loads nothing.",
        ),
        class_="wrap",
    )


def _header(standings: Standings, title: str) -> Markup:
    facts = [
        ("Models", format_count(len(standings.models))),
        ("Contracts", format_count(len(standings.contracts))),
        ("Runs", format_count(standings.counts.total)),
        ("Tasks shared by all ranked", format_count(standings.shared_tasks)),
        (
            "Dates",
            _or_unrecorded(format_dates(standings.first_date, standings.last_date)),
        ),
    ]
    return element(
        "header",
        element(
            "div",
            element("span", element("b", "benchmark-assets"), " · leaderboard"),
            element("span", f"Edition {_or_unrecorded(format_hash(standings.edition))}"),
            class_="brand",
        ),
        element("h1", title),
        element(
            "p",
            (
                element("strong", part.text) if part.strong else part.text
                for part in headline(standings)
            ),
            class_="answer",
        ),
        element(
            "dl",
            (element("div", element("dt", name), element("dd", value)) for name, value in facts),
            class_="facts",
        ),
    )


def _reliability(standings: Standings) -> Markup:
    ks = shown_ks(standings, PASS_HAT_KS)
    rates = [standing.figures.pass_rate for standing in standings.models]
    # A column in which no model has an interval would only repeat why.
    intervals = any(rate.interval is not None for rate in rates)
    heads = [
        column_head("Pass rate", HIGH_FIRST),
        column_head("Overall", HIGH_FIRST),
        column_head("Pooled", HIGH_FIRST),
        *([column_head(interval_name(standings), HIGH_FIRST)] if intervals else []),
        *(
            column_head(name, HIGH_FIRST)
            for name in ("Resolved", "Unresolved", "Unchecked", "Error")
        ),
        *(column_head(f"pass^{k}", HIGH_FIRST) for k in ks),
    ]

    def cells(standing: ModelStanding) -> list[Markup]:
        rate = standing.figures.pass_rate
        counts = rate.counts
        return [
            headline_cell(show_shared(standing)),
            figure_cell(show_rate(rate)),
            figure_cell(show_rate(rate, "micro"), under=fraction(rate)),
            *([figure_cell(show_interval(rate))] if intervals else []),
            count_cell(counts.resolved),
            count_cell(counts.unresolved),
            count_cell(counts.unchecked),
            count_cell(counts.error, alarming=True),
            *(figure_cell(show_pass_hat_k(standing.figures, k)) for k in ks),
        ]

    tasks = plural(standings.shared_tasks, "task")
    contracts = plural(standings.shared_contracts, "contract")
    return join(
        element(
            "p",
            "The headline is the ",
            element("strong", "pass rate"),
            f": the mean over contracts of each contract’s share of resolved runs, on the {tasks} "
            f"of {contracts} that all ranked models share. It ranks the models; ties share a "
            "rank.",
            class_="lede",
        ),
        models_table(standings, "Models by pass rate on shared tasks", heads, cells),
        element(
            "p",
            "Overall: the same mean on all of a model’s tasks. Pooled: resolved over scored runs "
            "of all contracts; an interval belongs to it. Unchecked and error runs are in no "
            "rate.",
            "" if intervals else f" No interval is given: {_no_intervals(rates)}.",
            class_="key",
        ),
    )


def _no_intervals(rates: Sequence[PassRate]) -> str:
    reasons = (join_notes(show_interval(rate).notes) for rate in rates)
    return "; ".join(dict.fromkeys(reasons))


def _usage(standings: Standings) -> Markup:
    heads = [
        column_head("Cost per run", LOW_FIRST),
        column_head("Cost per resolved run", LOW_FIRST),
        column_head("Tokens per run", LOW_FIRST),
        column_head("Tokens per resolved run", LOW_FIRST),
        column_head("Median time", LOW_FIRST),
        column_head("95th percentile", LOW_FIRST),
    ]

    def cells(standing: ModelStanding) -> list[Markup]:
        return [figure_cell(figure) for figure in _usage_figures(standing.figures)]

    return join(
        _picture(standings),
        models_table(standings, "Cost, tokens and wall time of each model", heads, cells),
        element(
            "p",
            "* over only some of the runs, as said beneath the number; ~ some costs were filled "
            "in from prices. What was not recorded is never counted as zero."
            + (" ? not confirmed by what model calls used." if standings.fidelity else ""),
            class_="key",
        ),
    )


def _fidelity(standings: Standings) -> Markup:
    heads = [
        column_head("Model", LOW_FIRST, class_="name", current=True),
        column_head("Outcome", LOW_FIRST, class_="text"),
        *(
            column_head(name, HIGH_FIRST)
            for name in ("Fidelity", "Agree", "In doubt", "Diverge", "Not compared")
        ),
        column_head("Executors compared", HIGH_FIRST),
        column_head("Tokens compared", HIGH_FIRST),
        column_head("Traces with a ledger", HIGH_FIRST),
        column_head("Verdicts", LOW_FIRST, class_="text"),
    ]
    rows = [_fidelity_row(item) for item in standings.fidelity]
    divergent = sum(item.divergent for item in standings.fidelity)
    examples = [
        join(element("b", named(item.model)), ": ", divergence_line(divergence))
        for item in standings.fidelity
        for divergence in item.divergences
    ]
    return join(
        element(
            "p",
            "A framework that runs several agents reports, for each, what it used and how it "
            "ended: its ledger. Where that is not what the model calls used, one of the two is "
            "wrong, and a model’s tokens and costs are withheld; where it could not be confirmed, "
            "they are marked.",
            class_="lede",
        ),
        data_table("What frameworks report against what model calls used, in traces", heads, rows),
        bullet_list(examples) if examples else "",
        element("p", f"Named are {format_count(len(examples))} of {format_count(divergent)}.")
        if divergent > len(examples)
        else "",
    )


def _fidelity_row(item: ModelFidelity) -> list[Markup]:
    shown = show_fidelity(item)
    return [
        row_head(item.model),
        text_cell(item.outcome, class_="text bad" if item.outcome == "FAIL" else "text"),
        figure_cell(shown.score),
        count_cell(item.passed),
        count_cell(item.warned),
        count_cell(item.failed, alarming=True),
        count_cell(item.pending + item.waiting),
        text_cell(shown.executors, class_=None),
        text_cell(shown.tokens, class_=None),
        text_cell(shown.ledgers, class_=None),
        text_cell(printable(item.reason or "")),
    ]


def _usage_figures(figures: Figures) -> list[Shown]:
    return [
        show_quantity(figures.cost_usd, "per_run", format_money),
        show_quantity(figures.cost_usd, "per_resolved", format_money),
        show_quantity(figures.tokens, "per_run", format_tokens),
        show_quantity(figures.tokens, "per_resolved", format_tokens),
        show_duration(figures.duration, "median_ms"),
        show_duration(figures.duration, "p95_ms"),
    ]


def _picture(standings: Standings) -> Markup:
    points: list[Point] = []
    absent: dict[str, list[str]] = {}
    for standing in standings.models:
        rate = show_shared(standing)
        cost = show_quantity(standing.figures.cost_usd, "per_run", format_money)
        if rate.value is None or cost.value is None:
            why = "no pass rate" if rate.value is None else f"cost {join_notes(cost.notes)}"
            absent.setdefault(why, []).append(named(standing.model))
        else:
            points.append(Point(standing.model, cost.value, rate.value, f"{cost.text} per run"))
    missing = "; ".join(f"{join_words(names, most=8)} ({why})" for why, names in absent.items())
    if not points:
        return element("p", f"No model has both a cost and a pass rate: {missing}.", class_="lede")
    caption = "Pass rate on shared tasks against cost per run: up and to the left is better."
    if missing:
        caption += f" Not drawn: {missing}."
    return element(
        "figure",
        element("figcaption", caption),
        scatter(
            points,
            title="Pass rate against cost per run",
            x_label="Cost per run",
            y_label="Pass rate",
        ),
        class_="card",
    )


def _groups(standings: Standings) -> Markup:
    groups = group_names(standings)
    found = {(item.model, item.group): item for item in standings.groups}

    def cells(standing: ModelStanding) -> list[Markup]:
        return [_group_cell(found.get((standing.model, group))) for group in groups]

    return join(
        element(
            "p",
            "Pass rate in each group of contracts: mean over the group’s contracts, with resolved "
            "over scored runs beneath it.",
            class_="lede",
        ),
        models_table(
            standings,
            "Pass rate of each model in each group",
            [column_head(group, HIGH_FIRST) for group in groups],
            cells,
            matrix=True,
        ),
    )


def _group_cell(item: GroupStanding | None) -> Markup:
    if item is None:
        return figure_cell(inapplicable("no run"))
    rate = item.figures.pass_rate
    return tinted_cell(show_rate(rate), fraction(rate))


def _matrix(standings: Standings) -> Markup:
    names = contract_names(standings.contracts)
    cells = {(cell.model, cell.contract): cell for cell in standings.cells}
    withheld = {(item.model, item.contract): item for item in standings.withheld}
    ranks = format_ranks([standing.rank for standing in standings.models])
    heads = [
        column_head("Contract", LOW_FIRST, class_="name"),
        *(
            column_head(
                standing.model,
                HIGH_FIRST,
                under=f"rank {rank}" if standing.rank else None,
            )
            for rank, standing in zip(ranks, standings.models, strict=True)
        ),
    ]
    rows = []
    for entry in standings.contracts:
        row = [row_head(names[entry.contract], under=entry.label)]
        for standing in standings.models:
            key = (standing.model, entry.contract)
            cell, shown = cells.get(key), show_cell(cells.get(key), withheld.get(key))
            row.append(
                figure_cell(shown)
                if cell is None or shown.value is None
                else tinted_cell(shown, fraction(cell.figures.pass_rate))
            )
        rows.append(row)
    return join(
        element(
            "p",
            "Share of resolved runs of each model under each contract, with resolved over scored "
            "runs beneath it. A stronger tint is a higher share.",
            class_="lede",
        ),
        data_table("Pass rate by contract and model", heads, rows, matrix=True),
    )


def _failures(standings: Standings) -> Markup | None:
    names = contract_names(standings.contracts)
    cells = [cell for cell in standings.cells if cell.top_failure]
    if not cells:
        return None
    heads = [
        column_head("Model", LOW_FIRST, class_="name"),
        column_head("Contract", LOW_FIRST, class_="text"),
        column_head("Pass rate", LOW_FIRST),
        column_head("Most frequent failure", LOW_FIRST, class_="text"),
        column_head("Dates", LOW_FIRST),
    ]
    rows = [
        [
            row_head(cell.model),
            text_cell(names.get(cell.contract, cell.contract)),
            figure_cell(
                show_rate(cell.figures.pass_rate),
                under=fraction(cell.figures.pass_rate),
            ),
            text_cell(cell.top_failure or ""),
            text_cell(
                _or_unrecorded(format_dates(cell.first_date, cell.last_date)),
                class_=None,
            ),
        ]
        for cell in cells
    ]
    table = data_table("Most frequent failure of each model under each contract", heads, rows)
    return folded(f"Show {plural(len(cells), 'cell')} with a failure", table, len(cells))


def _missing(standings: Standings) -> Markup:
    parts: list[Markup] = [element("p", judged(standings), class_="lede")]
    names = contract_names(standings.contracts)
    if standings.holes:
        parts.append(element("h3", "Holes: tasks that others have a scored run for"))
        parts.append(
            bullet_list(
                [
                    element(
                        "span",
                        element("strong", named(item.model)),
                        f": {_hole_text(item.whole, item.partly, names)}",
                    )
                    for item in summarize_holes(standings.holes)
                ]
            )
        )
    if standings.withheld:
        parts.append(element("h3", "Withheld from all figures"))
        parts.append(
            bullet_list(
                [
                    element(
                        "span",
                        element("strong", named(item.model)),
                        f" under {names.get(item.contract, item.contract)}: {item.reason}",
                    )
                    for item in standings.withheld
                ]
            )
        )
    if standings.notes:
        parts.append(element("h3", "Notes on the inputs"))
        # Errors first: a reader who stops early has seen them.
        notes = sorted(standings.notes, key=lambda note: note.kind != "error")
        parts.append(
            bullet_list(
                [
                    element(
                        "span",
                        element(
                            "span",
                            note.kind,
                            class_="bad" if note.kind == "error" else None,
                        ),
                        f": {note.text}",
                    )
                    for note in notes
                ]
            )
        )
    if len(parts) == 1:
        parts.append(
            element(
                "p",
                "No hole, no withheld cell and no note on the inputs.",
                class_="key",
            )
        )
    return join(parts)


def _hole_text(whole: Sequence[Hole], partly: Sequence[Hole], names: dict[str, str]) -> str:
    parts = []
    if whole:
        contracts = [names.get(hole.contract, hole.contract) for hole in whole]
        tasks = plural(sum(hole.tasks for hole in whole), "task")
        parts.append(f"nothing under {join_words(contracts)} ({tasks})")
    parts.extend(
        f"{plural(hole.tasks, 'task')} missing under {names.get(hole.contract, hole.contract)}"
        for hole in partly
    )
    return "; ".join(parts)


def _provenance(standings: Standings) -> Markup:
    facts = [
        ("Edition", element("code", _or_unrecorded(standings.edition))),
        ("Rules engine", join(_or_unrecorded(standings.engine))),
        (
            "Dates",
            join(_or_unrecorded(format_dates(standings.first_date, standings.last_date))),
        ),
    ]
    heads = [
        column_head("Contract", LOW_FIRST, class_="name"),
        column_head("Version", LOW_FIRST, class_="text"),
        column_head("Group", LOW_FIRST, class_="text"),
        column_head("Runs judged", HIGH_FIRST),
        column_head("SHA-256", LOW_FIRST, class_="text"),
    ]
    rows = [
        [
            row_head(entry.name or entry.contract, under=entry.contract),
            text_cell(entry.label),
            text_cell(entry.group),
            count_cell(entry.runs),
            text_cell(element("code", entry.sha256), key=entry.sha256),
        ]
        for entry in standings.contracts
    ]
    return join(
        _definition_list(facts),
        element("h3", "Contracts as they were applied") if rows else "",
        folded(
            f"Show {plural(len(rows), 'contract')}",
            data_table("Contracts with version and content hash", heads, rows),
            len(rows),
        )
        if rows
        else "",
    )


def _or_unrecorded(text: str) -> str:
    return "not recorded" if text in ("", UNKNOWN) else printable(text)


def _definition_list(items: Sequence[tuple[str, str | Markup]]) -> Markup:
    return element(
        "dl",
        (join(element("dt", term), element("dd", text)) for term, text in items),
        class_="method",
    )
