"""Resources: what a contract calls the things an agent reads and changes, and where they live.

Belongs here: the registry as people write it, the path conventions, and resolving dotted
references against both. Does not belong here: whether a trace touched a resource (`scoring`).

A reference is `type.name`, for a page also `page.Main.variable.svcVacations`. Segments are
separated by dots; one with a dot, a space or any other character that is no letter, digit, `_`
or `-` may be put in double quotes (`api."hr.db".getVacation`), where `""` stands for a quote.
An unquoted reference may also spell a name with dots as it is, where only one reading fits.

The registry is looked up as far as it goes; what is left are *qualifiers*, texts that must occur
in the trace as a term must. `page.Main.variable` without a name means any variable of the page.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, model_validator

from benchmark_assets.model.problem import did_you_mean
from benchmark_assets.model.section import NonEmpty, Section

PAGE_PARTS = ("variable", "widget", "javascript")
"""What a page has inside it."""

CONVENTIONS: dict[str, str] = {
    "api": "services/{name}/designtime/{name}_API.json",
    "javaservice": "services/{name}/designtime/{name}_API.json",
    "db": "services/{name}/designtime/{name}_published_dataModel.json",
    "design_tokens": "src/main/webapp/pages/{name}/{name}.tokens-plan.json",
    "page": "src/main/webapp/pages/{name}/{name}.html",
    "variable": "src/main/webapp/pages/{page}/{page}.variables.json",
    "widget": "src/main/webapp/pages/{page}/{page}.html",
    "javascript": "src/main/webapp/pages/{page}/{page}.js",
}
"""Where a resource lives unless its `path` says otherwise, by kind of resource. A widget is
markup inside its page; an explicit `path` of the page moves its widgets with it."""

ELSEWHERE: dict[str, tuple[str, ...]] = {
    "api": (
        "services/{name}/designtime/{name}_API_REST_SERVICE.json",
        "services/{name}/designtime/{name}_API_WEBSOCKET_SERVICE.json",
    ),
    "javaservice": ("services/{name}/src/{file}.java",),
}
"""Other places that tell what kind of resource lies there. It needs an explicit `path`, since
no name leads to them; `{file}` is a path below a folder."""

Kind = Literal["api", "javaservice", "db", "design_tokens", "page", "file"]
TYPES: tuple[Kind, ...] = ("api", "javaservice", "db", "design_tokens", "page", "file")


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


class Resource(Section):
    """One named thing.

    Attributes:
        name: The name that the platform gives it; unique among its kind.
        path: Its file, relative to the workspace; default: by the convention of its type.
    """

    name: NonEmpty
    path: NonEmpty | None = None


Registered = Annotated[tuple[Resource, ...], BeforeValidator(_tuple)]


class File(Resource):
    """Any file of a project that knows none of the conventions.

    Attributes:
        name: What the contract calls it; unique among files.
        path: Where it is, relative to the workspace.
    """

    path: NonEmpty


class Page(Resource):
    """A page, and what is inside it.

    Attributes:
        variable: Its variables.
        widget: Its widgets, markup inside the page.
        javascript: The functions of its script.
    """

    variable: Registered = ()
    widget: Registered = ()
    javascript: Registered = ()


class Resources(Section):
    """The registry: every resource a contract refers to, by the name the platform gives it.

    Attributes:
        api: Services that are called over the network.
        javaservice: Services written in Java for the project.
        db: Databases.
        design_tokens: Plans of a page's design tokens, by the page's name.
        page: Pages, and what is inside them.
        file: Any other file, by its path.
    """

    api: Registered = ()
    javaservice: Registered = ()
    db: Registered = ()
    design_tokens: Registered = ()
    page: Annotated[tuple[Page, ...], BeforeValidator(_tuple)] = ()
    file: Annotated[tuple[File, ...], BeforeValidator(_tuple)] = ()

    @model_validator(mode="after")
    def _unique_names(self) -> Resources:
        problems = [
            problem for kind in TYPES for problem in _repeated(f"{kind}", getattr(self, kind))
        ]
        problems += [
            problem
            for index, page in enumerate(self.page)
            for part in PAGE_PARTS
            for problem in _repeated(f"page[{index}].{part}", getattr(page, part))
        ]
        if problems:
            raise ValueError("; ".join(problems))
        return self

    def targets(self) -> Iterator[Target]:
        """Everything in the registry, as a reference to it would resolve."""
        for kind in TYPES:
            for resource in getattr(self, kind):
                yield _whole(kind, resource)
        for page in self.page:
            for part in PAGE_PARTS:
                for resource in getattr(page, part):
                    yield _inside(page, part, resource)


def _repeated(key: str, resources: Sequence[Resource]) -> list[str]:
    seen = Counter(resource.name for resource in resources)
    return [
        f"{key}[{index}]: the name '{resource.name}' is already taken by an entry above"
        for index, resource in enumerate(resources)
        if seen[resource.name] > 1
        and any(other.name == resource.name for other in resources[:index])
    ]


@dataclass(frozen=True)
class Target:
    """What a reference means.

    Attributes:
        kind: `api`, …, `page`, or a page's `variable`, `widget`, `javascript`.
        name: The resource's name; None for any of that kind on the page.
        page: The page it is inside of, if it is inside of one.
        paths: The files it may be in: one, except where any of a kind is meant.
        shares_file: Whether other resources live in the same file, so that the name decides.
        qualifiers: Texts that must occur in the trace, besides.
    """

    kind: str
    name: str | None
    page: str | None
    paths: tuple[str, ...]
    shares_file: bool
    qualifiers: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The reference to it without qualifiers, in its canonical spelling."""
        parts = [self.kind] if self.page is None else ["page", self.page, self.kind]
        return write_reference([*parts, *([] if self.name is None else [self.name])])


