"""Comparing values: matchers wherever they may stand, texts, names, and how values are shown."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.model.identity import canonical_json
from benchmark_assets.model.matchers import MATCHERS
from benchmark_assets.scoring.matching import (
    _MATCHER_FUNCTIONS,
    SHOWN_CHARACTERS,
    any_glob,
    args_mismatches,
    contains_text,
    is_matcher,
    mismatch,
    plain_text,
    same_value,
    show,
)
from tests.scoring.values import json_values, texts

DIGEST = hashlib.sha256(b'{"a":1}').hexdigest()

# (matcher, a value that fits, a value that does not); `any` refuses nothing.
EXAMPLES: list[tuple[dict[str, Any], Any, Any]] = [
    ({"regex": "^a.c$"}, "abc", "abcd"),
    ({"one_of": [1, "x"]}, 1.0, "1"),
    ({"unordered": [1, 2]}, [2, 1], [1, 1]),
    ({"approx": 10, "tol": 1}, 9, 8.9),
    ({"contains": "b"}, "abc", "ac"),
    ({"contains": ["b"]}, ["a", "b"], ["ab"]),
    ({"contains": {"k": 1}}, {"k": 1, "l": 2}, {"k": 2}),
    ({"sha256": DIGEST[:20]}, {"a": 1}, {"a": 1.5}),
    ({"ignore_case": "gold"}, "GOLD", "golden"),
    ({"literal": {"any": True}}, {"any": True}, {"any": False}),
]
# Where a matcher may stand: expected and actual, built around it.
PLACES: dict[str, Any] = {
    "at the top": lambda value: value,
    "in a list": lambda value: [0, value, "z"],
    "in an object": lambda value: {"k": value, "other": None},
    "deep inside": lambda value: {"a": [[{"b": [value]}]]},
}
# Matchers that hold others: expected around the inner matcher, actual around the value.
HOLDERS: dict[str, tuple[Any, Any]] = {
    "one_of": (lambda inner: {"one_of": ["never", inner]}, lambda value: value),
    "unordered": (lambda inner: {"unordered": [inner, "z"]}, lambda value: ["z", value]),
    "contains list": (lambda inner: {"contains": [inner]}, lambda value: ["y", value]),
    "contains object": (lambda inner: {"contains": {"k": inner}}, lambda v: {"k": v, "l": 1}),
}
ids = [f"{next(iter(matcher))}-{number}" for number, (matcher, _, _) in enumerate(EXAMPLES)]


def fits(expected: Any, actual: Any) -> bool:
    return mismatch(expected, actual, "x") is None


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("matcher", "good", "bad"), EXAMPLES, ids=ids)
def test_a_matcher_works_at_any_depth(
    matcher: dict[str, Any], good: Any, bad: Any, place: str
) -> None:
    put = PLACES[place]
    assert fits(put(matcher), put(good))
    assert not fits(put(matcher), put(bad))


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(("matcher", "good", "bad"), EXAMPLES, ids=ids)
def test_a_matcher_works_inside_others(
    matcher: dict[str, Any], good: Any, bad: Any, holder: str
) -> None:
    expect, put = HOLDERS[holder]
    assert fits(expect(matcher), put(good))
    assert not fits(expect(matcher), put(bad))


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
def test_any_fits_any_value(value: Any, holder: str) -> None:
    expect, put = HOLDERS[holder]
    assert fits({"any": True}, value)
    assert fits(expect({"any": True}), put(value))


def test_every_matcher_of_the_contract_is_implemented_and_tested() -> None:
    assert tuple(sorted(_MATCHER_FUNCTIONS)) == tuple(sorted(MATCHERS))
    assert {next(iter(matcher)) for matcher, _, _ in EXAMPLES} | {"any"} == set(MATCHERS)


# Literals.

SCALARS: list[Any] = [None, True, False, 0, 1, 2, 0.5, "", "0", "1", "true", "a", "A"]


@pytest.mark.parametrize(("left", "right"), list(itertools.product(SCALARS, repeat=2)))
def test_different_scalars_are_different(left: Any, right: Any) -> None:
    # `repr` tells all of these apart, True from 1 and "1" as well.
    assert same_value(left, right) == (repr(left) == repr(right))


@pytest.mark.parametrize(
    ("left", "right"),
    [(5, 5.0), (0, -0.0), (10**20, 1e20), (0, 0.0), (2**53, 2.0**53)],
)
def test_numbers_are_equal_by_value(left: float, right: float) -> None:
    assert same_value(left, right)
    assert same_value(right, left)
    assert fits({"k": [left]}, {"k": [right]})


@pytest.mark.parametrize(
    ("left", "right"), [(2**53 + 1, 2.0**53), (0.1 + 0.2, 0.3), (10**400, 1.5)]
)
def test_numbers_are_not_rounded_to_be_equal(left: float, right: float) -> None:
    assert not same_value(left, right)
    assert not same_value(right, left)


@given(json_values())
def test_every_value_is_a_literal_of_itself(value: Any) -> None:
    assert fits({"literal": value}, value)


@given(json_values(), json_values())
def test_literals_are_equal_where_plain_python_says_so(left: Any, right: Any) -> None:
    # Python's own equality, with True and False out of the way of 1 and 0.
    def tagged(value: Any) -> Any:
        if isinstance(value, bool):
            return ("bool", str(value))
        if isinstance(value, list):
            return [tagged(item) for item in value]
        if isinstance(value, dict):
            return {key: tagged(item) for key, item in value.items()}
        return value

    assert fits({"literal": left}, right) == (tagged(left) == tagged(right))


@pytest.mark.parametrize("matcher", [example[0] for example in EXAMPLES], ids=ids)
def test_literal_escapes_what_looks_like_a_matcher(matcher: dict[str, Any]) -> None:
    assert fits({"literal": matcher}, matcher)
    assert fits({"literal": [matcher]}, [matcher])
    assert not fits({"literal": matcher}, "abc")


@pytest.mark.parametrize(
    ("expected", "actual"),
    [
        ({"literal": 5}, 5.0),
        ({"literal": {"approx": 5.0}}, {"approx": 5}),
        ({"literal": [{"a": 1, "b": 2}]}, [{"b": 2.0, "a": 1.0}]),
    ],
)
def test_literal_compares_numbers_by_value_too(expected: Any, actual: Any) -> None:
    assert fits(expected, actual)


@pytest.mark.parametrize(
    ("expected", "actual"), [({"literal": 1}, True), ({"literal": [0]}, [False])]
)
def test_literal_keeps_booleans_apart_from_numbers(expected: Any, actual: Any) -> None:
    assert not fits(expected, actual)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"any": True}, True),
        ({"approx": 1, "tol": 2}, True),
        ({"tol": 2}, False),
        ({}, False),
        ({"regex": "a", "flags": "i"}, False),
        ({"contains": "a", "id": 1}, False),
        ("any", False),
        (["any"], False),
        (None, False),
    ],
)
def test_what_is_a_matcher(value: Any, expected: bool) -> None:
    assert is_matcher(value) is expected


# Pairing items.


def brute_force(wanted: list[Any], actual: list[Any]) -> bool:
    """Whether some assignment of distinct items fits, by trying all of them."""
    return any(
        all(fits(item, actual[j]) for item, j in zip(wanted, chosen, strict=True))
        for chosen in itertools.permutations(range(len(actual)), len(wanted))
    )


loose = st.sampled_from(
    [{"any": True}, {"regex": "a"}, {"regex": "b"}, {"one_of": ["a", "c"]}, "a", "b", "ab", "c"]
)
letters = st.sampled_from(["a", "b", "ab", "c"])


@given(st.lists(loose, max_size=5), st.lists(letters, max_size=5))
def test_unordered_finds_an_assignment_if_there_is_one(
    wanted: list[Any], actual: list[Any]
) -> None:
    expected = len(wanted) == len(actual) and brute_force(wanted, actual)
    assert fits({"unordered": wanted}, actual) == expected


@given(st.lists(loose, max_size=4), st.lists(letters, max_size=5))
def test_contains_finds_an_assignment_if_there_is_one(wanted: list[Any], actual: list[Any]) -> None:
    assert fits({"contains": wanted}, actual) == brute_force(wanted, actual)


@pytest.mark.parametrize("order", list(itertools.permutations(["abc", "abx", "azz"])))
def test_a_greedy_pairing_would_not_do(order: tuple[str, ...]) -> None:
    # Each item of `wanted` fits what the next fits as well; only one assignment works.
    wanted = [{"regex": "^a"}, {"regex": "^ab"}, {"regex": "^abc"}]
    for permuted in itertools.permutations(wanted):
        assert fits({"unordered": list(permuted)}, list(order))


@pytest.fixture
def shallow_stack() -> Iterator[None]:
    """Room for some dozens of calls: what recurses over a list of 150 items fails."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    yield
    sys.setrecursionlimit(limit)


