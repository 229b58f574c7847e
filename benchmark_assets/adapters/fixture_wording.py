"""What is wrong with a fixture, in the words of JSON and with a cure for each.

Belongs here: what people should do about a problem where finding it did not say so, and keys that
they know from elsewhere. Does not belong here: finding problems (`yaml_files`, the models).
"""

from __future__ import annotations

import json
import re

from msgspec.structs import replace

from benchmark_assets.model.golden import SECTIONS
from benchmark_assets.model.problem import Problem

_OF_TRACES = "it is of a trace, which has a file of its own: what is demanded is in `expect`"
_FLAT = "write its keys in `expect` itself"
_UNDER_EXPECT = "write its keys in `expect`"
_MISPLACED = {
    **dict.fromkeys(("tools", "messages", "questions", "asked_clarification"), _OF_TRACES),
    **{name: _UNDER_EXPECT for name, _ in SECTIONS},
    **{f"expect.{name}": _FLAT for name, _ in SECTIONS},
    "expect.tools": "write `forbidden_tools`, or the path in `tool_names`",
    "expect.recovered_errors": 'write `"trace_health": {"recovered_errors": …}`',
    "prompt": 'write `"input": {"user": "…"}`',
    **dict.fromkeys(
        (
            *("applies_to", "harness", "input_context", "knowledge", "output", "plugins"),
            *("resources", "skills", "unrelated_reads"),
        ),
        "only a contract in YAML has it",
    ),
}
"""Keys that people know from elsewhere → what to do about them in a fixture."""

_IN_JSON = (
    (r"`key: value` pairs", "an object"),
    (r", found nothing", ", found null"),
    (r"add `([\w$]+): …`", r'add `"\1": …`'),
)
"""How the words for YAML, in messages and cures, are put for JSON."""

_WHAT_TO_WRITE = (
    (r"expected a text.* found (the number|true|false)", "put it in quotes"),
    (r"expected a text", 'write a text: "…"'),
    (r"expected true or false", "write true or false, without quotes"),
    (r"expected one of (\w+)", r'write one of them, such as "\1"'),
    (r"expected a whole number", "write a whole number without quotes, such as 3"),
    (r"expected a number", "write a number without quotes, such as 0.5"),
    (r"expected a list", "write a list: […]"),
    (r"expected an object", "write an object: {…}"),
    (r"is not a JSON Schema", "write it as JSON Schema, draft 2020-12, has it"),
    (r"is not a regular expression", r"correct it; its \\ is \\\\ in JSON"),
    (r"names .* twice", "name two tools: [FIRST, THEN]"),
    (r"order says how allowed_paths fit", "add `allowed_paths`, or remove `order`"),
    (r"", "correct it, or remove the key"),
)
"""Pattern of a message → what to do about it in JSON, for messages that do not say so themselves."""


def worded(problem: Problem) -> Problem:
    """A problem of a fixture as people are told of it; it has a cure."""
    return _with_cure(_in_json(problem))


def _in_json(problem: Problem) -> Problem:
    message, cure = problem.message, problem.cure or ""
    for pattern, text in _IN_JSON:
        message, cure = re.sub(pattern, text, message), re.sub(pattern, text, cure)
    listed = re.fullmatch(r"write \[(.*)\]", cure)
    if listed and f"found '{listed[1]}'" in message:
        cure = f"write [{json.dumps(listed[1], ensure_ascii=False)}]"
    return replace(problem, message=message, cure=cure or None)


def _with_cure(problem: Problem) -> Problem:
    misplaced = _MISPLACED.get(problem.key or "")
    if misplaced and problem.message == "is not a known key":
        return replace(problem, cure=misplaced)
    if problem.cure:
        return problem
    message, _, given = problem.message.partition(": give ")
    if given:
        return replace(problem, message=message, cure=f"give {given}")
    matches = ((re.match(pattern, problem.message), cure) for pattern, cure in _WHAT_TO_WRITE)
    found, cure = next((match, cure) for match, cure in matches if match)
    return replace(problem, cure=found.expand(cure))
