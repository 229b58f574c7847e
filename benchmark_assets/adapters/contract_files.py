"""Contracts in files: finding and loading them, and writing new ones.

Belongs here: which files of a folder are contracts, the default id, what only all files together
can tell (two contracts with one id), and contract data as YAML that people like to read. Does not
belong here: reading YAML and locating errors (`yaml_files`), what a contract may say
(`model/contract`).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from benchmark_assets.adapters.fixture_files import (
    SUFFIX,
    is_fixture_file,
    personal_values,
    personal_values_beside,
    read_fixture_file,
)
from benchmark_assets.adapters.yaml_files import (
    Document,
    KeyPath,
    by_line,
    look_up,
    parse_yaml,
    read_yaml,
    shown_path,
    validate,
)
from benchmark_assets.model.contract import EMPTY_SECTIONS, AppliesTo, Contract
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.model.resources import (
    PAGE_PARTS,
    TYPES,
    Resources,
    likely_misspelt,
    resolve,
)

SUFFIXES = (".yaml", ".yml", SUFFIX)
"""What contracts are called: YAML, and fixtures of golden traces in JSON."""

_LISTED_IDS = 10

_DERIVED = ("id", "name", "group", "applies_to")


def _entry(place: str) -> str:
    """An entry of the registry as it is written."""
    return "{name: NAME, path: PATH}" if place == "file" else "{name: NAME}"


_CURES = {
    "workflow": "add `workflow: …`, the use case",
    "contract_version": 'add `contract_version: "1"`',
    "trajectory.calls[].tool": "add `tool: …`, the tool to be called",
    "input_context": "write [{resource: api.NAME}]",
    "input_context[]": "write {resource: api.NAME}",
    "input_context[].resource": "add `resource: …`, such as api.NAME",
    "output": "write [{resource: api.NAME, operation: CREATE}]",
    "output[]": "write {resource: api.NAME, operation: CREATE}",
    "output[].resource": "add `resource: …`, such as api.NAME",
    "output[].operation": "add `operation: …`, one of CREATE, UPDATE, DELETE",
    "plugins": "write {PLUGIN: SETTINGS}, with {} for none",
    **{
        key: cure
        for place in (*TYPES, *(f"page[].{part}" for part in PAGE_PARTS))
        for key, cure in (
            (f"resources.{place}", f"write [{_entry(place)}]"),
            (f"resources.{place}[]", f"write {_entry(place)}"),
            (f"resources.{place}[].name", "add `name: …`, what the platform calls it"),
        )
    },
    **{
        f"applies_to.{key}": "write a text in quotes, or {contains: …}, {regex: …} or {glob: …}"
        for key in AppliesTo.model_fields
        if key not in ("metadata", "any_of")
    },
    "applies_to.any_of": "write [{task: …}, {prompt: …}]",
}


@dataclass(frozen=True)
class ContractFile:
    """A contract and the file it stands in.

    Attributes:
        contract: The contract.
        path: Its file.
        name: The file as people should see it.
        line: Where in the file it begins.
    """

    contract: Contract
    path: Path
    name: str
    line: int | None = 1


@dataclass(frozen=True)
class Known:
    """The names that contracts may use of what is outside of them.

    Attributes:
        harnesses: Names of harness profiles.
        plugins: Names of plugins that are not part of the package.
    """

    harnesses: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True)
class ContractSet:
    """All that was found under some paths.

    Attributes:
        contracts: The good ones, sorted by id; ids are unique.
        problems: All that is wrong, file by file and line by line. A file with a problem has no
            contract in `contracts`; the others do.
        warnings: What is allowed and hardly meant, such as a contract that demands nothing.
    """

    contracts: tuple[ContractFile, ...] = ()
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()

    def raise_if_problems(self) -> None:
        """Refuse to go on with some of the contracts.

        Raises:
            InputError: With all `problems`, if there are any.
        """
        if self.problems:
            raise InputError(self.problems)


def load_contracts(paths: Sequence[Path], known: Known | None = None) -> ContractSet:
    """Load contract files, and all of them under folders. Never raises.

    They are `*.yaml`, `*.yml`, and fixtures, `*.json`: no golden traces, schemas or lock files.
    Names of profiles and plugins are looked up in `known`; without it any name will do. Hidden
    files and folders are skipped, links are followed, and no file is loaded twice. A contract
    without `id` is called by its path under the folder that was given, without suffix and with
    `/` between; by its file name, if the file itself was given.
    """
    loaded: dict[str, ContractFile] = {}
    problems: list[Problem] = []
    warnings: list[Problem] = []
    seen: set[Path] = set()
    turns: dict[str, ContractFile] = {}
    for given in paths:
        try:
            files = _files(given, problems)
        except InputError as error:
            problems += error.problems
            continue
        for path, default_id in files:
            real = Path(os.path.realpath(path))  # unlike `resolve` it ends on a link to itself
            if real in seen:
                continue
            seen.add(real)
            try:
                found = _load(path, default_id, known)
            except InputError as error:
                problems += error.problems
                continue
            problems += found.problems
            for document, file in found.files:
                first = loaded.setdefault(file.contract.id, file)
                if first is file:
                    warnings += _warnings(document, file.contract)
                    warnings += _same_turn(document, file, turns)
                    if path.suffix.lower() == SUFFIX:
                        warnings += personal_values_beside(path, file.contract.id)
                else:
                    problems.append(same_id(document, file.contract.id, first.name))
    contracts = tuple(loaded[contract_id] for contract_id in sorted(loaded))
    return ContractSet(contracts, tuple(problems), tuple(warnings))


def same_id(document: Document, contract_id: str, first: str) -> Problem:
    """That two files name one id; `first` is the other file."""
    message = f"'{contract_id}' is also the id of {first}"
    return document.problem(("id",), message, "give one of the two another `id`")


def find_contract(named: str, paths: Sequence[Path], known: Known | None = None) -> ContractFile:
    """Find one contract: by its file, or by its id among those at `paths`.

    A file that lies at one of `paths` has the id that it has there, so that what is said of it
    alone and as one of many is said of the same contract.

    Raises:
        InputError: If there is none, or with all that is wrong with it.
    """
    file = Path(named)
    if file.is_file() or file.suffix.lower() in SUFFIXES:
        problems: list[Problem] = []
        ((path, stem),) = _files(file, problems)
        found = _load(path, _id_at(path, paths) or stem, known)
        return _only(found, shown_path(path))
    loaded = load_contracts(paths, known)
    by_id = {found.contract.id: found for found in loaded.contracts}
    if named in by_id:
        return by_id[named]
    if file.is_dir():
        cure = "name one contract file in it"
        raise InputError(Problem("is a folder", file=shown_path(file), cure=cure))
    few = f": {', '.join(by_id)}" if 0 < len(by_id) <= _LISTED_IDS else ""
    cure = did_you_mean(named, list(by_id)) or f"name a contract file, or a contract's id{few}"
    missing = Problem(f"there is no contract file and no contract '{named}'", cure=cure)
    # The one that was meant may be among those that could not be read.
    raise InputError([missing, *(p for p in loaded.problems if p.line is not None)])


def parse_contract(data: bytes, name: str, default_id: str) -> Contract:
    """Load one contract from the bytes of its file.

    Args:
        data: YAML.
        name: The file, as people should see it.
        default_id: Its id, if it names none.

    Raises:
        InputError: With all that is wrong with it.
    """
    return _contract(parse_yaml(data, name), default_id)


def dump_contract(contract_data: Mapping[str, Any]) -> str:
    """Write contract data as YAML: what `load_contracts` reads back is equal to it.

    Keys keep their order. Mappings are in block style, short lists of plain values on one line.
    A text that some YAML reader would take for something else (`1.10`, `2026-01-31`, `no`) is
    quoted. The same data give the same text.

    Args:
        contract_data: A mapping of JSON data: texts for keys; texts, finite numbers, booleans,
            None, lists (or tuples) and mappings for values.

    Raises:
        ValueError: If it holds anything else; names the key.
    """
    plain = _plain_data(contract_data, "")
    text: str = yaml.dump(
        plain,
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=math.inf,
    )
    return text


# Finding.


def _files(given: Path, problems: list[Problem]) -> list[tuple[Path, str]]:
    """The contract files at a path that was given, with their default ids, in order of path.

    What cannot be looked into is added to `problems`.

    Raises:
        InputError: If the path holds no contract file at all.
    """
    name = shown_path(given)
    if given.is_dir():
        found = sorted(_walk(given, problems), key=lambda path: path.relative_to(given).parts)
        if not found:
            cure = "put contracts there, or name another folder"
            raise InputError(Problem("no contracts in this folder", file=name, cure=cure))
        return [(path, path.relative_to(given).with_suffix("").as_posix()) for path in found]
    if not given.exists():
        cure = "name a contract file or a folder of them"
        raise InputError(Problem("does not exist", file=name, cure=cure))
    if given.suffix.lower() not in SUFFIXES:
        *others, last = (f"*{suffix}" for suffix in SUFFIXES)
        cure = f"contracts are {', '.join(others)} and {last} files"
        raise InputError(Problem("is no contract file", file=name, cure=cure))
    return [(given, given.stem)]


def _id_at(file: Path, paths: Sequence[Path]) -> str | None:
    """The default id of a file as one of those at `paths`; None if it lies at none of them."""
    normal = Path(os.path.normpath(file.absolute()))
    for base in (Path(os.path.normpath(path.absolute())) for path in paths):
        if base.is_dir() and normal.is_relative_to(base):
            return normal.relative_to(base).with_suffix("").as_posix()
    return None


def _walk(folder: Path, problems: list[Problem]) -> Iterator[Path]:
    """All contract files under a folder, through links, each folder once."""

    def unreadable(error: OSError) -> None:
        reason = error.strerror or type(error).__name__
        problems.append(
            Problem(f"cannot be read: {reason}", file=shown_path(Path(str(error.filename))))
        )

    entered: set[tuple[int, int]] = set()
    for current, folders, files in os.walk(folder, onerror=unreadable, followlinks=True):
        status = Path(current).stat()
        identity = (status.st_dev, status.st_ino)
        if identity in entered:
            folders.clear()
            continue
        entered.add(identity)
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            path = Path(current, name)
            suffix = path.suffix.lower()
            if name.startswith(".") or suffix not in SUFFIXES:
                continue
            if suffix != SUFFIX or is_fixture_file(path):
                yield path


# Loading.


@dataclass(frozen=True)
class _Loaded:
    """The contracts of one file with what they were read from, and what is wrong with others."""

    files: list[tuple[Document, ContractFile]]
    problems: tuple[Problem, ...] = ()


def _only(found: _Loaded, name: str) -> ContractFile:
    """The contract of a file that a person named; a file of several does not say which is meant.

    Raises:
        InputError: If it holds none or several.
    """
    if found.problems:
        raise InputError(found.problems)
    if len(found.files) != 1:
        ids = [file.contract.id for _, file in found.files]
        few = f": {', '.join(ids)}" if 0 < len(ids) <= _LISTED_IDS else ""
        cure = f"name one by its id{few}" if ids else "name another file"
        raise InputError(Problem(f"holds {len(ids)} contracts", file=name, cure=cure))
    return found.files[0][1]


def _load(path: Path, default_id: str, known: Known | None) -> _Loaded:
    try:
        default_id.encode()
    except UnicodeEncodeError as error:
        name = str(path).encode("utf-8", "replace").decode()
        raise InputError(Problem("has a file name that is not UTF-8", file=name)) from error
    if path.suffix.lower() == SUFFIX:
        read = read_fixture_file(path)
        files = [
            (document, ContractFile(fixture.contract, path, document.name, document.line(())))
            for document, fixture in read.fixtures
        ]
        return _Loaded(files, read.problems)
    document = read_yaml(path)
    contract = _contract(document, default_id)
    problems = () if known is None else tuple(_unknown_names(document, contract, known))
    if problems:
        raise InputError(problems)
    return _Loaded([(document, ContractFile(contract, path, document.name))])


def _unknown_names(document: Document, contract: Contract, known: Known) -> Iterator[Problem]:
    """References to profiles and plugins that there are not."""
    named: list[tuple[KeyPath, str | None, tuple[str, ...], str]] = [
        (("harness",), contract.harness, known.harnesses, "harness profile")
    ]
    named += [(("plugins", name), name, known.plugins, "plugin") for name in contract.plugins]
    for path, name, names, what in named:
        if name is not None and name not in names:
            listed = f"known: {', '.join(names)}" if names else "name its file in benchmark.yaml"
            cure = did_you_mean(name, names) or listed
            yield document.problem(path, f"there is no {what} '{name}'", cure)


def _contract(document: Document, default_id: str) -> Contract:
    problems = (
        *document.problems,
        *_misread_metadata(document),
        *_lost_references(document),
    )
    return validate(
        replace(document, problems=problems),
        Contract,
        {"id": default_id, **document.data},
        derived=_DERIVED,
        cures=_CURES,
    )


def _misread_metadata(document: Document) -> Iterator[Problem]:
    """Metadata are compared as text, and YAML's reading of a value may be another text."""
    for path, place in document.places.items():
        if len(path) != 3 or path[:2] != ("applies_to", "metadata") or place.raw is None:
            continue
        value = look_up(document.data, path)
        compared = str(value).lower() if isinstance(value, bool) else str(value)
        written = place.raw.lower() if isinstance(value, bool) else place.raw
        if isinstance(value, bool | int | float) and compared != written:
            yield document.problem(
                path,
                f"metadata are compared as text, and YAML reads `{place.raw}` as {compared}",
                f'quote it: {path[-1]}: "{place.raw}"',
            )


