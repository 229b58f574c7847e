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
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from filelock import FileLock
from upath import UPath

from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError, Problem

LOCKS = ".locks"
SNAPSHOTS = "snapshots"
RUNS = "runs"
SOURCES = "sources"
CONTRACTS = "contracts"
LEADERBOARD = "leaderboard"


class Gone(enum.Enum):
    """What an update returns to have the file removed."""

    GONE = "gone"


GONE = Gone.GONE


def snapshot_path(date: str, model: str) -> str:
    """Where the snapshots of one partition lie, relative to the store."""
    return f"{SNAPSHOTS}/date={date}/model={path_key(model)}.parquet"


def run_path(contract: str, model: str, month: str) -> str:
    """Where the runs of one cell in one month (`YYYY-MM`) lie."""
    return f"{RUNS}/contract={path_key(contract)}/model={path_key(model)}/month={month}.parquet"


def contract_path(contract: str) -> str:
    """Where the contract that evaluations apply lies."""
    return f"{CONTRACTS}/contract={path_key(contract)}.json"


def source_path(name: str) -> str:
    """Where a source's index of files lies."""
    return f"{SOURCES}/{path_key(name)}.parquet"


class Store:
    """Files under one root. Paths are relative and `/`-separated.

    Args:
        url: A local folder or an fsspec URL such as `s3://bucket/prefix`.
    """

    def __init__(self, url: str) -> None:
        self.url = url
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
            return self.path(relative).read_bytes()
        except FileNotFoundError:
            return None

    def list(self, folder: str, suffix: str) -> list[str]:
        """Relative paths of all files below `folder` that end in `suffix`, sorted."""
        if self.local is not None:
            base = self.local / folder
            found = [
                os.path.join(parent, name)
                for parent, _, names in os.walk(base)
                for name in names
                if name.endswith(suffix) and not name.startswith(".")
            ]
            return sorted(os.path.relpath(path, self.local).replace(os.sep, "/") for path in found)
        base_path = self.path(folder)
        if not base_path.exists():
            return []
        prefix = str(self.root.path).rstrip("/") + "/"
        return sorted(
            str(path.path).removeprefix(prefix)
            for path in base_path.rglob("*")
            if path.name.endswith(suffix)
        )

    def write(self, relative: str, data: bytes) -> bool:
        """Put `data` in place of a file; False if those bytes were there already."""
        return self.replace(relative, lambda _: data)

    def remove(self, relative: str) -> bool:
        """Remove a file; False if there was none."""
        try:
            self.path(relative).unlink()
        except FileNotFoundError:
            return False
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
        with self._locked(relative):
            before = self.read(relative)
            after = update(before)
            if isinstance(after, Gone):
                return self.remove(relative)
            if after is None or after == before:
                return False
            self._put(relative, after)
            return True

    @contextlib.contextmanager
    def _locked(self, relative: str) -> Iterator[None]:
        if self.local is None:
            yield
            return
        lock = self.local / LOCKS / f"{path_key(relative)}.lock"
        lock.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(lock):
            yield

    def _put(self, relative: str, data: bytes) -> None:
        if self.local is None:
            path = self.path(relative)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            return
        target = self.local / relative
        handle, temporary = _temporary_in(target.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(temporary, 0o644)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary)
            raise


def _temporary_in(folder: Path) -> tuple[int, str]:
    """Open a new file in a folder that is made if need be.

    `remove` of another process may take the empty folder away before the file is in it; trying
    ends, since a folder that cannot be made at all gives the same error.
    """
    attempts = 100
    while True:
        attempts -= 1
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # The dot keeps a file left by a killed process out of every listing and glob.
            return tempfile.mkstemp(dir=folder, prefix=".", suffix=".tmp")
        except FileNotFoundError:
            if not attempts:
                raise
