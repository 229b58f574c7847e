"""What published eval sets must be read as, established by reading the files themselves.

Belongs here: for each file of real data its cases, written down by hand, and the faults of their
golden traces. Does not belong here: anything that is computed by the product.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from tests.golden.domains import DOMAINS, Tool
from tests.golden.faults import mutations
from tests.golden.plans import Json, Plan, Run

Calls = list[tuple[str, dict[str, Any]]]


class Expected(NamedTuple):
    """One case of a file: its fixture's id, what the user says, the calls, the last answer.

    `state` is what the session starts with; None if the file says nothing of it.
    """

    fixture_id: str
    turns: list[str]
    calls: Calls
    answer: str | None
    state: dict[str, Any] | None = None


def _set(device: str, status: str) -> tuple[str, dict[str, Any]]:
    return (
        "set_device_info",
        {"location": "Bedroom", "device_id": device, "status": status},
    )


HOME = "tests-integration-fixture-home_automation_agent"

ADK_GOLDEN: dict[str, list[Expected]] = {
    "ecommerce_customer_service_agent__order_query.test.json": [
        Expected(
            "tests-integration-fixture-ecommerce_customer_service_agent-order_query",
            [
                "Send an email to user user_a whose email address is alice@example.com",
                "Can you tell me the status of my order with ID 1?",
                "Cancel all pending order for the user with user id user_a",
                "What orders have I placed under the username user_b?",
            ],
            [
                ("send_email", {"email": "alice@example.com", "user_id": "user_a"}),
                ("get_order_status", {"order_id": "1"}),
                ("get_order_ids_for_user", {"user_id": "user_a"}),
                ("get_order_status", {"order_id": "1"}),
                ("get_order_status", {"order_id": "4"}),
                ("cancel_order", {"order_id": "4"}),
                ("get_order_ids_for_user", {"user_id": "user_b"}),
            ],
            "User user_b has placed one order with order ID 2.\n",
        )
    ],
    "hello_world_agent__roll_die.test.json": [
        Expected(
            "tests-integration-fixture-hello_world_agent-roll_die",
            ["Hi who are you?", "What can you do?", "Can you roll a die with 6 sides"],
            [("roll_die", {"sides": 6})],
            None,
        )
    ],
    "home_automation_agent__simple_test.test.json": [
        Expected(
            f"{HOME}-simple_test",
            ["Turn off device_2 in the Bedroom."],
            [_set("device_2", "OFF")],
            "I have set the device_2 status to off.",
        )
    ],
    "home_automation_agent__simple_test2.test.json": [
        Expected(
            "home_automation_agent__simple_test2",
            ["Turn off device_3 in the Bedroom."],
            [_set("device_3", "OFF")],
            "I have set the device_3 status to off.",
        )
    ],
    "home_automation_agent__test_files__dependent_tool_calls.test.json": [
        Expected(
            f"{HOME}-test_files-dependent_tool_calls",
            [
                "Turn off device_2 in the Bedroom.",
                "What's the status of device_2 in the Bedroom?",
            ],
            [_set("device_2", "OFF"), ("get_device_info", {"device_id": "device_2"})],
            "Status of device_2 is off.",
        )
    ],
    "home_automation_agent__test_files__memorizing_past_events__eval_data.test.json": [
        Expected(
            f"{HOME}-test_files-memorizing_past_events-eval_data",
            ["Turn off device_2 in the Bedroom.", "What's the command I just issued?"],
            [_set("device_2", "OFF")],
            "You asked me to turn off device_2 in the Bedroom.\n",
        )
    ],
    "home_automation_agent__test_files__simple_multi_turn_conversation.test.json": [
        Expected(
            f"{HOME}-test_files-simple_multi_turn_conversation",
            ["Turn off device_2 in the Bedroom.", "Turn on device_2 in the Bedroom."],
            [_set("device_2", "OFF"), _set("device_2", "ON")],
            "I have set the device 2 status to on.",
        )
    ],
    "home_automation_agent__test_files__simple_test.test.json": [
        Expected(
            f"{HOME}-test_files-simple_test",
            ["Turn off device_2 in the Bedroom.", "What's the command I just issued?"],
            [_set("device_2", "OFF")],
            "You asked me to turn off device_2 in the Bedroom.\n",
        )
    ],
    "home_automation_agent__test_files__simple_test2.test.json": [
        Expected(
            f"{HOME}-test_files-simple_test2",
            ["Turn off device_3 in the Bedroom."],
            [_set("device_3", "OFF")],
            "I have set the device_3 status to off.",
        )
    ],
    "trip_planner_agent__test_files__trip_inquiry_sub_agent.test.json": [
        Expected(
            "tests-integration-fixture-trip_planner_agent-test_files-trip_inquiry_sub_agent",
            ["Based on my interests, where should I go, Yosemite national park or Los Angeles?"],
            [],
            "Given your interests in food, shopping, and museums, Los Angeles would be a better "
            "choice than Yosemite National Park. Yosemite is primarily focused on outdoor "
            "activities and natural landscapes, while Los Angeles offers a diverse range of "
            "culinary experiences, shopping districts, and world-class museums. I will now gather "
            "information to create an in-depth guide for your trip to Los Angeles.\n",
            {
                "origin": "San Francisco",
                "interests": "Food, Shopping, Museums",
                "range": "1000 miles",
                "cities": "",
            },
        )
    ],
    "trip_planner_agent__trip_inquiry.test.json": [
        Expected(
            "trip_planner_agent__trip_inquiry",
            [
                "Hi, who are you? What can you do?",
                "I want to travel from San Francisco to an European country in fall next year. "
                "I am considering London and Paris. What is your advice?",
            ],
            [("transfer_to_agent", {"agent_name": "indentify_agent"})],
            "Okay, I can help you analyze London and Paris to determine which city is better for "
            "your trip next fall. I will consider weather patterns, seasonal events, travel costs "
            "(including flights from San Francisco), and your interests (food, shopping, and "
            "museums). After gathering this information, I'll provide a detailed report on my "
            "chosen city.\n",
        )
    ],
}
"""File in `adk-golden/` → its cases."""

HELM_SET = "jaeger-otel-agentevals/eval_set_helm.json"
HELM_RUN = "jaeger-otel-agentevals/helm.json"
"""A recorded run of what the set's case describes: it says all that is expected, and more."""

