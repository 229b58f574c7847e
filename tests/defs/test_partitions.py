"""Partition keys and packing, with Dagster itself as the judge of what a range covers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import dagster as dg
import pytest
from dagster._core.definitions.partitions.context import partition_loading_context
from dagster._core.definitions.partitions.partition_key_range import PartitionKeyRange
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
)
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmark_assets.defs import partitions
from benchmark_assets.defs.partitions import (
    KeyRange,
    Span,
    key_of,
    parts_of,
    ranges,
    rectangles,
    span,
)
from benchmark_assets.model.identity import partition_key, unpartition_key

# Neither sorted nor sortable as numbers: Dagster keeps the order in which keys were added.
ROWS = ["r9", "r10", "a/b", "r1", "z", "c%7Cd"]
COLUMNS = ["m2", "openai/gpt-4o", "m1", "x y", "ü"]
CELLS = list(itertools.product(ROWS, COLUMNS))


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    """A real instance that knows `ROWS` as contracts and `COLUMNS` as models."""
    with dg.DagsterInstance.ephemeral() as made:
        made.add_dynamic_partitions("contract", ROWS)
        made.add_dynamic_partitions("model", COLUMNS)
        yield made


def in_dagster(instance: dg.DagsterInstance, packed: list[KeyRange]) -> list[str]:
    """The partitions that Dagster runs for some ranges, with repetitions."""
    return [
        key
        for item in packed
        for key in partitions.cells.get_partition_keys_in_range(
            PartitionKeyRange(item.start, item.end), dynamic_partitions_store=instance
        )
    ]


def as_keys(wanted: set[tuple[str, str]]) -> list[str]:
    return sorted(f"{row}|{column}" for row, column in wanted)


def drawn(picture: str) -> set[tuple[str, str]]:
    """`"#.# .##"`: rows separated by spaces, `#` is wanted."""
    return {
        (ROWS[a], COLUMNS[b])
        for a, line in enumerate(picture.split())
        for b, sign in enumerate(line)
        if sign == "#"
    }


@settings(deadline=None)
@given(st.sets(st.sampled_from(CELLS)))
@example(set())
@example(set(CELLS))
def test_rectangles_cover_what_is_wanted_once_and_nothing_else(
    instance: dg.DagsterInstance, wanted: set[tuple[str, str]]
) -> None:
    packed = rectangles(wanted, ROWS, COLUMNS)
    assert sorted(in_dagster(instance, packed)) == as_keys(wanted)
    assert sum(item.size for item in packed) == len(wanted)
    for item in packed:
        assert len(in_dagster(instance, [item])) == item.size


def lines(wanted: set[tuple[str, str]], *, by_row: bool) -> int:
    """Contiguous lines: what Dagster's own backfill would start."""
    first, second = (ROWS, COLUMNS) if by_row else (COLUMNS, ROWS)
    count = 0
    for a in first:
        hits = [((a, b) if by_row else (b, a)) in wanted for b in second]
        count += sum(hit and not before for hit, before in zip(hits, [False, *hits], strict=False))
    return count


@given(st.sets(st.sampled_from(CELLS)))
def test_never_more_than_contiguous_lines(wanted: set[tuple[str, str]]) -> None:
    packed = rectangles(wanted, ROWS, COLUMNS)
    assert len(packed) <= min(lines(wanted, by_row=True), lines(wanted, by_row=False))


@given(st.sets(st.sampled_from(CELLS)))
def test_the_order_of_what_is_wanted_never_matters(wanted: set[tuple[str, str]]) -> None:
    backwards = sorted(wanted, reverse=True)
    assert rectangles(backwards, ROWS, COLUMNS) == rectangles(sorted(wanted), ROWS, COLUMNS)


