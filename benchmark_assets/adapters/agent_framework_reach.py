"""What an executor of a Microsoft Agent Framework workflow can call a model with.

Belongs here: finding the agents and chat clients that an executor can reach, wherever they are
kept. Does not belong here: listening to them (`agent_framework`).

The framework has no list of the agents in a workflow. It keeps them in attributes that differ from
executor to executor (an orchestrator's agent, a manager's), a user's executor keeps them anywhere,
and an agent given to another as a tool is only in the closure of that tool's function. So what an
executor refers to is followed: attributes, containers, closures, and globals that its functions
name. Attributes are read from instance dictionaries and slots, never computed: looking runs no
property of anyone's. Not followed are modules, classes, the standard library's objects, what is
inside a chat client, and the workflow's other executors.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from agent_framework import (
    Agent,
    AgentExecutor,
    BaseAgent,
    BaseChatClient,
    ChatMiddlewareLayer,
    Executor,
    RawAgent,
    Workflow,
)

MOST_OBJECTS = 50_000
"""Objects looked at for one executor. One that refers to more is not known whole."""

_CONTAINERS = (list, tuple, set, frozenset, deque)
_LEAVES = (str, bytes, int, float, complex, bool, type(None), type, ModuleType, BuiltinFunctionType)


@dataclass(slots=True)
class Reach:
    """What one executor can call models with.

    Attributes:
        agents: Agents that take chat middleware and whose client runs it.
        clients: Clients that run chat middleware and that are called without such an agent.
        blind: What calls models where no middleware runs, each as a short text; so not all
            calls of this executor can be seen.
    """

    agents: list[Agent[Any]] = field(default_factory=list)
    clients: list[ChatMiddlewareLayer[Any]] = field(default_factory=list)
    blind: list[str] = field(default_factory=list)

    @property
    def empty(self) -> bool:
        """Whether nothing was found that could call a model."""
        return not (self.agents or self.clients or self.blind)


def reach_of(root: object, *, others: Iterable[Executor] = ()) -> Reach:
    """Find what `root` can call models with.

    Args:
        root: An executor, or anything else that is run on its behalf, such as tools.
        others: Executors that are looked at by themselves and are not followed from here.
    """
    kept_out = [other for other in others if other is not root]
    reach, foreign = _walk([root], kept_out)
    # An agent of another kind is seen only if what it wraps is.
    for agent in foreign:
        within, _ = _walk(list(_referred(agent)), [*kept_out, root, agent])
        if not (within.agents or within.clients):
            reach.blind.append(f"its agent {type(agent).__name__} has no chat client to listen to")
    return reach


def _walk(roots: list[object], kept_out: Iterable[object]) -> tuple[Reach, list[object]]:
    """Look at all that `roots` refer to.

    Returns:
        What calls models, and the agents that are not the framework's chat agents.
    """
    reach, foreign = Reach(), list[object]()
    seen = {id(thing) for thing in kept_out}
    # What is looked at is kept, so that no id in `seen` is given to another object.
    kept: list[object] = []
    stack = list(roots)
    while stack:
        thing = stack.pop()
        if isinstance(thing, _LEAVES) or id(thing) in seen:
            continue
        if len(kept) == MOST_OBJECTS:
            reach.blind.append(f"it refers to more than {MOST_OBJECTS} objects")
            break
        seen.add(id(thing))
        kept.append(thing)
        _note(thing, reach)
        if _is_foreign(thing):
            foreign.append(thing)
        elif isinstance(thing, AgentExecutor) and not isinstance(thing.agent, BaseAgent):
            foreign.append(thing.agent)
        stack.extend(_referred(thing))
    return reach, foreign


def _is_foreign(thing: object) -> bool:
    return isinstance(thing, BaseAgent) and not isinstance(thing, RawAgent)


def _note(thing: object, reach: Reach) -> None:
    """Add `thing` to `reach` if it calls models."""
    if isinstance(thing, RawAgent):
        _note_chat_agent(thing, reach)
    elif isinstance(thing, BaseChatClient | ChatMiddlewareLayer):
        _note_client(thing, reach)


def _note_chat_agent(agent: RawAgent[Any], reach: Reach) -> None:
    # Only an agent with the middleware layer hands its chat middleware on to its client; for a
    # raw one the client itself is listened to.
    if not isinstance(agent, Agent):
        _note_client(agent.client, reach)
    elif isinstance(agent.client, ChatMiddlewareLayer):
        reach.agents.append(agent)
    else:
        _note_client(agent.client, reach)


def _note_client(client: object, reach: Reach) -> None:
    if not isinstance(client, ChatMiddlewareLayer):
        reach.blind.append(f"its client {type(client).__name__} runs no chat middleware")
    elif not any(client is known for known in reach.clients):
        reach.clients.append(client)


def _referred(thing: object) -> Iterator[object]:
    """What `thing` refers to, as far as it is followed."""
    if isinstance(thing, Workflow):
        yield from thing.get_executors_list()
    elif isinstance(thing, dict):
        yield from list(thing.values())
    elif isinstance(thing, _CONTAINERS):
        yield from list(thing)
    elif isinstance(thing, FunctionType):
        yield from _of_function(thing)
    elif isinstance(thing, MethodType):
        yield from (thing.__self__, thing.__func__)
    elif isinstance(thing, partial):
        yield from (thing.func, *thing.args, *thing.keywords.values())
    elif isinstance(thing, BaseChatClient | ChatMiddlewareLayer):
        return
    elif not _is_of(thing, sys.stdlib_module_names):
        yield from _of_object(thing)


def _of_object(thing: object) -> Iterator[object]:
    for name, value in _attributes(thing):
        # An agent's client is judged with its agent.
        if not (isinstance(thing, RawAgent) and name == "client"):
            yield value
    for cls in type(thing).__mro__:
        if not _of_framework(cls.__module__) and not _in_stdlib(cls.__module__):
            yield from (value for value in vars(cls).values() if isinstance(value, FunctionType))


def _attributes(thing: object) -> Iterator[tuple[str, object]]:
    yield from list(getattr(thing, "__dict__", {}).items())
    for cls in type(thing).__mro__:
        slots = vars(cls).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            slot = vars(cls).get(name)
            if slot is not None and hasattr(thing, name):
                yield name, getattr(thing, name)


def _of_function(function: FunctionType) -> Iterator[object]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a variable that is not set yet
            continue
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    if not _of_framework(function.__module__) and not _in_stdlib(function.__module__):
        names = _names(function.__code__)
        yield from (value for key, value in function.__globals__.items() if key in names)


def _names(code: CodeType) -> set[str]:
    """Global names that a function and the functions inside it use."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            names |= _names(constant)
    return names


def _is_of(thing: object, roots: frozenset[str]) -> bool:
    return type(thing).__module__.partition(".")[0] in roots


def _in_stdlib(module: str | None) -> bool:
    return (module or "").partition(".")[0] in sys.stdlib_module_names


def _of_framework(module: str | None) -> bool:
    return (module or "").partition(".")[0].startswith("agent_framework")
