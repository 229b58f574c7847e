"""What is to be pasted reads back as what was meant, and the figures are those of the mutants."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given

from benchmark_assets.model.mutation import Cure, Judged, MutantResult, MutationReport
from benchmark_assets.report.mutations import by_rule, flow, place_of
from tests.scoring.values import json_values


@given(json_values())
def test_what_is_to_be_pasted_is_yaml(value: Any) -> None:
    # YAML has no floats such as 1e22 without a dot; no contract is proposed with one.
    text = flow(value)
    assert "\n" not in text
    if "e" not in text.casefold().replace("true", "").replace("false", ""):
        assert yaml.safe_load(text) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"tool": "pay", "max": 1}, "{tool: pay, max: 1}"),
        ({"args": {"id": "1842"}}, '{args: {id: "1842"}}'),
        (["a b", "no", "delete_*", "x.y/z"], '["a b", "no", "delete_*", x.y/z]'),
        ({"any": True}, "{any: true}"),
        ("a: b", '"a: b"'),
        (None, "null"),
    ],
)
def test_quotes_are_where_yaml_needs_them(value: Any, text: str) -> None:
    assert flow(value) == text
    assert yaml.safe_load(text) == value


@pytest.mark.parametrize(
    ("place", "in_fixture"),
    [
        ("trajectory.calls[]", "expect.calls[]"),
        ("trajectory.ask_before_write", "expect.must_ask_before_write"),
        ("trajectory.writes[]", "expect.write_tools[]"),
        ("tools.forbidden[]", "expect.forbidden_tools[]"),
        ("final.schema.properties.a", "expect.final_schema.properties.a"),
        ("final.contains[]", "expect.contains[]"),
    ],
)
def test_places_have_the_names_of_the_file_they_are_in(place: str, in_fixture: str) -> None:
    cure = Cure(place=place, value=1)
    assert place_of(cure, fixture=False) == place
    assert place_of(cure, fixture=True) == in_fixture


def test_rules_are_counted_alone_and_together() -> None:
    def killed(*rules: str) -> MutantResult:
        return MutantResult(operator="x", what="y", fate="killed", killed_by=rules)

    report = MutationReport(
        contract="c",
        contract_version="1",
        trace_id="t",
        seed=0,
        operators=(("x", "X."),),
        golden=Judged(outcome="resolved"),
        empty=Judged(outcome="unresolved"),
        rules=("p: b", "p: idle"),
        mutants=(killed("p: a", "p: b"), killed("p: b"), killed("p: b")),
    )
    assert by_rule(report) == [("p: b", 3, 2), ("p: a", 1, 0), ("p: idle", 0, 0)]
