"""Hypothesis strategies for what traces may hold.

Belongs here: JSON data and parts of traces. Does not belong here: contracts, whose shape is
each test's own matter.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
"""Texts without lone surrogates, which no JSON reader of ours lets in."""

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63])
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)

_KEYS = st.sampled_from(["a", "b", "id", "any", "regex", "tol", "literal", "contains"]) | texts


def json_values() -> st.SearchStrategy[Any]:
    """Any JSON value; keys that matchers use are frequent."""
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
        max_leaves=12,
    )


def tool_calls(names: list[str]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Tool calls of these tools as JSON data: any arguments, results, statuses and errors."""
    return st.lists(
        st.fixed_dictionaries(
            {
                "name": st.sampled_from(names),
                "arguments": st.dictionaries(_KEYS, scalars, max_size=3) | json_values(),
                "result": json_values(),
                "status": st.sampled_from(["ok", "error", None]),
            },
            optional={"error": texts},
        ),
        max_size=6,
    )
