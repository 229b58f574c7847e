"""Records what the scoring rules are, so that a test notices when they change.

Run `python -m tests.scoring.record_engine_digest` from the repository's root after a change to
the files it covers, and after raising `ENGINE_VERSION` if the change can alter any verdict.

The digest is over the syntax tree of each file: comments, docstrings and layout do not count.
Fields that hold nothing are left out, so that versions of Python that add such fields agree.
"""

from __future__ import annotations

import ast
import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "benchmark_assets"
RECORD = ROOT / "tests" / "data" / "engine_digest.json"
COMMAND = "python -m tests.scoring.record_engine_digest"

COVERED = (
    "scoring/*.py",
    "scoring/plugins/*.py",
    "model/verdict.py",
    # A default of a section and the canonical form of JSON decide verdicts as well.
    "model/contract.py",
    "model/harness.py",
    "model/identity.py",
    "model/matchers.py",
    "model/resources.py",
    "model/section.py",
)


def covered_files() -> list[Path]:
    """The files whose code decides verdicts, sorted."""
    return sorted({path for pattern in COVERED for path in PACKAGE.glob(pattern)})


def syntax_digest(source: str) -> str:
    """SHA-256 in hex of what a module does: its syntax tree without docstrings and positions."""
    return hashlib.sha256(_spell(ast.parse(source)).encode()).hexdigest()


def _spell(node: object) -> str:
    """Write a node out: its kind and the fields that hold something.

    Empty fields are left out, since each version of Python adds some of its own, and so are
    statements that are a text and nothing else: the docstrings of modules, classes, functions
    and attributes.
    """
    if isinstance(node, list):
        kept = [item for item in node if not _is_docstring(item)]
        return "[" + ",".join(map(_spell, kept)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = [
        f"{name}={_spell(value)}"
        for name, value in ast.iter_fields(node)
        if value is not None and value != [] and name not in ("kind", "type_comment")
    ]
    # None is a constant's value like any other.
    if isinstance(node, ast.Constant) and node.value is None:
        fields.append("value=None")
    return f"{type(node).__name__}({','.join(fields)})"


def _is_docstring(node: object) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def current() -> dict[str, object]:
    """What `RECORD` should hold now: the engine's version and the digest of each file."""
    from benchmark_assets.scoring.evaluate import ENGINE_VERSION

    files = {
        path.relative_to(PACKAGE).as_posix(): syntax_digest(path.read_text(encoding="utf-8"))
        for path in covered_files()
    }
    return {"engine": ENGINE_VERSION, "files": files}


def recorded() -> dict[str, object]:
    """What was recorded last; empty if nothing was."""
    if not RECORD.exists():
        return {}
    found: dict[str, object] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def difference(old: dict[str, object], new: dict[str, object]) -> str | None:
    """What changed and what to do about it; None if nothing did."""
    if old == new:
        return None
    before, after = old.get("files"), new["files"]
    before = before if isinstance(before, dict) else {}
    assert isinstance(after, dict)
    changed = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    said = f"changed since they were recorded: {', '.join(changed)}. " if changed else ""
    if old.get("engine") == new["engine"]:
        return (
            f"{said}If any trace could now get another verdict, raise ENGINE_VERSION in "
            f"benchmark_assets/scoring/evaluate.py, so that stored verdicts are made again. "
            f"Then record: {COMMAND}"
        )
    return (
        f"{said}ENGINE_VERSION is {new['engine']}, recorded for {old.get('engine')}. "
        f"Record: {COMMAND}"
    )


def main() -> None:
    """Write the record, and say what that means."""
    old, new = recorded(), current()
    RECORD.write_text(json.dumps(new, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    if not old:
        print(f"recorded for the first time, under ENGINE_VERSION {new['engine']}")
    elif old == new:
        print("nothing changed")
    elif old.get("engine") == new["engine"]:
        print(
            f"recorded under the same ENGINE_VERSION, {new['engine']}: stored verdicts stay. "
            f"If any verdict can change, raise it and record again."
        )
    else:
        print(f"recorded for ENGINE_VERSION {new['engine']}: everything will be judged again")


if __name__ == "__main__":
    main()
