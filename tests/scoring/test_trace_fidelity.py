"""Rule sets of fidelity: a file a case, and what must hold whatever is recorded.

A case is a file in `tests/data/fidelity/workflow`: a record in, the verdicts of each rule set
out. One in `tests/data/fidelity/agent` is for single agents.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.cli.main import COMMANDS
from benchmark_assets.model.fidelity import (
    AgentRecord,
    FidelityOutcome,
    LedgerEntry,
    ModelTurn,
    Severity,
    Usage,
    WorkflowFidelity,
    WorkflowRecord,
)
from benchmark_assets.scoring.trace_fidelity import (
    FAMILIES,
    RULE_SETS,
    RuleSet,
    agent_trace,
    specified,
    strict,
)
from benchmark_assets.scoring.trace_fidelity.finish_reasons import ALIASES, meaning
from benchmark_assets.scoring.trace_fidelity.grouping import same_name

FOLDER = Path(__file__).parents[1] / "data" / "fidelity"


def read(folder: str) -> dict[str, dict[str, Any]]:
    return {
        path.stem: yaml.safe_load(path.read_text(encoding="utf-8"))
        for path in sorted((FOLDER / folder).glob("*.yaml"))
    }


CASES = read("workflow")
AGENTS = read("agent")
VERDICTS = {specified.NAME: specified.VERDICTS, strict.NAME: strict.VERDICTS}


def record_of(case: dict[str, Any]) -> WorkflowRecord:
    record: WorkflowRecord = msgspec.convert(case["record"], WorkflowRecord, strict=True)
    return record


def verdicts(result: WorkflowFidelity) -> dict[str, str]:
    return {item.executor_id: item.verdict for item in result.executors}


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.name)
@pytest.mark.parametrize("name", CASES)
def test_the_case_is_judged_as_expected(name: str, rules: RuleSet) -> None:
    case = CASES[name]
    assert case.keys() == {"why", "record", "expected"}
    expected = case["expected"][rules.name]
    assert expected.keys() <= {"outcome", "score", "executors", "reason", "note"}
    result = rules.reconcile(record_of(case))
    assert verdicts(result) == expected["executors"], result
    assert (result.outcome, result.score) == (expected["outcome"], expected["score"])
    if expected.get("reason"):
        assert any(expected["reason"] in (item.reason or "") for item in result.executors), result
    if "note" in expected:
        assert expected["note"] in " ".join(result.notes)
    else:
        assert result.notes == ()


@pytest.mark.parametrize("rules", RULE_SETS, ids=lambda rules: rules.name)
@pytest.mark.parametrize("name", CASES)
def test_every_verdict_says_why_and_has_its_score(name: str, rules: RuleSet) -> None:
    result = rules.reconcile(record_of(CASES[name]))
    assert (result.reason is None) == (result.outcome == "PASS")
    for item in result.executors:
        score, severity = VERDICTS[rules.name][item.verdict]
        if item.verdict == "OverReport" and item.truth_tokens == 0:
            score = 0.0  # where no model was called nothing of the report is right
        assert (item.score, item.severity) == (score, severity)
        assert item.checks
        assert (item.reason is None) == (item.severity == "none")
        for check in item.checks:
            assert check.expected
            assert check.observed
            assert (check.reason is None) == (check.outcome in ("passed", "info"))


def test_every_verdict_severity_and_outcome_has_cases() -> None:
    for rules in RULE_SETS:
        expected = [case["expected"][rules.name] for case in CASES.values()]
        found = {verdict for item in expected for verdict in item["executors"].values()}
        assert found == set(VERDICTS[rules.name])
        assert {item["outcome"] for item in expected} == set(get_args(FidelityOutcome))
    assert {severity for _, severity in strict.VERDICTS.values()} == set(get_args(Severity))
    assert {item["expected"]["outcome"] for item in AGENTS.values()} == set(
        get_args(FidelityOutcome)
    )


@pytest.mark.parametrize("module", [specified, strict], ids=lambda module: module.NAME)
def test_the_table_of_verdicts_is_the_one_that_is_used(module: Any) -> None:
    rows = [line.strip("| ").split(" | ") for line in module.__doc__.splitlines() if "|" in line]
    told = {row[0]: (row[-2], row[-1]) for row in rows[2:]}
    words = {None: {"–", "not scored"}, 1.0: {"1"}, 0.5: {"0.5"}, 0.0: {"0"}}
    assert told.keys() == module.VERDICTS.keys()
    for verdict, (score, severity) in module.VERDICTS.items():
        assert told[verdict][0] in words[score]
        assert told[verdict][1] == severity


def test_registered_families_are_commands() -> None:
    names = [family.name for family in FAMILIES]
    assert names == ["workflow-trace-fidelity", "trace-fidelity"]
    assert set(names) <= set(COMMANDS)
    assert [rules.name for rules in RULE_SETS] == ["specified", "strict"]
    assert FAMILIES[0].rules == ("specified", "strict")
    assert {family.cost_tier for family in FAMILIES} == {"free"}


# The mean, and what it hides.


def workflow(agreeing: int, diverging: int) -> WorkflowRecord:
    ledger = [
        LedgerEntry(executor=f"e{number}", usage=Usage(total=100), finish_reason="stop")
        for number in range(agreeing + diverging)
    ]
    turns = [
        ModelTurn(
            executor=f"e{number}",
            usage=Usage(total=100 if number < agreeing else 200),
            finish_reason="stop",
        )
        for number in range(agreeing + diverging)
    ]
    return WorkflowRecord(ledger=tuple(ledger), turns=tuple(turns))


@pytest.mark.parametrize(
    ("agreeing", "score", "outcome"),
    [
        (0, 0.5, "FAIL"),
        (1, 0.75, "FAIL"),
        (2, 2.5 / 3, "WARN"),
        (48, 48.5 / 49, "WARN"),
        (49, 0.99, "PASS"),
    ],
)
def test_one_divergence_among_many(agreeing: int, score: float, outcome: str) -> None:
    record = workflow(agreeing, 1)
    by_mean = specified.reconcile(record)
    assert (by_mean.score, by_mean.outcome) == (pytest.approx(score), outcome)
    # What is lost in the mean fails by the strict rules.
    assert strict.reconcile(record).outcome == "FAIL"


def test_coverage_counts_executors_and_tokens() -> None:
    case = record_of(CASES["no_ledger"])
    assert specified.reconcile(case).coverage.token_share == pytest.approx(35 / 365)
    coverage = strict.reconcile(case).coverage
    assert (coverage.executors, coverage.checked, coverage.share) == (2, 1, 0.5)
    assert (coverage.truth_tokens, coverage.checked_tokens) == (365, 35)
    router = strict.reconcile(record_of(CASES["no_model_call"])).coverage
    assert (router.executors, router.share, router.token_share) == (1, 1, 1)
    nothing = strict.reconcile(WorkflowRecord()).coverage
    assert (nothing.share, nothing.token_share) == (None, None)


@pytest.mark.parametrize(
    ("record", "has"),
    [
        (WorkflowRecord(), False),
        (WorkflowRecord(ledger=(LedgerEntry(executor="a", usage=Usage()),)), False),
        (WorkflowRecord(ledger=(LedgerEntry(executor="a", usage=Usage(total=0)),)), True),
        (WorkflowRecord(ledger=(LedgerEntry(executor="a", finish_reason="stop"),)), True),
        (WorkflowRecord(ledger=(LedgerEntry(executor="a", calls=1),)), True),
    ],
)
def test_whether_there_is_a_ledger_at_all(record: WorkflowRecord, has: bool) -> None:
    assert strict.has_ledger(record) is has


def test_finish_reasons_are_read_in_any_spelling() -> None:
    for wanted, words in ALIASES.items():
        for word in words:
            for spelled in (word, word.upper(), word.replace("_", "-"), word.title()):
                assert meaning(spelled) == wanted
    assert meaning("MaxTokens") == "length"
    assert meaning("Other") == "other"
    assert meaning(None) is None


def test_names_are_compared_character_by_character() -> None:
    assert same_name("Writer") == same_name("wRITER")
    assert same_name("Über") == same_name("üBER")
    assert same_name("straße") != same_name("strasse")


# Properties.

counts = st.none() | st.integers(0, 3) | st.integers(0, 1000)
reasons = st.none() | st.sampled_from(["stop", "end_turn", "length", "tool_calls", "Stop", ""])
names = st.sampled_from(["a", "b", "A", "router"])


@st.composite
def usages(draw: st.DrawFn) -> Usage | None:
    if draw(st.booleans()):
        return None
    sent, received = draw(counts), draw(counts)
    known = [count for count in (sent, received) if count is not None]
    return Usage(
        input=sent,
        output=received,
        total=sum(known) if known else draw(counts),
        cached=draw(counts),
        reasoning=draw(counts),
    )


errors = st.sampled_from([None, None, None, "failed"])
invocations = st.none() | st.sampled_from(["1", "2"])
entries = st.builds(
    LedgerEntry,
    executor=names,
    invocation=invocations,
    usage=usages(),
    finish_reason=reasons,
    calls=st.none() | st.integers(0, 4),
    derived=st.booleans(),
    error=errors,
)
turns = st.builds(
    ModelTurn,
    executor=names,
    invocation=invocations,
    usage=usages(),
    finish_reason=reasons,
    error=errors,
)
records = st.builds(
    WorkflowRecord,
    ledger=st.lists(entries, max_size=6).map(tuple),
    turns=st.lists(turns, max_size=6).map(tuple),
    traced=st.none() | st.lists(names, max_size=3).map(tuple),
)
rule_sets = st.sampled_from(RULE_SETS)

Essence = tuple[str, float | None, dict[str, tuple[Any, ...]]]


def essence(result: WorkflowFidelity) -> Essence:
    """All but the order of executors and the words of checks."""
    return (
        result.outcome,
        result.score,
        {
            item.executor_id.upper(): (item.verdict, item.score, item.ledger_tokens)
            for item in result.executors
        },
    )


@given(records, rule_sets)
def test_any_record_has_an_outcome(record: WorkflowRecord, rules: RuleSet) -> None:
    result = rules.reconcile(record)
    scores = [item.score for item in result.executors if item.score is not None]
    assert (result.score is None) == (result.outcome == "PENDING")
    if result.outcome == "PASS":
        assert set(scores) <= {1.0} or rules.name == "specified"
    assert len(result.executors) == len({same_name(e.executor_id) for e in result.executors})
    if rules.name == "strict":
        ids = {same_name(item.executor) for item in (*record.ledger, *record.turns)}
        assert ids == {same_name(item.executor_id) for item in result.executors}
        critical = any(item.severity == "critical" for item in result.executors)
        assert not critical or result.outcome in ("FAIL", "PENDING")


@st.composite
def split(draw: st.DrawFn) -> tuple[WorkflowRecord, WorkflowRecord]:
    """A record, and the same with one step in two parts with the same totals.

    How the step ended is said by its last part, since it is only then that it has.
    """
    record = draw(records.filter(lambda record: record.ledger))
    index = draw(st.integers(0, len(record.ledger) - 1))
    step = record.ledger[index]
    if step.usage is None:
        first, second = None, None
    else:
        parts: dict[str, tuple[int | None, int | None]] = {}
        for name in ("input", "output", "total", "cached", "reasoning"):
            count = getattr(step.usage, name)
            some = None if count is None else draw(st.integers(0, count))
            parts[name] = (some, None if count is None or some is None else count - some)
        first = Usage(**{name: part for name, (part, _) in parts.items()})
        second = Usage(**{name: part for name, (_, part) in parts.items()})
    calls = None if step.calls is None else draw(st.integers(0, step.calls))
    pieces = (
        msgspec.structs.replace(step, usage=first, finish_reason=None, calls=calls, error=None),
        msgspec.structs.replace(
            step,
            usage=second,
            calls=None if step.calls is None or calls is None else step.calls - calls,
        ),
    )
    ledger = (*record.ledger[:index], *pieces, *record.ledger[index + 1 :])
    return record, msgspec.structs.replace(record, ledger=ledger)


@given(split(), rule_sets)
def test_splitting_a_step_changes_nothing(
    pair: tuple[WorkflowRecord, WorkflowRecord], rules: RuleSet
) -> None:
    whole, parts = (rules.reconcile(record) for record in pair)
    assert essence(whole) == essence(parts)


@given(records, entries, rule_sets)
def test_an_executor_without_truth_improves_nothing(
    record: WorkflowRecord, entry: LedgerEntry, rules: RuleSet
) -> None:
    before = rules.reconcile(record)
    more = msgspec.structs.replace(entry, executor="new")
    after = rules.reconcile(msgspec.structs.replace(record, ledger=(*record.ledger, more)))
    # Where every model call is recorded, one without any call reports too much, or nothing.
    assert verdicts(after)["new"] in ("NoTruth", "OverReport", "NoModelCall", "Error", "Unmeasured")
    if before.score is None:
        assert after.outcome in ("PENDING", "FAIL")
    else:
        assert after.score is not None
        assert after.score <= before.score
    rank = {"FAIL": 0, "WARN": 1, "PASS": 2}
    if before.outcome in rank:
        assert rank[after.outcome] <= rank[before.outcome]
    assert after.outcome != "PASS"


@given(records, rule_sets, st.randoms(use_true_random=False))
def test_the_order_of_steps_of_different_executors_is_irrelevant(
    record: WorkflowRecord, rules: RuleSet, random: Any
) -> None:
    mixed = msgspec.structs.replace(
        record, ledger=interleave(record.ledger, random), turns=record.turns
    )
    assert essence(rules.reconcile(record)) == essence(rules.reconcile(mixed))


def interleave(ledger: tuple[LedgerEntry, ...], random: Any) -> tuple[LedgerEntry, ...]:
    """Mix the steps of executors; each one's own stay in order."""
    queues: dict[str, list[LedgerEntry]] = {}
    for entry in ledger:
        queues.setdefault(same_name(entry.executor), []).append(entry)
    order = [same_name(entry.executor) for entry in ledger]
    random.shuffle(order)
    return tuple(queues[name].pop(0) for name in order)


# Single agents.


@pytest.mark.parametrize("name", AGENTS)
def test_the_agent_is_judged_as_expected(name: str) -> None:
    case = AGENTS[name]
    assert case.keys() == {"why", "agent", "chat", "expected"}
    agent, chat = (msgspec.convert(case[side], AgentRecord) for side in ("agent", "chat"))
    result = agent_trace.reconcile(agent, chat)
    expected = dict(case["expected"])
    assert result.outcome == expected.pop("outcome")
    assert result.score == expected.pop("score")
    assert {item.name: item.count for item in result.classes if item.count} == expected
    for item in result.classes:
        assert (item.check.reason is None) == (item.count == 0)
        assert item.check.expected
        assert item.check.observed


def test_every_class_has_a_case_of_its_own_and_a_weight() -> None:
    assert sum(rule.weight for rule in agent_trace.RULES) == 100
    for rule in agent_trace.RULES:
        assert set(AGENTS[rule.name]["expected"]) == {"outcome", "score", rule.name}
