"""The reference of harness profiles has every key and effect, and what it says of shells holds."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import get_args

import pytest
from pydantic import BaseModel

from benchmark_assets.adapters.harness_files import packaged_profiles, parse_profile
from benchmark_assets.model.harness import (
    _MAY_HAVE,
    _NEEDS,
    Command,
    Commands,
    Effect,
    EffectKind,
    HarnessProfile,
    Sign,
)
from benchmark_assets.model.schema import models_of
from benchmark_assets.model.trace import FileOperation
from benchmark_assets.scoring.activity import interpret
from benchmark_assets.scoring.shell import read_command_line
from tests.bench import bench
from tests.docs.consoles import ROOT, steps
from tests.docs.tables import code, codes, compare_keys, rows, under_headings
from tests.scoring.build import call, trace

TEXT = (ROOT / "docs" / "harnesses.md").read_text(encoding="utf-8")
SECTIONS: dict[str, type[BaseModel]] = {
    "A profile": HarnessProfile,
    "An effect": Effect,
    "A sign": Sign,
    "Commands": Commands,
    "A command": Command,
}


def test_every_key_is_documented_as_it_is_and_no_other() -> None:
    assert set(SECTIONS.values()) == set(models_of(HarnessProfile))
    compare_keys(TEXT, SECTIONS)


def test_every_effect_is_documented_with_its_keys() -> None:
    table = {code(row[0]): row for row in rows(under_headings(TEXT)["An effect"], "effect")}
    assert list(table) == list(get_args(EffectKind))
    for kind, (_, _, needs, may) in table.items():
        assert tuple(codes(needs)) == _NEEDS.get(kind, ())
        assert tuple(codes(may)) == _MAY_HAVE.get(kind, ())


def test_the_packaged_profiles_are_documented() -> None:
    table = {code(row[0]): codes(row[1]) for row in rows(TEXT, "profile")}
    profiles = {profile.name: profile for profile in packaged_profiles()}
    assert table.keys() == profiles.keys()
    for name, tools in table.items():
        assert set(tools) <= profiles[name].tools.keys()


COMMAND_LINES = rows(under_headings(TEXT)["What is read of a command line"], "command line")


@pytest.mark.parametrize("row", COMMAND_LINES, ids=lambda row: row[0])
def test_command_lines_are_read_as_said(row: list[str]) -> None:
    reading = read_command_line(code(row[0]), "", Commands())
    found = [f"{event.operation} `{event.path}`" for event in reading.events]
    found += ["opaque"] * reading.opaque + ["unseen read"] * reading.unseen_read
    assert (", ".join(found) or "nothing") == row[1]


def test_commands_that_are_said_to_be_read_are() -> None:
    said = re.search(r"Reads are by (.*?);\s+changes\s+by (.*?);", TEXT, re.DOTALL)
    assert said
    for command in codes(said[1]):
        script = "-n 1p " if command == "sed" else ""
        reading = read_command_line(f"{command} {script}a.txt", "", Commands())
        assert [(event.operation, event.path) for event in reading.events] == [("read", "a.txt")]
    changes: set[FileOperation] = {"create", "update", "write", "delete", "move"}
    for command in codes(said[2]):
        words = {"sed -i": "s/a/b/ a.txt", "mv": "a.txt b.txt", "cp": "a.txt b.txt"}
        reading = read_command_line(f"{command} {words.get(command, 'a.txt')}", "", Commands())
        assert changes & {event.operation for event in reading.events}, command


# The profile that the document writes; that its commands print what it says is tested with all.

FILES = [step for step in steps(TEXT) if step.file is not None]
GARDENER = parse_profile(FILES[0].content.encode(), "gardener.yaml")


def test_the_example_reads_what_it_says() -> None:
    assert len(GARDENER.tools) == 4
    done = interpret(
        trace(
            metadata={"garden": {"root": "/garden"}},
            tool_calls=[
                call("dig", {"where": "a.md"}, result="nothing there", status="ok"),
                call("plant", {"beds": [{"path": "b.md", "seed": "x"}]}, result={"new": False}),
                call("plant", {"bed": "a.md", "seed": "y"}, result={"new": True}, status="ok"),
                call("prune_all", {"bed": "c.md"}, status="error", error="no"),
                call("ask_neighbour", {}, status="ok"),
                call("compost", {}, status="ok"),
            ],
        ),
        [GARDENER],
    )
    assert [(event.operation, event.path, event.status) for event in done.files] == [
        ("read", "a.md", "error"),
        ("update", "b.md", None),
        ("create", "a.md", "ok"),
        ("delete", "c.md", "error"),
    ]
    assert done.roots == ("/garden",)
    assert done.questions == (4,)
    assert done.unknown == (5,)


def test_without_the_profile_nothing_can_be_told(tmp_path: Path) -> None:
    for step in FILES:
        target = tmp_path / (step.file or "")
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.write_text(step.content, encoding="utf-8")
    project = tmp_path / "harnessed"
    args = ("verify", "--contract", "contracts/notes.yaml", "--snapshot", "run.json")
    assert bench(*args, cwd=project).code == 1
    shutil.rmtree(project / "harnesses")
    (project / "benchmark.yaml").write_text("", encoding="utf-8")
    result = bench(*args, cwd=project)
    assert result.code == 2
    assert "no harness profile says what these tools do" in " ".join(result.out.split())
