"""The recorder: what it is told comes out, in order, as JSON, and nothing else does."""

import asyncio
import enum
import hashlib
import io
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path, PurePosixPath
from typing import Any

import pydantic
import pytest

from benchmark_assets.recorder import TraceRecorder, replay
from benchmark_assets.recorder.events import read_journal, trace_of

SPECIFIED = {"tools", "asked_clarification", "final"}
ALWAYS = {"questions", "started_at", "ended_at"}


def steps(trace: dict[str, Any]) -> dict[str, Any]:
    return {key: trace[key] for key in ("tools", "asked_clarification", "final", "questions")}


def test_the_specifications_loop() -> None:
    def agent(user: str, rec: TraceRecorder) -> None:
        assert user == "Refund order 1842 to the original card."
        rec.on_tool("get_order", {"order_id": 1842})
        rec.on_question("Which card?")
        rec.on_tool("refund_payment", {"order_id": 1842, "method": "card"})
        rec.on_final({"status": "ok", "refund_id": "r-1"})

    trace = replay("Refund order 1842 to the original card.", agent)
    assert trace.keys() == SPECIFIED | ALWAYS | {"input"}
    assert trace["input"] == {"user": "Refund order 1842 to the original card."}
    assert steps(trace) == {
        "tools": [
            {"name": "get_order", "arguments": {"order_id": 1842}},
            {"name": "refund_payment", "arguments": {"order_id": 1842, "method": "card"}},
        ],
        "asked_clarification": True,
        "final": {"status": "ok", "refund_id": "r-1"},
        "questions": [{"text": "Which card?", "before_tool": 1}],
    }


def test_nothing_recorded() -> None:
    trace = TraceRecorder().dump()
    assert trace.keys() == SPECIFIED | ALWAYS
    assert steps(trace) == {
        "tools": [],
        "asked_clarification": False,
        "final": None,
        "questions": [],
    }


def test_async_agents_are_replayed_and_exceptions_go_on() -> None:
    async def agent(user: str, rec: TraceRecorder) -> None:
        await asyncio.sleep(0)
        rec.on_tool("a", {})

    assert [tool["name"] for tool in replay("hi", agent)["tools"]] == ["a"]

    def bad(user: str, rec: TraceRecorder) -> None:
        raise LookupError("no")

    with pytest.raises(LookupError):
        replay("hi", bad)


def test_later_changes_change_nothing() -> None:
    rec = TraceRecorder()
    arguments = {"items": [1, {"a": 1}]}
    payload: dict[str, Any] = {"lines": ["x"]}
    rec.on_tool("t", arguments, result=arguments)
    rec.on_final(payload)
    arguments["items"].append("late")
    arguments["items"][1]["a"] = 2  # type: ignore[index]
    payload["lines"].append("late")
    first = rec.dump()
    first["tools"][0]["arguments"]["items"].append("later")
    first["tools"].clear()
    assert rec.dump()["tools"] == [
        {
            "name": "t",
            "arguments": {"items": [1, {"a": 1}]},
            "result": {"items": [1, {"a": 1}]},
        }
    ]
    assert rec.dump()["final"] == {"lines": ["x"]}


def test_results_and_errors() -> None:
    rec = TraceRecorder()
    rec.on_tool("a", {}, result=None)
    rec.on_tool("b", {}, error=ValueError("no such order"))
    rec.on_tool("c", {}, error="declined")
    rec.on_tool("d", {}, error="")
    rec.on_tool("e", {}, error=KeyError())
    rec.on_tool("f")
    rec.on_tool("g", '{"order_id": 7}')
    rec.on_tool("h", "not json")
    assert rec.dump()["tools"] == [
        {"name": "a", "arguments": {}, "result": None},
        {"name": "b", "arguments": {}, "error": "ValueError: no such order"},
        {"name": "c", "arguments": {}, "error": "declined"},
        {"name": "d", "arguments": {}, "error": "failed"},
        {"name": "e", "arguments": {}, "error": "KeyError"},
        {"name": "f", "arguments": {}},
        {"name": "g", "arguments": {"order_id": 7}},
        {"name": "h", "arguments": "not json"},
    ]


def test_overlapping_calls_stand_where_they_began() -> None:
    rec = TraceRecorder()
    slow = rec.start_tool("slow", {})
    fast = rec.start_tool("fast", {})
    rec.on_question("sure?")
    fast.succeed(2)
    rec.start_tool("never ends", {"x": 1})
    slow.fail("late")
    trace = rec.dump()
    assert trace["tools"] == [
        {"name": "slow", "arguments": {}, "error": "late"},
        {"name": "fast", "arguments": {}, "result": 2},
        {"name": "never ends", "arguments": {"x": 1}},
    ]
    assert trace["questions"] == [{"text": "sure?", "before_tool": 2}]


