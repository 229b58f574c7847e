"""What becomes of mutants: killed by which check, allowed by which words, cured by what."""

from __future__ import annotations

from typing import Any

import pytest

from benchmark_assets.model.mutation import Cure
from benchmark_assets.scoring.evaluate import evaluate
from benchmark_assets.scoring.mutation.cures import cured, expected_values
from benchmark_assets.scoring.mutation.operators import mutants
from benchmark_assets.scoring.mutation.testing import mutation_test
from tests.scoring.build import call, contract, trace
from tests.scoring.mutation.scenes import fates, report, scene

LOOK = call("get_order", {"id": "1842"})
PAY = call("refund_payment", {"id": "1842"})
PATH = {"allowed_paths": [["get_order", "refund_payment"]]}


def _one(found: dict[str, Any], part: str) -> Any:
    (what,) = [what for what in found if part in what]
    return found[what]


# The golden trace and the empty one.


def test_a_trace_that_does_not_pass_is_not_mutated() -> None:
    found = report([LOOK], trajectory=PATH)
    assert not found.golden.passed
    assert found.golden.reasons == (
        "trajectory: path: ended after 1 calls, refund_payment is missing",
    )
    assert found.mutants == ()
    assert not found.good()
    assert not found.good(0.0)


def test_an_empty_trace_must_not_pass() -> None:
    # Nothing is demanded: a run that does nothing is as good as any.
    found = report([LOOK], tools={"forbidden": ["charge_*"]})
    assert found.golden.passed
    assert found.empty.passed
    assert not found.good(0.0)
    assert not report([LOOK], tools={"required": ["get_order"]}).empty.passed


def test_of_a_trace_that_cannot_be_judged_it_is_said() -> None:
    found = report([LOOK], budget={"max_tokens": 5})
    assert found.golden.outcome == "error"
    assert found.mutants == ()


# Killed.


def test_what_kills_is_named() -> None:
    found = report([LOOK, PAY], trajectory=PATH, tools={"forbidden": ["charge_card"]})
    dropped = fates(found, "drop a call")
    assert {m.fate for m in dropped.values()} == {"killed"}
    assert _one(dropped, "get_order").killed_by == ("trajectory: path",)
    inserted = _one(fates(found, "insert a forbidden call"), "charge_card")
    assert inserted.killed_by == ("tool_calls: forbidden: charge_card", "trajectory: path")


def test_counts_and_rates() -> None:
    found = report([LOOK], tools={"required": ["get_order"]})
    counts = found.counts
    assert counts.total == len(found.mutants) == counts.killed + counts.survived + counts.allowed
    assert counts.rate == counts.killed / (counts.killed + counts.survived)
    assert counts.rate_of_all == counts.killed / counts.total
    assert found.good(counts.rate)
    assert not found.good(counts.rate + 0.01)
    assert not found.good()


# Allowed: what the contract says.


def allowed(operator: str, part: str, calls: list[dict[str, Any]], **sections: Any) -> str | None:
    """What allows one mutant; None if nothing does, in which case it must have survived."""
    found = _one(fates(report(calls, **sections), operator), part)
    assert found.fate in ("allowed", "survived")
    return found.freedom


NOTE = call("get_note", {"id": "7"})


@pytest.mark.parametrize(
    ("sections", "freedom"),
    [
        (
            {"tools": {"required": ["refund_payment"], "optional": ["get_*"]}},
            "tools.optional: get_*",
        ),
        ({"tools": {"required": ["refund_payment"]}}, None),
        (
            {"trajectory": {"calls": [{"tool": "refund_payment"}], "extra": "reads_only"}},
            "trajectory.extra: reads_only",
        ),
        (
            {"trajectory": {"calls": [{"tool": "refund_payment"}], "extra": "allow"}},
            "trajectory.extra: allow",
        ),
        ({"trajectory": {"calls": [{"tool": "refund_payment"}]}}, None),
        (
            {"trajectory": {"calls": [{"tool": "refund_payment"}], "max_extra_calls": 1}},
            "trajectory.max_extra_calls: 1",
        ),
        (
            {"trajectory": {"allowed_paths": [["refund_payment"]], "order": "in_order"}},
            "trajectory.order: in_order",
        ),
        (
            {
                "trajectory": {
                    "allowed_paths": [[{"tool": "get_note", "optional": True}, "refund_payment"]]
                }
            },
            "trajectory.allowed_paths: get_note is optional",
        ),
        (
            {"trajectory": {"allowed_paths": [["get_note", "refund_payment"], ["refund_payment"]]}},
            "another of trajectory.allowed_paths",
        ),
    ],
)
def test_a_call_may_be_missing_only_if_that_is_said(
    sections: dict[str, Any], freedom: str | None
) -> None:
    assert allowed("drop a call", "get_note", [NOTE, PAY], **sections) == freedom


