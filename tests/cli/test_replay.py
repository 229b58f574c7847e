"""`bench replay` with real agents in real processes: whatever one does, its trace says so."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.model.identity import path_key
from tests.bench import Result, bench

AGENT = '''
import asyncio
import os
import signal
import subprocess
import sys
import threading
import time


def run(user, recorder):
    what, _, rest = user.partition(" ")
    recorder.on_tool("get_order", {"order_id": 1842})
    globals()[what](recorder, rest)
    recorder.on_final({"status": "ok"})


async def run_async(user, recorder):
    await asyncio.sleep(0)
    run(user, recorder)


def fine(recorder, rest):
    recorder.on_question("Which card?")
    recorder.on_tool("refund", {"card": "blue"}, result="r-1")


def talks(recorder, rest):
    for turn in recorder.turns:
        recorder.on_tool("answer", {"to": turn})


def leaves_open(recorder, rest):
    recorder.start_tool("begun", {"n": 1})
    begun = threading.Event()

    @recorder.tool
    def sleep():
        begun.set()
        time.sleep(600)

    threading.Thread(target=sleep, daemon=True).start()
    begun.wait()


def raises(recorder, rest):
    raise ValueError("boom")


def raises_group(recorder, rest):
    raise BaseExceptionGroup("tasks", [BaseExceptionGroup("more", [KeyError("inner")])])


def interrupts(recorder, rest):
    raise KeyboardInterrupt


def hangs(recorder, rest):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    recorder.start_tool("slow", {"n": 1})
    time.sleep(600)


def exits(recorder, rest):
    sys.exit(int(rest))


def exits_at_once(recorder, rest):
    os._exit(0)


def exits_with_a_text(recorder, rest):
    sys.exit("no such order")


def forks_and_raises(recorder, rest):
    if os.fork() == 0:
        raise ValueError("in a child")
    os.wait()
    time.sleep(600)


def is_killed(recorder, rest):
    os.kill(os.getpid(), signal.SIGKILL)


def aborts(recorder, rest):
    os.abort()


def closes_everything(recorder, rest):
    os.closerange(0, 64)
    recorder.on_tool("unseen", {})


def recurses(recorder, rest):
    recurses(recorder, rest)


def prints_garbage(recorder, rest):
    sys.stdout.write('{"tools": [], "final": {"status": "ok"}}')
    os.write(1, bytes(range(256)) * 4096)
    os.write(2, b"\\x1b[2J" * 100)


def prints_for_ever(recorder, rest):
    while True:
        os.write(1, b"x" * 65536)


def reads(recorder, rest):
    recorder.on_tool("read", {"stdin": sys.stdin.read(), "argv": sys.argv, "env": os.environ["KEY"]})
    recorder.on_tool("which", {"fixture": recorder.fixture, "trial": recorder.trial})


def spawns(recorder, rest):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    recorder.on_tool("spawn", {"pid": child.pid})


def meets(recorder, rest):
    open(f"here-{recorder.fixture}", "w").close()
    deadline = time.monotonic() + float(os.environ["WAIT"])
    while not os.path.exists(f"here-{rest}"):
        if time.monotonic() > deadline:
            raise TimeoutError("nobody came")
        time.sleep(0.02)


def leaves_a_thread(recorder, rest):
    threading.Thread(target=time.sleep, args=(600,)).start()


def waits(recorder, rest):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with open("pids.tmp", "w") as file:
        file.write(f"{os.getpid()} {child.pid}")
    os.rename("pids.tmp", "pids")
    time.sleep(600)


def yields(user, recorder):
    yield recorder.on_tool("get_order", {"order_id": 1842})


async def yields_async(user, recorder):
    yield recorder.on_tool("get_order", {"order_id": 1842})


def gives_back_a_generator(user, recorder):
    return yields(user, recorder)


def forks(user, recorder):
    """The child comes to the end of the agent, and the agent does not."""
    if os.fork() == 0:
        return
    time.sleep(600)


def forks_for_tools(user, recorder):
    outer = recorder.start_tool("outer", {"n": 0})
    if os.fork() == 0:
        recorder.on_tool("child", {"n": 1}, result="of the child")
        recorder.on_question("From the child?")
        recorder.on_tool("child", {"n": 2}, error="of the child")
        os._exit(0)
    os.wait()
    outer.succeed("of the agent")
    recorder.on_tool("after", {"n": 3}, result="of the agent")
    recorder.on_final({"status": "ok"})


class Agent:
    """Nothing that could be sent to another process."""

    def __init__(self):
        self.lock = threading.Lock()
        self.inner = lambda user, recorder: run(user, recorder)

    def __call__(self, user, recorder):
        with self.lock:
            self.inner(user, recorder)


agent = Agent()
no_function = 5


def takes_one(user):
    pass
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "my_agent.py").write_text(AGENT, encoding="utf-8")
    (tmp_path / "fixtures").mkdir()
    return tmp_path


def add(project: Path, *whats: str, **more: str) -> None:
    """Add fixtures; each tells the agent what to do, and is named by it, or by `more`."""
    for name, what in {**{what.split()[0]: what for what in whats}, **more}.items():
        fixture = {"id": name, "input": {"user": what}, "expect": {"tool_names": []}}
        path = project / "fixtures" / f"{path_key(name)}.json"
        path.write_text(json.dumps(fixture), encoding="utf-8")


def replay(project: Path, *args: object, env: dict[str, str] | None = None) -> Result:
    agent = [] if "--agent" in args else ["--agent", "my_agent:run"]
    return bench("replay", *agent, *args, cwd=project, env=env)


def trace(project: Path, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / "traces" / f"{name}.json").read_bytes())
    return found


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that ended and that nobody has waited for yet is not alive.
    state = Path(f"/proc/{pid}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] != "Z"


def wait_for(what: Any, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def test_agents_that_come_to_their_end(project: Path) -> None:
    add(project, "fine", "prints_garbage")
    result = replay(project)
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines() == [
        "RAN    traces/fine.json  2 tool calls",
        "RAN    traces/prints_garbage.json  1 tool call",
        "2 fixtures, 2 runs: 2 ran, 0 failed.",
    ]
    found = trace(project, "fine")
    assert found["tools"] == [
        {"name": "get_order", "arguments": {"order_id": 1842}},
        {"name": "refund", "arguments": {"card": "blue"}, "result": "r-1"},
    ]
    assert found["asked_clarification"] is True
    assert found["questions"] == [{"text": "Which card?", "before_tool": 1}]
    assert found["final"] == {"status": "ok"}
    assert (found["fixture"], found["trial"]) == ("fine", 1)
    assert found["input"] == {"user": "fine"}
    assert "error" not in found
    # What an agent prints is no trace.
    assert len(trace(project, "prints_garbage")["tools"]) == 1


def test_an_agent_is_given_the_further_turns_of_a_conversation(project: Path) -> None:
    fixture = {
        "id": "two",
        "input": {"user": "talks", "turns": ["The blue one.", "Yes."]},
        "expect": {"tool_names": ["get_order", "answer", "answer"]},
    }
    (project / "fixtures" / "two.json").write_text(json.dumps(fixture), encoding="utf-8")
    case = {
        "eval_id": "three",
        "conversation": [{"user_content": {"parts": [{"text": t}]}} for t in ("talks", "No.")],
    }
    sets = {"eval_set_id": "s", "eval_cases": [case]}
    (project / "fixtures" / "s.evalset.json").write_text(json.dumps(sets), encoding="utf-8")
    assert replay(project).code == 0
    said = {
        name: [tool["arguments"]["to"] for tool in trace(project, name)["tools"][1:]]
        for name in ("two", "three")
    }
    assert said == {"two": ["The blue one.", "Yes."], "three": ["No."]}


@pytest.mark.parametrize("turns", ["Yes.", [5], [""], {}])
def test_turns_that_are_no_texts_are_refused(project: Path, turns: Any) -> None:
    add(project, "fine")
    fixture = {"id": "odd", "input": {"user": "fine", "turns": turns}, "expect": {"tool_names": []}}
    (project / "fixtures" / "odd.json").write_text(json.dumps(fixture), encoding="utf-8")
    result = replay(project)
    assert result.code == 1
    assert "odd.json" in result.err
    assert "input.turns" in result.err


@pytest.mark.parametrize("trials", ["1", "3"])
@pytest.mark.parametrize("agent", ["my_agent:gone", "my_agent:takes_one", "no_such:run"])
def test_an_agent_that_cannot_be_loaded_leaves_no_old_trace(
    project: Path, agent: str, trials: str
) -> None:
    add(project, "fine")
    assert replay(project, "--trials", trials).code == 0
    assert replay(project, "--agent", agent, "--trials", trials).code == 1
    assert list((project / "traces").rglob("*.json")) == []


def test_a_call_that_has_not_ended_when_the_agent_has_is_in_error(project: Path) -> None:
    add(project, "leaves_open")
    assert replay(project).code == 0
    tools = trace(project, "leaves_open")["tools"]
    assert ["error" in tool for tool in tools] == [False, True, True]


FAILURES = [
    ("raises", "ValueError: boom"),
    ("raises_group", "KeyError: 'inner'"),
    ("interrupts", "KeyboardInterrupt"),
    ("exits 0", "the agent ended its process: sys.exit(0)"),
    ("exits 3", "the agent ended its process: sys.exit(3)"),
    ("exits_with_a_text", "SystemExit: no such order"),
    ("exits_at_once", "the agent's process ended with exit code 0 before the agent did"),
    ("is_killed", "the agent's process was ended by SIGKILL"),
    ("aborts", "the agent's process was ended by SIGABRT"),
    ("recurses", "RecursionError: maximum recursion depth exceeded"),
    ("closes_everything", "the agent's process ended with exit code 1 before the agent did"),
    ("there_is_no_such", "KeyError: 'there_is_no_such'"),
]


@pytest.mark.parametrize(("what", "error"), FAILURES, ids=[what for what, _ in FAILURES])
def test_agents_that_do_not(project: Path, what: str, error: str) -> None:
    add(project, what, zz="fine")
    result = replay(project)
    assert result.code == 1
    name = what.partition(" ")[0]
    found = trace(project, name)
    assert found["error"].startswith(error)
    # What was recorded until then is kept.
    assert found["tools"] == [{"name": "get_order", "arguments": {"order_id": 1842}}]
    assert found["final"] is None
    assert (found["fixture"], found["trial"]) == (name, 1)
    assert f"FAILED traces/{name}.json" in result.out
    assert error in result.out
    # The other case ran.
    assert result.out.endswith("2 fixtures, 2 runs: 1 ran, 1 failed.\n")
    assert trace(project, "zz")["final"] == {"status": "ok"}


def test_a_process_that_an_agent_forks_is_not_the_agent(project: Path) -> None:
    add(project, "any", "forks_and_raises")
    result = replay(project, "--agent", "my_agent:forks", "--fixture", "any", "--timeout", "2")
    assert result.code == 1
    assert "within 2 s" in trace(project, "any")["error"]
    # What goes wrong in it is on record.
    args = ("--fixture", "forks_and_raises", "--timeout", "2")
    assert replay(project, *args).code == 1
    assert trace(project, "forks_and_raises")["error"] == "ValueError: in a child"


def test_what_forked_processes_do_is_recorded_in_order(project: Path) -> None:
    add(project, "any")
    assert replay(project, "--agent", "my_agent:forks_for_tools").code == 0
    found = trace(project, "any")
    assert found["tools"] == [
        {"name": "outer", "arguments": {"n": 0}, "result": "of the agent"},
        {"name": "child", "arguments": {"n": 1}, "result": "of the child"},
        {"name": "child", "arguments": {"n": 2}, "error": "of the child"},
        {"name": "after", "arguments": {"n": 3}, "result": "of the agent"},
    ]
    assert found["questions"] == [{"text": "From the child?", "before_tool": 2}]
    assert found["final"] == {"status": "ok"}


def test_a_generator_is_no_agent_that_ran(project: Path) -> None:
    add(project, "any")
    result = replay(project, "--agent", "my_agent:gives_back_a_generator")
    assert result.code == 1
    assert "TypeError: the agent gave back a generator" in trace(project, "any")["error"]


def test_an_agent_that_hangs_is_killed(project: Path) -> None:
    add(project, "hangs", "prints_for_ever")
    begun = time.monotonic()
    result = replay(project, "--timeout", "4", "--jobs", "2")
    assert time.monotonic() - begun < 60
    assert result.code == 1
    found = trace(project, "hangs")
    assert found["error"] == "the agent did not come to its end within 4 s, and was killed"
    assert [tool["name"] for tool in found["tools"]] == ["get_order", "slow"]
    assert "error" in trace(project, "prints_for_ever")
    # Only the end of what it printed is kept, and shown.
    assert len(result.err) < 20_000


def test_what_an_agent_starts_ends_with_it(project: Path) -> None:
    add(project, "spawns")
    assert replay(project).code == 0
    pid = trace(project, "spawns")["tools"][1]["arguments"]["pid"]
    wait_for(lambda: not is_alive(pid))


@pytest.mark.slow
def test_a_thread_that_stays_does_not_hold_the_replay_up(project: Path) -> None:
    add(project, "leaves_a_thread")
    result = replay(project, "--timeout", "60")
    assert result.code == 0
    assert trace(project, "leaves_a_thread")["final"] == {"status": "ok"}


def test_the_environment_is_the_callers(project: Path) -> None:
    add(project, "reads")
    assert replay(project, env={"KEY": "value"}).code == 0
    assert [tool["arguments"] for tool in trace(project, "reads")["tools"][1:]] == [
        {"stdin": "", "argv": ["my_agent:run"], "env": "value"},
        {"fixture": "reads", "trial": 1},
    ]


@pytest.mark.parametrize("name", ["run_async", "agent", "agent.inner"])
def test_whatever_can_be_called_is_an_agent(project: Path, name: str) -> None:
    add(project, "fine")
    assert replay(project, "--agent", f"my_agent:{name}").code == 0
    assert len(trace(project, "fine")["tools"]) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_replay_that_is_ended_ends_its_agents(project: Path, number: signal.Signals) -> None:
    add(project, "waits")
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmark_assets.cli.main", "replay", "--agent", "my_agent:run"],
        cwd=project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # Who runs tests in the background has SIGINT ignored, which children inherit.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    wait_for((project / "pids").exists)
    pids = [int(text) for text in (project / "pids").read_text().split()]
    assert all(is_alive(pid) for pid in pids)
    process.send_signal(number)
    assert process.wait(timeout=20) != 0
    wait_for(lambda: not any(is_alive(pid) for pid in pids))
    # It was not run to an end, so there is nothing to grade: the grader will miss it.
    assert list(project.glob("traces/**/*.json")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_trials_of_a_replay_that_is_ended_do_not_pass_for_all(
    project: Path, number: signal.Signals, jobs: str
) -> None:
    add(project, "fine", "waits")
    command = [sys.executable, "-m", "benchmark_assets.cli.main", "replay"]
    command += ["--agent", "my_agent:run", "--trials", "3", "--jobs", jobs]
    process = subprocess.Popen(
        command,
        cwd=project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    wait_for((project / "pids").exists)
    process.send_signal(number)
    assert process.wait(timeout=20) != 0
    assert "error" not in trace(project, "fine/1")
    assert trace(project, "waits/3")["error"] == "the replay was ended before this trial was over"
    suite = json.loads(bench("golden", "--json", "--fixture", "waits", cwd=project).out)
    assert {case["trial"]: case["result"] for case in suite} == {1: "MISSING", 3: "FAIL"}


def test_the_fixtures_are_those_that_are_graded(project: Path) -> None:
    """Folders in the folder too; no lock file, schema or golden trace."""
    add(project, "fine")
    fixtures = project / "fixtures"
    (fixtures / "more").mkdir()
    (fixtures / "fine.json").rename(fixtures / "more" / "fine.json")
    for name in ("fixtures.lock.json", "fixture.schema.json", "fine.golden.json"):
        (fixtures / name).write_text("{}")
    assert replay(project).code == 0
    assert len(trace(project, "fine")["tools"]) == 2


# Trials.


def test_trials_have_a_file_each(project: Path) -> None:
    add(project, "reads", "exits_at_once")
    result = replay(project, "--trials", "3", "--jobs", "2", env={"KEY": "x"})
    assert result.code == 1
    assert result.out.splitlines()[-1] == "2 fixtures, 6 runs: 3 ran, 3 failed."
    lines = [line.split()[1] for line in result.out.splitlines() if line[:3] in ("RAN", "FAI")]
    assert lines == [
        f"traces/{name}/{trial}.json" for name in ("exits_at_once", "reads") for trial in (1, 2, 3)
    ]
    for trial in (1, 2, 3):
        found = trace(project, f"reads/{trial}")
        assert found["trial"] == trial
        assert found["tools"][2]["arguments"] == {"fixture": "reads", "trial": trial}


def test_nothing_old_is_left_to_be_graded(project: Path) -> None:
    add(project, "fine", other="fine")
    assert replay(project, "--trials", "3").code == 0
    (project / "traces" / "fine" / "notes.json").write_text("{}")
    assert replay(project, "--trials", "2", "--fixture", "fine").code == 0
    traces = project / "traces"
    files = {path.relative_to(traces).as_posix() for path in traces.rglob("*.json")}
    assert {file for file in files if file.startswith("fine")} == {
        "fine/1.json",
        "fine/2.json",
        # Nobody's trace, and not ours.
        "fine/notes.json",
    }
    assert {file for file in files if file.startswith("other")} == {
        "other/1.json",
        "other/2.json",
        "other/3.json",
    }
    assert replay(project, "--fixture", "other").code == 0
    assert not (project / "traces" / "other").exists()
    assert (project / "traces" / "other.json").exists()


def test_jobs_run_at_the_same_time(project: Path) -> None:
    add(project, a="meets b", b="meets a")
    assert replay(project, "--jobs", "2", env={"WAIT": "30"}).code == 0
    for name in ("a", "b"):
        (project / f"here-{name}").unlink()
    assert replay(project, env={"WAIT": "0.5"}).code == 1
    assert trace(project, "a")["error"] == "TimeoutError: nobody came"
    # By then the first one had left its mark.
    assert "error" not in trace(project, "b")


# Names.


@pytest.mark.parametrize("name", ["a/b", "../up", ".hidden", "c:d|e f", "größe", "x" * 400])
def test_any_id_is_a_name_of_a_file(project: Path, name: str) -> None:
    add(project, **{name: "fine"})
    assert replay(project).code == 0
    assert replay(project, "--trials", "2").code == 0
    files = sorted(project.glob("traces/**/*.json"))
    assert [file.name for file in files] == ["1.json", "2.json"]
    assert {file.parent for file in files} == {project / "traces" / path_key(name)}
    assert json.loads(files[0].read_bytes())["fixture"] == name
    assert not (project / "up.json").exists()


# Fixtures that are none, and set-ups that are wrong.


def test_bad_fixtures_are_reported_and_the_others_run(project: Path) -> None:
    add(project, "fine")
    folder = project / "fixtures"
    (folder / "a_list.json").write_text("[]")
    (folder / "broken.json").write_text("{")
    (folder / "no_id.json").write_text('{"input": {"user": "fine"}}')
    (folder / "no_user.json").write_text('{"id": "x", "input": {"user": " "}}')
    (folder / "twin.json").write_text('{"id": "fine", "input": {"user": "fine"}}')
    (folder / "fine.golden.json").write_text("{}")
    (folder / "notes.txt").write_text("x")
    result = replay(project)
    assert result.code == 1
    assert result.out.endswith("1 fixture, 1 run: 1 ran, 0 failed.\n")
    assert [line.split(": ", 1)[1].split(":")[0] for line in result.err.splitlines()] == [
        "is not a fixture",
        "is not JSON",
        "is not a fixture",
        "is not a fixture",
        "the id fine is that of fixtures/fine.json, too; give it one of its own",
    ]
    assert [path.name for path in (project / "traces").iterdir()] == ["fine.json"]


SETUPS = [
    (["--agent", "nowhere:run"], "there is no module nowhere"),
    (["--agent", "my_agent:nothing"], "module my_agent has no nothing"),
    (["--agent", "my_agent:no_function"], "is not a function, but of type int"),
    (["--agent", "my_agent:takes_one"], "does not take what an agent is given"),
    (["--agent", "broken:run"], "ModuleNotFoundError: No module named 'not_installed'"),
    (["--agent", "my_agent:yields"], "is a generator, of which nothing runs"),
    (["--agent", "my_agent:yields_async"], "is a generator, of which nothing runs"),
    (["--agent", "exits:run"], "the agent ended its process: sys.exit(5)"),
    (["--agent", "hangs:run", "--timeout", "1"], "did not come to its end within 1 s"),
]
NO_CASES = [
    (["--fixtures", "nowhere"], "nowhere: does not exist"),
    (["--fixtures", "empty"], "no fixtures are in it"),
]


@pytest.mark.parametrize(
    ("args", "error"), SETUPS + NO_CASES, ids=[" ".join(args) for args, _ in SETUPS + NO_CASES]
)
def test_a_wrong_set_up_leaves_nothing_that_may_pass(
    project: Path, args: list[str], error: str
) -> None:
    add(project, "fine")
    (project / "broken.py").write_text("import not_installed")
    (project / "exits.py").write_text("import sys\nsys.exit(5)")
    (project / "hangs.py").write_text("import time\ntime.sleep(600)")
    (project / "empty").mkdir()
    (project / "traces").mkdir()
    (project / "traces" / "fine.json").write_text("old")
    result = replay(project, *args)
    assert (result.code, result.out) == (1, "")
    assert error in " ".join(result.err.split())
    # Where it is known what is to be run, an old trace must not stand for it.
    assert (project / "traces" / "fine.json").exists() == ((args, error) in NO_CASES)


def test_no_agent(project: Path) -> None:
    add(project, "fine")
    result = bench("replay", cwd=project)
    assert result.code == 1
    assert "replay: {agent: module:function}" in result.err


USAGES = [
    (["--agent", "my_agent"], "not of the form module:function"),
    (["--agent", "my_agent.py:run()"], "not of the form module:function"),
    (["--out", "fixtures"], "the folder of fixtures"),
    (["--out", "traces/../fixtures/"], "the folder of fixtures"),
    (["--fixture", "fin"], "no fixture has the id fin; did you mean 'fine'?"),
    (["--trials", "0"], "--trials"),
    (["--jobs", "0"], "--jobs"),
    (["--timeout", "0"], "--timeout"),
    (["--grade"], "--grade"),
]


@pytest.mark.parametrize(("args", "error"), USAGES, ids=[" ".join(args) for args, _ in USAGES])
def test_wrong_usage(project: Path, args: list[str], error: str) -> None:
    add(project, "fine")
    result = replay(project, *args)
    assert (result.code, result.out) == (2, "")
    assert error in result.err
    assert not (project / "traces").exists()


def test_json(project: Path) -> None:
    add(project, "fine", "raises")
    result = replay(project, "--json")
    assert result.code == 1
    rows = json.loads(result.out)
    assert all(0 < row.pop("seconds") < 60 for row in rows)
    assert rows == [
        {
            "id": "fine",
            "trial": 1,
            "result": "RAN",
            "error": None,
            "tools": 2,
            "trace": "traces/fine.json",
        },
        {
            "id": "raises",
            "trial": 1,
            "result": "FAILED",
            "error": "ValueError: boom",
            "tools": 1,
            "trace": "traces/raises.json",
        },
    ]


def test_what_a_failed_agent_printed_is_shown(project: Path) -> None:
    add(project, "raises")
    result = replay(project)
    assert "my_agent.py" in result.err
    assert "ValueError: boom" in result.err
    assert "\x1b" not in result.err


# benchmark.yaml.

SETTINGS = """\
replay:
  agent: my_agent:run
  comparable: {get_order: order_id}
  comparable_final: status
