"""Writes `openapi.json`: the parts of Langfuse's API description that the test server answers by.

The description is `web/public/generated/api/openapi.yml` of langfuse/langfuse at 6275144, which is
MIT licensed (Copyright (c) Langfuse GmbH). Kept of it are, for the addresses below, which
parameters, bodies and answers there are, and the shapes that those refer to; texts for people and
error answers, which the description leaves open, are dropped.

    python -m tests.langfuse_server.trim_openapi path/to/openapi.yml
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import yaml

KEPT = {
    "/api/public/health": ("get",),
    "/api/public/ingestion": ("post",),
    "/api/public/observations": ("get",),
    "/api/public/observations/{observationId}": ("get",),
    "/api/public/otel/v1/traces": ("post",),
    "/api/public/projects": ("get",),
    "/api/public/scores": ("post",),
    "/api/public/sessions": ("get",),
    "/api/public/sessions/{sessionId}": ("get",),
    "/api/public/traces": ("get",),
    "/api/public/traces/{traceId}": ("get",),
    "/api/public/v2/observations": ("get",),
    "/api/public/v2/scores": ("get",),
    "/api/public/v3/scores": ("get",),
}
WITH_BODIES = {"/api/public/scores"}
ORIGIN = (
    "From web/public/generated/api/openapi.yml of langfuse/langfuse at 6275144, MIT licensed, "
    "Copyright (c) Langfuse GmbH; trimmed by trim_openapi.py"
)
TARGET = Path(__file__).with_name("openapi.json")
FOR_PEOPLE = {"description", "title", "tags", "operationId", "security", "deprecated", "example"}


def trim(description: dict[str, Any]) -> dict[str, Any]:
    """The kept addresses, and all shapes that they lead to."""
    paths = {
        path: {method: _operation(path, description["paths"][path][method]) for method in methods}
        for path, methods in KEPT.items()
    }
    schemas: dict[str, Any] = {}
    waiting = _references(paths)
    while waiting:
        name = waiting.pop()
        if name not in schemas:
            schemas[name] = _bare(description["components"]["schemas"][name])
            waiting |= _references(schemas[name])
    return {
        "openapi": description["openapi"],
        "x-origin": ORIGIN,
        "paths": paths,
        "components": {"schemas": dict(sorted(schemas.items()))},
    }


def _operation(path: str, operation: dict[str, Any]) -> dict[str, Any]:
    parts = ("parameters", "requestBody") if path in WITH_BODIES else ("parameters",)
    kept = {name: _bare(operation[name]) for name in parts if name in operation}
    answers = {code: _bare(a) for code, a in operation["responses"].items() if code.startswith("2")}
    return {**kept, "responses": answers}


def _bare(value: Any, *, names: bool = False) -> Any:
    """A value without its texts for people; `names` says that its keys are names of fields."""
    if isinstance(value, list):
        return [_bare(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: _bare(held, names=key == "properties" and not names)
        for key, held in value.items()
        if names or key not in FOR_PEOPLE
    }


def _references(value: Any) -> set[str]:
    return set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(value)))


def main() -> None:
    source = yaml.safe_load(Path(sys.argv[1]).read_text(encoding="utf-8"))
    text = json.dumps(trim(source), indent=1, ensure_ascii=False)
    TARGET.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
