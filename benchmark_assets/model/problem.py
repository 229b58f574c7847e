"""What is wrong with an input: where it is, what was expected, what to do.

Belongs here: the record of one problem and the exception that carries all problems of one
input. Does not belong here: finding problems (loaders do) or exiting (the CLI does).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import msgspec


class Problem(msgspec.Struct, frozen=True):
    """One thing wrong with one input.

    Attributes:
        file: The file as the user named it, or None when the input is not a file.
        line: 1-based line in `file`, or None where the position is unknown.
        key: Dotted path of the offending key or record, such as `trajectory.calls[0].args`.
        message: What is wrong, and what was expected.
        cure: What to do about it, as an instruction.
    """

    message: str
    file: str | None = None
    line: int | None = None
    key: str | None = None
    cure: str | None = None

    def __str__(self) -> str:
        where = self.file or ""
        if self.line is not None:
            where += f":{self.line}"
        parts = [part for part in (where, self.key) if part]
        text = ": ".join([*parts, self.message])
        return f"{text}; {self.cure}" if self.cure else text


class InputError(Exception):
    """An input cannot be used; carries every problem found in it, not just the first."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__("\n".join(str(problem) for problem in self.problems))


def did_you_mean(word: str, known: Sequence[str]) -> str | None:
    """Return `did you mean 'required'?` for the nearest known word, or None if none is near.

    A word that differs in nothing but case is the nearest.
    """
    near = [
        other for other in known if other.casefold() == word.casefold()
    ] or difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f"did you mean '{near[0]}'?" if near else None
