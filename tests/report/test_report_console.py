"""The terminal form: it fits, it is plain in a pipe, and its numbers are those it was given."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from benchmark_assets.model.standings import Standings
from benchmark_assets.report.console import LISTED, print_standings
from benchmark_assets.report.text import format_money, format_percent, format_tokens

SNAPSHOT = Path(__file__).parent.parent / "data" / "report" / "standings-80.txt"


def render(standings: Standings, width: int = 80, *, matrix: bool | None = None) -> str:
    """Print into a pipe."""
    pipe = io.StringIO()
    print_standings(standings, Console(file=pipe, width=width), matrix=matrix)
    return pipe.getvalue()


def table(text: str, title: str) -> list[str]:
    """Give the lines of one table, from its title to the next empty line."""
    lines = text.splitlines()
    start = lines.index(title)
    end = next((i for i in range(start, len(lines)) if not lines[i]), len(lines))
    return lines[start:end]


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_no_line_is_too_wide_and_nothing_is_cut_off(any_standings: Standings, width: int) -> None:
    lines = render(any_standings, width, matrix=True).splitlines()
    assert max(map(cell_len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)
    rates = sum(line.count("pass^") for line in lines if line.lstrip().startswith("#"))
    ks = {item.k for model in any_standings.models for item in model.figures.pass_hat_k}
    assert rates == min(len(ks), 3)


@pytest.mark.parametrize("width", [44, 60, 80])
def test_columns_without_room_go_to_a_further_table(
    scenario: Callable[[str], Standings], width: int
) -> None:
    standings = scenario("crowd")
    lines = render(standings, width).splitlines()
    for model in standings.models[:3]:
        words = [word for line in lines if model.model in line for word in line.split()]
        for item in model.figures.pass_hat_k[:2]:
            assert format_percent(item.value) in words
        assert format_money(model.figures.cost_usd.per_resolved) + "*" in words
    assert ("Outcomes and repeated trials, continued" in lines) == (width < 80)


def test_a_pipe_gets_no_control_codes(any_standings: Standings) -> None:
    text = render(any_standings)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    text.encode()


def test_a_terminal_gets_styles_but_the_same_text(scenario: Callable[[str], Standings]) -> None:
    screen = io.StringIO()
    print_standings(
        scenario("plain"),
        Console(file=screen, width=80, force_terminal=True, color_system="truecolor"),
    )
    assert "\x1b[1m" in screen.getvalue()
    bare = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())
    assert bare == render(scenario("plain"))


def test_names_are_not_read_as_markup(scenario: Callable[[str], Standings]) -> None:
    assert "[bold red]markup[/bold red]" in render(scenario("hostile"))


def test_every_name_is_printed_whole_once(scenario: Callable[[str], Standings]) -> None:
    standings = scenario("hostile")
    joined = re.sub(r"\s+", "", "".join(table(render(standings, 500), "Reliability")))
    assert re.sub(r"\s", "", standings.models[6].model) in joined


def test_numbers_are_the_given_ones(scenario: Callable[[str], Standings]) -> None:
    standings = scenario("crowd")
    text = render(standings)
    reliability = table(text, "Reliability")[3:]
    usage = table(text, "Cost and speed")[4:]
    for index, model in enumerate(standings.models):
        assert model.shared is not None
        rate = model.figures.pass_rate
        assert reliability[index].split() == [
            f"{model.rank}=",
            model.model,
            format_percent(model.shared.macro),
            format_percent(rate.macro),
            format_percent(rate.micro),
        ]
        cost = model.figures.cost_usd
        star = "*" if cost.known < cost.runs else ""
        assert usage[index].split()[:5] == [
            f"{model.rank}=",
            model.model,
            format_money(cost.per_run) + star,
            format_money(cost.per_resolved) + star,
            format_tokens(model.figures.tokens.per_run),
        ]


def test_unknown_partial_and_estimated_are_marked_and_explained(
    scenario: Callable[[str], Standings],
) -> None:
    usage = table(render(scenario("plain")), "Cost and speed")
    tie, partial, unknown_time = usage[5], usage[6], usage[7]
    assert tie.split()[:4] == ["1=", "claude-sonnet-4.5", "–", "–"]
    assert partial.split()[2:4] == ["~$0.0412*", "~$0.0618*"]
    assert unknown_time.split()[-2:] == ["–", "–"]
    notes = usage[8:]
    assert notes[0] == "– not recorded"
    assert notes[1].startswith("* over 7 of 20 runs that record it (")
    assert notes[2].startswith("~ estimated from prices for 5 of 7 runs (")
    assert not re.search(r"\$0(?![.\d])", "\n".join(usage))


def test_why_there_is_no_interval(scenario: Callable[[str], Standings]) -> None:
    """A column that has nothing to show is not shown; why is said once."""
    text = " ".join(render(scenario("crowd")).split())
    assert "interval" not in " ".join(table(render(scenario("crowd")), "Reliability")[1].split())
    assert "No interval is given: tasks have up to 4 trials, which are not independent." in text


def test_long_lists_are_counted_not_dropped(scenario: Callable[[str], Standings]) -> None:
    text = render(scenario("crowd"))
    assert f"  and {30 - LISTED} more" in text
    assert f"  and {20 - LISTED} more" in text
    assert "vendor/model-00: nothing under 5 contracts; 15 tasks missing under 5" in text


def test_the_matrix_is_left_out_when_large_and_says_so(
    scenario: Callable[[str], Standings],
) -> None:
    assert "matrix of 50 models × 40 contracts is left out" in render(scenario("crowd"))
    assert "matrix of" not in render(scenario("plain"))
    assert "withheld" in "".join(
        table(render(scenario("plain")), "Pass rate by contract, resolved/scored")
    )


def test_nothing_to_rank(scenario: Callable[[str], Standings]) -> None:
    text = render(scenario("empty"))
    assert text.startswith("No model to rank: no trace was judged by a contract.\n")
    assert "5 traces in: 0 judged, 5 matched by no contract." in text
    assert "warning: no contract applied" in text
    assert render(scenario("unranked")).startswith("No model could be ranked: shares no task")


def test_snapshot(scenario: Callable[[str], Standings]) -> None:
    assert render(scenario("plain")) == SNAPSHOT.read_text("utf-8")


def test_what_ledgers_do_to_tokens_and_costs(scenario: Callable[[str], Standings]) -> None:
    text = render(scenario("reported"), 100)
    lines = [line for line in table(text, "Cost and speed") if line.startswith("1=")]
    usage = {line.split()[1]: line.split()[2:5] for line in lines}
    assert usage["honest"] == usage["plain"] == ["$0.0412", "$0.0618", "12.3k"]
    assert usage["liar"] == ["withheld"] * 3
    assert usage["partly"] == ["$0.0412?", "$0.0618?", "12.3k?"]
    assert "withheld: fidelity 0.62 (cost, cost per resolved, tokens: liar)" in text
    assert "? fidelity 1.00: 4 NoTruth (cost, cost per resolved, tokens: partly)" in text
    trusted = table(text, "Can tokens and costs be trusted?")
    rows = {line.split()[0]: line.split()[1:] for line in trusted if len(line.split()) > 1}
    assert rows["honest"] == ["PASS", "1.00", "42", "of", "42", "84/84"]
    assert rows["liar"][:5] == ["FAIL", "0.62", "1,230", "of", "1,500"]
    assert rows["liar"][5:] == ["2,400/2,500", "30", "TokenMismatch"]
    assert rows["partly"][:6] == ["WARN", "1.00", "6", "of", "6", "4/8"]
    assert "495 of 550 tokens not reported" in " ".join(text.split())


def test_without_ledgers_nothing_is_said_of_them(scenario: Callable[[str], Standings]) -> None:
    assert "trusted" not in render(scenario("plain"))


def test_marked_and_unmarked_figures_align(scenario: Callable[[str], Standings]) -> None:
    lines = table(render(scenario("reported"), 100), "Cost and speed")
    ends = {line.index("$0.0618") + len("$0.0618") for line in lines if "$0.0618" in line}
    assert len(ends) == 1
