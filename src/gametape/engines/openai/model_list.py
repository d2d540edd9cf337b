"""What a server's list of models says about one of them: its window, and its price where the provider sells it."""

import math
from dataclasses import dataclass
from typing import Any

from gametape.engines.errors import EngineError
from gametape.engines.prices import Price
from gametape.engines.server.address import ServerAddress
from gametape.engines.server.client import ServerClient
from gametape.engines.server.counts import plausible_count

_WINDOW_FIELDS = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "context_window")
"""As vLLM, LM Studio, OpenRouter, LM Studio again and others call it; the one that holds now comes first."""


@dataclass(frozen=True)
class ReportedModel:
    """None for what is not reported."""

    window: int | None = None
    price: Price | None = None


async def read_model_list(client: ServerClient, address: ServerAddress) -> ReportedModel:
    """One GET request, or none where the provider is known to report nothing of use."""
    provider = address.provider
    if provider.name == "openai" and address.own:
        return ReportedModel()
    try:
        if provider.name == "lmstudio":
            listing = await client.get("/api/v0/models", root=True)
        else:
            listing = await client.get("/models")
    except EngineError as error:
        if error.kind not in {"refused", "garbled"} or error.status in {401, 403}:
            raise
        return ReportedModel()
    entries = listing.get("data")
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and entry.get("id") == address.model:
            sold = provider.name == "openrouter" and address.own
            return ReportedModel(_window(entry), _price(entry.get("pricing")) if sold else None)
    return ReportedModel()


def _window(entry: dict[str, Any]) -> int | None:
    top = entry.get("top_provider")
    sources = [entry, *([top] if isinstance(top, dict) else [])]
    given = [source[name] for name in _WINDOW_FIELDS for source in sources if type(source.get(name)) is int]
    return max(1, plausible_count(given[0], 1)) if given else None


def _price(pricing: object) -> Price | None:
    """OpenRouter states dollars per token, as strings; a negative one means that it depends."""
    if not isinstance(pricing, dict):
        return None
    dollars = {name: _per_million(pricing.get(name)) for name in ("prompt", "completion", "input_cache_read")}
    prompt, completion = dollars["prompt"], dollars["completion"]
    return None if prompt is None or completion is None else Price(prompt, completion, dollars["input_cache_read"])


def _per_million(value: object) -> float | None:
    try:
        dollars = float(value) * 1e6 if isinstance(value, str | int | float) else math.nan
    except (ValueError, OverflowError):
        return None
    return round(dollars, 9) if math.isfinite(dollars) and dollars >= 0 else None
