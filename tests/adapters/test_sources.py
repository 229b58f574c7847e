"""File sources: what is found, what is read again, and what is reported instead of stored."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.adapters import sources
from benchmark_assets.adapters import traces as traces_module
from benchmark_assets.adapters.source_index import (
    FileEntry,
    PartitionCount,
    Unplaced,
    list_sources,
    read_index,
    remove_index,
    write_index,
)
from benchmark_assets.adapters.sources import SourceState, locate, read_file, scan
from benchmark_assets.adapters.store import Store
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.project import FileSource, ProjectConfig
from tests.adapters.samples import CONVERSATION, lines, record, simulation, tau2


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files whose bytes are read from now on, by the real reading."""
    names: list[str] = []
    real = Path.read_bytes

    def counted(self: Path) -> bytes:
        if self.suffix not in (".parquet", ".msgpack"):
            names.append(self.name)
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", counted)
    return names


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Keys of the files that are parsed from now on, by the real parsing."""
    keys: list[str] = []
    real = traces_module.read_traces

    def counted(file: Any, *args: Any, **kwargs: Any) -> Any:
        keys.append(file.key)
        return real(file, *args, **kwargs)

    monkeypatch.setattr(sources, "read_traces", counted)
    return keys


Look = Callable[..., SourceState]


@pytest.fixture
def look(store: Store, traces: Path) -> Look:
    """Scan the folder, with some settings changed."""

    def scanned(path: Path = traces, prune: bool = False, **settings: Any) -> SourceState:
        of_source = {
            key: settings.pop(key) for key in ("format", "default_date") if key in settings
        }
        source = FileSource.model_validate({"path": str(path), "name": "s", **of_source})
        config = ProjectConfig.model_validate(settings)
        return scan(store, source, str(path), config, prune=prune)

    return scanned


def put(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lines(*values))
    return path


def found(path: Path | str) -> list[str]:
    base, files = locate(str(path))
    return [file.relative_to(base).as_posix() for file in files]


# Finding.


def test_a_folder_is_searched_recursively_in_order(traces: Path) -> None:
    for name in ["b.json", "a/z.json", "a/b/c.json", "a.json", "a-b/x.json"]:
        put(traces / name)
    assert found(traces) == ["a/b/c.json", "a/z.json", "a-b/x.json", "a.json", "b.json"]


def test_a_single_file_is_found_under_its_own_name(traces: Path) -> None:
    put(traces / "a.json")
    put(traces / "b.json")
    assert found(traces / "a.json") == ["a.json"]


@pytest.mark.parametrize("name", [".hidden.json", ".git/x.json", "a/.cache/x.json", "a/.x"])
def test_hidden_files_and_folders_are_left_out(traces: Path, name: str) -> None:
    put(traces / name)
    put(traces / "a" / "seen.json")
    assert found(traces) == ["a/seen.json"]
    assert found(f"{traces}/**/*") == ["a/seen.json"]


def test_what_is_hidden_is_found_if_it_is_named(traces: Path) -> None:
    put(traces / ".runs" / "a.json")
    put(traces / ".one.json")
    assert found(traces / ".runs") == ["a.json"]
    assert found(traces / ".one.json") == [".one.json"]
    assert found(f"{traces}/.r*/*.json") == [".runs/a.json"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("*.json", ["a.json"]),
        ("**/*", ["a.json", "b.jsonl", "x/c.json", "x/y/d.json", "x/y/e.txt"]),
        ("**", ["a.json", "b.jsonl", "x/c.json", "x/y/d.json", "x/y/e.txt"]),
        ("**/*.json", ["a.json", "x/c.json", "x/y/d.json"]),
        ("*/*.json", ["x/c.json"]),
        ("**/y/*", ["x/y/d.json", "x/y/e.txt"]),
        ("x/**/*.json", ["c.json", "y/d.json"]),
        ("**/x/**/*.json", ["x/c.json", "x/y/d.json"]),
        ("?.json*", ["a.json", "b.jsonl"]),
        ("?.json", ["a.json"]),
        ("[ab].*", ["a.json", "b.jsonl"]),
        ("*.xml", []),
    ],
)
def test_globs(traces: Path, pattern: str, expected: list[str]) -> None:
    for name in ["a.json", "b.jsonl", "x/c.json", "x/y/d.json", "x/y/e.txt"]:
        put(traces / name)
    assert found(f"{traces}/{pattern}") == expected


def test_a_folder_whose_name_looks_like_a_glob_is_a_folder(traces: Path) -> None:
    put(traces / "runs[1]" / "a.json")
    assert found(traces / "runs[1]") == ["a.json"]


@pytest.mark.parametrize("path", ["nowhere", "nowhere/*.json", "a.json/x"])
def test_nothing_there_is_an_error(traces: Path, path: str) -> None:
    put(traces / "a.json")
    with pytest.raises(InputError, match=r"there is no such (file or )?folder; check the path"):
        locate(f"{traces}/{path}")


@pytest.mark.parametrize("pattern", ["", "/**/*", "/**"])
def test_links_are_followed_and_loops_end(traces: Path, tmp_path: Path, pattern: str) -> None:
    put(tmp_path / "elsewhere" / "far.json")
    put(traces / "a" / "near.json")
    (traces / "linked").symlink_to(tmp_path / "elsewhere")
    (traces / "a" / "up").symlink_to(traces)
    (traces / "a" / "again").symlink_to(traces / "a")
    (traces / "self").symlink_to(traces / "self")
    (traces / "b").mkdir()
    (traces / "b" / "to_a").symlink_to(traces / "a")
    (traces / "a" / "to_b").symlink_to(traces / "b")
    names = found(f"{traces}{pattern}")
    # `self` leads nowhere, which reading it will say.
    assert names == ["a/near.json", "linked/far.json", "self"]


def test_a_file_with_two_names_is_found_once_by_its_own(traces: Path) -> None:
    put(traces / "z.json")
    (traces / "latest.json").symlink_to(traces / "z.json")
    assert found(traces) == ["z.json"]


def test_what_is_no_file_is_not_opened(traces: Path) -> None:
    """Opening a pipe would wait for ever."""
    os.mkfifo(traces / "pipe.json")
    put(traces / "a.json")
    assert found(traces) == ["a.json"]
    assert found(f"{traces}/*") == ["a.json"]


# Reading again.


def test_unchanged_files_are_not_read_again(traces: Path, look: Look, reads: list[str]) -> None:
    put(traces / "a.json", record("a"))
    put(traces / "b.json", record("b"))
    first = look()
    assert sorted(reads) == ["a.json", "b.json"]
    assert first.reread == ("a.json", "b.json")
    reads.clear()
    again = look()
    assert (reads, again.reread, again.entries) == ([], (), first.entries)


def test_an_unchanged_source_leaves_its_index_untouched(
    traces: Path, look: Look, store: Store
) -> None:
    put(traces / "a.json", record("a"))
    look()
    (index,) = store.list("sources", ".parquet")
    before = store.path(index).stat()
    look()
    assert store.path(index).stat() == before


def test_the_same_bytes_with_another_time_are_read_and_not_parsed(
    traces: Path, look: Look, reads: list[str], parses: list[str]
) -> None:
    path = put(traces / "a.json", record("a"))
    first = look()
    reads.clear()
    parses.clear()
    os.utime(path, ns=(5, 5))
    again = look()
    assert (reads, parses, again.reread) == (["a.json"], [], ())
    assert again.entries["a.json"].mtime_ns == 5
    assert again.entries["a.json"].partitions == first.entries["a.json"].partitions
    look()
    assert reads == ["a.json"]


def test_changed_bytes_are_read_again(traces: Path, look: Look, parses: list[str]) -> None:
    path = put(traces / "a.json", record("a"))
    put(traces / "b.json", record("b"))
    look()
    parses.clear()
    put(path, record("a"), record("c", model="other"))
    state = look()
    assert (parses, state.reread) == (["a.json"], ("a.json",))
    assert state.entries["a.json"].partitions == (
        PartitionCount("2026-03-01", "gpt-4o", 1),
        PartitionCount("2026-03-01", "other", 1),
    )


def test_a_change_within_one_size_is_seen_by_its_time(traces: Path, look: Look) -> None:
    path = put(traces / "a.json", record("a"))
    look()
    path.write_bytes(path.read_bytes().replace(b'"a"', b'"b"'))
    os.utime(path, ns=(5, 5))
    assert look().reread == ("a.json",)


@pytest.mark.parametrize(
    "settings",
    [
        {"models": {"m": {"aliases": ["gpt-4o"]}}},
        {"model_key": "llm"},
        {"task": {"from": "session"}},
        {"format": "snapshot"},
        {"default_date": "2026-01-01"},
    ],
    ids=str,
)
def test_settings_that_decide_what_a_trace_is_have_all_read_again(
    traces: Path, look: Look, settings: dict[str, Any]
) -> None:
    put(traces / "a.json", record("a"))
    before = look().entries["a.json"]
    state = look(**settings)
    assert state.reread == ("a.json",)
    assert state.entries["a.json"].input_hash != before.input_hash
    assert look(**settings).reread == ()


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": {"cron": "0 5 * * *"}},
        {"contracts": ["elsewhere/"]},
        {"models": {"gpt-4o": {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 2.0}}},
    ],
    ids=str,
)
def test_other_settings_do_not(traces: Path, look: Look, settings: dict[str, Any]) -> None:
    put(traces / "a.json", record("a"))
    look()
    assert look(**settings).reread == ()


def test_an_added_alias_renames_the_model(traces: Path, look: Look) -> None:
    put(traces / "a.json", record("a", model="openai/gpt-4o"))
    assert look().entries["a.json"].partitions[0].model == "openai/gpt-4o"
    state = look(models={"gpt-4o": {"aliases": ["openai/gpt-4o"]}})
    assert state.entries["a.json"].partitions[0].model == "gpt-4o"


# Vanished and unreadable.


def test_a_vanished_file_stays_until_pruned(traces: Path, look: Look, store: Store) -> None:
    path = put(traces / "a.json", record("a"))
    put(traces / "b.json", record("b"))
    before = look().entries["a.json"]
    path.unlink()
    for _ in range(2):
        gone = look().entries["a.json"]
        assert gone.status == "vanished"
        assert (gone.partitions, gone.sha256) == (before.partitions, before.sha256)
    assert read_index(store, "s")["a.json"].status == "vanished"
    assert set(look(prune=True).entries) == {"b.json"}
    assert set(read_index(store, "s")) == {"b.json"}


def test_a_vanished_file_that_held_nothing_is_forgotten(traces: Path, look: Look) -> None:
    path = traces / "notes.txt"
    path.write_text("no trace")
    assert look().entries["notes.txt"].status == "unreadable"
    path.unlink()
    assert look().entries == {}


@pytest.mark.parametrize("content", ["same", "other"])
def test_a_file_that_is_back_is_read(traces: Path, look: Look, content: str) -> None:
    path = put(traces / "a.json", record("a"))
    before = look().entries["a.json"]
    path.unlink()
    look()
    put(path, record("a", prompt=None if content == "same" else "other", final_answer="x"))
    if content == "same":
        put(path, record("a"))
    state = look()
    assert state.entries["a.json"].status == "read"
    assert (state.entries["a.json"].sha256 == before.sha256) is (content == "same")
    # The same bytes need not be parsed again.
    assert state.reread == (() if content == "same" else ("a.json",))


def test_what_is_no_trace_is_reported_and_no_row(traces: Path, look: Look) -> None:
    (traces / "README.md").write_text("# How these were recorded\n")
    (traces / "empty.json").write_bytes(b"")
    (traces / "package.json").write_text('{"name": "x"}')
    (traces / "latin.json").write_bytes(b'{"prompt": "\xe9"}')
    put(traces / "a.json", record("a"))
    entries = look().entries
    assert {key: entry.status for key, entry in entries.items()} == {
        "README.md": "unreadable",
        "a.json": "read",
        "empty.json": "unreadable",
        "latin.json": "unreadable",
        "package.json": "unreadable",
    }
    assert entries["README.md"].error is not None
    assert entries["README.md"].error.startswith("README.md:1: is not JSON: ")
    assert entries["empty.json"].error == (
        "empty.json: is empty; remove it or export the trace again"
    )
    for key, entry in entries.items():
        assert str(traces) not in (entry.error or "")
        assert entry.traces == (1 if key == "a.json" else 0)
        assert (entry.partitions == ()) is (key != "a.json")
    assert look().reread == ()


def test_a_file_that_is_no_trace_any_more_is_reported(traces: Path, look: Look) -> None:
    path = put(traces / "a.json", record("a"))
    look()
    path.write_bytes(b'{"trace_id": "a", "prom')
    entry = look().entries["a.json"]
    assert (entry.status, entry.partitions) == ("unreadable", ())
    assert entry.error is not None
    assert "cut off" in entry.error


def test_a_link_that_leads_nowhere_is_reported(traces: Path, look: Look) -> None:
    (traces / "a.json").symlink_to(traces / "gone.json")
    entry = look().entries["a.json"]
    assert entry.status == "unreadable"
    assert entry.error == "a.json: cannot be opened: No such file or directory"


def test_a_file_that_cannot_be_opened_is_reported_and_tried_again(
    traces: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(traces / "a.json", record("a"))
    put(traces / "b.json", record("b"))
    refuse(monkeypatch, "a.json")
    entries = look().entries
    assert entries["a.json"].error == "a.json: cannot be opened: Input/output error"
    assert entries["b.json"].status == "read"
    monkeypatch.undo()
    assert look().entries["a.json"].status == "read"


def test_a_file_that_cannot_be_opened_any_more_keeps_its_traces(
    traces: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fails for one night must not empty the leaderboard."""
    path = put(traces / "a.json", record("a"))
    before = look().entries["a.json"]
    os.utime(path, ns=(5, 5))
    refuse(monkeypatch, "a.json")
    for prune in (False, True):
        entry = look(prune=prune).entries["a.json"]
        assert (entry.status, entry.partitions) == ("vanished", before.partitions)
        assert entry.error == "a.json: cannot be opened: Input/output error"
    monkeypatch.undo()
    entry = look().entries["a.json"]
    assert (entry.status, entry.error) == ("read", None)


