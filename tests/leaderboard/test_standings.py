"""Standings: what is shared, who ranks where, what is missing, and that order never matters."""

from __future__ import annotations

from typing import Any

import msgspec
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.leaderboard.runs import prepare
from benchmark_assets.leaderboard.standings import (
    compute_standings,
    holes,
    shared_units,
    top_failure,
)
from benchmark_assets.leaderboard.statistics import figures
from benchmark_assets.leaderboard.statistics.pass_rate import wilson_interval
from benchmark_assets.model.standings import Counts, Hole, SourceNote, Standings, Withheld
from benchmark_assets.model.verdict import RunRow
from tests.leaderboard.frames import entry, prepared, raw, run, runs


def standings_of(*rows: RunRow) -> Standings:
    contracts = sorted({row.contract for row in rows})
    return compute_standings(raw(rows), [entry(contract) for contract in contracts])


def board(**models: str) -> Standings:
    """Standings of models by their outcomes on tasks 0, 1, … of one contract."""
    return standings_of(
        *(row for model, signs in models.items() for row in runs(signs, model=model))
    )


def ranks(standings: Standings) -> list[tuple[str, int | None]]:
    return [(standing.model, standing.rank) for standing in standings.models]


@pytest.mark.parametrize(
    ("models", "expected"),
    [
        ({"a": "+++"}, [("a", 1)]),
        ({"a": "+--", "b": "++-"}, [("b", 1), ("a", 2)]),
        ({"a": "++-", "b": "-++", "c": "---"}, [("a", 1), ("b", 1), ("c", 3)]),
        ({"a": "+--", "b": "+++", "c": "-+-"}, [("b", 1), ("a", 2), ("c", 2)]),
        ({"a": "++", "b": "++", "c": "++"}, [("a", 1), ("b", 1), ("c", 1)]),
        ({"a": "--", "b": "--"}, [("a", 1), ("b", 1)]),
        (
            {"a": "+---", "b": "++--", "c": "++--", "d": "++--", "e": "----"},
            [("b", 1), ("c", 1), ("d", 1), ("a", 4), ("e", 5)],
        ),
    ],
)
def test_ties_share_the_better_rank(
    models: dict[str, str], expected: list[tuple[str, int | None]]
) -> None:
    assert ranks(board(**models)) == expected


def test_ties_are_exact() -> None:
    """1/3, 1/6 and 0 in any order have one mean; their float sums need not."""
    signs = {"1/3": "+--+--", "1/6": "+-----", "0": "------"}
    rows = [
        row
        for model, order in {"x": ("1/3", "1/6", "0"), "y": ("0", "1/3", "1/6")}.items()
        for contract, share in zip("abc", order, strict=True)
        for row in runs(signs[share], model=model, contract=contract)
    ]
    assert ranks(standings_of(*rows)) == [("x", 1), ("y", 1)]


def test_models_are_ranked_by_macro_over_what_they_share() -> None:
    """Skipping the hard tasks gains nothing: `a` is ranked on the two easy ones only."""
    found = board(a="++", b="++--")
    assert ranks(found) == [("a", 1), ("b", 1)]
    assert (found.shared_tasks, found.shared_contracts) == (2, 1)
    by_model = {standing.model: standing for standing in found.models}
    shared, own = by_model["b"].shared, by_model["b"].figures.pass_rate
    assert shared is not None
    assert (shared.macro, shared.counts) == (1.0, Counts(resolved=2))
    assert shared.interval == wilson_interval(2, 2)
    assert (own.macro, own.counts) == (0.5, Counts(resolved=2, unresolved=2))


def test_rank_follows_macro_and_not_micro() -> None:
    # x: 1/1 and 0/4, macro 1/2, micro 1/5; y: 0/1 and 2/4, macro 1/4, micro 2/5.
    rows = [
        *runs("+", model="x", contract="a"),
        *runs("----", model="x", contract="b"),
        *runs("-", model="y", contract="a"),
        *runs("++--", model="y", contract="b"),
    ]
    assert ranks(standings_of(*rows)) == [("x", 1), ("y", 2)]


@pytest.mark.parametrize("signs", ["?", "!", "??!!"])
def test_a_model_without_scored_runs_is_unranked_and_shrinks_nothing(signs: str) -> None:
    without = board(a="+-+", b="++-")
    found = board(a="+-+", b="++-", z=signs)
    assert found.models[:2] == without.models
    assert (found.shared_tasks, without.shared_tasks) == (3, 3)
    last = found.models[2]
    assert (last.model, last.rank, last.shared) == ("z", None, None)
    assert last.unranked == "no run of it was scored"
    assert last.figures.pass_rate.counts.total == len(signs)


