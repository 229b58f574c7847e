"""The page: well formed, self-contained, unbroken by names, and true to its input."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html.parser import HTMLParser

import msgspec
import pytest

from benchmark_assets.model.standings import Standings
from benchmark_assets.report.html import render_html
from benchmark_assets.report.markup import Markup, element, join, script_data
from benchmark_assets.report.scatter import HEIGHT, WIDTH, Point, scatter
from benchmark_assets.report.text import format_money, format_percent, named, printable

VOID = {"meta", "br", "hr", "circle", "line", "path", "rect"}


class Page(HTMLParser):
    """Reads a page as a browser would, complaining about every unbalanced tag."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.words: list[str] = []
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open, f"never closed: {self.open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"repeated attribute in {tag}: {names}"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        elif tag == "script":
            self.scripts.append("")
        elif tag == "span" and self._within("td", "th") and self.tables[-1][-1][-1]:
            self.tables[-1][-1][-1] += "|"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._within("script"):
            self.scripts[-1] += data
        elif not self._within("style"):
            self.words.append(data)
            if self._within("td", "th"):
                self.tables[-1][-1][-1] += data

    def _within(self, *tags: str) -> bool:
        return any(tag in self.open for tag in tags)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


def read(standings: Standings, title: str = "Leaderboard") -> Page:
    """Render and parse."""
    return Page(render_html(standings, title=title))


def test_page_is_balanced_and_has_one_of_each(any_standings: Standings) -> None:
    page = read(any_standings)
    for tag in ("html", "head", "body", "h1", "main"):
        assert page.count(tag) == 1, tag
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = [attrs["href"] for tag, attrs in page.tags if tag == "a"]
    assert links
    assert all(link and link.startswith("#") and link[1:] in ids for link in links)


def test_page_needs_no_network(any_standings: Standings) -> None:
    text = render_html(any_standings, title="t")
    names = {"src", "srcset", "data", "action", "poster", "xlink:href", "background"}
    page = Page(text)
    assert not [attrs for _, attrs in page.tags if names & set(attrs)]
    assert page.count("link") == page.count("img") == page.count("iframe") == 0
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    assert not re.search(r"url\(|@import|@font-face", style.group(1))
    # The only addresses are those in names that came with the standings.
    found = re.findall(r"https?://[^\s\"<&)]*", text)
    assert set(found) <= {"http://evil.example"}


