"""The view of a file that formats get: encodings, JSON, lines, and what is wrong with them."""

from __future__ import annotations

import codecs
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.adapters.formats import choose_format
from benchmark_assets.adapters.formats.base import (
    TraceFile,
    amount,
    id_or_none,
    parse_time,
    text_or_none,
    whole_number,
)
from benchmark_assets.model.problem import InputError
from tests.adapters.samples import NAME, lines, record, trace_file

DEEP = 100_000


def refusal(data: bytes) -> str:
    with pytest.raises(InputError) as caught:
        choose_format(trace_file(data))
    (problem,) = caught.value.problems
    text = str(problem)
    assert text.startswith(NAME)
    return text.removeprefix(NAME)


@pytest.mark.parametrize("data", [b"", b" ", b"\n\n\t \r\n", codecs.BOM_UTF8, b"\xef\xbb\xbf \n"])
def test_an_empty_file_says_so(data: bytes) -> None:
    assert refusal(data) == ": is empty; remove it or export the trace again"


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"{", 1),
        (b'{"trace_id": "t", "prompt": "p', 1),
        (b'{"trace_id": "t",\n "prompt": "p",\n', 2),
        (b'[\n{"trace_id": "t", "prompt": "p"},\n{"trace_id"', 3),
        (b'{"simulations":\n [{"id": 1},\n\n', 2),
    ],
)
def test_cut_off_json_names_its_last_line(data: bytes, line: int) -> None:
    expected = f":{line}: is cut off in the middle of its JSON; export or copy it again"
    assert refusal(data) == expected


@pytest.mark.parametrize(
    ("data", "line", "offset", "byte"),
    [
        (b"\xff", 1, 0, "ff"),
        (b'{"a":\n"\xe9"}', 2, 7, "e9"),
        (b"\n\n\n  \x80", 4, 5, "80"),
        ('{"prompt": "Größe"}'.encode("latin-1"), 1, 14, "f6"),
        (b"\xed\xa0\x80", 1, 0, "ed"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", 1, 0, "89"),
    ],
)
def test_what_is_not_utf8_names_the_first_wrong_byte(
    data: bytes, line: int, offset: int, byte: str
) -> None:
    expected = f":{line}: is not UTF-8: byte 0x{byte} at offset {offset}; save it as UTF-8"
    assert refusal(data) == expected


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
@pytest.mark.parametrize("content", [json.dumps(record(prompt="Größe 🤖")), "[]", "5"])
def test_a_byte_order_mark_names_the_encoding(mark: bytes, encoding: str, content: str) -> None:
    marked = trace_file(mark + content.encode(encoding))
    assert marked.json == json.loads(content)


def test_json_lines_in_utf16_are_read_too() -> None:
    text = lines(record("a"), record("b")).decode()
    file = trace_file(codecs.BOM_UTF16_LE + text.encode("utf-16-le"))
    assert [value for _, value in file.lines()] == [record("a"), record("b")]


@pytest.mark.parametrize("data", [codecs.BOM_UTF16_LE + b"x", codecs.BOM_UTF16_LE + b"\x00\xd8"])
def test_broken_utf16_is_reported(data: bytes) -> None:
    assert "is not UTF-8: byte" in refusal(data)


@pytest.mark.parametrize("opening", [b"[", b'{"a":'])
@pytest.mark.parametrize("closing", [b"", b"]" * DEEP])
def test_deep_nesting_is_reported(opening: bytes, closing: bytes) -> None:
    assert refusal(opening * DEEP + closing) == ": is nested too deeply to be read"


def test_a_deeply_nested_line_costs_only_itself() -> None:
    file = trace_file(lines(record("a"), "[" * DEEP, record("b")))
    first, deep, last = (value for _, value in file.lines())
    assert isinstance(deep, InputError)
    assert (first, last) == (record("a"), record("b"))


@pytest.mark.parametrize(("word", "column"), [("NaN", 14), ("Infinity", 14), ("-Infinity", 15)])
def test_numbers_that_json_does_not_have_are_located(word: str, column: int) -> None:
    text = refusal(f'{{"trace_id": "t",\n "cost_usd": {word}}}'.encode())
    assert text.startswith(":2: is not JSON: ")
    assert text.endswith(f" at column {column}")


@pytest.mark.parametrize("digits", [19, 20, 30, 300])
def test_huge_whole_numbers_are_kept_exactly(digits: int) -> None:
    number = int("9" * digits)
    assert trace_file(f'{{"n": {number}}}').json == {"n": number}


@pytest.mark.parametrize("number", ["1e999", "9" * 5000])
def test_numbers_beyond_all_bounds_are_reported(number: str) -> None:
    assert "is not JSON" in refusal(f'{{"trace_id": "t", "n": {number}}}'.encode())


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"cut \ud83d", "cut \ufffd"),
        (r"\udd16 cut", "\ufffd cut"),
        (r"\ud83e\ud83e\udd16", "\ufffd🤖"),
        (r"\ud83e\udd16", "🤖"),
        (r"\uD83D x \uDE00", "\ufffd x \ufffd"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\"\ud83d\"", '"\ufffd"'),
        (r"\ud83d\u0041", "\ufffdA"),
    ],
)
def test_half_a_surrogate_pair_costs_one_character_and_not_the_file(
    escaped: str, text: str
) -> None:
    assert trace_file(f'{{"prompt": "{escaped}"}}').json == {"prompt": text}
    ((_, value),) = trace_file(f'\n{{"prompt": "{escaped}"}}\n').lines()
    assert value == {"prompt": text}