def test_models_that_share_nothing_are_all_unranked() -> None:
    rows = [*runs("++", model="a", contract="x"), *runs("--", model="b", contract="y")]
    found = standings_of(*rows)
    assert ranks(found) == [("a", None), ("b", None)]
    assert {standing.unranked for standing in found.models} == {"the models share no task"}
    assert (found.shared_tasks, found.shared_contracts) == (0, 0)
    # Their own figures stand.
    assert [s.figures.pass_rate.macro for s in found.models] == [1.0, 0.0]


def test_two_models_that_share_something_a_third_has_not() -> None:
    """What is shared is shared by all: pairwise blocks would rank on different tasks."""
    rows = [
        *runs("++", model="a", contract="x"),
        *runs("++", model="b", contract="x"),
        *runs("++", model="c", contract="y"),
    ]
    assert ranks(standings_of(*rows)) == [("a", None), ("b", None), ("c", None)]


def test_the_same_task_name_under_another_contract_is_not_shared() -> None:
    rows = [run("+", model="a", contract="x"), run("+", model="b", contract="y")]
    assert shared_units(prepared(rows)) == set()


def test_a_task_whose_run_is_not_scored_is_not_shared() -> None:
    found = board(a="+++", b="+?!")
    assert found.shared_tasks == 1
    assert [s.shared.counts.scored for s in found.models if s.shared] == [1, 1]


def test_unscored_trials_of_a_shared_task_are_counted_in_the_block() -> None:
    rows = [*runs("+? -!", model="a"), *runs("+ -", model="b")]
    shared = standings_of(*rows).models[0].shared
    assert shared is not None
    assert shared.counts == Counts(resolved=1, unresolved=1, unchecked=1, error=1)
    assert (shared.macro, shared.trials) == (0.5, 1)


def test_unchecked_and_error_are_counted_and_change_no_rate() -> None:
    noise = [*runs("?!?!", model="a", contract="c"), *runs("!", model="b", contract="c")]
    clean = [*runs("+-", model="a", contract="d"), *runs("++", model="b", contract="d")]
    without, found = standings_of(*clean), standings_of(*clean, *noise)
    assert ranks(found) == ranks(without) == [("b", 1), ("a", 2)]
    assert found.counts == Counts(resolved=3, unresolved=1, unchecked=2, error=3)
    for one, other in zip(found.models, without.models, strict=True):
        assert one.figures.pass_rate.macro == other.figures.pass_rate.macro
        assert one.figures.pass_rate.micro == other.figures.pass_rate.micro
        assert one.shared == other.shared


class TestRunsWithoutATask:
    """Nothing says that two of them attempted the same thing."""

    def test_each_is_its_own_task(self) -> None:
        rows = [run(sign, task=None, trace_id=str(n)) for n, sign in enumerate("++-")]
        rate = figures(prepared(rows)).pass_rate
        assert (rate.tasks, rate.trials) == (3, 1)
        assert rate.interval == wilson_interval(2, 3)

    @pytest.mark.parametrize("differs", ["model", "date", "trace_id"])
    def test_sources_may_use_an_id_again(self, differs: str) -> None:
        rows = [run("+", task=None), run("+", task=None, **{differs: "2026-03-02"})]
        assert prepared(rows)["unit"].nunique() == 2

    def test_none_is_shared_though_models_use_the_same_ids(self) -> None:
        rows = [run("+", model=model, task=None, trace_id="1") for model in "ab"]
        found = standings_of(*rows)
        assert ranks(found) == [("a", None), ("b", None)]
        assert {standing.unranked for standing in found.models} == {"the models share no task"}

    def test_one_model_alone_is_ranked(self) -> None:
        assert ranks(standings_of(run("+", task=None))) == [("m", 1)]

    def test_it_can_be_missing_in_no_other_model(self) -> None:
        rows = [
            run("+", model="a", task="t"),
            run("+", model="b", task="t"),
            run("+", model="a", task=None, trace_id="only a"),
        ]
        assert standings_of(*rows).holes == ()

    def test_an_empty_name_is_a_name(self) -> None:
        rows = [run("+", task="", trace_id="1"), run("-", task="", trace_id="2")]
        rate = figures(prepared(rows)).pass_rate
        assert (rate.tasks, rate.trials) == (1, 2)

    def test_a_task_named_like_the_mark_for_none_is_no_other_run(self) -> None:
        rows = [run("+", task="None"), run("+", task="nan"), run("+", task=None)]
        assert prepared(rows)["unit"].nunique() == 3


