"""What the agent does: three use cases, each a clean run and variants of it.

Belongs here: the steps, and how a variant departs from the clean run. Does not belong here: what
a contract makes of it (`tests/data/app_builder/expected.yaml`).

A variant departs in one way, so that what fails shows which rule saw it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.app_builder.harness import DATA, Call, ModelOutage, Script, Step, Task
from tests.app_builder.project import NAME, PAGES, WORKSPACE

Steps = dict[str, Step]


@dataclass(frozen=True)
class UseCase:
    """A task, the steps of its clean run by label, and what the agent says at the end."""

    task: Task
    steps: Steps
    answer: str

    def script(
        self,
        *,
        drop: Sequence[str] = (),
        swap: Mapping[str, Step] | None = None,
        after: Mapping[str, Sequence[Step]] | None = None,
        **fields: Any,
    ) -> Script:
        """The clean run with steps left out, changed, or followed by others."""
        unknown = {*drop, *(swap or {}), *(after or {})} - self.steps.keys()
        if unknown:
            raise KeyError(f"{self.task.name} has no step {', '.join(sorted(unknown))}")
        steps: list[Step] = []
        for label, step in self.steps.items():
            if label not in drop:
                steps.append((swap or {}).get(label, step))
            steps += (after or {}).get(label, ())
        return Script(tuple(steps), **{"answer": self.answer, **fields})


def page_file(page: str, suffix: str) -> str:
    """Path of a page's file, by the project's convention."""
    return f"{PAGES}/{page}/{page}.{suffix}"


def _skill(name: str) -> Call:
    return Call("load_skill", {"skill_name": name})


def _read(*paths: str) -> Call:
    return Call("read_files", {"paths": list(paths)})


def _search(pattern: str) -> Call:
    return Call("search_files", {"pattern": pattern})


def _ask(question: str) -> Call:
    return Call("ask_user", {"question": question})


def _build(target: str) -> Call:
    return Call("build_project", {"target": target})


def _edit(path: str, old: str, new: str) -> Call:
    return Call("edit_file", {"path": path, "old_string": old, "new_string": new})


def _project(path: str) -> str:
    return (DATA / "project" / path).read_text(encoding="utf-8")


def _written(path: str) -> str:
    return (DATA / "written" / path).read_text(encoding="utf-8")


def _write(path: str, content: str | None = None) -> Call:
    """Write the given content, or the one that is kept under `written`."""
    return Call("write_file", {"path": path, "content": content or _written(path)})


def _broken(step: Step, outage: str, *, crash: bool = False) -> Call:
    """The call, broken by its environment."""
    assert isinstance(step, Call)
    return replace(step, outage=outage, crash=crash)


def _with_prefix(script: Script, prefix: str) -> Script:
    """The script with every path written in another form."""

    def longer(call: Call) -> Call:
        arguments: dict[str, Any] = {}
        for key, value in call.arguments.items():
            if key in ("path", "source", "destination"):
                arguments[key] = f"{prefix}/{value}"
            elif key == "paths":
                arguments[key] = [f"{prefix}/{path}" for path in value]
            else:
                arguments[key] = value
        return replace(call, arguments=arguments)

    steps: list[Step] = []
    for step in script.steps:
        if isinstance(step, tuple):
            steps.append(tuple(longer(call) for call in step))
        else:
            steps.append(longer(step) if isinstance(step, Call) else step)
    return replace(script, steps=tuple(steps))


UNAVAILABLE = "Skill registry unavailable, try again"
STATUS_503 = "HTTP 503 from the skill registry"


def _common(case: UseCase) -> dict[str, Script]:
    """Variants that every use case has."""
    skill = case.steps["skill"]
    clean = case.script()
    return {
        "clean": clean,
        "skill_not_loaded": case.script(drop=["skill"]),
        "extra_skill": case.script(after={"skill": [_skill("code_review")]}),
        "skill_failed": case.script(swap={"skill": _broken(skill, UNAVAILABLE)}),
        "skill_retry": case.script(
            swap={"skill": _broken(skill, UNAVAILABLE)}, after={"skill": [skill]}
        ),
        "skill_retry_after_error": case.script(
            swap={"skill": _broken(skill, STATUS_503, crash=True)}, after={"skill": [skill]}
        ),
        "unrelated_change": case.script(
            after={
                "skill": [_edit("README.md", "Employees see", "All employees of Acme see")],
            }
        ),
        "error_state": case.script(error="TimeoutError: the run exceeded 900 s"),
        "answer_without_names": case.script(answer="Everything is done as you asked."),
        "unrelated_read": case.script(after={"skill": [_read(page_file("Main", "js"))]}),
        "absolute_paths": _with_prefix(clean, WORKSPACE),
        "workspace_prefixed_paths": _with_prefix(clean, NAME),
    }


HRDB_API = "services/hrdb/designtime/hrdb_API.json"
HRDB_MODEL = "services/hrdb/designtime/hrdb_published_dataModel.json"
MAIN, MAIN_VARIABLES = page_file("Main", "html"), page_file("Main", "variables.json")
CATALOG = "docs/catalog/widgets.md"

_GET = "VacationController_getVacation"
_TABLE = '<wm-table name="tblVacations" title="Vacations"></wm-table>'
_BOUND = (
    '<wm-table name="tblVacations" title="Vacations" '
    'dataset="bind:Variables.svcVacations.dataSet"></wm-table>'
)
_END = '"startUpdate": true\n  }\n}'


def _variable(operation: str) -> str:
    """The end of the page's variables with the new one after the last."""
    fields = {
        "name": "svcVacations",
        "owner": "Page",
        "category": "wm.ServiceVariable",
        "service": "hrdb",
        "operation": operation,
        "startUpdate": True,
    }
    body = json.dumps(fields, indent=2).replace("\n", "\n  ")
    return f'"startUpdate": true\n  }},\n  "svcVacations": {body}\n}}'


