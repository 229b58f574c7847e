"""One YAML file that a person wrote: to plain data with source lines, or to located errors.

Belongs here: reading YAML without surprises, and saying what pydantic found wrong in the words
and places of the file. Does not belong here: what any one file means (`contract_files`,
`project_file`).

The data are what JSON can carry (and days, on request), since that is what they are compared
with. Where YAML readers disagree, nothing is guessed:

- A key is the text as it is written: `no:` and `5:` are the keys "no" and "5".
- `010`, `1_000` and `12:30` are numbers to some readers and texts to others: errors, quote them.
- `yes`, `no`, `on` and `off` are truth values, and `Place.raw` remembers the spelling.
- `1e3` and `1.5e3` are numbers, as in JSON.
- `2026-01-31` is a text unless the caller asks for days.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NoReturn, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from benchmark_assets.model.problem import InputError, Problem, did_you_mean

try:
    from yaml import CSafeLoader as _Loader
except ImportError:  # PyYAML built without libyaml: slower, same data
    from yaml import SafeLoader as _Loader  # type: ignore[assignment]

MAX_BYTES = 4_000_000
"""Largest file that is read; what people write by hand is a thousandth of it."""

MAX_VALUES = 100_000
"""Most values in a file after aliases are expanded: a few lines can stand for billions."""

MAX_DEPTH = 60
"""Deepest nesting that is read."""

KeyPath = tuple[str | int, ...]
ModelT = TypeVar("ModelT", bound=BaseModel)

FEW_SECTIONS = 2
"""Of how many sections a misplaced key is said to belong to one."""

_TRUE = {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON"}
_FALSE = {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF"}
_YES_NO = {word for word in _TRUE | _FALSE if word.lower() not in ("true", "false")}
_NULL = frozenset(["", "~", "null", "Null", "NULL"])
_INT = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_RADIX = re.compile(r"[-+]?0(x[0-9a-fA-F]+|o[0-7]+|b[01]+)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DISPUTED = re.compile(
    r"[-+]?0[0-9_]+"  # octal, decimal or text
    r"|[-+]?(?=[0-9.]*_)[0-9][0-9_]*(\.[0-9_]*)?([eE][-+]?[0-9]+)?"  # number or text
    r"|[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?"  # base 60 or text
)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STANDARD_TAG = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands: 1-based line of its key (of the item, in a list).

    `raw` is the text as written of a value without quotes; None for all others.
    """

    line: int
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One file's data.

    Attributes:
        name: The file, as people should see it.
        data: The top-level mapping.
        places: Place of every value, by the path of keys and indices that leads to it; the
            empty path is the document.
        problems: What is wrong although the file could be read, such as duplicate keys.
    """

    name: str
    data: dict[str, Any]
    places: Mapping[KeyPath, Place]
    problems: tuple[Problem, ...] = ()

    def line(self, path: KeyPath) -> int | None:
        """Line of the value at `path`, or of the nearest of its parents that is in the file."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]].line
        return None

    def raw(self, path: KeyPath) -> str | None:
        """The value at `path` as written, if it is written without quotes."""
        place = self.places.get(path)
        return place.raw if place else None

    def problem(self, path: KeyPath, message: str, cure: str | None = None) -> Problem:
        """A problem located at `path`."""
        return Problem(
            message, file=self.name, line=self.line(path), key=key_text(path) or None, cure=cure
        )

    def yes_no(self) -> Iterator[KeyPath]:
        """Paths of the values that are true or false by a spelling YAML 1.2 takes for a text."""
        return (path for path, place in self.places.items() if place.raw in _YES_NO)


