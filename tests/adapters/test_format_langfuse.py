"""The Langfuse format: each rule and each trap on small traces written for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import FORMATS, choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.formats.langfuse import read_trace
from benchmark_assets.adapters.formats.langfuse_usage import read_tokens, row_cost, row_model
from benchmark_assets.adapters.formats.langfuse_values import answered, as_tree, asked, look, unwrap
from benchmark_assets.adapters.snapshot_files import (
    SourcedSnapshot,
    assemble,
    read_snapshots,
    write_partition,
)
from benchmark_assets.adapters.store import Store
from benchmark_assets.model.trace import Origin, Tokens, ToolCall, TraceSnapshot
from tests.adapters.samples import lines, trace_file
from tests.adapters.test_formats import ODD, changed, check_reading, places

ORIGIN = Origin(file="api/traces/t1", sha256="00", format="langfuse")
TRACE: dict[str, Any] = {
    "id": "t1",
    "timestamp": "2026-03-01T12:00:00.000Z",
    "name": "planner",
    "input": {"messages": [{"role": "user", "content": "Fix it."}]},
    "output": "Fixed.",
    "tags": ["bench"],
    "environment": "prod",
    "userId": "alice",
    "sessionId": "s1",
    "metadata": {"projectid": "P1"},
}


def at(second: float) -> str:
    return f"2026-03-01T12:00:{second:06.3f}Z"


def row(row_id: str | None, parent: str | None = "root", **fields: Any) -> dict[str, Any]:
    """A row; `s` and `e` are the seconds at which it starts and ends, `attrs` its attributes."""
    start, end = fields.pop("s", 1), fields.pop("e", 2)
    if "attrs" in fields:
        fields["metadata"] = {"attributes": fields.pop("attrs")}
    known: dict[str, Any] = {
        "id": row_id,
        "traceId": "t1",
        "parentObservationId": parent,
        "type": "SPAN",
        "name": row_id,
        "level": "DEFAULT",
        "startTime": at(start),
        "endTime": None if end is None else at(end),
        "input": None,
        "output": None,
        "metadata": {},
    }
    return {**known, **fields}


def root(**fields: Any) -> dict[str, Any]:
    return row("root", None, **{"s": 0, "e": 9, "output": "Fixed.", **fields})


def tool(row_id: str, parent: str | None = "root", **fields: Any) -> dict[str, Any]:
    return row(row_id, parent, **{"type": "TOOL", "input": {"p": 1}, "output": "ok", **fields})


def gen(row_id: str, parent: str | None = "root", **fields: Any) -> dict[str, Any]:
    known = {"type": "GENERATION", "model": "gpt-4o", "usageDetails": {"input": 3, "output": 1}}
    return row(row_id, parent, **{**known, **fields})


def asks(*calls: Any) -> dict[str, Any]:
    """An assistant's message that asks for tools: (name, arguments, id)."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for n, a, i in calls
        ],
    }


def made(*rows: Any, trace: dict[str, Any] | None = TRACE) -> TraceSnapshot:
    return read_trace(trace, rows, ORIGIN)


def calls(*rows: Any) -> list[tuple[str, Any, Any]]:
    return [(c.name, c.arguments, c.result) for c in made(root(), *rows).tool_calls]


def one_call(*rows: Any) -> ToolCall:
    (found,) = made(root(), *rows).tool_calls
    return found


# Shapes.

ROWS = [root(), gen("g1", output=asks(("read", {"p": 1}, "c1"))), tool("read", s=2, e=3)]
TRACE_ROWS = [{**r, "traceName": "planner", "userId": "alice"} for r in ROWS]
OTHER = [{**r, "traceId": "t2"} for r in TRACE_ROWS]


@pytest.mark.parametrize(
    "content",
    [
        {"trace": TRACE, "observations": ROWS},
        {**TRACE, "observations": ROWS},
        [{"trace": TRACE, "observations": ROWS}],
        lines({"trace": TRACE, "observations": ROWS}),
        {"data": [{**TRACE, "observations": ROWS}], "meta": {"page": 1}},
        {"data": TRACE_ROWS, "meta": {}},
        TRACE_ROWS,
        lines(*TRACE_ROWS),
        lines({"data": TRACE_ROWS[:1], "meta": {}}, {"data": TRACE_ROWS[1:], "meta": {}}),
    ],
)
def test_shapes(content: Any) -> None:
    file = trace_file(content)
    assert [fmt.name for fmt in FORMATS if fmt.matches(file)] == ["langfuse"]
    (found,) = choose_format(file).parse(file)
    assert (found.trace_id, found.name, found.user_id) == ("t1", "planner", "alice")
    assert [call.name for call in found.tool_calls] == ["read"]
    assert found.problem is None
    assert found.origin.format == "langfuse"


def test_rows_are_grouped_by_trace_wherever_they_stand() -> None:
    mixed = [item for pair in zip(TRACE_ROWS, OTHER, strict=True) for item in pair]
    file = trace_file(lines(*mixed))
    found = list(choose_format(file).parse(file))
    assert [(s.trace_id, len(s.tool_calls), s.origin.record) for s in found] == [
        ("t1", 1, "line 1"),
        ("t2", 1, "line 2"),
    ]


def test_blob_rows_are_no_snapshots() -> None:
    """They have `trace_id` and `tool_calls`, as snapshots do."""
    blob: dict[str, Any] = {
        "id": "o",
        "trace_id": "t1",
        "type": "SPAN",
        "start_time": "2026-03-01 12:00:00.5",
    }
    blob |= {"parent_observation_id": "", "end_time": "", "tool_calls": [], "output": "x"}
    file = trace_file(lines(blob))
    assert choose_format(file).name == "langfuse"
    (found,) = choose_format(file).parse(file)
    assert found.started_at is not None
    assert (found.started_at.microsecond, found.ended_at) == (500000, None)


