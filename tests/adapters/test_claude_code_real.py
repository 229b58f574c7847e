"""Claude Code on five real sessions, against `metadata.json` and a reading of the raw rows.

`metadata.json` was written by the tool that recorded the sessions, from outside them: it has the
tokens, the number of API calls and the files that differ in the working tree. What it does not
have (calls, failures, skills) is counted here from the raw rows, without the code under test;
the tables below were checked by eye.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import PurePosixPath
from typing import Any

import pytest

from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.formats.claude_code import NO_RESULT
from benchmark_assets.adapters.traces import read_traces
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import ToolCall, TraceSnapshot
from tests.real_data import REAL, needs_real_data

pytestmark = [needs_real_data, pytest.mark.data]

FOLDER = REAL / "claude-code-sessions"
SESSIONS = ("agent-name-fix", "changelog", "go-upgrade", "skill-no-edits", "skill-review")
WITH_SUB_AGENTS = ("skill-no-edits", "skill-review")
EDITS = ("Edit", "MultiEdit", "NotebookEdit", "Write")
Block = dict[str, Any]


@cache
def trace(name: str) -> TraceSnapshot:
    path = FOLDER / name / "full.jsonl"
    (found,) = read_traces(TraceFile(str(path), path.name, path.read_bytes()), ProjectConfig())
    return found


@cache
def metadata(name: str) -> Any:
    return json.loads((FOLDER / name / "metadata.json").read_text())


@cache
def raw(name: str) -> list[Any]:
    data = (FOLDER / name / "full.jsonl").read_bytes()
    return [json.loads(line) for line in data.split(b"\n") if line]


def raw_blocks(name: str, *, sub_agent: bool) -> Iterator[Block]:
    """The content blocks of the session's own rows, or of those told of its sub-agents."""
    for row in raw(name):
        told = (row.get("data") or {}).get("message") or {}
        content = ((told if sub_agent else row).get("message") or {}).get("content")
        if isinstance(content, list):
            yield from content


def raw_calls(name: str, *, sub_agent: bool) -> dict[str, Block]:
    blocks = raw_blocks(name, sub_agent=sub_agent)
    return {block["id"]: block for block in blocks if block.get("type") == "tool_use"}


def raw_results(name: str) -> dict[str, Block]:
    return {
        block["tool_use_id"]: block
        for sub_agent in (False, True)
        for block in raw_blocks(name, sub_agent=sub_agent)
        if block.get("type") == "tool_result"
    }


def edited(name: str, calls: list[ToolCall]) -> set[str]:
    """Files that edit calls changed, relative to the session's folder."""
    root = trace(name).metadata["cwd"]
    return {
        str(PurePosixPath(call.arguments["file_path"]).relative_to(root))
        for call in calls
        if call.name in EDITS and call.status == "ok"
    }


def test_the_files_are_those_in_the_tables() -> None:
    assert sorted(path.parent.name for path in FOLDER.glob("*/full.jsonl")) == list(SESSIONS)


@pytest.mark.parametrize("name", SESSIONS)
def test_each_session_is_one_trace_without_a_problem(name: str) -> None:
    found = trace(name)
    assert found.problem is None
    # Two of the recorder's ids have the day in front.
    assert metadata(name)["session_id"].endswith(found.trace_id)
    assert found.session_id == found.trace_id


@pytest.mark.parametrize("name", SESSIONS)
def test_token_sums_and_api_calls_equal_the_recorders(name: str) -> None:
    found, truth = trace(name), metadata(name)["token_usage"]
    assert {
        "input_tokens": found.tokens.input,
        "cache_creation_tokens": found.tokens.cache_write,
        "cache_read_tokens": found.tokens.cache_read,
        "output_tokens": found.tokens.output,
        "api_call_count": len(found.generations),
    } == truth


@pytest.mark.parametrize("name", SESSIONS)
def test_adding_up_the_rows_would_be_wrong(name: str) -> None:
    """What the rule on usage is for: each answer is several rows, each with the usage."""
    naive = sum(
        row["message"]["usage"]["output_tokens"] for row in raw(name) if row["type"] == "assistant"
    )
    assert naive > metadata(name)["token_usage"]["output_tokens"]


