"""From check rows to one outcome, whatever the plugins are, and plugins that break."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.verdict import Check, CheckOutcome, PluginResult, Verdict
from benchmark_assets.scoring.evaluate import ContractJudge, evaluate
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.plugins import PLUGINS
from benchmark_assets.scoring.plugins.base import Judge, Plugin, at, name_call, succeeded
from tests.scoring.build import contract, trace

OUTCOMES: tuple[CheckOutcome, ...] = ("passed", "failed", "skipped", "error", "info")


def emitting(name: str, outcomes: Sequence[CheckOutcome]) -> Plugin:
    """A plugin that emits a check for each outcome."""

    def judge(_: Evidence) -> Iterator[Check]:
        for number, outcome in enumerate(outcomes):
            yield Check(name=f"c{number}", outcome=outcome, reason=f"c{number} {outcome}")

    return Plugin(name, "a plugin", lambda _: judge)


def raising_in_prepare(name: str, error: Exception) -> Plugin:
    def prepare(_: Contract) -> Judge | None:
        raise error

    return Plugin(name, "a plugin", prepare)


def raising_in_judge(name: str, error: Exception, after: int = 0) -> Plugin:
    """A plugin that raises after some checks."""

    def judge(_: Evidence) -> Iterator[Check]:
        for number in range(after):
            yield Check(name=f"c{number}", outcome="passed")
        raise error

    return Plugin(name, "a plugin", lambda _: judge)


def verdict_of(*plugins: Plugin, ends_with: list[str] | None = None) -> Verdict:
    return ContractJudge(contract(ends_with=ends_with), plugins).evaluate(Evidence(trace()))


@pytest.mark.parametrize(
    ("first", "second", "outcome", "score", "reason"),
    [
        ([], [], "unchecked", None, None),
        (["skipped", "info"], [], "unchecked", None, None),
        (["passed"], [], "resolved", 1.0, None),
        (["passed", "skipped", "info"], [], "resolved", 1.0, None),
        (["failed"], [], "unresolved", 0.0, "one: c0 failed"),
        (["passed", "failed"], [], "unresolved", 0.5, "one: c1 failed"),
        (
            ["passed"],
            ["failed", "passed", "passed", "passed"],
            "unresolved",
            0.875,
            "two: c0 failed",
        ),
        (["passed"], ["skipped"], "resolved", 1.0, None),
        (["failed"], ["failed"], "unresolved", 0.0, "one: c0 failed"),
        (["error"], [], "error", None, "one: c0 error"),
        (["passed", "error"], ["passed"], "error", 1.0, "one: c1 error"),
        (["error", "failed"], [], "unresolved", 0.0, "one: c1 failed"),
        (["error"], ["failed"], "unresolved", 0.0, "two: c0 failed"),
        (["failed"], ["error"], "unresolved", 0.0, "one: c0 failed"),
    ],
)
def test_checks_become_one_outcome(
    first: list[CheckOutcome],
    second: list[CheckOutcome],
    outcome: str,
    score: float | None,
    reason: str | None,
) -> None:
    verdict = verdict_of(emitting("one", first), emitting("two", second))
    assert (verdict.outcome, verdict.score, verdict.reason) == (outcome, score, reason)
    assert [result.plugin for result in verdict.plugins] == ["one", "two"]


@given(st.lists(st.lists(st.sampled_from(OUTCOMES), max_size=4), max_size=4))
def test_the_outcome_follows_from_which_checks_there_are(checks: list[list[CheckOutcome]]) -> None:
    verdict = verdict_of(*(emitting(f"p{n}", outcomes) for n, outcomes in enumerate(checks)))
    present = {outcome for outcomes in checks for outcome in outcomes}
    if "failed" in present:
        assert verdict.outcome == "unresolved"
    elif "error" in present:
        assert verdict.outcome == "error"
    else:
        assert verdict.outcome == ("resolved" if "passed" in present else "unchecked")


@given(st.lists(st.lists(st.sampled_from(OUTCOMES), max_size=4), max_size=4))
def test_the_order_of_plugins_changes_neither_outcome_nor_score(
    checks: list[list[CheckOutcome]],
) -> None:
    plugins = [emitting(f"p{n}", outcomes) for n, outcomes in enumerate(checks)]
    one, other = verdict_of(*plugins), verdict_of(*reversed(plugins))
    assert one.outcome == other.outcome
    assert one.score == pytest.approx(other.score)


def test_health_alone_demands_nothing() -> None:
    health = emitting("trace_health", ["passed", "passed"])
    assert verdict_of(health).outcome == "unchecked"
    assert verdict_of(health, emitting("other", ["skipped", "info"])).outcome == "unchecked"
    assert verdict_of(health, emitting("other", ["passed"])).outcome == "resolved"
    assert verdict_of(emitting("trace_health", ["failed"])).outcome == "unresolved"


# Plugins that break.

ERRORS: list[Exception] = [
    ValueError("bad value"),
    KeyError("key"),
    RecursionError("too deep"),
    ZeroDivisionError(),
]


@pytest.mark.parametrize("make", [raising_in_prepare, raising_in_judge])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_plugin_that_raises_names_itself(make: Any, error: Exception) -> None:
    verdict = verdict_of(emitting("good", ["passed"]), make("broken", error))
    assert verdict.outcome == "error"
    assert verdict.reason == f"plugin broken raised {type(error).__name__}: {error}"
    found = {result.plugin: result for result in verdict.plugins}
    assert found["broken"] == PluginResult(
        plugin="broken", error=f"{type(error).__name__}: {error}"
    )
    assert [check.outcome for check in found["good"].checks] == ["passed"]


@pytest.mark.parametrize("make", [raising_in_prepare, raising_in_judge])
def test_a_broken_plugin_is_no_failing_model(make: Any) -> None:
    verdict = verdict_of(emitting("good", ["failed"]), make("broken", ValueError("x")))
    assert verdict.outcome == "error"
    assert verdict.score == 0.0


def test_checks_before_the_fault_are_not_kept() -> None:
    verdict = verdict_of(raising_in_judge("broken", ValueError("x"), after=2))
    assert verdict.outcome == "error"
    assert verdict.plugins == (PluginResult(plugin="broken", error="ValueError: x"),)


def test_a_fault_in_one_trace_leaves_the_next_alone() -> None:
    def judge(evidence: Evidence) -> Iterator[Check]:
        if evidence.trace.final_answer is None:
            raise ValueError("no answer")
        yield Check(name="c", outcome="passed")

    judged = ContractJudge(contract(), [Plugin("touchy", "a plugin", lambda _: judge)])
    outcomes = [
        judged.evaluate(Evidence(trace(final_answer=text))).outcome for text in ("a", None, "b")
    ]
    assert outcomes == ["resolved", "error", "resolved"]


def test_a_plugin_with_nothing_to_judge_is_left_out() -> None:
    verdict = verdict_of(Plugin("idle", "a plugin", lambda _: None), emitting("good", ["passed"]))
    assert [result.plugin for result in verdict.plugins] == ["good"]


class _Unspeakable(Exception):  # noqa: N818 - its name is shown
    """An error of a plugin that does harm when asked what it says."""

    def __str__(self) -> str:
        raise SystemExit(3)


def test_an_error_that_ends_the_process_when_shown_is_named_all_the_same() -> None:
    plugin = raising_in_judge("mine", _Unspeakable())
    verdict = ContractJudge(contract(), [plugin]).evaluate(Evidence(trace()))
    assert (verdict.outcome, verdict.reason) == ("error", "plugin mine raised _Unspeakable")


@pytest.mark.parametrize(("outcome", "expected"), [("failed", "unresolved"), ("error", "error")])
def test_a_check_without_a_reason_gives_its_name_for_one(
    outcome: CheckOutcome, expected: str
) -> None:
    def judge(_: Evidence) -> Iterator[Check]:
        yield Check(name="no secrets", outcome=outcome)

    plugin = Plugin("mine", "a plugin", lambda _: judge)
    verdict = ContractJudge(contract(), [plugin]).evaluate(Evidence(trace()))
    assert (verdict.outcome, verdict.reason) == (expected, "mine: no secrets")


def test_what_ends_the_process_is_not_swallowed() -> None:
    def judge(_: Evidence) -> Iterator[Check]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        verdict_of(Plugin("stopped", "a plugin", lambda _: judge))


# Traces that cannot be judged.


def test_a_problem_is_an_error_before_any_plugin_is_asked() -> None:
    broken = raising_in_judge("broken", ValueError("x"))
    verdict = ContractJudge(contract(), [broken]).evaluate(Evidence(trace(problem="cut off")))
    assert verdict == Verdict(outcome="error", score=None, plugins=(), reason="cut off")


def test_one_judge_serves_many_traces() -> None:
    judged = ContractJudge(contract(tools={"required": ["a"]}))
    traces = [trace(tool_calls=[{"name": name}]) for name in ("a", "b", "a")]
    outcomes = [judged.evaluate(Evidence(snapshot)).outcome for snapshot in traces]
    assert outcomes == ["resolved", "unresolved", "resolved"]


# Pure: a contract makes nobody fetch anything.


@pytest.fixture
def schema_server() -> Iterator[tuple[str, list[str]]]:
    """A web server with a schema that everything fits, and the paths it was asked for."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("keyword", ["$ref", "$dynamicRef"])
