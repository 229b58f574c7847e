"""What a trace changed: each file and each element in it, from how it was to how it is.

Belongs here: following the content of files through a trace, and what was done to a target of
a contract in the end. Does not belong here: whether that was demanded (`plugins/output`).

What counts as done is the *net effect*: created if it was not there before the trace and is
afterwards, updated if it was there before and after, deleted if it is gone. Whoever creates a
file, edits it and deletes it again has done nothing. Where the trace cannot tell how it was
before, what is possible is several, and any of them is accepted.

A call *concerns* an element that shares its file if the element's name occurs in what the call
wrote or replaced, or if the element was there before it and is not afterwards. A rewritten file
in which the element's part is the same as before does not concern it. To be there is more than
to be mentioned: in JSON the name must be a key or a whole text. A content that is no whole JSON
where it should be, as where a trace was cut, shows what is there and not what is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from benchmark_assets.model.contract import Operation
from benchmark_assets.model.identity import canonical_json
from benchmark_assets.model.resources import Target
from benchmark_assets.model.trace import FileEvent, Replacement
from benchmark_assets.scoring.content import elements, find_element, is_named, occurs, parsed
from benchmark_assets.scoring.paths import PathMap, normal_path

EFFECTS: dict[tuple[bool, bool], Operation | None] = {
    (False, True): "CREATE",
    (True, True): "UPDATE",
    (True, False): "DELETE",
    (False, False): None,
}
"""(there before, there after) → what was done; None for nothing."""


@dataclass(frozen=True)
class Change:
    """One change of one file that did not fail.

    Attributes:
        path: As the trace has it.
        declared: The declared path that it is; None if it is none.
        call: Index of the tool call.
        existed: Whether the file was there before; None if the trace cannot tell.
        exists: Whether it is there afterwards.
        before, after: Its whole content, as far as the trace shows it.
        event: What the call says; of a move both changes have the same.
    """

    path: str
    declared: str | None
    call: int | None
    existed: bool | None
    exists: bool
    before: str | None
    after: str | None
    event: FileEvent

    @property
    def written(self) -> tuple[str, ...]:
        """The texts that the call itself put into the file."""
        event = self.event
        whole = () if event.content is None or not self.exists else (event.content,)
        more = () if event.text is None else (event.text,)
        return (*whole, *(edit.new for edit in event.edits), *more)

    @property
    def replaced(self) -> tuple[str, ...]:
        """The texts that the call itself replaced."""
        return tuple(edit.old for edit in self.event.edits)


def follow(events: Iterable[FileEvent], paths: PathMap) -> list[Change]:
    """The changes among a trace's file events, in order, with the content followed through."""
    contents: dict[str, str | None] = {}
    there: dict[str, bool] = {}
    changes = []
    for event in events:
        if event.status == "error":
            continue
        if event.operation == "read":
            key = file_key(event.path, paths)
            there[key] = True
            contents[key] = contents.get(key) if event.content is None else event.content
            continue
        for path, exists in _places(event):
            key = file_key(path, paths)
            change = _change(event, path, exists, paths, there.get(key), contents.get(key))
            if path == event.moved_to:
                change = _moved(change, contents.pop(file_key(event.path, paths), None))
            if exists and change.before is not None and change.before == change.after:
                continue  # Written as it was: nothing changed.
            changes.append(change)
            there[key] = exists
            if path != event.path or event.operation != "move":
                contents[key] = change.after
    return changes


def file_key(path: str, paths: PathMap) -> str:
    """What is the same for all spellings of one file: its declared path, else its own."""
    return paths.declared_of(path) or paths.relative(path) or normal_path(path)


def _places(event: FileEvent) -> list[tuple[str, bool]]:
    """The paths that an event changes, and whether something is there afterwards."""
    if event.operation == "move" and event.moved_to is not None:
        return [(event.path, False), (event.moved_to, True)]
    return [(event.path, event.operation not in ("delete", "move"))]


def _change(
    event: FileEvent,
    path: str,
    exists: bool,
    paths: PathMap,
    there: bool | None,
    content: str | None,
) -> Change:
    existed = {"create": False, "update": True, "delete": True}.get(event.operation, there)
    if event.operation == "create" and there:
        existed = None  # Tools that create also write over what is there.
    if event.operation == "move" and path == event.path:
        existed = True
    before = None if existed is False else content
    after = None
    if exists and event.operation != "move":
        after = event.content if event.content is not None else _edited(before, event.edits)
    return Change(
        path=path,
        declared=paths.declared_of(path),
        call=event.call,
        existed=existed,
        exists=exists,
        before=before,
        after=after,
        event=event,
    )


def _moved(change: Change, content: str | None) -> Change:
    return Change(**{**change.__dict__, "after": content})


def _edited(text: str | None, edits: Sequence[Replacement]) -> str | None:
    """A content after some edits; None where it is unknown or an edit does not fit it."""
    if not edits:
        return None
    for edit in edits:
        if text is None or edit.old not in text:
            return None
        text = text.replace(edit.old, edit.new, -1 if edit.everywhere else 1)
    return text


# Targets.


@dataclass(frozen=True)
class NetEffect:
    """What the trace did to one target.

    Attributes:
        changes: Those that concern it, in order.
        possible: What was done; several where the trace cannot tell, empty if nothing was.
        names: Where any element of a kind is meant, those to which each thing was done; None
            if the trace does not show which.
    """

    changes: tuple[Change, ...]
    possible: frozenset[Operation]
    names: dict[Operation, frozenset[str]] | None = None


