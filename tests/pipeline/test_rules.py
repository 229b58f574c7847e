"""Plugins from outside the package: loaded, judged with, keyed by; and profiles in keys."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import ToolCall
from benchmark_assets.pipeline.cells import CellId, evaluate_cells
from benchmark_assets.pipeline.rules import GROUP, load_plugins
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.scoring.plugins import PLUGINS
from tests.bench import run_rows
from tests.docs.consoles import ROOT, steps
from tests.pipeline.small_store import (
    DAYS,
    MODELS,
    A,
    contract,
    every_cell,
    fill,
    put,
    stale,
    trace,
    with_config,
    workspace,
)

DOCUMENT = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
[NO_SECRETS] = [
    step.content for step in steps(DOCUMENT) if (step.file or "").endswith("no_secrets.py")
]

HEAD = """\
from benchmark_assets.model.verdict import Check, Where
from benchmark_assets.scoring.plugins.base import Plugin
"""


def plugin(name: str, prepare: str) -> str:
    """The code of a plugin."""
    return f'{HEAD}PLUGIN = Plugin("{name}", "a test", {prepare})\n'


def gives(checks: str) -> str:
    """The code of a plugin called `own` whose judge gives this."""
    return plugin("own", f"lambda contract: lambda evidence: {checks}")


def write(folder: Path, **files: str) -> list[Path]:
    paths = []
    for name, code in files.items():
        paths.append(folder / f"{name}.py")
        paths[-1].write_text(code, encoding="utf-8")
    return paths


def refused(paths: list[Path]) -> list[str]:
    with pytest.raises(InputError) as caught:
        load_plugins(paths)
    return [str(problem) for problem in caught.value.problems]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder to work in; modules that a test loads are forgotten."""
    monkeypatch.chdir(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith(("benchmark_assets_plugin_", "announced")):
            del sys.modules[name]


# Loading.


def test_a_plugin_in_a_file(here: Path) -> None:
    [found] = load_plugins(write(here, no_secrets=NO_SECRETS))
    assert found.plugin.name == "no_secrets"
    assert found.plugin.name not in {packaged.name for packaged in PLUGINS}


def test_plugins_are_sorted_by_name_and_run_after_the_packages(here: Path) -> None:
    names = ("b", "a", "c")
    files = {name: plugin(name, "lambda contract: None") for name in names}
    write(here, **files)
    opened = workspace(here, plugins=[f"{name}.py" for name in names])
    assert [item.name for item in opened.rules.plugins] == [
        *(packaged.name for packaged in PLUGINS),
        "a",
        "b",
        "c",
    ]
    assert opened.rules.known.plugins == ("a", "b", "c")


def test_what_a_plugin_needs_of_its_own_module(here: Path) -> None:
    """Dataclasses look their module up while it is being made."""
    code = "from __future__ import annotations\nfrom dataclasses import dataclass\n" + HEAD
    code += "@dataclass(frozen=True)\nclass Limit:\n    value: int = 1\n"
    code += 'PLUGIN = Plugin("own", "a test", lambda contract: None)\n'
    [found] = load_plugins(write(here, own=code))
    assert found.plugin.name == "own"


def test_all_that_is_wrong_is_said_at_once(here: Path) -> None:
    good = plugin("fine", "lambda contract: None")
    paths = write(
        here,
        fine=good,
        again=plugin("fine", "lambda c: None"),
        packaged=plugin("tool_calls", "lambda contract: None"),
        empty="",
        other="PLUGIN = 5\n",
        raises="1 / 0\n",
        leaves="import sys\nsys.exit(0)\n",
        syntax="def (:\n",
        imports="import nothing_of_this_name\n",
        unnamed=plugin("", "lambda contract: None"),
        numbered=HEAD + 'PLUGIN = Plugin(5, "a test", lambda contract: None)\n',
        idle=HEAD + 'PLUGIN = Plugin("idle", "a test", None)\n',
    )
    (here / "text.txt").write_text(good, encoding="utf-8")
    (here / "folder.py").mkdir()
    said = refused([*paths, here / "gone.py", here / "text.txt", here / "folder.py"])
    cure = "write PLUGIN = Plugin(name, description, prepare), as docs/plugins.md shows"
    name_file = "name a Python file with a PLUGIN, relative to benchmark.yaml"
    assert said == [
        "again.py: plugin 'fine' is also fine.py's; give the plugin another name",
        "packaged.py: plugin 'tool_calls' is also this package's; give the plugin another name",
        f"empty.py: has no PLUGIN; {cure}",
        f"other.py: PLUGIN is a int; {cure}",
        "raises.py: plugin cannot be loaded: ZeroDivisionError: division by zero",
        "leaves.py: plugin cannot be loaded: SystemExit: 0",
        "syntax.py: plugin cannot be loaded: SyntaxError: invalid syntax (syntax.py, line 1)",
        "imports.py: plugin cannot be loaded: ModuleNotFoundError: "
        "No module named 'nothing_of_this_name'",
        f"unnamed.py: PLUGIN has no name or no description that is a text; {cure}",
        f"numbered.py: PLUGIN has no name or no description that is a text; {cure}",
        f"idle.py: PLUGIN has no function to prepare with; {cure}",
        f"gone.py: cannot be read: No such file or directory; {name_file}",
        "text.txt: is no Python file; name a file that ends in .py",
        f"folder.py: cannot be read: Is a directory; {name_file}",
    ]


def announce(folder: Path, version: str, code: str, target: str = "announced:PLUGIN") -> None:
    """Install a distribution as installers do: a module and its `dist-info` beside it."""
    info = folder / f"my_checks-{version}.dist-info"
    info.mkdir(parents=True)
    header = f"Metadata-Version: 2.1\nName: my-checks\nVersion: {version}\n"
    (info / "METADATA").write_text(header, encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{GROUP}]\nown = {target}\n", encoding="utf-8")
    (folder / "announced.py").write_text(code, encoding="utf-8")


def test_a_plugin_of_an_installed_distribution(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = here / "site"
    announce(site, "1.2", plugin("own", "lambda contract: None"))
    monkeypatch.syspath_prepend(site)
    [found] = load_plugins([])
    assert (found.plugin.name, found.version) == ("own", "my-checks 1.2")
    clash = write(here, mine=plugin("own", "lambda c: None"))
    assert refused(clash) == [
        "mine.py: plugin 'own' is also entry point own's; give the plugin another name"
    ]


@pytest.mark.parametrize(
    ("code", "target", "said"),
    [
        ("1 / 0", "announced:PLUGIN", "plugin cannot be loaded: ZeroDivisionError"),
        ("", "announced:PLUGIN", "plugin cannot be loaded: AttributeError"),
        ("", "not_announced:PLUGIN", "plugin cannot be loaded: ModuleNotFoundError"),
        ("PLUGIN = []", "announced:PLUGIN", "PLUGIN is a list; write PLUGIN ="),
    ],
)
def test_a_distribution_whose_plugin_is_wrong(
    here: Path, monkeypatch: pytest.MonkeyPatch, code: str, target: str, said: str
) -> None:
    announce(here / "site", "1.2", code, target)
    monkeypatch.syspath_prepend(here / "site")
    [problem] = refused([])
    assert problem.startswith(f"entry point own: {said}")


def test_the_document_names_the_group() -> None:
    [snippet] = [text.partition("```")[0] for text in DOCUMENT.split("```toml\n")[1:]]
    announced = tomllib.loads(snippet)["project"]["entry-points"]
    assert announced.keys() == {GROUP}


# Judging: through the real pipeline.


def rows(opened: Workspace) -> list[dict[str, Any]]:
    return run_rows(Path(opened.store.url))


def judged(here: Path, code: str, **fields: Any) -> list[dict[str, Any]]:
    """The stored runs of two contracts over all traces, with a plugin of this code."""
    write(here, own=code)
    opened = workspace(here, plugins=["own.py"])
    fill(opened, [contract("plain"), contract("with", **fields)])
    evaluate_cells(opened, every_cell(opened))
    assert stale(opened) == {}
    return rows(opened)


RUNS = len(MODELS) * len(DAYS) * 2
"""Two traces of each day apply to a contract."""


def test_its_checks_count(here: Path) -> None:
    code = plugin(
        "own",
        "lambda contract: contract.plugins.get('own') and (lambda evidence: "
        "[Check(name='x', outcome='failed', reason='no ' + contract.plugins['own'])])",
    )
    found = judged(here, code, plugins={"own": "luck"})
    assert len(found) == 2 * RUNS
    for row in found:
        answered = row["trace_id"].startswith("one")
        if row["contract"] == "with":
            assert row["outcome"] == "unresolved"
            assert not answered or row["reason"] == "own: no luck"
        else:
            assert row["outcome"] == ("resolved" if answered else "unresolved")


def test_the_example_of_the_document_finds_secrets(here: Path) -> None:
    write(here, no_secrets=NO_SECRETS)
    opened = workspace(here, plugins=["no_secrets.py"])
    settings = {"patterns": ["AKIA[0-9A-Z]{16}"]}
    fill(opened, [contract("refund", plugins={"no_secrets": settings})])
    key = {"name": "run", "arguments": {"line": ["--key", "AKIAIOSFODNN7EXAMPLE"]}, "status": "ok"}
    call = msgspec.convert(key, ToolCall)
    put(opened, "2026-03-07", A, trace("leaks", A, "2026-03-07", tool_calls=(call,)))
    evaluate_cells(opened, every_cell(opened))
    reasons = {row["trace_id"]: row["reason"] for row in rows(opened)}
    assert reasons.pop("leaks") == "no_secrets: a secret was given to run"
    assert not any("secret" in (reason or "") for reason in reasons.values())


GARBAGE = {
    "raises": "1 / 0",
    "leaves": "__import__('sys').exit(1)",
    "nothing": "None",
    "texts": "['x']",
    "a check alone": "Check(name='x', outcome='passed')",
    "another outcome": "[Check(name='x', outcome='pass')]",
    "no name": "[Check(name=None, outcome='passed')]",
    "a name that is no text": "[Check(name=5, outcome='passed')]",
    "observed data": "[Check(name='x', outcome='passed', observed={'a': 1})]",
    "no Unicode": "[Check(name='\\ud800', outcome='passed')]",
    "a place that is none": "[Check(name='x', outcome='passed', where='call 1')]",
    "a place that is too far": "[Check(name='x', outcome='passed', where=Where(call=2**40))]",
    "a place of texts": "[Check(name='x', outcome='passed', where=Where(call='1'))]",
    "raises no Unicode": "(_ for _ in ()).throw(ValueError('\\ud800'))",
    "raises what cannot be said": "(_ for _ in ()).throw(type('E', (ValueError,), "
    "{'__str__': lambda self: 1 / 0})())",
    "raises on the way": "(Check(name='x', outcome='passed' if not n else 1 / 0) for n in range(2))",
}


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_is_an_error_row_and_nothing_is_lost(here: Path, kind: str) -> None:
    found = judged(here, gives(GARBAGE[kind]))
    assert len(found) == 2 * RUNS
    for row in found:
        assert row["outcome"] == "error"
        assert row["reason"].startswith("plugin own raised ")
        by_name = {result["plugin"]: result for result in row["plugins"]}
        assert by_name["own"]["error"]
        # What the others found is kept.
        assert [check["plugin"] for check in row["checks"]].count("final_output") == 1


@pytest.mark.parametrize("prepare", ["lambda contract: 1 / 0", "lambda contract: 5"])
def test_a_plugin_that_cannot_prepare_itself(here: Path, prepare: str) -> None:
    found = judged(here, plugin("own", prepare))
    assert len(found) == 2 * RUNS
    assert {row["outcome"] for row in found} == {"error"}
    assert all(row["reason"].startswith("plugin own raised ") for row in found)


def test_a_stored_contract_whose_plugin_is_gone_has_no_verdict(here: Path) -> None:
    opened = workspace(here)
    fill(opened, [contract("with", plugins={"own": {}})])
    evaluate_cells(opened, every_cell(opened))
    found = [row for row in rows(opened) if row["trace_id"].startswith("one")]
    assert {row["outcome"] for row in found} == {"error"}
    assert {row["reason"] for row in found} == {
        "own: there is no plugin 'own'; name its file under plugins in benchmark.yaml"
    }


# Keys.


def everything(*contracts: str) -> dict[CellId, list[str]]:
    return {CellId(name, model): list(DAYS) for name in contracts for model in MODELS}


def test_another_plugin_makes_everything_stale(here: Path) -> None:
    code = plugin("own", "lambda contract: None")
    write(here, own=code)
    opened = workspace(here)
    fill(opened, [contract("a"), contract("b", skills={})])
    evaluate_cells(opened, every_cell(opened))
    for plugins, text in (
        (["own.py"], code),  # one more
        (["own.py"], code + "# changed\n"),
        ([], code),  # and gone again
    ):
        write(here, own=text)
        opened = with_config(opened, plugins=plugins)
        assert stale(opened) == everything("a", "b")
        evaluate_cells(opened, every_cell(opened))
        assert stale(opened) == {}
    # The same code from another place is the same rule.
    opened = with_config(opened, plugins=["own.py"])
    evaluate_cells(opened, every_cell(opened))
    (here / "checks").mkdir()
    write(here / "checks", moved=code)
    assert stale(with_config(opened, plugins=["checks/moved.py"])) == {}


def test_another_version_of_a_distribution_makes_everything_stale(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = plugin("own", "lambda contract: None")
    announce(here / "one", "1", code)
    announce(here / "two", "2", code)
    opened = workspace(here)
    fill(opened, [contract("a")])
    with monkeypatch.context() as patch:
        patch.syspath_prepend(here / "one")
        opened = with_config(opened)
        evaluate_cells(opened, every_cell(opened))
        assert stale(with_config(opened)) == {}
    monkeypatch.syspath_prepend(here / "two")
    assert stale(with_config(opened)) == everything("a")


PROFILE = """\
name: gardener
recognised_by: [dig]
tools: {dig: {effect: read, path: where}}
"""


def test_another_profile_makes_stale_what_reads_activity(here: Path) -> None:
    resources = {"api": [{"name": "x"}]}
    contracts = [
        contract("texts"),
        contract("calls", tools={"required": ["a"]}, budget={"max_steps": 5}),
        contract("skills", skills={"required": ["a"]}),
        contract("reads", resources=resources, input_context=[{"resource": "api.x"}]),
        contract("changes", output=[]),
        contract("by name", harness="app-builder", output=[]),
        contract("by its name", harness="gardener", output=[]),
    ]
    file = here / "gardener.yaml"
    file.write_text(PROFILE, encoding="utf-8")
    opened = workspace(here, harnesses=["gardener.yaml"])
    fill(opened, contracts)
    evaluate_cells(opened, every_cell(opened))

    def changed(text: str) -> dict[CellId, list[str]]:
        file.write_text(text, encoding="utf-8")
        return stale(with_config(opened, harnesses=["gardener.yaml"]))

    assert changed("# A comment.\n" + PROFILE) == {}
    found = changed(PROFILE.replace("effect: read", "effect: delete"))
    assert found == everything("skills", "reads", "changes", "by its name")
    # Without it, other contracts than those that name another are stale as well.
    gone = stale(with_config(opened))
    assert gone == everything("skills", "reads", "changes", "by its name")


def test_a_plugin_may_read_activity_so_profiles_count(here: Path) -> None:
    write(here, own=plugin("own", "lambda contract: None"))
    (here / "gardener.yaml").write_text(PROFILE, encoding="utf-8")
    opened = workspace(here, plugins=["own.py"])
    fill(opened, [contract("texts")])
    evaluate_cells(opened, every_cell(opened))
    opened = with_config(opened, plugins=["own.py"], harnesses=["gardener.yaml"])
    assert stale(opened) == everything("texts")
