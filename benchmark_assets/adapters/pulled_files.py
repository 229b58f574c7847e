"""What was pulled from a server, in the store: files of an hour's traces, and a day's manifest.

Belongs here: their layout, merging traces into them, reading them back. Does not belong here:
asking a server (`langfuse/pull`), or what a trace means (`formats/langfuse`).

`pulled/SOURCE/date=YYYY-MM-DD/HH.jsonl.zst` holds the traces of one hour by their time (UTC), one a
line, sorted by time and id, keys sorted: the same content on the server gives the same bytes.
Lines are what the server gave and a `pulled` of ours: the trace's id and time, and why it is
incomplete. An hour of more than `LARGEST_PART` goes on in `HH-2.jsonl.zst` and so on, so that no
reader has to hold more than that. `manifest.parquet` beside them says what is known of each trace,
for finding out what changed without reading the traces.

Files of traces are written before the manifest: after a killed run it knows too little, never too
much, and what it does not know is pulled again.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import IO, Any, NamedTuple, Self

import msgspec
import pyarrow as pa

from benchmark_assets.adapters.parquet import read_footer, read_table, to_parquet
from benchmark_assets.adapters.store import FileStat, Store, pulled_folder

SUFFIX = ".jsonl.zst"
MANIFEST = "manifest.parquet"

LARGEST_PART = 64 * 2**20
"""Bytes of lines, not compressed, after which an hour's traces go on in another file."""

_DAY = re.compile(r"date=(\d{4}-\d{2}-\d{2})/")


class Known(NamedTuple):
    """What a manifest says of a trace.

    Attributes:
        timestamp: Its time, UTC.
        fingerprint: What the server's list said of its state; empty if unknown.
        why: Why it is incomplete; None if it is whole.
    """

    timestamp: datetime
    fingerprint: str
    why: str | None = None


@dataclass(frozen=True)
class Manifest:
    """A day as it was pulled.

    Attributes:
        traces: What is known of each trace, by id.
        root: What tells the server's project from others.
        asked: Hash of the conditions that its traces were asked for by.
        settled: Whether the day was listed to its end, after it was over for long enough that
            nothing is expected to come any more.
    """

    traces: Mapping[str, Known]
    root: str = ""
    asked: str = ""
    settled: bool = False


class Note(msgspec.Struct, frozen=True, kw_only=True):
    """What we add to a trace's line.

    Attributes:
        id: The trace's.
        timestamp: Its time.
        incomplete: Why it is incomplete.
    """

    id: str
    timestamp: datetime
    incomplete: str | None = None


class _Line(msgspec.Struct, frozen=True):
    pulled: Note


_read_note = msgspec.json.Decoder(_Line).decode

_SCHEMA = pa.schema(
    [
        pa.field("trace_id", pa.string(), nullable=False),
        pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("fingerprint", pa.string(), nullable=False),
        pa.field("incomplete", pa.string()),
    ]
)


def day_folder(source: str, day: date) -> str:
    """Where a day's files lie."""
    return f"{pulled_folder(source)}/date={day.isoformat()}"


def line_of(
    trace_id: str, timestamp: datetime, document: Mapping[str, Any], incomplete: str | None
) -> bytes:
    """A trace's line, without its end.

    Raises:
        RecursionError: If it is nested too deeply to be written.
    """
    note: dict[str, Any] = {"id": trace_id, "timestamp": timestamp.astimezone(UTC)}
    if incomplete is not None:
        note["incomplete"] = incomplete
    return msgspec.json.encode({**document, "pulled": note}, order="deterministic")


# Reading.


def read_manifest(store: Store, source: str, day: date) -> Manifest | None:
    """What is known of a day; None if it was never pulled."""
    path = f"{day_folder(source, day)}/{MANIFEST}"
    data = store.read(path)
    if data is None:
        return None
    with store.decoding(path):
        columns = read_table(data, _SCHEMA).to_pydict()
        traces = dict(
            zip(
                columns["trace_id"],
                map(Known, columns["timestamp"], columns["fingerprint"], columns["incomplete"]),
                strict=True,
            )
        )
        return Manifest(traces, *_facts(read_footer(data)))


def pulled_days(store: Store, source: str) -> dict[date, Manifest]:
    """The days that were pulled, sorted; their manifests without traces."""
    found = {}
    for path, footer in store.footers.below(pulled_folder(source)).items():
        match = _DAY.search(path)
        if match:
            found[date.fromisoformat(match[1])] = Manifest({}, *_facts(footer))
    return dict(sorted(found.items()))


def _facts(footer: Mapping[str, bytes]) -> tuple[str, str, bool]:
    return footer["root"].decode(), footer["asked"].decode(), footer["settled"] == b"1"


def list_pulled(store: Store, source: str) -> dict[str, FileStat]:
    """The files of traces of a source, by their path below its folder."""
    folder = pulled_folder(source)
    return {stat.path.removeprefix(f"{folder}/"): stat for stat in store.scan(folder, SUFFIX)}


def read_pulled(store: Store, source: str, key: str) -> bytes | None:
    """The lines of one file of traces; None if it is gone."""
    path = f"{pulled_folder(source)}/{key}"
    data = store.read(path)
    if data is None:
        return None
    with store.decoding(path):
        return _decompressed(data)


def remove_pulled(store: Store, source: str) -> int:
    """Remove everything that was pulled from a source; how many files that were."""
    folder = pulled_folder(source)
    paths = [stat.path for suffix in (SUFFIX, ".parquet") for stat in store.scan(folder, suffix)]
    return sum(store.remove(path) for path in paths)


