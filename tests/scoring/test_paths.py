"""Paths: the same file in all its spellings, and never another file of the same name."""

from __future__ import annotations

import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmark_assets.scoring.paths import (
    PathMap,
    endings,
    glob_fits,
    is_absolute,
    normal_path,
    under,
)


def matches(declared: list[str], seen: list[str], *roots: str) -> dict[str, str]:
    """Which seen path is which declared one."""
    paths = PathMap(declared, seen, roots)
    return {path: found for path in seen if (found := paths.declared_of(path)) is not None}


@pytest.mark.parametrize(
    ("path", "normal"),
    [
        ("src/a.js", "src/a.js"),
        ("./src//a.js", "src/a.js"),
        ("src/./b/../a.js", "src/a.js"),
        ("../a.js", "../a.js"),
        ("a/../../b", "../b"),
        ("/../a.js", "/a.js"),
        ("/", "/"),
        ("/src/", "/src"),
        (".", ""),
        ("", ""),
        ("src\\main\\a.js", "src/main/a.js"),
        ("C:\\ws\\a.js", "C:/ws/a.js"),
        ("c:/ws/../a.js", "C:/a.js"),
        ("file:///ws/a.js", "/ws/a.js"),
        ("~/a.js", "~/a.js"),
        # macOS keeps these there, and programs write either.
        ("/private/tmp/ws/a.js", "/tmp/ws/a.js"),
        ("/private/var", "/var"),
        ("/private/vars/a", "/private/vars/a"),
        ("/ws/private/tmp/a", "/ws/private/tmp/a"),
        ("private/tmp/a", "private/tmp/a"),
        ("Cafe\N{COMBINING ACUTE ACCENT}.html", "Caf\N{LATIN SMALL LETTER E WITH ACUTE}.html"),
    ],
)
def test_the_normal_form(path: str, normal: str) -> None:
    assert normal_path(path) == normal
    assert normal_path(normal) == normal


@given(st.lists(st.sampled_from(["a", "b", ".", "..", ""]), min_size=1), st.booleans())
def test_the_normal_form_is_that_of_posixpath(parts: list[str], absolute: bool) -> None:
    path = "/" * absolute + "/".join(parts)
    if path and not path.startswith("//"):
        theirs = posixpath.normpath(path if absolute else path.lstrip("/") or ".")
        ours = normal_path(path if absolute else path.lstrip("/"))
        assert ours == ("" if theirs == "." else theirs)


@pytest.mark.parametrize(
    ("path", "root", "rest"),
    [
        ("/ws/a", "/ws", "a"),
        ("/ws", "/ws", ""),
        ("/wsx/a", "/ws", None),
        ("/a", "/", "a"),
        ("a", "/", None),
        ("a/b", "", "a/b"),
        ("/a", "", None),
        ("../a", "", None),
        ("..a", "", "..a"),
        ("C:/ws/a", "C:/", "ws/a"),
        ("~/a", "~", "a"),
    ],
)
def test_what_lies_under_a_root(path: str, root: str, rest: str | None) -> None:
    assert under(path, root) == rest


def test_what_is_absolute() -> None:
    assert all(map(is_absolute, ["/", "/a", "C:/a", "~", "~/a"]))
    assert not any(map(is_absolute, ["", "a", "../a", "~a", "ab:/c"]))


