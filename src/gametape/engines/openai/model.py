"""Opens a model of a server that speaks OpenAI's protocol."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from gametape.core.messages import Sampling
from gametape.engines.conversation import Conversation
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.openai.capability_probe import MessageAPI, TokenAPI, probe_server
from gametape.engines.openai.engine import ServerEngine
from gametape.engines.openai.message_conversation import ChatModel, MessageConversation
from gametape.engines.openai.token_conversation import ServerTokenConversation
from gametape.engines.prices import FREE, UNKNOWN_PRICE, Price, find_price
from gametape.engines.providers import ProviderTable, reasoning_effort
from gametape.engines.server.address import ServerAddress, parse_address
from gametape.engines.server.client import ServerClient, ServerLimits
from gametape.engines.token_conversation import TokenConversation

_PROBE_SECONDS = 60.0
T = TypeVar("T")


class ServerModel:
    """A model of a server, used through the API that was found. `price.known` says whether its costs mean anything."""

    def __init__(
        self, address: ServerAddress, api: TokenAPI | MessageAPI, client: ServerClient, local: bool, price: Price
    ) -> None:
        self.name = address.name
        self.local = local
        self.price = price
        self._api = api
        self._client = client
        self._engine = ServerEngine(client, address.model, price)
        self._chat = ChatModel(
            client, address.model, self.name, address.settings.window or api.window, price, _options(address)
        )

    @property
    def window(self) -> int:
        """What the server reports, or the smaller one that it has stated when it refused a request."""
        return self._chat.refused.window_within(self._chat.window)

    @property
    def trainable(self) -> bool:
        return isinstance(self._api, TokenAPI)

    @property
    def why_not_trainable(self) -> str | None:
        """What the server lacks, in one line."""
        return self._api.reason if isinstance(self._api, MessageAPI) else None

    @property
    def exact_logprobs(self) -> bool:
        """Whether log-probabilities are those of the distribution sampled from, at any temperature."""
        return isinstance(self._api, TokenAPI) and self._api.exact_logprobs

    def start_conversation(
        self, sampling: Sampling, conversation_id: str = "", constrain: bool = False
    ) -> Conversation:
        api = self._api
        if isinstance(api, MessageAPI):
            return MessageConversation(self._chat, sampling, constrain)
        inner = TokenConversation(
            self._engine, api.chat_format, self.window, sampling, conversation_id, constrain, self.name
        )
        return ServerTokenConversation(inner, self._engine, self._client, api.tokenizer_cache, api.exact_logprobs)

    async def close(self) -> None:
        await self._client.close()


def _options(address: ServerAddress) -> dict[str, Any]:
    """What is asked of the model beside its messages: to reason, and to keep what it has read where that is offered."""
    options: dict[str, Any] = {}
    reasoning, is_router = address.settings.reasoning, address.provider.name == "openrouter"
    if reasoning is not None and is_router:
        options["reasoning"] = {"max_tokens" if isinstance(reasoning, int) else "effort": reasoning}
    elif reasoning is not None:
        options["reasoning_effort"] = reasoning_effort(reasoning)
    if is_router and address.model.startswith("anthropic/"):
        options["cache_control"] = {"type": "ephemeral"}
    return options


def open_server_model(
    name: str,
    egress: EgressPolicy,
    home: Path | None = None,
    limits: ServerLimits | None = None,
    table: ProviderTable | None = None,
) -> ServerModel:
    """The model of this name, after a probe of what its server can do; hosted providers are not probed.

    Prices come from the name or the user's settings, else from `HOME/prices.toml`, else from a provider that reports
    them; a server on this machine costs nothing.
    """
    address, limits = parse_address(name, table), limits or ServerLimits()
    local = address.socket_path is not None or egress.is_local(address.api_url.host)
    api = run_in_own_loop(_probe(address, egress, limits))
    price = address.settings.price or find_price(home, address.name, address.model)
    if price is None:
        price = (isinstance(api, MessageAPI) and api.price) or (FREE if local else UNKNOWN_PRICE)
    return ServerModel(address, api, ServerClient(address, egress, limits), local, price)


async def _probe(address: ServerAddress, egress: EgressPolicy, limits: ServerLimits) -> TokenAPI | MessageAPI:
    short = replace(limits, total_seconds=min(limits.total_seconds, _PROBE_SECONDS))
    client = ServerClient(address, egress, short)
    try:
        return await probe_server(client, address)
    finally:
        await client.close()


def run_in_own_loop(work: Coroutine[None, None, T]) -> T:
    """Run in a new event loop, whether or not one is running here: a client's connections belong to one loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
