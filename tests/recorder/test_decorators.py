"""Plain functions as tools: what they were given by name, what they gave back, how they failed."""

import asyncio
import functools
import inspect
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import Any

import pytest

from benchmark_assets.recorder import TraceRecorder


@pytest.fixture
def rec() -> TraceRecorder:
    return TraceRecorder()


def tools(rec: TraceRecorder) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rec.dump()["tools"]
    return found


def test_arguments_have_their_names_however_they_were_passed(rec: TraceRecorder) -> None:
    @rec.tool
    def refund(order_id: int, method: str = "card", *, note: str | None = None) -> str:
        """Refund an order."""
        return f"{order_id}-{method}"

    assert refund(1, "cash") == "1-cash"
    assert refund(order_id=2) == "2-card"
    assert refund(3, note="x") == "3-card"
    assert [tool["arguments"] for tool in tools(rec)] == [
        {"order_id": 1, "method": "cash"},
        {"order_id": 2},
        {"order_id": 3, "note": "x"},
    ]
    assert [tool["result"] for tool in tools(rec)] == ["1-cash", "2-card", "3-card"]
    assert {tool["name"] for tool in tools(rec)} == {"refund"}


def test_defaults_are_recorded_if_asked_for(rec: TraceRecorder) -> None:
    def refund(order_id: int, method: str = "card", *more: int, **others: str) -> None: ...

    recorded = rec.tool(defaults=True, name="refund_payment")(refund)
    recorded(1)
    recorded(1, "cash", 5, 6, note="x")
    assert tools(rec) == [
        {
            "name": "refund_payment",
            "arguments": {"order_id": 1, "method": "card", "more": []},
            "result": None,
        },
        {
            "name": "refund_payment",
            "arguments": {"order_id": 1, "method": "cash", "more": [5, 6], "note": "x"},
            "result": None,
        },
    ]


def test_the_function_looks_as_before(rec: TraceRecorder) -> None:
    def refund(order_id: int, method: str = "card") -> str:
        """Refund an order."""
        return ""

    recorded = rec.tool(refund)
    assert recorded.__name__ == "refund"
    assert recorded.__doc__ == "Refund an order."
    assert inspect.signature(recorded) == inspect.signature(refund)
    assert inspect.get_annotations(recorded) == inspect.get_annotations(refund)
    assert inspect.iscoroutinefunction(recorded) is False


def test_async_tools(rec: TraceRecorder) -> None:
    @rec.tool
    async def look_up(order_id: int) -> dict[str, int]:
        await asyncio.sleep(0)
        if order_id < 0:
            raise LookupError("no such order")
        return {"id": order_id}

    assert inspect.iscoroutinefunction(look_up)
    assert asyncio.run(look_up(1)) == {"id": 1}
    with pytest.raises(LookupError, match="no such order"):
        asyncio.run(look_up(order_id=-1))
    assert tools(rec) == [
        {"name": "look_up", "arguments": {"order_id": 1}, "result": {"id": 1}},
        {
            "name": "look_up",
            "arguments": {"order_id": -1},
            "error": "LookupError: no such order",
        },
    ]


def test_what_gives_something_to_wait_for_is_waited_for(rec: TraceRecorder) -> None:
    async def look_up(order_id: int) -> int:
        return order_id

    partial = rec.tool(functools.partial(look_up, order_id=7))

    @rec.tool
    def lazy(order_id: int) -> Awaitable[int]:
        return look_up(order_id)

    async def main() -> list[int]:
        return [await partial(), await lazy(8)]

    assert asyncio.run(main()) == [7, 8]
    assert [(tool["name"], tool["result"]) for tool in tools(rec)] == [("look_up", 7), ("lazy", 8)]


def test_a_cancelled_tool_is_a_failed_one(rec: TraceRecorder) -> None:
    @rec.tool
    async def hang() -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        await asyncio.wait_for(hang(), timeout=0.01)

    with pytest.raises(TimeoutError):
        asyncio.run(main())
    assert [tool["error"] for tool in tools(rec)] == ["CancelledError"]


@pytest.mark.parametrize("error", [ValueError("boom"), SystemExit(3), KeyboardInterrupt()])
def test_exceptions_are_recorded_and_go_on(rec: TraceRecorder, error: BaseException) -> None:
    @rec.tool
    def fail() -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        fail()
    assert raised.value is error
    (tool,) = tools(rec)
    assert "result" not in tool
    assert tool["error"].startswith(type(error).__name__)