OWN_CALLS = {
    "agent-name-fix": {"Bash": 7, "Read": 2, "Grep": 2, "Edit": 2},
    "changelog": {"Bash": 9, "Glob": 1, "Write": 1},
    "go-upgrade": {"Edit": 4, "Glob": 3, "Read": 2, "Grep": 1},
    "skill-no-edits": {"Bash": 13, "Skill": 1, "Task": 1},
    "skill-review": {"Skill": 1, "Task": 1, "Bash": 1, "Read": 1},
}
SUB_AGENTS_CALLS = {
    "skill-no-edits": {"Bash": 8, "Read": 4, "Grep": 1},
    "skill-review": {"Bash": 8, "Read": 8, "Glob": 1, "Write": 1},
}


@pytest.mark.parametrize("name", SESSIONS)
def test_every_call_is_there_once_and_in_order(name: str) -> None:
    calls = trace(name).tool_calls
    for sub_agent, table in ((False, OWN_CALLS), (True, SUB_AGENTS_CALLS)):
        told = raw_calls(name, sub_agent=sub_agent)
        found = [call for call in calls if (call.agent is not None) is sub_agent]
        assert [(call.span_id, call.name, call.arguments) for call in found] == [
            (call_id, block["name"], block["input"]) for call_id, block in told.items()
        ]
        assert Counter(call.name for call in found) == table.get(name, {})


@pytest.mark.parametrize("name", SESSIONS)
def test_every_result_is_its_calls(name: str) -> None:
    results = raw_results(name)
    for call in trace(name).tool_calls:
        block = results.get(str(call.span_id))
        if block is None:
            assert (call.status, call.error) == ("error", NO_RESULT)
            continue
        assert call.status == ("error" if block.get("is_error") else "ok")
        shown = call.result["content"] if isinstance(call.result, dict) else call.result
        text = block["content"]
        assert shown == (text if isinstance(text, str) else "\n".join(p["text"] for p in text))


FAILURES: dict[str, list[tuple[str, str | None, str]]] = {
    "agent-name-fix": [("Bash", None, "Exit code 1\nAuto-merging ")],
    "changelog": [],
    "go-upgrade": [("Edit", None, "File has not been read yet.")] * 2,
    # The session was recorded while the sub-agent was still at work.
    "skill-no-edits": [("Task", None, NO_RESULT)],
    "skill-review": [("Bash", "general-purpose", "Permission for this tool use was denied.")],
}


@pytest.mark.parametrize("name", SESSIONS)
def test_failed_calls(name: str) -> None:
    marked = [block for block in raw_results(name).values() if block.get("is_error")]
    asked = {**raw_calls(name, sub_agent=False), **raw_calls(name, sub_agent=True)}
    unanswered = asked.keys() - raw_results(name).keys()
    found = [call for call in trace(name).tool_calls if call.status == "error"]
    assert len(found) == len(marked) + len(unanswered) == len(FAILURES[name])
    for call, (tool, agent, start) in zip(found, FAILURES[name], strict=True):
        assert (call.name, call.agent) == (tool, agent)
        assert str(call.error).startswith(start)


@pytest.mark.parametrize("name", SESSIONS)
def test_files_touched_by_edit_calls(name: str) -> None:
    """With the sub-agents' calls, the edits are the files that the recorder saw changed, in all.

    Of the session's own calls this holds in four of five. The fifth is `skill-review`: no call
    of the session edits `docs/requirements/review-01.md`. It starts a sub-agent by a `Task` call,
    and the sub-agent creates the file by a `Write` call, which stands in no row of the session's
    own conversation: only a progress row tells of it.
    """
    touched = set(metadata(name)["files_touched"] or ())
    calls = list(trace(name).tool_calls)
    assert edited(name, calls) == touched
    own = edited(name, [call for call in calls if call.agent is None])
    assert (own == touched) is (name != "skill-review")


def test_the_file_that_no_call_of_the_session_edits() -> None:
    (created,) = [call for call in trace("skill-review").tool_calls if call.name == "Write"]
    assert created.agent == "general-purpose"
    assert created.arguments["file_path"].endswith("/docs/requirements/review-01.md")
    assert created.result.startswith("File created successfully at: ")


def test_creating_and_updating_can_be_told_apart() -> None:
    (created,) = [call for call in trace("changelog").tool_calls if call.name == "Write"]
    assert created.result["details"]["type"] == "create"
    for call in trace("agent-name-fix").tool_calls:
        if call.name == "Edit":
            assert "has been updated" in call.result["content"]
            assert call.result["details"]["newString"] == call.arguments["new_string"]
            assert "originalFile" not in call.result["details"]


SKILLS = {
    "skill-no-edits": ["superpowers:requesting-code-review"],
    "skill-review": ["reviewer"],
}


