"""The golden corpus is what it says: checked by an oracle that knows only fixtures and traces."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest

from tests.golden.corpus import FAULTY, TRIALS, Case, corpus, digest
from tests.golden.domains import DOMAINS
from tests.golden.faults import FAULTS, RULES, mutations
from tests.golden.oracle import failing
from tests.golden.plans import FAMILIES, value_hash

DIGEST = "58732054803fd9067bc459266ff121d9d18ea882d15f40e008c1c01240686a45"
"""Of `corpus()`. A change means that figures printed of it before are of another corpus."""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return corpus()


def test_the_same_seed_gives_the_same_corpus(cases: list[Case]) -> None:
    assert digest(cases) == DIGEST
    assert digest(corpus(traces=60)) == digest(cases[:60])
    assert digest(corpus(seed=1, traces=60)) != digest(cases[:60])


def test_the_corpus_is_large_and_a_third_is_faulty(cases: list[Case]) -> None:
    assert len(cases) >= 2000
    assert len({case.case_id for case in cases}) == len(cases)
    faulty = sum(case.fault is not None for case in cases)
    assert faulty / len(cases) == pytest.approx(FAULTY / TRIALS, abs=0.01)


def test_every_fault_every_family_and_every_rule_is_there(cases: list[Case]) -> None:
    kinds = Counter(case.fault for case in cases if case.fault is not None)
    assert set(kinds) == set(FAULTS)
    assert min(kinds.values()) >= 5, kinds
    assert {case.family for case in cases} == set(FAMILIES)
    rules = Counter(case.rule for case in cases if case.rule is not None)
    # A failed call is never the fault itself: the call that is missed is.
    assert set(rules) == set(RULES) - {"health"}
    assert min(rules.values()) >= 15, rules
    per_rule = {rule: {c.fault for c in cases if c.rule == rule} for rule in rules}
    several = {rule for rule, faults in per_rule.items() if len(faults) > 1}
    assert several == set(rules) - {"before", "ended"}


def test_a_clean_trace_breaks_no_rule(cases: list[Case]) -> None:
    wrong = [(c.case_id, failing(c.fixture, c.trace)) for c in cases if c.fault is None]
    assert [case for case in wrong if case[1]] == []


def test_a_fault_breaks_its_rule_and_only_what_follows_from_it(cases: list[Case]) -> None:
    for case in cases:
        if case.rule is not None:
            broken = failing(case.fixture, case.trace)
            assert case.rule in broken, (case.case_id, case.fault, case.truth, broken)
            assert broken <= {case.rule} | case.consequences, (case.case_id, case.fault, broken)


def test_most_faults_break_one_rule_only(cases: list[Case]) -> None:
    alone = [failing(c.fixture, c.trace) == {c.rule} for c in cases if c.fault is not None]
    assert sum(alone) / len(alone) > 0.7


@pytest.mark.parametrize("family", FAMILIES)
def test_each_fault_does_harm_wherever_it_has_a_place(family: str) -> None:
    """Not only where the corpus happened to put it."""
    rng = Random(7)
    for domain in DOMAINS * 4:
        plan = FAMILIES[family](domain, rng)
        fixture = {"id": family, "input": {"user": "x"}, "expect": plan.expect}
        for _ in range(3):
            run = plan.clean(rng)
            before = json.dumps(run.trace)
            assert failing(fixture, run.trace) == set()
            for kind, found, trace in mutations(plan, run, rng.randrange(10**9)):
                broken = failing(fixture, trace)
                assert found.rule in broken, (kind, found, fixture, trace)
                assert broken <= {found.rule} | found.besides, (kind, found, broken)
            assert json.dumps(run.trace) == before


def test_clean_traces_use_the_freedom_that_fixtures_grant(cases: list[Case]) -> None:
    """Per family, clean traces of one fixture differ in what their fixture leaves open."""
    ways: dict[str, set[tuple[str, ...]]] = {}
    for case in cases:
        if case.fault is None:
            names = tuple(call["name"] for call in case.trace["tools"])
            ways.setdefault(case.fixture["id"], set()).add(names)
    per_family: dict[str, list[int]] = {}
    for fixture_id, found in ways.items():
        family = next(f for f in FAMILIES if fixture_id.startswith(f.replace("_", "-")))
        per_family.setdefault(family, []).append(len(found))
    fixed = {"single_path", "boolean_question", "value_hashes", "rich_payload", "spoken"}
    for family, counts in per_family.items():
        assert (max(counts) == 1) == (family in fixed), (family, counts)


def test_traces_are_json_in_the_recorders_form(cases: list[Case]) -> None:
    for case in cases:
        assert json.loads(json.dumps(case.trace)) == case.trace
        assert json.loads(json.dumps(case.fixture)) == case.fixture
        for question in case.trace.get("questions", []):
            assert 0 <= question["before_tool"] <= len(case.trace["tools"])
            assert case.trace["asked_clarification"]


def test_the_hash_of_a_value_is_of_its_canonical_json() -> None:
    # printf '%s' '{"a":[1,true],"b":"x"}' | sha256sum
    assert value_hash({"b": "x", "a": [1, True]}) == "840356ff5ef24566"


# The oracle itself, on a few lines each, by hand.

ONE = {"name": "get_order", "arguments": {"id": 1}}
TWO = {"name": "refund", "arguments": {}}


@pytest.mark.parametrize(
    ("path", "order", "calls", "fits"),
    [
        (["get_order", "refund"], "exact", [ONE, TWO], True),
        (["get_order", "refund"], "exact", [ONE, ONE, TWO], False),
        (["get_order", "refund"], "exact", [TWO, ONE], False),
        (["get_order", "refund"], "in_order", [ONE, ONE, TWO], True),
        (["get_order", "refund"], "in_order", [TWO, ONE], False),
        (["get_order", "refund"], "any_order", [TWO, ONE, ONE], True),
        (["get_order", "get_order"], "superset", [ONE, TWO], False),
        (["get_order", "refund"], "unordered", [TWO, ONE], True),
        (["get_order", "refund"], "unordered", [TWO, ONE, ONE], False),
        (["get_order", "refund"], "subset", [TWO], True),
        (["get_order", "refund"], "subset", [TWO, TWO], False),
        (["get_order", {"tool": "refund", "optional": True}], "exact", [ONE], True),
        ([{"tool": "get_order", "repeat": True}, "refund"], "exact", [ONE, ONE, ONE, TWO], True),
        ([{"tool": "get_order", "repeat": True}, "refund"], "exact", [TWO], False),
        (["get_order", "refund"], "exact", [ONE, {**TWO, "error": "x"}], False),
        (["get_order"], "superset", [{**ONE, "error": "x"}], False),
    ],
)
def test_how_the_oracle_reads_paths(path: object, order: str, calls: object, fits: bool) -> None:
    expect = {"allowed_paths": [path], "order": order}
    broken = failing({"expect": expect}, {"tools": calls})
    assert ("path" not in broken) is fits


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ({"status": "ok", "n": 1}, True),
        ({"status": "ok", "n": 1.5}, False),
        ({"status": "ok", "n": True}, False),
        ({"status": "OK"}, False),
        ({"n": 1}, False),
        ({"status": "ok", "more": 1}, False),
        ([], False),
        (None, False),
    ],
)
def test_how_the_oracle_reads_schemas(value: object, fits: bool) -> None:
    schema = {
        "type": "object",
        "required": ["status"],
        "properties": {"status": {"enum": ["ok"]}, "n": {"type": ["integer", "null"]}},
        "additionalProperties": False,
    }
    broken = failing({"expect": {"final_schema": schema}}, {"tools": [], "final": value})
    assert ("final" not in broken) is fits
