"""Harness profiles: what may be written, and what is refused before it can be misread."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from benchmark_assets.model.harness import (
    ITEMS,
    Effect,
    HarnessProfile,
    Sign,
    place_steps,
)

LEAST: dict[str, Any] = {"name": "own", "recognised_by": "get", "tools": {"get": "none"}}


def profile(**parts: Any) -> HarnessProfile:
    return HarnessProfile.model_validate({**LEAST, **parts})


@pytest.mark.parametrize(
    ("place", "steps"),
    [
        ("file_path", ("file_path",)),
        ("a.b", ("a", "b")),
        ("files[].path", ("files", ITEMS, "path")),
        ("files[]", ("files", ITEMS)),
        ("a[][].b[]", ("a", ITEMS, ITEMS, "b", ITEMS)),
        ("[]", (ITEMS,)),
        ("[].path", (ITEMS, "path")),
        (".", ()),
        ("with space-and_ü", ("with space-and_ü",)),
    ],
)
def test_places(place: str, steps: tuple[str | None, ...]) -> None:
    assert place_steps(place) == steps


@pytest.mark.parametrize(
    "place", ["", "a.", ".a", "a..b", "a[0]", "a[", "a]", "a[]b", "a.[]", "..", "a[ ]"]
)
def test_what_is_no_place_is_refused(place: str) -> None:
    with pytest.raises(ValueError, match=r"is no place; write key, key\.inner"):
        place_steps(place)


def test_short_forms_mean_the_long_ones() -> None:
    short = profile(
        tools={
            "get": "none",
            "put": {"effect": "write", "path": "path", "failed": "^no", "created": {"at": "new"}},
        },
        commands={"build": "^make", "validate": [{"regex": "^test"}], "none": ["^show"]},
        workspace="cwd",
    )
    long = profile(
        recognised_by=["get"],
        tools={
            "get": [{"effect": "none"}],
            "put": [
                {
                    "effect": "write",
                    "path": ["path"],
                    "failed": [{"regex": "^no"}],
                    "created": [{"at": "new"}],
                }
            ],
        },
        commands={"build": [{"regex": "^make"}], "validate": ["^test"], "none": "^show"},
        workspace=["cwd"],
    )
    assert short == long
    assert short.content_hash == long.content_hash


@pytest.mark.parametrize(
    ("effect", "message"),
    [
        ({"effect": "read"}, "effect read needs path"),
        ({"effect": "move", "path": "a"}, "effect move needs to"),
        ({"effect": "move"}, "effect move needs path and to"),
        ({"effect": "load_skill", "path": "a"}, "effect load_skill needs name"),
        ({"effect": "shell"}, "effect shell needs command"),
        ({"effect": "none", "path": "a"}, "effect none makes no use of path"),
        ({"effect": "read", "path": "a", "content": "b"}, "effect read makes no use of content"),
        (
            {"effect": "create", "path": "a", "created": "x", "to": "b"},
            "effect create makes no use of created, to",
        ),
        ({"effect": "build", "keeps_directory": True}, "makes no use of keeps_directory"),
        ({"effect": "reed", "path": "a"}, "Input should be 'load_skill', 'read'"),
        ({"effect": "read", "path": "a[0]"}, "'a[0]' is no place"),
        ({"effect": "read", "path": "a", "failed": "("}, "is not a regular expression"),
        ({"effect": "read", "path": "a", "pth": "b"}, "Extra inputs are not permitted"),
        ({"effect": "read", "path": "a", "failed": {"equals": "x"}}, "say with `at` where to look"),
        (
            {"effect": "read", "path": "a", "failed": {"at": "b", "equals": "x", "regex": "y"}},
            "give regex or equals, not both",
        ),
        ({"effect": "read", "path": "a", "failed": {"at": "b", "equals": []}}, "at least 1 item"),
    ],
)
def test_what_an_effect_must_and_cannot_say(effect: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Effect.model_validate(effect)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"tools": {}}, "at least 1 item"),
        ({"tools": {"get": []}}, "at least 1 item"),
        ({"recognised_by": []}, "at least 1 item"),
        ({"name": " "}, "only white space"),
        ({"workspace": "a.[]"}, "is no place"),
        ({"commands": {"build": "["}}, "is not a regular expression"),
        ({"commands": {"run": "x"}}, "Extra inputs are not permitted"),
    ],
)
def test_what_a_profile_must_and_cannot_say(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        profile(**parts)
    assert message in str(caught.value)


def test_every_effect_can_be_written() -> None:
    least: dict[str, dict[str, str]] = {
        "load_skill": {"name": "a"},
        "move": {"path": "a", "to": "b"},
        "shell": {"command": "a"},
        **{kind: {"path": "a"} for kind in ("read", "create", "update", "write", "delete")},
        **{kind: {} for kind in ("build", "validate", "ask_user", "opaque", "none")},
    }
    annotation = Effect.model_fields["effect"].annotation
    assert annotation is not None
    assert set(annotation.__args__) == set(least)
    for kind, parts in least.items():
        assert Effect.model_validate({"effect": kind, **parts}).effect == kind


def test_the_hash_is_of_what_a_profile_says() -> None:
    assert profile().content_hash == profile(workspace=[]).content_hash
    assert profile().content_hash != profile(name="other").content_hash
    assert profile().content_hash != profile(tools={"get": "opaque"}).content_hash


def test_the_hash_knows_the_order_of_globs_but_not_of_keys() -> None:
    tools = {"get_*": "none", "*": "opaque"}
    assert (
        profile(tools=tools).content_hash
        != profile(tools=dict(reversed(tools.items()))).content_hash
    )
    keys = dict(reversed(LEAST.items()))
    assert HarnessProfile.model_validate(keys).content_hash == profile().content_hash


def test_a_sign_of_several_values() -> None:
    sign = Sign.model_validate({"at": "status", "equals": ["ok", 0, True]})
    assert sign.equals == ("ok", 0, True)
