"""The store: every shared byte, under one folder or fsspec URL.

Belongs here: where things lie, atomic replacement, compare-and-swap. Does not belong here: what
the files hold (`snapshot_files`, `run_files`, `editions`, `source_index`).

Rules every writer keeps: a file is replaced whole, by rename, so that a killed run leaves the
old file or the new one; bytes that are already there are not written again; nothing of the
clock, the host or the run goes into them.
"""

from __future__ import annotations

import contextlib
import enum
import os
import random
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa
from filelock import BaseFileLock, FileLock, Timeout
from upath import UPath

from benchmark_assets.adapters.footers import Footers
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError, Problem

LOCKS = ".locks"
TEMPORARY = ".tmp"
SNAPSHOTS = "snapshots"
RUNS = "runs"
FIDELITY = "fidelity"
SOURCES = "sources"
CONTRACTS = "contracts"
LEADERBOARD = "leaderboard"
ARCHIVE = "archive"
PULLED = "pulled"

ATTEMPTS = 100
"""How often a folder is made again that other processes remove while it is empty."""


class Gone(enum.Enum):
    """What an update returns to have the file removed."""

    GONE = "gone"


GONE = Gone.GONE


def snapshot_path(date: str, model: str) -> str:
    """Where the snapshots of one partition lie, relative to the store."""
    return f"{SNAPSHOTS}/date={date}/model={path_key(model)}.parquet"


def run_path(contract: str, model: str, month: str) -> str:
    """Where the runs of one cell in one month (`YYYY-MM`) lie."""
    return f"{cell_folder(contract, model)}/month={month}.parquet"


def cell_folder(contract: str, model: str) -> str:
    """Where the runs of one cell lie."""
    return f"{RUNS}/contract={path_key(contract)}/model={path_key(model)}"


def fidelity_path(model: str, month: str) -> str:
    """Where the comparisons of one model's ledgers in one month (`YYYY-MM`) lie."""
    return f"{FIDELITY}/model={path_key(model)}/month={month}.parquet"


def contract_path(contract: str) -> str:
    """Where the contract that evaluations apply lies."""
    return f"{CONTRACTS}/contract={path_key(contract)}.json"


def archive_path(path: str) -> str:
    """Where a file of a contract that is gone is kept: `runs/…` → `archive/…`."""
    return f"{ARCHIVE}/{path.partition('/')[2]}"


def source_path(name: str) -> str:
    """Where a source's index of files lies."""
    return f"{SOURCES}/{path_key(name)}.parquet"


def pulled_folder(source: str) -> str:
    """Where what was pulled from a source's server lies."""
    return f"{PULLED}/{path_key(source)}"


CONDITIONAL = ("s3", "s3a")
"""Protocols on whose servers a put can be made to depend on what it replaces."""


