"""Choosing a format, and what every format promises of any file whatever."""

from __future__ import annotations

import copy
import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters import formats
from benchmark_assets.adapters.benchmarks import IMPORTERS
from benchmark_assets.adapters.formats import FORMATS, choose_format
from benchmark_assets.adapters.formats.base import TraceFile, TraceFormat
from benchmark_assets.adapters.snapshot_files import (
    SourcedSnapshot,
    assemble,
    read_snapshots,
    write_partition,
)
from benchmark_assets.adapters.store import Store
from benchmark_assets.adapters.traces import read_traces
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from tests.adapters.samples import (
    CONVERSATION,
    DATA,
    NAME,
    agent,
    call,
    lines,
    record,
    recording,
    result,
    simulation,
    tau2,
    trace_file,
)
from tests.real_data import REAL, needs_real_data


def refusal(content: Any, name: str = "auto") -> str:
    with pytest.raises(InputError) as caught:
        choose_format(trace_file(content), name)
    return str(caught.value).removeprefix(f"{NAME}: ")


def test_every_format_module_is_registered() -> None:
    """A new format is one new file and one line; this is what notices a forgotten line."""
    found = {info.name for info in pkgutil.iter_modules(formats.__path__)} - {"base"}
    # `langfuse_rows` is a part of the format `langfuse`, not one of its own.
    names = {name for name in found if not any(name.startswith(f"{other}_") for other in found)}
    registered = [import_module(f"{formats.__name__}.{name}").FORMAT for name in sorted(names)]
    assert sorted(fmt.name for fmt in registered) == sorted(fmt.name for fmt in FORMATS)
    assert {id(fmt) for fmt in registered} == {id(fmt) for fmt in FORMATS}


def test_formats_have_names_and_descriptions_of_their_own() -> None:
    assert len({fmt.name for fmt in FORMATS}) == len(FORMATS)
    assert len({fmt.description for fmt in FORMATS}) == len(FORMATS)
    assert "auto" not in {fmt.name for fmt in FORMATS}


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (record(), "snapshot"),
        ([record()], "snapshot"),
        (lines(record("a"), record("b")), "snapshot"),
        (tau2(simulation(CONVERSATION)), "tau2"),
        (tau2(), "tau2"),
        (recording(), "recorder"),
        ([recording(), recording()], "recorder"),
        (lines(recording(), "not JSON", recording()), "recorder"),
        ({"tools": []}, "recorder"),
    ],
)
def test_the_content_decides(content: Any, name: str) -> None:
    assert choose_format(trace_file(content)).name == name


@pytest.mark.parametrize(
    "content",
    [
        {},
        [],
        [[]],
        5,
        "text",
        None,
        {"simulations": []},
        {"simulations": {}, "info": {}},
        {"trace_id": "t"},
        {"tools": {}},
        {"tools": [{"name": ""}]},
        {"tools": [{"name": "a", "arguments": {}}, {"name": 1}]},
        # Definitions of tools, as of three protocols.
        {"tools": [{"name": "a", "description": "", "input_schema": {}}]},
        {"tools": [{"name": "a", "inputSchema": {"type": "object"}}]},
        {"tools": [{"type": "function", "name": "a", "parameters": {}}]},
        {"tools": [{"type": "function", "function": {"name": "a"}}], "input": []},
        {"prompt": "p"},
        [{"prompt": "p"}],
    ],
)
def test_nothing_fitting_names_what_was_tried(content: Any) -> None:
    data = json.dumps(content).encode()
    known = ", ".join(fmt.name for fmt in FORMATS)
    assert refusal(data) == (
        f"is no trace in a known format (tried {known}); "
        "if you know the format, name it with --format"
    )


def test_two_fitting_are_both_named() -> None:
    content = {**tau2(simulation(CONVERSATION)), **record()}
    assert refusal(content) == (
        "fits more than one trace format: snapshot and tau2; choose one with --format snapshot"
    )
    assert choose_format(trace_file(content), "tau2").name == "tau2"
    assert choose_format(trace_file(content), "snapshot").name == "snapshot"


@pytest.mark.parametrize(
    ("name", "cure"),
    [
        ("snapshots", "did you mean 'snapshot'?"),
        ("xml", "known formats: " + ", ".join(fmt.name for fmt in FORMATS)),
    ],
)
def test_an_unknown_name_is_helped_along(name: str, cure: str) -> None:
    assert refusal(record(), name) == f"there is no trace format '{name}'; {cure}"


