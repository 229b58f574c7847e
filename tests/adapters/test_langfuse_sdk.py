"""What the real Langfuse SDK writes, our readers read back, from every kind of server."""

from __future__ import annotations

import pytest
from langfuse import propagate_attributes

from benchmark_assets.adapters.langfuse.credentials import Credentials
from benchmark_assets.adapters.langfuse.http import Client
from benchmark_assets.adapters.langfuse.readers import Arrival, Reader
from benchmark_assets.adapters.langfuse.selection import LangfuseTraces
from benchmark_assets.adapters.langfuse.servers import probe
from benchmark_assets.adapters.langfuse.v1 import V1Reader
from benchmark_assets.adapters.langfuse.v2 import V2Reader
from benchmark_assets.adapters.trace_source import Selection
from benchmark_assets.model.project import ProjectConfig
from tests.langfuse_server import Mode, langfuse_sdk, langfuse_server


@pytest.mark.parametrize("mode", ["v1", "dual", "v2"])
def test_a_trace_written_with_the_sdk_is_read_back(mode: Mode) -> None:
    with langfuse_server([], mode=mode) as server:
        with (
            langfuse_sdk(server, environment="staging") as langfuse,
            propagate_attributes(user_id="ada", session_id="s1", tags=["bench"], trace_name="plan"),
            langfuse.start_as_current_observation(
                name="planner", as_type="agent", input={"query": "Find the invoice"}
            ) as root,
        ):
            with root.start_as_current_observation(
                name="chat", as_type="generation", model="gpt-5", input="Find the invoice"
            ) as chat:
                chat.update(output="…", usage_details={"input": 3, "output": 4})
            with root.start_as_current_observation(
                name="search", as_type="tool", input={"q": "invoice"}
            ) as tool:
                tool.update(level="ERROR", status_message="the service is away")
            root.update(output="It is not there.")
        credentials = Credentials(*server.keys, server.url)
        with Client(credentials, sleep=lambda _: None) as client:
            arrival = Arrival(poll_s=0.01)
            reader: Reader
            if probe(client).api == "v1":
                reader = V1Reader(client, arrival=arrival)
            else:
                reader = V2Reader(client, arrival=arrival)
            source = LangfuseTraces(reader, ProjectConfig(), environments=("staging",))
            (found,) = source.select(Selection(thread_id="s1", name="plan"))
            assert list(source.select(Selection(environments=("default",)))) == []
    snapshot = found.snapshot
    assert snapshot.trace_id == root.trace_id
    assert (snapshot.problem, snapshot.name, snapshot.user_id) == (None, "plan", "ada")
    assert (snapshot.session_id, snapshot.tags) == ("s1", ("bench",))
    assert (snapshot.prompt, snapshot.final_answer) == ("Find the invoice", "It is not there.")
    (call,) = snapshot.tool_calls
    assert (call.name, call.arguments, call.error) == (
        "search",
        {"q": "invoice"},
        "the service is away",
    )
    assert (snapshot.model, snapshot.tokens.input, snapshot.tokens.output) == ("gpt-5", 3, 4)
