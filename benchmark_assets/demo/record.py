"""From a script to a trace: times, tokens and costs, as a model of the demo would cause them.

Belongs here: how long steps take, what fills the context, what that costs. Does not belong
here: what happens in a run (`use_cases/`) or which runs there are (`generate`).

Every step is one generation that sees the whole context so far; what it saw before is read
from the prompt cache, unless the cache missed. Times are whole milliseconds and costs whole
micro-dollars, so that sums are exact.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.models import Model
from benchmark_assets.demo.script import Call, Script
from benchmark_assets.demo.use_cases.base import UseCase
from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord
from benchmark_assets.model.trace import (
    CallStatus,
    FileEvent,
    Generation,
    Message,
    Origin,
    SkillLoad,
    Tokens,
    ToolCall,
    TraceSnapshot,
    sum_tokens,
)

CHARACTERS_PER_TOKEN = 4
SYSTEM_PROMPT_CACHED = 0.7
CACHE_HIT = 0.92


@dataclass(frozen=True, kw_only=True)
class Run:
    """Which run a trace records. `trial` counts from 1."""

    trace_id: str
    model: Model
    use_case: UseCase
    trial: int
    started_at: datetime
    user_id: str
    session_id: str
    prompt_version: str


def record(run: Run, script: Script, dice: Dice, origin: Origin) -> TraceSnapshot:
    """Play the script with the run's model and return its trace."""
    recorder = _Recorder(run, script, dice)
    for call in script.calls:
        recorder.call(call)
    if script.answer is not None:
        recorder.answer(script.answer)
    generations = tuple(recorder.generations)
    costs = [g.cost_usd for g in generations if g.cost_usd is not None]
    return TraceSnapshot(
        trace_id=run.trace_id,
        origin=origin,
        name=run.use_case.trace_name,
        workflow=run.use_case.workflow,
        model=run.model.name,
        task=script.task,
        trial=run.trial,
        started_at=run.started_at,
        ended_at=recorder.now,
        duration_ms=(recorder.now - run.started_at) // timedelta(milliseconds=1),
        environment="nightly",
        session_id=run.session_id,
        user_id=run.user_id,
        tags=run.use_case.tags,
        metadata={
            "workflow_name": run.use_case.workflow,
            "prompt_version": run.prompt_version,
            **run.use_case.metadata,
        },
        agents=run.use_case.agents,
        prompt=script.prompt,
        final_answer=script.answer,
        ended=script.ended,
        ended_normally=script.ended_normally,
        error=script.error,
        tokens=sum_tokens(tuple(g.tokens for g in generations)),
        cost_usd=sum(_micro(cost) for cost in costs) / 1_000_000 if costs else None,
        generations=generations,
        tool_calls=tuple(recorder.calls),
        skills=tuple(recorder.skills),
        files=tuple(recorder.files),
        messages=tuple(recorder.messages),
        workflow_record=_reported(run, generations) if len(run.use_case.agents) > 1 else None,
    )


def _reported(run: Run, generations: tuple[Generation, ...]) -> WorkflowRecord:
    """What the framework reports of each agent, an entry whenever one takes over, and the calls."""
    turns = []
    invocations: list[list[ModelTurn]] = []
    for generation in generations:
        agent = generation.agent or ""
        if not invocations or invocations[-1][-1].executor != agent:
            invocations.append([])
        turn = ModelTurn(
            executor=agent,
            invocation=f"{agent}-{len(invocations)}",
            usage=_usage([generation]),
            finish_reason=generation.finish_reason,
            model=generation.model,
            started_at=generation.started_at,
            span_id=generation.span_id,
        )
        invocations[-1].append(turn)
        turns.append(turn)
    ledger = []
    start = 0
    for made in invocations:
        counted = generations[start : start + len(made)]
        start += len(made)
        if run.model.reports_last_call:
            counted = counted[-1:]
        ledger.append(
            LedgerEntry(
                executor=made[0].executor,
                invocation=made[0].invocation,
                usage=_usage(counted),
                finish_reason=made[-1].finish_reason,
            )
        )
    return WorkflowRecord(
        name=run.use_case.workflow,
        executors=run.use_case.agents,
        ledger=tuple(ledger),
        turns=tuple(turns),
    )


def _usage(generations: Sequence[Generation]) -> Usage:
    """Tokens of some model calls as frameworks report them: input with what came from a cache."""
    tokens = sum_tokens(tuple(generation.tokens for generation in generations))
    used = (tokens.input or 0) + (tokens.cache_read or 0) + (tokens.cache_write or 0)
    made = (tokens.output or 0) + (tokens.reasoning or 0)
    return Usage(
        input=used,
        output=made,
        total=used + made,
        cached=tokens.cache_read,
        reasoning=tokens.reasoning,
    )


