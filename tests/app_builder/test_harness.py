"""The agent's tools act, its runs are what the table says, and its exports hold all of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from benchmark_assets.adapters.formats import snapshot as snapshot_format
from benchmark_assets.adapters.formats.base import TraceFile
from tests.app_builder import export
from tests.app_builder.facts import SOURCE, before, changes, failing
from tests.app_builder.harness import DATA, Call, Run, Script, ToolError, Tools, play
from tests.app_builder.project import NAME, WORKSPACE, tree
from tests.app_builder.scripts import MAIN, MAIN_VARIABLES, USE_CASES, VARIANTS

TASKS = {case.task.name: case.task for case in USE_CASES}
EXPECTED: dict[str, dict[str, Any]] = yaml.safe_load((DATA / "expected.yaml").read_text("utf-8"))
EVERY = [(name, variant) for name, variants in VARIANTS.items() for variant in variants]


def run_of(name: str, variant: str, folder: Path, seed: int = 1) -> Run:
    return play(TASKS[name], variant, VARIANTS[name][variant], folder / "project", seed)


def contract_of(name: str) -> dict[str, Any]:
    contract: dict[str, Any] = yaml.safe_load(
        (DATA / "contracts" / f"{name}.yaml").read_text("utf-8")
    )
    return contract


def test_the_table_lists_every_variant() -> None:
    listed = [(name, variant) for name, variants in EXPECTED.items() for variant in variants]
    assert sorted(listed) == sorted(EVERY)


@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_a_variant_fails_for_its_own_reason_only(name: str, variant: str, tmp_path: Path) -> None:
    run = run_of(name, variant, tmp_path)
    expected = EXPECTED[name][variant]
    assert failing(run, contract_of(name)) == (set() if expected == "passes" else set(expected))
    assert tree(tmp_path / "project") == run.files


@pytest.mark.parametrize("name", EXPECTED)
def test_each_plugin_fails_somewhere(name: str) -> None:
    failed = {plugin for row in EXPECTED[name].values() if row != "passes" for plugin in row}
    assert failed == {
        "skills_loaded",
        "input_context",
        "tool_calls",
        "output",
        "trace_health",
        "budget",
        "trajectory",
        "final_output",
    }


def test_binding_leaves_what_it_says(tmp_path: Path) -> None:
    run = run_of("binding", "clean", tmp_path)
    found = before(VARIANTS["binding"]["clean"])
    assert changes(found, run.files) == {MAIN: "UPDATE", MAIN_VARIABLES: "UPDATE"}
    variables = json.loads(run.files[MAIN_VARIABLES])
    assert list(variables) == ["svcDepartments", "svcVacations"]
    assert variables["svcVacations"]["operation"] == "VacationController_getVacation"
    assert variables["svcDepartments"] == json.loads(found[MAIN_VARIABLES])["svcDepartments"]
    assert '"tblVacations" title="Vacations" dataset="bind:Variables.svcVac' in run.files[MAIN]


def test_screenshot_and_java_leave_the_files_that_are_kept(tmp_path: Path) -> None:
    for name, part in (("screenshot_to_code", "src"), ("javaservice", "services")):
        run = run_of(name, "clean", tmp_path / name)
        written = {p: text for p, text in tree(DATA / "written").items() if p.startswith(part)}
        assert written
        assert run.files == {**before(VARIANTS[name]["clean"]), **written}


def test_builds_look_at_the_source(tmp_path: Path) -> None:
    run = run_of("javaservice", "clean", tmp_path)
    builds = [record.result for record in run.calls if record.call.tool == "build_project"]
    assert builds == [
        f"Building LeaveService\n[ERROR] {SOURCE}: 4 '{{' and 3 '}}': reached end of file while "
        "parsing\nBUILD FAILURE",
        "Building LeaveService\nBUILD SUCCESS",
    ]


@pytest.mark.parametrize(
    ("path", "content", "target", "problem"),
    [
        ("services/hrdb/designtime/hrdb_API.json", "{", "hrdb", "is not JSON"),
        ("services/hrdb/src/com/acme/hrdb/Dao.java", "class Other {}", "all", "no class Dao"),
        ("services/hrdb/src/com/acme/hrdb/Dao.java", "package com.acme; class Dao {}", "hrdb", "not com.acme.hrdb"),
        ("services/hrdb/src/com/acme/hrdb/Dao.java", "import com.acme.crm.Lead;", "hrdb", "com.acme.crm does not exist"),
        (MAIN_VARIABLES, '{"v": {"service": "crm"}}', "web", "v: there is no service crm"),
    ],
)  # fmt: skip
def test_a_build_finds(path: str, content: str, target: str, problem: str, tmp_path: Path) -> None:
    script = Script((Call("build_project", {"target": target}),), None, before={path: content})
    result = play(TASKS["binding"], "build", script, tmp_path / "project").calls[0].result or ""
    assert f"[ERROR] {path}: " in result
    assert problem in result
    assert result.endswith("BUILD FAILURE")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("<wm-page><wm-text></wm-page>", "</wm-page> closes what is not open"),
        ("<wm-page>", "<wm-page> is never closed"),
        ('<a dataset="bind:Variables.gone.dataSet"></a>', "the page has no such variable"),
        ('<a on-click="gone()"></a>', "no function gone"),
    ],
)
def test_validation_finds(content: str, problem: str, tmp_path: Path) -> None:
    script = Script((Call("validate_project", {}),), None, before={MAIN: content})
    result = play(TASKS["binding"], "validate", script, tmp_path / "project").calls[0].result or ""
    assert json.loads(result)["status"] == "invalid"
    assert problem in result


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    (tmp_path / "a.md").write_text("one two one")
    (tmp_path / "b.md").write_text("b")
    return Tools(tmp_path, {"Why?": "So."})


def test_tools_act(tools: Tools, tmp_path: Path) -> None:
    def call(tool: str, **arguments: Any) -> Any:
        return json.loads(tools.call(Call(tool, arguments)))

    assert call("read_files", paths=["a.md", f"{NAME}/b.md", f"{WORKSPACE}/b.md"])["files"] == [
        {"path": "a.md", "content": "one two one"},
        {"path": f"{NAME}/b.md", "content": "b"},
        {"path": f"{WORKSPACE}/b.md", "content": "b"},
    ]
    assert call("search_files", pattern="t.o")["matches"] == [
        {"path": "a.md", "line": 1, "text": "one two one"}
    ]
    assert call("ask_user", question="Why?") == {"answer": "So."}
    assert call("load_skill", skill_name="api_binding")["status"] == "success"
    assert call("load_skill", skill_name="api-binding")["status"] == "error"
    call("edit_file", path="a.md", old_string="two", new_string="2")
    assert call("write_file", path="c/d.md", content="d")["operation"] == "created"
    assert call("write_file", path="c/d.md", content="e")["operation"] == "updated"
    call("move_file", source="c/d.md", destination="e.md")
    call("delete_file", path="b.md")
    assert tree(tmp_path) == {"a.md": "one 2 one", "e.md": "e"}


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("read_files", {"paths": ["gone.md"]}, "File not found: gone.md"),
        ("edit_file", {"path": "a.md", "old_string": "one", "new_string": ""}, "occurs 2 times"),
        ("edit_file", {"path": "a.md", "old_string": "six", "new_string": ""}, "occurs 0 times"),
        ("move_file", {"source": "a.md", "destination": "b.md"}, "File exists: b.md"),
        ("delete_file", {"path": "../a.md"}, "is no file of the project"),
        ("write_file", {"path": "/etc/a", "content": ""}, "not in the subpath"),
        ("search_files", {"pattern": "("}, "Invalid pattern"),
    ],
)
def test_a_call_that_fails_changes_nothing(
    tool: str, arguments: dict[str, Any], message: str, tools: Tools, tmp_path: Path
) -> None:
    found = tree(tmp_path)
    with pytest.raises(ToolError, match=message):
        tools.call(Call(tool, arguments))
    assert tree(tmp_path) == found


@pytest.mark.parametrize("name", EXPECTED)
def test_a_run_has_the_same_bytes_everywhere(name: str, tmp_path: Path) -> None:
    for write in (export.snapshot, export.langfuse):
        texts = [
            json.dumps(write(run_of(name, "clean", tmp_path / f"{write.__name__}{n}", seed)))
            for n, seed in enumerate((1, 1, 2))
        ]
        assert texts[0] == texts[1] != texts[2]
        assert str(tmp_path) not in texts[0]


@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_the_snapshot_loads_with_everything(name: str, variant: str, tmp_path: Path) -> None:
    run = run_of(name, variant, tmp_path)
    data = json.dumps(export.snapshot(run)).encode()
    (loaded,) = snapshot_format.FORMAT.parse(TraceFile("run.json", "run.json", data))
    assert loaded.problem is None
    assert [call.arguments for call in loaded.tool_calls] == [r.call.arguments for r in run.calls]
    assert [(call.name, call.result, call.error) for call in loaded.tool_calls] == [
        (record.call.tool, record.result, record.error) for record in run.calls
    ]
    assert len(loaded.generations) == len(run.turns)
    assert loaded.tokens.total == sum(sum(turn.usage.values()) for turn in run.turns)
    assert loaded.cost_usd == pytest.approx(sum(g.cost_usd or 0 for g in loaded.generations))
    assert (loaded.started_at, loaded.ended_at) == (run.started_at, run.ended_at)
    assert (loaded.final_answer, loaded.error) == (run.answer, run.error)
    asked = [r.call.arguments["question"] for r in run.calls if r.call.tool == "ask_user"]
    assert [message.text for message in loaded.questions] == asked
    assert len(loaded.error_spans) == sum(turn.error is not None for turn in run.turns)


@pytest.mark.parametrize(("name", "variant"), EVERY)
def test_the_download_holds_every_row(name: str, variant: str, tmp_path: Path) -> None:
    run = run_of(name, variant, tmp_path)
    download = export.langfuse(run)
    rows = {row["id"]: row for row in download["observations"]}
    assert len(rows) == 1 + len(run.turns) + 2 * len(run.calls) == len(download["observations"])
    assert [row["parentObservationId"] in rows for row in rows.values()].count(False) == 1
    by_id = [row for row in rows.values() if row["type"] == "TOOL"]
    saved = {call["span_id"]: call for call in export.snapshot(run)["tool_calls"]}
    assert {row["id"] for row in by_id} == saved.keys()
    for row in by_id:
        call = saved[row["id"]]
        assert (row["name"], json.loads(row["input"])) == (call["name"], call["arguments"])
        assert row["statusMessage"] == call.get("error")
        assert row["level"] == rows[row["parentObservationId"]]["level"]
        if "result" in call:
            assert json.loads(row["output"])["content"] == call["result"]
    usage = [row["usageDetails"].get("total", 0) for row in rows.values()]
    assert sum(usage) == sum(sum(turn.usage.values()) for turn in run.turns)