@pytest.mark.parametrize(
    ("declared", "seen", "roots", "expected"),
    [
        # With a known root.
        (["src/a.js"], ["/ws/src/a.js"], ["/ws"], {"/ws/src/a.js": "src/a.js"}),
        (["src/a.js"], ["src/a.js"], ["/ws"], {"src/a.js": "src/a.js"}),
        (["src/a.js"], ["./src/x/../a.js"], ["/ws/"], {"./src/x/../a.js": "src/a.js"}),
        (["src/a.js"], ["C:\\ws\\src\\a.js"], ["c:\\ws"], {"C:\\ws\\src\\a.js": "src/a.js"}),
        (["src/a.js"], ["src\\a.js"], ["/ws"], {"src\\a.js": "src/a.js"}),
        (["src/a.js"], ["../ws/src/a.js"], ["/ws"], {"../ws/src/a.js": "src/a.js"}),
        (["src/a.js"], ["/ws/proj/src/a.js", "proj/src/a.js", "/src/a.js"], ["/ws"], {}),
        (["src/a.js"], ["/other/src/a.js"], ["/ws"], {}),
        (["/ws/src/a.js"], ["/ws/src/a.js"], ["/ws"], {"/ws/src/a.js": "/ws/src/a.js"}),
        (["/ws/src/a.js"], ["src/a.js"], ["/ws"], {"src/a.js": "/ws/src/a.js"}),
        (["/src/a.js"], ["/ws/src/a.js", "src/a.js"], ["/ws"], {}),
        (["/etc/x"], ["/etc/x"], ["/ws"], {"/etc/x": "/etc/x"}),
        # Of several roots the first that has the file.
        (["a.js"], ["/w/2/a.js", "/w/1/a.js"], ["/w/1", "/w/2"], {"/w/1/a.js": "a.js"}),
        (["a.js"], ["/w/2/a.js"], ["/w/1", "/w/2"], {"/w/2/a.js": "a.js"}),
        (["a.js"], ["/w/2/a.js", "a.js"], ["/w/1", "/w/2"], {"a.js": "a.js"}),
        (["a.js"], ["proj/a.js"], ["proj"], {"proj/a.js": "a.js"}),
        # Without: the paths decide.
        (["src/a.js"], ["src/a.js"], [], {"src/a.js": "src/a.js"}),
        (["src/a.js"], ["./src/a.js"], [], {"./src/a.js": "src/a.js"}),
        (["src/a.js"], ["/ws/p/src/a.js"], [], {"/ws/p/src/a.js": "src/a.js"}),
        (["src/a.js"], ["proj/src/a.js", "proj/b.md"], [], {"proj/src/a.js": "src/a.js"}),
        (["src/a.js"], ["proj/src/a.js", "docs/b.md"], [], {}),
        (["src/a.js"], ["backup/src/a.js", "src/b.js"], [], {}),
        (["src/a.js"], ["backup/src/a.js", "src/a.js"], [], {"src/a.js": "src/a.js"}),
        (
            ["src/a.js"],
            ["/ws/p/src/a.js", "/ws/p/backup/src/a.js"],
            [],
            {"/ws/p/src/a.js": "src/a.js"},
        ),
        (["src/a.js"], ["/ws/p/backup/src/a.js", "/ws/p/readme.md"], [], {}),
        (["src/a.js"], ["/ws/p/backup/src/a.js", "/ws/p/docs/a.md"], [], {}),
        # Several declared files in one folder: what lies in a folder beside it is no doubt.
        (
            ["src/a.js", "src/b.js"],
            ["/app/shop/src/a.js", "/app/shop/src/b.js", "/app/skills/x/SKILL.md"],
            [],
            {"/app/shop/src/a.js": "src/a.js", "/app/shop/src/b.js": "src/b.js"},
        ),
        (
            ["src/a.js", "src/b.js"],
            ["/app/copy/src/a.js", "/app/copy/src/b.js", "/app/readme.md"],
            [],
            {},
        ),
        # How a known root's own folder is written in relative paths.
        (
            ["src/a.js"],
            ["shop/src/a.js", "/code/shop/src/a.js"],
            ["/code/shop"],
            {"shop/src/a.js": "src/a.js", "/code/shop/src/a.js": "src/a.js"},
        ),
        (["src/a.js"], ["shop/src/a.js", "src/b.js"], ["/code/shop"], {}),
        (["src/a.js"], ["shop/src/a.js"], ["/code/other"], {}),
        (
            ["src/a.js", "src/b.js"],
            ["/ws/src/a.js", "src/b.js"],
            [],
            {"/ws/src/a.js": "src/a.js", "src/b.js": "src/b.js"},
        ),
        # One root, written relative and absolute.
        (
            ["src/a.js", "src/b.js"],
            ["/ws/proj/src/a.js", "proj/src/b.js"],
            [],
            {"/ws/proj/src/a.js": "src/a.js", "proj/src/b.js": "src/b.js"},
        ),
        # Two folders: the one with more of the declared files.
        (
            ["a/x", "a/y"],
            ["one/a/x", "/two/a/x", "/two/a/y"],
            [],
            {"/two/a/x": "a/x", "/two/a/y": "a/y"},
        ),
        # The folder that has most, then the outermost.
        (["a.js", "src/a.js"], ["/w/src/a.js"], [], {"/w/src/a.js": "src/a.js"}),
        (
            ["a.js", "b.js", "src/a.js"],
            ["/w/src/a.js", "/w/src/b.js"],
            [],
            {"/w/src/a.js": "a.js", "/w/src/b.js": "b.js"},
        ),
        # What lies elsewhere altogether is no evidence.
        (
            ["src/a.js"],
            ["/home/u/p/src/a.js", "/home/u/.claude/x.md", "/tmp/y", "../z", "/home/u"],
            [],
            {"/home/u/p/src/a.js": "src/a.js"},
        ),
        (["src/a.js"], ["/backup/src/a.js", "/src/b.js"], [], {}),
        ([".ci/a"], ["backup/.ci/a", ".ci/b"], [], {}),
        (["src/a.js"], ["C:/ws/src/a.js"], [], {"C:/ws/src/a.js": "src/a.js"}),
        (["src/a.js"], ["~/ws/src/a.js"], [], {"~/ws/src/a.js": "src/a.js"}),
        # A file of the same name is another file.
        (["b/Main.html"], ["a/Main.html"], [], {}),
        (["Main.html"], ["xMain.html"], [], {}),
        (["Main.html"], ["main.html"], [], {}),
        (["b/Main.html"], ["ab/Main.html"], [], {}),
        (["Main.html"], ["Main.html.bak"], [], {}),
        (["Main.html"], ["Main.html/x"], [], {}),
        (["../a.js"], ["a.js", "x/a.js"], [], {}),
        # Absolute ones match exactly.
        (["/ws/a.js"], ["/ws/./a.js"], [], {"/ws/./a.js": "/ws/a.js"}),
        (["/ws/a.js"], ["a.js", "/x/ws/a.js"], [], {}),
        (["Caf\u00e9.html"], ["Cafe\u0301.html"], [], {"Cafe\u0301.html": "Caf\u00e9.html"}),
        (["./a.js", "a.js"], ["a.js"], [], {"a.js": "./a.js"}),
    ],
)
def test_which_declared_path_a_seen_one_is(
    declared: list[str], seen: list[str], roots: list[str], expected: dict[str, str]
) -> None:
    assert matches(declared, seen, *roots) == expected
    assert matches(declared, seen[::-1], *roots) == expected, "order tells nothing"


