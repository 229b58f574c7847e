"""Reading YAML without surprises, and pydantic's findings in the words of the file."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Discriminator

from benchmark_assets.adapters import yaml_files
from benchmark_assets.adapters.yaml_files import (
    MAX_BYTES,
    Document,
    key_text,
    look_up,
    parse_yaml,
    read_yaml,
    shown_path,
    validate,
)
from benchmark_assets.model.problem import InputError, Problem

CASES = Path(__file__).parents[1] / "data" / "contracts"


def parse(text: str, **options: bool) -> Document:
    return parse_yaml(text.encode(), "f.yaml", **options)


def refused(text: str | bytes, **options: bool) -> list[str]:
    data = text if isinstance(text, bytes) else text.encode()
    with pytest.raises(InputError) as caught:
        parse_yaml(data, "f.yaml", **options)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("", None),
        ("~", None),
        ("null", None),
        ("true", True),
        ("off", False),
        ("0", 0),
        ("-12", -12),
        ("+7", 7),
        ("0x1F", 31),
        ("0o17", 15),
        ("1.10", 1.1),
        ("1e3", 1000.0),
        ("1.5e-3", 0.0015),
        (".5", 0.5),
        ("1.2.3", "1.2.3"),
        ("2026-01-31", "2026-01-31"),
        ("2026-01-31T10:00:00Z", "2026-01-31T10:00:00Z"),
        ("y", "y"),
        ("'no'", "no"),
        ('"1.10"', "1.10"),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("ünï", "ünï"),
        ("e5", "e5"),
        ("-", None),
    ],
)
def test_scalars_mean_what_json_means(written: str, meant: Any) -> None:
    if written == "-":  # a list of one empty item
        assert parse("a:\n  -").data == {"a": [None]}
        return
    value = parse(f"a: {written}").data["a"]
    assert value == meant
    assert type(value) is type(meant)


@pytest.mark.parametrize("written", ["010", "0777", "1_000", "12:30", "1:20:30", "0.1_5", "-0_1"])
def test_a_number_that_readers_disagree_on_is_refused(written: str) -> None:
    document = parse(f"a:\n  b: {written}")
    [problem] = document.problems
    assert (problem.line, problem.key) == (2, "a.b")
    assert f"`{written}`" in problem.message
    assert f'"{written}"' in str(problem.cure)
    assert parse(f'a: "{written}"').problems == ()


@pytest.mark.parametrize("written", [".inf", "-.INF", ".nan", "1e999", "9" * 5000])
def test_a_number_without_a_finite_value_is_refused(written: str) -> None:
    [problem] = parse(f"a: {written}").problems
    assert "no finite number" in problem.message
    assert len(str(problem)) < 200


def test_keys_are_texts_as_written() -> None:
    assert parse("{no: 1, 5: 2, 1.10: 3, ~: 4, 2026-01-31: 5}").data == {
        "no": 1,
        "5": 2,
        "1.10": 3,
        "~": 4,
        "2026-01-31": 5,
    }


def test_days_on_request() -> None:
    document = parse("a: 2026-01-31\nb: 2026-02-30\nc: '2026-01-31'\n", dates=True)
    assert document.data == {"a": date(2026, 1, 31), "b": "2026-02-30", "c": "2026-01-31"}


def test_every_value_has_its_line_and_plain_ones_their_spelling() -> None:
    document = parse("# first\na:\n  - x\n  -\n    b: no\n    c:\n      'no'\n")
    assert {key_text(path): place.line for path, place in document.places.items()} == {
        "": 2,
        "a": 2,
        "a[0]": 3,
        "a[1]": 5,
        "a[1].b": 5,
        "a[1].c": 6,
    }
    assert document.raw(("a", 1, "b")) == "no"
    assert document.raw(("a", 1, "c")) is None
    assert list(document.yes_no()) == [("a", 1, "b")]
    assert document.line(("a", 1, "missing", 0)) == 5


def test_aliases_are_written_out_and_share_nothing() -> None:
    document = parse("a: &x {k: [1]}\nb: *x\nc:\n  <<: [{k: 3, m: 4}, *x]\n  n: 5\n")
    assert document.data == {"a": {"k": [1]}, "b": {"k": [1]}, "c": {"n": 5, "k": 3, "m": 4}}
    document.data["a"]["k"].append(2)
    assert document.data["b"] == {"k": [1]}
    assert document.line(("b",)) == 2
    assert document.line(("b", "k")) == 1


def test_merges_reach_through_merges() -> None:
    text = "a: &a {k: 1, l: 1, m: 1}\nb: &b {<<: *a, l: 2}\nc: {m: 3, <<: *b}\nd: {'<<': 4}\n"
    document = parse(text)
    assert document.problems == ()
    assert document.data["b"] == {"l": 2, "k": 1, "m": 1}
    assert document.data["c"] == {"m": 3, "l": 2, "k": 1}
    assert document.data["d"] == {"<<": 4}
    assert document.line(("c", "k")) == 1


@pytest.mark.parametrize("merge", ["*a{0}", "[*a{0}, *a{0}]"])
def test_long_chains_of_merges_end(merge: str) -> None:
    lines = ["a0: &a0 {k: 1}"]
    lines += [f"a{i}: &a{i} {{<<: {merge.format(i - 1)}}}" for i in range(1, 3000)]
    assert "holds more than 100,000 values" in refused("\n".join(lines))[0]


def test_all_duplicates_are_named_with_both_lines() -> None:
    document = parse("a: 1\nb:\n  c: 1\n  c: 2\na: 2\n")
    assert [str(problem) for problem in document.problems] == [
        "f.yaml:4: b.c: is here twice, first at f.yaml:3; keep one of them",
        "f.yaml:5: a: is here twice, first at f.yaml:1; keep one of them",
    ]


def test_giving_up_on_a_file_keeps_what_was_found_before() -> None:
    text = "a: 1\na: 2\nb: {c: {d: *e}}\n"
    assert len(refused(text)) == 1  # nothing is known of keys before all references are
    text = "a: 1\na: 2\nb: " + "{c: " * 9 + "&x [" + "1," * yaml_files.MAX_VALUES + "]" + "}" * 9
    duplicate, too_many = refused(text)
    assert duplicate.startswith("f.yaml:2: a: is here twice")
    assert too_many.startswith("f.yaml:3: holds more than 100,000 values")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [*]", "`*` or `&` without quotes"),
        ("a: @b", "cannot start with `@`"),
        ("a: `b`", "cannot start with ```"),
        ("a: 'b", "the quote opened on line 1 is never closed"),
        ('a: "b" c', "goes on after a value that has ended"),
        ("a: {b: 1", "the mapping opened by `{` on line 1"),
        ("a:\n  - b\n - c", "does not line up"),
        ("a: b: c", "a `:` where no key can stand"),
        ("a: 1\nb\nc: 2", "f.yaml:2: column 1: a line without `:`"),
        ("a: [b,\n\tc: ]d", "f.yaml:2"),
        ("%FOO\n---\na: 1", "instruction to YAML"),
        ('a: "\\ud800"', "no character"),
        ("null", "is empty"),
        ("a text", "is a text"),
        ("? [a]\n: b\n...\n---\nc: 1", "second document"),
    ],
)
def test_what_is_no_yaml_is_said_in_plain_words(text: str, said: str) -> None:
    assert said in refused(text)[0]


def test_a_key_that_is_no_text_and_a_merge_of_no_mapping() -> None:
    assert [str(problem) for problem in parse("a: {[b]: 1}\n<<: 5\n").problems] == [
        "f.yaml:1: a: has a list or a mapping for a key; a key is a text",
        "f.yaml:2: <<: merges what is no mapping; give it *name of a mapping",
    ]


@pytest.mark.parametrize("text", ["[" * 5000, "- " * 5000 + "x", "{a: " * 5000])
def test_deep_nesting_is_refused_and_not_a_crash(text: str) -> None:
    [said] = refused(text)
    assert said.startswith("f.yaml:1: ")
    assert said.endswith("is nested more than 60 levels deep")


def test_aliases_cannot_nest_deeper_either() -> None:
    text = "a0: &a0 {k: 1}\n" + "".join(f"a{i}: &a{i} {{k: *a{i - 1}}}\n" for i in range(1, 70))
    assert "is nested more than 60 levels deep" in refused(text)[0]


def test_an_empty_file_may_be_allowed() -> None:
    assert parse("# nothing set\n", may_be_empty=True).data == {}
    assert parse("", may_be_empty=True).line(("store",)) == 1


def test_missing_unreadable_and_oversized_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.yaml: cannot be read: No such file"):
        read_yaml(tmp_path / "no.yaml")
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_yaml(tmp_path)
    large = tmp_path / "large.yaml"
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(InputError, match=r"4,000,001 bytes.*is it a trace file\?"):
        read_yaml(large)


def test_paths_are_shown_relative_where_that_is_shorter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert shown_path(tmp_path / "a" / "b.yaml") == "a/b.yaml"
    assert shown_path(Path("/elsewhere/b.yaml")) == "/elsewhere/b.yaml"
    assert shown_path(Path("a/../b.yaml")) == "a/../b.yaml"


def test_without_libyaml_the_data_and_the_lines_are_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fast = [read_yaml(path) for path in sorted((CASES / "good").glob("*.yaml"))]
    monkeypatch.setattr(yaml_files, "_Loader", yaml.SafeLoader)
    slow = [read_yaml(path) for path in sorted((CASES / "good").glob("*.yaml"))]
    assert slow == fast
    assert len(slow) >= 4


# Beyond the basic plane JSON's escapes come in pairs, which YAML does not know.
TEXTS = st.text(st.characters(codec="utf-8", max_codepoint=0xFFFF), max_size=50)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(TEXTS, JSON, max_size=4))
def test_json_is_read_as_json(data: dict[str, Any]) -> None:
    document = parse(json.dumps(data))
    assert document.problems == ()
    assert document.data == data
    assert json.dumps(document.data) == json.dumps(data)
    for path, place in document.places.items():
        value = look_up(data, path)
        assert (place.raw is None) == isinstance(value, str | list | dict)


@given(st.binary(max_size=60) | st.text(alphabet="ab:- \n\t[]{}&*!|>'\"#%@,?<0.", max_size=60))
def test_any_bytes_are_data_or_a_located_problem(noise: bytes | str) -> None:
    data = noise if isinstance(noise, bytes) else noise.encode()
    problems: tuple[Problem, ...] = ()
    try:
        document = parse_yaml(data, "f.yaml")
    except InputError as error:
        problems = error.problems
    else:
        json.dumps(document.data, allow_nan=False)
    assert all(problem.file == "f.yaml" and problem.line for problem in problems)


class _Files(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    kind: Literal["files"]
    path: str


class _Server(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    kind: Literal["server"]
    host: str
    port: int | str = 80


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    sources: list[Annotated[_Files | _Server, Discriminator("kind")]] = []
    limits: dict[str, int | float] = {}
    day: date | None = None


def invalid(text: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        validate(parse(text, dates=True), _Settings)
    return [str(problem) for problem in caught.value.problems]


def test_union_members_do_not_show_in_paths() -> None:
    assert invalid(
        "sources:\n"
        "  - {kind: server, hsot: a}\n"
        "  - {kind: sever, host: a}\n"
        "  - host: a\n"
        "  - {kind: files, path: 5}\n"
        "  - {kind: server, host: a, port: [1]}\n"
        "limits:\n"
        "  a: many\n"
        "day: 2026-02-30\n"
    ) == [
        "f.yaml:2: sources[0].host: is missing; add `host: …`",
        "f.yaml:2: sources[0].hsot: is not a known key; did you mean 'host'?",
        (
            "f.yaml:3: sources[1].kind: expected one of files, server, found 'sever'; "
            "did you mean 'server'?"
        ),
        "f.yaml:4: sources[2].kind: is missing; add `kind: …`",
        'f.yaml:5: sources[3].path: expected a text, found the number 5; quote it: path: "5"',
        "f.yaml:6: sources[4].port: expected a whole number or a text, found a list",
        "f.yaml:8: limits.a: expected a whole number or a number, found 'many'",
        "f.yaml:9: day: expected a date such as 2026-01-31, found '2026-02-30'",
    ]


def test_problems_of_the_text_and_of_the_model_come_together_by_line() -> None:
    assert invalid("limit: {}\nlimits: {a: 010}\nlimits: {}\nsources: [{kind: files}]\n") == [
        "f.yaml:1: limit: is not a known key; did you mean 'limits'?",
        (
            "f.yaml:2: limits.a: YAML readers disagree on whether `010` is a text or which number; "
            'quote it, "010", or write the number in plain decimals'
        ),
        "f.yaml:3: limits: is here twice, first at f.yaml:2; keep one of them",
        "f.yaml:4: sources[0].path: is missing; add `path: …`",
    ]
