"""What opening a model asks of its server: nothing of a hosted one that costs or fails, and what the others report."""

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from gametape.core.messages import Sampling
from gametape.engines import http_client
from gametape.engines.anthropic import open_anthropic_model
from gametape.engines.conversation import Conversation
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.openai import open_server_model
from gametape.engines.prices import FREE, Price
from gametape.engines.providers import PROVIDERS, ModelSettings, ProviderTable
from tests.engines.openai.server import FaultServer
from tests.engines.servers.openai_server import OpenAIServer
from tests.engines.servers.scripted import Turn

LISTING = {
    "data": [
        {"id": "other", "context_length": 1},
        {
            "id": "owner/m:free",
            "context_length": 65_536,
            "pricing": {"prompt": "0.000002", "completion": "0.00001", "input_cache_read": "0.0000002"},
        },
        {"id": "depends", "context_length": 9000, "pricing": {"prompt": "-1", "completion": "-1"}},
        {"id": "loaded", "loaded_context_length": 4096, "max_context_length": 131_072, "state": "loaded"},
        {"id": "unloaded", "max_context_length": 131_072, "state": "not-loaded"},
        {"id": "served", "max_model_len": 40_960},
        {"id": "odd", "max_model_len": "many", "context_length": -5},
    ]
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    with OpenAIServer([Turn("hi"), Turn("hi")], listing=LISTING) as server:
        here = httpx.URL(server.url)

        def lead_here(request: httpx.Request, _address: str) -> httpx.Request:
            url = request.url.copy_with(scheme="http", host=here.host, port=here.port)
            return httpx.Request(request.method, url, headers=request.headers, stream=request.stream)

        monkeypatch.setattr(http_client, "_with_address", lead_here)
        for provider in PROVIDERS.values():
            monkeypatch.setenv(provider.key_variable or "", "a-key")
        yield server


@pytest.mark.parametrize("name", ["openai:gpt-5", "anthropic:claude-sonnet-5"])
def test_a_hosted_model_is_opened_without_a_request(name: str, server: OpenAIServer) -> None:
    opened = open_anthropic_model if name.startswith("anthropic") else open_server_model
    model = opened(name, EgressPolicy())
    assert server.seen == []
    assert (model.name, model.local, model.trainable, model.price.known) == (name, False, False, False)


def test_openrouter_is_asked_once_for_window_and_price(server: OpenAIServer) -> None:
    model = open_server_model("openrouter:owner/m:free", EgressPolicy())
    assert [(seen.method, seen.path) for seen in server.seen] == [("GET", "/api/v1/models")]
    assert (model.window, model.price) == (65_536, Price(2.0, 10.0, 0.2))
    assert not open_server_model("openrouter:depends", EgressPolicy()).price.known


@pytest.mark.parametrize(
    ("name", "window"),
    [
        ("lmstudio:loaded", 4096),
        ("lmstudio:unloaded", 131_072),
        ("lmstudio:unknown", 32_768),
        ("openrouter:unknown", 128_000),
        ("openrouter:odd", 1),
        ("openai:gpt-5.1", 400_000),
        ("openai:gpt-5.5-pro", 1_050_000),
        ("openai:gpt-5.1-chat-latest", 128_000),
        ("openai:gpt-4o-mini", 128_000),
        ("openai:gpt-99", 128_000),
        ("vllm:served", 40_960),
        ("served@http://elsewhere/v1", 40_960),
        ("unknown@http://elsewhere/v1", 32_768),
        ("openai:gpt-5@http://elsewhere/v1", 32_768),
        ("openai:gpt-5?window=777", 777),
        ("openai:mine", 555),
    ],
)
def test_windows(name: str, window: int, server: OpenAIServer) -> None:
    table = ProviderTable(settings={"openai:mine": ModelSettings(window=555)})
    assert open_server_model(name, EgressPolicy(), table=table).window == window
    assert server.requests == []


@pytest.mark.parametrize(
    ("model", "window"), [("claude-sonnet-4-5", 200_000), ("claude-opus-5-5", 1_000_000), ("another", 200_000)]
)
def test_windows_of_anthropic(model: str, window: int, server: OpenAIServer) -> None:
    assert open_anthropic_model(f"anthropic:{model}", EgressPolicy()).window == window
    assert server.seen == []


def test_only_servers_that_may_take_ids_are_tried_with_ids(server: OpenAIServer) -> None:
    def tried(name: str) -> bool:
        server.seen.clear()
        open_server_model(name, EgressPolicy())
        return any(seen.path.endswith("/tokenize") for seen in server.seen)

    assert [name for name in ("openai:m", "openrouter:m", "lmstudio:m", "lmstudio:m@http://h") if tried(name)] == []
    assert all(map(tried, ["vllm:m", "m@http://h/v1", "openai:m@http://127.0.0.1:9/v1"]))


def test_reasoning_is_asked_for_in_the_provider_s_way(server: OpenAIServer) -> None:
    def sent(name: str) -> dict[str, Any]:
        conversation: Conversation = open_server_model(name, EgressPolicy()).start_conversation(Sampling())
        conversation.begin("s", [], "u")
        with pytest.raises(EngineError, match="404"):
            asyncio.run(conversation.ask(9))
        return server.seen[-1].body

    assert sent("lmstudio:m@http://h/x?reasoning=9000")["reasoning_effort"] == "medium"
    assert sent("openrouter:m?reasoning=high")["reasoning"] == {"effort": "high"}
    assert sent("openrouter:anthropic/m?reasoning=2000")["reasoning"] == {"max_tokens": 2000}
    assert sent("openrouter:anthropic/m")["cache_control"] == {"type": "ephemeral"}
    assert not {"cache_control", "reasoning"} & set(sent("openrouter:m"))


def test_a_server_on_this_machine_costs_nothing() -> None:
    with FaultServer() as server:
        assert open_server_model(f"tiny@{server.url}", EgressPolicy(local_only=True)).price == FREE
