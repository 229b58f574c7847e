"""Who asks which Langfuse project: keys, address and environment, and where each came from.

Belongs here: the order in which they are looked for, and taking them out of texts. Does not
belong here: using them (`http`).

*Order*: what a source in `benchmark.yaml` names for itself; then flags; then the process's
environment; then `.env.local`; then `.env`. An empty value is none. The keys of one project are
found one by one, so that a flag can replace one of them; `origins` says where each is from.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlsplit

from dotenv import dotenv_values

from benchmark_assets.model.problem import InputError, Problem

PUBLIC_KEY = "LANGFUSE_PUBLIC_KEY"
SECRET_KEY = "LANGFUSE_SECRET_KEY"  # noqa: S105 (a variable's name)
BASE_URL = "LANGFUSE_BASE_URL"
HOST = "LANGFUSE_HOST"
ENVIRONMENT = "LANGFUSE_ENVIRONMENT"

DEFAULT_ENVIRONMENT = "default"

EVERY_ENVIRONMENT = "*"

HIDDEN = "[hidden]"

_ENV_FILES = (".env.local", ".env")

_SHORTEST_SECRET = 4


class SourceKeys(Protocol):
    """What a source in `benchmark.yaml` may say for itself; all may be None."""

    @property
    def public_key_env(self) -> str | None:
        """Name of the variable that holds its public key."""

    @property
    def secret_key_env(self) -> str | None:
        """Name of the variable that holds its secret key."""

    @property
    def base_url_env(self) -> str | None:
        """Name of the variable that holds its server's address."""

    @property
    def base_url(self) -> str | None:
        """Its server's address."""

    @property
    def environment(self) -> str | None:
        """Its environment."""


@dataclass(frozen=True)
class Credentials:
    """What a server is asked with.

    Attributes:
        public_key, secret_key: The project's keys. Neither is part of the repr.
        base_url: The server's address without a path of the API and without a slash at its end.
        environment: Langfuse's environment; `*` is every one; several are joined by commas.
        origins: Where each came from, by the name of its variable: a flag, `environment`, a
            file's name, `benchmark.yaml` or `default`.
    """

    public_key: str = field(repr=False)
    secret_key: str = field(repr=False)
    base_url: str
    environment: str = DEFAULT_ENVIRONMENT
    origins: Mapping[str, str] = field(default_factory=dict, compare=False)

    @property
    def environments(self) -> tuple[str, ...]:
        """The environments to ask for; empty is every one."""
        names = tuple(name for part in self.environment.split(",") if (name := part.strip()))
        return () if EVERY_ENVIRONMENT in names else names

    def basic_auth(self) -> str:
        """The value of the `Authorization` header. A secret."""
        pair = f"{self.public_key}:{self.secret_key}".encode()
        return "Basic " + base64.b64encode(pair).decode()


def resolve(
    *,
    flags: Mapping[str, str | None],
    env: Mapping[str, str],
    folder: Path,
    source: SourceKeys | None = None,
) -> Credentials:
    """Find the credentials.

    Args:
        flags: By the variables' names; what is None or empty was not given.
        env: The process's environment.
        folder: Where `.env.local` and `.env` are looked for.
        source: A source whose own names win over everything.

    Raises:
        InputError: If a key or the address is missing or cannot be one; names every such
            variable and the cure, never a value.
    """
    places = _Places({key: value for key, value in flags.items() if value}, env, _env_files(folder))
    problems: list[Problem] = []
    found: dict[str, tuple[str, str]] = {}
    for name, own in (
        (PUBLIC_KEY, source and source.public_key_env),
        (SECRET_KEY, source and source.secret_key_env),
    ):
        value = places.find_own(own) if own else places.find(name)
        problem = _key_problem(value, own or name)
        if problem is not None:
            problems.append(problem)
        elif value is not None:
            found[name] = value
    address = _address(places, source)
    url = _base_url(address[0]) if address else _missing(_address_name(source))
    if isinstance(url, Problem):
        problems.append(url)
    elif address is not None:
        found[BASE_URL] = (url, address[1])
    found[ENVIRONMENT] = _environment(places, source)
    if problems:
        raise InputError(problems)
    return Credentials(
        public_key=found[PUBLIC_KEY][0],
        secret_key=found[SECRET_KEY][0],
        base_url=found[BASE_URL][0],
        environment=found[ENVIRONMENT][0],
        origins={name: origin for name, (_, origin) in found.items()},
    )


