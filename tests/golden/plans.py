"""Fixtures of several kinds, and clean traces that use what freedom each of them grants.

Belongs here: plans, which are fixtures with what is needed to make traces for them. Does not
belong here: faults (`faults`) and what is drawn of both (`corpus`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.golden.domains import Domain, Tool

Json = dict[str, Any]

SECTIONS_NESTED = False
"""Whether the keys of `final` and `budget` stand under these names in `expect`, or beside the
others. One place to say it, for all fixtures made here."""


def section(name: str, **keys: Any) -> Json:
    """Keys of a section of a contract, as they stand in a fixture's `expect`."""
    return {name: keys} if SECTIONS_NESTED and name in ("final", "budget") else keys


def value_hash(value: Any) -> str:
    """First 16 hex digits of SHA-256 over JSON with sorted keys and no spaces."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass
class Plan:
    """A fixture, and what is known of it where it was made.

    Attributes:
        expect: The fixture's `expect`.
        clean: Makes a run that the fixture allows.
        order: How its paths fit; None if it has none.
        extra: `allow`, `reads_only` or `forbid`.
        max_extra: Most calls that no path uses.
        legal: The allowed paths as plain names, where no step is optional or repeated.
        keys: Tool → arguments that each of its calls must have.
        pinned: Tool → arguments whose value is compared.
        exact_args: Tools that may have no other arguments than they have.
        before: Pairs of tools of which the first must come first.
        asks: Whether a question must precede the first write.
        closed: Whether the payload may have no other fields.
        limits: Limits of the budget.
        unwanted: Texts that must not be said, and where: `answer` or `conversation`.
        wanted: A text that must be said.
        single: Tools that may be called once only, by a rule of their own.
        aside_ok: Whether a further read breaks nothing.
    """

    domain: Domain
    expect: Json
    clean: Callable[[Random], Run]
    order: str | None = "exact"
    extra: str = "allow"
    max_extra: int | None = None
    legal: tuple[tuple[str, ...], ...] = ()
    keys: dict[str, tuple[str, ...]] = field(default_factory=dict)
    pinned: dict[str, tuple[str, ...]] = field(default_factory=dict)
    exact_args: frozenset[str] = frozenset()
    before: tuple[tuple[str, str], ...] = ()
    asks: bool = False
    has_schema: bool = True
    closed: bool = False
    limits: dict[str, float] = field(default_factory=dict)
    unwanted: tuple[str, str] | None = None
    wanted: str | None = None
    single: frozenset[str] = frozenset()

    @property
    def write_names(self) -> frozenset[str]:
        """The writing tools that paths may name."""
        return frozenset(tool.name for tool in self.domain.writes)


@dataclass
class Run:
    """A trace being made, and what each call is to the path.

    Attributes:
        trace: In the recorder's format.
        roles: For each call: `step` (the path needs it) or `free` (it could be left out).
        order: How the path that is taken fits, where that differs from the plan's.
    """

    trace: Json
    roles: list[str]
    order: str | None = None

    @property
    def tools(self) -> list[Json]:
        calls: list[Json] = self.trace["tools"]
        return calls

    @property
    def names(self) -> list[str]:
        return [call["name"] for call in self.tools]

    def of(self, name: str) -> list[int]:
        """Indices of the calls of a tool."""
        return [i for i, call in enumerate(self.tools) if call["name"] == name]

    def insert(self, index: int, call: Json, role: str = "free") -> None:
        """Put in a call; what was asked right there was asked before it."""
        self.tools.insert(index, call)
        self.roles.insert(index, role)
        for question in self.trace.get("questions", ()):
            question["before_tool"] += question["before_tool"] > index

    def remove(self, index: int) -> Json:
        """Take a call out."""
        for question in self.trace.get("questions", ()):
            question["before_tool"] -= question["before_tool"] > index
        self.roles.pop(index)
        return self.tools.pop(index)

    def asked_at(self) -> int:
        """How many calls came before the first question; 0 if that is not recorded."""
        return min((q["before_tool"] for q in self.trace.get("questions", ())), default=0)


# Making calls and runs.


def arguments(tool: Tool, rng: Random, **fixed: Any) -> Json:
    made = {name: make(rng) for name, make in tool.args.items()}
    return made | fixed


def call(tool: Tool, rng: Random, **fixed: Any) -> Json:
    """A call that succeeded, with values of its own."""
    return {
        "name": tool.name,
        "arguments": arguments(tool, rng, **fixed),
        "result": {"ok": True, "serial": rng.randint(1, 10**6)},
    }


def aside(domain: Domain, rng: Random) -> Json:
    """A read that no path names; no two are alike, so that none is a retry."""
    return call(rng.choice(domain.asides), rng, cursor=rng.randint(1, 10**9))


def payload(domain: Domain, rng: Random) -> Json:
    return {
        "status": rng.choice(domain.status),
        domain.reference: rng.choice([None, f"{domain.reference}-{rng.randint(1, 999)}"]),
    }


def schema(domain: Domain) -> Json:
    """The payload's schema, in the manner of the specification's example."""
    return {
        "type": "object",
        "required": ["status", domain.reference],
        "properties": {
            "status": {"enum": list(domain.status)},
            domain.reference: {"type": ["string", "null"]},
        },
    }


def run_of(domain: Domain, rng: Random, calls: Sequence[Json], asks: bool = False) -> Run:
    """A run of these calls, all steps of its path, with a payload and maybe a question."""
    trace: Json = {
        "tools": list(calls),
        "asked_clarification": asks,
        "questions": [],
        "final": payload(domain, rng),
    }
    if asks:
        writes = {tool.name for tool in (*domain.writes, *domain.forbidden)}
        first = next((i for i, c in enumerate(calls) if c["name"] in writes), len(calls))
        trace["questions"] = [
            {
                "text": f"Shall I go on with {rng.choice(domain.status)}?",
                "before_tool": rng.randint(0, first),
            }
        ]
    return Run(trace, ["step"] * len(calls))


def scatter(run: Run, domain: Domain, rng: Random, most: int) -> Run:
    """Put in up to some further reads, anywhere."""
    for _ in range(rng.randint(0, most)):
        run.insert(rng.randint(0, len(run.tools)), aside(domain, rng))
    return run


def pick(rng: Random, tools: Sequence[Tool], low: int, high: int) -> list[Tool]:
    return rng.sample(tools, rng.randint(low, min(high, len(tools))))


def some_keys(rng: Random, tools: Sequence[Tool]) -> dict[str, tuple[str, ...]]:
    """For each tool some of its arguments, as a fixture's `required_arg_keys`."""
    return {
        tool.name: tuple(rng.sample(sorted(tool.args), rng.randint(1, len(tool.args))))
        for tool in tools
    }