@pytest.mark.parametrize(
    ("picture", "fewest"),
    [
        ("", 0),
        ("...", 0),
        ("#", 1),
        ("##### ##### ##### ##### ##### #####", 1),  # everything
        ("..... .###. .###. ..... ..... .....", 1),  # a block inside
        ("..#.. ..#.. ..#.. ..#.. ..#.. ..#..", 1),  # one model under all contracts
        ("..... ##### ..... ..... ..... .....", 1),  # one contract of all models
        ("#.#", 2),  # a hole in a row
        ("# . #", 2),  # a hole in a column
        ("#. .#", 2),  # a diagonal
        ("##### ##### ..... ..... ##### #####", 2),  # contracts in two places
        ("##..# ##..# ##..#", 2),  # models in two places
        ("#.. #.. ###", 2),  # an L
        ("### .#. .#.", 2),  # a T
        ("#.# #.# ###", 3),  # a U
        (".#. ### .#.", 3),  # a plus
        ("### #.# ###", 4),  # a ring
        ("#.. ##. ###", 3),  # stairs
        ("#.#.# .#.#. #.#.#", 8),  # a chessboard
        ("##... ##... ..### ..###", 2),
        ("###.. ###.. ##### #####", 2),
        ("##.## ##.## ..... ##.## ##.##", 4),
    ],
)
def test_fewest_on_shapes_that_occur(
    instance: dg.DagsterInstance, picture: str, fewest: int
) -> None:
    wanted = drawn(picture)
    packed = rectangles(wanted, ROWS, COLUMNS)
    assert len(packed) == fewest
    assert sorted(in_dagster(instance, packed)) == as_keys(wanted)


def test_ranges_start_at_their_first_key() -> None:
    """A reversed range would silently be empty in Dagster."""
    (packed,) = rectangles(drawn(".##. .##. .##."), ROWS, COLUMNS)
    assert packed == KeyRange("r9|openai/gpt-4o", "a/b|m1", 6)


def test_snapshots_are_dates_by_models(instance: dg.DagsterInstance) -> None:
    first = date(2026, 1, 1)
    days = [(first + timedelta(days=n)).isoformat() for n in range(40)]
    wanted = {(day, model) for day in days[3:36] for model in ("openai/gpt-4o", "m1")}
    wanted |= {(days[39], "ü")}
    packed = rectangles(wanted, days, COLUMNS)
    assert packed == [
        KeyRange(f"{days[3]}|openai/gpt-4o", f"{days[35]}|m1", 66),
        KeyRange(f"{days[39]}|ü", f"{days[39]}|ü", 1),
    ]
    covered = [
        key
        for item in packed
        for key in partitions.snapshots(Span(first, first)).get_partition_keys_in_range(
            PartitionKeyRange(item.start, item.end), dynamic_partitions_store=instance
        )
    ]
    assert sorted(covered) == as_keys(wanted)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ([], []),
        (["a"], [("a", "a", 1)]),
        (["e"], [("e", "e", 1)]),
        (["a", "b", "c", "d", "e"], [("a", "e", 5)]),
        (["c", "a", "b"], [("a", "c", 3)]),
        (["a", "c", "e"], [("a", "a", 1), ("c", "c", 1), ("e", "e", 1)]),
        (["e", "d", "a"], [("a", "a", 1), ("d", "e", 2)]),
        (["b", "b", "b"], [("b", "b", 1)]),
    ],
)
def test_ranges(wanted: list[str], expected: list[tuple[str, str, int]]) -> None:
    assert ranges(wanted, "abcde") == [KeyRange(*item) for item in expected]


def test_ranges_follow_the_order_of_dagster_and_not_the_alphabet() -> None:
    assert ranges({"r1", "a/b"}, ROWS) == [KeyRange("a/b", "r1", 2)]
    assert ranges({"r1", "r10"}, ROWS) == [KeyRange("r10", "r10", 1), KeyRange("r1", "r1", 1)]


@settings(deadline=None)
@given(st.sets(st.sampled_from(ROWS)))
def test_ranges_cover_what_is_wanted_in_the_fewest(
    instance: dg.DagsterInstance, wanted: set[str]
) -> None:
    packed = ranges(wanted, ROWS)
    with partition_loading_context(dynamic_partitions_store=instance):
        covered = [
            key
            for item in packed
            for key in partitions.contracts.get_partition_keys_in_range(
                PartitionKeyRange(item.start, item.end)
            )
        ]
    assert sorted(covered) == sorted(wanted)
    assert sum(item.size for item in packed) == len(wanted)
    hits = [key in wanted for key in ROWS]
    starts = sum(hit and not before for hit, before in zip(hits, [False, *hits], strict=False))
    assert len(packed) == starts


