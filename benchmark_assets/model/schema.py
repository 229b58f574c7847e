"""JSON Schemas of what people write, for editors to complete and check while they type.

Belongs here: making them from the models, so that they cannot drift apart. Does not belong here:
validating with them (the models do, and say more) or writing them to files (`cli/schema`).

A schema is looser than its model: what one key says about another, references, regular
expressions and matchers are checked when a file is loaded, and by `bench lint`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.golden import SECTIONS, Expect, FixtureSource
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.project import FileSource, ProjectConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


_FILLED_IN: dict[type[BaseModel], tuple[str, ...]] = {
    Contract: ("id", "name", "group", "applies_to"),
    FileSource: ("name",),
}
"""Keys that a model requires and a file need not have, since they are made from others."""


_MADE_OF: dict[type[BaseModel], tuple[type[BaseModel], ...]] = {
    Expect: tuple(section for _, section in SECTIONS),
}
"""Models that have the keys of others, which describe them."""


def contract_schema() -> dict[str, Any]:
    """The schema of a contract file."""
    return _schema(Contract, "A contract")


def fixture_schema() -> dict[str, Any]:
    """The schema of a fixture of a golden trace."""
    return _schema(FixtureSource, "A fixture of a golden trace")


def harness_schema() -> dict[str, Any]:
    """The schema of a harness profile."""
    return _schema(HarnessProfile, "A harness profile")


def project_schema() -> dict[str, Any]:
    """The schema of `benchmark.yaml`."""
    return _schema(ProjectConfig, "The settings of a project, benchmark.yaml")


def _schema(model: type[BaseModel], title: str) -> dict[str, Any]:
    schema = model.model_json_schema(mode="validation")
    by_name = {found.__name__: found for found in models_of(model)}
    for name, part in (*schema.get("$defs", {}).items(), (model.__name__, schema)):
        if name in by_name:
            _describe(part, by_name[name])
            _require(part, by_name[name])
    cleaned: dict[str, Any] = _cleaned(schema)
    return {"$schema": DIALECT, "title": title, **cleaned}


def _require(part: dict[str, Any], model: type[BaseModel]) -> None:
    required = [key for key in part.pop("required", ()) if key not in _FILLED_IN.get(model, ())]
    if required:
        part["required"] = required


def models_of(annotation: Any, seen: set[Any] | None = None) -> Iterator[type[BaseModel]]:
    """A model and all models that its fields may hold."""
    seen = set() if seen is None else seen
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in seen:
            return
        seen.add(annotation)
        yield annotation
        for info in annotation.model_fields.values():
            yield from models_of(info.annotation, seen)
    for argument in get_args(annotation):
        yield from models_of(argument, seen)


def _describe(part: dict[str, Any], model: type[BaseModel]) -> None:
    """Put what the model's docstring says about its keys where editors show it."""
    head, _, attributes = (inspect.getdoc(model) or "").partition("Attributes:\n")
    after = re.split(r"^(?=\S)", attributes, maxsplit=1, flags=re.MULTILINE)[1:]
    part["description"] = " ".join(" ".join([head, *after]).split())
    for name, info in model.model_fields.items():
        key = info.alias or name
        text = described(model).get(name)
        if text is not None:
            part["properties"][key]["description"] = text


def described(model: type[BaseModel]) -> dict[str, str]:
    """Field → what the `Attributes:` of the model's docstring say about it; bases' come first."""
    said: dict[str, str] = {}
    for base in (*_MADE_OF.get(model, ()), *reversed(model.__mro__)):
        if issubclass(base, BaseModel) and base is not BaseModel:
            said |= _attributes((inspect.getdoc(base) or "").partition("Attributes:\n")[2])
    aliases = {info.alias: name for name, info in model.model_fields.items() if info.alias}
    return {aliases.get(name, name): text for name, text in said.items()}


def _attributes(text: str) -> dict[str, str]:
    """Field → what a docstring's `Attributes:` say about it."""
    said: dict[str, str] = {}
    names: list[str] = []
    for line in text.splitlines():
        if not line.startswith("    ") and line.strip():
            break
        begins = re.match(r" {4}(\w+(?:, \w+)*): (.*)", line)
        if begins:
            names = begins[1].split(", ")
            said |= dict.fromkeys(names, begins[2])
        elif line.strip():
            said |= {name: f"{said[name]} {line.strip()}" for name in names}
    return said


def _cleaned(part: Any, named: bool = False) -> Any:
    """Drop what says nothing or the wrong thing.

    That is pydantic's titles, which only repeat the keys, defaults of null, and the length of a
    list where one item may stand for it: it would be taken for the length of a text.
    """
    if isinstance(part, list):
        return [_cleaned(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    dropped = {"title", "minLength"} if "anyOf" in part else {"title"}
    return {
        key: _cleaned(item, named=key in ("properties", "$defs"))
        for key, item in part.items()
        if named or not (key in dropped or (key == "default" and item is None))
    }
