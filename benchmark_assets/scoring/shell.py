"""What a command line plainly does to files, as far as that can be read off it.

Belongs here: a reader of simple POSIX shell commands, and what the common file commands do. Does
not belong here: what a harness's own commands do (its profile says so), or what a call's result
shows.

What is read: simple commands joined by `&&`, `||`, `;`, `|`, `&` or new lines; quotes; here
documents; redirections; `( … )` and `$( … )`, whose commands are read as well; `if` and loops,
whose commands may or may not run; `cd`; and of single commands `cat head tail sed nl tac less
more` (they read), `rm`, `mv`, `cp`, `tee`, `touch` and `sed -i`.

What is not read is *opaque*: it may change files, and which is not guessed. That is every
command that is not known, functions, `case`, scripts, interpreters, `git` where it touches the
working tree, and a change of a file whose name is a variable, a glob or the like. A read of such
a file is an *unseen read*. Nor does this reader know what `sed`'s own `w` does, what aliases
hide, or whether `set -e` is in force.

If the whole line succeeded, a command is *sure* to have succeeded if nothing after it can hide
that it failed: `a && b` is sure of both, `a; b` and `a | b` only of `b`. If the line failed, its
*last* command failed or never ran; of the others nothing is known. What stands after `||`, in
`if` or in a loop may never have run: a change of a file there is opaque, a read unseen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from benchmark_assets.model.harness import Command, Commands
from benchmark_assets.model.trace import FileOperation
from benchmark_assets.scoring.paths import is_absolute, normal_path


@dataclass(frozen=True, slots=True)
class ShellEvent:
    """One file that a command reads or changes; see `FileEvent`.

    `text`: what was added to the file's end. `sure`: it succeeded if the line did. `last`: it did
    not if the line did not.
    """

    operation: FileOperation
    path: str
    content: str | None = None
    moved_to: str | None = None
    sure: bool = True
    last: bool = True
    text: str | None = None


@dataclass(frozen=True, slots=True)
class ShellRun:
    """One command that builds or checks. `command` is the profile's entry; see `ShellEvent`."""

    kind: Literal["build", "validate"]
    command: Command
    sure: bool
    last: bool


@dataclass(frozen=True, slots=True)
class ShellReading:
    """What a command line does.

    Attributes:
        events: Files it reads and changes, in order.
        runs: What it builds and checks.
        opaque: Whether it may change files that no event names.
        unseen_read: Whether it reads files that no event names.
        directory: The directory it ends in, like the one it began in; None if that is unknown.
        moved: Whether it changes the directory at all.
    """

    events: tuple[ShellEvent, ...]
    runs: tuple[ShellRun, ...]
    opaque: bool
    unseen_read: bool
    directory: str | None
    moved: bool


def read_command_line(text: str, directory: str | None, commands: Commands) -> ShellReading:
    """Read a command line.

    Args:
        text: The command line or script.
        directory: The directory it is run in: empty for the workspace root, else relative to it
            or absolute; None if unknown.
        commands: What single commands do, by the harness's profile.
    """
    parser = _Parser(text)
    simple = parser.list_of_commands()
    doer = _Doer(directory, commands)
    for command in simple:
        doer.run(command)
    return ShellReading(
        events=tuple(doer.events),
        runs=tuple(doer.runs),
        opaque=doer.opaque or parser.opaque,
        unseen_read=doer.unseen_read,
        directory=doer.final_directory,
        moved=doer.moved,
    )


# From text to simple commands.


@dataclass(slots=True)
class _Word:
    """A word of a command: as written, and what it stands for; None if only a shell knows."""

    raw: str
    text: str | None


@dataclass(slots=True)
class _Redirect:
    operator: str
    target: _Word
    body: str | None = None