@pytest.mark.usefixtures("shallow_stack")
@pytest.mark.parametrize("wanted", [7, {"any": True}])
def test_long_lists_are_paired(wanted: Any) -> None:
    assert fits({"unordered": [wanted] * 150}, [7] * 150)
    assert fits({"contains": [wanted] * 150}, [7] * 151)


@pytest.mark.usefixtures("shallow_stack")
def test_a_long_chain_of_exchanges_is_followed() -> None:
    # Item i fits the values i and i + 1, the last wanted item only the value 0: to place it,
    # every item before it must move up by one.
    wanted = [{"one_of": [i, i + 1]} for i in range(150)] + [0]
    assert fits({"unordered": wanted}, list(range(151)))
    assert not fits({"unordered": wanted}, [*range(150), -1])


# Operands and their edges.


@pytest.mark.parametrize(
    ("actual", "fit"),
    [
        (9.5, True),
        (10.5, True),
        (9.49, False),
        (10.51, False),
        (10**400, False),
        (-(10**400), False),
    ],
)
def test_approx_includes_its_edges(actual: float, fit: bool) -> None:
    assert fits({"approx": 10.0, "tol": 0.5}, actual) is fit
    assert fits({"approx": 10, "tol": 0.5}, actual) is fit


@pytest.mark.parametrize("letter", ["ë", "\\u00eb"], ids=["utf-8", "ascii"])
@pytest.mark.parametrize("length", [16, 17, 40, 64])
def test_sha256_takes_a_prefix_of_the_canonical_json(length: int, letter: str) -> None:
    value = {"z": [1, 2.5, None, True], "a": "Zoë", "m": {"b": 1, "a": 2}}
    # Written out by hand: keys sorted at every level, no spaces.
    text = '{"a":"Zo' + letter + '","m":{"a":2,"b":1},"z":[1,2.5,null,true]}'
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert fits({"sha256": digest[:length]}, value)
    wrong = digest[: length - 1] + ("0" if digest[length - 1] != "0" else "1")
    assert not fits({"sha256": wrong}, value)


