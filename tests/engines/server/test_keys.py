"""Which key arrives where, on the wire: every provider at its own server, and at servers that are not its own."""

import asyncio
from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest

from gametape.core.errors import BadInput, GametapeError, MissingDependency
from gametape.core.messages import Sampling
from gametape.engines import http_client
from gametape.engines.egress_policy import EgressDenied, EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.model_names import resolve_model
from gametape.engines.providers import PROVIDERS, ModelSettings, Provider, ProviderTable
from gametape.engines.server.address import parse_address
from gametape.engines.server.client import ServerClient, ServerLimits
from gametape.engines.server.keys import find_key
from tests.engines.openai.server import FaultServer, Status

KEYS = {provider.key_variable or "": f"key-of-{provider.name}" for provider in PROVIDERS.values()}
FAR = EgressPolicy(is_local_address=lambda address: address == ip_address("127.0.0.1"))
"""As if 127.0.0.2 were another machine."""
FOREIGN = ["https://elsewhere.example.com/v1", "http://127.0.0.1:{port}/v1", "https://api.openai.com.evil.com/v1"]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A server that every host name leads to, as if its address were that host's and its certificate good."""
    with FaultServer() as server:
        here = httpx.URL(server.url)

        def lead_here(request: httpx.Request, _address: str) -> httpx.Request:
            url = request.url.copy_with(scheme="http", host=here.host, port=here.port)
            return httpx.Request(request.method, url, headers=request.headers, stream=request.stream)

        monkeypatch.setattr(http_client, "_with_address", lead_here)
        yield server


@pytest.fixture
def all_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, key in KEYS.items():
        monkeypatch.setenv(variable, key)
    monkeypatch.delenv("GAMETAPE_API_KEY", raising=False)


def headers_of(name: str, server: FaultServer, table: ProviderTable | None = None) -> dict[str, str]:
    """The headers with a key that arrive at the server, for a request of the model's own client."""

    async def ask() -> None:
        client = ServerClient(parse_address(name, table), FAR, ServerLimits())
        try:
            await client.get("/models")
        finally:
            await client.close()

    asyncio.run(ask())
    seen = server.seen[-1].headers
    return {header: seen[header] for header in ("authorization", "x-api-key") if header in seen}


@pytest.mark.usefixtures("all_keys")
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_s_key_goes_to_its_own_server(provider: str, server: FaultServer) -> None:
    key = f"key-of-{provider}"
    wanted = {"x-api-key": key} if provider == "anthropic" else {"authorization": f"Bearer {key}"}
    assert headers_of(f"{provider}:some-model", server) == wanted
    assert server.seen[-1].headers["host"].partition(":")[0] in PROVIDERS[provider].url
    assert ("anthropic-version" in server.seen[-1].headers) == (provider == "anthropic")


@pytest.mark.usefixtures("all_keys")
@pytest.mark.parametrize("url", FOREIGN)
@pytest.mark.parametrize("provider", [*PROVIDERS, ""])
def test_no_provider_s_key_goes_anywhere_else(provider: str, url: str, server: FaultServer) -> None:
    name = f"{provider}:m@" if provider else "m@"
    url = url.format(port=httpx.URL(server.url).port)
    assert headers_of(name + url, server) == {}
    assert all("key-of" not in value for value in server.seen[-1].headers.values())


