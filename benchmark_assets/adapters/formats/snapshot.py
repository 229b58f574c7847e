"""The snapshot itself: one JSON object, a list of them, or JSON Lines.

This is what `bench normalize` writes and what any tool can write to be benchmarked: the fields
of `TraceSnapshot`, of which only `trace_id` is always needed. Unknown fields are ignored;
`origin` is filled in from the file when it is left out, and kept when the snapshot already
says which bytes it came from.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import (
    LARGEST,
    TraceFile,
    parse_time,
    text_or_none,
)
from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import (
    ErrorSpan,
    FileEvent,
    Generation,
    Message,
    SkillLoad,
    Tokens,
    ToolCall,
    TraceSnapshot,
)

# The last two are all that an error row may have: what was normalised can be read again.
_MARKS = frozenset(
    {
        "tool_calls",
        "generations",
        "messages",
        "final_answer",
        "prompt",
        "ended",
        "origin",
        "problem",
    }
)
# Rows of observations have the id of a trace too, and list the calls of each.
_SPAN = frozenset({"type", "start_time"})
_LARGEST_TRIAL = 2**31 - 1


class SnapshotFormat:
    """Reads snapshots."""

    name = "snapshot"
    description = "normalised snapshots, JSON or JSON Lines"

    def matches(self, file: TraceFile) -> bool:
        """Objects with a `trace_id` and at least one field of a snapshot's, alone or in a list.

        One such object is enough: the others may be broken.
        """
        return any(
            isinstance(item, dict)
            and "trace_id" in item
            and not _MARKS.isdisjoint(item)
            and not item.keys() >= _SPAN
            for item in file.records()
        )

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield each snapshot; one that does not fit the fields' types has `problem` set."""
        if file.is_json:
            value = file.json
            if isinstance(value, list):
                for index, item in enumerate(value):
                    yield self._one(file, f"[{index}]", item)
            else:
                yield self._one(file, None, value)
            return
        for number, value in file.lines():
            yield self._one(file, f"line {number}", value)

    def _one(self, file: TraceFile, record: str | None, value: Any) -> TraceSnapshot:
        origin = file.origin(self.name, record)
        if isinstance(value, InputError):
            return TraceSnapshot(
                trace_id=file.made_id(record or ""),
                origin=origin,
                problem=str(value).replace(file.name, file.key),
            )
        try:
            if not isinstance(value, dict):
                raise msgspec.ValidationError(f"Expected `object`, got `{type(value).__name__}`")
            misspelt = "; ".join(_misspelt(value))
            if misspelt:
                raise msgspec.ValidationError(misspelt)
            if "origin" not in value:
                value = {**value, "origin": msgspec.to_builtins(origin)}
            try:
                snapshot = msgspec.convert(value, TraceSnapshot)
            except msgspec.ValidationError:
                snapshot = msgspec.convert(_as_meant(value), TraceSnapshot)
            _check_range(snapshot)
        except (msgspec.ValidationError, RecursionError) as error:
            where = f"{file.key}: {record}: " if record else f"{file.key}: "
            fields = value if isinstance(value, dict) else {}
            # What can still be read places the error row where people look for the trace.
            return TraceSnapshot(
                trace_id=text_or_none(fields.get("trace_id")) or file.made_id(record or ""),
                origin=origin,
                name=text_or_none(fields.get("name")),
                workflow=text_or_none(fields.get("workflow")),
                model=text_or_none(fields.get("model")),
                task=text_or_none(fields.get("task")),
                started_at=parse_time(fields.get("started_at")),
                problem=f"{where}is no valid snapshot: {error}",
            )
        return _with_parsed_arguments(snapshot)


_PARTS: dict[str, type[msgspec.Struct]] = {
    "tokens": Tokens,
    "tool_calls": ToolCall,
    "generations": Generation,
    "messages": Message,
    "skills": SkillLoad,
    "files": FileEvent,
    "error_spans": ErrorSpan,
    "workflow_record": WorkflowRecord,
    "ledger": LedgerEntry,
    "turns": ModelTurn,
    "usage": Usage,
}
_ENDED = {"stop_reason": "finish_reason"}
_CALLED: dict[type[msgspec.Struct], dict[str, str]] = {
    ToolCall: {"tool": "name", "args": "arguments", "input": "arguments", "output": "result"},
    LedgerEntry: _ENDED,
    ModelTurn: _ENDED,
    Usage: {
        "prompt": "input",
        "completion": "output",
        "promptTokens": "input",
        "prompt_tokens": "input",
        "completionTokens": "output",
        "completion_tokens": "output",
        **{
            f"{name}{end}": name
            for name in Usage.__struct_fields__
            for end in ("Tokens", "_tokens")
        },
    },
}
"""What others call the keys of a part."""


