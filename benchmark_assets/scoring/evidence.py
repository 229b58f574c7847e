"""One trace as plugins look at it: the snapshot, what its calls did, and what they mention.

Belongs here: views of a trace that several plugins or contracts share, each made once. Does not
belong here: any rule.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.trace import ToolCall, TraceSnapshot
from benchmark_assets.scoring.activity import Activity, choose_profile, interpret_by
from benchmark_assets.scoring.calls import succeeded
from benchmark_assets.scoring.content import occurs


class Evidence:
    """What one trace shows; made once a trace, whatever the number of contracts.

    Attributes:
        trace: The snapshot.
        profiles: The harness profiles there are, in order of preference.
        names: Names of the tools called, in order.
        all_succeeded: Whether no call failed.
    """

    def __init__(self, trace: TraceSnapshot, profiles: Sequence[HarnessProfile] = ()) -> None:
        self.trace = trace
        self.profiles = tuple(profiles)
        self.names = tuple([call.name for call in trace.tool_calls])
        self.all_succeeded = all(map(succeeded, trace.tool_calls))
        self._chosen: dict[str | None, HarnessProfile | None] = {}
        self._activities: dict[str | None, Activity] = {}

    def profile(self, harness: str | None = None) -> HarnessProfile | None:
        """The profile that the trace's calls are read by; None if none knows any of its tools.

        Args:
            harness: The profile's name; by default the one that knows most of the trace's tools.

        Raises:
            ValueError: If there is no profile of that name.
        """
        if harness not in self._chosen:
            self._chosen[harness] = choose_profile(self.trace, self.profiles, harness)
        return self._chosen[harness]

    def activity(self, harness: str | None = None) -> Activity:
        """What the trace's calls did, as one profile says.

        Args:
            harness: The profile's name; by default the one that knows most of the trace's tools.

        Raises:
            ValueError: If there is no profile of that name.
        """
        if harness not in self._activities:
            self._activities[harness] = interpret_by(self.trace, self.profile(harness))
        return self._activities[harness]

    def mention(self, text: str, *, whole: bool = False) -> int | None:
        """Index of the first call in whose arguments or result a text occurs; None if in none.

        Args:
            text: Looked for as it is; case matters.
            whole: Whether nothing of a longer name may adjoin it.
        """
        holds = occurs if whole else str.__contains__
        pairs = ((text, said) if whole else (said, text) for said in self._texts)
        return next((index for index, pair in enumerate(pairs) if holds(*pair)), None)

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        return tuple(call_text(call) for call in self.trace.tool_calls)


def call_text(call: ToolCall) -> str:
    """All that a call says: its arguments, result and error, as one text to search in.

    Every value stands in it twice: as JSON, so that `"status": "ok"` is found however it was
    nested, and text by text, so that a quote or a line break in one does not hide what is there.
    """
    parts = (call.arguments, call.result, call.error)
    return "\n".join(piece for part in parts if part is not None for piece in _pieces(part))


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
        return
    yield json.dumps(value, ensure_ascii=False, sort_keys=True)
    yield from _leaves(value)


def _leaves(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _leaves(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leaves(item)