def _path(kind: str, resource: Resource, page: Page | None = None) -> str:
    if resource.path is not None:
        return resource.path
    if kind == "widget" and page is not None and page.path is not None:
        return page.path
    owner = "" if page is None else page.name
    return CONVENTIONS[kind].format(name=resource.name, page=owner)


def _whole(kind: str, resource: Resource, qualifiers: Sequence[str] = ()) -> Target:
    return Target(
        kind=kind,
        name=resource.name,
        page=None,
        paths=(_path(kind, resource),),
        shares_file=False,
        qualifiers=tuple(qualifiers),
    )


def _inside(page: Page, part: str, resource: Resource, qualifiers: Sequence[str] = ()) -> Target:
    path = _path(part, resource, page)
    # With a file of its own it needs no telling apart: the file is the resource.
    shared = resource.path is None or _several_in(page, path)
    return Target(
        kind=part,
        name=resource.name,
        page=page.name,
        paths=(path,),
        shares_file=shared,
        qualifiers=tuple(qualifiers),
    )


def _several_in(page: Page, path: str) -> bool:
    paths = [_path(kind, other, page) for kind in PAGE_PARTS for other in getattr(page, kind)]
    return paths.count(path) > 1 or path == _path("page", page)


def _any_inside(page: Page, part: str, qualifiers: Sequence[str]) -> Target:
    of_page = Resource(name=page.name)
    declared = [_path(part, resource, page) for resource in getattr(page, part)]
    paths = dict.fromkeys([_path(part, of_page, page), *declared])
    return Target(
        kind=part,
        name=None,
        page=page.name,
        paths=tuple(paths),
        shares_file=True,
        qualifiers=tuple(qualifiers),
    )


# From a path back to what lives there.


@dataclass(frozen=True)
class Located:
    """What a path may be.

    Attributes:
        kind: `api`, …, `page`, or a page's `variable`, `widget`, `javascript`.
        name: The resource's name; of a page's parts the page's.
        conventional: Whether the name leads to the path, so that no `path` need be given.
    """

    kind: str
    name: str
    conventional: bool = True


def resources_at(path: str) -> tuple[Located, ...]:
    """All that a file may be by its path alone; nothing if no convention has such a path.

    Args:
        path: Normal path relative to the workspace, with `/` between parts.
    """
    return tuple(
        Located(kind, match["name"], conventional)
        for kind, pattern, conventional in _PATTERNS
        if (match := pattern.fullmatch(path)) is not None
    )


def _pattern(convention: str) -> re.Pattern[str]:
    """A regular expression for the paths that a convention may give."""
    text = re.escape(convention).replace(r"\{page\}", r"\{name\}")
    text = text.replace(r"\{name\}", r"(?P<name>[^/]*[^/\s][^/]*)", 1).replace(
        r"\{name\}", "(?P=name)"
    )
    return re.compile(text.replace(r"\{file\}", ".+"))


_PATTERNS = (
    *((kind, _pattern(convention), True) for kind, convention in CONVENTIONS.items()),
    *((kind, _pattern(place), False) for kind, places in ELSEWHERE.items() for place in places),
)


# References.


_BARE = re.compile(r"[\w-]+")
_SEGMENT = re.compile(r'"((?:[^"]|"")*)"|([^."]+)')


@dataclass(frozen=True)
class Segment:
    """One part of a reference; a quoted one is a whole name or qualifier."""

    text: str
    quoted: bool = False


