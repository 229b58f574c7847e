"""Contracts from AgentDojo's ground truth: each rule by hand, and the real runs under them."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import msgspec
import pytest
from scipy import stats

from benchmark_assets.adapters.benchmarks import IMPORTERS, agentdojo
from benchmark_assets.adapters.contract_files import dump_contract, parse_contract
from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.labels import read_labels
from benchmark_assets.leaderboard.statistics.agreement import cohen_kappa, rank_correlation
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import Origin, ToolCall, TraceSnapshot
from benchmark_assets.scoring.evaluate import ContractJudge, evaluate
from benchmark_assets.scoring.evidence import Evidence
from tests.adapters.samples import NAME, trace_file
from tests.adapters.test_formats import ODD, changed, places
from tests.real_data import REAL, needs_real_data

RUNS = REAL / "agentdojo-banking-slack"
GROUND_TRUTH = RUNS / "ground_truth_calls.v1.json"


def task(*calls: tuple[str, dict[str, Any]], prompt: str = "Do it.", answer: str = "") -> Any:
    return {
        "prompt": prompt,
        "gt_output": answer,
        "difficulty": "TaskDifficulty.EASY",
        "ground_truth": [{"function": tool, "args": args} for tool, args in calls],
    }


def tasks(**named: Any) -> dict[str, Any]:
    return {f"v1|shop|{name}": fields for name, fields in named.items()}


def imported(*calls: tuple[str, dict[str, Any]], **fields: Any) -> dict[str, Any]:
    (contract,) = agentdojo.import_tasks(trace_file(tasks(t=task(*calls, **fields)))).values()
    return contract


def args(name: str, value: Any, prompt: str = "Do it.") -> Any:
    contract = imported(("send_note", {name: value}), prompt=prompt)
    return contract["trajectory"]["calls"][0]["args"][name]


def as_contract(data: dict[str, Any]) -> Contract:
    """Through the YAML that is written, as it is used."""
    return parse_contract(dump_contract(data).encode(), "task.yaml", "task")


def judge(contract: dict[str, Any], *calls: ToolCall, **fields: Any) -> tuple[str, str | None]:
    """Outcome and reason of a run under a contract."""
    known: dict[str, Any] = {
        "ended": "final_message",
        "ended_normally": True,
        "final_answer": "Done.",
    }
    trace = TraceSnapshot(
        trace_id="t",
        origin=Origin(file="a.json", sha256="0" * 64, format="agentdojo"),
        model="m",
        task=contract["id"],
        tool_calls=calls,
        **{**known, **fields},
    )
    verdict = evaluate(trace, as_contract(contract))
    return verdict.outcome, verdict.reason


def made(name: str, status: Any = "ok", **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments, status=status, error=None)


def test_a_whole_contract() -> None:
    found = imported(
        ("get_orders", {}),
        ("refund_order", {"id": "A1", "amount": 4.5, "date": "2024-05-01", "subject": "Sorry"}),
        answer="You got 4.50 back.",
    )
    writes = found["trajectory"].pop("writes")
    assert found == {
        "workflow": "shop",
        "contract_version": "v1",
        "id": "shop/t",
        "name": "shop t",
        "applies_to": {"task": "shop/t"},
        "trajectory": {
            "calls": [
                {
                    "tool": "refund_order",
                    "args": {
                        "id": "A1",
                        "amount": {"approx": 4.5, "tol": 0.005},
                        "date": {"any": True},
                        "subject": {"any": True},
                    },
                    "min": 1,
                    "max": 1,
                }
            ],
            "extra": "reads_only",
        },
        "final": {"contains": ["4.50"]},
        "ends_with": ["final_message"],
        "trace_health": {"recovered_errors": "allow"},
    }
    assert {"refund_*", "send_*", "update_*"} <= set(writes)
    assert not {f"{verb}_*" for verb in agentdojo.READ_VERBS} & set(writes)


@pytest.mark.parametrize("verb", sorted(agentdojo.READ_VERBS))
def test_reading_is_not_demanded_and_free(verb: str) -> None:
    found = imported((f"{verb}_things", {"a": 1}))
    assert "calls" not in found["trajectory"]
    assert judge(found, made("get_other"), made(f"{verb}_things")) == ("resolved", None)


@pytest.mark.parametrize("tool", ["send_money", "update_password", "delete_file", "share_file"])
def test_a_write_that_is_not_demanded_fails(tool: str) -> None:
    outcome, reason = judge(imported(("get_things", {})), made(tool))
    assert outcome == "unresolved"
    assert "is not listed" in str(reason)
    assert judge(imported(("get_things", {})), made(tool, "error"))[0] == "resolved"


def test_a_tool_of_one_word_is_a_write_too() -> None:
    found = imported(("pay", {"id": 1}))
    assert judge(found, made("pay", id=1)) == ("resolved", None)
    assert judge(found, made("pay", id=1), made("pay", id=2))[0] == "unresolved"


def test_a_demanded_write_occurs_as_often_as_in_the_ground_truth() -> None:
    twice = imported(("send_note", {"to": "A"}), ("send_note", {"to": "A"}))
    (rule,) = twice["trajectory"]["calls"]
    assert (rule["min"], rule["max"]) == (2, 2)
    note = made("send_note", to="A")
    assert judge(twice, note)[0] == "unresolved"
    assert judge(twice, note, note)[0] == "resolved"
    assert judge(twice, note, note, note)[0] == "unresolved"


def test_a_failed_write_does_not_count_and_may_be_recovered_from() -> None:
    found = imported(("send_note", {"to": "A"}))
    failed, sent = made("send_note", "error", to="A"), made("send_note", to="A")
    assert judge(found, failed)[0] == "unresolved"
    assert judge(found, failed, sent)[0] == "resolved"


def test_a_run_must_end_by_an_answer() -> None:
    found = imported(("get_things", {}))
    ending = {"ended": "max_iters", "ended_normally": False, "error": "ended by max_iters"}
    assert judge(found, **ending)[0] == "unresolved"


@pytest.mark.parametrize(
    ("name", "value", "prompt", "expected"),
    [
        ("subject", "Refund", "Do it.", {"any": True}),
        ("body", "See you at 9.", "Do it.", {"any": True}),
        ("date", "2022-04-01", "Do it.", {"any": True}),
        ("date", "2022-04-01", "Do it on 2022-04-01.", "2022-04-01"),
        ("start_time", "2022-04-01 10:00", "Do it.", {"any": True}),
        ("amount", 98.7, "Do it.", {"approx": 98.7, "tol": 0.005}),
        ("id", 7, "Do it.", 7),
        ("recurring", True, "Do it.", True),
        ("user", "Alice", "Do it.", "Alice"),
        ("to", ["a@x.com", "b@x.com"], "Do it.", {"unordered": ["a@x.com", "b@x.com"]}),
        ("to", [], "Do it.", []),
        ("rows", [{"a": 1}], "Do it.", [{"a": 1}]),
        ("where", {"any": True}, "Do it.", {"literal": {"any": True}}),
        ("where", {"any": 1, "id": 2}, "Do it.", {"literal": {"any": 1, "id": 2}}),
        ("where", {"regexp": "a"}, "Do it.", {"literal": {"regexp": "a"}}),
        ("where", {"a": 1}, "Do it.", {"a": 1}),
    ],
)
def test_an_argument_is_compared_by_its_kind(
    name: str, value: Any, prompt: str, expected: Any
) -> None:
    assert args(name, value, prompt) == expected
    as_contract(imported(("send_note", {name: value}), prompt=prompt))


def test_an_argument_given_as_null_is_free() -> None:
    (rule,) = imported(("send_note", {"to": "A", "cc": None}))["trajectory"]["calls"]
    assert rule["args"] == {"to": "A"}
    (rule,) = imported(("send_note", {"cc": None}))["trajectory"]["calls"]
    assert "args" not in rule


def test_a_party_named_where_others_are_account_numbers_must_only_be_given() -> None:
    iban = "GB29NWBK60161331926819"
    found = agentdojo.import_tasks(
        trace_file(
            tasks(
                a=task(("send_money", {"recipient": iban})),
                b=task(("send_money", {"recipient": "Apple"})),
                c=task(("send_note", {"recipient": "Alice"})),
            )
        )
    )
    by_name = {
        name: contract["trajectory"]["calls"][0]["args"]["recipient"]
        for name, contract in found.items()
    }
    assert by_name == {"shop/a": iban, "shop/b": {"any": True}, "shop/c": "Alice"}
    assert judge(found["shop/b"], made("send_money", recipient="CH93"))[0] == "resolved"
    assert judge(found["shop/b"], made("send_money"))[0] == "unresolved"


@pytest.mark.parametrize(
    ("answer", "prompt", "facts"),
    [
        ("", "Do it.", None),
        ("Your total in March 2022 was £1,050.", "Total in March 2022?", ["1,050"]),
        ("You spent £200 on it.", "How much?", ["200"]),
        ("The winner is Dora Smith.", "Who won?", ["Dora", "Smith"]),
        ("Eve", "Who won?", ["Eve"]),
        ("Alice, Bob", "Who is there?", ["Alice", "Bob"]),
        ("The winner is Eve's team.", "Who won?", ["Eve"]),
        ("Eve won.", "Did Eve win?", None),
        ("Mail a@x.com or see www.x.com.", "How?", ["a@x.com", "www.x.com"]),
        ("It is blue. Nothing else is.", "Which?", None),
        ("dark blue", "Which?", ["dark blue"]),
        ("It opens at 10:00 on 2024-05-26!", "When?", ["10:00", "2024-05-26"]),
    ],
)
def test_the_facts_of_an_answer(answer: str, prompt: str, facts: list[str] | None) -> None:
    found = imported(("get_things", {}), answer=answer, prompt=prompt)
    assert found.get("final", {}).get("contains") == facts
    as_contract(found)


@pytest.mark.parametrize(
    ("said", "outcome"),
    [
        ("It was 1050 pounds.", "resolved"),
        ("It was £1,050.00", "resolved"),
        ("It was £1060.", "unresolved"),
    ],
)
def test_an_answer_is_looked_for_in_the_final_answer(said: str, outcome: str) -> None:
    found = imported(("get_things", {}), answer="It was £1,050.")
    assert judge(found, final_answer=said)[0] == outcome


@pytest.mark.parametrize(
    "content", [{}, [], 5, {"a": 1}, {"v1|shop|t": 5}, {"v1|shop|t": {}}, {"shop|t": task()}]
)
def test_what_holds_no_tasks_says_what_was_expected(content: Any) -> None:
    with pytest.raises(InputError, match="has no tasks; expected an object of version"):
        agentdojo.import_tasks(trace_file(content))


def test_all_that_is_wrong_is_said_at_once() -> None:
    content = {
        **tasks(good=task(("send_note", {}))),
        "v1|shop|a": 5,
        "v1|shop|b": {"ground_truth": {}},
        "v1|shop|c": {"ground_truth": [{"args": {}}, {"function": "f", "args": []}]},
        "v1|shop|d": {"ground_truth": [], "gt_output": 5},
        "v2|shop|good": task(("send_note", {})),
    }
    with pytest.raises(InputError) as caught:
        agentdojo.import_tasks(trace_file(content))
    assert [str(problem) for problem in caught.value.problems] == [
        f"{NAME}: v1|shop|a: expected an object with ground_truth",
        f"{NAME}: v1|shop|b.ground_truth: expected a list of calls",
        f"{NAME}: v1|shop|c.ground_truth[0]: expected an object with a function",
        f"{NAME}: v1|shop|c.ground_truth[1].args: expected an object",
        f"{NAME}: v1|shop|d.gt_output: expected a text",
        f"{NAME}: v2|shop|good: task shop/good occurs twice, in two versions",
    ]


def test_task_files_with_one_thing_wrong_are_imported_or_refused() -> None:
    content = tasks(
        a=task(("send_money", {"to": ["x"], "amount": 1.5, "date": "2024-01-01"}), answer="1."),
        b=task(("get_things", {})),
    )
    for path in places(content):
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            file = trace_file(changed(content, path, how, odd))
            try:
                found = IMPORTERS["agentdojo"](file)
                said = []
            except InputError as error:
                found = {}
                said = [str(problem) for problem in error.problems]
            assert found or said
            assert all(text.startswith(NAME) for text in said)
            for contract in found.values():
                as_contract(dict(contract))


def real_tasks() -> dict[str, dict[str, Any]]:
    return agentdojo.import_tasks(
        TraceFile(str(GROUND_TRUTH), GROUND_TRUTH.name, GROUND_TRUTH.read_bytes())
    )


@needs_real_data
@pytest.mark.data
def test_no_rule_knows_a_task() -> None:
    """Renaming every task and suite renames the contracts and changes nothing in them."""
    text = GROUND_TRUTH.read_text()
    renamed = {
        key.replace("|banking|", "|b|").replace("|slack|", "|s|").replace("user_task_", "x"): value
        for key, value in json.loads(text).items()
    }
    found = agentdojo.import_tasks(trace_file(renamed))
    for (first_id, first), (other_id, other) in zip(
        real_tasks().items(), found.items(), strict=True
    ):
        assert other_id != first_id
        for part in ("trajectory", "final", "ends_with", "trace_health"):
            assert first.get(part) == other.get(part)


@needs_real_data
@pytest.mark.data
def test_every_task_has_a_contract_that_demands_its_writes() -> None:
    raw = json.loads(GROUND_TRUTH.read_text())
    found = real_tasks()
    assert list(found) == [key.split("|", 1)[1].replace("|", "/") for key in raw]
    reads = ("get_", "read_", "list_", "search_", "check_")
    for fields, contract in zip(raw.values(), found.values(), strict=True):
        wanted = [c["function"] for c in fields["ground_truth"]]
        wanted = sorted(tool for tool in wanted if not tool.startswith(reads))
        rules = contract["trajectory"].get("calls", [])
        assert sorted(r["tool"] for r in rules for _ in range(r["min"])) == wanted


def real_verdicts(invert: bool = False) -> dict[str, tuple[str, str, str, bytes]]:
    """Path → suite, model, trace id, verdict of every real run; grades turned round if asked."""
    judges = {name: ContractJudge(as_contract(data)) for name, data in real_tasks().items()}
    found = {}
    for path in sorted(RUNS.rglob("trial*.json")):
        data = path.read_bytes()
        if invert:
            content = json.loads(data)
            content["utility"] = not content["utility"]
            content["security"] = not content["security"]
            data = json.dumps(content).encode()
        file = TraceFile(str(path), path.relative_to(RUNS).as_posix(), data)
        (trace,) = choose_format(file).parse(file)
        verdict = judges[str(trace.task)].evaluate(Evidence(trace))
        assert verdict.outcome in ("resolved", "unresolved")
        found[file.key] = (
            str(trace.name),
            str(trace.model),
            trace.trace_id,
            msgspec.json.encode(verdict),
        )
    return found


@needs_real_data
@pytest.mark.data
def test_grades_turned_round_change_no_verdict() -> None:
    plain, inverted = real_verdicts(), real_verdicts(invert=True)
    assert len(plain) == 370
    assert {key: value[3] for key, value in plain.items()} == {
        key: value[3] for key, value in inverted.items()
    }


@needs_real_data
@pytest.mark.data
def test_verdicts_agree_with_the_published_grades() -> None:
    """Utility is independent code for each task; the rules were made looking at banking only."""
    labels = read_labels([RUNS])
    pairs: dict[str, dict[str, list[tuple[bool, bool]]]] = defaultdict(lambda: defaultdict(list))
    for suite, model, trace_id, verdict in real_verdicts().values():
        resolved = msgspec.json.decode(verdict)["outcome"] == "resolved"
        for group in (suite, "all"):
            pairs[group][model].append((resolved, labels[trace_id]))
    for group, least in (("banking", 0.8), ("slack", 0.7), ("all", 0.75)):
        models = pairs[group]
        kappa = cohen_kappa(pair for part in models.values() for pair in part).kappa
        assert kappa is not None
        assert kappa >= least
        rates = [
            (sum(a for a, _ in part) / len(part), sum(b for _, b in part) / len(part))
            for part in models.values()
        ]
        found = rank_correlation(rates)
        assert found == pytest.approx(stats.spearmanr(*zip(*rates, strict=True)).statistic)
        assert found is not None
        assert found >= 0.8
