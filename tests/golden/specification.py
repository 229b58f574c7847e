"""The specification of golden traces, sentence by sentence, as cases.

Belongs here: what each sentence that states a behaviour comes to, as a fixture, a trace, whether it
passes, and words that a failure must name. Does not belong here: how either is read or graded.

`CASES` are of one fixture and one trace; `SUITES` of folders. Sentences are quoted in part, so that
one can find them; those that state no behaviour (what teams should use it for, what it costs) have
no case.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One sentence, one trace.

    Attributes:
        name: Unique.
        says: Where the specification says so: a part of the sentence.
        passes: Whether the trace does.
        rule: The rule that fails, a word of `faults.RULES`; None if it passes.
        names: Texts of which each must occur in what is said of the failure: what was expected
            and what was observed.
    """

    name: str
    says: str
    fixture: Json
    trace: Json
    passes: bool = True
    rule: str | None = None
    names: tuple[str, ...] = ()


REFUND: Json = {
    "id": "refund-requires-order-lookup",
    "input": {"user": "Refund order 1842 to the original card."},
    "expect": {
        "tool_names": ["get_order", "refund_payment"],
        "required_arg_keys": {
            "get_order": ["order_id"],
            "refund_payment": ["order_id", "method"],
        },
        "forbidden_tools": ["create_order", "charge_card"],
        "must_ask_before_write": True,
        "final_schema": {
            "type": "object",
            "required": ["status", "refund_id"],
            "properties": {
                "status": {"enum": ["ok", "needs_human"]},
                "refund_id": {"type": ["string", "null"]},
            },
        },
    },
}
"""The specification's fixture, key by key."""


def call(tool: str, **arguments: Any) -> Json:
    return {"name": tool, "arguments": arguments}


LOOK = call("get_order", order_id="1842")
REFUNDED = call("refund_payment", order_id="1842", method="card")
CHARGE = call("charge_card", order_id="1842", amount=5)
PAYLOAD: Json = {"status": "ok", "refund_id": "r-77"}
HASH_1842 = "e27d74643d912de1"
"""First 16 hex digits of SHA-256 over the JSON text `"1842"`, quotes included."""


def trace(*tools: Json, asked_at: int | None = 1, final: Any = PAYLOAD, **more: Any) -> Json:
    """A recorded trace; `asked_at` calls came before its question, None means nothing was asked."""
    question = {"text": "Refund 48.50 to the card ending in 4242?", "before_tool": asked_at}
    return {
        "tools": [copy.deepcopy(tool) for tool in tools],
        "asked_clarification": asked_at is not None,
        "questions": [] if asked_at is None else [question],
        "final": final,
        **more,
    }


def as_specified(*tools: Json, asked: bool = True, final: Any = PAYLOAD) -> Json:
    """A trace as the specification's own recorder dumps it: it does not say when it asked."""
    return {"tools": list(tools), "asked_clarification": asked, "final": final}


def fixture(name: str, **expect: Any) -> Json:
    """The specification's fixture with some of what it expects replaced; None takes a key out."""
    changed = {**REFUND["expect"], **expect}
    kept = {key: value for key, value in changed.items() if value is not None}
    return {**REFUND, "id": name, "expect": kept}


GOLDEN = trace(LOOK, REFUNDED)

TWO_WAYS = fixture(
    "refund-after-both-lookups",
    tool_names=None,
    allowed_paths=[
        ["get_order", "get_customer", "refund_payment"],
        ["get_customer", "get_order", "refund_payment"],
    ],
    required_arg_keys={"refund_payment": ["order_id", "method"]},
)
CUSTOMER = call("get_customer", customer_id="c-9")

