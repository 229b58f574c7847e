"""A starter contract: what is inferred from runs of a scripted agent, and that it keeps its word.

The word: it resolves on a healthy trace that was mapped whole, fails on an empty one, and of any
other trace every check that fails is named in a warning. Expected contracts are written by hand
from what the scripts do.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.contract_files import dump_contract, parse_contract
from benchmark_assets.adapters.formats import snapshot as snapshot_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.harness_files import packaged_profiles
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Verdict
from benchmark_assets.scoring.evaluate import ContractJudge, evaluate
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.infer_contract import Inferred, forecast, infer_contract
from tests.app_builder import export
from tests.app_builder.harness import Call, ModelOutage, Script, Step, play
from tests.app_builder.scripts import LOGIN, MAIN, MAIN_VARIABLES, USE_CASES, VARIANTS
from tests.scoring.build import call, trace
from tests.scoring.values import texts, tool_calls

PROFILES = packaged_profiles()
CASES = {case.task.name: case for case in USE_CASES}
PAGES = "src/main/webapp/pages"


def recorded(name: str, variant: str, script: Script | None = None) -> TraceSnapshot:
    """The trace of a run that really happened."""
    with tempfile.TemporaryDirectory() as folder:
        played = play(
            CASES[name].task, variant, script or VARIANTS[name][variant], Path(folder) / "project"
        )
    data = json.dumps(export.snapshot(played)).encode()
    (loaded,) = snapshot_format.FORMAT.parse(TraceFile("run.json", "run.json", data))
    return loaded


def infer(found: TraceSnapshot, **options: Any) -> Inferred:
    return infer_contract(Evidence(found, PROFILES), **{"workflow": "w", **options})


def loaded(inferred: Inferred) -> Contract:
    """The contract as whoever reads its file gets it."""
    return parse_contract(dump_contract(inferred.contract).encode(), "c.yaml", "c")


def empty(found: TraceSnapshot) -> TraceSnapshot:
    """A trace of the same identity in which nothing was done."""
    return msgspec.structs.replace(found, tool_calls=(), skills=(), files=())


def failing(verdict: Verdict) -> dict[str, list[str]]:
    """Plugin → names of its checks that failed or could not be made."""
    bad = {
        result.plugin: [c.name for c in result.checks if c.outcome in ("failed", "error")]
        for result in verdict.plugins
    }
    return {plugin: names for plugin, names in bad.items() if names}


def keeps_its_word(found: TraceSnapshot) -> Verdict:
    inferred = infer(found)
    contract = loaded(inferred)
    assert contract == Contract.model_validate({"id": "c", **inferred.contract})
    verdict, warnings = forecast(ContractJudge(contract), Evidence(found, PROFILES))
    independent = evaluate(found, contract, PROFILES)
    assert independent.outcome == verdict.outcome
    named = [(plugin, name) for plugin, names in failing(independent).items() for name in names]
    for plugin, name in named:
        assert any(w.startswith(f"will fail: {plugin}: {name}: ") for w in warnings), name
    if verdict.outcome == "unchecked":
        assert warnings == ["nothing would be checked: the contract demands nothing of a trace"]
    else:
        assert len(warnings) == len(named)
        assert (verdict.outcome == "resolved") == (not named)
        assert evaluate(empty(found), contract, PROFILES).outcome == "unresolved"
    return verdict


def variable(name: str, **more: Any) -> dict[str, Any]:
    operation = {"category": "wm.ServiceVariable", "owner": "Page", **more}
    return {
        "resource": f"page.{name}",
        "operation": "CREATE",
        "match": operation,
    }


CLEAN: dict[str, dict[str, Any]] = {
    "binding": {
        "skills": {"required": ["api_binding"]},
        "resources": {
            "api": [{"name": "hrdb"}],
            "page": [
                {
                    "name": "Main",
                    "variable": [{"name": "svcVacations"}],
                    "widget": [{"name": "tblVacations"}],
                }
            ],
        },
        "input_context": [
            {"resource": "api.hrdb"},
            {"resource": "page.Main"},
            {"resource": "page.Main.variable"},
        ],
        "output": [
            variable(
                "Main.variable.svcVacations",
                service="hrdb",
                operation="VacationController_getVacation",
            ),
            {
                "resource": "page.Main.widget.tblVacations",
                "operation": "UPDATE",
                "match": {"dataset": "bind:Variables.svcVacations.dataSet"},
            },
        ],
        "tools": {"required": ["load_skill", "read_files", "edit_file", "validate_project"]},
    },
    "screenshot_to_code": {
        "skills": {"required": ["screenshot_to_code", "design_tokens"]},
        "resources": {
            "api": [{"name": "securityService"}],
            "design_tokens": [{"name": "Main"}, {"name": "Login"}],
            "page": [
                {"name": "Main"},
                {
                    "name": "Login",
                    "variable": [{"name": "svcLogin"}],
                    "javascript": [{"name": "onReady"}, {"name": "frmLoginSubmit"}],
                },
            ],
        },
        "input_context": [
            {"resource": "design_tokens.Main"},
            {"resource": "page.Main"},
            {"resource": "api.securityService"},
        ],
        "output": [
            {
                "resource": "design_tokens.Login",
                "operation": "CREATE",
                "match": {"page": "Login"},
            },
            {"resource": "page.Login", "operation": "CREATE"},
            {"resource": "page.Login.javascript.onReady", "operation": "CREATE"},
            {"resource": "page.Login.javascript.frmLoginSubmit", "operation": "CREATE"},
            variable("Login.variable.svcLogin", service="securityService", operation="loginUser"),
        ],
        "tools": {"required": ["load_skill", "read_files", "write_file", "validate_project"]},
    },
    "javaservice": {
        "skills": {"required": ["java_service"]},
        "resources": {
            "api": [{"name": "hrdb"}, {"name": "LeaveService"}],
            "javaservice": [
                {
                    "name": "LeaveService",
                    "path": "services/LeaveService/src/com/acme/leaveservice/LeaveService.java",
                }
            ],
            "db": [{"name": "hrdb"}],
        },
        "input_context": [{"resource": "db.hrdb"}, {"resource": "api.hrdb"}],
        "output": [
            {"resource": "javaservice.LeaveService", "operation": "CREATE"},
            {
                "resource": "api.LeaveService",
                "operation": "CREATE",
                "match": {"info.title": "LeaveService", "info.x-service-type": "JavaService"},
            },
        ],
        "tools": {
            "required": [
                "load_skill",
                "read_files",
                "search_files",
                "ask_user",
                "write_file",
                "build_project",
                "edit_file",
            ]
        },
    },
}
"""Use case → the sections of its clean run's contract."""

