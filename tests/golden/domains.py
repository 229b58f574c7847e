"""Made-up businesses that the golden corpus is about: their tools, arguments and payloads.

Belongs here: vocabulary. Does not belong here: fixtures, traces or faults (`corpus`).

A tool's first word says what it does, so that a fixture may leave out which tools write.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

Make = Callable[[Random], Any]


def number(low: int, high: int) -> Make:
    return lambda rng: rng.randint(low, high)


def code(prefix: str) -> Make:
    return lambda rng: f"{prefix}-{rng.randint(1000, 9999)}"


def one_of(*values: Any) -> Make:
    return lambda rng: rng.choice(values)


def some_of(*values: Any) -> Make:
    return lambda rng: rng.sample(values, rng.randint(1, len(values)))


@dataclass(frozen=True)
class Tool:
    """A tool: its name, and how each argument's values are made."""

    name: str
    args: dict[str, Make]


@dataclass(frozen=True)
class Domain:
    """A business.

    Attributes:
        reads: Tools that look; at least four.
        writes: Tools that change something; at least three.
        asides: Reading tools that no path names.
        forbidden: Writing tools that no path names and fixtures forbid.
        unlisted: A writing tool that no path names and no fixture forbids.
        status: Values of the payload's `status`.
        reference: The payload's field that names what was made; a text or null.
    """

    name: str
    wish: str
    reads: tuple[Tool, ...]
    writes: tuple[Tool, ...]
    asides: tuple[Tool, ...]
    forbidden: tuple[Tool, ...]
    unlisted: Tool
    status: tuple[str, ...]
    reference: str


