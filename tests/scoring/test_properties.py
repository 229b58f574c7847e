"""What holds for every trace: what cannot matter does not, and looser rules are looser."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.adapters.contract_files import dump_contract, parse_contract
from benchmark_assets.adapters.harness_files import load_harnesses
from benchmark_assets.model.verdict import Verdict
from benchmark_assets.scoring.evaluate import ContractJudge, evaluate
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.plugins import PLUGINS
from tests.scoring.build import HEADER, contract, trace
from tests.scoring.values import (
    CONTENTS,
    HOSTILE,
    PATHS,
    harness_calls,
    json_values,
    texts,
    tool_calls,
)

HARNESSES = load_harnesses().profiles
NAMES = ["look", "book", "pay", "cancel_all"]
TOOLS = {profile.name: [tool for tool in profile.tools if "*" not in tool] for profile in HARNESSES}
STRICT = {"id": 1, "a": {"any": True}}

calls = tool_calls(NAMES)
paths = st.lists(st.lists(st.sampled_from(NAMES), max_size=3), min_size=1, max_size=3)
failures = st.sampled_from(
    [{"status": "error"}, {"error": "down"}, {"status": "error", "error": ""}]
)
ends = st.fixed_dictionaries(
    {},
    optional={
        "ended": st.sampled_from(["stop", "max_steps"]),
        "ended_normally": st.booleans(),
        "error": st.just("boom"),
        "final_answer": texts,
    },
)
call_rules = st.lists(
    st.fixed_dictionaries(
        {"tool": st.sampled_from(["book", "pay", "l*"])},
        optional={
            "args": st.sampled_from([{}, STRICT, {"id": {"any": True}}]),
            "args_mode": st.sampled_from(["exact", "subset", "keys", "ignore"]),
            "min": st.integers(0, 2),
            "max": st.integers(2, 3),
        },
    ),
    max_size=3,
)

# Every section and every matcher at once.
EVERYTHING: dict[str, Any] = {
    "tools": {"required": ["book"], "optional": ["look"], "forbidden": ["cancel_*"]},
    "trajectory": {
        "allowed_paths": [["look", "book"], ["book", "pay"]],
        "order": "in_order",
        "writes": ["book", "pay", "cancel_*"],
        "extra": "reads_only",
        "calls": [
            {"tool": "*", "args": {"a": matcher}, "args_mode": mode, "min": 0, "max": 1}
            for mode in ("exact", "subset", "keys", "ignore")
            for matcher in (
                {"any": True},
                {"regex": "^a|1"},
                {"one_of": [1, "a", [], {}]},
                {"unordered": [{"any": True}, 1]},
                {"approx": 0.5, "tol": 1},
                {"contains": {"a": {"any": True}}},
                {"contains": ["a", {"any": True}]},
                {"sha256": "0" * 16},
                {"ignore_case": "A"},
                {"literal": {"any": 1}},
                {"a": {"id": 1}},
                [1, {"approx": 1}],
                None,
            )
        ],
    },
    "final": {
        "contains": ["a"],
        "not_contains": ["1,000"],
        "schema": {"type": "object", "properties": {"a": {"type": "integer"}}},
        "scope": "conversation",
    },
    "ends_with": ["stop"],
    "skills": {"required": ["binding"], "optional": ["page_*"]},
    "knowledge": ["docs/**", "*.md", "[a-"],
    "unrelated_reads": "fail",
    "resources": {
        "api": [{"name": "hrdb"}],
        "javaservice": [{"name": "Mailer"}],
        "db": [{"name": "hrdb"}],
        "design_tokens": [{"name": "Main"}],
        "page": [
            {
                "name": "Main",
                "variable": [{"name": "svcA"}, {"name": "own", "path": "/abs/own.json"}],
                "widget": [{"name": "tblA"}],
                "javascript": [{"name": "onShow"}],
            }
        ],
    },
    "input_context": [
        {"resource": "api.hrdb.getVacation", "terms": ["a", "id"]},
        {"resource": "db.hrdb"},
        {"resource": "page.Main.variable.svcA"},
        {"resource": "page.Main.widget"},
    ],
    "output": [
        {"resource": resource, "operation": operation, "match": match}
        for resource in (
            "page.Main",
            "javaservice.Mailer",
            "page.Main.variable.svcA",
            "page.Main.variable.own",
            "page.Main.variable",
            "page.Main.widget.tblA.qualifier",
            "page.Main.javascript",
        )
        for operation, match in (
            ("CREATE", {"operation": "list", "a.b": {"regex": "a"}}),
            ("UPDATE", ["list", 1, None, {"approx": 10}, {"a": 1}]),
            ("DELETE", {}),
        )
    ],
    "budget": {
        "max_steps": 1,
        "max_tool_calls": 2,
        "max_tokens": 3,
        "max_cost_usd": 0.5,
        "max_duration_s": 1,
        "max_retries": 0,
    },
}


def outcomes(verdict: Verdict) -> list[tuple[str, str, str]]:
    """(plugin, check, outcome) of every check."""
    return [
        (result.plugin, check.name, check.outcome)
        for result in verdict.plugins
        for check in result.checks
    ]


def reordered(value: Any) -> Any:
    """The same JSON data with the keys of every object the other way round."""
    if isinstance(value, dict):
        return {key: reordered(value[key]) for key in reversed(list(value))}
    return [reordered(item) for item in value] if isinstance(value, list) else value


def inserted(items: list[Any], item: Any, place: int) -> list[Any]:
    place %= len(items) + 1
    return [*items[:place], item, *items[place:]]


@given(calls, ends, json_values() | texts, json_values())
def test_no_trace_makes_a_plugin_raise(
    found: list[dict[str, Any]], end: dict[str, Any], answer: Any, metadata: Any
) -> None:
    fields = {**end, "tool_calls": found, "metadata": {"k": metadata}}
    fields["final_answer"] = answer if isinstance(answer, str) else repr(answer)
    snapshot, demanding = trace(**fields), contract(**EVERYTHING)
    verdict = evaluate(snapshot, demanding)
    assert [result.error for result in verdict.plugins] == [None] * len(PLUGINS)
    assert evaluate(snapshot, demanding) == verdict


@pytest.mark.parametrize("harness", TOOLS)
@given(data=st.data(), root=json_values() | st.just("/code/shop"))
def test_no_call_of_a_harness_makes_a_plugin_raise(
    harness: str, data: st.DataObject, root: Any
) -> None:
    found = data.draw(harness_calls([*TOOLS[harness], "zap"]))
    snapshot = trace(tool_calls=found, metadata={"cwd": root, "project_root": root})
    verdict = evaluate(snapshot, contract(harness=harness, **EVERYTHING), HARNESSES)
    assert [result.error for result in verdict.plugins] == [None] * len(PLUGINS)
    assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict


stated = st.lists(
    st.fixed_dictionaries(
        {
            "path": st.sampled_from([*PATHS, *(v for v in HOSTILE if isinstance(v, str))]),
            "operation": st.sampled_from(["read", "create", "update", "write", "delete", "move"]),
        },
        optional={
            "status": st.sampled_from(["ok", "error"]),
            "call": st.integers(-2, 5),
            "moved_to": st.sampled_from(PATHS),
            "content": st.sampled_from(CONTENTS) | texts,
            "edits": st.lists(st.fixed_dictionaries({"old": texts, "new": texts}), max_size=2),
        },
    ),
    max_size=6,
)


@given(calls, stated)
def test_nothing_that_a_trace_states_makes_a_plugin_raise(found: list[Any], files: Any) -> None:
    loads = [{"name": "binding", "call": 9}, {"name": "charts", "call": -1, "status": "error"}]
    snapshot = trace(tool_calls=found, files=files, skills=loads)
    verdict = evaluate(snapshot, contract(**EVERYTHING), HARNESSES)
    assert [result.error for result in verdict.plugins] == [None] * len(PLUGINS)
    wheres = [check.where for result in verdict.plugins for check in result.checks]
    assert all(0 <= w.call < len(found) for w in wheres if w is not None and w.call is not None)


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20])
def test_no_hostile_argument_makes_a_plugin_raise(value: Any) -> None:
    keys = ("path", "file_path", "files", "content", "skill", "skill_name", "command", "edits")
    forms = (value, dict.fromkeys(keys, value), [value], {key: [value] for key in keys})
    for harness, tools in TOOLS.items():
        judge = ContractJudge(contract(harness=harness, **EVERYTHING))
        for form in forms:
            made = [
                {"name": tool, "arguments": form, "result": value, "status": "ok"} for tool in tools
            ]
            verdict = judge.evaluate(Evidence(trace(tool_calls=made), HARNESSES))
            assert [result.error for result in verdict.plugins] == [None] * len(PLUGINS)
            assert msgspec.json.decode(msgspec.json.encode(verdict), type=Verdict) == verdict


@given(calls, ends, call_rules, st.integers(0), json_values())
def test_an_unrelated_read_never_changes_a_reads_only_outcome(
    found: list[dict[str, Any]],
    end: dict[str, Any],
    rules: list[dict[str, Any]],
    place: int,
    arguments: Any,
) -> None:
    demanding = contract(
        tools={"required": ["book"], "forbidden": ["pay"]},
        trajectory={"calls": rules, "writes": ["book", "pay", "cancel_*"], "extra": "reads_only"},
    )
    read = {"name": "unrelated", "arguments": arguments, "status": "ok"}
    before = evaluate(trace(tool_calls=found, **end), demanding)
    after = evaluate(trace(tool_calls=inserted(found, read, place), **end), demanding)
    assert after.outcome == before.outcome
    kept = ("tool_calls", "trajectory")
    assert [c for c in outcomes(after) if c[0] in kept and c[2] != "info"] == [
        c for c in outcomes(before) if c[0] in kept and c[2] != "info"
    ]


@pytest.mark.parametrize("order", ["in_order", "any_order"])
@given(found=calls, legal=paths, place=st.integers(0))
def test_an_unrelated_call_never_changes_whether_a_loose_path_fits(
    order: str, found: list[dict[str, Any]], legal: list[list[str]], place: int
) -> None:
    demanding = contract(trajectory={"allowed_paths": legal, "order": order})
    extended = inserted(found, {"name": "unrelated", "status": "ok"}, place)
    before, after = (evaluate(trace(tool_calls=some), demanding) for some in (found, extended))
    assert after.outcome == before.outcome


@given(calls, ends, st.integers(0), json_values(), st.sampled_from(["ok", "error", None]))
def test_a_forbidden_call_always_fails(
    found: list[dict[str, Any]], end: dict[str, Any], place: int, arguments: Any, status: Any
) -> None:
    demanding = contract(
        tools={"forbidden": ["delete_*"]}, trace_health={"recovered_errors": "allow"}
    )
    call = {"name": "delete_order", "arguments": arguments, "status": status}
    verdict = evaluate(trace(tool_calls=inserted(found, call, place), **end), demanding)
    assert verdict.outcome == "unresolved"
    assert ("tool_calls", "forbidden: delete_*", "failed") in outcomes(verdict)


# What harness tools do, under the sections that look at it.

DEMANDS: dict[str, Any] = {
    "harness": "app-builder",
    **{key: EVERYTHING[key] for key in ("skills", "resources", "output")},
    "knowledge": ["docs/**"],
    "input_context": [
        {"resource": "api.hrdb.getVacation", "terms": ["dataset="]},
        {"resource": "page.Main.variable.svcA"},
        {"resource": "page.Main.widget"},
    ],
}
sane_calls = harness_calls(TOOLS["app-builder"], sane=True)
roots = st.sampled_from([{}, {"project_root": "/code/shop"}])


def scored(verdict: Verdict, *plugins: str) -> list[tuple[str, str, str]]:
    return [c for c in outcomes(verdict) if c[0] in plugins and c[2] != "info"]


@given(
    sane_calls,
    roots,
    st.integers(0),
    st.sampled_from(["notes.txt", "src/main/webapp/pages/Main/x.html", "../a", "/etc/hosts", "~/x"])
    | texts.map("notes/{}.txt".format),
)
def test_an_unrelated_read_never_changes_an_outcome_under_report(
    found: list[Any], root: dict[str, Any], place: int, path: str
) -> None:
    read = {"name": "read_files", "arguments": {"paths": [path]}, "result": "-", "status": "ok"}
    before, after = (
        evaluate(trace(tool_calls=some, metadata=root), contract(**DEMANDS), HARNESSES)
        for some in (found, inserted(found, read, place))
    )
    assert after.outcome == before.outcome
    judging = ("skills_loaded", "input_context", "output")
    assert scored(after, *judging) == scored(before, *judging)


@given(
    sane_calls,
    roots,
    st.integers(0),
    st.sampled_from(["create_file", "write_file", "edit_file", "delete_file"]),
    st.sampled_from(["ok", None]),
)
def test_another_change_always_fails(
    found: list[Any], root: dict[str, Any], place: int, tool: str, status: str | None
) -> None:
    change = {"name": tool, "arguments": {"path": "other.txt", "content": "x"}, "status": status}
    calls = inserted(found, change, place)
    verdict = evaluate(trace(tool_calls=calls, metadata=root), contract(**DEMANDS), HARNESSES)
    assert verdict.outcome == "unresolved"
    assert ("output", "unrelated change: other.txt", "failed") in outcomes(verdict)


@given(sane_calls, st.integers(0), st.sampled_from(["ok", "error", None]))
def test_a_forbidden_call_always_fails_beside_any_other_demand(
    found: list[Any], place: int, status: str | None
) -> None:
    call = {"name": "delete_file", "arguments": {"path": PATHS[0]}, "status": status}
    demanding = contract(**DEMANDS, tools={"forbidden": ["delete_*"]})
    verdict = evaluate(trace(tool_calls=inserted(found, call, place)), demanding, HARNESSES)
    assert verdict.outcome == "unresolved"
    assert ("tool_calls", "forbidden: delete_*", "failed") in outcomes(verdict)


@given(sane_calls)
def test_calls_that_failed_change_and_read_nothing(found: list[Any]) -> None:
    failed = [{**call, "status": "error"} for call in found]
    verdict = evaluate(trace(tool_calls=failed), contract(**DEMANDS), HARNESSES)
    changed = [c for c in outcomes(verdict) if c[1].split(":")[0] in ("CREATE", "UPDATE", "DELETE")]
    assert {outcome for _, _, outcome in changed} == {"failed"}
    assert ("output", "no unrelated changes", "passed") in outcomes(verdict)
    assert ("input_context", "read: api.hrdb", "failed") in outcomes(verdict)
    assert ("skills_loaded", "required: binding", "failed") in outcomes(verdict)


AT = "2026-01-31T12:00:00Z"
generations = st.lists(
    st.fixed_dictionaries(
        {"started_at": st.just(AT), "ended_at": st.just(AT)},
        optional={
            "model": st.sampled_from(["m1", "m2"]),
            "tokens": st.fixed_dictionaries({"input": st.integers(0, 9)}),
            "cost_usd": st.floats(0, 1),
        },
    ),
    max_size=4,
)
error_spans = st.lists(
    st.fixed_dictionaries(
        {"name": st.sampled_from(["chat", "search"]), "started_at": st.just(AT)},
        optional={"message": texts, "kind": st.just("GENERATION")},
    ),
    max_size=4,
)


@given(sane_calls, generations, error_spans, st.randoms(use_true_random=False))
def test_the_order_of_spans_of_equal_times_never_matters(
    found: list[Any], made: list[Any], failed: list[Any], random: Any
) -> None:
    demanding = contract(**DEMANDS, budget={"max_steps": 2, "max_tool_calls": 3})
    orders = []
    for _ in range(2):
        snapshot = trace(tool_calls=found, generations=made, error_spans=failed)
        verdict = evaluate(snapshot, demanding, HARNESSES)
        orders.append((verdict.outcome, verdict.score, outcomes(verdict)))
        made, failed = random.sample(made, len(made)), random.sample(failed, len(failed))
    assert orders[0] == orders[1]


# Contracts as they are written.

names = st.sampled_from(["hrdb", "a b", "x.y", "Straße", 'q"q', "1.10", "no", "2026-01-31", "{}"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from([0.5, 1e300]) | texts,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["p", "q.r", "no"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@st.composite
def contracts(draw: st.DrawFn) -> dict[str, Any]:
    """Contract data with any of the sections, whose references resolve."""
    page, part = draw(names), draw(st.sampled_from(["variable", "widget", "javascript"]))
    inside, kind, whole = (
        draw(names),
        draw(st.sampled_from(["api", "javaservice", "db"])),
        draw(names),
    )
    optional_path = st.fixed_dictionaries({}, optional={"path": names.map("p/{}.json".format)})
    resources = {
        kind: [{"name": whole, **draw(optional_path)}],
        "page": [{"name": page, part: [{"name": inside, **draw(optional_path)}]}],
    }
    references = st.sampled_from(
        [
            f"{kind}.{quoted(whole)}",
            f"{kind}.{quoted(whole)}.qualifier",
            f"page.{quoted(page)}",
            f"page.{quoted(page)}.{part}",
            f"page.{quoted(page)}.{part}.{quoted(inside)}.{quoted(inside)}",
        ]
    )
    some = st.lists(names, max_size=2)
    optional = {
        "skills": st.fixed_dictionaries({}, optional={"required": some, "optional": some}),
        "knowledge": some,
        "input_context": st.lists(
            st.fixed_dictionaries({"resource": references}, optional={"terms": some}), max_size=2
        ),
        "output": st.lists(
            st.fixed_dictionaries(
                {
                    "resource": references,
                    "operation": st.sampled_from(["CREATE", "UPDATE", "DELETE"]),
                },
                optional={"match": st.lists(values, max_size=2) | st.dictionaries(names, values)},
            ),
            max_size=2,
        ),
        "tools": st.fixed_dictionaries(
            {}, optional={"required": some, "optional": some, "require_success": st.booleans()}
        ),
        "budget": st.fixed_dictionaries(
            {"max_tokens": st.integers(0, 10**12)},
            optional={"max_cost_usd": st.floats(0, 1e9), "max_duration_s": st.integers(0, 9)},
        ),
        "harness": names,
        "plugins": st.dictionaries(names, values, max_size=2),
        "trace_health": st.sampled_from([{}, {"recovered_errors": "allow"}]),
    }
    sections = draw(st.fixed_dictionaries({}, optional=optional))
    return {"resources": resources, **sections}


@given(contracts())
def test_a_contract_that_is_written_is_read_again(sections: dict[str, Any]) -> None:
    wanted = contract(**sections)
    assert parse_contract(dump_contract({**HEADER, **sections}).encode(), "c.yaml", "x") == wanted
    # What is kept of a contract leads back to it, too.
    kept = wanted.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    again = parse_contract(dump_contract(kept).encode(), "c.yaml", "x")
    assert again == wanted
    assert again.content_hash == wanted.content_hash


@given(calls, ends, st.integers(0))
def test_another_successful_write_always_fails_reads_only(
    found: list[dict[str, Any]], end: dict[str, Any], place: int
) -> None:
    demanding = contract(trajectory={"writes": ["w*"], "extra": "reads_only"})
    write = {"name": "write", "status": "ok"}
    verdict = evaluate(trace(tool_calls=inserted(found, write, place), **end), demanding)
    assert verdict.outcome == "unresolved"


@given(calls, ends, call_rules)
def test_the_order_of_keys_in_a_trace_never_matters(
    found: list[dict[str, Any]], end: dict[str, Any], rules: list[dict[str, Any]]
) -> None:
    for demanding in (
        contract(**EVERYTHING),
        contract(trajectory={"calls": rules, "extra": "forbid"}),
    ):
        one = evaluate(trace(tool_calls=found, **end), demanding)
        assert evaluate(trace(tool_calls=reordered(found), **reordered(end)), demanding) == one


@given(calls, ends, call_rules)
def test_the_order_of_keys_in_a_contract_never_matters(
    found: list[dict[str, Any]], end: dict[str, Any], rules: list[dict[str, Any]]
) -> None:
    snapshot = trace(tool_calls=found, **end)
    for sections in (EVERYTHING, {"trajectory": {"calls": rules, "extra": "forbid"}}):
        one, other = contract(**sections), contract(**reordered(sections))
        assert other.content_hash == one.content_hash
        assert outcomes(evaluate(snapshot, other)) == outcomes(evaluate(snapshot, one))


@given(calls.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))), paths)
def test_any_order_does_not_look_at_the_order_of_calls(
    both: tuple[list[dict[str, Any]], list[dict[str, Any]]], legal: list[list[str]]
) -> None:
    demanding = contract(
        trajectory={"allowed_paths": legal, "order": "any_order", "extra": "forbid"}
    )
    one, other = (evaluate(trace(tool_calls=found), demanding) for found in both)
    assert outcomes(one) == outcomes(other)


@given(calls.flatmap(lambda found: st.tuples(st.just(found), st.permutations(found))), call_rules)
def test_call_rules_do_not_look_at_the_order_of_calls(
    both: tuple[list[dict[str, Any]], list[dict[str, Any]]], rules: list[dict[str, Any]]
) -> None:
    demanding = contract(trajectory={"calls": rules, "extra": "forbid"})
    one, other = (evaluate(trace(tool_calls=found), demanding) for found in both)
    assert outcomes(one) == outcomes(other)


# From strict to loose: what a stricter rule lets pass, a looser one does too.


def passing(found: list[dict[str, Any]], **trajectory: Any) -> bool:
    demanding = contract(trajectory=trajectory)
    checks = evaluate(trace(tool_calls=found), demanding).plugins[0]
    assert checks.plugin == "trajectory"
    return checks.passed is not False


@given(calls)
def test_args_modes_go_from_strict_to_loose(found: list[dict[str, Any]]) -> None:
    passed = [
        passing(found, calls=[{"tool": "*", "args": {"a": 1}, "args_mode": mode}])
        for mode in ("exact", "subset", "keys", "ignore")
    ]
    assert passed == sorted(passed)


@given(calls | st.lists(st.fixed_dictionaries({"name": st.sampled_from(NAMES)})), paths)
def test_orders_go_from_strict_to_loose(
    found: list[dict[str, Any]], legal: list[list[str]]
) -> None:
    passed = [
        passing(found, allowed_paths=legal, order=order)
        for order in ("exact", "in_order", "any_order")
    ]
    assert passed == sorted(passed)


@given(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5), st.integers(0), failures)
def test_an_exact_path_needs_every_step_to_have_succeeded(
    path: list[str], place: int, failure: dict[str, Any]
) -> None:
    made: list[dict[str, Any]] = [{"name": name, "status": "ok"} for name in path]
    assert passing(made, allowed_paths=[path], order="exact")
    made[place % len(made)] |= failure
    assert not passing(made, allowed_paths=[path], order="exact")


@given(calls, call_rules)
def test_extras_go_from_strict_to_loose(
    found: list[dict[str, Any]], rules: list[dict[str, Any]]
) -> None:
    rules = [*rules, {"tool": "look", "min": 0}]
    # Where anything is allowed besides, a rule must demand something; a max that no run here
    # exceeds demands as little.
    free = [{"max": 99, **rule} if rule.get("min") == 0 else rule for rule in rules]
    passed = [
        passing(found, calls=kept, writes=["book", "pay"], extra=extra)
        for extra, kept in (("forbid", rules), ("reads_only", rules), ("allow", free))
    ]
    assert passed == sorted(passed)


SEATS = st.fixed_dictionaries(
    {"name": st.sampled_from(["look", "book"])},
    optional={
        "arguments": st.fixed_dictionaries({"seat": st.integers(1, 2), "row": st.integers(1, 2)}),
        "status": st.sampled_from(["ok", "ok", "error"]),
        "error": st.just("taken"),
    },
)
SEAT_RULES = st.lists(
    st.fixed_dictionaries(
        {"tool": st.sampled_from(["book", "look", "*"])},
        optional={
            "args": st.sampled_from([{"seat": 1}, {"seat": 2}, {"row": 1}, {"seat": 1, "row": 2}]),
            "min": st.integers(0, 2),
            "max": st.integers(2, 3),
        },
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("extra", ["reads_only", "forbid"])
@given(
    both=st.lists(SEATS, max_size=5).flatmap(
        lambda found: st.tuples(st.just(found), st.permutations(found))
    ),
    rules=SEAT_RULES,
)
def test_rules_that_fit_the_same_calls_do_not_look_at_their_order_either(
    extra: str, both: tuple[list[Any], list[Any]], rules: list[dict[str, Any]]
) -> None:
    demanding = contract(trajectory={"calls": rules, "writes": ["book"], "extra": extra})
    one, other = (evaluate(trace(tool_calls=found), demanding) for found in both)
    assert outcomes(one) == outcomes(other)


@pytest.mark.parametrize("extra", ["reads_only", "forbid"])
@given(st.integers(0, 4), st.integers(0, 3), st.integers(0, 4) | st.none())
def test_a_rule_lists_as_many_calls_as_it_demands_or_allows(
    extra: str, times: int, least: int, most: int | None
) -> None:
    if most is not None and most < least:
        return
    rule = {"tool": "book", "min": least, **({} if most is None else {"max": most})}
    made = [{"name": "book", "status": "ok"}] * times
    passed = passing(made, calls=[rule], writes=["book"], extra=extra)
    assert passed == (least <= times <= (max(least, 1) if most is None else most))


@given(st.lists(SEATS, max_size=5), SEAT_RULES)
def test_where_anything_is_allowed_a_rule_lists_any_number(
    found: list[dict[str, Any]], rules: list[dict[str, Any]]
) -> None:
    kept = [{**rule, "min": max(1, rule.get("min", 1))} for rule in rules]
    assert passing(found, calls=kept) == all(
        passing(found, calls=[{**rule, "max": rule.get("max", 99)}]) for rule in kept
    )


@pytest.mark.parametrize("order", ["exact", "in_order", "any_order"])
@given(found=calls, legal=paths, another=st.lists(st.sampled_from(NAMES), max_size=3))
def test_another_legal_path_never_makes_a_run_fail(
    order: str, found: list[dict[str, Any]], legal: list[list[str]], another: list[str]
) -> None:
    if passing(found, allowed_paths=legal, order=order):
        assert passing(found, allowed_paths=[another, *legal], order=order)


@given(st.lists(st.sampled_from(NAMES), max_size=5), st.lists(st.sampled_from(NAMES), max_size=3))
def test_paths_fit_as_defined_on_lists_of_names(found: list[str], path: list[str]) -> None:
    made = [{"name": name} for name in found]
    remaining = iter(found)
    defined = {
        "exact": found == path,
        "in_order": all(name in remaining for name in path),
        "any_order": all(found.count(name) >= path.count(name) for name in path),
    }
    for order, fit in defined.items():
        assert passing(made, allowed_paths=[path], order=order) == fit
