"""Names and hashes by which things are known on disk and in Dagster.

Belongs here: key encodings and content hashes, all pure and injective. Does not belong here:
where files lie (`adapters/store`) or which partitions exist (`defs/partitions`).
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import Any
from urllib.parse import quote, unquote

PATH_KEY_BYTES = 160
"""Longest encoded key that is used as it is: file names are limited to 255 bytes by common
file systems, and `contract=` and a suffix must fit beside it."""

_NOT_IN_PARTITION_KEYS = re.compile(r"[|%\x00-\x1f\x7f\ud800-\udfff]|\.\.\.|^\s|\s$")
_PATH_SAFE = "-_.~"


def path_key(key: str) -> str:
    """Encode a model name or contract id as one path component, injectively.

    Everything but letters, digits and `-_.~` is percent-encoded, and so is a leading dot, so
    that no key can name a parent folder, a hidden file or a Hive-style `a=b` folder. A key
    whose encoding is longer than `PATH_KEY_BYTES` is cut and marked with its SHA-256, which no
    encoded key contains since `%~` is never written otherwise.
    """
    # Names of files may be no text at all; Python then keeps their bytes as lone surrogates.
    encoded = quote(key, safe=_PATH_SAFE, errors="surrogatepass")
    if encoded.startswith("."):
        encoded = "%2E" + encoded[1:]
    if not encoded:
        return "%"
    if len(encoded) > PATH_KEY_BYTES:
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{encoded[: PATH_KEY_BYTES - 66]}%~{digest}"
    return encoded


def partition_key(key: str) -> str:
    """Encode a key for Dagster, which keeps `|` for itself and refuses `...` and controls.

    Readable names such as `openai/gpt-4o` stay as they are; `unpartition_key` undoes it.
    """

    def escape(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "surrogatepass"))

    return _NOT_IN_PARTITION_KEYS.sub(escape, key)


def unpartition_key(key: str) -> str:
    """Undo `partition_key`."""
    return unquote(key, errors="surrogatepass")


# Made once: `json.dumps` makes one for each value that is not spelled by default.
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
_ESCAPED = json.JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)


def canonical_json(value: Any) -> bytes:
    """Serialise JSON data so that equal data give equal bytes: sorted keys, no spaces, UTF-8."""
    return _CANONICAL.encode(value).encode()


def value_hash(value: Any) -> str:
    r"""SHA-256 in hex of JSON data, as published with the fixture format: over JSON in ASCII.

    The bytes are `canonical_json`'s with all other characters written as `\uXXXX`.
    """
    return hashlib.sha256(_ESCAPED.encode(value).encode()).hexdigest()


def value_hashes(value: Any) -> tuple[str, ...]:
    """The hashes that people may know JSON data by: `value_hash`, then over UTF-8 if it differs."""
    escaped = _ESCAPED.encode(value)
    published = hashlib.sha256(escaped.encode()).hexdigest()
    if "\\u" not in escaped:
        return (published,)
    plain = _CANONICAL.encode(value).encode("utf-8", "surrogatepass")
    return published, hashlib.sha256(plain).hexdigest()


def content_hash(*parts: bytes | str) -> str:
    """SHA-256 in hex over length-prefixed parts, so that no two part lists share a hash."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()
