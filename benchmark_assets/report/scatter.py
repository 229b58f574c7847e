"""Cost against reliability as a small picture in SVG.

Belongs here: scales, ticks and the placing of labels. Does not belong here: which figures of
a model are compared; the caller says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmark_assets.report.markup import Markup, element
from benchmark_assets.report.text import format_percent, named, shorten

WIDTH, HEIGHT = 560, 340
"""Size of the picture in its own units; it scales with the page."""

_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 24, 18, 46
_RADIUS = 5.5
_LABEL_CHARS = 26
_LABEL_HEIGHT = 14.0
_CHAR_WIDTH = 6.4
_LOG_RATIO = 8
"""Costs that differ by more than this are drawn on a logarithmic axis."""


class Point(NamedTuple):
    """One dot: `x` in US dollars, `y` a fraction in [0, 1]; `x_text` is how the page shows x."""

    name: str
    x: float
    y: float
    x_text: str


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )


class _Axis(NamedTuple):
    """The cost axis: its ends in dollars and whether it is logarithmic."""

    low: float
    high: float
    log: bool

    def place(self, value: float) -> float:
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return _LEFT + share * (WIDTH - _LEFT - _RIGHT)


def scatter(points: Sequence[Point], *, title: str, x_label: str, y_label: str) -> Markup:
    """Draw points; a label that would cover another one or a dot is left to the tooltip.

    Raises:
        ValueError: There is no point to draw.
    """
    if not points:
        raise ValueError("a scatter needs at least one point")
    axis = _axis([point.x for point in points])
    places = [(axis.place(point.x), _height(point.y)) for point in points]
    return element(
        "svg",
        element("title", title, id="scatter-title"),
        element(
            "desc",
            "; ".join(f"{p.name}: {p.x_text}, {format_percent(p.y)}" for p in points),
            id="scatter-desc",
        ),
        _grid(axis, x_label, y_label),
        (_dot(point, *place) for point, place in zip(points, places, strict=True)),
        _labels(points, places),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby="scatter-title scatter-desc",
        class_="scatter",
    )


def _axis(values: Sequence[float]) -> _Axis:
    low, high = min(values), max(values)
    if low > 0 and high / low > _LOG_RATIO:
        return _Axis(low / 1.3, high * 1.3, True)
    return _Axis(0.0, high * 1.15 or 1.0, False)


def _height(share: float) -> float:
    return HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM)


def _ticks(axis: _Axis) -> list[float]:
    """Choose round costs along the axis: 1, 2 or 5 times a power of ten."""
    if axis.log:
        powers = range(math.floor(math.log10(axis.low)), math.ceil(math.log10(axis.high)) + 1)
        steps: Sequence[float] = (1, 2, 5) if axis.high / axis.low < 300 else (1,)
        # Division keeps decimal fractions as they are written: 2 / 100, not 2 * 0.01.
        ticks = [s * 10.0**p if p >= 0 else s / 10.0**-p for p in powers for s in steps]
        return [tick for tick in ticks if axis.low <= tick <= axis.high]
    rough = axis.high / 5
    base = 10.0 ** math.floor(math.log10(rough))
    step = next(step * base for step in (1, 2, 5, 10) if step * base >= rough)
    return [index * step for index in range(int(axis.high / step) + 1)]


def _dollars(value: float) -> str:
    text = f"{value:.10f}".rstrip("0").rstrip(".")
    return f"${text}"


def _grid(axis: _Axis, x_label: str, y_label: str) -> Markup:
    bottom, right = HEIGHT - _BOTTOM, WIDTH - _RIGHT
    parts: list[Markup] = []
    for quarter in range(5):
        y = _height(quarter / 4)
        parts.append(_line(_LEFT, y, right, y))
        parts.append(_text(f"{quarter * 25}%", _LEFT - 8, y + 4, "end"))
    for tick in _ticks(axis):
        x = axis.place(tick)
        parts.append(_line(x, bottom, x, bottom + 4))
        parts.append(_text(_dollars(tick), x, bottom + 18, "middle"))
    scale = f"{x_label} (logarithmic)" if axis.log else x_label
    parts.append(_text(scale, (_LEFT + right) / 2, HEIGHT - 6, "middle", "axis"))
    parts.append(
        element(
            "text",
            y_label,
            class_="axis",
            text_anchor="middle",
            transform=f"translate(12 {_number((_TOP + bottom) / 2)}) rotate(-90)",
        )
    )
    return element("g", parts, class_="grid")


def _dot(point: Point, x: float, y: float) -> Markup:
    tip = f"{point.name}: {point.x_text}, {format_percent(point.y)}"
    circle = element("circle", cx=_number(x), cy=_number(y), r=_RADIUS)
    return element("g", element("title", tip), circle, class_="dot")


def _labels(points: Sequence[Point], places: Sequence[tuple[float, float]]) -> Markup:
    taken = [_Box(x - _RADIUS, y - _RADIUS, x + _RADIUS, y + _RADIUS) for x, y in places]
    frame = _Box(_LEFT, 0, WIDTH, HEIGHT - _BOTTOM + 4)
    drawn: list[Markup] = []
    for point, (x, y) in zip(points, places, strict=True):
        text = shorten(named(point.name), _LABEL_CHARS)
        # Wide scripts take about two columns a character.
        width = _CHAR_WIDTH * sum(1 if ord(char) < 0x1100 else 2 for char in text)
        middle = y - _LABEL_HEIGHT / 2
        for left, top, anchor in (
            (x + 9, middle, "start"),
            (x - 9 - width, middle, "end"),
            (x - width / 2, y - 9 - _LABEL_HEIGHT, "middle"),
            (x - width / 2, y + 9, "middle"),
        ):
            box = _Box(left, top, left + width, top + _LABEL_HEIGHT)
            inside = box.left >= frame.left and box.right <= frame.right
            inside = inside and box.top >= frame.top and box.bottom <= frame.bottom
            if inside and not any(box.meets(other) for other in taken):
                taken.append(box)
                at = {"start": box.left, "end": box.right, "middle": x}[anchor]
                drawn.append(_text(text, at, box.top + 11, anchor))
                break
    return element("g", drawn, class_="labels", aria_hidden="true")


def _line(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return element("line", x1=_number(x1), y1=_number(y1), x2=_number(x2), y2=_number(y2))


def _text(text: str, x: float, y: float, anchor: str, class_: str | None = None) -> Markup:
    return element("text", text, x=_number(x), y=_number(y), text_anchor=anchor, class_=class_)


def _number(value: float) -> str:
    """Write a coordinate with one decimal: the same on every machine."""
    return f"{value:.1f}"
