"""The golden suite: what passes, and that everything else fails it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.model.golden_suite import CaseResult, SuiteResult
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError
from benchmark_assets.pipeline.golden import accept, grade_folder, read_fixtures, run_suite
from benchmark_assets.recorder import TraceRecorder
from benchmark_assets.recorder.redaction import Others, Texts
from tests.pipeline.golden_folders import (
    CHARGE,
    GET,
    PATH_HASH,
    REFUND,
    USER,
    Folders,
    recording,
    write,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "golden"


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def grade(folders: Folders, *only: str) -> SuiteResult:
    return run_suite(read_fixtures(folders.fixtures, folders.traces), folders.traces, only=only)


def only_case(suite: SuiteResult) -> CaseResult:
    (case,) = suite.cases
    return case


def results(suite: SuiteResult) -> list[tuple[str, int | None, str]]:
    return [(case.id, case.trial, case.result) for case in suite.cases]


# Passing and failing.


def test_a_candidate_that_fits_passes(folders: Folders) -> None:
    folders.fixture("refund")
    folders.trace("refund")
    suite = grade(folders)
    case = only_case(suite)
    assert suite.passed
    assert (case.id, case.trial, case.result) == ("refund", None, "PASS")
    assert (case.failures, case.path_hash) == ((), PATH_HASH)
    assert "path" in [check.name for check in case.checks]


def test_a_candidate_that_drifted_fails_with_every_failure(folders: Folders) -> None:
    folders.fixture("refund")
    folders.trace("refund", tools=[GET, CHARGE], final={"status": "HACKED", "refund_id": None})
    suite = grade(folders)
    case = only_case(suite)
    assert not suite.passed
    assert case.result == "FAIL"
    text = "\n".join(case.failures)
    assert "forbidden tool was called: charge_card (call 2)" in text
    assert "step 2 is charge_card, expected refund_payment" in text
    assert "'HACKED' is not one of ['ok', 'needs_human']" in text
    assert case.similarity == 0.5
    # sha256 of '["get_order","charge_card"]'
    assert case.path_hash == "7528f683a11927c8"


@pytest.mark.parametrize(
    ("setting", "result"), [(None, "FAIL"), ("fail", "FAIL"), ("allow", "PASS")]
)
def test_a_call_that_is_tried_again_passes_where_the_fixture_allows_it(
    folders: Folders, setting: str | None, result: str
) -> None:
    # `null` is as if it were not there.
    health = None if setting is None else {"recovered_errors": setting}
    folders.fixture("refund", order="in_order", trace_health=health)
    folders.trace("refund", tools=[{**GET, "error": "503"}, GET, REFUND])
    assert only_case(grade(folders)).result == result


def stable_hash(value: Any, *, ascii_only: bool) -> str:
    """As the fixture format publishes it, but for the characters that are escaped."""
    blob = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=ascii_only)
    return hashlib.sha256(blob.encode()).hexdigest()[:16]


COMPARED = [
    "Zoë",
    "订单🤖",
    48.5,
    5.0,
    -0.0,
    1e22,
    0.1 + 0.2,
    10**40,
    {"ö": [1, {"z": "é", "a": 2.5}], "a": None},
    ["\u2028", "\\u00eb", '"'],
]


@pytest.mark.parametrize("ascii_only", [True, False], ids=["ascii", "utf-8"])
@pytest.mark.parametrize("value", COMPARED, ids=repr)
def test_a_value_is_known_by_its_hash_in_either_form(
    folders: Folders, value: Any, ascii_only: bool
) -> None:
    hashes = {"get_order": {"order_id": stable_hash(value, ascii_only=ascii_only)}}
    folders.fixture("a", value_hashes=hashes)
    folders.trace("a", tools=[{"name": "get_order", "arguments": {"order_id": value}}, REFUND])
    assert only_case(grade(folders)).failures == ()
    folders.trace("a", tools=[{"name": "get_order", "arguments": {"order_id": [value]}}, REFUND])
    assert only_case(grade(folders)).result == "FAIL"


@pytest.mark.parametrize("value", [v for v in COMPARED if v != 10**40], ids=repr)
def test_a_value_that_the_recorder_hid_is_known_by_its_published_hash(
    folders: Folders, value: Any
) -> None:
    """Of numbers beyond 64 bits it keeps the text, hidden or not."""
    hashes = {"get_order": {"order_id": stable_hash(value, ascii_only=True)}}
    folders.fixture("a", value_hashes=hashes, must_ask_before_write=False)
    recorder = TraceRecorder(
        comparable={"refund_payment": ["*"]}, comparable_final=["*"], texts="keep"
    )
    recorder.on_tool("get_order", {"order_id": value})
    recorder.on_tool("refund_payment", {"order_id": "1842", "method": "card"})
    recorder.on_final({"status": "ok", "refund_id": "r1"})
    write(folders.traces / "a.json", recorder.dump())
    assert only_case(grade(folders)).failures == ()


def test_a_missing_trace_is_missing(folders: Folders) -> None:
    folders.fixture("a")
    folders.fixture("b")
    folders.trace("a")
    suite = grade(folders)
    assert not suite.passed
    assert results(suite) == [("a", None, "PASS"), ("b", None, "MISSING")]
    assert suite.cases[1].path_hash is None


def test_a_missing_folder_of_traces_misses_every_trace(folders: Folders) -> None:
    folders.fixture("a")
    folders.traces.rmdir()
    assert results(grade(folders)) == [("a", None, "MISSING")]


@pytest.mark.parametrize("exists", [True, False], ids=["empty", "missing"])
def test_a_folder_without_fixtures_fails(folders: Folders, exists: bool) -> None:
    folders.trace("refund")
    if not exists:
        folders.fixtures.rmdir()
    suite = grade(folders)
    assert not suite.passed
    case = only_case(suite)
    assert (case.result, case.subject) == ("MISSING", "suite")
    assert ("holds no fixture" if exists else "does not exist") in case.failures[0]
    assert suite.warnings == (f"{folders.traces}/refund.json: no fixture has this id, "
                              "so it is not graded",)  # fmt: skip


def test_no_case_at_all_is_no_pass() -> None:
    assert not SuiteResult(cases=()).passed


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "is no JSON object"),
        ('{"id": "x", "id": "y"}', "is here twice"),
        (json.dumps({"id": "x", "input": {"user": "u"}, "expect": {"tool_name": []}}), "tool_name"),
    ],
)
def test_a_fixture_that_cannot_be_read_fails_and_costs_no_other(
    folders: Folders, content: str, said: str
) -> None:
    folders.fixture("good")
    folders.trace("good")
    write(folders.fixtures / "bad.json", content)
    suite = grade(folders)
    assert not suite.passed
    assert [case.result for case in suite.cases] == ["FAIL", "PASS"]
    text = "\n".join(suite.cases[0].failures)
    assert said in text
    assert "bad.json:1" in text


def test_all_errors_of_a_fixture_are_listed(folders: Folders) -> None:
    write(folders.fixtures / "bad.json", {"id": "", "input": {}, "expect": {"ordr": "exact"}})
    keys = "\n".join(grade(folders).cases[0].failures)
    for key in ("id", "input.user", "expect.ordr"):
        assert key in keys


def test_two_fixtures_with_one_id_fail(folders: Folders) -> None:
    folders.fixture("refund", file="a")
    folders.fixture("refund", file="b")
    folders.trace("refund")
    suite = grade(folders)
    assert [case.result for case in suite.cases] == ["FAIL", "PASS"]
    assert "'refund' is also the id of" in suite.cases[0].failures[0]


def test_fixtures_in_folders_count_and_other_files_do_not(folders: Folders) -> None:
    write(folders.fixtures / "deep" / "er" / "x.json", json.loads(folders.fixture("a").read_text()))
    (folders.fixtures / "a.json").unlink()
    for name in (".hidden.json", "deep/er/a.golden.json", "fixture.schema.json", "notes.md"):
        write(folders.fixtures / name, recording() if "golden" in name else "{}")
    write(folders.fixtures / ".git" / "y.json", "{")
    folders.trace("a")
    assert results(grade(folders)) == [("a", None, "PASS")]


def test_fixtures_behind_links_count_once(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a")
    shared = folders.root / "shared"
    write(shared / "b.json", json.loads((folders.fixtures / "a.json").read_text()) | {"id": "b"})
    (folders.fixtures / "one").symlink_to(shared)
    (folders.fixtures / "two").symlink_to(shared)
    (shared / "round").symlink_to(folders.fixtures)
    assert results(grade(folders)) == [("a", None, "PASS"), ("b", None, "MISSING")]
    # What is nowhere is no fixture that may be left out.
    (folders.fixtures / "c.json").symlink_to("nowhere")
    assert [case.result for case in grade(folders).cases] == ["FAIL", "PASS", "MISSING"]


@pytest.mark.parametrize("suffix", [".golden.json", ".lock.json", ".schema.json", ".Golden.JSON"])
def test_a_fixture_by_another_name_is_not_left_out_unsaid(folders: Folders, suffix: str) -> None:
    folders.fixture("a")
    folders.trace("a")
    write(folders.fixtures / f"b{suffix}", (folders.fixtures / "a.json").read_text())
    suite = grade(folders)
    assert [case.result for case in suite.cases] == ["FAIL", "PASS"]
    assert "is a fixture, and no file of such a name" in suite.cases[0].failures[0]


def test_a_golden_trace_whose_fixture_is_gone_is_missing_it(folders: Folders) -> None:
    """Without a lock file, too; of one that cannot be read nobody knows which it was."""
    folders.fixture("a")
    folders.fixture("b", file="of-b")
    for name in ("a", "b"):
        folders.trace(name)
        write(folders.fixtures / f"{name}.golden.json", recording())
    assert grade(folders).passed
    (folders.fixtures / "of-b.json").rename(folders.root / "of-b.json")
    suite = grade(folders)
    assert [case.result for case in suite.cases] == ["MISSING", "PASS"]
    assert "b.golden.json: is the golden trace of no fixture" in suite.cases[0].failures[0]
    write(folders.fixtures / "of-b.json", "{")
    assert [case.result for case in grade(folders).cases] == ["FAIL", "PASS"]


def test_traces_may_lie_among_the_fixtures(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    folders.fixture("a")
    write(folders.fixtures / "runs" / "a.json", recording())
    folder = read_fixtures(folders.fixtures, folders.fixtures / "runs")
    assert results(run_suite(folder, folders.fixtures / "runs")) == [("a", None, "PASS")]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ('{"tools": [', "cut off"),
        ("[]", "no trace"),
        ('{"weather": "fine"}', "no trace in a known format"),
        ('{"tools": [{"name": 7}]}', "no trace in a known format"),
        (b"\xff{}", "not UTF-8"),
    ],
)
def test_a_trace_that_cannot_be_read_fails(
    folders: Folders, content: str | bytes, said: str
) -> None:
    folders.fixture("a")
    data = content if isinstance(content, bytes) else content.encode()
    (folders.traces / "a.json").write_bytes(data)
    case = only_case(grade(folders))
    assert (case.result, case.path_hash) == ("FAIL", None)
    assert said in case.failures[0]
    assert "a.json" in case.failures[0]


def test_a_trace_that_cannot_be_opened_fails(folders: Folders) -> None:
    folders.fixture("a")
    path = folders.traces / "a.json"
    path.symlink_to(path)
    case = only_case(grade(folders))
    assert case.result == "FAIL"
    assert "cannot be read" in case.failures[0]


def test_a_folder_called_like_a_trace_file_fails(folders: Folders) -> None:
    folders.fixture("a")
    (folders.traces / "a.json").mkdir()
    assert not grade(folders).passed


def test_an_agent_that_failed_fails_whatever_it_had_done(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a", error="TimeoutError: the agent did not come to its end")
    case = only_case(grade(folders))
    assert case.result == "FAIL"
    assert any("TimeoutError" in text for text in case.failures)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"fixture": "b"}, "recorded for the fixture 'b'"),
        ({"input": {"user": "Refund order 9."}}, "another user turn"),
        ({"fixture": "a", "input": {"user": USER}}, None),
    ],
)
def test_a_trace_of_another_fixture_or_an_old_turn_fails(
    folders: Folders, changes: dict[str, Any], said: str | None
) -> None:
    folders.fixture("a")
    folders.trace("a", **changes)
    case = only_case(grade(folders))
    assert (case.result == "PASS") is (said is None)
    assert said is None or said in case.failures[0]


@pytest.mark.parametrize("others", ["hash", "drop"])
@pytest.mark.parametrize("texts", ["keep", "hash", "drop"])
def test_what_is_hidden_on_the_way_is_graded_all_the_same(
    folders: Folders, others: Others, texts: Texts
) -> None:
    # printf '"card"' | sha256sum | cut -c1-16
    hashes = {"refund_payment": {"method": "b6e5c4d2d440f0d1"}} if others == "hash" else {}
    folders.fixture("a", value_hashes=hashes)
    for trial, turn in enumerate((USER, "Refund order 9."), 1):
        recorder = TraceRecorder(
            comparable={}, comparable_final=["*"], others=others, texts=texts, fixture="a"
        )
        recorder.on_input(turn)
        recorder.on_tool("get_order", {"order_id": "1842"})
        recorder.on_question("Shall I?")
        recorder.on_tool("refund_payment", {"order_id": "1842", "method": "card"})
        recorder.on_final({"status": "ok", "refund_id": "r1"})
        write(folders.traces / "a" / f"{trial}.json", recorder.dump())
    # Whether it was another turn cannot be told once the turn is dropped.
    other = "PASS" if texts == "drop" else "FAIL"
    assert [case.result for case in grade(folders).cases] == ["PASS", other]


def test_a_candidate_may_be_in_any_format(folders: Folders) -> None:
    folders.fixture("a")
    call = {"type": "function", "id": "1", "function": {"arguments": '{"order_id": "1842"}'}}
    got = {**call, "function": {**call["function"], "name": "get_order"}}  # type: ignore[dict-item]
    paid = {
        "type": "function",
        "id": "2",
        "function": {"name": "refund_payment", "arguments": json.dumps(REFUND["arguments"])},
    }
    messages = [
        {"role": "user", "content": USER},
        {"role": "assistant", "content": None, "tool_calls": [got]},
        {"role": "tool", "tool_call_id": "1", "content": "{}"},
        {"role": "assistant", "content": "To which card?"},
        {"role": "user", "content": "The original one."},
        {"role": "assistant", "content": None, "tool_calls": [paid]},
        {"role": "tool", "tool_call_id": "2", "content": "{}"},
        {"role": "assistant", "content": '{"status": "ok", "refund_id": "r1"}'},
    ]
    write(folders.traces / "a.json", messages)
    case = only_case(grade(folders))
    assert (case.result, case.failures, case.path_hash) == ("PASS", (), PATH_HASH)


# Trials.


def test_trials_are_cases_and_give_pass_hat_k(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a/1")
    folders.trace("a/2", tools=[GET])
    folders.trace("a/10")
    for number in range(3, 10):
        folders.trace(f"a/{number}")
    suite = grade(folders)
    assert [case.trial for case in suite.cases] == list(range(1, 11))
    of_fixture, of_suite = suite.trials
    assert (of_fixture.id, of_fixture.passed, of_fixture.trials) == ("a", 9, 10)
    # C(9, k) / C(10, k) = (10 - k) / 10
    assert of_fixture.pass_hat == pytest.approx([(10 - k) / 10 for k in range(1, 11)])
    assert of_suite.id is None
    assert of_suite.pass_hat == of_fixture.pass_hat


def test_a_fixture_without_traces_never_passes_in_pass_hat_k(folders: Folders) -> None:
    folders.fixture("a")
    folders.fixture("b")
    for number in (1, 2):
        folders.trace(f"a/{number}")
    suite = grade(folders)
    assert suite.trials[-1].pass_hat == pytest.approx([0.5, 0.5])


def test_one_trial_each_needs_no_pass_hat_k(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a")
    assert grade(folders).trials == ()


def test_traces_in_one_file_are_trials(folders: Folders) -> None:
    folders.fixture("a")
    write(folders.traces / "a.json", [recording(), recording(tools=[GET])])
    assert results(grade(folders)) == [("a", 1, "PASS"), ("a", 2, "FAIL")]
    write(folders.traces / "a.json", [recording(trial=7), recording(trial=4)])
    assert [case.trial for case in grade(folders).cases] == [7, 4]


def test_a_file_of_a_numbered_trial_holds_one_trace(folders: Folders) -> None:
    folders.fixture("a")
    write(folders.traces / "a" / "1.json", [recording(), recording()])
    assert "holds 2 traces" in only_case(grade(folders)).failures[0]


@pytest.mark.parametrize(
    ("numbers", "lost"),
    [((1, 2), None), ((0, 1), None), ((1, 3), 2), ((2,), 1), ((0, 2), 1), ((1, 999_999_999), 2)],
)
def test_a_trial_that_vanished_is_missing(
    folders: Folders, numbers: tuple[int, ...], lost: int | None
) -> None:
    folders.fixture("a")
    for number in numbers:
        folders.trace(f"a/{number}")
    suite = grade(folders)
    assert [case.trial for case in suite.cases if case.result == "MISSING"] == (
        [] if lost is None else [lost]
    )


def test_it_must_be_clear_which_file_is_the_candidate(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a")
    folders.trace("a/1")
    case = only_case(grade(folders))
    assert case.result == "FAIL"
    assert "several files may be its trace: a.json, a/" in case.failures[0]


# What nobody asked for.


def test_traces_without_a_fixture_are_named(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a/1")
    folders.trace("a/first")
    folders.trace("stray")
    folders.trace("more/1")
    write(folders.traces / "README.md", "notes")
    suite = grade(folders)
    assert suite.passed
    names = [text.partition(":")[0].removeprefix(f"{folders.traces}/") for text in suite.warnings]
    assert names == ["stray.json", "a/first.json", "more/"]


def test_selecting_hides_nothing_that_is_wrong_with_the_folder(folders: Folders) -> None:
    for key in "abc":
        folders.fixture(key)
    folders.trace("a")
    folders.trace("b", tools=[])
    accept(read_fixtures(folders.fixtures))
    assert results(grade(folders, "a")) == [("a", None, "PASS")]
    assert grade(folders, "a").warnings == ()
    (folders.fixtures / "c.json").unlink()
    write(folders.fixtures / "bad.json", "{")
    assert [case.result for case in grade(folders, "a").cases] == ["FAIL", "MISSING", "PASS"]


# The lock file.


def test_without_a_lock_file_a_note_says_how_to_make_one(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a")
    (note,) = grade(folders).notes
    assert "--accept" in note


def test_a_fixture_that_vanished_fails_until_that_is_accepted(folders: Folders) -> None:
    for key in "ab":
        folders.fixture(key)
        folders.trace(key)
    assert accept(read_fixtures(folders.fixtures)) == ["a: new", "b: new"]
    assert grade(folders).passed
    assert grade(folders).notes == ()
    (folders.fixtures / "b.json").unlink()
    suite = grade(folders)
    assert not suite.passed
    assert results(suite) == [("b", None, "MISSING"), ("a", None, "PASS")]
    assert accept(read_fixtures(folders.fixtures)) == ["b: gone"]
    assert grade(folders).passed


def test_new_and_changed_fixtures_are_notes(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a")
    accept(read_fixtures(folders.fixtures))
    folders.fixture("a", forbidden_tools=[])
    folders.fixture("b")
    folders.trace("b")
    suite = grade(folders)
    assert suite.passed
    assert [note.split(" ")[0:3] for note in suite.notes] == [
        ["a", "has", "changed"],
        ["b", "is", "new"],
    ]
    assert accept(read_fixtures(folders.fixtures)) == ["b: new", "a: changed"]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        '{"version": 2, "fixtures": {}}',
        '{"version": 1, "fixtures": []}',
        '{"version": 1, "fixtures": {}, "golden": {}}',
        '{"version": 1, "fixtures": {}, "golden": null}',
    ],
)
def test_a_lock_file_that_is_none_fails_until_it_is_written_again(
    folders: Folders, content: str
) -> None:
    folders.fixture("a")
    folders.trace("a")
    write(folders.fixtures / "fixtures.lock.json", content)
    suite = grade(folders)
    assert not suite.passed
    assert "fixtures.lock.json" in suite.cases[0].id
    assert suite.notes == ()
    accept(read_fixtures(folders.fixtures))
    assert grade(folders).passed


def test_nothing_is_accepted_while_a_fixture_cannot_be_read(folders: Folders) -> None:
    folders.fixture("a")
    write(folders.fixtures / "b.json", "{")
    with pytest.raises(InputError, match=r"b\.json"):
        accept(read_fixtures(folders.fixtures))
    assert not (folders.fixtures / "fixtures.lock.json").exists()


def test_the_same_fixtures_give_the_same_lock(folders: Folders) -> None:
    folders.fixture("b")
    folders.fixture("a")
    accept(read_fixtures(folders.fixtures))
    first = (folders.fixtures / "fixtures.lock.json").read_bytes()
    accept(read_fixtures(folders.fixtures))
    assert (folders.fixtures / "fixtures.lock.json").read_bytes() == first
    assert list(json.loads(first)["fixtures"]) == ["a", "b"]


# Golden traces.


def test_a_failing_candidate_is_shown_against_the_golden_trace(folders: Folders) -> None:
    folders.fixture("a")
    write(folders.fixtures / "a.golden.json", recording())
    folders.trace("a", tools=[GET])
    case = only_case(grade(folders))
    assert case.against_golden == "get_order ✓, refund_payment ✗ missing (similarity 0.67)"
    folders.trace("a", final=None)
    assert only_case(grade(folders)).against_golden == "the same path"
    folders.trace("a")
    assert only_case(grade(folders)).against_golden is None


@pytest.mark.parametrize(
    "content", [recording(tools=[GET]), "{", [recording(), recording()], {"weather": "fine"}]
)
def test_a_golden_trace_that_does_not_pass_fails(folders: Folders, content: Any) -> None:
    folders.fixture("a")
    folders.trace("a")
    write(folders.fixtures / "a.golden.json", content)
    suite = grade(folders)
    assert not suite.passed
    candidate, golden = suite.cases
    assert candidate.result == "PASS"
    assert (golden.id, golden.subject, golden.result) == ("a", "golden", "FAIL")
    assert "no longer passes its own fixture" in golden.failures[0]


def test_a_golden_trace_is_no_trial(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a/1")
    folders.trace("a/2")
    write(folders.fixtures / "a.golden.json", recording(tools=[]))
    assert grade(folders).trials[0].trials == 2


def test_a_golden_trace_that_vanished_is_missing_until_that_is_accepted(folders: Folders) -> None:
    for key in ("a", "b"):
        folders.fixture(key, file=f"some/{key}-file")
        folders.trace(key)
        write(folders.fixtures / "some" / f"{key}.golden.json", recording())
    assert accept(read_fixtures(folders.fixtures)) == [
        *("a: new", "b: new", "a: its golden trace is new", "b: its golden trace is new")
    ]
    assert grade(folders).passed
    assert grade(folders).notes == ()
    gone = folders.fixtures / "some" / "a.golden.json"
    gone.unlink()
    for only in ((), ("b",)):
        suite = grade(folders, *only)
        assert not suite.passed
        (missing,) = [case for case in suite.cases if case.result != "PASS"]
        assert (missing.id, missing.result, missing.subject) == ("a", "MISSING", "golden")
        (said,) = missing.failures
        assert f"{gone} is not there" in said
        assert "restore it" in said
        assert "--accept" in said
    assert accept(read_fixtures(folders.fixtures)) == ["a: its golden trace is gone"]
    assert grade(folders).passed
    assert grade(folders).notes == ()


def test_of_a_fixture_that_vanished_the_golden_trace_is_not_missed_as_well(
    folders: Folders,
) -> None:
    folders.fixture("a")
    folders.fixture("b")
    folders.trace("b")
    golden = write(folders.fixtures / "a.golden.json", recording())
    accept(read_fixtures(folders.fixtures))
    golden.unlink()
    (folders.fixtures / "a.json").unlink()
    assert results(grade(folders)) == [("a", None, "MISSING"), ("b", None, "PASS")]
    assert accept(read_fixtures(folders.fixtures)) == ["a: gone"]


def test_a_lock_file_from_before_golden_traces_were_listed_is_read(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a")
    accept(read_fixtures(folders.fixtures))
    lock = folders.fixtures / "fixtures.lock.json"
    # Without golden traces the file is as it always was.
    assert set(json.loads(lock.read_bytes())) == {"version", "fixtures"}
    write(folders.fixtures / "a.golden.json", recording())
    suite = grade(folders)
    assert suite.passed
    assert [note for note in suite.notes if "golden trace of a: " in note] == list(suite.notes)
    assert accept(read_fixtures(folders.fixtures)) == ["a: its golden trace is new"]
    assert json.loads(lock.read_bytes())["golden"] == ["a"]


# Names that mean harm.

HOSTILE = [
    "../escape",
    "/etc/passwd",
    "a/b",
    "..",
    ".hidden",
    "a\nb",
    "x" * 300,
    "Rückgabe prüfen",
    "a\\b",
    "CON:*?",
    "<b>",
]


@pytest.mark.parametrize("key", HOSTILE)
def test_ids_that_are_no_file_names_stay_in_the_folder(folders: Folders, key: str) -> None:
    folders.fixture(key, file="hostile")
    outside = [folders.root / "escape.json", folders.root / "traces.json"]
    for path in outside:
        write(path, recording())
    assert results(grade(folders)) == [(key, None, "MISSING")]
    folders.trace(path_key(key))
    suite = grade(folders)
    assert results(suite) == [(key, None, "PASS")]
    assert suite.warnings == ()


def test_an_id_that_is_a_file_name_may_stand_as_it_is(folders: Folders) -> None:
    folders.fixture("Rückgabe prüfen", file="a")
    folders.trace("Rückgabe prüfen")
    assert grade(folders).passed


def test_nothing_in_a_trace_raises(folders: Folders) -> None:
    folders.fixture("a")
    write(folders.fixtures / "a.golden.json", recording())
    for tools in (
        [{"name": " "}],
        [{"name": "get_order", "arguments": "no object"}],
        [{"name": "a\u0000b", "arguments": [1]}],
        [GET] * 3000,
    ):
        folders.trace("a", tools=tools)
        case = only_case(grade(folders))
        assert case.result == "FAIL"
        assert case.against_golden is not None


# What is shipped.


def test_the_examples_pass_and_their_drifted_siblings_fail() -> None:
    good = run_suite(read_fixtures(EXAMPLES / "fixtures"), EXAMPLES / "traces")
    assert good.passed
    assert (good.warnings, good.notes) == ((), ())
    drifted = grade_folder(EXAMPLES / "fixtures", EXAMPLES / "drifted")
    assert {case.id for case in drifted} == {case.id for case in good.cases}
    passed = [(case.id, case.trial) for case in drifted if case.result == "PASS"]
    assert passed == [("refund-requires-order-lookup", 1)]


def test_drifted_payloads_are_as_good_as_ever() -> None:
    # What the examples are for: the final payload alone shows nothing.
    drifted = run_suite(read_fixtures(EXAMPLES / "fixtures"), EXAMPLES / "drifted", details=True)
    for case in drifted.cases:
        schema = [check.outcome for check in case.checks if check.name == "schema"]
        assert schema == ["passed"]


@pytest.mark.parametrize("fixture", ["hotel/book one", "../x", "ü"])
def test_a_missing_trace_is_expected_where_it_is_looked_for(folders: Folders, fixture: str) -> None:
    folders.fixture(fixture, file="it")
    (missing,) = grade_folder(folders.fixtures, folders.traces)
    assert missing.result == "MISSING"
    place = Path(missing.failures[0].partition("expected ")[2])
    write(place, recording())
    (found,) = grade_folder(folders.fixtures, folders.traces)
    assert found.result == "PASS"


def test_a_golden_trace_of_another_fixture_is_none(folders: Folders) -> None:
    folders.fixture("a")
    folders.trace("a")
    write(folders.fixtures / "a.golden.json", {**recording(), "fixture": "b"})
    cases = grade_folder(folders.fixtures, folders.traces)
    results = {(case.subject, case.result) for case in cases}
    assert results == {("candidate", "PASS"), ("golden", "FAIL")}
