"""Faults: changes of a clean trace of which each breaks one rule of its fixture.

Belongs here: what is wrong with agents' traces, one kind each. Does not belong here: deciding
whether a trace is wrong (`oracle`).

Some changes cannot break one rule alone: a forbidden tool in an exact path is also a step too
many. What may fail besides is listed with the fault.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

from tests.golden.plans import Json, Plan, Run, aside, call, duration

RULES: dict[str, str] = {
    "path": "one of the allowed paths was taken",
    "arguments": "calls had the arguments they must have, and occurred as often as they must",
    "forbidden": "no forbidden tool was called",
    "question": "a question came before the first write",
    "final": "the final payload fits its schema, and what must and must not be said was heeded",
    "before": "what must come first did",
    "extra": "nothing beside the listed calls, or no more than allowed",
    "writes": "no write beside the listed calls",
    "budget": "calls, retries, tokens and time stayed within limits",
    "ended": "the agent did not raise",
    "health": "no call failed",
}
"""Word for a rule → what it demands."""


# Each takes a run that is its own and changes it, or returns None if it has no place there.


@dataclass(frozen=True)
class Fault:
    """What a fault came to: the rule it breaks, what may fail besides, and what was done."""

    rule: str
    truth: str
    besides: frozenset[str] = frozenset()


Break = Callable[[Random, Plan, Run], Fault | None]

FREE_EXTRAS = frozenset({"in_order", "any_order", "superset"})
"""Orders that let other calls happen between the steps of a path."""


def order_of(plan: Plan, run: Run) -> str | None:
    return run.order or plan.order


def fault(rule: str, truth: str, *besides: str) -> Fault:
    return Fault(rule, truth, frozenset(besides))


def at(index: int, name: str) -> str:
    return f"{name} (call {index + 1})"


def demanded(plan: Plan) -> str:
    """The rule that misses a call that must be there."""
    return "path" if plan.order is not None else "arguments"


def writing(plan: Plan, run: Run) -> list[int]:
    """Indices of the path's writing calls."""
    return [i for i, name in enumerate(run.names) if name in plan.write_names]


def after_question(rng: Random, plan: Plan, run: Run) -> int:
    """A place where a write does not come before the question, if there is one."""
    return rng.randint(run.asked_at() if plan.asks else 0, len(run.tools))


def one_more(plan: Plan, run: Run, *, write: bool) -> str | None:
    """The rule that minds one call more than the path has; None if none does."""
    if order_of(plan, run) in ("exact", "unordered", "subset"):
        return "path"
    if plan.extra == "forbid":
        return "extra"
    if plan.extra == "reads_only" and write:
        return "writes"
    free = sum(role == "free" for role in run.roles)
    if plan.max_extra is not None and free >= plan.max_extra:
        return "extra"
    if plan.limits and len(run.tools) >= plan.limits["max_tool_calls"]:
        return "budget"
    return None


def steps(run: Run) -> list[int]:
    return [i for i, role in enumerate(run.roles) if role == "step"]