RECEIPT: Json = {
    "id": "receipt-never-charges",
    "comment": "sibling of refund-requires-order-lookup",
    "input": {"user": "Send me the receipt of order 1842."},
    "expect": {
        "tool_names": ["get_order", "send_receipt"],
        "required_arg_keys": {"get_order": ["order_id"], "send_receipt": ["order_id"]},
        "forbidden_tools": ["charge_card"],
        "final_schema": {"type": "object", "required": ["status"]},
    },
}
RECEIPT_ANY: Json = {
    **RECEIPT,
    "id": "receipt-never-charges-by-any-path",
    "expect": {
        "allowed_paths": [["send_receipt"]],
        "order": "superset",
        "forbidden_tools": ["charge_card"],
        "final_schema": {"type": "object", "required": ["status"]},
    },
}
SENT = call("send_receipt", order_id="1842")
RECEIPT_SENT = {"status": "ok"}

TWICE = fixture(
    "refund-in-two-parts",
    tool_names=["get_order", "refund_payment", "refund_payment", "refund_payment"],
)
PART = call("refund_payment", order_id="1842", method="card")
NO_METHOD = call("refund_payment", order_id="1842")

PINNED = fixture("refund-this-order", value_hashes={"refund_payment": {"order_id": HASH_1842}})


def asks_first(*path: str, **expect: Any) -> Json:
    """A fixture of a path that must ask before it writes, and says no more."""
    return fixture(
        "ask-first", tool_names=list(path), required_arg_keys={}, forbidden_tools=[], **expect
    )


def written_by(tool: str, writes: bool, **expect: Any) -> Case:
    """Whether a call of a tool without a question is a write without a question."""
    return Case(
        name=f"{tool} {'writes' if writes else 'does not write'}{' as said' if expect else ''}",
        says="a clarifying question was required before any write",
        fixture=asks_first("get_order", tool, **expect),
        trace=trace(LOOK, call(tool), asked_at=None),
        passes=not writes,
        rule="question" if writes else None,
        names=(tool,) if writes else (),
    )