BINDING = UseCase(
    Task(
        "binding",
        "create_variable_binding",
        "On the page Main, show the result of getVacation of the hrdb API in the table "
        "tblVacations. Name the variable svcVacations.",
        {"Shall the table be paged?": "No."},
    ),
    {
        "skill": _skill("api_binding"),
        "api": _read(HRDB_API),
        "page": _read(MAIN, MAIN_VARIABLES),
        "catalog": _read(CATALOG),
        "variable": _edit(MAIN_VARIABLES, _END, _variable(_GET)),
        "widget": _edit(MAIN, _TABLE, _BOUND),
        "validate": Call("validate_project", {}),
    },
    "The table tblVacations now shows svcVacations, which calls getVacation.",
)


def _binding() -> dict[str, Script]:
    case, steps = BINDING, BINDING.steps
    script = case.script
    whole = _project(MAIN_VARIABLES).replace(_END, _variable(_GET))
    other = _project(MAIN_VARIABLES).replace(_END, _variable("VacationController_findVacations"))
    search = _search("tblVacations")
    return {
        **_common(case),
        "resource_not_read": script(drop=["api"]),
        "term_missing": script(drop=["catalog"]),
        "forbidden_tool": script(after={"page": [_ask("Shall the table be paged?")]}),
        "required_tool_missing": script(drop=["validate"]),
        "entry_missing": script(drop=["widget"]),
        "wrong_operation": script(
            before={MAIN_VARIABLES: other},
            swap={
                "variable": _edit(
                    MAIN_VARIABLES,
                    _variable("VacationController_findVacations"),
                    _variable(_GET),
                )
            },
        ),
        "match_wrong": script(
            swap={
                "variable": _edit(
                    MAIN_VARIABLES, _END, _variable("VacationController_findVacations")
                )
            }
        ),
        "other_file_of_same_name": script(
            swap={
                "variable": _edit(f"archive/{MAIN_VARIABLES}", _END, _variable(_GET)),
                "widget": _edit(f"archive/{MAIN}", _TABLE, _BOUND),
            }
        ),
        "failed_search": script(after={"page": [_search("tblVacations(")]}),
        "model_outage": script(after={"page": [ModelOutage("529 overloaded")]}),
        "too_many_calls": script(
            after={"page": [_search(f"Vacation{letter}") for letter in "ABCDEFGH"]}
        ),
        "too_many_retries": script(after={"page": [search] * 4}),
        "edits_before_reading": Script(
            tuple(steps[label] for label in ("skill", "variable", "widget"))
            + tuple(steps[label] for label in ("api", "page", "catalog", "validate")),
            case.answer,
        ),
        "reordered_reads": script(
            drop=["api", "page"], after={"catalog": [steps["page"], steps["api"]]}
        ),
        "variables_written_whole": script(swap={"variable": _write(MAIN_VARIABLES, whole)}),
    }


