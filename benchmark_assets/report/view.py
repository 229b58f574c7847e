"""What a figure says: its text, what it sorts by, and the footnote it owes the reader.

Belongs here: the words for unknown, partial, estimated and inapplicable figures, the headline
sentence, the state of a cell of the matrix, summaries of holes; whatever more than one
reporter says in the same way. Does not belong here: layout (`console`, `html`, `markdown`),
or a number that `Standings` does not hold.

Marks qualify a figure: `–` not recorded, `n/a` does not apply, `*` known for some runs only, `~`
filled in from prices, `?` in doubt, `withheld` known to be wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from benchmark_assets.model.standings import (
    Cell,
    ContractEntry,
    Divergence,
    Duration,
    Figures,
    Hole,
    ModelFidelity,
    ModelStanding,
    PassRate,
    Quantity,
    Standings,
    Withheld,
)
from benchmark_assets.report.text import (
    UNKNOWN,
    format_count,
    format_duration,
    format_level,
    format_percent,
    format_percent_range,
    join_words,
    named,
    plural,
    printable,
    shorten,
)

INAPPLICABLE = "n/a"
PARTIAL = "*"
ESTIMATED = "~"
DOUBTED = "?"
WITHHELD = "withheld"

_NAME_CHARS = 40
_NAMES = 3


class Note(NamedTuple):
    """What a mark on a figure means; `short` is the same for a place beside the figure."""

    mark: str
    text: str
    short: str


class Shown(NamedTuple):
    """A figure ready to be laid out; `value` is what it sorts by, None sorts last."""

    text: str
    value: float | None = None
    notes: tuple[Note, ...] = ()


class Fragment(NamedTuple):
    """A piece of a sentence; `strong` pieces carry the answer."""

    text: str
    strong: bool = False


class HoleSummary(NamedTuple):
    """The holes of one model: contracts it lacks wholly, and tasks it lacks in `partly`."""

    model: str
    whole: tuple[Hole, ...]
    partly: tuple[Hole, ...]


NOT_RECORDED = Shown(UNKNOWN, None, (Note(UNKNOWN, "not recorded", "not recorded"),))


def inapplicable(reason: str) -> Shown:
    """Give the figure that cannot exist, with the reason."""
    return Shown(INAPPLICABLE, None, (Note(INAPPLICABLE, reason, reason),))


def show_rate(rate: PassRate | None, which: Literal["macro", "micro"] = "macro") -> Shown:
    """Show a pass rate; one without a scored run does not exist."""
    value = None if rate is None else rate.macro if which == "macro" else rate.micro
    return inapplicable("no scored run") if value is None else Shown(format_percent(value), value)


def show_shared(standing: ModelStanding) -> Shown:
    """Show the pass rate that ranks a model, or why the model has none."""
    if standing.shared is None:
        return inapplicable(printable(standing.unranked or "not ranked"))
    return show_rate(standing.shared)


def show_interval(rate: PassRate) -> Shown:
    """Show the interval of the pooled rate, or why there is none."""
    if rate.interval is None:
        return inapplicable(printable(rate.no_interval or "no interval was computed"))
    interval = rate.interval
    return Shown(format_percent_range(interval.low, interval.high), interval.low)


def interval_name(standings: Standings) -> str:
    """Name the intervals as a column: `95% interval`, of whatever level they have."""
    levels = sorted(
        {
            standing.figures.pass_rate.interval.level
            for standing in standings.models
            if standing.figures.pass_rate.interval is not None
        }
    )
    return f"{'/'.join(map(format_level, levels or [0.95]))} interval"


def interval_method(standings: Standings) -> str | None:
    """Name the method of the intervals, None if there is no interval."""
    methods = {
        standing.figures.pass_rate.interval.method
        for standing in standings.models
        if standing.figures.pass_rate.interval is not None
    }
    return join_words(sorted(map(printable, methods))) or None


def shown_ks(standings: Standings, most: int) -> tuple[int, ...]:
    """Choose at most `most` k of pass^k: the smallest ones that any model has, and the largest."""
    ks = sorted({item.k for standing in standings.models for item in standing.figures.pass_hat_k})
    return tuple(ks if len(ks) <= most else [*ks[: most - 1], ks[-1]])


def show_pass_hat_k(figures: Figures, k: int) -> Shown:
    """Show pass^k; a k that not every task allows does not exist."""
    for item in figures.pass_hat_k:
        if item.k != k:
            continue
        if item.tasks == figures.pass_rate.tasks:
            return Shown(format_percent(item.value), item.value)
        some = f"{format_count(item.tasks)} of {plural(figures.pass_rate.tasks, 'task')}"
        note = Note(PARTIAL, f"over {some}", some)
        return Shown(format_percent(item.value) + PARTIAL, item.value, (note,))
    if not figures.pass_rate.counts.scored:
        return inapplicable("no scored run")
    return inapplicable(f"not every task has {plural(k, 'scored trial')}")


def show_quantity(
    quantity: Quantity,
    which: Literal["per_run", "per_resolved"],
    form: Callable[[float | None], str],
) -> Shown:
    """Show a mean over the runs that carry a quantity, marked if they are not all or not measured.

    Args:
        quantity: The quantity.
        which: Its mean per run or per resolved run.
        form: Formats one value.
    """
    if not quantity.runs:
        return inapplicable("no run")
    if not quantity.known:
        return NOT_RECORDED
    if quantity.withheld is not None:
        reason = printable(quantity.withheld)
        return Shown(WITHHELD, None, (Note(f"{WITHHELD}:", reason, f"{WITHHELD}: {reason}"),))
    value = quantity.per_run if which == "per_run" else quantity.per_resolved
    if value is None:
        return inapplicable("no resolved run among those that record it")
    text, notes = form(value), list(_partial(quantity.known, quantity.runs))
    if notes:
        text += PARTIAL
    if quantity.estimated:
        text = ESTIMATED + text
        some = f"{format_count(quantity.estimated)} of {plural(quantity.known, 'run')}"
        notes.append(Note(ESTIMATED, f"estimated from prices for {some}", f"{some} estimated"))
    if quantity.doubt is not None:
        text += DOUBTED
        doubt = printable(quantity.doubt)
        notes.append(Note(DOUBTED, doubt, doubt))
    return Shown(text, value, tuple(notes))


def show_duration(duration: Duration, which: Literal["median_ms", "p95_ms"]) -> Shown:
    """Show a quantile of the durations over the runs that carry one."""
    if not duration.runs:
        return inapplicable("no run")
    value = duration.median_ms if which == "median_ms" else duration.p95_ms
    if value is None:
        return NOT_RECORDED
    notes = _partial(duration.known, duration.runs)
    return Shown(format_duration(value) + (PARTIAL if notes else ""), value, notes)


def show_cell(cell: Cell | None, withheld: Withheld | None) -> Shown:
    """Show one model under one contract: its rate, or why there is none.

    A withheld cell says so even if figures came with it.
    """
    if withheld is not None:
        reason = f"withheld: {printable(withheld.reason)}"
        return Shown(WITHHELD, None, (Note(WITHHELD, reason, reason),))
    if cell is None:
        return inapplicable("no run")
    return show_rate(cell.figures.pass_rate)


def scored_fraction(rate: PassRate) -> str:
    """Give a rate's numerator and denominator: `14/16`."""
    return f"{format_count(rate.counts.resolved)}/{format_count(rate.counts.scored)}"


