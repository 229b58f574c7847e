"""How much work something is, counted and not timed: the same on every machine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def lines_run(work: Callable[[], Any]) -> int:
    """How many lines of Python are run by it."""
    count = 0

    def trace(_frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work: Callable[[int], Any], size: int) -> float:
    """How many times the work of one size that of twice the size is: 2 is linear, 4 quadratic."""
    work(size)  # what is only done once, or remembered, is done
    return lines_run(lambda: work(2 * size)) / lines_run(lambda: work(size))