DOMAINS: tuple[Domain, ...] = (
    Domain(
        name="refund",
        wish="Refund order {} to the original card.",
        reads=(
            Tool("get_order", {"order_id": code("o")}),
            Tool("get_customer", {"customer_id": code("c"), "region": one_of("eu", "us")}),
            Tool("list_payments", {"order_id": code("o"), "limit": number(1, 50)}),
            Tool("check_policy", {"topic": one_of("refund", "return"), "year": number(2020, 2026)}),
        ),
        writes=(
            Tool(
                "refund_payment",
                {
                    "order_id": code("o"),
                    "method": one_of("card", "voucher"),
                    "cents": number(100, 9999),
                },
            ),
            Tool("send_receipt", {"order_id": code("o"), "copy": one_of(True, False)}),
            Tool("update_order", {"order_id": code("o"), "state": one_of("refunded", "closed")}),
        ),
        asides=(
            Tool("search_articles", {"query": one_of("refund", "card")}),
            Tool("get_exchange_rate", {"currency": one_of("EUR", "USD")}),
        ),
        forbidden=(
            Tool("charge_card", {"order_id": code("o"), "cents": number(100, 9999)}),
            Tool("create_order", {"sku": code("s")}),
        ),
        unlisted=Tool("add_credit", {"customer_id": code("c"), "cents": number(100, 999)}),
        status=("ok", "needs_human"),
        reference="refund_id",
    ),
    Domain(
        name="booking",
        wish="Move reservation {} to the evening flight.",
        reads=(
            Tool("get_reservation", {"reservation_id": code("r")}),
            Tool("search_flights", {"origin": one_of("TXL", "LIS"), "day": number(1, 28)}),
            Tool("get_fare", {"flight": code("f"), "cabin": one_of("economy", "business")}),
            Tool("list_seats", {"flight": code("f"), "row": number(1, 40)}),
        ),
        writes=(
            Tool(
                "update_reservation",
                {"reservation_id": code("r"), "flight": code("f"), "bags": number(0, 3)},
            ),
            Tool("assign_seat", {"reservation_id": code("r"), "row": number(1, 40)}),
            Tool("send_itinerary", {"reservation_id": code("r"), "language": one_of("en", "pt")}),
        ),
        asides=(
            Tool("find_lounge", {"airport": one_of("TXL", "LIS")}),
            Tool("get_weather", {"airport": one_of("TXL", "LIS")}),
        ),
        forbidden=(
            Tool("cancel_reservation", {"reservation_id": code("r")}),
            Tool("book_hotel", {"city": one_of("Lisbon", "Berlin")}),
        ),
        unlisted=Tool("add_insurance", {"reservation_id": code("r")}),
        status=("changed", "waitlisted", "refused"),
        reference="ticket",
    ),
    Domain(
        name="home",
        wish="Switch off everything in room {}.",
        reads=(
            Tool("list_devices", {"room": code("room")}),
            Tool("get_device", {"device_id": code("d"), "verbose": one_of(True, False)}),
            Tool("read_meter", {"meter": code("m"), "hours": number(1, 48)}),
            Tool("get_schedule", {"room": code("room"), "day": number(1, 28)}),
        ),
        writes=(
            Tool(
                "set_device",
                {"device_id": code("d"), "status": one_of("ON", "OFF"), "level": number(0, 100)},
            ),
            Tool("lock_door", {"door": code("door"), "for_minutes": number(1, 90)}),
            Tool("create_scene", {"room": code("room"), "devices": some_of("lamp", "fan", "tv")}),
        ),
        asides=(
            Tool("get_temperature", {"room": code("room")}),
            Tool("list_rooms", {"floor": number(0, 3)}),
        ),
        forbidden=(
            Tool("unlock_door", {"door": code("door")}),
            Tool("delete_device", {"device_id": code("d")}),
        ),
        unlisted=Tool("rename_device", {"device_id": code("d"), "name": one_of("lamp", "fan")}),
        status=("done", "partly"),
        reference="scene",
    ),
    Domain(
        name="desk",
        wish="Close ticket {} if it has been answered.",
        reads=(
            Tool("get_ticket", {"ticket_id": code("t")}),
            Tool("list_replies", {"ticket_id": code("t"), "limit": number(1, 20)}),
            Tool("search_tickets", {"query": one_of("invoice", "login"), "open": one_of(True)}),
            Tool("get_agent", {"agent": code("a"), "team": one_of("billing", "access")}),
        ),
        writes=(
            Tool(
                "close_ticket",
                {
                    "ticket_id": code("t"),
                    "reason": one_of("solved", "duplicate"),
                    "hours": number(1, 99),
                },
            ),
            Tool("assign_ticket", {"ticket_id": code("t"), "agent": code("a")}),
            Tool("notify_user", {"ticket_id": code("t"), "channels": some_of("mail", "chat")}),
        ),
        asides=(
            Tool("find_macro", {"topic": one_of("closing", "thanks")}),
            Tool("get_calendar", {"week": number(1, 52)}),
        ),
        forbidden=(
            Tool("delete_ticket", {"ticket_id": code("t")}),
            Tool("ban_user", {"user": code("u")}),
        ),
        unlisted=Tool("merge_tickets", {"first": code("t"), "second": code("t")}),
        status=("closed", "left_open"),
        reference="note",
    ),
    Domain(
        name="stock",
        wish="Reserve item {} for the Lisbon shop.",
        reads=(
            Tool("check_stock", {"sku": code("s")}),
            Tool("get_supplier", {"supplier": code("v"), "country": one_of("PT", "DE")}),
            Tool("list_warehouses", {"city": one_of("Lisbon", "Porto"), "limit": number(1, 9)}),
            Tool("get_price", {"sku": code("s"), "pieces": number(1, 500)}),
        ),
        writes=(
            Tool(
                "reserve_stock",
                {"sku": code("s"), "warehouse": code("w"), "pieces": number(1, 500)},
            ),
            Tool("send_order", {"supplier": code("v"), "express": one_of(True, False)}),
            Tool("update_label", {"sku": code("s"), "tags": some_of("new", "sale", "last")}),
        ),
        asides=(
            Tool("get_route", {"warehouse": code("w")}),
            Tool("search_catalogue", {"query": one_of("lamp", "chair")}),
        ),
        forbidden=(
            Tool("destroy_stock", {"sku": code("s")}),
            Tool("pay_supplier", {"supplier": code("v"), "cents": number(100, 9999)}),
        ),
        unlisted=Tool("move_stock", {"sku": code("s"), "warehouse": code("w")}),
        status=("reserved", "ordered", "none_left"),
        reference="slip",
    ),
)