CASES: list[Case] = [
    # Why the path is graded.
    Case("the golden trace", "Freeze a known-good trace once", REFUND, GOLDEN),
    Case(
        "skipped confirmation",
        "a still-correct JSON object cannot hide a skipped confirmation",
        REFUND,
        trace(LOOK, REFUNDED, asked_at=None),
        False,
        "question",
        ("refund_payment",),
    ),
    Case(
        "merged lookup",
        "or a merged lookup",
        TWO_WAYS,
        trace(call("get_order_and_customer", order_id="1842"), REFUNDED),
        False,
        "path",
        ("get_order_and_customer", "get_customer"),
    ),
    Case(
        "skipped lookup",
        "can still bag the right items after skipping the ID check",
        REFUND,
        trace(REFUNDED, asked_at=0),
        False,
        "path",
        ("get_order", "refund_payment"),
    ),
    Case(
        "neighbouring order",
        "substituting a nearby SKU",
        PINNED,
        trace(LOOK, call("refund_payment", order_id="1843", method="card")),
        False,
        "arguments",
        ("refund_payment", "order_id"),
    ),
    Case(
        "refunded twice",
        "or charging the card twice",
        REFUND,
        trace(LOOK, REFUNDED, REFUNDED),
        False,
        "path",
        ("refund_payment",),
    ),
    Case(
        "same record by another sequence",
        "produces the same booking record through a different sequence",
        fixture("both-orders", must_ask_before_write=None),
        trace(REFUNDED, LOOK),
        False,
        "path",
        ("get_order", "refund_payment"),
    ),
    Case(
        "tool swapped for its like",
        "the harness fails on the path even though a JSON Schema validator would stay green",
        REFUND,
        trace(call("get_orders", order_id="1842"), REFUNDED),
        False,
        "path",
        ("get_order", "get_orders"),
    ),
    # What a fixture stores.
    Case(
        "a version and a comment",
        "Version the fixtures when the product contract changes",
        {**REFUND, "version": "2", "comment": "2: a lookup must come first"},
        GOLDEN,
    ),
    Case(
        "free values",
        "the argument keys those tools must receive",
        REFUND,
        trace(
            call("get_order", order_id=None), call("refund_payment", order_id=7, method={"a": []})
        ),
    ),
    Case(
        "further arguments",
        "Sequence equality, key-set inclusion, and a forbidden-tool scan",
        REFUND,
        trace(LOOK, call("refund_payment", order_id="1842", method="card", reason="broken")),
    ),
    Case(
        "compared value",
        "a hash of values that are allowed to be compared",
        PINNED,
        GOLDEN,
    ),
    Case(
        "compared value of another type",
        "a hash of values that are allowed to be compared",
        PINNED,
        trace(LOOK, call("refund_payment", order_id=1842, method="card")),
        False,
        "arguments",
        ("refund_payment", "order_id"),
    ),
    Case(
        "compared value that is not there",
        "a hash of values that are allowed to be compared",
        fixture(
            "no-keys",
            required_arg_keys={},
            value_hashes={"refund_payment": {"order_id": HASH_1842}},
        ),
        trace(LOOK, call("refund_payment", method="card")),
        False,
        "arguments",
        ("refund_payment", "order_id"),
    ),
    Case(
        "random ids without hashes",
        "need looser comparators, such as key-set checks without value hashes",
        REFUND,
        trace(
            call("get_order", order_id="5f1c"),
            call("refund_payment", order_id="99ab", method="2026-03-01T10:00:00Z"),
        ),
    ),
    # Sequence equality.
    Case(
        "silent extra read",
        "cannot land with a silent extra tool call",
        REFUND,
        trace(LOOK, CUSTOMER, REFUNDED),
        False,
        "path",
        ("get_customer",),
    ),
    Case(
        "extra call at the end",
        "cannot land with a silent extra tool call",
        REFUND,
        trace(LOOK, REFUNDED, call("send_email", to="x")),
        False,
        "path",
        ("send_email",),
    ),
    Case(
        "ended early",
        "the ordered tool names",
        REFUND,
        trace(LOOK),
        False,
        "path",
        ("refund_payment",),
    ),
    Case(
        "nothing done",
        "the ordered tool names",
        REFUND,
        trace(asked_at=None, final=None),
        False,
        "path",
        ("get_order", "refund_payment"),
    ),
    Case(
        "nothing recorded",
        "CI should fail closed",
        REFUND,
        {"tools": []},
        False,
        "path",
        ("get_order", "refund_payment"),
    ),
    # Key-set inclusion.
    Case(
        "missing key",
        "key-set inclusion",
        REFUND,
        trace(LOOK, NO_METHOD),
        False,
        "arguments",
        ("refund_payment", "method"),
    ),
    Case(
        "no arguments at all",
        "key-set inclusion",
        REFUND,
        trace({"name": "get_order", "arguments": None}, REFUNDED),
        False,
        "arguments",
        ("get_order", "order_id"),
    ),
    Case(
        "both keys missing",
        "key-set inclusion",
        REFUND,
        trace(LOOK, call("refund_payment")),
        False,
        "arguments",
        ("refund_payment", "order_id", "method"),
    ),
    Case(
        "keys of a tool that is never called",
        "key-set inclusion",
        fixture(
            "keys-besides-the-path",
            required_arg_keys={"get_order": ["order_id"], "get_customer": ["customer_id"]},
        ),
        GOLDEN,
        False,
        "arguments",
        ("get_customer", "customer_id"),
    ),
    Case(
        "no keys of a tool that is never called",
        "key-set inclusion",
        fixture("no-keys-besides-the-path", required_arg_keys={"get_customer": []}),
        GOLDEN,
    ),
    Case(
        "keys of a tool that is called besides the path",
        "key-set inclusion",
        fixture(
            "keys-between",
            tool_names=None,
            allowed_paths=[["get_order", "refund_payment"]],
            order="in_order",
            required_arg_keys={"get_customer": ["customer_id"]},
        ),
        trace(LOOK, CUSTOMER, REFUNDED),
    ),
    Case(
        "keys of a tool that only one of two paths has",
        "key-set inclusion",
        fixture(
            "keys-on-one-path",
            tool_names=None,
            allowed_paths=[["get_order", "refund_payment"], ["get_order", "ask_a_person"]],
            required_arg_keys={"ask_a_person": ["why"]},
        ),
        GOLDEN,
    ),
    Case("every call has its keys", "key-set inclusion", TWICE, trace(LOOK, PART, PART, PART)),
    Case(
        "first of several calls lacks a key",
        "the sample keeps the keys of a tool's last call only",
        TWICE,
        trace(LOOK, NO_METHOD, PART, PART),
        False,
        "arguments",
        ("refund_payment", "method"),
    ),
    Case(
        "middle call lacks a key",
        "the sample keeps the keys of a tool's last call only",
        TWICE,
        trace(LOOK, PART, NO_METHOD, PART),
        False,
        "arguments",
        ("refund_payment", "method"),
    ),
    Case(
        "last call lacks a key",
        "key-set inclusion",
        TWICE,
        trace(LOOK, PART, PART, NO_METHOD),
        False,
        "arguments",
        ("refund_payment", "method"),
    ),
    # Forbidden tools.
    Case(
        "charged as well",
        "a forbidden-tool scan",
        REFUND,
        trace(LOOK, REFUNDED, CHARGE),
        False,
        "forbidden",
        ("charge_card",),
    ),
    Case(
        "charged first",
        "a forbidden-tool scan",
        REFUND,
        trace(LOOK, CHARGE, REFUNDED),
        False,
        "forbidden",
        ("charge_card",),
    ),
    Case(
        "charging failed",
        "a fixture that merely forbids a tool name",
        REFUND,
        trace(LOOK, REFUNDED, {**CHARGE, "error": "declined"}),
        False,
        "forbidden",
        ("charge_card",),
    ),
    Case(
        "new order",
        "a forbidden-tool scan",
        REFUND,
        trace(LOOK, REFUNDED, call("create_order", sku="a")),
        False,
        "forbidden",
        ("create_order",),
    ),
    # The question.
    Case(
        "asked at once",
        "a clarifying question was required before any write",
        REFUND,
        trace(LOOK, REFUNDED, asked_at=0),
    ),
    Case(
        "asked after the write",
        "the sample's flag has no order",
        REFUND,
        trace(LOOK, REFUNDED, asked_at=2),
        False,
        "question",
        ("refund_payment",),
    ),
    Case(
        "asked between writes",
        "a clarifying question was required before any write",
        TWICE,
        trace(LOOK, PART, PART, PART, asked_at=2),
        False,
        "question",
        ("refund_payment",),
    ),
    Case(
        "asked, and not recorded when",
        "Persist asked_clarification explicitly",
        REFUND,
        as_specified(LOOK, REFUNDED),
    ),
    Case(
        "not asked, as the specification records it",
        "write tools ran before a clarifying question",
        REFUND,
        as_specified(LOOK, REFUNDED, asked=False),
        False,
        "question",
        ("refund_payment",),
    ),
    Case(
        "question inside the final sentence",
        "models often hide a missing question inside a fluent final sentence",
        REFUND,
        trace(
            *(LOOK, REFUNDED),
            asked_at=None,
            final={**PAYLOAD, "message": "Done. Was that the right card?"},
        ),
        False,
        "question",
        ("refund_payment",),
    ),
    Case(
        "nothing written, nothing asked",
        "a clarifying question was required before any write",
        asks_first("get_order", "list_payments"),
        trace(LOOK, call("list_payments"), asked_at=None),
    ),
    *(
        written_by(tool, True)
        for tool in (
            *("refund_payment", "create_order", "charge_card"),
            *("update_order", "cancel_order", "delete_order", "send_email", "set_status"),
            *("book_flight", "add_note", "pay_invoice"),
        )
    ),
    *(
        written_by(tool, False)
        for tool in ("get_order", "list_orders", "search_orders", "find_order", "read_file")
    ),
    written_by("touch", True, write_tools=["touch", "push_*"]),
    written_by("push_button", True, write_tools=["touch", "push_*"]),
    written_by("update_cache", False, write_tools=["touch", "push_*"]),
    written_by("get_lock", True, write_tools=["get_lock"]),
    # The final payload.
    Case(
        "handed to a person",
        "keep the final schema check as a backstop",
        REFUND,
        trace(LOOK, REFUNDED, final={"status": "needs_human", "refund_id": None}),
    ),
    Case(
        "further fields of the payload",
        "keep the final schema check as a backstop",
        REFUND,
        trace(LOOK, REFUNDED, final={**PAYLOAD, "message": "Done."}),
    ),
    Case(
        "a status that is none",
        "the sample does not check the schema's enums",
        REFUND,
        trace(LOOK, REFUNDED, final={**PAYLOAD, "status": "HACKED"}),
        False,
        "final",
        ("status", "HACKED"),
    ),
    Case(
        "an id of another type",
        "the sample does not check the schema's types",
        REFUND,
        trace(LOOK, REFUNDED, final={**PAYLOAD, "refund_id": 77}),
        False,
        "final",
        ("refund_id", "77"),
    ),
    Case(
        "a field is missing",
        "keep the final schema check as a backstop",
        REFUND,
        trace(LOOK, REFUNDED, final={"status": "ok"}),
        False,
        "final",
        ("refund_id",),
    ),
    Case(
        "no payload",
        "keep the final schema check as a backstop",
        REFUND,
        trace(LOOK, REFUNDED, final=None),
        False,
        "final",
        (),
    ),
    Case(
        "a schema-valid payload alone",
        "rather than the only gate",
        REFUND,
        trace(asked_at=None),
        False,
        "path",
        ("get_order", "refund_payment"),
    ),
    # Several valid plans.
    Case(
        "one of two paths",
        "encode that as two allowed paths instead of deleting the assertion",
        TWO_WAYS,
        trace(LOOK, CUSTOMER, REFUNDED),
    ),
    Case(
        "the other of two paths",
        "encode that as two allowed paths instead of deleting the assertion",
        TWO_WAYS,
        trace(CUSTOMER, LOOK, REFUNDED),
    ),
    Case(
        "neither of two paths",
        "encode that as two allowed paths instead of deleting the assertion",
        TWO_WAYS,
        trace(LOOK, REFUNDED, CUSTOMER),
        False,
        "path",
        ("get_customer", "refund_payment"),
    ),
    Case(
        "half of two paths",
        "encode that as two allowed paths instead of deleting the assertion",
        TWO_WAYS,
        trace(CUSTOMER, REFUNDED),
        False,
        "path",
        ("get_order",),
    ),
    Case(
        "one path where two would be safe",
        "will fail a byte-for-byte tool sequence even when every plan is safe",
        fixture("one-way", tool_names=["get_order", "get_customer", "refund_payment"]),
        trace(CUSTOMER, LOOK, REFUNDED),
        False,
        "path",
        ("get_customer", "get_order"),
    ),
    # Negative siblings.
    Case(
        "a receipt and no more",
        "a sibling fixture asserts that charge_card never appears",
        RECEIPT,
        trace(LOOK, SENT, asked_at=None, final=RECEIPT_SENT),
    ),
    Case(
        "a receipt, and charged",
        "a sibling fixture asserts that charge_card never appears",
        RECEIPT,
        trace(LOOK, CHARGE, SENT, asked_at=None, final=RECEIPT_SENT),
        False,
        "forbidden",
        ("charge_card",),
    ),
    Case(
        "a receipt by any path",
        "a sibling fixture asserts that charge_card never appears",
        RECEIPT_ANY,
        trace(CUSTOMER, LOOK, SENT, asked_at=None, final=RECEIPT_SENT),
    ),
    Case(
        "a receipt by any path, and charged",
        "Silent regressions often arrive as extra helpfulness",
        RECEIPT_ANY,
        trace(CUSTOMER, LOOK, SENT, CHARGE, asked_at=None, final=RECEIPT_SENT),
        False,
        "forbidden",
        ("charge_card",),
    ),
    Case(
        "the missing identifier is assumed",
        "it just starts assuming the missing identifier",
        {**REFUND, "id": "which-order", "input": {"user": "Refund my order."}},
        trace(LOOK, REFUNDED, asked_at=None),
        False,
        "question",
        ("refund_payment",),
    ),
    # Replay.
    Case(
        "the agent raised",
        "re-run the same user input through the agent",
        REFUND,
        {**GOLDEN, "error": "TimeoutError: no answer within 30 s"},
        False,
        "ended",
        ("TimeoutError",),
    ),
    Case(
        "a lookup that failed",
        "grade the path",
        REFUND,
        trace({**LOOK, "error": "503"}, REFUNDED),
        False,
        "path",
        ("get_order",),
    ),
]