SECURITY_API = "services/securityService/designtime/securityService_API.json"
MAIN_TOKENS = page_file("Main", "tokens-plan.json")
LOGIN = {
    suffix: page_file("Login", suffix)
    for suffix in ("html", "js", "variables.json", "tokens-plan.json")
}

SCREENSHOT = UseCase(
    Task(
        "screenshot_to_code",
        "screenshot_to_code",
        "Build the page Login as design/login.svg shows it, with the tokens of the page Main. "
        "It signs in by loginUser of securityService.",
    ),
    {
        "skill": _skill("screenshot_to_code"),
        "tokens_skill": _skill("design_tokens"),
        "picture": _read("design/login.svg"),
        "example": (_read(MAIN_TOKENS), _read(MAIN)),
        "api": _read(SECURITY_API),
        "plan": _write(LOGIN["tokens-plan.json"]),
        "html": _write(LOGIN["html"]),
        "script": _write(LOGIN["js"]),
        "variables": _write(LOGIN["variables.json"]),
        "validate": Call("validate_project", {}),
    },
    "The page Login is built and the project is valid.",
)


def _screenshot() -> dict[str, Script]:
    case, steps = SCREENSHOT, SCREENSHOT.steps
    script = case.script
    plan, variables = LOGIN["tokens-plan.json"], LOGIN["variables.json"]
    older = _project(MAIN_TOKENS).replace("brandAccent", "primary")
    renamed = {
        "html": _write(LOGIN["html"], _written(LOGIN["html"]).replace("svcLogin", "svcSignIn")),
        "script": _write(LOGIN["js"], _written(LOGIN["js"]).replace("svcLogin", "svcSignIn")),
        "variables": _write(variables, _written(variables).replace("svcLogin", "svcSignIn")),
    }
    titles = ("Sign in", "Sign in here", "Welcome")
    return {
        **_common(case),
        "resource_not_read": script(swap={"example": _read(MAIN_TOKENS)}),
        "qualifier_missing": script(
            before={MAIN_TOKENS: older},
            swap={"plan": _write(plan, _written(plan).replace("brandAccent", "primary"))},
        ),
        "forbidden_tool": script(after={"validate": [_build("web")]}),
        "required_tool_missing": script(drop=["validate"]),
        "entry_missing": script(drop=["plan"]),
        "wrong_operation": script(before={LOGIN["html"]: '<wm-page name="loginPage"></wm-page>\n'}),
        "match_wrong": script(
            swap={
                "variables": _write(
                    variables, _written(variables).replace("loginUser", "logoutUser")
                )
            }
        ),
        "created_then_deleted": script(after={"variables": [Call("delete_file", {"path": plan})]}),
        "created_then_moved": script(
            after={
                "variables": [
                    Call("move_file", {"source": plan, "destination": page_file("Login", "json")})
                ]
            }
        ),
        "too_many_steps": script(after={"picture": [_search(f"wm-{c}") for c in "bcdefghijklm"]}),
        "too_many_tokens": script(
            after={"picture": [_read(*[HRDB_API, HRDB_MODEL, CATALOG, MAIN] * 12)]}
        ),
        "page_written_again": script(
            after={
                "html": [
                    _write(
                        LOGIN["html"],
                        _written(LOGIN["html"]).replace("Sign in to HR Portal", title),
                    )
                    for title in titles
                ]
            }
        ),
        "recovered_error": script(after={"picture": [_search("wm-form("), _search("wm-form")]}),
        "optional_skill_not_loaded": script(drop=["tokens_skill"]),
        "reordered_reads": script(
            drop=["picture", "api"],
            swap={"example": (_read(MAIN), _read(MAIN_TOKENS))},
            after={"example": [steps["api"], steps["picture"]]},
        ),
        "other_variable_name": script(swap=renamed),
    }


