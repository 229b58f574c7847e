"""Checks that a contract could have made and does not: what would have killed a mutant.

Belongs here: for each kind of mutant the checks that may tell it from the golden trace, the
loosest first, and putting one into a contract. Does not belong here: trying them
(`testing`): a check is proposed only after the golden trace passed with it and the mutant
did not.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import msgspec
from pydantic import ValidationError

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.identity import value_hash
from benchmark_assets.model.matchers import reads_as_matcher
from benchmark_assets.model.mutation import Cure
from benchmark_assets.model.trace import ToolCall
from benchmark_assets.scoring.calls import succeeded
from benchmark_assets.scoring.matching import HASH_DIGITS, any_glob, args_mismatches, glob_escape
from benchmark_assets.scoring.mutation.operators import Mutant, Scene

LONGEST_TEXT = 60
"""Longest text, in characters, that is proposed to be compared whole."""

_FIXTURE_SECTIONS = ("trajectory", "final", "budget", "ends_with", "tools.forbidden")


def cures_for(scene: Scene, mutant: Mutant, *, fixture: bool = False) -> Iterator[Cure]:
    """Checks that may kill a mutant, the ones that say least besides first.

    Args:
        scene: The golden trace and its contract.
        mutant: A mutant that passes.
        fixture: Whether the contract is a fixture, which has fewer sections.
    """
    for place, value in _candidates(scene, mutant):
        if not fixture or place.startswith(_FIXTURE_SECTIONS):
            yield Cure(place=place, value=value)


def cured(contract: Contract, cure: Cure) -> Contract | None:
    """The contract with a check more; None if it cannot have it."""
    data = copy.deepcopy(contract.model_dump(mode="json", by_alias=True, exclude_unset=True))
    *outer, last = cure.place.split(".")
    node = data
    for key in outer:
        if not isinstance(node.get(key), dict):
            node[key] = {}
        node = node[key]
    if last.endswith("[]"):
        key = last.removesuffix("[]")
        node[key] = [*(node.get(key) or ()), cure.value]
    else:
        node[last] = cure.value
    try:
        return Contract.model_validate(data)
    except ValidationError:
        return None


Candidate = tuple[str, Any]


def _candidates(scene: Scene, mutant: Mutant) -> Iterator[Candidate]:
    if mutant.changed is not None:
        yield from _arguments(scene, mutant.changed, mutant)
    elif mutant.added is not None:
        yield from _added(scene, mutant.trace.tool_calls[mutant.added])
    elif mutant.moved:
        yield from _order(scene, mutant.moved)
    elif mutant.dropped:
        yield from _dropped(scene, mutant.dropped)
    elif mutant.failed is not None:
        yield "trace_health.recovered_errors", "fail"
    if mutant.trace.questions != scene.trace.questions or mutant.moved:
        yield "trajectory.ask_before_write", True
    if mutant.trace.asked_clarification != scene.trace.asked_clarification:
        yield "trajectory.ask_before_write", True
    if mutant.trace.skills != scene.trace.skills:
        loaded = dict.fromkeys(s.name for s in scene.activity.skills if s.status != "error")
        yield "skills.required", [glob_escape(name) for name in loaded]
    if mutant.trace.final_answer != scene.trace.final_answer:
        yield from _answer(scene, mutant)


def _arguments(scene: Scene, index: int, mutant: Mutant) -> Iterator[Candidate]:
    call = scene.calls[index]
    rule: dict[str, Any] = {"tool": glob_escape(call.name)}
    if mutant.how == "added":
        keys = list(call.arguments or ())
        given = {"args": {key: {"any": True} for key in keys}, "args_mode": "exact"}
    elif mutant.how == "removed" and mutant.place:
        given = {"args": [mutant.place[0]], "args_mode": "keys"}
    elif mutant.place:
        key = mutant.place[0]
        value = call.arguments[key] if isinstance(call.arguments, dict) else None
        for expected in expected_values(value):
            yield from _often(scene, {**rule, "args": {key: expected}})
        return
    else:
        return
    yield from _often(scene, {**rule, **given})


def _often(scene: Scene, rule: dict[str, Any]) -> Iterator[Candidate]:
    """A rule for one call of a tool, for as many as there are, and for every one."""
    args, mode = rule["args"], rule.get("args_mode", "subset")
    wanted = args if isinstance(args, dict) else {key: {"any": True} for key in args}
    made = sum(
        any_glob([rule["tool"]])(call.name)
        and succeeded(call)
        and not args_mismatches(wanted, mode, call.arguments)
        for call in scene.calls
    )
    yield "trajectory.calls[]", rule
    if made > 1:
        yield "trajectory.calls[]", {**rule, "min": made}
    yield "trajectory.calls[]", {**rule, "occurrences": "each"}


def expected_values(value: Any) -> Iterator[Any]:
    """A value as a rule's `args` demand it; of a long text how it begins, and then its hash."""
    if isinstance(value, str) and (len(value) > LONGEST_TEXT or "\n" in value):
        first = next((line.strip() for line in value.splitlines() if line.strip()), "")
        yield {"contains": first[:LONGEST_TEXT]}
        yield {"sha256": value_hash(value)[:HASH_DIGITS]}
    else:
        yield {"literal": value} if reads_as_matcher(value) else value