def test_tags_are_those_that_dagster_reads() -> None:
    assert KeyRange("a|b", "c|d", 4).tags() == {
        ASSET_PARTITION_RANGE_START_TAG: "a|b",
        ASSET_PARTITION_RANGE_END_TAG: "c|d",
    }


HOSTILE = [
    "openai/gpt-4o",
    "a|b",
    "||",
    "|",
    ".",
    "..",
    "...",
    "....",
    "a...b......c",
    "%7C",
    "%257C",
    "100%",
    "%",
    " leading",
    "trailing ",
    "  ",
    "\u3000wide\u3000",
    "new\nline\r\n",
    "tab\there",
    "nul\0",
    "bell\a",
    "\x7f\x85",
    "Ünïcødé 模型 🤖",
    "a=b",
    "*",
    "[a]",
    "'\"`",
    "a,b",
    "x" * 500,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_are_partitions_and_come_back(name: str) -> None:
    with dg.DagsterInstance.ephemeral() as fresh:
        fresh.add_dynamic_partitions("model", [partition_key(name)])
        fresh.add_dynamic_partitions("contract", [partition_key("c")])
        (key,) = partitions.cells.get_partition_keys(dynamic_partitions_store=fresh)
    assert key == key_of("c", name)
    assert parts_of(key) == ("c", name)
    assert parts_of(key_of(name, name)) == (name, name)


@given(st.text(), st.text())
@example("a|b", "c")
@example("a", "b|c")
@example("%", "7C")
def test_key_of_has_an_inverse(first: str, second: str) -> None:
    assert parts_of(key_of(first, second)) == (first, second)
    assert unpartition_key(partition_key(first)) == first


@given(st.text(alphabet="a|%.7C \n", max_size=8), st.text(alphabet="a|%.7C \n", max_size=8))
def test_no_two_names_share_a_key(one: str, other: str) -> None:
    assert (partition_key(one) == partition_key(other)) == (one == other)


@pytest.mark.parametrize("name", ["gpt-4o", "openai/gpt-4o", "a b", "v1.2..3", "ü", "refund/basic"])
def test_readable_names_stay_as_they_are(name: str) -> None:
    assert partition_key(name) == name


def test_dimensions_are_in_the_order_of_the_keys() -> None:
    """Dagster spells a key by its dimensions' names in alphabetical order."""
    assert partitions.cells.partition_dimension_names == ["contract", "model"]
    assert partitions.snapshots(
        Span(date(2026, 1, 1), date(2026, 1, 1))
    ).partition_dimension_names == ["date", "model"]
    key = dg.MultiPartitionKey({"model": "m", "contract": "c"})
    assert str(key) == key_of("c", "m")


def test_days_go_up_to_today_in_utc() -> None:
    before = datetime.now(UTC).date()
    found = partitions.dates(span(before - timedelta(days=3), [])).get_partition_keys()
    named = partitions.today()
    after = datetime.now(UTC).date()
    assert found[0] == (before - timedelta(days=3)).isoformat()
    assert found[-1] in {before.isoformat(), after.isoformat()}
    assert named in {before.isoformat(), after.isoformat()}


@pytest.mark.parametrize("ahead", [1, 30, 366])
def test_days_go_beyond_today_to_the_last_one_with_data(ahead: int) -> None:
    """Clocks differ, and so do those of machines that look at the same data."""
    today = date.fromisoformat(partitions.today())
    last = today + timedelta(days=ahead)
    found = partitions.dates(span(today, [last.isoformat()])).get_partition_keys()
    assert found[-1] == last.isoformat()


def test_a_day_that_cannot_be_makes_no_partitions() -> None:
    today = date.fromisoformat(partitions.today())
    assert span(today, ["2999-01-01"]) == Span(today, today)