@pytest.mark.parametrize("text", ["# Notes\n\nSome words.\n", "a,b\n1,2\n", "key: value\n"])
def test_a_text_file_is_not_json(text: str) -> None:
    assert "is not JSON" in refusal(text)


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)
@given(
    data=st.one_of(
        st.binary(max_size=60),
        st.text('[]{}":, trace_idsimulations0\n\\u', max_size=60).map(str.encode),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(
                    st.sampled_from(["trace_id", "simulations", "info", "prompt", "x"]),
                    inner,
                    max_size=4,
                )
            ),
            max_leaves=8,
        ).map(lambda value: json.dumps(value).encode()),
    )
)
@settings(max_examples=300)
def test_looking_at_a_file_never_raises(fmt: TraceFormat, data: bytes) -> None:
    assert fmt.matches(trace_file(data)) in (True, False)


SNAPSHOTS = [
    record(
        "a",
        tool_calls=[{"name": "get", "arguments": {"id": 1}, "status": "ok", "result": "x"}],
        tokens={"input": 1, "output": 2},
        generations=[{"model": "m", "tokens": {"input": 1}, "cost_usd": 0.5}],
        messages=[{"text": "hi", "before_call": 0}],
        metadata={"k": "v"},
        tags=["t"],
        trial=1,
        cost_usd=0.5,
        duration_ms=5,
    ),
    record("b"),
]

RECORDINGS = [
    recording(
        id="r1",
        tools=[
            {"name": "get_order", "arguments": {"order_id": "1842"}, "result": {"total": 5}},
            {"name": "refund", "arguments": {}, "error": "declined"},
        ],
        questions=[{"text": "To which card?", "before_tool": 1}],
        final={"status": "ok"},
        fixture="refund",
        trial=2,
        input={"user": "Refund order 1842."},
        model="m",
        started_at="2026-03-01T12:00:00Z",
        ended_at="2026-03-01T12:00:05Z",
        error="time-out",
        tokens={"input": 5, "output": 7},
        redacted=["tools[0].arguments.card"],
    ),
    recording(id="r2", asked_clarification=True, model="m", started_at="2026-03-01T12:00:00Z"),
]

TASK = {
    "id": "7",
    "evaluation_criteria": {
        "actions": [
            {"name": "cancel_reservation", "arguments": {"id": "ABC"}, "compare_args": ["id"]}
        ],
        "communicate_info": ["327"],
    },
}