def test_a_call_that_does_not_fit_is_recorded_as_it_was_made(rec: TraceRecorder) -> None:
    @rec.tool
    def refund(order_id: int) -> None: ...

    with pytest.raises(TypeError, match="unexpected keyword"):
        refund(1, card="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing"):
        refund()  # type: ignore[call-arg]
    assert [tool["arguments"] for tool in tools(rec)] == [{"args": [1], "card": "x"}, {}]
    assert all(tool["error"].startswith("TypeError: ") for tool in tools(rec))


def test_generators_are_refused(rec: TraceRecorder) -> None:
    def many() -> Iterator[int]:
        yield 1

    async def many_async() -> AsyncIterator[int]:
        yield 1

    for function in (many, many_async):
        with pytest.raises(TypeError, match="generator"):
            rec.tool(function)
        with pytest.raises(TypeError, match="generator"):
            rec.question(function)


def test_what_is_no_function_is_refused(rec: TraceRecorder) -> None:
    with pytest.raises(TypeError, match="on_tool"):
        rec.tool("refund")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="on_question"):
        rec.question("Which card?")  # type: ignore[call-overload]


def test_methods_have_no_self_among_their_arguments(rec: TraceRecorder) -> None:
    class Shop:
        name = "shop"

        @rec.tool
        def sell(self, item: str) -> str:
            return f"{self.name}: {item}"

        @classmethod
        @rec.tool
        def open(cls, hour: int) -> str:
            return cls.name

        @staticmethod
        @rec.tool
        def close(hour: int) -> int:
            return hour

        def bound(self, x: int) -> int:
            return x

    shop = Shop()
    assert shop.sell("tea") == "shop: tea"
    assert Shop.open(9) == "shop"
    assert Shop.close(hour=18) == 18
    assert rec.tool(shop.bound)(5) == 5
    assert [(tool["name"], tool["arguments"]) for tool in tools(rec)] == [
        ("sell", {"item": "tea"}),
        ("open", {"hour": 9}),
        ("close", {"hour": 18}),
        ("bound", {"x": 5}),
    ]


def test_a_tools_own_argument_may_be_named_self(rec: TraceRecorder) -> None:
    def greet(self: str) -> str:
        return self

    rec.tool(greet)("x")
    assert tools(rec)[0]["arguments"] == {"self": "x"}


def test_names_of_kwargs_that_meet_others_stay_apart(rec: TraceRecorder) -> None:
    @rec.tool
    def put(key: str, /, **fields: Any) -> None: ...

    put("a", x=1)
    put("a", key="b")
    assert [tool["arguments"] for tool in tools(rec)] == [
        {"key": "a", "x": 1},
        {"key": "a", "fields": {"key": "b"}},
    ]


def test_functions_without_a_signature(rec: TraceRecorder) -> None:
    biggest = rec.tool(max)  # Its signature is nowhere to be seen.
    assert biggest(1, 2) == 2
    assert tools(rec) == [{"name": "max", "arguments": {"args": [1, 2]}, "result": 2}]


def test_objects_that_are_called(rec: TraceRecorder) -> None:
    class Search:
        def __call__(self, query: str) -> str:
            return query

    assert rec.tool(Search())("x") == "x"
    assert tools(rec) == [{"name": "Search", "arguments": {"query": "x"}, "result": "x"}]


def test_nested_tools_stand_in_the_order_of_their_calls(rec: TraceRecorder) -> None:
    @rec.tool
    def inner() -> int:
        return 1

    @rec.tool
    def outer() -> int:
        return inner() + 1

    outer()
    assert [(tool["name"], tool["result"]) for tool in tools(rec)] == [("outer", 2), ("inner", 1)]


# Questions.


def test_a_question_is_no_call_of_a_tool(rec: TraceRecorder) -> None:
    @rec.question
    def ask(question: str, choices: tuple[str, ...] = ()) -> str:
        return "the blue one"

    @rec.tool
    def pay() -> None: ...

    assert ask("Which card?") == "the blue one"
    pay()
    assert ask(question="Sure?", choices=("yes",)) == "the blue one"
    trace = rec.dump()
    assert trace["questions"] == [
        {"text": "Which card?", "before_tool": 0},
        {"text": "Sure?", "before_tool": 1},
    ]
    assert [tool["name"] for tool in trace["tools"]] == ["pay"]


def test_the_argument_that_is_the_question_can_be_named(rec: TraceRecorder) -> None:
    class Chat:
        @rec.question(text="text")
        async def send(self, channel: str, text: str = "Hello?") -> None: ...

    asyncio.run(Chat().send("mail", "Which card?"))
    asyncio.run(Chat().send("mail"))
    assert [asked["text"] for asked in rec.dump()["questions"]] == ["Which card?", "Hello?"]
    with pytest.raises(TypeError, match="takes no argument named wording"):
        rec.question(text="wording")(lambda text: text)
    with pytest.raises(TypeError, match="takes no argument"):
        rec.question(lambda: None)