BROKEN: dict[str, dict[str, set[str]]] = {
    "binding": {
        "skill_not_loaded": {"skills_loaded", "tool_calls"},  # no other skill, so no load_skill
        "extra_skill": {"skills_loaded"},
        "skill_failed": {"skills_loaded"},
        "resource_not_read": {"input_context"},
        "required_tool_missing": {"tool_calls"},
        "entry_missing": {"output"},
        "wrong_operation": {"output"},
        "match_wrong": {"output"},
        "unrelated_change": {"output"},
        "other_file_of_same_name": {"output"},
        "error_state": {"trace_health"},
        "failed_search": {"trace_health"},
        "model_outage": {"trace_health"},
    },
    "screenshot_to_code": {
        "skill_not_loaded": {"skills_loaded"},
        "extra_skill": {"skills_loaded"},
        "resource_not_read": {"input_context"},
        "required_tool_missing": {"tool_calls"},
        "entry_missing": {"output"},
        "wrong_operation": {"output"},
        "match_wrong": {"output"},
        "created_then_deleted": {"output"},
        "created_then_moved": {"output"},
        "error_state": {"trace_health"},
    },
    "javaservice": {
        "extra_skill": {"skills_loaded"},
        "resource_not_read": {"input_context"},
        "required_tool_missing": {"tool_calls"},
        "entry_missing": {"output"},
        "wrong_operation": {"output"},
        "last_build_fails": {"trace_health"},
        "change_after_build": {"trace_health"},
    },
}
"""Variants that break what the clean run's contract demands → the plugins that must fail."""

HARMLESS = ("clean", "absolute_paths", "workspace_prefixed_paths", "skill_retry", "unrelated_read")


@pytest.mark.parametrize("name", CASES)
def test_a_clean_run_gives_what_it_did(name: str) -> None:
    found = recorded(name, "clean")
    inferred = infer(found, workflow=found.workflow)
    header = {"workflow": CASES[name].task.workflow, "contract_version": "1"}
    assert inferred.contract == {**header, **CLEAN[name]}
    assert list(inferred.contract) == [*header, *CLEAN[name]]
    assert keeps_its_word(found).outcome == "resolved"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variant", HARMLESS)