def test_a_schema_elsewhere_is_refused_and_not_fetched(
    schema_server: tuple[str, list[str]], keyword: str
) -> None:
    url, asked = schema_server
    with pytest.raises(ValidationError, match=f"leads nowhere in this schema: {url}/schema.json"):
        contract(final={"schema": {keyword: f"{url}/schema.json"}})
    assert asked == []


def test_a_schema_named_as_an_address_is_not_fetched(schema_server: tuple[str, list[str]]) -> None:
    url, asked = schema_server
    schema = {"$schema": f"{url}/meta", "$id": f"{url}/a", "$ref": "#/$defs/n", "$defs": {"n": {}}}
    assert evaluate(trace(final_answer="{}"), contract(final={"schema": schema})).outcome == (
        "resolved"
    )
    assert asked == []


@pytest.mark.parametrize(
    ("answer", "outcome"), [("[1, [2]]", "resolved"), ("[[true]]", "unresolved")]
)
def test_references_inside_a_schema_are_followed(answer: str, outcome: str) -> None:
    node = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/node"}}]}
    demanding = contract(final={"schema": {"$ref": "#/$defs/node", "$defs": {"node": node}}})
    assert evaluate(trace(final_answer=answer), demanding).outcome == outcome


# What plugins say alike.


@pytest.mark.parametrize(
    ("status", "error", "good"),
    [
        ("ok", None, True),
        (None, None, True),
        ("error", None, False),
        ("error", "down", False),
        ("ok", "down", False),
        (None, "down", False),
        ("ok", "", False),
    ],
)
def test_a_call_succeeded_unless_something_says_that_it_failed(
    status: Any, error: Any, good: bool
) -> None:
    call = trace(tool_calls=[{"name": "a", "status": status, "error": error}]).tool_calls[0]
    assert succeeded(call) is good


def test_places_count_from_0_and_names_from_1() -> None:
    call = trace(tool_calls=[{"name": "a", "span_id": "s"}]).tool_calls[0]
    assert (at(call, 4).call, at(call, 4).span_id) == (4, "s")
    assert name_call(call, 4) == "a (call 5)"


def test_the_default_plugins_are_all_of_them() -> None:
    everything = contract(
        tools={"required": ["a"]},
        trajectory={"extra": "forbid"},
        final={"contains": ["x"]},
        ends_with=["stop"],
        skills={},
        input_context=[],
        output=[],
        budget={"max_tool_calls": 1},
    )
    names = [result.plugin for result in evaluate(trace(), everything).plugins]
    assert names == [plugin.name for plugin in PLUGINS]
