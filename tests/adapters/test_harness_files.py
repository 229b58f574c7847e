"""Profiles in files: the package's own, a user's, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmark_assets.adapters.harness_files import (
    load_harnesses,
    packaged_profiles,
    parse_profile,
)
from benchmark_assets.model.problem import InputError

OWN = "name: {name}\nrecognised_by: [get]\ntools: {{get: none}}\n"


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def names(*paths: Path) -> list[str]:
    found = load_harnesses(paths)
    found.raise_if_problems()
    return [profile.name for profile in found.profiles]


def problems(*paths: Path) -> list[str]:
    return [str(problem) for problem in load_harnesses(paths).problems]


def test_the_packages_profiles_load_and_are_named_like_their_files() -> None:
    folder = Path(__file__).parents[2] / "benchmark_assets" / "harnesses"
    files = sorted(path.stem for path in folder.iterdir())
    assert [profile.name for profile in packaged_profiles()] == files
    assert {"app-builder", "claude-code"} <= set(files)


def test_a_users_profiles_come_first_and_replace_the_packages(tmp_path: Path) -> None:
    assert names() == ["app-builder", "claude-code"]
    write(tmp_path / "b.yaml", OWN.format(name="mine"))
    write(tmp_path / "sub" / "a.yml", OWN.format(name="claude-code"))
    write(tmp_path / ".hidden" / "c.yaml", "not: read")
    write(tmp_path / "notes.txt", "not read")
    assert names(tmp_path) == ["mine", "claude-code", "app-builder"]
    replaced = {profile.name: profile for profile in load_harnesses([tmp_path]).profiles}
    assert list(replaced["claude-code"].tools) == ["get"]
    assert names(tmp_path / "b.yaml") == ["mine", "app-builder", "claude-code"]


def test_one_file_given_twice_is_one_profile(tmp_path: Path) -> None:
    path = write(tmp_path / "b.yaml", OWN.format(name="mine"))
    assert names(tmp_path, path) == ["mine", "app-builder", "claude-code"]


def test_two_profiles_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "a.yaml", OWN.format(name="mine"))
    write(tmp_path / "b.yaml", "# My own.\n" + OWN.format(name="mine"))
    assert problems(Path()) == [
        "b.yaml:2: name: 'mine' is also the name of the profile in a.yaml; "
        "give one of the two another `name`"
    ]


def test_a_bad_profile_says_all_that_is_wrong_and_the_others_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "good.yaml", OWN.format(name="mine"))
    write(
        tmp_path / "bad.yaml",
        "\n".join(
            [
                "name: bad",
                "recogniced_by: [get]",
                "workspace: roots[0]",
                "tools:",
                "  get: reed",
                "  put: {effect: write, content: x}",
                "  pull:",
                "    effect: read",
                "    path: [a, files.]",
                "    failed: '('",
                "  pop: {effect: read, path: a, contents: x}",
                "  pip: []",
                "commands: {build: ['[']}",
                "",
            ]
        ),
    )
    found = load_harnesses([tmp_path])
    assert [profile.name for profile in found.profiles] == ["mine", "app-builder", "claude-code"]
    kinds = (
        "load_skill, read, create, update, write, delete, move, build, validate, ask_user, shell, "
        "opaque, none"
    )
    places = "write key, key.inner, list[].key or list[]"
    assert [str(problem) for problem in found.problems] == [
        "bad.yaml:1: recognised_by: is missing; "
        "add `recognised_by: [TOOL, …]`, tools that only this harness has",
        "bad.yaml:2: recogniced_by: is not a known key; did you mean 'recognised_by'?",
        f"bad.yaml:3: workspace: 'roots[0]' is no place; {places}",
        f"bad.yaml:5: tools.get: expected one of {kinds}, found 'reed'; did you mean 'read'?",
        "bad.yaml:6: tools.put: effect write needs path",
        f"bad.yaml:9: tools.pull.path[1]: 'files.' is no place; {places}",
        "bad.yaml:10: tools.pull.failed: is not a regular expression: "
        "missing ), unterminated subpattern at position 0",
        "bad.yaml:11: tools.pop.contents: is not a known key; did you mean 'content'?",
        "bad.yaml:12: tools.pip: is empty; fill it in, or remove the key",
        "bad.yaml:13: commands.build[0]: is not a regular expression: "
        "unterminated character set at position 0",
    ]


def test_a_tool_named_twice_is_found(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.yaml",
        OWN.format(name="mine").replace("{get: none}", "") + "  a: none\n  a: none\n",
    )
    assert [text.partition("a.yaml:")[2] for text in problems(path)] == [
        "5: tools.a: is here twice, first at " + f"{path}:4; keep one of them"
    ]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("empty", None, "empty: no harness profiles in this folder; put profiles there"),
        ("gone.yaml", None, "gone.yaml: does not exist; name a profile or a folder of them"),
        ("a.json", "{}", "a.json: is no harness profile; profiles are *.yaml and *.yml files"),
        ("a.yaml", "", "a.yaml:1: is empty; write it, or remove the file"),
        ("a.yaml", "a: [", "a.yaml:2: column 1: a value is missing here"),
    ],
)
def test_what_is_no_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str | None, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    if text is not None:
        write(Path(name), text)
    found = problems(Path(name))
    assert len(found) == 1
    assert found[0].startswith(said)


def test_a_misspelt_file_name_has_a_nearest_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(Path("mine.yaml"), OWN.format(name="mine"))
    assert problems(Path("mien.yaml")) == ["mien.yaml: does not exist; did you mean 'mine.yaml'?"]


def test_bytes_of_a_profile_are_enough() -> None:
    assert parse_profile(OWN.format(name="mine").encode(), "mine.yaml").name == "mine"
    with pytest.raises(InputError, match=r"mine.yaml:1: tools: is missing; add `tools:`"):
        parse_profile(b"name: mine\nrecognised_by: get\n", "mine.yaml")