def test_harmless_variants_resolve_under_the_clean_runs_contract(name: str, variant: str) -> None:
    contract = loaded(infer(recorded(name, "clean")))
    assert failing(evaluate(recorded(name, variant), contract, PROFILES)) == {}


@pytest.mark.parametrize(
    ("name", "variant"), [(name, variant) for name in BROKEN for variant in BROKEN[name]]
)
def test_variants_fail_what_they_break(name: str, variant: str) -> None:
    contract = loaded(infer(recorded(name, "clean")))
    verdict = evaluate(recorded(name, variant), contract, PROFILES)
    assert verdict.outcome == "unresolved"
    assert failing(verdict).keys() == BROKEN[name][variant]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("variant", ["absolute_paths", "workspace_prefixed_paths"])
@pytest.mark.parametrize("root_known", [True, False], ids=["root known", "root inferred"])
def test_the_form_of_paths_does_not_matter(name: str, variant: str, root_known: bool) -> None:
    found = recorded(name, variant)
    if not root_known:
        found = msgspec.structs.replace(found, metadata={})
    clean = recorded(name, "clean")
    assert infer(found) == infer(clean)
    assert keeps_its_word(found).outcome == "resolved"


@pytest.mark.parametrize(
    ("name", "variant"), [(name, variant) for name, all_ in VARIANTS.items() for variant in all_]
)
def test_the_contract_of_any_variant_keeps_its_word(name: str, variant: str) -> None:
    keeps_its_word(recorded(name, variant))


def test_a_skill_that_failed_and_then_loaded_counts_once() -> None:
    inferred = infer(recorded("binding", "skill_retry"))
    assert inferred.contract["skills"] == {"required": ["api_binding"]}


def test_recovered_errors_are_not_allowed_silently() -> None:
    found = recorded("binding", "failed_search")
    inferred = infer(found)
    assert "trace_health" not in inferred.contract
    _, warnings = forecast(ContractJudge(loaded(inferred)), Evidence(found, PROFILES))
    (tool, health) = warnings
    assert tool.startswith("will fail: tool_calls: required: search_files: ")
    assert "`tools.optional`" in tool
    assert health.startswith("will fail: trace_health: no failed calls: search_files (call 4)")
    assert health.endswith("`trace_health: {recovered_errors: allow}` allows it")
    cured = {
        **inferred.contract,
        "tools": {"required": ["edit_file"], "optional": ["search_files"]},
        "trace_health": {"recovered_errors": "allow"},
    }
    assert evaluate(found, loaded(Inferred(cured, ())), PROFILES).outcome == "resolved"


def test_an_error_state_cannot_be_allowed() -> None:
    found = recorded("binding", "error_state")
    _, warnings = forecast(ContractJudge(loaded(infer(found))), Evidence(found, PROFILES))
    assert [w.split(": ")[2] for w in warnings] == ["ended", "no error state"]
    assert not any("recovered_errors" in w for w in warnings)


# Single rules, on traces of a few calls.


def ok(tool: str, **arguments: Any) -> dict[str, Any]:
    return call(tool, arguments, status="ok", result={"status": "success"})


def read(path: str, content: str = "") -> dict[str, Any]:
    return call("read_file", {"path": path}, status="ok", result={"content": content})


def wrote(path: str, content: str, operation: str = "created") -> dict[str, Any]:
    result = {"status": "success", "operation": operation}
    return call("write_file", {"path": path, "content": content}, status="ok", result=result)


def edit(path: str, old: str, new: str) -> dict[str, Any]:
    return ok("edit_file", path=path, old_string=old, new_string=new)


def of(*calls: dict[str, Any], **fields: Any) -> Inferred:
    found = trace(tool_calls=list(calls), ended_normally=True, **fields)
    keeps_its_word(found)
    return infer(found)


def outputs(inferred: Inferred) -> dict[str, str]:
    return {item["resource"]: item["operation"] for item in inferred.contract.get("output", [])}


def warned(inferred: Inferred, *parts: str) -> bool:
    return any(all(part in warning for part in parts) for warning in inferred.warnings)


