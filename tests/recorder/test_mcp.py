"""Sessions of the Model Context Protocol, with real servers: in this process, and over stdio."""

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

pytest.importorskip(
    "mcp.server.mcpserver",  # Of version 2 and later.
    reason="THE MCP SDK IS MISSING, SO RECORDING ITS SESSIONS IS NOT TESTED: install the extra `mcp`",
)

from mcp import Client, StdioServerParameters
from mcp.client.session import ClientSession
from mcp.client.stdio import stdio_client
from mcp.server import MCPServer
from mcp.server.mcpserver import Elicit, Resolve
from mcp.types import ElicitResult
from pydantic import BaseModel

from benchmark_assets.recorder import TraceRecorder, record_elicitation, record_mcp

SHOP = """
from mcp.server import MCPServer

server = MCPServer("shop")


@server.tool()
def get_order(order_id: int) -> dict[str, int]:
    return {"id": order_id}


@server.tool()
def refund_payment(order_id: int, method: str = "card") -> str:
    raise LookupError("no such order")


@server.tool()
def status() -> str:
    return "open"


if __name__ == "__main__":
    server.run()
"""


class Card(BaseModel):
    name: str


def shop() -> MCPServer:
    """The server of `SHOP`, with a tool that asks."""
    scope: dict[str, Any] = {"__name__": "shop"}
    exec(compile(SHOP, "shop.py", "exec"), scope)
    server: MCPServer = scope["server"]

    async def which() -> Elicit[Card]:
        return Elicit("Which card?", Card)

    @server.tool()
    async def choose_card(card: Annotated[Card, Resolve(which)]) -> str:
        return card.name

    return server


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("mcp").setLevel(logging.CRITICAL)


async def buy(call_tool: Callable[..., Awaitable[Any]]) -> list[Any]:
    return [
        await call_tool("get_order", {"order_id": 1842}),
        await call_tool("refund_payment", arguments={"order_id": 1842}),
        await call_tool("status"),
    ]


def check(rec: TraceRecorder) -> None:
    found = rec.dump()["tools"]
    assert [(tool["name"], tool["arguments"]) for tool in found] == [
        ("get_order", {"order_id": 1842}),
        ("refund_payment", {"order_id": 1842}),
        ("status", {}),
    ]
    assert found[0]["result"] == {"id": 1842}
    assert "result" not in found[1]
    assert "Error executing tool refund_payment" in found[1]["error"]
    assert found[2]["result"] == {"result": "open"}


def test_a_client_in_this_process() -> None:
    rec = TraceRecorder()

    async def main() -> None:
        async with Client(shop()) as client:
            assert record_mcp(client, rec) is client
            found = await buy(client.call_tool)
            # The agent gets what it would have got.
            assert found[0].structured_content == {"id": 1842}
            assert found[1].is_error
            assert (await client.list_tools()).tools[0].name == "get_order"

    asyncio.run(main())
    check(rec)


def test_a_session_over_stdio(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(SHOP, encoding="utf-8")
    rec = TraceRecorder()

    async def main() -> None:
        server = StdioServerParameters(command=sys.executable, args=[str(tmp_path / "shop.py")])
        with (tmp_path / "log").open("w", encoding="utf-8") as log:
            async with (
                stdio_client(server, errlog=log) as (read, write),
                ClientSession(read, write) as session,
            ):
                await session.initialize()
                await buy(record_mcp(session, rec).call_tool)

    asyncio.run(main())
    check(rec)


def test_what_a_call_raises_goes_on() -> None:
    rec = TraceRecorder()

    async def main() -> None:
        async with Client(shop()) as client:
            record_mcp(client, rec)
            with pytest.raises(Exception, match=r".") as raised:
                await client.call_tool("get_order", {"order_id": 1}, read_timeout_seconds=-1)
            rec.on_final({"raised": type(raised.value).__name__})

    asyncio.run(main())
    trace = rec.dump()
    (tool,) = trace["tools"]
    assert tool["error"].startswith(trace["final"]["raised"])


def test_recorded_twice_is_recorded_once() -> None:
    first, second = TraceRecorder(), TraceRecorder()

    async def main() -> None:
        async with Client(shop()) as client:
            record_mcp(record_mcp(client, first), first)
            await client.call_tool("status")
            record_mcp(client, second)
            await client.call_tool("status")

    asyncio.run(main())
    assert len(first.dump()["tools"]) == 1
    assert len(second.dump()["tools"]) == 1


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize("inner", [False, True], ids=["client", "its session"])
def test_what_a_server_asks_the_user_is_a_question(inner: bool, mode: str) -> None:
    """In the middle of a call, by the older protocol; as a call made in two parts, by the newer."""
    rec = TraceRecorder()

    async def answer(context: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"name": "blue"})

    async def main() -> None:
        asked = record_elicitation(answer, rec)
        async with Client(shop(), elicitation_callback=asked, mode=mode) as client:
            record_mcp(client.session if inner else client, rec)
            await client.call_tool("status")
            await client.call_tool("choose_card")
            await client.call_tool("status")

    asyncio.run(main())
    trace = rec.dump()
    assert [tool["name"] for tool in trace["tools"]] == ["status", "choose_card", "status"]
    assert trace["tools"][1]["result"] == {"result": "blue"}
    # It was asked while the second call was under way.
    assert trace["questions"] == [{"text": "Which card?", "before_tool": 2}]
