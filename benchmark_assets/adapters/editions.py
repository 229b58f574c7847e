"""Published leaderboards: every edition is kept, named by the hash of what it says.

Belongs here: writing and reading editions and the pointer to the current one. Does not belong
here: computing standings or rendering them.

An edition is a folder `leaderboard/edition=<hash>/` with `standings.json`, `provenance.json`
and, once rendered, `report.html`. The same inputs give the same hash, so they make no new
edition. When one was published is Dagster's to know: no clock is in the store.
"""

from __future__ import annotations

import msgspec

from benchmark_assets.adapters.store import LEADERBOARD, Store
from benchmark_assets.model.identity import content_hash
from benchmark_assets.model.standings import Standings

CURRENT = f"{LEADERBOARD}/current.json"


class CellProvenance(msgspec.Struct, frozen=True):
    """What one cell's figures came from: hash over its date → key map, and its runs."""

    contract: str
    model: str
    keys_sha256: str
    runs: int


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """All that went into an edition, by hash.

    `fidelity` is over all comparisons of ledgers, those still to be made included.
    """

    engine: str
    leaderboard: str
    contracts: dict[str, str]
    harnesses: dict[str, str] = {}
    plugins: dict[str, str] = {}
    cells: tuple[CellProvenance, ...]
    fidelity: str = ""


class Current(msgspec.Struct, frozen=True):
    """The pointer to the current edition, and the hash of the inputs it was computed from."""

    edition: str
    inputs: str


def edition_folder(edition: str) -> str:
    """Where an edition lies, relative to the store."""
    return f"{LEADERBOARD}/edition={edition}"


def report_path(edition: str) -> str:
    """Where an edition's HTML report lies, relative to the store."""
    return f"{edition_folder(edition)}/report.html"


def _json(value: msgspec.Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def write_edition(
    store: Store, standings: Standings, provenance: Provenance, inputs: str
) -> tuple[Standings, bool]:
    """Write an edition and point to it.

    Returns:
        The standings with their edition's name, and whether the edition is a new one.
    """
    source = _json(provenance)
    edition = content_hash(_json(msgspec.structs.replace(standings, edition="")), source)[:16]
    standings = msgspec.structs.replace(standings, edition=edition)
    folder = edition_folder(edition)
    is_new = store.write(f"{folder}/provenance.json", source)
    is_new |= store.write(f"{folder}/standings.json", _json(standings))
    store.write(CURRENT, _json(Current(edition, inputs)))
    return standings, is_new


def read_current(store: Store) -> Current | None:
    """The pointer to the current edition, or None before the first."""
    data = store.read(CURRENT)
    if data is None:
        return None
    with store.decoding(CURRENT):
        return msgspec.json.decode(data, type=Current)


def read_standings(store: Store, edition: str) -> Standings | None:
    """The standings of an edition, or None if there is no such edition."""
    path = f"{edition_folder(edition)}/standings.json"
    data = store.read(path)
    if data is None:
        return None
    with store.decoding(path):
        return msgspec.json.decode(data, type=Standings)
