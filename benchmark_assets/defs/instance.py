"""The Dagster instance that `bench` writes to: the one that `dagster dev` shows.

Belongs here: finding and opening it. Does not belong here: running anything on it.

`dagster dev` in the project's folder reads `dagster.yaml` there, and a relative `base_dir` in
it is relative to that folder. `bench` may be called from anywhere below, so the paths are made
absolute here. A store other than the project's own gets an instance of its own beside it, so
that trying something out never shows up in the project's history.
"""

import hashlib
import logging
import os
from pathlib import Path
from typing import Any

import dagster as dg
import yaml
from dagster._core.instance.ref import InstanceRef

from benchmark_assets.adapters.project_file import Project
from benchmark_assets.model.problem import InputError, Problem

_PRIVATE: dict[str, Any] = {"telemetry": {"enabled": False}, "nux": {"enabled": False}}


def instance_folder(project: Project, *, own_store: bool) -> Path:
    """Where the instance's files lie.

    Args:
        project: The project, with its store.
        own_store: Whether the store is the project's own rather than another given for once.
    """
    if own_store and (project.root / "dagster.yaml").exists():
        return project.root
    if "://" in project.store:
        digest = hashlib.sha256(project.store.encode()).hexdigest()[:12]
        return project.root / f"store-{digest}.dagster"
    store = Path(project.store)
    return store.with_name(store.name + ".dagster")


def open_instance(project: Project, *, own_store: bool) -> dg.DagsterInstance:
    """Open (and create, if need be) the instance of a project and store.

    `DAGSTER_HOME` wins for the project's own store: whoever sets it means it.
    """
    logging.getLogger("dagster").setLevel(logging.ERROR)
    if own_store and os.environ.get("DAGSTER_HOME"):
        return dg.DagsterInstance.get()
    folder = instance_folder(project, own_store=own_store)
    if any(character in str(folder) for character in "?#%"):
        # They would end the path in the SQLite address that Dagster makes of it.
        problem = Problem(
            "Dagster cannot keep its history below a path with ? # or %",
            file=str(folder),
            cure="name another --store, or set DAGSTER_HOME for the project's own",
        )
        raise InputError(problem)
    folder.mkdir(parents=True, exist_ok=True)
    overrides: dict[str, Any] = {}
    config = folder / "dagster.yaml"
    if config.exists():
        overrides = _absolute(yaml.safe_load(config.read_text(encoding="utf-8")) or {}, folder)
    else:
        overrides = dict(_PRIVATE)
    reference = InstanceRef.from_dir(str(folder), overrides=overrides)
    return dg.DagsterInstance.from_ref(reference)


def _absolute(config: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The top-level sections of a `dagster.yaml` in which a relative `base_dir` is resolved."""

    def resolve(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: str(folder / item)
                if key == "base_dir" and isinstance(item, str)
                else resolve(item)
                for key, item in value.items()
            }
        return value

    return {key: resolve(value) for key, value in config.items() if isinstance(value, dict)}
