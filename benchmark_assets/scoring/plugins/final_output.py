"""`final`: what the run said in the end: facts that must be there, texts that must not, a schema.

Texts are compared as `matching.plain_text` reads them, numbers being whole. A trace without any
text to the user fails what must be said, and what must not be said is skipped: nothing was said.
A schema is applied to the final answer parsed as JSON; an answer that is not JSON fails it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import msgspec
from jsonschema import Draft202012Validator, ValidationError
from referencing.jsonschema import EMPTY_REGISTRY

from benchmark_assets.model.contract import Contract
from benchmark_assets.model.verdict import Check
from benchmark_assets.scoring.evidence import Evidence
from benchmark_assets.scoring.matching import contains_text, plain_text, show
from benchmark_assets.scoring.plugins.base import Judge, Plugin, Quick
from benchmark_assets.scoring.quick_schema import quick_schema


def _prepare(contract: Contract) -> Judge | None:
    final = contract.final
    if final is None:
        return None
    wanted = [(text, plain_text(text)) for text in final.contains]
    unwanted = [(text, plain_text(text)) for text in final.not_contains]
    schema = None if final.schema_ is None else _Schema(final.schema_)
    whole = final.scope == "conversation"
    place = "what was said to the user" if whole else "the final answer"

    def judge(evidence: Evidence) -> Iterator[Check]:
        trace = evidence.trace
        said = [m.text for m in trace.messages] if whole else []
        if trace.final_answer is not None and (not whole or trace.final_answer not in said):
            said.append(trace.final_answer)
        texts = [plain_text(text) for text in said] if wanted or unwanted else []
        for text, plain in wanted:
            if any(contains_text(said_text, plain) for said_text in texts):
                yield Check(name=f"contains: {text}", outcome="passed")
            else:
                yield Check(
                    name=f"contains: {text}",
                    outcome="failed",
                    expected=f"{show(text)} in {place}",
                    observed=show(said[-1]) if said else "no text to the user",
                    reason=f"{show(text)} was not said",
                )
        for text, plain in unwanted:
            if not any(texts):
                # Silence does not contain it, but neither was anything measured.
                yield Check(
                    name=f"not contains: {text}", outcome="skipped", observed="no text to the user"
                )
                continue
            hit = next(
                (said[i] for i, other in enumerate(texts) if contains_text(other, plain)), None
            )
            if hit is None:
                yield Check(name=f"not contains: {text}", outcome="passed")
            else:
                yield Check(
                    name=f"not contains: {text}",
                    outcome="failed",
                    expected=f"{show(text)} not in {place}",
                    observed=show(hit),
                    reason=f"{show(text)} was said",
                )
        if schema is not None:
            yield _schema_check(schema, trace.final_answer)

    return judge


def _quick(contract: Contract) -> Quick | None:
    final = contract.final
    if final is None or final.schema_ is None or final.contains or final.not_contains:
        return None
    fits = quick_schema(final.schema_)
    if fits is None:
        return None

    def settle(evidence: Evidence) -> bool:
        answer = evidence.trace.final_answer
        try:
            return answer is not None and fits(msgspec.json.decode(answer))
        except (msgspec.DecodeError, RecursionError):
            return False

    return settle


class _Schema:
    """A schema compiled once, and no more of it than is needed."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._fits = quick_schema(schema)

    @cached_property
    def _validator(self) -> Draft202012Validator:
        # With a registry of its own the validator fetches no `$ref` from the network.
        return Draft202012Validator(self._schema, registry=EMPTY_REGISTRY)

    def errors(self, payload: Any) -> list[ValidationError]:
        """All that is wrong with a payload, by place."""
        if self._fits is not None and self._fits(payload):
            return []
        found = self._validator.iter_errors(payload)
        return sorted(found, key=lambda error: list(map(str, error.path)))


def _schema_check(schema: _Schema, answer: str | None) -> Check:
    expected = "an answer that fits the schema"
    if answer is None:
        return Check(
            name="schema",
            outcome="failed",
            expected=expected,
            observed="no final answer",
            reason="there is no final answer",
        )
    try:
        payload: Any = msgspec.json.decode(answer)
    except (msgspec.DecodeError, RecursionError):
        return Check(
            name="schema",
            outcome="failed",
            expected=expected,
            observed=show(answer),
            reason="the final answer is not JSON",
        )
    errors = schema.errors(payload)
    if not errors:
        return Check(name="schema", outcome="passed")
    at = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in errors[0].absolute_path)
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return Check(
        name="schema",
        outcome="failed",
        expected=expected,
        observed=show(payload),
        reason=f"answer{at}: {errors[0].message}{more}",
    )


PLUGIN = Plugin(
    "final_output",
    "what was said in the end: texts that must and must not be there, a schema",
    _prepare,
    _quick,
)