@pytest.mark.parametrize(
    ("trajectory", "freedom"),
    [
        (
            {"allowed_paths": [["get_order", "get_note", "pay"]], "order": "unordered"},
            "trajectory.order: unordered",
        ),
        (
            {"allowed_paths": [["get_order", "get_note", "pay"], ["get_note", "get_order", "pay"]]},
            "another of trajectory.allowed_paths",
        ),
        ({"calls": [{"tool": "get_order"}, {"tool": "get_note"}, {"tool": "pay"}]}, None),
    ],
)
def test_calls_may_change_places_only_if_that_is_said(
    trajectory: dict[str, Any], freedom: str | None
) -> None:
    calls = [LOOK, NOTE, call("pay")]
    found = allowed("swap neighbours", "get_note before get_order", calls, trajectory=trajectory)
    assert found == freedom


def test_that_another_path_exists_allows_no_other_order() -> None:
    # Two writes, and one of them now comes before what it needs; the path still finds the other.
    calls = [call("create"), call("write", {"n": 1}), call("write", {"n": 2})]
    paths = [["create", "write"], ["other", "create", "write"]]
    rules = [{"tool": "write", "min": 2, "max": 4}]
    trajectory = {
        "allowed_paths": paths,
        "order": "in_order",
        "calls": rules,
        "extra": "reads_only",
    }
    assert allowed("swap neighbours", "write before create", calls, trajectory=trajectory) is None


@pytest.mark.parametrize(
    ("trajectory", "freedom"),
    [
        (
            {"allowed_paths": [[{"tool": "pay", "repeat": True}]]},
            "trajectory.allowed_paths: pay may be repeated",
        ),
        ({"calls": [{"tool": "pay", "max": 2}]}, "trajectory.calls[0]: min 1, max 2"),
        ({"calls": [{"tool": "pay"}]}, None),
        # What happens besides may only read.
        ({"allowed_paths": [["pay"]], "order": "in_order"}, None),
        ({"calls": [{"tool": "pay"}], "extra": "allow"}, "trajectory.extra: allow"),
    ],
)
def test_a_write_may_be_repeated_only_if_that_is_said(
    trajectory: dict[str, Any], freedom: str | None
) -> None:
    assert allowed("repeat a call", "pay", [call("pay")], trajectory=trajectory) == freedom


@pytest.mark.parametrize(
    ("rule", "freedom"),
    [
        ({"args": {"id": {"any": True}}}, 'trajectory.calls[0].args.id: {"any": true}'),
        (
            {"args": {"id": {"regex": "^[0-9]{4}$"}}},
            'trajectory.calls[0].args.id: {"regex": "^[0-9]{4}$"}',
        ),
        ({"args": ["id"], "args_mode": "keys"}, "trajectory.calls[0].args_mode: keys"),
        ({"args_mode": "ignore"}, "trajectory.calls[0].args_mode: ignore"),
        (
            {"args": {"other": {"any": True}}, "args_mode": "subset"},
            "trajectory.calls[0].args_mode: subset",
        ),
        # By default the others are free as well, and nobody decided it.
        ({"args": {"other": {"any": True}}}, None),
        ({}, None),
    ],
)
def test_an_argument_is_free_only_if_that_is_said(
    rule: dict[str, Any], freedom: str | None
) -> None:
    calls = [call("pay", {"id": "1842", "other": "x"})]
    trajectory = {"calls": [{"tool": "pay", **rule}]}
    assert allowed("change a value", "id:", calls, trajectory=trajectory) == freedom


