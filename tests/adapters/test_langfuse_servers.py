"""What kind of server it is, asked of every kind."""

from __future__ import annotations

import pytest

from benchmark_assets.adapters.langfuse.credentials import Credentials
from benchmark_assets.adapters.langfuse.http import Client, LangfuseError, Limits
from benchmark_assets.adapters.langfuse.servers import Step, probe, steps
from tests.adapters.raw_server import answer, raw_server
from tests.langfuse_server import (
    ORGANISATION_KEYS,
    PROJECT,
    PUBLIC_KEY,
    SECRET_KEY,
    Mode,
    generate,
    langfuse_server,
)

KEYS = (PUBLIC_KEY, SECRET_KEY)


def client_of(url: str, keys: tuple[str, str] = KEYS) -> Client:
    credentials = Credentials(*keys, url)
    return Client(credentials, limits=Limits(attempts=2), sleep=lambda _: None)


def asked(url: str, keys: tuple[str, str] = KEYS) -> dict[str, Step]:
    with client_of(url, keys) as client:
        return {step.name: step for step in steps(client)}


@pytest.mark.parametrize(
    ("mode", "version", "api"),
    [("v1", "3.179.0", "v1"), ("dual", "4.16.0", "v2"), ("v2", "4.60.0", "v2")],
)
@pytest.mark.parametrize("page_missing", [False, True])
def test_every_kind_of_server_is_known(
    mode: Mode, version: str, api: str, page_missing: bool
) -> None:
    with langfuse_server(generate(2), mode=mode, v2_page_missing=page_missing) as server:
        with client_of(server.url) as client:
            found = probe(client)
        assert found == (version, "Tests", PROJECT, api)
        done = asked(server.url)
    assert done["Reading"].ok
    assert done["Reading"].detail == f"traces are read with API {api}"
    assert done["Server"].detail == f"version {version}"
    assert done["Keys and project"].detail == f"project 'Tests' ({PROJECT})"
    failed = {name for name, step in done.items() if not step.ok}
    one = {"Observations (API v2)"}
    other = {"Traces (API v1)", "Observations (API v1)"}
    assert failed == {"v1": one, "dual": set(), "v2": other}[mode]
    assert all(done[name].optional and done[name].cure for name in failed)


def test_an_api_can_be_set() -> None:
    with langfuse_server(generate(2), mode="dual") as server, client_of(server.url) as client:
        assert probe(client, "v1").api == "v1"
        assert probe(client, "v2").api == "v2"
        paths = {request.path for request in server.requests}
    assert "/api/public/traces" in paths


@pytest.mark.parametrize(("mode", "api"), [("v1", "v2"), ("v2", "v1")])
def test_an_api_that_the_server_does_not_have(mode: Mode, api: str) -> None:
    with langfuse_server(generate(2), mode=mode) as server, client_of(server.url) as client:
        with pytest.raises(LangfuseError, match="leave out `api`") as caught:
            probe(client, api)
        assert caught.value.kind == "gone"


@pytest.mark.parametrize("mode", ["v1", "v2"])
@pytest.mark.parametrize(
    ("keys", "kind"),
    [((PUBLIC_KEY, "sk-lf-wrong"), "unauthorized"), (ORGANISATION_KEYS, "organisation_key")],
)
def test_keys_that_may_not(mode: Mode, keys: tuple[str, str], kind: str) -> None:
    with langfuse_server(generate(2), mode=mode) as server:
        with client_of(server.url, keys) as client, pytest.raises(LangfuseError) as caught:
            probe(client)
        assert caught.value.kind == kind
        done = asked(server.url, keys)
    assert done["Server"].ok
    assert (done["Keys and project"].ok, done["Keys and project"].kind) == (False, kind)
    assert not done["Reading"].ok
    assert "from the top" in str(done["Reading"].cure)


@pytest.mark.parametrize(
    "page", [answer("<html>", "404 Not Found", "text/html"), answer("{}", "404 Not Found")]
)
def test_another_program_at_the_address(page: bytes) -> None:
    with raw_server(page) as raw, client_of(raw.url) as client:
        with pytest.raises(LangfuseError, match="no Langfuse answers here") as caught:
            probe(client)
        assert caught.value.kind == "wrong_host"


def test_a_login_page_before_the_server() -> None:
    with raw_server(answer("<html>Sign in", kind="text/html")) as raw:
        with client_of(raw.url) as client, pytest.raises(LangfuseError) as caught:
            probe(client)
        assert caught.value.kind == "not_langfuse"
        done = asked(raw.url)
    assert [step.ok for step in done.values()] == [False] * 6


@pytest.mark.parametrize("body", ["[]", '{"version": 4, "data": {}}', '{"data": [null]}'])
def test_answers_of_another_shape_break_nothing(body: str) -> None:
    with raw_server(answer(body)) as raw, client_of(raw.url) as client:
        assert probe(client) == (None, None, None, "v2")
        assert all(step.ok for step in steps(client))