def _added(scene: Scene, call: ToolCall) -> Iterator[Candidate]:
    made = _made(scene, call.name)
    trajectory = scene.contract.trajectory
    if made:
        yield "trajectory.calls[]", {"tool": glob_escape(call.name), "max": made}
    elif trajectory is not None and trajectory.writes and trajectory.extra == "reads_only":
        yield "trajectory.writes[]", glob_escape(call.name)
    yield "trajectory.extra", "reads_only"
    yield "trajectory.extra", "forbid"
    for most in range(len(scene.calls) if trajectory is not None else 0):
        yield "trajectory.max_extra_calls", most
    if not made:
        yield "tools.forbidden[]", glob_escape(call.name)
    yield from _whole_path(scene, "exact")


def _order(scene: Scene, moved: tuple[int, ...]) -> Iterator[Candidate]:
    names = [scene.calls[index].name for index in moved]
    if len(set(names)) == 2:
        yield "trajectory.before[]", [glob_escape(name) for name in names]
    yield from _whole_path(scene, "in_order")


def _dropped(scene: Scene, dropped: tuple[int, ...]) -> Iterator[Candidate]:
    for name in dict.fromkeys(scene.calls[index].name for index in dropped):
        made = _made(scene, name)
        if made:
            often = {"min": made} if made > 1 else {}
            yield "trajectory.calls[]", {"tool": glob_escape(name), **often}
        yield "tools.required[]", glob_escape(name)
    yield from _whole_path(scene, "in_order")


def _made(scene: Scene, name: str) -> int:
    """How often a tool was called successfully."""
    return sum(call.name == name and succeeded(call) for call in scene.calls)


def _whole_path(scene: Scene, order: str) -> Iterator[Candidate]:
    path = [call.name for call in scene.calls if succeeded(call)]
    if path:
        yield "trajectory.allowed_paths", [{"path": path, "order": order}]


def _answer(scene: Scene, mutant: Mutant) -> Iterator[Candidate]:
    answer = scene.trace.final_answer or ""
    try:
        payload = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        payload = None
    if isinstance(payload, dict) and mutant.place and mutant.place[0] in payload:
        key = mutant.place[0]
        const = {"const": payload[key]}
        final = scene.contract.final
        if final is None or final.schema_ is None:
            schema = {"type": "object", "required": [key], "properties": {key: const}}
            yield "final.schema", schema
        else:
            if mutant.how == "removed":
                yield "final.schema.required[]", key
            if isinstance(key, str) and "." not in key:
                yield f"final.schema.properties.{key}", const
    elif isinstance(payload, dict) and payload:
        yield "final.schema", {"type": "object", "required": list(payload)}
    if isinstance(payload, dict | list):
        yield "final.schema", {"const": payload}
    words = " ".join(answer.split())
    if words:
        part = words if len(words) <= LONGEST_TEXT else words[:LONGEST_TEXT].rpartition(" ")[0]
        yield "final.contains[]", part or words[:LONGEST_TEXT]
