"""Which freedom a contract states that lets a mutant pass: why it is no fault of the contract.

Belongs here: reading, in what a contract *says*, that a mutant may pass. Does not belong here:
making mutants (`operators`) or judging them (`testing`).

Only what is written counts. `extra: allow` in the file is a decision, the same value by default is
a question that nobody asked; so with `args_mode: subset`. A matcher that accepts a value is a
decision about that value. What a contract does not mention, it does not allow.

A call is *free* if the trace passes without it and the contract states that other calls may be
made: then it may be dropped, moved, repeated and made with any arguments, since each of these is
one such call less or one more. For calls that write, `extra: allow` states it or `tools.optional`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from benchmark_assets.model.contract import CallRule, Contract, LegalPath, Trajectory
from benchmark_assets.model.trace import ToolCall
from benchmark_assets.scoring.calls import succeeded
from benchmark_assets.scoring.matching import any_glob, args_mismatches, is_matcher, show
from benchmark_assets.scoring.mutation.edits import Place
from benchmark_assets.scoring.mutation.operators import INVENTED_WRITE, Mutant, Operator, Scene

_OPEN = ("in_order", "any_order", "superset")
"""Orders of a path that let other calls be made besides."""

_UNORDERED = ("any_order", "unordered", "subset", "superset")

_ANYTHING = "trajectory.extra: allow"

Dispensable = Callable[[int], bool]
"""Whether the golden trace passes without the call of an index."""


def freedom(
    scene: Scene, operator: Operator, mutant: Mutant, dispensable: Dispensable
) -> str | None:
    """What in a contract allows a mutant that passes; None if nothing does.

    Args:
        scene: The trace and its contract.
        operator: How the mutant was made.
        mutant: A mutant that passes.
        dispensable: Tells which calls of the golden trace may be missing.
    """
    facts = _Facts(scene, dispensable)
    if operator.name.endswith(("payload field", "payload value")):
        return _in_payload(scene.contract, mutant)
    if mutant.ends:
        endings = scene.contract.ends_with
        return None if endings is None else f"ends_with: {', '.join(endings)}"
    if mutant.asks:
        return facts.unasked(mutant)
    stated = None if mutant.skill is None else facts.skill(mutant.skill)
    return stated or _of_calls(facts, mutant)


def _of_calls(facts: _Facts, mutant: Mutant) -> str | None:
    """What allows a mutant that differs in its calls."""
    if mutant.failed is not None:
        return facts.failure()
    if mutant.changed is not None:
        return facts.changed(mutant.changed, mutant)
    if mutant.added is not None:
        return facts.added(mutant.trace.tool_calls[mutant.added])
    if mutant.moved:
        return facts.moved(mutant)
    if mutant.dropped:
        reasons = [facts.dropped(index) for index in mutant.dropped]
        return None if None in reasons else reasons[0]
    return None


@dataclass(frozen=True)
class _Facts:
    """What a contract states about the calls of a trace."""

    scene: Scene
    dispensable: Dispensable

    @property
    def contract(self) -> Contract:
        return self.scene.contract

    @property
    def trajectory(self) -> Trajectory | None:
        return self.scene.contract.trajectory

    # Calls besides.

    def optional(self, name: str) -> str | None:
        """Whether a tool may be called, as a contract states it, whatever it does."""
        trajectory, tools = self.trajectory, self.contract.tools
        if trajectory is not None and trajectory.extra == "allow" and _said(trajectory, "extra"):
            return _ANYTHING
        for glob in () if tools is None else tools.optional:
            if any_glob([glob])(name):
                return f"tools.optional: {glob}"
        return None

    def besides(self, name: str, *, write: bool) -> str | None:
        """What states that a call may be made besides."""
        stated = self.optional(name)
        trajectory = self.trajectory
        if stated is not None or trajectory is None or write or trajectory.extra == "forbid":
            return stated
        if trajectory.extra == "reads_only":
            return "trajectory.extra: reads_only"
        if trajectory.max_extra_calls:
            return f"trajectory.max_extra_calls: {trajectory.max_extra_calls}"
        orders = [order for order in _orders(trajectory) if order in _OPEN]
        return f"trajectory.order: {orders[0]}" if orders else None

    def free(self, index: int) -> str | None:
        """What states that a call may be there, and need not."""
        stated = self.besides(self.scene.calls[index].name, write=self.wrote(index))
        if not succeeded(self.scene.calls[index]):
            stated = stated or self.failure()
        return stated if stated is not None and self.dispensable(index) else None

    # Kinds of mutants.

    def unasked(self, mutant: Mutant) -> str | None:
        """What states that nobody need be asked; that others may be called does not."""
        trajectory = self.trajectory
        if trajectory is not None and _said(trajectory, "ask_before_write"):
            return "trajectory.ask_before_write: false"
        names = [self.scene.calls[index].name for index in (*mutant.dropped, *mutant.moved)]
        reasons = [self.optional(name) or self.off_path(name) for name in names]
        return None if None in reasons or not reasons else reasons[0]

    def skill(self, name: str) -> str | None:
        """What states that a skill may be loaded, and need not."""
        skills = self.contract.skills
        for glob in () if skills is None else skills.optional:
            if any_glob([glob])(name):
                return f"skills.optional: {glob}"
        return None

    def dropped(self, index: int) -> str | None:
        name = self.scene.calls[index].name
        return self.free(index) or self.off_path(name) or self.repeated(name)

    def added(self, call: ToolCall) -> str | None:
        known = {c.name for i, c in enumerate(self.scene.calls) if i in self.scene.writes}
        write = call.name in known or call.name == INVENTED_WRITE or self.writes(call.name)
        stated = self.besides(call.name, write=write and succeeded(call))
        if not succeeded(call):
            stated = stated or self.failure()
        return stated or self.repeated(call.name, call)

    def moved(self, mutant: Mutant) -> str | None:
        free = (self.free(index) for index in mutant.moved)
        stated = next((reason for reason in free if reason is not None), None)
        if stated is not None or self.trajectory is None:
            return stated
        names = [self.scene.calls[index].name for index in mutant.moved]
        for path in self.trajectory.allowed_paths:
            order = path.order or self.trajectory.order
            on_path = {step.tool for step in path.path}
            if on_path.issuperset(names) and order in _UNORDERED:
                return f"trajectory.order: {order}"
            if _in_turn(path, names[::-1]):
                return "another of trajectory.allowed_paths"
        return None

    def changed(self, index: int, mutant: Mutant) -> str | None:
        call = self.scene.calls[index]
        stated = (_about(rule, name, call, mutant) for rule, name in self.rules(call))
        by_rule = next((reason for reason in stated if reason is not None), None)
        # That a tool may be called does not say that it may write anything.
        unsaid = self.wrote(index) and self.optional(call.name) != _ANYTHING
        return by_rule or (None if unsaid else self.free(index))

    def failure(self) -> str | None:
        health = self.contract.trace_health
        allowed = health.recovered_errors == "allow"
        return "trace_health.recovered_errors: allow" if allowed else None

    # Paths and rules.

    def wrote(self, index: int) -> bool:
        """Whether a call changed the world; one that failed did not."""
        return index in self.scene.writes and succeeded(self.scene.calls[index])

    def writes(self, name: str) -> bool:
        return self.trajectory is not None and any_glob(self.trajectory.writes)(name)

    def off_path(self, name: str) -> str | None:
        """Whether a path is legal without a tool that another one has."""
        if self.trajectory is None:
            return None
        for path in self.trajectory.allowed_paths:
            if any(step.tool == name and step.optional for step in path.path):
                return f"trajectory.allowed_paths: {name} is optional"
            if (path.order or self.trajectory.order) == "subset":
                return "trajectory.order: subset"
        on = [any(s.tool == name for s in p.path) for p in self.trajectory.allowed_paths]
        return "another of trajectory.allowed_paths" if True in on and False in on else None

    def repeated(self, name: str, call: ToolCall | None = None) -> str | None:
        """Whether how often a tool may be called, or made like a call, is stated: not just once."""
        if self.trajectory is None:
            return None
        for path in self.trajectory.allowed_paths:
            if any(step.tool == name and step.repeat for step in path.path):
                return f"trajectory.allowed_paths: {name} may be repeated"
        for index, rule in enumerate(self.trajectory.calls):
            fits = any_glob([rule.tool])(name) and (call is None or _fits(rule, call))
            if fits and rule.max is not None and rule.max > rule.min:
                return f"trajectory.calls[{index}]: min {rule.min}, max {rule.max}"
        return None

    def rules(self, call: ToolCall) -> Iterator[tuple[CallRule, str]]:
        """The rules that a call fits, and their names."""
        for index, rule in enumerate(self.trajectory.calls if self.trajectory else ()):
            if any_glob([rule.tool])(call.name) and _fits(rule, call):
                yield rule, f"trajectory.calls[{index}]"


def _fits(rule: CallRule, call: ToolCall) -> bool:
    return not args_mismatches(rule.args, rule.args_mode, call.arguments)


def _in_turn(path: LegalPath, names: Sequence[str]) -> bool:
    """Whether a path has these tools as its steps, each once and after the one before."""
    tools = [step.tool for step in path.path]
    if any(tools.count(name) != 1 for name in names):
        return False
    places = [tools.index(name) for name in names]
    return places == sorted(places)


def _orders(trajectory: Trajectory) -> Iterator[str]:
    for path in trajectory.allowed_paths:
        if path.order is not None or _said(trajectory, "order"):
            yield path.order or trajectory.order


def _said(section: Any, key: str) -> bool:
    """Whether a key stands in the file, and not only its default."""
    return key in section.model_fields_set


# Arguments.


def _about(rule: CallRule, name: str, call: ToolCall, mutant: Mutant) -> str | None:
    """What a rule states about arguments that lets a change of them pass."""
    if rule.args_mode == "ignore":
        return f"{name}.args_mode: ignore"
    key = mutant.place[0] if mutant.place else None
    listed = key in rule.args
    if rule.args_mode == "keys" and (not listed or mutant.how == "value"):
        return f"{name}.args_mode: keys"
    if not listed:
        free = rule.args_mode == "subset" and _said(rule, "args_mode")
        return f"{name}.args_mode: subset" if free else None
    if mutant.how != "value":
        return None
    found = _matcher_at(rule.args, mutant.place)
    return None if found is None else f"{name}.args.{key}: {show(found)}"


def _matcher_at(expected: Any, place: Place) -> Any:
    """The matcher that decides about a place inside expected values; None if a literal does."""
    node = expected
    for part in place:
        inside = isinstance(node, list) if isinstance(part, int) else isinstance(node, dict)
        if not inside or is_matcher(node):
            break
        try:
            node = node[part]
        except LookupError:
            return None
    return node if is_matcher(node) and "literal" not in node else None


# The final payload.


def _in_payload(contract: Contract, mutant: Mutant) -> str | None:
    """What a schema states about a member of the payload that lets a change of it pass."""
    schema = None if contract.final is None else contract.final.schema_
    if not isinstance(schema, dict):
        return None
    outer = mutant.place[:-1] if mutant.how == "removed" else mutant.place
    node: Any = schema
    for part in outer:
        node = _inside(node, part)
        if node is None:
            return None
    if mutant.how == "value":
        return f"final.schema: {_path(mutant.place)} fits {show(node)}"
    last = mutant.place[-1]
    if isinstance(node, dict) and last in node.get("properties", {}):
        return f"final.schema: {_path(mutant.place)} is not required"
    return None


def _inside(node: Any, part: str | int) -> Any:
    """The schema of a member that a schema mentions; None if it mentions none."""
    if not isinstance(node, dict):
        return None
    properties = node.get("properties")
    if isinstance(properties, dict) and part in properties:
        return properties[part]
    if isinstance(part, int):
        return node.get("items")
    more = node.get("additionalProperties")
    return more if isinstance(more, dict) else None


def _path(place: Place) -> str:
    return ".".join(map(str, place))
