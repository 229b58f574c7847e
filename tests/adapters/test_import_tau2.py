"""τ²-bench tasks as contracts: every rule, on tasks of a few lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmark_assets.adapters.benchmarks import IMPORTERS
from benchmark_assets.adapters.benchmarks.tau2 import READ_VERBS, import_tasks
from benchmark_assets.adapters.contract_files import (
    dump_contract,
    load_contracts,
    parse_contract,
)
from benchmark_assets.cli.import_tasks import command
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.problem import InputError
from benchmark_assets.scoring.evaluate import evaluate
from tests.adapters.samples import (
    NAME,
    agent,
    call,
    one,
    result,
    simulation,
    tau2,
    trace_file,
    user,
)


def action(name: str, arguments: Any = None, **fields: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "requestor": "assistant", **fields}


def task(*actions: Any, task_id: Any = "7", facts: Any = (), **criteria: Any) -> dict[str, Any]:
    known = {"actions": list(actions), "communicate_info": facts, "reward_basis": ["DB"]}
    return {"id": task_id, "evaluation_criteria": {**known, **criteria}}


def imported(*tasks: Any, simulations: Any = (), **info: Any) -> dict[str, dict[str, Any]]:
    return import_tasks(trace_file(tau2(*simulations, tasks=tasks, **info)))


def rules(*actions: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = imported(task(*actions))["airline/7"]["trajectory"]["calls"]
    return found


def as_contract(data: dict[str, Any]) -> Contract:
    """The contract as it is after having been written to a file and read."""
    return parse_contract(dump_contract(data).encode(), "c.yaml", "c")


def argument(value: Any) -> Any:
    ((rule,)) = rules(action("book_flight", {"x": value}))
    return rule["args"]["x"]


def test_a_whole_contract() -> None:
    found = imported(
        task(
            action("get_user", {"id": "emma"}),
            action("cancel_reservation", {"id": "ABC"}),
            facts=["327", 5],
        )
    )
    assert found == {
        "airline/7": {
            "workflow": "airline",
            "contract_version": "1",
            "id": "airline/7",
            "name": "airline task 7",
            "applies_to": {"task": "airline/7"},
            "trajectory": {
                "calls": [
                    {"tool": "cancel_reservation", "args": {"id": "ABC"}, "min": 1, "max": 1}
                ],
                "writes": ["cancel_*"],
                "extra": "reads_only",
            },
            "final": {"contains": ["327", "5"], "scope": "conversation"},
            "ends_with": ["agent_stop", "user_stop"],
            "trace_health": {"recovered_errors": "allow"},
        }
    }
    contract = as_contract(found["airline/7"])
    assert (contract.id, contract.group, contract.label) == ("airline/7", "airline", "airline@1")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ABC", "ABC"),
        (5, 5),
        (5.5, 5.5),
        (True, True),
        (None, None),
        ([], []),
        ({}, {}),
        ({"a": 1}, {"a": 1}),
        (["a", "b"], {"unordered": ["a", "b"]}),
        ([1, None, True], {"unordered": [1, None, True]}),
        ([{"n": 1}, {"n": 2}], [{"contains": {"n": 1}}, {"contains": {"n": 2}}]),
        ([{"n": 1}, "x"], [{"n": 1}, "x"]),
        ([["a"], ["b"]], [["a"], ["b"]]),
        ({"any": True}, {"literal": {"any": True}}),
        ({"regex": "a", "tol": 1}, {"literal": {"regex": "a", "tol": 1}}),
        ({"regex": "a", "flags": "i"}, {"literal": {"regex": "a", "flags": "i"}}),
        ([{"regexp": "a"}], {"literal": [{"regexp": "a"}]}),
        ([{"contains": "x"}], {"literal": [{"contains": "x"}]}),
        ({"deep": [{"one_of": [1]}]}, {"literal": {"deep": [{"one_of": [1]}]}}),
        ({"any": True, "other": 1}, {"literal": {"any": True, "other": 1}}),
    ],
    ids=repr,
)
def test_what_is_expected_of_an_argument_by_its_kind(value: Any, expected: Any) -> None:
    assert argument(value) == expected


@pytest.mark.parametrize(
    ("wanted", "made", "fits"),
    [
        ("ABC", "ABC", True),
        ("ABC", "abc", False),
        (5, 5.0, True),
        (5, "5", False),
        (["a", "b"], ["b", "a"], True),
        (["a", "b"], ["b", "a", "a"], False),
        (["a", "a"], ["a", "b"], False),
        ([{"n": 1}, {"n": 2}], [{"n": 1, "price": 9}, {"n": 2}], True),
        ([{"n": 1}, {"n": 2}], [{"n": 2}, {"n": 1}], False),
        ([{"n": 1}], [{"n": 1}, {"n": 2}], False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ({"any": True}, {"any": True}, True),
        ({"any": True}, "x", False),
        ([{"regex": "."}], [{"regex": "."}], True),
        ([{"regex": "."}], ["x"], False),
        ([], [], True),
        ([], ["a"], False),
        (None, None, True),
    ],
    ids=repr,
)
def test_arguments_are_judged_by_their_kind(wanted: Any, made: Any, fits: bool) -> None:
    """From the task to the verdict, through the file that people see."""
    contract = as_contract(imported(task(action("book_flight", {"x": wanted})))["airline/7"])
    trace = one(user(), agent(None, call("book_flight", {"x": made})), result(), agent("Done."))
    assert evaluate(trace, contract).outcome == ("resolved" if fits else "unresolved")


def test_an_action_that_occurs_twice_is_demanded_twice() -> None:
    assert rules(
        action("book_flight", {"id": 1}),
        action("update_bags", {"n": 1}),
        action("book_flight", {"id": 1}),
    ) == [
        {"tool": "book_flight", "args": {"id": 1}, "min": 2, "max": 2},
        {"tool": "update_bags", "args": {"n": 1}, "min": 1, "max": 1},
    ]


def test_actions_that_differ_in_their_arguments_are_rules_of_their_own() -> None:
    found = rules(action("book_flight", {"id": 1}), action("book_flight", {"id": 2}))
    assert [(rule["args"], rule["min"]) for rule in found] == [({"id": 1}, 1), ({"id": 2}, 1)]


def test_key_order_of_arguments_does_not_matter() -> None:
    (rule,) = rules(
        action("book_flight", {"a": 1, "b": 2}), action("book_flight", {"b": 2, "a": 1})
    )
    assert (rule["min"], rule["max"]) == (2, 2)


@pytest.mark.parametrize(
    ("count", "outcome"), [(1, "unresolved"), (2, "resolved"), (3, "unresolved")]
)
def test_a_repeated_action_is_judged_by_its_count(count: int, outcome: str) -> None:
    data = imported(task(*[action("book_flight", {"id": 1})] * 2))["airline/7"]
    requests = [call("book_flight", {"id": 1}, f"c{n}") for n in range(count)]
    answers = [result(call_id=f"c{n}") for n in range(count)]
    trace = one(user(), agent(None, *requests), *answers, agent("Done."))
    assert evaluate(trace, as_contract(data)).outcome == outcome


def test_a_task_that_only_reads_forbids_every_write() -> None:
    found = imported(
        task(action("get_user"), task_id="0"), task(action("cancel_reservation"), task_id="1")
    )
    data = found["airline/0"]
    assert data["trajectory"] == {"writes": ["cancel_*"], "extra": "reads_only"}
    contract = as_contract(data)
    reads = one(user(), agent(None, call("get_user")), result(), agent("No."))
    writes = one(user(), agent(None, call("cancel_reservation")), result(), agent("Done."))
    failed = one(user(), agent(None, call("cancel_reservation")), result(error=True), agent("No."))
    outcomes = [evaluate(trace, contract).outcome for trace in (reads, writes, failed)]
    assert outcomes == ["resolved", "unresolved", "resolved"]


def test_where_no_tool_writes_nothing_is_said_about_writing() -> None:
    data = imported(task(action("get_user"), facts=["5"]))["airline/7"]
    assert "trajectory" not in data
    as_contract(data)


@pytest.mark.parametrize("verb", sorted(READ_VERBS))
def test_reading_is_free(verb: str) -> None:
    data = imported(task(action(f"{verb}_things"), action(verb), action("pay_bill")))["airline/7"]
    assert [rule["tool"] for rule in data["trajectory"]["calls"]] == ["pay_bill"]
    assert data["trajectory"]["writes"] == ["pay_*"]


def test_a_tool_of_one_word_that_writes_is_demanded_too() -> None:
    data = imported(task(action("checkout", {"id": 1})))["airline/7"]
    assert data["trajectory"]["calls"] == [
        {"tool": "checkout", "args": {"id": 1}, "min": 1, "max": 1}
    ]
    assert data["trajectory"]["writes"] == ["checkout"]


def test_writing_tools_are_also_known_from_what_the_runs_called() -> None:
    runs = [
        simulation([user(), agent(None, call("send_certificate"), call("get_user"))]),
        simulation([user(None, tool_calls=[call("toggle_data")])]),
        5,
        {"messages": "none"},
    ]
    data = imported(task(action("cancel_reservation")), simulations=runs)["airline/7"]
    assert data["trajectory"]["writes"] == ["cancel_*", "send_*"]


def test_actions_of_the_simulated_user_are_not_demanded_of_the_agent() -> None:
    found = rules(action("toggle_data", {}, requestor="user"), action("pay_bill", {"id": 1}))
    assert [rule["tool"] for rule in found] == ["pay_bill"]


def test_an_action_without_a_requestor_is_the_agents() -> None:
    (rule,) = rules({"name": "pay_bill", "arguments": {"id": 1}})
    assert rule["tool"] == "pay_bill"


@pytest.mark.parametrize(
    ("compared", "expected"),
    [(None, {"id": 1, "note": "x"}), (["id"], {"id": 1}), (["id", "other"], {"id": 1}), ([], None)],
)
def test_only_the_arguments_that_the_benchmark_compares_count(compared: Any, expected: Any) -> None:
    (rule,) = rules(action("pay_bill", {"id": 1, "note": "x"}, compare_args=compared))
    assert rule.get("args") == expected


@pytest.mark.parametrize("arguments", [None, {}])
def test_an_action_without_arguments_demands_the_call_alone(arguments: Any) -> None:
    assert rules(action("pay_bill", arguments)) == [{"tool": "pay_bill", "min": 1, "max": 1}]


@pytest.mark.parametrize("facts", [None, []])
def test_without_facts_nothing_must_be_said(facts: Any) -> None:
    assert "final" not in imported(task(action("pay_bill"), facts=facts))["airline/7"]


def test_facts_may_be_said_at_any_time() -> None:
    data = imported(task(action("pay_bill"), facts=["1628"]))["airline/7"]
    said = [user(), agent("It costs $1,628."), user("Pay."), agent(None, call("pay_bill"))]
    contract = as_contract(data)
    assert evaluate(one(*said, result(), agent("Paid.")), contract).outcome == "resolved"
    silent = [user(), agent(None, call("pay_bill")), result(), agent("Paid.")]
    assert evaluate(one(*silent), contract).outcome == "unresolved"


@pytest.mark.parametrize(
    ("ended", "outcome"),
    [
        ("user_stop", "resolved"),
        ("agent_stop", "resolved"),
        ("max_steps", "unresolved"),
        ("agent_error", "unresolved"),
        ("infrastructure_error", "error"),
        (None, "error"),
    ],
)
def test_the_conversation_must_have_ended_normally(ended: str | None, outcome: str) -> None:
    contract = as_contract(imported(task(action("pay_bill")))["airline/7"])
    trace = one(
        user(), agent(None, call("pay_bill")), result(), agent("Paid."), termination_reason=ended
    )
    assert evaluate(trace, contract).outcome == outcome


@pytest.mark.parametrize(
    ("given", "expected"), [(7, "airline/7"), (0, "airline/0"), ("x/y", "airline/x/y")]
)
def test_task_ids_may_be_numbers_or_texts(given: Any, expected: str) -> None:
    assert list(imported(task(action("pay_bill"), task_id=given))) == [expected]


def test_without_a_domain_the_suite_is_the_benchmark() -> None:
    assert list(imported(task(action("pay_bill")), domain=None)) == ["tau2/7"]


@pytest.mark.parametrize("content", [{}, [], 5, None, {"tasks": []}, {"tasks": {}}, {"tasks": "x"}])
def test_a_file_without_tasks_is_refused(content: Any) -> None:
    with pytest.raises(InputError) as caught:
        import_tasks(trace_file("null" if content is None else content))
    assert str(caught.value) == (
        f"{NAME}: tasks: has no list of tasks; is this a τ²-bench result file?"
    )


def test_all_that_is_wrong_is_said_at_once_and_where() -> None:
    with pytest.raises(InputError) as caught:
        imported(
            5,
            {"id": "1"},
            {"evaluation_criteria": {}},
            task(task_id=""),
            task(5, task_id="4"),
            task(action(""), action("a_b", "x"), action("a_b", {}, compare_args="id"), task_id="5"),
            task(task_id="6", actions={}),
            task(task_id="7", facts="327"),
            task(task_id="8", facts=["327", "", None, ["x"], True]),
            task(task_id="9"),
            task(task_id=9),
        )
    said = [str(problem).removeprefix(f"{NAME}: ") for problem in caught.value.problems]
    criteria = "evaluation_criteria"
    assert said == [
        "tasks[0]: expected an object with an id and evaluation_criteria",
        "tasks[1]: expected an object with an id and evaluation_criteria",
        "tasks[2]: expected an object with an id and evaluation_criteria",
        "tasks[3]: expected an object with an id and evaluation_criteria",
        f"tasks[4].{criteria}.actions[0]: expected an object with a name",
        f"tasks[5].{criteria}.actions[0].name: expected the name of a tool",
        f"tasks[5].{criteria}.actions[1].arguments: expected an object",
        f"tasks[5].{criteria}.actions[2].compare_args: expected a list",
        f"tasks[6].{criteria}.actions: expected a list",
        f"tasks[7].{criteria}.communicate_info: expected a list",
        f"tasks[8].{criteria}.communicate_info[1]: expected a text or a number",
        f"tasks[8].{criteria}.communicate_info[2]: expected a text or a number",
        f"tasks[8].{criteria}.communicate_info[3]: expected a text or a number",
        f"tasks[8].{criteria}.communicate_info[4]: expected a text or a number",
        "tasks[10].id: task id 9 occurs twice",
    ]


def test_no_benchmarks_task_id_stands_in_the_code() -> None:
    """One rule set for all tasks: the importer must not know any of them."""
    from benchmark_assets.adapters.benchmarks import tau2 as module

    code = Path(module.__file__).read_text()
    for name in ("EHGLP3", "emma_kim", "create_task_1", "== 12", "== '"):
        assert name not in code


def test_every_task_gets_a_file_of_its_own(tmp_path: Path) -> None:
    """Ids that a file system does not take, or that look alike without what it does not take."""
    ids = ["7", "a b", "a_b", "a?b", "a|b", "é", "..", ".", ".a", "x" * 300, "é" * 300, "a/b", "/"]
    results = tmp_path / "results.json"
    results.write_text(json.dumps(tau2(tasks=[task(action("pay_bill"), task_id=i) for i in ids])))
    out = tmp_path / "out"
    done = CliRunner().invoke(command, ["tau2", str(results), "--out", str(out)])
    assert done.exit_code == 0, done.output
    loaded = load_contracts([out])
    assert loaded.problems == ()
    assert [file.contract.id for file in loaded.contracts] == sorted(f"airline/{i}" for i in ids)
    assert (out / "airline" / "7.yaml").is_file()
    assert sorted(tmp_path.iterdir()) == [out, results]  # nothing is written beside it


def test_importers_are_called_by_the_benchmarks_name() -> None:
    assert IMPORTERS["tau2"] is import_tasks
