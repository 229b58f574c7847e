"""Both sides of a workflow from a tree of spans: what agents reported, and what models used.

Belongs here: whose a model call is, which spans record the same call, and which reports say the
same thing twice. Does not belong here: how a format spells spans (`formats`), or comparing the
two sides (`scoring/trace_fidelity`).

*Ledger.* An entry for each span of an agent, under the id of the executor that ran it, else under
the agent's own name. *Truth.* A turn for each call of a model, as one of its nearest agent.

*A call counts once*, however many spans record it. Spans with one response id are one call. A
model span directly inside another is the same call seen from further in, or one of the calls that
the outer one sums up, so the inner ones count; unless only the outer one knows what was used.

*A report counts once.* An agent that only wraps others, as a crew or a graph does, calls no model
of its own: what it reports is again what those below it report, or used. Held against its own
calls it would always be too much. So where it repeats what is below it, it has no entry; where
nothing below it reports anything, it reports for them, and their calls are held against it; and
where it says something else, it has an entry that nothing was recorded for, since then it may
have called a model that is not instrumented. An agent recorded twice, a span inside the
other, is the simplest such wrapper.

*Nor is a total that takes others in a report of its own.* Of an agent that calls models and runs
agents below it, some frameworks report the sum of both. Where what it reports is exactly what its
own calls used and what is below it, its entry is what is left when that is taken out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

import msgspec

from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord

OUTSIDE = "(outside any agent)"
"""The executor of model calls that no agent and no executor made."""

UNNAMED = "(unnamed agent)"

DEEPEST = 16
"""So many nested executors are named by a path; of more, the innermost."""

NodeKind = Literal["agent", "model", "executor", "tool", "other"]


class SpanNode(msgspec.Struct, frozen=True, kw_only=True):
    """What counts of one span.

    Attributes:
        id: The span's id; a second node of the same id and kind is the same span again.
        parent_id: None, or unknown here, for a root.
        name: The span's name, for want of an agent's.
        kind: `tool` says that a model call inside it is not the one around it; `other` has no
            meaning of its own.
        executor: An agent's name, an executor's id.
        usage: In tokens: input counts cached ones in, output reasoning.
        finish_reason: Raw.
        calls: An agent's own count of its model calls.
        derived: Whether an agent's usage is computed from the very spans of its model calls.
        response_id: The provider's id of a model's response.
        model: A model call's model.
        error: Why it failed, if it failed.
        started_at: Without a zone it is taken for UTC.
    """

    id: str
    parent_id: str | None = None
    name: str | None = None
    kind: NodeKind
    executor: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    calls: int | None = None
    derived: bool = False
    response_id: str | None = None
    model: str | None = None
    error: str | None = None
    started_at: datetime | None = None


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a model, of whichever spans record it.

    Attributes:
        node: The span that counts, with what only others know of the call filled in.
        agent: Id of the nearest agent's span; None outside any.
        duplicates: Ids of the other spans that record it.
    """

    node: SpanNode
    agent: str | None = None
    duplicates: tuple[str, ...] = ()


def model_calls(nodes: Sequence[SpanNode]) -> tuple[ModelCall, ...]:
    """The calls of models, each once, in the order in which they started.

    Each node of kind `model` is the node of one call or one of its duplicates.
    """
    tree = _Tree(nodes)
    return tuple(
        ModelCall(
            node=call.node,
            agent=None if call.agent is None else tree.nodes[call.agent].id,
            duplicates=tuple(tree.nodes[other].id for other in call.duplicates)
            + tuple(repeated for other in call.all for repeated in tree.repeated.get(other, ())),
        )
        for call in _calls(tree)
    )


