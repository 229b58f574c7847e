"""What a response of the Microsoft Agent Framework reports: tokens and finish reason.

Belongs here: reading the framework's response and update objects into `model.fidelity`. Does not
belong here: where they come from (`agent_framework`).

Numbers are copied the moment they are seen. The framework writes on into objects that it has
handed out: a tool loop leaves the total of all its turns in the last turn's response, so that a
response that is kept reads differently afterwards.

*Unknown is not zero.* A client that reports no usage leaves an empty mapping, and that is None.
Whether cached tokens are counted in the input is the provider's: the framework hands on what the
client wrote, and so does this.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_framework import AgentResponse, AgentResponseUpdate, ChatResponse, ChatResponseUpdate

from benchmark_assets.model.fidelity import Usage

_FIELDS = {
    "input": "input_token_count",
    "output": "output_token_count",
    "total": "total_token_count",
    "cached": "cache_read_input_token_count",
    "reasoning": "reasoning_output_token_count",
}


def usage_of(details: Mapping[str, Any] | None) -> Usage | None:
    """Copy a response's usage.

    Args:
        details: The framework's usage mapping, counts in tokens; it may have other keys.

    Returns:
        None if it has no count that is understood. `total` is the reported one, or the sum
        of input and output where both are known: one alone would look like the whole.
    """
    counts = {name: _count((details or {}).get(key)) for name, key in _FIELDS.items()}
    if counts["total"] is None and counts["input"] is not None and counts["output"] is not None:
        counts["total"] = counts["input"] + counts["output"]
    return None if all(count is None for count in counts.values()) else Usage(**counts)


def finish_of(value: object) -> str | None:
    """Copy a response's or an update's finish reason, raw; None if it has none."""
    reason = getattr(value, "finish_reason", None)
    return None if reason is None else str(reason)


def added(usages: Iterable[Usage | None]) -> Usage | None:
    """Sum usages, each count over where it is known; None if none is known."""
    known = [usage for usage in usages if usage is not None]
    if not known:
        return None

    def total(name: str) -> int | None:
        counts = [count for usage in known if (count := getattr(usage, name)) is not None]
        return sum(counts) if counts else None

    return Usage(**{name: total(name) for name in _FIELDS})


@dataclass(slots=True)
class Reported:
    """What one response, or the updates of a stream, reported so far."""

    usage: Usage | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    model: str | None = None
    _parts: list[Usage | None] = field(default_factory=list)
    _replaced: bool = False

    def take(self, response: ChatResponse[Any] | AgentResponse[Any]) -> None:
        """Copy a whole response; after a stream, only what its updates did not say.

        The framework makes a stream's final response from the same update objects that
        middleware may have rewritten by then.
        """
        self.usage = self.usage or usage_of(response.usage_details)
        self.finish_reason = self.finish_reason or finish_of(response)
        self.response_id = self.response_id or response.response_id
        self.model = self.model or getattr(response, "model", None)

    def take_update(self, update: ChatResponseUpdate | AgentResponseUpdate) -> None:
        """Copy what a stream's update adds."""
        for content in update.contents:
            if content.type == "usage":
                replaces = getattr(content, "merge_mode", None) == "replace"
                self._add(usage_of(content.usage_details), replaces=replaces)
        self.finish_reason = finish_of(update) or self.finish_reason
        self.response_id = update.response_id or self.response_id
        self.model = getattr(update, "model", None) or self.model

    def _add(self, usage: Usage | None, *, replaces: bool) -> None:
        """Add one usage of a stream.

        The tool loop sends its first turn's usage as it is and afterwards the total of all turns
        so far, marked as a replacement. An executor that runs its agent again in the same
        invocation starts over, so what comes unmarked after a replacement begins another run.
        """
        if replaces:
            # The run's usage so far is the last part; only that is replaced.
            self._parts[-1:] = [usage]
        elif self._parts and not self._replaced:
            self._parts[-1] = added([self._parts[-1], usage])
        else:
            self._parts.append(usage)
        self._replaced = replaces
        self.usage = added(self._parts)


def _count(value: object) -> int | None:
    """A count of tokens; None for anything that is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None
