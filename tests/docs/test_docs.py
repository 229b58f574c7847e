"""What README and docs say commands print is what they print."""

import re
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from benchmark_assets.adapters.formats import FORMATS
from benchmark_assets.cli.main import COMMANDS
from tests.docs.consoles import (
    DOCUMENTS,
    ROOT,
    fits,
    needs_real_traces,
    prepare,
    run,
    servers,
    steps,
    write,
)
from tests.real_data import REAL

SESSIONS = [path for path in DOCUMENTS if steps(path.read_text(encoding="utf-8"))]


def _session(path: Path) -> ParameterSet:
    """A document; those that judge hundreds of real traces take their time."""
    slow = needs_real_traces(path.read_text(encoding="utf-8"))
    return pytest.param(path, marks=[pytest.mark.slow] if slow else [], id=path.name)


@pytest.mark.parametrize("document", [_session(path) for path in SESSIONS])
def test_commands_print_what_the_document_says(document: Path, tmp_path: Path) -> None:
    text = document.read_text(encoding="utf-8")
    if needs_real_traces(text) and not REAL.is_dir():
        pytest.skip("REAL TRACES ARE MISSING: no shared/data beside the repository")
    prepare(tmp_path)
    with servers(text) as address:
        for step in steps(text):
            if step.file is not None:
                write(step, tmp_path, address)
            elif step.command is not None:
                printed = run(step.command, tmp_path, address)
                assert fits(step.expected, printed), (
                    f"$ {step.command}\n{printed}\n"
                    f"Refresh: python -m tests.docs.consoles {document.relative_to(ROOT)}"
                )


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_is_documented(command: str) -> None:
    texts = [path.read_text(encoding="utf-8") for path in DOCUMENTS]
    assert any(f"bench {command}" in text for text in texts)


def test_every_format_is_documented_and_no_other() -> None:
    text = (ROOT / "docs" / "traces.md").read_text(encoding="utf-8")
    table = text.split("\n## Formats\n\n")[1].split("\n\n")[0]
    documented = re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)
    assert sorted(documented) == sorted(known.name for known in FORMATS)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


def test_the_two_commands_are_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "make demo" in readme
    assert "make test" in readme


def test_a_wrong_output_would_be_noticed() -> None:
    assert fits("a\n…\nc\n", "a\nb\nb\nc\n")
    assert fits("a  \nb\n", "a\nb\n")
    assert not fits("a\n…\nc\n", "a\nb\n")
    assert not fits("a\n", "a\nb\n")
