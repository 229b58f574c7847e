"""ADK eval sets among fixtures: published files as they are, and every way to be wrong."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from benchmark_assets.adapters.benchmarks.adk import fixtures_of
from benchmark_assets.adapters.contract_files import find_contract, load_contracts
from benchmark_assets.cli.golden import command
from benchmark_assets.model.problem import InputError
from benchmark_assets.pipeline.golden import read_fixtures, run_suite
from benchmark_assets.pipeline.replay import read_cases
from tests.golden.conformance import ADK_GOLDEN, HELM_RUN, HELM_SET, Expected, mutated
from tests.real_data import REAL, needs_real_data


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "traces").mkdir()
    return tmp_path


def golden(*args: str) -> Result:
    return CliRunner().invoke(command, args, catch_exceptions=False)


def write(path: Path, data: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")


def own_path(case: Expected) -> dict[str, Any]:
    """A recording of just what a case says, which was written down by hand."""
    return {
        "tools": [{"name": name, "arguments": arguments} for name, arguments in case.calls],
        "asked_clarification": False,
        "questions": [],
        "final": None if case.answer is None else {"answer": case.answer},
    }


# Published files.


@needs_real_data
def test_published_files_in_one_folder_pass_on_their_own_paths(folder: Path) -> None:
    for name, cases in ADK_GOLDEN.items():
        shutil.copy(REAL / "adk-golden" / name, folder / "fixtures" / name)
        for case in cases:
            write(folder / "traces" / f"{case.fixture_id}.json", own_path(case))
    done = golden("--json")
    found = {case["id"]: case["result"] for case in json.loads(done.stdout)}
    expected = [case.fixture_id for cases in ADK_GOLDEN.values() for case in cases]
    assert found == dict.fromkeys(expected, "PASS")
    assert done.exit_code == 0


@needs_real_data
@pytest.mark.parametrize("name", ADK_GOLDEN)
def test_a_published_file_fails_on_every_mutation_of_its_path(name: str, folder: Path) -> None:
    shutil.copy(REAL / "adk-golden" / name, folder / "fixtures" / name)
    (case,) = ADK_GOLDEN[name]
    (fixture,) = fixtures_of(json.loads((REAL / "adk-golden" / name).read_bytes()), name)
    wrong = list(mutated(fixture, own_path(case)))
    assert len(wrong) >= (12 if any(arguments for _, arguments in case.calls) else 3)
    for number, (_, trace) in enumerate(wrong, 1):
        write(folder / "traces" / case.fixture_id / f"{number}.json", trace)
    suite = run_suite(read_fixtures(folder / "fixtures"), folder / "traces")
    assert [c.trial for c in suite.cases] == [*range(1, len(wrong) + 1)]
    passed = [wrong[i][0] for i, c in enumerate(suite.cases) if c.result != "FAIL"]
    assert passed == []


@needs_real_data
def test_a_recorded_pair_passes_as_it_is_published(folder: Path) -> None:
    shutil.copy(REAL / HELM_SET, folder / "fixtures")
    shutil.copy(REAL / HELM_RUN, folder / "traces" / "helm_list_releases.json")
    done = golden()
    assert done.stdout.startswith("PASS helm_list_releases ")
    assert done.exit_code == 0
    # The same run is no run of another set's case.
    shutil.copy(REAL / "adk-golden" / "home_automation_agent__simple_test2.test.json", "fixtures")
    shutil.copy(REAL / HELM_RUN, folder / "traces" / "home_automation_agent__simple_test2.json")
    done = golden()
    assert "FAIL home_automation_agent__simple_test2 " in done.stdout
    assert done.exit_code == 1


# Among fixtures and contracts.


def turn(user: str = "Do it.", tool: str = "look", **args: Any) -> dict[str, Any]:
    return {
        "user_content": {"parts": [{"text": user}]},
        "final_response": {"parts": [{"text": "Done."}]},
        "intermediate_data": {"tool_uses": [{"name": tool, "args": args}]},
    }


def eval_set(**cases: Any) -> dict[str, Any]:
    """An eval set of cases: id → conversation, or the case itself."""
    return {
        "eval_set_id": "s",
        "eval_cases": [
            {"eval_id": key, **(case if isinstance(case, dict) else {"conversation": case})}
            for key, case in cases.items()
        ],
    }


LOOK = {"name": "look", "arguments": {}}
CALLED = {"tools": [LOOK], "final": {"answer": "Done."}}
PLAIN = {"id": "plain", "input": {"user": "Hi."}, "expect": {"tool_names": ["look"]}}


@pytest.mark.parametrize("name", ["s.evalset.json", "s.test.json", "cases.json", "deep/er/s.json"])
def test_each_case_is_a_fixture_beside_others(folder: Path, name: str) -> None:
    write(folder / "fixtures" / name, eval_set(a=[turn()], b=[turn("Else."), turn("More.")]))
    write(folder / "fixtures" / "plain.json", PLAIN)
    for key in ("a", "plain"):
        write(folder / "traces" / f"{key}.json", CALLED)
    write(folder / "traces" / "b.json", {**CALLED, "tools": [LOOK, LOOK]})
    done = golden("--accept")
    assert [line.split()[:2] for line in done.stdout.splitlines()[:3]] == [
        *(["PASS", "a"], ["PASS", "b"], ["PASS", "plain"])
    ]
    # The same files are contracts, and are replayed.
    loaded = load_contracts([folder / "fixtures"])
    assert [file.contract.id for file in loaded.contracts] == ["a", "b", "plain"]
    assert loaded.problems == ()
    replayed = {case.fixture: case.user for case in read_cases(folder / "fixtures").cases}
    assert replayed == {"a": "Do it.", "b": "Else.", "plain": "Hi."}
    # A case that vanishes from the file is missed.
    write(folder / "fixtures" / name, eval_set(a=[turn()]))
    done = golden()
    assert "\nMISSING b\n" in f"\n{done.stdout}"
    assert done.exit_code == 1


def test_a_case_is_found_by_its_id_and_by_a_file_of_one(folder: Path) -> None:
    fixtures = folder / "fixtures"
    write(fixtures / "one.test.json", eval_set(a=[turn()]))
    write(fixtures / "two.evalset.json", eval_set(b=[turn()], c=[turn()]))
    assert find_contract(str(fixtures / "one.test.json"), []).contract.id == "a"
    assert find_contract("c", [fixtures]).contract.id == "c"
    with pytest.raises(InputError, match="holds 2 contracts; name one by its id: b, c"):
        find_contract(str(fixtures / "two.evalset.json"), [])


def test_a_golden_trace_may_lie_beside_an_eval_set(folder: Path) -> None:
    write(folder / "fixtures" / "s.evalset.json", eval_set(a=[turn()], b=[turn()]))
    write(folder / "fixtures" / "b.golden.json", {**CALLED, "tools": []})
    for key in ("a", "b"):
        write(folder / "traces" / f"{key}.json", CALLED)
    done = golden()
    assert "FAIL b golden trace\n" in done.stdout
    (folder / "fixtures" / "b.golden.json").unlink()
    assert golden("--bless", "--yes").exit_code == 0
    assert {p.name for p in (folder / "fixtures").glob("*.golden.json")} == {
        *("a.golden.json", "b.golden.json")
    }
    assert golden().exit_code == 0


def test_settings_of_metrics_beside_eval_sets_are_no_fixture(folder: Path) -> None:
    settings = folder / "fixtures" / "test_config.json"
    write(settings, {"criteria": {"tool_trajectory_avg_score": 1.0}})
    done = golden()
    assert "MISSING fixtures\n  - fixtures: holds no fixture" in done.stdout
    assert done.exit_code == 1
    write(folder / "fixtures" / "a.test.json", eval_set(a=[turn()]))
    write(folder / "traces" / "a.json", CALLED)
    assert golden().exit_code == 0
    assert read_cases(folder / "fixtures").problems == ()
    # What has a fixture's keys is one, whatever it is called.
    write(settings, PLAIN)
    assert "MISSING trace for plain" in golden().stdout


# What is wrong.


def lines(data: Any) -> str:
    return json.dumps(data, indent=1)


def line_of(text: str, part: str) -> int:
    (line,) = [n for n, line in enumerate(text.splitlines(), 1) if part in line]
    return line


BAD = {"conversation": [{"final_response": None}]}
SIMULATED = {"conversation_scenario": {"starting_prompt": "Hi."}}


def test_a_bad_case_is_said_with_its_line_and_costs_no_other(folder: Path) -> None:
    text = lines(eval_set(a=[turn()], bad=BAD, simulated=SIMULATED))
    write(folder / "fixtures" / "s.evalset.json", text)
    write(folder / "traces" / "a.json", CALLED)
    done = golden()
    bad = line_of(text, '"final_response": null') - 1  # The object it stands in.
    simulated = line_of(text, '"conversation_scenario"')
    for said in (
        f"fixtures/s.evalset.json:{bad}: eval_cases[1].conversation[0].user_content: expected what "
        'the user said; write {"parts": [{"text": "…"}]}',
        f"s.evalset.json:{simulated}: eval_cases[2].conversation_scenario: a simulated user leads "
        "to no fixed path; record a run of it and write a fixture",
    ):
        assert said in done.stdout
    assert "FAIL fixtures/s.evalset.json\n" in done.stdout
    assert "PASS a " in done.stdout
    assert done.exit_code == 1
    loaded = load_contracts([folder / "fixtures"])
    assert [file.contract.id for file in loaded.contracts] == ["a"]
    assert len(loaded.problems) == 2
    replayed = read_cases(folder / "fixtures")
    assert [case.fixture for case in replayed.cases] == ["a"]
    assert len(replayed.problems) == 2


PIECES: list[tuple[Any, str]] = [
    ({"eval_set_id": "s"}, "1: is no ADK eval set; expected an object with eval_cases"),
    ({"eval_cases": {}}, "1: is no ADK eval set"),
    ([], "1: is no ADK eval set"),
    ([1], "1: is no ADK eval set"),
    ({"eval_cases": []}, "2: eval_cases: is empty; add a case, or remove the file"),
    ({"eval_cases": [5]}, "3: eval_cases[0].conversation: expected a list of turns; write one"),
    (
        {"evalCases": [{"evalId": "a", "conversation": [{"userContent": {}}]}]},
        "7: eval_cases[0].conversation[0].user_content: expected what the user said",
    ),
    (
        [{"query": "x", "expected_tool_use": {"tool_name": "y"}}],
        '4: [0].expected_tool_use: expected a list of tool calls; write [{"tool_name": "…"',
    ),
    (
        [{"name": "a", "data": [{"query": "x", "expected_tool_use": [{"tool_input": {}}]}]}],
        "8: [0].data[0].expected_tool_use[0].tool_name: expected the name of a tool",
    ),
    ([{"name": "a", "data": []}], "4: [0].data: expected a list of turns"),
    (
        [{"query": "x", "expected_tool_use": [{"tool_name": "y", "tool_input": 5}]}],
        "7: [0].expected_tool_use[0].tool_input: expected an object; write arguments by name",
    ),
]


@pytest.mark.parametrize(("data", "said"), PIECES)
def test_what_is_wrong_has_file_line_key_and_cure(folder: Path, data: Any, said: str) -> None:
    write(folder / "fixtures" / "s.test.json", lines(data))
    (problem,) = load_contracts([folder / "fixtures"]).problems
    assert str(problem).startswith(f"fixtures/s.test.json:{said}")
    assert problem.cure
    assert golden().exit_code == 1


def test_a_case_that_makes_no_fixture_is_said_where_it_begins(folder: Path) -> None:
    text = lines(eval_set(ok=[turn()], a=[turn(" ")]))
    write(folder / "fixtures" / "s.evalset.json", text)
    (problem,) = load_contracts([folder / "fixtures"]).problems
    begins = line_of(text, '"eval_id": "a"') - 1
    assert str(problem) == (
        f"fixtures/s.evalset.json:{begins}: eval_cases[1]: makes no fixture: input.user: "
        "holds only white space; write a text, or remove it"
    )


def test_two_cases_of_one_name_are_refused_wherever_they_are(folder: Path) -> None:
    write(folder / "fixtures" / "a.test.json", eval_set(a=[turn()]))
    write(folder / "fixtures" / "b.test.json", eval_set(a=[turn("Else.")]))
    done = golden()
    assert "b.test.json:1: id: 'a' is also the id of fixtures/a.test.json" in done.stdout
    cases = [{"eval_id": name, "conversation": [turn()]} for name in ("x/y", "x y", "z")]
    write(folder / "fixtures" / "b.test.json", {"eval_cases": cases})
    done = golden()
    assert "2 cases would be called x-y; rename all but one" in done.stdout
    assert "MISSING trace for z" in done.stdout
