"""Which contracts judge a trace.

Belongs here: `applies_to`, and an index so that a trace meets only the contracts that could
apply. Does not belong here: judging.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from benchmark_assets.model.contract import AppliesTo, Contract, TextRule
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.scoring.matching import any_glob

_SPACES = re.compile(r"\s+")


def fold_spaces(text: str) -> str:
    """A prompt as it is compared: runs of white space are one space, none at the ends."""
    return _SPACES.sub(" ", text).strip()


def _one(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


# Field of `applies_to` → the trace's values for it. Order is that of the index: the field that
# usually selects fewest contracts comes first.
_FIELDS: dict[str, Callable[[TraceSnapshot], tuple[str, ...]]] = {
    "task": lambda trace: _one(trace.task),
    "prompt": lambda trace: _one(None if trace.prompt is None else fold_spaces(trace.prompt)),
    "workflow": lambda trace: _one(trace.workflow),
    "trace_name": lambda trace: _one(trace.name),
    "tags": lambda trace: trace.tags,
    "agent": lambda trace: trace.agents,
    "environment": lambda trace: _one(trace.environment),
}


def metadata_text(metadata: dict[str, Any], key: str) -> str | None:
    """A metadata value as text, found under `key` or by its dotted path; None if absent."""
    value: Any = metadata.get(key)
    if value is None:
        value = metadata
        for part in key.split("."):
            value = value.get(part) if isinstance(value, dict) else None
            if value is None:
                return None
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    # Python's spelling of numbers, as `applies_to` has it: 1e+22, where others write 1e22.
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _holds(rule: TextRule, values: Iterable[str], *, fold: bool) -> bool:
    if rule.equals is not None:
        wanted = {fold_spaces(text) for text in rule.equals} if fold else set(rule.equals)
        return any(value in wanted for value in values)
    if rule.contains is not None:
        part = (fold_spaces(rule.contains) if fold else rule.contains).casefold()
        return any(part in value.casefold() for value in values)
    if rule.regex is not None:
        return any(re.search(rule.regex, value) for value in values)
    assert rule.glob is not None
    fits = any_glob([fold_spaces(rule.glob) if fold else rule.glob])
    return any(fits(value) for value in values)


def applies(contract: Contract, trace: TraceSnapshot) -> bool:
    """Whether a contract judges a trace: all conditions of its `applies_to` hold."""
    return _all_hold(contract.applies_to, trace)


def _all_hold(conditions: AppliesTo, trace: TraceSnapshot) -> bool:
    if conditions.any_of and not any(_all_hold(item, trace) for item in conditions.any_of):
        return False
    for field, values in _FIELDS.items():
        rule: TextRule | None = getattr(conditions, field)
        if rule is not None and not _holds(rule, values(trace), fold=field == "prompt"):
            return False
    for key, rule in conditions.metadata.items():
        text = metadata_text(trace.metadata, key)
        if text is None or not _holds(rule, (text,), fold=False):
            return False
    return True


def describe(conditions: AppliesTo) -> str:
    """The conditions in words: `workflow refunds and tags glob nightly-*`."""
    rules = {field: getattr(conditions, field) for field in _FIELDS}
    rules |= {f"metadata {key}": rule for key, rule in conditions.metadata.items()}
    parts = [f"{field} {_describe_rule(rule)}" for field, rule in rules.items() if rule is not None]
    if conditions.any_of:
        any_of = " or ".join(map(describe, conditions.any_of))
        parts.append(f"({any_of})" if parts and len(conditions.any_of) > 1 else any_of)
    return " and ".join(parts)


def _describe_rule(rule: TextRule) -> str:
    if rule.equals is not None:
        return " or ".join(rule.equals)
    (name, value), *_ = rule.model_dump(exclude_none=True).items()
    return f"{name} {value}"


def _index_keys(conditions: AppliesTo) -> set[tuple[str, str]] | None:
    """(Field, value) of which every trace that fits has one; None if there are none such."""
    for field in _FIELDS:
        rule: TextRule | None = getattr(conditions, field)
        if rule is not None and rule.equals is not None:
            fold = fold_spaces if field == "prompt" else str
            return {(field, fold(text)) for text in rule.equals}
    found: set[tuple[str, str]] = set()
    for item in conditions.any_of:
        keys = _index_keys(item)
        if keys is None:
            return None
        found |= keys
    return found or None


class Router:
    """Finds the contracts of a trace by index, not by trying each.

    Each contract is filed under its first `equals` condition, or under one of each of its
    alternatives; those with none are tried on every trace. `route` keeps the order of `contracts`.
    """

    def __init__(self, contracts: Sequence[Contract]) -> None:
        self._filed: dict[tuple[str, str], list[int]] = defaultdict(list)
        self._rest: list[int] = []
        self._contracts = tuple(contracts)
        for index, contract in enumerate(contracts):
            self._file(index, contract)

    def _file(self, index: int, contract: Contract) -> None:
        keys = _index_keys(contract.applies_to)
        if keys is None:
            self._rest.append(index)
        for key in keys or ():
            self._filed[key].append(index)

    def _candidates(self, trace: TraceSnapshot) -> Iterator[int]:
        yield from self._rest
        for field, values in _FIELDS.items():
            for value in values(trace):
                yield from self._filed.get((field, value), ())

    def route(self, trace: TraceSnapshot) -> list[int]:
        """Indices into `contracts` of those that judge the trace, ascending."""
        return [
            index
            for index in sorted(set(self._candidates(trace)))
            if applies(self._contracts[index], trace)
        ]
