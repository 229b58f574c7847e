"""The commands in README and docs, and running them.

A fenced block marked `console` is a session: lines that start with `$ ` are run, the lines after
each are what it prints. A line `…` stands for any number of lines; `<!-- file NAME -->` before a
fenced block says that the block is the content of a file that the commands then find.

All sessions of one document run in one folder, in order. The folder is laid out like a clone of
the repository after set-up, with the real traces beside it under the names that the documents
use. A document that names the address `LANGFUSE` has the test server there. `python -m tests.docs.consoles` writes into the documents what their commands print today.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.bench import ELSEWHERE
from tests.langfuse_server import generate, langfuse_server
from tests.real_data import REAL

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted(
    [ROOT / "README.md", ROOT / "contracts" / "README.md", *(ROOT / "docs").rglob("*.md")]
)
COPIED = ("benchmark.yaml", "dagster.yaml", "workspace.yaml", "contracts", "examples")
REAL_NAMES = ("tau2-airline-train30", "agentdojo-banking-slack")
ANY = "…"
LANGFUSE = "https://langfuse.example.com"
KEYS = ("pk-lf-your-public-key", "sk-lf-your-secret-key")

_BLOCK = re.compile(
    r"(?:<!-- file (?P<file>\S+) -->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)


@dataclass
class Step:
    """A file to write, or a command with what it prints."""

    file: str | None = None
    content: str = ""
    command: str | None = None
    expected: str = ""
    span: tuple[int, int] = (0, 0)


def steps(text: str) -> list[Step]:
    """The files and commands of a document, in order."""
    found = []
    for match in _BLOCK.finditer(text):
        body, start = match["body"], match.start("body")
        if match["file"]:
            found.append(Step(file=match["file"], content=body))
        elif match["language"] == "console":
            parts = list(re.finditer(r"^\$ (.*)\n", body, re.MULTILINE))
            for index, part in enumerate(parts):
                end = parts[index + 1].start() if index + 1 < len(parts) else len(body)
                found.append(
                    Step(
                        command=part[1],
                        expected=body[part.end() : end],
                        span=(start + part.end(), start + end),
                    )
                )
    return found


def needs_real_traces(text: str) -> bool:
    """Whether a document's commands read the real traces."""
    return any(step.command and name in step.command for step in steps(text) for name in REAL_NAMES)


def prepare(folder: Path) -> None:
    """Lay out a folder as the documents assume it."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy(source, folder / name)
    for name in REAL_NAMES:
        if (REAL / name).is_dir():
            (folder / name).symlink_to(REAL / name)


@contextmanager
def servers(text: str) -> Iterator[str]:
    """Run what a document's commands ask; the address that stands for `LANGFUSE`."""
    if LANGFUSE not in text:
        yield LANGFUSE
        return
    traces = generate(60, seed=1, environments=("default", "staging"))
    with langfuse_server(traces, mode="v2", keys=KEYS) as server:
        yield server.url


def write(step: Step, folder: Path, address: str = LANGFUSE) -> None:
    """Write a file of a document."""
    assert step.file is not None
    target = folder / step.file
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(step.content.replace(LANGFUSE, address), encoding="utf-8")


def run(command: str, folder: Path, address: str = LANGFUSE) -> str:
    """Run one command as a reader would; returns what the terminal shows, both streams."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ELSEWHERE)}
    command = command.replace("make demo", "bench demo").replace(LANGFUSE, address)
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**clean, "COLUMNS": "80", "PATH": f"{Path(sys.executable).parent}:{clean['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=300,
    )
    # The folder's name is the test's, and so is the address; a reader has others.
    printed = done.stdout.replace(str(folder), "/home/you/benchmark-assets")
    return printed.replace(address, LANGFUSE)


def fits(expected: str, printed: str) -> bool:
    """Whether output is what a document says, `…` standing for any lines."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == ANY else re.escape(line.rstrip()) + r"[ ]*\n"
        for line in expected.splitlines()
    )
    lines = "".join(line.rstrip() + "\n" for line in printed.splitlines())
    return re.fullmatch(pattern, lines) is not None


def refresh(document: Path) -> None:
    """Write what a document's commands print today into it; sessions with `…` are left alone."""
    text = document.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name, servers(text) as address:
        folder = Path(name)
        prepare(folder)
        changes = []
        for step in steps(text):
            if step.file is not None:
                write(step, folder, address)
            elif step.command is not None:
                printed = run(step.command, folder, address)
                if ANY not in step.expected.split("\n"):
                    changes.append(
                        (step.span, "".join(f"{line.rstrip()}\n" for line in printed.splitlines()))
                    )
                elif not fits(step.expected, printed):
                    print(f"{document.name}: `{step.command}` no longer fits:\n{printed}")
    for (start, end), printed in reversed(changes):
        text = text[:start] + printed + text[end:]
    document.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for path in [Path(name).resolve() for name in sys.argv[1:]] or DOCUMENTS:
        refresh(path)