def _decompressed(data: bytes) -> bytes:
    try:
        with pa.input_stream(pa.BufferReader(data), compression="zstd") as stream:
            found: bytes = stream.read()
    except OSError as error:
        raise pa.ArrowInvalid(f"cannot be decompressed ({error})") from error
    return found


# Writing.


class _Spooled(NamedTuple):
    timestamp: datetime
    begin: int
    length: int


class Spool:
    """Traces on their way into the store, on disk: memory holds a few words of each."""

    def __init__(self) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="bench-pull-")  # noqa: SIM115
        self._lines: dict[str, _Spooled] = {}
        self._end = 0
        self.known: dict[str, Known] = {}

    def __len__(self) -> int:
        return len(self.known)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def put(self, trace_id: str, line: bytes, known: Known) -> None:
        """Take in a trace; one that is there already is replaced."""
        self.known[trace_id] = known
        self._add(trace_id, line, known.timestamp)

    def keep(self, line: bytes) -> None:
        """Take in a line that is in the store already."""
        note = _read_note(line).pulled
        self._add(note.id, line, note.timestamp.astimezone(UTC))

    def _add(self, trace_id: str, line: bytes, timestamp: datetime) -> None:
        self._file.seek(self._end)
        self._file.write(line)
        self._lines[trace_id] = _Spooled(timestamp, self._end, len(line))
        self._end += len(line)

    def __contains__(self, trace_id: str) -> bool:
        return trace_id in self._lines

    def hours(self) -> set[int]:
        """The hours that traces put in are of."""
        return {item.timestamp.hour for item in self.known.values()}

    def lines(self, hour: int) -> Iterator[bytes]:
        """The lines of an hour in the order in which they are stored."""
        found = [
            (item.timestamp, trace_id, item)
            for trace_id, item in self._lines.items()
            if item.timestamp.hour == hour
        ]
        for _, _, item in sorted(found):
            self._file.seek(item.begin)
            yield self._file.read(item.length)


def merge(
    store: Store,
    source: str,
    day: date,
    spool: Spool,
    before: Manifest,
    after: Callable[[Mapping[str, Known]], Manifest],
    drop: Iterable[str] = (),
) -> Manifest:
    """Put traces into a day's files, and its manifest in order.

    Only files of hours with traces that are new, moved or dropped are written.

    Args:
        store: Where to.
        source: The source.
        day: The day; all traces are of it.
        spool: The traces. Lines that stay are put into it as well.
        before: The manifest as it is.
        after: Makes the new one of all traces.
        drop: Traces to remove.
    """
    dropped = set(drop)
    moved = [before.traces[key] for key in {*spool.known, *dropped} if key in before.traces]
    hours = spool.hours() | {known.timestamp.hour for known in moved}
    folder = day_folder(source, day)
    parts = _parts(store, source, day)
    replaced = dropped | set(spool.known)
    for hour in sorted(hours):
        for path in parts.get(hour, ()):
            for line in _stored_lines(store, path):
                note = _read_note(line).pulled
                if note.id not in replaced:
                    spool.keep(line)
        _write_hour(store, folder, hour, spool.lines(hour), parts.get(hour, []))
    kept = {key: known for key, known in before.traces.items() if key not in dropped}
    manifest = after({**kept, **spool.known})
    _write_manifest(store, f"{folder}/{MANIFEST}", manifest)
    return manifest


def _parts(store: Store, source: str, day: date) -> dict[int, list[str]]:
    """The files of each hour of a day, in order."""
    found: dict[int, list[tuple[int, str]]] = {}
    for stat in store.scan(day_folder(source, day), SUFFIX):
        name = stat.path.rpartition("/")[2].removesuffix(SUFFIX)
        hour, _, part = name.partition("-")
        found.setdefault(int(hour), []).append((int(part or 1), stat.path))
    return {hour: [path for _, path in sorted(parts)] for hour, parts in found.items()}


def _stored_lines(store: Store, path: str) -> Iterator[bytes]:
    data = store.read(path)
    if data is not None:
        with store.decoding(path):
            lines = _decompressed(data).split(b"\n")
        yield from (line for line in lines if line)


def _write_hour(
    store: Store, folder: str, hour: int, lines: Iterable[bytes], before: list[str]
) -> None:
    """Write the files of an hour, and remove those that it no longer has."""
    written = set()
    for number, part in enumerate(_in_parts(lines), start=1):
        mark = "" if number == 1 else f"-{number}"
        path = f"{folder}/{hour:02d}{mark}{SUFFIX}"
        store.write(path, part)
        written.add(path)
    for path in before:
        if path not in written:
            store.remove(path)


def _in_parts(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Compress lines, no more than `LARGEST_PART` together unless one alone is more."""
    part: list[bytes] = []
    size = 0
    for line in lines:
        if part and size + len(line) > LARGEST_PART:
            yield _compressed(part)
            part, size = [], 0
        part.append(line)
        size += len(line) + 1
    if part:
        yield _compressed(part)


def _compressed(lines: Iterable[bytes]) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        for line in lines:
            stream.write(line)
            stream.write(b"\n")
    found: bytes = sink.getvalue().to_pybytes()
    return found


def _write_manifest(store: Store, path: str, manifest: Manifest) -> None:
    items = sorted(manifest.traces.items(), key=lambda item: (item[1].timestamp, item[0]))
    table = pa.Table.from_pydict(
        {
            "trace_id": [trace_id for trace_id, _ in items],
            "timestamp": [known.timestamp for _, known in items],
            "fingerprint": [known.fingerprint for _, known in items],
            "incomplete": [known.why for _, known in items],
        },
        _SCHEMA,
    )
    footer = {
        "root": manifest.root.encode(),
        "asked": manifest.asked.encode(),
        "settled": b"1" if manifest.settled else b"0",
    }
    store.write(path, to_parquet(table, footer))
