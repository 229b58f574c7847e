"""Tokens, cost and model of a Langfuse observation.

Belongs here: the open sets of keys under which Langfuse keeps usage and cost, and what they
mean. Does not belong here: which observations count (`langfuse_rows`).

Usage has `input` and `output` in one spelling or another, mostly a `total`, and parts of the
two: cached, reasoning, audio. Whether `input` counts its parts in differs between integrations
and even between versions of the same one. The `total` tells: it is the sum of what is disjoint.
Where it is missing or fits neither reading, the key decides: Langfuse's own keys
(`input_cached_tokens`, `cache_read_input_tokens`) are disjoint from `input`, a vendor's
`…details…` are parts of it. So are those of OpenTelemetry that Langfuse does not know yet: it
puts them as they are (`cache_write.input_tokens`) beside the input that counts them in, and then
counts them twice in the total that it sums up itself.
"""

from __future__ import annotations

import itertools
import re
from typing import Any

from benchmark_assets.adapters.formats.base import amount, text_or_none, whole_number
from benchmark_assets.adapters.formats.langfuse_values import first, look, look_text, unwrap
from benchmark_assets.adapters.formats.messages import as_dict
from benchmark_assets.model.trace import Tokens

_INPUT = frozenset(
    {"input", "input_tokens", "inputTokens", "prompt", "prompt_tokens", "promptTokens"}
    | {"prompt_token_count"}
)
_OUTPUT = frozenset(
    {"output", "output_tokens", "outputTokens", "completion", "completion_tokens"}
    | {"completionTokens", "candidates_token_count"}
)
_TOTAL = frozenset({"total", "total_tokens", "totalTokens", "total_token_count"})
_PARTS_OF_WHOLE = frozenset({"cached_tokens", "reasoning_tokens", "cached_content_token_count"})

_UNKNOWN_TO_LANGFUSE = re.compile(r"^(?:(cache_\w+)\.input|(reasoning)\.output)_tokens$")
"""OpenTelemetry's names of parts, without what stands before them: in the input, in the output."""

_RESOURCE = re.compile(
    r"^(?:projects/[^/]+/locations/[^/]+/)?(?:publishers/[^/]+/)?models/|^arn:aws[^/]*/"
)
"""What stands before a model's name in the name of a cloud resource: where it runs, and whose
account pays. `projects/p/locations/l/publishers/google/models/gemini-2.5-flash` is
`gemini-2.5-flash`. A router's prefix (`openai/gpt-4o`) is part of the name."""


class _Parts:
    """Parts of input or output, by bucket."""

    def __init__(self) -> None:
        self.buckets: dict[str, int] = {}
        self.inside = True  # by their keys, parts of the whole

    def add(self, bucket: str, key: str, count: int) -> None:
        # The same count under two names is one count.
        self.buckets[bucket] = max(self.buckets.get(bucket, 0), count)
        if count and "details" not in key and key not in _PARTS_OF_WHOLE:
            self.inside = False

    @property
    def sum(self) -> int:
        return sum(self.buckets.values())


def read_tokens(usage: Any) -> Tokens:
    """Usage under Langfuse's or a vendor's keys as disjoint buckets; nothing known is None."""
    whole: dict[str, int] = {}
    inward, outward = _Parts(), _Parts()
    ephemeral = 0
    inner = {"input": 0, "output": 0}
    for key, value in _flat(as_dict(unwrap(usage))):
        count = whole_number(value)
        if count is None:
            continue
        if key in _INPUT or key in _OUTPUT or key in _TOTAL:
            name = "input" if key in _INPUT else "output" if key in _OUTPUT else "total"
            whole[name] = max(whole.get(name, 0), count)
            continue
        part = _UNKNOWN_TO_LANGFUSE.match(key)
        if part:
            inner["input" if part[1] else "output"] += count
        words = key.lower()
        if "ephemeral" in words:
            ephemeral += count  # how long a cache write lives: parts of `cache_creation`
        elif "reason" in words or "thought" in words or "thinking" in words:
            outward.add("reasoning", key, count)
        elif "cach" in words:
            written = "creat" in words or "writ" in words
            inward.add("cache_write" if written else "cache_read", key, count)
        elif "input" in words or "prompt" in words:
            inward.add(f"other {key}", key, count)
        elif "output" in words or "completion" in words:
            outward.add(f"other {key}", key, count)
    if ephemeral and not inward.buckets.get("cache_write"):
        inward.add("cache_write", "ephemeral", ephemeral)
    for name, count in inner.items():
        # What is more than the whole was never in it.
        if name in whole and count <= whole[name]:
            whole[name] -= count
    return _disjoint(whole, inward, outward)


