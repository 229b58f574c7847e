"""Recording what an agent does, from inside the agent's own process.

Belongs here: what a user's agent imports: the recorder, and what feeds it without hand-wiring
(a decorator for plain tools, MCP sessions, OpenTelemetry spans), and the process in which one case
is replayed (`case`). Does not belong here: reading traces back (`adapters/formats`), judging them
(`scoring`), or starting and stopping the processes of a replay (`pipeline/replay`).

An agent pays for what it imports, so nothing here imports more than the standard library, msgspec
and `model.identity`; `opentelemetry` alone needs its SDK, and is imported by its own name.
"""

from benchmark_assets.recorder.mcp_session import record_elicitation, record_mcp
from benchmark_assets.recorder.record import Call, TraceRecorder, replay

__all__ = ["Call", "TraceRecorder", "record_elicitation", "record_mcp", "replay"]