def _lost_references(document: Document) -> Iterator[Problem]:
    """References that lead nowhere, also where something else keeps the contract from loading.

    The contract itself refuses them only once all its keys are right, and people should be told
    of everything at once. What is wrong with the resources themselves is said of those.
    """
    written = document.data.get("resources")
    try:
        resources = None if written is None else Resources.model_validate(written)
    except ValidationError:
        return
    for section in ("input_context", "output"):
        entries = document.data.get(section)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            reference = entry.get("resource") if isinstance(entry, dict) else None
            if not isinstance(reference, str):
                continue
            try:
                resolve(reference, resources)
            except ValueError as error:
                message, _, cure = str(error).partition("; ")
                path = (section, index, "resource")
                yield document.problem(path, message, cure or None)


def _warnings(document: Document, contract: Contract) -> tuple[Problem, ...]:
    """What is allowed and hardly meant."""
    written = Path(document.name).suffix.lower()
    warnings = list(personal_values(document)) if written == SUFFIX else []
    if not _demands(contract):
        warnings.append(
            document.problem(
                (),
                "checks nothing: every run will be unchecked",
                "add skills, input_context, output, tools, trajectory, final, budget or ends_with",
            )
        )
    if written == SUFFIX:
        for key, value in document.data["expect"].items():
            if value is None:
                message, cure = "is null and has no effect", "fill it in or remove it"
                warnings.append(document.problem(("expect", key), message, cure))
    for key, value in document.data.items():
        if value is None and key in EMPTY_SECTIONS:
            empty = "[]" if EMPTY_SECTIONS[key] == () else "{}"
            any_read = key == "input_context" and contract.unrelated_reads == "report"
            meaning = "nothing has to be read" if any_read else "nothing is allowed"
            cure = f"write `{key}: {empty}` if meant, or remove it"
            warnings.append(document.problem((key,), f"is empty, so {meaning}", cure))
        elif value is None:
            warnings.append(
                document.problem((key,), "is empty and has no effect", "fill it in or remove it")
            )
    if contract.knowledge and contract.input_context is None:
        message = "has no effect without input_context, which judges reads"
        warnings.append(document.problem(("knowledge",), message, "add input_context"))
    warnings += _misspelt_names(document, contract)
    for path in document.yes_no():
        value, raw = look_up(document.data, path), document.raw(path)
        word = "true" if value else "false"
        warnings.append(
            document.problem(
                path,
                f"YAML reads `{raw}` as {word}",
                f'write {word}, or quote it if it is a text: "{raw}"',
            )
        )
    return by_line(warnings)