def workflow_record(nodes: Sequence[SpanNode], name: str | None = None) -> WorkflowRecord | None:
    """Both sides of a trace.

    Args:
        nodes: All spans of one trace in any order; those without meaning tie others together.
        name: The trace's name.

    Returns:
        None if no agent or executor reports anything, so that there is nothing to compare.
    """
    tree = _Tree(nodes)
    calls = _calls(tree)
    reports = _Reports(tree, calls)
    ledger = tuple(reports.entries())
    if not any(_entry_says(entry) for entry in ledger):
        return None
    turns = tuple(_turn(tree, call, reports.speaker) for call in calls)
    names = [tree.names[i] for i, node in enumerate(tree.nodes) if node.kind == "executor"]
    executors = dict.fromkeys(
        [*names, *(entry.executor for entry in ledger), *(turn.executor for turn in turns)]
    )
    return WorkflowRecord(
        name=name,
        executors=tuple(executors),
        ledger=ledger,
        turns=turns,
        traced=_traced(executors, ledger, turns),
        # Some instrumentations put usage on agents and never an ending.
        endings=any(entry.finish_reason is not None for entry in ledger),
    )


# The tree.


class _Tree:
    """Nodes in order of their start, and what is around each; indices stand for nodes.

    Parents that are missing, or that would make a circle, are none.

    Attributes:
        inward: All indices, each after its parent.
        agents: The nearest agent around.
        executors: The nearest executor around.
        outer: The nearest model call around, with no agent, executor or tool between.
        names: The executor that a node itself is, or runs in.
    """

    def __init__(self, nodes: Sequence[SpanNode]) -> None:
        self.nodes: list[SpanNode] = []
        self.repeated: dict[int, list[str]] = {}
        self._collect(_ordered(nodes))
        self.parents, self.inward = _inward(self.nodes)
        size = len(self.nodes)
        self.agents: list[int | None] = [None] * size
        self.executors: list[int | None] = [None] * size
        self.outer: list[int | None] = [None] * size
        self.names: list[str] = [OUTSIDE] * size
        self._paths: list[tuple[str, ...]] = [()] * size
        for index in self.inward:
            self._place(index)

    def _collect(self, nodes: Iterable[SpanNode]) -> None:
        first: dict[tuple[str, str], int] = {}
        for node in nodes:
            index = first.setdefault((node.id, node.kind), len(self.nodes))
            if index == len(self.nodes):
                self.nodes.append(node)
            else:
                self.nodes[index] = _filled(self.nodes[index], [node])
                self.repeated.setdefault(index, []).append(node.id)

    def _place(self, index: int) -> None:
        parent = self.parents[index]
        if parent is not None:
            kind = self.nodes[parent].kind
            self.agents[index] = parent if kind == "agent" else self.agents[parent]
            self.executors[index] = parent if kind == "executor" else self.executors[parent]
            if kind == "model":
                self.outer[index] = parent
            elif kind == "other":
                self.outer[index] = self.outer[parent]
            self._paths[index] = self._paths[parent]
            self.names[index] = self.names[parent]
        node = self.nodes[index]
        if node.kind == "executor":
            name = node.executor or node.name or node.id
            self._paths[index] = (*self._paths[index], name)[-DEEPEST:]
            self.names[index] = "/".join(self._paths[index])
        elif node.kind == "agent" and not self._is_executors_own(index):
            self.names[index] = node.executor or node.name or UNNAMED

    def _is_executors_own(self, index: int) -> bool:
        """Whether an agent is what the executor around it runs: no other agent is between."""
        executor = self.executors[index]
        return executor is not None and self.agents[index] == self.agents[executor]


def _ordered(nodes: Iterable[SpanNode]) -> list[SpanNode]:
    """By start, then as given; a node without a start stays with the one given before it."""
    at = datetime.min.replace(tzinfo=UTC)
    keyed: list[tuple[datetime, int, SpanNode]] = []
    for node in nodes:
        if node.started_at is not None:
            start = node.started_at
            at = start.replace(tzinfo=UTC) if start.tzinfo is None else start
        keyed.append((at, len(keyed), node))
    return [node for _, _, node in sorted(keyed, key=lambda item: item[:2])]


