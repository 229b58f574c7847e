"""What calls do: cases as files, and every line of every packaged profile needs one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.adapters.harness_files import packaged_profiles
from benchmark_assets.model.harness import Effect, HarnessProfile
from benchmark_assets.model.trace import FileEvent, Origin, SkillLoad, ToolCall, TraceSnapshot
from benchmark_assets.scoring.activity import Activity, interpret
from tests.real_data import REAL, needs_real_data

CASES = Path(__file__).parents[1] / "data" / "activity"
PROFILES = packaged_profiles()
BY_NAME = {profile.name: profile for profile in PROFILES}


def load_cases() -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The steps of each case, by harness and name."""
    loaded: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for path in sorted(CASES.glob("*.yaml")):
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
        for name, steps in data["cases"].items():
            loaded[data["harness"], name] = steps
    return loaded


ALL = load_cases()


def trace(*calls: ToolCall, **parts: Any) -> TraceSnapshot:
    origin = Origin(file="t.json", sha256="0" * 64, format="snapshot")
    return TraceSnapshot(trace_id="t", origin=origin, tool_calls=calls, **parts)


def call(tool: str, status: Any = "ok", /, **arguments: Any) -> ToolCall:
    return ToolCall(name=tool, arguments=arguments, status=status)


def said(activity: Activity, index: int) -> list[str]:
    """What an activity says of one call, in the words of the cases."""
    words = [f"skill {s.status or '?'} {s.name}" for s in activity.skills if s.call == index]
    for event in activity.files:
        if event.call == index:
            words.append(f"{event.operation} {event.status or '?'} {event.path}")
            words[-1] += f" -> {event.moved_to}" if event.moved_to is not None else ""
            words[-1] += f" = {event.content}" if event.content is not None else ""
    words += [f"{b.kind} {b.status or '?'}" for b in activity.builds if b.call == index]
    notes = {
        "asks": activity.questions,
        "opaque": activity.opaque,
        "unseen read": activity.unseen_reads,
        "unknown": activity.unknown,
    }
    return words + [word for word, indices in notes.items() if index in indices]


def outcome(profile: HarnessProfile, steps: list[dict[str, Any]]) -> list[list[str]]:
    """What a profile makes of each step of a case."""
    if "roots" in steps[0]:
        return [
            list(interpret(trace(metadata=step["metadata"]), [profile], profile.name).roots)
            for step in steps
        ]
    calls = [
        ToolCall(
            name=step["tool"],
            arguments=step.get("args"),
            result=step.get("result"),
            status=step.get("status"),
            error=step.get("error"),
            agent=step.get("agent"),
        )
        for step in steps
    ]
    activity = interpret(trace(*calls), [profile], profile.name)
    assert activity.harness == profile.name
    return [said(activity, index) for index in range(len(calls))]


@pytest.mark.parametrize(("harness", "name"), ALL, ids=str)
def test_a_case(harness: str, name: str) -> None:
    steps = ALL[harness, name]
    found = outcome(BY_NAME[harness], steps)
    for step, words in zip(steps, found, strict=True):
        assert words == step.get("does", step.get("roots")), step


# Every line of a profile has a case that fails without it.