def _same_turn(
    document: Document, file: ContractFile, turns: dict[str, ContractFile]
) -> Iterator[Problem]:
    """Warn of a fixture whose user says what another's does: a trace is of whatever fits its text.

    Args:
        document: What the fixture was read from.
        file: The fixture; of any other contract nothing is said.
        turns: What users say in the fixtures so far, and now in this one.
    """
    if Path(document.name).suffix.lower() != SUFFIX:
        return
    first = turns.setdefault(" ".join(document.data["input"]["user"].split()), file)
    if first is not file:
        yield document.problem(
            ("input", "user"),
            f"is what the user says in '{first.contract.id}' of {first.name}, too, so both judge "
            "the traces of either",
            "let the two texts differ, unless that is meant",
        )


def _demands(contract: Contract) -> bool:
    """Whether anything in a contract can pass."""
    tools, demanded = contract.tools, contract.input_context
    return bool(
        contract.skills is not None
        or demanded
        or (demanded is not None and contract.unrelated_reads == "fail")
        or contract.output is not None
        or (tools is not None and (tools.required or tools.forbidden or tools.allows_nothing))
        or contract.trajectory
        or contract.final
        or contract.budget
        or contract.ends_with
        or contract.plugins
    )


def _misspelt_names(document: Document, contract: Contract) -> Iterator[Problem]:
    for section in ("input_context", "output"):
        for index, demand in enumerate(getattr(contract, section) or ()):
            target = contract.target(demand)
            near = likely_misspelt(target, contract.resources)
            if near is not None:
                whole = target.kind == "page"
                meant = target.label if whole else f"any {target.kind} of page {target.page}"
                yield document.problem(
                    (section, index, "resource"),
                    f"means {meant}, and the text '{target.qualifiers[0]}' somewhere in the trace",
                    near,
                )


