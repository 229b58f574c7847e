"""What a Claude Code session says its agents used, beside what their answers used.

Belongs here: both sides of a session's agents. Does not belong here: the session's own tokens and
calls (`claude_code`).

*Sub-agents.* The result of the call that ran a sub-agent has `totalTokens`, `totalDurationMs`,
`totalToolUseCount` and a `usage`. Time and tool uses are those of the whole run; the tokens are
not: `usage` is that of the sub-agent's last answer, and `totalTokens` its sum, as large as the
context was in the end. In a real session it says 76,064: 1,061 written to the cache and 75,002
read from it, exactly what the answer before had read (74,768) and written (234). The ten answers
before it took in 630,935, and the session says so nowhere. It stands as the total of what the
sub-agent used, among totals that are some, and is given to the agent that asked as such; no other
figure says what a sub-agent used. So it is the ledger, as it is written, and falls short wherever
a sub-agent asked its model more than once or twice.

*Their answers* are found in side chains and in `agent_progress` rows, each once, with the usage of
its last row. Progress rows leave out the last answer, which asks for no tool; since a model that
asked for tools is called again with their results, there was one more, of unknown usage. Where
rows do not say why an answer stopped, its output was counted when it began to stream, which is far
too low; then only what was taken in is compared, on both sides. A sub-agent whose answers are in a
file of its own reports here and has no truth.

*The agent itself* is not in a session's ledger, as nobody it reports to is there, and so its
answers are left out; except where the session has a `result` row, which the program writes in
print mode for all answers since the one before. Its `modelUsage` adds up all agents, and is no
agent's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from benchmark_assets.adapters.formats.base import (
    id_or_none,
    parse_time,
    text_or_none,
    whole_number,
)
from benchmark_assets.adapters.formats.claude_code_rows import is_models, tokens_of
from benchmark_assets.adapters.formats.messages import as_dict, as_list, text_of
from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord
from benchmark_assets.model.trace import Tokens

MAIN = "main"
"""The session's own agent, which has no name in it."""

UNFINISHED = "the session ends before the sub-agent does"

UNREPORTED = "(after the last result)"
"""The invocation of the agent's answers that no result row is about."""

STRAY = "sidechain"
"""A sub-agent of which nothing is known, in the source's word."""


@dataclass
class _Answer:
    """One answer of a model, as its last row has it.

    Attributes:
        invocation: In which it was given.
        agent_id: The sub-agent's, where the rows say it.
        told: Whether the rows are progress rows, which leave out the last answer.
        asks: Whether it asks for tools.
    """

    invocation: str
    agent_id: str | None = None
    told: bool = False
    tokens: Tokens | None = None
    stopped: str | None = None
    asks: bool = False
    model: str | None = None
    response_id: str | None = None
    request_id: str | None = None
    at: datetime | None = None

    def take(self, row: dict[str, Any], message: dict[str, Any]) -> None:
        """Take in a row of it."""
        usage = message.get("usage")
        self.tokens = tokens_of(usage) if isinstance(usage, dict) else self.tokens
        self.stopped = text_or_none(message.get("stop_reason")) or self.stopped
        self.asks = self.asks or any(
            as_dict(block).get("type") == "tool_use" for block in as_list(message.get("content"))
        )
        self.model = self.model or text_or_none(message.get("model"))
        self.response_id = id_or_none(message.get("id"))
        self.request_id = self.request_id or id_or_none(row.get("requestId"))
        self.at = self.at or parse_time(row.get("timestamp"))


@dataclass
class _Run:
    """One run of an agent, and what is reported of it.

    Attributes:
        executor: The kind of sub-agent that was asked for.
        started: Whether the call that ran it is in the session.
        tokens: The parts of the usage, where they are those of `total`.
        reported: Whether its end is in the session.
    """

    invocation: str
    executor: str | None = None
    started: bool = True
    agent_id: str | None = None
    total: int | None = None
    tokens: Tokens | None = None
    stopped: str | None = None
    error: str | None = None
    reported: bool = False
    answers: list[_Answer] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The agent's: its kind, else its id."""
        known = [self.executor, self.agent_id, *(answer.agent_id for answer in self.answers)]
        return next((name for name in known if name), STRAY)

    @property
    def is_whole(self) -> bool:
        """Whether the outputs of all answers were counted at their end."""
        return all(answer.stopped is not None for answer in self.answers)

    @property
    def hides_last(self) -> bool:
        """Whether an answer came after the last one that is shown."""
        last = self.answers[-1] if self.answers else None
        return self.reported and self.error is None and last is not None and last.told and last.asks


