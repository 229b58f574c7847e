"""Choosing traces of a Langfuse server: what the server cannot tell is looked for here.

Belongs here: turning a selection into the server's conditions, and checking the rest on
normalised traces. Does not belong here: requests (`v1`, `v2`), what can be asked
(`trace_source`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from benchmark_assets.adapters.langfuse.readers import RawTrace, Reader
from benchmark_assets.adapters.trace_source import Progress, Selected, Selection
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot

Skills = Callable[[TraceSnapshot], Iterable[str]]
"""Names of the skills that a trace loaded; harness profiles know them, which are not read here."""


class LangfuseTraces:
    """The traces of one project on a server, as a `TraceSource`.

    Args:
        reader: Reads the server.
        config: Settles what traces are of; how models are called.
        environments: What is asked for where a selection does not say; empty is every one.
        skills: Names of the skills that a trace loaded; by default what its source says.
    """

    def __init__(
        self,
        reader: Reader,
        config: ProjectConfig,
        *,
        environments: tuple[str, ...] = (),
        skills: Skills | None = None,
    ) -> None: ...

    def select(self, selection: Selection, progress: Progress | None = None) -> Iterator[Selected]:
        """Yield the traces asked for, newest first (by id: in the order asked for)."""
        ...

    def snapshot(self, raw: RawTrace) -> TraceSnapshot:
        """A fetched trace, normalised and settled; one that is not complete has a `problem`."""
        ...