def contract_names(contracts: Sequence[ContractEntry]) -> dict[str, str]:
    """Name contracts for people, by id; two of one name are told apart by their ids."""
    names = [named(entry.name or entry.contract) for entry in contracts]
    return {
        entry.contract: (f"{name} ({printable(entry.contract)})" if names.count(name) > 1 else name)
        for entry, name in zip(contracts, names, strict=True)
    }


def group_names(standings: Standings) -> list[str]:
    """List the groups in the order in which the standings first name them."""
    return list(dict.fromkeys(item.group for item in standings.groups))


def headline(standings: Standings) -> list[Fragment]:
    """Say who leads, by how much and over what, in one or two sentences."""
    ranked = [standing for standing in standings.models if standing.rank is not None]
    if not standings.models:
        return [Fragment("No model to rank: no trace was judged by a contract.")]
    if not ranked:
        return [
            Fragment("No model could be ranked", strong=True),
            Fragment(f": {_no_ranking(standings)}."),
        ]
    first = [standing for standing in ranked if standing.rank == ranked[0].rank]
    rate = Fragment(show_shared(first[0]).text, strong=True)
    names = _names([standing.model for standing in first])
    tasks, contracts = (
        plural(standings.shared_tasks, "task"),
        plural(standings.shared_contracts, "contract"),
    )
    if len(ranked) == 1:
        return [
            Fragment(names, strong=True),
            Fragment(" is the only model ranked: it resolves "),
            rate,
            Fragment(f" of its runs, averaged over {contracts} ({tasks})."),
        ]
    over = (
        f" of runs, averaged over the {contracts} ({tasks}) "
        f"that all {format_count(len(ranked))} ranked models share."
    )
    if len(first) == 1:
        opening = [Fragment(names, strong=True), Fragment(" ranks first: it resolves ")]
    else:
        opening = [
            Fragment(names, strong=True),
            Fragment(" tie for first: each resolves "),
        ]
    return [*opening, rate, Fragment(over), *_runners_up(ranked[len(first) :])]


def judged(standings: Standings) -> str:
    """Account for every trace: what came in is what was judged and what matched nothing."""
    counts = standings.counts
    if standings.unmatched is None:
        routed = "how many were judged is not known while cells are stale. "
    else:
        routed = (
            f"{format_count(standings.snapshots - standings.unmatched)} judged, "
            f"{format_count(standings.unmatched)} matched by no contract. "
        )
    return (
        f"{plural(standings.snapshots, 'trace')} in: {routed}"
        f"{plural(counts.total, 'run')} out: {format_count(counts.resolved)} resolved, "
        f"{format_count(counts.unresolved)} unresolved, "
        f"{format_count(counts.unchecked)} unchecked, {format_count(counts.error)} error."
    )