@pytest.mark.usefixtures("all_keys")
@pytest.mark.parametrize("url", FOREIGN)
@pytest.mark.parametrize("provider", [*PROVIDERS, ""])
def test_a_server_by_url_gets_the_key_for_servers_by_url(
    provider: str, url: str, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAMETAPE_API_KEY", "key-by-url")
    name = f"{provider}:m@" if provider else "m@"
    arrived = headers_of(name + url.format(port=httpx.URL(server.url).port), server)
    wanted = {"x-api-key": "key-by-url"} if provider == "anthropic" else {"authorization": "Bearer key-by-url"}
    assert arrived == wanted


@pytest.mark.usefixtures("all_keys")
def test_a_key_at_a_unix_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GAMETAPE_API_KEY", "key-by-url")
    with FaultServer(host=str(tmp_path / "s")) as server:
        assert headers_of(f"openai:m@{server.url}", server) == {"authorization": "Bearer key-by-url"}


@pytest.mark.usefixtures("all_keys")
@pytest.mark.parametrize("url", ["http://elsewhere.example.com/v1", "http://127.0.0.2:9/v1", "http://10.0.0.7/v1"])
def test_in_the_clear_to_another_host_is_refused_before_a_request(
    url: str, server: FaultServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert headers_of(f"m@{url}", server) == {}
    monkeypatch.setenv("GAMETAPE_API_KEY", "key-by-url")
    before = len(server.seen)
    for name in (f"m@{url}", f"openai:m@{url}", f"anthropic:m@{url}", f"ollama:m@{url}"):
        with pytest.raises(BadInput, match="in the clear") as caught:
            headers_of(name, server)
        assert caught.value.exit_code == 2
        assert "key-by-url" not in str(caught.value)
    assert len(server.seen) == before


@pytest.mark.parametrize("provider", [name for name, provider in PROVIDERS.items() if provider.hosted])
def test_a_hosted_provider_without_a_key_is_missing_something(
    provider: str, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GAMETAPE_API_KEY", "key-by-url")
    for variable in KEYS:
        monkeypatch.delenv(variable, raising=False)
    with pytest.raises(MissingDependency, match=f"set \\${PROVIDERS[provider].key_variable}") as caught:
        resolve_model(f"{provider}:m", tmp_path)
    assert caught.value.exit_code == 3
    assert server.seen == []


@pytest.mark.usefixtures("all_keys")
@pytest.mark.parametrize("provider", [name for name, provider in PROVIDERS.items() if provider.hosted])
def test_nothing_leaves_where_nothing_may(provider: str, server: FaultServer, tmp_path: Path) -> None:
    with pytest.raises(EgressDenied):
        resolve_model(f"{provider}:m", tmp_path, EgressPolicy(local_only=True))
    assert server.seen == []


@pytest.mark.usefixtures("all_keys")
def test_a_key_that_was_withheld_is_said_when_the_server_wants_one(tmp_path: Path) -> None:
    with FaultServer(faults=[Status(401, body='{"error": {"message": "no key"}}')]) as server:
        model = resolve_model(f"openai:tiny@{server.url}", tmp_path, EgressPolicy(local_only=True))
        conversation = model.start_conversation(Sampling())
        conversation.begin("s", [], "u")
        with pytest.raises(EngineError) as caught:
            asyncio.run(conversation.ask(5))
    text = str(caught.value)
    assert "$OPENAI_API_KEY is set but goes to its own provider only" in text
    assert "$GAMETAPE_API_KEY" in text
    assert "key-of" not in text


def test_a_provider_of_the_user_has_its_own_key(server: FaultServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "my-key")
    table = ProviderTable(
        {"mine": Provider("mine", "openai", "https://models.example.com/v1", "MY_KEY")},
        {"tiny@https://tiny.example.com/v1": ModelSettings(key_variable="MY_KEY")},
    )
    assert headers_of("mine:m", server, table) == {"authorization": "Bearer my-key"}
    assert headers_of("mine:m@https://elsewhere/v1", server, table) == {}
    assert headers_of("tiny@https://tiny.example.com/v1", server, table) == {"authorization": "Bearer my-key"}
    assert headers_of("tiny@https://else.example.com/v1", server, table) == {}
    with pytest.raises(BadInput, match="in the clear"):
        headers_of("mine:m", server, ProviderTable({"mine": Provider("mine", "openai", "http://10.1.1.1", "MY_KEY")}))


@pytest.mark.usefixtures("all_keys")
def test_settings_of_a_model_cannot_send_a_built_in_key_elsewhere() -> None:
    table = ProviderTable(settings={"openai:m@https://evil.com/v1": ModelSettings(key_variable="OPENAI_API_KEY")})
    with pytest.raises(BadInput, match="sent there only"):
        find_key(parse_address("openai:m@https://evil.com/v1", table), FAR)
    table = ProviderTable(settings={"openai:m": ModelSettings(key_variable="ANTHROPIC_API_KEY")})
    with pytest.raises(BadInput, match="sent there only"):
        find_key(parse_address("openai:m", table), FAR)


@pytest.mark.parametrize("key", ["a\nb", "é", "a\x00b"])
def test_a_key_that_no_header_can_carry(key: str) -> None:
    with pytest.raises(GametapeError, match=r"\$OPENAI_API_KEY holds characters"):
        find_key(parse_address("openai:m"), FAR, {"OPENAI_API_KEY": key})


def test_a_key_is_not_shown() -> None:
    key = find_key(parse_address("openai:m"), FAR, {"OPENAI_API_KEY": "sk-secret"})
    assert key.value == "sk-secret"
    assert "sk-secret" not in repr(key)
