"""Freezing candidate traces as golden ones: what would change, and writing it.

Belongs here: which candidate is frozen, whether it may be, the file that it becomes. Does not
belong here: asking whether to (`cli/golden`), or grading a suite (`pipeline/golden`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmark_assets.adapters.fixture_files import golden_path_of
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.adapters.formats.recorder import recording_of
from benchmark_assets.adapters.golden_files import (
    TraceFolder,
    read_bytes,
    read_candidate,
    write_whole,
)
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.model.problem import InputError
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.pipeline.golden import (
    FixtureFile,
    Surroundings,
    grader_of,
    of_another,
    read_golden,
)
from benchmark_assets.scoring.golden_diff import described, differences


@dataclass(frozen=True)
class Blessing:
    """A candidate that may become the golden trace of a fixture.

    Attributes:
        id: The fixture's id.
        source: The candidate's file as people should see it.
        path: The file of the golden trace.
        changes: What differs from the present golden trace, a line each; without one, what the
            new one holds. Empty: nothing differs.
        refused: Why it must not be frozen, a text each; empty if it may be.
        data: The bytes that the file would have.
    """

    id: str
    source: str
    path: Path
    changes: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    data: bytes = b""

    def write(self) -> None:
        """Freeze it.

        Raises:
            OSError: If the file cannot be written.
        """
        write_whole(self.path, self.data)


def consider(file: FixtureFile, traces: TraceFolder, around: Surroundings) -> Blessing:
    """Look at the candidate of a fixture; of several trials the first. Never raises."""
    fixture = file.fixture
    path = golden_path_of(file.path, fixture.id)
    try:
        candidates = traces.candidates(fixture.id)
        if not candidates:
            return Blessing(fixture.id, "no trace", path, refused=("there is no trace",))
        source = candidates[0].path
        candidate = read_candidate(source, around.config)[0]
        data = _data(source, candidate)
    except InputError as error:
        refused = tuple(map(str, error.problems))
        return Blessing(fixture.id, shown_path(traces.path), path, refused=refused)
    grader = grader_of(fixture, around)
    another = of_another(fixture, candidate)
    graded = grader.grade(candidate).failures
    failures = graded if another is None else (another, *graded)
    if failures:
        return Blessing(fixture.id, source, path, refused=failures)
    lost = grader.grade(read_bytes(data, str(path), around.config)[0]).failures
    if lost:
        why = "the recorder's format cannot hold what the fixture looks at"
        return Blessing(fixture.id, source, path, refused=(why, *lost))
    golden = read_golden(file, grader, around.config)
    if golden is None:
        changes = ["there is no golden trace yet", *described(candidate)]
    elif golden.trace is None:
        changes = [*golden.failures, *described(candidate)]
    else:
        changes = differences(golden.trace, candidate)
    return Blessing(fixture.id, source, path, tuple(changes), data=data)


def _data(source: str, candidate: TraceSnapshot) -> bytes:
    """The golden file of a candidate: the recording as it is, else what one can hold of it."""
    recording: Any = None
    if candidate.origin.format == "recorder" and candidate.origin.record is None:
        recording = TraceFile(source, source, Path(source).read_bytes()).json
    # A conversation beside the recording is never read, and makes diffs unreadable.
    recording = recording_of(candidate) if recording is None else recording
    kept = {key: value for key, value in recording.items() if key != "messages"}
    return json.dumps(kept, indent=2, ensure_ascii=False).encode()
