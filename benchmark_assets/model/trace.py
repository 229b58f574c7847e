"""One trace, normalised: what every part of the product reads instead of a vendor's format.

Belongs here: the snapshot and its parts. Does not belong here: how a format spells them
(`adapters/formats`) or what they are worth (`scoring`).

Three rules hold throughout. *Unknown is None*, never 0 and never an empty string: a number
that nobody measured must not enter a sum. *Order is the source's*: `tool_calls` are listed in
the order in which they were issued, and `before_call` ties everything else to that order.
*Published grades stay out*: a benchmark's own reward for a trace has no field here, so no
verdict can depend on it.

What counts as a tool call: every request of the agent to run a tool, once, whether it
succeeded, failed, or was retried (each retry is a call of its own). A sub-agent's calls count,
with `agent` naming it. Calls made by a simulated user are not the agent's and do not count.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from benchmark_assets.model.fidelity import WorkflowRecord

CallStatus = Literal["ok", "error"]
FileOperation = Literal["read", "create", "update", "write", "delete", "move"]


class Tokens(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Token counts in disjoint buckets: their sum is what was processed.

    `input` excludes cache reads and writes; `output` excludes reasoning. None is unknown.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None

    @property
    def total(self) -> int | None:
        """Sum of the known buckets, or None when none is known."""
        known = [value for value in self.buckets() if value is not None]
        return sum(known) if known else None

    def buckets(self) -> tuple[int | None, ...]:
        """The five buckets in declaration order."""
        return (self.input, self.output, self.cache_read, self.cache_write, self.reasoning)


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One request to run a tool, with what came back.

    Attributes:
        arguments: As the agent passed them; an object in almost every format. A string that
            is not JSON stays a string.
        status: `ok` or `error`; None where the format does not say.
        error: The failure's message, when `status` is `error`.
        span_id: The source's own id for the call, for going back to it.
    """

    name: str
    arguments: Any = None
    result: Any = None
    status: CallStatus | None = None
    error: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    agent: str | None = None
    span_id: str | None = None


class Generation(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One call of a model, as the trace records it. `cost_usd` is in US dollars."""

    model: str | None = None
    agent: str | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    finish_reason: str | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    span_id: str | None = None
    response_id: str | None = None
    before_call: int | None = None


class SkillLoad(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One attempt to load a skill. `call` is the index of the tool call that made it."""

    name: str
    status: CallStatus | None = None
    call: int | None = None


class Replacement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One edit inside a file: `old` became `new`, once or everywhere."""

    old: str
    new: str
    everywhere: bool = False


class FileEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One file read or changed by a tool call.

    `write` means created or updated, where the trace cannot tell which. `call` is the index of
    the tool call; `content` the file's whole content as it was written or read, `edits` the
    parts that were replaced, `text` what else the call says it put there, as far as the trace
    holds them.
    """

    path: str
    operation: FileOperation
    status: CallStatus | None = None
    content: str | None = None
    edits: tuple[Replacement, ...] = ()
    text: str | None = None
    moved_to: str | None = None
    call: int | None = None


class ErrorSpan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A span other than a tool call that failed of itself, such as a generation or a retriever.

    A span that only passes on what failed inside it is none: one failure is listed once, where
    it happened, whatever wraps it. `kind` is the source's word for the kind of span.
    """

    name: str
    kind: str | None = None
    message: str | None = None
    agent: str | None = None
    started_at: datetime | None = None
    span_id: str | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """A text the agent addressed to the user.

    `before_call` is the index of the tool call that came next (the number of calls made so
    far); `question` is True when the agent then waited for the user's answer.
    """

    text: str
    before_call: int
    question: bool = False
    agent: str | None = None
    at: datetime | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The bytes a snapshot came from.

    Attributes:
        file: Path relative to its source's root, with `/` between parts; or an API's URL path.
        sha256: Of the file's bytes, in hex.
        record: Where in the file, such as `simulations[3]` or `line 12`.
        format: Name of the trace format that read it.
    """

    file: str
    sha256: str
    record: str | None = None
    format: str


class TraceSnapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One trace: one attempt of one model (or group of models) at one task.

    Attributes:
        trace_id: The source's id; made of content hash and position where it has none.
        model: What is benchmarked. None only before identity is settled: no snapshot is
            stored without one.
        task: The thing attempted, with its suite: `airline/7`.
        trial: The source's number of the attempt.
        prompt: What the user asked for first.
        final_answer: The agent's last text to the user, or the final payload as JSON text.
        messages: All texts to the user in order, `final_answer` among them.
        asked_clarification: Whether the user was asked anything, where the source says so and not
            when; None where `messages` and tool calls say it.
        ended: How the run ended, in the source's word: `user_stop`, `max_steps`.
        ended_normally: Whether that word means the agent finished of itself; None if the
            format does not record how runs end.
        skills, files: What the source itself states about them. Most sources record tool calls
            only; what those did to the world is then read from a harness profile (`scoring`).
        error_spans: Failures outside tool calls, each once.
        failures_recorded: Whether the source marks whatever failed, so that no mark is no
            failure. Where it is not said, calls with a status show the same.
        error: The trace's error state (crash, time-out, step limit), in words; None if none.
        duration_ms: Wall time of the whole trace in milliseconds.
        tokens: The agent's tokens over the whole trace, not a simulated user's.
        cost_usd: The agent's cost in US dollars as measured; prices fill gaps only later.
        workflow_record: What a framework itself reported of the executors it ran, beside the
            model calls made for them; None if it reported nothing, so that there is nothing to
            compare.
        problem: Why no verdict can be given: the record could not be read, the trace is
            incomplete, or the infrastructure (not the agent) failed. None when it can.
    """

    trace_id: str
    origin: Origin
    name: str | None = None
    workflow: str | None = None
    model: str | None = None
    task: str | None = None
    trial: int | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_ms: int | None = None
    environment: str | None = None
    session_id: str | None = None
    user_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = {}
    agents: tuple[str, ...] = ()
    prompt: str | None = None
    final_answer: str | None = None
    ended: str | None = None
    ended_normally: bool | None = None
    error: str | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    generations: tuple[Generation, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    skills: tuple[SkillLoad, ...] = ()
    files: tuple[FileEvent, ...] = ()
    messages: tuple[Message, ...] = ()
    asked_clarification: bool | None = None
    error_spans: tuple[ErrorSpan, ...] = ()
    failures_recorded: bool = False
    workflow_record: WorkflowRecord | None = None
    problem: str | None = None

    @property
    def questions(self) -> tuple[Message, ...]:
        """The messages after which the agent waited for the user."""
        return tuple(message for message in self.messages if message.question)


def sum_tokens(parts: tuple[Tokens, ...]) -> Tokens:
    """Add token counts bucket by bucket; a bucket unknown in every part stays unknown.

    A bucket known in some parts only is the sum of those: a lower bound, as the source gave it.
    """
    sums: list[int | None] = []
    for bucket in zip(*(part.buckets() for part in parts), strict=True):
        known = [value for value in bucket if value is not None]
        sums.append(sum(known) if known else None)
    if not sums:
        return Tokens()
    return Tokens(
        input=sums[0],
        output=sums[1],
        cache_read=sums[2],
        cache_write=sums[3],
        reasoning=sums[4],
    )
