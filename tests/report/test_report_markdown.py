"""The Markdown table and the JSON: escaped, complete, and true to their input."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import msgspec

from benchmark_assets.model.standings import Standings
from benchmark_assets.report.machine import standings_json
from benchmark_assets.report.markdown import escape, standings_markdown


def rows(text: str) -> list[list[str]]:
    """Split the table into cells the way GitHub does: at every pipe that is not escaped."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def test_table(scenario: Callable[[str], Standings]) -> None:
    head, _, first, second, third, last = rows(standings_markdown(scenario("plain")))
    assert head == [
        "Rank",
        "Model",
        "Pass rate",
        "Pooled",
        "95% interval",
        "Cost per resolved",
        "Tokens per run",
        "Median duration",
    ]
    assert first == [
        "1=",
        "openai/gpt-4o-2024-11-20",
        "87.5%",
        "87.5%",
        "64.0–96.5%",
        "$0.0618",
        "12.3k",
        "12.3 s",
    ]
    assert second[5] == "–"
    assert third[5] == r"\~$0.0618\*"
    assert last[:3] == ["–", "mystery", "n/a"]


def test_marks_are_explained(scenario: Callable[[str], Standings]) -> None:
    text = standings_markdown(scenario("plain"))
    assert "\n– not recorded\n" in text
    assert r"\* over 7 of 20 runs that record it (cost per resolved: qwen3-235b)" in text
    assert r"\~ estimated from prices for 5 of 7 runs" in text


def test_names_cannot_break_out(any_standings: Standings) -> None:
    text = standings_markdown(any_standings)
    assert {len(row) for row in rows(text)} <= {8}
    assert text.count("|") >= len(rows(text)) * 9
    assert not re.search(r"[<>]", text)
    assert not re.search(r"(?<!\\)[`\[\]]", text)
    assert "://" not in text
    text.encode()


def test_escape() -> None:
    assert escape("a|b <i> `c` *d* _e_ [f](http://g) \\ & ~h~ www.i\n") == (
        r"a\|b &lt;i&gt; \`c\` \*d\* \_e\_ \[f\](http&#58;//g) \\ &amp; \~h\~ www&#46;i\\x0a"
    )
    assert escape("qwen:free gpt-4.1") == "qwen:free gpt-4.1"


def test_limit_counts_the_rest_and_keeps_ties(scenario: Callable[[str], Standings]) -> None:
    text = standings_markdown(scenario("crowd"), limit=1)
    assert len(rows(text)) == 3
    assert rows(text)[2][0] == "1="
    assert "… and 49 models more." in text
    assert len(rows(standings_markdown(scenario("crowd")))) == 52
    assert rows(standings_markdown(scenario("crowd"), limit=0)) == []


def test_empty(scenario: Callable[[str], Standings]) -> None:
    text = standings_markdown(scenario("empty"))
    assert text.startswith("No model to rank")
    assert "5 traces in: 0 judged, 5 matched by no contract." in text


def test_json_reads_back(scenario: Callable[[str], Standings]) -> None:
    for name in ("plain", "empty", "crowd"):
        data = standings_json(scenario(name))
        assert msgspec.json.decode(data, type=Standings) == scenario(name)
        assert data == standings_json(scenario(name))
        assert data.endswith(b"}\n")
        assert b'\n  "models": [' in data


def test_json_of_lone_surrogates_is_still_json(scenario: Callable[[str], Standings]) -> None:
    standings = scenario("hostile")
    models = json.loads(standings_json(standings))["models"]
    assert [item["model"] for item in models] == [item.model for item in standings.models]


def test_unknown_is_null(scenario: Callable[[str], Standings]) -> None:
    cost = json.loads(standings_json(scenario("plain")))["models"][1]["figures"]["cost_usd"]
    assert cost["per_run"] is None
    assert cost["known"] == 0


def test_what_ledgers_do_to_tokens_and_costs(scenario: Callable[[str], Standings]) -> None:
    text = standings_markdown(scenario("reported"))
    found = {row[1]: row[5:7] for row in rows(text)[2:]}
    assert found["liar"] == ["withheld", "withheld"]
    assert found["partly"] == ["$0.0618?", "12.3k?"]
    assert "withheld: fidelity 0.62 (cost per resolved, tokens per run: liar)" in text
