"""Waiting for traces that are still arriving, after everything else was given.

Belongs here: what is read again, when, and until when. Does not belong here: when a trace counts
as whole (`rows`, `readers.Arrival`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from benchmark_assets.adapters.langfuse.http import Client
from benchmark_assets.adapters.langfuse.readers import Arrival, RawTrace
from benchmark_assets.adapters.langfuse.rows import Rows, still_arriving

ReadAgain = Callable[[Sequence[str]], Iterator[RawTrace]]

_SHARE_OF_DEADLINE = 0.5


class Waiting:
    """Gives traces as they are whole.

    Args:
        client: Whose clock and deadline count.
        arrival: When a trace counts as whole.
        read_again: Reads traces by id.
    """

    def __init__(self, client: Client, arrival: Arrival, read_again: ReadAgain) -> None:
        self._client = client
        self._arrival = arrival
        self._read_again = read_again

    def settled(self, traces: Iterable[RawTrace]) -> Iterator[RawTrace]:
        """Yield traces; those still arriving at the end, whole or with the reason why not.

        Of those that are waited for nothing is kept but a hash.
        """
        waiting: dict[str, str] = {}
        for raw in traces:
            why = still_arriving(raw, self._client.now(), self._arrival)
            if why is None or not raw.complete:
                waiting.pop(raw.trace_id, None)
                yield raw
            elif self._arrival.wait_s <= 0:
                yield incomplete(raw, why)
            else:
                waiting[raw.trace_id] = _digest(raw)
        yield from self._waited_for(waiting)

    def _waited_for(self, waiting: dict[str, str]) -> Iterator[RawTrace]:
        until = self._client.clock() + self._seconds()
        poll = self._arrival.poll_s
        while waiting:
            self._client.pause(max(0.0, min(poll, until - self._client.clock())))
            last = self._client.clock() >= until
            poll *= 2
            for raw in self._read_again(list(waiting)):
                why = still_arriving(raw, self._client.now(), self._arrival)
                digest = _digest(raw)
                ended = Rows(raw.observations).ended
                stable = ended and waiting.get(raw.trace_id) == digest
                if why is not None and not stable and not last:
                    waiting[raw.trace_id] = digest
                    continue
                waiting.pop(raw.trace_id, None)
                yield raw if why is None or stable else incomplete(raw, why)
            if last:
                break
        for trace_id in waiting:
            gone = "it was there and, when it was read again, was not"
            yield RawTrace(trace_id=trace_id, complete=False, why=gone)

    def _seconds(self) -> float:
        remaining = self._client.remaining_s
        most = self._arrival.wait_s
        # What is left when the deadline comes is needed for giving what is known.
        return most if remaining is None else max(0.0, min(most, remaining * _SHARE_OF_DEADLINE))


def incomplete(raw: RawTrace, why: str) -> RawTrace:
    """The same trace, marked as not whole."""
    return msgspec.structs.replace(raw, complete=False, why=why)


def _digest(raw: RawTrace) -> str:
    return Rows(raw.observations).fingerprint()
