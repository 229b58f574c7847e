"""The project that the agent works on: where its files lie, and what a build finds wrong.

Belongs here: path forms and the checks of JSON, Java and pages. Does not belong here: the tools
that call them (`harness`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from typing import Any

NAME = "hr-portal"
WORKSPACE = f"/workspace/{NAME}"
"""Where the project lies for the agent, whatever the folder on this machine."""

PAGES = "src/main/webapp/pages"
_NOT_CODE = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def relative_path(path: str) -> str:
    """The path inside the project of a relative, workspace-prefixed or absolute path.

    Raises:
        ValueError: If the path leads out of the project.
    """
    pure = PurePosixPath(path)
    if pure.is_absolute():
        pure = pure.relative_to(WORKSPACE)
    elif pure.parts[:1] == (NAME,):
        pure = PurePosixPath(*pure.parts[1:])
    if ".." in pure.parts or not pure.parts:
        raise ValueError(f"{path} is no file of the project")
    return str(pure)


def tree(root: Path) -> dict[str, str]:
    """Every file of the project by its path in it, in the order of paths."""
    return {
        str(file.relative_to(root).as_posix()): file.read_text(encoding="utf-8")
        for file in sorted(root.rglob("*"))
        if file.is_file()
    }


def build_problems(root: Path, target: str) -> list[str]:
    """What keeps a target from building: a service by its name, `web`, or `all`.

    Raises:
        ValueError: If there is no such target.
    """
    services = {folder.name: folder for folder in sorted((root / "services").iterdir())}
    if target not in (*services, "web", "all"):
        raise ValueError(f"unknown target '{target}'; targets: {', '.join(services)}, web, all")
    folders = [folder for name, folder in services.items() if target in (name, "all")]
    if target in ("web", "all"):
        folders.append(root / PAGES)
    problems = []
    for folder in folders:
        for file in sorted(folder.rglob("*")):
            if file.suffix == ".java":
                problems += _located(root, file, _java_problems(file, set(services)))
            elif file.suffix == ".json":
                problems += _located(root, file, _json_problems(file, set(services)))
    return problems


def page_problems(root: Path) -> list[str]:
    """What is wrong with the pages: markup, bindings and handlers that lead nowhere."""
    services = {folder.name for folder in (root / "services").iterdir()}
    problems = []
    for file in sorted((root / PAGES).glob("*/*")):
        if file.suffix == ".json":
            problems += _located(root, file, _json_problems(file, services))
        elif file.suffix == ".html":
            problems += _located(root, file, _markup_problems(file))
    return problems


def _located(root: Path, file: Path, problems: Iterator[str]) -> list[str]:
    return [f"{file.relative_to(root).as_posix()}: {problem}" for problem in problems]


def _json_problems(file: Path, services: set[str]) -> Iterator[str]:
    try:
        value: Any = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        yield f"is not JSON: {error}"
        return
    if file.name.endswith(".variables.json"):
        for name, variable in value.items():
            if variable["service"] not in services:
                yield f"{name}: there is no service {variable['service']}"


def _java_problems(file: Path, services: set[str]) -> Iterator[str]:
    code = _NOT_CODE.sub("", file.read_text(encoding="utf-8"))
    for opening, closing in ("{}", "()"):
        opened, closed = code.count(opening), code.count(closing)
        if opened != closed:
            yield f"{opened} '{opening}' and {closed} '{closing}': reached end of file while parsing"
    if not re.search(rf"\b(?:class|interface)\s+{file.stem}\b", code):
        yield f"declares no class {file.stem}"
    package = re.search(r"\bpackage\s+([\w.]+);", code)
    folder = file.parent.as_posix().partition("/src/")[2].replace("/", ".")
    if package is None or package[1] != folder:
        yield f"package is not {folder}"
    known = {name.lower() for name in services}
    for name in sorted(set(re.findall(r"\bimport\s+com\.acme\.(\w+)", code))):
        if name.lower() not in known:
            yield f"package com.acme.{name} does not exist"


class _Markup(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []
        self.values: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.values += [(name, value) for name, value in attrs if value]

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}> closes what is not open")


def _markup_problems(file: Path) -> Iterator[str]:
    markup = _Markup()
    markup.feed(file.read_text(encoding="utf-8"))
    yield from markup.problems
    yield from (f"<{tag}> is never closed" for tag in markup.open)
    variables, script = file.with_suffix(".variables.json"), file.with_suffix(".js")
    known = json.loads(variables.read_text(encoding="utf-8")) if variables.exists() else {}
    code = script.read_text(encoding="utf-8") if script.exists() else ""
    for name, value in markup.values:
        bound = re.match(r"bind:Variables\.(\w+)", value)
        if bound and bound[1] not in known:
            yield f"binds {bound[1]}, and the page has no such variable"
        handler = re.match(r"\w+", value) if name.startswith("on-") else None
        if handler and f"Page.{handler[0]} = function" not in code:
            yield f"{name}: the page's script has no function {handler[0]}"
