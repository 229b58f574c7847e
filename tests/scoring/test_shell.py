"""Command lines: what is plain is read, what is not is reported, nothing is guessed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmark_assets.model.harness import Commands
from benchmark_assets.scoring.shell import ShellReading, read_command_line

COMMANDS = Commands.model_validate(
    {"build": ["^mvn .*package"], "validate": ["^npm test"], "none": ["^mytool status"]}
)


def read(text: str, directory: str | None = "") -> ShellReading:
    return read_command_line(text, directory, COMMANDS)


def said(text: str, directory: str | None = "") -> list[str]:
    """All that is read of a command line, in words; `?` marks what is not sure."""
    reading = read(text, directory)
    words = [
        event.operation
        + ("" if event.sure else "?")
        + f" {event.path}"
        + (f" -> {event.moved_to}" if event.moved_to else "")
        + (f" {event.content!r}" if event.content is not None else "")
        + (f" +{event.text!r}" if event.text is not None else "")
        for event in reading.events
    ]
    words += [run.kind + ("" if run.sure else "?") for run in reading.runs]
    words += ["opaque"] * reading.opaque + ["unseen read"] * reading.unseen_read
    return words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Reading.
        ("cat a.js", ["read a.js"]),
        ("cat -n a.js b.js", ["read a.js", "read b.js"]),
        ("head -n 5 a.js", ["read a.js"]),
        ("head -5 a.js", ["read a.js"]),
        ("tail --lines=5 a.js", ["read a.js"]),
        ("tail --lines 5 a.js", ["read a.js"]),
        ("head --zap a.js", ["unseen read"]),
        ("sed -n '1,5p' a.js", ["read a.js"]),
        ("sed -n -e 1p -e 3p a.js", ["read a.js"]),
        ("sed --zap a.js", ["unseen read"]),
        ("nl a.js | less", ["read? a.js"]),
        ("wc -l < a.js", ["read a.js"]),
        ("cat -", []),
        ("cat $F", ["unseen read"]),
        ("cat *.js", ["unseen read"]),
        ("cat {a,b}.js", ["unseen read"]),
        ("cat ~/notes.md", ["read ~/notes.md"]),
        ("cat ~other/notes.md", ["unseen read"]),
        ("cat 'my file.js' \"b c.js\" d\\ e.js", ["read my file.js", "read b c.js", "read d e.js"]),
        ("cat '$F' a'*'.js", ["read $F", "read a*.js"]),
        ("/bin/cat a.js", ["read a.js"]),
        ("ls | xargs cat", ["unseen read"]),
        ("find . -name '*.js' -exec cat {} \\;", ["unseen read"]),
        # Writing.
        ("echo hi > a.txt", ["write a.txt 'hi\\n'"]),
        ("echo -n hi > a.txt", ["write a.txt 'hi'"]),
        ("echo -e 'a\\tb' > a.txt", ["write a.txt"]),
        ("echo $X > a.txt", ["write a.txt"]),
        ("echo hi >> a.txt", ["write a.txt +'hi\\n'"]),
        ("ls &>> a.txt", ["write a.txt"]),
        ("tee -a a.js <<'E'\nx\nE", ["write a.js +'x\\n'"]),
        ("echo hi >a.txt 2>&1", ["write a.txt 'hi\\n'"]),
        ("printf 'a\\nb' > a.txt", ["write a.txt 'a\\nb'"]),
        ("printf '%s' b > a.txt", ["write a.txt"]),
        ("> a.txt", ["write a.txt ''"]),
        (": > a.txt", ["write a.txt"]),
        ("ls &> a.txt", ["write a.txt"]),
        ("ls 2> a.txt", ["write a.txt"]),
        ("ls > /dev/null 2>&1", []),
        ("ls >&2", []),
        ("ls > $F", ["opaque"]),
        ("exec 3<> a.txt", ["opaque"]),
        ("echo hi | tee a.txt", ["write a.txt"]),
        ("tee -a a.txt b.txt < c.txt", ["read c.txt", "write a.txt", "write b.txt"]),
        ("tee --zap a.txt", ["opaque"]),
        ("touch a.txt", ["write a.txt"]),
        ("touch -c a.txt", []),
        ("touch -d yesterday a.txt", ["opaque"]),
        ("sed -i 's/a/b/' a.js b.js", ["update a.js", "update b.js"]),
        ("sed -i '' 's/a/b/' a.js", ["update a.js"]),
        ("sed -i.bak 's/a/b/' a.js", ["update a.js", "write a.js.bak"]),
        ("sed -Ei -e 's/a/b/' a.js", ["update a.js"]),
        ("sed --in-place=.old 's/a/b/' a.js", ["update a.js", "write a.js.old"]),
        ("sed -i 's/a/b/' $F", ["opaque"]),
        ("sed -i 's/a/b/' *.js", ["opaque"]),
        ("sed -i --zap s/a/b/ a.js", ["opaque", "unseen read"]),
        # Here documents.
        ("cat > a.js <<'EOF'\nlet $x = `1`;\nEOF", ["write a.js 'let $x = `1`;\\n'"]),
        ("cat <<EOF > a.js\nx\nEOF\n", ["write a.js 'x\\n'"]),
        ("cat <<EOF > a.js\n$x\nEOF", ["write a.js"]),
        ("cat <<EOF > a.js\n\\$x \\\\ \\n\nEOF", ["write a.js '$x \\\\ \\\\n\\n'"]),
        ("cat <<EOF > a.js\n$(rm b)\nEOF", ["write a.js", "opaque"]),
        ("cat <<-EOF > a.js\n\t\tx\n\tEOF", ["write a.js 'x\\n'"]),
        ("tee a.js <<'E'\nx\nE", ["write a.js 'x\\n'"]),
        ("cat >a <<A; cat >b <<'B'\n1\nA\n2\nB", ["write? a '1\\n'", "write b '2\\n'"]),
        ("cat > a.js <<EOF\nrm b.js\nEOF\nrm c.js", ["write? a.js 'rm b.js\\n'", "delete c.js"]),
        ("cat > a.js <<'EOF'\nnever closed", ["write a.js 'never closed\\n'"]),
        ("cat > a.js <<EOF", ["write a.js", "opaque"]),
        ('git commit -m "$(cat <<\'EOF\'\nIt\'s (done) "now"\nEOF\n)"', []),
        # Deleting, moving, copying.
        ("rm a.js", ["delete a.js"]),
        ("rm -f -- -a.js", ["delete -a.js"]),
        ("rm -rf build", ["delete build", "opaque"]),
        ("rm *.js", ["opaque"]),
        ("rm --zap a.js", ["opaque"]),
        ("ls | xargs rm", ["opaque"]),
        ("find . -name x -delete", ["opaque"]),
        ("find . -exec rm {} +", ["opaque"]),
        ("find . -exec grep -l x {} + -print", []),
        ("find . -exec cat {} \\; -exec grep rm {} \\;", ["unseen read"]),
        ("ls | xargs -I % mv % %.bak", ["opaque"]),
        ("ls | xargs -n 1 grep x", []),
        ("mv a.js b.js", ["move a.js -> b.js"]),
        ("mv a.js lib/", ["move a.js -> lib/a.js"]),
        ("mv src/a.js .", ["move src/a.js -> ./a.js"]),
        ("mv a.js lib", ["move a.js", "opaque"]),
        ("mv a.js lib/a.js", ["move a.js -> lib/a.js"]),
        ("mv Makefile lib/Makefile", ["move Makefile -> lib/Makefile"]),
        ("mv a.js b.js lib", ["move a.js -> lib/a.js", "move b.js -> lib/b.js"]),
        ("mv -t lib a.js", ["move a.js -> lib/a.js"]),
        ("mv a.js", ["opaque"]),
        ("mv $A b.js", ["opaque"]),
        ("cp a.js b.js", ["read a.js", "write b.js"]),
        ("cp a.js lib/", ["read a.js", "write lib/a.js"]),
        ("cp a.js lib", ["read a.js", "opaque"]),
        ("cp -t lib a.js", ["read a.js", "write lib/a.js"]),
        ("cp -r a b", ["opaque"]),
        # Nothing.
        ("", []),
        ("# rm a.js", []),
        ("ls -la && pwd; git status | head", []),
        ("mkdir -p a/b", []),
        ("grep -n rm a.js", []),
        ("git -C sub --no-pager log --oneline", []),
        ("git stash list", []),
        ("mytool status --all", []),
        ("X=1 Y='a b' ls", []),
        ("X=$(git rev-parse HEAD) && echo $X ${X} $((1+2))", []),
        ("[[ -f a && b > c || d < e ]] && rm a", ["delete a"]),
        ("if [[ $a > b ]]; then ls; fi", []),
        ("[[ $(rm a) ]]", ["opaque"]),
        ("[[ a", ["opaque"]),
        ("[ -f a ] && ls", []),
        ("sleep 1 &", []),
        ("sort a.txt", []),
        ("awk '{print $1}' a.txt", []),
        ("curl -s http://localhost/", []),
        # Not known.
        ("python x.py", ["opaque"]),
        ("mytool update", ["opaque"]),
        ("./run.sh", ["opaque"]),
        ("$CMD a.js", ["opaque"]),
        ("git checkout a.js", ["opaque"]),
        ("git stash", ["opaque"]),
        ("git mv a b", ["opaque"]),
        ("sort -o a.txt a.txt", ["opaque"]),
        ("awk '{print > \"b\"}' a.txt", ["opaque"]),
        ("curl -sO http://localhost/x", ["opaque"]),
        ("echo `rm a.js`", ["opaque"]),
        ("ls &>(cat a)", ["opaque"]),
        ("rm a; ls > ; rm b", ["delete? a", "delete b", "opaque"]),
        ("echo 'never closed", ["opaque"]),
        ('echo "never closed', ["opaque"]),
        ("case x in y) rm a;; esac", ["opaque"]),
        ("f() { rm a; }; f", ["opaque"]),
        ("diff <(cat a.js) b.js", ["read? a.js"]),
        ("bash -c 'rm a.js'", ["delete a.js"]),
        ("bash -c 'rm a.js; ls'", ["delete? a.js"]),
        ("bash x.sh", ["opaque"]),
        # What is sure, and what may not have run.
        ("cat a && rm b", ["read a", "delete b"]),
        ("cat a; rm b", ["read? a", "delete b"]),
        ("cat a\nrm b", ["read? a", "delete b"]),
        ("cat a & rm b", ["read? a", "delete b"]),
        ("cat a | grep x", ["read? a"]),
        ("rm a && cat b | grep x", ["delete a", "read? b"]),
        ("rm a && ls; rm b", ["delete? a", "delete b"]),
        ("cat a || cat b", ["read? a", "unseen read"]),
        ("cat a || rm b", ["read? a", "opaque"]),
        ("cat a || ls; rm b", ["read? a", "delete b"]),
        ("cat a 2>/dev/null || true", ["read? a"]),
        ("! cat a", ["unseen read"]),
        ("cat $(cat list)", ["read? list", "unseen read"]),
        ("if ls a; then rm b; fi", ["opaque"]),
        ("if cat a; then ls; fi; rm b", ["delete b", "unseen read"]),
        ("if ls; then ls; fi || rm b", ["opaque"]),
        ("if ls; then ls; fi | rm b", ["delete b"]),
        ("for f in a b; do cat $f; done", ["unseen read"]),
        ("for f in a b; do echo $f; done", []),
        ("for f in a b; do rm $f; done", ["opaque"]),
        ("ls | while read x; do gh; done", ["opaque"]),
        ('ls | while read -r x; do echo "$x"; done > out.txt', ["opaque"]),
        ("(cd sub && cat a.js) && rm b.js", ["read? sub/a.js", "delete b.js"]),
        ("(cd sub); rm b.js", ["delete b.js"]),
        (
            "echo $(cd sub && (cd in && cat a.js) && cat b.js)",
            ["read? sub/in/a.js", "read? sub/b.js"],
        ),
        ("{ rm a; }", ["opaque"]),
        # Builds.
        ("mvn -q package", ["build"]),
        ("cd x && MAVEN_OPTS=-Xmx1g mvn package 2>&1 | tail -3", ["build?"]),
        ("time mvn package && npm test", ["build", "validate"]),
        ("timeout 30 mvn package", ["build"]),
        ("sudo -u x mvn package", ["opaque"]),
        ("if mvn package; then ls; fi", ["build?"]),
        # Where.
        ("cd sub && rm a.js", ["delete sub/a.js"]),
        ("cd sub; rm a.js", ["opaque"]),
        ("cd sub || exit 1; rm a.js", ["opaque"]),
        ("cd sub; rm /ws/a.js", ["delete /ws/a.js"]),
        ("cd $D && cat a.js", ["unseen read"]),
        ("cd - && rm a.js", ["opaque"]),
        ("cd /ws && rm a.js", ["delete /ws/a.js"]),
        ("cd sub | ls && rm a.js", ["delete a.js"]),
    ],
)
def test_what_is_read_of_a_command_line(text: str, expected: list[str]) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(
    ("text", "began", "ends", "moved"),
    [
        ("ls", "sub", "sub", False),
        ("cd sub", "", "sub", True),
        ("cd in && ls", "sub", "sub/in", True),
        ("cd /ws", "sub", "/ws", True),
        ("cd sub; ls", "", None, True),
        ("cd", "", None, True),
        ("cd $X", "", None, True),
        ("ls || cd sub", "", None, True),
        ("(cd sub)", "", "", False),
        ("cd in", None, None, True),
        ("cd /ws", None, "/ws", True),
        # Whether it was entered again or the shell had begun anew is not known.
        ("cd sub && ls", "sub", None, True),
        ("cd in/sub && ls", "/ws/in/sub", None, True),
        ("cd ./sub/ && ls", "sub", None, True),
        ("cd /ws && ls", "/ws", "/ws", True),
        ("cd .. && ls", "sub/..", "sub/../..", True),
        ("cd b && ls", "sub", "sub/b", True),
    ],
)
def test_the_directory_that_a_line_ends_in(
    text: str, began: str | None, ends: str | None, moved: bool
) -> None:
    reading = read(text, began)
    assert (reading.directory, reading.moved) == (ends, moved)


def test_of_a_line_that_failed_only_the_last_command_is_known_to_have_failed() -> None:
    def last(text: str) -> list[bool]:
        reading = read(text)
        return [event.last for event in reading.events] + [run.last for run in reading.runs]

    assert last("rm a") == [True]
    assert last("rm a && rm b") == [False, True]
    assert last("rm a; rm b") == [False, True]
    assert last("cat a | tee b") == [False, True]
    assert last("mvn package && npm test") == [False, True]
    assert last("if rm a; then mvn package; fi") == [False]
    assert last("grep x y > out") == [False], "it is written, whatever grep finds"
    assert last("echo x > out") == [True]
    assert last("bash -c 'rm a && rm b'") == [False, True]


def test_nesting_and_length_have_no_end_in_a_crash() -> None:
    assert read("echo " + "$(" * 5000).opaque
    assert read("(" * 5000).opaque
    assert read("rm a; " * 5000).events[4999].path == "a"
    assert read("bash -c " + "'" * 4999).opaque


@given(
    st.lists(
        st.sampled_from(
            [*"ab /.;|&<>()$`'\"\\\n\r\t{}[]*-#=!~", "<<a", "$(", "[[ ", " ]]", "for ", "rm "]
        )
    ).map("".join)
)
@settings(max_examples=2000)
def test_any_text_is_read_to_something(text: str) -> None:
    read(text)


SAFE = st.sampled_from(
    [
        "rm a.txt",
        "cat a.txt",
        "cat b.txt",
        "mv a.txt c.txt",
        "cp b.txt d.txt",
        "echo hello > a.txt",
        "echo more >> b.txt",
        "cat > e.txt <<'EOF'\n$x 'y'\nEOF\n",
        "touch f.txt",
        "sed -i s/x/y/ b.txt",
        "cd sub",
        "false",
        "true",
        "ls",
    ]
)
LINES = st.lists(st.tuples(SAFE, st.sampled_from([" && ", " || ", "; ", "\n", " | "])), max_size=5)


@given(parts=LINES, end=SAFE, wrap=st.sampled_from(["{}", "({})", "if true\nthen\n{}\nfi"]))
@settings(max_examples=150, deadline=None)
def test_a_real_shell_changes_no_file_that_is_not_read_off_the_line(
    parts: list[tuple[str, str]], end: str, wrap: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """What `sh` does to a folder is what was read off the line, unless that says it is opaque."""
    text = "".join(
        command.rstrip("\n") + ("\n" if "EOF" in command else joiner) for command, joiner in parts
    )
    line = wrap.format(text + end.rstrip("\n"))
    folder = tmp_path_factory.mktemp("shell")
    (folder / "sub").mkdir()
    for name in ("a.txt", "b.txt", "sub/a.txt", "sub/b.txt"):
        (folder / name).write_text(f"x {name}\n")
    before = _contents(folder)
    done = subprocess.run(["sh", "-c", line], cwd=folder, capture_output=True, check=False)
    after = _contents(folder)
    changed = {name for name in before | after if before.get(name) != after.get(name)}
    reading = read(line)
    named = {
        os.path.normpath(path)
        for event in reading.events
        if event.operation != "read"
        for path in (event.path, event.moved_to)
        if path is not None
    }
    assert reading.opaque or changed <= named
    # Commands of a pipeline run at once: which of two comes last at a file is anyone's guess.
    if done.returncode == 0 and not reading.opaque and "|" not in line.replace("||", ""):
        for path, event in {os.path.normpath(e.path): e for e in reading.events}.items():
            if event.sure and event.operation in ("delete", "move"):
                assert path not in after or path in _targets(reading)
            if event.sure and event.operation == "write" and event.content is not None:
                assert after[path].decode().endswith(event.content)


def _targets(reading: ShellReading) -> set[str]:
    return {os.path.normpath(e.moved_to) for e in reading.events if e.moved_to is not None}


def _contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
