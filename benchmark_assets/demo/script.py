"""What happens in one run, before anything is timed or priced.

Belongs here: the steps of a run and their builder. Does not belong here: what a use case does
(`use_cases/`) or how a model's speed and prices turn steps into a trace (`record`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmark_assets.model.trace import FileOperation


@dataclass(frozen=True, kw_only=True)
class Call:
    """One tool call.

    Attributes:
        error: The failure's message; None if the call succeeded.
        seconds: Median of how long the tool takes.
        question: The text put to the user, if the tool asks the user something.
        skill: The skill that the call loads, if it does.
        files: (path, operation, content) of each file that it touches.
    """

    tool: str
    arguments: dict[str, Any]
    result: Any = None
    error: str | None = None
    seconds: float = 0.4
    agent: str | None = None
    question: str | None = None
    skill: str | None = None
    files: tuple[tuple[str, FileOperation, str | None], ...] = ()


@dataclass(kw_only=True)
class Script:
    """One run as a list of calls and an ending.

    Attributes:
        task: The thing attempted, with its suite: `refund/1842`.
        answer: The last text to the user; None if the run never came to it.
        ended: How the run ended, in the harness's word; `error` is its error state.
        agent: The agent that makes the calls added next.
    """

    task: str
    prompt: str
    agent: str
    calls: list[Call] = field(default_factory=list)
    answer: str | None = None
    ended: str = "completed"
    ended_normally: bool = True
    error: str | None = None

    def call(
        self,
        tool: str,
        arguments: dict[str, Any],
        result: Any = None,
        *,
        error: str | None = None,
        seconds: float = 0.4,
        files: tuple[tuple[str, FileOperation, str | None], ...] = (),
    ) -> None:
        """Add a call by the current agent; with `error` it fails."""
        self.calls.append(
            Call(
                tool=tool,
                arguments=arguments,
                result=result,
                error=error,
                seconds=seconds,
                agent=self.agent,
                files=files,
            )
        )

    def load_skill(self, name: str) -> None:
        """Add a successful load of a skill."""
        self.calls.append(
            Call(
                tool="load_skill",
                arguments={"name": name},
                result=f"Skill {name} loaded.",
                seconds=0.15,
                agent=self.agent,
                skill=name,
            )
        )

    def read(self, contents: dict[str, str]) -> None:
        """Add one `read_files` call; `contents` maps each path to what the file holds."""
        self.call(
            "read_files",
            {"paths": list(contents)},
            {"files": [{"path": path, "content": text} for path, text in contents.items()]},
            seconds=0.25,
            files=tuple((path, "read", None) for path in contents),
        )

    def write(self, path: str, content: str, operation: FileOperation = "create") -> None:
        """Add a successful `write_file` call."""
        self.call(
            "write_file",
            {"path": path, "content": content},
            {"path": path, "bytes": len(content.encode())},
            seconds=0.3,
            files=((path, operation, content),),
        )

    def ask(self, tool: str, question: str, reply: str, **arguments: Any) -> None:
        """Add a call that puts a question to the user and returns the user's reply."""
        self.calls.append(
            Call(
                tool=tool,
                arguments={"question": question, **arguments},
                result={"reply": reply},
                seconds=6.0,  # people take longer than tools
                agent=self.agent,
                question=question,
            )
        )

    def stop_before(self, tool: str, *, ended: str, error: str) -> None:
        """End the run abnormally before its first call of `tool`, without an answer."""
        names = [call.tool for call in self.calls]
        del self.calls[names.index(tool) :]
        self.answer = None
        self.ended = ended
        self.ended_normally = False
        self.error = error
