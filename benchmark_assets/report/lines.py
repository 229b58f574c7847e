"""Lines of text for a terminal, as all console reporters print them.

Belongs here: wrapping, indenting, and keeping lines free of what nobody sees. Does not belong
here: what a report says.
"""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

PROSE_COLUMNS = 100
"""Widest line of running text: longer ones are hard to read in a wide terminal."""


def print_prose(
    console: Console,
    text: str | Text,
    *,
    style: str = "",
    indent: int = 0,
    label: Text | None = None,
) -> None:
    """Print running text, wrapped; nothing in it is read as markup.

    Args:
        console: Where to; its width is kept to, and it decides about colour.
        text: What to print.
        style: Style of what has none of its own.
        indent: Spaces before each line.
        label: Stands in the first line's indentation.
    """
    whole = text if isinstance(text, Text) else Text(text)
    whole.stylize_before(style)
    width = max(1, min(console.width, PROSE_COLUMNS) - indent)
    before = Text() if label is None else label.copy()
    before.pad_right(indent - before.cell_len)
    for line in whole.wrap(console, width):
        print_line(console, before + line)
        before = Text(" " * indent)


def print_line(console: Console, line: Text) -> None:
    """Print a line that fits, without the spaces that pad it: output is diffed and grepped."""
    line.rstrip()
    console.print(line, markup=False, highlight=False, no_wrap=True)
