"""`bench schema`: JSON Schemas for editors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from benchmark_assets.cli.output import write_text
from benchmark_assets.model.schema import (
    contract_schema,
    fixture_schema,
    harness_schema,
    project_schema,
)

SCHEMAS = {
    "contract": contract_schema,
    "fixture": fixture_schema,
    "harness": harness_schema,
    "project": project_schema,
}


@click.command("schema")
@click.argument("kind", type=click.Choice(list(SCHEMAS)), default="contract")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Write it to a file.")
def command(kind: str, out: Path | None) -> None:
    """Print the JSON Schema of a contract, a fixture, a harness profile or benchmark.yaml.

    An editor that knows YAML schemas completes keys and marks mistakes while you type, once the
    first line of a contract says where the schema is:

    # yaml-language-server: $schema=contract.schema.json

    In a fixture, which is JSON, the key "$schema" says it: "$schema": "fixture.schema.json".

    Example: bench schema contract --out contracts/contract.schema.json
    """
    if out is None:
        click.echo(schema_text(kind), nl=False)
    else:
        write_text(out, schema_text(kind))


def schema_text(kind: str) -> str:
    """A schema as it is written to files."""
    return json.dumps(SCHEMAS[kind](), indent=2, ensure_ascii=False) + "\n"