@dataclass(slots=True)
class _Simple:
    """A simple command.

    Attributes:
        after: The operator that follows it; empty at the end.
        sure: Whether it succeeded, if the whole line did.
        last: Whether it did not succeed, if the whole line did not.
        optional: Whether it may not have run at all, even so.
        apart: Whether it runs in a process of its own, so that a `cd` in it has no effect.
        scope: The groups `( … )` or `$( … )` it stands in, outermost first, by number.
        inner: Whether it stands in `( … )` or in `$( … )` inside another command's word.
        keyword: Whether it begins with a word such as `then`, or is only that.
    """

    words: list[_Word] = field(default_factory=list)
    redirects: list[_Redirect] = field(default_factory=list)
    after: str = ""
    sure: bool = True
    last: bool = False
    optional: bool = False
    apart: bool = False
    scope: tuple[int, ...] = ()
    inner: bool = False
    keyword: bool = False


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OPENING = _names("if while until for {")
_GOING_ON = _names("then elif else do !")
_CLOSING = _names("fi done }")
_BEYOND = _names("case esac select function coproc in")
_OPERATOR = re.compile(r"&&|\|\||;;|\|&|;|\||&(?!>)|\n|\(|\)")
_REDIRECT = re.compile(r"[0-9]*(<<<|<<-|<<|<>|<&|>>|>\||>&|<|>)|&>>|&>")
_BLANK = re.compile(r"(?:[ \t\r]|\\\n)+")
_VARIABLE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_PLAIN = re.compile(r"[^\s\\'\"`$|&;()<>*?\[{~]+")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_TEST = re.compile(r"\s[^\n]*?\s\]\](?=[\s;&|)]|$)")
_BRACKETS = re.compile(r"\[\S+?\]")
_BRACES = re.compile(r"\{[^\s{}]*(,|\.\.)[^\s{}]*\}")


_MAX_DEPTH = 20
"""Deepest nesting of `$( … )` that is read; nobody writes half of it."""


class _Unreadable(Exception):  # noqa: N818 - ends the reading, no error of anyone's
    """What follows is beyond this reader."""


