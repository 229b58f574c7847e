"""Results for programs.

Belongs here: serialising a result unchanged. Does not belong here: rounding or renaming a
figure; the fields of standings are those of `model.standings`, null is unknown.
"""

from __future__ import annotations

import json

import msgspec

from benchmark_assets.model.standings import Standings


def standings_json(standings: Standings) -> bytes:
    """Serialise standings as indented JSON in UTF-8, ending in a newline.

    Fields come in the order in which the types declare them and lists in the order given, so
    equal standings give equal bytes; `msgspec.json.decode(..., type=Standings)` reads it back.
    """
    return indented(standings)


def indented(value: object) -> bytes:
    """Serialise any structs and JSON data as indented JSON in UTF-8, ending in a newline."""
    compact = encode(value)
    try:
        return msgspec.json.format(compact, indent=2) + b"\n"
    except msgspec.DecodeError:
        return json.dumps(json.loads(compact), indent=2).encode() + b"\n"


def encode(value: object) -> bytes:
    r"""Serialise structs and JSON data as JSON without white space.

    Names that hold lone surrogates have no UTF-8; the whole is then written in ASCII, where
    they are `\ud800` and the like. JSON allows it, though some readers (msgspec) refuse it.
    """
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        built = msgspec.to_builtins(value)
        return json.dumps(built, separators=(",", ":")).encode()
