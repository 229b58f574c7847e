"""What of a trace may be written down as it is; the rest is hashed or dropped before it is kept.

Belongs here: the allow-list, and what stands in for a value that is not on it. Does not belong
here: where in a trace values are (`record`).

A hash is that of a fixture's `value_hashes`: the first 16 hex digits of SHA-256 over canonical
JSON in ASCII, so that a hidden argument can still be compared. It stands as `{"sha256": "…"}` where a value
stood, and as `sha256:…` where a text did. Whoever can guess a value can check the guess by its
hash: for values of few possibilities, such as phone numbers, take `drop`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from benchmark_assets.model.identity import value_hash as whole_hash
from benchmark_assets.recorder.plain import Plain, pointer

Others = Literal["hash", "drop"]
Texts = Literal["keep", "hash", "drop"]

HASH_DIGITS = 16


def value_hash(value: Any) -> str:
    r"""The first 16 hex digits of SHA-256 over the canonical JSON of a value that is JSON data.

    Of the two forms that graders take it is the published one: JSON in ASCII, `\u00e9` for é.
    """
    return whole_hash(value)[:HASH_DIGITS]


def hidden_text(text: str) -> str:
    """What stands where a text stood that is hashed: `sha256:…`."""
    return f"sha256:{value_hash(text)}"


@dataclass(frozen=True)
class Kept:
    """What is kept of a value.

    Attributes:
        value: JSON data.
        as_text: JSON Pointers below the value of what became a text.
        redacted: JSON Pointers below the value of what is hidden.
    """

    value: Any
    as_text: tuple[str, ...] = ()
    redacted: tuple[str, ...] = ()


class Redaction:
    """Decides value by value.

    Args:
        comparable: Tool → its arguments that are kept; both may be globs. None: everything is
            kept, and the other settings do nothing.
        final: Keys of the final payload that are kept; globs too.
        others: What becomes of all other values: their hash, or nothing (`null`).
        texts: What becomes of the user's text and of questions.

    Raises:
        ValueError: If `others` or `texts` is none of the above, or `comparable` or `final` is not
            of names.
    """

    def __init__(
        self,
        comparable: Mapping[str, Iterable[str]] | None = None,
        final: Iterable[str] = (),
        others: Others = "hash",
        texts: Texts = "hash",
    ) -> None:
        if others not in ("hash", "drop"):
            raise ValueError(f"others is {others!r}; it is 'hash' or 'drop'")
        if texts not in ("keep", "hash", "drop"):
            raise ValueError(f"texts is {texts!r}; it is 'keep', 'hash' or 'drop'")
        self._on = comparable is not None
        self._tools = [(tool, _names(names)) for tool, names in (comparable or {}).items()]
        self._final = _names(final)
        self._others = others
        self._texts = texts

    def arguments(self, tool: str, given: Plain) -> Kept:
        """The arguments of a call; the name of each is kept, since a tool has the same ones."""
        patterns = [
            name
            for known, names in self._tools
            if known == tool or fnmatchcase(tool, known)
            for name in names
        ]
        return self._by_key(given, patterns)

    def final(self, given: Plain) -> Kept:
        """The final payload; its keys are kept."""
        return self._by_key(given, self._final)

    def value(self, given: Plain) -> Kept:
        """A value that is on no list: what a tool gave back."""
        return self._hidden(given.value) if self._on else Kept(*given)

    def error(self, kind: str | None, said: str) -> Kept:
        """The message of a failure; its kind is kept, since it is the code's and not the data's."""
        if not self._on:
            return Kept(f"{kind}: {said}" if kind and said else kind or said or "failed")
        hidden = hidden_text(said) if self._others == "hash" else "redacted"
        return Kept(f"{kind}: {hidden}" if kind else hidden, redacted=("",))

    def text(self, said: str) -> Kept:
        """What the user said, or was asked."""
        if not self._on or self._texts == "keep":
            return Kept(said)
        return Kept(hidden_text(said) if self._texts == "hash" else None, redacted=("",))

    def _by_key(self, given: Plain, patterns: Iterable[str]) -> Kept:
        if not self._on:
            return Kept(*given)
        if not isinstance(given.value, dict):
            return Kept(None) if given.value is None else self._hidden(given.value)
        patterns = list(patterns)
        kept: dict[str, Any] = {}
        hidden: list[str] = []
        for key, item in given.value.items():
            if any(key == pattern or fnmatchcase(key, pattern) for pattern in patterns):
                kept[key] = item
            else:
                kept[key] = self._hidden(item).value
                hidden.append(pointer("", key))
        return Kept(kept, _outside(given.as_text, hidden), tuple(hidden))

    def _hidden(self, value: Any) -> Kept:
        if self._others == "drop":
            return Kept(None, redacted=("",))
        return Kept({"sha256": value_hash(value)}, redacted=("",))


def _outside(marks: Iterable[str], hidden: Iterable[str]) -> tuple[str, ...]:
    """Those of the places that do not lie in what is hidden."""
    gone = list(hidden)
    return tuple(
        mark
        for mark in marks
        if not any(mark == place or mark.startswith(f"{place}/") for place in gone)
    )


def _names(names: Iterable[str]) -> tuple[str, ...]:
    listed = (names,) if isinstance(names, str) else tuple(names)
    for name in listed:
        if not isinstance(name, str):
            raise ValueError(f"{name!r} is not a name of an argument")
    return listed
