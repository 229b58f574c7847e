"""Airline rebooking: another flight in the same cabin, after fee and fare rules are accepted."""

from __future__ import annotations

from typing import Any, NamedTuple

from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.faults import FaultKind
from benchmark_assets.demo.script import Script
from benchmark_assets.demo.use_cases.base import UseCase


class _Case(NamedTuple):
    reservation: str
    route: tuple[str, str]
    day: str
    old: str
    new: str
    departs: str


_CASES = (
    _Case("QX7R2M", ("SFO", "DEN"), "2026-12-04", "NA418", "NA422", "09:30"),
    _Case("B4K9TW", ("BOS", "ORD"), "2026-12-05", "NA101", "NA117", "14:05"),
    _Case("ZL30PD", ("SEA", "PHX"), "2026-12-07", "NA733", "NA735", "11:45"),
    _Case("M8VH5C", ("JFK", "MIA"), "2026-12-08", "NA210", "NA218", "18:20"),
    _Case("T1YN6J", ("ATL", "DFW"), "2026-12-09", "NA560", "NA566", "07:50"),
    _Case("K5WS8G", ("LAX", "PDX"), "2026-12-10", "NA840", "NA848", "16:15"),
    _Case("R9FD4X", ("IAD", "MSP"), "2026-12-11", "NA325", "NA331", "12:00"),
    _Case("H2QB7L", ("DEN", "SLC"), "2026-12-12", "NA902", "NA906", "10:10"),
    _Case("V6JT3N", ("ORD", "CLT"), "2026-12-14", "NA471", "NA479", "15:35"),
    _Case("C7PM1Z", ("PHL", "BNA"), "2026-12-15", "NA655", "NA659", "08:25"),
    _Case("W3XK9R", ("MCO", "DTW"), "2026-12-16", "NA288", "NA294", "19:40"),
    _Case("D8GL5V", ("SAN", "AUS"), "2026-12-17", "NA519", "NA523", "13:15"),
    _Case("N4ZC2H", ("MSY", "IAH"), "2026-12-18", "NA760", "NA764", "17:05"),
    _Case("J6BY8S", ("RDU", "BWI"), "2026-12-19", "NA137", "NA143", "06:55"),
)

FARE_RULES = (
    "Economy Standard: one change before departure for a fee of 75 USD. The new fare must be "
    "in the same cabin. The fee is not refundable."
)


def _play(day: int, fault: FaultKind | None, dice: Dice) -> Script:
    case = _CASES[day]
    origin, destination = case.route
    script = Script(
        task=f"rebooking/{case.reservation}",
        prompt=(
            f"Please move my reservation {case.reservation} from {origin} to {destination} on "
            f"{case.day} to the flight at {case.departs}. I want to stay in economy."
        ),
        agent="travel_agent",
        ended="user_stop",
    )
    script.call(
        "get_reservation",
        {"reservation_id": case.reservation},
        {
            "reservation_id": case.reservation,
            "flights": [{"number": case.old, "date": case.day, "cabin": "economy"}],
            "passengers": 1,
            "payment": "card_on_file",
        },
    )
    if dice.chance(0.3):
        script.call("get_customer", {"reservation_id": case.reservation}, {"tier": "silver"})
    script.call(
        "search_flights",
        {"from": origin, "to": destination, "date": case.day, "cabin": "economy"},
        {
            "flights": [
                {"number": case.old, "seats": 0},
                {"number": case.new, "departs": case.departs, "seats": dice.whole(2, 30)},
            ]
        },
        seconds=1.8,
    )
    if dice.chance(0.5):
        script.call(
            "calculate_fare",
            {"reservation_id": case.reservation, "flight": case.new},
            {"difference_usd": 0.0, "fee_usd": 75.0},
        )
    if fault == "forbidden_tool":
        script.call(
            "cancel_reservation",
            {"reservation_id": case.reservation},
            error="tickets of this fare cannot be cancelled",
            seconds=1.0,
        )
    if fault != "skipped_confirmation":
        script.ask(
            "confirm_with_user",
            f"Flight {case.new} leaves at {case.departs}. The change fee is $75.00, to your "
            "card on file. Do you accept?",
            dice.pick(("Yes.", "Yes, do it.", "OK, I accept the fee.")),
            fare_rules=FARE_RULES,
        )
    slip = fault == "wrong_argument" and dice.chance(0.5)
    update: dict[str, Any] = {
        "reservation_id": case.reservation,
        "cabin": "premium_economy" if slip else "economy",
        "flights": [{"number": case.new, "date": case.day}],
        "fee_usd": 0 if fault == "wrong_argument" and not slip else 75.0,
        "payment": {"method": "card_on_file", "installments": 1},
    }
    sold_out = fault is None and dice.chance(0.12)
    if sold_out or fault == "tool_error":
        script.call(
            "update_reservation", update, error="inventory changed, repeat the search", seconds=2.2
        )
        script.call(
            "search_flights",
            {"from": origin, "to": destination, "date": case.day, "cabin": "economy"},
            {"flights": [{"number": case.new, "departs": case.departs, "seats": 1}]},
            seconds=1.8,
        )
    if fault == "tool_error":
        script.call(
            "update_reservation", update, error="inventory changed, repeat the search", seconds=2.2
        )
    else:
        script.call(
            "update_reservation",
            update,
            {"reservation_id": case.reservation, "status": "confirmed", "flight": case.new},
            seconds=2.2,
        )
    if fault == "extra_write":
        script.call(
            "send_certificate",
            {"reservation_id": case.reservation, "amount_usd": 50},
            {"certificate": dice.hex(10).upper()},
            seconds=0.8,
        )
    moved = f"You are on {case.new} at {case.departs} on {case.day}, in economy."
    fee = dice.pick(
        ("The change fee of $75.00 went to your card.", "Your card was billed a change fee of $75.")
    )
    script.answer = moved if fault == "missing_fact" else f"{moved} {fee}"
    return script


REBOOK_FLIGHT = UseCase(
    contract="support/rebook_flight",
    workflow="airline_rebooking",
    trace_name="travel-desk",
    agents=("travel_agent",),
    tags=("customer-service", "rebooking"),
    metadata={"channel": "chat", "policy": "fares-v3"},
    decisive="update_reservation",
    faults=(
        "wrong_argument",
        "extra_write",
        "skipped_confirmation",
        "forbidden_tool",
        "missing_fact",
        "tool_error",
        "early_stop",
        "agent_error",
    ),
    system_tokens=3400,
    play=_play,
)
