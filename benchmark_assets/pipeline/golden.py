"""The golden suite: a folder of fixtures and a folder of candidate traces in, verdicts out.

Belongs here: what a suite must hold beside its traces passing: no fixture and no trace vanishes,
nothing goes unread, a golden trace still passes its own fixture. Does not belong here: the rules
(`scoring`), files' names (`adapters/golden_files`), what results look like (`report/golden`), or
freezing golden traces (`pipeline/bless`).

It fails closed: what cannot be read or told becomes a case that fails.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmark_assets.adapters.contract_files import same_id
from benchmark_assets.adapters.fixture_files import (
    GOLDEN_SUFFIX,
    golden_path_of,
    read_fixture_file,
)
from benchmark_assets.adapters.golden_files import (
    LOCK_NAME,
    Candidate,
    Lock,
    TraceFolder,
    existing_golden,
    find_files,
    is_fixture_by_content,
    read_candidate,
    read_lock,
    write_lock,
)
from benchmark_assets.adapters.harness_files import load_harnesses
from benchmark_assets.adapters.traces import settle
from benchmark_assets.adapters.yaml_files import shown_path
from benchmark_assets.leaderboard.estimators import pass_hat_k
from benchmark_assets.model.golden import Fixture
from benchmark_assets.model.golden_suite import (
    NOTHING_WRONG,
    CaseResult,
    Explained,
    Explanation,
    SuiteResult,
    Trials,
    because,
)
from benchmark_assets.model.identity import path_key
from benchmark_assets.model.problem import InputError, Problem
from benchmark_assets.model.project import ProjectConfig
from benchmark_assets.model.trace import TraceSnapshot
from benchmark_assets.pipeline.rules import Rules, load_plugins
from benchmark_assets.recorder.redaction import hidden_text
from benchmark_assets.scoring.golden_diff import path_difference
from benchmark_assets.scoring.golden_path import GoldenResult, Grader
from benchmark_assets.scoring.legal_paths import path_hash

MOST_K = 50
"""Largest k that pass^k is given for."""

_AT_ONCE = 64
"""Fixtures whose traces are read before they are graded: taking turns with the system's calls makes
grading half as slow again, and all at once would take memory."""


@dataclass(frozen=True)
class Surroundings:
    """What verdicts depend on beside fixture and trace: the project's rules and settings."""

    rules: Rules
    config: ProjectConfig


@cache
def plain_surroundings() -> Surroundings:
    """Those without a project: the package's harness profiles, installed plugins, defaults.

    Raises:
        InputError: If an installed plugin cannot be used.
    """
    return Surroundings(Rules(load_harnesses(()).profiles, load_plugins(())), ProjectConfig())


@dataclass(frozen=True)
class FixtureFile:
    """A fixture and the files it stands in.

    Attributes:
        fixture: The fixture.
        path: Its file.
        name: The file as people should see it.
        golden: The file of its golden trace; None if it has none.
    """

    fixture: Fixture
    path: Path
    name: str
    golden: Path | None


@dataclass(frozen=True)
class FixtureFolder:
    """The fixtures of a folder.

    Attributes:
        path: The folder.
        fixtures: Those that can be read, by id.
        flaws: What is wrong with the folder: files that cannot be read, ids given twice, no
            fixture at all, a lock file that is none. Each fails the suite.
        lock: What must be there; None without a lock file.
    """

    path: Path
    fixtures: dict[str, FixtureFile]
    flaws: tuple[CaseResult, ...]
    lock: Lock | None

    @property
    def hashes(self) -> dict[str, str]:
        """The lock that these fixtures would have."""
        return {key: f.fixture.contract.content_hash for key, f in self.fixtures.items()}

    @property
    def vanished(self) -> list[str]:
        """Ids that must be there and are not."""
        return [] if self.lock is None else sorted(self.lock.fixtures.keys() - self.fixtures.keys())

    @property
    def golden(self) -> list[str]:
        """Ids of the fixtures that have a golden trace."""
        return sorted(key for key, file in self.fixtures.items() if file.golden is not None)

    @property
    def vanished_golden(self) -> list[str]:
        """Ids of the fixtures that are there and whose golden trace should be and is not."""
        known = () if self.lock is None else self.lock.golden
        return sorted((set(known) & self.fixtures.keys()) - set(self.golden))