@given(json_values())
def test_sha256_fits_what_the_canonical_json_is_of(value: Any) -> None:
    assert fits({"sha256": hashlib.sha256(canonical_json(value)).hexdigest()}, value)


@pytest.mark.parametrize(
    ("pattern", "actual", "fit"),
    [
        ("^true$", True, True),
        ("null", None, True),
        (r'^\["a", 1\]$', ["a", 1], True),
        ("é", {"k": "é"}, True),
        ("^5$", 5, True),
        ("^5$", 5.0, False),
        ("b.d", "b\nd", False),
        ('^{"a": 1, "b": 2}$', {"b": 2, "a": 1}, True),
    ],
)
def test_regex_reads_what_is_no_text_as_json(pattern: str, actual: Any, fit: bool) -> None:
    assert fits({"regex": pattern}, actual) is fit


@pytest.mark.parametrize(
    ("part", "actual", "fit"),
    [
        ("", "", True),
        ("b", "abc", True),
        ("b", ["a", "b"], True),
        ("b", {"b": 1}, False),
        (1, [1.0], True),
        (1, [True], False),
        (1, 1, False),
        ([], [], True),
        ([], "text", False),
        (["a"], "a", False),
        ([["a"]], [["a"], "b"], True),
        ([1, 1], [1], False),
        ({}, {}, True),
        ({}, {"a": 1}, True),
        ({}, [], False),
        ({"a": {"b": 1}}, {"a": {"b": 1}, "c": 2}, True),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}}, False),
        ({"a": {"contains": {"b": 1}}}, {"a": {"b": 1, "c": 2}}, True),
        ({"any": True}, ["x"], True),
        ({"any": True}, [], False),
        ({"any": True}, {"any": True}, False),
        (None, [None], True),
        (None, None, False),
    ],
)
def test_contains(part: Any, actual: Any, fit: bool) -> None:
    assert fits({"contains": part}, actual) is fit


