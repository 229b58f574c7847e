"""UI-to-API binding: make a widget of a page show what an operation of an API returns."""

from __future__ import annotations

from typing import NamedTuple

from benchmark_assets.demo.dice import Dice
from benchmark_assets.demo.faults import FaultKind
from benchmark_assets.demo.script import Script
from benchmark_assets.demo.use_cases.base import UseCase


class _Case(NamedTuple):
    page: str
    widget: str
    kind: str
    service: str
    controller: str
    read: str
    write: str
    path: str

    @property
    def variable(self) -> str:
        return f"sv{self.page}{self.kind.capitalize()}"


_CASES = (
    _Case(
        "Vacations",
        "vacationTable",
        "table",
        "hrdb",
        "Vacation",
        "findVacations",
        "updateVacation",
        "/hrdb/Vacation",
    ),
    _Case(
        "Employees",
        "employeeList",
        "list",
        "hrdb",
        "Employee",
        "findEmployees",
        "updateEmployee",
        "/hrdb/Employee",
    ),
    _Case(
        "Orders",
        "orderTable",
        "table",
        "ordersdb",
        "Order",
        "listOpenOrders",
        "createOrder",
        "/ordersdb/Order/open",
    ),
    _Case(
        "OrderDetails",
        "lineItemTable",
        "table",
        "ordersdb",
        "LineItem",
        "findByOrder",
        "deleteLineItem",
        "/ordersdb/LineItem",
    ),
    _Case("Leads", "leadCards", "cards", "crm", "Lead", "listLeads", "createLead", "/crm/Lead"),
    _Case(
        "Accounts",
        "accountTable",
        "table",
        "crm",
        "Account",
        "findAccounts",
        "mergeAccounts",
        "/crm/Account",
    ),
    _Case(
        "Stock",
        "stockTable",
        "table",
        "inventory",
        "Item",
        "findItems",
        "adjustItem",
        "/inventory/Item",
    ),
    _Case(
        "Warehouses",
        "warehouseMap",
        "map",
        "inventory",
        "Warehouse",
        "listWarehouses",
        "closeWarehouse",
        "/inventory/Warehouse",
    ),
    _Case(
        "Departments",
        "departmentTree",
        "tree",
        "hrdb",
        "Department",
        "getDepartmentTree",
        "updateDepartment",
        "/hrdb/Department/tree",
    ),
    _Case(
        "Payslips",
        "payslipTable",
        "table",
        "hrdb",
        "Payslip",
        "findByEmployee",
        "createPayslip",
        "/hrdb/Payslip",
    ),
    _Case(
        "Returns",
        "returnList",
        "list",
        "ordersdb",
        "Return",
        "findReturns",
        "createReturn",
        "/ordersdb/Return",
    ),
    _Case(
        "Contacts",
        "contactCards",
        "cards",
        "crm",
        "Contact",
        "findByAccount",
        "createContact",
        "/crm/Contact",
    ),
    _Case(
        "Suppliers",
        "supplierTable",
        "table",
        "inventory",
        "Supplier",
        "listSuppliers",
        "createSupplier",
        "/inventory/Supplier",
    ),
    _Case(
        "Home",
        "birthdayList",
        "list",
        "hrdb",
        "Employee",
        "findBirthdays",
        "updateEmployee",
        "/hrdb/Employee/birthdays",
    ),
)


def _api(case: _Case) -> str:
    return (
        f'{{"service": "{case.service}", "type": "DataService", "operations": ['
        f'{{"operationId": "{case.controller}Controller_{case.read}", "httpMethod": "GET", '
        f'"path": "{case.path}", "pageable": true}}, '
        f'{{"operationId": "{case.controller}Controller_{case.write}", "httpMethod": "POST", '
        f'"path": "{case.path}"}}]}}'
    )


def _page(case: _Case) -> str:
    return (
        f'<wm-page name="{case.page}"><wm-content><wm-container class="app-panel">'
        f'<wm-{case.kind} name="{case.widget}" show="true"></wm-{case.kind}>'
        "</wm-container></wm-content></wm-page>"
    )


