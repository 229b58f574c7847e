"""Starting a Dagster server in a project's folder, and asking it things."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
STARTS_WITHIN = 90


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def serving(command: list[str], folder: Path) -> Iterator[str]:
    """Run a server in a folder with nothing exported; yields its GraphQL address."""
    port = free_port()
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("BENCH_", "DAGSTER_"))}
    log = folder / "dev.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [str(BIN / command[0]), *command[1:], "--host", "127.0.0.1", "--port", str(port)],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    address = f"http://127.0.0.1:{port}/graphql"
    try:
        wait_for(
            lambda: process.poll() is not None or _answers(address), log.read_text, STARTS_WITHIN
        )
        assert process.poll() is None, log.read_text()
        yield address
    finally:
        # All that it started is in its session: nothing of it may outlive the test.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(address: str) -> bool:
    try:
        query(address, "{ version }")
    except OSError:
        return False
    return True


def wait_for(condition: Callable[[], object], why: Callable[[], str], seconds: float) -> None:
    """Wait until something holds, or fail and say why not."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, why()
        time.sleep(0.5)


def query(address: str, text: str, **variables: Any) -> Any:
    request = urllib.request.Request(
        address,
        json.dumps({"query": text, "variables": variables}).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        body = json.load(answer)
    assert "errors" not in body, body
    return body["data"]
