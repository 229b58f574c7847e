r"""Whether a path that a trace shows is a file that a contract names.

Belongs here: the written forms of paths, and which folder of a trace is the workspace. Does not
belong here: which paths a contract names or what was done with them.

Agents write the same file as `src/a.js`, `./src/a.js`, `/code/shop/src/a.js`, `src\a.js` or
`shop/src/a.js`. That one path ends with another is not enough to call them the same file:
`backup/src/a.js` ends with `src/a.js` too. What decides is the *workspace root*:

- Where the trace's metadata name it, a path is the declared one if it is that path under the
  root, or relative and equal. Nothing else is.
  One relative form is read from the folder above the root: `shop/src/a.js` under the root
  `/code/shop`, if every relative path of the trace is written so.
- Where they do not, a folder is taken for the root if a seen path is a declared path in that
  folder, and all other seen paths lie in it too. Paths that lie elsewhere altogether do not
  count against it: those with only `/` in common, those in a hidden folder beside it or above
  (`/home/u/.claude/notes.md` beside `/home/u/shop`), and, where several declared paths were seen
  in it, those in any folder beside it (`/app/skills/a.md` beside `/app/shop`). Of several such folders the one with
  most declared paths is taken, then the outermost.

So there is one root, written relative, absolute or both, and no two files are ever taken for one
declared path. What paths alone cannot tell is a root that is itself called like the beginning of
a declared path: of `/code/src/a.js` alone, `src/a.js` is assumed to be meant.

Upper and lower case differ, Unicode is compared in NFC, and `\` separates like `/`: a Unix file
name with a backslash in it is not told from a path.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache

_DRIVE = re.compile(r"[A-Za-z]:(?=/)")
_ABSOLUTE = re.compile(r"/|[A-Za-z]:/|~(/|$)")
_ABOVE = re.compile(r"\.\.(/|$)")
_FILE_URL = re.compile(r"file://(?=/)")
_MAC = re.compile(r"\A/private(?=/(?:tmp|var|etc)(?:/|$))")
"""Where macOS keeps `/tmp`, `/var` and `/etc`: programs write either."""
_WILDCARDS = frozenset("*?[")
_LONGEST = 4096
"""Characters of the longest path that is looked into; longer ones are no paths of any system, but
such as a content in the place of a path, and looking into them takes time squared."""


@lru_cache(maxsize=65536)
def normal_path(path: str) -> str:
    """A path in its normal form: `/` between parts, no `.`, `..` resolved, NFC, no `/` at the end.

    What leads above a relative path's start keeps its `..`; above `/` there is nothing. The
    current folder itself is the empty text.
    """
    text = _FILE_URL.sub("", unicodedata.normalize("NFC", path)).replace("\\", "/")
    drive = _DRIVE.match(text)
    lead = f"{drive[0].upper()}/" if drive else "/" if text.startswith("/") else ""
    parts: list[str] = []
    for part in text[len(drive[0]) if drive else 0 :].split("/"):
        if part in ("", "."):
            continue
        if part == ".." and parts and parts[-1] != "..":
            parts.pop()
        elif part != ".." or not lead:
            parts.append(part)
    return _MAC.sub("", lead + "/".join(parts), count=1) if lead == "/" else lead + "/".join(parts)


def is_absolute(normal: str) -> bool:
    """Whether a normal path begins at a file system's root, a drive or a home folder."""
    return _ABSOLUTE.match(normal) is not None


def under(normal: str, root: str) -> str | None:
    """A normal path relative to a root; None if it does not lie in it."""
    if not root:
        return None if is_absolute(normal) or _ABOVE.match(normal) else normal
    folder = root if root.endswith("/") else f"{root}/"
    if normal in (root, folder):
        return ""
    return normal[len(folder) :] if normal.startswith(folder) else None


