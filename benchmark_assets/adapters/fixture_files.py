"""Fixtures of golden traces in files: reading them, finding them in a folder.

Belongs here: JSON with the places of its values, which files of a folder are fixtures, values that
look like those of real people. Does not belong here: what a fixture may say (`model/golden`), or
its golden trace (a trace format).

`<id>.golden.json` beside a fixture is its frozen golden trace and no fixture.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from pydantic import ValidationError

from benchmark_assets.adapters.yaml_files import (
    MAX_BYTES,
    Document,
    KeyPath,
    Place,
    by_line,
    parse_yaml,
    shown_path,
    validate,
)
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.golden import SECTIONS, Fixture, FixtureSource, contract_data
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError, Problem

SUFFIX = ".json"
GOLDEN_SUFFIX = ".golden.json"

_CURES = {
    "id": 'add `"id": "…"`, which also names the candidate traces',
    "input": 'add `"input": {"user": "…"}`',
    "input.user": 'add `"user": "…"`, what the user says',
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


def read_fixture_file(path: Path) -> tuple[Document, Fixture]:
    """Read the fixture in a file.

    Raises:
        InputError: As `read_fixture`, or if the file cannot be read.
    """
    name = shown_path(path)
    try:
        if path.stat().st_size > MAX_BYTES:
            cure = "is it a trace file?"
            raise InputError(Problem("is too large for a fixture", file=name, cure=cure))
        document = parse_json(path.read_bytes(), name)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(Problem(f"cannot be read: {reason}", file=name)) from error
    return document, fixture_of(document)


def fixture_of(document: Document) -> Fixture:
    """The fixture that a document holds.

    Raises:
        InputError: With all that is wrong with it.
    """
    if isinstance(document.data.get("eval_cases"), list):
        _fail(document, (), "is an eval set", "make fixtures of it: bench import-tasks adk FILE")
    source = validate(document, FixtureSource, cures=_CURES)
    data = contract_data(source, document.data["expect"])
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
        problems += [document.problem(("expect", *path), text) for text in message.split("; ")]
    return by_line(problems)


# JSON with places.


def parse_json(data: bytes, name: str) -> Document:
    """Parse JSON whose top level is an object.

    Args:
        data: UTF-8, with or without a byte order mark.
        name: The file, as people should see it in messages.

    Raises:
        InputError: If it is not UTF-8, not JSON, or no object, or names a key twice.
    """
    try:
        text = data.decode("utf-8-sig")
        repeated: list[str] = []
        value = json.loads(text, object_pairs_hook=lambda pairs: _object(pairs, repeated))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            Problem("is not UTF-8", file=name, line=line, cure="save it as UTF-8")
        ) from error
    except json.JSONDecodeError as error:
        message = f"is not JSON: {error.msg} in column {error.colno}"
        raise InputError(Problem(message, file=name, line=error.lineno)) from error
    except RecursionError as error:
        raise InputError(Problem("is nested too deeply", file=name)) from error
    if not isinstance(value, dict):
        cure = 'write one object: {"id": …, "input": …, "expect": …}'
        raise InputError(Problem("is no JSON object", file=name, line=1, cure=cure))
    document = Document(name, value, {(): Place(1)})
    try:
        # JSON is almost always YAML, too, and YAML is read with the places of its values.
        placed = parse_yaml(data, name)
    except InputError:
        placed = document
    if placed.data == value or repeated:
        document = Document(name, value, placed.places, placed.problems)
    if repeated and not document.problems:
        _fail(document, (), f"names a key twice: {', '.join(repeated)}", "keep one of them")
    return document


def _object(pairs: list[tuple[str, Any]], repeated: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            repeated.append(key)
        found[key] = value
    return found


# Values that look like those of real people.

_EMAIL = re.compile(r"\b[\w.+-]+@([\w-]+(?:\.[\w-]+)+)\b")
_RESERVED = re.compile(
    r"(^|\.)(example\.(com|net|org)|example|test|invalid|localhost)$", re.IGNORECASE
)
_CARD = re.compile(r"(?<![\w.-])(?:[0-9][ -]?){12,18}[0-9](?![\w.-])")
_PHONE = re.compile(
    r"(?<![\w.-])(?:\+[0-9]{1,3}[ ./-]?)?(?:\([0-9]{2,4}\)[ ]?)?[0-9]{2,4}(?:[ ./-][0-9]{2,4}){2,4}(?![\w.-])"
)
_DATE = re.compile(r"[0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.][0-9]{4}")
_PHONE_DIGITS = range(9, 16)


def personal_values(document: Document) -> Iterator[Problem]:
    """Warn of values that look like e-mail addresses, card or phone numbers of real people."""
    for path, text in _texts(document.data, ()):
        kind = personal_kind(text)
        if kind is not None:
            yield document.problem(
                path,
                f"holds what looks like {kind}",
                "fixtures are synthetic: make one up (x@example.com), or compare a hash",
            )


def personal_kind(text: str) -> str | None:
    """What of a person a text seems to hold; None if nothing."""
    for match in _EMAIL.finditer(text):
        if not _RESERVED.search(match[1]):
            return "an e-mail address"
    for match in _CARD.finditer(text):
        if _luhn(re.sub(r"\D", "", match[0])):
            return "a card number"
    for match in _PHONE.finditer(text):
        digits = re.sub(r"\D", "", match[0])
        if len(digits) in _PHONE_DIGITS and not _DATE.fullmatch(match[0]):
            return "a phone number"
    return None


def _luhn(digits: str) -> bool:
    """Whether a number has the check digit of payment cards (ISO/IEC 7812-1, annex B)."""
    doubled = [int(d) * 2 for d in digits[-2::-2]]
    rest = sum(int(d) for d in digits[-1::-2])
    return (rest + sum(d - 9 if d > 9 else d for d in doubled)) % 10 == 0 and set(digits) != {"0"}


def _texts(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _texts(item, (*path, index))
