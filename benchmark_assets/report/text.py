"""Single values as people read them.

Belongs here: formatting a rate, an amount, a count, a duration, a date or a name, without
knowing where it is shown. Does not belong here: what a missing figure means (`view`), or
escaping for a medium (`markup`, `markdown`).

None always gives `UNKNOWN`, never a zero.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

UNKNOWN = "–"
"""What an unknown value reads as."""

EDITION_CHARS = 12
"""How much of a content hash is shown to people; 48 bits name an edition well enough."""

_ELLIPSIS = "…"
_SCALES = ((1e3, "k"), (1e6, "M"))


def format_percent(rate: float | None) -> str:
    """Format a fraction in [0, 1] with one decimal: `87.5%`.

    Only a rate that is 0 or 1 reads `0.0%` or `100.0%`: one that would merely round to it
    reads `<0.1%` or `>99.9%`, since "always" and "almost always" are different answers.
    """
    if rate is None:
        return UNKNOWN
    # A mean of exact ones may be off by a few units in the last place.
    if 1e-9 < rate < 0.0005:
        return "<0.1%"
    if 0.9995 <= rate < 1 - 1e-9:
        return ">99.9%"
    return f"{rate * 100:.1f}%"


def format_percent_range(low: float, high: float) -> str:
    """Format two fractions in [0, 1] as a range in percent: `81.2–92.3%`."""
    return f"{low * 100:.1f}–{high * 100:.1f}%"


def format_level(level: float) -> str:
    """Format a confidence level: `95%`, `99.5%`."""
    return f"{level * 100:g}%"


def format_money(usd: float | None) -> str:
    """Format US dollars: three significant digits below $1, cents below $100, then whole.

    Zero is `$0`: a run that is known to have cost nothing.
    """
    if usd is None:
        return UNKNOWN
    if usd < 0:
        return f"-{format_money(-usd)}"
    if usd == 0:
        return "$0"
    if usd < 1e-6:
        return "<$0.000001"
    # The scale is chosen from the rounded value, so that 99.996 does not read "$100.00".
    if round(usd) >= 1_000_000:
        return f"${usd / 1e6:.2f}M"
    if round(usd, 2) >= 100:
        return f"${usd:,.0f}"
    if usd >= 0.9995:
        return f"${usd:.2f}"
    decimals = 3
    while decimals < 8 and round(usd, decimals) < 10.0 ** (2 - decimals):
        decimals += 1
    return f"${usd:.{decimals}f}"


def format_tokens(tokens: float | None) -> str:
    """Format a token count or a mean of such: `850`, `12.3k`, `1.2M`, `4.0B`."""
    if tokens is None:
        return UNKNOWN
    if 0 < tokens < 0.5:
        return "<1"
    if round(tokens) < 1000:
        return f"{tokens:.0f}"
    for scale, suffix in _SCALES:
        # 999,960 is 1.0M, not 1000.0k.
        if round(tokens / scale, 1) < 1000:
            return f"{tokens / scale:.1f}{suffix}"
    return f"{tokens / 1e9:,.1f}B"


def format_duration(milliseconds: int | None) -> str:
    """Format a duration in milliseconds: `850 ms`, `12.3 s`, `2 m 05 s`, `1 h 02 m`, `3 d 04 h`."""
    if milliseconds is None:
        return UNKNOWN
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 59_950:
        return f"{milliseconds / 1000:.1f} s"
    seconds = (milliseconds + 500) // 1000
    if seconds < 3600:
        return f"{seconds // 60} m {seconds % 60:02d} s"
    minutes = (seconds + 30) // 60
    if minutes < 24 * 60:
        return f"{minutes // 60} h {minutes % 60:02d} m"
    hours = (minutes + 30) // 60
    return f"{hours // 24} d {hours % 24:02d} h"


def format_count(number: int) -> str:
    """Format a whole number with thousands separated: `12,345`."""
    return f"{number:,}"


def format_dates(first: str | None, last: str | None) -> str:
    """Format a span of ISO days: `2026-11-16 to 2026-11-29`, or the one day it is."""
    days = [day for day in (first, last) if day]
    if not days:
        return UNKNOWN
    return days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"


def format_hash(digest: str) -> str:
    """Shorten a hash in hex to what people compare by eye."""
    return digest[:EDITION_CHARS] or UNKNOWN


def format_ranks(ranks: Sequence[int | None]) -> list[str]:
    """Format the ranks of one list: `1`, shared ones as `1=`, and `UNKNOWN` for unranked."""
    return [
        UNKNOWN if rank is None else f"{rank}=" if ranks.count(rank) > 1 else str(rank)
        for rank in ranks
    ]


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Count a noun: `1 run`, `2 runs`, `1,200 tasks`."""
    return f"{format_count(number)} {noun if number == 1 else nouns or noun + 's'}"


def join_words(words: Sequence[str], *, most: int | None = None) -> str:
    """List words as in a sentence: `a`, `a and b`, `a, b and c`; beyond `most`, count the rest."""
    shown = list(words)
    if most is not None and len(shown) > most:
        shown = [*shown[:most], f"{format_count(len(words) - most)} more"]
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def printable(text: str) -> str:
    r"""Make a foreign string safe to show on one line.

    Control characters, line separators, bidirectional overrides and lone surrogates become
    visible escapes such as `\x1b` or `\u2028`; other white space becomes a space. What remains
    can neither move a cursor nor reorder the text around it.
    """
    return "".join(_visible(char) for char in text)


def named(name: str) -> str:
    """Make the name of a model or contract safe to show; an empty one says that it is empty."""
    return printable(name) or "(no name)"


def shorten(text: str, most: int) -> str:
    """Cut the middle out of a text longer than `most` characters: both ends of names matter."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 2
    return text[: most - 1 - tail] + _ELLIPSIS + (text[-tail:] if tail else "")


def _visible(char: str) -> str:
    if char.isprintable():
        return char
    if unicodedata.category(char) == "Zs":
        return " "
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
