"""Claude Code's session files: the smallest session that shows each trap of the real ones."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import FORMATS, choose_format
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.formats.claude_code import NO_RESULT
from benchmark_assets.adapters.formats.claude_code_rows import SYNTHETIC
from benchmark_assets.adapters.snapshot_files import (
    SourcedSnapshot,
    assemble,
    read_snapshots,
    write_partition,
)
from benchmark_assets.adapters.store import Store
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import ErrorSpan, Tokens, ToolCall, TraceSnapshot
from tests.adapters.samples import NAME, lines, parse, trace_file
from tests.adapters.test_formats import ODD, changed, check_reading, places

SESSION = "5e551011-aaaa"
USAGE = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 40,
    "cache_read_input_tokens": 500,
    "output_tokens": 2,
}


def row(kind: str, **fields: Any) -> dict[str, Any]:
    """A row as the program writes it, but for the uuid, which `rows` gives."""
    known = {
        "type": kind,
        "parentUuid": None,
        "isSidechain": False,
        "sessionId": SESSION,
        "cwd": "/code/shop",
        "gitBranch": "main",
        "version": "2.1.22",
        "timestamp": "2026-02-01T10:00:00.000Z",
    }
    return {**known, **fields}


def user(content: Any = "Add a page.", **fields: Any) -> dict[str, Any]:
    return row("user", message={"role": "user", "content": content}, **fields)


def says(*blocks: Any, answer: str | None = "msg_1", **fields: Any) -> dict[str, Any]:
    """A row of an answer; `usage`, `model`, `stop_reason` go into its message."""
    message = {
        "id": answer,
        "role": "assistant",
        "model": fields.pop("model", "claude-opus-4-6"),
        "content": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks],
        "stop_reason": fields.pop("stop_reason", None),
        "usage": fields.pop("usage", USAGE),
    }
    return row("assistant", message=message, requestId="req_1", **fields)


def use(name: str = "Bash", arguments: Any = None, call_id: Any = "c1") -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments or {}}


def gives(content: Any = "done", call_id: Any = "c1", **fields: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **fields}


def told(kind: str, message: dict[str, Any], call_id: str = "t1", **fields: Any) -> dict[str, Any]:
    """A progress row in which the program shows what a sub-agent does."""
    inner = {"type": kind, "message": message, "timestamp": "2026-02-01T10:00:03.000Z"}
    data = {"type": "agent_progress", "agentId": "a77", "message": inner}
    return row("progress", data=data, parentToolUseID=call_id, **fields)


def rows(*given: Any) -> bytes:
    """A session file; rows without a uuid get one."""
    return lines(
        *(
            {"uuid": f"u{index}", **value} if isinstance(value, dict) else value
            for index, value in enumerate(given)
        )
    )


def session(*given: Any) -> TraceSnapshot:
    (found,) = parse(rows(*given), "claude-code")
    return found


def calls(*given: Any) -> list[tuple[str, str | None, str | None]]:
    return [(c.name, c.status, c.error) for c in session(*given).tool_calls]


WHOLE = [
    {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
    row("progress", data={"type": "hook_progress"}, timestamp="2026-02-01T09:59:58.000Z"),
    user(permissionMode="acceptEdits"),
    says({"type": "thinking", "thinking": "I will write it."}),
    says("I will write it.", timestamp="2026-02-01T10:00:01.000Z"),
    says(
        use("Write", {"file_path": "/code/shop/a.md", "content": "# A"}),
        timestamp="2026-02-01T10:00:02.000Z",
        usage={**USAGE, "output_tokens": 25},
        stop_reason="tool_use",
    ),
    user(
        [gives("File created successfully at: /code/shop/a.md")],
        toolUseResult={
            "type": "create",
            "filePath": "/code/shop/a.md",
            "originalFile": None,
            "structuredPatch": [],
        },
        timestamp="2026-02-01T10:00:04.500Z",
    ),
    says("There it is.", answer="msg_2", stop_reason="end_turn"),
    row("system", subtype="turn_duration", durationMs=6500, timestamp="2026-02-01T10:00:06.500Z"),
]


def test_a_whole_session_field_by_field() -> None:
    (found,) = parse(rows(*WHOLE))
    assert (found.trace_id, found.session_id) == (SESSION, SESSION)
    assert (found.origin.format, found.origin.record) == ("claude-code", None)
    assert (found.name, found.workflow, found.task, found.trial) == (
        "claude-code",
        None,
        None,
        None,
    )
    assert str(found.started_at) == "2026-02-01 09:59:58+00:00"
    assert str(found.ended_at) == "2026-02-01 10:00:06.500000+00:00"
    assert found.duration_ms == 8500
    assert (found.prompt, found.final_answer) == ("Add a page.", "There it is.")
    assert (found.ended, found.ended_normally, found.error) == ("end_turn", True, None)
    assert found.metadata == {
        "cwd": "/code/shop",
        "git_branch": "main",
        "version": "2.1.22",
        "permission_mode": "acceptEdits",
    }
    assert [(m.text, m.before_call, m.question) for m in found.messages] == [
        ("I will write it.", 0, False),
        ("There it is.", 1, False),
    ]
    (made,) = found.tool_calls
    assert str(made.started_at) == "2026-02-01 10:00:02+00:00"
    assert str(made.ended_at) == "2026-02-01 10:00:04.500000+00:00"
    assert msgspec.structs.replace(made, started_at=None, ended_at=None) == ToolCall(
        name="Write",
        arguments={"file_path": "/code/shop/a.md", "content": "# A"},
        result={
            "content": "File created successfully at: /code/shop/a.md",
            "details": {
                "type": "create",
                "filePath": "/code/shop/a.md",
                "originalFile": None,
                "structuredPatch": [],
            },
        },
        status="ok",
        span_id="c1",
    )
    assert (found.agents, found.skills, found.files) == ((), (), ())
    assert (found.error_spans, found.problem) == ((), None)


def test_an_answer_counts_once_with_the_usage_of_its_last_row() -> None:
    found = session(*WHOLE)
    assert [
        (g.response_id, g.span_id, g.model, g.finish_reason, g.before_call, g.tokens.output)
        for g in found.generations
    ] == [
        ("msg_1", "req_1", "claude-opus-4-6", "tool_use", 0, 25),
        ("msg_2", "req_1", "claude-opus-4-6", "end_turn", 1, 2),
    ]
    assert found.tokens == Tokens(input=6, output=27, cache_read=1000, cache_write=80)


def test_the_last_row_of_an_answer_counts_though_others_come_between() -> None:
    found = session(
        user(),
        says(use(call_id="c1"), usage={"output_tokens": 1}),
        user([gives()]),
        says("Done.", answer="msg_2", usage={"output_tokens": 100}),
        says(use(call_id="c2"), usage={"output_tokens": 7}),
    )
    assert [(g.response_id, g.tokens.output) for g in found.generations] == [
        ("msg_1", 7),
        ("msg_2", 100),
    ]


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, Tokens()),
        ({}, Tokens()),
        ("many", Tokens()),
        ({"input_tokens": 0}, Tokens(input=0)),
        ({"input_tokens": -1, "output_tokens": "x"}, Tokens()),
        ({"cache_read_input_tokens": 5, "cache_creation": {"x": 9}}, Tokens(cache_read=5)),
    ],
)
def test_unknown_tokens_are_not_nothing(usage: Any, expected: Tokens) -> None:
    assert session(user(), says("Hi.", usage=usage)).tokens == expected


def test_a_last_row_without_usage_does_not_take_away_the_one_before() -> None:
    assert session(user(), says("Hi."), says("There.", usage=None)).tokens.cache_write == 40


def test_answers_without_an_id_are_one_each() -> None:
    found = session(user(), says("Hi.", answer=None), says("There.", answer=None))
    assert len(found.generations) == 2
    assert found.tokens.input == 6


def test_rows_copied_by_a_resumed_session_count_once() -> None:
    copied = [{"uuid": f"same{index}", **value} for index, value in enumerate(WHOLE)]
    once, twice = session(*copied), session(*copied, *copied)
    assert msgspec.structs.replace(twice, origin=once.origin) == once


def test_copies_under_new_uuids_count_once_too() -> None:
    once, twice = session(*WHOLE), session(*WHOLE, *WHOLE)
    assert (twice.tool_calls, twice.tokens) == (once.tool_calls, once.tokens)
    assert [m.text for m in twice.messages] == [m.text for m in once.messages]


def test_several_sessions_in_a_file_are_one_trace_under_the_last() -> None:
    found = session(user(sessionId="old"), says("Hi.", sessionId="old"), user("And?"), says("No."))
    assert (found.trace_id, found.session_id) == (SESSION, SESSION)
    assert found.metadata["session_ids"] == ["old", SESSION]
    assert found.prompt == "Add a page."


@pytest.mark.parametrize(
    ("block", "details", "status", "error"),
    [
        (gives(), None, "ok", None),
        (gives(is_error=False), {"interrupted": False}, "ok", None),
        (gives("Exit code 1", is_error=True), "Error: Exit code 1", "error", "Exit code 1"),
        (
            gives("<tool_use_error>File has not been read yet.</tool_use_error>", is_error=True),
            None,
            "error",
            "File has not been read yet.",
        ),
        (gives([{"type": "text", "text": "No."}], is_error=True), None, "error", "No."),
        (gives(None, is_error=True), None, "error", None),
        # Only the mark decides, not the words.
        (gives("Error: 0 failures"), None, "ok", None),
        # What was refused or stopped was not done.
        (
            gives("The user doesn't want to proceed with this tool use.", is_error=True),
            "User rejected tool use",
            "error",
            "The user doesn't want to proceed with this tool use.",
        ),
        (
            gives("[Request interrupted by user for tool use]"),
            None,
            "error",
            "[Request interrupted by user for tool use]",
        ),
        (gives("half of it"), {"stdout": "half of it", "interrupted": True}, "error", "half of it"),
        (gives(""), {"stdout": "", "interrupted": True}, "error", "interrupted"),
    ],
)
def test_whether_a_call_failed(block: Any, details: Any, status: str, error: str | None) -> None:
    extra = {} if details is None else {"toolUseResult": details}
    assert calls(user(), says(use()), user([block], **extra)) == [("Bash", status, error)]


def test_a_call_without_a_result_did_not_succeed() -> None:
    assert calls(user(), says(use()), user([gives(call_id="c9")])) == [("Bash", "error", NO_RESULT)]


@pytest.mark.parametrize(
    ("content", "details", "result"),
    [
        ("text", None, "text"),
        ("text", "Error: text", "text"),
        ("text", [{"type": "text"}], "text"),
        ("text", {"success": True}, {"content": "text", "details": {"success": True}}),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], None, "a\nb"),
        ([{"type": "image", "source": {}}], None, [{"type": "image", "source": {}}]),
        ("", {"stdout": ""}, {"content": "", "details": {"stdout": ""}}),
        (
            "updated",
            {"newString": "b", "originalFile": "a secret", "structuredPatch": [{"lines": ["a"]}]},
            {"content": "updated", "details": {"newString": "b"}},
        ),
    ],
)
def test_the_shape_of_a_result(content: Any, details: Any, result: Any) -> None:
    extra = {} if details is None else {"toolUseResult": details}
    (made,) = session(user(), says(use()), user([gives(content)], **extra)).tool_calls
    assert made.result == result


def test_results_in_one_row_answer_their_calls_and_share_no_details() -> None:
    found = session(
        user(),
        says(use(call_id="c1"), use("Read", call_id="c2")),
        user([gives("B", "c2"), gives("A", "c1")], toolUseResult={"stdout": "?"}),
    )
    assert [(c.name, c.result) for c in found.tool_calls] == [("Bash", "A"), ("Read", "B")]


def test_a_second_result_changes_nothing() -> None:
    again = user([gives("no", is_error=True)])
    assert calls(user(), says(use()), user([gives()]), again) == [("Bash", "ok", None)]


TASK = says(use("Task", {"subagent_type": "reviewer", "prompt": "Review it."}, "t1"))


def sub(*blocks: Any, answer: str = "sub_1") -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 4}
    return {"id": answer, "model": "claude-haiku", "content": list(blocks), "usage": usage}


def test_a_sub_agents_calls_in_progress_rows_count() -> None:
    text = {"type": "text", "text": "Let me look."}
    found = session(
        user(),
        TASK,
        told("user", {"content": [{"type": "text", "text": "Review it."}]}),
        told("assistant", sub(text, use("Read", {"file_path": "a"}, "s1"))),
        told("assistant", sub(use("Write", {"file_path": "b"}, "s2"))),
        told("user", {"content": [gives("A", "s1")]}),
        told("user", {"content": [gives("denied", "s2", is_error=True)]}),
        told("assistant", sub(use("Bash", None, "s3"), answer="sub_2"), call_id="unknown"),
        user([gives("Fine.", "t1")], toolUseResult={"status": "completed"}),
        says("It is fine.", answer="msg_2"),
    )
    assert [(c.name, c.agent, c.status, c.error) for c in found.tool_calls] == [
        ("Task", None, "ok", None),
        ("Read", "reviewer", "ok", None),
        ("Write", "reviewer", "error", "denied"),
        ("Bash", "a77", "error", NO_RESULT),
    ]
    assert found.agents == ("reviewer", "a77")
    # What a sub-agent says is not said to the user, and what it was told is not the prompt.
    assert [(m.text, m.before_call) for m in found.messages] == [("It is fine.", 4)]
    assert found.prompt == "Add a page."


def test_the_tokens_seen_of_a_sub_agent_stand_apart() -> None:
    found = session(
        user(),
        TASK,
        told("assistant", sub(use("Read", None, "s1"))),
        told("assistant", sub(use("Read", None, "s2"))),
        told("assistant", sub(use("Read", None, "s3"), answer="sub_2")),
    )
    assert len(found.generations) == 1
    assert found.tokens.input == 3
    assert found.metadata["subagent_usage"] == {
        "reviewer": {"api_calls": 2, "input": 2, "output": 8}
    }


def test_a_side_chain_is_named_by_the_call_that_started_it() -> None:
    side: dict[str, Any] = {"isSidechain": True}
    chain = [
        user("Review it.", uuid="s0", **side),
        says(use("Read", None, "s1"), answer="sub_1", uuid="s1", parentUuid="s0", **side),
        user([gives("A", "s1")], uuid="s2", parentUuid="s1", **side),
        says("Fine.", answer="sub_2", uuid="s3", parentUuid="s2", **side),
    ]
    found = session(user(), TASK, *chain, user([gives("Fine.", "t1")]), says("Ok.", answer="m2"))
    assert [(c.name, c.agent, c.status) for c in found.tool_calls] == [
        ("Task", None, "ok"),
        ("Read", "reviewer", "ok"),
    ]
    assert [(g.response_id, g.agent) for g in found.generations] == [
        ("msg_1", None),
        ("sub_1", "reviewer"),
        ("sub_2", "reviewer"),
        ("m2", None),
    ]
    assert found.tokens.input == 12
    assert [m.text for m in found.messages] == ["Ok."]


@pytest.mark.parametrize("text", ["Look again.", "[Request interrupted by user]"])
def test_what_a_sub_agent_is_told_is_no_text_of_the_user(text: str) -> None:
    """A sub-agent in the background, at work while the agent waits for the user."""
    content = [{"type": "text", "text": text}]
    later = [told("user", {"content": content}), user(content, isSidechain=True)]
    found = session(*later, user(), says("Which?", stop_reason="end_turn"), *later)
    assert (found.prompt, found.ended) == ("Add a page.", "end_turn")
    assert [m.question for m in found.messages] == [False]


@pytest.mark.parametrize(
    ("fields", "name"), [({"agentId": "a77"}, "a77"), ({}, "sidechain")], ids=repr
)
def test_a_side_chain_of_unknown_origin(fields: Any, name: str) -> None:
    stray = says(use("Read", None, "s1"), answer="sub_1", isSidechain=True, **fields)
    assert [c.agent for c in session(user(), says("Hm."), stray).tool_calls] == [name]


def test_a_file_of_nothing_but_a_side_chain_is_the_sub_agents() -> None:
    side: dict[str, Any] = {"isSidechain": True, "agentId": "a77"}
    found = session(user("Review it.", **side), says("Fine.", use(), **side))
    assert (found.trace_id, found.session_id) == (f"{SESSION}:a77", SESSION)
    assert (found.prompt, found.final_answer) == ("Review it.", "Fine.")
    assert found.metadata["agent_id"] == "a77"
    assert (found.agents, [c.agent for c in found.tool_calls]) == ((), [None])


NOT_TYPED = [
    user("<local-command-caveat>Caveat: …</local-command-caveat>", isMeta=True),
    user("Continue from where you left off.", isMeta=True),
    user("Summary of all that was said.", isCompactSummary=True),
    user("This session is being continued from a previous conversation that ran out."),
    user("Caveat: The messages below were generated by the user while running commands."),
    user("<local-command-stdout>Connected.</local-command-stdout>"),
    user("<bash-input>ls</bash-input>"),
    user("<bash-stdout>a.md</bash-stdout><bash-stderr></bash-stderr>"),
    user("<system-reminder>Mind the list.</system-reminder>"),
    user([{"type": "text", "text": "<system-reminder>One.</system-reminder>\n"}]),
    user([{"type": "text", "text": "<ide_opened_file>a.md</ide_opened_file>"}]),
    user([{"type": "image", "source": {}}]),
    user("  "),
    user([]),
    user("[Request interrupted by user]"),
    row("summary", summary="A page", leafUuid="x"),
    row("queue-operation", operation="enqueue", content="later"),
    row("system", subtype="compact_boundary", content="Conversation compacted"),
    row("system", subtype="local_command", content="<command-name>/skills</command-name>"),
    row("something-new", message={"role": "user", "content": "x"}),
]


@pytest.mark.parametrize("note", NOT_TYPED, ids=lambda note: str(note.get("message"))[:60])
def test_what_the_user_did_not_type_is_neither_prompt_nor_answer(note: Any) -> None:
    """The row comes first, and after a text that the agent is waiting with."""
    found = session(note, user(), says("Which?"), note)
    assert found.prompt == "Add a page."
    assert [m.question for m in found.messages] == [False]
    assert found.problem is None


@pytest.mark.parametrize(
    "content",
    [
        "Add a page.",
        [{"type": "text", "text": "Add a page."}],
        "<system-reminder>Mind\nthe list.</system-reminder>\nAdd a page.",
        [
            {"type": "text", "text": "<ide_selection>a</ide_selection>"},
            {"type": "text", "text": "Add a page."},
        ],
    ],
)
def test_the_prompt_is_what_was_typed(content: Any) -> None:
    assert session(user(content), says("Hi.")).prompt == "Add a page."


def command(name: str, arguments: str = "") -> dict[str, Any]:
    return user(
        f"<command-message>x</command-message>\n<command-name>{name}</command-name>\n"
        f"<command-args>{arguments}</command-args>"
    )


def test_a_command_that_the_agent_answers_was_typed_to_it() -> None:
    expansion = user("Fix the issue described in …", isMeta=True)
    found = session(command("/fix", "issue 7"), expansion, says("Done."))
    assert found.prompt == "/fix issue 7"
    found = session(user(), says("Which?"), command("/fix"), expansion, says("Done.", answer="m2"))
    assert [m.question for m in found.messages] == [True, False]


def test_a_command_that_the_program_answers_was_not() -> None:
    done = user("<local-command-stdout>Connected.</local-command-stdout>")
    assert session(command("/ide"), done, user(), says("Hi.")).prompt == "Add a page."
    assert session(command("/ide"), done, says("Hi.")).prompt is None


def questions(*given: Any) -> list[bool]:
    return [m.question for m in session(*given).messages]


def test_a_text_that_the_user_then_answers_is_a_question() -> None:
    assert questions(user(), says("Which?"), user("This."), says("Ok.", answer="m2")) == [
        True,
        False,
    ]
    # Only the last text before the answer; and none after which the agent went on.
    assert questions(user(), says("One."), says("Two?"), user("Yes.")) == [False, True]
    assert questions(user(), says("Wait."), says(use()), user([gives()]), user("Now?")) == [False]


def test_a_text_after_which_the_agent_was_stopped_is_no_question() -> None:
    stopped = user([{"type": "text", "text": "[Request interrupted by user]"}])
    assert questions(user(), says("I will …"), stopped, user("Do not.")) == [False]


def test_texts_that_say_nothing_are_left_out() -> None:
    found = session(user(), says("\n\n"), says("Hi."), says(" "))
    assert [m.text for m in found.messages] == ["Hi."]


@pytest.mark.parametrize(
    ("reason", "normally", "error"),
    [
        (None, None, None),
        ("end_turn", True, None),
        ("stop_sequence", True, None),
        ("max_tokens", False, "ended by max_tokens"),
        ("refusal", False, "ended by refusal"),
        ("tool_use", False, "ended by tool_use"),
    ],
)
def test_how_a_session_ended(reason: Any, normally: bool | None, error: str | None) -> None:
    found = session(user(), says("Hi.", stop_reason="end_turn", answer="m0"), user("And?"))
    assert found.ended == "end_turn"
    found = session(
        user(),
        says("Hi.", stop_reason="max_tokens", answer="m0"),
        user("Go on."),
        says("Hm.", stop_reason=reason),
        says("Well.", stop_reason=None),
    )
    assert (found.ended, found.ended_normally, found.error) == (reason, normally, error)
    assert found.problem is None


def test_a_session_that_the_user_stopped() -> None:
    stopped = [
        user(),
        says(use()),
        user([{"type": "text", "text": "[Request interrupted by user"}]),
    ]
    found = session(*stopped)
    assert (found.ended, found.ended_normally) == ("interrupted", False)
    assert (found.error, found.problem) == ("ended by interrupted", None)
    found = session(*stopped, user("Go on."), says("Done.", answer="m2", stop_reason="end_turn"))
    assert (found.ended, found.ended_normally, found.error) == ("end_turn", True, None)


def api_error(text: str, **fields: Any) -> dict[str, Any]:
    return says(text, answer="x", model=SYNTHETIC, isApiErrorMessage=True, **fields)


def test_the_providers_failure_at_the_end_is_no_verdict() -> None:
    found = session(user(), says("Hi."), api_error("API Error: 529 Overloaded"))
    assert found.problem == (
        "sub/results.json: ended by an API error, which is not the agent's doing"
    )
    assert (found.ended, found.ended_normally) == ("api_error", False)
    # The failure is listed once, and it is neither an answer of the agent nor of a model.
    assert (found.error, found.error_spans) == ("API Error: 529 Overloaded", ())
    assert (found.final_answer, len(found.generations)) == ("Hi.", 1)


@pytest.mark.parametrize(
    "text",
    [
        "Prompt is too long",
        "API Error: Claude's response exceeded the 32000 output token maximum.",
    ],
)
def test_a_full_context_or_answer_is_the_agents_doing(text: str) -> None:
    found = session(user(), says("Hi."), api_error(text))
    assert (found.problem, found.error, found.ended_normally) == (None, text, False)


def test_an_api_error_that_was_got_past_is_an_error_span() -> None:
    error = api_error("API Error: 500", uuid="e1")
    later = [user("Go on."), says("Done.", answer="m2", stop_reason="end_turn")]
    found = session(user(), error, *later)
    assert found.error_spans == (
        ErrorSpan(
            name="api_error",
            kind="assistant",
            message="API Error: 500",
            started_at=found.started_at,
            span_id="e1",
        ),
    )
    assert (found.ended, found.error, found.problem) == ("end_turn", None, None)


def test_each_api_error_is_listed_once() -> None:
    failed = [user(), api_error("first"), user("Again."), api_error("second")]
    found = session(*failed)
    assert ([s.message for s in found.error_spans], found.error) == (["first"], "second")
    stopped = user([{"type": "text", "text": "[Request interrupted by user]"}])
    found = session(*failed, user("Again."), stopped)
    assert [s.message for s in found.error_spans] == ["first", "second"]
    assert (found.error, found.problem) == ("ended by interrupted", None)


def test_a_sub_agents_api_error_does_not_end_the_session() -> None:
    found = session(user(), says("Hi."), api_error("API Error: 500", isSidechain=True))
    assert [(s.message, s.agent) for s in found.error_spans] == [("API Error: 500", "sidechain")]
    assert (found.ended, found.problem) == (None, None)


def test_an_answer_that_no_model_gave_is_none() -> None:
    found = session(
        user(), says("Hi."), says("No response requested.", model=SYNTHETIC, answer="x")
    )
    assert [g.model for g in found.generations] == ["claude-opus-4-6"]
    assert found.final_answer == "Hi."


BAD = [
    ("{broken", "sub/results.json:2: is not JSON: "),
    ('{"type": "user", ', "sub/results.json:2: is cut off in the middle of its JSON"),
    ("5", "sub/results.json: line 2: expected an object"),
    (row("user", message="x", uuid="b"), "sub/results.json: line 2: message: expected an object"),
    (row("assistant", uuid="b"), "sub/results.json: line 2: message: expected an object"),
    (
        user(5, uuid="b"),
        "sub/results.json: line 2: message.content: expected a text or a list of blocks",
    ),
    (
        says({"type": "tool_use", "id": "c7"}, uuid="b"),
        "sub/results.json: line 2: message.content[0]: a call has no name",
    ),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=[message for _, message in BAD])
def test_a_line_that_cannot_be_read_makes_the_session_incomplete(bad: Any, message: str) -> None:
    found = session(user(), bad, says("Hi.", use()), user([gives()]))
    assert str(found.problem).startswith(message)
    # The other lines are read all the same.
    assert (found.prompt, found.final_answer, len(found.tool_calls)) == ("Add a page.", "Hi.", 1)
    found = session(user(), bad, says("Hi."), "{broken", "[]")
    assert str(found.problem).startswith(message)
    assert str(found.problem).endswith(" (and 2 more)")


def test_a_session_in_which_nothing_was_said() -> None:
    found = session(row("progress", data={"type": "hook_progress"}))
    assert found.problem == "sub/results.json: holds no message"
    assert (found.trace_id, found.prompt, found.tokens) == (SESSION, None, Tokens())


def test_a_session_may_be_one_line_or_a_list_of_rows() -> None:
    (found,) = parse(rows(user()))
    assert found.prompt == "Add a page."
    (found,) = parse([{"uuid": "a", **user()}, {"uuid": "b", **says("Hi.")}, 5])
    assert (found.final_answer, found.problem) == (
        "Hi.",
        "sub/results.json: [2]: expected an object",
    )


def test_rows_are_recognised_wherever_they_begin() -> None:
    """A broken line, and rows of other kinds, do not hide the session."""
    content = rows("{broken", {"type": "summary", "summary": "x", "leafUuid": "y"}, user())
    assert choose_format(trace_file(content)).name == "claude-code"


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"type": "user", "sessionId": "s"},
        {"type": "user", "message": {"role": "user", "content": "x"}},
        {"type": "summary", "summary": "x", "leafUuid": "y"},
        {**row("user"), "uuid": "a", "sessionId": None},
        {**row("user"), "uuid": "a", "type": 5},
        [],
    ],
)
def test_what_is_no_session(content: Any) -> None:
    by_name = {fmt.name: fmt for fmt in FORMATS}
    assert by_name["claude-code"].matches(trace_file(content)) is False
    with pytest.raises(InputError, match="holds no row of a session"):
        parse(json.dumps(content), "claude-code")


ALL = [
    *WHOLE,
    TASK,
    told("assistant", sub(use("Read", None, "s1"))),
    told("user", {"content": [gives("A", "s1")]}),
    user([gives("Fine.", "t1")], toolUseResult={"usage": {"input_tokens": 1}}),
    user("Review it.", isSidechain=True),
    api_error("API Error: 500"),
    command("/fix", "it"),
    says("Done.", answer="m9"),
]
SAMPLE = json.loads(json.dumps([{"uuid": f"u{i}", **value} for i, value in enumerate(ALL)]))


def test_a_file_with_one_thing_wrong_is_read() -> None:
    """Every place of every row, dropped, doubled, and replaced by every odd value."""
    for path in places(SAMPLE):
        if len(path) < 2:
            continue
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            (found,) = check_reading(lines(*changed(SAMPLE, path, how, odd)), "auto")
            assert len(found.tool_calls) >= 1


def test_no_odd_value_keeps_a_session_from_being_stored() -> None:
    store = Store("memory://odd-sessions")
    placed = []
    for number, path in enumerate(path for path in places(SAMPLE) if len(path) > 1):
        content = lines(*changed(SAMPLE, path, "set", ODD[number % len(ODD)]))
        found = check_reading(content, "auto")[0]
        if found.model and found.started_at:
            placed.append(msgspec.structs.replace(found, trace_id=f"t{number}"))
    partition = assemble(SourcedSnapshot("s", item) for item in placed)
    write_partition(store, "2026-02-01", "m", partition, {})
    stored = [item.snapshot for item in read_snapshots(store, "2026-02-01", "m")]
    assert stored == [item.snapshot for item in partition.snapshots]
    assert len(stored) > 100


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_files_with_some_things_wrong_or_cut_off_are_read_or_refused(data: st.DataObject) -> None:
    content = SAMPLE
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from([path for path in places(content) if path]))
        how = data.draw(st.sampled_from(["drop", "double", "set"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    text = lines(*content)
    check_reading(text, "claude-code")
    check_reading(text[: data.draw(st.integers(0, len(text)))], "claude-code")


def test_no_problem_names_an_absolute_path() -> None:
    for bad, _ in BAD:
        assert NAME not in str(session(user(), bad).problem)
    assert TraceFile(NAME, "k.jsonl", rows(*WHOLE)).name == NAME
