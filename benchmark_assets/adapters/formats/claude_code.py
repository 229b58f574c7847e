"""Claude Code's session files: JSON Lines, one file a session, one session a trace.

Belongs here: how these files spell what a trace is made of. Does not belong here: what the session
says its agents used (`claude_code_ledger`), and what the tools did to the world (which of them
load skills, read or change files); harness profiles say that.

*Rows.* Each line is a row. What the user and the agent said is in rows of type `user` and
`assistant`; one answer of the model is several rows, one for each block of its content, and each
row repeats the answer's id and usage. So an answer is one generation, with the usage of its last
row in the file. A row that a resumed session copied (same `uuid`) counts once, and so do calls
and answers that were copied under a new `uuid` (same ids). Rows of other types, and types yet
unknown, are the program's own book-keeping.

*Calls.* Every `tool_use` block once, in the order of the file; its result is the `tool_result`
that names it. Where the row of the result also has a structured `toolUseResult`, the call's
`result` is `{"content": ..., "details": {...}}`: `content` is what the agent was shown, as text
where it is text, `details` the structured part (`type: create` or `update` of a written file,
`stdout` and `stderr` of a command, …) without the two parts that only serve to show the change
to the user: the file as it was (`originalFile`) and the diff (`structuredPatch`). Both stay where
they are empty: that says there was no such file. Without the structured part, `result` is the
content alone. A call failed if its result says `is_error`, if the user interrupted it, or if
there is no result at all. What the user or the permission settings did not allow was not done:
such a call failed too, with the refusal as its `error`.

*Sub-agents.* Their calls count, with `agent` naming the kind of sub-agent. They are found in
side chains (`isSidechain`), as older versions write them, and in `agent_progress` rows. These
show calls and results, not every answer: the tokens seen in them are incomplete, the source's
own totals leave them out, and so do `tokens` and `generations` here; `metadata.subagent_usage`
has them as far as they go. What a sub-agent says is said to the agent, not to the user. A file of
nothing but a side chain (newer versions give each sub-agent a file) is a trace of that
sub-agent, with an id made of the session's and its own.

*The user.* `prompt` is the first text the user typed. What the program adds in the user's name
is none: notes marked as meta, output of local commands, reminders, a summary of what went before.
A slash command that the agent had to answer counts as typed, in the form `/name arguments`.

*The end.* `ended` is why the model stopped in its last answer (`end_turn` is its normal end, in a
session that people could go on with as well); `interrupted` if the user then stopped it;
`api_error` if the provider's failure is the last thing that happened. The latter is not the
agent's doing, so there is nothing to judge, except where it had filled its context or its answer.
Many versions record no reason: then the end is unknown. An API error that the agent got past is
an error span; retries that the program made itself are none.

*Several sessions in one file* (resumed ones) are one trace, under the id of the last; `metadata`
lists all in `session_ids`. `metadata` has the folder (`cwd`), branch, version and permission mode
that the session began with. The duration includes the time in which the agent waited for people.
A line that cannot be read makes the session incomplete: `problem` names it, and the other lines
are read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import (
    TraceFile,
    id_or_none,
    parse_time,
    text_or_none,
)
from benchmark_assets.adapters.formats.claude_code_ledger import read_ledger
from benchmark_assets.adapters.formats.claude_code_rows import is_models, tokens_of
from benchmark_assets.adapters.formats.messages import as_dict, as_list, text_of
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import (
    ErrorSpan,
    Generation,
    Message,
    Tokens,
    ToolCall,
    TraceSnapshot,
    sum_tokens,
)

NORMAL_ENDINGS = frozenset({"end_turn", "stop_sequence"})
"""The model stopped because it had nothing to add."""

INTERRUPTED = "[Request interrupted by user"
"""How the note begins that the program leaves when the user stops the agent."""

NO_RESULT = "the run ended without a result"

# API errors that are the agent's own doing: it filled its context, or its answer.
_OWN_ERRORS = ("prompt is too long", "output token maximum")

_ROW_KEYS = frozenset({"type", "uuid", "parentUuid", "sessionId", "isSidechain"})

# For showing a change to the user; the agent gets neither.
_SHOWN_TO_USER = frozenset({"originalFile", "structuredPatch"})

# What is put around or before a text of the user to tell the agent about the surroundings.
_ADDED = re.compile(
    r"<(system-reminder|ide_opened_file|ide_selection|ide_diagnostics)\b[^>]*>.*?</\1>\s*",
    re.DOTALL,
)

# Marks of rows in the user's name that the program wrote.
_PROGRAMS_OWN = ("isMeta", "isCompactSummary", "isVisibleInTranscriptOnly")

# Texts in the user's name that nobody typed to the agent.
_NOT_TYPED = re.compile(
    r"\s*(?:<(?:local-command-|bash-|command-|task-notification|user-prompt-submit-hook"
    r"|user-memory-input|system-reminder|ide_)"
    r"|Caveat: The messages below were generated by the user"
    r"|This session is being continued from a previous conversation)"
)
_COMMAND = re.compile(r"<command-name>\s*(.*?)\s*</command-name>", re.DOTALL)
_COMMAND_ARGUMENTS = re.compile(r"<command-args>\s*(.*?)\s*</command-args>", re.DOTALL)
_LOCAL_COMMAND = re.compile(r"\s*<local-command-std(?:out|err)>")

_TOOL_ERROR = re.compile(r"\s*<tool_use_error>(.*?)</tool_use_error>\s*", re.DOTALL)


class ClaudeCodeFormat:
    """Reads Claude Code's session files."""

    name = "claude-code"
    description = "Claude Code session files, JSON Lines, one session in each"

    def matches(self, file: TraceFile) -> bool:
        """Rows of a session; one that is good is enough."""
        return any(_is_row(value) for value in file.records())

    def parse(self, file: TraceFile) -> Iterator[TraceSnapshot]:
        """Yield the one snapshot of the session.

        Raises:
            InputError: If no line is a row of a session.
        """
        values = list(_values(file))
        rows = [value for _, value in values if isinstance(value, dict)]
        if not any(map(_is_row, rows)):
            raise InputError(
                file.problem("holds no row of a session", cure="is this a Claude Code session?")
            )
        said = [row for row in rows if _is_said(row)]
        alone = bool(said) and all(row.get("isSidechain") is True for row in said)
        session = _Session(sub_agent=alone)
        problems = []
        for where, value in values:
            if isinstance(value, InputError):
                problems.append(str(value).replace(file.name, file.key))
                continue
            problem = session.add(value) if isinstance(value, dict) else "expected an object"
            if problem:
                problems.append(f"{file.key}: {where}: {problem}")
        if not said:
            problems.append(f"{file.key}: holds no message")
        found = _snapshot(file, _Facts(rows, alone=alone), session, problems)
        record = None if alone else read_ledger(rows, found.name)
        yield msgspec.structs.replace(found, workflow_record=record)