def test_a_list_of_traces_with_ids_only_says_to_fetch_them() -> None:
    file = trace_file({"data": [{**TRACE, "observations": ["a", "b"]}], "meta": {}})
    (found,) = choose_format(file).parse(file)
    assert found.problem == (
        "sub/results.json: data[0]: observations: holds no observation itself; "
        "fetch the whole trace"
    )


def test_every_record_is_a_trace_or_reported() -> None:
    bad: list[Any] = [5, None, [], "x", {}, {"a": 1}, {**TRACE_ROWS[0], "traceId": None}]
    file = trace_file(b"\n".join([lines(*TRACE_ROWS, *bad).strip(), b"{cut"]))
    found = list(choose_format(file).parse(file))
    problems = [s.problem for s in found if s.problem]
    assert len(problems) == len(bad) + 1
    assert problems[0] == (
        "sub/results.json: line 4: is neither a trace with its observations nor an observation"
    )
    assert problems[6] == "sub/results.json: line 10: traceId: an observation of no trace"
    assert "not JSON" in problems[7] or "cut off" in problems[7]
    assert [s.trace_id for s in found if not s.problem] == ["t1"]
    assert len({s.trace_id for s in found}) == len(found)


@pytest.mark.parametrize("broken", [5, None, "id", [1]])
def test_a_row_that_is_no_object_is_reported_and_the_rest_read(broken: Any) -> None:
    found = made(*ROWS, broken)
    assert found.problem == "api/traces/t1: observations[3]: expected an object"
    assert [call.name for call in found.tool_calls] == ["read"]


def test_the_row_updated_last_counts() -> None:
    early = tool("a", updatedAt="2026-03-01T12:00:00Z", level="ERROR", endTime=None)
    late = tool("a", updatedAt="2026-03-01T12:00:09Z", output="done")
    for rows in ((early, late), (late, early)):
        assert (one_call(*rows).status, one_call(*rows).result) == ("ok", "done")


# Tool calls.

HIDDEN: list[tuple[dict[str, Any], tuple[str, Any, Any]]] = [
    (tool("read", input='{"p": 1}', output='"ok"'), ("read", {"p": 1}, "ok")),
    (tool("read", input="{'p': 1}"), ("read", {"p": 1}, "ok")),
    (tool("read", input={"args": [], "kwargs": {"p": 1}}), ("read", {"p": 1}, "ok")),
    (
        tool("read", input={"args": [1], "kwargs": {}}),
        ("read", {"args": [1], "kwargs": {}}, "ok"),
    ),
    (tool("read", input={"input": {"p": 1}}), ("read", {"p": 1}, "ok")),
    (tool("read", input={"input": "p"}), ("read", {"input": "p"}, "ok")),
    (tool("read", input={"name": "read", "arguments": {"p": 1}}), ("read", {"p": 1}, "ok")),
    (
        tool("read", input={"type": "tool_call", "name": "read", "args": {"p": 1}, "id": "c"}),
        ("read", {"p": 1}, "ok"),
    ),
    (
        tool("read", output={"content": [{"type": "text", "text": "a"}]}),
        ("read", {"p": 1}, "a"),
    ),
    (
        row("read", input="{'p': 1}", output={"type": "tool", "tool_call_id": "c", "content": "a"}),
        ("read", {"p": 1}, "a"),
    ),
    (
        row(
            "X",
            input={"p": 1},
            output={
                "lc": 1,
                "id": ["langchain_core", "messages", "ToolMessage"],
                "kwargs": {"name": "read", "tool_call_id": "c", "content": "a"},
            },
        ),
        ("read", {"p": 1}, "a"),
    ),
    (
        row("read", input="{'p': 1}", metadata={"color": "green", "inputs": {}}),
        ("read", {"p": 1}, None),
    ),
    (
        row("x", attrs={"openinference.span.kind": "TOOL", "tool.name": "read"}, input={"p": 1}),
        ("read", {"p": 1}, None),
    ),
    (row("read", attrs={"traceloop.span.kind": "tool"}, input={"p": 1}), ("read", {"p": 1}, None)),
    (row("read", attrs={"langsmith.span.kind": "tool"}, input={"p": 1}), ("read", {"p": 1}, None)),
    (
        row("execute_tool read", attrs={"gen_ai.operation.name": "execute_tool"}, input={"p": 1}),
        ("read", {"p": 1}, None),
    ),
    (
        tool(
            "execute_tool read",
            input={},
            output={},
            attrs={
                "gen_ai.tool.name": "read",
                "gcp.vertex.agent.tool_call_args": '{"p": 1}',
                "gcp.vertex.agent.tool_response": '{"r": 2}',
            },
        ),
        ("read", {"p": 1}, {"r": 2}),
    ),
    (
        tool(
            "running tool: read",
            input=None,
            output=None,
            attrs={"tool_arguments": {"p": 1}, "tool_response": "r"},
        ),
        ("read", {"p": 1}, "r"),
    ),
    (
        tool(
            "x",
            input=None,
            output=None,
            metadata={
                "attributes.gen_ai.tool.name": "read",
                "attributes.gen_ai.tool.call.arguments.p": 1,
                "attributes.gen_ai.tool.call.result": "r",
            },
        ),
        ("read", {"p": 1}, "r"),
    ),
    (
        row("x", attrs={"ai.toolCall.name": "read", "ai.toolCall.args": '{"p": 1}'}),
        ("read", {"p": 1}, None),
    ),
]


@pytest.mark.parametrize(("hidden", "expected"), HIDDEN)
def test_where_integrations_hide_a_call(hidden: Any, expected: Any) -> None:
    assert calls(hidden) == [expected]


@pytest.mark.parametrize(
    "other",
    [
        row("tools", output={"messages": [{"type": "tool", "tool_call_id": "c", "content": "a"}]}),
        row("running 3 tools", attrs={"tools": ["read"]}),
        row("x", attrs={"openinference.span.kind": "AGENT", "tool.name": "read"}),
        row("x", type="RETRIEVER"),
        gen("x", attrs={"gen_ai.tool.name": "read"}),
    ],
)
def test_what_is_no_call(other: Any) -> None:
    assert calls(other) == []


