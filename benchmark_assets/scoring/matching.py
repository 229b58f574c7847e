"""Comparing what a contract expects with what a trace holds: names, values, texts.

Belongs here: globs over tool names, argument matchers, text normalisation, and saying in words
where two values part. Does not belong here: which values a plugin compares.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from benchmark_assets.model.identity import value_hashes
from benchmark_assets.model.matchers import MATCHERS

SHOWN_CHARACTERS = 200
"""How much of a value is quoted in a check: enough to recognise it, short enough for a table."""

HASH_DIGITS = 16
"""Least hex digits of a hash that are compared: 64 bits."""

Match = Callable[[str], bool]


@lru_cache(maxsize=4096)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(pattern))


def any_glob(patterns: Sequence[str]) -> Match:
    """Return a test whether a name fits one of the globs; case matters.

    A glob fits itself, so that the name of a tool does, whatever characters are in it.
    """
    return _any_glob(tuple(patterns))


@lru_cache(maxsize=4096)
def _any_glob(patterns: tuple[str, ...]) -> Match:
    exact = frozenset(patterns)
    globs = tuple(_glob(p) for p in patterns if any(c in p for c in "*?["))
    if not globs:
        return exact.__contains__

    @lru_cache(maxsize=1024)
    def fits(name: str) -> bool:
        return name in exact or any(glob.match(name) for glob in globs)

    return fits


def glob_escape(text: str) -> str:
    """A text as a glob that fits it and nothing else."""
    return re.sub(r"([*?[])", r"[\1]", text)


def show(value: Any) -> str:
    """A value as people read it in a check: JSON, cut at `SHOWN_CHARACTERS`."""
    text = value if isinstance(value, str) else None
    if text is None:
        try:
            text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        except (TypeError, ValueError):
            text = repr(value)
    else:
        text = f"'{text}'"
    return text if len(text) <= SHOWN_CHARACTERS else text[: SHOWN_CHARACTERS - 1] + "…"


_THOUSANDS = re.compile(
    "(?<=[0-9])[,\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}'](?=[0-9]{3}(?![0-9]))"
)
_SPACES = re.compile(r"\s+")


def plain_text(text: str) -> str:
    """Normalise a text for `contains`: case folded, white space folded, `1,628` as `1628`."""
    return _SPACES.sub(" ", _THOUSANDS.sub("", text)).casefold().strip()


def contains_text(text: str, part: str) -> bool:
    """Whether a text has a part in it, both as `plain_text` gives them, numbers being whole.

    `327` is in `327.00 dollars` and not in `13275`, `3271` or `327.5`.
    """
    start = text.find(part)
    while start >= 0:
        end = start + len(part)
        cut_before = part[:1].isdigit() and _DIGIT_END.search(text[max(start - 2, 0) : start])
        cut_after = part[-1:].isdigit() and _DIGIT_START.match(text, end)
        if not cut_before and not cut_after:
            return True
        start = text.find(part, start + 1)
    return False


_DIGIT_END = re.compile(r"[0-9][.,]?$")
_DIGIT_START = re.compile(r"[0-9]|[.,](?!0+(?![0-9]))[0-9]")


def is_matcher(value: Any) -> bool:
    """Whether an expected value is a matcher object rather than a literal one."""
    return (
        isinstance(value, dict)
        and not value.keys().isdisjoint(MATCHERS)
        and value.keys() <= _MATCHER_KEYS
    )


_MATCHER_KEYS = frozenset({*MATCHERS, "tol"})


def mismatch(expected: Any, actual: Any, path: str) -> str | None:
    """Compare a value with what is expected of it; None if it fits, else what differs, and where.

    A literal fits by value: lists in order, objects with the same keys, `5` and `5.0` alike,
    `true` and `1` not. Inside lists and objects, matchers may stand at any depth.

    Args:
        expected: A literal or a matcher as in a contract's `args`.
        actual: JSON data from a trace.
        path: How to name `actual` in the answer, such as `args.cabin`.
    """
    if is_matcher(expected):
        name = next(key for key in expected if key != "tol")
        return _MATCHER_FUNCTIONS[name](expected, actual, path)
    if isinstance(expected, dict):
        if not isinstance(actual, dict):
            return _differs(path, expected, actual)
        for key, item in expected.items():
            if key not in actual:
                return f"{path}.{key} is missing, expected {show(item)}"
            found = mismatch(item, actual[key], f"{path}.{key}")
            if found:
                return found
        unexpected = sorted(actual.keys() - expected.keys())
        return f"{path} has unexpected {', '.join(unexpected)}" if unexpected else None
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return _differs(path, expected, actual)
        if len(expected) != len(actual):
            return f"{path} has {len(actual)} items, expected {len(expected)}: {show(expected)}"
        for index, (item, value) in enumerate(zip(expected, actual, strict=True)):
            found = mismatch(item, value, f"{path}[{index}]")
            if found:
                return found
        return None
    return None if same_value(expected, actual) else _differs(path, expected, actual)


def same_value(expected: Any, actual: Any) -> bool:
    """Equality of JSON scalars: numbers by value, and a boolean is not a number."""
    if isinstance(expected, bool) or isinstance(actual, bool):
        return expected is actual
    if isinstance(expected, int | float) and isinstance(actual, int | float):
        return expected == actual
    return type(expected) is type(actual) and bool(expected == actual)


def _differs(path: str, expected: Any, actual: Any) -> str:
    return f"{path} is {show(actual)}, expected {show(expected)}"


def _any(expected: Any, actual: Any, path: str) -> str | None:
    return None


def _literal(expected: Any, actual: Any, path: str) -> str | None:
    wanted = expected["literal"]
    return None if _equal(wanted, actual) else _differs(path, wanted, actual)


def _equal(expected: Any, actual: Any) -> bool:
    """Equality of JSON data by value, in which nothing is a matcher."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return expected.keys() == actual.keys() and all(
            _equal(item, actual[key]) for key, item in expected.items()
        )
    if isinstance(expected, list) and isinstance(actual, list):
        return len(expected) == len(actual) and all(map(_equal, expected, actual))
    return same_value(expected, actual)