# Writing.


_FLOW_WIDTH = 72
_MISREAD = re.compile(
    # Beyond what PyYAML quotes by itself: numbers of YAML 1.2 and JSON, numbers that
    # readers disagree on, and the single letters of YAML 1.1.
    r"[-+]?(\.?[0-9][0-9_,.:]*)([eE][-+]?[0-9]+)?|[-+]?0[xob][0-9a-fA-F_]+|[yYnN]|<<|="
)


class _FlowList(list[Any]):
    """A list that is written on one line."""


class _Dumper(yaml.SafeDumper):
    """Block style, indented lists, double quotes rather than single ones, no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def choose_scalar_style(self) -> str:
        style = super().choose_scalar_style()
        text = self.event.value if isinstance(self.event, yaml.ScalarEvent) else ""
        # Single quotes are easier on the eye around `"` and `\`, and fold line breaks into \n.
        eased = set(text) & {"\\", '"'} and not set(text) & set("\r\x85\u2028\u2029")
        return '"' if style == "'" and not eased else style


def _text_node(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    tag = "tag:yaml.org,2002:str"
    if _MISREAD.fullmatch(text):
        return dumper.represent_scalar(tag, text, style='"')
    # A literal block cannot keep white space at the end of a line in sight of an editor.
    # and line breaks other than \n would be read back as \n.
    block = "\n" in text.strip("\n") and not re.search(r"[ \t](\n|$)|[\r\x85\u2028\u2029]", text)
    return dumper.represent_scalar(tag, text, style="|" if block else None)


def _flow_node(dumper: _Dumper, items: _FlowList) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=True)


_Dumper.add_representer(str, _text_node)
_Dumper.add_representer(_FlowList, _flow_node)


def _plain_data(value: Any, key: str) -> Any:
    """Copy JSON data with its short lists marked; see `dump_contract` for what is refused."""
    if isinstance(value, Mapping):
        odd = [name for name in value if not isinstance(name, str)]
        if odd:
            raise ValueError(f"{key or 'contract'}: the key {odd[0]!r} is not a text")
        return {
            _text(name, key): _plain_data(item, f"{key}.{name}" if key else name)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        items = [_plain_data(item, f"{key}[{index}]") for index, item in enumerate(value)]
        scalars = all(not isinstance(item, dict | list) for item in items)
        one_line = not any(isinstance(item, str) and "\n" in item for item in items)
        width = sum(len(str(item)) + 2 for item in items)
        return _FlowList(items) if scalars and one_line and width <= _FLOW_WIDTH else items
    if isinstance(value, str):
        return _text(value, key)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise ValueError(f"{key}: {value!r} is not JSON data")


def _text(value: str, key: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{key}: {value!r} is not Unicode text") from error
    return str(value)  # drops subclasses, such as enumerations of texts
