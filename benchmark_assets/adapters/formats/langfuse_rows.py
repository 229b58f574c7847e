"""Observations of one Langfuse trace: read, deduplicated, put in order and into a tree.

Belongs here: the row in every spelling (camelCase of the API and the UI, snake_case of the blob
export), what counts as a tool call and what as a generation, which agent an observation belongs
to, and whether it failed. Does not belong here: what its values mean (`langfuse_values`) and
what snapshots are made of (`langfuse`, `langfuse_calls`).

*A tool call* is an observation of type TOOL, or one that its instrumentation marks as a tool in
its attributes, or one whose output is LangChain's ToolMessage: before Langfuse had the type, and
where a trace came in by OpenTelemetry, it was a SPAN. Observations around tools (LangGraph's
node `tools`, pydantic-ai's `running 3 tools`) are marked by none of these.

*A generation* is an observation of type GENERATION that contains no other one: an integration
that reports a call of the model and a library inside it that reports it again (Vercel's
`ai.generateText`, two instrumentations at once) make one generation. What happens in a tool or
an agent inside it is not it again.

*Order* is by start, then by depth, so that parents come before children; what is still equal is
ordered by the rows' own content and never by their place in the file. No row comes before its
parent, whatever the clocks say.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec

from benchmark_assets.adapters.formats.base import id_or_none, parse_time, text_or_none
from benchmark_assets.adapters.formats.langfuse_values import (
    as_tree,
    first,
    look,
    look_text,
    says_failed,
    tool_message,
    unwrap,
)
from benchmark_assets.adapters.formats.messages import as_dict, as_list

TYPES = frozenset(
    {"SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR"}
    | {"EMBEDDING", "GUARDRAIL"}
)
"""Langfuse's kinds of observation."""

_NEVER = datetime.max.replace(tzinfo=UTC)
_ALWAYS = datetime.min.replace(tzinfo=UTC)

_SNAKE = re.compile(r"_([a-z])")

_NO_TOOL = frozenset({"GENERATION", "EMBEDDING", "EVALUATOR", "GUARDRAIL"})

_TOOL_NAMES = ("gen_ai.tool.name", "ai.toolCall.name", "mcp.tool.name", "tool.name")

_AGENT_NAMES = ("gen_ai.agent.name", "agent_name", "agent.name", "lc_agent_name", "graph.node.id")

_AROUND_NAME = re.compile(
    r"^(?:running tool|execute_tool|call_tool|tool call|tool)\b[:\s]+(?=\S)|^ai\.toolCall\s+",
    re.IGNORECASE,
)

_AROUND_AGENT = re.compile(
    r"^(?:invoke_agent|create_agent)\s+(?=\S)|^agent_run\s+\[(?=.)|(?<=.)\]$|(?<=\S)(?:\.| )run$"
)

_EVENT = re.compile(r"^(.+)\.(start|success|finish|error|retry)-([0-9]+)$")
"""BeeAI reports what begins and what ends as observations of their own, numbered alike."""

_EVENT_KINDS = frozenset({"tool", "llm"})


def canonical(raw: dict[str, Any]) -> dict[str, Any]:
    """A row's fields in the API's spelling; an empty text, the blob export's null, is None."""
    known: dict[str, Any] = {}
    for key, value in raw.items():
        name = _SNAKE.sub(lambda match: match[1].upper(), key)
        if known.get(name) is None:
            known[name] = None if value == "" else value
    return known