def test_units_do_not_run_together() -> None:
    rows = [run("+", contract="a", task="b c"), run("+", contract="a b", task="c")]
    assert prepared(rows)["unit"].nunique() == 2


def test_holes() -> None:
    rows = [
        *runs("+-+-", model="a", contract="x"),
        *runs("+-", model="b", contract="x"),
        *runs("+", model="b", contract="y"),
        *runs("!!", model="c", contract="x"),
    ]
    assert standings_of(*rows).holes == (
        Hole(model="b", contract="x", tasks=2, whole_contract=False),
        Hole(model="c", contract="x", tasks=4, whole_contract=True),
        Hole(model="a", contract="y", tasks=1, whole_contract=True),
        Hole(model="c", contract="y", tasks=1, whole_contract=True),
    )


def test_a_task_of_which_only_an_error_is_there_is_a_hole() -> None:
    found = board(a="++", b="+!").holes
    assert found == (Hole(model="b", contract="c", tasks=1, whole_contract=False),)


def test_what_nobody_was_scored_on_is_no_hole() -> None:
    assert holes(prepared([*runs("?!", model="a"), *runs("!", model="b")])) == []


def test_group_and_cell_figures_are_those_of_their_runs() -> None:
    rows = [
        *runs("+-", model="a", contract="x", group="g"),
        *runs("++-", model="a", contract="y", group="g"),
        *runs("-", model="a", contract="z", group="h"),
        *runs("+", model="b", contract="x", group="g"),
    ]
    found = standings_of(*rows)
    assert [(g.group, g.model) for g in found.groups] == [("g", "a"), ("g", "b"), ("h", "a")]
    # Macro over the group's two contracts: (1/2 + 2/3) / 2.
    group = found.groups[0].figures.pass_rate
    assert group.macro == pytest.approx(7 / 12)
    assert (group.micro, group.counts) == (0.6, Counts(resolved=3, unresolved=2))
    assert [(c.contract, c.model, c.figures.pass_rate.macro) for c in found.cells] == [
        ("x", "a", 0.5),
        ("x", "b", 1.0),
        ("y", "a", 2 / 3),
        ("z", "a", 0.0),
    ]
    for cell in found.cells:
        part = [row for row in rows if (row.contract, row.model) == (cell.contract, cell.model)]
        assert cell.figures == figures(prepared(part))


def test_dates_span_the_runs() -> None:
    rows = [
        run("+", model="a", date="2026-03-02", trace_id="1"),
        run("?", model="a", date="2026-02-28", trace_id="2"),
        run("+", model="b", date="2026-03-09", trace_id="3"),
    ]
    found = standings_of(*rows)
    assert (found.first_date, found.last_date) == ("2026-02-28", "2026-03-09")
    assert [(c.first_date, c.last_date) for c in found.cells] == [
        ("2026-02-28", "2026-03-02"),
        ("2026-03-09", "2026-03-09"),
    ]


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [
        ([], None),
        ([("+", None)], None),
        ([("?", "nothing: was checked"), ("!", "plugin x raised E")], None),
        ([("-", "final_output: no 327")], "final_output (1 of 1)"),
        ([("-", "b: x"), ("-", "a: y"), ("-", "b: z: w")], "b (2 of 3)"),
        ([("-", "b: x"), ("-", "a: y")], "a (1 of 2)"),
        ([("-", "a: x"), ("+", None), ("!", "b: y"), ("!", "b: y")], "a (1 of 1)"),
    ],
)
def test_top_failure(reasons: list[tuple[str, str | None]], expected: str | None) -> None:
    rows = [
        run(sign, reason=reason, trace_id=str(n), task=str(n))
        for n, (sign, reason) in enumerate(reasons)
    ]
    assert top_failure(prepared(rows)) == expected
    if rows:
        assert [cell.top_failure for cell in standings_of(*rows).cells] == [expected]