SOURCE = "services/LeaveService/src/com/acme/leaveservice/LeaveService.java"
LEAVE_API = "services/LeaveService/designtime/LeaveService_API.json"

_LAST = "balance.getDaysTaken();\n"
_QUESTION = "Do days that were not taken carry over to the next year?"

JAVA = UseCase(
    Task(
        "javaservice",
        "javaservice_orchestration",
        "Write a Java service LeaveService that tells how many days of leave an employee has "
        "left, from LEAVE_BALANCE of hrdb, and build it.",
        {
            _QUESTION: "Yes, up to five of them, see policy HR-117.",
            "Which package shall it be in?": "com.acme.leaveservice",
        },
    ),
    {
        "skill": _skill("java_service"),
        "model": (_read(HRDB_MODEL), _read(HRDB_API)),
        "search": _search("LeaveBalance"),
        "question": _ask(_QUESTION),
        "source": _write(SOURCE, _written(SOURCE).replace(f"{_LAST}    }}\n", _LAST)),
        "api": _write(LEAVE_API),
        "build": _build("LeaveService"),
        "fix": _edit(SOURCE, f"{_LAST}}}", f"{_LAST}    }}\n}}"),
        "build_again": _build("LeaveService"),
    },
    "LeaveService is written and its build passes.",
)


def _java() -> dict[str, Script]:
    case = JAVA
    script = case.script
    right = _write(SOURCE)
    renamed = _written(SOURCE).replace("getRemainingDays", "remainingDays")
    comment = _edit(SOURCE, "/** Tells how", "/** Says how")
    return {
        **_common(case),
        "resource_not_read": script(swap={"model": _read(HRDB_MODEL)}),
        "term_missing": script(drop=["question"]),
        "forbidden_tool": script(after={"build_again": [Call("validate_project", {})]}),
        "required_tool_missing": script(drop=["search"]),
        "entry_missing": script(drop=["api"]),
        "wrong_operation": script(before={LEAVE_API: "{}\n"}),
        "match_wrong": script(drop=["build", "fix"], swap={"source": _write(SOURCE, renamed)}),
        "last_build_fails": script(swap={"fix": comment}),
        "no_build": script(drop=["build", "fix", "build_again"], swap={"source": right}),
        "change_after_build": script(
            after={"build_again": [_edit(SOURCE, "CARRY_OVER_LIMIT = 5", "CARRY_OVER_LIMIT = 7")]}
        ),
        "too_expensive": script(
            after={"search": [_read(*[HRDB_API, HRDB_MODEL, CATALOG, MAIN] * 12)]}
        ),
        "too_slow": script(swap={"build_again": replace(_build("LeaveService"), seconds=1500)}),
        "asks_twice": script(after={"search": [_ask("Which package shall it be in?")]}),
        "reordered_reads": script(
            drop=["search"],
            swap={"model": _search("LeaveBalance")},
            after={"model": [_read(HRDB_API), _read(HRDB_MODEL)]},
        ),
        "built_at_first_try": script(drop=["build", "fix"], swap={"source": right}),
    }


USE_CASES: tuple[UseCase, ...] = (BINDING, SCREENSHOT, JAVA)
VARIANTS: dict[str, dict[str, Script]] = {
    BINDING.task.name: _binding(),
    SCREENSHOT.task.name: _screenshot(),
    JAVA.task.name: _java(),
}
"""Use case → variant → script."""