def mutants(profile: HarnessProfile) -> Iterator[tuple[str, HarnessProfile]]:
    """The profile without one of its lines, each in turn; lines that tools share go together."""
    for tool in profile.tools:
        rest = {name: effects for name, effects in profile.tools.items() if name != tool}
        yield f"tools.{tool}", profile.model_copy(update={"tools": rest})
    for place in profile.workspace:
        rest_of_them = tuple(other for other in profile.workspace if other != place)
        yield f"workspace: {place}", profile.model_copy(update={"workspace": rest_of_them})
    for kind in ("build", "validate_", "none"):
        known = getattr(profile.commands, kind)
        for one in known:
            others = tuple(other for other in known if other != one)
            commands = profile.commands.model_copy(update={kind: others})
            yield f"commands.{kind}: {one}", profile.model_copy(update={"commands": commands})
            for signs in ("failed", "succeeded") if kind != "none" else ():
                if getattr(one, signs):
                    mute = one.model_copy(update={signs: ()})
                    less = tuple(mute if other == one else other for other in known)
                    commands = profile.commands.model_copy(update={kind: less})
                    label = f"commands.{kind}: {one.regex}: {signs}"
                    yield label, profile.model_copy(update={"commands": commands})
    lines = {
        (field, item): None
        for effects in profile.tools.values()
        for effect in effects
        for field in Effect.model_fields
        if isinstance(value := getattr(effect, field), tuple)
        for item in value
    }
    for field, item in lines:
        tools = {
            name: tuple(_without(effect, field, item) for effect in effects)
            for name, effects in profile.tools.items()
        }
        yield f"{field}: {item}", profile.model_copy(update={"tools": tools})
    for name, effects in profile.tools.items():
        for effect in effects:
            if effect.keeps_directory:
                changed = effect.model_copy(update={"keeps_directory": False})
                tools = {**profile.tools, name: (changed,)}
                yield f"{name}.keeps_directory", profile.model_copy(update={"tools": tools})


def _without(effect: Effect, field: str, item: Any) -> Effect:
    rest = tuple(other for other in getattr(effect, field) if other != item)
    return effect.model_copy(update={field: rest})


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_every_line_of_a_profile_has_a_case(profile: HarnessProfile) -> None:
    cases = [steps for (harness, _), steps in ALL.items() if harness == profile.name]
    expected = [[step.get("does", step.get("roots")) for step in steps] for steps in cases]
    unused = [
        line
        for line, mutant in mutants(profile)
        if [outcome(mutant, steps) for steps in cases] == expected
    ]
    assert unused == []


@pytest.mark.parametrize("profile", PROFILES, ids=lambda profile: profile.name)
def test_every_glob_that_recognises_a_harness_speaks_for_a_tool_of_its_own(
    profile: HarnessProfile,
) -> None:
    for glob in profile.recognised_by:
        assert glob in profile.tools
        activity = interpret(trace(call(glob)), PROFILES)
        assert activity.harness == profile.name


# Choosing a profile.


def small(name: str, *globs: str) -> HarnessProfile:
    return HarnessProfile.model_validate(
        {"name": name, "recognised_by": list(globs), "tools": {"*": "none"}}
    )


def test_the_profile_that_recognises_most_distinct_tools_is_chosen() -> None:
    one, two = small("one", "a"), small("two", "b", "c*")
    calls = [call("a"), call("a"), call("a"), call("b"), call("cc")]
    assert interpret(trace(*calls), [one, two]).harness == "two"
    assert interpret(trace(call("a"), call("b")), [one, two]).harness == "one", "a tie"
    assert interpret(trace(call("a"), call("b")), [two, one]).harness == "two", "a tie"
    assert interpret(trace(*calls), [one, two], "one").harness == "one"


def test_no_profile_knows_the_tools() -> None:
    assert interpret(trace(call("zap"), metadata={"cwd": "/w"}), PROFILES) == Activity()
    assert interpret(trace(), PROFILES) == Activity()


def test_an_unknown_name_is_an_error_that_says_which_there_are() -> None:
    with pytest.raises(ValueError, match=r"'claude-cod'; did you mean 'claude-code'\?"):
        interpret(trace(), PROFILES, "claude-cod")
    with pytest.raises(ValueError, match="'zap'; known are app-builder, claude-code"):
        interpret(trace(), PROFILES, "zap")


def test_what_the_trace_states_wins_for_its_kind() -> None:
    skill = SkillLoad(name="stated", status="ok")
    event = FileEvent(path="stated.js", operation="create", status="ok")
    calls = (call("load_skill", name="derived"), call("read_file", path="derived.js"))
    both = interpret(trace(*calls, skills=(skill,), files=(event,)), PROFILES)
    assert (both.skills, both.files) == ((skill,), (event,))
    one = interpret(trace(*calls, skills=(skill,)), PROFILES)
    assert one.skills == (skill,)
    assert [file.path for file in one.files] == ["derived.js"]
    none = interpret(trace(call("zap"), files=(event,)), PROFILES)
    assert none == Activity(files=(event,))