class _Parser:
    """Reads simple commands; sets `opaque` where it met what it cannot read, and stops there."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.opaque = False
        self._bodies: list[tuple[_Redirect, str, bool, bool]] = []
        self._inner: list[_Simple] = []
        self._scope: tuple[int, ...] = ()
        self._groups = 0
        self._open = 0

    def list_of_commands(self) -> list[_Simple]:
        """All commands of the text in the order in which they run."""
        found: list[_Simple] = []
        try:
            self._list(found, nested=False)
        except _Unreadable:
            self.opaque = True
        _mark(found)
        return found

    def _list(self, found: list[_Simple], *, nested: bool) -> None:
        """Read commands up to the end of the text, or to the `)` that closes them."""
        while True:
            command = self._simple()
            found += self._inner
            self._inner = []
            operator = self._operator()
            if command.words or command.redirects or command.keyword:
                command.after = operator if operator != ")" else ""
                found.append(command)
            if operator == ")" and nested:
                return
            if operator in ("(", ")", ";;"):
                raise _Unreadable
            if not operator:
                if nested or self._bodies:
                    raise _Unreadable
                return

    def _operator(self) -> str:
        operator = _OPERATOR.match(self.text, self.at)
        if operator is None:
            return ""
        self.at = operator.end()
        if operator[0] == "\n":
            self._read_bodies()
        return operator[0]

    def _simple(self) -> _Simple:
        command = _Simple(scope=self._scope)
        while self.at < len(self.text):
            blank = _BLANK.match(self.text, self.at)
            if blank:
                self.at = blank.end()
                continue
            if self.text[self.at] == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
                continue
            redirect = _REDIRECT.match(self.text, self.at)
            if redirect and not self.text.startswith(("<(", ">("), redirect.end() - 1):
                self.at = redirect.end()
                command.redirects.append(self._redirect(redirect[0].lstrip("0123456789")))
                continue
            if self.text[self.at] == "(" and not command.words and not command.redirects:
                self.at += 1
                self._nested()
                command.keyword = True
                continue
            if _OPERATOR.match(self.text, self.at):
                break
            word = self._word()
            if not word.raw:  # Such as `&>(`, which is neither operator nor word.
                raise _Unreadable
            if command.words or not self._keyword(word.raw, command):
                command.words.append(word)
        command.optional = command.optional or self._open > 0
        return command

    def _keyword(self, raw: str, command: _Simple) -> bool:
        """Take note of a word that is none of the command it stands before, if it is one."""
        if raw in _BEYOND:
            raise _Unreadable
        if raw == "[[":
            self._skip_test()
        if raw not in _OPENING and raw not in _GOING_ON and raw not in _CLOSING:
            return False
        self._open += (raw in _OPENING) - (raw in _CLOSING)
        command.keyword = True
        command.optional = True
        if raw == "for":  # What follows names a variable and its values, and is no command.
            command.words.append(_Word(":", ":"))
        return True

    def _skip_test(self) -> None:
        """Go to the end of `[[ … ]]`, in which `<`, `>`, `&&` and `||` compare."""
        end = _TEST.match(self.text, self.at)
        if end is None or "$(" in end[0] or "`" in end[0]:
            raise _Unreadable
        self.at = end.end()

    def _redirect(self, operator: str) -> _Redirect:
        blank = _BLANK.match(self.text, self.at)
        self.at = blank.end() if blank else self.at
        redirect = _Redirect(operator, self._word())
        if operator in ("<<", "<<-"):
            quoted = any(c in redirect.target.raw for c in "'\"\\")
            end = re.sub(r"['\"\\]", "", redirect.target.raw)
            self._bodies.append((redirect, end, quoted, operator == "<<-"))
        return redirect

    def _read_bodies(self) -> None:
        """Read the here documents that begin after this new line."""
        for redirect, end, quoted, strip in self._bodies:
            lines: list[str] = []
            while True:
                if self.at >= len(self.text):
                    break  # A shell warns and takes the rest for the document.
                newline = self.text.find("\n", self.at)
                stop = len(self.text) if newline < 0 else newline
                line = self.text[self.at : stop]
                self.at = min(stop + 1, len(self.text))
                line = line.lstrip("\t") if strip else line
                if line == end:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            redirect.body = body if quoted else self._expanded(body)
        self._bodies = []

    def _expanded(self, body: str) -> str | None:
        """A here document as the shell passes it on; None if it holds what only a shell knows."""
        unescaped = re.sub(r"\\.", "", body)
        if "`" in unescaped or "$(" in unescaped:
            self.opaque = True  # It runs commands.
        if "`" in unescaped or "$" in unescaped:
            return None
        return re.sub(r"\\\n", "", re.sub(r"\\([\\$`])", r"\1", body))

    def _word(self) -> _Word:
        start, parts, known = self.at, [""], True
        while self.at < len(self.text):
            part = self._part(at_start=self.at == start)
            if part is None:
                break
            text, literal = part
            parts.append(text)
            known = known and literal
        return _Word(self.text[start : self.at], "".join(parts) if known else None)

    def _part(self, *, at_start: bool) -> tuple[str, bool] | None:
        """The next part of a word and whether it is known; None at the word's end."""
        text, at = self.text, self.at
        plain = _PLAIN.match(text, at)
        if plain:
            self.at = plain.end()
            return plain[0], True
        here = text[at]
        if here == "'":
            return self._single_quoted()
        if here == '"':
            return self._double_quoted()
        if here == "\\":
            self.at += 2
            escaped = text[at + 1 : at + 2]
            return ("" if escaped == "\n" else escaped), True
        if here in "$`":
            return self._expansion()
        if here in "<>" and text.startswith("(", at + 1):
            self.at += 2
            self._nested()
            return "", False
        if here in " \t\r\n|&;()<>":
            return None
        self.at += 1
        if here == "{":
            return here, _BRACES.match(text, at) is None
        if here == "~":
            home = text[at + 1 : at + 2]
            return here, not at_start or home in ("", "/", " ", "\n", ";", "&", "|")
        if here == "[":
            return here, _BRACKETS.match(text, at) is None
        return here, here not in "*?"

    def _single_quoted(self) -> tuple[str, bool]:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise _Unreadable
        inner = self.text[self.at + 1 : end]
        self.at = end + 1
        return inner, True

    def _double_quoted(self) -> tuple[str, bool]:
        parts: list[str] = []
        known = True
        self.at += 1
        while self.at < len(self.text):
            here = self.text[self.at]
            if here == '"':
                self.at += 1
                return "".join(parts), known
            if here == "\\":
                escaped = self.text[self.at + 1 : self.at + 2]
                self.at += 2
                parts.append("" if escaped == "\n" else escaped)
                if escaped not in ("$", "`", '"', "\\", "\n"):
                    parts[-1] = f"\\{escaped}"
            elif here in "$`":
                text, literal = self._expansion()
                parts.append(text)
                known = known and literal
            else:
                parts.append(here)
                self.at += 1
        raise _Unreadable

    def _expansion(self) -> tuple[str, bool]:
        """Read what begins with `$` or a backtick; commands in it are noted as inner ones."""
        text, at = self.text, self.at
        if text[at] == "`":
            end = text.find("`", at + 1)
            if end < 0:
                raise _Unreadable
            self.opaque = True
            self.at = end + 1
            return "", False
        if text.startswith("$((", at):
            end = text.find("))", at)
            if end < 0:
                raise _Unreadable
            self.at = end + 2
            return "", False
        if text.startswith("$(", at):
            self.at += 2
            self._nested()
            return "", False
        if text.startswith("${", at):
            end = text.find("}", at)
            if end < 0 or "$(" in text[at:end] or "`" in text[at:end]:
                raise _Unreadable
            self.at = end + 1
            return "", False
        variable = _VARIABLE.match(text, at)
        if variable:
            self.at = variable.end()
            return "", False
        self.at += 1
        if text[self.at : self.at + 1] == "'":
            self._single_quoted()  # $'…' with escapes of its own
            return "", False
        return "$", True

    def _nested(self) -> None:
        """Read the commands up to the closing parenthesis."""
        if len(self._scope) >= _MAX_DEPTH:
            raise _Unreadable
        self._groups += 1
        outer, self._scope = self._scope, (*self._scope, self._groups)
        outer_inner, outer_bodies = self._inner, self._bodies
        self._inner, self._bodies = [], []
        found: list[_Simple] = []
        self._list(found, nested=True)
        _mark(found)
        inner = [replace(one, inner=True, sure=False, last=False) for one in found]
        self._inner = outer_inner + inner
        self._scope = outer
        self._bodies = outer_bodies