def key_text(path: KeyPath) -> str:
    """A path as people read it: `trajectory.calls[0].args_mode`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def shown_path(path: Path) -> str:
    """A path as people should see it: relative where it lies in the current folder."""
    try:
        return str(path.relative_to(Path.cwd())) if path.is_absolute() else str(path)
    except ValueError:
        return str(path)


def read_yaml(path: Path, *, dates: bool = False, may_be_empty: bool = False) -> Document:
    """Read one YAML file; see `parse_yaml`.

    Raises:
        InputError: If the file cannot be opened, is too large, or `parse_yaml` refuses it.
    """
    name = shown_path(path)
    try:
        size = path.stat().st_size
        if size > MAX_BYTES:
            raise InputError(
                Problem(
                    f"has {size:,} bytes, and at most {MAX_BYTES:,} are read",
                    file=name,
                    cure="is it a trace file?",
                )
            )
        data = path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(Problem(f"cannot be read: {reason}", file=name)) from error
    return parse_yaml(data, name, dates=dates, may_be_empty=may_be_empty)


def parse_yaml(
    data: bytes, name: str, *, dates: bool = False, may_be_empty: bool = False
) -> Document:
    """Parse one YAML document whose top level is a mapping. Builds plain data only.

    Args:
        data: The file's bytes: UTF-8, with or without a byte order mark.
        name: The file, as people should see it in messages.
        dates: Whether `2026-01-31` without quotes is a `datetime.date` instead of a text.
        may_be_empty: Whether a file with no content means an empty mapping.

    Raises:
        InputError: If it is not UTF-8, not YAML, empty, not a mapping, more than one document,
            or beyond `MAX_VALUES` or `MAX_DEPTH`.
    """
    reader = _Reader(name, dates)
    root = reader.nodes(_decode(data, name))
    if root is None or (root.kind == "scalar" and root.plain and root.text in _NULL):
        if may_be_empty:
            return Document(name, {}, {(): Place(1)}, tuple(reader.problems))
        reader.fail(1, "is empty", "write it, or remove the file")
    if root.kind != "mapping":
        what = "a list" if root.kind == "sequence" else "a text"
        reader.fail(root.line, f"is {what}, expected `key: value` lines at the top level")
    value = reader.value(root, (), root.line)
    return Document(name, value, reader.places, tuple(reader.problems))


def validate(
    document: Document,
    model: type[ModelT],
    data: Mapping[str, Any] | None = None,
    *,
    derived: Collection[str] = (),
    cures: Mapping[str, str] | None = None,
) -> ModelT:
    """Build `model` from a document, or say all that is wrong with it.

    Args:
        document: What was read.
        model: What it should be.
        data: What to validate instead of `document.data`, when a default was filled in.
        derived: Keys that are filled in from others, such as `sources[].name`; that they are
            missing is a consequence and is not reported.
        cures: What to do about a missing or misshapen value, by key such as `calls[].tool`.

    Raises:
        InputError: With every problem of the document, sorted by line.
    """
    found: ModelT | None = None
    problems = list(document.problems)
    try:
        found = model.model_validate(document.data if data is None else data)
    except ValidationError as error:
        reported = {(problem.key, problem.line) for problem in problems}
        problems += [
            problem
            for problem in problems_of(error, document, model, derived=derived, cures=cures)
            if (problem.key, problem.line) not in reported
        ]
    if problems or found is None:
        raise InputError(by_line(problems))
    return found


def by_line(problems: Collection[Problem]) -> tuple[Problem, ...]:
    """The problems of one file in the order of its lines."""
    return tuple(sorted(problems, key=lambda problem: problem.line or 0))


def problems_of(
    error: ValidationError,
    document: Document,
    model: type[BaseModel],
    *,
    derived: Collection[str] = (),
    cures: Mapping[str, str] | None = None,
) -> tuple[Problem, ...]:
    """Say what pydantic found in the words of the file, sorted by line.

    Args:
        error: What `model.model_validate` raised.
        document: What was validated.
        model: What it was validated against.
        derived: See `validate`.
        cures: See `validate`.
    """
    wording = _Wording(document, model, cures or {})
    grouped: dict[KeyPath, list[ErrorDetails]] = {}
    for details in error.errors(include_url=False):
        path = _written_path(details, document.data)
        if details["type"] == "missing" and _shape(path) in derived:
            continue
        grouped.setdefault(path, []).append(details)
    return by_line(
        [problem for path, all_ in grouped.items() for problem in wording.of(path, all_)]
    )


# Bytes to nodes to data.


@dataclass(slots=True)
class _Node:
    """A node of the YAML graph; nodes are shared by their aliases, and never contain themselves."""

    kind: Literal["scalar", "sequence", "mapping"]
    line: int
    tag: str | None
    text: str = ""
    plain: bool = False
    open: bool = False
    items: list[tuple[int, _Node]] = field(default_factory=list)
    """Line and node of each item; keys and values take turns in a mapping."""

    def pairs(self) -> Iterator[tuple[int, _Node, _Node]]:
        """Line, key and value of each entry of a mapping."""
        for (line, key), (_, value) in zip(self.items[::2], self.items[1::2], strict=True):
            yield line, key, value

    def mappings(self) -> list[_Node] | None:
        """The mappings that `<<: self` merges; None if it is not one or a list of them."""
        nodes = [node for _, node in self.items] if self.kind == "sequence" else [self]
        return nodes if all(node.kind == "mapping" for node in nodes) else None


class _Reader:
    """Turns the text of one file into nodes, and nodes into data."""

    def __init__(self, name: str, dates: bool) -> None:
        self.name = name
        self.dates = dates
        self.places: dict[KeyPath, Place] = {}
        self.problems: list[Problem] = []
        self._anchors: dict[str, _Node] = {}
        self._values = 0

    def fail(self, line: int, message: str, cure: str | None = None) -> NoReturn:
        """Give up on the file, with all that was found so far."""
        problem = Problem(message, file=self.name, line=line, cure=cure)
        raise InputError(by_line([*self.problems, problem]))

    def note(self, path: KeyPath, line: int, message: str, cure: str) -> None:
        """Note a problem and go on."""
        self.problems.append(
            Problem(message, file=self.name, line=line, key=key_text(path) or None, cure=cure)
        )

    def nodes(self, text: str) -> _Node | None:
        """Compose the only document of `text`; None if there is none.

        Works on events, not on recursion, so that depth is bounded by a rule and not by a crash.
        """
        root: _Node | None = None
        stack: list[_Node] = []
        documents = 0
        try:
            for event in yaml.parse(text, Loader=_Loader):
                line = event.start_mark.line + 1 if event.start_mark else 1
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        cure = "keep one to a file, without `---` between"
                        self.fail(line, "a second document starts here", cure)
                elif isinstance(event, yaml.SequenceEndEvent | yaml.MappingEndEvent):
                    stack.pop().open = False
                elif isinstance(event, yaml.NodeEvent):
                    node = self._composed(event, line)
                    if stack:
                        stack[-1].items.append((line, node))
                    else:
                        root = node
                    if node.open:
                        stack.append(node)
                    if len(stack) > MAX_DEPTH:
                        self.fail(line, f"is nested more than {MAX_DEPTH} levels deep")
        except yaml.MarkedYAMLError as error:
            line, message, cure_or_none = _syntax_error(error, text)
            self.fail(line, message, cure_or_none)
        return root

    def _composed(self, event: yaml.NodeEvent, line: int) -> _Node:
        """The node that an event begins or, for an alias, refers to."""
        name = event.anchor
        if isinstance(event, yaml.AliasEvent):
            known = self._anchors.get(name or "")
            if known is None:
                self.fail(
                    line,
                    f"*{name} refers to nothing: there is no &{name} above",
                    f'quote it if it is a text: "*{name}"',
                )
            if known.open:
                self.fail(line, f"*{name} contains itself")
            return known
        node = _node(event, line)
        if name is not None:
            self._anchors[name] = node
        return node

    def value(self, node: _Node, path: KeyPath, line: int) -> Any:
        """The data of a node, with the place of every value in it.

        An alias is expanded wherever it stands, so that every key path has its place and no
        two of them share an object.
        """
        self._count(line)
        if len(path) > MAX_DEPTH:
            self.fail(line, f"is nested more than {MAX_DEPTH} levels deep")
        raw = node.text if node.plain and node.tag is None else None
        self.places[path] = Place(line, raw)
        if node.tag is not None and node.tag != _STANDARD_TAG + _TAG_OF[node.kind]:
            self.note(
                path,
                line,
                f"has the tag {node.tag.replace(_STANDARD_TAG, '!!')}",
                "tags are not read; write the plain value",
            )
        if node.kind == "sequence":
            return [
                self.value(item, (*path, index), at) for index, (at, item) in enumerate(node.items)
            ]
        if node.kind == "mapping":
            return self._mapping(node, path)
        return node.text if raw is None else self._plain(raw, path, line)

    def _mapping(self, node: _Node, path: KeyPath) -> dict[str, Any]:
        data: dict[str, Any] = {}
        first: dict[str, int] = {}
        merged: list[_Node] = []
        for line, key, value in node.pairs():
            if key.kind != "scalar":
                self.note(path, line, "has a list or a mapping for a key", "a key is a text")
            elif key.plain and key.text == "<<":
                mappings = value.mappings()
                if mappings is None:
                    cure = "give it *name of a mapping"
                    self.note((*path, "<<"), line, "merges what is no mapping", cure)
                merged += mappings or []
            elif key.text in first:
                self.note(
                    (*path, key.text),
                    line,
                    f"is here twice, first at {self.name}:{first[key.text]}",
                    "keep one of them",
                )
            else:
                first[key.text] = line
                data[key.text] = self.value(value, (*path, key.text), line)
        # Keys written out here win, then those of the earlier of the merged mappings.
        for line, name, value in self._inherited(merged):
            if name not in data:
                data[name] = self.value(value, (*path, name), line)
        return data

    def _inherited(self, merged: list[_Node]) -> Iterator[tuple[int, str, _Node]]:
        """Line, key and value of all that mappings have, and the mappings merged into those."""
        waiting = merged[::-1]
        seen: set[int] = set()
        while waiting:
            node = waiting.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            self._count(node.line)
            further: list[_Node] = []
            for line, key, value in node.pairs():
                if key.plain and key.text == "<<":
                    further += value.mappings() or []
                elif key.kind == "scalar":
                    yield line, key.text, value
            waiting += further[::-1]

    def _count(self, line: int) -> None:
        """Count one more value, or one more look at a merged mapping, towards the limit."""
        self._values += 1
        if self._values > MAX_VALUES:
            self.fail(
                line,
                f"holds more than {MAX_VALUES:,} values once its aliases are expanded",
                "write out less with aliases",
            )

    def _plain(self, raw: str, path: KeyPath, line: int) -> Any:
        """What a scalar without quotes means."""
        if raw in _NULL:
            return None
        if raw in _TRUE or raw in _FALSE:
            return raw in _TRUE
        if _DISPUTED.fullmatch(raw):
            self.note(
                path,
                line,
                f"YAML readers disagree on whether `{raw}` is a text or which number",
                f'quote it, "{raw}", or write the number in plain decimals',
            )
            return raw
        if _NOT_FINITE.fullmatch(raw):
            return self._not_finite(raw, path, line)
        if _INT.fullmatch(raw) or _RADIX.fullmatch(raw):
            try:
                return int(raw, 0)
            except ValueError:  # Python refuses to convert thousands of digits
                return self._not_finite(raw, path, line)
        if _FLOAT.fullmatch(raw):
            number = float(raw)
            return number if math.isfinite(number) else self._not_finite(raw, path, line)
        if self.dates and _DAY.fullmatch(raw):
            try:
                return date.fromisoformat(raw)
            except ValueError:
                return raw  # such as 2026-02-30; whoever wants a day says what is wrong with it
        return raw

    def _not_finite(self, raw: str, path: KeyPath, line: int) -> str:
        self.note(
            path,
            line,
            f"`{_short(raw)}` is no finite number",
            "write a number, or quote it if it is a text",
        )
        return raw


_TAG_OF = {"scalar": "str", "sequence": "seq", "mapping": "map"}


def _node(event: yaml.NodeEvent, line: int) -> _Node:
    if isinstance(event, yaml.ScalarEvent):
        # `!` alone marks a text, like quotes.
        tag = event.tag if event.tag != "!" else _STANDARD_TAG + "str"
        return _Node("scalar", line, tag, event.value, plain=event.style in (None, ""))
    kind: Literal["sequence", "mapping"] = (
        "sequence" if isinstance(event, yaml.SequenceStartEvent) else "mapping"
    )
    tag = getattr(event, "tag", None)
    return _Node(kind, line, tag if tag != "!" else None, open=True)


def _decode(data: bytes, name: str) -> str:
    """The text of a UTF-8 file.

    Raises:
        InputError: At the first byte that is not UTF-8 or the first character YAML excludes.
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(Problem("is UTF-16", file=name, line=1, cure="save it as UTF-8"))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        before = data[data.rfind(b"\n", 0, error.start) + 1 : error.start]
        after = before.decode("utf-8", "replace").strip()[-20:]
        raise InputError(
            Problem(
                f"is not UTF-8: byte 0x{data[error.start]:02x}"
                + (f" after `{after}`" if after else ""),
                file=name,
                line=line,
                cure="save it as UTF-8",
            )
        ) from error
    bad = _UNPRINTABLE.search(text)
    if bad:
        before_bad = text[: bad.start()]
        column = len(before_bad) - (before_bad.rfind("\n") + 1) + 1
        raise InputError(
            Problem(
                f"column {column}: has the control character U+{ord(bad.group()):04X}",
                file=name,
                line=before_bad.count("\n") + 1,
                cure=f'remove it, or write "\\u{ord(bad.group()):04X}" in double quotes',
            )
        )
    return text


