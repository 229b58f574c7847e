"""Fixtures of golden traces in files: reading them, finding them in a folder.

Belongs here: JSON with the places of its values, which files of a folder are fixtures, values that
look like those of real people. Does not belong here: what a fixture may say (`model/golden`), or
its golden trace (a trace format).

`<id>.golden.json` beside a fixture is its frozen golden trace and no fixture. An eval set of the
Agent Development Kit (ADK) is a file of several: each of its cases stands for a fixture.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from benchmark_assets.adapters.benchmarks.adk import fixture_of as fixture_of_case
from benchmark_assets.adapters.benchmarks.adk import is_eval_set, read_cases
from benchmark_assets.adapters.fixture_wording import worded
from benchmark_assets.adapters.yaml_files import (
    MAX_BYTES,
    MAX_DEPTH,
    Document,
    KeyPath,
    Place,
    by_line,
    key_text,
    own_problems,
    shown_path,
    validate,
)
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.golden import DEMANDS, SECTIONS, Fixture, FixtureSource, contract_data
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError, Problem

SUFFIX = ".json"
GOLDEN_SUFFIX = ".golden.json"
EVAL_SET_SUFFIXES = (".evalset.json", ".test.json")
"""What ADK calls eval sets; a file of any name whose content is one is read as such."""

ADK_SETTINGS = "test_config.json"

_CURES = {
    "id": 'add `"id": "…"`, which also names the candidate traces',
    "input": 'add `"input": {"user": "…"}`',
    "input.user": 'add `"user": "…"`, what the user says',
    "version": 'put it in quotes, as it is to be read: "1.10"',
    "expect": 'add `"expect": {"tool_names": […]}`',
    "expect.calls[].tool": 'add `"tool": "…"`, the tool to be called',
}


def is_fixture_file(path: Path) -> bool:
    """Whether a file may be a fixture by its name: no golden trace, schema or lock file."""
    name = path.name.lower()
    others = (GOLDEN_SUFFIX, ".schema.json", ".lock.json")
    return name.endswith(SUFFIX) and not name.endswith(others) and not name.startswith(".")


def golden_path_of(path: Path, fixture_id: str) -> Path:
    """Where the golden trace of a fixture in a file lies; an id that is no file name is encoded."""
    return path.with_name(path_key(fixture_id) + GOLDEN_SUFFIX)


def read_fixture(data: bytes, name: str) -> Fixture:
    """Read one fixture.

    Args:
        data: The bytes of its file: JSON.
        name: The file, as people should see it.

    Raises:
        InputError: With all that is wrong with it, each with line, key and cure.
    """
    return fixture_of(parse_json(data, name))


@dataclass(frozen=True)
class FixturesOfFile:
    """What a file holds.

    Attributes:
        fixtures: The good fixtures, each with what it was read from: the file, or one eval case in
            the form of a fixture, all of whose values are placed where the case begins.
        problems: What is wrong with the other cases of an eval set.
    """

    fixtures: tuple[tuple[Document, Fixture], ...]
    problems: tuple[Problem, ...] = ()


def read_fixture_file(path: Path) -> FixturesOfFile:
    """Read the fixture in a file, or those that the cases of an ADK eval set stand for.

    ADK's own settings beside its eval sets, `test_config.json`, hold none.

    Raises:
        InputError: As `read_fixture`, or if the file cannot be read.
    """
    name = shown_path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            cure = "is it a trace file?"
            raise InputError(Problem("is too large for a fixture", file=name, cure=cure))
        value, document = _read_json(path.read_bytes(), name)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        cure = "is it a file, and are you allowed to read it?"
        raise InputError(Problem(f"cannot be read: {reason}", file=name, cure=cure)) from error
    if "expect" not in document.data:
        if path.name == ADK_SETTINGS and "criteria" in document.data:
            return FixturesOfFile(())
        if is_eval_set(value) or path.name.lower().endswith(EVAL_SET_SUFFIXES):
            return _of_eval_set(value, path.name, document)
    return FixturesOfFile(((document, fixture_of(_an_object(value, document))),))


def _of_eval_set(value: Any, name: str, document: Document) -> FixturesOfFile:
    line_of = _line_finder(document)
    cases, problems = read_cases(value, name, document.name, line_of)
    fixtures = []
    for case in cases:
        place = Place(line_of(case.key) or 1)
        stand_in = Document(document.name, fixture_of_case(case), {(): place})
        try:
            fixtures.append((stand_in, fixture_of(stand_in)))
        except InputError as error:
            problems += [
                Problem(
                    f"makes no fixture: {problem.key}: {problem.message}",
                    file=document.name,
                    line=place.line,
                    key=case.key or None,
                    cure=problem.cure,
                )
                for problem in error.problems
            ]
    return FixturesOfFile(tuple(fixtures), by_line(problems))


_HUMP = re.compile(r"(?<=[a-z0-9])[A-Z]")


def _line_finder(document: Document) -> Callable[[str], int | None]:
    """Lines by keys in snake case; of a key that is not there, the line of what it is missing in."""
    lines: dict[str, int] = {}

    def line_of(key: str) -> int | None:
        if not lines:
            for path, place in document.places.items():
                text = _HUMP.sub(lambda match: f"_{match[0].lower()}", key_text(path))
                lines.setdefault(text, place.line)
        while key and key not in lines:
            key = key[: max(key.rfind("."), key.rfind("["), 0)]
        return lines.get(key)

    return line_of


def fixture_of(document: Document) -> Fixture:
    """The fixture that a document holds.

    Raises:
        InputError: With all that is wrong with it, each with a cure.
    """
    try:
        return _fixture_of(document)
    except InputError as error:
        raise InputError(map(worded, error.problems)) from error


def _fixture_of(document: Document) -> Fixture:
    if isinstance(document.data.get("eval_cases"), list):
        message = "is an ADK eval set, which stands for a fixture a case"
        _fail(document, (), message, "read it as a file among fixtures")
    if "expect" not in document.data and ("tools" in document.data or "id" not in document.data):
        # All its keys would be unknown; it is something else, most likely a trace.
        message = "is no contract file: a fixture has `id`, `input` and `expect`"
        raise InputError(Problem(message, file=document.name, cure="is it a trace file?"))
    source = validate(document, FixtureSource, cures=_CURES)
    data = contract_data(source, document.data["expect"])
    if not DEMANDS.intersection(data):
        _fail(document, ("expect",), "demands nothing", _CURES["expect"])
    try:
        contract = Contract.model_validate(data)
    except ValidationError as error:
        raise InputError(_as_written(error, document)) from error
    return Fixture(source.id, source.input.user, source.input.turns, contract)


def _fail(document: Document, path: KeyPath, message: str, cure: str) -> NoReturn:
    raise InputError(document.problem(path, message, cure))


def _as_written(error: ValidationError, document: Document) -> tuple[Problem, ...]:
    """What is wrong with whole sections, which are no keys of a fixture: it is with `expect`."""
    sections = {name for name, _ in SECTIONS} | {"tools"}
    problems = []
    for details in error.errors(include_url=False):
        path = tuple(part for part in details["loc"] if part not in sections)
        message = str(details.get("ctx", {}).get("error", details["msg"]))
        problems += own_problems(document, ("expect", *path), message)
    return by_line(problems)


# JSON with places.


def parse_json(data: bytes, name: str) -> Document:
    """Parse JSON whose top level is an object.

    The places of values are found when somebody asks: good fixtures need none.

    Args:
        data: UTF-8, with or without a byte order mark.
        name: The file, as people should see it in messages.

    Raises:
        InputError: If it is not UTF-8, not JSON, or no object, names a key twice, holds what is
            no text or no finite number, or is nested more than `MAX_DEPTH` levels deep.
    """
    value, document = _read_json(data, name)
    return _an_object(value, document)


def _an_object(value: Any, document: Document) -> Document:
    if not isinstance(value, dict):
        cure = 'write one object: {"id": …, "input": …, "expect": …}'
        raise InputError(Problem("is no JSON object", file=document.name, line=1, cure=cure))
    return document


def _read_json(data: bytes, name: str) -> tuple[Any, Document]:
    """The value of a JSON text, and its document, which is empty if it is no object."""
    text = _decoded(data, name)
    repeated: list[str] = []
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, repeated))
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg} in column {error.colno}"
        cure = "correct it there or just before"
        raise InputError(Problem(message, file=name, line=error.lineno, cure=cure)) from error
    except RecursionError as error:
        raise InputError(_too_deep(name)) from error
    except ValueError as error:  # Python refuses to convert thousands of digits
        cure = "put it in quotes"
        raise InputError(
            Problem("has a number of too many digits", file=name, cure=cure)
        ) from error
    document = Document(name, value if isinstance(value, dict) else {}, _Places(text))
    problems = [*(_duplicates(document, text) if repeated else ()), *_no_data(value, document)]
    if problems:
        raise InputError(by_line(problems))
    return value, document


def _decoded(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            Problem("is not UTF-8", file=name, line=line, cure="save it as UTF-8")
        ) from error


def _object(pairs: list[tuple[str, Any]], repeated: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            repeated.append(key)
        found[key] = value
    return found


def _too_deep(name: str) -> Problem:
    message = f"is nested more than {MAX_DEPTH} levels deep"
    return Problem(message, file=name, cure="is it a trace file?")


def _no_data(value: Any, document: Document) -> Iterator[Problem]:
    """Values that Python reads and JSON does not have: NaN, infinity, halves of characters.

    Raises:
        InputError: If it is nested too deeply to look at.
    """
    waiting: list[tuple[KeyPath, Any]] = [((), value)]
    while waiting:
        path, value = waiting.pop()
        if len(path) > MAX_DEPTH:
            raise InputError(_too_deep(document.name))
        if isinstance(value, float) and not math.isfinite(value):
            yield document.problem(path, "is no finite number", "write a number, or a text")
        elif isinstance(value, str) and not _is_text(value):
            yield document.problem(path, "holds half of a surrogate pair", "write the character")
        elif isinstance(value, dict):
            odd = [key for key in value if not _is_text(key)]
            if odd:
                message = "has a key with half of a surrogate pair"
                yield document.problem(path, message, "write the character")
            waiting += [((*path, key), item) for key, item in value.items() if key not in odd]
        elif isinstance(value, list):
            waiting += [((*path, index), item) for index, item in enumerate(value)]


def _is_text(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


def _duplicates(document: Document, text: str) -> Iterator[Problem]:
    first: dict[KeyPath, int] = {}
    twice: set[KeyPath] = set()
    for path, line in _lines(text):
        within = any(path[:end] in twice for end in range(len(path)))
        if path in first and not within:
            twice.add(path)
            yield Problem(
                f"is here twice, first at {document.name}:{first[path]}",
                file=document.name,
                line=line,
                key=key_text(path),
                cure="keep one of them",
            )
        first.setdefault(path, line)


_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+|\n')


def _lines(text: str) -> Iterator[tuple[KeyPath, int]]:
    """Path of every value of a JSON text, with the line of its key, or of an item itself.

    The text has been read before, so that every piece is known to stand where it may.
    """
    path: list[str | int] = []
    in_list: list[bool] = []
    line, key_line, after_key = 1, 1, False
    yield (), 1
    for match in _TOKEN.finditer(text):
        piece = match[0]
        if piece == "\n":
            line += 1
        elif piece == ":":
            after_key = True
        elif piece == ",":
            if in_list[-1]:
                path[-1] = int(path[-1]) + 1
        elif piece in "]}":
            path.pop()
            in_list.pop()
        elif in_list and not in_list[-1] and not after_key:
            path[-1], key_line = json.loads(piece), line
        else:
            if path:
                yield tuple(path), key_line if after_key else line
            after_key = False
            if piece in "[{":
                in_list.append(piece == "[")
                path.append(0 if piece == "[" else "")


_TOP = Place(1)


class _Places(Mapping[KeyPath, Place]):
    """Places of the values of a JSON text, looked up in it the first time one is asked for."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _found(self) -> dict[KeyPath, Place]:
        return {path: Place(line) for path, line in _lines(self._text)}

    def __getitem__(self, path: KeyPath) -> Place:
        return self._found[path] if path else _TOP

    def __iter__(self) -> Iterator[KeyPath]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