def _inward(nodes: Sequence[SpanNode]) -> tuple[list[int | None], list[int]]:
    """The parent of each node, and an order in which each comes after its parent."""
    ids: dict[str, int] = {}
    for index, node in enumerate(nodes):
        ids.setdefault(node.id, index)
    parents = [None if node.parent_id is None else ids.get(node.parent_id) for node in nodes]
    order: list[int] = []
    done = [False] * len(nodes)
    for start in range(len(nodes)):
        path: dict[int, None] = {}
        at: int | None = start
        while at is not None and not done[at] and at not in path:
            path[at] = None
            at = parents[at]
        if at is not None and at in path:
            # A circle is cut where it was met again, so that the rest keeps its place.
            parents[at] = None
            rotated = list(path)
            cut = rotated.index(at)
            path = dict.fromkeys([*rotated[:cut], *rotated[cut + 1 :], at])
        for index in reversed(path):
            done[index] = True
            order.append(index)
    return parents, order


# Calls.


@dataclass(slots=True)
class _Call:
    """One call: the index of the span at whose place it is, and of those that record it too."""

    at: int
    node: SpanNode
    agent: int | None
    duplicates: list[int] = field(default_factory=list)

    @property
    def all(self) -> tuple[int, ...]:
        return (self.at, *self.duplicates)


def _calls(tree: _Tree) -> list[_Call]:
    """Each call once, in order of the spans that count."""
    return sorted(_same_response(tree, _unnested(tree)), key=lambda call: call.at)


def _unnested(tree: _Tree) -> list[_Call]:
    """What is left of model spans inside model spans."""
    inside: dict[int | None, list[_Call]] = {}
    for index in reversed(tree.inward):
        node = tree.nodes[index]
        if node.kind == "model":
            outer = inside.setdefault(tree.outer[index], [])
            outer.extend(_one_level(_Call(index, node, tree.agents[index]), inside.pop(index, [])))
    return inside.get(None, [])


def _one_level(outer: _Call, inner: list[_Call]) -> list[_Call]:
    """Which calls a model span and those directly inside it are."""
    if not inner:
        return [outer]
    inner = sorted(inner, key=lambda call: call.at)
    if _measured(outer.node) and not _measured_all(inner):
        # The last of them is the one that says how it ended.
        return [_merged(outer, inner[::-1])]
    if len(inner) == 1:
        return [_merged(inner[0], [outer])]
    # One span around several calls: it sums them up, or counts the one that succeeded.
    inner[-1].duplicates.append(outer.at)
    return inner


def _measured_all(calls: Iterable[_Call]) -> bool:
    """Whether usage is known of every call, as far as it can be: one that failed has none."""
    known = [(_measured(call.node), call.node.error is not None) for call in calls]
    return any(measured for measured, _ in known) and all(
        measured or failed for measured, failed in known
    )


def _same_response(tree: _Tree, calls: Iterable[_Call]) -> Iterator[_Call]:
    """Calls with one response id are one: at the place that is an agent's, else an executor's."""
    groups: dict[object, list[_Call]] = {}
    for call in calls:
        groups.setdefault(call.node.response_id or call.at, []).append(call)
    for group in groups.values():

        def rank(call: _Call) -> tuple[bool, bool, int]:
            return (call.agent is None, tree.executors[call.at] is None, call.at)

        kept = min(group, key=rank)
        yield _merged(kept, sorted((c for c in group if c is not kept), key=lambda c: c.at))


def _merged(kept: _Call, others: Sequence[_Call]) -> _Call:
    duplicates = [*kept.duplicates, *(index for other in others for index in other.all)]
    node = _filled(kept.node, [other.node for other in others])
    return _Call(kept.at, node, kept.agent, duplicates)


def _filled(node: SpanNode, others: Sequence[SpanNode]) -> SpanNode:
    """A node with what only others know of the same thing.

    Usage is taken whole: whether cached tokens are within the input can differ between two
    instrumentations. An error is not taken over, as what is around a call can fail by itself.
    """
    nodes = (node, *others)
    usages = [n.usage for n in nodes if n.usage is not None]
    return msgspec.structs.replace(
        node,
        usage=next((n.usage for n in nodes if _measured(n)), usages[0] if usages else None),
        finish_reason=_first(n.finish_reason for n in nodes),
        calls=next((n.calls for n in nodes if n.calls is not None), None),
        response_id=_first(n.response_id for n in nodes),
        model=_first(n.model for n in nodes),
        started_at=next((n.started_at for n in nodes if n.started_at is not None), None),
    )


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value), None)


