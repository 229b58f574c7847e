"""τ²-bench on real files: against the source's own figures, and its grades turned round.

180 traces: 6 models × 30 tasks of the airline suite. What is expected comes from the files'
published summary, or is counted here from the raw JSON without the code under test.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmark_assets.adapters.benchmarks.tau2 import import_tasks
from benchmark_assets.adapters.contract_files import dump_contract, parse_contract
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.traces import read_traces
from benchmark_assets.leaderboard.statistics.agreement import cohen_kappa
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.scoring.evaluate import ContractJudge
from benchmark_assets.scoring.evidence import Evidence
from tests.real_data import REAL, needs_real_data

pytestmark = [needs_real_data, pytest.mark.data]

FOLDER = REAL / "tau2-airline-train30"
MODELS = (
    "claude-opus-4-6_button",
    "claude-sonnet-4-5",
    "gpt-4o-2024-11-20",
    "gpt-5.4",
    "gpt-oss-120b",
    "qwen2.5-7b",
)
ENCODER = msgspec.json.Encoder(order="deterministic")


@cache
def raw(model: str) -> Any:
    return json.loads((FOLDER / f"{model}.json").read_bytes())


@cache
def truth(model: str) -> Any:
    expected = json.loads((REAL / "expected.json").read_text())
    return expected["tau2-airline-train30 (reward_info.reward)"][model]


def read(file: TraceFile) -> tuple[TraceSnapshot, ...]:
    return tuple(read_traces(file, ProjectConfig()))


@cache
def traces(model: str) -> tuple[TraceSnapshot, ...]:
    path = FOLDER / f"{model}.json"
    return read(TraceFile(str(path), path.name, path.read_bytes()))


def judges(file: TraceFile) -> dict[str, ContractJudge]:
    """Contract id → its judge, the contract having been written to YAML and read back."""
    return {
        contract_id: ContractJudge(parse_contract(dump_contract(data).encode(), "c.yaml", "c"))
        for contract_id, data in import_tasks(file).items()
    }


@cache
def published_judges() -> dict[str, ContractJudge]:
    path = FOLDER / "gpt-5.4.json"
    return judges(TraceFile(str(path), path.name, path.read_bytes()))


def test_the_files_are_those_with_a_published_summary() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.json")) == sorted(MODELS)


@pytest.mark.parametrize("model", MODELS)
def test_every_simulation_is_a_trace(model: str) -> None:
    found = traces(model)
    assert len(found) == truth(model)["n_traces"]
    assert [item.trace_id for item in found] == [s["id"] for s in raw(model)["simulations"]]
    assert [item.task for item in found] == [
        f"airline/{s['task_id']}" for s in raw(model)["simulations"]
    ]
    assert len({item.task for item in found}) == truth(model)["n_tasks"]
    assert {item.model for item in found} == {raw(model)["info"]["agent_info"]["llm"]}
    assert {item.workflow for item in found} == {"airline"}
    assert all(item.problem is None for item in found)


@pytest.mark.parametrize("model", MODELS)
def test_tokens_add_up_to_the_published_sums(model: str) -> None:
    found = traces(model)
    prompt = sum(
        sum(filter(None, (t.tokens.input, t.tokens.cache_read, t.tokens.cache_write)))
        for t in found
    )
    completion = sum(sum(filter(None, (t.tokens.output, t.tokens.reasoning))) for t in found)
    assert prompt == truth(model)["agent_prompt_tokens"]
    assert completion == truth(model)["agent_completion_tokens"]


@pytest.mark.parametrize("model", MODELS)
def test_tokens_nobody_counted_are_unknown(model: str) -> None:
    known = {item.tokens.total is not None for item in traces(model)}
    assert known == {truth(model)["agent_prompt_tokens"] > 0}


@pytest.mark.parametrize("model", MODELS)
def test_generations_are_the_agents_messages_after_the_greeting(model: str) -> None:
    for item, simulation in zip(traces(model), raw(model)["simulations"], strict=True):
        roles = [message["role"] for message in simulation["messages"]]
        after = roles[roles.index("user") :]
        assert len(item.generations) == after.count("assistant")
        spent = sum(g.tokens.total or 0 for g in item.generations)
        assert spent == (item.tokens.total or 0)


@pytest.mark.parametrize("model", MODELS)
def test_cost_is_known_where_it_was_measured(model: str) -> None:
    costs = [item.cost_usd for item in traces(model) if item.cost_usd is not None]
    assert len(costs) == truth(model)["traces_with_cost"]
    assert sum(costs) / len(costs) == pytest.approx(truth(model)["mean_agent_cost"], abs=5.1e-7)


@pytest.mark.parametrize("model", MODELS)
def test_durations_have_the_published_mean(model: str) -> None:
    durations = [item.duration_ms for item in traces(model)]
    assert None not in durations
    mean = sum(value for value in durations if value is not None) / len(durations) / 1000
    assert mean == pytest.approx(truth(model)["mean_duration_s"], abs=0.0051)


@pytest.mark.parametrize("model", MODELS)
def test_endings_are_the_published_ones(model: str) -> None:
    found = traces(model)
    assert Counter(item.ended for item in found) == truth(model)["termination"]
    for item in found:
        assert item.ended_normally is (item.ended == "user_stop")
        assert (item.error is None) is item.ended_normally


@pytest.mark.parametrize(
    ("model", "errors"),
    list(zip(MODELS, (0, 0, 6, 0, 13, 49), strict=True)),
)
def test_tool_errors_are_counted(model: str, errors: int) -> None:
    calls = [call for item in traces(model) for call in item.tool_calls]
    assert sum(call.status == "error" for call in calls) == errors
    assert sum(call.status is None for call in calls) == 0


@pytest.mark.parametrize("model", MODELS)
def test_calls_are_in_order_with_arguments_and_their_own_results(model: str) -> None:
    """Paired here by position: in these files every call is answered before the next message."""
    for item, simulation in zip(traces(model), raw(model)["simulations"], strict=True):
        requests: list[Any] = []
        answers: list[Any] = []
        for message in simulation["messages"]:
            if message["role"] == "assistant":
                requests += message["tool_calls"] or []
            elif message["role"] == "tool":
                answers += message.get("tool_messages") or [message]
        assert [(c.name, c.arguments) for c in item.tool_calls] == [
            (request["name"], request["arguments"]) for request in requests
        ]
        assert [(c.result, c.status == "error") for c in item.tool_calls] == [
            (answer["content"], answer["error"]) for answer in answers
        ]


def test_call_ids_repeat_in_real_files() -> None:
    """The trap is there: without it the test above would show nothing of it."""
    repeated = sum(
        len(item.tool_calls) - len({call.span_id for call in item.tool_calls})
        for item in traces("gpt-oss-120b")
    )
    assert repeated == 506


# Published grades.


def inverted(content: Any) -> Any:
    """All grades turned round: rewards, matches and every other yes or no about the run."""
    content = copy.deepcopy(content)

    def turn(value: Any) -> Any:
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return 1.0 - value
        if isinstance(value, list):
            return [turn(item) for item in value]
        if isinstance(value, dict):
            return {key: turn(item) for key, item in value.items()}
        return value

    for simulation in content["simulations"]:
        simulation["reward_info"] = turn(simulation["reward_info"])
    return content


@pytest.mark.parametrize("model", MODELS)
def test_grades_turned_round_change_no_snapshot_verdict_or_contract(model: str) -> None:
    original = TraceFile("o.json", "o.json", json.dumps(raw(model)).encode())
    turned = TraceFile("o.json", "o.json", json.dumps(inverted(raw(model))).encode())
    rewards = [s["reward_info"]["reward"] for s in raw(model)["simulations"]]
    assert [s["reward_info"]["reward"] for s in turned.json["simulations"]] == [
        1.0 - reward for reward in rewards
    ]
    # The bytes differ, so their hash does; everything else must be the same, byte for byte.
    before, after = (
        [
            msgspec.structs.replace(item, origin=msgspec.structs.replace(item.origin, sha256=""))
            for item in read(file)
        ]
        for file in (original, turned)
    )
    assert [ENCODER.encode(item) for item in before] == [ENCODER.encode(item) for item in after]
    contracts, turned_contracts = import_tasks(original), import_tasks(turned)
    assert contracts == turned_contracts
    assert [dump_contract(data) for data in contracts.values()] == [
        dump_contract(data) for data in turned_contracts.values()
    ]
    by_id = judges(original)
    verdicts = [
        [ENCODER.encode(by_id[str(item.task)].evaluate(Evidence(item))) for item in items]
        for items in (before, after)
    ]
    assert verdicts[0] == verdicts[1]


@pytest.mark.parametrize("model", MODELS)
def test_contracts_say_the_same_whichever_models_file_they_are_from(model: str) -> None:
    """All but which tools are known to write, which grows with what the runs called."""
    path = FOLDER / f"{model}.json"
    found = import_tasks(TraceFile(str(path), path.name, path.read_bytes()))
    assert set(found) == set(published_judges())
    for contract_id, data in found.items():
        other = published_judges()[contract_id].contract
        mine = parse_contract(dump_contract(data).encode(), "c.yaml", "c")
        assert mine.trajectory is not None
        assert other.trajectory is not None
        assert mine.trajectory.calls == other.trajectory.calls
        assert (mine.final, mine.ends_with) == (other.final, other.ends_with)


# Agreement with the published rewards.


@cache
def labels(model: str) -> tuple[tuple[bool, bool], ...]:
    """(contract says resolved, benchmark says right) of each trace."""
    pairs = []
    for item, simulation in zip(traces(model), raw(model)["simulations"], strict=True):
        verdict = published_judges()[str(item.task)].evaluate(Evidence(item))
        assert verdict.outcome in ("resolved", "unresolved")
        pairs.append((verdict.outcome == "resolved", simulation["reward_info"]["reward"] == 1.0))
    return tuple(pairs)


def test_verdicts_agree_with_the_published_rewards() -> None:
    pairs = [pair for model in MODELS for pair in labels(model)]
    assert len(pairs) == 180
    agreement = cohen_kappa(pairs)
    # κ once more, from the definition: observed and chance agreement of two raters.
    observed = sum(ours == theirs for ours, theirs in pairs) / len(pairs)
    yes = sum(ours for ours, _ in pairs) / len(pairs) * sum(t for _, t in pairs) / len(pairs)
    no = sum(not ours for ours, _ in pairs) / len(pairs) * sum(not t for _, t in pairs) / len(pairs)
    by_hand = (observed - yes - no) / (1 - yes - no)
    assert agreement.kappa == pytest.approx(by_hand, abs=1e-12)
    assert by_hand >= 0.95


def test_pass_rates_are_within_one_task_of_the_rewards() -> None:
    off = {
        model: abs(sum(ours for ours, _ in labels(model)) - truth(model)["n_pass"])
        for model in MODELS
    }
    assert sum(tasks <= 1 for tasks in off.values()) >= 5, off


@pytest.mark.parametrize("model", MODELS)
def test_the_rewards_are_the_published_ones(model: str) -> None:
    """Of the comparison itself: its second rater is the published summary."""
    assert sum(theirs for _, theirs in labels(model)) == truth(model)["n_pass"]


def test_no_snapshot_holds_what_the_files_keep_about_models_settings(tmp_path: Path) -> None:
    content = copy.deepcopy(raw("gpt-4o-2024-11-20"))
    content["info"]["agent_info"]["llm_args"] = {"api_key": "a word to be looked for"}
    content["info"]["user_info"]["llm_args"] = {"api_key": "a word to be looked for"}
    for item in read(TraceFile("o.json", "o.json", json.dumps(content).encode())):
        assert b"a word to be looked for" not in ENCODER.encode(item)