_SYNTAX: tuple[tuple[str, str, str | None], ...] = (
    # What libyaml or PyYAML says, what it means, what to do; {line} is where the construct began.
    (
        "mapping values are not allowed",
        "a `:` where no key can stand",
        "quote a text that contains `: `, or correct the indentation",
    ),
    ("could not find expected ':'", "a line without `:` among `key: value` lines", "add the `:`"),
    ("found unexpected end of stream", "the quote opened on line {line} is never closed", None),
    ("',' or ']'", "the list opened by `[` on line {line} misses a `,` or its `]`", None),
    ("',' or '}'", "the mapping opened by `{{` on line {line} misses a `,` or its `}}`", None),
    (
        "node content",
        "a value is missing here, after a `[`, `{{`, `,` or `:`",
        "close what is open, or remove what is too much",
    ),
    (
        "unknown escape character",
        "a backslash in double quotes starts an escape, and this is none",
        "use single quotes, as for regular expressions: '\\d+'",
    ),
    (
        "Unicode character escape",
        "this escape in double quotes is no character",
        "write the character itself",
    ),
    (
        "expected alphabetic or numeric character",
        "`*` or `&` without quotes is a reference",
        'quote a text that starts with it: "*"',
    ),
    (
        "did not find expected key",
        "does not line up with the block that begins on line {line}",
        "indent it like the lines it belongs to",
    ),
    (
        "expected <block end>",
        "does not line up with the block that begins on line {line}",
        "indent it like the lines it belongs to",
    ),
    (
        "'-' indicator",
        "does not line up with the list that begins on line {line}",
        "start each item with `- ` at the same indentation",
    ),
    ("maximum nesting depth", f"is nested more than {MAX_DEPTH} levels deep", None),
    ("directive", "a line that starts with `%` is an instruction to YAML", "quote the text"),
)


