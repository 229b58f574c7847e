"""Both sides of a workflow from trees of spans."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.adapters.span_record import (
    OUTSIDE,
    UNNAMED,
    NodeKind,
    SpanNode,
    model_calls,
    workflow_record,
)
from benchmark_assets.model.fidelity import Usage, WorkflowRecord
from benchmark_assets.scoring.trace_fidelity import strict
from tests.counting import growth

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def node(
    id_: str,
    kind: NodeKind,
    parent: str | None = None,
    total: int | None = None,
    at: int | None = None,
    **rest: Any,
) -> SpanNode:
    """A node with a total of tokens, `at` seconds after noon."""
    return SpanNode(
        id=id_,
        kind=kind,
        parent_id=parent,
        usage=None if total is None else Usage(input=total - 1, output=1, total=total),
        started_at=None if at is None else NOON + timedelta(seconds=at),
        **rest,
    )


def agent(
    id_: str, name: str, parent: str | None = None, total: int | None = None, **rest: Any
) -> SpanNode:
    return node(id_, "agent", parent, total, executor=name, **rest)


def model(id_: str, parent: str | None = None, total: int | None = None, **rest: Any) -> SpanNode:
    return node(id_, "model", parent, total, **rest)


def executor(id_: str, name: str, parent: str | None = None, **rest: Any) -> SpanNode:
    return node(id_, "executor", parent, executor=name, **rest)


def record(*nodes: SpanNode) -> WorkflowRecord:
    found = workflow_record(nodes)
    assert found is not None
    return found


def verdicts(*nodes: SpanNode) -> dict[str, str]:
    judged = strict.reconcile(record(*nodes))
    return {item.executor_id: item.verdict for item in judged.executors}


def turns(found: WorkflowRecord) -> list[tuple[str, str | None, int | None]]:
    """Executor, invocation and tokens of each turn."""
    return [(t.executor, t.invocation, t.usage.total if t.usage else None) for t in found.turns]


def entries(found: WorkflowRecord) -> list[tuple[str, str | None, int | None]]:
    return [(e.executor, e.invocation, e.usage.total if e.usage else None) for e in found.ledger]


# Whose a call is.


def test_a_call_is_a_turn_of_its_nearest_agent() -> None:
    found = record(
        agent("o", "outer", None, 33),
        model("c1", "o", 20),
        node("t", "tool", "o"),
        agent("i", "inner", "t"),
        node("x", "other", "i"),
        model("c2", "x", 440),
        model("c3", "o", 13),
    )
    assert turns(found) == [("outer", "o", 20), ("inner", "i", 440), ("outer", "o", 13)]
    assert entries(found) == [("outer", "o", 33), ("inner", "i", None)]
    assert found.executors == ("outer", "inner")


def test_an_agent_that_an_executor_runs_has_the_executors_id() -> None:
    found = record(
        executor("e", "writer_1"),
        agent("a", "Writer", "e", 10),
        model("c", "a", 10),
        node("t", "tool", "a"),
        agent("b", "Helper", "t", 5),
        model("d", "b", 5),
    )
    assert entries(found) == [("writer_1", "a", 10), ("Helper", "b", 5)]
    assert turns(found) == [("writer_1", "a", 10), ("Helper", "b", 5)]


def test_executors_of_a_nested_workflow_have_a_path() -> None:
    found = record(
        executor("e", "sub"),
        node("w", "other", "e"),
        executor("s", "s1", "w"),
        agent("a", "Agent", "s", 35),
        model("c", "a", 35),
    )
    assert entries(found) == [("sub/s1", "a", 35)]
    assert found.executors == ("sub", "sub/s1")


def test_a_call_outside_any_agent_is_its_executors_or_nobodys() -> None:
    found = record(
        agent("a", "a", None, 7),
        model("c", "a", 7),
        executor("e", "custom"),
        model("d", "e", 550),
        model("f", None, 3),
        model("g", "missing", 4),
    )
    assert turns(found)[1:] == [("custom", "e", 550), (OUTSIDE, None, 3), (OUTSIDE, None, 4)]
    assert strict.reconcile(found).outcome == "FAIL"


def test_an_agent_without_a_name_has_its_spans_name_or_says_so() -> None:
    found = record(node("a", "agent", None, 1, name="invoke_agent"), node("b", "agent", None, 2))
    assert [entry.executor for entry in found.ledger] == ["invoke_agent", UNNAMED]


def test_order_is_that_of_start_and_then_as_given() -> None:
    given_order = [
        agent("a", "a", None, 6, at=0),
        model("late", "a", 3, at=9),
        model("unknown", "a", 2),
        model("early", "a", 1, at=5),
    ]
    assert [t.span_id for t in record(*given_order).turns] == ["early", "late", "unknown"]


def test_times_with_and_without_zone_are_compared() -> None:
    plus_two = timezone(timedelta(hours=2))
    found = record(
        agent("a", "a", None, 2),
        SpanNode(id="2", kind="model", parent_id="a", started_at=datetime(2026, 1, 1, 10)),  # noqa: DTZ001
        SpanNode(
            id="1",
            kind="model",
            parent_id="a",
            started_at=datetime(2026, 1, 1, 11, 59, tzinfo=plus_two),
        ),
    )
    assert [turn.span_id for turn in found.turns] == ["1", "2"]


# A call counts once.


def test_spans_with_one_response_id_are_one_call() -> None:
    """The provider's instrumentation has no agent around it; the framework's has no usage."""
    found = record(
        model("provider", None, 30, response_id="r1", at=1, finish_reason="stop"),
        agent("a", "a", None, 30, at=2),
        model("framework", "a", response_id="r1", at=3, model="m"),
    )
    assert turns(found) == [("a", "a", 30)]
    (turn,) = found.turns
    assert (turn.finish_reason, turn.model, turn.response_id) == ("stop", "m", "r1")
    (call,) = model_calls(
        [model("p", None, 1, response_id="r"), model("f", "x", 1, response_id="r")]
    )
    assert (call.node.id, call.duplicates, call.agent) == ("p", ("f",), None)


def test_a_response_id_that_is_empty_ties_nothing_together() -> None:
    found = record(agent("a", "a", None, 3), model("b", "a", 1, response_id=""), model("c", "a", 2))
    assert turns(found) == [("a", "a", 1), ("a", "a", 2)]


def test_a_model_span_in_a_model_span_is_the_same_call_seen_from_further_in() -> None:
    found = record(
        agent("a", "a", None, 30),
        model("outer", "a", 31, finish_reason="stop"),
        node("http", "other", "outer"),
        model("inner", "http", 30),
    )
    assert turns(found) == [("a", "a", 30)]
    assert found.turns[0].finish_reason == "stop"
    assert found.turns[0].span_id == "inner"


def test_a_model_span_around_several_calls_is_left_out() -> None:
    nodes = [
        agent("a", "a", None, 30),
        model("sum", "a", 30),
        model("c", "sum", 10),
        model("d", "sum", 20),
    ]
    assert turns(record(*nodes)) == [("a", "a", 10), ("a", "a", 20)]
    calls = model_calls(nodes)
    assert sorted(id_ for c in calls for id_ in (c.node.id, *c.duplicates)) == ["c", "d", "sum"]


def test_a_failed_attempt_inside_stays_a_call_beside_the_one_that_succeeded() -> None:
    found = record(
        agent("a", "a", None, 30),
        model("outer", "a", 30),
        model("c", "outer", error="timeout"),
        model("d", "outer", 30),
    )
    assert [(t.span_id, t.error) for t in found.turns] == [("c", "timeout"), ("d", None)]


@pytest.mark.parametrize("inner", [[None], [None, None], [10, None], [0]])
def test_the_outer_span_counts_where_only_it_knows_what_was_used(inner: list[int | None]) -> None:
    found = record(
        agent("a", "a", None, 30),
        model("outer", "a", 30),
        *(
            SpanNode(
                id=f"i{n}",
                kind="model",
                parent_id="outer",
                usage=None if total is None else Usage(total=total),
                finish_reason=f"f{n}",
            )
            for n, total in enumerate(inner)
        ),
    )
    assert turns(found) == [("a", "a", 30)]
    assert found.turns[0].finish_reason == f"f{len(inner) - 1}"


@pytest.mark.parametrize("between", ["agent", "tool", "executor"])
def test_a_call_that_another_causes_is_another(between: NodeKind) -> None:
    found = record(
        agent("a", "a", None, 30),
        model("outer", "a", 20),
        node("x", between, "outer", executor="x"),
        model("inner", "x", 10),
    )
    assert [t.span_id for t in found.turns] == ["outer", "inner"]


def test_the_same_span_twice_is_one() -> None:
    nodes = [
        agent("a", "a", None, 30),
        model("c", "a", 30),
        model("c", "a", 30),
        agent("a", "a", None, 30),
    ]
    assert entries(record(*nodes)) == turns(record(*nodes)) == [("a", "a", 30)]
    assert [call.duplicates for call in model_calls(nodes)] == [("c",)]


# A report counts once.


def crew(total: int | None, a: int | None, b: int | None, **rest: Any) -> list[SpanNode]:
    return [
        agent("w", "crew", None, total, **rest),
        agent("a", "a", "w", a),
        model("c", "a", 100),
        agent("b", "b", "w", b),
        model("d", "b", 200),
    ]


def test_a_wrapper_that_repeats_what_its_agents_report_or_used_is_no_second_report() -> None:
    assert verdicts(*crew(300, 100, 200)) == {"a": "Agree", "b": "Agree"}
    # The sum of what was reported is not what was used; it is a's report that is wrong.
    assert verdicts(*crew(250, 50, 200)) == {"a": "TokenMismatch", "b": "Agree"}
    assert verdicts(*crew(300, 50, 200)) == {"a": "TokenMismatch", "b": "Agree"}
    assert verdicts(*crew(300, 100, 200, finish_reason="stop")) == {"a": "Agree", "b": "Agree"}
    assert verdicts(*crew(300, 100, 200, calls=2)) == {"a": "Agree", "b": "Agree"}


def test_wrappers_around_wrappers_repeat_too() -> None:
    nodes = [agent("r", "root", None, 300), *crew(300, 100, 200)]
    nodes[1] = agent("w", "crew", "r", 300)
    assert verdicts(*nodes) == {"a": "Agree", "b": "Agree"}


def test_a_wrapper_reports_for_agents_that_report_nothing() -> None:
    assert verdicts(*crew(300, None, None)) == {"crew": "Agree"}
    assert verdicts(*crew(200, None, None)) == {"crew": "TokenMismatch"}
    assert turns(record(*crew(300, None, None))) == [("crew", "w", 100), ("crew", "w", 200)]


def test_a_wrapper_that_says_something_else_is_unchecked() -> None:
    """It may have called a model that nothing instruments; that is not known to be too much."""
    assert verdicts(*crew(999, 100, 200)) == {"crew": "NoTruth", "a": "Agree", "b": "Agree"}


def test_an_agent_with_calls_of_its_own_is_no_wrapper() -> None:
    assert verdicts(*crew(320, 100, 200), model("own", "w", 10))["crew"] == "OverReport"
    assert verdicts(*crew(300, 100, 200), model("own", "w", 10))["crew"] == "OverReport"


def test_a_total_that_takes_in_the_agents_below_is_no_over_report() -> None:
    nodes = [*crew(310, 100, 200), model("own", "w", 10)]
    assert verdicts(*nodes) == {"crew": "Agree", "a": "Agree", "b": "Agree"}
    assert entries(record(*nodes)) == [("crew", "w", 10), ("a", "a", 100), ("b", "b", 200)]
    # Of the one that is wrong below it, it takes in what was reported, or what was used.
    for total in (310, 260):
        nodes = [*crew(total, 50, 200), model("own", "w", 10)]
        assert verdicts(*nodes) == {"crew": "Agree", "a": "TokenMismatch", "b": "Agree"}
    counted = [*crew(310, 100, 200, calls=3), model("own", "w", 10)]
    assert verdicts(*counted)["crew"] == "Agree"


def test_totals_take_in_agents_at_every_depth() -> None:
    nodes = [agent("r", "root", None, 317), model("top", "r", 7), *crew(310, 100, 200)]
    nodes[2] = agent("w", "crew", "r", 310)
    nodes.append(model("own", "w", 10))
    assert set(verdicts(*nodes).values()) == {"Agree"}
    assert entries(record(*nodes))[:2] == [("root", "r", 7), ("crew", "w", 10)]


def test_a_total_that_takes_in_silent_agents_reports_for_them() -> None:
    nodes = [*crew(310, None, None), model("own", "w", 10)]
    assert verdicts(*nodes) == {"crew": "Agree"}
    assert sorted(turns(record(*nodes))) == [
        ("crew", "w", 10),
        ("crew", "w", 100),
        ("crew", "w", 200),
    ]


@pytest.mark.parametrize(("outer", "inner"), [(30, None), (None, 30), (30, 30)])
def test_an_agent_that_is_recorded_twice_reports_once(outer: int | None, inner: int | None) -> None:
    nodes = [agent("o", "a", None, outer), agent("i", "a", "o", inner), model("c", "i", 30)]
    assert verdicts(*nodes) == {"a": "Agree"}


# What is not known.


def test_an_executor_whose_client_is_not_instrumented_has_no_truth() -> None:
    found = record(agent("a", "a", None, 10), agent("b", "b", None, 20), model("c", "b", 20))
    assert found.traced == ("b",)
    assert verdicts(agent("a", "a", None, 10), agent("b", "b", None, 20), model("c", "b", 20)) == {
        "a": "NoTruth",
        "b": "Agree",
    }


def test_an_executor_that_neither_reports_nor_calls_made_no_call() -> None:
    nodes = [agent("r", "router"), agent("b", "b", None, 20), model("c", "b", 20)]
    assert verdicts(*nodes) == {"router": "NoModelCall", "b": "Agree"}


def test_without_any_model_span_nothing_is_known_of_anyone() -> None:
    found = record(agent("r", "router"), agent("b", "b", None, 20))
    assert found.traced == ()
    assert strict.reconcile(found).outcome == "PENDING"


def test_nothing_is_there_to_compare_where_nobody_reports() -> None:
    assert workflow_record([]) is None
    assert workflow_record([agent("a", "a"), model("c", "a", 10)]) is None
    assert workflow_record([SpanNode(id="a", kind="agent", usage=Usage())]) is None


@pytest.mark.parametrize("said", [{"calls": 2}, {"finish_reason": "stop"}, {"total": 0}])
def test_whatever_is_reported_is_there_to_compare(said: dict[str, Any]) -> None:
    assert record(agent("a", "a", **said), model("c", "a", 10)).ledger


def test_failures_stay_with_whom_they_happened() -> None:
    found = record(
        executor("e", "e", error="Boom: outer"),
        agent("a", "a", "e", error="Boom"),
        executor("f", "custom", error="Broke"),
        model("c", "f", error="timeout"),
        agent("b", "b", None, 1),
    )
    assert [(e.executor, e.error) for e in found.ledger] == [
        ("e", "Boom"),
        ("custom", "Broke"),
        ("b", None),
    ]
    assert [(t.executor, t.error) for t in found.turns] == [("custom", "timeout")]


def test_usage_summed_over_a_session_is_too_much() -> None:
    """Each invocation reports all of the session so far: 100k, 200k, 300k for 100k each."""
    nodes = []
    for n in (1, 2, 3):
        nodes += [agent(f"a{n}", "a", None, 100_000 * n), model(f"c{n}", f"a{n}", 100_000)]
    judged = strict.reconcile(record(*nodes))
    (item,) = judged.executors
    assert (item.verdict, item.ledger_tokens, item.truth_tokens) == ("OverReport", 600_000, 300_000)
    assert judged.outcome == "FAIL"


def test_the_last_calls_usage_alone_is_too_little() -> None:
    nodes = [agent("a", "a", None, 2569), model("c", "a", 2239), model("d", "a", 2569)]
    judged = strict.reconcile(record(*nodes))
    (item,) = judged.executors
    assert (item.verdict, item.ledger_tokens, item.truth_tokens) == ("TokenMismatch", 2569, 4808)


# Any arrangement.

IDS = st.sampled_from("abcdefgh")
COUNT = st.none() | st.integers(0, 1000)
KINDS: list[NodeKind] = ["agent", "model", "executor", "tool", "other"]
NODES = st.lists(
    st.builds(
        SpanNode,
        id=IDS,
        parent_id=st.none() | IDS,
        name=st.none() | st.text(max_size=2),
        kind=st.sampled_from(KINDS),
        executor=st.none() | st.sampled_from(["x", "y", ""]),
        usage=st.none() | st.builds(Usage, input=COUNT, output=COUNT, total=COUNT, cached=COUNT),
        finish_reason=st.none() | st.sampled_from(["stop", "length"]),
        calls=COUNT,
        derived=st.booleans(),
        response_id=st.none() | st.sampled_from(["", "r1", "r2"]),
        error=st.none() | st.just("Boom"),
        started_at=st.none()
        | st.datetimes()
        | st.datetimes(timezones=st.sampled_from([UTC, timezone(timedelta(hours=14))])),
    ),
    max_size=14,
)


@given(NODES)
def test_no_arrangement_raises_and_no_model_span_is_lost(nodes: list[SpanNode]) -> None:
    calls = model_calls(nodes)
    recorded = sorted(id_ for call in calls for id_ in (call.node.id, *call.duplicates))
    assert recorded == sorted(n.id for n in nodes if n.kind == "model")
    found = workflow_record(nodes)
    if found is None:
        return
    assert [turn.span_id for turn in found.turns] == [call.node.id for call in calls]
    assert [turn.usage or Usage() for turn in found.turns] == [
        call.node.usage or Usage() for call in calls
    ]
    # A ledger entry is a span that was given, once; what it says is unchanged but for repeats.
    places = [(e.invocation, e.span_id) for e in found.ledger]
    given_ids = {n.id for n in nodes if n.kind in ("agent", "executor")}
    assert {span for _, span in places} <= given_ids
    assert len(places) <= len({(n.id, n.kind) for n in nodes})
    assert set(found.traced or ()) <= set(found.executors)
    assert {e.executor for e in found.ledger} | {t.executor for t in found.turns} <= set(
        found.executors
    )
    strict.reconcile(found)


@given(NODES, st.randoms())
def test_the_order_in_which_spans_are_given_is_irrelevant(
    nodes: list[SpanNode], random: Any
) -> None:
    """Where every span has a start of its own, and no id is used twice."""
    distinct = list({n.id: n for n in nodes}.values())
    timed = [
        SpanNode(
            **{
                **{f: getattr(n, f) for f in n.__struct_fields__},
                "started_at": NOON + timedelta(seconds=i),
            }
        )
        for i, n in enumerate(distinct)
    ]
    shuffled = timed[:]
    random.shuffle(shuffled)
    assert workflow_record(shuffled) == workflow_record(timed)
    assert model_calls(shuffled) == model_calls(timed)


@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from(KINDS), st.integers(1, 999)), max_size=30
    )
)
def test_tokens_arrive_exactly_once(shape: list[tuple[int, NodeKind, int]]) -> None:
    """In a tree where no span records another's call, the sum of turns is the sum of spans."""
    nodes = [agent("root", "root", None, 1)]
    inside: dict[str, bool] = {"root": False}
    for n, (parent, kind, total) in enumerate(shape):
        above = nodes[parent % len(nodes)].id
        if kind == "model" and inside[above]:
            continue
        inside[f"n{n}"] = kind == "model" or (kind == "other" and inside[above])
        nodes.append(node(f"n{n}", kind, above, total if kind == "model" else None))
    used = sum(n.usage.total or 0 for n in nodes if n.kind == "model" and n.usage)
    assert sum(total or 0 for _, _, total in turns(record(*nodes))) == used


