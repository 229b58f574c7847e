"""Keys on disk and in Dagster: injective and safe whatever the name is."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from dagster import StaticPartitionsDefinition
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from benchmark_assets.model.identity import (
    PATH_KEY_BYTES,
    canonical_json,
    content_hash,
    partition_key,
    path_key,
    unpartition_key,
    value_hash,
    value_hashes,
)

AWKWARD = [
    "",
    ".",
    "..",
    "...",
    "....",
    ".hidden",
    "/",
    "../../etc/passwd",
    "a/b",
    "a|b",
    "|",
    "%",
    "%~",
    "%2F",
    "a=b",
    " ",
    " a",
    "a ",
    "\n",
    "a\x00b",
    "a\x1f",
    "\x7f",
    "\x85",
    "é",
    "e\N{COMBINING ACUTE ACCENT}",
    "模型",
    "🤖",
    "\ud800",
    "\udcff",
    "\ud83d\ude00",
    "x" * 159,
    "x" * 160,
    "x" * 161,
    "x" * 5000,
    "é" * 5000,
    "gpt-4o",
    "openai/gpt-4o",
    "~",
    "a..b",
]

# All of Unicode, lone surrogates included, with what is special somewhere made likely.
TEXT = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(st.sampled_from("./|%~ =\n\x00éa\ud800"), max_size=12),
    st.text(st.characters(codec=None), max_size=300),
    st.text(st.characters(codec="utf-8"), min_size=50, max_size=400),
)


@pytest.mark.parametrize("encode", [path_key, partition_key])
def test_no_two_awkward_names_share_a_key(encode: Callable[[str], str]) -> None:
    assert len({encode(name) for name in AWKWARD}) == len(AWKWARD)


@given(TEXT, TEXT)
@example("x" * 5000, "x" * 4999 + "y")
@example("%7C", "|")
@settings(max_examples=400)
def test_keys_are_injective(one: str, other: str) -> None:
    assert (path_key(one) == path_key(other)) == (one == other)
    assert (partition_key(one) == partition_key(other)) == (one == other)


@given(TEXT)
@settings(max_examples=400)
def test_a_path_key_is_one_plain_file_name(name: str) -> None:
    key = path_key(name)
    assert 0 < len(key.encode("ascii")) <= PATH_KEY_BYTES
    assert "/" not in key
    assert "=" not in key
    assert not key.startswith(".")
    assert key.isprintable()


@given(TEXT)
@settings(max_examples=400)
def test_a_partition_key_is_text_that_dagster_takes_and_can_be_undone(name: str) -> None:
    key = partition_key(name)
    assert unpartition_key(key) == name
    assert "|" not in key
    key.encode()  # it is stored in databases
    StaticPartitionsDefinition([key])  # raises for what Dagster refuses
    assert key == key.strip()


@pytest.mark.parametrize("name", ["gpt-4o", "openai/gpt-4o", "a b", "模型", "support/refund@1.2"])
def test_readable_partition_keys_stay_as_they_are(name: str) -> None:
    assert partition_key(name) == name


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("gpt-4o", "gpt-4o"),
        ("openai/gpt-4o", "openai%2Fgpt-4o"),
        ("..", "%2E."),
        ("a|b", "a%7Cb"),
        ("é", "%C3%A9"),
        ("", "%"),
        ("\ud800", "%ED%A0%80"),
    ],
)
def test_path_keys_are_percent_encoded(name: str, key: str) -> None:
    assert path_key(name) == key


def test_a_long_path_key_ends_in_the_hash_of_the_whole_name() -> None:
    name = "m" * 1000
    assert path_key(name).endswith("%~" + hashlib.sha256(name.encode()).hexdigest())


@given(st.lists(TEXT, unique=True, max_size=15))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_names_survive_the_file_system(tmp_path: Path, names: list[str]) -> None:
    """One file a name, in one folder, beside a prefix and a suffix as the store has them."""
    folder = tmp_path / hashlib.sha256(repr(names).encode()).hexdigest()
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        (folder / f"contract={path_key(name)}.parquet").write_text(str(number))
    assert len(list(folder.iterdir())) == len(names)
    for number, name in enumerate(names):
        assert (folder / f"contract={path_key(name)}.parquet").read_text() == str(number)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("ab", "c"), ("a", "bc")),
        (("ab",), ("a", "b")),
        ((), ("",)),
        (("",), ("", "")),
        (("a", ""), ("", "a")),
    ],
)
def test_content_hashes_tell_part_lists_apart(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert content_hash(*one) != content_hash(*other)


def test_a_text_and_its_bytes_hash_alike() -> None:
    assert content_hash("é") == content_hash("é".encode())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=10,
)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON, max_size=5))
def test_canonical_json_does_not_know_key_order(value: dict[str, object]) -> None:
    backwards = dict(reversed(value.items()))
    assert canonical_json(value) == canonical_json(backwards)


def test_canonical_json_refuses_what_is_no_json() -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json({"x": float("nan")})


# Hashes of values.

# By hand: the text that is hashed, then `printf '%s' TEXT | sha256sum`.
HASHED = [
    ("1842", ['"1842"']),
    ("Zoë", ['"Zo\\u00eb"', '"Zoë"']),
    ("🤖", ['"\\ud83e\\udd16"', '"🤖"']),
    ({"b": [1, 2.5, None, True], "ä": {"z": "é", "a": ""}},
     ['{"b":[1,2.5,null,true],"\\u00e4":{"a":"","z":"\\u00e9"}}',
      '{"b":[1,2.5,null,true],"ä":{"a":"","z":"é"}}']),
    (48.5, ["48.5"]),
    (5.0, ["5.0"]),
    (5, ["5"]),
    (1e22, ["1e+22"]),
    (10**40, ["1" + "0" * 40]),
    ("\\u00eb", ['"\\\\u00eb"']),
    ('a"\n', ['"a\\"\\n"']),
    (None, ["null"]),
    ([], ["[]"]),
]  # fmt: skip


@pytest.mark.parametrize(("value", "texts"), HASHED)
def test_a_value_is_hashed_in_ascii_and_known_by_utf_8_too(value: object, texts: list[str]) -> None:
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    assert value_hash(value) == digests[0]
    # A text that only looks escaped is the same in both forms.
    assert list(dict.fromkeys(value_hashes(value))) == digests


def test_half_of_a_character_has_hashes_as_well() -> None:
    assert len(set(value_hashes("\ud800"))) == 2
