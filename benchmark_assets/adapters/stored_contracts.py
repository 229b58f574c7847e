"""Contracts as evaluations apply them: one canonical JSON file each in the store.

Belongs here: writing and reading them. Does not belong here: the YAML people write
(`contract_files`).

Evaluations read contracts from here, so that any worker applies the same ones and an edition
can be verified long after the YAML has moved on.
"""

from __future__ import annotations

from benchmark_assets.adapters.store import CONTRACTS, Store, contract_path
from benchmark_assets.model.contract import Contract


def store_contract(store: Store, contract: Contract) -> bool:
    """Write a contract; False if the store already has just that."""
    data = contract.model_dump_json(by_alias=True, exclude_defaults=True, indent=1).encode()
    return store.write(contract_path(contract.id), data + b"\n")


def remove_contract(store: Store, contract_id: str) -> bool:
    """Remove a contract; False if it was not there."""
    return store.remove(contract_path(contract_id))


def read_contracts(store: Store) -> dict[str, Contract]:
    """All stored contracts by id, sorted."""
    found = {}
    for path in store.list(CONTRACTS, ".json"):
        data = store.read(path)
        if data is not None:
            contract = Contract.model_validate_json(data)
            found[contract.id] = contract
    return dict(sorted(found.items()))


def read_contract(store: Store, contract_id: str) -> Contract | None:
    """One stored contract, or None if the store has no such id."""
    data = store.read(contract_path(contract_id))
    return None if data is None else Contract.model_validate_json(data)