def test_the_last_final_counts_and_none_takes_it_back() -> None:
    rec = TraceRecorder()
    rec.on_final({"a": 1})
    rec.on_final({"a": 2})
    assert rec.dump()["final"] == {"a": 2}
    rec.on_final(None)
    assert rec.dump()["final"] is None


def test_what_is_known_of_the_run() -> None:
    rec = TraceRecorder(fixture="f-1", trial=2)
    before = datetime.now(UTC)
    rec.on_model("m-1", input=100, output=10, cache_read=None)
    rec.on_model("m-2", input=5, reasoning=3)
    rec.on_error(RuntimeError("first"))
    rec.on_error("second")
    trace = rec.dump()
    assert list(trace)[:4] == ["tools", "asked_clarification", "final", "questions"]
    assert (trace["fixture"], trace["trial"], trace["model"]) == ("f-1", 2, "m-1")
    assert trace["tokens"] == {"input": 105, "output": 10, "reasoning": 3}
    assert trace["error"] == "RuntimeError: first"
    started, ended = (datetime.fromisoformat(trace[key]) for key in ("started_at", "ended_at"))
    assert started <= before <= ended <= datetime.now(UTC)
    assert "tokens" not in TraceRecorder().dump()
    with pytest.raises(TypeError, match="prompt"):
        rec.on_model("m", prompt=1)


# Values that are not JSON.


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Money:
    amount: Decimal
    currency: str


class Order(pydantic.BaseModel):
    id: int
    placed: datetime


class Rude:
    def __str__(self) -> str:
        raise RuntimeError("no")


class Address:
    pass


def cyclic() -> list[Any]:
    value: list[Any] = [1]
    value.append(value)
    return value


def deep() -> Any:
    value: Any = "bottom"
    for _ in range(10_000):
        value = [value]
    return value


DAY = datetime(2026, 1, 31, 12, tzinfo=UTC)

VALUES: list[tuple[Any, Any, list[str]]] = [
    ((1, "a"), [1, "a"], []),
    ({3, 1, 2}, [1, 2, 3], []),
    (frozenset({"b", "a"}), ["a", "b"], []),
    (Colour.RED, "red", []),
    (True, True, []),
    (2**64 - 1, 2**64 - 1, []),
    (2**64, str(2**64), [""]),
    (-(2**63) - 1, str(-(2**63) - 1), [""]),
    (float("nan"), "nan", [""]),
    (float("-inf"), "-inf", [""]),
    (DAY, "2026-01-31 12:00:00+00:00", [""]),
    (Decimal("1.10"), "1.10", [""]),
    (PurePosixPath("a/b"), "a/b", [""]),
    (b"ab", "b'ab'", [""]),
    (Money(Decimal("1.10"), "EUR"), {"amount": "1.10", "currency": "EUR"}, ["/amount"]),
    (Order(id=1, placed=DAY), {"id": 1, "placed": "2026-01-31T12:00:00Z"}, []),
    ({1: "a", "1": "b"}, {"1": "a", "1 (str)": "b"}, ["/1", "/1 (str)"]),
    ({"a/b~c": DAY}, {"a/b~c": "2026-01-31 12:00:00+00:00"}, ["/a~1b~0c"]),
    ("half \ud800", "half \ufffd", [""]),
    ("\ud83d\ude00", "\U0001f600", [""]),
    (Rude(), "<Rude>", [""]),
    (Address(), f"<{__name__}.Address object>", [""]),
    (ValueError("x"), "x", [""]),
]


@pytest.mark.parametrize(("value", "copied", "marks"), VALUES, ids=lambda v: type(v).__name__)
def test_values(value: Any, copied: Any, marks: list[str], tmp_path: Path) -> None:
    rec = TraceRecorder()
    rec.on_tool("t", {"v": value}, result=value)
    rec.write(tmp_path / "t.json")
    trace = json.loads((tmp_path / "t.json").read_bytes())
    (tool,) = trace["tools"]
    assert tool["arguments"] == {"v": copied}
    assert tool["result"] == copied
    assert trace.get("as_text", []) == [
        *(f"/tools/0/arguments/v{mark}" for mark in marks),
        *(f"/tools/0/result{mark}" for mark in marks),
    ]


@pytest.mark.parametrize("make", [cyclic, deep])
def test_what_never_ends_ends(make: Callable[[], Any]) -> None:
    rec = TraceRecorder()
    rec.on_tool("t", {"v": make()})
    trace = rec.dump()
    assert len(trace["as_text"]) == 1
    assert trace["as_text"][0].startswith("/tools/0/arguments/v/")


