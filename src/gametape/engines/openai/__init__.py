"""Models behind an OpenAI-compatible server: in token ids where the server can do that, in messages where it cannot."""

from gametape.engines.openai.model import ServerModel, open_server_model

__all__ = ["ServerModel", "open_server_model"]
