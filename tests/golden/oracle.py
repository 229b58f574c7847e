"""What a fixture says of a trace, computed as slowly and plainly as it can be said.

Belongs here: the rules by their definition, over plain objects, by trying all possibilities.
Does not belong here: anything that is fast, reports, or is used outside tests. It is an
independent computation, so it imports nothing of the package.

`failing(fixture, trace)` gives the words (`faults.RULES`) of the rules that a trace breaks.
"""

from __future__ import annotations

import fnmatch
import hashlib
import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from typing import Any

Json = dict[str, Any]

READS = {"check", "find", "get", "list", "lookup", "read", "search"}
"""First words of tools that only look, for a fixture that does not say what writes."""


def failing(fixture: Json, trace: Json) -> set[str]:
    """The rules of a fixture that a trace breaks."""
    expect = {**fixture["expect"]}
    for section in ("final", "budget"):
        expect |= expect.pop(section, None) or {}
    calls = trace["tools"]
    broken = {
        "path": not follows_a_path(expect, calls),
        "arguments": not arguments_fit(expect, calls),
        "forbidden": any(fits_any(c["name"], expect.get("forbidden_tools", [])) for c in calls),
        "question": not asked_in_time(expect, trace),
        "final": not final_fits(expect, trace),
        "before": not all(came_first(a, b, calls) for a, b in expect.get("before", [])),
        "extra": too_much_extra(expect, calls),
        "writes": further_write(expect, calls),
        "budget": over_budget(expect, trace),
        "ended": trace.get("error") is not None,
        "health": any(map(failed, calls)),
    }
    return {rule for rule, is_broken in broken.items() if is_broken}


def failed(call: Json) -> bool:
    return call.get("error") is not None