MAPPED = {
    "services/pets/designtime/pets_API.json": ("api.pets", "api", {"name": "pets"}),
    "services/pets/designtime/pets_API_REST_SERVICE.json": (
        "api.pets",
        "api",
        {"name": "pets", "path": "services/pets/designtime/pets_API_REST_SERVICE.json"},
    ),
    "services/chat/designtime/chat_API_WEBSOCKET_SERVICE.json": (
        "api.chat",
        "api",
        {"name": "chat", "path": "services/chat/designtime/chat_API_WEBSOCKET_SERVICE.json"},
    ),
    "services/MyJavaService/designtime/MyJavaService_API.json": (
        "javaservice.MyJavaService",
        "javaservice",
        {"name": "MyJavaService"},
    ),
    "services/Leave/src/com/acme/Leave.java": (
        "javaservice.Leave",
        "javaservice",
        {"name": "Leave", "path": "services/Leave/src/com/acme/Leave.java"},
    ),
    "services/hrdb/designtime/hrdb_published_dataModel.json": ("db.hrdb", "db", {"name": "hrdb"}),
    f"{PAGES}/Home/Home.tokens-plan.json": (
        "design_tokens.Home",
        "design_tokens",
        {"name": "Home"},
    ),
    f"{PAGES}/Home/Home.html": ("page.Home", "page", {"name": "Home"}),
    f"{PAGES}/Home/Home.variables.json": ("page.Home.variable", "page", {"name": "Home"}),
    f"{PAGES}/Home/Home.js": ("page.Home.javascript", "page", {"name": "Home"}),
    "services/hr.db/designtime/hr.db_API.json": ('api."hr.db"', "api", {"name": "hr.db"}),
}


@pytest.mark.parametrize("path", MAPPED)
@pytest.mark.parametrize("root", ["", "/ws/shop/", "shop/"])
def test_paths_lead_back_to_resources(path: str, root: str) -> None:
    reference, kind, entry = MAPPED[path]
    inferred = of(read(root + path))
    assert inferred.contract["input_context"] == [{"resource": reference}]
    assert inferred.contract["resources"] == {kind: [entry]}


@pytest.mark.parametrize(
    "path",
    [
        "docs/catalog/widgets.md",
        f"archive2/{PAGES}/Main/Other.html",
        "services/hrdb/designtime/other_API.json",
        "services/ /designtime/ _API.json",
        f"{PAGES}/Main/Main.css",
    ],
)
def test_a_path_off_the_conventions_is_a_warning_and_no_guess(path: str) -> None:
    inferred = of(read(path), wrote("notes.txt", "x"))
    assert inferred.contract.keys() == {"workflow", "contract_version", "tools"}
    assert warned(inferred, f"{path}: read by read_file (call 1)", "`knowledge`")
    assert warned(inferred, "notes.txt: changed by write_file (call 2)", "`output`")
    assert warned(inferred, "output: left out")


def test_a_file_elsewhere_is_not_taken_for_the_projects() -> None:
    home, other = "/ws/p/" + MAIN, "/ws/backup/" + MAIN
    inferred = of(read(home), read(other), metadata={"workspace": "/ws/p"})
    assert inferred.contract["input_context"] == [{"resource": "page.Main"}]
    assert warned(inferred, f"{other}: read by")


def test_an_api_that_may_be_a_java_service_is_said() -> None:
    path = "services/pets/designtime/pets_API.json"
    assert warned(of(read(path)), f"{path} is taken for api pets")
    by_content = of(read(path, '{"info": {"x-service-type": "JavaService"}}'))
    assert warned(by_content, f"{path} is taken for javaservice pets")
    assert by_content.contract["input_context"] == [{"resource": "javaservice.pets"}]


def test_of_two_sources_of_one_service_the_changed_one_is_the_resource() -> None:
    main, helper = "services/A/src/a/A.java", "services/A/src/a/Helper.java"
    inferred = of(read(main), wrote(helper, "class Helper {}"), ok("build", target="A"))
    assert outputs(inferred) == {"javaservice.A": "CREATE"}
    assert inferred.contract["resources"]["javaservice"] == [{"name": "A", "path": helper}]
    assert warned(inferred, f"{main}: read by")


def test_what_a_trace_reads_back_is_no_input() -> None:
    inferred = of(wrote(LOGIN["html"], "<wm-page></wm-page>"), read(LOGIN["html"]))
    assert "input_context" not in inferred.contract
    assert outputs(inferred) == {"page.Login": "CREATE"}


