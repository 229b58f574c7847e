"""Which contracts judge a trace: each condition, their conjunction, and the index over them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from benchmark_assets.model.contract import AppliesTo, Contract
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.scoring import routing
from benchmark_assets.scoring.routing import Router, applies, describe, fold_spaces, metadata_text
from tests.scoring.build import contract, trace

# Field of `applies_to` → the trace's field, and whether that is a list.
FIELDS: dict[str, tuple[str, bool]] = {
    "trace_name": ("name", False),
    "workflow": ("workflow", False),
    "task": ("task", False),
    "environment": ("environment", False),
    "tags": ("tags", True),
    "agent": ("agents", True),
    "prompt": ("prompt", False),
}
# (rule, a text that fits, a text that does not)
RULES: list[tuple[Any, str, str]] = [
    ("alpha", "alpha", "alphabet"),
    ("alpha", "alpha", "Alpha"),
    (["alpha", "beta"], "beta", "gamma"),
    ({"equals": "alpha"}, "alpha", "alpha beta"),
    ({"equals": ["alpha", "beta"]}, "alpha", "gamma"),
    ({"contains": "LPH"}, "alpha", "alp"),
    ({"regex": "^al"}, "alpha", "royal"),
    ({"regex": "ph"}, "alpha", "alpa"),
    ({"glob": "al*a"}, "alpha", "alph"),
    ({"glob": "al*a"}, "ala", "Alpha"),
]
ids = [f"{number}-{rule}" for number, (rule, _, _) in enumerate(RULES)]


def selects(conditions: dict[str, Any], **fields: Any) -> bool:
    """Whether `applies_to` selects the trace: by trying, and by the index, which must agree."""
    wanted, snapshot = contract(applies_to=conditions), trace(**fields)
    by_index = Router([wanted]).route(snapshot) == [0]
    assert applies(wanted, snapshot) == by_index
    return by_index


def test_every_condition_there_is_has_tests() -> None:
    assert set(AppliesTo.model_fields) == {*FIELDS, "metadata", "any_of"}


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize(("rule", "good", "bad"), RULES, ids=ids)
def test_a_condition_holds_or_not(field: str, rule: Any, good: str, bad: str) -> None:
    name, many = FIELDS[field]
    assert selects({field: rule}, **{name: [good] if many else good})
    assert not selects({field: rule}, **{name: [bad] if many else bad})
    assert not selects({field: rule})


@pytest.mark.parametrize("field", ["tags", "agent"])
@pytest.mark.parametrize(("rule", "good", "bad"), RULES, ids=ids)
def test_one_of_several_values_is_enough(field: str, rule: Any, good: str, bad: str) -> None:
    name, _ = FIELDS[field]
    assert selects({field: rule}, **{name: [bad, good]})
    assert selects({field: rule}, **{name: [good, good, bad]})
    assert not selects({field: rule}, **{name: [bad, bad]})


@pytest.mark.parametrize("field", FIELDS)
def test_a_condition_looks_at_its_own_field_only(field: str) -> None:
    others = {
        name: ["x"] if many else "x" for other, (name, many) in FIELDS.items() if other != field
    }
    assert not selects({field: "x"}, **others, metadata={field: "x"})


@pytest.mark.parametrize("left", FIELDS)
@pytest.mark.parametrize("right", [*FIELDS, "metadata"])
def test_all_conditions_must_hold(left: str, right: str) -> None:
    if left == right:
        return
    conditions = {left: "x", right: {"key": {"contains": "y"}} if right == "metadata" else "y"}

    def fields(x: str, y: str) -> dict[str, Any]:
        name, many = FIELDS[left]
        found: dict[str, Any] = {name: [x] if many else x}
        if right == "metadata":
            return {**found, "metadata": {"key": y}}
        name, many = FIELDS[right]
        return {**found, name: [y] if many else y}

    assert selects(conditions, **fields("x", "y"))
    assert not selects(conditions, **fields("x", "n"))
    assert not selects(conditions, **fields("n", "y"))


def test_one_of_several_alternatives_is_enough() -> None:
    either = {"any_of": [{"task": "t"}, {"prompt": "Say  it."}]}
    assert selects(either, task="t")
    assert selects(either, task="t", prompt="other")
    assert selects(either, task="other", prompt=" Say\nit. ")
    assert not selects(either, task="other", prompt="Say it")
    assert not selects(either)


def test_an_alternative_holds_as_a_whole_and_beside_the_others() -> None:
    rule = {"any_of": [{"task": "t", "environment": "prod"}, {"tags": "x"}], "workflow": "w"}
    assert selects(rule, workflow="w", task="t", environment="prod")
    assert selects(rule, workflow="w", tags=["y", "x"])
    assert not selects(rule, workflow="w", task="t", environment="test")
    assert not selects(rule, task="t", environment="prod")
    assert not selects(rule, workflow="w")


def test_alternatives_may_have_alternatives() -> None:
    rule = {"any_of": [{"any_of": [{"task": "a"}, {"task": "b"}], "tags": "x"}, {"task": "c"}]}
    assert selects(rule, task="b", tags=["x"])
    assert selects(rule, task="c")
    assert not selects(rule, task="b")
    assert not selects(rule, tags=["x"])


def test_a_trace_that_fits_two_alternatives_meets_the_contract_once() -> None:
    either = contract(applies_to={"any_of": [{"task": "t"}, {"prompt": "p"}, {"task": "t"}]})
    assert Router([either]).route(trace(task="t", prompt="p")) == [0]


def test_without_conditions_the_workflow_selects() -> None:
    plain = contract(workflow="orders")
    assert applies(plain, trace(workflow="orders"))
    assert not applies(plain, trace(workflow="returns"))
    assert not applies(plain, trace(name="orders"))


def test_conditions_replace_the_workflow() -> None:
    assert selects({"task": "t"}, task="t", workflow="returns")


# Prompts.


@pytest.mark.parametrize(
    "rule",
    [
        "Book a\n  flight",
        {"equals": ["other", " Book  a flight "]},
        {"contains": "A \n FLIGHT\n"},
        {"contains": "book  a f"},
        {"glob": "Book  a\nfl*"},
        {"regex": "^Book a flight$"},
    ],
)
@pytest.mark.parametrize("prompt", ["Book a flight", "  Book\ta \n\n flight\r\n"])
def test_white_space_in_prompts_does_not_matter(rule: Any, prompt: str) -> None:
    assert selects({"prompt": rule}, prompt=prompt)
    assert not selects({"prompt": rule}, prompt="Book another flight")


@pytest.mark.parametrize("field", sorted(set(FIELDS) - {"prompt"}))
@pytest.mark.parametrize("rule", ["a  b", {"contains": "a  b"}, {"glob": "a  b"}])
def test_white_space_elsewhere_does(field: str, rule: Any) -> None:
    name, many = FIELDS[field]
    assert selects({field: rule}, **{name: ["a  b"] if many else "a  b"})
    assert not selects({field: rule}, **{name: ["a b"] if many else "a b"})


@given(st.text())
def test_folding_twice_changes_nothing(text: str) -> None:
    assert fold_spaces(fold_spaces(text)) == fold_spaces(text)


# Metadata.


@pytest.mark.parametrize(("rule", "good", "bad"), RULES, ids=ids)
def test_metadata_texts(rule: Any, good: str, bad: str) -> None:
    assert selects({"metadata": {"key": rule}}, metadata={"key": good})
    assert not selects({"metadata": {"key": rule}}, metadata={"key": bad})
    assert not selects({"metadata": {"key": rule}}, metadata={"other": good})
    assert not selects({"metadata": {"key": rule}}, metadata={"key": None})
    assert not selects({"metadata": {"key": rule}}, metadata={})


@pytest.mark.parametrize(
    ("rule", "value", "fit"),
    [
        (5, 5, True),
        (5, "5", True),
        ("5", 5, True),
        (5, 6, False),
        (5, 50, False),
        (1.5, 1.5, True),
        (1.5, "1.5", True),
        (True, True, True),
        (False, False, True),
        (True, False, False),
        (True, "true", True),
        ("true", True, True),
        (True, 1, False),
        (1, True, False),
        (False, 0, False),
        (["1", "2"], 2, True),
        ({"regex": "^[0-9]+$"}, 42, True),
        ({"contains": '"a":1'}, {"a": 1}, True),
        ({"equals": '{"a":1,"b":2}'}, {"b": 2, "a": 1}, True),
        ({"contains": "é"}, ["é"], True),
        ({"glob": "[[]*]"}, [1, 2], True),
        ({"regex": "^$"}, "", True),
        ({"regex": "^"}, None, False),
    ],
)
def test_metadata_are_compared_as_text(rule: Any, value: Any, fit: bool) -> None:
    assert selects({"metadata": {"key": rule}}, metadata={"key": value}) is fit


@given(st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_metadata_value_selects_itself(value: Any) -> None:
    assert selects({"metadata": {"key": value}}, metadata={"key": value})


@pytest.mark.parametrize("number", [1e22, 1e16, 1.5e-7, 1e-5, 5e-324, -0.0, 123456789.123])
def test_numbers_of_any_size_are_spelled_alike(number: float) -> None:
    assert selects({"metadata": {"key": number}}, metadata={"key": number})
    assert selects({"metadata": {"key": str(number)}}, metadata={"key": number})


@pytest.mark.parametrize(
    ("metadata", "key", "text"),
    [
        ({"a": {"b": {"c": "x"}}}, "a.b.c", "x"),
        ({"a": {"b": 5}}, "a.b", "5"),
        ({"a": {"b": False}}, "a.b", "false"),
        ({"a.b": "flat", "a": {"b": "nested"}}, "a.b", "flat"),
        ({"a.b": None, "a": {"b": "nested"}}, "a.b", "nested"),
        ({"a": {"b": None}}, "a.b", None),
        ({"a": "x"}, "a.b", None),
        ({"a": [{"b": 1}]}, "a.b", None),
        ({}, "a.b", None),
        ({"a": {"b": 1}}, "a", '{"b":1}'),
        ({"": "empty"}, "", "empty"),
    ],
)
def test_metadata_by_dotted_path(metadata: dict[str, Any], key: str, text: str | None) -> None:
    assert metadata_text(metadata, key) == text
    assert selects({"metadata": {key: {"regex": "(?s)^"}}}, metadata=metadata) is (text is not None)


def test_all_metadata_conditions_must_hold() -> None:
    conditions = {"metadata": {"a": "1", "b": "2"}}
    assert selects(conditions, metadata={"a": "1", "b": "2", "c": "3"})
    assert not selects(conditions, metadata={"a": "1", "b": "3"})
    assert not selects(conditions, metadata={"a": "1"})


# What may be written.


@pytest.mark.parametrize(
    "conditions",
    [
        {},
        {"metadata": {}},
        {"task": None},
        {"any_of": []},
        {"any_of": [], "metadata": {}},
        {"any_of": [{}]},
        {"any_of": [{"task": "x"}, {}]},
        {"any_of": [{"task": "x"}, {"task": None}]},
        {"any_of": [{"any_of": []}]},
        {"any_of": {"task": "x"}},
        {"any_of": [["task", "x"]]},
        {"worklow": "x"},
        {"task": {"equals": "x", "glob": "y"}},
        {"task": {}},
        {"task": {"startswith": "x"}},
        {"task": {"regex": "("}},
        {"task": {"regex": ""}},
        {"task": 5},
        {"task": ""},
        {"task": " \n"},
        {"task": []},
        {"task": ["a", "\t"]},
        {"task": {"equals": []}},
        {"task": {"contains": " "}},
        {"task": {"glob": " "}},
        {"tags": []},
        {"metadata": {"key": []}},
        {"metadata": {"key": " "}},
        {"metadata": {"key": {"regex": "["}}},
        {"metadata": {"key": None}},
    ],
)
def test_conditions_that_cannot_be_meant_are_refused(conditions: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        contract(applies_to=conditions)


# The index.

WORDS = ["a", "b", "ab", "a b"]
words = st.sampled_from(WORDS)
rules = st.one_of(
    words,
    st.lists(words, min_size=1, max_size=3),
    words.map(lambda text: {"contains": text}),
    words.map(lambda text: {"regex": text}),
    words.map(lambda text: {"glob": f"{text}*"}),
)
BY_FIELD: dict[str, Any] = {
    **dict.fromkeys(FIELDS, rules),
    "metadata": st.dictionaries(st.sampled_from(["k", "k.l"]), rules, min_size=1, max_size=2),
}
conditions = st.recursive(
    st.fixed_dictionaries({}, optional=BY_FIELD).filter(bool),
    lambda inner: st.fixed_dictionaries(
        {"any_of": st.lists(inner, min_size=1, max_size=3)}, optional=BY_FIELD
    ),
    max_leaves=6,
)
traces = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.lists(words, max_size=3) if many else words for name, many in FIELDS.values()},
        "metadata": st.dictionaries(st.just("k"), words | st.dictionaries(st.just("l"), words)),
    },
)


@given(st.lists(conditions, max_size=8), traces)
def test_the_index_finds_what_trying_every_contract_finds(
    many: list[dict[str, Any]], fields: dict[str, Any]
) -> None:
    contracts = [contract(applies_to=one) for one in many]
    snapshot = trace(**fields)
    tried = [index for index, one in enumerate(contracts) if applies(one, snapshot)]
    assert Router(contracts).route(snapshot) == tried


def test_several_contracts_in_their_order() -> None:
    contracts = [
        contract(applies_to={"workflow": {"glob": "*"}}),
        contract(applies_to={"task": ["t", "u"]}),
        contract(applies_to={"tags": ["x", "y"]}),
        contract(applies_to={"task": "other"}),
        contract(applies_to={"workflow": "w"}),
    ]
    found = Router(contracts).route(trace(workflow="w", task="t", tags=["y", "x", "y"]))
    assert found == [0, 1, 2, 4]
    assert Router([]).route(trace()) == []


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Contract]:
    """The contracts that `applies` was asked about, in order."""
    asked: list[Contract] = []

    def counting(one: Contract, snapshot: TraceSnapshot) -> bool:
        asked.append(one)
        return applies(one, snapshot)

    monkeypatch.setattr(routing, "applies", counting)
    return asked


@pytest.mark.parametrize("field", [*FIELDS])
@pytest.mark.parametrize(
    "rule", [lambda n: f"x/{n}", lambda n: ["y", f"x/{n}"]], ids=["one", "two"]
)
def test_of_300_contracts_a_trace_meets_only_its_own(
    tried: list[Contract], field: str, rule: Any
) -> None:
    contracts = [contract(applies_to={field: rule(n)}) for n in range(300)]
    router = Router(contracts)
    name, many = FIELDS[field]
    for n in (0, 7, 299):
        tried.clear()
        value = f"x/{n}"
        assert router.route(trace(**{name: [value] if many else value})) == [n]
        assert len(tried) == 1


def test_contracts_are_filed_under_the_condition_that_selects_most(tried: list[Contract]) -> None:
    # All share the workflow, as a benchmark's do; the task tells them apart.
    contracts = [
        contract(applies_to={"workflow": "w", "environment": "e", "task": f"w/{n}"})
        for n in range(300)
    ]
    fields = {"workflow": "w", "environment": "e", "task": "w/41"}
    assert Router(contracts).route(trace(**fields)) == [41]
    assert len(tried) == 1


def test_contracts_without_equality_are_tried_on_every_trace(tried: list[Contract]) -> None:
    contracts = [contract(applies_to={"task": f"t{n}"}) for n in range(300)]
    contracts += [contract(applies_to={"task": {"regex": f"^t{n}$"}}) for n in range(3)]
    contracts += [contract(applies_to={"metadata": {"k": "v"}})]
    assert Router(contracts).route(trace(task="t1", metadata={"k": "v"})) == [1, 301, 303]
    assert len(tried) == 5


def test_alternatives_are_filed_under_each_of_them(tried: list[Contract]) -> None:
    contracts = [
        contract(applies_to={"any_of": [{"task": f"t{number}"}, {"prompt": f"p {number}"}]})
        for number in range(300)
    ]
    contracts.append(contract(applies_to={"any_of": [{"task": "x"}, {"prompt": {"glob": "x*"}}]}))
    fields = {"task": "t41", "prompt": "p  7"}
    assert Router(contracts).route(trace(**fields)) == [7, 41]
    # The last has an alternative that no index can find.
    assert [contracts.index(one) for one in tried] == [7, 41, 300]


def test_a_trace_that_nothing_selects_meets_no_contract(tried: list[Contract]) -> None:
    contracts = [contract(applies_to={"task": f"t{n}"}) for n in range(300)]
    assert Router(contracts).route(trace(task="other", workflow="orders", tags=["t1"])) == []
    assert tried == []


def test_a_stored_snapshot_is_routed_as_the_original() -> None:
    fields = {"task": "t", "tags": ["x"], "metadata": {"k": {"l": 1.0}}, "prompt": "a  b"}
    original = trace(**fields)
    stored = msgspec.json.decode(msgspec.json.encode(original), type=TraceSnapshot)
    contracts = [
        contract(applies_to={"metadata": {"k.l": 1.0}}),
        contract(applies_to={"prompt": "a b", "tags": "x", "task": "t"}),
    ]
    assert Router(contracts).route(original) == Router(contracts).route(stored) == [0, 1]


# In words.


@pytest.mark.parametrize(
    ("conditions", "words"),
    [
        (None, "workflow orders"),
        ({"workflow": "refunds"}, "workflow refunds"),
        ({"task": ["t1", "t2", "t 3"]}, "task t1 or t2 or t 3"),
        ({"tags": {"glob": "nightly-*"}}, "tags glob nightly-*"),
        ({"agent": {"contains": "refund"}}, "agent contains refund"),
        ({"prompt": {"regex": "^a|b$"}}, "prompt regex ^a|b$"),
        ({"trace_name": {"equals": "x"}}, "trace_name x"),
        ({"metadata": {"team": "pay", "build": 7}}, "metadata team pay and metadata build 7"),
        (
            {"metadata": {"a.b": {"glob": "*"}, "beta": True}},
            "metadata a.b glob * and metadata beta true",
        ),
        (
            {"metadata": {"k": "v"}, "environment": "prod", "workflow": ["a", "b"], "task": "t"},
            "task t and workflow a or b and environment prod and metadata k v",
        ),
        ({"any_of": [{"task": "t"}, {"prompt": "p"}]}, "task t or prompt p"),
        ({"any_of": [{"task": "t"}], "tags": "x"}, "tags x and task t"),
        (
            {"any_of": [{"task": "t", "tags": "y"}, {"prompt": "p"}], "workflow": "w"},
            "workflow w and (task t and tags y or prompt p)",
        ),
    ],
)
def test_conditions_are_described_in_words(conditions: Any, words: str) -> None:
    given_ = {} if conditions is None else {"applies_to": conditions}
    assert describe(contract(**given_).applies_to) == words


@pytest.mark.parametrize("field", [*FIELDS, "metadata"])
@pytest.mark.parametrize(("rule", "good", "bad"), RULES, ids=ids)
def test_every_condition_is_in_the_description(field: str, rule: Any, good: str, bad: str) -> None:
    conditions = {field: {"key": rule} if field == "metadata" else rule}
    words = describe(contract(applies_to=conditions).applies_to)
    assert words.startswith("metadata key " if field == "metadata" else f"{field} ")
    value = next(iter(rule.values())) if isinstance(rule, dict) else rule
    for text in [value] if isinstance(value, str) else value:
        assert text in words