@dataclass(eq=False)
class Row:
    """One observation.

    Attributes:
        raw: Its fields in camelCase.
        tree: Its metadata, nested.
        begin: When it started, but never before its parent did.
        children: In order.
    """

    raw: dict[str, Any]
    id: str | None
    parent_id: str | None
    type: str
    name: str
    failed: bool
    status_message: str | None
    start: datetime | None
    end: datetime | None
    input: Any
    output: Any
    tree: dict[str, Any]
    begin: datetime = _ALWAYS
    depth: int = 0
    parent: Row | None = None
    children: list[Row] = field(default_factory=list)

    @property
    def position(self) -> tuple[Any, ...]:
        """What it is ordered by."""
        return (self.begin, self.depth, self.end or _NEVER, self.name, self.id or "")

    def ancestors(self) -> Iterator[Row]:
        """Its parent, that one's parent, and so on."""
        row = self.parent
        while row is not None:
            yield row
            row = row.parent

    def descendants(self) -> Iterator[Row]:
        """Everything inside it."""
        waiting = list(self.children)
        while waiting:
            row = waiting.pop()
            yield row
            waiting += row.children

    @cached_property
    def kind(self) -> str | None:
        """What the instrumentation calls it, in lower case: `tool`, `llm`, `agent`, `chain`."""
        kind = look_text(
            self.tree, "openinference.span.kind", "traceloop.span.kind", "langsmith.span.kind"
        )
        return kind.lower() if kind else None

    @property
    def is_generation(self) -> bool:
        """Whether it reports a call of a model, perhaps one that a row inside reports again."""
        return self.type == "GENERATION"

    @cached_property
    def is_tool(self) -> bool:
        """Whether it is a tool call."""
        if self.type == "TOOL":
            return True
        if self.type in _NO_TOOL:
            return False
        kind = self.kind
        if kind is not None:
            return kind == "tool"
        operation = look_text(self.tree, "gen_ai.operation.name", "ai.operationId")
        if operation in ("execute_tool", "ai.toolCall"):
            return True
        if look_text(self.tree, *_TOOL_NAMES) is not None:
            return True
        return tool_message(self.output) is not None or self._is_langchain_tool

    @property
    def _is_langchain_tool(self) -> bool:
        """LangChain's callback for tools, and no other, passes these two on."""
        return "color" in self.tree and isinstance(self.tree.get("inputs"), dict)

    @cached_property
    def tool_name(self) -> str:
        """The tool's name without what integrations put before it."""
        name = look_text(self.tree, *_TOOL_NAMES)
        if name is None:
            name = text_or_none(as_dict(tool_message(self.output)).get("name"))
        return name or _AROUND_NAME.sub("", self.name) or self.name

    @cached_property
    def own_agent(self) -> str | None:
        """The agent that the row names, or is."""
        name = look_text(self.tree, *_AGENT_NAMES)
        if name is not None:
            return name
        if self.type == "AGENT":
            return _AROUND_AGENT.sub("", self.name)
        if self.kind == "agent" and self.type == "SPAN" and not look(self.tree, "target"):
            named = look_text(self.tree, "source") or text_or_none(
                as_dict(self.output).get("agent")
            )
            # A method's name (`Task._execute_core`) is not an agent's.
            return named or (None if "._" in self.name else _AROUND_AGENT.sub("", self.name))
        return self._crew_agent

    @property
    def _crew_agent(self) -> str | None:
        """CrewAI lists a crew's agents; a crew of one says who acts in it."""
        agents = as_list(look(self.tree, "crew_agents"))
        roles = [role for agent in agents if (role := text_or_none(as_dict(agent).get("role")))]
        return roles[0] if len(roles) == 1 else None

    @property
    def agent(self) -> str | None:
        """The agent that it belongs to: its own, or the nearest around it."""
        own = self.own_agent
        if own is not None:
            return own
        return next((name for row in self.ancestors() if (name := row.own_agent)), None)