@given(json_values(), st.sampled_from(EXAMPLES))
def test_a_matcher_never_raises(value: Any, example: tuple[Any, Any, Any]) -> None:
    mismatch(example[0], value, "x")


@given(json_values(), json_values())
def test_a_mismatch_names_a_place_under_the_path(expected: Any, actual: Any) -> None:
    found = mismatch({"literal": expected}, actual, "args.key")
    assert found is None or found.startswith("args.key")


# Arguments.


@pytest.mark.parametrize("mode", ["exact", "subset", "keys", "ignore"])
def test_everything_that_differs_is_listed(mode: str) -> None:
    expected = {"a": 1, "b": 2, "c": 3, "d": {"e": 4}}
    actual = {"a": 1, "b": 0, "d": {"e": 5}, "z": 1, "y": 1}
    differing = ["args.b is 0, expected 2", "args.d.e is 5, expected 4"]
    missing = ["args.c is missing"]
    surplus = ["args.y is not expected", "args.z is not expected"]
    assert (
        args_mismatches(expected, mode, actual)
        == {
            "exact": missing + differing + surplus,
            "subset": missing + differing,
            "keys": missing,
            "ignore": [],
        }[mode]
    )


@pytest.mark.parametrize("mode", ["exact", "subset", "keys", "ignore"])
@pytest.mark.parametrize("actual", [None, {}, "text", 5, [1], True])
def test_a_call_without_an_object_has_no_arguments(actual: Any, mode: str) -> None:
    assert args_mismatches({}, mode, actual) == []
    assert bool(args_mismatches({"k": {"any": True}}, mode, actual)) == (mode != "ignore")


# Showing values.


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a", "'a'"),
        ("", "''"),
        (5, "5"),
        (5.0, "5.0"),
        (True, "true"),
        (None, "null"),
        ({"b": 1, "a": "é"}, '{"a": "é", "b": 1}'),
        ([1, "x"], '[1, "x"]'),
    ],
)
def test_values_are_shown_as_people_read_them(value: Any, shown: str) -> None:
    assert show(value) == shown


@pytest.mark.parametrize("extra", [-3, -2, -1, 0, 1, 1000])
def test_long_values_are_cut(extra: int) -> None:
    text = "x" * (SHOWN_CHARACTERS + extra)
    whole = f"'{text}'"
    shown = show(text)
    if extra <= -2:
        assert shown == whole
    else:
        assert len(shown) == SHOWN_CHARACTERS
        assert shown == whole[: SHOWN_CHARACTERS - 1] + "…"


@given(json_values())
def test_no_value_is_too_long_to_be_shown(value: Any) -> None:
    assert 0 < len(show(value)) <= SHOWN_CHARACTERS
    assert 0 < len(show([value] * 100)) <= SHOWN_CHARACTERS


@pytest.mark.parametrize("value", [{1, 2}, object(), b"x"])
def test_what_is_not_json_is_shown_all_the_same(value: Any) -> None:
    assert show(value) == repr(value)


# Texts and names.


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("  A \t B\n\nC ", "a b c"),
        ("Straße", "strasse"),
        ("$1,628.00", "$1628.00"),
        ("1,234,567", "1234567"),
        ("1'234'567", "1234567"),
        ("1\u00a0234", "1234"),
        ("1\u202f234", "1234"),
        ("1 234", "1 234"),
        ("1.234", "1.234"),
        ("1,23", "1,23"),
        ("1,2345", "1,2345"),
        ("1, 234", "1, 234"),
        (",234", ",234"),
        ("a,234", "a,234"),
        ("12,345.678,9", "12345.678,9"),
        ("x\u00a0y", "x y"),
        ("", ""),
    ],
)
def test_plain_text(text: str, plain: str) -> None:
    assert plain_text(text) == plain


@given(st.integers(min_value=0, max_value=10**15))
def test_thousands_separators_never_matter(number: int) -> None:
    assert plain_text(f"about {number:,} USD") == f"about {number} usd"