def read_fixtures(folder: Path, traces: Path | None = None) -> FixtureFolder:
    """Read the fixtures of a folder and the folders in it, and its lock file. Never raises."""
    shown = shown_path(folder)
    fixtures: dict[str, FixtureFile] = {}
    flaws: list[CaseResult] = []
    lock = None
    try:
        files, others = find_files(folder, traces)
    except InputError as error:
        files, others = [], []
        flaws.append(_flaw(shown, error.problems, missing=True))
    try:
        lock = read_lock(folder)
    except InputError as error:
        flaws.append(_flaw(_lock_name(folder), error.problems))
    unread = 0
    for path in files:
        try:
            read = read_fixture_file(path)
        except InputError as error:
            unread += 1
            flaws.append(_flaw(shown_path(path), error.problems))
            continue
        unread += bool(read.problems)
        problems = list(read.problems)
        for document, fixture in read.fixtures:
            golden = existing_golden(path, fixture.id)
            file = FixtureFile(fixture, path, document.name, golden)
            first = fixtures.setdefault(fixture.id, file)
            if first is not file:
                problems.append(same_id(document, fixture.id, first.name))
        if problems:
            flaws.append(_flaw(shown_path(path), problems))
    if not fixtures and all(flaw.fixture_file == _lock_name(folder) for flaw in flaws):
        cure = "write a fixture *.json, or name another folder with --fixtures"
        problem = Problem("holds no fixture", file=shown, cure=cure)
        flaws.insert(0, _flaw(shown, [problem], missing=True))
    flaws += _strays(others, fixtures, complete=not unread)
    return FixtureFolder(folder, fixtures, tuple(flaws), lock)


def _strays(
    others: Sequence[Path], fixtures: Mapping[str, FixtureFile], *, complete: bool
) -> Iterator[CaseResult]:
    """Files that say that a path should be tested which is not.

    Args:
        others: Files that are no fixtures by their names.
        fixtures: The fixtures, by id.
        complete: Whether all fixtures could be read; else one of those may own a golden trace.
    """
    golden = {file.golden for file in fixtures.values() if file.golden is not None}
    for path in others:
        if path in golden or path.name == LOCK_NAME:
            continue
        name = shown_path(path)
        if is_fixture_by_content(path):
            message = "is a fixture, and no file of such a name is taken for one"
            cure = "name it otherwise: .golden.json, .lock.json and .schema.json are kept"
            yield _flaw(name, [Problem(message, file=name, cure=cure)])
        elif path.name.lower().endswith(GOLDEN_SUFFIX) and complete:
            if any(path.samefile(one) for one in golden):  # Where names differ in case alone.
                continue
            message = "is the golden trace of no fixture beside it: has the fixture vanished?"
            cure = "restore the fixture, or remove or rename its golden trace, too"
            yield _flaw(name, [Problem(message, file=name, cure=cure)], missing=True)


def _flaw(name: str, problems: Sequence[Problem], *, missing: bool = False) -> CaseResult:
    return CaseResult(
        id=name,
        result="MISSING" if missing else "FAIL",
        subject="suite",
        explained=because(*map(str, problems)),
        fixture_file=name,
    )


def accept(folder: FixtureFolder) -> list[str]:
    """Write the lock file for the fixtures that there are; returns what changed, a line each.

    Raises:
        InputError: If a fixture cannot be read: its id would be lost.
        OSError: If the file cannot be written.
    """
    unusable = [flaw for flaw in folder.flaws if flaw.fixture_file != _lock_name(folder.path)]
    if unusable:
        reasons = [Problem(text) for flaw in unusable for text in flaw.failures]
        raise InputError([*reasons, Problem("nothing was accepted: all fixtures must be readable")])
    now, before = folder.hashes, {} if folder.lock is None else folder.lock.fixtures
    golden, had = set(folder.golden), set(() if folder.lock is None else folder.lock.golden)
    write_lock(folder.path, now, golden)
    return [
        *(f"{key}: new" for key in sorted(now.keys() - before.keys())),
        *(f"{key}: gone" for key in sorted(before.keys() - now.keys())),
        *(f"{key}: changed" for key in sorted(now) if before.get(key, now[key]) != now[key]),
        *(f"{key}: its golden trace is new" for key in sorted(golden - had)),
        *(f"{key}: its golden trace is gone" for key in sorted((had & now.keys()) - golden)),
    ]


def _lock_name(folder: Path) -> str:
    return shown_path(folder / LOCK_NAME)


# Grading.


