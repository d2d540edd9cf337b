"""Opens a model of a server that speaks Anthropic's protocol."""

from pathlib import Path

from gametape.core.messages import Sampling
from gametape.engines.anthropic.conversation import AnthropicChat, AnthropicConversation
from gametape.engines.anthropic.thought_request import RefusedThinking
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.prices import FREE, UNKNOWN_PRICE, Price, find_price
from gametape.engines.providers import ProviderTable
from gametape.engines.server.address import ServerAddress, parse_address
from gametape.engines.server.client import ServerClient, ServerLimits
from gametape.engines.server.windows import usual_window


class AnthropicModel:
    """A model that takes messages only. `price.known` says whether its costs mean anything."""

    trainable = False

    def __init__(self, address: ServerAddress, client: ServerClient, local: bool, price: Price) -> None:
        self.name = address.name
        self.local = local
        self.price = price
        self.why_not_trainable = "the protocol has messages only, no token ids"
        self._client = client
        refused = RefusedThinking(address.model, address.settings.reasoning)
        window = address.settings.window or usual_window(address)
        self._chat = AnthropicChat(client, address.model, self.name, window, price, refused)

    @property
    def window(self) -> int:
        """The usual one, or the smaller one that the server has stated when it refused a request."""
        return self._chat.refused.window_within(self._chat.window)

    def start_conversation(
        self,
        sampling: Sampling,
        conversation_id: str = "",  # noqa: ARG002 - of no use to a server of messages
        constrain: bool = False,
    ) -> AnthropicConversation:
        return AnthropicConversation(self._chat, sampling, constrain)

    async def close(self) -> None:
        await self._client.close()


def open_anthropic_model(
    name: str,
    egress: EgressPolicy,
    home: Path | None = None,
    limits: ServerLimits | None = None,
    table: ProviderTable | None = None,
) -> AnthropicModel:
    """The model of this name; no request is sent. Prices are those of the user."""
    address = parse_address(name, table)
    local = address.socket_path is not None or egress.is_local(address.api_url.host)
    price = address.settings.price or find_price(home, address.name, address.model)
    client = ServerClient(address, egress, limits or ServerLimits())
    return AnthropicModel(address, client, local, price or (FREE if local else UNKNOWN_PRICE))
