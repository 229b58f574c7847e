"""The grader, measured by what was made without it: a corpus, tables, the specification, ADK."""

from __future__ import annotations

import json
from collections import Counter
from random import Random

import pytest

from benchmark_assets.adapters.benchmarks.adk import cases_of, fixtures_of, golden_trace_of
from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from tests.golden import modes
from tests.golden.conformance import ADK_GOLDEN, HELM_RUN, HELM_SET, mutated
from tests.golden.corpus import Case, corpus
from tests.golden.grading import broken, graded, judged, quickly_graded, said
from tests.golden.oracle import failing
from tests.golden.plans import FAMILIES
from tests.golden.small import small_fixture, small_trace
from tests.golden.specification import CASES, GOLDEN, PATH_HASHES, REFUND
from tests.golden.specification import Case as Sentence
from tests.real_data import REAL, needs_real_data

pytest.importorskip("benchmark_assets.scoring.golden_path")
pytest.importorskip("benchmark_assets.adapters.fixture_files")

CELLS = [cell for cell in modes.cells() if cell.ours is not None]

FOLLOWING = {"arguments", "extra", "writes"}
"""Rules that look at calls which a path may account for."""


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return corpus()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_clean_trace_passes_and_every_fault_fails_for_its_reason(
    cases: list[Case], family: str
) -> None:
    wrong = []
    for case in (case for case in cases if case.family == family):
        result = graded(case.fixture, case.trace)
        rules = broken(result)
        right = (
            result.passed and not rules and not result.failures
            if case.rule is None
            else not result.passed
            and case.rule in rules
            and rules <= {case.rule} | case.consequences
        )
        if not right:
            wrong.append((case.case_id, case.fault, case.truth, rules, result.failures))
    assert wrong == []


def test_the_grader_and_the_oracle_agree_on_every_trace(cases: list[Case]) -> None:
    found = Counter(
        (
            case.family,
            graded(case.fixture, case.trace).passed,
            not failing(case.fixture, case.trace),
        )
        for case in cases
    )
    assert {key: n for key, n in found.items() if key[1] != key[2]} == {}
    assert sum(found.values()) == len(cases)


def test_the_grader_and_the_oracle_agree_on_what_nobody_thinks_of() -> None:
    rng = Random(5)
    passed = 0
    for _ in range(1500):
        fixture = small_fixture(rng)
        for _ in range(5):
            trace = small_trace(rng)
            result = graded(fixture, trace)
            mine, true = broken(result), failing(fixture, trace)
            if "path" in true:
                # Where no path was taken, what else is on none or missing is said, or is not.
                mine, true = mine - FOLLOWING, true - FOLLOWING
            assert mine == true, (fixture, trace, result.failures)
            assert result.passed is (broken(result) == set())
            passed += result.passed
    assert 400 < passed < 4000


def test_what_the_published_format_can_say_is_settled_without_words(cases: list[Case]) -> None:
    """That both ways agree is compared whenever a trace is graded; here, that the quick one is."""
    published = [case for case in cases if case.fixture["expect"].keys() <= REFUND["expect"].keys()]
    settled = [quickly_graded(case.fixture, case.trace) for case in published]
    assert settled == [case.fault is None for case in published]
    assert min(settled.count(True), settled.count(False)) > 100


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_sentence_of_the_specification(case: Sentence) -> None:
    result = graded(case.fixture, case.trace)
    assert result.passed is case.passes, result.failures
    assert bool(result.failures) is not case.passes
    if case.rule is not None:
        assert case.rule in broken(result)
        words = said(result)
        assert [name for name in case.names if name not in words] == []


def test_every_failure_says_what_was_expected_and_what_was_observed() -> None:
    for case in CASES:
        for check in graded(case.fixture, case.trace).checks:
            if check.outcome == "failed":
                assert check.reason, (case.name, check)
                assert check.expected, (case.name, check)
                assert check.observed, (case.name, check)


@pytest.mark.parametrize("names", PATH_HASHES)
def test_the_path_hash_is_the_specifications(names: tuple[str, ...]) -> None:
    trace = {**GOLDEN, "tools": [{"name": name, "arguments": {}} for name in names]}
    assert graded(REFUND, trace).path_hash == PATH_HASHES[names]


def test_grading_twice_says_the_same() -> None:
    for case in CASES:
        assert graded(case.fixture, case.trace) == graded(case.fixture, case.trace)


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.cell_id)
def test_a_cell_of_the_match_modes(cell: modes.Cell) -> None:
    assert graded(cell.fixture, cell.trace).passed is cell.ours


@needs_real_data
@pytest.mark.parametrize("name", ADK_GOLDEN)
def test_a_published_eval_case_passes_on_its_path_and_fails_on_every_mutation(name: str) -> None:
    data = json.loads((REAL / "adk-golden" / name).read_bytes())
    for case, fixture in zip(cases_of(data, name), fixtures_of(data, name), strict=True):
        golden = golden_trace_of(case)
        result = graded(fixture, golden)
        assert result.passed, result.failures
        survived = [kind for kind, t in mutated(fixture, golden) if graded(fixture, t).passed]
        assert survived == []


@needs_real_data
def test_a_recorded_run_passes_its_published_eval_case() -> None:
    """Spans of a real agent against the eval set that was published with them."""
    (fixture,) = fixtures_of(json.loads((REAL / HELM_SET).read_bytes()))
    file = TraceFile(HELM_RUN, HELM_RUN, (REAL / HELM_RUN).read_bytes())
    (trace,) = choose_format(file).parse(file)
    result = judged(fixture, trace)
    assert result.passed, result.failures
    other = {**fixture, "expect": {**fixture["expect"], "allowed_paths": [["helm_list_charts"]]}}
    assert not judged(other, trace).passed