# Reports.


@dataclass(slots=True)
class _Below:
    """What is below an agent, itself included once it is settled; None is unknown."""

    says: bool = False
    reported: Usage | None = None
    used: Usage | None = None
    reported_calls: int | None = None
    made_calls: int = 0

    def add(self, other: _Below) -> None:
        """Add what is below, and in, an agent directly below."""
        self.says = self.says or other.says
        self.reported = _plus(self.reported, other.reported)
        self.used = _plus(self.used, other.used)
        self.reported_calls = _sum(self.reported_calls, other.reported_calls)
        self.made_calls += other.made_calls


class _Reports:
    """Which agents' reports are entries, and for which calls.

    Attributes:
        speaker: Agent → the agent around it that reports for it.
        own: Agent whose report takes in those below it → what is left of it.
    """

    def __init__(self, tree: _Tree, calls: Iterable[_Call]) -> None:
        self._tree = tree
        self._agents = [i for i in tree.inward if tree.nodes[i].kind == "agent"]
        self._calls: dict[int, list[_Call]] = {}
        for call in calls:
            if call.agent is not None:
                self._calls.setdefault(call.agent, []).append(call)
        self._silent: set[int] = set()
        self._speaking: set[int] = set()
        self.own: dict[int, SpanNode] = {}
        self._settle()
        self.speaker: dict[int, int] = {}
        for index in self._agents:
            around = tree.agents[index]
            if around is not None and (around in self.speaker or around in self._speaking):
                self.speaker[index] = self.speaker.get(around, around)

    def entries(self) -> Iterator[LedgerEntry]:
        """The ledger, in order of start.

        An agent without entry repeats another's, or another reports for it. An executor has an
        entry of its own where it says something itself, or fails without having run an agent.
        """
        tree = self._tree
        ran = {tree.executors[index] for index in self._agents}
        for index, node in enumerate(tree.nodes):
            if node.kind == "agent":
                if index not in self._silent and index not in self.speaker:
                    yield _entry(tree, index, self.own.get(index, node))
            elif node.kind == "executor" and (
                _says(node) or (node.error is not None and index not in ran)
            ):
                yield _entry(tree, index, node)

    def _settle(self) -> None:
        """Decide innermost first, so that all below an agent is settled before it is."""
        below: dict[int, _Below] = {}
        for index in reversed(self._agents):
            node = self._tree.nodes[index]
            made = _made(self._calls.get(index, []))
            found = below.pop(index, None)
            result = found or _Below()
            if found is not None and _says(node):
                node = self._without_others(index, node, made, found)
            if index not in self._silent:
                result.says = result.says or _says(node)
                result.reported = _plus(result.reported, _known(node.usage))
                result.reported_calls = _sum(result.reported_calls, node.calls)
            result.used = _plus(result.used, made.used)
            result.made_calls += made.made_calls
            around = self._tree.agents[index]
            if around is not None:
                below.setdefault(around, _Below()).add(result)

    def _without_others(self, index: int, node: SpanNode, made: _Below, found: _Below) -> SpanNode:
        """Settle how an agent's report relates to those below it; what is its own of it."""
        total = _total(node.usage)
        if made.made_calls:
            own = _own_part(node, made, found)
            if own is not None and found.says:
                self.own[index] = node = own
            elif own is not None:
                self._speaking.add(index)
        elif not found.says and (total is not None or node.calls is not None):
            self._speaking.add(index)
        elif _repeats(total, node.calls, found):
            self._silent.add(index)
        return node


def _made(calls: Sequence[_Call]) -> _Below:
    """What an agent's own calls used."""
    made = _Below(made_calls=len(calls))
    for call in calls:
        made.used = _plus(made.used, _known(call.node.usage))
    return made


def _own_part(node: SpanNode, made: _Below, found: _Below) -> SpanNode | None:
    """What is left of an agent's report without what is below it.

    None if it is not exactly the sum of its own calls and of what is below: a report that merely
    exceeds its calls is too much.
    """
    total, used = _total(node.usage), _total(made.used)
    if node.usage is None or total is None or not used:
        return None
    for others in (found.reported, found.used):
        taken = _total(others)
        if others is not None and taken and total == used + taken:
            calls = node.calls
            if calls is not None and calls == made.made_calls + found.made_calls:
                calls = made.made_calls
            return msgspec.structs.replace(node, usage=_minus(node.usage, others), calls=calls)
    return None