def as_lists(keys: dict[str, tuple[str, ...]]) -> dict[str, list[str]]:
    return {tool: list(names) for tool, names in keys.items()}


def names(tools: Sequence[Tool]) -> list[str]:
    return [tool.name for tool in tools]


def kept_order(rng: Random, tools: Sequence[Tool], before: Sequence[tuple[str, str]]) -> list[Tool]:
    """The tools in some order in which the first of each pair comes first."""
    left, made = list(tools), []
    while left:
        waiting = {
            second for first, second in before if first in names(left) and second in names(left)
        }
        chosen = rng.choice([tool for tool in left if tool.name not in waiting])
        left.remove(chosen)
        made.append(chosen)
    return made


# Families of fixtures.


def single_path(domain: Domain, rng: Random) -> Plan:
    """The specification's own kind: one path, required keys, forbidden tools, a question."""
    tools = pick(rng, domain.reads, 1, 3) + pick(rng, domain.writes, 1, 3)
    keys = some_keys(rng, tools)
    asks = rng.random() < 0.7

    def clean(rng: Random) -> Run:
        # Arguments beyond the required ones are free.
        more = {"reason": "asked"} if rng.random() < 0.3 else {}
        return run_of(domain, rng, [call(tool, rng, **more) for tool in tools], asks)

    expect = {
        "tool_names": names(tools),
        "required_arg_keys": as_lists(keys),
        "forbidden_tools": names(domain.forbidden),
        "must_ask_before_write": asks,
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, legal=(tuple(names(tools)),), keys=keys, asks=asks)


def boolean_question(domain: Domain, rng: Random) -> Plan:
    """The specification's recorder: whether something was asked, and not when."""
    plan = single_path(domain, rng)
    make = plan.clean
    plan.asks = plan.expect["must_ask_before_write"] = True

    def clean(rng: Random) -> Run:
        run = make(rng)
        run.trace["asked_clarification"] = True
        del run.trace["questions"]
        return run

    plan.clean = clean
    return plan