PAGE = '<wm-page name="p"><wm-a name="one" x="1"></wm-a><wm-b name="two"></wm-b></wm-page>'
VARIABLES = '{"a": {"name": "a", "operation": "f"}, "b": {"name": "b", "operation": "g"}}'
SCRIPT = "Page.one = function () {\n  go(1);\n};\n\nfunction two() {\n  go(2);\n}\n"
PARTS: dict[str, tuple[tuple[dict[str, Any], ...], dict[str, str]]] = {
    "tag changed": (
        (read(MAIN, PAGE), edit(MAIN, 'name="one" x="1"', 'name="one" x="2"')),
        {"page.Main.widget.one": "UPDATE"},
    ),
    "tag added and tag removed": (
        (
            read(MAIN, PAGE),
            edit(MAIN, '<wm-b name="two"></wm-b>', '<wm-c name="three"></wm-c>'),
        ),
        {"page.Main.widget.three": "CREATE", "page.Main.widget.two": "DELETE"},
    ),
    "tag in an edit of an unknown page": (
        (edit(MAIN, '<wm-a name="one">', '<wm-a name="one" y="2">'),),
        {"page.Main.widget.one": "UPDATE"},
    ),
    "text between tags": (
        (read(MAIN, PAGE), edit(MAIN, "</wm-page>", "Hello</wm-page>")),
        {"page.Main.widget": "UPDATE"},
    ),
    "page deleted": ((read(MAIN, PAGE), ok("delete_file", path=MAIN)), {"page.Main": "DELETE"}),
    "variable removed": (
        (read(MAIN_VARIABLES, VARIABLES), wrote(MAIN_VARIABLES, '{"a": {"name": "a", "operation": "f"}}', "updated")),
        {"page.Main.variable.b": "DELETE"},
    ),
    "variable in a fragment": (
        (edit(MAIN_VARIABLES, "}\n}", '},\n"c": {"name": "c", "o": {"p": 1}}\n}'),),
        {"page.Main.variable.c": "CREATE"},
    ),
    "member of a variable in a fragment": (
        (edit(MAIN_VARIABLES, '"operation": "f"', '"binding": {"operation": "g"}'),),
        {"page.Main.variable": "UPDATE"},
    ),
    "variables written over unknown ones": (
        (wrote(MAIN_VARIABLES, VARIABLES, "updated"),),
        {"page.Main.variable": "UPDATE"},
    ),
    "variables deleted": (
        (read(MAIN_VARIABLES, VARIABLES), ok("delete_file", path=MAIN_VARIABLES)),
        {"page.Main.variable.a": "DELETE", "page.Main.variable.b": "DELETE"},
    ),
    "functions created": (
        (wrote(LOGIN["js"], SCRIPT),),
        {"page.Login.javascript.one": "CREATE", "page.Login.javascript.two": "CREATE"},
    ),
    "function changed, with its name": (
        (read(LOGIN["js"], SCRIPT), edit(LOGIN["js"], "function two() {\n  go(2)", "function two() {\n  go(3)")),
        {"page.Login.javascript.two": "UPDATE"},
    ),
    # As specified, a change concerns an element whose name occurs in what the call wrote.
    "function changed, without its name": (
        (read(LOGIN["js"], SCRIPT), edit(LOGIN["js"], "go(2)", "go(3)")),
        {"page.Login.javascript": "UPDATE"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", PARTS)
def test_elements_of_a_shared_file_are_told_apart(case: str) -> None:
    calls, expected = PARTS[case]
    inferred = of(*calls)
    assert outputs(inferred) == expected
    untold = [name for name in expected if name.count(".") == 2]
    assert all(warned(inferred, f"{name}: which ", "cannot be told") for name in untold)
    assert evaluate(
        trace(tool_calls=list(calls), ended_normally=True), loaded(inferred), PROFILES
    ).outcome == ("resolved")


def test_created_or_updated_where_the_trace_cannot_tell() -> None:
    inferred = of(ok("write_file", path=LOGIN["html"], content="<wm-page></wm-page>"))
    assert outputs(inferred) == {"page.Login": "CREATE"}
    assert warned(inferred, "page.Login: CREATE may as well have been UPDATE")


def test_what_came_to_nothing_is_not_demanded() -> None:
    inferred = of(wrote(LOGIN["html"], "x"), ok("delete_file", path=LOGIN["html"]))
    assert "output" not in inferred.contract
    assert warned(inferred, "page.Login: was changed, and in the end nothing was done")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id_", "0b9e1f6e-7f0b-4f5e-9d55-0242ac120002"),
        ("created", "2026-11-20T09:30:00Z"),
        ("day", "2026-11-20"),
        ("hash", "d41d8cd98f00b204e9800998ecf8427e"),
        ("project", "WMPRJ2c9180869f6825f5019f6a6b72af0094"),
        ("count", "1842771"),
        ("version", "3.0.1"),
        ("password", "hunter"),
        ("api_key", "abc"),
    ],
)
def test_what_passes_is_not_matched(key: str, value: str) -> None:
    content = json.dumps({"a": {"name": "a", "service": "hrdb", key: value}})
    inferred = of(wrote(MAIN_VARIABLES, content))
    (demand,) = inferred.contract["output"]
    assert demand["match"] == {"service": "hrdb"}
    assert warned(inferred, f"page.Main.variable.a: `match` leaves out {key}")


def test_a_match_is_a_handful_of_short_texts() -> None:
    fields = {f"k{letter}": letter for letter in "abcdefgh"}
    body = {"name": "a", **fields, "operation": "f", "long": "x" * 500, "code": "a\nb", "n": 5}
    body["inner"] = {"service": "s"}
    (demand,) = of(wrote(MAIN_VARIABLES, json.dumps({"a": body}))).contract["output"]
    assert demand["match"] == {"operation": "f", "inner.service": "s", "ka": "a", "kb": "b", "kc": "c"}  # fmt: skip


def test_a_match_that_the_last_call_does_not_show_is_left_out() -> None:
    added = '},\n"c": {"name": "c", "operation": "f"}\n}'
    inferred = of(
        edit(MAIN_VARIABLES, "}\n}", added),
        edit(MAIN_VARIABLES, '"c", "operation": "f"', '"c", "operation": "g"'),
    )
    (demand,) = inferred.contract["output"]
    assert demand == {"resource": "page.Main.variable.c", "operation": "CREATE"}
    assert warned(inferred, "page.Main.variable.c: no `match`")


def test_attributes_are_matched_as_they_are_written() -> None:
    inferred = of(
        read(MAIN, PAGE),
        edit(MAIN, 'name="two"', 'name="two" dataSet="bind:x" alt="a &amp; b" q=\'it\''),
    )
    (demand,) = inferred.contract["output"]
    assert demand["match"] == {"dataSet": "bind:x", "alt": "a &amp; b", "q": "it"}


def test_names_with_wildcards_stand_for_themselves() -> None:
    inferred = of(call("get[a-z]*", {}, status="ok"), call("geta", {}, status="ok"))
    assert inferred.contract["tools"] == {"required": ["get[[]a-z][*]", "geta"]}


def test_tools_that_no_profile_knows() -> None:
    inferred = of(call("get_order", {"id": 1}, status="ok"))
    assert inferred.contract.keys() == {"workflow", "contract_version", "tools"}
    assert warned(inferred, "left out: skills, resources, input_context, output", "get_order")


def test_what_a_snapshot_states_itself_needs_no_profile() -> None:
    inferred = of(
        call("act", {}, status="ok"),
        skills=[{"name": "s", "status": "ok"}],
        files=[{"path": MAIN, "operation": "read", "status": "ok"}],
    )
    assert inferred.contract["skills"] == {"required": ["s"]}
    assert inferred.contract["input_context"] == [{"resource": "page.Main"}]
    assert inferred.warnings == ()


def test_shells_and_unknown_tools_are_warnings() -> None:
    inferred = of(
        call("Bash", {"command": "python make.py"}, status="ok"),
        call("Read", {"file_path": MAIN}, status="ok"),
        call("mystery", {}, status="ok"),
    )
    assert warned(inferred, "Bash (call 1): may have changed files")
    assert warned(inferred, "mystery (call 3): is not known to the harness profile claude-code")


def test_nothing_done_is_nothing_checked() -> None:
    inferred = of()
    assert inferred.contract == {"workflow": "w", "contract_version": "1"}


def test_options_go_into_the_header() -> None:
    inferred = infer(
        recorded("binding", "clean"),
        contract_version="2.0",
        contract_id="a/b",
        name="N",
        harness="app-builder",
    )
    contract = loaded(inferred)
    assert (contract.id, contract.name, contract.harness) == ("a/b", "N", "app-builder")
    assert contract.contract_version == "2.0"
    with pytest.raises(ValueError, match="did you mean 'app-builder'"):
        infer(recorded("binding", "clean"), harness="app-bilder")


def test_page_names_that_begin_alike_are_referenced_apart() -> None:
    paths = [f"{PAGES}/{n}/{n}.variables.json" for n in ("A", "A.variable", "A.variable.x")]
    inferred = of(*(wrote(path, '{"x": {"name": "x"}}') for path in paths))
    assert len(inferred.contract["output"]) == 3


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (MAIN_VARIABLES, "".join(f'"k{i}": {{' for i in range(20_000))),
        (MAIN, "<a name='x' " * 20_000),
        (MAIN, "<a name='x' b='" * 20_000),
        (MAIN, "<!--" * 20_000),
        (MAIN, "<a " + "name=x " * 20_000 + ">"),
        (LOGIN["js"], "Page.x = (" * 20_000),
        (LOGIN["js"], "function x(" * 20_000),
    ],
    ids=lambda value: value[:12],
)
def test_texts_that_never_end_are_read(path: str, text: str) -> None:
    # In time squared, as it once was, this would not end while anybody waits.
    infer(trace(tool_calls=[edit(path, "x", text)]))