PATH_HASHES: dict[tuple[str, ...], str] = {
    # printf '%s' '["get_order","refund_payment"]' | sha256sum | cut -c1-16
    ("get_order", "refund_payment"): "c91c66e30e2715cd",
    (): "4f53cda18c2baa0c",
    ("get_order",): "add92fa3a4b4ae2a",
    ("refund_payment", "get_order"): "74629e6ff1bee094",
    ("prüfe",): "466fbf630d6b97b7",
}
"""Names of the tools called → `path_hash` as specified: JSON is written in ASCII, `\\u00fc`."""


@dataclass(frozen=True)
class Suite:
    """Folders of fixtures and traces, and what a run over them must say.

    Attributes:
        says: A part of the sentence.
        known: Ids that were there before, as the lock file keeps them.
        fixtures: File name → content; None if the folder is missing.
        traces: File name → content.
        results: Fixture → `PASS`, `FAIL` or `MISSING`.
        exit_code: 0 or 1.
    """

    name: str
    says: str
    known: tuple[str, ...]
    fixtures: dict[str, Json] | None
    traces: dict[str, Json]
    results: dict[str, str]
    exit_code: int


R, S = REFUND["id"], RECEIPT["id"]
RECEIPT_GOLDEN = trace(LOOK, SENT, asked_at=None, final=RECEIPT_SENT)

