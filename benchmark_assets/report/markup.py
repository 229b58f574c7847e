"""Building HTML and SVG in which foreign text cannot become markup.

Belongs here: elements, escaping, and data embedded in a script tag. Does not belong here: any
particular page (`html`, `scatter`).
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from benchmark_assets.report.text import printable


class Markup(str):
    """Text that is markup already; every other string is escaped where it is used."""

    __slots__ = ()


Child = str | Markup | Iterable["str | Markup"]

_VOID = frozenset({"br", "hr", "meta", "circle", "line", "path", "rect"})


def element(tag: str, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """Build one element.

    Args:
        tag: Its name.
        children: Text, which is escaped; markup, which is not; or an iterable of both.
        attributes: Values are escaped. `class_` means `class`, other underscores are hyphens;
            True gives a bare attribute, None and False none.
    """
    opening = "".join(_attribute(name, value) for name, value in attributes.items())
    if tag in _VOID:
        # A trailing slash is valid on void HTML elements and needed by SVG's.
        return Markup(f"<{tag}{opening}/>")
    return Markup(f"<{tag}{opening}>{join(*children)}</{tag}>")


def join(*children: Child) -> Markup:
    """Put pieces one after the other, escaping what is not markup."""
    return Markup("".join(_render(child) for child in children))


def script_data(json: bytes) -> Markup:
    r"""Make JSON safe inside a script tag, as JSON that decodes to the same value.

    `<`, `>`, `&` and the two line separators become `\u003c` and so on: no `</script>` and no
    `<!--` can occur.
    """
    text = json.decode()
    for char in "<>&\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)


def _render(child: Child) -> str:
    if isinstance(child, Markup):
        return child
    if isinstance(child, str):
        return escape(printable(child))
    return "".join(_render(item) for item in child)


def _attribute(name: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return f' {name}="{escape(printable(text))}"'