def test_a_comment_holds_no_widget() -> None:
    inferred = of(
        read(MAIN, PAGE), edit(MAIN, "</wm-page>", '<!-- <wm-x name="old"> --></wm-page>')
    )
    assert outputs(inferred) == {"page.Main.widget": "UPDATE"}


# Properties.

POOL: list[Step] = [
    step
    for variants in VARIANTS.values()
    for script in variants.values()
    for step in script.steps
    if not isinstance(step, ModelOutage)
]
DELETES: list[Step] = [
    Call("delete_file", {"path": path}) for path in (MAIN, MAIN_VARIABLES, *LOGIN.values())
]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(CASES)),
    st.lists(st.sampled_from(POOL) | st.sampled_from(DELETES), max_size=14),
    st.sampled_from([None, "TimeoutError"]),
)
def test_any_sequence_of_real_calls_keeps_the_word(
    name: str, steps: list[Step], error: str | None
) -> None:
    keeps_its_word(recorded(name, "random", Script(tuple(steps), "Done.", error)))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6) | st.sampled_from(
    ["A", "A.variable", "hr db", "ä.b", '"', "x*", "$f", "true", "1.10", "variable"]
)
contents = st.sampled_from([PAGE, VARIABLES, SCRIPT, "", "{}", "[]", '{"": {"name": ""}}']) | texts
PLACES = (
    "services/{n}/designtime/{n}_API.json",
    "services/{n}/designtime/{n}_API_REST_SERVICE.json",
    "services/{n}/src/{n}.java",
    "services/{n}/designtime/{n}_published_dataModel.json",
    *(f"{PAGES}/{{n}}/{{n}}.{end}" for end in ("html", "js", "variables.json", "tokens-plan.json")),
    "{n}",
)


