"""Screenshot2Code: build a page from a picture of it, and validate it."""

from __future__ import annotations

import json
from typing import NamedTuple

from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.faults import FaultKind
from benchmark_assets.demo.script import Script
from benchmark_assets.demo.use_cases.base import UseCase


class _Case(NamedTuple):
    page: str
    layout: str
    regions: tuple[str, ...]


_CASES = (
    _Case("Login", "single_column", ("logo", "login form", "footer")),
    _Case("Dashboard", "dashboard", ("header", "kpi row", "sales chart", "activity list")),
    _Case("RegisterCompany", "two_column", ("stepper", "company form", "help panel")),
    _Case("Profile", "two_column", ("avatar", "personal data form", "preferences")),
    _Case("Checkout", "two_column", ("address form", "payment form", "order summary")),
    _Case("SearchResults", "two_column", ("filter panel", "result cards", "pagination")),
    _Case("Invoice", "single_column", ("letterhead", "line items", "totals")),
    _Case("TeamCalendar", "dashboard", ("toolbar", "month grid", "legend")),
    _Case("Settings", "two_column", ("navigation", "notification form", "save bar")),
    _Case("ProductDetail", "two_column", ("gallery", "buy box", "reviews")),
    _Case("Onboarding", "single_column", ("progress bar", "welcome card", "next button")),
    _Case("Support", "two_column", ("topic list", "contact form", "opening hours")),
    _Case("FleetMap", "dashboard", ("map", "vehicle list", "status bar")),
    _Case("Pricing", "single_column", ("plan cards", "feature table", "questions")),
)

_TOKENS = {
    "color.primary": "#1f5fbf",
    "color.surface": "#ffffff",
    "space.md": "16px",
    "font.body": "Inter, sans-serif",
    "radius.card": "8px",
}


def _markup(case: _Case) -> str:
    sections = "".join(
        f'<section class="{region.replace(" ", "-")}" aria-label="{region}"></section>'
        for region in case.regions
    )
    return f'<main class="{case.layout}" data-page="{case.page}">{sections}</main>'


def _styles(case: _Case) -> str:
    return "".join(
        f".{region.replace(' ', '-')}{{padding:var(--space-md);"
        "background:var(--color-surface);border-radius:var(--radius-card)}"
        for region in case.regions
    )


def _play(day: int, fault: FaultKind | None, dice: Dice) -> Script:
    case = _CASES[day]
    image = f"screenshots/{case.page.lower()}.png"
    folder = f"src/main/webapp/pages/{case.page}"
    script = Script(
        task=f"screenshot/{case.page.lower()}",
        prompt=(
            f"Build the page {case.page} from the attached screenshot {image}. Use our design "
            "tokens, validate the page strictly for desktop and mobile, and report as JSON."
        ),
        agent="page_builder",
    )
    script.load_skill("screenshot_to_code")

    def look() -> None:
        script.call(
            "analyze_screenshot",
            {"image": image},
            {"width": 1440, "height": 900, "layout": case.layout, "regions": list(case.regions)},
            seconds=3.5,
        )

    def tokens() -> None:
        script.call(
            "read_design_tokens",
            {"theme": "default"},
            _TOKENS,
            files=(("src/main/webapp/themes/default/tokens.json", "read", None),),
        )

    steps = (look, tokens) if dice.chance(0.6) else (tokens, look)
    for step in steps:
        step()
    if dice.chance(0.4):
        script.call("list_components", {"kind": "form"}, ["form", "text", "select", "button"])
    script.call(
        "create_page",
        {"page": case.page, "layout": case.layout},
        {"page": case.page, "path": f"{folder}/{case.page}.html", "status": "created"},
        seconds=0.9,
        files=((f"{folder}/{case.page}.html", "create", None),),
    )
    if fault == "extra_write":
        script.call(
            "create_page",
            {"page": f"{case.page}Mobile", "layout": "single_column"},
            {
                "page": f"{case.page}Mobile",
                "path": f"src/main/webapp/pages/{case.page}Mobile/{case.page}Mobile.html",
                "status": "created",
            },
            seconds=0.9,
        )
    # Files beside the pages folder are served by nothing: the page would stay empty.
    off_track = fault == "wrong_argument" and dice.chance(0.5)
    target = f"pages/{case.page}" if off_track else folder
    script.write(f"{target}/{case.page}.html", _markup(case), "update")
    script.write(f"{target}/{case.page}.css", _styles(case))
    validation = {
        "page": case.page,
        "strict": not (fault == "wrong_argument" and not off_track),
        "viewports": ["desktop", "mobile"] if dice.chance(0.7) else ["mobile", "desktop"],
    }
    if fault in ("tool_error", "recovered_error"):
        for _ in range(2 if fault == "tool_error" else 1):
            script.call(
                "validate_page",
                validation,
                error="validation service timed out after 30 s",
                seconds=30.0,
            )
    if fault not in ("skipped_step", "tool_error"):
        script.call(
            "validate_page",
            validation,
            {"status": "passed", "issues": [], "similarity": round(dice.log_normal(0.93, 0.01), 3)},
            seconds=4.2,
        )
    report: dict[str, object] = {
        "page": case.page,
        "files": [f"{target}/{case.page}.html", f"{target}/{case.page}.css"],
        "validation": {"status": "passed", "open_issues": 0},
    }
    if fault == "missing_fact":
        if dice.chance(0.5):
            script.answer = f"The page {case.page} is ready and looks like the screenshot."
            return script
        del report["validation"]
    script.answer = json.dumps(report)
    return script


SCREENSHOT_TO_CODE = UseCase(
    contract="pages/screenshot_to_code",
    workflow="screenshot_to_code",
    trace_name="screenshot2code",
    agents=("page_builder",),
    tags=("app-building", "screenshot"),
    metadata={"platform": "web", "project_id": "hr-portal"},
    decisive="validate_page",
    faults=(
        "wrong_argument",
        "extra_write",
        "skipped_step",
        "missing_fact",
        "tool_error",
        "recovered_error",
        "early_stop",
        "agent_error",
    ),
    system_tokens=7400,
    play=_play,
)