# Tools and places that the packaged profiles do not use.


def profile(**tools: Any) -> HarnessProfile:
    return HarnessProfile.model_validate({"name": "own", "recognised_by": "*", "tools": tools})


def test_an_exact_name_wins_over_globs_and_the_first_glob_over_others() -> None:
    own = HarnessProfile.model_validate(
        {
            "name": "own",
            "recognised_by": "*",
            "tools": {"get_*": "ask_user", "*": "opaque", "get_x": "none"},
        }
    )
    activity = interpret(trace(call("get_x"), call("get_y"), call("put")), [own])
    assert (activity.questions, activity.opaque) == ((1,), (2,))


def test_one_tool_does_several_things_and_chooses_by_an_argument() -> None:
    own = profile(
        editor=[
            {"effect": "read", "when": {"at": "command", "equals": "view"}, "path": "path"},
            {"effect": "write", "when": {"at": "command", "equals": "put"}, "path": "path"},
            {"effect": "build", "when": {"at": "then_build"}},
        ]
    )
    activity = interpret(
        trace(
            call("editor", command="view", path="a"),
            call("editor", command="put", path="b", then_build=True),
            call("editor", command="put", path="c", then_build=False),
            call("editor", command="undo", path="d"),
        ),
        [own],
    )
    assert [(e.operation, e.path) for e in activity.files] == [
        ("read", "a"),
        ("write", "b"),
        ("write", "c"),
    ]
    assert [build.call for build in activity.builds] == [1]


def test_arguments_that_are_a_list_or_a_text() -> None:
    own = profile(
        read={"effect": "read", "path": ["[].input.path", "[]", "."]},
        write={"effect": "write", "path": "a.b[][].p", "content": "a.b[][].c"},
    )
    nested = {"b": [[{"p": "x", "c": "1"}], [{"p": "y", "c": "2"}, {"p": "z"}]]}
    calls = [
        ToolCall(name="read", arguments=[{"input": {"path": "a"}}, {"input": {"path": "b"}}]),
        ToolCall(name="read", arguments=["c", 5, None]),
        ToolCall(name="read", arguments="d"),
        ToolCall(name="read", arguments=5),
        ToolCall(name="write", arguments={"a": nested}),
    ]
    activity = interpret(trace(*calls), [own])
    assert [(e.path, e.content) for e in activity.files] == [
        ("a", None),
        ("b", None),
        ("c", None),
        ("d", None),
        ("x", "1"),
        ("y", "2"),
        ("z", None),
    ]
    assert activity.unseen_reads == (3,)


def test_where_a_format_has_no_status_a_write_counts_as_done() -> None:
    calls = [call("write_file", None, path="a", content="x") for _ in range(2)]
    activity = interpret(trace(*calls), PROFILES)
    assert [(e.operation, e.status) for e in activity.files] == [("write", None), ("update", None)]


def test_absolute_and_relative_paths_are_one_file_under_a_known_root() -> None:
    calls = [call("read_file", path="/w/p/src/a.js"), call("write_file", path="src/a.js")]
    known = interpret(trace(*calls, metadata={"cwd": "/w/p"}), PROFILES)
    assert [e.operation for e in known.files] == ["read", "update"]
    unknown = interpret(trace(*calls), PROFILES)
    assert [e.operation for e in unknown.files] == ["read", "write"]


def test_metadata_may_be_nested_or_flattened() -> None:
    own = profile(x="none").model_copy(update={"workspace": ("attributes.cwd",)})
    for metadata in ({"attributes": {"cwd": "/w"}}, {"attributes.cwd": "/w"}):
        assert interpret(trace(metadata=metadata), [own], "own").roots == ("/w",)


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["", "a", "b.js", "[1]", "{", "rm a"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["path", "files", "error", "content", "command"]), inner, max_size=2
        )
    ),
    max_leaves=5,
)
TOOLS = st.sampled_from(sorted({tool for one in PROFILES for tool in one.tools} | {"unheard_of"}))
STATUSES = st.sampled_from(["ok", "error", None])


