"""What a content holds: names as words, JSON however it is cut, and evidence of values."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given

from benchmark_assets.scoring.content import (
    document_of,
    elements,
    evidence_for,
    find_element,
    is_named,
    occurs,
    parsed,
    with_json_read,
)
from tests.scoring.values import json_values, texts


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("svcA", "svcA", True),
        ("svcA", 'x="svcA"', True),
        ("svcA", "Page.Variables.svcA.invoke()", True),
        ("svcA", "svc-svcA-x", True),
        ("svcA", "svcAll", False),
        ("svcA", "mysvcA", False),
        ("svcA", "svcA_1 svcA1 _svcA", False),
        ("svcA", "SVCA", False),
        ("svcA", "svcAll, svcA", True),
        ("svcA", "", False),
        # A name that ends in no letter needs no boundary there.
        ("f()", "af()b", False),
        ("f()", "f()b", True),
        ("$a", "x$a", True),
        ("a.b", "axb", False),
        ("Größe", "Größenordnung", False),
        ("Größe", "<Größe>", True),
        ("größ", "größe", False),
    ],
)
def test_a_name_occurs_as_a_word_of_its_own(name: str, text: str, found: bool) -> None:
    assert occurs(name, text) is found


@given(texts, texts, texts)
def test_a_name_occurs_where_an_expression_finds_it(name: str, before: str, after: str) -> None:
    head = r"(?<!\w)" if re.match(r"\w", name) else ""
    tail = r"(?!\w)" if re.search(r"\w\Z", name) else ""
    bounded = re.compile(head + re.escape(name) + tail)
    for text in (before, before + name + after, name + before + name):
        assert occurs(name, text) is (bounded.search(text) is not None)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"svcA": {}}, True),
        ({"all": {"svcA": 1}}, True),
        ([{"name": "svcA"}], True),
        (["svcA"], True),
        ("svcA", True),
        ({"svcB": {"of": "Variables.svcA"}}, False),
        ({"svcAll": {}}, False),
        ({"svcB": [1, None, True]}, False),
        ({}, False),
    ],
)
def test_a_name_is_more_than_a_mention(data: Any, found: bool) -> None:
    assert is_named(data, "svcA") is found


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1}', {"a": 1}),
        (' [1, "a"] ', [1, "a"]),
        ('"svcA": {"op": 1}', {"svcA": {"op": 1}}),
        (' "svcA": {"op": 1}, ', {"svcA": {"op": 1}}),
        (',"a": 1, "b": 2,', {"a": 1, "b": 2}),
        # Neither an object nor a list, or no JSON at all.
        ("1", None),
        ('"a"', None),
        ("null", None),
        ("<a/>", None),
        ('{"a": }', None),
        ('{"a": NaN}', None),
        ('["\\ud800"]', None),
        ("\ud800", None),
        ("[" * 100_000, None),
        ("", {}),
    ],
)
def test_json_is_read_whole_or_as_members_cut_out(text: str, value: Any) -> None:
    assert parsed(text) == value
    assert document_of(text) == (text if value is None else value)


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"a": 1, "b": {}}, {"a": 1, "b": {}}),
        ([{"name": "a"}, {"id": "b", "x": 1}], {"a": {"name": "a"}, "b": {"id": "b", "x": 1}}),
        ([{"name": "a", "id": "b"}], {"a": {"name": "a", "id": "b"}}),
        ([], {}),
        # Not all have names, or two have the same.
        ([{"name": "a"}, {}], None),
        ([{"name": "a"}, {"name": "a"}], None),
        ([{"name": 1}], None),
        ([1], None),
        ("a", None),
        (None, None),
    ],
)
def test_elements_are_members_or_named_objects(data: Any, found: Any) -> None:
    assert elements(data) == found


def test_an_element_is_found_at_any_depth_outermost_first() -> None:
    inner = {"name": "svcA", "svcA": 2}
    data = {"list": [{"deep": [inner]}], "svcA": {"a": 1}, "other": "svcA"}
    assert find_element(data, "svcA") == [{"a": 1}, inner, 2]
    assert find_element([{"id": "svcA"}], "svcA") == [{"id": "svcA"}]
    assert find_element({"svcAll": 1, "a": ["svcA"]}, "svcA") == []


@pytest.mark.parametrize(
    ("match", "document", "finding"),
    [
        # By key.
        ({"a": 1}, {"a": 1}, "fits"),
        ({"a": 1}, {"b": {"c": [{"a": 1}]}}, "fits"),
        ({"a": 1}, {"a": 2, "b": {"a": 1}}, "fits"),
        ({"a": 1}, {"a": True}, "differs"),
        ({"a": 1}, {"b": 1}, "silent"),
        ({"a": None}, {"a": None}, "fits"),
        ({"a": None}, {}, "silent"),
        ({"a.b": 1}, {"a": {"b": 1}}, "fits"),
        ({"a.b": 1}, {"a.b": 1}, "fits"),
        ({"a.b.c": 1}, {"a.b": {"c": 1}}, "fits"),
        ({"a.b.c": 1}, {"a": {"b.c": 1}}, "fits"),
        ({"a.b": 1}, {"b": 1}, "silent"),
        ({"a.b": 1}, {"a": 1, "b": 1}, "silent"),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, "differs"),
        ({"a": 1, "b": 2}, {"a": 1}, "silent"),
        # By key in a text, also one inside JSON.
        ({"a": "x"}, 'a="x"', "fits"),
        ({"a": "x"}, "a = 'x'", "fits"),
        ({"a": "x"}, '"a": "x"', "fits"),
        ({"a": "x"}, "a: x;", "fits"),
        ({"a": 5}, "a = 5;", "fits"),
        ({"a": True}, "a: true", "fits"),
        ({"a": 5}, 'a="5"', "differs"),
        ({"a": ""}, 'a=""', "fits"),
        ({"o.a": "x"}, "{o: {a: 'x'}}", "fits"),
        ({"a": "x"}, 'data-a="x"', "silent"),
        ({"a": "x"}, 'ba="x"', "silent"),
        ({"a": 'say \\"x\\"'}, 'a="say \\"x\\""', "fits"),
        ({"a": "x"}, {"code": 'a = "x"'}, "fits"),
        # Values anywhere.
        (["x"], {"a": ["x"]}, "fits"),
        (["a"], {"a": 1}, "fits"),
        (["x"], {"a": "one x, two"}, "fits"),
        (["x"], {"a": "axe"}, "silent"),
        ([1], {"a": {"b": 1}}, "fits"),
        ([1], {"a": True}, "silent"),
        ([True], "on: true", "fits"),
        ([{"b": 1}], {"a": {"b": 1}}, "fits"),
        ([{"b": 1}], {"a": {"b": 1, "c": 2}}, "silent"),
        ([{"regex": "^x+$"}], {"a": "xxx"}, "fits"),
        ([{"regex": "^x+$"}], "axxx", "silent"),
        (["x", "y"], {"a": "x"}, "silent"),
        ([], {}, "fits"),
    ],
)
def test_a_document_fits_differs_or_says_nothing(match: Any, document: Any, finding: str) -> None:
    said = evidence_for(match, [document], None)
    assert said.finding == finding
    assert bool(said.detail) is (finding != "fits")


def test_of_several_documents_the_best_counts() -> None:
    fits, differs, silent = {"a": 1}, {"a": 2}, {"b": 1}
    match = {"a": 1}
    assert evidence_for(match, [silent, differs, fits], None).finding == "fits"
    assert evidence_for(match, [fits, differs], None).finding == "fits"
    assert evidence_for(match, [differs, silent], None).finding == "differs"
    assert evidence_for(match, [silent, differs], None).finding == "differs"
    assert evidence_for(match, [silent], None).finding == "silent"
    assert evidence_for(match, [], None).finding == "silent"


@pytest.mark.parametrize(
    ("document", "finding"),
    [
        ({"svcA": {"op": 1}, "svcB": {"op": 2}}, "fits"),
        ({"svcA": {"op": 2}, "svcB": {"op": 1}}, "differs"),
        ({"svcB": {"op": 1}}, "silent"),
        ([{"name": "svcB", "op": 1}, {"name": "svcA", "op": 2}], "differs"),
        ('<t name="svcA" op=1 /><t name="svcB" op=2 />', "fits"),
        ('<t name="svcA" op=2 /><t name="svcB" op=1 />', "differs"),
        ("<t op=1 name='svcA'>", "fits"),
        ('<t op=1 name="svcAll">', "silent"),
        ("svcA: op = 1", "fits"),
        ("op = 1", "silent"),
    ],
)
def test_of_an_element_only_its_own_part_counts(document: Any, finding: str) -> None:
    assert evidence_for({"op": 1}, [document], "svcA").finding == finding


def test_texts_that_hold_json_are_read_and_others_left() -> None:
    arguments = {"content": '{"a": [1]}', "files": ['["x"]', "plain", "{broken"], "n": 1}
    assert with_json_read(arguments) == {
        "content": {"a": [1]},
        "files": [["x"], "plain", "{broken"],
        "n": 1,
    }


def test_what_is_left_out_is_left_out_as_text_and_as_data() -> None:
    arguments = {"old": "a", "new": "b", "data": {"b": 1, "a": 2}, "edits": [{"old": "a"}]}
    without = frozenset(["a", '{"a":2,"b":1}'])
    assert with_json_read(arguments, without) == {
        "old": None,
        "new": "b",
        "data": None,
        "edits": [{"old": None}],
    }


@given(json_values(), json_values(), texts)
def test_any_data_can_be_looked_at(data: Any, document: Any, name: str) -> None:
    value = {"literal": data}
    assert evidence_for({"a": value, name: 1}, [document], name or None).finding in (
        "fits",
        "differs",
        "silent",
    )
    assert evidence_for([value], [document, name], None).finding in ("fits", "silent")
    assert evidence_for([value], [document, [data]], None).finding == "fits"


@given(json_values())
def test_a_value_is_found_in_itself_under_its_key(value: Any) -> None:
    literal = {"literal": value}
    assert evidence_for({"key": literal}, [{"key": value}], None).finding == "fits"
    assert evidence_for({"out.key": literal}, [[{"out": {"key": value}}]], None).finding == "fits"