_RESULTS = tau2(
    simulation(CONVERSATION),
    simulation(
        [
            *CONVERSATION[:2],
            agent(None, call("book", '{"a": [1]}'), call("pay", {}, "c2"), raw_data={"usage": {}}),
            {"role": "tool", "tool_messages": [result(), result("no", "c2", error=True)]},
        ],
        id="sim-2",
    ),
    tasks=[TASK],
)
RESULTS = json.loads(json.dumps(_RESULTS))
"""A copy, so that no message is in it twice: changing one must not change another."""

ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**30,
    2**63,
    "",
    "x",
    "²",
    [],
    [None],
    [[]],
    {},
    {"a": None},
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of everything inside a JSON value, itself included."""
    yield path
    items = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, dict) else items:
        yield from places(inner, (*path, key))


def changed(value: Any, path: tuple[Any, ...], how: str, odd: Any) -> Any:
    """A copy in which what is at `path` is dropped, doubled or replaced."""
    value = copy.deepcopy(value)
    if not path:
        return odd
    parent = value
    for key in path[:-1]:
        parent = parent[key]
    if how == "drop":
        del parent[path[-1]]
    elif how == "double" and isinstance(parent, list):
        parent.insert(path[-1], copy.deepcopy(parent[path[-1]]))
    else:
        parent[path[-1]] = odd
    return value


def check_reading(data: bytes, format_name: str) -> list[TraceSnapshot]:
    """Read a file; whatever is in it, there are snapshots or a located problem."""
    file = TraceFile(NAME, "results.json", data)
    try:
        found = list(read_traces(file, ProjectConfig(), format_name=format_name))
    except InputError as error:
        said, found = str(error), []
    else:
        said = NAME
    assert said.startswith(NAME)
    # A shape that a format did not expect must not be told by its Python error.
    assert "could not be read as" not in said
    for item in found:
        assert item.trace_id
        assert item.problem is None or NAME not in item.problem
    return found


@pytest.mark.parametrize(
    "content", [SNAPSHOTS, RESULTS, RECORDINGS], ids=["snapshot", "tau2", "recorder"]
)
@pytest.mark.parametrize("format_name", ["auto", "snapshot", "tau2", "recorder"])
def test_a_file_with_one_thing_wrong_is_read_or_refused(content: Any, format_name: str) -> None:
    """Every place of a file, dropped, doubled, and replaced by every odd value."""
    for path in places(content):
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            data = json.dumps(changed(content, path, how, odd)).encode()
            check_reading(data, format_name)


@pytest.mark.parametrize(
    "content", [SNAPSHOTS, RESULTS, RECORDINGS], ids=["snapshot", "tau2", "recorder"]
)
def test_one_broken_record_never_costs_another(content: Any) -> None:
    """Whatever is changed inside the second record, the first is read as before."""
    first = check_reading(json.dumps(content).encode(), "auto")[0]
    prefix = (1,) if isinstance(content, list) else ("simulations", 1)
    for path in places(content):
        if path[: len(prefix)] != prefix:
            continue
        for how, odd in [("drop", None), *(("set", odd) for odd in ODD)]:
            if how == "drop" and path == prefix:
                continue
            found = check_reading(json.dumps(changed(content, path, how, odd)).encode(), "auto")
            assert len(found) == 2
            assert (found[0].trace_id, found[0].tool_calls) == (first.trace_id, first.tool_calls)


@pytest.mark.parametrize(
    "content", [SNAPSHOTS, RESULTS, RECORDINGS], ids=["snapshot", "tau2", "recorder"]
)
def test_whatever_was_read_can_be_stored_and_read_back(content: Any) -> None:
    """No value in one trace may keep its partition from being written."""
    store = Store("memory://odd-values")
    for odd in ODD:
        placed = [
            item
            for path in places(content)
            for item in check_reading(
                json.dumps(changed(content, path, "set", odd)).encode(), "auto"
            )
            if item.model and item.started_at
        ]
        partition = assemble(SourcedSnapshot("s", item) for item in placed)
        write_partition(store, "2026-03-01", "m", partition, {})
        stored = [item.snapshot for item in read_snapshots(store, "2026-03-01", "m")]
        assert stored == [item.snapshot for item in partition.snapshots]


def test_benchmark_files_with_one_thing_wrong_are_imported_or_refused() -> None:
    for path in places(RESULTS):
        for how, odd in [("drop", None), ("double", None), *(("set", odd) for odd in ODD)]:
            file = trace_file(changed(RESULTS, path, how, odd))
            try:
                assert IMPORTERS["tau2"](file)
            except InputError as error:
                said = [str(problem) for problem in error.problems]
            else:
                said = []
            assert all(text.startswith(NAME) for text in said)


@pytest.mark.parametrize(
    "data",
    [lines(*SNAPSHOTS), json.dumps(SNAPSHOTS).encode(), json.dumps(RESULTS, indent=1).encode()],
    ids=["lines", "list", "tau2"],
)
def test_a_file_cut_off_anywhere_is_read_or_refused(data: bytes) -> None:
    for length in range(0, len(data), 7):
        check_reading(data[:length], "auto")


def files_with_ledgers(*paths: Path) -> set[str]:
    """Names of those of the files in which some trace has one."""
    found = set()
    for path in paths:
        file = TraceFile(str(path), path.name, path.read_bytes())
        records = [item.workflow_record for item in read_traces(file, ProjectConfig())]
        assert records
        if any(record is not None for record in records):
            found.add(path.name)
    return found


@pytest.mark.parametrize("folder", ["snapshot", "tau2"])
def test_samples_have_no_ledger(folder: str) -> None:
    assert files_with_ledgers(*(DATA / folder).iterdir()) == set()


@needs_real_data
@pytest.mark.data
@pytest.mark.parametrize(
    ("pattern", "with_ledger"),
    [
        # One agent and its simulated user; nobody reports for it.
        ("tau2-airline-train30/*.json", set()),
        # Runs have no token at all.
        ("agentdojo-banking-slack/gpt-4o-2024-05-13/**/*.json", set()),
        (
            "langfuse-*/*.json",
            {
                "pydantic-ai-tools-2025-12-04.trace.json",
                "pydantic-ai-a79ce6.json",
                "pydantic-ai-bad-e1897b.json",
                "pydantic-ai-retry-0ab9b7.json",
            },
        ),
        ("claude-code-sessions/agent-name-fix/full.jsonl", set()),
        ("claude-code-sessions/changelog/full.jsonl", set()),
        ("claude-code-sessions/go-upgrade/full.jsonl", set()),
        ("claude-code-sessions/skill-no-edits/full.jsonl", set()),
        ("claude-code-sessions/skill-review/full.jsonl", {"full.jsonl"}),
    ],
)
def test_which_real_files_have_a_ledger(pattern: str, with_ledger: set[str]) -> None:
    assert files_with_ledgers(*REAL.glob(pattern)) == with_ledger


@needs_real_data
@pytest.mark.data
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_real_files_with_some_things_wrong_are_read_or_refused(data: st.DataObject) -> None:
    content = real_excerpt()
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(content))))
        how = data.draw(st.sampled_from(["drop", "double", "set"]))
        content = changed(content, path, how, data.draw(st.sampled_from(ODD)))
    text = json.dumps(content).encode()
    check_reading(text, "auto")
    check_reading(text[: data.draw(st.integers(0, len(text)))], "auto")


def real_excerpt() -> Any:
    """The first two simulations and tasks of a real file."""
    file = REAL / "tau2-airline-train30" / "gpt-4o-2024-11-20.json"
    content = json.loads(file.read_text())
    return {**content, "simulations": content["simulations"][:2], "tasks": content["tasks"][:2]}