def test_what_is_given_is_passed_on() -> None:
    withheld = [Withheld(model="m", contract="c", reason="stale")]
    notes = [SourceNote(kind="warning", text="a file is gone")]
    found = compute_standings(
        raw([]),
        [entry("z"), entry("a", judged=7)],
        withheld=withheld,
        notes=notes,
        snapshots=9,
        unmatched=2,
        engine="3",
    )
    assert [item.contract for item in found.contracts] == ["a", "z"]
    assert (found.withheld, found.notes) == (tuple(withheld), tuple(notes))
    assert (found.snapshots, found.unmatched, found.engine, found.edition) == (9, 2, "3", "")


def test_no_runs_at_all() -> None:
    found = compute_standings(raw([]), [])
    assert found == Standings(models=(), groups=(), cells=(), contracts=())
    assert found.counts.total == 0


NAMES = st.sampled_from(["a", "b", "gpt-4o", "openai/gpt-4o"])
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "outcome": st.sampled_from("+++--?!"),
            "model": NAMES,
            "contract": st.sampled_from(["x", "y", "z"]),
            "task": st.none() | st.sampled_from(["0", "1"]),
            "date": st.sampled_from(["2026-03-01", "2026-03-02"]),
            "reason": st.none() | st.sampled_from(["p: no", "q: no", "q: never"]),
            "cost_usd": st.none() | st.floats(0, 10, allow_subnormal=False),
            "cost_estimated": st.booleans(),
            "duration_ms": st.none() | st.integers(0, 10**6),
            "input_tokens": st.none() | st.integers(0, 10**6),
            "reasoning_tokens": st.none() | st.integers(0, 10**6),
        }
    ),
    max_size=14,
)


def encoded(rows: list[tuple[int, dict[str, Any]]]) -> bytes:
    frame = raw(run(trace_id=str(number), **fields) for number, fields in rows)
    # `to_table` sorts; put the rows in the order that was asked for.
    order = {str(number): place for place, (number, _) in enumerate(rows)}
    frame = frame.sort_values("trace_id", key=lambda ids: ids.map(order), ignore_index=True)
    assert list(frame["trace_id"]) == [str(number) for number, _ in rows]
    return msgspec.json.encode(compute_standings(frame, [entry("x"), entry("y")]))


@settings(deadline=None, max_examples=25)
@given(ROWS.flatmap(lambda rows: st.tuples(st.just(rows), st.permutations(list(enumerate(rows))))))
def test_order_of_rows_never_changes_the_bytes(case: tuple[Any, Any]) -> None:
    rows, shuffled = case
    assert encoded(shuffled) == encoded(list(enumerate(rows)))


@settings(deadline=None, max_examples=25)
@given(ROWS)
def test_counts_add_up(fields: list[dict[str, Any]]) -> None:
    rows = [run(trace_id=str(n), **values) for n, values in enumerate(fields)]
    found = standings_of(*rows)
    assert found.counts.total == len(rows)
    for parts in (found.models, found.groups, found.cells):
        assert sum(part.figures.pass_rate.counts.total for part in parts) == len(rows)
        assert sum(part.figures.cost_usd.known for part in parts) == sum(
            row.cost_usd is not None for row in rows
        )


@settings(deadline=None, max_examples=25)
@given(ROWS)
def test_ranks_are_those_of_the_shared_rates(fields: list[dict[str, Any]]) -> None:
    found = standings_of(*(run(trace_id=str(n), **values) for n, values in enumerate(fields)))
    ranked = [s for s in found.models if s.rank is not None]
    assert found.models[: len(ranked)] == tuple(ranked)
    for standing in found.models:
        assert (standing.rank is None) == (standing.shared is None)
        assert (standing.rank is None) == (standing.unranked is not None)
    for one in ranked:
        assert one.shared is not None
        assert one.shared.macro is not None
        assert one.shared.tasks == found.shared_tasks
        better = [s for s in ranked if s.shared and (s.shared.macro or 0.0) > one.shared.macro]
        assert one.rank == 1 + len(better)


def test_the_index_of_the_frame_does_not_matter() -> None:
    """Frames that were concatenated or filtered have repeated or missing labels."""
    rows = [*runs("+-+", model="a", cost_usd=0.1), *runs("++-", model="b", cost_usd=0.2)]
    frame = raw(rows)
    plain = compute_standings(frame, [])
    for index in ([0] * 6, [5, 3, 9, 1, 0, 7]):
        other = frame.copy()
        other.index = pd.Index(index)
        assert compute_standings(other, []) == plain
        assert prepare(other)["unit"].tolist() == prepare(frame)["unit"].tolist()