def _repeats(total: int | None, calls: int | None, below: _Below) -> bool:
    """Whether a wrapper says nothing but what those below it say, or made.

    A finish reason is none of a call of its own, so it says nothing else either.
    """
    same_total = total is None or total in (_total(below.reported), _total(below.used))
    return same_total and (calls is None or calls in (below.reported_calls, below.made_calls))


def _entry(tree: _Tree, index: int, node: SpanNode) -> LedgerEntry:
    return LedgerEntry(
        executor=tree.names[index],
        invocation=node.id,
        usage=_known(node.usage),
        finish_reason=node.finish_reason,
        calls=node.calls,
        derived=node.derived,
        error=node.error,
        span_id=node.id,
    )


def _turn(tree: _Tree, call: _Call, speaker: dict[int, int]) -> ModelTurn:
    """A call as a turn of its agent, else of its executor, else of nobody."""
    owner = tree.executors[call.at]
    if call.agent is not None:
        owner = speaker.get(call.agent, call.agent)
    node = call.node
    return ModelTurn(
        executor=OUTSIDE if owner is None else tree.names[owner],
        invocation=None if owner is None else tree.nodes[owner].id,
        usage=_known(node.usage),
        finish_reason=node.finish_reason,
        error=node.error,
        model=node.model,
        response_id=node.response_id,
        started_at=node.started_at,
        span_id=node.id,
    )


def _traced(
    executors: Iterable[str], ledger: Iterable[LedgerEntry], turns: Sequence[ModelTurn]
) -> tuple[str, ...]:
    """Executors whose calls were recorded, or that made none.

    One that reports what it used and has no call called a model that nothing instruments. Nor is
    anything known of any executor if no call was recorded at all.
    """
    if not turns:
        return ()
    called = {turn.executor for turn in turns}
    claims = {
        entry.executor
        for entry in ledger
        if _total(entry.usage) or entry.calls or entry.finish_reason is not None
    }
    return tuple(name for name in executors if name in called or name not in claims)


def _says(node: SpanNode) -> bool:
    """Whether a span reports anything of model calls."""
    return (
        _total(node.usage) is not None or node.finish_reason is not None or node.calls is not None
    )


def _entry_says(entry: LedgerEntry) -> bool:
    return (
        _total(entry.usage) is not None
        or entry.finish_reason is not None
        or entry.calls is not None
    )


def _known(usage: Usage | None) -> Usage | None:
    """Usage if it has a number."""
    return None if usage is None or usage == Usage() else usage


def _total(usage: Usage | None) -> int | None:
    if usage is None:
        return None
    return usage.total if usage.total is not None else _sum(usage.input, usage.output)


def _plus(one: Usage | None, other: Usage | None) -> Usage | None:
    """The sum of two usages; of its parts those that both know."""
    if one is None or other is None:
        return other if one is None else one
    parts = {
        name: None if None in (pair := (getattr(one, name), getattr(other, name))) else sum(pair)
        for name in ("input", "output", "cached", "reasoning")
    }
    return Usage(total=_sum(_total(one), _total(other)), **parts)


def _minus(whole: Usage, part: Usage) -> Usage:
    """What is left of a usage; of its parts those that both know and that are no less."""
    left: dict[str, int | None] = {}
    for name in ("input", "output", "cached", "reasoning"):
        count, taken = getattr(whole, name), getattr(part, name)
        left[name] = None if None in (count, taken) or taken > count else count - taken
    return Usage(total=(_total(whole) or 0) - (_total(part) or 0), **left)


def _measured(node: SpanNode) -> bool:
    """Whether usage is known: zeros throughout are what clients write who do not measure."""
    usage = node.usage
    if usage is None:
        return False
    return bool(usage.total or usage.input or usage.output or usage.cached or usage.reasoning)


def _sum(one: int | None, other: int | None) -> int | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other
