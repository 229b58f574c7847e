"""Live workflows of the Microsoft Agent Framework: what they report, and what they used.

`watch` takes a workflow that is built already and listens on both sides of it while it runs::

    with watch(workflow) as watched:
        async for event in watched.run("Plan a weekend in Porto."):
            ...
    watched.record  # a WorkflowRecord
    watched.trace_json()  # the same as a file that every command reads

Needs the extra `agent-framework`. Belongs here: listening. Does not belong here: finding what to
listen to (`agent_framework_reach`), reading responses (`agent_framework_usage`,
`agent_framework_content`), writing the file (`fidelity_files`), comparing the two sides
(`scoring/trace_fidelity`).

*Ledger.* An entry each time an executor was invoked, from the framework's `executor_completed` and
`executor_failed` events: the responses of its own that the executor sent on or gave out. A response
that it only passed on is its author's. Where an executor gives out updates alone, as handoffs do,
they are put together. An executor that made calls and reports none of their usage has an entry
without usage.

*Chat truth.* A turn each time a model was called, from chat middleware that is added to each agent
after all of its own, so that it stands next to the client: what other middleware retries, drops or
rewrites is still seen. A turn belongs to the invocation during which it was made, however deep: calls
of an agent that is another's tool, and those inside a nested workflow, belong to the executor of the
watched workflow that caused them, for only this one has a ledger. An agent that two executors
share is told apart by the one that is running.

*What cannot be seen* is not taken for zero. An executor that can call models where no middleware
runs is left out of `traced`; so is one in which nothing was found that calls models, and which
nevertheless reports usage. Agents that an executor makes while it runs, and what a provider's SDK
retries by itself, are below what can be seen here.

*A run is always streamed*: without it the framework hands out no event of a run that raises.

*Results are the same* as without listening; `Watched.unwatch` removes everything again.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import AbstractContextManager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

from agent_framework import (
    Agent,
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Executor,
    MiddlewareTermination,
    ResponseStream,
    Workflow,
    WorkflowEvent,
)

from benchmark_assets.adapters.agent_framework_content import (
    Answer,
    Use,
    answer_uses,
    text_of,
    uses_of,
)
from benchmark_assets.adapters.agent_framework_reach import Reach, reach_of
from benchmark_assets.adapters.agent_framework_usage import Reported, added, finish_of, usage_of
from benchmark_assets.adapters.fidelity_files import workflow_trace_json
from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, WorkflowRecord

NOT_RUN = "The workflow has not been run yet."
NOT_FOLLOWED = "The run was not followed to its end, so later entries of the ledger are missing."
NOT_READ = "The response's stream was not read to its end."

_MADE_UP_NAME = re.compile(r"WorkflowBuilder-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""What the framework calls a workflow without a name: another name each time it is built."""


def watch(workflow: Workflow) -> Watched:
    """Listen to a built workflow.

    Args:
        workflow: Any workflow that a builder has built. It stays usable as it is; only runs that
            are started with `Watched.run` are recorded.

    Raises:
        TypeError: If it is no built workflow.
    """
    if not isinstance(workflow, Workflow):
        raise TypeError(
            f"watch() takes a built workflow, not a {type(workflow).__name__}; "
            "call .build() on a builder first"
        )
    return Watched(workflow)