def _flat(usage: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    pairs: list[tuple[str, Any]] = []
    for key, value in usage.items():
        if isinstance(value, dict):
            pairs += _flat(value, f"{prefix}{key}.") if prefix.count(".") < 4 else []
        else:
            pairs.append((prefix + key, value))
    return pairs


def _disjoint(whole: dict[str, int], inward: _Parts, outward: _Parts) -> Tokens:
    inside_in, inside_out = _which_inside(whole, inward, outward)
    return Tokens(
        input=_rest(whole.get("input"), inward, inside_in),
        output=_rest(whole.get("output"), outward, inside_out),
        cache_read=inward.buckets.get("cache_read"),
        cache_write=inward.buckets.get("cache_write"),
        reasoning=outward.buckets.get("reasoning"),
    )


def _which_inside(whole: dict[str, int], inward: _Parts, outward: _Parts) -> tuple[bool, bool]:
    """Whether input counts its parts in, and whether output does."""
    given_in, given_out = whole.get("input", 0), whole.get("output", 0)
    likely = (inward.inside, outward.inside)
    readings = sorted(
        itertools.product((True, False), repeat=2), key=lambda reading: reading != likely
    )
    # What is inside cannot be more than what it is inside of. (Audio parts overlap with cached
    # ones, so only the largest is compared.)
    possible = [
        (a, b)
        for a, b in readings
        if not (a and max(inward.buckets.values(), default=0) > given_in)
        and not (b and max(outward.buckets.values(), default=0) > given_out)
    ]
    for a, b in possible:
        known = given_in + given_out + (0 if a else inward.sum) + (0 if b else outward.sum)
        if known == whole.get("total"):
            return a, b
    return possible[0]  # nothing inside is always possible


def _rest(whole: int | None, parts: _Parts, inside: bool) -> int | None:
    """The whole without its parts that have a bucket of their own."""
    named = sum(count for bucket, count in parts.buckets.items() if not bucket.startswith("other "))
    others = parts.sum - named
    if inside:
        return None if whole is None else max(whole - named, 0)
    if whole is None and not others:
        return None
    return (whole or 0) + others


def row_tokens(raw: dict[str, Any], tree: dict[str, Any]) -> Tokens:
    """Tokens of an observation.

    `raw` has the row's fields, in camelCase; `tree` its metadata. What the SDK sent is looked at
    where the server kept less of it. Zeros in the deprecated fields mean that nothing is known.
    """
    usage = as_dict(unwrap(raw.get("usageDetails")))
    sent = as_dict(look(tree, "langfuse.observation.usage_details"))
    if not usage.keys() <= _INPUT | _OUTPUT | _TOTAL:
        sent = {}
    if usage or sent:
        return read_tokens({**sent, **{k: v for k, v in usage.items() if v is not None}})
    known = {
        "input": first(raw, "inputUsage", "promptTokens"),
        "output": first(raw, "outputUsage", "completionTokens"),
    }
    legacy = as_dict(unwrap(raw.get("usage")))
    if not any(known.values()) and legacy.get("unit") in (None, "TOKENS"):
        known = {"input": legacy.get("input"), "output": legacy.get("output")}
    return read_tokens(known) if any(known.values()) else Tokens()


def counts_only_whole(raw: dict[str, Any]) -> bool:
    """Whether a row's usage has no parts: all that Langfuse writes where it counts the text."""
    usage = as_dict(unwrap(raw.get("usageDetails")))
    return usage.keys() <= {"input", "output", "total"}


def row_cost(raw: dict[str, Any], tokens: Tokens) -> float | None:
    """Cost of an observation in US dollars.

    Langfuse writes 0 where it knows no price for the model, so a 0 is believed only where no
    token was used.
    """
    details = as_dict(unwrap(raw.get("costDetails")))
    costs = [details.get("total"), raw.get("totalCost"), raw.get("calculatedTotalCost")]
    known = [cost for value in costs if (cost := _dollars(value)) is not None]
    if not known:
        parts = [cost for value in details.values() if (cost := _dollars(value)) is not None]
        known = [sum(parts)] if parts else []
    cost = next((cost for cost in known if cost), None)
    return 0.0 if cost is None and known and tokens.total == 0 else cost


def _dollars(value: Any) -> float | None:
    """An amount that may be a text, as ClickHouse writes decimals."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return amount(value)


def row_model(raw: dict[str, Any], tree: dict[str, Any]) -> str | None:
    """The model's name as the source has it, without the name of the resource it runs as."""
    name = text_or_none(first(raw, "model", "providedModelName")) or look_text(
        tree,
        "gen_ai.response.model",
        "gen_ai.request.model",
        "llm.model_name",
        "ai.response.model",
        "ai.model.id",
        "ls_model_name",
    )
    if name is None:
        return None
    return _RESOURCE.sub("", name) or name