def _syntax_error(error: yaml.MarkedYAMLError, text: str) -> tuple[int, str, str | None]:
    """Line, message and cure for what YAML complains about."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    lines = text.splitlines()
    here = lines[line][column : column + 1] if line < len(lines) else ""
    began = (error.context_mark.line if error.context_mark else line) + 1
    problem = error.problem or "is not YAML"
    at = f"column {column + 1}: "
    if "cannot start any token" in problem or "expected whitespace or line" in problem:
        if here == "\t":
            return line + 1, at + "a tab, and YAML is indented with spaces", "use spaces"
        return line + 1, at + f"a text cannot start with `{here}`", "quote the text"
    if "expected ':'" in problem and error.context_mark:
        # Noticed at the next line or at the end; the line itself is the context.
        line, at = error.context_mark.line, f"column {error.context_mark.column + 1}: "
    if "expected key" in problem or "<block end>" in problem:
        before = lines[line][:column].strip(" -") if line < len(lines) else ""
        if before:
            cure = 'a quoted text or a list ends with its `"` or `]`; quote all of it'
            return line + 1, at + "goes on after a value that has ended", cure
    for needle, message, cure_or_none in _SYNTAX:
        if needle in problem:
            return line + 1, at + message.format(line=began), cure_or_none
    context = f"{error.context}: " if error.context else ""
    return line + 1, at + context + problem, None


# Validation errors to problems.


def _shape(path: KeyPath) -> str:
    """A path with its indices left out: `sources[].name`."""
    text = ""
    for part in path:
        text += "[]" if isinstance(part, int) else f".{part}" if text else part
    return text


def _step(data: Any, part: str | int) -> Any:
    """What `part` leads to in `data`; `_NOTHING` if there is no such key or index."""
    if isinstance(data, Mapping):
        return data.get(part, _NOTHING)
    if isinstance(data, Sequence) and not isinstance(data, str) and isinstance(part, int):
        return data[part] if part < len(data) else _NOTHING
    return _NOTHING


_NOTHING = object()


def look_up(data: Any, path: KeyPath) -> Any:
    """The value at `path` in plain data; a marker that equals nothing if there is none."""
    for part in path:
        data = _step(data, part)
    return data


def _written_path(details: ErrorDetails, data: Any) -> KeyPath:
    """An error's location as it stands in the file.

    Pydantic's locations also hold names of union members and validators, and the steps of what
    a validator made of the input (`tags: x` is validated as `tags.equals[0]`): what is not in
    the file is left out, except the name of a missing key.
    """
    path: list[str | int] = []
    loc = details["loc"]
    for index, part in enumerate(loc):
        below = _step(data, part)
        if below is not _NOTHING:
            path.append(part)
            data = below
        elif details["type"] == "missing" and index == len(loc) - 1:
            path.append(part)
    return tuple(path)


def _models_at(annotation: Any, path: KeyPath, data: Any) -> list[type[BaseModel]]:
    """The models that the value at `path` may be an instance of, given the data's own hints."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _models_at(get_args(annotation)[0], path, data)
    if origin in (Union, UnionType):
        members = [_models_at(member, path, data) for member in get_args(annotation)]
        return [model for models in members for model in models]
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if _contradicted(annotation, data):
            return []
        if not path:
            return [annotation]
        if isinstance(path[0], int):
            # A list stands for a section that has one, such as a path without an order.
            first = next(iter(annotation.model_fields))
            return _models_at(annotation.model_fields[first].annotation, path, data)
        for name, info in annotation.model_fields.items():
            if path[0] in (name, info.alias):
                return _models_at(info.annotation, path[1:], _step(data, path[0]))
        return []
    arguments = get_args(annotation)
    if arguments and origin in (tuple, list) and isinstance(data, Mapping):
        # One item stands for a list of one.
        return _models_at(arguments[0], path, data)
    if path and arguments and origin in (dict, tuple, list):
        inner = arguments[1] if origin is dict else arguments[0]
        return _models_at(inner, path[1:], _step(data, path[0]))
    return []