def _misspelt(value: Any, part: type[msgspec.Struct] = TraceSnapshot, at: str = "") -> list[str]:
    """Unknown keys that stand where a known one should: dropped, they would count as nothing.

    Other unknown keys are a writer's own and ignored.
    """
    if not isinstance(value, dict):
        return []
    known = part.__struct_fields__
    absent = [key for key in known if key not in value]
    found = []
    for key, item in value.items():
        if key in known:
            inner = _PARTS.get(key)
            items = item if isinstance(item, list) else [item]
            for index, one in enumerate(items):
                if inner is None:
                    break
                where = f"{at}{key}[{index}]." if isinstance(item, list) else f"{at}{key}."
                found += _misspelt(one, inner, where)
            continue
        near = difflib.get_close_matches(key, absent, n=1, cutoff=0.8)
        meant = _CALLED.get(part, {}).get(key)
        meant = meant if meant in absent else near[0] if near else None
        if meant is not None:
            found.append(f"{at}{key} is not a known key; did you mean '{meant}'?")
    return found


_TIMES = frozenset({"started_at", "ended_at", "at"})
_WHOLE = frozenset(
    {"duration_ms", "calls", *Tokens.__struct_fields__, *Usage.__struct_fields__},
)


def _as_meant(value: Any, key: str = "") -> Any:
    """Read times and counts as people's tools write them.

    A time may be any ISO 8601 text or Unix seconds; a duration or count may be a float.
    """
    if isinstance(value, dict):
        return {name: _as_meant(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_as_meant(item) for item in value]
    if key in _TIMES and isinstance(value, str | int | float):
        time = parse_time(value)
        return value if time is None else time.isoformat()
    if key in _WHOLE and isinstance(value, float) and isfinite(value):
        return round(value)
    return value


def _with_parsed_arguments(snapshot: TraceSnapshot) -> TraceSnapshot:
    """Arguments that are JSON in a text, as OpenAI's API has them, become what they say."""
    if not any(isinstance(call.arguments, str) for call in snapshot.tool_calls):
        return snapshot
    calls = []
    for call in snapshot.tool_calls:
        arguments = call.arguments
        if isinstance(arguments, str):
            with contextlib.suppress(msgspec.DecodeError, RecursionError):
                arguments = msgspec.json.decode(arguments)
        calls.append(msgspec.structs.replace(call, arguments=arguments))
    return msgspec.structs.replace(snapshot, tool_calls=tuple(calls))


def _check_range(snapshot: TraceSnapshot) -> None:
    """Refuse what types alone allow: an empty id, and numbers that measure nothing.

    Raises:
        msgspec.ValidationError: Names the first field that is wrong.
    """
    if not snapshot.trace_id:
        raise msgspec.ValidationError("Expected a text that is not empty - at `$.trace_id`")
    numbers: list[tuple[str, float | None, int]] = [
        ("trial", snapshot.trial, _LARGEST_TRIAL),
        ("duration_ms", snapshot.duration_ms, LARGEST),
        ("cost_usd", snapshot.cost_usd, LARGEST),
    ]
    spent = [("tokens", snapshot.tokens)]
    for index, generation in enumerate(snapshot.generations):
        spent.append((f"generations[{index}].tokens", generation.tokens))
        numbers.append((f"generations[{index}].cost_usd", generation.cost_usd, LARGEST))
    for name, tokens in spent:
        for bucket, count in zip(tokens.__struct_fields__, tokens.buckets(), strict=True):
            numbers.append((f"{name}.{bucket}", count, LARGEST))
    numbers += _record_numbers(snapshot.workflow_record)
    for name, value, most in numbers:
        if value is not None and not 0 <= value <= most:
            raise msgspec.ValidationError(f"Expected a number from 0 to {most} - at `$.{name}`")


def _record_numbers(record: WorkflowRecord | None) -> Iterator[tuple[str, float | None, int]]:
    """Each number of both sides of a workflow, with its place and the most that it may be.

    Raises:
        msgspec.ValidationError: An executor has no name, so that nobody could tell whose it is.
    """
    if record is None:
        return
    sides: tuple[tuple[str, Sequence[LedgerEntry | ModelTurn]], ...] = (
        ("ledger", record.ledger),
        ("turns", record.turns),
    )
    for side, items in sides:
        for index, item in enumerate(items):
            at = f"workflow_record.{side}[{index}]"
            if not item.executor:
                text = f"Expected a text that is not empty - at `$.{at}.executor`"
                raise msgspec.ValidationError(text)
            if isinstance(item, LedgerEntry):
                yield f"{at}.calls", item.calls, LARGEST
            for name in Usage.__struct_fields__ if item.usage is not None else ():
                yield f"{at}.usage.{name}", getattr(item.usage, name), LARGEST


FORMAT = SnapshotFormat()
