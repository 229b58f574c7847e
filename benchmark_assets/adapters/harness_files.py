"""Harness profiles in files: those that come with the package and those that users add.

Belongs here: finding and loading them, and which of two with one name holds. Does not belong
here: what a profile may say (`model/harness`), or what it makes of a trace (`scoring`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from benchmark_assets.adapters.yaml_files import parse_yaml, read_yaml, shown_path, validate
from benchmark_assets.model.harness import HarnessProfile
from benchmark_assets.model.problem import InputError, Problem, did_you_mean

SUFFIXES = (".yaml", ".yml")
PACKAGED = "harnesses"
"""Folder of the package that holds its profiles."""

_CURES = {
    "name": "add `name: …`, what contracts call the harness",
    "recognised_by": "add `recognised_by: [TOOL, …]`, tools that only this harness has",
    "tools": "add `tools:`, what each tool does, such as `grep: none`",
}


@dataclass(frozen=True)
class HarnessSet:
    """All profiles that are known.

    Attributes:
        profiles: Users' own in the order in which they were found, then the package's. Names
            are unique.
        problems: All that is wrong, file by file and line by line. A file with a problem has no
            profile in `profiles`; the others do.
    """

    profiles: tuple[HarnessProfile, ...] = ()
    problems: tuple[Problem, ...] = ()

    def raise_if_problems(self) -> None:
        """Refuse to go on with some of the profiles.

        Raises:
            InputError: With all `problems`, if there are any.
        """
        if self.problems:
            raise InputError(self.problems)


def load_harnesses(paths: Sequence[Path] = ()) -> HarnessSet:
    """Load the package's profiles, and a user's files and folders of `*.yaml`. Never raises.

    A user's profile replaces the package's of the same name. Folders are searched through, in
    order of path; hidden files and folders are skipped.
    """
    own: dict[str, tuple[HarnessProfile, Path, str]] = {}
    problems: list[Problem] = []
    for given in paths:
        try:
            files = _files(given)
        except InputError as error:
            problems += error.problems
            continue
        for path in files:
            try:
                document = read_yaml(path)
                profile = validate(document, HarnessProfile, cures=_CURES)
            except InputError as error:
                problems += error.problems
                continue
            first = own.setdefault(profile.name, (profile, path.resolve(), document.name))
            if first[1] != path.resolve():
                problems.append(
                    document.problem(
                        ("name",),
                        f"'{profile.name}' is also the name of the profile in {first[2]}",
                        "give one of the two another `name`",
                    )
                )
    mine = [profile for profile, _, _ in own.values()]
    packaged = [profile for profile in packaged_profiles() if profile.name not in own]
    return HarnessSet((*mine, *packaged), tuple(problems))


def packaged_profiles() -> tuple[HarnessProfile, ...]:
    """The profiles that come with the package, in order of their file names.

    Raises:
        InputError: If one of them cannot be used: the package is damaged.
    """
    folder = resources.files("benchmark_assets").joinpath(PACKAGED)
    files = sorted((f for f in folder.iterdir() if f.name.endswith(SUFFIXES)), key=lambda f: f.name)
    return tuple(parse_profile(file.read_bytes(), f"{PACKAGED}/{file.name}") for file in files)


def parse_profile(data: bytes, name: str) -> HarnessProfile:
    """Load one profile from the bytes of its file.

    Args:
        data: YAML.
        name: The file, as people should see it.

    Raises:
        InputError: With all that is wrong with it.
    """
    return validate(parse_yaml(data, name), HarnessProfile, cures=_CURES)


def _files(given: Path) -> list[Path]:
    """The profiles' files at a path that was given.

    Raises:
        InputError: If there are none.
    """
    name = shown_path(given)
    if given.is_dir():
        found = list(_under(given))
        if not found:
            cure = "put profiles there, or name another folder"
            raise InputError(Problem("no harness profiles in this folder", file=name, cure=cure))
        return found
    if not given.exists():
        beside = given.parent.iterdir() if given.parent.is_dir() else ()
        near = did_you_mean(given.name, [path.name for path in beside])
        missing_cure = near or "name a profile or a folder of them"
        raise InputError(Problem("does not exist", file=name, cure=missing_cure))
    if given.suffix.lower() not in SUFFIXES:
        cure = f"profiles are {' and '.join(f'*{suffix}' for suffix in SUFFIXES)} files"
        raise InputError(Problem("is no harness profile", file=name, cure=cure))
    return [given]


def _under(folder: Path) -> Iterator[Path]:
    """The profiles' files in a folder and the folders in it."""
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix.lower() in SUFFIXES and not hidden and path.is_file():
            yield path