def fits_any(name: str, patterns: list[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


# Paths.


def paths(expect: Json) -> list[tuple[list[Any], str]]:
    """Each allowed path with its order."""
    given = expect.get("allowed_paths")
    if given is None:
        given = [expect["tool_names"]] if "tool_names" in expect else []
    order: str = expect.get("order", "exact")
    return [
        (path["path"], str(path.get("order", order))) if isinstance(path, dict) else (path, order)
        for path in given
    ]


def expansions(path: list[Any], longest: int) -> Iterator[list[Json]]:
    """All plain sequences that a path with optional and repeated steps stands for."""
    choices = []
    for step in path:
        said = step if isinstance(step, dict) else {"tool": step}
        times = range(0 if said.get("optional") else 1, longest + 1 if said.get("repeat") else 2)
        choices.append([[said] * n for n in times])
    for chosen in itertools.product(*choices):
        yield [step for part in chosen for step in part]


def one_each(steps: list[Json], calls: list[Json]) -> bool:
    """Whether each of some calls is a step of its own, and no step is left."""
    if not calls or not steps:
        return not calls and not steps
    return any(
        call_fits(step, calls[0]) and one_each([*steps[:n], *steps[n + 1 :]], calls[1:])
        for n, step in enumerate(steps)
    )


def ways(expect: Json, calls: list[Json]) -> Iterator[set[int]]:
    """Each set of calls that takes an allowed path: their indices."""
    good = [i for i, call in enumerate(calls) if not failed(call)]
    for path, order in paths(expect):
        for plain in expansions(path, len(calls)):
            if order in ("exact", "unordered"):
                if len(good) == len(calls) == len(plain) and taken(order, plain, calls):
                    yield set(good)
            elif order == "subset":
                # Of a trace without calls nothing was measured, unless none was expected.
                known = all(any(call_fits(step, call) for step in plain) for call in calls)
                made = [calls[i] for i in good]
                some = (list(part) for part in itertools.combinations(plain, len(made)))
                if known and (calls or not path) and any(one_each(part, made) for part in some):
                    yield set(good)
            else:
                for chosen in itertools.combinations(good, len(plain)):
                    if taken(order, plain, [calls[i] for i in chosen]):
                        yield set(chosen)


def taken(order: str, plain: list[Json], calls: list[Json]) -> bool:
    """Whether just these calls are just these steps."""
    if order in ("exact", "in_order"):
        return all(call_fits(step, call) for step, call in zip(plain, calls, strict=True))
    return one_each(plain, calls)


def follows_a_path(expect: Json, calls: list[Json]) -> bool:
    return not paths(expect) or any(True for _ in ways(expect, calls))


# Arguments.


def arguments_fit(expect: Json, calls: list[Json]) -> bool:
    every = [*calls]
    keys_there = all(
        key in (call.get("arguments") or {})
        for call in every
        for key in expect.get("required_arg_keys", {}).get(call["name"], [])
    )
    values_same = all(
        key in (call.get("arguments") or {}) and wanted in digests(call["arguments"][key])
        for call in every
        for key, wanted in expect.get("value_hashes", {}).get(call["name"], {}).items()
    )
    return keys_there and values_same and all(rule_kept(r, calls) for r in rules(expect))


def rules(expect: Json) -> list[Json]:
    """The calls that must occur. Keys name those that no path does: uncalled, a tool lacks them."""
    keys = expect.get("required_arg_keys", {})
    if paths(expect):
        steps = [step for path, _ in paths(expect) for step in path]
        on_paths = {step["tool"] if isinstance(step, dict) else step for step in steps}
        keys = {tool: names for tool, names in keys.items() if names and tool not in on_paths}
    named = [{"tool": tool, "args": names, "args_mode": "keys"} for tool, names in keys.items()]
    return [*expect.get("calls", []), *named]


def digests(value: Any) -> set[str]:
    """Over JSON in ASCII, as the specification hashes, and over JSON in UTF-8."""
    texts = [
        json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=escaped)
        for escaped in (True, False)
    ]
    return {hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts}


def rule_kept(rule: Json, calls: list[Json]) -> bool:
    of_tool = [call for call in calls if call["name"] == rule["tool"]]
    fitting = [call for call in of_tool if call_fits(rule, call)]
    count = sum(not failed(call) for call in fitting)
    if rule.get("occurrences") == "each" and len(fitting) < len(of_tool):
        return False
    return bool(rule.get("min", 1) <= count <= rule.get("max", len(calls)))


def call_fits(rule: Json, call: Json) -> bool:
    if call["name"] != rule["tool"]:
        return False
    mode, wanted, given = rule.get("args_mode", "subset"), rule.get("args", {}), call["arguments"]
    if isinstance(wanted, list):
        wanted = {key: {"any": True} for key in wanted}
    if mode == "ignore":
        return True
    if not all(key in given for key in wanted):
        return False
    if mode == "exact" and set(given) != set(wanted):
        return False
    return mode == "keys" or all(value_fits(wanted[key], given[key]) for key in wanted)


def value_fits(wanted: Any, given: Any) -> bool:
    if isinstance(wanted, dict) and "any" in wanted:
        return True
    if isinstance(wanted, dict) and "literal" in wanted:
        return same(wanted["literal"], given)
    if isinstance(wanted, dict) and "regex" in wanted:
        return isinstance(given, str) and re.search(wanted["regex"], given) is not None
    if isinstance(wanted, dict) and "approx" in wanted:
        number = isinstance(given, int | float) and not isinstance(given, bool)
        return number and abs(given - wanted["approx"]) <= wanted.get("tol", 1e-9)
    return same(wanted, given)


def same(one: Any, other: Any) -> bool:
    """Equality of JSON: as in Python, but a boolean is no number."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return set(one) == set(other) and all(same(one[key], other[key]) for key in one)
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


# What else may happen.


def writes(expect: Json, name: str) -> bool:
    patterns = expect.get("write_tools", expect.get("writes"))
    return fits_any(name, patterns) if patterns is not None else name.partition("_")[0] not in READS


def unlisted(expect: Json, calls: list[Json]) -> set[int]:
    """The calls that neither the path taken nor a rule accounts for.

    Of several ways to take a path, the one that accounts for most. Where no path was taken, the
    calls of all tools that some path names are taken for listed. A rule accounts for all calls that
    fit it if it says how many there may be; else, where it matters, for as many as it demands, and
    for those first that are accounted for anyway. Beside a path, keys account for no call.
    """
    named = {
        step["tool"] if isinstance(step, dict) else step
        for path, _ in paths(expect)
        for step in path
    }
    nearest = {i for i, call in enumerate(calls) if call["name"] in named}
    listed = max(ways(expect, calls), key=len, default=nearest) if paths(expect) else set()
    for rule in rules(expect):
        fitting = {i for i, call in enumerate(calls) if call_fits(rule, call)}
        counted = {i for i in fitting if not failed(calls[i]) and matters(expect, calls[i]["name"])}
        if "max" in rule:
            counted = set()
        first = sorted(counted, key=lambda i: (i not in listed, i))[: max(rule.get("min", 1), 1)]
        listed |= fitting - counted | set(first)
    return set(range(len(calls))) - listed


def matters(expect: Json, name: str) -> bool:
    """Whether one more call of a tool could be one too many."""
    anything = expect.get("extra") == "forbid" or "max_extra_calls" in expect
    return anything or writes(expect, name)


def too_much_extra(expect: Json, calls: list[Json]) -> bool:
    count = len(unlisted(expect, calls))
    most = expect.get("max_extra_calls")
    return (expect.get("extra") == "forbid" and count > 0) or (most is not None and count > most)


def further_write(expect: Json, calls: list[Json]) -> bool:
    return expect.get("extra") == "reads_only" and any(
        writes(expect, calls[i]["name"]) and not failed(calls[i]) for i in unlisted(expect, calls)
    )


def came_first(first: str, second: str, calls: list[Json]) -> bool:
    """No call of `second` without a successful call of `first` somewhere before it."""
    return all(
        any(c["name"] == first and not failed(c) for c in calls[:i])
        for i, call in enumerate(calls)
        if call["name"] == second
    )


def asked_in_time(expect: Json, trace: Json) -> bool:
    if not (expect.get("must_ask_before_write") or expect.get("ask_before_write")):
        return True
    places = [i for i, call in enumerate(trace["tools"]) if writes(expect, call["name"])]
    if not places:
        return True
    if "questions" not in trace:
        return bool(trace.get("asked_clarification"))
    return any(question["before_tool"] <= min(places) for question in trace["questions"])


# The end.


def final_fits(expect: Json, trace: Json) -> bool:
    final = trace.get("final")
    schema = expect.get("final_schema", expect.get("schema"))
    if schema is not None and (final is None or not conforms(final, schema)):
        return False
    said = [] if final is None else [json.dumps(final, ensure_ascii=False)]
    if expect.get("scope") == "conversation":
        said += [question["text"] for question in trace.get("questions", [])]
    texts = [" ".join(text.casefold().split()) for text in said]
    return all(
        any(words.casefold() in text for text in texts) for words in expect.get("contains", [])
    ) and not any(
        words.casefold() in text for text in texts for words in expect.get("not_contains", [])
    )


TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "null": type(None),
    "boolean": bool,
}


def conforms(value: Any, schema: Json) -> bool:
    """JSON Schema, as much of it as the corpus uses."""
    known = {
        *("type", "enum", "required", "properties", "additionalProperties", "items", "minItems"),
        *("minimum", "maximum"),
    }
    assert set(schema) <= known, f"the oracle does not know {set(schema) - known}"
    if "type" in schema and not any(
        isinstance(value, TYPES[name]) and (name == "boolean" or not isinstance(value, bool))
        for name in ([schema["type"]] if isinstance(schema["type"], str) else schema["type"])
    ):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, dict):
        parts = schema.get("properties", {})
        if any(key not in value for key in schema.get("required", [])):
            return False
        if schema.get("additionalProperties") is False and set(value) - set(parts):
            return False
        return all(conforms(value[key], part) for key, part in parts.items() if key in value)
    if isinstance(value, list):
        return len(value) >= schema.get("minItems", 0) and all(
            conforms(item, schema.get("items", {})) for item in value
        )
    if isinstance(value, int | float):
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    return True


def over_budget(expect: Json, trace: Json) -> bool:
    calls = trace["tools"]
    alike = Counter(json.dumps([c["name"], c["arguments"]], sort_keys=True) for c in calls)
    used = {
        "max_tool_calls": len(calls),
        "max_retries": max(alike.values(), default=1) - 1,
        "max_tokens": sum(trace.get("tokens", {}).values()),
        "max_duration_s": seconds(trace),
    }
    return any(amount > expect[key] for key, amount in used.items() if key in expect)


def seconds(trace: Json) -> float:
    if "started_at" not in trace:
        return 0
    start, end = (datetime.fromisoformat(trace[key]) for key in ("started_at", "ended_at"))
    return (end - start).total_seconds()
