"""`bench verify`: the verdict over one trace, its report, and exit codes that do not lie."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.cli import one_trace
from benchmark_assets.cli.main import ALIASES, COMMANDS, main
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Check
from benchmark_assets.pipeline import rules
from benchmark_assets.scoring.plugins import PLUGINS
from benchmark_assets.scoring.plugins.base import Judge, Plugin
from tests.bench import Result, bench, bench_process

ROOT = Path(__file__).resolve().parents[2]
TAU2 = ROOT / "tests" / "data" / "traces" / "tau2" / "two_simulations.json"

RUN: dict[str, Any] = {
    "trace_id": "t1",
    "name": "refunds",
    "model": "gpt-5.4",
    "task": "order-1842",
    "started_at": "2026-11-20T09:30:00Z",
    "tool_calls": [
        {"name": "get_order", "arguments": {"id": "1842"}, "status": "ok", "span_id": "s1"},
        {"name": "pay", "arguments": {"amount": 16}, "status": "ok", "span_id": "s2"},
    ],
    "final_answer": "Done.",
    "ended": "agent_stop",
    "ended_normally": True,
}
CONTRACT = """\
workflow: refunds
contract_version: "3"
tools:
  required: [get_order, ask_user]
  forbidden: [charge_card]
trajectory:
  calls:
    - {tool: pay, args: {amount: 16}}