"""


def test_the_project_names_the_agent_and_what_may_be_written_down(project: Path) -> None:
    (project / "benchmark.yaml").write_text(SETTINGS, encoding="utf-8")
    add(project, "fine", "raises")
    below = project / "below"
    below.mkdir()
    # The agent is found from a folder below, too: the file that names it says where it is.
    result = bench("replay", "--fixtures", "../fixtures", "--out", "../traces", cwd=below)
    assert result.code == 1, result.err
    for name, hidden in {"fine": [b"Which card", b"blue", b"r-1"], "raises": [b"boom"]}.items():
        data = (project / "traces" / f"{name}.json").read_bytes()
        for text in hidden:
            assert text not in data
    found = trace(project, "fine")
    assert found["tools"][0]["arguments"] == {"order_id": 1842}
    assert found["tools"][1]["arguments"].keys() == {"card"}
    assert found["final"] == {"status": "ok"}
    assert "/tools/1/arguments/card" in found["redacted"]
    assert trace(project, "raises")["error"].startswith("ValueError: sha256:")


def test_what_is_wrong_with_the_agent_is_said_where_values_are_hidden(project: Path) -> None:
    """But for what are the agent's own words."""
    (project / "benchmark.yaml").write_text(SETTINGS, encoding="utf-8")
    add(project, "exits 3", "exits_with_a_text")
    assert replay(project).code == 1
    assert trace(project, "exits")["error"] == "the agent ended its process: sys.exit(3)"
    assert "order" not in trace(project, "exits_with_a_text")["error"]
    result = replay(project, "--agent", "my_agent:nothing")
    assert result.code == 1
    assert "module my_agent has no nothing" in result.err


WRONG = [
    ("agent: my_agent", "replay.agent"),
    ("agent: [my_agent:run]", "replay.agent"),
    ("comparable_final: [status]", "comparable_final does nothing without"),
    ("others: keep", "replay.others"),
    ("trials: 3", "replay.trials"),
]


@pytest.mark.parametrize(("text", "error"), WRONG, ids=[text for text, _ in WRONG])
def test_wrong_settings(project: Path, text: str, error: str) -> None:
    (project / "benchmark.yaml").write_text(f"replay: {{{text}}}\n", encoding="utf-8")
    add(project, "fine")
    result = bench("replay", cwd=project)
    assert result.code == 1
    assert "benchmark.yaml:1" in result.err
    assert error in result.err