def test_a_tool_that_may_be_called_may_not_write_anything() -> None:
    tools = {"required": ["get_order"], "optional": ["refund_payment", "get_note"]}
    calls = [LOOK, NOTE, PAY]
    assert allowed("change a value", "get_note", calls, tools=tools) == "tools.optional: get_note"
    assert allowed("change a value", "refund_payment", calls, tools=tools) is None


def test_a_failure_is_allowed_where_recovered_ones_are() -> None:
    sections = {
        "tools": {"required": ["refund_payment"], "optional": ["get_order"]},
        "trace_health": {"recovered_errors": "allow"},
    }
    found = report([LOOK, PAY], **sections)
    assert _one(fates(found, "fail a call"), "get_order").freedom == (
        "trace_health.recovered_errors: allow"
    )
    assert _one(fates(found, "fail a call"), "refund_payment").fate == "killed"


def test_a_call_that_failed_need_not_have_been_made_where_failures_are_allowed() -> None:
    off = {**LOOK, "status": "error", "error": "503"}
    sections = {"tools": {"required": ["get_order"]}, "trace_health": {"recovered_errors": "allow"}}
    found = report([off, {**LOOK, "status": "ok"}], **sections)
    reason = "trace_health.recovered_errors: allow"
    assert _one(fates(found, "drop a call"), "(call 1)").freedom == reason
    assert _one(fates(found, "drop a call"), "(call 2)").fate == "killed"
    assert _one(fates(found, "repeat a call"), "(call 1)").freedom == reason
    assert _one(fates(found, "change a value"), "(call 1)").freedom == reason
    assert _one(fates(found, "repeat a call"), "(call 2)").fate == "survived"


@pytest.mark.parametrize(
    ("sections", "freedom"),
    [
        # That reads may happen besides does not say that nobody need be asked.
        ({"trajectory": {"calls": [{"tool": "refund_payment"}], "extra": "reads_only"}}, None),
        (
            {
                "trajectory": {
                    "calls": [{"tool": "refund_payment"}],
                    "extra": "reads_only",
                    "ask_before_write": False,
                }
            },
            "trajectory.ask_before_write: false",
        ),
        (
            {"tools": {"required": ["refund_payment"], "optional": ["ask_user"]}},
            "tools.optional: ask_user",
        ),
        ({"tools": {"required": ["refund_payment"]}}, None),
    ],
)
def test_nobody_need_be_asked_only_if_that_is_said(
    sections: dict[str, Any], freedom: str | None
) -> None:
    calls = [call("ask_user", {"question": "Shall I?"}), PAY]
    fields = {"messages": [{"text": "Shall I?", "before_call": 1, "question": True}]}
    found = report(calls, fields, **sections)
    for operator in ("drop the question", "ask after the write"):
        (mutant,) = fates(found, operator).values()
        assert (mutant.freedom, mutant.fate) == (freedom, "allowed" if freedom else "survived")


def test_a_skill_may_be_missing_if_it_is_optional() -> None:
    skills = {"skills": [{"name": "notes"}, {"name": "pay"}]}
    found = report([PAY], skills, skills={"required": ["pay"], "optional": ["note*"]})
    skipped = fates(found, "skip a skill")
    assert _one(skipped, "notes").freedom == "skills.optional: note*"
    assert _one(skipped, "pay").fate == "killed"
    assert {m.fate for m in fates(found, "load another skill").values()} == {"killed"}


def test_any_end_is_allowed_where_any_is_wanted() -> None:
    found = report([PAY], {"ended": "stop"}, ends_with=["*"], tools=REQUIRED)
    stopped, crashed = fates(found, "end abnormally").values()
    assert (stopped.fate, stopped.freedom) == ("allowed", "ends_with: *")
    assert crashed.fate == "allowed"


def test_a_write_that_no_rule_is_about_is_not_allowed_by_how_often_one_is() -> None:
    rules = [{"tool": "refund_payment", "args": {"id": "1842"}, "max": 3}]
    found = report([PAY], trajectory={"calls": rules})
    assert _one(fates(found, "repeat a call"), "").freedom == "trajectory.calls[0]: min 1, max 3"
    again = _one(fates(found, "insert a write"), "refund_payment made again")
    assert (again.fate, again.freedom) == ("survived", None)


