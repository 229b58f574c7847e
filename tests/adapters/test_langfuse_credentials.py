"""Where credentials come from, and that they go nowhere."""

from __future__ import annotations

import base64
import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmark_assets.adapters.langfuse.credentials import Credentials, resolve, scrub
from benchmark_assets.model.problem import InputError

ALL = {
    "LANGFUSE_PUBLIC_KEY": "pk-env",
    "LANGFUSE_SECRET_KEY": "sk-env",
    "LANGFUSE_BASE_URL": "https://env.example",
}


def source(**own: str) -> Any:
    known = dict.fromkeys(
        ("public_key_env", "secret_key_env", "base_url_env", "base_url", "environment")
    )
    return SimpleNamespace(**{**known, **own})


def found(
    folder: Path,
    flags: dict[str, str | None] | None = None,
    env: dict[str, str] | None = None,
    own: Any = None,
) -> Credentials:
    return resolve(flags=flags or {}, env=ALL if env is None else env, folder=folder, source=own)


def test_each_place_wins_over_those_after_it(tmp_path: Path) -> None:
    names = ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY", "LANGFUSE_BASE_URL")

    def lines(word: str) -> str:
        values = (f"pk-{word}", f"sk-{word}", f"https://{word}.example")
        return "".join(f"{name}={value}\n" for name, value in zip(names, values, strict=True))

    (tmp_path / ".env").write_text(lines("file"))
    assert found(tmp_path, env={}).secret_key == "sk-file"
    (tmp_path / ".env.local").write_text(lines("local"))
    assert found(tmp_path, env={}).secret_key == "sk-local"
    assert found(tmp_path).secret_key == "sk-env"
    flagged = found(tmp_path, {"LANGFUSE_SECRET_KEY": "sk-flag", "LANGFUSE_PUBLIC_KEY": None})
    assert (flagged.secret_key, flagged.public_key) == ("sk-flag", "pk-env")
    assert flagged.origins["LANGFUSE_SECRET_KEY"] == "flag"
    assert flagged.origins["LANGFUSE_PUBLIC_KEY"] == "environment"
    assert found(tmp_path, env={}).origins["LANGFUSE_BASE_URL"] == ".env.local"


def test_an_empty_value_is_none_and_does_not_hide_the_next(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("LANGFUSE_SECRET_KEY='sk-file'\n")
    env = {**ALL, "LANGFUSE_SECRET_KEY": "  "}
    assert found(tmp_path, {"LANGFUSE_SECRET_KEY": ""}, env).secret_key == "sk-file"


def test_what_a_source_names_wins_for_it_even_over_flags(tmp_path: Path) -> None:
    env = {**ALL, "TEAM_PK": "pk-team", "TEAM_SK": "sk-team", "TEAM_URL": "https://team.example"}
    own = source(
        public_key_env="TEAM_PK",
        secret_key_env="TEAM_SK",
        base_url_env="TEAM_URL",
        environment="prod",
    )
    flags: dict[str, str | None] = {"LANGFUSE_SECRET_KEY": "sk-flag", "LANGFUSE_ENVIRONMENT": "x"}
    team = found(tmp_path, flags, env, own)
    assert (team.public_key, team.secret_key) == ("pk-team", "sk-team")
    assert (team.base_url, team.environment) == ("https://team.example", "prod")
    # What it does not name comes from where it comes from for all.
    assert found(tmp_path, flags, env, source(environment="prod")).secret_key == "sk-flag"
    assert found(tmp_path, own=source(base_url="https://own.example")).base_url == (
        "https://own.example"
    )


def test_a_variable_that_a_source_names_and_nobody_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        found(tmp_path, own=source(secret_key_env="TEAM_SK"))
    assert "TEAM_SK is not set" in str(caught.value)
    # Falling back to another project's key would ask the wrong project.
    assert "LANGFUSE_SECRET_KEY" not in str(caught.value)


def test_everything_that_is_missing_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        found(tmp_path, env={})
    assert [problem.message for problem in caught.value.problems] == [
        "LANGFUSE_PUBLIC_KEY is not set",
        "LANGFUSE_SECRET_KEY is not set",
        "LANGFUSE_BASE_URL is not set",
    ]
    assert "--langfuse-secret-key" in str(caught.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("https://cloud.langfuse.com", "https://cloud.langfuse.com"),
        ("https://cloud.langfuse.com/", "https://cloud.langfuse.com"),
        ("http://localhost:3000//", "http://localhost:3000"),
        ("https://tools.example/langfuse/", "https://tools.example/langfuse"),
        ("https://cloud.langfuse.com/api/public/", "https://cloud.langfuse.com"),
        ("https://cloud.langfuse.com/api", "https://cloud.langfuse.com"),
    ],
)
def test_addresses_are_read_in_every_spelling(tmp_path: Path, written: str, read: str) -> None:
    assert found(tmp_path, env={**ALL, "LANGFUSE_BASE_URL": written}).base_url == read


