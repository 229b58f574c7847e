"""Reading a recording the quick way gives what reading it carefully gives, or nothing."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import choose_format, recorder
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import TraceSnapshot

VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)
TOOL = st.fixed_dictionaries(
    {"name": st.text(min_size=1)},
    optional={"arguments": VALUES, "result": VALUES, "error": VALUES},
)
QUESTION = st.fixed_dictionaries(
    {}, optional={"text": VALUES, "before_tool": st.integers(-1, 4) | VALUES}
)
RECORDING = st.fixed_dictionaries(
    {"tools": st.lists(TOOL, max_size=4)},
    optional={
        "id": VALUES,
        "fixture": VALUES,
        "trial": st.integers(-1, 10) | VALUES,
        "workflow": VALUES,
        "model": st.text() | VALUES,
        "input": st.fixed_dictionaries({"user": VALUES}) | VALUES,
        "started_at": st.datetimes().map(str) | VALUES,
        "ended_at": VALUES,
        "asked_clarification": st.booleans() | VALUES,
        "questions": st.lists(QUESTION, max_size=3) | VALUES,
        "final": VALUES,
        "error": VALUES,
        "tokens": st.dictionaries(st.sampled_from(["input", "output", "x"]), VALUES) | VALUES,
        "redacted": VALUES,
        "messages": st.lists(
            st.fixed_dictionaries({"role": st.just("user"), "content": st.text()}), max_size=2
        ),
    },
)
"""Recordings, right and nearly right."""


def carefully(data: bytes) -> TraceSnapshot | None:
    """The one snapshot of a file that only the recorder's format reads, without its hash."""
    file = TraceFile("t.json", "t.json", data)
    try:
        chosen = choose_format(file)
    except InputError:
        return None
    if chosen is not recorder.FORMAT:
        return None
    (snapshot,) = chosen.parse(file)
    made = snapshot.trace_id == file.made_id("")
    return msgspec.structs.replace(
        snapshot,
        trace_id="t.json" if made else snapshot.trace_id,
        origin=msgspec.structs.replace(snapshot.origin, sha256=recorder.UNHASHED),
    )


@given(RECORDING)
def test_both_ways_read_the_same(value: dict[str, Any]) -> None:
    data = json.dumps(value).encode()
    quick = recorder.read_quickly(data, "t.json")
    assert quick == carefully(data)
    assert quick is not None or "messages" in value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"tools": {}}',
        '{"tools": [1]}',
        '{"tools": [{}]}',
        '{"tools": [{"name": null}]}',
        '{"tools": [{"name": ""}]}',
        '{"tools": [{"name": "a", "input_schema": {}}]}',
        '{"tools": [], "spans": []}',
        '{"tools": [], "simulations": [], "info": {}}',
        '{"tools": [{"name": "a"}], "messages": [{"role": "user", "content": "x"}]}',
        '\ufeff{"tools": []}',
        '{"tools": []}\n{"tools": []}',
        '[{"tools": []}]',
    ],
)
def test_what_needs_a_closer_look_is_left_to_it(text: str) -> None:
    assert recorder.read_quickly(text.encode(), "t.json") is None


def test_what_is_not_utf8_is_left_to_a_closer_look() -> None:
    # Also where it stands in what is never read.
    data = b'{"tools": [], "asked_clarification": true, "messages": ["\xff"]}'
    assert recorder.read_quickly(data, "t.json") is None


def test_deep_nesting_is_left_to_a_closer_look() -> None:
    data = b'{"tools": [], "final": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    assert recorder.read_quickly(data, "t.json") is None


def test_a_conversation_beside_a_recording_is_no_other_format() -> None:
    messages = [{"role": "user", "content": "Refund it."}]
    value = {"tools": [{"name": "a"}], "asked_clarification": False, "messages": messages}
    data = json.dumps(value).encode()
    assert choose_format(TraceFile("t.json", "t.json", data)) is recorder.FORMAT
    assert carefully(data) == recorder.read_quickly(data, "t.json")


def test_a_log_with_definitions_of_tools_is_none() -> None:
    value = {
        "tools": [{"name": "a", "description": "does", "parameters": {}}],
        "messages": [{"role": "user", "content": "Refund it."}],
    }
    chosen = choose_format(TraceFile("t.json", "t.json", json.dumps(value).encode()))
    assert chosen.name == "messages"