# Files.


def test_a_file_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "t.json"
    rec = TraceRecorder()
    rec.on_tool("größer", {"text": "süß"})
    rec.write(path)
    assert "süß" in path.read_text(encoding="utf-8")
    assert path.read_bytes().endswith(b"}\n")
    assert json.loads(path.read_bytes()) == rec.dump()
    before = path.read_bytes()
    path.parent.chmod(0o755)
    rec.write(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["t.json"]


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "t.json").mkdir()
    with pytest.raises(OSError):  # noqa: PT011 - which one is the system's choice
        TraceRecorder().write(tmp_path / "t.json")
    assert [file.name for file in tmp_path.iterdir()] == ["t.json"]


def test_the_journal_has_it_all(tmp_path: Path) -> None:
    with (tmp_path / "journal").open("ab", buffering=0) as journal:
        rec = TraceRecorder(fixture="f", trial=1, journal=journal, comparable={"t": ["a"]})
        rec.on_input("hi")
        call = rec.start_tool("t", {"a": DAY, "b": 1})
        rec.on_question("sure?")
        call.succeed({"x": 1})
        rec.on_final({"status": "ok"})
        rec.on_model("m", input=3)
        rec.on_error("x")
        # Everything is there before the file is closed.
        data = (tmp_path / "journal").read_bytes()
    assert trace_of(read_journal(data)) == rec.dump()
    # A process that dies while it writes leaves a part of a line.
    assert trace_of(read_journal(data[:-5]))["questions"] == rec.dump()["questions"]


# Threads and tasks.


def test_threads_lose_nothing_and_keep_their_own_order() -> None:
    rec = TraceRecorder()
    start = threading.Barrier(8)

    def work(number: int) -> None:
        start.wait()
        for step in range(200):
            rec.on_tool(f"t{number}", {"step": step}, result=step)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tools = rec.dump()["tools"]
    assert len(tools) == 1600
    for number in range(8):
        mine = [tool["arguments"]["step"] for tool in tools if tool["name"] == f"t{number}"]
        assert mine == list(range(200))
    assert all(tool["result"] == tool["arguments"]["step"] for tool in tools)


def test_recording_may_be_interrupted_by_recording() -> None:
    """By a signal handler, or a finalizer, in the middle of an event."""

    class Interrupting(io.BytesIO):
        def write(self, data: Any) -> int:
            if b"outer" in data:
                recorder.on_tool("inner", {})
            return super().write(data)

    journal = Interrupting()
    recorder = TraceRecorder(journal=journal)
    done = threading.Event()

    def record() -> None:
        recorder.on_tool("outer", {})
        done.set()

    threading.Thread(target=record, daemon=True).start()
    assert done.wait(timeout=10)
    assert [tool["name"] for tool in recorder.dump()["tools"]] == ["outer", "inner"]
    assert trace_of(read_journal(journal.getvalue()))["tools"] == recorder.dump()["tools"]


def test_tasks_stand_in_the_order_of_their_starts() -> None:
    rec = TraceRecorder()

    @rec.tool
    async def wait(number: int, delay: float) -> int:
        await asyncio.sleep(delay)
        return number

    async def main() -> None:
        await asyncio.gather(*(wait(number, (5 - number) / 100) for number in range(5)))

    asyncio.run(main())
    tools = rec.dump()["tools"]
    assert [tool["arguments"]["number"] for tool in tools] == [0, 1, 2, 3, 4]
    assert [tool["result"] for tool in tools] == [0, 1, 2, 3, 4]


# Redaction.


