"""The context length of a model whose server does not report one: from a short table, else the provider's usual one.

The table is of November 2026; a family has the smallest window that its models were published with.
"""

from gametape.engines.providers import LOCAL_WINDOW
from gametape.engines.server.address import ServerAddress

_WINDOWS: dict[str, dict[str, int]] = {
    "openai": {
        "gpt-5": 400_000,
        "gpt-5-chat": 128_000,
        "gpt-5.1-chat": 128_000,
        "gpt-5.2-chat": 128_000,
        "gpt-5.3-chat": 128_000,
        "gpt-5.4": 1_050_000,
        "gpt-5.4-mini": 400_000,
        "gpt-5.4-nano": 400_000,
        "gpt-5.5": 1_050_000,
        "gpt-4.1": 1_047_576,
        "gpt-4o": 128_000,
        "gpt-4-turbo": 128_000,
        "gpt-4": 8_192,
        "gpt-3.5-turbo": 16_385,
        "o1": 200_000,
        "o1-mini": 128_000,
        "o1-preview": 128_000,
        "o3": 200_000,
        "o4-mini": 200_000,
    },
    "anthropic": {
        "claude": 200_000,
        "claude-fable-5": 1_000_000,
        "claude-haiku-5": 1_000_000,
        "claude-mythos-5": 1_000_000,
        "claude-opus-5": 1_000_000,
        "claude-sonnet-5": 1_000_000,
    },
}


def usual_window(address: ServerAddress) -> int:
    """The window of the longest known beginning of the model's name."""
    provider = address.provider
    known = _WINDOWS.get(provider.name, {}) if address.own or provider.protocol == "anthropic" else {}
    fitting = [beginning for beginning in known if address.model.startswith(beginning)]
    if fitting:
        return known[max(fitting, key=len)]
    return provider.window if address.own else LOCAL_WINDOW
