"""The demo's four models: how fast and dear they are, and how often and in which way they fail.

Belongs here: invented figures per model. Does not belong here: how they are applied
(`generate`, `record`). Nothing here was measured; the figures are chosen so that the
leaderboard has something to tell:

- `claude-sonnet-4-6` is best overall, and rebooks flights without asking first;
- `gpt-5.4` follows, until the prompt update of the last four days makes it skip the
  confirmation before a refund;
- `glm-5-40b` is the cheapest and excellent at customer service, but cannot build pages from
  screenshots;
- `ornith-1.0-35b` is self-hosted: middling throughout, its cost is not recorded, and what the
  framework reports of its tokens is too little.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from benchmark_assets.demo.faults import FaultKind

BINDING = "binding/binding_with_widget"
SCREENSHOT = "pages/screenshot_to_code"
JAVA_SERVICE = "services/javaservice_orchestration"
REFUND = "support/refund_requires_order_lookup"
RECEIPT = "support/receipt_only"
REBOOKING = "support/rebook_flight"


@dataclass(frozen=True, kw_only=True)
class Prices:
    """US dollars per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float


@dataclass(frozen=True, kw_only=True)
class Drift:
    """From day `since` (0 is the first) on, `contract` fails at `failure_rate` by `kind`."""

    contract: str
    since: int
    failure_rate: float
    kind: FaultKind


@dataclass(frozen=True, kw_only=True)
class Model:
    """One model of the demo.

    Attributes:
        prices: None if the model is self-hosted and its traces carry no cost.
        tokens_per_second: Speed of output.
        wordiness: Factor on the length of what it writes.
        reasoning: Median of reasoning tokens per generation; None if it reports none.
        caches_writes: Whether it reports tokens written to the prompt cache.
        failure_rates: Per contract, the share of runs with a fault.
        reports_last_call: Whether the framework's report on an agent holds only what the last of
            its model calls used, as where a server leaves usage out of streams that are cut short.
        habits: Weight of each kind of fault; a kind that is not named weighs 1.
    """

    name: str
    prices: Prices | None
    tokens_per_second: float
    wordiness: float
    reasoning: float | None
    caches_writes: bool
    failure_rates: dict[str, float]
    reports_last_call: bool = False
    habits: dict[FaultKind, float] = field(default_factory=dict)
    drift: Drift | None = None


MODELS: tuple[Model, ...] = (
    Model(
        name="claude-sonnet-4-6",
        prices=Prices(input=3.0, output=15.0, cache_read=0.3, cache_write=3.75),
        tokens_per_second=70,
        wordiness=1.25,
        reasoning=None,
        caches_writes=True,
        failure_rates={
            BINDING: 0.04,
            SCREENSHOT: 0.10,
            JAVA_SERVICE: 0.06,
            REFUND: 0.03,
            RECEIPT: 0.03,
            REBOOKING: 0.42,
        },
        habits={"skipped_confirmation": 9, "extra_write": 2},
    ),
    Model(
        name="gpt-5.4",
        prices=Prices(input=2.5, output=15.0, cache_read=0.25, cache_write=2.5),
        tokens_per_second=85,
        wordiness=0.9,
        reasoning=180,
        caches_writes=False,
        failure_rates={
            BINDING: 0.10,
            SCREENSHOT: 0.18,
            JAVA_SERVICE: 0.14,
            REFUND: 0.04,
            RECEIPT: 0.08,
            REBOOKING: 0.12,
        },
        habits={"missing_fact": 2, "skipped_step": 2},
        drift=Drift(contract=REFUND, since=10, failure_rate=0.75, kind="skipped_confirmation"),
    ),
    Model(
        name="glm-5-40b",
        prices=Prices(input=0.35, output=1.4, cache_read=0.07, cache_write=0.35),
        tokens_per_second=120,
        wordiness=0.8,
        reasoning=60,
        caches_writes=False,
        failure_rates={
            BINDING: 0.16,
            SCREENSHOT: 0.88,
            JAVA_SERVICE: 0.30,
            REFUND: 0.05,
            RECEIPT: 0.04,
            REBOOKING: 0.08,
        },
        habits={"early_stop": 3, "wrong_argument": 3, "missing_fact": 2},
    ),
    Model(
        name="ornith-1.0-35b",
        prices=None,
        tokens_per_second=45,
        wordiness=1.0,
        reasoning=None,
        caches_writes=False,
        failure_rates={
            BINDING: 0.24,
            SCREENSHOT: 0.34,
            JAVA_SERVICE: 0.28,
            REFUND: 0.22,
            RECEIPT: 0.16,
            REBOOKING: 0.36,
        },
        reports_last_call=True,
        habits={"tool_error": 3, "recovered_error": 2, "agent_error": 2, "forbidden_tool": 2},
    ),
)