SCHEMA = {
    "type": "object",
    "required": ["status"],
    "properties": {
        "status": {"enum": ["ok", "off"]},
        "id": {"type": "string"},
        "lines": {
            "type": "array",
            "items": {"type": "object", "properties": {"n": {"type": "integer"}}},
        },
    },
}


def test_a_payload_is_as_free_as_its_schema_says() -> None:
    answer = '{"status": "ok", "id": "a", "lines": [{"n": 1, "m": 2}], "more": "b"}'
    found = report([], {"final_answer": answer}, final={"schema": SCHEMA})
    values = {what.split(": ")[1]: m for what, m in fates(found, "change a payload value").items()}
    assert values["status"].fate == "killed"
    assert values["id"].freedom == 'final.schema: id fits {"type": "string"}'
    assert values["lines[0].n"].freedom == 'final.schema: lines.0.n fits {"type": "integer"}'
    assert values["lines[0].m"].fate == "survived"
    assert values["more"].fate == "survived"
    dropped = fates(found, "drop a payload field")
    assert _one(dropped, "status").fate == "killed"
    assert _one(dropped, "id removed").freedom == "final.schema: id is not required"
    assert _one(dropped, ": more").cure == Cure(place="final.schema.required[]", value="more")


# Survived, and what would have helped.


def cure(
    operator: str, part: str, calls: list[dict[str, Any]], fields: Any = None, **sections: Any
) -> Cure | None:
    found = _one(fates(report(calls, fields, **sections), operator), part)
    assert found.fate == "survived"
    return found.cure


REQUIRED = {"required": ["refund_payment"]}


@pytest.mark.parametrize(
    ("operator", "part", "place", "value"),
    [
        ("drop a call", "get_order", "trajectory.calls[]", {"tool": "get_order"}),
        ("swap neighbours", "", "trajectory.before[]", ["get_order", "refund_payment"]),
        ("repeat a call", "refund", "trajectory.calls[]", {"tool": "refund_payment", "max": 1}),
        (
            "change a value",
            "get_order",
            "trajectory.calls[]",
            {"tool": "get_order", "args": {"id": "1842"}},
        ),
        (
            "drop an argument",
            "get_order",
            "trajectory.calls[]",
            {"tool": "get_order", "args": ["id"], "args_mode": "keys"},
        ),
        (
            "add an argument",
            "get_order",
            "trajectory.calls[]",
            {"tool": "get_order", "args": {"id": {"any": True}}, "args_mode": "exact"},
        ),
    ],
)
def test_the_check_that_is_missing_is_named(
    operator: str, part: str, place: str, value: Any
) -> None:
    assert cure(operator, part, [LOOK, PAY], tools=REQUIRED) == Cure(place=place, value=value)


def test_inserted_calls_are_kept_out_by_what_may_happen_besides() -> None:
    rules = [{"tool": "get_order"}, {"tool": "refund_payment"}]
    trajectory = {"calls": rules}
    assert cure("insert a write", "delete_everything", [LOOK, PAY], trajectory=trajectory) == Cure(
        place="trajectory.extra", value="reads_only"
    )
    assert cure("insert a read", "", [LOOK, PAY], trajectory=trajectory) == Cure(
        place="trajectory.extra", value="forbid"
    )
    some = {"calls": rules, "extra": "reads_only", "writes": ["refund_*"]}
    assert cure("insert a write", "delete_everything", [LOOK, PAY], trajectory=some) == Cure(
        place="trajectory.writes[]", value="delete_everything"
    )


