"""What single rows of a Claude Code session say.

Belongs here: what every reader of such rows needs. Does not belong here: what a session comes to
(`claude_code`), and what its agents report (`claude_code_ledger`).
"""

from __future__ import annotations

from typing import Any

from benchmark_assets.adapters.formats.base import whole_number
from benchmark_assets.adapters.formats.messages import as_dict
from benchmark_assets.model.trace import Tokens

SYNTHETIC = "<synthetic>"
"""The model of answers that the program wrote itself."""


def is_models(row: dict[str, Any]) -> bool:
    """Whether a model gave the answer of a row, and not the program, such as to report an error."""
    model = as_dict(row.get("message")).get("model")
    return model != SYNTHETIC and row.get("isApiErrorMessage") is not True


def tokens_of(usage: Any) -> Tokens:
    """Disjoint buckets as they are: `input_tokens` counts no cached ones.

    `output_tokens` includes reasoning, which is not told apart. Many versions write the count
    that stood when the answer began to stream, so outputs are often far too low; the source's own
    totals have the same figures.
    """
    fields = as_dict(usage)
    return Tokens(
        input=whole_number(fields.get("input_tokens")),
        output=whole_number(fields.get("output_tokens")),
        cache_read=whole_number(fields.get("cache_read_input_tokens")),
        cache_write=whole_number(fields.get("cache_creation_input_tokens")),
    )
