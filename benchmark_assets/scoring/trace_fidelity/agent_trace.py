"""The rules for a single agent: six ways in which its report can diverge from its model calls.

Belongs here: the six classes, their weights and penalties. Does not belong here: workflows
(`specified`, `strict`).

A class scores `1 - min(penalty × count, 1)`; the whole is 1 less the weighted sum of what the
classes lost. PASS from 0.99, WARN from 0.80, else FAIL; PENDING without a model call.

| class | counts | penalty | weight |
|---|---|---|---|
| missing_tool_calls | tools that the model called and the agent reports no call of | 0.50 | 0.20 |
| phantom_tool_calls | tools that the agent reports and the model never called | 0.50 | 0.20 |
| hidden_retries | calls of a tool on both sides beyond those that the agent reports | 0.50 | 0.20 |
| argument_drift | tools on both sides whose sets of arguments differ as texts | 0.25 | 0.15 |
| suppressed_finish_reason | `content_filter` and `length` beyond those reported | 1.00 | 0.15 |
| token_under_reporting | 1 if the total falls short by more than 2 % | 0.10 | 0.10 |

So one hidden retry is 0.90, one suppressed content filter 0.85, and hiding all tokens 0.99, a
pass: the weights are the specification's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from benchmark_assets.model.fidelity import AgentFidelity, AgentRecord, DivergenceClass, Reply
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.trace_fidelity.grouping import (
    REPORTED_PERCENT,
    add,
    exceeds,
    finish,
    percent,
    tokens,
    total_tokens,
)
from benchmark_assets.scoring.trace_fidelity.specified import score_outcome

NAME = "specified"

SUPPRESSIBLE = ("content_filter", "length")


class Rule(NamedTuple):
    """A class; penalty and weight in percent, so that scores are exact."""

    name: str
    severity: str
    penalty: int
    weight: int


RULES: tuple[Rule, ...] = (
    Rule("missing_tool_calls", "high", 50, 20),
    Rule("phantom_tool_calls", "high", 50, 20),
    Rule("hidden_retries", "high", 50, 20),
    Rule("argument_drift", "medium", 25, 15),
    Rule("suppressed_finish_reason", "critical", 100, 15),
    Rule("token_under_reporting", "low", 10, 10),
)


class _Found(NamedTuple):
    hits: int
    expected: str
    observed: str
    reason: str


def reconcile(agent: AgentRecord, chat: AgentRecord) -> AgentFidelity:
    """Compare what an agent reported with its model calls.

    Args:
        agent: The agent's own trace.
        chat: The turns at the boundary to the model, and nothing else.
    """
    agent_tokens, chat_tokens = _agent_tokens(agent), _sum_tokens(chat.replies)
    if not chat.replies:
        return AgentFidelity(
            rules=NAME,
            outcome="PENDING",
            score=None,
            agent_tokens=agent_tokens,
            chat_tokens=None,
            chat_turns=0,
            reason="the chat trace holds no response of a model, so nothing was compared",
        )
    found = (
        *_tools(agent.replies, chat.replies),
        _suppressed(agent.replies, chat.replies),
        _under_reported(agent_tokens, chat_tokens),
    )
    classes = tuple(_class(rule, item) for rule, item in zip(RULES, found, strict=True))
    lost = sum(
        rule.weight * min(rule.penalty * item.hits, 100)
        for rule, item in zip(RULES, found, strict=True)
    )
    score = (10_000 - lost) / 10_000
    outcome = score_outcome(score)
    wrong = [f"{item.name} × {item.count}" for item in classes if item.count]
    return AgentFidelity(
        rules=NAME,
        outcome=outcome,
        score=score,
        agent_tokens=agent_tokens,
        chat_tokens=chat_tokens,
        chat_turns=len(chat.replies),
        classes=classes,
        reason=None if outcome == "PASS" else ", ".join(wrong),
    )


def _class(rule: Rule, found: _Found) -> DivergenceClass:
    return DivergenceClass(
        name=rule.name,
        severity=rule.severity,
        count=found.hits,
        score=(100 - min(rule.penalty * found.hits, 100)) / 100,
        weight=rule.weight / 100,
        check=Check(
            name=rule.name,
            outcome="failed" if found.hits else "passed",
            expected=found.expected,
            observed=found.observed,
            reason=found.reason if found.hits else None,
        ),
    )


def _tools(agent: Iterable[Reply], chat: Iterable[Reply]) -> Iterator[_Found]:
    """Missing and phantom calls, hidden retries, drift of arguments: in the order of `RULES`."""
    reported, made = _uses(agent), _uses(chat)
    shared = [name for name in made if name in reported]
    missing = [name for name in made if name not in reported]
    phantom = [name for name in reported if name not in made]
    expected, observed = f"called: {_counted(made)}", f"reported: {_counted(reported)}"
    yield _Found(len(missing), expected, observed, f"not reported: {_names(missing)}")
    yield _Found(len(phantom), expected, observed, f"never called: {_names(phantom)}")
    retried = {name: len(made[name]) - len(reported[name]) for name in shared}
    hidden = {name: count for name, count in retried.items() if count > 0}
    yield _Found(
        sum(hidden.values()),
        expected,
        observed,
        "called more often than reported: "
        + ", ".join(f"'{name}' by {count}" for name, count in hidden.items()),
    )
    drifted = [name for name in shared if set(made[name]) != set(reported[name])]
    yield _Found(
        len(drifted),
        "the same arguments on both sides, as texts",
        _arguments(drifted[0], made, reported) if drifted else "the same",
        f"other arguments reported than the model gave: {_names(drifted)}",
    )


def _uses(replies: Iterable[Reply]) -> dict[str, list[str | None]]:
    """Tool → the arguments of each of its calls."""
    found: dict[str, list[str | None]] = {}
    for reply in replies:
        for tool in reply.tools:
            found.setdefault(tool.name, []).append(tool.arguments)
    return found


def _arguments(
    name: str, made: dict[str, list[str | None]], reported: dict[str, list[str | None]]
) -> str:
    """An argument that is on one side only."""
    given = [text for text in made[name] if text not in reported[name]]
    told = [text for text in reported[name] if text not in made[name]]
    first = given[0] if given else "nothing else"
    second = told[0] if told else "nothing else"
    return f"'{name}': given {first}, reported {second}"


def _suppressed(agent: Iterable[Reply], chat: Iterable[Reply]) -> _Found:
    reported, made = _reasons(agent), _reasons(chat)
    hidden = {
        reason: made[reason] - reported[reason]
        for reason in SUPPRESSIBLE
        if made[reason] > reported[reason]
    }
    return _Found(
        sum(hidden.values()),
        "turns that were cut: " + (_reason_counts(made) or "none"),
        "reported: " + (_reason_counts(reported) or "none"),
        ", ".join(f"{finish(reason)} not reported × {count}" for reason, count in hidden.items()),
    )


def _reasons(replies: Iterable[Reply]) -> Counter[str]:
    return Counter(reply.finish_reason.lower() for reply in replies if reply.finish_reason)


def _reason_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{reason} × {counts[reason]}" for reason in SUPPRESSIBLE if counts[reason])


def _agent_tokens(agent: AgentRecord) -> int | None:
    return agent.tokens if agent.tokens is not None else _sum_tokens(agent.replies)


def _sum_tokens(replies: Iterable[Reply]) -> int | None:
    return add(total_tokens(reply.usage) for reply in replies)


def _under_reported(agent_tokens: int | None, chat_tokens: int | None) -> _Found:
    reported, used = agent_tokens or 0, chat_tokens or 0
    short = used - reported
    return _Found(
        int(exceeds(short, used)),
        f"{tokens(chat_tokens)} used; at most {REPORTED_PERCENT} % less",
        f"{tokens(agent_tokens)} reported",
        f"{short:,} of {used:,} tokens not reported ({percent(short, used)})",
    )


def _counted(uses: dict[str, list[str | None]], most: int = 6) -> str:
    words = [f"'{name}' × {len(calls)}" for name, calls in uses.items()]
    more = [f"{len(words) - most} more"] if len(words) > most else []
    return ", ".join([*words[:most], *more]) or "none"


def _names(names: list[str], most: int = 6) -> str:
    more = [f"{len(names) - most} more"] if len(names) > most else []
    return ", ".join([*(f"'{name}'" for name in names[:most]), *more])
