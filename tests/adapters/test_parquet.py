"""The Parquet writer: the same rows give the same bytes, however they were put together."""

from __future__ import annotations

import io
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters.parquet import ROW_GROUP, read_footer, read_table, to_parquet

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("at", pa.timestamp("us", tz="UTC")),
        pa.field(
            "items",
            pa.list_(pa.struct([pa.field("x", pa.int64(), nullable=False)])),
            nullable=False,
        ),
    ]
)
ROWS: list[dict[str, object]] = [
    {"name": f"{n % 7}", "n": None if n % 3 == 0 else n, "at": n, "items": [{"x": n}] * (n % 4)}
    for n in range(50)
]


def table(rows: list[dict[str, object]]) -> pa.Table:
    return pa.Table.from_pylist(rows, schema=SCHEMA)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, len(ROWS)), max_size=6))
def test_chunks_leave_no_mark(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(ROWS)]
    parts = [table(ROWS[a:b]) for a, b in pairwise(edges)]
    assert to_parquet(pa.concat_tables(parts), {}) == to_parquet(table(ROWS), {})


def test_slices_leave_no_mark() -> None:
    assert to_parquet(table(ROWS).slice(10, 5), {}) == to_parquet(table(ROWS[10:15]), {})


def test_a_round_trip_leaves_no_mark() -> None:
    data = to_parquet(table(ROWS), {"k": b"v"})
    assert to_parquet(read_table(data, SCHEMA), {"k": b"v"}) == data


@pytest.mark.parametrize("metadata", [{"pandas": "{}"}, {"a": "1"}])
def test_metadata_of_the_table_is_left_out(metadata: dict[str, str]) -> None:
    marked = table(ROWS).replace_schema_metadata(metadata)
    data = to_parquet(marked, {"k": b"v"})
    assert read_footer(data) == {"k": b"v"}
    assert data == to_parquet(table(ROWS), {"k": b"v"})


def test_types_come_back() -> None:
    found = read_table(to_parquet(table(ROWS), {}), SCHEMA)
    assert found.schema.equals(SCHEMA)
    assert found.to_pylist() == table(ROWS).to_pylist()


def test_some_columns_come_back_in_the_order_asked_for() -> None:
    found = read_table(to_parquet(table(ROWS), {}), SCHEMA, ["name", "n"])
    assert found.schema.equals(pa.schema([SCHEMA.field("name"), SCHEMA.field("n")]))
    assert found.column("n").to_pylist() == [row["n"] for row in ROWS]


def test_no_rows() -> None:
    data = to_parquet(SCHEMA.empty_table(), {"k": b"v"})
    assert (read_table(data, SCHEMA).num_rows, read_footer(data)) == (0, {"k": b"v"})


def test_the_footer_is_read_from_bytes_and_files() -> None:
    data = to_parquet(table(ROWS), {"b": "ü\n".encode(), "a": b""})
    assert read_footer(data) == {"a": b"", "b": "ü\n".encode()}
    assert read_footer(io.BytesIO(data)) == read_footer(data)


def test_row_groups_are_bounded() -> None:
    """Readers skip row groups by their statistics; one huge group could not be skipped."""
    many = pa.table({"n": pa.array(range(ROW_GROUP + 1), pa.int64())})
    metadata = pq.read_metadata(io.BytesIO(to_parquet(many, {})))
    assert [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)] == [
        ROW_GROUP,
        1,
    ]