class PathMap:
    """Tells which declared file a path of one trace is.

    Args:
        declared: Paths as the contract names them, relative to the workspace or absolute.
        seen: All paths of the trace; they decide where the workspace is, if `roots` is empty.
        roots: Where the workspace is, as the trace's metadata say; relative paths are relative
            to the first.
        reads: Paths that were only read. One that neither ends like a declared path nor lies
            in a folder of the name that a declared path begins with does not tell where the
            workspace is: reading something else must not change what was done.
    """

    def __init__(
        self,
        declared: Iterable[str],
        seen: Iterable[str],
        roots: Iterable[str] = (),
        reads: Iterable[str] = (),
    ) -> None:
        self._declared: dict[str, str] = {}
        for path in declared:
            self._declared.setdefault(normal_path(path), path)
        evidence = dict.fromkeys(map(normal_path, seen))
        read = dict.fromkeys(map(normal_path, reads))
        self._seen = tuple(evidence | read)
        self._known = tuple(dict.fromkeys(map(normal_path, roots)))
        relative = {path for path in self._declared if not is_absolute(path)}
        evidence |= {path: None for path in read if _tells(path, relative)}
        self._inferred = () if self._known else _infer_roots([*evidence], relative.__contains__)
        self._folder = _named_root([*evidence], self._known, relative.__contains__)
        self._of_globs: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._owner = self._claims()

    @property
    def roots(self) -> tuple[str, ...]:
        """Normal paths taken for the workspace root; the empty text is the current folder."""
        return self._known or self._inferred

    def declared_of(self, seen: str) -> str | None:
        """The declared path, as declared, that a path of the trace is; None if it is none."""
        return self._owner.get(self._identity(normal_path(seen)))

    def relative(self, seen: str) -> str | None:
        """A path's normal form relative to the workspace; None if it does not lie in it.

        A relative path is relative to the workspace unless the trace shows otherwise; an
        absolute one has none if nothing tells where the workspace is. Two paths of a trace with
        the same relative form are the same file.
        """
        path = normal_path(seen)
        return self._inside(self._absolute(path), self._known or self._inferred)

    def fits(self, seen: str, globs: Sequence[str]) -> bool:
        """Whether a path fits one of the globs, which are relative to the workspace or absolute.

        `*`, `?` and `[…]` stay within one part of a path, `**` spans any number of parts. A
        glob without `/` fits in any folder, as in ignore files. A glob that is a folder's path
        (`docs/`) fits all in it. If no declared path tells where the workspace is, the globs do.
        """
        path = self._absolute(normal_path(seen))
        inside = self._inside(path, self.roots or self._roots_of_globs(tuple(globs)))
        return any(
            glob_fits(glob, path if is_absolute(normal_path(glob)) else inside) for glob in globs
        )

    def nearly(self, declared: str) -> tuple[str, ...]:
        """Seen paths that end with a declared one and are not taken for it.

        They are what to show when a declared file was not found: either another file of that
        name, or the workspace root is not known.
        """
        end = "/" + normal_path(declared).lstrip("/")
        return tuple(
            path
            for path in self._seen
            if path.endswith(end) and self._owner.get(self._identity(path)) != declared
        )

    def _absolute(self, normal: str) -> str:
        """A normal path with the first known root before it, if it is relative."""
        if is_absolute(normal) or not self._known:
            return normal
        if any(not is_absolute(root) and under(normal, root) is not None for root in self._known):
            return normal
        if self._folder is not None and (inside := under(normal, self._folder[0])) is not None:
            return normal_path(f"{self._folder[1]}/{inside}")
        return normal_path(f"{self._known[0]}/{normal}")

    def _identity(self, normal: str) -> str:
        """What two normal paths have in common exactly if they are the same file."""
        if self._known:
            return self._absolute(normal)
        inside = self._inside(normal, self._inferred)
        if inside is not None:
            return inside
        return normal if is_absolute(normal) else f"../{normal}"

    def _inside(self, normal: str, roots: Sequence[str]) -> str | None:
        """A normal path relative to the first of some roots that it lies in."""
        if not is_absolute(normal) and all(map(is_absolute, roots)):
            return under(normal, "")
        return next((part for root in roots if (part := under(normal, root)) is not None), None)

    def _claims(self) -> dict[str, str]:
        """The declared path of each file, by identity: at most one file for each."""
        seen = {self._identity(path) for path in self._seen}
        owner: dict[str, str] = {}
        for path, declared in self._declared.items():
            if is_absolute(path):
                places = [self._identity(path)]
            elif self._known:
                places = [normal_path(f"{root}/{path}") for root in self._known]
            else:
                places = [path]
            place = next((place for place in places if place in seen), places[0])
            owner.setdefault(place, declared)
        return owner

    def _roots_of_globs(self, globs: tuple[str, ...]) -> tuple[str, ...]:
        if globs not in self._of_globs:
            relative = tuple(glob for glob in globs if not is_absolute(normal_path(glob)))
            self._of_globs[globs] = _infer_roots(
                self._seen, lambda path: any(glob_fits(glob, path) for glob in relative)
            )
        return self._of_globs[globs]


def endings(path: str) -> Iterator[str]:
    """What a path may be relative to the workspace, wherever that is: itself and its ends."""
    for _, rest in _splits(normal_path(path)):
        yield rest


def glob_fits(glob: str, path: str | None) -> bool:
    """Whether a normal path fits a glob; see `PathMap.fits`."""
    return path is not None and _glob(glob).fullmatch(path) is not None


def has_wildcards(path: str) -> bool:
    """Whether a declared path is a glob."""
    return not _WILDCARDS.isdisjoint(path)