SUITES: list[Suite] = [
    Suite(
        *("all pass", "exit code 1 means path drift, missing keys, or a vanished golden case"),
        (R, S),
        {"refund.json": REFUND, "receipt.json": RECEIPT},
        {f"{R}.json": GOLDEN, f"{S}.json": RECEIPT_GOLDEN},
        {R: "PASS", S: "PASS"},
        0,
    ),
    Suite(
        *("one fails", "returns a non-zero status when any case fails"),
        (R, S),
        {"refund.json": REFUND, "receipt.json": RECEIPT},
        {f"{R}.json": trace(LOOK), f"{S}.json": RECEIPT_GOLDEN},
        {R: "FAIL", S: "PASS"},
        1,
    ),
    Suite(
        *(
            "a missing trace",
            "CI should fail closed on a missing trace as well as a mismatched one",
        ),
        (R, S),
        {"refund.json": REFUND, "receipt.json": RECEIPT},
        {f"{S}.json": RECEIPT_GOLDEN},
        {R: "MISSING", S: "PASS"},
        1,
    ),
    Suite(
        *("a vanished fixture", "A vanished fixture file is not a pass"),
        (R, S),
        {"refund.json": REFUND},
        {f"{R}.json": GOLDEN, f"{S}.json": RECEIPT_GOLDEN},
        {R: "PASS", S: "MISSING"},
        1,
    ),
    Suite(
        *("both vanished", "it is an untested path that used to be covered"),
        (R, S),
        {"refund.json": REFUND},
        {f"{R}.json": GOLDEN},
        {R: "PASS", S: "MISSING"},
        1,
    ),
    Suite(
        *("no fixture at all", "A vanished fixture file is not a pass"),
        (),
        {},
        {f"{R}.json": GOLDEN},
        {},
        1,
    ),
    Suite(
        *("no folder of fixtures", "A vanished fixture file is not a pass"),
        (),
        None,
        {f"{R}.json": GOLDEN},
        {},
        1,
    ),
    Suite(
        *("a golden trace beside its fixture", "store it next to the fixture"),
        (R,),
        {"refund.json": REFUND, f"{R}.golden.json": GOLDEN},
        {f"{R}.json": GOLDEN},
        {R: "PASS"},
        0,
    ),
]