def _what_is_wrong(error: Exception) -> str:
    """What an error while reading a file of ours says about the file, in one line."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    if isinstance(error, KeyError):
        return f"was written by another version: {text} is missing"
    return f"is damaged: {text}"


class FileStat(NamedTuple):
    """A file as a listing shows it; `version` changes whenever the file is replaced."""

    path: str
    size: int
    version: str


class Store:
    """Files under one root. Paths are relative and `/`-separated.

    Args:
        url: A local folder or an fsspec URL such as `s3://bucket/prefix`.

    Attributes:
        footers: The footers of its Parquet files, remembered.
        reads: How many whole files were read so far.
        writes: How many files were written or removed so far.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.footers = Footers(self)
        self.reads = 0
        self.writes = 0
        try:
            self.root: UPath = UPath(url)
        except (ValueError, ImportError) as error:
            cure = "install the fsspec package of that protocol, or name a folder"
            raise InputError(Problem(f"store {url}: {error}", cure=cure)) from error
        self.local = Path(self.root.path) if self.root.protocol in ("", "file", "local") else None
        if self.local is not None and self.local.exists() and not self.local.is_dir():
            raise InputError(Problem(f"store {url} is a file", cure="name a folder"))

    def path(self, relative: str) -> UPath:
        """The full path of a file."""
        return self.root / relative

    def exists(self, relative: str) -> bool:
        """Whether a file or folder is there."""
        return bool(self.path(relative).exists())

    def read(self, relative: str) -> bytes | None:
        """The bytes of a file, or None if there is none."""
        try:
            # A remote file that is opened and read is two requests, between which it may change.
            data = (
                bytes(self._remote.cat_file(self._prefix + relative))
                if self.local is None
                else (self.local / relative).read_bytes()
            )
        except FileNotFoundError:
            return None
        self.reads += 1
        return data

    @contextlib.contextmanager
    def decoding(self, relative: str) -> Iterator[None]:
        """Say which file is damaged when what is done inside cannot make sense of it.

        Raises:
            InputError: Names the file and what to do.
        """
        try:
            yield
        except (ValueError, KeyError, msgspec.MsgspecError, pa.ArrowException) as error:
            problem = Problem(
                _what_is_wrong(error),
                file=str(self.path(relative)),
                cure="remove it; the next run makes it again",
            )
            raise InputError(problem) from error

    def list(self, folder: str, suffix: str) -> list[str]:
        """Relative paths of all files below `folder` that end in `suffix`, sorted."""
        return [stat.path for stat in self.scan(folder, suffix)]

    def scan(self, folder: str, suffix: str) -> tuple[FileStat, ...]:
        """All files below `folder` that end in `suffix`, sorted by path, without opening any."""
        if self.local is not None:
            return tuple(sorted(_scan_local(self.local / folder, folder, suffix)))
        self._remote.invalidate_cache()  # others write too
        found = self._remote.find(f"{self._prefix}{folder}", detail=True)
        stats = [
            FileStat(path.removeprefix(self._prefix), int(info["size"]), _version(info))
            for path, info in found.items()
            if path.endswith(suffix)
        ]
        return tuple(sorted(stats))

    def stat(self, relative: str) -> FileStat | None:
        """One file, or None if there is none."""
        if self.local is not None:
            try:
                status = os.stat(self.local / relative)
            except (FileNotFoundError, NotADirectoryError):
                return None
            return FileStat(relative, status.st_size, str(status.st_mtime_ns))
        self._remote.invalidate_cache()
        try:
            info = self._remote.info(self._prefix + relative)
        except FileNotFoundError:
            return None
        return FileStat(relative, int(info["size"]), _version(info))

    @property
    def _remote(self) -> Any:
        return self.root.fs

    @property
    def _prefix(self) -> str:
        """What remote paths begin with before the relative part."""
        return str(self.root.path).rstrip("/") + "/"

    def write(self, relative: str, data: bytes) -> bool:
        """Put `data` in place of a file; False if those bytes were there already."""
        return self.replace(relative, lambda _: data)

    def remove(self, relative: str) -> bool:
        """Remove a file; False if there was none."""
        try:
            self.path(relative).unlink()
        except FileNotFoundError:
            return False
        self.writes += 1
        if self.local is not None:
            # An emptied partition folder would read as a partition that is still there.
            with contextlib.suppress(OSError):
                (self.local / relative).parent.rmdir()
        return True

    def replace(self, relative: str, update: Callable[[bytes | None], bytes | Gone | None]) -> bool:
        """Read, update and replace a file while no other process does; return whether it changed.

        Args:
            relative: The file.
            update: Gets the present bytes (None if there is no file) and returns the new ones,
                `GONE` to have no file, or None to leave everything as it is.
        """
        if self.local is None:
            return self._replace_remote(relative, update)
        with self._locked(relative):
            before = self.read(relative)
            after = update(before)
            if isinstance(after, Gone):
                return self.remove(relative)
            if after is None or after == before:
                return False
            self._put(relative, after)
            self.writes += 1
            return True

    def _replace_remote(
        self, relative: str, update: Callable[[bytes | None], bytes | Gone | None]
    ) -> bool:
        """Compare and swap: put only over the object that was read, else read again.

        On S3 and what speaks its API the server compares. Other object stores are written as
        they are: there, one process at a time must write a cell.
        """
        for attempts_left in reversed(range(ATTEMPTS)):
            present = self.stat(relative)
            before = None if present is None else self.read(relative)
            after = update(before)
            if isinstance(after, Gone):
                return self.remove(relative)
            if after is None or after == before:
                return False
            try:
                self._put_remote(relative, after, present)
            except OSError as error:
                if not _lost_the_race(error) or not attempts_left:
                    raise
                time.sleep(random.uniform(0, 0.05))  # noqa: S311 - apart from the other process
                continue
            self.writes += 1
            return True
        raise AssertionError

    def _put_remote(self, relative: str, data: bytes, present: FileStat | None) -> None:
        condition: dict[str, str] = {}
        if self.root.protocol in CONDITIONAL:
            condition = {"IfNoneMatch": "*"} if present is None else {"IfMatch": present.version}
        self._remote.pipe_file(self._prefix + relative, data, **condition)

    def move(self, relative: str, target: str) -> bool:
        """Move a file, replacing what is at the target; False if there was none."""
        data = self.read(relative)
        if data is None:
            return False
        # The copy is complete before the original goes: a killed move loses nothing.
        self.write(target, data)
        return self.remove(relative)

    @contextlib.contextmanager
    def exclusive(self, name: str, *, wait: bool = True) -> Iterator[bool]:
        """Do something that no other process does at the same time.

        Other machines do not see it, and object stores have none of it: what must hold there has
        to hold without.

        Args:
            name: What is done, path-like.
            wait: Whether to wait for others; else yields False if one is at it.
        """
        if self.local is None:
            yield True
            return
        lock = self._lock(name)
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def sweep(self) -> int:
        """Remove what killed processes left half-written; returns how many files that were."""
        if self.local is None:
            return 0
        removed = 0
        folder = self.local / TEMPORARY
        names = os.listdir(folder) if folder.is_dir() else []
        for name in names:
            host, _, rest = name.partition("~")
            if host == _host() and not _is_running(rest.partition("~")[0]):
                with contextlib.suppress(FileNotFoundError):
                    (folder / name).unlink()
                    removed += 1
        return removed

    @contextlib.contextmanager
    def _locked(self, relative: str) -> Iterator[None]:
        with self._lock(relative):
            yield

    def _lock(self, name: str) -> BaseFileLock:
        assert self.local is not None
        lock = self.local / LOCKS / f"{path_key(name)}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        return FileLock(lock)

    def _put(self, relative: str, data: bytes) -> None:
        assert self.local is not None
        target = self.local / relative
        handle, temporary = self._temporary()
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            _move_into(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise

    def _temporary(self) -> tuple[int, str]:
        """Open a new file that says whose it is, so that `sweep` can tell the dead from the busy."""
        assert self.local is not None
        # The folder stays: taking it away when it is empty would race with those who need it.
        folder = self.local / TEMPORARY
        folder.mkdir(parents=True, exist_ok=True)
        return tempfile.mkstemp(dir=folder, prefix=f"{_host()}~{os.getpid()}~")


def _move_into(temporary: str, target: Path) -> None:
    """Rename a file into a folder that another process may just be taking away, empty."""
    for attempts_left in reversed(range(ATTEMPTS)):
        try:
            # Between the two the folder may go; and while `mkdir` looks whether it is one.
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(temporary, target)
        except (FileNotFoundError, FileExistsError):
            if not attempts_left:
                raise
        else:
            return


def _host() -> str:
    return path_key(socket.gethostname())


def _is_running(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except (PermissionError, ValueError):
        return True
    return True


def _lost_the_race(error: OSError) -> bool:
    """Whether a put failed because another process put first."""
    cause = error.__cause__
    response = getattr(cause, "response", None) or {}
    code = str(response.get("Error", {}).get("Code", ""))
    return isinstance(error, FileExistsError) or code in (
        "PreconditionFailed",
        "ConditionalRequestConflict",
        "412",
        "409",
    )


def _scan_local(base: Path, folder: str, suffix: str) -> Iterator[FileStat]:
    try:
        listing = os.scandir(base)
    except (FileNotFoundError, NotADirectoryError):
        return
    with listing:
        for entry in listing:
            # Hidden files are those a killed process left half-written.
            if entry.name.startswith("."):
                continue
            path = f"{folder}/{entry.name}"
            if entry.is_dir():
                yield from _scan_local(Path(entry.path), path, suffix)
            elif entry.name.endswith(suffix):
                with contextlib.suppress(FileNotFoundError):
                    status = entry.stat()
                    yield FileStat(path, status.st_size, str(status.st_mtime_ns))


def _version(info: Mapping[str, Any]) -> str:
    """What an object store says of an object that changes when it is replaced."""
    for key in ("ETag", "etag", "md5Hash", "content_md5", "LastModified", "mtime", "created"):
        if info.get(key):
            return str(info[key])
    return ""
