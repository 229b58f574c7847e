"""Reads runs of Microsoft Agent Framework workflows that were recorded elsewhere.

The files are beside the repository (`tests.real_data`). Each scenario has what the framework's
events reported, what chat middleware saw, what the innermost client gave out (the *wire*), and
spans; here the first two become a `WorkflowRecord`.

How the recordings differ from `adapters.agent_framework`, and what is done about it: invocations
were not numbered; executors that reported nothing have no entry; the first file did not put
together what handoffs stream, so that is done here; turns inside a nested workflow are under the
inner executor's id, with the path to it.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn, Usage, WorkflowRecord
from tests.real_data import REAL

FILES = ("exp_results.json", "exp2_results.json", "exp3_results.json")

UNTRACED = {"naked_client_no_middleware_layer_once": {"a"}}
"""Executors whose client runs no middleware, by scenario; the files do not say it."""


def scenarios() -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """File, name and content of each scenario, in the files' order."""
    for file in FILES:
        content = json.loads((REAL / "maf-recorded" / file).read_text("utf-8"))
        for name, scenario in content["scenarios"].items():
            yield file, name, scenario


def records() -> dict[str, WorkflowRecord]:
    """Each scenario as a record, under `FILE/SCENARIO` without the file's ending."""
    return {
        f"{file.partition('_')[0]}/{name}": record_of(name, scenario)
        for file, name, scenario in scenarios()
    }


def record_of(name: str, scenario: Mapping[str, Any]) -> WorkflowRecord:
    """Turn one recorded scenario into a record."""
    executors = _executors(scenario)
    return WorkflowRecord(
        name=name,
        executors=executors,
        ledger=(*_ledger(scenario), *_failed(scenario)),
        turns=tuple(_turn(row) for row in scenario.get("truth", ())),
        traced=tuple(id_ for id_ in executors if id_ not in UNTRACED.get(name, ())),
        problem=_problem(scenario),
    )


def usage_of(details: Mapping[str, int] | None) -> Usage | None:
    """The framework's counts of tokens; None where it reported none."""
    if not details:
        return None
    input_, output = details.get("input_token_count"), details.get("output_token_count")
    known = [count for count in (input_, output) if count is not None]
    return Usage(
        input=input_,
        output=output,
        total=details.get("total_token_count", sum(known) if known else None),
        cached=details.get("cache_read_input_token_count"),
        reasoning=details.get("reasoning_output_token_count"),
    )


def _executors(scenario: Mapping[str, Any]) -> tuple[str, ...]:
    if "executors" in scenario:
        return tuple(id_ for id_, _ in scenario["executors"])
    invoked = [id_ for kind, id_ in _events(scenario) if kind == "executor_invoked"]
    if not invoked:
        invoked = [*scenario.get("ledger", ()), *(_owner(t) for t in scenario.get("truth", ()))]
    return tuple(dict.fromkeys(invoked))


def _ledger(scenario: Mapping[str, Any]) -> Iterator[LedgerEntry]:
    ledger = scenario.get("ledger", {})
    for executor, entries in ledger.items():
        for entry in entries:
            yield LedgerEntry(
                executor=executor,
                usage=usage_of(entry["usage"]),
                finish_reason=entry["finish"],
            )
    outputs = scenario.get("outputs")
    for key, updates in outputs.items() if isinstance(outputs, dict) else ():
        _, executor, kind = key.split(":")
        if kind == "AgentResponseUpdate" and executor not in ledger:
            yield _put_together(executor, updates)


def _put_together(executor: str, updates: list[Mapping[str, Any]]) -> LedgerEntry:
    """One response from its updates; each recorded one reports its usage once."""
    used = [update["usage"] for update in updates if update["usage"]]
    assert len(used) <= 1
    finishes = [update["finish"] for update in updates if update["finish"]]
    return LedgerEntry(
        executor=executor,
        usage=usage_of(used[0]) if used else None,
        finish_reason=finishes[-1] if finishes else None,
    )


def _failed(scenario: Mapping[str, Any]) -> Iterator[LedgerEntry]:
    for kind, executor in _events(scenario):
        if kind == "executor_failed":
            yield LedgerEntry(executor=executor, error=scenario["error"])


def _events(scenario: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    events = scenario.get("events", ())
    for event in events if isinstance(events, list) else ():
        kind, _, executor = event.partition(":")
        yield kind, executor


def _turn(row: Mapping[str, Any]) -> ModelTurn:
    return ModelTurn(
        executor=_owner(row),
        usage=usage_of(row["usage"]),
        finish_reason=row["finish"],
        error=row.get("error"),
        response_id=row["response_id"],
    )


def _owner(row: Mapping[str, Any]) -> str:
    """The executor that has a ledger: the outermost on the path, where one is recorded."""
    path = row.get("otel_path") or row["executor"]
    return str(path).partition("/")[0]


def _problem(scenario: Mapping[str, Any]) -> str | None:
    error = scenario.get("error")
    if error is None or _any_event(scenario):
        return None
    return f"The run raised without being streamed, so its events are lost: {error}"


def _any_event(scenario: Mapping[str, Any]) -> bool:
    return next(_events(scenario), None) is not None