@pytest.mark.parametrize(
    "written", ["cloud.langfuse.com", "ftp://x.example", "https://", "http://[::1", "https://x:y"]
)
def test_what_is_no_address_says_so(tmp_path: Path, written: str) -> None:
    with pytest.raises(InputError, match="is not an address"):
        found(tmp_path, env={**ALL, "LANGFUSE_BASE_URL": written})


def test_a_password_in_the_address_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        found(tmp_path, env={**ALL, "LANGFUSE_BASE_URL": "https://me:hunter2@x.example"})
    assert "holds a user or a password" in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("key", ["sk-ä", "sk one", "sk-lf-1:sk-lf-2", "sk-\x07"])
def test_a_key_that_cannot_be_one_is_refused_and_not_repeated(tmp_path: Path, key: str) -> None:
    with pytest.raises(InputError) as caught:
        found(tmp_path, env={**ALL, "LANGFUSE_SECRET_KEY": key})
    assert "LANGFUSE_SECRET_KEY (from: environment) holds characters" in str(caught.value)
    assert key not in str(caught.value)


def test_the_host_stands_in_for_the_base_url(tmp_path: Path) -> None:
    env = {key: value for key, value in ALL.items() if key != "LANGFUSE_BASE_URL"}
    assert found(tmp_path, env={**env, "LANGFUSE_HOST": "https://h.example"}).base_url == (
        "https://h.example"
    )
    both = {**ALL, "LANGFUSE_HOST": "https://h.example"}
    assert found(tmp_path, env=both).base_url == "https://env.example"


@pytest.mark.parametrize(
    ("written", "asked"),
    [(None, ("default",)), ("prod", ("prod",)), ("*", ()), ("prod, staging", ("prod", "staging"))],
)
def test_environments(tmp_path: Path, written: str | None, asked: tuple[str, ...]) -> None:
    assert found(tmp_path, {"LANGFUSE_ENVIRONMENT": written}).environments == asked


def test_keys_are_in_no_repr() -> None:
    credentials = Credentials("pk-lf-marker", "sk-lf-marker", "https://x.example")
    assert "marker" not in f"{credentials!r} {credentials}"
    assert {field.name for field in dataclasses.fields(credentials) if not field.repr} == {
        "public_key",
        "secret_key",
    }


def test_scrub_takes_every_form_of_the_keys_out() -> None:
    credentials = Credentials("pk-lf-marker/1", "sk-lf-marker+2", "https://x.example")
    pair = base64.b64encode(b"pk-lf-marker/1:sk-lf-marker+2").decode()
    text = f"a sk-lf-marker+2 b pk-lf-marker/1 c {pair} d sk-lf-marker%2B2 e pk-lf-marker%2F1 f"
    assert scrub(text, credentials) == ("a [hidden] b [hidden] c [hidden] d [hidden] e [hidden] f")