class ShownFidelity(NamedTuple):
    """What is said of one model's ledgers: its score, and what was compared, each of how many.

    `ledgers` is how many of the model's traces have one.
    """

    score: Shown
    ledgers: str
    traces: str
    executors: str
    tokens: str


def show_fidelity(fidelity: ModelFidelity) -> ShownFidelity:
    """Show how far a model's ledgers agree, and over how much."""
    score = (
        inapplicable("nothing was compared")
        if fidelity.score is None
        else Shown(fidelity.label.removeprefix("fidelity "), fidelity.score)
    )
    compared = fidelity.traces - fidelity.pending - fidelity.waiting
    tokens = (
        format_percent((fidelity.checked_tokens or 0) / fidelity.truth_tokens)
        if fidelity.truth_tokens
        else UNKNOWN
    )
    return ShownFidelity(
        score,
        f"{format_count(fidelity.traces)} of {format_count(fidelity.traces + fidelity.unreported)}",
        f"{format_count(compared)}/{format_count(fidelity.traces)}",
        f"{format_count(fidelity.checked)}/{format_count(fidelity.executors)}",
        tokens,
    )


def divergence_line(item: Divergence, *, brief: bool = False) -> str:
    """Name an executor whose ledger does not agree, and where to look.

    Args:
        item: The executor.
        brief: Give only the first of several reasons.
    """
    held = "/".join(part for part in (item.source, item.source_file) if part)
    place = printable(f"{held}: {item.record}" if item.record else held)
    reason = printable(item.reason or "")
    if brief:
        reason = reason.partition("; ")[0]
    return (
        f"{item.date}, trace {printable(item.trace_id)} ({place}), executor "
        f"{named(item.executor)}: {item.verdict}" + (f", {reason}" if reason else "")
    )


def summarize_holes(holes: Iterable[Hole]) -> list[HoleSummary]:
    """Gather holes by model, in the order given."""
    by_model: dict[str, list[Hole]] = {}
    for hole in holes:
        by_model.setdefault(hole.model, []).append(hole)
    return [
        HoleSummary(
            model,
            tuple(hole for hole in items if hole.whole_contract),
            tuple(hole for hole in items if not hole.whole_contract),
        )
        for model, items in by_model.items()
    ]


def footnotes(
    shown: Iterable[tuple[str, str, Shown]], models: Sequence[str], *, most: int = 6
) -> list[str]:
    """Collect the footnotes that figures owe, each said once with whom it concerns.

    Args:
        shown: Column, model and figure, in reading order.
        models: All models of the table; a note on all of them does not list them.
        most: Most lines for one mark; the rest is counted in a last line.

    Returns:
        Lines such as `* over 30 of 180 runs that record it (cost: gpt-4o)`.
    """
    found: dict[str, dict[str, dict[str, list[str]]]] = {}
    for column, model, figure in shown:
        for note in figure.notes:
            columns = found.setdefault(note.mark, {}).setdefault(note.text, {})
            concerned = columns.setdefault(column, [])
            if model not in concerned:
                concerned.append(model)
    lines = []
    for mark, texts in found.items():
        for text, columns in list(texts.items())[:most]:
            # What is not recorded shows in the table itself; naming models adds nothing.
            where = "" if mark == UNKNOWN else f" ({_whereabouts(columns, models)})"
            lines.append(f"{mark} {text}{where}")
        if len(texts) > most:
            lines.append(f"{mark} and {plural(len(texts) - most, 'note')} more of this kind")
    return lines


def _partial(known: int, runs: int) -> tuple[Note, ...]:
    if known >= runs:
        return ()
    some = f"{format_count(known)} of {plural(runs, 'run')}"
    return (Note(PARTIAL, f"over {some} that record it", f"over {some}"),)


def _whereabouts(columns: dict[str, list[str]], models: Sequence[str]) -> str:
    alike: dict[tuple[str, ...], list[str]] = {}
    for column, concerned in columns.items():
        alike.setdefault(tuple(concerned), []).append(column)
    return "; ".join(
        ", ".join(names)
        if len(concerned) == len(models)
        else f"{', '.join(names)}: {_names(concerned)}"
        for concerned, names in alike.items()
    )


def _names(models: Sequence[str]) -> str:
    return join_words([shorten(named(model), _NAME_CHARS) for model in models], most=_NAMES)


def _no_ranking(standings: Standings) -> str:
    reasons = dict.fromkeys(printable(item.unranked) for item in standings.models if item.unranked)
    return "; ".join(reasons) or "no reason was recorded"


def _runners_up(rest: Sequence[ModelStanding]) -> list[Fragment]:
    if not rest:
        return []
    second = [standing for standing in rest if standing.rank == rest[0].rank]
    return [
        Fragment(" Next: " if len(second) == 1 else " Next, level with each other: "),
        Fragment(_names([standing.model for standing in second])),
        Fragment(f" at {show_shared(second[0]).text}."),
    ]
