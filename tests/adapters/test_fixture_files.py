"""Fixtures of golden traces in files: what loads, what every mistake is told to be, and where."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.adapters import fixture_files
from benchmark_assets.adapters.contract_files import find_contract, load_contracts
from benchmark_assets.adapters.fixture_files import (
    golden_path_of,
    is_fixture_file,
    parse_json,
    personal_kind,
    personal_values,
    read_fixture,
    read_fixture_file,
)
from benchmark_assets.adapters.yaml_files import KeyPath
from benchmark_assets.model.golden import Fixture
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError
from benchmark_assets.scoring.routing import applies
from tests.scoring.build import trace

PUBLISHED = """\
{
  "id": "refund-requires-order-lookup",
  "input": {
    "user": "Refund order 1842 to the original card."
  },
  "expect": {
    "tool_names": ["get_order", "refund_payment"],
    "required_arg_keys": {
      "get_order": ["order_id"],
      "refund_payment": ["order_id", "method"]
    },
    "forbidden_tools": ["create_order", "charge_card"],
    "must_ask_before_write": true,
    "final_schema": {
      "type": "object",
      "required": ["status", "refund_id"],
      "properties": {
        "status": {"enum": ["ok", "needs_human"]},
        "refund_id": {"type": ["string", "null"]}
      }
    }
  }
}
"""
"""The fixture of the published format, as it stands there."""

DATA = json.loads(PUBLISHED)


def fixture_data(expect: Any = None, **others: Any) -> dict[str, Any]:
    return {
        "id": "f",
        "input": {"user": "Do it."},
        "expect": {"tool_names": ["a"]} if expect is None else expect,
        **others,
    }


def text_of(data: Any) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False)


def loaded(expect: Any = None, **others: Any) -> Fixture:
    return read_fixture(text_of(fixture_data(expect, **others)).encode(), "f.json")


def problems(text: str | bytes) -> list[str]:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(InputError) as caught:
        read_fixture(data, "f.json")
    return [str(problem) for problem in caught.value.problems]


# What a fixture means.


def test_the_published_fixture_is_a_contract() -> None:
    fixture = read_fixture(PUBLISHED.encode(), "f.json")
    contract = fixture.contract
    assert (fixture.id, fixture.user, fixture.turns) == (DATA["id"], DATA["input"]["user"], ())
    assert (contract.id, contract.workflow, contract.group) == (DATA["id"], "golden", "golden")
    assert contract.contract_version == "1"
    assert contract.tools is not None
    assert contract.tools.forbidden == ("create_order", "charge_card")
    assert contract.final is not None
    assert contract.final.schema_ == DATA["expect"]["final_schema"]
    trajectory = contract.trajectory
    assert trajectory is not None
    [path] = trajectory.allowed_paths
    assert [step.tool for step in path.path] == ["get_order", "refund_payment"]
    assert not any(step.optional or step.repeat for step in path.path)
    assert (path.order or trajectory.order) == "exact"
    assert trajectory.ask_before_write
    assert trajectory.writes == ()
    assert [
        (rule.tool, tuple(rule.args), rule.args_mode, rule.occurrences, rule.min)
        for rule in trajectory.calls
    ] == [
        ("get_order", ("order_id",), "keys", "each", 1),
        ("refund_payment", ("order_id", "method"), "keys", "each", 1),
    ]


def test_its_traces_are_those_of_its_id_and_of_its_prompt() -> None:
    contract = read_fixture(PUBLISHED.encode(), "f.json").contract
    prompt = DATA["input"]["user"]
    assert applies(contract, trace(task=DATA["id"], prompt="other"))
    assert applies(contract, trace(task="other", prompt=prompt))
    assert applies(contract, trace(prompt=f"  {prompt}\n".replace(" order", "\n order")))
    assert not applies(contract, trace(task="other", prompt=prompt.upper()))
    assert not applies(contract, trace(workflow="golden"))


def test_published_keys_and_those_of_sections_mean_the_same() -> None:
    one = loaded(
        {
            "tool_names": ["a", "b"],
            "must_ask_before_write": True,
            "write_tools": ["b*"],
            "final_schema": {"type": "object"},
        }
    )
    other = loaded(
        {
            "allowed_paths": [["a", "b"]],
            "ask_before_write": True,
            "writes": ["b*"],
            "schema": {"type": "object"},
        }
    )
    assert one.contract == other.contract


def test_keys_of_all_sections() -> None:
    contract = loaded(
        {
            "allowed_paths": [
                ["a", {"tool": "b", "optional": True}],
                {"path": [{"tool": "a", "repeat": True}], "order": "subset"},
            ],
            "order": "in_order",
            "calls": [{"tool": "a", "args": {"x": {"approx": 5}}, "max": 2}],
            "before": [["a", "b"]],
            "value_hashes": {"a": {"x": "0123456789abcdef"}},
            "extra": "reads_only",
            "max_extra_calls": 3,
            "contains": ["done"],
            "scope": "conversation",
            "max_tokens": 100,
            "ends_with": "stop",
        },
        version=3,
        comment="Why.",
        workflow="refunds",
        group="money",
    ).contract
    assert contract.trajectory is not None
    assert contract.trajectory.max_extra_calls == 3
    assert contract.trajectory.allowed_paths[1].order == "subset"
    assert contract.trajectory.before == (("a", "b"),)
    assert contract.final is not None
    assert (contract.final.contains, contract.final.scope) == (("done",), "conversation")
    assert contract.budget is not None
    assert contract.budget.max_tokens == 100
    assert contract.ends_with == ("stop",)
    assert (contract.contract_version, contract.description) == ("3", "Why.")
    assert (contract.workflow, contract.group) == ("refunds", "money")


@pytest.mark.parametrize(
    ("paths", "order", "needed"),
    [
        ([["a", "b"], ["a"]], None, 1),
        ([["a", "b"], ["b"]], None, 0),
        ([[{"tool": "a", "optional": True}]], None, 0),
        ([[{"tool": "a", "repeat": True}]], None, 1),
        ([["a"]], "subset", 0),
        ([{"path": ["a"], "order": "subset"}], "exact", 0),
        ([{"path": ["a"], "order": "exact"}], "subset", 1),
        ([{"path": ["b"], "order": "in_order"}], None, 1),
        ([["b"], ["c"]], "superset", 1),
        ([["b"]], "subset", 1),
        ([[]], "superset", 1),
        (None, None, 1),
    ],
)
def test_a_tool_with_required_keys_is_needed_unless_it_is_on_a_path_that_does_without(
    paths: Any, order: str | None, needed: int
) -> None:
    expect = {"allowed_paths": paths, "order": order, "required_arg_keys": {"a": ["x"]}}
    contract = loaded({key: value for key, value in expect.items() if value is not None}).contract
    assert contract.trajectory is not None
    assert contract.trajectory.calls[0].min == needed


def test_a_tool_on_no_path_is_not_needed_for_no_keys() -> None:
    contract = loaded({"tool_names": ["b"], "required_arg_keys": {"a": [], "b": []}}).contract
    assert contract.trajectory is not None
    assert [rule.min for rule in contract.trajectory.calls] == [0, 1]


@pytest.mark.parametrize("setting", ["allow", "fail"])
def test_what_the_health_must_be_is_said_as_in_a_contract(setting: str) -> None:
    expect = {"tool_names": ["a"], "trace_health": {"recovered_errors": setting}}
    contract = loaded(expect).contract
    assert contract.trace_health.recovered_errors == setting
    plain = loaded({"tool_names": ["a"]}).contract
    assert (contract.content_hash == plain.content_hash) is (setting == "fail")
    assert loaded({"tool_names": ["a"], "trace_health": None}).contract == plain


def test_health_alone_demands_nothing_of_a_run() -> None:
    (said,) = problems(text_of(fixture_data({"trace_health": {"recovered_errors": "fail"}})))
    assert "expect: demands nothing" in said


def test_required_keys_are_of_one_tool_whatever_its_name_looks_like() -> None:
    contract = loaded({"required_arg_keys": {"a[b]*?": ["x"]}}).contract
    assert contract.trajectory is not None
    assert contract.trajectory.calls[0].tool == "a[[]b][*][?]"


@pytest.mark.parametrize("key", ["tool_names", "writes", "max_tokens", "schema", "ends_with"])
def test_null_is_absent(key: str) -> None:
    if key == "writes":
        assert any("writes" in line for line in problems(text_of(fixture_data({key: None}))))
        return
    assert loaded({"forbidden_tools": ["a"], key: None}).contract == (
        loaded({"forbidden_tools": ["a"]}).contract
    )


@pytest.mark.parametrize(
    "fixture_id", ["a/b/c", "übergabe/№1", "订单", "with space", "a.b", "x" * 300, "🙂"]
)
def test_ids(fixture_id: str, tmp_path: Path) -> None:
    text = json.dumps(fixture_data(id=fixture_id), ensure_ascii=len(fixture_id) % 2 == 0)
    assert read_fixture(text.encode(), "f.json").contract.id == fixture_id
    golden = golden_path_of(tmp_path / "f.json", fixture_id)
    assert golden == tmp_path / f"{path_key(fixture_id)}.golden.json"
    assert not is_fixture_file(golden_path_of(tmp_path / "f.json", fixture_id))


# What is wrong, and where.


@pytest.mark.parametrize(
    ("expect", "said"),
    [
        ({}, '6: expect: demands nothing; add `"expect": {"tool_names": […]}`'),
        (
            {"forbidden_tools": []},
            '6: expect: demands nothing; add `"expect": {"tool_names": […]}`',
        ),
        (
            {"must_ask_before_write": False},
            '6: expect: demands nothing; add `"expect": {"tool_names": […]}`',
        ),
        (
            {"tool_names": None},
            '6: expect: demands nothing; add `"expect": {"tool_names": […]}`',
        ),
        ({"scope": "answer"}, "6: expect: demands nothing; give contains, not_contains or schema"),
        (
            {"tool_name": ["a"]},
            "7: expect.tool_name: is not a known key; did you mean 'tool_names'?",
        ),
        (
            {"must_ask_before_writes": True},
            "7: expect.must_ask_before_writes: is not a known key; "
            "did you mean 'must_ask_before_write'?",
        ),
        ({"tool_names": "a"}, "7: expect.tool_names: expected a list, found 'a'; write [\"a\"]"),
        (
            {"tool_names": ["a", 1]},
            "9: expect.tool_names[1]: expected a text, found the number 1; put it in quotes",
        ),
        (
            {"required_arg_keys": {"a": {"x": 1}}},
            "8: expect.required_arg_keys.a: expected a list, found an object; write a list: […]",
        ),
        (
            {"required_arg_keys": {"a": ["x", ""]}},
            "10: expect.required_arg_keys.a[1]: is empty; fill it in, or remove the key",
        ),
        (
            {"allowed_paths": [["a", {"tool": "b", "repeats": True}]]},
            "12: expect.allowed_paths[0][1].repeats: is not a known key; did you mean 'repeat'?",
        ),
        (
            {"allowed_paths": [{"path": ["a"], "order": "exactly"}]},
            "12: expect.allowed_paths[0].order: expected one of exact, in_order, any_order, "
            "unordered, subset, superset, found 'exactly'; did you mean 'exact'?",
        ),
        (
            {"allowed_paths": ["a"]},
            "8: expect.allowed_paths[0]: expected a list, found 'a'; write [\"a\"]",
        ),
        (
            {"calls": [{"args": {"x": 1}}]},
            '8: expect.calls[0].tool: is missing; add `"tool": "…"`, the tool to be called',
        ),
        (
            {"calls": [{"tool": "a", "args": {"x": {"regex": "("}}}]},
            "12: expect.calls[0].args.x.regex: is not a regular expression: "
            "missing ), unterminated subpattern at position 0; "
            r"correct it; its \ is \\ in JSON",
        ),
        (
            {"before": [["a", "b"], ["a"]]},
            "12: expect.before[1]: is no pair of tools; write [FIRST, THEN]",
        ),
        (
            {"value_hashes": {"a": {"x": "0123"}}},
            "9: expect.value_hashes.a.x: '0123' does not have the expected form; "
            "it must match ^[0-9a-f]{16,64}$",
        ),
        (
            {"final_schema": {"type": "object", "properties": {"x": {"type": "txt"}}}},
            "11: expect.final_schema.properties.x.type: is not a JSON Schema: "
            "'txt' is not valid under any of the given schemas; "
            "write it as JSON Schema, draft 2020-12, has it",
        ),
        (
            {"order": "exact", "max_tokens": 5},
            "6: expect: order says how allowed_paths fit, and there are none; "
            "add `allowed_paths`, or remove `order`",
        ),
        (
            {"before": [["a", "a"]], "max_extra_calls": 1},
            "8: expect.before[0]: names a twice, and a tool never comes before itself; "
            "name two tools: [FIRST, THEN]\n"
            "13: expect.max_extra_calls: counts calls besides allowed_paths and calls, and there "
            "are none; limit all calls with max_tool_calls, a key of a budget",
        ),
        (
            {"tool_names": ["a"], "allowed_paths": [["a"]]},
            "7: expect.tool_names: says the same as allowed_paths; give one of them",
        ),
        (
            {"must_ask_before_write": True, "ask_before_write": True, "tool_names": []},
            "7: expect.must_ask_before_write: says the same as ask_before_write; give one of them",
        ),
        (
            {"final_schema": {}, "schema": {}, "write_tools": "a", "writes": "b"},
            "7: expect.final_schema: says the same as schema; give one of them\n"
            "9: expect.write_tools: says the same as writes; give one of them",
        ),
        (
            [],
            '6: expect: expected an object, found a list; add `"expect": {"tool_names": […]}`',
        ),
    ],
)
def test_what_is_wrong_with_expect(expect: Any, said: str) -> None:
    found = problems(text_of(fixture_data(expect)))
    assert "\n".join(found) == "\n".join(f"f.json:{line}" for line in said.split("\n"))


@pytest.mark.parametrize(
    ("others", "said"),
    [
        ({"id": 5}, "2: id: expected a text, found the number 5"),
        ({"id": " "}, "2: id: holds only white space; write a text, or remove it"),
        ({"input": "Do it."}, "3: input: expected an object, found 'Do it.'"),
        ({"input": {"usr": "x"}}, '3: input.user: is missing; add `"user": "…"`'),
        ({"input": {"user": ""}}, "4: input.user: is empty"),
        ({"version": 1.1}, "11: version: expected a text, found the number 1.1; put it in quotes"),
        ({"version": True}, "11: version: expected a text, found true"),
        ({"comment": ["x"]}, "11: comment: expected a text, found a list"),
        ({"expected": {}}, "11: expected: is not a known key; did you mean 'expect'?"),
        ({"tool_names": []}, "11: tool_names: is not a known key; it belongs under `expect`"),
    ],
)
def test_what_is_wrong_beside_expect(others: dict[str, Any], said: str) -> None:
    found = problems(text_of(fixture_data(**others)))
    assert found[0].startswith(f"f.json:{said}"), found


@pytest.mark.parametrize("key", ["id", "input", "expect"])
def test_what_is_missing(key: str) -> None:
    data = {name: value for name, value in fixture_data().items() if name != key}
    [said] = problems(text_of(data))
    assert said.startswith(f'f.json:1: {key}: is missing; add `"{key}"')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "f.json:1: is not JSON: Expecting value in column 1"),
        ('{\n "id": "a",,\n}', "f.json:2: is not JSON: "),
        ('{"id": "a"\n "input": 1}', "f.json:2: is not JSON: Expecting ',' delimiter in column 2"),
        ('{"id": "a\n"}', "f.json:1: is not JSON: Invalid control character at in column 10"),
        ("{'id': 1}", "f.json:1: is not JSON: "),
        ('{"id": 1} {}', "f.json:1: is not JSON: Extra data in column 11"),
        ("// x\n{}", "f.json:1: is not JSON: "),
        ("[]", "f.json:1: is no JSON object; write one object: "),
        ('"x"', "f.json:1: is no JSON object; write one object: "),
        ("null", "f.json:1: is no JSON object; write one object: "),
        ('{"a": ' * 100_000, "f.json: is nested more than 60 levels deep"),
        ('{"a": ' * 70 + "1" + "}" * 70, "f.json: is nested more than 60 levels deep"),
        (
            '{"version": ' + "1" * 5000 + "}",
            "f.json: has a number of too many digits; put it in quotes",
        ),
        ('{"id": 1,\n"version": NaN}', "f.json:2: version: is no finite number"),
        ('{\n"a": [1,\n -1e999]}', "f.json:3: a[1]: is no finite number"),
        ('{\n"id": "\\ud800"}', "f.json:2: id: holds half of a surrogate pair"),
        ('{\n"x": {"\\ud800": 1}}', "f.json:2: x: has a key with half of a surrogate pair"),
        (b'{"id":\n "caf\xe9"}', "f.json:2: is not UTF-8; save it as UTF-8"),
        ("{}".encode("utf-16"), "f.json:1: is not UTF-8; save it as UTF-8"),
        (
            '{"id": "a",\n"expect": {"x": 1,\n "x": 1},\n"id": "a"}',
            "f.json:3: expect.x: is here twice, first at f.json:2; keep one of them",
        ),
        (
            '{"expect": {"x": 1},\n"expect": {"x": 1}}',
            "f.json:2: expect: is here twice, first at f.json:1; keep one of them",
        ),
        ("{}", "f.json: is no contract file: a fixture has `id`, `input` and `expect`; "),
        ('{"id": "t", "tools": [], "input": {}}', "f.json: is no contract file: "),
        ('{"trace_id": "t", "prompt": "p"}', "f.json: is no contract file: "),
        ('{"eval_cases": []}', "f.json:1: is an ADK eval set, which stands for a fixture a "),
    ],
)
def test_what_is_no_fixture_at_all(text: str | bytes, said: str) -> None:
    assert problems(text)[0].startswith(said)


def test_every_repeated_key_is_named() -> None:
    text = '{"id": 1, "id": 2,\n"expect": {"a": 1, "a": [{"b": 1, "b": 2}]}}'
    assert problems(text) == [
        "f.json:1: id: is here twice, first at f.json:1; keep one of them",
        "f.json:2: expect.a: is here twice, first at f.json:2; keep one of them",
    ]


def test_a_file_that_is_huge_or_gone(tmp_path: Path) -> None:
    path = tmp_path / "f.json"
    path.write_text(" " * 4_000_001, encoding="utf-8")
    with pytest.raises(InputError, match=r"is too large for a fixture; is it a trace file\?"):
        read_fixture_file(path)
    with pytest.raises(InputError, match="cannot be read: No such file or directory"):
        read_fixture_file(tmp_path / "gone.json")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_fixture_file(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        PUBLISHED,
        "\ufeff" + PUBLISHED,
        PUBLISHED.replace("  ", "\t"),
        PUBLISHED.replace("\n", "\r\n"),
        json.dumps(DATA),
        json.dumps(DATA, separators=(",", ":")),
        PUBLISHED.replace("Refund", "\\u0052efund").replace("card", "c\\u0061rd"),
        PUBLISHED.replace("get_order", "\\u0067et_order"),
    ],
)
def test_layout_and_escapes_do_not_count(text: str) -> None:
    assert read_fixture(text.encode(), "f.json") == read_fixture(PUBLISHED.encode(), "f.json")


# Places.


def places_of(value: Any, path: KeyPath = ()) -> list[KeyPath]:
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    return [path, *(place for key, item in items for place in places_of(item, (*path, key)))]


texts = st.text(st.sampled_from('ab"\\{}[]:,/\n\t é🙂\u2028'), max_size=6)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(texts, values, max_size=5), st.booleans(), st.sampled_from([None, 0, 2, "\t"])
)
def test_every_value_has_the_place_where_it_stands(
    data: dict[str, Any], ascii_only: bool, indent: int | str | None
) -> None:
    text = json.dumps(data, ensure_ascii=ascii_only, indent=indent)
    document = parse_json(text.encode("utf-8", "surrogatepass"), "f.json")
    assert document.data == data
    assert set(document.places) == set(places_of(data))
    lines = text.split("\n")
    for path, place in document.places.items():
        here = lines[place.line - 1]
        if path and isinstance(path[-1], str):
            assert json.dumps(path[-1], ensure_ascii=ascii_only) + ":" in here
        if indent is None:
            assert place.line == 1


def test_places_of_a_text_by_hand() -> None:
    text = '{\n\n"a":\n[1,\n[2\n,3]],"b":{"c":\n{}},\n"d": "x\\n{"}'
    places = {path: place.line for path, place in parse_json(text.encode(), "f").places.items()}
    assert places == {
        (): 1,
        ("a",): 3,
        ("a", 0): 4,
        ("a", 1): 5,
        ("a", 1, 0): 5,
        ("a", 1, 1): 6,
        ("b",): 6,
        ("b", "c"): 6,
        ("d",): 8,
    }


# Whatever is wrong.

ODD: list[Any] = [None, True, 0, -1, 1.5, 10**30, "", " ", "x", [], [None], [[]], {}, {"a": None}]

EVERYTHING = fixture_data(
    {
        "tool_names": ["a", "b"],
        "order": "in_order",
        "required_arg_keys": {"a": ["x"]},
        "forbidden_tools": ["c"],
        "must_ask_before_write": True,
        "write_tools": ["b"],
        "calls": [{"tool": "a", "args": {"x": {"one_of": [1, {"regex": "y"}]}}, "max": 2}],
        "before": [["a", "b"]],
        "value_hashes": {"a": {"x": "0123456789abcdef"}},
        "max_extra_calls": 1,
        "contains": "done",
        "final_schema": {"type": "object", "properties": {"x": {"enum": [1]}}},
        "max_tool_calls": 9,
        "ends_with": ["stop"],
    },
    version="2",
    comment="c",
    workflow="w",
    group="g",
)
PATHS = fixture_data(
    {"allowed_paths": [["a", {"tool": "b", "optional": True}], {"path": [], "order": "subset"}]}
)


def check_read(data: bytes) -> None:
    """It is a fixture, or every problem says in which file."""
    try:
        fixture = read_fixture(data, "f.json")
    except InputError as error:
        found = error.problems
    else:
        assert fixture.contract.id == fixture.id
        assert len(fixture.contract.content_hash) == 64
        return
    assert found
    for problem in found:
        assert problem.file == "f.json"
        assert problem.message
        assert problem.line is not None or problem.message.startswith(("is n", "has a number"))


@pytest.mark.parametrize("whole", [EVERYTHING, PATHS], ids=["everything", "paths"])
def test_one_thing_wrong_anywhere(whole: dict[str, Any]) -> None:
    """Every value dropped, renamed, doubled and replaced by every odd one."""
    check_read(json.dumps(whole).encode())
    for path in places_of(whole)[1:]:
        for odd in ODD:
            data = copy.deepcopy(whole)
            parent: Any = data
            for part in path[:-1]:
                parent = parent[part]
            parent[path[-1]] = odd
            check_read(json.dumps(data).encode())
        data = copy.deepcopy(whole)
        parent = data
        for part in path[:-1]:
            parent = parent[part]
        value = parent.pop(path[-1])
        check_read(json.dumps(data).encode())
        if isinstance(path[-1], str):
            parent[path[-1] + "s"] = value
        else:
            parent += [value, value]
        check_read(json.dumps(data).encode())


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_any_text_is_a_fixture_or_a_located_error(data: st.DataObject) -> None:
    text = bytearray(PUBLISHED.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text) - 1))
        how = data.draw(st.sampled_from(["drop", "insert", "cut", "set"]))
        byte = data.draw(st.sampled_from(b'{}[]",:\\ \n\t019-e.nulltrfa\x00\xff\xef'))
        if how == "drop" and at:  # Something stays to be changed next.
            del text[at]
        elif how == "insert":
            text.insert(at, byte)
        elif how == "set":
            text[at] = byte
        elif at:
            del text[at:]
    check_read(bytes(text))


# Personal data.


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("Write to jane.doe+x@mail.co.uk, please.", "an e-mail address"),
        ("jürgen@müller.de", "an e-mail address"),
        ("Card 4111 1111 1111 1111.", "a card number"),
        ("5555555555554444", "a card number"),
        ("3782-822463-10005", "a card number"),
        ("Call +14155552671", "a phone number"),
        ("+49 30 1234567", "a phone number"),
        ("+44 (0)20 7946 0958", "a phone number"),
        ("(415) 555-2671", "a phone number"),
        ("415-555-2671 or so", "a phone number"),
        ("089 1234567", "a phone number"),
        ("030/1234567", "a phone number"),
        ("01 23 45 67 89", "a phone number"),
        # Reserved for examples, tests and stories.
        ("x@example.com, y@mail.example.org, z@host.test, a@b.invalid", None),
        ("415-555-0123", None),
        # What only looks alike.
        ("me@home", None),
        ("@decorator.name", None),
        ("Card 4111 1111 1111 1112", None),
        ("2026-01-31", None),
        ("2026-01-31T12:30:00+02:00", None),
        ("31.01.2026 12:30", None),
        ("01-02-2026", None),
        ("20260131123000", None),
        ("1700000000000", None),
        ("order 1842", None),
        ("112-3456789-1234567", None),
        ("1234-5678-9012", None),
        ("ISBN 978-3-16-148410-0", None),
        ("550e8400-e29b-41d4-a716-446655440000", None),
        ("9f86d081884c7d65", None),
        ("1.2.3.4", None),
        ("v10.20.30-45", None),
        ("192.168.10.20", None),
        ("10 000 000 000", None),
        ("$1,234,567.89", None),
        ("", None),
    ],
)
def test_what_looks_like_personal_data(text: str, kind: str | None) -> None:
    assert personal_kind(text) == kind


@pytest.mark.parametrize(
    "text", ["a" * 100_000, "a." * 50_000, "1-" * 50_000, "1 " * 50_000, "+1" * 50_000]
)
def test_long_texts_are_looked_through_in_no_time(text: str) -> None:
    """A pattern that backtracks would never end here."""
    assert personal_kind(text) is None


def test_personal_values_are_named_where_they_stand() -> None:
    data = fixture_data(
        {
            "calls": [
                {
                    "tool": "a",
                    "args": {"to": "jane@mail.de", "card": 4111111111111111, "joe@mail.de": 1},
                }
            ],
            "value_hashes": {"a": {"x": "4111111111111111"}},
        }
    )
    document = parse_json(text_of(data).encode(), "f.json")
    cure = "fixtures are synthetic: make one up (x@example.com), or compare a hash"
    assert [str(problem) for problem in personal_values(document)] == [
        f"f.json:11: expect.calls[0].args.to: holds what looks like an e-mail address; {cure}",
        f"f.json:12: expect.calls[0].args.card: holds what looks like a card number; {cure}",
        "f.json:13: expect.calls[0].args.joe@mail.de: holds what looks like an e-mail address; "
        + cure,
    ]


def test_a_golden_trace_is_looked_through_with_its_fixture(tmp_path: Path) -> None:
    """It is kept with it, and its values come from a run."""
    recording = {
        "tools": [{"name": "mail", "arguments": {"to": "jane@mail.de"}, "result": "x@example.com"}],
        "final": '{"card": "4111 1111 1111 1111"}',
        "started_at": "2026-12-01T00:00:07.897756Z",
    }
    write(tmp_path, a_json=fixture_data({"tool_names": ["mail"]}, id="b/c"))
    golden = tmp_path / f"{path_key('b/c')}.golden.json"
    golden.write_text(text_of(recording), encoding="utf-8")
    found = load_contracts([tmp_path])
    assert not found.problems
    assert [str(problem).partition(";")[0] for problem in found.warnings] == [
        f"{golden}:6: tools[0].arguments.to: holds what looks like an e-mail address",
        f"{golden}:11: final: holds what looks like a card number",
    ]
    # What is none is said where it is graded.
    golden.write_text("{", encoding="utf-8")
    assert not load_contracts([tmp_path]).warnings


# Among contracts.

MINIMAL = 'workflow: orders\ncontract_version: "1"\ntools: {required: [get_order]}\n'


def write(folder: Path, **files: Any) -> Path:
    """Write files into a folder; `a__b_json=…` is a/b.json."""
    for name, content in files.items():
        stem, _, suffix = name.replace("__", "/").rpartition("_")
        path = folder / f"{stem}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        text = content if isinstance(content, str) else text_of(content)
        path.write_text(text, encoding="utf-8")
    return folder


def test_a_folder_of_contracts_and_fixtures(tmp_path: Path) -> None:
    write(
        tmp_path,
        b_yaml=MINIMAL,
        golden__a_json=PUBLISHED,
        golden__z_json=fixture_data(id="a/z", expect={"contains": ["jane@mail.de"]}),
        golden__wrong_json=fixture_data({"tool_name": []}, id="w"),
    )
    for name in ("a.golden.json", "fixture.schema.json", "x.lock.json", ".hidden.json"):
        (tmp_path / "golden" / name).write_text("not even JSON", encoding="utf-8")
    found = load_contracts([tmp_path])
    assert [file.contract.id for file in found.contracts] == ["a/z", "b", DATA["id"]]
    [problem] = found.problems
    assert str(problem).removeprefix(f"{tmp_path}/").startswith("golden/wrong.json:7: expect.tool")
    [warning] = found.warnings
    assert str(warning).removeprefix(f"{tmp_path}/") == (
        "golden/z.json:8: expect.contains[0]: holds what looks like an e-mail address; "
        "fixtures are synthetic: make one up (x@example.com), or compare a hash"
    )


def test_a_fixture_is_found_by_id_and_by_file(tmp_path: Path) -> None:
    write(tmp_path, golden__a_json=PUBLISHED, b_yaml=MINIMAL)
    by_id = find_contract(DATA["id"], [tmp_path])
    by_file = find_contract(str(tmp_path / "golden" / "a.json"), [tmp_path])
    assert by_id == by_file
    assert (
        by_id.contract.content_hash == read_fixture(PUBLISHED.encode(), "f").contract.content_hash
    )


def test_one_id_twice(tmp_path: Path) -> None:
    write(
        tmp_path,
        a_json=fixture_data(id="same"),
        b_json=fixture_data(id="same"),
        c_yaml=MINIMAL + "id: same\n",
    )
    found = load_contracts([tmp_path])
    assert [file.path.name for file in found.contracts] == ["a.json"]
    assert [str(problem).replace(f"{tmp_path}/", "") for problem in found.problems] == [
        "b.json:2: id: 'same' is also the id of a.json; give one of the two another `id`",
        "c.yaml:4: id: 'same' is also the id of a.json; give one of the two another `id`",
    ]


def test_good_fixtures_are_not_looked_through_for_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """Places cost as much as the rest, and nobody asks for those of a good fixture."""

    def refuse(text: str) -> Any:
        raise AssertionError(text)

    monkeypatch.setattr(fixture_files, "_lines", refuse)
    read_fixture(PUBLISHED.encode(), "f.json")
