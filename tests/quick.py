"""Two ways to one verdict: in words, and alone. Every evaluation in a test can compare them.

Belongs here: making evaluations compare. Does not belong here: traces or contracts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmark_assets.model.verdict import Verdict
from benchmark_assets.scoring.evaluate import ContractJudge
from benchmark_assets.scoring.evidence import Evidence


@contextmanager
def agreeing() -> Iterator[None]:
    """Every evaluation compares its outcome with what is said of it in no words."""
    in_words = ContractJudge.evaluate

    def evaluate(judge: ContractJudge, evidence: Evidence) -> Verdict:
        verdict = in_words(judge, evidence)
        alone = judge.resolves(evidence)
        assert alone is None or alone == (verdict.outcome == "resolved"), (alone, verdict)
        return verdict

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ContractJudge, "evaluate", evaluate)
        yield
