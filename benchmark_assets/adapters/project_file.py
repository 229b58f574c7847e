"""Finding and reading `benchmark.yaml`, and what overrides it.

Belongs here: where the file is looked for, the environment variables and arguments that win over
it, and what its relative paths are relative to. Does not belong here: what it may say
(`model/project`), or opening the store and the sources it names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from dotenv import dotenv_values

from benchmark_assets.adapters.yaml_files import read_yaml, shown_path, validate
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.project import FileSource, LangfuseExportSource, ProjectConfig

FILE_NAME = "benchmark.yaml"
CONFIG_VARIABLE = "BENCH_CONFIG"
STORE_VARIABLE = "BENCH_STORE"

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*::)*[A-Za-z][A-Za-z0-9+.-]*://")
_DERIVED = ("sources[].name",)
_CURES = {
    "task.from": "write metadata.KEY, session or prompt",
    "sources[].requests_per_minute": "leave it out for no limit of ours",
    "sources[].path": "add `path: …`, a file, a folder or a glob",
    "harnesses": "write a folder or a file, or a list of them: [harnesses/]",
    "plugins": "write a Python file, or a list of them: [checks/no_secrets.py]",
    "contracts": "write a folder, or a list of folders: [contracts/]",
}


@dataclass(frozen=True)
class Project:
    """One project: its settings, and where it lies.

    Attributes:
        config: What `benchmark.yaml` says, or the defaults. Its paths are as written; use the
            methods and `store` here.
        root: Absolute folder that relative paths of the file are relative to: the file's own,
            or the working directory if there is no file.
        store: Absolute path or fsspec URL of the store.
        file: The `benchmark.yaml` that was read; None if there is none.
    """

    config: ProjectConfig
    root: Path
    store: str
    file: Path | None

    def contract_paths(self) -> tuple[Path, ...]:
        """Absolute paths of the folders and files of contracts."""
        return tuple(Path(_location(path, self.root)) for path in self.config.contracts)

    def harness_paths(self) -> tuple[Path, ...]:
        """Absolute paths of the folders and files of harness profiles."""
        return tuple(Path(_location(path, self.root)) for path in self.config.harnesses)

    def plugin_paths(self) -> tuple[Path, ...]:
        """Absolute paths of the Python files with plugins."""
        return tuple(Path(_location(path, self.root)) for path in self.config.plugins)

    def source_path(self, source: FileSource | LangfuseExportSource) -> str:
        """Absolute path or glob, or URL, of a source of trace files or of an export."""
        return _location(source.path, self.root)


def load_project(
    config: Path | None = None,
    *,
    store: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Project:
    """Read the project's settings.

    The file is `config`, else the one that `BENCH_CONFIG` names, else `benchmark.yaml` in `cwd`
    or the nearest folder above; without any, all settings have their defaults. The store is
    `store`, else `BENCH_STORE`, else the file's. Environment variables that are empty are as if
    unset.

    Args:
        config: A `benchmark.yaml`, or the folder it lies in; relative to `cwd`.
        store: A folder, relative to `cwd`, or an fsspec URL.
        env: Environment variables; default: the process's, over `.env.local` and `.env` in `cwd`.
        cwd: Working directory; default: the process's.

    Raises:
        InputError: If the file that was named does not exist, or with all that is wrong in it.
    """
    here = Path.cwd() if cwd is None else cwd.absolute()
    env = _environment(here) if env is None else env
    file = _named_file(config, env, here) or _nearest_file(here)
    root = here if file is None else file.parent
    settings = ProjectConfig() if file is None else _read(file)
    if store is not None and not store.strip():
        raise InputError(Problem("the store is an empty text", cure="name a folder or a URL"))
    given = store or env.get(STORE_VARIABLE)
    location = _location(given, here) if given else _location(settings.store, root)
    return Project(config=settings, root=root, store=location, file=file)


def _environment(here: Path) -> dict[str, str]:
    """The process's variables over those of `.env.local` and `.env`; ours alone come from files."""
    found: dict[str, str] = {}
    for name in (".env", ".env.local"):
        values = dotenv_values(here / name, interpolate=False)
        found |= {
            key: value
            for key, value in values.items()
            if value is not None and key in (CONFIG_VARIABLE, STORE_VARIABLE)
        }
    return {**found, **os.environ}


def _named_file(config: Path | None, env: Mapping[str, str], here: Path) -> Path | None:
    """The file that the argument or the environment names, if one does."""
    variable = env.get(CONFIG_VARIABLE)
    if config is None and not variable:
        return None
    path = here / (config if config is not None else Path(variable or "")).expanduser()
    file = path / FILE_NAME if path.is_dir() else path
    if not file.exists():
        by = "" if config is not None else f", which {CONFIG_VARIABLE} names,"
        raise InputError(
            Problem(
                f"the settings file{by} does not exist",
                file=shown_path(file),
                cure=f"name a {FILE_NAME}, or leave it out for the defaults",
            )
        )
    return Path(os.path.normpath(file))


def _nearest_file(here: Path) -> Path | None:
    """The `benchmark.yaml` of a folder or of the nearest folder above that has one."""
    candidates = (folder / FILE_NAME for folder in (here, *here.parents))
    return next((file for file in candidates if file.is_file()), None)


def _read(file: Path) -> ProjectConfig:
    document = read_yaml(file, dates=True, may_be_empty=True)
    return validate(document, ProjectConfig, derived=_DERIVED, cures=_CURES)


def _location(text: str, base: Path) -> str:
    """An absolute path (globs included), or a URL as it is; a `file:` URL becomes a path."""
    if text.lower().startswith("file://"):
        text = unquote(urlsplit(text).path)
    elif _URL.match(text):
        return text
    return os.path.normpath(base / Path(text).expanduser())