def refuse(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Have the system refuse to read one file: permissions do not bind whoever runs as root."""
    real = Path.read_bytes

    def read(self: Path) -> bytes:
        if self.name == name:
            raise OSError(5, "Input/output error")
        return real(self)

    monkeypatch.setattr(Path, "read_bytes", read)


def test_a_name_that_is_no_text_is_reported(traces: Path, look: Look, store: Store) -> None:
    path = Path(os.fsdecode(os.fsencode(traces) + b"/caf\xe9.json"))
    put(path, record("a"))
    put(traces / "b.json", record("b"))
    entries = look().entries
    assert entries[r"caf\udce9.json"].error == (r"caf\udce9.json: its name is not UTF-8; rename it")
    assert entries["b.json"].status == "read"
    assert read_index(store, "s") == entries


def test_traces_that_cannot_be_placed_are_reported(traces: Path, look: Look) -> None:
    put(traces / "a.json", record("a", model=None), record("b", started_at=None), record("c"), "x")
    entry = look().entries["a.json"]
    assert entry.traces == 4
    assert entry.partitions == (PartitionCount("2026-03-01", "gpt-4o", 1),)
    assert [lost.trace_id for lost in entry.unplaced][:2] == ["a", "b"]
    assert entry.unplaced[0] == Unplaced(
        "a", "a.json: line 1: has no model (metadata model_name names one)"
    )
    assert "no time" in entry.unplaced[1].reason
    assert "is not JSON" in entry.unplaced[2].reason
    dated = look(default_date="2026-01-31").entries["a.json"]
    assert dated.partitions[0] == PartitionCount("2026-01-31", "gpt-4o", 1)


def test_times_beyond_all_days_are_reported(traces: Path, look: Look) -> None:
    put(
        traces / "a.json",
        record("a", started_at="0001-01-01T00:00:00+14:00"),
        record("b", started_at="9999-12-31T23:59:59-14:00"),
        record("c"),
    )
    entry = look().entries["a.json"]
    assert [lost.trace_id for lost in entry.unplaced] == ["a", "b"]
    assert sum(part.traces for part in entry.partitions) == 1


def test_an_empty_result_file_is_read_and_holds_nothing(traces: Path, look: Look) -> None:
    (traces / "a.json").write_text(json.dumps(tau2()))
    entry = look().entries["a.json"]
    assert (entry.status, entry.traces, entry.partitions) == ("read", 0, ())


# Reading for writing.


def test_a_file_just_scanned_is_not_parsed_again(
    traces: Path, look: Look, parses: list[str]
) -> None:
    put(traces / "a.json", record("a"), record("b"))
    state = look()
    found = list(read_file(state, "a.json", ProjectConfig()))
    assert [item.trace_id for item in found] == ["a", "b"]
    assert parses == ["a.json"]


def test_a_file_not_read_by_the_scan_is_parsed_when_it_is_needed(
    traces: Path, look: Look, parses: list[str]
) -> None:
    put(traces / "a.json", record("a"))
    look()
    state = look()
    assert [item.trace_id for item in read_file(state, "a.json", ProjectConfig())] == ["a"]
    assert parses == ["a.json", "a.json"]


def test_only_so_much_is_kept_in_memory(
    traces: Path, look: Look, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [put(traces / f"{n}.json", record(str(n))).stat().st_size for n in range(3)]
    monkeypatch.setattr(sources, "CACHE_BYTES", sum(sizes[:2]))
    state = look()
    assert sorted(state.cache) == ["0.json", "1.json"]
    assert [item.trace_id for item in read_file(state, "2.json", ProjectConfig())] == ["2"]


def test_a_file_that_changes_after_the_scan_is_noticed(traces: Path, look: Look) -> None:
    path = put(traces / "a.json", record("a"))
    look()
    state = look()
    put(path, record("b"))
    with pytest.raises(InputError, match="changed while it was read; run again"):
        list(read_file(state, "a.json", ProjectConfig()))
    path.unlink()
    with pytest.raises(InputError, match="vanished while it was read"):
        list(read_file(state, "a.json", ProjectConfig()))


def test_progress_is_told_of_what_is_read(traces: Path, store: Store) -> None:
    for name in "abc":
        put(traces / f"{name}.json", record(name))
    told: list[tuple[str, int, int]] = []
    source = FileSource(path=str(traces), name="s")
    for _ in range(2):
        scan(
            store,
            source,
            str(traces),
            ProjectConfig(),
            progress=lambda what, done, total: told.append((what, done, total)),
        )
    assert told == [("reading trace files", n, 3) for n in range(3)]


# The index.


def test_an_index_is_read_back_as_it_was_written(store: Store) -> None:
    entries = {
        "é/a.json": FileEntry(
            path="é/a.json",
            size=2**40,
            mtime_ns=2**60,
            sha256="0" * 64,
            settings="x",
            status="read",
            format="tau2",
            traces=4,
            partitions=(PartitionCount("2026-03-01", "a/b", 3),),
            unplaced=(Unplaced("t", "why"),),
        ),
        "b.json": FileEntry(
            path="b.json",
            size=-1,
            mtime_ns=-1,
            sha256="",
            settings="x",
            status="unreadable",
            error="b.json: why",
        ),
    }
    assert write_index(store, "../s", entries)
    assert not write_index(store, "../s", dict(reversed(entries.items())))
    assert read_index(store, "../s") == entries
    assert list_sources(store) == ["../s"]
    assert remove_index(store, "../s")
    assert (read_index(store, "../s"), list_sources(store)) == ({}, [])
    assert not remove_index(store, "../s")


def test_the_index_is_the_same_wherever_the_folder_lies(tmp_path: Path, store: Store) -> None:
    """Two machines with the same files must not make each other's partitions stale."""
    found = []
    for place in ("here", "there"):
        folder = tmp_path / place
        put(folder / "a.json", record("a", model=None), record("b"), "oops")
        (folder / "x.txt").write_text("no trace")
        (folder / "r.json").write_text(json.dumps(tau2(simulation(CONVERSATION), simulation(5))))
        source = FileSource(path=str(folder), name="s")
        state = scan(store, source, str(folder), ProjectConfig())
        found.append(
            [(e.input_hash, e.error, e.unplaced, e.partitions) for e in state.entries.values()]
        )
    assert found[0] == found[1]
