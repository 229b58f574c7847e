"""Contracts in the store: canonical, complete, under any id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmark_assets.adapters.contract_files import load_contracts
from benchmark_assets.adapters.store import Store, contract_path
from benchmark_assets.adapters.stored_contracts import (
    archive_contract,
    read_archived,
    read_contract,
    read_contracts,
    store_contract,
)
from benchmark_assets.model.contract import Contract

REPOSITORY = Path(__file__).resolve().parents[2]

FULL: dict[str, Any] = {
    "id": "refund/basic",
    "workflow": "refund",
    "contract_version": "1.10",
    "name": "Refund, basic",
    "group": "money",
    "description": "Ünicode, 'quotes' and\nlines",
    "applies_to": {
        "workflow": ["refund", "refunds"],
        "task": {"glob": "refund-*"},
        "tags": {"contains": "gold"},
        "prompt": {"regex": r"\brefund\b"},
        "metadata": {"tier": 5, "vip": True, "a.b": {"regex": "^x"}},
    },
    "tools": {"required": ["get_*"], "optional": "find", "forbidden": ["delete_*"]},
    "trajectory": {
        "allowed_paths": [["get_order", "refund_payment"], ["refund_payment"]],
        "order": "in_order",
        "calls": [
            {
                "tool": "refund_payment",
                "args": {
                    "amount": {"approx": 98.7, "tol": 0.01},
                    "whole": 98.0,
                    "count": 98,
                    "none": None,
                    "flag": False,
                    "nested": {"list": [1, "1", 1.5, {"any": True}]},
                    "either": {"one_of": ["a", 1, None]},
                },
                "args_mode": "exact",
                "min": 0,
                "max": 2,
            }
        ],
        "writes": ["refund_*"],
        "extra": "reads_only",
    },
    "final": {
        "contains": ["327"],
        "not_contains": "sorry",
        "schema": {"type": "object", "required": ["id"], "properties": {"id": {"const": 1.0}}},
        "scope": "conversation",
    },
    "ends_with": "user_stop",
    "trace_health": {"recovered_errors": "allow"},
}
BARE = {"id": "bare", "workflow": "w", "contract_version": "1"}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "store"))


@pytest.mark.parametrize("data", [FULL, BARE], ids=["full", "bare"])
def test_a_contract_comes_back_as_it_was(store: Store, data: dict[str, Any]) -> None:
    contract = Contract.model_validate(data)
    assert store_contract(store, contract)
    found = read_contract(store, contract.id)
    assert found == contract
    assert found is not None
    assert found.content_hash == contract.content_hash


def test_the_repositorys_contracts_come_back_as_they_were(store: Store) -> None:
    loaded = load_contracts([REPOSITORY / "contracts"])
    assert loaded.contracts
    for file in loaded.contracts:
        store_contract(store, file.contract)
    found = read_contracts(store)
    assert found == {file.contract.id: file.contract for file in loaded.contracts}
    for file in loaded.contracts:
        assert found[file.contract.id].content_hash == file.contract.content_hash


def test_the_same_contract_is_not_written_again(store: Store, tmp_path: Path) -> None:
    contract = Contract.model_validate(FULL)
    store_contract(store, contract)
    path = tmp_path / "store" / contract_path(contract.id)
    before = path.stat()
    assert not store_contract(store, Contract.model_validate(FULL))
    after = path.stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_key_order_does_not_matter(store: Store) -> None:
    backwards = dict(reversed(FULL.items()))
    assert store_contract(store, Contract.model_validate(FULL))
    assert not store_contract(store, Contract.model_validate(backwards))


def test_a_changed_contract_replaces_the_old_one(store: Store) -> None:
    store_contract(store, Contract.model_validate(FULL))
    changed = Contract.model_validate({**FULL, "contract_version": "1.11"})
    assert store_contract(store, changed)
    assert read_contracts(store) == {changed.id: changed}


@pytest.mark.parametrize(
    "contract_id",
    ["a/b", "..", "../../escape", ".hidden", "a|b", "*", "100%", "ü 模型", "x" * 300, "a\nb", "~"],
)
def test_any_id(store: Store, tmp_path: Path, contract_id: str) -> None:
    contract = Contract.model_validate({**BARE, "id": contract_id})
    store_contract(store, contract)
    assert read_contract(store, contract_id) == contract
    assert read_contracts(store) == {contract_id: contract}
    (file,) = (tmp_path / "store" / "contracts").rglob("*.json")
    assert file.parent == tmp_path / "store" / "contracts"


def test_ids_are_sorted_as_texts(store: Store) -> None:
    ids = ["b", "a/b", "a", "Z", "10", "9"]
    for contract_id in ids:
        store_contract(store, Contract.model_validate({**BARE, "id": contract_id}))
    assert list(read_contracts(store)) == sorted(ids)


def test_archiving(store: Store) -> None:
    contract = Contract.model_validate(BARE)
    store_contract(store, contract)
    assert archive_contract(store, "bare")
    assert not archive_contract(store, "bare")
    assert read_contract(store, "bare") is None
    assert read_contracts(store) == {}
    assert read_archived(store) == {"bare": contract}