def _contradicted(model: type[BaseModel], data: Any) -> bool:
    """Whether the data name another member of a union, such as `kind: langfuse` for files."""
    return any(
        get_origin(info.annotation) is Literal
        and len(get_args(info.annotation)) == 1
        and isinstance(given := _step(data, name), str)
        and given not in get_args(info.annotation)
        for name, info in model.model_fields.items()
    )


def _keys(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


_EXPECTED = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "tuple_type": "a list",
    "list_type": "a list",
    "set_type": "a list",
    "dict_type": "`key: value` pairs",
    "mapping_type": "`key: value` pairs",
    "model_type": "`key: value` pairs",
    "model_attributes_type": "`key: value` pairs",
    "date_type": "a date such as 2026-01-31",
    "date_from_datetime_parsing": "a date such as 2026-01-31",
}

_BOUNDS = {
    "greater_than": ("gt", "more than {}"),
    "greater_than_equal": ("ge", "{} or more"),
    "less_than": ("lt", "less than {}"),
    "less_than_equal": ("le", "{} or less"),
}


class _Wording:
    """Says in the words of one file what pydantic found in it."""

    def __init__(
        self, document: Document, model: type[BaseModel], cures: Mapping[str, str]
    ) -> None:
        self.document = document
        self.model = model
        self.cures = cures

    def of(self, path: KeyPath, errors: list[ErrorDetails]) -> list[Problem]:
        """The problems of one key: one for all members of a union, else one for each error."""
        expected = [_EXPECTED[e["type"]] for e in errors if e["type"] in _EXPECTED]
        if len(expected) == len(errors):
            return [self._wrong_type(path, errors[0], list(dict.fromkeys(expected)))]
        problems = [p for details in errors for p in self._one(path, details)]
        return list(dict.fromkeys(problems))

    def _one(self, path: KeyPath, details: ErrorDetails) -> list[Problem]:
        kind, context = details["type"], details.get("ctx", {})
        value = details["input"]
        problem = self.document.problem
        if kind == "missing":
            cure = self.cures.get(_shape(path), f"add `{path[-1]}: …`")
            return [problem(path, "is missing", cure)]
        if kind == "extra_forbidden":
            return [self._unknown_key(path)]
        if kind in ("literal_error", "enum"):
            words = re.findall(r"'([^']*)'", context.get("expected", "")) or [
                str(context.get("expected"))
            ]
            return [self._wrong_word(path, value, words)]
        if kind.startswith("union_tag_"):
            return [self._wrong_tag(path, context)]
        if kind in _EXPECTED:
            return [self._wrong_type(path, details, [_EXPECTED[kind]])]
        if kind in ("value_error", "assertion_error"):
            return self._own_message(path, str(context.get("error") or details["msg"]), value)
        return [self._out_of_bounds(path, details)]

    def _out_of_bounds(self, path: KeyPath, details: ErrorDetails) -> Problem:
        """A value of the right type that is too short, too large or of the wrong form."""
        kind, context = details["type"], details.get("ctx", {})
        value, problem = details["input"], self.document.problem
        cure = self.cures.get(_shape(path))
        if kind in ("string_too_short", "too_short"):
            return problem(path, "is empty", cure or "fill it in, or remove the key")
        if kind == "string_pattern_mismatch":
            message = f"'{_short(value)}' does not have the expected form"
            return problem(path, message, cure or f"it must match {context['pattern']}")
        if kind in _BOUNDS:
            name, text = _BOUNDS[kind]
            message = f"must be {text.format(_number(context[name]))}, is {_number(value)}"
            return problem(path, message, cure)
        message = details["msg"].replace("Input should be", "must be")
        return problem(path, message[:1].lower() + message[1:], cure)

    def _wrong_tag(self, path: KeyPath, context: Mapping[str, Any]) -> Problem:
        """The key that tells the members of a union apart is missing or names none of them."""
        name = str(context["discriminator"]).strip("'")
        if "tag" not in context:
            return self.document.problem((*path, name), "is missing", f"add `{name}: …`")
        words = re.findall(r"'([^']*)'", context["expected_tags"])
        return self._wrong_word((*path, name), context["tag"], words)

    def _unknown_key(self, path: KeyPath) -> Problem:
        key, parent = str(path[-1]), path[:-1]
        models = _models_at(self.model, parent, self.document.data)
        known = list(dict.fromkeys(k for model in models for k in _keys(model)))
        owners = self._sections_with(key)
        if owners and key_text(parent) not in owners:
            under = " or ".join(f"`{owner}`" for owner in owners)
            where = "at the top level" if owners == [""] else f"under {under}"
            cure: str | None = f"it belongs {where}"
        else:
            cure = did_you_mean(key, known)
        if cure is None and known:
            cure = f"known keys here: {', '.join(known)}"
        return self.document.problem(path, "is not a known key", cure)

    def _sections_with(self, key: str) -> list[str]:
        """The top-level sections that know `key`, if they are few; empty for the top level."""
        if key in _keys(self.model):
            return [""]
        owners = [
            info.alias or name
            for name, info in self.model.model_fields.items()
            for model in _models_at(info.annotation, (), None)
            if key in _keys(model)
        ]
        return owners if len(owners) <= FEW_SECTIONS else []

    def _wrong_word(self, path: KeyPath, value: Any, words: list[str]) -> Problem:
        found = self._found(path, value)
        cure = did_you_mean(value, words) if isinstance(value, str) else None
        expected = words[0] if len(words) == 1 else f"one of {', '.join(words)}"
        return self.document.problem(path, f"expected {expected}, found {found}", cure)

    def _wrong_type(self, path: KeyPath, details: ErrorDetails, expected: list[str]) -> Problem:
        # `input` is what a validator made of the value; say what is in the file.
        written = look_up(self.document.data, path)
        value = details["input"] if written is _NOTHING else written
        raw = self.document.raw(path)
        cure = self.cures.get(_shape(path))
        if value is None:
            cure = cure or "fill it in, or remove the key"
        elif "a text" in expected and raw is not None and not isinstance(value, str):
            cure = self._quoted(path, raw)
        elif "a list" in expected and isinstance(value, str | int | float):
            cure = cure or f"write [{raw if raw is not None else value}]"
        elif details["type"] in ("model_type", "model_attributes_type"):
            models = _models_at(self.model, path, self.document.data)
            keys = list(dict.fromkeys(key for model in models for key in _keys(model)))
            cure = cure or (f"its keys are {', '.join(keys)}" if keys else None)
        message = f"expected {' or '.join(expected)}, found {self._found(path, value)}"
        return self.document.problem(path, message, cure)

    def _quoted(self, path: KeyPath, raw: str) -> str:
        key = f"{path[-1]}: " if path and isinstance(path[-1], str) else ""
        return f'quote it: {key}"{raw}"'

    def _found(self, path: KeyPath, value: Any) -> str:
        raw = self.document.raw(path)
        if value is None:
            return "nothing"
        if isinstance(value, bool):
            word = "true" if value else "false"
            return word if raw in (None, word) else f"{word}, as YAML reads `{raw}`"
        if isinstance(value, int | float):
            text = str(value)
            return f"the number {text}" + (
                "" if raw in (None, text) else f", as YAML reads `{raw}`"
            )
        if isinstance(value, date):
            return f"the date {value.isoformat()}"
        if isinstance(value, str):
            return f"'{_short(value)}'"
        return "`key: value` pairs" if isinstance(value, Mapping) else "a list"

    def _own_message(self, path: KeyPath, text: str, value: Any) -> list[Problem]:
        """What our own validators say, located as exactly as they say it.

        A message may name keys below its own (`args.id.regex: …`), several joined by `; `, or
        the end of a path inside a JSON Schema (`… at properties/id`).
        """
        raw = self.document.raw(path)
        if "read by YAML as" in text and raw is not None:
            number = self._found(path, value)
            return [self.document.problem(path, f"is {number}", self._quoted(path, raw))]
        return own_problems(self.document, path, text)


