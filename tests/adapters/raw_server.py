"""A server that says byte for byte what a test wants: broken bodies, resets, wrong lengths."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Reply = bytes | Callable[[socket.socket], None]


@dataclass
class Raw:
    """What was asked so far: the heads of the requests."""

    url: str
    heads: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


def answer(
    body: bytes | str = b"{}",
    status: str = "200 OK",
    kind: str = "application/json",
    **headers: str,
) -> bytes:
    """A whole answer. Underscores in headers' names are dashes."""
    body = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return ("\r\n".join([*lines, "Connection: close", "", ""])).encode() + body


def cut(body: bytes, keep: int) -> bytes:
    """An answer that promises a body and ends in the middle of it."""
    whole = answer(body)
    return whole[: len(whole) - len(body) + keep]


def endless(body: bytes) -> bytes:
    """An answer without a length: it ends when the connection does."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + body


def reset(after: bytes = b"") -> Callable[[socket.socket], None]:
    """Say something, then break the connection."""

    def break_it(connection: socket.socket) -> None:
        if after:
            connection.sendall(after)
            time.sleep(0.02)
        # Closing with this set sends a reset and not an end.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return break_it


def silent(seconds: float) -> Callable[[socket.socket], None]:
    """Say nothing for a while."""
    return lambda _: time.sleep(seconds)


@contextmanager
def raw_server(*replies: Reply) -> Iterator[Raw]:
    """Answer one request a connection with the replies in order; the last one for ever."""
    listener = socket.create_server(("127.0.0.1", 0))
    raw = Raw(f"http://127.0.0.1:{listener.getsockname()[1]}")

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            number = len(raw.heads)
            with connection:
                head = b""
                while b"\r\n\r\n" not in head:
                    part = connection.recv(65536)
                    if not part:
                        break
                    head += part
                if not head:
                    continue
                raw.heads.append(head.decode("latin-1"))
                raw.times.append(time.monotonic())
                reply = replies[min(number, len(replies) - 1)]
                try:
                    if isinstance(reply, bytes):
                        connection.sendall(reply)
                    else:
                        reply(connection)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield raw
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(timeout=5)