def _values(file: TraceFile) -> Iterator[tuple[str, Any]]:
    """The values of the file and where they are: one on each line, or those of a JSON list."""
    if file.is_json and isinstance(file.json, list):
        yield from ((f"[{index}]", value) for index, value in enumerate(file.json))
    elif file.is_json:
        yield "line 1", file.json
    else:
        yield from ((f"line {number}", value) for number, value in file.lines())


def _is_row(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and value.keys() >= _ROW_KEYS
        and id_or_none(value["sessionId"]) is not None
        and isinstance(value["type"], str)
    )


def _is_said(row: dict[str, Any]) -> bool:
    return row.get("type") in ("user", "assistant")


def _snapshot(
    file: TraceFile, facts: _Facts, session: _Session, problems: list[str]
) -> TraceSnapshot:
    error = session.error
    if session.ended == "api_error" and not _is_own_error(error):
        problems.append(f"{file.key}: ended by an API error, which is not the agent's doing")
    generations = tuple(session.generations.values())
    return TraceSnapshot(
        trace_id=facts.trace_id or file.made_id(""),
        origin=file.origin(ClaudeCodeFormat.name),
        # Sessions have no name; one for all lets contracts and reports name their workflow.
        name=ClaudeCodeFormat.name,
        started_at=facts.started_at,
        ended_at=facts.ended_at,
        duration_ms=facts.duration_ms,
        session_id=facts.session_id,
        metadata={**facts.metadata, **session.subagent_usage()},
        agents=session.agents(),
        prompt=session.prompt,
        final_answer=session.messages[-1].text if session.messages else None,
        ended=session.ended,
        ended_normally=None if session.ended is None else session.ended in NORMAL_ENDINGS,
        error=error,
        tokens=sum_tokens(tuple(generation.tokens for generation in generations)),
        generations=generations,
        tool_calls=session.calls(),
        messages=tuple(session.messages),
        error_spans=tuple(session.error_spans),
        problem=_joined(problems),
    )


def _is_own_error(error: str | None) -> bool:
    return error is not None and any(text in error.casefold() for text in _OWN_ERRORS)