def read_ledger(rows: Iterable[dict[str, Any]], name: str | None = None) -> WorkflowRecord | None:
    """Both sides of a session.

    Args:
        rows: Of one file, in its order; what cannot be read is passed over.
        name: The trace's name.

    Returns:
        None if no agent reports what it used.
    """
    found = _Session()
    for row in rows:
        found.add(row)
    runs = found.runs()
    if not any(run.total is not None or run.tokens is not None for run in runs):
        return None
    ledger = tuple(entry for run in runs for entry in _entries(run))
    turns = tuple(turn for run in runs for turn in _turns(run))
    called = dict.fromkeys(turn.executor for turn in turns)
    executors = dict.fromkeys([*(entry.executor for entry in ledger), *called])
    return WorkflowRecord(
        name=name,
        executors=tuple(executors),
        ledger=ledger,
        turns=turns,
        traced=tuple(executor for executor in executors if executor in called),
        # Results of sub-agents do not say how they ended.
        endings=any(entry.finish_reason is not None for entry in ledger),
    )


class _Session:
    """Collects runs and answers from the rows, in their order."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}
        self._answers: dict[str, _Answer] = {}
        self._rows: set[str] = set()
        # Side chains: by a prompt, the call that gave it last; by a row's uuid, its invocation.
        self._prompts: dict[str, str] = {}
        self._chains: dict[str, str] = {}
        self._results = 0
        # The session's own agent: all answers, and those since the last result row.
        self._mine: dict[str, _Answer] = {}
        self._own: list[_Answer] = []

    def add(self, row: dict[str, Any]) -> None:
        """Take in one row; one that was copied counts once."""
        uuid = id_or_none(row.get("uuid"))
        if uuid is not None and uuid in self._rows:
            return
        if uuid is not None:
            self._rows.add(uuid)
        kind = row.get("type")
        if kind == "progress":
            self._progress(row)
        elif kind == "result":
            self._result_row(row, uuid)
        elif kind in ("user", "assistant"):
            chain = self._side_chain(row, uuid) if row.get("isSidechain") is True else None
            self._said(row, chain)

    def runs(self) -> list[_Run]:
        """The runs in the order in which they began; those of sub-agents that did something."""
        by_agent = {run.agent_id: run for run in self._runs.values() if run.reported}
        for answer in self._answers.values():
            run = self._runs.get(answer.invocation) or by_agent.get(answer.invocation)
            if run is None:
                run = self._runs[answer.invocation] = _Run(answer.invocation, started=False)
            run.answers.append(answer)
        if self._results and self._own:
            self._runs[UNREPORTED] = _Run(UNREPORTED, MAIN, started=False, answers=self._own)
        return [run for run in self._runs.values() if _is_agents(run)]

    def _progress(self, row: dict[str, Any]) -> None:
        data = as_dict(row.get("data"))
        inner = as_dict(data.get("message"))
        if data.get("type") != "agent_progress" or inner.get("type") != "assistant":
            return
        agent_id = id_or_none(data.get("agentId"))
        invocation = id_or_none(row.get("parentToolUseID")) or agent_id or STRAY
        self._answer(inner, invocation, agent_id, told=True)

    def _side_chain(self, row: dict[str, Any], uuid: str | None) -> str:
        """The invocation of a row: that of the row before it, or of the call that has its prompt.

        Else it is known by the sub-agent's id, which the result of the call may name.
        """
        invocation = self._chains.get(id_or_none(row.get("parentUuid")) or "")
        if invocation is None and row.get("type") == "user":
            prompt = text_of(as_dict(row.get("message")).get("content"))
            invocation = self._prompts.get(prompt or "")
        invocation = invocation or id_or_none(row.get("agentId")) or STRAY
        if uuid is not None:
            self._chains[uuid] = invocation
        return invocation

    def _said(self, row: dict[str, Any], chain: str | None) -> None:
        message = as_dict(row.get("message"))
        if row.get("type") == "assistant":
            if chain is None:
                for block in as_list(message.get("content")):
                    self._started(as_dict(block))
            self._answer(row, chain, id_or_none(row.get("agentId")))
            return
        content = as_list(message.get("content"))
        results = [block for block in map(as_dict, content) if block.get("type") == "tool_result"]
        for block in results:
            # With several results in a row nothing says whose the structured part is.
            self._ended(block, as_dict(row.get("toolUseResult")) if len(results) == 1 else {})

    def _answer(
        self,
        row: dict[str, Any],
        invocation: str | None,
        agent_id: str | None,
        *,
        told: bool = False,
    ) -> None:
        """Note a row of an answer; without an invocation it is the session's own agent's."""
        message = as_dict(row.get("message"))
        if not is_models(row):
            return
        answer_id = id_or_none(message.get("id"))
        known = self._answers if invocation is not None else self._mine
        key = answer_id or f"row {len(known)}"
        if key not in known:
            known[key] = _Answer(invocation or "", agent_id, told)
            if invocation is None:
                self._own.append(known[key])
        known[key].take(row, message)

    def _started(self, block: dict[str, Any]) -> None:
        """Note a call of a tool, in case that it runs a sub-agent."""
        call_id = id_or_none(block.get("id"))
        if block.get("type") != "tool_use" or call_id is None or call_id in self._runs:
            return
        given = as_dict(block.get("input"))
        self._runs[call_id] = _Run(call_id, executor=text_or_none(given.get("subagent_type")))
        prompt = text_or_none(given.get("prompt"))
        if prompt is not None:
            self._prompts[prompt] = call_id

    def _ended(self, block: dict[str, Any], details: dict[str, Any]) -> None:
        run = self._runs.get(id_or_none(block.get("tool_use_id")) or "")
        if run is None or run.reported:
            return
        run.reported = True
        if block.get("is_error") is True:
            run.error = text_of(block.get("content")) or "failed"
        run.agent_id = id_or_none(details.get("agentId"))
        total = whole_number(details.get("totalTokens"))
        if total is None:
            return
        run.total = total
        parts = tokens_of(details.get("usage"))
        run.tokens = parts if parts.total == total else None

    def _result_row(self, row: dict[str, Any], uuid: str | None) -> None:
        parts = tokens_of(row.get("usage"))
        if parts.total is None:
            return
        self._results += 1
        invocation = uuid or f"result {self._results}"
        error = row.get("is_error") is True
        run = _Run(
            invocation,
            executor=MAIN,
            total=parts.total,
            tokens=parts,
            stopped=text_or_none(row.get("stop_reason")),
            error=(text_or_none(row.get("subtype")) or "failed") if error else None,
            reported=True,
            answers=self._own,
        )
        self._runs[f"result of {invocation}"] = run
        self._own = []


def _is_agents(run: _Run) -> bool:
    """Whether a call ran an agent: by what it asked for, what it told, or what came of it."""
    return bool(run.executor or run.answers) or run.total is not None


# Both sides of one run.


def _entries(run: _Run) -> Iterator[LedgerEntry]:
    if run.started:
        yield LedgerEntry(
            executor=run.name,
            invocation=run.invocation,
            usage=_reported(run),
            finish_reason=run.stopped,
            error=run.error if run.reported else UNFINISHED,
            span_id=run.invocation,
        )


def _reported(run: _Run) -> Usage | None:
    if run.tokens is not None:
        return _usage(run.tokens, whole=run.is_whole)
    return None if run.total is None else Usage(total=run.total)


def _turns(run: _Run) -> Iterator[ModelTurn]:
    # A total without parts cannot be compared with what was taken in.
    comparable = run.is_whole or run.total is None or run.tokens is not None
    for answer in run.answers:
        yield ModelTurn(
            executor=run.name,
            invocation=run.invocation,
            usage=_usage(answer.tokens, whole=run.is_whole) if comparable else None,
            finish_reason=answer.stopped,
            model=answer.model,
            response_id=answer.response_id,
            started_at=answer.at,
            span_id=answer.request_id,
        )
    if run.hides_last:
        model = run.answers[-1].model
        yield ModelTurn(executor=run.name, invocation=run.invocation, model=model)


def _usage(tokens: Tokens | None, *, whole: bool) -> Usage | None:
    """Disjoint buckets as sums; if not `whole`, of what was taken in alone."""
    if tokens is None:
        return None
    taken = [tokens.input, tokens.cache_read, tokens.cache_write]
    known = [count for count in taken if count is not None]
    given = tokens.output if whole else None
    if not known and given is None:
        return None
    return Usage(input=sum(known) if known else None, output=given, cached=tokens.cache_read)