def _regex(expected: Any, actual: Any, path: str) -> str | None:
    text = actual
    if not isinstance(text, str):
        text = json.dumps(actual, ensure_ascii=False, sort_keys=True)
    if re.search(expected["regex"], text):
        return None
    return f"{path} is {show(actual)}, expected to match /{expected['regex']}/"


def _one_of(expected: Any, actual: Any, path: str) -> str | None:
    if any(mismatch(option, actual, path) is None for option in expected["one_of"]):
        return None
    return f"{path} is {show(actual)}, expected one of {show(expected['one_of'])}"


def _unordered(expected: Any, actual: Any, path: str) -> str | None:
    wanted = expected["unordered"]
    if not isinstance(actual, list):
        return f"{path} is {show(actual)}, expected a list of {show(wanted)} in any order"
    if len(actual) != len(wanted):
        return f"{path} has {len(actual)} items, expected {len(wanted)}: {show(wanted)}"
    lost = _unmatched(wanted, actual, path)
    return None if lost is None else f"{path} has no item that fits {show(wanted[lost])}"


def _unmatched(wanted: Sequence[Any], actual: Sequence[Any], path: str) -> int | None:
    """Pair each wanted item with an item of its own; return the index of one left over.

    Augmenting paths (Kuhn's algorithm): a greedy pairing could give a loose matcher the only
    item that fits a strict one. Breadth first, as long lists would exhaust Python's stack.
    """
    fits = [
        [j for j, value in enumerate(actual) if mismatch(item, value, path) is None]
        for item in wanted
    ]
    held: dict[int, int] = {}
    owner: dict[int, int] = {}
    return next((i for i in range(len(wanted)) if not pair_up(i, fits, held, owner)), None)


