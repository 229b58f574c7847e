"""What verdicts depend on beside trace and contract: harness profiles, and plugins of the user's.

Belongs here: collecting both for a project, loading plugins from outside the package, and the
hash that goes into a cell's keys. Does not belong here: what profiles or plugins do (`scoring`).

A plugin of the user's is a `Plugin` called `PLUGIN` in a Python file that `benchmark.yaml` names
under `plugins`, or the object that an installed distribution announces as an entry point of the
group `benchmark_assets.plugins`. It runs after those of the package, for every contract that it
prepares itself for. Its version, part of every key, is the file's content or the
distribution's version: when that changes, everything is judged again.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from benchmark_assets.adapters.contract_files import Known
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.model.contract import Contract
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.identity import canonical_json, content_hash
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.scoring.evaluate import ContractJudge
from benchmark_assets.scoring.plugins import PLUGINS
from benchmark_assets.scoring.plugins.base import Plugin

GROUP = "benchmark_assets.plugins"
"""The entry point group of plugins in installed distributions."""


FileStates = tuple[tuple[str, int, int], ...]
"""(path, time of change in nanoseconds, size) of files: equal while none was edited."""


def file_states(paths: Iterable[Path]) -> FileStates:
    """The state of files and of all files in folders, as far as they can be looked at."""
    states = []
    for given in paths:
        for path in sorted(given.rglob("*")) if given.is_dir() else [given]:
            try:
                status = path.stat()
            except OSError:
                continue
            states.append((str(path), status.st_mtime_ns, status.st_size))
    return tuple(states)


@dataclass(frozen=True)
class UserPlugin:
    """A plugin from outside the package, and the version that its verdicts are keyed by."""

    plugin: Plugin
    version: str


@dataclass(frozen=True)
class Rules:
    """The profiles and plugins that are in force.

    Attributes:
        profiles: Harness profiles, in order of preference.
        user_plugins: Those from outside the package, by name.
    """

    profiles: tuple[HarnessProfile, ...]
    user_plugins: tuple[UserPlugin, ...] = ()

    @cached_property
    def plugins(self) -> tuple[Plugin, ...]:
        """All plugins in the order in which verdicts list them."""
        return (*PLUGINS, *(item.plugin for item in self.user_plugins))

    @cached_property
    def known(self) -> Known:
        """The names that contracts may use."""
        return Known(
            harnesses=tuple(profile.name for profile in self.profiles),
            plugins=tuple(item.plugin.name for item in self.user_plugins),
        )

    @cached_property
    def harness_hashes(self) -> dict[str, str]:
        """Profile → hash of what it says."""
        return {profile.name: profile.content_hash for profile in self.profiles}

    @cached_property
    def plugin_versions(self) -> dict[str, str]:
        """Plugin from outside the package → version."""
        return {item.plugin.name: item.version for item in self.user_plugins}

    def judge(self, contract: Contract) -> ContractJudge:
        """A contract compiled with all plugins."""
        return ContractJudge(contract, self.plugins)

    def key(self, contract: Contract) -> str:
        """Hash of what a contract's verdicts depend on beside traces and the engine.

        A contract that reads nothing from profiles is not touched by a change of one.
        """
        if not self.user_plugins and not contract.reads_activity:
            return contract.content_hash
        hashes = self.harness_hashes
        if contract.harness is not None:
            hashes = {name: sha for name, sha in hashes.items() if name == contract.harness}
        # Among profiles that know equally many tools the order decides, so it is kept.
        return content_hash(
            contract.content_hash,
            canonical_json(list(hashes.items())),
            canonical_json(self.plugin_versions),
        )


def load_plugins(paths: Iterable[Path]) -> tuple[UserPlugin, ...]:
    """Load the plugins of installed distributions and of files, sorted by name.

    Raises:
        InputError: With all that is wrong: no such file, code that raises, no `PLUGIN` in it, a
            name that is taken.
    """
    problems: list[Problem] = []
    taken = {plugin.name: "this package" for plugin in PLUGINS}
    found: dict[str, UserPlugin] = {}
    for where, load in _candidates(paths):
        try:
            item = load()
        except InputError as error:
            problems += error.problems
            continue
        except (Exception, SystemExit) as error:  # noqa: BLE001 - its code may raise anything
            message = f"plugin cannot be loaded: {type(error).__name__}: {error}"
            problems.append(Problem(message, file=where))
            continue
        name = item.plugin.name
        if name in taken:
            cure = "give the plugin another name"
            problems.append(
                Problem(f"plugin '{name}' is also {taken[name]}'s", file=where, cure=cure)
            )
        else:
            taken[name], found[name] = where, item
    if problems:
        raise InputError(problems)
    return tuple(found[name] for name in sorted(found))


def _candidates(paths: Iterable[Path]) -> Iterator[tuple[str, Any]]:
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        yield f"entry point {entry.name}", lambda entry=entry: _from_entry(entry)
    for path in paths:
        yield shown_path(path), lambda path=path: _from_file(path)


def _from_entry(entry: EntryPoint) -> UserPlugin:
    where = f"entry point {entry.name}"
    plugin = _checked(entry.load(), where)
    distribution = entry.dist
    version = "" if distribution is None else f"{distribution.name} {distribution.version}"
    return UserPlugin(plugin, version)


def _from_file(path: Path) -> UserPlugin:
    where = shown_path(path)
    if path.suffix != ".py":
        cure = "name a file that ends in .py"
        raise InputError(Problem("is no Python file", file=where, cure=cure))
    try:
        code = path.read_bytes()
    except OSError as error:
        cure = "name a Python file with a PLUGIN, relative to benchmark.yaml"
        reason = error.strerror or type(error).__name__
        raise InputError(Problem(f"cannot be read: {reason}", file=where, cure=cure)) from error
    digest = hashlib.sha256(code).hexdigest()
    module = _import(path, f"benchmark_assets_plugin_{digest[:16]}")
    return UserPlugin(_checked(getattr(module, "PLUGIN", None), where), digest)


def _import(path: Path, name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"there is no way to import {path.name}")
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and pickles look their module up by name while it is being made.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _checked(value: Any, where: str) -> Plugin:
    if value is None:
        message = "has no PLUGIN"
    elif not isinstance(value, Plugin):
        message = f"PLUGIN is a {type(value).__name__}"
    elif (flaw := _flaw(value.name, value.description, value.prepare)) is not None:
        message = flaw
    else:
        return value
    cure = "write PLUGIN = Plugin(name, description, prepare), as docs/plugins.md shows"
    raise InputError(Problem(message, file=where, cure=cure))


def _flaw(name: object, description: object, prepare: object) -> str | None:
    """What is wrong with a plugin's fields, whose types nobody checked; None if nothing is."""
    if not all(isinstance(text, str) and text.strip() for text in (name, description)):
        return "PLUGIN has no name or no description that is a text"
    return None if callable(prepare) else "PLUGIN has no function to prepare with"