def _mark(commands: list[_Simple]) -> None:
    """Say of each command, by the operators around it, what is known if the line succeeded."""
    own = [command for command in commands if not command.inner]
    chain = True
    for index, command in reversed(list(enumerate(own))):
        last = index == len(own) - 1
        ends = last and command.after in ("", ";", "\n")
        command.sure = chain and (ends or command.after == "&&")
        command.last = ends
        chain = chain and (ends or command.after in ("&&", "|", "|&"))
    optional = piped = False
    for command in commands:
        command.optional = command.optional or optional
        if command.inner:
            continue
        command.sure = command.sure and not command.optional
        command.last = command.last and not command.optional
        command.apart = piped or command.after in ("|", "|&", "&")
        piped = command.after in ("|", "|&")
        if command.after in ("||", ";", "\n", "&"):
            optional = command.after == "||"


# From simple commands to what they do.

_PREFIXES = _names("command builtin exec nohup time sudo env stdbuf nice")
_NO_CHANGE = _names(
    "ls pwd echo printf true false : test [ [[ wc grep egrep fgrep rg ag diff cmp file stat du df "
    "which type whoami id date uname hostname sleep basename dirname realpath readlink tr cut uniq "
    "comm column paste rev seq expr jq ps kill wait exit return mkdir rmdir chmod umask tree md5sum "
    "sha1sum sha256sum cksum od xxd hexdump strings export unset set shopt alias ulimit printenv "
    "history jobs man help lsof nproc free top fold fmt join tsort yes read break continue"
)
"""Commands that change no file's content or name; a redirection of their output still may."""

_GIT_NO_CHANGE = _names(
    "status log diff show blame grep branch tag remote fetch push add commit config rev-parse "
    "rev-list merge-base ls-files ls-tree ls-remote cat-file describe shortlog reflog name-rev "
    "for-each-ref symbolic-ref diff-tree diff-index diff-files var version help count-objects "
    "check-ignore notes whatchanged cherry range-diff"
)
"""Subcommands of git that leave the working tree as it is."""

_NULL_DEVICES = frozenset(["/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty"])


@dataclass(slots=True)
class _Arguments:
    """A command's arguments: options by name, with their values, and the rest."""

    options: dict[str, _Word | None]
    operands: list[_Word]


