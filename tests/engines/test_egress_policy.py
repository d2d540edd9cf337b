"""Nothing leaves: a server outside the egress must see not one connection, whatever is tried."""

import asyncio
import socket
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest

from gametape.core.errors import BadInput
from gametape.core.messages import Sampling
from gametape.engines.egress_policy import EgressDenied, EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.openai import open_server_model
from tests.engines.openai.server import FaultServer, Status

ONLY_ONE = EgressPolicy(local_only=True, is_local_address=lambda address: address == ip_address("127.0.0.1"))
"""As if 127.0.0.2 were another machine."""


@pytest.fixture
def no_lookups(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Names that were looked up; looking one up fails. Literal addresses are no names."""
    looked_up: list[object] = []
    real = socket.getaddrinfo

    def record(host: object, *args: object, **kwargs: object) -> object:
        try:
            ip_address(host.decode() if isinstance(host, bytes) else str(host))
        except ValueError:
            looked_up.append(host)
            raise socket.gaierror(host) from None
        return real(host, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", record)
    return looked_up


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.2:{port}/v1",
        "http://localhost.evil.com:{port}/v1",
        "http://127.0.0.1.evil.com:{port}",
        "http://127.0.0.1@127.0.0.2:{port}/v1",
        "http://127.2:{port}/v1",
        "http://0x7f.0.0.2:{port}",
        "http://2130706434:{port}",
        "http://0177.0.0.2:{port}",
        "http://0.0.0.0:{port}",
        "http://[::ffff:127.0.0.2]:{port}",
        "http://[::]:{port}",
        "http://127.0.0.1%2e127.0.0.2:{port}",
        "http://LOCALHOST.:{port}",
        "http://evil\\@127.0.0.2:{port}",
    ],
)
def test_a_model_elsewhere_cannot_be_opened(url: str, no_lookups: list[object]) -> None:
    with FaultServer(host="127.0.0.2") as elsewhere:
        port = elsewhere.url.rpartition(":")[2]
        with pytest.raises((EgressDenied, BadInput)):
            open_server_model("openai:tiny@" + url.format(port=port), ONLY_ONE)
        assert elsewhere.connections == 0
    assert no_lookups == []


def test_a_redirect_leads_nowhere() -> None:
    with FaultServer(host="127.0.0.2") as elsewhere:
        away = Status(307, {"location": f"{elsewhere.url}/v1/chat/completions"})
        with FaultServer(faults=[away]) as here, pytest.raises(EngineError, match="redirects") as caught:
            asyncio.run(_ask(here, ONLY_ONE))
        assert caught.value.kind == "refused"
        assert elsewhere.connections == 0


def test_the_client_itself_refuses_even_when_it_is_told_to_follow() -> None:
    async def follow() -> None:
        async with ONLY_ONE.http_client(httpx.Timeout(5)) as client:
            client.follow_redirects = True
            await client.post(f"{here.url}/v1/chat/completions", json={"messages": []})

    with FaultServer(host="127.0.0.2") as elsewhere:
        away = Status(307, {"location": f"{elsewhere.url}/v1/chat/completions"})
        with FaultServer(faults=[away]) as here, pytest.raises(EngineError, match="not this machine"):
            asyncio.run(follow())
        assert elsewhere.connections == 0


def test_proxies_of_the_environment_are_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with FaultServer(host="127.0.0.2") as proxy, FaultServer(["here"]) as here:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setenv(name, proxy.url)
        assert asyncio.run(_ask(here, ONLY_ONE)) == "here"
        assert asyncio.run(_ask(here, EgressPolicy())) == "here"
        assert proxy.connections == 0


def test_localhost_is_this_machine_without_being_looked_up(no_lookups: list[object]) -> None:
    with FaultServer(["here"]) as here:
        name = f"openai:tiny@http://localhost:{here.url.rpartition(':')[2]}/v1"
        assert asyncio.run(_ask(here, EgressPolicy(local_only=True), name)) == "here"
    assert no_lookups == []


def test_a_local_model_that_fails_sends_nothing_elsewhere() -> None:
    with FaultServer(host="127.0.0.2") as elsewhere:
        with FaultServer(faults=[Status(500)]) as here, pytest.raises(EngineError) as caught:
            asyncio.run(_ask(here, ONLY_ONE))
        assert caught.value.kind == "server_error"
        assert elsewhere.connections == 0


@pytest.mark.parametrize(("host", "local"), [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True)])
def test_what_is_this_machine(host: str, local: bool) -> None:
    assert EgressPolicy().is_local(host) is local


@pytest.mark.parametrize(
    "host", ["10.0.0.1", "::1%lo", "localhost.localdomain", "", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "evil", "127.1"]
)
def test_what_is_not(host: str) -> None:
    assert not EgressPolicy().is_local(host)


def test_work_in_a_private_directory_stays_here(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    (secret / "inner").mkdir(parents=True)
    (tmp_path / "open").mkdir()
    (tmp_path / "link").symlink_to(secret)
    egress = EgressPolicy(private_paths=(secret,))
    private = [name for name in ("secret", "secret/inner", "link/inner", ".") if _stays(egress, tmp_path / name)]
    assert private == ["secret", "secret/inner", "link/inner", "."]
    assert not _stays(egress, tmp_path / "open")
    assert not _stays(egress, tmp_path / "secret-not")


def _stays(egress: EgressPolicy, path: Path) -> bool:
    return egress.for_path(path).local_only


async def _ask(server: FaultServer, egress: EgressPolicy, name: str | None = None) -> str:
    model = open_server_model(name or f"openai:tiny@{server.url}", egress)
    try:
        conversation = model.start_conversation(Sampling())
        conversation.begin("s", [], "u")
        return (await conversation.ask(50)).text
    finally:
        await model.close()