def own_problems(document: Document, path: KeyPath, text: str) -> list[Problem]:
    """What a validator of ours says of the value at `path`, located as exactly as it says it."""
    data = look_up(document.data, path)
    parts: list[str] = []
    for piece in text.split("; "):
        if parts and _leading_path(piece, data) is None:
            parts[-1] += f"; {piece}"
        else:
            parts.append(piece)
    problems = []
    for part in parts:
        below = _leading_path(part, data)
        at, message = (path, part) if below is None else ((*path, *below[0]), below[1])
        schema_path = re.fullmatch(r"(is not a JSON Schema: .*) at (\S+)", message, re.DOTALL)
        if schema_path:
            inner = _schema_path(look_up(data, at[len(path) :]), schema_path[2])
            if inner:
                at, message = (*at, *inner), schema_path[1]
        message, _, cure = message.partition("; ")
        problems.append(document.problem(at, message, cure or None))
    return problems


def _leading_path(text: str, data: Any) -> tuple[KeyPath, str] | None:
    """Split `args.x[0]: message` into path and message if the path leads somewhere in `data`."""
    path: list[str | int] = []
    rest = text
    while True:
        if isinstance(data, Mapping):
            bare = rest[1:] if path and rest.startswith(".") else rest
            if path and bare is rest:
                return None
            # Keys may contain dots and colons themselves: the longest that fits is meant.
            keys = [k for k in data if k and re.match(re.escape(k) + r"(: |\.|\[)", bare)]
            if not keys:
                return None
            key: str | int = max(keys, key=len)
            rest = bare[len(str(key)) :]
        else:
            index = re.match(r"\[(\d+)\]", rest)
            if index is None:
                return None
            key, rest = int(index[1]), rest[index.end() :]
        path.append(key)
        data = _step(data, key)
        if data is _NOTHING:
            return None
        if rest.startswith(": "):
            return tuple(path), rest[2:]


def _schema_path(data: Any, text: str) -> KeyPath:
    """The path that `a/0/b` leads along in `data`; empty if it leads nowhere."""
    path: list[str | int] = []
    for word in text.split("/"):
        part: str | int = int(word) if isinstance(data, list) and word.isdigit() else word
        data = _step(data, part)
        if data is _NOTHING:
            return ()
        path.append(part)
    return tuple(path)


def _short(value: Any, width: int = 40) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= width else text[: width - 1] + "…"


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