HELM = Expected(
    "helm_list_releases",
    ["list all Helm releases"],
    [("helm_list_releases", {})],
    "There are two Helm releases installed in the cluster:\n\n1. Release name: kagent\n"
    "   - Namespace: kagent\n   - Revision: 2\n   - Status: deployed\n   - Chart: kagent-0.7.14\n\n"
    "2. Release name: kagent-crds\n   - Namespace: kagent\n   - Revision: 1\n"
    "   - Status: deployed\n   - Chart: kagent-crds-0.7.14",
)


OTHER_FAULTS = frozenset(
    {"inserted forbidden tool", "forbidden tool that failed", "missing words", "unwanted words"}
)
"""Kinds of fault that eval sets say nothing of: they forbid no tool by name, and words have a fault
of their own here."""


def mutated(fixture: Json, golden: Json) -> Iterator[tuple[str, Json]]:
    """Every fault that has a place in an eval case's golden trace: kind and trace."""
    calls = golden["tools"]
    keys = {
        name: tuple(sorted({key for c in calls if c["name"] == name for key in c["arguments"]}))
        for name in dict.fromkeys(call["name"] for call in calls)
    }
    answered = golden["final"] is not None
    plan = Plan(
        domain=replace(
            DOMAINS[0],
            reads=(),
            writes=tuple(Tool(name, {}) for name in keys if not name.startswith("get_")),
        ),
        expect=fixture["expect"],
        clean=lambda _: Run(golden, []),
        legal=(tuple(call["name"] for call in calls),),
        keys=keys,
        pinned=keys,
        exact_args=frozenset(keys),
        has_schema=False,
    )
    for kind, _, trace in mutations(plan, Run(golden, ["step"] * len(calls))):
        if kind not in OTHER_FAULTS and (answered or kind != "no payload"):
            yield kind, trace
    if answered:
        yield "another answer", {**golden, "final": {"answer": "I cannot help with that."}}