def test_half_a_surrogate_pair_does_not_hide_another_fault() -> None:
    assert refusal(rb'{"prompt": "\ud83d", oops}').startswith(":1: is not JSON: ")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n\n", "\r\n \r\n"])
def test_lines_count_blank_ones_and_take_either_ending(end: str) -> None:
    file = trace_file(lines({"n": 1}, {"n": 2}, end=end))
    step = end.count("\n")
    assert list(file.lines()) == [(1, {"n": 1}), (1 + step, {"n": 2})]


def test_the_last_line_needs_no_ending() -> None:
    assert list(trace_file(b'{"n": 1}\n{"n": 2}').lines()) == [(1, {"n": 1}), (2, {"n": 2})]


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ('{"n": ', "is cut off in the middle of its JSON"),
        ("oops", "is not JSON: JSON is malformed: invalid character at column 1"),
        ('{"n": 1} trailing', "trailing characters"),
    ],
)
def test_a_broken_line_is_located_and_the_others_are_read(broken: str, message: str) -> None:
    file = trace_file(lines({"n": 1}, "", broken, {"n": 2}))
    (_, first), (number, error), (_, last) = file.lines()
    assert (first, last, number) == ({"n": 1}, {"n": 2}, 3)
    assert isinstance(error, InputError)
    assert message in str(error)
    assert str(error).startswith(f"{NAME}:3: ")


def test_a_file_of_one_line_is_one_value() -> None:
    file = trace_file(lines(record()))
    assert file.is_json
    assert file.sample == record()


@pytest.mark.parametrize("before", ["", "oops", '{"trace_id": "x', "[1]", "5", "null"])
def test_the_sample_is_the_first_object_among_the_lines(before: str) -> None:
    assert trace_file(lines(before, record("a"), record("b"))).sample == record("a")


def test_a_made_id_depends_on_bytes_and_position_alone() -> None:
    one, other = TraceFile("/a/x.json", "x.json", b"[1]"), TraceFile("/b/y.json", "y.json", b"[1]")
    assert one.made_id("[0]") == other.made_id("[0]") != one.made_id("[1]")
    assert one.made_id("[0]") != TraceFile("/a/x.json", "x.json", b"[2]").made_id("[0]")


def test_a_path_that_is_no_text_can_still_be_stored() -> None:
    file = TraceFile("/data/\udce9.json", "\udce9.json", b"{}")
    assert file.key.encode() == rb"\udce9.json"


@given(st.binary(max_size=200))
def test_any_bytes_are_json_or_a_located_problem(data: bytes) -> None:
    file = trace_file(data)
    try:
        _ = file.json
    except InputError as error:
        said = str(error)
    else:
        said = NAME
    assert said.startswith(NAME)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-01T12:00:00Z", "2026-03-01T12:00:00+00:00"),
        ("2026-03-01T12:00:00", "2026-03-01T12:00:00+00:00"),
        (" 2026-03-01 12:00:00.5 ", "2026-03-01T12:00:00.500000+00:00"),
        ("2026-03-01T01:30:00+02:00", "2026-02-28T23:30:00+00:00"),
        (0, "1970-01-01T00:00:00+00:00"),
        (1772366400.25, "2026-03-01T12:00:00.250000+00:00"),
        ("yesterday", None),
        ("", None),
        (None, None),
        (True, None),
        (1e300, None),
        (float("nan"), None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:00:00-14:00", None),
    ],
)
def test_times(value: object, expected: str | None) -> None:
    found = parse_time(value)
    assert (found and found.isoformat()) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (5, 5),
        (5.0, 5),
        ("5", 5),
        (0, 0),
        (2**53, 2**53),
        (2**53 + 1, None),
        (1e300, None),
        (-1, None),
        (5.5, None),
        ("five", None),
        ("nan", None),
        (float("inf"), None),
        (float("nan"), None),
        (True, None),
        (None, None),
        ([5], None),
    ],
)
def test_whole_numbers(value: object, expected: int | None) -> None:
    assert whole_number(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, 0.0),
        (0.0, 0.0),
        (1.5, 1.5),
        (-0.1, None),
        (1e300, None),
        (float("nan"), None),
        (float("inf"), None),
        ("1.5", None),
        (True, None),
        (None, None),
    ],
)
def test_amounts(value: object, expected: float | None) -> None:
    assert amount(value) == expected


@pytest.mark.parametrize(
    ("value", "text", "identity"),
    [("a", "a", "a"), ("", None, None), (0, None, "0"), (7, None, "7"), (True, None, None)],
)
def test_texts_and_ids(value: object, text: str | None, identity: str | None) -> None:
    assert (text_or_none(value), id_or_none(value)) == (text, identity)