def grade_folder(
    fixtures: Path, traces: Path, surroundings: Surroundings | None = None
) -> list[CaseResult]:
    """Grade all candidate traces by all fixtures. Never raises for what is in the folders."""
    return list(run_suite(read_fixtures(fixtures, traces), traces, surroundings).cases)


def run_suite(
    folder: FixtureFolder,
    traces: Path,
    surroundings: Surroundings | None = None,
    only: Iterable[str] = (),
    *,
    details: bool = False,
) -> SuiteResult:
    """Grade a folder of candidate traces. Never raises for what is in the folders.

    Args:
        folder: The fixtures.
        traces: The folder of candidate traces.
        surroundings: Default: those without a project.
        only: Ids of the fixtures to grade; none: all. What is wrong with the folder itself is
            reported whatever is chosen: a vanished fixture may be the one that was meant.
        details: Whether to keep what was looked at in traces that passed, too.
    """
    return Suite(folder, surroundings or plain_surroundings(), only).run(traces, details=details)


class Suite:
    """The fixtures of a folder compiled once, to grade any number of folders of traces."""

    def __init__(
        self, folder: FixtureFolder, around: Surroundings, only: Iterable[str] = ()
    ) -> None:
        chosen = set(only) or set(folder.fixtures)
        self._fixed = (*folder.flaws, *_vanished(folder))
        self._notes = tuple(_notes(folder))
        self._ids = sorted(folder.fixtures)
        self._cases = {
            key: _Case(file, around) for key, file in folder.fixtures.items() if key in chosen
        }

    def run(self, traces: Path, *, details: bool = False) -> SuiteResult:
        """Grade a folder of candidate traces. Never raises for what is in it.

        Args:
            traces: The folder.
            details: Whether to keep what was looked at in traces that passed, too.
        """
        cases = list(self._fixed)
        unused: list[str] = []
        try:
            found = TraceFolder(traces)
            for start in range(0, len(self._ids), _AT_ONCE):
                read = []
                for key in self._ids[start : start + _AT_ONCE]:
                    case = self._cases.get(key)
                    if case is None:
                        _claim(found, key)
                    else:
                        read.append((case, case.read(found)))
                for case, trials in read:
                    cases += case.grade(trials, traces, details=details)
            unused = found.unclaimed()
        except InputError as error:
            cases.append(_flaw(shown_path(traces), error.problems))
        return SuiteResult(
            cases=tuple(cases),
            trials=tuple(_trials(cases)),
            warnings=tuple(
                f"{name}: no fixture has this id, so it is not graded" for name in unused
            ),
            notes=self._notes,
        )


def _vanished(folder: FixtureFolder) -> list[CaseResult]:
    lock = _lock_name(folder.path)
    accepted = "run with --accept if it was removed on purpose"
    fixtures = [
        CaseResult(
            id=key,
            result="MISSING",
            subject="suite",
            explained=because(
                f"the fixture vanished: {lock} lists it and no file has this id; restore it, or "
                f"{accepted}"
            ),
            fixture_file=lock,
        )
        for key in folder.vanished
    ]
    golden = [
        CaseResult(
            id=key,
            result="MISSING",
            subject="golden",
            explained=because(
                f"the golden trace vanished: {lock} lists it, and {path} is not there; restore it, "
                f"freeze another with --bless, or {accepted}"
            ),
            fixture_file=folder.fixtures[key].name,
            trace_file=path,
        )
        for key in folder.vanished_golden
        for path in [shown_path(golden_path_of(folder.fixtures[key].path, key))]
    ]
    return [*fixtures, *golden]


def _notes(folder: FixtureFolder) -> Iterator[str]:
    if not folder.fixtures:
        return
    if folder.lock is None:
        if not any(flaw.fixture_file == _lock_name(folder.path) for flaw in folder.flaws):
            yield "there is no lock file: a fixture that vanishes goes unseen; --accept writes one"
        return
    for key, digest in sorted(folder.hashes.items()):
        if key not in folder.lock.fixtures:
            yield f"{key} is new and not yet in {LOCK_NAME}; --accept adds it"
        elif folder.lock.fixtures[key] != digest:
            yield f"{key} has changed since it was accepted; --accept takes the change over"
    unlisted = sorted(set(folder.golden) & folder.lock.fixtures.keys() - set(folder.lock.golden))
    if unlisted:
        yield (
            f"{LOCK_NAME} does not list the golden {'trace' if len(unlisted) == 1 else 'traces'} "
            f"of {', '.join(unlisted)}: one that vanishes goes unseen; --accept adds it"
        )