@st.composite
def file_calls(draw: st.DrawFn) -> dict[str, Any]:
    root = draw(st.sampled_from(["", "", "/ws/p/", "p/"]))
    path = root + draw(st.sampled_from(PLACES)).replace("{n}", draw(names))
    content = draw(contents)
    made = draw(
        st.sampled_from(
            [
                read(path, content),
                wrote(path, content),
                wrote(path, content, "updated"),
                ok("write_file", path=path, content=content),
                edit(path, draw(contents), content),
                ok("delete_file", path=path),
                ok("move_file", source=path, destination=draw(names)),
                ok("load_skill", skill_name=draw(names)),
                ok("mystery", path=path),
            ]
        )
    )
    return {**made, "status": draw(st.sampled_from(["ok", "ok", "error", None]))}


@settings(max_examples=200, deadline=None)
@given(
    st.lists(file_calls(), max_size=8),
    st.sampled_from([{}, {"workspace": "/ws/p"}]),
    st.sampled_from([True, False, None]),
)
def test_any_names_and_contents_keep_the_word(
    calls: list[dict[str, Any]], metadata: dict[str, Any], ended: bool | None
) -> None:
    keeps_its_word(trace(tool_calls=calls, metadata=metadata, ended_normally=ended))


@settings(max_examples=100, deadline=None)
@given(tool_calls(["read_files", "write_file", "edit_file", "load_skill", "Bash", "x", "*"]))
def test_any_arguments_keep_the_word(calls: list[dict[str, Any]]) -> None:
    keeps_its_word(trace(tool_calls=calls))