def _arguments(words: Sequence[_Word], flags: str, valued: str = "") -> _Arguments | None:
    """Tell options from operands; None if there is an option that is not among those known.

    Args:
        words: What follows the command's name.
        flags: Letters of the options that take no value, and long ones, by spaces.
        valued: Likewise of those that take one.
    """
    known, with_value = set(flags.split()), set(valued.split())
    found = _Arguments({}, [])
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        raw = word.text if word.text is not None else word.raw
        if raw == "--":
            found.operands += waiting
            break
        if not raw.startswith("-") or raw == "-":
            found.operands.append(word)
            continue
        if not _take_option(raw, waiting, found.options, known, with_value):
            return None
    return found


def _take_option(
    raw: str,
    waiting: list[_Word],
    options: dict[str, _Word | None],
    known: set[str],
    with_value: set[str],
) -> bool:
    """Read one word of options; False if one of them is not known."""
    if raw.startswith("--"):
        name, equals, value = raw[2:].partition("=")
        if name in with_value:
            if not equals and not waiting:
                return False
            options[name] = _Word(value, value) if equals else waiting.pop(0)
            return True
        options[name] = _Word(value, value) if equals else None
        return name in known
    letters = raw[1:]
    while letters:
        name, letters = letters[0], letters[1:]
        if name in with_value:
            if not letters and not waiting:
                return False
            options[name] = _Word(letters, letters) if letters else waiting.pop(0)
            return True
        if name not in known:
            return False
        options[name] = None
    return True


