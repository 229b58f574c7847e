"""The sample grader, written again for comparison, does what the specification's does.

What it gets wrong is known, and is all that it gets wrong: else its speed is not the sample's.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from perf.golden import (
    cases_for_both,
    sample_judgement,
    sample_suite,
    sample_suite_cached,
    write_corpus,
)
from tests.golden.specification import CASES, GOLDEN, PATH_HASHES, REFUND, Case

MISSED = {
    # Only the keys of a tool's last call are kept.
    "first of several calls lacks a key",
    "middle call lacks a key",
    # The flag has no order.
    "asked after the write",
    "asked between writes",
    # Writes are known by three prefixes.
    "update_order writes",
    "cancel_order writes",
    "delete_order writes",
    "send_email writes",
    "set_status writes",
    "book_flight writes",
    "add_note writes",
    "pay_invoice writes",
    # Of the schema only `required` is looked at.
    "a status that is none",
    "an id of another type",
    # What it does not know.
    "neighbouring order",
    "compared value of another type",
    "compared value that is not there",
    "touch writes as said",
    "push_button writes as said",
    "get_lock writes as said",
    "the agent raised",
    "a lookup that failed",
}
"""Cases that fail and that the sample passes."""

READABLE = [
    case
    for case in CASES
    if {"tool_names", "required_arg_keys", "final_schema"} <= case.fixture["expect"].keys()
]


@pytest.mark.parametrize("case", READABLE, ids=lambda case: case.name)
def test_the_sample_errs_where_it_is_known_to(case: Case) -> None:
    verdict = sample_judgement(case.fixture, case.trace)
    assert verdict["pass"] is (case.passes or case.name in MISSED), verdict
    assert bool(verdict["failures"]) is not verdict["pass"]


def test_all_that_it_is_known_to_miss_is_looked_at() -> None:
    assert {case.name for case in READABLE} >= MISSED


@pytest.mark.parametrize("names", PATH_HASHES)
def test_its_path_hash(names: tuple[str, ...]) -> None:
    trace = {**GOLDEN, "tools": [{"name": name} for name in names]}
    assert sample_judgement(REFUND, trace)["path_hash"] == PATH_HASHES[names]


def test_both_suites_read_files_and_miss_what_is_missing(tmp_path: Path) -> None:
    cases = cases_for_both(40)
    assert len(cases) == 40
    fixtures, traces = write_corpus(cases, tmp_path)
    found = sample_suite(fixtures, traces)
    assert set(found) == {case.case_id for case in cases}
    assert all(found[case.case_id] for case in cases if case.fault is None)
    (traces / f"{cases[0].case_id}.json").unlink()
    cached = {case.case_id: {**case.fixture, "id": case.case_id} for case in cases}
    for fixture in cached.values():
        fixture["expect"] = {"required_arg_keys": {}, **fixture["expect"]}
    again = sample_suite(fixtures, traces)
    assert again == sample_suite_cached(cached, traces) == {**found, cases[0].case_id: False}
