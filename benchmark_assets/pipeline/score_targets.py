"""Which Langfuse project the scores of a source's traces go to, and writing them there.

Belongs here: finding the credentials of a source, the server that they lead to, one call that
writes what is to be written. Does not belong here: what that is (`write_back`).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from benchmark_assets.adapters.langfuse.credentials import resolve
from benchmark_assets.adapters.langfuse.http import Client, Limits
from benchmark_assets.adapters.langfuse.scores import ScoreWriter
from benchmark_assets.adapters.langfuse.servers import probe
from benchmark_assets.adapters.project_file import FILE_NAME
from benchmark_assets.adapters.sources import Progress, quiet
from benchmark_assets.model.identity import content_hash
from benchmark_assets.model.problem import InputError, Problem, did_you_mean
from benchmark_assets.model.project import LangfuseSource, ProjectConfig
from benchmark_assets.pipeline.plan import Selection
from benchmark_assets.pipeline.workspace import Workspace
from benchmark_assets.pipeline.write_back import (
    ScoresWritten,
    Target,
    judged_runs,
    write_scores,
)


class Outcome(msgspec.Struct, kw_only=True):
    """What writing the scores of one source came to.

    Attributes:
        source: The source's name.
        base_url, project, project_id: Where they went.
        written: What was written.
        requests: Requests that it took.
        error: What ended it before its time; None if nothing did.
    """

    source: str
    base_url: str = ""
    project: str | None = None
    project_id: str | None = None
    written: ScoresWritten = msgspec.field(default_factory=ScoresWritten)
    requests: int = 0
    error: InputError | None = None


def score_sources(config: ProjectConfig, named: Sequence[str] = ()) -> tuple[str, ...]:
    """The sources whose traces' verdicts are written: those named, else those configured.

    Raises:
        InputError: If one is not known, or there is none.
    """
    known = [source.name for source in config.sources]
    problems = [
        Problem(f"there is no source {name}", cure=did_you_mean(name, known))
        for name in named
        if name not in known
    ]
    if problems:
        raise InputError(problems)
    live = [source.name for source in config.sources if isinstance(source, LangfuseSource)]
    found = tuple(named or config.write_back.sources or live)
    if not found:
        cure = f"name a source with --source, or declare one of kind langfuse in {FILE_NAME}"
        raise InputError(Problem("no source has its traces on a Langfuse server", cure=cure))
    return found


def write_source(
    workspace: Workspace,
    source: str,
    selection: Selection,
    *,
    dry_run: bool = False,
    limits: Limits | None = None,
    flags: Mapping[str, str | None] | None = None,
    progress: Progress = quiet,
) -> Outcome:
    """Write the verdicts of one source's traces as scores to the Langfuse project they are from.

    Args:
        workspace: The project.
        source: The source's name.
        selection: Which verdicts.
        dry_run: Only say what would be written. The server is asked what it is all the same.
        limits: What bounds the requests.
        flags: Credentials, by the names of their variables.
        progress: Told how far it is.

    Raises:
        InputError: If the credentials are missing, or the server cannot be asked what it is. What
            goes wrong later is the outcome's.
    """
    config = workspace.project.config
    settings = {item.name: item for item in config.sources}.get(source)
    own = settings if isinstance(settings, LangfuseSource) else None
    credentials = resolve(flags=flags or {}, env=os.environ, folder=_folder(workspace), source=own)
    outcome = Outcome(source=source, base_url=credentials.base_url)
    with Client(credentials, limits=limits) as client:
        server = probe(client)
        outcome.project, outcome.project_id = server.project, server.project_id
        # Keys of a project whose id is not told stand for it; their hash tells nothing of them.
        project = server.project_id or content_hash(credentials.public_key)
        target = Target(base_url=credentials.base_url, project=project)
        writer = None if dry_run else ScoreWriter(client, server.version)
        months = judged_runs(workspace, selection, {source}, progress)
        try:
            write_scores(workspace.store, target, months, writer, outcome.written)
        except InputError as error:
            outcome.error = error
        outcome.requests = client.counts.requests
    return outcome


def _folder(workspace: Workspace) -> Path:
    """Where `.env.local` and `.env` are: beside `benchmark.yaml`."""
    return workspace.project.root
