"""The demo's contracts load without a complaint, and together show every section there is."""

from __future__ import annotations

from typing import Any

import pytest

from benchmark_assets.adapters.contract_files import ContractSet
from benchmark_assets.demo import USE_CASES, contracts_folder
from benchmark_assets.demo import files as demo_files
from benchmark_assets.model.contract import AppliesTo, Contract
from benchmark_assets.model.matchers import MATCHERS
from benchmark_assets.model.problem import InputError


def _matchers(value: Any) -> set[str]:
    """Names of the matchers in expected arguments, at any depth."""
    if isinstance(value, list):
        return {name for item in value for name in _matchers(item)}
    if not isinstance(value, dict):
        return set()
    return {key for key in value if key in MATCHERS} | {
        name for item in value.values() for name in _matchers(item)
    }


def test_contracts_load_without_problem_or_warning(contract_set: ContractSet) -> None:
    assert contract_set.problems == ()
    assert contract_set.warnings == ()
    ids = {file.contract.id for file in contract_set.contracts}
    assert ids == {use_case.contract for use_case in USE_CASES}
    assert "binding/binding_with_widget" in ids


def test_contracts_fall_into_two_groups_of_three(contracts: tuple[Contract, ...]) -> None:
    groups = sorted(contract.group for contract in contracts)
    assert groups == ["app-building"] * 3 + ["customer-service"] * 3


def test_contracts_say_what_they_are(contracts: tuple[Contract, ...]) -> None:
    for contract in contracts:
        assert contract.name != contract.id
        assert contract.description
        path = contracts_folder() / f"{contract.id}.yaml"
        assert path.read_text(encoding="utf-8").startswith("# "), f"{path} has no comment on top"


def test_contracts_show_every_section(contracts: tuple[Contract, ...]) -> None:
    selected = {name for contract in contracts for name in contract.applies_to.model_fields_set}
    # Alternatives are what fixtures select by; `examples/golden` shows them.
    assert selected == set(AppliesTo.model_fields) - {"any_of"}

    policies = [contract.tools for contract in contracts if contract.tools]
    names = {name for policy in policies for name in policy.model_fields_set}
    assert names == {"required", "optional", "forbidden"}
    assert any("*" in tool for policy in policies for tool in policy.forbidden)

    paths = [contract.trajectory for contract in contracts if contract.trajectory]
    assert {path.order for path in paths} == {"exact", "in_order", "any_order"}
    assert {path.extra for path in paths} >= {"reads_only", "forbid"}
    calls = [call for path in paths for call in path.calls]
    # An argument more or less is noticed wherever arguments are named.
    assert {call.args_mode for call in calls} >= {"exact", "keys"}
    assert {name for call in calls for name in _matchers(call.args)} == set(MATCHERS) - {"literal"}

    finals = [contract.final for contract in contracts if contract.final]
    assert {name for final in finals for name in final.model_fields_set} >= {
        "contains",
        "not_contains",
        "schema_",
    }
    assert any(contract.ends_with for contract in contracts)
    assert {contract.trace_health.recovered_errors for contract in contracts} == {"allow", "fail"}


def test_missing_contracts_name_the_cure(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(demo_files, "__file__", str(tmp_path / "package" / "demo" / "files.py"))
    with pytest.raises(InputError, match="install the package again"):
        contracts_folder()


def test_packaged_contracts_are_found_without_the_repository(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    package = tmp_path / "site-packages" / "benchmark_assets" / "demo"
    packaged = package / "contracts" / "binding"
    packaged.mkdir(parents=True)
    (packaged / "binding_with_widget.yaml").touch()
    # Some other distribution's folder of the same name must not be taken for ours.
    (tmp_path / "site-packages" / "contracts").mkdir()
    monkeypatch.setattr(demo_files, "__file__", str(package / "files.py"))
    assert contracts_folder() == packaged.parent