def test_a_node_around_a_tool_is_not_counted_twice() -> None:
    assert calls(row("tools"), tool("read", "tools")) == [("read", {"p": 1}, "ok")]


def test_a_tool_row_named_tools_holds_others() -> None:
    rows = (tool("tools"), tool("read", "tools"), tool("write", "tools", s=1.5))
    assert [name for name, _, _ in calls(*rows)] == ["read", "write"]


def test_a_clients_and_its_servers_row_are_one_call() -> None:
    outer = tool("mcp__files__read", output=None)
    inner = tool("read", "mcp__files__read", output="text")
    assert calls(outer, row("http", "mcp__files__read"), inner) == [
        ("mcp__files__read", {"p": 1}, "text")
    ]


def test_an_agent_used_as_a_tool_makes_calls_of_its_own() -> None:
    rows = (tool("ask"), row("sub", "ask", type="AGENT"), tool("read", "sub", s=1.5))
    found = made(root(), *rows)
    assert [(c.name, c.agent) for c in found.tool_calls] == [("ask", None), ("read", "sub")]
    assert found.agents == ("sub",)


def test_events_of_one_call_are_one_call() -> None:
    def event(name: str, s: float, **fields: Any) -> dict[str, Any]:
        attrs = {"openinference.span.kind": "TOOL", **fields.pop("attrs", {})}
        return row(f"tool.custom.read.{name}-7", s=s, e=8, attrs=attrs, **fields)

    begin = event("start", 1, attrs={"tool.parameters": '{"p": 1}'})
    fine = one_call(begin, event("success", 2, output="ok"), event("finish", 2.5))
    assert (fine.name, fine.arguments, fine.result, fine.status) == ("read", {"p": 1}, "ok", "ok")
    assert fine.ended_at is not None
    assert fine.ended_at.isoformat() == "2026-03-01T12:00:02.500000+00:00"
    bad = one_call(begin, event("error", 2, statusMessage="no"), event("finish", 2.5))
    assert (bad.status, bad.error) == ("error", "no")


# Requests without a tool's row.


def test_requests_are_calls_and_later_inputs_their_results() -> None:
    first = gen("g1", output=asks(("read", {"p": 1}, "c1"), ("write", {"p": 2}, "c2")))
    said = [
        {"role": "user", "content": "Fix it."},
        asks(("read", {"p": 1}, "c1"), ("write", {"p": 2}, "c2")),
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
    ]
    second = gen("g2", s=3, e=4, input=said, output={"role": "assistant", "content": "Fixed."})
    found = made(root(), first, second)
    assert [(c.name, c.arguments, c.result, c.status, c.span_id) for c in found.tool_calls] == [
        ("read", {"p": 1}, "one", None, "c1"),
        ("write", {"p": 2}, "two", None, "c2"),
    ]
    assert [g.before_call for g in found.generations] == [0, 2]
    assert [(m.text, m.before_call) for m in found.messages] == [("Fixed.", 2)]


DIALECTS = [
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "read", "input": {"p": 1}}]},
    [{"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "read", "arguments": {"p": 1}}]}],
    {"choices": [{"message": asks(("read", {"p": 1}, "c"))}, {"message": asks(("no", {}, "d"))}]},
    {"output": [{"type": "function_call", "call_id": "c", "name": "read", "arguments": '{"p": 1}'}]},
    {"content": {"role": "model", "parts": [{"function_call": {"id": "c", "name": "read", "args": {"p": 1}}}]}},
    [{"toolCallId": "c", "toolName": "read", "input": '{"p":1}'}],
    {"text": "", "toolCalls": [{"toolCallId": "c", "toolName": "read", "args": {"p": 1}}]},
    {"role": "assistant", "content": "", "tool_calls": [{"name": "read", "args": {"p": 1}, "id": "c"}]},
    {"role": "assistant", "content": "", "additional_kwargs": asks(("read", {"p": 1}, "c"))},
    {"type": "ai", "content": "", "tool_calls": [{"name": "read", "args": {"p": 1}, "id": "c"}]},
    [[asks(("read", {"p": 1}, "c"))]],
]  # fmt: skip


@pytest.mark.parametrize("output", DIALECTS)
@pytest.mark.parametrize("encode", [lambda v: v, json.dumps, lambda v: json.dumps(json.dumps(v))])
def test_dialects_of_requests(output: Any, encode: Any) -> None:
    found = one_call(gen("g", output=encode(output)))
    assert (found.name, found.arguments, found.span_id) == ("read", {"p": 1}, "c")


@pytest.mark.parametrize("output", DIALECTS)
@pytest.mark.parametrize("call_id", [{}, {"attrs": {"gen_ai.tool.call.id": "c"}}])
def test_a_request_and_its_tool_are_one_call(output: Any, call_id: Any) -> None:
    found = one_call(gen("g", output=output), tool("read", s=3, e=4, **call_id))
    assert (found.name, found.result, found.span_id) == ("read", "ok", "read")


def test_requests_are_joined_on_id_then_arguments_then_order() -> None:
    asked_for = gen("g", output=asks(("f", {"n": 1}, "c1"), ("f", {"n": 2}, "c2")))
    by_id = [
        tool("f", s=3, input=None, attrs={"gen_ai.tool.name": "f", "gen_ai.tool.call.id": i}, id=i)
        for i in ("c2", "c1")
    ]
    assert [args for _, args, _ in calls(asked_for, *by_id)] == [{"n": 1}, {"n": 2}]
    one = tool("f", s=3, input={"n": 2})
    assert calls(asked_for, one) == [("f", {"n": 1}, None), ("f", {"n": 2}, "ok")]


def test_an_answer_given_as_a_tool_call_is_none() -> None:
    parameters = json.dumps({"function_tools": [], "output_tools": [{"name": "final_result"}]})
    output = asks(("final_result", {"x": 1}, "c"), ("read", {"p": 1}, "d"))
    found = calls(gen("g", output=output, attrs={"model_request_parameters": parameters}))
    assert [name for name, _, _ in found] == ["read"]


def test_exported_columns_name_calls_where_the_output_does_not() -> None:
    listed = ['{"id": "c", "arguments": "{\\"p\\": 1}", "type": "tool_use"}']
    found = one_call(gen("g", output=None, toolCalls=listed, toolCallNames=["read"]))
    assert (found.name, found.arguments, found.span_id) == ("read", {"p": 1}, "c")


def test_a_result_that_says_it_failed() -> None:
    block = {"type": "tool_result", "tool_use_id": "c", "content": "no file", "is_error": True}
    rows = (
        gen("g1", output=DIALECTS[0]),
        gen("g2", s=3, e=4, input=[{"role": "user", "content": [block]}], output="Sorry."),
    )
    found = one_call(*rows)
    assert (found.status, found.error, found.result) == ("error", "no file", "no file")


# Failures.


def test_one_failure_in_three_rows_is_one() -> None:
    failed = {"level": "ERROR", "statusMessage": "EACCES", "output": None}
    found = made(
        root(**failed), row("tools", **failed), tool("w", "tools", **failed), trace={"id": "t1"}
    )
    assert [(c.status, c.error) for c in found.tool_calls] == [("error", "EACCES")]
    assert (found.error, found.error_spans) == ("EACCES", ())


def test_a_failure_below_a_root_that_is_fine_was_recovered() -> None:
    found = made(root(), tool("w", level="ERROR", statusMessage="no"), tool("w2", s=2))
    assert (found.error, found.error_spans) == (None, ())
    assert [c.status for c in found.tool_calls] == ["error", "ok"]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"level": "ERROR", "statusMessage": "m"}, "m"),
        ({"level": "error", "output": "try again"}, "try again"),
        ({"level": "ERROR", "output": None, "attrs": {"exception.message": "m"}}, "m"),
        ({"level": "ERROR", "output": None}, None),
        ({"attrs": {"otel.status_code": 2}, "output": "m"}, "m"),
        ({"output": {"is_error": True, "content": [{"type": "text", "text": "m"}]}}, "m"),
        ({"output": {"isError": True, "content": [{"type": "text", "text": "m"}]}}, "m"),
        (
            {"output": {"type": "tool", "tool_call_id": "c", "status": "error", "content": "m"}},
            "m",
        ),
    ],
)
def test_how_a_call_fails(fields: Any, error: Any) -> None:
    found = one_call(tool("w", **fields))
    assert (found.status, found.error) == ("error", error)


