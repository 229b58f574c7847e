"""Snapshots of one date × model as a Parquet file.

Belongs here: the file's schema, building it from what the sources hold, reading it back. Does
not belong here: finding trace files (`sources`).

Columns beside the snapshot itself repeat what is searched for without decoding. The footer says
what the file was built from, so that staleness is a comparison and not a guess:

* `inputs`: JSON, `source/file` → hash of the file's bytes and of how they were read;
* `content`: SHA-256 over the rows: what evaluations depend on;
* `duplicates`: JSON list of traces that occurred twice with the same content, stored once.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

import msgspec
import pyarrow as pa

from benchmark_assets.adapters.parquet import read_table, to_parquet
from benchmark_assets.adapters.store import SNAPSHOTS, Store, snapshot_path
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.trace import TraceSnapshot

SCHEMA = pa.schema(
    [
        pa.field("trace_id", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("workflow", pa.string()),
        pa.field("task", pa.string()),
        pa.field("trial", pa.int32(), nullable=False),
        pa.field("started_at", pa.timestamp("us", tz="UTC"), nullable=False),
        pa.field("problem", pa.string()),
        pa.field("source", pa.string(), nullable=False),
        pa.field("source_file", pa.string(), nullable=False),
        pa.field("file", pa.string(), nullable=False),
        pa.field("record", pa.string()),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field("given_trial", pa.int32()),
        pa.field("given_problem", pa.string()),
        pa.field("snapshot", pa.large_string(), nullable=False),
    ]
)

_ENCODER = msgspec.json.Encoder(order="deterministic")
_DECODER = msgspec.json.Decoder(TraceSnapshot)
_NUMBER = re.compile(r"[0-9]{1,18}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class SourcedSnapshot(msgspec.Struct, frozen=True):
    """A snapshot and where it is held.

    Attributes:
        source: Name of the source.
        file: The source's file. It is not always the one in the snapshot's origin: a file of
            normalised snapshots holds what came from others. Default: the origin's.
        given_trial: The trial as the file has it, before `assemble`. Default: the snapshot's.
        given_problem: The problem as the file has it, likewise.
    """

    source: str
    snapshot: TraceSnapshot
    file: str = ""
    given_trial: int | msgspec.UnsetType | None = msgspec.UNSET
    given_problem: str | msgspec.UnsetType | None = msgspec.UNSET

    def __post_init__(self) -> None:
        """Fill in the defaults."""
        if not self.file:
            msgspec.structs.force_setattr(self, "file", self.snapshot.origin.file)
        if self.given_trial is msgspec.UNSET:
            msgspec.structs.force_setattr(self, "given_trial", self.snapshot.trial)
        if self.given_problem is msgspec.UNSET:
            msgspec.structs.force_setattr(self, "given_problem", self.snapshot.problem)

    def as_given(self) -> SourcedSnapshot:
        """The snapshot as its file has it: what `assemble` settled depends on the others."""
        return _with(self, trial=self.given_trial, problem=self.given_problem)


class SnapshotFooter(msgspec.Struct, frozen=True):
    """What a snapshot file says of itself without being read.

    Attributes:
        found: How many traces the source files hold for it.
        ledgers: Traces in which a framework reports on its executors.
    """

    date: str
    model: str
    inputs: dict[str, str]
    content: str
    duplicates: list[str]
    traces: int
    problems: int
    found: int
    ledgers: int = 0

    @property
    def accounted(self) -> bool:
        """Whether every trace that the files hold is stored or reported as a duplicate."""
        return self.shortfall is None

    @property
    def shortfall(self) -> str | None:
        """What does not add up, in words; None if every trace is accounted for."""
        if self.found == self.traces + len(self.duplicates):
            return None
        return (
            f"{self.found} traces in the files, {self.traces} stored and "
            f"{len(self.duplicates)} duplicates reported"
        )


class Partition(msgspec.Struct, frozen=True):
    """The rows of one date × model, ready to be written."""

    snapshots: tuple[SourcedSnapshot, ...]
    duplicates: tuple[str, ...]


def assemble(found: Iterable[SourcedSnapshot], known_duplicates: Iterable[str] = ()) -> Partition:
    """Settle what is only known once all traces of a partition are together.

    The same trace found twice is kept once. Two different traces with one id are both kept,
    and neither can be trusted to be the one that the id means: the later one (by file and
    record) becomes an error row that names the first. Trials that would share a number are
    numbered anew by start time and id.

    Args:
        found: The traces. Where two are from one place, they keep their order.
        known_duplicates: What is already known to be left out.
    """
    ordered = sorted(found, key=_place)
    first: dict[str, SourcedSnapshot] = {}
    kept: list[SourcedSnapshot] = []
    duplicates = list(known_duplicates)
    for item in ordered:
        snapshot = item.snapshot
        seen = first.get(snapshot.trace_id)
        if seen is None:
            first[snapshot.trace_id] = item
            kept.append(item)
        elif _same_content(seen.snapshot, snapshot):
            duplicates.append(f"{snapshot.trace_id}: {_at(item)} repeats {_at(seen)}")
        else:
            problem = f"trace id {snapshot.trace_id} in {_at(item)} is already used in {_at(seen)}"
            kept.append(_with(item, problem=problem))
    return Partition(tuple(_number_trials(kept)), tuple(duplicates))


def _place(item: SourcedSnapshot) -> tuple[str, str, str, int, str]:
    origin = item.snapshot.origin
    record = origin.record or ""
    # Whoever made the origin may have called a record anything; what counts is the same order.
    number = _NUMBER.search(record)
    return (item.source, item.file, origin.file, int(number[0]) if number else 0, record)


def _at(item: SourcedSnapshot) -> str:
    origin = item.snapshot.origin
    held = f"{item.source}/{item.file}"
    if origin.file != item.file:
        held += f" (from {origin.file})"
    return f"{held}: {origin.record}" if origin.record else held


def duplicates_in(footer: SnapshotFooter, source: str, file: str) -> list[str]:
    """Those of a footer's duplicates that were not stored because another file has them too."""
    place = re.compile(rf": {re.escape(f'{source}/{file}')}(: | \(from |$)")
    return [text for text in footer.duplicates if place.search(text.partition(" repeats ")[0])]