"""
PASSING = CONTRACT.replace(", ask_user", "")
UNCHECKED = 'workflow: refunds\ncontract_version: "3"\ntools: {optional: [pay]}\n'

# What the contract says of the run, by hand.
TOOL_CALLS = {
    "name": "tool_calls",
    "passed": False,
    "score": 2 / 3,
    "checks": [
        {
            "name": "required: get_order",
            "outcome": "passed",
            "expected": "called successfully",
            "observed": None,
            "reason": None,
            "where": {"span_id": "s1", "call": 0},
        },
        {
            "name": "required: ask_user",
            "outcome": "failed",
            "expected": "called successfully",
            "observed": "never called",
            "reason": "required tool ask_user was never called",
            "where": None,
        },
        {
            "name": "forbidden: charge_card",
            "outcome": "passed",
            "expected": None,
            "observed": None,
            "reason": None,
            "where": None,
        },
        {
            "name": "undeclared tools",
            "outcome": "info",
            "expected": None,
            "observed": "pay × 1",
            "reason": None,
            "where": None,
        },
    ],
}
TRAJECTORY = {
    "name": "trajectory",
    "passed": True,
    "score": 1.0,
    "checks": [
        {
            "name": "call: pay",
            "outcome": "passed",
            "expected": None,
            "observed": None,
            "reason": None,
            "where": {"span_id": "s2", "call": 1},
        }
    ],
}


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """A folder with a run and a contract that it fails."""
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    (tmp_path / "refund.yaml").write_text(CONTRACT)
    return tmp_path


def run(here: Path, *args: object, **env: str) -> Result:
    return bench(
        "verify", "--contract", "refund.yaml", "--snapshot", "run.json", *args, cwd=here, env=env
    )


def report(result: Result) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.out)
    return found


def words(result: Result) -> str:
    """All that was printed, as one line: where it breaks does not matter."""
    return " ".join(f"{result.out} {result.err}".split())


def trace(here: Path, **fields: Any) -> None:
    kept = {key: value for key, value in {**RUN, **fields}.items() if value is not None}
    (here / "run.json").write_text(json.dumps(kept))


# The report.


def test_the_report_is_what_was_specified(here: Path) -> None:
    result = run(here, "--json", "--plugins", "tool_calls,trajectory")
    found = report(result)
    assert list(found)[:3] == ["passed", "score", "plugins"]
    assert found["passed"] is False
    # The mean of the two plugins' scores.
    assert found["score"] == pytest.approx((2 / 3 + 1) / 2)
    assert found["plugins"] == [TOOL_CALLS, TRAJECTORY]
    for plugin in found["plugins"]:
        assert list(plugin) == ["name", "passed", "score", "checks"]
        for check in plugin["checks"]:
            keys = ["name", "outcome", "expected", "observed", "reason", "where"]
            assert list(check) == keys
    assert result.code == 1


def test_what_was_judged_can_be_found_again(here: Path) -> None:
    found = report(run(here, "--json"))
    digest = hashlib.sha256((here / "run.json").read_bytes()).hexdigest()
    assert found["snapshot"] == {"file": "run.json", "sha256": digest}
    assert found["origin"] == {
        "file": "run.json",
        "sha256": digest,
        "record": None,
        "format": "snapshot",
    }
    assert (found["trace_id"], found["model"], found["task"]) == ("t1", "gpt-5.4", "order-1842")
    assert (found["contract"], found["contract_version"]) == ("refund", "3")
    assert found["contract_file"] == "refund.yaml"
    assert found["reason"] == "tool_calls: required tool ask_user was never called"
    assert found["selected_plugins"] is None


def test_a_normalised_trace_leads_to_the_bytes_it_was_recorded_in(here: Path) -> None:
    assert bench("normalize", TAU2, "--out", "all.jsonl", cwd=here).code == 0
    first = json.loads((here / "all.jsonl").read_text().splitlines()[0])["trace_id"]
    arguments = ("--snapshot", "all.jsonl", "--trace-id", first)
    found = report(run(here, "--json", *arguments))
    assert found["origin"]["sha256"] == hashlib.sha256(TAU2.read_bytes()).hexdigest()
    assert found["origin"]["record"] == "simulations[0]"
    copy = hashlib.sha256((here / "all.jsonl").read_bytes()).hexdigest()
    assert found["snapshot"] == {"file": "all.jsonl", "sha256": copy}
    printed = words(run(here, *arguments))
    assert f"File all.jsonl, SHA-256 {copy[:12]}" in printed
    assert "Origin two_simulations.json, simulations[0] (tau2), SHA-256" in printed


def test_out_holds_what_json_prints(here: Path) -> None:
    printed = run(here, "--json", "--out", "new/report.json")
    assert (here / "new" / "report.json").read_text() == printed.out
    assert run(here, "--out", "other.json").code == 1
    assert (here / "other.json").read_text() == printed.out


def test_every_check_is_listed_on_a_clean_run_too(here: Path) -> None:
    (here / "refund.yaml").write_text(PASSING)
    result = run(here)
    assert result.code == 0
    for name in ("required: get_order", "forbidden: charge_card", "call: pay", "no error state"):
        assert f"  passed   {name}" in result.out
    assert "  info     undeclared tools" in result.out
    assert result.out.splitlines()[-1].startswith("Passed. ")
    assert "\x1b" not in result.out


def test_the_breakdown_says_expected_observed_and_why(here: Path) -> None:
    result = run(here)
    assert "Contract  refund@3, refund.yaml\n" in result.out
    assert "Model     gpt-5.4\n" in result.out
    assert "tool_calls  FAILED  66.7%  2 passed, 1 failed, 1 info\n" in result.out
    assert (
        "  FAILED   required: ask_user\n"
        "           expected  called successfully\n"
        "           observed  never called\n"
        "           reason    required tool ask_user was never called\n"
    ) in result.out
    assert "  passed   required: get_order  call 1\n" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


# Exit codes.


@pytest.mark.parametrize(
    ("contract", "fields", "code", "passed", "last"),
    [
        (PASSING, {}, 0, True, "Passed."),
        (CONTRACT, {}, 1, False, "FAILED."),
        (UNCHECKED, {}, 2, None, "Nothing was checked."),
        (PASSING, {"problem": "was cut off"}, 2, None, "Could not be evaluated."),
        # What was demanded cannot be told from this trace.
        (PASSING + "ends_with: [stop]\n", {"ended": None}, 2, None, "Could not be evaluated."),
    ],
)
def test_exit_codes(
    here: Path,
    contract: str,
    fields: dict[str, Any],
    code: int,
    passed: bool | None,
    last: str,
) -> None:
    (here / "refund.yaml").write_text(contract)
    trace(here, **fields)
    result = run(here, "--out", "report.json")
    assert result.code == code
    assert last in result.out
    assert json.loads((here / "report.json").read_text())["passed"] is passed
    arguments = ("verify", "--contract", "refund.yaml", "--snapshot", "run.json")
    assert bench_process(*arguments, cwd=here).code == code


def test_a_reader_that_has_seen_enough_does_not_change_the_verdict(here: Path) -> None:
    tools = ", ".join(f"tool_{number}" for number in range(5000))
    (here / "refund.yaml").write_text(CONTRACT.replace("ask_user", tools))
    command = f"{sys.executable} -m benchmark_assets.cli.main verify --contract refund.yaml"
    script = f"set -o pipefail; {command} --snapshot run.json | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=here, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["Trace     t1", "1"]
    assert done.stderr == ""


SETUP = [
    (["--snapshot", "none.json"], "none.json: cannot be opened: No such file"),
    (["--snapshot", "."], "cannot be opened: Is a directory"),
    (["--snapshot", "refund.yaml"], "refund.yaml"),
    (["--contract", "none.yaml"], "none.yaml: does not exist; name a contract file"),
    (["--contract", "run.json"], "run.json: is no contract file"),
    (["--contract", "."], ".: is a folder; name one contract file in it"),
    (["--contract", "refnd"], "there is no contract file and no contract 'refnd'"),
    (["--contract", "bad.yaml"], "bad.yaml:3: tols: is not a known key; did you mean 'tools'?"),
    (["--config", "none.yaml"], "none.yaml: the settings file does not exist"),
    (["--config", "broken.yaml"], "broken.yaml:1: stor"),
    (["--format", "tau2"], "run.json"),
]


@pytest.mark.parametrize(("arguments", "message"), SETUP, ids=lambda value: str(value)[:40])
def test_set_up_errors_are_no_failures_of_the_trace(
    here: Path, arguments: list[str], message: str
) -> None:
    (here / "bad.yaml").write_text('workflow: a\ncontract_version: "1"\ntols: {required: [x]}\n')
    (here / "broken.yaml").write_text("stor: x\n")
    # A report of yesterday must not be taken for today's.
    (here / "report.json").write_text('{"passed": true}')
    result = run(here, "--out", "report.json", *arguments)
    assert result.code == 2
    assert result.out == ""
    assert message in words(result)
    written = json.loads((here / "report.json").read_text())
    assert (written["passed"], written["score"], written["plugins"]) == (None, None, [])
    assert message in " ".join(written["reason"].split())
    assert report(run(here, "--json", *arguments)) == written


def test_a_report_that_cannot_be_written_is_an_error(here: Path) -> None:
    (here / "refund.yaml").write_text(PASSING)
    (here / "file").write_text("")
    result = run(here, "--out", "file/report.json")
    assert result.code == 2
    assert "Passed." in result.out
    assert "cannot be written" in result.err


def test_a_fault_of_ours_is_no_failure_of_the_trace(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> Iterator[TraceSnapshot]:
        raise RuntimeError("out of order")

    monkeypatch.setattr(one_trace, "read_traces", broken)
    result = run(here, "--json")
    assert result.code == 2
    assert report(result)["passed"] is None
    assert "RuntimeError: out of order" in result.err


# Which trace.


def several(here: Path) -> None:
    second = {**RUN, "trace_id": "t2", "tool_calls": []}
    lines = [RUN, second, {**second, "final_answer": "No."}, RUN]
    (here / "run.json").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_of_several_traces_one_must_be_named(here: Path) -> None:
    several(here)
    result = run(here, "--out", "report.json")
    assert result.code == 2
    assert "run.json holds 4 traces; choose one with --trace-id: t1 t2" in words(result)
    assert json.loads((here / "report.json").read_text())["passed"] is None


@pytest.mark.parametrize("how", ["option", "variable"])
def test_the_trace_is_named_by_option_or_variable(here: Path, how: str) -> None:
    several(here)
    # It is there twice, and twice the same.
    named = run(here, "--trace-id", "t1") if how == "option" else run(here, TRACE_ID="t1")
    assert named.code == 1
    assert "Trace     t1\n" in named.out


def test_the_option_wins_over_the_variable(here: Path) -> None:
    several(here)
    assert run(here, "--trace-id", "t1", TRACE_ID="t9").code == 1


def test_two_different_traces_of_one_id_are_told_apart_by_nobody(here: Path) -> None:
    several(here)
    result = run(here, "--trace-id", "t2")
    assert result.code == 2
    assert "holds 2 different traces 't2' (line 2, line 3)" in words(result)


def test_a_trace_that_is_not_there(here: Path) -> None:
    several(here)
    assert "no trace 't11'; did you mean 't1'?" in words(run(here, "--trace-id", "t11"))
    far = run(here, "--trace-id", "elsewhere")
    assert far.code == 2
    assert "holds no trace 'elsewhere'; it holds: t1 t2" in words(far)
    # A trace alone in its file is no stand-in for the one that was asked for.
    trace(here)
    assert run(here, "--trace-id", "elsewhere").code == 2


def test_many_ids_are_counted(here: Path) -> None:
    lines = [json.dumps({**RUN, "trace_id": f"t{number:03}"}) for number in range(25)]
    (here / "run.json").write_text("\n".join(lines))
    result = run(here)
    assert "t019" in result.err
    assert "t020" not in result.err
    assert "and 5 more" in result.err


def test_any_format_will_do(here: Path) -> None:
    first = json.loads(TAU2.read_text())["simulations"][0]
    tool = next(m["tool_calls"][0]["name"] for m in first["messages"] if m.get("tool_calls"))
    (here / "refund.yaml").write_text(
        f'workflow: x\ncontract_version: "1"\ntools: {{required: [{tool}]}}\n'
    )
    arguments = ("--snapshot", TAU2, "--trace-id", first["id"], "--plugins", "tool_calls")
    found = report(run(here, "--json", *arguments))
    assert found["passed"] is True
    assert found["origin"]["format"] == "tau2"
    assert run(here, *arguments, "--format", "tau2").code == 0


@pytest.mark.parametrize("missing", [["model"], ["started_at"], ["model", "started_at"]])
def test_a_trace_needs_no_place_to_be_judged(here: Path, missing: list[str]) -> None:
    (here / "refund.yaml").write_text(PASSING)
    trace(here, **dict.fromkeys(missing))
    result = run(here, "--json")
    assert result.code == 0
    (note,) = report(result)["notes"]
    assert note.startswith("`bench run` could not place this trace: run.json: has no ")
    # Nor does what `bench normalize` writes of it.
    assert bench("normalize", "run.json", "--out", "normal.jsonl", cwd=here).code == 0
    assert run(here, "--snapshot", "normal.jsonl").code == 0


def test_the_contract_is_used_even_if_it_would_not_select_the_trace(here: Path) -> None:
    (here / "refund.yaml").write_text(PASSING)
    assert report(run(here, "--json"))["notes"] == []
    trace(here, name="complaints")
    result = run(here)
    assert result.code == 0
    assert "Note: the contract applies to workflow refunds" in result.out
    assert report(run(here, "--json"))["passed"] is True


# Which contract, and the project.


@pytest.fixture
def project(here: Path) -> Path:
    """A project that the contract belongs to, and that knows the model by another name."""
    (here / "rules" / "shop").mkdir(parents=True)
    (here / "rules" / "shop" / "refund.yaml").write_text(CONTRACT)
    (here / "rules" / "broken.yaml").write_text("workflow: x\n")
    (here / "benchmark.yaml").write_text(
        "contracts: [rules]\nmodels:\n  best: {aliases: [gpt-5.4]}\n"
    )
    return here


@pytest.mark.parametrize("named", ["shop/refund", "rules/shop/refund.yaml"])
def test_a_contract_of_the_project_has_one_id_however_it_is_named(
    project: Path, named: str
) -> None:
    # The other contract, which is broken, is in nobody's way.
    result = run(project, "--json", "--contract", named)
    assert result.code == 1
    assert report(result)["contract"] == "shop/refund"


def test_the_hash_of_a_contract_is_that_of_its_runs(project: Path) -> None:
    by_id, by_file = (
        report(run(project, "--json", "--contract", named))["contract_sha256"]
        for named in ("shop/refund", "rules/shop/refund.yaml")
    )
    assert by_id == by_file


def test_a_contract_that_is_not_there_names_the_nearest_and_what_is_broken(project: Path) -> None:
    result = run(project, "--contract", "shop/refunds")
    assert result.code == 2
    assert "did you mean 'shop/refund'?" in words(result)
    assert "broken.yaml:1" in words(result)


def test_aliases_of_models_are_the_projects(project: Path) -> None:
    assert report(run(project, "--json"))["model"] == "best"


# Plugins.


def test_only_the_plugins_that_were_asked_for(here: Path) -> None:
    result = run(here, "--json", "--plugins", "trajectory")
    assert result.code == 0
    assert report(result)["plugins"] == [TRAJECTORY]
    assert report(result)["selected_plugins"] == ["trajectory"]
    printed = run(here, "--plugins", "trajectory").out
    assert "Plugins   only trajectory\n" in printed
    assert "Other plugins were not asked for." in printed
    both = report(run(here, "--json", "--plugins", "trajectory", "--plugins", " tool_calls ,"))
    assert [plugin["name"] for plugin in both["plugins"]] == ["tool_calls", "trajectory"]


def test_a_plugin_without_a_section_is_named_and_passes_nothing(here: Path) -> None:
    result = run(here, "--plugins", "final_output")
    assert result.code == 2
    assert "Not in the contract, so not judged: final_output." in result.out
    assert report(run(here, "--json", "--plugins", "final_output"))["passed"] is None


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("tool_cals", "there is no plugin 'tool_cals'; did you mean 'tool_calls'?"),
        ("trajectory,zzz", "there is no plugin 'zzz'; there are: "),
        (",", "--plugins names none; there are: "),
    ],
)
def test_an_unknown_plugin(here: Path, names: str, message: str) -> None:
    result = run(here, "--plugins", names)
    assert result.code == 2
    assert message in words(result)


def test_plugins_are_listed_without_any_trace(tmp_path: Path) -> None:
    result = bench("verify", "--list-plugins", cwd=tmp_path)
    assert result.code == 0
    for plugin in PLUGINS:
        assert f"{plugin.name} {plugin.description}" in words(result)
    listed = json.loads(bench("verify", "--list-plugins", "--json", cwd=tmp_path).out)
    assert listed == [{"name": p.name, "description": p.description} for p in PLUGINS]


def test_a_grader_that_raises_is_named_and_decides_nothing(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepare(_: Contract) -> Judge | None:
        def judge(_: TraceSnapshot) -> Iterator[Check]:
            yield Check(name="fine", outcome="passed")
            raise ValueError("no such key")

        return judge

    monkeypatch.setattr(rules, "PLUGINS", (Plugin("mine", "broken", prepare),))
    result = run(here, "--json")
    assert result.code == 2
    (plugin,) = report(result)["plugins"]
    assert plugin == {
        "name": "mine",
        "passed": None,
        "score": None,
        "checks": [],
        "error": "ValueError: no such key",
    }
    assert "mine  ERROR  raised ValueError: no such key" in run(here).out


# Usage.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name the contract: --contract FILE"),
        (["--contract", "refund.yaml"], "--snapshot FILE"),
        (["--contract", "refund.yaml"], "or the trace to fetch from Langfuse: --trace-id ID"),
        (["--nonsense"], "No such option"),
    ],
)
def test_usage_errors(here: Path, arguments: list[str], message: str) -> None:
    result = bench("verify", *arguments, cwd=here)
    assert result.code == 2
    assert message in words(result)
    assert "Try 'bench verify --help' for help." in words(result)


def test_the_scripts_of_the_package_are_those_that_are_known() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert set(scripts) == {"bench", *ALIASES}
    assert set(scripts.values()) == {"benchmark_assets.cli.main:entry"}
    assert set(ALIASES.values()) <= set(COMMANDS)


def test_run_verify_is_verify(here: Path) -> None:
    script = "import sys; from benchmark_assets.cli.main import entry; entry()"
    arguments = ["--contract", "refund.yaml", "--snapshot", "run.json"]
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            f"import sys; sys.argv = ['/usr/bin/run-verify', *sys.argv[1:]]; {script}",
            *arguments,
        ],
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == run(here).out


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_run_verify_helps_under_its_own_name(monkeypatch: pytest.MonkeyPatch, flag: str) -> None:
    out = io.StringIO()
    monkeypatch.setattr(sys, "argv", ["run-verify", flag])
    with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as end:
        main("run-verify")
    assert end.value.code == 0
    assert out.getvalue().startswith("Usage: run-verify [OPTIONS]")