@given(
    st.lists(
        st.builds(ToolCall, name=TOOLS, arguments=JSON, result=JSON, status=STATUSES), max_size=4
    ),
    st.sampled_from([None, *BY_NAME]),
)
def test_whatever_calls_hold_failures_stay_failures_and_order_is_kept(
    calls: list[ToolCall], named: str | None
) -> None:
    activity = interpret(trace(*calls), PROFILES, named)
    parts = [(skill.call, skill.status) for skill in activity.skills]
    parts += [(event.call, event.status) for event in activity.files]
    parts += [(build.call, build.status) for build in activity.builds]
    for index, status in parts:
        assert index is not None
        if calls[index].status == "error" and calls[index].name != "Bash":
            assert status == "error"
    indices = [event.call for event in activity.files]
    assert indices == sorted(index for index in indices if index is not None)


# Real sessions: what their own metadata state.


def session(folder: Path) -> TraceSnapshot:
    """The calls of a recorded session, its sub-agents' among them."""
    calls: dict[str, dict[str, Any]] = {}
    root = None
    for text in (folder / "full.jsonl").read_text(encoding="utf-8").splitlines():
        line = json.loads(text)
        root = root or line.get("cwd")
        outer = line.get("data", {}).get("message", {}) if line["type"] == "progress" else line
        message = outer.get("message") if isinstance(outer, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use":
                calls[block["id"]] = {"name": block["name"], "arguments": block["input"]}
                calls[block["id"]]["agent"] = "sub" if outer is not line else None
            elif block.get("type") == "tool_result":
                known = calls[block["tool_use_id"]]
                details = outer.get("toolUseResult")
                known["result"] = {"content": block["content"], "details": details}
                known["status"] = "error" if block.get("is_error") else "ok"
    return trace(*(ToolCall(**parts) for parts in calls.values()), metadata={"cwd": root})


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "skills", "operations"),
    [
        # Operations read off the log: `type` of each write's details, and the tool's name.
        ("agent-name-fix", [], {"update"}),
        ("changelog", [], {"create"}),
        ("go-upgrade", [], {"update"}),
        ("skill-no-edits", ["superpowers:requesting-code-review"], set()),
        ("skill-review", ["reviewer"], {"create"}),
    ],
)
def test_a_real_session(name: str, skills: list[str], operations: set[str]) -> None:
    folder = REAL / "claude-code-sessions" / name
    snapshot = session(folder)
    activity = interpret(snapshot, PROFILES)
    assert activity.harness == "claude-code"
    assert [(skill.name, skill.status) for skill in activity.skills] == [(s, "ok") for s in skills]
    done = [e for e in activity.files if e.operation != "read" and e.status == "ok"]
    root = f"{activity.roots[0]}/"
    stated = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))["files_touched"]
    assert sorted({event.path.removeprefix(root) for event in done}) == sorted(stated or [])
    assert {event.operation for event in done} == operations
    assert activity.unknown == ()


@needs_real_data
@pytest.mark.data
def test_in_a_real_session_an_edit_that_was_refused_stays_failed() -> None:
    activity = interpret(session(REAL / "claude-code-sessions" / "go-upgrade"), PROFILES)
    edits = [(e.path.rsplit("/")[-1], e.status) for e in activity.files if e.operation == "update"]
    assert edits == [
        ("mise.toml", "error"),
        ("go.mod", "error"),
        ("mise.toml", "ok"),
        ("go.mod", "ok"),
    ]


@needs_real_data
@pytest.mark.data
def test_in_a_real_session_the_merge_is_opaque_and_the_build_is_seen() -> None:
    snapshot = session(REAL / "claude-code-sessions" / "agent-name-fix")
    activity = interpret(snapshot, PROFILES)
    commands = [snapshot.tool_calls[index].arguments["command"] for index in activity.opaque]
    assert commands == ["git merge main", "git merge origin/main"]
    assert [(build.kind, build.status) for build in activity.builds] == [("build", "ok")]