def _with(item: SourcedSnapshot, **changes: object) -> SourcedSnapshot:
    changed = msgspec.structs.replace(item.snapshot, **changes)
    return msgspec.structs.replace(item, snapshot=changed)


def _same_content(one: TraceSnapshot, other: TraceSnapshot) -> bool:
    return one == msgspec.structs.replace(other, origin=one.origin)


def _number_trials(items: list[SourcedSnapshot]) -> list[SourcedSnapshot]:
    by_task: dict[str | None, list[SourcedSnapshot]] = defaultdict(list)
    for item in items:
        by_task[item.snapshot.task].append(item)
    numbered: list[SourcedSnapshot] = []
    for task, group in by_task.items():
        trials = [item.snapshot.trial for item in group]
        if None not in trials and len(set(trials)) == len(trials):
            numbered += group
            continue
        group.sort(key=lambda item: (item.snapshot.started_at or _EPOCH, item.snapshot.trace_id))
        if task is None:
            # Without a task nothing says that these are attempts at the same thing.
            numbered += [_with(item, trial=item.snapshot.trial or 0) for item in group]
        else:
            numbered += [_with(item, trial=number) for number, item in enumerate(group)]
    numbered.sort(
        key=lambda item: (
            item.snapshot.task or "",
            item.snapshot.trial or 0,
            item.snapshot.trace_id,
            _place(item),
        )
    )
    return numbered


