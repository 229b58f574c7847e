"""Checks as a column of a Parquet file.

Belongs here: the fields of a check, and a check as a cell. Does not belong here: the files that
have such a column (`run_files`, `fidelity_months`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from benchmark_assets.model.verdict import Check, Where

FIELDS: tuple[pa.Field, ...] = (
    pa.field("name", pa.string(), nullable=False),
    pa.field("outcome", pa.string(), nullable=False),
    pa.field("expected", pa.string()),
    pa.field("observed", pa.string()),
    pa.field("reason", pa.string()),
    pa.field("span_id", pa.string()),
    pa.field("call", pa.int32()),
)


def check_cell(check: Check) -> dict[str, Any]:
    """A check as a value of `FIELDS`."""
    return {
        "name": check.name,
        "outcome": check.outcome,
        "expected": check.expected,
        "observed": check.observed,
        "reason": check.reason,
        "span_id": check.where.span_id if check.where else None,
        "call": check.where.call if check.where else None,
    }


def check_of(cell: Mapping[str, Any]) -> Check:
    """The check that `check_cell` made a value of."""
    span_id, call = cell["span_id"], cell["call"]
    return Check(
        name=cell["name"],
        outcome=cell["outcome"],
        expected=cell["expected"],
        observed=cell["observed"],
        reason=cell["reason"],
        where=None if span_id is None and call is None else Where(span_id=span_id, call=call),
    )
