"""Golden traces as pytest cases: `golden_fixtures = fixtures` in the pytest configuration.

Belongs here: collecting a folder of fixtures, and what pytest shows of a case. Does not belong
here: grading (`pipeline/golden`).

Every pytest run of an environment imports this module, so it imports nothing but pytest: the rest
is loaded in runs that collect a folder of fixtures.

The folder is a collector of its own, so cases are selected, run in parallel and reported as any
others: `fixtures/refund.json::refund-requires-order-lookup trial 2`. What is wrong with the folder
itself, such as a fixture that vanished, is a failed case of the folder.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from benchmark_assets.model.golden_suite import CaseResult

FIXTURES = "golden_fixtures"
TRACES = "golden_traces"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the settings."""
    parser.addini(FIXTURES, "Folder of golden trace fixtures to run as cases.", default="")
    parser.addini(TRACES, "Folder of their candidate traces.", default="traces")


def pytest_configure(config: pytest.Config) -> None:
    """Collect the folder in runs of the whole suite, wherever it lies.

    One outside of what pytest was started in would go uncollected, and the run would be green.

    Raises:
        pytest.UsageError: If there is no such folder.
    """
    fixtures = _folder(config, FIXTURES)
    if fixtures is None:
        return
    if not fixtures.is_dir():
        raise pytest.UsageError(f"{FIXTURES}: there is no folder {fixtures}")
    if config.args_source is not pytest.Config.ArgsSource.ARGS and not any(
        _covers(config, arg, fixtures) for arg in config.args
    ):
        config.args.append(str(fixtures))


@pytest.hookimpl(tryfirst=True)
def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Look into the folder, and into nothing else, where pytest passes over one on the way to it."""
    fixtures = _folder(config, FIXTURES)
    if fixtures is None or config.args_source is pytest.Config.ArgsSource.ARGS:
        return None
    if fixtures.is_relative_to(collection_path):
        return None if collection_path in _ignored(config) else False
    way = [folder for folder in fixtures.parents if collection_path.is_relative_to(folder)]
    passed_over = config.getini("norecursedirs")
    hidden = [
        folder
        for folder in way
        if folder.is_relative_to(config.rootpath)
        and folder != config.rootpath
        and any(fnmatch.fnmatch(folder.name, pattern) for pattern in passed_over)
    ]
    return True if hidden and not collection_path.is_relative_to(fixtures) else None


def _ignored(config: pytest.Config) -> set[Path]:
    """What is left out on purpose."""
    return {(config.invocation_params.dir / p).resolve() for p in config.getoption("ignore") or ()}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let no run of the whole suite be green that has left the folder out unasked.

    Raises:
        pytest.UsageError: If something kept the folder from being collected.
    """
    config = session.config
    fixtures = _folder(config, FIXTURES)
    if fixtures is None or config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    left_out = any(fixtures.is_relative_to(path) for path in _ignored(config))
    if not config.stash.get(_COLLECTED, False) and not left_out:
        raise pytest.UsageError(
            f"{FIXTURES}: {fixtures} was not collected; --ignore leaves it out on purpose"
        )


_COLLECTED = pytest.StashKey[bool]()


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect the folder of fixtures in our own way, and leave all others alone."""
    fixtures = _folder(parent.config, FIXTURES)
    if fixtures is None or path.resolve() != fixtures:
        return None
    return FixturesFolder.from_parent(parent, path=path)


def _folder(config: pytest.Config, setting: str) -> Path | None:
    """A folder that a setting names, relative to the file that it stands in."""
    value = str(config.getini(setting))
    base = config.rootpath if config.inipath is None else config.inipath.parent
    return (base / value).resolve() if value else None


def _covers(config: pytest.Config, argument: str, folder: Path) -> bool:
    given = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
    return folder.is_relative_to(given)


class FixturesFolder(pytest.Directory):
    """A folder of fixtures, graded as a whole when it is collected: that takes milliseconds."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        """Yield what is wrong with the folder, then the fixture files."""
        from benchmark_assets.adapters.project_file import load_project
        from benchmark_assets.pipeline.golden import Surroundings, read_fixtures, run_suite
        from benchmark_assets.pipeline.workspace import Workspace

        self.config.stash[_COLLECTED] = True
        traces = _folder(self.config, TRACES)
        assert traces is not None
        workspace = Workspace(load_project(cwd=self.config.rootpath))
        around = Surroundings(workspace.rules, workspace.project.config)
        suite = run_suite(read_fixtures(self.path, traces), traces, around)
        for warning in suite.warnings:
            self.warn(pytest.PytestWarning(warning))
        files: dict[Path, list[CaseResult]] = {}
        for case in suite.cases:
            if case.subject == "suite" or case.fixture_file is None:
                yield GoldenCase.of(self, case)
            else:
                files.setdefault(Path(case.fixture_file).resolve(), []).append(case)
        for path, cases in files.items():
            yield FixtureFile.of(self, path, cases)


class FixtureFile(pytest.File):
    """A fixture's file, with the case of each trial."""

    cases: list[CaseResult]

    @classmethod
    def of(cls, parent: pytest.Collector, path: Path, cases: list[CaseResult]) -> FixtureFile:
        """The collector of a file."""
        file: FixtureFile = cls.from_parent(parent, path=path)
        file.cases = cases
        return file

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the cases."""
        for case in self.cases:
            yield GoldenCase.of(self, case)


class GoldenCaseError(Exception):
    """A case did not pass."""


class GoldenCase(pytest.Item):
    """One trial of one fixture."""

    case: CaseResult

    @classmethod
    def of(cls, parent: pytest.Collector, case: CaseResult) -> GoldenCase:
        """The item of a case."""
        from benchmark_assets.report.golden import title

        item: GoldenCase = cls.from_parent(parent, name=title(case))
        item.case = case
        item.user_properties += [("mark", mark) for mark in case.marks]
        return item

    def runtest(self) -> None:
        """Fail if the case did not pass.

        Raises:
            GoldenCaseError: With what is wrong.
        """
        from benchmark_assets.report.golden import case_lines

        if self.case.result != "PASS":
            raise GoldenCaseError("\n".join(line.plain for line in case_lines(self.case)))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None
    ) -> str:
        """What is wrong, without a traceback, which would lead nowhere."""
        if isinstance(excinfo.value, GoldenCaseError):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where the case stands, and what it is called."""
        return self.path, None, self.name