@pytest.mark.parametrize("level", ["DEFAULT", "WARNING", "DEBUG", "LOUD", None, 7])
def test_other_levels_are_no_failures(level: Any) -> None:
    assert one_call(tool("w", level=level)).status == "ok"


def test_a_failure_is_told_by_what_it_made_fail() -> None:
    """So pydantic-ai's are: the tool's row has no message."""
    agent = root(type="AGENT", level="ERROR", statusMessage="ValueError: boom", output=None)
    (found,) = made(agent, tool("w", level="ERROR", output=None)).tool_calls
    assert found.error == "ValueError: boom"
    assert made(agent, tool("w", level="ERROR", output=None)).error_spans == ()


def test_a_call_that_has_not_ended_has_no_status() -> None:
    assert one_call(tool("w", e=None, output=None)).status is None


def test_failures_elsewhere_are_error_spans_where_they_happened() -> None:
    chain = row("c", level="ERROR", statusMessage="429 too many")
    model = gen("g", "c", level="ERROR", statusMessage="429 too many", output=None)
    found = made(root(), chain, model)
    (span,) = found.error_spans
    assert (span.name, span.kind, span.message, span.span_id) == (
        "g",
        "GENERATION",
        "429 too many",
        "g",
    )
    assert found.error is None


def test_a_row_that_failed_of_something_else_is_one_more() -> None:
    own = row("c", level="ERROR", statusMessage="recursion limit")
    found = made(root(), own, tool("w", "c", level="ERROR", statusMessage="no file"))
    assert [span.name for span in found.error_spans] == ["c"]


def test_what_fails_inside_a_failed_call_is_that_calls_failure() -> None:
    inner = gen("g", "w", level="ERROR", statusMessage="429")
    found = made(root(), tool("w", level="ERROR", statusMessage="sub-agent died"), inner)
    assert found.error_spans == ()
    kept = made(root(), tool("w"), inner)
    assert [span.name for span in kept.error_spans] == ["g"]


def test_the_last_of_several_roots_says_how_it_ended() -> None:
    bad = gen("a", None, level="ERROR", statusMessage="429", output=None)
    good = gen("b", None, s=3, e=4, output="Fixed.")
    assert made(bad, good).error is None
    assert made({**bad, "startTime": at(5)}, good).error == "429"
    assert [span.name for span in made(bad, good).error_spans] == ["a"]


def test_a_row_whose_parent_is_missing_is_no_root_beside_a_true_one() -> None:
    orphan = row("o", "gone", s=5, level="ERROR", statusMessage="429", output="Not this.")
    found = made(root(output="Fixed."), orphan, trace={"id": "t1"})
    assert (found.error, found.name, found.final_answer) == (None, "root", "Fixed.")
    own = {"langfuse.internal.is_app_root": True}
    served = row("app", "elsewhere", s=1, e=9, attrs=own, output="Fixed.")
    found = made(served, orphan, trace={"id": "t1"})
    assert (found.error, found.name, found.final_answer) == (None, "app", "Fixed.")


def test_a_failed_root_without_a_message() -> None:
    assert made(root(level="ERROR")).error == "'root' failed"


# Completeness and broken trees.


def test_a_root_without_end_or_output_is_not_finished() -> None:
    found = made(root(e=None, output=None), tool("a"), trace={"id": "t1", "name": "n"})
    assert found.problem == (
        "api/traces/t1: is not finished: 'root' at its top has neither an endTime nor an output; "
        "export it again when it has"
    )
    assert made(root(e=None), trace={"id": "t1"}).problem is None
    assert made(root(e=None, output=None)).problem is None  # the trace has an output
    assert made(root(e=None, output=None, level="ERROR"), trace={"id": "t1"}).problem is None


