from pathlib import Path

import pytest

from gametape.core.errors import BadInput
from gametape.engines.prices import Price
from gametape.engines.providers import PROVIDERS, ModelSettings, Provider, ProviderTable
from gametape.engines.server.address import parse_address

OWN = ProviderTable(
    {"mine": Provider("mine", "anthropic", "https://models.example.com/llm/v1", "MY_KEY")},
    {
        "openai:gpt-x": ModelSettings(window=999, reasoning="low"),
        "tiny@http://127.0.0.1:9/v1": ModelSettings(window=77, key_variable="TINY_KEY"),
    },
)


@pytest.mark.parametrize(
    ("url", "api", "root"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/"),
        ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/"),
        ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/"),
        ("https://host/api/v1", "https://host/api/v1", "https://host/api"),
        ("https://host/beta/openai", "https://host/beta/openai", "https://host/beta/openai"),
    ],
)
@pytest.mark.parametrize("prefix", ["openai:", ""])
def test_where_things_are(url: str, api: str, root: str, prefix: str) -> None:
    address = parse_address(f"{prefix}org/model@v2@{url}")
    assert (address.model, str(address.api_url), str(address.root_url)) == ("org/model@v2", api, root)
    assert address.provider.name == "openai"
    assert not address.own


@pytest.mark.parametrize(
    ("name", "provider", "model", "api"),
    [
        ("openai:gpt-x", "openai", "gpt-x", "https://api.openai.com/v1"),
        ("openai:ft:gpt-x:org::abc", "openai", "ft:gpt-x:org::abc", "https://api.openai.com/v1"),
        ("anthropic:claude-y", "anthropic", "claude-y", "https://api.anthropic.com/v1"),
        ("openrouter:owner/m-1:free", "openrouter", "owner/m-1:free", "https://openrouter.ai/api/v1"),
        ("openrouter:owner/m@preset/mail", "openrouter", "owner/m@preset/mail", "https://openrouter.ai/api/v1"),
        ("anthropic:claude-y@20250514", "anthropic", "claude-y@20250514", "https://api.anthropic.com/v1"),
        ("ollama:qwen3:8b", "ollama", "qwen3:8b", "http://127.0.0.1:11434/api"),
        ("ollama:hf.co/a/B-GGUF:Q4_K_M", "ollama", "hf.co/a/B-GGUF:Q4_K_M", "http://127.0.0.1:11434/api"),
        ("lmstudio:a/b", "lmstudio", "a/b", "http://127.0.0.1:1234/v1"),
        ("vllm:Qwen/Q-7B", "vllm", "Qwen/Q-7B", "http://127.0.0.1:8000/v1"),
        ("mine:big", "mine", "big", "https://models.example.com/llm/v1"),
        ("openai:m@https://api.openai.com/v1", "openai", "m", "https://api.openai.com/v1"),
        ("openai:m@https://API.openai.com:443", "openai", "m", "https://api.openai.com/v1"),
    ],
)
def test_a_provider_s_own_server(name: str, provider: str, model: str, api: str) -> None:
    address = parse_address(name, OWN)
    assert (address.provider.name, address.model, str(address.api_url)) == (provider, model, api)
    assert address.own
    assert parse_address(address.name, OWN) == address


@pytest.mark.parametrize(
    ("name", "provider", "model", "api"),
    [
        ("ollama:qwen3:8b@http://box:11434", "ollama", "qwen3:8b", "http://box:11434/api"),
        ("ollama:qwen3:8b@http://box:11434/v1", "ollama", "qwen3:8b", "http://box:11434/api"),
        ("anthropic:c@https://gate/anthropic", "anthropic", "c", "https://gate/anthropic"),
        ("anthropic:c@http://127.0.0.1:9", "anthropic", "c", "http://127.0.0.1:9/v1"),
        ("openai:m@http://api.openai.com/v1", "openai", "m", "http://api.openai.com/v1"),
        ("openai:m@https://api.openai.com:8443/v1", "openai", "m", "https://api.openai.com:8443/v1"),
        ("openai:m@https://api.openai.com.evil.com/v1", "openai", "m", "https://api.openai.com.evil.com/v1"),
        ("qwen:7b@http://box/v1", "openai", "qwen:7b", "http://box/v1"),
        ("lmstudio:m@http://127.0.0.1:1235/v1", "lmstudio", "m", "http://127.0.0.1:1235/v1"),
    ],
)
def test_another_server_with_the_provider_s_protocol(name: str, provider: str, model: str, api: str) -> None:
    address = parse_address(name)
    assert (address.provider.name, address.model, str(address.api_url)) == (provider, model, api)
    assert not address.own


def test_price_window_and_reasoning_are_part_of_the_name() -> None:
    given = parse_address("openai:m@http://h/v1?input=1.5&output=3&window=8192")
    assert (given.settings.price, given.settings.window) == (Price(1.5, 3.0), 8192)
    assert str(given.api_url) == "http://h/v1"
    own = parse_address("anthropic:claude-y?reasoning=4096&window=9")
    assert (own.model, own.settings) == ("claude-y", ModelSettings(window=9, reasoning=4096))


def test_settings_of_the_user_hold_for_the_name_they_are_written_for() -> None:
    assert parse_address("openai:gpt-x?window=5", OWN).settings == ModelSettings(window=5, reasoning="low")
    assert parse_address("openai:tiny@http://127.0.0.1:9/v1", OWN).settings.window == 77
    assert parse_address("ollama:tiny@http://127.0.0.1:9/v1", OWN).settings == ModelSettings()
    assert parse_address("tiny@http://127.0.0.1:9/v1", OWN).settings.key_variable == "TINY_KEY"
    assert parse_address("tiny@http://elsewhere:9/v1", OWN).settings == ModelSettings()


def test_a_socket() -> None:
    address = parse_address("openai:m@unix:/run/model.sock")
    assert address.socket_path == Path("/run/model.sock")


@pytest.mark.parametrize(
    "name",
    [
        "m",
        "openai:",
        "openai:?window=3",
        "openai:@http://h",
        "openai:m@",
        "openai:m@http://",
        "openai:m@ftp://h",
        "openai:m@h:80",
        "openai:m@localhost",
        "openai:m@10.0.0.1",
        "openai:m@host.example.com/v1",
        "openai:m@http://user:secret@h",
        "m@http://user:secret@h/v1",
        "openai:m@http://h?input=1",
        "openai:m@http://h?input=x&output=1",
        "openai:m@http://h?window=-1",
        "openai:m?reasoning=much",
        "openai:m@http://h?colour=red",
        "openai:m@http://[::1",
    ],
)
def test_what_is_no_address(name: str) -> None:
    with pytest.raises(BadInput) as caught:
        parse_address(name)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["openai", "scripted", "http", "unix", "a b", "", "a:b"])
def test_a_provider_of_the_user_has_a_name_of_its_own(name: str) -> None:
    with pytest.raises(BadInput):
        ProviderTable({name: Provider(name, "openai", "https://h/v1")})


@pytest.mark.parametrize("variable", [provider.key_variable for provider in PROVIDERS.values()])
def test_a_provider_of_the_user_cannot_be_sent_a_built_in_key(variable: str) -> None:
    with pytest.raises(BadInput, match="sent there only"):
        ProviderTable({"mine": Provider("mine", "openai", "https://h/v1", variable)})
