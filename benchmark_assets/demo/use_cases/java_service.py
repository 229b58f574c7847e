"""JavaService Orchestration: a Java service that combines two services of the project."""

from __future__ import annotations

from typing import NamedTuple

from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.faults import FaultKind
from benchmark_assets.demo.script import Script
from benchmark_assets.demo.use_cases.base import UseCase


class _Case(NamedTuple):
    name: str
    module: str
    first: str
    second: str
    method: str
    purpose: str


_CASES = (
    _Case(
        "PayrollService",
        "payroll",
        "hrdb",
        "ledger",
        "postMonthlyTotals",
        "sums the payslips of a month and posts the total to the ledger",
    ),
    _Case(
        "OnboardingService",
        "onboarding",
        "hrdb",
        "mail",
        "welcomeEmployee",
        "creates an employee and sends the welcome mail",
    ),
    _Case(
        "RestockService",
        "restock",
        "inventory",
        "suppliers",
        "orderMissingItems",
        "finds items below their minimum and orders them",
    ),
    _Case(
        "InvoiceService",
        "invoicing",
        "ordersdb",
        "ledger",
        "invoiceOrder",
        "turns a shipped order into an invoice and books it",
    ),
    _Case(
        "LeadScoringService", "leads", "crm", "webstats", "scoreLead", "rates a lead by its visits"
    ),
    _Case(
        "VacationService",
        "vacation",
        "hrdb",
        "calendar",
        "approveVacation",
        "approves a vacation and blocks the days in the calendar",
    ),
    _Case(
        "ReturnsService",
        "returns",
        "ordersdb",
        "inventory",
        "acceptReturn",
        "accepts a return and puts the item back into stock",
    ),
    _Case(
        "CreditCheckService",
        "credit",
        "crm",
        "bureau",
        "checkAccount",
        "asks the bureau for an account's rating and stores it",
    ),
    _Case(
        "ShippingService",
        "shipping",
        "ordersdb",
        "carrier",
        "shipOrder",
        "books a parcel for an order and stores its tracking number",
    ),
    _Case(
        "OvertimeService",
        "overtime",
        "hrdb",
        "timesheets",
        "balanceOvertime",
        "adds the overtime of a week to the employee's account",
    ),
    _Case(
        "CampaignService",
        "campaigns",
        "crm",
        "mail",
        "startCampaign",
        "sends a campaign to the contacts of a segment",
    ),
    _Case(
        "AuditService",
        "audit",
        "ledger",
        "archive",
        "archiveYear",
        "exports a closed year to the archive",
    ),
    _Case(
        "TransferService",
        "transfer",
        "inventory",
        "carrier",
        "moveStock",
        "moves stock between two warehouses",
    ),
    _Case(
        "DirectoryService",
        "directory",
        "hrdb",
        "ldap",
        "syncEmployees",
        "brings the directory up to date with the employees",
    ),
)


def _source(case: _Case) -> str:
    first, second = case.first.capitalize(), case.second.capitalize()
    return (
        f"package com.example.portal.{case.module};\n\n"
        f"@ExposeToClient\npublic class {case.name} {{\n\n"
        f"    @Autowired\n    private {first}Client {case.first};\n\n"
        f"    @Autowired\n    private {second}Client {case.second};\n\n"
        f"    /** {case.purpose[0].upper()}{case.purpose[1:]}. */\n"
        f"    public Result {case.method}(String id) {{\n"
        f"        return {case.second}.apply({case.first}.read(id));\n    }}\n}}\n"
    )


def _api(service: str) -> str:
    return (
        f'{{"service": "{service}", "operations": [{{"operationId": "read", '
        f'"httpMethod": "GET"}}, {{"operationId": "apply", "httpMethod": "POST"}}]}}'
    )


def _play(day: int, fault: FaultKind | None, dice: Dice) -> Script:
    case = _CASES[day]
    path = f"services/{case.name}/src/com/example/portal/{case.module}/{case.name}.java"
    script = Script(
        task=f"javaservice/{case.name}",
        prompt=(
            f"Write a Java service {case.name} that {case.purpose}. Use the existing services "
            f"{case.first} and {case.second}, expose it to the client, and build the project."
        ),
        agent="planner",
    )
    if dice.chance(0.6):
        script.call("list_resources", {"type": "service"}, {"service": [case.first, case.second]})
    script.agent = "java_developer"
    script.load_skill("java_service")
    script.read(
        {
            f"services/{service}/designtime/{service}_API.json": _api(service)
            for service in (case.first, case.second)
        }
    )
    wrong_package = fault == "wrong_argument" and dice.chance(0.5)
    script.call(
        "create_java_service",
        {
            "name": case.name,
            "package": "com.acme.app" if wrong_package else f"com.example.portal.{case.module}",
        },
        {"service": case.name, "path": path, "status": "created"},
        seconds=1.1,
        files=((path, "create", None),),
    )
    if fault == "extra_write":
        script.call(
            "create_java_service",
            {"name": f"{case.name}Helper", "package": f"com.example.portal.{case.module}"},
            {"service": f"{case.name}Helper", "status": "created"},
            seconds=1.1,
        )
    source = _source(case)
    if fault == "wrong_argument" and not wrong_package:
        source = source.replace("@ExposeToClient\n", "")
    build = {"goals": ["clean", "verify"] if dice.chance(0.8) else ["verify", "clean"]}
    client = case.first.capitalize()
    mistaken = source.replace(f"{client}Client", f"{client}Api")
    broken = f"COMPILATION ERROR: {case.name}.java:[7,13] cannot find symbol: class {client}Api"
    # A first build that fails for a wrong name is normal; giving up on it is not.
    mended = fault in (None, "missing_fact") and dice.chance(0.3)
    if mended:
        script.write(path, mistaken, "update")
        script.call("build_project", build, error=broken, seconds=38.0)
    script.write(path, mistaken if fault == "tool_error" else source, "update")
    if fault == "tool_error":
        script.call("build_project", build, error=broken, seconds=38.0)
        script.write(path, mistaken.replace("private ", ""), "update")
        script.call("build_project", build, error=broken, seconds=38.0)
    elif fault != "skipped_step":
        script.call(
            "build_project",
            build,
            {"status": "SUCCESS", "tests": {"run": dice.whole(4, 19), "failed": 0}},
            seconds=47.0,
        )
    if fault == "forbidden_tool":
        script.call(
            "deploy_service",
            {"service": case.name, "stage": "test"},
            {"status": "deployed", "url": f"https://test.example.com/{case.module}"},
            seconds=21.0,
        )
    script.agent = "planner"
    done = dice.pick(
        (
            f"{case.name}.{case.method} {case.purpose}; it is exposed to the client.",
            f"I wrote {case.name} on top of {case.first} and {case.second}.",
        )
    )
    script.answer = done if fault == "missing_fact" else f"{done} The build passed with all tests."
    return script


JAVASERVICE_ORCHESTRATION = UseCase(
    contract="services/javaservice_orchestration",
    workflow="javaservice_orchestration",
    trace_name="javaservice_orchestration",
    agents=("planner", "java_developer"),
    tags=("app-building", "java"),
    metadata={"platform": "server", "project_id": "hr-portal"},
    decisive="build_project",
    faults=(
        "wrong_argument",
        "extra_write",
        "skipped_step",
        "forbidden_tool",
        "missing_fact",
        "tool_error",
        "early_stop",
        "agent_error",
    ),
    system_tokens=6100,
    play=_play,
)
