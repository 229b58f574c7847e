"""Following files and elements through a trace: what was there, what is, and what that makes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.model.resources import Target
from benchmark_assets.model.trace import FileEvent
from benchmark_assets.scoring.changes import (
    Change,
    changed_elements,
    concerns,
    element_texts,
    follow,
    net_effect,
)
from benchmark_assets.scoring.paths import PathMap

FILE = "pages/Main.json"


def events(*data: dict[str, Any]) -> list[FileEvent]:
    made = [{"path": FILE, "status": "ok", "call": index, **one} for index, one in enumerate(data)]
    return msgspec.convert(made, list[FileEvent])


def changes(*data: dict[str, Any]) -> list[Change]:
    found = events(*data)
    seen = [path for event in found for path in (event.path, event.moved_to) if path is not None]
    return follow(found, PathMap([FILE], seen, ["/code/shop"]))


def states(found: list[Change]) -> list[tuple[Any, ...]]:
    return [(c.existed, c.exists, c.before, c.after) for c in found]


def target(
    name: str | None = None, *, shares: bool = False, paths: tuple[str, ...] = (FILE,)
) -> Any:
    return Target("variable", name, "Main", paths, shares)


READ = {"operation": "read", "content": "one two one"}


def edit(old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"operation": "update", "edits": [{"old": old, "new": new, **more}]}


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ([{"operation": "create", "content": "x"}], [(False, True, None, "x")]),
        ([{"operation": "update", "content": "x"}], [(True, True, None, "x")]),
        ([{"operation": "write", "content": "x"}], [(None, True, None, "x")]),
        ([{"operation": "delete"}], [(True, False, None, None)]),
        ([READ, {"operation": "write", "content": "x"}], [(True, True, "one two one", "x")]),
        ([READ, {"operation": "delete"}], [(True, False, "one two one", None)]),
        # A read without content shows that the file is there, and takes nothing away.
        (
            [READ, {"operation": "read"}, {"operation": "write", "content": "x"}],
            [(True, True, "one two one", "x")],
        ),
        # What failed did not happen; what nothing is known of did.
        ([{"operation": "create", "status": "error"}], []),
        ([{**READ, "status": "error"}, {"operation": "write"}], [(None, True, None, None)]),
        ([{"operation": "create", "status": None}], [(False, True, None, None)]),
        # Edits, once and everywhere, of known and unknown contents.
        ([READ, edit("one", "1")], [(True, True, "one two one", "1 two one")]),
        ([READ, edit("one", "1", everywhere=True)], [(True, True, "one two one", "1 two 1")]),
        ([edit("one", "1")], [(True, True, None, None)]),
        ([READ, edit("three", "3")], [(True, True, "one two one", None)]),
        (
            [READ, edit("two", "2"), edit("2", "zwei")],
            [(True, True, "one two one", "one 2 one"), (True, True, "one 2 one", "one zwei one")],
        ),
        (
            [READ, edit("three", "3"), {"operation": "write", "content": "x"}],
            [(True, True, "one two one", None), (True, True, None, "x")],
        ),
        # Something put in, nobody knows where.
        ([READ, {"operation": "update", "text": "x"}], [(True, True, "one two one", None)]),
        # Deleted and made again: nothing is left of the old content.
        (
            [READ, {"operation": "delete"}, {"operation": "write", "content": "x"}],
            [(True, False, "one two one", None), (False, True, None, "x")],
        ),
    ],
)
def test_contents_are_followed(made: list[Any], expected: list[tuple[Any, ...]]) -> None:
    assert states(changes(*made)) == expected


def test_a_move_takes_the_content_along() -> None:
    found = changes(
        {**READ, "path": "a"},
        {"operation": "move", "path": "a", "moved_to": FILE},
        edit("two", "2"),
        {"operation": "write", "path": "a", "content": "new"},
    )
    assert [(c.path, c.declared) for c in found] == [
        ("a", None),
        (FILE, FILE),
        (FILE, FILE),
        ("a", None),
    ]
    assert states(found) == [
        (True, False, "one two one", None),
        (None, True, None, "one two one"),
        (True, True, "one two one", "one 2 one"),
        (False, True, None, "new"),
    ]


def test_a_move_over_a_file_updates_it() -> None:
    found = changes(READ, {"operation": "move", "path": "a", "moved_to": FILE})
    assert net_effect(target(), found).possible == {"UPDATE"}


def test_one_file_by_several_spellings_is_one() -> None:
    found = changes(
        {"operation": "create", "path": f"/code/shop/{FILE}", "content": "x"},
        {"operation": "delete", "path": f"./{FILE}"},
    )
    assert states(found) == [(False, True, None, "x"), (True, False, "x", None)]
    assert net_effect(target(), found).possible == frozenset()


@given(
    st.lists(st.sampled_from(["create", "update", "write", "delete", "read"]), max_size=6),
    st.lists(st.sampled_from(["ok", None, "error"]), min_size=6, max_size=6),
)
def test_the_net_effect_is_what_the_first_and_the_last_state_say(
    operations: list[Any], statuses: list[Any]
) -> None:
    made = [{"operation": o, "status": s} for o, s in zip(operations, statuses, strict=False)]
    done = [m["operation"] for m in made if m["status"] != "error"]
    changing = [o for o in done if o != "read"]
    effect = net_effect(target(), changes(*made))
    if not changing:
        assert (effect.changes, effect.possible) == ((), frozenset())
        return
    first = changing[0]
    before = {"create": {False}, "update": {True}, "delete": {True}}.get(first, {True, False})
    if first in ("write", "create") and "read" in done[: done.index(first)]:
        # What was read was there, and a tool that creates may write over it.
        before = {True, False} if first == "create" else {True}
    after = changing[-1] != "delete"
    words = {(False, True): "CREATE", (True, True): "UPDATE", (True, False): "DELETE"}
    assert effect.possible == {words[b, after] for b in before if (b, after) in words}


def test_of_several_files_the_one_changed_last_is_meant() -> None:
    found = follow(
        events(
            {"path": "a", "operation": "create"},
            {"path": "b", "operation": "delete"},
        ),
        PathMap(["a", "b"], ["a", "b"]),
    )
    effect = net_effect(target("x", paths=("a", "b")), found)
    assert [change.path for change in effect.changes] == ["b"]
    assert effect.possible == {"DELETE"}


A, B = '{"svcA": {"n": 1}, "count": 1}', '{"svcA": {"n": 2}, "svcB": {}, "count": 2}'


def test_writing_what_is_there_changes_nothing() -> None:
    assert changes({"operation": "read", "content": A}, {"operation": "write", "content": A}) == []


@pytest.mark.parametrize(
    ("made", "concerned"),
    [
        # Known before and after: what differs.
        ([{"operation": "read", "content": A}, {"operation": "write", "content": B}], True),
        ([{"operation": "read", "content": A}, {"operation": "write", "content": "{}"}], True),
        ([{"operation": "read", "content": "{}"}, {"operation": "write", "content": "[]"}], False),
        # Unknown before: what was written or replaced.
        ([{"operation": "write", "content": A}], True),
        ([{"operation": "write", "content": "svcAll"}], False),
        ([edit("svcA", "x")], True),
        ([edit("x", "svcA")], True),
        ([edit("x", "y")], False),
        ([{"operation": "update", "text": "svcA"}], True),
        # Gone with its file, as far as is known.
        ([{"operation": "delete"}], True),
        ([{"operation": "read", "content": A}, {"operation": "delete"}], True),
        ([{"operation": "read", "content": "{}"}, {"operation": "delete"}], False),
    ],
)
def test_a_change_concerns_the_elements_that_it_touches(made: list[Any], concerned: bool) -> None:
    (change,) = changes(*made)
    assert concerns(change, "svcA") is concerned
    possible = net_effect(target("svcA", shares=True), [change]).possible
    assert bool(possible) is concerned


def test_which_elements_changed_is_known_where_both_contents_are() -> None:
    rewritten = changes({"operation": "read", "content": A}, {"operation": "write", "content": B})
    assert changed_elements(rewritten[0]) == frozenset({"svcA", "svcB", "count"})
    assert changed_elements(changes({"operation": "create", "content": A})[0]) == frozenset(
        {"svcA", "count"}
    )
    assert changed_elements(changes({"operation": "write", "content": A})[0]) is None
    assert changed_elements(changes({"operation": "create", "content": "<a/>"})[0]) is None
    assert element_texts(rewritten[0], "svcA") == ('{"n":1}', '{"n":2}')
    assert element_texts(rewritten[0], "svcB") == ("{}",)
    assert element_texts(rewritten[0], "count") == ()


def test_any_element_is_told_by_name_over_the_whole_trace() -> None:
    found = changes(
        {"operation": "read", "content": '{"a": 1, "b": 1, "c": 1}'},
        {"operation": "write", "content": '{"a": 2, "b": 1, "c": 1, "d": 1, "e": 1}'},
        {"operation": "write", "content": '{"a": 2, "b": 1, "d": 2}'},
    )
    effect = net_effect(target(shares=True), found)
    assert effect.possible == {"CREATE", "UPDATE", "DELETE"}
    assert effect.names == {
        "CREATE": frozenset("d"),
        "UPDATE": frozenset("a"),
        "DELETE": frozenset("c"),
    }


def test_any_element_of_several_files_is_any_in_them() -> None:
    found = follow(
        events(
            {"path": "a", "operation": "create", "content": '{"x": 1}'},
            {"path": "b", "operation": "create", "content": '{"y": 1}'},
        ),
        PathMap(["a", "b"], ["a", "b"]),
    )
    any_there = target(shares=True, paths=("a", "b"))
    assert net_effect(any_there, found).names == {"CREATE": frozenset("xy")}
    unknown = follow(events({"path": "b", "operation": "write"}), PathMap(["a", "b"], ["b"]))
    effect = net_effect(any_there, [found[0], *unknown])
    assert effect.names is None
    assert effect.possible == {"CREATE", "UPDATE", "DELETE"}


def test_files_that_nobody_declared_are_told_apart() -> None:
    found = changes(
        {**READ, "path": "a"},
        {"operation": "read", "path": "b", "content": "other"},
        {"operation": "move", "path": "a", "moved_to": FILE},
    )
    assert states(found) == [
        (True, False, "one two one", None),
        (None, True, None, "one two one"),
    ]


def test_a_move_to_nobody_knows_where_takes_the_file_away() -> None:
    found = changes(READ, {"operation": "move"})
    assert states(found) == [(True, False, "one two one", None)]
    assert net_effect(target(), found).possible == {"DELETE"}


def test_only_a_move_has_another_place() -> None:
    found = changes({"operation": "create", "content": "x", "moved_to": "b"})
    assert [change.path for change in found] == [FILE]


def test_an_edit_that_nobody_can_follow_still_says_what_it_put_in() -> None:
    known = {"operation": "read", "content": A}
    (change,) = changes(known, {"operation": "update", "text": '"svcA": {"n": 3}'})
    assert (change.before, change.after) == (A, None)
    assert concerns(change, "svcA")
    assert not concerns(change, "svcB")
    assert net_effect(target("svcA", shares=True), [change]).possible == {"UPDATE"}


def test_a_name_that_json_only_mentions_is_told_by_the_text() -> None:
    (change,) = changes(
        {"operation": "read", "content": '{"x": "calls svcA"}'},
        {"operation": "write", "content": '{"x": "calls svcA twice"}'},
    )
    assert concerns(change, "svcA")