def pair_up(
    start: int, fits: Sequence[Sequence[int]], held: dict[int, int], owner: dict[int, int]
) -> bool:
    """Find one more item a partner of its own, rearranging others if need be; False if none.

    Items that have a partner keep one, and so do partners.

    Args:
        start: The item, without a partner so far.
        fits: Item → partners that would do.
        held: Item → partner; updated.
        owner: Partner → item; updated.
    """
    reached: dict[int, int] = {}
    queue = deque([start])
    free: int | None = None
    while queue and free is None:
        i = queue.popleft()
        for j in fits[i]:
            if j not in reached:
                reached[j] = i
                if j not in owner:
                    free = j
                    break
                queue.append(owner[j])
    if free is None:
        return False
    # Along the path, each takes the partner found for it and passes on the one it held.
    partner: int | None = free
    while partner is not None:
        i = reached[partner]
        owner[partner] = i
        given = held.get(i)
        held[i] = partner
        partner = given
    return True


def _approx(expected: Any, actual: Any, path: str) -> str | None:
    target, tol = expected["approx"], expected.get("tol", 1e-9)
    if isinstance(actual, int | float) and not isinstance(actual, bool):
        try:
            if abs(actual - target) <= tol:
                return None
        except OverflowError:
            pass  # An integer beyond all floats is near none of them.
    return f"{path} is {show(actual)}, expected {target} ± {tol}"


def _contains(expected: Any, actual: Any, path: str) -> str | None:
    part = expected["contains"]
    if isinstance(part, str) and isinstance(actual, str):
        ok = part in actual
    elif isinstance(part, dict) and not is_matcher(part):
        if not isinstance(actual, dict):
            return f"{path} is {show(actual)}, expected an object with {show(part)}"
        for key, item in part.items():
            if key not in actual:
                return f"{path}.{key} is missing, expected {show(item)}"
            found = mismatch(item, actual[key], f"{path}.{key}")
            if found:
                return found
        return None
    elif isinstance(actual, list):
        parts = part if isinstance(part, list) else [part]
        ok = len(parts) <= len(actual) and _unmatched(parts, actual, path) is None
    else:
        ok = False
    return None if ok else f"{path} is {show(actual)}, expected to contain {show(part)}"


def _sha256(expected: Any, actual: Any, path: str) -> str | None:
    prefix = expected["sha256"]
    if isinstance(actual, dict) and actual.keys() == {"sha256"}:
        # A recording in which the value was left out for its hash.
        held = str(actual["sha256"])
        shared = min(len(held), len(prefix))
        if shared >= HASH_DIGITS and held[:shared] == prefix[:shared]:
            return None
        return f"{path} was recorded as the hash {show(held)}, expected {prefix}"
    digests = value_hashes(actual)
    if any(digest.startswith(prefix) for digest in digests):
        return None
    return f"{path} has SHA-256 {digests[0][: len(prefix)]}, expected {prefix}"


def _ignore_case(expected: Any, actual: Any, path: str) -> str | None:
    text = expected["ignore_case"]
    if isinstance(actual, str) and actual.casefold() == text.casefold():
        return None
    return _differs(path, text, actual) + " in any case"


_MATCHER_FUNCTIONS: dict[str, Callable[[Any, Any, str], str | None]] = {
    "any": _any,
    "literal": _literal,
    "regex": _regex,
    "one_of": _one_of,
    "unordered": _unordered,
    "approx": _approx,
    "contains": _contains,
    "sha256": _sha256,
    "ignore_case": _ignore_case,
}


def args_mismatches(expected: dict[str, Any], mode: str, actual: Any) -> list[str]:
    """Compare a call's arguments with a rule's: everything that differs, nothing if they fit.

    Args:
        expected: `args` of a call rule.
        mode: `exact`, `subset`, `keys` or `ignore`.
        actual: The call's arguments; anything but an object has no arguments.
    """
    if mode == "ignore":
        return []
    if actual is None:
        actual = {}
    if not isinstance(actual, dict):
        return [f"args are {show(actual)}, expected an object"] if expected else []
    found = [f"args.{key} is missing" for key in expected if key not in actual]
    if mode != "keys":
        found += _value_mismatches(expected, actual)
    if mode == "exact":
        found += [f"args.{key} is not expected" for key in sorted(actual.keys() - expected.keys())]
    return found


def _value_mismatches(expected: dict[str, Any], actual: dict[str, Any]) -> Iterable[str]:
    for key, item in expected.items():
        if key in actual:
            found = mismatch(item, actual[key], f"args.{key}")
            if found:
                yield found