def read_row(raw: dict[str, Any]) -> Row:
    """Read one observation, in either spelling."""
    fields = canonical(raw)
    tree = as_tree(fields.get("metadata"))
    name = text_or_none(fields.get("name"))
    kind = text_or_none(fields.get("type"))
    output = unwrap(fields.get("output"))
    return Row(
        raw=fields,
        id=id_or_none(fields.get("id")),
        parent_id=id_or_none(fields.get("parentObservationId")),
        type=(kind or "SPAN").upper(),
        name=name or (kind or "observation").lower(),
        failed=_failed(fields, tree, output),
        status_message=text_or_none(fields.get("statusMessage"))
        or look_text(tree, "langfuse.observation.status_message", "otel.status_description"),
        start=parse_time(fields.get("startTime")),
        end=parse_time(fields.get("endTime")),
        input=unwrap(fields.get("input")),
        output=output,
        tree=tree,
    )


def _failed(fields: dict[str, Any], tree: dict[str, Any], output: Any) -> bool:
    level = fields.get("level")
    if isinstance(level, str) and level.upper() == "ERROR":
        return True
    # Where the server has not mapped it: 2 is OpenTelemetry's code for an error.
    status = look(tree, "otel.status_code", "status.code", "status_code")
    if status in (2, "2", "ERROR", "STATUS_CODE_ERROR", "StatusCode.ERROR"):
        return True
    answer = tool_message(output)
    return bool(says_failed(answer if answer is not None else output))


def read_rows(observations: Iterable[Any]) -> tuple[list[Row], list[int]]:
    """Read a trace's observations into ordered rows, and say which of them are no objects.

    Of several rows with one id, which the API gives while a trace is being written, the one
    that was updated last counts.
    """
    latest: dict[str, tuple[Any, dict[str, Any]]] = {}
    raws: list[dict[str, Any]] = []
    broken: list[int] = []
    for index, raw in enumerate(observations):
        if not isinstance(raw, dict):
            broken.append(index)
            continue
        row_id = id_or_none(raw.get("id"))
        if row_id is None:
            raws.append(raw)
            continue
        age = _age(raw)
        if row_id not in latest or age > latest[row_id][0]:
            latest[row_id] = (age, raw)
    raws += [raw for _, raw in latest.values()]
    # Equal rows in every respect are ordered by all they hold.
    raws.sort(key=_content)
    return _linked(_merged([read_row(raw) for raw in raws])), broken


def _age(raw: dict[str, Any]) -> tuple[Any, ...]:
    fields = canonical(raw)
    updated = parse_time(fields.get("updatedAt")) or _ALWAYS
    return (updated, parse_time(fields.get("endTime")) or _ALWAYS, _content(raw))


def _content(raw: dict[str, Any]) -> bytes:
    return msgspec.json.encode(raw, order="deterministic")


def _merged(rows: list[Row]) -> list[Row]:
    """Make one row of the events that report the begin and the ends of one tool or model call."""
    groups: dict[tuple[str, str], list[tuple[str, Row]]] = defaultdict(list)
    for row in rows:
        match = _EVENT.match(row.name)
        if match and row.kind in _EVENT_KINDS:
            groups[match[1], match[3]].append((match[2], row))
    gone: set[int] = set()
    renamed: dict[str, str] = {}
    for events in groups.values():
        begun = [row for event, row in events if event == "start"]
        if len(begun) != 1 or len(events) < 2:
            continue
        kept = begun[0]
        for event, row in events:
            if row is not kept:
                _merge(kept, event, row)
                gone.add(id(row))
                if row.id and kept.id:
                    renamed[row.id] = kept.id
    for row in rows:
        row.parent_id = renamed.get(row.parent_id or "", row.parent_id)
    return [row for row in rows if id(row) not in gone]


def _merge(kept: Row, event: str, row: Row) -> None:
    # All events end when they are sent; what was reported happened when the last one started.
    ends = [time for time in (row.start,) if time is not None]
    if kept.raw.get("merged") and kept.end is not None:
        ends.append(kept.end)
    kept.end = max(ends, default=kept.end)
    kept.raw = {
        **kept.raw,
        **{
            key: value
            for key, value in row.raw.items()
            if kept.raw.get(key) in (None, {}, 0) and value not in (None, {}, 0)
        },
        "merged": True,
    }
    kept.output = kept.output if kept.output is not None else row.output
    kept.failed = kept.failed or row.failed or event == "error"
    kept.status_message = kept.status_message or row.status_message
    if event == "error" and kept.output is None and kept.status_message is None:
        kept.status_message = look_text(row.tree, "exception.message", "error.message", "error")


