"""The benchmark of a year, on a few days: what it asserts about work done holds."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]


def test_work_grows_with_what_changed_and_not_with_history() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "perf" / "year.py", "3"],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "full aggregate: 240 files, 2160 runs" in done.stdout
