"""The page on Langfuse: its tables are of the options, variables and keys that there are."""

from __future__ import annotations

import re
from pathlib import Path

from benchmark_assets.adapters.project_file import load_project
from benchmark_assets.cli.fetch import command
from benchmark_assets.cli.live_options import ENDED_BY_S
from benchmark_assets.model.project import LangfuseSource
from tests.docs.consoles import KEYS, ROOT, steps, write
from tests.docs.tables import rows

TEXT = (ROOT / "docs" / "langfuse.md").read_text(encoding="utf-8")
COMMON = {"--config", "--json", "--out", "--raw"}


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_every_option_that_chooses_is_in_the_table() -> None:
    options = {option for parameter in command.params for option in parameter.opts}
    anywhere = set(re.findall(r"(--[a-z][a-z-]*)", TEXT))
    assert options - COMMON <= anywhere
    access = {"--source", "--api", "--deadline", "--max-requests", "--wait"}
    choosing = {option for option in options if not option.startswith("--langfuse")} - COMMON
    table = set(re.findall(r"(--[a-z][a-z-]*)", section("Which traces").split("\n\n")[0]))
    assert table == choosing - access


def test_the_variables_are_those_of_the_example_file() -> None:
    example = (ROOT / ".env.example").read_text(encoding="utf-8")
    named = set(re.findall(r"^# (LANGFUSE_\w+)=", example, re.MULTILINE))
    assert named == set(re.findall(r"`(LANGFUSE_\w+)`", section("Credentials"))) - {"LANGFUSE_HOST"}


def test_the_defaults_that_the_page_names() -> None:
    assert f"`--deadline` ({ENDED_BY_S:.0f} seconds)" in TEXT
    defaults = {parameter.name: parameter.default for parameter in command.params}
    assert f"default: {defaults['scan_cap']}" in TEXT


def test_the_source_loads_and_its_keys_are_in_the_table(tmp_path: Path) -> None:
    (file,) = [step for step in steps(TEXT) if step.file == "benchmark.yaml"]
    write(file, tmp_path)
    config = load_project(cwd=tmp_path, env={}).config
    (source,) = config.sources
    assert isinstance(source, LangfuseSource)
    assert source.filter == {"projectid": ("P1", "P3")}
    fields = {field.alias or name for name, field in LangfuseSource.model_fields.items()}
    table = {
        key for row in rows(section("Every night"), "key") for key in re.findall(r"`(\w+)`", row[0])
    }
    assert table == fields - {"kind"}


def test_what_the_page_says_is_said_is_said_somewhere() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8")
        for path in (ROOT / "benchmark_assets").rglob("*.py")
        if "langfuse" in path.as_posix() or path.parent.name == "cli"
    )
    for row in rows(section("When something is wrong"), "it says"):
        for words in re.findall(r"`([^`]+)`", row[0]):
            for part in re.split(r" … |/api/\S+", words):
                assert part.strip() in " ".join(sources.split()), words


def test_its_keys_are_those_of_the_server_that_it_runs_against() -> None:
    assert all(key in TEXT for key in KEYS)