def _linked(rows: list[Row]) -> list[Row]:
    """Put rows under their parents and in order. A circle of parents is cut where it begins."""
    rows.sort(key=lambda row: (row.start or _NEVER, row.end or _NEVER, row.name, row.id or ""))
    by_id = {row.id: row for row in rows if row.id is not None}
    for row in reversed(rows):
        parent = by_id.get(row.parent_id or "")
        if parent is not None and parent is not row and row not in parent.ancestors():
            row.parent = parent
    for row in rows:
        if row.parent is not None:
            row.parent.children.append(row)
    waiting = [row for row in rows if row.parent is None]
    for row in waiting:
        times = [time for time in (row.start, row.parent and row.parent.begin) if time]
        row.begin = max(times, default=_ALWAYS)
        row.depth = row.parent.depth + 1 if row.parent else 0
        waiting += row.children
    return sorted(rows, key=lambda row: row.position)


@dataclass(eq=False)
class ModelCall:
    """One generation.

    Attributes:
        row: The innermost row that reports it.
        around: The rows around it that report it too, from the inside out.
        stands_for: The outermost of those, if this is the last call inside it: what only that
            row knows is this call's.
    """

    row: Row
    around: list[Row]
    stands_for: Row | None = None


def model_calls(rows: list[Row]) -> list[ModelCall]:
    """The generations, in order."""
    around = {id(row): _around(row) for row in rows if row.is_generation}
    outer = {id(row) for wrappers in around.values() for row in wrappers}
    calls = [
        ModelCall(row, around[id(row)])
        for row in rows
        if row.is_generation and id(row) not in outer
    ]
    last = {id(call.around[-1]): call for call in calls if call.around}
    for call in last.values():
        call.stands_for = call.around[-1]
    return calls


def _around(row: Row) -> list[Row]:
    found = []
    for outer in row.ancestors():
        if outer.is_tool or outer.type == "AGENT":
            break
        if outer.is_generation:
            found.append(outer)
    return found


def roots(rows: list[Row]) -> list[Row]:
    """The rows that stand at the top of the trace, in order.

    Those without a parent; else the ones that their SDK marks as the application's own, whose
    parent is another service's; else those whose parent is missing.
    """
    top = [row for row in rows if row.parent is None]
    true = [row for row in top if row.parent_id is None]
    marked = [row for row in top if look(row.tree, "langfuse.internal.is_app_root") is True]
    return true or marked or top


def failures(rows: list[Row], tools: list[Row]) -> list[Row]:
    """Rows other than tool calls that failed of themselves, in order.

    A row in which another one failed passes that on, unless it says something else than any of
    them; what fails inside a failed tool call is that call's failure.
    """
    calls = {id(row) for row in tools}
    found = []
    for row in rows:
        if not row.failed or id(row) in calls:
            continue
        if any(id(outer) in calls and outer.failed for outer in row.ancestors()):
            continue
        inner = [below for below in row.descendants() if below.failed]
        if not inner or _says_something_else(row, inner):
            found.append(row)
    return found


def _says_something_else(row: Row, inner: list[Row]) -> bool:
    own = row.status_message
    if own is None:
        return False
    said = [below.status_message for below in inner]
    return all(text is not None and text not in own and own not in text for text in said)


def error_text(row: Row) -> str | None:
    """What a failed row says about its failure."""
    known = row.status_message or look_text(
        row.tree, "exception.message", "error.message", "gen_ai.error.message"
    )
    return known or text_or_none(first(as_dict(row.output), "error", "message"))
