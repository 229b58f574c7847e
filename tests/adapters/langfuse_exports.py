"""Exports to blob storage, made of what a test server answers, as the exporter writes them."""

import csv
import gzip
import io
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from upath import UPath

from tests.langfuse_server import PUBLIC_KEY, SECRET_KEY, Server

Row = dict[str, Any]

FIELDS = "core,basic,time,io,metadata,model,usage,prompt,metrics,trace_context"
TIMES = ("start_time", "end_time", "completion_start_time", "created_at", "updated_at", "timestamp")
PROJECT = "clx0project"
OBJECTS = ("metadata", "usage_details", "cost_details", "tool_definitions")
LISTS = ("tags", "tool_calls", "tool_call_names")


def enriched(server: Server) -> dict[str, list[Row]]:
    """The tables of an export of a server with v2."""
    rows, cursor = [], None
    while True:
        params = {"fields": FIELDS, "limit": 1000, "cursor": cursor}
        answer = _get(server, "v2/observations", params)
        rows += [_row(row, null="") for row in answer["data"]]
        cursor = answer["meta"].get("cursor")
        if cursor is None:
            return {"observations_v2": rows}


def legacy(server: Server) -> dict[str, list[Row]]:
    """The tables of an export of a server with v1."""
    traces = [_row(row, null=None) for row in _pages(server, "traces", {"fields": "core,io"})]
    rows = [_row(row, null=None) for row in _pages(server, "observations", {})]
    for trace in traces:
        for name in ("observations", "scores", "latency", "total_cost", "html_path"):
            trace.pop(name, None)
    return {"traces": traces, "observations": rows}


def _pages(server: Server, path: str, params: Row) -> Iterable[Row]:
    page = 1
    while True:
        answer = _get(server, path, {**params, "page": page, "limit": 100})
        yield from answer["data"]
        if page >= answer["meta"]["totalPages"]:
            return
        page += 1


def _get(server: Server, path: str, params: Row) -> Any:
    given = {name: value for name, value in params.items() if value is not None}
    answer = httpx.get(
        f"{server.url}/api/public/{path}", params=given, auth=(PUBLIC_KEY, SECRET_KEY)
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def _row(row: Row, null: str | None) -> Row:
    """A row as the exporter writes it: snake_case, its times, texts for inputs and outputs."""
    made: Row = {}
    for name, value in row.items():
        key = re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)
        key = {"model": "provided_model_name", "internal_model_id": "model_id"}.get(key, key)
        if key in TIMES:
            made[key] = value and export_time(datetime.fromisoformat(value))
        elif key in ("input", "output", "model_parameters") and not isinstance(value, str):
            made[key] = null if value is None else json.dumps(value)
        elif isinstance(value, str | None) and not (value is None and key in OBJECTS + LISTS):
            made[key] = value or null
        else:
            made[key] = value
    for key in OBJECTS:
        if key in made:
            made[key] = made[key] or {}
    # The database keeps texts.
    made["metadata"] = {k: v if isinstance(v, str) else json.dumps(v) for k, v in kept(made)}
    return made


def kept(row: Row) -> Iterable[tuple[str, Any]]:
    """A row's metadata, entry by entry."""
    metadata: Row = row["metadata"]
    return metadata.items()


def export_time(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"


@dataclass
class Exporter:
    """Writes runs, one after the other.

    Attributes:
        root: Where to; the prefix's folder.
        kind: Extension of the files.
        prefix: What keys begin with in the bucket.
    """

    root: UPath
    kind: str = "jsonl"
    prefix: str = "exports/"
    project: str = PROJECT
    manifests: bool = True
    written: list[str] = field(default_factory=list)

    def runs(
        self, tables: dict[str, list[Row]], start: datetime, end: datetime, every: timedelta
    ) -> None:
        """All runs of a stretch of time."""
        while start < end:
            self.run(tables, start, start + every)
            start += every

    def run(
        self, tables: dict[str, list[Row]], start: datetime, end: datetime, complete: bool = True
    ) -> None:
        """One run: rows of a window that is closed on both sides."""
        low, high, files = export_time(start), export_time(end), []
        for table, rows in tables.items():
            key = "timestamp" if table == "traces" else "start_time"
            inside = [row for row in rows if low <= row[key] <= high]
            name = f"{table}/{end:%Y-%m-%dT%H-%M-%S}.{self.kind}"
            data = written_as(self.kind, inside)
            self._put(name, data)
            files.append(
                {
                    "key": f"{self.prefix}{self.project}/{name}",
                    "table": table,
                    "rowCount": None if self.kind == "parquet" else len(inside),
                    "sizeBytes": len(data),
                    "format": self.kind,
                }
            )
        scores = f"scores/{end:%Y-%m-%dT%H-%M-%S}.{self.kind}"
        self._put(scores, written_as(self.kind, []))
        files.append({"key": f"{self.prefix}{self.project}/{scores}", "table": "scores"})
        if complete and self.manifests:
            manifest = {
                "version": 1,
                "projectId": self.project,
                "window": {"minTimestamp": iso(start), "maxTimestamp": iso(end)},
                "maxTimestamp": iso(end),
                "files": files,
                "somethingNew": True,
            }
            name = f"manifests/{end:%Y-%m-%dT%H-%M-%S}.json"
            self._put(name, json.dumps(manifest).encode())

    def _put(self, name: str, data: bytes) -> None:
        path = self.root / self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        self.written.append(str(path))


def iso(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def written_as(kind: str, rows: list[Row]) -> bytes:
    """Rows in one of the formats."""
    if kind.endswith(".gz"):
        return gzip.compress(written_as(kind.removesuffix(".gz"), rows))
    if kind == "jsonl":
        return b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    if kind == "json":
        return ("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n").encode()
    if kind == "csv":
        return _csv(rows)
    return _parquet(rows)


def _csv(rows: list[Row]) -> bytes:
    text = io.StringIO(newline="")
    names = list(rows[0]) if rows else []
    writer = csv.writer(text)
    writer.writerow(names)
    writer.writerows([_cell(row[name]) for name in names] for row in rows)
    return text.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _parquet(rows: list[Row]) -> bytes:
    """As ClickHouse does: maps, times as timestamps, texts as bytes."""
    names = list(rows[0]) if rows else ["id"]
    columns = [_column(name, [row[name] for row in rows]) for name in names]
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns, names=names), buffer)
    return buffer.getvalue()


def _column(name: str, values: list[Any]) -> pa.Array:
    if name in TIMES:
        times = [value and datetime.fromisoformat(value) for value in values]
        return pa.array(times, pa.timestamp("us"))
    if name in LISTS:
        return pa.array([value or [] for value in values], pa.list_(pa.binary()))
    if name == "metadata":
        pairs = [[(k.encode(), v.encode()) for k, v in value.items()] for value in values]
        return pa.array(pairs, pa.map_(pa.binary(), pa.binary()))
    if name in OBJECTS:
        kind = pa.float64() if name == "cost_details" else pa.uint64()
        pairs = [list((value or {}).items()) for value in values]
        return pa.array(pairs, pa.map_(pa.string(), kind))
    known = [value for value in values if value not in (None, "")]
    if any(isinstance(value, str) for value in known):
        return pa.array([None if v is None else v.encode() for v in values], pa.binary())
    return pa.array([None if value == "" else value for value in values])
