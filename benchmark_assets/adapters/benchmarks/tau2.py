"""τ²-bench tasks as contracts.

A task's published ground truth is the list of actions that lead to the right database, and the
facts that must reach the user. A run is right if the database is, so a contract demands the
actions that *write*, allows no other successful write, and leaves reading free; demands the
facts anywhere in what the agent said; and demands that the conversation ended normally (the
benchmark gives no reward otherwise). Tool errors the agent got over are allowed: the benchmark
does not mind them.

Arguments, by kind, the same for every task:

* a list of objects (flights, passengers, payments): item by item; keys of an item that the
  ground truth does not name are free, since the benchmark's tools drop them;
* a list of scalars (item ids): in any order;
* anything else: by value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmark_assets.adapters.formats.base import TraceFile, text_or_none
from benchmark_assets.adapters.formats.tau2 import NORMAL_ENDINGS
from benchmark_assets.model.identity import canonical_json
from benchmark_assets.model.problem import InputError, Problem

READ_VERBS = frozenset(
    {"get", "list", "search", "find", "check", "calculate", "think", "transfer", "lookup", "read"}
)
"""First words of the tools that leave the benchmark's database as it is."""

CONTRACT_VERSION = "1"


def import_tasks(file: TraceFile) -> dict[str, dict[str, Any]]:
    """Return contract data by contract id (`airline/7`) for every task in a result file.

    Raises:
        InputError: If the file holds no tasks; or, all at once, for tasks that cannot be used.
    """
    document = file.json
    tasks = document.get("tasks") if isinstance(document, dict) else None
    if not isinstance(tasks, list) or not tasks:
        raise InputError(
            file.problem(
                "has no list of tasks", key="tasks", cure="is this a τ²-bench result file?"
            )
        )
    environment = _dict(_dict(document.get("info")).get("environment_info"))
    domain = text_or_none(environment.get("domain_name")) or "tau2"
    problems: list[Problem] = []
    contracts: dict[str, dict[str, Any]] = {}
    writes = _write_patterns(tasks, document)
    for index, task in enumerate(tasks):
        key = f"tasks[{index}]"
        criteria = task.get("evaluation_criteria") if isinstance(task, dict) else None
        if not isinstance(criteria, dict) or task.get("id") is None:
            message = "expected an object with an id and evaluation_criteria"
            problems.append(file.problem(message, key=key))
            continue
        contract_id = f"{domain}/{task['id']}"
        if contract_id in contracts:
            problems.append(file.problem(f"task id {task['id']} occurs twice", key=f"{key}.id"))
            continue
        contracts[contract_id] = _contract(contract_id, domain, criteria, writes)
    if problems:
        raise InputError(problems)
    return contracts


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _write_patterns(tasks: list[Any], document: dict[str, Any]) -> list[str]:
    """Globs of the writing tools: the first words of all tools known that are no read verbs.

    Tools are known from every task's ground truth and, since a wrong write is by no ground
    truth, from what the runs in the file called.
    """
    names = [
        action.get("name")
        for task in tasks
        for action in _actions(_dict(_dict(task).get("evaluation_criteria")))
    ]
    for simulation in document.get("simulations") or ():
        for message in _dict(simulation).get("messages") or ():
            if _dict(message).get("role") == "assistant":
                names += [_dict(call).get("name") for call in message.get("tool_calls") or ()]
    verbs = {name.split("_")[0] for name in names if isinstance(name, str) and "_" in name}
    return sorted(f"{verb}_*" for verb in verbs - READ_VERBS)


def _actions(criteria: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The agent's actions; a simulated user's own are not demanded of the agent."""
    return [
        action
        for action in criteria.get("actions") or ()
        if isinstance(action, dict) and action.get("requestor", "assistant") == "assistant"
    ]


def _contract(
    contract_id: str, domain: str, criteria: Mapping[str, Any], writes: list[str]
) -> dict[str, Any]:
    calls: dict[bytes, dict[str, Any]] = {}
    for action in _actions(criteria):
        name = str(action.get("name"))
        if f"{name.split('_', maxsplit=1)[0]}_*" not in writes:
            continue
        arguments = _dict(action.get("arguments"))
        compared = action.get("compare_args")
        if isinstance(compared, list):
            arguments = {key: value for key, value in arguments.items() if key in compared}
        rule: dict[str, Any] = {"tool": name}
        if arguments:
            rule["args"] = {key: _expected(value) for key, value in arguments.items()}
        seen = calls.setdefault(canonical_json(rule), {**rule, "min": 0, "max": 0})
        seen["min"] += 1
        seen["max"] += 1
    trajectory: dict[str, Any] = {}
    if calls:
        trajectory["calls"] = list(calls.values())
    trajectory |= {"writes": writes, "extra": "reads_only"}
    contract: dict[str, Any] = {
        "workflow": domain,
        "contract_version": CONTRACT_VERSION,
        "id": contract_id,
        "name": contract_id.replace("/", " task "),
        "applies_to": {"task": contract_id},
        "trajectory": trajectory,
    }
    facts = [str(fact) for fact in criteria.get("communicate_info") or ()]
    if facts:
        contract["final"] = {"contains": facts, "scope": "conversation"}
    contract["ends_with"] = sorted(NORMAL_ENDINGS)
    contract["trace_health"] = {"recovered_errors": "allow"}
    return contract


def _expected(value: Any) -> Any:
    """What is expected of an argument, by its kind; see the module's docstring."""
    if isinstance(value, list) and value:
        if all(isinstance(item, dict) for item in value):
            return [{"contains": item} for item in value]
        if not any(isinstance(item, dict | list) for item in value):
            return {"unordered": value}
    return value