@pytest.mark.parametrize(
    ("text", "fit"),
    [
        ("327", True),
        ("$327", True),
        ("$327, then", True),
        ("It is 327.", True),
        ("327.0", True),
        ("327.00", True),
        ("327.00.", True),
        ("327,00 €", True),
        ("327%", True),
        ("327th", True),
        ("no327", True),
        ("-327", True),
        ("(327)", True),
        ("2024-327-1", True),
        ("1. 327", True),
        ("1, 327", True),
        ("13275 and 327", True),
        ("327.5 and 327.50 and 327", True),
        ("13275", False),
        ("3271", False),
        ("1327", False),
        ("327.5", False),
        ("327.05", False),
        ("327.001", False),
        ("327.000001", False),
        ("327,5", False),
        ("327,000", False),
        ("1.327", False),
        ("0.327", False),
        ("1,327", False),
        ("1'327", False),
        ("3 27", False),
        ("", False),
    ],
)
def test_a_number_is_found_whole(text: str, fit: bool) -> None:
    assert contains_text(plain_text(text), "327") is fit


@pytest.mark.parametrize(
    ("text", "part", "fit"),
    [
        ("costs $15", "$15", True),
        ("costs $150", "$15", False),
        ("costs 98.5", "98.5", True),
        ("costs 98.50", "98.5", False),
        ("costs 198.5", "98.5", False),
        ("costs 98.5", "8.5", False),
        ("total: 5", "total: 5", True),
        ("total: 55", "total: 5", False),
        ("5 bags", "5 bags", True),
        ("15 bags", "5 bags", False),
        ("1.5 bags", "5 bags", False),
        ("flight 15 bags", "flight", True),
        ("12a3", "a", True),
        ("12.5a", "a", True),
        ("order #w12", "#w1", False),
        ("order #w12, #w1", "#w1", True),
        ("1.", "1.", True),
        ("11.", "1.", False),
        ("aaa", "aa", True),
        ("no", "yes", False),
        ("1121", "11 21", False),
    ],
)
def test_texts_are_found_with_their_numbers_whole(text: str, part: str, fit: bool) -> None:
    assert contains_text(plain_text(text), plain_text(part)) is fit


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_of_two_whole_numbers_one_is_in_the_other_only_if_equal(one: int, other: int) -> None:
    said = plain_text(f"It is ${one:,}.00, as agreed")
    assert contains_text(said, str(other)) == (one == other)
    assert contains_text(said, f"${other}") == (one == other)


@given(texts, texts, st.text("abc ", max_size=4))
def test_a_text_without_digits_is_found_as_it_stands(before: str, after: str, part: str) -> None:
    said = plain_text(f"{before}{part}{after}")
    assert contains_text(said, plain_text(part)) == (plain_text(part) in said)


def test_a_text_of_nothing_but_digits_is_searched_in_time() -> None:
    # Every place is a candidate; looking at all that surrounds each would take minutes.
    assert not contains_text("1" * 1_000_000, "1" * 5)


@given(st.text())
def test_plain_text_of_white_space_is_stable(text: str) -> None:
    assert plain_text(f"\n {text}\t") == plain_text(text)


@pytest.mark.parametrize(
    ("patterns", "name", "fit"),
    [
        (["get"], "get", True),
        (["get"], "get_x", False),
        (["get"], "Get", False),
        (["get_*"], "get_x", True),
        (["get_*"], "get_", True),
        (["get_*"], "forget_x", False),
        (["*"], "", True),
        (["g?t"], "got", True),
        (["g?t"], "goot", False),
        (["[gs]et"], "set", True),
        (["[!gs]et"], "set", False),
        (["[!gs]et"], "let", True),
        (["a.c"], "abc", False),
        (["a.c*"], "abc", False),
        (["get[0"], "get[0", True),
        (["x", "y*"], "yes", True),
        ([], "x", False),
        (["get_*"], "get_\nx", True),
        (["get"], "get\n", False),
        (["get_*t"], "get_t\n", False),
    ],
)
def test_globs(patterns: list[str], name: str, fit: bool) -> None:
    assert any_glob(patterns)(name) is fit


@pytest.mark.parametrize("name", ["run[admin]", "a*", "b?", "[!x]", "[", "a[b"])
def test_a_glob_fits_itself(name: str) -> None:
    assert any_glob([name])(name)
    assert any_glob(["other", name])(name)
    assert not any_glob([name])("other")