# Size.


def wide(size: int) -> list[SpanNode]:
    nodes = [agent("w", "crew", None, size)]
    for n in range(size // 4):
        nodes += [
            executor(f"e{n}", f"e{n}", "w"),
            agent(f"a{n}", f"a{n}", f"e{n}", 4),
            model(f"c{n}", f"a{n}", 4, response_id=f"r{n}"),
            model(f"d{n}", f"c{n}", 4, response_id=f"r{n}"),
        ]
    return nodes


def deep(size: int) -> list[SpanNode]:
    kinds: list[NodeKind] = ["executor", "agent", "tool", "model"]
    return [
        node(str(n), kinds[n % 4], str(n - 1) if n else None, 4, executor=f"e{n}")
        for n in range(size)
    ]


def nested_models(size: int) -> list[SpanNode]:
    return [
        agent("0", "a", None, 4),
        *(model(str(n), str(n - 1), 4) for n in range(1, size)),
    ]


def circle(size: int) -> list[SpanNode]:
    return [agent(str(n), "a", str((n + 1) % size), 4) for n in range(size)]


@pytest.mark.parametrize("shape", [wide, deep, nested_models, circle])
def test_ten_thousand_spans_are_read_in_linear_time(shape: Any) -> None:
    assert record(*shape(10_000)).ledger
    assert growth(lambda size: record(*shape(size)), 400) < 2.2