def _claim(traces: TraceFolder, fixture: str) -> None:
    try:
        traces.candidates(fixture)
    except InputError:
        return


@dataclass(frozen=True)
class Golden:
    """A fixture's golden trace, and how its own fixture grades it."""

    path: Path
    trace: TraceSnapshot | None
    failures: tuple[str, ...]

    @property
    def name(self) -> str:
        """The file as people should see it."""
        return shown_path(self.path)


def read_golden(file: FixtureFile, grader: Grader, config: ProjectConfig) -> Golden | None:
    """Read and grade a fixture's golden trace; None if it has none. Never raises."""
    path = file.golden
    if path is None:
        return None
    try:
        traces = read_candidate(str(path), config)
    except InputError as error:
        return Golden(path, None, tuple(map(str, error.problems)))
    if len(traces) != 1:
        return Golden(path, None, (f"holds {len(traces)} traces; one is a golden trace",))
    another = of_another(file.fixture, traces[0])
    failures = grader.grade(traces[0]).failures
    return Golden(path, traces[0], failures if another is None else (another, *failures))


class _Case:
    """One fixture, its golden trace, and grading candidates by it."""

    def __init__(self, file: FixtureFile, around: Surroundings) -> None:
        self._file = file
        self._id = file.fixture.id
        self._name = file.name
        self._config = around.config
        self._grader = grader_of(file.fixture, around)
        self._golden = read_golden(file, self._grader, around.config)

    def read(self, traces: TraceFolder) -> list[_Read] | InputError:
        """Read all trials."""
        try:
            return [(c, _read(c, self._config)) for c in traces.candidates(self._id)]
        except InputError as error:
            return error

    def grade(
        self, trials: list[_Read] | InputError, traces: Path, *, details: bool
    ) -> list[CaseResult]:
        """Grade all trials, then the golden trace, which is a case only if it fails."""
        cases: list[CaseResult] = []
        if isinstance(trials, InputError):
            cases.append(self._failed(map(str, trials.problems)))
        else:
            if not trials:
                expected = f"expected {shown_path(traces)}/{path_key(self._id)}.json"
                cases.append(self._failed([f"there is no trace: {expected}"], missing=True))
            for candidate, found in trials:
                if not isinstance(found, InputError) and len(found) == 1:
                    cases.append(self._grade(found[0], candidate, details=details))
                else:
                    cases += self._grade_several(found, candidate, details=details)
            lost = _gaps([candidate for candidate, _ in trials])
            if lost:
                listed = ", ".join(map(str, lost))
                text = f"trial {listed} vanished: those after it are there"
                cases.append(self._failed([text], trial=lost[0], missing=True))
        if self._golden is not None and self._golden.failures:
            cases.append(self._golden_failed(self._golden))
        return cases

    def _golden_failed(self, golden: Golden) -> CaseResult:
        found = "; ".join(golden.failures)
        return CaseResult(
            id=self._id,
            result="FAIL",
            subject="golden",
            explained=because(f"the golden trace no longer passes its own fixture: {found}"),
            fixture_file=self._name,
            trace_file=golden.name,
        )

    def _grade_several(
        self, found: list[TraceSnapshot] | InputError, candidate: Candidate, *, details: bool
    ) -> list[CaseResult]:
        trial, path = candidate.trial, candidate.path
        if isinstance(found, InputError):
            return [self._failed(map(str, found.problems), trial=trial, trace_file=path)]
        if trial is not None:
            text = f"holds {len(found)} traces; save one trial a file"
            return [self._failed([text], trial=trial, trace_file=path)]
        return [
            self._grade(snapshot, Candidate(path, number), details=details)
            for number, snapshot in _numbered(found)
        ]

    def _grade(self, trace: TraceSnapshot, candidate: Candidate, *, details: bool) -> CaseResult:
        passed = None if details else self._grader.passes(trace)
        if passed and of_another(self._file.fixture, trace) is not None:
            passed = False
        # Where only that a question was asked is known, a pass has something to say for itself.
        silent = passed and not trace.asked_clarification
        explained = NOTHING_WRONG if silent else Explained(lambda: self._explain(trace))
        if passed is None:
            passed = not explained().failures
        return CaseResult(
            id=self._id,
            trial=candidate.trial,
            result="PASS" if passed else "FAIL",
            path_hash=path_hash([call.name for call in trace.tool_calls]),
            explained=explained,
            fixture_file=self._name,
            trace_file=candidate.path,
        )

    def _explain(self, read: TraceSnapshot) -> Explanation:
        trace = settle(read, self._config)
        graded = self._grader.grade(trace)
        another = of_another(self._file.fixture, trace)
        failures = graded.failures if another is None else (another, *graded.failures)
        return Explanation(
            failures=failures,
            checks=graded.checks,
            similarity=_similarity(graded) if failures else None,
            against_golden=self._against_golden(trace) if failures else None,
        )

    def _against_golden(self, trace: TraceSnapshot) -> str | None:
        if self._golden is None or self._golden.trace is None or trace.problem is not None:
            return None
        return path_difference(self._golden.trace, trace) or "the same path"

    def _failed(
        self,
        failures: Iterable[str],
        *,
        trial: int | None = None,
        missing: bool = False,
        trace_file: str | None = None,
    ) -> CaseResult:
        return CaseResult(
            id=self._id,
            trial=trial,
            result="MISSING" if missing else "FAIL",
            explained=because(*failures),
            fixture_file=self._name,
            trace_file=trace_file,
        )