def read_reference(reference: str) -> tuple[Segment, ...]:
    """Split a reference into its segments.

    Raises:
        ValueError: If a quote is not closed or a segment is empty.
    """
    segments = []
    position = 0
    while True:
        match = _SEGMENT.match(reference, position)
        if match is None:
            if reference.startswith('"', position):
                raise ValueError(f"'{reference}': a quoted name is not closed")
            raise ValueError(f"'{reference}': a part between dots is empty")
        quoted = match[1] is not None
        text = match[1].replace('""', '"') if quoted else match[2].strip()
        if not text:
            raise ValueError(f"'{reference}': a part between dots is empty")
        segments.append(Segment(text, quoted))
        position = match.end()
        if position == len(reference):
            return tuple(segments)
        if reference[position] != ".":
            raise ValueError(f"'{reference}': a dot is missing at character {position + 1}")
        position += 1


def write_reference(parts: Sequence[str]) -> str:
    """Join names into a reference, quoting those that need it; `read_reference` splits it again."""
    return ".".join(
        part if _BARE.fullmatch(part) else '"' + part.replace('"', '""') + '"' for part in parts
    )


def resolve(reference: str, resources: Resources | None) -> Target:
    """Find out what a reference means.

    Raises:
        ValueError: If it leads to nothing, with the nearest names, or may mean two things.
    """
    head, *rest = read_reference(reference)
    if head.quoted and head.text in TYPES:
        raise ValueError(f"'{reference}': the type {head.text} stands in quotes; write it without")
    if head.text not in TYPES:
        cure = did_you_mean(head.text, TYPES) or f"types of resources: {', '.join(TYPES)}"
        raise ValueError(f"'{reference}': there is no type of resource '{head.text}'; {cure}")
    registry: Sequence[Resource] = getattr(resources or Resources(), head.text)
    if not rest:
        names = _names(registry)
        cure = f"write {head.text}.NAME" + (f", one of {names}" if names else "")
        raise ValueError(f"'{reference}': names no {head.text}; {cure}")
    found = _look_up(reference, rest, registry)
    if found is None:
        raise ValueError(_not_found(reference, head.text, rest, registry))
    resource, rest = found
    if isinstance(resource, Page) and rest and rest[0].text in PAGE_PARTS and not rest[0].quoted:
        return _resolve_inside(reference, resource, rest[0].text, rest[1:])
    return _whole(head.text, resource, [segment.text for segment in rest])


def _resolve_inside(reference: str, page: Page, part: str, rest: list[Segment]) -> Target:
    found = _look_up(reference, rest, getattr(page, part)) if rest else None
    if found is None:
        return _any_inside(page, part, [segment.text for segment in rest])
    resource, rest = found
    return _inside(page, part, resource, [segment.text for segment in rest])


def _look_up(
    reference: str, rest: list[Segment], registry: Sequence[Resource]
) -> tuple[Resource, list[Segment]] | None:
    """The resource that the first segments name, and the segments that are left."""
    found = [
        (resource, length)
        for resource in registry
        for length in range(1, len(rest) + 1)
        if _spells(rest[:length], resource.name)
    ]
    if not found:
        return None
    if len(found) > 1:
        names = " or ".join(f'"{resource.name}"' for resource, _ in found)
        raise ValueError(f"'{reference}': may mean {names}; put the name in double quotes")
    resource, length = found[0]
    return resource, rest[length:]


def _spells(segments: list[Segment], name: str) -> bool:
    if len(segments) == 1:
        return segments[0].text == name
    return not any(s.quoted for s in segments) and ".".join(s.text for s in segments) == name


def _names(registry: Sequence[Resource]) -> str:
    return ", ".join(resource.name for resource in registry)


def _not_found(reference: str, kind: str, rest: list[Segment], registry: Sequence[Resource]) -> str:
    wanted = rest[0].text
    names = [resource.name for resource in registry]
    if not names:
        where = ", path: …" if kind == "file" else ""
        cure = f"add it under resources.{kind}: [{{name: {wanted}{where}}}]"
        return f"'{reference}': no {kind} is declared; {cure}"
    cure = did_you_mean(wanted, names) or f"declared: {', '.join(names)}"
    return f"'{reference}': there is no {kind} '{wanted}' under resources; {cure}"


def likely_misspelt(target: Target, resources: Resources | None) -> str | None:
    """What the first qualifier of a reference nearly is and hardly by chance; None if nothing.

    `page.Main.variable.svcVacatons` is legal (any variable, and that text somewhere) and hardly
    meant where `svcVacations` is declared; nor is `page.Main.varable`, the page and that text.
    """
    if not target.qualifiers or resources is None:
        return None
    first = target.qualifiers[0]
    if target.kind == "page":
        # In quotes it is the text itself that is meant.
        return None if first in PAGE_PARTS else did_you_mean(first, PAGE_PARTS)
    if target.name is not None:
        return None
    for page in resources.page:
        if page.name == target.page:
            names = [resource.name for resource in getattr(page, target.kind)]
            return did_you_mean(first, names)
    return None