def _joined(problems: list[str]) -> str | None:
    if len(problems) < 2:
        return problems[0] if problems else None
    return f"{problems[0]} (and {len(problems) - 1} more)"


class _Facts:
    """What the rows say about the session as a whole.

    Attributes:
        session_id: Of the session that the file ends with.
        trace_id: The same; of a sub-agent's own file, with the sub-agent's id.
        started_at, ended_at, duration_ms: From the earliest time in the rows to the latest.
        metadata: Where and how the session began.
    """

    def __init__(self, rows: list[dict[str, Any]], *, alone: bool) -> None:
        ids = [found for row in rows if (found := id_or_none(row.get("sessionId"))) is not None]
        self.session_id = ids[-1] if ids else None
        times = [at for row in rows if (at := parse_time(row.get("timestamp"))) is not None]
        self.started_at = min(times, default=None)
        self.ended_at = max(times, default=None)
        self.duration_ms: int | None = None
        if self.started_at is not None and self.ended_at is not None:
            self.duration_ms = round((self.ended_at - self.started_at).total_seconds() * 1000)
        agent_id = _first_text(rows, "agentId") if alone else None
        self.trace_id = f"{self.session_id}:{agent_id}" if agent_id else self.session_id
        known: dict[str, Any] = {
            "cwd": _first_text(rows, "cwd"),
            "git_branch": _first_text(rows, "gitBranch"),
            "version": _first_text(rows, "version"),
            "permission_mode": _first_text(rows, "permissionMode"),
            "agent_id": agent_id,
            "session_ids": list(dict.fromkeys(ids)) if len(set(ids)) > 1 else None,
        }
        self.metadata = {key: value for key, value in known.items() if value is not None}


def _first_text(rows: list[dict[str, Any]], key: str) -> str | None:
    return next((text for row in rows if (text := text_or_none(row.get(key)))), None)


