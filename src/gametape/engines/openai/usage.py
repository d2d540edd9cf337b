"""The token usage that a server reports, with its cost."""

from typing import Any

from gametape.core.messages import TokenUsage
from gametape.engines.prices import Price

_MAX_COUNT = 2**40


def parse_usage(reported: dict[str, Any], counted: TokenUsage, price: Price, seconds: float) -> TokenUsage:
    """The server's own counts where they are plausible, else ours."""
    prompt = _count(reported.get("prompt_tokens"), counted.prompt_tokens)
    completion = _count(reported.get("completion_tokens"), counted.completion_tokens)
    details = reported.get("prompt_tokens_details")
    cached = min(prompt, _count(details.get("cached_tokens"), 0)) if isinstance(details, dict) else 0
    return TokenUsage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        cached_tokens=cached,
        cost_usd=price.cost(prompt, completion, cached),
        seconds=seconds,
    )


def _count(value: object, default: int) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MAX_COUNT else default