class _Places:
    """The places where a variable is looked for, best first."""

    def __init__(
        self,
        flags: Mapping[str, str | None],
        env: Mapping[str, str],
        files: list[tuple[str, Mapping[str, str | None]]],
    ) -> None:
        self._own: list[tuple[str, Mapping[str, str | None]]] = [("environment", env), *files]
        self._all = [("flag", flags), *self._own]

    def find(self, name: str) -> tuple[str, str] | None:
        """A variable's value, stripped, and where it is from."""
        return self._first(self._all, name)

    def find_own(self, name: str) -> tuple[str, str] | None:
        """The same for a variable of a source's own choosing: no flag can stand for it."""
        return self._first(self._own, name)

    @staticmethod
    def _first(
        places: list[tuple[str, Mapping[str, str | None]]], name: str
    ) -> tuple[str, str] | None:
        for origin, values in places:
            value = (values.get(name) or "").strip()
            if value:
                return value, origin
        return None


def _env_files(folder: Path) -> list[tuple[str, Mapping[str, str | None]]]:
    return [
        (name, dotenv_values(folder / name, interpolate=False))
        for name in _ENV_FILES
        if (folder / name).is_file()
    ]


def _missing(name: str) -> Problem:
    what = {
        BASE_URL: "the server's address, such as https://cloud.langfuse.com",
        PUBLIC_KEY: "the project's public key (pk-lf-…)",
        SECRET_KEY: "the project's secret key (sk-lf-…)",
    }.get(name, "it")
    flag = ""
    if name in (BASE_URL, PUBLIC_KEY, SECRET_KEY):
        flag = f", or give --{name.lower().replace('_', '-')}"
    return Problem(
        f"{name} is not set",
        cure=f"set {name} to {what}, in the environment or in .env.local{flag}",
    )


def _key_problem(value: tuple[str, str] | None, name: str) -> Problem | None:
    if value is None:
        return _missing(name)
    key, origin = value
    if not key.isascii() or not key.isprintable() or " " in key or ":" in key[:-1]:
        return Problem(
            f"{name} (from: {origin}) holds characters that no key has",
            cure="copy the key again, from the project's settings in Langfuse",
        )
    return None


def _address(places: _Places, source: SourceKeys | None) -> tuple[str, str] | None:
    if source is not None and source.base_url_env:
        return places.find_own(source.base_url_env)
    if source is not None and source.base_url:
        return source.base_url, "benchmark.yaml"
    return places.find(BASE_URL) or places.find(HOST)


def _address_name(source: SourceKeys | None) -> str:
    return (source.base_url_env if source is not None else None) or BASE_URL


def _base_url(text: str) -> str | Problem:
    """The address in one spelling. Never repeats a text that could hold a password."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    if "@" in parts.netloc:
        return Problem(
            f"{BASE_URL} holds a user or a password",
            cure=f"leave them out; keys go into {PUBLIC_KEY} and {SECRET_KEY}",
        )
    if parts.scheme not in ("http", "https") or not host:
        return Problem(
            f"{BASE_URL} is not an address",
            cure="write it with https:// in front, such as https://cloud.langfuse.com",
        )
    path = re.sub(r"/+(?:api(?:/public)?)?/*$", "", parts.path + "/")
    return f"{parts.scheme}://{parts.netloc}{path}"


def _environment(places: _Places, source: SourceKeys | None) -> tuple[str, str]:
    if source is not None and source.environment:
        return source.environment, "benchmark.yaml"
    return places.find(ENVIRONMENT) or (DEFAULT_ENVIRONMENT, "default")


def scrub(text: str, credentials: Credentials) -> str:
    """Take the keys, in every form in which they are sent or quoted, out of a text."""
    for secret in sorted(set(_forms(credentials)), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


def _forms(credentials: Credentials) -> Iterator[str]:
    for key in (credentials.secret_key, credentials.public_key):
        if len(key) >= _SHORTEST_SECRET:
            yield key
            yield quote(key, safe="")
            yield base64.b64encode(key.encode()).decode()
    yield credentials.basic_auth().removeprefix("Basic ")
