"""Scores: taken one at a time, found again by trace and name.

Belongs here: what makes a score the same one, and what is refused. Does not belong here: what
scores are for.

A score is known by its id, its name and the UTC date of its timestamp: the same id on another day
is another score.
"""

from __future__ import annotations

from .contents import Contents, Row


def scores_of(contents: Contents, trace_id: str) -> list[Row]:
    """A trace's scores, as they were written."""
    return [row for row in contents.scores.values() if row.get("traceId") == trace_id]
