"""The token usage that a server reports, with its cost."""

from typing import Any

from gametape.core.messages import TokenUsage
from gametape.engines.prices import Price
from gametape.engines.server.counts import believable_count, count_at, plausible_count


def parse_usage(
    reported: dict[str, Any], counted: TokenUsage, price: Price, seconds: float, estimated: TokenUsage | None = None
) -> TokenUsage:
    """The server's own counts where they are plausible, else ours; never less than a part of what is `estimated`."""
    least = estimated or counted
    prompt = plausible_count(reported.get("prompt_tokens"), counted.prompt_tokens)
    prompt = believable_count(prompt, least.prompt_tokens)
    completion = plausible_count(reported.get("completion_tokens"), counted.completion_tokens)
    completion = believable_count(completion, least.completion_tokens)
    cached = count_at(reported, "prompt_tokens_details", "cached_tokens")
    cached = min(prompt, cached or count_at(reported, "prompt_cache_hit_tokens"))
    written = min(prompt - cached, count_at(reported, "prompt_tokens_details", "cache_write_tokens"))
    reasoning = min(completion, count_at(reported, "completion_tokens_details", "reasoning_tokens"))
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        written_tokens=written,
        reasoning_tokens=reasoning,
        cost_usd=price.cost(prompt, completion, cached, written),
        seconds=seconds,
    )