def net_effect(target: Target, changes: Sequence[Change]) -> NetEffect:
    """What changes did to a target in the end."""
    in_file = [change for change in changes if change.declared in target.paths]
    if target.shares_file and target.name is None:
        return _any_element(in_file)
    if not target.shares_file:
        return _of_file(in_file)
    name = target.name or ""
    concerning = tuple(
        change for change in in_file if concerns(change, name) and _touches(change, name)
    )
    if not concerning:
        return NetEffect((), frozenset())
    states = (_before(concerning[0], name), _after(concerning[-1], name))
    return NetEffect(concerning, _possible(*states))


def _of_file(changes: Sequence[Change]) -> NetEffect:
    if not changes:
        return NetEffect((), frozenset())
    # Of the several files that a target may be in, the one changed last is meant.
    path = changes[-1].declared
    own = tuple(change for change in changes if change.declared == path)
    return NetEffect(own, _possible(own[0].existed, own[-1].exists))


def _possible(before: bool | None, after: bool | None) -> frozenset[Operation]:
    states = product(
        (True, False) if before is None else (before,), (True, False) if after is None else (after,)
    )
    return frozenset(done for state in states if (done := EFFECTS[state]) is not None)


def concerns(change: Change, name: str) -> bool:
    """Whether a change of a shared file concerns the element of that name."""
    if not change.exists:
        return change.before is None or _is_there(change, change.before, name) is not False
    if change.before is not None and change.after is not None:
        old, new = (_is_there(change, text, name) for text in (change.before, change.after))
        if old and new and _same_part(change.before, change.after, name):
            return False
        if old and new is False:
            return True
    return any(
        occurs(name, text) or _is_there(change, text, name)
        for text in (*change.written, *change.replaced)
    )


def _touches(change: Change, name: str) -> bool:
    """Whether the element itself was there before or after a change, not a mention of it alone."""
    return not change.exists or True in (_before(change, name), _after(change, name))


def _is_there(change: Change, text: str, name: str) -> bool | None:
    """Whether a text of the changed file has an element; None if it may be but a part of it."""
    is_json = change.path.lower().endswith(".json")
    data = parsed(text) if is_json else None
    if data is not None:
        # A name may be written with escapes; without any, one that is not in the text is not there.
        return (name in text or "\\" in text) and is_named(data, name)
    if occurs(name, text):
        return True
    return None if is_json and text.strip() else False


def _same_part(before: str, after: str, name: str) -> bool:
    """Whether an element is in two contents, and the same in both; only JSON can tell."""
    old, new = parsed(before), parsed(after)
    if old is None or new is None:
        return False
    found = find_element(old, name)
    return bool(found) and found == find_element(new, name)


def _before(change: Change, name: str) -> bool | None:
    if change.existed is False:
        return False
    known = None if change.before is None else _is_there(change, change.before, name)
    if known is not None:
        return known
    return True if any(_is_there(change, text, name) for text in change.replaced) else None


def _after(change: Change, name: str) -> bool | None:
    if not change.exists:
        return False
    known = None if change.after is None else _is_there(change, change.after, name)
    if known is not None:
        return known
    return True if any(_is_there(change, text, name) for text in change.written) else None


def _any_element(changes: Sequence[Change]) -> NetEffect:
    possible: set[Operation] = set()
    names: dict[Operation, frozenset[str]] | None = {}
    for path in dict.fromkeys(change.declared for change in changes):
        own = [change for change in changes if change.declared == path]
        done = _changed(own[0], own[-1])
        if done is None:
            names = None
            possible |= _element_effects(own[0], own[-1])
            continue
        possible |= done.keys()
        if names is not None:
            names = {**names, **{key: names.get(key, frozenset()) | done[key] for key in done}}
    return NetEffect(tuple(changes), frozenset(possible), names)


def changed_elements(change: Change) -> frozenset[str] | None:
    """Names of the objects in a JSON file that one change made, altered or removed.

    None if the trace does not show the content before and after, or shows no named elements.
    """
    done = _changed(change, change)
    return None if done is None else frozenset().union(*done.values())


def element_texts(change: Change, name: str) -> tuple[str, ...]:
    """An element's JSON before and after a change, where it is an object."""
    both = (_elements(change.before) or {}, _elements(change.after) or {})
    values = [elements[name] for elements in both if isinstance(elements.get(name), dict)]
    return tuple(canonical_json(value).decode() for value in values)


def _changed(first: Change, last: Change) -> dict[Operation, frozenset[str]] | None:
    """The elements created, updated and deleted between two states; None if that is unknown."""
    old = _elements(first.before) if first.existed is not False else {}
    new = _elements(last.after) if last.exists else {}
    if old is None or new is None:
        return None
    done: dict[Operation, frozenset[str]] = {
        "CREATE": frozenset(new.keys() - old.keys()),
        "UPDATE": frozenset(name for name in old.keys() & new.keys() if old[name] != new[name]),
        "DELETE": frozenset(old.keys() - new.keys()),
    }
    return {operation: names for operation, names in done.items() if names}


def _element_effects(first: Change, last: Change) -> set[Operation]:
    """What may have been done to elements between two states of which not both are known."""
    if first.existed is False:
        return {"CREATE"}
    return {"CREATE", "UPDATE", "DELETE"} if last.exists else {"DELETE"}


def _elements(text: str | None) -> dict[str, Any] | None:
    return None if text is None else elements(parsed(text))
