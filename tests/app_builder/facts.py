"""What a run comes to, told from the tree it left and the texts it saw.

Belongs here: the plugins' rules once more, in the simplest form that holds for these scripts. It
looks at the files before and after the run where the engine looks at calls, and at the
contracts' YAML instead of their model. Does not belong here: anything the engine computes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from fnmatch import fnmatch
from typing import Any

from tests.app_builder.harness import DATA, Run, Script
from tests.app_builder.project import PAGES, relative_path, tree
from tests.app_builder.scripts import VARIANTS

Contract = dict[str, Any]

READ = {
    "api.hrdb": "services/hrdb/designtime/hrdb_API.json",
    "api.securityService": "services/securityService/designtime/securityService_API.json",
    "db.hrdb": "services/hrdb/designtime/hrdb_published_dataModel.json",
    "page.Main": f"{PAGES}/Main/Main.html",
    "design_tokens.Main": f"{PAGES}/Main/Main.tokens-plan.json",
}
LOGIN = f"{PAGES}/Login/Login"
LEAVE = "services/LeaveService"
SOURCE = f"{LEAVE}/src/com/acme/leaveservice/LeaveService.java"
CHANGES = {
    "binding": {f"{PAGES}/Main/Main.html": "UPDATE", f"{PAGES}/Main/Main.variables.json": "UPDATE"},
    "screenshot_to_code": {
        f"{LOGIN}.{suffix}": "CREATE"
        for suffix in ("html", "js", "tokens-plan.json", "variables.json")
    },
    "javaservice": {SOURCE: "CREATE", f"{LEAVE}/designtime/LeaveService_API.json": "CREATE"},
}
OPERATION = {
    "binding": ("hrdb", "VacationController_getVacation"),
    "screenshot_to_code": ("securityService", "loginUser"),
}


def failing(run: Run, contract: Contract) -> set[str]:
    """Names of the plugins that must fail."""
    rules: dict[str, Callable[[Run, Contract], bool]] = {
        "skills_loaded": _skills,
        "input_context": _context,
        "tool_calls": _tools,
        "output": _output,
        "trace_health": _health,
        "budget": _budget,
        "trajectory": _trajectory,
        "final_output": _final,
    }
    return {name for name, holds in rules.items() if not holds(run, contract)}


def changes(before: dict[str, str], after: dict[str, str]) -> dict[str, str]:
    """Path → CREATE, UPDATE or DELETE of every file that differs."""
    return {
        path: "CREATE" if path not in before else "UPDATE" if path in after else "DELETE"
        for path in before.keys() | after.keys()
        if before.get(path) != after.get(path)
    }


def before(script: Script) -> dict[str, str]:
    """The project as a run of the script finds it."""
    return {**tree(DATA / "project"), **script.before}


def _skills(run: Run, contract: Contract) -> bool:
    required = contract["skills"]["required"]
    required = {required} if isinstance(required, str) else set(required)
    loaded = {
        record.call.arguments["skill_name"]
        for record in run.calls
        if record.call.tool == "load_skill" and '"status": "success"' in (record.result or "")
    }
    return required <= loaded <= required | set(contract["skills"].get("optional", ()))


def _context(run: Run, contract: Contract) -> bool:
    read = {
        relative_path(path)
        for record in run.calls
        if record.call.tool == "read_files" and record.error is None
        for path in record.call.arguments["paths"]
    }
    seen = "\n".join(f"{record.call.arguments} {record.result}" for record in run.calls)
    for entry in contract["input_context"]:
        kind, name, *terms = entry["resource"].split(".")
        terms += entry.get("terms", [])
        if READ[f"{kind}.{name}"] not in read or not all(term in seen for term in terms):
            return False
    return True


def _tools(run: Run, contract: Contract) -> bool:
    used = {record.call.tool for record in run.calls}
    forbidden = contract["tools"]["forbidden"]
    return set(contract["tools"]["required"]) <= used and not any(
        fnmatch(tool, pattern) for tool in used for pattern in forbidden
    )


def _output(run: Run, contract: Contract) -> bool:
    name = run.task.name
    found = before(VARIANTS[name][run.variant])
    if changes(found, run.files) != CHANGES[name]:
        return False
    if name == "javaservice":
        return "getRemainingDays" in run.files[SOURCE]
    path = next(path for path in CHANGES[name] if path.endswith(".variables.json"))
    old = json.loads(found.get(path, "{}"))
    new = {key: value for key, value in json.loads(run.files[path]).items() if key not in old}
    return [(value["service"], value["operation"]) for value in new.values()] == [OPERATION[name]]


def _health(run: Run, contract: Contract) -> bool:
    errors = [record.error for record in run.calls if record.error]
    errors += [turn.error for turn in run.turns if turn.error]
    allowed = contract.get("trace_health", {}).get("recovered_errors") == "allow"
    if run.error is not None or (errors and not allowed):
        return False
    built = True
    for record in run.calls if run.task.name == "javaservice" else ():
        if LEAVE in record.call.arguments.get("path", ""):
            built = False
        elif record.call.tool == "build_project":
            built = (record.result or "").endswith("BUILD SUCCESS")
    return built


def _budget(run: Run, contract: Contract) -> bool:
    same = Counter(
        json.dumps([record.call.tool, record.call.arguments], sort_keys=True)
        for record in run.calls
    )
    spent = {
        "max_steps": len(run.turns),
        "max_tool_calls": len(run.calls),
        "max_retries": max(same.values()) - 1,
        "max_tokens": sum(sum(turn.usage.values()) for turn in run.turns),
        "max_cost_usd": sum(sum(turn.cost.values()) for turn in run.turns),
        "max_duration_s": (run.ended_at - run.started_at).total_seconds(),
    }
    return all(spent[key] <= limit for key, limit in contract["budget"].items())


def _trajectory(run: Run, contract: Contract) -> bool:
    tools = [record.call.tool for record in run.calls]
    for rule in contract["trajectory"].get("calls", ()):
        if tools.count(rule["tool"]) > rule["max"]:
            return False
    paths = contract["trajectory"].get("allowed_paths")
    # A path of two: its last tool is called somewhere after its first one.
    return not paths or any(
        first in tools and last in tools[tools.index(first) :] for first, last in paths
    )


def _final(run: Run, contract: Contract) -> bool:
    return all(text in (run.answer or "") for text in contract["final"]["contains"])
