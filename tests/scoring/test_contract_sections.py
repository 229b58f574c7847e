"""Sections that cannot be meant as written: nothing in them, nothing demanded, leading nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from benchmark_assets.model.contract import Contract
from tests.scoring.build import contract

BLANK = ["", " ", "\t\n", "\u00a0"]
# Where a text stands, and the sections around it.
PLACES: dict[str, Any] = {
    "workflow": lambda text: {"workflow": text},
    "id": lambda text: {"id": text},
    "name": lambda text: {"name": text},
    "group": lambda text: {"group": text},
    "tools.required": lambda text: {"tools": {"required": ["a", text]}},
    "tools.optional": lambda text: {"tools": {"optional": text}},
    "tools.forbidden": lambda text: {"tools": {"forbidden": [text]}},
    "trajectory.allowed_paths": lambda text: {"trajectory": {"allowed_paths": [["a", text]]}},
    "trajectory.calls": lambda text: {"trajectory": {"calls": [{"tool": text}]}},
    "trajectory.writes": lambda text: {
        "trajectory": {"writes": [text], "extra": "reads_only"},
    },
    "final.contains": lambda text: {"final": {"contains": text}},
    "final.not_contains": lambda text: {"final": {"not_contains": ["a", text]}},
    "ends_with": lambda text: {"ends_with": [text]},
    "applies_to.agent": lambda text: {"applies_to": {"agent": text}},
    "applies_to.agent contains": lambda text: {"applies_to": {"agent": {"contains": text}}},
    "applies_to.agent glob": lambda text: {"applies_to": {"agent": {"glob": text}}},
    "applies_to.metadata": lambda text: {"applies_to": {"metadata": {"k": text}}},
}


def refused(**sections: Any) -> str:
    """What is said about sections that are refused."""
    with pytest.raises(ValidationError) as caught:
        contract(**sections)
    return str(caught.value)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("text", BLANK, ids=repr)
def test_a_text_of_white_space_is_refused(place: str, text: str) -> None:
    said = refused(**PLACES[place](text))
    assert ("holds only white space" if text else "at least 1 character") in said


@pytest.mark.parametrize("place", PLACES)
def test_a_text_with_something_in_it_is_accepted(place: str) -> None:
    contract(**PLACES[place](" a "))


@pytest.mark.parametrize("text", ["", " ", "a"])
def test_a_description_may_be_anything(text: str) -> None:
    assert contract(description=text).description == text


# Lists.


@pytest.mark.parametrize(
    "sections",
    [
        {"ends_with": []},
        {"applies_to": {"workflow": []}},
        {"applies_to": {"tags": {"equals": []}}},
        {"applies_to": {"metadata": {"k": []}}},
    ],
)
def test_a_list_of_no_alternatives_is_refused(sections: dict[str, Any]) -> None:
    assert "at least 1 item" in refused(**sections)


@pytest.mark.parametrize(
    "sections",
    [
        {"ends_with": ["stop"]},
        {"ends_with": "stop"},
        {"applies_to": {"workflow": ["a"]}},
        {"tools": {"required": ["a"], "optional": [], "forbidden": []}},
        {"final": {"contains": ["a"], "not_contains": []}},
    ],
)
def test_lists_with_alternatives_and_lists_of_no_demands_are_accepted(
    sections: dict[str, Any],
) -> None:
    contract(**sections)


# Rules that demand nothing.


@pytest.mark.parametrize("others", [[], [{"tool": "b"}]])
@pytest.mark.parametrize("extra", [{}, {"extra": "allow"}])
def test_a_call_that_need_not_occur_and_may_demands_nothing(
    others: list[Any], extra: dict[str, Any]
) -> None:
    said = refused(trajectory={"calls": [*others, {"tool": "a", "min": 0}], **extra})
    assert f"calls[{len(others)}]: demands nothing: min is 0 and there is no max" in said


@pytest.mark.parametrize(
    "trajectory",
    [
        {"calls": [{"tool": "a", "min": 0, "max": 0}]},
        {"calls": [{"tool": "a", "min": 0, "max": 3}]},
        {"calls": [{"tool": "a", "min": 0}], "extra": "forbid"},
        {"calls": [{"tool": "a", "min": 0}], "extra": "reads_only", "writes": ["a"]},
        {"calls": [{"tool": "a", "min": 1}]},
    ],
)
def test_a_call_that_need_not_occur_is_accepted_where_it_matters(trajectory: Any) -> None:
    contract(trajectory=trajectory)


# References in a schema.


def with_schema(schema: Any) -> Contract:
    return contract(final={"schema": schema})


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
@pytest.mark.parametrize(
    "reference",
    [
        "#/$defs/missing",
        "#/$defs/list/prefixItems/2",
        "#/$defs/list/prefixItems/x",
        "#/$defs/text/minLength",
        "#/$defs/text/minLength/0",
        "#/$defs/text/title/0",
        "#missing",
        "#/",
        "#a b",
        "other.json",
        "other.json#/$defs/text",
        "https://example.org/schema.json",
        "https://json-schema.org/draft/2020-12/schema",
        "file:///etc/hostname",
        "http://[x",
    ],
)
def test_a_reference_that_leads_nowhere_is_refused(reference: str, keyword: str) -> None:
    definitions = {
        "text": {"type": "string", "minLength": 1, "title": "A text"},
        "list": {"prefixItems": [{"type": "string"}, True]},
    }
    schema = {"properties": {"a": {"items": {keyword: reference}}}, "$defs": definitions}
    with pytest.raises(
        ValidationError, match=f"{keyword[1:]} leads nowhere in this schema"
    ) as caught:
        with_schema(schema)
    assert reference in str(caught.value)


@pytest.mark.parametrize(
    "reference",
    [
        "#",
        "",
        "#/$defs/text",
        "#/$defs/list/prefixItems/1",
        "#/%24defs/text",
        "#/$defs/a~1b",
        "#/$defs/a%25",
        "#/properties/default",
        "#named",
        "https://example.org/answer#/$defs/text",
        "answer",
    ],
)
def test_a_reference_inside_the_schema_is_accepted(reference: str) -> None:
    definitions = {
        "text": {"type": "string"},
        "list": {"prefixItems": [{"type": "string"}, True]},
        "a/b": True,
        "a%": True,
        "anchored": {"$anchor": "named", "type": "string"},
    }
    with_schema(
        {
            "$id": "https://example.org/answer",
            "properties": {"a": {"items": {"$ref": reference}}, "default": {"type": "null"}},
            "$defs": definitions,
        }
    )


@pytest.mark.parametrize("keyword", ["properties", "patternProperties", "$defs"])
@pytest.mark.parametrize("name", ["const", "enum", "default", "examples", "$ref", "properties"])
def test_names_are_no_keywords(keyword: str, name: str) -> None:
    if keyword == "patternProperties" and name == "$ref":
        name = "ref$"
    with_schema({keyword: {name: {"type": "string"}}})
    with pytest.raises(ValidationError, match="leads nowhere"):
        with_schema({keyword: {name: {"$ref": "#/missing"}}})


@pytest.mark.parametrize("keyword", ["const", "default"])
def test_a_value_that_looks_like_a_reference_is_none(keyword: str) -> None:
    with_schema({"properties": {"a": {keyword: {"$ref": "#/missing"}}}})
    with_schema({"properties": {"a": {"enum": [{"$ref": "#/missing"}]}}})


@pytest.mark.parametrize("at", ["allOf", "anyOf", "oneOf", "prefixItems"])
def test_references_in_lists_are_looked_up(at: str) -> None:
    with_schema({at: [True, {"$ref": "#/$defs/a"}], "$defs": {"a": True}})
    with pytest.raises(ValidationError, match="leads nowhere"):
        with_schema({at: [True, {"$ref": "#/$defs/b"}], "$defs": {"a": True}})
