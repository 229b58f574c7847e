"""A refund to the original card: look up, ask, pay once."""

from __future__ import annotations

import json
from typing import Any

from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.faults import FaultKind
from benchmark_assets.demo.script import Script
from benchmark_assets.demo.use_cases.base import UseCase

# (order, amount in US dollars, item)
_CASES = (
    (1842, 64.90, "desk lamp"),
    (1907, 129.00, "running shoes"),
    (2015, 18.50, "phone case"),
    (2098, 349.99, "espresso machine"),
    (2144, 42.00, "board game"),
    (2203, 1249.00, "road bike"),
    (2267, 27.95, "cookbook"),
    (2310, 89.90, "backpack"),
    (2388, 219.00, "headphones"),
    (2451, 15.00, "plant pot"),
    (2509, 74.25, "rain jacket"),
    (2566, 530.00, "office chair"),
    (2617, 36.40, "chess set"),
    (2690, 159.95, "air purifier"),
)


def _play(day: int, fault: FaultKind | None, dice: Dice) -> Script:
    order, amount, item = _CASES[day]
    script = Script(
        task=f"refund/{order}",
        prompt=dice.pick(
            (
                f"Refund order {order} to the original card.",
                f"Hi, the {item} does not fit. Please refund order {order} to my card.",
            )
        ),
        agent="support_agent",
        ended="user_stop",
    )

    def get_order() -> None:
        script.call(
            "get_order",
            {"order_id": str(order)},
            {
                "order_id": str(order),
                "customer_id": f"C{order * 7}",
                "items": [{"name": item, "price": amount}],
                "payment": {"method": "card", "last4": f"{order * 3 % 10000:04d}"},
                "status": "delivered",
            },
        )

    def get_customer() -> None:
        script.call(
            "get_customer",
            {"customer_id": f"C{order * 7}"},
            {"customer_id": f"C{order * 7}", "tier": "standard", "open_refunds": 0},
        )

    lookups = dice.weighted(
        (
            ((get_order,), 5.0),
            ((get_order, get_customer), 3.0),
            ((get_customer, get_order), 2.0),
        )
    )
    for lookup in lookups:
        lookup()
    if fault != "skipped_confirmation":
        script.ask(
            "ask_user",
            f"I can refund ${amount:,.2f} for the {item} to the card you paid with. Shall I?",
            dice.pick(("Yes, please.", "Yes, go ahead.", "Sure, thanks!")),
        )
    if fault == "forbidden_tool":
        script.call(
            "charge_card",
            {"order_id": str(order), "amount": {"currency": "USD", "value": 4.95}},
            {"charge_id": f"ch_{dice.hex(8)}", "reason": "return shipping"},
            seconds=1.4,
        )
    refund: dict[str, Any] = {
        "order_id": str(order),
        "method": "store_credit" if fault == "wrong_argument" else "original_card",
        "amount": {"currency": "USD", "value": amount},
    }
    refund_id = f"rf_{dice.hex(8)}"
    if fault in ("tool_error", "recovered_error"):
        script.call(
            "refund_payment", refund, error="payment gateway: 504 upstream timeout", seconds=10.0
        )
    if fault != "tool_error":
        script.call("refund_payment", refund, {"status": "ok", "refund_id": refund_id}, seconds=1.4)
    if fault == "extra_write":
        script.call(
            "refund_payment",
            refund,
            {"status": "ok", "refund_id": f"rf_{dice.hex(8)}"},
            seconds=1.4,
        )
    # A schema-valid payload even where the path went wrong: only the trace tells them apart.
    payload: dict[str, Any] = {"status": "ok", "refund_id": refund_id}
    if fault == "tool_error":
        payload = {"status": "needs_human", "refund_id": None}
    elif fault == "missing_fact":
        payload = {"status": "refunded"} if dice.chance(0.5) else {"status": "ok"}
    script.answer = json.dumps(payload)
    return script


REFUND_REQUIRES_ORDER_LOOKUP = UseCase(
    contract="support/refund_requires_order_lookup",
    workflow="support_refund",
    trace_name="support-chat",
    agents=("support_agent",),
    tags=("customer-service", "refund"),
    metadata={"channel": "chat", "policy": "returns-v4"},
    decisive="refund_payment",
    faults=(
        "wrong_argument",
        "extra_write",
        "skipped_confirmation",
        "forbidden_tool",
        "missing_fact",
        "tool_error",
        "recovered_error",
        "early_stop",
        "agent_error",
    ),
    system_tokens=2900,
    play=_play,
)