_Read = tuple[Candidate, "list[TraceSnapshot] | InputError"]
"""A trial's file, and the traces in it."""


def _read(candidate: Candidate, config: ProjectConfig) -> list[TraceSnapshot] | InputError:
    try:
        return read_candidate(candidate.path, config, settled=False)
    except InputError as error:
        return error


def grader_of(fixture: Fixture, around: Surroundings) -> Grader:
    """A fixture compiled with a project's profiles and plugins."""
    return Grader(fixture, around.rules.profiles, around.rules.plugins)


def of_another(fixture: Fixture, trace: TraceSnapshot) -> str | None:
    """Why a recorded trace, by what it says of itself, is none of this fixture's; None if it is."""
    if trace.origin.format != "recorder":
        return None
    if trace.name is not None and trace.name != fixture.id:
        return f"the trace was recorded for the fixture '{trace.name}'"
    # Where texts are hashed on the way, that of the turn is there in place of it.
    if trace.prompt not in (None, fixture.user) and trace.prompt != hidden_text(fixture.user):
        return "the trace was recorded for another user turn; replay it"
    return None


def _numbered(snapshots: Sequence[TraceSnapshot]) -> Iterator[tuple[int | None, TraceSnapshot]]:
    """The trials of one file: by what the traces say, else by their order."""
    said = [snapshot.trial for snapshot in snapshots]
    known = None not in said and len(set(said)) == len(said)
    for number, snapshot in enumerate(snapshots, 1):
        yield snapshot.trial if known else number, snapshot


def _gaps(candidates: Sequence[Candidate]) -> list[int]:
    """Numbers of trials that are missing before others that are there; the first few."""
    numbers = {c.trial for c in candidates if c.trial is not None}
    if not numbers:
        return []
    first = 0 if 0 in numbers else 1
    lost: list[int] = []
    for number in range(first, max(numbers)):
        if number not in numbers:
            lost.append(number)
        if len(lost) == _MOST_GAPS:
            break
    return lost


_MOST_GAPS = 10


def _similarity(graded: GoldenResult) -> float | None:
    for check in graded.checks:
        if check.name == "path similarity" and check.observed is not None:
            return float(check.observed)
    return None


def _trials(cases: Sequence[CaseResult]) -> Iterator[Trials]:
    """pass^k of every fixture with several trials, and of the suite if there is one."""
    counts: dict[str, tuple[int, int]] = {}
    for case in cases:
        if case.subject == "candidate":
            passed, trials = counts.get(case.id, (0, 0))
            counts[case.id] = passed + (case.result == "PASS"), trials + 1
    if all(trials < 2 for _, trials in counts.values()):
        return
    for key, (passed, trials) in counts.items():
        if trials > 1:
            yield _reliability(key, {key: (passed, trials)})
    yield _reliability(None, counts)


def _reliability(key: str | None, counts: Mapping[str, tuple[int, int]]) -> Trials:
    # Without a trace there is nothing to draw k trials from, and none of them passes.
    most = max(trials for _, trials in counts.values())
    fewest = min((trials for passed, trials in counts.values() if passed), default=most)
    tasks = [(c, n if c else max(n, fewest)) for c, n in counts.values()]
    return Trials(
        id=key,
        passed=sum(passed for passed, _ in counts.values()),
        trials=sum(trials for _, trials in counts.values()),
        pass_hat=tuple(pass_hat_k(tasks, k) for k in range(1, min(fewest, MOST_K) + 1)),
    )
