"""The page of scenarios: both sides of every recorded run, and what each rule set says of them.

`python -m tests.docs.scenarios` writes `docs/fidelity-scenarios.md` from the files that are kept
beside the repository (`tests.real_data`). All but the notes is computed; a note is for people, on
what a table alone does not say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path

from benchmark_assets.adapters.fidelity_files import (
    read_agent_trace,
    read_chat_trace,
    read_workflow_trace,
)
from benchmark_assets.adapters.formats.base import TraceFile
from benchmark_assets.model.fidelity import (
    LedgerEntry,
    ModelTurn,
    WorkflowFidelity,
    WorkflowRecord,
)
from benchmark_assets.scoring.trace_fidelity import agent_trace, rule_set
from benchmark_assets.scoring.trace_fidelity.grouping import by_executor, same_name
from tests.adapters.maf_recorded import records
from tests.docs.consoles import ROOT
from tests.real_data import REAL

PAGE = ROOT / "docs" / "fidelity-scenarios.md"
RULES = ("specified", "strict")

HEAD = """\
# Fidelity, scenario by scenario

What [the two rule sets](fidelity.md) say of workflow trace files of AgentEval, and of 47 runs of
Microsoft Agent Framework workflows that were recorded with scripted models. Each line of a row is
an executor:

* *ledger*: tokens and finish reasons as the framework reports them; `silent` if there are entries
  and they say nothing, `–` if there is none;
* *truth*: the same of the model calls made for it; `–` if none is recorded;
* `?` is a count that nobody reported, which is not 0.

The last line of a verdict is the outcome, with the score. Executors that neither reported nor
called anything are left out.

How a recording becomes the two sides: the ledger is what an executor's completion event carries,
an entry each time, also one that says nothing, and an executor that failed has an entry with its
failure. What handoffs stream is put together first. Calls inside a nested workflow are the outer
executor's, whose ledger is all that is reported of them.
"""

FILES_HEAD = """\
## Workflow trace files

Their model calls count all tokens as input, so totals are all that can be compared.
"""

SECTIONS = {
    "exp": """\
## Recorded runs: kinds of workflows

Each was run once in one piece (`_once`) and once streamed (`_stream`).
""",
    "exp2": "## Recorded runs: retries, tools, nesting, crashes\n",
    "exp3": "## Recorded runs: crashes and clients without layers\n",
}

NOTES: Mapping[tuple[str, ...], str] = {
    (
        "wf_sample_real_vs_framework.trace.json",
    ): "`writer` says nothing of a content filter. To the "
    "specified rules that is a finish reason like any other; to the strict ones an answer that was "
    "cut reads as a whole one.",
    ("wf_warn_six_executors.trace.json",): "One executor hides tokens. By the mean of six that is "
    "a warning; by the strict rules one wrong ledger is one too many.",
    ("exp/concurrent_once", "exp/concurrent_stream"): "The aggregator calls no model. The "
    "specified rules cannot tell that from a call that was not recorded, and withhold the pass.",
    ("exp/groupchat_once", "exp/groupchat_stream"): "The orchestrator's agent reports nothing of "
    "its three calls. The specified rules see it only because the orchestrator has a step.",
    ("exp/magentic_once", "exp/magentic_stream"): "The manager made five calls, nine tenths of all "
    "tokens, and they are in no event.",
    (
        "exp/liar_stream",
    ): "The middleware rewrites whole answers only; streamed, it changes nothing.",
    ("exp/private_executor_once", "exp/private_executor_stream"): "The executor `private` has an "
    "agent of its own and passes on a text without usage. It is in no step, so the specified rules "
    "never look at most of the run's tokens and give a perfect score.",
    (
        "exp/hidden_midturn_filter_once",
        "exp/hidden_midturn_filter_stream",
    ): "A content filter cut an answer in the middle of a tool loop. The last answer ended with "
    "`stop`, the tokens agree, and by the specified rules all is well.",
    ("exp/stream_no_usage",): "The client of `a` streams no usage. Nothing on both sides reads as "
    "agreement by the specified rules; 280 tokens were used.",
    ("exp/no_usage_at_all",): "The same with no other executor: a perfect score of a run in which "
    "nothing was measured.",
    ("exp/crash_second", "exp2/crash_second_once", "exp3/crash_second_real_once"): "A run that "
    "raises gives out no event unless it is streamed, so there is no ledger to judge.",
    ("exp2/hidden_retry_chat_middleware_once",): "Middleware asked again after a filtered answer. "
    "Both rule sets see the tokens that are missing; that an answer was filtered, only the strict.",
    ("exp2/hidden_retry_chat_middleware_stream",): "Streamed, this middleware does not ask again.",
    ("exp2/agent_as_tool_once", "exp2/agent_as_tool_stream"): "An agent that is another's tool is "
    "in no ledger: its 440 tokens are missing, and that its answer was cut by length.",
    ("exp2/sub_workflow_once", "exp2/sub_workflow_stream"): "A nested workflow reports its last "
    "answer alone: what its first executor used is missing.",
    ("exp2/crash_second_stream",): "The call of `b` gave neither usage nor finish reason, and "
    "nothing on both sides is agreement by the specified rules.",
    ("exp2/concurrent_once", "exp2/concurrent_stream"): "As above: the aggregator calls no model.",
    ("exp3/crash_second_real_stream",): "`b` broke off and its call is in no record. Either way "
    "the pass is withheld; the strict rules say that it failed.",
    ("exp3/stripping_middleware_once",): "Middleware took usage and finish reason out of the "
    "answer. By the specified rules missing usage is 0 tokens, so both diverge; in fact nothing "
    "was reported.",
    ("exp3/naked_client_no_middleware_layer_once",): "The client runs no middleware, so its calls "
    "cannot be seen; that the ledger reports more than nothing is no over-report.",
}
"""Scenarios → what shows in them."""


def workflow_files() -> dict[str, WorkflowRecord]:
    """The record of each workflow trace file, by the file's name."""
    found = {}
    for path in sorted((REAL / "agenteval-workflow").glob("wf_*.json")):
        found[path.name] = read_workflow_trace(TraceFile(path.name, path.name, path.read_bytes()))
    return found