def dropped_call(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not steps(run):
        return None
    index = rng.choice(steps(run))
    gone = run.remove(index)["name"]
    return fault(demanded(plan), f"{at(index, gone)} was left out", "arguments", "before")


def swapped_order(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if order_of(plan, run) not in ("exact", "in_order"):
        return None
    found = steps(run)
    pairs = []
    for first, second in pairwise(found):
        swapped = run.names
        swapped[first], swapped[second] = swapped[second], swapped[first]
        kept = tuple(swapped[i] for i in found)
        if run.names[first] != run.names[second] and kept not in plan.legal:
            pairs.append((first, second))
    if not pairs:
        return None
    first, second = rng.choice(pairs)
    run.tools[first], run.tools[second] = run.tools[second], run.tools[first]
    if run.names[first] in plan.write_names:
        # A write that moves forward takes the question that it waited for along.
        for question in run.trace.get("questions", ()):
            if first < question["before_tool"] <= second:
                question["before_tool"] = first
    return fault("path", f"{run.names[first]} came before {run.names[second]}")


def wrong_tool(rng: Random, plan: Plan, run: Run) -> Fault | None:
    places = steps(run) if order_of(plan, run) != "subset" else list(range(len(run.tools)))
    if not places:
        return None
    index = rng.choice(places)
    old = run.tools[index]["name"]
    new = old + rng.choice(["s", "_v2"])
    run.tools[index]["name"] = new
    return fault(
        demanded(plan),
        f"{at(index, new)} was called instead of {old}",
        *("arguments", "before", "extra", "writes"),
    )


def repeated_step(rng: Random, plan: Plan, run: Run) -> Fault | None:
    reads = [i for i in steps(run) if i not in writing(plan, run)]
    rule = "path" if order_of(plan, run) in ("exact", "unordered") else None
    if not reads or rule is None or plan.limits:
        return None
    index = rng.choice(reads)
    name = run.names[index]
    run.insert(index + 1, copy.deepcopy(run.tools[index]))
    return fault(rule, f"{at(index, name)} was done twice")


def duplicated_write(rng: Random, plan: Plan, run: Run) -> Fault | None:
    places = writing(plan, run)
    if not places:
        return None
    index = rng.choice(places)
    name = run.names[index]
    if name in plan.single:
        rule: str | None = "arguments"
    elif "max_retries" in plan.limits:
        rule = "budget"
    else:
        rule = one_more(plan, run, write=True)
    if rule is None:
        return None
    run.insert(index + 1, copy.deepcopy(run.tools[index]))
    return fault(rule, f"{at(index, name)} was done twice")


def inserted_read(rng: Random, plan: Plan, run: Run) -> Fault | None:
    rule = one_more(plan, run, write=False)
    if rule not in ("path", "extra") or plan.max_extra is not None:
        return None
    index = rng.randint(0, len(run.tools))
    run.insert(index, aside(plan.domain, rng))
    return fault(rule, f"{at(index, run.names[index])} is one read too many")


def inserted_write(rng: Random, plan: Plan, run: Run) -> Fault | None:
    rule = one_more(plan, run, write=True)
    if rule not in ("path", "extra", "writes") or plan.max_extra is not None:
        return None
    index = after_question(rng, plan, run)
    run.insert(index, call(plan.domain.unlisted, rng))
    return fault(rule, f"{at(index, run.names[index])} is a write that nobody asked for")


def inserted_forbidden(rng: Random, plan: Plan, run: Run) -> Fault | None:
    index = after_question(rng, plan, run)
    run.insert(index, call(rng.choice(plan.domain.forbidden), rng))
    return fault(
        "forbidden",
        f"{at(index, run.names[index])} is forbidden",
        *("path", "extra", "writes", "budget"),
    )


def failed_forbidden(rng: Random, plan: Plan, run: Run) -> Fault | None:
    index = after_question(rng, plan, run)
    made = call(rng.choice(plan.domain.forbidden), rng)
    del made["result"]
    run.insert(index, made | {"error": "denied"})
    return fault(
        "forbidden",
        f"{at(index, made['name'])} is forbidden, and it is no matter that it failed",
        *("path", "extra", "writes", "budget", "health"),
    )


def ended_early(rng: Random, plan: Plan, run: Run) -> Fault | None:
    found = steps(run)
    if not found:
        return None
    keep = rng.choice(found)
    while len(run.tools) > keep:
        run.remove(len(run.tools) - 1)
    run.trace["final"] = None
    return fault(demanded(plan), f"the run ended after {keep} calls", "arguments", "final")


def errored_call(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not steps(run):
        return None
    index = rng.choice(steps(run))
    broken = run.tools[index]
    broken.pop("result", None)
    broken["error"] = "503 service unavailable"
    return fault(
        demanded(plan),
        f"{at(index, broken['name'])} failed and was not tried again",
        *("health", "arguments", "before"),
    )


def retried_write(rng: Random, plan: Plan, run: Run) -> Fault | None:
    places = writing(plan, run)
    if order_of(plan, run) != "exact" or not places:
        return None
    index = rng.choice(places)
    failed = copy.deepcopy(run.tools[index])
    failed.pop("result", None)
    run.insert(index, failed | {"error": "timed out"})
    return fault("path", f"{at(index, failed['name'])} failed and was tried again", "health")


def called_too_early(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.before:
        return None
    first, second = rng.choice(plan.before)
    target = run.of(first)[0]
    moved = run.remove(run.of(second)[0])
    run.insert(min(target, len(run.tools)), moved, "step")
    return fault("before", f"{second} was called before {first}")


def occurrence(position: str) -> Callable[[Sequence[int]], int | None]:
    """Picks the first, a middle or the last of at least two or three calls, or the only one."""

    def chosen(places: Sequence[int]) -> int | None:
        if position == "only":
            return places[0] if len(places) == 1 else None
        if position == "middle":
            return places[len(places) // 2] if len(places) >= 3 else None
        return None if len(places) < 2 else places[0] if position == "first" else places[-1]

    return chosen


def missing_argument(position: str) -> Break:
    def missing(rng: Random, plan: Plan, run: Run) -> Fault | None:
        places = [
            (index, tool, key)
            for tool, keys in sorted(plan.keys.items())
            if (index := occurrence(position)(run.of(tool))) is not None
            for key in keys
        ]
        if not places:
            return None
        index, tool, key = rng.choice(places)
        del run.tools[index]["arguments"][key]
        return fault("arguments", f"{at(index, tool)} has no {key}", "extra", "writes")

    return missing


def wrong_value(position: str) -> Break:
    def wrong(rng: Random, plan: Plan, run: Run) -> Fault | None:
        return changed_value(rng, plan, run, position, another_value, "another value")

    return wrong


def wrong_type(rng: Random, plan: Plan, run: Run) -> Fault | None:
    position = rng.choice(["only", "first", "middle", "last"])
    return changed_value(rng, plan, run, position, another_type, "a value of another type")


def changed_value(
    rng: Random, plan: Plan, run: Run, position: str, change: Callable[[Any], Any], words: str
) -> Fault | None:
    places = [
        (index, tool, key)
        for tool, keys in sorted(plan.pinned.items())
        if (index := occurrence(position)(run.of(tool))) is not None
        for key in keys
    ]
    if not places:
        return None
    index, tool, key = rng.choice(places)
    given = run.tools[index]["arguments"]
    given[key] = change(given[key])
    return fault("arguments", f"{at(index, tool)} has {words} for {key}", "extra", "writes")


def another_value(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1000
    return [*value, "more"] if isinstance(value, list) else f"other {value}"


def another_type(value: Any) -> Any:
    """`5` as `"5"`, `true` as `1`, `"a"` as `["a"]`: what looks alike and is not."""
    if isinstance(value, bool):
        return int(value)
    return json.dumps(value) if isinstance(value, int | float) else [value]


def extra_argument(rng: Random, plan: Plan, run: Run) -> Fault | None:
    places = [i for tool in sorted(plan.exact_args) for i in run.of(tool)]
    if not places:
        return None
    index = rng.choice(places)
    run.tools[index]["arguments"]["force"] = True
    return fault(
        "arguments", f"{at(index, run.names[index])} has the argument force", "extra", "writes"
    )


def no_question(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.asks:
        return None
    run.trace["asked_clarification"] = False
    if "questions" in run.trace:
        run.trace["questions"] = []
    return fault("question", "nothing was asked")


def question_after_write(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.asks or "questions" not in run.trace:
        return None
    run.trace["questions"][0]["before_tool"] = len(run.tools)
    return fault("question", "the question came after everything was done")


def question_between_writes(rng: Random, plan: Plan, run: Run) -> Fault | None:
    places = writing(plan, run)
    if not plan.asks or "questions" not in run.trace or len(places) < 2:
        return None
    run.trace["questions"][0]["before_tool"] = places[1]
    return fault("question", f"the question came after {at(places[0], run.names[places[0]])}")


def too_many_extra_calls(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if plan.max_extra is None:
        return None
    # A further call of a tool that the path names is as much one too many as any other.
    own = [run.tools[i] for i in steps(run) if i not in writing(plan, run)]
    again = rng.random() < 0.5
    while sum(role == "free" for role in run.roles) <= plan.max_extra:
        more = copy.deepcopy(rng.choice(own)) if again else aside(plan.domain, rng)
        run.insert(rng.randint(0, len(run.tools)), more)
    return fault("extra", f"{plan.max_extra + 1} further calls where {plan.max_extra} may be")


def too_many_calls(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.limits:
        return None
    while len(run.tools) <= plan.limits["max_tool_calls"]:
        run.insert(rng.randint(0, len(run.tools)), aside(plan.domain, rng))
    return fault("budget", f"{len(run.tools)} calls")


def repeated_call(rng: Random, plan: Plan, run: Run) -> Fault | None:
    """The same call again, in the place of a spare one, so that only its being alike is wrong."""
    if not plan.limits or len(run.tools) >= plan.limits["max_tool_calls"]:
        return None
    index = rng.randrange(len(run.tools))
    run.insert(index + 1, copy.deepcopy(run.tools[index]))
    return fault("budget", f"{at(index, run.names[index])} was repeated")


def too_many_tokens(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.limits:
        return None
    run.trace["tokens"] = {"input": int(plan.limits["max_tokens"]), "output": 1}
    return fault("budget", "one token too many")


def too_slow(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.limits:
        return None
    run.trace |= duration(int(plan.limits["max_duration_s"]) + 1)
    return fault("budget", "one second too long")


def agent_raised(rng: Random, plan: Plan, run: Run) -> Fault | None:
    run.trace["error"] = rng.choice(["TimeoutError: no answer in 30 s", "exited with status 1"])
    return fault("ended", "all was done, and then the agent raised")


def final_missing_field(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.has_schema:
        return None
    gone = rng.choice([*plan.expect["final_schema"]["required"]])
    del run.trace["final"][gone]
    return fault("final", f"the payload has no {gone}")


def final_wrong_enum(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.has_schema:
        return None
    run.trace["final"]["status"] = rng.choice(["HACKED", plan.domain.status[0].upper(), ""])
    return fault("final", "the payload's status is none of those allowed")


def final_wrong_type(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.has_schema:
        return None
    run.trace["final"][plan.domain.reference] = rng.choice([5, False, ["x"], {}])
    return fault("final", f"the payload's {plan.domain.reference} is neither text nor null")


def final_null(rng: Random, plan: Plan, run: Run) -> Fault | None:
    run.trace["final"] = None
    return fault("final", "there is no payload")


def final_null_field(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.has_schema:
        return None
    run.trace["final"]["status"] = None
    return fault("final", "the payload's status is null")


def final_extra_field(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if not plan.closed:
        return None
    run.trace["final"]["debug"] = "x"
    return fault("final", "the payload has the field debug")


def final_wrong_part(rng: Random, plan: Plan, run: Run) -> Fault | None:
    """Something deep inside is wrong: in a list's item, or beyond a bound."""
    if not plan.closed:
        return None
    final = run.trace["final"]
    change = rng.choice(["item", "bound", "empty", "type", "field"])
    if change == "item":
        del final["lines"][-1]["cents"]
    elif change == "type":
        final["lines"][0]["cents"] = "7"
    elif change == "field":
        final["lines"][0]["note"] = "x"
    elif change == "bound":
        final["count"] = 10
    else:
        final["lines"] = []
    return fault("final", f"a part of the payload is wrong: {change}")


def unwanted_words(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if plan.unwanted is None:
        return None
    words, scope = plan.unwanted
    if scope == "conversation" and rng.random() < 0.5:
        run.trace["questions"][0]["text"] += f" {words} it will work."
        return fault("final", f"'{words}' was said in a question")
    run.trace["final"]["message"] += f" {words.upper()} it."
    return fault("final", f"'{words}' was said in the answer")


def missing_words(rng: Random, plan: Plan, run: Run) -> Fault | None:
    if plan.wanted is None:
        return None
    run.trace["final"]["message"] = "Done."
    return fault("final", f"'{plan.wanted}' was not said")


FAULTS: dict[str, Break] = {
    "dropped call": dropped_call,
    "swapped order": swapped_order,
    "wrong tool": wrong_tool,
    "repeated step": repeated_step,
    "duplicated write": duplicated_write,
    "inserted read": inserted_read,
    "inserted write": inserted_write,
    "inserted forbidden tool": inserted_forbidden,
    "forbidden tool that failed": failed_forbidden,
    "ended early": ended_early,
    "errored call": errored_call,
    "retried write": retried_write,
    "call before its prerequisite": called_too_early,
    "missing argument of the only call": missing_argument("only"),
    "missing argument of the first call": missing_argument("first"),
    "missing argument of a middle call": missing_argument("middle"),
    "missing argument of the last call": missing_argument("last"),
    "wrong value in the only call": wrong_value("only"),
    "wrong value in the first call": wrong_value("first"),
    "wrong value in a middle call": wrong_value("middle"),
    "wrong value in the last call": wrong_value("last"),
    "wrong type of a value": wrong_type,
    "extra argument": extra_argument,
    "no question": no_question,
    "question after the write": question_after_write,
    "question between writes": question_between_writes,
    "too many extra calls": too_many_extra_calls,
    "too many calls": too_many_calls,
    "repeated call": repeated_call,
    "too many tokens": too_many_tokens,
    "too slow": too_slow,
    "agent raised": agent_raised,
    "payload without a field": final_missing_field,
    "payload with a wrong enum": final_wrong_enum,
    "payload with a wrong type": final_wrong_type,
    "no payload": final_null,
    "payload with null": final_null_field,
    "payload with an extra field": final_extra_field,
    "payload with a wrong part": final_wrong_part,
    "unwanted words": unwanted_words,
    "missing words": missing_words,
}
"""Kind of fault → what puts it into a run."""


def mutations(plan: Plan, run: Run, seed: int = 1) -> Iterator[tuple[str, Fault, Json]]:
    """Every fault that has a place in a run, each alone: kind, what it is, and the trace."""
    for kind, make in FAULTS.items():
        tried = copy.deepcopy(run)
        found = make(Random(seed), plan, tried)
        if found is not None:
            yield kind, found, tried.trace
