"""The demo's use cases, one file each.

Belongs here: the order in which they are listed. Does not belong here: anything about one.
"""

from __future__ import annotations

from benchmark_assets.demo.use_cases.base import UseCase
from benchmark_assets.demo.use_cases.binding import BINDING_WITH_WIDGET
from benchmark_assets.demo.use_cases.java_service import JAVASERVICE_ORCHESTRATION
from benchmark_assets.demo.use_cases.rebooking import REBOOK_FLIGHT
from benchmark_assets.demo.use_cases.receipt import RECEIPT_ONLY
from benchmark_assets.demo.use_cases.refund import REFUND_REQUIRES_ORDER_LOOKUP
from benchmark_assets.demo.use_cases.screenshot import SCREENSHOT_TO_CODE

USE_CASES: tuple[UseCase, ...] = (
    BINDING_WITH_WIDGET,
    SCREENSHOT_TO_CODE,
    JAVASERVICE_ORCHESTRATION,
    REFUND_REQUIRES_ORDER_LOOKUP,
    RECEIPT_ONLY,
    REBOOK_FLIGHT,
)
"""In the order of the contracts' folders; each has fourteen cases, one for each day."""