# Values that look like those of real people.

_EMAIL = re.compile(r"[\w.+-]{1,64}@((?:[\w-]{1,63}\.){1,9}[\w-]{2,63})")
_RESERVED = re.compile(
    r"(^|\.)(example\.(com|net|org)|example|test|invalid|localhost)$", re.IGNORECASE
)
_CARD = re.compile(r"(?<![\w.-])(?:[3-6]|2[ -]?[2-7])(?:[ -]?[0-9]){12,18}(?![\w-]|\.[0-9])")
_CARD_DIGITS = range(13, 20)
_PHONE = re.compile(
    # With a country's code; then as in North America; then with the zero of national calls.
    r"(?<![\w.+-])(?:\+[1-9](?:[ ./()-]{0,2}[0-9]){8,14}"
    r"|(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}[ .-])[2-9][0-9]{2}[ .-][0-9]{4}"
    r"|\(?0[1-9][0-9]{0,3}\)?(?:[ /-][0-9]{2,8}){1,4})(?![\w-]|\.[0-9])"
)
_INVENTED = re.compile(r"5550?1[0-9]{2}$")
"""North American numbers for use in stories: 555-0100 to 555-0199."""

_PHONE_DIGITS = range(9, 16)
_HASHES = "value_hashes"


def personal_values(document: Document) -> Iterator[Problem]:
    """Warn of values that look like e-mail addresses, card or phone numbers of real people."""
    for path, text in _texts(document.data, ()):
        kind = None if _HASHES in path else personal_kind(text)
        if kind is not None:
            yield document.problem(
                path,
                f"holds what looks like {kind}",
                "fixtures are synthetic: make one up (x@example.com), or compare a hash",
            )