def write_partition(
    store: Store,
    date: str,
    model: str,
    partition: Partition,
    inputs: Mapping[str, str],
    found: int | None = None,
) -> SnapshotFooter:
    """Write one partition's file (if it differs) and return its footer.

    Args:
        store: Where to.
        date: The partition's day.
        model: The partition's model.
        partition: Its rows.
        inputs: What it was built from: `source/file` → input hash.
        found: How many traces the files hold for it, by the sources' indexes; default: as many
            as the partition accounts for.
    """
    rows = []
    encoded = []
    for item in partition.snapshots:
        snapshot = item.snapshot
        text = _ENCODER.encode(snapshot)
        encoded.append(text)
        rows.append(
            {
                "trace_id": snapshot.trace_id,
                "model": model,
                "workflow": snapshot.workflow,
                "task": snapshot.task,
                "trial": snapshot.trial,
                "started_at": snapshot.started_at,
                "problem": snapshot.problem,
                "source": item.source,
                "source_file": item.file,
                "file": snapshot.origin.file,
                "record": snapshot.origin.record,
                "sha256": snapshot.origin.sha256,
                "given_trial": item.given_trial,
                "given_problem": item.given_problem,
                "snapshot": text,  # bytes: as Python text it could take four times the memory
            }
        )
    footer = SnapshotFooter(
        date=date,
        model=model,
        inputs=dict(sorted(inputs.items())),
        content=content_hash(*encoded),
        duplicates=sorted(partition.duplicates),
        traces=len(rows),
        problems=sum(item.snapshot.problem is not None for item in partition.snapshots),
        found=len(rows) + len(partition.duplicates) if found is None else found,
        ledgers=sum(item.snapshot.workflow_record is not None for item in partition.snapshots),
    )
    table = pa.Table.from_pylist(rows, schema=SCHEMA)
    store.write(snapshot_path(date, model), to_parquet(table, _footer_bytes(footer)))
    return footer


def _footer_bytes(footer: SnapshotFooter) -> dict[str, bytes]:
    return {
        "date": footer.date.encode(),
        "model": footer.model.encode(),
        "inputs": canonical_json(footer.inputs),
        "content": footer.content.encode(),
        "duplicates": canonical_json(footer.duplicates),
        "counts": canonical_json(
            {
                "traces": footer.traces,
                "problems": footer.problems,
                "found": footer.found,
                "ledgers": footer.ledgers,
            }
        ),
    }


def parse_footer(raw: Mapping[str, bytes]) -> SnapshotFooter:
    """Read a footer back."""
    counts = msgspec.json.decode(raw["counts"], type=dict[str, int])
    return SnapshotFooter(
        date=raw["date"].decode(),
        model=raw["model"].decode(),
        inputs=msgspec.json.decode(raw["inputs"], type=dict[str, str]),
        content=raw["content"].decode(),
        duplicates=msgspec.json.decode(raw["duplicates"], type=list[str]),
        traces=counts["traces"],
        problems=counts["problems"],
        found=counts["found"],
        # An older file has none; its traces are read again, since their reader was another.
        ledgers=counts.get("ledgers", 0),
    )


def read_partition_footer(store: Store, path: str) -> SnapshotFooter | None:
    """The footer of one partition's file, or None if there is no file."""
    raw = store.footers.of(path)
    return None if raw is None else _footer(store, path, raw)


def list_partitions(store: Store) -> dict[tuple[str, str], SnapshotFooter]:
    """All stored partitions by (date, model), sorted."""
    raw = store.footers.below(SNAPSHOTS)
    footers = [_footer(store, path, item) for path, item in raw.items()]
    found = {(footer.date, footer.model): footer for footer in footers}
    return dict(sorted(found.items()))


def _footer(store: Store, path: str, raw: Mapping[str, bytes]) -> SnapshotFooter:
    # A file that another version wrote may lack what this one needs.
    with store.decoding(path):
        return parse_footer(raw)


def read_snapshots(store: Store, date: str, model: str) -> list[SourcedSnapshot]:
    """Decode all snapshots of one partition, in stored order; none if there is no file."""
    data = store.read(snapshot_path(date, model))
    if data is None:
        return []
    columns = ["source", "source_file", "given_trial", "given_problem", "snapshot"]
    with store.decoding(snapshot_path(date, model)):
        table = read_table(data, SCHEMA, columns)
        return [
            SourcedSnapshot(source, _DECODER.decode(text), file, trial, problem)
            for source, file, trial, problem, text in zip(
                *(table.column(name).to_pylist() for name in columns), strict=True
            )
        ]
