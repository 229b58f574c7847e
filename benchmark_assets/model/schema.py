"""JSON Schemas of what people write, for editors to complete and check while they type.

Belongs here: making them from the models, so that they cannot drift apart. Does not belong here:
validating with them (the models do, and say more) or writing them to files (`cli/schema`).

A schema is looser than its model: what one key says about another, references, regular
expressions and matchers are checked when a file is loaded, and by `bench lint`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, get_args

from pydantic import BaseModel

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.project import ProjectConfig

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def contract_schema() -> dict[str, Any]:
    """The schema of a contract file; what the loader fills in is not required."""
    return _schema(Contract, "A contract", filled_in=("id", "name", "group", "applies_to"))


def harness_schema() -> dict[str, Any]:
    """The schema of a harness profile."""
    return _schema(HarnessProfile, "A harness profile")


def project_schema() -> dict[str, Any]:
    """The schema of `benchmark.yaml`."""
    return _schema(ProjectConfig, "The settings of a project, benchmark.yaml")


def _schema(model: type[BaseModel], title: str, filled_in: Iterable[str] = ()) -> dict[str, Any]:
    schema = model.model_json_schema(mode="validation")
    texts = {found.__name__: found for found in _models(model)}
    for name, part in (*schema.get("$defs", {}).items(), (model.__name__, schema)):
        if name in texts:
            _describe(part, texts[name])
    required = [key for key in schema.get("required", ()) if key not in set(filled_in)]
    schema.pop("required", None)
    cleaned: dict[str, Any] = _without_titles(schema)
    if required:
        cleaned["required"] = required
    return {"$schema": DIALECT, "title": title, **cleaned}


def _models(annotation: Any, seen: set[Any] | None = None) -> Iterator[type[BaseModel]]:
    """A model and all models that its fields may hold."""
    seen = set() if seen is None else seen
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        if annotation in seen:
            return
        seen.add(annotation)
        yield annotation
        for info in annotation.model_fields.values():
            yield from _models(info.annotation, seen)
    for argument in get_args(annotation):
        yield from _models(argument, seen)


def _describe(part: dict[str, Any], model: type[BaseModel]) -> None:
    """Put what the model's docstring says about its keys where editors show it."""
    document = inspect.getdoc(model) or ""
    head, _, attributes = document.partition("Attributes:\n")
    part["description"] = " ".join(head.split())
    said = _attributes(attributes)
    for name, info in model.model_fields.items():
        if name in said:
            part["properties"][info.alias or name]["description"] = said[name]


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


def _without_titles(part: Any, named: bool = False) -> Any:
    """Drop pydantic's titles, which only repeat the keys, and defaults of null."""
    if isinstance(part, list):
        return [_without_titles(item) for item in part]
    if not isinstance(part, Mapping):
        return part
    return {
        key: _without_titles(item, named=key in ("properties", "$defs"))
        for key, item in part.items()
        if named or not (key == "title" or (key == "default" and item is None))
    }