def sha(value: Any) -> str:
    """As the specification defines `stable_hash`, with nothing of the product."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def recorded(**settings: Any) -> dict[str, Any]:
    rec = TraceRecorder(**settings)
    rec.on_input("I am Ada, card 4111.")
    call = rec.start_tool("refund_payment", {"order_id": 1842, "card": {"pan": "4111"}})
    call.succeed({"name": "Ada"})
    rec.on_question("Is it 4111?")
    rec.on_tool("mail", {"to": "ada@example.org"}, error=ValueError("ada@example.org bounced"))
    rec.on_tool("mail", {}, error="ada@example.org bounced")
    rec.on_final({"status": "ok", "name": "Ada"})
    rec.on_error(RuntimeError("Ada"))
    return rec.dump()


def test_hashed() -> None:
    trace = recorded(
        comparable={"refund_*": ["order_id"]}, comparable_final=["status"], fixture="f"
    )
    assert trace["input"] == {"user": f"sha256:{sha('I am Ada, card 4111.')}"}
    assert trace["tools"] == [
        {
            "name": "refund_payment",
            "arguments": {"order_id": 1842, "card": {"sha256": sha({"pan": "4111"})}},
            "result": {"sha256": sha({"name": "Ada"})},
        },
        {
            "name": "mail",
            "arguments": {"to": {"sha256": sha("ada@example.org")}},
            "error": f"ValueError: sha256:{sha('ada@example.org bounced')}",
        },
        {
            "name": "mail",
            "arguments": {},
            "error": f"sha256:{sha('ada@example.org bounced')}",
        },
    ]
    assert trace["questions"] == [{"text": f"sha256:{sha('Is it 4111?')}", "before_tool": 1}]
    assert trace["final"] == {"status": "ok", "name": {"sha256": sha("Ada")}}
    assert trace["error"] == f"RuntimeError: sha256:{sha('Ada')}"
    assert sorted(trace["redacted"]) == [
        "/error",
        "/final/name",
        "/input/user",
        "/questions/0/text",
        "/tools/0/arguments/card",
        "/tools/0/result",
        "/tools/1/arguments/to",
        "/tools/1/error",
        "/tools/2/error",
    ]
    assert trace["fixture"] == "f"


def test_dropped() -> None:
    trace = recorded(comparable={}, others="drop", texts="drop")
    assert trace["input"] == {"user": None}
    assert trace["tools"] == [
        {"name": "refund_payment", "arguments": {"order_id": None, "card": None}, "result": None},
        {"name": "mail", "arguments": {"to": None}, "error": "ValueError: redacted"},
        {"name": "mail", "arguments": {}, "error": "redacted"},
    ]
    assert trace["questions"] == [{"text": None, "before_tool": 1}]
    assert trace["final"] == {"status": None, "name": None}
    assert "sha256" not in json.dumps(trace)


def test_texts_kept() -> None:
    trace = recorded(comparable={"*": ["*"]}, texts="keep")
    assert trace["input"] == {"user": "I am Ada, card 4111."}
    assert trace["questions"][0]["text"] == "Is it 4111?"
    assert trace["tools"][0]["arguments"] == {"order_id": 1842, "card": {"pan": "4111"}}
    assert trace["tools"][0]["result"] == {"sha256": sha({"name": "Ada"})}


def test_marks_inside_of_what_is_hidden_are_gone() -> None:
    rec = TraceRecorder(comparable={"t": ["kept"]})
    rec.on_tool("t", {"kept": DAY, "hidden": {"day": DAY}, "hidden_too": [1]}, result=[DAY])
    trace = rec.dump()
    assert trace["as_text"] == ["/tools/0/arguments/kept"]
    assert trace["tools"][0]["arguments"]["hidden"] == {
        "sha256": sha({"day": "2026-01-31 12:00:00+00:00"})
    }


def test_arguments_that_are_no_object_are_hidden_as_a_whole() -> None:
    rec = TraceRecorder(comparable={"t": ["*"]}, comparable_final=["*"])
    rec.on_tool("t", "card 4111")
    rec.on_final("card 4111")
    trace = rec.dump()
    assert trace["tools"][0]["arguments"] == {"sha256": sha("card 4111")}
    assert trace["final"] == {"sha256": sha("card 4111")}


@pytest.mark.parametrize(
    "settings",
    [
        {"comparable": {}, "others": "keep"},
        {"comparable": {}, "texts": "hide"},
        {"comparable": {"t": [1]}},
        {"comparable": {}, "comparable_final": [None]},
    ],
)
def test_settings_that_are_none(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is"):
        TraceRecorder(**settings)


# Weight.


def test_an_agent_imports_little() -> None:
    script = (
        "import sys, benchmark_assets.recorder, benchmark_assets.recorder.case; "
        "print(*sorted({name.split('.')[0] for name in sys.modules}))"
        "; print(*[n for n in sys.modules if n.startswith('benchmark_assets.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    roots, ours = (line.split() for line in done.stdout.splitlines())
    third_party = set(roots) - set(sys.stdlib_module_names) - {"__main__", "benchmark_assets"}
    # What a .pth file of the environment loads is not ours.
    allowed = {"msgspec", "typing_extensions", "sitecustomize", "coloredlogs", "_distutils_hack"}
    assert third_party - allowed <= {name for name in third_party if name.startswith("_")}
    assert {name for name in ours if not name.startswith("benchmark_assets.recorder")} == {
        "benchmark_assets.model",
        "benchmark_assets.model.identity",
    }
