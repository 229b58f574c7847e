"""Files of Langfuse's scheduled export to blob storage: which there are, and their rows.

Belongs here: runs and their manifests, formats (JSONL, JSON, CSV, Parquet; gzip), rows as JSON
objects one at a time. Does not belong here: putting rows together to traces (`blob`).

The export writes, below `{prefix}{project id}/` (or a folder of the integration below that),
`observations_v2/{time}.ext`, `scores/…`, from older settings `traces/…` and `observations/…`, and
last of all `manifests/{time}.json`. *A run is complete when its manifest is there*, and only
complete runs are read; what else lies in the folders is none of a run. A manifest names its files
by their keys in the bucket; their last two parts are looked up beside the manifest, so that a
copy of the export reads as the export does.

A run's window is closed on both sides and is one of the rows' own times (`start_time`, a trace's
`timestamp`): rows on the edge come in two runs. A row that reached the server more than twenty
minutes after its time is in no run; only exporting that time again brings it.

Exporters of servers without manifests can be read by the files' names (`manifests=False`): a
file then covers the time since the one before it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zlib
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import IO, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from benchmark_assets.adapters.langfuse.readers import Window
from benchmark_assets.model.problem import InputError, Problem

MANIFESTS = "manifests"
OBSERVATIONS_V2 = "observations_v2"
OBSERVATIONS = "observations"
TRACES = "traces"

MANIFEST_VERSION = 1
"""The layout of manifests that is understood; the exporter counts up when it breaks."""

_TABLES = (OBSERVATIONS_V2, OBSERVATIONS, TRACES)
_LONGEST_RUN = timedelta(days=8)
"""Runs cover a week at most; a manifest is named by the end of its run."""

_TIME = "%Y-%m-%dT%H-%M-%S"
_LONG_AGO = datetime.min.replace(tzinfo=UTC)
_GZIP = b"\x1f\x8b"
_BLOCK = 4 * 2**20
_BATCH = 256
_CHUNK = 2**20
_BETWEEN = " \t\r\n,"
_EXPANSION = 8
"""How many times larger compressed files may be when they are read."""

_JSON_COLUMNS = frozenset(
    {
        "metadata",
        "usage_details",
        "cost_details",
        "tags",
        "tool_calls",
        "tool_call_names",
        "tool_definitions",
    }
)
"""Columns that CSV has as JSON text. Inputs and outputs are texts in every format."""


class ExportFile(NamedTuple):
    """A file of a run.

    Attributes:
        path: Where it lies, as its filesystem has it.
        table: What its rows are.
        rows: How many it has; None if the manifest does not say.
        size: Bytes; None if the manifest does not say.
    """

    path: str
    table: str
    rows: int | None = None
    size: int | None = None

    @property
    def reading_size(self) -> int:
        """About how many bytes its rows have as text."""
        packed = self.path.endswith((".gz", ".parquet"))
        return (self.size or 0) * (_EXPANSION if packed else 1)


class Run(NamedTuple):
    """A complete run.

    Attributes:
        project: Id of the project.
        window: The time that it covers, both ends included.
        files: Its files of traces and observations.
    """

    project: str
    window: Window
    files: tuple[ExportFile, ...]


class _Manifest(msgspec.Struct, rename="camel"):
    class Span(msgspec.Struct, rename="camel"):
        min_timestamp: datetime
        max_timestamp: datetime

    class File(msgspec.Struct, rename="camel"):
        key: str
        table: str
        size_bytes: int | None = None
        row_count: int | None = None

    version: int
    project_id: str
    window: Span
    files: list[File]


_MANIFEST = msgspec.json.Decoder(_Manifest)


class Export:
    """An export in a folder or an object store.

    Args:
        path: A folder or an fsspec URL: the project's folder, or one at most two levels above.
        project: Id of the project, where there are several.
        manifests: Whether runs have manifests.

    Raises:
        InputError: If the URL's filesystem is not installed.
    """

    def __init__(self, path: str, *, project: str | None = None, manifests: bool = True) -> None:
        self.path = path
        self._project = project
        self._with_manifests = manifests
        try:
            root = UPath(path)
        except (ValueError, ImportError) as error:
            cure = "install the fsspec package of that protocol, or name a folder"
            raise InputError(Problem(f"export {path}: {error}", cure=cure)) from error
        self._files: Any = root.fs
        self._root = str(root.path).rstrip("/")
        self._known: dict[str, Run] = {}

    # Runs.

    def runs(self, window: Window) -> list[Run]:
        """The complete runs that may have rows of a window, oldest first.

        Raises:
            InputError: If there is no export, or manifests cannot be read, or there are several
                projects and none is named.
        """
        found = self._from_manifests(window) if self._with_manifests else self._from_names()
        if self._project is not None:
            found = [run for run in found if run.project == self._project]
        projects = sorted({run.project for run in found})
        if len(projects) > 1:
            cure = f"name one as `project`: {', '.join(projects)}"
            raise InputError(Problem(f"export {self.path}: holds several projects", cure=cure))
        near = [run for run in found if _touch(run.window, window)]
        return sorted(near, key=lambda run: (run.window.end, run.window.start))

    def covered_until(self) -> datetime | None:
        """The end of the last complete run; None if there is none."""
        ends = [time for _, time in self._stems()]
        return max(ends, default=None)

    def uncovered(self, window: Window) -> list[Window]:
        """The stretches of a window that no complete run covers."""
        missing, reached = [], window.start
        for run in sorted(self.runs(window), key=lambda run: run.window.start):
            if run.window.start > reached:
                missing.append(Window(reached, min(run.window.start, window.end)))
            reached = max(reached, run.window.end)
        if reached < window.end:
            missing.append(Window(reached, window.end))
        return [stretch for stretch in missing if stretch.start < stretch.end]

    def _from_manifests(self, window: Window) -> list[Run]:
        near = Window(window.start, window.end + _LONGEST_RUN)
        wanted = [
            path
            for path, time in self._stems()
            # The name lacks fractions of a second.
            if near.start <= time + timedelta(seconds=1) and time <= near.end
        ]
        new = [path for path in wanted if path not in self._known]
        contents = self._files.cat(new) if new else {}
        problems: list[Problem] = []
        for path in new:
            run = _run(path, contents[path])
            if isinstance(run, Problem):
                problems.append(run)
            else:
                self._known[path] = run
        if problems:
            raise InputError(problems)
        return [self._known[path] for path in wanted]

    def _from_names(self) -> list[Run]:
        by_run: dict[tuple[str, datetime], list[ExportFile]] = defaultdict(list)
        for path, time in self._stems():
            base, table, _ = path.rsplit("/", 2)
            size = self._files.size(path)
            by_run[base, time].append(ExportFile(path, table, size=size))
        times: dict[str, list[datetime]] = defaultdict(list)
        for base, time in sorted(by_run):
            times[base].append(time)
        runs = []
        for (base, time), files in by_run.items():
            place = bisect_left(times[base], time)
            start = times[base][place - 1] if place else _LONG_AGO
            project = base.rsplit("/", 1)[-1]
            runs.append(Run(project, Window(start, time), _chosen(files)))
        return runs

    def _stems(self) -> list[tuple[str, datetime]]:
        """What runs are known by: manifests, or else data files, and their times."""
        folders = (MANIFESTS,) if self._with_manifests else _TABLES
        found = []
        bases = self._bases(folders)
        for base in bases:
            for folder in folders:
                for path in self._names(f"{base}/{folder}"):
                    time = _time_of(path)
                    if time is not None:
                        found.append((path, time))
        if not bases:
            raise InputError(self._nothing(folders))
        return sorted(found)

    def _nothing(self, folders: Sequence[str]) -> Problem:
        cure = "name the folder that holds the project's folder, or that one itself"
        if self._with_manifests:
            cure += (
                "; servers from before there were manifests: `manifests: false`, and copy or "
                "export only whole files"
            )
        return Problem(f"export {self.path}: has no folder {' or '.join(folders)}", cure=cure)

    def _bases(self, folders: Sequence[str]) -> list[str]:
        """The folders that runs lie in, at most two levels down."""
        bases, level = [], [self._root]
        for _ in range(3):
            below = []
            for folder in level:
                names = self._folders(folder)
                if any(f"{folder}/{name}" in names for name in folders):
                    bases.append(folder)
                below += [name for name in names if name.rsplit("/", 1)[-1] not in _KNOWN]
            level = below
        return sorted(bases)

    def _folders(self, folder: str) -> list[str]:
        return sorted(
            str(item["name"]).rstrip("/")
            for item in self._list(folder)
            if item["type"] == "directory"
        )

    def _names(self, folder: str) -> list[str]:
        return [str(item["name"]) for item in self._list(folder) if item["type"] != "directory"]

    def _list(self, folder: str) -> list[dict[str, Any]]:
        self._files.invalidate_cache()  # the exporter writes meanwhile
        try:
            items: list[dict[str, Any]] = self._files.ls(folder, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            return []
        return items

    # Rows.

    def rows(self, file: ExportFile) -> Iterator[bytes | Problem]:
        """The rows of a file, each as a JSON object in one line; what is none, as a problem.

        Raises:
            InputError: If the file is missing or not whole.
        """
        count = 0
        for row in self._rows(file.path):
            count += 1
            yield row
        if file.rows is not None and count != file.rows:
            message = f"has {count:,} rows, and its manifest says {file.rows:,}"
            raise InputError(Problem(message, file=file.path, cure=_COPY_AGAIN))

    def _rows(self, path: str) -> Iterator[bytes | Problem]:
        try:
            with self._files.open(path, "rb", block_size=_BLOCK) as handle:
                yield from _READERS[_kind(path)](path, handle)
        except FileNotFoundError as error:
            problem = Problem("is missing, and a manifest names it", file=path, cure=_COPY_AGAIN)
            raise InputError(problem) from error
        except (EOFError, zlib.error, gzip.BadGzipFile, pa.ArrowException) as error:
            problem = Problem(f"is not whole: {error}", file=path, cure=_COPY_AGAIN)
            raise InputError(problem) from error


_KNOWN = frozenset({MANIFESTS, "scores", *_TABLES})
_COPY_AGAIN = "copy or export it again"


def _touch(one: Window, other: Window) -> bool:
    """Whether a closed window and a half-open one have a time in common."""
    return one.end >= other.start and one.start < other.end


def _time_of(path: str) -> datetime | None:
    stem = path.rsplit("/", 1)[-1].partition(".")[0]
    try:
        return datetime.strptime(stem, _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _run(path: str, data: bytes) -> Run | Problem:
    """What a manifest says."""
    try:
        manifest = _MANIFEST.decode(data)
    except msgspec.MsgspecError as error:
        return Problem(f"is no manifest: {error}", file=path, cure=_COPY_AGAIN)
    if manifest.version != MANIFEST_VERSION:
        return Problem(
            f"is a manifest of version {manifest.version}, not {MANIFEST_VERSION}",
            file=path,
            cure="use a newer version of this package",
        )
    base = path.rsplit("/", 2)[0]
    files = [
        ExportFile(
            "/".join([base, *file.key.split("/")[-2:]]), file.table, file.row_count, file.size_bytes
        )
        for file in manifest.files
    ]
    span = manifest.window
    window = Window(_utc(span.min_timestamp), _utc(span.max_timestamp))
    return Run(manifest.project_id, window, _chosen(files))


def _utc(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _chosen(files: Iterable[ExportFile]) -> tuple[ExportFile, ...]:
    """The files that make traces: those of one layout where a run has both."""
    known = [file for file in files if file.table in _TABLES]
    newer = [file for file in known if file.table == OBSERVATIONS_V2]
    return tuple(sorted(newer or known))


# Formats.


def _kind(path: str) -> str:
    name = path.rsplit("/", 1)[-1].removesuffix(".gz")
    kind = name.rpartition(".")[2].lower()
    if kind not in _READERS:
        known = ", ".join(_READERS)
        raise InputError(Problem(f"is of no known format ({known})", file=path))
    return kind


def _opened(handle: IO[bytes]) -> IO[bytes]:
    """The same, decompressed. Its first bytes tell, not its name: some tools unpack and keep it."""
    start = handle.read(2)
    handle.seek(0)
    return gzip.GzipFile(fileobj=handle) if start == _GZIP else handle  # type: ignore[return-value]


def _jsonl(path: str, handle: IO[bytes]) -> Iterator[bytes | Problem]:
    for line in _opened(handle):
        text = line.strip()
        if text and not line.endswith(b"\n") and not _is_json(text):
            raise EOFError("its last row is cut off")
        if text:
            yield text


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def _json(path: str, handle: IO[bytes]) -> Iterator[bytes | Problem]:
    """The elements of one array, without holding all of it."""
    decoder = json.JSONDecoder()
    waiting, size, begun, more = "", _CHUNK, False, True
    with io.TextIOWrapper(_opened(handle), "utf-8", errors="replace") as text:
        while more:
            read = text.read(size)
            waiting, more = waiting + read, bool(read)
            if not begun:
                begun, waiting = waiting.lstrip().startswith("["), waiting.lstrip()[1:]
            while (waiting := waiting.lstrip(_BETWEEN)) and waiting[0] != "]":
                try:
                    value, end = decoder.raw_decode(waiting)
                except ValueError:
                    break
                size, waiting = _CHUNK, waiting[end:]
                yield msgspec.json.encode(value)
            # An element longer than this is not parsed again for every bit of it.
            size = max(size, len(waiting))
    if not begun or waiting[:1] != "]":
        raise EOFError("the array does not end")


def _csv(path: str, handle: IO[bytes]) -> Iterator[bytes | Problem]:
    csv.field_size_limit(2**31 - 1)  # inputs and outputs are long
    with io.TextIOWrapper(_opened(handle), "utf-8-sig", errors="replace", newline="") as text:
        reader = csv.reader(text)
        names = next(reader, [])
        for cells in reader:
            if len(cells) == len(names):
                row = {name: _cell(name, cell) for name, cell in zip(names, cells, strict=True)}
                yield msgspec.json.encode(row)
            elif cells:
                message = f"has {len(cells)} cells under {len(names)} names"
                yield Problem(message, file=path, line=reader.line_num)


def _cell(name: str, text: str) -> Any:
    if text == "" or name not in _JSON_COLUMNS:
        return text or None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _parquet(path: str, handle: IO[bytes]) -> Iterator[bytes | Problem]:
    encoder = msgspec.json.Encoder(decimal_format="number")
    for batch in pq.ParquetFile(handle).iter_batches(batch_size=_BATCH):
        fields = [pa.field(field.name, _textual(field.type)) for field in batch.schema]
        for row in batch.cast(pa.schema(fields)).to_pylist(maps_as_pydicts="lossy"):
            yield encoder.encode(row)


def _textual(kind: pa.DataType) -> pa.DataType:
    """The same type with texts for the bytes that ClickHouse may write in their place."""
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.large_string()
    if pa.types.is_map(kind):
        return pa.map_(_textual(kind.key_type), _textual(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_textual(kind.value_type))
    return kind


_READERS = {"jsonl": _jsonl, "json": _json, "csv": _csv, "parquet": _parquet}