PARTS = st.sampled_from(["src", "a", "b", ".hid", "Main.html", "x.js", "backup"])
RELATIVE = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
PATHS = st.lists(RELATIVE, min_size=1, max_size=6)
# A root whose own name begins a declared path (`/ws/src` and `src/a.js`) could as well lie above.
ROOT = st.sampled_from(["proj", "deep/er", "/ws", "/home/u/proj", "C:/ws", "~", "/.hid/ws"])


@given(PATHS, PATHS, ROOT, st.booleans())
def test_a_root_before_all_seen_paths_changes_no_match(
    declared: list[str], seen: list[str], root: str, known: bool
) -> None:
    plain = matches(declared, seen)
    moved = [f"{root}/{path}" for path in seen]
    if known and is_absolute(root):
        plain = {path: path for path in seen if path in declared}
        found = matches(declared, moved, root)
    else:
        found = matches(declared, moved)
    assert found == {f"{root}/{path}": one for path, one in plain.items()}


@given(PATHS, PATHS, ROOT)
def test_a_root_changes_nothing_for_globs(declared: list[str], seen: list[str], root: str) -> None:
    globs = ["docs/**", "src/*", "*.js", "a/**/b", *declared[:1]]
    moved = [f"{root}/{path}" for path in seen]
    plain, prefixed = PathMap(declared, seen), PathMap(declared, moved)
    assert [plain.fits(path, globs) for path in seen] == [
        prefixed.fits(path, globs) for path in moved
    ]


@given(PATHS, PATHS, st.lists(ROOT, max_size=2))
def test_no_two_files_are_one_declared_path(
    declared: list[str], seen: list[str], roots: list[str]
) -> None:
    seen = [*seen, *(f"{root}/{path}" for root in roots for path in seen[:2])]
    known = [root for root in roots if is_absolute(root)][:2]
    for given_roots in ([], known):
        paths = PathMap(declared, seen, given_roots)
        files: dict[str, set[str]] = {}
        for path in seen:
            found = paths.declared_of(path)
            if found is not None:
                # One file: the same path, or one written relative and one absolute.
                files.setdefault(found, set()).add(normal_path(path))
        for same in files.values():
            assert len({paths.relative(path) for path in same}) == 1
            for written in (True, False):
                assert sum(is_absolute(path) is written for path in same) <= 1


