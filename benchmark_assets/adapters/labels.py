"""Labels of traces from outside: a benchmark's published grades, or a team's own judgement.

Belongs here: reading trace id → right or wrong. Does not belong here: anything that makes
verdicts: labels are compared with verdicts and never reach a snapshot or a contract.

A grade from 0 to 1 counts as right only if it is 1: partial credit is no success.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmark_assets.adapters.benchmarks.agentdojo import is_task_file
from benchmark_assets.adapters.formats import agentdojo
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.sources import locate
from benchmark_assets.model.problem import InputError, Problem

_TRUE = frozenset({"1", "1.0", "true", "yes", "pass", "passed", "resolved"})
_FALSE = frozenset({"0", "0.0", "false", "no", "fail", "failed", "unresolved"})


def read_labels(paths: Iterable[Path]) -> dict[str, bool]:
    """Read labels from files and folders.

    Understood are τ²-bench result files (`reward_info.reward`), AgentDojo run files
    (`utility`), JSON objects of trace id → label, and CSV with the columns `trace_id` and
    `label`. AgentDojo's task file, which often lies beside the runs, holds no labels.

    Raises:
        InputError: If a file is none of these, or two labels of one trace differ.
    """
    labels: dict[str, bool] = {}
    problems: list[Problem] = []
    for path in paths:
        base, files = locate(str(path))
        for file in files:
            trace_file = TraceFile(str(file), file.relative_to(base).as_posix(), file.read_bytes())
            try:
                found = _csv(trace_file) if file.suffix == ".csv" else _json(trace_file)
            except InputError as error:
                problems += error.problems
                continue
            for trace_id, label in found.items():
                if labels.setdefault(trace_id, label) != label:
                    message = f"trace {trace_id} has another label in another file"
                    problems.append(trace_file.problem(message))
    if problems:
        raise InputError(problems)
    return labels


def _json(file: TraceFile) -> dict[str, bool]:
    value = file.json
    pairs: list[tuple[Any, Any]]
    if agentdojo.is_run(value):
        # The run has no id of its own: both sides must make the same one.
        pairs = [(agentdojo.run_id(file), value.get("utility"))]
    elif is_task_file(value):
        pairs = []
    elif isinstance(value, dict) and isinstance(value.get("simulations"), list):
        pairs = [
            (simulation.get("id"), (simulation.get("reward_info") or {}).get("reward"))
            for simulation in value["simulations"]
            if isinstance(simulation, dict)
        ]
    elif isinstance(value, dict):
        pairs = list(value.items())
    else:
        raise InputError(file.problem("expected a JSON object of trace id to label"))
    return {
        trace_id: _label(label, file, trace_id)
        for trace_id, label in pairs
        if isinstance(trace_id, str) and label is not None
    }


def _csv(file: TraceFile) -> dict[str, bool]:
    rows = csv.DictReader(io.StringIO(file.text.decode()))
    if not {"trace_id", "label"} <= set(rows.fieldnames or ()):
        raise InputError(
            file.problem(
                "expected the columns trace_id and label", line=1, cure="add a header line"
            )
        )
    return {
        row["trace_id"]: _label(row["label"], file, row["trace_id"], number)
        for number, row in enumerate(rows, start=2)
        if row["label"] not in (None, "")
    }


def _label(value: Any, file: TraceFile, trace_id: str, line: int | None = None) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and 0 <= value <= 1:
        return value == 1
    text = str(value).strip().lower()
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    message = f"label {value!r} of trace {trace_id} is neither true nor false"
    raise InputError(file.problem(message, line=line, cure="write true or false"))