def test_a_trace_without_observations() -> None:
    assert made().problem == "api/traces/t1: has no observations"


def test_orphans_circles_and_missing_ids_are_read() -> None:
    orphan = tool("a", "gone")
    circle = [tool("b", "c", s=2), tool("c", "b", s=3), tool("d", "d", s=4)]
    nameless = row(None, None, type="TOOL", name=None, s=5)
    found = made(orphan, *circle, nameless)
    assert [c.name for c in found.tool_calls] == ["a", "b", "c", "d", "tool"]
    assert found.problem is None


@pytest.mark.parametrize("metadata", ["text", '{"lc_agent_name": "p"}', [1], None, 5, {"a": None}])
def test_metadata_of_any_kind(metadata: Any) -> None:
    found = made(root(), tool("a", metadata=metadata))
    assert found.problem is None
    assert (found.tool_calls[0].agent == "p") is ("lc_agent" in str(metadata))


# Order.


@settings(max_examples=60)
@given(data=st.data())
def test_rows_with_equal_times_may_come_in_any_order(data: st.DataObject) -> None:
    output = asks(("b", {}, None), ("a", {}, None), ("b", {}, None))
    rows = [
        root(s=1, e=9),
        gen("g", s=1, e=1, output=output),
        row("tools", s=1, e=1),
        *(tool(name, "tools", id=i, s=1, e=1, input={}) for i, name in enumerate("abba")),
        tool("deep", "2", s=1, e=1),
        row("x", "tools", s=1, e=1, level="ERROR"),
        row(None, "tools", s=1, e=1, level="ERROR", name="y"),
        gen("h", s=1, e=1, output="Hm."),
    ]
    shuffled = data.draw(st.permutations(rows))
    assert made(*shuffled) == made(*rows)
    assert [c.name for c in made(*shuffled).tool_calls] == ["b", "a", "b", "a", "deep"]


def test_rows_without_ids_that_are_alike_may_come_in_any_order() -> None:
    rows = [tool("f", id=None, name="f", input={"n": n}) for n in (2, 1)]
    assert made(root(), *rows) == made(root(), *rows[::-1])
    assert len(made(root(), *rows).tool_calls) == 2


def test_no_call_comes_before_the_one_it_was_made_in() -> None:
    """Clocks of two machines differ by more than a call takes."""
    early = tool("inner", "outer", s=0.5)
    assert [name for name, _, _ in calls(early, tool("outer", s=1))] == ["outer", "inner"]


def test_parallel_calls_are_in_the_order_in_which_they_were_asked_for() -> None:
    output = asks(("z", {}, "c1"), ("a", {}, "c2"))
    rows = [tool(n, s=3, e=3, input={}) for n in ("a", "z")]
    assert [name for name, _, _ in calls(gen("g", output=output), *rows)] == ["z", "a"]


# Generations, tokens, cost, model.


def test_a_generation_around_another_is_the_same_one() -> None:
    outer = gen("o", usageDetails={"input": 99, "output": 99}, output=asks(("read", {}, "c")))
    inner = gen("i", "o", usageDetails={"input": 3, "output": 1}, output="None")
    found = made(root(), outer, inner)
    assert [(g.span_id, g.tokens.total) for g in found.generations] == [("i", 4)]
    assert [c.name for c in found.tool_calls] == ["read"]  # only the outer row says so


def test_what_only_the_outer_generation_counted_is_counted() -> None:
    outer = gen("o", usageDetails={"input": 5, "output": 2}, costDetails={"total": 0.5})
    inner = [gen(f"i{n}", "o", usageDetails={}, output="x") for n in (1, 2)]
    found = made(root(), outer, *inner)
    assert [g.tokens.total for g in found.generations] == [None, 7]
    assert (found.tokens.total, len(found.messages)) == (7, 3)


def test_a_generation_in_a_tool_in_a_generation_is_another() -> None:
    rows = (gen("o"), tool("ask", "o"), gen("i", "ask"))
    assert [g.span_id for g in made(root(), *rows).generations] == ["o", "i"]


def test_usage_of_agents_and_embeddings_is_no_generations() -> None:
    used: dict[str, Any] = {"usageDetails": {"input": 9, "output": 9}}
    found = made(root(type="AGENT", **used), gen("g"), row("e", type="EMBEDDING", **used))
    assert (found.tokens.total, len(found.generations)) == (4, 1)


USAGE: list[tuple[Any, Tokens]] = [
    ({"input": 10, "output": 5, "total": 15}, Tokens(input=10, output=5)),
    # Disjoint by the total: 10 = 6 + 4.
    (
        {"input": 6, "output": 5, "total": 15, "input_cached_tokens": 4},
        Tokens(input=6, output=5, cache_read=4),
    ),
    # The same key, inside by the total.
    (
        {"input": 10, "output": 5, "total": 15, "input_cache_read": 4},
        Tokens(input=6, output=5, cache_read=4),
    ),
    # More was cached than input counts, so it cannot be inside.
    (
        {"input": 10, "output": 5, "total": 15, "cache_read_input_tokens": 100},
        Tokens(input=10, output=5, cache_read=100),
    ),
    (
        {"input": 3, "output": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 7},
        Tokens(input=3, output=5, cache_read=2, cache_write=7),
    ),
    (
        {
            "input": 10,
            "output": 5,
            "prompt_details.cache_read": 4,
            "completion_details.reasoning": 2,
        },
        Tokens(input=6, output=3, cache_read=4, reasoning=2),
    ),
    (
        {
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": None},
            "completion_tokens_details": {"reasoning_tokens": 2},
        },
        Tokens(input=6, output=3, cache_read=4, reasoning=2),
    ),
    (
        {"input": 10, "output": 3, "output_reasoning_tokens": 2, "total": 15},
        Tokens(input=10, output=3, reasoning=2),
    ),
    (
        {"input": 10, "output": 5, "output_reasoning": 2, "total": 15},
        Tokens(input=10, output=3, reasoning=2),
    ),
    # Gemini: the cached ones are inside the prompt, the thoughts beside the candidates.
    (
        {
            "prompt_token_count": 10,
            "candidates_token_count": 5,
            "thoughts_token_count": 7,
            "cached_content_token_count": 4,
            "total_token_count": 22,
        },
        Tokens(input=6, output=5, cache_read=4, reasoning=7),
    ),
    # Audio has no bucket of its own: it is input.
    ({"input": 6, "input_audio_tokens": 4, "output": 5, "total": 15}, Tokens(input=10, output=5)),
    ({"input": 10, "input_audio_tokens": 4, "output": 5, "total": 15}, Tokens(input=10, output=5)),
    (
        {"input": 1, "output": 1, "cache_creation": {"ephemeral_5m_input_tokens": 3}},
        Tokens(input=1, output=1, cache_write=3),
    ),
    ({"input": 10, "total": 10}, Tokens(input=10)),
    ({"input": None, "output": 5.0, "total": "x"}, Tokens(output=5)),
    ({"input": 1.5, "output": -1}, Tokens()),
    ({}, Tokens()),
    (None, Tokens()),
    ([1], Tokens()),
]


