"""Standings for programs.

Belongs here: serialising a result unchanged. Does not belong here: rounding or renaming a
figure; the fields are those of `model.standings`, null is unknown.
"""

from __future__ import annotations

import msgspec

from benchmark_assets.model.standings import Standings


def standings_json(standings: Standings) -> bytes:
    """Serialise standings as indented JSON in UTF-8, ending in a newline.

    Fields come in the order in which the types declare them and lists in the order given, so
    equal standings give equal bytes; `msgspec.json.decode(..., type=Standings)` reads it back.
    """
    return msgspec.json.format(msgspec.json.encode(standings), indent=2) + b"\n"