class _Doer:
    """Collects what commands do, one after the other."""

    def __init__(self, directory: str | None, commands: Commands) -> None:
        self._directories: dict[tuple[int, ...], str | None] = {(): directory}
        self.commands = commands
        self.events: list[ShellEvent] = []
        self.runs: list[ShellRun] = []
        self.opaque = False
        self.unseen_read = False
        self.moved = False
        self.current = _Simple()
        self._moved_unsurely: tuple[int, ...] | None = None

    def run(self, command: _Simple) -> None:
        """Note what one simple command does."""
        self._leave_chain(command)
        self.current = command
        for end in range(1, len(command.scope) + 1):  # A group begins where the line is then.
            self._directories.setdefault(
                command.scope[:end], self._directories[command.scope[: end - 1]]
            )
        words = _bare(command.words)
        piped_in = [r for r in command.redirects if r.operator in ("<<", "<<-", "<<<")]
        body = piped_in[-1].body if piped_in and piped_in[-1].operator != "<<<" else None
        output = self._output(words, body)
        for redirect in command.redirects:
            self._redirected(redirect, output)
        if words and not self._known_to_profile(words):
            self._do(words, body)

    def _leave_chain(self, following: _Simple) -> None:
        """After `cd sub && make;` the rest is run wherever the line was if the `cd` failed."""
        scope, last = self._moved_unsurely, self.current
        if scope is None or following.scope[: len(scope)] != scope:
            return
        in_chain = last.after == "&&" if last.scope == scope else following.scope != scope
        if not in_chain:
            self._directories[scope] = None
            self._moved_unsurely = None

    @property
    def directory(self) -> str | None:
        """The directory in which the current command runs."""
        return self._directories[self.current.scope]

    @property
    def final_directory(self) -> str | None:
        """The directory in which the line ends."""
        return self._directories[()]

    def enter(self, directory: str | None) -> None:
        """Go on in a directory, or, for None, in one that is not known."""
        self._directories[self.current.scope] = directory
        self.moved = self.moved or not self.current.scope
        self._moved_unsurely = None if self.current.sure else self.current.scope

    def _do(self, words: list[_Word], body: str | None) -> None:
        name = (words[0].text or "").rsplit("/", 1)[-1]
        special = _COMMANDS.get(name)
        if special is not None:
            special(self, words[1:], body)
        elif name not in _NO_CHANGE:
            self.opaque = True

    def _known_to_profile(self, words: list[_Word]) -> bool:
        """Whether the profile says what the command does; notes it if it builds or checks."""
        line = " ".join(word.raw for word in words)
        kinds: tuple[tuple[Literal["build", "validate"], tuple[Command, ...]], ...]
        kinds = (("build", self.commands.build), ("validate", self.commands.validate_))
        for kind, known in kinds:
            for command in known:
                if re.search(command.regex, line):
                    now = self.current
                    self.runs.append(ShellRun(kind, command, now.sure, now.last))
                    return True
        return any(re.search(regex, line) for regex in self.commands.none)

    # Files.

    def path(self, word: _Word) -> str | None:
        """The path that a word names, from the workspace root; None if only a shell knows."""
        if not word.text:
            return None
        if self.directory == "" or is_absolute(normal_path(word.text)):
            return word.text
        return None if self.directory is None else f"{self.directory}/{word.text}"

    def note(
        self,
        operation: FileOperation,
        path: str | None,
        content: str | None = None,
        moved_to: str | None = None,
        *,
        text: str | None = None,
        last: bool | None = None,
    ) -> None:
        """Note what happens to a file; what is not known, or may not happen, as unseen."""
        if path in _NULL_DEVICES:
            return
        if path is None or self.current.optional:
            if operation == "read":
                self.unseen_read = True
            else:
                self.opaque = True
            return
        last = self.current.last if last is None else last
        sure = self.current.sure
        self.events.append(ShellEvent(operation, path, content, moved_to, sure, last, text))

    def read_all(self, operands: Sequence[_Word]) -> None:
        """Note that files are read."""
        for word in operands:
            if word.text != "-":
                self.note("read", self.path(word))

    def into(
        self, target: _Word, source: _Word, *, several: bool = False
    ) -> tuple[str | None, bool]:
        """Where a file lies after it was put at `target`, and whether that is certain.

        A target may be a folder that the file is put into. It is one for certain if it ends
        with `/` or takes several files; it is none for certain if it has the file's name or
        a suffix.
        """
        path, origin = self.path(target), self.path(source)
        if path is None or origin is None:
            return None, False
        name = origin.rstrip("/").rsplit("/", 1)[-1]
        last = path.rsplit("/", 1)[-1]
        if several or last in ("", ".", ".."):
            return f"{path.rstrip('/')}/{name}", True
        certain = last == name or "." in last[1:]
        return path, certain

    def per_file(self, words: Sequence[_Word], placeholder: str = "{}") -> None:
        """Note what a command does that is run for files whose names are not known here."""
        known = [_Word("", None) if placeholder in word.raw else word for word in words]
        if known:
            self._do([*known, _Word("", None)], None)

    def nested(self, text: str) -> None:
        """Note what a command line does that this command runs in a process of its own."""
        now = self.current
        inner = read_command_line(text, self.directory, self.commands)
        for event in inner.events:
            sure, last = now.sure and event.sure, now.last and event.last
            self.events.append(replace(event, sure=sure, last=last))
        for run in inner.runs:
            self.runs.append(replace(run, sure=now.sure and run.sure, last=now.last and run.last))
        self.opaque = self.opaque or inner.opaque or (now.optional and bool(inner.events))
        self.unseen_read = self.unseen_read or inner.unseen_read

    def _output(self, words: list[_Word], body: str | None) -> str | None:
        """What a command prints, where its words alone say it."""
        if not words:
            return ""
        name, rest = words[0].text, words[1:]
        if name == "cat" and body is not None and all(word.text == "-" for word in rest):
            return body
        if name == "echo":
            return _echoed(rest)
        if name == "printf" and len(rest) == 1 and rest[0].text is not None:
            text = rest[0].text.replace("\\n", "\n")
            return None if "%" in text or "\\" in text else text
        return None

    def _redirected(self, redirect: _Redirect, output: str | None) -> None:
        operator, target = redirect.operator, redirect.target
        if operator in ("<<", "<<-", "<<<", "<&"):
            return
        if operator == "<":
            self.note("read", self.path(target))
        elif operator == ">&" and re.fullmatch(r"[0-9]+-?|-", target.raw):
            return
        elif operator == "<>":
            self.opaque = True
        else:
            # What a failing command printed is in the file all the same.
            last = self.current.last and output is not None
            if operator in (">>", "&>>"):
                self.note("write", self.path(target), text=output, last=last)
            else:
                self.note("write", self.path(target), output, last=last)