@pytest.mark.parametrize(("usage", "expected"), USAGE)
def test_usage_in_disjoint_buckets(usage: Any, expected: Tokens) -> None:
    assert read_tokens(usage) == expected
    assert read_tokens(json.dumps(usage)) == expected


@given(
    base=st.tuples(*(st.integers(0, 50) for _ in range(5))),
    inside=st.tuples(st.booleans(), st.booleans()),
)
def test_with_a_total_nothing_is_counted_twice(
    base: tuple[int, ...], inside: tuple[bool, bool]
) -> None:
    """Whichever way the source counts, the buckets sum to its total."""
    uncached, read, written, spoken, thought = base
    usage = {
        "input": uncached + (read + written if inside[0] else 0),
        "output": spoken + (thought if inside[1] else 0),
        "input_cache_read": read,
        "input_cache_creation": written,
        "output_reasoning": thought,
        "total": sum(base),
    }
    assert read_tokens(usage).total == sum(base)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"usage": {"unit": "TOKENS", "input": 3, "output": 1}}, Tokens(input=3, output=1)),
        ({"usage": {"unit": "CHARACTERS", "input": 3, "output": 1}}, Tokens()),
        ({"promptTokens": 3, "completionTokens": 1}, Tokens(input=3, output=1)),
        ({"promptTokens": 0, "completionTokens": 0, "usage": {"input": 0}}, Tokens()),
        ({"inputUsage": 3, "outputUsage": 0}, Tokens(input=3, output=0)),
    ],
)
def test_deprecated_fields_count_where_there_are_no_others(fields: Any, expected: Any) -> None:
    assert made(root(), gen("g", usageDetails={}, **fields)).tokens == expected


@pytest.mark.parametrize(
    ("fields", "tokens", "cost"),
    [
        ({"costDetails": {"input": 0.1, "total": 0.3}}, Tokens(input=1), 0.3),
        ({"costDetails": {"input": 0.1, "output": 0.2}}, Tokens(input=1), pytest.approx(0.3)),
        ({"totalCost": 0.3, "costDetails": {}}, Tokens(input=1), 0.3),
        ({"totalCost": "0.3"}, Tokens(input=1), 0.3),
        ({"calculatedTotalCost": 0.3, "totalCost": 0}, Tokens(input=1), 0.3),
        ({"totalCost": 0}, Tokens(input=1), None),
        ({"costDetails": {"total": 0.0}}, Tokens(), None),
        ({"costDetails": {"total": None}}, Tokens(input=1), None),
        ({"totalCost": 0}, Tokens(input=0, output=0), 0.0),
        ({"totalCost": -1}, Tokens(input=1), None),
        ({}, Tokens(input=1), None),
    ],
)
def test_a_cost_of_zero_is_unknown_where_tokens_were_used(
    fields: Any, tokens: Tokens, cost: Any
) -> None:
    assert row_cost(fields, tokens) == cost


def test_a_sum_with_a_gap_is_no_cost() -> None:
    known, unknown = gen("a", totalCost=0.5), gen("b", s=2, totalCost=0)
    failed = gen("c", s=3, level="ERROR", usageDetails={})
    assert made(root(), known).cost_usd == 0.5
    assert made(root(), known, unknown).cost_usd is None
    assert made(root(), known, failed).cost_usd == 0.5


@pytest.mark.parametrize(
    ("given_name", "name"),
    [
        ("projects/p/locations/l/publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.claude-4", "us.claude-4"),
        ("openai/gpt-4o", "openai/gpt-4o"),
        ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06"),
        ("models/", "models/"),
    ],
)
def test_a_model_is_named_as_the_source_names_it(given_name: str, name: str) -> None:
    assert row_model({"model": given_name}, {}) == name
    assert row_model({"model": None, "providedModelName": given_name}, {}) == name
    assert row_model({}, as_tree({"attributes.gen_ai.response.model": given_name})) == name


# What was said.