@pytest.mark.parametrize(
    ("glob", "fits", "fits_not"),
    [
        ("docs/**", ["docs/a.md", "docs/a/b.md"], ["docs", "xdocs/a.md", "a/docs/b.md", None]),
        ("docs/", ["docs/a.md", "docs/a/b.md"], ["docs", "a/docs/b.md"]),
        ("*.md", ["a.md", "docs/a.md"], ["a.mdx", "a.md/b"]),
        ("docs/*.md", ["docs/a.md"], ["docs/a/b.md", "a.md"]),
        ("**/x.js", ["x.js", "a/x.js", "a/b/x.js"], ["ax.js"]),
        ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
        ("src/?.js", ["src/a.js"], ["src/ab.js", "src//.js"]),
        ("src/[ab].js", ["src/a.js"], ["src/c.js"]),
        ("src/[!ab].js", ["src/c.js"], ["src/a.js"]),
        ("src/[^].js", ["src/^.js"], ["src/a.js"]),
        ("src/a+(b).js", ["src/a+(b).js"], ["src/aab.js"]),
        ("./docs/*", ["docs/a"], ["a"]),
        ("src/[x.js", ["src/[x.js"], ["src/x.js"]),
    ],
)
def test_globs(glob: str, fits: list[str], fits_not: list[str | None]) -> None:
    assert all(glob_fits(glob, path) for path in fits)
    assert not any(glob_fits(glob, path) for path in fits_not)


def test_globs_are_relative_to_the_workspace_however_it_is_known() -> None:
    known = PathMap([], ["/ws/docs/a.md", "/x/docs/a.md"], ["/ws"])
    assert known.fits("/ws/docs/a.md", ["docs/**"])
    assert known.fits("docs/a.md", ["docs/**"])
    assert known.fits("docs/a.md", ["/ws/docs/*"])
    assert not known.fits("/x/docs/a.md", ["docs/**"])
    assert known.fits("/x/docs/a.md", ["/x/**"])
    inferred = PathMap(["src/a.js"], ["/ws/src/a.js", "/ws/docs/a.md", "/ws/b/docs/a.md"])
    assert inferred.fits("/ws/docs/a.md", ["docs/**"])
    assert not inferred.fits("/ws/b/docs/a.md", ["docs/**"])
    by_globs = PathMap([], ["/ws/docs/a.md", "/ws/b.md"])
    assert by_globs.fits("/ws/docs/a.md", ["docs/**"])
    assert not by_globs.fits("/ws/b.md", ["docs/**"])


def test_the_relative_form_names_a_file() -> None:
    known = PathMap([], [], ["/ws"])
    assert known.relative("/ws/a/../b.js") == "b.js"
    assert known.relative("b.js") == "b.js"
    assert known.relative("../x/b.js") is None
    assert known.relative("/x/b.js") is None
    inferred = PathMap(["src/a.js"], ["/ws/src/a.js"])
    assert inferred.roots == ("/ws",)
    assert inferred.relative("/ws/b.js") == "b.js"
    assert inferred.relative("b.js") == "b.js"
    unknown = PathMap(["src/a.js"], ["/ws/b.js"])
    assert unknown.roots == ()
    assert unknown.relative("/ws/b.js") is None
    assert unknown.relative("b.js") == "b.js"


def test_what_is_too_long_for_a_path_is_not_looked_into() -> None:
    """A content in the place of a path, as models sometimes give it, costs no time squared."""
    text = "a/b\n" * 50_000
    assert list(endings(text)) == [normal_path(text)]
    paths = PathMap(["src/a.js"], [text, "/ws/src/a.js"])
    assert paths.declared_of("/ws/src/a.js") == "src/a.js"
    assert paths.declared_of(text) is None
    longest = "/".join(["a" * 60] * 67)
    assert len(list(endings(longest))) == 67


def test_the_endings_of_a_path() -> None:
    assert list(endings("/ws/./shop/src/a.js")) == ["ws/shop/src/a.js", "shop/src/a.js", "src/a.js", "a.js"]  # fmt: skip
    assert list(endings("src\\a.js")) == ["src/a.js", "a.js"]
    assert list(endings("../a.js")) == []


def test_what_nearly_was_a_declared_path_is_said() -> None:
    seen = ["/ws/backup/src/a.js", "/ws/readme.md", "/ws/src/xa.js"]
    paths = PathMap(["src/a.js"], seen)
    assert paths.declared_of(seen[0]) is None
    assert paths.nearly("src/a.js") == ("/ws/backup/src/a.js",)
    assert PathMap(["src/a.js"], ["/ws/src/a.js"]).nearly("src/a.js") == ()


def test_many_paths_that_look_alike_are_no_matter() -> None:
    seen = [f"/ws/node_modules/m{i}/package.json" for i in range(20_000)]
    paths = PathMap(["package.json", "src/a.js"], [*seen, "/ws/package.json"])
    assert paths.roots == ("/ws",)
    assert paths.declared_of(seen[5]) is None
