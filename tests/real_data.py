"""Where the real traces are, and how tests say that they are not there."""

from pathlib import Path

import pytest

REAL = Path(__file__).resolve().parents[2] / "shared" / "data"
"""Real public traces, kept beside the repository and not in it."""

needs_real_data = pytest.mark.skipif(
    not REAL.is_dir(), reason="REAL TRACES ARE MISSING: no shared/data beside the repository"
)
"""Marks a test that cannot run without them."""