@pytest.mark.parametrize(
    ("given_input", "prompt"),
    [
        ("Fix it.", "Fix it."),
        ('"Fix it."', "Fix it."),
        ({"messages": [["user", "Fix it."]]}, "Fix it."),
        ({"messages": [{"type": "human", "content": "Fix it."}]}, "Fix it."),
        ([{"role": "system", "content": "You fix."}, {"role": "user", "content": "Fix it."}], "Fix it."),
        ([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
          {"role": "user", "content": [{"type": "text", "text": "Fix it."}]}], "Fix it."),
        ([{"role": "user", "parts": [{"type": "text", "content": "Fix it."}]}], "Fix it."),
        ({"new_message": {"role": "user", "parts": [{"text": "Fix it."}]}, "user_id": "u"}, "Fix it."),
        ({"contents": [{"role": "user", "parts": [{"text": "Fix it."}]}]}, "Fix it."),
        ({"prompt": "Fix it.", "system": "You fix."}, "Fix it."),
        ({"input": {"query": "Fix it."}}, "Fix it."),
        ({"args": ["Fix it."], "kwargs": {}}, "Fix it."),
        ({"args": [], "kwargs": {"question": "Fix it."}}, "Fix it."),
        ("{'messages': [('user', 'Fix it.')]}", "Fix it."),
        ({"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": "Fix it."}}, "Fix it."),
        ([{"role": "system", "content": "You fix."}], None),
        ({"topic": "x"}, None),
        ([], None),
        (None, None),
        ("None", None),
        ({"n": 5}, None),
    ],
)  # fmt: skip
def test_what_was_asked(given_input: Any, prompt: Any) -> None:
    assert asked(given_input) == prompt
    assert asked(json.dumps(json.dumps(given_input))) == prompt


def test_the_prompt_is_found_wherever_it_is() -> None:
    bare = {"id": "t1"}
    told = [{"role": "user", "content": "Fix it."}]
    attributes = {"llm.input_messages.0.message.role": "user"}
    attributes["llm.input_messages.0.message.content"] = "Fix it."
    for rows in (
        (root(input={"question": "Fix it."}),),
        (root(attrs={"pydantic_ai.all_messages": json.dumps(told)}),),
        (root(), gen("g", input=told)),
        (root(), gen("g", input="user: Fix it.", attrs=attributes)),
    ):
        assert made(*rows, trace=bare).prompt == "Fix it."
    assert made(root(), trace={**bare, "input": {"topic": "x"}}).prompt == '{"topic":"x"}'
    assert made(root(), trace={**bare, "input": {"args": [], "kwargs": {}}}).prompt is None


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        ("Done.", "Done."),
        ('"Done."', "Done."),
        ({"messages": [{"type": "human", "content": "Go"}, {"type": "ai", "content": "Done."}]}, "Done."),
        ({"messages": [{"type": "ai", "content": "Done."}, {"type": "tool", "content": "x", "tool_call_id": "c"}]}, "Done."),
        ({"messages": [{"type": "ai", "content": "Old."}, {"type": "human", "content": "Go"}]}, None),
        ({"content": [{"type": "text", "text": "Done."}], "role": "assistant"}, "Done."),
        ({"role": "assistant", "text": "Done."}, "Done."),
        ("{'role': 'assistant', 'text': 'Done.'}", "Done."),
        ({"content": {"role": "model", "parts": [{"text": "Done."}]}}, "Done."),
        ({"output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]}]}, "Done."),
        ({"output": "Done."}, "Done."),
        ({"raw": "Done.", "tasks_output": []}, "Done."),
        ({"joke": "Ha", "grade": 1}, '{"grade":1,"joke":"Ha"}'),
        ('{"joke": "Ha",  "grade": 1}', '{"joke": "Ha",  "grade": 1}'),
        (asks(("read", {}, "c")), None),
        ({}, None),
        (None, None),
    ],
)  # fmt: skip
def test_what_was_answered(output: Any, answer: Any) -> None:
    assert answered(output) == answer


def test_a_run_that_failed_answered_nothing() -> None:
    said = gen("g", output="Let me see.")
    assert made(root(output=None), said, trace={"id": "t"}).final_answer == "Let me see."
    failed = root(output=None, level="ERROR")
    assert made(failed, said, trace={"id": "t"}).final_answer is None
    later = made(root(output=None), said, tool("w", s=3), trace={"id": "t"})
    assert later.final_answer is None


def test_a_message_that_the_user_replied_to_is_a_question() -> None:
    asking = {"role": "assistant", "content": "Shall I?"}
    given_next = [
        {"role": "user", "content": "Fix it."},
        asking,
        {"role": "user", "content": "Yes."},
    ]
    rows = (gen("a", output=asking), gen("b", s=3, e=4, input=given_next, output="Fixed."))
    found = made(root(), *rows)
    assert [(m.text, m.question) for m in found.messages] == [("Shall I?", True), ("Fixed.", False)]
    assert [m.text for m in found.questions] == ["Shall I?"]


# Identity and metadata.


def test_what_the_trace_says_of_itself() -> None:
    found = made(root(), gen("g"))
    assert (found.trace_id, found.name, found.environment) == ("t1", "planner", "prod")
    assert (found.user_id, found.session_id, found.tags) == ("alice", "s1", ("bench",))
    assert found.duration_ms == 9000
    assert (found.ended, found.ended_normally, found.skills, found.files) == (None, None, (), ())


def test_latency_is_computed_from_times() -> None:
    """One export has it in milliseconds."""
    assert made(root(latency=9000), trace={**TRACE, "latency": 7424}).duration_ms == 9000


@pytest.mark.parametrize(
    "metadata",
    [
        {"a": {"b": {"c": 1}}, "d": 2},
        {"a.b.c": 1, "d": 2},
        {"a": {"b.c": 1}, "d": 2},
        '{"a": {"b": {"c": 1}}, "d": 2}',
        json.dumps(json.dumps({"a.b": {"c": 1}, "d": 2})),
    ],
)
def test_metadata_nested_or_flattened_is_one_form(metadata: Any) -> None:
    assert made(root(), trace={"id": "t", "metadata": metadata}).metadata == {
        "a": {"b": {"c": 1}},
        "d": 2,
    }


def test_a_key_with_a_value_and_keys_below_it_keeps_both() -> None:
    tree = as_tree({"a": 1, "a.b": 2})
    assert (look(tree, "a"), look(tree, "a.b")) == (1, 2)
    assert as_tree({"a.b": 2, "a": 1}) == tree
    assert as_tree({"a..b": 1}) == {"a..b": 1}


