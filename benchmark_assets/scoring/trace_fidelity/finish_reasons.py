"""Finish reasons: what the words of different vendors mean, and comparing them in order.

Belongs here: the words and the comparison of one executor's. Does not belong here: verdicts.

The words are those that providers document, as they are translated into the four that OpenAI's
chat completions use: OpenAI itself (`function_call`, the incomplete reason `max_output_tokens`),
Anthropic (`end_turn`, `stop_sequence`, `pause_turn`, `max_tokens`, `tool_use`, `refusal`),
Gemini (`STOP`, `MAX_TOKENS`, `SAFETY`), Bedrock (`guardrail_intervened`, `content_filtered`).
Case, hyphens and underscores make no difference; a word that is in no list means itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby

from benchmark_assets.model.fidelity import LedgerEntry, ModelTurn

STOP, LENGTH, TOOL_CALLS, CONTENT_FILTER = "stop", "length", "tool_calls", "content_filter"

INTERVENTIONS = (LENGTH, CONTENT_FILTER)
"""Reasons of a turn that the model did not end itself: it was cut."""

ALIASES: dict[str, tuple[str, ...]] = {
    STOP: ("stop", "end_turn", "stop_sequence", "pause_turn"),
    LENGTH: ("length", "max_tokens", "max_output_tokens"),
    TOOL_CALLS: ("tool_calls", "tool_call", "tool_use", "function_call"),
    CONTENT_FILTER: (
        "content_filter",
        "content_filtered",
        "refusal",
        "safety",
        "guardrail_intervened",
    ),
}
"""What a reason is called here → the words for it."""


def _plain(word: str) -> str:
    return word.casefold().replace("_", "").replace("-", "").replace(" ", "")


_MEANING = {_plain(word): meaning for meaning, words in ALIASES.items() for word in words}


@lru_cache(maxsize=4096)
def meaning(reason: str | None) -> str | None:
    """What a raw finish reason means; an unknown one means itself, whatever its case."""
    return None if reason is None else _MEANING.get(_plain(reason), reason.casefold())


def discarded(turns: Sequence[ModelTurn]) -> list[ModelTurn]:
    """Turns of one invocation that ended for good and were followed by another all the same.

    In a loop of tool calls every turn but the last ends with `tool_calls`. One that ended
    otherwise, or failed, was done again: a retry.
    """
    return [
        turn
        for turn in turns[:-1]
        if turn.error is not None or meaning(turn.finish_reason) not in (None, TOOL_CALLS)
    ]


def differs(entries: Sequence[LedgerEntry], turns: Sequence[ModelTurn]) -> str | None:
    """How what was reported differs from how the turns ended; None if it does not.

    Entries report how an invocation ended, so their reasons must occur among those of the turns
    in the same order, and the last must be the last. Repetitions count once on both sides, and
    an entry without a reason says nothing unless it is the last: the same report in more or
    fewer pieces is the same report.
    """
    truth = [turn.finish_reason for turn in turns if turn.finish_reason is not None]
    if not truth:
        return None
    reported = [entry.finish_reason for entry in entries]
    if reported == truth:
        return None
    final = reported[-1] if reported else None
    if meaning(final) != meaning(truth[-1]):
        said = "no finish reason" if final is None else f"'{final}'"
        return f"ended with '{truth[-1]}', reported is {said}"
    if not _in_order(_distinct(reported), _distinct(truth)):
        return f"ended with {_listed(truth)} in this order, reported is {_listed(reported)}"
    return None


def hidden_interventions(
    entries: Sequence[LedgerEntry], turns: Sequence[ModelTurn]
) -> list[ModelTurn]:
    """Turns that were cut and that no entry shows, in order.

    One entry shows one turn; the last ones are taken to be shown, since entries report ends.
    """
    if not any(meaning(turn.finish_reason) in INTERVENTIONS for turn in turns):
        return []
    shown = Counter(meaning(entry.finish_reason) for entry in entries)
    hidden = []
    for turn in reversed(turns):
        reason = meaning(turn.finish_reason)
        if reason not in INTERVENTIONS:
            continue
        if shown[reason]:
            shown[reason] -= 1
        else:
            hidden.append(turn)
    return hidden[::-1]


def _distinct(reasons: Sequence[str | None]) -> list[str]:
    """The meanings without gaps and repetitions."""
    known = [reason for reason in map(meaning, reasons) if reason is not None]
    return [reason for reason, _ in groupby(known)]


def _in_order(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Whether one list occurs in another, in order, maybe with others in between."""
    rest = iter(whole)
    return all(item in rest for item in part)


def _listed(reasons: Sequence[str | None], most: int = 6) -> str:
    words = ["none" if reason is None else f"'{reason}'" for reason in reasons]
    shown = words[:most] + (["…"] if len(words) > most else [])
    return ", ".join(shown)