def personal_values_beside(path: Path, fixture_id: str) -> tuple[Problem, ...]:
    """The same of a fixture's golden trace, which is kept with it and recorded; none without one.

    What cannot be read as JSON, such as a trace a line, is left to whoever grades it.
    """
    golden = golden_path_of(path, fixture_id)
    try:
        if not golden.is_file() or golden.stat().st_size > MAX_BYTES:
            return ()
        return tuple(personal_values(parse_json(golden.read_bytes(), shown_path(golden))))
    except (OSError, InputError):
        return ()


def personal_kind(text: str) -> str | None:
    """What of a person a text seems to hold; None if nothing."""
    for match in _EMAIL.finditer(text):
        if not _RESERVED.search(match[1]):
            return "an e-mail address"
    for match in _CARD.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if len(digits) in _CARD_DIGITS and _luhn(digits):
            return "a card number"
    for match in _PHONE.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if len(digits) in _PHONE_DIGITS and not _INVENTED.search(digits):
            return "a phone number"
    return None


def _luhn(digits: str) -> bool:
    """Whether a number has the check digit of payment cards (ISO/IEC 7812-1, annex B)."""
    doubled = [int(d) * 2 for d in digits[-2::-2]]
    rest = sum(int(d) for d in digits[-1::-2])
    return (rest + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, int) and not isinstance(value, bool):
        yield path, str(value)  # A card's number may well be written as one.
    elif isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), key
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
