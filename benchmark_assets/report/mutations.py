"""What mutating a trace said of a contract, for a terminal and for programs.

Belongs here: the text of `bench mutate`, and its JSON. Does not belong here: mutating or judging
(`scoring/mutation`).

Every mutant that survived is listed, whatever else is cut short: they are what is to be acted on.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from benchmark_assets.model.mutation import (
    Cure,
    Judged,
    MutantResult,
    MutationReport,
    Tally,
    tally,
)
from benchmark_assets.report.lines import print_line, print_prose
from benchmark_assets.report.machine import indented
from benchmark_assets.report.text import (
    format_count,
    format_percent,
    join_words,
    named,
    plural,
    printable,
    shorten,
)

SHOWN_CHARACTERS = 200
"""How much of a reason is shown unless everything is asked for."""

_HEAD = 10
_PASSES = ("passes", "bold green")
_FAILS = ("fails", "bold red")


# For programs.


def mutation_json(report: MutationReport, *, passed: bool) -> bytes:
    """Serialise a report as indented JSON in UTF-8, ending in a newline; null is unknown.

    Args:
        report: What to serialise.
        passed: Whether the contract is good enough, as was asked for.
    """
    counts = report.counts
    return indented(
        {
            "passed": passed,
            "contract": report.contract,
            "contract_version": report.contract_version,
            "trace_id": report.trace_id,
            "seed": report.seed,
            "golden": _judged_data(report.golden),
            "empty": _judged_data(report.empty),
            "kill_rate": counts.rate,
            "kill_rate_of_all": counts.rate_of_all,
            **_counts_data(counts),
            "operators": [
                {
                    "name": name,
                    "does": does,
                    **_counts_data(tally(made)),
                    "killed_by": dict(_killers(made)),
                }
                for name, does, made in by_operator(report)
            ],
            "rules": [
                {"rule": rule, "killed": killed, "alone": alone}
                for rule, killed, alone in by_rule(report)
            ],
            "results": [
                {
                    "operator": mutant.operator,
                    "what": mutant.what,
                    "fate": mutant.fate,
                    "killed_by": mutant.killed_by,
                    "freedom": None
                    if mutant.freedom is None
                    else _as_written(mutant.freedom, fixture=report.fixture),
                    "cure": _cure_data(mutant.cure, fixture=report.fixture),
                }
                for mutant in report.mutants
            ],
        }
    )


def _counts_data(counts: Tally) -> dict[str, int]:
    return {
        "mutants": counts.total,
        "killed": counts.killed,
        "survived": counts.survived,
        "allowed": counts.allowed,
    }


def _judged_data(judged: Judged) -> dict[str, Any]:
    return {"passed": judged.passed, "outcome": judged.outcome, "reasons": judged.reasons}


def _cure_data(cure: Cure | None, *, fixture: bool) -> dict[str, Any] | None:
    return None if cure is None else {"place": place_of(cure, fixture=fixture), "value": cure.value}


# What is counted.


def by_operator(report: MutationReport) -> Iterator[tuple[str, str, list[MutantResult]]]:
    """Each operator with its name, what it does, and its mutants."""
    made: dict[str, list[MutantResult]] = {name: [] for name, _ in report.operators}
    for mutant in report.mutants:
        made[mutant.operator].append(mutant)
    for name, does in report.operators:
        yield name, does, made[name]


def by_rule(report: MutationReport) -> list[tuple[str, int, int]]:
    """Each rule with the mutants that it killed, and those that no other rule did; most first.

    Rules of the golden trace that killed none are among them.
    """
    killed = _killers(report.mutants)
    alone = Counter(m.killed_by[0] for m in report.mutants if len(m.killed_by) == 1)
    names = dict.fromkeys([*(name for name, _ in killed), *report.rules])
    counts = dict(killed)
    return [(name, counts.get(name, 0), alone[name]) for name in names]


def _killers(mutants: Iterable[MutantResult]) -> list[tuple[str, int]]:
    """Rules with how many of the mutants each killed; most first, then as verdicts list them."""
    return Counter(rule for mutant in mutants for rule in mutant.killed_by).most_common()


# For a terminal.


def print_mutations(report: MutationReport, console: Console, *, full: bool = False) -> None:
    """Print what the contract noticed of what was made wrong.

    Args:
        report: What to print.
        console: Where to; its width is kept to, and it decides about colour.
        full: List every mutant that is allowed and every rule, and give reasons whole.
    """
    contract = printable(f"{report.contract}@{report.contract_version}")
    print_prose(console, contract, indent=_HEAD, label=Text("Contract", "dim"))
    print_prose(console, named(report.trace_id), indent=_HEAD, label=Text("Trace", "dim"))
    _print_judged(console, "Golden", report.golden, good=True, full=full)
    _print_judged(console, "Empty", report.empty, good=False, full=full)
    if not report.golden.passed:
        console.print()
        print_prose(
            console,
            "No mutant was made: what is to be mutated is a trace that passes.",
            style="bold",
        )
        return
    _print_operators(report, console)
    _print_rules(report, console)
    _print_survivors(report, console)
    _print_allowed(report, console, full=full)
    console.print()
    print_prose(console, _conclusion(report.counts))


def _print_judged(console: Console, name: str, judged: Judged, *, good: bool, full: bool) -> None:
    """Whether a trace passes; the golden one should, and the empty one should not."""
    word = "passes" if judged.passed else "fails"
    style = "bold green" if judged.passed == good else "bold red"
    shown = judged.reasons if full or not good else judged.reasons[:3]
    reasons = list(map(printable, shown if good or full else judged.reasons[:1]))
    if not full:
        reasons = [shorten(reason, SHOWN_CHARACTERS) for reason in reasons]
    more = len(judged.reasons) - len(reasons)
    if more:
        reasons.append(f"{format_count(more)} more")
    said = f": {'; '.join(reasons)}" if reasons else ""
    print_prose(console, Text.assemble((word, style), said), indent=_HEAD, label=Text(name, "dim"))


def _print_operators(report: MutationReport, console: Console) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for name in ("mutants", "killed", "survived", "allowed"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("killed by")
    for name, _, made in by_operator(report):
        if made:
            table.add_row(name, *_cells(tally(made)), _plugins(made))
    table.add_row("all", *_cells(report.counts), style="bold")
    _print_table(console, table)


def _cells(counts: Tally) -> list[Text]:
    survived = Text(format_count(counts.survived), "bold red" if counts.survived else "")
    return [
        Text(format_count(counts.total)),
        Text(format_count(counts.killed)),
        survived,
        Text(format_count(counts.allowed)),
    ]


def _plugins(mutants: Sequence[MutantResult]) -> Text:
    """Plugins with how many of the mutants each killed, most first."""
    killers = Counter(
        plugin for m in mutants for plugin in dict.fromkeys(map(_plugin, m.killed_by))
    )
    return Text(", ".join(f"{printable(name)} {count}" for name, count in killers.most_common()))


def _plugin(rule: str) -> str:
    return rule.partition(":")[0]


def _print_rules(report: MutationReport, console: Console) -> None:
    rules = by_rule(report)
    table = Table(box=None, pad_edge=False)
    table.add_column("killed", justify="right", no_wrap=True)
    table.add_column("alone", justify="right", no_wrap=True)
    table.add_column("rule")
    for rule, killed, alone in rules:
        if killed:
            table.add_row(format_count(killed), format_count(alone), printable(rule))
    _print_table(console, table)
    idle = [printable(rule) for rule, killed, _ in rules if not killed]
    if idle:
        console.print()
        print_prose(console, f"Killed nothing: {join_words(idle)}.", style="dim")


def _print_table(console: Console, table: Table) -> None:
    console.print()
    for line in console.render_lines(table, pad=False):
        text = Text.assemble(*((piece.text, piece.style or "") for piece in line))
        print_line(console, text)


def _print_survivors(report: MutationReport, console: Console) -> None:
    """What survived, by what would have killed it."""
    groups: dict[str, list[MutantResult]] = {}
    for mutant in report.mutants:
        if mutant.fate == "survived":
            groups.setdefault(_cure_text(mutant.cure, fixture=report.fixture), []).append(mutant)
    for cure, mutants in groups.items():
        console.print()
        for mutant in mutants:
            what = f"{mutant.operator}: {printable(mutant.what)}"
            print_prose(console, what, indent=10, label=Text("survived", "bold red"))
        print_prose(console, cure, indent=10)


def _cure_text(cure: Cure | None, *, fixture: bool) -> str:
    if cure is None:
        return "No check of a contract was found that tells it from the golden trace."
    value = json.dumps(cure.value, ensure_ascii=False) if fixture else flow(cure.value)
    return f"Would be killed by {printable(place_of(cure, fixture=fixture))}: {printable(value)}"


def _print_allowed(report: MutationReport, console: Console, *, full: bool) -> None:
    allowed = [mutant for mutant in report.mutants if mutant.fate == "allowed"]
    if not allowed:
        return
    console.print()
    if not full:
        counts = Counter(_freedom(report, mutant) for mutant in allowed)
        said = [f"{freedom} ({count})" for freedom, count in counts.most_common()]
        print_prose(
            console, f"Allowed by {join_words(said, most=5)}; all with --verbose.", style="dim"
        )
        return
    for mutant in allowed:
        what = f"{mutant.operator}: {printable(mutant.what)}"
        label = Text("allowed", "cyan")
        print_prose(console, f"{what}, by {_freedom(report, mutant)}", indent=10, label=label)


def _freedom(report: MutationReport, mutant: MutantResult) -> str:
    return printable(_as_written(mutant.freedom or "", fixture=report.fixture))


def _conclusion(counts: Tally) -> Text:
    wrong = counts.killed + counts.survived
    style = "bold green" if not counts.survived else "bold yellow"
    return Text.assemble(
        ("Kill rate ", "bold"),
        (format_percent(counts.rate), style),
        f": {format_count(counts.killed)} of {plural(wrong, 'mutant')} that the contract does not "
        f"allow. Of all {format_count(counts.total)} it is {format_percent(counts.rate_of_all)}.",
    )


# What is to be pasted.


_AS_IN_FIXTURES = (
    ("trajectory.ask_before_write", "expect.must_ask_before_write"),
    ("trajectory.writes", "expect.write_tools"),
    ("tools.forbidden", "expect.forbidden_tools"),
    ("final.schema", "expect.final_schema"),
    ("trajectory.", "expect."),
    ("final.", "expect."),
    ("budget.", "expect."),
)
"""Places in a contract, and where the same stands in a fixture; the first that fits."""


def place_of(cure: Cure, *, fixture: bool) -> str:
    """Where a check goes, as the file calls it; `[]` at its end is one item more."""
    return _as_written(cure.place, fixture=fixture)


def _as_written(text: str, *, fixture: bool) -> str:
    for contract, own in _AS_IN_FIXTURES if fixture else ():
        if text.startswith(contract):
            return own + text.removeprefix(contract)
    return text


_PLAIN = re.compile(r"[A-Za-z_][\w./-]*")
_WORDS = frozenset(["true", "false", "yes", "no", "on", "off", "null", "y", "n"])


def flow(value: Any) -> str:
    """JSON data as YAML on one line, with quotes where YAML needs them."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(flow, value)) + "]"
    plain = isinstance(value, str) and value.isascii() and _PLAIN.fullmatch(value)
    if plain and value.casefold() not in _WORDS:
        return str(value)
    # Unlike JSON, YAML takes two halves of a character for two characters.
    return "".join(map(_escaped, json.dumps(value, ensure_ascii=False)))


def _escaped(char: str) -> str:
    if char.isprintable():
        return char
    return f"\\u{ord(char):04x}" if ord(char) < 0x10000 else f"\\U{ord(char):08x}"