def test_policy_allows_the_page_its_own_script_only(scenario: Callable[[str], Standings]) -> None:
    page = read(scenario("hostile"))
    policy = next(a["content"] for t, a in page.tags if t == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    data, script = page.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    json.loads(data)


def test_hostile_names_stay_text(scenario: Callable[[str], Standings]) -> None:
    standings = scenario("hostile")
    title = "</title><script>alert(2)</script>"
    text = render_html(standings, title=title)
    page = Page(text)
    # As many tags as with harmless names: nothing in a name became one.
    assert page.count("script") == 2
    assert page.count("img") == page.count("b") - 1 == 0
    assert not [attrs for _, attrs in page.tags if any(name.startswith("on") for name in attrs)]
    words = "".join(page.words)
    assert title in words
    for model in standings.models:
        assert named(model.model) in words
    assert not re.search("[\u2028\u2029\u202e\x1b\x07]", text)
    text.encode()


def test_embedded_data_is_the_standings(any_standings: Standings) -> None:
    page = read(any_standings)
    data = json.loads(page.scripts[0])
    assert data == msgspec.to_builtins(any_standings, str_keys=True) or data == json.loads(
        json.dumps(msgspec.to_builtins(any_standings))
    )
    assert "<" not in page.scripts[0]


def test_script_data_round_trips() -> None:
    value = "</script><!--<script>&\u2028\u2029\"'"
    data = script_data(json.dumps(value, ensure_ascii=False).encode())
    assert not re.search("[<>&\u2028\u2029]", data)
    assert json.loads(data) == value


def test_equal_standings_give_equal_pages(scenario: Callable[[str], Standings]) -> None:
    first, second = scenario("crowd"), scenario("crowd")
    assert first is not second
    assert render_html(first, title="t") == render_html(second, title="t")


def test_tables_are_accessible(any_standings: Standings) -> None:
    page = read(any_standings)
    assert page.count("caption") == page.count("table") == len(page.tables)
    heads = [attrs for tag, attrs in page.tags if tag == "th"]
    assert all(attrs.get("scope") in ("col", "row") for attrs in heads)
    for rows in page.tables:
        assert {len(row) for row in rows} == {len(rows[0])}


def test_numbers_are_the_given_ones(scenario: Callable[[str], Standings]) -> None:
    standings = scenario("crowd")
    page = read(standings)
    reliability, usage = page.tables[:2]
    for row, costs, model in zip(reliability[1:], usage[1:], standings.models, strict=True):
        assert model.shared is not None
        counts = model.figures.pass_rate.counts
        assert row[:5] == [
            f"{model.rank}=",
            model.model,
            format_percent(model.shared.macro) + "|" * row[2].count("|"),
            format_percent(model.figures.pass_rate.macro),
            f"{format_percent(model.figures.pass_rate.micro)}|14/16",
        ]
        assert row[5:9] == [
            str(counts.resolved),
            str(counts.unresolved),
            str(counts.unchecked),
            str(counts.error),
        ]
        assert row[9:] == [format_percent(item.value) for item in model.figures.pass_hat_k]
        cost = model.figures.cost_usd
        shown = format_money(cost.per_run)
        partial = f"{shown}*|over {cost.known} of 20 runs"
        assert costs[2] == (shown if cost.known == cost.runs else partial)
    matrix = page.tables[3]
    assert [row[0].split("|")[0] for row in matrix[1:]] == [c.name for c in standings.contracts]
    rates = {(cell.contract, cell.model): cell.figures.pass_rate for cell in standings.cells}
    for row, contract in zip(matrix[1:], standings.contracts, strict=True):
        for text, model in zip(row[1:], standings.models, strict=True):
            rate = rates.get((contract.contract, model.model))
            expected = "no run" if rate is None else f"{format_percent(rate.macro)}|14/16"
            assert text == expected


def test_unknown_is_said_never_zero(scenario: Callable[[str], Standings]) -> None:
    rows = read(scenario("plain")).tables[1]
    assert rows[2][2:4] == ["not recorded", "not recorded"]
    assert rows[3][2] == "~$0.0412*|over 7 of 20 runs; 5 of 7 runs estimated"
    assert rows[4][3] == "no resolved run among those that record it"
    assert rows[4][6:] == ["not recorded", "not recorded"]


def test_unknown_cells_have_no_sort_key(scenario: Callable[[str], Standings]) -> None:
    page = read(scenario("plain"))
    absent = [attrs for tag, attrs in page.tags if tag == "td" and attrs.get("class") == "none"]
    assert absent
    assert not [attrs for attrs in absent if "data-v" in attrs]


def test_headline_and_provenance(scenario: Callable[[str], Standings]) -> None:
    standings = scenario("plain")
    words = "".join(read(standings).words)
    assert (
        "openai/gpt-4o-2024-11-20 and claude-sonnet-4.5 tie for first: each resolves 87.5% of "
        "runs, averaged over the 4 contracts (16 tasks) that all 3 ranked models share. "
        "Next: qwen3-235b at 50.0%."
    ) in words
    assert "The headline is the pass rate" in words
    assert "stale: contract changed" in words
    assert "mystery: nothing under refunds 0 (4 tasks)" in words
    for text in (standings.edition, standings.engine, "2026-11-16 to 2026-11-29"):
        assert text in words
    for contract in standings.contracts:
        assert contract.sha256 in words
        assert contract.label in words


def test_nothing_to_rank(scenario: Callable[[str], Standings]) -> None:
    page = read(scenario("empty"))
    assert "No model to rank: no trace was judged by a contract." in "".join(page.words)
    assert not page.tables


def test_markup_escapes_what_is_not_markup() -> None:
    made = element(
        "a", "<&>", Markup("<b>x</b>"), ["\u2028", Markup("&amp;")], title="\"'<", x=None
    )
    assert made == ('<a title="&quot;&#x27;&lt;">&lt;&amp;&gt;<b>x</b>\\u2028&amp;</a>')
    assert join("a", Markup("<i>")) == "a<i>"
    assert element("circle", r=1.5, hidden=True, on=False) == '<circle r="1.5" hidden/>'


@pytest.mark.parametrize(
    "costs",
    [[0.0], [0.02], [0.01, 0.02, 0.03], [0.0001, 0.5, 12.0], [0.0, 5.0], [1e-7, 1e5], [3.0] * 9],
)
def test_scatter_keeps_everything_inside(costs: list[float]) -> None:
    points = [
        Point(f"model-{index}", cost, index / max(1, len(costs) - 1), format_money(cost))
        for index, cost in enumerate(costs)
    ]
    picture = scatter(points, title="t", x_label="x", y_label="y")
    circles = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', picture)
    assert len(circles) == len(costs)
    assert all(0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT for x, y in circles)
    xs = [float(x) for x, _ in circles]
    assert xs == sorted(xs)
    assert all(point.name in picture for point in points)
    ticks = re.findall(r">\$([\d.]+)</text>", picture)
    assert len(ticks) >= 2
    assert [float(tick) for tick in ticks] == sorted({float(tick) for tick in ticks})


def test_scatter_needs_a_point() -> None:
    with pytest.raises(ValueError, match="at least one point"):
        scatter([], title="t", x_label="x", y_label="y")


def test_printable_title(scenario: Callable[[str], Standings]) -> None:
    assert printable("a\nb") in "".join(read(scenario("empty"), "a\nb").words)


def test_what_ledgers_do_to_tokens_and_costs(scenario: Callable[[str], Standings]) -> None:
    text = render_html(scenario("reported"), title="t")
    page = Page(text)
    usage = next(t for t in page.tables if "Cost per run" in t[0])
    cells = {row[1].partition("|")[0]: row[2:6] for row in usage[1:]}
    assert cells["honest"] == cells["plain"] == ["$0.0412", "$0.0618", "12.3k", "17.6k"]
    assert cells["liar"] == ["withheld: fidelity 0.62"] * 4
    assert cells["partly"][0] == "$0.0412?|fidelity 1.00: 4 NoTruth"
    trusted = next(t for t in page.tables if "Fidelity" in t[0])
    rows = {row[0]: row[1:] for row in trusted[1:]}
    assert rows["liar"][:6] == ["FAIL", "0.62", "1,200", "0", "30", "0"]
    assert rows["liar"][6:] == ["2,400/2,500", "87.5%", "1,230 of 1,500", "30 TokenMismatch"]
    assert "Named are 3 of 30." in text
    assert rows["partly"][5] == "2"
    assert text.count("495 of 550 tokens not reported") >= 3
    assert "liar (cost withheld: fidelity 0.62)" in text
