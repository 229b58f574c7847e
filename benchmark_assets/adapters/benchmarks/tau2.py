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

from typing import Any

from benchmark_assets.adapters.formats.base import TraceFile, id_or_none, text_or_none
from benchmark_assets.adapters.formats.tau2 import NORMAL_ENDINGS
from benchmark_assets.model.identity import canonical_json
from benchmark_assets.model.matchers import reads_as_matcher
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
    read: dict[str, _Task] = {}
    for index, fields in enumerate(tasks):
        task = _Task(file, f"tasks[{index}]", fields)
        if not task.problems and task.id in read:
            task.complain("id", f"task id {task.id} occurs twice")
        problems += task.problems
        read[task.id] = task
    if problems:
        raise InputError(problems)
    writes = _write_patterns(list(read.values()), document)
    return {
        contract_id: _contract(contract_id, domain, task, writes)
        for contract_id, task in ((f"{domain}/{task_id}", task) for task_id, task in read.items())
    }


class _Task:
    """A task's ground truth, checked.

    Attributes:
        actions: The agent's; a simulated user's own are not demanded of the agent. `name` is a
            text and `arguments`, where there are any, an object.
        facts: What must be said.
        problems: All that is wrong; where there is any, nothing else is to be relied on.
    """

    def __init__(self, file: TraceFile, key: str, fields: Any) -> None:
        self.problems: list[Problem] = []
        self._file = file
        self._key = key
        task = _dict(fields)
        self.id = id_or_none(task.get("id")) or ""
        criteria = task.get("evaluation_criteria")
        self.actions: list[dict[str, Any]] = []
        self.facts: list[str] = []
        if not self.id or not isinstance(criteria, dict):
            self.complain("", "expected an object with an id and evaluation_criteria")
            return
        for index, action in enumerate(self._list(criteria, "actions")):
            self._action(f"evaluation_criteria.actions[{index}]", action)
        for index, fact in enumerate(self._list(criteria, "communicate_info")):
            key = f"evaluation_criteria.communicate_info[{index}]"
            if isinstance(fact, bool | dict | list) or fact is None or not str(fact).strip():
                self.complain(key, "expected a text or a number")
            self.facts.append(str(fact))

    def complain(self, key: str, message: str) -> None:
        """Note that something is wrong, at a key of this task (empty: at the task itself)."""
        at = f"{self._key}.{key}" if key else self._key
        self.problems.append(self._file.problem(message, key=at))

    def _list(self, criteria: dict[str, Any], name: str) -> list[Any]:
        value = criteria.get(name)
        if value is None or isinstance(value, list):
            return value or []
        self.complain(f"evaluation_criteria.{name}", "expected a list")
        return []

    def _action(self, key: str, action: Any) -> None:
        if not isinstance(action, dict):
            self.complain(key, "expected an object with a name")
            return
        if action.get("requestor", "assistant") != "assistant":
            return
        if text_or_none(action.get("name")) is None:
            self.complain(f"{key}.name", "expected the name of a tool")
        for name, kind, word in (
            ("arguments", dict, "an object"),
            ("compare_args", list, "a list"),
        ):
            value = action.get(name)
            if value is not None and not isinstance(value, kind):
                self.complain(f"{key}.{name}", f"expected {word}")
        self.actions.append(action)


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _pattern(tool: str) -> str:
    """The glob of a tool's kind: its first word and anything; a one-word tool stands for itself."""
    verb, separator, _ = tool.partition("_")
    return f"{verb}_*" if separator else tool


def _write_patterns(tasks: list[_Task], document: dict[str, Any]) -> list[str]:
    """Globs of the writing tools: the first words of all tools known that are no read verbs.

    Tools are known from every task's ground truth and, since a wrong write is by no ground
    truth, from what the runs in the file called.
    """
    names = [action["name"] for task in tasks for action in task.actions]
    for simulation in _items(document.get("simulations")):
        for message in _items(_dict(simulation).get("messages")):
            if _dict(message).get("role") == "assistant":
                names += [_dict(call).get("name") for call in _items(message.get("tool_calls"))]
    known = {name for name in names if isinstance(name, str) and name}
    return sorted({_pattern(name) for name in known if name.split("_")[0] not in READ_VERBS})


def _contract(contract_id: str, domain: str, task: _Task, writes: list[str]) -> dict[str, Any]:
    calls: dict[bytes, dict[str, Any]] = {}
    for action in task.actions:
        name = action["name"]
        if _pattern(name) not in writes:
            continue
        arguments = _dict(action.get("arguments"))
        compared = action.get("compare_args")
        if compared is not None:
            arguments = {key: value for key, value in arguments.items() if key in compared}
        rule: dict[str, Any] = {"tool": name}
        if arguments:
            rule["args"] = {key: _expected(value) for key, value in arguments.items()}
        seen = calls.setdefault(canonical_json(rule), {**rule, "min": 0, "max": 0})
        seen["min"] += 1
        seen["max"] += 1
    contract: dict[str, Any] = {
        "workflow": domain,
        "contract_version": CONTRACT_VERSION,
        "id": contract_id,
        "name": contract_id.replace("/", " task "),
        "applies_to": {"task": contract_id},
    }
    if writes:
        # Where no tool that writes is known, there is nothing to demand and nothing to forbid.
        trajectory: dict[str, Any] = {"calls": list(calls.values())} if calls else {}
        contract["trajectory"] = trajectory | {"writes": writes, "extra": "reads_only"}
    if task.facts:
        contract["final"] = {"contains": task.facts, "scope": "conversation"}
    contract["ends_with"] = sorted(NORMAL_ENDINGS)
    contract["trace_health"] = {"recovered_errors": "allow"}
    return contract


def _expected(value: Any) -> Any:
    """What is expected of an argument, by its kind; see the module's docstring."""
    if reads_as_matcher(value):
        return {"literal": value}
    if isinstance(value, list) and value:
        if all(isinstance(item, dict) for item in value):
            return [{"contains": item} for item in value]
        if not any(isinstance(item, dict | list) for item in value):
            return {"unordered": value}
    return value
