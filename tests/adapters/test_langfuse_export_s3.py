"""Exports where they are written to: in an object store."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from upath import UPath

from benchmark_assets.adapters.langfuse.blob import ExportReader
from benchmark_assets.adapters.langfuse.export_files import Export
from benchmark_assets.adapters.langfuse.readers import Window
from tests.adapters.langfuse_exports import PROJECT, Exporter, enriched
from tests.adapters.object_store import s3_server
from tests.langfuse_server import START, generate, langfuse_server

pytestmark = [
    pytest.mark.services,
    # botocore and moto warn of themselves.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]

DAY = Window(START, START + timedelta(days=1))


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[str]:
    with s3_server() as address:
        yield address


@pytest.mark.parametrize("kind", ["jsonl.gz", "parquet"])
@pytest.mark.parametrize("prefix", ["", "langfuse/exports/"])
def test_reads_the_same_as_from_a_folder(tmp_path: Path, kind: str, prefix: str) -> None:
    with langfuse_server(generate(30, 1), mode="v2") as server:
        tables = enriched(server)
    every, days = timedelta(hours=6), START + timedelta(days=2)
    url = f"s3://bucket/{kind}/{prefix}".rstrip("/")
    # Keys are whole, from the bucket on.
    Exporter(UPath(url), kind, f"{kind}/{prefix}").runs(tables, START, days, every)
    Exporter(UPath(tmp_path / "copy"), kind, f"{kind}/{prefix}").runs(tables, START, days, every)
    with (
        ExportReader(Export(url)) as there,
        ExportReader(Export(str(tmp_path / "copy"))) as here,
    ):
        found = list(there.fetch_window(DAY))
        assert len(found) == 30
        assert found == list(here.fetch_window(DAY))
    with ExportReader(Export(f"{url}/{PROJECT}")) as below:
        assert len(list(below.list(DAY))) == 30