class _Session:
    """Collects what happened from the rows, in their order.

    Args:
        sub_agent: Whether the file is a sub-agent's own: then its side chain is what is told.

    Attributes:
        prompt: What the user typed first.
        ended: How the session ended as far as the rows go.
        generations: By the answer's id.
        messages: What the agent said to the user.
        error_spans: API errors that were not the end.
    """

    def __init__(self, *, sub_agent: bool) -> None:
        self.prompt: str | None = None
        self.ended: str | None = None
        self.generations: dict[str, Generation] = {}
        self.messages: list[Message] = []
        self.error_spans: list[ErrorSpan] = []
        self._sub_agent = sub_agent
        self._api_error: ErrorSpan | None = None
        self._calls: list[ToolCall] = []
        self._by_id: dict[str, int] = {}
        self._answered: set[int] = set()
        self._rows: set[str] = set()
        self._texts: set[tuple[str | None, str]] = set()
        # What a text just said is to the user: the position of the message they may answer.
        self._spoke: int | None = None
        self._command: str | None = None
        # Side chains: the sub-agent's name by the uuid of the row.
        self._chains: dict[str, str] = {}
        self._usage: dict[str, dict[str, Tokens]] = {}

    @property
    def error(self) -> str | None:
        """The error state the session ended in, in words."""
        if self.ended is None or self.ended in NORMAL_ENDINGS:
            return None
        if self._api_error is not None and self._api_error.message:
            return self._api_error.message
        return f"ended by {self.ended}"

    def add(self, row: dict[str, Any]) -> str | None:
        """Take in one row; return what is wrong with it, if anything."""
        uuid = id_or_none(row.get("uuid"))
        if uuid is not None:
            if uuid in self._rows:
                return None
            self._rows.add(uuid)
        if row.get("type") == "progress":
            return self._progress(row)
        if not _is_said(row):
            return None
        agent = None
        if row.get("isSidechain") is True and not self._sub_agent:
            agent = self._side_chain(row, uuid)
        return self._said(row, agent)

    def calls(self) -> tuple[ToolCall, ...]:
        """The calls; one that never got a result did not succeed."""
        return tuple(
            call
            if index in self._answered
            else msgspec.structs.replace(call, status="error", error=NO_RESULT)
            for index, call in enumerate(self._calls)
        )

    def agents(self) -> tuple[str, ...]:
        """The sub-agents in the order in which they first did something."""
        names = [call.agent for call in self._calls]
        names += [generation.agent for generation in self.generations.values()]
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def subagent_usage(self) -> dict[str, Any]:
        """`subagent_usage`: sub-agent → answers and tokens seen in progress rows, if any were."""
        usage = {
            name: {
                "api_calls": len(answers),
                **msgspec.to_builtins(sum_tokens(tuple(answers.values()))),
            }
            for name, answers in self._usage.items()
        }
        return {"subagent_usage": usage} if usage else {}

    def _progress(self, row: dict[str, Any]) -> str | None:
        data = as_dict(row.get("data"))
        if data.get("type") != "agent_progress" or not isinstance(data.get("message"), dict):
            return None
        agent = self._started_by(id_or_none(row.get("parentToolUseID")))
        agent = agent or text_or_none(data.get("agentId")) or "sidechain"
        inner = data["message"]
        message = as_dict(inner.get("message"))
        answer_id = id_or_none(message.get("id"))
        if inner.get("type") == "assistant" and answer_id and "usage" in message:
            self._usage.setdefault(agent, {})[answer_id] = tokens_of(message["usage"])
        return self._said(inner, agent, reported=True)

    def _started_by(self, call_id: str | None) -> str | None:
        """The kind of sub-agent that a call started."""
        index = self._by_id.get(call_id) if call_id is not None else None
        if index is None:
            return None
        return text_or_none(as_dict(self._calls[index].arguments).get("subagent_type"))

    def _side_chain(self, row: dict[str, Any], uuid: str | None) -> str:
        """Name the sub-agent of a row: as the row before it, or by the prompt it was started with.

        Without either it is called by its id, or `sidechain`, the source's word.
        """
        name = self._chains.get(id_or_none(row.get("parentUuid")) or "")
        if name is None and row.get("type") == "user":
            prompt = text_of(as_dict(row.get("message")).get("content"))
            name = next(
                (
                    text_or_none(given.get("subagent_type"))
                    for given in (as_dict(call.arguments) for call in reversed(self._calls))
                    if prompt is not None and given.get("prompt") == prompt
                ),
                None,
            )
        name = name or text_or_none(row.get("agentId")) or "sidechain"
        if uuid is not None:
            self._chains[uuid] = name
        return name

    def _said(
        self, row: dict[str, Any], agent: str | None, *, reported: bool = False
    ) -> str | None:
        """Take in a row of a user or the agent; `reported` are those inside progress rows."""
        message = row.get("message")
        if not isinstance(message, dict):
            return "message: expected an object"
        content = message.get("content")
        if not isinstance(content, str | list | None):
            return "message.content: expected a text or a list of blocks"
        at = parse_time(row.get("timestamp"))
        if row.get("type") == "user":
            self._user(row, content, agent, at)
            return None
        if not is_models(row):
            self._synthetic(row, content, agent, at)
            return None
        if agent is None:
            self._take_command()
        if not reported:
            self._generation(row, message, agent, at)
        return self._answer(id_or_none(message.get("id")), content, agent, at)

    def _user(
        self,
        row: dict[str, Any],
        content: str | list[Any] | None,
        agent: str | None,
        at: datetime | None,
    ) -> None:
        blocks = [content] if isinstance(content, str) else as_list(content)
        results = [block for block in map(as_dict, blocks) if block.get("type") == "tool_result"]
        for block in results:
            # With several results in a row nothing says whose the structured part is.
            details = row.get("toolUseResult") if len(results) == 1 else None
            self._result(block, details, at)
        if agent is not None:
            return
        texts = [text for block in blocks if (text := text_of([block]))]
        if any(text.startswith(INTERRUPTED) for text in texts):
            self.ended = "interrupted"
            self._api_error_was_not_the_end()
            self._spoke = None
        elif not any(row.get(key) is True for key in _PROGRAMS_OWN):
            self._typed(texts)

    def _typed(self, texts: list[str]) -> None:
        typed = []
        for text in texts:
            command = _COMMAND.search(text)
            rest = _ADDED.sub("", text)
            if not _NOT_TYPED.match(rest):
                typed.append(rest)
            elif command:
                arguments = _COMMAND_ARGUMENTS.search(text)
                self._command = f"{command[1]} {arguments[1] if arguments else ''}".strip()
            elif _LOCAL_COMMAND.match(text):
                self._command = None  # the program answered it, not the agent
        self._turn("\n".join(text for text in typed if text.strip()))

    def _take_command(self) -> None:
        """The agent answers: if a command was waiting, it was a text to the agent."""
        if self._command is not None:
            self._turn(self._command)
            self._command = None

    def _turn(self, text: str) -> None:
        if not text:
            return
        if self.prompt is None:
            self.prompt = text
        if self._spoke is not None:
            asked = self.messages[self._spoke]
            self.messages[self._spoke] = msgspec.structs.replace(asked, question=True)
        self._spoke = None

    def _synthetic(
        self,
        row: dict[str, Any],
        content: str | list[Any] | None,
        agent: str | None,
        at: datetime | None,
    ) -> None:
        """An answer that no model gave; one that reports an API error is noted."""
        if row.get("isApiErrorMessage") is not True:
            return
        span = ErrorSpan(
            name="api_error",
            kind="assistant",
            message=text_of(content),
            agent=agent,
            started_at=at,
            span_id=id_or_none(row.get("uuid")),
        )
        if agent is not None:
            self.error_spans.append(span)
            return
        self._api_error_was_not_the_end()
        self._api_error = span
        self.ended = "api_error"
        self._spoke = None

    def _api_error_was_not_the_end(self) -> None:
        if self._api_error is not None:
            self.error_spans.append(self._api_error)
            self._api_error = None

    def _generation(
        self,
        row: dict[str, Any],
        message: dict[str, Any],
        agent: str | None,
        at: datetime | None,
    ) -> None:
        answer_id = id_or_none(message.get("id"))
        # Without an id, each row is an answer of its own.
        key = answer_id or f"row {len(self.generations)}"
        known = self.generations.get(key)
        usage = message.get("usage")
        stopped = text_or_none(message.get("stop_reason"))
        if known is None:
            known = Generation(
                model=text_or_none(message.get("model")),
                agent=agent,
                span_id=id_or_none(row.get("requestId")),
                response_id=answer_id,
                before_call=len(self._calls),
            )
        self.generations[key] = msgspec.structs.replace(
            known,
            tokens=tokens_of(usage) if isinstance(usage, dict) else known.tokens,
            finish_reason=stopped or known.finish_reason,
            ended_at=at or known.ended_at,
        )
        if agent is None:
            self.ended = self.generations[key].finish_reason
            self._api_error_was_not_the_end()

    def _answer(
        self,
        answer_id: str | None,
        content: str | list[Any] | None,
        agent: str | None,
        at: datetime | None,
    ) -> str | None:
        problem = None
        for position, block in enumerate([content] if isinstance(content, str) else content or ()):
            fields = as_dict(block)
            if fields.get("type") == "tool_use":
                if text_or_none(fields.get("name")) is not None:
                    self._call(fields, agent, at)
                else:
                    problem = problem or f"message.content[{position}]: a call has no name"
            elif agent is None and (text := text_of([block])) is not None:
                self._text(answer_id, text, at)
        return problem

    def _call(self, block: dict[str, Any], agent: str | None, at: datetime | None) -> None:
        call_id = id_or_none(block.get("id"))
        if call_id is not None:
            if call_id in self._by_id:
                return
            self._by_id[call_id] = len(self._calls)
        self._calls.append(
            ToolCall(
                name=block["name"],
                arguments=block.get("input"),
                started_at=at,
                agent=agent,
                span_id=call_id,
            )
        )
        if agent is None:
            self._spoke = None

    def _text(self, answer_id: str | None, text: str, at: datetime | None) -> None:
        if not text.strip():
            return
        if answer_id is not None:
            if (answer_id, text) in self._texts:
                return
            self._texts.add((answer_id, text))
        self._spoke = len(self.messages)
        self.messages.append(Message(text=text, before_call=len(self._calls), at=at))

    def _result(self, block: dict[str, Any], details: Any, at: datetime | None) -> None:
        index = self._by_id.get(id_or_none(block.get("tool_use_id")) or "")
        if index is None or index in self._answered:
            return
        self._answered.add(index)
        content = block.get("content")
        text = text_of(content)
        shown = content if text is None else text
        interrupted = (text or "").startswith(INTERRUPTED) or (
            as_dict(details).get("interrupted") is True
        )
        failed = block.get("is_error") is True or interrupted
        self._calls[index] = msgspec.structs.replace(
            self._calls[index],
            result={"content": shown, "details": _details(details)}
            if isinstance(details, dict)
            else shown,
            status="error" if failed else "ok",
            error=_error(text or ("interrupted" if interrupted else None)) if failed else None,
            ended_at=at,
        )


def _details(given: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if key not in _SHOWN_TO_USER or not value}


def _error(text: str | None) -> str | None:
    """The message of a failure without the mark that the program puts around its own."""
    marked = _TOOL_ERROR.fullmatch(text) if text else None
    return marked[1] if marked else text


FORMAT = ClaudeCodeFormat()