@lru_cache(maxsize=4096)
def _glob(glob: str) -> re.Pattern[str]:
    text = unicodedata.normalize("NFC", glob).replace("\\", "/")
    everything_in_it = text.endswith("/")
    text = normal_path(text)
    if "/" not in text and not everything_in_it:
        text = f"**/{text}"
    elif everything_in_it:
        text = f"{text}/**"
    pattern, rest = "", text
    while rest:
        token = _TOKEN.match(rest)
        assert token is not None, "the last alternative takes any character"
        pattern += _translated(token[0])
        rest = rest[token.end() :]
    return re.compile(pattern, re.DOTALL)


_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)


def _translated(part: str) -> str:
    if part == "**/":
        return "(?:[^/]+/)*"
    if part == "**":
        return ".*"
    if part in ("*", "?"):
        return "[^/]*" if part == "*" else "[^/]"
    if len(part) > 1:
        negated = part[1] == "!"
        members = part[2 if negated else 1 : -1].replace("\\", "\\\\").replace("^", "\\^")
        return f"[{'^/' if negated else ''}{members.replace('[', chr(92) + '[')}]"
    return re.escape(part)


# Where the workspace is, when nobody says.


def _infer_roots(seen: Sequence[str], fits: Callable[[str], bool]) -> tuple[str, ...]:
    """The workspace root as relative and as absolute paths write it; none, one or both.

    Args:
        seen: Normal paths.
        fits: Whether a path is a declared one, if it is relative to the workspace.
    """
    relative = _best_root([path for path in seen if not is_absolute(path)], fits)
    absolute = _best_root([path for path in seen if is_absolute(path)], fits)
    roots = [root for root in (relative, absolute) if root is not None]
    if len(roots) == 2 and roots[0][1] and not f"{roots[1][1]}/".endswith(f"/{roots[0][1]}/"):
        # Unlike `shop/src/a.js` and `/code/shop/src/b.js`, they name two folders.
        roots = [max(roots, key=lambda root: root[0])]
    return tuple(path for _, path in roots)


def _tells(path: str, declared: Collection[str]) -> bool:
    """Whether a path has to do with declared ones: ends like one, or has its first folder."""
    tops = {wanted.split("/")[0] for wanted in declared if "/" in wanted}
    return not tops.isdisjoint(path.split("/")) or any(
        f"/{path}".endswith(f"/{wanted}") for wanted in declared
    )


def _named_root(
    seen: Sequence[str], known: Sequence[str], fits: Callable[[str], bool]
) -> tuple[str, str] | None:
    """How relative paths write a known root, if they begin with its own last folders.

    Returns (`shop`, `/code/shop`); None if they are relative to the root, as they should be.
    """
    best = _best_root([path for path in seen if not is_absolute(path)], fits) if known else None
    if best is None or not best[1]:
        return None
    return next(((best[1], root) for root in known if root.endswith(f"/{best[1]}")), None)


def _best_root(seen: Sequence[str], fits: Callable[[str], bool]) -> tuple[int, str] | None:
    """The folder that most declared paths are seen in, then the outermost, and their number."""
    matched: dict[str, set[str]] = {}
    for path in seen:
        for root, rest in _splits(path):
            if fits(rest):
                matched.setdefault(root, set()).add(rest)
    tops = {rest.split("/")[0] for rests in matched.values() for rest in rests}
    for root in sorted(matched, key=lambda root: (-len(matched[root]), len(root), root)):
        several = len(matched[root]) > 1
        if all(_consistent(path, root, tops, several=several) for path in seen):
            return len(matched[root]), root
    return None


def _splits(path: str) -> Iterator[tuple[str, str]]:
    """All ways to read a normal path as a folder and a path in it."""
    if _ABOVE.match(path):
        return
    if not is_absolute(path):
        yield "", path
    if len(path) > _LONGEST:
        return
    for index, character in enumerate(path):
        if character == "/":
            yield path[:index] or "/", path[index + 1 :]


def _consistent(path: str, root: str, tops: Collection[str], *, several: bool) -> bool:
    """Whether a seen path leaves it possible that a folder is the workspace root.

    Where several declared paths were seen in the folder, a folder beside it is no doubt: agents
    read skills and references that lie beside the workspace. One alone may be a copy of the file.
    """
    if under(path, root) is not None or _ABOVE.match(path):
        return True
    ours, theirs = root.split("/"), path.split("/")
    common = next(
        (i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), len(theirs)
    )
    if common == len(theirs):
        return True  # A folder that the root lies in: nothing is said about files.
    elsewhere = is_absolute(path) and common <= 1 and not path.startswith("~")
    elsewhere = elsewhere or (several and common + 1 < len(theirs))
    return (elsewhere or theirs[common].startswith(".")) and theirs[common] not in tops
