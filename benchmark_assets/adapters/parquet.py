"""Parquet with nothing left to chance: the same rows give the same bytes.

Belongs here: the one writer and the footer's key-value metadata. Does not belong here: schemas.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

ROW_GROUP = 64_000
"""Rows that are compressed together."""


def to_parquet(table: pa.Table, footer: Mapping[str, bytes]) -> bytes:
    """Serialise a table with footer metadata, byte for byte the same for the same input."""
    metadata = {key: value.decode() for key, value in sorted(footer.items())}
    plain = table.replace_schema_metadata(None).combine_chunks()
    buffer = io.BytesIO()
    # Arrow's own copy of the schema is left out: its encoding is not promised to be stable.
    with pq.ParquetWriter(
        buffer, plain.schema, compression="zstd", version="2.6", store_schema=False
    ) as writer:
        writer.write_table(plain, row_group_size=ROW_GROUP)
        writer.add_key_value_metadata(metadata)
    return buffer.getvalue()


def read_footer(data: bytes | BinaryIO) -> dict[str, bytes]:
    """The footer's key-value metadata."""
    source = io.BytesIO(data) if isinstance(data, bytes) else data
    metadata = pq.read_metadata(source).metadata or {}
    return {key.decode(): value for key, value in metadata.items()}


def read_table(data: bytes, schema: pa.Schema, columns: list[str] | None = None) -> pa.Table:
    """Read a table back with the given schema's types.

    Raises:
        pa.ArrowException: If the bytes are damaged, wherever.
    """
    try:
        # Not `pq.read_table`: that loads pandas, which commands that only look do not need.
        table = pq.ParquetFile(io.BytesIO(data)).read(columns=columns)
    except OSError as error:
        # What Arrow says of damaged pages. Nothing is read from a disk here.
        raise pa.ArrowInvalid(f"no readable Parquet file ({error})") from error
    wanted = schema if columns is None else pa.schema([schema.field(name) for name in columns])
    return table.replace_schema_metadata(None).cast(wanted)