class _Recorder:
    """Keeps the clock and the context while the steps go by."""

    def __init__(self, run: Run, script: Script, dice: Dice) -> None:
        self._run = run
        self._dice = dice
        self._agent = script.agent
        self._context = run.use_case.system_tokens + _length(script.prompt)
        self._seen = run.use_case.system_tokens if dice.chance(SYSTEM_PROMPT_CACHED) else 0
        self._spans = 0
        self.now = run.started_at
        self.generations: list[Generation] = []
        self.calls: list[ToolCall] = []
        self.skills: list[SkillLoad] = []
        self.files: list[FileEvent] = []
        self.messages: list[Message] = []

    def call(self, call: Call) -> None:
        """Record a generation that asks for the call, and the call."""
        self._generate(call.arguments, call.agent, "tool_calls")
        index = len(self.calls)
        started = self.now
        self._wait(self._dice.log_normal(call.seconds, 0.35))
        status: CallStatus = "error" if call.error is not None else "ok"
        if call.question is not None:
            # The call puts the question: when the user reads it, this call has been made.
            self.messages.append(
                Message(
                    text=call.question,
                    before_call=index + 1,
                    question=True,
                    agent=call.agent,
                    at=started,
                )
            )
        self.calls.append(
            ToolCall(
                name=call.tool,
                arguments=call.arguments,
                result=call.result,
                status=status,
                error=call.error,
                started_at=started,
                ended_at=self.now,
                agent=call.agent,
                span_id=self._span_id(),
            )
        )
        if call.skill is not None:
            self.skills.append(SkillLoad(name=call.skill, status=status, call=index))
        self.files += [
            FileEvent(path=path, operation=operation, status=status, content=content, call=index)
            for path, operation, content in call.files
        ]
        self._context += _length(call.error if call.result is None else call.result)

    def answer(self, text: str) -> None:
        """Record the last generation and what it says to the user."""
        self._generate(text, self._agent, "stop")
        self.messages.append(
            Message(text=text, before_call=len(self.calls), agent=self._agent, at=self.now)
        )

    def _generate(self, content: object, agent: str | None, finish_reason: str) -> None:
        model = self._run.model
        wordiness = model.wordiness * self._dice.log_normal(1.0, 0.2)
        output = max(12, round(_length(content) * wordiness) + 20)
        reasoning = (
            None if model.reasoning is None else round(self._dice.log_normal(model.reasoning, 0.6))
        )
        caches = model.prices is not None
        hit = caches and self._seen > 0 and (not self.generations or self._dice.chance(CACHE_HIT))
        cached = self._seen if hit else 0
        fresh = self._context - cached
        written = max(0, fresh - self._dice.whole(3, 12)) if model.caches_writes else None
        tokens = Tokens(
            input=fresh - (written or 0),
            output=output,
            cache_read=cached if caches else None,
            cache_write=written,
            reasoning=reasoning,
        )
        started = self.now
        self._wait(
            self._dice.log_normal(0.7, 0.4) + (output + (reasoning or 0)) / model.tokens_per_second
        )
        self.generations.append(
            Generation(
                model=model.name,
                agent=agent,
                tokens=tokens,
                cost_usd=_cost(model, tokens),
                finish_reason=finish_reason,
                started_at=started,
                ended_at=self.now,
                span_id=self._span_id(),
                before_call=len(self.calls),
            )
        )
        self._seen = self._context
        self._context += output

    def _wait(self, seconds: float) -> None:
        self.now += timedelta(milliseconds=max(1, round(seconds * 1000)))

    def _span_id(self) -> str:
        self._spans += 1
        return hashlib.sha256(f"{self._run.trace_id}/{self._spans}".encode()).hexdigest()[:16]


def _length(content: object) -> int:
    """Length of a text, or of data as JSON, in tokens; at least one."""
    text = content.encode() if isinstance(content, str) else msgspec.json.encode(content)
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def _cost(model: Model, tokens: Tokens) -> float | None:
    prices = model.prices
    if prices is None:
        return None
    micro_dollars = (
        (tokens.input or 0) * prices.input
        + (tokens.cache_read or 0) * prices.cache_read
        + (tokens.cache_write or 0) * prices.cache_write
        + ((tokens.output or 0) + (tokens.reasoning or 0)) * prices.output
    )
    return round(micro_dollars) / 1_000_000


def _micro(cost_usd: float) -> int:
    return round(cost_usd * 1_000_000)
