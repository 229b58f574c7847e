"""`bench agree`: do the verdicts say what a benchmark's own grades, or a team's labels, say?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import click
import msgspec
from rich.table import Table

from benchmark_assets.adapters.labels import read_labels
from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.adapters.run_files import list_run_files
from benchmark_assets.adapters.run_reader import read_runs
from benchmark_assets.adapters.store import Store
from benchmark_assets.cli.options import config_option, json_option, store_option
from benchmark_assets.cli.output import EXIT_CLEAN, EXIT_NOTHING, stdout
from benchmark_assets.leaderboard.statistics.agreement import (
    Agreement,
    cohen_kappa,
    rank_correlation,
)


class GroupAgreement(msgspec.Struct, frozen=True):
    """The runs of one group of contracts.

    `rank_correlation` is Spearman's, of the models' rates by verdict and by label; None where
    it says nothing.
    """

    agreement: Agreement
    models: dict[str, Agreement]
    rank_correlation: float | None


class Disagreement(msgspec.Struct, frozen=True):
    """A run whose verdict is not what its label says."""

    trace_id: str
    model: str
    contract: str
    verdict: str
    label: bool
    reason: str | None


@click.command("agree")
@click.option(
    "--truth",
    "truths",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    help="Labels: τ²-bench or AgentDojo files or a folder of them, or CSV / JSON of trace id → "
    "label.",
)
@store_option
@config_option
@json_option
def command(
    truths: tuple[Path, ...], store: str | None, config: Path | None, as_json: bool
) -> None:
    """Compare stored verdicts with labels of the same traces: Cohen's kappa, and who differs.

    Labels are read here and nowhere else: no verdict can depend on them. Unchecked and error
    runs are left out and counted. The rank correlation is Spearman's, of the models' rates by
    verdict and by label.

    Exit codes: 0; 1 set-up error; 11 no labelled run in the store.

    Example: bench agree --truth results/ --store /tmp/try
    """
    labels = read_labels(truths)
    opened = Store(load_project(config, store=store).store)
    runs = read_runs(opened, list_run_files(opened))
    pairs: dict[str, dict[str, list[tuple[bool, bool]]]] = defaultdict(lambda: defaultdict(list))
    disagreements: list[Disagreement] = []
    skipped = 0
    for row in runs.to_dict("records"):
        label = labels.get(str(row["trace_id"]))
        if label is None:
            continue
        if row["outcome"] not in ("resolved", "unresolved"):
            skipped += 1
            continue
        resolved = row["outcome"] == "resolved"
        pairs[str(row["group"])][str(row["model"])].append((resolved, label))
        if resolved != label:
            disagreements.append(
                Disagreement(
                    str(row["trace_id"]),
                    str(row["model"]),
                    str(row["contract"]),
                    str(row["outcome"]),
                    label,
                    row["reason"] if isinstance(row["reason"], str) else None,
                )
            )
    groups = {group: _compare(models) for group, models in sorted(pairs.items())}
    by_model: dict[str, list[tuple[bool, bool]]] = defaultdict(list)
    for models in pairs.values():
        for model, part in models.items():
            by_model[model] += part
    overall = _compare(by_model)
    if as_json:
        report = {
            "overall": overall.agreement,
            "models": overall.models,
            "rank_correlation": overall.rank_correlation,
            "groups": groups,
            "disagreements": disagreements,
            "not_scored": skipped,
        }
        click.echo(msgspec.json.format(msgspec.json.encode(report), indent=1).decode())
    else:
        _print(overall, groups, disagreements, skipped)
    raise SystemExit(EXIT_CLEAN if overall.agreement.items else EXIT_NOTHING)


def _compare(pairs: dict[str, list[tuple[bool, bool]]]) -> GroupAgreement:
    models = {model: cohen_kappa(part) for model, part in sorted(pairs.items())}
    return GroupAgreement(
        agreement=cohen_kappa(pair for part in pairs.values() for pair in part),
        models=models,
        rank_correlation=rank_correlation([_rates(part) for part in models.values()]),
    )


def _rates(part: Agreement) -> tuple[float, float]:
    """Share of runs that are right by the verdicts, and by the labels."""
    return (
        (part.both + part.only_first) / part.items,
        (part.both + part.only_second) / part.items,
    )


def _print(
    overall: GroupAgreement,
    groups: dict[str, GroupAgreement],
    disagreements: list[Disagreement],
    skipped: int,
) -> None:
    console = stdout()
    if len(groups) > 1:
        for name, group in groups.items():
            console.print(f"Group {name}", markup=False)
            console.print(_table(group))
            _print_correlation(group)
            console.print()
        console.print("All groups")
    console.print(_table(overall))
    _print_correlation(overall)
    if skipped:
        console.print(f"{skipped} labelled runs are unchecked or errors and left out.")
    for item in disagreements:
        said = "true" if item.label else "false"
        console.print(
            f"{item.model} under {item.contract}, trace {item.trace_id}: {item.verdict}, "
            f"label {said}" + (f"; {item.reason}" if item.reason else ""),
            markup=False,
            soft_wrap=True,
        )


def _print_correlation(group: GroupAgreement) -> None:
    if group.rank_correlation is not None:
        stdout().print(
            f"Rank correlation of the {len(group.models)} models' rates: "
            f"{group.rank_correlation:.3f}"
        )


def _table(group: GroupAgreement) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("Model", "Runs", "Resolved", "Label true", "Agreed", "Kappa"):
        table.add_column(name, justify="left" if name == "Model" else "right", overflow="fold")
    for name, part in _rows(group):
        table.add_row(
            name,
            str(part.items),
            str(part.both + part.only_first),
            str(part.both + part.only_second),
            str(part.agreed),
            "–" if part.kappa is None else f"{part.kappa:.3f}",
        )
    return table


def _rows(group: GroupAgreement) -> Iterable[tuple[str, Agreement]]:
    yield from group.models.items()
    yield "all", group.agreement
