"""Commands that ask a Langfuse server, run against the test server."""

from __future__ import annotations

from pathlib import Path

from tests.bench import Result, bench
from tests.langfuse_server import PUBLIC_KEY, SECRET_KEY, Server

CONTRACT = 'workflow: w\ncontract_version: "1"\ntools: {forbidden: [never]}\n'


def environment(
    url: str, public: str = PUBLIC_KEY, secret: str = SECRET_KEY, **more: str
) -> dict[str, str]:
    """The variables that name a server and its keys."""
    keys = {"LANGFUSE_PUBLIC_KEY": public, "LANGFUSE_SECRET_KEY": secret}
    return {"LANGFUSE_BASE_URL": url, **keys, **more}


def ask(server: Server, folder: Path, *args: object, **more: str) -> Result:
    """Run a command that may ask a server."""
    return bench(*args, cwd=folder, env=environment(server.url, *server.keys, **more))


def lines_of(trace_id: str) -> dict[str, list[object]]:
    """Every command that asks a server, by its name: how it is called for one trace."""
    return {
        "fetch": ["fetch", "--trace-id", trace_id, "--out", "out.jsonl"],
        "fetch raw": ["fetch", "--trace-id", trace_id, "--raw"],
        "fetch some": ["fetch", "--user-prompt-contains", "prepare", "--limit", 3],
        "debug": ["debug", "--trace-id", trace_id, "--run-fetch", "--verbose"],
        "debug json": ["debug", "--trace-id", trace_id, "--run-fetch", "--json"],
        "verify": ["verify", "--contract", "c.yaml", "--trace-id", trace_id, "--verbose"],
        "verify json": ["verify", "--contract", "c.yaml", "--trace-id", trace_id, "--json"],
        "generate-contract": ["generate-contract", "--trace-id", trace_id, "--workflow", "w"],
    }
