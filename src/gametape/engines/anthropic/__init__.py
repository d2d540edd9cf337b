"""Models behind a server that speaks Anthropic's protocol, used in messages."""

from gametape.engines.anthropic.model import AnthropicModel, open_anthropic_model

__all__ = ["AnthropicModel", "open_anthropic_model"]
