"""Running `bench` as a user does, and looking at what it leaves behind."""

import contextlib
import io
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq

from benchmark_assets.cli.main import main

ELSEWHERE = ("BENCH_", "DAGSTER_", "LANGFUSE_", "TRACE_ID")
"""Variables, by how their names begin, that would lead a command elsewhere."""


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str


def _environment(env: dict[str, str] | None) -> dict[str, str]:
    """The environment without what could lead a command to another project, instance or server."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(ELSEWHERE)}
    return {**clean, "COLUMNS": "80", **(env or {})}


def bench(*args: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> Result:
    """Run `bench` in this process: the same entry point, without importing Dagster each time."""
    out, err = io.StringIO(), io.StringIO()
    code = 0
    here = Path.cwd()
    with (
        mock.patch.dict(os.environ, _environment(env), clear=True),
        mock.patch.object(sys, "argv", ["bench", *map(str, args)]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            os.chdir(cwd or here)
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        finally:
            os.chdir(here)
    return Result(code, out.getvalue(), err.getvalue())


def bench_process(
    *args: object, cwd: Path | None = None, env: dict[str, str] | None = None
) -> Result:
    """Run `bench` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmark_assets.cli.main", *map(str, args)],
        cwd=cwd,
        env=_environment(env),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return Result(done.returncode, done.stdout, done.stderr)


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file below a folder but lock files: path → its bytes and when it was written."""
    return {
        path.relative_to(folder).as_posix(): (path.read_bytes(), path.stat().st_mtime_ns)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and ".locks" not in path.parts
    }


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but lock files: path → its bytes."""
    return {name: data for name, (data, _) in tree(folder).items()}


def run_rows(store: Path) -> list[dict[str, object]]:
    """All stored runs, read by pyarrow alone."""
    return [
        row
        for path in sorted((store / "runs").rglob("*.parquet"))
        for row in pq.ParquetFile(path).read().to_pylist()
    ]