def test_questions_skills_and_answers_have_their_own() -> None:
    asked = {"messages": [{"text": "Shall I?", "before_call": 1, "question": True}]}
    asking = Cure(place="trajectory.ask_before_write", value=True)
    assert cure("drop the question", "", [LOOK, PAY], asked, tools=REQUIRED) == asking
    assert cure("ask after the write", "", [LOOK, PAY], asked, tools=REQUIRED) == asking
    skill = {"skills": [{"name": "pay*"}]}
    assert cure("skip a skill", "", [PAY], skill, tools=REQUIRED) == Cure(
        place="skills.required", value=["pay[*]"]
    )
    said = {"final_answer": "All is paid."}
    assert cure("say nothing", "", [PAY], said, tools=REQUIRED) == Cure(
        place="final.contains[]", value="All is paid."
    )
    payload = {"final_answer": '{"a": 1, "b": 2}'}
    assert cure("say nothing", "", [PAY], payload, tools=REQUIRED) == Cure(
        place="final.schema", value={"type": "object", "required": ["a", "b"]}
    )
    assert cure("change a payload value", " a:", [PAY], payload, tools=REQUIRED) == Cure(
        place="final.schema",
        value={"type": "object", "required": ["a"], "properties": {"a": {"const": 1}}},
    )


def test_of_a_long_text_the_beginning_is_proposed_and_then_its_hash() -> None:
    text = "first line\n" + "x" * 100
    begin, digest = expected_values(text)
    assert begin == {"contains": "first line"}
    # SHA-256 of the text as JSON, as `sha256sum` gives it for the same bytes.
    assert digest == {"sha256": "5b532ef0b30c2c53"}
    assert list(expected_values({"any": 1})) == [{"literal": {"any": 1}}]


def test_a_cure_that_the_golden_trace_does_not_pass_is_not_proposed() -> None:
    # Two calls with different values: that every call has the one value is not true.
    calls = [call("get_order", {"id": "1"}), call("get_order", {"id": "2"}), PAY]
    found = fates(report(calls, tools=REQUIRED), "change a value")
    assert _one(found, "get_order (call 1)").cure == Cure(
        place="trajectory.calls[]", value={"tool": "get_order", "args": {"id": "1"}}
    )


def test_of_equal_calls_as_many_are_demanded_as_there_are() -> None:
    calls = [call("get_order", {"id": "1"}), call("get_order", {"id": "1"}), LOOK, PAY]
    found = fates(report(calls, tools=REQUIRED), "change a value")
    assert _one(found, "get_order (call 1)").cure == Cure(
        place="trajectory.calls[]", value={"tool": "get_order", "args": {"id": "1"}, "min": 2}
    )


def test_every_cure_does_what_it_is_said_to_do() -> None:
    """Independently of how it was found: with it the golden trace passes and the mutant does not."""
    of = trace(
        tool_calls=[LOOK, NOTE, PAY],
        messages=[{"text": "Shall I?", "before_call": 2, "question": True}],
        final_answer='{"status": "ok"}',
        ended_normally=True,
    )
    under = contract(tools={"required": ["get_order"]})
    found = mutation_test(under, of)
    lost = [mutant for mutant in found.mutants if mutant.fate == "survived"]
    traces = {(op.name, m.what): m.trace for op, m in mutants(scene(of, under))}
    assert len(lost) > 20
    for mutant in lost:
        assert mutant.cure is not None, mutant
        better = cured(under, mutant.cure)
        assert better is not None
        assert evaluate(of, better).outcome == "resolved"
        assert evaluate(traces[mutant.operator, mutant.what], better).outcome != "resolved"


def test_a_fixture_is_offered_what_fixtures_can_say() -> None:
    of = trace(tool_calls=[LOOK, PAY], skills=[{"name": "s"}], ended_normally=True)
    under = contract(trajectory={"calls": [{"tool": "get_order"}]})
    found = mutation_test(under, of, fixture=True)
    sections = {m.cure.place.split(".")[0] for m in found.mutants if m.cure is not None}
    assert sections == {"trajectory"}
    (skill,) = fates(found, "skip a skill").values()
    assert (skill.fate, skill.cure) == ("survived", None)


def test_contracts_that_cannot_have_a_check_are_not_cured() -> None:
    under = contract(tools={"required": ["a"]})
    assert cured(under, Cure(place="trajectory.max_extra_calls", value=0)) is None
    better = cured(under, Cure(place="tools.required[]", value="b"))
    assert better is not None
    assert better.tools is not None
    assert better.tools.required == ("a", "b")
    assert under.tools is not None
    assert under.tools.required == ("a",)
