"""`bench import-tasks`: contracts or fixtures from a public benchmark's published ground truth."""

from __future__ import annotations

import json
from pathlib import Path

import click

from benchmark_assets.adapters.benchmarks import FIXTURE_IMPORTERS, IMPORTERS
from benchmark_assets.adapters.contract_files import dump_contract, load_contracts
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.cli.output import EXIT_SETUP, print_problems, stdout
from benchmark_assets.model.identity import content_hash
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.report.text import plural

_NAME_BYTES = 120
"""Longest name that is written out: file systems take 255 bytes, mark and suffix included."""


@click.command("import-tasks")
@click.argument("benchmark", type=click.Choice(sorted({*IMPORTERS, *FIXTURE_IMPORTERS})))
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder to write the contracts or fixtures to.",
)
def command(benchmark: str, file: Path, out: Path) -> None:
    """Write one contract per task of BENCHMARK, from the ground truth in FILE.

    Of eval sets that hold whole paths (adk), one fixture per conversation, with its golden trace
    beside it. What the benchmark publishes about runs (rewards, grades) is not looked at.

    Example: bench import-tasks tau2 results/gpt-5.4.json --out contracts/airline
    """
    try:
        data = file.read_bytes()
    except OSError as error:
        problem = Problem(f"cannot be opened: {error.strerror}", file=str(file))
        raise InputError(problem) from error
    source = TraceFile(str(file), file.name, data)
    if benchmark in FIXTURE_IMPORTERS:
        _write_fixtures(benchmark, source, out)
    else:
        _write_contracts(benchmark, source, out)


def _write_fixtures(benchmark: str, source: TraceFile, out: Path) -> None:
    found = FIXTURE_IMPORTERS[benchmark](source)
    out.mkdir(parents=True, exist_ok=True)
    for fixture, golden in found:
        name = _file_name(fixture["id"])
        for suffix, value in ((".json", fixture), (".golden.json", golden)):
            text = json.dumps(value, indent=2, ensure_ascii=False)
            (out / f"{name}{suffix}").write_text(f"{text}\n", encoding="utf-8")
    stdout().print(f"Wrote {plural(len(found), 'fixture')} to {out}.", soft_wrap=True)


def _write_contracts(benchmark: str, source: TraceFile, out: Path) -> None:
    contracts = IMPORTERS[benchmark](source)
    paths = []
    for contract_id, contract in contracts.items():
        path = out.joinpath(*(_file_name(part) for part in contract_id.split("/")))
        path = path.with_name(path.name + ".yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dump_contract(contract), encoding="utf-8")
        paths.append(path)
    # What was written must load: an importer that writes nonsense says so here, not at night.
    loaded = load_contracts(paths)
    print_problems(loaded.problems)
    if loaded.problems:
        raise SystemExit(EXIT_SETUP)
    stdout().print(f"Wrote {plural(len(paths), 'contract')} to {out}.", soft_wrap=True)


def _file_name(part: str) -> str:
    """A part of a contract id as a file name of its own; the id itself is in the file."""
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in part).lstrip(".")
    while len(name.encode()) > _NAME_BYTES:
        name = name[:-1]
    # `~` is in no name that could stay as it is, so the two kinds cannot meet.
    return name if name == part and name else f"{name}~{content_hash(part)[:12]}"