class Watched:
    """A workflow that is listened to; a context manager that stops listening at its end."""

    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self._listener = _Listener(self._begun)
        self._undo: list[Callable[[], None]] = []
        self._heard: list[object] = []
        self._reach: dict[str, Reach] = {}
        self._run: _Run | None = None
        self._listening = True
        for executor in workflow.get_executors_list():
            self._wrap(executor)
        self._listen(None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self.unwatch()

    async def run(
        self, message: Any = None, **options: Any
    ) -> AsyncGenerator[WorkflowEvent[Any], None]:
        """Run the workflow and hand on its events as they come.

        Each run begins a new record, also one that goes on with answers to requests.

        Args:
            message: What the workflow is given.
            options: Further keywords of the framework's `Workflow.run`, except `stream`.

        Raises:
            RuntimeError: If the workflow is no longer watched.
            TypeError: If `stream` is given.
            Exception: What the run raises; what was recorded until then stays.
        """
        if "stream" in options:
            raise TypeError(
                "run() of a watched workflow takes no `stream`: it always streams, since a run "
                "that raises would lose its events otherwise; iterate over it with `async for`"
            )
        if not self._listening:
            raise RuntimeError("this workflow is no longer watched; call watch() again")
        # Agents may have been added since.
        self._listen(options.get("tools"))
        run = self._run = _Run(prompt=text_of(message))
        try:
            async for event in self._workflow.run(message, stream=True, **options):
                run.hear(event, set(self._reach))
                yield event
        except Exception as error:
            run.end(_message(error))
            raise
        run.end()

    @property
    def record(self) -> WorkflowRecord:
        """The last run's record, as far as it has come."""
        executors = tuple(executor.id for executor in self._workflow.get_executors_list())
        run = self._run or _Run(problem=NOT_RUN)
        name = self._workflow.name
        return WorkflowRecord(
            name=None if _MADE_UP_NAME.fullmatch(name or "") else name,
            executors=executors,
            ledger=tuple(run.ledger),
            turns=tuple(call.turn() for call in run.made()),
            traced=tuple(id_ for id_ in executors if self._is_traced(id_, run)),
            problem=run.problem,
        )

    def trace_json(self) -> bytes:
        """The last run as a workflow trace file: indented JSON in UTF-8.

        It has both sides as `record` has them, and the rest of a trace: when the run began and
        how long it took, what was asked and answered, the tools that models called, the error.
        """
        run = self._run
        if run is None:
            return workflow_trace_json(self.record)
        return workflow_trace_json(
            self.record,
            captured_at=run.started_at,
            prompt=run.prompt,
            final_output=run.answer.text,
            duration_ms=run.duration_ms,
            error=run.error,
            tools=[[use.call() for use in call.uses] for call in run.made()],
        )

    @property
    def untraced(self) -> dict[str, tuple[str, ...]]:
        """Why calls of an executor cannot all be seen, for each executor of which that is known."""
        return {id_: tuple(reach.blind) for id_, reach in self._reach.items() if reach.blind}

    def unwatch(self) -> None:
        """Remove all that was added to the workflow; the record stays."""
        self._listening = False
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()
        self._heard.clear()

    def _is_traced(self, executor: str, run: _Run) -> bool:
        reach = self._reach[executor]
        if reach.blind:
            return False
        # It called something that was not found, or its usage would have no origin.
        unseen = reach.empty and any(
            entry.executor == executor and entry.usage is not None for entry in run.ledger
        )
        return not unseen

    def _listen(self, tools: object) -> None:
        executors = self._workflow.get_executors_list()
        given = reach_of(tools)
        for executor in executors:
            reach = reach_of(executor, others=executors)
            self._reach[executor.id] = _joined(reach, given)
        for reach in [*self._reach.values(), given]:
            for agent in reach.agents:
                self._listen_to_agent(agent)
            for client in reach.clients:
                self._listen_to_client(client)

    def _listen_to_agent(self, agent: Agent[Any]) -> None:
        if self._is_heard(agent):
            return
        before = agent.middleware
        agent.middleware = [*(before or ()), self._listener]

        def undo() -> None:
            left = [item for item in agent.middleware or () if item is not self._listener]
            agent.middleware = before if left == list(before or ()) else left

        self._undo.append(undo)

    def _listen_to_client(self, client: ChatMiddlewareLayer[Any]) -> None:
        if self._is_heard(client):
            return
        client.chat_middleware.append(self._listener)
        self._undo.append(lambda: client.chat_middleware.remove(self._listener))

    def _is_heard(self, thing: object) -> bool:
        if any(thing is heard for heard in self._heard):
            return True
        self._heard.append(thing)
        return False

    def _wrap(self, executor: Executor) -> None:
        """Have it known which executor is running, in all that is called from it."""
        execute = executor.execute
        before = vars(executor).get("execute")

        async def executing(*args: Any, **kwargs: Any) -> None:
            run = self._run
            if run is None or not self._listening:
                await execute(*args, **kwargs)
                return
            token = _RUNNING.set((*_RUNNING.get(), run.invoked(executor.id)))
            try:
                await execute(*args, **kwargs)
            finally:
                # An abandoned coroutine is closed in another context, where nothing was set.
                with suppress(ValueError):
                    _RUNNING.reset(token)

        vars(executor)["execute"] = executing

        def undo() -> None:
            # Someone may have wrapped it again; then this one stays and only calls on.
            if vars(executor)["execute"] is executing:
                del vars(executor)["execute"]
                if before is not None:
                    vars(executor)["execute"] = before

        self._undo.append(undo)

    def _begun(self) -> _Call | None:
        """Begin a call of a model, if an invocation of this workflow makes it."""
        run = self._run
        for invocation in _RUNNING.get():
            if self._listening and run is not None and invocation.run is run:
                return run.called(invocation)
        return None


@dataclass(frozen=True, slots=True, eq=False)
class _Invocation:
    """One execution of one executor."""

    run: _Run
    executor: str
    name: str


_RUNNING: ContextVar[tuple[_Invocation, ...]] = ContextVar("running_invocations", default=())
"""The invocations that are running here, outermost first: a watched workflow may be in another."""


@dataclass(slots=True, eq=False)
class _Call:
    """One call of a model, while it is made."""

    invocation: _Invocation
    started_at: datetime
    reported: Reported = field(default_factory=Reported)
    error: str | None = NOT_READ
    void: bool = False
    """Whether no model was called after all, or the call is recorded by another listener."""
    uses: list[Use] = field(default_factory=list)

    def handed(self, messages: Iterable[object]) -> None:
        """Take what the model is handed: results of the tools it called before."""
        run = self.invocation.run
        earlier = (call.uses for call in run.calls if call.invocation is self.invocation)
        answer_uses([use for uses in earlier for use in uses], messages)

    def took(self, response: ChatResponse[Any]) -> None:
        """Take the response, leaving it alone."""
        self.reported.take(response)
        self.uses = uses_of(response)

    def took_update(self, update: ChatResponseUpdate) -> None:
        """Take a stream's update, leaving it alone."""
        self.reported.take_update(update)

    def ended(self) -> None:
        """Note that the answer has come whole."""
        self.error = None

    def failed(self, error: BaseException) -> None:
        """Keep why it failed."""
        self.error = _message(error)

    def turn(self) -> ModelTurn:
        """What is known of the call."""
        return ModelTurn(
            executor=self.invocation.executor,
            invocation=self.invocation.name,
            usage=self.reported.usage,
            finish_reason=self.reported.finish_reason,
            error=self.error,
            model=self.reported.model,
            response_id=self.reported.response_id,
            started_at=self.started_at,
        )


@dataclass(slots=True, eq=False)
class _Run:
    """Both sides of one run."""

    ledger: list[LedgerEntry] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    problem: str | None = NOT_FOLLOWED
    prompt: str | None = None
    answer: Answer = field(default_factory=Answer)
    error: str | None = None
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    duration_ms: int | None = None
    _begun: float = field(default_factory=time.monotonic)
    _invoked: Counter[str] = field(default_factory=Counter)
    _ended: Counter[str] = field(default_factory=Counter)
    _authors: dict[object, str] = field(default_factory=dict)
    _kept: list[object] = field(default_factory=list)

    def invoked(self, executor: str) -> _Invocation:
        """Begin an invocation.

        The framework lets an executor handle one message at a time, in order, so the n-th
        invocation that begins is the n-th that ends.
        """
        self._invoked[executor] += 1
        return _Invocation(self, executor, f"{executor}#{self._invoked[executor]}")

    def called(self, invocation: _Invocation) -> _Call:
        """Begin a call; calls are kept in the order in which they begin."""
        call = _Call(invocation, datetime.now(UTC))
        self.calls.append(call)
        return call

    def made(self) -> list[_Call]:
        """The calls of models that were made, each once."""
        return [call for call in self.calls if not call.void]

    def end(self, error: str | None = None) -> None:
        """The run has ended: nothing comes any more."""
        self.problem = None
        self.error = error
        self.duration_ms = round((time.monotonic() - self._begun) * 1000)

    def hear(self, event: WorkflowEvent[Any], executors: set[str]) -> None:
        """Take an event; one that ends an invocation makes an entry of the ledger."""
        executor = event.executor_id
        if event.type == "output":
            self.answer.take(executor, event.data)
        if executor is None or event.type not in ("executor_completed", "executor_failed"):
            return
        self._ended[executor] += 1
        name = f"{executor}#{self._ended[executor]}"
        if event.type == "executor_failed":
            error = _details(event)
            self.ledger.append(LedgerEntry(executor=executor, invocation=name, error=error))
            return
        given = event.data if isinstance(event.data, list) else [event.data]
        own = self._own(executor, given, executors)
        reports = [_reported(response) for response in own] or _streamed(given)
        self.ledger.append(
            LedgerEntry(
                executor=executor,
                invocation=name,
                usage=added(report.usage for report in reports),
                finish_reason=reports[-1].finish_reason if reports else None,
            )
        )

    def _own(
        self, executor: str, given: Iterable[object], executors: set[str]
    ) -> list[AgentResponse[Any]]:
        """The responses that `executor` made, each once.

        It is the author unless the response says or an earlier event showed that another
        executor is. The same response is both sent on and, as a copy, given out.
        """
        own: dict[object, AgentResponse[Any]] = {}
        for item in given:
            author, response = executor, item
            if isinstance(item, AgentExecutorResponse):
                response = item.agent_response
                # A nested workflow's executors have no ledger; its responses are its executor's.
                author = item.executor_id if item.executor_id in executors else executor
            if not isinstance(response, AgentResponse):
                continue
            self._kept.append(response)  # so that its id in memory stays its own
            mark = _mark(response)
            first = self._authors.setdefault(mark, author)
            known = author if isinstance(item, AgentExecutorResponse) else first
            if known == executor and not any(_same(response, other) for other in own.values()):
                own.setdefault(mark, response)
        return list(own.values())


class _Listener(ChatMiddleware):
    """Records each call of a model that passes through."""

    def __init__(self, begun: Callable[[], _Call | None]) -> None:
        self._begun = begun
        self._key = f"benchmark_assets.call.{id(self)}"

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        """Record the call; the framework calls this."""
        call = self._begun()
        if call is None:
            await call_next()
            return
        # A client that is also called without its agent listens for itself, further out.
        outer = context.metadata.get(self._key)
        if isinstance(outer, _Call):
            outer.void = True
        context.metadata[self._key] = call
        call.handed(context.messages)
        try:
            await call_next()
        except MiddlewareTermination:
            call.void = True
            raise
        except BaseException as error:
            call.failed(error)
            raise
        finally:
            # Middleware that tries again comes here a second time; that is another call.
            context.metadata.pop(self._key, None)
        self._take(context.result, call)

    @staticmethod
    def _take(result: object, call: _Call) -> None:
        if isinstance(result, ChatResponse):
            call.took(result)
            call.ended()
        elif isinstance(result, ResponseStream):
            # On the stream itself, before hooks of other middleware, so that what those rewrite
            # is seen as the client gave it.
            result.with_transform_hook(call.took_update)
            result.with_result_hook(call.took)
            result.with_pull_context_manager(lambda: _Pull(call))


class _Pull(AbstractContextManager[None]):
    """Sees how a stream ends; one that breaks off or is left has no final response to go by."""

    def __init__(self, call: _Call) -> None:
        self._call = call

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        if isinstance(error, StopAsyncIteration):
            self._call.ended()
        elif error is not None:
            self._call.failed(error)


def _joined(reach: Reach, given: Reach) -> Reach:
    """What an executor reaches, with the tools that a run gives to all."""
    return Reach(
        agents=[*reach.agents, *given.agents],
        clients=[*reach.clients, *given.clients],
        blind=[*reach.blind, *given.blind],
    )


def _mark(response: AgentResponse[Any]) -> object:
    """What a response and its copies have in common, and no other response has."""
    if response.response_id is None:
        return id(response)
    return (response.response_id, usage_of(response.usage_details), finish_of(response))


def _same(one: AgentResponse[Any], other: AgentResponse[Any]) -> bool:
    """Whether two responses of one invocation are the same without an id that says so."""
    return one.response_id is None is other.response_id and one.to_dict() == other.to_dict()


def _reported(response: AgentResponse[Any]) -> Reported:
    reported = Reported()
    reported.take(response)
    return reported


def _streamed(given: Iterable[object]) -> list[Reported]:
    """What updates report together; nothing if there are none."""
    updates = [item for item in given if isinstance(item, AgentResponseUpdate)]
    reported = Reported()
    for update in updates:
        reported.take_update(update)
    return [reported] if updates else []


def _details(event: WorkflowEvent[Any]) -> str:
    details = event.details
    if details is None:
        return "failed"
    # Without leave to show sensitive data the framework gives the type alone, twice.
    if details.message in ("", details.error_type):
        return details.error_type
    return f"{details.error_type}: {details.message}"


def _message(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
