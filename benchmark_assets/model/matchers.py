"""Matchers: objects that stand for many values where a contract expects one.

Belongs here: which there are and what is wrong with one as written. Does not belong here:
comparing values with them (`scoring/matching`).
"""

from __future__ import annotations

import difflib
import re
from functools import lru_cache
from math import isfinite
from typing import Any

MATCHERS: tuple[str, ...] = (
    "any",
    "regex",
    "one_of",
    "unordered",
    "approx",
    "contains",
    "sha256",
    "ignore_case",
    "literal",
)
"""Keys that make an object in `args` a matcher instead of a literal object."""


def reads_as_matcher(value: Any) -> bool:
    """Whether some object in an argument's value is read as a matcher, or refused as nearly one.

    Such a value, meant as it stands, is written `{literal: value}`.
    """
    if isinstance(value, list):
        return any(map(reads_as_matcher, value))
    if not isinstance(value, dict):
        return False
    return (
        not value.keys().isdisjoint(MATCHERS)
        or _nearly(value) is not None
        or any(map(reads_as_matcher, value.values()))
    )


def _nearly(value: dict[str, Any]) -> str | None:
    """The matcher that an object's only key is a misspelling of; None if it is none."""
    if len(value) != 1:
        return None
    (key,) = value
    return None if key in MATCHERS else _near(key)


@lru_cache(maxsize=4096)
def _near(key: str) -> str | None:
    near = difflib.get_close_matches(key, MATCHERS, n=1, cutoff=0.8)
    return near[0] if near else None


def matcher_problems(value: Any, path: str) -> list[str]:
    """Return what is wrong with the matchers inside an expected argument value."""
    if isinstance(value, list):
        return [
            problem
            for index, item in enumerate(value)
            for problem in matcher_problems(item, f"{path}[{index}]")
        ]
    if not isinstance(value, dict):
        return []
    names = [key for key in value if key in MATCHERS]
    unknown = sorted(key for key in value if key not in (*MATCHERS, "tol"))
    if names and unknown:
        return [
            f"{path}: {', '.join(unknown)} beside {', '.join(names)}: no matcher has that key; "
            "for an object that only looks like one write {literal: …}"
        ]
    near = _nearly(value)
    if near:
        return [
            f"{path}: did you mean the matcher '{near}'? For an object with the key "
            f"'{unknown[0]}' write {{literal: …}}"
        ]
    if not names:
        return [
            problem
            for key, item in value.items()
            for problem in matcher_problems(item, f"{path}.{key}")
        ]
    if len(names) > 1 or ("tol" in value and names != ["approx"]):
        return [f"{path}: one matcher at a time, got {', '.join(sorted(value))}"]
    return _check_operand(names[0], value, path)


def _check_operand(name: str, value: dict[str, Any], path: str) -> list[str]:
    """Return what is wrong with one matcher's operand."""
    operand = value[name]
    if name == "any":
        return [] if operand is True else [f"{path}.any: only `true` makes sense here"]
    if name == "regex":
        if not isinstance(operand, str):
            return [f"{path}.regex: expected a text"]
        try:
            re.compile(operand)
        except re.error as error:
            return [f"{path}.regex: is not a regular expression: {error}"]
        return []
    if name in ("one_of", "unordered"):
        if not isinstance(operand, list) or (name == "one_of" and not operand):
            return [
                f"{path}.{name}: expected a list" + (" of at least one" if name == "one_of" else "")
            ]
        return matcher_problems(operand, f"{path}.{name}")
    if name == "approx":
        tol = value.get("tol", 0)
        numbers = all(
            isinstance(n, int | float) and not isinstance(n, bool) for n in (operand, tol)
        )
        return (
            []
            if numbers and tol >= 0 and all(map(isfinite, (operand, tol)))
            else [f"{path}: approx and tol are numbers, tol not negative"]
        )
    if name == "sha256":
        ok = isinstance(operand, str) and re.fullmatch(r"[0-9a-f]{16,64}", operand) is not None
        return [] if ok else [f"{path}.sha256: expected 16 to 64 lower-case hex digits"]
    if name == "ignore_case":
        return [] if isinstance(operand, str) else [f"{path}.ignore_case: expected a text"]
    if name == "contains":
        return matcher_problems(operand, f"{path}.contains")
    return []  # literal: anything
