"""Single values: what they read as at and around every boundary."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.report.text import (
    UNKNOWN,
    format_dates,
    format_duration,
    format_hash,
    format_level,
    format_money,
    format_percent,
    format_percent_range,
    format_ranks,
    format_tokens,
    join_words,
    named,
    plural,
    printable,
    shorten,
)


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (None, UNKNOWN),
        (0.0, "0.0%"),
        (1.0, "100.0%"),
        (0.875, "87.5%"),
        (2 / 3, "66.7%"),
        (0.9999, ">99.9%"),
        (0.0001, "<0.1%"),
        (sum([0.1] * 10), "100.0%"),
        (0.9994, "99.9%"),
        (0.0005, "0.1%"),
    ],
)
def test_percent(rate: float | None, text: str) -> None:
    assert format_percent(rate) == text


@given(st.integers(1, 9_999), st.integers(1, 10_000))
def test_only_certainty_reads_as_certainty(resolved: int, more: int) -> None:
    rate = resolved / (resolved + more)
    assert format_percent(rate) not in ("0.0%", "100.0%")


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, UNKNOWN),
        (0.0, "$0"),
        (0.0412, "$0.0412"),
        (0.41, "$0.410"),
        (0.00041, "$0.000410"),
        (0.0000012, "$0.00000120"),
        (1e-9, "<$0.000001"),
        (0.9994, "$0.999"),
        (0.9999, "$1.00"),
        (0.09999, "$0.100"),
        (1.0, "$1.00"),
        (12.345, "$12.35"),
        (99.99, "$99.99"),
        (99.996, "$100"),
        (1234.5, "$1,234"),
        (999_999.7, "$1.00M"),
        (2_500_000, "$2.50M"),
        (-0.5, "-$0.500"),
    ],
)
def test_money(usd: float | None, text: str) -> None:
    assert format_money(usd) == text


@given(st.floats(1e-6, 1e6))
def test_money_is_within_one_percent(usd: float) -> None:
    text = format_money(usd)
    shown = float(text.strip("$M").replace(",", "")) * (1e6 if text.endswith("M") else 1)
    assert shown == pytest.approx(usd, rel=0.0051)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (None, UNKNOWN),
        (0, "0"),
        (0.2, "<1"),
        (850, "850"),
        (12.4, "12"),
        (999.4, "999"),
        (999.6, "1.0k"),
        (12_340, "12.3k"),
        (999_940, "999.9k"),
        (999_960, "1.0M"),
        (1_234_567, "1.2M"),
        (4e9, "4.0B"),
    ],
)
def test_tokens(tokens: float | None, text: str) -> None:
    assert format_tokens(tokens) == text


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, UNKNOWN),
        (0, "0 ms"),
        (850, "850 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (12_340, "12.3 s"),
        (59_949, "59.9 s"),
        (59_950, "1 m 00 s"),
        (125_000, "2 m 05 s"),
        (3_599_499, "59 m 59 s"),
        (3_599_500, "1 h 00 m"),
        (3_720_000, "1 h 02 m"),
        (86_400_000, "1 d 00 h"),
        (273_600_000, "3 d 04 h"),
    ],
)
def test_duration(milliseconds: int | None, text: str) -> None:
    assert format_duration(milliseconds) == text


def test_dates() -> None:
    assert format_dates("2026-11-16", "2026-11-29") == "2026-11-16 to 2026-11-29"
    assert format_dates("2026-11-16", "2026-11-16") == "2026-11-16"
    assert format_dates(None, "2026-11-16") == "2026-11-16"
    assert format_dates(None, None) == UNKNOWN


def test_ranks_mark_ties() -> None:
    assert format_ranks([1, 1, 3, None, None]) == ["1=", "1=", "3", UNKNOWN, UNKNOWN]


def test_small_words() -> None:
    assert plural(1, "run") == "1 run"
    assert plural(0, "run") == "0 runs"
    assert plural(1200, "try", "tries") == "1,200 tries"
    assert join_words([]) == ""
    assert join_words(["a"]) == "a"
    assert join_words(["a", "b", "c"]) == "a, b and c"
    assert join_words(["a", "b", "c", "d"], most=2) == "a, b and 2 more"
    assert format_percent_range(0.64, 0.9651) == "64.0–96.5%"
    assert [format_level(level) for level in (0.95, 0.995)] == ["95%", "99.5%"]
    assert format_hash("0123456789abcdef") == "0123456789ab"
    assert format_hash("") == UNKNOWN
    assert named("") == "(no name)"


def test_shorten_keeps_both_ends() -> None:
    assert shorten("abcdefghij", 10) == "abcdefghij"
    assert shorten("abcdefghijk", 10) == "abcde…hijk"
    assert [len(shorten("x" * 50, most)) for most in range(1, 12)] == list(range(1, 12))


def test_printable_shows_what_would_move_or_reorder_text() -> None:
    assert printable("a\nb\x1b[31m\u2028\u202e\ud800\U000e0001") == (
        r"a\x0ab\x1b[31m\u2028\u202e\ud800\U000e0001"
    )
    assert printable("a\u00a0b 模型 é") == "a b 模型 é"


@given(st.text(st.characters()))
def test_printable_is_one_safe_line(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown.splitlines()) <= 1
    assert shown.encode().decode() == shown
    assert printable(shown) == shown
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", shown)