def _bare(words: Sequence[_Word]) -> list[_Word]:
    """A command without the assignments and the commands such as `time` before it."""
    left = list(words)
    while left:
        prefix = left[0].text in _PREFIXES and len(left) > 1 and not left[1].raw.startswith("-")
        if prefix or _ASSIGNMENT.match(left[0].raw):
            left.pop(0)
        elif left[0].text == "timeout" and len(left) > 2 and re.match(r"[0-9]", left[1].raw):
            del left[:2]
        else:
            break
    return left


def _echoed(words: Sequence[_Word]) -> str | None:
    """What `echo` prints; None if only a shell knows, or `-e` or a backslash makes it differ."""
    texts = [word.text for word in words]
    end = "" if texts[:1] == ["-n"] else "\n"
    texts = texts[1:] if not end else texts
    known = [text for text in texts if text is not None]
    if len(known) < len(texts) or any("\\" in text for text in known):
        return None
    return None if known[:1] and re.fullmatch(r"-[neE]+", known[0]) else " ".join(known) + end


# One function for each command that needs one.


def _cat(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    doer.read_all([word for word in words if not word.raw.startswith("-") or word.raw == "-"])


def _head(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    words = [word for word in words if not re.fullmatch(r"[-+][0-9]+", word.raw)]
    found = _arguments(words, "q v f F r quiet verbose follow", "n c lines bytes s pid")
    if found is None:
        doer.unseen_read = True
    else:
        doer.read_all(found.operands)


def _sed(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    backup = next((w.raw for w in words if re.match(r"-[nErsuz]*i|--in-place", w.raw)), None)
    plain = [word for word in words if word.raw != backup]
    found = _arguments(
        plain,
        "n E r s u z quiet silent regexp-extended separate unbuffered null-data posix",
        "e f l expression file line-length",
    )
    if found is None:
        doer.opaque = doer.opaque or backup is not None
        doer.unseen_read = True
        return
    scripted = not found.options.keys().isdisjoint(("e", "f", "expression", "file"))
    operands = [word for word in found.operands if word.text != ""]  # `-i ''` of BSD
    files = operands if scripted else operands[1:]
    if backup is None:
        doer.read_all(files)
        return
    suffix = re.sub(r"^(-[nErsuz]*i|--in-place=?)", "", backup)
    for word in files:
        path = doer.path(word)
        doer.note("update", path)
        if suffix:
            doer.note("write", path and f"{path}{suffix}")


def _rm(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    found = _arguments(words, "r R f i I v d recursive force verbose dir")
    if found is None:
        doer.opaque = True
        return
    if not found.options.keys().isdisjoint(("r", "R", "recursive")):
        doer.opaque = True  # Of a folder, which files were in it is not known.
    for word in found.operands:
        doer.note("delete", doer.path(word))


def _mv(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    found = _arguments(words, "f i n v u T force verbose", "t target-directory")
    if found is None or len(found.operands) + len(found.options.keys() & {"t"}) < 2:
        doer.opaque = True
        return
    target, sources = _target(found)
    for source in sources:
        place, certain = doer.into(target, source, several=len(sources) > 1)
        doer.note("move", doer.path(source), moved_to=place if certain else None)
        doer.opaque = doer.opaque or not certain


def _cp(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    found = _arguments(words, "f i n v u p a r R T force verbose archive recursive", "t")
    recursive = found and not found.options.keys().isdisjoint(
        ("r", "R", "a", "archive", "recursive")
    )
    if found is None or recursive or len(found.operands) + ("t" in found.options) < 2:
        doer.opaque = True
        return
    target, sources = _target(found)
    for source in sources:
        place, certain = doer.into(target, source, several=len(sources) > 1)
        doer.note("read", doer.path(source))
        doer.note("write", place if certain else None)


def _target(found: _Arguments) -> tuple[_Word, list[_Word]]:
    """Where files are moved or copied to, and which; a target by option is a folder."""
    option = found.options.get("t") or found.options.get("target-directory")
    if option is None:
        return found.operands[-1], found.operands[:-1]
    return _Word(f"{option.raw}/", option.text and f"{option.text}/"), found.operands


def _tee(doer: _Doer, words: Sequence[_Word], body: str | None) -> None:
    found = _arguments(words, "a i append")
    if found is None:
        doer.opaque = True
        return
    adds = not found.options.keys().isdisjoint(("a", "append"))
    for word in found.operands:
        path = doer.path(word)
        doer.note("write", path, None if adds else body, text=body if adds else None)


def _touch(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    found = _arguments(words, "a m c")
    if found is None:
        doer.opaque = True
        return
    for word in found.operands if "c" not in found.options else ():
        doer.note("write", doer.path(word))


def _cd(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    now = doer.current
    if now.apart:
        return
    plain = len(words) == 1 and words[0].text not in (None, "", "-")
    place = doer.path(words[0]) if plain and not _is_in(words[0], doer.directory) else None
    # A `cd` whose failure does not end the line leaves open where the rest is run.
    doer.enter(place if now.after in ("&&", "") and not now.optional else None)


def _is_in(word: _Word, directory: str | None) -> bool:
    """Whether a folder's relative name is that of the directory one is in already.

    `cd src` again, as the calls of many sessions begin, means `src/src` or, where the shell
    began anew, `src`: nobody knows.
    """
    wanted, here = normal_path(word.text or ""), normal_path(directory or "")
    last = wanted.rpartition("/")[2]
    if is_absolute(wanted) or last in ("", ".."):
        return False
    return f"/{here}".endswith(f"/{wanted}")


def _git(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    left = list(words)
    while left and left[0].raw in ("-C", "-c", "--git-dir", "--work-tree"):
        del left[:2]
    while left and left[0].raw in ("--no-pager", "-p", "--paginate"):
        del left[:1]
    listing = [word.raw for word in left[:2]] in (
        ["stash", "list"],
        ["stash", "show"],
        ["worktree", "list"],
        ["submodule", "status"],
    )
    if not listing and left and left[0].text not in _GIT_NO_CHANGE:
        doer.opaque = True


def _find(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    raws = [word.raw for word in words]
    if any(raw == "-delete" or raw.startswith(("-fprint", "-fls")) for raw in raws):
        doer.opaque = True
    for index, raw in enumerate(raws):
        if raw in ("-exec", "-execdir", "-ok", "-okdir"):
            ends = (i for i in range(index + 1, len(raws)) if words[i].text in (";", "+"))
            doer.per_file(words[index + 1 : next(ends, len(raws))])


def _xargs(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    left, placeholder = list(words), "{}"
    while left and left[0].raw.startswith("-"):
        option = left.pop(0).raw
        if re.fullmatch(r"-[InLPsdE]", option) and left:
            value = left.pop(0)
            placeholder = value.text or placeholder if option == "-I" else placeholder
        elif option.startswith("-I"):
            placeholder = option[2:]
    doer.per_file(left, placeholder)


def _sort(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    if any(re.match(r"-[a-zA-Z]*o|--output", word.raw) for word in words):
        doer.opaque = True


def _awk(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    if any(">" in word.raw or "system" in word.raw or word.raw == "-i" for word in words):
        doer.opaque = True


def _curl(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    to_file = r"-[a-zA-Z]*[oOJ]|--output|--remote-name|--cookie-jar|-[a-zA-Z]*[cD]$|--dump-header"
    if any(re.match(to_file, word.raw) for word in words):
        doer.opaque = True


def _shell(doer: _Doer, words: Sequence[_Word], _: str | None) -> None:
    """`bash -c '…'` runs a command line of its own; anything else is a script."""
    if len(words) == 2 and re.fullmatch(r"-[elx]*c", words[0].raw) and words[1].text is not None:
        doer.nested(words[1].text)
    else:
        doer.opaque = True


_COMMANDS: dict[str, Callable[[_Doer, Sequence[_Word], str | None], None]] = {
    **dict.fromkeys(("cat", "tac", "nl", "less", "more"), _cat),
    **dict.fromkeys(("head", "tail"), _head),
    **dict.fromkeys(("awk", "gawk", "mawk"), _awk),
    **dict.fromkeys(("sh", "bash", "zsh"), _shell),
    "sed": _sed,
    "rm": _rm,
    "mv": _mv,
    "cp": _cp,
    "tee": _tee,
    "touch": _touch,
    "cd": _cd,
    "git": _git,
    "find": _find,
    "xargs": _xargs,
    "sort": _sort,
    "curl": _curl,
}
