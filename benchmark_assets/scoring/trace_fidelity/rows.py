"""What comparing one trace's ledger gave, as the rows that are stored.

Belongs here: laying out a comparison, an executor a row. Does not belong here: the file it goes
into, or comparing (the rule sets).
"""

from __future__ import annotations

import msgspec

from benchmark_assets.model.fidelity import ExecutorFidelity, FidelityRow
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.trace_fidelity import RULES_VERSION, RuleSet


def fidelity_rows(
    date: str,
    model: str,
    trace: TraceSnapshot,
    rules: RuleSet,
    *,
    source: str = "",
    source_file: str | None = None,
) -> tuple[FidelityRow, ...]:
    """Compare a trace's ledger with its model calls; no rows if neither was recorded.

    A record that names no executor has one row all the same, whose `executor` is empty: a run
    of which nothing can be compared is PENDING, and must not be lost among those that pass.

    A trace that cannot be judged is PENDING, whatever its ledger says: what is missing of it may
    be what would have agreed.

    Args:
        date: The partition's day.
        model: The partition's model.
        trace: The trace.
        rules: How both sides are compared.
        source: Name of the source that holds the trace.
        source_file: Its file; default: the one that the trace says it came from.
    """
    record = trace.workflow_record
    if record is None:
        return ()
    if trace.problem is not None and record.problem is None:
        record = msgspec.structs.replace(record, problem=trace.problem)
    result = rules.reconcile(record)
    return tuple(
        FidelityRow(
            date=date,
            trace_id=trace.trace_id,
            model=model,
            workflow=trace.workflow,
            task=trace.task,
            trial=trace.trial,
            trace_outcome=result.outcome,
            trace_score=result.score,
            trace_reason=result.reason,
            executor=executor.executor_id,
            verdict=executor.verdict,
            severity=executor.severity,
            score=executor.score,
            reason=executor.reason,
            ledger_tokens=executor.ledger_tokens,
            truth_tokens=executor.truth_tokens,
            ledger_finish=executor.ledger_finish,
            truth_finish=executor.truth_finish,
            source=source,
            source_file=trace.origin.file if source_file is None else source_file,
            file=trace.origin.file,
            sha256=trace.origin.sha256,
            record=trace.origin.record,
            rules=result.rules,
            rules_version=RULES_VERSION,
            checks=executor.checks,
        )
        for executor in result.executors or (_nobody(result.reason),)
    )


def _nobody(reason: str | None) -> ExecutorFidelity:
    """Stands for the executors of a record that names none."""
    checks = (Check(name="comparable", outcome="skipped", reason=reason),)
    return ExecutorFidelity(
        executor_id="", verdict="NoTruth", severity="unchecked", score=None, checks=checks
    )