def scenarios() -> dict[str, WorkflowRecord]:
    """Every scenario: the files by their names, the runs as `exp/NAME`."""
    return {**workflow_files(), **records()}


def results(record: WorkflowRecord) -> tuple[WorkflowFidelity, ...]:
    """What each rule set says, in the order of `RULES`."""
    return tuple(rule_set(name).reconcile(record) for name in RULES)


def render() -> str:
    """The whole page."""
    runs = groupby(records().items(), key=lambda item: item[0].partition("/")[0])
    parts = [HEAD, FILES_HEAD, _table(workflow_files()), _agents()]
    for section, found in runs:
        parts += [SECTIONS[section], _table(dict(found))]
    return "\n".join(parts)


def _table(found: Mapping[str, WorkflowRecord]) -> str:
    lines = [
        "| scenario | executor | ledger | truth | specified | strict |",
        "|---|---|---|---|---|---|",
        *(_row(name, record) for name, record in found.items()),
    ]
    # A note that several sections share stands in each, with the names of that one.
    notes = [
        f"* {_names(own)}: {note}"
        for names, note in NOTES.items()
        if (own := [name for name in names if name in found])
    ]
    return "\n".join([*lines, "", *notes, ""])


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name.rpartition('/')[2]}`" for name in names)


def _row(name: str, record: WorkflowRecord) -> str:
    sides = by_executor(record)
    verdicts = [_verdicts(result, sides) for result in results(record)]
    cells = [
        f"`{name.rpartition('/')[2]}`",
        "<br>".join(f"`{item.executor_id}`" for item in sides.values()),
        "<br>".join(_side(item.entries, silent="silent") for item in sides.values()),
        "<br>".join(_side(item.turns, silent="?") for item in sides.values()),
        *verdicts,
    ]
    return "| " + " | ".join(cells) + " |"


def _side(rows: Iterable[LedgerEntry | ModelTurn], *, silent: str) -> str:
    """Tokens and finish reasons of one executor on one side."""
    rows = list(rows)
    if not rows:
        return "–"
    if any(row.error is not None for row in rows):
        return "failed"
    counts = [row.usage.total for row in rows if row.usage is not None]
    known = [count for count in counts if count is not None]
    if not known and not any(row.finish_reason for row in rows):
        return silent
    total = f"{sum(known):,}" if known else "?"
    return f"{total} {', '.join(_repeated(row.finish_reason or 'none' for row in rows))}"


def _repeated(words: Iterable[str]) -> Iterator[str]:
    for word, same in groupby(words):
        count = len(list(same))
        yield word if count == 1 else f"{word} × {count}"


def _verdicts(result: WorkflowFidelity, sides: Mapping[str, object]) -> str:
    judged = {same_name(item.executor_id): item.verdict for item in result.executors}
    lines = [judged.get(name, "–") for name in sides]
    score = "" if result.score is None else f" {result.score:.2f}"
    return "<br>".join([*lines, f"**{result.outcome}**{score}"])


DOCUMENTED = "doc_example_agenttrace_1_0.json"


def _agents() -> str:
    """The single agent whose two traces are there."""
    folder = REAL / "agenteval-workflow"
    names = ("agent_hidden_retry.trace.json", "chat_hidden_retry.trace.json")
    agent, chat = (TraceFile(name, name, (folder / name).read_bytes()) for name in names)
    result = agent_trace.reconcile(read_agent_trace(agent), read_chat_trace(chat))
    wrong = [f"`{item.name}` × {item.count}" for item in result.classes if item.count]
    reported, called = (
        ", ".join(_repeated(tool["name"] for tool in _tools(folder / name))) for name in names
    )
    return "\n".join(
        [
            "## A single agent",
            "",
            "| files | tools reported | tools called | specified |",
            "|---|---|---|---|",
            f"| {_names(names)} | {reported} | {called} | {', '.join(wrong)}<br>"
            f"**{result.outcome}** {result.score:.2f} |",
            "",
            "* One call of a tool is hidden. Its weight makes that a warning, whatever else agrees.",
            f"* `{DOCUMENTED}` is an agent's own trace alone: `bench trace-fidelity` reads it as "
            f"either side, and against itself it is a {_itself()}.",
            "",
        ]
    )


def _itself() -> str:
    """What the one agent trace without a counterpart is against itself."""
    data = (REAL / "agenteval-workflow" / DOCUMENTED).read_bytes()
    file = TraceFile(DOCUMENTED, DOCUMENTED, data)
    result = agent_trace.reconcile(read_agent_trace(file), read_chat_trace(file))
    return f"**{result.outcome}**" + (f" ({result.reason})" if result.reason else "")


def _tools(path: Path) -> list[dict[str, str]]:
    entries = json.loads(path.read_text("utf-8"))["entries"]
    return [tool for entry in entries for tool in entry.get("toolCalls", ())]


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