def _play(day: int, fault: FaultKind | None, dice: Dice) -> Script:
    case = _CASES[day]
    operation = f"{case.controller}Controller_{case.read}"
    api = f"services/{case.service}/designtime/{case.service}_API.json"
    page = f"src/main/webapp/pages/{case.page}/{case.page}.html"
    variables = f"src/main/webapp/pages/{case.page}/{case.page}.variables.json"
    script = Script(
        task=f"binding/{case.page.lower()}-{case.widget}",
        prompt=(
            f"On the page {case.page}, show the result of {case.controller}.{case.read} from "
            f"the {case.service} API in the {case.kind} {case.widget}. Create the variable and "
            "bind it."
        ),
        agent="binding_agent",
    )
    script.load_skill("api_binding")
    if dice.chance(0.35):
        script.call(
            "list_resources",
            {"type": "api"},
            {"api": ["crm", "hrdb", "inventory", "ordersdb"]},
        )
    if fault != "skipped_step":
        if dice.chance(0.5):
            script.read({api: _api(case), page: _page(case)})
        else:
            script.read({api: _api(case)})
            script.read({page: _page(case)})
    if fault == "forbidden_tool":
        script.call(
            "run_shell",
            {"command": f"grep -rn {case.widget} src/main/webapp/pages"},
            f"{page}:1: {_page(case)}",
            seconds=0.9,
        )
    slip = fault == "wrong_argument" and dice.chance(0.6)
    variable = {
        "page": case.page,
        "name": case.variable,
        "type": "wm.ServiceVariable",
        "service": case.service,
        "operation": f"{case.controller}Controller_{case.write}" if slip else operation,
        "auto_update": True,
    }
    script.call(
        "create_variable",
        variable,
        {"path": variables, "variable": case.variable, "status": "created"},
        seconds=0.7,
        files=((variables, "update", None),),
    )
    if fault == "extra_write":
        script.call(
            "create_variable",
            {**variable, "name": f"{case.variable}Backup", "auto_update": False},
            {"path": variables, "variable": f"{case.variable}Backup", "status": "created"},
            seconds=0.7,
            files=((variables, "update", None),),
        )
    binding = {
        "page": case.page,
        "widget": case.widget,
        "property": "datavalue" if fault == "wrong_argument" and not slip else "dataset",
        "expression": f"bind:Variables.{case.variable}.dataSet",
    }
    if fault in ("tool_error", "recovered_error"):
        name = case.widget if fault == "tool_error" else case.widget.lower()
        reason = f"widget '{name}' not found on page {case.page}"
        script.call("bind_widget", {**binding, "widget": name}, error=reason, seconds=0.5)
        if fault == "tool_error":
            script.read({page: _page(case)})
            script.call("bind_widget", {**binding, "widget": name}, error=reason, seconds=0.5)
    if fault != "tool_error":
        script.call(
            "bind_widget",
            binding,
            {"path": page, "widget": case.widget, "status": "bound"},
            seconds=0.5,
            files=((page, "update", None),),
        )
    done = dice.pick(
        (
            f"{case.widget} on {case.page} now shows {operation}.",
            f"Done: the {case.kind} {case.widget} is connected to the {case.service} API.",
        )
    )
    detail = f" I created {case.variable} and bound it to the widget's dataset."
    script.answer = done if fault == "missing_fact" else done + detail
    return script


BINDING_WITH_WIDGET = UseCase(
    contract="binding/binding_with_widget",
    workflow="create_variable_binding",
    trace_name="create_variable_binding",
    agents=("binding_agent",),
    tags=("app-building", "binding"),
    metadata={"platform": "web", "project_id": "hr-portal"},
    decisive="bind_widget",
    faults=(
        "wrong_argument",
        "extra_write",
        "skipped_step",
        "forbidden_tool",
        "missing_fact",
        "tool_error",
        "recovered_error",
        "early_stop",
        "agent_error",
    ),
    system_tokens=5200,
    play=_play,
)
