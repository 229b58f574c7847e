"""The trace formats, in the order in which messages list them.

A new format is one file here with a `FORMAT`, and one line in `FORMATS`. The content decides
which one reads a file; nothing or two fitting is an error that names the candidates.
"""

from __future__ import annotations

from benchmark_assets.adapters.formats import (
    agentdojo,
    agenteval,
    claude_code,
    langfuse,
    messages,
    opentelemetry,
    recorder,
    snapshot,
    tau2,
)
from benchmark_assets.adapters.formats.base import TraceFile, TraceFormat
from benchmark_assets.model.problem import InputError, did_you_mean

FORMATS: tuple[TraceFormat, ...] = (
    snapshot.FORMAT,
    tau2.FORMAT,
    agentdojo.FORMAT,
    agenteval.FORMAT,
    claude_code.FORMAT,
    messages.FORMAT,
    recorder.FORMAT,
    langfuse.FORMAT,
    opentelemetry.FORMAT,
)


def choose_format(file: TraceFile, name: str = "auto") -> TraceFormat:
    """Return the format that reads `file`: the named one, or the only one that fits.

    Raises:
        InputError: If the name is unknown, or nothing or more than one format fits. Where the
            bytes are no readable text at all, that is what the error says.
    """
    known = [fmt.name for fmt in FORMATS]
    if name != "auto":
        for fmt in FORMATS:
            if fmt.name == name:
                return fmt
        cure = did_you_mean(name, known) or f"known formats: {', '.join(known)}"
        raise InputError(file.problem(f"there is no trace format '{name}'", cure=cure))
    fitting = [fmt for fmt in FORMATS if fmt.matches(file)]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        names = " and ".join(fmt.name for fmt in fitting)
        cure = f"choose one with --format {fitting[0].name}"
        raise InputError(file.problem(f"fits more than one trace format: {names}", cure=cure))
    if not file.is_json and file.first_line is None:
        _ = file.json  # raises with the reason: empty, wrongly encoded, truncated, not JSON
    raise InputError(
        file.problem(
            f"is no trace in a known format (tried {', '.join(known)})",
            cure="if you know the format, name it with --format",
        )
    )
