"""How each published number is made, in words.

Belongs here: the definitions a reader needs to check a figure, with numerators and
denominators. Does not belong here: their layout (`html`).
"""

from __future__ import annotations

from benchmark_assets.model.standings import Standings
from benchmark_assets.report.text import plural
from benchmark_assets.report.view import interval_method, interval_name


def definitions(standings: Standings) -> list[tuple[str, str]]:
    """Define the terms of a leaderboard, each with its explanation, in reading order."""
    method = interval_method(standings)
    tasks = plural(standings.shared_tasks, "task")
    contracts = plural(standings.shared_contracts, "contract")
    return [
        (
            "Run",
            (
                "One trace under one contract. Resolved: at least one check was made and "
                "everything that scored passed. Unresolved: something failed, or the agent "
                "crashed, timed out or ran into its limit. Unchecked: nothing was checked. "
                "Error: it could not be evaluated."
            ),
        ),
        (
            "Pass rate (headline)",
            (
                "For each contract, resolved ÷ (resolved + unresolved); then the mean over "
                "contracts, so that a contract with many runs weighs no more than another. Taken "
                f"over the {tasks} of {contracts} that all ranked models share."
            ),
        ),
        ("Overall", "The same mean over all contracts the model has scored runs for."),
        (
            "Pooled",
            (
                "Resolved ÷ (resolved + unresolved) with the runs of all contracts in one pot; "
                "the two numbers stand beneath it."
            ),
        ),
        (
            interval_name(standings),
            (f"Of the pooled rate, by the {method} method. " if method else "Of the pooled rate. ")
            + "Given only where every task has one trial: repeated trials of a task are not "
            "independent and would make it too narrow.",
        ),
        (
            "Rank",
            (
                "By pass rate. Equal rates share a rank, marked “=”. A model that shares no task "
                "with the others is not ranked."
            ),
        ),
        (
            "pass^k",
            (
                "The chance that k trials of a task all resolve: C(c,k) ÷ C(n,k) for c resolved "
                "of n scored trials, mean over tasks. Given for each k that all of a model’s "
                "tasks allow."
            ),
        ),
        (
            "Per run",
            (
                "Mean over the runs that record the quantity. A number marked * says how many "
                "they are."
            ),
        ),
        (
            "Per resolved run",
            (
                "Total over all runs that record the quantity, failed ones included, ÷ the "
                "resolved among them: what one success took."
            ),
        ),
        (
            "Estimated cost (~)",
            (
                "Filled in from configured prices where a trace carries none; a measured cost is "
                "never replaced."
            ),
        ),
        (
            "Fidelity",
            (
                "For traces in which a framework reports on its executors: each executor’s tokens "
                "and finish reasons against those of its model calls, by the strict rules; the "
                "score is the mean over the executors, in which one of whose calls nothing is "
                "reported counts 0. One divergence that falsifies a figure is enough to withhold "
                "the model’s tokens and costs. Traces without such reports are not looked at."
            ),
        ),
        (
            "Median, 95th percentile",
            "Nearest-rank quantiles of the wall time of the runs that record one.",
        ),
        (
            "Not recorded",
            "The traces do not carry it. It is unknown, not zero, and sorts last.",
        ),
        (
            "Hole",
            (
                "A task for which another model has a scored run and this one has none. "
                "Withheld: a cell kept out of all figures, for the reason given."
            ),
        ),
    ]
