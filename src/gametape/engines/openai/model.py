"""What `openai:MODEL@URL` stands for."""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from gametape.core.messages import Sampling
from gametape.engines.conversation import Conversation
from gametape.engines.openai.address import Address, read_address
from gametape.engines.openai.client import Bounds, Client
from gametape.engines.openai.engine import ServerEngine
from gametape.engines.openai.messages import MessageConversation
from gametape.engines.openai.probing import InMessages, InTokens, find_out
from gametape.engines.openai.tokens import ServerConversation
from gametape.engines.perimeter import Perimeter
from gametape.engines.pricing import FREE, UNKNOWN, Price, read_prices
from gametape.engines.token_conversation import TokenConversation

_PROBE_SECONDS = 60.0
T = TypeVar("T")


class ServerModel:
    """A model of a server, spoken to in the way that was found. `price.known` says whether its costs mean anything."""

    def __init__(
        self, address: Address, found: InTokens | InMessages, client: Client, local: bool, price: Price
    ) -> None:
        self.name = f"openai:{address.model}@{client.server}"
        self.local = local
        self.price = price
        self.window = address.window or found.window
        self._model = address.model
        self._found = found
        self._client = client
        self._engine = ServerEngine(client, address.model, price)

    @property
    def trainable(self) -> bool:
        return isinstance(self._found, InTokens)

    @property
    def why_not_trainable(self) -> str | None:
        """What the server lacks, in one line."""
        return self._found.why if isinstance(self._found, InMessages) else None

    @property
    def true_logprobs(self) -> bool:
        """Whether log-probabilities are those of the distribution drawn from, whatever the temperature."""
        return isinstance(self._found, InTokens) and self._found.true_logprobs

    def converse(self, sampling: Sampling, conversation_id: str = "", constrain: bool = False) -> Conversation:
        found = self._found
        if isinstance(found, InMessages):
            return MessageConversation(self._client, self._model, self.name, sampling, self.price)
        inner = TokenConversation(
            self._engine, found.dialect, self.window, sampling, conversation_id, constrain, self.name
        )
        return ServerConversation(inner, self._engine, self._client, found.lexicon, found.true_logprobs)

    async def close(self) -> None:
        await self._client.close()


def open_server_model(
    name: str, perimeter: Perimeter, home: Path | None = None, bounds: Bounds | None = None
) -> ServerModel:
    """The model of this name, after its server was asked what it can do. Prices come from the name, else from
    `HOME/prices.toml`; a server on this machine costs nothing."""
    address, bounds = read_address(name), bounds or Bounds()
    local = address.socket is not None or perimeter.is_local(address.api.host)
    prices = read_prices(home / "prices.toml") if home else {}
    price = address.price or prices.get(address.model) or (FREE if local else UNKNOWN)
    found = _apart(_probe(address, perimeter, bounds))
    return ServerModel(address, found, Client(address, perimeter, bounds), local, price)


async def _probe(address: Address, perimeter: Perimeter, bounds: Bounds) -> InTokens | InMessages:
    hurried = replace(bounds, total_seconds=min(bounds.total_seconds, _PROBE_SECONDS))
    client = Client(address, perimeter, hurried)
    try:
        return await find_out(client, address.model)
    finally:
        await client.close()


def _apart(work: Coroutine[None, None, T]) -> T:
    """Run in a loop of its own, whether or not one is running here: connections of a client belong to one loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()
