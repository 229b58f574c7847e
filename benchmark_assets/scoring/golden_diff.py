"""What differs between a frozen golden trace and a candidate: path, arguments, questions, payload.

Belongs here: differences in words, for people who decide about them. Does not belong here: whether
a candidate is good (`golden_path`): a difference informs and fails nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import Any

import msgspec

from benchmark_assets.model.contract import LegalPath, PathStep
from benchmark_assets.model.trace import ToolCall, TraceSnapshot
from benchmark_assets.scoring.legal_paths import divergence
from benchmark_assets.scoring.matching import show


def path_difference(golden: TraceSnapshot, candidate: TraceSnapshot) -> str | None:
    """Both paths side by side: `get_order ✓, charge_card +, refund_payment ✗ missing`.

    None if the same tools were called in the same order, with the same success.
    """
    if _path(golden) == _path(candidate):
        return None
    # Unvalidated: a recorded name may be none that a contract could have, such as an empty one.
    steps = tuple(PathStep.model_construct(tool=call.name) for call in golden.tool_calls)
    path = LegalPath.model_construct(path=steps)
    found = divergence(path, candidate.tool_calls, "exact")
    return f"{found.diff} (similarity {found.similarity:.2f})"


def differences(golden: TraceSnapshot, candidate: TraceSnapshot) -> list[str]:
    """All that differs in what a fixture can look at, a line each; empty if nothing does."""
    path = path_difference(golden, candidate)
    found = [] if path is None else [f"path: {path}"]
    for before, name, call in _aligned(golden, candidate):
        if before is None:
            found.append(f"{name} with {show(call.arguments)} is new")
        else:
            found += _leaves(before.arguments, call.arguments, name)
    asked, now = _questions(golden), _questions(candidate)
    if asked != now:
        found.append(f"questions: {_asked(asked)} → {_asked(now)}")
    found += _leaves(_payload(golden), _payload(candidate), "final")
    return found


def described(trace: TraceSnapshot) -> list[str]:
    """What a trace holds of what `differences` compares, a line each."""
    calls = [f"{name} with {show(call.arguments)}" for name, call in _numbered(trace)]
    return [
        f"path: {' → '.join(call.name for call in trace.tool_calls) or 'no call'}",
        *calls,
        f"questions: {_asked(_questions(trace))}",
        f"final: {show(_payload(trace))}",
    ]


def _path(trace: TraceSnapshot) -> list[tuple[str, bool]]:
    return [(call.name, call.error is not None) for call in trace.tool_calls]


def _aligned(
    golden: TraceSnapshot, candidate: TraceSnapshot
) -> Iterator[tuple[ToolCall | None, str, ToolCall]]:
    """Each call of the candidate by name and number, with the one that it stands for, if any."""
    before, after = golden.tool_calls, candidate.tool_calls
    stands_for: dict[int, ToolCall] = {}
    names, others = ([call.name for call in calls] for calls in (before, after))
    matcher = SequenceMatcher(None, names, others, autojunk=False)
    for block in matcher.get_matching_blocks():
        for offset in range(block.size):
            stands_for[block.b + offset] = before[block.a + offset]
    for index, (name, call) in enumerate(_numbered(candidate)):
        yield stands_for.get(index), name, call


def _numbered(trace: TraceSnapshot) -> Iterator[tuple[str, ToolCall]]:
    for number, call in enumerate(trace.tool_calls, 1):
        yield f"{call.name} (call {number})", call


def _questions(trace: TraceSnapshot) -> list[int | None]:
    """How many calls had been made when each question was asked; None is unknown."""
    known: list[int | None] = [message.before_call for message in trace.questions]
    return known or ([None] if trace.asked_clarification else [])


def _asked(questions: list[int | None]) -> str:
    return (
        ", ".join("at some time" if at is None else f"before call {at + 1}" for at in questions)
        or "none"
    )


def _payload(trace: TraceSnapshot) -> Any:
    answer = trace.final_answer
    if answer is None:
        return None
    try:
        return msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return answer


def _leaves(before: Any, after: Any, place: str) -> Iterator[str]:
    """What differs in two JSON values: `final.status: 'ok' → 'needs_human'`."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            inner = f"{place}.{key}"
            if key not in after:
                yield f"{inner}: {show(before[key])} is gone"
            elif key not in before:
                yield f"{inner}: {show(after[key])} is new"
            else:
                yield from _leaves(before[key], after[key], inner)
    elif msgspec.json.encode(before) != msgspec.json.encode(after):
        yield f"{place}: {show(before)} → {show(after)}"