def several_paths(domain: Domain, rng: Random) -> Plan:
    """Two interchangeable reads, or one that stands for both; then the same writes."""
    one, two, both = rng.sample(domain.reads, 3)
    writes = pick(rng, domain.writes, 1, 2)
    ways = [[one, two, *writes], [two, one, *writes], [both, *writes]]
    keys = some_keys(rng, writes)

    def clean(rng: Random) -> Run:
        return run_of(domain, rng, [call(tool, rng) for tool in rng.choice(ways)])

    expect = {
        "allowed_paths": [names(way) for way in ways],
        "required_arg_keys": as_lists(keys),
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    legal = tuple(tuple(names(way)) for way in ways)
    return Plan(domain, expect, clean, legal=legal, keys=keys)


def in_order(domain: Domain, rng: Random) -> Plan:
    """A path with anything but further writes between its steps."""
    tools = pick(rng, domain.reads, 1, 3) + pick(rng, domain.writes, 1, 3)
    keys = some_keys(rng, tools)
    asks = rng.random() < 0.5
    every = [*domain.writes, *domain.forbidden, domain.unlisted]
    patterns = [f"{verb}_*" for verb in sorted({tool.name.split("_")[0] for tool in every})]

    def clean(rng: Random) -> Run:
        run = run_of(domain, rng, [call(tool, rng) for tool in tools], asks)
        return scatter(run, domain, rng, 4)

    expect = {
        "allowed_paths": [names(tools)],
        "order": "in_order",
        "extra": "reads_only",
        rng.choice(["writes", "write_tools"]): patterns if rng.random() < 0.5 else names(every),
        "required_arg_keys": as_lists(keys),
        "forbidden_tools": names(domain.forbidden),
        "must_ask_before_write": asks,
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, order="in_order", extra="reads_only", keys=keys, asks=asks)


def any_order(domain: Domain, rng: Random) -> Plan:
    """These calls in any order with anything else, but one before another."""
    reads, writes = pick(rng, domain.reads, 2, 3), pick(rng, domain.writes, 1, 2)
    before = ((reads[0].name, writes[0].name), (reads[1].name, writes[-1].name))
    tools = [*reads, *writes]
    keys = some_keys(rng, tools)

    def clean(rng: Random) -> Run:
        ordered = kept_order(rng, tools, before)
        return scatter(run_of(domain, rng, [call(t, rng) for t in ordered]), domain, rng, 3)

    order = rng.choice(["any_order", "superset"])
    expect = {
        "allowed_paths": [names(rng.sample(tools, len(tools)))],
        "order": order,
        "before": [list(pair) for pair in before],
        "required_arg_keys": as_lists(keys),
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, order=order, keys=keys, before=before)


def unordered(domain: Domain, rng: Random) -> Plan:
    """Exactly these calls in any order, one of them several times."""
    reads, writes = pick(rng, domain.reads, 1, 2), pick(rng, domain.writes, 1, 2)
    tools = [*reads, *writes, *([reads[0]] * rng.randint(1, 3))]
    keys = some_keys(rng, [*reads, *writes])

    def clean(rng: Random) -> Run:
        shuffled = rng.sample(tools, len(tools))
        return run_of(domain, rng, [call(tool, rng) for tool in shuffled])

    expect = {
        "allowed_paths": [names(tools)],
        "order": "unordered",
        "required_arg_keys": as_lists(keys),
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, order="unordered", keys=keys)


def subset(domain: Domain, rng: Random) -> Plan:
    """None but these calls, maybe fewer."""
    tools = pick(rng, domain.reads, 2, 3) + pick(rng, domain.writes, 1, 2)
    keys = some_keys(rng, tools)

    def clean(rng: Random) -> Run:
        used = rng.sample(tools, rng.randint(1, len(tools)))
        run = run_of(domain, rng, [call(tool, rng) for tool in used])
        run.roles = ["free"] * len(used)
        return run

    expect = {
        "allowed_paths": [names(tools)],
        "order": "subset",
        # Of a tool that need not be called, each call must have the keys.
        "required_arg_keys": as_lists(keys),
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, order="subset", keys=keys)


def limited_extra(domain: Domain, rng: Random) -> Plan:
    """A path with some further calls, and not more."""
    tools = pick(rng, domain.reads, 1, 2) + pick(rng, domain.writes, 1, 2)
    order = rng.choice(["in_order", "superset"])
    most = rng.randint(0, 3)
    keys = some_keys(rng, tools)

    def clean(rng: Random) -> Run:
        placed = tools if order == "in_order" else rng.sample(tools, len(tools))
        return scatter(run_of(domain, rng, [call(tool, rng) for tool in placed]), domain, rng, most)

    expect = {
        "allowed_paths": [{"path": names(tools), "order": order}],
        "max_extra_calls": most,
        "required_arg_keys": as_lists(keys),
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, order=order, max_extra=most, keys=keys)


def optional_and_repeated(domain: Domain, rng: Random) -> Plan:
    """An exact path in which some steps may be left out and some may come more than once."""
    first, again, maybe = rng.sample(domain.reads, 3)
    write, last = rng.sample(domain.writes, 2)
    keys = some_keys(rng, [first, again, maybe, write])
    both = rng.random() < 0.5

    def clean(rng: Random) -> Run:
        times = rng.randint(0 if both else 1, 3)
        made = [(first, "step"), *[(again, "free")] * times]
        made += [(maybe, "free")] * rng.randint(0, 1) + [(write, "step")]
        made += [(last, "free")] * rng.randint(0, 1)
        run = run_of(domain, rng, [call(tool, rng) for tool, _ in made])
        run.roles = [role for _, role in made]
        return run

    expect = {
        "allowed_paths": [
            [
                first.name,
                {"tool": again.name, "repeat": True} | ({"optional": True} if both else {}),
                {"tool": maybe.name, "optional": True},
                write.name,
                {"tool": last.name, "optional": True},
            ]
        ],
        "required_arg_keys": as_lists(keys),
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, keys=keys)


def value_hashes(domain: Domain, rng: Random) -> Plan:
    """Values that may be compared, on every one of several calls of a tool."""
    (read,), (write,) = rng.sample(domain.reads, 1), rng.sample(domain.writes, 1)
    times = rng.randint(2, 4)
    pinned = {
        tool.name: {name: make(rng) for name, make in list(tool.args.items())[:most]}
        for tool, most in ((read, 1), (write, 2))
    }

    def clean(rng: Random) -> Run:
        calls = [call(read, rng, **pinned[read.name]) for _ in range(times)]
        return run_of(domain, rng, [*calls, call(write, rng, **pinned[write.name])])

    expect = {
        "tool_names": [read.name] * times + [write.name],
        "value_hashes": {
            tool: {name: value_hash(value) for name, value in values.items()}
            for tool, values in pinned.items()
        },
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    fixed = {tool: tuple(values) for tool, values in pinned.items()}
    return Plan(domain, expect, clean, legal=(), keys=fixed, pinned=fixed)


def call_rules(domain: Domain, rng: Random) -> Plan:
    """No path: calls that must occur, with matchers for their arguments."""
    strict, loose, often = domain.writes[0], rng.choice(domain.writes[1:]), domain.reads[1]
    literal = arguments(strict, rng)
    forbid = rng.random() < 0.5
    text, amount = f"{domain.name}-note", rng.randint(10, 90)

    def clean(rng: Random) -> Run:
        calls = [
            call(strict, rng, **literal),
            call(loose, rng, note=f"{text}-{rng.randint(1, 99)}", weight=amount + rng.random()),
            *(call(often, rng) for _ in range(rng.randint(1, 3))),
        ]
        run = run_of(domain, rng, rng.sample(calls, len(calls)))
        reads = run.of(often.name)
        run.roles = [
            "step" if i not in reads or len(reads) == 1 else "free" for i in range(len(calls))
        ]
        return run if forbid else scatter(run, domain, rng, 2)

    every = [*domain.writes, *domain.forbidden, domain.unlisted]
    expect = {
        "calls": [
            {"tool": strict.name, "args": literal, "args_mode": "exact", "max": 1},
            {
                "tool": loose.name,
                "args": {
                    "note": {"regex": f"^{text}-[0-9]+$"},
                    "weight": {"approx": amount + 0.5, "tol": 0.5},
                },
                "max": 1,
            },
            {
                "tool": often.name,
                "args": sorted(often.args),
                "args_mode": "keys",
                "occurrences": "each",
                "max": 3,
            },
        ],
        "extra": "forbid" if forbid else "reads_only",
        "writes": names(every),
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    return Plan(
        domain,
        expect,
        clean,
        order=None,
        extra="forbid" if forbid else "reads_only",
        keys={
            strict.name: tuple(strict.args),
            loose.name: ("note", "weight"),
            often.name: tuple(often.args),
        },
        pinned={strict.name: tuple(strict.args), loose.name: ("note", "weight")},
        exact_args=frozenset({strict.name}),
        single=frozenset({strict.name, loose.name}),
    )


def rich_payload(domain: Domain, rng: Random) -> Plan:
    """A payload with parts of its own and nothing else in it."""
    tools = pick(rng, domain.reads, 1, 2) + pick(rng, domain.writes, 1, 1)

    def clean(rng: Random) -> Run:
        run = run_of(domain, rng, [call(tool, rng) for tool in tools])
        run.trace["final"] |= {
            "count": rng.randint(0, 9),
            "lines": [{"label": f"line {n}", "cents": n * 7} for n in range(rng.randint(1, 3))],
        }
        return run

    shape = schema(domain)
    shape["required"] += ["count", "lines"]
    shape["properties"] |= {
        "count": {"type": "integer", "minimum": 0, "maximum": 9},
        "lines": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["label", "cents"],
                "properties": {"label": {"type": "string"}, "cents": {"type": "integer"}},
                "additionalProperties": False,
            },
        },
    }
    shape["additionalProperties"] = False
    expect = {
        "tool_names": names(tools),
        "forbidden_tools": names(domain.forbidden),
        "final_schema": shape,
    }
    return Plan(domain, expect, clean, legal=(tuple(names(tools)),), closed=True)


def limits(domain: Domain, rng: Random) -> Plan:
    """A budget of calls, repetitions, tokens and seconds."""
    tools = pick(rng, domain.reads, 1, 2) + pick(rng, domain.writes, 1, 2)
    kept: dict[str, float] = {
        "max_tool_calls": len(tools) + rng.randint(0, 3),
        "max_retries": 0,
        "max_tokens": rng.randint(500, 5000),
        "max_duration_s": rng.randint(5, 50),
    }
    spare = int(kept["max_tool_calls"]) - len(tools)

    def clean(rng: Random) -> Run:
        run = scatter(run_of(domain, rng, [call(tool, rng) for tool in tools]), domain, rng, spare)
        used = rng.randint(2, int(kept["max_tokens"]))
        seconds = rng.randint(0, int(kept["max_duration_s"]))
        run.trace |= {"tokens": {"input": used - 1, "output": 1}, **duration(seconds)}
        return run

    expect = {
        "allowed_paths": [names(tools)],
        "order": "in_order",
        "forbidden_tools": names(domain.forbidden),
        **section("budget", **kept),
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, order="in_order", limits=kept)


def duration(seconds: int) -> Json:
    return {
        "started_at": "2026-03-01T10:00:00+00:00",
        "ended_at": f"2026-03-01T10:{seconds // 60:02}:{seconds % 60:02}+00:00",
    }


def spoken(domain: Domain, rng: Random) -> Plan:
    """Words that must be in the answer, and others that must not be said."""
    tools = pick(rng, domain.reads, 1, 2) + pick(rng, domain.writes, 1, 1)
    scope = rng.choice(["answer", "conversation"])
    wanted, unwanted = f"reference {domain.name}", rng.choice(["I guarantee", "legal advice"])

    def clean(rng: Random) -> Run:
        run = run_of(domain, rng, [call(tool, rng) for tool in tools], asks=True)
        run.trace["final"]["message"] = f"Done, see {wanted.upper()} for details."
        return run

    expect = {
        "tool_names": names(tools),
        "forbidden_tools": names(domain.forbidden),
        "must_ask_before_write": True,
        **section("final", contains=[wanted], not_contains=[unwanted], scope=scope),
    }
    return Plan(
        domain,
        expect,
        clean,
        legal=(tuple(names(tools)),),
        asks=True,
        has_schema=False,
        wanted=wanted,
        unwanted=(unwanted, scope),
    )


def mixed_orders(domain: Domain, rng: Random) -> Plan:
    """Two paths, each with an order of its own."""
    one, two, three = rng.sample(domain.reads, 3)
    write, other = rng.sample(domain.writes, 2)
    second = rng.choice(["unordered", "in_order", "superset"])
    strict, free = [one, write], [two, three, other]

    def clean(rng: Random) -> Run:
        if rng.random() < 0.5:
            run = run_of(domain, rng, [call(tool, rng) for tool in strict])
            run.order = "exact"
            return run
        placed = free if second == "in_order" else rng.sample(free, len(free))
        run = run_of(domain, rng, [call(tool, rng) for tool in placed])
        run.order = second
        return run if second == "unordered" else scatter(run, domain, rng, 2)

    expect = {
        "allowed_paths": [names(strict), {"path": names(free), "order": second}],
        "order": "exact",
        "forbidden_tools": names(domain.forbidden),
        "final_schema": schema(domain),
    }
    return Plan(domain, expect, clean, order="exact", legal=(tuple(names(strict)),))


FAMILIES: dict[str, Callable[[Domain, Random], Plan]] = {
    make.__name__: make
    for make in (
        single_path,
        boolean_question,
        several_paths,
        in_order,
        any_order,
        unordered,
        subset,
        limited_extra,
        optional_and_repeated,
        value_hashes,
        call_rules,
        rich_payload,
        limits,
        spoken,
        mixed_orders,
    )
}