@pytest.mark.parametrize("name", SESSIONS)
def test_skills_loaded(name: str) -> None:
    told = [row["toolUseResult"] for row in raw(name) if isinstance(row.get("toolUseResult"), dict)]
    named = [result["commandName"] for result in told if "commandName" in result]
    loads = [call for call in trace(name).tool_calls if call.name == "Skill"]
    assert [call.arguments["skill"] for call in loads] == named == SKILLS.get(name, [])
    assert all(call.status == "ok" and call.result["details"]["success"] for call in loads)


def test_a_sub_agent_that_reported_back_made_as_many_calls_as_it_says() -> None:
    """The result of the `Task` call counts them, too."""
    found = trace("skill-review")
    (task,) = [call for call in found.tool_calls if call.name == "Task"]
    theirs = [call for call in found.tool_calls if call.agent == "general-purpose"]
    assert len(theirs) == task.result["details"]["totalToolUseCount"] == 18


@pytest.mark.parametrize("name", SESSIONS)
def test_sub_agents_are_named_by_their_kind_and_their_tokens_stand_apart(name: str) -> None:
    tasks = [b for b in raw_calls(name, sub_agent=False).values() if b["name"] == "Task"]
    kinds = tuple(block["input"]["subagent_type"] for block in tasks)
    assert trace(name).agents == kinds
    assert bool(kinds) is (name in WITH_SUB_AGENTS)
    usage = trace(name).metadata.get("subagent_usage", {})
    assert tuple(usage) == kinds
    last: dict[str, Any] = {}
    for row in raw(name):
        message = ((row.get("data") or {}).get("message") or {}).get("message") or {}
        if "usage" in message:
            last[message["id"]] = message["usage"]
    for counts in usage.values():
        assert counts["api_calls"] == len(last)
        assert counts["output"] == sum(item["output_tokens"] for item in last.values())
        assert counts["cache_read"] == sum(i["cache_read_input_tokens"] for i in last.values())


CONVERSATIONS = {
    # What the user typed first, how the agent's last text begins, and how many texts were
    # followed by something the user typed.
    "agent-name-fix": ("we need to fix some merge conflicts", "Compiles clean.", 2),
    "changelog": (
        "I'd like to generate a changelog in the repository",
        "Created `CHANGELOG.md`",
        3,
    ),
    "go-upgrade": ("can you update go in all the right places to 1.25.6", "Updated Go version", 0),
    "skill-no-edits": ("help! dev made a bunch of stacked PRs", "All tests pass.", 3),
    # Two slash commands of the terminal come before it.
    "skill-review": ("we are reviewing https://github.com/", "## Review Summary", 0),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_what_was_said(name: str) -> None:
    found = trace(name)
    prompt, answer, asked = CONVERSATIONS[name]
    assert str(found.prompt).startswith(prompt)
    assert str(found.final_answer).startswith(answer)
    assert len(found.questions) == asked
    said = [
        block["text"]
        for row in raw(name)
        if row["type"] == "assistant"
        for block in row["message"]["content"]
        if block["type"] == "text" and block["text"].strip()
    ]
    assert [message.text for message in found.messages] == said


PLACES = {
    "agent-name-fix": ("claude-opus-4-6", "2.1.36", "dev/ent-207-fix-agent-name-misattribution"),
    "changelog": ("claude-opus-4-6", "2.1.37", "main"),
    "go-upgrade": ("claude-opus-4-5-20251101", "2.1.22", "main"),
    "skill-no-edits": ("claude-opus-4-5-20251101", "2.1.17", "main"),
    "skill-review": ("claude-opus-4-5-20251101", "2.1.19", "dev/fix-session-date-change-bug"),
}


@pytest.mark.parametrize("name", SESSIONS)
def test_where_and_when_it_ran(name: str) -> None:
    found = trace(name)
    assert (found.model, found.metadata["version"], found.metadata["git_branch"]) == PLACES[name]
    assert found.metadata["permission_mode"] == "default"
    times = sorted(row["timestamp"] for row in raw(name) if "timestamp" in row)
    assert found.started_at is not None
    assert found.ended_at is not None
    assert found.started_at.isoformat(timespec="milliseconds") == times[0].replace("Z", "+00:00")
    assert found.ended_at.isoformat(timespec="milliseconds") == times[-1].replace("Z", "+00:00")
    # None of these versions recorded why the model stopped.
    assert (found.ended, found.ended_normally, found.error) == (None, None, None)
