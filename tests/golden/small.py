"""Small fixtures and traces drawn at random, with no thought of what they mean.

Belongs here: drawing. The corpus shows what people do; these show what nobody thinks of: repeated
optional steps in any order, a path that begins another, a question between failed calls. Does not
belong here: judging.
"""

from __future__ import annotations

from random import Random
from typing import Any

Json = dict[str, Any]

TOOLS = ("get_a", "get_b", "set_c", "set_d")
ORDERS = ("exact", "in_order", "any_order", "unordered", "subset", "superset")


def step(rng: Random) -> Any:
    name = rng.choice(TOOLS[:3])
    if rng.random() < 0.6:
        return name
    flags = rng.choice([["optional"], ["repeat"], ["optional", "repeat"]])
    return {"tool": name, **dict.fromkeys(flags, True)}


def path(rng: Random) -> list[Any]:
    return [step(rng) for _ in range(rng.randint(0, 3))]


def rule(rng: Random, tool: str) -> Json:
    made: Json = {"tool": tool, "args_mode": rng.choice(["subset", "exact", "keys", "ignore"])}
    made["args"] = rng.choice([{}, {"n": 1}, {"n": {"any": True}}])
    made["min"] = rng.randint(0, 2)
    if made["min"] == 0 or rng.random() < 0.5:
        made["max"] = made["min"] + rng.randint(0, 2)
    return made | ({"occurrences": "each"} if rng.random() < 0.3 else {})


def small_fixture(rng: Random) -> Json:
    """A fixture of one rule or several; always with a demand."""
    expect: Json = {}
    if rng.random() < 0.8:
        expect["allowed_paths"] = [
            path(rng) if rng.random() < 0.7 else {"path": path(rng), "order": rng.choice(ORDERS)}
            for _ in range(rng.randint(1, 2))
        ]
        expect["order"] = rng.choice(ORDERS)
        if rng.random() < 0.3:
            expect["max_extra_calls"] = rng.randint(0, 2)
    if rng.random() < 0.4:
        expect["calls"] = [rule(rng, tool) for tool in rng.sample(TOOLS, rng.randint(1, 2))]
    if rng.random() < 0.3:
        expect["required_arg_keys"] = {rng.choice(TOOLS): ["n"]}
    if expect and rng.random() < 0.3:
        expect["extra"] = rng.choice(["forbid", "reads_only"])
        expect["writes"] = ["set_*"]
    if rng.random() < 0.3:
        first, second = rng.sample(TOOLS, 2)
        expect["before"] = [[first, second]]
    if rng.random() < 0.4:
        expect["must_ask_before_write"] = True
        if rng.random() < 0.4 and "writes" not in expect:
            expect["write_tools"] = rng.choice([["set_*"], ["get_a"], ["set_d", "get_?"]])
    if rng.random() < 0.3 or not expect:
        expect["forbidden_tools"] = [rng.choice(["get_b", "set_d", "set_*"])]
    if rng.random() < 0.3:
        expect["value_hashes"] = {rng.choice(TOOLS): {"n": HASH_1}}
    return {"id": "small", "input": {"user": "x"}, "expect": expect}


HASH_1 = "6b86b273ff34fce1"
"""First 16 hex digits of SHA-256 over the text `1`."""


def small_trace(rng: Random) -> Json:
    calls: list[Json] = []
    for _ in range(rng.randint(1, 5)):
        call: Json = {"name": rng.choice(TOOLS), "arguments": {"n": rng.choice([1, 1, 1, 2])}}
        if rng.random() < 0.05:
            call["arguments"] = {}
        calls.append(call | ({"error": "x"} if rng.random() < 0.12 else {"result": 1}))
    trace: Json = {"tools": calls, "final": {"status": "ok"}}
    asked = rng.random()
    if asked < 0.2:
        return {**trace, "asked_clarification": rng.random() < 0.5}
    places = [rng.randint(0, len(calls)) for _ in range(rng.randint(0, 2))]
    questions = [{"text": "?", "before_tool": n} for n in sorted(places)]
    return {**trace, "asked_clarification": bool(questions), "questions": questions}
