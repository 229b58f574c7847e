"""The API description as schemas that answers can be held against.

Belongs here: reading `openapi.json`. Does not belong here: making it (`trim_openapi`).
"""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker

from .answers import TIME

DESCRIPTION = Path(__file__).with_name("openapi.json")
NULL = {"type": "null"}

formats = FormatChecker(())


@formats.checks("date-time")
def _is_time(value: object) -> bool:
    return not isinstance(value, str) or TIME.fullmatch(value) is not None


@functools.cache
def description() -> dict[str, Any]:
    """The description, as it is kept."""
    read: dict[str, Any] = json.loads(DESCRIPTION.read_text(encoding="utf-8"))
    return read


def as_schema(value: Any) -> Any:
    """OpenAPI 3.0's dialect as JSON schema: what is `nullable` may be null."""
    if isinstance(value, list):
        return [as_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    rest = {key: as_schema(held) for key, held in value.items() if key != "nullable"}
    if value.get("nullable") is not True or not rest:
        return rest
    return {"anyOf": [rest, NULL]}


@functools.cache
def _shapes() -> dict[str, Any]:
    shapes = {name: as_schema(s) for name, s in description()["components"]["schemas"].items()}
    return {"schemas": shapes}


def faults_of(path: str, status: int, body: Any, method: str = "get") -> list[str]:
    """What an answer has that the description does not allow.

    Args:
        path: The request's, as asked for.
        status: The answer's.
        body: The answer's, read from JSON.
        method: The request's.

    Returns:
        A text for each fault; none if the answer is as described.

    Raises:
        LookupError: The description has no such address or answer.
    """
    for template, operations in description()["paths"].items():
        pattern = re.sub(r"\\\{[^/]+\\\}", "[^/]+", re.escape(template))
        if re.fullmatch(pattern, path) and method in operations:
            answer = operations[method]["responses"][str(status)]
            return _faults(answer["content"]["application/json"]["schema"], body)
    raise LookupError(f"{method} {path} is not described")


def body_faults(path: str, body: Any) -> list[str]:
    """What a body that is sent to a described address has that is not allowed."""
    sent = description()["paths"][path]["post"]["requestBody"]
    return _faults(sent["content"]["application/json"]["schema"], body)


def _faults(schema: Any, body: Any) -> list[str]:
    whole = {**as_schema(schema), "components": _shapes()}
    validator = Draft202012Validator(whole, format_checker=formats)
    return [f"{error.json_path}: {error.message[:300]}" for error in validator.iter_errors(body)]