def test_metadata_without_the_plumbing() -> None:
    sent = {
        "workflow_name": "binding",
        "resourceAttributes": {"host": "h"},
        "scope": {"attributes": {"public_key": "pk"}},
        "attributes": {
            "input.value": "x",
            "langfuse.y": 1,
            "gen_ai.system": "s",
            "long": "x" * 201,
        },
    }
    found = made(root(metadata=sent), trace={"id": "t", "metadata": {"k": 1}, "release": "v2"})
    assert found.metadata == {
        "k": 1,
        "workflow_name": "binding",
        "attributes": {"gen_ai": {"system": "s"}},
        "release": "v2",
    }


@pytest.mark.parametrize(
    ("fields", "agent"),
    [
        ({"type": "AGENT", "name": "planner"}, "planner"),
        ({"type": "AGENT", "name": "agent_run [planner]"}, "planner"),
        ({"type": "AGENT", "name": "invoke_agent planner"}, "planner"),
        ({"name": "planner run", "attrs": {"gen_ai.agent.name": "planner"}}, "planner"),
        ({"metadata": {"lc_agent_name": "planner"}}, "planner"),
        ({"name": "planner.run", "attrs": {"openinference.span.kind": "AGENT"}}, "planner"),
        ({"name": "Task._core", "attrs": {"openinference.span.kind": "AGENT"}}, None),
        ({"attrs": {"crew_agents": '[{"role": "planner"}]'}}, "planner"),
        ({"attrs": {"crew_agents": '[{"role": "a"}, {"role": "b"}]'}}, None),
        ({"name": "agent"}, None),
    ],
)
def test_agents_are_named(fields: Any, agent: Any) -> None:
    found = made(root(), row("a", **{"name": "a", **fields}), tool("w", "a"))
    assert found.agents == ((agent,) if agent else ())
    assert found.tool_calls[0].agent == agent


# Encodings.


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("5", "5"),
        ('{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ("{'a': (1, None)}", {"a": [1, None]}),
        ("{1: 'a'}", {"1": "a"}),
        ("{'a': b'x'}", "{'a': b'x'}"),
        ("{'a': {1}}", "{'a': {1}}"),
        ("{'a': '\\ud83d'}", "{'a': '\\ud83d'}"),
        ("{'a': __import__('os')}", "{'a': __import__('os')}"),
        ("[" * 5000, "[" * 5000),
        ("null", None),
        ("", None),
    ],
)
def test_texts_that_hold_values(text: str, value: Any) -> None:
    assert unwrap(text) == value


# Whatever is in it.

EVERYTHING = {
    "trace": TRACE,
    "observations": [
        root(type="AGENT", attrs={"gen_ai.agent.name": "p", "final_result": "x"}, tags=["a"]),
        gen("g", output=asks(("read", {"p": 1}, "c1"), ("w", {}, "c2")), costDetails={"total": 1}),
        gen("i", "g", usageDetails={"input": 1, "input_cached_tokens": 2, "total": 3}),
        HIDDEN[10][0],
        tool(
            "w", "i", output={"type": "tool", "tool_call_id": "c2", "content": "a"}, level="ERROR"
        ),
        row(
            "tool.x.start-1", attrs={"openinference.span.kind": "TOOL", "tool.parameters": {"a": 1}}
        ),
        row("tool.x.error-1", attrs={"openinference.span.kind": "TOOL"}),
    ],
}


@pytest.mark.parametrize(
    "content", [EVERYTHING, EVERYTHING["observations"]], ids=["document", "rows"]
)
def test_a_file_with_one_thing_wrong_is_read_or_refused(content: Any) -> None:
    content = json.loads(json.dumps(content))
    for path in places(content):
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            check_reading(json.dumps(changed(content, path, how, odd)).encode(), "langfuse")


def test_whatever_was_read_can_be_stored_and_read_back() -> None:
    content = json.loads(json.dumps(EVERYTHING))
    store = Store("memory://langfuse-odd-values")
    for odd in ODD:
        placed = [
            item
            for path in places(content)
            for item in check_reading(
                json.dumps(changed(content, path, "set", odd)).encode(), "langfuse"
            )
            if item.model and item.started_at
        ]
        partition = assemble(SourcedSnapshot("s", item) for item in placed)
        write_partition(store, "2026-03-01", "m", partition, {})
        stored = [item.snapshot for item in read_snapshots(store, "2026-03-01", "m")]
        assert stored == [item.snapshot for item in partition.snapshots]


def test_one_broken_line_never_costs_another() -> None:
    first = {"trace": {**TRACE, "id": "t0"}, "observations": ROWS}
    content = json.loads(json.dumps(EVERYTHING))
    for path in places(content):
        odds: tuple[Any, ...] = (None, 5, "x", [], {})
        for odd in odds:
            data = lines(first, changed(content, path, "set", odd))
            found = check_reading(data, "langfuse")
            assert len(found) == 2
            assert (found[0].trace_id, len(found[0].tool_calls)) == ("t0", 1)


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)  # JSON has neither
        | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "role",
                        "content",
                        "parts",
                        "messages",
                        "tool_calls",
                        "type",
                        "kwargs",
                        "lc",
                        "id",
                        "function",
                        "name",
                        "output",
                        "update",
                        "choices",
                        "message",
                        "args",
                    ]
                ),
                inner | st.sampled_from(["user", "assistant", "tool", "text", "tool_use"]),
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
@settings(max_examples=400)
def test_any_input_and_output_is_read(value: Any) -> None:
    data = lines({"trace": TRACE, "observations": [root(input=value), gen("g", output=value)]})
    (found,) = check_reading(data, "langfuse")
    assert found.problem is None or "model" in found.problem


def test_a_long_chain_of_rows_is_read() -> None:
    rows = [row(str(n), str(n - 1) if n else None) for n in range(3000)]
    assert made(*rows, tool("w", "2999")).tool_calls[0].name == "w"


def test_a_file_named_langfuse_must_hold_traces() -> None:
    file = TraceFile("/x/a.json", "a.json", b"5")
    with pytest.raises(Exception, match="holds no trace"):
        list(choose_format(file, "langfuse").parse(file))
