"""Opens a model of an Ollama server."""

from pathlib import Path
from typing import Any

from gametape.core.errors import MissingDependency
from gametape.core.messages import Sampling
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.errors import EngineError
from gametape.engines.ollama.conversation import OllamaAbilities, OllamaChat, OllamaConversation, missing_model
from gametape.engines.openai.model import run_in_own_loop
from gametape.engines.prices import FREE, UNKNOWN_PRICE, Price, find_price
from gametape.engines.providers import ProviderTable
from gametape.engines.server.address import ServerAddress, parse_address
from gametape.engines.server.client import ServerClient, ServerLimits
from gametape.engines.server.windows import usual_window

_PROBE_SECONDS = 60.0


class OllamaModel:
    """A model of an Ollama server. `abilities` are what the server says it can do."""

    trainable = False
    why_not_trainable = "Ollama takes messages only: the ids that it samples are not known"

    def __init__(self, chat: OllamaChat, local: bool) -> None:
        self.name, self.window, self.price, self.local = chat.name, chat.window, chat.price, local
        self.abilities = chat.abilities
        self._chat = chat

    def start_conversation(
        self,
        sampling: Sampling,
        conversation_id: str = "",  # noqa: ARG002 - Ollama keeps no conversation
        constrain: bool = False,  # noqa: ARG002 - nor can it force a call
    ) -> OllamaConversation:
        return OllamaConversation(self._chat, sampling)

    async def close(self) -> None:
        await self._chat.client.close()


def open_ollama_model(
    name: str,
    egress: EgressPolicy,
    home: Path | None = None,
    limits: ServerLimits | None = None,
    table: ProviderTable | None = None,
) -> OllamaModel:
    """The model of this name, after its server was asked what it can do and how much it holds.

    Raises `MissingDependency` where the server does not have the model.
    """
    address, limits = parse_address(name, table), limits or ServerLimits()
    local = address.socket_path is not None or egress.is_local(address.api_url.host)
    price = (
        address.settings.price or find_price(home, address.name, address.model) or (FREE if local else UNKNOWN_PRICE)
    )
    shown = run_in_own_loop(_show(address, egress, limits))
    client = ServerClient(address, egress, limits)
    return OllamaModel(_chat(address, client, price, shown), local)


def _chat(address: ServerAddress, client: ServerClient, price: Price, shown: dict[str, Any]) -> OllamaChat:
    window = address.settings.window or context_length(shown) or usual_window(address)
    return OllamaChat(client, address.model, address.name, window, price, _abilities(address, shown))


def _abilities(address: ServerAddress, shown: dict[str, Any]) -> OllamaAbilities:
    """Servers that list no abilities are asked for everything, and may refuse it."""
    reasoning, listed = address.settings.reasoning, shown.get("capabilities")
    abilities = OllamaAbilities(think=True if isinstance(reasoning, int) else reasoning)
    if isinstance(listed, list):
        if "tools" not in listed:
            abilities.write_calls_as_text()
        if "thinking" not in listed and abilities.think is not None:
            abilities.think = None
            abilities.changes["think"] = "reasoning is not asked for: the model does not support it"
    return abilities


def context_length(shown: dict[str, Any]) -> int | None:
    """The context length that `/api/show` reports below a key of the model's architecture."""
    info = shown.get("model_info")
    for key, value in info.items() if isinstance(info, dict) else ():
        if str(key).endswith(".context_length") and type(value) is int and 0 < value < 2**40:
            return int(value)
    return None


async def _show(address: ServerAddress, egress: EgressPolicy, limits: ServerLimits) -> dict[str, Any]:
    short = ServerLimits(limits.connect_seconds, limits.idle_seconds, min(limits.total_seconds, _PROBE_SECONDS))
    client = ServerClient(address, egress, short)
    try:
        return await client.post("/show", {"model": address.model})
    except EngineError as error:
        if error.status == 404 and "model" in str(error):
            raise MissingDependency(missing_model(address.model, client)) from error
        if error.kind not in {"refused", "garbled"} or error.status in {401, 403}:
            raise
        return {}
    finally:
        await client.close()
