"""Contracts as evaluations apply them: one canonical JSON file each in the store.

Belongs here: writing and reading them. Does not belong here: the YAML people write
(`contract_files`).

Evaluations read contracts from here, so that any worker applies the same ones and an edition
can be verified long after the YAML has moved on.
"""

from __future__ import annotations

from benchmark_assets.adapters.store import ARCHIVE, CONTRACTS, Store, archive_path, contract_path
from benchmark_assets.model.contract import Contract


def store_contract(store: Store, contract: Contract) -> bool:
    """Write a contract; False if the store already has just that."""
    data = contract.model_dump_json(by_alias=True, exclude_defaults=True, indent=1).encode()
    return store.write(contract_path(contract.id), data + b"\n")


def archive_contract(store: Store, contract_id: str) -> bool:
    """Put a contract that is gone aside; False if it was not there."""
    path = contract_path(contract_id)
    return store.move(path, archive_path(path))


def archived_files(store: Store, contract_id: str) -> list[str]:
    """Paths of all that is archived of a contract: itself and its runs."""
    record = archive_path(contract_path(contract_id))
    folder = record.removesuffix(".json")
    return [path for path in (record, *store.list(folder, ".parquet")) if store.stat(path)]


def read_archived(store: Store) -> dict[str, Contract]:
    """All archived contracts by id, sorted."""
    return _read(store, ARCHIVE)


def read_contracts(store: Store) -> dict[str, Contract]:
    """All stored contracts by id, sorted."""
    return _read(store, CONTRACTS)


def _read(store: Store, folder: str) -> dict[str, Contract]:
    found = {}
    for path in store.list(folder, ".json"):
        data = store.read(path)
        if data is not None:
            with store.decoding(path):
                contract = Contract.model_validate_json(data)
            found[contract.id] = contract
    return dict(sorted(found.items()))


def read_contract(store: Store, contract_id: str) -> Contract | None:
    """One stored contract, or None if the store has no such id."""
    data = store.read(contract_path(contract_id))
    if data is None:
        return None
    with store.decoding(contract_path(contract_id)):
        return Contract.model_validate_json(data)
