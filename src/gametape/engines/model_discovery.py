"""Finds the models that can be used here: servers that answer on this machine, keys in the environment, weights.

Nothing is asked but loopback addresses, and no key is sent: any program may listen there.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gametape.core.errors import GametapeError
from gametape.engines.egress_policy import EgressPolicy
from gametape.engines.providers import PROVIDERS, Provider, ProviderTable

_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/+-]{0,99}")
_MOST_MODELS = 20
_NOT_FOR_CHAT = re.compile(r"embed|rerank|whisper|\btts\b", re.IGNORECASE)


@dataclass(frozen=True)
class FoundModel:
    """A model that can be used. `name` ends in a colon where only the provider is known."""

    name: str
    what: str

    @property
    def is_whole(self) -> bool:
        return not self.name.endswith(":")


def discover_models(home: Path, providers: Iterable[Provider] = PROVIDERS.values()) -> list[FoundModel]:
    """What was found, the models of servers on this machine first."""
    known = list(providers)
    answering = [provider for provider in known if not provider.hosted]
    served = asyncio.run(_ask_all(answering))
    keyed = [
        FoundModel(f"{provider.name}:", f"any model there; ${provider.key_variable} is set")
        for provider in known
        if provider.hosted and os.environ.get(provider.key_variable or "", "").strip()
    ]
    weights = [FoundModel("smollm2", "SmolLM2-135M-Instruct on this machine; too small for real work")]
    return [*served, *keyed, *(weights if (home / "models" / "smollm2").is_dir() else [])]


async def _ask_all(providers: Sequence[Provider]) -> list[FoundModel]:
    lists = await asyncio.gather(*(_list_models(provider) for provider in providers))
    return [model for models in lists for model in models]


async def _list_models(provider: Provider) -> list[FoundModel]:
    from gametape.engines.server.address import parse_address  # noqa: PLC0415 - httpx is slow to import
    from gametape.engines.server.client import ServerClient, ServerLimits  # noqa: PLC0415
    from gametape.engines.server.keys import ServerKey  # noqa: PLC0415

    limits = ServerLimits(connect_seconds=1.0, idle_seconds=3.0, total_seconds=5.0, answer_bytes=1 << 20)
    try:
        table = ProviderTable({} if provider.name in PROVIDERS else {provider.name: provider})
        address = parse_address(f"{provider.name}:any", table)
        client = ServerClient(address, EgressPolicy(local_only=True), limits, ServerKey())
        try:
            answer = await client.get("/tags" if provider.protocol == "ollama" else "/models")
        finally:
            await client.close()
    except GametapeError:
        return []
    names = [name for name in model_names_in(answer) if _MODEL.fullmatch(name) and not _NOT_FOR_CHAT.search(name)]
    return [FoundModel(f"{provider.name}:{name}", f"answers at {address.server}") for name in names[:_MOST_MODELS]]


def model_names_in(answer: dict[str, Any]) -> list[str]:
    """The names in a list of models, as Ollama or as OpenAI's protocol has it."""
    entries = answer.get("models") or answer.get("data")
    listed = entries if isinstance(entries, list) else []
    found = [entry.get("name") or entry.get("id") for entry in listed if isinstance(entry, dict)]
    return [name for name in found if isinstance(name, str)]
