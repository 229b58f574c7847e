"""Whatever is judged in these tests, the verdict alone is the one that is found in words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.quick import agreeing


@pytest.fixture(scope="package", autouse=True)
def _verdicts_agree() -> Iterator[None]:
    with agreeing():
        yield
