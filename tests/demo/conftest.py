"""What the demo's tests share: the traces and the contracts, each made once."""

from __future__ import annotations

import pytest

from benchmark_assets.adapters.contract_files import ContractSet, load_contracts
from benchmark_assets.demo import DemoTrace, contracts_folder, generate
from benchmark_assets.model.contract import Contract


@pytest.fixture(scope="session")
def traces() -> tuple[DemoTrace, ...]:
    return tuple(generate())


@pytest.fixture(scope="session")
def contract_set() -> ContractSet:
    return load_contracts([contracts_folder()])


@pytest.fixture(scope="session")
def contracts(contract_set: ContractSet) -> tuple[Contract, ...]:
    return tuple(file.contract for file in contract_set.contracts)
